"""safetensors: load_file(device="rdna"), whose library reads the names of devices that it knows alone."""

import torch

from ._device import is_ours
from ._libraries import replace


def safetensors_torch(module):
    def load(original):
        def load_file(filename, device="cpu", **named):
            to = torch.device(device)  # a number is one of the accelerator's
            if not is_ours(to) or not torch.rdna.is_available():
                return original(filename, device=device, **named)
            return {name: tensor.to(to) for name, tensor in original(filename, device="cpu", **named).items()}

        return load_file

    replace(module, "load_file", load)
