"""What cuGetProcAddress answers: which exported symbol, for name, version and flags."""

import ctypes
from ctypes import byref, c_int, c_uint64, c_void_p

from calls import answer, cuda

questions = [
    ("cuCtxGetDevice", 12000, 0, "cuCtxGetDevice"),
    ("cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2"),
    ("cuCtxCreate", 11000, 0, "cuCtxCreate_v2"),
    ("cuCtxCreate", 11040, 0, "cuCtxCreate_v3"),
    ("cuCtxCreate", 13000, 0, "cuCtxCreate_v4"),
    ("cuMemAlloc", 2000, 0, "cuMemAlloc"),
    ("cuMemAlloc", 3020, 0, "cuMemAlloc_v2"),
    ("cuMemcpyHtoDAsync", 12000, 0, "cuMemcpyHtoDAsync_v2"),
    ("cuMemcpyHtoDAsync", 12000, 2, "cuMemcpyHtoDAsync_v2_ptsz"),
    ("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds"),
    ("cuMemAlloc", 12000, 2, "cuMemAlloc_v2"),
    ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
    ("cuGetProcAddress", 11030, 0, "cuGetProcAddress"),
]
wrong = []
for name, version, flags, expected in questions:
    found, status = c_void_p(), c_int(-1)
    result = cuda.cuGetProcAddress_v2(name.encode(), byref(found), version, c_uint64(flags), byref(status))
    wanted = ctypes.cast(getattr(cuda, expected), c_void_p).value
    if (result, status.value) != (0, 0) or found.value != wanted:
        wrong.append([name, version, flags, expected, result, status.value])


def missing(name: bytes, version: int) -> list[int | None]:
    found, status = c_void_p(1), c_int(-1)
    result = cuda.cuGetProcAddress_v2(name, byref(found), version, c_uint64(0), byref(status))
    return [result, found.value, status.value]


answer(
    wrong=wrong,
    unknown=missing(b"cuNoSuchThing", 13000),
    too_old=missing(b"cuMemAllocAsync", 11000),
    too_new=missing(b"cuCheckpointOperationComplete", 13030),
    version_suffix=missing(b"cuMemAlloc_v2", 13000),
    without_status=cuda.cuGetProcAddress(b"cuNoSuchThing", byref(c_void_p()), 13000, c_uint64(0)),
)
