"""What SQLite and the system say about the book's file, as the errors a user can act on.

Every ``sqlite3.Error`` is turned into an AliquotError here and nowhere else.
"""

import os
import sqlite3
from pathlib import Path

from aliquot.model import AliquotError, Reason

_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH}
_UNWRITABLE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the file, its folder or its disk is read-only, or not ours",
    sqlite3.SQLITE_PERM: "permission is missing",
    sqlite3.SQLITE_AUTH: "permission is missing",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk refused",
}


class CorruptRowError(Exception):
    """A row that no release of ours wrote. Never skipped: what cannot be read is not free."""


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code; None where the error never came from SQLite itself."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF


def explain(error: sqlite3.Error | CorruptRowError | OSError, path: Path) -> AliquotError:
    """The AliquotError for ``error``; raise it ``from error``."""
    if isinstance(error, OSError):
        return unwritable(path, error.strerror or str(error))
    if isinstance(error, CorruptRowError):
        return corrupt(path, str(error))
    code = primary_code(error)
    if code in _LOCKED:
        return locked(path)
    if code in _CORRUPT:
        return corrupt(path, str(error))
    if code in _UNWRITABLE:
        return unwritable(path, _why_unwritable(code, path), sqlite=_name_of(error))
    # The module's own complaint about a text column whose bytes were changed.
    if code is None and "UTF-8" in str(error):
        return corrupt(path, str(error))
    # "no such table" in a book of our version: its schema page was overwritten.
    if code == sqlite3.SQLITE_ERROR and ("no such table" in str(error) or "malformed" in str(error)):
        return corrupt(path, str(error))
    return AliquotError(
        Reason.FAILED,
        f"the book {path} refused a step: {error}; nothing was changed",
        facts=[_name_of(error)],
        next=[("aliquot doctor", "checks the book")],
    )


def locked(path: Path) -> AliquotError:
    pids = lock_holders(path)
    who = f"process {', '.join(map(str, pids))}" if pids else "another process"
    return AliquotError(
        Reason.BOOK_LOCKED,
        f"the book {path} is locked by {who} for longer than Aliquot waits; nothing was changed",
        facts=[_command_line(pid) for pid in pids],
        next=[(f"fuser -v {path} {path}-shm", "shows who has it open; then try again")],
    )


def corrupt(path: Path, said: str) -> AliquotError:
    aside = f"{path}.broken"
    return AliquotError(
        Reason.BOOK_CORRUPT,
        f"the book {path} is not sound: {said}; nothing was changed",
        facts=[f"{path.name}-wal, where it is there, is a part of the book"],
        next=[
            (f"mkdir {aside}; cp -a {path} {path}-* {aside}/", "keeps what is there before anything else"),
            (f"sqlite3 {path} .recover | sqlite3 {aside}/recovered.sqlite", "saves what can be read"),
            (f"rm {path} {path}-*", "then starts an empty book: end all leased programs first"),
        ],
    )


def newer(path: Path, *, found: int, known: int) -> AliquotError:
    return AliquotError(
        Reason.BOOK_NEWER,
        f"the book {path} has schema {found} and this Aliquot knows up to {known}; nothing was changed",
        next=[("pip install --upgrade aliquot", "installs a release that can read it")],
    )


def unwritable(path: Path, why: str, *, sqlite: str | None = None) -> AliquotError:
    return AliquotError(
        Reason.BOOK_UNWRITABLE,
        f"the book {path} cannot be used: {why}; nothing was changed",
        facts=[sqlite] if sqlite else [],
        next=[
            (f"df -h {path.parent}; ls -la {path.parent}", "shows the space and the permissions"),
            ("export ALIQUOT_STATE_DIR=/another/folder", "keeps a book of its own there"),
        ],
    )


def unconfirmed(path: Path, error: OSError) -> AliquotError:
    return AliquotError(
        Reason.BOOK_UNWRITABLE,
        f"the book {path} has the step, but its disk did not confirm it: {error.strerror}",
        facts=["every process sees the step; a loss of power now may undo it"],
        next=[("dmesg | tail; aliquot doctor", "shows what the disk said and whether the book is sound")],
    )


def lock_holders(path: Path) -> tuple[int, ...]:
    """Pids that hold a write lock on the book or its -shm, from /proc/locks; empty if unknown.

    SQLite's locks are POSIX locks, which the kernel lists by device and inode.
    """
    wanted = set()
    for name in (path, path.with_name(path.name + "-shm")):
        try:
            found = name.stat()
        except OSError:
            continue
        wanted.add(f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}")
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ()
    # "1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 120 120"; a line with "->" only waits.
    fields = [line.split() for line in lines]
    holding = {f[4] for f in fields if len(f) >= 6 and f[3] == "WRITE" and f[5] in wanted}
    pids = {int(pid) for pid in holding if pid.isdigit()}
    return tuple(sorted(pids - {os.getpid(), 0}))


def _command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return f"process {pid}"
    text = " ".join(word.decode(errors="replace") for word in words if word)
    return f"process {pid}: {text[:120]}" if text else f"process {pid}"


def _why_unwritable(code: int | None, path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    if code == sqlite3.SQLITE_CANTOPEN:
        folder = path.parent
        if not os.access(folder, os.X_OK):
            return f"permission is missing on {folder}"
        if path.exists() and not os.access(path, os.R_OK):
            return "permission is missing to read it"
        if not os.access(folder, os.W_OK):
            return f"its folder {folder} is not writable"
    return "it cannot be opened" if code is None else _UNWRITABLE.get(code, "it cannot be opened")


def _name_of(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", None)
    return f"SQLite says {name}: {error}" if name else f"SQLite says: {error}"
