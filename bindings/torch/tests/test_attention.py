"""scaled_dot_product_attention in librdna's kernel, against the CPU in float64."""

import math
import warnings

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


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape, kind, causal", [
    ((2, 4, 4, 7, 7, 16, 16), "none", True), ((1, 4, 2, 33, 33, 64, 64), "full", False),
    ((2, 2, 2, 5, 9, 8, 24), "row", False), ((1, 8, 1, 17, 40, 80, 80), "bool", False)])
def test_gradients_are_those_of_float64(dtype, shape, kind, causal):
    torch.manual_seed(1)
    batch, heads, kv_heads, queries, keys = shape[:5]
    inputs_ = inputs(dtype, *shape)
    mask = a_mask(kind, dtype, batch, heads, queries, keys)
    pull = torch.randn(batch, heads, queries, shape[6]).to(dtype)

    def gradients(place, type_):
        leaves = [t.to(place, type_).requires_grad_() for t in inputs_]
        there = mask if mask is None or mask.dtype == torch.bool else mask.to(type_)
        y = F.scaled_dot_product_attention(*leaves, attn_mask=None if there is None else there.to(place),
                                           is_causal=causal, enable_gqa=heads != kv_heads)
        return torch.autograd.grad(y, leaves, pull.to(place, type_))

    names = operators(lambda: gradients("rdna", dtype))
    assert "aten::_scaled_dot_product_fused_attention_overrideable_backward" in names
    for found, expected in zip(gradients("rdna", dtype), gradients("cpu", torch.float64)):
        scale = expected.abs().max().item()
        torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=2 * TOLERANCE[dtype] * max(1, scale))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("mask_shape", [(2, 4, 33, 70), (4, 33, 70), (1, 4, 33, 70), (33, 70), (2, 1, 1, 70), (70,),
                                        (2, 1, 33, 1), (1,)])
def test_the_gradient_of_a_mask_is_that_of_float64(dtype, mask_shape):
    torch.manual_seed(3)
    inputs_ = inputs(dtype, 2, 4, 4, 33, 70, 24, 16)
    mask = torch.randn(mask_shape).to(dtype)
    if mask.shape[-1] > 1:
        mask[..., ::5] = -torch.inf
    pull = torch.randn(2, 4, 33, 16).to(dtype)

    def gradient(place, type_, shape=mask_shape):
        q, k, v = (t.to(place, type_) for t in inputs_)
        leaf = mask.to(place, type_).expand(shape).clone().requires_grad_()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=leaf)
        return torch.autograd.grad(y, leaf, pull.to(place, type_))[0]

    names = operators(lambda: gradient("rdna", dtype))
    assert "aten::_scaled_dot_product_fused_attention_overrideable_backward" in names
    found, expected = gradient("rdna", dtype), gradient("cpu", torch.float64)
    assert found.shape == mask.shape and found.dtype == dtype
    # A value's gradient is the sum of those of all places that share it, each of which is off by a few roundings.
    each = gradient("cpu", torch.float64, (2, 4, 33, 70))
    shared = each.square().sum_to_size(mask_shape).sqrt().max().item()
    atol = (8 if dtype == torch.float32 else 2) * torch.finfo(dtype).eps * shared
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=atol)
    if mask_shape[-1] > 1:  # otherwise it is zero: the keys' shares of a query cancel
        assert expected.abs().max() > 20 * atol
    else:
        assert each.abs().sum_to_size(mask_shape).max() > 20 * atol


def test_gradients_with_dropout_see_what_was_kept():
    """The result is linear in v: its gradient times v is the result's sum."""
    torch.manual_seed(2)
    q, k, v = (t.to("rdna") for t in inputs(torch.float32, 2, 2, 2, 9, 33, 16, 16))
    v.requires_grad_()
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    (dv,) = torch.autograd.grad(y.sum(), v)
    torch.testing.assert_close((dv * v).sum(), y.sum(), rtol=1e-4, atol=1e-3)


def test_which_kernel_is_taken():
    x = torch.randn(2, 4, 8, 16, device="rdna")
    fused, math = "aten::_scaled_dot_product_fused_attention_overrideable", "aten::_scaled_dot_product_attention_math"
    assert fused in operators(lambda: F.scaled_dot_product_attention(x, x, x))
    with sdpa_kernel(SDPBackend.MATH):
        assert math in operators(lambda: F.scaled_dot_product_attention(x, x, x))
    wide = torch.randn(1, 1, 4, 300, device="rdna")
    assert math in operators(lambda: F.scaled_dot_product_attention(wide, wide, wide))
    mask = torch.zeros(8, 8, device="rdna", requires_grad=True)
    assert fused in operators(lambda: F.scaled_dot_product_attention(x, x, x, attn_mask=mask))


def test_dropout_keeps_the_mean_and_follows_the_seed():
    q, k, v = torch.zeros(1, 2, 64, 8, device="rdna"), torch.zeros(1, 2, 512, 8, device="rdna"), torch.ones(1, 2, 512, 8, device="rdna")
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(F.scaled_dot_product_attention(q, k, v, dropout_p=0.25).cpu())
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])
    assert abs(results[0].mean().item() - 1) < 0.02 and results[0].std() > 1e-3


def attention_of_one(q, k, v, mask, causal):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)


@pytest.mark.parametrize("dims, kind, causal", [
    ((0, 0, 0, None), "none", True), ((0, 0, 0, 0), "float", False), ((0, None, None, None), "bool", False),
    ((None, None, None, 0), "float", False), ((1, 0, 2, None), "none", False)])
@pytest.mark.parametrize("batch", [(), (3,)], ids=["heads", "batch and heads"])
def test_vmap_of_attention(dims, kind, causal, batch):
    """Values and the gradients of each sample, as the CPU's in float64; nothing falls back."""
    torch.manual_seed(4)
    shapes = ((*batch, 2, 5, 8), (*batch, 2, 6, 8), (*batch, 2, 6, 4), (5, 6))
    given = [torch.randn(shape, dtype=torch.float64) if dim is None
             else torch.randn((4, *shape), dtype=torch.float64).movedim(0, dim) for dim, shape in zip(dims, shapes)]
    given[3] = {"none": None, "float": given[3], "bool": given[3] > -1}[kind]
    if kind == "bool":
        given[3][:, 0] = True

    def loss(*t):
        return attention_of_one(*t, causal).square().sum()

    def both(device, dtype):
        t = [x if x is None else x.to(device, None if x.dtype == torch.bool else dtype) for x in given]
        which = tuple(i for i in range(4) if t[i] is not None and t[i].is_floating_point())
        values = torch.vmap(lambda *t: attention_of_one(*t, causal), in_dims=dims)(*t)
        return values, torch.vmap(torch.func.grad(loss, argnums=which), in_dims=dims)(*t)

    torch.rdna.reset_fallback_report()
    values, gradients = both("rdna", torch.float32)
    assert torch.rdna.fallback_report() == {}
    expected, theirs = both("cpu", torch.float64)
    for found, right in zip((values, *gradients), (expected, *theirs), strict=True):
        scale = max(1, right.abs().max().item())
        torch.testing.assert_close(found.cpu().double(), right, rtol=0, atol=2 * TOLERANCE[torch.float32] * scale)


def test_other_transforms_of_attention():
    """Gradients of a whole batch, of a batch in a gradient, forward derivatives and second ones."""
    torch.manual_seed(5)
    given = [torch.randn(2, 2, 3, 4, dtype=torch.float64) for _ in range(3)]
    loss = lambda *t: F.scaled_dot_product_attention(*t).square().sum()  # noqa: E731
    transforms = (
        lambda *t: torch.func.grad(loss)(*t),
        lambda *t: torch.func.grad(lambda *t: torch.vmap(loss)(*t).sum())(*t),
        lambda *t: torch.func.jvp(loss, t, t[::-1])[1],
        lambda *t: torch.func.hessian(loss)(*(x[:1, :1] for x in t)),
        lambda *t: torch.func.jacrev(F.scaled_dot_product_attention)(*(x[:1, :1] for x in t)),
    )
    with sdpa_kernel(SDPBackend.MATH):
        expected = [f(*given) for f in transforms]
    for f, right in zip(transforms, expected):
        found = f(*(t.to("rdna", torch.float32) for t in given))
        torch.testing.assert_close(found.cpu().double(), right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-6), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("key_lengths", [(3, 7, 1, 5), (4, 2, 6, 5)])
def test_jagged_sequences(dtype, tolerance, causal, key_lengths, nothing_falls_back):
    """Each sequence beside float64's attention of it alone, with gradients."""
    lengths, heads, width = (3, 7, 1, 5), 4, 8

    def sequences(of):
        return [torch.randn(n, heads, width).to(dtype).to("rdna").requires_grad_() for n in of]

    queries, keys, values = sequences(lengths), sequences(key_lengths), sequences(key_lengths)
    q = torch.nested.as_nested_tensor(queries, layout=torch.jagged)
    # tensors of one length are those that share offsets
    k = torch.nested.nested_tensor_from_jagged(torch.cat(keys), q.offsets() if key_lengths == lengths else
                                               torch.nested.as_nested_tensor(keys, layout=torch.jagged).offsets())
    v = torch.nested.nested_tensor_from_jagged(torch.cat(values), k.offsets())
    out = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=causal)
    rows = out.transpose(1, 2).unbind()
    weights = [torch.randn(r.shape) for r in rows]
    sum((r.float() * w.to("rdna")).sum() for r, w in zip(rows, weights)).backward()
    assert out.dtype == dtype and [len(r) for r in rows] == list(lengths)
    for row, weight, *mine in zip(rows, weights, queries, keys, values):
        exact = [t.detach().double().cpu().requires_grad_() for t in mine]
        expected = F.scaled_dot_product_attention(*(t.transpose(0, 1) for t in exact), is_causal=causal).transpose(0, 1)
        (expected * weight).sum().backward()
        for a, b in ((row, expected), *((m.grad, e.grad) for m, e in zip(mine, exact))):
            torch.testing.assert_close(a.detach().cpu().double(), b.detach(), rtol=tolerance, atol=tolerance)


def test_flex_attention(nothing_falls_back):
    """Scores that a function changes, and a mask of blocks, plain and compiled, beside float64."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def nearer(score, b, h, i, j):
        return score - 0.1 * (i - j).abs()

    def behind(b, h, i, j):
        return i >= j

    tensors = [torch.randn(2, 3, 40, 16) for _ in range(3)]
    exact = [t.double().requires_grad_() for t in tensors]
    i = torch.arange(40)
    scores = exact[0] @ exact[1].mT / 4 - 0.1 * (i[:, None] - i).abs()
    expected = scores.masked_fill(i[:, None] < i, -math.inf).softmax(-1) @ exact[2]
    expected.square().sum().backward()
    mask = create_block_mask(behind, None, None, 40, 40, device="rdna")
    for attention in (flex_attention, torch.compile(flex_attention)):
        torch._dynamo.reset()
        mine = [t.to("rdna").requires_grad_() for t in tensors]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is not compiled
            out = attention(*mine, score_mod=nearer, block_mask=mask)
        out.square().sum().backward()
        torch.testing.assert_close(out.detach().cpu().double(), expected.detach(), rtol=2e-6, atol=2e-6)
        for m, e in zip(mine, exact):
            torch.testing.assert_close(m.grad.cpu().double(), e.grad, rtol=2e-5, atol=2e-5)
