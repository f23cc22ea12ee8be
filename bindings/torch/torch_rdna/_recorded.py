"""torch.compile(backend="rdna", mode="reduce-overhead"): a graph of inference is run once, recorded by the driver at the
second call (torch.rdna.Graph) and replayed from then on, for which the processor takes microseconds instead of
milliseconds.

    parameters and buffers   are read where they lie; where they are moved, the graph is recorded again
    other inputs             are copied into tensors that the recording reads
    results                  are copied out, and are the caller's

A recording is of one stream, and of inputs of the same shapes. Its memory is its own until the compiled function goes.
A graph that cannot be recorded runs as it would without the mode: compile_report() says why."""

import functools
import logging
import threading

import torch

from . import _C, _views
from ._device import is_ours
from .graphs import Graph, graph
from .streams import Stream, stream

log = logging.getLogger("torch_rdna.compile")

MOST = 8  # recordings of a graph, each of which holds memory
MOST_SEEN = 64  # shapes that were called with once
MOST_MOVES = 3  # of its parameters, each of which makes another recording


@functools.cache
def _lacking(index):
    """Why the driver of a device records nothing, or None."""
    probe = Graph()
    try:
        with stream(Stream(index)):
            probe.capture_begin()
            probe.capture_end()
    except RuntimeError as error:
        return _first_line(error)
    return None


def _first_line(error):
    return str(error).splitlines()[0]


def note(report, reason):
    report["not_recorded", reason] += 1


def cannot(fx_graph):
    """Why |fx_graph| cannot be replayed, or None."""
    for node in fx_graph.nodes:
        target = node.target
        if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
            continue
        if draws(node):
            return f"has {target}, whose results are others each time"
        if target._schema.is_mutable:
            return f"writes into what it is given ({target})"
        if target is torch.ops.aten.as_strided.default and _views.source(node.args[0]).op == "placeholder":
            return "reads the memory of an input by strides of its own"
    return None


def draws(node):
    """Whether an operator draws random numbers."""
    target = node.target
    return node.op == "call_function" and isinstance(target, torch._ops.OpOverload) and \
        torch.Tag.nondeterministic_seeded in target.tags and not _without_dropout(node)


def _without_dropout(node):
    """Attention draws numbers for dropout alone."""
    for place, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[place] if place < len(node.args) else node.kwargs.get("dropout_p", argument.default_value)
            return given == 0
    return False


def _stays(value):
    """Whether it lies where it lay: a parameter, or a buffer, which Dynamo marks."""
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


def _overlaps(t):
    """Whether two of its values may lie in one place."""
    span = 1
    for stride, size in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if stride < span:
            return True
        span += stride * (size - 1)
    return False


def _copied(value):
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device).copy_(value)


class _Recording:
    def __init__(self, run, values):
        self.read = [v if not isinstance(v, torch.Tensor) or _stays(v) else torch.empty_like(v) for v in values]
        self.moves = [i for i, v in enumerate(values) if isinstance(v, torch.Tensor) and not _stays(v)]
        self.places = [(i, v.data_ptr()) for i, v in enumerate(values) if isinstance(v, torch.Tensor) and _stays(v)]
        self._fill(values)
        self.graph = Graph()
        with graph(self.graph):
            self.results = run(list(self.read))
        if any(isinstance(t, torch.Tensor) and _overlaps(t) for t in self.results):
            raise RuntimeError("a result overlaps itself")

    def _fill(self, values):
        for i in self.moves:
            self.read[i].copy_(values[i])

    def still_reads(self, values):
        return all(values[i].data_ptr() == place for i, place in self.places)

    def __call__(self, values):
        self._fill(values)
        self.graph.replay()
        return [_copied(t) for t in self.results]


class Recorded:
    """Is called like |run|, with a list that it empties."""

    def __init__(self, run, report):
        self.run, self.report = run, report
        self.made, self.seen, self.moves, self.full, self.stops = {}, {}, 0, False, False
        self.lock = threading.Lock()  # a recording is for one caller at a time

    def __call__(self, values):
        if self.stops or _C.is_capturing():
            return self.run(values)
        with self.lock:
            recording = self._recording(values)
            if recording is None:
                return self.run(values)
            results = recording(values)
        values.clear()
        return results

    def _recording(self, values):
        key = (_C.current_stream(-1), *(_kind(v) for v in values))
        recording = self.made.get(key)
        if recording is not None and recording.still_reads(values):
            return recording
        if recording is not None:
            del self.made[key]
            self.moves += 1
            if self.moves > MOST_MOVES:
                return self._stop("its parameters are moved again and again")
        elif len(self.made) == MOST:
            if not self.full:
                self.full = True
                note(self.report, f"has {MOST} recordings already, for as many shapes")
            return None
        elif key not in self.seen:  # kernels are loaded and choices made
            self.seen[key] = True
            if len(self.seen) > MOST_SEEN:
                del self.seen[next(iter(self.seen))]
            reason = _lacking(_C.current_device())
            return self._stop(reason) if reason else None
        tensors = [v for v in values if isinstance(v, torch.Tensor)]
        if not all(is_ours(v.device) and v.device.index == _C.current_device() for v in tensors):
            return self._stop("reads a tensor of another device than the current one")
        try:
            recording = self.made[key] = _Recording(self.run, values)
        except RuntimeError as error:
            return self._stop(_first_line(error))
        self.report["recorded"] += 1
        return recording

    def _stop(self, reason):
        self.stops = True
        self.made.clear()
        note(self.report, reason)
        log.info("not recorded: %s", reason)


def _kind(value):
    if not isinstance(value, torch.Tensor):
        return value
    return None if _stays(value) else (value.shape, value.stride(), value.dtype, value.device)
