"""Take nearly all of a device of 80 GiB, and write to a little of it."""

from calls import MIB, allocate, answer, context, fill, read

context()
size = 70 * 1024 * MIB
address = allocate(size)
assert address is not None
assert fill(address, 1, 64) == 0
assert fill(address + size - 64, 2, 64) == 0
assert fill(address + size // 2, 3, 64) == 0
answer(
    allocated=size,
    kept=(read(address, 64), read(address + size - 64, 64), read(address + size // 2, 64))
    == (b"\x01" * 64, b"\x02" * 64, b"\x03" * 64),
)
