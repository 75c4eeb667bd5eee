"""CPU limits of control groups: version 1 and 2, from within a container and without, nested."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "native" / "softgpu" / "driver" / "cpu_quota.c"
V2 = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "31 23 0:27 {root} /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
MEMORY = "32 23 0:28 / /sys/fs/cgroup/memory rw shared:6 - cgroup cgroup rw,memory\n"


@pytest.fixture(scope="module")
def quota(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], int]:
    library = tmp_path_factory.mktemp("quota") / "cpu_quota.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", SOURCE, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).sg_cpu_quota
    return lambda root: int(function(str(root).encode()))


def _machine(root: Path, groups: str, mounts: str, files: dict[str, str]) -> Path:
    for path, text in {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_the_least_of_the_own_group_and_those_above_counts(
    quota: Callable[[Path], int], tmp_path: Path
) -> None:
    files = {
        "sys/fs/cgroup/a/cpu.max": "250000 100000\n",
        "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
        "sys/fs/cgroup/a/b/c/cpu.max": "400000 100000\n",
    }
    assert quota(_machine(tmp_path, "0::/a/b/c\n", V2.format(root="/"), files)) == 3


def test_no_file_and_no_limit_are_no_limit(quota: Callable[[Path], int], tmp_path: Path) -> None:
    assert quota(tmp_path) == 0
    files = {"sys/fs/cgroup/cpu.max": "max 100000\n"}
    assert quota(_machine(tmp_path, "0::/\n", V2.format(root="/"), files)) == 0


def test_a_container_that_sees_its_full_path_finds_its_files(
    quota: Callable[[Path], int], tmp_path: Path
) -> None:
    files = {
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    }
    groups = "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n"
    assert quota(_machine(tmp_path, groups, MEMORY + V1.format(root="/docker/1"), files)) == 2


def test_both_versions_at_once_and_the_tighter_one_counts(
    quota: Callable[[Path], int], tmp_path: Path
) -> None:
    files = {
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/unified/cpu.max": "50000 100000\n",
    }
    mounts = V1.format(root="/") + V2.format(root="/").replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified ")
    assert quota(_machine(tmp_path, "4:cpuacct,cpu:/job\n0::/\n", mounts, files)) == 1
