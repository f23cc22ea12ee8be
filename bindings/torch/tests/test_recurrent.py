"""Recurrent layers and cells give the CPU's results and gradients, and nothing falls back."""

import copy
from contextlib import contextmanager

import pytest
import torch
from torch import nn


@contextmanager
def no_fallback():
    before = torch.rdna.fallback_mode()
    torch.rdna.set_fallback_mode("error")
    try:
        yield
    finally:
        torch.rdna.set_fallback_mode(before)


def run(module, inputs, device):
    module = copy.deepcopy(module).to(device)
    inputs = [t.to(device).requires_grad_() for t in inputs]
    out = module(*inputs)
    while isinstance(out, tuple):
        out = out[0]
    out.tanh().sum().backward()
    return [out.detach().cpu()] + [t.grad.cpu() for t in [*inputs, *module.parameters()]]


@pytest.mark.parametrize("make", [
    lambda: nn.LSTM(5, 7, num_layers=2, bidirectional=True), lambda: nn.LSTM(5, 7, bias=False, batch_first=True),
    lambda: nn.LSTM(5, 7, proj_size=3), lambda: nn.GRU(5, 7, num_layers=2, bidirectional=True),
    lambda: nn.GRU(5, 7, bias=False), lambda: nn.RNN(5, 7, nonlinearity="relu"),
    lambda: nn.LSTMCell(5, 7), lambda: nn.GRUCell(5, 7)])
def test_results_and_gradients_are_those_of_the_cpu(make):
    torch.manual_seed(0)
    module = make()
    inputs = [torch.randn(3, 5) if isinstance(module, nn.RNNCellBase) else torch.randn(4, 3, 5)]
    with no_fallback():
        found = run(module, inputs, "rdna")
    for f, e in zip(found, run(module, inputs, "cpu")):
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-5)


def everything(module, x, state, device, dtype):
    """Output, both last states, and the gradient of each input and weight, of a loss that all three take part in."""
    module = copy.deepcopy(module).to(device, dtype)
    x, h, c = (t.to(device, dtype).requires_grad_() for t in (x, *state))
    out, last = module(x, (h, c))
    loss = (out * torch.linspace(-1, 1, out.shape[-1]).to(out)).sum() + last[0].tanh().sum() + (last[1] ** 2).sum()
    loss.backward()
    return [t.detach().cpu().double() for t in (out, *last, x.grad, h.grad, c.grad,
                                                *(p.grad for p in module.parameters()))]


@pytest.mark.parametrize("dtype,error", [(torch.float32, 2e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.1),
                                         (torch.float16, 0.02)])
@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"batch_first": True}, {"num_layers": 3, "bidirectional": True},
    {"bidirectional": True, "batch_first": True, "bias": False}], ids=str)
def test_an_lstm_of_given_states_is_that_of_float64(options, dtype, error):
    torch.manual_seed(1)
    module = nn.LSTM(5, 19, **options)
    count = module.num_layers * (2 if module.bidirectional else 1)
    x, state = torch.randn(6, 3, 5), [torch.randn(count, 6 if module.batch_first else 3, 19) for _ in "hc"]
    # the values that the lower type has are the input of both
    module, x, state = module.to(dtype).double(), x.to(dtype).double(), [t.to(dtype).double() for t in state]
    with no_fallback():
        found = everything(module, x, state, "rdna", dtype)
    for f, e in zip(found, everything(module, x, state, "cpu", torch.float64), strict=True):
        assert (f - e).abs().max() <= error * max(1, e.abs().max())


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_loss_of_one_result_alone_has_its_gradients(part):
    torch.manual_seed(2)
    module, x = nn.LSTM(4, 6), torch.randn(5, 2, 4)
    grads = []
    for device in ("rdna", "cpu"):
        m = copy.deepcopy(module).to(device)
        out, last = m(x.to(device))
        (out, *last)[part].tanh().sum().backward()
        grads.append([p.grad.cpu() for p in m.parameters()])
    for f, e in zip(*grads, strict=True):
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-6)


def test_strides_one_step_and_frozen_weights():
    torch.manual_seed(3)
    module = nn.LSTM(4, 6)
    module.weight_hh_l0.requires_grad_(False)
    for x in (torch.randn(5, 4, 7).transpose(1, 2), torch.randn(1, 2, 8)[:, :, ::2], torch.randn(3, 1, 4)):
        results = []
        for device in ("rdna", "cpu"):
            m = copy.deepcopy(module).to(device)
            out = m(x.to(device))[0]
            out.tanh().sum().backward()
            assert m.weight_hh_l0.grad is None
            results.append([out.detach().cpu(), m.weight_ih_l0.grad.cpu(), m.bias_hh_l0.grad.cpu()])
        for f, e in zip(*results, strict=True):
            torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-6)


def test_an_lstm_is_one_node_of_autograd_for_a_layer_and_gives_the_same_bits():
    x = torch.randn(9, 2, 4, device="rdna")
    module = nn.LSTM(4, 6).to("rdna")
    a, b = module(x)[0], module(x)[0]
    assert "LstmLayer" in a.grad_fn.name()
    assert torch.equal(a, b)
    with torch.inference_mode():
        assert torch.equal(module(x)[0], a)


def test_second_derivatives():
    torch.manual_seed(4)
    for options in ({}, {"bidirectional": True, "bias": False}):
        module, x = nn.LSTM(2, 3, **options).double(), torch.randn(3, 2, 2, dtype=torch.double)
        results = []
        for device in ("rdna", "cpu"):
            m, given = copy.deepcopy(module).to(device), x.to(device).requires_grad_()
            first, = torch.autograd.grad(m(given)[0].pow(2).sum(), given, create_graph=True)
            first.pow(2).sum().backward()
            results.append([given.grad.cpu(), *(p.grad.cpu() for p in m.parameters())])
        for f, e in zip(*results, strict=True):
            torch.testing.assert_close(f, e)


def test_dropout_between_layers():
    module, x = nn.LSTM(4, 6, num_layers=2, dropout=0.5).to("rdna"), torch.randn(5, 2, 4, device="rdna")
    assert not torch.equal(module(x)[0], module(x)[0])
    module.eval()
    torch.testing.assert_close(module(x)[0].cpu(), module.cpu()(x.cpu())[0], rtol=1e-5, atol=1e-6)


def test_autocast():
    module, x = nn.LSTM(4, 6, bidirectional=True).to("rdna"), torch.randn(5, 2, 4, device="rdna", requires_grad=True)
    with torch.autocast("rdna", torch.bfloat16):
        out = module(x)[0]
    assert out.dtype == torch.bfloat16 and "float" in str(x.dtype)
    out.float().sum().backward()
    assert x.grad.dtype == torch.float32 and module.weight_hh_l0.grad.dtype == torch.float32
    torch.testing.assert_close(out.float().cpu(), module.cpu()(x.detach().cpu())[0], rtol=0.02, atol=0.02)


def test_packed_sequences():
    torch.manual_seed(5)
    module, x = nn.LSTM(4, 6, bidirectional=True), torch.randn(5, 3, 4)
    results = []
    for device in ("rdna", "cpu"):
        m = copy.deepcopy(module).to(device)
        packed = nn.utils.rnn.pack_padded_sequence(x.to(device), torch.tensor([2, 5, 3]), enforce_sorted=False)
        out, last = m(packed)
        (out.data.tanh().sum() + last[1].sum()).backward()
        results.append([out.data.detach().cpu(), last[0].detach().cpu(), *(p.grad.cpu() for p in m.parameters())])
    for f, e in zip(*results, strict=True):
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-5)


def test_what_is_wrong_is_said_in_pytorchs_words():
    module = nn.LSTM(4, 6)
    for x in (torch.randn(0, 2, 4), torch.randn(3, 2, 5)):
        words = []
        for device in ("cpu", "rdna"):
            with pytest.raises(RuntimeError) as failure:
                module.to(device)(x.to(device))
            words.append(str(failure.value))
        assert words[0] == words[1]
