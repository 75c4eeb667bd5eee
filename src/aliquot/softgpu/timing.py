"""What passes for time on a device: the words of ``aliquot softgpu create --time`` and ``--slice``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aliquot.model import AliquotError, Reason

_UNITS = {"us": 1_000, "ms": 1_000_000}
_DEFAULT_SLICE_NS = 2_000_000
_SHORTEST_SLICE_NS, _LONGEST_SLICE_NS = 100_000, 1_000_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Keys of the device file; an empty one leaves all to the driver: real time."""

    pairs: tuple[tuple[str, object], ...] = ()


def timing_words(pairs: Mapping[str, str]) -> tuple[str, str]:
    """What ``--time`` and ``--slice`` would have been, from the pairs of a device file."""
    mode = pairs.get("time", "real")
    if mode == "scaled":
        mode = f"scaled={_of_digits(pairs.get('time_scale_ppm'), 1_000_000) / 1_000_000:g}"
    slice_ns = _of_digits(pairs.get("time_slice_ns"), _DEFAULT_SLICE_NS)
    unit = "ms" if slice_ns % _UNITS["ms"] == 0 else "us"
    return mode, f"{slice_ns // _UNITS[unit]}{unit}"


def _of_digits(text: str | None, otherwise: int) -> int:
    """0 is the driver's own choice as well: native/softgpu/device/facts.c."""
    number = int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else 0
    return number or otherwise


def parse_timing(time: str | None, time_slice: str | None) -> Timing:
    """``virtual``, ``real`` or ``scaled=FACTOR``; a slice such as ``2ms`` or ``500us``.

    Raises AliquotError(BAD_USAGE).
    """
    pairs: list[tuple[str, object]] = [] if time is None else _time(time)
    if time_slice is not None:
        pairs.append(("time_slice_ns", _slice(time_slice)))
    return Timing(tuple(pairs))


def _time(text: str) -> list[tuple[str, object]]:
    if text in ("real", "virtual"):
        return [("time", text)]
    scaled = re.fullmatch(r"scaled(?:=(\d{1,4}(?:\.\d{1,6})?))?", text)
    parts = round(float(scaled[1] or 1) * 1_000_000) if scaled else 0
    if not 0 < parts < 1 << 31:
        raise _refused(f"--time {text!r}: write real, virtual, or scaled=FACTOR with a factor up to 2147")
    return [("time", "scaled"), ("time_scale_ppm", parts)]


def _slice(text: str) -> int:
    match = re.fullmatch(r"(\d{1,9})(us|ms)", text)
    ns = int(match[1]) * _UNITS[match[2]] if match else 0
    if not _SHORTEST_SLICE_NS <= ns <= _LONGEST_SLICE_NS:
        raise _refused(f"--slice {text!r}: write a time from 100us to 1000ms, such as 2ms")
    return ns


def _refused(message: str) -> AliquotError:
    return AliquotError(
        Reason.BAD_USAGE,
        message,
        next=[("aliquot softgpu create T4 --time virtual --slice 2ms", "an example")],
    )
