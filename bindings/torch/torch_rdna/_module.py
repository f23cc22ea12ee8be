"""Parameters that modules share stay shared when the modules move.

nn.Module.to gives a tensor other memory where both are of devices that PyTorch holds to be alike, and makes a new
Parameter elsewhere, rdna included: without this, GPT-2's embedding and its last layer would part without a word."""

import threading

import torch

_moving = threading.local()
_apply_alone = torch.nn.Module._apply


def _shared(module):
    places = {}
    for m in module.modules():
        for name, parameter in m._parameters.items():
            if parameter is not None:
                places.setdefault(id(parameter), []).append((m, name))
    return [group for group in places.values() if len(group) > 1]


def _apply(self, *args, **kwargs):
    if getattr(_moving, "on", False):  # a module within the one that is moved
        return _apply_alone(self, *args, **kwargs)
    groups = _shared(self)
    _moving.on = True
    try:
        result = _apply_alone(self, *args, **kwargs)
    finally:
        _moving.on = False
    for (first, name), *others in groups:
        for module, other in others:
            if module._parameters[other] is not first._parameters[name]:
                module._parameters[other] = first._parameters[name]
    return result


def keep_shared_parameters():
    torch.nn.Module._apply = _apply
