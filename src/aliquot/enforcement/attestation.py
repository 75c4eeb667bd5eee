"""Which library a governor is: the build id of its file, as a process writes it into the ledger."""

import struct
from pathlib import Path

_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
"""Elf64_Phdr: type, flags, offset, virtual address, physical address, bytes in the file, in memory, align."""
_NOTE = struct.Struct("<III")
_PT_NOTE, _NT_GNU_BUILD_ID = 4, 3


def build_of(library: Path) -> str | None:
    """The first 8 bytes of its GNU build id, in hex; None where it has none or cannot be read."""
    try:
        file = library.read_bytes()
        if file[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
            return None
        (table,) = struct.unpack_from("<Q", file, 32)
        size, count = struct.unpack_from("<HH", file, 54)
        for index in range(count):
            kind, _, offset, _, _, length, *_ = _PROGRAM_HEADER.unpack_from(file, table + index * size)
            build = _build_id(file[offset : offset + length]) if kind == _PT_NOTE else None
            if build is not None:
                return build[:8].ljust(8, b"\0").hex()
    except (OSError, OverflowError, struct.error):
        pass
    return None


def _build_id(notes: bytes) -> bytes | None:
    at = 0
    while at + _NOTE.size <= len(notes):
        name, content, kind = _NOTE.unpack_from(notes, at)
        text = at + _NOTE.size
        body = text + (name + 3 & ~3)
        if kind == _NT_GNU_BUILD_ID and notes[text : text + name] == b"GNU\0":
            return notes[body : body + content]
        at = body + (content + 3 & ~3)
    return None
