"""Reasons: one table, one page each, and nobody chooses an exit code of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from aliquot.model import Reason

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "generate_reasons.py"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, newly written."""
    made = tmp_path_factory.mktemp("reasons")
    done = generate("--into", str(made))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return made


def test_codes_are_unique_and_safe_in_a_url_a_shell_and_a_kubernetes_event() -> None:
    codes = [reason.code for reason in Reason]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)
    assert [reason.name.lower().replace("_", "-") for reason in Reason] == codes


def test_exit_codes_are_those_of_the_design() -> None:
    assert {reason.exit_code for reason in Reason} <= {1, 2, 3, 4, 5, 6, 7}
    assert [reason for reason in Reason if reason.exit_code == 4] == [Reason.NO_ROOM]


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.code)
def test_a_reason_says_what_it_means_and_what_to_do(reason: Reason) -> None:
    assert not reason.title.endswith(".")
    for text in (reason.meaning, reason.fix):
        assert text.endswith(".")
        assert text.count("`") % 2 == 0


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.code)
def test_every_reason_has_its_page_in_the_docs(reason: Reason) -> None:
    text = (ROOT / "docs" / "reasons" / f"{reason.code}.md").read_text(encoding="utf-8")
    assert f"# `{reason.code}`: {reason.title}\n" in text
    assert f"Exit code {reason.exit_code}:" in text
    assert reason.meaning in text
    assert reason.fix in text


def test_the_docs_are_what_the_code_says_now() -> None:
    done = generate("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_index_links_every_page(folder: Path) -> None:
    links = set(re.findall(r"\]\(([a-z-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert links == {f"{reason.code}.md" for reason in Reason}


def test_examples_are_real_refusals_with_their_code(folder: Path) -> None:
    shown = [path for path in folder.glob("*.md") if "## Example" in path.read_text(encoding="utf-8")]
    assert {"no-room", "never-fits", "bad-spec", "below-context"} <= {path.stem for path in shown}
    for path in shown:
        assert f"[{path.stem}]" in path.read_text(encoding="utf-8")


def test_check_tells_missing_stale_and_extra_pages_and_writes_nothing(folder: Path) -> None:
    (folder / "no-room.md").unlink()
    (folder / "bad-spec.md").write_text("older", encoding="utf-8")
    (folder / "of-a-former-release.md").write_text("", encoding="utf-8")
    done = generate("--check", "--into", str(folder))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "missing: no-room.md",
        "stale: bad-spec.md",
        "extra: of-a-former-release.md",
        "run `make generate`",
    ]
    assert not (folder / "no-room.md").exists()
    generate("--into", str(folder))
    assert generate("--check", "--into", str(folder)).returncode == 0
