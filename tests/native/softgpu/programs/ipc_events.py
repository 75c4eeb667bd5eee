"""One of several processes with an event in common: a command a line of input, an answer each.

In model time it steps aside before it waits for a command: that wait is none of the device's."""

import ctypes
import sys
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

from calls import MIB, answer, check, context, cuda, fill
from model_clock import Kernels, now, stream
from share_memory import Handle, bytes_of

SIZE = MIB
owner = context()
streams = {"a": stream(), "b": stream()}
event, memory, held = c_void_p(), c_uint64(), ctypes.c_uint32(0)
gate, seen = c_uint64(), ctypes.create_string_buffer(SIZE)
kernels = Kernels()
check(cuda.cuMemHostRegister_v2(byref(held), c_size_t(4), c_uint(2)))
check(cuda.cuMemHostGetDevicePointer_v2(byref(gate), byref(held), 0))


def make(flags: str = "6") -> object:
    return cuda.cuEventCreate(byref(event), c_uint(int(flags)))


def handle() -> object:
    """Of the event, or why there is none."""
    got = Handle()
    return cuda.cuIpcGetEventHandle(byref(got), event) or bytes_of(got).hex()


def opened(text: str) -> object:
    return cuda.cuIpcOpenEventHandle(byref(event), Handle.from_buffer_copy(bytes.fromhex(text)))


def memory_handle() -> str:
    got = Handle()
    check(cuda.cuMemAlloc_v2(byref(memory), c_size_t(SIZE)) or fill(memory.value, 0, SIZE))
    check(cuda.cuIpcGetMemHandle(byref(got), memory))
    return bytes_of(got).hex()


def memory_opened(text: str) -> object:
    return cuda.cuIpcOpenMemHandle_v2(byref(memory), Handle.from_buffer_copy(bytes.fromhex(text)), 1)


def hold(on: str) -> object:
    """The stream goes on when it is let go."""
    return cuda.cuStreamWaitValue32_v2(streams[on], gate, c_uint(1), 0)


def let_go() -> object:
    held.value = 1
    return 0


def write(on: str, byte: str) -> object:
    return cuda.cuMemsetD8Async(memory, c_uint(int(byte)), c_size_t(SIZE), streams[on])


def read(on: str) -> object:
    """Into the program's memory, when the stream gets there."""
    return cuda.cuMemcpyDtoHAsync_v2(seen, memory, c_size_t(SIZE), streams[on])


def registered() -> object:
    """So that a copy to it does not wait."""
    return cuda.cuMemHostRegister_v2(seen, c_size_t(SIZE), c_uint(0))


def saw() -> object:
    return sorted(set(seen.raw))


def kernel(on: str, ns: str) -> object:
    kernels.sleep(int(ns), stream=streams[on])
    return 0


def record(on: str) -> object:
    return cuda.cuEventRecord(event, streams[on])


def wait(on: str) -> object:
    return cuda.cuStreamWaitEvent(streams[on], event, c_uint(0))


def query() -> object:
    return cuda.cuEventQuery(event)


def synchronize() -> object:
    return [cuda.cuEventSynchronize(event), now()]


def stream_query(on: str) -> object:
    return cuda.cuStreamQuery(streams[on])


def stream_synchronize(on: str) -> object:
    return [cuda.cuStreamSynchronize(streams[on]), now()]


def destroy() -> object:
    return cuda.cuEventDestroy_v2(event)


def elapsed() -> object:
    return cuda.cuEventElapsedTime_v2(byref(ctypes.c_float()), event, event)


def reset() -> object:
    return cuda.cuDevicePrimaryCtxReset_v2(0)


def graph() -> object:
    made, node = c_void_p(), c_void_p()
    check(cuda.cuGraphCreate(byref(made), 0))
    return cuda.cuGraphAddEventRecordNode(byref(node), made, None, c_size_t(0), event)


def make_all() -> object:
    """As many as there can be, and what the next one is told."""
    made = 0
    while (result := cuda.cuEventCreate(byref(c_void_p()), c_uint(6))) == 0:
        made += 1
    return [made, result]


def supported() -> object:
    value = c_int()
    check(cuda.cuDeviceGetAttribute(byref(value), 125, 0))
    return value.value


answer(ready=True)
while True:
    cuda.aliquotSoftgpuStepAside()
    words = sys.stdin.readline().split()
    if not words:
        break
    answer(seen=globals()[words[0]](*words[1:]))
