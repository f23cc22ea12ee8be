"""Changes of the graphs that Dynamo makes of a model's forward, before torch_rdna's compiler fuses what is left: attention
that is written out, nn.MultiheadAttention whose weights nobody reads, and layers that multiply the same input."""

import operator

import torch
from torch import fx, nn
from torch._dynamo.source import ConstantSource
from torch.nn import functional as F

from ._plugin import is_ours

_PRODUCTS = (torch.matmul, torch.bmm, operator.matmul, torch.Tensor.matmul)
_SUMS = (operator.add, operator.iadd, torch.add)
_TIMES = (operator.mul, operator.imul, torch.mul)
_QUOTIENTS = (operator.truediv, operator.itruediv, torch.div, torch.true_divide)
_MOST_WIDTH = 256  # of rdna's attention


def _is(node, functions, *methods):
    return isinstance(node, fx.Node) and (
        (node.op == "call_function" and node.target in functions) or (node.op == "call_method" and node.target in methods))


def _value(node):
    return node.meta.get("example_value") if isinstance(node, fx.Node) else None


def _argument(node, place, name, default=None):
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def _user(node):
    return next(iter(node.users)) if len(node.users) == 1 else None


def _number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def _factor(node):
    """(what is scaled, by what number) of a product or quotient with a number; else None."""
    if _is(node, _TIMES, "mul", "mul_") and len(node.args) == 2 and not node.kwargs:
        a, b = node.args
        if _number(b) and isinstance(a, fx.Node):
            return a, float(b)
        if _number(a) and isinstance(b, fx.Node):
            return b, float(a)
    if _is(node, _QUOTIENTS, "div", "div_") and len(node.args) == 2 and not node.kwargs:
        a, b = node.args
        if _number(b) and b and isinstance(a, fx.Node):
            return a, 1.0 / b
    return None


_IN_PLACE = {getattr(operator, name) for name in (
    "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "imatmul", "ilshift", "irshift",
    "iconcat", "setitem")}


def _may_write(node):
    """Whether a call may write what an earlier one made: by its name, or an argument inplace or out."""
    if node.op == "call_method":
        return node.target.endswith("_") and not node.target.endswith("__") or node.target == "__setitem__"
    if node.op != "call_function":
        return False
    name = getattr(node.target, "__name__", "")
    return node.target in _IN_PLACE or (name.endswith("_") and not name.endswith("__")) or \
        any(a is True for a in node.args[1:]) or bool(node.kwargs.get("inplace")) or node.kwargs.get("out") is not None


def _written_between(graph, first, last, besides=()):
    inside = False
    for node in graph.nodes:
        if node is last:
            return False
        if inside and node not in besides and _may_write(node):
            return True
        inside = inside or node is first
    return False


def _last_dim(node, dim):
    value = _value(node)
    return value is not None and dim in (-1, value.dim() - 1)


def _scores(softmax):
    """(product of queries and keys, mask or None, scale, nodes between) of what |softmax| sees; else None."""
    node, scale, mask, between = softmax.args[0], 1.0, None, []
    while True:
        if not isinstance(node, fx.Node) or _user(node) is None:
            return None
        between.append(node)
        if _is(node, _PRODUCTS, "matmul", "bmm"):
            return node, mask, scale, between
        factor = _factor(node)
        if factor is not None:
            node, number = factor
            scale *= number
        elif mask is None and scale == 1.0 and _is(node, _SUMS, "add", "add_") and len(node.args) == 2 and not node.kwargs:
            a, b = node.args
            if not (isinstance(a, fx.Node) and isinstance(b, fx.Node)):
                return None
            leads = [_leads_to_product(x) for x in (a, b)]
            if leads == [True, False]:
                node, mask = a, b
            elif leads == [False, True]:
                node, mask = b, a
            else:
                return None
        else:
            return None


def _leads_to_product(node):
    while (factor := _factor(node)) is not None:
        node = factor[0]
    return _is(node, _PRODUCTS, "matmul", "bmm")


def _weights_to_product(softmax):
    """(product of weights and values, nodes between) behind |softmax|; else None. Dropout that drops nothing and a
    conversion back to the type before are between."""
    node, between = softmax, []
    while True:
        user = _user(node)
        if user is None or not user.args or user.args[0] is not node:
            return None
        if _is(user, _PRODUCTS, "matmul", "bmm"):
            return (user, between) if len(user.args) == 2 and user.args[1] is not node and not user.kwargs else None
        if _is(user, (F.dropout, torch.dropout)):
            p, training = _argument(user, 1, "p", 0.5), _argument(user, 2, "training", True)
            if training is not False and p != 0:
                return None
        elif not _is(user, (), "to", "type_as", "float", "half", "bfloat16", "contiguous"):
            return None
        between.append(user)
        node = user


def _attention(graph, softmax):
    """Puts scaled_dot_product_attention in the place of softmax(q k^T * scale + mask) v."""
    dim = _argument(softmax, 1, "dim")
    if not _last_dim(softmax, dim):
        return False
    found, behind = _scores(softmax), _weights_to_product(softmax)
    if found is None or behind is None:
        return False
    (product, mask, scale, between), (last, after) = found, behind
    if len(product.args) != 2 or product.kwargs or _written_between(graph, product, last, (*between, softmax, *after)):
        return False
    (q, kt), v = product.args, last.args[1]
    values = [_value(n) for n in (q, kt, v, product, last)]
    if not all(isinstance(t, torch.Tensor) for t in values):
        return False
    tq, tk, tv, ts, tl = values
    rank = tq.dim()
    if rank not in (3, 4) or tk.dim() != rank or tv.dim() != rank or not is_ours(tq.device) or \
            len({t.dtype for t in (tq, tk, tv, tl)}) != 1 or tq.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return False
    widths = (tq.shape[-1], tv.shape[-1])
    if any(not isinstance(w, int) or not 1 <= w <= _MOST_WIDTH for w in widths) or \
            tq.shape[:-2] != tk.shape[:-2] or tq.shape[:-2] != tv.shape[:-2]:
        return False
    if mask is not None:
        tm = _value(mask)
        if not isinstance(tm, torch.Tensor) or tm.dtype != tq.dtype or tm.dim() > rank or tm.device != tq.device or \
                torch.broadcast_shapes(tm.shape, ts.shape) != ts.shape:
            return False
    with graph.inserting_before(last):
        if _is(kt, (torch.transpose,), "transpose") and sorted(d % rank for d in kt.args[1:]) == [rank - 2, rank - 1]:
            k = kt.args[0]
        else:
            k = graph.call_method("transpose", (kt, -1, -2))
        if rank == 3:  # all of a batch's heads, as the heads of one
            q, k, v = (graph.call_method("unsqueeze", (n, 0)) for n in (q, k, v))
            if mask is not None and _value(mask).dim() == 3:
                mask = graph.call_method("unsqueeze", (mask, 0))
        new = graph.call_function(F.scaled_dot_product_attention, (q, k, v), {"attn_mask": mask, "scale": scale})
        if rank == 3:
            new = graph.call_method("squeeze", (new, 0))
    new.meta.update(last.meta)
    last.replace_all_uses_with(new)
    for node in (last, *reversed(after), softmax, *between):
        graph.erase_node(node)
    return True


def find_attention(graph):
    """How many were found."""
    count = 0
    for node in list(graph.nodes):
        if _is(node, (F.softmax, torch.softmax), "softmax"):
            count += _attention(graph, node)
    return count


def drop_attention_weights(graph):
    """nn.MultiheadAttention averages its weights over heads, and cannot use the fused operator, unless it is told that
    nobody reads them: here it is seen."""
    count = 0
    for node in list(graph.nodes):
        if not _is(node, (F.multi_head_attention_forward,)) or not node.kwargs.get("need_weights", True):
            continue
        reads = [u for u in node.users if not (u.target is operator.getitem and u.args[1] == 1 and not u.users)]
        if all(u.target is operator.getitem and u.args[1] == 0 for u in reads) and len(node.args) <= 13:
            for unread in set(node.users) - set(reads):
                graph.erase_node(unread)
            node.kwargs = {**node.kwargs, "need_weights": False}
            count += 1
    return count


def _attention_of_itself(x, heads, weight, bias, out_weight, out_bias):
    """F.multi_head_attention_forward of (S, B, E), of which nn.MultiheadAttention with batch_first makes (B, S, E) again:
    every view lies so that nothing is copied, where PyTorch's own copies queries, keys and values, and the result."""
    whole = F.linear(x.transpose(0, 1), weight, bias).unflatten(-1, (3, heads, -1))
    q, k, v = whole.permute(2, 0, 3, 1, 4).unbind(0)
    y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    return F.linear(y, out_weight, out_bias).transpose(0, 1)


_ATTENTION = ("query", "key", "value", "embed_dim_to_check", "num_heads", "in_proj_weight", "in_proj_bias", "bias_k", "bias_v",
              "add_zero_attn", "dropout_p", "out_proj_weight", "out_proj_bias")
_ATTENTION_LEFT_OUT = ("bias_k", "bias_v", "add_zero_attn", "key_padding_mask", "attn_mask", "use_separate_proj_weight",
                       "static_k", "static_v", "is_causal")


def copy_no_attention(graph):
    """Attention of a sequence to itself, without masks, by _attention_of_itself. After drop_attention_weights."""
    count = 0
    for node in list(graph.nodes):
        if not _is(node, (F.multi_head_attention_forward,)) or len(node.args) > len(_ATTENTION):
            continue
        given = {**dict(zip(_ATTENTION, node.args)), **node.kwargs}
        x = given["query"]
        if given.get("need_weights", True) or x is not given["key"] or x is not given["value"] or \
                any(given.get(name) for name in _ATTENTION_LEFT_OUT if not isinstance(given.get(name), fx.Node)) or \
                any(isinstance(given.get(name), fx.Node) for name in _ATTENTION_LEFT_OUT) or \
                (given.get("training", True) and given["dropout_p"]) or _value(x) is None or _value(x).dim() != 3 or \
                not all(u.target is operator.getitem and u.args[1] == 0 for u in node.users):
            continue
        names = ("query", "num_heads", "in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias")
        with graph.inserting_before(node):
            new = graph.call_function(_attention_of_itself, tuple(given[name] for name in names))
        for user in list(node.users):
            new.meta.update(user.meta)
            user.replace_all_uses_with(new)
            graph.erase_node(user)
        graph.erase_node(node)
        count += 1
    return count


def pack_layers(gm, example_inputs, packed):
    """Linear layers that see the same input become one product: their weights are put behind each other, once. |packed|:
    what was packed before, by the parameters' ids, kept by the caller, who runs the graph with_packed. Only for passes
    without gradients, by models whose parameters nobody else has."""
    graph, given = gm.graph, {}
    for node, value in zip((n for n in graph.nodes if n.op == "placeholder"), example_inputs):
        given[node] = value
    groups = {}
    for node in graph.nodes:
        if _is(node, (F.linear, torch._C._nn.linear)) and len(node.args) == 3 and not node.kwargs:
            x, weight, bias = node.args
            w, b = given.get(weight), given.get(bias)
            if isinstance(w, nn.Parameter) and w.dim() == 2 and is_ours(w.device) and \
                    (bias is None or (isinstance(b, nn.Parameter) and b.dim() == 1)):
                groups.setdefault((x, bias is None, w.dtype), []).append((node, w, b))
    count = 0
    for (x, _, _), layers in groups.items():
        weights = [w for _, w, _ in layers]
        if len(layers) < 2 or len({id(w) for w in weights}) < len(weights) or \
                _written_between(graph, layers[0][0], layers[-1][0]):
            continue
        whole = [_packed(packed, weights)]
        if layers[0][2] is not None:
            whole.append(_packed(packed, [b for _, _, b in layers]))
        if any(t is None for t in whole):
            continue
        names = []
        for tensor in whole:
            names.append(f"packed_{len(gm._buffers)}")
            torch._dynamo.mark_static_address(tensor, guard=False)
            gm.register_buffer(names[-1], tensor, persistent=False)
            if hasattr(gm, "_param_name_to_source"):  # AOTAutograd wants to know where each tensor of a graph is from
                gm._param_name_to_source[names[-1]] = ConstantSource(names[-1])
        first = layers[0][0]
        with graph.inserting_before(first):
            product = graph.call_function(F.linear, (x, *(graph.get_attr(name) for name in names)))
            parts = graph.call_function(torch.split, (product, [w.shape[0] for w in weights], -1))
            for place, (node, _, _) in enumerate(layers):
                part = graph.call_function(operator.getitem, (parts, place))
                part.meta.update(node.meta)
                node.replace_all_uses_with(part)
        for node, _, _ in layers:
            graph.erase_node(node)
        count += len(layers)
    return count


def _packed(packed, parameters):
    """One tensor with the values of all; None where another group has one of them."""
    key = tuple(id(p) for p in parameters)
    if key in packed and _lie_there(*packed[key]):
        return packed[key][0]
    if any(i in other for other in packed if other != key for i in key):
        return None
    with torch.no_grad():
        packed[key] = (torch.cat([p.detach() for p in parameters]), parameters)
    return packed[key][0]


def _lie_there(whole, parameters):
    parts = whole.split([len(p) for p in parameters])
    return all(p.data_ptr() == part.data_ptr() and p.shape == part.shape for p, part in zip(parameters, parts))


def with_packed(run, packed, example_inputs):
    """|run|, a graph's function, after a look at whether its layers' parameters are the parts of what was packed. They
    become so at the first call, behind the compilation, which knows them as they were; and again where a program has given
    a layer other memory since."""
    part_of = {id(p): part for whole, parameters in packed.values()
               for p, part in zip(parameters, whole.split([len(p) for p in parameters]))}
    places = [(i, part_of[id(p)], part_of[id(p)].data_ptr()) for i, p in enumerate(example_inputs) if id(p) in part_of]

    def checked(*inputs):
        for i, part, at in places:
            if inputs[i].data_ptr() != at:
                with torch.no_grad():
                    part.copy_(inputs[i])
                    inputs[i].data = part
        return run(*inputs)

    return checked
