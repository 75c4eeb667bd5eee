"""What the driver takes of a device by itself, step by step, as NVML tells it of this process."""

import os

from calls import Nvml, answer, byref, c_int, c_size_t, c_uint64, check, context, cuda, function, launch, load

STACK_SIZE, PRINTF_FIFO_SIZE = 0, 1
MIB = 1 << 20
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry local(.param .u64 where) {
    .local .align 4 .b8 area[%d];
    .reg .u64 %%rd<3>;
    .reg .u32 %%r<2>;
    ld.param.u64 %%rd1, [where];
    mov.u64 %%rd2, area;
    add.u64 %%rd2, %%rd2, %%rd1;
    st.local.u32 [%%rd2], 1;
    ld.local.u32 %%r1, [%%rd2];
    ret;
}
"""

nvml = Nvml()
seen = {}


def note(step: str) -> None:
    mine = nvml.processes()[os.getpid()]
    assert mine == nvml.used(), "this process is the only one"
    seen[step] = mine // MIB


def limit(which: int, value: int) -> int:
    return int(cuda.cuCtxSetLimit(c_int(which), c_size_t(value)))


context()
note("context")
first = load(PTX % 64)
note("a module")
second = load(PTX % 4096)
note("another")
check(launch(function(first, "local"), c_uint64(0)))
note("a kernel with little local memory")
check(launch(function(second, "local"), c_uint64(0)))
check(launch(function(second, "local"), c_uint64(4)))
note("a kernel with much")
for module in (first, second):
    check(cuda.cuModuleUnload(module))
note("no module")
check(limit(STACK_SIZE, 8192))
note("a larger stack")
seen["too large"] = limit(STACK_SIZE, 1 << 30)
seen["far too large"] = limit(STACK_SIZE, (1 << 64) - 1)
stack = c_size_t()
check(cuda.cuCtxGetLimit(byref(stack), STACK_SIZE))
seen["stack"] = stack.value
check(limit(STACK_SIZE, 1024))
check(limit(PRINTF_FIFO_SIZE, 5 * MIB))
note("a larger buffer of printf")
large = load(PTX % (128 * 1024))
seen["a kernel with more than there is"] = launch(function(large, "local"), c_uint64(0))
check(cuda.cuCtxSynchronize())
check(cuda.cuDevicePrimaryCtxRelease_v2(0))
seen["after"] = nvml.used()
answer(**{key.replace(" ", "_"): value for key, value in seen.items()})
