"""Shares on disk in front of a scripted driver."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.native.governor.shares import ROOT, UUIDS, Built, MakeShare, ShareOnDisk, a_lease, build
from tests.native.softgpu.machine import FACTS, LIBRARIES

from aliquot.model import MIB, Lease


@pytest.fixture(scope="session")
def built() -> Built:
    return build(ROOT / "build" / "tests-governor")


@pytest.fixture(scope="session", params=["address,undefined", "thread"])
def sanitized(request: pytest.FixtureRequest) -> Built:
    folder = "tests-governor-" + str(request.param).partition(",")[0]
    return build(ROOT / "build" / folder, sanitizers=request.param)


@pytest.fixture
def make_share(tmp_path: Path, built: Built) -> Iterator[MakeShare]:
    made: list[Path] = []

    def make(
        *,
        memory: dict[str, int | None] | None = None,
        context_bytes: int | None = 10 * MIB,
        build: Built = built,
        lease: Lease | None = None,
        folder: Path = tmp_path,
    ) -> ShareOnDisk:
        root = folder / f"share{len(made)}"
        made.append(root)
        sizes: dict[str, int | None] = memory if memory is not None else {UUIDS[0]: 100 * MIB}
        return ShareOnDisk(root, build, lease if lease is not None else a_lease(sizes), context_bytes)

    yield make
    for root in made:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def share(make_share: MakeShare) -> ShareOnDisk:
    """100 MiB of one device, contexts of 10 MiB."""
    return make_share()


@pytest.fixture
def card_share(make_share: MakeShare, built: Built) -> ShareOnDisk:
    """100 MiB of a software GPU of 256 MiB, contexts of 20 MiB: a driver that has graphs, handles for other
    processes, and takes memory by itself."""
    over = Built(built.governor, LIBRARIES, built.programs)
    share = make_share(build=over, context_bytes=20 * MIB)
    device = share.root / "driver" / "softgpu" / UUIDS[0]
    device.mkdir(parents=True)
    facts = {
        "uuid": UUIDS[0],
        "pci_id": "00000000:3B:00.0",
        "module_bytes": 2 * MIB,
        "local_threads": 32768,
        **FACTS,
    }
    (device / "device").write_text("".join(f"{key} {value}\n" for key, value in facts.items()))
    for name in ("arena", "state", "log"):
        (device / name).touch()
    return share
