"""Recurrent layers and cells give the CPU's results and gradients, and nothing falls back."""

import copy

import pytest
import torch
from torch import nn


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
    before = torch.rdna.fallback_mode()
    torch.rdna.set_fallback_mode("error")
    try:
        found = run(module, inputs, "rdna")
    finally:
        torch.rdna.set_fallback_mode(before)
    for f, e in zip(found, run(module, inputs, "cpu")):
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-5)
