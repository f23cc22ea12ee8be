"""Recurrent layers and cells give the CPU's results and gradients, and nothing falls back."""

import copy
from contextlib import contextmanager

import pytest
import torch
from test_profiler import BOTH, on_device
from torch import nn
from torch.profiler import profile


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


LSTM, GRU, RNN = nn.LSTM, nn.GRU, nn.RNN
# Up to 64 units all steps are one launch, above them one each; in f64, and with projections, a product and a cell.
SIZES = [(torch.float32, 2e-5, 19), (torch.float32, 2e-5, 67), (torch.float64, 1e-12, 19), (torch.bfloat16, 0.1, 19),
         (torch.float16, 0.02, 19), (torch.float16, 0.02, 67)]


def relu(*sizes, **options):
    return RNN(*sizes, nonlinearity="relu", **options)


def states_of(module, rows):
    """Random first states: h, and an LSTM's c."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    h = torch.randn(count, rows, module.proj_size or module.hidden_size)
    return (h, torch.randn(count, rows, module.hidden_size)) if isinstance(module, LSTM) else (h,)


def everything(module, x, states, device, dtype=None, lengths=None):
    """Output, last states, and the gradient of each input and weight, of a loss that all results take part in."""
    module = copy.deepcopy(module).to(device, dtype)
    x, *states = given = [t.detach().to(device, dtype).requires_grad_() for t in (x, *states)]
    if lengths is not None:
        x = nn.utils.rnn.pack_padded_sequence(x, lengths, module.batch_first, enforce_sorted=False)
    out, last = module(x, tuple(states) if len(states) > 1 else states[0])
    out = out if lengths is None else out.data
    last = last if isinstance(last, tuple) else (last,)
    loss = (out * torch.linspace(-1, 1, out.shape[-1]).to(out)).sum() + last[0].tanh().sum() + (last[-1] ** 2).sum()
    loss.backward()
    return [t.detach().cpu().double() for t in (out, *last, *(t.grad for t in given),
                                                *(p.grad for p in module.parameters()))]


def compare(module, x, states, dtype, error, lengths=None):
    # the values that the lower type has are the input of both
    module, x, states = module.to(dtype).double(), x.to(dtype).double(), [t.to(dtype).double() for t in states]
    with no_fallback():
        found = everything(module, x, states, "rdna", dtype, lengths)
    expected = everything(module, x, states, "cpu", torch.float64, lengths)
    if getattr(module, "nonlinearity", "") == "relu" and dtype.itemsize == 2:
        # of sums near zero the slope is 0 or 1 as rounding has it: results alone, which have no such jump
        found, expected = found[:2], expected[:2]
    for f, e in zip(found, expected, strict=True):
        assert (f - e).abs().max() <= error * max(1, e.abs().max())


@pytest.mark.parametrize("dtype,error,size", SIZES)
@pytest.mark.parametrize("kind,options", [
    (LSTM, {}), (LSTM, {"bias": False}), (LSTM, {"batch_first": True}),
    (LSTM, {"num_layers": 3, "bidirectional": True}),
    (LSTM, {"bidirectional": True, "batch_first": True, "bias": False}),
    (LSTM, {"proj_size": 7}), (LSTM, {"proj_size": 7, "num_layers": 2, "bidirectional": True, "bias": False}),
    (GRU, {}), (GRU, {"num_layers": 2, "bidirectional": True, "bias": False}), (GRU, {"batch_first": True}),
    (RNN, {}), (RNN, {"num_layers": 2, "bidirectional": True}), (relu, {"bias": False}),
    (relu, {"bidirectional": True})], ids=str)
def test_a_network_of_given_states_is_that_of_float64(kind, options, dtype, error, size):
    torch.manual_seed(1)
    module = kind(5, size, **options)
    compare(module, torch.randn(6, 3, 5), states_of(module, 6 if module.batch_first else 3), dtype, error)


@pytest.mark.parametrize("dtype,error,size", SIZES)
@pytest.mark.parametrize("kind,options", [
    (LSTM, {}), (LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    (LSTM, {"proj_size": 7, "bidirectional": True, "bias": False}),
    (GRU, {"bidirectional": True}), (RNN, {"bidirectional": True}), (relu, {"num_layers": 2})], ids=str)
def test_packed_sequences(kind, options, dtype, error, size):
    torch.manual_seed(5)
    module, lengths = kind(5, size, **options), torch.tensor([2, 6, 4, 4, 1])
    x = torch.randn(6, 5, 5)
    compare(module, x.transpose(0, 1) if module.batch_first else x, states_of(module, 5), dtype, error, lengths)


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN, relu])
@pytest.mark.parametrize("size,rows,dtype,error", [
    (100, 33, torch.float32, 2e-5), (257, 3, torch.float32, 2e-5), (257, 1, torch.float16, 0.02),
    (128, 70, torch.bfloat16, 0.1)])
def test_wide_layers(kind, size, rows, dtype, error):
    torch.manual_seed(8)
    module = kind(5, size, bidirectional=rows == 3)
    lengths = torch.randint(1, 4, (rows,)) if rows == 33 else None
    x = torch.randn(int(lengths.max()) if rows == 33 else 3, rows, 5)
    compare(module, x, states_of(module, rows), dtype, error, lengths)


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN])
def test_wide_layers_are_few_launches(kind):
    """Two layers of 256, 32 sequences and 100 steps: one launch a step, and a few products and sums."""
    module, x = kind(256, 256, 2).to("rdna"), torch.randn(100, 32, 256, device="rdna")

    def step():
        loss = module(x)[0].square().mean()
        if torch.is_grad_enabled():
            loss.backward()

    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            module.zero_grad()
            step()
            module.zero_grad()
            with profile(activities=BOTH) as seen:
                step()
                torch.rdna.synchronize()
        names = [e.name for e in on_device(seen)]
        assert sum("_step_" in name for name in names) == (402 if grad else 200)
        assert len(names) < (445 if grad else 220)


def test_packed_sequences_of_random_lengths():
    torch.manual_seed(6)
    for turn in range(12):
        rows, steps = int(torch.randint(1, 7, ())), int(torch.randint(1, 12, ()))
        lengths = torch.randint(1, steps + 1, (rows,))
        module = [LSTM, GRU, RNN, relu][turn % 4](3, 66 if turn > 7 else 4, bidirectional=True)
        compare(module, torch.randn(steps, rows, 3), states_of(module, rows), torch.float64, 1e-12, lengths)


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("lengths", [None, torch.tensor([5, 2])])
def test_a_loss_of_one_result_alone_has_its_gradients(part, lengths):
    torch.manual_seed(2)
    for module in (LSTM(4, 6), LSTM(4, 65), LSTM(4, 6, proj_size=3), GRU(4, 6), GRU(4, 65), RNN(4, 6), RNN(4, 65)):
        if part == 2 and not isinstance(module, LSTM):
            continue
        x, grads = torch.randn(5, 2, 4), []
        for device in ("rdna", "cpu"):
            m = copy.deepcopy(module).to(device)
            given = x.to(device)
            if lengths is not None:
                given = nn.utils.rnn.pack_padded_sequence(given, lengths)
            out, last = m(given)
            out = out if lengths is None else out.data
            last = last if isinstance(last, tuple) else (last,)
            (out, *last)[part].tanh().sum().backward()
            grads.append([p.grad.cpu() for p in m.parameters()])
        for f, e in zip(*grads, strict=True):
            torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN])
def test_strides_one_step_and_frozen_weights(kind):
    torch.manual_seed(3)
    module = kind(4, 6)
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


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN])
def test_a_layer_is_one_node_of_autograd_and_gives_the_same_bits(kind):
    x = torch.randn(9, 2, 4, device="rdna")
    module = kind(4, 6).to("rdna")
    a, b = module(x)[0], module(x)[0]
    assert "RecurrentLayer" in next_of(a.grad_fn).name()
    assert torch.equal(a, b)
    with torch.inference_mode():
        assert torch.equal(module(x)[0], a)


def next_of(node):
    """Past views."""
    while "View" in node.name():
        node = node.next_functions[0][0]
    return node


@pytest.mark.parametrize("kind,options", [(LSTM, {}), (LSTM, {"bidirectional": True, "bias": False}),
                                          (LSTM, {"proj_size": 2, "bidirectional": True}),
                                          (GRU, {"bidirectional": True}), (RNN, {"bidirectional": True}), (relu, {})])
def test_second_derivatives(kind, options):
    torch.manual_seed(4)
    module, x = kind(2, 3, **options).double(), torch.randn(3, 2, 2, dtype=torch.double)
    for lengths in (None, torch.tensor([3, 1])):
        results = []
        for device in ("rdna", "cpu"):
            m, given = copy.deepcopy(module).to(device), x.clone().to(device).requires_grad_()
            out = m(given if lengths is None else nn.utils.rnn.pack_padded_sequence(given, lengths))[0]
            out = out if lengths is None else out.data
            first, = torch.autograd.grad(out.pow(2).sum(), given, create_graph=True)
            first.pow(2).sum().backward()
            results.append([given.grad.cpu(), *(p.grad.cpu() for p in m.parameters())])
        for f, e in zip(*results, strict=True):
            torch.testing.assert_close(f, e)


def test_dropout_between_layers():
    for kind in (LSTM, GRU):
        module, x = kind(4, 6, num_layers=2, dropout=0.5).to("rdna"), torch.randn(5, 2, 4, device="rdna")
        assert not torch.equal(module(x)[0], module(x)[0])
        module.eval()
        torch.testing.assert_close(module(x)[0].cpu(), module.cpu()(x.cpu())[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN, relu])
def test_autocast(kind):
    module, x = kind(4, 6, bidirectional=True).to("rdna"), torch.randn(5, 2, 4, device="rdna", requires_grad=True)
    with torch.autocast("rdna", torch.bfloat16):
        out = module(x)[0]
        packed = module(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 5])))[0].data
    assert out.dtype == torch.bfloat16 and "float" in str(x.dtype)
    assert torch.equal(packed, out.flatten(0, 1))
    out.float().sum().backward()
    assert x.grad.dtype == torch.float32 and module.weight_hh_l0.grad.dtype == torch.float32
    torch.testing.assert_close(out.float().cpu(), module.cpu()(x.detach().cpu())[0], rtol=0.02, atol=0.02)


def test_what_is_wrong_is_said_in_pytorchs_words():
    for kind in (LSTM, GRU, RNN):
        module = kind(4, 6)
        for x in (torch.randn(0, 2, 4), torch.randn(3, 2, 5)):
            words = []
            for device in ("cpu", "rdna"):
                with pytest.raises(RuntimeError) as failure:
                    module.to(device)(x.to(device))
                words.append(str(failure.value))
            assert words[0] == words[1]
