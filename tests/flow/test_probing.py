"""Frameworks that start in a share are told one share, by every call, at every moment."""

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.box import Box

PROGRAM = Path(__file__).parent / "programs" / "probing.py"
GIB, MIB = 1 << 30, 1 << 20
CONTEXT = 106 * MIB
"""Of the software T4."""


def probed(box: Box, framework: str, *options: str, **environ: str) -> dict[str, Any]:
    words = ["run", "-q", *options, "--", "env", *(f"{name}={value}" for name, value in environ.items())]
    done = box.aliquot(*words, sys.executable, str(PROGRAM), framework)
    assert (done.returncode, done.stderr) == (0, "")
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.fixture
def pair_box(box: Box) -> Iterator[Box]:
    """Two unlike cards: an order that is not the driver's own shows."""
    assert box.aliquot("softgpu", "create", "2xT4").returncode == 0
    yield box
    assert box.aliquot("softgpu", "remove", "all").returncode == 0


def is_one_answer(snapshot: dict[str, Any], *, total: int) -> None:
    assert snapshot["total"] == total
    assert snapshot["nvml"] == [total, snapshot["free"], total - snapshot["free"]]


def is_one_device(seen: dict[str, Any], *, total: int) -> None:
    assert seen["init"] == 0
    ((device,), (monitored,)) = (seen["devices"], seen["nvml"])
    assert device["uuid"] == monitored["uuid"]
    assert device["pci"].lower()[-12:] == monitored["pci"]
    assert device["total"] == monitored["total"] == total
    assert monitored["index"] == 0
    assert monitored["reserved"] == 0, "what the driver keeps is outside every share"


def test_pytorch(gpu_box: Box) -> None:
    seen = probed(gpu_box, "torch", "--gpu", "2GiB")
    is_one_device(seen, total=2 * GIB)
    for moment in ("before", "after", "end"):
        is_one_answer(seen[moment], total=2 * GIB)
    assert seen["allocated"] == [0, 0, 0]
    assert seen["before"]["free"] - seen["after"]["free"] == 86 * MIB
    assert seen["all"] == [0, 0], "what is shown as free can be had, to the last byte"
    assert (seen["oom"], seen["oom_name"]) == (2, "CUDA_ERROR_OUT_OF_MEMORY")
    assert seen["process"] == [[True, 2 * GIB]]
    assert seen["end"] == seen["before"]


def test_vllm(gpu_box: Box) -> None:
    seen = probed(gpu_box, "vllm", "--gpu", "2GiB")
    is_one_device(seen, total=2 * GIB)
    for snapshot in seen["snapshots"]:
        is_one_answer(snapshot, total=2 * GIB)
    free = [snapshot["free"] for snapshot in seen["snapshots"]]
    steps = [before - after for before, after in itertools.pairwise(free)]
    result, cache = seen["cache"]
    assert result == 0
    assert steps[:3] == [300 * MIB, 200 * MIB, -200 * MIB]
    assert 0 <= steps[3] < 16 * MIB, "a graph takes little, and never gives"
    assert steps[4] == cache
    assert free[-1] == 2 * GIB - (seen["requested"] - 200 * MIB), "used is what was asked for, less the peak"


def test_jax(gpu_box: Box) -> None:
    seen = probed(gpu_box, "jax", "--gpu", "2GiB")
    is_one_device(seen, total=2 * GIB)
    for moment in ("before", "after", "pooled", "trimmed"):
        is_one_answer(seen[moment], total=2 * GIB)
    result, wanted = seen["preallocated"]
    assert result == 0
    assert seen["after"]["free"] == seen["before"]["free"] - wanted
    # The software GPU's pools keep nothing that was freed, so all is free again; a card's would keep it.
    assert seen["pooled"] == seen["before"]
    assert seen["trimmed"] == seen["before"]


def test_capabilities_are_the_card_s(gpu_box: Box) -> None:
    inside = probed(gpu_box, "torch", "--gpu", "2GiB")
    whole = probed(gpu_box, "torch", "--gpu", "T4")
    ((ours,), (cards,)) = (inside["devices"], whole["devices"])
    assert {key: ours[key] for key in ("uuid", "pci", "name", "attributes")} == {
        key: cards[key] for key in ("uuid", "pci", "name", "attributes")
    }
    assert inside["version"] == whole["version"]


def test_devices_by_uuid_are_the_share_s_only_and_in_its_order(pair_box: Box) -> None:
    box = pair_box
    first, second = (gpu["uuid"] for gpu in box.items("gpus"))
    assert box.aliquot("lease", "--gpu", "2x2GiB", "--name", "pair").returncode == 0
    assert box.aliquot("lease", "--gpu", f"{second}:1GiB", "--name", "one").returncode == 0
    try:
        both = probed(box, "torch", "--lease", "pair")
        order = [device["uuid"] for device in both["nvml"]]
        assert sorted(order) == sorted((first, second))
        assert [device["uuid"] for device in both["devices"]] == order
        swapped = probed(box, "torch", "--lease", "pair", CUDA_VISIBLE_DEVICES=f"{order[1]},{order[0]}")
        assert [device["uuid"] for device in swapped["devices"]] == order[::-1]
        assert [device["uuid"] for device in swapped["nvml"]] == order, "NVML knows no such variable"
        last = probed(box, "torch", "--lease", "pair", CUDA_VISIBLE_DEVICES="1")
        assert [device["uuid"] for device in last["devices"]] == order[1:]
        one = probed(box, "torch", "--lease", "one")
        is_one_device(one, total=GIB)
        assert one["devices"][0]["uuid"] == second
        foreign = probed(box, "torch", "--lease", "one", CUDA_VISIBLE_DEVICES=first)
        assert foreign["devices"] == [], "a card outside the share is not there"
        by_prefix = probed(box, "torch", "--lease", "one", CUDA_VISIBLE_DEVICES=second[:14])
        is_one_device(by_prefix, total=GIB)
    finally:
        assert box.aliquot("release", "pair", "one").returncode == 0
