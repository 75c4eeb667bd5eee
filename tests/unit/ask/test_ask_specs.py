"""SPEC: every form that is accepted, its meaning, and the round trip."""

import re
import subprocess
import sys
from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.ask import parse, parse_compute
from aliquot.ask.amounts import MOST_BYTES, UNITS
from aliquot.model import GIB, MIB, AliquotError, Alternative, Amount, Ask, Bytes, Fraction, Reason


def of_bytes(count: int, compute: Fraction | None = None) -> Amount:
    return Amount(bytes=Bytes(count), compute=compute)


QUARTER = Fraction(1, 4)
ALL = Fraction(1, 1)


@pytest.mark.parametrize(
    ("text", "alternative"),
    [
        ("10GiB", Alternative(of_bytes(10 * GIB))),
        ("10GB", Alternative(of_bytes(10**10))),
        ("512MiB", Alternative(of_bytes(512 * MIB))),
        ("1.5GiB", Alternative(of_bytes(1536 * MIB))),
        ("0.1GiB", Alternative(of_bytes(GIB // 10))),
        ("2048KiB", Alternative(of_bytes(2 * MIB))),
        ("7kB", Alternative(of_bytes(7000))),
        ("1TiB", Alternative(of_bytes(1024 * GIB))),
        ("4096B", Alternative(of_bytes(4096))),
        ("1/4", Alternative(Amount(part=QUARTER))),
        ("2/8", Alternative(Amount(part=QUARTER))),
        ("25%", Alternative(Amount(part=QUARTER))),
        ("12.5%", Alternative(Amount(part=Fraction(1, 8)))),
        ("33.3%", Alternative(Amount(part=Fraction(333, 1000)))),
        ("1/3", Alternative(Amount(part=Fraction(1, 3)))),
        ("100%", Alternative(Amount(part=ALL))),
        ("1/1", Alternative(Amount(part=ALL))),
        ("10GiB@30%", Alternative(of_bytes(10 * GIB, Fraction(3, 10)))),
        ("10GiB@3/10", Alternative(of_bytes(10 * GIB, Fraction(3, 10)))),
        ("1/4@100%", Alternative(Amount(part=QUARTER, compute=ALL))),
        ("100%@25%", Alternative(Amount(part=ALL, compute=QUARTER))),
        ("H100", Alternative(Amount(part=ALL), 1, "H100")),
        ("A10", Alternative(Amount(part=ALL), 1, "A10")),
        ("H100!", Alternative(Amount(part=ALL), 1, "H100", exact=True)),
        ("2xH100", Alternative(Amount(part=ALL), 2, "H100")),
        ("2x100%", Alternative(Amount(part=ALL), 2)),
        ("H100:20GiB", Alternative(of_bytes(20 * GIB), 1, "H100")),
        ("H100:20GiB@25%", Alternative(of_bytes(20 * GIB, QUARTER), 1, "H100")),
        ("2x H100:20GiB@25%", Alternative(of_bytes(20 * GIB, QUARTER), 2, "H100")),
        ("RTX-4090!:1/4", Alternative(Amount(part=QUARTER), 1, "RTX-4090", exact=True)),
        ("RTX 4090:1/4", Alternative(Amount(part=QUARTER), 1, "RTX-4090")),
        ("A100-80GB", Alternative(Amount(part=ALL), 1, "A100-80GB")),
        ("A100-80GB:80GB", Alternative(of_bytes(80 * 10**9), 1, "A100-80GB")),
        ("MI300X:1/4", Alternative(Amount(part=QUARTER), 1, "MI300X")),
    ],
)
def test_a_spec_means(text: str, alternative: Alternative) -> None:
    assert parse(text) == Ask((alternative,))


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        (" 10 GiB ", "10GiB"),
        ("10gib", "10GiB"),
        ("10GIB", "10GiB"),
        ("10Gi", "10GiB"),
        ("10gb", "10GB"),
        ("10 Mi", "10MiB"),
        ("1 / 4", "25%"),
        ("25 %", "25%"),
        ("10GiB @ 30 %", "10GiB@30%"),
        ("2 x 10GiB", "2x10GiB"),
        ("2X10GiB", "2x10GiB"),
        ("2×10GiB", "2x10GiB"),
        ("02x10GiB", "2x10GiB"),
        ("1x10GiB", "10GiB"),
        ("H100 : 20GiB", "H100:20GiB"),
        ("H100! : 20GiB", "H100!:20GiB"),
        ("H100:100%", "H100"),
        ("RTX  4090", "RTX-4090"),
        ("H100:20GiB , A100:20GiB", "H100:20GiB,A100:20GiB"),
        ("10GiB\n", "10GiB"),
        ("1536MiB", "1.5GiB"),
        ("33.33%", "3333/10000"),
    ],
)
def test_harmless_variants_have_one_normal_form(written: str, normal: str) -> None:
    assert str(parse(written)) == normal
    assert parse(normal) == parse(written)


def test_fallbacks_keep_their_order() -> None:
    ask = parse("H100:20GiB,A100:20GiB,1/2")
    assert [alternative.model for alternative in ask.alternatives] == ["H100", "A100", None]


def test_gib_and_gb_differ() -> None:
    assert parse("10GiB") != parse("10GB")


@pytest.mark.parametrize(("text", "part"), [("25%", QUARTER), (" 1/4 ", QUARTER), ("100%", ALL)])
def test_compute_by_itself(text: str, part: Fraction) -> None:
    assert parse_compute(text) == part


_digits = st.integers(1, 10**20 - 1)


@st.composite
def fractions(draw: st.DrawFn) -> Fraction:
    one, other = draw(st.one_of(st.tuples(st.integers(1, 1000), st.just(1000)), st.tuples(_digits, _digits)))
    numerator, denominator = sorted((one, other))
    common = gcd(numerator, denominator)
    return Fraction(numerator // common, denominator // common)


_bytes = st.one_of(
    st.integers(1, MOST_BYTES),
    st.builds(
        lambda tenths, unit: tenths * UNITS[unit] // 10, st.integers(10, 9999), st.sampled_from(["gib", "mb"])
    ),
)
_amounts = st.one_of(
    st.builds(Amount, bytes=_bytes.map(Bytes), compute=st.none() | fractions()),
    st.builds(Amount, part=fractions(), compute=st.none() | fractions()),
)
_models = st.from_regex(r"\A[A-Za-z][A-Za-z0-9_.+-]{0,15}\Z").filter(
    lambda model: model.lower() not in UNITS and not re.search(r"[0-9][xX][0-9]{1,3}$", model)
)
_counts = st.integers(1, 10**6)
_alternatives = st.one_of(
    st.builds(Alternative, _amounts, _counts),
    st.builds(Alternative, _amounts, _counts, _models, st.booleans()),
)
asks = st.builds(Ask, st.lists(_alternatives, min_size=1, max_size=4).map(tuple))


@given(asks)
def test_the_normal_form_parses_to_the_same_ask(ask: Ask) -> None:
    assert parse(str(ask)) == ask


@given(asks, st.data())
def test_spaces_between_parts_change_nothing(ask: Ask, data: st.DataObject) -> None:
    text = re.sub(r"[:@,%]", lambda mark: data.draw(st.sampled_from(["", " "])) + mark.group(), str(ask))
    assert parse(f" {text} ") == ask


def _outcome(text: str) -> str:
    """The normal form, or what the refusal says; anything else that is raised fails the test."""
    try:
        ask = parse(text)
    except AliquotError as refusal:
        return _said(refusal)
    assert parse(str(ask)) == ask
    return str(ask)


def _said(refusal: AliquotError) -> str:
    assert refusal.reason is Reason.BAD_SPEC
    assert refusal.message.isprintable()
    assert len(refusal.message) < 200
    if refusal.facts:
        line, caret = refusal.facts
        assert line.isprintable()
        assert len(line) <= 80
        assert re.fullmatch(r" *\^", caret)
    return refusal.message


@given(st.text())
def test_any_text_gives_an_ask_or_a_refusal(text: str) -> None:
    assert _outcome(text)


@given(st.text(alphabet="0123456789xX×%/@:,!. GiBMmbkH-+_１²½\t\x1b", max_size=24))
def test_any_text_that_looks_like_a_spec_gives_an_ask_or_a_refusal(text: str) -> None:
    assert _outcome(text)


@given(asks, st.data())
def test_a_spec_with_one_slip_gives_an_ask_or_a_refusal(ask: Ask, data: st.DataObject) -> None:
    text = str(ask)
    at = data.draw(st.integers(0, len(text)))
    assert _outcome(text[:at] + data.draw(st.text(max_size=2)) + text[at + data.draw(st.integers(0, 2)) :])


@pytest.mark.parametrize(
    "text", ["9" * 5000, "1/" + "9" * 5000, "9" * 900 + "GiB", "9" * 900 + "xH100", "1." + "0" * 900]
)
def test_numbers_longer_than_python_reads_are_refused(text: str) -> None:
    assert _outcome(text)


def test_parsing_loads_no_yaml() -> None:
    script = "import sys, aliquot.ask; sys.exit('yaml' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
