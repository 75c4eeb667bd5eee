"""A book of an older release becomes one of this release, or stays as it was."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from aliquot.lease import open_book
from aliquot.lease.migrations import MIGRATIONS, SCHEMA_VERSION
from aliquot.lease.storage import migrate
from aliquot.model import AliquotError, Lease, LeaseState, ProcessHolder, Reason

VERSION_1 = Path(__file__).with_name("book_version_1.sql")


@pytest.fixture
def old(path: Path) -> Path:
    """A book as schema 1 wrote it, with one held lease and one ended one."""
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1.read_text())
    connection.close()
    return path


def version_of(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.close()
    return version


def test_opening_an_old_book_migrates_it_and_keeps_every_lease(old: Path) -> None:
    with open_book(old) as book:
        held, ended = book.leases(live=None)
        assert (held.id, held.state, held.name) == ("kx7f2", LeaseState.HELD, "train")
        assert held.holder == ProcessHolder(pid=4242, start_time=123456, pid_namespace=4026531836)
        assert (ended.id, ended.end_why) == ("m3bq8", "released")
        assert [usage.peak_bytes for usage in book.usages()] == [1073741824]
        assert [usage.busy_ns for usage in book.usages()] == [None], "nobody wrote it down then"
        assert [event.what for event in book.events(held.id)] == ["preparing", "held"]
        assert book.known_gpus() == ()
        assert book.check() == ()
    assert version_of(old) == SCHEMA_VERSION


def test_looking_at_an_old_book_shows_it_and_leaves_it_old(old: Path) -> None:
    before = old.read_bytes()
    with open_book(old, read_only=True) as view:
        assert [lease.id for lease in view.leases()] == ["kx7f2"]
        assert view.cordons() == {}
    assert old.read_bytes() == before
    assert version_of(old) == 1


def test_a_new_book_and_a_migrated_one_have_the_same_schema(old: Path, tmp_path: Path) -> None:
    def schema(path: Path) -> list[tuple[str, str]]:
        open_book(path).close()
        with sqlite3.connect(path) as connection:
            rows = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        connection.close()
        return rows

    assert schema(old) == schema(tmp_path / "new" / "book.sqlite")


def test_a_migration_that_fails_leaves_the_old_book(
    old: Path, monkeypatch: pytest.MonkeyPatch, reserve: Callable[..., Lease]
) -> None:
    broken = (*MIGRATIONS, "CREATE TABLE half (x INTEGER) STRICT;\nCREATE TABLE half (x INTEGER) STRICT;\n")
    monkeypatch.setattr(migrate, "__defaults__", (broken,))
    with pytest.raises(AliquotError) as refused:
        open_book(old)
    assert refused.value.reason is Reason.FAILED
    assert version_of(old) == 1
    monkeypatch.undo()
    with open_book(old) as book:
        reserve(book)


def test_schema_1_is_what_was_released() -> None:
    """A released migration is never edited: the fixture was written by it once."""

    def schema(script: str) -> list[tuple[str, str]]:
        connection = sqlite3.connect(":memory:")
        connection.executescript(script)
        rows = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        connection.close()
        return rows

    assert schema(MIGRATIONS[0]) == schema(VERSION_1.read_text())
