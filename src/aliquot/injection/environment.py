"""Performing the edits of a process: the environment that the child starts with."""

from collections.abc import Mapping, Sequence

from aliquot.injection.for_processes import LIBRARY_PATH, VISIBLE_DEVICES
from aliquot.model import Edits


def child_environment(edits: Edits, environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` with ``edits`` applied. Pure.

    Two variables are joined rather than replaced: ``LD_LIBRARY_PATH`` (ours first, so that a
    driver elsewhere on the inherited path is never found before the governor) and, for a whole
    lease, ``CUDA_VISIBLE_DEVICES`` (an inherited value selects within the lease).
    """
    child = {name: value for name, value in environ.items() if name not in edits.unset}
    for name, value in edits.env:
        inherited = environ.get(name)
        if name == LIBRARY_PATH:
            value = join_library_path(value, inherited)
        elif name == VISIBLE_DEVICES and inherited is not None:
            value = ",".join(select_devices(inherited, value.split(",")))
        child[name] = value
    return child


def join_library_path(prefix: str, inherited: str | None) -> str:
    """``prefix`` before what was inherited, without empty entries: an empty one means ``.``."""
    rest = [entry for entry in (inherited or "").split(":") if entry and entry != prefix]
    return ":".join([prefix, *rest])


def select_devices(selection: str, devices: Sequence[str]) -> tuple[str, ...]:
    """The ``devices`` (UUIDs) that a ``CUDA_VISIBLE_DEVICES`` selects, by CUDA's own rules.

    Ordinals or unique UUID prefixes, by comma; the first that is invalid hides itself and all
    after it, and a device named twice hides everything, as NVIDIA documents.
    """
    chosen: list[str] = []
    for item in selection.split(","):
        device = _named(item.strip(), devices)
        if device is None:
            break
        if device in chosen:
            return ()
        chosen.append(device)
    return tuple(chosen)


def _named(item: str, devices: Sequence[str]) -> str | None:
    if item.isascii() and item.isdigit():
        return devices[int(item)] if int(item) < len(devices) else None
    matches = [device for device in devices if item and device.lower().startswith(item.lower())]
    return matches[0] if len(matches) == 1 else None
