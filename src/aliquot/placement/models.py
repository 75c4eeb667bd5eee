"""Models: whether the name that somebody typed means the card that a driver names.

Compared word by word, in order, case apart, never as a substring: ``A10`` is not ``A100``.
Where words are divided is nobody's business, so runs of words are compared joined:
``RTX4090``, ``rtx-4090`` and ``RTX 4090`` are one card.
"""

import re

from aliquot.model import GpuUuid

_WORD = re.compile(r"[a-z0-9]+")
_WORD_AS_WRITTEN = re.compile(r"[A-Za-z0-9]+")
_SIZE = re.compile(r"([0-9]+)g(?:i?b)?")
_UUID = re.compile(r"GPU-[0-9a-f]{4}[0-9a-f-]*", re.IGNORECASE)
_SOCKET = re.compile(r"sxm[0-9]*")
_LONGEST_RUN = 4

_BRANDS = re.compile(
    "nvidia|geforce|quadro|tesla|amd|radeon|instinct|intel|corporation|xilinx|altera|aliquot|software|gpu|graphics"
)
_BUILDS = re.compile(r"[0-9]+g(?:i?b)?|hbm[0-9]*e?|gddr[0-9]+x?|pcie|sxm[0-9]*")
"""Words that tell builds of one model apart, not models: memory size and kind, and the socket."""


def matches(model: str, gpu_name: str, *, exact: bool = False) -> bool:
    """Whether ``model``, as typed, means the card that its driver calls ``gpu_name``.

    Every word of the model is found in the name, in order; words of the name may be left
    over (``A100-80`` is ``NVIDIA A100-SXM4-80GB``). With ``exact`` only brands and builds may
    be: ``RTX-4090!`` is not ``NVIDIA GeForce RTX 4090 D``, but ``H100!`` is ``NVIDIA H100 80GB HBM3``.
    """
    wanted, name = _words(model), _words(gpu_name)
    return bool(wanted) and _found(wanted, name, exact=exact)


def is_that_card(model: str, uuid: GpuUuid) -> bool:
    """Whether ``model`` is no model but the beginning of that card's UUID, such as ``GPU-5f3a``.

    At least four digits of it: no model is called so, and fewer could mean several cards.
    """
    return _UUID.fullmatch(model) is not None and uuid.lower().startswith(model.lower())


def short_name(gpu_name: str) -> str:
    """What to call a card in one column, and to type: the name without brands and builds.

    ``NVIDIA GeForce RTX 4090`` is ``RTX-4090``. It always matches the name that it was made from.
    """
    words = _WORD_AS_WRITTEN.findall(gpu_name)
    telling = [word for word in words if not _may_be_left(word.lower())]
    if not telling or not telling[0][0].isalpha():
        telling = words
    return "-".join(telling)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def _found(wanted: tuple[str, ...], name: tuple[str, ...], *, exact: bool) -> bool:
    """Whether ``name`` can be walked from its start, taking all of ``wanted`` in order."""
    if not wanted:
        return not exact or all(_may_be_left(word) for word in name)
    if not name:
        return False
    for taken in range(1, min(len(wanted), _LONGEST_RUN) + 1):
        for covered in range(1, min(len(name), _LONGEST_RUN) + 1):
            if _same(wanted[:taken], name[:covered]) and _found(wanted[taken:], name[covered:], exact=exact):
                return True
    return (not exact or _may_be_left(name[0])) and _found(wanted, name[1:], exact=exact)


def _same(wanted: tuple[str, ...], name: tuple[str, ...]) -> bool:
    if "".join(wanted) == "".join(name):
        return True
    if len(wanted) != 1 or len(name) != 1:
        return False
    size, card_size = _SIZE.fullmatch(wanted[0]), _SIZE.fullmatch(name[0])
    if card_size and (size or wanted[0].isdigit()):
        return (size.group(1) if size else wanted[0]) == card_size.group(1)
    return wanted[0] == "sxm" and _SOCKET.fullmatch(name[0]) is not None


def _may_be_left(word: str) -> bool:
    return _BRANDS.fullmatch(word) is not None or _BUILDS.fullmatch(word) is not None
