"""The document form of an ask: YAML or JSON of kind ``Ask``.

    apiVersion: aliquot/v1
    kind: Ask
    spec:
      gpu: 2xH100:20GiB@25%,A100:20GiB
      policy: fair
      isolation: soft
      unknown: refuse

``spec.gpu`` is a SPEC; or its long form ``{count: 2, model: H100, exact: true, memory: 20GiB,
compute: 25%}``, with at least a model (then the whole card) or a memory; or a list of either,
best first. ``policy``, ``isolation`` and ``unknown`` may lack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aliquot.ask.specs import WHOLE_GPU, parse, parse_compute
from aliquot.ask.words import parse_isolation, parse_policy, parse_unknown
from aliquot.model import AliquotError, Alternative, Amount, Ask, Policy, Reason, Unknown

if TYPE_CHECKING:
    from aliquot.ask.fields import Field

API_VERSION = "aliquot/v1"
KIND = "Ask"


def to_document(ask: Ask) -> dict[str, object]:
    """The normal form as plain data, its fields in the order to print them."""
    spec: dict[str, object] = {"gpu": str(ask), "policy": ask.policy.value}
    if ask.isolation is not None:
        spec["isolation"] = ask.isolation.value
    if ask.unknown is not Unknown.REFUSE:
        spec["unknown"] = ask.unknown.value
    return {"apiVersion": API_VERSION, "kind": KIND, "spec": spec}


def from_document(text: str, *, source: str) -> Ask:
    """The ask in a document; ``source`` names it in errors, as a path or ``stdin``.

    ``from_document(yaml_or_json(to_document(ask)), source=…) == ask``.

    Raises:
        AliquotError: BAD_FILE, with the source, the line, the field and the rule.
    """
    from aliquot.ask.fields import read  # see there: YAML is paid for only where a file is read

    top = read(text, source=source).mapping(required=("apiVersion", "kind", "spec"))
    _expect(top["apiVersion"], API_VERSION)
    _expect(top["kind"], KIND)
    spec = top["spec"].mapping(required=("gpu",), optional=("policy", "isolation", "unknown"))
    alternatives = tuple(alternative for entry in spec["gpu"].entries() for alternative in _read_gpu(entry))
    policy, isolation, unknown = spec.get("policy"), spec.get("isolation"), spec.get("unknown")
    return Ask(
        alternatives,
        policy=policy.reading(parse_policy) if policy else Policy.FAIR,
        isolation=isolation.reading(parse_isolation) if isolation and not isolation.is_null else None,
        unknown=unknown.reading(parse_unknown) if unknown else Unknown.REFUSE,
    )


def _expect(field: Field, known: str) -> None:
    if field.text() != known:
        raise field.error(f"this release reads {known} only, not '{field.text()[:40]}'")


def _read_gpu(field: Field) -> tuple[Alternative, ...]:
    if not field.is_mapping:
        return field.reading(parse).alternatives
    parts = field.mapping(optional=("count", "model", "exact", "memory", "compute"))
    if "memory" not in parts and ("model" not in parts or "compute" in parts):
        raise field.error("the field memory is missing: write memory: 10GiB, or memory: 100%")
    model = parts["model"].reading(_model) if "model" in parts else None
    exact = parts["exact"].boolean() if "exact" in parts else model is not None and model.exact
    if exact and model is None:
        raise parts["exact"].error("says that no variant of the model will do: name a model as well")
    amount = parts["memory"].reading(_memory) if "memory" in parts else WHOLE_GPU
    if "compute" in parts:
        amount = Amount(bytes=amount.bytes, part=amount.part, compute=parts["compute"].reading(parse_compute))
    count = parts["count"].count() if "count" in parts else 1
    return (Alternative(amount, count, model.model if model else None, exact),)


# Each field of the long form is a SPEC of which one part alone may be there: one grammar for both forms.


def _model(text: str) -> Alternative:
    alternative = _only(text, "a model is the name of a card: write H100")
    if alternative.model is None or alternative.count != 1 or not alternative.amount.whole:
        raise AliquotError(Reason.BAD_SPEC, "a model is the name of a card: write H100")
    return alternative


def _memory(text: str) -> Amount:
    rule = "memory is a size or a part: write 10GiB, 1/4 or 25%"
    alternative = _only(text, rule)
    if alternative.model is not None or alternative.count != 1 or alternative.amount.compute is not None:
        raise AliquotError(Reason.BAD_SPEC, rule)
    return alternative.amount


def _only(text: str, rule: str) -> Alternative:
    alternatives = parse(text).alternatives
    if len(alternatives) != 1:
        raise AliquotError(Reason.BAD_SPEC, rule)
    return alternatives[0]
