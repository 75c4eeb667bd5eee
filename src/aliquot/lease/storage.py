"""The book's file as a database: connect, migrate, wait for the lock, commit or undo.

Durability. Every commit is atomic and outlives the kill of any process at once; that needs no
disk. What ``on_disk=True`` buys is outliving a loss of power as well, at one fdatasync after the
commit (see ``log``). The book asks for it wherever somebody may rely on the step after the power
comes back, and nowhere else: see ``Book``. A commit without it is on disk with the next one that
has it, since the WAL is one sequence.

Waiting. SQLite's own busy handler sleeps up to 100 ms at a stretch and is so unfair that one
of 4 writers got 1 turn while another got 2500 (measured), and so may fail after its whole wait
in a book that is merely busy. Writers take turns at the log instead, and who still finds the
book locked sleeps at random for 3 to 12 ms between two tries: each costs as much as a step.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from aliquot.lease.failures import (
    CorruptRowError,
    corrupt,
    explain,
    newer,
    primary_code,
    unconfirmed,
    unwritable,
)
from aliquot.lease.log import Log, sleep_about
from aliquot.lease.migrations import APPLICATION_ID, MIGRATIONS, PAGE_BYTES

_CHECKPOINT_BYTES = 4 << 20
"""The log is folded into the file about when it has grown to this: SQLite's own default, in bytes."""
_FIRST_WAIT_S = 0.003
_LONGEST_WAIT_S = 0.012
_WAIT_GROWTH = 1.5
_T = TypeVar("_T")
Row = tuple[Any, ...]


class _Explained:
    """Turns what SQLite raises inside a ``with`` into AliquotError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (sqlite3.Error, CorruptRowError)):
            raise explain(error, self._path) from error
        if isinstance(error, UnicodeDecodeError):  # SQLite quoted a broken name in its own complaint
            raise corrupt(self._path, f"text in it is not UTF-8 ({error.reason})") from error


class BookFile:
    """One connection, for one thread of one process; never used across a fork."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, wait_s: float, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._connection = connection
        self._wait_s = wait_s
        self._log: Log | None = None
        self._explained = _Explained(path)
        self.version = 0
        """Of the schema; known after ``prepare``."""

    def prepare(self) -> None:
        """Check that it is ours and sound enough to read; migrate; make it WAL."""
        with self._explained:
            for setting in ("foreign_keys=ON", "trusted_schema=OFF", "cell_size_check=ON"):
                self._connection.execute(f"PRAGMA {setting}")
            self.version = self._version()
            if not self.read_only:
                mode = self._patiently(lambda: self._connection.execute("PRAGMA journal_mode=WAL").fetchone())
                if mode != ("wal",):
                    raise unwritable(self.path, "its file system does not let processes share memory")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_BYTES // PAGE_BYTES}")
                old = self.version < len(MIGRATIONS)
                if old:
                    self._migrate()
                    self.version = len(MIGRATIONS)
                # SQLite makes the log at the first read that follows the change of mode.
                self._patiently(lambda: self._connection.execute("SELECT 1 FROM lease LIMIT 1").fetchone())
                self._log = Log.of(self.path)
                if old:
                    self._sync(self._log)
            else:
                self._connection.execute("PRAGMA query_only=ON")

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
        # Closing the last connection folds the WAL into the file; where that fails (disk full),
        # the WAL stays and the next opener reads it: nothing is lost.
        try:
            self._connection.close()
        except sqlite3.Error as error:
            if primary_code(error) is None:
                raise explain(error, self.path) from error

    def rows(self, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        """One SELECT: a consistent view as of one commit."""
        with self._explained:
            return self._patiently(lambda: self._connection.execute(query, parameters).fetchall())

    @contextmanager
    def transaction(self, *, on_disk: bool) -> Iterator[sqlite3.Connection]:
        """A write transaction: all or nothing, alone. Raises AliquotError, or what the body raised.

        Reads inside see the newest commit, because the lock is taken at the start.
        """
        with self._explained:
            log = self._log
            if log is None:
                raise unwritable(self.path, "it was opened to be looked at only")
            mine = log.take_turn()
            try:
                self._begin()
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._undo()
                raise
            finally:
                if mine:
                    log.end_turn()
            if on_disk:
                self._sync(log)

    def check(self) -> tuple[str, ...]:
        """What SQLite finds wrong with the file, a line each; empty where it is sound. Reads all of it."""
        with self._explained:
            lines = [row[0] for row in self._connection.execute("PRAGMA quick_check").fetchall()]
            orphans = self._connection.execute("PRAGMA foreign_key_check").fetchall()
        found = [line for line in lines if line != "ok"]
        return (*found, *(f"row {row[1]} of {row[0]} points at nothing in {row[2]}" for row in orphans))

    def _version(self) -> int:
        row = self._patiently(
            lambda: self._connection.execute(
                "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id"
            ).fetchone()
        )
        version, application = row
        if application != APPLICATION_ID:
            raise corrupt(self.path, "it is a database of something else, or was emptied")
        if version > len(MIGRATIONS):
            raise newer(self.path, found=version, known=len(MIGRATIONS))
        return int(version)

    def _migrate(self) -> None:
        self._patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"))
        try:
            migrate(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _begin(self) -> None:
        self._patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"))
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if found != len(MIGRATIONS):  # migrated under us by a newer release
            raise newer(self.path, found=found, known=len(MIGRATIONS))

    def _sync(self, log: Log) -> None:
        try:
            log.sync()
        except OSError as error:
            raise unconfirmed(self.path, error) from error

    def _undo(self) -> None:
        # After some failures (disk full, for one) SQLite has rolled back already.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _patiently(self, attempt: Callable[[], _T]) -> _T:
        deadline: float | None = None
        wait = _FIRST_WAIT_S
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if primary_code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL):
                    raise
                now = time.monotonic()
                deadline = now + self._wait_s if deadline is None else deadline
                if now >= deadline:
                    raise
                sleep_about(wait)
                wait = min(wait * _WAIT_GROWTH, _LONGEST_WAIT_S)


def migrate(connection: sqlite3.Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring an open transaction's book from its version to the newest. Commits nothing."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for migration in migrations[version:]:
        for statement in _statements(migration):
            connection.execute(statement)
        version += 1
        connection.execute(f"PRAGMA user_version={version}")


def _statements(script: str) -> Iterator[str]:
    """One by one: ``executescript`` would commit the transaction that must hold them together."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise ValueError(f"a migration ends in the middle of a statement: {statement!r}")


def connect(target: str) -> sqlite3.Connection:
    """``target``: an SQLite URI. No busy handler: see the module's docstring."""
    return sqlite3.connect(target, uri=True, isolation_level=None, timeout=0, cached_statements=64)
