"""WMMA, SWMMAC and dot products of RDNA 4: every element's place, sums by Python's integers and fractions, recordings of
hardware. Usage: matrix_rdna4_test.py [emu_step]
"""
import random
import sys
from fractions import Fraction

import numpy as np

from emulator import EXEC, Checks, Emulator, assemble
from floats import BF16, F16, F32, M32, signed
from opcodes_rdna4 import OFP8

TARGET = "gfx1201"

# Where elements are, as AMD's matrix instruction calculator prints it for RDNA 4 (register, lowest bit, lane):
# of A by row i and column k of the dense matrix, of B likewise by column j; of a sparse A, the first of the two elements
# that stand for the four from k on, and the lowest bit of their indices.
PLACES = {
    # bits of an element, K, waves of 32 or 64 lanes
    (16, 16, 32): lambda i, k: (2 * (k // 8) + k // 2 % 2, 16 * (k % 2), 16 * (k // 4 % 2) + i),
    (16, 16, 64): lambda i, k: (k // 2 % 2, 16 * (k % 2), 32 * (k // 8 % 2) + 16 * (k // 4 % 2) + i),
    (8, 16, 32): lambda i, k: (k // 4 % 2, 8 * (k % 4), 16 * (k // 8) + i),
    (8, 16, 64): lambda i, k: (0, 8 * (k % 4), 32 * (k // 4 % 2) + 16 * (k // 8 % 2) + i),
    (4, 16, 32): lambda i, k: (0, 4 * (k % 8), 16 * (k // 8) + i),
    (4, 16, 64): lambda i, k: (0, 4 * (k % 8), 16 * (k // 8) + i),
    (4, 32, 32): lambda i, k: (k // 8 % 2, 4 * (k % 8), 16 * (k // 16) + i),
    (4, 32, 64): lambda i, k: (0, 4 * (k % 8), 32 * (k // 8 % 2) + 16 * (k // 16 % 2) + i),
    # B beside a sparse A
    (16, 32, 32): lambda i, k: (4 * (k // 16) + k // 2 % 4, 16 * (k % 2), 16 * (k // 8 % 2) + i),
    (16, 32, 64): lambda i, k: (k // 2 % 4, 16 * (k % 2), 16 * (k // 8) + i),
    (8, 32, 32): lambda i, k: (k // 4 % 4, 8 * (k % 4), 16 * (k // 16) + i),
    (8, 32, 64): lambda i, k: (k // 4 % 2, 8 * (k % 4), 32 * (k // 8 % 2) + 16 * (k // 16) + i),
    (4, 64, 32): lambda i, k: (k // 8 % 4, 4 * (k % 8), 16 * (k // 32) + i),
    (4, 64, 64): lambda i, k: (k // 8 % 2, 4 * (k % 8), 32 * (k // 16 % 2) + 16 * (k // 32) + i),
}
SPARSE = {  # (register, lowest bit of two elements, lane, lowest bit of their indices)
    (16, 32, 32): lambda i, k: (2 * (k // 16) + k // 4 % 2, 0, 16 * (k // 8 % 2) + i, 8 * (k // 16) + 4 * (k // 4 % 2)),
    (16, 32, 64): lambda i, k: (k // 4 % 2, 0, 16 * (k // 8) + i, 4 * (k // 4 % 2)),
    (8, 32, 32): lambda i, k: (k // 8 % 2, 16 * (k // 4 % 2), 16 * (k // 16) + i, 4 * (k // 4 % 4)),
    (8, 32, 64): lambda i, k: (0, 16 * (k // 4 % 2), 32 * (k // 8 % 2) + 16 * (k // 16) + i, 4 * (k // 4 % 2)),
    (4, 32, 32): lambda i, k: (0, 8 * (k // 4 % 4), 16 * (k // 16) + i, 4 * (k // 4 % 4)),
    (4, 32, 64): lambda i, k: (0, 8 * (k // 4 % 4), 16 * (k // 16) + i, 4 * (k // 4 % 4)),
    (4, 64, 32): lambda i, k: (k // 16 % 2, 8 * (k // 4 % 4), 16 * (k // 32) + i, 4 * (k // 4 % 8)),
    (4, 64, 64): lambda i, k: (0, 8 * (k // 4 % 4), 32 * (k // 16 % 2) + 16 * (k // 32) + i, 4 * (k // 4 % 4)),
}


def place_of_d(wave, half, i, j):
    """(register, lowest bit, lane) of C and D."""
    lane = 16 * (i // 8) + j + (32 * (i // 4 % 2) if wave == 64 else 0)
    registers = 8 if wave == 32 else 4
    return (i // 2 % (registers // 2), 16 * (i % 2), lane) if half else (i % registers, 0, lane)


# ---- sums, as recorded on gfx1201: each product on its own grid, pairs, then all of them and the addend on one

class Value:
    """units times 2^grid; onto a coarser grid it is rounded down."""

    def __init__(self, units, grid):
        self.units, self.grid = units, grid

    def onto(self, grid):
        return self.units >> grid - self.grid if grid >= self.grid else self.units << self.grid - grid


def factor(f, bits):
    field = bits >> f.fraction & (1 << f.exponent) - 1
    return f.value(bits), max(field, 1) - f.bias


def product(f, a, b):
    (x, ex), (y, ey) = factor(f, a), factor(f, b)
    if not x * y:
        return None
    grid = ex + ey - 24
    units = x * y / Fraction(2) ** grid
    assert units.denominator == 1
    return Value(int(units), grid)


def infinite_sum(f, pairs, c):
    """What infinities and NaN make of it; None where there are none."""
    infinities = set()
    if any(f.nan(v) for pair in pairs for v in pair):
        return 0xffc00a3d
    invalid = False
    for a, b in pairs:
        if f.infinite(a) or f.infinite(b):
            invalid |= not a & ~f.sign or not b & ~f.sign
            infinities.add((a ^ b) & f.sign)
    if invalid or len(infinities) == 2:
        return 0xffc00000
    if F32.nan(c):
        return c | F32.quiet
    infinities = {bool(x) for x in infinities} | ({bool(c & F32.sign)} if F32.infinite(c) else set())
    return None if not infinities else 0xffc00000 if len(infinities) == 2 else 0xff800000 if True in infinities else F32.inf


def narrow(bits, result):
    """An infinity or NaN of 32 bits as 16."""
    if result == "f32":
        return bits
    if bits == 0xffc00a3d:
        return 0xfffd if result == "bf16" else 0xfe3d
    return bits >> 16 if result == "bf16" else bits >> 16 & 0x8000 | 0x7c00 | bits >> 13 & 0x3ff


def step(f, pairs, c, result="f32", saturates=False):
    """pairs: 2 or 4 of factors' bits; c: a float's bits."""
    special = infinite_sum(f, pairs, c)
    if special is not None:
        return narrow(special, result)
    products = [product(f, a, b) for a, b in pairs]
    sums = []
    for two in zip(products[::2], products[1::2]):
        there = [p for p in two if p]
        if there:
            grid = max(p.grid for p in there)
            sums.append(Value(sum(p.onto(grid) for p in there), grid))
    floor = -14 if result == "f16" else -126
    exponent = max(c >> 23 & 255, 1) - 150
    units = int(F32.value(c) / Fraction(2) ** exponent)
    top = exponent + abs(units).bit_length() - 1 if units else -1024
    grid = max([s.grid for s in sums] + [max(top, floor) - 26])
    addend = Value(units, exponent).onto(grid)
    if grid > floor and addend == -1 and abs(units) >> grid - exponent == 0:
        addend = 0
    total = addend + sum(s.onto(grid) for s in sums)
    exact = Fraction(total) * Fraction(2) ** grid
    if result == "f16":
        bits = F16.round(exact)
        bits = bits - 1 if saturates and F16.infinite(bits) else bits
        return bits if bits & ~F16.sign else 0
    bits = F32.round(exact)
    bits = bits if bits & ~F32.sign else 0
    return bits >> 16 if result == "bf16" else bits


def widened(bits, result):
    if result == "f32":
        return bits
    if result == "bf16":
        return bits << 16
    if F16.nan(bits) or F16.infinite(bits):
        return (bits & 0x8000) << 16 | F32.inf | (bits & 0x3ff) << 13
    return F32.round(F16.value(bits), bool(bits & F16.sign))


# V_DOT2 on a Radeon AI PRO R9700: (a, b, c, result). Facts recorded by the rocjitsu project, ROCm/rocm-systems,
# emulation/rocjitsu/tests/fixtures/float_dot/gfx1201_cases.h.
RECORDED = {
    "v_dot2_f32_f16": [
        (0x48004200, 0x44004800, 0xbf800000, 0x425c0000), (0xc800c200, 0x44004800, 0x3f800000, 0xc25c0000),
        (0x3c00bc00, 0x3c003c00, 0x3f800000, 0x3f800000), (0x3c003c00, 0x3c003c00, 0xc0000000, 0x00000000),
        (0x3c003c00, 0x3c003c00, 0x7f812345, 0x7fc12345), (0x3c007c01, 0x3c003c00, 0x00000000, 0xffc00a3d),
        (0x3c007c00, 0x3c000000, 0x7fc12345, 0xffc00000), (0xfc007c00, 0x3c003c00, 0x7fc12345, 0xffc00000),
        (0x00000001, 0x3c000001, 0x00000000, 0x27800000), (0x00000001, 0x3c008001, 0x00000000, 0xa7800000),
        (0xeb9b023d, 0x803b6249, 0xf96d2663, 0xf96d2663), (0x058ef3f3, 0x2b241c4a, 0xb8eed486, 0xc2886106),
        (0xcd6c4d6c, 0x78af78af, 0x00000000, 0x00000000), (0x84950495, 0x3d283d28, 0x80000000, 0x00000000),
        (0xbc003c00, 0x0001fbff, 0x7f800000, 0x7f800000), (0x8000fc00, 0x04013c00, 0x00800000, 0xff800000)],
    "v_dot2_f32_bf16": [
        (0x41004040, 0x40804100, 0xbf800000, 0x425c0000), (0x00800000, 0x3f808000, 0x00000001, 0x00800001),
        (0x00000001, 0x3f804980, 0x00000000, 0x07000000), (0xff7f7f7f, 0x7f7f7f7f, 0x00000000, 0x00000000),
        (0xf9e2d6b1, 0xe2adf60c, 0xeddb846f, 0x7f800000), (0x49b3fce2, 0x573a122b, 0x246a3c33, 0x61820e00),
        (0xc395629b, 0xd9633359, 0xdc60025c, 0x5d504184), (0xff940080, 0x8001ffec, 0xff800000, 0xffc00a3d),
        (0x2061bc39, 0x96b40093, 0x0056dd77, 0x00553463), (0x81ff0e0d, 0x12cc2d3b, 0x007a3a08, 0x007a6d87),
        (0x37d6ba90, 0x8901852c, 0x80800007, 0x81674c04), (0x08e7393d, 0xb7d307aa, 0x80800005, 0x8006c205),
        (0x0364bc8c, 0x3c468385, 0x807ffffe, 0x0069a402), (0x993b1798, 0x263ca825, 0x00800000, 0x8026a200),
        (0x31c03a01, 0x0dfd8564, 0x007ffffe, 0x00a56dfe), (0x8129061c, 0xbfaab964, 0x007ffffd, 0x017db7fe),
        (0x8522326b, 0xbbd88d2f, 0x00800002, 0x01949b60), (0xafebac5f, 0x8fe594b6, 0x80800002, 0x0198d0e0),
        (0x0d040199, 0xb3fb3e6b, 0x807ffff8, 0x817c9e7c), (0x889d8fb2, 0xb704b02a, 0x00800007, 0x01239404),
        (0xa5e88082, 0x9b613ea3, 0x00800002, 0x01e18f40), (0x98ea1190, 0x2720af4c, 0x80800004, 0x81b75001),
        (0x2dd81116, 0x924aaedf, 0x807ffffa, 0x81568cfd)],
}
# One element of a product there: a row, a column, the addend, results in waves of 32 and of 64 lanes. They differ because
# the recording's element k lay in lane k // 8 (32) or k // 4 (64) of its row, four or two registers one behind the other.
RECORDED_WMMA = [
    ("f16", "bd5336b82ae6b1d2c7a452afd2334594290547cdb74f56cc35d23da7ac54ab6a",
     "c1424be3d4664f40af92c2ba5479414f3144a72ec63b337d466126c65512b324", 0x3f4725a9, 0xc56665fb, 0xc56665fb),
    ("f16", "cde1c31ac66b3710a4a1c2a9d3164cd335a2456ebce52641289433a0b47a46be",
     "34184131ae4dc8003dbfcb88d6342497b526c7133efa2f4dcd4e4276388abfcf", 0x3d062256, 0x45af2530, 0x45af2530),
    ("f16", "c6e1b1ead31d2d4f4a45d1f13362c2444a75443e56234ec357c7b82ecf343660",
     "d36cc8862f3d30a3d070b2cb4759cf274ed43c97ae37b63f35f03a25b0d8405a", 0xbf6ba3b9, 0x43dfc44b, 0x43dfc44a),
    ("f16", "98443f7a606fc18cbe5b891fbbfb93b8c3c632f2f44e15cf5eeb2b558befa075",
     "8e88ec18d3c2f6ae0cdb87c5458758256e7d8ab58773410891c2398762abfbad", 0x48e26837, 0x48e6175e, 0x48e6175f),
    ("bf16", "bfaa3ed73d5cbe3ac0f44255c24640b23d2040f9bee942d93eba3fb4bd8abd6d",
     "c028417cc28c41e8bdf2c057428f40293e28bce5c0c73e6f40cc3cd842a2be64", 0x3f4725a9, 0xc565bd89, 0xc565bd8a),
    ("bf16", "c0dcbe3dc2633da94148c23e3e6cc048414e408742c441d842f8bf05c1e63ecc",
     "c26dc1103de73e14c20ebe5940ebc1e441da3f92bdc6bec73ebe3f44be1b400b", 0xbf6ba3b9, 0x43dea4e6, 0x43dea4e7),
    ("bf16", "98443f7a606fc18cbe5b891fbbfb93b8c3c632f2f44e15cf5eeb2b558befa075",
     "8e88ec18d3c2f6ae0cdb87c5458758256e7d8ab58773410891c2398762abfbad", 0x48e26837, 0x78bd8ea7, 0x78bd8ea7),
]


class Tester(Checks):
    def __init__(self, emulator, wave):
        super().__init__(f"{TARGET} wave{wave}")
        self.emulator, self.wave = emulator, wave
        self.rng = random.Random(f"{TARGET} {wave}")

    def run_all(self, code, v):
        return self.run(code, v, mask=(1 << self.wave) - 1)

    def run(self, code, v, mode=0xf0, mask=None):
        s = [0] * 128
        mask = self.rng.getrandbits(self.wave) if mask is None else mask  # of no matter to matrices
        s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
        r = self.emulator.step(TARGET, code, s, v, mode=mode)
        self.expect("status", r.status == 0, r.text)
        return r

    def registers(self, count):
        return np.array([[self.rng.getrandbits(32) for _ in range(self.wave)] for _ in range(count)], np.uint32)


def put(v, base, spot, bits, value):
    register, low, lane = spot[:3]
    mask = (1 << bits) - 1 << low
    v[base + register, lane] = int(v[base + register, lane]) & ~mask & M32 | value << low & mask


def number(rng, f, how):
    """A factor's bits: ordinary, far apart, or anything."""
    if how == 2:
        return rng.choice((0, f.sign, 1, f.inf, f.sign | f.inf, f.inf | 1, f.inf - 1, rng.getrandbits(f.bits)))
    spread = 2 if how == 0 else 9
    return rng.getrandbits(1) * f.sign | f.bias + rng.randint(-spread, spread) << f.fraction | rng.getrandbits(f.fraction)


KINDS = {"f16": (F16, 16), "bf16": (BF16, 16), "fp8": (OFP8["FP8"], 8), "bf8": (OFP8["BF8"], 8), "iu8": (None, 8), "iu4": (None, 4)}


def as_half(kind, bits):
    """The half's bits of an 8-bit float."""
    small = KINDS[kind][0]
    value = small.decode(bits)
    if isinstance(value, tuple):
        return (bits & 0x80) << 8 | (0x7c00 if value[1] == "inf" else 0x7e00)
    return F16.round(value, bool(bits & 0x80))


class Form:
    """An instruction by its name's parts: v_wmma_f32_16x16x16_f16."""

    def __init__(self, name):
        parts = name.split("_")
        self.name, self.sparse, self.result = name, parts[1] == "swmmac", parts[2]
        self.depth = int(parts[3].split("x")[2])
        self.kinds = (parts[4], parts[5] if len(parts) > 5 else parts[4])
        self.bits = KINDS[self.kinds[0]][1]
        self.integer = self.result == "i32"


NAMES = ["v_wmma_" + n for n in (
    "f32_16x16x16_f16", "f32_16x16x16_bf16", "f16_16x16x16_f16", "bf16_16x16x16_bf16", "i32_16x16x16_iu8",
    "i32_16x16x16_iu4", "i32_16x16x32_iu4", "f32_16x16x16_fp8_fp8", "f32_16x16x16_fp8_bf8", "f32_16x16x16_bf8_fp8",
    "f32_16x16x16_bf8_bf8")] + ["v_swmmac_" + n for n in (
        "f32_16x16x32_f16", "f32_16x16x32_bf16", "f16_16x16x32_f16", "bf16_16x16x32_bf16", "i32_16x16x32_iu8",
        "i32_16x16x32_iu4", "i32_16x16x64_iu4", "f32_16x16x32_fp8_fp8", "f32_16x16x32_fp8_bf8", "f32_16x16x32_bf8_fp8",
        "f32_16x16x32_bf8_bf8")]


def span(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def text_of(form, wave, key, modifiers):
    """A at v0, B at v8, C or the indices at v24, D at v32."""
    def registers(count, bits):
        return span({"a": 0, "b": 8, "c": 24, "d": 32}[count], max(1, bits // (32 * wave)))
    a = 16 * form.depth * form.bits // (2 if form.sparse else 1)
    narrow_result = form.result in ("f16", "bf16")
    d = registers("d", 256 * (16 if narrow_result else 32))
    last = "v24" if form.sparse else registers("c", 256 * (16 if narrow_result else 32))
    more = f" index_key:{key}" * bool(key)
    return f"{form.name} {d}, {registers('a', a)}, {registers('b', 16 * form.depth * form.bits)}, {last}{more}{modifiers}"


def fill(t, form, key, how):
    """Registers, and the matrices that they hold: a and b dense, c."""
    rng, wave, v = t.rng, t.wave, t.registers(48)
    depth, bits = form.depth, form.bits
    def draw(kind):
        if kind in ("f16", "bf16"):
            return number(rng, KINDS[kind][0], how)
        return rng.getrandbits(bits)
    a = [[0] * depth for _ in range(16)]
    order = [[] for _ in range(16)]  # of a row of A: which k, in the order of the sum
    b = [[draw(form.kinds[1]) for _ in range(depth)] for _ in range(16)]
    for i in range(16):
        for k in range(depth):
            put(v, 8, PLACES[bits, depth, wave](i, k), bits, b[i][k])
            if not form.sparse:
                a[i][k] = draw(form.kinds[0])
                put(v, 0, PLACES[bits, depth, wave](i, k), bits, a[i][k])
                order[i].append(k)
        for k in range(0, depth if form.sparse else 0, 4):
            register, low, lane, index = SPARSE[bits, depth, wave](i, k)
            chosen = sorted(rng.sample(range(4), 2))
            key_bits = (1024 if depth == 64 else 512) // wave
            for n, c in enumerate(chosen):
                a[i][k + c] = draw(form.kinds[0])
                put(v, 0, (register, low + n * bits, lane), bits, a[i][k + c])
                put(v, 24, (0, (key_bits * key + index + 2 * n) % 32, lane), 2, c)
                order[i].append(k + c)
    half = form.result in ("f16", "bf16")
    c = [[0] * 16 for _ in range(16)]
    for i in range(16):
        for j in range(16):
            f = {"f16": F16, "bf16": BF16}.get(form.result, F32)
            c[i][j] = rng.choice((rng.getrandbits(32), 0x7fffff00, 7)) if form.integer else number(rng, f, how)
            put(v, 32 if form.sparse else 24, place_of_d(wave, half, i, j), 16 if half else 32, c[i][j])
    return v, a, b, c, order


def expected(form, a, b, c, order, neg, modifiers, saturates):
    """One element of D."""
    if form.integer:
        x, y = ([signed(z, form.bits) if s else z for z in zs] for zs, s in zip((a, b), neg))
        total = signed(c) + sum(x[k] * y[k] for k in order)
        return (max(-2**31, min(2**31 - 1, total)) if "clamp" in modifiers else total) & M32
    kind = form.kinds[0]
    f = KINDS[kind][0] if kind in ("f16", "bf16") else F16
    pairs = [(a[k] if form.bits == 16 else as_half(form.kinds[0], a[k]), b[k] if form.bits == 16 else
              as_half(form.kinds[1], b[k])) for k in order]
    if neg[0]:
        pairs = [(x ^ f.sign, y) for x, y in pairs]
    for n in range(0, 16, 4):
        c = step(f, pairs[n:n + 4], widened(c, form.result), form.result, saturates)
    return c


def test_products(t):
    cases = []
    for form in map(Form, NAMES):
        keys = 1 if not form.sparse or (t.wave == 64 and form.bits == 4 and form.depth == 32) else (
            32 // ((1024 if form.depth == 64 else 512) // t.wave))
        variants = [("", (0, 0)), (" neg_lo:[1,0,0] clamp", (1, 0)), (" neg_lo:[1,1,0]", (1, 1))] if form.integer else (
            [("", (0, 0)), (" neg_lo:[1,0,0] neg_hi:[1,0,0]", (1, 0))] if form.bits == 16 else [("", (0, 0))])
        for i, (modifiers, neg) in enumerate(variants):
            key = min(i, 1) * (keys - 1)
            cases.append((form, key, modifiers, neg))
    lines = [text_of(form, t.wave, key, modifiers) for form, key, modifiers, _ in cases]
    for (form, key, modifiers, neg), code, line in zip(cases, assemble(TARGET, lines, t.wave), lines):
        for how in range(1 if form.integer else 3):
            v, a, b, c, order = fill(t, form, key, how)
            saturates = how == 1 and form.result == "f16"
            r = t.run(code, v, mode=0xf0 | saturates << 23)
            half, wrong, want_v = form.result in ("f16", "bf16"), [], v.copy()
            share = range(16) if form.integer else t.rng.sample(range(16), 4)  # rows; fractions take their time
            for i in range(16):
                for j in range(16):
                    spot = place_of_d(t.wave, half, i, j)
                    got = int(r.v[32 + spot[0], spot[2]]) >> spot[1] & (0xffff if half else M32)
                    put(want_v, 32, spot, 16 if half else 32, got)
                    if i in share:
                        want = expected(form, a[i], b[j], c[i][j], order[i], neg, modifiers, saturates)
                        if got != want:
                            wrong.append(f"({i}, {j}): {got:#x}, should be {want:#x}")
            t.expect(f"{line} {how}", not wrong and np.array_equal(want_v, r.v), f"{len(wrong)}: {wrong[:3]}")


def test_dots(t):
    forms = [("v_dot2_f32_f16", F16, "f32"), ("v_dot2_f32_bf16", BF16, "f32"), ("v_dot2_f16_f16", F16, "f16"),
             ("v_dot2_bf16_bf16", BF16, "bf16")]
    lines = [f"{name} v8, v0, v2, v4" for name, _, _ in forms]
    for (name, f, result), code in zip(forms, assemble(TARGET, lines, t.wave)):
        for how in range(3):
            v = t.registers(16)
            for l in range(t.wave):
                for register in (0, 2):
                    v[register, l] = number(t.rng, f, how) | number(t.rng, f, how) << 16
                v[4, l] = number(t.rng, F32, how) if result == "f32" else number(t.rng, f, how)
            r = t.run_all(code, v)
            for l in range(t.wave):
                a, b, c = (int(v[i, l]) for i in (0, 2, 4))
                pairs = [(a & 0xffff, b & 0xffff), (a >> 16, b >> 16)]
                want = step(f, pairs, widened(c if result == "f32" else c & 0xffff, result), result)
                got = int(r.v[8, l]) & (M32 if result == "f32" else 0xffff)
                t.expect(name, got == want, f"{a:#x} {b:#x} {c:#x}: {got:#x}, should be {want:#x}")
    for a_kind in ("fp8", "bf8"):
        for b_kind in ("fp8", "bf8"):
            for modifiers in ("", " neg_lo:[0,0,1] neg_hi:[0,0,1]"):
                line = f"v_dot4_f32_{a_kind}_{b_kind} v8, v0, v2, v4{modifiers}"
                code, = assemble(TARGET, [line], t.wave)
                v = t.registers(16)
                for l in range(t.wave):
                    v[4, l] = number(t.rng, F32, l % 3)
                r = t.run_all(code, v)
                for l in range(t.wave):
                    a, b, c = (int(v[i, l]) for i in (0, 2, 4))
                    c = c | F32.sign if modifiers else c
                    pairs = [(as_half(a_kind, a >> 8 * i & 255), as_half(b_kind, b >> 8 * i & 255)) for i in range(4)]
                    want, got = step(F16, pairs, c), int(r.v[8, l])
                    t.expect(line, got == want, f"{a:#x} {b:#x} {c:#x}: {got:#x}, should be {want:#x}")


def test_recorded(t):
    for name, cases in RECORDED.items():
        code, = assemble(TARGET, [f"{name} v8, v0, v2, v4"], t.wave)
        v = np.zeros((16, t.wave), np.uint32)
        for lane, (a, b, c, _) in enumerate(cases):
            v[0, lane], v[2, lane], v[4, lane] = a, b, c
        r = t.run_all(code, v)
        for lane, (a, b, c, want) in enumerate(cases):
            t.expect(name, int(r.v[8, lane]) == want, f"{a:#x} {b:#x} {c:#x}: {int(r.v[8, lane]):#x}, hardware {want:#x}")
    per_lane, registers = 512 // t.wave // 2, 256 // t.wave
    for kind, a, b, c, *want in RECORDED_WMMA:
        line = f"v_wmma_f32_16x16x16_{kind} v[32:{31 + registers}], v[0:{per_lane // 2 - 1}], v[8:{7 + per_lane // 2}], " \
            f"v[24:{23 + registers}]"
        code, = assemble(TARGET, [line], t.wave)
        v = np.zeros((48, t.wave), np.uint32)
        for base, row in ((0, a), (8, b)):
            for k in range(16):
                put(v, base, (k % per_lane // 2, 16 * (k % 2), 16 * (k // per_lane)), 16, int(row[4 * k:4 * k + 4], 16))
        v[24:24 + registers] = c
        got, hardware = int(t.run(code, v).v[32, 0]), want[t.wave == 64]
        t.expect(line, got == hardware, f"{got:#x}, hardware {hardware:#x}")


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    return emulator.run_tests((Tester(emulator, wave) for wave in (32, 64)), (test_products, test_dots, test_recorded))


if __name__ == "__main__":
    sys.exit(main())
