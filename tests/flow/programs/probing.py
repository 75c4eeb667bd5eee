"""What frameworks ask a driver when they start, as bare driver calls, in the order that they ask.

    probing.py torch|vllm|jax       one line of JSON: what was answered

Written from their public sources (PyTorch's c10/cuda and torch/cuda, vLLM's platforms/cuda.py and
worker/utils.py, XLA's gpu_executor and gpu_helpers); the frameworks themselves need NVIDIA's runtime.
"""

import ctypes
import json
import os
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p

MIB = 1 << 20
ATTRIBUTES = 145
cuda = ctypes.CDLL("libcuda.so.1")
nvml = ctypes.CDLL("libnvidia-ml.so.1")


class Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class Memory2(ctypes.Structure):
    _fields_ = [("version", c_uint)] + [(n, c_ulonglong) for n in ("total", "reserved", "free", "used")]


class Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", ctypes.c_char * 16),
        *((n, c_uint) for n in ("domain", "bus", "device", "id", "sub")),
    ]
    _fields_ += [("bus_id", ctypes.c_char * 32)]


class Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("used", c_ulonglong), ("gi", c_uint), ("ci", c_uint)]


def check(result: int) -> None:
    assert result == 0, result


def count() -> int:
    number = c_int()
    return number.value if cuda.cuDeviceGetCount(byref(number)) == 0 else 0


def name_of(device: int) -> dict:
    uuid, pci, total = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32), c_size_t()
    name = ctypes.create_string_buffer(100)
    check(cuda.cuDeviceGetName(name, 100, device))
    check(cuda.cuDeviceGetUuid_v2(uuid, device))
    check(cuda.cuDeviceGetPCIBusId(pci, 32, device))
    check(cuda.cuDeviceTotalMem_v2(byref(total), device))
    attributes = {}
    for number in range(1, ATTRIBUTES):
        value = c_int()
        attributes[number] = (
            value.value if cuda.cuDeviceGetAttribute(byref(value), number, device) == 0 else None
        )
    text = bytes(uuid).hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return {
        "uuid": "GPU-" + "-".join(parts),
        "pci": pci.value.decode(),
        "name": name.value.decode(),
        "total": total.value,
        "attributes": attributes,
    }


def nvml_device(device: c_void_p) -> dict:
    uuid, pci, memory, index = ctypes.create_string_buffer(96), Pci(), Memory(), c_uint()
    second = Memory2(version=ctypes.sizeof(Memory2) | 2 << 24)
    check(nvml.nvmlDeviceGetUUID(device, uuid, 96))
    check(nvml.nvmlDeviceGetPciInfo_v3(device, byref(pci)))
    check(nvml.nvmlDeviceGetMemoryInfo(device, byref(memory)))
    check(nvml.nvmlDeviceGetMemoryInfo_v2(device, byref(second)))
    check(nvml.nvmlDeviceGetIndex(device, byref(index)))
    assert (memory.total, memory.free, memory.used) == (
        second.total,
        second.free,
        second.used + second.reserved,
    )
    return {
        "uuid": uuid.value.decode(),
        "pci": pci.bus_id.decode().lower()[-12:],
        "total": memory.total,
        "free": memory.free,
        "used": memory.used,
        "reserved": second.reserved,
        "index": index.value,
    }


def nvml_devices() -> list:
    number, found = c_uint(), []
    check(nvml.nvmlInit_v2())
    check(nvml.nvmlDeviceGetCount_v2(byref(number)))
    for index in range(number.value):
        device, again = c_void_p(), c_void_p()
        check(nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(device)))
        seen = nvml_device(device)
        check(nvml.nvmlDeviceGetHandleByUUID(seen["uuid"].encode(), byref(again)))
        assert again.value == device.value
        check(nvml.nvmlDeviceGetHandleByPciBusId_v2(("0000" + seen["pci"]).encode(), byref(again)))
        assert again.value == device.value
        found.append(seen)
    return found


def context(device: int = 0) -> None:
    state, flags, made = c_int(), c_uint(), c_void_p()
    check(cuda.cuDevicePrimaryCtxGetState(device, byref(flags), byref(state)))
    check(cuda.cuDevicePrimaryCtxRetain(byref(made), device))
    check(cuda.cuCtxSetCurrent(made))


def info() -> dict:
    free, total = c_size_t(), c_size_t()
    check(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    device, memory = c_void_p(), Memory()
    check(nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(device)))
    check(nvml.nvmlDeviceGetMemoryInfo(device, byref(memory)))
    return {"free": free.value, "total": total.value, "nvml": [memory.total, memory.free, memory.used]}


def alloc(size: int) -> tuple:
    pointer = c_uint64()
    return cuda.cuMemAlloc_v2(byref(pointer), c_size_t(size)), pointer


def release(pointer: c_uint64) -> None:
    check(cuda.cuMemFree_v2(pointer))


def own_process() -> list:
    """How PyTorch's out-of-memory text finds "this process has … in use": by PCI id, then by pid."""
    pci, device, number, rows = ctypes.create_string_buffer(32), c_void_p(), c_uint(64), (Process * 64)()
    check(cuda.cuDeviceGetPCIBusId(pci, 32, 0))
    check(nvml.nvmlDeviceGetHandleByPciBusId_v2(pci, byref(device)))
    check(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(number), rows))
    return [[row.pid == os.getpid(), row.used] for row in rows[: number.value]]


def begun() -> dict:
    version, start = c_int(), cuda.cuInit(0)
    check(cuda.cuDriverGetVersion(byref(version)))
    return {"init": start, "version": version.value, "devices": [name_of(at) for at in range(count())]}


def torch() -> dict:
    seen = {"nvml": nvml_devices(), **begun()}
    if not seen["devices"]:
        return seen
    context()
    seen["before"] = info()
    # The caching allocator: small segments of 2 MiB, one of 20 MiB, then what is asked for.
    blocks = [alloc(size) for size in (2 * MIB, 20 * MIB, 64 * MIB)]
    seen["allocated"] = [result for result, _ in blocks]
    seen["after"] = info()
    # set_per_process_memory_fraction(1.0): all that is free but what a context may still take.
    result, rest = alloc(seen["after"]["free"])
    seen["all"] = [result, info()["free"]]
    text = c_char_p()
    seen["oom"] = alloc(MIB)[0]
    check(cuda.cuGetErrorName(seen["oom"], byref(text)))
    seen["oom_name"] = (text.value or b"").decode()
    seen["process"] = own_process()
    for pointer in (rest, *(pointer for _, pointer in blocks)):
        release(pointer)
    seen["end"] = info()
    return seen


def vllm() -> dict:
    """gpu_memory_utilization 0.9: snapshot, weights, a profile run, a graph, then the cache of the rest."""
    seen = {"nvml": nvml_devices(), **begun()}
    context()
    first = info()
    requested = int(first["total"] * 0.9)
    _, weights = alloc(300 * MIB)
    loaded = info()
    _, peak = alloc(200 * MIB)
    profiled = info()
    release(peak)
    after = info()
    stream, graph, runnable = c_void_p(), c_void_p(), c_void_p()
    check(cuda.cuStreamCreateWithPriority(byref(stream), 1, 0))
    check(cuda.cuStreamBeginCapture_v2(stream, 2))
    check(cuda.cuMemsetD8Async(weights, 0, c_size_t(MIB), stream))
    check(cuda.cuStreamEndCapture(stream, byref(graph)))
    check(cuda.cuGraphInstantiateWithFlags(byref(runnable), graph, c_ulonglong(0)))
    check(cuda.cuGraphLaunch(runnable, stream))
    check(cuda.cuStreamSynchronize(stream))
    captured = info()
    cache = requested - (first["total"] - captured["free"]) - 200 * MIB
    result, blocks = alloc(cache)
    seen |= {
        "snapshots": [first, loaded, profiled, after, captured, info()],
        "cache": [result, cache],
        "requested": requested,
    }
    release(blocks)
    release(weights)
    return seen


def jax() -> dict:
    """Three quarters of what is free, at once; then from the device's own pool."""
    seen = {"nvml": nvml_devices(), **begun()}
    context()
    first = info()
    wanted = int(first["free"] * 0.75)
    result, block = alloc(wanted)
    seen |= {"before": first, "preallocated": [result, wanted], "after": info()}
    release(block)
    pool, threshold, pointer = c_void_p(), c_uint64((1 << 64) - 1), c_uint64()
    check(cuda.cuDeviceGetDefaultMemPool(byref(pool), 0))
    check(cuda.cuMemPoolSetAttribute(pool, 4, byref(threshold)))
    check(cuda.cuMemAllocFromPoolAsync(byref(pointer), c_size_t(wanted), pool, None))
    check(cuda.cuMemFreeAsync(pointer, None))
    check(cuda.cuStreamSynchronize(None))
    seen["pooled"] = info()
    check(cuda.cuMemPoolTrimTo(pool, c_size_t(0)))
    seen["trimmed"] = info()
    return seen


if __name__ == "__main__":
    print(json.dumps({"torch": torch, "vllm": vllm, "jax": jax}[sys.argv[1]]()))
