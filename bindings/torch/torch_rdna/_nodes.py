"""What a graph's nodes are, and how their values lie."""

import torch

from ._device import is_ours
from ._fake import layout

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def name(node):
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return ""
    full = target.name()
    return full[: -len(".default")] if full.endswith(".default") else full


def short(node):
    return name(node).split("::")[-1].split(".")[0]


def value(node):
    return node.meta.get("val") if isinstance(node, torch.fx.Node) else None


def on_device(value):
    return isinstance(value, torch.Tensor) and is_ours(value.device) and value.layout == torch.strided


def floats(*nodes):
    """All are tensors of one floating type on rdna."""
    values = [value(n) for n in nodes]
    return all(on_device(v) and v.dtype in FLOATS and v.dtype == values[0].dtype for v in values)


def only_user(node):
    return next(iter(node.users)) if len(node.users) == 1 else None


def arguments(node):
    """The arguments in the schema's order, without defaults."""
    schema = node.target._schema.arguments
    values = list(node.args)
    for a in schema[len(values):]:
        if a.name in node.kwargs:
            values.append(node.kwargs[a.name])
        elif a.has_default_value():
            values.append(a.default_value)
    return values


def order(value):
    """The dimensions of a dense tensor as they lie in memory, the slowest first; [] for the usual order, None for a
    tensor with gaps or overlaps."""
    known = layout(value)
    if known is None:
        return None
    sizes, strides = known
    usual = list(range(value.dim()))
    real = [d for d in usual if sizes[d] != 1]  # the others may have any stride
    slowest_first = sorted(real, key=lambda d: -strides[d])
    step = 1
    for d in reversed(slowest_first):
        if strides[d] != step:
            return None
        step *= sizes[d]
    return [] if slowest_first == real else [d for d in usual if sizes[d] == 1] + slowest_first


def contiguous(value):
    return order(value) == []


def shape_equal(a, b):
    return len(a.shape) == len(b.shape) and all(x is y or x == y for x, y in zip(a.shape, b.shape))


def shape_equal_but_last(a, b):
    return len(a.shape) == len(b.shape) and all(x is y or x == y for x, y in zip(a.shape[:-1], b.shape[:-1]))


def is_view(node):
    return isinstance(node, torch.fx.Node) and name(node) in ("aten::view", "aten::_unsafe_view", "aten::reshape") and \
        not node.kwargs and on_device(value(node))


def same_layout(a, b):
    return shape_equal(a, b) and contiguous(a) and contiguous(b)


def writes(node):
    target = node.target
    return node.op == "call_function" and isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable
