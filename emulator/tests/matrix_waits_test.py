"""Wait states around products of matrices: LLVM's hazard recognizer puts S_NOPs between two instructions, or into a random
row of them. With what it puts there the checker's lints are silent; with one less they name the instruction behind.
Usage: matrix_waits_test.py [emu_step]
"""
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

from emulator import MEMORY, Checks, Emulator, Kernel, assemble, tool
from matrix_cdna_test import Form
from opcode_table import rows

# where registers lie: results, factors, an index, other results and addends, a constant 0, an address
D, A, B, INDEX, OTHER, C, ZERO, ADDRESS = 0, 32, 36, 40, 64, 96, 60, 62
ONE_K = {(4, 4, 16), (16, 4, 4), (32, 4, 2), (32, 8, 1), (16, 16, 1)}  # shapes of BF16 that LLVM calls 1K
# Kernels of rows, each beginning with registers that have values.
DESCRIPTOR = """.amdgcn_target "amdgcn-amd-amdhsa--{0}"
.text
.globl k
.type k,@function
k: s_endpgm
.rodata
.amdhsa_kernel k
.amdhsa_group_segment_fixed_size 4096
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_next_free_vgpr {1}
.amdhsa_next_free_sgpr 16
{2}
.end_amdhsa_kernel
"""


def span(file, first, count):
    return "$" + "_".join(f"{file}gpr{first + i}" for i in range(count))


class Matrix(Form):
    """A product as LLVM's machine code names it."""

    def __init__(self, name, mnemonic):
        super().__init__(name, mnemonic)
        self.pseudo = name
        if not self.sparse and self.kind not in ("FP8", "BF8"):
            parts = name.split("_")
            self.pseudo = "_".join(parts[:4]) + parts[-1]
            self.pseudo += "_1K" * (parts[-1] == "BF16" and (self.m, self.k, self.blocks) in ONE_K)
        self.in_a = self.in_factor // (2 if self.sparse else 1)

    def text(self, file, d=D, a=A, b=B, c=None, file_a="v"):
        suffix = "_e64" if file == "a" or self.sparse else "_vgprcd_e64"
        c = d if c is None or self.sparse else c
        tail = span(file, c, self.in_result)
        if self.sparse:
            tail = f"{span('v', INDEX, 1)}, 0, 0, {tail}"
        else:
            tail += ", 0, 0, 0"
        return (f"{span(file, d, self.in_result)} = {self.pseudo}{suffix} {span(file_a, a, self.in_a)}, "
                f"{span('v', b, self.in_factor)}, {tail}, implicit $mode, implicit $exec")


def move(to, source=ZERO):
    return f"$vgpr{to} = V_MOV_B32_e32 $vgpr{source}, implicit $exec"


def acc_read(to, source):
    return f"$vgpr{to} = V_ACCVGPR_READ_B32_e64 $agpr{source}, implicit $exec"


def acc_write(to, source=ZERO):
    return f"$agpr{to} = V_ACCVGPR_WRITE_B32_e64 $vgpr{source}, implicit $exec"


def store(source, file="v"):
    return f"DS_WRITE_B32_gfx9 $vgpr{ZERO}, ${file}gpr{source}, 0, 0, implicit $exec"


def load(to, file="v"):
    return f"${file}gpr{to} = DS_READ_B32_gfx9 $vgpr{ZERO}, 0, 0, implicit $exec"


def global_store(source):
    return f"GLOBAL_STORE_DWORD $vgpr{ADDRESS}_vgpr{ADDRESS + 1}, $vgpr{source}, 0, 0, implicit $exec"


def dot(to, a, b, name="V_DOT4C_I32_I8_e32"):
    return f"$vgpr{to} = {name} $vgpr{a}, $vgpr{b}, $vgpr{to}, implicit $exec"


FMA64 = (f"$vgpr{OTHER}_vgpr{OTHER + 1} = V_FMA_F64_e64 0, $vgpr{C}_vgpr{C + 1}, 0, $vgpr{C}_vgpr{C + 1}, 0, "
         f"$vgpr{C}_vgpr{C + 1}, 0, 0, implicit $mode, implicit $exec")
EXEC = f"V_CMPX_EQ_U32_e32 $vgpr{ZERO}, $vgpr{ZERO}, implicit-def $exec, implicit-def $vcc, implicit $exec"


def pairs(target, forms, rng):
    """Texts of two instructions each: every product before everything that may touch its registers."""
    old = target == "gfx908"
    for form in forms:
        file = "a" if old else rng.choice("va")
        first = form.text(file, c=None if form.sparse else C)
        place, n = rng.randrange(form.in_result), form.in_result
        yield first, form.text(file)  # the sum as the next addend
        others = rng.sample(forms, 2) + [f for f in forms if f.kind == "F64"][:2]
        for other in others:
            if n > 4 and other.in_result < n:
                yield first, other.text(file, d=OTHER, c=D + 2 * rng.randrange((n - other.in_result) // 2 + 1))
            yield first, other.text("a" if old else "v", d=OTHER, a=D, c=C, file_a=file)
            yield first, other.text("a" if old else "v", d=OTHER, c=C)
        if old:
            yield first, acc_read(OTHER, place)
            yield first, acc_write(place)
            yield first, acc_write(C + place)
        else:
            yield first, acc_read(OTHER, place) if file == "a" else move(OTHER, place)
            yield first, acc_write(place) if file == "a" else move(place)
            yield first, store(place, file)
            yield first, load(place, file)
            if not form.sparse:
                yield first, acc_write(C + place) if file == "a" else move(C + place)
            yield first, FMA64
            if file == "v":
                yield first, global_store(place)
        yield move(A), form.text(file)
        yield EXEC, form.text(file)
    form = rng.choice(forms)
    file = "a" if old else "v"
    yield acc_read(A, C), form.text(file)
    yield acc_read(A, C), store(A)
    if old:
        yield acc_write(C), form.text("a", d=OTHER, c=C)
        yield acc_write(C), acc_read(OTHER, C)
        yield acc_read(A, C), acc_write(OTHER, A)
        yield EXEC, acc_write(OTHER)
        return
    yield dot(OTHER, A, B), dot(OTHER, A, B)
    yield dot(OTHER, A, B), dot(C, OTHER, B)
    yield dot(OTHER, A, B), dot(C, OTHER, B, "V_DOT8C_I32_I4_e32")
    yield dot(OTHER, A, B), dot(OTHER, A, B, "V_DOT8C_I32_I4_e32")
    yield dot(OTHER, A, B), move(C, OTHER)
    yield dot(OTHER, A, B), move(OTHER)
    yield dot(OTHER, A, B), store(OTHER)
    yield dot(A, B, C), form.text(file)


def row(target, forms, rng):
    """A random row of instructions. Products have whole tuples as results, so that LLVM, which looks at the newest of
    those that wrote a part of an operand, sees all of them."""
    old, texts = target == "gfx908", []
    file = "a" if old else rng.choice("va")
    form = rng.choice(forms)
    # gfx908's waits are in LLVM those of the slowest product before
    alike = [f for f in forms if f.in_result == form.in_result and (not old or f.m == form.m)]
    n = form.in_result
    for _ in range(rng.randrange(4, 12)):
        kind = rng.randrange(6)
        place = rng.choice((D, OTHER)) + rng.randrange(n)
        if kind < 3:
            texts.append(rng.choice(alike).text(file, d=rng.choice((D, OTHER)), c=None if rng.random() < 0.7 else C))
        elif kind == 3:
            texts.append(acc_read(A + rng.randrange(2), place) if file == "a" else move(A, place))
        elif kind == 4 and not old:
            texts.append(store(place, file))
        else:
            texts.append(move(A + rng.randrange(4), ZERO))
    return texts


def recognize(target, groups):
    """What LLVM makes of each group: its lines of assembly, S_NOPs among them."""
    functions = [f"---\nname: f{i}\nbody: |\n  bb.0:\n" + "".join(f"    {t}\n" for t in texts) + "    S_ENDPGM 0\n...\n"
                 for i, texts in enumerate(groups)]
    with tempfile.NamedTemporaryFile("w", suffix=".mir") as f:
        f.write("".join(functions))
        f.flush()
        r = subprocess.run([tool("llc"), "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-start-before=post-RA-hazard-rec",
                            f.name, "-o", "-"], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError("llc: " + r.stderr[:2000])
    parts = re.split(r"^f\d+:.*$", r.stdout, flags=re.M)[1:]
    found = [[re.sub(r"\s*;.*", "", line).strip() for line in part.split("s_endpgm")[0].split("\n")] for part in parts]
    return [[line for line in lines if line and not line.startswith(".")] for lines in found]


class Tester(Checks):
    def __init__(self, emulator, target):
        super().__init__(target)
        self.emulator, self.target, self.rng = emulator, target, random.Random(target)
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "k.hsaco")
            registers, offset = (256, "") if target == "gfx908" else (512, ".amdhsa_accum_offset 256")
            subprocess.run([tool("clang"), "-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-", "-o",
                            out], input=DESCRIPTOR.format(target, registers, offset).encode(), check=True)
            self.kernel = Kernel(out, "k", target)
        begin = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)"]
        begin += [f"v_mov_b32 v{i}, 0" for i in range(128)]
        begin += [f"v_mov_b32 v{ADDRESS}, s4", f"v_mov_b32 v{ADDRESS + 1}, s5"]
        begin += [f"v_accvgpr_write_b32 a{i}, v0" for i in range(128)] + ["s_nop 15", "s_nop 15"]
        self.begin = b"".join(assemble(target, begin, 64))

    def findings(self, codes):
        """Places, counted in instructions, of what the lints find in a row of encoded ones."""
        end = bytes.fromhex("000081bf")
        self.kernel.image, self.kernel.entry = self.begin + b"".join(codes) + end + bytes(256), 0
        buffers = [np.zeros(64, np.float32)]
        r = self.emulator.launch(self.kernel, np.array([MEMORY], np.uint64).tobytes(), buffers, (1, 1, 1), (64, 1, 1),
                                 check=True, lint=True, room=16)
        if r.status:
            self.expect("runs", False, r.text or str(r.reports))
        at = {sum(map(len, codes[:i])) + len(self.begin): i for i in range(len(codes))}
        return {at[pc]: text for kind, pc, _, text in r.reports if kind == "hazard"}

    def check(self, groups):
        recognized = recognize(self.target, groups)
        self.expect("functions", len(recognized) == len(groups), f"{len(recognized)} of {len(groups)}")
        codes = iter(assemble(self.target, [line for lines in recognized for line in lines] + ["s_nop 0"], 64))
        nops = assemble(self.target, [f"s_nop {i}" for i in range(16)], 64)
        for lines in recognized:
            row = [next(codes) for _ in lines]
            text = "; ".join(lines)
            found = self.findings(row)
            self.expect(text, not found, f"needless: {found}")
            for i, line in enumerate(lines):
                if not line.startswith("s_nop"):
                    continue
                count = int(line.split()[1])
                less = row[:i] + [nops[count - 1]] * (count > 0) + row[i + 1:]
                behind = i + (count > 0)
                while lines[i + 1].startswith("s_nop"):
                    i, behind = i + 1, behind + 1
                found = self.findings(less)
                self.expect(text, behind in found, f"not found without one of s_nop {count}: {found}")


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    testers = [Tester(emulator, target) for target in ("gfx908", "gfx90a", "gfx942")]
    forms = {t.target: [Matrix(row.name, row.on[t.target][1]) for row in rows()
                        if t.target in row.on and re.match("V_S?MFMA", row.name)] for t in testers}
    forms["gfx90a"] += forms["gfx908"][::4]  # which it has, too

    def test(t):
        t.check(list(pairs(t.target, forms[t.target], t.rng)))
        t.check([row(t.target, forms[t.target], t.rng) for _ in range(30)])
    return emulator.run_tests(testers, [test])


if __name__ == "__main__":
    sys.exit(main())
