"""The debugger and the trace, through the HIP library in a process of its own: stops, registers, LDS, memory and steps as
GDB's remote protocol has them, addresses held against llvm-objdump and values against the kernels' arithmetic; the prompt;
both forms of traces; a stock GDB where there is one. Usage: debug_test.py librdna_emulator.so
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from emulator import Checks, compile_hip, tool
from gdb_client import Client, Gone, stop_of

SOURCE = """
#define KERNEL extern "C" __attribute__((global)) void
#define TX __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
KERNEL turned(int *out, int by) {
  __attribute__((shared)) static int tile[128];
  int t = TX;
  tile[t] = t * 3 + by;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  out[GROUP * 128 + t] = tile[127 - t];
}
KERNEL line(int *out, int by) { out[TX] = (int)TX * 7 + by; }
KERNEL endless(int *out, int by) { while (__hip_atomic_load(out, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != by) ; }
KERNEL wild(int *out, int by) { out[(long long)by << 40] = 1; }
"""
STORE = 12  # the line of turned's last statement
THREADS = 128
CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "debug_program.py")
# of the target: lanes in a wave, and flags that make it so
TARGETS = {"gfx1100": (32, ()), "gfx1030": (64, ("-mwavefrontsize64",)), "gfx1201": (32, ()), "gfx942": (64, ())}


class Program:
    """The child, with the emulator's environment."""

    def __init__(self, library, target, path, *launches, says="", **environment):
        more = dict(os.environ, RDNA_EMULATE=target, RDNA_EMULATE_EXITCODE="0", **environment)
        self.process = subprocess.Popen([sys.executable, CHILD, library, path, *launches], env=more, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.says, self.said = says, ""
        if "RDNA_EMULATE_GDB" in environment:
            self.said = self.process.stderr.readline()
            self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.said)[1])

    def connect(self):
        client = Client(self.port)
        client.silence()
        assert "swbreak+" in client.ask("qSupported:swbreak+")
        client.describe()
        return client

    def end(self):
        """The results of the launches, and all that was said."""
        out, said = self.process.communicate(self.says, timeout=30)
        return json.loads(out), self.said + said


def addresses(path, kernel):
    """The kernel's instructions as LLVM has them: address, size and text."""
    text = subprocess.run([tool("llvm-objdump"), "-d", f"--disassemble-symbols={kernel}", path], check=True,
                          capture_output=True, text=True).stdout
    rows = re.findall(r"^\s+(\S.*?)\s*// ([0-9A-F]+): ((?:[0-9A-F]{8} ?)+)", text, re.M)
    return [(int(a, 16), 4 * len(words.split()), t) for t, a, words in rows]


def turned(group, by):
    return [(THREADS - 1 - t) * 3 + by for t in range(THREADS)]


def test_stops(library, target, path, checks):
    """Breakpoints, steps, registers, LDS and memory of the waves of a group."""
    lanes = TARGETS[target][0]
    rows = addresses(path, "turned")
    sizes = {a: size for a, size, _ in rows}
    program = Program(library, target, path, "turned:2:5", "turned:1:9", RDNA_EMULATE_GDB="0")
    gdb = program.connect()
    signal_, first = stop_of(gdb.ask("?"))
    entry = gdb.number("rip")
    loaded = entry - rows[0][0]  # where the object's address 0 lies
    checks.expect("entry", signal_ == 5 and loaded % 4096 == 0, (signal_, hex(entry)))
    checks.expect("threads", len(gdb.threads()) == THREADS // lanes, gdb.threads())
    checks.expect("name", "kernel turned, launch 1, work-group (0, 0, 0), wave 0" in gdb.name(first), gdb.name(first))
    checks.expect("lanes", gdb.registers["v0"][1] == 4 * lanes and gdb.number("exec") == (1 << lanes) - 1)
    checks.expect("ids", [x & 1023 for x in gdb.lanes("v0")] == list(range(lanes)), gdb.lanes("v0"))
    checks.expect("no such register", gdb.read("v255") is None and gdb.ask("p3fff") == "E01")
    checks.expect("code", gdb.memory(entry, 4) == subprocess_words(path, rows[0][0]), gdb.memory(entry, 4))

    # steps go from instruction to instruction as LLVM has them, those of one wave alone
    second = [t for t in gdb.threads() if t != first][0]
    at = {}
    for thread in (first, second, first, first, second):
        before = at.get(thread, rows[0][0])
        checks.expect("step", stop_of(gdb.ask(f"vCont;s:{thread:x};c")) == (5, thread))
        at[thread] = gdb.number("rip") - loaded
        checks.expect("step", at[thread] == before + sizes[before], (hex(before), hex(at[thread])))
    for thread in at:
        gdb.ask(f"Hg{thread:x}")
        checks.expect("alone", gdb.number("rip") - loaded == at[thread])

    # by name, where code of the line begins, which compilers mix with that of others
    checks.expect("break", "Waves stop" in gdb.monitor(f"break turned:{STORE}"))
    signal_, thread = stop_of(gdb.ask("vCont;c"))
    where = gdb.monitor("where")
    checks.expect("line", re.search(r"k\.hip:%d\)" % STORE, where) and "launch 1" in where, where)
    checks.expect("source", "=>   12    out[GROUP * 128 + t] = tile[127 - t];" in gdb.monitor("source"), gdb.monitor("source"))
    gdb.monitor("forget")

    # the first wave past its barrier: all of the tile is there
    load = [a for a, _, text in rows if text.startswith(("ds_load", "ds_read"))][0]
    gdb.ask(f"Z0,{loaded + load:x},4")
    reply = gdb.ask("vCont;c")
    checks.expect("load", "swbreak" in reply and gdb.number("rip") == loaded + load, reply)
    gdb.ask(f"z0,{loaded + load:x},4")
    window = 1 << 48
    tile = [int.from_bytes(gdb.memory(window + 4 * i, 4), "little") for i in range(0, THREADS, 17)]
    checks.expect("LDS", tile == [3 * i + 5 for i in range(0, THREADS, 17)], tile)
    checks.expect("beyond LDS", gdb.ask(f"m{window + 512:x},4") == "E01" and gdb.ask("m0,4") == "E01")
    checks.expect("lds", "00000005 00000008 0000000b" in gdb.monitor("lds 0 16"), gdb.monitor("lds 0 16"))
    checks.expect("lanes", len(gdb.monitor("lanes v0").splitlines()) == lanes)
    checks.expect("waves", len(gdb.monitor("waves").splitlines()) == THREADS // lanes, gdb.monitor("waves"))

    # a breakpoint by address on its last store, which the last wave of the second launch reaches last; it stores a zero
    store, _, text = [r for r in rows if re.match(r"(global|flat)_store", r[2])][-1]
    checks.expect("set", gdb.ask(f"Z0,{loaded + store:x},4") == "OK" and gdb.ask("Z5,0,4") == "")
    for _ in range(3 * THREADS // lanes):
        reply = gdb.ask("vCont;c")
        checks.expect("hit", stop_of(reply)[0] == 5 and "swbreak" in reply and gdb.number("rip") == loaded + store, reply)
    data = re.search(r"v\d+, (v\d+)|, (v\d+),", text)
    register = data[1] or data[2]
    values = gdb.lanes(register)
    wave = int(re.search(r"wave (\d+)", gdb.monitor("where"))[1])
    wanted = turned(0, 9)[wave * lanes:(wave + 1) * lanes]
    checks.expect("data", list(values) == wanted, (text, values))
    gdb.write(register, bytes(4 * lanes))
    checks.expect("written", gdb.lanes(register) == (0,) * lanes)
    checks.expect("removed", gdb.ask(f"z0,{loaded + store:x},4") == "OK")
    checks.expect("exit", gdb.ask("vCont;c") == "W00")
    gdb.close()
    results, said = program.end()
    changed = turned(0, 9)
    changed[wave * lanes:(wave + 1) * lanes] = [0] * lanes
    checks.expect("first launch", results[0] == [0, turned(0, 5) * 2 + [0] * 256], said)
    checks.expect("second launch", results[1] == [0, changed + [0] * 384], results[1])


def subprocess_words(path, address):
    """The object's bytes at an address, by LLVM."""
    text = subprocess.run([tool("llvm-objdump"), "-s", "-j", ".text", f"--start-address={address}",
                           f"--stop-address={address + 4}", path], check=True, capture_output=True, text=True).stdout
    return bytes.fromhex(re.search(r"^ [0-9a-f]+ ([0-9a-f]{8})", text, re.M)[1])


def test_reads(library, target, path, checks):
    """A read of LDS by the lane that turns the tile's element."""
    lanes = TARGETS[target][0]
    program = Program(library, target, path, "turned:1:5", RDNA_EMULATE_GDB="0")
    gdb = program.connect()
    checks.expect("set", gdb.ask(f"Z3,{(1 << 48) + 4 * 3:x},4") == "OK")
    reply = gdb.ask("vCont;c")
    checks.expect("read", "rwatch:100000000000c;" in reply and f"lane {(THREADS - 4) % lanes}, read: 0xe (14)" in gdb.console,
                  (reply, gdb.console))
    checks.expect("wave", f"wave {(THREADS - 4) // lanes}," in gdb.monitor("where"))
    checks.expect("detach", gdb.ask("D") == "OK")
    gdb.close()
    checks.expect("result", program.end()[0][0][0] == 0)


def test_ends(library, target, path, checks):
    """Interrupts, faults, kills, clients that go, and what is no request."""
    program = Program(library, target, path, "endless:1:0", "endless:1:3", "line:1:5", RDNA_EMULATE_GDB="0")
    gdb = program.connect()
    gdb.send("vCont;c")
    checks.expect("interrupt", stop_of(gdb.interrupt())[0] == 2)
    where = gdb.monitor("where")
    checks.expect("where", "kernel endless, launch 2" in where, where)
    # the kernel waits for a 3, which is written now
    argument = int(re.search(r"^(0x[0-9a-f]+) +2048 bytes", gdb.monitor("allocations"), re.M)[1], 16)
    checks.expect("write", gdb.ask(f"M{argument:x},4:03000000") == "OK" and gdb.memory(argument, 4) == b"\3\0\0\0")
    checks.expect("binary", gdb.ask(b"X%x,4:\3\0}\3}\3".replace(b"}\3", b"\0") % (argument + 8)) == "OK")
    code = gdb.number("rip")
    checks.expect("code", gdb.ask(f"M{code:x},4:00000000") == "E01")
    for bad in ("", "m", "m1", "mzz,1", "m0,ffffffffffffffffff", "P", "P3=1", "G00", "Hq1", "Tzz", "T999", "vCont;", "vCont;x",
                "vMustReplyEmpty", "qXfer:features:read:target.xml:5", "qXfer:memory-map:read::0,10", "qRcmd,1", "Z0,1",
                "Z1", "M0,1:zz", "X0,4:a", "qThreadExtraInfo,zz", "!", "Zz"):
        checks.expect(f"bad request '{bad}'", gdb.ask(bad) in ("", "E01"), bad)
    checks.expect("alive", "no command" in gdb.monitor("dance") and "no vector register" in gdb.monitor("lanes x"))
    gdb.socket.sendall(b"$g#00")  # a wrong checksum is not answered; a right one is
    checks.expect("after", len(gdb.ask("g")) == 2 * 276)
    checks.expect("detach", gdb.ask("D") == "OK")
    gdb.close()
    results, said = program.end()
    checks.expect("after detaching", [r[0] for r in results] == [0, 0, 0] and results[2][1][:4] == [5, 12, 19, 26], said)

    program = Program(library, target, path, "wild:1:1", "line:1:5", RDNA_EMULATE_GDB="0")
    gdb = program.connect()
    signal_, _ = stop_of(gdb.ask("vCont;c"))
    checks.expect("fault", signal_ == 11 and "writes 4 bytes" in gdb.console, gdb.console)
    checks.expect("where", "_store" in gdb.monitor("where"), gdb.monitor("where"))
    checks.expect("the next launch", stop_of(gdb.ask("vCont;s"))[0] == 5 and "kernel line" in gdb.monitor("where"))
    gdb.send("k")
    results, said = program.end()
    checks.expect("failed", [r[0] for r in results] == [700, 719] and "The debugger ended" in said, (results[0][0], said))
    try:
        checks.expect("gone", gdb.answer().startswith("W"))
    except Gone:
        pass
    gdb.close()

    program = Program(library, target, path, "line:1:5", RDNA_EMULATE_GDB="0")
    Client(program.port).close()  # nobody stays
    results, said = program.end()
    checks.expect("without a client", results[0][0] == 0, said)
    trace = os.path.join(os.path.dirname(path), "trace")
    for wish, sentence in (({"RDNA_EMULATE_TRACE": trace, "RDNA_EMULATE_TRACE_WAVE": "0,0:1"}, "is no wave to trace"),
                           ({"RDNA_EMULATE_TRACE": "/no/such"}, "/no/such cannot be written"),
                           ({"RDNA_EMULATE_BREAK": "line,,turned"}, "'' is no place to stop"),
                           ({"RDNA_EMULATE_BREAK": ":3"}, "':3' is no place to stop")):
        results, said = Program(library, target, path, "line:1:5", **wish).end()
        checks.expect("bad wish", results[0][0] == 100 and sentence in said, (wish, results[0][0], said))
    for port in ("70000", "x", "-1"):
        command = [sys.executable, CHILD, library, path, "line:1:5"]
        done = subprocess.run(command, env=dict(os.environ, RDNA_EMULATE=target, RDNA_EMULATE_GDB=port), text=True,
                              capture_output=True, timeout=30)
        checks.expect("bad port", json.loads(done.stdout)[0][0] == 100 and "is no port" in done.stderr, done.stderr)


def test_prompt(library, target, path, checks):
    says = "where\nscalars\nlanes v0\ncode 3\nhelp\nstep 2\nwhere\ncontinue\nforget\ncontinue\n"
    results, said = Program(library, target, path, "turned:1:5", says=says, RDNA_EMULATE_BREAK=f"line,turned:{STORE}").end()
    checks.expect("result", results[0] == [0, turned(0, 5) + [0] * 384], said)
    checks.expect("stops", said.count("\nbreakpoint: ") == 2 and said.count("\nstepped: ") == 1, said)
    checks.expect("registers", "exec 0x" in said and "KERNEL[:LINE]" in said and "step [N]" in said, said)
    results, said = Program(library, target, path, "line:1:5", "line:1:5", says="quit\n", RDNA_EMULATE_BREAK="line").end()
    checks.expect("quit", [r[0] for r in results] == [719, 719], said)
    results, said = Program(library, target, path, "line:1:5", RDNA_EMULATE_BREAK="line").end()
    checks.expect("end of input", results[0][0] == 0 and said.count("breakpoint:") == 1, said)


def test_trace(library, target, path, checks):
    lanes = TARGETS[target][0]
    rows = {a: t for a, _, t in addresses(path, "turned")}
    first = min(rows)
    with tempfile.TemporaryDirectory() as folder:
        text_path, json_path = os.path.join(folder, "t.txt"), os.path.join(folder, "t.json")
        launches = ("turned:2:5", "line:1:5")
        plain = Program(library, target, path, *launches, RDNA_EMULATE_TRACE=text_path,
                        RDNA_EMULATE_TRACE_WAVE="1,0,0:1").end()
        again = Program(library, target, path, *launches, RDNA_EMULATE_TRACE=json_path).end()
        with open(text_path) as f:
            text = f.read()
        with open(json_path) as f:
            events = json.load(f)["traceEvents"]
    checks.expect("results", plain[0] == again[0] and plain[0][0] == [0, turned(0, 5) * 2 + [0] * 256], plain[1])
    heads = re.findall(r"^launch .*", text, re.M)
    checks.expect("wave", len(heads) == 1 and "work-group (1, 0, 0), wave 1" in heads[0], heads)
    steps = re.findall(r"^ +(\d+)  \+0x([0-9a-f]+)  (\S+)[^\n]*?(?:\(\S+:(\d+)\))?\n", text, re.M)
    checks.expect("instructions", [int(s[0]) for s in steps] == list(range(len(steps))) and steps[-1][2] == "s_endpgm", text)
    start = int(steps[0][1], 16)
    for _, at, mnemonic, _ in steps:
        checks.expect("as LLVM", mnemonic == rows[int(at, 16) - start + first].split()[0], (at, mnemonic))
    checks.expect("lines", {8, STORE} <= {int(s[3]) for s in steps if s[3]}, steps)
    # what the second wave stores: (127 - t) * 3 + 5 for t from `lanes` on
    stored = "=0x%x-3*(lane-0)" % ((127 - lanes) * 3 + 5)
    store = [b for b in text.split("\n      ") if re.search(r"(global|flat)_store", b)]
    checks.expect("stored", stored in text[text.rindex("_store"):], (stored, store))
    # each scalar that is read is what was written last
    known = {}
    for kind, values in re.findall(r"^ +([<>]) (.*)$", text, re.M):
        for name, value in re.findall(r"\b((?:s\d+|vcc_lo|exec_lo|m0))=(0x[0-9a-f]+)", values):
            checks.expect("read", kind == ">" or known.get(name, value) == value, (name, value, known.get(name)))
            known[name] = value
    # of the second form: two waves, an instruction each microsecond, and lines around them
    code = [e for e in events if e["ph"] == "X" and e["tid"] == 2]
    for launch in (1, 2):
        mine = [e for e in code if e["pid"] == launch]
        checks.expect("events", [e["ts"] for e in mine] == list(range(len(mine))) and mine[-1]["name"] == "s_endpgm", launch)
        spans = [e for e in events if e["ph"] == "X" and e["tid"] == 1 and e["pid"] == launch]
        checks.expect("spans", all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(spans, spans[1:])) and spans, spans)
        checks.expect("spans", {s["name"] for s in spans} == {e["args"]["line"] for e in mine if "line" in e["args"]}, spans)
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    checks.expect("names", "kernel turned" in names[0] and "kernel line" in names[1], names)


def test_processes(library, target, path, checks):
    """A fork's child leaves the client and the trace to its parent; a second process overwrites no trace."""
    program = Program(library, target, path, "line:1:5", "fork", "line:1:6", RDNA_EMULATE_GDB="0")
    gdb = program.connect()
    gdb.monitor("break line")
    checks.expect("first", stop_of(gdb.ask("vCont;c"))[0] == 5 and "launch 1" in gdb.monitor("where"))
    for _ in range(THREADS // TARGETS[target][0] - 1):
        reply = gdb.ask("vCont;c")
    reply = gdb.ask("vCont;c")
    checks.expect("after the fork", reply.startswith("T05") and "launch 2" in gdb.monitor("where"), reply)
    gdb.monitor("forget")
    checks.expect("exit", gdb.ask("vCont;c") == "W00")
    gdb.close()
    results, said = program.end()
    checks.expect("results", [r[0] for r in results] == [0, 0], said)
    with tempfile.TemporaryDirectory() as folder:
        text_path, json_path = os.path.join(folder, "t.txt"), os.path.join(folder, "t.json")
        for trace in (text_path, json_path):
            Program(library, target, path, "line:1:5", "fork", "wild:1:1", RDNA_EMULATE_TRACE=trace).end()
        with open(text_path) as f:
            text = f.read()
        with open(json_path) as f:
            events = json.load(f)["traceEvents"]
        checks.expect("once", re.findall("^launch (.)", text, re.M) == ["1", "2"], text)
        sentences = [e["name"] for e in events if e["ph"] == "i"]
        checks.expect("failure", len(sentences) == 1 and "writes 4 bytes" in sentences[0], sentences)
        results, said = Program(library, target, path, "line:1:5", RDNA_EMULATE_TRACE=text_path).end()
        with open(text_path) as f:
            checks.expect("kept", results[0][0] == 100 and "is there already" in said and f.read() == text, said)
        for _ in range(2):
            results, said = Program(library, target, path, "line:1:5", RDNA_EMULATE_TRACE=os.path.join(folder, "%p.txt")).end()
            checks.expect("numbers", results[0][0] == 0 and said == "", said)
        names = [n for n in os.listdir(folder) if re.fullmatch(r"\d+\.txt", n)]
        checks.expect("numbers", len(names) == 2, names)
        _, said = Program(library, target, path, "line:1:5", RDNA_EMULATE_TRACE=os.path.join(folder, "no"),
                          RDNA_EMULATE_TRACE_WAVE="7,0,0:0", RDNA_EMULATE_BREAK="lime,turned:3").end()
    for sentence in ("no launch had wave 0 of work-group (7, 0, 0)", "came to the breakpoint lime\n", "breakpoint turned:3\n"):
        checks.expect("unmet", sentence in said, said)


def test_stock_gdb(library, target, path, checks):
    """What Debian's gdb makes of it."""
    lanes = TARGETS[target][0]
    program = Program(library, target, path, "line:1:5", RDNA_EMULATE_GDB="0")
    commands = [f"target remote 127.0.0.1:{program.port}", "info threads", "p/x $exec", "p $v0.u32[3] & 1023", "stepi",
                "monitor where", "p $_siginfo", "monitor break line:14", "p $pc - $pc", "detach"]
    done = subprocess.run(["gdb", "-nx", "-batch", *[x for c in commands for x in ("-ex", c)]], capture_output=True,
                          text=True, timeout=60)
    text = done.stdout + done.stderr
    results, said = program.end()
    checks.expect("threads", len(re.findall(r"Thread \d+ \(kernel line, launch 1", text)) == THREADS // lanes, text)
    checks.expect("registers", "$1 = 0x" + "f" * (lanes // 4) in text and "$2 = 3" in text, text)
    checks.expect("step", re.search(r"=> 0x\S+ <\+0x", text), text)
    checks.expect("detached", results[0][0] == 0 and results[0][1][:3] == [5, 12, 19], said)


def main():
    failures, checked = [], 0
    tests = {t: [test_stops, test_reads, test_trace] for t in TARGETS}
    tests["gfx1100"] += [test_ends, test_prompt, test_processes]
    if shutil.which("gdb"):
        tests["gfx1100"].append(test_stock_gdb)
        tests["gfx942"].append(test_stock_gdb)
    else:
        print("a stock gdb is not tried: none is installed")
    for target, run in tests.items():
        path = compile_hip(SOURCE, target, ("-O1", "-gline-tables-only", *TARGETS[target][1]))
        for test in run:
            checks = Checks(f"{target} {test.__name__}")
            test(sys.argv[1], target, path, checks)
            failures += checks.failures
            checked += checks.checked
    print("\n".join(failures) + f"\n{checked} checks, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
