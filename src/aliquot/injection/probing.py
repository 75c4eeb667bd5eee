"""Asking an engine what it is: never guessed from the name of its client alone.

Debian's ``podman-docker`` installs a ``docker`` that is Podman; a new client may talk to an old
service; CDI may be switched off. Each answer here is the engine's own.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from aliquot.injection.asking import PATIENCE, ask, last_words
from aliquot.injection.engine import Client, Engine, EngineKind
from aliquot.injection.reach import docker_client, refuse_remote_podman
from aliquot.model import AliquotError, Reason

_PODMAN_WITH_CDI = (4, 1)
_DOCKER_CLIENT_WITH_CDI = (25,)
"""An older client sends a CDI name as a host path, whatever the service can do."""
_PODMAN_CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
"""Compiled in, for rootless Podman too."""


def probe(
    command: Sequence[str], *, environ: Mapping[str, str] | None = None, timeout: float = PATIENCE
) -> Engine:
    """Ask the engine behind ``command`` (a client and its options before the verb).

    ``environ`` is what the client is to run with (default: ours); ``timeout`` in seconds is for
    each of the two or three questions. Raises ``AliquotError``: ``engine-missing`` where it does
    not answer, ``engine-remote`` where it runs on another machine.
    """
    environ = os.environ if environ is None else environ
    status, said, complaint = ask([command[0], "--version"], environ=environ, timeout=timeout)
    if status != 0:
        raise _missing(command[0], last_words(complaint, said))
    version = _version(said)
    if "podman" in said.lower():
        refuse_remote_podman(command, environ=environ, timeout=timeout)
        client = Client(EngineKind.PODMAN, tuple(command))
        return _podman(client, version, _info(client, environ, timeout))
    client = docker_client(command, environ=environ, timeout=timeout)
    return _docker(client, version, _info(client, environ, timeout))


def _info(client: Client, environ: Mapping[str, str], timeout: float) -> dict[str, Any]:
    question = [*client.command, "info", "--format", "{{json .}}"]
    status, said, complaint = ask(question, environ=environ, timeout=timeout)
    try:
        answer = json.loads(said)
    except ValueError as error:
        raise _missing(client.command[0], last_words(complaint, said)) from error
    # Docker answers half with status 0 or 1 where its service is away; which, varies by release.
    errors = answer.get("ServerErrors") or []
    if status != 0 or errors:
        raise _missing(client.command[0], errors[0] if errors else last_words(complaint))
    return dict(answer)


def _podman(client: Client, version: tuple[int, ...] | None, info: Mapping[str, Any]) -> Engine:
    host = info["host"]
    runtime = host.get("ociRuntime") or {}
    name = runtime.get("name")
    nvidia = _is_nvidia(name, runtime.get("path"))
    server = _version((info.get("version") or {}).get("Version") or "")
    security = host.get("security") or {}
    return Engine(
        client=client,
        client_version=version,
        server_version=server,
        cdi_folders=_PODMAN_CDI_FOLDERS if (server or ()) >= _PODMAN_WITH_CDI else (),
        default_runtime=name,
        nvidia_runtimes=frozenset([str(name)] if nvidia else []),
        plain_runtime=name if not nvidia else next(filter(shutil.which, ("crun", "runc")), None),
        rootless=bool(security.get("rootless")),
        selinux=bool(security.get("selinuxEnabled")),
    )


def _docker(client: Client, version: tuple[int, ...] | None, info: Mapping[str, Any]) -> Engine:
    if info.get("OperatingSystem") == "Docker Desktop":
        raise AliquotError(
            Reason.ENGINE_REMOTE,
            "Docker Desktop runs containers in a virtual machine, which has none of this machine's GPUs",
            next=[("docker context use default", "talks to the engine of this machine")],
        )
    runtimes = info.get("Runtimes") or {}
    nvidia = frozenset(name for name, entry in runtimes.items() if _is_nvidia(name, entry.get("path")))
    plain = sorted(set(runtimes) - nvidia, key=lambda name: (name != "runc", name))
    options = " ".join(info.get("SecurityOptions") or [])
    # The API's words: "An empty list indicates that CDI device injection is disabled."
    folders = tuple(info.get("CDISpecDirs") or ()) if (version or ()) >= _DOCKER_CLIENT_WITH_CDI else ()
    return Engine(
        client=client,
        client_version=version,
        server_version=_version(info.get("ServerVersion") or ""),
        cdi_folders=folders,
        default_runtime=info.get("DefaultRuntime"),
        nvidia_runtimes=nvidia,
        plain_runtime=plain[0] if plain else None,
        rootless="name=rootless" in options,
        selinux="name=selinux" in options,
    )


def _is_nvidia(name: str | None, path: str | None) -> bool:
    """By name, or by the file it runs: a runtime called ``gpu`` may be NVIDIA's too."""
    return "nvidia" in (name or "").lower() or "nvidia" in (path or "").rpartition("/")[2].lower()


def _version(text: str) -> tuple[int, ...] | None:
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found.group().split(".")) if found else None


def _missing(program: str, words: str) -> AliquotError:
    return AliquotError(
        Reason.ENGINE_MISSING,
        f"`{program}` does not answer: {words}",
        next=[
            (f"{program} info", "shows its own words"),
            ("aliquot doctor", "asks every engine and says what it found"),
        ],
    )
