"""What is made of an engine's answers; each client here is a script that gives recorded ones."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aliquot.injection import Client, ContainerState, EngineKind, containers_of, probe
from aliquot.injection.reach import is_local
from aliquot.model import AliquotError, LeaseId, Reason

Script = Callable[..., str]
DOCKER = "Docker version 28.2.2, build e6534b4"
DOCKER_INFO: dict[str, Any] = {
    "ServerVersion": "28.2.2",
    "OperatingSystem": "Debian GNU/Linux 12 (bookworm)",
    "Runtimes": {"io.containerd.runc.v2": {"path": "runc"}, "runc": {"path": "runc"}},
    "DefaultRuntime": "runc",
    "SecurityOptions": ["name=seccomp,profile=builtin"],
    "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"],
}
PODMAN = "podman version 4.3.1"
PODMAN_INFO: dict[str, Any] = {
    "host": {
        "ociRuntime": {"name": "runc", "path": "/usr/bin/runc"},
        "security": {"rootless": False, "selinuxEnabled": False},
    },
    "version": {"Version": "4.3.1"},
}


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """A client: answers by the first of its arguments that is a key."""

    def make(name: str, answers: dict[str, object], status: int = 0) -> str:
        path = tmp_path / name
        cases = "".join(
            f"    {key}) printf '%s\\n' {shlex.quote(text if isinstance(text, str) else json.dumps(text))}; "
            f"exit {status if key != '--version' else 0};;\n"
            for key, text in answers.items()
        )
        path.write_text(f'#!/bin/sh\nfor word in "$@"; do\n  case "$word" in\n{cases}  esac\ndone\nexit 9\n')
        path.chmod(0o755)
        return str(path)

    return make


def docker(script: Script, **differences: object) -> str:
    answers = {"--version": DOCKER, "context": "unix:///var/run/docker.sock"}
    return script("docker", {**answers, "info": DOCKER_INFO | differences})


def test_a_docker_that_lists_cdi_folders_has_cdi(script: Script) -> None:
    program = docker(script)
    engine = probe([program], environ={})
    assert (engine.kind, engine.client) == (EngineKind.DOCKER, Client(EngineKind.DOCKER, (program,)))
    assert engine.cdi_folders == ("/etc/cdi", "/var/run/cdi")
    assert engine.client_version == engine.server_version == (28, 2, 2)
    assert (engine.rootless, engine.selinux, engine.defaults_to_nvidia) == (False, False, False)


@pytest.mark.parametrize("folders", [None, []])
def test_a_docker_whose_cdi_is_off_has_none(script: Script, folders: object) -> None:
    assert probe([docker(script, CDISpecDirs=folders)], environ={}).cdi_folders == ()


def test_a_client_too_old_for_cdi_has_none_whatever_the_service_says(script: Script) -> None:
    answers = {"--version": "Docker version 24.0.9", "context": "unix:///var/run/docker.sock"}
    assert probe([script("docker", {**answers, "info": DOCKER_INFO})], environ={}).cdi_folders == ()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("nvidia", "nvidia-container-runtime"),
        ("gpu", "/opt/bin/nvidia-container-runtime.cdi"),
        ("nvidia", "/x/y"),
    ],
)
def test_a_default_runtime_of_nvidias_is_seen_by_its_name_or_its_file(
    script: Script, name: str, path: str
) -> None:
    runtimes = {**DOCKER_INFO["Runtimes"], name: {"path": path}}
    engine = probe([docker(script, Runtimes=runtimes, DefaultRuntime=name)], environ={})
    assert engine.defaults_to_nvidia
    assert engine.nvidia_runtimes == {name}
    assert engine.plain_runtime == "runc"


def test_rootless_and_selinux_are_read_from_the_security_options(script: Script) -> None:
    engine = probe([docker(script, SecurityOptions=["name=selinux", "name=rootless"])], environ={})
    assert (engine.rootless, engine.selinux) == (True, True)


def test_docker_desktop_is_another_machine(script: Script) -> None:
    with pytest.raises(AliquotError, match="virtual machine") as raised:
        probe([docker(script, OperatingSystem="Docker Desktop")], environ={})
    assert raised.value.reason is Reason.ENGINE_REMOTE


def test_the_address_is_written_out_in_place_of_context_and_environment(script: Script) -> None:
    answers = {"--version": DOCKER, "context": "unix:///run/user/7/docker.sock", "info": DOCKER_INFO}
    program = script("docker", answers)
    command = [program, "--context", "mine", "-D", "--config=/c", "--tlsverify=false"]
    engine = probe(command, environ={"DOCKER_HOST": "unix:///run/user/7/docker.sock"})
    host = ("--host", "unix:///run/user/7/docker.sock")
    assert engine.client.command == (program, "--debug", "--config", "/c", "--tlsverify=false", *host)


@pytest.mark.parametrize("status", [0, 1])
def test_a_service_that_is_away_is_missing_in_every_clients_way_of_saying_so(
    script: Script, status: int
) -> None:
    context = script("docker-context", {"context": "unix:///var/run/docker.sock"})
    info = script("docker-info", {"info": {"ServerErrors": ["Cannot connect to it"]}}, status=status)
    program = Path(script("docker", {"--version": DOCKER}))
    cases = f"--version) echo {DOCKER!r};; info) {info} info; exit $?;; *) {context} context;;"
    program.write_text(f'#!/bin/sh\ncase "$1" in {cases} esac\n')
    with pytest.raises(AliquotError, match="Cannot connect to it") as raised:
        probe([str(program)], environ={})
    assert raised.value.reason is Reason.ENGINE_MISSING


def test_an_answer_that_is_not_json_is_missing_in_its_own_words(script: Script) -> None:
    answers = {"--version": DOCKER, "context": "unix:///var/run/docker.sock", "info": "permission denied"}
    with pytest.raises(AliquotError, match="permission denied") as raised:
        probe([script("docker", answers)], environ={})
    assert raised.value.reason is Reason.ENGINE_MISSING


def test_no_such_client_is_missing() -> None:
    with pytest.raises(AliquotError, match="No such file") as raised:
        probe(["/nonexistent/docker"])
    assert raised.value.reason is Reason.ENGINE_MISSING


def test_a_docker_that_is_podman_is_podman(script: Script) -> None:
    program = script("docker", {"--version": f"Emulate Docker CLI\n{PODMAN}", "info": PODMAN_INFO})
    engine = probe([program], environ={})
    assert engine.kind is EngineKind.PODMAN
    assert engine.cdi_folders == ("/etc/cdi", "/var/run/cdi")


def test_an_old_podman_has_no_cdi_and_a_rootless_one_says_so(script: Script) -> None:
    host = {**PODMAN_INFO["host"], "security": {"rootless": True, "selinuxEnabled": True}}
    answers = {"--version": "podman version 4.0.0", "info": {"host": host, "version": {"Version": "4.0.0"}}}
    engine = probe([script("podman", answers)], environ={})
    assert (engine.cdi_folders, engine.rootless, engine.selinux) == ((), True, True)


def test_a_podman_whose_runtime_is_nvidias_is_seen(script: Script) -> None:
    host = {**PODMAN_INFO["host"], "ociRuntime": {"name": "gpu", "path": "/usr/bin/nvidia-container-runtime"}}
    engine = probe(
        [script("podman", {"--version": PODMAN, "info": {**PODMAN_INFO, "host": host}})], environ={}
    )
    assert engine.defaults_to_nvidia


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        (["--url", "ssh://a@elsewhere/run/podman.sock"], {}),
        (["--url=tcp://192.0.2.7:8080"], {}),
        ([], {"CONTAINER_HOST": "ssh://a@elsewhere/x"}),
        (["--remote"], {}),
        (["-r"], {}),
        (["-c", "far"], {}),
        ([], {"CONTAINER_CONNECTION": "far"}),
    ],
)
def test_a_podman_of_another_machine_is_refused(
    script: Script, options: list[str], environ: dict[str, str]
) -> None:
    connections = [{"Name": "far", "URI": "ssh://a@elsewhere/run/podman.sock", "Default": True}]
    answers = {"--version": PODMAN, "connection": connections, "info": PODMAN_INFO}
    with pytest.raises(AliquotError) as raised:
        probe([script("podman", answers), *options], environ=environ | {"PATH": "/usr/bin:/bin"})
    assert raised.value.reason is Reason.ENGINE_REMOTE


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("unix:///var/run/docker.sock", True),
        ("unix:/run/podman/podman.sock", True),
        ("tcp://127.0.0.1:2375", True),
        ("tcp://localhost:2375", True),
        ("tcp://[::1]:2375", True),
        ("http://localhost:2375", True),
        ("tcp://192.0.2.7:2375", False),
        ("ssh://me@localhost", False),
        ("npipe:////./pipe/docker_engine", False),
    ],
)
def test_an_address_is_on_this_machine_or_not(address: str, local: bool) -> None:
    assert is_local(address) is local


def test_containers_are_told_by_our_label_and_several_of_one_lease_are_one(script: Script) -> None:
    rows = [
        {"ID": "1", "Labels": "a=b,aliquot.lease=abcde,z=y", "State": "exited"},
        {"ID": "2", "Labels": "aliquot.lease=abcde", "State": "paused"},
        {"ID": "3", "Labels": "aliquot.lease=other", "State": "running"},
        {"ID": "4", "Labels": "aliquot.lease=fghjk", "State": "created"},
    ]
    program = script("docker", {"ps": "\n".join(json.dumps(row) for row in rows)})
    client = Client(EngineKind.DOCKER, (program,))
    assert containers_of(client, [LeaseId("abcde"), LeaseId("fghjk"), LeaseId("mnpqr")], environ={}) == {
        "abcde": ContainerState(("1", "2"), True),
        "fghjk": ContainerState(("4",), False),
    }


def test_no_containers_is_not_the_same_as_not_known(script: Script) -> None:
    lease = [LeaseId("abcde")]
    for kind, nothing in ((EngineKind.DOCKER, ""), (EngineKind.PODMAN, "[]"), (EngineKind.PODMAN, "null")):
        assert containers_of(Client(kind, (script("client", {"ps": nothing}),)), lease, environ={}) == {}
    for kind in EngineKind:
        broken = Client(kind, (script("client", {"ps": "Error: something"}),))
        assert containers_of(broken, lease, environ={}) is None
        failing = Client(kind, (script("client", {"ps": "[]"}, status=1),))
        assert containers_of(failing, lease, environ={}) is None
        assert containers_of(Client(kind, ("/nonexistent/client",)), lease) is None
