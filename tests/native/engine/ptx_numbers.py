"""Numbers as the PTX ISA has them, in Python's own integers: exact values, and one rounding to a format.

Nothing here is shared with the engine: values are fractions, and a format is its precision and range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: `precision` counts the hidden bit."""

    bits: int
    precision: int
    bias: int
    nan: int
    has_infinity: bool = True

    @property
    def fraction_bits(self) -> int:
        return self.precision - 1

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return ((1 << (self.bits - self.precision)) - 1) << self.fraction_bits

    @property
    def largest(self) -> int:
        return self.infinity - 1 if self.has_infinity else self.nan - 1

    def is_nan(self, bits: int) -> bool:
        magnitude = bits & (self.sign - 1)
        return magnitude > self.infinity if self.has_infinity else magnitude == self.nan

    def is_infinite(self, bits: int) -> bool:
        return self.has_infinity and bits & (self.sign - 1) == self.infinity

    def is_subnormal(self, bits: int) -> bool:
        return 0 < bits & (self.sign - 1) < 1 << self.fraction_bits

    def negative(self, bits: int) -> bool:
        return bool(bits & self.sign)

    def flushed(self, bits: int) -> int:
        return bits & self.sign if self.is_subnormal(bits) else bits

    def value(self, bits: int) -> Fraction:
        """Of a finite number."""
        magnitude = bits & (self.sign - 1)
        exponent, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        if exponent:
            fraction |= 1 << self.fraction_bits
        power = max(exponent, 1) - self.bias - self.fraction_bits
        size = Fraction(fraction << power) if power >= 0 else Fraction(fraction, 1 << -power)
        return -size if self.negative(bits) else size

    def rounded(self, value: Fraction, mode: str = "rn", *, zero_sign: bool = False) -> int:
        """The bits of `value` in this format; a zero has the sign `zero_sign`."""
        if value == 0:
            return self.sign if zero_sign else 0
        negative, size = value < 0, abs(value)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        if (Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)) > size:
            exponent -= 1
        unit = max(exponent, 1 - self.bias) - self.fraction_bits
        scaled = size / (1 << unit) if unit >= 0 else size * (1 << -unit)
        kept, rest = divmod(scaled.numerator, scaled.denominator)
        twice = 2 * rest - scaled.denominator
        up = {
            "rn": twice > 0 or (twice == 0 and bool(kept & 1)),
            "rna": twice >= 0,
            "rz": False,
            "rm": negative and rest > 0,
            "rp": not negative and rest > 0,
        }[mode]
        kept += up
        field = unit + self.fraction_bits + self.bias - 1
        bits = (field << self.fraction_bits) + kept
        if bits > self.largest:
            away = mode in ("rn", "rna") or (mode == "rm" and negative) or (mode == "rp" and not negative)
            bits = self.infinity if away and self.has_infinity else self.largest
        return bits | (self.sign if negative else 0)


FORMATS = {
    "f64": Format(64, 53, 1023, 0x7FF8_0000_0000_0000),
    "f32": Format(32, 24, 127, 0x7FFF_FFFF),
    "tf32": Format(32, 24, 127, 0x7FFF_FFFF),
    "f16": Format(16, 11, 15, 0x7FFF),
    "bf16": Format(16, 8, 127, 0x7FFF),
    "e4m3": Format(8, 4, 7, 0x7F, has_infinity=False),
    "e5m2": Format(8, 3, 15, 0x7F),
}
_TF32 = Format(19, 11, 127, 0x3FFFF)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def square_root(value: Fraction) -> Fraction:
    """Near enough that every rounding of it is the rounding of the root."""
    scale = 1 << 2400
    scaled = value.numerator * scale * scale // value.denominator
    root = math.isqrt(scaled)
    exact = root * root == scaled and value.numerator * scale * scale % value.denominator == 0
    return Fraction(2 * root + (not exact), 2 * scale)


def to_tf32(value: Fraction, mode: str, *, zero_sign: bool) -> int:
    return _TF32.rounded(value, mode, zero_sign=zero_sign) << 13


def _sum(kind: Format, parts: list[tuple[int, Fraction | None]], mode: str) -> int:
    """Of signed parts: (bits that tell sign and kind, exact value or None for an infinity)."""
    infinite = [sign for sign, value in parts if value is None]
    if infinite:
        return kind.nan if len(set(infinite)) > 1 else kind.infinity | (kind.sign if infinite[0] else 0)
    total = sum((value for _, value in parts if value is not None), Fraction(0))
    signs = {bool(sign) for sign, _ in parts}
    zero_sign = (mode == "rm") if len(signs) > 1 else signs.pop()
    return kind.rounded(total, mode, zero_sign=zero_sign)


def add(kind: Format, a: int, b: int, mode: str = "rn") -> int:
    if kind.is_nan(a) or kind.is_nan(b):
        return kind.nan
    return _sum(kind, [_part(kind, a), _part(kind, b)], mode)


def _part(kind: Format, bits: int) -> tuple[int, Fraction | None]:
    return int(kind.negative(bits)), None if kind.is_infinite(bits) else kind.value(bits)


def _product(kind: Format, a: int, b: int) -> tuple[int, Fraction | None] | None:
    """None where it is no number."""
    sign = int(kind.negative(a) != kind.negative(b))
    if kind.is_nan(a) or kind.is_nan(b):
        return None
    zero = 0 in (a & (kind.sign - 1), b & (kind.sign - 1))
    if kind.is_infinite(a) or kind.is_infinite(b):
        return None if zero else (sign, None)
    return sign, kind.value(a) * kind.value(b)


def multiply(kind: Format, a: int, b: int, mode: str = "rn") -> int:
    product = _product(kind, a, b)
    return kind.nan if product is None else _sum(kind, [product], mode)


def fused(kind: Format, a: int, b: int, c: int, mode: str = "rn") -> int:
    product = _product(kind, a, b)
    if product is None or kind.is_nan(c):
        return kind.nan
    return _sum(kind, [product, _part(kind, c)], mode)


def divide(kind: Format, a: int, b: int, mode: str = "rn") -> int:
    sign = kind.sign if kind.negative(a) != kind.negative(b) else 0
    zero_a, zero_b = a & (kind.sign - 1) == 0, b & (kind.sign - 1) == 0
    if (
        kind.is_nan(a)
        or kind.is_nan(b)
        or (zero_a and zero_b)
        or (kind.is_infinite(a) and kind.is_infinite(b))
    ):
        return kind.nan
    if kind.is_infinite(a) or zero_b:
        return kind.infinity | sign
    if kind.is_infinite(b) or zero_a:
        return sign
    return kind.rounded(kind.value(a) / kind.value(b), mode)


def root(kind: Format, a: int, mode: str = "rn") -> int:
    if a & (kind.sign - 1) == 0:
        return a
    if kind.is_nan(a) or kind.negative(a):
        return kind.nan
    return a if kind.is_infinite(a) else kind.rounded(square_root(kind.value(a)), mode)


def compare(kind: Format, a: int, b: int) -> int | None:
    """-1, 0, 1; None where they are not ordered."""
    if kind.is_nan(a) or kind.is_nan(b):
        return None
    x, y = (_ordered(kind, bits) for bits in (a, b))
    return (x > y) - (x < y)


def _ordered(kind: Format, bits: int) -> int:
    magnitude = bits & (kind.sign - 1)
    return -magnitude if kind.negative(bits) else magnitude


def extreme(kind: Format, a: int, b: int, *, largest: bool, nan: bool = False) -> int:
    if (kind.is_nan(a) and kind.is_nan(b)) or (nan and (kind.is_nan(a) or kind.is_nan(b))):
        return kind.nan
    if kind.is_nan(a) or kind.is_nan(b):
        return b if kind.is_nan(a) else a
    order = compare(kind, a, b)
    first = kind.negative(b) if order == 0 else order == 1  # a is taken for the largest
    return a if first == largest else b


def saturated(kind: Format, bits: int) -> int:
    if kind.is_nan(bits) or kind.negative(bits):
        return 0
    one = kind.bias << kind.fraction_bits
    return min(bits, one)


def integral(value: Fraction, mode: str) -> int:
    floor, rest = divmod(value.numerator, value.denominator)
    twice = 2 * rest - value.denominator
    return {
        "rni": floor + (twice > 0 or (twice == 0 and floor & 1)),
        "rmi": floor,
        "rpi": floor + (rest > 0),
        "rzi": floor + (rest > 0 and floor < 0),
    }[mode]
