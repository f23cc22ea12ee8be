"""Tiny random models of transformers in float64, and the same models as GGUF files.

A row (see architecture_rows.py) says which class of transformers, with which configuration, and under which names and
keys GGUF has it. Here the weights are drawn, the logits computed and the file written.

transformers rounds to float32 inside a float64 model too (norms, angles, softmax), which InFloat64 undoes.
"""
import contextlib
import re

import numpy as np
import torch
import transformers
from torch.overrides import TorchFunctionMode

import gguf_file as gf

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)  # these matrices are too small for more


class InFloat64(TorchFunctionMode):
    """Whatever asks for float32 gets float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def wide(value):
            return torch.float64 if value is torch.float32 else value

        if func is torch.Tensor.float:
            func = torch.Tensor.double
        kwargs = {name: wide(value) for name, value in (kwargs or {}).items()}
        return func(*(wide(value) for value in args), **kwargs)


def merged(base, changes):
    """|base| with |changes|, where a dict changes entries of the dict that stands there."""
    result = dict(base)
    for name, value in changes.items():
        old = result.get(name)
        result[name] = merged(old, value) if isinstance(value, dict) and isinstance(old, dict) else value
    return result


def deviation_of(row, name, shape):
    """How far the values of a weight are from their mean; that is 1 for a norm's."""
    for pattern, deviation in row.deviations.items():
        if re.search(pattern, name):
            return deviation
    if "norm" in name:
        return 0.2
    if name.endswith("bias"):
        return 0.3
    if name.endswith("embed_tokens.weight"):
        return 1.0
    return 1.2 * shape[-1] ** -0.5


def draw(row, shapes, rng):
    """Weights by transformers' names, float64 with values that float32 has."""
    weights = {}
    for name, shape in shapes.items():
        if (drawn := row.draw(name, shape, rng)) is not None:
            weights[name] = drawn
            continue
        norm = "norm" in name and name.endswith("weight")
        values = (float(norm) + rng.normal(0, deviation_of(row, name, shape), shape)).astype(np.float32)
        weights[name] = values.astype(np.float64)
        if norm and row.norm_is_offset(name):  # the file has 1 + w: that is what must be a float32
            weights[name] -= 1
    return weights


class Model:
    def __init__(self, row, seed):
        self.row = row
        empty = self.network({}, torch.float64)
        shapes, seen = {}, set()
        for name, value in empty.state_dict().items():
            if value.data_ptr() not in seen:  # tied matrices stand there twice
                shapes[name] = tuple(value.shape)
            seen.add(value.data_ptr())
        self.weights = draw(row, shapes, np.random.default_rng(seed))
        self.config = empty.config
        self.networks = {}

    def network(self, changes, dtype):
        """The network with this row's configuration and |changes|, with the weights when there are any."""
        maker = getattr(transformers, self.row.model)
        torch.set_default_dtype(dtype)
        try:
            with self.mode(dtype):
                config = maker.config_class(**merged(self.row.config, changes), attn_implementation="eager",
                                             experts_implementation="eager")
                network = maker(config).eval()
            if getattr(self, "weights", None):
                state = {name: torch.from_numpy(value).to(dtype) for name, value in self.weights.items()}
                missing, unexpected = network.load_state_dict(state, strict=False)
                assert not unexpected and all(name == "lm_head.weight" for name in missing), (missing, unexpected)
                network.tie_weights()
        finally:
            torch.set_default_dtype(torch.float32)
        return network

    @staticmethod
    def mode(dtype):
        return InFloat64() if dtype == torch.float64 else torch.no_grad()

    def logits(self, tokens, changes=None, dtype=torch.float64, skip=None):
        """float64. |skip|: the number of a layer to leave out."""
        changes = changes or {}
        network = self.networks.get((str(changes), dtype)) or self.network(changes, dtype)
        self.networks[str(changes), dtype] = network
        with torch.no_grad(), self.mode(dtype), contextlib.ExitStack() as stack:
            if skip is not None:
                layer = network.get_submodule(self.row.layers)[skip]
                stack.callback(layer.register_forward_hook(self.unchanged, with_kwargs=True).remove)
            logits = network(torch.tensor([tokens]), use_cache=False).logits[0]
        assert logits.dtype == dtype
        return logits.double().numpy()

    def disturbed_logits(self, tokens, name, rng):
        """float64, with one weight multiplied by random factors about 1."""
        weight = self.networks[str({}), torch.float64].state_dict()[name]
        weight *= torch.from_numpy(rng.normal(1, 0.5, weight.shape))
        logits = self.logits(tokens)
        weight.copy_(torch.from_numpy(self.weights[name]))
        return logits

    @staticmethod
    def unchanged(layer, args, kwargs, output):
        given = args[0] if args else kwargs["hidden_states"]
        return (given, *output[1:]) if isinstance(output, tuple) else given

    def write(self, path):
        """The GGUF file that llama.cpp's converter would write, as to names, keys and what is folded into weights."""
        row, tensors = self.row, []
        for name, array in self.weights.items():
            for entry in row.tensors(name, array, self.config):
                tensors.append((entry[0], entry[2] if len(entry) > 2 else gf.TENSOR_F32, entry[1]))
        entries = [("general.architecture", gf.TEXT, row.architecture)]
        for key, value in row.keys(self.config).items():
            if key not in row.without:
                entries.append((f"{row.architecture}.{key}", *gf.typed(value)))
        gf.write(path, entries, tensors + row.extra_tensors(self.config))
