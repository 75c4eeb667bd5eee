"""Copies and sets of every kind against the same done with bytes in Python."""

import ctypes
from ctypes import Structure, byref, c_int, c_size_t, c_uint64, c_void_p

from calls import INVALID_VALUE, allocate, answer, check, context, cuda, read


class Copy2D(Structure):
    _fields_ = (
        ("src_x", c_size_t), ("src_y", c_size_t), ("src_type", c_int), ("src_host", c_void_p),
        ("src_device", c_uint64), ("src_array", c_void_p), ("src_pitch", c_size_t),
        ("dst_x", c_size_t), ("dst_y", c_size_t), ("dst_type", c_int), ("dst_host", c_void_p),
        ("dst_device", c_uint64), ("dst_array", c_void_p), ("dst_pitch", c_size_t),
        ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


HOST, DEVICE = 1, 2
context()
device, other = allocate(4096), allocate(4096)
assert device is not None
assert other is not None
pattern = bytes(range(256)) * 16
check(cuda.cuMemcpyHtoD_v2(c_uint64(device), pattern, c_size_t(4096)))
straight = read(device, 4096) == pattern
check(cuda.cuMemcpyDtoD_v2(c_uint64(other), c_uint64(device), c_size_t(4096)))
across = read(other, 4096) == pattern
check(cuda.cuMemcpyDtoD_v2(c_uint64(device + 100), c_uint64(device), c_size_t(1000)))
overlap = read(device + 100, 1000) == pattern[:1000]
unified = ctypes.create_string_buffer(64)
check(cuda.cuMemcpy(c_uint64(ctypes.addressof(unified)), c_uint64(other), c_size_t(64)))
# Rows 1..3, columns 5..14 of a host picture of 20 columns to (2, 1) of a device picture of 32.
picture = bytes(range(100))
source = ctypes.create_string_buffer(picture, 100)
check(cuda.cuMemsetD8_v2(c_uint64(device), 0, c_size_t(4096)))
check(
    cuda.cuMemcpy2D_v2(
        byref(
            Copy2D(
                src_x=5, src_y=1, src_type=HOST, src_host=ctypes.addressof(source), src_pitch=20,
                dst_x=2, dst_y=1, dst_type=DEVICE, dst_device=device, dst_pitch=32, width=10, height=3,
            )
        )
    )
)  # fmt: skip
expected = bytearray(4096)
for row in range(3):
    start = (row + 1) * 32 + 2
    expected[start : start + 10] = picture[(row + 1) * 20 + 5 : (row + 1) * 20 + 15]
rectangle = read(device, 4096) == bytes(expected)
check(cuda.cuMemsetD32_v2(c_uint64(device), 0x01020304, c_size_t(5)))
check(cuda.cuMemsetD16_v2(c_uint64(device + 20), 0xBEEF, c_size_t(3)))
sets = read(device, 26) == bytes((4, 3, 2, 1)) * 5 + bytes((0xEF, 0xBE)) * 3
check(cuda.cuMemsetD2D8_v2(c_uint64(device), c_size_t(16), 0x77, c_size_t(3), c_size_t(4)))
rows = read(device, 64)
set_2d = all(rows[row * 16 : row * 16 + 3] == b"\x77" * 3 for row in range(4)) and rows[3] != 0x77
pitch, pitched = c_size_t(), c_uint64()
check(cuda.cuMemAllocPitch_v2(byref(pitched), byref(pitch), c_size_t(1000), c_size_t(10), 4))
host = c_void_p()
check(cuda.cuMemHostAlloc(byref(host), c_size_t(4096), 0))
seen = c_uint64()
check(cuda.cuMemHostGetDevicePointer_v2(byref(seen), host, 0))
ctypes.memset(host, 0x31, 4096)
check(cuda.cuMemcpyDtoD_v2(c_uint64(other), seen, c_size_t(4096)))
managed = c_uint64()
check(cuda.cuMemAllocManaged(byref(managed), c_size_t(8192), 1))
ctypes.memset(c_void_p(managed.value), 0x42, 8192)
kind = c_int()
check(cuda.cuPointerGetAttribute(byref(kind), 2, c_uint64(device)))
answer(
    straight=straight,
    across=across,
    overlap=overlap,
    unified=unified.raw == pattern[:64],
    rectangle=rectangle,
    sets=sets,
    set_2d=set_2d,
    pitch=pitch.value,
    host_memory=read(other, 4096) == b"\x31" * 4096,
    managed=read(managed.value, 8192) == b"\x42" * 8192,
    device_pointer=kind.value == DEVICE,
    out_of_range=cuda.cuMemcpyHtoD_v2(c_uint64(device + 4000), pattern, c_size_t(97)) == INVALID_VALUE,
    unaligned=cuda.cuMemsetD32_v2(c_uint64(device + 2), 1, c_size_t(1)) == INVALID_VALUE,
    host_pointer_unknown=cuda.cuPointerGetAttribute(byref(kind), 2, c_uint64(ctypes.addressof(kind))),
)
