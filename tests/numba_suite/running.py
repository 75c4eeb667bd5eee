"""Run numba-cuda's own tests on software GPUs, each test file in a process of its own.

A crash or a hang costs one test: the plugin in that process writes down what it begins and what ended,
so the next process goes on behind it. What a build of the libraries has once given is kept, and a
second run of the same build asks only for what is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
LIBRARIES = ROOT / "src" / "aliquot" / "_native" / "softgpu"
DEVICES = ("H100", "A100-40", "--memory", "4GiB")
"""The first, which the tests use, of compute capability 9.0, so that none is skipped for its age; two, of two
kinds, for the tests on several; small, for some tests fill half of what the card has."""
TEST_SECONDS = 180
_ATTEMPTS = 60
"""A file's processes; each but the last one lost a test."""


@dataclass(frozen=True)
class Result:
    test: str
    outcome: str
    """passed, failed, skipped, xfailed; crashed (how) or hung where the process did not come back."""
    launched: bool
    """Whether a kernel ran on the device. Unknown, so False, where the process did not come back."""
    seconds: float
    why: str

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


@dataclass
class Suite:
    python: Path
    """Of the client environment: numba-cuda, pytest and filecheck, and no Aliquot."""
    folder: Path
    """Scratch: results and logs by build, devices, numba's caches."""

    @property
    def tests(self) -> Path:
        found = sorted(self.python.parents[1].glob("lib/python3*/site-packages/numba_cuda/numba/cuda/tests"))
        if not found:
            raise FileNotFoundError(f"{self.python} has no numba-cuda: tools/setup clients-more")
        return found[0]

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.tests)) for path in self.tests.rglob("test_*.py"))

    def results_folder(self) -> Path:
        """By what is tested: the libraries, and the version of numba-cuda."""
        what = hashlib.sha256((self.tests.parents[2] / "VERSION").read_bytes())
        for library in sorted(LIBRARIES.glob("*.so*")):
            what.update(library.read_bytes())
        return self.folder / what.hexdigest()[:16]

    def run(
        self,
        only: Mapping[str, Collection[str]] | None = None,
        *,
        jobs: int = 2,
        report: Callable[[str], None] = lambda _: None,
    ) -> list[Result]:
        """`only`: file to tests; no tests are all of the file's."""
        wanted = dict.fromkeys(self.files(), ()) if only is None else only
        results = self.results_folder()
        libraries = _copied_libraries(results)
        counter = _build_counter(self.folder)
        free: SimpleQueue[_Machine] = SimpleQueue()
        for number in range(jobs):
            free.put(_Machine.made(self.folder / f"machine-{number}", self.python, counter, libraries))

        def one(file: str) -> list[Result]:
            machine = free.get()
            try:
                done = _FileRun(self, results, file, wanted[file], machine).results()
                report(_summary(file, done))
                return done
            finally:
                free.put(machine)

        with ThreadPoolExecutor(jobs) as pool:
            return [result for done in pool.map(one, wanted) for result in done]


@dataclass(frozen=True)
class _Machine:
    """A state folder with software GPUs of its own, so that launches are seen to be a test's own."""

    state: Path
    python: Path
    counter: Path
    libraries: Path

    @classmethod
    def made(cls, state: Path, python: Path, counter: Path, libraries: Path) -> _Machine:
        shutil.rmtree(state, ignore_errors=True)
        environ = os.environ | {"ALIQUOT_STATE_DIR": str(state)}
        command = [str(ROOT / ".venv" / "bin" / "aliquot"), "softgpu", "create", "-q", *DEVICES]
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
        return cls(state, python, counter, libraries)

    def environment(self) -> dict[str, str]:
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("CUDA", "NUMBA", "PY"))
        }
        scratch = self.state / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        return kept | {
            "ALIQUOT_STATE_DIR": str(self.state),
            "LD_LIBRARY_PATH": str(self.libraries),
            "PYTHONPATH": str(HERE),
            "TMPDIR": str(scratch),
            "SUITE_LAUNCHES": str(self.counter),
            "SUITE_TEST_SECONDS": str(TEST_SECONDS),
        }


@dataclass
class _FileRun:
    suite: Suite
    folder: Path
    file: str
    only: Collection[str]
    machine: _Machine

    @property
    def events(self) -> Path:
        return self.folder / (self.file.replace("/", "+") + ".jsonl")

    def results(self) -> list[Result]:
        for _ in range(_ATTEMPTS):
            if not self._missing():
                break
            self._attempt()
        wanted = set(self.only)
        return [result for result in self._read()[0] if not wanted or result.test in wanted]

    def _missing(self) -> bool:
        results, finished, _ = self._read()
        done = {result.test for result in results}
        return not (set(self.only) <= done if self.only else finished)

    def _read(self) -> tuple[list[Result], bool, str | None]:
        """What ended, whether all of the file did, and the test that was begun last and did not end."""
        results: dict[str, Result] = {}
        finished, begun = False, None
        lines = self.events.read_text().splitlines() if self.events.exists() else []
        for event in map(json.loads, lines):
            begun = event.get("begun", begun)
            finished = finished or (event.get("finished", False) and not event.get("partly", False))
            name = event.get("ended") or event.get("uncollected")
            if name is not None:
                begun = None
                results[name] = Result(
                    name,
                    event.get("outcome", "uncollected"),
                    event.get("launched", False),
                    event.get("seconds", 0.0),
                    event["why"],
                )
        return list(results.values()), finished, begun

    def _attempt(self) -> None:
        self.events.touch()
        done = sorted(result.test for result in self._read()[0])
        environ = self.machine.environment() | {
            "SUITE_EVENTS": str(self.events),
            "SUITE_DONE": json.dumps(done),
            "SUITE_ONLY": json.dumps(sorted(self.only)),
        }
        options = (
            "-p suite_plugin -p no:faulthandler -p no:cacheprovider --import-mode=importlib -c /dev/null"
        )
        command = [str(self.suite.python), "-m", "pytest", *options.split(), f"--rootdir={self.suite.tests}"]
        log = self.events.with_suffix(".log")
        with log.open("a") as output:
            process = subprocess.Popen(
                [*command, "--tb=short", str(self.suite.tests / self.file)],
                env=environ,
                cwd=environ["TMPDIR"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                status = process.wait()
            finally:
                _end_session(process.pid)
        self._record_loss(status, log)

    def _record_loss(self, status: int, log: Path) -> None:
        lost = self._read()[2]
        if lost is None:
            return
        hung = f"Timeout (0:{TEST_SECONDS // 60:02}:{TEST_SECONDS % 60:02})!" in log.read_text()[-20000:]
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        event = {"ended": lost, "outcome": "hung" if hung and status > 0 else "crashed", "why": how}
        with self.events.open("a") as events:
            events.write(json.dumps(event) + "\n")


def _end_session(leader: int) -> None:
    """What a test started and left goes with it."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _copied_libraries(results: Path) -> Path:
    """A build that comes meanwhile changes nothing of what is being tested."""
    copied = results / "libraries"
    if not copied.exists():
        shutil.copytree(LIBRARIES, results / "copying", dirs_exist_ok=True)
        (results / "copying").rename(copied)
    return copied


def _build_counter(folder: Path) -> Path:
    library = folder / "launches.so"
    source = ROOT / "native" / "softgpu"
    command = [
        "cc",
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-shared",
        "-fPIC",
        "-O1",
        f"-I{source}",
        f"-I{source}/device",
    ]
    subprocess.run([*command, str(HERE / "launches.c"), "-o", str(library)], check=True)
    return library


def _summary(file: str, results: Collection[Result]) -> str:
    counts: dict[str, int] = {}
    for result in results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
    return f"{file}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit("run tools/numba_suite.py")
