"""Layers and losses of networks as functions, with gradients: rdna/graph_neural.h's.

Images are (n, channels, spatial...), as PyTorch's; numbers that stand for all spatial dimensions may be one or a tuple. Names, defaults
and meanings are those of PyTorch's functional interface.
"""

import ctypes

from .. import _types
from . import _core
from ._array import cast, need, unary
from ._core import scalar
from ._graph import record
from ._moving import broadcast_to, expand_dims, moveaxis, reshape

_Three = ctypes.c_int64 * 3
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _maybe(name, x):
    return None if x is None else need(name, x)


def _three(name, value, dims):
    """One number or |dims| of them, for a struct."""
    several = tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims
    if len(several) != dims:
        raise ValueError(f"{name}: {dims} numbers, or one for all, not {value}")
    return _Three(*several)


# ---- convolutions ----


def _description(name, dims, stride, padding, dilation, groups):
    pad = _three(name, padding, dims)
    return _types.rdna_convolution(ctypes.sizeof(_types.rdna_convolution), dims, _three(name, stride, dims), pad, pad, _three(name, dilation, dims), groups)


def _conv(name, dims):
    def function(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return record("conv", [need(name, x), need(name, weight), _maybe(name, bias)], ctypes.byref(_description(name, dims, stride, padding, dilation, groups)))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"x convolved with weight (out channels, channels / groups, window...) over {dims} spatial dimension{'s' * (dims > 1)}."
    return function


def _conv_transpose(name, dims):
    def function(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        conv = _description(name, dims, stride, padding, dilation, groups)
        return record("conv_transpose", [need(name, x), need(name, weight), _maybe(name, bias)], ctypes.byref(conv), _three(name, output_padding, dims))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The convolution whose gradient conv{dims}d is: weight (channels, out channels / groups, window...)."
    return function


conv1d, conv2d, conv3d = (_conv(f"conv{dims}d", dims) for dims in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_conv_transpose(f"conv_transpose{dims}d", dims) for dims in (1, 2, 3))


# ---- pooling ----


def _pool(name, dims, largest):
    def pooled(x, window, stride, padding, dilation, ceil_mode, count_include_pad):
        pad = _three(name, padding, dims)
        window = _three(name, window, dims)
        pooling = _types.rdna_pooling(ctypes.sizeof(_types.rdna_pooling), dims, window, window if stride is None else _three(name, stride, dims), pad, pad,
                           _three(name, dilation, dims), ceil_mode, count_include_pad, 0)
        return record("max_pool" if largest else "average_pool", [need(name, x)], ctypes.byref(pooling))

    if largest:
        def function(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
            return pooled(x, kernel_size, stride, padding, dilation, ceil_mode, False)
    else:
        def function(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
            return pooled(x, kernel_size, stride, padding, 1, ceil_mode, count_include_pad)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The {'largest value' if largest else 'mean'} of each window; stride None: the window's size."
    return function


max_pool1d, max_pool2d, max_pool3d = (_pool(f"max_pool{dims}d", dims, True) for dims in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool(f"avg_pool{dims}d", dims, False) for dims in (1, 2, 3))


def _adaptive(name, dims):
    def function(x, output_size):
        return record("adaptive_average_pool", [need(name, x)], _three(name, output_size, dims))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Means of windows that are as many as output_size."
    return function


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive(f"adaptive_avg_pool{dims}d", dims) for dims in (1, 2, 3))


def global_avg_pool2d(x):
    """The mean of each channel's values, (n, channels, 1, 1)."""
    return adaptive_avg_pool2d(x, 1)


# ---- normalization ----


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    """Over the last dimension."""
    return record("layer_norm", [need("layer_norm", x), _maybe("layer_norm", weight), _maybe("layer_norm", bias)], eps)


def rms_norm(x, weight=None, eps=1e-6):
    """x over the root of its mean square, over the last dimension."""
    return record("rms_norm", [need("rms_norm", x), _maybe("rms_norm", weight)], eps)


def batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, eps=1e-5):
    """By the running statistics, or in training by those of x; who keeps running ones takes x's mean and var himself."""
    x, weight, bias = need("batch_norm", x), _maybe("batch_norm", weight), _maybe("batch_norm", bias)
    if training:
        return record("batch_norm", [x, weight, bias], eps)
    given = [x, weight, bias, need("batch_norm", running_mean), need("batch_norm", running_var)]
    return record("batch_norm_inference", given, eps)


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """Of num_groups groups of neighbouring channels of each sample."""
    return _group_norm("group_norm", x, num_groups, weight, bias, eps)


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    """Of each channel of each sample."""
    x = need("instance_norm", x)
    return _group_norm("instance_norm", x, x.shape[1] if x.ndim > 1 else 1, weight, bias, eps)


def _group_norm(name, x, groups, weight, bias, eps):
    return record("group_norm", [need(name, x), groups, _maybe(name, weight), _maybe(name, bias)], eps)


# ---- along a dimension, and by indices ----


def softmax(x, axis=-1):
    """exp(x) over its sum along axis."""
    return record("softmax", [need("softmax", x)], axis)


def log_softmax(x, axis=-1):
    """The logarithm of softmax."""
    return record("log_softmax", [need("log_softmax", x)], axis)


def embedding(ids, table):
    """The rows of table that ids, integers, name; of an id outside zeros."""
    ids = need("embedding", ids)
    if ids.dtype.kind in "iu" and ids.dtype not in (_core.I32, _core.I64):
        ids = cast(ids, _core.I64)
    return record("embedding", [need("embedding", table), ids])


# ---- activations that the array API has not ----


def leaky_relu(x, negative_slope=0.01):
    """x, or negative_slope x where x is negative."""
    return unary(need("leaky_relu", x), _core.maps["leaky_relu"], scalar(float(negative_slope)))


def elu(x, alpha=1.0):
    """x, or alpha (exp(x) - 1) where x is negative."""
    return unary(need("elu", x), _core.maps["elu"], scalar(float(alpha)), scalar(1.0))


def softplus(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta, or x where beta x exceeds the threshold."""
    return unary(need("softplus", x), _core.maps["softplus"], scalar(float(beta)), scalar(float(threshold)))


def mish(x):
    """x tanh(softplus(x))."""
    return unary(need("mish", x), _core.maps["mish"])


def hardswish(x):
    """x min(max(x + 3, 0), 6) / 6."""
    return unary(need("hardswish", x), _core.maps["hardswish"])


def hardsigmoid(x):
    """min(max(x + 3, 0), 6) / 6."""
    return unary(need("hardsigmoid", x), _core.maps["hardsigmoid"])


# ---- attention and dropout ----


def scaled_dot_product_attention(query, key, value, is_causal=False, scale=None, attn_mask=None):
    """softmax(scale query key^T) value of (batch, heads, tokens, d); scale None: 1 / sqrt(d). |attn_mask| has dimensions that are these of
    (batch, heads, tokens, keys) or 1, in front also missing: bool, where False hides the key, or floats that are added to the scores. A query that sees
    nothing gives 0."""
    query = need("attention", query)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    mask = _maybe("attention", attn_mask)
    if mask is not None and mask.ndim < 4:
        mask = reshape(mask, (1,) * (4 - mask.ndim) + mask.shape)
    if mask is not None and mask.ndim == 4 and mask.shape[3] != key.shape[2] and mask.shape[3] == 1:
        mask = broadcast_to(mask, (*mask.shape[:3], key.shape[2]))
    return record("attention_masked", [query, need("attention", key), need("attention", value), mask], scale, is_causal)


def dropout(x, p=0.5, *, seed, offset=0):
    """0 with probability p, else x / (1 - p), by numbers that seed and offset alone decide: count one of them up."""
    return record("dropout", [need("dropout", x)], p, seed, offset)


# ---- losses ----


def _loss(name, kind, beta=0.0):
    def function(x, target, reduction="mean"):
        return record("loss", [need(name, x), need(name, target)], kind, beta, _reduction(name, reduction))
    function.__name__ = function.__qualname__ = name
    return function


def _reduction(name, reduction):
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{name}: reduction is 'none', 'mean' or 'sum', not {reduction!r}")
    return _REDUCTIONS[reduction]


mse_loss, l1_loss, bce_loss, bce_with_logits_loss = (
    _loss("mse_loss", 0), _loss("l1_loss", 1), _loss("bce_loss", 4), _loss("bce_with_logits_loss", 5))
mse_loss.__doc__ = "(x - target)^2."
l1_loss.__doc__ = "|x - target|."
bce_loss.__doc__ = "-target log(x) - (1 - target) log(1 - x), logarithms of at least -100."
bce_with_logits_loss.__doc__ = "bce_loss of sigmoid(x)."


def smooth_l1_loss(x, target, beta=1.0, reduction="mean"):
    """(x - target)^2 / (2 beta) below beta, |x - target| - beta / 2 above."""
    return _loss("smooth_l1_loss", 2, beta)(x, target, reduction)


def huber_loss(x, target, delta=1.0, reduction="mean"):
    """delta times smooth_l1_loss."""
    return _loss("huber_loss", 3, delta)(x, target, reduction)


def kl_div_loss(x, target, log_target=False, reduction="mean"):
    """target (log(target) - x), x being logarithms of probabilities; with log_target target too."""
    return _loss("kl_div_loss", 7 if log_target else 6)(x, target, reduction)


def _entropy(name, x, target, weight, reduction, ignore_index, smoothing, logarithms):
    x, target = need(name, x), need(name, target)
    if target.dtype not in (_core.I32, _core.I64):
        target = cast(target, _core.I64)
    shape = target.shape
    if x.ndim == 1:  # one row
        x, target = expand_dims(x), reshape(target, (1,))
    elif x.ndim > 2:  # (n, classes, places...)
        x = _rows_of_classes(x)
        target = reshape(target, (target.size,))
    options = _types.rdna_cross_entropy(ctypes.sizeof(_types.rdna_cross_entropy), _reduction(name, reduction), ignore_index, smoothing, logarithms, None)
    made = record("cross_entropy", [x, target, _maybe(name, weight)], ctypes.byref(options))
    return reshape(made, shape) if reduction == "none" else made


def _rows_of_classes(x):
    moved = moveaxis(x, 1, -1)
    return reshape(moved, (-1 if x.size else 0, x.shape[1]))


def cross_entropy(x, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    """Minus the logarithm of softmax(x)'s probability of the class target, integers (or floats that are whole)."""
    return _entropy("cross_entropy", x, target, weight, reduction, ignore_index, label_smoothing, False)


def nll_loss(x, target, weight=None, reduction="mean", ignore_index=-100):
    """cross_entropy of x that are logarithms of probabilities."""
    return _entropy("nll_loss", x, target, weight, reduction, ignore_index, 0.0, True)
