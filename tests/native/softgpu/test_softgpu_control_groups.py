"""What control groups allow a process, of processors and of memory: version 1, 2, both at once, from within a
container and without, nested, and with files that make no sense. A machine is a folder that looks like /."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.native.softgpu.machine import MIB

SOFTGPU = Path(__file__).resolve().parents[3] / "native" / "softgpu"
SOURCES = ("device/control_groups.c", "device/files.c", "device/machine_memory.c", "driver/cpu_quota.c")
NONE = 2**64 - 1
MEMINFO = "MemTotal: 2048000 kB\nMemFree: 1 kB\nMemAvailable: 1024000 kB\n"

V2 = "30 23 0:26 {root} {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_CPU = "31 23 0:27 {root} /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
V1_MEMORY = "32 23 0:28 {root} /sys/fs/cgroup/memory rw shared:6 - cgroup cgroup rw,memory\n"
ROOT_DISK = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"


def v2(root: str = "/", mount: str = "/sys/fs/cgroup") -> str:
    return V2.format(root=root, mount=mount)


def v1(root: str = "/") -> str:
    return V1_CPU.format(root=root) + V1_MEMORY.format(root=root)


def cpu_v1(folder: str, quota: str, period: str = "100000\n") -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": period}


class Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
        ("exhausted", ctypes.c_bool),
    )


@dataclass(frozen=True)
class Case:
    groups: str
    mounts: str
    files: Mapping[str, str]
    cpus: int = 0
    limit: int = NONE
    exhausted: bool = False


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("groups") / "groups.so"
    sources = [str(SOFTGPU / source) for source in SOURCES]
    flags = ["-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{SOFTGPU / 'device'}"]
    subprocess.run(["cc", *flags, *sources, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def look(built: ctypes.CDLL, root: Path, case: Case) -> tuple[int, int, bool]:
    files = {"proc/self/cgroup": case.groups, "proc/self/mountinfo": case.mounts, "proc/meminfo": MEMINFO}
    for path, text in {**files, **case.files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    memory = Memory()
    assert built.sg_machine_memory_read(str(root).encode(), ctypes.byref(memory)) & 1
    assert (memory.total, memory.available) == (2000 * MIB, 1000 * MIB)
    return built.sg_cpu_quota(str(root).encode()), memory.limit, memory.exhausted


CASES = {
    "no control groups": Case("", ROOT_DISK, {}),
    "version 2: the least of the own group and those above": Case(
        "0::/a/b/c\n",
        ROOT_DISK + v2(),
        {
            "sys/fs/cgroup/a/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/b/c/cpu.max": "400000 100000\n",
            "sys/fs/cgroup/a/memory.max": f"{600 * MIB}\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/c/memory.max": f"{700 * MIB}\n",
        },
        3,
        600 * MIB,
    ),
    "version 2 in a namespace: the root is the own group": Case(
        "0::/\n",
        v2(),
        {"sys/fs/cgroup/cpu.max": "100000 100000\n", "sys/fs/cgroup/memory.max": str(100 * MIB)},
        1,
        100 * MIB,
    ),
    "version 2, full path seen in a container": Case(
        "0::/docker/1/job\n",
        v2(root="/docker/1"),
        {
            "sys/fs/cgroup/cpu.max": "300000 100000\n",
            "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/job/memory.max": str(300 * MIB),
            "sys/fs/cgroup/docker/1/job/memory.max": str(1 * MIB),  # another's, of the same name
        },
        2,
        300 * MIB,
    ),
    "version 2, a group whose name only begins like the mount's": Case(
        "0::/docker/12\n", v2(root="/docker/1"), {"sys/fs/cgroup/2/memory.max": str(1 * MIB)}
    ),
    "version 2, a mount from outside of the namespace": Case(
        "0::/\n",
        v2(root="/../.."),
        {"sys/fs/cgroup/memory.max": str(200 * MIB), "sys/fs/cgroup/../../memory.max": str(1 * MIB)},
        0,
        200 * MIB,
    ),
    "version 2, moved out of the namespace": Case(
        "0::/../other\n",
        v2(),
        {"sys/fs/cgroup/memory.max": str(200 * MIB), "sys/fs/other/memory.max": str(1 * MIB)},
        0,
        200 * MIB,
    ),
    "version 2, the group was removed": Case(
        "0::/a/b (deleted)\n", v2(), {"sys/fs/cgroup/a/memory.max": str(400 * MIB)}, 0, 400 * MIB
    ),
    "version 2 at a mount with a space in its name": Case(
        "0::/a\n", v2(mount="/my\\040groups"), {"my groups/a/cpu.max": "200000 100000\n"}, 2
    ),
    "version 2, full but for its page cache": Case(
        "0::/a\n",
        v2(),
        {
            "sys/fs/cgroup/a/memory.max": str(600 * MIB),
            "sys/fs/cgroup/a/memory.current": str(590 * MIB),
            "sys/fs/cgroup/a/memory.stat": f"anon 1\ninactive_file {100 * MIB}\nactive_file 0\n",
        },
        0,
        600 * MIB,
    ),
    "version 2, full": Case(
        "0::/a\n",
        v2(),
        {"sys/fs/cgroup/a/memory.max": str(600 * MIB), "sys/fs/cgroup/a/memory.current": str(590 * MIB)},
        0,
        600 * MIB,
        True,
    ),
    "version 1": Case(
        "5:memory:/docker/x\n4:cpu,cpuacct:/docker\n",
        v1(),
        {
            **cpu_v1("sys/fs/cgroup/cpu,cpuacct/docker", "150000\n"),
            "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": f"{300 * MIB}\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
        2,
        300 * MIB,
    ),
    "version 1, full path seen in a container": Case(
        "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n",
        v1(root="/docker/1"),
        {
            **cpu_v1("sys/fs/cgroup/cpu,cpuacct", "150000\n"),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{300 * MIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{299 * MIB}\n",
            "sys/fs/cgroup/memory/memory.stat": f"cache 1\ntotal_inactive_file {99 * MIB}\n",
        },
        2,
        300 * MIB,
    ),
    "both: version 2 at unified has the limits": Case(
        "4:cpuacct,cpu:/job\n3:memory:/job\n0::/job\n",
        v1() + v2(mount="/sys/fs/cgroup/unified"),
        {
            **cpu_v1("sys/fs/cgroup/cpu,cpuacct/job", "-1\n"),
            "sys/fs/cgroup/unified/job/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/unified/job/memory.max": str(500 * MIB),
        },
        1,
        500 * MIB,
    ),
    "both: version 1 has the limits": Case(
        "4:cpuacct,cpu:/job\n3:memory:/job\n1:name=systemd:/job\n0::/job\n",
        v1() + v2(mount="/sys/fs/cgroup/unified"),
        {
            **cpu_v1("sys/fs/cgroup/cpu,cpuacct/job", "250000\n"),
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(500 * MIB),
        },
        3,
        500 * MIB,
    ),
    "empty files": Case(
        "5:memory:/a\n4:cpu,cpuacct:/a\n0::/a\n",
        v1() + v2(mount="/sys/fs/cgroup/unified"),
        {
            **cpu_v1("sys/fs/cgroup/cpu,cpuacct/a", "", ""),
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "",
            "sys/fs/cgroup/unified/a/cpu.max": "",
            "sys/fs/cgroup/unified/a/memory.max": "\n",
        },
    ),
    "files that make no sense": Case(
        "5:memory:/a\n4:cpu,cpuacct:/a\n0::/a\n",
        v1() + v2(mount="/sys/fs/cgroup/unified"),
        {
            **cpu_v1("sys/fs/cgroup/cpu,cpuacct/a", "100000x\n", "0\n"),
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "99999999999999999999999\n",
            "sys/fs/cgroup/unified/a/cpu.max": "-5 100000\n",
            "sys/fs/cgroup/unified/a/memory.max": "12MiB\n",
        },
    ),
    "lists that make no sense": Case(
        "\n:\n::\n0::\nx\n0:memory\n5:memory:relative\n" + "z" * 9000 + "\n0::/a\n",
        "\n - \n1 2 - cgroup2\n30 23 0:26 / - cgroup2 cgroup2 rw\n30 23 0:26 here there rw - cgroup2 a b\n"
        + f"31 23 0:1 / /{'y' * 9000} rw - cgroup2 cgroup2 rw\n{v2()}",
        {"sys/fs/cgroup/a/memory.max": str(256 * MIB)},
        0,
        256 * MIB,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_control_groups_allow(name: str, built: ctypes.CDLL, tmp_path: Path) -> None:
    case = CASES[name]
    assert look(built, tmp_path, case) == (case.cpus, case.limit, case.exhausted)


def test_a_machine_without_proc_has_no_limit_and_its_memory_is_unknown(
    built: ctypes.CDLL, tmp_path: Path
) -> None:
    assert built.sg_cpu_quota(str(tmp_path).encode()) == 0
    assert built.sg_machine_memory_read(str(tmp_path).encode(), ctypes.byref(Memory())) & 1 == 0
