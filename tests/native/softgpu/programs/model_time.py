"""One process on a device with a clock of its own: `model_time.py SCENARIO`. What it saw, in nanoseconds."""

import sys
from ctypes import CFUNCTYPE, byref, c_uint32, c_uint64, c_void_p

from calls import NOT_READY, allocate, answer, check, context, cuda, read
from model_clock import (
    MICROSECOND,
    MILLISECOND,
    Kernels,
    elapsed,
    event,
    now,
    ready,
    record,
    stream,
    synchronize,
    wait_until,
)

MIB = 1 << 20


def took(begin: int) -> int:
    return now() - begin


def lengths(kernels: Kernels) -> dict[str, object]:
    seen: dict[str, object] = {}
    for name, argument in (
        ("spinning", 80 * MILLISECOND),
        ("spinning", MILLISECOND // 2),
        ("counting", 1_410_000),
    ):
        begin = now()
        kernels.launch(name, c_uint64(argument))
        synchronize()
        seen[f"{name} {argument}"] = took(begin)
    for ns in (MILLISECOND // 2, 80 * MILLISECOND):
        begin = now()
        kernels.sleep(ns)
        synchronize()
        seen[f"asleep {ns}"] = took(begin)
    begin = now()
    kernels.launch("asleep", c_uint32(1), c_uint32(MILLISECOND), grid=16 * 32 * 3)
    synchronize()
    seen["three waves"] = took(begin)
    return seen


def costs(kernels: Kernels) -> dict[str, object]:
    count = 4 * MIB
    vectors = [allocate(4 * count) for _ in range(3)]
    for vector in vectors:
        check(cuda.cuMemsetD8_v2(c_uint64(vector or 0), 0, count * 4))
    synchronize()
    begin = now()
    kernels.launch("added", *(c_uint64(vector or 0) for vector in vectors), grid=count // 256, block=256)
    synchronize()
    added = took(begin)
    begin = now()
    read(vectors[0] or 0, 4 * count)
    return {"added": added, "moved": 12 * count, "read": took(begin), "copied": 4 * count}


def order(kernels: Kernels) -> dict[str, object]:
    begin, first, second = now(), stream(), stream()
    marks = [event() for _ in range(3)]
    record(marks[0], first)
    kernels.sleep(MILLISECOND, stream=first)
    record(marks[1], first)
    before = [ready(first), ready(second)]
    check(cuda.cuStreamWaitEvent(second, marks[1], 0))
    kernels.sleep(2 * MILLISECOND, stream=second)
    record(marks[2], second)
    check(cuda.cuEventSynchronize(marks[2]))
    return {
        "before": before,
        "after": [ready(first), ready(second)],
        "elapsed": [elapsed(marks[0], marks[1]), elapsed(marks[1], marks[2])],
        "took": took(begin),
    }


def overlap(kernels: Kernels) -> dict[str, object]:
    """A kernel and a copy of another stream at once; two kernels never."""
    size, host = 64 * MIB, c_void_p()
    device = allocate(size)
    check(cuda.cuMemAllocHost_v2(byref(host), c_uint64(size)))
    first, second = stream(), stream()
    begin = now()
    check(cuda.cuMemcpyHtoDAsync_v2(c_uint64(device or 0), host, c_uint64(size), first))
    synchronize()
    copy = took(begin)
    begin = now()
    check(cuda.cuMemcpyHtoDAsync_v2(c_uint64(device or 0), host, c_uint64(size), first))
    kernels.sleep(4 * MILLISECOND, stream=second)
    synchronize()
    both = took(begin)
    begin = now()
    kernels.sleep(MILLISECOND, stream=first)
    kernels.sleep(MILLISECOND, stream=second)
    synchronize()
    return {"copy": copy, "both": both, "two kernels": took(begin)}


def asking(kernels: Kernels) -> dict[str, object]:
    """A loop that only asks comes to its end."""
    kernels.sleep(MILLISECOND)
    questions, begin = 0, now()
    while ready(None) == NOT_READY:
        questions += 1
    return {"questions": questions, "took": took(begin)}


def waiting(kernels: Kernels) -> dict[str, object]:
    begin = now()
    wait_until(begin + 5_000 * MILLISECOND)
    slept = took(begin)
    kernels.sleep(MILLISECOND)
    wait_until(now() + 250 * MICROSECOND)
    return {"slept": slept, "then": took(begin), "kernel": ready(None)}


def host_functions(kernels: Kernels) -> dict[str, object]:
    """A host function runs when the kernel before it has ended, and what is behind it waits for it."""
    begin = now()
    marks = [event(), event()]
    called = CFUNCTYPE(None, c_void_p)(lambda _: None)
    kernels.sleep(3 * MILLISECOND)
    record(marks[0])
    check(cuda.cuLaunchHostFunc(None, called, None))
    kernels.sleep(MILLISECOND)
    record(marks[1])
    synchronize()
    return {"between": elapsed(*marks), "took": took(begin)}


def deep(kernels: Kernels) -> dict[str, object]:
    """More launches in a row than the model holds at once."""
    begin = now()
    for _ in range(1000):
        kernels.sleep(10 * MICROSECOND)
    synchronize()
    return {"took": took(begin)}


context()
answer(**globals()[sys.argv[1]](Kernels()))
