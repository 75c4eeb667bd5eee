#!/usr/bin/env python3
"""A Docker engine with folders and a socket of its own; nothing of the machine's own one.

    tools/engines/docker.py debian|newest COMMAND…    runs COMMAND with DOCKER_HOST set, then removes all

``debian``: Debian's docker.io (20.10, no CDI). ``newest``: what build_newest_docker.sh built (CDI).
Needs root. No network for containers: ``--network none`` is what each of them gets.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from engines.leftovers import remove_all_under, remove_control_groups, remove_stray

BUILD_NEWEST = Path(__file__).with_name("build_newest_docker.sh")

_STRAYS = [Path(p) for p in ("/etc/docker/key.json", "/etc/docker", "/run/docker", "/run/containerd")]
"""What an engine makes outside the folders it is told: empty folders and, in 20.10, a key."""


@dataclass(frozen=True)
class DockerSetup:
    folder: Path
    client: str
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, **options: object) -> "subprocess.CompletedProcess[str]":
        settings: dict[str, object] = {"capture_output": True, "text": True, "timeout": 60, "check": False}
        command = [self.client, *words]
        return subprocess.run(command, env=self.environ, **(settings | options))  # type: ignore[call-overload,no-any-return]


def build_newest() -> Path:
    """The folder of the newest engine's programs, built if it is not there yet."""
    built = subprocess.run([str(BUILD_NEWEST)], check=True, stdout=subprocess.PIPE, text=True)
    return Path(built.stdout.strip())


@contextmanager
def docker_setup(
    image: Path,
    name: str,
    *,
    programs: Path | None = None,
    client: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[DockerSetup]:
    """A running engine with ``image`` (a tar of a root file system) imported as ``name``.

    ``programs``: the folder of the newest engine, else Debian's is started. ``settings`` go into
    its daemon.json. Raises ``RuntimeError`` with the end of its log where it does not come up.
    """
    # Not under pytest's long folders: its containerd's socket must fit in 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="aliquot-docker-"))
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "DOCKER_HOST": f"unix://{folder}/docker.sock"}
    setup = DockerSetup(folder, client or _client(programs), environ)
    group = folder.name
    strays = [path for path in _STRAYS if not path.exists()]
    try:
        process = _start(setup, programs, dict(settings or {}), group)
        try:
            _wait(setup, process)
            with image.open("rb") as tar:
                setup.run("import", "-", name, stdin=tar, check=True)
            try:
                yield setup
            finally:
                left = setup.run("ps", "--all", "--quiet").stdout.split()
                if left:
                    setup.run("rm", "--force", *left)
        finally:
            process.terminate()
            process.wait(timeout=30)
    finally:
        remove_all_under(folder)
        remove_control_groups(group)
        for path in strays:
            remove_stray(path)


def _client(programs: Path | None) -> str:
    """The client that belongs to the engine: Debian's 20.10, or the newest on PATH."""
    debian = Path("/usr/bin/docker")
    if programs is None:
        return str(debian)
    return shutil.which("docker") or str(debian)


def _start(
    setup: DockerSetup, programs: Path | None, settings: dict[str, Any], group: str
) -> "subprocess.Popen[bytes]":
    folder = setup.folder
    if programs is not None:
        # CDI stays as it is by default: on, reading /etc/cdi and /var/run/cdi.
        settings["userland-proxy"] = False
    (folder / "daemon.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [
        str(programs / "dockerd") if programs else "/usr/sbin/dockerd",
        *("--config-file", f"{folder}/daemon.json"),
        *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
        *("--host", setup.environ["DOCKER_HOST"], "--pidfile", f"{folder}/pid"),
        *("--bridge", "none", "--iptables=false", "--cgroup-parent", group),
    ]
    path = f"{programs}:{os.environ['PATH']}" if programs else os.environ["PATH"]
    environ = {"PATH": path, "HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _wait(setup: DockerSetup, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        # Status alone does not tell: Debian's client exits 0 with the service away.
        if setup.run("info", "--format", "{{.ServerVersion}}").stdout.strip():
            return
        time.sleep(0.1)
    log = (setup.folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    raise RuntimeError("the engine did not come up: " + "\n".join(log[-15:]))


def main(words: list[str]) -> int:
    from engines.rootfs import make_rootfs, pack

    programs = {"debian": None, "newest": build_newest}[words[0]]
    with tempfile.TemporaryDirectory() as scratch:
        image = pack(make_rootfs(Path(scratch) / "root"), Path(scratch) / "image.tar")
        with docker_setup(image, "small:1", programs=programs and programs()) as setup:
            environ = os.environ | {"DOCKER_HOST": setup.environ["DOCKER_HOST"]}
            return subprocess.run(words[1:], env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
