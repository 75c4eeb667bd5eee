"""Profiles: the figures of a card that a software GPU takes, one TOML file each."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aliquot.model import MIB, AliquotError, Bytes, Reason, format_bytes_exactly

_FOLDER = Path(__file__).parent / "profiles"

SMALLEST_MEMORY = Bytes(64 * MIB)
MEMORY_STEP = 2 * MIB
"""The software GPU hands memory out in chunks of this (SG_CHUNK_BYTES). All sizes of a profile
are whole chunks, so that what inventory says can be leased is what can be allocated."""

_SUFFIX = " (software)"
"""Part of every name, so that nobody takes the device for the card; models still match by word."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What one kind of device is. Sizes in bytes, clocks in kHz."""

    profile: str
    name: str
    aliases: tuple[str, ...]
    memory: Bytes
    memory_reserved: Bytes
    context_bytes: Bytes
    compute_capability: tuple[int, int]
    multiprocessors: int
    figures: tuple[tuple[str, int], ...]
    """(key of the device file, value) of the figures that only programs ask for."""

    @property
    def bandwidth(self) -> int:
        """Bytes a second: the memory moves data on both edges of its clock."""
        figures = dict(self.figures)
        return figures["memory_clock_khz"] * 1000 * 2 * figures["bus_width_bits"] // 8

    def scaled(self, memory: Bytes) -> "Profile":
        """This profile with ``memory`` bytes instead of its own.

        On a smaller device the reserved part and the context shrink with it, in whole
        chunks: a 64 MiB T4 whose context takes 106 MiB could run nothing. A larger one
        keeps them, as two sizes of the same card do.
        """
        if memory % MEMORY_STEP or memory < SMALLEST_MEMORY:
            raise AliquotError(
                Reason.BAD_USAGE,
                f"a software GPU cannot have {format_bytes_exactly(memory)} of memory: at least "
                f"{SMALLEST_MEMORY // MIB}MiB, in steps of {MEMORY_STEP // MIB}MiB",
                next=[(f"aliquot softgpu create {self.profile} --memory 1GiB", "makes one of 1GiB")],
            )
        return Profile(
            profile=self.profile,
            name=self.name,
            aliases=self.aliases,
            memory=memory,
            memory_reserved=self._shrunk(self.memory_reserved, memory),
            context_bytes=self._shrunk(self.context_bytes, memory),
            compute_capability=self.compute_capability,
            multiprocessors=self.multiprocessors,
            figures=tuple((key, self._scaled_figure(key, value, memory)) for key, value in self.figures),
        )

    def _scaled_figure(self, key: str, value: int, memory: int) -> int:
        """Local memory is set aside for as many threads as the smaller device has room for."""
        return min(value, -(-value * memory // self.memory)) if key == "local_threads" else value

    def _shrunk(self, part: int, memory: int) -> Bytes:
        in_proportion = -(-part * memory // self.memory // MEMORY_STEP) * MEMORY_STEP
        return Bytes(min(part, in_proportion))


def profile_names() -> tuple[str, ...]:
    """All names that ``read_profile`` takes without aliases, smallest card first."""
    return tuple(profile.profile for profile in sorted(_all(), key=lambda one: (one.memory, one.profile)))


def read_profile(name: str) -> Profile:
    """The profile called ``name``, in any case of letters.

    Raises AliquotError(BAD_PROFILE) with the list of names.
    """
    profiles = _all()
    for profile in profiles:
        if name.casefold() in (known.casefold() for known in (profile.profile, *profile.aliases)):
            return profile
    known = ", ".join(profile_names())
    raise AliquotError(
        Reason.BAD_PROFILE,
        f"there is no profile {name!r}; there are {known}",
        facts=[
            f"{one.profile:<8} {one.name}, {one.memory // MIB} MiB, {one.multiprocessors} multiprocessors"
            for one in sorted(profiles, key=lambda one: (one.memory, one.profile))
        ],
        next=[("aliquot softgpu create T4", "makes a software T4")],
    )


def _all() -> list[Profile]:
    return [_parse(path) for path in sorted(_FOLDER.glob("*.toml"))]


_NOT_FIGURES = {"name", "aliases", "memory_mib", "memory_reserved_mib", "context_mib"} | {
    "module_mib",
    "compute_capability",
    "multiprocessors",
}


def _parse(path: Path) -> Profile:
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    major, minor = data["compute_capability"]
    figures = {key: int(value) for key, value in data.items() if key not in _NOT_FIGURES}
    figures["module_bytes"] = data["module_mib"] * MIB
    figures["local_threads"] = data["multiprocessors"] * data["threads_per_multiprocessor"]
    return Profile(
        profile=path.stem,
        name=data["name"] + _SUFFIX,
        aliases=tuple(data.get("aliases", ())),
        memory=Bytes(data["memory_mib"] * MIB),
        memory_reserved=Bytes(data["memory_reserved_mib"] * MIB),
        context_bytes=Bytes(data["context_mib"] * MIB),
        compute_capability=(major, minor),
        multiprocessors=data["multiprocessors"],
        figures=tuple(figures.items()),
    )
