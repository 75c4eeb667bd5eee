"""A machine of its own for each test: a book, a runtime folder and a software GPU in tmp_path."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flow.box import Box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@pytest.fixture
def gpu_box(box: Box) -> Iterator[Box]:
    """With one software T4, removed at the end: it must be free by then."""
    done = box.aliquot("softgpu", "create", "T4")
    assert done.returncode == 0, done.stderr
    yield box
    done = box.aliquot("softgpu", "remove", "all")
    assert done.returncode == 0, done.stderr
