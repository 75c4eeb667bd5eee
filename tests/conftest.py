"""For all tests: nothing of how they were started is in them, and nothing that they started stays."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `nohup`, and a shell that starts us in the background, leave signals ignored, and every program that
# a test starts would inherit that.
for _signal in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT else signal.SIG_DFL)

# No property is timed: a busy machine would fail it. `make test` looks at some examples of each, other ones
# each time; `make test-all` at many.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("some", _UNTIMED, max_examples=40)
settings.register_profile("many", _UNTIMED, max_examples=400)
settings.load_profile("some")


@pytest.fixture(autouse=True)
def no_keeper_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """A lease that a test leaves in its folder would be kept for as long as pytest keeps the folder."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is not None:
        _remove_shares(folder)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The same for folders of the whole session."""
    factory = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None:
        _remove_shares(factory.getbasetemp())


def _remove_shares(folder: Path) -> None:
    """Its keeper ends where a share's files are gone."""
    for pattern in ("shares", "*/shares", "*/*/shares"):
        for shares in folder.glob(pattern):
            shutil.rmtree(shares, ignore_errors=True)
