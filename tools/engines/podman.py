#!/usr/bin/env python3
"""A Podman with a store of its own, on a machine without network, systemd or cgroup v2.

    tools/engines/podman.py COMMAND…      runs COMMAND with `podman` set up so, then removes all

Needs Debian's podman and runc (crun fails on hybrid control groups). Settings come from the
environment alone (CONTAINERS_CONF, CONTAINERS_STORAGE_CONF), so that command lines stay those
that a user types.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from engines.leftovers import end_processes_of, remove_all_under

_ENGINE = """\
[containers]
netns = "none"
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
image_default_transport = "docker://"
"""


@dataclass(frozen=True)
class PodmanSetup:
    folder: Path
    environ: dict[str, str]
    user: str | None
    """Whose Podman it is; ``None`` for ours."""

    def run(self, *words: str, **options: object) -> "subprocess.CompletedProcess[str]":
        """``podman words``, as that user."""
        return run_as(self.user, ["podman", *words], self.environ, **options)


def run_as(
    user: str | None, command: Sequence[str], environ: dict[str, str], **options: object
) -> "subprocess.CompletedProcess[str]":
    front = [] if user is None else ["runuser", "-u", user, "--"]
    settings: dict[str, object] = {
        "capture_output": True,
        "text": True,
        "timeout": 60,
        "check": False,
        "cwd": "/",
    }
    return subprocess.run([*front, *command], env=environ, **(settings | options))  # type: ignore[call-overload,no-any-return]


@contextmanager
def podman_setup(image: Path, name: str, *, user: str | None = None) -> Iterator[PodmanSetup]:
    """A Podman of ``user`` (default: ours) in a scratch folder, with ``image`` (a tar of a root
    file system) imported as ``name``. Leaves nothing."""
    folder = Path(tempfile.mkdtemp(prefix="aliquot-podman-"))
    try:
        setup = _lay_out(folder, user)
        with image.open("rb") as tar:
            done = setup.run("import", "-", name, stdin=tar)
        if done.returncode != 0:
            raise RuntimeError(f"podman import: {done.stderr}")
        try:
            yield setup
        finally:
            setup.run("rm", "--all", "--force", "--time", "0")
    finally:
        remove_all_under(folder)


def _lay_out(folder: Path, user: str | None) -> PodmanSetup:
    for name in ("home", "runtime", "store", "run"):
        (folder / name).mkdir(mode=0o700)
    driver = "overlay" if user is None else "vfs"  # overlay in a user namespace varies by kernel
    storage = f'[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
    (folder / "storage.conf").write_text(storage, encoding="utf-8")
    (folder / "containers.conf").write_text(_ENGINE + f'tmp_dir = "{folder}/run/tmp"\n', encoding="utf-8")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "XDG_RUNTIME_DIR": str(folder / "runtime"),
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    if user is not None:
        subprocess.run(["chown", "-R", f"{user}:", str(folder)], check=True)
    return PodmanSetup(folder, environ, user)


@contextmanager
def scratch_user() -> Iterator[str]:
    """A user of this machine with subordinate ids, as rootless Podman needs; removed at the end.

    Needs root. Raises ``RuntimeError`` with the reason where it cannot be had.
    """
    name = f"aliquot-{os.getpid()}"
    home = tempfile.mkdtemp(prefix="aliquot-home-")
    add = ["useradd", "--no-create-home", "--home-dir", home, name]
    made = subprocess.run(add, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        shutil.rmtree(home)
        raise RuntimeError(f"useradd: {made.stderr.strip()}")
    try:
        shutil.chown(home, name)
        if f"{name}:" not in Path("/etc/subuid").read_text(encoding="utf-8"):
            raise RuntimeError("useradd gave no subordinate ids: install uidmap")
        yield name
    finally:
        end_processes_of(pwd.getpwnam(name).pw_uid)
        subprocess.run(["userdel", "--force", name], capture_output=True, check=False)
        shutil.rmtree(home)


def main(words: list[str]) -> int:
    from engines.rootfs import make_rootfs, pack

    with tempfile.TemporaryDirectory() as scratch:
        image = pack(make_rootfs(Path(scratch) / "root"), Path(scratch) / "image.tar")
        with podman_setup(image, "small:1") as setup:
            return subprocess.run(words, env=os.environ | setup.environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
