"""Sets of software GPUs: several kinds at once, all or none, and found again by the name of the set."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from aliquot.model import MIB, AliquotError, Bytes, Reason
from aliquot.softgpu import SoftGpu, clear_leftovers, create_set, list_devices

MIXED = [(2, "tiny"), (1, "T4")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "softgpu"


def make(
    root: Path,
    wanted: list[tuple[int, str]] = MIXED,
    *,
    name: str | None = "lab",
    memory: int | None = None,
) -> tuple[SoftGpu, ...]:
    return create_set(
        root,
        wanted,
        name=name,
        memory=None if memory is None else Bytes(memory),
        at=1,
        entropy=lambda: uuid.uuid4().int,
    )


def test_a_mixed_set_has_all_that_was_asked_for_and_its_name(root: Path) -> None:
    made = make(root)
    assert sorted(one.profile or "" for one in made) == ["T4", "tiny", "tiny"]
    assert {one.set_name for one in made} == {"lab"}
    assert len({one.pci_id for one in made}) == 3
    assert list_devices(root) == made
    assert [entry for entry in root.iterdir() if entry.name.startswith(".")] == []


def test_devices_made_without_a_name_are_of_no_set(root: Path) -> None:
    make(root, name=None)
    assert {one.set_name for one in list_devices(root)} == {None}


def test_an_unknown_profile_among_several_makes_none(root: Path) -> None:
    with pytest.raises(AliquotError, match="no profile 'T9'"):
        make(root, [(2, "tiny"), (1, "T9")])
    assert list_devices(root) == ()


def test_more_than_there_are_places_for_makes_none(root: Path) -> None:
    make(root, [(3, "tiny")], name="first")
    with pytest.raises(AliquotError, match=r"62 more .* 64 is the most, 61 are left"):
        make(root, [(61, "tiny"), (1, "T4")])
    assert len(list_devices(root)) == 3


def test_a_memory_that_no_device_can_have_makes_none(root: Path) -> None:
    with pytest.raises(AliquotError, match="at least 64MiB"):
        make(root, memory=3 * MIB)
    assert list_devices(root) == ()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "1 to 32"),
        ("Lab", "small letters"),
        ("9lives", "a letter first"),
        ("a lab", "small letters"),
        ("x" * 33, "1 to 32"),
        ("../up", "small letters"),
        ("all", "every software GPU"),
        ("beef", "beginning of a UUID"),
        ("gpu-lab", "beginning of a UUID"),
    ],
)
def test_a_name_that_could_mean_something_else_is_refused_with_the_rule(
    root: Path, name: str, rule: str
) -> None:
    with pytest.raises(AliquotError, match=rule) as refused:
        make(root, name=name)
    assert refused.value.reason is Reason.BAD_USAGE
    assert repr(name) in refused.value.message
    assert list_devices(root) == ()


def test_a_name_is_taken_as_long_as_one_device_of_the_set_is_there(root: Path) -> None:
    make(root)
    with pytest.raises(AliquotError, match="a set 'lab' already: of 3"):
        make(root, [(1, "tiny")])
    assert len(list_devices(root)) == 3


KILLED = """
import os, signal, uuid
from pathlib import Path
from aliquot.softgpu import create_set
renamed = 0
def killing(old, new, rename=os.rename):
    global renamed
    if renamed == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(old, new)
    renamed += 1
os.rename = killing
create_set(Path({root!r}), [(2, "tiny"), (1, "T4")], name="lab", at=1, entropy=lambda: uuid.uuid4().int)
"""


def killed_create(root: Path, after: int) -> None:
    program = KILLED.format(root=str(root), after=after)
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("after", [0, 1, 2])
def test_of_a_create_that_was_killed_nothing_is_listed_and_the_next_command_leaves_nothing(
    root: Path, after: int
) -> None:
    (before,) = make(root, [(1, "tiny")], name="before")
    killed_create(root, after)
    assert list_devices(root) == (before,)
    clear_leftovers(root)
    assert [entry.name for entry in root.iterdir()] == [before.uuid]
    assert len(make(root)) == 3


def test_a_device_of_a_killed_create_that_a_program_is_on_goes_when_the_program_has_gone(root: Path) -> None:
    killed_create(root, 2)
    held = next(entry for entry in root.iterdir() if entry.name.startswith("GPU-"))
    with (held / "state").open("r+b") as state:
        fcntl.fcntl(state, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, (1 << 40) + 64, 1, 0))
        clear_leftovers(root)
        assert held.is_dir()
        assert list_devices(root) == ()
    clear_leftovers(root)
    assert list(root.iterdir()) == []


def test_what_is_being_made_at_this_moment_is_left_alone(root: Path) -> None:
    root.mkdir()
    (root / ".new-GPU-1").mkdir()
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        clear_leftovers(root)
        assert (root / ".new-GPU-1").is_dir()
    finally:
        os.close(descriptor)
    clear_leftovers(root)
    assert list(root.iterdir()) == []
