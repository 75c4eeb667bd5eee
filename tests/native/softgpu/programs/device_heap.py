"""malloc and free in kernels: what they give, what is left, and what a wrong free does."""

import struct
from ctypes import byref, c_size_t, c_uint64

from calls import allocate, answer, check, context, cuda, function, launch, load, read

HEAP_SIZE = 2
THREADS = 64
PTX = """.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 given) malloc(.param .b64 bytes);
.extern .func free(.param .b64 place);

// where[thread] = malloc(bytes), with the thread's number written at both of its ends
.visible .entry take(.param .u64 where, .param .u64 bytes) {
    .reg .b32 %r<3>;
    .reg .b64 %rd<8>;
    .reg .pred %p1;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [where];
    ld.param.u64 %rd2, [bytes];
    {
        .param .b64 size;
        .param .b64 place;
        st.param.b64 [size], %rd2;
        call.uni (place), malloc, (size);
        ld.param.b64 %rd3, [place];
    }
    mad.wide.u32 %rd4, %r1, 8, %rd1;
    st.global.u64 [%rd4], %rd3;
    setp.eq.u64 %p1, %rd3, 0;
    @%p1 ret;
    st.u32 [%rd3], %r1;
    add.u64 %rd5, %rd3, %rd2;
    st.u32 [%rd5+-4], %r1;
    ret;
}
// where[thread] = what stands at both ends of the block at where[thread], which is given back
.visible .entry give(.param .u64 where) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [where];
    mad.wide.u32 %rd2, %r1, 8, %rd1;
    ld.global.u64 %rd3, [%rd2];
    ld.u32 %r2, [%rd3];
    cvt.u64.u32 %rd4, %r2;
    {
        .param .b64 place;
        st.param.b64 [place], %rd3;
        call.uni free, (place);
    }
    st.global.u64 [%rd2], %rd4;
    ret;
}
"""
context()
module = load(PTX)
take, give = function(module, "take"), function(module, "give")
where = c_uint64(allocate(8 * THREADS) or 0)


def places() -> tuple[int, ...]:
    return struct.unpack(f"{THREADS}Q", read(where.value, 8 * THREADS))


limit = c_size_t()
check(cuda.cuCtxGetLimit(byref(limit), HEAP_SIZE))
small = cuda.cuCtxSetLimit(HEAP_SIZE, c_size_t(1 << 20))
check(launch(take, where, c_uint64(24), block=THREADS))
first = places()
too_late = cuda.cuCtxSetLimit(HEAP_SIZE, c_size_t(1 << 22))
freed_by_the_host = cuda.cuMemFree_v2(c_uint64(min(first)))
check(launch(give, where, block=THREADS))
values = places()

check(launch(take, where, c_uint64(1 << 16), block=THREADS))  # 64 of them are four times the heap
filled = places()
check(launch(take, where, c_uint64(1 << 20)))
full = places()[0]
cuda.cuMemcpyHtoD_v2(where, struct.pack("16Q", *[place for place in filled if place]), c_size_t(8 * 16))
check(launch(give, where, block=16))
check(launch(take, where, c_uint64(1 << 20)))
whole = places()[0]
check(launch(give, where))
check(launch(take, where, c_uint64(0)))
nothing = places()[0]

cuda.cuMemcpyHtoD_v2(where, struct.pack("Q", whole), c_size_t(8))
check(launch(give, where))  # given back twice
answer(
    default_limit=limit.value,
    small=small,
    distinct=len({place for place in first if place}),
    aligned=all(place % 16 == 0 for place in first),
    apart=min(later - earlier for earlier, later in zip(sorted(first), sorted(first)[1:], strict=False)),
    too_late=too_late,
    freed_by_the_host=freed_by_the_host,
    values=list(values) == list(range(THREADS)),
    fitting=sum(place != 0 for place in filled),
    full=full,
    whole=whole != 0,
    nothing=nothing,
    twice=cuda.cuCtxSynchronize(),
)
