"""Several processes, threads, forks, kills, changes of the limits: the account stays true."""

import json
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.native.governor.shares import UUIDS, Built, MakeShare, ShareOnDisk, told

from aliquot.enforcement import abi
from aliquot.model import MIB
from generate_surface import CUDA_TABLE, read_table


def tenant(share: ShareOnDisk, built: Built, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [built.programs / "tenant", share.cuda, *arguments],
        env=share.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]", feed: str = "") -> str:
    out, err = process.communicate(feed, timeout=60)
    assert (process.returncode, err) == (0, ""), f"exit {process.returncode}: {err}"
    return out


def race(share: ShareOnDisk, built: Built, *, processes: int, seconds: str) -> tuple[int, int]:
    """(allocations taken, refused) of all."""
    racers = [tenant(share, built, "race", seconds, str(seed)) for seed in range(processes)]
    results = [[int(word) for word in finish(racer).split()] for racer in racers]
    return sum(taken for taken, _ in results), sum(refused for _, refused in results)


def test_eight_processes_at_the_limit_never_exceed_it_by_a_byte(make_share: MakeShare, built: Built) -> None:
    share = make_share(context_bytes=None)
    taken, refused = race(share, built, processes=8, seconds="1")
    assert taken > 100, "of which a loaded machine does not do many in a second"
    assert refused > 10, "they were at the limit"
    assert 95 * MIB <= share.most_really_used() <= 100 * MIB
    assert told(share.ledger().devices[0].peak) <= 100 * MIB
    assert share.really_used() == 0
    assert share.ledger().devices[0].used == 0


def twice_loaded(share: ShareOnDisk, built: Built, *, rounds: int) -> int:
    """Threads of one process at the limit, through two governors over one ledger; bytes not given back."""
    second = share.root / "second" / "libcuda.so.1"
    second.parent.mkdir()
    shutil.copy(share.cuda, second)
    return int(finish(tenant(share, built, "twice", str(second), str(rounds))))


def test_two_governors_in_one_process_hold_the_limit_together(share: ShareOnDisk, built: Built) -> None:
    assert twice_loaded(share, built, rounds=20000) == 0
    assert share.most_really_used() <= 80 * MIB, "besides a context for each"
    assert share.really_used() == 0


@pytest.mark.slow
def test_under_the_sanitizers_as_well(make_share: MakeShare, sanitized: Built, built: Built) -> None:
    mixed = Built(sanitized.governor, built.driver, sanitized.programs)
    race(make_share(build=mixed, context_bytes=None), sanitized, processes=4, seconds="1")
    share = make_share(build=mixed)
    assert finish(tenant(share, sanitized, "threads", "8", "2000")) == "0\n"
    assert finish(tenant(share, sanitized, "fork")) == "30\n70\n90\n"
    assert twice_loaded(share, sanitized, rounds=2000) == 0
    assert finish(tenant(share, sanitized, "nulls"), "\n".join(read_table(CUDA_TABLE)) + "\n") != ""


def test_eight_threads_leak_nothing(share: ShareOnDisk, built: Built) -> None:
    assert finish(tenant(share, built, "threads", "8", "20000")) == "0\n"
    assert share.really_used() == 0


def test_a_child_has_an_account_of_its_own_and_leaves_nothing_behind(
    share: ShareOnDisk, built: Built
) -> None:
    """Parent: context 10, memory 20. Its child: context 10, memory 30, and is killed."""
    assert finish(tenant(share, built, "fork")) == "30\n70\n90\n"


def test_memory_of_a_killed_process_is_free_at_once(share: ShareOnDisk) -> None:
    victim = share.start("begin()\nsay(alloc(80 * MIB)[0])\ninput()")
    assert victim.stdout is not None
    assert victim.stdout.readline() == "0\n"
    assert share.ledger().devices[0].used == 90 * MIB
    watcher = share.start(
        "begin(0) if False else check(cuda.cuInit(0))\nsay(0)\ninput()\nsay([retain(), alloc(80 * MIB)[0]])"
    )
    assert watcher.stdout is not None
    watcher.stdout.readline()
    victim.kill()
    victim.communicate()
    out, _ = watcher.communicate("\n", timeout=20)
    assert out == "[0, 0]\n"


def test_a_forked_child_that_lives_on_does_not_keep_its_dead_parent_s_memory(share: ShareOnDisk) -> None:
    process = share.start(
        """
begin(); check(alloc(50 * MIB)[0])
reader, writer = os.pipe()
if os.fork() == 0:
    os.read(reader, 1)   # lives until the test lets go of stdin
    input()
    os._exit(0)
say(os.getpid())
os.write(writer, b"x")
os.kill(os.getpid(), 9)
"""
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.wait(timeout=20)
    assert share.ledger().devices[0].used == 0
    assert share.run("begin()\nsay(alloc(90 * MIB)[0])") == 0
    process.communicate("\n", timeout=20)


def test_exec_ends_the_old_program_s_account(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin(); check(alloc(80 * MIB)[0])
import sys
os.execv(sys.executable, [sys.executable, "-c", '''
import ctypes, os
cuda = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")
c, p = ctypes.c_void_p(), ctypes.c_ulonglong()
r = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0), cuda.cuCtxSetCurrent(c)]
print([*r, cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(80 << 20))])
'''])
"""
    )
    assert seen == [0, 0, 0, 0]


def test_a_spawned_program_is_one_more_process_of_the_share(share: ShareOnDisk) -> None:
    """posix_spawn runs no handlers of fork: the new program starts anew, the old one keeps its account."""
    seen = share.run(
        """
begin(); check(alloc(20 * MIB)[0])
import sys
code = '''
import ctypes, os
cuda = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")
c, p = ctypes.c_void_p(), ctypes.c_ulonglong()
r = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0), cuda.cuCtxSetCurrent(c)]
r += [cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(n << 20)) for n in (61, 60)]
os._exit(0 if r == [0, 0, 0, 2, 0] else 1)
'''
for _ in range(2):
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    check(os.waitpid(child, 0)[1])
say([used() // MIB, alloc(70 * MIB)[0]])
"""
    )
    assert seen == [30, 0]


def test_killing_tenants_at_random_moments_never_drifts(share: ShareOnDisk, built: Built) -> None:
    chance = random.Random(5)
    for _ in range(12):
        victims = [tenant(share, built, "churn") for _ in range(2)]
        for victim in victims:
            assert victim.stdout is not None
            assert victim.stdout.readline() == "running\n"
        time.sleep(chance.random() * 0.02)  # the moment is the point, not a synchronisation
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
        for victim in victims:
            victim.communicate()
    ledger = share.ledger()
    assert ledger.devices[0].used == 0
    assert told(ledger.devices[0].byte_seconds) > 0
    assert share.run("begin()\nsay([used() // MIB, alloc(90 * MIB)[0]])") == [10, 0]
    assert sum(1 for slot in share.ledger().slots if slot.used[0]) <= 1, "the dead were cleared"


def test_a_change_of_the_limit_reaches_a_running_program(share: ShareOnDisk) -> None:
    process = share.start(
        """
begin(); check(alloc(50 * MIB)[0]); say(0)
for _ in range(2):
    input()
    say([n // MIB for n in info()] + [alloc(40 * MIB)[0], alloc(0x7fffffffffff)[0]])
"""
    )
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    share.change({UUIDS[0]: 30 * MIB})
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "[0, 30, 2, 2]\n", "less than is used: free is 0, and never an error"
    share.change({UUIDS[0]: 200 * MIB})
    out, _ = process.communicate("\n", timeout=20)
    assert out == "[140, 200, 0, 2]\n"


def test_readers_of_changing_limits_see_only_values_that_were_set(share: ShareOnDisk) -> None:
    process = share.start(
        """
begin()
say(0)
seen = set()
import select, sys
while not select.select([sys.stdin], [], [], 0)[0]:
    seen.add(info()[1] // MIB)
say(sorted(seen))
"""
    )
    assert process.stdout is not None
    process.stdout.readline()
    for round_ in range(300):
        share.change({UUIDS[0]: (100 + 100 * (round_ % 2)) * MIB})
    out, _ = process.communicate("\n", timeout=20)
    assert set(json.loads(out)) <= {100, 200}


def test_a_writer_that_died_half_way_leaves_the_last_limits_in_force(share: ShareOnDisk) -> None:
    process = share.start("begin()\nsay(0)\ninput()\nsay([info()[1] // MIB, alloc(91 * MIB)[0]])")
    assert process.stdout is not None
    process.stdout.readline()
    share.limits.chmod(0o644)
    with share.limits.open("r+b") as file:
        file.seek(abi.Limits.SEQUENCE.offset)
        file.write(b"\x01")
        file.seek(abi.Limits.DEVICES.offset + abi.LimitsDevice.MEMORY.offset)
        file.write((1 << 40).to_bytes(8, "little"))
    out, _ = process.communicate("\n", timeout=20)
    assert out == "[100, 2]\n"
    share.change({UUIDS[0]: 100 * MIB})
    assert share.run("begin()\nsay(info()[1] // MIB)") == 100


@pytest.mark.parametrize("seed", range(6))
def test_a_ledger_full_of_nonsense_crashes_nobody(share: ShareOnDisk, seed: int) -> None:
    """Its head is checked; past it, every number may be anything."""
    chance = random.Random(seed)
    process = share.start(
        "begin()\nsay(0)\ninput()\nr = [alloc(MIB)[0] in (0, 2), info()[0] >= 0]\n"
        "say(r)\nnvml_library().nvmlInit_v2()"
    )
    assert process.stdout is not None
    process.stdout.readline()
    size = abi.Ledger.RECORD_SIZE
    nonsense = b"\xff" * (size - 64) if seed == 0 else chance.randbytes(size - 64)
    with share.ledger_path.open("r+b") as file:
        file.seek(28)
        file.write(b"\xff\xff\xff\xff")
        file.seek(64)
        file.write(nonsense)
    out, err = process.communicate("\n", timeout=20)
    assert (process.returncode, out, err) == (0, "[true, true]\n", "")
    ledger = share.ledger()
    assert all(
        device.byte_seconds is None or 0 <= told(device.byte_seconds) <= 1e24 for device in ledger.devices
    )
    assert all(device.used is None or device.used <= 1 << 50 for device in ledger.devices)


def test_every_function_of_the_table_survives_nulls(share: ShareOnDisk, built: Built) -> None:
    """Refusals and errors are fine; a crash is not. Context switches of the sweep do not matter."""
    names = list(read_table(CUDA_TABLE))
    assert finish(tenant(share, built, "nulls"), "\n".join(names) + "\n") == f"{len(names)}\n"


def test_a_neighbour_s_use_is_seen_and_bounds_what_is_free(share: ShareOnDisk) -> None:
    neighbour = share.start("begin()\ncheck(alloc(30 * MIB)[0])\nsay(0)\ninput()")
    assert neighbour.stdout is not None
    neighbour.stdout.readline()
    assert share.run("begin()\nsay([used() // MIB, alloc(51 * MIB)[0], alloc(50 * MIB)[0]])") == [50, 2, 0]
    neighbour.communicate("\n", timeout=20)


def test_byte_seconds_add_up_over_processes_that_are_gone(share: ShareOnDisk) -> None:
    begun = time.monotonic()
    share.run("begin()\ncheck(alloc(90 * MIB)[0])\nimport time\ntime.sleep(0.2)\nsay(0)")
    share.run("begin()\ncheck(alloc(90 * MIB)[0])\nimport time\ntime.sleep(0.2)\nsay(0)")
    device = share.ledger().devices[0]
    assert 0.4 * 100 * MIB <= told(device.byte_seconds) <= (time.monotonic() - begun) * 100 * MIB
    assert device.peak == 100 * MIB


def test_the_slot_names_its_process(share: ShareOnDisk) -> None:
    process = share.start("begin()\nsay(os.getpid())\ninput()")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    stat = Path(f"/proc/{pid}/stat").read_text()
    (slot,) = share.ledger().slots
    assert (slot.pid, slot.alive, slot.used) == (pid, True, (10 * MIB,))
    assert slot.start_time == int(stat[stat.rindex(")") + 2 :].split()[19])
    assert slot.pid_namespace == Path(f"/proc/{pid}/ns/pid").stat().st_ino
    process.communicate("\n", timeout=20)
    assert [slot.alive for slot in share.ledger().slots] == [False]
