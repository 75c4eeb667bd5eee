"""What it costs its neighbours that who has the turn dies, and how soon changed limits take effect."""

import math
import signal
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from aliquot.model import Policy
from compute_shares import LONG, MILLISECOND, SECOND, SHORT, Stopwatch, card, finished, row

# ---- who has the turn is killed, or stopped ----


_DEATHS = 3  # of holders, in as many runs; of a run in which another had the device at the moment, none
_HELD = {SHORT: MILLISECOND // 2, "kernel=5000000": MILLISECOND, LONG: 5 * MILLISECOND}


def _wait_after_ms(way: signal.Signals, words: str, moment: int) -> float | None:
    """How long a neighbour waits for 2 ms of work from the moment on at which the other is killed or stopped,
    at worst. None: the other did not have the device then."""
    step = _HELD[words]
    with card() as device:
        victim = device.start(device.share(500), 1000 * SECOND, *words.split(), place=1, of=3)
        loop = f"{SHORT} sync=20 after={moment}".split()
        neighbour = device.start(device.share(500), moment + 400 * MILLISECOND, *loop, place=2, of=3)
        watch = Stopwatch(device, step, begin_ns=moment - 2 * step, place=3, of=3)
        watch.next_stop()
        before = device.engine_ns()[victim.pid]
        watch.next_stop()
        if device.engine_ns()[victim.pid] - before < step * 9 // 10:
            return None
        victim.send_signal(way)
        if way == signal.SIGKILL:
            victim.wait()
        watch.end()
        longest = float(finished(neighbour)["longest_wait"]) / MILLISECOND
        victim.send_signal(signal.SIGCONT)
        return longest


def _worst_wait_ms(way: signal.Signals, words: str) -> float:
    seen: list[float] = []
    for moment in range(600 * MILLISECOND, 900 * MILLISECOND, 13_700_000):
        wait = _wait_after_ms(way, words, moment)
        seen += [] if wait is None else [wait]
        if len(seen) == _DEATHS:
            return max(seen)
    return math.nan


def rows_of_death() -> bool:
    """A neighbour that waits for 2 ms of work at a time; what it waits is more than that work by itself."""
    holds = []
    for way, done in ((signal.SIGKILL, "killed"), (signal.SIGSTOP, "stopped")):
        for length, words in (("0.1 ms", SHORT), ("5 ms", "kernel=5000000"), ("80 ms", LONG)):
            name = f"holder {done}, {length} kernels: wait of its neighbour"
            holds.append(row(name, _worst_wait_ms(way, words), "ms", 25))
    return all(holds)


# ---- limits that are changed while programs run ----

_STEP = 100 * MILLISECOND
_STEPS = 20


def _delay_ms(policy: Policy, words: Sequence[str]) -> float:
    """The first share is changed to 90 % and 10 % in turns: how long after each change it still has what it
    had before, on average. The other has 50 %, so a fair one should have 64 % and 17 % of what both have."""
    with card() as device:
        shares = [device.share(900 if at == 0 else 500, policy) for at in range(len(words))]
        many = len(shares) + 1
        started = [
            device.start(share, 1000 * SECOND, *word.split(), place=at, of=many)
            for at, (share, word) in enumerate(zip(shares, words, strict=True), start=1)
        ]
        watch = Stopwatch(device, _STEP, place=many, of=many)
        had: list[list[int]] = []
        for step in range(_STEPS + 1):
            watch.next_stop()
            now = device.engine_ns()
            had.append([now[process.pid] for process in started])
            device.change(shares[0], compute=900 if step % 2 else 100)
        watch.end()
    steps = [[after - before for before, after in zip(*pair, strict=True)] for pair in pairwise(had)]
    whole = _STEP if policy is Policy.CAP else sum(map(sum, steps)) / len(steps)
    low, high = (0.1, 0.9) if policy is Policy.CAP else (100 / 600, 900 / 1400)
    swing = sum(step[0] * (1 if at % 2 else -1) for at, step in enumerate(steps)) / (len(steps) / 2)
    return (1 - swing / whole / (high - low)) / 2 * _STEP / MILLISECOND


def row_of_resizing() -> bool:
    return row("cap resized: until it takes effect", _delay_ms(Policy.CAP, [SHORT]), "ms", 10)


def row_of_weighing() -> bool:
    return row(
        "fair share weighed anew: until it takes effect", _delay_ms(Policy.FAIR, [SHORT] * 2), "ms", 10
    )


def row_of_pausing() -> bool:
    """By what it still has of the device afterwards."""
    with card() as device:
        share = device.share(500)
        tenant = device.start(share, 1000 * SECOND, SHORT, place=1, of=2)
        watch = Stopwatch(device, _STEP, place=2, of=2)
        watch.next_stop()
        before = device.engine_ns()[tenant.pid]
        device.change(share, paused=True)
        watch.next_stop()
        more = device.engine_ns()[tenant.pid] - before
        watch.end()
    return row("paused: GPU time had afterwards", more / MILLISECOND, "ms", 10)


def row_of_resuming() -> bool:
    """In real time, for who is paused sleeps by the machine's clock; the median of several."""
    took = []
    with card() as device:
        share = device.share(500)
        device.start(share, 1000 * SECOND, SHORT, "sync=1")
        for _ in range(9):
            device.change(share, paused=True)
            time.sleep(0.05)
            before, began = device.charged(share), time.monotonic()
            device.change(share, paused=False)
            while device.charged(share) == before and time.monotonic() < began + 5:
                time.sleep(0.0002)
            took.append(1000 * (time.monotonic() - began))
    return row("resumed: until it computes, in real time", median(took), "ms", 10)
