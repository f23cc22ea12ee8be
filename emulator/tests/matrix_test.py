"""Dot products, WMMA and SDWA. Floats: numbers whose sums are exact, so that only the layout and the sign bits decide,
and recordings of hardware where they are not. Usage: matrix_test.py [emu_step]
"""
import random
import sys
from fractions import Fraction

import numpy as np

from emulator import EXEC, Checks, Emulator, assemble
from floats import F16, F32, M32, multiply, signed

# V_DOT2_F32_F16 and V_DOT2_F32_BF16 on a Radeon PRO W7900: (a, b, c, result). Facts recorded by the rocjitsu project,
# ROCm/rocm-systems, emulation/rocjitsu/tests/fixtures/float_dot/gfx1100_cases.h.
RECORDED = {
    "v_dot2_f32_f16": [
        (0x48004200, 0x44004800, 0xbf800000, 0x425c0001), (0xc800c200, 0x44004800, 0x3f800000, 0xc25c0001),
        (0x3c00bc00, 0x3c003c00, 0x3f800000, 0x3f7fffff), (0x3c003c00, 0x3c003c00, 0xc0000000, 0x34000000),
        (0x3c004000, 0x3c003c00, 0xc0000000, 0x3f800002), (0x4800c800, 0x48004800, 0x3f800000, 0x3f7fffc0),
        (0x3c003c00, 0x3c000000, 0x80000000, 0x3f800001), (0x3c00bc00, 0x3c000000, 0x80000000, 0x3f800000),
        (0x3c003c00, 0x3c003c00, 0xff812345, 0xffc12345), (0x3c007c01, 0x3c003c00, 0x00000000, 0xffc00a3d),
        (0x7c007e01, 0x00003c00, 0x7fc12345, 0xffc00a3d), (0x3c007c00, 0x3c000000, 0x7fc12345, 0xffc00000),
        (0xfc007c00, 0x3c003c00, 0x7fc12345, 0xffc00000), (0x80008000, 0x3c003c00, 0x00800000, 0x00800000),
        (0x00000001, 0x3c000001, 0x00000000, 0x27800000), (0x00000001, 0x3c008001, 0x00000000, 0xa7880000),
        (0xeb9b023d, 0x803b6249, 0xf96d2663, 0xf96d2663), (0x058ef3f3, 0x2b241c4a, 0xb8eed486, 0xc2886106),
        (0xcd6c4d6c, 0x78af78af, 0x00000000, 0xbd000000), (0xb09d309d, 0x0fe50fe5, 0x00000000, 0xac000000),
        (0x84950495, 0x3d283d28, 0x80000000, 0x2c800000), (0xc3c843c8, 0x33fa33fa, 0x00000000, 0xb2800000),
        (0xbc003c00, 0x0001fbff, 0x7f800000, 0x7f800000), (0x8000fc00, 0x04013c00, 0x00800000, 0xff800000)],
    "v_dot2_f32_bf16": [
        (0x41004040, 0x40804100, 0xbf800000, 0x425c0001), (0x3f804000, 0x3f803f80, 0xc0000000, 0x3f800002),
        (0x00800000, 0x3f808000, 0x00000001, 0x00000000), (0x00000700, 0x3f803f80, 0x00000000, 0x07000000),
        (0x00800080, 0x3f003f00, 0x00000000, 0x00800000), (0xff7f7f7f, 0x7f7f7f7f, 0x00000000, 0xff800000),
        (0xf9e2d6b1, 0xe2adf60c, 0xeddb846f, 0x7f800000), (0x49b3fce2, 0x573a122b, 0x246a3c33, 0x61820e00),
        (0x058ef3f3, 0x2b241c4a, 0xb8eed486, 0xd0bfbe00), (0xc395629b, 0xd9633359, 0xdc60025c, 0x5d504185),
        (0xf2ae73d7, 0x02b0b502, 0x7b678301, 0x7b678301), (0xce354e35, 0x7bfd7bfd, 0x00000000, 0xfe000000),
        (0xafb72fb7, 0x0d170d17, 0x00000000, 0x00000000), (0x35b3b5b3, 0xc398c398, 0x80000000, 0x2d800000),
        (0xa3202320, 0xde25de25, 0x80000000, 0x35800000), (0xc4014401, 0x33463346, 0x00000000, 0xab800000),
        (0xff940080, 0x8001ffec, 0xff800000, 0xffc00a3d), (0x3f803f80, 0x7f7f7fcb, 0xffa6c1fe, 0xffc00a3d)],
}


class Tester(Checks):
    def __init__(self, emulator, target, wave):
        super().__init__(f"{target} wave{wave}")
        self.emulator, self.target, self.wave = emulator, target, wave
        self.rng = random.Random(f"{target} {wave}")

    def run(self, code, v, mode=0x3f0, mask=None):
        s = [0] * 128
        mask = (1 << self.wave) - 1 if mask is None else mask
        s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
        r = self.emulator.step(self.target, code, s, v, mode=mode)
        self.expect("status", r.status == 0, r.text)
        return r


def half(x):
    return F16.round(Fraction(x))


def brain(x):
    return F32.round(Fraction(x)) >> 16


def tile_rows(wave, i, lane):
    return i * (wave // 16) + lane // 16


def test_wmma(t):
    if t.target != "gfx1100":
        return
    wave, registers = t.wave, 256 // t.wave
    d = f"v[32:{31 + registers}]"
    c = f"v[24:{23 + registers}]"
    forms = [("v_wmma_f32_16x16x16_f16", 8, ""), ("v_wmma_f32_16x16x16_bf16", 8, ""),
             ("v_wmma_f32_16x16x16_f16", 8, " neg_lo:[1,0,0] neg_hi:[1,0,0]"), ("v_wmma_f16_16x16x16_f16", 8, ""),
             ("v_wmma_f16_16x16x16_f16", 8, " op_sel:[0,0,1]"), ("v_wmma_bf16_16x16x16_bf16", 8, ""),
             ("v_wmma_i32_16x16x16_iu8", 4, " neg_lo:[1,0,0]"), ("v_wmma_i32_16x16x16_iu8", 4, " neg_lo:[1,1,0] clamp"),
             ("v_wmma_i32_16x16x16_iu4", 2, " neg_lo:[0,1,0]")]
    lines = [f"{n} {d}, v[0:{k - 1}], v[8:{7 + k}], {c}{m}" for n, k, m in forms]
    lines.append(f"v_wmma_f32_16x16x16_f16 {d}, v[0:7], v[8:15], 1.0")
    for (name, k, modifiers), code, line in zip(forms + [forms[0]], assemble(t.target, lines, wave), lines):
        rng = t.rng
        element = 16 if "f16" in name else 8 if "iu8" in name else 4
        # of one sign: hardware adds what opposes C inexactly
        small = [[rng.randint(0, 8) for _ in range(16)] for _ in range(48)]
        integer = "iu" in name
        if integer:
            small = [[rng.getrandbits(element) for _ in range(16)] for _ in range(32)] + [
                [rng.choice((rng.getrandbits(32), 0x7ffffff0, 5)) for _ in range(16)] for _ in range(16)]
        a, b, start = small[:16], small[16:32], small[32:]
        if "neg_lo" in modifiers and not integer:
            start = [[-x for x in row] for row in start]
        narrow = "f32" not in name and not integer
        to_bits = brain if "bf16" in name else half
        v = np.array([[rng.getrandbits(32) for _ in range(wave)] for _ in range(48)], np.uint32)
        for lane in range(wave):
            for register in range(k):
                per = 32 // element
                for side, base in ((a, 0), (b, 8)):
                    word = 0
                    for e in range(per):
                        x = side[lane % 16][register * per + e]
                        word |= (x if integer else to_bits(x)) << element * e
                    v[base + register, lane] = word
            for i in range(registers):
                x = start[tile_rows(wave, i, lane)][lane % 16]
                bits = x & M32 if integer else to_bits(x) if narrow else F32.round(Fraction(x))
                if narrow:
                    bits = (int(v[24 + i, lane]) & 0xffff) | bits << 16 if "op_sel" in modifiers else (
                        int(v[24 + i, lane]) & 0xffff0000) | bits
                v[24 + i, lane] = bits
        r = t.run(code, v, mask=t.rng.getrandbits(wave))
        neg = [int(x) for x in modifiers[modifiers.index("[") + 1:modifiers.index("]")].split(",")] if "neg_lo" in modifiers else [0, 0, 0]
        for i in range(registers):
            for lane in range(wave):
                row, column = tile_rows(wave, i, lane), lane % 16
                if integer:
                    left = [signed(x, element) if neg[0] else x for x in a[row]]
                    right = [signed(x, element) if neg[1] else x for x in b[column]]
                    want = signed(start[row][column]) + sum(x * y for x, y in zip(left, right))
                    want = (max(-2**31, min(2**31 - 1, want)) if "clamp" in modifiers else want) & M32
                else:
                    first = 1 if line.endswith("1.0") else start[row][column]
                    total = first + sum(x * y for x, y in zip(a[row], b[column])) * (-1 if neg[0] else 1)
                    want = to_bits(total) if narrow else F32.round(Fraction(total))
                got = int(r.v[32 + i, lane])
                if narrow:
                    keep = int(v[32 + i, lane])
                    high = "op_sel" in modifiers
                    rest, got = ((got ^ keep) & 0xffff, got >> 16) if high else ((got ^ keep) >> 16, got & 0xffff)
                    t.expect(line, rest == 0, "the other half changed")
                    if "bf16" in name:  # sums of more than eight bits are cut in each step
                        x, y = (F32.value(z << 16) for z in (got, want))
                        t.expect(line, abs(x - y) <= 16 * abs(y) / 128 + 16, f"({row}, {column}): {got:#x}, about {want:#x}")
                        continue
                t.expect(line, got == want, f"({row}, {column}): {got:#x}, should be {want:#x}")


def test_dots(t):
    old = t.target == "gfx1030"
    forms = [("v_dot4_i32_i8" if old else "v_dot4_i32_iu8", 8, (1, 1), "" if old else " neg_lo:[1,1,0]"), ("v_dot4_u32_u8", 8, (0, 0), ""),
             ("v_dot8_i32_i4" if old else "v_dot8_i32_iu4", 4, (1, 1), "" if old else " neg_lo:[1,1,0]"), ("v_dot8_u32_u4", 4, (0, 0), "")]
    if not old:
        forms.append(("v_dot4_i32_iu8", 8, (1, 0), " neg_lo:[1,0,0]"))
    if old:
        forms += [("v_dot2_i32_i16", 16, (1, 1), ""), ("v_dot2_u32_u16", 16, (0, 0), "")]
    for clamp in ("", " clamp"):
        lines = [f"{n} v8, v0, v2, v4{m}{clamp}" for n, _, _, m in forms]
        for (name, bits, signs, _), code, line in zip(forms, assemble(t.target, lines, t.wave), lines):
            v = np.array([[t.rng.choice((t.rng.getrandbits(32), M32, 1 << 31, 0x7fffffff)) for _ in range(t.wave)]
                          for _ in range(16)], np.uint32)
            r = t.run(code, v)
            for lane in range(t.wave):
                x, y, z = (int(v[i, lane]) for i in (0, 2, 4))
                parts = [[signed(w >> s, bits) if is_signed else w >> s & ((1 << bits) - 1) for s in range(0, 32, bits)]
                         for w, is_signed in ((x, signs[0]), (y, signs[1]))]
                unsigned = "_u32" in name
                want = (z if unsigned else signed(z)) + sum(p * q for p, q in zip(*parts))
                if clamp:
                    want = max(0, min(M32, want)) if unsigned else max(-2**31, min(2**31 - 1, want))
                t.expect(line, int(r.v[8, lane]) == want & M32, f"{x:#x} {y:#x} {z:#x}: {int(r.v[8, lane]):#x}")
    code, = assemble(t.target, ["v_dot2_f32_f16 v8, v0, v2, v4 neg_lo:[1,0,0]"], t.wave)
    v = np.zeros((16, t.wave), np.uint32)
    numbers = [[t.rng.randint(0, 64) * sign for sign in (-1, 1, 1, 1, 1)] for _ in range(t.wave)]
    for lane, (a, b, c, d, e) in enumerate(numbers):
        v[0, lane], v[2, lane], v[4, lane] = half(a) | half(b) << 16, half(c) | half(d) << 16, F32.round(Fraction(e))
    r = t.run(code, v)
    t.expect("v_dot2_f32_f16", all(int(r.v[8, lane]) == F32.round(Fraction(-a * c + b * d + e))
                                   for lane, (a, b, c, d, e) in enumerate(numbers)))


def test_recorded(t):
    if t.target != "gfx1100" or t.wave == 64:
        return
    for name, cases in RECORDED.items():
        code, = assemble(t.target, [f"{name} v8, v0, v2, v4"], t.wave)
        for at in range(0, len(cases), 32):
            v = np.zeros((16, 32), np.uint32)
            for lane, (a, b, c, _) in enumerate(cases[at:at + 32]):
                v[0, lane], v[2, lane], v[4, lane] = a, b, c
            r = t.run(code, v)
            for lane, (a, b, c, want) in enumerate(cases[at:at + 32]):
                t.expect(name, int(r.v[8, lane]) == want, f"{a:#x} {b:#x} {c:#x}: {int(r.v[8, lane]):#x}, hardware {want:#x}")


def select(v, how, sext=False):
    bits, low = {"BYTE": (8, 8), "WORD": (16, 16)}.get(how[:4], (32, 0))
    v = v >> low * int(how[-1]) & ((1 << bits) - 1) if bits < 32 else v
    return signed(v, bits) & M32 if sext else v


def test_sdwa(t):
    if t.target != "gfx1030":
        return
    cases = []
    for dst, unused, s0, s1 in (("DWORD", "UNUSED_PAD", "BYTE_1", "WORD_1"), ("BYTE_2", "UNUSED_PRESERVE", "BYTE_3", "BYTE_0"),
                                ("WORD_1", "UNUSED_PAD", "WORD_0", "DWORD"), ("WORD_0", "UNUSED_SEXT", "DWORD", "BYTE_2"),
                                ("BYTE_0", "UNUSED_SEXT", "WORD_1", "WORD_0")):
        for sext in (False, True):
            source = "sext(v2)" if sext else "v2"
            line = f"v_add_nc_u32_sdwa v8, v0, {source} dst_sel:{dst} dst_unused:{unused} src0_sel:{s0} src1_sel:{s1}"
            cases.append((line, dst, unused, s0, s1, sext))
    for (line, dst, unused, s0, s1, sext), code in zip(cases, assemble(t.target, [c[0] for c in cases], t.wave)):
        v = np.array([[t.rng.getrandbits(32) for _ in range(t.wave)] for _ in range(16)], np.uint32)
        mask = t.rng.getrandbits(t.wave)
        r = t.run(code, v, mask=mask)
        for lane in range(t.wave):
            old, want = int(v[8, lane]), int(v[8, lane])
            if mask >> lane & 1:
                result = (select(int(v[0, lane]), s0) + select(int(v[2, lane]), s1, sext)) & M32
                bits, low = {"BYTE": (8, 8), "WORD": (16, 16)}.get(dst[:4], (32, 0))
                low *= int(dst[-1]) if bits < 32 else 0
                part = (1 << bits) - 1
                want = (result & part) << low
                if unused == "UNUSED_PRESERVE":
                    want |= old & ~(part << low)
                elif unused == "UNUSED_SEXT" and result >> (bits - 1) & 1:
                    want |= M32 << (low + bits)
            t.expect(line, int(r.v[8, lane]) == want & M32, f"{int(r.v[8, lane]):#x}, should be {want & M32:#x}")
    code, = assemble(t.target, ["v_mul_f16_sdwa v8, -|v0|, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0"],
                     t.wave)
    v = np.array([[t.rng.getrandbits(32) for _ in range(t.wave)] for _ in range(16)], np.uint32)
    r = t.run(code, v)
    for lane in range(t.wave):
        x, y = int(v[0, lane]) >> 16 & 0x7fff | 0x8000, int(v[2, lane]) & 0xffff
        t.expect("v_mul_f16_sdwa", int(r.v[8, lane]) == multiply(F16, x, y) << 16 | int(v[8, lane]) & 0xffff)


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    testers = (Tester(emulator, target, wave) for target in ("gfx1100", "gfx1030") for wave in (32, 64))
    return emulator.run_tests(testers, (test_wmma, test_dots, test_recorded, test_sdwa))


if __name__ == "__main__":
    sys.exit(main())
