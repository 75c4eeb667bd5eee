"""``aliquot verify``: a share of this machine, tried by a program in a tenant's place."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.flow.box import Box

from aliquot.node.private_mounts import why_not


def verified(box: Box, *words: str) -> tuple[int, dict[str, Any]]:
    done = box.aliquot("verify", *words, "-o", "json")
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def gpu_box(box: Box) -> Iterator[Box]:
    """With one software T4 whose time is a model's: what a launch takes does not depend on the machine."""
    assert box.aliquot("softgpu", "create", "T4", "--time", "virtual").returncode == 0
    yield box
    assert box.aliquot("softgpu", "remove", "all").returncode == 0


def test_a_share_is_taken_tried_and_given_back(gpu_box: Box) -> None:
    code, document = verified(gpu_box, "2GiB@25%")
    rows = {row["attempt"]: row for row in document["items"]}
    assert {name: row for name, row in rows.items() if row["outcome"] in ("hole", "broken")} == {}
    assert code == 0
    for name in (
        "allocate",
        "managed",
        "virtual",
        "pool",
        "race",
        "exec",
        "import",
        "mail",
        "loaded-twice",
        "get-proc-address",
    ):
        assert rows[name]["outcome"] == "held"
        assert 1 << 30 < rows[name]["grantedBytes"] <= rows[name]["limitBytes"] == 2 << 30
    for name in (
        "launch",
        "launch-thread",
        "launch-extended",
        "launch-cooperative",
        "launch-legacy",
        "launch-graph",
    ):
        assert rows[name]["outcome"] == "held"
        assert rows[name]["allowedThousandths"] == 250
        assert 240 <= rows[name]["achievedThousandths"] <= 250 + rows[name]["errorThousandths"] < 260
    assert rows["settings"]["note"].startswith("18 of 18")
    assert rows["driver-by-path"]["outcome"] == "known"
    # Its own mount of the limits is read-only; without one the node's own user may change them.
    assert rows["limits-file"]["outcome"] == ("held" if why_not() is None else "known")
    assert gpu_box.items("leases") == []
    (ended,) = gpu_box.items("leases", "--ended")
    assert (ended["id"], ended["policy"]) == (document["lease"], "cap")


@pytest.mark.slow
def test_a_lease_is_tried_where_it_is_and_not_under_its_running_programs(gpu_box: Box) -> None:
    assert gpu_box.aliquot("lease", "--gpu", "2GiB", "--name", "idle").returncode == 0
    _, document = verified(gpu_box, "idle")
    rows = {row["attempt"]: row for row in document["items"]}
    assert rows["allocate"]["outcome"] == "held"
    for name in ("launch", "launch-cooperative", "launch-graph"):
        assert rows[name]["outcome"] == "held"
        assert (
            0
            < rows[name]["achievedThousandths"]
            <= rows[name]["allowedThousandths"] + rows[name]["errorThousandths"]
        )
    (lease,) = gpu_box.items("leases")
    assert (lease["state"], lease["policy"]) == ("held", "fair"), "a cap for the attempts, and fair again"
    story = json.loads(gpu_box.aliquot("show", "idle", "-o", "json").stdout)["story"]
    assert [line["detail"] for line in story if line["what"] == "resized"] == [
        "to 2GiB, cap",
        "to 2GiB, fair",
    ]
    assert gpu_box.aliquot("pause", "idle").returncode == 0
    paused = gpu_box.aliquot("verify", "idle")
    assert (paused.returncode, "is paused" in paused.stderr) == (2, True)
    assert gpu_box.aliquot("release", "idle").returncode == 0

    with gpu_box.tenant("1GiB") as tenant:
        assert tenant("see")["devices"] == 1
        (lease,) = gpu_box.items("leases")
        refused = gpu_box.aliquot("verify", lease["id"])
        assert refused.returncode == 1
        assert "[lease-busy]" in refused.stderr
        assert "--force" in refused.stderr
        _, document = verified(gpu_box, "--force", lease["id"])
        row = next(row for row in document["items"] if row["attempt"] == "allocate")
        assert row["outcome"] == "held"
        assert tenant("add")["right"]


@contextlib.contextmanager
def being_verified(box: Box, lease: str) -> Iterator["subprocess.Popen[str]"]:
    """While its first attempt runs; whatever of it is left is ended with the lease."""
    mark = box.runtime / "shares" / lease / "private" / "tried"
    process = subprocess.Popen(
        [sys.executable, "-m", "aliquot", "verify", lease],
        env=box.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        box.eventually(lambda: mark.exists() and policy_of(box) == "cap", within=60)
        yield process
    finally:
        process.kill()
        process.communicate()


def policy_of(box: Box) -> str:
    (lease,) = box.items("leases")
    return str(lease["policy"])


def test_who_is_being_verified_is_changed_by_nobody_else(gpu_box: Box) -> None:
    assert gpu_box.aliquot("lease", "--gpu", "2GiB", "--name", "idle").returncode == 0
    (lease,) = gpu_box.items("leases")
    with being_verified(gpu_box, lease["id"]) as process:
        for words in (["resize", "idle", "1GiB"], ["pause", "idle"], ["verify", "--force", "idle"]):
            refused = gpu_box.aliquot(*words)
            assert (refused.returncode, "is being verified" in refused.stderr) == (1, True), words
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode not in (0, 7)
    assert "nothing is proved" in said
    assert policy_of(gpu_box) == "fair"
    assert gpu_box.aliquot("release", "--force", "idle").returncode == 0


def test_a_lease_whose_verifier_was_killed_has_its_policy_back_at_the_next_command(gpu_box: Box) -> None:
    assert gpu_box.aliquot("lease", "--gpu", "2GiB", "--policy", "priority", "--name", "idle").returncode == 0
    (lease,) = gpu_box.items("leases")
    with being_verified(gpu_box, lease["id"]) as process:
        process.kill()
        process.wait()
    assert policy_of(gpu_box) == "priority"
    assert gpu_box.aliquot("release", "--force", "idle").returncode == 0


def test_a_policy_that_cannot_be_given_back_stops_no_command(gpu_box: Box) -> None:
    assert gpu_box.aliquot("lease", "--gpu", "2GiB", "--name", "idle").returncode == 0
    (lease,) = gpu_box.items("leases")
    with being_verified(gpu_box, lease["id"]) as process:
        process.kill()
        process.wait()
        (gpu_box.runtime / "shares" / lease["id"] / "limits").unlink()
    assert policy_of(gpu_box) == "cap"
    assert gpu_box.aliquot("release", "--force", "idle").returncode == 0


def test_what_has_no_limit_is_not_tried(gpu_box: Box) -> None:
    whole = gpu_box.aliquot("verify", "T4")
    assert whole.returncode == 2
    assert "no limit within them" in whole.stderr
    assert gpu_box.items("leases") == []
    assert "neither a lease here nor a size" in gpu_box.aliquot("verify", "10").stderr
