"""Every opcode of isa/ops_*.def against Python's integers, fractions and floats, or a reason why not.

The list of opcodes, their operands and modifiers are read from the tables; what they do stands in opcodes_scalar.py,
opcodes_vector.py, opcodes_memory.py and opcodes_rdna4.py. An opcode that has neither a check nor a row in UNCHECKED fails the test, as
does a row that is no longer needed: for an opcode that is checked, or executed after all. All targets, waves of 32 and
of 64 lanes, 25 seconds. Usage: opcodes_test.py [emu_step] [seed] [target …]
"""
import re
import sys

import opcodes_memory
import opcodes_rdna4
import opcodes_scalar
import vector_forms
from emulator import Emulator
from opcode_table import CODES, DWORDS, Tester, rows

# (names, reason, an instruction on which the emulator must say that it does not execute it; "" where it does)
UNCHECKED = [
    (r"V_(WMMA|SWMMAC|DOT4_F32)_.*", "matrix_test.py checks it", ""),
    (r"V_S?MFMA(C)?_.*", "matrix_cdna_test.py checks it", ""),
    (r"GLOBAL_LOAD_LDS_.*", "cdna4_test.py checks it", ""),
    (r"SCRATCH_LOAD_LDS_.*", "not executed: no compiler writes it unasked", "{name} v0, off"),
    (r"gfx1100 V_DOT2_BF16_BF16", "not executed: how hardware rounds its steps is recorded nowhere",
     "{name} v8, v0, v2, v4"),
    (r"gfx1201 V_DOT2_BF16_BF16", "matrix_test.py checks it", ""),
    (r"gfx1\d+ BUFFER_(LOAD|STORE)_FORMAT_.*", "texture_test.py checks what HIP's textures compile to", ""),
    (r"IMAGE_.*", "texture_test.py checks what HIP's textures compile to", ""),
    (r"BUFFER_(LOAD|STORE)_(D16_)?(HI_)?FORMAT_.*", "not executed: formats are for graphics",
     "{name} {data}, off, s[8:11], {zero}"),
    (r"TBUFFER_.*", "not executed: formats are for graphics", "{name} {data}, off, s[8:11], {zero} format:1"),
    (r"BUFFER_LOAD_LDS_.*", "not executed: no compiler for these targets writes it", "{name} off, s[8:11], {zero}"),
    (r"LDS_DIRECT_LOAD", "not executed: for pixels", "{name} v8"),
    (r"DS_GWS_SEMA_(V|P|RELEASE_ALL)", "not executed: waits for other work-groups", "{name} gds"),
    (r"DS_GWS_BARRIER", "waits for other work-groups, of which a single step has none", ""),
    (r"DS_GWS_(INIT|SEMA_BR)", "not executed: waits for other work-groups", "{name} v0 gds"),
    (r"DS_ORDERED_COUNT", "not executed: counts in the order of pixels' waves", "{name} v8, v0 gds"),
    (r"DS_(ADD|SUB)_GS_REG_RTN", "not executed: for geometry shaders", "{name} v[8:9], v0 gds"),
    (r"DS_BVH_STACK_RTN_B32", "not executed: for ray tracing", "{name} v8, v0, v2, v[4:7]"),
    (r"DS_(APPEND|CONSUME)", "not executed: no guide says which bits of M0 are the address", "{name} v8"),
    (r"DS_CONDXCHG32_RTN_B64", "not executed: no compiler writes it", "{name} v[8:9], v0, v[2:3]"),
    (r"S_SUBVECTOR_LOOP_(BEGIN|END)", "not executed: no compiler writes it", "{name} s4, 1"),
    (r"S_RFE_B64", "not executed: for trap handlers", "{name} s[4:5]"),
    (r"S_SENDMSG_RTN_B32", "its answers are a driver's: a doorbell, a trap handler's address", ""),
    (r"S_SENDMSGHALT", "not executed: for graphics", "{name} sendmsg(MSG_INTERRUPT)"),
    (r"S_SETKILL", "not executed: for debuggers", "{name} 1"),
    (r"S_ENDPGM_SAVED", "not executed: for context switches", "{name}"),
    (r"S_ENDPGM_ORDERED_PS_DONE", "not executed: for pixels", "{name}"),
    (r"V_(EXP|LOG)_LEGACY_F32", "not executed: what differs from the others is recorded nowhere", "{name} v8, v0"),
    (r"V_SCREEN_PARTITION_4SE_B32", "not executed: for graphics", "{name} v8, v0"),
    (r"S_CBRANCH_JOIN", "not executed: no compiler writes it", "{name} s4"),
    (r"S_CBRANCH_G_FORK", "not executed: no compiler writes it", "{name} s[4:5], s[6:7]"),
    (r"S_CBRANCH_I_FORK", "not executed: no compiler writes it", "{name} s[4:5], 1"),
    (r"S_RFE_RESTORE_B64", "not executed: for trap handlers", "{name} s[4:5], s6"),
    (r"S_SETVSKIP", "not executed: no compiler writes it", "{name} s4, s5"),
    (r"S_SET_GPR_IDX_IDX", "not executed: no compiler writes it", "{name} s4"),
    (r"S_SET_GPR_IDX_MODE", "not executed: no compiler writes it", "{name} gpr_idx(SRC0)"),
    (r"S_BARRIER_(INIT|JOIN)|S_WAKEUP_BARRIER", "not executed: LLVM's alone, AMD's guide for RDNA 4 has no named barriers",
     "{name} m0"),
    (r"S_BARRIER_LEAVE", "not executed: LLVM's alone, AMD's guide for RDNA 4 has no named barriers", "{name}"),
    (r"GLOBAL_LOAD_TR_B(64|128)", "not executed: which lanes' addresses give what is recorded nowhere",
     "{name} {data}, v[0:1], off"),
    (r"GLOBAL_LOAD_BLOCK", "not executed: no compiler for these targets writes it", "{name} {data}, v[0:1], off"),
    (r"GLOBAL_STORE_BLOCK", "not executed: no compiler for these targets writes it", "{name} v[0:1], {data}, off"),
    (r"SCRATCH_LOAD_BLOCK", "not executed: no compiler for these targets writes it", "{name} {data}, v0, off"),
    (r"SCRATCH_STORE_BLOCK", "not executed: no compiler for these targets writes it", "{name} v0, {data}, off"),
    (r"GLOBAL_ATOMIC_ORDERED_ADD_B64", "not executed: for geometry shaders",
     "{name} v[8:9], v[0:1], v[2:3], off th:TH_ATOMIC_RETURN"),
]


def unchecked(row, target):
    return next((u for u in UNCHECKED if re.fullmatch(u[0], row.name) or re.fullmatch(u[0], f"{target} {row.name}")), None)


def add_refusal(t, row, text):
    """That the emulator says so, rather than go on with a wrong value."""
    kinds = [row.dst] if row.dst != "_" else row.src[1:2]
    dwords = DWORDS.get(kinds[0], 1) if kinds else 1
    if kinds and kinds[0].startswith("FRAG"):  # a share of what the wave has
        dwords = dwords * 32 // t.wave
    data = "v8" if dwords == 1 else f"v[8:{7 + dwords}]"

    def check(code):
        r = t.step(code, t.scalars(), t.words(16, t.wave))
        t.expect(r.status and "does not execute it" in r.text, r.text or "it is executed: it needs a check")
        t.done.discard(row.name)
    t.add(row.name, text.format(name=row.on[t.target][1], data=data, zero="null" if t.rdna4 else "0"), check)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    emulator, failures, checked, opcodes = Emulator(program), [], 0, rows()
    targets = sys.argv[3:] or CODES
    for target in targets:
        done, here = set(), [row for row in opcodes if target in row.on]
        for wave in (64,) if target.startswith("gfx9") else (32, 64):
            t = Tester(emulator, target, wave, f"{seed} {target} {wave}")
            for row in here:
                known = any(part.add(t, row) for part in (opcodes_scalar, opcodes_rdna4, vector_forms, opcodes_memory))
                why_not = unchecked(row, target)
                if not known and why_not and why_not[2]:
                    add_refusal(t, row, why_not[2])
            if target not in ("gfx1150", "gfx1010") and not t.gfx9:
                vector_forms.add_dual(t, opcodes)
            t.run_all()
            failures += t.failures
            checked += t.checked
            done |= t.done
        for row in here:
            if row.name not in done and not unchecked(row, target):
                failures.append(f"{target} {row.name}: there is no check, and no reason in UNCHECKED")
            if row.name in done and unchecked(row, target):
                failures.append(f"{target} {row.name}: it is in UNCHECKED, and there is a check")
    used = [[unchecked(row, target) for target in row.on] for row in opcodes]
    named = [u for here in used for u in here]
    if targets is CODES:
        failures += [f"UNCHECKED names no opcode: {u[0]}" for u in UNCHECKED if u not in named]
    emulator.close()
    for line in failures[:80]:
        print(line[:600])
    left = sum(map(any, used))
    print(f"{checked} checks, {len(failures)} failures; {len(opcodes) - left} of {len(opcodes)} opcodes are checked, "
          f"for {left} there is a reason why not")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
