"""torch.compile(backend="rdna"): graphs that Dynamo and AOTAutograd made, run operator by operator, after librdna's
fused operators took the places of what they fuse:

    chains of pointwise operators          one pass over memory             rdna::fused
    product, bias, activation, residual    the product's epilogue           rdna::addmm
    product with a transposed weight, between views   one call              rdna::linear
    convolution, bias, activation          the convolution's epilogue       rdna::convolution
    batch norm of inference, residual, relu   one pass                      rdna::batch_norm
    convolution, batch norm of inference   a convolution by other weights
    max pool whose places nobody reads     without them                     rdna::max_pool
    RMS norm written out                   one operator                     rdna::rms_norm

With mode="reduce-overhead" the driver records a graph of inference, and replays it with one call; _recorded.py says how.
The rest stays as it is. Values inside of a chain are f32 and are rounded once, at the end, where PyTorch's own
operators round each, and gradients of biases under autocast stay f32. compile_report() says what was fused;
RDNA_COMPILE_LOG=1, or the logger "torch_rdna.compile" at INFO, says it as it happens."""

import functools
import logging
import math
import operator
import os
import warnings
from collections import Counter

import torch
from torch.fx.graph import CodeGen

from . import _C, _recorded, _views
from ._channels import LAUNCH, channels_last, pass_over
from ._device import is_ours
from ._fake import hint as _hint, layout as _layout
from ._nodes import arguments as _arguments, contiguous as _contiguous, floats as _floats, is_view as _is_view
from ._nodes import name as _name, on_device as _on_device, only_user as _only_user, order as _order
from ._nodes import same_layout as _same_layout, shape_equal as _shape_equal, shape_equal_but_last as _shape_equal_but_last
from ._nodes import short as _short, value as _value, writes as _writes

aten = torch.ops.aten
log = logging.getLogger("torch_rdna.compile")

MAX_STEPS, MAX_INPUTS = 16, 6  # rdna/op/fused.h
_numbers_of = _C.operations()  # asked of the library: they are its to give
MAP, ZIP, ACTIVATION = _numbers_of["map"], _numbers_of["zip"], _numbers_of["activation"]

_report = Counter()
_fused = Counter()


def compile_report():
    """What torch.compile(backend="rdna") did since the start or the last reset: how many graphs, their operators before
    and after, and {"gelu + mul": times} for what became one operator; with mode="reduce-overhead" how many were recorded
    by the driver, and {reason: times} for those that were not."""
    return {
        "graphs": _report["graphs"],
        "operators_before": _report["before"],
        "operators_after": _report["after"],
        "fused": dict(sorted(_fused.items(), key=lambda item: (-item[1], item[0]))),
        "recorded": _report["recorded"],
        "not_recorded": {key[1]: n for key, n in _report.items() if isinstance(key, tuple)},
    }


def reset_compile_report():
    _report.clear()
    _fused.clear()


# ---- one operator as steps of a chain


class _Step:
    """value = op(value), or with |other|, a node, op(value, other) or op(other, value)."""

    def __init__(self, op, p=0.0, q=0.0, other=None, first=False):
        self.op, self.p, self.q, self.other, self.first = op, float(p), float(q), other, first


def _number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def _affine(p, q):
    return _Step("affine", p, q)


def _times(s):
    return _affine(s, -0.0)  # a product of -0 stays one


def _zip_either(op, a, b):
    """Alternatives for op(a, b): the chain runs through a, or through b."""
    if a is b:
        return [(a, [_Step(op, other=a)])]
    return [(a, [_Step(op, other=b)]), (b, [_Step(op, other=a, first=True)])]


def _sum(a, b, alpha):
    if not _number(alpha):
        return []
    if _number(b):
        return [(a, [_affine(1, alpha * b)])]
    if _number(a):
        return [(b, [_affine(alpha, a)])]
    if alpha == 1:
        return _zip_either("add", a, b)
    if alpha == -1:
        return _zip_either("sub", a, b)
    return [(a, [_Step("add_scaled", alpha, other=b)]), (b, [_Step("add_scaled", alpha, other=a, first=True)])]


def _product(a, b):
    if a is b:
        return [(a, [_Step("square")])]
    if _number(b):
        return [(a, [_times(b)])]
    if _number(a):
        return [(b, [_times(a)])]
    return _zip_either("mul", a, b)


def _quotient(a, b):
    if _number(b):
        return [(a, [_times(1 / b)])] if b else []
    if _number(a):
        return [(b, [_Step("reciprocal"), _times(a)])]
    return _zip_either("div", a, b)


def _power(x, e):
    names = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if not _number(e) or (e != 3 and e not in names):
        return []
    return [(x, [_Step("square"), _Step("mul", other=x)])] if e == 3 else [(x, [_Step(names[e])])]


def _clamp(x, low=None, high=None):
    low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
    if not (_number(low) and _number(high)) or math.isnan(low) or math.isnan(high):
        return []
    return [(x, [_Step("clamp", low, high)])]


def _numbers(*values):
    return all(_number(v) for v in values)


def _gelu_name(approximate):
    return "gelu_tanh" if approximate == "tanh" else "gelu_erf"


def _map(name):
    return lambda x: [(x, [_Step(name)])]


def _gradient(op):
    return lambda grad, other: _zip_either(op, grad, other)


_STEPS = {
    "aten::add.Tensor": lambda a, b, alpha=1: _sum(a, b, alpha),
    "aten::add.Scalar": lambda a, b, alpha=1: _sum(a, b, alpha),
    "aten::sub.Tensor": lambda a, b, alpha=1: _sum(a, b, -alpha) if _number(alpha) else [],
    "aten::sub.Scalar": lambda a, b, alpha=1: _sum(a, b, -alpha) if _number(alpha) else [],
    "aten::rsub.Tensor": lambda a, b, alpha=1: _sum(b, a, -alpha) if _number(alpha) else [],
    "aten::rsub.Scalar": lambda a, b, alpha=1: _sum(b, a, -alpha) if _numbers(b, alpha) else [],
    "aten::mul.Tensor": _product,
    "aten::mul.Scalar": _product,
    "aten::div.Tensor": _quotient,
    "aten::div.Scalar": _quotient,
    "aten::pow.Tensor_Scalar": _power,
    "aten::maximum": lambda a, b: _zip_either("maximum", a, b),
    "aten::minimum": lambda a, b: _zip_either("minimum", a, b),
    "aten::clamp": _clamp,
    "aten::clamp_min": lambda x, low: _clamp(x, low),
    "aten::clamp_max": lambda x, high: _clamp(x, None, high),
    "aten::hardtanh": lambda x, low=-1, high=1: _clamp(x, low, high),
    "aten::gelu": lambda x, approximate="none": [(x, [_Step(_gelu_name(approximate))])],
    "aten::leaky_relu": lambda x, slope=0.01: [(x, [_Step("leaky_relu", slope)])] if _number(slope) else [],
    "aten::elu": lambda x, alpha=1, scale=1, input_scale=1: (
        [(x, [_Step("elu", alpha * scale, scale)])] if _numbers(alpha, scale) and input_scale == 1 else []
    ),
    "aten::softplus": lambda x, beta=1, threshold=20: (
        [(x, [_Step("softplus", beta, threshold)])] if _numbers(beta, threshold) else []
    ),
    "aten::threshold_backward": lambda grad, x, threshold: _zip_either("relu_grad", grad, x) if threshold == 0 else [],
    "aten::leaky_relu_backward": lambda grad, x, slope, is_result: (
        [(grad, [_Step("leaky_relu_grad", slope, other=x)])] if _number(slope) and not is_result else []
    ),
    "aten::sigmoid_backward": _gradient("sigmoid_grad"),
    "aten::tanh_backward": _gradient("tanh_grad"),
    "aten::hardswish_backward": _gradient("hardswish_grad"),
    "aten::hardsigmoid_backward": _gradient("hardsigmoid_grad"),
    "aten::lerp.Scalar": lambda a, b, w: (
        [(a, [_Step("lerp", w, other=b)]), (b, [_Step("lerp", w, other=a, first=True)])] if _number(w) else []
    ),
    "aten::addcmul": lambda x, a, b, value=1: _addc("mul", x, a, b, value),
    "aten::addcdiv": lambda x, a, b, value=1: _addc("div", x, a, b, value),
    **{f"aten::{name}": _map(name) for name in
       "abs neg square ceil floor round trunc sqrt rsqrt reciprocal relu hardswish hardsigmoid exp log tanh sigmoid silu"
       .split()},
    "aten::sign": _map("sign"),
    "aten::sgn": _map("sign"),
}


def _addc(op, x, a, b, value):
    if not _number(value):
        return []
    last = _Step("add_scaled", value, other=x, first=True)
    return [(value_node, [_Step(op, other=other, first=first), last])
            for value_node, other, first in ((a, b, False), (b, a, True))]


def _steps(node):
    """Alternatives (value node, steps) for a pointwise operator on rdna, none for any other."""
    describe = _STEPS.get(_name(node))
    if describe is None or not _floats(node) or _value(node).dim() > 8:
        return []
    arguments = _arguments(node)
    tensors = [a for a in arguments if isinstance(a, torch.fx.Node)]
    if not tensors or not _floats(node, *tensors):
        return []
    return [(v, s) for v, s in describe(*arguments) if isinstance(v, torch.fx.Node)]


def vendors_is_faster(m, k, n, device):
    """Vendors' libraries have few epilogues, and with another one librdna's own kernel runs: on an H200 large products lose
    more by that than a pass over their results costs (a GPT's four layers in bf16 3.45 ms for 2.53, BERT-base in f32 11.6
    for 10.3)."""
    return m * k * n >= 2**30 and _has_a_vendor(device.index)


@functools.cache
def _has_a_vendor(index):
    device = torch.rdna.get_device_properties(index)
    return device.driver in ("cuda", "hip") and not device.emulated


def _vendors_is_faster(a, b):
    m, k, n = (_hint(v) for v in (_value(a).shape[0], _value(a).shape[1], _value(b).shape[1]))
    return None not in (m, k, n) and vendors_is_faster(m, k, n, _value(a).device)


def vendors_window_is_faster(x, weight, stride, padding, groups):
    """Convolutions whose window is one place are products of all positions, of which the same is true."""
    numbers = [_hint(n) for n in (*x.shape, *weight.shape)]
    if None in numbers or any(n != 1 for n in (*numbers[x.dim() + 2:], *stride, groups)) or any(padding):
        return False
    channels = numbers[1]
    return vendors_is_faster(math.prod(numbers[:x.dim()]) // max(channels, 1), channels, numbers[x.dim()], x.device)


class _Rewriter:
    def __init__(self, gm):
        self.gm, self.graph = gm, gm.graph
        self.in_place, self.states = set(), set()

    def find_movable(self):
        """What is written in place, at the end of some graphs, may be read by what comes before: nothing moves past it,
        and readers of what this pass itself made so do not move at all."""
        self.movable = set()
        for node in self.graph.nodes:
            if _writes(node) and node not in self.in_place:
                break
            if self.states.isdisjoint(node.all_input_nodes):
                self.movable.add(node)
            elif _views.looks(node):
                self.states.add(node)

    # -- state, which graphs compute anew and copy home at their end

    def write_in_place(self):
        """Running statistics and counters are updated where they are: a copy out and a copy home less for each."""
        nodes = list(self.graph.nodes)
        place = {node: i for i, node in enumerate(nodes)}

        def free(state, reader):
            """|state| is an input of the graph that nobody reads after |reader|, and that is written at the end."""
            if not isinstance(state, torch.fx.Node) or state.op != "placeholder":
                return False
            later = [u for u in state.users if place.get(u, -1) > place[reader]]
            return len(later) == 1 and _name(later[0]) == "aten::copy_" and later[0].args[0] is state

        for node in nodes:
            if _name(node) == "aten::_native_batch_norm_legit_functional" and not node.kwargs and node.args[5] is True:
                mean, variance = node.args[3:5]
                results = {u.args[1]: u for u in node.users if u.target is operator.getitem}
                if len(results) != len(node.users) or mean is variance:
                    continue
                if not (free(mean, node) and free(variance, node)):
                    continue
                # what is kept for the backward pass must not change with the next forward
                if any(u.op == "output" for i in (3, 4) if i in results for u in results[i].users):
                    continue
                node.target = torch.ops.aten._native_batch_norm_legit.default
                self.in_place.add(node)
                self.states |= {mean, variance}
                for i, state in ((3, mean), (4, variance)):
                    if i in results:
                        # readers between here and the copy home now read the state itself
                        results[i].replace_all_uses_with(state)
                        self.graph.erase_node(results[i])
            elif _name(node) == "aten::copy_" and node.args[0] is node.args[1] and not node.users:
                self.graph.erase_node(node)
            elif _name(node) == "aten::copy_" and not node.users:
                state, new = node.args[:2]
                if _name(new) == "aten::_to_copy" and new.args[0] is state and len(new.users) == 1 and \
                        _value(new).dtype == _value(state).dtype and _value(new).device == _value(state).device:
                    self.graph.erase_node(node)  # statistics that were thought to be of a wider type
                    self.graph.erase_node(new)
                elif _name(new) == "aten::add.Tensor" and not new.kwargs and new.args[0] is state and len(new.users) == 1 and \
                        _number(new.args[1]) and _value(new).dtype == _value(state).dtype and _on_device(_value(state)):
                    node.target, node.args = torch.ops.aten.add_.Tensor, (state, new.args[1])
                    self.graph.erase_node(new)

    def put(self, last, target, arguments, value):
        """A call after |last|, whose place it will take."""
        with self.graph.inserting_after(last):
            node = self.graph.call_function(target, tuple(arguments))
        node.meta["val"] = value
        for key in ("stack_trace", "nn_module_stack", "original_aten", "seq_nr"):
            if key in last.meta:
                node.meta[key] = last.meta[key]
        self.movable.add(node)
        return node

    def replace(self, last, new, removed):
        last.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
        for node in sorted(removed, key=lambda n: self.place[n], reverse=True):
            self.graph.erase_node(node)
            self.movable.discard(node)
        what = " + ".join(_short(n) for n in sorted(removed, key=lambda n: self.place[n]) if _short(n))
        _fused[what] += 1
        log.info("fused %s into %s", what, new.target)

    def number(self):
        self.place = {node: i for i, node in enumerate(self.graph.nodes)}

    # -- what says nothing

    def drop_detach(self):
        for node in list(self.graph.nodes):
            if any(u.op == "output" for u in node.users):
                continue
            # dropout of nothing is a copy
            copies = _name(node) == "aten::clone" and _on_device(_value(node)) and _layout(_value(node)) is not None and \
                _layout(_value(node)) == _layout(_value(node.args[0])) and _views.is_inside(node) and _views.is_inside(_views.source(node.args[0]))
            if copies or _name(node) in ("aten::detach", "aten::alias"):
                node.replace_all_uses_with(node.args[0])
                self.graph.erase_node(node)

    def drop_turns(self):
        """What is transposed twice."""
        turns = {}
        for node in self.graph.nodes:
            if _name(node) in ("aten::t", "aten::transpose.int") and _value(node).dim() > 0:
                turns[node] = {d % _value(node).dim() for d in node.args[1:] or (0, 1)}
        for node, dims in turns.items():
            inner = node.args[0]
            if turns.get(inner) == dims and inner.args[0].op != "placeholder":
                node.replace_all_uses_with(inner.args[0])
        for node in reversed(turns):
            if not node.users:
                self.graph.erase_node(node)

    def wide_sums(self):
        """Gradients of biases under autocast are summed in f32, rounded to 16 bits and widened again: they stay as they are."""
        for node in list(self.graph.nodes):
            narrow = node.args[0] if _name(node) == "aten::_to_copy" else None
            if narrow is None or _name(narrow) != "aten::_to_copy" or len(narrow.users) != 1 or not _on_device(_value(node)):
                continue
            total = narrow.args[0]
            while _is_view(total):
                total = total.args[0]
            types = [_value(n).dtype for n in (total, narrow, node)]
            if _name(total) == "aten::sum.dim_IntList" and types == [torch.float32, _value(total.args[0]).dtype, torch.float32]:
                node.replace_all_uses_with(narrow.args[0])
                self.graph.erase_node(node)
                self.graph.erase_node(narrow)

    # -- norms

    def rms_norm(self, rsqrt):
        if _name(rsqrt) != "aten::rsqrt":
            return False
        plus, = rsqrt.args
        if _name(plus) not in ("aten::add.Tensor", "aten::add.Scalar") or not _number(plus.args[1]):
            return False
        epsilon, mean = plus.args[1], plus.args[0]
        if _name(mean) != "aten::mean.dim" or len(mean.args) < 3 or not mean.args[2]:
            return False
        square = mean.args[0]
        value = _value(square)
        if value is None or list(mean.args[1]) not in ([-1], [value.dim() - 1]):
            return False
        if _name(square) == "aten::pow.Tensor_Scalar" and square.args[1] == 2:
            x = square.args[0]
        elif _name(square) == "aten::mul.Tensor" and square.args[0] is square.args[1]:
            x = square.args[0]
        else:
            return False
        last = _only_user(rsqrt)
        if last is None or _name(last) != "aten::mul.Tensor" or set(last.args) != {x, rsqrt}:
            return False
        if any(len(n.users) != 1 for n in (plus, mean, square)) or not _floats(x, last):
            return False
        removed, source = [square, mean, plus, rsqrt, last], x
        if _name(x) == "aten::_to_copy" and set(x.users) == {square, last} and _value(x).dtype == torch.float32 \
                and _floats(x.args[0]):
            removed.append(x)
            source = x.args[0]
        after = _only_user(last)
        if after is not None and _name(after) == "aten::_to_copy" and _value(after).dtype == _value(source).dtype \
                and _on_device(_value(after)):
            removed.append(after)
            last = after
        weight = None
        after = _only_user(last)
        if after is not None and _name(after) == "aten::mul.Tensor" and _value(after).dtype == _value(source).dtype:
            other = after.args[1] if after.args[0] is last else after.args[0]
            v = _value(other)
            if isinstance(other, torch.fx.Node) and other is not last and _floats(other) and v.dim() == 1 \
                    and v.shape[0] == _value(source).shape[-1] and v.dtype in (_value(source).dtype, torch.float32):
                weight = other
                removed.append(after)
                last = after
        if _value(last).dtype != _value(source).dtype or not _contiguous(_value(last)) \
                or not self.movable.issuperset(removed):
            return False
        new = self.put(last, torch.ops.rdna.rms_norm.default, (source, weight, float(epsilon)), _value(last))
        self.replace(last, new, removed)
        return True

    def norm_of_inference(self, norm):
        """What a batch norm by running statistics has for a result, and (x, weight, bias, mean, variance, epsilon)."""
        if _name(norm) != "aten::_native_batch_norm_legit_no_training" or norm.kwargs or len(norm.args) != 7:
            return None
        y = _only_user(norm)
        if y is None or y.target is not operator.getitem or y.args[1] != 0 or not _floats(norm.args[0], y):
            return None
        return y, (*norm.args[:5], norm.args[6])

    def scale(self, last, weight, variance, epsilon, more=()):
        """weight / sqrt(variance + epsilon), and |more| steps, in one launch after |last|."""
        steps = [_affine(1, epsilon), _Step("rsqrt"), *([_Step("mul", other=weight)] if weight is not None else []), *more]
        inputs = [variance, *dict.fromkeys(s.other for s in steps if s.other is not None)]
        of = _value(more[0].other if more else variance)
        return self.put_chain(last, inputs, steps, _order(of), of)

    def across(self, last, line, dims):
        """The values of channels |line| for tensors of |dims| dimensions of which they are dimension 1, or 0 of weights."""
        shape = [_value(line).shape[0], *[1] * dims]
        return self.put(last, aten.reshape.default, (line, shape), _value(line).reshape(shape))

    def fold_norm(self, norm):
        """A convolution and its batch norm are a convolution by other weights, which are made each time, as programs may
        change what they are made of. It leaves out the pass over the result, where there is no other to come."""
        found = self.norm_of_inference(norm)
        if found is None:
            return False
        y, (node, weight, bias, mean, variance, epsilon) = found
        if _name(node) != "aten::convolution" or len(node.users) != 1 or node.kwargs or node.args[6]:
            return False
        x, taps, before, stride, padding, groups = *node.args[:5], node.args[8]
        given = [t for t in (taps, before, weight, bias, mean, variance) if t is not None]
        if not _floats(y, *given) or not self.movable.issuperset((node, norm, y)) or \
                any(_order(_value(t)) is None for t in given):
            return False
        user = _only_user(y)
        act = self.activation(user) and not vendors_window_is_faster(_value(x), _value(taps), stride, padding, groups)
        if not act and user is not None and _steps(user):
            return False
        if _layout(_value(y)) is None or pass_over(_value(y)) < 2 * LAUNCH + pass_over(_value(taps)):
            return False
        at, dims = norm.prev, _value(taps).dim() - 1
        wide = [at := self.across(at, t, dims) if t is not None else at for t in (variance, weight)]
        scaled = at = self.scale(at, weight and wide[1], wide[0], epsilon, (_Step("mul", other=taps),))
        if before is not None:
            mean = at = self.put(at, aten.sub.Tensor, (mean, before), _value(mean))
        rest = _Step("sub", other=bias, first=True) if bias is not None else _Step("neg")
        shift = self.scale(at, weight, variance, epsilon, (_Step("mul", other=mean), rest))
        new = self.put(y, aten.convolution.default, (x, scaled, shift, *node.args[3:]), _value(y))
        self.replace(y, new, [node, norm, y])
        return True

    def norm_in_chain(self, norm, y, given):
        """Where more follows than what a batch norm's own launch does, it is steps of a chain."""
        x, weight, bias, mean, variance, epsilon = given
        user, other = _only_user(y), None
        if user is not None and _name(user) == "aten::add.Tensor":
            other, user = user, _only_user(user)
        if user is None or _name(user) == "aten::relu" or not any(v in (y, other) for v, _ in _steps(user)):
            return False
        lines = [t for t in (weight, bias, mean, variance) if t is not None]
        if not _floats(y, *lines) or _layout(_value(y)) is None or pass_over(_value(y)) < 2 * LAUNCH or \
                any(_order(_value(t)) is None for t in lines) or not self.movable.issuperset((norm, y)):
            return False
        dims = _value(y).dim() - 2
        scale = at = self.scale(norm.prev, weight, variance, epsilon)
        rest = _Step("sub", other=bias, first=True) if bias is not None else _Step("neg")
        shift = at = self.scale(at, weight, variance, epsilon, (_Step("mul", other=mean), rest))
        value = x
        for target, line in ((aten.mul.Tensor, scale), (aten.add.Tensor, shift)):
            line = self.across(at, line, dims)
            value = at = self.put(line, target, (value, line), _value(y))
        self.replace(y, value, [norm, y])
        return True

    def batch_norm(self, norm):
        found = self.norm_of_inference(norm)
        if found is None:
            return False
        y, (x, weight, bias, mean, variance, epsilon) = found
        if self.norm_in_chain(norm, *found):
            return True
        removed, last, residual, relu = [norm, y], y, None, False
        user = _only_user(last)
        if user is not None and _name(user) == "aten::add.Tensor" and not user.kwargs and len(user.args) == 2:
            other = user.args[1] if user.args[0] is last else user.args[0]
            if other is not last and isinstance(other, torch.fx.Node) and _floats(other, last) \
                    and _shape_equal(_value(other), _value(last)):
                residual, last = other, user
                removed.append(user)
                user = _only_user(last)
        if user is not None and _name(user) == "aten::relu":
            relu, last = True, user
            removed.append(user)
        # a pass that fused nothing would not be one
        if len(removed) == 2 or _order(_value(last)) != _order(_value(y)) or not self.movable.issuperset(removed):
            return False
        new = self.put(last, torch.ops.rdna.batch_norm.default,
                       (x, weight, bias, mean, variance, epsilon, residual, relu), _value(last))
        self.replace(last, new, removed)
        return True

    # -- pools, products and convolutions

    def max_pool(self, pool):
        """Largest values without their places, where nobody reads these."""
        if _name(pool) not in ("aten::max_pool2d_with_indices", "aten::max_pool3d_with_indices") or pool.kwargs:
            return False
        values = _only_user(pool)
        if values is None or values.target is not operator.getitem or values.args[1] != 0 or not _floats(pool.args[0], values) or \
                len(pool.args[1]) != _value(values).dim() - 2:
            return False
        given = _arguments(pool)
        new = self.put(values, torch.ops.rdna.max_pool.default, (*given[:2], given[2] or given[1], *given[3:]), _value(values))
        self.replace(values, new, [pool, values])
        return True

    def activation(self, node):
        """Its number in rdna_activation, or None."""
        name = _name(node) if node is not None else ""
        if name == "aten::gelu":
            return ACTIVATION[_gelu_name(_arguments(node)[1])]
        return ACTIVATION.get(name[len("aten::"):]) if name.startswith("aten::") else None

    def product(self, node):
        if _name(node) == "aten::addmm":
            bias, a, b = node.args
            if node.kwargs or _value(bias) is None or _value(bias).dim() != 1 or \
                    _value(bias).shape[0] != _value(node).shape[1] or not _floats(bias, a, b):
                return False
        elif _name(node) == "aten::mm":
            bias, (a, b) = None, node.args
            if not _floats(node, a, b):
                return False
        else:
            return False
        columns = _value(node).shape[1]
        removed, last, view, act, residual = [node], node, None, 0, None
        while True:
            user = _only_user(last)
            if user is None or not self.movable.issuperset((user,)):
                break
            name = _name(user)
            if name in ("aten::view", "aten::_unsafe_view", "aten::reshape") and view is None and last is node:
                if _value(user).dim() < 1 or _value(user).shape[-1] != columns:
                    break
                view = user
            elif name == "aten::add.Tensor" and not user.kwargs and len(user.args) == 2:
                other = user.args[1] if user.args[0] is last else user.args[0]
                if not isinstance(other, torch.fx.Node) or other is last or not _floats(other, last) or \
                        _value(user).dim() != _value(last).dim():
                    break
                if bias is None and not act and _value(other).dim() == 1 and _value(other).shape[0] == columns:
                    bias = other
                elif _shape_equal(_value(other), _value(last)):
                    removed.append(user)
                    last, residual = user, other
                    break
                else:
                    break
            elif not act and self.activation(user):
                act = self.activation(user)
            else:
                break
            removed.append(user)
            last = user
        if last is view or last is node or ((act or residual is not None) and _vendors_is_faster(a, b)):
            return False
        if not _contiguous(_value(last)):
            return False
        new = self.put(last, torch.ops.rdna.addmm.default, (bias, a, b, act, residual), _value(node))
        result = new
        if view is not None:
            with self.graph.inserting_after(new):
                result = self.graph.call_function(torch.ops.aten.reshape.default, (new, view.args[1]))
            result.meta["val"] = _value(last)
            self.movable.add(result)
        self.replace(last, result, removed)
        return True

    def convolution(self, node):
        if _name(node) != "aten::convolution":
            return False
        user = _only_user(node)
        act = self.activation(user)
        if not act or node.kwargs or node.args[6] or _value(node).dim() not in (3, 4, 5):
            return False
        tensors = [t for t in node.args[:3] if t is not None]
        if not _floats(node, user, *tensors) or not self.movable.issuperset((node, user)) or \
                vendors_window_is_faster(*(_value(v) for v in node.args[:2]), node.args[3], node.args[4], node.args[8]):
            return False
        new = self.put(user, torch.ops.rdna.convolution.default, (*node.args, act), _value(user))
        self.replace(user, new, [node, user])
        return True

    # -- chains

    def chain(self, first):
        best = None
        for value, steps in _steps(first):
            found = self.follow(first, value, steps)
            if found and (best is None or len(found[0]) > len(best[0])):
                best = found
        if best is None or len(best[0]) < 2:
            return False
        nodes, inputs, steps = best
        last = nodes[-1]
        order = _order(_value(last))
        if order is None:
            return False
        self.replace(last, self.put_chain(last, inputs, steps, order, _value(last)), nodes)
        return True

    def put_chain(self, last, inputs, steps, order, value):
        words, numbers = [], []
        for s in steps:
            zipped = s.other is not None
            operation = ZIP[s.op] if zipped else MAP[s.op]
            words += [operation, int(zipped), inputs.index(s.other) if zipped else 0, int(s.first)]
            numbers += [s.p, s.q]
        return self.put(last, torch.ops.rdna.fused.default, (inputs, words, numbers, order), value)

    def follow(self, first, value, steps):
        """The longest chain that begins with |first|: its nodes, its inputs and steps."""
        nodes, inputs, chain = [], [value], []
        node = first
        while True:
            others = [s.other for s in steps if s.other is not None]
            wanted = inputs + [o for o in dict.fromkeys(others) if o not in inputs]
            if len(chain) + len(steps) > MAX_STEPS or len(wanted) > MAX_INPUTS or node not in self.movable:
                break
            nodes, inputs, chain = nodes + [node], wanted, chain + steps
            user = _only_user(node)
            if user is None or user not in self.movable:
                break
            for v, s in _steps(user):
                if v is node and all(x.other is not node for x in s):
                    steps = s
                    break
            else:
                break
            node = user
        return (nodes, inputs, chain) if nodes else None

    # -- calls, of which each costs the processor some microseconds

    def one_view(self):
        """A view of a view is one, and a view into the shape that its source has is none."""
        for node in list(self.graph.nodes):
            if not _is_view(node):
                continue
            # one that has to copy, and whose copy others read too, stays
            while _is_view(node.args[0]) and (len(node.args[0].users) == 1 or _contiguous(_value(node.args[0].args[0]))):
                node.replace_input_with(node.args[0], node.args[0].args[0])
            if _same_layout(_value(node), _value(node.args[0])) and not any(u.op == "output" for u in node.users):
                node.replace_all_uses_with(node.args[0])
        for node in reversed(list(self.graph.nodes)):
            if _is_view(node) and not node.users:
                self.graph.erase_node(node)

    def linear(self, node):
        """x (…, k) as a matrix, times a weight (n, k) that is transposed, and the result as (…, n): one call."""
        if _name(node) == "aten::addmm":
            bias, a, b = node.args
            act, residual = 0, None
            if node.kwargs or _value(bias) is None or _value(bias).dim() != 1 or _value(bias).shape[0] != _value(node).shape[1]:
                return
        elif _name(node) == "aten::mm":
            (a, b), bias, act, residual = node.args, None, 0, None
        elif _name(node) == "rdna::addmm":
            bias, a, b, act, residual = node.args
        else:
            return
        if _name(b) != "aten::t" or not _floats(node, a, b, *(t for t in (bias,) if t is not None)):
            return
        x, last, removed = a, node, [node]
        view = _only_user(node)
        if _is_view(a) and _is_view(view) and view in self.movable and _shape_equal_but_last(_value(a.args[0]), _value(view)) \
                and _value(a.args[0]).shape[-1] == _value(a).shape[-1]:
            x, last, removed = a.args[0], view, [node, view]
        new = self.put(last, torch.ops.rdna.linear.default, (x, b.args[0], bias, act, residual), _value(last))
        last.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
        for old in (*reversed(removed), *(n for n in (a, b) if n is not x)):
            if not old.users:
                self.graph.erase_node(old)

    # -- memory

    def views(self):
        """A view of a tensor that lies otherwise than was thought becomes a copy, instead of an error."""
        for node in self.graph.nodes:
            if _name(node) in ("aten::view", "aten::_unsafe_view") and _on_device(_value(node)):
                node.target = torch.ops.aten.reshape.default
            elif _name(node) == "aten::as_strided" and node.args[0].op != "placeholder":
                source = node.args[0]
                with self.graph.inserting_before(node):
                    laid = self.graph.call_function(as_traced, (source, list(_value(source).stride())))
                laid.meta["val"] = _value(source)
                node.replace_input_with(source, laid)

    def run(self):
        self.drop_detach()
        self.drop_turns()
        self.wide_sums()
        self.write_in_place()
        self.find_movable()
        for rule in (self.rms_norm, self.fold_norm, self.batch_norm, self.max_pool, self.convolution, self.product, self.chain):
            self.number()
            for node in list(self.graph.nodes):
                if node in self.place and node.op == "call_function" and node in self.movable and not node._erased:
                    rule(node)
        self.one_view()
        for node in list(self.graph.nodes):
            if node.op == "call_function" and node in self.movable:
                self.linear(node)
        self.views()


def as_traced(t, stride):
    if list(t.stride()) == stride:
        return t
    out = torch.empty_strided(t.shape, stride, dtype=t.dtype, device=t.device)
    return out.copy_(t)


as_traced.is_view = True  # unless it has to copy


# Operators that PyTorch's own bindings call in half the time of torch.ops', by the names that they have there.
_METHODS = {"aten::view": "view", "aten::reshape": "reshape", "aten::permute": "permute", "aten::transpose.int": "transpose",
            "aten::t": "t", "aten::unsqueeze": "unsqueeze", "aten::squeeze.dim": "squeeze", "aten::expand": "expand",
            "aten::select.int": "select"}
_FUNCTIONS = {"aten::native_layer_norm": torch.native_layer_norm, "aten::mm": torch.mm, "aten::addmm": torch.addmm, "aten::bmm": torch.bmm,
              "aten::add.Tensor": torch.add, "aten::sub.Tensor": torch.sub, "aten::mul.Tensor": torch.mul, "aten::div.Tensor": torch.div,
              "aten::cat": torch.cat, "aten::sum.dim_IntList": torch.sum, "aten::relu": torch.relu}


def _through_bindings(graph):
    """The graph with these calls in it: the last change, as passes look for operators."""
    for node in graph.nodes:
        name = _name(node)
        if name in _METHODS:
            node.op, node.target = "call_method", _METHODS[name]
        elif name in _FUNCTIONS:
            node.target = _FUNCTIONS[name]


class _Boxed(CodeGen):
    """forward(self, values): takes the list empty, so that each value dies with its last use."""

    def gen_fn_def(self, free_vars, maybe_return_annotation, *args, **kwargs):
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars]
        names = [n for n in names if n != "self"]
        text = f"def forward(self, values){maybe_return_annotation}:"
        if names:
            text += f"\n    {', '.join(names)}, = values"
        return text + "\n    values.clear()"


_LOOKS = {"view", "_unsafe_view", "reshape", "t", "transpose", "permute", "expand", "unsqueeze", "squeeze", "select",
          "slice", "split", "detach", "alias", "as_strided", "unbind", "chunk"}


def _count(graph):
    """Operators that compute: views are none."""
    return sum(1 for n in graph.nodes if _name(n) and _short(n) not in _LOOKS)


def fuse(gm):
    """The graph of |gm| with rdna's operators where they take the places of several."""
    _Rewriter(gm).run()


def _compile_graph(gm, example_inputs, kind="graph", records=False):
    before = _count(gm.graph)
    if kind == "inference":
        gm.graph = channels_last(gm.graph)
    fuse(gm)
    if kind == "inference" and not any(_writes(node) for node in gm.graph.nodes):  # afterwards: what is used twice fuses with neither
        gm.graph = _computed_once(gm.graph)
    gm.graph.lint()
    after = _count(gm.graph)
    _report["graphs"] += 1
    _report["before"] += before
    _report["after"] += after
    log.info("%s: %d operators became %d", kind, before, after)
    log.debug("%s", gm.graph)
    reason = _recorded.cannot(gm.graph) if records else None
    _through_bindings(gm.graph)
    gm.graph.set_codegen(_Boxed())
    gm.recompile()
    forward = gm.forward

    def run(values):
        return forward(values)

    if records:
        if reason is None:
            run = _recorded.Recorded(run, _report)
        else:
            log.info("%s: not recorded, as it %s", kind, reason)
            _recorded.note(_report, reason)
    run._boxed_call = True
    return run


def _computed_once(graph):
    """What is computed twice is computed once: masks of every layer's attention, inputs that autocast narrows for each
    layer. Random numbers that are drawn twice are two (PyTorch's pass knows some of those operators alone), and so are
    results, into which the caller may write."""
    from torch._functorch.compile_utils import fx_graph_cse

    place = "its own place"  # makes them unalike
    for i, node in enumerate(graph.nodes):
        if node.op == "call_function" and (_recorded.draws(node) or not _views.is_inside(node)):
            node.kwargs = {**node.kwargs, place: i}
    made = fx_graph_cse(graph)
    for node in made.nodes:
        if place in node.kwargs:
            node.kwargs = {name: value for name, value in node.kwargs.items() if name != place}
    return made


def _partition(joint, inputs, **options):
    """The gradient of batch norm in training does not look at running statistics: they need not be kept for it."""
    from torch._functorch.partitioners import default_partition

    joint.graph = channels_last(_computed_once(joint.graph))

    for node in joint.graph.nodes:
        if _name(node) == "aten::native_batch_norm_backward" and len(node.args) > 7 and node.args[7] is True:
            node.args = (*node.args[:3], None, None, *node.args[5:])
    joint.recompile()
    return default_partition(joint, inputs, **options)


def _set_log():
    if os.environ.get("RDNA_COMPILE_LOG", "0") not in ("", "0") and not log.handlers:
        log.addHandler(logging.StreamHandler())
        log.setLevel(logging.INFO)


_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@functools.cache
def _mode_means_nothing(mode):
    """Said once of each."""
    warnings.warn(f"torch.compile(backend='rdna') has no search: mode={mode!r} changes nothing", UserWarning, stacklevel=2)


def backend(gm, example_inputs, *, mode=None, options=None):
    """The backend itself, as torch.compile calls it."""
    if options:
        raise ValueError(
            f"torch.compile(backend='rdna') has no options, got options={options!r}: they are Inductor's, leave them out"
        )
    if mode not in (None, *_MODES):
        raise ValueError(f"torch.compile: mode={mode!r} is none of {', '.join(_MODES)}")
    if mode not in (None, "default", "reduce-overhead"):
        _mode_means_nothing(mode)
    from torch._dynamo.backends.common import aot_autograd

    _set_log()
    compiler = aot_autograd(
        fw_compiler=lambda gm, inputs: _compile_graph(gm, inputs, "forward"),
        bw_compiler=lambda gm, inputs: _compile_graph(gm, inputs, "backward"),
        inference_compiler=lambda gm, inputs: _compile_graph(gm, inputs, "inference", mode == "reduce-overhead"),
        partition_fn=_partition,
        keep_inference_input_mutations=True,
    )
    return compiler(gm, example_inputs)


def _is_on_rdna(value):
    return isinstance(value, torch.Tensor) and is_ours(value.device)


@functools.cache
def _options_mean_nothing():
    warnings.warn(
        "torch.compile: rdna's tensors are compiled by backend 'rdna', for which options of Inductor change nothing",
        UserWarning,
        stacklevel=2,
    )


def serve_inductor():
    """torch.compile without a backend means Inductor, which generates no code for rdna: its graphs there are ours."""
    inductor = torch._TorchCompileInductorWrapper
    plain = inductor.__call__

    def __call__(self, model_, inputs_, **more):
        made = (node.meta.get("example_value") for node in model_.graph.nodes)
        if not any(_is_on_rdna(value) for value in (*inputs_, *made)):
            return plain(self, model_, inputs_, **more)
        if os.environ.get("RDNA_INDUCTOR", "0") not in ("", "0"):
            from . import _inductor

            _inductor.Interface.raise_if_triton_unavailable()
            _inductor.register()
            return plain(self, model_, inputs_, **more)
        graphs = "triton.cudagraphs"  # what mode="reduce-overhead" is to Inductor
        if any(name != graphs for name in self.config):
            _options_mean_nothing()
        return backend(model_, inputs_, mode="reduce-overhead" if self.config.get(graphs) else None)

    inductor.__call__ = __call__
