"""Hold memory until killed: `hold_memory.py BYTES`. Says when it does."""

import os
import sys

from calls import allocate, answer, context, fill

context()
address = allocate(int(sys.argv[1]))
assert address is not None
assert fill(address, 0xEE, int(sys.argv[1])) == 0
answer(pid=os.getpid(), address=address)
sys.stdin.read()
