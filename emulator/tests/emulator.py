"""Sends cases to emu_step: instructions on given registers, or launches of kernels from a code object."""
import atexit
import os
import re
import shutil
import struct
import subprocess
import tempfile

import numpy as np

MEMORY, IMAGE = 0x200000000000, 0x300000000000
TARGETS = {"gfx1030": 0, "gfx1100": 1, "gfx1201": 2, "gfx1103": 3, "gfx1150": 4, "gfx1151": 5, "gfx1010": 6, "gfx1012": 7, "gfx906": 8, "gfx900": 9,
           "gfx90a": 10, "gfx942": 11, "gfx908": 12, "gfx950": 13}
VCC, NULL, M0, EXEC = 106, 124, 125, 126
CLASSES = ("salu smem branch wait valu valu64 transcendental vopd dot wmma lds load store atomic scratch "
           "barrier").split()
COUNTERS = (["waves", "groups"] + ["n_" + c for c in CLASSES] + ["cycles_" + c for c in CLASSES] +
            ["lanes_active", "lanes_possible", "load_bytes", "store_bytes", "load_lines_64", "load_lines_128",
             "store_lines_64", "store_lines_128", "lds_bytes", "lds_conflict_cycles"])


def tool(name):
    for candidate in (name + "-19", name):
        if subprocess.run(["which", candidate], capture_output=True).returncode == 0:
            return candidate
    raise RuntimeError(f"{name} of LLVM 19 is not installed")


def assemble(target, lines, wave=32, attributes=""):
    """The bytes of each line, by llvm-mc; one process for all of them."""
    size = f"+wavefrontsize{wave}" + ("," + attributes if attributes else "")
    text = subprocess.run([tool("llvm-mc"), "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", f"-mattr={size}",
                           "-show-encoding"], input="\n".join(lines), capture_output=True, text=True)
    if text.returncode:
        raise RuntimeError("llvm-mc: " + text.stderr[:2000])
    found = re.findall(r"encoding: \[([^\]]*)\]", text.stdout)
    if len(found) != len(lines):
        raise RuntimeError(f"{len(found)} encodings for {len(lines)} lines")
    return [bytes(int(b, 16) for b in e.split(",")) for e in found]


def assemble_groups(target, texts, wave=32, attributes=""):
    """The same for texts of several lines each: the bytes of each text."""
    lines = [t.split("\n") for t in texts]
    codes = iter(assemble(target, [line for group in lines for line in group], wave, attributes))
    return [b"".join(next(codes) for _ in group) for group in lines]


class Result:
    pass


class Checks:
    """How many checks there were, and a line, which begins with |label|, for each that failed."""

    def __init__(self, label):
        self.label, self.failures, self.checked = label, [], 0

    def expect(self, text, condition, detail=""):
        self.checked += 1
        if not condition:
            self.failures.append(f"{self.label} {text}: {detail}")

    def report(self, of=""):
        """Prints the lines and the count, behind |of|; returns the exit status."""
        print(*self.failures, f"{of}{self.checked} checks, {len(self.failures)} failures", sep="\n")
        return 1 if self.failures else 0


class Emulator:
    def __init__(self, program=None):
        program = program or os.environ.get("EMU_STEP", "emu_step")
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()

    def run_tests(self, testers, tests):
        """Runs every test with every tester, closes, says what failed, and returns the exit status."""
        failures, checked = [], 0
        for t in testers:
            for test in tests:
                test(t)
            failures += t.failures
            checked += t.checked
        self.close()
        for line in failures[:80]:
            print(line)
        print(f"{checked} checks, {len(failures)} failures")
        return 1 if failures else 0

    def take(self, count):
        data = self.process.stdout.read(count)
        if len(data) != count:
            raise RuntimeError(f"emu_step ended with {self.process.wait()}")
        return data

    def step(self, target, code, scalars, vectors, lds=b"", memory=b"", mode=0x3f0, scc=0, scratch=b""):
        """scalars: 128 words; vectors: (registers, lanes) of uint32; scratch: dword by dword, of all lanes each.
        Ends when the code does, with s_endpgm."""
        vectors = np.ascontiguousarray(vectors, dtype=np.uint32)
        registers, lanes = vectors.shape
        code = code + bytes.fromhex("000081bf" if target.startswith(("gfx9", "gfx10")) else "0000b0bf")
        head = struct.pack("<10I", 1, TARGETS[target], lanes, len(code), registers, len(lds), len(memory), mode, scc,
                           len(scratch) // lanes)
        words = np.asarray(scalars, dtype=np.uint32).tobytes() + vectors.tobytes()
        self.process.stdin.write(head + words + code + lds + memory + scratch)
        self.process.stdin.flush()
        r = Result()
        r.status, r.scc, r.mode = struct.unpack("<3I", self.take(12))
        r.text = self.take(1000).split(b"\0")[0].decode()
        r.s = np.frombuffer(self.take(512), np.uint32)
        r.v = np.frombuffer(self.take(4 * registers * lanes), np.uint32).reshape(registers, lanes)
        r.lds, r.memory, r.scratch = (self.take(len(x)) for x in (lds, memory, scratch))
        return r

    def launch(self, kernel, kernarg, buffers, groups, threads, check=False, counters=False, host_threads=1,
               dynamic_lds=0, room=8, shuffle=0, lint=False):
        """buffers: arrays, at multiples of 4096 from MEMORY on (see places); np.empty-like ones as (size, None)."""
        offsets, size = places(buffers)
        memory = bytearray(size)
        rows = b""
        for at, b in zip(offsets, buffers):
            known = not isinstance(b, tuple)
            length = b.nbytes if known else b[0]
            if known:
                memory[at:at + length] = b.tobytes()
            else:
                memory[at:at + length] = b"\xcd" * length
            rows += struct.pack("<QQII", at, length, known, 0)
        flags = int(check) | int(counters) << 1 | int(lint) << 2
        head = struct.pack("<I9I3I3I", 2, TARGETS[kernel.target], len(kernel.image), len(kernarg), len(buffers), size, flags,
                           host_threads, dynamic_lds, room, *groups, *threads)
        head += struct.pack("<IQ", shuffle, kernel.entry) + kernel.descriptor
        self.process.stdin.write(head + kernel.image + kernarg + rows + bytes(memory))
        self.process.stdin.flush()
        r = Result()
        r.status, r.report_count = struct.unpack("<2I", self.take(8))
        r.seconds, = struct.unpack("<d", self.take(8))
        r.text = self.take(1000).split(b"\0")[0].decode()
        r.counters = dict(zip(COUNTERS, struct.unpack(f"<{len(COUNTERS)}Q", self.take(8 * len(COUNTERS)))))
        r.reports = []
        for _ in range(room):
            pc, lane = struct.unpack("<Qq", self.take(16))
            kind, text = (self.take(n).split(b"\0")[0].decode() for n in (24, 1000))
            if text:
                r.reports.append((kind, pc, lane, text))
        data = self.take(size)
        r.buffers = [np.frombuffer(data[at:at + (b[0] if isinstance(b, tuple) else b.nbytes)],
                                   np.uint8 if isinstance(b, tuple) else b.dtype) for at, b in zip(offsets, buffers)]
        return r


def places(buffers):
    at, offsets = 0, []
    for b in buffers:
        offsets.append(at)
        at += ((b[0] if isinstance(b, tuple) else b.nbytes) + 8191) // 4096 * 4096
    return offsets, at


class Kernel:
    """One kernel of a code object: its image as loaded, its descriptor, where it starts."""

    def __init__(self, path, name, target):
        self.target = target
        data = open(path, "rb").read()
        phoff, shoff = struct.unpack_from("<QQ", data, 32)
        phnum, shnum = struct.unpack_from("<H", data, 56)[0], struct.unpack_from("<H", data, 60)[0]
        image = bytearray()
        for i in range(phnum):
            kind, _, offset, address, _, filesz, memsz, _ = struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i)
            if kind == 1:
                image.extend(bytes(max(0, address + memsz - len(image))))
                image[address:address + filesz] = data[offset:offset + filesz]
        symbols = {}
        for i in range(shnum):
            _, kind, _, _, offset, size, link, _, _, entry = struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i)
            if kind != 11:
                continue
            strings = struct.unpack_from("<Q", data, shoff + 64 * link + 24)[0]
            for at in range(offset, offset + size, entry):
                where, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                symbols[data[strings + where:data.index(b"\0", strings + where)].decode()] = value
        found = [s for s in symbols if s == name + ".kd" or (s.endswith(".kd") and name in s)]
        kd = symbols[min(found, key=len)]
        self.image = bytes(image) + bytes(256)
        self.descriptor = bytes(image[kd:kd + 64])
        self.entry = kd + struct.unpack_from("<q", self.descriptor, 16)[0]
        self.kernarg_bytes, = struct.unpack_from("<I", self.descriptor, 8)
        self.wave = 32 if self.descriptor[57] & 4 else 64


def compile_hip(source, target, flags=("-O3",)):
    """Path of the code object of a HIP source text."""
    folder = tempfile.mkdtemp(prefix="emulator_test_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    text, out = os.path.join(folder, "k.hip"), os.path.join(folder, "k.hsaco")
    with open(text, "w") as f:
        f.write(source)
    subprocess.run([tool("clang"), "-x", "hip", "-std=c++17", "-nogpuinc", "-nogpulib", "--offload-device-only",
                    "--no-gpu-bundle-output", f"--offload-arch={target}", *flags, text, "-o", out], check=True)
    return out
