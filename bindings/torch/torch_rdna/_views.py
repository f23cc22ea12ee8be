"""Which nodes of a graph are views of others."""

import operator

import torch


def looks(node):
    """Whether |node| shares the memory of its first argument: a view, or one of several that a view such as split returns."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return looks(node.args[0])
    if getattr(node.target, "is_view", False):  # of ours
        return True
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    return node.target is torch.ops.aten._unsafe_view.default or any(
        r.alias_info is not None and not r.alias_info.is_write for r in node.target._schema.returns)


def source(node):
    """What |node| is a view of; itself where it is none."""
    while looks(node):
        node = node.args[0]
    return node


def is_inside(node):
    """Whether nobody outside of the graph ever sees the memory of what |node| makes."""
    return node.op == "call_function" and all(u.op != "output" and (not looks(u) or is_inside(u)) for u in node.users)
