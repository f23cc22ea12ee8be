"""Attention of jagged nested tensors: padded, by the attention of dense ones, with what is padding masked.

PyTorch has it by kernels for CUDA that read sequences of any length one behind another, or by nested tensors of the
strided layout, which rdna has not.
"""

import torch
from torch.nn import functional as F

from ._device import is_ours
from ._libraries import replace


class _Rows:
    """Sequences of a jagged tensor (B, heads, *, width), of which values are one behind another: where each begins, its
    length, and where its rows lie in the padded form, which is of (B * longest, heads * width)."""

    def __init__(self, nested):
        offsets = nested.offsets()
        self.lengths = offsets.diff()
        self.batch, self.longest = nested.size(0), nested._get_max_seqlen()
        self.valid = torch.arange(self.longest, device=offsets.device) < self.lengths.unsqueeze(1)
        self.places = self.valid.flatten().nonzero().squeeze(1)

    def padded(self, nested):
        values = nested.transpose(1, 2).values()
        rows = values.new_zeros(self.batch * self.longest, values.shape[1:].numel())
        rows = rows.index_copy(0, self.places, values.flatten(1))
        return rows.view(self.batch, self.longest, *values.shape[1:]).transpose(1, 2)


def _mask(queries, keys, causal):
    """Which keys (B, 1, longest query, longest key) are read, None where a causal attention of itself says it all."""
    if causal and queries is keys:
        return None  # what is padding lies behind every row that counts
    mask = keys.valid.view(keys.batch, 1, 1, keys.longest)
    if causal:
        mask = mask & torch.ones(queries.longest, keys.longest, dtype=torch.bool, device=mask.device).tril()
    return mask


def _attention(module, original):
    def jagged_scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                            enable_gqa=False):
        def plain():
            return original(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale,
                            enable_gqa=enable_gqa)

        tensors = (query, key, value)
        jagged = all(isinstance(t, module.NestedTensor) and t.dim() == 4 and t._ragged_idx == 2 for t in tensors)
        if not jagged or not is_ours(query.device) or attn_mask is not None or any(t.lengths() is not None for t in tensors):
            return plain()
        query, key, value, _ = module._autocast(query, key, value, None)
        module._validate_sdpa_input(query, key, value, None, dropout_p, is_causal, scale)
        queries = _Rows(query)
        keys = queries if query.size(2) == key.size(2) else _Rows(key)
        mask = _mask(queries, keys, is_causal)
        out = F.scaled_dot_product_attention(queries.padded(query), keys.padded(key), keys.padded(value), mask, dropout_p,
                                             mask is None, scale=scale, **({"enable_gqa": True} if enable_gqa else {}))
        rows = out.transpose(1, 2).reshape(queries.batch * queries.longest, -1).index_select(0, queries.places)
        return torch.nested.nested_tensor_from_jagged(
            rows.unflatten(1, (query.size(1), value.size(3))), query.offsets(), min_seqlen=query._maybe_min_seqlen,
            max_seqlen=query._maybe_max_seqlen
        ).transpose(1, 2)

    return jagged_scaled_dot_product_attention


def torch_nested__internal_sdpa(module):
    replace(module, "jagged_scaled_dot_product_attention", lambda original: _attention(module, original))
