"""The opcodes of isa/ops_*.def and codes_*.def, one Row each, and the harness of the checks of opcodes_test.py."""
import os
import random
import re

import numpy as np

from emulator import NULL, assemble_groups
from floats import F16, F32, F64, SPECIAL, signed

DWORDS = {"B64": 2, "I64": 2, "U64": 2, "F64": 2, "B96": 3, "B128": 4, "B256": 8, "B512": 16, "B1024": 32, "FRAG4": 4,
          "FRAG2": 2, "PKF32": 2, "PKB32": 2}
PARTS = ("scalar", "vector", "memory")
CODES = {target: [f"{codes}_{part}" for part in PARTS] for target, codes in
         (("gfx1030", "codes_gfx10"), ("gfx1100", "codes_gfx11"), ("gfx1201", "codes_gfx12"))}
CODES["gfx1030"] += ["codes_gfx10_dot", "codes_gfx103"]
CODES["gfx1150"], CODES["gfx1010"] = ["codes_gfx115"], ["codes_gfx101"]  # what gfx1100 and gfx1030 have not
CODES["gfx906"] = [f"codes_gfx9_{part}" for part in PARTS] + ["codes_gfx906", "codes_gfx9_gcn", "codes_gfx9_mad"]
CODES["gfx900"] = ["codes_gfx900"]
CODES["gfx908"] = ["codes_gfx908_mfma"]
CODES["gfx90a"] = ["codes_gfx908_mfma", "codes_gfx90a_only"]
CODES["gfx942"] = ["codes_gfx908", "codes_gfx90a", "codes_gfx942", "codes_gfx942_only"]
FORMATS = {"F16": F16, "F32": F32, "F64": F64}


def bits_of(kind):
    return 16 if kind in ("B16", "I16", "U16", "F16", "BF16") else 32 * DWORDS.get(kind, 1)


class Row:
    """An opcode: the types of its operands, what its encoding admits, its format and mnemonic on each target."""

    def __init__(self, name, types, flags):
        self.name, self.flags = name, set(flags.split(" | "))
        self.dst, *self.src = [t.strip() for t in types.split(",")]
        self.src = [t for t in self.src if t != "_"]
        self.on = {}


def read(name):
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "isa")
    with open(os.path.join(folder, name)) as f:
        return re.sub(r"//.*", "", f.read())


def rows():
    found = {}
    for part in PARTS:
        name = f"ops_{part}.def"
        text = read(name)
        here = [Row(*m) for m in re.findall(r"OP\((\w+), T\(([^)]*)\), ([^)]*)\)", text)]
        if text.count("OP(") != len(here):
            raise RuntimeError(f"{name} has a row that is not understood")
        found.update({row.name: row for row in here})
    for target, name in ((target, name) for target, names in CODES.items() for name in names):
        text = re.sub("#include.*", "", read(f"{name}.def"))
        here = re.findall(r'[IA]S\((\w+), (\w+), \w+(?:, "(\w+)")?\)', text)
        if text.count("S(") != len(here):
            raise RuntimeError(f"{name} has a row that is not understood")
        for op, kind, alias in here:
            found[op].on[target] = (kind, alias or op.lower())
    return [row for row in found.values() if row.on]


class Case:
    def __init__(self, op, text, check, real16):
        self.op, self.text, self.check, self.real16 = op, text, check, real16


class Tester:
    """The checks of one target and wave size: collected first, then assembled together, then run."""

    def __init__(self, emulator, target, wave, seed):
        self.emulator, self.target, self.wave = emulator, target, wave
        self.gfx9 = target.startswith("gfx9")
        self.new = not target.startswith("gfx10") and not self.gfx9
        self.rdna4 = target == "gfx1201"
        self.rng = random.Random(seed)
        self.noise = np.random.default_rng(self.rng.getrandbits(64))
        self.cases, self.failures, self.done, self.checked, self.now = [], [], set(), 0, None

    def add(self, op, text, check, real16=False):
        """text: one or more lines; check(code) runs them and calls expect."""
        self.cases.append(Case(op, text, check, real16))

    def run_all(self):
        for real16 in (False, True):  # LLVM 19 names halves of registers only when asked to
            cases = [c for c in self.cases if c.real16 == real16]
            attributes = "+real-true16" if real16 else ""
            codes = assemble_groups(self.target, [c.text for c in cases], self.wave, attributes) if cases else []
            for case, code in zip(cases, codes):
                self.now = case
                case.check(code)
        self.cases = []

    def expect(self, condition, detail=""):
        self.checked += 1
        self.done.add(self.now.op)
        if not condition:
            self.failures.append(f"{self.target} wave{self.wave} {self.now.op}: {self.now.text!r}: {detail}")

    def words(self, *shape):
        return self.noise.integers(0, 1 << 32, shape, dtype=np.uint32)

    def scalars(self):
        s = [int(x) for x in self.words(128)]
        s[NULL] = 0
        return s

    def lanes_on(self):
        """A mask with holes, rarely all lanes, one or none."""
        how = self.rng.random()
        if how < 0.1:
            return (1 << self.wave) - 1 if how < 0.07 else 0
        if how < 0.2:
            return 1 << self.rng.randrange(self.wave)
        return self.rng.getrandbits(self.wave) | 1 << self.rng.randrange(self.wave)

    def mode(self, mode):
        """The MODE that has the meaning of these bits: RDNA 4 clamps NaN to zero and has no rules of IEEE to choose."""
        return mode & ~0x300 if self.rdna4 else mode

    def step(self, code, s, v=None, mode=0x3f0, **more):
        v = np.zeros((4, self.wave), np.uint32) if v is None else v
        return self.emulator.step(self.target, code, s, v, mode=self.mode(mode), **more)


# What sources hold: edges of their type, ordinary numbers, noise.
EDGES = {
    "I32": SPECIAL["u"] + SPECIAL["i"], "U32": SPECIAL["u"] + [33, 63, 64, 0x80000001], "B32": SPECIAL["u"],
    "B64": SPECIAL["l"], "I64": SPECIAL["l"], "U64": SPECIAL["l"],
    "B16": [0, 1, 15, 16, 17, 0x7fff, 0x8000, 0xffff], "F16": SPECIAL["h"], "F32": SPECIAL["f"], "F64": SPECIAL["d"]}
EDGES["I16"] = EDGES["U16"] = EDGES["B16"]


def sample(rng, kind, ordinary=False):
    """The bits of one value. ordinary: floats whose sums and products are neither denormal nor infinite."""
    how = rng.random()
    if kind in FORMATS:
        f = FORMATS[kind]
        if how < 0.35 and not ordinary:
            return rng.choice(EDGES[kind])
        if how < 0.8 or ordinary:
            exponent = rng.randint(-3, 3) if kind == "F16" else rng.randint(-12, 12)
            sign = rng.getrandbits(1) and f.sign
            return sign | (f.bias + exponent) << f.fraction | rng.getrandbits(f.fraction)
        return rng.getrandbits(f.bits)
    if kind in ("PKF16", "PKBF16", "PKI16", "PKU16", "PKB16"):
        half = {"PKBF16": "B16"}.get(kind, kind[2:])
        return sample(rng, half, ordinary) | sample(rng, half, ordinary) << 16
    if kind in EDGES and how < 0.4:
        return rng.choice(EDGES[kind])
    return rng.getrandbits(bits_of(kind))


def seen_as(kind, bits):
    """What a function of the tables gets: signed types as signed integers, all others as their bits."""
    return signed(bits, bits_of(kind)) if kind in ("I16", "I32", "I64") else bits
