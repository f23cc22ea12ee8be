"""Variables, frames and calls of the debugger, on kernels that clang compiles with -g at -O0, -O1 and -O2: what is where and
what is optimized out beside llvm-dwarfdump, values beside the kernels' arithmetic, and the text of values beside a stock
GDB that prints the same structures of a host's program. Usage: debug_names_test.py librdna_emulator.so
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from debug_test import TARGETS, Program
from emulator import Checks, compile_hip, tool
from gdb_client import stop_of

SOURCE = """
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device))
typedef float float4_ __attribute__((ext_vector_type(4)));
struct pair { int first; float second; short small[3]; };
typedef struct pair pair_t;
enum kind { RED, GREEN = 5 };
DEVICE int counter = 70;
DEVICE __attribute__((noinline)) int deep(int x, int y) {
  int z = x * y + 3;
  return z ^ x;
}
DEVICE inline int shallow(int x) {
  int w = x + 11;
  return deep(w, x) + w;
}
KERNEL vars(int *out, int by) {
  __attribute__((shared)) static int tile[128];
  int t = __builtin_amdgcn_workitem_id_x();
  pair_t p = {t * 2, t * 0.5f, {1, 2, (short)t}};
  float4_ v = {1.f, 2.f, (float)t, 4.f};
  int *q = &p.first;
  enum kind k = t & 1 ? GREEN : RED;
  long long big = (long long)t << 33;
  bool odd = t & 1;
  tile[t] = t * 3 + by;
  int r = shallow(t + by);
  out[t] = r + *q + tile[t] + (int)v.z + (int)k + (int)(big >> 33) + odd;
}
"""
SHALLOW_LINE, DEEP_LINE, CALL_LINE, LAST_LINE = 15, 10, 27, 28
BY = 5


def expected(t):
    """Each variable's text in lane t, by name."""
    x = t + BY
    w = x + 11
    z = w * x + 3
    return {"t": str(t), "p": f"{{first = {2 * t}, second = {0.5 * t:.9g}, small = {{1, 2, {t}}}}}",
            "v": f"{{1, 2, {t}, 4}}", "k": "GREEN" if t & 1 else "RED", "big": str(t << 33), "odd": "true" if t & 1 else "false",
            "r": str((z ^ w) + w), "by": str(BY), "x": str(x), "w": str(w), "z": str(z)}


def dwarf(path):
    """Of the object, the places of its entries by the functions and the inlined functions in which they are: dictionaries
    of ranges of addresses, or None for everywhere."""
    text = subprocess.run([tool("llvm-dwarfdump"), "--debug-info", path], check=True, capture_output=True, text=True).stdout
    entries = re.findall(r"^0x([0-9a-f]+):( +)(DW_TAG_\w+)\n((?:  .*\n)*)", text, re.M)
    found, stack = {}, []
    for _, indent, tag, body in entries:
        depth = len(indent)
        stack = [s for s in stack if s[0] < depth]
        name = re.search(r'DW_AT_(?:name|abstract_origin)\s+\((?:0x\w+ )?"(?:_Z\d+)?(\w+?)(?:i+)?"\)', body)
        name = name[1] if name else ""
        if tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine"):
            stack.append((depth, name))
        elif tag in ("DW_TAG_variable", "DW_TAG_formal_parameter") and stack:
            place = re.search(r"DW_AT_location\s+\((.*?)\)\n", body, re.S)
            ranges = re.findall(r"\[0x([0-9a-f]+), 0x([0-9a-f]+)\)", place[1]) if place else []
            if place and not ranges:
                ranges = [("0", "ffffffff")]
            if ranges or (stack[-1][1], name) not in found:
                found[stack[-1][1], name] = [(int(a, 16), int(b, 16)) for a, b in ranges]
    return found


def address_of(path, symbol):
    text = subprocess.run([tool("llvm-nm"), path], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"^([0-9a-f]+) . %s$" % symbol, text, re.M)[1], 16)


def behind_prologue(path, line):
    """The first address of the line's code behind its function's prologue."""
    text = subprocess.run([tool("llvm-dwarfdump"), "--debug-line", path], check=True, capture_output=True, text=True).stdout
    return min(int(a, 16) for a in re.findall(r"^0x([0-9a-f]+)\s+%d\s.*prologue_end" % line, text, re.M))


def variables(text):
    return dict(re.findall(r"^(\w+) = (.*)$", text, re.M))


def start(library, target, path):
    program = Program(library, target, path, "vars:1:%d" % BY, RDNA_EMULATE_GDB="0")
    gdb = program.connect()
    gdb.ask("?")
    return program, gdb, gdb.number("rip") - address_of(path, "vars")


def test_plain(library, target, path, checks):
    """Without optimization all variables of all lanes are there."""
    lanes = TARGETS[target][0]
    program, gdb, loaded = start(library, target, path)
    gdb.monitor(f"break vars:{LAST_LINE}")
    checks.expect("stop", stop_of(gdb.ask("vCont;c"))[0] == 5)
    gdb.monitor("forget")
    for t in (0, 3, lanes - 1):
        checks.expect("lane", f"Lane {t}, which is on." in gdb.monitor(f"lane {t}"))
        got, args, want = variables(gdb.monitor("locals")), variables(gdb.monitor("info args")), expected(t)
        for name in ("t", "p", "v", "k", "big", "odd", "r"):
            checks.expect(f"{name} of {t}", got.get(name) == want[name], got)
        checks.expect("args", args["by"] == str(BY) and re.match("0x[0-9a-f]+$", args["out"]), args)
        for expression, value in (("p.small[2]", t), ("*q", 2 * t), ("q[0]", 2 * t), ("(&p)->first", 2 * t), ("tile[7]", 26),
                                  ("tile[p.small[2]]", 3 * t + BY), ("counter", 70), ("v[2]", t), ("out[1]", 0),
                                  ("*&t", t), ("0x10", 16)):
            text = gdb.monitor("print " + expression)
            checks.expect(expression, text == f"{expression} = {value}\n", text)
        checks.expect("pointer", re.match(r"q = \(int \*\) 0x[0-9a-f]+$", gdb.monitor("p q")), gdb.monitor("p q"))
        checks.expect("address", gdb.monitor("p &p").startswith("&p = (pair_t *) 0x"), gdb.monitor("p &p"))
    rows = gdb.monitor("table p.first").splitlines()
    checks.expect("table", [r.split() for r in rows] == [[str(t), "on", str(2 * t)] for t in range(lanes)], rows)
    rows = gdb.monitor("table").splitlines()
    head = rows[0].split()
    checks.expect("head", head[:3] == ["lane", "out", "by"] and len(rows) == lanes + 1, rows)
    for t, row in enumerate(rows[1:]):
        cells = re.split(r"  +", row.replace(" on ", "  on ", 1).strip())
        named = dict(zip(head[1:], cells[2:]))
        for name in ("t", "k", "big", "odd", "r"):
            checks.expect("cell", named[name] == expected(t)[name], (name, row))
    for bad, sentence in (("nothing", "no such variable"), ("p.third", "no such member"), ("t[1]", "no elements"), ("*t", "no pointer"),
                          ("tile[", "no expression"), ("tile[1", "not closed"), ("", "EXPRESSION"), ("t t", "more stands"),
                          ("(" * 60 + "t", "too deep"), ("tile[v]", "no whole number"), ("&1", "not lie in memory")):
        text = gdb.monitor("print " + bad)
        checks.expect("bad " + bad, sentence in text, text)
    checks.expect("wild", "Cannot access memory at address" in gdb.monitor("p out[1000000000]"))
    checks.expect("bad words", "lane 0 to lane" in gdb.monitor("lane 64") and "no such frame" in gdb.monitor("frame 7") and
                  "info locals" in gdb.monitor("info") and "This is the kernel" in gdb.monitor("up"))
    gdb.ask("D")
    gdb.close()
    program.end()


def test_calls(library, target, path, level, checks):
    """In the innermost function: frames with their arguments and lines, and variables of each."""
    lanes = TARGETS[target][0]
    program, gdb, loaded = start(library, target, path)
    if level:
        gdb.monitor("break deep")
    else:
        gdb.ask(f"Z0,{loaded + behind_prologue(path, DEEP_LINE):x},4")
    checks.expect("stop", stop_of(gdb.ask("vCont;c"))[0] == 5)
    for t in (0, 5, lanes - 1):
        gdb.monitor(f"lane {t}")
        want = expected(t)
        text = gdb.monitor("backtrace")
        frames = re.findall(r"^#(\d) +(0x[0-9a-f]+ in )?(\w+) \((.*)\) at (?:\S*/)?k\.hip:(\d+)$", text, re.M)
        checks.expect("frames", [f[2] for f in frames] == ["deep", "shallow", "vars"], text)
        if len(frames) != 3:
            break
        checks.expect("arguments", frames[0][3] == f"x={want['w']}, y={want['x']}" and
                      frames[1][3] in (f"x={want['x']}", "x=<optimized out>", ""), text)
        if not level:
            checks.expect("arguments", frames[1][3] == f"x={want['x']}" and frames[2][3].endswith(f"by={BY}"), text)
        checks.expect("calls", [bool(f[1]) for f in frames] == [False, True, not level], text)
        checks.expect("lines", [int(f[4]) for f in frames[1:]] == [SHALLOW_LINE, CALL_LINE], text)
        gdb.monitor("up")
        got = variables(gdb.monitor("locals"))
        checks.expect("w", got.get("w", "<optimized out>") in (want["w"], "<optimized out>")[:1 if not level else 2], got)
        gdb.monitor("frame 2")
        if not level:
            checks.expect("kernel's", variables(gdb.monitor("locals"))["p"] == want["p"])
            checks.expect("LDS", gdb.monitor("p tile[2]") == f"tile[2] = {6 + BY}\n", gdb.monitor("p tile[2]"))
        checks.expect("down", gdb.monitor("down").startswith("#1"))
        gdb.monitor("frame 0")
    gdb.monitor("forget")
    gdb.ask(f"z0,{loaded + behind_prologue(path, DEEP_LINE):x},4")
    # out of the function: one frame fewer with each return
    depths = []
    for _ in range(200):
        gdb.ask("vCont;s")
        depth = len(re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(?:deep|shallow|vars)", gdb.monitor("bt"), re.M))
        if not depths or depths[-1] != depth:
            depths.append(depth)
        if depth == 1:
            break
    checks.expect("returns", depths[0] == 3 and depths[-1] in (1, 2) and depths == sorted(depths, reverse=True)[:len(depths)] or level, depths)
    gdb.ask("D")
    gdb.close()
    program.end()


def test_optimized(library, target, path, checks):
    """At each instruction of a wave: a variable has its value where llvm-dwarfdump knows a place, and is optimized out where
    it knows none."""
    places = dwarf(path)
    program, gdb, loaded = start(library, target, path)
    known = set()
    gdb.monitor("lane 3")
    for _ in range(400):
        gdb.monitor("lane 3")
        pc = gdb.number("rip") - loaded
        text = gdb.monitor("bt")
        frame = re.match(r"#0 +(?:0x[0-9a-f]+ in )?(\w+) ", text)
        if not frame:
            break
        for name, value in {**variables(gdb.monitor("args")), **variables(gdb.monitor("locals"))}.items():
            if name in ("out", "q", "tile"):
                continue
            ranges = places.get((frame[1], name), [])
            there = any(a <= pc < b for a, b in ranges)
            want = expected(3)["w" if (frame[1], name) == ("deep", "x") else "x" if (frame[1], name) == ("deep", "y") else name]
            if there and pc in [a for a, _ in ranges]:  # clang begins some ranges before the move that fills the register
                continue
            if there and name == "p":  # what clang keeps of it
                want = "".join(w if g == w else "<optimized out>" for g, w in zip(re.findall(r"<optimized out>|[\w.-]+|\W", value),
                                                                                 re.findall(r"[\w.-]+|\W", want)))
            checks.expect(f"{frame[1]}'s {name} at {pc:#x}", value == (want if there else "<optimized out>"), (value, ranges))
            known |= {(frame[1], name)} if there else set()
        if gdb.ask("vCont;s").startswith("W") or "s_endpgm" in gdb.monitor("where"):
            break
    checks.expect("enough is known", {("deep", "x"), ("deep", "y"), ("vars", "r")} <= known, known)
    gdb.ask("D")
    gdb.close()
    program.end()


def test_watchpoints(library, target, path, checks):
    """Changes and reads of memory, LDS and scratch stop behind their instruction and name wave, lane and values."""
    lanes = TARGETS[target][0]
    program, gdb, loaded = start(library, target, path)
    gdb.monitor(f"break vars:{CALL_LINE}")
    signal_, first = stop_of(gdb.ask("vCont;c"))
    gdb.monitor("forget")
    # a lane's own variable, which the statement assigns
    gdb.monitor("lane 3")
    checks.expect("set", "Watchpoint 1: r, 4 bytes at 0x2" in gdb.monitor("watch r"), gdb.console)
    old = variables(gdb.monitor("print r"))["r"]
    gdb.console = ""
    checks.expect("stop", stop_of(gdb.ask("vCont;c")) == (5, first))
    checks.expect("values", f"watchpoint 1 on r, lane 3, old value {int(old) & 0xffffffff:#x} ({old}), new value " in gdb.console and
                  f"({expected(3)['r']})" in gdb.console, gdb.console)
    gdb.monitor("lane 3")
    checks.expect("assigned", gdb.monitor("print r") == f"r = {expected(3)['r']}\n", gdb.monitor("print r"))
    checks.expect("removed", gdb.monitor("unwatch 1") == "" and "no watchpoint 1" in gdb.monitor("unwatch 1"))
    # a read of LDS: the last statement reads tile[t], of the first wave lane 7
    checks.expect("rwatch", "Watchpoint 2" in gdb.monitor("rwatch tile[7]"), gdb.console)
    gdb.console = ""
    checks.expect("stop", stop_of(gdb.ask("vCont;c"))[0] == 5)
    checks.expect("read", "on tile[7], lane 7, read: 0x1a (26)" in gdb.console, gdb.console)
    gdb.monitor("unwatch")
    # global memory by a GDB's packets: each lane writes its own element once
    address = int(gdb.monitor("print out").split()[-1], 16)
    for number, (kind, word) in enumerate(((2, "watch"), (4, "awatch"))):
        element = 5 if not number else lanes + 6  # the second wave's
        want = int(expected(element)["r"]) + 2 * element + 3 * element + BY + element + (5 if element & 1 else 0) + element + (element & 1)
        checks.expect("insert", gdb.ask(f"Z{kind},{address + 4 * element:x},4") == "OK" and gdb.ask(f"Z{kind},{address + 4 * element:x},4") == "OK")
        gdb.console = ""
        reply = gdb.ask("vCont;c")
        checks.expect("named", reply.startswith("T05") and f"{word}:{address + 4 * element:x};" in reply, reply)
        checks.expect("written", f"lane {element % lanes}, old value 0x0 (0), new value {want & 0xffffffff:#x} ({want})" in gdb.console,
                      gdb.console)
        checks.expect("wave", f"wave {number}," in gdb.monitor("where"), gdb.monitor("where"))
        checks.expect("there", gdb.memory(address + 4 * element, 4) == want.to_bytes(4, "little", signed=True))
        checks.expect("remove", gdb.ask(f"z{kind},{address + 4 * element:x},4") == "OK")
    for bad in ("Z2,0,0", "Z3,1000,11", "Z4,1000,ffffffffffff", "Z2", "Z3,5"):
        checks.expect("bad " + bad, gdb.ask(bad) == "E01", bad)
    for bad, sentence in (("nothing", "no such variable"), ("5", "not lie in memory"), ("", "missing"), ("tile", "the most")):
        checks.expect("bad watch", sentence in gdb.monitor("watch " + bad), gdb.monitor("watch " + bad))
    checks.expect("exit", gdb.ask("vCont;c") == "W00")
    gdb.close()
    results, said = program.end()
    checks.expect("results", results[0][0] == 0, said)


def test_stock_gdb(library, target, path, checks):
    program = Program(library, target, path, "vars:1:%d" % BY, RDNA_EMULATE_GDB="0")
    commands = [f"target remote 127.0.0.1:{program.port}", "monitor break deep", "continue", "monitor backtrace", "monitor up",
                "monitor lane 3", "monitor locals", "monitor frame 2", "monitor print p.small[2]", "monitor forget",
                "watch *(int *)0x1000000000014", "detach"]
    done = subprocess.run(["gdb", "-nx", "-batch", *[x for c in commands for x in ("-ex", c)]], capture_output=True, text=True,
                          timeout=60)
    text = done.stdout + done.stderr
    program.end()
    checks.expect("variables", f"w = {expected(3)['w']}\n" in text and "p.small[2] = 3\n" in text, text)
    checks.expect("frames", len(re.findall(r"^#\d ", text, re.M)) == 5, text)
    checks.expect("watch", "Hardware watchpoint 1: *(int *)0x1000000000014" in text, text)


SHAPES = """
namespace space { struct base { char c; }; struct derived : base { double d; char text[6]; }; }
template <class T> struct box { T value; unsigned bits : 3; int minus : 4; union { int i; float f; }; };
enum shape { ROUND = 1, FLAT = 2 };
struct empty {};
#define SHAPES \\
  box<int> b{7, 5, -2, {3}}; \\
  space::derived d; d.c = 'x'; d.d = 0.1; for (int n = 0; n < 6; n++) d.text[n] = "hi\\n\\"\\200"[n]; \\
  double wide = 1e300; float narrow = -0.1f, inf = 1.0f / zero, zeros[40] = {0}; \\
  long long large = -(1ll << 60); unsigned long long full = ~0ull; short few[3] = {-1, 0, 1}; \\
  char letters[70] = "some"; unsigned char byte = 200; signed char minus = -3; bool yes = true; \\
  int grid[2][3] = {{1, 2, 3}, {4, 5, 6}}; shape s = FLAT, strange = (shape)9; empty nothing; \\
  box<short> boxes[2] = {{1, 1, 1, {1}}, {2, 2, 2, {2}}}; int many[300]; for (int n = 0; n < 300; n++) many[n] = n / 20 % 3;
"""
NAMES = ("b d wide narrow inf zeros large full few letters byte minus yes grid s strange nothing boxes many b.bits b.minus d.text[1] "
         "grid[1] grid[1][2] boxes[1].value many[299] d.c").split()


def test_text(library, target, checks):
    """What GDB prints of the host's copy of the same variables."""
    kernel = SHAPES + ('extern "C" __attribute__((global)) void vars(int *out, int by) {\n  float zero = 0; SHAPES\n'
                       "  out[__builtin_amdgcn_workitem_id_x()] = b.value + by + many[by] + letters[by] + zeros[by] + nothing_of(&nothing);\n}\n")
    kernel = kernel.replace("extern", "__attribute__((device)) int nothing_of(empty *) { return 0; }\nextern", 1)
    path = compile_hip(kernel, target, ("-O0", "-g"))
    line = kernel[:kernel.index("  out[")].count("\n") + 1
    host = SHAPES + "int main() {\n  float zero = 0; SHAPES\n  return b.value;\n}\n"
    host_line = host[:host.index("  return")].count("\n") + 1
    with tempfile.TemporaryDirectory() as folder:
        text, binary = os.path.join(folder, "host.cpp"), os.path.join(folder, "host")
        with open(text, "w") as f:
            f.write(host)
        subprocess.run([tool("clang++"), "-std=c++17", "-O0", "-g", "-w", text, "-o", binary], check=True)
        commands = [f"break host.cpp:{host_line}", "run", *["print " + n for n in NAMES]]
        done = subprocess.run(["gdb", "-nx", "-batch", *[x for c in commands for x in ("-ex", c)], binary], capture_output=True,
                              text=True, timeout=60)
    wanted = re.findall(r"^\$\d+ = (.*)$", done.stdout, re.M)
    checks.expect("gdb", len(wanted) == len(NAMES), done.stdout + done.stderr)
    program = Program(library, target, path, "vars:1:0", RDNA_EMULATE_GDB="0")
    gdb = program.connect()
    gdb.monitor(f"break vars:{line}")
    gdb.ask("vCont;c")
    for name, want in zip(NAMES, wanted):
        got = gdb.monitor("print " + name)
        checks.expect(name, got == f"{name} = {want}\n", (got, want))
    gdb.ask("D")
    gdb.close()
    program.end()


def main():
    failures, checked = [], 0

    def run(name, test, *arguments):
        nonlocal failures, checked
        checks = Checks(name)
        test(sys.argv[1], *arguments, checks)
        failures += checks.failures
        checked += checks.checked

    for target, (_, flags) in TARGETS.items():
        for level in (0, 1, 2):
            path = compile_hip(SOURCE, target, (f"-O{level}", "-g", *flags))
            if level == 0:
                run(f"{target} variables", test_plain, target, path)
                run(f"{target} watchpoints", test_watchpoints, target, path)
            else:
                run(f"{target} -O{level} variables", test_optimized, target, path)
            run(f"{target} -O{level} calls", test_calls, target, path, level)
    path = compile_hip(SOURCE, "gfx1100", ("-O0", "-gdwarf-4"))
    run("DWARF 4 variables", test_plain, "gfx1100", path)
    run("DWARF 4 calls", test_calls, "gfx1100", path, 0)
    path = compile_hip(SOURCE, "gfx1100", ("-O2", "-gdwarf-4"))
    run("DWARF 4 -O2 variables", test_optimized, "gfx1100", path)
    if shutil.which("gdb"):
        run("text", test_text, "gfx1100")
        run("stock gdb", test_stock_gdb, "gfx1100", compile_hip(SOURCE, "gfx1100", ("-O0", "-g")))
    else:
        print("the text of values is not compared: no gdb is installed")
    print("\n".join(failures) + f"\n{checked} checks, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
