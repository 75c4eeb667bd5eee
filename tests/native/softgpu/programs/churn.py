"""Allocate and free at random until killed; checks that no other process writes into its memory."""

import random
import sys

from calls import allocate, answer, context, fill, free, read

seed = int(sys.argv[1])
rng = random.Random(seed)
byte = 1 + seed % 255
held: list[tuple[int, int]] = []
context()
answer(ready=True)
while True:
    if held and (len(held) > 12 or rng.random() < 0.45):
        address, size = held.pop(rng.randrange(len(held)))
        assert read(address, size) == bytes([byte]) * size, "another process wrote here"
        free(address)
    else:
        size = rng.choice((1, 700, 70_000, 1 << 20, 3 << 20, 9 << 20))
        taken = allocate(size)
        if taken is not None:
            # Its own old bytes may lie there: small allocations share a chunk, which is not emptied.
            assert set(read(taken, size)) <= {0, byte}, "memory of another process was visible"
            assert fill(taken, byte, size) == 0
            held.append((taken, size))
