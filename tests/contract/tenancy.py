"""One share made by hand from real files, and a user's command line that gets it."""

import contextlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aliquot.injection import (
    Engine,
    Rewritten,
    ShareFolder,
    cdi_flags,
    container_command,
    container_edits,
    flags,
    probe,
    remove_cdi_spec,
    rewrite,
    takes_cdi,
    writable_cdi_folder,
    write_cdi_spec,
)
from aliquot.model import (
    Bytes,
    DriverFiles,
    Edits,
    Gpu,
    GpuUuid,
    Isolation,
    Lease,
    LeaseState,
    NobodyHolder,
    Policy,
    Share,
    Thousandths,
    Vendor,
    lease_id,
)
from engines.docker import DockerSetup
from engines.podman import PodmanSetup

IMAGE = "aliquot-test:1"
LEASE = lease_id(os.getpid())
"""Of its own for each run of the tests: two may write into one CDI folder at once."""
OURS = GpuUuid("GPU-00000000-0000-0000-0000-00000000aaaa")
THEIRS = GpuUuid("GPU-00000000-0000-0000-0000-00000000bbbb")
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvJitLink.so.13")


@dataclass(frozen=True)
class HandMadeShare:
    """A book, two software GPUs, and one share of the first, as ARCHITECTURE.md lays them out."""

    top: Path
    folder: ShareFolder
    driver: DriverFiles
    gpus: tuple[Gpu, ...]

    def lease(self, *, whole: bool = False) -> Lease:
        share = Share(OURS, Bytes(1 << 30), Thousandths(250), whole=whole)
        return Lease(
            id=LEASE, state=LeaseState.HELD, ask="1GiB", shares=(share,), policy=Policy.FAIR,
            isolation=Isolation.SOFT, holder=NobodyHolder(), user="root", command=None, created_at=1,
        )  # fmt: skip

    def edits(self, *, whole: bool = False) -> Edits:
        lease = self.lease(whole=whole)
        return container_edits(lease, folder=self.folder, driver=self.driver, gpus=self.gpus)


def make_share(top: Path) -> HandMadeShare:
    runtime, state = top / "runtime", top / "state"
    root = runtime / "shares" / LEASE
    for folder in (root / "lib", root / "driver", state / "lib/hash/governor", state / "lib/hash/softgpu"):
        folder.mkdir(parents=True)
    (state / "book.sqlite").write_text("the book")
    (root / "limits").write_text(f"limits of {LEASE}\n")
    (root / "limits").chmod(0o444)
    (root / "ledger").write_text(f"ledger of {LEASE}\n")
    (root / "ledger").chmod(0o666)
    (root / "turns").mkdir()
    (root / "turns" / "0").write_text(f"turns of {OURS}\n")
    (root / "turns" / "0").chmod(0o666)
    for soname in LIBRARIES:
        (state / "lib/hash/softgpu" / soname).write_text(f"softgpu {soname}\n")
        (root / "driver" / soname).symlink_to(state / "lib/hash/softgpu" / soname)
    for soname in LIBRARIES[:2]:
        (state / "lib/hash/governor" / soname).write_text(f"governor {soname}\n")
        (root / "lib" / soname).symlink_to(state / "lib/hash/governor" / soname)
    for uuid in (OURS, THEIRS):
        device = state / "softgpu" / uuid
        device.mkdir(parents=True)
        (device / "device").write_text(f"uuid {uuid}\n")
        for name in ("arena", "state", "log"):
            (device / name).write_text("")
            (device / name).chmod(0o666)
    libraries = tuple((name, str(state / "lib/hash/softgpu" / name)) for name in LIBRARIES)
    driver = DriverFiles(Vendor.SOFTWARE, libraries, folder=str(state / "softgpu"))
    gpus = tuple(
        Gpu(uuid, index, Vendor.SOFTWARE, "Aliquot T4", f"0000:0{index}:00.0")
        for index, uuid in enumerate((OURS, THEIRS))
    )
    return HandMadeShare(top, ShareFolder(str(root)), driver, gpus)


@dataclass
class Tenant:
    """The user's own command line, given its share by the real stage, on a real engine."""

    setup: PodmanSetup | DockerSetup
    share: HandMadeShare
    engine: Engine
    by_cdi: bool
    edits: Edits

    @property
    def program(self) -> str:
        return self.setup.client if isinstance(self.setup, DockerSetup) else "podman"

    def rewritten(self, argv: Sequence[str], image_env: Sequence[str] | None = None) -> Rewritten:
        command = container_command(argv)
        assert command is not None
        insertion = (
            cdi_flags(LEASE, engine=self.engine)
            if self.by_cdi and takes_cdi(command, engine=self.engine, edits=self.edits)
            else flags(self.edits, lease_id=LEASE, engine=self.engine)
        )
        return rewrite(command, engine=self.engine, insertion=insertion, image_env=image_env)

    def line(self, *words: str, verb: str = "run") -> list[str]:
        """``words`` (options, image, command) after ``ENGINE VERB``, with the share put in."""
        argv = [self.program, verb, "--network", "none", *words]
        return list(self.rewritten(argv).argv)

    def run(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.line("--rm", *words), env=self.setup.environ, input=stdin, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip

    def shell(self, script: str, *options: str) -> str:
        """What a shell inside prints; an error of the engine's fails the test."""
        done = self.run(*options, IMAGE, "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout


class given_share:  # noqa: N801 - used as `with given_share(…)`
    """The lease's CDI specification, where that is the way, written for the length of the block."""

    def __init__(
        self, setup: PodmanSetup | DockerSetup, share: HandMadeShare, edits: Edits, *, by_cdi: bool
    ) -> None:
        self.setup, self.share, self.edits, self.by_cdi = setup, share, edits, by_cdi
        self.cdi_folder: str | None = None

    def __enter__(self) -> Tenant:
        program = self.setup.client if isinstance(self.setup, DockerSetup) else "podman"
        engine = probe([program], environ=self.setup.environ)
        self.existed = Path("/var/run/cdi").exists()
        if self.by_cdi:
            self.cdi_folder = writable_cdi_folder(engine.cdi_folders)
            assert self.cdi_folder is not None
            write_cdi_spec(self.edits, LEASE, folder=self.share.folder, cdi_folder=self.cdi_folder)
        return Tenant(self.setup, self.share, engine, self.by_cdi, self.edits)

    def __exit__(self, *_: object) -> None:
        if self.cdi_folder is not None:
            remove_cdi_spec(LEASE, folder=self.share.folder, cdi_folder=self.cdi_folder)
        if not self.existed:
            with contextlib.suppress(OSError):  # gone already, or somebody else's now
                Path("/var/run/cdi").rmdir()
