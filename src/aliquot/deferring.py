"""Names that a package exports and imports only when they are first used.

Every command pays for what its packages import, a millisecond for every few classes, and most use
a small part of them. A package lists such names by the module that has them, and imports them for
type checkers under ``TYPE_CHECKING``. Whoever uses one at run time says ``package.name`` where it is
needed, since ``from package import name`` at the top of a module imports it at once.

No module may be called like a name that is deferred: importing it would replace the name.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def deferred(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of ``package``. ``homes``: by module of the package (``.metering``
    is its neighbour), the names that it has, with spaces between them."""
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f".{home_of[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
