"""A share in a rootless Podman, of a user made for the test."""

import contextlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.conftest import needs
from tests.contract.tenancy import IMAGE, LEASE, HandMadeShare

from aliquot.injection import (
    ShareFolder,
    cdi_flags,
    container_command,
    flags,
    remove_cdi_spec,
    rewrite,
    write_cdi_spec,
)
from aliquot.injection.engine import Client, Engine, EngineKind
from aliquot.model import Edits
from engines.podman import PodmanSetup, podman_setup, scratch_user

pytestmark = pytest.mark.engine

LINES = (f"limits of {LEASE}", "governor libcuda.so.1")
ENGINE = Engine(
    Client(EngineKind.PODMAN, ("podman",)), (4, 3, 1), (4, 3, 1), (), "runc", frozenset(), "runc", True, False
)


@pytest.fixture(scope="module")
def rootless(image: Path) -> Iterator[PodmanSetup]:
    needs("podman", "newuidmap", "useradd")
    try:
        user = scratch_user()
        name = user.__enter__()
    except RuntimeError as reason:
        pytest.skip(f"no user for a rootless Podman: {reason}")
    try:
        with podman_setup(image, IMAGE, user=name) as setup:
            yield setup
    finally:
        user.__exit__(None, None, None)


@pytest.fixture
def line(rootless: PodmanSetup, share: HandMadeShare) -> list[str]:
    """``podman run`` up to the image, with the share of files that the user owns."""
    assert rootless.user is not None
    owner = pwd.getpwnam(rootless.user).pw_uid
    for path in [share.top, *share.top.rglob("*")]:
        os.chown(path, owner, owner, follow_symlinks=False)
    command = container_command(["podman", "run", "--rm", "--user", "UID", IMAGE])
    assert command is not None
    words = rewrite(command, engine=ENGINE, insertion=flags(share.edits(), lease_id=LEASE)).argv
    return list(words)


@pytest.mark.parametrize("uid", ["0", "12345"])
def test_a_rootless_container_reads_limits_and_writes_the_ledger(
    rootless: PodmanSetup, line: list[str], share: HandMadeShare, uid: str
) -> None:
    script = f"""
        cat /run/aliquot/share/limits /usr/lib64/libcuda.so.1
        echo 999 > /run/aliquot/share/limits || echo refused
        echo {uid} > /run/aliquot/share/ledger
        echo x > /run/aliquot/share/driver/softgpu/*/device || echo refused
        ls /run/aliquot
    """
    words = [uid if word == "UID" else word for word in line[1:]]
    done = rootless.run(*words, "sh", "-c", script)
    assert done.stdout.splitlines() == [*LINES, "refused", "refused", "share"]
    assert Path(share.folder.ledger).read_text() == f"{uid}\n"
    assert Path(share.folder.limits).read_text() == f"limits of {LEASE}\n"


def test_a_rootless_podman_reads_the_systems_cdi_folder_and_no_other(rootless: PodmanSetup) -> None:
    """Which a user cannot write: that is why rootless Podman gets plain options."""
    edits = Edits(env=(("ALIQUOT_LEASE", str(LEASE)),))
    folder = ShareFolder(f"/nonexistent/shares/{LEASE}")
    for place, seen in (("/var/run/cdi", True), (f"{rootless.environ['XDG_RUNTIME_DIR']}/cdi", False)):
        existed = Path(place).exists()
        write_cdi_spec(edits, LEASE, folder=folder, cdi_folder=place)
        try:
            done = rootless.run("run", "--rm", *cdi_flags(LEASE), IMAGE, "env")
        finally:
            remove_cdi_spec(LEASE, folder=folder, cdi_folder=place)
            if not existed:
                with contextlib.suppress(OSError):  # somebody else's now
                    Path(place).rmdir()
        assert (f"ALIQUOT_LEASE={LEASE}" in done.stdout) is seen
        assert ("unresolvable CDI devices" in done.stderr) is not seen
