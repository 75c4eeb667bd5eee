"""A file of a share that one process holds, by a lock that ends with it.

The lock lies on the open file and on its first byte, so that it can be asked for without being taken: who
only looks must not be in the way of who comes to hold it.
"""

import fcntl
import os
import struct

_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, pid."""


def hold(descriptor: int) -> bool:
    """Whether the file, open for writing, is ours from now on, until it is closed."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _first_byte())
    except (BlockingIOError, PermissionError):
        return False
    return True


def is_held(descriptor: int) -> bool:
    """Whether it is somebody's: of an open file, which need not be open for writing."""
    kind, *_ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _first_byte()))
    return bool(kind != fcntl.F_UNLCK)


def _first_byte() -> bytes:
    return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
