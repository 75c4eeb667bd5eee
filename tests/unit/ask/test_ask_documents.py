"""The document form: one ask, two spellings, errors that name field, line and rule."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aliquot.ask import from_document, parse, parse_isolation, parse_placement, parse_policy, to_document
from aliquot.model import AliquotError, Ask, Isolation, PlacementPolicy, Policy, Reason, Unknown

HEAD = "apiVersion: aliquot/v1\nkind: Ask\nspec:\n"
SPECS = ["10GiB", "1/3", "100%", "2xH100:20GiB@25%", "RTX-4090!", "H100:20GiB,A100:20GiB", "0.1GiB", "33.33%"]

asks = st.builds(
    lambda spec, policy, isolation, unknown: Ask(parse(spec).alternatives, policy, isolation, unknown),
    st.sampled_from(SPECS),
    st.sampled_from(Policy),
    st.none() | st.sampled_from(Isolation),
    st.sampled_from(Unknown),
)


def refusal(text: str) -> AliquotError:
    with pytest.raises(AliquotError) as caught:
        from_document(text, source="ask.yaml")
    assert caught.value.reason is Reason.BAD_FILE
    return caught.value


@given(asks)
def test_the_document_of_an_ask_reads_back_from_yaml_and_from_json(ask: Ask) -> None:
    document = to_document(ask)
    for text in (yaml.safe_dump(document), json.dumps(document), json.dumps(document, indent="\t")):
        assert from_document(text, source="ask") == ask


def test_the_document_has_its_fields_in_the_order_to_print_them() -> None:
    ask = Ask(parse("10GiB@30%").alternatives, Policy.CAP, Isolation.SOFT)
    assert yaml.safe_dump(to_document(ask), sort_keys=False) == (
        HEAD + "  gpu: 10GiB@30%\n  policy: cap\n  isolation: soft\n"
    )


def test_any_isolation_is_left_out_and_may_be_written_as_null() -> None:
    assert "isolation" not in to_document(parse("10GiB"))["spec"]  # type: ignore[operator]
    assert from_document(HEAD + "  gpu: 10GiB\n  isolation: null\n", source="ask") == parse("10GiB")


@pytest.mark.parametrize(
    ("gpu", "spec"),
    [
        ("10GiB", "10GiB"),
        ("1/4", "25%"),
        ("{memory: 10GiB}", "10GiB"),
        ("{memory: 1/4}", "25%"),
        ("{memory: 10GiB, compute: 30%}", "10GiB@30%"),
        ("{model: H100}", "H100"),
        ("{model: RTX 4090!, count: 2}", "2xRTX-4090!"),
        ("{model: RTX 4090, exact: true, memory: 10GiB}", "RTX-4090!:10GiB"),
        ("{count: 2, model: H100, memory: 20GiB, compute: 1/4}", "2xH100:20GiB@25%"),
        ("[H100:20GiB, {model: A100, memory: 20GiB}, '1/2,1/4']", "H100:20GiB,A100:20GiB,50%,25%"),
    ],
)
def test_the_long_form_is_the_same_ask(gpu: str, spec: str) -> None:
    assert from_document(f"{HEAD}  gpu: {gpu}\n", source="ask") == parse(spec)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "ask.yaml: the document is empty"),
        ("- 1\n", "ask.yaml, line 1: expected fields (apiVersion, kind, spec), not a list"),
        ("kind: Ask\nspec: {gpu: 1GiB}\n", "ask.yaml, line 1: the field apiVersion is missing"),
        (
            "apiVersion: aliquot/v2\nkind: Ask\nspec: {gpu: 1GiB}\n",
            "ask.yaml, line 1: apiVersion: this release reads aliquot/v1 only, not 'aliquot/v2'",
        ),
        (
            "apiVersion: aliquot/v1\nkind: Pod\nspec: {gpu: 1GiB}\n",
            "ask.yaml, line 2: kind: this release reads Ask only, not 'Pod'",
        ),
        (HEAD + "  gpus: 1GiB\n", "ask.yaml, line 4: spec.gpus: no such field: did you mean gpu?"),
        (
            HEAD + "  zone: a\n",
            "ask.yaml, line 4: spec.zone: no such field: the fields here are gpu, policy, isolation, unknown",
        ),
        (HEAD + "  policy: fair\n", "ask.yaml, line 4: spec: the field gpu is missing"),
        (HEAD + "  gpu: 1GiB\n  gpu: 2GiB\n", "ask.yaml, line 5: spec.gpu: is given twice: keep one"),
        (HEAD + "  gpu: 10\n", "ask.yaml, line 4: spec.gpu: 10 what? write 10GiB or 10GB"),
        (HEAD + "  gpu: true\n", "ask.yaml, line 4: spec.gpu: expected text, not 'true'"),
        (HEAD + "  gpu:\n", "ask.yaml, line 4: spec.gpu: expected text, not nothing"),
        (HEAD + "  gpu: !own 10GiB\n", "ask.yaml, line 4: spec.gpu: expected text, not '10GiB'"),
        (
            HEAD + "  gpu: []\n",
            "ask.yaml, line 4: spec.gpu: the list is empty: write at least one size, such as 10GiB",
        ),
        (
            HEAD + "  gpu:\n  - 10GiB\n  - memory: 10GiB\n    compute: 30\n",
            "ask.yaml, line 7: spec.gpu[1].compute: 30 what? compute is a part of one GPU: write 30%",
        ),
        (
            HEAD + "  gpu: {memory: 10GiB, count: 0}\n",
            "ask.yaml, line 4: spec.gpu.count: expected a whole number from 1 on, not '0'",
        ),
        (
            HEAD + "  gpu: {model: H100, compute: 30%}\n",
            "ask.yaml, line 4: spec.gpu: the field memory is missing: write memory: 10GiB, or memory: 100%",
        ),
        (
            HEAD + "  gpu: {memory: 10GiB@30%}\n",
            "ask.yaml, line 4: spec.gpu.memory: memory is a size or a part: write 10GiB, 1/4 or 25%",
        ),
        (
            HEAD + "  gpu: {model: 2xH100}\n",
            "ask.yaml, line 4: spec.gpu.model: a model is the name of a card: write H100",
        ),
        (
            HEAD + "  gpu: {memory: 1GiB, exact: true}\n",
            "ask.yaml, line 4: spec.gpu.exact: "
            "says that no variant of the model will do: name a model as well",
        ),
        (
            HEAD + "  gpu: 1GiB\n  policy: foo\n",
            "ask.yaml, line 5: spec.policy: no policy is called 'foo': write fair, cap or priority",
        ),
        (
            HEAD + "  gpu: 1GiB\n---\nkind: Ask\n",
            "ask.yaml, line 5: not YAML: "
            "expected a single document in the stream, but found another document",
        ),
    ],
)
def test_a_slip_names_field_line_and_rule(text: str, sentence: str) -> None:
    assert refusal(text).message == sentence


def test_a_slip_inside_a_spec_carries_its_caret() -> None:
    assert refusal(HEAD + "  gpu: 10\n").facts == ("10", "  ^")


def test_every_slip_says_where_a_good_document_comes_from() -> None:
    assert refusal("").next == (("aliquot plan 10GiB -o yaml", "prints a document that can be read back"),)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 30_000,
        "x" * 100_000,
        "a: [",
        "\x00",
        '"\\UFFFFFFFF"',
        HEAD + "  gpu: &a [*a]\n",
        HEAD + "  gpu: {? [1] : 2}\n",
        "{" + "\t" * 3 + "}",
        "!!python/object/apply:os.system ['true']",
    ],
)
def test_hostile_documents_are_refused(text: str) -> None:
    assert refusal(text).message.isprintable()


_fragments = st.sampled_from(
    [
        "apiVersion",
        "aliquot/v1",
        "kind",
        "Ask",
        "spec",
        "gpu",
        "10GiB",
        "10",
        ": ",
        "\n",
        "  ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
    ]
)


@given(st.lists(_fragments | st.text(max_size=3), max_size=30).map("".join))
def test_any_text_gives_an_ask_or_a_refusal_of_the_file(text: str) -> None:
    try:
        ask = from_document(HEAD + "  " + text, source="ask.yaml")
    except AliquotError as error:
        refused = error
    else:
        assert ask.alternatives
        return
    assert refused.reason is Reason.BAD_FILE
    assert refused.message.isprintable()


def test_words_of_closed_sets() -> None:
    assert parse_policy(" Fair ") is Policy.FAIR
    assert parse_isolation("soft") is Isolation.SOFT
    assert parse_placement("spread") is PlacementPolicy.SPREAD
    with pytest.raises(
        AliquotError, match="no isolation is called 'strict': write hard, firm, soft or advisory"
    ):
        parse_isolation("strict")
    with pytest.raises(AliquotError, match="no placement is called 'best': write pack or spread"):
        parse_placement("best")
