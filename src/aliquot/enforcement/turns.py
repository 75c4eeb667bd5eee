"""The page that all shares of a device take their turns by: made empty, then left to the governors."""

from pathlib import Path

from aliquot.enforcement import abi
from aliquot.enforcement.files import put, unwritable, write_whole


def create_turns(path: Path) -> None:
    """Make an empty page, writable by every uid (0666): the tenants' are not known beforehand.

    One that is whole stays: processes of other shares have it mapped. One that is cut short or was
    overwritten is replaced; who has the old one mapped goes on beside it until it starts anew.
    Raises AliquotError(FILES_UNWRITABLE).
    """
    page = empty_page()
    try:
        if not _is_whole(path, page[: abi.Turns.SEAT_COUNT.offset]):
            write_whole(path, page, mode=0o666)
    except OSError as error:
        raise unwritable(path, error) from error


def empty_page() -> bytes:
    page = bytearray(abi.Turns.RECORD_SIZE)
    put(page, 0, abi.Turns.MAGIC, abi.TURNS_MAGIC)
    put(page, 0, abi.Turns.VERSION, abi.VERSION)
    put(page, 0, abi.Turns.SIZE, abi.Turns.RECORD_SIZE)
    put(page, 0, abi.Turns.MINIMUM_READER, abi.MINIMUM_READER)
    put(page, 0, abi.Turns.SEAT_COUNT, abi.SEATS_MAX)
    return bytes(page)


def _is_whole(path: Path, head: bytes) -> bool:
    """Raises OSError, but for a file that is not there."""
    try:
        with path.open("rb") as file:
            found = file.read(abi.Turns.RECORD_SIZE)
    except FileNotFoundError:
        return False
    return len(found) == abi.Turns.RECORD_SIZE and found.startswith(head)
