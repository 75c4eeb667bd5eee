"""A process's own view of the file system, in which the governor lies over every driver file.

The mounts are made by the child itself, between its fork and its exec, in a mount namespace of
its own: nothing of them is seen outside, and they go with its last process. Root makes one
directly. Anybody else makes a user namespace for it, in which he is himself and no one else is
anybody: there files of others show as ``nobody``, and setuid programs such as sudo do not work.
Not every kernel, container or security module allows it; whoever asks is told which step failed.
"""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from aliquot.injection import TENANT_SHARE
from aliquot.model import AliquotError, Mount
from aliquot.node.paths import make_folder, runtime_in_tmp
from aliquot.node.supervising import NotReadyError, fork_waiting

_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8
_REMOUNT, _NO_ATIME, _NO_DIR_ATIME, _BIND, _RECURSIVE = 0x20, 0x400, 0x800, 0x1000, 0x4000
_SLAVE, _RELATIVE_ATIME = 1 << 19, 1 << 21

_KEPT = (
    (os.ST_NOSUID, _NO_SETUID),
    (os.ST_NODEV, _NO_DEVICES),
    (os.ST_NOEXEC, _NO_EXEC),
    (os.ST_NOATIME, _NO_ATIME),
    (os.ST_NODIRATIME, _NO_DIR_ATIME),
    (os.ST_RELATIME, _RELATIVE_ATIME),
)
"""statvfs's flags and mount's: in a user namespace none may be dropped when a mount is changed."""


@dataclass(frozen=True, slots=True)
class PrivateMounts:
    where: str
    """The share's fixed path, an empty folder outside: below it what is missing is made."""
    mounts: tuple[Mount, ...]


def fixed_path(uid: int) -> str:
    """Where the governor looks for the share of a process: nothing in an environment moves it.

    Root's is the same as in a container. Another user cannot make folders in /run.
    Raises AliquotError(FILES_UNWRITABLE) where it cannot be made, or was made by somebody else.
    """
    where = Path(TENANT_SHARE) if uid == 0 else runtime_in_tmp(uid) / "share"
    make_folder(where.parent, 0o711)
    make_folder(where, 0o755)
    return str(where)


def why_not() -> str | None:
    """Try it in a child that executes nothing: what failed, or None where it works."""
    try:
        where = fixed_path(os.geteuid())
        fork_waiting((), {}, ready=lambda: enter(PrivateMounts(where, ()))).abandon()
    except AliquotError as error:
        return error.message
    except NotReadyError as error:
        return str(error)
    return None


def enter(private: PrivateMounts) -> None:
    """Make the namespace and its mounts. For a process with one thread, which then has only these.

    Raises OSError, which names the step; what was made by then goes with the process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _unshare(libc)
    # Mounts that are made outside later still arrive; ours never leave.
    _mount(libc, "none", "/", _RECURSIVE | _SLAVE)
    _mount(
        libc, "aliquot", private.where, _NO_SETUID | _NO_DEVICES, kind="tmpfs", options="mode=0755,size=64k"
    )
    for mount in private.mounts:
        _make_target(mount, private.where)
        _mount(libc, mount.source, mount.target, _BIND)
        if mount.read_only:
            _make_read_only(libc, mount.target)
    _make_read_only(libc, private.where)


def _unshare(libc: ctypes.CDLL) -> None:
    if libc.unshare(_NEW_MOUNTS) == 0:
        return
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS | _NEW_USERS) != 0:
        raise _failed("unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text)


def _make_target(mount: Mount, where: str) -> None:
    """Below ``where`` only: elsewhere a mount covers what is there."""
    target = Path(mount.target)
    if not mount.target.startswith(f"{where}/") or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if Path(mount.source).is_dir():
        target.mkdir()
    else:
        target.touch()


def _make_read_only(libc: ctypes.CDLL, target: str) -> None:
    found = os.statvfs(target).f_flag
    kept = sum(flag for seen, flag in _KEPT if found & seen)
    _mount(libc, "none", target, _REMOUNT | _BIND | _READ_ONLY | kept)


def _mount(
    libc: ctypes.CDLL, source: str, target: str, flags: int, *, kind: str | None = None, options: str = ""
) -> None:
    kind_bytes = kind.encode() if kind else None
    done = libc.mount(
        os.fsencode(source), os.fsencode(target), kind_bytes, ctypes.c_ulong(flags), options.encode()
    )
    if done != 0:
        raise _failed(f"mount {target}")


def _failed(step: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), step)
