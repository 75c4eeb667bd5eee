"""Allocate, write, read, free; what is free before and after; what an allocation too large gives."""

from calls import MIB, allocate, answer, context, fill, free, memory, read

context()
before, total = memory()
large, small = allocate(50 * MIB), allocate(1000)
assert large is not None
assert small is not None
between, _ = memory()
assert fill(large, 0xAB, 50 * MIB) == 0
kept = read(large + 7 * MIB - 3, 8) == b"\xab" * 8
untouched = read(small, 1000) == bytes(1000)
beyond = fill(large, 1, 50 * MIB + 1)
too_large = allocate(between + 1)
everything = allocate(between)
assert everything is not None
none_left, _ = memory()
for address in (everything, large, small):
    free(address)
after, _ = memory()
answer(
    total=total,
    before=before,
    between=between,
    kept=kept,
    untouched=untouched,
    beyond=beyond,
    too_large=too_large,
    none_left=none_left,
    after=after,
)
