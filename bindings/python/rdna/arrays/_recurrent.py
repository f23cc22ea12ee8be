"""Recurrent networks, with PyTorch's names, formulas and shapes: a state goes from place to place of a sequence."""

import math

from ._array import cast, full_on, is_lazy, need, stream_of
from ._graph import evaluate, lazy, record
from ._modules import Dropout, Module, _uniform
from ._moving import concat, expand_dims, permute_dims, squeeze, stack
from ._types import result_type

_LSTM, _GRU, _TANH, _RELU = range(4)  # rdna_cell of rdna/op/recurrent.h


class _Recurrent(Module):
    """Of x (places, batch, input_size), (batch, places, input_size) with |batch_first|, or (places, input_size), and a state for each layer and
    direction, (layers times directions, batch, hidden_size), zeros without. Returns the last layer's states at each place, of both directions beside
    each other, and the states behind the last place."""

    gates, state_names = 1, ("state",)
    cell = None  # of each kind its own

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False):
        if hidden_size < 1 or num_layers < 1:
            raise ValueError(f"{type(self).__name__}: hidden_size {hidden_size} and num_layers {num_layers} are at least 1")
        self.input_size, self.hidden_size, self.num_layers, self.batch_first = input_size, hidden_size, num_layers, batch_first
        self.directions = ("", "_reverse") if bidirectional else ("",)
        self.between = Dropout(dropout) if dropout else None
        rows, bound = self.gates * hidden_size, 1 / math.sqrt(hidden_size)
        for layer in range(num_layers):
            given = hidden_size * len(self.directions) if layer else input_size
            for direction in self.directions:
                end = f"_l{layer}{direction}"
                setattr(self, "weight_ih" + end, _uniform((rows, given), bound))
                setattr(self, "weight_hh" + end, _uniform((rows, hidden_size), bound))
                for name in ("bias_ih", "bias_hh"):
                    setattr(self, name + end, _uniform((rows,), bound) if bias else None)

    def forward(self, x, state=None):
        name, x = type(self).__name__, need(type(self).__name__, x)
        batched = x.ndim == 3
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(f"{name}: x is (places, batch, {self.input_size}) or (places, {self.input_size}), not {x.shape}")
        if not batched:
            x = expand_dims(x, axis=1)
        elif self.batch_first:
            x = permute_dims(x, (1, 0, 2))
        if not x.shape[0]:
            raise ValueError(f"{name}: a sequence of no places has no last state")
        states, last = self._begin(x, state, batched), []
        for layer in range(self.num_layers):
            if layer and self.between:
                x = self.between(x)
            made = []
            for number, direction in enumerate(self.directions, layer * len(self.directions)):
                out, own = self._run(x, tuple(s[number] for s in states), f"_l{layer}{direction}", direction != "")
                made.append(out)
                last.append(own)
            x = concat(made, axis=2) if len(made) > 1 else made[0]
        last = tuple(stack(own, axis=0) for own in zip(*last))
        if not batched:
            x, last = squeeze(x, 1), tuple(squeeze(s, 1) for s in last)
        elif self.batch_first:
            x = permute_dims(x, (1, 0, 2))
        return x, last if len(last) > 1 else last[0]

    def _begin(self, x, state, batched):
        """The states before the first place, each (layers times directions, batch, hidden_size)."""
        shape = (self.num_layers * len(self.directions), x.shape[1], self.hidden_size)
        if state is None:
            return tuple(full_on(stream_of(x), shape, 0, x.dtype) for _ in self.state_names)
        given = tuple(state) if len(self.state_names) > 1 else (state,)
        wanted = shape if batched else (shape[0], shape[2])
        if len(given) != len(self.state_names) or any(need(type(self).__name__, s).shape != wanted for s in given):
            raise ValueError(f"{type(self).__name__}: {' and '.join(self.state_names)} have shape {wanted}, not "
                             f"{' and '.join(str(s.shape) for s in given)}")
        return tuple(need(type(self).__name__, s) if batched else expand_dims(s, axis=1) for s in given)

    def _run(self, x, own, end, backwards):
        """One layer in one direction, by rdna_record_recurrent: its states at each place, and behind the last."""
        weights = [getattr(self, name + end) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        dtype = result_type(x, *(w for w in weights if w is not None), *own)
        waits = not any(is_lazy(a) for a in (x, *own, *weights) if a is not None)
        x = lazy(cast(x, dtype)) if waits else cast(x, dtype)  # so that both results are of one node
        h, c = own if len(own) > 1 else (own[0], None)
        out = record("recurrent", [self.cell, backwards, x, *weights, h, c])
        cells = [record("recurrent_cells", [out])] if c is not None else []
        if waits:
            out, *cells = evaluate([out, *cells])
        return out, (out[0 if backwards else -1], *cells)


class RNN(_Recurrent):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of that."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        self.nonlinearity, self.cell = nonlinearity, _TANH if nonlinearity == "tanh" else _RELU


class LSTM(_Recurrent):
    """Gates i, f, g, o: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). The state is a pair (h, c)."""

    gates, cell, state_names = 4, _LSTM, ("h", "c")


class GRU(_Recurrent):
    """Gates r, z, n: n = tanh(W_in x + b_in + sigmoid(r) (W_hn h + b_hn)), h = (1 - sigmoid(z)) n + sigmoid(z) h."""

    gates, cell = 3, _GRU
