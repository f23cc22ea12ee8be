"""What gfx950 added, against Python's integers and fractions: products of matrices of every shape, with every format of
factors and with scales; sparse products; conversions with scales and random numbers; exchanges of lanes; transposed loads
of LDS and loads to it. The words are made here, since LLVM 19 does not know gfx950; isa_recorded_test holds the decoder
against LLVM 23. Every opcode of codes_gfx950.def has a check.
Usage: cdna4_test.py [emu_step [seed]]
"""
import random
import re
import struct
import sys
from fractions import Fraction

import numpy as np

from emulator import EXEC, M0, MEMORY, Checks, Emulator
from floats import BF16, F16, F32, M32, pick, signed
from opcode_table import read

ROWS, FIRST = 160, 80  # registers of a case, and the place of a0 among them (tests/emu_step.c)
def codes(name):
    return {op: (kind, int(code, 16)) for op, kind, code in re.findall(r"[IA]S\((\w+), (\w+), (0x\w+)", read(name))}


NEW = codes("codes_gfx950.def")
CODES = codes("codes_gfx942.def") | NEW


class Small:
    """A float of few bits: `most` is its largest number, and `infinite` what stands for more, if that is not `most`."""

    def __init__(self, bits, fraction, bias, most, infinite, nan):
        self.bits, self.fraction, self.most, self.infinite, self.nan = bits, fraction, most, infinite, nan
        self.top = 1 << bits - 1
        self.values = []
        for code in range(most + 2):  # and the number that would come next
            field, low = code >> fraction, code & ((1 << fraction) - 1)
            units = low + (1 << fraction) * bool(field)
            self.values.append(Fraction(units) * Fraction(2) ** (max(field, 1) - bias - fraction))

    def numbers(self):
        return [i for i in range(1 << self.bits) if i % self.top <= self.most]

    def value(self, code):
        return self.values[code % self.top] * (-1 if code & self.top else 1)

    def close(self, x, saturates, cut=False):
        """The code of a Fraction's magnitude, to the nearest even or toward zero."""
        below = max(i for i, v in enumerate(self.values) if v <= x)
        if below <= self.most and not cut:
            low, high = x - self.values[below], self.values[below + 1] - x
            below += high < low or (high == low and below & 1)
        return below if below <= self.most else self.most if saturates else self.infinite


SMALL = {"FP8": Small(8, 3, 7, 0x7e, 0x7f, 0x7f), "BF8": Small(8, 2, 15, 0x7b, 0x7c, 0x7f),
         "FP6": Small(6, 3, 1, 0x1f, 0x1f, 0x1f), "BF6": Small(6, 2, 3, 0x1f, 0x1f, 0x1f), "FP4": Small(4, 1, 1, 7, 7, 7)}
FORMATS = ["FP8", "BF8", "FP6", "BF6", "FP4"]  # as cbsz and blgp number them
WIDE = {"F32": F32, "F16": F16, "BF16": BF16}


def vop1(op, dst, src):
    return struct.pack("<I", 0x7e000000 | CODES[op][1] << 9 | dst << 17 | src + 256)


def vop3(op, dst, *src, sel=0, neg=0, omod=0, absolute=0):
    words = (0xd0000000 | CODES[op][1] << 16 | sel << 11 | absolute << 8 | dst,
             sum((256 + s) << 9 * i for i, s in enumerate(src)) | omod << 27 | neg << 29)
    return struct.pack("<2I", *words)


def vop3p(op, dst, *src):
    return struct.pack("<2I", 0xd3804000 | CODES[op][1] << 16 | dst, sum((256 + s) << 9 * i for i, s in enumerate(src)) | 3 << 27)


def matrix(op, dst, a, b, c, cbsz=0, abid=0, blgp=0):
    """Registers are (number, whether accumulation registers)."""
    low = 0xd3800000 | CODES[op][1] << 16 | dst[1] << 15 | abid << 11 | cbsz << 8 | dst[0]
    return struct.pack("<2I", low, blgp << 29 | b[1] << 28 | a[1] << 27 | (c[0] + 256) << 18 | (b[0] + 256) << 9 | a[0] + 256)


def scales(a, b, bytes_of):
    low = 0xd3800000 | CODES["V_MFMA_LD_SCALE_B32"][1] << 16 | (bytes_of[0] & 1) << 11 | (bytes_of[1] & 1) << 12
    return struct.pack("<2I", low, (bytes_of[1] >> 1) << 28 | (bytes_of[0] >> 1) << 27 | (b + 256) << 9 | a + 256)


class Tester(Checks):
    def __init__(self, emulator, seed):
        super().__init__("gfx950")
        self.emulator, self.rng, self.done = emulator, random.Random(seed), set()

    def words(self, rows=ROWS):
        return np.array([[self.rng.getrandbits(32) for _ in range(64)] for _ in range(rows)], np.uint32)

    def step(self, op, code, v, on=M32 | M32 << 32, **more):
        self.done.add(op)
        s = [0] * 128
        s[EXEC], s[EXEC + 1] = on & M32, on >> 32
        for register, value in more.pop("scalars", {}).items():
            s[register] = value
        return self.emulator.step("gfx950", code, s, v, **more)

    def same(self, op, r, want, what=""):
        same = not r.status and np.array_equal(r.v, want)
        self.expect(f"{op} {what}", same, r.text or str([tuple(map(int, x)) for x in np.argwhere(r.v != want)[:4]]))


def put_bits(v, register, low, lane, bits, value):
    at, low = register + low // 32, low % 32
    pair = int(v[at, lane]) | (int(v[at + 1, lane]) << 32 if low + bits > 32 else 0)
    pair = pair & ~(((1 << bits) - 1) << low) | value << low
    v[at, lane] = pair & M32
    if low + bits > 32:
        v[at + 1, lane] = pair >> 32


def get_bits(v, register, low, lane, bits):
    at, low = register + low // 32, low % 32
    pair = int(v[at, lane]) | (int(v[at + 1, lane]) << 32 if low + bits > 32 else 0)
    return pair >> low & ((1 << bits) - 1)


def place(m, k_all, bits, split, row, k):
    """(lane, bit) of a factor's element: lanes hold runs in k, those of F8F6F4's 8-bit floats two of 16."""
    if split:
        return row + m * (k % (k_all // 2) // 16), 8 * (k // (k_all // 2) * 16 + k % 16)
    run = m * k_all // 64
    return row + m * (k // run), bits * (k % run)


def result_place(m, i, j):
    return (i % 4 + 4 * (i // 8), 32 * (i // 4 % 2) + j) if m == 32 else (i % 4, 16 * (i // 4) + j)


def registers(t, sizes):
    """Places for A, B and D that do not meet, in either file: (number, whether accumulation registers)."""
    at, found = 0, []
    for size in sizes:
        found.append((at, t.rng.getrandbits(1)))
        at += size
    return found


def base(register):
    return register[0] + FIRST * register[1]


# ---- products

WHOLE = {"F16": (16, lambda n: F16.round(Fraction(n))), "BF16": (16, lambda n: BF16.round(Fraction(n))), "I8": (8, lambda n: n & 255)}
for small in ("FP8", "BF8"):
    WHOLE[small] = (8, {SMALL[small].value(i): i for i in reversed(SMALL[small].numbers())}.__getitem__)


def whole_number(t, kind):
    if kind == "BF8":  # has three bits of significand
        return t.rng.choice((1, -1)) * t.rng.randint(0, 8)
    return t.rng.randint(-128, 127) if kind == "I8" else t.rng.randint(-15, 15)


def check_product(t, op, over):
    sparse, out, m, k_all, kinds = re.fullmatch(r"V_(SMFMAC|MFMA)_([FI]32)_(\d+)X\d+X(\d+)_(\w+)", op).groups()
    m, k_all, sparse = int(m), int(k_all), sparse == "SMFMAC"
    kind, kind_b = kinds.split("_")[0], kinds.split("_")[-1]
    bits, k_a = WHOLE[kind][0], k_all // 2 if sparse else k_all
    a, b, d = registers(t, (16, 16, 24))
    if over and not sparse:
        d = (a[0], a[1])  # the sums lie over A; C elsewhere
    c = d if sparse else (44, d[1])
    v = t.words()
    left, right = {}, {}
    for row in range(m):
        for k in range(k_all):
            right[row, k] = whole_number(t, kind_b)
            lane, low = place(m, k_all, bits, False, row, k)
            put_bits(v, base(b), low, lane, bits, WHOLE[kind_b][1](right[row, k]))
        for k in range(k_a):
            left[row, k] = whole_number(t, kind)
            lane, low = place(m, k_a, bits, False, row, k)
            put_bits(v, base(a), low, lane, bits, WHOLE[kind][1](left[row, k]))
    cbsz, abid, index, run = 0, 0, 70, m * k_a // 64
    if sparse:
        sets = 32 // (2 * run)
        cbsz, abid = t.rng.randrange(2), t.rng.randrange(sets) if sets > 1 else 0
        taken = {}
        for row in range(m):
            for group in range(k_all // 4):
                chosen = sorted(t.rng.sample(range(4), 2))
                for n in range(2):
                    lane, low = place(m, k_a, 1, False, row, 2 * group + n)
                    put_bits(v, index, 2 * low + 2 * run * (0 if cbsz else abid), lane, 2, chosen[n])
                    taken[row, 4 * group + chosen[n]] = left[row, 2 * group + n]
        left = taken
    encode = (lambda n: n & M32) if out == "I32" else (lambda n: F32.round(Fraction(n)))
    want = v.copy()
    for i in range(m):
        for j in range(m):
            addend = t.rng.randint(-1000, 1000)
            register, lane = result_place(m, i, j)
            v[base(c) + register, lane] = want[base(c) + register, lane] = encode(addend)
    sums = {}
    for i in range(m):
        for j in range(m):
            register, lane = result_place(m, i, j)
            bits_of = int(v[base(c) + register, lane])
            addend = signed(bits_of) if out == "I32" else int(F32.value(bits_of))
            sums[register, lane] = encode(addend + sum(n * right[j, k] for (row, k), n in left.items() if row == i))
    for (register, lane), n in sums.items():
        want[base(d) + register, lane] = n
    last = (index, 0) if sparse else c
    r = t.step(op, matrix(op, d, a, b, last, cbsz, abid), v, on=t.rng.getrandbits(64))
    t.same(op, r, want, f"{d} {a} {b} {c} {cbsz} {abid}")


def check_formats(t, op, cbsz, blgp, scaled):
    """A few elements of a product of any finite factors: each product is exact, and added with one rounding, by k."""
    rng, m, k_all = t.rng, 16 if "16X16" in op else 32, 128 if "16X16" in op else 64
    a, b, d = registers(t, (8, 8, 24))
    v = t.words()
    kinds = [SMALL[FORMATS[cbsz]], SMALL[FORMATS[blgp]]]
    for small, register in zip(kinds, (a, b)):
        numbers = small.numbers()
        for row in range(m):
            for k in range(k_all):
                lane, low = place(m, k_all, small.bits, small.bits == 8, row, k)
                put_bits(v, base(register), low, lane, small.bits, rng.choice(numbers))
    for k in range(16):
        v[base(d) + k] = [F32.round(Fraction(rng.randint(-10**6, 10**6), 1000)) for _ in range(64)]
    bytes_of, prefix, abid = [rng.randrange(4) for _ in range(2)], b"", 0
    if scaled:
        middle, spread = (127, 8) if scaled == 1 else (127, 120)
        for side in range(2):
            v[70 + side] = [sum(rng.randint(middle - spread, middle + spread) << 8 * i for i in range(4)) for _ in range(64)]
        prefix, abid = scales(70, 71, bytes_of), 1
    r = t.step(op, prefix + matrix(op, d, a, b, d, cbsz, abid, blgp), v, on=rng.getrandbits(64))
    if scaled:
        t.done.add("V_MFMA_LD_SCALE_B32")
    for _ in range(6):
        i, j = rng.randrange(m), rng.randrange(m)
        register, lane = result_place(m, i, j)
        total = int(v[base(d) + register, lane])
        for k in range(k_all):
            product = Fraction(1)
            for side, (small, factor, row) in enumerate(zip(kinds, (a, b), (i, j))):
                at, low = place(m, k_all, small.bits, small.bits == 8, row, k)
                product *= small.value(get_bits(v, base(factor), low, at, small.bits))
                if scaled:
                    byte = int(v[70 + side, row + m * (k // 32)]) >> 8 * bytes_of[side] & 255
                    product *= Fraction(2) ** (byte - 127)
            exact = F32.value(total) + product
            total = F32.round(exact, negative_zero=bool(total >> 31) and product == 0 and total << 1 == 0) if not F32.infinite(total) else total
        got = int(r.v[base(d) + register, lane])
        same = got == total or (got << 1 & M32 == 0 and total << 1 & M32 == 0)
        t.expect(f"{op} {FORMATS[cbsz]} {FORMATS[blgp]} scaled {scaled}: {i}, {j}", not r.status and same,
                 r.text or f"{got:#x}, {total:#x}")


def check_nan_scale(t):
    op = "V_MFMA_F32_16X16X128_F8F6F4"
    v = np.zeros((ROWS, 64), np.uint32)
    v[70], v[71] = 0x7f7f7f7f, 0x7f7f7f7f
    v[70, 16 + 3] = 0x7f7fff7f  # row 3, k 32 to 63, byte 1
    r = t.step(op, scales(70, 71, [1, 0]) + matrix(op, (40, 0), (0, 0), (8, 0), (40, 0), 4, 1, 4), v)
    got = {result_place(16, i, j) for i in range(16) for j in range(16)
           if F32.nan(int(r.v[40 + result_place(16, i, j)[0], result_place(16, i, j)[1]]))}
    t.expect("a scale that is NaN", not r.status and got == {result_place(16, 3, j) for j in range(16)}, r.text or str(got))
    r = t.step(op, matrix(op, (40, 0), (0, 0), (8, 0), (40, 0), 5, 0, 0), v)
    t.expect("a format that there is not", r.status and "formats from 0 to 4" in r.text, r.text)


# ---- conversions

def next_random(x):
    return (x << 1 ^ (197 if x >> 31 else 0)) & M32


def sample(t, kind):
    """Bits of a wide float: numbers about those of small ones, edges, and any."""
    f, how = WIDE[kind], t.rng.random()
    if how < 0.1:
        return t.rng.choice([0, f.sign, 1, f.sign | 1, f.inf, f.inf | f.sign, f.inf | f.quiet, f.inf - 1])
    if how < 0.8:
        return f.round(Fraction(t.rng.randint(-4096, 4096)) * Fraction(2) ** t.rng.randint(-20, 6))
    return t.rng.getrandbits(f.bits)


def closed(kind, bits, scale, small, saturates, seed):
    f = WIDE[kind]
    sign = small.top if bits & f.sign else 0
    if f.nan(bits) or scale == 255:
        return sign | small.nan
    if f.infinite(bits):
        return sign | small.infinite
    x = abs(f.value(bits))
    if seed is not None and x:
        e = x.numerator.bit_length() - x.denominator.bit_length()
        e -= Fraction(2) ** e > x
        x += Fraction(seed >> (9 + small.fraction)) * Fraction(2) ** (e - 23)
    x /= Fraction(2) ** (scale - 127)
    return sign | small.close(min(x, Fraction(2) ** 20), saturates, seed is not None)


def opened(kind, code, small, scale):
    f, sign = WIDE[kind], WIDE[kind].sign if code & small.top else 0
    low = code % small.top
    if scale == 255 or (small.bits == 8 and low > small.infinite) or (small.bits == 8 and low == small.nan):
        return sign | f.inf | f.quiet
    if small.bits == 8 and low > small.most:
        return sign | f.inf
    return sign | f.round(small.values[low] * Fraction(2) ** (scale - 127))


def check_scaled(t, op):
    name = op[len("V_CVT_SCALEF32_"):]
    pair, sr = name.startswith("2XPK16_"), name.startswith("SR_")
    first, second = name.split("_")[-2:]
    opens = second in SMALL
    small, wide = SMALL[second if opens else first], first if opens else second
    count = 32 if "PK32" in name or pair else 2 if "PK_" in name else 1
    part, width = small.bits * count, WIDE[wide].bits
    apart = wide == "F32" and count == 2 and not sr and not opens
    mode = 0x3f0 | t.rng.getrandbits(1) << 23  # FP16_OVFL
    a, b, c, dst = 0, 40, 74, 100
    v = t.words()
    byte, half = t.rng.randrange(4), t.rng.randrange(2)
    sel = byte if opens and part == 8 else half if opens and part == 16 else byte << 2 if part == 8 else half << 3 if part == 16 else 0
    high = opens and count == 1 and width == 16 and t.rng.randrange(2)
    sel |= 8 * bool(high)
    scale_at = b if opens or not (sr or apart or pair) else c
    v[scale_at] = [(t.rng.choice([127, 127, 120, 133, 255, 0, 254, 100]) << 23 | t.rng.getrandbits(23) | t.rng.getrandbits(1) << 31) for _ in range(64)]
    on, want = t.rng.getrandbits(64), v.copy()
    for lane in range(64):
        scale, seed = int(v[scale_at, lane]) >> 23 & 255, int(v[b, lane]) if sr else None
        for e in range(count):
            if not opens:
                register = (a if not e else b) if apart else a + e if wide == "F32" and not pair else \
                    (a, b)[e % 2] + e // 2 if pair else a + e // 2
                low = 16 * (e % 2) if width == 16 else 0
                put_bits(v, register, low, lane, width, sample(t, wide))
                want[:, lane] = np.where(np.arange(ROWS) == register, v[:, lane], want[:, lane])
        for e in range(count):
            if opens:
                at = 8 * byte if part == 8 else 16 * half if part == 16 else 0
                code = get_bits(v, a, at + small.bits * e, lane, small.bits)
                value, low, size = opened(wide, code, small, scale), 16 * bool(high) + width * e, width
            else:
                register = (a if not e else b) if apart else a + e if wide == "F32" and not pair else \
                    (a, b)[e % 2] + e // 2 if pair else a + e // 2
                bits = get_bits(v, register, 16 * (e % 2) if width == 16 else 0, lane, width)
                value = closed(wide, bits, scale, small, bool(mode >> 23), seed)
                low, size = (8 * byte if part == 8 else 16 * half if part == 16 else 0) + small.bits * e, small.bits
                seed = next_random(seed) if sr else None
            if on >> lane & 1:
                put_bits(want, dst, low, lane, size, value)
    sources = (a, b, c) if scale_at == c else (a, b)
    r = t.step(op, vop3(op, dst, *sources, sel=sel), v, on=on, mode=mode)
    t.same(op, r, want, f"sel {sel} mode {mode:#x}")


# ---- the others

def each(t, op, code, sources, function, kinds, dst=100, mode=0x3f0, keep=None):
    v = t.words()
    for register, kind in zip(sources, kinds):
        if kind:
            v[register] = [sample(t, kind) for _ in range(64)]
    on, want = t.rng.getrandbits(64), v.copy()
    for lane in range(64):
        if on >> lane & 1:
            old = int(v[dst, lane])
            value = function(*(int(v[s, lane]) for s in sources))
            want[dst, lane] = value if keep is None else keep(old, value)
    r = t.step(op, code, v, on=on, mode=mode)
    t.same(op, r, want)


def quiet(f, bits):
    return bits | f.quiet if f.nan(bits) else bits


def nearest(f, bits):
    if F32.nan(bits):
        return (bits >> 31) * f.sign | f.inf | f.quiet | (bits >> 23 - f.fraction & (f.quiet - 1))
    if F32.infinite(bits):
        return (bits >> 31) * f.sign | f.inf
    return f.round(F32.value(bits), negative_zero=bool(bits >> 31)) | (bits >> 31) * f.sign


def random_half(f, bits, seed):
    sign = (bits >> 31) * f.sign
    if F32.nan(bits):
        return sign | f.inf | f.quiet
    if F32.infinite(bits):
        return sign | f.inf
    x = abs(F32.value(bits))
    if x:
        e = x.numerator.bit_length() - x.denominator.bit_length()
        e -= Fraction(2) ** e > x
        x += Fraction(seed >> (9 + f.fraction)) * Fraction(2) ** (e - 23)
    if x >= Fraction(2) ** (f.bias + 1):
        return sign | f.inf
    return sign | f.round(x, how=3)


def check_others(t):
    rng = t.rng
    each(t, "V_PRNG_B32", vop1("V_PRNG_B32", 100, 3), [3], next_random, [None])
    each(t, "V_CVT_F32_BF16", vop1("V_CVT_F32_BF16", 100, 3), [3], lambda x: quiet(F32, x << 16 & M32), [None])
    for op, f in (("V_CVT_PK_BF16_F32", BF16), ("V_CVT_PK_F16_F32", F16)):
        each(t, op, vop3(op, 100, 3, 4), [3, 4], lambda x, y, f=f: nearest(f, x) | nearest(f, y) << 16, ["F32", "F32"])
    for op, f in (("V_CVT_SR_F16_F32", F16), ("V_CVT_SR_BF16_F32", BF16)):
        for high in (0, 1):
            each(t, op, vop3(op, 100, 3, 4, sel=8 * high), [3, 4], lambda x, y, f=f: random_half(f, x, y), ["F32", None],
                 keep=lambda old, new, high=high: old & 0xffff | new << 16 if high else old & 0xffff0000 | new)
    for op in ("V_BITOP3_B32", "V_BITOP3_B16"):
        for table in (0xca, 0x96, rng.getrandbits(8)):
            bits = 32 if op.endswith("32") else 16

            def function(a, b, c, table=table, bits=bits):
                return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(bits))
            each(t, op, vop3(op, 100, 3, 4, 5, neg=table & 7, absolute=table >> 3 & 7, omod=table >> 6), [3, 4, 5], function,
                 [None] * 3)
    for op, low, high in (("V_ASHR_PK_I8_I32", -128, 127), ("V_ASHR_PK_U8_I32", 0, 255)):
        for upper in (0, 1):
            each(t, op, vop3(op, 100, 3, 4, 5, sel=8 * upper), [3, 4, 5],
                 lambda a, b, c, low=low, high=high: sum((min(max(signed(x) >> (c & 31), low), high) & 255) << 8 * i
                                                         for i, x in enumerate((a, b))), [None] * 3,
                 keep=lambda old, new, upper=upper: old & 0xffff | new << 16 if upper else old & 0xffff0000 | new)
    for op, largest in (("V_MINIMUM3_F32", False), ("V_MAXIMUM3_F32", True)):
        each(t, op, vop3(op, 100, 3, 4, 5), [3, 4, 5], lambda a, b, c, m=largest: extreme(F32, m, a, b, c), ["F32"] * 3)
    for op, largest in (("V_PK_MINIMUM3_F16", False), ("V_PK_MAXIMUM3_F16", True)):
        each(t, op, vop3p(op, 100, 3, 4, 5), [3, 4, 5],
             lambda a, b, c, m=largest: sum(extreme(F16, m, *(x >> s & 0xffff for x in (a, b, c))) << s for s in (0, 16)), [None] * 3)
    for op, run in (("V_PERMLANE16_SWAP_B32", 16), ("V_PERMLANE32_SWAP_B32", 32)):
        v = t.words()
        want = v.copy()
        for lane in range(64):
            if lane & run:
                want[7, lane], want[9, lane - run] = v[9, lane - run], v[7, lane]
        t.same(op, t.step(op, vop1(op, 7, 9), v), want)
    small = t.words()
    for row in (3, 4):
        small[row] = [sum(BF16.round(Fraction(rng.randint(0, 15))) << s for s in (0, 16)) for _ in range(64)]
    small[5] = small[100] = [F32.round(Fraction(rng.randint(0, 999))) for _ in range(64)]  # of one sign: no bits are lost
    want = small.copy()
    for lane in range(64):
        x, y = (int(small[row, lane]) for row in (3, 4))
        total = sum(BF16.value(x >> s & 0xffff) * BF16.value(y >> s & 0xffff) for s in (0, 16))
        want[100, lane] = F32.round(total + F32.value(int(small[5, lane])))
    t.same("V_DOT2_F32_BF16", t.step("V_DOT2_F32_BF16", vop3p("V_DOT2_F32_BF16", 100, 3, 4, 5), small), want)
    code = struct.pack("<I", CODES["V_DOT2C_F32_BF16"][1] << 25 | 100 << 17 | 4 << 9 | 256 + 3)
    t.same("V_DOT2C_F32_BF16", t.step("V_DOT2C_F32_BF16", code, small), want)


def extreme(f, largest, *values):
    """Pair by pair; a NaN wins, of two one that signals, else the first."""
    found = values[0]
    for x in values[1:]:
        nans = [n for n in (found, x) if f.nan(n) and not n & f.quiet] or [n for n in (found, x) if f.nan(n)]
        found = nans[0] | f.quiet if nans else pick(f, found, x, largest)
    return found


# ---- memory

def check_memory(t):
    rng = t.rng
    for op, bits in (("DS_LOAD_B64_TR_B16", 16), ("DS_LOAD_B64_TR_B8", 8), ("DS_LOAD_B64_TR_B4", 4), ("DS_LOAD_B96_TR_B6", 6)):
        size, elements = (12, 16) if bits == 6 else (8, 64 // bits)
        lds, v = rng.randbytes(4096), t.words()
        v[3] = rng.sample(range(0, 4000, 16), 64)
        want = v.copy()
        rows = [int.from_bytes(lds[int(x) + 8:int(x) + 8 + size], "little") for x in v[3]]
        for lane in range(64):
            first = lane // 16 * 16
            # of 16 lanes, rows of 16 elements one after the other
            flat = [x >> bits * e & ((1 << bits) - 1) for x in rows[first:first + 16] for e in range(elements)]
            value = sum(flat[16 * e + lane % 16] << bits * e for e in range(elements))
            for k in range(size // 4):
                want[100 + k, lane] = value >> 32 * k & M32
        code = struct.pack("<2I", 0xd8000000 | CODES[op][1] << 17 | 8, 100 << 24 | 3)
        t.same(op, t.step(op, code, v, lds=lds), want)
    loads = {"GLOBAL_LOAD_LDS_B96": (12, 12, False), "GLOBAL_LOAD_LDS_B128": (16, 16, False), "buffer": (16, 16, False),
             "GLOBAL_LOAD_LDS_U8": (1, 4, False), "GLOBAL_LOAD_LDS_I8": (1, 4, True), "GLOBAL_LOAD_LDS_U16": (2, 4, False),
             "GLOBAL_LOAD_LDS_I16": (2, 4, True), "GLOBAL_LOAD_LDS_B32": (4, 4, False)}
    for op, (size, room, has_sign) in loads.items():
        memory, lds, v = rng.randbytes(4096), bytearray(rng.randbytes(163840)), t.words()
        at = [rng.randrange(0, 4000 - size, 4) for _ in range(64)]
        m0, offset, on = 150000, 12, rng.getrandbits(64)
        v[3], v[4] = at, 0
        if op == "buffer":
            code = struct.pack("<2I", 0xe0000000 | 0x17 << 18 | 0x1000 | 1 << 16 | offset, 2 << 16 | 0x80 << 24 | 3)
        else:
            code = struct.pack("<2I", 0xdc008000 | CODES[op][1] << 18 | offset, 8 << 16 | 3)
        scalars = {M0: m0, 8: MEMORY & M32, 9: MEMORY >> 32, 10: 4096, 11: 0x27000}
        want = bytearray(lds)
        for lane in range(64):
            if on >> lane & 1:
                data = memory[at[lane] + offset:at[lane] + offset + size]
                whole = int.from_bytes(data, "little", signed=has_sign) & ((1 << 8 * room) - 1)
                want[m0 + offset + lane * room:m0 + offset + (lane + 1) * room] = whole.to_bytes(room, "little")
        r = t.step(op, code, v, on=on, lds=bytes(lds), memory=memory, scalars=scalars)
        t.expect(op, not r.status and r.lds == want and np.array_equal(r.v, v), r.text)
    op = "BUFFER_ATOMIC_PK_ADD_BF16"
    memory, v = bytearray(4096), t.words()
    halves = [[rng.randint(-15, 15) for _ in range(2)] for _ in range(64)]
    v[3] = [4 * (lane % 16) for lane in range(64)]
    v[5] = [sum(BF16.round(Fraction(n)) << 16 * i for i, n in enumerate(two)) for two in halves]
    want = bytearray(memory)
    for lane in range(16):
        total = [sum(halves[x][i] for x in range(lane, 64, 16)) for i in range(2)]
        want[4 * lane:4 * lane + 4] = struct.pack("<2H", *(BF16.round(Fraction(n)) for n in total))
    code = struct.pack("<2I", 0xe0000000 | CODES[op][1] << 18 | 0x1000, 2 << 16 | 0x80 << 24 | 5 << 8 | 3)
    r = t.step(op, code, v, memory=bytes(memory), scalars={8: MEMORY & M32, 9: MEMORY >> 32, 10: 4096, 11: 0x27000})
    t.expect(op, not r.status and r.memory == want, r.text)


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    tester = Tester(emulator, sys.argv[2] if len(sys.argv) > 2 else "1")

    def test(t):
        for op in NEW:
            if "F8F6F4" in op:
                for cbsz in range(5):
                    for blgp in range(5):
                        check_formats(t, op, cbsz, blgp, t.rng.choice((0, 1, 1, 2)))
            elif re.match("V_S?MFMA", op) and "SCALE" not in op:
                check_product(t, op, t.rng.getrandbits(1))
            elif "SCALEF32" in op:
                check_scaled(t, op)
        check_nan_scale(t)
        check_others(t)
        check_memory(t)
        for op in NEW:
            t.expect(op, op in t.done, "there is no check")
    return emulator.run_tests([tester], [test])


if __name__ == "__main__":
    sys.exit(main())
