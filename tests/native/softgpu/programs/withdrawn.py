"""Calls of functions by their names in the two libraries' own tables, as a linked program makes them: a line
`LIBRARY NAME` for each, an answer with what it returned when given zeros for arguments, and what
cuGetProcAddress says of the name. `cold`: nothing is initialised before."""

import ctypes
import sys
from ctypes import byref, c_int, c_uint64, c_void_p

from calls import Nvml, answer, context, cuda

nvml = ctypes.CDLL("libnvidia-ml.so.1")
if "cold" not in sys.argv:
    context()
    nvml = Nvml().library
    kept = c_void_p()
    assert nvml.nvmlEventSetCreate(byref(kept)) == 0
libraries = {"cuda": cuda, "nvml": nvml}


def found(name: str) -> bool:
    address, status = c_void_p(), c_int()
    cuda.cuGetProcAddress_v2(name.encode(), byref(address), 13050, c_uint64(0), byref(status))
    return address.value is not None


answer(ready=True)
for line in sys.stdin:
    library, name = line.split()
    function = getattr(libraries[library], name)
    answer(seen=[function(*[c_void_p()] * 16), found(name)])
