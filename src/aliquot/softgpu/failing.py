"""Failures on demand: what a software GPU is told to do wrong, while programs run on it.

A device has a file ``failures`` with one failure a line; native/softgpu/device/failures.c reads it with
the same grammar. A line is a name, for most with a value, and a number that tells an event (an XID, errors of
memory) from an earlier one of the same kind.
"""

import errno
import os
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aliquot.model import AliquotError, Reason
from aliquot.softgpu.devices import SoftGpu

FAILURES_FILE = "failures"

DRIVER_BRANCHES = (470, 510, 515, 520, 525, 530, 535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595, 615)
"""Those whose CUDA version is known: ``branches`` of native/softgpu/device/failures.c."""

NVML_PARTS = (
    *(
        "accounting",
        "clocks",
        "ecc",
        "fields",
        "pcie",
        "power",
        "processes",
        "temperature",
        "topology",
        "usage",
    ),
)

EXAMPLES = (
    ("alloc=3", "the third allocation of each process fails; alloc=3+ that one and all later ones"),
    ("xid=79", "an XID: NVML's events tell it, and it ends contexts as the real one does"),
    ("ecc=uncorrected:2", "errors of memory, `corrected` or `uncorrected`, here two"),
    ("lost", "the device is lost: no context can be made, NVML says so"),
    ("hang", "kernels do not end until this is cleared"),
    ("slow=2.5", "kernels take so many times as long"),
    ("driver=535", "the driver is of this branch: later functions are not found, newer PTX is refused"),
    ("without=power", "NVML does not know this part of it"),
)

_EVENTS = ("xid", "ecc")
_PLAIN = ("lost", "hang")
_SEVERAL = ("xid", "ecc", "without")
"""Of these a device can have more than one at a time; of the others the last one said counts."""

_CHANGED_AT = 16
_STATE_MAGIC = struct.pack("<Q", 0x3145544154535153)
"""``failures_changed`` and ``magic`` of native/softgpu/device/layout.h."""


@dataclass(frozen=True, slots=True)
class Failure:
    name: str
    value: str | None = None
    serial: int | None = None
    """Of an event: when it was ordered, nanoseconds since the epoch."""

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"

    @property
    def line(self) -> str:
        return str(self) if self.serial is None else f"{self} serial={self.serial}"


def parse_failures(text: str) -> tuple[Failure, ...]:
    """``xid=79,slow=2``: failures separated by commas.

    Raises AliquotError(BAD_USAGE) with a caret under the place where reading stopped.
    """
    found, at = [], 0
    for part in text.split(","):
        found.append(_parse_one(part, text, at))
        at += len(part) + 1
    return tuple(found)


def read_failures(device: SoftGpu) -> tuple[Failure, ...]:
    """What the device is told now. Lines that cannot be read are left out, as the driver does."""
    try:
        lines = (device.folder / FAILURES_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            (failure,) = parse_failures(words[0])
        except (AliquotError, ValueError):
            continue
        serial = words[1].removeprefix("serial=") if len(words) > 1 else ""
        found.append(Failure(failure.name, failure.value, int(serial) if serial.isdecimal() else None))
    return tuple(found)


def order_failures(device: SoftGpu, wanted: Iterable[Failure], *, at: int) -> tuple[Failure, ...]:
    """Add ``wanted`` to what the device is told, and return all of it. What is told already stays as it is:
    the same event is not raised twice, until it was cleared. at: nanoseconds since the epoch."""
    told = list(read_failures(device))
    serial = max([at, *(one.serial + 1 for one in told if one.serial is not None)])
    for failure in wanted:
        if any(str(one) == str(failure) for one in told):
            continue
        if failure.name not in _SEVERAL:
            told = [one for one in told if one.name != failure.name]
        told.append(Failure(failure.name, failure.value, serial if failure.name in _EVENTS else None))
        serial += 1
    _write(device, told)
    return tuple(told)


def clear_failures(device: SoftGpu, text: str | None = None) -> tuple[Failure, ...]:
    """Take back what ``text`` names, everything without it; returns what is left. A name alone (``xid``)
    means all of that name, ``xid=79`` that one.

    Raises AliquotError: BAD_USAGE, also where the device is not told what should be taken back.
    """
    told, gone = read_failures(device), set[Failure]()
    for part in [] if text is None else text.split(","):
        meant = {one for one in told if part in (one.name, str(one))}
        if not meant:
            if part not in _VALUES:
                parse_failures(part)  # says what is wrong with it
            raise AliquotError(
                Reason.BAD_USAGE,
                f"{device.uuid} is not told {part}",
                facts=[f"it is told {one}" for one in told] or ["it is told no failure"],
                next=[(f"aliquot softgpu fail {device.uuid} --clear", "takes back all")],
            )
        gone |= meant
    left = [one for one in told if text is not None and one not in gone]
    _write(device, left)
    return tuple(left)


def _write(device: SoftGpu, failures: Iterable[Failure]) -> None:
    """By a rename, so that nobody reads half of it; then every process on the device is told to look."""
    path, temporary = device.folder / FAILURES_FILE, device.folder / f".{FAILURES_FILE}.{os.getpid()}"
    text = "".join(f"{failure.line}\n" for failure in failures)
    try:
        if text:
            temporary.write_text(text, encoding="utf-8")
            temporary.chmod(0o644)
            temporary.replace(path)
        else:
            path.unlink(missing_ok=True)
        _announce(device.folder / "state")
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise AliquotError(
            Reason.FILES_UNWRITABLE,
            f"{path} cannot be written: {error.strerror or errno.errorcode.get(error.errno or 0)}",
            next=[(f"ls -ld {device.folder}", "shows whose it is")],
        ) from error


def _announce(state: Path) -> None:
    """Count up the word that programs look at with each call. A lost count only delays them by 20 ms."""
    descriptor = os.open(state, os.O_RDWR | os.O_CLOEXEC)
    try:
        head = os.pread(descriptor, _CHANGED_AT + 4, 0)
        if len(head) == _CHANGED_AT + 4 and head.startswith(_STATE_MAGIC):
            (count,) = struct.unpack_from("<I", head, _CHANGED_AT)
            os.pwrite(descriptor, struct.pack("<I", (count + 1) % (1 << 31)), _CHANGED_AT)
    finally:
        os.close(descriptor)


# ---- the grammar ----


def _parse_one(part: str, text: str, at: int) -> Failure:
    name, equals, value = part.partition("=")
    place = at + len(name) + len(equals)
    if name not in _VALUES:
        raise _unreadable(text, at, f"{name!r} is no failure" if name else "a failure is missing here")
    if name in _PLAIN:
        if equals:
            raise _unreadable(text, place - 1, f"{name} has no value")
        return Failure(name)
    pattern, rule = _VALUES[name]
    if not re.fullmatch(pattern, value):
        raise _unreadable(
            text, place, f"{name} is {rule}, not {value!r}" if value else f"{name}={rule} is meant?"
        )
    if name == "driver" and int(value) not in DRIVER_BRANCHES:
        known = ", ".join(map(str, DRIVER_BRANCHES))
        raise _unreadable(text, place, f"{value} is no driver branch that is known here: {known}")
    if name == "slow" and not 1 <= float(value) <= 1_000_000:
        raise _unreadable(text, place, f"slow is a factor from 1 to 1000000, not {value}")
    return Failure(name, value)


_VALUES = {
    "alloc": (r"[1-9]\d{0,8}\+?", "the number of an allocation, such as 3 or 3+"),
    "xid": (r"[1-9]\d{0,2}", "a number from 1 to 999"),
    "ecc": (r"(un)?corrected(:[1-9]\d{0,8})?", "corrected or uncorrected, with a count such as corrected:5"),
    "lost": ("", ""),
    "hang": ("", ""),
    "slow": (r"\d{1,7}(\.\d{1,6})?", "a factor from 1, such as 2.5"),
    "driver": (r"\d{3,4}", "a branch such as 535"),
    "without": ("|".join(NVML_PARTS), f"a part of NVML: {', '.join(NVML_PARTS)}"),
}


def _unreadable(text: str, at: int, why: str) -> AliquotError:
    return AliquotError(
        Reason.BAD_USAGE,
        f"{text!r} cannot be read: {why}",
        facts=[text, f"{' ' * at}^", *(f"{spec:<18} {meaning}" for spec, meaning in EXAMPLES)],
        next=[("aliquot softgpu fail --help", "shows examples")],
    )
