"""Fields of a YAML or JSON document that know their path and line.

Read node by node, not by ``yaml.safe_load`` nor into msgspec structs: both lose the line of
a field, and both keep the last of two equal keys without a word. JSON is read as the YAML
that it is, except for tabs, which only JSON allows between values.

Imported by ``documents`` inside its functions only: YAML costs CPU time that ``aliquot run
--gpu 1GiB`` must not pay.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

import yaml

from aliquot.ask.unreadable import shown
from aliquot.model import AliquotError, Reason

_MOST_CHARACTERS = 64 * 1024
_STANDARD_TAG = "tag:yaml.org,2002:"
_COUNT = re.compile(r"[0-9]{1,9}")
_Read = TypeVar("_Read")
_FIX = (("aliquot plan 10GiB -o yaml", "prints a document that can be read back"),)


def read(text: str, *, source: str) -> "Field":
    """The top of the document.

    Raises:
        AliquotError: BAD_FILE where it is empty, too long, several, or not YAML.
    """
    if len(text) > _MOST_CHARACTERS:
        raise _error(source, f"{len(text)} characters are too many for an ask: at most {_MOST_CHARACTERS}")
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("{") and _is_json(text):
        text = text.replace("\t", " ")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise _error(
            f"{source}{line}", f"not YAML: {', '.join(filter(None, (error.context, error.problem)))}"
        ) from error
    except RecursionError:
        raise _error(source, "nested too deeply for an ask") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _error(source, f"not YAML: {str(error).splitlines()[0]}") from error
    if node is None:
        raise _error(source, "the document is empty")
    return Field(node, path="", source=source)


@dataclass(frozen=True, slots=True)
class Field:
    node: yaml.Node
    path: str
    """``spec.gpu[1].memory``; empty for the whole document."""
    source: str

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_null(self) -> bool:
        return self._tag == "null"

    def error(self, sentence: str, *, facts: Iterable[str] = ()) -> AliquotError:
        where = f"{self.source}, line {self.node.start_mark.line + 1}"
        return _error(where, f"{self.path}: {sentence}" if self.path else sentence, facts=facts)

    def mapping(
        self, *, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()
    ) -> "dict[str, Field]":
        """Its fields by name; each of ``required`` is among them and no other than both lists."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"expected fields ({', '.join(required + optional)}), not {self._described}")
        fields: dict[str, Field] = {}
        for key, value in self.node.value:
            name = shown(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            field = Field(value, path=f"{self.path}.{name}".removeprefix("."), source=self.source)
            if name not in required + optional:
                raise Field(key, field.path, self.source).error(_unknown(name, required + optional))
            if name in fields:
                raise Field(key, field.path, self.source).error("is given twice: keep one")
            fields[name] = field
        for name in required:
            if name not in fields:
                raise self.error(f"the field {name} is missing")
        return fields

    def entries(self) -> "tuple[Field, ...]":
        """The members of a list, or itself where it is no list."""
        if not isinstance(self.node, yaml.SequenceNode):
            return (self,)
        if not self.node.value:
            raise self.error("the list is empty: write at least one size, such as 10GiB")
        members = enumerate(self.node.value)
        return tuple(Field(node, f"{self.path}[{index}]", self.source) for index, node in members)

    def text(self) -> str:
        """A scalar as written: ``10`` stays text, so that the SPEC parser asks ``10 what?``."""
        if not isinstance(self.node, yaml.ScalarNode) or self._tag in ("null", "bool", None):
            raise self.error(f"expected text, not {self._described}")
        return str(self.node.value)

    def count(self) -> int:
        if self._tag != "int" or not _COUNT.fullmatch(self.node.value) or int(self.node.value) == 0:
            raise self.error(f"expected a whole number from 1 on, not {self._described}")
        return int(self.node.value)

    def boolean(self) -> bool:
        if self._tag != "bool":
            raise self.error(f"expected true or false, not {self._described}")
        return str(self.node.value).lower() in ("true", "yes", "on")

    def reading(self, parse: Callable[[str], _Read]) -> _Read:
        """What ``parse`` makes of the text, its refusal told as one of this field."""
        try:
            return parse(self.text())
        except AliquotError as error:
            if error.reason is Reason.BAD_FILE:
                raise
            raise self.error(error.message, facts=error.facts) from error

    @property
    def _tag(self) -> str | None:
        """The kind that YAML sees, such as ``int``; None for a tag of somebody's own."""
        tag = str(self.node.tag)
        return tag.removeprefix(_STANDARD_TAG) if tag.startswith(_STANDARD_TAG) else None

    @property
    def _described(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "fields"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        if self.is_null:
            return "nothing"
        return f"'{shown(str(self.node.value)[:40])}'"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _unknown(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"the fields here are {', '.join(known)}"
    return f"no such field: {hint}"


def _error(where: str, sentence: str, *, facts: Iterable[str] = ()) -> AliquotError:
    return AliquotError(Reason.BAD_FILE, f"{where}: {shown(sentence)}", facts=facts, next=_FIX)
