"""What goes wrong with code and with launches, and what each gives."""

import ctypes
from ctypes import byref, c_int, c_uint, c_uint64, c_void_p

from calls import allocate, answer, check, context, cuda, function, launch, load, read

HEADER = ".version 7.0\n.target sm_70\n.address_size 64\n"
STORE = (
    HEADER
    + """.visible .entry store(.param .u64 where, .param .u32 value) {
    .reg .u64 %rd1;
    .reg .u32 %r1;
    ld.param.u64 %rd1, [where];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry limited() .maxntid 64 { ret; }
"""
)
STORE = STORE.replace(
    ".visible .entry limited() .maxntid 64 {", ".visible .entry limited() .maxntid 64, 1, 1\n{"
)
primary = context()
module = load(STORE)
store, limited = function(module, "store"), function(module, "limited")
address = allocate(4096)
assert address is not None
check(launch(store, c_uint64(address + 8), c_uint(0xCAFE)))
stored = read(address + 8, 4) == bytes((0xFE, 0xCA, 0, 0))


def fault(where: int) -> list[int]:
    """The results of launch, synchronise, an allocation and a mere question in a context of its own."""
    own, address = c_void_p(), c_uint64()
    check(cuda.cuCtxCreate_v2(byref(own), 0, 0))
    kernel = function(load(STORE), "store")
    results = [
        launch(kernel, c_uint64(where), c_uint(1)),
        cuda.cuCtxSynchronize(),
        cuda.cuMemAlloc_v2(byref(address), ctypes.c_size_t(4)),
        cuda.cuCtxGetDevice(byref(c_int())),
    ]
    check(cuda.cuCtxDestroy_v2(own))
    check(cuda.cuCtxSetCurrent(primary))
    return results


def refused(image: str, count: int = 0, options: object = None, values: object = None) -> int:
    return int(cuda.cuModuleLoadDataEx(byref(c_void_p()), image.encode(), count, options, values))


log = ctypes.create_string_buffer(300)
options = (c_int * 2)(5, 6)
values = (c_void_p * 2)(ctypes.addressof(log), 300)
bad_ptx = refused(HEADER + ".visible .entry broken() { nonsense.u32 %r1; }", 2, options, values)
message = log.value.decode()
newer = refused(STORE.replace("sm_70", "sm_90"), 2, options, (c_void_p * 2)(ctypes.addressof(log), 300))
newer_message = log.value.decode()
answer(
    stored=stored,
    unmapped=fault(0x1000),
    other_context=fault(address),
    misaligned_or_outside=fault(address + 2)[1] in (700, 716),
    healthy_after=cuda.cuCtxSynchronize(),
    bad_ptx=bad_ptx,
    message=bool(message),
    newer=newer,
    newer_message=newer_message,
    not_ptx=refused("hello"),
    empty=refused(""),
    elf=refused("\x7fELF"),
    no_such_function=cuda.cuModuleGetFunction(byref(c_void_p()), module, b"nothing"),
    too_many_threads=launch(limited, block=65),
    enough_threads=launch(limited, block=64),
    block_too_large=launch(limited, block=1025),
    empty_grid=launch(limited, grid=0),
    no_parameters=cuda.cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, None, None, None),
    too_much_shared=cuda.cuLaunchKernel(limited, 1, 1, 1, 1, 1, 1, 50_000, None, None, None),
)
