"""The share's files from Python's side: limits, ledger, and nonsense in either."""

import fcntl
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.native.governor.shares import ROOT, UUIDS, a_lease, some_gpus

from aliquot.enforcement import (
    abi,
    achievable_isolation,
    build_of,
    create_ledger,
    governor_folder,
    limits_agree,
    live_slots,
    read_ledger,
    write_limits,
)
from aliquot.model import (
    GIB,
    AliquotError,
    Attestation,
    Bytes,
    GpuUuid,
    Isolation,
    LeaseId,
    LedgerDevice,
    LedgerSlot,
    Policy,
    Reason,
    Share,
    Thousandths,
    Unknown,
)

GOLDEN = Path(__file__).with_name("golden")
LEASE = replace(a_lease({UUIDS[0]: 5 * GIB, UUIDS[3]: None}), id=LeaseId("k7wpq"))


def _bytes_of(make: Callable[[Path], None], folder: Path) -> bytes:
    path = folder / "file"
    make(path)
    return path.read_bytes()


def test_limits_are_these_bytes(tmp_path: Path) -> None:
    """A change here is a change of what every running tenant and older governor reads."""
    made = _bytes_of(lambda path: write_limits(path, lease=LEASE, gpus=some_gpus(300 << 20)), tmp_path)
    assert made.hex() == (GOLDEN / "limits.hex").read_text().strip()


def test_a_new_ledger_is_these_bytes(tmp_path: Path) -> None:
    made = _bytes_of(lambda path: create_ledger(path, devices=2), tmp_path)
    assert made[:64].hex() == (GOLDEN / "ledger-head.hex").read_text().strip()
    assert len(made) == 313_408
    assert not any(made[64:])


def test_the_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate_abi.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_c_reads_the_golden_bytes_as_they_were_meant(tmp_path: Path) -> None:
    limits, ledger = tmp_path / "limits", tmp_path / "ledger"
    limits.write_bytes(bytes.fromhex((GOLDEN / "limits.hex").read_text()))
    create_ledger(ledger, devices=2)
    source = tmp_path / "read.c"
    source.write_text(
        """
#include <stdio.h>
#include "aliquot_abi.h"
int main(int count, char **arguments) {
  static aliquot_limits l; static aliquot_ledger g; (void)count;
  FILE *f = fopen(arguments[1], "rb"), *h = fopen(arguments[2], "rb");
  if (fread(&l, sizeof l, 1, f) != 1 || fgetc(f) != EOF) return 1;
  if (fread(&g, sizeof g, 1, h) != 1 || fgetc(h) != EOF) return 2;
  printf("%.8s %u %u %u %u %s %u %u", l.magic, l.version, l.size, l.minimum_reader, l.sequence, l.lease,
         l.device_count, l.flags);
  for (unsigned d = 0; d < 3; d++)
    printf("|%s %llu %llu %u %u", l.devices[d].uuid, (unsigned long long)l.devices[d].memory,
           (unsigned long long)l.devices[d].context_bytes, l.devices[d].compute, l.devices[d].flags);
  printf("|%.8s %u %u %u %u %u %u", g.magic, g.version, g.size, g.minimum_reader, g.slot_count,
         g.device_count, g.high_water);
  return 0; }
"""
    )
    program = tmp_path / "read"
    subprocess.run(["cc", "-Wall", "-Werror", f"-I{ROOT / 'native/abi'}", source, "-o", program], check=True)
    said = subprocess.run([program, limits, ledger], check=True, capture_output=True, text=True).stdout
    assert said.split("|") == [
        "ALQLIMIT 1 2112 1 0 k7wpq 2 0",
        f"{UUIDS[0]} {5 * GIB} {300 << 20} 250 0",
        f"{UUIDS[3]} {2**64 - 1} {300 << 20} 250 0",
        " 0 0 0 0",
        "ALQLEDGR 1 313408 1 256 2 0",
    ]


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    for umask in (0o077, 0o000):
        before = os.umask(umask)
        try:
            write_limits(tmp_path / f"limits{umask}", lease=LEASE, gpus={})
            create_ledger(tmp_path / f"ledger{umask}", devices=1)
        finally:
            os.umask(before)
        assert (tmp_path / f"limits{umask}").stat().st_mode & 0o7777 == 0o444
        assert (tmp_path / f"ledger{umask}").stat().st_mode & 0o7777 == 0o666


def test_a_change_keeps_the_inode_the_mode_and_an_even_sequence(tmp_path: Path) -> None:
    path = tmp_path / "limits"
    write_limits(path, lease=LEASE, gpus={})
    before = path.stat()
    smaller = replace(LEASE, shares=(replace(LEASE.shares[0], memory=Bytes(GIB)), LEASE.shares[1]))
    write_limits(path, lease=smaller, gpus=some_gpus(7))
    after, content = path.stat(), path.read_bytes()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert struct.unpack_from("<I", content, abi.Limits.SEQUENCE.offset) == (2,)
    fresh = _bytes_of(lambda new: write_limits(new, lease=smaller, gpus=some_gpus(7)), tmp_path)
    assert content[64:] == fresh[64:]


@pytest.mark.parametrize(
    ("policy", "paused", "written"),
    [
        (Policy.FAIR, False, (0, 0, 0)),
        (Policy.CAP, True, (1, 1, 0)),
        (Policy.PRIORITY, False, (0, 2, 1)),
    ],
)
def test_policy_rank_and_pause_are_written_and_changed_in_place(
    tmp_path: Path, policy: Policy, paused: bool, written: tuple[int, int, int]
) -> None:
    fresh, changed = tmp_path / "fresh", tmp_path / "changed"
    write_limits(fresh, lease=replace(LEASE, policy=policy), gpus={}, paused=paused)
    for before in (Policy.FAIR, Policy.PRIORITY):
        changed.unlink(missing_ok=True)
        write_limits(changed, lease=replace(LEASE, policy=before), gpus={}, paused=not paused)
        write_limits(changed, lease=replace(LEASE, policy=policy), gpus={}, paused=paused)
        for path in (fresh, changed):
            file = path.read_bytes()
            base = abi.Limits.DEVICES.offset + abi.LimitsDevice.RECORD_SIZE  # the second device
            assert written == (
                struct.unpack_from("<I", file, abi.Limits.FLAGS.offset)[0],
                struct.unpack_from("<I", file, base + abi.LimitsDevice.POLICY.offset)[0],
                struct.unpack_from("<I", file, base + abi.LimitsDevice.RANK.offset)[0],
            )


@pytest.mark.parametrize(
    "other",
    [
        replace(LEASE, id=LeaseId("zzzzz")),
        replace(LEASE, shares=LEASE.shares[:1]),
        replace(LEASE, shares=LEASE.shares[::-1]),
    ],
)
def test_the_limits_of_another_lease_are_not_overwritten(tmp_path: Path, other: object) -> None:
    path = tmp_path / "limits"
    write_limits(path, lease=LEASE, gpus={})
    before = path.read_bytes()
    with pytest.raises(AliquotError, match="another lease"):
        write_limits(path, lease=other, gpus={})  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o444


def test_whether_unknown_functions_pass_is_a_flag_beside_the_pause(tmp_path: Path) -> None:
    path = tmp_path / "limits"
    passing = replace(LEASE, unknown=Unknown.PASS)
    write_limits(path, lease=passing, gpus={})
    flags = abi.Limits.FLAGS.offset
    assert struct.unpack_from("<I", path.read_bytes(), flags) == (2,)
    assert limits_agree(path, passing)
    assert limits_agree(path, LEASE) is False
    write_limits(path, lease=passing, gpus={}, paused=True)
    assert struct.unpack_from("<I", path.read_bytes(), flags) == (3,)
    write_limits(path, lease=LEASE, gpus={})
    assert struct.unpack_from("<I", path.read_bytes(), flags) == (0,)


def test_too_many_devices_are_refused(tmp_path: Path) -> None:
    shares = tuple(Share(GpuUuid(f"GPU-{n}"), Bytes(1), Thousandths(1)) for n in range(17))
    with pytest.raises(AliquotError, match="17 GPUs"):
        write_limits(tmp_path / "limits", lease=replace(LEASE, shares=shares), gpus={})


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    makers: tuple[Callable[[Path], None], ...] = (
        lambda path: write_limits(path, lease=LEASE, gpus={}),
        lambda path: create_ledger(path, devices=1),
    )
    for make in makers:
        with pytest.raises(AliquotError) as caught:
            make(tmp_path / "missing" / "file")
        assert caught.value.reason is Reason.FILES_UNWRITABLE
        assert "missing" in caught.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists() or os.geteuid() != 0, reason="mounts a small tmpfs")
def test_a_full_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "none", small], capture_output=True
    ).returncode:
        pytest.skip("mount is not allowed here")
    try:
        with pytest.raises(AliquotError, match="No space"):
            create_ledger(small / "ledger", devices=1)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_ledger_that_exists_stays(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=2)
    inode = path.stat().st_ino
    create_ledger(path, devices=2)
    assert path.stat().st_ino == inode


def test_compute_charged_is_read_and_nonsense_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=2)
    slot, device = abi.Ledger.SLOTS.offset, abi.Ledger.DEVICES.offset + abi.LedgerDevice.RECORD_SIZE
    for value, told in ((5_000_000_000, 5_000_000_000), ((1 << 64) - 1, None)):
        with path.open("r+b") as file:
            for at in (slot + abi.Slot.COMPUTE.offset, device + abi.LedgerDevice.COMPUTE.offset):
                file.seek(at)
                file.write(struct.pack("<Q", value))
            file.seek(slot + abi.Slot.PID.offset)
            file.write(struct.pack("<Q", 77))
        ledger = read_ledger(path)
        assert ledger is not None
        assert ledger.slots[0].compute_ns == told
        assert [device.compute_ns for device in ledger.devices] == [0, told]


def test_a_missing_ledger_is_none(tmp_path: Path) -> None:
    assert read_ledger(tmp_path / "ledger") is None


def _slot(path: Path, index: int, *, pid: int, used: int, integral: float = 0.0, changed: int = 0) -> int:
    base = abi.Ledger.SLOTS.offset + index * abi.Slot.RECORD_SIZE
    with path.open("r+b") as file:
        for field, value in (
            (abi.Slot.PID, pid),
            (abi.Slot.USED, used),
            (abi.Slot.BYTE_SECONDS, integral),
            (abi.Slot.CHANGED, changed),
        ):
            file.seek(base + field.offset)
            file.write(struct.pack(field.code, value))
    return base


def test_a_slot_is_these_bytes(tmp_path: Path) -> None:
    """As a governor writes it: what an older or newer Aliquot finds in a running tenant's slot."""
    path = tmp_path / "ledger"
    create_ledger(path, devices=2)
    slot = bytes.fromhex((GOLDEN / "slot.hex").read_text())
    assert len(slot) == abi.Slot.RECORD_SIZE
    with path.open("r+b") as file:
        file.seek(abi.Ledger.SLOTS.offset + abi.Slot.RECORD_SIZE)
        file.write(slot)
    ledger = read_ledger(path)
    assert ledger is not None
    assert ledger.slots == (
        LedgerSlot(
            pid=4711,
            start_time=123456,
            pid_namespace=4026531836,
            alive=False,
            used=(Bytes(5 * GIB), Bytes(7)),
            compute_ns=99,
            attestation=Attestation(
                build="0123456789abcdef", version="1.2.3", memory=True, compute=True, limits_seen=6
            ),
            index=1,
            taken=(Bytes(0), Bytes(0)),
        ),
    )


def test_a_slot_of_a_governor_that_attests_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    _slot(path, 0, pid=7, used=1)
    ledger = read_ledger(path)
    assert ledger is not None
    assert [slot.attestation for slot in ledger.slots] == [None]


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 500, b"text" * 99]
)
def test_what_is_no_library_has_no_build(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert build_of(tmp_path / "file") is None
    assert build_of(tmp_path / "missing") is None


def test_use_is_the_sum_of_live_slots_and_byte_seconds_run_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    begun = time.monotonic_ns()
    base = _slot(path, 3, pid=100, used=1000, integral=5.0, changed=begun - 10**9)
    _slot(path, 200, pid=101, used=50, integral=2.0, changed=begun - 10**9)
    descriptor = os.open(path, os.O_RDWR)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, base, 1, 0))
    try:
        ledger = read_ledger(path)
        late = (time.monotonic_ns() - begun) / 1e9
    finally:
        os.close(descriptor)
    assert ledger is not None
    assert [(slot.pid, slot.alive, slot.used) for slot in ledger.slots] == [
        (100, True, (1000,)),
        (101, False, (50,)),
    ]
    assert ledger.devices[0].used == 1000
    assert ledger.devices[0].byte_seconds is not None
    assert 1057.0 <= ledger.devices[0].byte_seconds <= 1057.0 + 1050 * late
    after = read_ledger(path)
    assert after is not None
    assert after.devices[0].used == 0, "the lock went with its holder"


@given(seed=st.integers(0, 10**6), dense=st.booleans(), devices=st.none() | st.integers(1, 16))
def test_nonsense_past_the_head_never_raises_and_is_none(
    tmp_path_factory: pytest.TempPathFactory, seed: int, dense: bool, devices: int | None
) -> None:
    path = tmp_path_factory.mktemp("nonsense") / "ledger"
    create_ledger(path, devices=5)
    chance = random.Random(seed)
    with path.open("r+b") as file:
        file.seek(64)
        size = abi.Ledger.RECORD_SIZE - 64
        file.write(
            chance.randbytes(size) if dense else bytes(max(0, byte - 250) for byte in chance.randbytes(size))
        )
    ledger = read_ledger(path, devices=devices)
    path.unlink()
    assert ledger is not None
    assert len(ledger.devices) == (5 if devices is None else devices)
    for device in ledger.devices:
        assert device.used is None or 0 <= device.used <= 1 << 50
        assert device.peak is None or 0 <= device.peak <= 1 << 50
        assert device.byte_seconds is None or 0 <= device.byte_seconds <= 1e24
        assert device.denied is None or 0 <= device.denied <= 1 << 53
    assert not any(slot.alive for slot in ledger.slots)


@given(seed=st.integers(0, 10**6), size=st.integers(0, abi.Ledger.RECORD_SIZE + 100))
def test_a_file_of_nonsense_is_no_ledger(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int
) -> None:
    path = tmp_path_factory.mktemp("nonsense") / "ledger"
    path.write_bytes(random.Random(seed).randbytes(size))
    assert read_ledger(path, devices=1) is None
    path.unlink()


HEADS: dict[str, Callable[[bytearray], object]] = {
    "empty": lambda file: file.clear(),
    "cut short by a byte": lambda file: file.pop(),
    "cut to its head": lambda file: file.__delitem__(slice(64, None)),
    "zeros": lambda file: file.__setitem__(slice(None), bytes(len(file))),
    "of another magic": lambda file: file.__setitem__(0, 0x41 ^ 1),
    "the limits": lambda file: file.__setitem__(slice(0, 8), abi.LIMITS_MAGIC),
    "of version 0": lambda file: struct.pack_into("<I", file, abi.Ledger.VERSION.offset, 0),
    "of a layout too new": lambda file: struct.pack_into("<III", file, 8, 9, len(file), abi.VERSION + 1),
    "of another size": lambda file: struct.pack_into("<I", file, abi.Ledger.SIZE.offset, 64),
    "without slots": lambda file: struct.pack_into("<I", file, abi.Ledger.SLOT_COUNT.offset, 0),
    "of too many devices": lambda file: struct.pack_into("<I", file, abi.Ledger.DEVICE_COUNT.offset, 17),
}


@pytest.mark.parametrize("fault", HEADS)
def test_what_is_no_ledger_is_unknown_and_never_zeros_yet_its_living_are_counted(
    tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    _slot(path, 3, pid=100, used=1000)
    assert read_ledger(path, devices=1) is not None
    content = bytearray(path.read_bytes())
    HEADS[fault](content)
    base = abi.Ledger.SLOTS.offset + 3 * abi.Slot.RECORD_SIZE
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(content)
        file.flush()
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, base, 1, 0))
        assert read_ledger(path, devices=1) is None
        assert read_ledger(path) is None
        assert live_slots(path) == 1
    assert live_slots(path) == 0


def test_a_newer_ledger_that_says_so_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    content = bytearray(path.read_bytes()) + bytes(64)
    struct.pack_into("<II", content, abi.Ledger.VERSION.offset, abi.VERSION + 1, len(content))
    path.write_bytes(content)
    assert read_ledger(path) is not None


def test_of_a_missing_file_nobody_knows_who_lives(tmp_path: Path) -> None:
    assert live_slots(tmp_path / "ledger") is None


def _device_says(path: Path, field: abi.Field, value: float) -> None:
    with path.open("r+b") as file:
        file.seek(abi.Ledger.DEVICES.offset + field.offset)
        file.write(struct.pack(field.code, value))


def test_a_figure_that_cannot_be_is_unknown_and_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    _device_says(path, abi.LedgerDevice.DENIED, 9 * 10**18)
    _device_says(path, abi.LedgerDevice.PEAK, 700)
    ledger = read_ledger(path)
    assert ledger is not None
    assert ledger.devices == (
        LedgerDevice(used=Bytes(0), peak=Bytes(700), byte_seconds=0.0, denied=None, compute_ns=0),
    )
    _device_says(path, abi.LedgerDevice.DENIED, 1 << 53)
    _device_says(path, abi.LedgerDevice.PEAK, (1 << 50) + 1)
    _device_says(path, abi.LedgerDevice.RETIRED, float("nan"))
    ledger = read_ledger(path)
    assert ledger is not None
    assert ledger.devices == (
        LedgerDevice(used=Bytes(0), peak=None, byte_seconds=None, denied=1 << 53, compute_ns=0),
    )


@pytest.mark.parametrize("integral", [float("inf"), float("-inf"), float("nan"), -1.0, 1e25])
def test_a_sum_with_an_unknown_part_is_unknown(tmp_path: Path, integral: float) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    _slot(path, 3, pid=100, used=1000, integral=5.0)
    _slot(path, 4, pid=101, used=(1 << 64) - 1, integral=integral)
    ledger = read_ledger(path)
    assert ledger is not None
    assert [slot.used for slot in ledger.slots] == [(1000,), (None,)]
    assert (ledger.devices[0].byte_seconds, ledger.devices[0].used) == (None, 0), "both are dead"


@pytest.mark.parametrize("locked", [set(), {0}, {255}, {0, 1, 2}, {3, 100, 255}, set(range(256))])
def test_a_slot_lives_by_its_lock_alone_whatever_the_file_says(tmp_path: Path, locked: set[int]) -> None:
    """Locks of several holders, in no order: the kernel names any one of them first."""
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    holders = [os.open(path, os.O_RDWR) for _ in range(4)]
    for index in sorted(locked, key=lambda slot: slot * 7 % 11):
        base = abi.Ledger.SLOTS.offset + index * abi.Slot.RECORD_SIZE
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, base, 1, 0)
        fcntl.fcntl(holders[index % 4], fcntl.F_OFD_SETLK, lock)
    try:
        ledger = read_ledger(path)
    finally:
        for holder in holders:
            os.close(holder)
    assert ledger is not None
    assert [slot.alive for slot in ledger.slots] == [True] * len(locked)


def test_a_lock_over_everything_counts_every_slot_as_held(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        ledger = read_ledger(path)
    assert ledger is not None
    assert len(ledger.slots) == 256


def test_a_pipe_in_the_ledger_s_place_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ledger")
    assert read_ledger(tmp_path / "ledger") is None


def test_the_governor_s_folder_must_hold_both_libraries(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").touch()
    with pytest.raises(AliquotError, match=r"libnvidia-ml\.so\.1 not found") as caught:
        governor_folder(tmp_path)
    assert caught.value.reason is Reason.GOVERNOR_MISSING
    (tmp_path / "libnvidia-ml.so.1").touch()
    assert governor_folder(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("whole", "container", "isolation"),
    [
        (False, False, Isolation.ADVISORY),
        (True, False, Isolation.ADVISORY),
        (False, True, Isolation.SOFT),
        (True, True, Isolation.FIRM),
    ],
)
def test_isolation_is_what_truly_holds(whole: bool, container: bool, isolation: Isolation) -> None:
    assert achievable_isolation(whole=whole, container=container) is isolation
    passing = achievable_isolation(whole=whole, container=container, unknown_passes=True)
    assert passing is (isolation if whole else Isolation.ADVISORY)
