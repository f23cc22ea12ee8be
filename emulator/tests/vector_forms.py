"""The forms in which vector opcodes are checked: operands, modifiers, DPP, SDWA, halves, pairs; lanes that move."""
import os
import re
from fractions import Fraction

import numpy as np

import floats
from emulator import EXEC, M0, VCC
from floats import F16, F32, F64, M32, M64, clamp, convert, signed
from opcode_table import DWORDS, FORMATS, bits_of, sample, seen_as
from opcodes_scalar import Constant, Place, constant, lowest_one
from opcodes_vector import (ACCUMULATES, APART, FINITE, NEARLY, Near, Now, Packed, SCALE, SKIP, VALU, WHOLE_NUMBERS,
                            field, fma, how, zero)


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
        self.high = row.name in ("V_FMA_MIXHI_F16", "V_MAD_MIXHI_F16")
        self.zeroes = t.gfx9 and row.name not in KEEPS_HIGH
        self.dpp = self.sdwa = None
        self.named_halves = row.name == "V_MOV_B16"  # LLVM 19 has it only so
        self.patch = 0  # bits that LLVM 19 writes only for registers that it names otherwise
        self.mask_out = "vcc" if self.encoding in ("VOP2", "VOPC") else "s20"
        self.mask_in = "vcc" if self.encoding == "VOP2" else "s22"
        self.modes, self.ordinary, self.flushes, self.full = [0x3f0], row.name in WHOLE_NUMBERS, False, False
        self.mixed = row.name.startswith(("V_FMA_MIX", "V_MAD_MIX"))
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
        if (self.compares() and ("CMPX" not in row.name or self.t.gfx9)) or "SDST" in row.flags:
            parts.append(self.mask_text(self.mask_out))
        sources = [s.text(self.packed) for s in self.sources]
        if self.named_halves:
            parts[0] += ".h" if self.high else ".l"
            sources = [x + (".h" if s.high else ".l") * isinstance(s.place, int) for x, s in zip(sources, self.sources)]
        if "MK_F" in row.name or "AK_F" in row.name:
            sources.insert(1 if "MK_F" in row.name else 2, self.constant.text)
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

    def over_source(self):
        """The destination is a register of a source, in part where they have different lengths."""
        source, n = self.t.rng.choice(self.sources), DWORDS.get(self.row.dst, 1)
        source.place = 8 + (self.t.rng.randrange(n) if source.dwords() == 1 and not self.compares() else 0)
        self.modes, self.full = [0x3f0] * 2, True

    def inputs(self):
        """Registers in which the sources hold edges and numbers of their type."""
        t, row = self.t, self.row
        v, s = t.words(16, t.wave), t.scalars()
        for source in self.sources + ([Source(row.dst, 8)] if row.name in ACCUMULATES else []):
            kind = source.kind
            narrow = self.mixed and source.high_high
            values = [whole_number(t.rng, kind) if row.name in WHOLE_NUMBERS else
                      sample(t.rng, "F16" if narrow and t.rng.getrandbits(1) else kind, self.ordinary)
                      for _ in range(t.wave)]
            if row.name == "V_TRIG_PREOP_F64" and kind == "F64":  # its shift begins at one exponent, its scale at another
                exponents = (1076, 1077, 1078, 1967, 1968, 1969, 2046)
                values = [t.rng.choice((x, x & ~(2047 << 52) | t.rng.choice(exponents) << 52)) for x in values]
            if row.name in FINITE:
                values = [x if x & F32.inf != F32.inf else x & 0x807fffff for x in values]
                values[1:4] = [x & F32.sign for x in values[1:4]]  # lanes whose direction has no length
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
            if self.full and t.rng.getrandbits(1):
                mask = (1 << t.wave) - 1
            s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
            mode = t.mode(mode)
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
        Now.mode, Now.wave, Now.signs, Now.rdna4 = mode, t.wave, tuple(x.neg for x in self.sources[:2]), t.rdna4
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
            if "MK_F" in row.name or "AK_F" in row.name:
                values.insert(1 if "MK_F" in row.name else 2, self.constant.value)
            if row.name in ACCUMULATES:
                old = Source(row.dst, 8)
                old.high = self.high
                values.append(seen_as(row.dst, old.read(v, s, l)))
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
            places = [EXEC] if "CMPX" in row.name else []
            if "CMPX" not in row.name or t.gfx9:
                places.append(VCC if self.mask_out == "vcc" else 20)
            for at in places:
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
        if width == 16 and self.zeroes and not self.high:
            return bits
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
            factor = (Fraction(2), Fraction(4), Fraction(1, 2))[self.omod - 1]
            value = floats.multiply(f, value, f.round(factor), how(f))
            if not value & f.inf:
                return 0 if zero(f, value) else SKIP
        if self.clamp:
            if f.nan(value):
                return 0 if mode >> 8 & 1 or self.t.rdna4 else value
            one = f.bias << f.fraction
            return 0 if value & f.sign else min(value, one)
        return value


# What leaves the other half of its register alone on GFX9, too.
KEEPS_HIGH = {"V_MAD_F16", "V_FMA_F16", "V_MAD_U16", "V_MAD_I16", "V_DIV_FIXUP_F16", "V_MAC_F16", "V_MADMK_F16", "V_MADAK_F16",
              "V_FMA_MIXLO_F16", "V_FMA_MIXHI_F16", "V_MAD_MIXLO_F16", "V_MAD_MIXHI_F16"}


def mad_mix(a, b, c):
    total = VALU["V_MAD_F32"](a, b, c)
    half = SKIP if total is SKIP else convert(F16, F32, total, how(F16))
    return half if half is SKIP or half & F16.inf else half & F16.sign  # no denormals


VALU["V_MAD_MIX_F32"] = VALU["V_MAD_F32"]
VALU["V_MAD_MIXLO_F16"] = VALU["V_MAD_MIXHI_F16"] = mad_mix
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
    small = {"F32": lambda: F32.round(Fraction(rng.randint(0, 1000))),
             "F16": lambda: F16.round(Fraction(rng.randint(0, 30)))}
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


def dpp16(t):
    """(text, function): the lane that each lane reads, None outside of the row."""
    rng = t.rng
    n = rng.randint(1, 15)
    quad = [rng.randrange(4) for _ in range(4)]
    if t.gfx9 and rng.random() < 0.4:
        return rng.choice((
            ("wave_shl:1", lambda l: l + 1 if l < 63 else None), ("wave_rol:1", lambda l: (l + 1) % 64),
            ("wave_shr:1", lambda l: l - 1 if l else None), ("wave_ror:1", lambda l: (l - 1) % 64),
            ("row_bcast:15", lambda l: (l & ~15) - 1 if l > 15 else None), ("row_bcast:31", lambda l: 31 if l > 31 else None)))
    return rng.choice((
        (f"quad_perm:[{','.join(map(str, quad))}]", lambda l: l & ~3 | quad[l & 3]),
        (f"row_shl:{n}", lambda l: l + n if (l & 15) + n < 16 else None),
        (f"row_shr:{n}", lambda l: l - n if l & 15 >= n else None),
        (f"row_ror:{n}", lambda l: l & ~15 | (l - n) & 15), ("row_mirror", lambda l: l ^ 15),
        ("row_half_mirror", lambda l: l ^ 7)) + (() if t.gfx9 else (
            (f"row_share:{n}", lambda l: l & ~15 | n), (f"row_xmask:{n}", lambda l: l ^ n))))


def with_dpp(x, rng):
    """DPP16 or DPP8 on src0."""
    fetch = rng.getrandbits(1) and not x.t.gfx9
    if rng.random() < 0.3 and not x.t.gfx9:
        choice = [rng.randrange(8) for _ in range(8)]
        x.more += f" dpp8:[{','.join(map(str, choice))}]" + " fi:1" * fetch

        def take(l, mask):
            source = l & ~7 | choice[l & 7]
            return (source if fetch or mask >> source & 1 else None), True
    else:
        (text, lane), bound = dpp16(x.t), rng.getrandbits(1)
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
        x.sdwa = rng.choice(names[:-1] if narrow else names), "UNUSED_" + rng.choice(("PAD", "SEXT", "PRESERVE"))
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
    allowed = [i for i, s in enumerate(x.sources) if re.fullmatch(r"[BIUF](16|32|64)", s.kind)]
    if x.suffix == "" and x.encoding in ("VOP1", "VOP2", "VOPC"):
        allowed = [i for i in allowed if i == 0]
    if not allowed:
        return False
    source = x.sources[rng.choice(allowed)]
    kind = source.kind
    long = x.suffix or x.encoding not in ("VOP1", "VOP2", "VOPC")
    masked = "MASK" in x.row.src or "DIV_FMAS" in x.row.name  # VCC is the one scalar that may be read
    if x.t.gfx9 and (masked or long and rng.getrandbits(1) and x.row.name not in FINITE):  # no literals there
        n = rng.randint(-16, 64)
        source.place = Constant(str(n), n & ((1 << bits_of(kind)) - 1))
        source.high = False
    elif x.t.gfx9 and long or rng.getrandbits(1) or kind in ("I64", "U64", "B64") or x.row.name in FINITE or x.mixed:
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


ROUNDED = {f"V_{n}_{f}" for n in ("ADD", "SUB", "SUBREV", "MUL", "FMA", "FMAC", "LDEXP", "DIV_FIXUP", "DIV_FMAS",
                                  "DIV_SCALE", "FMAMK", "FMAAK", "MAD", "MAC", "MADMK", "MADAK") for f in FORMATS} | {
    "V_PK_FMA_F16", "V_PK_ADD_F16", "V_PK_MUL_F16", "V_CVT_F16_F32", "V_CVT_F32_F64", "V_CVT_F32_I32", "V_CVT_F32_U32",
    "V_CVT_F16_I16", "V_CVT_F16_U16", "V_FMA_MIX_F32", "V_FMA_MIXLO_F16", "V_FMA_MIXHI_F16", "V_MUL_DX9_ZERO_F32",
    "V_FMA_DX9_ZERO_F32", "V_FMAC_DX9_ZERO_F32", "V_PK_FMAC_F16", "V_CVT_PK_RTZ_F16_F32"}
QUIETING = re.compile(r"V_(PK_)?(MIN|MAX|MIN3|MAX3|MED3|MAXMIN|MINMAX)_F")  # differs by MODE.IEEE
FLUSHED = re.compile(r"V_(PK_)?(ADD|SUB|SUBREV|MUL|FMA|FMAC|FMAMK|FMAAK|MIN|MAX|MIN3|MAX3|MED3)_F(16|32|64)")
# Integer results that clamp has nothing to do for, or nobody says what; the emulator refuses it.
NO_CLAMP = re.compile(r"V_CVT_|V_FREXP_EXP|V_PACK|V_QSAD|V_MQSAD|V_(MIN|MAX|MED)3_[IU]16")


def add_valu(t, row):
    rng, literal = t.rng, "MK_F" in row.name or "AK_F" in row.name

    def make():
        x = Vector(t, row)
        if literal:
            value = rng.choice((0x3fc00000, 0x12345678, 0xff800000) if row.dst == "F32" else (0x3e00, 0x1234))
            x.constant = Constant(hex(value), value)
        return x

    def put(x):
        t.add(row.name, x.text(), x.run, x.named_halves)
    base = make()
    short = base.encoding in ("VOP1", "VOP2", "VOPC")
    x = make()
    x.modes = [0x3f0] * 3
    put(x)
    if "QSAD" not in row.name:  # they must not
        x = make()
        x.over_source()
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
        if not literal and row.name not in WHOLE_NUMBERS and with_constant(x, rng):
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
                x.ordinary = i == 1 and row.name not in WHOLE_NUMBERS and row.dst in FORMATS
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
            if long and "NO64" in row.flags or (not long and literal):
                continue
            x = make()
            x.suffix = "_e64" if long else "_e32" if "NO64" not in row.flags else ""
            with_halves(x, rng)
            high = [s.high for s in x.sources] + [False] * (3 - len(x.sources)) + [x.high]
            at = (11, 12, 13, 14) if long else (7, 16, 0, 24)
            x.patch = 0 if x.named_halves else sum(1 << a for a, h in zip(at, high) if h)
            if (x.patch or x.named_halves) and not (long and "CMPX" in row.name):
                put(x)
    dpp = "DPP" in row.flags and short and (t.new or base.encoding != "VOPC") and row.name != "V_PK_FMAC_F16"  # LLVM lacks it
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
    if "SDWA" in row.flags and short and not t.new:
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
    """v_readfirstlane, v_readlane, v_writelane: the lane's number is cut to the wave's size, whatever EXEC is."""
    name = row.on[t.target][1]
    texts = {"V_READFIRSTLANE_B32": (f"{name} s20, v3",),
             "V_READLANE_B32": (f"{name} s20, v3, s4", f"{name} s20, v3, 29"),
             "V_WRITELANE_B32": (f"{name} v5, s4, s4", f"{name} v5, 17, s4", f"{name} v5, s6, 29") if t.gfx9 else
                                (f"{name} v5, s6, s4", f"{name} v5, 0x1234567, s4", f"{name} v5, s6, 29")}[row.name]
    for text in texts:
        def check(code, text=text):
            for mask in (0, t.lanes_on(), t.lanes_on(), (1 << t.wave) - 1):
                s, v = t.scalars(), t.words(8, t.wave)
                s[4] = t.rng.choice((0, 31, 32, 63, 64, t.rng.getrandbits(32)))
                lane = (29 if text.endswith("29") else s[4]) % t.wave
                want_s, want_v = list(s), v.copy()
                if row.name == "V_WRITELANE_B32":
                    value = text.split(", ")[1]
                    want_v[5, lane] = s[int(value[1:])] if value[0] == "s" else int(value, 0)
                else:
                    first = max(lowest_one(mask), 0)
                    want_s[20] = int(v[3, first if row.name == "V_READFIRSTLANE_B32" else lane])
                expect_wave(t, code, s, v, want_s, want_v, mask)
        t.add(row.name, text, check)


def add_permlane(t, row):
    name, flip, own = row.on[t.target][1], 16 * ("LANEX" in row.name), "VAR" in row.name
    for fetch, bound in ((0, 0), (1, 0), (0, 1), (1, 1)):
        if "64" in row.name and (fetch or bound):
            continue
        target = t.rng.choice(("v5", "v3"))  # also onto its own source

        def check(code, fetch=fetch, bound=bound, target=target):
            for _ in range(3):
                s, v, mask = t.scalars(), t.words(8, t.wave), t.lanes_on()
                select, want = s[4] | s[5] << 32, v.copy()
                for l in range(t.wave):
                    chosen = int(v[4, l]) if own else select >> 4 * (l & 15)
                    source = l & ~15 ^ flip | chosen & 15
                    readable = fetch or mask >> source & 1
                    if "64" in row.name:
                        source, readable = l ^ 32, t.wave == 64
                    if mask >> l & 1 and (readable or bound):
                        want[int(target[1]), l] = v[3, source] if readable else 0
                expect_wave(t, code, s, v, list(s), want, mask)
        more = f", {'v4' if own else 's4, s5'} op_sel:[{fetch},{bound}]" if "64" not in row.name else ""
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


def add_indexed(t, row):
    """GFX9's index mode: what stands under it adds a number to those of its vector registers, as its four bits say."""
    for mode, names in ((1, "SRC0"), (8, "DST"), (9, "SRC0,DST"), (2, "SRC1"), (0, "")):
        def check(code, mode=mode):
            s, v, mask = t.scalars(), t.words(24, t.wave), t.lanes_on()
            n = s[4] = t.rng.randrange(12)
            s[4] |= t.rng.getrandbits(24) << 8
            want_s, want = list(s), v.copy()
            want_s[M0] = s[M0] & ~0xf0ff | n | mode << 12
            first, second, target = (r + n * (mode >> b & 1) for r, b in ((3, 0), (5, 1), (8, 3)))
            for l in range(t.wave):
                if mask >> l & 1:
                    want[target, l] = v[first, l] ^ v[second, l]
            expect_wave(t, code, s, v, want_s, want, mask)
        t.add(row.name, f"s_set_gpr_idx_on s4, gpr_idx({names})\nv_xor_b32 v8, v3, v5\ns_set_gpr_idx_off", check)


def add_accumulator(t, row):
    """Moves between the two kinds of registers; those of accumulation are the upper half of a case's."""
    name = row.on[t.target][1]
    for text, source, target in {"V_ACCVGPR_READ_B32": ((f"{name} v5, a3", 15, 5),),
                                 "V_ACCVGPR_WRITE_B32": ((f"{name} a5, v3", 3, 17), (f"{name} a5, 17", None, 17)),
                                 "V_ACCVGPR_MOV_B32": ((f"{name} a5, a2", 14, 17),)}[row.name]:
        def check(code, source=source, target=target):
            s, v, mask = t.scalars(), t.words(24, t.wave), t.lanes_on()  # a0 is then register 12
            want = v.copy()
            for l in range(t.wave):
                if mask >> l & 1:
                    want[target, l] = 17 if source is None else v[source, l]
            expect_wave(t, code, s, v, list(s), want, mask)
        t.add(row.name, text, check)


def add_wide(t, row):
    """Two floats, or two dwords, in two registers each: either half of a source, with a sign of its own. Of constants
    compilers take the lower half alone, but for 0, whose halves are the same."""
    name, n, signs = row.on[t.target][1], len(row.src), row.name != "V_PK_MOV_B32"
    one = {"V_PK_FMA_F32": VALU["V_FMA_F32"], "V_PK_MUL_F32": VALU["V_MUL_F32"], "V_PK_ADD_F32": VALU["V_ADD_F32"]}.get(row.name)
    for i in range(8 if signs else 6):
        choices = [[t.rng.getrandbits(1) if i else k for _ in range(n)] for k in (0, 1)]
        negated = [[t.rng.getrandbits(1) if i > 1 and signs else 0 for _ in range(n)] for _ in range(2)]
        if not signs:
            choices[1] = [1] * n
        scalar, constant = i == 3, {6: ("0", 0), 7: ("-0.5", 0xbf000000)}.get(i)
        if i == 7:
            choices[0][1] = choices[1][1] = 0
        texts = ["v[8:9]"] + [constant[0] if constant and k == 1 else "s[24:25]" if scalar and k == 1 else f"v[{2 * k}:{2 * k + 1}]" for k in range(n)]
        more = "".join(f" {what}:[{','.join(map(str, bits))}]" for what, bits, default in (
            ("op_sel", choices[0], 0), ("op_sel_hi", choices[1], 1), ("neg_lo", negated[0], 0), ("neg_hi", negated[1], 0))
            if any(b != default for b in bits))

        def check(code, choices=choices, negated=negated, scalar=scalar, constant=constant):
            for _ in range(2):
                s, v, mask = t.scalars(), t.words(16, t.wave), t.lanes_on()
                for r in range(2 * n):
                    v[r] = [sample(t.rng, "F32", True) for _ in range(t.wave)]
                s[24], s[25] = sample(t.rng, "F32", True), sample(t.rng, "F32", True)
                want, Now.mode = v.copy(), 0x3f0
                for l in range(t.wave):
                    if not mask >> l & 1:
                        continue
                    for half in (0, 1):
                        values = [(constant[1] if constant and k == 1 else s[24 + choices[half][k]] if scalar and k == 1
                                   else int(v[2 * k + choices[half][k], l])) ^
                                  negated[half][k] << 31 for k in range(n)]
                        if one is None:  # the first from the first source, the second from the second
                            values = [int(v[2 * half + choices[0][half], l]) if not (scalar and half == 1) else
                                      s[24 + choices[0][1]]]
                        want[8 + half, l] = one(*values) if one else values[0]
                expect_wave(t, code, s, v, list(s), want, mask)
        t.add(row.name, f"{name} {', '.join(texts)}{more}", check)


# ---- VOPD

def add_dual(t, opcodes):
    """Every opcode of ops_vopd.def as first and as second half; both read before either writes."""
    if t.target == "gfx1030" or t.wave == 64:
        return
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "isa")
    with open(os.path.join(folder, "ops_vopd.def")) as f:
        duals = [(int(code), name) for code, name in re.findall(r"^DUAL\((\d+), (\w+)\)", f.read(), re.M)]
    by_name = {row.name: row for row in opcodes}
    duals = [(code, name) for code, name in duals if t.target in by_name[name].on]
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
    if row.name.startswith("V_ACCVGPR"):
        add_accumulator(t, row)
    elif re.fullmatch(r"V_PK_(FMA|MUL|ADD)_F32|V_PK_MOV_B32", row.name):
        add_wide(t, row)
    elif row.name in VALU:
        add_valu(t, row)
    elif row.name in ("V_READFIRSTLANE_B32", "V_READLANE_B32", "V_WRITELANE_B32"):
        add_read_lane(t, row)
    elif row.name in ("S_SET_GPR_IDX_ON", "S_SET_GPR_IDX_OFF"):
        add_indexed(t, row)
    elif row.name.startswith("V_PERMLANE"):
        add_permlane(t, row)
    elif row.name.startswith(("V_MOVREL", "V_SWAP")):
        add_move_relative(t, row)
    else:
        return False
    return True
