"""The engine for tests: its C library through ctypes, numpy arrays in and out."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.native.cmake_build import ROOT, cmake_build

PTX = Path(__file__).parent / "ptx"

OK = 0


class _Options(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared_bytes", ctypes.c_uint32),
        ("worker_threads", ctypes.c_uint32),
        ("timeout_ns", ctypes.c_uint64),
        ("cooperative", ctypes.c_int32),
    )


class _Place(ctypes.Structure):
    _fields_ = (
        ("known", ctypes.c_bool),
        ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
        ("instruction", ctypes.c_char_p),
        ("function", ctypes.c_char_p),
        ("global_bytes", ctypes.c_uint32),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("status", ctypes.c_int),
        ("address", ctypes.c_uint64),
        ("line", ctypes.c_int),
        ("instructions", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("longest_block_ns", ctypes.c_uint64),
        ("all_blocks_ns", ctypes.c_uint64),
        ("message", ctypes.c_char * 200),
        ("place", _Place),
    )


class _Info(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("parameter_count", ctypes.c_size_t),
        ("parameter_bytes", ctypes.c_size_t),
        ("static_shared_bytes", ctypes.c_uint32),
        ("local_bytes", ctypes.c_uint32),
        ("registers", ctypes.c_uint32),
        ("constant_bytes", ctypes.c_uint32),
        ("maximum_threads", ctypes.c_uint32),
        ("required_threads", ctypes.c_uint32 * 3),
        ("ptx_version", ctypes.c_int),
        ("target", ctypes.c_int),
    )


@dataclass(frozen=True)
class Place:
    """Where a launch failed; `block` and `thread` are None where no lane ran."""

    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None
    instruction: str | None
    function: str | None
    global_bytes: int


@dataclass(frozen=True)
class Outcome:
    status: int
    address: int
    line: int
    instructions: int
    message: str
    place: Place


def _place_of(place: _Place) -> Place:
    return Place(
        tuple(place.block) if place.known else None,
        tuple(place.thread) if place.known else None,
        place.instruction.decode() if place.instruction else None,
        place.function.decode() if place.function else None,
        place.global_bytes,
    )


class LoadError(Exception):
    """A module was refused; `status` and the log."""

    def __init__(self, status: int, log: str) -> None:
        super().__init__(log)
        self.status = status
        self.log = log


class Buffer:
    """Device memory with the dtype and shape of the array it was made from."""

    def __init__(self, device: Device, array: npt.NDArray[Any]) -> None:
        self.device = device
        self.dtype, self.shape, self.nbytes = array.dtype, array.shape, array.nbytes
        self.address = device.allocate(max(array.nbytes, 1))
        device.write(self.address, array.tobytes())

    def array(self) -> npt.NDArray[Any]:
        data = self.device.read(self.address, self.nbytes)
        return np.frombuffer(data, dtype=self.dtype).reshape(self.shape).copy()

    def numba(self) -> list[Any]:
        """The array as numba passes it: meminfo, parent, size, item size, data, shape, strides."""
        itemsize = self.dtype.itemsize
        strides: list[int] = []
        step = itemsize
        for extent in reversed(self.shape):
            strides.insert(0, step)
            step *= extent
        count = int(np.prod(self.shape))
        return [
            0,
            0,
            np.int64(count),
            np.int64(itemsize),
            self.address,
            *map(np.int64, self.shape),
            *map(np.int64, strides),
        ]


class Device:
    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.handle = ctypes.c_void_p(library.device_open())

    def allocate(self, size: int) -> int:
        return int(self.library.device_allocate(self.handle, ctypes.c_size_t(size)))

    def write(self, address: int, data: bytes) -> None:
        assert self.library.device_write(
            self.handle, ctypes.c_uint64(address), data, ctypes.c_size_t(len(data))
        )

    def read(self, address: int, size: int) -> bytes:
        out = ctypes.create_string_buffer(size)
        assert self.library.device_read(self.handle, ctypes.c_uint64(address), out, ctypes.c_size_t(size))
        return out.raw

    def put(self, array: npt.ArrayLike) -> Buffer:
        return Buffer(self, np.ascontiguousarray(array))

    def printed(self) -> str:
        out = ctypes.create_string_buffer(1 << 16)
        length = self.library.device_printed(self.handle, out, ctypes.c_size_t(1 << 16))
        return out.raw[:length].decode()

    def commits(self) -> int:
        return int(self.library.device_commits(self.handle))

    def refuse_commits(self, refuse: bool) -> None:
        self.library.device_refuse_commits(self.handle, ctypes.c_bool(refuse))

    def close(self) -> None:
        self.library.device_close(self.handle)


def _flatten(arguments: tuple[Any, ...]) -> list[Any]:
    flat: list[Any] = []
    for argument in arguments:
        flat.extend(argument) if isinstance(argument, list) else flat.append(argument)
    return flat


def _encode(argument: Any, size: int) -> bytes:
    """The bytes of a parameter: numbers of its size, device addresses, structures as they are."""
    if isinstance(argument, Buffer):
        argument = argument.address
    if isinstance(argument, bytes):
        return argument
    if isinstance(argument, np.generic):
        return argument.tobytes()
    if isinstance(argument, float):
        return struct.pack("<f" if size == 4 else "<d", argument)
    return (int(argument) % (1 << 8 * size)).to_bytes(size, "little")


class Module:
    def __init__(self, library: ctypes.CDLL, device: Device, text: str | bytes) -> None:
        self.library, self.device = library, device
        data = text.encode() if isinstance(text, str) else text
        log = ctypes.create_string_buffer(8192)
        handle = ctypes.c_void_p()
        status = library.module_open(
            data, ctypes.c_size_t(len(data)), log, ctypes.c_size_t(8192), ctypes.byref(handle)
        )
        self.log = log.value.decode(errors="replace")
        if status != OK:
            raise LoadError(status, self.log)
        self.handle = handle
        library.module_place(handle, device.handle)

    def kernel(self, name: str | None = None) -> ctypes.c_void_p:
        if name is None:
            assert self.library.module_kernel_count(self.handle) == 1
            return ctypes.c_void_p(self.library.module_kernel(self.handle, ctypes.c_size_t(0)))
        kernel = self.library.module_kernel_named(self.handle, name.encode(errors="surrogateescape"))
        assert kernel, f"no kernel {name}"
        return ctypes.c_void_p(kernel)

    def describe(self, name: str | None = None) -> _Info:
        info = _Info()
        self.library.kernel_describe(self.kernel(name), ctypes.byref(info))
        return info

    def name_of(self, index: int) -> str:
        info = _Info()
        kernel = ctypes.c_void_p(self.library.module_kernel(self.handle, ctypes.c_size_t(index)))
        self.library.kernel_describe(kernel, ctypes.byref(info))
        name: bytes = info.name
        return name.decode(errors="surrogateescape")

    def _parameters(self, kernel: ctypes.c_void_p, arguments: list[Any]) -> bytes:
        info = _Info()
        self.library.kernel_describe(kernel, ctypes.byref(info))
        assert len(arguments) == info.parameter_count, (
            f"{len(arguments)} for {info.parameter_count} parameters"
        )
        block = bytearray(info.parameter_bytes)
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        for index, argument in enumerate(arguments):
            self.library.kernel_parameter(
                kernel, ctypes.c_size_t(index), ctypes.byref(offset), ctypes.byref(size)
            )
            encoded = _encode(argument, size.value)
            assert len(encoded) == size.value, f"argument {index}: {len(encoded)} bytes for {size.value}"
            block[offset.value : offset.value + size.value] = encoded
        return bytes(block)

    def run(
        self,
        *arguments: Any,
        grid: tuple[int, ...] | int = 1,
        block: tuple[int, ...] | int = 1,
        name: str | None = None,
        shared: int = 0,
        workers: int = 1,
        timeout_s: float = 20.0,
        cooperative: bool = False,
    ) -> Outcome:
        """Arguments in the order of the parameters; lists (numba's arrays) are several."""
        kernel = self.kernel(name)
        options = _Options()
        for field, value in ((options.grid, grid), (options.block, block)):
            extents = (value,) if isinstance(value, int) else value
            field[:] = (*extents, 1, 1)[:3]
        options.dynamic_shared_bytes, options.worker_threads = shared, workers
        options.timeout_ns, options.cooperative = int(timeout_s * 1e9), cooperative
        parameters = self._parameters(kernel, _flatten(arguments))
        result = _Result()
        self.library.kernel_run(
            kernel, self.device.handle, ctypes.byref(options), parameters, ctypes.byref(result)
        )
        message = result.message.decode(errors="replace")
        return Outcome(
            result.status, result.address, result.line, result.instructions, message, _place_of(result.place)
        )

    def launch(self, *arguments: Any, **options: Any) -> Outcome:
        """`run`, where a fault is a failure of the test."""
        outcome = self.run(*arguments, **options)
        assert outcome.status == OK, outcome.message
        return outcome

    def close(self) -> None:
        self.library.module_close(self.handle)


class Engine:
    """Opens modules and devices, and closes them with the test."""

    # sg_status of engine.h
    OK, BAD_PTX, UNSUPPORTED, NO_MEMORY, ILLEGAL_ADDRESS = range(5)
    MISALIGNED, STACK_OVERFLOW, TRAP, TIMEOUT, INVALID_LAUNCH = range(5, 10)
    LoadError = LoadError
    texts = PTX

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.device = Device(library)
        self.modules: list[Module] = []

    def module(self, text: str | bytes) -> Module:
        module = Module(self.library, self.device, text)
        self.modules.append(module)
        return module

    def corpus(self, name: str) -> Module:
        return self.module((PTX / f"{name}.ptx").read_bytes())

    def body(self, instructions: str, *, parameters: str = ".param .u64 out", before: str = "") -> Module:
        """A kernel `k` around `instructions`, with registers of every type and %out its parameter."""
        return self.module(
            ".version 8.0\n.target sm_80\n.address_size 64\n"
            f"{before}\n.visible .entry k({parameters})\n{{\n"
            ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>;\n"
            f".reg .f32 %f<20>; .reg .f64 %g<20>;\n{instructions}\nret;\n}}\n"
        )

    def link(self, *texts: str | bytes) -> bytes:
        data = [text.encode() if isinstance(text, str) else text for text in texts]
        pointers = (ctypes.c_char_p * len(data))(*data)
        lengths = (ctypes.c_size_t * len(data))(*map(len, data))
        log = ctypes.create_string_buffer(8192)
        merged, length = ctypes.c_void_p(), ctypes.c_size_t()
        status = self.library.texts_link(
            pointers, lengths, ctypes.c_size_t(len(data)), log, ctypes.c_size_t(8192),
            ctypes.byref(merged), ctypes.byref(length),
        )  # fmt: skip
        if status != OK:
            raise LoadError(status, log.value.decode(errors="replace"))
        text = ctypes.string_at(merged, length.value)
        self.library.text_free(merged)
        return text

    def close(self) -> None:
        for module in self.modules:
            module.close()
        self.device.close()


def _build() -> Path:
    """The test library of build/native, brought up to date; or the one that the caller built."""
    given = os.environ.get("ALIQUOT_ENGINE_LIBRARY")
    if given:
        return Path(given)
    build = ROOT / "build" / "native"
    cmake_build(build, "engine_under_test")
    (library,) = build.rglob("libengine_under_test.so")
    return library


def typed(library: ctypes.CDLL) -> ctypes.CDLL:
    for name in ("device_open", "module_kernel", "module_kernel_named"):
        getattr(library, name).restype = ctypes.c_void_p
    for name in ("device_allocate", "device_commits"):
        getattr(library, name).restype = ctypes.c_uint64
    for name in ("device_printed", "module_kernel_count"):
        getattr(library, name).restype = ctypes.c_size_t
    for name in ("device_write", "device_read", "kernel_parameter", "engine_level", "engine_form"):
        getattr(library, name).restype = ctypes.c_bool
    return library


@pytest.fixture(scope="session")
def engine_library() -> ctypes.CDLL:
    return typed(ctypes.CDLL(str(_build())))


@pytest.fixture(params=["best", "v3", "base"])
def engine(engine_library: ctypes.CDLL, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The engine in each compilation of its handlers that this processor can run."""
    level = None if request.param == "best" else request.param.encode()
    if not engine_library.engine_level(level):
        pytest.skip(f"this processor has no x86-64-{request.param}")
    engine = Engine(engine_library)
    yield engine
    engine.close()
    engine_library.engine_level(None)
