"""Arithmetic of the three float formats and of words on their bits, in Python's integers and fractions."""
import math
from fractions import Fraction

M32, M64 = 0xffffffff, 0xffffffffffffffff


class Format:
    def __init__(self, bits, fraction):
        self.bits, self.fraction = bits, fraction
        self.exponent = bits - 1 - fraction
        self.bias = (1 << (self.exponent - 1)) - 1
        self.inf = ((1 << self.exponent) - 1) << fraction
        self.sign = 1 << (bits - 1)
        self.quiet = 1 << (fraction - 1)
        self.default = self.sign | self.inf | self.quiet

    def nan(self, v):
        return v & (self.sign - 1) > self.inf

    def infinite(self, v):
        return v & (self.sign - 1) == self.inf

    def value(self, v):
        field, low = (v >> self.fraction) & ((1 << self.exponent) - 1), v & ((1 << self.fraction) - 1)
        m = Fraction(low | (1 << self.fraction if field else 0))
        m *= Fraction(2) ** (max(field, 1) - self.bias - self.fraction)
        return -m if v & self.sign else m

    def round(self, x, negative_zero=False, how=0):
        """A Fraction to the nearest even (0), up (1), down (2) or toward zero (3)."""
        if x == 0:
            return self.sign if negative_zero else 0
        sign, m = (self.sign, -x) if x < 0 else (0, x)
        e = m.numerator.bit_length() - m.denominator.bit_length()
        if Fraction(2) ** e > m:
            e -= 1
        e = max(e, 1 - self.bias)
        units = m / Fraction(2) ** (e - self.fraction)
        n, rest = divmod(units.numerator, units.denominator)
        rest = Fraction(rest, units.denominator)
        up = {0: rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n & 1), 1: rest and not sign, 2: rest and sign,
              3: False}[how]
        n += bool(up)
        if n >> (self.fraction + 1):
            n, e = n >> 1, e + 1
        if e > self.bias:
            away = how == 0 or (how == 1 and not sign) or (how == 2 and sign)
            return sign | (self.inf if away else self.inf - 1)
        return sign | ((n & ((1 << self.fraction) - 1)) | ((e + self.bias) << self.fraction) if n >> self.fraction else n)


F16, BF16, F32, F64 = Format(16, 10), Format(16, 7), Format(32, 23), Format(64, 52)


def first_nan(f, *v):
    for x in v:
        if f.nan(x):
            return x | f.quiet
    return f.default


def add(f, a, b, how=0):
    if f.nan(a) or f.nan(b) or (f.infinite(a) and f.infinite(b) and a != b):
        return first_nan(f, a, b)
    if f.infinite(a) or f.infinite(b):
        return a if f.infinite(a) else b
    both = bool(a & f.sign) and bool(b & f.sign)
    zero_sum_negative = both or (how == 2 and (a ^ b) & f.sign) if f.value(a) + f.value(b) == 0 else False
    return f.round(f.value(a) + f.value(b), bool(zero_sum_negative) or (how == 2 and f.value(a) != 0), how)


def multiply(f, a, b, how=0):
    sign = (a ^ b) & f.sign
    if f.nan(a) or f.nan(b):
        return first_nan(f, a, b)
    if f.infinite(a) or f.infinite(b):
        return f.default if not (a & ~f.sign and b & ~f.sign) else sign | f.inf
    return f.round(f.value(a) * f.value(b), bool(sign), how)


def fma(f, a, b, c, how=0):
    sign = (a ^ b) & f.sign
    if f.nan(a) or f.nan(b):
        return first_nan(f, a, b)
    if (f.infinite(a) and not b & ~f.sign) or (f.infinite(b) and not a & ~f.sign):
        return f.default
    if f.nan(c):
        return first_nan(f, c)
    if f.infinite(a) or f.infinite(b):
        return f.default if f.infinite(c) and (c ^ sign) & f.sign else sign | f.inf
    if f.infinite(c):
        return c
    exact = f.value(a) * f.value(b) + f.value(c)
    negative = bool(sign and c & f.sign)
    if exact == 0 and how == 2 and not (sign == c & f.sign):
        negative = True
    return f.round(exact, negative, how)


def order(f, v):
    return -(v & (f.sign - 1)) - 1 if v & f.sign else v


def pick(f, a, b, largest):
    for x in (a, b):
        if f.nan(x) and not x & f.quiet:
            return x | f.quiet
    if f.nan(a):
        return a if f.nan(b) else b
    if f.nan(b):
        return a
    return (max if largest else min)(a, b, key=lambda v: order(f, v))


def signed(v, bits=32):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def clamp(v, low, high):
    return max(low, min(high, v))


def whole(f, v, how):
    if f.nan(v):
        return v | f.quiet
    if f.infinite(v):
        return v
    x = f.value(v)
    n = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "rndne": round}[how](x)
    return f.round(Fraction(n), bool(v & f.sign))


def ldexp(f, v, n):
    if f.nan(v):
        return v | f.quiet
    if f.infinite(v):
        return v
    return f.round(f.value(v) * Fraction(2) ** clamp(n, -4000, 4000), bool(v & f.sign))


def to_integer(f, v, low, high):
    if f.nan(v):
        return 0
    if f.infinite(v):
        return low if v & f.sign else high
    return clamp(math.trunc(f.value(v)), low, high)


def convert(to, f, v, how=0):
    if f.nan(v):
        low = v & (f.quiet * 2 - 1)
        shift = to.fraction - f.fraction
        return (to.sign if v & f.sign else 0) | to.inf | to.quiet | (low << shift if shift > 0 else low >> -shift)
    if f.infinite(v):
        return (to.sign if v & f.sign else 0) | to.inf
    return to.round(f.value(v), bool(v & f.sign), how)


def class_bits(f, v):
    negative, m = bool(v & f.sign), v & (f.sign - 1)
    if m > f.inf:
        return 2 if m & f.quiet else 1
    if m == f.inf:
        return 4 if negative else 512
    if m >> f.fraction:
        return 8 if negative else 256
    return (16 if negative else 128) if m else (32 if negative else 64)


def permute(a, b, selector):
    pool, r = a << 32 | b, 0
    for i in range(4):
        s = selector >> 8 * i & 255
        byte = pool >> 8 * s & 255 if s < 8 else 255 * (pool >> (16 * (s - 8) + 15) & 1) if s < 12 else 0 if s == 12 else 255
        r |= byte << 8 * i
    return r


def leading(v, bits=32):
    return bits - v.bit_length() if v else M32


def sign_run(v, bits=32):
    v = ~v & ((1 << bits) - 1) if v >> (bits - 1) else v
    return bits - v.bit_length() if v else M32


def frexp(f, v):
    """(exponent, mantissa)"""
    m = v & (f.sign - 1)
    if m >= f.inf:
        return 0, v | f.quiet if m > f.inf else v
    if not m:
        return 0, v
    x, e = abs(f.value(v)), 0
    while x >= 1:
        x, e = x / 2, e + 1
    while x < Fraction(1, 2):
        x, e = x * 2, e - 1
    return e, f.round(x) | (v & f.sign)


def fract(f, v):
    if f.nan(v) or f.infinite(v):
        return first_nan(f, v)
    x = f.value(v)
    r = f.round(x - math.floor(x))
    one = f.bias << f.fraction
    return min(r, one - 1)


# Edges by kind: f, h, d floats; u, i words; l 64-bit words.
SPECIAL = {
    "f": [0, 1 << 31, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
          0xff800000, 0x7fc00001, 0x7f800001, 0xffc12345, 0x4b000000, 0x4f000000, 0xcf000000, 0x4f800000, 0x3effffff],
    "h": [0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01, 0x7c01, 0xfe12],
    "d": [0, 1 << 63, 1, 1 << 63 | 1, (1 << 52) - 1, 1 << 52, 0x3ff << 52, 0xbff << 52, 0x7fefffffffffffff, 0x7ff << 52,
          0xfff << 52, 0x7ff8000000000001, 0x7ff0000000000001, 0x41e0000000000000, 0xc1e0000000000000, 0x41efffffffe00000],
    "u": [0, 1, 31, 32, M32, 1 << 31, (1 << 31) - 1, 0xffff, 0x10000, 0xffffff, 0x800000, 5, 0x0c0d0807],
    "i": [0, 1, M32, 23, M32 - 22, 150, M32 - 150, 300, M32 - 300, 1 << 31, (1 << 31) - 1, 1074, M32 - 1100],
    "l": [0, 1, M64, 1 << 63, (1 << 63) - 1, M32, M32 + 1, 63, 64],
}
