"""Whatever is wrong with the book's file: a clear error that names it, and nothing lost."""

import contextlib
import errno
import fcntl
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aliquot.lease import Book, open_book
from aliquot.lease.migrations import SCHEMA_VERSION
from aliquot.model import (
    AliquotError,
    ContainerHolder,
    GpuUuid,
    Lease,
    LeaseState,
    ProcessHolder,
    Reason,
)

Reserve = Callable[..., Lease]
Start = Callable[..., "subprocess.Popen[str]"]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
mounting = pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs the right to mount",
)


@pytest.fixture
def kept(path: Path, reserve: Reserve) -> Lease:
    """A closed book with one live lease."""
    with open_book(path) as book:
        return reserve(book)


GPU = GpuUuid("GPU-a")


def use(path: Path, *, read_only: bool, wait_s: float) -> None:
    with open_book(path, wait_s=wait_s, read_only=read_only) as book:
        book.leases()
        if not read_only:
            book.cordon(GPU, reason=None, at=1)


def refusal(path: Path, *, read_only: bool = False, wait_s: float = 0.05) -> AliquotError:
    """What opening and using the book raises."""
    with pytest.raises(AliquotError) as refused:
        use(path, read_only=read_only, wait_s=wait_s)
    assert str(path) in refused.value.message
    assert refused.value.next
    return refused.value


def test_a_new_book_is_private_whatever_the_umask_and_leaves_no_draft(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_book(tmp_path / "a" / "b" / "book.sqlite").close()
    finally:
        os.umask(before)
    made = tmp_path / "a" / "b" / "book.sqlite"
    assert made.stat().st_mode & 0o777 == 0o600
    assert made.parent.stat().st_mode & 0o777 == (0o755 if os.geteuid() == 0 else 0o700)
    assert [entry.name for entry in made.parent.iterdir()] == ["book.sqlite"]


def test_the_log_beside_the_book_is_private_too(path: Path, reserve: Reserve) -> None:
    before = os.umask(0)
    try:
        with open_book(path) as book:
            reserve(book)
            assert {entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_a_book_that_was_copied_open_to_all_is_closed_again(path: Path, kept: Lease) -> None:
    path.chmod(0o644)
    with open_book(path) as book:
        assert book.leases() == (kept,)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_draft_of_a_killed_maker_is_swept_away(path: Path) -> None:
    path.parent.mkdir()
    left = path.with_name(f"{path.name}.4194304.new")
    left.write_bytes(b"half a book")
    open_book(path).close()
    assert [entry.name for entry in path.parent.iterdir()] == ["book.sqlite"]


def test_many_processes_that_make_the_book_at_once_get_the_same_one(path: Path, start: Start) -> None:
    workers = [start("open", path) for _ in range(8)]
    assert [worker.communicate()[0].strip() for worker in workers] == ["opened"] * 8
    with open_book(path) as book:
        assert len(book.leases(live=False)) == 8
        assert book.check() == ()


def test_the_book_is_a_strict_wal_database_with_foreign_keys(book: Book) -> None:
    connection = book._file._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    strict = connection.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND NOT strict")
    assert {name for (name,) in strict if not name.startswith("sqlite_")} == set()


def test_a_step_is_on_disk_on_return_where_somebody_may_rely_on_it(
    book: Book, reserve: Reserve, me: ProcessHolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table in ``aliquot.lease.book``."""
    log = book.path.with_name(book.path.name + "-wal").stat().st_ino
    synced: list[int] = []
    sync = os.fdatasync

    def watched(descriptor: int) -> None:
        assert not book._file._connection.in_transaction, "others wait while the disk works"
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", watched)

    def syncs() -> int:
        count = synced.count(log)
        assert count == len(synced)
        synced.clear()
        return count

    lease, other, third = reserve(book), reserve(book), reserve(book)
    assert syncs() == 0
    book.advance(lease.id, LeaseState.HELD, at=2, holder=me)
    assert syncs() == 0
    book.advance(other.id, LeaseState.HELD, at=2)
    assert syncs() == 1
    book.advance(lease.id, LeaseState.RELEASING, at=3)
    assert syncs() == 0
    book.advance(third.id, LeaseState.HELD, at=2, holder=ContainerHolder("podman", me))
    assert syncs() == 1
    book.advance(other.id, LeaseState.RELEASING, at=3)
    assert syncs() == 0
    book.end(lease.id, at=4, why="released", usages=())
    assert syncs() == 1
    book.advance(third.id, LeaseState.RELEASING, at=3)
    book.set_expiry(reserve(book).id, 9, at=4)
    assert syncs() == 1
    book.cordon(GPU, reason=None, at=1)
    assert syncs() == 1


def test_what_the_sync_covers_is_the_step_after_a_loss_of_power(
    book: Book, reserve: Reserve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's bytes at the sync, and the book's of its last sync (it was not folded since)."""
    after = tmp_path / "after the power came back"
    after.mkdir()
    at_rest = book.path.read_bytes()

    def keep(descriptor: int) -> None:
        (after / "book").write_bytes(at_rest)
        (after / "book-wal").write_bytes(os.pread(descriptor, 1 << 24, 0))

    monkeypatch.setattr(os, "fdatasync", keep)
    lease = reserve(book)
    book.advance(lease.id, LeaseState.HELD, at=2)
    monkeypatch.undo()
    book.end(lease.id, at=3, why="released", usages=())
    with open_book(after / "book") as recovered:
        assert [(one.id, one.state) for one in recovered.leases()] == [(lease.id, LeaseState.HELD)]


def test_a_disk_that_does_not_confirm_a_step_is_said_and_the_step_stands(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(AliquotError, match="did not confirm it: Input/output error") as error:
        book.cordon(GPU, reason="a fan", at=1)
    assert error.value.reason is Reason.BOOK_UNWRITABLE
    assert book.cordons() == {GPU: "a fan"}


def test_who_holds_the_turn_and_does_nothing_delays_a_step_and_no_more(book: Book) -> None:
    with book.path.with_name(f"{book.path.name}-wal").open("rb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        book.cordon(GPU, reason=None, at=1)
    assert book.cordons() == {GPU: None}


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"not a database, not at all\n" * 500, bytes(8192), b"SQLite format 3\0" + bytes(4080)],
    ids=["empty", "one byte", "text", "zeros", "header only"],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_book_is_refused_and_left_as_it_is(path: Path, content: bytes, read_only: bool) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert refusal(path, read_only=read_only).reason is Reason.BOOK_CORRUPT
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE lease (id TEXT)")
    other.close()
    before = path.read_bytes()
    assert refusal(path).reason is Reason.BOOK_CORRUPT
    assert path.read_bytes() == before


def test_a_truncated_book_is_refused(path: Path, kept: Lease) -> None:
    content = path.read_bytes()
    for length in (1, 100, 1024, len(content) // 2, len(content) - 1024):
        path.write_bytes(content[:length])
        assert refusal(path).reason is Reason.BOOK_CORRUPT
        assert path.read_bytes() == content[:length]
    path.write_bytes(content)
    with open_book(path) as book:
        assert book.leases() == (kept,)


def test_no_flipped_bits_ever_raise_anything_but_our_error(path: Path, reserve: Reserve) -> None:
    """A flip may also land in a text and be believed; it must never end in a traceback."""
    with open_book(path) as book:
        for number in range(20):
            lease = reserve(book, name=f"n{number}")
            if number % 2:
                book.advance(lease.id, LeaseState.RELEASING, at=2)
                book.end(lease.id, at=3, why="released", usages=())
    content = path.read_bytes()
    chance = random.Random(4)
    seen: set[Reason | None] = set()
    for _ in range(150):
        broken = bytearray(content)
        for _ in range(chance.choice((1, 8, 64))):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        for leftover in path.parent.glob(f"{path.name}-*"):
            leftover.unlink()
        path.write_bytes(broken)
        try:
            with open_book(path, wait_s=0) as book:
                book.events()
                book.usages()
                book.find("n3")
                reserve(book, name="new")
                book.check()
        except AliquotError as error:
            seen.add(error.reason)
        else:
            seen.add(None)
    assert Reason.BOOK_CORRUPT in seen
    assert seen <= {Reason.BOOK_CORRUPT, Reason.BOOK_NEWER, Reason.NOT_FOUND, Reason.FAILED, None}


def test_a_log_without_its_book_is_never_played_into_a_new_one(path: Path, reserve: Reserve) -> None:
    with open_book(path) as book:
        reserve(book)
        log = path.with_name(path.name + "-wal")
        content = log.read_bytes()
        path.unlink()
        for read_only in (False, True):
            error = refusal(path, read_only=read_only)
            assert (error.reason, log.name in error.message) == (Reason.BOOK_CORRUPT, True)
        assert not path.exists()
        assert log.read_bytes() == content


@pytest.mark.usefixtures("kept")
def test_a_live_lease_that_cannot_be_read_is_never_taken_for_room(path: Path) -> None:
    with sqlite3.connect(path) as broken:
        broken.execute("PRAGMA ignore_check_constraints=ON")
        broken.execute("UPDATE lease SET policy = 'fire'")
    broken.close()
    assert refusal(path).reason is Reason.BOOK_CORRUPT
    with sqlite3.connect(path) as broken:
        broken.execute("UPDATE lease SET policy = 'fair'")
        broken.execute("DELETE FROM share")
    broken.close()
    assert "has no share" in refusal(path).message


@pytest.mark.parametrize("read_only", [False, True])
def test_a_book_of_a_newer_release_is_refused_and_left_as_it_is(
    path: Path, kept: Lease, read_only: bool
) -> None:
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    newer.close()
    error = refusal(path, read_only=read_only)
    assert error.reason is Reason.BOOK_NEWER
    assert f"schema {SCHEMA_VERSION + 1}" in error.message
    assert "pip install --upgrade aliquot" in error.next[0][0]
    with sqlite3.connect(path) as newer:
        assert newer.execute("SELECT id FROM lease").fetchall() == [(kept.id,)]
    newer.close()


def test_a_book_that_a_newer_release_migrates_while_it_is_open_is_not_written_any_more(
    book: Book, path: Path, reserve: Reserve
) -> None:
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    newer.close()
    with pytest.raises(AliquotError) as refused:
        reserve(book)
    assert refused.value.reason is Reason.BOOK_NEWER


def test_a_locked_book_names_who_locked_it_and_can_still_be_looked_at(
    path: Path, kept: Lease, start: Start
) -> None:
    holder = start("lock", path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    error = refusal(path)
    assert error.reason is Reason.BOOK_LOCKED
    assert str(holder.pid) in error.message
    assert any("lease_worker.py lock" in fact for fact in error.facts)
    with open_book(path, read_only=True) as view:
        assert view.leases() == (kept,)
    holder.communicate("done\n")
    with open_book(path, wait_s=0) as book:
        book.cordon(GPU, reason=None, at=1)


@pytest.mark.usefixtures("kept")
def test_a_writer_waits_for_a_lock_that_is_given_up_in_time(path: Path, start: Start) -> None:
    holder = start("lock", path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    waiting = start("open", path)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.3)
    holder.communicate("done\n")
    assert waiting.communicate(timeout=30)[0] == "opened\n"


def test_a_lock_dies_with_its_process(path: Path, kept: Lease, start: Start) -> None:
    holder = start("lock", path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with open_book(path, wait_s=0) as book:
        book.advance(kept.id, LeaseState.HELD, at=2)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_or_a_link_to_nothing_at_its_place_is_named(path: Path, read_only: bool) -> None:
    path.mkdir(parents=True)
    error = refusal(path, read_only=read_only)
    assert (error.reason, "it is a folder" in error.message) == (Reason.BOOK_UNWRITABLE, True)
    path.rmdir()
    path.symlink_to(path.parent / "nothing")
    assert "link to nothing" in refusal(path, read_only=read_only).message


def test_a_file_where_its_folder_should_be_is_named(path: Path) -> None:
    path.parent.write_text("")
    assert refusal(path).reason is Reason.BOOK_UNWRITABLE


def test_looking_at_a_book_that_is_not_there_shows_an_empty_one_and_makes_nothing(path: Path) -> None:
    with open_book(path, read_only=True) as view:
        assert (view.leases(), view.usages(), view.events(), view.known_gpus(), view.cordons()) == (
            *((),) * 4,
            {},
        )
        with pytest.raises(AliquotError, match="looked at only"):
            view.cordon(GPU, reason=None, at=1)
    assert not path.parent.exists()


def test_a_disk_that_fills_up_in_a_step_keeps_every_step_before_it(path: Path, reserve: Reserve) -> None:
    """RLIMIT_FSIZE stands for the full disk: the log may not grow any more."""
    with open_book(path) as book:
        lease = reserve(book)
        log = path.with_name(path.name + "-wal")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, before[1]))
        try:
            with pytest.raises(AliquotError) as refused:
                reserve(book, command="x" * 10_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert refused.value.reason is Reason.BOOK_UNWRITABLE
        assert str(path) in refused.value.message
        assert book.leases() == (lease,)
        assert reserve(book) in book.leases()
        assert book.check() == ()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "aliquot-test", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    assert os.statvfs(disk).f_bavail == 0
    return filler


def reserve_many(book: Book, reserve: Reserve) -> None:
    for _ in range(100):
        reserve(book, command="x" * 4_000)


@mounting
def test_a_full_disk_is_named_and_the_book_goes_on_when_there_is_room(
    small_disk: Path, reserve: Reserve
) -> None:
    path = small_disk / "book.sqlite"
    with open_book(path) as book:
        kept = reserve(book)
        filler = fill(small_disk)
        with pytest.raises(AliquotError) as refused:
            reserve_many(book, reserve)
        assert refused.value.reason is Reason.BOOK_UNWRITABLE
        assert "full" in refused.value.message
        written = book.leases()
    with open_book(path, read_only=True) as view:
        assert view.leases() == written
    filler.unlink()
    with open_book(path) as book:
        assert book.leases()[0] == kept
        reserve(book)
        assert book.check() == ()


@mounting
def test_a_full_disk_makes_no_half_book(small_disk: Path) -> None:
    fill(small_disk)
    path = small_disk / "book.sqlite"
    assert refusal(path).reason is Reason.BOOK_UNWRITABLE
    assert not path.exists()
    assert [entry.name for entry in small_disk.iterdir()] == ["filler"]


@mounting
def test_a_read_only_disk_can_be_looked_at_and_says_so_when_written(
    small_disk: Path, reserve: Reserve
) -> None:
    path = small_disk / "book.sqlite"
    with open_book(path) as book:
        kept = reserve(book)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert refusal(path).reason is Reason.BOOK_UNWRITABLE
    with open_book(path, read_only=True) as view:
        assert view.leases() == (kept,)


def as_nobody(path: Path) -> str:
    """What using the book gives for a user without any right to it: in a child of ours."""
    listen, say = os.pipe()
    child = os.fork()
    if child == 0:
        answer = "opened"
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            use(path, read_only=False, wait_s=0)
        except AliquotError as error:
            answer = f"{error.reason.code}: {error.message}"
        except BaseException as error:
            answer = repr(error)
        os.write(say, answer.encode())
        os._exit(0)
    os.close(say)
    os.waitpid(child, 0)
    with os.fdopen(listen) as heard:
        return heard.read()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="aliquot-lease-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@as_root
def test_without_permission_the_book_or_its_folder_is_named(open_folder: Path) -> None:
    path = open_folder / "state" / "book.sqlite"
    open_book(path).close()
    assert as_nobody(path).startswith(
        f"book-unwritable: the book {path} cannot be used: permission is missing"
    )
    new = path.parent / "new.sqlite"
    assert (
        as_nobody(new)
        == f"book-unwritable: the book {new} cannot be used: Permission denied; nothing was changed"
    )
    path.parent.chmod(0o700)
    assert "Permission denied" in as_nobody(path)


@as_root
def test_a_read_only_folder_of_our_own_is_named(open_folder: Path) -> None:
    place = open_folder / "theirs"
    place.mkdir()
    os.chown(place, 65534, 65534)
    path = place / "book.sqlite"
    assert as_nobody(path) == "opened"
    place.chmod(0o555)
    said = as_nobody(path)
    assert said.startswith(f"book-unwritable: the book {path}")
    assert "read-only" in said or "not writable" in said
