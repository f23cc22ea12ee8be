"""What loads, stores, atomics and the shuffles through LDS do: every lane's bytes, in Python's integers."""
import re
from fractions import Fraction

import numpy as np

from emulator import EXEC, M0, MEMORY
from floats import BF16, F16, F32, F64, M32, add as add_floats, signed
from opcode_table import DWORDS, sample

ROOM = 4096  # bytes of LDS; of memory three times as many, lanes point to the middle; of scratch a lane has 256
SCRATCH = 256
ADDRESS, DATA, SECOND, RESULT = 0, 4, 6, 10  # vector registers


class Access:
    """What moves: bytes, whether they are extended by their sign, whether only a half of the register takes part."""

    def __init__(self, kind, half=False, high=False):
        self.bytes = int(kind[1:]) // 8
        self.signed, self.half, self.high = kind[0] == "I", half, high
        self.dwords = max(1, self.bytes // 4)

    def into(self, v, register, lane, data):
        value = int.from_bytes(data, "little")
        if self.signed:
            value = signed(value, 8 * self.bytes) & M32
        old = int(v[register, lane])
        if self.half:
            value = old & 0xffff | (value & 0xffff) << 16 if self.high else old & 0xffff0000 | value & 0xffff
        for i in range(self.dwords):
            v[register + i, lane] = value >> 32 * i & M32

    def out_of(self, v, register, lane):
        value = sum(int(v[register + i, lane]) << 32 * i for i in range(self.dwords)) >> 16 * self.high
        return (value & (1 << 8 * self.bytes) - 1).to_bytes(self.bytes, "little")


def float_order(f, v):
    return f.value(v) if not f.infinite(v) else Fraction(2) ** 3000 * (-1) ** bool(v & f.sign)


def float_equal(f, a, b):
    return not f.nan(a) and not f.nan(b) and (a == b or not (a | b) & ~f.sign)


def add_halves(f):
    return lambda m, d, e, n: add_floats(f, d & 0xffff, m & 0xffff) | add_floats(f, d >> 16, m >> 16) << 16


# name: function of the old value, the data, the second data and the width: the new value
ATOMICS = {
    "ADD_U": lambda m, d, e, n: m + d, "SUB_U": lambda m, d, e, n: m - d, "RSUB_U": lambda m, d, e, n: d - m,
    "INC_U": lambda m, d, e, n: 0 if m >= d else m + 1, "DEC_U": lambda m, d, e, n: d if m == 0 or m > d else m - 1,
    "MIN_I": lambda m, d, e, n: min(signed(m, n), signed(d, n)),
    "MAX_I": lambda m, d, e, n: max(signed(m, n), signed(d, n)),
    "MIN_U": lambda m, d, e, n: min(m, d), "MAX_U": lambda m, d, e, n: max(m, d), "AND_B": lambda m, d, e, n: m & d,
    "OR_B": lambda m, d, e, n: m | d, "XOR_B": lambda m, d, e, n: m ^ d, "MSKOR_B": lambda m, d, e, n: m & ~d | e,
    "STOREXCHG_B": lambda m, d, e, n: d, "SWAP_B": lambda m, d, e, n: d,
    "CMPSWAP_B": lambda m, d, e, n: d if m == e else m, "CSUB_U": lambda m, d, e, n: max(m - d, 0),
    "CMPSWAP_F": lambda m, d, e, n: d if float_equal(F32 if n == 32 else F64, m, e) else m,
    "MIN_F": lambda m, d, e, n: min(m, d, key=lambda x: float_order(F32 if n == 32 else F64, x)),
    "MAX_F": lambda m, d, e, n: max(m, d, key=lambda x: float_order(F32 if n == 32 else F64, x)),
    "COND_SUB_U": lambda m, d, e, n: m - d if m >= d else m, "SUB_CLAMP_U": lambda m, d, e, n: max(m - d, 0),
    "PK_ADD_F16": add_halves(F16), "PK_ADD_BF16": add_halves(BF16),
    "ADD_F": lambda m, d, e, n: add_floats(F32 if n == 32 else F64, m, d), "WRAP_B": lambda m, d, e, n: m - d if m >= d else m + e,
}
ATOMICS["CMPSTORE_B"], ATOMICS["CMPSTORE_F"] = ATOMICS["CMPSWAP_B"], ATOMICS["CMPSWAP_F"]


def words_of(data):
    return int.from_bytes(data, "little")


def vector(register, dwords):
    return f"v{register}" if dwords == 1 else f"v[{register}:{register + dwords - 1}]"


def slots(t, size, bytes_, shared, aligned):
    """An offset for each lane. shared: several lanes have the same one; not aligned: any byte."""
    step = min(bytes_, 4) if aligned else 1
    step = bytes_ if shared else step
    many = (size - bytes_) // step
    if shared:
        some = [t.rng.randrange(many) * step for _ in range(6)]
        return [t.rng.choice(some) for _ in range(t.wave)]
    # stores of two lanes to one place have no order: whole accesses apart
    chosen = t.rng.sample(range(size // 32 - 1), t.wave) if size // 32 - 1 >= t.wave else [0] * t.wave
    return [32 * c + (0 if step > 4 else t.rng.randrange(0, 16, step)) for c in chosen]


# prepare(trial, size, shared) fills the registers that hold addresses and returns for every lane the memory and the
# places of its bytes there; None: outside.

def lds_form(t, offset):
    def prepare(trial, size, shared):
        at, places = slots(t, ROOM - 1024, size, shared, True), []
        for l in range(t.wave):
            beyond = t.rng.random() < 0.05
            trial.v[ADDRESS, l] = at[l] + (ROOM if beyond else 0)
            places.append(None if beyond else ("lds", range(at[l] + offset, at[l] + offset + size)))
        return places
    return prepare


def memory_places(t, s, v, size, shared, base, form):
    """form: v, a 64-bit address in vector registers; sv, a base and a 32-bit offset. base: the instruction's offset."""
    away = -base if abs(base) > ROOM else 0  # from farther than memory is large
    at = slots(t, ROOM, size, shared, t.rng.getrandbits(1))
    start, more = MEMORY + ROOM + away, t.rng.choice((0, 0x7fff0000, 0xf0000000))  # an offset has no sign
    for l in range(t.wave):
        if form == "v":
            v[ADDRESS, l], v[ADDRESS + 1, l] = start + at[l] & M32, start + at[l] >> 32
        else:
            v[ADDRESS, l] = at[l] + more
    if form == "sv":
        s[4], s[5] = start - more & M32, start - more >> 32
    return [range(ROOM + a + base + away, ROOM + a + base + away + size) for a in at]


class Trial:
    """One execution: registers and memories before, and what should be in them after."""

    def __init__(self, t):
        self.t, self.s, self.v, self.mask = t, t.scalars(), t.words(16, t.wave), t.lanes_on()
        self.s[EXEC], self.s[EXEC + 1] = self.mask & M32, self.mask >> 32
        self.lds = bytearray(t.words(ROOM // 4).tobytes())
        self.memory = bytearray(t.words(3 * ROOM // 4).tobytes())
        self.scratch = bytearray(t.words(SCRATCH // 4 * t.wave).tobytes())
        self.want = None

    def begin(self):
        """After the registers are filled: what is expected starts as what is."""
        self.want_v = self.v.copy()
        self.want = {"lds": bytearray(self.lds), "memory": bytearray(self.memory), "scratch": bytearray(self.scratch)}

    def lanes(self):
        return [l for l in range(self.t.wave) if self.mask >> l & 1]

    def end(self, code):
        t = self.t
        r = t.step(code, self.s, self.v, lds=bytes(self.lds), memory=bytes(self.memory), scratch=bytes(self.scratch))
        if r.status:
            return t.expect(False, r.text)
        wrong = [f"v{i} lane {l} {int(r.v[i, l]):#x}, should be {int(self.want_v[i, l]):#x}"
                 for i, l in np.argwhere(r.v != self.want_v)[:3]]
        for name, want in self.want.items():
            got = getattr(r, name)
            if got != bytes(want):
                at = next(i for i, (a, b) in enumerate(zip(got, want)) if a != b)
                wrong.append(f"{name} at {at} {got[at:at + 8].hex()}, should be {want[at:at + 8].hex()}")
        if [int(x) for x in r.s] != self.s:
            wrong.append("a scalar register changed")
        t.expect(not wrong, f"EXEC {self.mask:#x}: {wrong}")


def place_data(trial, register, kind, special=None):
    """Values of the kind in the data registers of every lane."""
    for l in range(trial.t.wave):
        value = special(l) if special and trial.t.rng.random() < 0.5 else sample(trial.t.rng, kind, ordinary=True)
        for i in range(DWORDS.get(kind, 1)):
            trial.v[register + i, l] = value >> 32 * i & M32


def do_load(access):
    def go(trial, places):
        for l in trial.lanes():
            where, at = places[l] or (None, ())
            data = bytes(trial.want[where][i] for i in at) if where else bytes(access.bytes)
            access.into(trial.want_v, RESULT, l, data)
    return go


def do_store(access, register=DATA):
    def go(trial, places):
        for l in trial.lanes():
            if places[l]:
                where, at = places[l]
                for i, byte in zip(at, access.out_of(trial.v, register, l)):
                    trial.want[where][i] = byte
    return go


def do_atomic(function, bits, data, second, result):
    def go(trial, places):
        def number(register, l):
            return sum(int(trial.v[register + i, l]) << 32 * i for i in range(bits // 32))
        for l in trial.lanes():
            old = 0
            if places[l]:
                where, at = places[l]
                old = words_of(bytes(trial.want[where][i] for i in at))
                new = function(old, number(data, l), number(second, l), bits) & (1 << bits) - 1
                for i, byte in zip(at, new.to_bytes(bits // 8, "little")):
                    trial.want[where][i] = byte
            if result is not None:
                for i in range(bits // 32):
                    trial.want_v[result + i, l] = old >> 32 * i & M32
    return go


def fill_targets(trial, places, kind, bits, compares):
    """Numbers of the kind where atomics will find them; zeros and NaN for those that compare floats for equality."""
    for place in places:
        if place:
            value = sample(trial.t.rng, kind, True)
            if compares and kind[0] == "F" and trial.t.rng.getrandbits(1):
                f = F32 if bits == 32 else F64
                value = trial.t.rng.choice((0, f.sign, f.inf | 1, f.default))
            for i, byte in zip(place[1], value.to_bytes(bits // 8, "little")):
                getattr(trial, place[0])[i] = byte


def atomic_kinds(name):
    """(operation, kind, bits) of an atomic's name without its prefix."""
    if name.startswith("PK_ADD_"):
        return ATOMICS[name], name.replace("_ADD_", ""), 32
    operation, kind, bits = re.fullmatch(r"(\w+)_([BUIF])(32|64)", name).groups()
    return ATOMICS[f"{operation}_{kind}"], kind + bits, int(bits)


def put_atomic(t, row, text, operation, prepare, data, second, result, runs=3):
    function, kind, bits = atomic_kinds(operation)

    def check(code):
        for _ in range(runs):
            trial = Trial(t)
            place_data(trial, data, kind)
            place_data(trial, second, kind)
            places = prepare(trial, bits // 8, True)
            fill_targets(trial, places, kind, bits, "CMP" in operation)
            for l in range(t.wave):  # what they find is often what they look for
                if places[l] and t.rng.getrandbits(1):
                    found = words_of(bytes(getattr(trial, places[l][0])[i] for i in places[l][1]))
                    found ^= (1 << bits - 1) * (kind[0] == "F" and not found & (1 << bits - 1) - 1)
                    for register in ((second,) if "CMP" in operation else (data,)):
                        if kind[0] != "F" or "CMP" in operation:
                            for i in range(bits // 32):
                                trial.v[register + i, l] = found >> 32 * i & M32
            trial.begin()
            do_atomic(function, bits, data, second, result)(trial, places)
            trial.end(code)
    t.add(row.name, text, check)


def put_move(t, row, text, access, prepare, what, runs=3):
    def check(code):
        for _ in range(runs):
            trial = Trial(t)
            places = prepare(trial, access.bytes, False)
            trial.begin()
            what(trial, places)
            trial.end(code)
    t.add(row.name, text, check)


def access_of(name):
    """Of a load's or store's name behind the prefix: U8, D16_HI_I8, B128, and as DS writes them U8_D16_HI."""
    kind = re.search(r"[BUI]\d+(?!\d)", name.replace("D16", ""))[0]
    return Access(kind, "D16" in name, "HI" in name)


# ---- DS

def add_ds(t, row):
    name = row.on[t.target][1]
    rest = row.name[3:]
    pair = re.fullmatch(r"(LOAD|STORE|STOREXCHG)_2ADDR(_STRIDE64)?(_RTN)?_B(32|64)", rest)
    if pair:
        return add_ds_pair(t, row, name, *pair.group(1, 2, 4))
    if rest.endswith("ADDTID_B32"):
        return add_ds_addtid(t, row, name)
    if re.fullmatch(r"(LOAD|STORE)_[BUI]\d+(_D16)?(_HI)?", rest):
        access = access_of(rest)
        for offset in (0, t.rng.randrange(0, 200) * 4):
            data = vector(DATA if "STORE" in rest else RESULT, access.dwords)
            operands = f"v0, {data}" if "STORE" in rest else f"{data}, v0"
            what = do_store(access) if "STORE" in rest else do_load(access)
            text = f"{name} {operands}" + f" offset:{offset}" * bool(offset)
            put_move(t, row, text, access, lds_form(t, offset), what)
        return True
    found = re.fullmatch(r"(\w+?)(_RTN)?_([BUIF](?:32|64)|B?F16)", rest)
    if not found or not {f"{found[1]}_{found[3]}", f"{found[1]}_{found[3][0]}"} & set(ATOMICS):
        return False
    bits = 64 if found[3][1:] == "64" else 32
    two = len(row.src) == 3
    data, second = (SECOND, DATA) if "CMPST" in row.name and not t.new else (DATA, SECOND)  # the comparand came first
    for offset in (0, 8 * t.rng.randrange(90)):
        operands = [vector(RESULT, bits // 32)] * bool(found[2]) + ["v0", vector(DATA, bits // 32)]
        operands += [vector(SECOND, bits // 32)] * two
        text = f"{name} {', '.join(operands)}" + f" offset:{offset}" * bool(offset)
        result = RESULT if found[2] else None
        put_atomic(t, row, text, f"{found[1]}_{found[3]}", lds_form(t, offset), data, second, result)
    return True


def add_ds_pair(t, row, name, what, far, bits):
    size = int(bits) // 8
    unit = size * (64 if far else 1)
    for _ in range(2):
        offsets = [t.rng.randrange(1, 3 if far else 40), t.rng.randrange(1, 3 if far else 40)]
        if what != "LOAD" and offsets[0] == offsets[1]:
            offsets[1] += 1
        data = [vector(r, size // 4) for r in (DATA, SECOND)]
        result = vector(RESULT, size // 2)
        operands = {"LOAD": [result, "v0"], "STORE": ["v0"] + data, "STOREXCHG": [result, "v0"] + data}[what]

        def check(code, offsets=offsets):
            for _ in range(3):
                trial = Trial(t)
                base = [t.rng.randrange(0, 12) * 256 + l * 8 % 256 if not far else l * 8 for l in range(t.wave)]
                if what != "LOAD":  # no lane writes where another does
                    base = [l * size if far else l * 8 for l in range(t.wave)]
                    if not far:
                        base = [l * 40 * size % (ROOM - 80 * size) // 8 * 8 for l in range(t.wave)]
                trial.v[ADDRESS] = base
                trial.begin()
                access = Access(f"B{bits}")
                places = [[a + o * unit for a in base] for o in offsets]
                if what != "STORE":
                    for i in (0, 1):
                        for l in trial.lanes():
                            at = places[i][l]
                            data = bytes(trial.want["lds"][at:at + size]) if at + size <= ROOM else bytes(size)
                            access.into(trial.want_v, RESULT + i * size // 4, l, data.ljust(size, b"\0"))
                            if what == "STOREXCHG" and at + size <= ROOM:
                                trial.want["lds"][at:at + size] = access.out_of(trial.v, (DATA, SECOND)[i], l)
                else:
                    for i in (0, 1):
                        for l in trial.lanes():
                            at = places[i][l]
                            if at + size <= ROOM:
                                trial.want["lds"][at:at + size] = access.out_of(trial.v, (DATA, SECOND)[i], l)
                trial.end(code)
        t.add(row.name, f"{name} {', '.join(operands)} offset0:{offsets[0]} offset1:{offsets[1]}", check)
    return True


def add_ds_addtid(t, row, name):
    def check(code):
        for _ in range(3):
            trial = Trial(t)
            trial.s[M0] = 4 * t.rng.randrange(200) | t.rng.getrandbits(16) << 16
            trial.begin()
            for l in trial.lanes():
                at = (trial.s[M0] & 0xffff) + 16 + 4 * l
                if "LOAD" in row.name:
                    trial.want_v[RESULT, l] = words_of(trial.lds[at:at + 4])
                else:
                    trial.want["lds"][at:at + 4] = int(trial.v[DATA, l]).to_bytes(4, "little")
            trial.end(code)
    t.add(row.name, f"{name} v{RESULT if 'LOAD' in row.name else DATA} offset:16", check)
    return True


def add_shuffle(t, row):
    """ds_permute, ds_bpermute, ds_swizzle: lanes that are off give zero; a wave of 64 shuffles within its halves,
    GFX9 permutes all of it."""
    name = row.on[t.target][1]
    if row.name != "DS_SWIZZLE_B32":
        for offset in (0, 4 * t.rng.randrange(40)):
            def check(code, offset=offset):
                for _ in range(3):
                    trial = Trial(t)
                    trial.begin()
                    reach = 63 if t.gfx9 else 31
                    lane = [l & ~reach | (int(trial.v[ADDRESS, l]) + offset) // 4 & reach for l in range(t.wave)]
                    pushed = {lane[l]: int(trial.v[DATA, l]) for l in trial.lanes()}
                    for l in trial.lanes():
                        on = trial.mask >> lane[l] & 1
                        trial.want_v[RESULT, l] = pushed.get(l, 0) if row.name == "DS_PERMUTE_B32" else (
                            trial.v[DATA, lane[l]] if on else 0)
                    trial.end(code)
            t.add(row.name, f"{name} v{RESULT}, v0, v{DATA}" + f" offset:{offset}" * bool(offset), check)
        return
    for how in range(6):
        select, distance = [t.rng.randrange(4) for _ in range(4)], t.rng.randrange(32)
        bits, keep, back = t.rng.getrandbits(15), t.rng.randrange(32), how & 1
        if how < 2:
            offset = 0x8000 | sum(x << 2 * i for i, x in enumerate(select))
        elif how < 4:
            offset = bits
        else:
            offset = 0xc000 | back << 10 | distance << 5 | keep

        def source(l, how=how, select=select, distance=distance, bits=bits, keep=keep, back=back):
            low = l & 31
            if how < 2:
                low = low & 28 | select[low & 3]
            elif how < 4:
                low = (low & bits | bits >> 5) & 31 ^ bits >> 10
            else:
                low = low & keep | (low - distance if back else low + distance) & ~keep & 31
            return l & 32 | low

        def check(code, source=source):
            for _ in range(2):
                trial = Trial(t)
                trial.begin()
                for l in trial.lanes():
                    on = trial.mask >> source(l) & 1
                    trial.want_v[RESULT, l] = trial.v[ADDRESS, source(l)] if on else 0
                trial.end(code)
        t.add(row.name, f"{name} v{RESULT}, v0 offset:{offset:#x}", check)


# ---- FLAT, GLOBAL, SCRATCH, MUBUF: forms of addresses. whole: the bytes must lie together, for an atomic of 64 bits

def global_forms(t, whole):
    """(operands, what stands behind them, prepare)"""
    low = -(1 << 23) if t.rdna4 else -4096 if t.new or t.gfx9 else -2048
    for form, offset in (("v", 0), ("v", low), ("sv", -low - 1), ("sv", -8)):
        def prepare(trial, size, shared, form=form, offset=offset):
            # an atomic's place is a multiple of its size
            fit = -offset % size if shared else 0
            places = memory_places(t, trial.s, trial.v, size, shared, offset + fit, form)
            if fit:
                for l in range(t.wave):
                    trial.v[ADDRESS, l] += np.uint32(fit)
            return [("memory", p) for p in places]
        address = "v[0:1]" if form == "v" else "v0"
        yield address, " off" if form == "v" else " s[4:5]", f" offset:{offset}" * bool(offset), prepare


def flat_forms(t, whole):
    """Lanes in memory, in the window of LDS and in that of scratch, each or mixed."""
    every = ("memory", "lds", "scratch")
    for offset, spaces in ((0, every[:1]), (8, every[1:2]), (2040, every[:1]), (0, every[2:]), (4, every)):
        if whole and "scratch" in spaces:
            spaces = spaces[:2] if len(spaces) > 1 else ("lds",)

        def prepare(trial, size, shared, offset=offset, spaces=spaces):
            places = []
            ats = {"memory": slots(t, ROOM, size, shared, True), "lds": slots(t, ROOM - 1024, size, shared, True),
                   "scratch": [t.rng.randrange((SCRATCH - 16) // size) * size if size in (8, 4) else
                               t.rng.randrange(40) * 4 + (t.rng.randrange(5 - size) // size * size if size < 4 else 0)
                               for _ in range(t.wave)]}
            for l in range(t.wave):
                where = t.rng.choice(spaces)
                at = ats[where][l]
                fit = -offset % size if shared else 0
                start = MEMORY + ROOM if where == "memory" else t.windows[where] << 32
                address = start + at + fit
                trial.v[ADDRESS, l], trial.v[ADDRESS + 1, l] = address & M32, address >> 32
                at += offset + fit
                if where == "scratch":
                    if at + size > SCRATCH:  # cannot happen for what is drawn above
                        raise RuntimeError("scratch is too small")
                    places.append((where, [interleaved(t, at + i, l) for i in range(size)]))
                else:
                    at += ROOM if where == "memory" else 0
                    places.append((where, range(at, at + size)))
            return places
        yield "v[0:1]", "", f" offset:{offset}" * bool(offset), prepare


def interleaved(t, at, lane):
    return (at // 4 * t.wave + lane) * 4 + at % 4


def scratch_forms(t, whole):
    both = (("vs", 20),) if t.new else ()
    for form, offset in (("v", 0), ("v", 12), ("s", 16), ("v", -8)) + both:
        def prepare(trial, size, shared, form=form, offset=offset):
            trial.s[4] = 4 * t.rng.randrange(8, 20)
            places = []
            for l in range(t.wave):
                at = 16 + 4 * t.rng.randrange(24) + (t.rng.randrange(0, 4, size) if size < 4 else 0)
                trial.v[ADDRESS, l] = at
                total = offset + (at if "v" in form else 0) + (trial.s[4] if "s" in form else 0)
                places.append(("scratch", [interleaved(t, total + i, l) for i in range(size)]))
            return places
        operand = "v0" if "v" in form else "off"
        yield operand, " s4" if "s" in form else " off", f" offset:{offset}" * bool(offset), prepare


def buffer_forms(t, whole):
    """Raw, structured with and without a check of the offset, swizzled, the lane added to the index."""
    # idxen, offen, swizzled, lane added, how bounds are checked
    kinds = ((0, 1, 0, 0, 3), (0, 0, 0, 1, 2), (1, 0, 0, 0, 1), (1, 1, 0, 0, 0), (1, 1, 1, 0, 2), (0, 1, 1, 1, 2))
    if t.gfx9:  # by bytes (4: with a stride), or by the index where it is swizzled
        kinds = ((0, 1, 0, 0, 3), (1, 0, 0, 0, 4), (1, 1, 0, 0, 4), (1, 1, 1, 0, 1), (0, 1, 1, 1, 1))
    for index, offen, swizzled, lane_added, check in kinds:
        offset = 8 * t.rng.randrange(6)
        if whole and swizzled:
            continue

        def prepare(trial, size, shared, index=index, offen=offen, swizzled=swizzled, lane_added=lane_added,
                    check=check, offset=offset):
            rng, wave = t.rng, t.wave
            stride = 0 if check == 3 else 64
            together = rng.choice((8, 16, 32, 64))
            soffset = rng.choice((0, 64, 256))
            records = {4: 1280, 3: rng.choice((1024, 2048)), 2: 1, 1: 20, 0: 20}[check]
            trial.s[8], trial.s[9] = MEMORY + ROOM & M32, MEMORY + ROOM >> 32 | stride << 16
            trial.s[9] |= swizzled << (30 if t.new else 31)
            trial.s[10] = records
            trial.s[11] = (check << 28 if not t.gfx9 else 0) | lane_added << 23 | together.bit_length() - 4 << 21
            trial.s[12] = soffset
            places, used = [], set()
            for l in range(wave):
                if check == 3:
                    more, number = rng.randrange(0, 120) * 16, 0
                elif lane_added:
                    more, number = 0, 0
                else:
                    number = rng.randrange(24 if check in (0, 1, 4) else 48)
                    more = rng.choice((0, 16, 80)) if check == 0 else 0
                if not shared:  # one lane a place
                    number, more = (0, l * 32) if check == 3 else (0 if lane_added else l, more)
                total_index = number + (l if lane_added else 0)
                inside_offset = offset + (more if offen else 0)
                registers = [number] * index + [more] * offen
                for i, value in enumerate(registers):
                    trial.v[ADDRESS + i, l] = value
                out = {4: soffset + total_index * stride + inside_offset + size > records,
                       3: soffset + inside_offset + size > records, 2: False, 1: total_index >= records,
                       0: total_index >= records or inside_offset + size > stride}[check]
                if swizzled:
                    def where(i):
                        o = inside_offset + i
                        return soffset + (total_index // together * stride + o // 4 * 4) * together + (
                            total_index % together * 4 + o % 4)
                    at = [ROOM + where(i) for i in range(size)]
                else:
                    start = ROOM + soffset + total_index * stride + inside_offset
                    at = list(range(start, start + size))
                if not shared and not out and used & set(at):
                    raise RuntimeError("two lanes share a place")
                used |= set(at) if not out else set()
                places.append(None if out else ("memory", at))
            return places
        n = index + offen
        address = "off" if not n else vector(ADDRESS, n)
        flags = " idxen" * index + " offen" * offen + f" offset:{offset}" * bool(offset)
        yield address, " s[8:11], s12", flags, prepare


FORMS = {"GLOBAL": global_forms, "FLAT": flat_forms, "SCRATCH": scratch_forms, "BUFFER": buffer_forms}


def add_memory(t, row, space, rest):
    name = row.on[t.target][1]
    if rest.endswith("ADDTID_B32"):
        return add_global_addtid(t, row, name)
    move = re.fullmatch(r"(LOAD|STORE)_(D16_)?(HI_)?[BUI]\d+", rest)
    if move:
        access = access_of(rest[len(move[1]):])
        data = vector(RESULT if move[1] == "LOAD" else DATA, access.dwords)
        what = do_load(access) if move[1] == "LOAD" else do_store(access)
        for address, behind, more, prepare in FORMS[space](t, False):
            if space == "BUFFER":
                text = f"{name} {data}, {address},{behind}{more}"
            else:
                operands = [data, address] if move[1] == "LOAD" else [address, data]
                text = f"{name} {', '.join(operands)}" + f",{behind}" * bool(behind) + more
            put_move(t, row, text, access, prepare, what, 2)
        return True
    if not rest.startswith("ATOMIC_"):
        return False
    operation = rest[len("ATOMIC_"):]
    if operation == "ORDERED_ADD_B64":
        return False
    bits = atomic_kinds(operation)[2]
    dwords, return_it = bits // 32, " th:TH_ATOMIC_RETURN" if t.rdna4 else " sc0" if t.target == "gfx942" else " glc"
    data = vector(DATA, 2 * dwords if "CMPSWAP" in operation else dwords)
    for i, (address, behind, more, prepare) in enumerate(FORMS[space](t, bits == 64)):
        returns = "CSUB" in operation or i % 2 == 0
        if space == "BUFFER":
            text = f"{name} {data}, {address},{behind}{more}" + return_it * returns
            result = DATA if returns else None
        else:
            operands = [vector(RESULT, dwords)] * returns + [address, data]
            text = f"{name} {', '.join(operands)}" + f",{behind}" * bool(behind) + more + return_it * returns
            result = RESULT if returns else None
        put_atomic(t, row, text, operation, prepare, DATA, DATA + dwords, result, 2)
    return True


def add_global_addtid(t, row, name):
    load = "LOAD" in row.name

    def check(code):
        for _ in range(3):
            trial = Trial(t)
            start = ROOM + 4 * t.rng.randrange(100)
            trial.s[4], trial.s[5] = MEMORY + start & M32, MEMORY + start >> 32
            trial.begin()
            for l in trial.lanes():
                at = start + 20 + 4 * l
                if load:
                    trial.want_v[RESULT, l] = words_of(trial.memory[at:at + 4])
                else:
                    trial.want["memory"][at:at + 4] = int(trial.v[DATA, l]).to_bytes(4, "little")
            trial.end(code)
    t.add(row.name, f"{name} v{RESULT if load else DATA}, s[4:5] offset:20", check)
    return True


def find_windows(t):
    """The high words of flat addresses in LDS and in scratch."""
    if not hasattr(t, "windows"):
        t.windows = {}

        def check(code):
            r = t.step(code, t.scalars())
            t.windows |= {"lds": int(r.s[21]), "scratch": int(r.s[23])}
            t.expect(not r.status and r.s[20] == 0 and r.s[22] == 0 and r.s[21] != r.s[23], r.text)
            if not t.rdna4:
                halves = r.s[24] == r.s[21] >> 16 and r.s[25] == r.s[23] >> 16
                t.expect(halves and not (r.s[21] | r.s[23]) & 0xffff, r.text)
        bases = "\ns_getreg_b32 s24, hwreg(HW_REG_SH_MEM_BASES, 16, 16)" * (not t.rdna4) + (
            "\ns_getreg_b32 s25, hwreg(HW_REG_SH_MEM_BASES, 0, 16)" * (not t.rdna4))
        t.add("S_MOV_B64", "s_mov_b64 s[20:21], src_shared_base\ns_mov_b64 s[22:23], src_private_base" + bases, check)


def add(t, row):
    """Whether it is a memory opcode that is checked here."""
    found = re.match(r"(GLOBAL|FLAT|SCRATCH|BUFFER)_(\w+)", row.name)
    if found:
        find_windows(t)
        return add_memory(t, row, *found.groups())
    if row.name in ("DS_PERMUTE_B32", "DS_BPERMUTE_B32", "DS_SWIZZLE_B32"):
        add_shuffle(t, row)
        return True
    return row.name.startswith("DS_") and add_ds(t, row)
