"""A module that computes in another type than its callers have: hooks around its forward, which copies of the module and
files of it keep."""

import threading

import torch
from torch.utils import _pytree as pytree

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def type_beside(config):
    """The type of config.default_precision; of "fp8", in which only products are, that of all else: bf16 where it is
    allowed."""
    if config.default_precision != "fp8":
        return TYPES[config.default_precision]
    return torch.bfloat16 if config.allow_bf16 else torch.float16 if config.allow_fp16 else torch.float32

_calls = threading.local()  # what a forward that is under way has to give back, per thread


class _Precision:
    def __init__(self, dtype, mixed):
        self.dtype, self.mixed = dtype, mixed

    # Dynamo, which would take the two for pieces of one graph, calls them as they are: autocast begins in one of them and
    # ends in the other.
    @torch._disable_dynamo
    def before(self, module, args, kwargs):
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if _is_floating(t)]
        wanted = tensors[0].dtype if tensors else torch.float32
        context = None
        if self.mixed:
            place = next((t for t in (*module.parameters(), *tensors)), None)
            context = torch.autocast("cpu" if place is None else place.device.type, dtype=self.dtype)
            context.__enter__()
        else:
            args, kwargs = pytree.tree_map(lambda t: t.to(self.dtype) if _is_floating(t) else t, (args, kwargs))
        if not hasattr(_calls, "stack"):
            _calls.stack = []
        _calls.stack.append((self, context, wanted))
        return args, kwargs

    @torch._disable_dynamo
    def after(self, module, args, kwargs, result):
        stack = getattr(_calls, "stack", None)
        if not stack or stack[-1][0] is not self:  # the forward failed before it came to before()
            return result
        _, context, wanted = stack.pop()
        if context is not None:
            context.__exit__(None, None, None)
        return pytree.tree_map(lambda t: t.to(wanted) if _is_floating(t) and t.dtype == self.dtype else t, result)


def _is_floating(t):
    return isinstance(t, torch.Tensor) and t.is_floating_point()


def _remove(module):
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for number, hook in list(hooks.items()):
            if isinstance(getattr(hook, "__self__", None), _Precision):
                for kept in (hooks, module._forward_pre_hooks_with_kwargs, module._forward_hooks_with_kwargs,
                             module._forward_hooks_always_called):
                    kept.pop(number, None)


def set_precision(module, dtype, mixed):
    """From now on |module| computes in |dtype| and returns the type that it was given: under autocast where |mixed|, else
    by casting what it is given, its parameters being of |dtype| already. float32 undoes that."""
    _remove(module)
    if dtype != torch.float32:
        precision = _Precision(dtype, mixed)
        module.register_forward_pre_hook(precision.before, prepend=True, with_kwargs=True)
        module.register_forward_hook(precision.after, with_kwargs=True, always_call=True)
