"""Taking away what an engine leaves: mounts, control groups, processes, its folder."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def remove_all_under(folder: Path) -> None:
    """End every process that names ``folder`` on its command line, unmount all below it, remove it.

    ``folder`` must be a scratch folder made for one engine: its name is what its processes are
    told apart by.
    """
    _end(lambda: processes_naming(folder))
    for target in sorted(_mounts_under(folder), key=len, reverse=True):
        subprocess.run(["umount", "--lazy", target], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def remove_control_groups(name: str) -> None:
    """Remove the emptied control groups called ``name`` at the top of every hierarchy."""
    roots = [*Path("/sys/fs/cgroup").glob("*"), Path("/sys/fs/cgroup")]
    for root in roots:
        tops = [root / name, root / f"{name}.slice"]
        for top in [top for top in tops if top.is_dir()]:
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(folder)  # noqa: PTH106 - a control group has files that are not files
                except OSError:
                    continue


def remove_stray(path: Path) -> None:
    """Remove a file, or a tree of empty folders, that an engine made outside its own folder."""
    if path.is_file():
        path.unlink()
    for place, _, _ in os.walk(path, topdown=False):
        try:
            Path(place).rmdir()
        except OSError:
            continue


def processes_naming(folder: Path) -> list[int]:
    """Every process but ours that has ``folder`` on its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words:
            found.append(int(entry.name))
    return found


def end_processes_of(uid: int) -> None:
    """End every process of a user that was made for one engine, such as what keeps a rootless
    Podman's user namespace."""
    _end(lambda: [int(entry.name) for entry in Path("/proc").iterdir() if _owner(entry) == uid])


def _owner(entry: Path) -> int | None:
    try:
        return entry.stat().st_uid if entry.name.isdigit() else None
    except OSError:
        return None


def _end(alive: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + 10
    sign = signal.SIGTERM
    while (left := alive()) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
        if time.monotonic() > deadline - 5:
            sign = signal.SIGKILL


def _mounts_under(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    targets = [line.split()[4] for line in lines]
    return [target for target in targets if target == str(folder) or target.startswith(f"{folder}/")]
