"""accelerate: its default device, memory of devices for device_map="auto", and mixed precision in f16."""

import os

import torch

from ._device import is_ours
from ._libraries import replace, takes


def accelerate_state(module):
    state = module.PartialState
    default, prepare = state.default_device.fget, state._prepare_backend

    def default_device(self):
        device = default(self)
        return torch.device("rdna") if takes(device) else device

    def _prepare_backend(self, cpu=False, *arguments, **named):
        backend, kind = prepare(self, cpu, *arguments, **named)
        alone = kind == module.DistributedType.NO
        started = "LOCAL_RANK" in os.environ and int(os.environ.get("WORLD_SIZE", 1)) > 1
        if alone and started and not cpu and takes("cpu"):
            # Each process would train a model of its own, without a word.
            raise NotImplementedError(
                "accelerate was started with several processes, for which it does not know device 'rdna'; use "
                "torch.distributed, whose backend is 'rdna', or one process"
            )
        return backend, kind

    state.default_device = property(default_device, doc=state.default_device.__doc__)
    state._prepare_backend = _prepare_backend


def accelerate_utils_modeling(module):
    def memory(original):
        def get_max_memory(max_memory=None):
            found = original(max_memory)
            if max_memory is not None or not takes("cpu") or any(isinstance(key, int) for key in found):
                return found
            devices = range(torch.rdna.device_count())
            return {**{i: torch.rdna.mem_get_info(i)[0] for i in devices}, **found}

        return get_max_memory

    def scaler(original):
        def get_grad_scaler(distributed_type=None, **named):
            from accelerate.state import PartialState

            if is_ours(PartialState().device) and distributed_type != "FSDP":
                return torch.amp.GradScaler("rdna", **named)
            return original(distributed_type, **named)

        return get_grad_scaler

    replace(module, "get_max_memory", memory)
    replace(module, "get_grad_scaler", scaler)


def accelerate_accelerator(module):
    # The devices that can do f16 are a constant inside of __init__, so that it is the constant that gets one more.
    function = module.Accelerator.__init__
    constants = [
        (*value, "rdna") if isinstance(value, tuple) and {"cuda", "xpu", "npu"} <= set(value) else value
        for value in function.__code__.co_consts
    ]
    if constants == list(function.__code__.co_consts):
        raise LookupError("the list of devices with f16 was not found in Accelerator.__init__")
    function.__code__ = function.__code__.replace(co_consts=tuple(constants))
