"""Shares on disk in front of a scripted driver."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.native.governor.shares import ROOT, UUIDS, Built, MakeShare, ShareOnDisk, a_lease, build

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
