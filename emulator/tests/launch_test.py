"""Launches through the emulated HIP library: stacks that the compiler cannot know, arguments that are not passed, kernels
that never end, constants beside each other. Usage: launch_test.py librdna_emulator.so"""
import ctypes
import os
import struct
import sys

import numpy as np

from emulator import compile_hip
from hip_library import said

LIMIT = "30000000"  # instructions of a wave

SOURCE = """
#define KERNEL extern "C" __attribute__((global)) void
#define TX __builtin_amdgcn_workitem_id_x()
static __attribute__((device)) __attribute__((noinline)) int descend(int n, volatile int *above) {
  volatile int room[32];
  for (int i = 0; i < 32; i++) room[i] = n + i;
  return n <= 0 ? room[3] : descend(n - 1, room) + room[5] + above[0];
}
KERNEL scaled(int *out, int *tmp, int factor, int add, int last) { out[TX] = (int)TX * factor + add * last; }
#define LOAD(at) __hip_atomic_load(at, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)
#define STORE(at, value) __hip_atomic_store(at, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT)
// the first `waiting` groups wait for the last one
KERNEL for_the_last(int *out, int waiting, int last) {
  int group = __builtin_amdgcn_workgroup_id_x();
  if (group < waiting) while (!LOAD(out)) __builtin_amdgcn_s_sleep(1);
  if (group == last) STORE(out, 7);
}
// without a pause, by an operation that changes nothing, and behind a barrier
KERNEL for_nothing(int *out) {
  int want = 5;
  if (TX < 32) while (!__hip_atomic_compare_exchange_strong(out, &want, 6, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                                            __HIP_MEMORY_SCOPE_AGENT)) want = 5;
  __builtin_amdgcn_s_barrier();
}
KERNEL for_work(int *out, int work) {
  if (__builtin_amdgcn_workgroup_id_x() == 0 && __builtin_amdgcn_grid_size_x() > 32) while (!LOAD(out)) ;
  else {
    int sum = 0;
    for (int i = 0; i < work; i++) asm volatile("v_add_nc_u32 %0, 1, %0" : "+v"(sum));
    if (TX == 0) STORE(out, sum);
  }
}
// group 0 counts until it is told to stop, with the same registers each time; group 1 waits for the count
KERNEL for_count(int *out, int count) {
  if (TX) return;
  if (__builtin_amdgcn_workgroup_id_x() == 0) {
    while (!LOAD(out)) __hip_atomic_fetch_add(out + 1, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (LOAD(out + 1) < count) ;
    STORE(out, 1);
  }
}
// a wave waits for the one before it, takes what that wrote beside its flag, and hands on one more
KERNEL chain(int *out) {
  int link = __builtin_amdgcn_workgroup_id_x() * 8 + TX / 32, *flags = out + 512;
  if (TX % 32) return;
  if (link) while (!LOAD(flags + link - 1)) ;
  out[link] = link ? out[link - 1] + 1 : 1;
  STORE(flags + link, 1);
}
__attribute__((constant)) int near[8] = {1, 2, 3, 4, 5, 6, 7, 8}, behind[8] = {9};
KERNEL one_of(int *out, int i) { out[TX] = near[i]; }
KERNEL endless(int *out) { for (int i = 0;; i++) asm volatile("v_mov_b32 v0, %0" : : "s"(i) : "v0"); }
KERNEL recursion(int *out, int n) { volatile int first[2] = {0, 0}; out[TX] = descend(n, first); }
"""
ILLEGAL_ADDRESS, LAUNCH_FAILURE, UNSUPPORTED_LIMIT, INVALID_VALUE = 700, 719, 215, 1
STACK, PRINTF = 0, 1


class Hip:
    def __init__(self, library, target):
        self.target, self.library = target, ctypes.CDLL(library)
        self.checked = os.environ["RDNA_EMULATE_CHECK"] == "1"
        self.module = ctypes.c_void_p()
        path = compile_hip(SOURCE, target, ("-O2",))
        with open(path, "rb") as f:
            image = f.read()
        self.call("hipModuleLoadData", ctypes.byref(self.module), image)
        self.out = ctypes.c_void_p()
        self.call("hipMalloc", ctypes.byref(self.out), ctypes.c_size_t(4096))

    def code(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def call(self, name, *arguments):
        code = self.code(name, *arguments)
        if code:
            raise RuntimeError(f"{name}: {code}")

    def launch(self, kernel, *values, groups=1, threads=32, packed=None):
        """The code of the launch or of what it did, and what the buffer holds. `packed`: all arguments as bytes."""
        function = ctypes.c_void_p()
        self.call("hipModuleGetFunction", ctypes.byref(function), self.module, kernel.encode())
        self.call("hipMemset", self.out, 0, ctypes.c_size_t(4096))
        pointers = (ctypes.c_void_p * (len(values) + 1))(
            ctypes.addressof(self.out), *[ctypes.addressof(v) for v in values])
        extra = None
        if packed is not None:  # HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
            size = ctypes.c_size_t(len(packed))
            extra = (ctypes.c_void_p * 5)(1, ctypes.cast(packed, ctypes.c_void_p), 2, ctypes.addressof(size), 3)
            pointers = None
        code = self.code("hipModuleLaunchKernel", function, groups, 1, 1, threads, 1, 1, 0, None, pointers, extra)
        code = code or self.code("hipDeviceSynchronize")
        back = np.zeros(1024, np.int32)
        self.call("hipMemcpy", back.ctypes.data_as(ctypes.c_void_p), self.out, ctypes.c_size_t(4096), 2)
        return code, back

    def launch_two(self, first, values, second, more):
        """Two kernels on streams of their own."""
        self.call("hipMemset", self.out, 0, ctypes.c_size_t(4096))
        keep, streams = [], []
        for kernel, numbers in ((first, values), (second, more)):
            function, stream = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("hipModuleGetFunction", ctypes.byref(function), self.module, kernel.encode())
            self.call("hipStreamCreateWithFlags", ctypes.byref(stream), 1)  # hipStreamNonBlocking
            numbers = [ctypes.c_int(n) for n in numbers]
            pointers = (ctypes.c_void_p * (len(numbers) + 1))(
                ctypes.addressof(self.out), *[ctypes.addressof(n) for n in numbers])
            keep += [numbers, pointers]
            streams.append(stream)
            self.call("hipModuleLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, pointers, None)
        code = self.code("hipDeviceSynchronize")
        for stream in streams:
            self.call("hipStreamDestroy", stream)
        back = np.zeros(1024, np.int32)
        self.call("hipMemcpy", back.ctypes.data_as(ctypes.c_void_p), self.out, ctypes.c_size_t(4096), 2)
        return code, back


class Checks:
    def __init__(self):
        self.failures, self.count = 0, 0

    def expect(self, text, condition, detail=""):
        self.count += 1
        if not condition:
            self.failures += 1
            print(f"{text}: {detail}")


def depth_sum(n):
    total, first = 3, 0  # what the innermost level, of n = 0, gives
    for level in range(1, n + 1):
        above = first if level == n else level + 1
        total += level + 5 + above
    return total


def test_stack(hip, checks):
    """The limit is that of AMD's runtime: 1024 bytes a work-item for all of a stack that is not known beforehand."""
    limit = ctypes.c_size_t()
    hip.call("hipDeviceGetLimit", ctypes.byref(limit), STACK)
    checks.expect("the first limit", limit.value == 1024, limit.value)
    for depth in (0, 1, 3):
        code, out = hip.launch("recursion", ctypes.c_int(depth))
        checks.expect(f"depth {depth}", code == 0 and (out[:32] == depth_sum(depth)).all(), (code, out[:4], depth_sum(depth)))
    (code, _), text = said(lambda: hip.launch("recursion", ctypes.c_int(20)))
    checks.expect("depth 20 of 1024 bytes", code == ILLEGAL_ADDRESS and "scratch, which has 1024 bytes" in text and
                  "hipLimitStackSize" in text, (code, text))
    hip.call("hipDeviceSetLimit", STACK, ctypes.c_size_t(8192))
    hip.call("hipDeviceGetLimit", ctypes.byref(limit), STACK)
    code, out = hip.launch("recursion", ctypes.c_int(20))
    checks.expect("depth 20 of 8192 bytes", code == 0 and limit.value == 8192 and (out[:32] == depth_sum(20)).all(),
                  (code, limit.value, out[:4], depth_sum(20)))
    (code, _), text = said(lambda: hip.launch("recursion", ctypes.c_int(1000)))
    checks.expect("endless descent", code == ILLEGAL_ADDRESS and "scratch, which has 8192 bytes" in text, (code, text))
    checks.expect("too large a stack", hip.code("hipDeviceSetLimit", STACK, ctypes.c_size_t(131072)) == INVALID_VALUE)
    checks.expect("another limit", hip.code("hipDeviceSetLimit", PRINTF, ctypes.c_size_t(1)) == UNSUPPORTED_LIMIT)
    hip.call("hipDeviceSetLimit", STACK, ctypes.c_size_t(1024))


def test_short_arguments(hip, checks):
    """16 or 24 bytes of 28 are passed: what is missing is not defined."""
    whole = struct.pack("<QQiii", hip.out.value, 0, 3, 5, 7)
    code, out = hip.launch("scaled", packed=whole)
    checks.expect("all arguments packed", code == 0 and out[:32].tolist() == [3 * i + 35 for i in range(32)], (code, out[:4]))
    for given in (16, 24):
        (code, _), text = said(lambda: hip.launch("scaled", packed=whole[:given]))
        found = code == LAUNCH_FAILURE and f"the launch has passed {given} of 28" in text
        checks.expect(f"{given} bytes of 28", found if hip.checked else code == 0 and not text, (code, text))


def test_variables(hip, checks):
    """What launches know of an address is kept: the first reads where it points, the third in the variable behind."""
    for i in (0, 7):
        code, out = hip.launch("one_of", ctypes.c_int(i))
        checks.expect(f"element {i}", code == 0 and out[0] == i + 1, (code, out[0]))
    (code, out), text = said(lambda: hip.launch("one_of", ctypes.c_int(8)))
    found = code == LAUNCH_FAILURE and "byte 0 of behind and 0 bytes past the end of near, which has 32 bytes" in text
    checks.expect("element 8 of 8", (found if hip.checked else code == 0 and not text) and out[0] == 9, (code, text))


def test_waits(hip, checks):
    """A card of 36 (gfx1030) or 48 WGPs holds 64 waves in each: who waits for a group beyond them waits for ever."""
    if hip.checked:
        return
    held = 64 * (36 if hip.target == "gfx1030" else 48)
    groups = held + 100
    code, out = hip.launch("for_the_last", ctypes.c_int(held - 1), ctypes.c_int(groups - 1), groups=groups)
    checks.expect("all places but one wait for the last group", code == 0 and out[0] == 7, (code, out[0]))
    (code, _), text = said(
        lambda: hip.launch("for_the_last", ctypes.c_int(groups - 1), ctypes.c_int(groups - 1), groups=groups))
    checks.expect("all places wait for the last group", code == LAUNCH_FAILURE and "for_the_last" in text and
                  f"holds {held} of the {groups} work-groups at once" in text and "100 cannot begin" in text, (code, text))
    (code, _), text = said(lambda: hip.launch("for_nothing", threads=64))
    checks.expect("a lock that nobody releases", code == LAUNCH_FAILURE and "every wave that has not ended waits" in text,
                  (code, text))
    os.environ["RDNA_EMULATE_THREADS"] = "64"  # of which some begin when the others have taken all groups
    (code, _), text = said(lambda: hip.launch("for_the_last", ctypes.c_int(1), ctypes.c_int(-1), groups=64))
    del os.environ["RDNA_EMULATE_THREADS"]
    checks.expect("one of many groups waits for ever", code == LAUNCH_FAILURE and "for_the_last" in text and
                  "every wave that has not ended waits" in text, (code, text))
    work = 7000000  # longer than the patience
    code, out = hip.launch("for_work", ctypes.c_int(work), groups=2)
    checks.expect("a group that works for long", code == 0 and out[0] == work, (code, out[0]))
    count = 1000000
    code, out = hip.launch("for_count", ctypes.c_int(count), groups=2)
    checks.expect("a group that counts in memory", code == 0 and out[1] >= count, (code, out[:2]))
    # the one that works is there first: on a busy machine the other may have waited for longer than its patience before
    code, out = hip.launch_two("for_work", (work,), "for_the_last", (1, -1))
    checks.expect("a kernel of another stream that works for long", code == 0 and out[0] == work, (code, out[0]))


def test_limit(hip, checks):
    """A wave that never ends. It has a process of its own: beside it, a wave that waits for a group whose host thread
    finds no processor would execute as many instructions."""
    (code, _), text = said(lambda: hip.launch("endless"))
    checks.expect("an endless loop", code == LAUNCH_FAILURE and "endless" in text and
                  f"has executed {LIMIT} instructions, as many as RDNA_EMULATE_LIMIT allows" in text, (code, text))


def test_handing_on(hip, checks):
    """What one wave wrote before it set a flag is another's when it has seen the flag, whichever threads run them."""
    for i in range(20):
        (code, out), text = said(lambda: hip.launch("chain", threads=256, groups=64))
        checks.expect("a chain of waves", code == 0 and not text and (out[:512] == np.arange(1, 513)).all(), (code, text))


def main():
    checks = Checks()
    if len(sys.argv) == 2:  # one process a target: devices are made once
        for target in ("gfx1100", "gfx1030"):
            for check, tests in (("0", "all"), ("1", "all"), ("0", "limit")):
                # it provokes failures, and says itself whether they were right
                environment = dict(os.environ, RDNA_EMULATE=target, RDNA_EMULATE_CHECK=check, RDNA_EMULATE_EXITCODE="0",
                                   RDNA_EMULATE_PATIENCE="0.25", RDNA_EMULATE_LIMIT=LIMIT if tests == "limit" else "0")
                arguments = [sys.executable, *sys.argv, target, tests]
                checks.failures += os.spawnve(os.P_WAIT, sys.executable, arguments, environment)
        return 1 if checks.failures else 0
    library, target, tests = sys.argv[1:]
    hip = Hip(library, target)
    for test in [test_limit] if tests == "limit" else [test_stack, test_short_arguments, test_variables, test_handing_on,
                                                                    test_waits]:
        test(hip, checks)
    print(f"{target}, {tests}: {checks.count} checks, {checks.failures} failures")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
