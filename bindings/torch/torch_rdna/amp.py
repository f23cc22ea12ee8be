"""torch.rdna.amp: mixed precision by the names that torch.cuda.amp has. torch.amp has the same with the device's name."""

import functools

import torch


class autocast(torch.amp.autocast):
    def __init__(self, enabled=True, dtype=torch.float16, cache_enabled=True):
        super().__init__("rdna", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    @functools.wraps(torch.amp.GradScaler.__init__)
    def __init__(self, *arguments, **named):
        super().__init__("rdna", *arguments, **named)


def custom_fwd(fwd=None, *, cast_inputs=None):
    return torch.amp.custom_fwd(fwd, device_type="rdna", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    return torch.amp.custom_bwd(bwd, device_type="rdna")
