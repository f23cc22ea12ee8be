"""Lazy arrays by ctypes (rdna/graph_array.h): arrays that have no values yet, whose functions record what is to be computed."""

import ctypes
import threading

from . import _core
from ._array import MOST_LATER, Array, is_lazy, later, report, stream_of
from ._core import check, fail, library, make, pending, sizes

_run = library.rdna_plan_run


def pointers(arrays):
    """The pointers of arrays, None for None."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(None if x is None else x.pointer for x in arrays))


def _taken(out, like):
    """Arrays of the pointers that a call has filled in, complex where those of |like| are."""
    return [Array(pointer, x.pairs) for pointer, x in zip(out, like)]


def lazy(x):
    """x's values as a lazy array of its own, to differentiate by."""
    return Array(make("rdna_array_lazy", x.pointer), x.pairs)


def placeholder(like):
    """A lazy array of |like|'s type and shape, whose values come when a plan is run."""
    dtype, shape = like.dtype, like.shape
    if like.pairs:
        dtype, shape = _core.part_of[dtype], (*shape, 2)
    return placeholder_of(stream_of(like), dtype, shape, like.pairs)


def placeholder_of(stream, dtype, shape, pairs=False):
    """A placeholder of a real type, whose last dimension has real and imaginary parts where |pairs|."""
    return Array(make("rdna_array_placeholder", stream, _core.number_of[dtype], len(shape), sizes(shape)), pairs)


def evaluate(arrays):
    """The values of lazy arrays, computed together; others are themselves."""
    if not arrays or not any(is_lazy(x) for x in arrays):
        return list(arrays)
    out = pointers([None] * len(arrays))
    check(library.rdna_array_evaluate(pointers(arrays), len(arrays), out))
    return _taken(out, arrays)


def gradients(outputs, seeds, inputs):
    """Of the sum over outputs of output times seed, by each input; all lazy. |seeds| None: ones, of outputs of one value."""
    out = pointers([None] * len(inputs))
    check(library.rdna_array_gradients(pointers(outputs), len(outputs), None if seeds is None else pointers(seeds), pointers(inputs),
                                       len(inputs), out))
    return _taken(out, inputs)


def record(function, operands, *arguments):
    """What librdna's rdna_record_|function| makes of operands, arrays among which stand None and numbers: lazy if one of them is."""
    given = [x for x in operands if isinstance(x, Array)]
    recorder, nodes, out = ctypes.c_void_p(), pointers([None] * len(given)), ctypes.c_void_p()
    keep_lazy = any(is_lazy(x) for x in given)
    check(library.rdna_array_record(pointers(given), len(given), ctypes.byref(recorder), nodes))
    found, node = iter(nodes), None
    try:
        node = getattr(library, "rdna_record_" + function)(recorder, *(next(found) if isinstance(x, Array) else x for x in operands), *arguments)
    finally:  # the recorder is given up whatever happens
        status = library.rdna_array_recorded(recorder, node, keep_lazy, ctypes.byref(out))
    check(status)
    return Array(out.value)


def still(x):
    """x, by which nothing is differentiated."""
    return record("stop", [x]) if is_lazy(x) else x


_Write = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def _text(function, *arguments):
    """What a function of librdna writes."""
    pieces = []

    def write(_, text, size):
        pieces.append(ctypes.string_at(text, size))
        return 0
    check(getattr(library, function)(*arguments, _Write(write), None))
    return b"".join(pieces).decode()


class Graph:
    """What arrays are computed from. print(graph) has a line for each node, and notebooks show the picture."""

    def __init__(self, outputs, inputs=()):
        self.outputs, self.inputs = list(outputs), list(inputs)

    def _nodes(self, function):
        recorder, nodes = ctypes.c_void_p(), pointers([None] * len(self.outputs))
        check(library.rdna_array_record(pointers(self.outputs), len(self.outputs), ctypes.byref(recorder), nodes))
        try:
            return _text(function, nodes, len(self.outputs))
        finally:
            library.rdna_recorder_release(recorder)

    def __str__(self):
        return self._nodes("rdna_nodes_print")

    def svg(self):
        """A picture, of 2,000 nodes at most."""
        return self._nodes("rdna_nodes_draw")

    def plan(self):
        """The steps that run, as text: which operations share a launch, what is read and made, and freed behind it."""
        return str(Plan(self.outputs, self.inputs))

    _repr_svg_ = svg


class Plan:
    """Steps that compute |outputs| from arrays in the place of |inputs|, which are placeholders. Behind these come placeholders of what each run draws
    anew, by functions without arguments; |watched| are answers that are looked at when values are asked for later, with sentences."""

    def __init__(self, outputs, inputs, drawn=(), watched=()):
        self.watched = [sentence for _, sentence in watched]
        outputs = [*outputs, *(answer for answer, _ in watched)]
        inputs, self.draws = [*inputs, *(place for place, _ in drawn)], [draw for _, draw in drawn]
        self.pointer = make("rdna_array_plan", pointers(outputs), len(outputs), pointers(inputs), len(inputs))
        check(library.rdna_plan_replay(self.pointer, True))
        self._lock, self._alone = threading.RLock(), True
        self.pairs = [x.pairs for x in outputs]
        self._Inputs, self._Outputs = (ctypes.c_void_p * max(len(each), 1) for each in (inputs, outputs))

    def __del__(self, release=library.rdna_plan_release):
        if getattr(self, "pointer", None):
            release(self.pointer)

    steps = property(lambda self: library.rdna_plan_steps(self.pointer), doc="How many launches a run has, about.")
    peak_bytes = property(lambda self: library.rdna_plan_peak_bytes(self.pointer), doc="Of results that are held at one time.")

    replays = property(lambda self: library.rdna_plan_replays(self.pointer, None), doc="How many runs were one launch, recorded by the driver.")

    @property
    def obstacle(self):
        """Why no run is one launch, "" where they may be."""
        if not self._alone:
            return "the program has other threads, whose work the driver would record too"
        why = ctypes.c_char_p()
        library.rdna_plan_replays(self.pointer, ctypes.byref(why))
        return why.value.decode(errors="replace")

    def __str__(self):
        return _text("rdna_plan_print", self.pointer)

    def run(self, inputs):
        if self.draws:
            inputs = [*inputs, *(draw() for draw in self.draws)]
        out = self._Outputs()
        with self._lock:
            if self._alone and threading.active_count() > 1:  # what another thread queues meanwhile would be recorded too
                check(library.rdna_plan_replay(self.pointer, False))
                self._alone = False
            status = _run(self.pointer, self._Inputs(*[x.pointer for x in inputs]), len(inputs), out)
            if status:
                fail(status)
            pending.error = None  # of a recording that could not be
        made = [Array(pointer, pairs) for pointer, pairs in zip(out, self.pairs)]
        if self.watched:
            later.append((made[-len(self.watched):], self.watched))
            del made[-len(self.watched):]
            if len(later) > MOST_LATER:  # of runs that are done long since
                report(1)
        return made
