"""Copies of libraries: whole or absent, one a content, never changed."""

import os
from pathlib import Path

import pytest

from aliquot.model import AliquotError, Reason
from aliquot.node.libraries import ensure_copied


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "governor"
    folder.mkdir()
    (folder / "libcuda.so.1").write_bytes(b"one")
    (folder / "libnvidia-ml.so.1").write_bytes(b"two")
    return folder


def test_a_copy_is_complete_and_can_be_executed_by_anybody(source: Path, tmp_path: Path) -> None:
    copied = ensure_copied(source, tmp_path / "state" / "lib")
    assert sorted(path.name for path in copied.iterdir()) == ["libcuda.so.1", "libnvidia-ml.so.1"]
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in (copied, *copied.iterdir()))


def test_the_same_content_is_copied_once(source: Path, tmp_path: Path) -> None:
    first = ensure_copied(source, tmp_path / "lib")
    inode = (first / "libcuda.so.1").stat().st_ino
    assert ensure_copied(source, tmp_path / "lib") == first
    assert (first / "libcuda.so.1").stat().st_ino == inode


def test_an_upgrade_leaves_the_old_copy_as_it_was(source: Path, tmp_path: Path) -> None:
    old = ensure_copied(source, tmp_path / "lib")
    (source / "libcuda.so.1").write_bytes(b"newer")
    new = ensure_copied(source, tmp_path / "lib")
    assert new != old
    assert (old / "libcuda.so.1").read_bytes() == b"one"


def test_what_a_killed_copy_left_is_not_taken_for_the_copy(source: Path, tmp_path: Path) -> None:
    whole = ensure_copied(source, tmp_path / "lib")
    half = whole.parent / f".governor.{os.getpid()}"
    whole.rename(half)
    (half / "libcuda.so.1").unlink()
    assert (ensure_copied(source, tmp_path / "lib") / "libcuda.so.1").read_bytes() == b"one"
    assert not half.exists()


def test_a_place_that_cannot_be_written_is_named(source: Path, tmp_path: Path) -> None:
    (tmp_path / "lib").write_text("a file")
    with pytest.raises(AliquotError) as caught:
        ensure_copied(source, tmp_path / "lib")
    assert caught.value.reason is Reason.FILES_UNWRITABLE
    assert str(tmp_path / "lib") in caught.value.message
