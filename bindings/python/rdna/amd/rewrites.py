"""Changes of single modules, for evaluation, in a model that is the optimizer's own copy. Each takes the model and its
Links and returns how often it was done. A module is known by its exact type: a subclass, one with parametrizations or
hooks, or one that is called from two places stays as it is."""

import torch
from torch import fx, nn
from torch.nn import functional as F

from ._plugin import is_ours
from .dataflow import has_hooks, modules_behind_norm

_CONV = {nn.Conv1d: 3, nn.Conv2d: 4, nn.Conv3d: 5}
_TRANSPOSED = {nn.ConvTranspose1d: 3, nn.ConvTranspose2d: 4, nn.ConvTranspose3d: 5}
_FOLDS = {nn.Linear: 2, **_CONV, **_TRANSPOSED}  # and the rank at which a batch norm sees its channels in their result
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


class Passes(nn.Module):
    """In the place of a module whose work is done elsewhere, or is none. Programs that ask it for what the module had,
    a dropout's p for one, find it."""

    def __init__(self, module, rank=None):
        super().__init__()
        self.__dict__["replaced"] = module  # no child: its parameters are no longer the model's
        self.rank = rank
        self.training = False

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "replaced" not in self.__dict__:
                raise
            return getattr(self.replaced, name)

    def forward(self, x):
        if self.rank is not None and x.dim() != self.rank:
            raise ValueError(
                f"this {type(self.replaced).__name__} was folded into the layer before it for inputs of rank {self.rank}, "
                f"got rank {x.dim()}: undo the optimization, or give batches"
            )
        return x

    def train(self, mode=True):
        if mode and isinstance(self.replaced, (*_NORMS, *_DROPOUTS)):
            raise RuntimeError(
                f"this model was optimized for inference, without its {type(self.replaced).__name__}: to train, take the "
                "model that AMDOptimizer.undo() gives back"
            )
        return super().train(mode)

    def extra_repr(self):
        return f"for {self.replaced}"

    def _load_from_state_dict(self, state, prefix, local_metadata, strict, missing, unexpected, errors):
        if self.rank is not None and any(key.startswith(prefix) for key in state):
            errors.append(
                f'"{prefix[:-1]}" is a batch norm that was folded into the weight before it: load this checkpoint into the '
                "model that AMDOptimizer.undo() gives back, and optimize again"
            )
        super()._load_from_state_dict(state, prefix, local_metadata, strict, missing, unexpected, errors)


class Behind(Passes):
    """In the place of a folded batch norm of a class of its own: what its forward does with the norm's result."""

    def __init__(self, norm, rank, names):
        super().__init__(norm, rank)
        self.names = names
        for name in names:
            self._modules[name] = norm._modules[name]

    def forward(self, x):
        x = super().forward(x)
        for name in self.names:
            x = self._modules[name](x)
        return x

    def one_module(self):
        """What it does if that is a single module."""
        rest = [m for m in self.children() if not isinstance(m, Passes) and not _is_plain(m, (nn.Identity,))]
        return rest[0] if len(rest) == 1 else None


def _put(model, path, module):
    parent, _, name = path.rpartition(".")
    model.get_submodule(parent)._modules[name] = module


def _is_plain(module, types):
    return type(module) in types and not has_hooks(module) and "forward" not in module.__dict__


def drop_dropout(model, links):
    found = [path for path, m in model.named_modules(remove_duplicate=False)
             if path and _is_plain(m, _DROPOUTS) and not m.training]
    for path in found:
        _put(model, path, Passes(model.get_submodule(path)))
    return len(found)


def _after(model, links, path):
    """The module that computes with what the one at |path| returns: its path, or None."""
    path = links.next.get(path)
    while path is not None:
        module = model.get_submodule(path)
        if type(module) is not Passes and not _is_plain(module, (nn.Identity,)):
            break
        path = links.next.get(path)
    return path


def _norm_and_more(module):
    """The names of the modules that a batch norm calls with its result, in order: none of PyTorch's own. None where it
    is no batch norm, or does something else."""
    if not isinstance(module, _NORMS) or has_hooks(module) or "forward" in module.__dict__:
        return None
    return [] if type(module) in _NORMS else modules_behind_norm(module)


def _foldable(layer, norm):
    if not _is_plain(layer, _FOLDS) or layer.training or norm.training or _norm_and_more(norm) is None:
        return False
    if norm.running_mean is None or norm.running_var is None:
        return False
    values = [t for t in (layer.weight, layer.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var)
              if t is not None]
    channels = layer.out_features if type(layer) is nn.Linear else layer.out_channels
    return channels == norm.num_features and all(
        t.is_floating_point() and t.layout == torch.strided and t.device == layer.weight.device and
        type(t.data) is torch.Tensor for t in values)


def folded(layer, norm):
    """Weight and bias of one layer that does what |layer| and then |norm|, in evaluation, do: computed in float64."""
    weight, wide = layer.weight, torch.float64
    scale = (norm.running_var.to(wide) + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight.to(wide)
    shift = -norm.running_mean.to(wide)
    if layer.bias is not None:
        shift = shift + layer.bias.to(wide)
    shift = shift * scale
    if norm.bias is not None:
        shift = shift + norm.bias.to(wide)
    if type(layer) in _TRANSPOSED:  # (channels in, channels of a group, places)
        across = scale.reshape(layer.groups, 1, -1).expand(-1, weight.shape[0] // layer.groups, -1)
        across = across.reshape(weight.shape[0], weight.shape[1], *[1] * (weight.dim() - 2))
    else:
        across = scale.reshape(-1, *[1] * (weight.dim() - 1))
    narrow = (weight.to(wide) * across).to(weight.dtype)
    return narrow.contiguous(memory_format=_format_of(weight)), shift.to(weight.dtype)


def _format_of(weight):
    if weight.dim() == 4 and weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous():
        return torch.channels_last
    return torch.contiguous_format


def fold_norms(model, links):
    count = 0
    for path in list(links.next):
        while (after := _after(model, links, path)) is not None:
            layer, norm = model.get_submodule(path), model.get_submodule(after)
            if not _foldable(layer, norm):
                break
            grad = layer.weight.requires_grad
            weight, bias = folded(layer, norm)
            layer.weight, layer.bias = nn.Parameter(weight, requires_grad=grad), nn.Parameter(bias, requires_grad=grad)
            names, rank = _norm_and_more(norm), _FOLDS[type(layer)]
            _put(model, after, Behind(norm, rank, names) if names else Passes(norm, rank))
            count += 1
    return count


def left_norms(model, links):
    """A sentence for each batch norm that evaluation still runs: why it was not folded."""
    said, before = [], {b: a for a, b in links.next.items()}
    for path, norm in model.named_modules():
        if not isinstance(norm, _NORMS) or norm.training or norm.running_mean is None:
            continue
        if has_hooks(norm):
            why = "it has hooks"
        elif _norm_and_more(norm) is None:
            why = "it is of a class of its own, or parametrized, and does not only call modules with a batch norm's result"
        elif path not in before:
            why = "no trace shows that it alone sees what one layer returns"
        else:
            layer = model.get_submodule(before[path])
            kind = type(layer).__name__
            why = f"the {kind} before it has hooks, parametrizations or another type" if isinstance(layer, tuple(_FOLDS)) \
                else f"a {kind} is before it"
        said.append(f"{path or type(norm).__name__} was not folded: {why}")
    return said


# ---- a layer and its activation, one launch

_FUNCTIONS = {
    F.relu: "relu", torch.relu: "relu", F.sigmoid: "sigmoid", torch.sigmoid: "sigmoid", F.tanh: "tanh", torch.tanh: "tanh",
    F.silu: "silu",
}
_METHODS = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}
_TYPES = (torch.float32, torch.float16, torch.bfloat16)


def _function_of(module):
    """The name that librdna has for what a module without parameters computes, or None. Of any class: transformers
    brings its own."""
    if next(module.children(), None) is not None or any(True for _ in module.parameters()) or has_hooks(module):
        return None
    try:
        nodes = [n for n in fx.Tracer().trace(module).nodes]
    except Exception:
        return None
    if len(nodes) != 3 or nodes[1].args[:1] != (nodes[0],) or nodes[2].args != (nodes[1],):
        return None
    node = nodes[1]
    if node.op == "call_function" and node.target is F.gelu:
        kind = node.kwargs.get("approximate", node.args[1] if len(node.args) > 1 else "none")
        return {"none": "gelu_erf", "tanh": "gelu_tanh"}.get(kind)
    known = {"call_function": _FUNCTIONS, "call_method": _METHODS}.get(node.op, {}).get(node.target)
    return known if len(node.args) == 1 and set(node.kwargs) <= {"inplace"} else None


def _compiler():
    from torch_rdna import _compile

    return _compile


def _activation_numbers():
    return _compiler().ACTIVATION


def _in_one_launch(layer, x):
    """Whether the fused operator can take the call: it has no gradient, and knows neither autocast nor other devices."""
    if torch.compiler.is_compiling() or not is_ours(x.device) or type(x) is not torch.Tensor or x.numel() == 0:
        return False
    if x.dtype not in _TYPES or x.dtype != layer.weight.dtype or torch.is_autocast_enabled("rdna"):
        return False
    return not torch.is_grad_enabled() or not any(
        t is not None and t.requires_grad for t in (x, layer.weight, layer.bias))


class LinearActivation(nn.Linear):
    """A linear layer and the activation behind it, in one launch where no gradient is asked for and that is the faster way."""

    def forward(self, x):
        if not _in_one_launch(self, x) or x.dim() == 0 or x.shape[-1] != self.in_features or \
                _compiler().vendors_is_faster(x.numel() // self.in_features, self.in_features, self.out_features, x.device):
            return self.activation(super().forward(x))
        return torch.ops.rdna.linear(x, self.weight, self.bias, self.activation_number, None)


class _ConvActivation:
    def forward(self, x):
        if not _in_one_launch(self, x) or x.dim() != self.weight.dim() or self.padding_mode != "zeros" or \
                isinstance(self.padding, str) or \
                _compiler().vendors_window_is_faster(x, self.weight, self.stride, self.padding, self.groups):
            return self.activation(super().forward(x))
        return torch.ops.rdna.convolution(x, self.weight, self.bias, self.stride, self.padding, self.dilation, False,
                                          [0] * (x.dim() - 2), self.groups, self.activation_number)


class Conv1dActivation(_ConvActivation, nn.Conv1d):
    pass


class Conv2dActivation(_ConvActivation, nn.Conv2d):
    pass


class Conv3dActivation(_ConvActivation, nn.Conv3d):
    pass


_FUSED = {nn.Linear: LinearActivation, nn.Conv1d: Conv1dActivation, nn.Conv2d: Conv2dActivation,
          nn.Conv3d: Conv3dActivation}


def fuse_activations(model, links):
    numbers, count = _activation_numbers(), 0
    for path in list(links.next):
        after = _after(model, links, path)
        layer = model.get_submodule(path)
        if after is None or not _is_plain(layer, _FUSED):
            continue
        found = model.get_submodule(after)
        activation = found.one_module() if isinstance(found, Behind) else found
        name = None if activation is None else _function_of(activation)
        if name not in numbers:
            continue
        layer.__class__ = _FUSED[type(layer)]
        layer.activation, layer.activation_number = activation, numbers[name]
        _put(model, after, Passes(found.replaced, found.rank) if isinstance(found, Behind) else Passes(activation))
        count += 1
    return count
