"""Profiles: the figures of a card that a software GPU takes, one TOML file each."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from aliquot.model import MIB, AliquotError, Bytes, Reason, format_bytes, format_bytes_exactly

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
    def line(self) -> str:
        """For people: what to type, and what decides between one and another."""
        major, minor = self.compute_capability
        also = f" (also {', '.join(self.aliases)})" if self.aliases else ""
        return f"{self.profile:<8} {major}.{minor:<3} {format_bytes(self.memory):>9}  {self.name}{also}"

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


def profiles() -> tuple[Profile, ...]:
    """All there are, smallest card first."""
    return tuple(sorted(_all(), key=lambda one: (one.memory, one.profile)))


def profile_names() -> tuple[str, ...]:
    """All names that ``read_profile`` takes without aliases, smallest card first."""
    return tuple(one.profile for one in profiles())


def read_profile(name: str) -> Profile:
    """The profile called ``name``, in any case of letters.

    Raises AliquotError(BAD_PROFILE) with the list of names.
    """
    called = {
        known.casefold(): profile for profile in profiles() for known in (profile.profile, *profile.aliases)
    }
    if name.casefold() in called:
        return called[name.casefold()]
    near = get_close_matches(name.casefold(), called, n=1, cutoff=0.5)
    meant = called[near[0]].profile if near else "T4"
    raise AliquotError(
        Reason.BAD_PROFILE,
        f"there is no profile {name!r}" + (f": did you mean {meant}?" if near else ""),
        facts=[one.line for one in profiles()],
        next=[(f"aliquot softgpu create {meant}", f"makes a software {meant}")],
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
