"""The driver API and NVML through ctypes, for the programs of these tests: what a program sees that
loads the library by its name."""

from __future__ import annotations

import ctypes
import json
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 1, 2, 3
NO_DEVICE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND, NOT_READY = 100, 201, 400, 500, 600
ILLEGAL_ADDRESS, CONTEXT_IS_DESTROYED, NOT_PERMITTED, NOT_SUPPORTED = 700, 709, 800, 801
MIB = 1 << 20

SPIN = """.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 count) {
    .reg .u64 %rd<3>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [count];
again:
    sub.u64 %rd1, %rd1, 1;
    setp.ne.u64 %p1, %rd1, 0;
    @%p1 bra again;
    ret;
}
"""
"""A kernel that counts down."""


def check(result: int) -> None:
    name = c_char_p()
    if result != SUCCESS:
        cuda.cuGetErrorName(result, byref(name))
        raise AssertionError(name.value)


def answer(**values: object) -> None:
    print(json.dumps(values), flush=True)


def context(ordinal: int = 0) -> c_void_p:
    """Initialise, and make the device's primary context current."""
    made = c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(byref(made), ordinal))
    check(cuda.cuCtxSetCurrent(made))
    return made


def memory() -> tuple[int, int]:
    free, total = c_size_t(), c_size_t()
    check(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value, total.value


def allocate(size: int) -> int | None:
    """The address, or None where there is no memory."""
    address = c_uint64()
    result = cuda.cuMemAlloc_v2(byref(address), c_size_t(size))
    if result == OUT_OF_MEMORY:
        return None
    check(result)
    return address.value


def free(address: int) -> None:
    check(cuda.cuMemFree_v2(c_uint64(address)))


def fill(address: int, byte: int, size: int) -> int:
    return int(cuda.cuMemsetD8_v2(c_uint64(address), byte, c_size_t(size)))


def read(address: int, size: int) -> bytes:
    buffer = ctypes.create_string_buffer(size)
    check(cuda.cuMemcpyDtoH_v2(buffer, c_uint64(address), c_size_t(size)))
    return buffer.raw


def load(ptx: str) -> c_void_p:
    module = c_void_p()
    check(cuda.cuModuleLoadData(byref(module), ptx.encode()))
    return module


def function(module: c_void_p, name: str) -> c_void_p:
    found = c_void_p()
    check(cuda.cuModuleGetFunction(byref(found), module, name.encode()))
    return found


def launch(kernel: c_void_p, *arguments: object, grid: int = 1, block: int = 1) -> int:
    """Arguments are ctypes values."""
    pointers = (c_void_p * max(1, len(arguments)))()
    for index, argument in enumerate(arguments):
        pointers[index] = ctypes.cast(ctypes.pointer(argument), c_void_p)  # type: ignore[arg-type]
    return int(
        cuda.cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, None, pointers if arguments else None, None)
    )


class Nvml:
    """The few NVML calls that tests of memory and processes need."""

    class ProcessInfo(ctypes.Structure):
        _fields_ = (("pid", c_uint), ("used", ctypes.c_ulonglong), ("gi", c_uint), ("ci", c_uint))

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        assert self.library.nvmlInit_v2() == 0
        self.device = c_void_p()
        assert self.library.nvmlDeviceGetHandleByIndex_v2(0, byref(self.device)) == 0

    def used(self) -> int:
        """Bytes that programs hold: what is reserved for nobody is taken off."""
        values = (ctypes.c_ulonglong * 5)()
        ctypes.cast(values, ctypes.POINTER(c_uint))[0] = 40 | 2 << 24
        assert self.library.nvmlDeviceGetMemoryInfo_v2(self.device, values) == 0
        return int(values[4])

    def processes(self) -> dict[int, int]:
        room = (self.ProcessInfo * 256)()
        count = c_uint(256)
        assert self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, byref(count), room) == 0
        return {room[index].pid: room[index].used for index in range(count.value)}

    def utilisation(self) -> int:
        rates = (c_uint * 2)()
        assert self.library.nvmlDeviceGetUtilizationRates(self.device, rates) == 0
        return int(rates[0])


__all__ = [name for name in dir() if not name.startswith("_")] + ["c_int"]
