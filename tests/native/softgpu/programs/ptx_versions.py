"""Load, link and keep PTX of the versions that are given as `MAJOR.MINOR`: what each way answers and logs."""

import ctypes
import sys
from ctypes import byref, c_int, c_size_t, c_void_p

from calls import answer, check, context, cuda

ERROR_LOG, ERROR_LOG_BYTES, PTX_INPUT = 5, 6, 1
TEXT = "// a comment\n.version {}\n.target sm_50\n.address_size 64\n.visible .entry nothing() {{ ret; }}\n"
context()
log = ctypes.create_string_buffer(400)
names = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)


def options() -> object:
    log.value = b""
    return (c_void_p * 2)(ctypes.addressof(log), 400)


def outcomes(version: str) -> dict[str, object]:
    text = TEXT.format(version).encode()
    state = c_void_p()
    loaded = cuda.cuModuleLoadDataEx(byref(c_void_p()), text, 2, names, options())
    said = log.value.decode()
    kept = cuda.cuLibraryLoadData(byref(c_void_p()), text, names, options(), 2, None, None, 0)
    kept_said = log.value.decode()
    values = options()
    check(cuda.cuLinkCreate_v2(2, names, values, byref(state)))
    linked = cuda.cuLinkAddData_v2(state, PTX_INPUT, text, c_size_t(len(text)), b"part", 0, None, None)
    same = len({said, kept_said, log.value.decode()}) == 1
    check(cuda.cuLinkDestroy(state))
    return {"results": [loaded, kept, linked], "log": said, "same": same}


answer(seen=[outcomes(version) for version in sys.argv[1:]])
