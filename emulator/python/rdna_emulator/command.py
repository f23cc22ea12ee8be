"""rdna-emulate: a program whose HIP is emulated, or one kernel of a code object."""
import argparse
import ctypes
import os
import shutil
import sys

import rdna_emulator

CHECK, COUNTERS = 1, 2  # emu_run_file's flags


def sides(text):
    """"4", "4,2" or "4,2,1" as three numbers."""
    numbers = [int(n) for n in text.split(",")]
    if len(numbers) > 3 or min(numbers) < 1:
        raise ValueError(text)
    return (ctypes.c_uint * 3)(*numbers, *[1] * (3 - len(numbers)))


def holds_code(path):
    """Whether the file begins as code objects and bundles of them do."""
    try:
        with open(path, "rb") as f:
            head = f.read(24)
    except OSError:
        return False
    return (head[:4] == b"\x7fELF" and head[18:20] == b"\xe0\0") or head[:4] == b"CCOB" or head == b"__CLANG_OFFLOAD_BUNDLE__"


def parse(arguments):
    parser = argparse.ArgumentParser("rdna-emulate", description=__doc__, usage="%(prog)s [options] COMMAND [ARG ...]\n"
                                     "       %(prog)s [options] FILE.hsaco KERNEL [ARG ...]",
                                     epilog="Each ARG of a kernel is one of i32:N i64:N f32:X f64:X in:FILE out:BYTES:FILE "
                                     "inout:FILE:OUTFILE bytes:HEX. Options stand before what is run.")
    parser.add_argument("--target", metavar="GPU", help="of a COMMAND: gfx1201, or several with commas (RDNA_EMULATE)")
    parser.add_argument("--check", action="store_true", help="look for wrong accesses, races, unwritten values, missing waits")
    parser.add_argument("--counters", action="store_true", help="print what was executed: counts, not times")
    parser.add_argument("--break", dest="breaks", metavar="KERNEL[:LINE]", action="append", default=[],
                        help="stop there with a prompt, or in --gdb's")
    parser.add_argument("--gdb", type=int, metavar="PORT", help="the first kernel waits for a GDB on this machine (0: any port)")
    parser.add_argument("--trace", metavar="FILE", help="every instruction of a wave; FILE.json is for Perfetto")
    parser.add_argument("--trace-wave", metavar="X,Y,Z:W", help="of which work-group, and which of its waves (0,0,0:0)")
    parser.add_argument("--grid", type=sides, metavar="X,Y,Z", help="of a kernel: work-groups (1)")
    parser.add_argument("--block", type=sides, metavar="X,Y,Z", help="of a kernel: work-items of a group (1)")
    parser.add_argument("--lds", type=int, metavar="BYTES", help="of a kernel: LDS besides its own (0)")
    parser.add_argument("run", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run[:1] == ["--"]:
        del options.run[0]
    if not options.run:
        parser.error("what is to be run?")
    if options.trace_wave and not options.trace and "RDNA_EMULATE_TRACE" not in os.environ:
        parser.error("--trace-wave says which wave --trace FILE writes, and there is no --trace")
    if holds_code(options.run[0]):
        if options.target:
            parser.error(f"--target is of a program; {options.run[0]} itself says for which GPU it is")
    elif options.grid or options.block or options.lds is not None:
        parser.error("--grid, --block and --lds are of a kernel in a file; what is to be run is a program")
    return options


def settings(options):
    """What the emulator is asked for by its environment."""
    wanted = {"RDNA_EMULATE_BREAK": ",".join(options.breaks), "RDNA_EMULATE_TRACE": options.trace,
              "RDNA_EMULATE_TRACE_WAVE": options.trace_wave,
              "RDNA_EMULATE_GDB": None if options.gdb is None else str(options.gdb),
              "RDNA_EMULATE_COUNTERS": "-" if options.counters else None}
    return {name: value for name, value in wanted.items() if value}


def run_kernel(options):
    if len(options.run) < 2:
        print(f"rdna-emulate: which kernel of {options.run[0]}?", file=sys.stderr)
        return 2
    library = rdna_emulator.load()
    words = [w.encode() for w in options.run]
    message = ctypes.create_string_buffer(1200)
    flags = (CHECK if options.check else 0) | (COUNTERS if options.counters else 0)
    values = (ctypes.c_char_p * len(words))(*words[2:], None, None)
    if library.emu_run_file(words[0], words[1], options.grid or sides("1"), options.block or sides("1"), options.lds or 0, flags, len(words) - 2, values,
                            message, ctypes.c_size_t(len(message))) == 0:
        return 0
    print(f"rdna-emulate: {message.value.decode(errors='replace')}", file=sys.stderr)
    return 1


def main(arguments=None):
    options = parse(arguments)
    os.environ.update(settings(options))
    if options.trace and os.path.isfile(options.trace):
        os.unlink(options.trace)  # an earlier run's; the emulator overwrites none
    if holds_code(options.run[0]):
        return run_kernel(options)
    program = shutil.which(options.run[0])
    if not program:
        print(f"rdna-emulate: {options.run[0]} is no program, and no code object", file=sys.stderr)
        return 2
    environment = rdna_emulator.environment(options.target, options.check)
    if not environment.get("RDNA_EMULATE"):
        print("rdna-emulate: which GPU? --target gfx1201, for example, or RDNA_EMULATE", file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execve(program, options.run, environment)


if __name__ == "__main__":
    sys.exit(main())
