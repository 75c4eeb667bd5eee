"""Nouns to show (a node with three GPUs, its leases), and the real command in a folder of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.starting import starter

from aliquot.cli.program import invoke
from aliquot.cli.views.gpus import GpuRow, gpu_rows
from aliquot.cli.views.leases import LeaseRow, lease_rows
from aliquot.model import (
    GIB,
    Bytes,
    Gpu,
    GpuUuid,
    Health,
    HealthState,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Node,
    Policy,
    ProcessHolder,
    Share,
    Snapshot,
    Thousandths,
    Vendor,
)

NOW = time.time_ns()
_SECOND = 1_000_000_000
_H100 = GpuUuid("GPU-0f3a12bc-0000-4000-8000-000000000000")
_CORDONED = GpuUuid("GPU-1f3a12bc-0000-4000-8000-000000000001")


def _nvidia(uuid: GpuUuid, index: int, *, cordoned: bool = False) -> Gpu:
    return Gpu(
        uuid=uuid,
        index=index,
        vendor=Vendor.NVIDIA,
        name="NVIDIA H100 80GB HBM3",
        pci_id=f"0000:3{index}:00.0",
        memory=Bytes(80 * GIB),
        memory_reserved=Bytes(GIB // 2),
        memory_used=Bytes(4 * GIB),
        outside_memory=Bytes(0),
        utilisation=12,
        health=Health(HealthState.HEALTHY),
        cordoned=cordoned,
    )


@pytest.fixture
def now() -> int:
    return NOW


@pytest.fixture
def snapshot() -> Snapshot:
    amd = Gpu(
        uuid=GpuUuid("pci-0000:05:00.0"),
        index=2,
        vendor=Vendor.AMD,
        name="Instinct MI300X",
        pci_id="0000:05:00.0",
    )
    return Snapshot(Node("box"), (_nvidia(_H100, 0), _nvidia(_CORDONED, 1, cordoned=True), amd))


@pytest.fixture
def leases() -> tuple[Lease, ...]:
    held = Lease(
        id=LeaseId("k3m9x"),
        state=LeaseState.HELD,
        ask="10GiB@25%",
        shares=(Share(_H100, Bytes(10 * GIB), Thousandths(250)),),
        policy=Policy.FAIR,
        isolation=Isolation.ADVISORY,
        holder=ProcessHolder(1234567, 5, 4),
        user="alice",
        command="python x.py\n\x1b[31mred \udce9",
        created_at=NOW - 1000 * _SECOND,
        name="train",
        expires_at=NOW + 7300 * _SECOND,
    )
    whole = Lease(
        id=LeaseId("p7qrs"),
        state=LeaseState.HELD,
        ask="H100",
        shares=(Share(_CORDONED, Bytes(80 * GIB - GIB // 2), Thousandths(1000), whole=True),),
        policy=Policy.FAIR,
        isolation=Isolation.ADVISORY,
        holder=NobodyHolder(),
        user="bob",
        command=None,
        created_at=NOW - 100 * _SECOND,
    )
    return (held, whole)


@pytest.fixture
def gpus(snapshot: Snapshot, leases: tuple[Lease, ...]) -> list[GpuRow]:
    return gpu_rows(snapshot, leases)


@pytest.fixture
def lease_list(snapshot: Snapshot, leases: tuple[Lease, ...]) -> list[LeaseRow]:
    return lease_rows(leases, snapshot)


Aliquot = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def aliquot_env(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose machine has nothing yet."""
    kept = {"PATH", "HOME"}
    return {name: value for name, value in os.environ.items() if name in kept} | {
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": str(tmp_path),
        "ALIQUOT_STATE_DIR": str(tmp_path / "state"),
        "ALIQUOT_RUNTIME_DIR": str(tmp_path / "run"),
    }


@pytest.fixture
def aliquot(aliquot_env: dict[str, str]) -> Aliquot:
    """``aliquot("gpus", "-o", "json", env={…})`` as a process of its own, stdout and stderr apart.

    With ``env`` from the start of Python on, for there a locale is chosen.
    """

    def run(
        *arguments: str, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        if not env:
            return starter().run(arguments, env=aliquot_env, input=stdin)
        return subprocess.run(
            [sys.executable, "-m", "aliquot.cli", *arguments],
            env=aliquot_env | dict(env or {}),
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def typed(
    aliquot_env: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Aliquot:
    """The same on the same machine, within the test's process: a fifth of the time.

    For all but ``run``, which forks, once another test has seen the command as a process.
    """
    for name, value in aliquot_env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ALIQUOT_LEASE", raising=False)

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        assert "run" not in arguments[:1]
        capfd.readouterr()
        code = invoke(list(arguments))
        captured = capfd.readouterr()
        return subprocess.CompletedProcess(list(arguments), code, captured.out, captured.err)

    return run
