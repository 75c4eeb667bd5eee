"""``aliquot resize``, ``pause`` and ``resume`` of a container's lease, while its program runs in it."""

import contextlib
import json
import select
import subprocess
from collections.abc import Iterator

import pytest
from tests.contract.conftest import WAYS
from tests.contract.tenancy import IMAGE
from tests.contract.test_engine_run import EngineBox, box

__all__ = ["box"]  # the fixture: a machine with one software T4 and one engine

pytestmark = pytest.mark.engine
GIB = 1 << 30


class Inside:
    """`tenant serve` in a running container, over `exec -i`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def ask(self, words: str) -> None:
        self._stdin.write(words + "\n")
        self._stdin.flush()

    def answers_within(self, seconds: float) -> bool:
        return bool(select.select([self._stdout], [], [], seconds)[0])

    def answer(self) -> int:
        return int(self._stdout.readline())

    def __call__(self, words: str) -> int:
        self.ask(words)
        return self.answer()


@contextlib.contextmanager
def serving(box: EngineBox, name: str) -> Iterator[Inside]:
    process = subprocess.Popen(
        [box.client, "exec", "-i", name, "tenant", "serve"],
        env=box.environ,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Inside(process)
    finally:
        process.communicate(timeout=30)


@pytest.fixture
def lease(box: EngineBox) -> Iterator[str]:
    """Of a container `changes` that sleeps."""
    done = box.aliquot(*box.line("-d", "--name", "changes", IMAGE, "sh", "-c", "sleep 1000"))
    assert done.returncode == 0, done.stderr
    (lease,) = box.lease_ids()
    yield lease
    box.engine("rm", "-f", "changes")


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_running_container_grows_shrinks_waits_and_goes_on(box: EngineBox, lease: str) -> None:
    with serving(box, "changes") as inside:
        assert inside("total") == GIB
        assert inside("launch") == 0  # loads its code, which would find no room later
        assert inside(f"take {2 * GIB}") == 2
        grown = box.aliquot("resize", lease, "3GiB")
        assert grown.returncode == 0, grown.stderr
        assert inside("total") == 3 * GIB
        assert inside(f"take {2 * GIB}") == 0
        # Below what it uses: it keeps that, and gets no more.
        assert box.aliquot("resize", lease, "512MiB").returncode == 0
        assert inside("total") == GIB // 2
        assert inside("take 1048576") == 2

        assert box.aliquot("pause", lease).returncode == 0
        inside.ask("launch")
        assert not inside.answers_within(0.5), "its launch waits"
        assert box.aliquot("resume", lease).returncode == 0
        assert inside.answers_within(20)
        assert inside.answer() == 0
    shown = json.loads(box.aliquot("show", lease, "-o", "json").stdout)
    assert [event["what"] for event in shown["story"]][-4:] == ["resized", "resized", "paused", "resumed"]


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_stopped_container_that_was_changed_starts_with_its_new_share(box: EngineBox, lease: str) -> None:
    assert box.engine("stop", "-t", "0", "changes").returncode == 0
    assert box.aliquot("resize", lease, "2GiB").returncode == 0
    assert box.engine("start", "changes").returncode == 0
    with serving(box, "changes") as inside:
        assert inside("total") == 2 * GIB
