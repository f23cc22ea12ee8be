"""Every opcode of isa/ops_*.def against Python's integers, fractions and floats, or a reason why not.

The list of opcodes, their operands and modifiers are read from the tables; what they do stands in opcodes_scalar.py,
opcodes_vector.py and opcodes_memory.py. An opcode that has neither a check nor a row in UNCHECKED fails the test, as does
a row for an opcode that is checked. Usage: opcodes_test.py [emu_step] [seed]
"""
import sys

import opcodes_scalar
import opcodes_vector
from emulator import Emulator
from opcode_table import Tester, rows

UNCHECKED = {}


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    emulator, failures, checked, opcodes = Emulator(program), [], 0, rows()
    for target in ("gfx1030", "gfx1100"):
        done = set()
        for wave in (32, 64):
            t = Tester(emulator, target, wave, f"{seed} {target} {wave}")
            for row in opcodes:
                if target in row.on:
                    opcodes_scalar.add(t, row) or opcodes_vector.add(t, row)
            opcodes_vector.add_dual(t, opcodes)
            t.run_all()
            failures += t.failures
            checked += t.checked
            done |= t.done
        for row in opcodes:
            if target in row.on and (row.name in done) == (row.name in UNCHECKED):
                failures.append(f"{target} {row.name}: " + ("it is in UNCHECKED, and there is a check" if row.name in done else
                                                            "there is no check, and no reason in UNCHECKED"))
    emulator.close()
    for line in failures:
        print(line)
    print(f"{checked} checks, {len(failures)} failures; {len(UNCHECKED)} of {len(opcodes)} opcodes are not checked")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
