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


def create() -> str:
    properties = (c_uint * 8)(1, 0, 1, 0)  # pinned, no handle type, on a device, the first one
    handle = c_uint64()
    return name(cuda.cuMemCreate(byref(handle), c_uint64(2 << 20), properties, c_uint64(0)))


def array() -> str:
    described = (c_uint64 * 3)(16, 16, 0x20 | 1 << 32)  # of one channel of floats
    return name(cuda.cuArrayCreate_v2(byref(c_void_p()), described))


def mipmap() -> str:
    described = (c_uint64 * 5)(16, 16, 0, 0x20 | 1 << 32, 0)  # the same, of three dimensions
    return name(cuda.cuMipmappedArrayCreate(byref(c_void_p()), described, 2))


def pool() -> str:
    return name(cuda.cuMemAllocAsync(byref(c_uint64()), c_uint64(4096), None))


def node() -> str:
    graph, made, parameters = c_void_p(), c_void_p(), (c_uint64 * 64)()
    assert cuda.cuGraphCreate(byref(graph), 0) == 0
    words = (c_uint * 4).from_buffer(parameters)
    words[0], words[2] = 1, 1  # as `create`
    parameters[13] = 4096  # bytesize
    return name(cuda.cuGraphAddMemAllocNode(byref(made), graph, None, c_uint64(0), parameters))


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
