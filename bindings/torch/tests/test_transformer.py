"""torch.nn's whole layers in inference, which ask for one operator of the layer: as on the CPU, and on the device."""

import copy
import warnings

import pytest
import torch
from torch import nn

BATCH, ROWS, WIDTH, HEADS = 3, 7, 32, 4
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-12, torch.float16: 4e-3, torch.bfloat16: 3e-2}


pytestmark = pytest.mark.usefixtures("nothing_falls_back")


def masks(kind):
    padding = torch.zeros(BATCH, ROWS, dtype=torch.bool)
    padding[0, 5:] = padding[2, 3:] = True
    causal = torch.ones(ROWS, ROWS, dtype=torch.bool).triu(1)
    each = torch.rand(BATCH * HEADS, ROWS, ROWS) > 0.6
    each[:, :, 0] = False
    found = {"none": (None, None), "padding": (None, padding), "causal": (causal, None), "both": (causal, padding),
             "each head": (each, None), "numbers": (causal.float() * -2, padding.float() * -1)}
    return found[kind]


def moved(mask, device, dtype):
    return None if mask is None else mask.to(device, dtype if mask.is_floating_point() else torch.bool)


def compare(model, call, dtype=torch.float32, operator=None):
    """|call|(model, device) on rdna beside the CPU's in float64, and whether |operator| ran there."""
    model = model.eval()
    mine = copy.deepcopy(model).to("rdna", dtype)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of masks' types, and of layers that cannot use nested tensors
        expected = call(copy.deepcopy(model).double(), "cpu", torch.float64)
        with torch.profiler.profile() as seen:
            found = call(mine, "rdna", dtype)
    if operator:
        assert operator in {event.name for event in seen.events()}
    for f, e in zip(found, expected, strict=True):
        assert (f is None) == (e is None)
        if e is not None:
            assert f.device.type == "rdna" and f.dtype == dtype and f.shape == e.shape
            torch.testing.assert_close(f.cpu().double(), e, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("kind, batch_first", [
    *((kind, True) for kind in ("none", "padding", "causal", "both", "each head", "numbers")), ("both", False)])
@pytest.mark.parametrize("weights", ["none", "mean", "each"])
def test_multi_head_attention(kind, batch_first, weights):
    x = torch.randn((BATCH, ROWS, WIDTH) if batch_first else (ROWS, BATCH, WIDTH), dtype=torch.float64)
    mask, padding = masks(kind)

    def call(model, device, dtype):
        t, m, p = x.to(device, dtype), moved(mask, device, dtype), moved(padding, device, dtype)
        return model(t, t, t, key_padding_mask=p, attn_mask=m, need_weights=weights != "none",
                     average_attn_weights=weights == "mean")

    whole = batch_first and kind != "numbers"
    compare(nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first), call,
            operator="aten::_native_multi_head_attention" if whole else None)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("norm_first", [True, False], ids=["norm first", "norm last"])
@pytest.mark.parametrize("activation, kind", [("relu", "none"), ("gelu", "both"), ("relu", "padding")])
def test_an_encoder_layer(dtype, norm_first, activation, kind):
    x = torch.randn(BATCH, ROWS, WIDTH, dtype=torch.float64)
    mask, padding = masks(kind)
    compare(nn.TransformerEncoderLayer(WIDTH, HEADS, 64, activation=activation, batch_first=True, norm_first=norm_first),
            lambda model, device, t: [model(x.to(device, t), moved(mask, device, t), moved(padding, device, t))], dtype,
            "aten::_transformer_encoder_layer_fwd")


@pytest.mark.parametrize("nested", [True, False], ids=["nested", "plain"])
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch first", "rows first"])
@pytest.mark.parametrize("normed", [True, False], ids=["normed", "not normed"])
def test_an_encoder_with_padding(nested, batch_first, normed):
    """With nested tensors the CPU leaves zeros where padding is, if that is behind the other rows, for the last norm."""
    x = torch.randn((BATCH, ROWS, WIDTH) if batch_first else (ROWS, BATCH, WIDTH), dtype=torch.float64)
    _, padding = masks("padding")
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=batch_first)
    norm = nn.LayerNorm(WIDTH) if normed else None
    if normed:
        nn.init.normal_(norm.bias)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=nested)
    numbers = torch.zeros(padding.shape, dtype=torch.float64).masked_fill(padding, -torch.inf)
    for mask, x_of, fast in ((padding, x, True), (padding.flip(1), x, True), (padding & False, x, True), (numbers, x, True),
                             (padding, x, False), (padding[0], x[0] if batch_first else x[:, 0], True)):

        def call(model, device, dtype):
            y = model(x_of.to(device, dtype), src_key_padding_mask=moved(mask, device, dtype))
            assert y.shape == x_of.shape
            return [y]

        torch.backends.mha.set_fastpath_enabled(fast)
        try:
            compare(model, call)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    model, x, padding = model.to("rdna").float().eval(), x.to("rdna").float(), padding.to("rdna")
    assert (model(x, src_key_padding_mask=padding)[0, -1] != 0).any()  # with gradients there are no nested tensors
    with torch.no_grad(), torch.autocast("rdna", torch.bfloat16):
        assert (model(x, src_key_padding_mask=padding)[0, -1] != 0).any()  # nor under autocast


def test_under_autocast_it_is_what_training_computes():
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, dropout=0.0, batch_first=True).to("rdna")
    x = torch.randn(BATCH, ROWS, WIDTH, device="rdna")
    with torch.no_grad(), torch.autocast("rdna", torch.bfloat16):
        expected = layer.train()(x)
        found = layer.eval()(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=1.6e-2, atol=1.6e-2)


def test_attention_to_something_else():
    """The operator itself, with a query, keys and values that are not the same."""
    q, k, v = (torch.randn(2, n, WIDTH) for n in (5, 7, 7))
    w, b = torch.randn(3 * WIDTH, WIDTH) / 6, torch.randn(3 * WIDTH)
    p, c = torch.randn(WIDTH, WIDTH) / 6, torch.randn(WIDTH)
    call = lambda *t: torch._native_multi_head_attention(*t[:3], WIDTH, HEADS, *t[3:])  # noqa: E731
    expected, _ = nn.functional.multi_head_attention_forward(
        *(t.transpose(0, 1) for t in (q, k, v)), WIDTH, HEADS, w, b, None, None, False, 0.0, p, c, need_weights=True)
    found, weights = call(*(t.to("rdna") for t in (q, k, v, w, b, p, c)))
    torch.testing.assert_close(found.cpu(), expected.transpose(0, 1), rtol=0, atol=1e-5)
    assert weights.shape == (2, 5, 7)
