"""Triton as it comes, without torch: `triton_kernels.py CASE`. Prints which matrix instructions it made."""

from __future__ import annotations

import ctypes
import json
import re
import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl

DRIVER = ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: Any) -> None:
    code = getattr(DRIVER, name)(*arguments)
    assert code == 0, f"{name} gave {code}"


class DeviceArray:
    """What Triton takes for a pointer: an address and a type. `dtype` is for types that numpy lacks."""

    def __init__(self, array: Any, dtype: str = "") -> None:
        self.host, self.dtype = np.ascontiguousarray(array), dtype or array.dtype.name
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.host.nbytes))
        self.address = address.value
        call(
            "cuMemcpyHtoD_v2",
            address,
            ctypes.c_void_p(self.host.ctypes.data),
            ctypes.c_size_t(self.host.nbytes),
        )

    def data_ptr(self) -> int:
        return self.address

    def back(self) -> Any:
        out = np.empty_like(self.host)
        size = ctypes.c_size_t(out.nbytes)
        call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(self.address), size)
        return out


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(out, x, stride, rows, columns, BLOCK: tl.constexpr):  # noqa: N803
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=3):
        at = tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
        raised = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride + at, raised / tl.sum(raised, axis=0), mask=at < columns)


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, RAISED: tl.constexpr,  # noqa: N803
    SUM: tl.constexpr,  # noqa: N803
):  # fmt: skip
    down, along = tl.program_id(0), tl.program_id(1)
    rows, columns, depth = down * BM + tl.arange(0, BM), along * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=SUM)
    for at in range(tl.cdiv(k, BK)):
        left = at * BK + depth
        x = tl.load(
            a + rows[:, None] * k + left[None, :], mask=(rows[:, None] < m) & (left[None, :] < k), other=0.0
        )
        y = tl.load(
            b + left[:, None] * n + columns[None, :],
            mask=(left[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        if RAISED:  # computed in registers: wgmma takes a from there
            x = (x.to(tl.float32) * 2).to(y.dtype)
        total = tl.dot(x, y, total, out_dtype=SUM)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)


def add() -> set[str]:
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 10_000), np.float32)
    out = DeviceArray(np.zeros_like(x))
    add_kernel[(10,)](DeviceArray(x), DeviceArray(y), out, x.size, BLOCK=1024)
    np.testing.assert_array_equal(out.back(), x + y)
    return set()


def softmax() -> set[str]:
    x = np.random.default_rng(2).standard_normal((37, 781)).astype(np.float32)
    out = DeviceArray(np.zeros_like(x))
    softmax_kernel[(8,)](out, DeviceArray(x), 781, 37, 781, BLOCK=1024, num_warps=8)
    raised = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out.back(), raised / raised.sum(axis=1, keepdims=True), rtol=1e-5)
    return set()


def operand(kind: str, shape: tuple[int, int], rng: Any) -> tuple[DeviceArray, Any]:
    """On the device, and what its elements stand for."""
    if kind == "int8":
        values = rng.integers(-128, 128, shape).astype(np.int8)
        return DeviceArray(values), values.astype(np.float64)
    if kind == "float8_e5m2":
        halves = (rng.standard_normal(shape).astype(np.float16).view(np.uint16) & 0xFF00).view(np.float16)
        return DeviceArray((halves.view(np.uint16) >> 8).astype(np.uint8), kind), halves.astype(np.float64)
    if kind == "bfloat16":
        bits = rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16
        return DeviceArray(bits.astype(np.uint16), kind), (bits << 16).view(np.float32).astype(np.float64)
    values = rng.standard_normal(shape).astype(kind)
    if kind == "float32":  # multiplied as tf32: numbers that are
        values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return DeviceArray(values), values.astype(np.float64)


def matmul(
    kind: str, raised: bool = False, tile: tuple[int, int, int] = (64, 64, 64), warps: int = 4
) -> set[str]:
    m, n, k = 150, 200, 176
    rng = np.random.default_rng(3)
    (a, left), (b, right) = operand(kind, (m, k), rng), operand(kind, (k, n), rng)
    whole = kind == "int8"
    c = DeviceArray(np.full((m, n), 7, np.int32 if whole else np.float32))
    grid = (triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]))
    sum_type = tl.int32 if whole else tl.float32
    kernel = matmul_kernel[grid](
        a,
        b,
        c,
        m,
        n,
        k,
        BM=tile[0],
        BN=tile[1],
        BK=tile[2],
        RAISED=raised,
        SUM=sum_type,
        num_warps=warps,
        num_stages=3,
    )
    want = (left * 2 if raised else left) @ right
    tolerance = 0.0 if whole else 2e-6 * np.abs(left).max() * np.abs(right).max() * k
    np.testing.assert_allclose(c.back(), want, rtol=0, atol=tolerance)
    return {name for name, pattern in PATTERNS.items() if re.search(pattern, kernel.asm["ptx"])}


PATTERNS = {
    "ldmatrix": r"ldmatrix\.",
    "mma.sync": r"[^g]mma\.sync\.",
    "wgmma": r"wgmma\.mma_async\.[^{;]*\{[^}]*\}, %rd",
    "wgmma of registers": r"wgmma\.mma_async\.[^{;]*\{[^}]*\}, \{",
}


@triton.jit
def descriptor_kernel(out, n, BLOCK: tl.constexpr):  # noqa: N803
    map_ = tl.make_tensor_descriptor(out, shape=[n, n], strides=[n, 1], block_shape=[BLOCK, BLOCK])
    map_.store([0, 0], tl.full((BLOCK, BLOCK), 1.0, tl.float32))


def descriptor() -> set[str]:
    """On a card of 9.0 Triton makes a tensor map of this, which does not run here: an error says so."""
    scratch = DeviceArray(np.zeros(1 << 16, np.uint8))
    triton.set_allocator(lambda _size, _alignment, _stream: scratch)
    out = DeviceArray(np.zeros((64, 64), np.float32))
    try:
        descriptor_kernel[(1,)](out, 64, BLOCK=64)
        call("cuCtxSynchronize")
    except (RuntimeError, AssertionError) as error:
        return {str(error)}
    return {"no error"}


CASES = {
    "add": add,
    "softmax": softmax,
    "matmul_f16": lambda: matmul("float16"),
    "matmul_f16_wide": lambda: matmul("float16", tile=(128, 256, 64), warps=8),
    "matmul_bf16": lambda: matmul("bfloat16"),
    "matmul_tf32": lambda: matmul("float32"),
    "matmul_f8": lambda: matmul("float8_e5m2"),
    "matmul_s8": lambda: matmul("int8"),
    "descriptor": descriptor,
    "matmul_computed_a": lambda: matmul("float16", raised=True),
}

if __name__ == "__main__":
    driver = triton.runtime.driver.active
    driver.set_current_device(driver.get_current_device())
    driver.get_current_stream(0)
    print(json.dumps({"right": True, "instructions": sorted(CASES[sys.argv[1]]())}))
