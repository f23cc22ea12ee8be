"""Graphs: work of a stream that is recorded once and queued again with one call."""

import itertools
import types

import torch

from . import _C
from ._device import synchronize
from .memory import empty_cache
from .streams import Stream, stream

_pools = itertools.count(1)


def graph_pool_handle():
    """A token that capture_begin(pool=) takes. It is a hint: a graph of rdna keeps the memory of its own recording."""
    return (0, next(_pools))


def is_current_stream_capturing():
    """Whether what this thread queues now is recorded by a graph."""
    return _C.is_capturing()


class Graph:
    """As torch.cuda.CUDAGraph: capture_begin, work, capture_end, replay. Made on torch.accelerator.Graph where PyTorch has
    it, 2.13 among others."""

    def __init__(self, keep_graph=False):
        self._accelerator = hasattr(getattr(torch, "accelerator", None), "Graph")
        self._graph = torch.accelerator.Graph(keep_graph) if self._accelerator else _C.Graph()

    def capture_begin(self, pool=None, capture_error_mode="global"):
        if self._accelerator:
            self._graph.graph_pool = pool
            self._graph.capture_error_mode = capture_error_mode
        self._graph.capture_begin()

    def __getattr__(self, name):
        return getattr(self.__dict__["_graph"], name)


def _capture_stream():
    graph.default_capture_stream = graph.default_capture_stream or Stream()
    return graph.default_capture_stream


class graph:
    """Context in which the work of a stream, one of its own if none is given, is recorded by |graph| and not done."""

    default_capture_stream = None

    def __init__(self, graph, pool=None, stream=None, capture_error_mode="global"):
        stream = stream or _capture_stream()
        self.graph, self.pool, self.capture_stream, self.mode = graph, pool, stream, capture_error_mode

    def __enter__(self):
        synchronize()
        empty_cache()
        self._context = stream(self.capture_stream)
        self._context.__enter__()
        try:
            self.graph.capture_begin(pool=self.pool, capture_error_mode=self.mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, *unused):
        try:
            self.graph.capture_end()
        finally:
            self._context.__exit__()


def _as_torch():
    """torch, with what make_graphed_callables of torch.cuda uses of torch.cuda."""
    # One stream for warming up and recording: autograd orders what came from different ones by events.
    cuda = types.SimpleNamespace(
        CUDAGraph=Graph, graph=graph, Stream=_capture_stream, stream=stream, synchronize=synchronize
    )
    view = types.ModuleType("torch")
    view.__getattr__ = lambda name: getattr(torch, name)
    view.cuda = cuda
    return view


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """|callables| (functions or modules; one, or a tuple) whose forward and backward are graphs, each recorded with its
    |sample_args| and replayed for arguments of the same shapes."""
    # PyTorch's own function, which asks torch.cuda for its graphs by name.
    theirs = torch.cuda.make_graphed_callables
    names = {**theirs.__globals__, "torch": _as_torch(), "graph_pool_handle": graph_pool_handle}
    ours = types.FunctionType(theirs.__code__, names, theirs.__name__, theirs.__defaults__, theirs.__closure__)
    return ours(callables, sample_args, num_warmup_iters, allow_unused_input, pool)
