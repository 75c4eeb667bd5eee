"""Where this user's Aliquot keeps things (the table in ARCHITECTURE.md)."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aliquot.model import AliquotError, LeaseId, Reason


@dataclass(frozen=True, slots=True)
class Paths:
    state: Path
    runtime: Path

    @property
    def book(self) -> Path:
        return self.state / "book.sqlite"

    @property
    def libraries(self) -> Path:
        return self.state / "lib"

    @property
    def softgpu(self) -> Path:
        return self.state / "softgpu"

    @property
    def shares(self) -> Path:
        return self.runtime / "shares"

    @property
    def turns(self) -> Path:
        """One page a device, by which all its shares take turns."""
        return self.runtime / "turns"

    def share(self, lease: LeaseId) -> Path:
        return self.shares / lease


def paths_of(environ: Mapping[str, str], *, uid: int) -> Paths:
    """The roots for ``uid``: root's are the machine's, everybody else's their own."""
    state = environ.get("ALIQUOT_STATE_DIR")
    runtime = environ.get("ALIQUOT_RUNTIME_DIR")
    return Paths(
        state=Path(state).absolute() if state else _default_state(environ, uid),
        runtime=_loadable(Path(runtime).absolute() if runtime else _default_runtime(environ, uid)),
    )


def _loadable(runtime: Path) -> Path:
    """Refuse a path that a library path cannot hold.

    ld.so ends an entry at ``:`` and ``;`` and replaces ``$LIB``: the governor would not be found,
    and the program would run on the system's libcuda, without a limit.
    """
    if any(character in str(runtime) for character in ":;$\n"):
        raise AliquotError(
            Reason.FILES_UNWRITABLE,
            f"{str(runtime)!r} cannot be the runtime folder: a library path cannot hold `:`, `;` or `$`",
            next=[("export ALIQUOT_RUNTIME_DIR=/another/folder", "is where shares' files will lie")],
        )
    return runtime


def _default_state(environ: Mapping[str, str], uid: int) -> Path:
    if uid == 0:
        return Path("/var/lib/aliquot")
    xdg = environ.get("XDG_STATE_HOME", "")
    base = Path(xdg) if xdg.startswith("/") else _home(environ, uid) / ".local/state"
    return base / "aliquot"


def _home(environ: Mapping[str, str], uid: int) -> Path:
    home = environ.get("HOME", "")
    if home.startswith("/"):
        return Path(home)
    import pwd

    try:
        return Path(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        raise AliquotError(
            Reason.FILES_UNWRITABLE,
            f"user {uid} has no home folder: HOME is not set and there is no entry for it",
            next=[("export ALIQUOT_STATE_DIR=/a/folder/of/yours", "says where the book shall lie")],
        ) from None


def _default_runtime(environ: Mapping[str, str], uid: int) -> Path:
    if uid == 0:
        return Path("/run/aliquot")
    xdg = environ.get("XDG_RUNTIME_DIR", "")
    # A variable inherited through su points into somebody else's folder.
    if xdg.startswith("/") and _owned(Path(xdg), uid):
        return Path(xdg) / "aliquot"
    return runtime_in_tmp(uid)


def runtime_in_tmp(uid: int) -> Path:
    """Of a user without a runtime folder of his own; the governor knows this path as well."""
    return Path(f"/tmp/aliquot-{uid}")


def _owned(folder: Path, uid: int) -> bool:
    try:
        return folder.stat().st_uid == uid
    except OSError:
        return False


def make_folder(folder: Path, mode: int) -> None:
    """Make ``folder`` with ``mode``; refuse one that another user could have prepared.

    /tmp is open to all: a folder there that is not ours, is a link, or is writable by
    others would let a neighbour choose what our tenants load.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir(mode=mode)
        except FileExistsError:
            pass
        else:
            folder.chmod(mode)  # whatever the umask made of it
        found = folder.lstat()
    except OSError as error:
        raise unwritable(folder, error) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise AliquotError(
            Reason.FILES_UNWRITABLE,
            f"{folder} is not a folder of ours alone: it must belong to uid {os.geteuid()}, "
            "be no link, and be writable by nobody else",
            next=[(f"ls -ld {folder}", "shows whose it is; remove it, or set ALIQUOT_RUNTIME_DIR")],
        )


def unwritable(path: Path, error: OSError) -> AliquotError:
    """The error for a share's file or folder that could not be written."""
    return AliquotError(
        Reason.FILES_UNWRITABLE,
        f"{path} cannot be written: {error.strerror or error}",
        next=[(f"df -h {path.parent}; ls -ld {path.parent}", "shows the space and the permissions")],
    )
