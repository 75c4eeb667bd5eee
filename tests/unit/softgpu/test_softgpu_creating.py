"""Making software GPUs: whole or not at all, each with an identity of its own."""

import os
import re
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aliquot.model import GIB, MIB, AliquotError, Bytes, Reason
from aliquot.softgpu import SoftGpu, create, list_devices, profile_names, read_profile
from aliquot.softgpu.devices import parse_device_text

AT = 1_700_000_000_000_000_000


def random_number() -> int:
    return int.from_bytes(os.urandom(16), "big")


def make(
    root: Path,
    *,
    profile: str = "tiny",
    count: int = 1,
    memory: int | None = None,
    entropy: Callable[[], int] = random_number,
    taken: tuple[str, ...] = (),
) -> tuple[SoftGpu, ...]:
    return create(
        root,
        profile=profile,
        count=count,
        memory=None if memory is None else Bytes(memory),
        at=AT,
        entropy=entropy,
        taken_pci_ids=taken,
    )


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_created_device_is_listed_with_the_figures_of_its_profile(tmp_path: Path) -> None:
    (made,) = make(tmp_path / "softgpu", profile="T4")
    (listed,) = list_devices(tmp_path / "softgpu")
    assert listed == made
    assert listed.fault is None
    assert listed.name == "Tesla T4 (software)"
    assert listed.profile == "T4"
    assert listed.memory == 15 * GIB
    assert listed.compute_capability == (7, 5)
    assert listed.multiprocessors == 40
    assert listed.created_at == AT
    assert re.fullmatch(
        r"GPU-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", listed.uuid
    )
    assert listed.folder == tmp_path / "softgpu" / listed.uuid


def test_the_device_file_has_every_key_that_the_driver_reads(tmp_path: Path) -> None:
    (made,) = make(tmp_path / "softgpu", profile="H100")
    pairs = parse_device_text((made.folder / "device").read_text())
    required = """uuid name profile pci_id created_ns memory_bytes memory_reserved_bytes context_bytes
        compute_major compute_minor multiprocessors clock_khz memory_clock_khz bus_width_bits l2_bytes
        shared_per_block_bytes shared_per_block_optin_bytes shared_per_multiprocessor_bytes
        registers_per_block threads_per_multiprocessor blocks_per_multiprocessor power_limit_mw
        fp32_lanes_per_multiprocessor host_link_mb_per_s launch_ns"""
    assert set(required.split()) <= set(pairs)
    numbers = set(required.split()) - {"uuid", "name", "profile", "pci_id"}
    assert all(int(pairs[key]) > 0 or key == "compute_minor" for key in numbers)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, mask: int) -> None:
    root = tmp_path / "softgpu"
    with umask(mask):
        (made,) = make(root)
    assert mode(root) == 0o700
    assert mode(made.folder) == 0o755
    assert mode(made.folder / "device") == 0o644
    assert {name: mode(made.folder / name) for name in ("arena", "state", "log")} == dict.fromkeys(
        ("arena", "state", "log"), 0o666
    )


def test_the_arena_is_as_long_as_the_memory_and_takes_no_space(tmp_path: Path) -> None:
    (made,) = make(tmp_path / "softgpu", profile="H100")
    found = (made.folder / "arena").stat()
    assert found.st_size == made.memory == 81558 * MIB
    assert found.st_blocks == 0


def test_several_at_once_have_different_uuids_and_pci_ids(tmp_path: Path) -> None:
    made = make(tmp_path / "softgpu", count=40)
    assert len({one.uuid for one in made}) == 40
    assert len({one.pci_id for one in made}) == 40
    assert list(made) == sorted(made, key=lambda one: one.pci_id or "")


def test_a_pci_id_that_a_card_or_another_device_has_is_not_given_out(tmp_path: Path) -> None:
    root = tmp_path / "softgpu"
    (first,) = make(root)
    assert first.pci_id == "0000:ff:00.0"
    (second,) = make(root, taken=("0000:ff:01.0",))
    assert second.pci_id == "0000:ff:02.0"


def test_a_hole_in_the_pci_ids_is_filled_first(tmp_path: Path) -> None:
    root = tmp_path / "softgpu"
    first, *_ = make(root, count=3)
    for name in ("device", "arena", "state", "log"):
        (first.folder / name).unlink()
    first.folder.rmdir()
    (again,) = make(root)
    assert again.pci_id == first.pci_id


def test_devices_made_at_the_same_time_never_share_a_pci_id(tmp_path: Path) -> None:
    root = tmp_path / "softgpu"
    threads = [threading.Thread(target=make, args=(root,), kwargs={"count": 3}) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.pci_id for one in list_devices(root)}) == 18


def test_more_devices_than_there_are_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AliquotError, match="64 is the most") as refused:
        make(tmp_path / "softgpu", count=65)
    assert refused.value.reason is Reason.BAD_USAGE
    assert list_devices(tmp_path / "softgpu") == ()


def test_an_unknown_profile_is_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(AliquotError, match="no profile 'B9000'") as refused:
        make(tmp_path / "softgpu", profile="B9000")
    assert refused.value.reason is Reason.BAD_PROFILE
    assert all(any(name in fact for fact in refused.value.facts) for name in profile_names())
    assert not (tmp_path / "softgpu").exists()


@pytest.mark.parametrize("count", [0, -1])
def test_no_device_at_all_is_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(AliquotError, match="at least 1"):
        make(tmp_path / "softgpu", count=count)


@pytest.mark.parametrize("memory", [0, 1, 62 * MIB, 65 * MIB, 64 * MIB + 1, -2 * MIB])
def test_memory_that_cannot_be_is_refused(tmp_path: Path, memory: int) -> None:
    with pytest.raises(AliquotError, match="at least 64MiB, in steps of 2MiB") as refused:
        make(tmp_path / "softgpu", memory=memory)
    assert refused.value.reason is Reason.BAD_USAGE


@pytest.mark.parametrize("name", profile_names())
@pytest.mark.parametrize("memory", [64 * MIB, GIB, 1024 * GIB])
def test_a_device_of_any_size_has_room_for_contexts(name: str, memory: int) -> None:
    profile = read_profile(name).scaled(Bytes(memory))
    assert profile.memory == memory
    assert profile.memory_reserved + 4 * profile.context_bytes < memory
    assert profile.context_bytes >= 2 * MIB


@pytest.mark.parametrize("name", profile_names())
@pytest.mark.parametrize("memory", [None, 66 * MIB, 1022 * MIB])
def test_all_sizes_are_whole_chunks_of_the_driver(name: str, memory: int | None) -> None:
    profile = read_profile(name)
    if memory is not None:
        profile = profile.scaled(Bytes(memory))
    sizes = (profile.memory, profile.memory_reserved, profile.context_bytes)
    assert [size % (2 * MIB) for size in sizes] == [0, 0, 0]


def test_memory_beyond_the_file_systems_limit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "softgpu"
    with pytest.raises(AliquotError, match="cannot hold a file of") as refused:
        make(root, memory=1 << 63)
    assert refused.value.reason is Reason.FILES_UNWRITABLE
    assert list(root.iterdir()) == []


def test_a_failure_at_the_third_of_four_leaves_none(tmp_path: Path) -> None:
    root = tmp_path / "softgpu"
    drawn = 0

    def failing() -> int:
        nonlocal drawn
        drawn += 1
        if drawn == 3:
            raise OSError(28, "No space left on device")
        return random_number()

    with pytest.raises(AliquotError, match="No space left on device"):
        make(root, count=4, entropy=failing)
    assert list(root.iterdir()) == []


def test_a_uuid_drawn_twice_fails_and_keeps_the_first_device(tmp_path: Path) -> None:
    root = tmp_path / "softgpu"
    (first,) = make(root, entropy=lambda: 1)
    (first.folder / "state").write_bytes(b"in use")
    with pytest.raises(AliquotError) as refused:
        make(root, entropy=lambda: 1)
    assert refused.value.reason is Reason.FILES_UNWRITABLE
    assert [one.uuid for one in list_devices(root)] == [first.uuid]
    assert (first.folder / "state").read_bytes() == b"in use"


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "softgpu").write_text("")
    with pytest.raises(AliquotError) as refused:
        make(tmp_path / "softgpu")
    assert refused.value.reason is Reason.FILES_UNWRITABLE


def test_a_full_disk_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    """The kernel's own EFBIG, through a limit on the size of files, stands for the disk."""
    root = tmp_path / "softgpu"
    program = f"""
import os, resource, signal
from pathlib import Path
from aliquot.model import AliquotError
from aliquot.softgpu import create
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    create(Path({str(root)!r}), profile="tiny", at=1, entropy=lambda: 1)
except AliquotError as error:
    print(error.reason.code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "files-unwritable\n"
    assert list(root.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096  # of the child alone


def test_what_a_killed_create_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    root = tmp_path / "softgpu"
    left = root / ".new-GPU-00000000-0000-4000-8000-000000000000"
    left.mkdir(parents=True)
    (left / "arena").write_bytes(b"")
    assert list_devices(root) == ()
    make(root)
    assert not left.exists()


def test_a_profile_is_found_in_any_case_and_by_its_alias() -> None:
    assert read_profile("t4") == read_profile("T4")
    assert read_profile("A100") == read_profile("a100-40")


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_says_in_its_name_that_it_is_software(name: str) -> None:
    assert read_profile(name).name.endswith(" (software)")
