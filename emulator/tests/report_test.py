"""The files of RDNA_EMULATE_REPORT: JSON, SARIF and JUnit's XML, read by others' parsers and held against each other.
Usage: report_test.py librdna_emulator.so
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree as xml

from emulator import Checks, compile_hip

SOURCE = """
#define KERNEL extern "C" __attribute__((global)) void
#define TX __builtin_amdgcn_workitem_id_x()
KERNEL right(float *out) { out[TX] = 1.0f; }
KERNEL past_the_end(float *out) {
  out[TX + 1] = 2.0f;
}
KERNEL unwritten(float *out, const float *fresh) {
  if (fresh[TX] > 1.0f)
    out[TX] = 3.0f;
}
KERNEL handed_on(int *out) {
  if (TX & 31) return;
  if (TX == 0) {
    out[0] = 7;
    __hip_atomic_store(out + 1, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
  } else {
    while (!__hip_atomic_load(out + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)) {}
    out[2] = out[0] + 1;
  }
}
KERNEL trapped(float *out) { __builtin_trap(); }
"""
LINES = {"past_the_end": 6, "unwritten": 9, "handed_on": 19}  # of the text above
KINDS = {"past_the_end": "out of bounds", "unwritten": "uninitialized", "handed_on": "missing acquire", "trapped": "trap"}


def child(library, target):
    """Launches each kernel once; its findings are told when it ends."""
    hip = ctypes.CDLL(library)
    hip.emu_report_take.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(1 << 16)
    assert hip.emu_report_take(text, ctypes.c_size_t(len(text))) == 0
    module, out, fresh, function = (ctypes.c_void_p() for _ in range(4))
    with open(compile_hip(SOURCE, target, ("-O1", "-gline-tables-only")), "rb") as f:
        image = f.read()
    assert hip.hipModuleLoadData(ctypes.byref(module), image) == 0
    for buffer in (out, fresh):
        assert hip.hipMalloc(ctypes.byref(buffer), ctypes.c_size_t(128)) == 0
    for kernel in ("right", "right", "past_the_end", "unwritten", "handed_on", "trapped"):
        assert hip.hipModuleGetFunction(ctypes.byref(function), module, kernel.encode()) == 0
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(fresh))
        threads = 64 if kernel == "handed_on" else 32
        if kernel == "handed_on":
            assert hip.hipMemset(out, 0, ctypes.c_size_t(128)) in (0, 719)
        hip.hipModuleLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, arguments, None)
    # what waits for them too, in two pieces, of which the first has no room for a second sentence
    some = hip.emu_report_take(text, ctypes.c_size_t(600))
    print(text.value.decode(), end="")
    hip.emu_report_take(text, ctypes.c_size_t(len(text)))
    print(text.value.decode(), end="")
    assert 0 < some < 600 and hip.emu_report_take(text, ctypes.c_size_t(len(text))) == 0


def taker(library, target):
    """Takes reports of more launches than are kept at once, and of one more."""
    hip = ctypes.CDLL(library)
    hip.emu_report_take.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(1 << 22)

    def take(room=len(text)):
        hip.emu_report_take(text, ctypes.c_size_t(room))
        return text.value.decode().splitlines()

    assert take() == []
    module, out, function = (ctypes.c_void_p() for _ in range(3))
    with open(compile_hip(SOURCE, target, ("-O1",)), "rb") as f:
        assert hip.hipModuleLoadData(ctypes.byref(module), f.read()) == 0
    assert hip.hipMalloc(ctypes.byref(out), ctypes.c_size_t(128)) == 0
    assert hip.hipModuleGetFunction(ctypes.byref(function), module, b"past_the_end") == 0
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(out))

    def launch(times):
        for _ in range(times):
            hip.hipModuleLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)

    launch(10005)
    lines = take()
    launch(1)
    cut = take(40)
    print(json.dumps([len(lines), lines[-1], cut, take()]))


def test_many(library, target, folder, checks):
    environment = dict(os.environ, RDNA_EMULATE=target, RDNA_EMULATE_CHECK="report", RDNA_EMULATE_EXITCODE="0",
                       RDNA_EMULATE_THREADS="1")
    done = subprocess.run([sys.executable, sys.argv[0], library, target, "many"], env=environment, capture_output=True, text=True)
    checks.expect("ends", done.returncode == 0, done.stderr[-500:])
    lines, last, cut, rest = json.loads(done.stdout or "[0, 0, 0, 0]")
    checks.expect("what is not kept is told", (lines, last[:8]) == (10001, "5 more f"), (lines, last))
    checks.expect("taken ones make room, and a long one is cut", len(cut) == 1 and len(cut[0]) == 38 and rest == [], (cut, rest))


def run(library, target, path, **more):
    """The text of the file that the child left, and what it said."""
    environment = dict(os.environ, RDNA_EMULATE=target, RDNA_EMULATE_CHECK="1", RDNA_EMULATE_EXITCODE="0",
                       RDNA_EMULATE_REPORT=path, **more)
    done = subprocess.run([sys.executable, sys.argv[0], library, target], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    if not os.path.exists(path):
        return None, done.stderr
    run.taken = done.stdout.splitlines()
    with open(path) as f:
        return f.read(), done.stderr


def test_forms(library, target, folder, checks):
    text, said = run(library, target, os.path.join(folder, "a.json"))
    report = json.loads(text)
    rows = {r["kernel"]: r for r in report["reports"]}
    checks.expect("launches", report["launches"] == 6 and report["left_out"] == 0, text)
    checks.expect("kernels", {k: r["kind"] for k, r in rows.items()} == KINDS, text)
    for kernel, line in LINES.items():
        row = rows.get(kernel, {})
        checks.expect(kernel, row.get("line") == line and row.get("file", "").endswith("k.hip"), row)
        checks.expect(kernel, row.get("message", "?") in said and row["level"] == "error" and row["group"] == [0, 0, 0], row)
    checks.expect("taken", run.taken == [r["message"] for r in report["reports"]], run.taken)
    checks.expect("lane", rows["past_the_end"]["lane"] == 31, rows["past_the_end"])

    sarif = json.loads(run(library, target, os.path.join(folder, "a.sarif"))[0])
    results = sarif["runs"][0]["results"]
    checks.expect("version", sarif["version"] == "2.1.0" and sarif["runs"][0]["tool"]["driver"]["name"] == "rdna emulator")
    checks.expect("rules", {r["id"] for r in sarif["runs"][0]["tool"]["driver"]["rules"]} == set(KINDS.values()))
    checks.expect("results", len(results) == len(KINDS), results)
    for r in results:
        place = r["locations"][0]
        kernel = place["logicalLocations"][0]["name"]
        checks.expect(kernel, r["ruleId"] == KINDS[kernel] and r["message"]["text"].startswith(f"Kernel {kernel}, "), r)
        if kernel in LINES:
            file = urllib.parse.unquote(place["physicalLocation"]["artifactLocation"]["uri"])
            line = place["physicalLocation"]["region"]["startLine"]
            checks.expect(kernel, line == LINES[kernel] and file.endswith("k.hip"), place)

    suite = xml.fromstring(run(library, target, os.path.join(folder, "a.xml"))[0])[0]
    cases = {c.get("name"): [f.get("type") for f in c.findall("failure")] for c in suite.findall("testcase")}
    checks.expect("cases", cases == {"right": [], **{k: [v] for k, v in KINDS.items()}}, cases)
    checks.expect("counts", suite.get("tests") == "5" and suite.get("failures") == "4", suite.attrib)


def test_others(library, target, folder, checks):
    path = os.path.join(folder, "a.txt")
    text, said = run(library, target, path)
    checks.expect("no form", text is None and "ends with none of .json, .sarif and .xml" in said, said)
    text, said = run(library, target, os.path.join(folder, "no", "a.json"))
    checks.expect("no folder", text is None and "a.json cannot be written" in said, said)
    known = os.path.join(folder, "known")
    with open(known, "w") as f:
        f.write("unwritten uninit*\nhanded_on missing acquire\n")
    text, _ = run(library, target, os.path.join(folder, "b.json"), RDNA_EMULATE_SUPPRESS=known)
    kernels = [r["kernel"] for r in json.loads(text)["reports"]]
    checks.expect("suppressed", sorted(kernels) == ["past_the_end", "trapped"], kernels)


def main():
    if len(sys.argv) == 3:
        return child(*sys.argv[1:])
    if len(sys.argv) == 4:
        return taker(*sys.argv[1:3])
    failures, checked = [], 0
    for target, tests in (("gfx1100", (test_forms, test_others, test_many)), ("gfx1151", (test_forms,))):
        checks = Checks(target)
        with tempfile.TemporaryDirectory() as folder:
            for test in tests:
                test(sys.argv[1], target, folder, checks)
        failures += checks.failures
        checked += checks.checked
    print("\n".join(failures) + f"\n{checked} checks, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
