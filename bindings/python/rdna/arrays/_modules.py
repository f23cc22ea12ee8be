"""Layers that keep their parameters, and networks of them. Parameters are the arrays among a module's attributes, buffers those that it
names in |buffers|: what is kept and not trained. Initial values are uniform as PyTorch's are, by numbers that manual_seed begins anew."""

import functools
import math
import threading

from . import _functional as F
from ._array import Array, again, become, cast, need
from ._core import BF16, F32
from ._grad import compile, recording_plan
from ._grad import value_and_grad as _value_and_grad
from ._graph import evaluate, still
from ._making import asarray, full, ones, zeros
from ._moving import matrix_transpose, permute_dims, reshape
from ._pointwise import gelu, relu, sigmoid, silu, tanh, where
from ._products import matmul
from ._reducing import mean, var
from ._types import known
from .random import manual_seed, take_place, uniform  # noqa: F401


def _uniform(shape, bound):
    return uniform(shape, -bound, bound)


class Module:
    """Something with parameters, or with modules, also in lists. `forward` is what calling it does."""

    buffers = ()
    training = True

    def __call__(self, *arguments, **keywords):
        return self.forward(*arguments, **keywords)

    def __repr__(self):
        """The modules below, a line each, with the shapes of their own arrays."""
        own = ", ".join(f"{name} {value.shape}" for name, value in vars(self).items() if isinstance(value, Array))
        lines = [f"({name}): {line}" if i == 0 else line for name, module in self._modules() for i, line in enumerate(repr(module).splitlines())]
        return f"{type(self).__name__}({own}" + ("\n" + "\n".join("  " + line for line in lines) + "\n)" if lines else ")")

    def _modules(self):
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, (list, tuple)):
                yield from ((f"{name}.{i}", x) for i, x in enumerate(value) if isinstance(x, Module))

    def _places(self, prefix=""):
        """(name, module, attribute) of each array below."""
        for name, value in vars(self).items():
            if isinstance(value, Array):
                yield prefix + name, self, name
        for name, module in self._modules():
            yield from module._places(f"{prefix}{name}.")

    def _arrays(self):
        return {name: getattr(module, at) for name, module, at in self._places()}

    def _first_names(self):
        """For each name the first name of its array, of places that are trained if there are such: one array may stand at several, which are tied."""
        first, places = {}, sorted(self._places(), key=lambda place: place[2] in place[1].buffers)
        return {name: first.setdefault(id(getattr(module, at)), name) for name, module, at in places}

    def parameters(self):
        """Arrays by their names, "0.weight"; one that stands at several places by the first of them."""
        found = {}
        for name, module, at in self._places():
            if at not in module.buffers:
                x = getattr(module, at)
                found.setdefault(id(x), (name, x))
        return dict(found.values())

    def state_dict(self):
        """The parameters and what else is kept, running statistics, as they are now: what is trained or assigned to later leaves these alone."""
        return {name: again(x) for name, x in self._arrays().items()}

    def load_state_dict(self, state):
        """Takes the values of |state|, arrays or NumPy's, which has all names, shapes and types that state_dict has; of places that are tied one
        name is enough."""
        own, first = self._arrays(), self._first_names()
        given = {first[name] for name in state if name in first}
        alone = sorted({*(state.keys() - own.keys()), *(name for name in own if first[name] not in given)})
        if alone:
            raise ValueError(f"load_state_dict: {alone} are on one side alone")
        taken = {}
        for name, x in state.items():
            x, here = asarray(need("load_state_dict", x), device=own[name].device), own[name]
            if x.dtype == BF16 and here.dtype == F32:  # which holds its values
                x = cast(x, F32)
            if x.shape != here.shape or x.dtype != here.dtype:
                raise ValueError(f"load_state_dict: {name} is {x.dtype} {x.shape}, and here {here.dtype} {here.shape}")
            other = taken.setdefault(first[name], x)
            if other.pointer != x.pointer and other.numpy().tobytes() != x.numpy().tobytes():
                raise ValueError(f"load_state_dict: {name} and {first[name]} are one array here, and have two values")
        for name, x in taken.items():
            become(own[name], x)

    def _put(self, state):
        for name, module, at in list(self._places()):
            if name in state:
                setattr(module, at, state[name])

    def _each(self):
        """This module and all below."""
        yield self
        for _, module in self._modules():
            yield from module._each()

    def train(self, training=True):
        """Dropout drops, and batch norm takes the statistics of what it is given. Returns the module."""
        self.training = training
        for _, module in self._modules():
            module.train(training)
        return self

    def eval(self):
        return self.train(False)

    def astype(self, dtype):
        """Has its arrays of floats in |dtype| from now on, bfloat16 for example; what is one array at several places stays one. Returns the module."""
        made, dtype = {}, known(dtype)
        if dtype.kind != "f":
            raise TypeError(f"astype: models are of floating types, not of {dtype}")
        for _, module, at in list(self._places()):
            x = getattr(module, at)
            if x.dtype.kind == "f":
                made.setdefault(id(x), (x, cast(x, dtype)))  # with x, so that no other gets its id
                setattr(module, at, made[id(x)][1])
        return self


class _Keeping(threading.local):
    modules = frozenset()  # ids of those whose running statistics are given out as results of what is being recorded


_keeping = _Keeping()


class _Form:
    """What a plan of a model depends on beside its arrays, to look it up by: which places are tied, and what is in training."""

    def __init__(self, model):
        self.first = model._first_names()
        self.key = tuple(self.first.items()), tuple(module.training for module in model._each())

    def __eq__(self, other):
        return self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def everywhere(self, values):
        """|values| under all names of their places."""
        return {name: values[first] for name, first in self.first.items() if first in values}


def value_and_grad(model, function, compiled=False):
    """A function with function's arguments, which returns its value, an array of one value, and the gradients by model's parameters, by
    their names. function calls the model, whose running statistics are updated. |compiled|: as a plan for each set of shapes, which is
    recorded once; other arrays than arguments and those of the model are then as they were at that time."""
    def pure(parameters, state, form, arguments, keywords):
        trained = form.everywhere(parameters)
        model._put({**state, **trained})
        before, _keeping.modules = _keeping.modules, _keeping.modules | {id(module) for module in model._each()}
        try:
            value = function(*arguments, **keywords)
        finally:
            _keeping.modules = before
        return value, {name: x for name, x in model._arrays().items() if name not in trained}

    both = _value_and_grad(pure, has_aux=True)
    both = compile(both) if compiled else both

    @functools.wraps(function)
    def wrapped(*arguments, **keywords):
        if recording_plan():
            raise RuntimeError("nn.value_and_grad: within compile the parameters would stay what they are now; give it compiled=True instead")
        form, parameters = _Form(model), model.parameters()
        trained = form.everywhere(parameters)
        kept = {name: x for name, x in model._arrays().items() if name not in trained}
        after = kept
        try:
            (value, after), slopes = both(parameters, kept, form, arguments, keywords)
        finally:
            model._put({**trained, **after})
        return value, slopes
    return wrapped


class Sequential(Module):
    """One module after another."""

    def __init__(self, *modules):
        self.modules = list(modules)

    def _modules(self):
        return ((str(i), module) for i, module in enumerate(self.modules))

    def __getitem__(self, i):
        return self.modules[i]

    def __len__(self):
        return len(self.modules)

    def forward(self, x):
        for module in self.modules:
            x = module(x)
        return x


# ---- layers with weights ----


class Linear(Module):
    """x weight^T + bias; weight (out_features, in_features)."""

    def __init__(self, in_features, out_features, bias=True):
        bound = 1 / math.sqrt(in_features)
        self.weight = _uniform((out_features, in_features), bound)
        self.bias = _uniform((out_features,), bound) if bias else None

    def forward(self, x):
        y = matmul(x, matrix_transpose(self.weight))
        return y if self.bias is None else y + self.bias


class Embedding(Module):
    """Rows of weight (num_embeddings, embedding_dim)."""

    def __init__(self, num_embeddings, embedding_dim):
        self.weight = _uniform((num_embeddings, embedding_dim), math.sqrt(3.0))  # of variance 1, as PyTorch's normal ones

    def forward(self, ids):
        return F.embedding(ids, self.weight)


def _several(value, dims):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims


class _Conv(Module):
    function, dims = None, 0

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True):
        window = _several(kernel_size, self.dims)
        bound = 1 / math.sqrt(in_channels // groups * math.prod(window))
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.weight = _uniform((out_channels, in_channels // groups, *window), bound)
        self.bias = _uniform((out_channels,), bound) if bias else None

    def forward(self, x):
        return type(self).function(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv1d(_Conv):
    function, dims = staticmethod(F.conv1d), 1


class Conv2d(_Conv):
    function, dims = staticmethod(F.conv2d), 2


class Conv3d(_Conv):
    function, dims = staticmethod(F.conv3d), 3


class ConvTranspose2d(Module):
    """weight (in_channels, out_channels / groups, window)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1):
        window = _several(kernel_size, 2)
        bound = 1 / math.sqrt(out_channels // groups * math.prod(window))
        self.options = stride, padding, output_padding, groups, dilation
        self.weight = _uniform((in_channels, out_channels // groups, *window), bound)
        self.bias = _uniform((out_channels,), bound) if bias else None

    def forward(self, x):
        return F.conv_transpose2d(x, self.weight, self.bias, *self.options)


# ---- normalization ----


class _BatchNorm(Module):
    """By the statistics of x in training, which go into running ones with the weight |momentum|; by these otherwise."""

    buffers = ("running_mean", "running_var")
    ranks = ()

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = ones((num_features,)), zeros((num_features,))
        self.running_mean, self.running_var = zeros((num_features,)), ones((num_features,))

    def forward(self, x):
        if x.ndim not in self.ranks:
            raise ValueError(f"{type(self).__name__}: x has {x.ndim} dimensions, not {' or '.join(map(str, self.ranks))}")
        if self.training:
            self._keep_statistics(still(x))
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.eps)


    def _keep_statistics(self, x):
        axes, kept = tuple(i for i in range(x.ndim) if i != 1), id(self) in _keeping.modules
        if x.size == x.shape[1]:
            raise ValueError(f"{type(self).__name__}: in training a channel needs several values, and x is {x.shape}")
        if recording_plan() and not kept:
            raise RuntimeError("a plan would not keep running statistics; nn.value_and_grad(model, f, compiled=True) does, and eval() needs none")
        found = [old * (1 - self.momentum) + new * self.momentum for old, new in (
            (self.running_mean, mean(x, axis=axes)), (self.running_var, var(x, axis=axes, correction=1)))]
        self.running_mean, self.running_var = found if kept else evaluate(found)


class BatchNorm1d(_BatchNorm):
    ranks = 2, 3


class BatchNorm2d(_BatchNorm):
    ranks = (4,)


class LayerNorm(Module):
    def __init__(self, size, eps=1e-5):
        self.eps, self.weight, self.bias = eps, ones((size,)), zeros((size,))

    def forward(self, x):
        return F.layer_norm(x, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    def __init__(self, size, eps=1e-6):
        self.eps, self.weight = eps, ones((size,))

    def forward(self, x):
        return F.rms_norm(x, self.weight, self.eps)


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5):
        self.num_groups, self.eps, self.weight, self.bias = num_groups, eps, ones((num_channels,)), zeros((num_channels,))

    def forward(self, x):
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


# ---- attention ----


class MultiheadAttention(Module):
    """Attention of (batch, tokens, embed_dim), with matrices for queries, keys, values and what comes of them."""

    def __init__(self, embed_dim, num_heads, bias=True):
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {embed_dim} dimensions are not {num_heads} equal heads")
        self.num_heads = num_heads
        self.q, self.k, self.v, self.out = (Linear(embed_dim, embed_dim, bias) for _ in range(4))

    def _heads(self, x):
        return permute_dims(reshape(x, (*x.shape[:2], self.num_heads, x.shape[2] // self.num_heads)), (0, 2, 1, 3))

    def forward(self, query, key=None, value=None, is_causal=False, attn_mask=None):
        """key and value None: query, and key. The mask as scaled_dot_product_attention's."""
        key = query if key is None else key
        value = key if value is None else value
        y = F.scaled_dot_product_attention(self._heads(self.q(query)), self._heads(self.k(key)), self._heads(self.v(value)), is_causal,
                                           attn_mask=attn_mask)
        return self.out(reshape(permute_dims(y, (0, 2, 1, 3)), query.shape))


class SelfAttention(MultiheadAttention):
    def forward(self, x, is_causal=False, attn_mask=None):
        return super().forward(x, is_causal=is_causal, attn_mask=attn_mask)


class CrossAttention(MultiheadAttention):
    def forward(self, x, memory, attn_mask=None):
        return super().forward(x, memory, memory, attn_mask=attn_mask)


# ---- dropout ----


class Dropout(Module):
    """In training 0 with probability p, else x / (1 - p)."""

    def __init__(self, p=0.5):
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        return self.drop(x)

    def drop(self, x):
        if recording_plan():  # where a seed would be the same in each run
            return x * self.kept(x.shape, x)
        seed, offset = take_place(x.size)
        return F.dropout(x, self.p, seed=seed, offset=offset)

    def kept(self, shape, x):
        """1 / (1 - p) of what is kept and 0 of the rest, by numbers that are drawn, in x's type and on its device."""
        chosen = uniform(shape, device=x.device) >= self.p
        return where(chosen, full((), 1 / (1 - self.p), dtype=x.dtype, device=x.device), 0.0)


class Dropout2d(Dropout):
    """Of whole channels."""

    def drop(self, x):
        return x * reshape(self.kept(x.shape[:2], x), (*x.shape[:2], *(1,) * (x.ndim - 2)))


# ---- layers without weights, and losses, out of functions ----


def _layer(name, function):
    """A module that calls function(x, *what it was made with)."""
    def __init__(self, *arguments, **keywords):
        self.arguments, self.keywords = arguments, keywords

    def forward(self, x, *others):
        return function(x, *others, *self.arguments, **self.keywords)
    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__doc__": function.__doc__, "__module__": __name__})


def _flattened(x):
    """(n, everything else)."""
    return reshape(x, (x.shape[0], math.prod(x.shape[1:])))


ReLU, GELU, SiLU, Sigmoid, Tanh = (_layer(*pair) for pair in
                                   (("ReLU", relu), ("GELU", gelu), ("SiLU", silu), ("Sigmoid", sigmoid), ("Tanh", tanh)))
LeakyReLU, ELU, Softmax, LogSoftmax, Flatten = (
    _layer(*pair) for pair in (("LeakyReLU", F.leaky_relu), ("ELU", F.elu), ("Softmax", F.softmax), ("LogSoftmax", F.log_softmax),
                               ("Flatten", _flattened)))
MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, GlobalAvgPool2d = (
    _layer(*pair) for pair in (("MaxPool2d", F.max_pool2d), ("AvgPool2d", F.avg_pool2d), ("AdaptiveAvgPool2d", F.adaptive_avg_pool2d),
                               ("GlobalAvgPool2d", F.global_avg_pool2d)))
MSELoss, L1Loss, SmoothL1Loss, BCELoss, BCEWithLogitsLoss, KLDivLoss, CrossEntropyLoss, NLLLoss = (
    _layer(*pair) for pair in (("MSELoss", F.mse_loss), ("L1Loss", F.l1_loss), ("SmoothL1Loss", F.smooth_l1_loss), ("BCELoss", F.bce_loss),
                               ("BCEWithLogitsLoss", F.bce_with_logits_loss), ("KLDivLoss", F.kl_div_loss),
                               ("CrossEntropyLoss", F.cross_entropy), ("NLLLoss", F.nll_loss)))
