"""What a slip is answered with: one sentence each, and the caret under the place."""

import pytest

from aliquot.ask import parse, parse_compute
from aliquot.model import AliquotError, Reason


def refusal(text: str) -> AliquotError:
    with pytest.raises(AliquotError) as caught:
        parse(text)
    assert caught.value.reason is Reason.BAD_SPEC
    return caught.value


@pytest.mark.parametrize(
    ("text", "sentence", "column"),
    [
        ("10", "10 what? write 10GiB or 10GB", 2),
        ("0", "0 is a size here, not an index: write 10GiB, 1/4, or 100% for a whole GPU", 1),
        ("0,1", "0 is a size here, not an index: write 10GiB, 1/4, or 100% for a whole GPU", 1),
        ("all", "'all' is no size: write 100% for a whole GPU, or 2x100% for 2 whole GPUs", 0),
        ("ALL", "'ALL' is no size: write 100% for a whole GPU, or 2x100% for 2 whole GPUs", 0),
        ("0,5GiB", "0 what? write 0GiB or 0GB; a decimal has a point, not a comma: 0.5GiB", 1),
        ("1", "1 what? write 1GiB or 1GB, or 100% for a whole GPU", 1),
        ("2", "2 what? write 2GiB or 2GB, or 2x100% for 2 whole GPUs", 1),
        ("0.5", "0.5 what? write 0.5GiB or 0.5GB, or a part of a GPU such as 50%", 3),
        ("H100:4", "4 what? write 4GiB or 4GB", 6),
        ("1,5GiB", "1 what? write 1GiB or 1GB; a decimal has a point, not a comma: 1.5GiB", 1),
        ("10G", "'G' could be GiB or GB: write 10GiB or 10GB", 2),
        ("10k", "'k' could be KiB or kB: write 10KiB or 10kB", 2),
        ("10gigs", "'gigs' is not a unit: write 10GiB or 10GB", 2),
        ("10MBit", "'MBit' is not a unit: write 10MiB or 10MB", 2),
        ("GiB", "how many GiB? write 10GiB", 0),
        ("200%", "200% is more than one GPU: write 2x100% for 2 whole GPUs", 0),
        ("150%", "150% is more than one GPU: write 100% for a whole GPU", 0),
        ("5/4", "5/4 is more than one GPU: write 100% for a whole GPU", 0),
        ("0/4", "0/4 of a GPU is nothing: write a part above it, such as 25%", 0),
        ("0%", "0% of a GPU is nothing: write a part above it, such as 25%", 0),
        ("0GiB", "0GiB is nothing: write a size above it, such as 1GiB", 0),
        ("0.1B", "0.1B is less than one byte: write a size such as 1GiB", 0),
        ("1/0", "nothing can be cut into 0 parts: write 1/4", 2),
        ("1/", "1 of how many parts? write 1/4", 2),
        ("1.5/4", "a fraction has whole numbers: write 1/4, or 12.5% for a finer part", 0),
        ("1/4GiB", "a part of a GPU takes no unit: write 1/4, or a size such as 10GiB", 3),
        ("-5GiB", "a size is never negative: write 10GiB", 0),
        ("−5GiB", "a size is never negative: write 10GiB", 0),
        (".5GiB", "a number begins with a digit: write 0.5GiB", 0),
        ("1.GiB", "digits are missing after '1.': write 1.5GiB", 2),
        (
            "１０GiB",
            "'１' (U+FF11) is not one of the digits 0 to 9: write the size with those, such as 10GiB",
            0,
        ),
        (
            "99999999TiB",
            "99999999TiB is more memory than any GPU has: write a size such as 10GiB",
            0,
        ),
        ("9" * 21 + "B", "a number of 21 digits is more than any GPU has: write 10GiB", 0),
        ("1.1234567GiB", "7 decimals are more than a size needs: write at most 6", 0),
        (",,", "only commas: write a size such as 10GiB, with fallbacks as 10GiB,5GiB", 0),
        ("10GiB,", "nothing stands after the last comma: write another size or remove the comma", 6),
        (",10GiB", "nothing stands before this comma: write another size or remove the comma", 0),
        ("10GiB,,5GiB", "nothing stands before this comma: write another size or remove the comma", 6),
        ("0x10GiB", "0 GPUs are nothing: write a count from 1 on, such as 2xH100", 0),
        ("1.5xH100", "a count is a whole number of GPUs: write 2xH100", 0),
        ("2x", "2x what? write 2x10GiB or 2xH100", 2),
        ("H100x2", "the count goes first: write 2xH100", 4),
        ("10GiB x2", "the count goes first: write 2x10GiB", 6),
        ("10GiB H100", "the model goes first: write H100:10GiB", 6),
        ("10GiB:H100", "the model goes first: write H100:10GiB", 5),
        ("H100 20GiB", "is 20GiB the size? write H100:20GiB; or H100-20GiB for the card of that name", 5),
        ("H100 25%", "a ':' goes between model and size: write H100:25%", 7),
        ("H100:", "how much of each? write H100:20GiB, or H100 for all of it", 5),
        ("H100@25%", "say how much memory before @: write H100:100%@25%", 4),
        ("H100(a)", "cannot read '(' in a model: write H100:10GiB", 4),
        (":10GiB", "a model goes before ':': write H100:10GiB", 0),
        ("10GiB@", "how much compute? write a part of one GPU, such as 10GiB@30%", 6),
        ("10GiB@30", "30 what? compute is a part of one GPU: write 30%", 8),
        ("10GiB@3GiB", "compute is a part of one GPU, not bytes: write 30%", 6),
        ("10GiB@200%", "200% is more than one GPU: write 2x100% for 2 whole GPUs", 6),
        ("10GiB;5GiB", "cannot read ';' after 10GiB: a fallback follows a comma, as in 10GiB,5GiB", 5),
        ("?", "cannot read '?' here: a size begins with a digit, such as 10GiB, 1/4 or 25%", 0),
    ],
)
def test_a_slip_is_answered_with(text: str, sentence: str, column: int) -> None:
    error = refusal(text)
    assert error.message == sentence
    assert error.facts == (text, " " * column + "^")


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_is_answered_with_what_to_write(text: str) -> None:
    assert refusal(text).message == "nothing is asked: write a size such as 10GiB, 1/4 or 25%"


def test_the_caret_stays_true_below_wide_characters() -> None:
    assert refusal("10GiB,１GiB").facts == ("10GiB,１GiB", " " * 6 + "^")
    assert refusal("10GiB 漢漢?").facts[1] == " " * 6 + "^"
    assert refusal("漢GiB").facts[1] == "^"


def test_what_the_terminal_would_obey_is_shown_as_question_marks() -> None:
    error = refusal("10GiB\x1b[2J")
    assert error.facts[0] == "10GiB?[2J"
    assert error.message.startswith("cannot read '?' (U+001B) after 10GiB")


def test_a_long_text_is_shown_around_the_place() -> None:
    line, caret = refusal(",".join(["10GiB"] * 20 + ["10"] + ["10GiB"] * 20)).facts
    assert len(line) <= 80
    assert line.startswith("...")
    assert line.endswith("...")
    assert line[: caret.index("^")].endswith(",10")


def test_compute_by_itself_is_answered_with_its_own_sentences() -> None:
    with pytest.raises(AliquotError) as caught:
        parse_compute("30")
    assert caught.value.message == "30 what? compute is a part of one GPU: write 30%"
    with pytest.raises(AliquotError, match="cannot read 'x' after compute: write 25%"):
        parse_compute("25% x")
