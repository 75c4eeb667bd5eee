"""Host functions run in order on another thread, and what is behind them on the stream waits."""

import ctypes
import threading
from ctypes import byref, c_float, c_void_p

from calls import NOT_READY, answer, check, context, cuda

context()
stream, event, later = c_void_p(), c_void_p(), c_void_p()
check(cuda.cuStreamCreate(byref(stream), 1))
check(cuda.cuEventCreate(byref(event), 0))
check(cuda.cuEventCreate(byref(later), 0))
order: list[int] = []
threads: set[int] = set()
inside: list[int] = []
gate = threading.Event()


@ctypes.CFUNCTYPE(None, c_void_p)
def first(_data: int | None) -> None:
    gate.wait(20)
    threads.add(threading.get_ident())
    inside.append(cuda.cuCtxSynchronize())
    order.append(1)


@ctypes.CFUNCTYPE(None, c_void_p)
def second(_data: int | None) -> None:
    order.append(2)


check(cuda.cuEventRecord(event, stream))
check(cuda.cuLaunchHostFunc(stream, first, None))
check(cuda.cuLaunchHostFunc(stream, second, None))
busy = cuda.cuStreamQuery(stream)
gate.set()
check(cuda.cuStreamSynchronize(stream))
finished = list(order)
check(cuda.cuEventRecord(later, stream))
milliseconds = c_float(-1)
check(cuda.cuEventElapsedTime(byref(milliseconds), event, later))
answer(
    busy=busy == NOT_READY,
    order=finished,
    other_thread=threading.get_ident() not in threads,
    inside=inside,
    elapsed=milliseconds.value,
    query=cuda.cuStreamQuery(stream),
)
