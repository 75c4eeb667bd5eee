"""``aliquot verify``: a share of this machine, tried by a program in a tenant's place."""

import json
from typing import Any

from tests.flow.box import Box

NOT_CHARGED_YET = {"modules"}
"""Holes that README.md names."""


def verified(box: Box, *words: str) -> tuple[int, dict[str, Any]]:
    done = box.aliquot("verify", *words, "-o", "json")
    return done.returncode, json.loads(done.stdout)


def test_a_share_is_taken_tried_and_given_back(gpu_box: Box) -> None:
    code, document = verified(gpu_box, "2GiB")
    rows = {row["attempt"]: row for row in document["items"]}
    holes = {name for name, row in rows.items() if row["outcome"] in ("hole", "broken")}
    assert holes <= NOT_CHARGED_YET
    assert code == (7 if holes else 0)
    for name in (
        "allocate",
        "managed",
        "virtual",
        "pool",
        "race",
        "exec",
        "import",
        "loaded-twice",
        "get-proc-address",
    ):
        assert rows[name]["outcome"] == "held"
        assert 1 << 30 < rows[name]["grantedBytes"] <= rows[name]["limitBytes"] == 2 << 30
    assert rows["settings"]["note"].startswith("18 of 18")
    assert rows["driver-by-path"]["outcome"] == "known"
    assert rows["limits-file"]["outcome"] == "known", "the node's own user: that is what advisory means"
    assert gpu_box.items("leases") == []
    (ended,) = gpu_box.items("leases", "--ended")
    assert (ended["id"], ended["policy"]) == (document["lease"], "cap")


def test_a_lease_is_tried_where_it_is_and_not_under_its_running_programs(gpu_box: Box) -> None:
    assert gpu_box.aliquot("lease", "--gpu", "2GiB", "--name", "idle").returncode == 0
    _, document = verified(gpu_box, "idle")
    assert next(row for row in document["items"] if row["attempt"] == "allocate")["outcome"] == "held"
    (lease,) = gpu_box.items("leases")
    assert lease["state"] == "held"
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


def test_what_has_no_limit_is_not_tried(gpu_box: Box) -> None:
    whole = gpu_box.aliquot("verify", "T4")
    assert whole.returncode == 2
    assert "no limit within them" in whole.stderr
    assert gpu_box.items("leases") == []
    assert "neither a lease here nor a size" in gpu_box.aliquot("verify", "10").stderr
