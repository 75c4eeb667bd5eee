"""Whether any process is on a device: the locks that the software GPU's driver holds on its ``state``."""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FIRST_SLOT = (1 << 40) + 64
"""The first byte that a process of the device locks: LOCK_BASE + SG_LOCK_SLOTS of
native/softgpu/device/. The bytes before it are mutexes, which readers hold for moments too."""

_ALL_SLOTS = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _FIRST_SLOT, 0, 0)
"""struct flock of 64-bit Linux; a length of 0 is all to the end."""


@contextmanager
def nobody_on(folder: Path) -> Iterator[bool]:
    """Hold every process slot of the device in ``folder``, so that no process can come onto it meanwhile.

    False where some process is on it. A broken device, without the file, has nobody.
    """
    try:
        descriptor = os.open(folder / "state", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield True
        return
    try:
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _ALL_SLOTS)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True
