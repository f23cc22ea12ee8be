"""What vector opcodes do to one lane, in Python's integers and fractions, and what their encodings add to that."""
import math
from fractions import Fraction

import floats
from floats import (F16, F32, F64, M32, M64, clamp, class_bits, convert, first_nan, fract, frexp, order, permute,
                    signed, to_integer, whole)
from opcode_table import FORMATS, seen_as
from opcodes_scalar import RELATIONS, highest_one, lowest_one, reverse, sign_run


class Now:
    """What a lane's function may ask for beside its sources."""
    mode, lane, wave, signs, rdna4 = 0x3f0, 0, 32, (0, 0), False

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
    if Now.rdna4 and f.nan(a) and f.nan(b):
        return a | f.quiet
    if f.nan(b) or f.nan(a):
        return a if f.nan(b) else b
    return (max if largest else min)(a, b, key=lambda v: order(f, v))


def pass_on(f, a, b, largest):
    """The same where a NaN wins, a signaling one before others."""
    nans = sorted((v for v in (a, b) if f.nan(v)), key=lambda v: bool(v & f.quiet))
    return nans[0] | f.quiet if nans else (max if largest else min)(a, b, key=lambda v: order(f, v))


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


def flushed(bits):
    """No denormals; what rounds up to the smallest normal number is judged differently by processors."""
    return bits if bits & F32.inf else bits & F32.sign


def mad(a, b, c, legacy=False):
    a, b, c = map(flushed, (a, b, c))
    product = 0 if legacy and (zero(F32, a) or zero(F32, b)) else multiply(F32, a, b)
    total = plus(F32, flushed(product), c)
    smallest = 1 << F32.fraction
    return SKIP if smallest in (product & ~F32.sign, total & ~F32.sign) else flushed(total)


def trig_preop(v, index):
    shift = (index & 31) * 53 + max(field(F64, v) - 1077, 0)
    part = (TWO_OVER_PI << shift + 53 >> 1201) & (1 << 53) - 1
    return F64.round(Fraction(part) * Fraction(2) ** (128 * (field(F64, v) >= 1968) - 53 - shift))


def transcendental(f, function, special=(), ulps=Fraction(101, 100), least=0):
    """function: of a finite float's value. special: rules (condition on the bits, result) that come first."""
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


def to_floor(v, more):
    if F32.nan(v) and Now.rdna4:
        return -2**31 if v & F32.sign else 2**31 - 1
    if F32.nan(v) or F32.infinite(v):
        return to_integer(F32, v, -2**31, 2**31 - 1)
    return clamp(math.floor(F32.value(v) + more), -2**31, 2**31 - 1)


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
    "V_MUL_LO_U32": lambda a, b: a * b, "V_MUL_HI_U32": lambda a, b: a * b >> 32,
    "V_MUL_HI_I32": lambda a, b: a * b >> 32,
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
    "V_CUBEID_F32": lambda a, b, c: F32.round(Fraction(cube(a, b, c)[0])),
    "V_CUBESC_F32": lambda a, b, c: cube(a, b, c)[1],
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
    "V_CVT_NEAREST_I32_F32": lambda a: to_floor(a, Fraction(1, 2)), "V_CVT_FLOOR_I32_F32": lambda a: to_floor(a, 0),
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
        f"V_MINIMUM_{_n}": lambda a, b, f=_f: pass_on(f, a, b, False),
        f"V_MAXIMUM_{_n}": lambda a, b, f=_f: pass_on(f, a, b, True),
        f"V_MINIMUM3_{_n}": lambda a, b, c, f=_f: pass_on(f, pass_on(f, a, b, False), c, False),
        f"V_MAXIMUM3_{_n}": lambda a, b, c, f=_f: pass_on(f, pass_on(f, a, b, True), c, True),
        f"V_MAXIMUMMINIMUM_{_n}": lambda a, b, c, f=_f: pass_on(f, pass_on(f, a, b, True), c, False),
        f"V_MINIMUMMAXIMUM_{_n}": lambda a, b, c, f=_f: pass_on(f, pass_on(f, a, b, False), c, True),
        f"V_TRUNC_{_n}": lambda a, f=_f: whole(f, a, "trunc"), f"V_CEIL_{_n}": lambda a, f=_f: whole(f, a, "ceil"),
        f"V_RNDNE_{_n}": lambda a, f=_f: whole(f, a, "rndne"), f"V_FLOOR_{_n}": lambda a, f=_f: whole(f, a, "floor"),
        f"V_FRACT_{_n}": lambda a, f=_f: fract(f, a), f"V_FREXP_MANT_{_n}": lambda a, f=_f: frexp(f, a)[1],
        f"V_FREXP_EXP_I{16 if _f is F16 else 32}_{_n}": lambda a, f=_f: frexp(f, a)[0],
        f"V_LDEXP_{_n}": lambda a, b, f=_f: ldexp(f, a, b),
        f"V_DIV_FIXUP_{_n}": lambda q, d, n, f=_f: div_fixup(f, q, d, n),
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
    VALU[f"V_RSQ_{_n}"] = transcendental(_f, lambda x: 1 / root(x),
                                         [(_small, _signed_inf), _negative, (_infinite, 0)], _ulps)
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
VALU["V_FMAC_F64"] = VALU["V_FMA_F64"]
VALU["V_FMA_LEGACY_F16"], VALU["V_DIV_FIXUP_LEGACY_F16"] = VALU["V_FMA_F16"], VALU["V_DIV_FIXUP_F16"]
VALU["V_SUBREV_NC_U16"] = lambda a, b: b - a
VALU["V_MOV_B64"] = lambda a: a
VALU["V_LSHL_ADD_U64"] = lambda a, b, c: (a << (b & 7)) + c & M64
VALU["V_MAD_LEGACY_U16"], VALU["V_MAD_LEGACY_I16"] = VALU["V_MAD_U16"], VALU["V_MAD_I16"]
VALU["V_CVT_PKACCUM_U8_F32"] = VALU["V_CVT_PK_U8_F32"]
VALU["V_FMAC_F16"] = VALU["V_FMA_F16"]
VALU["V_FMAC_DX9_ZERO_F32"] = VALU["V_FMA_DX9_ZERO_F32"]
VALU["V_PK_FMAC_F16"] = halves(VALU["V_FMA_F16"], "F16")
for _n in ("FMA_F16", "ADD_F16", "MUL_F16", "MIN_F16", "MAX_F16", "MAD_I16", "MAD_U16", "MUL_LO_U16", "MAX_I16",
           "MIN_I16", "MINIMUM_F16", "MAXIMUM_F16", "MAX_U16", "MIN_U16", "LSHLREV_B16", "LSHRREV_B16", "ASHRREV_I16"):
    VALU[f"V_PK_{_n}"] = halves(VALU[f"V_{_n}"], _n[-3:])
for _k in ("I16", "U16"):
    VALU[f"V_PK_ADD_{_k}"] = halves(lambda a, b: a + b, _k)
    VALU[f"V_PK_SUB_{_k}"] = halves(lambda a, b: a - b, _k)
VALU["V_MAC_F32"] = VALU["V_MAD_F32"] = VALU["V_MADAK_F32"] = mad
VALU["V_MADMK_F32"] = mad
VALU["V_MAC_DX9_ZERO_F32"] = VALU["V_MAD_DX9_ZERO_F32"] = lambda a, b, c: mad(a, b, c, True)
def mad16(a, b, c):
    return plus(F16, multiply(F16, a, b), c)


for _n in ("MAD", "MAD_LEGACY", "MAC", "MADAK"):
    VALU[f"V_{_n}_F16"] = mad16
VALU["V_MADMK_F16"] = mad16
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


VALU |= {"V_DOT4_I32_IU8": dot(8), "V_DOT8_I32_IU4": dot(4), "V_DOT4_I32_I8": dot(8, (1, 1)),
         "V_DOT4_U32_U8": dot(8, (0, 0)), "V_DOT8_I32_I4": dot(4, (1, 1)), "V_DOT8_U32_U4": dot(4, (0, 0)),
         "V_DOT2_I32_I16": dot(16, (1, 1)),
         "V_DOT2_U32_U16": dot(16, (0, 0)), "V_DOT4C_I32_I8": dot(8, (1, 1)),
         "V_DOT2C_I32_I16": dot(16, (1, 1)), "V_DOT8C_I32_I4": dot(4, (1, 1))}


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
ACCUMULATES = {"V_MAC_F32", "V_MAC_F16", "V_CVT_PKACCUM_U8_F32", "V_FMAC_F64", "V_DOT2C_I32_I16", "V_DOT8C_I32_I4", "V_MAC_DX9_ZERO_F32", "V_FMAC_F32", "V_FMAC_F16", "V_FMAC_DX9_ZERO_F32", "V_PK_FMAC_F16", "V_DOT2ACC_F32_F16",
               "V_DOT4C_I32_I8"}
FINITE = {"V_CUBEID_F32", "V_CUBESC_F32", "V_CUBETC_F32", "V_CUBEMA_F32"}  # of a NaN no direction is meant
NEARLY = {"V_RCP_IFLAG_F32"}
NEARLY |= {f"V_{n}_{f}" for n in ("RCP", "RSQ", "SQRT", "LOG", "EXP", "SIN", "COS") for f in FORMATS}

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
