"""Who is on a GPU: NVML's three lists joined, with utilisation and the command line."""

import time
from pathlib import Path
from typing import Any

from aliquot.inventory.nvidia import Card
from aliquot.model import Bytes, GpuProcess

_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)
_SAMPLES_FOR_US = 2_000_000
"""Utilisation samples older than this say nothing of now; NVML keeps them for minutes."""

_LONGEST_COMMAND = 200


def processes_of(card: Card, proc: Path) -> tuple[GpuProcess, ...] | None:
    """All processes by pid; None where the driver gives none of its lists.

    A process that is in two lists (compute and graphics) has the same memory in both: the
    larger counts, never the sum. Pid 0 is one that our pid namespace does not show; there may
    be several, and only the first list's are told, because nothing says which are the same.
    """
    lists = [card.ask_list(function) for function in _LISTS]
    told = [entries for entries in lists if entries is not None]
    if not told:
        return None
    memory: dict[int, int | None] = {}
    for entry in (entry for entries in told for entry in entries if entry.pid):
        pid, used = int(entry.pid), entry.usedGpuMemory
        known = memory.get(pid)
        memory[pid] = used if known is None else max(known, used or 0)
    hidden = [(0, entry.usedGpuMemory) for entry in told[0] if not entry.pid]
    utilisation = _utilisation(card) if memory else {}
    return tuple(
        GpuProcess(
            pid=pid,
            memory=None if used is None else Bytes(int(used)),
            utilisation=utilisation.get(pid),
            command=command_of(pid, proc) if pid else None,
        )
        for pid, used in [*hidden, *sorted(memory.items())]
    )


def command_of(pid: int, proc: Path) -> str | None:
    """The command line, for display: one line, nothing a terminal would act on, trimmed.

    None where the process is gone or not ours to read. A process chooses its own command
    line, so it is evidence of nothing.
    """
    try:
        with (proc / str(pid) / "cmdline").open("rb") as file:
            raw = file.read(4 * _LONGEST_COMMAND)
    except OSError:
        return None
    words = raw.rstrip(b"\0").decode("utf-8", "replace").replace("\0", " ")
    shown = "".join(letter if letter.isprintable() else "?" for letter in words).strip()
    if len(shown) > _LONGEST_COMMAND:
        return shown[: _LONGEST_COMMAND - 1] + "…"
    return shown or None


def _utilisation(card: Card) -> dict[int, int]:
    """Percent by pid, of the newest sample of each; empty where the driver does not tell."""
    since = time.time_ns() // 1000 - _SAMPLES_FOR_US
    samples = card.ask_list("nvmlDeviceGetProcessUtilization", since)
    newest: dict[int, Any] = {}
    for sample in samples or ():
        known = newest.get(sample.pid)
        if known is None or sample.timeStamp >= known.timeStamp:
            newest[sample.pid] = sample
    return {pid: int(sample.smUtil) for pid, sample in newest.items() if pid and sample.smUtil <= 100}
