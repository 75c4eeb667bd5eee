"""Memory as file descriptors: who gets one from its own share holds it, from another it is refused."""

import subprocess
from pathlib import Path

import pytest
from tests.native.governor.shares import UUIDS, MakeShare, ShareOnDisk, line_of

from aliquot.model import MIB

GIVE = """
import socket
shareable = (ctypes.c_int * 8)(1, 1, 1, 0)
def give(path, descriptor, data=b"-"):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path); listener.listen(); say("listening")
        peer, _ = listener.accept()
        with peer:
            socket.send_fds(peer, [data], [descriptor])
    os.unlink(path)
begin()
"""
GIVE_MEMORY = (
    GIVE
    + """
handle, descriptor = ctypes.c_ulonglong(), ctypes.c_int(-1)
check(cuda.cuMemCreate(ref(handle), size(40 * MIB), shareable, ctypes.c_ulonglong(0)))
check(cuda.cuMemExportToShareableHandle(ref(descriptor), handle, 1, ctypes.c_ulonglong(0)))
def release():
    check(cuda.cuMemRelease(handle))
while True:
    words = input().split()
    if words[0] == "give":
        give(words[1], descriptor.value)
    elif words[0] == "close":
        os.close(descriptor.value); say(used() // MIB)
    elif words[0] == "release":
        release(); say(used() // MIB)
"""
)
TAKE = """
import socket
def take(path):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        data, (descriptor,), _, _ = socket.recv_fds(peer, 64, 1)
    return data, descriptor
def open_memory(descriptor):
    got = ctypes.c_ulonglong(0x77)
    return cuda.cuMemImportFromShareableHandle(ref(got), ctypes.c_void_p(descriptor), 1), got
begin()
"""
HOLD = (
    TAKE
    + """
_, descriptor = take(input())
r, got = open_memory(descriptor)
say([r, used() // MIB])
while True:
    word = input()
    if word == "close":
        os.close(descriptor)
    elif word == "release":
        check(cuda.cuMemRelease(got))
    say([used() // MIB, alloc(41 * MIB)[0]])
"""
)


def _used(share: ShareOnDisk) -> int:
    used = share.ledger().devices[0].used
    assert used is not None
    return used // MIB


def _ended(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def mail(tmp_path: Path) -> str:
    return str(tmp_path / "mail")


def test_two_processes_hold_memory_by_a_descriptor_and_it_counts_once(
    card_share: ShareOnDisk, mail: str
) -> None:
    giver, holder = card_share.start(GIVE_MEMORY), card_share.start(HOLD)
    assert line_of(giver, f"give {mail}") == "listening"
    assert line_of(holder, mail) == [0, 80], "two contexts and the memory, once"
    assert line_of(giver, "close") == 80
    assert line_of(giver, "release") == 80, "the holder's share pays on"
    assert _used(card_share) == 80
    assert line_of(holder, "release") == [80, 2], "its descriptor keeps the memory"
    assert line_of(holder, "close") == [40, 0], "no more, and what did not fit fits"
    _ended(giver, holder)
    assert _used(card_share) == 0


def test_memory_in_the_mail_stays_charged_when_its_owner_is_killed(
    card_share: ShareOnDisk, mail: str
) -> None:
    giver = card_share.start(GIVE_MEMORY)
    taker = card_share.start(
        TAKE + "_, descriptor = take(input()); say(0); input(); r, got = open_memory(descriptor)\n"
        "say([r, used() // MIB, alloc(41 * MIB)[0]]); input()\n"
        "os.close(descriptor); check(cuda.cuMemRelease(got)); say(alloc(80 * MIB)[0]); input()"
    )
    assert line_of(giver, f"give {mail}") == "listening"
    assert line_of(taker, mail) == 0
    _ended(giver)
    assert line_of(taker, "") == [0, 60, 2], "its own context, and the memory that the dead one left"
    assert line_of(taker, "") == 0
    _ended(taker)
    assert _used(card_share) == 0


def test_a_descriptor_of_another_share_is_refused(
    card_share: ShareOnDisk, make_share: MakeShare, mail: str
) -> None:
    other = make_share(memory={UUIDS[0]: 100 * MIB}, context_bytes=20 * MIB, build=card_share.built)
    (other.root / "driver" / "softgpu").symlink_to(card_share.root / "driver" / "softgpu")
    giver, taker = (
        card_share.start(GIVE_MEMORY),
        other.start(TAKE + "say(open_memory(take(input())[1])[0]); input()"),
    )
    assert line_of(giver, f"give {mail}") == "listening"
    assert line_of(taker, mail) == 801
    _ended(giver, taker)


def test_what_bears_no_name_is_refused_and_what_is_closed_is_invalid(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        TAKE
        + """
handle, descriptor = ctypes.c_ulonglong(), ctypes.c_int(-1)
other_kind = cuda.cuMemExportToShareableHandle(ref(descriptor), handle, 8, ctypes.c_ulonglong(0))
null = os.open("/dev/null", os.O_RDWR)
results = [open_memory(each)[0] for each in (null, 999, -1)]
say([*results, other_kind, descriptor.value, used() // MIB])
"""
    )
    assert seen == [801, 1, 1, 801, -1, 20]


def test_exporting_again_and_importing_one_s_own_count_once_and_leave_nothing(
    card_share: ShareOnDisk,
) -> None:
    seen = card_share.run(
        TAKE
        + """
shareable, d = (ctypes.c_int * 8)(1, 1, 1, 0), [ctypes.c_int(-1), ctypes.c_int(-1)]
def once():
    handle = ctypes.c_ulonglong()
    check(cuda.cuMemCreate(ref(handle), size(40 * MIB), shareable, ctypes.c_ulonglong(0)))
    for descriptor in d:
        check(cuda.cuMemExportToShareableHandle(ref(descriptor), handle, 1, ctypes.c_ulonglong(0)))
    own = [open_memory(descriptor.value) for descriptor in d]
    during = used() // MIB
    check(cuda.cuMemRelease(handle)); left = used() // MIB
    for descriptor in d:
        os.close(descriptor.value)
    for result, got in own:
        check(result or cuda.cuMemRelease(got))
    return [during, left, used() // MIB]
say([once() for _ in range(3)])
"""
    )
    assert seen == [[60, 60, 20]] * 3


GIVE_POOL = (
    GIVE
    + """
props = (ctypes.c_int * 22)(1, 1, 1, 0)
pool, descriptor = ctypes.c_void_p(), ctypes.c_int(-1)
got, data = ctypes.c_ulonglong(), (ctypes.c_ubyte * 64)()
check(cuda.cuMemPoolCreate(ref(pool), props))
check(cuda.cuMemAllocFromPoolAsync(ref(got), size(40 * MIB), pool, None))
check(cuda.cuMemPoolExportToShareableHandle(ref(descriptor), pool, 1, ctypes.c_ulonglong(0)))
check(cuda.cuMemPoolExportPointer(data, got))
give(input(), descriptor.value, bytes(data))
input(); say(used() // MIB); input()
"""
)
TAKE_POOL = (
    TAKE
    + """
data, descriptor = take(input())
pool, got, access = ctypes.c_void_p(0x77), ctypes.c_ulonglong(0x77), (ctypes.c_int * 3)(1, 0, 3)
os_handle = ctypes.c_void_p(descriptor)
results = [cuda.cuMemPoolImportFromShareableHandle(ref(pool), os_handle, 1, ctypes.c_ulonglong(0))]
if results == [0]:
    check(cuda.cuMemPoolSetAccess(pool, access, size(1)))
    results.append(cuda.cuMemPoolImportPointer(ref(got), pool, (ctypes.c_ubyte * 64)(*data)))
    results.append(used() // MIB)
say(results); input()
check(cuda.cuMemFreeAsync(got, None)); say(used() // MIB); input()
"""
)


def test_memory_of_a_pool_is_opened_within_the_share_and_refused_outside(
    card_share: ShareOnDisk, make_share: MakeShare, mail: str
) -> None:
    other = make_share(memory={UUIDS[0]: 100 * MIB}, context_bytes=20 * MIB, build=card_share.built)
    (other.root / "driver" / "softgpu").symlink_to(card_share.root / "driver" / "softgpu")
    giver, taker = card_share.start(GIVE_POOL), card_share.start(TAKE_POOL)
    assert line_of(giver, mail) == "listening"
    assert line_of(taker, mail) == [0, 0, 80]
    assert line_of(giver, "") == 80
    _ended(giver)
    assert _used(card_share) == 60, "its context, and the memory that the dead one left"
    assert line_of(taker, "") == 20
    _ended(taker)
    giver, taker = card_share.start(GIVE_POOL), other.start(TAKE_POOL)
    assert line_of(giver, mail) == "listening"
    assert line_of(taker, mail) == [801]
    _ended(giver, taker)
