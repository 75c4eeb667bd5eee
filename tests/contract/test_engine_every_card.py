"""What would hand every card to a container, tried on real engines: an image that asks for all
cards, and an engine whose default runtime is a scripted ``nvidia`` that writes down what it is
asked for, as NVIDIA's reads it: from the environment in the container's config.json."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.conftest import needs
from tests.contract.tenancy import IMAGE, HandMadeShare, given_share

from engines.docker import DockerSetup, docker_setup

pytestmark = pytest.mark.engine

GREEDY = "greedy:1"

RUNTIME = """#!/bin/sh
# Of `create --bundle FOLDER …`: the value of NVIDIA_VISIBLE_DEVICES that NVIDIA's runtime would act on.
for word in "$@"; do
  if [ "$before" = "--bundle" ] && [ -f "$word/config.json" ]; then
    grep -o 'NVIDIA_VISIBLE_DEVICES=[^"]*' "$word/config.json" | tail -n 1 >> {log}
  fi
  before=$word
done
exec {runc} "$@"
"""


@pytest.fixture(scope="module", params=["debian", "newest"])
def nvidia_docker(
    request: pytest.FixtureRequest, image: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DockerSetup, Path]]:
    """An engine whose default runtime is called nvidia, and what that runtime was asked for."""
    needs("/usr/sbin/dockerd", "runc")
    programs = request.getfixturevalue("newest_programs") if request.param == "newest" else None
    folder = tmp_path_factory.mktemp("runtime")
    script, log = folder / "nvidia-container-runtime", folder / "asked"
    script.write_text(RUNTIME.format(log=log, runc=programs / "runc" if programs else "runc"))
    script.chmod(0o755)
    settings = {"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": str(script)}}}
    with docker_setup(image, IMAGE, programs=programs, settings=settings) as setup:
        with image.open("rb") as tar:
            setup.run(
                "import", "--change", "ENV NVIDIA_VISIBLE_DEVICES=all", "-", GREEDY, stdin=tar, check=True
            )
        yield setup, log


def asked(log: Path) -> list[str]:
    words = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    return words


def test_without_aliquot_the_runtime_would_hand_out_every_card(
    nvidia_docker: tuple[DockerSetup, Path],
) -> None:
    setup, log = nvidia_docker
    asked(log)
    assert setup.run("run", "--rm", "--network", "none", GREEDY, "true").returncode == 0
    assert asked(log) == ["NVIDIA_VISIBLE_DEVICES=all"]


@pytest.mark.parametrize("by_cdi", [False, True])
def test_the_runtime_is_not_called_and_were_it_called_it_would_be_asked_for_nothing(
    nvidia_docker: tuple[DockerSetup, Path], share: HandMadeShare, by_cdi: bool
) -> None:
    setup, log = nvidia_docker
    asked(log)
    with given_share(setup, share, share.edits(), by_cdi=False) as tenant:
        if by_cdi and not tenant.engine.cdi_folders:
            pytest.skip("this engine has no CDI")
    with given_share(setup, share, share.edits(), by_cdi=by_cdi) as tenant:
        assert tenant.engine.defaults_to_nvidia
        done = tenant.run(GREEDY, "env")
        assert "NVIDIA_VISIBLE_DEVICES=void" in done.stdout.split()
        assert asked(log) == []
        line = tenant.line("--rm", GREEDY, "true")
        at = line.index("--runtime")
        subprocess.run([*line[:at], *line[at + 2 :]], env=setup.environ, check=True)
        assert asked(log) == ["NVIDIA_VISIBLE_DEVICES=void"]


def test_a_variable_from_a_file_of_the_users_is_overridden(
    nvidia_docker: tuple[DockerSetup, Path], share: HandMadeShare, tmp_path: Path
) -> None:
    setup, _ = nvidia_docker
    (tmp_path / "env").write_text("NVIDIA_VISIBLE_DEVICES=all\nOTHER=kept\n")
    with given_share(setup, share, share.edits(), by_cdi=False) as tenant:
        seen = tenant.run("--env-file", str(tmp_path / "env"), GREEDY, "env").stdout.split()
    assert "NVIDIA_VISIBLE_DEVICES=void" in seen
    assert "OTHER=kept" in seen
