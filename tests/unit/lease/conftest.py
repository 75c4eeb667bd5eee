"""Books, drafts and the processes that write them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aliquot.lease import Book, LeaseDraft, describe, open_book
from aliquot.model import (
    GIB,
    Bytes,
    GpuUuid,
    Isolation,
    Lease,
    NobodyHolder,
    Placed,
    Policy,
    Refused,
    Share,
    Thousandths,
)

Decide = Callable[[tuple[Lease, ...]], Placed | Refused]
WORKER = Path(__file__).with_name("lease_worker.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "book.sqlite"


@pytest.fixture
def book(path: Path) -> Iterator[Book]:
    with open_book(path) as opened:
        yield opened


@pytest.fixture
def draft() -> Callable[..., LeaseDraft]:
    def make(**changes: Any) -> LeaseDraft:
        plain: dict[str, Any] = {
            "ask": "10GiB@25%",
            "policy": Policy.FAIR,
            "isolation": Isolation.SOFT,
            "holder": NobodyHolder(),
            "user": "ann",
            "command": "python train.py",
            "created_at": 1_000,
        }
        return LeaseDraft(**{**plain, **changes})

    return make


@pytest.fixture
def placing() -> Callable[..., Decide]:
    """A decision that hands out the same shares whatever is leased."""

    def make(*gpus: str, memory: int = 10 * GIB, compute: int = 250, whole: bool = False) -> Decide:
        shares = tuple(
            Share(GpuUuid(gpu), Bytes(memory), Thousandths(compute), whole) for gpu in gpus or ("GPU-a",)
        )
        return lambda _: Placed(shares, 0, ())

    return make


@pytest.fixture
def reserve(draft: Callable[..., LeaseDraft], placing: Callable[..., Decide]) -> Callable[..., Lease]:
    """A lease in PREPARING, in the book that is given."""

    def make(book: Book, *gpus: str, **changes: Any) -> Lease:
        found = book.reserve(draft(**changes), placing(*gpus, compute=10))
        assert isinstance(found, Lease)
        return found

    return make


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start lease_worker.py with arguments; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object) -> "subprocess.Popen[str]":
        worker = subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(worker)
        return worker

    yield run
    for worker in started:
        worker.kill()
        worker.communicate()


@pytest.fixture
def me() -> Any:
    return describe(os.getpid())
