"""The share's files: written whole, there complete or not there; and their numbers."""

import contextlib
import os
import struct
from pathlib import Path

from aliquot.enforcement.abi import Field
from aliquot.model import AliquotError, Reason


def put(file: bytearray, base: int, field: Field, value: int | float | bytes) -> None:
    """Write ``value`` into ``field`` of the record at ``base``; bytes are padded with zeros."""
    code = f"<{field.count}s" if isinstance(value, bytes) else field.code
    if isinstance(value, bytes) and len(value) > field.count:
        raise ValueError(f"{len(value)} bytes do not fit a field of {field.count}")
    struct.pack_into(code, file, base + field.offset, value)


def number(file: bytes, base: int, field: Field, index: int = 0) -> int:
    """The integer in ``field`` of the record at ``base``."""
    (value,) = struct.unpack_from(field.code, file, base + field.offset + index * field.size)
    return int(value)


def word(value: int) -> bytes:
    """One u64 of a file."""
    return value.to_bytes(8, "little")


def write_whole(path: Path, content: bytes, *, mode: int) -> None:
    """Make ``path`` with exactly ``mode``, whatever the umask; OSError where that fails.

    Its blocks are reserved first: on a full tmpfs this fails here, with an error, and not later
    with SIGBUS in a tenant that touches its mapping.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, len(content))
        os.pwrite(descriptor, content, 0)
        os.fchmod(descriptor, mode)
        temporary.rename(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> AliquotError:
    return AliquotError(
        Reason.FILES_UNWRITABLE,
        f"{path} cannot be written: {error.strerror}",
        next=[("aliquot doctor", "checks the folder of shares")],
    )
