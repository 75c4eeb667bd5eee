"""Call every exported function of a library with zeros: `null_arguments.py LIBRARY NAME... `.

Twice: before initialising, and with a context current. Each name is written before its call, so that the
last line names the culprit of a crash."""

import ctypes
import sys
from ctypes import c_uint64

from calls import answer, context

library = ctypes.CDLL(sys.argv[1])
names = sys.stdin.read().split()
zeros = [c_uint64(0)] * 12
counts: dict[str, int] = {}
for prepared in (False, True):
    for name in names:
        if prepared and sys.argv[1].startswith("libcuda"):
            context()
        elif prepared:
            library.nvmlInit_v2()
        print(name, file=sys.stderr, flush=True)
        function = getattr(library, name)
        function.restype = ctypes.c_void_p if name == "nvmlErrorString" else ctypes.c_int
        function(*zeros)
    counts["prepared" if prepared else "unprepared"] = len(names)
answer(**counts)
