"""Recurrent networks, with PyTorch's names, formulas and shapes: a state goes from place to place of a sequence."""

import math

from ._array import full_on, need, stream_of
from ._modules import Dropout, Module, _uniform
from ._moving import concat, expand_dims, matrix_transpose, permute_dims, reshape, slice_of, squeeze, stack
from ._pointwise import relu, sigmoid, tanh
from ._products import matmul


class _Recurrent(Module):
    """Of x (places, batch, input_size), (batch, places, input_size) with |batch_first|, or (places, input_size), and a state for each layer and
    direction, (layers times directions, batch, hidden_size), zeros without. Returns the last layer's states at each place, of both directions beside
    each other, and the states behind the last place."""

    gates, state_names = 1, ("state",)

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
        """One layer in one direction: its states at each place, and behind the last."""
        places, batch, size = x.shape
        weight, bias = getattr(self, "weight_hh" + end), getattr(self, "bias_hh" + end)
        given = matmul(reshape(x, (places * batch, size)), matrix_transpose(getattr(self, "weight_ih" + end)))  # of all places in one product
        if bias is not None:
            given = given + getattr(self, "bias_ih" + end)
        given, weight, made = reshape(given, (places, batch, given.shape[1])), matrix_transpose(weight), []
        for place in reversed(range(places)) if backwards else range(places):
            carried = matmul(own[0], weight)
            own = self.step(given[place], carried if bias is None else carried + bias, own)
            made.append(own[0])
        return stack(made[::-1] if backwards else made, axis=0), own

    def _parts(self, x):
        return (slice_of(x, 1, i * self.hidden_size, self.hidden_size) for i in range(self.gates))


class RNN(_Recurrent):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of that."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0, bidirectional=False):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        self.nonlinearity = nonlinearity

    def step(self, given, carried, own):
        return ((tanh if self.nonlinearity == "tanh" else relu)(given + carried),)


class LSTM(_Recurrent):
    """Gates i, f, g, o: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). The state is a pair (h, c)."""

    gates, state_names = 4, ("h", "c")

    def step(self, given, carried, own):
        i, f, g, o = self._parts(given + carried)
        c = sigmoid(f) * own[1] + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c


class GRU(_Recurrent):
    """Gates r, z, n: n = tanh(W_in x + b_in + sigmoid(r) (W_hn h + b_hn)), h = (1 - sigmoid(z)) n + sigmoid(z) h."""

    gates = 3

    def step(self, given, carried, own):
        (r, z, n), (carried_r, carried_z, carried_n) = self._parts(given), self._parts(carried)
        z = sigmoid(z + carried_z)
        n = tanh(n + sigmoid(r + carried_r) * carried_n)
        return ((1.0 - z) * n + z * own[0],)
