"""On a device whose disk is smaller than its memory: writing fails as out of memory, reading does not."""

from calls import MIB, allocate, answer, context, fill, read

context()
address = allocate(100 * MIB)
assert address is not None
answer(
    allocated=True,
    write=fill(address, 1, 100 * MIB),
    small_write=fill(address, 2, 1000),
    read_of_the_rest=read(address + 90 * MIB, 5 * MIB) == bytes(5 * MIB),
)
