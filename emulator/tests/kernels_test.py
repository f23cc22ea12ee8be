"""What clang makes of ordinary C for both targets, several optimization levels and both wave sizes, executed and compared
with the definitions of the operators in Python integers and fractions.

The source is the decoder's corpus. Usage: kernels_test.py [emu_step] [isa_corpus.hip]
"""
import math
import os
import random
import struct
import sys
import tempfile
from fractions import Fraction
from subprocess import run

import numpy as np

from emulator import MEMORY, Checks, Emulator, Kernel, compile_hip, places, tool
from floats import F16, F32, F64, add, convert, first_nan, fma, multiply, order, pick, to_integer, whole

VARIANTS = {"O1": ["-O1"], "Os": ["-Os"], "O3": ["-O3"], "O3 wave64": ["-O3", "-mwavefrontsize64", "-DWAVE64"]}
INTEGERS = {"i8": (8, True), "u8": (8, False), "i16": (16, True), "u16": (16, False), "i32": (32, True), "u32": (32, False),
            "i64": (64, True), "u64": (64, False)}
FLOATS = {"f16": F16, "f32": F32, "f64": F64}
CONVERT = {"half": F16, "float": F32, "double": F64, "int": (32, True), "u32": (32, False), "i64": (64, True),
           "u64": (64, False), "short": (16, True)}
COUNT = 128  # threads


def wrap(v, bits, is_signed):
    v &= (1 << bits) - 1
    return v - (1 << bits) if is_signed and v >> (bits - 1) else v


def dtype(bits, is_signed=False):
    return np.dtype(f"{'i' if is_signed else 'u'}{bits // 8}")


class Tester(Checks):
    def __init__(self, emulator, target, variant, path):
        super().__init__(f"{target} {variant}")
        self.emulator, self.target, self.variant, self.path = emulator, target, variant, path
        self.rng = random.Random(f"{target} {variant}")

    def launch(self, name, buffers, arguments="", *values, groups=1, threads=COUNT):
        """Buffers are the first arguments; the others follow as struct.pack takes them."""
        kernel = Kernel(self.path, name, self.target)
        offsets, _ = places(buffers)
        kernarg = struct.pack(f"<{len(buffers)}Q" + arguments, *[MEMORY + o for o in offsets], *values)
        if kernel.kernarg_bytes > len(kernarg):  # the hidden arguments: block counts and group sizes first
            hidden = struct.pack("<3I6H", groups, 1, 1, threads, 1, 1, 0, 0, 0)
            kernarg = kernarg.ljust((len(kernarg) + 7) // 8 * 8, b"\0") + hidden
            kernarg = kernarg.ljust(kernel.kernarg_bytes, b"\0")
        r = self.emulator.launch(kernel, kernarg, buffers, (groups, 1, 1), (threads, 1, 1))
        self.expect(name, r.status == 0, r.text)
        return r.buffers if r.status == 0 else None

    def integers(self, bits, is_signed, count):
        def one():
            v = self.rng.choice((self.rng.getrandbits(bits), self.rng.getrandbits(5), -self.rng.getrandbits(4),
                                 1 << (bits - 1), (1 << (bits - 1)) - 1))
            return wrap(v, bits, is_signed)
        return [one() for _ in range(count)]

    def floats(self, f, count, nan=True):
        special = [0, f.sign, 1, f.inf, f.sign | f.inf, f.bias << f.fraction, f.inf - 1] + [f.default ^ f.sign | 1] * nan

        def one():
            if self.rng.random() < 0.2:
                return self.rng.choice(special)
            return f.round(Fraction(self.rng.uniform(-1, 1)) * Fraction(2) ** self.rng.randint(-8, 8))
        return [one() for _ in range(count)]


def test_integers(t):
    for name, (bits, is_signed) in INTEGERS.items():
        a, b = t.integers(bits, is_signed, COUNT), t.integers(bits, is_signed, COUNT + 16)
        lowest = -1 << (bits - 1)
        b = [3 if v == -1 and lowest in a else v for v in b]  # the one quotient that C leaves undefined
        shift = t.rng.randrange(8)
        p = np.zeros(18 * 1000, dtype(bits, is_signed))
        p[:COUNT] = a
        out = t.launch("int_" + name, [p, np.array(b, dtype(bits, is_signed))], "i", shift)
        if not out:
            continue

        def quotient(x, y):
            return (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)
        for k, function in enumerate([
                lambda x, y, i: x + y, lambda x, y, i: x - y, lambda x, y, i: x * y,
                lambda x, y, i: quotient(x, y) if y else x, lambda x, y, i: x - y * quotient(x, y) if y else x,
                lambda x, y, i: (x & y) | (x ^ 55), lambda x, y, i: x << (shift & 7), lambda x, y, i: x >> (shift & 7),
                lambda x, y, i: min(x, y), lambda x, y, i: max(x, y), lambda x, y, i: (x == y) + 2 * (x <= y),
                lambda x, y, i: x & ~y, lambda x, y, i: (x << 3) + y, lambda x, y, i: (x + y) << 5, lambda x, y, i: ~(x ^ y),
                lambda x, y, i: x + y + b[i + 9], lambda x, y, i: x * y + b[i + 7], lambda x, y, i: -x]):
            want = [wrap(function(a[i], b[i], i), bits, is_signed) for i in range(COUNT)]
            got = [int(v) for v in out[0][k * 1000:k * 1000 + COUNT]]
            bad = next((i for i in range(COUNT) if got[i] != want[i]), None)
            t.expect(f"int_{name} [{k}]", bad is None, bad is not None and
                     f"of {a[bad]} and {b[bad]}: {got[bad]}, should be {want[bad]}")


def divide(f, a, b):
    sign = (a ^ b) & f.sign
    if f.nan(a) or f.nan(b):
        return first_nan(f, a, b)
    if f.infinite(a) or not b & ~f.sign:
        return f.default if (f.infinite(b) if f.infinite(a) else not a & ~f.sign) else sign | f.inf
    return sign if f.infinite(b) else f.round(f.value(a) / f.value(b), bool(sign))


def root(f, v):
    if f.nan(v) or (v & f.sign and v & ~f.sign):
        return first_nan(f, v)
    if not v & ~f.sign or f.infinite(v):
        return v
    x = f.value(v)
    scale = 4 ** 700  # the integer root of a number with many more bits than the format
    n = x.numerator * x.denominator * scale
    r = math.isqrt(n)
    return f.round(Fraction(2 * r + (r * r != n), 2 * x.denominator * 2 ** 700))


def less(f, a, b, equal=False):
    if f.nan(a) or f.nan(b):
        return False
    x, y = (0 if not v & ~f.sign else order(f, v) for v in (a, b))
    return x < y or (equal and x == y)


def test_floats(t):
    for name, f in FLOATS.items():
        a, b = t.floats(f, COUNT), t.floats(f, COUNT + 1)
        n = t.rng.randrange(1000)
        p = np.zeros(19 * 1000, dtype(f.bits))
        p[:COUNT] = a
        out = t.launch("float_" + name, [p, np.array(b, dtype(f.bits))], "i", n)
        if not out:
            continue
        one, two = f.round(Fraction(1)), f.round(Fraction(2))
        factor = convert(f, F32, 0x3e22f983)
        for k, function in enumerate([
                lambda x, y, z: add(f, x, y), lambda x, y, z: fma(f, x, y, z ^ f.sign), lambda x, y, z: divide(f, x, y),
                lambda x, y, z: pick(f, x, y, True), lambda x, y, z: pick(f, x, y ^ f.sign, False),
                lambda x, y, z: fma(f, x, y ^ f.sign, z), lambda x, y, z: root(f, x),
                lambda x, y, z: add(f, whole(f, x, "floor"), one), lambda x, y, z: whole(f, x, "ceil"),
                lambda x, y, z: whole(f, x, "trunc"), lambda x, y, z: whole(f, x, "rndne"),
                lambda x, y, z: multiply(f, x & ~f.sign, two), lambda x, y, z: (x & ~f.sign) | (y & f.sign),
                lambda x, y, z: x if less(f, x, y) else z, lambda x, y, z: y if f.nan(x) else z,
                lambda x, y, z: x if less(f, x, y, True) else y,
                lambda x, y, z: multiply(f, f.round(Fraction(n)), factor),
                lambda x, y, z: pick(f, x, pick(f, y, z, False), True),
                lambda x, y, z: pick(f, pick(f, x, 0, True), one, False)]):
            for i in range(COUNT):
                want, got = function(a[i], b[i], b[i + 1]), int(out[0][k * 1000 + i])
                # payloads are the compiler's choice, and so is the sign of a zero that a minimum picks
                same = got == want or (f.nan(got) and f.nan(want)) or (k in (3, 4, 17, 18) and not (got | want) & ~f.sign)
                if not same:
                    t.expect(f"float_{name} [{k}]", False, f"of {a[i]:#x} {b[i]:#x} {b[i + 1]:#x}: {got:#x}, should be {want:#x}")
                    break
            else:
                t.expect(f"float_{name} [{k}]", True)


def test_conversions(t):
    for to, target in CONVERT.items():
        if to == "short":
            continue
        for source, origin in CONVERT.items():
            from_float, to_float = not isinstance(origin, tuple), not isinstance(target, tuple)
            if from_float and not to_float:  # C defines what fits
                values = [origin.round(Fraction(t.rng.randint(0, 60000), 7)) for _ in range(COUNT)]
            elif from_float:
                values = t.floats(origin, COUNT, nan=False)
            else:
                values = t.integers(*origin, COUNT)
            bits = target.bits if to_float else target[0]
            kinds = dtype(origin.bits) if from_float else dtype(*origin)
            out = t.launch(f"convert_{to}_{source}", [np.zeros(COUNT, dtype(bits)), np.array(values, kinds)])
            if not out:
                continue
            for v, got in zip(values, out[0]):
                if from_float:
                    want = convert(target, origin, v) if to_float else to_integer(origin, v, -1 << 63, (1 << 64) - 1)
                else:
                    want = target.round(Fraction(v)) if to_float else v
                if int(got) != want & ((1 << bits) - 1):
                    t.expect(f"convert_{to}_{source}", False, f"of {v}: {int(got):#x}, should be {want:#x}")
                    break
            else:
                t.expect(f"convert_{to}_{source}", True)


MEMORY_KERNELS = """
typedef float float4 __attribute__((ext_vector_type(4)));
typedef int int8 __attribute__((ext_vector_type(8)));
struct int3 { int x, y, z; };
#define MEMORY(name, T)                                                                                          \
  extern "C" __attribute__((global)) void memory_##name(T *p, const T *q, int n, int k) {                        \
    __attribute__((shared)) static T local[512];                                                                 \
    unsigned i = __builtin_amdgcn_workgroup_id_x() * 128 + __builtin_amdgcn_workitem_id_x(), t = i & 127;        \
    T own[24];                                                                                                   \
    for (int j = 0; j < 24; j++) own[j] = q[i + j];                                                              \
    own[k & 15] = q[n];                                                                                          \
    local[t] = own[n & 15];                                                                                      \
    local[t + 256] = q[i + 100];                                                                                 \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                                       \
    __builtin_amdgcn_s_barrier();                                                                                \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                                       \
    p[i] = local[t ^ 1];                                                                                         \
    p[i + 256] = local[((t + 3) & 127) + 256];                                                                   \
    p[i + 512] = own[(k + t) & 15];                                                                              \
    T *either = n & 1 ? local : p + 2000;                                                                        \
    p[i + 768] = either[(t + 1) & 127];                                                                          \
    T *mine = t & 1 ? own : local + 256;                                                                         \
    p[i + 1024] = mine[n & 7];                                                                                   \
  }
MEMORY(char, char) MEMORY(short, short) MEMORY(int, int) MEMORY(i64, long) MEMORY(int3, int3) MEMORY(float4, float4)
MEMORY(int8, int8)
"""


def test_memory(t):
    """Arrays in scratch, LDS between waves, and generic pointers to each of the three memories."""
    t.path = compile_hip(MEMORY_KERNELS, t.target, VARIANTS[t.variant])
    for name, size in (("char", 1), ("short", 2), ("int", 4), ("i64", 8), ("int3", 12), ("float4", 16), ("int8", 32)):
        for n in (t.rng.randrange(0, 20, 2), t.rng.randrange(1, 20, 2)):
            k = t.rng.randrange(16)
            q = np.frombuffer(t.rng.randbytes(500 * size), np.uint8).reshape(500, size)
            p = np.frombuffer(t.rng.randbytes(2200 * size), np.uint8).reshape(2200, size)
            out = t.launch("memory_" + name, [p.reshape(-1), q.reshape(-1)], "2i", n, k, groups=2)
            if not out:
                continue
            got = out[0].reshape(2200, size)
            own = [[q[n] if j == k & 15 else q[i + j] for j in range(24)] for i in range(256)]
            for i in range(256):
                group, at = i & ~127, i & 127
                local = [own[group + j][n & 15] for j in range(128)]
                want = {0: local[at ^ 1], 256: q[group + 100 + (at + 3) % 128], 512: own[i][(k + at) & 15],
                        768: local[(at + 1) & 127] if n & 1 else p[2000 + (at + 1) % 128],
                        1024: own[i][n & 7] if at & 1 else q[group + 100 + (n & 7)]}
                wrong = [o for o, v in want.items() if not np.array_equal(got[i + o], v)]
                if wrong:
                    t.expect("memory_" + name, False, f"p[{i} + {wrong}]")
                    break
            else:
                t.expect("memory_" + name, True)


def test_scalars(t):
    a, b, c, d, e, f = 9, 0xfedc1234, 0x123456789abcdef0, -987654321012345, 1e6, 3.5
    p = np.array([t.rng.getrandbits(63) for _ in range(32)], np.uint64)
    kernel = Kernel(t.path, "scalars", t.target)
    buffers = [p, np.zeros(64, np.uint64)]
    offsets, _ = places(buffers)
    kernarg = struct.pack("<2QiIQqdf", MEMORY + offsets[0], MEMORY + offsets[1], a, b, c, d, e, f).ljust(kernel.kernarg_bytes, b"\0")
    r = t.emulator.launch(kernel, kernarg, buffers, (1, 1, 1), (1, 1, 1))
    t.expect("scalars", r.status == 0, r.text)
    if r.status:
        return
    m, sb = (1 << 64) - 1, wrap(b, 32, True)
    want = [c * d + int(p[a]), (c << (a & 63)) | (c >> (b & 63)),
            bin(c).count("1") + (64 - c.bit_length()) + ((c | 2) & -(c | 2)).bit_length() - 1 + int(f"{c:064b}"[::-1], 2),
            b + 2 + (d >> 3), (b & 0xff00) >> 4 | (a >> 7 & 31) << 3,
            wrap(a * sb, 32, True) + (a * b >> 32) + (a * sb >> 32), a + min(a, sb) + max(a, b),
            wrap(a, 16, True) + wrap(b, 8, True) + (c & ~d) + (c ^ ~d), int(e) + int(f) + wrap((a + 100) * 1000, 64, True)]
    want += [int(p[i]) + wrap(b * i, 32, False) for i in range(a)]
    for i, v in enumerate(want):
        t.expect(f"scalars out[{i}]", int(r.buffers[1][i]) == v & m, f"{int(r.buffers[1][i]):#x}, should be {v & m:#x}")


def make_tester(emulator, target, variant, source, folder):
    path = os.path.join(folder, f"{target}{variant}.hsaco".replace(" ", "_"))
    run([tool("clang"), "-x", "hip", "-std=c++17", "-nogpuinc", "-nogpulib", "--offload-device-only",
         "--no-gpu-bundle-output", f"--offload-arch={target}", *VARIANTS[variant], source, "-o", path], check=True)
    return Tester(emulator, target, variant, path)


def main():
    source = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(__file__), "..", "isa", "isa_corpus.hip")
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    with tempfile.TemporaryDirectory() as folder:
        testers = (make_tester(emulator, target, variant, source, folder)
                   for target in ("gfx1100", "gfx1030", "gfx1201") for variant in VARIANTS)
        return emulator.run_tests(testers, (test_integers, test_floats, test_conversions, test_scalars, test_memory))


if __name__ == "__main__":
    sys.exit(main())
