"""torchao: weights in tiles of 4 bits, and products of floats of 8 and 4 bits, for which it asks CUDA's or AMD's newest cards by
name. rdna has the operators that they end in."""

from unittest import mock

import torch

from ._device import is_ours
from ._libraries import replace, takes


def torchao_float8_inference(module):
    def checks(original):
        def _check_hardware_support(granularities):
            try:
                original(granularities)
            except AssertionError:
                if not takes("cpu"):
                    raise

        return _check_hardware_support

    replace(module, "_check_hardware_support", checks)


def torchao_prototype_mx_formats_inference_workflow(module):
    original = module.is_sm_at_least_100
    module.is_sm_at_least_100 = lambda: takes("cpu") or original()


def torchao_quantization_quantize__workflows_int4_int4_tile_packed_to_4d_tensor(module):
    kind = module.Int4TilePackedTo4dTensor
    original = kind.from_hp.__func__

    def from_hp(cls, hp_tensor, *arguments, **named):
        if not is_ours(hp_tensor.device):
            return original(cls, hp_tensor, *arguments, **named)
        # it asks for the least card that has CUDA's kernel, and says nothing of the tensor's
        with mock.patch.object(torch.cuda, "get_device_capability", lambda *device: (8, 0)):
            return original(cls, hp_tensor, *arguments, **named)

    kind.from_hp = classmethod(from_hp)
