"""Instructions against values computed in Python integers and fractions, never with the emulator's own arithmetic.

Each instruction runs on a whole wave: lanes hold NaN of both kinds, infinities, denormals, signed zeros, extremes and
random bits, EXEC has holes, and what must not change is compared too. Usage: semantics_test.py [emu_step] [seed]
"""
import math
import random
import sys
from fractions import Fraction

import numpy as np

from emulator import EXEC, MEMORY, VCC, Emulator, assemble
from floats import (F16, F32, F64, M32, M64, SPECIAL, add, clamp, class_bits, convert, first_nan, fma, fract, frexp,
                    ldexp, leading, multiply, order, permute, pick, sign_run, signed, to_integer, whole)


# name: (kinds of the sources, kind of the destination, function). Kinds: u, i 32-bit; l 64-bit; f, d, h floats.
VECTOR = {
    "v_mov_b32": ("u", "u", lambda a: a),
    "v_not_b32": ("u", "u", lambda a: ~a),
    "v_bfrev_b32": ("u", "u", lambda a: int(f"{a:032b}"[::-1], 2)),
    "v_ffbh_u32|v_clz_i32_u32": ("u", "u", leading),
    "v_ffbl_b32|v_ctz_i32_b32": ("u", "u", lambda a: (a & -a).bit_length() - 1),
    "v_ffbh_i32|v_cls_i32": ("u", "u", sign_run),
    "v_add_nc_u32": ("uu", "u", lambda a, b: a + b),
    "v_sub_nc_u32": ("uu", "u", lambda a, b: a - b),
    "v_subrev_nc_u32": ("uu", "u", lambda a, b: b - a),
    "v_mul_lo_u32": ("uu", "u", lambda a, b: a * b),
    "v_mul_hi_u32": ("uu", "u", lambda a, b: a * b >> 32),
    "v_mul_hi_i32": ("uu", "u", lambda a, b: signed(a) * signed(b) >> 32),
    "v_mul_u32_u24": ("uu", "u", lambda a, b: (a & 0xffffff) * (b & 0xffffff)),
    "v_mul_i32_i24": ("uu", "u", lambda a, b: signed(a, 24) * signed(b, 24)),
    "v_mul_hi_u32_u24": ("uu", "u", lambda a, b: (a & 0xffffff) * (b & 0xffffff) >> 32),
    "v_mul_hi_i32_i24": ("uu", "u", lambda a, b: signed(a, 24) * signed(b, 24) >> 32),
    "v_mad_u32_u24": ("uuu", "u", lambda a, b, c: (a & 0xffffff) * (b & 0xffffff) + c),
    "v_mad_i32_i24": ("uuu", "u", lambda a, b, c: signed(a, 24) * signed(b, 24) + c),
    "v_and_b32": ("uu", "u", lambda a, b: a & b),
    "v_or_b32": ("uu", "u", lambda a, b: a | b),
    "v_xor_b32": ("uu", "u", lambda a, b: a ^ b),
    "v_xnor_b32": ("uu", "u", lambda a, b: ~(a ^ b)),
    "v_lshlrev_b32": ("uu", "u", lambda a, b: b << (a & 31)),
    "v_lshrrev_b32": ("uu", "u", lambda a, b: b >> (a & 31)),
    "v_ashrrev_i32": ("uu", "u", lambda a, b: signed(b) >> (a & 31)),
    "v_min_i32": ("uu", "u", lambda a, b: min(signed(a), signed(b))),
    "v_max_i32": ("uu", "u", lambda a, b: max(signed(a), signed(b))),
    "v_min_u32": ("uu", "u", min),
    "v_max_u32": ("uu", "u", max),
    "v_min3_i32": ("uuu", "u", lambda a, b, c: min(signed(a), signed(b), signed(c))),
    "v_max3_u32": ("uuu", "u", max),
    "v_med3_i32": ("uuu", "u", lambda a, b, c: sorted((signed(a), signed(b), signed(c)))[1]),
    "v_med3_u32": ("uuu", "u", lambda a, b, c: sorted((a, b, c))[1]),
    "v_add3_u32": ("uuu", "u", lambda a, b, c: a + b + c),
    "v_lshl_add_u32": ("uuu", "u", lambda a, b, c: (a << (b & 31)) + c),
    "v_add_lshl_u32": ("uuu", "u", lambda a, b, c: ((a + b) & M32) << (c & 31)),
    "v_lshl_or_b32": ("uuu", "u", lambda a, b, c: (a << (b & 31)) | c),
    "v_and_or_b32": ("uuu", "u", lambda a, b, c: (a & b) | c),
    "v_or3_b32": ("uuu", "u", lambda a, b, c: a | b | c),
    "v_xor3_b32": ("uuu", "u", lambda a, b, c: a ^ b ^ c),
    "v_xad_u32": ("uuu", "u", lambda a, b, c: (a ^ b) + c),
    "v_bfe_u32": ("uuu", "u", lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1)),
    "v_bfe_i32": ("uuu", "u", lambda a, b, c: signed(signed(a) >> (b & 31), c & 31) if c & 31 else 0),
    "v_bfi_b32": ("uuu", "u", lambda a, b, c: (a & b) | (~a & c)),
    "v_bfm_b32": ("uu", "u", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31)),
    "v_alignbit_b32": ("uuu", "u", lambda a, b, c: (a << 32 | b) >> (c & 31)),
    "v_alignbyte_b32": ("uuu", "u", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3)),
    "v_perm_b32": ("uuu", "u", permute),
    "v_bcnt_u32_b32": ("uu", "u", lambda a, b: bin(a).count("1") + b),
    "v_sad_u8": ("uuu", "u", lambda a, b, c: sum(abs((a >> s & 255) - (b >> s & 255)) for s in (0, 8, 16, 24)) + c),
    "v_lshlrev_b64": ("ul", "l", lambda a, b: b << (a & 63)),
    "v_lshrrev_b64": ("ul", "l", lambda a, b: b >> (a & 63)),
    "v_ashrrev_i64": ("ul", "l", lambda a, b: signed(b, 64) >> (a & 63)),
    "v_add_f32": ("ff", "f", lambda a, b: add(F32, a, b)),
    "v_sub_f32": ("ff", "f", lambda a, b: add(F32, a, b ^ F32.sign if not F32.nan(b) else b)),
    "v_subrev_f32": ("ff", "f", lambda a, b: add(F32, b, a ^ F32.sign) if not (F32.nan(a) or F32.nan(b)) else
                     first_nan(F32, a, b)),
    "v_mul_f32": ("ff", "f", lambda a, b: multiply(F32, a, b)),
    "v_fma_f32": ("fff", "f", lambda a, b, c: fma(F32, a, b, c)),
    "v_min_f32": ("ff", "f", lambda a, b: pick(F32, a, b, False)),
    "v_max_f32": ("ff", "f", lambda a, b: pick(F32, a, b, True)),
    "v_max3_f32": ("fff", "f", lambda a, b, c: pick(F32, pick(F32, a, b, True), c, True)),
    "v_min3_f32": ("fff", "f", lambda a, b, c: pick(F32, pick(F32, a, b, False), c, False)),
    "v_floor_f32": ("f", "f", lambda a: whole(F32, a, "floor")),
    "v_ceil_f32": ("f", "f", lambda a: whole(F32, a, "ceil")),
    "v_trunc_f32": ("f", "f", lambda a: whole(F32, a, "trunc")),
    "v_rndne_f32": ("f", "f", lambda a: whole(F32, a, "rndne")),
    "v_fract_f32": ("f", "f", lambda a: fract(F32, a)),
    "v_ldexp_f32": ("fi", "f", lambda a, b: ldexp(F32, a, signed(b))),
    "v_frexp_exp_i32_f32": ("f", "u", lambda a: frexp(F32, a)[0]),
    "v_frexp_mant_f32": ("f", "f", lambda a: frexp(F32, a)[1]),
    "v_add_f64": ("dd", "d", lambda a, b: add(F64, a, b)),
    "v_mul_f64": ("dd", "d", lambda a, b: multiply(F64, a, b)),
    "v_fma_f64": ("ddd", "d", lambda a, b, c: fma(F64, a, b, c)),
    "v_min_f64": ("dd", "d", lambda a, b: pick(F64, a, b, False)),
    "v_max_f64": ("dd", "d", lambda a, b: pick(F64, a, b, True)),
    "v_floor_f64": ("d", "d", lambda a: whole(F64, a, "floor")),
    "v_ceil_f64": ("d", "d", lambda a: whole(F64, a, "ceil")),
    "v_trunc_f64": ("d", "d", lambda a: whole(F64, a, "trunc")),
    "v_rndne_f64": ("d", "d", lambda a: whole(F64, a, "rndne")),
    "v_fract_f64": ("d", "d", lambda a: fract(F64, a)),
    "v_ldexp_f64": ("di", "d", lambda a, b: ldexp(F64, a, signed(b))),
    "v_frexp_exp_i32_f64": ("d", "u", lambda a: frexp(F64, a)[0]),
    "v_frexp_mant_f64": ("d", "d", lambda a: frexp(F64, a)[1]),
    "v_add_f16": ("hh", "h", lambda a, b: add(F16, a, b)),
    "v_mul_f16": ("hh", "h", lambda a, b: multiply(F16, a, b)),
    "v_fma_f16": ("hhh", "h", lambda a, b, c: fma(F16, a, b, c)),
    "v_min_f16": ("hh", "h", lambda a, b: pick(F16, a, b, False)),
    "v_max_f16": ("hh", "h", lambda a, b: pick(F16, a, b, True)),
    "v_floor_f16": ("h", "h", lambda a: whole(F16, a, "floor")),
    "v_rndne_f16": ("h", "h", lambda a: whole(F16, a, "rndne")),
    "v_fract_f16": ("h", "h", lambda a: fract(F16, a)),
    "v_frexp_exp_i16_f16": ("h", "h", lambda a: frexp(F16, a)[0] & 0xffff),
    "v_frexp_mant_f16": ("h", "h", lambda a: frexp(F16, a)[1]),
    "v_ldexp_f16": ("hu", "h", lambda a, b: ldexp(F16, a, signed(b, 16))),
    "v_cvt_f32_i32": ("u", "f", lambda a: F32.round(Fraction(signed(a)))),
    "v_cvt_f32_u32": ("u", "f", lambda a: F32.round(Fraction(a))),
    "v_cvt_f64_i32": ("u", "d", lambda a: F64.round(Fraction(signed(a)))),
    "v_cvt_f64_u32": ("u", "d", lambda a: F64.round(Fraction(a))),
    "v_cvt_i32_f32": ("f", "u", lambda a: to_integer(F32, a, -2**31, 2**31 - 1)),
    "v_cvt_u32_f32": ("f", "u", lambda a: to_integer(F32, a, 0, M32)),
    "v_cvt_i32_f64": ("d", "u", lambda a: to_integer(F64, a, -2**31, 2**31 - 1)),
    "v_cvt_u32_f64": ("d", "u", lambda a: to_integer(F64, a, 0, M32)),
    "v_cvt_f16_f32": ("f", "h", lambda a: convert(F16, F32, a)),
    "v_cvt_f32_f16": ("h", "f", lambda a: convert(F32, F16, a)),
    "v_cvt_f64_f32": ("f", "d", lambda a: convert(F64, F32, a)),
    "v_cvt_f32_f64": ("d", "f", lambda a: convert(F32, F64, a)),
    "v_cvt_pkrtz_f16_f32|v_cvt_pk_rtz_f16_f32": ("ff", "u", lambda a, b: convert(F16, F32, a, 3) |
                                                  convert(F16, F32, b, 3) << 16),
    "v_cvt_f16_u16": ("h", "h", lambda a: F16.round(Fraction(a))),
    "v_cvt_f16_i16": ("h", "h", lambda a: F16.round(Fraction(signed(a, 16)))),
    "v_cvt_u16_f16": ("h", "h", lambda a: to_integer(F16, a, 0, 65535)),
    "v_cvt_i16_f16": ("h", "h", lambda a: to_integer(F16, a, -32768, 32767)),
    "v_cvt_f32_ubyte0": ("u", "f", lambda a: F32.round(Fraction(a & 255))),
    "v_cvt_f32_ubyte3": ("u", "f", lambda a: F32.round(Fraction(a >> 24))),
    "v_pack_b32_f16": ("hh", "u", lambda a, b: a | b << 16),
    "v_lshrrev_b16": ("hh", "h", lambda a, b: b >> (a & 15)),
    "v_lshlrev_b16": ("hh", "h", lambda a, b: b << (a & 15)),
    "v_mul_lo_u16": ("hh", "h", lambda a, b: a * b),
    "v_add_nc_u16": ("hh", "h", lambda a, b: a + b),
    "v_med3_f32": ("fff", "f", lambda a, b, c: sorted((a, b, c), key=lambda v: order(F32, v))[1]
                   if not any(F32.nan(v) for v in (a, b, c)) else pick(F32, pick(F32, a, b, False), c, False)),
    "-|v_maxmin_f32": ("fff", "f", lambda a, b, c: pick(F32, pick(F32, a, b, True), c, False)),
}
for packed, one in (("v_pk_add_f16", add), ("v_pk_mul_f16", multiply)):
    VECTOR[packed] = ("uu", "u", lambda a, b, one=one: one(F16, a & 0xffff, b & 0xffff) | one(F16, a >> 16, b >> 16) << 16)
VECTOR["v_pk_fma_f16"] = ("uuu", "u", lambda a, b, c: fma(F16, a & 0xffff, b & 0xffff, c & 0xffff) |
                          fma(F16, a >> 16, b >> 16, c >> 16) << 16)
VECTOR["v_pk_max_f16"] = ("uu", "u", lambda a, b: pick(F16, a & 0xffff, b & 0xffff, True) |
                          pick(F16, a >> 16, b >> 16, True) << 16)
VECTOR["v_pk_min_f16"] = ("uu", "u", lambda a, b: pick(F16, a & 0xffff, b & 0xffff, False) |
                          pick(F16, a >> 16, b >> 16, False) << 16)
for packed, one in (("add_u16", lambda a, b: a + b), ("sub_i16", lambda a, b: a - b), ("mul_lo_u16", lambda a, b: a * b),
                    ("max_i16", lambda a, b: max(signed(a, 16), signed(b, 16))),
                    ("lshlrev_b16", lambda a, b: b << (a & 15)),
                    ("ashrrev_i16", lambda a, b: signed(b, 16) >> (a & 15))):
    VECTOR["v_pk_" + packed] = ("uu", "u", lambda a, b, one=one: one(a & 0xffff, b & 0xffff) & 0xffff |
                                (one(a >> 16, b >> 16) & 0xffff) << 16)

RELATIONS = {"lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
             "lg": lambda a, b: a != b, "ge": lambda a, b: a >= b}


def compares():
    """(mnemonic, kinds, predicate)"""
    for suffix, f, kind in (("f32", F32, "f"), ("f64", F64, "d"), ("f16", F16, "h")):
        def number(v, f=f):
            return Fraction(2) ** 3000 * (-1 if v & f.sign else 1) if f.infinite(v) else f.value(v)
        for name, relation in RELATIONS.items():
            def ordered(a, b, f=f, relation=relation, number=number):
                return not f.nan(a) and not f.nan(b) and relation(number(a), number(b))
            yield f"{name}_{suffix}", kind * 2, ordered
            yield f"n{name.replace('eq', 'eq')}_{suffix}", kind * 2, lambda a, b, o=ordered: not o(a, b)
        yield f"o_{suffix}", kind * 2, lambda a, b, f=f: not f.nan(a) and not f.nan(b)
        yield f"u_{suffix}", kind * 2, lambda a, b, f=f: f.nan(a) or f.nan(b)
        yield f"class_{suffix}", kind + "u", lambda a, b, f=f: bool(class_bits(f, a) & b)
    for bits, kind in ((16, "h"), (32, "u"), (64, "l")):
        for name, relation in RELATIONS.items():
            name = "ne" if name == "lg" else name
            yield f"{name}_u{bits}", kind * 2, relation
            yield f"{name}_i{bits}", kind * 2, lambda a, b, bits=bits, r=relation: r(signed(a, bits), signed(b, bits))


def pattern(kind, rng, lanes):
    bits = {"f": 32, "u": 32, "i": 32, "h": 16, "d": 64, "l": 64}[kind]
    f = {"f": F32, "h": F16, "d": F64}.get(kind)

    def one():
        how = rng.random()
        if how < 0.4:
            return rng.choice(SPECIAL[kind])
        if f and how < 0.8:  # numbers whose sums and products are ordinary
            return f.round(Fraction(rng.uniform(-1, 1)) * Fraction(2) ** rng.randint(-12, 12))
        return rng.getrandbits(bits)
    return [one() for _ in range(lanes)]


class Tester:
    def __init__(self, emulator, target, wave, seed):
        self.emulator, self.target, self.wave = emulator, target, wave
        self.rng = random.Random(seed)
        self.failures, self.checked = [], 0

    def run(self, code, kinds, mode=0x3f0, exec_mask=None, scalars=None):
        """v0.., v2.., v4.. hold the sources; everything else is noise. Returns inputs and the result."""
        lanes = self.wave
        v = np.array([[self.rng.getrandbits(32) for _ in range(lanes)] for _ in range(16)], dtype=np.uint32)
        inputs = []
        for i, kind in enumerate(kinds):
            values = pattern(kind, self.rng, lanes)
            inputs.append(values)
            wide = kind in "dl"
            for l, value in enumerate(values):
                high = v[2 * i, l] & np.uint32(0xffff0000) if kind == "h" else 0
                v[2 * i, l] = (value & M32) | int(high)
                if wide:
                    v[2 * i + 1, l] = value >> 32
        s = [self.rng.getrandbits(32) for _ in range(128)]
        mask = self.rng.getrandbits(lanes) | 1 << self.rng.randrange(lanes) if exec_mask is None else exec_mask
        s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
        for register, value in (scalars or {}).items():
            s[register] = value
        r = self.emulator.step(self.target, code, s, v, mode=mode)
        return inputs, v, s, mask, r

    def expect(self, text, condition, detail=""):
        self.checked += 1
        if not condition:
            self.failures.append(f"{self.target} wave{self.wave} {text}: {detail}")

    def compare_lanes(self, text, inputs, before, mask, r, register, kind, function):
        if r.status:
            self.expect(text, False, r.text)
            return
        for l in range(self.wave):
            old = int(before[register, l]) | (int(before[register + 1, l]) << 32 if kind in "dl" else 0)
            got = int(r.v[register, l]) | (int(r.v[register + 1, l]) << 32 if kind in "dl" else 0)
            want = old
            arguments = [x[l] for x in inputs]
            if mask >> l & 1:
                want = function(*arguments) & (M64 if kind in "dl" else M32)
                if kind == "h":
                    want = (want & 0xffff) | (old & 0xffff0000)
            if got != want:
                self.expect(text, False, f"lane {l} of {[hex(a) for a in arguments]}: {got:#x}, should be {want:#x}")
                return
        self.expect(text, True)
        others = [i for i in range(16) if i != register and not (kind in "dl" and i == register + 1)]
        self.expect(text, np.array_equal(before[others], r.v[others]), "another register changed")


def registers(i, kind):
    return f"v[{2 * i}:{2 * i + 1}]" if kind in "dl" else f"v{2 * i}"


def test_vector(t):
    column = 0 if t.target == "gfx1030" else -1
    names, lines = [], []
    for names_of, (kinds, out, function) in VECTOR.items():
        name = names_of.split("|")[column]
        if name != "-":
            names.append((name, kinds, out, function))
            lines.append(f"{name} {registers(4, out)}, " + ", ".join(registers(i, k) for i, k in enumerate(kinds)))
    for (name, kinds, out, function), code in zip(names, assemble(t.target, lines, t.wave)):
        for _ in range(6):
            inputs, before, _, mask, r = t.run(code, kinds)
            t.compare_lanes(name, inputs, before, mask, r, 8, out, function)


def test_rounding(t):
    """MODE: the four roundings in f32 and f64, and flushed denormals."""
    lines = ["v_add_f32 v8, v0, v2", "v_mul_f32 v8, v0, v2", "v_fma_f32 v8, v0, v2, v4", "v_add_f64 v[8:9], v[0:1], v[2:3]",
             "v_mul_f64 v[8:9], v[0:1], v[2:3]", "v_mul_f16 v8, v0, v2"]
    code = assemble(t.target, lines, t.wave)
    for how in range(4):
        mode = 0x3f0 | how | how << 2
        for line, bits, (kinds, out, function) in zip(lines, code, (
                ("ff", "f", lambda a, b: add(F32, a, b, how)), ("ff", "f", lambda a, b: multiply(F32, a, b, how)),
                ("fff", "f", lambda a, b, c: fma(F32, a, b, c, how)), ("dd", "d", lambda a, b: add(F64, a, b, how)),
                ("dd", "d", lambda a, b: multiply(F64, a, b, how)), ("hh", "h", lambda a, b: multiply(F16, a, b, how)))):
            for _ in range(4):
                inputs, before, _, mask, r = t.run(bits, kinds, mode=mode)
                t.compare_lanes(f"{line} rounding {how}", inputs, before, mask, r, 8, out, function)

    def flush(f, v):
        return v if v & f.inf else v & f.sign
    for _ in range(4):
        inputs, before, _, mask, r = t.run(code[1], "ff", mode=0x3c0)
        # a product that rounds up to the smallest normal number is judged differently by processors: left out
        t.compare_lanes("v_mul_f32 flushing", inputs, before, mask, r, 8, "f",
                        lambda a, b: flush(F32, multiply(F32, flush(F32, a), flush(F32, b))))


def test_compare(t):
    rows = list(compares())
    skip = {"nlt_f", "neq_f"}
    lines = [f"v_cmp_{name}_e64 s[20:21], {registers(0, k[0])}, {registers(1, k[1])}" if t.wave == 64 else
             f"v_cmp_{name}_e64 s20, {registers(0, k[0])}, {registers(1, k[1])}" for name, k, _ in rows]
    lines_x = [f"v_cmpx_{name}_e64 {registers(0, k[0])}, {registers(1, k[1])}" for name, k, _ in rows]
    del skip
    for (name, kinds, predicate), code, code_x in zip(rows, assemble(t.target, lines, t.wave),
                                                      assemble(t.target, lines_x, t.wave)):
        for text, bits, at in ((f"v_cmp_{name}", code, 20), (f"v_cmpx_{name}", code_x, EXEC)):
            for _ in range(3):
                inputs, before, s, mask, r = t.run(bits, kinds)
                want = sum(1 << l for l in range(t.wave) if mask >> l & 1 and predicate(inputs[0][l], inputs[1][l]))
                got = int(r.s[at]) | (int(r.s[at + 1]) << 32 if t.wave == 64 else 0)
                t.expect(text, not r.status and got == want, r.text or f"{got:#x}, should be {want:#x}")
                t.expect(text, np.array_equal(before, r.v), "a vector register changed")


def test_carry(t):
    pair = "s[20:21]" if t.wave == 64 else "s20"
    pair_in = "s[22:23]" if t.wave == 64 else "s22"
    cases = [("v_add_co_u32", 0, lambda a, b, c: a + b), ("v_sub_co_u32", 0, lambda a, b, c: a - b),
             ("v_subrev_co_u32", 0, lambda a, b, c: b - a), ("v_add_co_ci_u32", 1, lambda a, b, c: a + b + c),
             ("v_sub_co_ci_u32", 1, lambda a, b, c: a - b - c), ("v_subrev_co_ci_u32", 1, lambda a, b, c: b - a - c)]
    lines = [f"{n}_e64 v8, {pair}, v0, v2" + (f", {pair_in}" if takes else "") for n, takes, _ in cases]
    lines += [f"v_cndmask_b32_e64 v8, v0, v2, {pair_in}", f"v_mad_u64_u32 v[8:9], {pair}, v0, v2, v[4:5]",
              f"v_mad_i64_i32 v[8:9], {pair}, v0, v2, v[4:5]"]
    code = assemble(t.target, lines, t.wave)
    for (name, takes, exact), bits in zip(cases, code):
        for _ in range(6):
            inputs, before, s, mask, r = t.run(bits, "uu")
            carry = s[22] | s[23] << 32
            results = [exact(a, b, carry >> l & 1) for l, (a, b) in enumerate(zip(*inputs))]
            at = iter(range(t.wave))
            t.compare_lanes(name, [list(at)], before, mask, r, 8, "u", lambda l: results[l])
            want = sum(1 << l for l in range(t.wave) if mask >> l & 1 and not 0 <= results[l] <= M32)
            got = int(r.s[20]) | (int(r.s[21]) << 32 if t.wave == 64 else 0)
            t.expect(name, got == want, f"carry {got:#x}, should be {want:#x}")
    inputs, before, s, mask, r = t.run(code[6], "uu")
    select = s[22] | s[23] << 32
    t.compare_lanes("v_cndmask_b32", [list(range(t.wave))], before, mask, r, 8, "u",
                    lambda l: inputs[1][l] if select >> l & 1 else inputs[0][l])
    for _ in range(4):
        inputs, before, s, mask, r = t.run(code[7], "uul")
        t.compare_lanes("v_mad_u64_u32", inputs, before, mask, r, 8, "l", lambda a, b, c: a * b + c)
        inputs, before, s, mask, r = t.run(code[8], "uul")
        t.compare_lanes("v_mad_i64_i32", inputs, before, mask, r, 8, "l", lambda a, b, c: signed(a) * signed(b) + c)


def test_modifiers(t):
    """neg and abs, clamp, constants, scalars, op_sel."""
    one = 0x3f800000
    cases = [
        ("v_add_f32_e64 v8, -v0, |v2|", "ff", "f", lambda a, b: add(F32, a ^ F32.sign, b & ~F32.sign)),
        ("v_mul_f32_e64 v8, v0, v2 clamp", "ff", "f", lambda a, b: (lambda r: 0 if F32.nan(r) or r & F32.sign else min(r, one))(
            multiply(F32, a, b))),
        ("v_add_f32 v8, 0.15915494, v2", "ff", "f", lambda a, b: add(F32, 0x3e22f983, b)),
        ("v_add_nc_u32 v8, -7, v2", "uu", "u", lambda a, b: b - 7),
        ("v_add_nc_u32 v8, 0x12345678, v2", "uu", "u", lambda a, b: b + 0x12345678),
        ("v_add_nc_u32 v8, s30, v2", "uu", "u", lambda a, b: b + 0xdeadbeef),
        ("v_add_nc_u32_e64 v8, v0, v2 clamp", "uu", "u", lambda a, b: min(a + b, M32)),
        ("v_sub_nc_u32_e64 v8, v0, v2 clamp", "uu", "u", lambda a, b: max(a - b, 0)),
        ("v_pk_add_f16 v8, v0, v2 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1]", "uu", "u",
         lambda a, b: add(F16, a >> 16, b & 0xffff ^ 0x8000) | add(F16, a & 0xffff, b >> 16) << 16),
        ("v_fma_mix_f32 v8, v0, v2, v4 op_sel:[1,0,0] op_sel_hi:[1,0,0]", "uff", "f",
         lambda a, b, c: fma(F32, convert(F32, F16, a >> 16), b, c)),
        ("v_fma_f64 v[8:9], -v[0:1], v[2:3], |v[4:5]|", "ddd", "d", lambda a, b, c: fma(F64, a ^ F64.sign, b, c & ~F64.sign)),
    ]
    for (line, kinds, out, function), code in zip(cases, assemble(t.target, [c[0] for c in cases], t.wave)):
        for _ in range(6):
            inputs, before, _, mask, r = t.run(code, kinds, scalars={30: 0xdeadbeef})
            t.compare_lanes(line, inputs, before, mask, r, 8, out, function)


def test_half_moves(t):
    """The long v_mov_b16, in words: llvm-mc 19 writes it only when asked for 16-bit registers."""
    if t.target != "gfx1100":
        return
    for sel in range(4):
        source, target = 16 * (sel & 1), 16 * (sel >> 1)
        word = 0xd59c0008 | (sel & 1) << 11 | (sel >> 1) << 14
        code = word.to_bytes(4, "little") + (0x100).to_bytes(4, "little")
        inputs, before, _, mask, r = t.run(code, "u")
        keep = 0xffff0000 >> target
        t.compare_lanes(f"v_mov_b16_e64 {sel}", [inputs[0], before[8].tolist()], before, mask, r, 8, "u",
                        lambda a, old, source=source, target=target, keep=keep:
                        old & keep | (a >> source & 0xffff) << target)


def dpp_source(control, l):
    row, at = l & ~15, l & 15
    name, n = control
    if name == "quad_perm":
        return (l & ~3) | n[l & 3]
    return {"row_shl": row + at + n if at + n < 16 else None, "row_shr": row + at - n if at >= n else None,
            "row_ror": row + (at - n) % 16, "row_mirror": row + 15 - at, "row_half_mirror": (l & ~7) | 7 - (l & 7),
            "row_share": row + n, "row_xmask": row + (at ^ n)}[name] if not isinstance(n, list) else None


def test_lanes(t):
    controls = [("quad_perm", [3, 1, 0, 2]), ("row_shl", 3), ("row_shr", 5), ("row_ror", 7), ("row_mirror", 0),
                ("row_half_mirror", 0), ("row_share", 9), ("row_xmask", 6)]
    texts = [n if n.endswith("mirror") else f"{n}:{v}" for n, v in controls]
    lines = [f"v_add_f32_dpp v8, v0, v2 {text} row_mask:0xf bank_mask:0xf" for text in texts]
    lines += [f"v_mov_b32_dpp v8, v0 {text} row_mask:0xd bank_mask:0xb bound_ctrl:1" for text in texts]
    code = assemble(t.target, lines, t.wave)
    for i, control in enumerate(controls):
        inputs, before, _, mask, r = t.run(code[i], "ff")

        def shifted(l, control=control, inputs=inputs, mask=mask, before=before):
            source = dpp_source(control, l)
            if source is None or not mask >> source & 1:
                return int(before[8, l])
            return add(F32, inputs[0][source], inputs[1][l])
        t.compare_lanes(lines[i], [list(range(t.wave))], before, mask, r, 8, "u", shifted)
        inputs, before, _, mask, r = t.run(code[len(controls) + i], "u")

        def moved(l, control=control, inputs=inputs, mask=mask, before=before):
            source = dpp_source(control, l)
            if not 0xd >> ((l >> 4) & 3) & 1 or not 0xb >> (l >> 2 & 3) & 1:
                return int(before[8, l])
            return inputs[0][source] if source is not None and mask >> source & 1 else 0
        t.compare_lanes(lines[len(controls) + i], [list(range(t.wave))], before, mask, r, 8, "u", moved)

    code = assemble(t.target, ["v_mov_b32_dpp v0, v0 row_shr:1 row_mask:0xf bank_mask:0xf", "v_readlane_b32 s20, v0, 5",
                               "v_readfirstlane_b32 s20, v0", "v_writelane_b32 v8, s30, 7", "ds_bpermute_b32 v8, v0, v2 offset:4",
                               "ds_permute_b32 v8, v0, v2", "ds_swizzle_b32 v8, v0 offset:0x401f",
                               "v_permlane16_b32 v8, v0, s30, s31", "v_permlanex16_b32 v8, v0, s30, s31"], t.wave)
    inputs, before, _, mask, r = t.run(code[0], "u", exec_mask=(1 << t.wave) - 1)
    t.compare_lanes("dpp over its own source", [list(range(t.wave))], before, mask, r, 0, "u",
                    lambda l: inputs[0][l] if l % 16 == 0 else inputs[0][l - 1])
    inputs, before, _, mask, r = t.run(code[1], "u")
    t.expect("v_readlane_b32", int(r.s[20]) == inputs[0][5], r.text)
    inputs, before, _, mask, r = t.run(code[2], "u")
    t.expect("v_readfirstlane_b32", int(r.s[20]) == inputs[0][(mask & -mask).bit_length() - 1], r.text)
    inputs, before, s, mask, r = t.run(code[3], "u")
    t.expect("v_writelane_b32", int(r.v[8, 7]) == s[30] and int(r.v[8, 6]) == int(before[8, 6]), r.text)
    inputs, before, _, mask, r = t.run(code[4], "uu")
    t.compare_lanes("ds_bpermute_b32", [list(range(t.wave))], before, mask, r, 8, "u", lambda l: (
        lambda source: inputs[1][source] if mask >> source & 1 else 0)(((inputs[0][l] + 4) // 4 & 31) | (l & 32)))
    inputs, before, _, mask, r = t.run(code[5], "uu")
    pushed = {}
    for l in range(t.wave):
        if mask >> l & 1:
            pushed[(inputs[0][l] // 4 & 31) | (l & 32)] = inputs[1][l]
    t.compare_lanes("ds_permute_b32", [list(range(t.wave))], before, mask, r, 8, "u", lambda l: pushed.get(l, 0))
    inputs, before, _, mask, r = t.run(code[6], "u")
    t.compare_lanes("ds_swizzle_b32 xor 16", [list(range(t.wave))], before, mask, r, 8, "u",
                    lambda l: inputs[0][l ^ 16] if mask >> (l ^ 16) & 1 else 0)
    for bits, flip, name in ((code[7], 0, "v_permlane16_b32"), (code[8], 16, "v_permlanex16_b32")):
        inputs, before, s, mask, r = t.run(bits, "u")
        select = s[30] | s[31] << 32

        def from_row(l, inputs=inputs, before=before, mask=mask, flip=flip, select=select):
            source = ((l & ~15) ^ flip) | (select >> 4 * (l & 15) & 15)
            return inputs[0][source] if mask >> source & 1 else int(before[8, l])
        t.compare_lanes(name, [list(range(t.wave))], before, mask, r, 8, "u", from_row)


def test_scalar(t):
    def over(v):
        return not -2**31 <= v < 2**31
    new = t.target != "gfx1030"
    cases = [
        ("s_add_u32", 2, lambda a, b, c: (a + b, a + b > M32)), ("s_sub_u32", 2, lambda a, b, c: (a - b, a < b)),
        ("s_add_i32", 2, lambda a, b, c: (a + b, over(signed(a) + signed(b)))),
        ("s_sub_i32", 2, lambda a, b, c: (a - b, over(signed(a) - signed(b)))),
        ("s_addc_u32", 2, lambda a, b, c: (a + b + c, a + b + c > M32)),
        ("s_subb_u32", 2, lambda a, b, c: (a - b - c, a < b + c)),
        ("s_mul_i32", 2, lambda a, b, c: (a * b, c)), ("s_mul_hi_u32", 2, lambda a, b, c: (a * b >> 32, c)),
        ("s_mul_hi_i32", 2, lambda a, b, c: (signed(a) * signed(b) >> 32, c)),
        ("s_and_b32", 2, lambda a, b, c: (a & b, a & b)), ("s_or_b32", 2, lambda a, b, c: (a | b, a | b)),
        ("s_xor_b32", 2, lambda a, b, c: (a ^ b, a ^ b)),
        ("s_and_not1_b32" if new else "s_andn2_b32", 2, lambda a, b, c: (a & ~b, a & ~b & M32)),
        ("s_or_not1_b32" if new else "s_orn2_b32", 2, lambda a, b, c: (a | ~b, (a | ~b) & M32)),
        ("s_nand_b32", 2, lambda a, b, c: (~(a & b), ~(a & b) & M32)),
        ("s_lshl_b32", 2, lambda a, b, c: (a << (b & 31), (a << (b & 31)) & M32)),
        ("s_lshr_b32", 2, lambda a, b, c: (a >> (b & 31), a >> (b & 31))),
        ("s_ashr_i32", 2, lambda a, b, c: (signed(a) >> (b & 31), signed(a) >> (b & 31))),
        ("s_min_i32", 2, lambda a, b, c: (min(signed(a), signed(b)), signed(a) < signed(b))),
        ("s_max_i32", 2, lambda a, b, c: (max(signed(a), signed(b)), signed(a) >= signed(b))),
        ("s_min_u32", 2, lambda a, b, c: (min(a, b), a < b)), ("s_max_u32", 2, lambda a, b, c: (max(a, b), a >= b)),
        ("s_cselect_b32", 2, lambda a, b, c: (a if c else b, c)),
        ("s_bfm_b32", 2, lambda a, b, c: (((1 << (a & 31)) - 1) << (b & 31), c)),
        ("s_pack_ll_b32_b16", 2, lambda a, b, c: (a & 0xffff | b << 16, c)),
        ("s_absdiff_i32", 2, lambda a, b, c: (abs(signed(a - b & M32)), a - b & M32)),
        ("s_lshl2_add_u32", 2, lambda a, b, c: ((a << 2) + b, (a << 2) + b > M32)),
        ("s_mov_b32", 1, lambda a, c: (a, c)), ("s_not_b32", 1, lambda a, c: (~a, ~a & M32)),
        ("s_brev_b32", 1, lambda a, c: (int(f"{a:032b}"[::-1], 2), c)),
        ("s_bcnt1_i32_b32", 1, lambda a, c: (bin(a).count("1"), a)),
        ("s_ctz_i32_b32" if new else "s_ff1_i32_b32", 1, lambda a, c: ((a & -a).bit_length() - 1, c)),
        ("s_clz_i32_u32" if new else "s_flbit_i32_b32", 1, lambda a, c: (leading(a), c)),
        ("s_cls_i32" if new else "s_flbit_i32", 1, lambda a, c: (sign_run(a), c)),
        ("s_sext_i32_i8", 1, lambda a, c: (signed(a, 8), c)), ("s_sext_i32_i16", 1, lambda a, c: (signed(a, 16), c)),
        ("s_abs_i32", 1, lambda a, c: (abs(signed(a)), a)),
    ]
    wide = [
        ("s_and_b64", "ll", lambda a, b, c: (a & b, a & b)), ("s_or_b64", "ll", lambda a, b, c: (a | b, a | b)),
        ("s_xor_b64", "ll", lambda a, b, c: (a ^ b, a ^ b)), ("s_cselect_b64", "ll", lambda a, b, c: (a if c else b, c)),
        ("s_lshl_b64", "lu", lambda a, b, c: (a << (b & 63), (a << (b & 63)) & M64)),
        ("s_lshr_b64", "lu", lambda a, b, c: (a >> (b & 63), a >> (b & 63))),
        ("s_ashr_i64", "lu", lambda a, b, c: (signed(a, 64) >> (b & 63), signed(a, 64) >> (b & 63))),
        ("s_mov_b64", "l", lambda a, c: (a, c)), ("s_not_b64", "l", lambda a, c: (~a, ~a & M64)),
    ]
    compare = {"eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
               "lt": lambda a, b: a < b, "le": lambda a, b: a <= b}
    lines = [f"{n} s20, " + ", ".join(("s4", "s6")[:k]) for n, k, _ in cases]
    lines += [f"{n} s[20:21], " + ", ".join(f"s[{4 + 2 * i}:{5 + 2 * i}]" if k == "l" else f"s{4 + 2 * i}"
                                            for i, k in enumerate(kinds)) for n, kinds, _ in wide]
    relations = [(f"s_cmp_{n}_{k}32", r, k) for n, r in compare.items() for k in "iu"]
    lines += [f"{n} s4, s6" for n, _, _ in relations]
    code = assemble(t.target, lines, t.wave)
    for _ in range(12):
        values = [t.rng.choice((t.rng.getrandbits(64), t.rng.choice(SPECIAL["l"]), t.rng.choice(SPECIAL["u"])))
                  for _ in range(2)]
        scc = t.rng.getrandbits(1)
        s = [0x11111111] * 128
        s[4], s[5], s[6], s[7] = values[0] & M32, values[0] >> 32, values[1] & M32, values[1] >> 32
        v = np.zeros((8, t.wave), np.uint32)
        low = [x & M32 for x in values]
        for (name, count, function), bits in zip(cases, code):
            r = t.emulator.step(t.target, bits, s, v, scc=scc)
            want, condition = function(*low[:count], scc)
            t.expect(name, not r.status and int(r.s[20]) == want & M32 and r.scc == bool(condition),
                     r.text or f"{[hex(x) for x in low]} scc {scc}: {int(r.s[20]):#x} {r.scc}, should be {want & M32:#x}")
        for (name, kinds, function), bits in zip(wide, code[len(cases):]):
            r = t.emulator.step(t.target, bits, s, v, scc=scc)
            want, condition = function(*[x if k == "l" else x & M32 for x, k in zip(values, kinds)], scc)
            got = int(r.s[20]) | int(r.s[21]) << 32
            t.expect(name, not r.status and got == want & M64 and r.scc == bool(condition), r.text or f"{got:#x}")
        for (name, relation, kind), bits in zip(relations, code[len(cases) + len(wide):]):
            r = t.emulator.step(t.target, bits, s, v, scc=scc)
            a, b = low if kind == "u" else (signed(low[0]), signed(low[1]))
            t.expect(name, not r.status and r.scc == relation(a, b), r.text)


def test_memory(t):
    """LDS and global memory: every width, pairs, sign extension, halves kept, and atomics on one address."""
    new = t.target != "gfx1030"
    ds = (lambda a, b: b if new else a)
    lanes = t.wave
    lines = [f"{ds('ds_write_b32', 'ds_store_b32')} v0, v2 offset:16", f"{ds('ds_read_b128', 'ds_load_b128')} v[8:11], v0",
             f"{ds('ds_read_i8', 'ds_load_i8')} v8, v0 offset:3", f"{ds('ds_read_u16_d16_hi', 'ds_load_u16_d16_hi')} v8, v0",
             f"{ds('ds_read2st64_b32', 'ds_load_2addr_stride64_b32')} v[8:9], v0 offset0:1 offset1:2",
             f"{ds('ds_read2_b64', 'ds_load_2addr_b64')} v[8:11], v0 offset0:1 offset1:4", "ds_add_rtn_u32 v8, v4, v2",
             f"{ds('global_load_dwordx2', 'global_load_b64')} v[8:9], v0, s[4:5] offset:8",
             f"{ds('global_load_sbyte', 'global_load_i8')} v8, v0, s[4:5] offset:1",
             f"{ds('global_load_short_d16_hi', 'global_load_d16_hi_b16')} v8, v0, s[4:5]",
             f"{ds('global_store_dwordx2', 'global_store_b64')} v0, v[2:3], s[4:5] offset:16",
             f"{ds('global_store_byte', 'global_store_b8')} v0, v2, s[4:5]",
             f"{ds('global_atomic_add', 'global_atomic_add_u32')} v8, v4, v2, s[4:5] glc",
             f"{ds('global_atomic_fmax', 'global_atomic_max_f32')} v4, v2, s[4:5]",
             f"{ds('global_atomic_cmpswap', 'global_atomic_cmpswap_b32')} v8, v0, v[2:3], s[4:5] glc"]
    code = assemble(t.target, lines, t.wave)
    rng = t.rng
    store = bytes(rng.getrandbits(8) for _ in range(4096))
    addresses = [16 * l for l in range(lanes)]
    rng.shuffle(addresses)
    v = np.array([[rng.getrandbits(32) for _ in range(lanes)] for _ in range(16)], dtype=np.uint32)
    v[0], v[4] = addresses, 64
    s = [rng.getrandbits(32) for _ in range(128)]
    s[4], s[5] = MEMORY & M32, MEMORY >> 32
    mask = rng.getrandbits(lanes) | 3
    s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32

    def word(data, at, size=4):
        return int.from_bytes(data[at:at + size], "little")

    def go(i):
        return t.emulator.step(t.target, code[i], s, v, lds=store, memory=store)
    on = [l for l in range(lanes) if mask >> l & 1]
    r, want = go(0), bytearray(store)
    for l in on:
        want[addresses[l] + 16:addresses[l] + 20] = int(v[2, l]).to_bytes(4, "little")
    t.expect(lines[0], r.lds == bytes(want), r.text)

    def loads(i, reads):
        r = go(i)
        for k, read in enumerate(reads):
            expected = [read(l) & M32 if l in on else int(v[8 + k, l]) for l in range(lanes)]
            t.expect(lines[i], not r.status and [int(x) for x in r.v[8 + k]] == expected, r.text or f"dword {k}")
    loads(1, [lambda l, k=k: word(store, addresses[l] + 4 * k) for k in range(4)])
    loads(2, [lambda l: signed(store[addresses[l] + 3], 8)])
    loads(3, [lambda l: int(v[8, l]) & 0xffff | word(store, addresses[l], 2) << 16])
    loads(4, [lambda l, k=k: word(store, addresses[l] + 256 * k) for k in (1, 2)])
    loads(5, [lambda l, o=o: word(store, addresses[l] + o) for o in (8, 12, 32, 36)])
    total, old = word(store, 64), {}
    for l in on:
        old[l], total = total, (total + int(v[2, l])) & M32
    for i, at in ((6, "lds"), (12, "memory")):
        r = go(i)
        t.expect(lines[i], not r.status and word(getattr(r, at), 64) == total, r.text or "sum")
        t.expect(lines[i], all(int(r.v[8, l]) == old[l] for l in on), "old values")
    loads(7, [lambda l, k=k: word(store, addresses[l] + 8 + 4 * k) for k in range(2)])
    loads(8, [lambda l: signed(store[addresses[l] + 1], 8)])
    loads(9, [lambda l: int(v[8, l]) & 0xffff | word(store, addresses[l], 2) << 16])
    r, want = go(10), bytearray(store)
    for l in on:
        want[addresses[l] + 16:addresses[l] + 24] = (int(v[2, l]) | int(v[3, l]) << 32).to_bytes(8, "little")
    t.expect(lines[10], r.memory == bytes(want), r.text)
    r, want = go(11), bytearray(store)
    for l in on:
        want[addresses[l]] = int(v[2, l]) & 255
    t.expect(lines[11], r.memory == bytes(want), r.text)
    v[2] = [F32.round(Fraction(rng.randint(-1000, 1000), 7)) for _ in range(lanes)]
    best = max([word(store, 64)] + [int(v[2, l]) for l in on], key=lambda x: order(F32, x) if not F32.nan(x) else -1e99)
    t.expect(lines[13], word(go(13).memory, 64) == best)
    v[3] = [word(store, a) if l % 3 else 1 for l, a in enumerate(addresses)]
    r, want = go(14), bytearray(store)
    for l in on:
        if int(v[3, l]) == word(store, addresses[l]):
            want[addresses[l]:addresses[l] + 4] = int(v[2, l]).to_bytes(4, "little")
    t.expect(lines[14], r.memory == bytes(want), r.text)
    t.expect(lines[14], all(int(r.v[8, l]) == word(store, addresses[l]) for l in on), "old values")
    # beyond LDS: nothing is written, zero is read; beyond memory: a fault that names the lane
    v[0] = 1 << 20
    r = go(1)
    t.expect("LDS out of range", not r.status and all(int(r.v[8, l]) == 0 for l in on), r.text)
    r = go(7)
    t.expect("memory out of range", r.status == 2 and "lane" in r.text and "memory" in r.text, r.text)


def test_dual(t):
    if t.target == "gfx1030" or t.wave == 64:
        return
    lines = ["v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0", "v_dual_fmac_f32 v8, v0, v2 :: v_dual_mul_f32 v9, v3, v5"]
    code = assemble(t.target, lines)
    inputs, before, _, mask, r = t.run(code[0], "u")
    swapped = all((int(r.v[0, l]), int(r.v[1, l])) == ((int(before[1, l]), int(before[0, l])) if mask >> l & 1 else
                                                      (int(before[0, l]), int(before[1, l]))) for l in range(32))
    t.expect(lines[0], swapped, "both halves must read before either writes")
    inputs, before, _, mask, r = t.run(code[1], "fff")
    t.expect(lines[1], all(int(r.v[8, l]) == fma(F32, inputs[0][l], inputs[1][l], int(before[8, l])) and
                           int(r.v[9, l]) == multiply(F32, int(before[3, l]), int(before[5, l]))
                           for l in range(32) if mask >> l & 1), r.text)


def test_division(t):
    """What clang makes of a / b, with and without denormals, is the correctly rounded quotient."""
    text = """v_div_scale_f32 v8, null, v2, v2, v0
v_rcp_f32 v9, v8
v_div_scale_f32 v10, vcc_lo, v0, v2, v0
v_fma_f32 v11, -v8, v9, 1.0
v_fma_f32 v9, v11, v9, v9
v_mul_f32 v11, v10, v9
v_fma_f32 v12, -v8, v11, v10
v_fma_f32 v11, v12, v9, v11
v_fma_f32 v8, -v8, v11, v10
v_div_fmas_f32 v8, v8, v9, v11
v_div_fixup_f32 v8, v8, v2, v0"""
    if t.wave == 64:
        text = text.replace("vcc_lo", "vcc")
    code = b"".join(assemble(t.target, text.split("\n"), t.wave))

    def quotient(a, b):
        sign = (a ^ b) & F32.sign
        if F32.nan(a) or F32.nan(b):
            return first_nan(F32, a, b)
        if F32.infinite(a) or not b & ~F32.sign:
            invalid = F32.infinite(b) if F32.infinite(a) else not a & ~F32.sign
            return F32.default if invalid else sign | F32.inf
        if F32.infinite(b):
            return sign
        return F32.round(F32.value(a) / F32.value(b), bool(sign))
    for _ in range(40):
        inputs, before, _, mask, r = t.run(code, "ff")
        for l in range(t.wave):
            if mask >> l & 1:
                a, b = inputs[0][l], inputs[1][l]
                t.expect("division", not r.status and int(r.v[8, l]) == quotient(a, b),
                         r.text or f"{a:#x} / {b:#x}: {int(r.v[8, l]):#x}, should be {quotient(a, b):#x}")


def test_transcendental(t):
    """Against the exact function: one unit in the last place, and the special values."""
    functions = [("v_rcp_f32", lambda x: 1 / x), ("v_rsq_f32", lambda x: x ** -0.5), ("v_sqrt_f32", math.sqrt),
                 ("v_log_f32", math.log2), ("v_exp_f32", lambda x: 2.0 ** x),
                 ("v_sin_f32", lambda x: math.sin(2 * math.pi * x)), ("v_cos_f32", lambda x: math.cos(2 * math.pi * x))]
    code = assemble(t.target, [f"{n} v8, v0" for n, _ in functions], t.wave)
    for (name, function), bits in zip(functions, code):
        v = np.zeros((16, t.wave), np.uint32)
        values = [np.float32(t.rng.uniform(0.01, 1 if "sin" in name or "cos" in name else 100)) for _ in range(t.wave)]
        v[0] = np.array(values, np.float32).view(np.uint32)
        s = [0] * 128
        s[EXEC] = s[EXEC + 1] = M32
        r = t.emulator.step(t.target, bits, s, v)
        got, want = r.v[8].view(np.float32).astype(float), np.array([function(float(x)) for x in values])
        ulp = np.spacing(np.abs(want).astype(np.float32)).astype(float)
        limit = np.maximum(1.01 * ulp, 2.0 ** -22 if "sin" in name or "cos" in name else 0)  # hardware's sines are no closer
        t.expect(name, not r.status and bool((np.abs(got - want) <= limit).all()), r.text or f"{np.abs((got - want) / ulp).max()} ulp")
    special = {"v_rcp_f32": {0: 0x7f800000, 1 << 31: 0xff800000, 1: 0x7f800000, 0x7f800000: 0, 0xff800000: 1 << 31},
               "v_rsq_f32": {0: 0x7f800000, 0xbf800000: 0xffc00000, 0x7f800000: 0},
               "v_sqrt_f32": {1 << 31: 1 << 31, 0xbf800000: 0xffc00000, 5: 0, 0x7f800000: 0x7f800000},
               "v_log_f32": {0: 0xff800000, 5: 0xff800000, 0xbf800000: 0xffc00000, 0x3f800000: 0},
               "v_exp_f32": {0xff800000: 0, 0x7f800000: 0x7f800000, 0: 0x3f800000, 0x43000000: 0x7f800000, 0xc3010000: 0}}
    for (name, _), bits in zip(functions, code):
        for value, want in special.get(name, {}).items():
            v = np.full((16, t.wave), value, np.uint32)
            s = [M32] * 128
            r = t.emulator.step(t.target, bits, s, v, mode=0x3ff)
            t.expect(name, int(r.v[8, 0]) == want, f"of {value:#x}: {int(r.v[8, 0]):#x}, should be {want:#x}")


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    emulator, failures, checked = Emulator(program), [], 0
    for target in ("gfx1100", "gfx1030"):
        for wave in (32, 64):
            t = Tester(emulator, target, wave, f"{seed} {target} {wave}")
            for test in (test_vector, test_rounding, test_compare, test_carry, test_modifiers, test_half_moves,
                         test_lanes, test_scalar, test_memory, test_dual, test_division, test_transcendental):
                test(t)
            failures += t.failures
            checked += t.checked
    emulator.close()
    for line in failures[:80]:
        print(line)
    print(f"{checked} checks, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
