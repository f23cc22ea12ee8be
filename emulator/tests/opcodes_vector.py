"""What vector opcodes do to one lane, in Python's integers and fractions, and what their encodings add to that."""
import math
import os
import re
from fractions import Fraction

import numpy as np

import floats
from floats import class_bits, clamp, convert, first_nan, fract, frexp, order, permute, to_integer, whole
from opcode_table import (EXEC, F16, F32, F64, FORMATS, M0, M32, M64, VCC, DWORDS, bits_of, sample, seen_as, signed)
from opcodes_scalar import RELATIONS, Constant, Place, constant, highest_one, lowest_one, reverse, sign_run


class Now:
    """What a lane's function may ask for beside its sources."""
    mode, lane, wave, signs = 0x3f0, 0, 32, (0, 0)

    @staticmethod
    def ieee():
        return Now.mode >> 9 & 1


class Near:
    """A float that the hardware gives only nearly: within `ulps` of an exact value."""

    def __init__(self, f, exact, ulps, least=0):
        self.f, self.exact, self.ulps, self.least = f, exact, ulps, least

    def holds(self, bits):
        f = self.f
        bits &= (1 << f.bits) - 1
        if f.nan(bits) or f.infinite(bits):
            return False
        nearest = f.round(self.exact)
        spacing = Fraction(2) ** (max(nearest >> f.fraction & (1 << f.exponent) - 1, 1) - f.bias - f.fraction)
        return abs(f.value(bits) - self.exact) <= max(self.ulps * spacing, self.least)

    def __repr__(self):
        return f"about {float(self.exact)!r} ({self.f.round(self.exact):#x})"


def how(f):
    return Now.mode >> (0 if f is F32 else 2) & 3


def plus(f, a, b):
    return floats.add(f, a, b, how(f))


def subtract(f, a, b):
    """A NaN keeps its sign."""
    return first_nan(f, a, b) if f.nan(a) or f.nan(b) else plus(f, a, b ^ f.sign)


def multiply(f, a, b):
    return floats.multiply(f, a, b, how(f))


def fma(f, a, b, c):
    return floats.fma(f, a, b, c, how(f))


def zero(f, v):
    return not v & ~f.sign


def pick(f, a, b, largest):
    """The smaller or larger, -0 below +0; a number wins over a NaN. MODE.IEEE: a signaling NaN wins over all."""
    if Now.ieee():
        return floats.pick(f, a, b, largest)
    if f.nan(b) or f.nan(a):
        return a if f.nan(b) else b
    return (max if largest else min)(a, b, key=lambda v: order(f, v))


def median(f, a, b, c):
    if f.nan(a) or f.nan(b) or f.nan(c):
        return pick(f, pick(f, a, b, False), c, False)
    return sorted((a, b, c), key=lambda v: order(f, v))[1]


def ldexp(f, v, n):
    if f.nan(v) or f.infinite(v):
        return floats.ldexp(f, v, n)
    return f.round(f.value(v) * Fraction(2) ** clamp(n, -4000, 4000), bool(v & f.sign), how(f))


def number(f, v):
    """Comparable; None for NaN."""
    return None if f.nan(v) else (-1) ** bool(v & f.sign) * Fraction(2) ** 3000 if f.infinite(v) else f.value(v)


def halves(function, kind):
    """A function of 16-bit values on both halves of its sources."""
    def both(*sources):
        low, high = ([seen_as(kind, s >> shift & 0xffff) for s in sources] for shift in (0, 16))
        return Packed(function(*low), function(*high), kind)
    return both


class Packed:
    """Two results of 16 bits, before they are cut or clamped."""

    def __init__(self, low, high, kind):
        self.parts, self.kind = (low, high), kind


def bytes_of(v, count=4):
    return [v >> 8 * i & 255 for i in range(count)]


def sad(a, b, masked=False):
    return sum(abs(x - y) for x, y in zip(bytes_of(a), bytes_of(b)) if y or not masked)


def quad_sad(a, b, c, masked, bits):
    """Four sums along a window of eight bytes, each added to its part of c."""
    part = (1 << bits) - 1
    return sum((sad(a >> 8 * i & M32, b, masked) + (c >> bits * i & part) & part) << bits * i for i in range(4))


def lerp(a, b, c):
    return sum((x + y + (z & 1) >> 1) << 8 * i for i, (x, y, z) in enumerate(zip(*map(bytes_of, (a, b, c)))))


def cube(a, b, c):
    """(face, s, t, major axis) of a direction."""
    x, y, z = (F32.value(v) for v in (a, b, c))
    if abs(z) >= abs(x) and abs(z) >= abs(y):
        return (5, a ^ F32.sign, b ^ F32.sign, c) if z < 0 else (4, a, b ^ F32.sign, c)
    if abs(y) >= abs(x):
        return (3, a, c ^ F32.sign, b) if y < 0 else (2, a, c, b)
    return (1, c, b ^ F32.sign, a) if x < 0 else (0, c ^ F32.sign, b ^ F32.sign, a)


def dx9(f, a, b, otherwise, at_zero):
    return at_zero if zero(f, a) or zero(f, b) else otherwise()


def field(f, v):
    return v >> f.fraction & (1 << f.exponent) - 1


# Of a division: exponents so far apart that the quotient or the numerator's part of it would leave the format, and by
# how much each source is scaled for that. As recorded on hardware, where it differs from the ISA guide's pseudocode.
APART, SCALE = {F32: 96, F64: 768}, {F32: 64, F64: 128}


def div_scale(f, v, d, n):
    apart, tiny = field(f, n) - field(f, d), field(f, d) == 0
    after = apart >= APART[f] or (apart <= -APART[f] and not tiny)
    if zero(f, d) or zero(f, n):
        return f.default, after
    if f.nan(v) or f.infinite(v):
        return (v | f.quiet if f.nan(v) else v), after
    is_d, huge = v == d, field(f, d) >= 2 * f.bias - 1
    if apart >= APART[f]:
        by = SCALE[f] if is_d else 0
    elif tiny:
        by = SCALE[f]
    elif huge:
        by = 0 if apart <= -APART[f] and not is_d else -SCALE[f]
    elif apart <= -APART[f]:
        by = 0 if is_d else SCALE[f]
    else:
        by = SCALE[f] if field(f, n) <= f.fraction + 1 else 0
    return f.round(f.value(v) * Fraction(2) ** by, bool(v & f.sign), how(f)), after


def div_fmas(f, a, b, c, after):
    if any(f.nan(v) or f.infinite(v) for v in (a, b, c)) or not after:
        return fma(f, a, b, c)
    exact = f.value(a) * f.value(b) + f.value(c)
    if exact == 0:
        return fma(f, a, b, c)
    return f.round(exact * Fraction(2) ** (SCALE[f] if field(f, c) > f.bias else -SCALE[f]), False, how(f))


def div_fixup(f, q, d, n):
    sign = (d ^ n) & f.sign
    if f.nan(n) or f.nan(d):
        return first_nan(f, n, d)
    if (zero(f, d) and zero(f, n)) or (f.infinite(d) and f.infinite(n)):
        return f.default
    if zero(f, d) or f.infinite(n):
        return sign | f.inf
    if zero(f, n) or f.infinite(d):
        return sign
    if f is not F16 and field(f, n) - field(f, d) < -(f.bias + f.fraction):
        return f.round(Fraction(-1 if sign else 1, 2 ** 3000), bool(sign), how(f))
    if f.nan(q) or f.infinite(q):
        return f.round(Fraction(-1 if sign else 1) * 2 ** 3000, bool(sign), how(f))
    return sign | q & ~f.sign


def two_over_pi(bits):
    """Of 2/pi, the first bits behind the point."""
    one = 1 << bits + 64

    def arctangent(x):
        total, term, k = 0, one // x, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term, k = term // (x * x), k + 1
        return total
    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 * one << 0) * one // pi >> 64


TWO_OVER_PI = two_over_pi(1201)


def trig_preop(v, index):
    shift = (index & 31) * 53 + max(field(F64, v) - 1077, 0)
    part = (TWO_OVER_PI << shift + 53 >> 1201) & (1 << 53) - 1
    return F64.round(Fraction(part) * Fraction(2) ** (128 * (field(F64, v) >= 1968) - 53 - shift))


def transcendental(f, function, special=(), ulps=Fraction(101, 100), least=0):
    """function: of a positive or finite float's value. special: rules (condition on the bits, result) that come first."""
    def of(v):
        if f.nan(v):
            return v | f.quiet
        for condition, result in special:
            if condition(v):
                return result(v) if callable(result) else result
        exact = function(f.value(v))
        if abs(exact) >= Fraction(2) ** (f.bias + 1) * (1 - Fraction(1, 1 << f.fraction)):
            return SKIP  # at the end of the range a unit in the last place decides
        if f is F32 and not least and abs(exact) < Fraction(1, 1 << 126):
            return SKIP if abs(exact) > Fraction(0.999) / (1 << 126) else f.sign * (exact < 0)
        return Near(f, exact, ulps, least)
    return of


def root(x, bits=160):
    """Of a Fraction, to many bits."""
    shift = 2 * bits + max(0, x.denominator.bit_length() - x.numerator.bit_length()) // 2 * 2
    return Fraction(math.isqrt((x.numerator << shift) // x.denominator), 1 << shift // 2)


def circle(function):
    return lambda x: Fraction(function(2 * math.pi * float(x - math.floor(x))))


def power_of_two(x):
    whole_part = math.floor(x)
    return Fraction(2.0 ** float(x - whole_part)) * Fraction(2) ** clamp(whole_part, -3000, 3000)


def logarithm(x):
    return Fraction(math.log2(float(x)) if x > Fraction(2) ** -1000 else math.log2(float(x * 2 ** 1000)) - 1000)


class Skip:
    def __repr__(self):
        return "anything"


SKIP = Skip()  # a lane whose value nobody promises

# name: function of one lane's sources, as their types say (seen_as); what is too long is cut to the destination.
VALU = {
    "V_MOV_B32": lambda a: a, "V_MOV_B16": lambda a: a, "V_NOT_B32": lambda a: ~a, "V_NOT_B16": lambda a: ~a,
    "V_BFREV_B32": lambda a: reverse(a, 32), "V_CLZ_I32_U32": lambda a: highest_one(a, 32), "V_CTZ_I32_B32": lowest_one,
    "V_CLS_I32": lambda a: sign_run(a, 32), "V_CVT_I32_I16": lambda a: a, "V_CVT_U32_U16": lambda a: a,
    "V_CNDMASK_B32": lambda a, b, c: b if c else a, "V_CNDMASK_B16": lambda a, b, c: b if c else a,
    "V_LSHLREV_B32": lambda a, b: b << (a & 31), "V_LSHRREV_B32": lambda a, b: b >> (a & 31),
    "V_ASHRREV_I32": lambda a, b: b >> (a & 31), "V_LSHLREV_B16": lambda a, b: b << (a & 15),
    "V_LSHRREV_B16": lambda a, b: b >> (a & 15), "V_ASHRREV_I16": lambda a, b: b >> (a & 15),
    "V_LSHLREV_B64": lambda a, b: b << (a & 63), "V_LSHRREV_B64": lambda a, b: b >> (a & 63),
    "V_ASHRREV_I64": lambda a, b: b >> (a & 63),
    "V_AND_B32": lambda a, b: a & b, "V_OR_B32": lambda a, b: a | b, "V_XOR_B32": lambda a, b: a ^ b,
    "V_XNOR_B32": lambda a, b: ~(a ^ b), "V_AND_B16": lambda a, b: a & b, "V_OR_B16": lambda a, b: a | b,
    "V_XOR_B16": lambda a, b: a ^ b, "V_XOR3_B32": lambda a, b, c: a ^ b ^ c, "V_OR3_B32": lambda a, b, c: a | b | c,
    "V_AND_OR_B32": lambda a, b, c: a & b | c, "V_LSHL_OR_B32": lambda a, b, c: a << (b & 31) | c,
    "V_LSHL_ADD_U32": lambda a, b, c: (a << (b & 31)) + c, "V_ADD_LSHL_U32": lambda a, b, c: a + b << (c & 31),
    "V_ADD3_U32": lambda a, b, c: a + b + c, "V_XAD_U32": lambda a, b, c: (a ^ b) + c,
    "V_ADD_NC_U32": lambda a, b: a + b, "V_SUB_NC_U32": lambda a, b: a - b, "V_SUBREV_NC_U32": lambda a, b: b - a,
    "V_ADD_NC_I32": lambda a, b: a + b, "V_SUB_NC_I32": lambda a, b: a - b, "V_ADD_NC_U16": lambda a, b: a + b,
    "V_SUB_NC_U16": lambda a, b: a - b, "V_ADD_NC_I16": lambda a, b: a + b, "V_SUB_NC_I16": lambda a, b: a - b,
    "V_ADD_CO_U32": lambda a, b: (a + b, a + b > M32), "V_SUB_CO_U32": lambda a, b: (a - b, a < b),
    "V_SUBREV_CO_U32": lambda a, b: (b - a, b < a), "V_ADD_CO_CI_U32": lambda a, b, c: (a + b + c, a + b + c > M32),
    "V_SUB_CO_CI_U32": lambda a, b, c: (a - b - c, a < b + c),
    "V_SUBREV_CO_CI_U32": lambda a, b, c: (b - a - c, b < a + c),
    "V_MUL_LO_U32": lambda a, b: a * b, "V_MUL_HI_U32": lambda a, b: a * b >> 32, "V_MUL_HI_I32": lambda a, b: a * b >> 32,
    "V_MUL_LO_U16": lambda a, b: a * b, "V_MAD_U16": lambda a, b, c: a * b + c, "V_MAD_I16": lambda a, b, c: a * b + c,
    "V_MAD_U32_U16": lambda a, b, c: a * b + c, "V_MAD_I32_I16": lambda a, b, c: a * b + c,
    "V_MAD_U64_U32": lambda a, b, c: (a * b + c, a * b + c > M64),
    "V_MAD_I64_I32": lambda a, b, c: (a * b + c, not -2**63 <= a * b + c < 2**63),
    "V_MUL_U32_U24": lambda a, b: (a & 0xffffff) * (b & 0xffffff),
    "V_MUL_HI_U32_U24": lambda a, b: (a & 0xffffff) * (b & 0xffffff) >> 32,
    "V_MAD_U32_U24": lambda a, b, c: (a & 0xffffff) * (b & 0xffffff) + c,
    "V_MUL_I32_I24": lambda a, b: signed(a, 24) * signed(b, 24),
    "V_MUL_HI_I32_I24": lambda a, b: signed(a, 24) * signed(b, 24) >> 32,
    "V_MAD_I32_I24": lambda a, b, c: signed(a, 24) * signed(b, 24) + c,
    "V_BFE_U32": lambda a, b, c: a >> (b & 31) & (1 << (c & 31)) - 1,
    "V_BFE_I32": lambda a, b, c: signed(a >> (b & 31), c & 31) if c & 31 else 0,
    "V_BFI_B32": lambda a, b, c: a & b | ~a & c, "V_BFM_B32": lambda a, b: (1 << (a & 31)) - 1 << (b & 31),
    "V_ALIGNBIT_B32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "V_ALIGNBYTE_B32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3), "V_PERM_B32": permute, "V_LERP_U8": lerp,
    "V_BCNT_U32_B32": lambda a, b: bin(a).count("1") + b,
    "V_MBCNT_LO_U32_B32": lambda a, b: bin(a & (1 << Now.lane) - 1).count("1") + b,
    "V_MBCNT_HI_U32_B32": lambda a, b: bin(a & ((1 << Now.lane) - 1 >> 32)).count("1") + b,
    "V_SAD_U8": lambda a, b, c: sad(a, b) + c, "V_SAD_HI_U8": lambda a, b, c: (sad(a, b) << 16) + c,
    "V_MSAD_U8": lambda a, b, c: sad(a, b, True) + c,
    "V_SAD_U16": lambda a, b, c: abs((a & 0xffff) - (b & 0xffff)) + abs((a >> 16) - (b >> 16)) + c,
    "V_SAD_U32": lambda a, b, c: abs(a - b) + c,
    "V_QSAD_PK_U16_U8": lambda a, b, c: quad_sad(a, b, c, False, 16),
    "V_MQSAD_PK_U16_U8": lambda a, b, c: quad_sad(a, b, c, True, 16),
    "V_MQSAD_U32_U8": lambda a, b, c: quad_sad(a, b, c, True, 32),
    "V_PACK_B32_F16": lambda a, b: a | b << 16,
    "V_SAT_PK_U8_I16": lambda a: clamp(signed(a, 16), 0, 255) | clamp(signed(a >> 16, 16), 0, 255) << 8,
    "V_CVT_PK_U16_U32": lambda a, b: min(a, 65535) | min(b, 65535) << 16,
    "V_CVT_PK_I16_I32": lambda a, b: clamp(a, -32768, 32767) & 0xffff | clamp(b, -32768, 32767) << 16,
    "V_CUBEID_F32": lambda a, b, c: F32.round(Fraction(cube(a, b, c)[0])), "V_CUBESC_F32": lambda a, b, c: cube(a, b, c)[1],
    "V_CUBETC_F32": lambda a, b, c: cube(a, b, c)[2],
    "V_CUBEMA_F32": lambda a, b, c: multiply(F32, cube(a, b, c)[3], 0x40000000),
    "V_MUL_DX9_ZERO_F32": lambda a, b: dx9(F32, a, b, lambda: multiply(F32, a, b), 0),
    "V_FMA_DX9_ZERO_F32": lambda a, b, c: dx9(F32, a, b, lambda: fma(F32, a, b, c), c | F32.quiet * F32.nan(c)),
    "V_MULLIT_F32": lambda a, b, c: 0xff7fffff if F32.nan(b) or F32.nan(c) or b in (0xff7fffff, 0xff800000) or (
        c & F32.sign or zero(F32, c)) else dx9(F32, a, b, lambda: multiply(F32, a, b), 0),  # "0.0 * x = 0.0"
    "V_TRIG_PREOP_F64": lambda a, b: trig_preop(a, b),
    # conversions
    "V_CVT_F32_I32": lambda a: F32.round(Fraction(a), how=how(F32)),
    "V_CVT_F32_U32": lambda a: F32.round(Fraction(a), how=how(F32)),
    "V_CVT_F64_I32": lambda a: F64.round(Fraction(a)), "V_CVT_F64_U32": lambda a: F64.round(Fraction(a)),
    "V_CVT_F16_I16": lambda a: F16.round(Fraction(a), how=how(F16)),
    "V_CVT_F16_U16": lambda a: F16.round(Fraction(a), how=how(F16)),
    "V_CVT_F16_F32": lambda a: convert(F16, F32, a, how(F16)), "V_CVT_F32_F16": lambda a: convert(F32, F16, a),
    "V_CVT_F32_F64": lambda a: convert(F32, F64, a, how(F32)), "V_CVT_F64_F32": lambda a: convert(F64, F32, a),
    "V_CVT_OFF_F32_I4": lambda a: F32.round(Fraction(signed(a, 4), 16)),
    "V_CVT_PK_RTZ_F16_F32": lambda a, b: Packed(convert(F16, F32, a, 3), convert(F16, F32, b, 3), "F16"),
    # the sum with a half is exact: recorded nowhere; the guide's pseudocode leaves its rounding open
    "V_CVT_NEAREST_I32_F32": lambda a: 0 if F32.nan(a) else to_integer(F32, a, -2**31, 2**31 - 1) if F32.infinite(a) else
    clamp(math.floor(F32.value(a) + Fraction(1, 2)), -2**31, 2**31 - 1),
    "V_CVT_FLOOR_I32_F32": lambda a: 0 if F32.nan(a) else to_integer(F32, a, -2**31, 2**31 - 1) if F32.infinite(a) else
    clamp(math.floor(F32.value(a)), -2**31, 2**31 - 1),
    "V_CVT_PK_U8_F32": lambda a, b, c: c & ~(255 << 8 * (b & 3)) | to_integer(F32, a, 0, 255) << 8 * (b & 3),
}
for _i in range(4):
    VALU[f"V_CVT_F32_UBYTE{_i}"] = lambda a, i=_i: F32.round(Fraction(a >> 8 * i & 255))
for _f, _n in ((F32, "F32"), (F64, "F64")):
    VALU[f"V_CVT_I32_{_n}"] = lambda a, f=_f: to_integer(f, a, -2**31, 2**31 - 1)
    VALU[f"V_CVT_U32_{_n}"] = lambda a, f=_f: to_integer(f, a, 0, M32)
    VALU[f"V_DIV_SCALE_{_n}"] = lambda v, d, n, f=_f: div_scale(f, v, d, n)
    VALU[f"V_DIV_FMAS_{_n}"] = lambda a, b, c, after, f=_f: div_fmas(f, a, b, c, after)
VALU["V_CVT_I16_F16"] = lambda a: to_integer(F16, a, -32768, 32767)
VALU["V_CVT_U16_F16"] = lambda a: to_integer(F16, a, 0, 65535)
VALU["V_CVT_PK_I16_F32"] = lambda a, b: Packed(*(to_integer(F32, v, -32768, 32767) for v in (a, b)), "I16")
VALU["V_CVT_PK_U16_F32"] = lambda a, b: Packed(*(to_integer(F32, v, 0, 65535) for v in (a, b)), "U16")


def norm(f, v, largest):
    """To a fraction of `largest`, rounded to the nearest even."""
    low = -largest if largest == 32767 else 0
    if f.nan(v) or f.infinite(v):
        return 0 if f.nan(v) else low if v & f.sign else largest
    return clamp(round(f.value(v) * largest), low, largest)


for _k, _largest in (("I16", 32767), ("U16", 65535)):
    VALU[f"V_CVT_NORM_{_k}_F16"] = lambda a, n=_largest: norm(F16, a, n)
    for _f, _n in ((F16, "F16"), (F32, "F32")):
        VALU[f"V_CVT_PK_NORM_{_k}_{_n}"] = lambda a, b, f=_f, n=_largest, k=_k: Packed(norm(f, a, n), norm(f, b, n), k)
for _f, _n in ((F16, "F16"), (F32, "F32"), (F64, "F64")):
    VALU |= {
        f"V_ADD_{_n}": lambda a, b, f=_f: plus(f, a, b), f"V_SUB_{_n}": lambda a, b, f=_f: subtract(f, a, b),
        f"V_SUBREV_{_n}": lambda a, b, f=_f: first_nan(f, a, b) if f.nan(a) or f.nan(b) else subtract(f, b, a),
        f"V_MUL_{_n}": lambda a, b, f=_f: multiply(f, a, b), f"V_FMA_{_n}": lambda a, b, c, f=_f: fma(f, a, b, c),
        f"V_MIN_{_n}": lambda a, b, f=_f: pick(f, a, b, False), f"V_MAX_{_n}": lambda a, b, f=_f: pick(f, a, b, True),
        f"V_MIN3_{_n}": lambda a, b, c, f=_f: pick(f, pick(f, a, b, False), c, False),
        f"V_MAX3_{_n}": lambda a, b, c, f=_f: pick(f, pick(f, a, b, True), c, True),
        f"V_MAXMIN_{_n}": lambda a, b, c, f=_f: pick(f, pick(f, a, b, True), c, False),
        f"V_MINMAX_{_n}": lambda a, b, c, f=_f: pick(f, pick(f, a, b, False), c, True),
        f"V_MED3_{_n}": lambda a, b, c, f=_f: median(f, a, b, c),
        f"V_TRUNC_{_n}": lambda a, f=_f: whole(f, a, "trunc"), f"V_CEIL_{_n}": lambda a, f=_f: whole(f, a, "ceil"),
        f"V_RNDNE_{_n}": lambda a, f=_f: whole(f, a, "rndne"), f"V_FLOOR_{_n}": lambda a, f=_f: whole(f, a, "floor"),
        f"V_FRACT_{_n}": lambda a, f=_f: fract(f, a), f"V_FREXP_MANT_{_n}": lambda a, f=_f: frexp(f, a)[1],
        f"V_FREXP_EXP_I{16 if _f is F16 else 32}_{_n}": lambda a, f=_f: frexp(f, a)[0],
        f"V_LDEXP_{_n}": lambda a, b, f=_f: ldexp(f, a, b), f"V_DIV_FIXUP_{_n}": lambda q, d, n, f=_f: div_fixup(f, q, d, n),
    }
    # F32: no denormals in or out, whatever MODE says. F64: AMD documents 2^29 units.
    _sign, _inf = _f.sign, _f.inf
    _small = (lambda v: not v & F32.inf) if _f is F32 else (lambda v, f=_f: zero(f, v))
    _zero_in, _ulps = [(_small, None)], Fraction(1 << 29) if _f is F64 else Fraction(101, 100)
    _negative = (lambda v, f=_f: bool(v & f.sign) and not zero(f, v), _f.default)
    _infinite = (lambda v, f=_f: f.infinite(v))
    _signed_inf, _signed_zero = (lambda v, f=_f: v & f.sign | f.inf), (lambda v, f=_f: v & f.sign)
    _first = [(_small, _signed_inf), (_infinite, _signed_zero)]
    VALU[f"V_RCP_{_n}"] = transcendental(_f, lambda x: 1 / x, _first, _ulps)
    VALU[f"V_RSQ_{_n}"] = transcendental(_f, lambda x: 1 / root(x), [(_small, _signed_inf), _negative, (_infinite, 0)], _ulps)
    VALU[f"V_SQRT_{_n}"] = transcendental(_f, root, [(_small, _signed_zero), _negative, (_infinite, _inf)], _ulps)
    VALU[f"V_LOG_{_n}"] = transcendental(_f, logarithm, [(_small, _sign | _inf), _negative, (_infinite, _inf)], _ulps)
    VALU[f"V_EXP_{_n}"] = transcendental(
        _f, power_of_two, [(_infinite, lambda v, f=_f: 0 if v & f.sign else f.inf)], _ulps)
    # hardware's sines are no closer than this; far arguments lose what a turn's fraction needs
    _least = Fraction(1, 2 ** 22) if _f is F32 else 0
    VALU[f"V_SIN_{_n}"] = transcendental(_f, circle(math.sin), [(_infinite, _f.default)], _ulps, _least)
    VALU[f"V_COS_{_n}"] = transcendental(_f, circle(math.cos), [(_infinite, _f.default)], _ulps, _least)
VALU["V_RCP_IFLAG_F32"] = VALU["V_RCP_F32"]
for _bits in (16, 32):
    for _k in "IU":
        VALU |= {f"V_MIN_{_k}{_bits}": min, f"V_MAX_{_k}{_bits}": max, f"V_MIN3_{_k}{_bits}": min,
                 f"V_MAX3_{_k}{_bits}": max, f"V_MED3_{_k}{_bits}": lambda a, b, c: sorted((a, b, c))[1],
                 f"V_MAXMIN_{_k}{_bits}": lambda a, b, c: min(max(a, b), c),
                 f"V_MINMAX_{_k}{_bits}": lambda a, b, c: max(min(a, b), c)}
# The destination comes last.
VALU["V_FMAC_F32"] = VALU["V_FMA_F32"]
VALU["V_FMAC_F16"] = VALU["V_FMA_F16"]
VALU["V_FMAC_DX9_ZERO_F32"] = VALU["V_FMA_DX9_ZERO_F32"]
VALU["V_PK_FMAC_F16"] = halves(VALU["V_FMA_F16"], "F16")
for _n in ("FMA_F16", "ADD_F16", "MUL_F16", "MIN_F16", "MAX_F16", "MAD_I16", "MAD_U16", "MUL_LO_U16", "MAX_I16", "MIN_I16",
           "MAX_U16", "MIN_U16", "LSHLREV_B16", "LSHRREV_B16", "ASHRREV_I16"):
    VALU[f"V_PK_{_n}"] = halves(VALU[f"V_{_n}"], _n[-3:])
for _k in ("I16", "U16"):
    VALU[f"V_PK_ADD_{_k}"] = halves(lambda a, b: a + b, _k)
    VALU[f"V_PK_SUB_{_k}"] = halves(lambda a, b: a - b, _k)
# constant in the middle or at the end
for _f, _n in ((F16, "F16"), (F32, "F32")):
    VALU[f"V_FMAMK_{_n}"] = lambda a, k, b, f=_f: fma(f, a, k, b)
    VALU[f"V_FMAAK_{_n}"] = lambda a, b, k, f=_f: fma(f, a, b, k)


def dot(bits, signs=None):
    """Of integers: sums of products, exact. signs: None where neg_lo says which sources are signed."""
    def of(a, b, c):
        by = Now.signs if signs is None else signs
        parts = [[signed(v >> i, bits) if s else v >> i & (1 << bits) - 1 for i in range(0, 32, bits)]
                 for v, s in zip((a, b), by)]
        return c + sum(x * y for x, y in zip(*parts))
    return of


VALU |= {"V_DOT4_I32_IU8": dot(8), "V_DOT8_I32_IU4": dot(4), "V_DOT4_I32_I8": dot(8, (1, 1)), "V_DOT4_U32_U8": dot(8, (0, 0)),
         "V_DOT8_I32_I4": dot(4, (1, 1)), "V_DOT8_U32_U4": dot(4, (0, 0)), "V_DOT2_I32_I16": dot(16, (1, 1)),
         "V_DOT2_U32_U16": dot(16, (0, 0)), "V_DOT4C_I32_I8": dot(8, (1, 1))}


def dot_float(to, part):
    """Of small whole numbers, whose sums are exact: what hardware does with others is recorded in matrix_test.py."""
    def of(a, b, c):
        total = sum(part(a >> i & 0xffff) * part(b >> i & 0xffff) for i in (0, 16))
        return to(total, c)
    return of


VALU["V_DOT2_F32_F16"] = dot_float(lambda x, c: F32.round(x + F32.value(c)), F16.value)
VALU["V_DOT2ACC_F32_F16"] = VALU["V_DOT2_F32_F16"]
VALU["V_DOT2_F32_BF16"] = dot_float(lambda x, c: F32.round(x + F32.value(c)), lambda v: F32.value(v << 16))
VALU["V_DOT2_F16_F16"] = dot_float(lambda x, c: F16.round(x + F16.value(c)), F16.value)
WHOLE_NUMBERS = {n for n in VALU if n.startswith("V_DOT2") and "F" in n}
ACCUMULATES = {"V_FMAC_F32", "V_FMAC_F16", "V_FMAC_DX9_ZERO_F32", "V_PK_FMAC_F16", "V_DOT2ACC_F32_F16", "V_DOT4C_I32_I8"}
FINITE = {"V_CUBEID_F32", "V_CUBESC_F32", "V_CUBETC_F32", "V_CUBEMA_F32"}  # of a NaN no direction is meant
NEARLY = {f"V_{n}_{f}" for n in ("RCP", "RSQ", "SQRT", "LOG", "EXP", "SIN", "COS") for f in FORMATS} | {"V_RCP_IFLAG_F32"}

for _n, _k in (("F16", "F16"), ("F32", "F32"), ("F64", "F64")):
    for _r, _relation in RELATIONS.items():
        def _ordered(a, b, f=FORMATS[_k], r=_relation):
            return not f.nan(a) and not f.nan(b) and r(number(f, a), number(f, b))
        VALU[f"V_CMP_{_r}_{_n}"] = _ordered
        VALU[f"V_CMP_N{_r}_{_n}"] = lambda a, b, o=_ordered: not o(a, b)
    VALU[f"V_CMP_O_{_n}"] = lambda a, b, f=FORMATS[_k]: not f.nan(a) and not f.nan(b)
    VALU[f"V_CMP_U_{_n}"] = lambda a, b, f=FORMATS[_k]: f.nan(a) or f.nan(b)
    VALU[f"V_CMP_CLASS_{_n}"] = lambda a, b, f=FORMATS[_k]: bool(class_bits(f, a) & b)
for _n in ("F16", "F32", "F64", "I16", "U16", "I32", "U32", "I64", "U64"):
    VALU[f"V_CMP_F_{_n}"], VALU[f"V_CMP_T_{_n}"] = (lambda a, b: False), (lambda a, b: True)
    if _n[0] != "F":
        for _r, _relation in RELATIONS.items():
            VALU[f"V_CMP_{'NE' if _r == 'LG' else _r}_{_n}"] = _relation
VALU |= {n.replace("V_CMP_", "V_CMPX_"): f for n, f in VALU.items() if n.startswith("V_CMP_")}


# ---- encodings

class Source:
    """An operand with what its encoding does to it."""

    def __init__(self, kind, place):
        self.kind, self.place = kind, place  # place: the first register's number, or a scalar operand
        self.neg = self.abs = self.sext = self.high = self.neg_high = False
        self.high_high, self.select = True, "DWORD"

    def text(self, packed=False):
        if not isinstance(self.place, int):
            text = self.place.text
        else:
            n = self.dwords()
            text = f"v{self.place}" if n == 1 else f"v[{self.place}:{self.place + n - 1}]"
        if self.sext:
            return f"sext({text})"
        if packed:
            return text
        text = f"|{text}|" if self.abs else text
        return f"-{text}" if self.neg else text

    def dwords(self):
        return DWORDS.get(self.kind, 1)

    def read(self, v, s, lane):
        if not isinstance(self.place, int):
            bits = self.place.read(s, 1)
        else:
            bits = sum(int(v[self.place + i, lane]) << 32 * i for i in range(self.dwords()))
        return self.change(bits)

    def change(self, bits):
        if self.select != "DWORD":
            width = 8 if self.select.startswith("BYTE") else 16
            bits = bits >> width * int(self.select[-1]) & (1 << width) - 1
            bits = signed(bits, width) & M32 if self.sext else bits
        width = bits_of(self.kind)
        if width == 16:
            bits = bits >> 16 * self.high & 0xffff
        if self.abs:
            bits &= ~(1 << width - 1)
        return bits ^ (1 << width - 1) if self.neg else bits


class PackedSource(Source):
    """Of VOP3P: each half of the result takes either half, negated or not."""

    def change(self, bits):
        low, high = bits >> 16 * self.high & 0xffff, bits >> 16 * self.high_high & 0xffff
        return (low ^ self.neg << 15) | (high ^ self.neg_high << 15) << 16


class MixedSource(Source):
    """Of v_fma_mix: a float, or a half of a register where op_sel_hi says so; neg_hi is the absolute value."""

    def change(self, bits):
        if self.high_high:
            bits = convert(F32, F16, bits >> 16 * self.high & 0xffff)
        bits = bits & ~F32.sign if self.abs else bits
        return bits ^ F32.sign if self.neg else bits


class SignedSource(Source):
    """Of integer dot products: neg says that the source is signed."""

    def change(self, bits):
        return bits


class Vector:
    """One instruction of vector arithmetic: its text, and what it should do to a wave."""

    def __init__(self, t, row):
        self.t, self.row = t, row
        self.encoding, self.mnemonic = row.on[t.target]
        self.suffix, self.more, self.clamp, self.omod = "", "", False, 0
        self.high = row.name == "V_FMA_MIXHI_F16"
        self.dpp = self.sdwa = None
        self.named_halves = row.name == "V_MOV_B16"  # LLVM 19 has it only so
        self.patch = 0  # bits that LLVM 19 writes only for registers that it names otherwise
        self.mask_out = "vcc" if self.encoding in ("VOP2", "VOPC") else "s20"
        self.mask_in = "vcc" if self.encoding == "VOP2" else "s22"
        self.modes, self.ordinary, self.flushes = [0x3f0], row.name in WHOLE_NUMBERS, False
        self.mixed = row.name.startswith("V_FMA_MIX")
        self.packed = self.encoding == "VOP3P" and row.src[0].startswith("PK") and not self.mixed
        self.sources = []
        for i, kind in enumerate(row.src):
            if kind == "MASK":
                continue
            make = Source
            if self.mixed:
                make = MixedSource
            elif self.packed and kind in ("PKI8", "PKI4"):
                make = SignedSource
            elif self.packed and kind.startswith("PK"):
                make = PackedSource
            self.sources.append(make(kind, (0, 2, 4)[i]))
            if make is MixedSource:
                self.sources[-1].high_high = False

    def compares(self):
        return self.row.dst == "MASK"

    def mask_text(self, name):
        if name == "vcc":
            return "vcc" if self.t.wave == 64 else "vcc_lo"
        n = int(name[1:])
        return f"s[{n}:{n + 1}]" if self.t.wave == 64 else name

    def text(self):
        row, parts = self.row, []
        n = DWORDS.get(row.dst, 1)
        if not self.compares():
            parts.append("v8" if n == 1 else f"v[8:{7 + n}]")
        if (self.compares() and "CMPX" not in row.name) or "SDST" in row.flags:
            parts.append(self.mask_text(self.mask_out))
        sources = [s.text(self.packed) for s in self.sources]
        if self.named_halves:
            parts[0] += ".h" if self.high else ".l"
            sources = [x + (".h" if s.high else ".l") * isinstance(s.place, int) for x, s in zip(sources, self.sources)]
        if "FMAMK" in row.name or "FMAAK" in row.name:
            sources.insert(1 if "FMAMK" in row.name else 2, self.constant.text)
        parts += sources
        if "MASK" in row.src:
            parts.append(self.mask_text(self.mask_in))
        more = ""
        if self.packed or self.mixed:
            def flags(name, values, default):
                return f" {name}:[{','.join(str(int(v)) for v in values)}]" if any(v != default for v in values) else ""
            own = self.sources
            if own[0].kind not in ("PKI8", "PKI4"):
                more += flags("op_sel", [s.high for s in own], False)
                more += flags("op_sel_hi", [s.high_high for s in own], self.packed)
            if self.packed:
                more += flags("neg_lo", [s.neg for s in own], False) + flags("neg_hi", [s.neg_high for s in own], False)
        elif (any(s.high for s in self.sources) or self.high) and not self.patch and not self.named_halves:
            more += " op_sel:[" + ",".join(str(int(s.high)) for s in self.sources) + f",{int(self.high)}]"
        if self.clamp:
            more += " clamp"
        more += ["", " mul:2", " mul:4", " div:2"][self.omod] + self.more
        return f"{self.mnemonic}{self.suffix} {', '.join(parts)}{more}"

    def inputs(self):
        """Registers in which the sources hold edges and numbers of their type."""
        t, row = self.t, self.row
        v, s = t.words(16, t.wave), t.scalars()
        for source in self.sources + ([Source(row.dst, 8)] if row.name in ACCUMULATES else []):
            kind = source.kind
            values = [whole_number(t.rng, kind) if row.name in WHOLE_NUMBERS else
                      sample(t.rng, "F16" if self.mixed and source.high_high and t.rng.getrandbits(1) else kind, self.ordinary)
                      for _ in range(t.wave)]
            if row.name in FINITE:
                values = [x if x & F32.inf != F32.inf else x & 0x807fffff for x in values]
            if isinstance(source.place, int):
                store(v, source.place, kind, values, source.high and not self.packed and not self.mixed)
            elif isinstance(source.place, Place):
                source.place.write(s, values[0])
        if row.name.startswith("V_DIV_"):  # numerator or denominator itself, exponents at the recorded edges
            f = FORMATS[row.dst]
            for l in range(t.wave):
                d = near_edges(t.rng, f)
                n = near_edges(t.rng, f, field(f, d))
                three = [t.rng.choice((d, n)) if "SCALE" in row.name else sample(t.rng, row.dst), d, n]
                if t.rng.random() < 0.6 and "FMAS" not in row.name:
                    for source, bits in zip(self.sources, three):
                        if isinstance(source.place, int):
                            store(v, source.place, row.dst, [bits], False, l)
        return v, s

    def run(self, code):
        t, row = self.t, self.row
        if self.patch:
            code = (int.from_bytes(code, "little") | self.patch).to_bytes(len(code), "little")
        for mode in self.modes:
            v, s = self.inputs()
            mask = t.lanes_on()
            s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
            r = t.step(code, s, v, mode=mode, scc=1)
            if r.status:
                t.expect(False, r.text)
                return
            self.compare(v, s, mask, mode, r)

    def compare(self, v, s, mask, mode, r):
        t, row = self.t, self.row
        want_v, want_s, masks, wrong = v.copy(), list(s), 0, []
        given = sum(s[(VCC if self.mask_in == "vcc" else 22) + i] << 32 * i for i in (0, 1))
        if row.name.startswith("V_DIV_FMAS"):
            given = s[VCC] | s[VCC + 1] << 32
        Now.mode, Now.wave, Now.signs = mode, t.wave, tuple(x.neg for x in self.sources[:2])
        n = DWORDS.get(row.dst, 1)
        for l in range(t.wave):
            if not mask >> l & 1:
                continue
            sources = [x.read(v, s, l) for x in self.sources]
            if self.dpp:
                taken, write = self.dpp(l, mask)
                if not write:
                    continue
                sources[0] = self.sources[0].read(v, s, taken) if taken is not None else self.sources[0].change(0)
            values = [seen_as(x.kind, bits) for x, bits in zip(self.sources, sources)]
            if "FMAMK" in row.name or "FMAAK" in row.name:
                values.insert(1 if "FMAMK" in row.name else 2, self.constant.value)
            if row.name in ACCUMULATES:
                values.append(seen_as(row.dst, Source(row.dst, 8).read(v, s, l) if not self.high else int(v[8, l]) >> 16))
            if "MASK" in row.src or row.name.startswith("V_DIV_FMAS"):
                values.append(given >> l & 1)
            if self.flushes:
                values = [flushed_source(x, row.src[0], mode) for x in values]
            Now.lane = l
            value = VALU[row.name](*values)
            if "SDST" in row.flags or self.compares():
                value, bit = (0, value) if self.compares() else value
                masks |= bool(bit) << l
            if self.compares():
                continue
            old = sum(int(v[8 + i, l]) << 32 * i for i in range(n))
            got = sum(int(r.v[8 + i, l]) << 32 * i for i in range(n))
            want = self.result(value, mode, old, got)
            for i in range(n):
                want_v[8 + i, l] = want >> 32 * i & M32
            if want != got:
                wrong.append(f"lane {l} of {[hex(x) for x in values]}: {got:#x}, should be {want:#x}" +
                             (f" {value}" if isinstance(value, Near) else ""))
        if self.compares() or "SDST" in row.flags:
            at = EXEC if "CMPX" in row.name else VCC if self.mask_out == "vcc" else 20
            want_s[at] = masks & M32
            if t.wave == 64:
                want_s[at + 1] = masks >> 32
        bad_s = [f"s{i} {int(r.s[i]):#x}, should be {want_s[i]:#x}" for i in range(128) if int(r.s[i]) != want_s[i]]
        if not wrong and not np.array_equal(want_v, r.v):
            wrong = ["a register that it has nothing to do with changed"]
        t.expect(not wrong and not bad_s, f"MODE {mode:#x}, EXEC {mask:#x}: {wrong[:2]} {bad_s}")

    def result(self, value, mode, old, got):
        """The register's bits after an instruction that gave `value`."""
        kind = self.row.dst
        if isinstance(value, Packed):
            parts = [self.finish(x, value.kind, mode) for x in value.parts]
            if SKIP in parts:
                return got
            bits = parts[0] & 0xffff | (parts[1] & 0xffff) << 16
        elif isinstance(value, Near) or value is SKIP:
            narrow = got >> 16 * self.high if bits_of(kind) == 16 else got
            bits = narrow if value is SKIP or value.holds(narrow) else value.f.round(value.exact)
        else:
            bits = self.finish(value, kind, mode)
            if bits is SKIP:
                return got
        width = bits_of(kind)
        bits &= (1 << width) - 1
        if self.sdwa:
            select, unused = self.sdwa
            if select == "DWORD":
                return bits
            part = 8 if select.startswith("BYTE") else 16
            low, field_mask = part * int(select[-1]), (1 << part) - 1
            bits &= field_mask
            if unused == "UNUSED_PRESERVE":
                return old & ~(field_mask << low) & M32 | bits << low
            above = (M32 << low + part) & M32 if unused == "UNUSED_SEXT" and bits >> part - 1 else 0
            return bits << low | above
        if width == 16:
            return old & 0xffff0000 | bits if not self.high else old & 0xffff | bits << 16
        return bits

    def finish(self, value, kind, mode):
        """omod and clamp."""
        f = FORMATS.get(kind)
        if not f:
            if self.clamp:
                width = bits_of(kind)
                low, high = (-1 << width - 1, (1 << width - 1) - 1) if kind[0] == "I" else (0, (1 << width) - 1)
                return clamp(value, low, high)
            return value
        value &= (1 << f.bits) - 1
        kept = mode >> (5 if f is F32 else 7) & 1
        if self.flushes and not kept:
            # what rounds up to the smallest normal number is judged differently by processors
            return SKIP if value & ~f.sign == 1 << f.fraction else value if value & f.inf else value & f.sign
        if not kept and not value & f.inf and not zero(f, value):
            return SKIP  # flushed or not, as the operation has it
        if self.omod and not kept and not mode >> 9 & 1:
            value = floats.multiply(f, value, f.round((Fraction(2), Fraction(4), Fraction(1, 2))[self.omod - 1]), how(f))
            if not value & f.inf:
                return 0 if zero(f, value) else SKIP
        if self.clamp:
            if f.nan(value):
                return 0 if mode >> 8 & 1 else value
            one = f.bias << f.fraction
            return 0 if value & f.sign else min(value, one)
        return value


VALU["V_FMA_MIX_F32"] = VALU["V_FMA_F32"]
for _n in ("LO", "HI"):  # the float is rounded, then the half
    VALU[f"V_FMA_MIX{_n}_F16"] = lambda a, b, c: convert(F16, F32, fma(F32, a, b, c), how(F16))


def flushed_source(bits, kind, mode):
    """A denormal source as a zero, where MODE does not keep it."""
    f = FORMATS[kind[-3:]]
    if mode >> (4 if f is F32 else 6) & 1:
        return bits
    if kind == "PKF16":
        return flushed_source(bits & 0xffff, "F16", mode) | flushed_source(bits >> 16, "F16", mode) << 16
    return bits if bits & f.inf else bits & f.sign


def store(v, register, kind, values, high, lane=0):
    for l, bits in enumerate(values, lane):
        if bits_of(kind) == 16:
            shift = 16 * bool(high)
            v[register, l] = int(v[register, l]) & (0xffff0000 >> shift) | bits << shift
        else:
            for i in range(DWORDS.get(kind, 1)):
                v[register + i, l] = bits >> 32 * i & M32


def whole_number(rng, kind):
    small = {"F32": lambda: F32.round(Fraction(rng.randint(0, 1000))), "F16": lambda: F16.round(Fraction(rng.randint(0, 30)))}
    if kind in small:
        return small[kind]()
    one = {"PKF16": lambda: F16.round(Fraction(rng.randint(0, 30))),
           "PKBF16": lambda: F32.round(Fraction(rng.randint(0, 60))) >> 16}[kind]
    return one() | one() << 16


def near_edges(rng, f, other=None):
    """A number whose exponent lies at an end of the range, or a threshold away from the other's."""
    top = 2 * f.bias + 1
    choices = [0, 1, 2, f.fraction, f.fraction + 1, f.fraction + 2, f.bias, top - 3, top - 2, top - 1]
    if other is not None:
        apart = APART.get(f, 20)
        for by in (apart - 1, apart, apart + 1, f.bias + f.fraction, f.bias + f.fraction + 1, f.bias + f.fraction - 1):
            choices += [other + by, other - by]
    exponent = clamp(rng.choice(choices), 0, top - 1)
    return rng.getrandbits(1) * f.sign | exponent << f.fraction | rng.getrandbits(f.fraction)


def dpp16(rng):
    """(text, function): the lane that each lane reads, None outside of the row."""
    n = rng.randint(1, 15)
    quad = [rng.randrange(4) for _ in range(4)]
    return rng.choice((
        (f"quad_perm:[{','.join(map(str, quad))}]", lambda l: l & ~3 | quad[l & 3]),
        (f"row_shl:{n}", lambda l: l + n if (l & 15) + n < 16 else None),
        (f"row_shr:{n}", lambda l: l - n if l & 15 >= n else None),
        (f"row_ror:{n}", lambda l: l & ~15 | (l - n) & 15), ("row_mirror", lambda l: l ^ 15),
        ("row_half_mirror", lambda l: l ^ 7), (f"row_share:{n}", lambda l: l & ~15 | n),
        (f"row_xmask:{n}", lambda l: l ^ n)))


def with_dpp(x, rng):
    """DPP16 or DPP8 on src0."""
    fetch = rng.getrandbits(1)
    if rng.random() < 0.3:
        choice = [rng.randrange(8) for _ in range(8)]
        x.more += f" dpp8:[{','.join(map(str, choice))}]" + " fi:1" * fetch

        def take(l, mask):
            source = l & ~7 | choice[l & 7]
            return (source if fetch or mask >> source & 1 else None), True
    else:
        (text, lane), bound = dpp16(rng), rng.getrandbits(1)
        rows, banks = rng.choice((15, rng.randrange(16))), rng.choice((15, rng.randrange(16)))
        x.more += f" {text} row_mask:{rows:#x} bank_mask:{banks:#x}" + " bound_ctrl:1" * bound + " fi:1" * fetch

        def take(l, mask):
            if not rows >> (l >> 4) & 1 or not banks >> (l >> 2 & 3) & 1:
                return None, False
            source = lane(l)
            if source is None or not (fetch or mask >> source & 1):
                return None, bool(bound)
            return source, True
    x.dpp = take


def with_sdwa(x, rng):
    names = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"]
    for i, source in enumerate(x.sources):
        source.select = rng.choice(names)
        if source.kind in FORMATS:
            source.neg, source.abs = bool(rng.getrandbits(1)), bool(rng.getrandbits(1))
        elif source.kind in ("I32", "U32", "I16", "U16") and source.select != "DWORD":
            source.sext = bool(rng.getrandbits(1))
    if not x.compares():
        narrow = bits_of(x.row.dst) == 16  # what a DWORD of a half would hold beside it, no guide says
        x.sdwa = rng.choice(names[:-1] if narrow else names), rng.choice(("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"))
        x.more += f" dst_sel:{x.sdwa[0]} dst_unused:{x.sdwa[1]}"
    x.more += "".join(f" src{i}_sel:{source.select}" for i, source in enumerate(x.sources))


def with_signs(x, rng):
    """neg and abs, as the opcode admits them."""
    count = next((n for n in (3, 2, 1) if f"MODS{n}" in x.row.flags), 0)
    for source in x.sources[:count]:
        if source.kind in FORMATS or "CNDMASK" in x.row.name:
            source.neg = bool(rng.getrandbits(1))
            source.abs = bool(rng.getrandbits(1)) and "DIV_SCALE" not in x.row.name


def with_packing(x, rng):
    for source in x.sources:
        if isinstance(source, SignedSource):
            source.neg = bool(rng.getrandbits(1)) and "_IU" in x.row.name
        elif isinstance(source, PackedSource):
            source.high, source.high_high = bool(rng.getrandbits(1)), bool(rng.getrandbits(1))
            if source.kind == "PKF16" and x.row.name not in WHOLE_NUMBERS:
                source.neg, source.neg_high = bool(rng.getrandbits(1)), bool(rng.getrandbits(1))
        elif isinstance(source, MixedSource):
            source.high_high = bool(rng.getrandbits(1))
            source.high = source.high_high and bool(rng.getrandbits(1))
            source.neg, source.abs = bool(rng.getrandbits(1)), bool(rng.getrandbits(1))


def with_halves(x, rng):
    for source in x.sources:
        source.high = bits_of(source.kind) == 16 and bool(rng.getrandbits(1))
    x.high = bits_of(x.row.dst) == 16 and not x.compares() and bool(rng.getrandbits(1))


def with_constant(x, rng):
    """A scalar register, an inline constant or a literal in place of one source."""
    allowed = [i for i, s in enumerate(x.sources) if s.kind in ("B32", "I32", "U32", "F32", "F64", "B64", "I64", "U64", "I16",
                                                               "U16", "B16", "F16")]
    if x.suffix == "" and x.encoding in ("VOP1", "VOP2", "VOPC"):
        allowed = [i for i in allowed if i == 0]
    if not allowed:
        return False
    source = x.sources[rng.choice(allowed)]
    kind = source.kind
    if rng.getrandbits(1) or kind in ("I64", "U64", "B64") or x.row.name in FINITE or x.mixed:
        source.place = Place(24, DWORDS.get(kind, 1))
    elif bits_of(kind) == 16:
        n = rng.randint(-16, 64)
        source.place = rng.choice((Constant(str(n), n & 0xffff), Constant("0x1234", 0x1234)) + (
            (Constant("1.0", 0x3c00), Constant("0.15915494", 0x3118)) if kind == "F16" else ()))
        source.high = False
    elif kind == "F64":
        literal = rng.choice((0x40091eb8, 0xc1e00000))
        source.place = rng.choice((Constant("-4.0", 0xc010000000000000), Constant("12", 12), Constant("-3", M64 - 2),
                                   Constant(hex(literal), literal << 32)))
    else:
        source.place = constant(rng, kind)
    return True


ROUNDED = {f"V_{n}_{f}" for n in ("ADD", "SUB", "SUBREV", "MUL", "FMA", "FMAC", "LDEXP", "DIV_FIXUP", "DIV_FMAS", "DIV_SCALE",
                                  "FMAMK", "FMAAK") for f in FORMATS} | {
    "V_PK_FMA_F16", "V_PK_ADD_F16", "V_PK_MUL_F16", "V_CVT_F16_F32", "V_CVT_F32_F64", "V_CVT_F32_I32", "V_CVT_F32_U32",
    "V_CVT_F16_I16", "V_CVT_F16_U16", "V_FMA_MIX_F32", "V_FMA_MIXLO_F16", "V_FMA_MIXHI_F16", "V_MUL_DX9_ZERO_F32",
    "V_FMA_DX9_ZERO_F32", "V_FMAC_DX9_ZERO_F32", "V_PK_FMAC_F16", "V_CVT_PK_RTZ_F16_F32"}
QUIETING = re.compile(r"V_(PK_)?(MIN|MAX|MIN3|MAX3|MED3|MAXMIN|MINMAX)_F")  # differs by MODE.IEEE
FLUSHED = re.compile(r"V_(PK_)?(ADD|SUB|SUBREV|MUL|FMA|FMAC|FMAMK|FMAAK|MIN|MAX|MIN3|MAX3|MED3)_F(16|32|64)")
# Integer results that clamp has nothing to do for, or nobody says what; the emulator refuses it.
NO_CLAMP = re.compile(r"V_CVT_|V_FREXP_EXP|V_PACK|V_QSAD|V_MQSAD|V_(MIN|MAX|MED)3_[IU]16")


def add_valu(t, row):
    rng = t.rng

    def make():
        x = Vector(t, row)
        if "FMAMK" in row.name or "FMAAK" in row.name:
            value = rng.choice((0x3fc00000, 0x12345678, 0xff800000)) if row.dst == "F32" else rng.choice((0x3e00, 0x1234))
            x.constant = Constant(hex(value), value)
        return x

    def put(x):
        t.add(row.name, x.text(), x.run, x.named_halves)
    base = make()
    short = base.encoding in ("VOP1", "VOP2", "VOPC")
    x = make()
    x.modes = [0x3f0] * 3
    put(x)
    if row.name in ROUNDED:
        x = make()
        x.modes = [0x3f0 | r | r << 2 for r in (1, 2, 3)]
        put(x)
    if FLUSHED.match(row.name):
        x = make()
        x.modes, x.flushes = ([0x300] * 2 if QUIETING.match(row.name) else [0x300, 0x350, 0x3a0]), True
        put(x)
    if QUIETING.match(row.name):
        x = make()
        x.modes = [0x1f0] * 2
        put(x)
    for _ in range(2):
        x = make()
        if not any(n in row.name for n in ("FMAMK", "FMAAK")) and row.name not in WHOLE_NUMBERS and with_constant(x, rng):
            put(x)
    if base.encoding == "VOP3P":
        for i in range(3):
            x = make()
            with_packing(x, rng)
            x.clamp = i == 2 and row.name not in WHOLE_NUMBERS and row.dst != "B16" and "LSH" not in row.name and (
                "ASHR" not in row.name and not re.match(r"V_PK_(MIN|MAX|MUL_LO)_?[IU]", row.name))
            put(x)
    elif "NO64" not in row.flags:
        for i in range(3):
            x = make()
            x.suffix = "_e64" if short else ""
            with_signs(x, rng)
            if row.name in WHOLE_NUMBERS:
                for source in x.sources:
                    source.neg = source.abs = False
            if short and "MASK" in row.src:
                x.mask_in = "s22"
            x.mask_out = "s20" if i else "vcc"
            if i:
                x.clamp = "CLAMP" in row.flags and not x.compares() and not NO_CLAMP.match(row.name) and (
                    row.name not in NEARLY and bool(rng.getrandbits(1) or i == 2))
                x.ordinary = row.name not in WHOLE_NUMBERS and row.dst in FORMATS
                if "OPSEL" in row.flags and not short:
                    with_halves(x, rng)
                if i == 1 and "OMOD" in row.flags and row.dst in FORMATS and row.name not in NEARLY:
                    x.omod = rng.randint(1, 3)
                    x.modes = [0x150, 0x3f0, 0x350]
                else:
                    x.modes = [0x3f0, 0x2f0]
            put(x)
    if short and t.new and any(bits_of(k) == 16 for k in [row.dst] + row.src if k != "MASK"):
        for long in (False, True):
            if long and "NO64" in row.flags or (not long and any(n in row.name for n in ("FMAMK", "FMAAK"))):
                continue
            x = make()
            x.suffix = "_e64" if long else "_e32" if "NO64" not in row.flags else ""
            with_halves(x, rng)
            high = [s.high for s in x.sources] + [False] * (3 - len(x.sources)) + [x.high]
            at = (11, 12, 13, 14) if long else (7, 16, 0, 24)
            x.patch = 0 if x.named_halves else sum(1 << a for a, h in zip(at, high) if h)
            if (x.patch or x.named_halves) and not (long and "CMPX" in row.name):
                put(x)
    dpp = "DPP" in row.flags and (t.new or base.encoding != "VOPC") and row.name != "V_PK_FMAC_F16"  # LLVM lacks it
    for suffix in ("_dpp",) * (2 * dpp) + ("_e64_dpp",) * (t.new and "DPP64" in row.flags and not base.named_halves):
        x = make()
        x.suffix = suffix
        if suffix == "_e64_dpp":
            with_signs(x, rng)
            x.mask_out, x.mask_in = "s20", "s22"
            if base.encoding == "VOP3P":
                with_packing(x, rng)
        if row.name in WHOLE_NUMBERS:
            for source in x.sources:
                source.neg = source.abs = source.neg_high = False
        with_dpp(x, rng)
        put(x)
    if "SDWA" in row.flags and not t.new:
        for _ in range(2):
            x = make()
            x.suffix = "_sdwa"
            with_sdwa(x, rng)
            if row.name not in NEARLY:
                put(x)


# ---- between lanes and registers

def expect_wave(t, code, s, v, want_s, want_v, mask, scc=0):
    s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
    want_s[EXEC], want_s[EXEC + 1] = s[EXEC], s[EXEC + 1]
    r = t.step(code, s, v, scc=scc)
    if r.status:
        return t.expect(False, r.text)
    wrong = [f"s{i} {int(r.s[i]):#x}, should be {want_s[i]:#x}" for i in range(128) if int(r.s[i]) != want_s[i]]
    for i, l in np.argwhere(r.v != want_v)[:2]:
        wrong.append(f"v{i} lane {l} {int(r.v[i, l]):#x}, should be {int(want_v[i, l]):#x}")
    t.expect(not wrong, f"EXEC {mask:#x}, M0 {s[M0]:#x}: {wrong[:3]}")


def add_read_lane(t, row):
    """v_readfirstlane, v_readlane, v_writelane: the lane's number is cut to the wave's size, EXEC does not matter to two."""
    name = row.on[t.target][1]
    texts = {"V_READFIRSTLANE_B32": (f"{name} s20, v3",), "V_READLANE_B32": (f"{name} s20, v3, s4", f"{name} s20, v3, 29"),
             "V_WRITELANE_B32": (f"{name} v5, s6, s4", f"{name} v5, 0x1234567, s4", f"{name} v5, s6, 29")}[row.name]
    for text in texts:
        def check(code, text=text):
            for mask in (0, t.lanes_on(), t.lanes_on(), (1 << t.wave) - 1):
                s, v = t.scalars(), t.words(8, t.wave)
                s[4] = t.rng.choice((0, 31, 32, 63, 64, t.rng.getrandbits(32)))
                lane = (29 if text.endswith("29") else s[4]) % t.wave
                want_s, want_v = list(s), v.copy()
                if row.name == "V_WRITELANE_B32":
                    want_v[5, lane] = 0x1234567 if "0x" in text else s[6]
                else:
                    first = max(lowest_one(mask), 0)
                    want_s[20] = int(v[3, first if row.name == "V_READFIRSTLANE_B32" else lane])
                expect_wave(t, code, s, v, want_s, want_v, mask)
        t.add(row.name, text, check)


def add_permlane(t, row):
    name, flip = row.on[t.target][1], 16 * ("LANEX" in row.name)
    for fetch, bound in ((0, 0), (1, 0), (0, 1), (1, 1)):
        if "64" in row.name and (fetch or bound):
            continue
        target = t.rng.choice(("v5", "v3"))  # also onto its own source

        def check(code, fetch=fetch, bound=bound, target=target):
            for _ in range(3):
                s, v, mask = t.scalars(), t.words(8, t.wave), t.lanes_on()
                select, want = s[4] | s[5] << 32, v.copy()
                for l in range(t.wave):
                    source = l & ~15 ^ flip | select >> 4 * (l & 15) & 15
                    readable = fetch or mask >> source & 1
                    if "64" in row.name:
                        source, readable = l ^ 32, t.wave == 64
                    if mask >> l & 1 and (readable or bound):
                        want[int(target[1]), l] = v[3, source] if readable else 0
                expect_wave(t, code, s, v, list(s), want, mask)
        more = f", s4, s5 op_sel:[{fetch},{bound}]" if "64" not in row.name else ""
        t.add(row.name, f"{name} {target}, v3{more}", check)


def add_move_relative(t, row):
    """v_movrel* and v_swaprel: M0 added to a register's number, or ten bits of it to each. v_swap: none."""
    both = row.name in ("V_MOVRELSD_2_B32", "V_SWAPREL_B32")

    def check(code):
        for _ in range(4):
            s, v, mask = t.scalars(), t.words(24, t.wave), t.lanes_on()
            a, b = t.rng.randrange(12), t.rng.randrange(12)
            s[M0] = a | b << 16 | t.rng.getrandbits(6) << 26 | t.rng.getrandbits(6) << 10 if both else a
            source, target, want = 3, 8, v.copy()
            if both or row.name in ("V_MOVRELS_B32", "V_MOVRELSD_B32"):
                source += a
            if both or row.name in ("V_MOVRELD_B32", "V_MOVRELSD_B32"):
                target += b if both else a
            for l in range(t.wave):
                if mask >> l & 1:
                    want[target, l] = v[source, l]
                    if "SWAP" in row.name:
                        want[source, l] = v[target, l]
            expect_wave(t, code, s, v, list(s), want, mask)
    t.add(row.name, f"{row.on[t.target][1]} v8, v3", check)
    if row.name == "V_MOVRELD_B32":
        def from_scalar(code):
            s, v, mask = t.scalars(), t.words(24, t.wave), t.lanes_on()
            s[M0], want = t.rng.randrange(12), v.copy()
            want[8 + s[M0]] = [s[4] if mask >> l & 1 else v[8 + s[M0], l] for l in range(t.wave)]
            expect_wave(t, code, s, v, list(s), want, mask)
        t.add(row.name, f"{row.on[t.target][1]} v8, s4", from_scalar)


# ---- VOPD

def add_dual(t, opcodes):
    """Every opcode of ops_vopd.def as first and as second half; both read before either writes."""
    if t.target == "gfx1030" or t.wave == 64:
        return
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "isa")
    with open(os.path.join(folder, "ops_vopd.def")) as f:
        duals = [(int(code), name) for code, name in re.findall(r"^DUAL\((\d+), (\w+)\)", f.read(), re.M)]
    by_name = {row.name: row for row in opcodes}
    for code, name in duals:
        for first in ((True, False) if code < 16 else (False,)):
            other = t.rng.choice([n for c, n in duals if (first or c < 16) and (n != name or n not in WHOLE_NUMBERS)])
            names = (name, other) if first else (other, name)
            literal = any("AK" in n or "MK" in n for n in names)
            add_pair(t, [by_name[n] for n in names], Constant("0x3fc00000", 0x3fc00000) if literal else None)


def add_pair(t, pair, literal):
    texts, halves_of = [], []
    for i, row in enumerate(pair):
        mnemonic = "v_dual_" + row.on[t.target][1][2:]
        # the second half overwrites a source of the first, and the other way round
        target, first, second = ((1, 4, 3), (4, 1, 2))[i]
        values, words = [first, second], [f"v{first}", f"v{second}"]
        if row.name == "V_MOV_B32":
            values, words = values[:1], words[:1]
        elif "AK" in row.name or "MK" in row.name:
            at = 1 if "MK" in row.name else 2
            values.insert(at, literal)
            words.insert(at, literal.text)
        texts.append(f"{mnemonic} v{target}, {', '.join(words)}")
        halves_of.append((row, target, values))

    def check(code):
        for _ in range(2):
            s, v, mask = t.scalars(), t.words(8, t.wave), t.lanes_on()
            for row, target, values in halves_of:
                for register in [target] + [x for x in values if isinstance(x, int)]:
                    v[register] = [whole_number(t.rng, "F32") for _ in range(t.wave)]
            for row, target, values in halves_of:
                if row.name in WHOLE_NUMBERS:
                    for register in values:
                        v[register] = [whole_number(t.rng, "PKF16") for _ in range(t.wave)]
            want, Now.mode = v.copy(), 0x3f0
            for l in range(t.wave):
                for row, target, values in halves_of:
                    if not mask >> l & 1:
                        continue
                    sources = [int(v[x, l]) if isinstance(x, int) else x.value for x in values]
                    if row.name in ACCUMULATES:
                        sources.append(int(v[target, l]))
                    if "MASK" in row.src:
                        sources.append(s[VCC] >> l & 1)
                    result = VALU[row.name](*[seen_as(k, x) for k, x in zip(row.src + [row.dst] * 2, sources)])
                    want[target, l] = result & M32
            expect_wave(t, code, s, v, list(s), want, mask)
    for row in pair:
        t.add(row.name, " :: ".join(texts), check)


def add(t, row):
    """Whether it is a vector opcode that is checked here."""
    if row.name in VALU:
        add_valu(t, row)
    elif row.name in ("V_READFIRSTLANE_B32", "V_READLANE_B32", "V_WRITELANE_B32"):
        add_read_lane(t, row)
    elif row.name.startswith("V_PERMLANE"):
        add_permlane(t, row)
    elif row.name.startswith(("V_MOVREL", "V_SWAP")):
        add_move_relative(t, row)
    else:
        return False
    return True
