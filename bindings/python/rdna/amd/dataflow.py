"""Which module of a model feeds which. torch.fx traces a copy of the model that has no memory, so that nothing is computed,
drawn or written; where it cannot follow a module it follows the modules inside of that one, nn.Sequential at the least.
The trace is read only: what AMDOptimizer changes are modules, and every forward() stays as it was written."""

import copy
import inspect
import operator

import torch
from torch import fx, nn
from torch.nn import functional as F

# What a module may do for others before or after its forward: moving or replacing such a module is not ours to do.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module):
    return any(getattr(module, name, None) for name in _HOOKS)


def tensors_of(model):
    """Each parameter, buffer and other tensor attribute once."""
    found = {}
    for module in model.modules():
        for group in (module._parameters, module._buffers, module.__dict__):
            for value in group.values():
                if isinstance(value, torch.Tensor):
                    found[id(value)] = value
    return list(found.values())


def copied(model, tensor):
    """A copy of the model's modules whose tensors are what |tensor| makes of each; ties between tensors, and between
    modules, are kept. Raises what copy.deepcopy raises for a model with attributes that cannot be copied."""
    memo = {id(t): tensor(t) for t in tensors_of(model)}
    return copy.deepcopy(model, memo)


def _without_memory(t):
    if t.layout != torch.strided:
        return t
    made = torch.empty_like(t, device="meta", requires_grad=False)
    return nn.Parameter(made, requires_grad=False) if isinstance(t, nn.Parameter) else made


class _Tracer(fx.Tracer):
    def __init__(self, opaque):
        super().__init__()
        self.opaque = opaque
        self.proxy_buffer_attributes = True  # else forward() would compute with them

    def is_leaf_module(self, module, name):
        return id(module) in self.opaque or next(module.children(), None) is None or \
            _SINGLE in module.__dict__ or super().is_leaf_module(module, name)


_SINGLE = "_rdna_single"  # in a traced copy: this module is one call, whatever its class
_NORM_ARGUMENTS = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
_LOOKS = (getattr, operator.eq, torch._assert)  # at a tensor's rank


def modules_behind_norm(module):
    """Of a subclass of a batch norm whose forward, in evaluation, is that norm and then calls of its own modules, each with
    what the one before returns: their names, in order. Else None. timm's norms with an activation inside are such."""
    if not isinstance(module, nn.modules.batchnorm._BatchNorm) or module.training or module.running_mean is None or \
            "forward" in module.__dict__:
        return None
    bare = copy.copy(module)
    bare.__dict__["_check_input_dim"] = lambda x: None  # which would ask a proxy for its rank
    tracer = fx.Tracer()
    tracer.proxy_buffer_attributes = True
    tracer.is_leaf_module = lambda *_: True
    try:
        nodes = list(tracer.trace(bare).nodes)
    except Exception:  # whatever a forward() raises that is given something else than tensors
        return None
    inputs, norms = [n for n in nodes if n.op == "placeholder"], [n for n in nodes if n.target is F.batch_norm]
    if len(inputs) != 1 or len(norms) != 1:
        return None
    norm, last = norms[0], nodes[-1]
    given = {**dict.fromkeys(_NORM_ARGUMENTS), "training": False, "eps": 1e-5, **dict(zip(_NORM_ARGUMENTS, norm.args)), **norm.kwargs}
    if given["input"] is not inputs[0] or given["training"] is not False or given["eps"] != module.eps or \
            not all(_is_read(given[name], module, name) for name in ("running_mean", "running_var", "weight", "bias")):
        return None
    calls, node = [], norm
    while list(node.users) != [last]:
        user = next(iter(node.users), None)
        if user is None or len(node.users) > 1 or user.op != "call_module" or user.args != (node,) or user.kwargs:
            return None
        calls.append(user)
        node = user
    names = [call.target for call in calls]
    others = set(nodes) - {inputs[0], norm, last, *calls}
    if last.args != (node,) or len(set(names)) < len(names) or not module._modules.keys() >= set(names) or \
            any(n.op != "get_attr" and not (n.op == "call_function" and n.target in _LOOKS) for n in others):
        return None
    return names


def _is_read(node, module, name):
    """Whether a graph's value is the module's tensor of that name, or none where the module has none."""
    if getattr(module, name) is None:
        return node is None
    return isinstance(node, fx.Node) and (node.op, node.target) == ("get_attr", name)


def _defaults(module):
    """Arguments that may be left out, as a call without them has them."""
    values = {}
    for p in inspect.signature(module.forward).parameters.values():
        if p.default is None or isinstance(p.default, (bool, int, float, str)):
            values[p.name] = p.default
    return values


def _trace(module, opaque):
    """The graph of a module's forward, in which those whose ids are in |opaque| are single calls; None where fx cannot
    follow it."""
    if type(module).forward is nn.Module.forward or "forward" in module.__dict__:
        return None
    try:
        return _Tracer(opaque).trace(module, concrete_args=_defaults(module))
    except Exception:  # whatever a forward() raises that is given something else than tensors
        return None


def _graphs(module, prefix, opaque):
    """(path, graph) of the outermost modules that can be followed, and of those inside of modules that cannot, whose ids
    come into |opaque|."""
    if next(module.children(), None) is None:
        return []
    graph = _trace(module, opaque)
    if graph is not None:
        return [(prefix, graph)]
    found, shut = [], []
    for name, child in module.named_children():
        path = f"{prefix}{name}."
        found += _graphs(child, path, opaque)
        if id(child) in opaque:
            shut.append(path)
    graph = _trace(module, opaque) if shut else None
    if graph is None:
        opaque.add(id(module))
        return found
    return [(prefix, graph), *(f for f in found if f[0].startswith(tuple(shut)))]


class Links:
    """next[path]: the only module that sees what the module at |path| returns, as its only argument. Both are called
    once, by one forward(), which does nothing else with them."""

    def __init__(self, model):
        self.next = {}
        self._uses = {}
        for _, module in model.named_modules(remove_duplicate=False):
            self._uses[id(module)] = self._uses.get(id(module), 0) + 1
        self._hooked = [name for name, m in model.named_modules() if has_hooks(m) and next(m.children(), None) is not None]
        self._modules = dict(model.named_modules(remove_duplicate=False))
        blank = copied(model, _without_memory)
        for module in blank.modules():
            for name in _HOOKS:
                if getattr(module, name, None):
                    getattr(module, name).clear()
        for module in blank.modules():
            if modules_behind_norm(module) is not None:
                module.__dict__[_SINGLE] = True
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            opaque = set()
            found = _graphs(blank, "", opaque)
        self.whole = not opaque  # the trace has all that is called
        for prefix, graph in found:
            self._read(prefix, graph)

    def _read(self, prefix, graph):
        calls, touched = {}, set()
        for node in graph.nodes:
            if node.op == "call_module":
                calls.setdefault(prefix + node.target, []).append(node)
            elif node.op == "get_attr":
                touched.add((prefix + node.target).rpartition(".")[0])
        paths = {nodes[0]: path for path, nodes in calls.items()
                 if len(nodes) == 1 and path not in touched and self._alone(path)}
        for node, path in paths.items():
            user = next(iter(node.users)) if len(node.users) == 1 else None
            if user in paths and user.args == (node,) and not user.kwargs and self._same_hooks(path, paths[user]):
                self.next[path] = paths[user]

    def _alone(self, path):
        module = self._modules.get(path)
        return module is not None and self._uses[id(module)] == 1

    def _same_hooks(self, a, b):
        """Hooks of a module around one of both would see, or change, what goes from one to the other."""
        return all(a.startswith(h + ".") == b.startswith(h + ".") for h in self._hooked if h)
