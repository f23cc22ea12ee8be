"""Conversions, FP16_OVFL, sums of byte differences, against Python's fractions and integers. Usage: conversion_test.py [emu_step]"""
import math
import sys
from fractions import Fraction

import numpy as np

from emulator import EXEC, Emulator, assemble
from semantics_test import F16, F32, Tester, add, convert, fma, multiply

OVERFLOW = 1 << 23  # in MODE


def rounded(x, how):
    """A Fraction to an integer: nearest even, up, down, toward zero."""
    return [round(x), math.ceil(x), math.floor(x), math.trunc(x)][how]


def normal(f, bits, signed, how=0):
    """Of -1 to 1 or 0 to 1 to all integers, but the least signed one."""
    most = 32767 if signed else 65535
    if f.nan(bits):
        return 0
    least = -1 if signed else 0
    if f.infinite(bits):
        return (least if bits & f.sign else 1) * most & 0xffff
    return rounded(max(Fraction(least), min(Fraction(1), f.value(bits))) * most, how) & 0xffff


def byte_of(f, bits):
    if f.nan(bits):
        return 0
    if f.infinite(bits):
        return 0 if bits & f.sign else 255
    return max(0, min(255, math.trunc(f.value(bits))))


def packed_byte(a, place, c):
    at = 8 * (place & 3)
    return (c & ~(255 << at)) | byte_of(F32, a) << at


def mullit(a, b, c):
    if F32.nan(b) or b in (0xff7fffff, 0xff800000) or F32.nan(c) or c & F32.sign or not c:
        return 0xff7fffff
    if not a & 0x7fffffff or not b & 0x7fffffff:
        return 0
    return multiply(F32, a, b)


def differences(a, b, masked):
    pairs = [(a >> 8 * i & 255, b >> 8 * i & 255) for i in range(4)]
    return sum(abs(x - y) for x, y in pairs if y or not masked)


def quad(a, b, c, masked):
    parts = [(differences(a >> 8 * i, b, masked) + (c >> 16 * i & 0xffff)) & 0xffff for i in range(4)]
    return sum(part << 16 * i for i, part in enumerate(parts))


def test_conversions(t):
    both = {"v_cvt_norm_i16_f16 v8, v0": ("h", "h", lambda a, how: normal(F16, a, True, how)),
            "v_cvt_norm_u16_f16 v8, v0": ("h", "h", lambda a, how: normal(F16, a, False, how)),
            "pknorm_i16_f32 v8, v0, v2": ("ff", "u", lambda a, b, how: normal(F32, a, True, how) | normal(F32, b, True, how) << 16),
            "pknorm_u16_f32 v8, v0, v2": ("ff", "u", lambda a, b, how: normal(F32, a, False, how) | normal(F32, b, False, how) << 16),
            "pknorm_i16_f16 v8, v0, v2": ("hh", "u", lambda a, b, how: normal(F16, a, True, how) | normal(F16, b, True, how) << 16),
            "pknorm_u16_f16 v8, v0, v2": ("hh", "u", lambda a, b, how: normal(F16, a, False, how) | normal(F16, b, False, how) << 16),
            "v_cvt_pk_u8_f32 v8, v0, v2, v4": ("fuu", "u", lambda a, b, c, how: packed_byte(a, b, c)),
            "v_mullit_f32 v8, v0, v2, v4": ("fff", "f", lambda a, b, c, how: mullit(a, b, c)),
            "v_qsad_pk_u16_u8 v[8:9], v[0:1], v2, v[4:5]": ("lul", "l", lambda a, b, c, how: quad(a, b, c, False)),
            "v_mqsad_pk_u16_u8 v[8:9], v[0:1], v2, v[4:5]": ("lul", "l", lambda a, b, c, how: quad(a, b, c, True))}
    prefix = "v_cvt_pk" if t.target == "gfx1030" else "v_cvt_pk_"
    lines = [prefix + line[2:] if line.startswith("pk") else line for line in both]
    for line, code, (kinds, out, function) in zip(lines, assemble(t.target, lines, t.wave), both.values()):
        rounds = 4 if "norm" in line else 1
        for how in range(rounds):
            for _ in range(8):
                inputs, before, _, mask, r = t.run(code, kinds, mode=0x3f0 | how | how << 2)
                t.compare_lanes(f"{line} rounding {how}", inputs, before, mask, r, 8, out, lambda *a: function(*a, how))


def test_quad_of_words(t):
    code = assemble(t.target, ["v_mqsad_u32_u8 v[8:11], v[0:1], v2, v[4:7]"], t.wave)[0]
    for _ in range(4):
        inputs, before, _, mask, r = t.run(code, "lul")
        for i in range(4):
            for l in range(t.wave):
                want = int(before[8 + i, l])
                if mask >> l & 1:
                    want = (differences(inputs[0][l] >> 8 * i, inputs[1][l], True) + int(before[4 + i, l])) & 0xffffffff
                t.expect("v_mqsad_u32_u8", not r.status and int(r.v[8 + i, l]) == want, r.text or hex(want))


def finite(result, *sources):
    """FP16_OVFL: an infinity that no source brings is the largest number."""
    if F16.infinite(result) and not any(f.infinite(s) for f, s in sources):
        return result - 1
    return result


def of_halves(function, count):
    """An operation on halves, with every infinity that it makes itself taken back."""
    def one(values, how):
        return finite(function(F16, *values, how), *((F16, v) for v in values))

    def packed(values, how):
        return one([v & 0xffff for v in values], how) | one([v >> 16 for v in values], how) << 16
    return "h" * count, "u" * count, one, packed


def test_overflow(t):
    """FP16_OVFL, under all four roundings."""
    def to_half(values, how):
        return finite(convert(F16, F32, values[0], how), (F32, values[0]))

    def scaled(values, how):
        return finite(multiply(F16, values[0], F16.round(Fraction(512)), how), (F16, values[0]))

    def mixed(values, how):
        return finite(convert(F16, F32, fma(F32, *values, how), how), *((F32, v) for v in values))
    cases = [("v_cvt_f16_f32 v8, v0", "f", "h", to_half), ("v_ldexp_f16 v8, v0, 9", "h", "h", scaled),
             ("v_cvt_f16_u16 v8, v0", "h", "h", lambda v, how: finite(F16.round(Fraction(v[0]), how=how))),
             ("v_fma_mixlo_f16 v8, v0, v2, v4", "fff", "h", mixed)]
    for name, function, count in (("add", add, 2), ("mul", multiply, 2), ("fma", fma, 3)):
        kinds, pairs, one, packed = of_halves(function, count)
        sources = ", ".join(f"v{2 * i}" for i in range(count))
        cases += [(f"v_{name}_f16 v8, {sources}", kinds, "h", one), (f"v_pk_{name}_f16 v8, {sources}", pairs, "u", packed)]
    for (line, kinds, out, function), code in zip(cases, assemble(t.target, [c[0] for c in cases], t.wave)):
        for how in range(4):
            for _ in range(4):
                inputs, before, _, mask, r = t.run(code, kinds, mode=0x3f0 | how | how << 2 | OVERFLOW)
                t.compare_lanes(f"{line} under FP16_OVFL, rounding {how}", inputs, before, mask, r, 8, out,
                                lambda *values: function(values, how))


def test_division_by_zero(t):
    """The infinity of a division by zero stays under FP16_OVFL."""
    code = assemble(t.target, ["v_div_fixup_f16 v8, v0, v2, v4"], t.wave)[0]
    v = np.full((16, t.wave), 0x5a5a5a5a, np.uint32)
    v[0], v[2], v[4] = 0x7bff, 0x8000, 0x3c00  # the quotient so far, -0, 1
    s = np.zeros(128, np.uint32)
    s[EXEC] = s[EXEC + 1] = 0xffffffff
    r = t.emulator.step(t.target, code, s, v, mode=0x3f0 | OVERFLOW)
    t.expect("v_div_fixup_f16 under FP16_OVFL", not r.status and (r.v[8] == 0x5a5afc00).all(), r.text or hex(int(r.v[8][0])))


def test_dot2(t):
    """Sums that are exact; one that cancels leaves the complement's lowest place, as measured of WMMA."""
    if t.target == "gfx1030":
        return
    code = assemble(t.target, ["v_dot2_f16_f16 v3, v0, v1, v2", "v_dot2_f16_f16 v3, v0, v1, -|v2|"], t.wave)
    for bits, sign in zip(code, (lambda x: x, lambda x: -abs(x))):
        for _ in range(8):
            numbers = [[Fraction(t.rng.randint(-7, 7), 2) for _ in range(5)] for _ in range(t.wave)]
            exact = [n[0] * n[2] + n[1] * n[3] + sign(n[4]) for n in numbers]
            a, b, c, d, e = ([F16.round(row[i]) for row in numbers] for i in range(5))
            v = np.full((16, t.wave), 0x5a5a5a5a, np.uint32)
            v[0] = [low | high << 16 for low, high in zip(a, b)]
            v[1] = [low | high << 16 for low, high in zip(c, d)]
            v[2] = [0x7fff0000 | low for low in e]
            s = np.zeros(128, np.uint32)
            s[EXEC] = s[EXEC + 1] = 0xffffffff
            r = t.emulator.step(t.target, bits, s, v)
            wrong = [(hex(int(x)), y) for x, y in zip(r.v[3], exact) if y and int(x) != 0x5a5a0000 | F16.round(y)]
            t.expect("v_dot2_f16_f16", not r.status and not wrong, r.text or wrong[:1])


def test_setting(t):
    """An instruction sets the bit, and it takes effect."""
    lines = ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1", "v_cvt_f16_f32 v8, v0",
             "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 0", "v_cvt_f16_f32 v9, v0"]
    v = np.full((16, t.wave), 0x47889800, np.uint32)  # 70000
    s = np.zeros(128, np.uint32)
    s[EXEC] = s[EXEC + 1] = 0xffffffff
    r = t.emulator.step(t.target, b"".join(assemble(t.target, lines, t.wave)), s, v)
    t.expect("s_setreg of FP16_OVFL", not r.status and (r.v[8] & 0xffff == 0x7bff).all() and (r.v[9] & 0xffff == 0x7c00).all(),
             r.text or hex(r.v[8][0]))


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    testers = (Tester(emulator, target, wave, 11) for target in ("gfx1100", "gfx1030", "gfx1201") for wave in (32, 64))
    return emulator.run_tests(testers, (test_conversions, test_quad_of_words, test_overflow, test_division_by_zero,
                                        test_dot2, test_setting))


if __name__ == "__main__":
    sys.exit(main())
