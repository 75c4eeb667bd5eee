"""What must change for a program to find its share, engine by engine the same."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mount:
    source: str
    """Absolute path on the host; must exist."""
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class DeviceNode:
    path: str
    """Inside."""
    host_path: str


@dataclass(frozen=True, slots=True)
class Hook:
    """An OCI hook, as CDI names it."""

    name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edits:
    env: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    """Variables a child process must not inherit; containers start without them."""
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
