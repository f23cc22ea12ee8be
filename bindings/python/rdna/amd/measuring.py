"""What a model takes: its memory, and time and launches of a forward. And how far two results are apart."""

import contextlib
import statistics
import time

import torch
from torch.utils._pytree import tree_flatten, tree_map

from ._plugin import is_ours
from .dataflow import tensors_of

# Of the largest value: above a deep network's rounding, far below what a wrong change does.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-3, torch.float16: 5e-2, torch.bfloat16: 0.2,
              torch.float8_e4m3fn: 0.3}


def memory_of(model):
    """Bytes of the storages of parameters and buffers, each once."""
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors_of(model)
                if t.layout == torch.strided}.values())


def split_inputs(example_inputs):
    """(args, kwargs) of a tensor, a tuple or list of arguments, or a dict of named ones."""
    if isinstance(example_inputs, dict):
        return (), dict(example_inputs)
    return (tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)), {}


class Example:
    """Calls a model with copies of the same inputs, without gradients, and puts back what its forward wrote to buffers."""

    def __init__(self, example_inputs):
        self.args, self.kwargs = split_inputs(example_inputs)
        found = [t for t in tree_flatten((self.args, self.kwargs))[0] if isinstance(t, torch.Tensor)]
        self.on_rdna = any(is_ours(t.device) for t in found)

    @contextlib.contextmanager
    def _call(self, model):
        """Inputs for one call."""
        buffers = [(b, b.clone()) for b in model.buffers()]
        state = torch.rdna.get_rng_state() if self.on_rdna else None
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, (self.args, self.kwargs))
            for buffer, value in buffers:
                with torch.inference_mode(buffer.is_inference()):
                    buffer.copy_(value)
        if state is not None:
            torch.rdna.set_rng_state(state)

    def __call__(self, model):
        with self._call(model) as (args, kwargs):
            return model(*args, **kwargs)

    def wait(self):
        if self.on_rdna:
            torch.rdna.synchronize()

    @property
    def is_timed(self):
        """Whether times are a card's: what is slow on the host or an emulated card may be fast on the one it is for."""
        device = torch.rdna.get_device_properties() if self.on_rdna else None
        return device is not None and device.driver in ("cuda", "hip") and not device.emulated

    def milliseconds(self, model):
        """Of a call among others that are queued one behind the other, as programs make them: the median of some rounds."""
        rounds, calls = (5, 8) if self.is_timed else (3, 1)
        taken = []
        for _ in range(1 + rounds):  # in the first kernels are loaded and graphs recorded
            with self._call(model) as (args, kwargs):
                self.wait()
                start = time.perf_counter()
                for _ in range(calls):
                    model(*args, **kwargs)
                self.wait()
                taken.append((time.perf_counter() - start) / calls)
        return 1e3 * statistics.median(taken[1:])

    def launches(self, model):
        """Kernels and copies that a call queues on the device; None where PyTorch's profiler cannot say."""
        from torch.profiler import ProfilerActivity, profile, supported_activities

        if not self.on_rdna or ProfilerActivity.PrivateUse1 not in supported_activities():
            return None
        self(model)
        with self._call(model) as (args, kwargs):
            self.wait()
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as seen:
                model(*args, **kwargs)
                self.wait()
        return sum(e.device_type == torch.autograd.DeviceType.PrivateUse1 for e in seen.events())


def difference(mine, theirs, types=()):
    """(largest difference of two results' tensors relative to the largest value, whether that is rounding, of values that
    were of |types| in between)."""
    a, b = tree_flatten(mine)[0], tree_flatten(theirs)[0]
    if len(a) != len(b):
        return float("inf"), False
    worst, right = 0.0, True
    for x, y in zip(a, b):
        if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
            continue
        if x.shape != y.shape:
            return float("inf"), False
        tolerance = max(_TOLERANCE.get(dtype, 0.0) for dtype in (x.dtype, y.dtype, *types))
        x, y = x.detach().cpu(), y.detach().cpu()
        if not x.is_floating_point():
            right = right and torch.equal(x, y)
            continue
        x, y = x.double(), y.double()
        finite = y.isfinite()
        if not torch.equal(finite, x.isfinite()):
            return float("inf"), False
        if finite.any():
            apart = ((x - y)[finite].abs().max() / y[finite].abs().max().clamp_min(1e-30)).item()
            worst, right = max(worst, apart), right and apart <= tolerance
    return worst, right
