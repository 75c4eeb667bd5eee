"""Finding a shared library as the system's loader would, without loading it.

The loader's own cache is read, not ``ldconfig -p``: that costs a process a look, and another
root (a test, a mounted image) would need the right to chroot. LD_LIBRARY_PATH is left out
on purpose: inside a share it leads to the governor, and what is wanted is the driver.
"""

import os
import struct
from pathlib import Path

from aliquot.inventory.reading import is_present, real

_CACHE = "etc/ld.so.cache"
_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("20sII20x")  # magic, number of entries, length of the strings
_ENTRY = struct.Struct("iIIIQ")  # flags, offset of the soname, offset of the path, OS version, hwcap

USUAL_FOLDERS = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/lib/x86_64-linux-gnu/nvidia/current",  # Debian's alternatives
    "usr/lib64/nvidia",
    "usr/lib/wsl/lib",  # Windows Subsystem for Linux 2
    "usr/local/nvidia/lib64",  # Google Kubernetes Engine, and images of CUDA
    "run/opengl-driver/lib",  # NixOS
    "run/nvidia/driver/usr/lib/x86_64-linux-gnu",  # NVIDIA's GPU operator
)

_OTHER_FOLDERS = ("usr/lib/i386-linux-gnu", "usr/lib32")

_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21}  # e_machine of <elf.h>


def find_library(soname: str, root: Path = Path("/")) -> Path | None:
    """Absolute path of ``soname``: the loader's choice, else from the usual folders.

    Only libraries that this machine's 64-bit programs can load; ``/usr/lib`` holds 32-bit
    ones on some distributions.
    """
    candidates = [root / path.lstrip("/") for path in _cached(root, soname)]
    candidates += [root / folder / soname for folder in USUAL_FOLDERS]
    return next((path for path in candidates if _loadable(path)), None)


def every_library(soname: str, root: Path = Path("/")) -> tuple[Path, ...]:
    """Every file that a program here may get for ``soname``, with links followed, each once.

    Also those of other machine types, such as 32-bit ones.
    """
    candidates = [root / path.lstrip("/") for path in _cached(root, soname)]
    candidates += [root / folder / soname for folder in (*USUAL_FOLDERS, *_OTHER_FOLDERS)]
    return tuple(dict.fromkeys(real(path) for path in candidates if is_present(path)))


def cut_short(path: Path) -> bool:
    """Whether the file ends before what its program headers say is in it.

    A driver's installation that ran out of disk leaves such files, and the loader dies of
    SIGBUS in one. Raises OSError.
    """
    with path.open("rb") as file:
        header = file.read(64)
        if len(header) < 64:
            return True
        table, size, count = (*struct.unpack_from("<Q", header, 32), *struct.unpack_from("<HH", header, 54))
        file.seek(table)
        programs = file.read(size * count)
        end = file.seek(0, os.SEEK_END)
    if size < 40 or len(programs) < size * count:
        return True
    reaches = (struct.unpack_from("<Q16xQ", programs, at * size + 8) for at in range(count))
    return any(offset + length > end for offset, length in reaches)


def _cached(root: Path, soname: str) -> list[str]:
    """Paths that the loader's cache has for ``soname``, in its order. A cache that is not as
    glibc writes it since 2.2 gives none."""
    try:
        data = (root / _CACHE).read_bytes()
        start = data.index(_MAGIC)
        _, count, _ = _HEADER.unpack_from(data, start)
        wanted = soname.encode() + b"\0"
        if wanted not in data:
            return []
        table = memoryview(data)[start + _HEADER.size : start + _HEADER.size + count * _ENTRY.size]
        return [
            _string(data, start + value)
            for _, key, value, _, _ in _ENTRY.iter_unpack(table)
            if data.startswith(wanted, start + key)
        ]
    except (OSError, ValueError, struct.error):
        return []


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode("utf-8", "surrogateescape")


def _loadable(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return False
    if len(head) < 20 or head[:4] != b"\x7fELF" or head[4] != 2:
        return False
    machine = _MACHINES.get(os.uname().machine)
    return machine is None or int.from_bytes(head[18:20], "little") == machine
