"""Calls of the HIP interface around memory and launches: contexts, libraries, memory and events of other processes, batches, attributes of
pointers, masks of streams, default streams of threads. Usage: calls_test.py librdna_emulator.so"""
import ctypes
import os
import subprocess
import sys

import numpy as np

from emulator import Checks, compile_hip
from hip_library import ILLEGAL_ADDRESS, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, SUCCESS, TO_HOST, Hip, said, size

SOURCE = """
extern "C" __attribute__((global)) void axpb(int *x, char skipped, int a, long long b) {
  int i = __builtin_amdgcn_workitem_id_x();
  x[i] = x[i] * a + b;
}
extern "C" __attribute__((global)) void other(int *x) { *x = 1; }
"""
INVALID_CONTEXT, NO_CODE, NOT_FOUND, NO_FILE, BAD_IMAGE, BAD_POINTER, DESTROYED = 201, 209, 500, 301, 200, 17, 709
JUNK = b"no code at all, and no bundle either" + bytes(64)
N = 32
P, u32, u64 = ctypes.c_void_p, ctypes.c_uint, ctypes.c_ulonglong


def test_contexts(hip, c):
    device = ctypes.c_int()

    def current():
        hip.ok("hipGetDevice", ctypes.byref(device))
        return device.value
    second = hip.made("hipCtxCreate", 0, 1)
    c.expect("a context is current when it is made", current() == 1 and hip.told("hipCtxGetCurrent", kind=P) == second.value)
    first = hip.made("hipDevicePrimaryCtxRetain", 0)
    hip.ok("hipCtxPushCurrent", first)
    c.expect("what is pushed", current() == 0)
    c.expect("what is popped", hip.told("hipCtxPopCurrent", kind=P) == first.value and current() == 1)
    hip.ok("hipCtxDestroy", second)
    c.expect("back where it began", current() == 0)
    c.expect("an empty stack", hip.code("hipCtxPopCurrent", ctypes.byref(P())) == INVALID_CONTEXT)
    c.expect("no context", [hip.code("hipCtxSetCurrent", P(8)), hip.code("hipCtxPushCurrent", P(8)), hip.code("hipCtxDestroy", P(8)), hip.code("hipCtxCreate", ctypes.byref(P()), 0, 7)] ==
             [INVALID_CONTEXT, INVALID_CONTEXT, INVALID_VALUE, INVALID_DEVICE])
    c.expect("a version", hip.told("hipCtxGetApiVersion", first) // 10000000 == 7)
    c.expect("flags", hip.told("hipCtxGetFlags") == 0)
    for attribute, value in enumerate((0, 1, 1, 0)):  # rank, access, atomics, arrays
        c.expect(f"attribute {attribute} of two devices", hip.made("hipDeviceGetP2PAttribute", attribute, 0, 1, kind=ctypes.c_int).value == value)
    c.expect("of one and the same", hip.code("hipDeviceGetP2PAttribute", ctypes.byref(device), 1, 0, 0) == INVALID_VALUE)
    kind, hops = u32(), u32()
    hip.ok("hipExtGetLinkTypeAndHopCount", 0, 1, ctypes.byref(kind), ctypes.byref(hops))
    c.expect("a link", (kind.value, hops.value) == (2, 1))
    hip.ok("hipDevicePrimaryCtxReset", 1)
    c.expect("peers by contexts", [hip.code("hipCtxEnablePeerAccess", second, 0) for _ in range(2)] == [SUCCESS, 704] and
             [hip.code("hipCtxDisablePeerAccess", second) for _ in range(2)] == [SUCCESS, 705])


def test_libraries(hip, c):
    """One handle of a kernel, and the function of it on each device that has code."""
    path = compile_hip(SOURCE, "gfx1100", ("-O2",))
    with open(path, "rb") as f:
        image = f.read()
    bundle = path + ".bundle"
    subprocess.run(["clang-19", "-x", "hip", "-std=c++17", "-nogpuinc", "-nogpulib", "--offload-device-only", "--gpu-bundle-output", "-O2",
                    "--offload-arch=gfx1100", "--offload-arch=gfx1030", path[:-len("hsaco")] + "hip", "-o", bundle], check=True)
    one = hip.made("hipLibraryLoadData", image, None, None, 0, None, None, 0)
    both = hip.made("hipLibraryLoadFromFile", bundle.encode(), None, None, 0, None, None, 0)
    x = hip.made("hipMalloc", size(4 * N))
    for device in (0, 1):
        kernel = hip.made("hipLibraryGetKernel", both, b"axpb")
        hip.ok("hipSetDevice", device)
        there = hip.made("hipMalloc", size(4 * N))
        function = hip.made("hipKernelGetFunction", kernel)
        hip.write(there, np.arange(N, dtype=np.int32))
        values = [there, ctypes.c_char(b"a"), ctypes.c_int(3), ctypes.c_longlong(5)]
        pointers = (P * 4)(*[ctypes.addressof(v) for v in values])
        hip.ok("hipModuleLaunchKernel", function, 1, 1, 1, N, 1, 1, 0, None, pointers, None)
        c.expect(f"a kernel on device {device}", (hip.read(there, N) == 3 * np.arange(N) + 5).all())
        hip.ok("hipFree", there)
    kernel = hip.made("hipLibraryGetKernel", one, b"other")
    (code, text) = said(lambda: hip.code("hipKernelGetFunction", ctypes.byref(P()), kernel))
    c.expect("a device without code", code == NO_CODE, (code, text))
    hip.ok("hipSetDevice", 0)
    c.expect("how many", hip.made("hipLibraryGetKernelCount", one, kind=u32).value == 2)
    names = set()
    for k in hip.made("hipLibraryEnumerateKernels", 2, one, kind=P * 2):
        names.add(hip.made("hipKernelGetName", P(k), kind=ctypes.c_char_p).value)
        c.expect("whose they are", hip.made("hipKernelGetLibrary", P(k)).value == one.value)
    c.expect("their names", names == {b"axpb", b"other"})
    offset, bytes, axpb = size(), size(), hip.made("hipLibraryGetKernel", one, b"axpb")
    places = []
    for i in range(4):
        hip.ok("hipKernelGetParamInfo", axpb, size(i), ctypes.byref(offset), ctypes.byref(bytes))
        places.append((offset.value, bytes.value))
    c.expect("where arguments lie", places == [(0, 8), (8, 1), (12, 4), (16, 8)], places)
    c.expect("an argument that there is not", hip.code("hipKernelGetParamInfo", axpb, size(4), ctypes.byref(offset), None) == INVALID_VALUE)
    c.expect("an attribute", hip.made("hipKernelGetAttribute", 0, axpb, 0, kind=ctypes.c_int).value == 1024)
    c.expect("a module's kernels", hip.made("hipModuleGetFunctionCount", hip.modules[0], kind=u32).value == 2)
    out = ctypes.byref(P())
    for text, code, name, *arguments in (("a kernel that there is not", NOT_FOUND, "hipLibraryGetKernel", out, one, b"none"),
                                         ("no library", INVALID_HANDLE, "hipLibraryGetKernel", out, axpb, b"axpb"),
                                         ("no kernel", INVALID_HANDLE, "hipKernelGetFunction", out, one),
                                         ("no file", NO_FILE, "hipLibraryLoadFromFile", out, b"/nowhere", None, None, 0, None, None, 0),
                                         ("no code", BAD_IMAGE, "hipLibraryLoadData", out, JUNK, None, None, 0, None, None, 0)):
        c.expect(text, said(lambda n=name, a=arguments: hip.code(n, *a))[0] == code)
    hip.ok("hipLibraryUnload", one)
    c.expect("a library that is gone", [hip.code("hipLibraryUnload", one), hip.code("hipKernelGetFunction", out, axpb)] == [INVALID_HANDLE] * 2)
    hip.ok("hipLibraryUnload", both)
    hip.ok("hipFree", x)


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


def test_other_processes(hip, c):
    """Memory of hipMalloc, which a child finds at an offset, reads and writes, and which keeps its address and contents."""
    x, values = hip.made("hipMalloc", size(100000)), np.arange(1000, dtype=np.int32)
    part = P(x.value + 400)
    hip.write(part, values)
    handle = hip.made("hipIpcGetMemHandle", part, kind=Handle)
    c.expect("what lies there", (hip.read(part, 1000) == values).all())
    done = subprocess.run([sys.executable, __file__, sys.argv[1], bytes(handle).hex()], capture_output=True, text=True)
    c.expect("the child", done.returncode == 0 and done.stdout == "fine\n", (done.returncode, done.stdout, done.stderr))
    values[:N] = values[:N] * 2 + 1
    c.expect("what it wrote", (hip.read(part, 1000) == values).all(), hip.read(part, 4))
    c.expect("in the same process", hip.code("hipIpcOpenMemHandle", ctypes.byref(P()), handle, 1) == INVALID_CONTEXT)
    c.expect("a handle of nothing", hip.code("hipIpcOpenMemHandle", ctypes.byref(P()), Handle(), 1) == INVALID_VALUE)
    c.expect("memory of the host's", hip.code("hipIpcGetMemHandle", ctypes.byref(Handle()), hip.made("hipHostMalloc", size(64), 0)) == INVALID_VALUE)
    c.expect("what was not opened", hip.code("hipIpcCloseMemHandle", x) == INVALID_VALUE)
    files = len(os.listdir("/proc/self/fd"))
    hip.ok("hipFree", x)
    with open("/proc/self/maps") as maps:
        c.expect("its memory is given back", "memfd:device memory" not in maps.read())
    c.expect("the file is closed", len(os.listdir("/proc/self/fd")) == files - 1)
    done = subprocess.run([sys.executable, __file__, sys.argv[1], bytes(handle).hex()], capture_output=True, text=True)
    c.expect("a handle of what was freed", "is not there any more" in done.stderr and "hipIpcOpenMemHandle: 1" in done.stderr, done.stderr)


def child(hip, handle):
    x = hip.made("hipIpcOpenMemHandle", Handle.from_buffer_copy(handle), 1)
    assert (hip.read(x, 1000) == np.arange(1000)).all()
    assert hip.run("axpb", x, ctypes.c_char(b"a"), ctypes.c_int(2), ctypes.c_longlong(1)) == SUCCESS
    base = hip.made("hipMemGetAddressRange", ctypes.byref(size()), x)
    assert hip.code("hipFree", base) == INVALID_VALUE and hip.code("hipIpcGetMemHandle", ctypes.byref(Handle()), x) == INVALID_VALUE
    hip.ok("hipIpcCloseMemHandle", x)
    assert hip.code("hipIpcCloseMemHandle", x) == INVALID_VALUE
    print("fine")


DISABLE_TIMING, INTERPROCESS = 2, 4


def test_events_of_other_processes(hip, c):
    """A child waits for an event behind a gate, and records it; both see what the other does."""
    stream, gate = hip.made("hipStreamCreateWithFlags", 1), hip.made("hipHostMalloc", size(64), 0)
    flag = ctypes.cast(gate, ctypes.POINTER(u32))
    event = hip.made("hipEventCreateWithFlags", DISABLE_TIMING | INTERPROCESS)
    handle = hip.made("hipIpcGetEventHandle", event, kind=Handle)
    c.expect("never recorded", hip.code("hipEventQuery", event) == hip.code("hipEventSynchronize", event) == SUCCESS)

    def start():
        return subprocess.Popen([sys.executable, __file__, sys.argv[1], bytes(handle).hex(), "event"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    def gated():
        flag[0] = 0
        hip.ok("hipStreamWaitValue32", stream, gate, u32(1), 0, u32(0xffffffff))
        hip.ok("hipEventRecord", event, stream)
    gated()
    other = start()
    c.expect("the child sees that it is not reached", other.stdout.readline() == "not ready\n")
    flag[0] = 1
    c.expect("the child's stream waited for it", other.stdout.readline() == "waited\n")
    hip.ok("hipStreamWaitEvent", stream, event, 0)  # the child has recorded it behind its gate
    c.expect("not reached in the child", hip.code("hipEventQuery", event) == hip.code("hipStreamQuery", stream) == NOT_READY)
    other.stdin.write("go\n")
    other.stdin.flush()
    c.expect("reached", hip.code("hipEventSynchronize", event) == hip.code("hipStreamSynchronize", stream) == hip.code("hipEventQuery", event) == SUCCESS)
    out, error = other.communicate()
    c.expect("the child's end", other.returncode == 0, (out, error))
    other = start()
    c.expect("reached in both", other.stdout.readline() == "ready\n" and other.stdout.readline() == "waited\n")
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    code, text = said(lambda: hip.code("hipEventSynchronize", event))
    c.expect("who recorded it has ended, and nobody took notice", code == DESTROYED and "has ended" in text, (code, text))
    other.communicate()
    code, text = said(lambda: hip.code("hipEventSynchronize", event))
    c.expect("who recorded it is gone", code == DESTROYED and "has ended" in text, (code, text))
    hip.ok("hipStreamBeginCapture", stream, 0)
    codes, text = said(lambda: [hip.code("hipEventRecord", event, stream), hip.code("hipStreamEndCapture", stream, ctypes.byref(P()))])
    c.expect("in a capture", codes == [NOT_SUPPORTED, 901] and "captured" in text, (codes, text))
    opened, plain = ctypes.byref(P()), hip.made("hipEventCreateWithFlags", DISABLE_TIMING)
    c.expect("in the same process", hip.code("hipIpcOpenEventHandle", opened, handle) == INVALID_CONTEXT)
    c.expect("a handle of nothing, an event of this process, one with times",
             [hip.code("hipIpcOpenEventHandle", opened, Handle()), hip.code("hipIpcGetEventHandle", ctypes.byref(Handle()), plain),
              hip.code("hipEventCreateWithFlags", opened, INTERPROCESS), hip.code("hipIpcGetEventHandle", ctypes.byref(Handle()), None)] == [INVALID_VALUE] * 4)
    c.expect("no times", hip.code("hipEventElapsedTime", ctypes.byref(ctypes.c_float()), event, event) == INVALID_HANDLE)
    files = len(os.listdir("/proc/self/fd"))
    for it in (event, plain):
        hip.ok("hipEventDestroy", it)
    c.expect("the file is closed", len(os.listdir("/proc/self/fd")) == files - 1)
    other = start()
    error = other.communicate()[1]
    c.expect("an event that is gone", "is not there any more" in error and "hipIpcOpenEventHandle: 1" in error, error)
    hip.ok("hipStreamDestroy", stream)
    hip.ok("hipHostFree", gate)


def child_of_event(hip, handle):
    event, stream = hip.made("hipIpcOpenEventHandle", Handle.from_buffer_copy(handle)), hip.made("hipStreamCreateWithFlags", 1)
    print({SUCCESS: "ready", NOT_READY: "not ready"}[hip.code("hipEventQuery", event)], flush=True)
    assert hip.code("hipIpcGetEventHandle", ctypes.byref(Handle()), event) == INVALID_VALUE
    hip.ok("hipStreamWaitEvent", stream, event, 0)
    hip.ok("hipStreamSynchronize", stream)
    gate = hip.made("hipHostMalloc", size(64), 0)
    flag = ctypes.cast(gate, ctypes.POINTER(u32))
    flag[0] = 0
    hip.ok("hipStreamWaitValue32", stream, gate, u32(1), 0, u32(0xffffffff))
    hip.ok("hipEventRecord", event, stream)
    print("waited", flush=True)
    sys.stdin.readline()
    flag[0] = 1
    hip.ok("hipEventSynchronize", event)
    hip.ok("hipEventDestroy", event)


class AllocationNode(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int), ("rest", ctypes.c_char * 72),
                ("access", P), ("access_count", size), ("bytes", size), ("pointer", P)]


def test_memory_of_graphs_on_other_devices(hip, c):
    """A kernel of device 1 in memory of a graph on device 0, with and without access."""
    graph = hip.made("hipGraphCreate", 0)

    def add(*access):
        list_ = (ctypes.c_int * (3 * len(access)))(*[number for one in access for number in one])
        node = AllocationNode(kind=1, place=1, bytes=4 * N, access=ctypes.addressof(list_), access_count=len(access))
        code, text = said(lambda: hip.code("hipGraphAddMemAllocNode", ctypes.byref(made), graph, None, size(0), ctypes.byref(node)))
        return code, text, node

    def run(node):
        hip.write(P(node.pointer), np.arange(N, dtype=np.int32))
        hip.ok("hipSetDevice", 1)
        code, text = said(lambda: hip.run("axpb", P(node.pointer), ctypes.c_char(b"a"), ctypes.c_int(2), ctypes.c_longlong(1), device=1))
        hip.ok("hipSetDevice", 0)
        return code
    made = P()
    for text, access, code in (("none", (), ILLEGAL_ADDRESS), ("its own device", ((1, 0, 3),), ILLEGAL_ADDRESS), ("none, told", ((1, 1, 0),), ILLEGAL_ADDRESS),
                               ("both", ((1, 1, 3),), SUCCESS)):
        node = add(*access)[2]
        c.expect("access of another device: " + text, run(node) == code)
    c.expect("what it wrote", (hip.read(P(node.pointer), N) == 2 * np.arange(N) + 1).all())
    got = AllocationNode()
    hip.ok("hipGraphMemAllocNodeGetParams", made, ctypes.byref(got))
    c.expect("access as it was told", got.access_count == 1 and list((ctypes.c_int * 3).from_address(got.access)) == [1, 1, 3])
    hip.ok("hipSetDevice", 1)  # peers that come and go take nothing of it away
    hip.ok("hipDeviceEnablePeerAccess", 0, 0)
    hip.ok("hipDeviceDisablePeerAccess", 0)
    hip.ok("hipSetDevice", 0)
    c.expect("and still has", run(node) == SUCCESS)
    for text, access, code in (("read alone", ((1, 1, 1),), NOT_SUPPORTED), ("not its own", ((1, 0, 0),), NOT_SUPPORTED), ("no device", ((1, 7, 3),), INVALID_VALUE),
                               ("the host", ((2, 0, 3),), INVALID_VALUE), ("no access", ((1, 1, 9),), INVALID_VALUE)):
        c.expect("access of another device: " + text, add(*access)[0] == code)
    hip.ok("hipGraphDestroy", graph)
    c.expect("memory that is gone", hip.code("hipMemGetAddressRange", None, None, P(node.pointer)) == NOT_FOUND)


def test_logs(hip, c):
    """hipModuleLoadDataEx's logs, whose sizes stand in place of pointers."""
    path = compile_hip(SOURCE, "gfx1100", ("-O2",))
    with open(path, "rb") as f:
        image = f.read()
    log, info, module = ctypes.create_string_buffer(b"x" * 200, 200), ctypes.create_string_buffer(b"x" * 200, 200), P()
    for text, code, count, data, room in (("good code", SUCCESS, 4, image, 200), ("no code", BAD_IMAGE, 4, JUNK, 200), ("a small log", BAD_IMAGE, 4, JUNK, 8)):
        options, values = (ctypes.c_int * 4)(3, 4, 5, 6), (P * 4)(ctypes.addressof(info), 200, ctypes.addressof(log), room)
        got, printed = said(lambda: hip.code("hipModuleLoadDataEx", ctypes.byref(module), data, count, options, values))
        c.expect(text, got == code and not printed and info.value == b"" and not values[1] and (values[3] or 0) == len(log.value) == min(len(log.value), room - 1),
                 (got, printed, log.value, values[3]))
        c.expect(text + ", what the log has", bool(log.value) == (code != SUCCESS))
        if code == SUCCESS:
            hip.ok("hipModuleUnload", module)
    for text, room in (("a log without room", 0), ("a log of gigabytes", (1 << 32) - 1)):
        options, values = (ctypes.c_int * 4)(3, 4, 5, 6), (P * 4)(ctypes.addressof(info), room, ctypes.addressof(log), room)
        log.value = info.value = b""
        got, _ = said(lambda: hip.code("hipModuleLoadDataEx", ctypes.byref(module), JUNK, 4, options, values))
        c.expect(text, got == BAD_IMAGE and not values[1] and (values[3] or 0) == len(log.value) and bool(log.value) == (room > 0), (got, values[1], values[3], log.value))
    c.expect("no options", hip.code("hipModuleLoadDataEx", ctypes.byref(module), image, 1, None, None) == INVALID_VALUE)


class Operation(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("at", P), ("value", u64), ("flags", u32), ("rest", u64 * 2)]


def test_batches(hip, c):
    stream = hip.made("hipStreamCreateWithFlags", 1)
    x = hip.made("hipMalloc", size(4096))
    hosts = [np.full(n, n, np.int32) for n in (3, 5, 1)]
    to = (P * 3)(*[x.value + 100 * i for i in range(3)])
    of, bytes = (P * 3)(*[h.ctypes.data for h in hosts]), (size * 3)(*[h.nbytes for h in hosts])
    rest = [(u64 * 8)(), (size * 1)(0), size(1)]
    hip.ok("hipMemcpyBatchAsync", to, of, bytes, size(3), *rest, None, stream)
    hip.ok("hipStreamSynchronize", stream)
    c.expect("several copies", all((hip.read(P(to[i]), h.size) == h).all() for i, h in enumerate(hosts)))
    bytes[1], failed = 1 << 20, size(9)
    code, text = said(lambda: hip.code("hipMemcpyBatchAsync", to, of, bytes, size(3), *rest, ctypes.byref(failed), stream))
    c.expect("one that is wrong", code == INVALID_VALUE and failed.value == 1 and "runs over the end" in text, (code, failed.value, text))
    words = hip.made("hipHostMalloc", size(64), 0)
    seen = ctypes.cast(words, ctypes.POINTER(u64))
    seen[0] = seen[1] = seen[2] = 0
    operations = (Operation * 3)(Operation(1, words, 7, 1), Operation(2, P(words.value + 8), (5 << 32) + 9, 0), Operation(5, P(words.value + 16), 1 << 40, 0))
    hip.ok("hipStreamBatchMemOp", stream, 3, operations, 0)
    c.expect("a wait", hip.code("hipStreamQuery", stream) == 600 and seen[1] == 0)
    seen[0] = 7
    hip.ok("hipStreamSynchronize", stream)
    c.expect("and what follows it", (seen[1], seen[2]) == (9, 1 << 40), (seen[1], seen[2]))
    operations[0].kind = 6
    c.expect("a barrier", hip.code("hipStreamBatchMemOp", stream, 1, operations, 0) == NOT_SUPPORTED)
    c.expect("no operations", hip.code("hipStreamBatchMemOp", stream, 0, operations, 0) == INVALID_VALUE)
    hip.ok("hipStreamDestroy", stream)


def test_pointers(hip, c):
    x = hip.made("hipMalloc", size(4096))
    kind, start, bytes, mapped = u32(9), P(9), size(9), ctypes.c_ubyte(9)
    out = (P * 4)(*[ctypes.addressof(v) for v in (kind, start, bytes, mapped)])
    which = (ctypes.c_int * 4)(2, 11, 12, 13)
    hip.ok("hipDrvPointerGetAttributes", 4, which, out, P(x.value + 8))
    c.expect("attributes of a pointer", (kind.value, start.value, bytes.value, mapped.value) == (2, x.value, 4096, 1))
    hip.ok("hipDrvPointerGetAttributes", 4, which, out, P(ctypes.addressof(kind)))
    c.expect("which is no error", not hip.library.hipDrvPointerGetAttributes(1, (ctypes.c_int * 1)(4), out, x) and not hip.library.hipGetLastError())
    c.expect("of one that is unknown", (kind.value, start.value, bytes.value, mapped.value) == (0, None, 0, 0))
    c.expect("an attribute that there is not", hip.code("hipDrvPointerGetAttributes", 1, (ctypes.c_int * 1)(99), out, P(ctypes.addressof(kind))) == INVALID_VALUE)
    sync = ctypes.c_int(1)
    hip.ok("hipPointerSetAttribute", ctypes.byref(sync), 6, x)
    hip.ok("hipPointerGetAttribute", ctypes.byref(kind), 6, x)
    c.expect("an attribute that was set", kind.value == 1)
    gate = hip.made("hipHostMalloc", size(64), 0)
    hip.ok("hipMemset", x, 3, size(4096))  # waits, so that the null stream is idle
    c.expect("a fill that waits", hip.code("hipStreamQuery", None) == SUCCESS)
    c.expect("another attribute", hip.code("hipPointerSetAttribute", ctypes.byref(sync), 9, x) == INVALID_VALUE)
    c.expect("of the host's memory", hip.code("hipPointerSetAttribute", ctypes.byref(sync), 6, gate) == BAD_POINTER)
    pitch = size()
    rows = P()
    hip.ok("hipMemAllocPitch", ctypes.byref(rows), ctypes.byref(pitch), size(100), size(3), 4)
    c.expect("rows", pitch.value >= 100 and hip.told("hipMemPtrGetInfo", rows, kind=size) >= 3 * pitch.value)
    c.expect("elements of 2 bytes", hip.code("hipMemAllocPitch", ctypes.byref(rows), ctypes.byref(pitch), size(100), size(3), 2) == INVALID_VALUE)


class Location(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("id", ctypes.c_int)]


def test_managed(hip, c):
    x, stream = hip.made("hipMallocManaged", size(4096), 1), hip.made("hipStreamCreateWithFlags", 1)
    for text, code, place in (("to a device", SUCCESS, Location(1, 1)), ("to the host", SUCCESS, Location(2, 0)), ("to no device", INVALID_VALUE, Location(1, 7)),
                              ("to nowhere", INVALID_VALUE, Location(0, 0))):
        c.expect("prefetched " + text, hip.code("hipMemPrefetchAsync_v2", x, size(4096), place, 0, stream) == code)
        c.expect("advised " + text, hip.code("hipMemAdvise_v2", x, size(4096), 3, place) == code)


def test_streams(hip, c):
    streams = [hip.made("hipStreamCreateWithFlags", 1) for _ in range(2)]
    ids = [hip.told("hipStreamGetId", s, kind=u64) for s in streams + streams]
    c.expect("a stream's number", ids[:2] == ids[2:] and ids[0] != ids[1])
    out = (u32 * 4)(*[9] * 4)
    hip.ok("hipExtStreamGetCUMask", streams[0], 4, out)
    c.expect("all 96 units of the card", list(out) == [0xffffffff] * 3 + [0], list(out))
    masked = hip.made("hipExtStreamCreateWithCUMask", 2, (u32 * 2)(0xf0, 1))
    hip.ok("hipExtStreamGetCUMask", masked, 4, out)
    c.expect("units as they were told", list(out) == [0xf0, 1, 0, 0])
    c.expect("too few words", hip.code("hipExtStreamGetCUMask", masked, 2, out) == INVALID_VALUE)
    c.expect("no units", hip.code("hipExtStreamCreateWithCUMask", ctypes.byref(P()), 0, out) == INVALID_VALUE)
    x = hip.made("hipMalloc", size(4 * N))
    hip.write(x, np.ones(N, np.int32))
    c.expect("what it runs", hip.launch("axpb", x, ctypes.c_char(b"a"), ctypes.c_int(2), ctypes.c_longlong(5), stream=masked) == SUCCESS and
             hip.code("hipStreamSynchronize", masked) == SUCCESS and hip.read(x, N).tolist() == [7] * N)
    hip.ok("hipStreamDestroy", masked)


class Pitched(ctypes.Structure):
    _fields_ = [("at", P), ("pitch", size), ("width", size), ("height", size)]


class Extent(ctypes.Structure):
    _fields_ = [("width", size), ("height", size), ("depth", size)]


class Copy(ctypes.Structure):
    _fields_ = [("src_array", P), ("src_at", size * 3), ("src", Pitched), ("dst_array", P), ("dst_at", size * 3), ("dst", Pitched),
                ("extent", Extent), ("kind", ctypes.c_int)]


def test_default_streams_of_threads(hip, c):
    x, box = hip.made("hipMalloc", size(60)), np.full((5, 3, 4), 1, np.uint8)
    hip.write(x, box)
    hip.ok("hipMemset3D_spt", Pitched(x, 4, 4, 3), 9, Extent(2, 3, 4))
    box[:4, :, :2] = 9
    c.expect("a box that is filled", (hip.read(x, 60, np.uint8) == box.ravel()).all())
    out = np.zeros((4, 2, 3), np.uint8)
    copy = Copy(src=Pitched(x, 4, 4, 3), dst=Pitched(out.ctypes.data, 3, 3, 2), extent=Extent(3, 2, 4), kind=TO_HOST)
    copy.src_at[:] = (1, 1, 1)
    hip.ok("hipMemcpy3D_spt", ctypes.byref(copy))
    c.expect("a box that is copied", (out == box[1:, 1:, 1:]).all(), out)
    own, plain, found = P(), P(), ctypes.c_int()
    for name, differs in ((b"hipMemcpy3D", True), (b"hipMalloc", False)):
        hip.ok("hipGetProcAddress_spt", name, ctypes.byref(own), 700, u64(0), ctypes.byref(found))
        hip.ok("hipGetProcAddress", name, ctypes.byref(plain), 700, u64(0), ctypes.byref(found))
        c.expect(f"the thread's form of {name.decode()}", (own.value != plain.value) == differs)
    c.expect("a name that there is not", hip.code("hipGetProcAddress_spt", b"hipNothing", ctypes.byref(own), 700, u64(0), ctypes.byref(found)) == NOT_FOUND)


class Side(ctypes.Structure):
    _fields_ = [("x", size), ("y", size), ("z", size), ("level", size), ("kind", ctypes.c_int), ("host", P), ("device", P), ("array", P),
                ("pitch", size), ("height", size)]


class FlatSide(ctypes.Structure):
    _fields_ = [("x", size), ("y", size), ("kind", ctypes.c_int), ("host", P), ("device", P), ("array", P), ("pitch", size)]


class DriverCopy(ctypes.Structure):
    _fields_ = [("src", Side), ("dst", Side), ("extent", Extent)]


class FlatCopy(ctypes.Structure):
    _fields_ = [("src", FlatSide), ("dst", FlatSide), ("width", size), ("height", size)]


class Peers(ctypes.Structure):
    _fields_ = [("src_array", P), ("src_at", size * 3), ("src", Pitched), ("src_device", ctypes.c_int), ("dst_array", P), ("dst_at", size * 3),
                ("dst", Pitched), ("dst_device", ctypes.c_int), ("extent", Extent)]


class DriverFill(ctypes.Structure):
    _fields_ = [("dst", P), ("pitch", size), ("value", u32), ("element", u32), ("width", size), ("height", size)]


def test_driver_copies(hip, c):
    """Boxes out of and into other boxes, as the driver-like calls tell them, by NumPy's slices. Sides: host 1, device 2, arrays 10."""
    random = np.random.default_rng(3)
    box = random.integers(0, 256, (4, 5, 16), np.uint8)
    x, stream, graph = hip.made("hipMalloc", size(box.size)), hip.made("hipStreamCreateWithFlags", 1), hip.made("hipGraphCreate", 0)
    hip.write(x, box)
    want, out = np.zeros((3, 4, 20), np.uint8), np.zeros((3, 4, 20), np.uint8)
    copy = DriverCopy(Side(x=3, y=1, z=2, kind=2, device=x, pitch=16, height=5), Side(x=7, y=2, z=1, kind=1, host=out.ctypes.data, pitch=20, height=4),
                      Extent(11, 2, 2))
    want[1:, 2:4, 7:18] = box[2:, 1:3, 3:14]
    for name in ("hipDrvMemcpy3D", "hipDrvMemcpy3DAsync", "hipDrvGraphAddMemcpyNode"):
        out[:] = 0
        if name.endswith("Node"):
            copy.src.x, copy.dst.x = 0, 0
            node = hip.made(name, graph, None, size(0), ctypes.byref(copy), None)
            run = hip.made("hipGraphInstantiate", graph, None, None, size(0))
            copy.src.x, copy.dst.x = 3, 7
            hip.ok("hipDrvGraphExecMemcpyNodeSetParams", run, node, ctypes.byref(copy), None)
            hip.ok("hipGraphLaunch", run, stream)
        else:
            hip.ok(name, ctypes.byref(copy), *([stream] if name.endswith("Async") else []))
        hip.ok("hipStreamSynchronize", stream)
        c.expect(name, (out == want).all(), out)
    flat = FlatCopy(FlatSide(x=5, y=2, kind=1, host=want.ctypes.data, pitch=20), FlatSide(x=1, y=1, kind=2, device=x, pitch=16), 9, 3)
    lines = want.reshape(12, 20)
    for name in ("hipMemcpyParam2D", "hipMemcpyParam2DAsync", "hipDrvMemcpy2DUnaligned"):
        lines[:] = random.integers(0, 256, lines.shape, np.uint8)
        box[0, 1:4, 1:10] = lines[2:5, 5:14]
        hip.ok(name, ctypes.byref(flat), *([stream] if name.endswith("Async") else []))
        hip.ok("hipStreamSynchronize", stream)
        c.expect(name, (hip.read(x, box.size, np.uint8) == box.ravel()).all())
    flat.src.pitch, flat.dst.pitch, flat.src.x, flat.dst.x, flat.src.y, flat.dst.y = 0, 0, 0, 0, 0, 0
    hip.ok("hipMemcpyParam2D", ctypes.byref(flat))
    box.reshape(-1)[:27] = lines.reshape(-1)[:27]
    c.expect("rows without a pitch", (hip.read(x, box.size, np.uint8) == box.ravel()).all())
    old = ctypes.CDLL(os.path.join(os.path.dirname(sys.argv[1]), "dropin", "libamdhip64.so.5"))  # kinds of memory before HIP 6
    lines[:3] += 1
    flat.src.kind, flat.dst.kind = 0, 1
    c.expect("HIP 5's kinds", old.hipMemcpyParam2D(ctypes.byref(flat)) == SUCCESS)
    box.reshape(-1)[:27] = lines.reshape(-1)[:27]
    c.expect("what that left", (hip.read(x, box.size, np.uint8) == box.ravel()).all())
    flat.dst.kind, flat.src.kind = 2, 10
    code, text = said(lambda: hip.code("hipMemcpyParam2D", ctypes.byref(flat)))
    c.expect("from no array", code == INVALID_HANDLE, (code, text))
    kind = (ctypes.c_int * 5)(8, 8, 0, 0, 1)  # two bytes
    array = hip.made("hipMallocArray", kind, size(8), size(5), 0)
    lines[:] = random.integers(0, 256, lines.shape, np.uint8)
    into = FlatCopy(FlatSide(x=5, y=2, kind=1, host=want.ctypes.data, pitch=20), FlatSide(x=4, y=1, kind=10, array=array), 9, 3)
    hip.ok("hipMemcpyParam2D", ctypes.byref(into))
    back = DriverCopy(Side(x=4, y=1, kind=10, array=array), Side(x=2, y=1, kind=1, host=out.ctypes.data, pitch=20, height=4), Extent(9, 3, 1))
    out[:] = 0
    hip.ok("hipDrvMemcpy3D", ctypes.byref(back))
    c.expect("into an array and back", (out[0, 1:4, 2:11] == lines[2:5, 5:14]).all() and out.sum() == lines[2:5, 5:14].sum())
    back.src.x = 8
    c.expect("past an array's row", hip.code("hipDrvMemcpy3D", ctypes.byref(back)) == INVALID_VALUE)
    hip.ok("hipFreeArray", array)
    flat.src.kind = 7
    copy.src.level, copy.extent.width = 1, 11
    c.expect("from nowhere, a level, nothing", [hip.code(n, a) for n, a in (("hipMemcpyParam2D", ctypes.byref(flat)), ("hipDrvMemcpy3D", ctypes.byref(copy)),
                                                                             ("hipDrvMemcpy3D", None))] == [INVALID_VALUE] * 3)
    copy.src.level, copy.src.x = 0, 8
    c.expect("a box that leaves its rows", hip.code("hipDrvMemcpy3D", ctypes.byref(copy)) == INVALID_VALUE)
    hip.ok("hipSetDevice", 1)
    there = hip.made("hipMalloc", size(box.size))
    peers = Peers(src=Pitched(x, 16, 16, 5), src_device=0, dst=Pitched(there, 16, 16, 5), dst_device=1, extent=Extent(16, 5, 4))
    for name in ("hipMemcpy3DPeer", "hipMemcpy3DPeerAsync"):
        hip.ok("hipMemset", there, 0, size(box.size))
        hip.ok(name, ctypes.byref(peers), *([None] if name.endswith("Async") else []))
        c.expect(name, (hip.read(there, box.size, np.uint8) == box.ravel()).all())
    peers.dst_device = 5
    c.expect("no device", hip.code("hipMemcpy3DPeer", ctypes.byref(peers)) == INVALID_DEVICE)
    hip.ok("hipFree", there)
    hip.ok("hipSetDevice", 0)
    graph = hip.made("hipGraphCreate", 0)
    node = hip.made("hipDrvGraphAddMemsetNode", graph, None, size(0), ctypes.byref(DriverFill(x, 16, 1, 1, 3, 2)), None)
    run = hip.made("hipGraphInstantiate", graph, None, None, size(0))
    hip.ok("hipGraphLaunch", run, stream)
    hip.ok("hipDrvGraphExecMemsetNodeSetParams", run, node, ctypes.byref(DriverFill(P(x.value + 4), 16, 0x0201, 2, 4, 5)), None)
    hip.ok("hipGraphLaunch", run, stream)
    hip.ok("hipStreamSynchronize", stream)
    box[0, :2, :3] = 1
    box[0, :, 4:12] = [1, 2] * 4
    c.expect("fills as nodes", (hip.read(x, box.size, np.uint8) == box.ravel()).all())


def main():
    targets = ["gfx1100", "gfx1030"]
    if len(sys.argv) == 2:
        environment = dict(os.environ, RDNA_EMULATE=",".join(targets), RDNA_EMULATE_CHECK="1", RDNA_EMULATE_EXITCODE="0")
        return os.spawnve(os.P_WAIT, sys.executable, [sys.executable, __file__, sys.argv[1], "run"], environment)
    hip, checks = Hip(sys.argv[1], targets, SOURCE), Checks("calls,")
    if sys.argv[2] != "run":
        return (child_of_event if sys.argv[3:] else child)(hip, bytes.fromhex(sys.argv[2]))
    for test in (test_contexts, test_libraries, test_other_processes, test_events_of_other_processes,
                 test_memory_of_graphs_on_other_devices, test_logs, test_batches, test_pointers, test_managed, test_streams,
                 test_default_streams_of_threads, test_driver_copies):
        test(hip, checks)
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
