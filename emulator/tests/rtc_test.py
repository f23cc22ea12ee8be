"""Compiling and linking at run time: hiprtc and hipLink of the emulator, over clang, on emulated cards.
Usage: rtc_test.py librdna_emulator.so"""
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

from emulator import Checks
from hip_library import Hip, said, size

TARGETS = ["gfx1100", "gfx1030", "gfx1201", "gfx942"]
(OK, _, CREATION, INPUT, PROGRAM, OPTION, COMPILATION, BUILTIN, LATE_NAME, EARLY_NAME, NO_NAME) = range(11)
LINKING, BITCODE, INVALID_VALUE = 100, 100, 1
P, N = ctypes.c_void_p, 100
# Headers of ROCm and those of rdna both know all of this.
SOURCE = """
#include "scale.h"
namespace deep { __device__ int counter = 41; }
template <typename T> struct twice { static __device__ T of(T x) { return x + x; } };
template <typename T, int K> __global__ void grow(T *x, T y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = twice<T>::of(x[i]) * T(SCALE) + y + T(K) + T(MORE);
}
extern "C" __global__ void turn(float *x, int n) {
  __shared__ float line[128];
  int i = threadIdx.x;
  line[i] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) x[i] = sqrtf(line[n - 1 - i]);
}
__global__ void count(int *out) { *out = ++deep::counter; }
"""
PART = """
extern "C" __device__ int helper(int x);
extern "C" __global__ void both(int *x) { x[threadIdx.x] = helper(x[threadIdx.x]) + 1; }
"""
HELPER = 'extern "C" __device__ int helper(int x) { return 3 * x; }'


def strings(*texts):
    return (ctypes.c_char_p * max(len(texts), 1))(*[t.encode() for t in texts])


class Program:
    def __init__(self, hip, source, name="k.hip", headers=()):
        self.hip, self.handle = hip, P()
        self.created = hip.library.hiprtcCreateProgram(ctypes.byref(self.handle), source.encode(), name.encode(), len(headers),
                                                       strings(*[text for _, text in headers]), strings(*[n for n, _ in headers]))

    def call(self, name, *arguments):
        return getattr(self.hip.library, name)(self.handle, *arguments)

    def compile(self, *options):
        return self.call("hiprtcCompileProgram", len(options), strings(*options))

    def bytes(self, what):
        """What hiprtcGet… gives, or its code."""
        length = size()
        code = self.call(f"hiprtcGet{what}Size", ctypes.byref(length))
        if code:
            return code
        out = ctypes.create_string_buffer(length.value)
        return self.call(f"hiprtcGet{what}", out) or out.raw

    def lowered(self, expression):
        out = ctypes.c_char_p()
        return self.call("hiprtcGetLoweredName", expression.encode(), ctypes.byref(out)) or out.value

    def destroy(self):
        return self.hip.library.hiprtcDestroyProgram(ctypes.byref(self.handle))


def run(hip, code, name, *values, threads=128):
    module = hip.made("hipModuleLoadData", code)
    function = hip.made("hipModuleGetFunction", module, name)
    pointers = (P * len(values))(*[ctypes.addressof(v) for v in values])
    hip.ok("hipModuleLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, pointers, None)
    hip.ok("hipDeviceSynchronize")
    return module


def test_programs(hip, c, rng):
    headers = [("scale.h", '#include "sub/more.h"\n#define SCALE 3\n'), ("sub/more.h", "#define MORE 7\n")]
    names = ["grow<float, 5>", "&grow<int, 2>", "deep::counter", "count"]
    for index, target in enumerate(TARGETS):
        hip.ok("hipSetDevice", index)
        p = Program(hip, SOURCE, headers=headers)
        c.expect(f"{target}: names", [p.call("hiprtcAddNameExpression", n.encode()) for n in names] == [OK] * 4)
        c.expect(f"{target}: no name before the code", p.lowered(names[0]) == EARLY_NAME)
        c.expect(f"{target}: compiles", p.compile("-O2", *([f"--gpu-architecture={target}:xnack-"] if index % 2 else [])) == OK)
        lowered = [p.lowered(n) for n in names]
        # as the Itanium C++ ABI writes them
        c.expect(f"{target}: lowered names", lowered == [b"_Z4growIfLi5EEvPT_S0_i", b"_Z4growIiLi2EEvPT_S0_i", b"_ZN4deep7counterE", b"_Z5countPi"])
        c.expect(f"{target}: a name of nothing", p.lowered("shrink<int>") == NO_NAME)
        c.expect(f"{target}: a name too late", p.call("hiprtcAddNameExpression", b"turn") == LATE_NAME)
        code = p.bytes("Code")
        c.expect(f"{target}: an ELF", code[:4] == b"\x7fELF" and p.bytes("Bitcode") == PROGRAM)
        x = hip.made("hipMalloc", size(4 * N))
        for name, dtype, kind, k in ((lowered[0], np.float32, ctypes.c_float, 5), (lowered[1], np.int32, ctypes.c_int, 2)):
            values = rng.integers(-1000, 1000, N).astype(dtype)
            hip.write(x, values)
            run(hip, code, name, x, kind(11), ctypes.c_int(N - 1))
            expected = values * 6 + 11 + k + 7
            expected[-1] = values[-1]
            c.expect(f"{target}: {name.decode()}", np.array_equal(hip.read(x, N, dtype), expected))
        values = rng.integers(0, 1000, N).astype(np.float32) ** 2
        hip.write(x, values)
        run(hip, code, b"turn", x, ctypes.c_int(N))
        c.expect(f"{target}: LDS and a root", np.array_equal(hip.read(x, N, np.float32), np.sqrt(values[::-1])))
        module = run(hip, code, lowered[3], x, threads=1)
        at, length = P(), size()
        hip.ok("hipModuleGetGlobal", ctypes.byref(at), ctypes.byref(length), module, lowered[2])
        c.expect(f"{target}: a variable", (hip.read(x, 1)[0], hip.read(at, 1)[0], length.value) == (42, 42, 4))
        c.expect(f"{target}: gone", (p.destroy(), p.handle.value, p.destroy()) == (OK, None, PROGRAM))
    hip.ok("hipSetDevice", 0)


def test_bad_programs(hip, c):
    p = Program(hip, "__global__ void k(int *x) { *x = y; }", name="folder/wrong.hip")
    c.expect("an error", p.compile() == COMPILATION)
    log = p.bytes("ProgramLog")
    c.expect("where it is", b"folder/wrong.hip:1:" in log and b"'y'" in log and log.endswith(b"\0"))
    c.expect("no code", p.bytes("Code") == PROGRAM)
    p.destroy()
    p = Program(hip, "__global__ void k(int *x) {}")
    c.expect("an option that is none", p.compile("--no-such-option") == COMPILATION and b"no-such-option" in p.bytes("ProgramLog"))
    c.expect("a GPU that is none", p.compile("--offload-arch=sm_80") == OPTION)
    c.expect("tried again", p.compile() == OK and isinstance(p.bytes("Code"), bytes))
    c.expect("no third time", p.compile() == PROGRAM)
    p.destroy()
    p = Program(hip, "__global__ void k(int *x) {}")
    p.call("hiprtcAddNameExpression", b"missing")
    c.expect("a name of nothing", p.compile() == COMPILATION and b"name expression 0" in p.bytes("ProgramLog"))
    p.destroy()
    for name in ("../out.h", "a/../../out.h", "a/", ".."):
        p = Program(hip, "", headers=[(name, "x")])
        c.expect(f"a header called {name}", p.compile() == CREATION)
        p.destroy()
    c.expect("no source", hip.library.hiprtcCreateProgram(ctypes.byref(P()), None, None, 0, None, None) == INPUT)
    c.expect("no program", [hip.library.hiprtcCompileProgram(P(64), 0, None), hip.library.hiprtcGetCodeSize(P(64), ctypes.byref(size())),
                            hip.library.hiprtcAddNameExpression(P(64), b"k")] == [PROGRAM] * 3)
    hip.library.hiprtcGetErrorString.restype = ctypes.c_char_p
    c.expect("their names", [hip.library.hiprtcGetErrorString(i) for i in (OK, COMPILATION, LINKING, 77)] ==
             [b"HIPRTC_SUCCESS", b"HIPRTC_ERROR_COMPILATION", b"HIPRTC_ERROR_LINKING", b"HIPRTC_ERROR_UNKNOWN"])
    major, minor = ctypes.c_int(), ctypes.c_int()
    c.expect("a version", hip.library.hiprtcVersion(ctypes.byref(major), ctypes.byref(minor)) == OK and major.value == 7)


def test_links(hip, c, rng):
    pieces = []
    for source, name in ((PART, "both"), (HELPER, None)):
        p = Program(hip, source)
        if name:
            p.call("hiprtcAddNameExpression", b"helper")
        # a function of another piece has no address before they are linked
        c.expect("bitcode", p.compile("-fgpu-rdc") == (NO_NAME if name else OK))
        p.destroy()
        p = Program(hip, source)
        c.expect("bitcode without names", p.compile("-fgpu-rdc") == OK and p.bytes("Code") == PROGRAM)
        pieces.append(p.bytes("Bitcode"))
        p.destroy()
    c.expect("LLVM's", all(piece[:4] == b"BC\xc0\xde" for piece in pieces))
    values = rng.integers(-1000, 1000, N).astype(np.int32)
    x = hip.made("hipMalloc", size(4 * N))
    for kind in ("hiprtcLink", "hipLink"):
        link, code, length = P(), P(), size()
        calls = {name: getattr(hip.library, kind + name) for name in ("Create", "AddData", "AddFile", "Complete", "Destroy")}
        c.expect(f"{kind}: made", calls["Create"](0, None, None, ctypes.byref(link)) == OK)
        c.expect(f"{kind}: nothing to link", calls["Complete"](link, ctypes.byref(code), ctypes.byref(length)) != OK)
        c.expect(f"{kind}: a piece", calls["AddData"](link, BITCODE, pieces[0], size(len(pieces[0])), b"one", 0, None, None) == OK)
        result, text = said(lambda: calls["Complete"](link, ctypes.byref(code), ctypes.byref(length)))
        c.expect(f"{kind}: a function that is nowhere", result != OK and "helper" in text)
        with tempfile.NamedTemporaryFile(suffix=".bc") as file:
            file.write(pieces[1])
            file.flush()
            c.expect(f"{kind}: a file", calls["AddFile"](link, BITCODE, file.name.encode(), 0, None, None) == OK)
        c.expect(f"{kind}: no file", calls["AddFile"](link, BITCODE, b"/no/such/file", 0, None, None) != OK)
        result, text = said(lambda: calls["AddData"](link, BITCODE, b"no bitcode", size(10), b"odd", 0, None, None))
        c.expect(f"{kind}: no bitcode", result != OK and "odd" in text)
        c.expect(f"{kind}: linked", calls["Complete"](link, ctypes.byref(code), ctypes.byref(length)) == OK)
        hip.write(x, values)
        run(hip, ctypes.string_at(code, length.value), b"both", x, threads=N)
        c.expect(f"{kind}: runs", np.array_equal(hip.read(x, N), 3 * values + 1))
        c.expect(f"{kind}: gone", calls["Destroy"](link) == OK and calls["Destroy"](link) != OK)
    c.expect("HIP's own code", hip.code("hipLinkAddFile", P(64), BITCODE, b"x", 0, None, None) == INVALID_VALUE)


def test_without(library, c):
    """Machines without a compiler, without ROCm's headers, and with a folder that takes no file."""
    inside = f"""
import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from rtc_test import Hip, Program
p = Program(Hip({library!r}, []), 'extern "C" __global__ void k(float *x) {{ x[threadIdx.x] = expf(x[threadIdx.x]); }}')
print(p.compile("--offload-arch=gfx1100"), p.bytes("ProgramLog").decode())
"""
    def answer(**changes):
        return subprocess.run([sys.executable, "-c", inside], env={**os.environ, **changes}, capture_output=True, text=True, check=True).stdout
    text = answer(RDNA_EMULATE_CLANG="/no/such/clang")
    c.expect("no compiler", text.startswith(f"{BUILTIN} ") and "RDNA_EMULATE_CLANG" in text)
    text = answer(TMPDIR="/no/such/folder")
    c.expect("no folder", text.startswith(f"{CREATION} "))


def main():
    library = os.path.abspath(sys.argv[1])
    os.environ["RDNA_EMULATE"] = ",".join(TARGETS)
    os.environ["RDNA_EMULATE_CHECK"] = "1"
    c, rng = Checks("rtc,"), np.random.default_rng(3)
    before = set(os.listdir(tempfile.gettempdir()))
    hip = Hip(library, TARGETS)
    test_programs(hip, c, rng)
    test_bad_programs(hip, c)
    test_links(hip, c, rng)
    test_without(library, c)
    left = [name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("rdna-emulator-")]
    c.expect("nothing is left behind", not left)
    return c.report()


if __name__ == "__main__":
    sys.exit(main())
