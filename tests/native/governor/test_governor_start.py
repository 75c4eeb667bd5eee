"""Starting: which devices are seen, and what is said where a share cannot start."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.governor.shares import UUIDS, Built, MakeShare, ShareOnDisk

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


def test_a_program_that_is_linked_finds_the_governor(share: ShareOnDisk, tmp_path: Path) -> None:
    source = tmp_path / "linked.c"
    source.write_text(
        """
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(void **, int); int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, unsigned long);
int main(void) { void *c; unsigned long long p;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c)) return 99;
  return cuMemAlloc_v2(&p, 91ul << 20); }
"""
    )
    program = tmp_path / "linked"
    subprocess.run(
        ["cc", source, "-o", program, f"-L{share.root / 'lib'}", "-l:libcuda.so.1"],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [program], env=share.environment(LD_LIBRARY_PATH=str(share.root / "lib")), check=False
    )
    assert done.returncode == 2


def test_a_static_program_finds_the_governor(share: ShareOnDisk, tmp_path: Path) -> None:
    """Asked for what needs no thread-local variable: glibc gives a static program's libraries none."""
    source = tmp_path / "static.c"
    source.write_text(
        """
#include <dlfcn.h>
int main(int n, char **a) {
  void *h = dlopen(a[1], RTLD_NOW); unsigned long bytes = 0; (void)n;
  int (*start)(unsigned) = dlsym(h, "cuInit");
  int (*total)(unsigned long *, int) = dlsym(h, "cuDeviceTotalMem_v2");
  return start(0) || total(&bytes, 0) ? 255 : (int)(bytes >> 20); }
"""
    )
    program = tmp_path / "static"
    if subprocess.run(["cc", "-static", source, "-o", program], capture_output=True).returncode != 0:
        pytest.skip("no static libc here")
    assert subprocess.run([program, share.cuda], env=share.environment(), check=False).returncode == 100


def test_a_plug_in_that_looks_in_itself_first_finds_the_governor(share: ShareOnDisk, tmp_path: Path) -> None:
    source = tmp_path / "plugin.c"
    source.write_text(
        "int cuMemAlloc_v2(unsigned long long *, unsigned long);\n"
        "int plugin(void) { unsigned long long p; return cuMemAlloc_v2(&p, 91ul << 20); }\n"
    )
    plugin = tmp_path / "plugin.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", source, "-o", plugin, f"-L{share.root / 'lib'}", "-l:libcuda.so.1"],
        check=True,
    )
    deepbind = os.RTLD_NOW | os.RTLD_DEEPBIND
    seen = share.run(
        f"begin()\nsay(ctypes.CDLL({str(plugin)!r}, mode={deepbind}).plugin())",
        LD_LIBRARY_PATH=str(share.root / "lib"),
    )
    assert seen == 2


def test_a_library_loaded_by_a_relative_name_finds_its_share(share: ShareOnDisk) -> None:
    seen = share.run(
        """
os.chdir(os.environ["SHARE"])
cuda = ctypes.CDLL("lib/../lib/libcuda.so.1")
begin()
say(info()[1] // MIB)
"""
    )
    assert seen == 100


def test_loading_it_twice_and_unloading_it_keeps_the_account(share: ShareOnDisk) -> None:
    seen = share.run(
        """
import _ctypes
begin(); r, p = alloc(10 * MIB)
again = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")
for _ in range(3):
    _ctypes.dlclose(cuda._handle)
cuda = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")
a = used() // MIB
check(free(p))
say([a, used() // MIB])
"""
    )
    assert seen == [20, 10]


def test_the_program_s_own_state_is_left_alone(share: ShareOnDisk) -> None:
    """No umask, no signal handler, no working folder, no output, no variable is touched."""
    assert share.run(
        """
import signal
def state():
    mask = os.umask(0); os.umask(mask)
    return [mask, os.getcwd(), [str(signal.getsignal(n)) for n in range(1, 32)],
            ctypes.CDLL(None).getenv(b"CUDA_VISIBLE_DEVICES"),
            open("/proc/self/status").read().split("SigCgt:")[1][:18]]
os.umask(0o123)
before = state()
begin(); alloc(MIB); info(); retain()
say(before == state())
"""
    )


def test_replacing_the_library_under_a_running_program_by_rename_is_survived(
    make_share: MakeShare, built: Built, tmp_path: Path
) -> None:
    folder = tmp_path / "copied"
    shutil.copytree(built.governor, folder)
    share = make_share(build=Built(folder, built.driver, built.programs))
    process = share.start("begin()\nsay(1)\ninput()\nsay([alloc(80 * MIB)[0], alloc(80 * MIB)[0]])")
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    shutil.copy(folder / "libcuda.so.1", folder / "new")
    (folder / "new").rename(folder / "libcuda.so.1")
    out, _ = process.communicate("\n", timeout=20)
    assert (process.returncode, out) == (0, "[0, 2]\n")
