"""Documents for programs: versioned, and the same whether JSON or YAML.

``{"apiVersion": "aliquot/v1", "kind": "GpuList", "items": [...]}``. Keys are only ever added
within a version. Times are ISO 8601 in UTC, memory is bytes, compute is thousandths of a GPU,
null is unknown.
"""

from collections.abc import Mapping

API_VERSION = "aliquot/v1"


def document(kind: str, body: Mapping[str, object]) -> dict[str, object]:
    return {"apiVersion": API_VERSION, "kind": kind, **body}


def as_json(body: Mapping[str, object], *, indent: bool = True) -> str:
    import msgspec

    data = msgspec.json.encode(_clean(body))
    return (msgspec.json.format(data, indent=2) if indent else data).decode()


def as_yaml(body: Mapping[str, object]) -> str:
    import yaml

    text: str = yaml.safe_dump(_clean(body), sort_keys=False, allow_unicode=False, default_flow_style=False)
    return text.rstrip("\n")


def _clean(value: object) -> object:
    """``value`` in types that every format has, its text in characters that UTF-8 has.

    A command line may hold bytes that are no UTF-8; Python carries them as lone surrogates,
    which neither JSON nor YAML can.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
