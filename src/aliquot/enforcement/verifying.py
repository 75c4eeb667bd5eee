"""The program that tries to break a share: where it lies, how it is told, and what it says.

It is C (`native/verify`) and runs where a tenant runs. What is known to go round a share of each
isolation is listed here once; `docs/threat-model.md` argues it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from aliquot.model import (
    AliquotError,
    Attempt,
    Bytes,
    Gpu,
    GpuUuid,
    Isolation,
    Lease,
    Outcome,
    Policy,
    Reason,
    Thousandths,
)

PROGRAM = "aliquot-verify"
_FOLDER = Path(__file__).resolve().parent.parent / "_native" / "verify"

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

    Its time is tried only where it is a cap, for any other share may have all of it when it is alone.
    Raises AliquotError(BAD_USAGE) for whole GPUs: within them there is nothing to hold.
    """
    if not lease.governed or any(share.memory is None for share in lease.shares):
        raise nothing_to_try(f"lease {lease.id}")
    contexts = {
        share.gpu: gpus[share.gpu].context_bytes if share.gpu in gpus else None for share in lease.shares
    }
    capped = lease.policy is Policy.CAP
    return tuple(
        f"--device={share.gpu}={share.memory}={contexts[share.gpu] or 0}={share.compute if capped else 0}"
        for share in lease.shares
    )


def nothing_to_try(what: str) -> AliquotError:
    """Of whole GPUs, in front of whose driver nothing stands."""
    return AliquotError(
        Reason.BAD_USAGE,
        f"{what} is of whole GPUs: there is no limit within them that could be broken",
        next=[
            ("aliquot verify 1/4", "tries a part of a GPU"),
            ("aliquot leases", f"has the ids and names of leases, where `{what}` was meant as one"),
        ],
    )


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
    return (*tried, *known_ways())


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
        achieved=_thousandths(item.get("achievedThousandths")),
        allowed=_thousandths(item.get("allowedThousandths")),
        error=_thousandths(item.get("errorThousandths")),
        result=int(str(item["result"])) or None,
        note=str(item["note"]) or None,
    )


def _thousandths(value: object) -> Thousandths | None:
    return None if value is None else Thousandths(int(str(value)))


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
