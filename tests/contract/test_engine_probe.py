"""What real engines answer when asked what they are, and what their clients take."""

import os
import re
import subprocess

import pytest
from tests.contract.tenancy import IMAGE, LEASE, Tenant

from aliquot.injection import Client, EngineKind, containers_of, image_environment, probe
from aliquot.injection.options import GLOBAL_OPTIONS, RUN_OPTIONS, OptionTable
from aliquot.model import AliquotError, LeaseId, Reason
from engines.docker import DockerSetup
from engines.podman import PodmanSetup

pytestmark = pytest.mark.engine


def test_podman_says_that_it_has_cdi(podman: PodmanSetup) -> None:
    engine = probe(["podman"], environ=podman.environ)
    assert engine.kind is EngineKind.PODMAN
    # It names /run/cdi where that exists, and /var/run/cdi, a link to the same, where it does not.
    assert [os.path.realpath(folder) for folder in engine.cdi_folders] == ["/etc/cdi", "/run/cdi"]
    assert (engine.server_version or ()) >= (4, 1)
    assert not engine.rootless
    assert engine.default_runtime == engine.plain_runtime == "runc"


def test_debians_docker_says_that_it_has_no_cdi(debian_docker: DockerSetup) -> None:
    engine = probe([debian_docker.client], environ=debian_docker.environ)
    assert engine.kind is EngineKind.DOCKER
    assert engine.cdi_folders == ()
    assert (engine.server_version or ())[:2] == (20, 10)
    assert (engine.default_runtime, engine.defaults_to_nvidia) == ("runc", False)


def test_the_newest_docker_says_which_folders_it_reads(newest_docker: DockerSetup) -> None:
    engine = probe([newest_docker.client], environ=newest_docker.environ)
    # It names /run/cdi where that exists, and /var/run/cdi, a link to the same, where it does not.
    assert [os.path.realpath(folder) for folder in engine.cdi_folders] == ["/etc/cdi", "/run/cdi"]
    assert (engine.server_version or ()) >= (29,)


def test_an_old_client_of_a_new_engine_gets_no_cdi(
    newest_docker: DockerSetup, debian_docker: DockerSetup
) -> None:
    engine = probe([debian_docker.client], environ=newest_docker.environ)
    assert (engine.server_version or ()) >= (29,)
    assert engine.cdi_folders == ()


def test_an_engine_found_through_docker_host_is_found_again_without_it(debian_docker: DockerSetup) -> None:
    engine = probe([debian_docker.client], environ=debian_docker.environ)
    assert engine.client.endpoint is not None
    again = Client.of("docker", engine.client.endpoint)
    without = {name: value for name, value in debian_docker.environ.items() if name != "DOCKER_HOST"}
    assert containers_of(again, [LEASE], environ=without) == {}


def test_an_engine_whose_service_is_away_is_called_missing(debian_docker: DockerSetup) -> None:
    for client in {debian_docker.client, "docker"}:
        with pytest.raises(AliquotError, match=r"Cannot connect|failed to connect") as raised:
            probe([client, "-H", "unix:///nonexistent/docker.sock"], environ=debian_docker.environ)
        assert raised.value.reason is Reason.ENGINE_MISSING
    gone = Client(EngineKind.DOCKER, ("docker", "--host", "unix:///nonexistent/docker.sock"))
    assert containers_of(gone, [LEASE]) is None


@pytest.mark.parametrize(
    "command",
    [
        ["docker", "-H", "tcp://192.0.2.1:2375"],
        ["docker", "--host=ssh://someone@192.0.2.1"],
        ["podman", "--url", "ssh://someone@192.0.2.1/run/podman/podman.sock"],
    ],
)
def test_an_engine_on_another_machine_is_refused_before_it_is_asked(command: list[str]) -> None:
    with pytest.raises(AliquotError, match=r"192\.0\.2\.1") as raised:
        probe(command)
    assert raised.value.reason is Reason.ENGINE_REMOTE


def test_docker_host_on_another_machine_is_named(debian_docker: DockerSetup) -> None:
    environ = debian_docker.environ | {"DOCKER_HOST": "tcp://192.0.2.1:2375"}
    with pytest.raises(AliquotError, match="DOCKER_HOST") as raised:
        probe([debian_docker.client], environ=environ)
    assert raised.value.reason is Reason.ENGINE_REMOTE


def test_an_engine_that_hangs_is_given_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    hanging = tmp_path_factory.mktemp("hang") / "docker"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    with pytest.raises(AliquotError, match=r"did not answer within 0\.2 s") as raised:
        probe([str(hanging)], timeout=0.2)
    assert raised.value.reason is Reason.ENGINE_MISSING


def test_a_leases_containers_are_known_from_creation_to_removal(tenant: Tenant) -> None:
    client = tenant.engine.client
    environ = tenant.setup.environ

    def state() -> object:
        known = containers_of(client, [LEASE, LeaseId("zzzzz")], environ=environ)
        assert known is not None
        assert set(known) <= {LEASE}
        return known[LEASE].running if LEASE in known else None

    assert state() is None
    line = tenant.line("--name", "kept", IMAGE, "sleep", "60", verb="create")
    subprocess.run(line, env=environ, check=True, capture_output=True)
    try:
        assert state() is False
        assert tenant.setup.run("start", "kept").returncode == 0
        assert state() is True
        assert tenant.setup.run("kill", "kept").returncode == 0
        tenant.setup.run("wait", "kept")
        assert state() is False
    finally:
        tenant.setup.run("rm", "--force", "kept")
    assert state() is None


def test_an_images_environment_is_read_and_unknown_for_an_image_that_is_not_here(podman: PodmanSetup) -> None:
    client = Client(EngineKind.PODMAN, ("podman",))
    assert image_environment(client, IMAGE, environ=podman.environ) is not None
    assert image_environment(client, "no-such-image:1", environ=podman.environ) is None


def options_of(help_text: str) -> dict[str, bool]:
    """Whether each option that a help text shows takes a value."""
    found = re.findall(r"^ {2,6}(?:-\w, )?--([a-z0-9-]+)(?: (\S+))?(?: {2,}|\s*$)", help_text, re.MULTILINE)
    assert len(found) > 5
    return {name: bool(value) for name, value in found}


@pytest.mark.parametrize("program", ["podman", "/usr/bin/docker", "/usr/local/bin/docker"])
@pytest.mark.parametrize("verb", ["run", "create", ""])
def test_the_table_of_options_agrees_with_the_clients_own_help(program: str, verb: str) -> None:
    kind = EngineKind.PODMAN if program == "podman" else EngineKind.DOCKER
    table: OptionTable = (RUN_OPTIONS if verb else GLOBAL_OPTIONS)[kind]
    try:
        asked = [word for word in (program, verb, "--help") if word]
        text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip(f"{program} is not installed")
    for name, valued in options_of(text).items():
        assert name in (table.valued if valued else table.flags), name
        assert name not in (table.flags if valued else table.valued), name
