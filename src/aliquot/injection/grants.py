"""What in the user's own options would hand out cards past the share.

``refusals`` are refused by name, with the reason. ``warnings`` leave the container in its share
but let a program inside take its limits away, or are worth a word.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from aliquot.injection.command_line import Option
from aliquot.injection.engine import Engine
from aliquot.injection.for_processes import RUNTIME_DEVICES
from aliquot.injection.share_folder import TENANT_SHARE
from aliquot.injection.share_mounts import GOVERNED
from aliquot.injection.user_mounts import clean, source_and_target
from aliquot.model import Notice, Severity

_CARD_NODES = re.compile(r"/dev/(nvidia|dri(/|$)|kfd$|dxg$|accel)")
_CARD_MAJORS = ("195", "226", "*")
"""Character devices: NVIDIA's, DRM's, any."""
_RUNTIME_FOLDER = "/var/run/nvidia-container-devices"
"""NVIDIA's runtime reads the names of mounts below it as card numbers."""
_LISTS = ("annotation", "cap-add", "device", "device-cgroup-rule")
_ENGINE_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock")


def refusals(options: Sequence[Option], engine: Engine) -> Iterator[tuple[Option, str]]:
    """(option, why) of each option that would give the container cards past its share."""
    for option in options:
        reasons = [why for value in _values(option) if (why := _why_refused(option, value, engine))]
        if reasons:
            yield option, reasons[0]


def _values(option: Option) -> Sequence[str]:
    """Podman takes several, by comma, where Docker takes one; none of these has a comma in it."""
    value = option.value or ""
    return value.split(",") if option.name in _LISTS else [value]


def _why_refused(option: Option, value: str, engine: Engine) -> str | None:
    match option.name:
        case "gpus":
            return "it hands whole cards to the container, past its share"
        case "privileged" if option.on:
            return "it gives the container every device of this machine"
        case "runtime" if value in engine.nvidia_runtimes or "nvidia" in PurePosixPath(value).name:
            return "NVIDIA's runtime hands out cards by itself"
        case "device":
            return _device(value)
        case "device-cgroup-rule":
            return _cgroup_rule(value)
        case "volume" | "mount":
            return _mount(*source_and_target(option))
        case "env" | "env-merge":
            return _env(value)
        case "annotation" if value.startswith("cdi.k8s.io/"):
            return "NVIDIA's runtime reads it as a request for cards"
    return None


def _device(value: str) -> str | None:
    if "=" in value and "/" in value and not value.startswith("/"):
        kind = value.partition("=")[0]
        if kind.startswith("aliquot.dev/"):
            return "a container has one share, and Aliquot adds it"
        vendor, _, device_class = kind.partition("/")
        if "nvidia" in vendor or device_class in ("gpu", "mig", "dri"):
            return "it hands whole cards to the container, past its share"
        return None
    path = clean(value.partition(":")[0])
    if path in ("/", "/dev"):
        return "it gives the container every device of this machine"
    return "it is a card's device node, past the share" if _CARD_NODES.match(path) else None


def _cgroup_rule(value: str) -> str | None:
    kind, _, numbers = value.partition(" ")
    major = numbers.strip().partition(":")[0]
    if kind == "a" or (kind == "c" and major in _CARD_MAJORS):
        return "with it a program inside can make a card's device node for itself"
    return None


def _mount(source: str, target: str) -> str | None:
    source, target = clean(source), clean(target)
    if source in ("/", "/dev") or _CARD_NODES.match(source):
        return "it shows the container every card's device node"
    if target.startswith(_RUNTIME_FOLDER):
        return "NVIDIA's runtime reads it as a request for cards"
    if target == TENANT_SHARE or target.startswith(f"{TENANT_SHARE}/"):
        return f"Aliquot mounts the share at {TENANT_SHARE}"
    stems = tuple(name[: name.index(".so") + 3] for name in GOVERNED)
    if PurePosixPath(target).name.startswith(stems):
        return "it puts the driver in front of what holds the share"
    return None


def _env(value: str) -> str | None:
    name, _, setting = value.partition("=")
    # Podman takes `--env PREFIX*` for every variable of ours that begins so.
    matches = name == RUNTIME_DEVICES or (name.endswith("*") and RUNTIME_DEVICES.startswith(name[:-1]))
    if matches and setting != "void":
        return "NVIDIA's runtime hands out the cards that it names; the share needs no variable"
    return None


def warnings(options: Sequence[Option], *, own_folders: Sequence[str]) -> Iterator[Notice]:
    """What weakens the share without handing out a card.

    ``own_folders``: where Aliquot keeps the book and the shares on this machine.
    """
    for option in options:
        if option.name == "cap-add":
            yield from filter(None, map(_capability, _values(option)))
        elif option.name == "pid" and option.value == "host":
            yield _weaker("--pid host", "root inside can reach into other tenants' containers")
        elif option.name in ("volume", "mount"):
            yield from _source(_real_run(clean(source_and_target(option)[0])), own_folders)


def _capability(value: str) -> Notice | None:
    match value.upper().removeprefix("CAP_"):
        case "ALL" | "SYS_ADMIN":
            return _weaker(f"--cap-add {value}", "root inside can remount its limits writable")
        case "SYS_PTRACE":
            return _weaker(f"--cap-add {value}", "root inside can reach into other tenants' processes")
    return None


def _source(source: str, own_folders: Sequence[str]) -> Iterator[Notice]:
    if PurePosixPath(source).name in _ENGINE_SOCKETS:
        yield _weaker(source, "a program inside can start containers without a share")
    shown = [folder for folder in own_folders if source and _overlap(folder, source)]
    if shown:
        yield _weaker(source, f"it shows Aliquot's own files in {shown[0]} to the container")


def _overlap(one: str, other: str) -> bool:
    """Whether one of two folders lies in the other, or both are the same."""
    return f"{one}/".startswith(f"{other.rstrip('/')}/") or f"{other}/".startswith(f"{one.rstrip('/')}/")


def _real_run(path: str) -> str:
    return path.removeprefix("/var") if f"{path}/".startswith("/var/run/") else path


def _weaker(what: str, why: str) -> Notice:
    return Notice(
        "isolation-weakened", Severity.WARNING, f"`{what}`: {why}; the share is only advisory", None
    )
