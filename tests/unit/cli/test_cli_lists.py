import csv
import io
import json
from dataclasses import replace

import pytest
import yaml

from aliquot.cli.output.choices import Choice, chosen, show_list
from aliquot.cli.output.columns import Listing
from aliquot.cli.output.conditions import parse_condition
from aliquot.cli.output.tables import stacked, table
from aliquot.cli.views.checks import CHECKS
from aliquot.cli.views.gpus import GPUS, GpuRow, gpu_rows, short_uuids
from aliquot.cli.views.leases import LEASES, LeaseRow
from aliquot.cli.views.usage import USAGE
from aliquot.model import AliquotError, Lease, Snapshot, Vendor

_LISTINGS: list[Listing[object]] = [GPUS, LEASES, USAGE, CHECKS]  # type: ignore[list-item]


@pytest.fixture(autouse=True)
def _utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def _printed(
    capsys: pytest.CaptureFixture[str], listing: Listing[GpuRow], rows: list[GpuRow], form: str, now: int
) -> str:
    show_list(listing, rows, Choice(form=form), now=now)
    return capsys.readouterr().out


def test_a_table_has_one_line_a_row_and_a_dash_for_unknown(
    capsys: pytest.CaptureFixture[str], gpus: list[GpuRow], now: int
) -> None:
    lines = _printed(capsys, GPUS, gpus, "table", now).splitlines()
    header = "GPU UUID NAME MEMORY FREE LEASED OUTSIDE COMPUTE UTIL HEALTH"
    assert " ".join(lines[0].split()) == header
    shown = "0 GPU-0f3a12bc H100 80GB HBM3 80GiB 69.5GiB 10GiB 0B 25% 12% healthy"
    assert " ".join(lines[1].split()) == shown
    assert " ".join(lines[3].split()) == "2 pci-0000:05: Instinct MI300X — — 0B — 0% — unknown"


def test_what_the_book_cannot_tell_is_unknown_and_not_zero(snapshot: Snapshot) -> None:
    row = gpu_rows(snapshot, None)[0]
    assert (row.leased_memory, row.leased_compute, row.free_memory) == (None, None, None)


def test_a_whole_gpu_leaves_nothing_free(gpus: list[GpuRow]) -> None:
    assert gpus[1].free_memory == 0
    assert gpus[1].leased_compute == 1000


@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_table_fits_the_terminal(
    gpus: list[GpuRow], lease_list: list[LeaseRow], now: int, width: int
) -> None:
    for line in table(GPUS, gpus, now=now, width=width):
        assert len(line) <= width
    for line in table(LEASES, lease_list, now=now, width=width):
        assert len(line) <= width


def test_a_wide_table_is_never_cut(gpus: list[GpuRow], now: int) -> None:
    lines = table(GPUS, gpus, now=now, wide=True)
    assert all(gpu.gpu.uuid in line for gpu, line in zip(gpus, lines[1:], strict=True))
    assert "…" not in "".join(lines)


def test_a_command_line_cannot_break_the_table_or_drive_the_terminal(
    lease_list: list[LeaseRow], now: int
) -> None:
    lines = table(LEASES, lease_list, now=now, wide=True)
    assert len(lines) == 3
    assert r"python x.py\n\x1b[31mred \udce9" in lines[1]
    assert "\x1b" not in "".join(lines)


def test_json_is_versioned_and_null_where_unknown(
    capsys: pytest.CaptureFixture[str], gpus: list[GpuRow], now: int
) -> None:
    document = json.loads(_printed(capsys, GPUS, gpus, "json", now))
    assert (document["apiVersion"], document["kind"]) == ("aliquot/v1", "GpuList")
    first, _, amd = document["items"]
    assert first["memoryBytes"] == 80 << 30
    assert first["leasedComputeThousandths"] == 250
    assert first["leases"] == ["k3m9x"]
    assert amd["memoryBytes"] is None
    assert amd["processes"] is None


def test_a_lease_document_says_that_compute_is_not_held(lease_list: list[LeaseRow]) -> None:
    part, whole = (LEASES.item(row) for row in lease_list)
    assert [share["computeHeld"] for share in part["shares"]] == [False]  # type: ignore[attr-defined]
    assert [share["computeHeld"] for share in whole["shares"]] == [True]  # type: ignore[attr-defined]


def test_yaml_is_the_same_document_as_json(
    capsys: pytest.CaptureFixture[str], lease_list: list[LeaseRow], now: int
) -> None:
    show_list(LEASES, lease_list, Choice(form="json"), now=now)
    from_json = json.loads(capsys.readouterr().out)
    show_list(LEASES, lease_list, Choice(form="yaml"), now=now)
    assert yaml.safe_load(capsys.readouterr().out) == from_json


def test_json_lines_stand_alone(capsys: pytest.CaptureFixture[str], gpus: list[GpuRow], now: int) -> None:
    items = [json.loads(line) for line in _printed(capsys, GPUS, gpus, "jsonl", now).splitlines()]
    assert [item["index"] for item in items] == [0, 1, 2]
    assert {(item["apiVersion"], item["kind"]) for item in items} == {("aliquot/v1", "Gpu")}


def test_csv_has_every_column_and_one_line_a_row(
    capsys: pytest.CaptureFixture[str], lease_list: list[LeaseRow], now: int
) -> None:
    show_list(LEASES, lease_list, Choice(form="csv"), now=now)
    text = capsys.readouterr().out
    assert len(text.splitlines()) == 3
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == [column.document_key for column in LEASES.columns]
    assert rows[0]["memoryBytes"] == str(10 << 30)
    assert rows[1]["command"] == ""


def test_csv_is_the_document_in_cells(
    capsys: pytest.CaptureFixture[str], gpus: list[GpuRow], now: int
) -> None:
    rows = list(csv.DictReader(io.StringIO(_printed(capsys, GPUS, gpus, "csv", now))))
    items = json.loads(_printed(capsys, GPUS, gpus, "json", now))["items"]
    for row, item in zip(rows, items, strict=True):
        assert row == {key: _cell(item[key]) for key in row}


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def test_names_are_what_other_commands_take(
    capsys: pytest.CaptureFixture[str], gpus: list[GpuRow], now: int
) -> None:
    assert _printed(capsys, GPUS, gpus, "name", now).split() == [row.gpu.uuid for row in gpus]


@pytest.mark.parametrize(
    ("labels", "ids"),
    [
        (("user=alice",), ["k3m9x"]),
        (("user!=alice",), ["p7qrs"]),
        (("USER=Alice",), ["k3m9x"]),
        (("gpu=1",), ["p7qrs"]),
        (("holder=process", "state=held"), ["k3m9x"]),
        (("holder=nobody", "user=alice"), []),
        (("name=train",), ["k3m9x"]),
    ],
)
def test_labels_choose_rows(
    lease_list: list[LeaseRow], now: int, labels: tuple[str, ...], ids: list[str]
) -> None:
    kept = chosen(LEASES, lease_list, Choice(labels=labels), now=now)
    assert [row.lease.id for row in kept] == ids


@pytest.mark.parametrize(
    ("name", "model", "found"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100", True),
        ("NVIDIA A100-SXM4-80GB (software)", "a100-80", True),
        ("NVIDIA A100-SXM4-80GB", "A10", False),
        ("Tesla T4 (software)", "T4", True),
        ("NVIDIA H100 80GB HBM3", "H100!", True),
        ("NVIDIA GeForce RTX 4090 D", "RTX-4090!", False),
    ],
)
def test_a_model_label_matches_as_the_model_of_a_size_does(
    gpus: list[GpuRow], now: int, name: str, model: str, found: bool
) -> None:
    rows = [replace(gpus[0], gpu=replace(gpus[0].gpu, name=name))]
    assert bool(chosen(GPUS, rows, Choice(labels=(f"model={model}",)), now=now)) is found
    assert bool(chosen(GPUS, rows, Choice(labels=(f"model!={model}",)), now=now)) is not found


@pytest.mark.parametrize("label", ["user", "=alice", "colour=red", "!=x", ""])
def test_a_label_that_is_none_lists_the_keys(lease_list: list[LeaseRow], now: int, label: str) -> None:
    with pytest.raises(AliquotError) as caught:
        chosen(LEASES, lease_list, Choice(labels=(label,)), now=now)
    assert "user, state, name" in caught.value.facts[0]


def test_sorting_puts_unknown_last_either_way(gpus: list[GpuRow], now: int) -> None:
    for sort, indices in (("free", [1, 0, 2]), ("-free", [0, 1, 2])):
        kept = chosen(GPUS, gpus, Choice(sort=sort), now=now)
        assert [row.gpu.index for row in kept] == indices


@pytest.mark.parametrize("name", ["memory", "MEMORY", "Memorybytes", "memoryBytes"])
def test_a_column_is_called_by_its_name_its_header_and_its_key(
    gpus: list[GpuRow], now: int, name: str
) -> None:
    assert [row.gpu.index for row in chosen(GPUS, gpus, Choice(sort=f"-{name}"), now=now)] == [0, 1, 2]
    assert len(chosen(GPUS, gpus, Choice(where=f"{name}>1GiB"), now=now)) == 2


def test_sorting_by_no_column_names_the_nearest(gpus: list[GpuRow], now: int) -> None:
    with pytest.raises(AliquotError) as caught:
        chosen(GPUS, gpus, Choice(sort="-memry"), now=now)
    assert caught.value.next[0] == ("--sort -memory", "did you mean this?")
    assert max(map(len, caught.value.facts)) <= 78


def test_a_limit_of_zero_keeps_none(gpus: list[GpuRow], now: int) -> None:
    assert chosen(GPUS, gpus, Choice(limit=0), now=now) == []
    assert len(chosen(GPUS, gpus, Choice(limit=2), now=now)) == 2


def test_an_empty_list_says_what_to_type_and_prints_no_data(
    capsys: pytest.CaptureFixture[str], now: int
) -> None:
    show_list(LEASES, [], Choice(), now=now)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "aliquot lease --gpu" in captured.err


def test_an_empty_list_is_still_a_document(capsys: pytest.CaptureFixture[str], now: int) -> None:
    show_list(LEASES, [], Choice(form="json"), now=now)
    assert json.loads(capsys.readouterr().out)["items"] == []


@pytest.mark.parametrize("listing", _LISTINGS, ids=lambda listing: listing.kind)
def test_names_and_keys_of_a_list_are_unique(listing: Listing[object]) -> None:
    names = [column.name for column in listing.columns]
    keys = [column.document_key for column in listing.columns]
    assert len(set(names)) == len(names)
    assert len(set(keys)) == len(keys)
    spelt = [spelling for column in listing.columns for spelling in set(column.spellings())]
    assert len(set(spelt)) == len(spelt)


@pytest.mark.parametrize("listing", _LISTINGS, ids=lambda listing: listing.kind)
def test_the_example_of_a_list_is_a_condition_of_it(listing: Listing[object]) -> None:
    assert listing.example
    parse_condition(listing.example, listing)


def test_a_narrow_terminal_keeps_what_is_typed_back(
    gpus: list[GpuRow], lease_list: list[LeaseRow], now: int
) -> None:
    name = "NVIDIA A100-SXM4-80GB (software)"
    software = replace(gpus[0], gpu=replace(gpus[0].gpu, name=name, vendor=Vendor.SOFTWARE))
    lines = table(GPUS, [software, *gpus[1:]], now=now, width=80)
    assert "OUTSIDE" not in lines[0]
    assert lines[1].split()[1:4] == ["GPU-0f3a12bc", "software", "A100"]
    assert lines[2].split()[2] == "H100"
    assert "USER" in table(LEASES, lease_list, now=now, width=80)[0]


def test_a_wide_table_is_stacked_where_it_does_not_fit(lease_list: list[LeaseRow], now: int) -> None:
    lines = stacked(LEASES, lease_list, now=now, width=80)
    assert max(map(len, lines)) <= 80
    first = lines[: lines.index("")]
    assert [line.split()[0] for line in first] == [column.title for column in LEASES.columns]
    assert len(lines) == 2 * len(LEASES.columns) + 1
    assert all("alice" in line for line in first if line.startswith("USER"))


def test_short_uuids_grow_until_they_tell_cards_apart() -> None:
    alike = ["GPU-aaaaaaaa-1", "GPU-aaaaaaaa-2"]
    assert short_uuids(alike) == {uuid: uuid for uuid in alike}
    assert short_uuids(["GPU-aaaaaaaa-1"]) == {"GPU-aaaaaaaa-1": "GPU-aaaaaaaa"}


def test_an_ended_lease_holds_nothing(snapshot: Snapshot, leases: tuple[Lease, ...]) -> None:
    from aliquot.model import LeaseState

    ended = [replace(lease, state=LeaseState.ENDED) for lease in leases]
    assert gpu_rows(snapshot, ended)[0].leased_memory == 0
