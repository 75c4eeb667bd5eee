"""Models: what people type means the card that they have, and no other."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.ask import parse
from aliquot.model import GIB, Bytes, Gpu, GpuUuid, Node, Placed, Reason, Refused, Snapshot, Vendor
from aliquot.placement import matches, place, short_name
from aliquot.placement.models import is_that_card

CARDS = {
    "NVIDIA A100-SXM4-80GB": "A100",
    "NVIDIA A100-PCIE-40GB": "A100",
    "NVIDIA A10": "A10",
    "NVIDIA A10G": "A10G",
    "NVIDIA A16": "A16",
    "NVIDIA H100 80GB HBM3": "H100",
    "NVIDIA H100 NVL": "H100-NVL",
    "NVIDIA H100 PCIe": "H100",
    "NVIDIA H200": "H200",
    "NVIDIA GH200 480GB": "GH200",
    "NVIDIA L4": "L4",
    "NVIDIA L40": "L40",
    "NVIDIA L40S": "L40S",
    "Tesla T4": "T4",
    "Tesla V100-SXM2-16GB": "V100",
    "NVIDIA GeForce RTX 4090": "RTX-4090",
    "NVIDIA GeForce RTX 4090 D": "RTX-4090-D",
    "NVIDIA GeForce GTX 1080 Ti": "GTX-1080-Ti",
    "NVIDIA GeForce RTX 4070 Ti SUPER": "RTX-4070-Ti-SUPER",
    "Quadro RTX 6000": "RTX-6000",
    "NVIDIA RTX 6000 Ada Generation": "RTX-6000-Ada-Generation",
    "NVIDIA RTX A6000": "RTX-A6000",
    "AMD Instinct MI300X": "MI300X",
    "Alveo U250": "Alveo-U250",
    "NVIDIA Graphics Device": "Device",
}


@pytest.mark.parametrize(("name", "short"), CARDS.items())
def test_the_short_name_of_a_card(name: str, short: str) -> None:
    assert short_name(name) == short
    assert matches(short, name)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("RTX4090", "NVIDIA GeForce RTX 4090"),
        ("rtx-4090", "NVIDIA GeForce RTX 4090"),
        ("RTX_4090", "NVIDIA GeForce RTX 4090"),
        ("GeForce-RTX-4090", "NVIDIA GeForce RTX 4090"),
        ("GTX1080Ti", "NVIDIA GeForce GTX 1080 Ti"),
        ("A100", "NVIDIA A100-SXM4-80GB"),
        ("a100-80", "NVIDIA A100-SXM4-80GB"),
        ("A100-80G", "NVIDIA A100-SXM4-80GB"),
        ("A100-80GB", "NVIDIA A100-SXM4-80GB"),
        ("A100-SXM", "NVIDIA A100-SXM4-80GB"),
        ("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("H100", "NVIDIA H100 NVL"),
        ("RTX6000Ada", "NVIDIA RTX 6000 Ada Generation"),
        ("A6000", "NVIDIA RTX A6000"),
        ("Instinct", "AMD Instinct MI300X"),
    ],
)
def test_a_model_matches(model: str, name: str) -> None:
    assert matches(model, name)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("A10", "NVIDIA A100-SXM4-80GB"),
        ("A10", "NVIDIA A10G"),
        ("A1", "NVIDIA A10"),
        ("A100", "NVIDIA A10"),
        ("A4", "NVIDIA A100-SXM4-80GB"),
        ("A100-40", "NVIDIA A100-SXM4-80GB"),
        ("A100-4", "NVIDIA A100-SXM4-80GB"),
        ("A100-8", "NVIDIA A100-SXM4-80GB"),
        ("L40", "NVIDIA L40S"),
        ("L4", "NVIDIA L40"),
        ("H100", "NVIDIA GH200 480GB"),
        ("RTX-409", "NVIDIA GeForce RTX 4090"),
        ("TX-4090", "NVIDIA GeForce RTX 4090"),
        ("4090-RTX", "NVIDIA GeForce RTX 4090"),
        ("RTX-4090-Ti", "NVIDIA GeForce RTX 4090"),
        ("6000", "NVIDIA RTX A6000"),
        ("-", "Tesla T4"),
        ("", "Tesla T4"),
    ],
)
def test_a_model_does_not_match(model: str, name: str) -> None:
    assert not matches(model, name)


@pytest.mark.parametrize(
    ("model", "name", "is_it"),
    [
        ("H100", "NVIDIA H100 80GB HBM3", True),
        ("H100", "NVIDIA H100 PCIe", True),
        ("H100", "NVIDIA H100 NVL", False),
        ("RTX-4090", "NVIDIA GeForce RTX 4090", True),
        ("RTX-4090", "NVIDIA GeForce RTX 4090 D", False),
        ("RTX-6000", "Quadro RTX 6000", True),
        ("RTX-6000", "NVIDIA RTX 6000 Ada Generation", False),
        ("A6000", "NVIDIA RTX A6000", False),
        ("A100", "NVIDIA A100-SXM4-80GB", True),
        ("A100-40", "NVIDIA A100-SXM4-80GB", False),
    ],
)
def test_exactly_that_model_takes_every_build_and_no_variant(model: str, name: str, is_it: bool) -> None:
    assert matches(model, name, exact=True) is is_it


_words = st.lists(
    st.sampled_from(["A100", "RTX", "4090", "Ti", "80GB", "SXM4", "T4", "L40S", "GeForce", "NVIDIA"]),
    min_size=1,
    max_size=5,
)


@given(_words, st.sampled_from([" ", "-", "_"]), st.sampled_from([" ", "-", ""]))
def test_separators_and_case_never_matter(words: list[str], written: str, named: str) -> None:
    name = named.join(words) if len(words) <= 4 else " ".join(words)
    for model in (written.join(words), written.join(words).lower(), written.join(words).upper()):
        assert matches(model, name)


@given(_words, st.data())
def test_leaving_words_out_still_matches(words: list[str], data: st.DataObject) -> None:
    kept = [word for word in words if data.draw(st.booleans())]
    assert matches("-".join(kept), " ".join(words)) is bool(kept)


@given(st.text(max_size=12), st.text(max_size=24))
def test_a_match_takes_only_letters_and_digits_of_the_name_in_order(model: str, name: str) -> None:
    if matches(model, name):
        rest = iter(re.sub("[^a-z0-9]", "", name.lower()))
        assert all(letter in rest for letter in re.sub("[^a-z0-9]", "", model.lower()))


@given(st.text(max_size=12), st.sampled_from(sorted(CARDS)))
def test_exactly_that_model_is_always_that_model(model: str, name: str) -> None:
    assert not matches(model, name, exact=True) or matches(model, name)


@pytest.mark.parametrize("name", CARDS)
def test_a_name_matches_itself_exactly(name: str) -> None:
    assert matches(name, name, exact=True)


@given(st.text(max_size=30))
def test_whatever_a_driver_calls_a_card_its_short_name_is_typed_in_ascii(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9-]*", short_name(name))
    assert matches(short_name(name), name) is (short_name(name) != "")


def test_a_card_can_be_named_by_the_beginning_of_its_uuid() -> None:
    uuid = GpuUuid("GPU-5f3a12bc-1111-4222-8333-0123456789ab")
    for text in ("GPU-5f3a", "gpu-5F3A12", uuid):
        assert is_that_card(text, uuid)
    for text in ("GPU-5f3", "GPU-5f3b", "5f3a12bc", "GPU-", "T4", f"{uuid}0"):
        assert not is_that_card(text, uuid)


def test_an_ask_that_names_a_card_is_placed_there_and_nowhere_else() -> None:
    gpus = tuple(
        Gpu(
            GpuUuid(f"GPU-{number}{number}{number}{number}aaaa"),
            number,
            Vendor.SOFTWARE,
            "T4",
            f"0000:0{number}:00.0",
            memory=Bytes(16 * GIB),
            memory_used=Bytes(0),
            outside_memory=Bytes(0),
        )
        for number in range(3)
    )
    placed = place(parse("GPU-2222:1GiB"), Snapshot(Node("box"), gpus), [])
    assert isinstance(placed, Placed)
    assert [share.gpu for share in placed.shares] == [gpus[2].uuid]
    refused = place(parse("GPU-4444:1GiB"), Snapshot(Node("box"), gpus), [])
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NO_SUCH_MODEL
