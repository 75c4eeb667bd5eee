"""Memory of two processes. `export` writes a pattern and says what another process needs; `import` opens it,
says what it sees, adds to it. Both hold it until told to go on.

usage: share_memory.py export descriptor|ipc|pool SOCKET
       share_memory.py import descriptor|ipc|pool SOCKET"""

import ctypes
import os
import socket
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from calls import MIB, answer, check, context, cuda, fill, read
from virtual_memory import Access, allow, create, map_at, reserve

SIZE, SMALL = 6 * MIB, 4096


class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 64),)


class PoolProperties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location_type", c_int),
        ("location", c_int),
        ("win32", c_void_p),
        ("maximum", c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    )


def bytes_of(structure: ctypes.Structure) -> bytes:
    return ctypes.string_at(byref(structure), ctypes.sizeof(structure))


def export_descriptor() -> tuple[int, bytes, int]:
    handle, descriptor = create(SIZE, 1), c_int()
    address = reserve(SIZE)
    check(map_at(address, SIZE, handle) or allow(address, SIZE, 3))
    check(cuda.cuMemExportToShareableHandle(byref(descriptor), c_uint64(handle), 1, c_uint64(0)))
    return address, b"-", descriptor.value


def import_descriptor(_: bytes, descriptor: int) -> tuple[int, int]:
    handle, address = c_uint64(), reserve(SIZE)
    result = cuda.cuMemImportFromShareableHandle(byref(handle), c_void_p(descriptor), 1)
    if result == 0:
        os.close(descriptor)
        check(map_at(address, SIZE, handle.value) or allow(address, SIZE, 3))
    return result, address


def export_ipc() -> tuple[int, bytes, int]:
    before, address, handle = c_uint64(), c_uint64(), Handle()
    check(cuda.cuMemAlloc_v2(byref(before), c_size_t(SMALL)))
    check(cuda.cuMemAlloc_v2(byref(address), c_size_t(SMALL)))
    check(cuda.cuIpcGetMemHandle(byref(handle), address))
    return address.value, bytes_of(handle), -1


def import_ipc(message: bytes, _: int) -> tuple[int, int]:
    address, again = c_uint64(), c_uint64()
    handle = Handle.from_buffer_copy(message)
    result = cuda.cuIpcOpenMemHandle_v2(byref(address), handle, 1)
    if result == 0:  # opened twice is one address, and closed once still there
        check(cuda.cuIpcOpenMemHandle_v2(byref(again), handle, 1))
        assert again.value == address.value
        check(cuda.cuIpcCloseMemHandle(again))
    return result, address.value


def export_pool() -> tuple[int, bytes, int]:
    pool, address, data, descriptor = c_void_p(), c_uint64(), Handle(), c_int()
    wanted = PoolProperties(1, 1, 1, 0)
    check(cuda.cuMemPoolCreate(byref(pool), byref(wanted)))
    check(cuda.cuMemAllocFromPoolAsync(byref(address), c_size_t(SMALL), pool, None))
    check(cuda.cuMemPoolExportToShareableHandle(byref(descriptor), pool, 1, c_uint64(0)))
    check(cuda.cuMemPoolExportPointer(byref(data), address))
    return address.value, bytes_of(data), descriptor.value


def import_pool(message: bytes, descriptor: int) -> tuple[int, int]:
    pool, address, data = c_void_p(), c_uint64(), Handle.from_buffer_copy(message)
    result = cuda.cuMemPoolImportFromShareableHandle(byref(pool), c_void_p(descriptor), 1, c_uint64(0))
    if result == 0:
        os.close(descriptor)
        access = Access(1, 0, 3)
        check(cuda.cuMemPoolSetAccess(pool, byref(access), c_size_t(1)))
        result = cuda.cuMemPoolImportPointer(byref(address), pool, byref(data))
    return result, address.value


EXPORTS = {"descriptor": export_descriptor, "ipc": export_ipc, "pool": export_pool}
IMPORTS = {"descriptor": import_descriptor, "ipc": import_ipc, "pool": import_pool}


def main(role: str, kind: str, path: str) -> None:
    context()
    if role == "export":
        address, message, descriptor = EXPORTS[kind]()
        check(fill(address, 0x5A, SMALL))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            answer(pid=os.getpid(), address=address)
            peer, _ = listener.accept()
            socket.send_fds(peer, [message], [descriptor] if descriptor >= 0 else [])
        if descriptor >= 0:
            os.close(descriptor)
        for _ in sys.stdin:
            answer(head=read(address, 8).hex())
        return
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        answer(connected=True)
        sys.stdin.readline()
        message, descriptors, _, _ = socket.recv_fds(connection, 256, 1)
    result, address = IMPORTS[kind](message, descriptors[0] if descriptors else -1)
    if result != 0:
        answer(pid=os.getpid(), result=result)
        return
    seen = read(address, SMALL) == b"\x5a" * SMALL
    check(fill(address + 4, 0xA5, 4))
    answer(pid=os.getpid(), result=result, seen=seen, beyond=fill(address, 1, SIZE + 1))
    for _ in sys.stdin:
        answer(head=read(address, 8).hex())


if __name__ == "__main__":
    main(*sys.argv[1:])
