"""transformers: Trainer's device, and whether there is a GPU that computes in bf16, which Trainer(bf16=True) asks."""

from functools import cached_property

import torch

from ._device import is_ours
from ._libraries import replace, takes


def transformers_utils_import_utils(module):
    def available(original):
        def is_torch_bf16_gpu_available():
            return original() or takes("cpu")

        return is_torch_bf16_gpu_available

    replace(module, "is_torch_bf16_gpu_available", available)


def transformers_training_args(module):
    setup = module.TrainingArguments._setup_devices.func

    def _setup_devices(self):
        device = setup(self)
        # accelerate's choice knows use_cpu=True and its variables; of those alone comes another device than the CPU.
        if self.distributed_state is None or not is_ours(self.distributed_state.device) or not takes(device):
            return device
        self._n_gpu = 1
        return torch.device("rdna", torch.rdna.current_device())

    module.TrainingArguments._setup_devices = cached_property(_setup_devices)
    module.TrainingArguments._setup_devices.__set_name__(module.TrainingArguments, "_setup_devices")
