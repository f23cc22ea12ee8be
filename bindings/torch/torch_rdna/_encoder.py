"""nn.TransformerEncoder with a padding mask in inference. Where PyTorch would make a nested tensor of the rows that are
not padding, which rdna has none of, its layers see the mask instead; their results for padding are put right here: zeros,
or what the last norm makes of zeros."""

import functools

import torch
from torch import nn


def _would_nest(encoder, src, mask, padding):
    """What nn.TransformerEncoder.forward asks, but for whether the padding is behind the other rows."""
    first = encoder.layers[0]
    if torch.compiler.is_compiling() or not torch.backends.mha.get_fastpath_enabled() or src.dim() != 3:
        return False
    if not getattr(encoder, "use_nested_tensor", False) or first.training or padding is None or mask is not None:
        return False
    if torch.is_autocast_enabled(src.device.type):
        return False
    attention = first.self_attn
    parameters = (src, attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias,
                  first.norm1.weight, first.norm1.bias, first.norm2.weight, first.norm2.bias, first.linear1.weight,
                  first.linear1.bias, first.linear2.weight, first.linear2.bias)
    return not (torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in parameters))


def register():
    forward = nn.TransformerEncoder.forward

    @functools.wraps(forward)
    def with_padding(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        out = forward(self, src, mask, src_key_padding_mask, is_causal)
        if out.device.type != "rdna" or not _would_nest(self, src, mask, src_key_padding_mask):
            return out
        hidden = src_key_padding_mask.bool()
        hidden = (hidden & (hidden[:, 1:] >= hidden[:, :-1]).all()).unsqueeze(-1)  # on the device: nobody waits
        rest = out.new_zeros(out.size(-1))
        return torch.where(hidden, rest if self.norm is None else self.norm(rest), out)

    nn.TransformerEncoder.forward = with_padding
