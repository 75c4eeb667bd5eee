"""Whether an engine runs on this machine: a share cannot be mounted on another one."""

import json
import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from aliquot.injection.asking import ask, last_words
from aliquot.injection.command_line import option_values, without_options
from aliquot.injection.engine import Client, EngineKind
from aliquot.injection.options import GLOBAL_OPTIONS
from aliquot.model import AliquotError, Reason

_DOCKER_DEFAULT = "unix:///var/run/docker.sock"


def docker_client(command: Sequence[str], *, environ: Mapping[str, str], timeout: float) -> Client:
    """The client with its service's address written out, so that it is found again without the
    environment or the context of this shell. Raises ``engine-remote`` or ``engine-missing``.
    """
    question = [*command, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
    status, said, complaint = ask(question, environ=environ, timeout=timeout)
    host = said.strip()
    if status != 0 or not host:
        raise AliquotError(Reason.ENGINE_MISSING, f"`{command[0]}`: {last_words(complaint, said)}")
    if not is_local(host):
        source = "DOCKER_HOST" if environ.get("DOCKER_HOST") == host else "its options or its context"
        raise _remote(command[0], host, source)
    if host == _DOCKER_DEFAULT:
        host_options: tuple[str, ...] = ()
    else:
        host_options = ("--host", host)
    table = GLOBAL_OPTIONS[EngineKind.DOCKER]
    rest = without_options(command[1:], table, {"host", "context"})
    return Client(EngineKind.DOCKER, (command[0], *rest, *host_options))


def refuse_remote_podman(command: Sequence[str], *, environ: Mapping[str, str], timeout: float) -> None:
    """Podman runs here by itself, unless its options or environment name a service elsewhere."""
    table = GLOBAL_OPTIONS[EngineKind.PODMAN]
    options = command[1:]
    url = _last(option_values(options, table, "url")) or environ.get("CONTAINER_HOST")
    connection = _last(option_values(options, table, "connection")) or environ.get("CONTAINER_CONNECTION")
    forced = bool(option_values(options, table, "remote")) or command[0].endswith("podman-remote")
    if url is None and (connection is not None or forced):
        url = _connection(command[0], connection, environ, timeout)
    if url is not None and not is_local(url):
        raise _remote(command[0], url, "its options, its connections or CONTAINER_HOST")


def _last(values: Sequence[str]) -> str | None:
    return values[-1] if values else None


def _connection(program: str, name: str | None, environ: Mapping[str, str], timeout: float) -> str | None:
    """The address of the connection called ``name``, or of the default one."""
    question = [program, "system", "connection", "list", "--format", "json"]
    status, said, _ = ask(question, environ=environ, timeout=timeout)
    try:
        known = json.loads(said) if status == 0 else []
    except ValueError:
        known = []
    for entry in known or []:
        if entry.get("Name") == name or (name is None and entry.get("Default")):
            return str(entry.get("URI"))
    return None


def is_local(address: str) -> bool:
    """Whether an engine's address is on this machine: a unix socket, or TCP on the loopback."""
    parts = urlsplit(address)
    if parts.scheme in ("unix", ""):
        return True
    if parts.scheme not in ("tcp", "http", "https"):
        return False
    return parts.hostname in ("localhost", "127.0.0.1", "::1", os.uname().nodename)


def _remote(program: str, host: str, source: str) -> AliquotError:
    return AliquotError(
        Reason.ENGINE_REMOTE,
        f"`{program}` talks to {host} ({source}), and a share of this machine's GPU cannot be mounted there",
        next=[
            ("unset DOCKER_HOST DOCKER_CONTEXT CONTAINER_HOST CONTAINER_CONNECTION", "uses this machine's"),
            ("ssh HOST aliquot run --gpu SPEC -- …", "leases a GPU of that machine instead"),
        ],
    )
