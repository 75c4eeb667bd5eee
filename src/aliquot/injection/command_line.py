"""Reading the user's own command line: options, verb, image, and what follows it.

The clients read with Go's pflag, whose rules are: ``--name value``, ``--name=value``; a flag never
takes the next word; short letters may stand together (``-it``, ``-dp 80:80``, ``-eA=B``); ``--``
ends the options, and so does the first word that is none.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from aliquot.injection.engine import EngineKind
from aliquot.injection.options import GLOBAL_OPTIONS, RUN_OPTIONS, OptionTable
from aliquot.injection.words import VERBS
from aliquot.model import AliquotError, Reason


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    """Long name, aliases resolved."""
    value: str | None
    """``None`` for a flag without ``=``."""
    start: int
    """Its first word's position; letters of one cluster share it."""
    end: int
    """The position after its last word."""

    @property
    def on(self) -> bool:
        """A flag's truth, as Go's ``strconv.ParseBool`` reads it."""
        return self.value is None or self.value in ("1", "t", "T", "true", "TRUE", "True")


@dataclass(frozen=True, slots=True)
class ContainerCommand:
    """A ``run`` or ``create`` of an engine's client. Positions are into ``argv``."""

    argv: tuple[str, ...]
    kind: EngineKind
    """By the client's name; ``probe`` knows better."""
    client_end: int
    """The position after the client's own options."""
    verb_at: int
    """The position of ``run`` or ``create``."""

    @property
    def client(self) -> tuple[str, ...]:
        """The program and its options before the verb: what ``probe`` takes."""
        return self.argv[: self.client_end]

    @property
    def verb(self) -> str:
        return self.argv[self.verb_at]


def find_verb(argv: Sequence[str], kind: EngineKind) -> tuple[int, int]:
    """The position after the client's options, and that of the verb's last word (``run`` in
    ``docker container run``); both past the end where there is no verb."""
    _, at = read_options(argv, 1, GLOBAL_OPTIONS[kind])
    nested = at + 1 < len(argv) and argv[at] == "container" and argv[at + 1] in VERBS
    return at, at + 1 if nested else at


def parse_run(command: ContainerCommand, kind: EngineKind) -> tuple[tuple[Option, ...], int]:
    """The options after the verb, and the image's position. ``kind`` is what the engine said.

    Raises ``AliquotError`` (``command-not-understood``).
    """
    options, at = read_options(command.argv, command.verb_at + 1, RUN_OPTIONS[kind])
    if at >= len(command.argv):
        raise AliquotError(
            Reason.COMMAND_NOT_UNDERSTOOD,
            f"no image in `{' '.join(command.argv)}`",
            next=[(f"{' '.join(command.client)} {command.verb} --help", "shows what it takes")],
        )
    return options, at


def read_options(words: Sequence[str], start: int, table: OptionTable) -> tuple[tuple[Option, ...], int]:
    """The options from ``start`` on, and the position of the first word that is none.

    Raises ``AliquotError`` (``command-not-understood``) at an option that ``table`` lacks and
    that has no ``=``, or that lacks its value.
    """
    options: list[Option] = []
    at = start
    while at < len(words):
        word = words[at]
        if word == "--":
            return tuple(options), at + 1
        if not word.startswith("-") or word == "-":
            break
        found = list(_long(words, at, table) if word.startswith("--") else _cluster(words, at, table))
        options += found
        at = found[-1].end
    return tuple(options), at


def _long(words: Sequence[str], at: int, table: OptionTable) -> Iterator[Option]:
    given, equals, value = words[at][2:].partition("=")
    name = table.aliases.get(given, given)
    if equals:
        yield Option(name, value, at, at + 1)
    elif name in table.flags:
        yield Option(name, None, at, at + 1)
    elif name in table.valued:
        yield Option(name, _next_word(words, at, f"--{given}"), at, at + 2)
    else:
        raise _unknown(f"--{given}")


def _cluster(words: Sequence[str], at: int, table: OptionTable) -> Iterator[Option]:
    letters = words[at][1:]
    for position, letter in enumerate(letters):
        name, rest = table.short.get(letter), letters[position + 1 :]
        if name is None:
            raise _unknown(f"-{letter}")
        if name in table.flags:
            if rest.startswith("="):
                yield Option(name, rest[1:], at, at + 1)
                return
            yield Option(name, None, at, at + 1)
        elif rest:
            yield Option(name, rest.removeprefix("="), at, at + 1)
            return
        else:
            yield Option(name, _next_word(words, at, f"-{letter}"), at, at + 2)
            return


def _next_word(words: Sequence[str], at: int, option: str) -> str:
    if at + 1 >= len(words):
        raise AliquotError(Reason.COMMAND_NOT_UNDERSTOOD, f"`{option}` lacks its value")
    return words[at + 1]


def _unknown(option: str) -> AliquotError:
    return AliquotError(
        Reason.COMMAND_NOT_UNDERSTOOD,
        f"`{option}` is not an option that Aliquot knows, so it cannot tell whether the next word is "
        "its value or the image",
        next=[(f"{option}=VALUE", "the same option in one word, if it takes a value")],
    )


def option_values(words: Sequence[str], table: OptionTable, name: str) -> list[str]:
    """The values that ``name`` has among ``words``, in order; a flag that is on counts as ``""``."""
    options, _ = read_options(words, 0, table)
    return [option.value or "" for option in options if option.name == name and (option.value or option.on)]


def without_options(words: Sequence[str], table: OptionTable, names: Collection[str]) -> tuple[str, ...]:
    """``words`` (options only) without those called ``names``."""
    options, _ = read_options(words, 0, table)
    kept: list[str] = []
    for option in options:
        if option.name not in names and option.value is None:
            kept.append(f"--{option.name}")
        elif option.name not in names:
            kept += (
                [f"--{option.name}", str(option.value)]
                if option.name in table.valued
                else [f"--{option.name}={option.value}"]
            )
    return tuple(kept)
