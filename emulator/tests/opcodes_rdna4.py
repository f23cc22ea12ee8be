"""What RDNA 4 adds that takes another form than older opcodes: scalar floats, which RDNA 3.5 has too, 8-bit floats, split
barriers."""
import re
from fractions import Fraction

import numpy as np

from emulator import EXEC
from floats import F16, F32, M32, convert, whole
from opcode_table import FORMATS, bits_of, sample
from opcodes_scalar import Constant, Place, expect_scalars
from opcodes_vector import NEARLY, Near, Now, SKIP, VALU, zero
from vector_forms import ROUNDED, expect_wave, flushed_source

# ---- scalar floats: what the vector's operation does


def vector_of(name):
    """The function of a scalar opcode, and the kinds of its operands."""
    name = re.sub(r"^(V_)?S_", "V_", name)
    if name == "V_CVT_HI_F32_F16":
        return lambda a: convert(F32, F16, a >> 16)
    return VALU.get(name)


def is_scalar_float(row):
    floats = [k for k in [row.dst] + row.src if k in FORMATS]
    return row.name.startswith(("S_", "V_S_")) and (floats or re.match(r"S_CMP_\w+_F16|S_CVT", row.name))


def kind_of(row, kind):
    return "F16" if row.name.startswith("S_CMP") and kind == "B16" else kind


FLUSHES = re.compile(r"S_(ADD|SUB|MUL|FMAC|FMAAK|FMAMK|MIN|MAX|MINIMUM|MAXIMUM)_F")


def add_scalar_float(t, row):
    name, vector = row.on[t.target][1], row.name.startswith("V_S_")
    function, literal = vector_of(row.name), re.search("FMA[AM]K", row.name)
    kinds = [kind_of(row, k) for k in row.src] + ["F32"] * bool(literal)
    accumulates = row.name.startswith("S_FMAC")
    modes = [0x3f0] * 3
    if re.sub(r"^S_", "V_", row.name) in ROUNDED:
        modes += [0x3f0 | r | r << 2 for r in (1, 2, 3)]
    if FLUSHES.match(row.name):
        modes += [0x300, 0x350, 0x3a0]
    for variant in range(4 if vector else 2):
        places = [Place(4 + i, 1) for i in range(2 if literal else len(kinds))]
        operands, signs = list(places), [(False, False)] * len(kinds)
        k = Constant("0x3fc00000", 0x3fc00000)
        if literal:
            operands.insert(1 if "MK" in row.name else 2, k)
        elif variant == 1 and not vector:
            i = t.rng.randrange(len(operands))
            operands[i] = Constant("1.0", {"F32": 0x3f800000, "F16": 0x3c00}[kinds[i]]) if kinds[i] in ("F32", "F16") else (
                Constant("33", 33))
        texts = [o.text for o in operands]
        more, omod, clamp = "", 0, False
        if vector and variant:
            signs = [(bool(t.rng.getrandbits(1)), bool(t.rng.getrandbits(1)))]
            neg, absolute = signs[0]
            texts[0] = "-" * neg + (f"|{texts[0]}|" if absolute else texts[0])
            omod, clamp = (0, 1, 3, 0)[variant], variant > 1
            more = " clamp" * clamp + ["", " mul:2", " mul:4", " div:2"][omod]
        dst = [] if row.dst == "_" else ["s20"]

        def check(code, operands=operands, places=places, signs=signs, omod=omod, clamp=clamp):
            for mode in map(t.mode, [0x3f0, 0x350] if omod else modes):
                Now.mode, Now.rdna4 = mode, t.rdna4
                s, scc = t.scalars(), t.rng.getrandbits(1)
                for place, kind in zip(places, kinds):
                    value = sample(t.rng, kind, bool(omod))
                    place.write(s, value | t.rng.getrandbits(16) << 16 if bits_of(kind) == 16 else value)
                if accumulates:
                    s[20] = sample(t.rng, row.dst)
                values = []
                for (neg, absolute), kind, o in zip(signs, kinds, operands):
                    width = bits_of(kind)
                    bits = o.read(s, scc) & (1 << width) - 1
                    bits = bits & ~(1 << width - 1) if absolute else bits
                    bits = bits ^ 1 << width - 1 if neg else bits
                    values.append(bits - (1 << 32) if kind == "I32" and bits >> 31 else bits)
                if accumulates:
                    values.append(s[20] & (1 << bits_of(row.dst)) - 1)
                compare(t, row, code, s, scc, values, mode, function, kinds, omod, clamp)
        t.add(row.name, f"{name} {', '.join(dst + texts)}{more}", check)


def compare(t, row, code, s, scc, values, mode, function, kinds, omod, clamp):
    f = FORMATS.get(row.dst)
    flushes = FLUSHES.match(row.name) and f
    given = [flushed_source(v, row.dst, mode) for v in values] if flushes else values
    value = function(*given)
    if row.dst == "_":
        return expect_scalars(t, code, s, scc, s, bool(value), values, mode=mode)
    r = t.step(code, s, mode=mode, scc=scc)
    got = int(r.s[20])
    if hasattr(value, "parts"):  # two halves
        value = value.parts[0] & 0xffff | (value.parts[1] & 0xffff) << 16
    kept = not f or mode >> (5 if f is F32 else 7) & 1
    scale = (Fraction(1), Fraction(2), Fraction(4), Fraction(1, 2))[0 if kept else omod]
    if isinstance(value, Near):
        if clamp and value.exact * scale < 0:
            value = 0
        elif clamp and value.exact * scale > 1:
            value = f.bias << f.fraction
        else:
            near = Near(f, value.exact * scale, value.ulps, value.least)
            value = got if near.holds(got) else f.round(near.exact)
    elif value is SKIP:
        value = got
    elif f:
        value &= (1 << f.bits) - 1
        if not kept and omod and zero(f, value):
            value = 0
        if clamp:
            one = f.bias << f.fraction
            value = 0 if f.nan(value) or value & f.sign else min(value, one)
        if not kept and not value & f.inf and not zero(f, value):
            value = value & f.sign if flushes else got
        if flushes and not kept and value & ~f.sign == 1 << f.fraction:
            value = got
    want = list(s)
    want[20] = value & M32
    wrong = [f"s{i} {int(r.s[i]):#x}, should be {want[i]:#x}" for i in range(128) if int(r.s[i]) != want[i]]
    t.expect(not r.status and not wrong and r.scc == scc, f"MODE {mode:#x} of {[hex(v) for v in values]}: {r.text}{wrong}")


# ---- 8-bit floats, by their definition: FP8 without infinities; gfx942's FNUZ without them and without -0, their NaN

class Small:
    def __init__(self, fraction, bias, infinite, fnuz=False):
        self.fraction, self.bias, self.infinite, self.fnuz = fraction, bias, infinite, fnuz

    def decode(self, byte):
        """A Fraction, or the sign and "inf" or "nan"."""
        sign, m = -1 if byte & 0x80 else 1, byte & 0x7f
        if self.fnuz and byte == 0x80:
            return sign, "nan"
        if not self.fnuz and (m == 0x7f if not self.infinite else m > 0x7c):
            return sign, "nan"
        if self.infinite and m == 0x7c:
            return sign, "inf"
        field, low = m >> self.fraction, m & (1 << self.fraction) - 1
        units = low + (1 << self.fraction if field else 0)
        return sign * Fraction(units) * Fraction(2) ** (max(field, 1) - self.bias - self.fraction)

    def most(self):
        return 0x7f if self.fnuz else 0x7b if self.infinite else 0x7e

    def numbers(self):
        return [self.decode(i) for i in range(self.most() + 1)]


OFP8 = {"FP8": Small(3, 7, False), "BF8": Small(2, 15, True)}
FNUZ = {"FP8": Small(3, 8, False, True), "BF8": Small(2, 16, False, True)}


def small_of(t, name):
    return (FNUZ if t.target == "gfx942" else OFP8)[name]


def to_float(small, byte):
    value = small.decode(byte)
    if isinstance(value, tuple):
        return None if value[1] == "nan" else (F32.sign if value[0] < 0 else 0) | F32.inf
    return F32.round(value, bool(byte & 0x80))


def from_float(small, bits, saturates, random=None):
    """The byte; None: any NaN. random: units of the float's last place that are added before the rest is cut."""
    sign = bits >> 24 & 0x80
    if F32.nan(bits):
        return None
    if F32.infinite(bits):
        return sign | 0x7c if small.infinite else None
    numbers = small.numbers()
    numbers.append(2 * numbers[-1] - numbers[-2])  # where the next one would be
    if random is None:
        x = abs(F32.value(bits))
        near = min(range(len(numbers)), key=lambda i: (abs(numbers[i] - x), i & 1))
    else:
        # the guide adds to the fraction's bits; a carry goes into the exponent
        moved = (bits & 0x7fffffff) + (random if bits & 0x7f800000 else 0)
        x = F32.value(moved) if moved < F32.inf else numbers[-1]
        near = max(i for i, n in enumerate(numbers) if n <= x)
    if near == len(numbers) - 1:
        return sign | (small.most() if saturates else 0x7c) if saturates or small.infinite else None
    return 0 if small.fnuz and not near else sign | near


def is_nan_byte(small, byte):
    return isinstance(small.decode(byte), tuple) and small.decode(byte)[1] == "nan"


def add_open(t, row):
    """Every byte, at every place."""
    small, pair, name = small_of(t, row.name[-3:]), "PK" in row.name, row.on[t.target][1]
    places = range(2 if pair else 4)
    forms = [("", 0)] + [("_sdwa" if t.gfx9 else "_e64", n) for n in places]
    for suffix, n in forms:
        more = (f" op_sel:[{n},0]" if pair else f" byte_sel:{n}") * bool(n)
        if suffix == "_sdwa":
            more = f" src0_sel:{'WORD' if pair else 'BYTE'}_{n}"

        def check(code, n=n):
            for start in range(0, 256, t.wave):
                s, v, mask = t.scalars(), t.words(12, t.wave), t.lanes_on()
                for l in range(t.wave):
                    byte = start + l & 255
                    v[3, l] = int(v[3, l]) & ~(255 << 8 * (2 * n if pair else n)) & M32 | byte << 8 * (2 * n if pair else n)
                s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
                r, wrong = t.step(code, s, v), []
                want = v.copy()
                for l in range(t.wave):
                    for i in range(1 + pair):
                        byte = int(v[3, l]) >> 8 * (2 * n + i if pair else n) & 255
                        expected, got = to_float(small, byte), int(r.v[8 + i, l])
                        if mask >> l & 1:
                            want[8 + i, l] = got if expected is None and F32.nan(got) else expected or 0
                wrong = [(int(i), int(l)) for i, l in np.argwhere(r.v != want)[:3]]
                t.expect(not r.status and not wrong, f"{r.text} {wrong}")
        t.add(row.name, f"{name}{suffix} {'v[8:9]' if pair else 'v8'}, v3{more}", check)


def add_close(t, row):
    kind = re.search("(FP8|BF8)", row.name)[1]
    small, random = small_of(t, kind), "_SR_" in row.name
    name, width = row.on[t.target][1], 8 if random else 16
    for n in range(4 if random else 2):
        byte = f" op_sel:[0,0,{n & 1},{n >> 1}]" if t.gfx9 else f" byte_sel:{n}"
        more = (byte if random else " op_sel:[0,0,1]") * bool(n)

        def check(code, n=n):
            numbers = small.numbers()
            for mode in (0xf0, 0xf0 | 1 << 23):
                s, v, mask = t.scalars(), t.words(12, t.wave), t.lanes_on()
                for l in range(t.wave):
                    for register in (3,) if random else (3, 4):
                        i = t.rng.randrange(len(numbers) - 1)
                        middle = (numbers[i] + numbers[i + 1]) / 2
                        x = t.rng.choice((numbers[i], middle, numbers[-1] * Fraction(t.rng.randint(900, 1200), 1000)))
                        bits = F32.round(x) + t.rng.choice((0, 0, 1, M32)) & 0x7fffffff
                        v[register, l] = t.rng.choice((bits, bits, sample(t.rng, "F32"))) ^ t.rng.getrandbits(1) << 31
                s[EXEC], s[EXEC + 1] = mask & M32, mask >> 32
                r, want, wrong = t.step(code, s, v, mode=mode), v.copy(), []
                for l in range(t.wave):
                    if not mask >> l & 1:
                        continue
                    sources = [int(v[i, l]) for i in (3, 4)]
                    drawn = sources[1] >> (12 if kind == "FP8" else 11) if random else None
                    for i, bits in enumerate(sources[:1] if random else sources):
                        at = 8 * (n if random else 2 * n + i)
                        got = int(r.v[8, l]) >> at & 255
                        byte = from_float(small, bits, mode >> 23, drawn)
                        byte = got if byte is None and is_nan_byte(small, got) else byte or 0
                        if byte != got:
                            wrong.append(f"{bits:#x} ({float(F32.value(bits))}): {got:#x}, should be {byte:#x}")
                        want[8, l] = int(want[8, l]) & ~(255 << at) & M32 | byte << at
                t.expect(not r.status and not wrong and np.array_equal(want, r.v), f"{r.text} {wrong[:2]}")
        t.add(row.name, f"{name} v8, v3, v4{more}", check)


# ---- a split barrier of a group of one wave

def add_barrier(t, row):
    name = row.on[t.target][1]
    text, scalar, condition = {
        "S_BARRIER_SIGNAL": (f"{name} -1\ns_barrier_wait -1", None, None),
        "S_BARRIER_WAIT": (f"s_barrier_signal -1\n{name} -1\ns_barrier_signal -1\n{name} -1", None, None),
        "S_BARRIER_SIGNAL_ISFIRST": (f"{name} -1\ns_barrier_wait -1", None, 1),
        "S_GET_BARRIER_STATE": (f"{name} s20, -1", 1 | 1 << 4, None)}[row.name]  # valid, of one wave, none there

    def check(code):
        for scc in (0, 1):
            s = t.scalars()
            want = list(s)
            if scalar is not None:
                want[20] = scalar
            expect_scalars(t, code, s, scc, want, scc if condition is None else condition, [])
    t.add(row.name, text, check)


def add(t, row):
    """Whether it is an opcode that is checked here."""
    if t.gfx9 and not re.match(r"V_CVT_.*[FB][PF]8", row.name):
        return False
    if re.match(r"S_BARRIER_(SIGNAL|WAIT)|S_GET_BARRIER_STATE", row.name):
        add_barrier(t, row)
    elif is_scalar_float(row):
        add_scalar_float(t, row)
    elif re.match(r"V_CVT_(PK_)?F32_(FP8|BF8)", row.name):
        add_open(t, row)
    elif re.match(r"V_CVT_(PK|SR)_(FP8|BF8)_F32", row.name):
        add_close(t, row)
    else:
        return False
    return True
