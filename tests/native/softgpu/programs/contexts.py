"""Contexts: each costs memory, destroyed ones say so, handles are checked."""

from ctypes import byref, c_int, c_uint, c_void_p

from calls import answer, check, context, cuda, memory

primary = context()
one, _ = memory()
made = c_void_p()
check(cuda.cuCtxCreate_v2(byref(made), 0, 0))
two, _ = memory()
current = c_void_p()
check(cuda.cuCtxGetCurrent(byref(current)))
is_current = current.value == made.value
check(cuda.cuCtxDestroy_v2(made))
check(cuda.cuCtxGetCurrent(byref(current)))
back, _ = memory()
flags, active = c_uint(), c_int()
check(cuda.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active)))
was_active = active.value
check(cuda.cuDevicePrimaryCtxRelease_v2(0))
check(cuda.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active)))
answer(
    one=one,
    two=two,
    back=back,
    is_current=is_current,
    popped_to_primary=current.value == primary.value,
    destroyed_again=cuda.cuCtxDestroy_v2(made),
    invented=cuda.cuCtxSetCurrent(c_void_p(0x1234)),
    was_active=was_active,
    active_after_release=active.value,
    after_release=cuda.cuMemGetInfo_v2(None, None),
)
