"""Whole launches: ids, waves and groups that wait for each other, traps and faults, counters. Usage: dispatch_test.py [emu_step]"""
import os
import struct
import sys

import numpy as np

from emulator import MEMORY, Checks, Emulator, Kernel, assemble, compile_hip, places

SOURCE = """
typedef unsigned u32;
typedef unsigned long long u64;
#define KERNEL extern "C" __attribute__((global)) void
#define TX __builtin_amdgcn_workitem_id_x()
#define BX __builtin_amdgcn_workgroup_id_x()
#define AGENT __HIP_MEMORY_SCOPE_AGENT
#define GROUP __HIP_MEMORY_SCOPE_WORKGROUP
KERNEL ids(u32 *out, u32 bx, u32 by, u32 bz, u32 gx, u32 gy) {
  u32 x = TX, y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
  u32 X = BX, Y = __builtin_amdgcn_workgroup_id_y(), Z = __builtin_amdgcn_workgroup_id_z();
  u32 thread = x + bx * (y + by * z), group = X + gx * (Y + gy * Z);
  out[group * bx * by * bz + thread] = x | y << 4 | z << 8 | X << 12 | Y << 16 | Z << 20;
}
// each group waits for the one after it
KERNEL backwards(u32 *flag, u32 *out, u32 groups) {
  u32 b = BX;
  if (TX == 0) {
    if (b + 1 < groups)
      while (!__hip_atomic_load(flag + b + 1, __ATOMIC_ACQUIRE, AGENT)) __builtin_amdgcn_s_sleep(1);
    out[b] = b + 1 < groups ? out[b + 1] + 1 : 1;
    __hip_atomic_store(flag + b, 1, __ATOMIC_RELEASE, AGENT);
  }
}
// without a pause between looks
KERNEL backwards_hot(u32 *flag, u32 *out, u32 groups) {
  u32 b = BX;
  if (TX == 0) {
    if (b + 1 < groups)
      while (!__hip_atomic_load(flag + b + 1, __ATOMIC_ACQUIRE, AGENT)) ;
    out[b] = b + 1 < groups ? out[b + 1] + 1 : 1;
    __hip_atomic_store(flag + b, 1, __ATOMIC_RELEASE, AGENT);
  }
}
KERNEL lock(u32 *word, u32 *total, u32 turns) {
  for (u32 i = 0; i < turns; i++) {
    if (TX % 32 == 0) {
      u32 free = 0;
      while (!__hip_atomic_compare_exchange_strong(word, &free, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED, AGENT)) free = 0;
      *(volatile u32 *)total = *(volatile u32 *)total + 1;
      __hip_atomic_store(word, 0, __ATOMIC_RELEASE, AGENT);
    }
  }
}
// the waves of a group pass a token through LDS, the last wave first
KERNEL token(u32 *out) {
  __attribute__((shared)) static u32 turn;
  u32 wave = TX / 32, waves = 8;
  if (TX == 0) __hip_atomic_store(&turn, waves - 1, __ATOMIC_RELEASE, GROUP);
  __builtin_amdgcn_s_barrier();
  if (TX % 32 == 0) {
    while (__hip_atomic_load(&turn, __ATOMIC_ACQUIRE, GROUP) != wave) ;
    out[waves - 1 - wave] = wave;
    __hip_atomic_store(&turn, wave - 1, __ATOMIC_RELEASE, GROUP);
  }
}
// group 0 counts up in both halves of its pairs until group 1 has looked at them so many times: a flag and its value
KERNEL pairs(u64 *pair, u32 *done, u32 *torn, u32 looks) {
  if (BX == 0) {
    for (u64 i = 1; !__hip_atomic_load(done, __ATOMIC_RELAXED, AGENT); i++)
      __hip_atomic_store(pair + TX, i << 32 | i, __ATOMIC_RELAXED, AGENT);
    return;
  }
  u32 count = 0;
  while (!__hip_atomic_load(pair + TX, __ATOMIC_RELAXED, AGENT)) ;
  for (u32 i = 0; i < looks; i++) {
    u64 seen = __hip_atomic_load(pair + TX, __ATOMIC_RELAXED, AGENT);
    count += (u32)seen != (u32)(seen >> 32);
  }
  torn[TX] = count;
  __hip_atomic_store(done, 1, __ATOMIC_RELAXED, AGENT);
}
KERNEL tree(const u32 *in, u32 *out) {
  __attribute__((shared)) static u32 part[256];
  part[TX] = in[BX * 256 + TX];
  for (u32 step = 128; step; step /= 2) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    if (TX < step) part[TX] += part[TX + step];
  }
  if (TX == 0) out[BX] = part[0];
}
// who comes when, a number for each wave; and a sum that depends on it
KERNEL turns(u32 *count, u32 *order, float *sum) {
  if (TX % 32) return;
  u32 self = BX * 4 + TX / 32;
  order[__hip_atomic_fetch_add(count, 1, __ATOMIC_RELAXED, AGENT)] = self;
  __hip_atomic_fetch_add(sum, self % 7 ? 1.0f / (float)(self + 1) : 1e6f, __ATOMIC_RELAXED, AGENT);
}
KERNEL copy(const u32 *in, u32 *out, u32 n) { u32 i = BX * 64 + TX; if (i < n) out[i] = in[i]; }
KERNEL strided(const u32 *in, u32 *out) { out[TX] = in[TX * 32]; }
KERNEL banks(u32 *out, u32 stride) {
  __attribute__((shared)) static u32 room[32 * 33];
  room[TX * stride] = TX;
  out[TX] = room[TX * stride];
}
#define SCALAR_LOAD(n)                                                                                             \\
  KERNEL load_##n(const u32 *in, u32 *out, u32 at, u32 used) {                                                     \\
    typedef u32 vector __attribute__((ext_vector_type(n)));                                                        \\
    vector v;                                                                                                      \\
    asm volatile("s_load_dwordx" #n " %0, %1, 0x0\\n s_waitcnt lgkmcnt(0)" : "=&s"(v) : "s"(in + at));             \\
    for (u32 i = 0; i < n; i++) if (i < used) out[i] = v[i];                                                       \\
  }
SCALAR_LOAD(2) SCALAR_LOAD(4) SCALAR_LOAD(8) SCALAR_LOAD(16)
KERNEL trap(u32 *out) { if (out[TX] == 7) __builtin_trap(); }
KERNEL ends_early(u32 *out) {
  if (TX < 32) return;
  __builtin_amdgcn_s_barrier();
  out[TX] = TX;
}
"""
LOOKS = 300000  # at each of 32 pairs that another host thread is storing


class Tester(Checks):
    def __init__(self, program, emulator, target, path):
        super().__init__(target)
        self.program, self.emulator, self.target, self.path = program, emulator, target, path

    def launch(self, name, buffers, values, groups, threads, **more):
        kernel = Kernel(self.path, name, self.target)
        offsets, _ = places(buffers)
        kernarg = struct.pack(f"<{len(buffers)}Q{len(values)}I", *[MEMORY + o for o in offsets], *values)
        groups, threads = (tuple(x) if isinstance(x, tuple) else (x, 1, 1) for x in (groups, threads))
        return self.emulator.launch(kernel, kernarg.ljust(kernel.kernarg_bytes, b"\0"), buffers, groups, threads, **more)


def zeros(n):
    return np.zeros(n, np.uint32)


def test_ids(t):
    for block, grid in (((5, 3, 4), (3, 2, 5)), ((64, 1, 1), (7, 1, 1)), ((1, 9, 2), (1, 4, 3)), ((32, 32, 1), (2, 1, 1))):
        n = int(np.prod(block) * np.prod(grid))
        for threads in (1, 3):
            r = t.launch("ids", [zeros(n)], [*block, *grid[:2]], grid, block, host_threads=threads)
            want = [x | y << 4 | z << 8 | X << 12 | Y << 16 | Z << 20
                    for Z in range(grid[2]) for Y in range(grid[1]) for X in range(grid[0])
                    for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
            t.expect("ids", r.status == 0 and r.buffers[0].tolist() == want, r.text)


def test_progress(t):
    for name, groups in (("backwards", 300), ("backwards_hot", 8)):
        for threads in (1, 2):
            r = t.launch(name, [zeros(groups), zeros(groups)], [groups], groups, 32, host_threads=threads)
            t.expect(name, r.status == 0 and r.buffers[1].tolist() == list(range(groups, 0, -1)), r.text)
    for threads in (1, 2):
        r = t.launch("lock", [zeros(1), zeros(1)], [20], 6, 256, host_threads=threads)
        t.expect("lock", r.status == 0 and int(r.buffers[1][0]) == 20 * 6 * 8, r.text or int(r.buffers[1][0]))
    r = t.launch("pairs", [zeros(64), zeros(1), np.full(32, 9, np.uint32)], [LOOKS], 2, 32, host_threads=2)
    t.expect("pairs", r.status == 0 and not r.buffers[2].any(), r.text or f"{r.buffers[2].sum()} were seen half written")
    r = t.launch("token", [zeros(8)], [], 1, 256)
    t.expect("token", r.status == 0 and r.buffers[0].tolist() == list(range(7, -1, -1)), r.text)
    data = np.random.default_rng(1).integers(0, 1 << 20, 256 * 40, dtype=np.uint32)
    r = t.launch("tree", [data, zeros(40)], [], 40, 256, host_threads=2)
    t.expect("tree", r.status == 0 and np.array_equal(r.buffers[1], data.reshape(40, 256).sum(1, dtype=np.uint32)), r.text)
    r = t.launch("ends_early", [zeros(64)], [], 1, 64)
    t.expect("ends_early", r.status == 0 and r.buffers[0].tolist() == [0] * 32 + list(range(32, 64)), r.text)


def test_shuffle(t):
    waves = 37 * 4

    def turns(emulator, **more):
        kept, t.emulator = t.emulator, emulator
        r = t.launch("turns", [zeros(1), zeros(waves), np.zeros(1, np.float32)], [], 37, 128, **more)
        t.emulator = kept
        order = r.buffers[1].tolist()
        t.expect("turns: each once", r.status == 0 and sorted(order) == list(range(waves)), (r.text, more, order))
        return order, float(r.buffers[2][0])

    plain = turns(t.emulator)
    t.expect("turns without a shuffle", plain[0] == list(range(waves)), plain)
    seeds = [turns(t.emulator, shuffle=seed) for seed in range(1, 9)]
    orders = {tuple(order) for order, _ in seeds} | {tuple(plain[0])}
    t.expect("turns of eight seeds", len(orders) == 9, orders)
    t.expect("a sum that depends on the order", len({total for _, total in seeds}) > 1, [total for _, total in seeds])
    t.expect("the same seed again", turns(t.emulator, shuffle=3) == seeds[2])
    for order, _ in seeds:
        groups = [wave // 4 for wave in order[::4]]
        t.expect("groups out of order", len(set(groups)) == 37 and groups != sorted(groups), groups)
        within = {tuple(wave % 4 for wave in order[i:i + 4]) for i in range(0, waves, 4)}
        t.expect("waves out of order", len(within) > 2, within)
    for threads in (2, 3):
        turns(t.emulator, shuffle=5, host_threads=threads)
    os.environ["RDNA_EMULATE_SHUFFLE"] = "3"
    other = Emulator(t.program)
    t.expect("the environment's seed", turns(other) == seeds[2])
    other.close()
    del os.environ["RDNA_EMULATE_SHUFFLE"]
    # what waits as it must is as right as before
    block, grid = (5, 3, 4), (3, 2, 5)
    want = t.launch("ids", [zeros(1800)], [*block, *grid[:2]], grid, block).buffers[0]
    data = np.random.default_rng(2).integers(0, 1 << 20, 256 * 41, dtype=np.uint32)
    sums = data.reshape(41, 256).sum(1, dtype=np.uint32).tolist()
    for seed in (1, 2, 3):
        r = t.launch("ids", [zeros(1800)], [*block, *grid[:2]], grid, block, shuffle=seed)
        t.expect("ids shuffled", r.status == 0 and np.array_equal(r.buffers[0], want), r.text)
        r = t.launch("tree", [data, zeros(41)], [], 41, 256, shuffle=seed, check=True)
        t.expect("tree shuffled", r.status == 0 and r.buffers[1].tolist() == sums, r.text)
        r = t.launch("backwards", [zeros(300), zeros(300)], [300], 300, 32, shuffle=seed)
        t.expect("backwards shuffled", r.status == 0 and r.buffers[1].tolist() == list(range(300, 0, -1)), r.text)
        r = t.launch("token", [zeros(8)], [], 1, 256, shuffle=seed)
        t.expect("token shuffled", r.status == 0 and r.buffers[0].tolist() == list(range(7, -1, -1)), r.text)
    for groups in (1, 2, 3, 5, 64, 65, 4097):
        n = groups * 64
        r = t.launch("copy", [np.arange(n, dtype=np.uint32), zeros(n)], [n], groups, 64, shuffle=7, counters=True)
        t.expect("each group once", r.status == 0 and r.counters["groups"] == groups and
                 np.array_equal(r.buffers[1], np.arange(n)), r.text)


def test_failures(t):
    r = t.launch("trap", [np.full(64, 7, np.uint32)], [], 1, 32)
    t.expect("trap", r.status == 1 and "s_trap" in r.text and "work-group (0, 0, 0)" in r.text, r.text)
    r = t.launch("copy", [zeros(100), zeros(99)], [100], 2, 64)
    t.expect("store out of bounds", r.status == 2 and "writes 4 bytes" in r.text and "buffer 1" in r.text and "lane 3" in r.text
             and "wave 1" in r.text and "store" in r.text, r.text)
    r = t.launch("copy", [zeros(90), zeros(100)], [100], 2, 64)
    t.expect("load out of bounds", r.status == 2 and "reads 4 bytes" in r.text and "buffer 0" in r.text, r.text)
    kernel = Kernel(t.path, "copy", t.target)
    for text, at, code in (("no instruction", 0, b"\xff\xff\xff\xff" * 4), ("outside", 0, b"\x00\x70" + (b"\xa0\xbf" if t.target != "gfx1030" else b"\x82\xbf"))):
        image = bytearray(kernel.image)
        image[kernel.entry + at:kernel.entry + at + len(code)] = code
        kernel.image = bytes(image)
        r = t.emulator.launch(kernel, bytes(64), [zeros(8)], (1, 1, 1), (32, 1, 1))
        t.expect(text, r.status == 1 and text in r.text, r.text)
    if t.target == "gfx1201":  # a barrier that nobody has signaled, or whose signal nobody awaited before its end
        for lines, text in ((["s_barrier_wait -1"], "The group waits for ever: 1 of its waves wait at a barrier that 0"),
                            (["s_barrier_signal -1", "s_barrier_wait -1"] * 2, ""), (["s_barrier_signal -1"], ""),
                            (["s_barrier_signal -1", "s_barrier_signal -1", "s_barrier_wait -1", "s_barrier_wait -1"],
                             "waits for ever")):
            r = t.emulator.step(t.target, b"".join(assemble(t.target, lines)), np.zeros(128, np.uint32), zeros((4, 32)))
            t.expect(f"split barrier {lines}", bool(r.status) == bool(text) and text in r.text, r.text)
    small = Kernel(t.path, "tree", t.target)
    descriptor = bytearray(small.descriptor)
    descriptor[48] &= 0xc0  # the least registers that can be asked for
    image = bytearray(small.image)
    v200 = bytes.fromhex("8002907f")  # v_mov_b32 v200, 0
    image[small.entry:small.entry + 4] = v200
    small.image, small.descriptor = bytes(image), bytes(descriptor)
    r = t.emulator.launch(small, bytes(64), [zeros(8)], (1, 1, 1), (32, 1, 1))
    t.expect("register past the allocation", r.status == 1 and "v200" in r.text and "allocates 8" in r.text, r.text)


def test_widened_loads(t):
    """Compilers read 12 bytes with a load of 16 where it cannot leave the page."""
    for width, dwords, at in ((2, 1, 0), (4, 3, 0), (4, 5, 2), (8, 7, 0), (8, 11, 8), (16, 9, 0), (16, 13, 0)):
        data = np.random.default_rng(width + dwords).integers(0, 1 << 32, dwords, dtype=np.uint32)
        for check in (False, True):
            r = t.launch(f"load_{width}", [data, zeros(16)], [at, dwords - at], 1, 1, check=check)
            text = f"{dwords} dwords, {width} of them from {at}, checker {check}"
            t.expect(text, r.status == 0 and r.buffers[1][:dwords - at].tolist() == data[at:].tolist(),
                     r.text or r.reports or r.buffers[1])
        r = t.launch(f"load_{width}", [data, zeros(16)], [at, dwords - at + 1], 1, 1, check=True)
        t.expect("what is past the end is used", [x[0] for x in r.reports] == ["uninitialized"], r.reports)
        r = t.launch(f"load_{width}", [data, zeros(16)], [at, dwords - at + 1], 1, 1)
        t.expect("a pattern is past the end", r.status == 0 and r.buffers[1][dwords - at] == 0xcdcdcdcd, r.buffers[1])
    for width, dwords, at in ((4, 3, 3), (4, 3, 2), (8, 7, 4), (16, 3, 64), (16, 12, 8)):
        for check in (False, True):
            r = t.launch(f"load_{width}", [zeros(dwords), zeros(16)], [at, 0], 1, 1, check=check)
            t.expect(f"{width} dwords from {at} of {dwords}", r.status == 2 and "buffer 0" in r.text, r.text or r.status)


def test_lds_addresses(t):
    """Register plus offset has 32 bits: with less in the register and more in the offset nothing changes."""
    rng = np.random.default_rng(5)
    unit = {"b32": 4, "b64": 8}
    forms = [f"ds_read_{kind} v[8:11], v0" for kind in ("b128",)]
    forms += [f"ds_read_{kind} v8, v0" for kind in ("u8", "i8", "u16", "i16", "b32", "u16_d16", "u16_d16_hi")]
    forms += ["ds_read_b64 v[8:9], v0", "ds_read_b96 v[8:10], v0", "ds_write_b8 v0, v1", "ds_write_b16 v0, v1",
              "ds_write_b32 v0, v1", "ds_write_b64 v0, v[2:3]", "ds_write_b128 v0, v[2:5]", "ds_add_u32 v0, v1",
              "ds_add_rtn_u32 v8, v0, v1", "ds_cmpst_rtn_b32 v8, v0, v1, v2", "ds_max_rtn_u64 v[8:9], v0, v[2:3]",
              "ds_wrxchg_rtn_b32 v8, v0, v1", "ds_min_rtn_f32 v8, v0, v1"]
    pairs = []
    for far in ("", "st64"):
        for kind, d in (("b32", ("v1", "v2", "v[8:9]")), ("b64", ("v[2:3]", "v[4:5]", "v[8:11]"))):
            scale = unit[kind] * (64 if far else 1)
            pairs += [(f"ds_read2{far}_{kind} {d[2]}, v0", scale), (f"ds_write2{far}_{kind} v0, {d[0]}, {d[1]}", scale),
                      (f"ds_wrxchg2{far}_rtn_{kind} {d[2]}, v0, {d[0]}, {d[1]}", scale)]
    cases = [(f + " offset:4096", f, 4096) for f in forms]
    cases += [(f"{f} offset0:4 offset1:5", f"{f} offset1:1", 4 * scale) for f, scale in pairs]
    if t.target == "gfx1030":
        rename = str
    else:
        def rename(line):
            return (line.replace("ds_cmpst", "ds_cmpstore").replace("ds_wrxchg", "ds_storexchg")
                    .replace("storexchg2", "storexchg_2addr").replace("2addrst64", "2addr_stride64"))
    lines = [rename(line) for case in cases for line in case[:2]]
    code = assemble(t.target, lines)
    vectors = rng.integers(0, 1 << 32, (16, 32), dtype=np.uint32)
    lds = rng.integers(0, 256, 8192, dtype=np.uint8).tobytes()
    scalars = np.zeros(128, np.uint32)
    scalars[126] = 0xfffffffe
    wait = assemble(t.target, ["s_waitcnt lgkmcnt(0)"])[0]
    for i, (text, _, offset) in enumerate(cases):
        at = 16 * np.arange(32, dtype=np.int64)
        ends = []
        for address, word in ((at - offset + 64, code[2 * i]), (at + 64, code[2 * i + 1])):
            vectors[0] = (address % (1 << 32)).astype(np.uint32)
            ends.append(t.emulator.step(t.target, word + wait, scalars, vectors, lds=lds))
        same = np.array_equal(ends[0].v[1:], ends[1].v[1:]) and ends[0].lds == ends[1].lds
        t.expect(f"{text}, negative address", ends[0].status == 0 and same, ends[0].text)
        changed = ends[0].lds != lds or not np.array_equal(ends[0].v[8:], vectors[8:])
        t.expect(f"{text} does something", changed)


def test_counters(t):
    counters = [t.launch("tree", [zeros(256 * 40), zeros(40)], [], 40, 256, host_threads=n, counters=True).counters
                for n in (1, 2, 7)]
    t.expect("counters", counters[0] == counters[1] == counters[2], "differ with the number of threads")
    c = counters[0]
    t.expect("counters", c["groups"] == 40 and c["waves"] == 320 and c["n_barrier"] == 320 * 8, c)
    t.expect("counters", c["load_bytes"] == 4 * 256 * 40 and c["store_bytes"] == 4 * 40, c)
    t.expect("lines", c["load_lines_64"] == 320 * 2 and c["load_lines_128"] == 320 and c["store_lines_64"] == 40, c)
    c = t.launch("strided", [zeros(1024), zeros(32)], [], 1, 32, counters=True).counters
    t.expect("lines", c["load_lines_64"] == 32 and c["load_lines_128"] == 32 and c["store_lines_128"] == 1, c)
    for stride, conflicts in ((1, 0), (2, 1), (32, 31), (33, 0), (16, 15)):
        c = t.launch("banks", [zeros(32)], [stride], 1, 32, counters=True).counters
        accesses = c["n_lds"]
        t.expect("banks", c["lds_conflict_cycles"] == conflicts * accesses and c["lds_bytes"] == 128 * accesses, c)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    emulator = Emulator(program)
    testers = (Tester(program, emulator, target, compile_hip(SOURCE, target)) for target in ("gfx1100", "gfx1030", "gfx1201"))
    return emulator.run_tests(testers, (test_ids, test_progress, test_shuffle, test_failures, test_widened_loads,
                                        test_lds_addresses, test_counters))


if __name__ == "__main__":
    sys.exit(main())
