"""Close every descriptor as a daemon does, open files of our own at the same numbers, and go on using
the device. Says whether our files are still as we wrote them: `closed_files.py FOLDER`."""

import os
import sys
from ctypes import byref, c_void_p
from pathlib import Path

from calls import MIB, Nvml, allocate, answer, check, context, cuda, fill, free, function, launch, load, read

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""
CONTENT = bytes(range(256)) * 64 * 1024  # 16 MiB: a hole punched at a chunk's place would show
ours: dict[int, Path] = {}


def untouched() -> bool:
    """Each number still names the file that we opened there, and nothing in it has changed."""
    return all(
        os.path.samestat(os.fstat(number), path.stat()) and os.pread(number, len(CONTENT), 0) == CONTENT
        for number, path in ours.items()
    )


context()
kept = allocate(8 * MIB)
assert kept is not None
assert fill(kept, 0x5A, 8 * MIB) == 0
kernel = function(load(PTX), "nothing")
nvml = Nvml()
held = nvml.used()
os.closerange(3, 256)
for index in range(6):
    path = Path(sys.argv[1]) / f"file{index}"
    path.write_bytes(CONTENT)
    ours[os.open(path, os.O_RDWR)] = path

other = allocate(8 * MIB)
assert other is not None
assert fill(other, 0xA5, 8 * MIB) == 0
check(launch(kernel))
both = read(kept, 8 * MIB) == b"\x5a" * (8 * MIB) and read(other, 8 * MIB) == b"\xa5" * (8 * MIB)
free(other)
child = os.fork()
if child == 0:
    os._exit(0 if untouched() else 1)
_, child_status = os.waitpid(child, 0)
answer(memory_right=both, child_status=child_status, files_untouched=untouched(), held=held, seen=nvml.used())
sys.stdin.readline()
still = read(kept, 8 * MIB) == b"\x5a" * (8 * MIB)
check(cuda.cuDevicePrimaryCtxRelease_v2(0))
left = nvml.used()
again = c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(byref(again), 0))
check(cuda.cuDevicePrimaryCtxRelease_v2(0))
assert nvml.library.nvmlShutdown() == 0
answer(still_there=still, left=left, files_untouched=untouched())
