"""Run before a test's script, in the tenant's own process: the driver API by ctypes."""

import ctypes
import json
import os

MIB = 1 << 20
OOM, NOT_SUPPORTED, NOT_READY = 2, 801, 802

cuda = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")


def nvml_library():
    return ctypes.CDLL(os.environ["SHARE"] + "/lib/libnvidia-ml.so.1")


def say(value):
    print(json.dumps(value), flush=True)


def check(result):
    assert result == 0, result


def retain(device=0):
    context = ctypes.c_void_p()
    result = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    return result or cuda.cuCtxSetCurrent(context)


def begin(device=0):
    check(cuda.cuInit(0))
    check(retain(device))


def alloc(size):
    """(result, pointer); the pointer's untouched value is 0x77."""
    pointer = ctypes.c_ulonglong(0x77)
    return cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)), pointer.value


def free(pointer):
    return cuda.cuMemFree_v2(ctypes.c_ulonglong(pointer))


def info():
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(cuda.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total)))
    return left.value, total.value


def used():
    left, total = info()
    return total - left


def sentence(code=NOT_READY):
    text = ctypes.c_char_p()
    result = cuda.cuGetErrorString(code, ctypes.byref(text))
    return text.value.decode() if result == 0 and text.value else None
