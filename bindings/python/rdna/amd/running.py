"""What a call of an optimized model goes through: torch.compile with our backend, or forward() itself where Dynamo cannot
follow it; under autocast in training. And hooks that bring a model's inputs into the precision or layout of its weights."""

import contextlib
import warnings
from collections import Counter

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map

from . import _float8, patterns


class Cast:
    """Hooks of a model whose weights are narrower than what its callers have: inputs to the weights' type, results back."""

    def __init__(self, wide, narrow):
        self.wide, self.narrow = wide, narrow

    def before(self, module, args, kwargs):
        return tree_map(lambda v: self._to(v, self.wide, self.narrow), (args, kwargs))

    def after(self, module, args, result):
        return tree_map(lambda v: self._to(v, self.narrow, self.wide), result)

    @staticmethod
    def _to(value, old, new):
        return value.to(new) if isinstance(value, torch.Tensor) and value.dtype == old else value


class ChannelsLast:
    """A hook that gives a convolutional network its images with channels last, as all it computes then is."""

    def before(self, module, args, kwargs):
        return tree_map(self._to, (args, kwargs))

    @staticmethod
    def _to(value):
        if isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point():
            return value.contiguous(memory_format=torch.channels_last)
        return value


class Running:
    """Is called in the place of model(…)."""

    def __init__(self, model, compiles=True, packs=False, autocast=None):
        self.forward = model._call_impl
        self.packs, self.autocast = packs, autocast
        self.counts, self.breaks, self.reason = Counter(), [], None
        # a function of ours around the method: Dynamo would not begin with those of nn.Sequential and its like
        self.compiled = torch.compile(lambda *a, **k: self.forward(*a, **k), backend=self._backend) if compiles else None
        self._packed = {}

    def __call__(self, *args, **kwargs):
        with self._precision(args, kwargs):
            if self.compiled is None:
                return self.forward(*args, **kwargs)
            try:
                return self.compiled(*args, **kwargs)
            except torch._dynamo.exc.TorchDynamoException as error:
                self.compiled, self.reason = None, _first_line(error)
        warnings.warn(f"torch.compile cannot follow this model, which runs without it: {self.reason}", stacklevel=2)
        return self(*args, **kwargs)

    def _precision(self, args, kwargs):
        if self.autocast is None:
            return contextlib.nullcontext()
        kinds = {v.device.type for v in tree_flatten((args, kwargs))[0] if isinstance(v, torch.Tensor)}
        return torch.autocast("rdna" if "rdna" in kinds or not kinds else min(kinds), self.autocast)

    def _backend(self, gm, example_inputs):
        from torch_rdna import _compile

        attention = patterns.drop_attention_weights(gm.graph) + patterns.find_attention(gm.graph)
        without_copies = patterns.copy_no_attention(gm.graph)
        packed = 0
        if self.packs and not torch.is_grad_enabled():
            packed = patterns.pack_layers(gm, example_inputs, self._packed)
        if attention or without_copies or packed:
            gm.graph.lint()
            gm.recompile()
        before = _compile.compile_report()["fused"]
        # what is recorded is replayed with one call
        run = _compile.backend(gm, example_inputs, mode="reduce-overhead" if self.packs and not torch.is_grad_enabled() else None)
        if packed:
            run = patterns.with_packed(run, self._packed, example_inputs)
        after = _compile.compile_report()["fused"]
        self.counts.update({"attention": attention, "attention without copies": without_copies, "packed layers": packed})
        self.counts.update({name: n - before.get(name, 0) for name, n in after.items()})
        return run


def _first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    if text.endswith("raised:") and len(lines) > 1:  # Dynamo's words for an error of the backend, which comes next
        text = lines[1]
    return f"{type(error).__name__}: {text}"


def graph_breaks():
    """Reasons for which Dynamo has split models so far, and how often."""
    return Counter(torch._dynamo.utils.counters["graph_break"])


def narrow_weights(model, dtype):
    """Every floating parameter and buffer in |dtype|, but for batch norms, which compute with f32 ones. Returns how many
    tensors became narrower."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    made, count = {}, 0
    for module in model.modules():
        if isinstance(module, norms):
            continue
        narrower = isinstance(module, _float8.Float8Linear)  # than |dtype|, with scales that are to stay exact
        for group in (module._parameters,) if narrower else (module._parameters, module._buffers):
            for name, t in group.items():
                if t is None or t.dtype != torch.float32:
                    continue
                if id(t) not in made:  # ties stay ties
                    made[id(t)] = t.detach().to(dtype)
                    if isinstance(t, nn.Parameter):
                        made[id(t)] = nn.Parameter(made[id(t)], requires_grad=t.requires_grad)
                    count += 1
                group[name] = made[id(t)]
    return count


def weights_channels_last(model, layout=torch.channels_last):
    """The weights of 2-d convolutions with channels last, or in another layout; how many."""
    count = 0
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and type(module).__module__.startswith(("torch.nn", "rdna.amd")):
            weight = module._parameters.get("weight")
            if weight is not None and weight.dim() == 4:
                weight.data = weight.data.contiguous(memory_format=layout)
                count += 1
    return count
