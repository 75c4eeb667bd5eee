"""A container engine as it described itself."""

import shlex
from dataclasses import dataclass
from enum import Enum
from typing import Self


class EngineKind(Enum):
    PODMAN = "podman"
    DOCKER = "docker"


@dataclass(frozen=True, slots=True)
class Client:
    """How to reach one engine again, from any shell, at any later time."""

    kind: EngineKind
    command: tuple[str, ...]
    """The program and the options before the verb that choose the engine."""

    @property
    def endpoint(self) -> str | None:
        """``command`` as one string for the book (``ContainerHolder.endpoint``); ``None`` where it
        is the plain name."""
        return None if self.command == (self.kind.value,) else shlex.join(self.command)

    @classmethod
    def of(cls, engine: str, endpoint: str | None) -> Self:
        """The client that a ``ContainerHolder`` names."""
        return cls(EngineKind(engine), tuple(shlex.split(endpoint)) if endpoint else (engine,))


@dataclass(frozen=True, slots=True)
class Engine:
    client: Client
    client_version: tuple[int, ...] | None
    server_version: tuple[int, ...] | None
    cdi_folders: tuple[str, ...]
    """Folders whose CDI specifications it reads; empty where it has no CDI."""
    default_runtime: str | None
    nvidia_runtimes: frozenset[str]
    """Names of its runtimes that are NVIDIA's, which hand out cards by themselves."""
    plain_runtime: str | None
    """Name of a runtime that is not; ``None`` where none is known."""
    rootless: bool
    selinux: bool

    @property
    def kind(self) -> EngineKind:
        return self.client.kind

    @property
    def defaults_to_nvidia(self) -> bool:
        return self.default_runtime in self.nvidia_runtimes
