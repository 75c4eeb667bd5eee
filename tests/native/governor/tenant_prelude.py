"""Run before a test's script, in the tenant's own process: the driver API by ctypes."""

import ctypes
import json
import os

MIB = 1 << 20
OOM, NOT_SUPPORTED, NOT_READY = 2, 801, 802

cuda = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")


def nvml_library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ["SHARE"] + "/lib/libnvidia-ml.so.1")


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


def check(result: int) -> None:
    assert result == 0, result


def retain(device: int = 0) -> int:
    context = ctypes.c_void_p()
    result = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    return int(result or cuda.cuCtxSetCurrent(context))


def begin(device: int = 0) -> None:
    check(cuda.cuInit(0))
    check(retain(device))


def alloc(size: int) -> tuple[int, int]:
    """(result, pointer); the pointer's untouched value is 0x77."""
    pointer = ctypes.c_ulonglong(0x77)
    return cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)), pointer.value


def free(pointer: int) -> int:
    return int(cuda.cuMemFree_v2(ctypes.c_ulonglong(pointer)))


def info() -> tuple[int, int]:
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(cuda.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total)))
    return left.value, total.value


def used() -> int:
    left, total = info()
    return total - left


def sentence(code: int = NOT_READY) -> str | None:
    text = ctypes.c_char_p()
    result = cuda.cuGetErrorString(code, ctypes.byref(text))
    return text.value.decode() if result == 0 and text.value else None


ref, size = ctypes.byref, ctypes.c_size_t
on_device, on_host = (ctypes.c_int * 8)(1, 0, 1, 0), (ctypes.c_int * 8)(1, 0, 2, 0)
"""The heads of CUmemAllocationProp and CUmemPoolProps: pinned, no handle type, location, id."""
p = ctypes.c_ulonglong(0x77)


def pool() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    check(cuda.cuMemPoolCreate(ref(made), on_device))
    return made


def really_used() -> int:
    """Bytes of the device that are taken, by the driver behind the governor."""
    driver = ctypes.CDLL(os.environ["SHARE"] + "/driver/libcuda.so.1")
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(driver.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total)))
    return total.value - left.value


def stream() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    check(cuda.cuStreamCreate(ref(made), 1))
    return made


class AllocationNode(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS on device 0."""

    _fields_ = (
        ("pool", ctypes.c_int * 4),
        ("rest", ctypes.c_uint64 * 9),
        ("access", ctypes.c_void_p),
        ("accesses", ctypes.c_size_t),
        ("bytes", ctypes.c_size_t),
        ("pointer", ctypes.c_ulonglong),
    )

    def __init__(self, size: int) -> None:
        super().__init__(pool=(1, 0, 1, 0), bytes=size)


def graph() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    check(cuda.cuGraphCreate(ref(made), 0))
    return made


def allocation_node(into: ctypes.c_void_p, asked: AllocationNode) -> int:
    return int(cuda.cuGraphAddMemAllocNode(ref(ctypes.c_void_p()), into, None, size(0), ref(asked)))


def executable(of: ctypes.c_void_p) -> tuple[int, ctypes.c_void_p]:
    made = ctypes.c_void_p(0x77)
    return cuda.cuGraphInstantiateWithFlags(ref(made), of, ctypes.c_ulonglong(0)), made
