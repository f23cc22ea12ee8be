"""MFMA of gfx908, gfx90a and gfx942: every element's place as AMD's matrix instruction calculator prints it, with whole numbers,
whose sums are exact; registers of both kinds, constants, blocks that share a factor, lanes of B that are exchanged;
sparse products with every set of indices; denormals; any floats as sums of exact products, each with one rounding. And the register that says on which accelerator a wave runs.
Usage: matrix_cdna_test.py [emu_step]
"""
import random
import re
import sys
from fractions import Fraction

import numpy as np

from emulator import EXEC, Checks, Emulator, assemble
from floats import F16, F32, F64, M32, convert, fma
from opcode_table import rows
from opcodes_rdna4 import FNUZ

ROWS, FIRST = 160, 80  # registers of a case, and the place of a0 among them (tests/emu_step.c)

# Of A by row i, column k and block b: (register, lowest bit, lane). B is the same by column j.
FACTORS = {
    (32, "blocks", 1): lambda m, i, k, b: (0, 0, m * b + i),
    (32, "k", 1): lambda m, i, k, b: (0, 0, m * k + i),
    (32, "k", 2): lambda m, i, k, b: (k % 2, 0, m * (k // 2) + i),
    (16, "blocks", 2): lambda m, i, k, b: (0, 16 * k, m * b + i),
    (16, "blocks", 4): lambda m, i, k, b: (k // 2, 16 * (k % 2), m * b + i),
    (16, "k", 2): lambda m, i, k, b: (0, 16 * (k % 2), m * (k // 2) + i),
    (16, "k", 4): lambda m, i, k, b: (k // 2 % 2, 16 * (k % 2), m * (k // 4) + i),
    (8, "blocks", 4): lambda m, i, k, b: (0, 8 * k, m * b + i),
    (8, "k", 4): lambda m, i, k, b: (0, 8 * (k % 4), m * (k // 4) + i),
    (8, "k", 8): lambda m, i, k, b: (k // 4 % 2, 8 * (k % 4), m * (k // 8) + i),
    (16, "k", 8): lambda m, i, k, b: (k // 2 % 4, 16 * (k % 2), m * (k // 8) + i),
    (8, "k", 16): lambda m, i, k, b: (k // 4 % 4, 8 * (k % 4), m * (k // 16) + i),
    (64, "blocks", 1): lambda m, i, k, b: (0, 0, 4 * b + 16 * k + i),
    (64, "k", 1): lambda m, i, k, b: (0, 0, 16 * k + i),
}
# Of C and D by row i, column j and block b: (register, lane).
RESULTS = {
    (32, 32): lambda i, j, b: (16 * b + 4 * (i // 8) + i % 4, 32 * (i // 4) % 64 + j),
    (32, 16): lambda i, j, b: (4 * b + i % 4, 16 * (i // 4) + j),
    (32, 4): lambda i, j, b: (i, 4 * b + j),
    (64, 16): lambda i, j, b: (2 * (i // 4), 16 * (i % 4) + j),
    (64, 4): lambda i, j, b: (0, 16 * (i % 4) + 4 * b + j),
}
ENCODE = {"F32": lambda n: F32.round(n), "XF32": lambda n: F32.round(n), "F16": lambda n: F16.round(n),
          "BF16": lambda n: F32.round(n) >> 16, "I8": lambda n: n & 255, "F64": lambda n: F64.round(n)}
for name, small in FNUZ.items():
    ENCODE[name] = {small.decode(i): i for i in range(256) if i != 0x80}.__getitem__
WHOLE = {"I8": range(-127, 128), "BF8": [n for n in range(-14, 15) if abs(n) not in (9, 11, 13)]}
BITS = {"F32": 32, "XF32": 32, "F16": 16, "BF16": 16, "I8": 8, "F64": 64, "FP8": 8, "BF8": 8}


class Form:
    def __init__(self, name, mnemonic):
        sparse, out, m, k, blocks, kinds = re.fullmatch(
            r"V_(SMFMAC|MFMA)_([FI]\d+)_(\d+)X\d+X(\d+)_(?:(\d+)B_)?(\w+)", name).groups()
        self.kind, self.kind_b = kinds[:kinds.find("_")] if "_" in kinds else kinds, kinds.split("_")[-1]
        self.sparse = sparse == "SMFMAC"
        self.mnemonic, self.m, self.k, self.blocks = mnemonic, int(m), int(k), int(blocks or 1)
        self.bits, self.out = BITS[self.kind], 64 if out == "F64" else 32
        run = self.m * self.k * self.blocks // 64  # elements of a factor that a lane has
        lies = "blocks" if self.blocks > 1 else "k"
        self.factor = FACTORS[self.bits, lies, run]
        self.factor_a = FACTORS[self.bits, lies, run // 2] if self.sparse else self.factor
        self.run_a = run // 2 if self.sparse else run
        self.result = RESULTS[self.out, self.m]
        self.in_factor = max(run * self.bits // 32, 1)
        self.in_result = self.m * self.m * self.blocks // 64 * self.out // 32


class Tester(Checks):
    def __init__(self, emulator, target):
        super().__init__(target)
        self.emulator, self.target, self.rng = emulator, target, random.Random(target)


def span(file, first, count):
    return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"


def put(v, register, low, lane, bits, value):
    for part in range(max(bits // 32, 1)):
        mask = ((1 << min(bits, 32)) - 1) << low
        word = value >> 32 * part & M32
        v[register + part, lane] = int(v[register + part, lane]) & ~mask & M32 | word << low & mask


def lane_of_b(blgp, lane):
    if blgp in (1, 2):
        return lane % 32 + 32 * (blgp - 1)
    return (lane + 16) % 64 if blgp == 3 else lane % 16 + 16 * (blgp - 4) if blgp else lane


def check(t, form, variant):
    rng = t.rng
    files = [rng.choice("va") for _ in range(3)]
    if t.target == "gfx908":  # sums are in accumulation registers
        files[2] = "a"
    at = [0, 8, 16]
    # LLVM knows of a mistake of gfx908: it takes no constants for C
    over = t.target != "gfx908" and variant == 1 and form.in_result >= form.in_factor  # D over A and C
    cbsz = rng.randint(1, form.blocks.bit_length() - 1) if form.blocks > 1 and variant == 2 else 0
    abid = rng.randrange(1 << cbsz) if cbsz else 0
    blgp = rng.randrange(1, 8) if variant == 3 and form.kind != "F64" and form.kind != "I8" else 0
    constant = rng.choice((0, 1, -3, 17)) if variant == 4 and t.target != "gfx908" else None
    if over:
        at[0], files[0] = 16, files[2]
    v = np.array([[rng.getrandbits(32) for _ in range(64)] for _ in range(ROWS)], np.uint32)
    base = [a + (FIRST if f == "a" else 0) for a, f in zip(at, files)]
    limit = 1 << 31 if form.kind == "I8" else 1000

    def factor(where, kind):
        values = {(i, k, b): rng.choice(WHOLE.get(kind, range(-15, 16))) for i in range(form.m) for k in range(form.k)
                  for b in range(form.blocks)}
        for (i, k, b), n in values.items():
            register, low, lane = form.factor(form.m, i, k, b)
            put(v, where + register, low, lane, form.bits, ENCODE[kind](n))
        return values
    c = {}
    encode = (lambda n: n & M32) if form.kind == "I8" else F64.round if form.out == 64 else F32.round
    for b in range(form.blocks):
        for i in range(form.m):
            for j in range(form.m):
                register, lane = form.result(i, j, b)
                c[i, j, b] = rng.randint(-limit, limit - 1)
                if not over:
                    put(v, base[2] + register, 0, lane, form.out, encode(c[i, j, b]))
    a, bb = factor(base[0], form.kind), factor(base[1], form.kind_b)
    if over:  # C is then whatever A left there: make it zero by a constant
        constant = 0
    if constant is not None:  # inline whole numbers are their bits, not floats
        constant = constant if form.kind == "I8" or not constant else {1: "1.0", -3: "-4.0", 17: "2.0"}[constant]
        c = dict.fromkeys(c, int(float(constant)))
    source = span(files[2], at[2], form.in_result) if constant is None else str(constant)
    text = (f"{form.mnemonic} {span(files[2], at[2], form.in_result)}, {span(files[0], at[0], form.in_factor)}, "
            f"{span(files[1], at[1], form.in_factor)}, {source}")
    text += f" cbsz:{cbsz}" * bool(cbsz) + f" abid:{abid}" * bool(abid) + f" blgp:{blgp}" * bool(blgp)
    code = assemble(t.target, [text], 64)[0]
    s = [0] * 128
    s[EXEC], s[EXEC + 1] = rng.getrandbits(32), rng.getrandbits(32)  # of no matter to matrices
    # where each of B lies says what the exchanged lanes hold
    lies = {form.factor(form.m, i, k, b): n for (i, k, b), n in bb.items()}
    want = v.copy()
    for (i, j, b), n in c.items():
        block = (b >> cbsz << cbsz) + abid
        total = n
        for k in range(form.k):
            register, low, lane = form.factor(form.m, j, k, b)
            total += a[i, k, block] * lies[register, low, lane_of_b(blgp, lane)]
        register, lane = form.result(i, j, b)
        put(want, base[2] + register, 0, lane, form.out, encode(total))
    r = t.emulator.step(t.target, code, s, v)
    same = not r.status and np.array_equal(r.v, want)
    where = "" if r.status or same else str([tuple(map(int, x)) for x in np.argwhere(r.v != want)[:3]])
    t.expect(text, same, r.text or where)


def check_sparse(t, form, cbsz, abid):
    rng = t.rng
    files = [rng.choice("va") for _ in range(3)]
    at, index, sets = [0, 8, 16], 40, 32 // (2 * form.run_a)
    base = [a + (FIRST if f == "a" else 0) for a, f in zip(at, files)]
    v = np.array([[rng.getrandbits(32) for _ in range(64)] for _ in range(ROWS)], np.uint32)
    a, b, c = {}, {}, {}
    for i in range(form.m):
        for k in range(form.k):
            b[i, k] = rng.choice(WHOLE.get(form.kind_b, range(-15, 16)))
            register, low, lane = form.factor(form.m, i, k, 0)
            put(v, base[1] + register, low, lane, form.bits, ENCODE[form.kind_b](b[i, k]))
        for group in range(form.k // 4):
            chosen = sorted(rng.sample(range(4), 2))
            for n in range(2):
                place = 2 * group + n
                value = rng.choice(WHOLE.get(form.kind, range(-15, 16)))
                register, low, lane = form.factor_a(form.m, i, place, 0)
                put(v, base[0] + register, low, lane, form.bits, ENCODE[form.kind](value))
                bit = 2 * (place % form.run_a) + 2 * form.run_a * (0 if cbsz else abid % sets)
                word = int(v[index, lane])
                v[index, lane] = word & ~(3 << bit) & M32 | chosen[n] << bit
                a[i, 4 * group + chosen[n]] = value
    encode = (lambda n: n & M32) if form.kind == "I8" else F32.round
    want = v.copy()
    for i in range(form.m):
        for j in range(form.m):
            c = rng.randint(-1000, 1000)
            register, lane = form.result(i, j, 0)
            v[base[2] + register, lane] = encode(c)
            want[base[2] + register, lane] = encode(c + sum(n * b[j, k] for (row, k), n in a.items() if row == i))
    text = (f"{form.mnemonic} {span(files[2], at[2], form.in_result)}, {span(files[0], at[0], form.in_factor // 2)}, "
            f"{span(files[1], at[1], form.in_factor)}, v{index}")
    text += f" cbsz:{cbsz}" * bool(cbsz) + f" abid:{abid}" * bool(abid)
    r = t.emulator.step(t.target, assemble(t.target, [text], 64)[0], [0] * 128, v)
    same = not r.status and np.array_equal(r.v, want)
    where = "" if r.status or same else str([tuple(map(int, x)) for x in np.argwhere(r.v != want)[:3]])
    t.expect(text, same, r.text or where)


def read(v, register, low, lane, bits):
    return sum(int(v[register + i, lane]) << 32 * i for i in range(bits // 32)) if bits >= 32 else \
        int(v[register, lane]) >> low & ((1 << bits) - 1)


def check_rounding(t, form):
    """Some elements of a product of any floats, infinities and NaN among them: each product is exact, and added with one
    rounding, in ascending k."""
    rng, wide = t.rng, F64 if form.kind == "F64" else F32
    file, base = ("a", FIRST) if t.target == "gfx908" else ("v", 0)
    to_wide = {"F32": lambda x: x, "XF32": lambda x: x & ~0x1fff, "F64": lambda x: x, "BF16": lambda x: x << 16,
               "F16": lambda x: convert(F32, F16, x)}[form.kind]
    v = np.array([[rng.getrandbits(32) for _ in range(64)] for _ in range(ROWS)], np.uint32)
    if form.bits == 32:  # numbers of like size, a few of them any bits
        sizes = np.array([[F32.round(Fraction(rng.randrange(-10**9, 10**9), 10**8)) for _ in range(64)] for _ in range(16)])
        v[:16] = np.where(np.array([[rng.random() < 0.02] * 64 for _ in range(16)]), v[:16], sizes)
    sums = span(file, 16, form.in_result)
    text = f"{form.mnemonic} {sums}, {span('v', 0, form.in_factor)}, {span('v', 8, form.in_factor)}, {sums}"
    r = t.emulator.step(t.target, assemble(t.target, [text], 64)[0], [0] * 128, v)
    for _ in range(8):
        i, j, b = rng.randrange(form.m), rng.randrange(form.m), rng.randrange(form.blocks)
        register, lane = form.result(i, j, b)
        total = read(v, base + 16 + register, 0, lane, form.out)
        for k in range(form.k):
            x, y = (to_wide(read(v, first + at, low, where, form.bits)) for first, (at, low, where) in
                    ((0, form.factor(form.m, i, k, b)), (8, form.factor(form.m, j, k, b))))
            total = fma(wide, x, y, total)
        got = read(r.v, base + 16 + register, 0, lane, form.out)
        same = got == total or (form.kind == "F64" and F64.nan(got) and F64.nan(total))
        t.expect(f"{text}: {i}, {j} of {b}", not r.status and same, f"{r.text} {got:#x}, {total:#x}")


def check_denormals(t):
    """1 times a denormal number and a denormal addend: gfx90a makes them zero, gfx908 and gfx942 keep them."""
    file, base = ("a", FIRST) if t.target == "gfx908" else ("v", 0)
    for kind, name in (("f16", "v_mfma_f32_16x16x16_f16"), ("bf16", "v_mfma_f32_16x16x16_bf16")):
        if t.target == "gfx908" and kind == "bf16":
            continue  # has two a register alone
        if t.target != "gfx942":
            name = name.replace("_bf16", "bf16_1k").replace("16_f16", "16f16")
        one, tiny = (0x3c00 if kind == "f16" else 0x3f80), 0x8001
        keeps = t.target != "gfx90a"
        for factor, addend in ((one, 0x80000123), (tiny, 0)):
            v = np.zeros((ROWS, 64), np.uint32)
            v[0, :16] = factor  # A[i][0]
            v[2, :16] = tiny if factor == one else one  # B[0][j]
            v[base + 8:base + 12] = addend
            tiny_value = F32.round(-F16.value(1)) if kind == "f16" else 0x80010000
            want = tiny_value
            if addend:
                want = F32.round(F32.value(tiny_value) + F32.value(addend)) if keeps else 0
            r = t.emulator.step(t.target, assemble(t.target, [f"{name} {file}[8:11], v[0:1], v[2:3], {file}[8:11]"], 64)[0],
                                [0] * 128, v)
            got = {int(x) for x in r.v[base + 8:base + 12].flatten()}
            expected = {want} if keeps else {0, 0x80000000}
            t.expect(f"{name} of {factor:#x}, {addend:#x}", not r.status and got <= expected, f"{r.text} {got}")


def check_constant(t):
    """gfx908's constants in place of C, which no assembler writes, are not executed: gfx90a's code for the same."""
    code = assemble("gfx90a", ["v_mfma_f32_4x4x1f32 a[0:3], v0, v1, 1.0"], 64)[0]
    r = t.emulator.step("gfx908", code, [0] * 128, np.zeros((ROWS, 64), np.uint32))
    t.expect("a constant addend", r.status and "gives wrong sums" in r.text, r.text)


def check_accelerator(t):
    """Register 20 is XCC_ID on gfx942, where later generations have FLAT_SCRATCH, and nothing on the others."""
    read, write = assemble(t.target, ["s_getreg_b32 s20, hwreg(20)", "s_setreg_imm32_b32 hwreg(20), 7"], 64)
    r = t.emulator.step(t.target, read, [7] * 128, np.zeros((4, 64), np.uint32))
    has = t.target == "gfx942"
    t.expect("hwreg(20)", not r.status and int(r.s[20]) == 0 if has else r.status and "not one" in r.text, r.text)
    r = t.emulator.step(t.target, write, [7] * 128, np.zeros((4, 64), np.uint32))
    t.expect("hwreg(20) written", r.status and "cannot be written" in r.text, r.text)


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    testers = [Tester(emulator, target) for target in ("gfx908", "gfx90a", "gfx942")]
    found = {t.target: [Form(row.name, row.on[t.target][1]) for row in rows()
                        if t.target in row.on and re.match("V_S?MFMA", row.name)] for t in testers}

    def test(t):
        check_denormals(t)
        check_accelerator(t)
        if t.target == "gfx908":
            check_constant(t)
        for form in found[t.target]:
            if form.sparse:
                for set_of in range(16 // form.run_a):
                    check_sparse(t, form, 0, set_of)
                check_sparse(t, form, 1, 1)
                continue
            older = t.target == "gfx908"  # whose shapes gfx90a has, too
            for variant in (t.rng.choice((0, 2, 3)),) if older else (0, 1, t.rng.randrange(2, 5)):
                check(t, form, variant)
            if form.kind in ("F32", "XF32", "F64") or (form.kind in ("F16", "BF16") and t.target != "gfx90a"):
                check_rounding(t, form)
    return emulator.run_tests(testers, [test])


if __name__ == "__main__":
    sys.exit(main())
