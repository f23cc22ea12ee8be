"""Graphs of the HIP interface: nodes that are asked and told anew, in graphs and executables, clones, child graphs, events,
memory, and captures that take in other streams. Usage: graph_test.py librdna_emulator.so"""
import ctypes
import os
import sys

import numpy as np

from emulator import Checks
from hip_library import INVALID_VALUE, NOT_SUPPORTED, TO_HOST, Hip, size

SOURCE = """
extern "C" __attribute__((global)) void axpb(int *x, int a, int b) {
  int i = __builtin_amdgcn_workgroup_id_x() * 32 + __builtin_amdgcn_workitem_id_x();
  x[i] = x[i] * a + b;
}
extern "C" __attribute__((global)) void add(int *to, const int *from) { to[__builtin_amdgcn_workitem_id_x()] += from[__builtin_amdgcn_workitem_id_x()]; }
"""
KERNEL, COPY, FILL, HOST, GRAPH, EMPTY, WAIT, RECORD, ALLOCATE, FREE = 0, 1, 2, 3, 4, 5, 6, 7, 10, 11
ILLEGAL_STATE, UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, CAPTURED_EVENT, NO_UPDATE = 401, 900, 901, 902, 903, 904, 905, 907, 910
N = 64
dim3, P = ctypes.c_uint * 3, ctypes.c_void_p
HOST_FUNCTION = ctypes.CFUNCTYPE(None, P)


class Struct(ctypes.Structure):
    def same(self, other):
        return bytes(self) == bytes(other)


class KernelNode(Struct):
    _fields_ = [("block", dim3), ("extra", P), ("function", P), ("grid", dim3), ("parameters", ctypes.POINTER(P)), ("lds", ctypes.c_uint)]


class FillNode(Struct):
    _fields_ = [("dst", P), ("element", ctypes.c_uint), ("height", size), ("pitch", size), ("value", ctypes.c_uint), ("width", size)]


class HostNode(Struct):
    _fields_ = [("function", P), ("data", P)]


class Copy(Struct):
    _fields_ = [("src_array", P), ("src_at", size * 3), ("src", P), ("src_pitch", size), ("src_width", size), ("src_height", size), ("dst_array", P),
                ("dst_at", size * 3), ("dst", P), ("dst_pitch", size), ("dst_width", size), ("dst_height", size), ("extent", size * 3), ("kind", ctypes.c_int)]


class AllocationNode(Struct):
    _fields_ = [("kind", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int), ("rest", ctypes.c_char * 72),
                ("access", P), ("access_count", size), ("bytes", size), ("pointer", P)]


class AnyNode(Struct):
    class Any(ctypes.Union):
        _fields_ = [("room", ctypes.c_longlong * 29), ("kernel", KernelNode), ("fill", FillNode), ("host", HostNode), ("graph", P), ("event", P),
                    ("allocation", AllocationNode)]
    _fields_ = [("kind", ctypes.c_int), ("reserved", ctypes.c_int * 3), ("of", Any), ("reserved2", ctypes.c_longlong)]


class Graphs:
    def __init__(self, hip):
        self.hip, self.keep = hip, []
        self.x, self.y = (hip.made("hipMalloc", size(4 * N)) for _ in range(2))
        self.streams = [hip.made("hipStreamCreateWithFlags", 1) for _ in range(3)]

    def fill(self, value, buffer=None):
        self.hip.ok("hipMemsetD32", buffer or self.x, value, size(N))

    def values(self, buffer=None):
        return self.hip.read(buffer or self.x, N).tolist()

    def kernel(self, a, b, buffer=None, groups=2):
        numbers = [buffer or self.x, ctypes.c_int(a), ctypes.c_int(b)]
        pointers = (P * 3)(*[ctypes.addressof(n) for n in numbers])
        self.keep += [numbers, pointers]
        return KernelNode((32, 1, 1), None, self.hip.function("axpb"), (groups, 1, 1), pointers, 0)

    def node(self, call, graph, after, *arguments):
        list_ = (P * (len(after) + 1))(*after)
        return self.hip.made(call, graph, list_ if after else None, size(len(after)), *arguments)

    def kernel_node(self, graph, after, a, b, **more):
        return self.node("hipGraphAddKernelNode", graph, after, ctypes.byref(self.kernel(a, b, **more)))

    def graph(self):
        return self.hip.made("hipGraphCreate", 0)

    def instantiate(self, graph):
        return self.hip.made("hipGraphInstantiate", graph, None, None, size(0))

    def run(self, executable, stream=0):
        self.hip.ok("hipGraphLaunch", executable, self.streams[stream])
        self.hip.ok("hipStreamSynchronize", self.streams[stream])

    def launch(self, name, stream, *values, groups=2):
        code = self.hip.launch(name, *values, groups=groups, stream=self.streams[stream])
        if code:
            raise RuntimeError(f"launch: {code}")

    def axpb(self, a, b, stream, buffer=None):
        self.launch("axpb", stream, buffer or self.x, ctypes.c_int(a), ctypes.c_int(b))

    def end(self, stream):
        return P(self.hip.told("hipStreamEndCapture", self.streams[stream], kind=P))

    def nodes(self, graph):
        count = size()
        self.hip.ok("hipGraphGetNodes", graph, None, ctypes.byref(count))
        out = (P * count.value)()
        self.hip.ok("hipGraphGetNodes", graph, out, ctypes.byref(count))
        return [P(n) for n in out]

    def before(self, node):
        count = size(16)
        out = (P * 16)()
        self.hip.ok("hipGraphNodeGetDependencies", node, out, ctypes.byref(count))
        return sorted(out[:count.value])

    def kind(self, node):
        return self.hip.told("hipGraphNodeGetType", node)


def test_kernel_nodes(g, hip, c):
    """What a node is told after an executable was made of its graph is not the executable's, nor the other way round."""
    graph = g.graph()
    node = g.kernel_node(graph, [], 2, 1)
    got = KernelNode()
    hip.ok("hipGraphKernelNodeGetParams", node, ctypes.byref(got))
    numbers = [ctypes.cast(got.parameters[i], ctypes.POINTER(t))[0] for i, t in enumerate((ctypes.c_void_p, ctypes.c_int, ctypes.c_int))]
    c.expect("a kernel's parameters", (tuple(got.block), tuple(got.grid), got.function, got.lds, got.extra, numbers) ==
             ((32, 1, 1), (2, 1, 1), hip.function("axpb").value, 0, None, [g.x.value, 2, 1]))
    e = g.instantiate(graph)
    hip.ok("hipGraphKernelNodeSetParams", node, ctypes.byref(g.kernel(3, 0)))
    g.fill(5)
    g.run(e)
    c.expect("an executable that was there before", g.values() == [11] * N, g.values()[:2])
    later = g.instantiate(graph)
    g.run(later)
    c.expect("one that is made later", g.values() == [33] * N, g.values()[:2])
    hip.ok("hipGraphExecKernelNodeSetParams", e, node, ctypes.byref(g.kernel(1, -3, groups=1)))
    g.run(e)
    c.expect("what an executable was told", g.values() == [30] * 32 + [33] * 32)
    hip.ok("hipGraphDestroy", graph)
    g.run(e)
    c.expect("an executable without its graph", g.values() == [27] * 32 + [33] * 32)
    for e_ in (e, later):
        hip.ok("hipGraphExecDestroy", e_)
    bad = g.kernel(1, 1)
    bad.function = 12345
    graph = g.graph()
    c.expect("a kernel that is none", hip.code("hipGraphAddKernelNode", ctypes.byref(node), graph, None, size(0), ctypes.byref(bad)) == 98)
    hip.ok("hipGraphDestroy", graph)


def test_other_nodes(g, hip, c):
    graph, host = g.graph(), np.zeros(N, np.int32)
    seen = []
    callback = HOST_FUNCTION(lambda data: seen.append(data))
    fill = FillNode(g.x.value, 4, 1, 0, 7, N)
    first = g.node("hipGraphAddMemsetNode", graph, [], ctypes.byref(fill))
    back = g.node("hipGraphAddMemcpyNode1D", graph, [first], host.ctypes.data_as(P), g.x, size(4 * N), TO_HOST)
    last = g.node("hipGraphAddHostNode", graph, [back], ctypes.byref(HostNode(ctypes.cast(callback, P), 41)))
    got, copy, called = FillNode(), Copy(), HostNode()
    hip.ok("hipGraphMemsetNodeGetParams", first, ctypes.byref(got))
    c.expect("a fill's parameters", got.same(fill))
    hip.ok("hipGraphMemcpyNodeGetParams", back, ctypes.byref(copy))
    c.expect("a copy's parameters", (copy.src, copy.dst, tuple(copy.extent), copy.kind) == (g.x.value, host.ctypes.data, (4 * N, 1, 1), TO_HOST))
    hip.ok("hipGraphHostNodeGetParams", last, ctypes.byref(called))
    c.expect("a function's parameters", called.data == 41)
    e = g.instantiate(graph)
    g.run(e)
    c.expect("what they did", host.tolist() == [7] * N and seen == [41], (host[:2], seen))
    wide = FillNode(g.x.value, 1, 1, 0, 3, 4 * N)
    hip.ok("hipGraphExecMemsetNodeSetParams", e, first, ctypes.byref(wide))
    hip.ok("hipGraphExecHostNodeSetParams", e, last, ctypes.byref(HostNode(ctypes.cast(callback, P), 43)))
    half = np.zeros(N, np.int32)
    hip.ok("hipGraphExecMemcpyNodeSetParams1D", e, back, half.ctypes.data_as(P), g.x, size(2 * N), TO_HOST)
    g.run(e)
    c.expect("what they did then", half.tolist() == [0x03030303] * (N // 2) + [0] * (N // 2) and seen == [41, 43], (half[:2], seen))
    # the copy as a box: 4 rows of 3 ints out of rows of 8
    box = Copy(src=g.x.value, src_pitch=32, src_width=32, src_height=8, dst=half.ctypes.data, dst_pitch=12, dst_width=12, dst_height=4, kind=TO_HOST)
    box.extent[:] = (12, 4, 1)
    hip.ok("hipGraphMemcpyNodeSetParams", back, ctypes.byref(box))
    hip.ok("hipGraphMemcpyNodeGetParams", back, ctypes.byref(copy))
    c.expect("a box as it was told", copy.same(box))
    hip.ok("hipGraphMemsetNodeSetParams", first, ctypes.byref(fill))
    hip.ok("hipGraphHostNodeSetParams", last, ctypes.byref(HostNode(ctypes.cast(callback, P), 45)))
    hip.ok("hipGraphExecUpdate", e, graph, None, None)
    half[:] = 0
    g.run(e)
    c.expect("after an update", half.tolist() == [7] * 12 + [0] * (N - 12) and seen[-1] == 45, half[:14])
    for text, name, *arguments in (("a kernel's parameters of a copy", "hipGraphKernelNodeGetParams", back, ctypes.byref(KernelNode())),
                                   ("a fill's of a kernel", "hipGraphExecMemsetNodeSetParams", e, last, ctypes.byref(fill)),
                                   ("elements of 3 bytes", "hipGraphMemsetNodeSetParams", first, ctypes.byref(FillNode(g.x.value, 3, 1, 0, 7, N))),
                                   ("a node of another graph", "hipGraphExecMemsetNodeSetParams", e, g.node("hipGraphAddMemsetNode", g.graph(), [], ctypes.byref(fill)), ctypes.byref(fill)),
                                   ("no parameters", "hipGraphMemcpyNodeGetParams", back, None)):
        c.expect(text, hip.code(name, *arguments) == INVALID_VALUE)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipGraphDestroy", graph)


def test_enabled(g, hip, c):
    graph = g.graph()
    a = g.kernel_node(graph, [], 1, 1)
    b = g.kernel_node(graph, [a], 1, 10)
    last = g.node("hipGraphAddEmptyNode", graph, [b])
    e, on = g.instantiate(graph), ctypes.c_uint(7)
    hip.ok("hipGraphNodeSetEnabled", e, a, 0)
    hip.ok("hipGraphNodeGetEnabled", e, a, ctypes.byref(on))
    g.fill(0)
    g.run(e)
    c.expect("a node that is off", on.value == 0 and g.values() == [10] * N)
    hip.ok("hipGraphNodeSetEnabled", e, a, 1)
    hip.ok("hipGraphNodeGetEnabled", e, a, ctypes.byref(on))
    g.run(e)
    c.expect("and on again", on.value == 1 and g.values() == [21] * N)
    c.expect("of an empty node", hip.code("hipGraphNodeSetEnabled", e, last, 0) == INVALID_VALUE)
    flags = ctypes.c_ulonglong(9)
    hip.ok("hipGraphExecGetFlags", e, ctypes.byref(flags))
    c.expect("no flags", flags.value == 0)
    hip.ok("hipGraphUpload", e, g.streams[0])
    hip.ok("hipGraphExecDestroy", e)
    e = hip.made("hipGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(1))
    hip.ok("hipGraphExecGetFlags", e, ctypes.byref(flags))
    c.expect("flags as they were told", flags.value == 1)
    c.expect("launches by kernels", hip.code("hipGraphInstantiateWithFlags", ctypes.byref(P()), graph, ctypes.c_ulonglong(4)) == NOT_SUPPORTED)
    c.expect("other flags", hip.code("hipGraphInstantiateWithFlags", ctypes.byref(P()), graph, ctypes.c_ulonglong(16)) == INVALID_VALUE)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipGraphDestroy", graph)


def test_shape(g, hip, c):
    """x * 2 + 1, then * 3, from nodes that are taken out and clones."""
    graph = g.graph()
    a = g.kernel_node(graph, [], 2, 1)
    b = g.kernel_node(graph, [a], 5, 5)
    last = g.kernel_node(graph, [b], 3, 0)
    clone = hip.made("hipGraphClone", graph)
    found = hip.made("hipGraphNodeFindInClone", b, clone)
    c.expect("a node of a clone", found.value == g.nodes(clone)[1].value and g.before(found) == [g.nodes(clone)[0].value])
    c.expect("a node that is none of a clone's", hip.code("hipGraphNodeFindInClone", ctypes.byref(P()), found, clone) == INVALID_VALUE)
    hip.ok("hipGraphDestroyNode", b)
    c.expect("nodes that are left", [n.value for n in g.nodes(graph)] == [a.value, last.value] and g.before(last) == [])
    pair = [(P * 1)(n) for n in (a.value, last.value)]
    hip.ok("hipGraphAddDependencies", graph, *pair, size(1))
    e, of_clone = g.instantiate(graph), g.instantiate(clone)
    g.fill(1)
    g.run(e)
    c.expect("without the node", g.values() == [9] * N, g.values()[:1])
    g.fill(1)
    g.run(of_clone)
    c.expect("the clone has it", g.values() == [60] * N, g.values()[:1])
    hip.ok("hipGraphRemoveDependencies", graph, *pair, size(1))
    c.expect("a dependency that is gone", g.before(last) == [] and
             hip.code("hipGraphRemoveDependencies", graph, *pair, size(1)) == INVALID_VALUE)
    wrong, result = P(), ctypes.c_int()
    c.expect("an update of another shape", hip.code("hipGraphExecUpdate", e, graph, ctypes.byref(wrong), ctypes.byref(result)) == NO_UPDATE and
             (result.value, wrong.value) == (2, last.value), (result.value, wrong.value, last.value))
    c.expect("of another number", hip.code("hipGraphExecUpdate", e, clone, ctypes.byref(wrong), ctypes.byref(result)) == NO_UPDATE and result.value == 2)
    other = g.graph()
    first = g.kernel_node(other, [], 1, 1)
    end = g.node("hipGraphAddEmptyNode", other, [first])
    c.expect("of another kind", hip.code("hipGraphExecUpdate", e, other, ctypes.byref(wrong), ctypes.byref(result)) == NO_UPDATE and
             (result.value, wrong.value) == (3, end.value))
    g.fill(1)
    g.run(e)
    c.expect("what refused updates left", g.values() == [9] * N)
    for it in (graph, clone, other):
        hip.ok("hipGraphDestroy", it)
    for it in (e, of_clone):
        hip.ok("hipGraphExecDestroy", it)


def test_children(g, hip, c):
    child, graph = g.graph(), g.graph()
    g.kernel_node(child, [], 1, 1)
    a = g.kernel_node(graph, [], 2, 0)
    node = g.node("hipGraphAddChildGraphNode", graph, [a], child)
    g.kernel_node(graph, [node], 10, 0)
    g.kernel_node(child, [g.nodes(child)[0]], 100, 100)  # comes too late
    own = P()
    hip.ok("hipGraphChildGraphNodeGetGraph", node, ctypes.byref(own))
    c.expect("a node has a clone", own.value != child.value and len(g.nodes(own)) == 1)
    e = g.instantiate(graph)
    g.fill(3)
    g.run(e)
    c.expect("a graph in a graph", g.values() == [70] * N, g.values()[:1])
    hip.ok("hipGraphExecChildGraphNodeSetParams", e, node, child)
    g.fill(3)
    g.run(e)
    c.expect("another one in its place", g.values() == [8000] * N, g.values()[:1])
    for it in (child, graph):
        hip.ok("hipGraphDestroy", it)
    hip.ok("hipGraphExecDestroy", e)


def test_events(g, hip, c):
    """A graph that records an event between two kernels; one that waits until another stream has."""
    events = [hip.made("hipEventCreateWithFlags", 0) for _ in range(2)]
    graph = g.graph()
    a = g.kernel_node(graph, [], 1, 1)
    record = g.node("hipGraphAddEventRecordNode", graph, [a], events[0])
    wait = g.node("hipGraphAddEventWaitNode", graph, [record], events[1])
    g.kernel_node(graph, [wait], 2, 0)
    c.expect("kinds of nodes", [g.kind(n) for n in g.nodes(graph)] == [KERNEL, RECORD, WAIT, KERNEL])
    e, gate = g.instantiate(graph), hip.made("hipHostMalloc", size(64), 0)
    flag = ctypes.cast(gate, ctypes.POINTER(ctypes.c_uint))
    flag[0] = 0
    g.fill(1)
    hip.ok("hipDeviceSynchronize")
    hip.ok("hipStreamWaitValue32", g.streams[1], gate, ctypes.c_uint(1), 0, ctypes.c_uint(0xffffffff))
    hip.ok("hipEventRecord", events[1], g.streams[1])
    hip.ok("hipGraphLaunch", e, g.streams[0])
    hip.ok("hipEventSynchronize", events[0])
    c.expect("an event that a graph recorded", hip.code("hipStreamQuery", g.streams[0]) == 600)
    flag[0] = 1
    hip.ok("hipStreamSynchronize", g.streams[0])
    c.expect("what it waited for", g.values() == [4] * N, g.values()[:1])
    hip.ok("hipGraphEventRecordNodeSetEvent", record, events[1])
    c.expect("the events of nodes", hip.told("hipGraphEventRecordNodeGetEvent", record, kind=P) == events[1].value and
             hip.told("hipGraphEventWaitNodeGetEvent", wait, kind=P) == events[1].value)
    hip.ok("hipGraphExecEventRecordNodeSetEvent", e, record, events[1])
    hip.ok("hipGraphExecEventWaitNodeSetEvent", e, wait, events[0])
    hip.ok("hipGraphEventWaitNodeSetEvent", wait, events[0])
    g.run(e)
    c.expect("with other events", g.values() == [10] * N)
    for it in events:
        hip.ok("hipEventDestroy", it)
    g.run(e)
    c.expect("events that nobody else has", g.values() == [22] * N)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipGraphDestroy", graph)
    hip.ok("hipHostFree", gate)


def test_memory(g, hip, c):
    graph = g.graph()
    with_ = AllocationNode(kind=1, place=1, bytes=4 * N)
    a = g.node("hipGraphAddMemAllocNode", graph, [], ctypes.byref(with_))
    there = P(with_.pointer)
    fill = g.node("hipGraphAddMemsetNode", graph, [a], ctypes.byref(FillNode(there, 4, 1, 0, 6, N)))
    k = g.kernel_node(graph, [fill], 7, 0, buffer=there)
    copy = g.node("hipGraphAddMemcpyNode1D", graph, [k], g.x, there, size(4 * N), 3)
    free = g.node("hipGraphAddMemFreeNode", graph, [copy], there)
    c.expect("kinds of nodes", [g.kind(n) for n in (a, free)] == [ALLOCATE, FREE])
    got, freed, used = AllocationNode(), P(), ctypes.c_uint64()
    hip.ok("hipGraphMemAllocNodeGetParams", a, ctypes.byref(got))
    hip.ok("hipGraphMemFreeNodeGetParams", free, ctypes.byref(freed))
    c.expect("their parameters", got.same(with_) and freed.value == there.value)
    e = g.instantiate(graph)
    for _ in range(2):
        g.fill(0)
        g.run(e)
        c.expect("memory of a graph", g.values() == [42] * N, g.values()[:1])
    hip.ok("hipDeviceGetGraphMemAttribute", 0, 0, ctypes.byref(used))
    c.expect("it is counted", used.value == 4 * N, used.value)
    hip.ok("hipGraphDestroy", graph)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipDeviceGetGraphMemAttribute", 0, 0, ctypes.byref(used))
    c.expect("and given back", used.value == 0)
    hip.ok("hipDeviceGetGraphMemAttribute", 0, 1, ctypes.byref(used))
    c.expect("the most that there was", used.value == 4 * N)
    hip.ok("hipDeviceSetGraphMemAttribute", 0, 1, ctypes.byref(ctypes.c_uint64()))
    hip.ok("hipDeviceGetGraphMemAttribute", 0, 1, ctypes.byref(used))
    hip.ok("hipDeviceGraphMemTrim", 0)
    c.expect("from now on", used.value == 0)
    graph = g.graph()
    c.expect("memory of no graph's", hip.code("hipGraphAddMemFreeNode", ctypes.byref(P()), graph, None, size(0), g.x) == INVALID_VALUE)
    c.expect("no bytes", hip.code("hipGraphAddMemAllocNode", ctypes.byref(P()), graph, None, size(0), ctypes.byref(AllocationNode(kind=1, place=1))) == INVALID_VALUE)
    hip.ok("hipGraphDestroy", graph)
    # the same by calls
    hip.ok("hipStreamBeginCapture", g.streams[0], 0)
    there = P()
    hip.ok("hipMallocAsync", ctypes.byref(there), size(4 * N), g.streams[0])
    hip.ok("hipMemsetD32Async", there, 8, size(N), g.streams[0])
    hip.ok("hipMemcpyAsync", g.x, there, size(4 * N), 3, g.streams[0])
    hip.ok("hipFreeAsync", there, g.streams[0])
    graph = g.end(0)
    c.expect("calls that became nodes", [g.kind(n) for n in g.nodes(graph)] == [ALLOCATE, FILL, COPY, FREE])
    e = g.instantiate(graph)
    for _ in range(2):
        g.fill(0)
        g.run(e)
        c.expect("what they do", g.values() == [8] * N)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipGraphDestroy", graph)


def test_any_node(g, hip, c):
    graph = g.graph()
    first = g.node("hipGraphAddNode", graph, [], ctypes.byref(AnyNode(kind=FILL, of=AnyNode.Any(fill=FillNode(g.x.value, 4, 1, 0, 2, N)))))
    k = AnyNode(kind=KERNEL, of=AnyNode.Any(kernel=g.kernel(3, 0)))
    node = g.node("hipGraphAddNode", graph, [first], ctypes.byref(k))
    e = g.instantiate(graph)
    g.run(e)
    c.expect("nodes of any kind", g.values() == [6] * N)
    k.of.kernel = g.kernel(5, 0)
    hip.ok("hipGraphExecNodeSetParams", e, node, ctypes.byref(k))
    g.run(e)
    c.expect("told anew in the executable", g.values() == [10] * N)
    k.of.kernel = g.kernel(7, 0)
    hip.ok("hipGraphNodeSetParams", node, ctypes.byref(k))
    hip.ok("hipGraphExecUpdate", e, graph, None, None)
    g.run(e)
    c.expect("told anew in the graph", g.values() == [14] * N)
    k.kind = 9
    c.expect("a kind that there is not", hip.code("hipGraphAddNode", ctypes.byref(P()), graph, None, size(0), ctypes.byref(k)) == INVALID_VALUE)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipGraphDestroy", graph)


def test_objects(g, hip, c):
    """What is hung on a graph is there until the last executable is gone."""
    gone = []
    destroy = HOST_FUNCTION(lambda data: gone.append(data))
    made = hip.made("hipUserObjectCreate", P(77), destroy, 2, 1)
    graph = g.graph()
    hip.ok("hipGraphRetainUserObject", graph, made, 1, 1)  # the program's reference moves
    hip.ok("hipUserObjectRetain", made, 1)
    hip.ok("hipUserObjectRelease", made, 2)
    e = g.instantiate(graph)
    hip.ok("hipGraphDestroy", graph)
    c.expect("while an executable is there", gone == [])
    hip.ok("hipGraphExecDestroy", e)
    c.expect("and then", gone == [77], gone)
    c.expect("flags of 0", hip.code("hipUserObjectCreate", ctypes.byref(P()), None, destroy, 1, 0) == INVALID_VALUE)
    graph, made = g.graph(), hip.made("hipUserObjectCreate", P(78), destroy, 1, 1)
    hip.ok("hipGraphRetainUserObject", graph, made, 2, 0)
    c.expect("more than it has", hip.code("hipGraphReleaseUserObject", graph, made, 3) == INVALID_VALUE)
    hip.ok("hipGraphReleaseUserObject", graph, made, 2)
    hip.ok("hipUserObjectRelease", made, 1)
    c.expect("a graph without it", gone == [77, 78])
    hip.ok("hipGraphDestroy", graph)


def test_forks(g, hip, c):
    """Two streams that are captured with the first: y is computed beside x, and added to it."""
    fork, join = (hip.made("hipEventCreateWithFlags", 2) for _ in range(2))
    s = g.streams
    g.fill(1), g.fill(1, g.y)
    hip.ok("hipStreamBeginCapture", s[0], 0)
    g.axpb(2, 0, 0)
    hip.ok("hipEventRecord", fork, s[0])
    hip.ok("hipStreamWaitEvent", s[1], fork, 0)
    g.axpb(1, 4, 1, g.y)
    g.axpb(1, 1, 0)
    status, captured, nodes, count = ctypes.c_int(), ctypes.c_ulonglong(), ctypes.POINTER(P)(), size()
    graph = P()
    hip.ok("hipStreamGetCaptureInfo_v2", s[1], ctypes.byref(status), ctypes.byref(captured), ctypes.byref(graph), ctypes.byref(nodes), ctypes.byref(count))
    c.expect("the second stream's capture", (status.value, count.value) == (1, 1) and captured.value > 0)
    other = ctypes.c_ulonglong()
    hip.ok("hipStreamGetCaptureInfo", s[0], ctypes.byref(status), ctypes.byref(other))
    c.expect("is the first one's", other.value == captured.value)
    c.expect("an event of a captured stream", [hip.code(name, fork) for name in ("hipEventQuery", "hipEventSynchronize")] == [CAPTURED_EVENT] * 2)
    hip.ok("hipEventRecord", join, s[1])
    hip.ok("hipStreamWaitEvent", s[0], join, 0)
    g.launch("add", 0, g.x, g.y, groups=1)
    c.expect("not the second stream's to end", hip.code("hipStreamEndCapture", s[1], ctypes.byref(P())) == UNMATCHED)
    graph = g.end(0)
    order = [n.value for n in g.nodes(graph)]
    c.expect("what comes after what", [g.before(P(n)) for n in order] == [[], [order[0]], [order[0]], sorted(order[1:3])])
    for stream in (0, 1):
        hip.ok("hipStreamIsCapturing", s[stream], ctypes.byref(status))
        c.expect("no capture any more", status.value == 0)
    c.expect("nothing has run", g.values() == [1] * N)
    e = g.instantiate(graph)
    g.run(e)
    c.expect("what it does", g.values() == [8] * 32 + [3] * 32, g.values())
    c.expect("an event of a capture that is over", hip.code("hipStreamWaitEvent", s[1], fork, 0) == CAPTURED_EVENT)
    hip.ok("hipEventRecord", fork, s[0])
    hip.ok("hipEventSynchronize", fork)
    # a launch that is captured
    hip.ok("hipStreamBeginCapture", s[2], 0)
    hip.ok("hipGraphLaunch", e, s[2])
    again = g.end(2)
    c.expect("a launch in a capture", [g.kind(n) for n in g.nodes(again)] == [KERNEL] * 4)
    got = KernelNode()
    hip.ok("hipGraphKernelNodeGetParams", g.nodes(again)[3], ctypes.byref(got))
    c.expect("its kernels", got.function == hip.function("add").value)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipGraphDestroy", graph)
    hip.ok("hipGraphDestroy", again)
    for it in (fork, join):
        hip.ok("hipEventDestroy", it)


def test_wrong_captures(g, hip, c):
    event, s = hip.made("hipEventCreateWithFlags", 2), g.streams

    def begin(stream):
        hip.ok("hipStreamBeginCapture", s[stream], 0)

    def ended(stream):
        return hip.code("hipStreamEndCapture", s[stream], ctypes.byref(P()))
    begin(0)
    hip.ok("hipEventRecord", event, s[0])
    hip.ok("hipStreamWaitEvent", s[1], event, 0)
    g.axpb(1, 1, 1)
    c.expect("work that is not joined", ended(0) == UNJOINED)
    begin(0)
    begin(1)
    hip.ok("hipEventRecord", event, s[0])
    c.expect("two captures that meet", hip.code("hipStreamWaitEvent", s[1], event, 0) == MERGE)
    c.expect("and both are invalid", [ended(0), ended(1)] == [INVALIDATED] * 2)
    hip.ok("hipEventRecord", event, s[2])
    begin(0)
    c.expect("an event from outside", hip.code("hipStreamWaitEvent", s[0], event, 0) == ISOLATION)
    status = ctypes.c_int()
    hip.ok("hipStreamIsCapturing", s[0], ctypes.byref(status))
    c.expect("the capture is invalid", status.value == 2 and ended(0) == INVALIDATED)
    c.expect("no capture to end", ended(0) == INVALID_VALUE)
    c.expect("the null stream", hip.code("hipStreamBeginCapture", None, 0) == UNSUPPORTED)
    mode = ctypes.c_int(2)
    hip.ok("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    c.expect("the mode before", mode.value == 0)
    hip.ok("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    c.expect("and then", mode.value == 2)
    c.expect("a mode that there is not", hip.code("hipThreadExchangeStreamCaptureMode", ctypes.byref(ctypes.c_int(3))) == INVALID_VALUE)
    c.expect("no capture to change", hip.code("hipStreamUpdateCaptureDependencies", s[0], None, size(0), 1) == ILLEGAL_STATE)
    # a joined stream that is destroyed, and its capture with it
    gone = hip.made("hipStreamCreateWithFlags", 1)
    begin(0)
    hip.ok("hipEventRecord", event, s[0])
    hip.ok("hipStreamWaitEvent", gone, event, 0)
    hip.ok("hipStreamDestroy", gone)
    c.expect("a capture whose stream is gone", ended(0) == INVALIDATED)
    hip.ok("hipEventDestroy", event)


def test_capture_to_graph(g, hip, c):
    graph, s = g.graph(), g.streams
    a = g.kernel_node(graph, [], 2, 0)
    hip.ok("hipStreamBeginCaptureToGraph", s[0], graph, (P * 1)(a), None, size(1), 0)
    g.axpb(1, 5, 0)
    nodes, count, status = ctypes.POINTER(P)(), size(), ctypes.c_int()
    hip.ok("hipStreamGetCaptureInfo_v2", s[0], ctypes.byref(status), None, None, ctypes.byref(nodes), ctypes.byref(count))
    b = nodes[0]
    hip.ok("hipStreamUpdateCaptureDependencies", s[0], (P * 1)(a), size(1), 1)
    g.axpb(1, 100, 0, g.y)
    hip.ok("hipStreamUpdateCaptureDependencies", s[0], (P * 1)(b), size(1), 0)
    g.launch("add", 0, g.x, g.y, groups=1)
    same = g.end(0)
    order = [n.value for n in g.nodes(graph)]
    c.expect("into a graph", same.value == graph.value and [g.before(P(n)) for n in order] == [[], [a.value], [a.value], sorted(order[1:3])])
    g.fill(1), g.fill(0, g.y)
    e = g.instantiate(graph)
    g.run(e)
    c.expect("what it does", g.values() == [107] * 32 + [7] * 32)
    c.expect("a node of another graph", hip.code("hipStreamBeginCaptureToGraph", s[0], g.graph(), (P * 1)(a), None, size(1), 0) == INVALID_VALUE)
    hip.ok("hipGraphExecDestroy", e)
    hip.ok("hipGraphDestroy", graph)


def test_captured_graph_ends(g, hip, c):
    """A captured graph is the program's alone: neither events of the capture nor the capture keep it."""
    s, gone = g.streams[0], []
    destroy = HOST_FUNCTION(lambda data: gone.append(data))
    first, second = (hip.made("hipEventCreateWithFlags", 2) for _ in range(2))

    def captured(graph, *records):
        if graph:
            hip.ok("hipStreamBeginCaptureToGraph", s, graph, None, None, size(0), 0)
        else:
            hip.ok("hipStreamBeginCapture", s, 0)
        for event, flags in records:
            hip.ok("hipEventRecordWithFlags", event, s, flags)
        graph = g.end(0)
        hip.ok("hipGraphRetainUserObject", graph, hip.made("hipUserObjectCreate", P(1), destroy, 1, 1), 1, 1)
        hip.ok("hipGraphDestroy", graph)

    captured(None, (first, 0))
    c.expect("beside an event of the capture", len(gone) == 1, gone)
    captured(g.graph(), (second, 0))
    c.expect("into a graph", len(gone) == 2, gone)
    captured(None, (first, 1), (second, 0))  # a node has the first event, which was captured elsewhere
    c.expect("with an event of its own", len(gone) == 3, gone)
    hip.ok("hipEventDestroy", first)
    hip.ok("hipEventDestroy", second)


def main():
    if len(sys.argv) == 2:
        environment = dict(os.environ, RDNA_EMULATE="gfx1100", RDNA_EMULATE_CHECK="1", RDNA_EMULATE_EXITCODE="0")
        return os.spawnve(os.P_WAIT, sys.executable, [sys.executable, __file__, sys.argv[1], "run"], environment)
    hip, checks = Hip(sys.argv[1], ["gfx1100"], SOURCE), Checks("graphs,")
    graphs = Graphs(hip)
    for test in (test_kernel_nodes, test_other_nodes, test_enabled, test_shape, test_children, test_events, test_memory, test_any_node,
                 test_objects, test_forks, test_wrong_captures, test_capture_to_graph, test_captured_graph_ends):
        test(graphs, hip, checks)
    hip.ok("hipDeviceSynchronize")
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
