"""Starting: which devices are seen, and what is said where a share cannot start."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.governor.shares import UUIDS, MakeShare, ShareOnDisk

from aliquot.model import MIB

A, B, C, D = UUIDS
SEEN = """
result = cuda.cuInit(0)
uuids = []
count = ctypes.c_int()
if result == 0:
    check(cuda.cuDeviceGetCount(ctypes.byref(count)))
for ordinal in range(count.value):
    uuid = ctypes.create_string_buffer(16)
    check(cuda.cuDeviceGetUuid_v2(uuid, ordinal))
    uuids.append(uuid.raw[-1:].hex())
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
after = libc.getenv(b"CUDA_VISIBLE_DEVICES")
say([result, uuids, None if after is None else after.decode()])
"""


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        (None, ["c2", "a0", "d3"]),
        ("0", ["c2"]),
        ("2,0", ["d3", "c2"]),
        (" 1 , 2", ["a0", "d3"]),
        ("3", []),
        ("0,3,1", ["c2"]),
        ("-1", []),
        ("", []),
        ("NoDevFiles", []),
        ("0,0", []),
        (A, ["a0"]),
        (f"{D},{C}", ["d3", "c2"]),
        ("GPU-1", ["d3"]),
        ("gpu-1", ["d3"]),
        ("GPU-0", []),  # fits two
        ("GPU-", []),
        (B, []),  # on the machine, not in the share
        (f"0,{B},1", ["c2"]),
        ("99999999999999999999", []),
    ],
)
def test_visible_devices_select_within_the_share(
    make_share: MakeShare, asked: str | None, seen: list[str]
) -> None:
    share = make_share(memory={C: 50 * MIB, A: 50 * MIB, D: 50 * MIB})
    environment = {} if asked is None else {"CUDA_VISIBLE_DEVICES": asked}
    result, uuids, after = share.run(SEEN, CUDA_DEVICE_ORDER="FASTEST_FIRST", **environment)
    assert uuids == seen
    assert result == (0 if seen else 100)
    assert after == asked, "the tenant's own value is back in place"


def test_a_driver_that_shows_other_devices_closes_the_share(share: ShareOnDisk) -> None:
    result, again, alloc, text = share.run(
        "r = cuda.cuInit(0)\ncount = ctypes.c_int()\n"
        "say([r, cuda.cuDeviceGetCount(ctypes.byref(count)), alloc(1)[0], sentence()])",
        FAKE_IGNORES_ENVIRONMENT="1",
    )
    assert (result, again, alloc) == (802, 802, 802)
    assert "not in this share" in text


def test_nothing_in_the_environment_changes_a_limit(share: ShareOnDisk, tmp_path: Path) -> None:
    """Wherever a tenant might point us: another share, another driver, another runtime folder."""
    hostile = {
        name: str(tmp_path)
        for name in (
            "ALIQUOT_RUNTIME_DIR", "ALIQUOT_STATE_DIR", "XDG_RUNTIME_DIR", "ALIQUOT_SHARE", "TMPDIR",
        )
    }  # fmt: skip
    hostile |= {
        "CUDA_DEVICE_MEMORY_LIMIT": "60g",
        "LD_LIBRARY_PATH": str(share.built.driver),
        "SHARES": "all",
    }
    assert share.run("begin()\nsay([info()[1] // MIB, alloc(91 * MIB)[0]])", **hostile) == [100, 2]


Harm = Callable[[ShareOnDisk], object]


def _patched(path: Path, offset: int, value: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(value)] = value
    path.chmod(0o644)
    path.write_bytes(bytes(content))
    path.chmod(0o444 if path.name == "limits" else 0o666)


def _a_folder(share: ShareOnDisk) -> None:
    share.limits.unlink()
    share.limits.mkdir()


def _a_pipe(share: ShareOnDisk) -> None:
    share.limits.unlink()
    os.mkfifo(share.limits, 0o444)


def _become_the_driver(share: ShareOnDisk) -> None:
    driver = share.root / "driver" / "libcuda.so.1"
    driver.unlink()
    driver.symlink_to(share.built.governor / "libcuda.so.1")


def _not_a_library(share: ShareOnDisk) -> None:
    driver = share.root / "driver" / "libcuda.so.1"
    driver.unlink()
    driver.write_bytes(b"\x7fELF nonsense")


def _another_library(share: ShareOnDisk) -> None:
    driver = share.root / "driver" / "libcuda.so.1"
    driver.unlink()
    driver.symlink_to(share.built.driver / "libnvidia-ml.so.1")


HARM: dict[str, tuple[Harm, str]] = {
    "no limits": (lambda share: share.limits.unlink(), "limits"),
    "no ledger": (lambda share: share.ledger_path.unlink(), "ledger"),
    "no driver": (lambda share: (share.root / "driver" / "libcuda.so.1").unlink(), "driver"),
    "empty limits": (lambda share: os.truncate(share.limits, 0), "size is wrong"),
    "short limits": (lambda share: os.truncate(share.limits, 2000), "size is wrong"),
    "short ledger": (lambda share: os.truncate(share.ledger_path, 4096), "size is wrong"),
    "limits that are a folder": (_a_folder, "limits"),
    "limits that are a pipe": (_a_pipe, "limits"),
    "wrong magic": (lambda share: _patched(share.limits, 0, b"X"), "first bytes"),
    "wrong ledger magic": (lambda share: _patched(share.ledger_path, 0, b"X"), "first bytes"),
    "wrong size in the head": (lambda share: _patched(share.limits, 12, b"\xff\xff\xff\x7f"), "another size"),
    "newer limits": (lambda share: _patched(share.limits, 16, b"\x02"), "newer Aliquot"),
    "newer ledger": (lambda share: _patched(share.ledger_path, 16, b"\x02"), "newer Aliquot"),
    "half-changed limits": (lambda share: _patched(share.limits, 20, b"\x01"), "half-changed"),
    "no device": (lambda share: _patched(share.limits, 56, b"\x00"), "no device"),
    "too many devices": (lambda share: _patched(share.limits, 56, b"\x11"), "too many"),
    "another share's ledger": (lambda share: _patched(share.ledger_path, 24, b"\x02"), "another share"),
    "limits anybody may write": (lambda share: share.limits.chmod(0o666), "written by others"),
    "the governor as its own driver": (_become_the_driver, "governor itself"),
    "a driver that is no library": (_not_a_library, "cannot be loaded"),
    "a driver that is another library": (_another_library, "is not a libcuda.so.1"),
}


@pytest.mark.parametrize("harm", HARM)
def test_anything_missing_or_wrong_fails_every_call_with_one_sentence(share: ShareOnDisk, harm: str) -> None:
    do, words = HARM[harm]
    do(share)
    calls, text, name, table = share.run(
        """
name = ctypes.c_char_p()
check(cuda.cuGetErrorName(802, ctypes.byref(name)))
table = ctypes.c_void_p(0x77)
calls = [cuda.cuInit(0), cuda.cuDeviceGetCount(None), retain(), alloc(1)[0], free(1), cuda.cuLaunchKernel(),
         cuda.cuGetProcAddress_v2(b"cuInit", ctypes.byref(table), 12000, 0, None),
         cuda.cuMemGetInfo_v2(None, None), cuda.cuIpcOpenMemHandle(), cuda.cuInit(0),
         cuda.cuMemAllocAsync(None, 1, None), cuda.cuCtxSetLimit(0, 0)]
say([calls, sentence(), name.value.decode(), table.value])
"""
    )
    assert calls == [802] * 12
    assert table == 0x77
    assert name == "CUDA_ERROR_SYSTEM_NOT_READY"
    assert words in text
    assert str(share.root) in text
    assert "aliquot" in text
    assert "\n" not in text


def test_the_sentence_is_there_before_anything_was_called(share: ShareOnDisk) -> None:
    share.limits.unlink()
    assert "limits" in share.run("say(sentence())")


@pytest.mark.skipif(os.geteuid() != 0, reason="changing an owner needs root")
def test_a_ledger_of_another_owner_is_refused(share: ShareOnDisk) -> None:
    os.chown(share.ledger_path, 12345, -1)
    result, text = share.run("say([cuda.cuInit(0), sentence()])")
    assert result == 802
    assert "another user" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_any_uid_may_use_a_share_it_can_reach(share: ShareOnDisk) -> None:
    """A container may run as any uid: limits are readable, the ledger is writable."""
    for path in (share.root, *share.root.parents):
        if path.stat().st_mode & 0o001 == 0 and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    share.state.chmod(0o666)
    seen = share.run(
        "os.setgid(4242); os.setuid(4242)\nbegin()\nsay([alloc(50 * MIB)[0], alloc(50 * MIB)[0]])"
    )
    assert seen == [0, 2]


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_uid_that_may_not_open_the_ledger_fails_closed(share: ShareOnDisk) -> None:
    for path in (share.root, *share.root.parents):
        if path.stat().st_mode & 0o001 == 0 and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)
    share.ledger_path.chmod(0o600)
    result, text = share.run("os.setgid(4242); os.setuid(4242)\nsay([cuda.cuInit(0), sentence()])")
    assert result == 802
    assert "ledger" in text


def test_without_file_descriptors_left_it_fails_closed(share: ShareOnDisk) -> None:
    result = share.run(
        """
import resource
say_later = [b"x"]
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
result = cuda.cuInit(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
say(result)
"""
    )
    assert result == 802


@pytest.mark.parametrize(
    "error",
    [
        errno.EACCES,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (errno.ENOMEM, errno.EMFILE, errno.ENOSPC)),
    ],
)
def test_whichever_system_call_fails_nothing_crashes_and_no_limit_is_lost(
    share: ShareOnDisk, error: int
) -> None:
    """Each call that the governor makes until it has memory fails in turn, the last one past them."""
    script = """
started = cuda.cuInit(0)
context = retain()
results = [started, context, alloc(91 * MIB)[0], alloc(90 * MIB)[0]]
shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
say([results, shim.failing_calls_reached(), sentence() if 802 in results else ""])
"""
    shim = str(share.built.programs / "failing_calls.so")
    for number in range(1, 200):
        results, reached, text = share.run(script, LD_PRELOAD=shim, FAIL_AT=str(number), FAIL_WITH=str(error))
        assert results[2] != 0, f"over the limit after call {number} failed"
        assert 802 not in results or "aliquot" in text
        if not reached:
            break
    assert number > 15
    assert results == [0, 0, 2, 0]


def test_a_share_that_is_full_of_processes_says_so(share: ShareOnDisk) -> None:
    import fcntl
    import struct

    descriptor = os.open(share.ledger_path, os.O_RDWR)
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    result, text = share.run("say([cuda.cuInit(0), sentence()])")
    os.close(descriptor)
    assert result == 802
    assert "256 processes" in text
    assert share.run("say(cuda.cuInit(0))") == 0
