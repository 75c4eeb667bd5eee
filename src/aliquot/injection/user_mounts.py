"""What the user's own options mount, and where: ``--volume``, ``--mount``, ``--tmpfs``."""

import csv
from collections.abc import Iterator, Sequence

from aliquot.injection.command_line import Option


def source_and_target(option: Option) -> tuple[str, str]:
    """Of a ``--volume`` or ``--mount``; empty where it has none."""
    value = option.value or ""
    if option.name == "volume":
        source, colon, rest = value.partition(":")
        return (source, rest.partition(":")[0]) if colon else ("", source)
    fields = dict(field.partition("=")[::2] for field in next(csv.reader([value]), []))
    source = fields.get("source") or fields.get("src") or ""
    target = fields.get("target") or fields.get("destination") or fields.get("dst") or ""
    return source if fields.get("type", "bind") in ("bind", "devpts") else "", target


def clean(path: str) -> str:
    """Without doubled and trailing slashes and dots, as the engines clean it."""
    if not path.startswith("/"):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def mounted_targets(options: Sequence[Option]) -> Iterator[str]:
    """Where the user's options put something in the container, cleaned."""
    for option in options:
        if option.name in ("volume", "mount"):
            yield clean(source_and_target(option)[1])
        elif option.name == "tmpfs":
            yield clean((option.value or "").partition(":")[0])
