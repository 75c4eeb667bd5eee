"""The program that tries to break a share: where it lies, how it is told, and what it says.

It is C (`native/verify`) and runs where a tenant runs. What is known to go round a share of each
isolation is listed here once; `docs/threat-model.md` argues it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from aliquot.model import AliquotError, Attempt, Bytes, Gpu, GpuUuid, Isolation, Lease, Outcome, Reason

PROGRAM = "aliquot-verify"
_FOLDER = Path(__file__).resolve().parent.parent / "_native" / "verify"

_LAUNCHES = (
    ("launch", "cuLaunchKernel"),
    ("launch-extended", "cuLaunchKernelEx"),
    ("launch-cooperative", "cuLaunchCooperativeKernel"),
    ("launch-graph", "cuGraphLaunch"),
    ("launch-legacy", "cuLaunch and cuLaunchGrid"),
)
_KNOWN = (
    ("driver-by-path", "opening the driver's own file, by preload, RPATH or its path"),
    ("private-driver", "bringing a driver of its own"),
    ("raw-ioctl", "speaking to the device without a library"),
    ("ledger", "several processes that write into their share's ledger"),
)


def program_folder(folder: Path = _FOLDER) -> Path:
    """The folder of the program, and of the static one where this build has it.

    Raises AliquotError(FAILED) where it was not built.
    """
    if not (folder / PROGRAM).is_file():
        raise AliquotError(
            Reason.FAILED,
            f"{PROGRAM} is not in {folder}: the native parts were not built",
            next=[
                ("make build", "builds them in a checkout"),
                ("pip install --force-reinstall aliquot", "installs a package that has them"),
            ],
        )
    return folder


def program_arguments(lease: Lease, gpus: Mapping[GpuUuid, Gpu]) -> tuple[str, ...]:
    """The share as its arguments: nothing of it comes from the library that is tried.

    Raises AliquotError(BAD_USAGE) for whole GPUs: within them there is nothing to hold.
    """
    if not lease.governed or any(share.memory is None for share in lease.shares):
        raise AliquotError(
            Reason.BAD_USAGE,
            f"lease {lease.id} is of whole GPUs: there is no limit within them that could be broken",
            next=[("aliquot verify 1/4", "tries a part of a GPU")],
        )
    contexts = {
        share.gpu: gpus[share.gpu].context_bytes if share.gpu in gpus else None for share in lease.shares
    }
    return tuple(f"--device={share.gpu}={share.memory}={contexts[share.gpu] or 0}" for share in lease.shares)


def read_attempts(said: str, *, isolation: Isolation) -> tuple[Attempt, ...]:
    """What the program printed, with what is known of ``isolation`` after it.

    Raises AliquotError(FAILED) where it printed something else, or nothing.
    """
    try:
        tried = tuple(_judged(_attempt(json.loads(line)), isolation) for line in said.splitlines())
    except (ValueError, KeyError, TypeError) as error:
        raise _said_nothing(said) from error
    if not tried:
        raise _said_nothing(said)
    return (*tried, *_launches(), *known_ways())


def _launches() -> tuple[Attempt, ...]:
    return tuple(
        Attempt(
            name, "compute", what, Outcome.NOT_HELD, note="compute is reserved and booked, and not held yet"
        )
        for name, what in _LAUNCHES
    )


def known_ways() -> tuple[Attempt, ...]:
    return tuple(Attempt(name, "known", what, Outcome.KNOWN) for name, what in _KNOWN)


def _attempt(item: Mapping[str, object]) -> Attempt:
    return Attempt(
        name=str(item["attempt"]),
        group=str(item["group"]),
        what=str(item["what"]),
        outcome=Outcome(item["outcome"]),
        granted=_bytes(item["grantedBytes"]),
        limit=_bytes(item["limitBytes"]),
        result=int(str(item["result"])) or None,
        note=str(item["note"]) or None,
    )


def _bytes(value: object) -> Bytes | None:
    return None if value is None else Bytes(int(str(value)))


def _judged(attempt: Attempt, isolation: Isolation) -> Attempt:
    """The node's own user may write the limits of his share: that is what makes it ``advisory``."""
    if (
        attempt.name != "limits-file"
        or isolation is not Isolation.ADVISORY
        or attempt.outcome is not Outcome.HOLE
    ):
        return attempt
    return Attempt(attempt.name, attempt.group, attempt.what, Outcome.KNOWN, note=attempt.note)


def _said_nothing(said: str) -> AliquotError:
    return AliquotError(
        Reason.FAILED,
        f"{PROGRAM} did not run to its end"
        + (f"; its last line is {said.splitlines()[-1][:80]!r}" if said else ""),
        next=[("aliquot doctor", "checks the libraries and the GPU")],
    )
