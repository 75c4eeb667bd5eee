"""Memory of a share whose exporter is gone and that others of the share still hold, by the ledger's words."""

from collections.abc import Collection, Iterator

from aliquot.enforcement import abi
from aliquot.enforcement.files import number

_BITS = 64


def exported(file: bytes) -> int:
    """How many pieces of memory some process of the share lets others open."""
    bases = (abi.Ledger.EXPORTS.offset + index * abi.Export.RECORD_SIZE for index in range(abi.EXPORTS_MAX))
    return sum(number(file, base, abi.Export.KEY) != 0 for base in bases)


def orphaned(file: bytes, device: int, alive: Collection[int]) -> Iterator[tuple[int, int]]:
    """(bytes, CLOCK_MONOTONIC nanoseconds since when they are charged here; 0 not yet) of each such memory on
    ``device``. ``alive`` are the living slots: an exporter among them is charged in its slot."""
    for index in range(abi.EXPORTS_MAX):
        base = abi.Ledger.EXPORTS.offset + index * abi.Export.RECORD_SIZE
        if not number(file, base, abi.Export.KEY) or number(file, base, abi.Export.DEVICE) != device:
            continue
        charged = number(file, base, abi.Export.BYTES) != 0
        # What lies in open files alone stays charged until a process of the share finds them closed.
        in_files = charged and number(file, base, abi.Export.NAMED) != 0
        if number(file, base, abi.Export.EXPORTER) - 1 in alive:
            continue
        if not in_files and not _holders(file, base) & set(alive):
            continue
        yield number(file, base, abi.Export.SIZE), number(file, base, abi.Export.SINCE) if charged else 0


def _holders(file: bytes, base: int) -> set[int]:
    words = [number(file, base, abi.Export.HOLDERS, index) for index in range(abi.Export.HOLDERS.count)]
    return {slot for slot in range(len(words) * _BITS) if words[slot // _BITS] >> slot % _BITS & 1}
