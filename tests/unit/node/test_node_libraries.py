"""Copies of libraries: whole or absent, one a content, never changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aliquot.model import AliquotError, Reason
from aliquot.node.libraries import ensure_copied, prune_governors


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


# ---- old versions ----


@pytest.fixture
def versions(source: Path, tmp_path: Path) -> list[Path]:
    """Three versions of the governor, all of long ago."""
    made = []
    for content in (b"one", b"two", b"three"):
        (source / "libcuda.so.1").write_bytes(content)
        made.append(ensure_copied(source, tmp_path / "lib").parent)
        os.utime(made[-1], (0, 0))
    return made


def _left(versions: list[Path]) -> list[bool]:
    return [version.exists() for version in versions]


def test_versions_that_nothing_leads_to_are_removed(versions: list[Path], tmp_path: Path) -> None:
    share = tmp_path / "shares" / "k7wpq" / "lib"
    share.mkdir(parents=True)
    (share / "libcuda.so.1").symlink_to(versions[1] / "governor" / "libcuda.so.1")
    assert set(prune_governors(tmp_path / "lib", tmp_path / "shares")) == {versions[0], versions[2]}
    assert _left(versions) == [False, True, False]
    assert [path.name for path in (tmp_path / "lib").iterdir()] == [versions[1].name]
    assert prune_governors(tmp_path / "lib", tmp_path / "shares") == (), "the only one stays"


def test_a_version_that_was_just_asked_for_stays(versions: list[Path], source: Path, tmp_path: Path) -> None:
    ensure_copied(source, tmp_path / "lib")
    prune_governors(tmp_path / "lib", tmp_path / "shares")
    assert _left(versions) == [False, False, True]


@pytest.mark.parametrize("how", ["mapped", "environment"])
def test_what_a_running_program_uses_stays_though_its_share_is_gone(
    versions: list[Path], tmp_path: Path, how: str
) -> None:
    library = versions[0] / "governor" / "libcuda.so.1"
    library.write_bytes(bytes(4096))
    program = (
        "import mmap, sys\nif len(sys.argv) > 1:\n"
        "    file = open(sys.argv[1]); kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        "print(flush=True); sys.stdin.read()"
    )
    environ = dict(os.environ)
    if how == "environment":
        environ["LD_LIBRARY_PATH"] = str(library.parent) + "/"
    words = [sys.executable, "-c", program, *([str(library)] if how == "mapped" else [])]
    with subprocess.Popen(words, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        prune_governors(tmp_path / "lib", tmp_path / "shares")
        assert _left(versions) == [True, False, False]
        running.communicate()
    (source := tmp_path / "governor" / "libcuda.so.1").write_bytes(b"four")
    ensure_copied(source.parent, tmp_path / "lib")
    prune_governors(tmp_path / "lib", tmp_path / "shares")
    assert _left(versions) == [False, False, False]
