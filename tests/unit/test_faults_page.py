"""docs/faults.md names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_the_page_names_exists(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text()


def test_the_page_names_many() -> None:
    assert len(NAMED) > 40
    assert PAGE.count("::") == len(re.findall(r"`tests/[\w/]+\.py::\w+`", PAGE)), "each in the one form"
