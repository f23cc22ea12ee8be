"""What scalar opcodes do, in Python's integers."""
import re

import numpy as np

from emulator import EXEC, IMAGE, M0, MEMORY, NULL, VCC
from floats import M32, M64, signed
from opcode_table import DWORDS, bits_of, sample, seen_as

NONZERO, KEPT = "nonzero", "kept"


def over(v):
    return not -2**31 <= v < 2**31


def reverse(v, bits):
    return int(f"{v:0{bits}b}"[::-1], 2)


def lowest_one(v):
    return (v & -v).bit_length() - 1


def highest_one(v, bits):
    return bits - v.bit_length() if v else -1


def sign_run(v, bits):
    return highest_one(v if v >= 0 else ~v, bits)


def field(v, control, bits):
    """s_bfe: v is signed where the opcode is, so that a field past the top is filled with the sign."""
    offset, width = control & (bits - 1), control >> 16 & 127
    return v >> offset & (1 << width) - 1, width


def signed_field(v, control, bits):
    part, width = field(v, control, bits)
    return signed(part, width) if width else 0


def quads(v, bits):
    return [bool(v >> i & 15) for i in range(0, bits, 4)]


def wrapped_difference(a, b):
    return abs(signed(a - b))


def with_condition(function, condition):
    """The function's result, and a condition code that is a function of the same sources."""
    return lambda *a: (function(*a), condition(*a))


def leaves(function):
    return lambda *a: (function(*a), KEPT)


def tells(function):
    return lambda *a: (function(*a), NONZERO)


# name: function of the sources and the condition code: (result or None for no write, the condition code after)
SOP = {
    "S_ADD_U32": lambda a, b, c: (a + b, a + b > M32),
    "S_SUB_U32": lambda a, b, c: (a - b, a < b),
    "S_ADD_I32": lambda a, b, c: (a + b, over(a + b)),
    "S_SUB_I32": lambda a, b, c: (a - b, over(a - b)),
    "S_ADDC_U32": lambda a, b, c: (a + b + c, a + b + c > M32),
    "S_SUBB_U32": lambda a, b, c: (a - b - c, a < b + c),
    "S_ABSDIFF_I32": tells(lambda a, b, c: wrapped_difference(a, b)),
    "S_MIN_I32": with_condition(lambda a, b, c: min(a, b), lambda a, b, c: a < b),
    "S_MIN_U32": with_condition(lambda a, b, c: min(a, b), lambda a, b, c: a < b),
    "S_MAX_I32": with_condition(lambda a, b, c: max(a, b), lambda a, b, c: a >= b),
    "S_MAX_U32": with_condition(lambda a, b, c: max(a, b), lambda a, b, c: a >= b),
    "S_LSHL_B32": tells(lambda a, b, c: a << (b & 31)), "S_LSHL_B64": tells(lambda a, b, c: a << (b & 63)),
    "S_LSHR_B32": tells(lambda a, b, c: a >> (b & 31)), "S_LSHR_B64": tells(lambda a, b, c: a >> (b & 63)),
    "S_ASHR_I32": tells(lambda a, b, c: a >> (b & 31)), "S_ASHR_I64": tells(lambda a, b, c: a >> (b & 63)),
    "S_BFE_U32": tells(lambda a, b, c: field(a, b, 32)[0]), "S_BFE_U64": tells(lambda a, b, c: field(a, b, 64)[0]),
    "S_BFE_I32": tells(lambda a, b, c: signed_field(a, b, 32)),
    "S_BFE_I64": tells(lambda a, b, c: signed_field(a, b, 64)),
    "S_BFM_B32": leaves(lambda a, b, c: ((1 << (a & 31)) - 1) << (b & 31)),
    "S_BFM_B64": leaves(lambda a, b, c: ((1 << (a & 63)) - 1) << (b & 63)),
    "S_MUL_I32": leaves(lambda a, b, c: a * b), "S_MUL_U64": leaves(lambda a, b, c: a * b),
    "S_ADD_NC_U64": leaves(lambda a, b, c: a + b), "S_SUB_NC_U64": leaves(lambda a, b, c: a - b),
    "S_MUL_HI_U32": leaves(lambda a, b, c: a * b >> 32), "S_MUL_HI_I32": leaves(lambda a, b, c: a * b >> 32),
    "S_PACK_LL_B32_B16": leaves(lambda a, b, c: a & 0xffff | b << 16),
    "S_PACK_LH_B32_B16": leaves(lambda a, b, c: a & 0xffff | b >> 16 << 16),
    "S_PACK_HH_B32_B16": leaves(lambda a, b, c: a >> 16 | b >> 16 << 16),
    "S_PACK_HL_B32_B16": leaves(lambda a, b, c: a >> 16 | b << 16),
    "S_SEXT_I32_I8": leaves(lambda a, c: signed(a, 8)), "S_SEXT_I32_I16": leaves(lambda a, c: signed(a, 16)),
    "S_ABS_I32": tells(lambda a, c: abs(a)),
    "S_CTZ_I32_B32": leaves(lambda a, c: lowest_one(a)), "S_CTZ_I32_B64": leaves(lambda a, c: lowest_one(a)),
    "S_FF0_I32_B32": leaves(lambda a, c: lowest_one(~a & M32)),
    "S_FF0_I32_B64": leaves(lambda a, c: lowest_one(~a & M64)),
    "S_CLZ_I32_U32": leaves(lambda a, c: highest_one(a, 32)), "S_CLZ_I32_U64": leaves(lambda a, c: highest_one(a, 64)),
    "S_CLS_I32": leaves(lambda a, c: sign_run(a, 32)), "S_CLS_I32_I64": leaves(lambda a, c: sign_run(a, 64)),
    "S_BITREPLICATE_B64_B32": leaves(lambda a, c: int("".join(2 * x for x in f"{a:032b}"), 2)),
    "S_BITSET0_B32": leaves(lambda a, c, old: old & ~(1 << (a & 31))),
    "S_BITSET0_B64": leaves(lambda a, c, old: old & ~(1 << (a & 63))),
    "S_BITSET1_B32": leaves(lambda a, c, old: old | 1 << (a & 31)),
    "S_BITSET1_B64": leaves(lambda a, c, old: old | 1 << (a & 63)),
    "S_BITCMP0_B32": lambda a, b, c: (None, not a >> (b & 31) & 1),
    "S_BITCMP1_B32": lambda a, b, c: (None, a >> (b & 31) & 1),
    "S_BITCMP0_B64": lambda a, b, c: (None, not a >> (b & 63) & 1),
    "S_BITCMP1_B64": lambda a, b, c: (None, a >> (b & 63) & 1),
    # SOPK: the constant comes as it is encoded
    "S_MOVK_I32": lambda k, c: (signed(k, 16), KEPT),
    "S_CMOVK_I32": lambda k, c: (signed(k, 16) if c else None, KEPT),
    "S_ADDK_I32": lambda a, k, c: (a + signed(k, 16), over(a + signed(k, 16))),
    "S_MULK_I32": lambda a, k, c: (a * signed(k, 16), KEPT),
}
READS_OLD = {n for n in SOP if n.startswith("S_BITSET")}
for n in (1, 2, 3, 4):
    SOP[f"S_LSHL{n}_ADD_U32"] = lambda a, b, c, n=n: ((a << n) + b, (a << n) + b > M32)
LOGIC = {"AND": lambda a, b: a & b, "OR": lambda a, b: a | b, "XOR": lambda a, b: a ^ b, "NAND": lambda a, b: ~(a & b),
         "NOR": lambda a, b: ~(a | b), "XNOR": lambda a, b: ~(a ^ b), "AND_NOT1": lambda a, b: a & ~b,
         "OR_NOT1": lambda a, b: a | ~b, "AND_NOT0": lambda a, b: ~a & b, "OR_NOT0": lambda a, b: ~a | b}
for bits in (32, 64):
    for n in ("AND", "OR", "XOR", "NAND", "NOR", "XNOR", "AND_NOT1", "OR_NOT1"):
        SOP[f"S_{n}_B{bits}"] = tells(lambda a, b, c, f=LOGIC[n]: f(a, b))
    SOP[f"S_CSELECT_B{bits}"] = leaves(lambda a, b, c: a if c else b)
    SOP[f"S_MOV_B{bits}"] = leaves(lambda a, c: a)
    SOP[f"S_CMOV_B{bits}"] = leaves(lambda a, c: a if c else None)
    SOP[f"S_NOT_B{bits}"] = tells(lambda a, c: ~a)
    SOP[f"S_BREV_B{bits}"] = leaves(lambda a, c, bits=bits: reverse(a, bits))
    SOP[f"S_BCNT0_I32_B{bits}"] = tells(lambda a, c, bits=bits: bits - bin(a).count("1"))
    SOP[f"S_BCNT1_I32_B{bits}"] = tells(lambda a, c: bin(a).count("1"))
    SOP[f"S_QUADMASK_B{bits}"] = tells(lambda a, c, bits=bits: sum(q << i for i, q in enumerate(quads(a, bits))))
    SOP[f"S_WQM_B{bits}"] = tells(lambda a, c, bits=bits: sum(15 * q << 4 * i for i, q in enumerate(quads(a, bits))))
RELATIONS = {"EQ": lambda a, b: a == b, "LG": lambda a, b: a != b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
             "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b}
for n, relation in RELATIONS.items():
    for kind in ("I32", "U32", "U64"):
        SOP[f"S_CMP_{n}_{kind}"] = lambda a, b, c, r=relation: (None, r(a, b))
    SOP[f"S_CMPK_{n}_I32"] = lambda a, k, c, r=relation: (None, r(a, signed(k, 16)))
    SOP[f"S_CMPK_{n}_U32"] = lambda a, k, c, r=relation: (None, r(a & M32, k))

# Instructions that change nothing that a program can see, with an operand that the assembler takes.
IDLE = {"S_NOP": "3", "S_SET_INST_PREFETCH_DISTANCE": "1", "S_CLAUSE": "2", "S_DELAY_ALU": "instid0(VALU_DEP_1)",
        "S_WAITCNT_DEPCTR": "0xfffe", "S_WAITCNT": "0", "S_WAIT_IDLE": "", "S_WAITCNT_VSCNT": "null, 0x0",
        "S_WAITCNT_VMCNT": "null, 0x0", "S_WAITCNT_EXPCNT": "null, 0x0", "S_WAITCNT_LGKMCNT": "null, 0x0",
        "S_VERSION": "0x1", "S_SETPRIO": "2", "S_INCPERFLEVEL": "1", "S_DECPERFLEVEL": "1", "S_ICACHE_INV": "",
        "S_TTRACEDATA": "", "S_TTRACEDATA_IMM": "1", "S_WAKEUP": "", "S_SLEEP": "1", "S_BARRIER": "",
        "S_DCACHE_INV": "", "S_DCACHE_WB": "", "S_DCACHE_INV_VOL": "", "S_DCACHE_WB_VOL": "", "BUFFER_WBINVL1": "",
        "BUFFER_WBINVL1_VOL": "", "BUFFER_WBL2": "", "BUFFER_INVL2": "", "BUFFER_INV": "sc1", "S_GL1_INV": "", "BUFFER_GL0_INV": "", "BUFFER_GL1_INV": "", "V_NOP": "", "V_PIPEFLUSH": "",
        "V_CLREXCP": "", "DS_NOP": "", "S_SETHALT": "0", "S_SENDMSG": "sendmsg(MSG_INTERRUPT)",
        "S_WAIT_EVENT": "1", "S_WAIT_LOADCNT": "0x0", "S_WAIT_STORECNT": "0x0", "S_WAIT_SAMPLECNT": "0x0",
        "S_WAIT_BVHCNT": "0x0", "S_WAIT_EXPCNT": "0x0", "S_WAIT_DSCNT": "0x0", "S_WAIT_KMCNT": "0x0",
        "S_WAIT_LOADCNT_DSCNT": "0x0", "S_WAIT_STORECNT_DSCNT": "0x0", "S_SINGLEUSE_VDST": "0x0",
        "GLOBAL_INV": "scope:SCOPE_DEV", "GLOBAL_WB": "scope:SCOPE_SYS", "GLOBAL_WBINV": "", "S_SLEEP_VAR": "s4",
        "S_PREFETCH_INST": "s[4:5], 0x10, s6, 3", "S_PREFETCH_INST_PC_REL": "0x10, s6, 3",
        "S_PREFETCH_DATA": "s[4:5], 0x10, s6, 3", "S_PREFETCH_DATA_PC_REL": "0x10, s6, 3",
        "S_BUFFER_PREFETCH_DATA": "s[4:7], 0x10, s8, 3"}


class Place:
    """A scalar register, or a tuple of them."""

    def __init__(self, register, dwords, text=None):
        self.register, self.dwords = register, dwords
        self.text = text or (f"s{register}" if dwords == 1 else f"s[{register}:{register + dwords - 1}]")

    def read(self, s, scc):
        return sum(s[self.register + i] << 32 * i for i in range(self.dwords)) if self.register != NULL else 0

    def write(self, s, value):
        if self.register != NULL:
            for i in range(self.dwords):
                s[self.register + i] = value >> 32 * i & M32


class Constant:
    def __init__(self, text, value):
        self.text, self.value = text, value

    def read(self, s, scc):
        return self.value if self.value != "scc" else scc


def named(name, wide):
    number = {"vcc": VCC, "exec": EXEC, "m0": M0, "null": NULL}[name]
    return Place(number, 1 + wide, name + ("_lo" if name in ("vcc", "exec") and not wide else ""))


def constant(rng, kind):
    """An inline constant or a literal, as an operand of the type sees it."""
    wide = DWORDS.get(kind) == 2
    how = rng.randrange(4)
    if how == 0:
        v = rng.choice((-16, -1, 0, 1, 33, 64, rng.randint(-16, 64)))
        return Constant(str(v), v & (M64 if wide else M32))
    if how == 1:
        v = rng.choice((("1.0", 0x3f800000, 0x3ff0000000000000), ("-4.0", 0xc0800000, 0xc010000000000000),
                        ("0.5", 0x3f000000, 0x3fe0000000000000), ("0.15915494", 0x3e22f983, 0x3fc45f306dc9c882)))
        return Constant(v[0] if v[0] != "0.15915494" or not wide else "0.15915494309189532", v[2] if wide else v[1])
    if how == 2:
        return Constant("scc", "scc")
    v = rng.choice((0x80000000, 0x12345678, 0xdeadbeef, 0x7fffffff, 65, rng.getrandbits(32)))
    return Constant(hex(v), signed(v) & M64 if kind == "I64" else v)


def destination(t, kind, first):
    rng = t.rng
    wide = DWORDS.get(kind) == 2
    return Place(20, 1 + wide) if first or rng.random() < 0.5 else named(rng.choice(("vcc", "vcc" if t.gfx9 else "null")), wide)


def field_control(rng, bits):
    """Of s_bfe: offset and width, often past the top, with noise in the bits that nobody reads."""
    width = rng.choice((0, 1, bits, bits + 1, 127, rng.randrange(bits), rng.randrange(128)))
    noise = rng.getrandbits(9) << 23 | rng.getrandbits(9) << 7
    return rng.randrange(bits) | width << 16 | (noise if rng.getrandbits(1) else 0)


def add_sop(t, row):
    """SOP1, SOP2, SOPC, SOPK with a function in SOP."""
    function, (encoding, mnemonic) = SOP[row.name], row.on[t.target]
    immediate = encoding == "SOPK"
    for variant in range(4):
        places = [Place(4 + 4 * i, DWORDS.get(kind, 1)) for i, kind in enumerate(row.src)]
        target = places[0] if immediate and row.src else destination(t, row.dst, not variant)
        operands = list(places)
        if variant and not immediate:
            i = t.rng.randrange(len(operands))
            wide = DWORDS.get(row.src[i]) == 2
            if variant == 1:
                operands[i] = named(t.rng.choice(("vcc", "exec") + ("null",) * (not t.gfx9) + ("m0",) * (not wide)), wide)
            else:
                operands[i] = constant(t.rng, row.src[i])
        k = t.rng.choice((0, 1, 0x7fff, 0x8000, 0xffff, t.rng.getrandbits(16))) if immediate else None
        texts = [o.text for o in operands]
        if row.dst != "_" and not (immediate and row.src):
            texts.insert(0, target.text)
        if immediate:
            texts.append(hex(k))

        def check(code, operands=operands, places=places, target=target, k=k):
            for _ in range(5):
                s = t.scalars()
                for i, (place, kind) in enumerate(zip(places, row.src)):
                    value = sample(t.rng, kind)
                    if row.name.startswith("S_BFE") and i == 1:
                        value = field_control(t.rng, bits_of(row.src[0]))
                    elif i == 1 and t.rng.random() < 0.2:
                        value = places[0].read(s, 0) & (1 << bits_of(kind)) - 1
                    elif immediate and t.rng.random() < 0.4:
                        value = t.rng.choice((signed(k, 16), k)) & M32
                    place.write(s, value)
                if t.rng.random() < 0.3:
                    s[VCC] = s[VCC + 1] = 0
                scc = t.rng.getrandbits(1)
                values = [seen_as(kind, o.read(s, scc)) for kind, o in zip(row.src, operands)]
                more = [k] if immediate else []
                old = [target.read(s, scc)] if row.name in READS_OLD else []
                value, condition = function(*values, *more, scc, *old)
                want = list(s)
                if value is not None:
                    target.write(want, value)
                    condition = bool(value & (1 << bits_of(row.dst)) - 1) if condition is NONZERO else condition
                expect_scalars(t, code, s, scc, want, scc if condition is KEPT else bool(condition), values)
        t.add(row.name, f"{mnemonic} {', '.join(texts)}", check)


def expect_scalars(t, code, s, scc, want, want_scc, values, v=None, **more):
    r = t.step(code, s, v, scc=scc, **more)
    if r.status:
        return t.expect(False, r.text)
    got = [int(x) for x in r.s]
    wrong = [f"s{i} {got[i]:#x}, should be {want[i]:#x}" for i in range(128) if got[i] != want[i]]
    t.expect(not wrong and r.scc == want_scc, f"of {[hex(x) for x in values]}, SCC {scc}: {wrong} SCC {r.scc}, "
             f"should be {int(want_scc)}")
    return r


def add_exec(t, row):
    """…_SAVEEXEC keeps the old EXEC, …_WREXEC writes the new one to both."""
    operation, what, bits = re.match(r"S_(\w+)_(SAVEEXEC|WREXEC)_B(\d+)", row.name).groups()
    wide = bits == "64"
    for source in (Place(4, 1 + wide), named("vcc", wide), named("exec", wide), constant(t.rng, f"B{bits}")):
        target = Place(20, 1 + wide)

        def check(code, source=source, target=target):
            for _ in range(4):
                s, scc = t.scalars(), t.rng.getrandbits(1)
                old = t.rng.choice((0, M64, t.rng.getrandbits(64)))
                s[EXEC], s[EXEC + 1] = old & M32, old >> 32
                old &= (1 << int(bits)) - 1
                Place(4, 2).write(s, t.rng.choice((0, M64, old, ~old & M64, t.rng.getrandbits(64))))
                a = source.read(s, scc)
                new, want = LOGIC[operation](a, old) & (1 << int(bits)) - 1, list(s)
                target.write(want, old if what == "SAVEEXEC" else new)
                named("exec", wide).write(want, new)
                expect_scalars(t, code, s, scc, want, bool(new), [a, old])
        t.add(row.name, f"{row.on[t.target][1]} {target.text}, {source.text}", check)


def add_movrel(t, row):
    dwords = DWORDS.get(row.dst, 1)
    source, target = Place(8, dwords), Place(30, dwords)

    def check(code):
        for _ in range(4):
            s = t.scalars()
            step = 2 if dwords == 2 else 1
            a, b = t.rng.randrange(0, 12, step), t.rng.randrange(0, 12, step)
            both = row.name == "S_MOVRELSD_2_B32"
            s[M0] = a | b << 16 | t.rng.getrandbits(6) << 26 | t.rng.getrandbits(6) << 10 if both else a
            read = a if both or "MOVRELS_" in row.name else 0
            write = b if both else a if "MOVRELD_" in row.name else 0
            want, scc = list(s), t.rng.getrandbits(1)
            Place(30 + write, dwords).write(want, Place(8 + read, dwords).read(s, scc))
            expect_scalars(t, code, s, scc, want, scc, [s[M0]])
    t.add(row.name, f"{row.on[t.target][1]} {target.text}, {source.text}", check)


def add_branch(t, row):
    """Over one instruction: whether it was executed tells."""
    taken = {"S_BRANCH": lambda s, scc, v, e: True, "S_CBRANCH_SCC0": lambda s, scc, v, e: not scc,
             "S_CBRANCH_SCC1": lambda s, scc, v, e: scc, "S_CBRANCH_VCCZ": lambda s, scc, v, e: not v,
             "S_CBRANCH_VCCNZ": lambda s, scc, v, e: v, "S_CBRANCH_EXECZ": lambda s, scc, v, e: not e,
             "S_CBRANCH_EXECNZ": lambda s, scc, v, e: e}.get(row.name, lambda s, scc, v, e: False)  # no debugger
    mask = (1 << t.wave) - 1

    def check(code, back=False):
        for _ in range(8):
            s, scc = t.scalars(), t.rng.getrandbits(1)
            for at in (VCC, EXEC):
                value = t.rng.choice((0, 1, 1 << 31, 1 << 32, 1 << 63))
                s[at], s[at + 1] = value & M32, value >> 32
            want = list(s)
            vcc, active = ((s[at] | s[at + 1] << 32) & mask for at in (VCC, EXEC))
            if not taken(s, scc, vcc, active):
                want[20] = 1
            elif back:
                want[21] = 1
            expect_scalars(t, code, s, scc, want, scc, [scc, vcc, active])
    name = row.on[t.target][1]
    t.add(row.name, f"{name} 1\ns_mov_b32 s20, 1", check)
    t.add(row.name, f"s_branch 2\ns_mov_b32 s21, 1\ns_endpgm\n{name} 0xfffd\ns_mov_b32 s20, 1",
          lambda code: check(code, back=True))


def add_pc(t, row):
    """Jumps over the second instruction; where they came from is kept."""
    name = row.on[t.target][1]
    text, here, jumps = {
        "S_GETPC_B64": (f"{name} s[20:21]", 4, False), "S_SETPC_B64": (f"{name} s[4:5]", None, True),
        "S_SWAPPC_B64": (f"{name} s[20:21], s[4:5]", 4, True), "S_CALL_B64": (f"{name} s[20:21], 1", 4, True)}[row.name]

    def check(code):
        s, scc = t.scalars(), t.rng.getrandbits(1)
        s[4], s[5] = (IMAGE + 8) & M32, IMAGE >> 32
        want = list(s)
        if here is not None:
            want[20], want[21] = (IMAGE + here) & M32, IMAGE >> 32
        if not jumps:
            want[22] = 1
        expect_scalars(t, code, s, scc, want, scc, [])
    t.add(row.name, text + "\ns_mov_b32 s22, 1", check)


def add_idle(t, row):
    def check(code):
        s, scc, v = t.scalars(), t.rng.getrandbits(1), t.words(4, t.wave)
        data = bytes(t.rng.getrandbits(8) for _ in range(64))
        r = expect_scalars(t, code, s, scc, s, scc, [], v, lds=data, memory=data)
        same = r and np.array_equal(r.v, v) and r.lds == data and r.memory == data and r.mode == t.mode(0x3f0)
        t.expect(same, "it changed something")
    t.add(row.name, f"{row.on[t.target][1]} {IDLE[row.name]}".strip(), check)


def add_end(t, row):
    def check(code):
        s = t.scalars()
        expect_scalars(t, code, s, 0, s, 0, [])
    t.add(row.name, f"{row.on[t.target][1]}\ns_mov_b32 s20, 1", check)


def add_mode(t, row):
    """s_round_mode, s_denorm_mode, s_setreg and s_getreg of MODE, fields of every place and size."""
    name = row.on[t.target][1]
    for _ in range(6):
        k, low = t.rng.getrandbits(4), t.rng.randrange(8)
        size = t.rng.randint(1, 8 - low)
        literal = t.rng.getrandbits(32)
        text = {"S_ROUND_MODE": f"{name} {k}", "S_DENORM_MODE": f"{name} {k}",
                "S_GETREG_B32": f"{name} s20, hwreg(HW_REG_MODE, {low}, {size})",
                "S_SETREG_B32": f"{name} hwreg(HW_REG_MODE, {low}, {size}), s4",
                "S_SETREG_IMM32_B32": f"{name} hwreg(HW_REG_MODE, {low}, {size}), {literal:#x}"}[row.name]

        def check(code, k=k, low=low, size=size, literal=literal):
            s, mode, part = t.scalars(), t.mode(0x300 | t.rng.getrandbits(8)), (1 << size) - 1
            want, after = list(s), mode
            if row.name == "S_GETREG_B32":
                want[20] = mode >> low & part
            elif row.name == "S_ROUND_MODE":
                after = mode & ~15 | k
            elif row.name == "S_DENORM_MODE":
                after = mode & ~0xf0 | k << 4
            else:
                value = s[4] if row.name == "S_SETREG_B32" else literal
                after = mode & ~(part << low) | (value & part) << low
            r = expect_scalars(t, code, s, 1, want, 1, [mode], mode=mode)
            t.expect(r and r.mode == after, f"MODE {r and r.mode:#x}, should be {after:#x}")
        t.add(row.name, text, check)


def add_places(t, row):
    """GFX9's registers that say where a wave runs; those of other generations at the same numbers are not there."""
    if row.name != "S_GETREG_B32":
        add_trap(t, row, f"{row.on[t.target][1]} hwreg(20), {'s4' if row.name == 'S_SETREG_B32' else '5'}",
                 "cannot be written")
        return
    for number in (4, 20, 21, 23, 29):
        text = f"s_getreg_b32 s20, hwreg({number})"
        if number > 4:
            add_trap(t, row, text, "is not one that the emulator has")
            continue

        def check(code):
            s = t.scalars()
            want = list(s)
            want[20] = 0  # the first wave on the first of everything
            expect_scalars(t, code, s, 0, want, 0, [])
        t.add(row.name, text, check)


def add_trap(t, row, text, sentence):
    def check(code):
        r = t.step(code, t.scalars())
        t.expect(r.status and sentence in r.text, r.text or "it went on")
    t.add(row.name, text, check)


def add_load(t, row):
    """s_load and s_buffer_load: an offset in the instruction, one in a register, the end of the buffer."""
    dwords, buffer, name = DWORDS.get(row.dst, 1), "BUFFER" in row.name, row.on[t.target][1]
    narrow = re.search(r"LOAD_([IU])(8|16)$", row.name)
    unit = int(narrow[2]) // 8 if narrow else 4  # bits of an address below this do not count
    base, target = ("s[12:15]" if buffer else "s[12:13]"), Place(32, dwords)
    for offset, register in ((0x14, None), (None, "s16"), (None, "m0"), (0x24, "s16")):
        if register is None:
            text = f"{name} {target.text}, {base}, {offset:#x}"
        else:
            text = f"{name} {target.text}, {base}, {register}" + (f" offset:{offset:#x}" if offset else "")

        def check(code, offset=offset or 0, register=register):
            for _ in range(4):
                s, data = t.scalars(), t.words(128).tobytes()
                more = t.rng.randrange(0, 200)
                if register:
                    s[16 if register == "s16" else M0] = more
                at = (offset + (more if register else 0)) & -unit
                start = 64
                s[12], s[13] = (MEMORY + start) & M32, MEMORY >> 32
                size = None
                if buffer:
                    stride = t.rng.choice((0, 4, 16))
                    s[13] |= stride << 16
                    s[14] = t.rng.randrange(0, 256) if not stride else t.rng.randrange(0, 256) // stride
                    s[15] = 0
                    size = s[14] * (stride or 1)
                want = list(s)
                for i in range(dwords):
                    here = at + unit * i
                    part = int.from_bytes(data[start + here:start + here + unit], "little")
                    inside = size is None or here + unit <= size
                    part = signed(part, 8 * unit) & M32 if narrow and narrow[1] == "I" else part
                    want[32 + i] = part if inside else 0
                expect_scalars(t, code, s, 1, want, 1, [more, size or 0], memory=data)
        t.add(row.name, text, check)


def add_clock(t, row):
    def check(code):
        s = t.scalars()
        r = t.step(code, s)
        ticks = [int(r.s[i]) | int(r.s[i + 1]) << 32 for i in (20, 22)]
        t.expect(not r.status and ticks[0] <= ticks[1] and ticks[0] != s[20] | s[21] << 32, r.text or str(ticks))
    name = row.on[t.target][1]
    argument = ", sendmsg(MSG_RTN_GET_REALTIME)" if row.name == "S_SENDMSG_RTN_B64" else ""
    t.add(row.name, f"{name} s[20:21]{argument}\n{name} s[22:23]{argument}", check)


def add(t, row):
    """Whether it is a scalar opcode that is checked here."""
    name = row.name
    if name in SOP:
        add_sop(t, row)
    elif re.search("_(SAVE|WR)EXEC_", name):
        add_exec(t, row)
    elif name.startswith("S_MOVREL"):
        add_movrel(t, row)
    elif name == "S_BRANCH" or name.startswith("S_CBRANCH") and "FORK" not in name and "JOIN" not in name:
        add_branch(t, row)
    elif name in ("S_GETPC_B64", "S_SETPC_B64", "S_SWAPPC_B64", "S_CALL_B64"):
        add_pc(t, row)
    elif name in IDLE:
        add_idle(t, row)
    elif name == "S_ENDPGM":
        add_end(t, row)
    elif name in ("S_ROUND_MODE", "S_DENORM_MODE", "S_GETREG_B32", "S_SETREG_B32", "S_SETREG_IMM32_B32"):
        add_mode(t, row)
        if t.gfx9 and "REG" in name:
            add_places(t, row)
    elif name == "S_TRAP":
        add_trap(t, row, row.on[t.target][1] + " 2", "code 2")
    elif name == "S_CODE_END":
        add_trap(t, row, row.on[t.target][1], "past the end")
    elif re.match(r"S_(BUFFER_)?LOAD_[BIU]", name):
        add_load(t, row)
    elif name in ("S_MEMTIME", "S_MEMREALTIME", "S_SENDMSG_RTN_B64"):
        add_clock(t, row)
    else:
        return False
    return True
