"""torch.nn.attention.flex_attention: its plain form runs on any device, with gradients; a check of names keeps others out."""

from ._device import is_ours
from ._libraries import replace


def torch_nn_attention_flex_attention(module):
    def check(original):
        def validate_device(query, key, value):
            if not is_ours(query.device):
                original(query, key, value)

        return validate_device

    replace(module, "_validate_device", check)
