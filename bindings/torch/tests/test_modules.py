"""Modules and their Parameters that move between devices: they stay the same objects, as with PyTorch's own devices."""

import copy

import pytest
import torch
import torch.nn.functional as F
from test_training import SmallCNN, batches
from torch import nn

MOVES = {
    "rdna": lambda m: m.rdna(),
    "twice": lambda m: m.to("rdna").cpu().to("rdna"),
    "inside": lambda m: nn.Sequential(m).to("rdna"),
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-3, eps=1e-3),
    "fused": lambda p: torch.optim.AdamW(p, 1e-3, eps=1e-3, fused=True),
}


@pytest.mark.parametrize("kind, move", [*((kind, "rdna:0") for kind in OPTIMIZERS), *(("sgd", move) for move in MOVES)])
def test_an_optimizer_made_before_the_move_trains(kind, move):
    torch.manual_seed(0)
    model = SmallCNN()
    ours = copy.deepcopy(model)
    theirs, mine = OPTIMIZERS[kind](model.parameters()), OPTIMIZERS[kind](ours.parameters())
    MOVES.get(move, lambda m: m.to(move))(ours)
    for x, y in batches(model):
        for m, optimizer, device in ((model, theirs, "cpu"), (ours, mine, "rdna")):
            optimizer.zero_grad()
            F.cross_entropy(m(x.to(device)), y.to(device)).backward()
            optimizer.step()
    for (name, p), q in zip(model.named_parameters(), ours.parameters()):
        assert q.device.type == "rdna"
        torch.testing.assert_close(q.detach().cpu(), p.detach(), rtol=1e-3, atol=2e-4, msg=lambda m: f"{name}: {m}")


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_what_belongs_to_a_parameter_stays_with_it(dtype):
    model = nn.Linear(3, 2)
    weight, bias, calls = model.weight, model.bias.requires_grad_(False), []
    weight.no_weight_decay = True
    weight.register_hook(lambda g: calls.append("hook") or g * 2)
    weight.register_post_accumulate_grad_hook(lambda p: calls.append("accumulated"))
    weight.sum().backward()
    kept, version = weight.grad, model.state_dict(keep_vars=True)
    for device in ("rdna", "cpu", "rdna"):
        assert model.to(device, dtype) is model
        assert model.weight is weight and model.bias is bias and weight.no_weight_decay and weight.is_leaf
        assert weight.grad is kept and version["weight"] is weight and not bias.requires_grad
        for t in (weight, bias, weight.grad):
            assert t.device.type == device and t.dtype == (dtype or torch.float32)
        assert weight.grad.tolist() == [[2, 2, 2]] * 2
    del calls[:]
    model(torch.ones(1, 3, device="rdna", dtype=dtype)).sum().backward()
    assert calls == ["hook", "accumulated"] and weight.grad.tolist() == [[4, 4, 4]] * 2
    assert weight.grad.device.type == "rdna"


def test_shared_parameters_stay_shared():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.token.weight
            self.inner = nn.ModuleList([self.token])

    model = Tied()
    weight, ids = model.token.weight, torch.tensor([1, 2, 3])
    for device in ("rdna", "cpu", "rdna"):
        model.to(device)
        assert model.head.weight is model.token.weight is weight and weight.device.type == device
        assert len(list(model.parameters())) == 1
    F.cross_entropy(model.head(model.token(ids.to("rdna"))), ids.to("rdna")).backward()
    reference = copy.deepcopy(model).cpu()
    assert reference.head.weight is reference.token.weight
    reference.zero_grad()
    F.cross_entropy(reference.head(reference.token(ids)), ids).backward()
    torch.testing.assert_close(weight.grad.cpu(), reference.token.weight.grad)


def test_parametrizations_and_buffers_move():
    torch.manual_seed(0)
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), nn.BatchNorm1d(3))
    optimizer, x = torch.optim.SGD(model.parameters(), 0.1), torch.randn(5, 3)
    ours = copy.deepcopy(model)
    mine = torch.optim.SGD(ours.parameters(), 0.1)
    ours.to("rdna")
    for m, o, t in ((model, optimizer, x), (ours, mine, x.to("rdna"))):
        for _ in range(3):
            o.zero_grad()
            m(t).square().sum().backward()
            o.step()
    for (name, a), b in zip(model.state_dict().items(), ours.state_dict().values()):
        assert b.device.type == "rdna"
        torch.testing.assert_close(b.cpu(), a, rtol=1e-4, atol=1e-5, msg=lambda m: f"{name}: {m}")


@pytest.mark.parametrize("setting", ["swap_module_params", "overwrite_module_params"])
def test_pytorchs_settings_of_how_modules_move(setting):
    get, put = (getattr(torch.__future__, f"{verb}_{setting}_on_conversion") for verb in ("get", "set"))
    before = get()
    put(True)
    try:
        model = nn.Linear(3, 2)
        weight, expected = model.weight, model.weight.detach().clone()
        model.to("rdna")
        assert (model.weight is weight) == (setting == "swap_module_params")
        assert torch.equal(model.weight.cpu(), expected) and model.weight.device.type == "rdna"
    finally:
        put(before)


@pytest.mark.parametrize("make", [
    lambda: torch.randn(2, 3), lambda: torch.randn(3, 2).t(), lambda: torch.tensor(1.5), lambda: torch.empty(0, 3),
], ids=["dense", "strided", "scalar", "empty"])
def test_data_of_another_device(make):
    x, y = make(), make()
    alias = x
    for device in ("rdna", "cpu"):
        moved = y.to(device)
        x.data = moved
        assert alias.device.type == device and alias.stride() == moved.stride()
        assert torch.equal(alias.cpu(), y)


def test_data_of_another_device_in_a_graph():
    p = nn.Parameter(torch.ones(3))
    for device in ("rdna", "cpu", "rdna"):
        p.grad = None
        p.data = p.data.to(device)
        (p * torch.arange(3.0, device=device)).sum().backward()
        assert p.grad.device.type == p.device.type == device and p.grad.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        p.data = torch.ones(3, device="meta")
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        p.data = torch.ones(3).to_sparse()


def test_a_module_becomes_meta_and_comes_back():
    model = nn.Linear(3, 2).to("rdna")
    weight = model.weight
    assert model.to("meta").weight is not weight and model.weight.is_meta
    assert model.to_empty(device="rdna").weight.device.type == "rdna"
