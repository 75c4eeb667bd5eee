"""XIDs, NVIDIA's numbered hardware reports, from the kernel's log."""

import os
import re
from pathlib import Path

_XID = re.compile(rb"NVRM: Xid \(PCI:([0-9a-fA-F:]+)(?:\.[0-7])?\): (\d+)")
_LOADED = re.compile(rb"NVRM: loading NVIDIA UNIX")
_MOST_BYTES = 4 << 20
"""Of a log longer than that the newest part would be missed; kernels keep 0.25 to 2 MiB."""


def xids(log: Path) -> dict[str, tuple[int, ...]]:
    """XIDs since the driver was last loaded, oldest first, by PCI id without the function.

    Empty where the log may not be read (``kernel.dmesg_restrict``) or is not there.
    """
    found: dict[str, list[int]] = {}
    for line in _lines(log):
        if _LOADED.search(line):
            found.clear()
        for address, number in _XID.findall(line):
            found.setdefault(address.decode().lower(), []).append(int(number))
    return {address: tuple(numbers) for address, numbers in found.items()}


def _lines(log: Path) -> list[bytes]:
    """``/dev/kmsg`` gives one record a read, and EPIPE for one that was overwritten meanwhile."""
    try:
        descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    content = bytearray()
    try:
        while len(content) < _MOST_BYTES:
            try:
                record = os.read(descriptor, 8192)
            except BrokenPipeError:
                continue
            if not record:
                break
            content += record
    except OSError:
        pass  # EAGAIN: the end of the log
    finally:
        os.close(descriptor)
    return bytes(content).splitlines()
