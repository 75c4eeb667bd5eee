"""Identities: GPU UUIDs as the driver gives them, lease ids short enough to type.

A lease id is five letters and digits without look-alikes (no 0/o, 1/l/i, u/v), and its
first is a letter, so that no shell, YAML or container engine takes it for a number.
Ids are drawn by the caller and made unique by the book's primary key, ended leases
included: an id in an old log never means another lease.
"""

import re
from typing import NewType

GpuUuid = NewType("GpuUuid", str)
LeaseId = NewType("LeaseId", str)

_LETTERS = "abcdefghjkmnpqrstwxyz"
_SYMBOLS = _LETTERS + "23456789"
_ID_LENGTH = 5
_ID = re.compile(rf"[{_LETTERS}][{_SYMBOLS}]{{{_ID_LENGTH - 1}}}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


def lease_id(entropy: int) -> LeaseId:
    """The lease id that ``entropy`` (any non-negative integer) selects."""
    entropy, index = divmod(entropy, len(_LETTERS))
    text = _LETTERS[index]
    for _ in range(_ID_LENGTH - 1):
        entropy, index = divmod(entropy, len(_SYMBOLS))
        text += _SYMBOLS[index]
    return LeaseId(text)


def is_lease_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def is_lease_name(text: str) -> bool:
    """Whether ``--name`` takes it: a letter, then up to 62 of ``A-Za-z0-9_.-``."""
    return _NAME.fullmatch(text) is not None
