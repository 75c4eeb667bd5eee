"""A child's own mounts: over what is there, seen by nobody else, for root and for others."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aliquot.model import AliquotError, Mount
from aliquot.node.private_mounts import PrivateMounts, enter, fixed_path, why_not
from aliquot.node.supervising import NotReadyError, fork_waiting

NOBODY = 65534
PR_SET_DUMPABLE = 4

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no mount namespaces here: {why_not()}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, with a file to cover and two to cover it with."""
    folder = Path(tempfile.mkdtemp(prefix="aliquot-test-"))
    folder.chmod(0o755)
    for name in ("driver", "governor", "limits"):
        (folder / name).write_text(name)
    (folder / "share").mkdir()
    if os.geteuid() == 0:
        os.chown(folder / "share", NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def private(place: Path) -> PrivateMounts:
    where = str(place / "share")
    return PrivateMounts(
        where,
        (
            Mount(str(place / "limits"), f"{where}/limits"),
            Mount(str(place / "driver"), f"{where}/driver/libcuda.so.1"),
            Mount(str(place / "governor"), str(place / "driver")),
        ),
    )


def become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        # As after an exec: until then /proc/self is root's.
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


@pytest.mark.parametrize("first", [lambda: None, become_nobody], ids=["as it is", "without root"])
def test_a_child_sees_the_governor_over_the_driver_and_the_driver_in_its_share(
    place: Path, first: Callable[[], None]
) -> None:
    def ready() -> None:
        first()
        enter(private(place))

    script = (
        f'cd {place}; test "$(cat driver)" = governor && test "$(cat share/driver/libcuda.so.1)" = driver'
    )
    readonly = "! { echo more > share/limits; } 2>/dev/null && ! { touch share/new; } 2>/dev/null"
    same = f"test $(id -u) = {NOBODY if first is become_nobody and os.geteuid() == 0 else os.geteuid()}"
    child = fork_waiting(["sh", "-c", f"{script} && {readonly} && {same}"], os.environ, ready=ready)
    assert (place / "driver").read_text() == "driver"  # its mounts are made by now
    assert str(place) not in Path("/proc/self/mountinfo").read_text()
    assert child.go() == 0
    assert list((place / "share").iterdir()) == []


def test_a_mount_made_outside_later_arrives_inside(place: Path) -> None:
    """The user plugs in a disk: his programs see it. Ours never leave."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts anything outside")
    later = place / "later"
    later.mkdir()
    subprocess.run(["mount", "--bind", "--make-shared", later, later], check=True)
    try:
        child = fork_waiting(
            ["test", "-e", str(later / "inner" / "here")], os.environ, ready=lambda: enter(private(place))
        )
        (later / "inner").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", later / "inner"], check=True)
        (later / "inner" / "here").touch()
        assert child.go() == 0
    finally:
        subprocess.run(["umount", "-R", later], check=False)


def test_what_cannot_be_mounted_is_told_by_its_step(place: Path) -> None:
    gone = PrivateMounts(str(place / "share"), (Mount(str(place / "gone"), str(place / "driver")),))
    with pytest.raises(NotReadyError, match=r"mount .*/driver: No such file or directory"):
        fork_waiting(["true"], os.environ, ready=lambda: enter(gone))


def test_a_fixed_path_that_somebody_else_made_is_refused(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setattr("aliquot.node.private_mounts.runtime_in_tmp", lambda _: place / "his")
    (place / "his").symlink_to(place / "share")
    with pytest.raises(AliquotError, match="not a folder of ours alone"):
        fixed_path(NOBODY)
