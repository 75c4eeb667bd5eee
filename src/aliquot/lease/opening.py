"""Make, open or look at the book.

A new book appears whole or not at all: it is built in memory, written beside its place,
synced, and linked into place, which fails where another process was first. So an empty file at
the book's place is never a book just being made but one that was truncated, and is refused:
taking it for an empty book would hand out every share again.
"""

import contextlib
import os
import sqlite3
from pathlib import Path

from aliquot.lease.book import Book
from aliquot.lease.failures import corrupt, explain, unwritable
from aliquot.lease.migrations import APPLICATION_ID, PAGE_BYTES, SCHEMA_VERSION
from aliquot.lease.storage import BookFile, connect, migrate
from aliquot.model import AliquotError, Reason


def open_book(path: Path, *, wait_s: float = 10.0, read_only: bool = False) -> Book:
    """The book at ``path``, made where it is missing (``read_only``: an empty view then).

    ``wait_s``: how long each step waits for another process's lock. A read-only view works on
    a read-only disk too. Raises AliquotError: BOOK_LOCKED, BOOK_CORRUPT, BOOK_NEWER,
    BOOK_UNWRITABLE.
    """
    path = path.absolute()
    try:
        if read_only:
            return Book(_look(path, wait_s))
        if not _exists(path):
            _make(path)
        _keep_private(path)
        return Book(_prepared(path, connect(f"{path.as_uri()}?mode=rw"), wait_s=wait_s, read_only=False))
    except (OSError, sqlite3.Error) as error:
        raise explain(error, path) from error


def _prepared(path: Path, connection: sqlite3.Connection, *, wait_s: float, read_only: bool) -> BookFile:
    file = BookFile(path, connection, wait_s=wait_s, read_only=read_only)
    try:
        file.prepare()
    except BaseException:
        connection.close()
        raise
    return file


def _exists(path: Path) -> bool:
    """Raises AliquotError where something is there that cannot be a book."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise unwritable(path, "it is a link to nothing") from None
        # SQLite would play an old log into whatever new file it finds beside it.
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size and not path.exists():
            raise corrupt(path, f"it is gone, but its log {log.name} is still there") from None
        return False
    if not path.is_file():
        raise unwritable(path, "it is a folder" if path.is_dir() else "it is not a plain file")
    if found.st_size == 0:
        raise corrupt(path, "the file is empty")
    return True


def _keep_private(path: Path) -> None:
    """The book names everybody's commands; a looser mode can only come from a copy."""
    found = path.stat()
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        path.chmod(0o600)


def _look(path: Path, wait_s: float) -> BookFile:
    if not _exists(path):
        return _prepared(path, _empty(), wait_s=wait_s, read_only=True)
    try:
        return _current(path, connect(f"{path.as_uri()}?mode=ro"), wait_s)
    except (AliquotError, sqlite3.Error) as error:
        # Reading a WAL book makes a -shm beside it, which a read-only disk does not allow. Where
        # no WAL is left either, the file alone is the whole book and nobody can be writing it.
        wal = path.with_name(path.name + "-wal")
        unwritable_here = not isinstance(error, AliquotError) or error.reason is Reason.BOOK_UNWRITABLE
        if not unwritable_here or not os.access(path, os.R_OK) or (wal.exists() and wal.stat().st_size):
            raise
        return _current(path, connect(f"{path.as_uri()}?immutable=1"), wait_s)


def _current(path: Path, connection: sqlite3.Connection, wait_s: float) -> BookFile:
    """A view in the newest schema: a book of an older one is copied into memory and migrated there."""
    file = _prepared(path, connection, wait_s=wait_s, read_only=True)
    if file.version == SCHEMA_VERSION:
        return file
    copy = connect("file::memory:")
    connection.backup(copy)
    connection.close()
    migrate(copy)
    return _prepared(path, copy, wait_s=wait_s, read_only=True)


def _empty() -> sqlite3.Connection:
    connection = connect("file::memory:")
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    migrate(connection)
    return connection


def _make(path: Path) -> None:
    _make_parents(path.parent)
    with contextlib.closing(_empty()) as connection:
        image = connection.serialize()
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        _write_synced(draft, image)
        with contextlib.suppress(FileExistsError):  # another process made it first: theirs is used
            os.link(draft, path)
    except FileNotFoundError:
        if not path.exists():  # else the winner swept our draft away
            raise
    finally:
        draft.unlink(missing_ok=True)
    for left_by_a_kill in path.parent.glob(f"{path.name}.*.new"):
        left_by_a_kill.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_synced(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _make_parents(folder: Path) -> None:
    """Root's is 0755, since software GPUs lie in it for all; another user's own is 0700."""
    if folder.is_dir():
        return
    _make_parents(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o755 if os.geteuid() == 0 else 0o700)
