"""NVML through nvidia-ml-py: the only module that imports it.

nvidia-ml-py keeps its library in a global of its module. To read the driver's NVML and the
software GPU's in one process, each library gets an instance of the module of its own,
executed anew from the same source and bound to the library by absolute path. By path, not
by name: ``libnvidia-ml.so.1`` on LD_LIBRARY_PATH is a tenant's view, and once a library of
that name is loaded, the loader gives it to everybody who asks by name.

The module is imported when a library was found, never before: it costs 20 ms of CPU.
"""

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from aliquot.inventory.shared_libraries import cut_short

if TYPE_CHECKING:  # import-linter cannot see an import by spec, and shall know of this one
    import pynvml  # noqa: F401


class NvmlCode(Enum):
    """Return codes of NVML that mean something to us; numbers of nvml.h."""

    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    UNKNOWN = 999
    UNLISTED = -1
    """Any other; or an error of the binding itself."""


class NvmlError(Exception):
    """NVML or its binding failed. Never leaves the inventory."""

    def __init__(self, code: NvmlCode, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class Nvml:
    """One initialised NVML library. Every call is guarded by itself."""

    def __init__(self, binding: ModuleType) -> None:
        self._binding = binding

    def call(self, function: str, *arguments: object) -> Any:
        """The value of nvidia-ml-py's ``function``; NvmlError where it has none."""
        try:
            return getattr(self._binding, function)(*arguments)
        except Exception as error:  # a driver of another age surprises the binding in many ways
            raise self._failure(error) from error

    def constant(self, name: str) -> Any:
        """A constant of nvidia-ml-py; None where this release of it lacks the name."""
        return getattr(self._binding, name, None)

    def _failure(self, error: Exception) -> NvmlError:
        number = getattr(error, "value", None)
        if not isinstance(number, int):
            return NvmlError(NvmlCode.UNLISTED, f"{type(error).__name__}: {error}")
        code = NvmlCode(number) if number in {one.value for one in NvmlCode} else NvmlCode.UNLISTED
        try:  # the library's own words, which know more than the binding's table
            words = str(self._binding.nvmlErrorString(number))
        except Exception:
            words = str(error)
        return NvmlError(code, words)


class Card:
    """One GPU's handle: what cannot be asked is None, and the reasons are remembered."""

    def __init__(self, nvml: Nvml, handle: object) -> None:
        self._nvml = nvml
        self._handle = handle
        self.answered = False
        self.refusals: dict[str, NvmlCode] = {}
        """By function: why it gave no value."""

    def ask(self, function: str, *arguments: object) -> Any:
        """The value of ``function`` for this card, or None."""
        try:
            value = self._nvml.call(function, self._handle, *arguments)
        except NvmlError as failure:
            self.refusals[function] = failure.code
            return None
        self.answered = True
        return value

    def ask_list(self, function: str, *arguments: object) -> list[Any] | None:
        """A list whose length may grow between nvidia-ml-py's two calls: asked again then."""
        for _ in range(4):
            self.refusals.pop(function, None)
            value = self.ask(function, *arguments)
            if self.refusals.get(function) is not NvmlCode.INSUFFICIENT_SIZE:
                return None if value is None else list(value)
        return None

    def constant(self, name: str) -> Any:
        return self._nvml.constant(name)


@contextmanager
def opened(library: Path) -> Iterator[Nvml]:
    """NVML of ``library``, initialised, until the block ends. Raises NvmlError."""
    nvml = Nvml(_binding(str(library)))
    nvml.call("nvmlInit")
    try:
        yield nvml
    finally:
        with suppress(NvmlError):  # what was read is read
            nvml.call("nvmlShutdown")


@functools.cache
def _binding(library: str) -> ModuleType:
    """nvidia-ml-py bound to the library of that absolute path. Raises NvmlError.

    Kept, because a loaded library stays loaded: another look costs no second import.
    """
    import ctypes
    import importlib.util

    source = importlib.util.find_spec("pynvml")
    if source is None or source.origin is None:
        raise NvmlError(NvmlCode.UNLISTED, "the Python package nvidia-ml-py is not installed")
    name = f"pynvml of {library}"  # no name that anybody would import
    spec = importlib.util.spec_from_file_location(name, source.origin)
    try:
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # it looks itself up while it is executed
        spec.loader.exec_module(module)
        if cut_short(Path(library)):
            raise OSError("the file is cut short")
        module.nvmlLib = ctypes.CDLL(library)
    except OSError as error:
        raise NvmlError(NvmlCode.LIBRARY_NOT_FOUND, str(error)) from error
    except Exception as error:
        raise NvmlError(NvmlCode.UNLISTED, f"nvidia-ml-py: {error}") from error
    return cast(ModuleType, module)
