"""Linear layers whose products are of 8-bit floats: weights kept as E4M3 with a scale a row, and what they are given scaled a
row at each call. A layer keeps its identity and its place in the model, and changes its class."""

import torch
from torch import nn
from torch.nn import functional as F

from ._plugin import is_ours

CODES = torch.float8_e4m3fn
_LARGEST = torch.finfo(CODES).max
_TYPES = (torch.float32, torch.float16, torch.bfloat16)


def quantized(values):
    """(codes, scales) of a matrix: a row's largest magnitude becomes the largest code."""
    scales = torch.linalg.vector_norm(values, float("inf"), dim=-1, keepdim=True, dtype=torch.float32)
    scales = scales.clamp_min(2.0**-100) / _LARGEST
    return (values / scales).to(CODES), scales


def _product(rows, codes, scales, dtype):
    """rows (m, k) times codes (n, k), transposed, into |dtype|."""
    given, of_rows = quantized(rows)
    if is_ours(rows.device):
        return torch._scaled_mm(given, codes.t(), of_rows, scales.t(), out_dtype=dtype)
    return (given.float() @ codes.float().t() * of_rows * scales.t()).to(dtype)


class _Differentiable(torch.autograd.Function):
    """The product with the gradient of its rows, by the weights that the codes stand for; the weights have none."""

    @staticmethod
    def forward(ctx, rows, codes, scales, dtype):
        ctx.save_for_backward(codes, scales)
        ctx.type = rows.dtype
        return _product(rows, codes, scales, dtype)

    @staticmethod
    def backward(ctx, grad):
        codes, scales = ctx.saved_tensors
        return (grad @ (codes.float() * scales).to(grad.dtype)).to(ctx.type), None, None, None


class Float8Linear(nn.Linear):
    """In files and to load_state_dict() `weight` is the codes, with `weight_scale` beside them; a wide weight that is loaded is
    rounded. To programs that read it `weight` is what the codes stand for."""

    @property
    def weight(self):
        return (self._buffers["weight"].float() * self.weight_scale).to(self.wide)

    def forward(self, x):
        kind = x.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
        if x.dim() == 0 or x.shape[-1] != self.in_features or dtype not in _TYPES:
            return F.linear(x, self.weight, self.bias)  # which refuses what no layer takes
        product = _Differentiable.apply if torch.is_grad_enabled() and x.requires_grad else _product
        out = product(x.reshape(-1, self.in_features), self._buffers["weight"], self.weight_scale, dtype)
        out = out.view(*x.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias.to(dtype)

    def _apply(self, fn, recurse=True):
        """Moves codes and scales, and never converts them: half() and its like say what `weight` is read as."""
        kept = {name: self._buffers[name] for name in ("weight", "weight_scale")}
        super()._apply(fn, recurse)
        wide = fn(torch.empty(0, dtype=self.wide, device=kept["weight"].device)).dtype
        self.wide = wide if wide in (*_TYPES, torch.float64) else self.wide
        for name, old in kept.items():
            if self._buffers[name].dtype != old.dtype:
                self._buffers[name] = old.to(self._buffers[name].device)
        return self

    def _load_from_state_dict(self, state, prefix, *more):
        given = state.get(prefix + "weight")
        if isinstance(given, torch.Tensor) and given.dtype == CODES and prefix + "weight_scale" not in state:
            more[-1].append(f"{prefix}weight: codes of 8 bits without {prefix}weight_scale; load both, or a wide weight")
            return
        if isinstance(given, torch.Tensor) and given.is_floating_point() and given.dtype != CODES and given.dim() == 2:
            state = {key: value for key, value in state.items() if key.startswith(prefix)}
            state[prefix + "weight"], state[prefix + "weight_scale"] = quantized(given if given.dtype in _TYPES else given.float())
        super()._load_from_state_dict(state, prefix, *more)

    def extra_repr(self):
        return super().extra_repr() + ", of 8-bit floats"


def _can_be_narrow(layer):
    weight = layer._parameters.get("weight") if type(layer) is nn.Linear and "forward" not in layer.__dict__ else None
    return weight is not None and type(weight) is nn.Parameter and weight.dtype in _TYPES and weight.numel() > 0


def _become(layer, codes, scales):
    wide = layer._parameters.pop("weight").dtype
    layer.__class__, layer.wide = Float8Linear, wide
    layer._buffers.update(weight=codes, weight_scale=scales)


def _become_wide(layer, weight):
    for name in ("weight", "weight_scale"):
        del layer._buffers[name]
    del layer.wide
    layer.__class__ = nn.Linear
    layer._parameters = {"weight": weight, **layer._parameters}  # the order of a linear layer's own


def narrow(model):
    """Makes the model's linear layers such layers, those of a class of their own and those whose weight another kind of
    module has too left out. Returns how many, and what takes it back."""
    layers = [m for m in model.modules() if _can_be_narrow(m)]
    narrowed = set(layers)
    others = {id(p) for m in model.modules() if m not in narrowed for p in m._parameters.values()}
    weights = [(m, m._parameters["weight"]) for m in layers if id(m._parameters["weight"]) not in others]
    made = {}
    with torch.no_grad():
        for _, weight in weights:
            if id(weight) not in made:  # ties stay ties
                made[id(weight)] = quantized(weight.detach())
    for layer, weight in weights:
        _become(layer, *made[id(weight)])
    return len(weights), lambda: [_become_wide(layer, weight) for layer, weight in weights]


def widen(model):
    """Makes such layers linear layers again, whose weights are what the codes stand for. Returns what takes it back."""
    layers = [m for m in model.modules() if type(m) is Float8Linear]
    kept = [(m, m._buffers["weight"], m._buffers["weight_scale"]) for m in layers]
    made = {}
    for layer, codes, _ in kept:
        if id(codes) not in made:
            made[id(codes)] = nn.Parameter(layer.weight.detach())
    for layer, codes, _ in kept:
        _become_wide(layer, made[id(codes)])
    return lambda: [_become(layer, codes, scales) for layer, codes, scales in kept]
