"""A program on a device that is told to fail while it runs: a command a line of input, an answer each."""

import sys
from ctypes import byref, c_char_p, c_int, c_uint, c_uint64, c_void_p, create_string_buffer

from calls import Nvml, answer, context, cuda
from model_clock import MILLISECOND, Kernels, now

context()
kernels, nvml, events = Kernels(), Nvml(), c_void_p()
assert nvml.library.nvmlEventSetCreate(byref(events)) == 0
assert nvml.library.nvmlDeviceRegisterEvents(nvml.device, c_uint64(1 | 2 | 8), events) == 0


def name(result: int) -> str:
    text = c_char_p()
    cuda.cuGetErrorName(result, byref(text))
    return (text.value or b"").decode()


def allocate() -> str:
    return name(cuda.cuMemAlloc_v2(byref(c_uint64()), c_uint64(4096)))


def kernel() -> object:
    begin = now()
    result = cuda.cuLaunchKernel(kernels.functions["asleep"], 1, 1, 1, 32, 1, 1, 0, None, arguments(), None)
    result = result or cuda.cuCtxSynchronize()
    return [name(result), now() - begin]


def arguments() -> object:
    from ctypes import c_uint32, cast, pointer

    values = (c_uint32(1), c_uint32(MILLISECOND))
    pointers = (c_void_p * 2)(*(cast(pointer(value), c_void_p) for value in values))
    pointers.values = values
    return pointers


def event() -> object:
    data = (c_uint64 * 4)()
    result = nvml.library.nvmlEventSetWait_v2(events, data, c_uint(2000))
    return [result, data[1], data[2]]


def power() -> int:
    return int(nvml.library.nvmlDeviceGetPowerUsage(nvml.device, byref(c_uint())))


def versions() -> object:
    version, found, status, text = c_int(), c_void_p(), c_int(), create_string_buffer(80)
    cuda.cuDriverGetVersion(byref(version))
    nvml.library.nvmlSystemGetDriverVersion(text, 80)
    cuda.cuGetProcAddress_v2(b"cuLibraryLoadData", byref(found), 13000, c_uint64(0), byref(status))
    return [version.value, text.value.decode(), status.value]


answer(ready=True)
for line in sys.stdin:
    answer(seen=globals()[line.strip()]())
