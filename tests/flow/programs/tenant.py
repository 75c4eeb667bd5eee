"""A CUDA program on the bare driver API, in plain Python: what a tenant sees, and what it can take.

Reads commands from stdin, one a line, and answers each with one line of JSON:
    see          devices, totals, free, through the driver and through NVML
    take BYTES   cuMemAlloc; the CUresult
    add          c = a + b on the device; whether it is right
    fork         take 1 MiB in a forked child that starts CUDA itself
"""

import ctypes
import json
import os
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_ulonglong, c_void_p

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    mul.wide.u32 %rd4, %r5, 4;
    add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;
    ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd7], %f3;
done:
    ret;
}
"""


class Nvml(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class Tenant:
    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.start = self.cuda.cuInit(0)
        self.devices = self._count()
        if self.devices:
            context = c_void_p()
            self.start = self.cuda.cuDevicePrimaryCtxRetain(byref(context), 0) or self.cuda.cuCtxSetCurrent(
                context
            )

    def _count(self) -> int:
        count = c_int(0)
        return count.value if self.start == 0 and self.cuda.cuDeviceGetCount(byref(count)) == 0 else 0

    def see(self) -> dict:
        if self.start:
            text = c_char_p()
            self.cuda.cuGetErrorString(self.start, byref(text))
            return {"error": self.start, "text": (text.value or b"").decode()}
        free, total, whole = c_size_t(), c_size_t(), c_size_t()
        self.cuda.cuMemGetInfo_v2(byref(free), byref(total))
        self.cuda.cuDeviceTotalMem_v2(byref(whole), 0)
        return {
            "devices": self.devices,
            "free": free.value,
            "total": total.value,
            "device_total": whole.value,
            "totals": [self._total(device) for device in range(self.devices)],
            "nvml": self._nvml(),
        }

    def _total(self, device: int) -> int:
        total = c_size_t()
        self.cuda.cuDeviceTotalMem_v2(byref(total), device)
        return total.value

    def _nvml(self) -> dict:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        handle, memory, count = c_void_p(), Nvml(), c_int()
        failed = (
            nvml.nvmlInit_v2()
            or nvml.nvmlDeviceGetCount_v2(byref(count))
            or nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(handle))
            or nvml.nvmlDeviceGetMemoryInfo(handle, byref(memory))
        )
        if failed:
            return {"error": failed}
        return {"devices": count.value, "total": memory.total, "free": memory.free, "used": memory.used}

    def take(self, size: int) -> dict:
        pointer = c_uint64()
        return {
            "result": self.cuda.cuMemAlloc_v2(byref(pointer), c_size_t(size)),
            "pointer": pointer.value != 0,
        }

    def add(self) -> dict:
        n = 10_000
        kind = ctypes.c_float * n
        a, b, c = kind(*range(n)), kind(*(2 * i for i in range(n))), kind()
        module, function = c_void_p(), c_void_p()
        done = [self.cuda.cuModuleLoadData(byref(module), PTX)]
        done.append(self.cuda.cuModuleGetFunction(byref(function), module, b"add"))
        buffers = [c_uint64() for _ in range(3)]
        for buffer in buffers:
            done.append(self.cuda.cuMemAlloc_v2(byref(buffer), c_size_t(4 * n)))
        for buffer, host in zip(buffers, (a, b), strict=False):
            done.append(self.cuda.cuMemcpyHtoD_v2(buffer, host, c_size_t(4 * n)))
        count = ctypes.c_uint(n)
        arguments = (c_void_p * 4)(*(ctypes.cast(byref(value), c_void_p) for value in (*buffers, count)))
        done.append(
            self.cuda.cuLaunchKernel(function, (n + 255) // 256, 1, 1, 256, 1, 1, 0, None, arguments, None)
        )
        done.append(self.cuda.cuMemcpyDtoH_v2(c, buffers[2], c_size_t(4 * n)))
        for buffer in buffers:
            done.append(self.cuda.cuMemFree_v2(buffer))
        return {"results": done, "right": list(c) == [3.0 * i for i in range(n)]}

    def fork(self) -> dict:
        """A child of its own: a new process of the share, with a context and memory of its own."""
        child = os.fork()
        if child == 0:
            os.execv(sys.executable, [sys.executable, __file__, "once"])
        _, status = os.waitpid(child, 0)
        return {"code": os.waitstatus_to_exitcode(status)}


def main() -> int:
    tenant = Tenant()
    if sys.argv[1:] == ["once"]:
        return tenant.take(1 << 20)["result"]
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        print(json.dumps(getattr(tenant, verb)(*map(int, rest))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
