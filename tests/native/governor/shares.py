"""Shares on disk in front of a scripted driver, and programs that run in them."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from aliquot.enforcement import create_ledger, read_ledger, write_limits
from aliquot.model import (
    Bytes,
    Gpu,
    GpuUuid,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    Ledger,
    NobodyHolder,
    Policy,
    Share,
    Thousandths,
    Vendor,
)

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
UUIDS = (
    "GPU-00000000-0000-0000-0000-0000000000a0",
    "GPU-00000000-0000-0000-0000-0000000000b1",
    "GPU-00000000-0000-0000-0000-0000000000c2",
    "GPU-11111111-0000-0000-0000-0000000000d3",
)
PRELUDE = (HERE / "tenant_prelude.py").read_text()


@dataclass(frozen=True)
class Built:
    """One build: the governor, the scripted driver, and C programs."""

    governor: Path
    driver: Path
    programs: Path


Figure = TypeVar("Figure", int, float)


def told(figure: Figure | None) -> Figure:
    """A figure of the ledger that is not nonsense."""
    assert figure is not None
    return figure


def build(folder: Path, *, sanitizers: str = "") -> Built:
    """``sanitizers``: as -fsanitize takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "out"
    with (folder / "lock").open("w") as lock:  # pytest-xdist workers share the build
        fcntl.flock(lock, fcntl.LOCK_EX)
        sanitize = [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer"] if sanitizers else []
        configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DALIQUOT_PARTS=governor"]
        configure += [f"-DALIQUOT_NATIVE_OUTPUT={out}", f"-DCMAKE_C_FLAGS={' '.join(sanitize)}"]
        if not (folder / "build.ninja").exists():
            subprocess.run(configure, check=True, capture_output=True)
        subprocess.run(["cmake", "--build", folder], check=True, capture_output=True)
        for kind, soname in (("cuda", "libcuda.so.1"), ("nvml", "libnvidia-ml.so.1")):
            symbols = folder / "native" / "governor" / f"governor_{kind}_symbols.h"
            options = ["-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-Bsymbolic", f"-Wl,-soname,{soname}"]
            options += [f'-DFAKE_SYMBOLS="{symbols}"', *(["-DFAKE_NVML"] if kind == "nvml" else [])]
            _compile(out / "driver" / soname, [HERE / "fake_driver.c", HERE / "fake_symbols.c"], options)
        shim = ["-fPIC", "-shared", "-ldl"]
        _compile(out / "programs" / "failing_calls.so", [HERE / "failing_calls.c"], shim)
        _compile(out / "programs" / "tenant", [HERE / "tenant.c"], [*sanitize, "-ldl", "-lpthread"])
    return Built(governor=out / "governor", driver=out / "driver", programs=out / "programs")


def newer(target: Path, *sources: Path) -> bool:
    """Than its sources and the headers that lie here."""
    read = [*sources, *HERE.glob("*.h")]
    return target.exists() and all(target.stat().st_mtime > source.stat().st_mtime for source in read)


def _compile(target: Path, sources: list[Path], options: list[str]) -> None:
    if newer(target, *sources):
        return
    target.parent.mkdir(exist_ok=True)
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            *map(str, sources),
            "-o",
            str(target),
            *options,
        ],
        check=True,
    )


def a_lease(memory: dict[str, int | None], *, whole: bool = False) -> Lease:
    return Lease(
        id=LeaseId("k7wpq"),
        state=LeaseState.HELD,
        ask="1GiB",
        shares=tuple(
            Share(GpuUuid(uuid), None if size is None else Bytes(size), Thousandths(250), whole=whole)
            for uuid, size in memory.items()
        ),
        policy=Policy.FAIR,
        isolation=Isolation.ADVISORY,
        holder=NobodyHolder(),
        user="somebody",
        command=None,
        created_at=0,
    )


def some_gpus(context_bytes: int | None) -> dict[GpuUuid, Gpu]:
    return {
        GpuUuid(uuid): Gpu(
            uuid=GpuUuid(uuid),
            index=index,
            vendor=Vendor.NVIDIA,
            name="fake",
            pci_id=f"0000:0{index}:00.0",
            context_bytes=None if context_bytes is None else Bytes(context_bytes),
        )
        for index, uuid in enumerate(UUIDS)
    }


class ShareOnDisk:
    """A share's folder, as node makes it, over the scripted driver."""

    def __init__(self, root: Path, built: Built, lease: Lease, context_bytes: int | None) -> None:
        self.root = root
        self.built = built
        self.lease = lease
        self.gpus = some_gpus(context_bytes)
        self.state = root / "fake-state"
        root.mkdir()
        self.state.write_bytes(bytes(64))
        write_limits(self.limits, lease=lease, gpus=self.gpus)
        create_ledger(self.ledger_path, devices=len(lease.shares))
        for folder, source in (("lib", built.governor), ("driver", built.driver)):
            (root / folder).mkdir()
            for library in source.iterdir():
                (root / folder / library.name).symlink_to(library)

    @property
    def limits(self) -> Path:
        return self.root / "limits"

    @property
    def ledger_path(self) -> Path:
        return self.root / "ledger"

    @property
    def cuda(self) -> Path:
        return self.root / "lib" / "libcuda.so.1"

    def ledger(self) -> Ledger:
        ledger = read_ledger(self.ledger_path)
        assert ledger is not None
        return ledger

    def change(self, memory: dict[str, int | None]) -> None:
        write_limits(self.limits, lease=replace(self.lease, shares=a_lease(memory).shares), gpus=self.gpus)

    def really_used(self, device: int = 0) -> int:
        return int.from_bytes(self.state.read_bytes()[8 * device : 8 * device + 8], "little")

    def most_really_used(self, device: int = 0) -> int:
        return int.from_bytes(self.state.read_bytes()[32 + 8 * device : 40 + 8 * device], "little")

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return kept | {"SHARE": str(self.root), "FAKE_STATE": str(self.state)} | more

    def start(self, script: str, **environment: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script],
            env=self.environment(**environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str, **environment: str) -> Any:
        """The script's last line, as JSON. It must exit 0 and be silent on stderr."""
        process = self.start(script, **environment)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, ""), f"exit {process.returncode}: {err}{out}"
        return json.loads(out.splitlines()[-1])


MakeShare = Callable[..., ShareOnDisk]


def line_of(process: "subprocess.Popen[str]", feed: str | None = None) -> object:
    """The next line that a started script says, after it is fed one."""
    assert process.stdin is not None
    assert process.stdout is not None
    if feed is not None:
        process.stdin.write(feed + "\n")
        process.stdin.flush()
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return json.loads(line)
