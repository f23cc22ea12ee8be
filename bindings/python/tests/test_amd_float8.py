"""Models whose linear layers multiply 8-bit floats: prepared, optimized, in files, and taken back."""

import copy
import io
import warnings

import pytest
import torch
from torch import nn

import torch_rdna  # noqa: F401
from rdna.amd import AMDBackend, AMDConfig, AMDOptimizer
from rdna.amd._cards import has_float8
from rdna.amd._float8 import Float8Linear, quantized
from rdna.amd.amd_exceptions import AMDConfigurationError, ROCmMemoryError
from rdna.amd import backend as backend_module

CARD = torch.rdna.get_device_properties(0)
narrow_cards = pytest.mark.skipif(not has_float8(CARD), reason="the card's matrix units take no 8-bit floats, which is refused")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(48, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 20)).eval()


def backend(**more):
    return AMDBackend(AMDConfig(default_precision="fp8", **more))


def rounded(model, x):
    """What layers of 8-bit floats give in float64 but for the rounding of codes, by their definition."""
    for layer in model:
        if isinstance(layer, nn.Linear):
            codes, scales = (t.double() for t in quantized(layer.weight.detach()))
            given, of_rows = (t.double() for t in quantized(x.float()))
            x = (given * of_rows) @ (codes * scales).t() + layer.bias.double()
        else:
            x = copy.deepcopy(layer).double()(x)
    return x


def test_a_matrix_keeps_its_largest_values_and_rounds_others_by_a_sixteenth():
    torch.manual_seed(0)
    values = torch.randn(37, 129) * torch.logspace(-6, 6, 37)[:, None]
    values[3] = 0
    codes, scales = quantized(values)
    assert codes.dtype == torch.float8_e4m3fn and scales.dtype == torch.float32 and scales.shape == (37, 1)
    back = codes.double() * scales.double()
    assert torch.allclose(back.abs().amax(1), values.double().abs().amax(1), rtol=1e-6)
    bound = values.double().abs() / 16 + scales.double() * 2.0**-10  # half a step of three bits, or of subnormals
    assert ((back - values.double()).abs() <= bound * (1 + 1e-6)).all()


@narrow_cards
@pytest.mark.parametrize("mixed", [False, True])
def test_prepared(mixed):
    model, x = network(), torch.randn(9, 48)
    want, plain = rounded(model, x.double()), model(x).double()
    prepared = backend(enable_mixed_precision=mixed).prepare_model(model)
    assert prepared is model and [type(m) for m in model] == [Float8Linear, nn.GELU, nn.LayerNorm, Float8Linear]
    with torch.no_grad():
        out = model(x.to("rdna"))
    assert out.dtype == torch.float32 and out.device.type == "rdna"
    largest = plain.abs().max()
    # in between values are bf16, and where they round otherwise codes may be the neighbours
    assert (out.cpu().double() - want).abs().max() < 0.05 * largest
    apart = (out.cpu().double() - plain).abs().max() / largest
    assert 1e-4 < apart < 0.1
    assert set(dict(model[0].named_parameters())) == {"bias"}
    held = sum(t.numel() * t.itemsize for t in model[0].buffers())
    assert held == 64 * 48 + 64 * 4


@narrow_cards
def test_files_copies_and_conversions():
    model, x = backend().prepare_model(network()), torch.randn(3, 48, device="rdna")
    with torch.no_grad():
        want = model(x)
        state = model.state_dict()
        assert state["0.weight"].dtype == torch.float8_e4m3fn and state["0.weight_scale"].shape == (64, 1)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
            assert torch.equal(other(x), want)
        fresh = backend().prepare_model(nn.Sequential(nn.Linear(48, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 20)))
        assert not torch.equal(fresh(x), want)
        fresh.load_state_dict(state)  # codes
        assert torch.equal(fresh(x), want)
        fresh.load_state_dict(network().state_dict())  # wide weights, which are rounded
        assert torch.equal(fresh(x), want)
        codes, scale = model[0]._buffers["weight"], model[0].weight_scale
        model.half().float()
        assert torch.equal(model[0]._buffers["weight"].view(torch.uint8), codes.view(torch.uint8)) and torch.equal(model[0].weight_scale, scale)
        assert model[0].weight.dtype == torch.float32 and model[0].half().weight.dtype == torch.float16
        model.float().cpu()
        assert torch.allclose(model(x.cpu()), want.cpu(), rtol=0.1, atol=0.1)


@narrow_cards
def test_taken_back_and_refused():
    model = network()
    with torch.no_grad():
        weight = (lambda c, s: c.float() * s)(*quantized(model[0].weight))
    made = backend()
    made.prepare_model(model)
    made.prepare_model(model)  # once more is no change
    assert type(model[0]) is Float8Linear
    AMDBackend(AMDConfig()).prepare_model(model)
    assert type(model[0]) is nn.Linear and list(dict(model[0].named_parameters())) == ["weight", "bias"]
    assert torch.equal(model[0].weight.cpu(), weight) and model[0].weight.requires_grad
    with pytest.raises(AMDConfigurationError, match="fp8.*inference") as raised:
        made.optimize_for_training(network())
    assert raised.value.parameter == "default_precision"


@narrow_cards
def test_a_model_that_does_not_fit_stays_as_it_was(monkeypatch):
    model, before = network(), network().state_dict()
    monkeypatch.setattr(backend_module, "room", lambda device, fraction: 10)
    with pytest.raises(ROCmMemoryError):
        backend().prepare_model(model)
    assert type(model[0]) is nn.Linear and model[0].weight.device.type == "cpu"
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


@narrow_cards
def test_layers_of_other_classes_and_tied_ones():
    class Own(nn.Linear):
        pass

    table = nn.Embedding(16, 32)
    shared, again, tied, own = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 16, bias=False), Own(32, 32)
    again.weight, tied.weight = shared.weight, table.weight
    model = backend().prepare_model(nn.ModuleList([table, shared, again, tied, own]))
    assert [type(m) for m in model] == [nn.Embedding, Float8Linear, Float8Linear, nn.Linear, Own]
    assert shared._buffers["weight"] is again._buffers["weight"] and tied.weight is table.weight
    with pytest.warns(UserWarning, match="no linear layer"):
        backend().prepare_model(nn.Conv2d(3, 4, 3))


@narrow_cards
def test_gradients_pass_through():
    model = backend(enable_mixed_precision=False).prepare_model(nn.Linear(32, 24))
    x = torch.randn(5, 32, device="rdna", requires_grad=True)
    model(x).sum().backward()
    want = model.weight.float().sum(0).expand(5, 32)
    assert torch.allclose(x.grad.cpu(), want.cpu(), rtol=2e-2, atol=2e-2)
    assert model.bias.grad is not None


@narrow_cards
def test_optimized_and_undone():
    model, x = network().to("rdna"), torch.randn(8, 48, device="rdna")
    optimizer = AMDOptimizer(AMDConfig(default_precision="fp8"))
    fast = optimizer.optimize(model, level="aggressive", example_inputs=x)
    assert "weights in fp8" in optimizer.result.optimizations_applied and type(fast[0]) is Float8Linear
    assert optimizer.result.memory_savings_mb > 0 and 0 < optimizer.result.difference < 0.2
    with torch.no_grad():
        assert (fast(x) - model(x)).abs().max() < 0.1 * model(x).abs().max()
    assert optimizer.undo(fast) is model and type(model[0]) is nn.Linear
    optimizer.optimize(network().to("rdna").train(), level="aggressive")
    assert any("fp8 is for inference" in w for w in optimizer.result.warnings)


@narrow_cards
def test_the_type_that_weights_are_read_as():
    model = backend(enable_mixed_precision=False).prepare_model(network())
    assert model[0].weight.dtype == torch.bfloat16 == model[0].bias.dtype
    x = torch.randn(3, 48, dtype=torch.float64, device="rdna")
    model = backend().prepare_model(nn.Sequential(nn.Linear(48, 8)))[0].double()
    assert model.weight.dtype == torch.float64 and torch.equal(nn.functional.linear(x, model.weight, model.bias), nn.Linear.forward(model, x))


@narrow_cards
def test_weights_in_files_of_other_types():
    layer, wide = (backend().prepare_model(nn.Sequential(nn.Linear(48, 8)))[0] for _ in range(2))
    state = {k: v * 100 for k, v in nn.Linear(48, 8).state_dict().items()}
    wide.load_state_dict(state)
    layer.load_state_dict({k: v.double() for k, v in state.items()})
    assert torch.equal(layer.weight, wide.weight)
    with pytest.raises(RuntimeError, match="codes of 8 bits without weight_scale"):
        layer.load_state_dict({"weight": layer._buffers["weight"]}, strict=False)


@narrow_cards
def test_a_warning_as_an_error_leaves_a_prepared_model():
    model = nn.Conv2d(3, 4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="no linear layer"):
            backend().prepare_model(model)
    x = torch.randn(1, 3, 8, 8, device="rdna")
    assert torch.equal(model(x), AMDBackend(AMDConfig(default_precision="bf16")).prepare_model(copy.deepcopy(model))(x))
    assert not torch.equal(model(x), nn.functional.conv2d(x, model.weight, model.bias))


@pytest.mark.skipif(has_float8(CARD), reason="the card has units that take 8-bit floats")
def test_a_card_without_such_units_refuses():
    model = network()
    with pytest.raises(AMDConfigurationError, match=f"{CARD.arch}.*bf16") as raised:
        backend().prepare_model(model)
    assert raised.value.parameter == "default_precision" and raised.value.value == "fp8" and type(model[0]) is nn.Linear
    optimizer = AMDOptimizer(AMDConfig(default_precision="fp8"))
    optimizer.optimize(model.to("rdna"), level="aggressive")
    assert any("take no 8-bit floats" in w for w in optimizer.result.warnings)


def test_which_cards_have_such_units():
    class Card:
        def __init__(self, arch, driver="hip"):
            self.arch, self.driver = arch, driver

    assert all(has_float8(Card(a)) for a in ("gfx942", "gfx950", "gfx1200", "gfx1201")) and has_float8(Card("x86_64", "host"))
    assert not any(has_float8(Card(a)) for a in ("gfx906", "gfx90a", "gfx1030", "gfx1100", "gfx1151"))
    assert has_float8(Card("sm_90", "cuda")) and has_float8(Card("sm_89", "cuda")) and not has_float8(Card("sm_86", "cuda"))
