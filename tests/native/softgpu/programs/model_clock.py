"""The device's own clock, and kernels of a chosen length on it."""

from __future__ import annotations

from ctypes import byref, c_float, c_int, c_uint, c_uint32, c_uint64, c_void_p, cast, pointer

from calls import check, cuda, function, load

PTX = """.version 7.0
.target sm_70
.address_size 64
// `count` times asleep for `ns` nanoseconds, at most a million
.visible .entry asleep(.param .u32 count, .param .u32 ns) {
    .reg .u32 %r<3>;
    .reg .pred %p1;
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [ns];
again:
    nanosleep.u32 %r2;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
// busy until %globaltimer has moved on by `ns`
.visible .entry spinning(.param .u64 ns) {
    .reg .u64 %rd<4>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [ns];
    mov.u64 %rd2, %globaltimer;
    add.u64 %rd1, %rd1, %rd2;
again:
    mov.u64 %rd3, %globaltimer;
    setp.lt.u64 %p1, %rd3, %rd1;
    @%p1 bra again;
    ret;
}
// the same by %clock64, in cycles
.visible .entry counting(.param .u64 cycles) {
    .reg .u64 %rd<4>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [cycles];
    mov.u64 %rd2, %clock64;
    add.u64 %rd1, %rd1, %rd2;
again:
    mov.u64 %rd3, %clock64;
    setp.lt.u64 %p1, %rd3, %rd1;
    @%p1 bra again;
    ret;
}
// c[i] = a[i] + b[i]
.visible .entry added(.param .u64 a, .param .u64 b, .param .u64 c) {
    .reg .u32 %r<5>;
    .reg .u64 %rd<8>;
    .reg .f32 %f<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd1, %r4, 4;
    ld.param.u64 %rd2, [a];
    ld.param.u64 %rd3, [b];
    ld.param.u64 %rd4, [c];
    add.u64 %rd5, %rd2, %rd1;
    add.u64 %rd6, %rd3, %rd1;
    add.u64 %rd7, %rd4, %rd1;
    ld.global.f32 %f1, [%rd5];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd7], %f3;
    ret;
}
"""
MICROSECOND, MILLISECOND = 1_000, 1_000_000

cuda.aliquotSoftgpuNow.restype = c_uint64


def now() -> int:
    return int(cuda.aliquotSoftgpuNow())


def wait_until(ns: int) -> None:
    check(cuda.aliquotSoftgpuWaitUntil(c_uint64(ns)))


class Kernels:
    def __init__(self) -> None:
        module = load(PTX)
        names = ("asleep", "spinning", "counting", "added")
        self.functions = {name: function(module, name) for name in names}

    def launch(
        self, name: str, *arguments: object, grid: int = 1, block: int = 32, stream: object = None
    ) -> None:
        pointers = (c_void_p * len(arguments))()
        for index, argument in enumerate(arguments):
            pointers[index] = cast(pointer(argument), c_void_p)  # type: ignore[arg-type]
        shape = (grid, 1, 1, block, 1, 1, 0, stream)
        check(cuda.cuLaunchKernel(self.functions[name], *shape, pointers, None))

    def sleep(self, ns: int, *, grid: int = 1, stream: object = None) -> None:
        """A kernel that takes `ns` and a little for its launch and its few instructions."""
        pieces = max(1, -(-ns // MILLISECOND))
        self.launch("asleep", c_uint32(pieces), c_uint32(ns // pieces), grid=grid, stream=stream)


def stream(*, apart: bool = True) -> c_void_p:
    made = c_void_p()
    check(cuda.cuStreamCreate(byref(made), c_uint(int(apart))))
    return made


def event() -> c_void_p:
    made = c_void_p()
    check(cuda.cuEventCreate(byref(made), c_uint(0)))
    return made


def record(recorded: c_void_p, on: object = None) -> None:
    check(cuda.cuEventRecord(recorded, on))


def elapsed(begin: c_void_p, end: c_void_p) -> float:
    """Milliseconds."""
    found = c_float()
    check(cuda.cuEventElapsedTime_v2(byref(found), begin, end))
    return found.value


def synchronize() -> None:
    check(cuda.cuCtxSynchronize())


def ready(asked: object) -> int:
    return int(c_int(cuda.cuStreamQuery(asked)).value)
