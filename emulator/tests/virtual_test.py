"""Virtual memory of the HIP interface: reserved ranges, memory that is mapped there, who may access it, other processes.
Usage: virtual_test.py librdna_emulator.so"""
import ctypes
import os
import subprocess
import sys

import numpy as np

from emulator import Checks
from hip_library import ILLEGAL_ADDRESS, INVALID_VALUE, LAUNCH_FAILURE, NO_MEMORY, SUCCESS, Hip, said, size, struct

SOURCE = """
#define KERNEL extern "C" __attribute__((global)) void
#define I (__builtin_amdgcn_workgroup_id_x() * 32 + __builtin_amdgcn_workitem_id_x())
struct four { int a, b, c, d; };
KERNEL double_it(int *at, int n) { if (I < n) at[I] *= 2; }
KERNEL sum_four(const int *at, int *out) { four f; __builtin_memcpy(&f, at, 16); out[0] = f.a + f.b + f.c + f.d; }
KERNEL take(const int *at, int *out) { if (at[I] == 7) out[I] = 1; }
"""
GRANULE, LARGE = 4096, 2 << 20
NONE, READ, READ_WRITE = 0, 1, 3


def properties(device=0, shares=0):
    return struct(kind=(ctypes.c_int, 1), handles=(ctypes.c_int, shares), place=(ctypes.c_int, 1), device=(ctypes.c_int, device),
                  windows=ctypes.c_void_p, flags=ctypes.c_uint64)


def access(flags, device=0):
    return struct(place=(ctypes.c_int, 1), device=(ctypes.c_int, device), flags=(ctypes.c_int, flags))


def at(base, bytes):
    return ctypes.c_void_p(base.value + bytes)


class Range:
    """|parts| of the bytes of a handle each, one behind the other."""

    def __init__(self, hip, bytes, parts, flags=READ_WRITE, device=0):
        self.hip, self.bytes, self.device = hip, bytes, device
        self.base = hip.made("hipMemAddressReserve", size(4 * parts * bytes), size(0), None, ctypes.c_ulonglong(0))
        self.handles = [hip.made("hipMemCreate", size(bytes), ctypes.byref(properties(device)), ctypes.c_ulonglong(0)) for _ in range(parts)]
        for i, h in enumerate(self.handles):
            hip.ok("hipMemMap", at(self.base, i * bytes), size(bytes), size(0), h, ctypes.c_ulonglong(0))
        if flags:
            hip.ok("hipMemSetAccess", self.base, size(parts * bytes), ctypes.byref(access(flags, device)), size(1))

    def end(self):
        parts = len(self.handles)
        self.hip.ok("hipMemUnmap", self.base, size(parts * self.bytes))
        for h in self.handles:
            self.hip.ok("hipMemRelease", h)
        self.hip.ok("hipMemAddressFree", self.base, size(4 * parts * self.bytes))


def free_bytes(hip):
    free, total = size(), size()
    hip.ok("hipMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    return free.value


def test_neighbours(hip, c):
    """Two mappings beside each other are as one: for kernels, single loads, copies and fills."""
    r, out, before = Range(hip, LARGE, 2), hip.made("hipMalloc", size(64)), free_bytes(hip)
    values = np.random.default_rng(1).integers(-9999, 9999, 2 * LARGE // 4).astype(np.int32)
    c.expect("a copy to both", hip.write(r.base, values) == SUCCESS)
    code, text = said(lambda: hip.run("double_it", at(r.base, LARGE - 1000), ctypes.c_int(500), groups=16))
    values[LARGE // 4 - 250:LARGE // 4 + 250] *= 2
    c.expect("a kernel in both", code == SUCCESS and not text, (code, text))
    c.expect("what it wrote", (hip.read(r.base, values.size) == values).all())
    for bytes in (4, 8, 12):
        code, text = said(lambda: hip.run("sum_four", at(r.base, LARGE - bytes), out, threads=1))
        i = (LARGE - bytes) // 4
        c.expect(f"a load of four with {bytes} bytes in the first", code == SUCCESS and not text and
                 hip.read(out, 1)[0] == values[i:i + 4].sum(dtype=np.int32), (code, text))
    c.expect("a fill", hip.code("hipMemset", at(r.base, LARGE - 8), 0, size(16)) == SUCCESS)
    c.expect("what it left", (hip.read(at(r.base, LARGE - 8), 4) == 0).all() and hip.read(at(r.base, LARGE - 12), 1)[0] == values[LARGE // 4 - 3])
    code, text = said(lambda: hip.write(at(r.base, LARGE), values[:LARGE // 4 + 1]))
    c.expect("a copy past the last", code == INVALID_VALUE and "where nothing is mapped" in text, (code, text))
    code, text = said(lambda: hip.run("double_it", at(r.base, 2 * LARGE - 40), ctypes.c_int(20)))
    c.expect("a kernel past the last", code == ILLEGAL_ADDRESS and "0 bytes past the end of hipMemMap" in text, (code, text))
    r.end()
    c.expect("memory that is given back", free_bytes(hip) == before + 2 * LARGE, free_bytes(hip) - before)
    code, text = said(lambda: hip.run("double_it", r.base, ctypes.c_int(1)))
    c.expect("what was unmapped", code == ILLEGAL_ADDRESS, (code, text))
    hip.ok("hipFree", out)


def test_access(hip, c):
    r, flags, here = Range(hip, LARGE, 1, NONE), ctypes.c_ulonglong(9), struct(place=(ctypes.c_int, 1), device=ctypes.c_int)

    def given():
        hip.ok("hipMemGetAccess", ctypes.byref(flags), ctypes.byref(here), r.base)
        return flags.value
    c.expect("no access at first", given() == NONE)
    (code, text) = said(lambda: hip.write(r.base, np.ones(4, np.int32)))
    c.expect("a copy without access", code == INVALID_VALUE and "given to no device" in text, (code, text))
    code, text = said(lambda: hip.run("double_it", r.base, ctypes.c_int(4)))
    c.expect("a kernel without access", code == ILLEGAL_ADDRESS, (code, text))
    out = hip.made("hipMalloc", size(64))
    for allowed in (READ, READ_WRITE, READ, NONE, READ_WRITE):
        hip.ok("hipMemSetAccess", r.base, size(LARGE), ctypes.byref(access(allowed)), size(1))
        c.expect(f"access {allowed} as it is told", given() == allowed, flags.value)
        if allowed:
            c.expect("a copy", hip.write(r.base, np.arange(4, dtype=np.int32)) == SUCCESS)
            code, text = said(lambda: hip.run("sum_four", r.base, out, threads=1))
            c.expect(f"a read with {allowed}", code == SUCCESS and not text and hip.read(out, 1)[0] == 6, (code, text))
        code, text = said(lambda: hip.run("double_it", r.base, ctypes.c_int(4)))
        c.expect(f"a write with {allowed}", (code == SUCCESS) == (allowed == READ_WRITE) and
                 ("which this device may only read" in text) == (allowed == READ), (code, text))
    c.expect("what was written", hip.read(r.base, 4).tolist() == [0, 2, 4, 6])
    for text, code in (("another device's place", hip.code("hipMemSetAccess", r.base, size(LARGE), ctypes.byref(access(3, 5)), size(1))),
                       ("flags of 2", hip.code("hipMemSetAccess", r.base, size(LARGE), ctypes.byref(access(2)), size(1))),
                       ("half of a mapping", hip.code("hipMemSetAccess", r.base, size(LARGE // 2), ctypes.byref(access(3)), size(1))),
                       ("what is not mapped", hip.code("hipMemSetAccess", at(r.base, LARGE), size(LARGE), ctypes.byref(access(3)), size(1))),
                       ("no description", hip.code("hipMemSetAccess", r.base, size(LARGE), None, size(1)))):
        c.expect(text, code == INVALID_VALUE, code)
    hip.ok("hipFree", out)
    r.end()


def test_two_addresses(hip, c):
    """One handle at two addresses; it stays while it is mapped, and what it holds stays while it has an owner."""
    handle = hip.made("hipMemCreate", size(GRANULE), ctypes.byref(properties()), ctypes.c_ulonglong(0))
    base = hip.made("hipMemAddressReserve", size(8 * GRANULE), size(0), None, ctypes.c_ulonglong(0))
    places = [at(base, GRANULE), at(base, 4 * GRANULE)]
    for p in places:
        hip.ok("hipMemMap", p, size(GRANULE), size(0), handle, ctypes.c_ulonglong(0))
        hip.ok("hipMemSetAccess", p, size(GRANULE), ctypes.byref(access(READ_WRITE)), size(1))
    values = np.arange(GRANULE // 4, dtype=np.int32)
    hip.write(places[0], values)
    code, text = said(lambda: hip.run("double_it", places[1], ctypes.c_int(1024), groups=32))
    c.expect("written through one", code == SUCCESS and not text and (hip.read(places[0], 1024) == 2 * values).all(), (code, text))
    again = hip.made("hipMemRetainAllocationHandle", at(places[1], 100))
    c.expect("the handle of an address", again.value == handle.value)
    hip.ok("hipMemRelease", again)
    back = properties(9, 9)
    hip.ok("hipMemGetAllocationPropertiesFromHandle", ctypes.byref(back), handle)
    c.expect("its properties", (back.kind, back.handles, back.place, back.device) == (1, 0, 1, 0))
    c.expect("an address in use", hip.code("hipMemMap", places[1], size(GRANULE), size(0), handle, ctypes.c_ulonglong(0)) == INVALID_VALUE)
    c.expect("a range in use", hip.code("hipMemAddressFree", base, size(8 * GRANULE)) == INVALID_VALUE)
    before = free_bytes(hip)
    hip.ok("hipMemUnmap", places[0], size(GRANULE))
    hip.ok("hipMemRelease", handle)
    c.expect("a handle that is released twice", hip.code("hipMemRelease", handle) == INVALID_VALUE)
    c.expect("mapped memory after its release", free_bytes(hip) == before and (hip.read(places[1], 1024) == 2 * values).all())
    hip.ok("hipMemUnmap", places[1], size(GRANULE))
    c.expect("memory without an owner", free_bytes(hip) == before + GRANULE)
    c.expect("a handle that is gone", hip.code("hipMemRelease", handle) == INVALID_VALUE)
    c.expect("an address of nothing", hip.code("hipMemRetainAllocationHandle", ctypes.byref(again), places[1]) == INVALID_VALUE)
    hip.ok("hipMemAddressFree", base, size(8 * GRANULE))


def test_unwritten(hip, c):
    """To the checker fresh memory is not written; what comes back to an address, is."""
    if os.environ["RDNA_EMULATE_CHECK"] != "1":
        return
    r, out = Range(hip, GRANULE, 1), hip.made("hipMalloc", size(128))
    code, text = said(lambda: hip.run("take", r.base, out))
    c.expect("fresh memory", code == LAUNCH_FAILURE and "memory that nobody wrote" in text, (code, text))
    hip.write(r.base, np.zeros(32, np.int32))
    code, text = said(lambda: hip.run("take", r.base, out))
    c.expect("written memory", code == SUCCESS and not text, (code, text))
    hip.ok("hipMemUnmap", r.base, size(GRANULE))
    hip.ok("hipMemMap", r.base, size(GRANULE), size(0), r.handles[0], ctypes.c_ulonglong(0))
    hip.ok("hipMemSetAccess", r.base, size(GRANULE), ctypes.byref(access(READ_WRITE)), size(1))
    code, text = said(lambda: hip.run("take", r.base, out))
    c.expect("the same memory, mapped again", code == SUCCESS and not text, (code, text))
    hip.ok("hipFree", out)
    r.end()


def test_two_devices(hip, c):
    """Memory of the second device, which the first one may use, too."""
    r = Range(hip, LARGE, 1, READ_WRITE, 1)
    values = np.arange(100, dtype=np.int32)
    hip.write(r.base, values)
    code, text = said(lambda: hip.run("double_it", r.base, ctypes.c_int(100), groups=4))
    c.expect("a device without access", code == ILLEGAL_ADDRESS, (code, text))
    both = (type(access(0)) * 2)()
    for i in range(2):
        both[i].place, both[i].device, both[i].flags = 1, i, READ_WRITE
    hip.ok("hipMemSetAccess", r.base, size(LARGE), ctypes.byref(both), size(2))
    for i in (0, 1):
        hip.ok("hipSetDevice", i)
        code, text = said(lambda: hip.run("double_it", r.base, ctypes.c_int(100), groups=4, device=i))
        c.expect(f"device {i}", code == SUCCESS and not text, (code, text))
    hip.ok("hipSetDevice", 0)
    c.expect("what both wrote", (hip.read(r.base, 100) == 4 * values).all())
    kind = (ctypes.c_char * 32)()
    hip.ok("hipPointerGetAttributes", kind, at(r.base, 64))
    words = np.frombuffer(kind, np.int32)
    c.expect("the pointer's kind and device", (words[0], words[1]) == (2, 1), words[:2])
    r.end()


def test_refusals(hip, c):
    out, p, zero = ctypes.c_void_p(), properties(), ctypes.c_ulonglong(0)
    for recommended, bytes in ((0, GRANULE), (1, LARGE)):
        found = hip.made("hipMemGetAllocationGranularity", ctypes.byref(p), recommended, kind=size)
        c.expect("granularity", found.value == bytes, found.value)
    r = hip.made("hipMemAddressReserve", size(LARGE), size(8 * LARGE), None, zero)
    c.expect("alignment", r.value % (8 * LARGE) == 0)
    hip.ok("hipMemAddressFree", r, size(LARGE))
    again = hip.made("hipMemAddressReserve", size(LARGE), size(0), r, zero)
    c.expect("a wish for a free address", again.value == r.value)
    h = hip.made("hipMemCreate", size(LARGE), ctypes.byref(p), zero)
    wrong = ctypes.byref(out)
    for text, name, *arguments in (
            ("a range of nothing", "hipMemAddressReserve", wrong, size(0), size(0), None, zero),
            ("a range of odd bytes", "hipMemAddressReserve", wrong, size(100), size(0), None, zero),
            ("an alignment of 3", "hipMemAddressReserve", wrong, size(LARGE), size(3), None, zero),
            ("flags of a range", "hipMemAddressReserve", wrong, size(LARGE), size(0), None, ctypes.c_ulonglong(1)),
            ("a part of a range", "hipMemAddressFree", again, size(LARGE // 2)),
            ("no range", "hipMemAddressFree", at(again, GRANULE), size(GRANULE)),
            ("memory of odd bytes", "hipMemCreate", wrong, size(100), ctypes.byref(p), zero),
            ("memory of another device", "hipMemCreate", wrong, size(LARGE), ctypes.byref(properties(7)), zero),
            ("memory of no properties", "hipMemCreate", wrong, size(LARGE), None, zero),
            ("an offset", "hipMemMap", again, size(GRANULE), size(GRANULE), h, zero),
            ("more than there is", "hipMemMap", again, size(2 * LARGE), size(0), h, zero),
            ("outside of ranges", "hipMemMap", ctypes.c_void_p(1 << 40), size(LARGE), size(0), h, zero),
            ("past the end of a range", "hipMemMap", at(again, GRANULE), size(LARGE), size(0), h, zero),
            ("no handle", "hipMemMap", again, size(LARGE), size(0), again, zero),
            ("nothing mapped", "hipMemUnmap", again, size(LARGE)),
            ("a handle that is not shared", "hipMemExportToShareableHandle", wrong, h, 1, zero),
            ("hipFree of a range", "hipFree", again)):
        c.expect(text, hip.code(name, *arguments) == INVALID_VALUE)
    c.expect("more than the card has", hip.code("hipMemCreate", wrong, size(1 << 46), ctypes.byref(p), zero) == NO_MEMORY)
    hip.ok("hipMemRelease", h)
    hip.ok("hipMemAddressFree", again, size(LARGE))


def test_other_processes(hip, c):
    """A handle as a file descriptor, which a child of this process imports and writes."""
    shared = hip.made("hipMemCreate", size(LARGE), ctypes.byref(properties(0, 1)), ctypes.c_ulonglong(0))
    base = hip.made("hipMemAddressReserve", size(LARGE), size(0), None, ctypes.c_ulonglong(0))
    hip.ok("hipMemMap", base, size(LARGE), size(0), shared, ctypes.c_ulonglong(0))
    hip.ok("hipMemSetAccess", base, size(LARGE), ctypes.byref(access(READ_WRITE)), size(1))
    values = np.arange(1000, dtype=np.int32)
    hip.write(base, values)
    file = hip.made("hipMemExportToShareableHandle", shared, 1, ctypes.c_ulonglong(0), kind=ctypes.c_int).value
    done = subprocess.run([sys.executable, __file__, sys.argv[1], str(file)], pass_fds=[file], capture_output=True, text=True)
    os.close(file)
    c.expect("the child", done.returncode == 0 and done.stdout == "fine\n", (done.returncode, done.stdout, done.stderr))
    c.expect("what it wrote", (hip.read(base, 1000) == 2 * values).all())
    with open("/dev/zero", "rb") as f:
        c.expect("a file of nothing", hip.code("hipMemImportFromShareableHandle", ctypes.byref(shared), ctypes.c_void_p(f.fileno()), 1) == INVALID_VALUE)


def child(hip, file):
    for form in (ctypes.c_void_p(file), ctypes.byref(ctypes.c_int(file))):
        handle = hip.made("hipMemImportFromShareableHandle", form, 1)
    base = hip.made("hipMemAddressReserve", size(LARGE), size(0), None, ctypes.c_ulonglong(0))
    hip.ok("hipMemMap", base, size(LARGE), size(0), handle, ctypes.c_ulonglong(0))
    hip.ok("hipMemSetAccess", base, size(LARGE), ctypes.byref(access(READ_WRITE)), size(1))
    assert hip.run("double_it", base, ctypes.c_int(1000), groups=32) == SUCCESS
    print("fine")


def main():
    targets = ["gfx1100", "gfx1030"]
    if len(sys.argv) == 2:
        codes = [os.spawnve(os.P_WAIT, sys.executable, [sys.executable, __file__, sys.argv[1], "check" + check],
                            dict(os.environ, RDNA_EMULATE=",".join(targets), RDNA_EMULATE_CHECK=check, RDNA_EMULATE_EXITCODE="0"))
                 for check in ("0", "1")]
        return max(codes)
    hip, checks = Hip(sys.argv[1], targets, SOURCE), Checks("virtual memory,")
    if sys.argv[2].isdigit():
        return child(hip, int(sys.argv[2]))
    for test in (test_neighbours, test_access, test_two_addresses, test_unwritten, test_two_devices, test_refusals, test_other_processes):
        test(hip, checks)
    return checks.report(f"{sys.argv[2]}: ")


if __name__ == "__main__":
    sys.exit(main())
