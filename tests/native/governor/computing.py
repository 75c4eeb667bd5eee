"""Several shares of one software GPU in virtual time, and what each truly had of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.native.governor.shares import HERE, ROOT, a_lease, newer
from tests.native.softgpu.machine import LIBRARIES, Box

from aliquot.enforcement import create_ledger, create_turns, governor_folder, read_ledger, write_limits
from aliquot.model import Lease, LeaseId, Ledger, Policy, Thousandths

MICROSECOND, MILLISECOND, SECOND = 1_000, 1_000_000, 1_000_000_000
FIGURES: dict[str, Any] = {"time": "virtual", "time_slice_ns": 2 * MILLISECOND, "launch_ns": 2_500}


def tenant_program(folder: Path) -> Path:
    """The C tenant, built once into ``folder``."""
    source, program = HERE / "compute_tenant.c", folder / "compute_tenant"
    if not newer(program, source):
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"compute_tenant.{os.getpid()}"
        command = [
            "cc",
            "-std=gnu11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            source,
            "-o",
            made,
            "-ldl",
            "-lm",
        ]
        subprocess.run([str(word) for word in command], check=True)
        made.rename(program)
    return program


@dataclass
class Card:
    """A software GPU that is shared, and the folder in which its shares lie."""

    box: Box
    folder: Path
    device: Path
    shares: list[Path] = field(default_factory=list)
    leases: dict[Path, Lease] = field(default_factory=dict)

    @property
    def page(self) -> Path:
        return self.folder / "turns" / self.device.name

    def share(
        self, compute: int, policy: Policy = Policy.FAIR, *, paused: bool = False, turns: bool = True
    ) -> Path:
        """A share of ``compute`` thousandths; the folder as node makes it."""
        root = self.folder / f"share{len(self.shares)}"
        lease = a_lease({self.device.name: None})
        lease = replace(
            lease,
            id=LeaseId(f"k{len(self.shares)}"),
            policy=policy,
            shares=(replace(lease.shares[0], compute=Thousandths(compute)),),
        )
        for name in ("lib", "driver", "driver/softgpu", "turns"):
            (root / name).mkdir(parents=True)
        write_limits(root / "limits", lease=lease, gpus={}, paused=paused)
        create_ledger(root / "ledger", devices=1)
        self.page.parent.mkdir(exist_ok=True)
        create_turns(self.page)
        if turns:
            (root / "turns" / "0").symlink_to(self.page)
        for library in governor_folder().iterdir():
            (root / "lib" / library.name).symlink_to(library)
        for library in LIBRARIES.iterdir():
            (root / "driver" / library.name).symlink_to(library)
        (root / "driver" / "softgpu" / self.device.name).symlink_to(self.device)
        self.shares.append(root)
        self.leases[root] = lease
        return root

    def change(
        self, share: Path, *, compute: int | None = None, policy: Policy | None = None, paused: bool = False
    ) -> None:
        lease = self.leases[share]
        if compute is not None:
            lease = replace(lease, shares=(replace(lease.shares[0], compute=Thousandths(compute)),))
        if policy is not None:
            lease = replace(lease, policy=policy)
        self.leases[share] = lease
        write_limits(share / "limits", lease=lease, gpus={}, paused=paused)

    def ledger(self, share: Path) -> Ledger:
        ledger = read_ledger(share / "ledger")
        assert ledger is not None
        return ledger

    def charged(self, share: Path) -> int:
        ns = self.ledger(share).devices[0].compute_ns
        assert ns is not None
        return ns

    def start(
        self, share: Path | None, end_ns: int, *words: str, place: int = 0, of: int = 0, **environment: str
    ) -> subprocess.Popen[str]:
        """A tenant in ``share`` (None: in none), the ``place``-th of ``of`` to arrive."""
        program = tenant_program(ROOT / "build" / "tests-compute")
        where = f"bare={LIBRARIES}" if share is None else str(share)
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        kept |= {"ALIQUOT_STATE_DIR": str(self.box.state)} | environment
        if of:
            kept["ALIQUOT_SOFTGPU_ARRIVAL"] = f"{place}/{of}"
        process = subprocess.Popen(
            [program, where, str(end_ns), *words],
            env=kept,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.box.started.append(process)
        return process

    def engine_ns(self) -> dict[int, int]:
        """What each process, by pid, truly had of the engine up to now."""
        return {one["pid"]: one["compute_ns"] for one in self.truth()["accounts"]}

    def together(self, end_ns: int, *tenants: tuple[Path | None, str]) -> list[dict[str, Any]]:
        """Run tenants that arrive in this order; each with its answer and, as ``true_ns``, the engine time
        that the oracle says it had."""
        started = [
            self.start(share, end_ns, *words.split(), place=place, of=len(tenants))
            for place, (share, words) in enumerate(tenants, start=1)
        ]
        answers = [finished(process) for process in started]
        had = self.engine_ns()
        return [answer | {"true_ns": had[answer["pid"]]} for answer in answers]

    def truth(self) -> dict[str, Any]:
        return self.box.run("oracle.py", str(self.device))


class Stopwatch:
    """A process beside the shares that stops a device's virtual clock each ``step_ns`` from ``begin_ns`` on,
    until it is told to go on."""

    def __init__(self, card: Card, step_ns: int, *, begin_ns: int = 0, place: int, of: int) -> None:
        words = (f"stops={step_ns}", f"begin={begin_ns}")
        self.process = card.start(None, 1000 * SECOND, *words, place=place, of=of)
        self.stopped = False

    def next_stop(self) -> int:
        """Let the clock go on to the next stop; what it says there."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.stopped:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        self.stopped = True
        return int(json.loads(self.process.stdout.readline())["now"])

    def end(self) -> None:
        """The clock goes on without it."""
        self.process.kill()
        self.process.communicate()


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The answer of a tenant that must end well and be silent."""
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, ""), f"exit {process.returncode}: {errors}{out}"
    answer = json.loads(out.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def points_off(answers: Sequence[dict[str, Any]], wanted: Sequence[float]) -> list[float]:
    """How many points of the device's time each is off its part (of 100) of what all had."""
    total = sum(answer["true_ns"] for answer in answers)
    return [100 * answer["true_ns"] / total - part for answer, part in zip(answers, wanted, strict=True)]
