"""scaled_dot_product_attention in librdna's kernel, against the CPU in float64."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import profile

TOLERANCE = {torch.float32: 4e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def operators(f):
    with profile() as taken:
        f()
    return {event.name for event in taken.events()}


def inputs(dtype, batch, heads, kv_heads, queries, keys, width, value_width):
    return (torch.randn(batch, queries, heads, width).transpose(1, 2).to(dtype),
            torch.randn(batch, kv_heads, keys, width).to(dtype), torch.randn(batch, kv_heads, keys, value_width).to(dtype))


def a_mask(kind, dtype, batch, heads, queries, keys):
    if kind == "bool":
        mask = torch.rand(queries, keys) > 0.3
        mask[0] = False  # a query that sees nothing gives zeros
        return mask
    shape = {"full": (batch, heads, queries, keys), "row": (batch, 1, 1, keys), "none": None}[kind]
    return shape and torch.randn(shape).to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(2, 4, 4, 7, 7, 16, 16), (1, 4, 2, 33, 33, 64, 64), (2, 2, 2, 5, 9, 8, 24),
                                   (1, 8, 1, 17, 40, 80, 80), (2, 3, 3, 1, 50, 36, 36)])
@pytest.mark.parametrize("kind, causal", [("none", False), ("none", True), ("bool", False), ("full", False),
                                          ("row", False)])
def test_results_are_those_of_float64(dtype, shape, kind, causal):
    torch.manual_seed(0)
    batch, heads, kv_heads, queries, keys = shape[:5]
    q, k, v = inputs(dtype, *shape)
    mask = a_mask(kind, dtype, batch, heads, queries, keys)
    wide = mask.double() if mask is not None and mask.dtype != torch.bool else mask
    expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=wide, is_causal=causal,
                                              enable_gqa=heads != kv_heads)
    found = F.scaled_dot_product_attention(q.to("rdna"), k.to("rdna"), v.to("rdna"), is_causal=causal,
                                           attn_mask=None if mask is None else mask.to("rdna"),
                                           enable_gqa=heads != kv_heads)
    assert found.dtype == dtype
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=TOLERANCE[dtype])


def test_which_kernel_is_taken():
    x = torch.randn(2, 4, 8, 16, device="rdna")
    fused, math = "aten::_scaled_dot_product_fused_attention_overrideable", "aten::_scaled_dot_product_attention_math"
    assert fused in operators(lambda: F.scaled_dot_product_attention(x, x, x))
    with sdpa_kernel(SDPBackend.MATH):
        assert math in operators(lambda: F.scaled_dot_product_attention(x, x, x))
    wide = torch.randn(1, 1, 4, 300, device="rdna")
    assert math in operators(lambda: F.scaled_dot_product_attention(wide, wide, wide))
    mask = torch.zeros(8, 8, device="rdna", requires_grad=True)
    assert math in operators(lambda: F.scaled_dot_product_attention(x, x, x, attn_mask=mask))


def test_dropout_keeps_the_mean_and_follows_the_seed():
    q, k, v = torch.zeros(1, 2, 64, 8, device="rdna"), torch.zeros(1, 2, 512, 8, device="rdna"), torch.ones(1, 2, 512, 8, device="rdna")
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(F.scaled_dot_product_attention(q, k, v, dropout_p=0.25).cpu())
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])
    assert abs(results[0].mean().item() - 1) < 0.02 and results[0].std() > 1e-3
