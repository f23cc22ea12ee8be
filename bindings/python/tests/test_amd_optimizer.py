"""AMDOptimizer: what each level does to a model, that results stay what they were, and what is left as it was."""

import copy
import io
import os
import pathlib
import subprocess
import sys
import warnings

import pytest
import torch
from networks import Bert, Vit, lived, resnet18, resnet50
from rdna.amd import AMDBackend, AMDConfig, AMDOptimizationError, AMDOptimizer, OptimizationResult
from torch import nn
from torch.nn import functional as F

rdna = pytest.importorskip("torch_rdna", reason="the plugin is not built").__name__ and torch.rdna
LEVELS = ("conservative", "balanced", "aggressive")
DRIVER = rdna.get_device_properties().driver
TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 0.15}  # of the largest value


@pytest.fixture(autouse=True)
def afresh():
    torch.manual_seed(0)
    torch._dynamo.reset()


def optimize(model, level="conservative", config=None, **more):
    optimizer = AMDOptimizer(config or AMDConfig())
    return optimizer.optimize(model, level, **more), optimizer


def names(optimizer):
    return {change.name: change.count for change in optimizer.result.changes}


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def wide(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def in_float64(model, *inputs):
    """What the unoptimized model gives on the CPU in float64."""
    with torch.no_grad():
        return as_tuple(copy.deepcopy(model).cpu().double().eval()(*(wide(x.cpu()) for x in inputs)))


def close(mine, want, dtype=torch.float32):
    for a, b in zip(as_tuple(mine), want, strict=True):
        assert a.shape == b.shape
        a = a.detach().cpu().double()
        assert (a - b).abs().max() <= TOLERANCE[dtype] * b.abs().max()


def state_of(model):
    return {name: t.detach().cpu().clone() for name, t in model.state_dict().items()}


def unchanged(model, state):
    now = model.state_dict()
    return list(now) == list(state) and all(torch.equal(now[n].cpu(), t) for n, t in state.items())


def convolutions():
    return lived(nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(0.3),
        nn.Conv2d(8, 8, 3, padding=1, groups=4), nn.BatchNorm2d(8, affine=False), nn.SiLU(),
        nn.ConvTranspose2d(8, 6, 3, stride=2, groups=2), nn.BatchNorm2d(6), nn.Flatten(), nn.Linear(6 * 13 * 13, 7),
        nn.BatchNorm1d(7), nn.GELU(), nn.Linear(7, 5), nn.Tanh()))


# ---- the levels


@pytest.mark.parametrize("device", ["cpu", "rdna"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_small_network_at_each_level(level, device):
    model, x = convolutions().to(device), torch.randn(3, 3, 8, 8, device=device)
    want, state, before = in_float64(model, x), state_of(model), model(x)
    mine, optimizer = optimize(model, level, example_inputs=x)
    with torch.no_grad():
        close(mine(x), want)
        close(mine(x[:1]), in_float64(model, x[:1]))  # another batch
    made = names(optimizer)
    assert made["batch norm folded"] == 4 and made["dropout removed"] == 1
    assert not any(isinstance(m, (nn.BatchNorm2d, nn.BatchNorm1d, nn.Dropout2d)) for m in mine.modules())
    if device == "rdna":
        assert made["activation fused"] == 4  # none behind the transposed convolution
        assert ("compiled" in made) == (level != "conservative")
        result = optimizer.result
        assert result.launches_after <= result.launches_before - 8 and result.difference < 1e-5
        # what each change is worth was measured
        assert all(c.launches is not None and c.milliseconds > 0 for c in result.changes)
        assert result.memory_savings_mb == pytest.approx(sum(c.memory_savings_mb for c in result.changes))
    assert unchanged(model, state) and optimizer.undo(mine) is model and torch.equal(model(x), before)


def at_levels(model, inputs, levels):
    """The launches of a forward before and at each level, whose results are right; and the last optimizer."""
    want, counts = in_float64(model, *inputs), []
    for level in levels:
        torch._dynamo.reset()
        mine, optimizer = optimize(model, level, example_inputs=inputs)
        with torch.no_grad():
            close(mine(*inputs), want)
        counts.append(optimizer.result.launches_after)
    return [optimizer.result.launches_before, *counts], optimizer


on_host = pytest.mark.skipif(DRIVER != "host", reason="the numbers are those of the host driver; a card has other routes")


@on_host
@pytest.mark.parametrize("network, levels, launches", [
    (resnet18, LEVELS, [68, 47, 31, 31]), (resnet50, LEVELS[1:2], [174, 72])])
def test_residual_networks(network, levels, launches):
    """Before, a convolution, its norm and its relu are three launches. With the norms folded and all fused each
    convolution is one, with its relu where nothing is added before, each sum with its relu is one, and a pool (on the
    host the average is the product's), the last product and what they need are two."""
    model, x = network(8).to("rdna"), torch.randn(2, 3, 64, 64, device="rdna")
    counts, optimizer = at_levels(model, (x,), levels)
    assert counts == launches
    assert names(optimizer)["batch norm folded"] == sum(isinstance(m, nn.BatchNorm2d) for m in model.modules())


@on_host
def test_bert():
    """Two layers. Fused, a layer is three products (packed, one), attention, product with sum, norm, product with gelu,
    product with sum, norm."""
    model, ids = Bert(64, 4, 2).eval().to("rdna"), torch.randint(0, 1000, (2, 9), device="rdna")
    mask = torch.ones(2, 9, dtype=torch.int64, device="rdna")
    mask[1, 5:] = 0
    counts, optimizer = at_levels(model, (ids, mask), LEVELS)
    assert counts == [50, 47, 26, 22]
    applied = optimizer.get_optimization_summary()["optimizations_applied"]
    assert "attention: 2" in applied and "packed layers: 6" in applied


@on_host
def test_vision_transformer():
    model, x = Vit(64, 4, 2, 8, 32).eval().to("rdna"), torch.randn(2, 3, 32, 32, device="rdna")
    counts, optimizer = at_levels(model, (x,), LEVELS[2:])
    assert counts == [44, 20]
    assert "attention: 2" in optimizer.get_optimization_summary()["optimizations_applied"]


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_precision(name):
    model, x = convolutions().to("rdna"), torch.randn(3, 3, 8, 8, device="rdna")
    want, config = in_float64(model, x), AMDConfig(architecture="cdna3", default_precision=name)
    mine, optimizer = optimize(model, "aggressive", config, example_inputs=x)
    out = mine(x)
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[name]
    assert out.dtype == torch.float32 and {p.dtype for p in mine.parameters()} == {dtype}
    close(out, want, dtype)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert optimizer.result.memory_savings_mb * (1 << 20) > 0.45 * sum(4 * p.numel() for p in model.parameters())
    # where it is not allowed, weights stay in f32, which is said
    config.allow_fp16 = config.allow_bf16 = False
    mine, optimizer = optimize(model, "aggressive", config, example_inputs=x)
    assert {p.dtype for p in mine.parameters()} == {torch.float32}
    assert any(f"allow_{name} is off" in w for w in optimizer.result.warnings)


@pytest.mark.parametrize("level", LEVELS)
def test_models_that_the_backend_prepared_in_bf16(level):
    config = AMDConfig(architecture="cdna3", default_precision="bf16")
    network = convolutions()
    x = torch.randn(3, 3, 8, 8)
    want, model = in_float64(network, x), AMDBackend(config).prepare_model(network)
    mine, optimizer = optimize(model, level, config, example_inputs=x.to("rdna"))
    assert names(optimizer)["batch norm folded"] == 4
    with torch.no_grad():
        close(mine(x.to("rdna")), want, torch.bfloat16)
    assert optimizer.result.launches_after < optimizer.result.launches_before


# ---- folding, where it is right and where it is not


class Twice(nn.Module):
    """One batch norm behind two convolutions."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Conv1d(3, 4, 1), nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.a(x)) + self.norm(self.b(x))


class Seen(nn.Module):
    """A convolution whose result is also used without the norm."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4)

    def forward(self, x):
        x = self.conv(x)
        return self.norm(x) * x


class Weighed(Seen):
    """A convolution whose weight is read apart."""

    def forward(self, x):
        return self.norm(self.conv(x)) * self.conv.weight.sum()


class Tied(nn.Module):
    """Two convolutions of one weight, each with a norm of its own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(3, 3, 1), nn.Conv1d(3, 3, 1)
        self.b.weight = self.a.weight
        self.m, self.n = nn.BatchNorm1d(3), nn.BatchNorm1d(3)

    def forward(self, x):
        return self.n(self.b(self.m(self.a(x))))


class Shut(nn.Module):
    """What torch.fx cannot follow: a decision by values. The blocks inside can be followed."""

    def __init__(self):
        super().__init__()
        self.block, self.other = nn.Sequential(nn.Conv1d(3, 3, 1), nn.BatchNorm1d(3), nn.ReLU()), nn.Conv1d(3, 3, 1)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        x = self.block(x)
        return self.norm(self.other(x)) if x.sum() > 0 else x


class Optional(nn.Module):
    """Another norm where a second argument is given."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.more = nn.Conv1d(3, 3, 1), nn.BatchNorm1d(3), nn.BatchNorm1d(3)

    def forward(self, x, shift=None):
        x = self.norm(self.conv(x))
        return x if shift is None else self.more(x + shift)


class NormAndMore(nn.BatchNorm1d):
    """A batch norm that goes on with modules of its own, in timm's manner: PyTorch's operator, and looks at the rank."""

    def __init__(self, act, eps=1e-5):
        super().__init__(4)
        self.drop, self.act, self.used = nn.Dropout(0.2), act, eps

    def forward(self, x):
        torch._assert(x.ndim == 3, f"{x.ndim} dimensions")
        x = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training, 0.1, self.used)
        return self.act(self.drop(x))


class NormOfAnother(nn.BatchNorm1d):
    """The same by the class above it."""

    def __init__(self, act=None, factor=None):
        super().__init__(4)
        self.act, self.factor = act, factor

    def forward(self, x):
        x = super().forward(x)
        x = x if self.act is None else self.act(x)
        return x if self.factor is None else x * self.factor


def with_norm(norm, conv=nn.Conv1d):
    return nn.Sequential(conv(3, 4, 1), norm, nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4))


def weight_norm(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(model[0])
    return model


def hooked(model):
    model[0].register_forward_hook(lambda m, i, o: o * 2)
    return model


def pair():
    return nn.Sequential(nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4))


FOLDS = [  # model, norms folded
    (pair, 1), (Tied, 2), (Shut, 1), (Optional, 1), (Twice, 0), (Seen, 0), (Weighed, 0),
    (lambda: hooked(pair()), 0), (lambda: weight_norm(pair()), 0),
    (lambda: nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 1)), nn.BatchNorm1d(4)), 0),
    (lambda: nn.Sequential(nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4, track_running_stats=False)), 0),
    (lambda: nn.Sequential(nn.Conv1d(3, 4, 1), nn.ReLU(), nn.BatchNorm1d(4)), 0),
    (lambda: nn.Sequential(nn.Conv1d(3, 4, 1), nn.Dropout(), nn.Identity(), nn.BatchNorm1d(4), nn.BatchNorm1d(4)), 2),
    (lambda: nn.Sequential(pair(), pair()[1]), 2),
    (lambda: (lambda m: nn.Sequential(m, nn.Conv1d(4, 3, 1), m))(pair()), 0),  # the same block twice
    (lambda: nn.Sequential(nn.Conv3d(3, 4, 1), nn.BatchNorm3d(4)), 1),
    (lambda: nn.Sequential(nn.ConvTranspose1d(3, 4, 3, 2, bias=False), nn.BatchNorm1d(4)), 1),
    (lambda: with_norm(NormAndMore(nn.ReLU(inplace=True))), 2), (lambda: with_norm(NormAndMore(nn.PReLU())), 2),
    (lambda: with_norm(NormOfAnother(nn.SiLU())), 2), (lambda: with_norm(NormOfAnother()), 2),
    (lambda: with_norm(NormOfAnother(nn.SiLU()), nn.ConvTranspose1d), 2),
    (lambda: with_norm(NormAndMore(nn.ReLU(), eps=1e-2)), 1), (lambda: with_norm(NormOfAnother(factor=2.0)), 1),
    (lambda: with_norm(hooked([NormOfAnother(nn.SiLU())])[0]), 1),
]


@pytest.mark.parametrize("level", ["conservative", "balanced"])
@pytest.mark.parametrize("number", range(len(FOLDS)))
def test_what_is_folded(number, level):
    make, count = FOLDS[number]
    model = make()
    model = lived_if_it_has_statistics(model)
    shape = (2, 3, 4, 5, 6) if any(isinstance(m, nn.Conv3d) for m in model.modules()) else (2, 3, 11)
    x = torch.randn(shape)
    want, state = model(x).detach().double(), state_of(model)
    model = model.to("rdna")
    mine, optimizer = optimize(model, level)
    with torch.no_grad():
        close(mine(x.to("rdna")), (want,))
    assert names(optimizer).get("batch norm folded", 0) == count
    if count == 0 and any(m.running_mean is not None for m in model.modules() if isinstance(m, nn.BatchNorm1d)):
        assert any("was not folded" in w for w in optimizer.result.warnings)
    assert unchanged(model, state) and optimizer.undo(mine) is model


def test_activations_inside_of_norms_are_fused():
    model, x = lived(with_norm(NormAndMore(nn.ReLU()))).to("rdna"), torch.randn(2, 3, 5, device="rdna")
    want = in_float64(model, x)
    mine, optimizer = optimize(model, example_inputs=x)
    assert names(optimizer) == {"dropout removed": 1, "batch norm folded": 2, "activation fused": 1}
    with torch.no_grad():
        close(mine(x), want)
        with pytest.raises(ValueError, match="undo the optimization"):
            mine[1](x[0])
    assert mine[1].num_features == 4 and list(mine.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def lived_if_it_has_statistics(model):
    for m in model.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is not None:
            lived(m)
    return model.eval()


def test_an_argument_that_was_left_out_in_the_trace():
    model = lived(Optional())
    x, shift = torch.randn(2, 3, 5), torch.randn(2, 3, 5)
    mine, _ = optimize(model)
    torch.testing.assert_close(mine(x, shift), model(x, shift))


def test_a_norm_that_would_see_other_dimensions_is_refused():
    """Behind a linear layer channels are the second dimension, which of three is not the layer's."""
    model = lived(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5)))
    mine, _ = optimize(model)
    torch.testing.assert_close(mine(torch.ones(3, 4)), model(torch.ones(3, 4)))
    with pytest.raises(ValueError, match="undo the optimization"):
        mine(torch.ones(3, 5, 4))


def test_a_trace_that_misleads_is_seen_by_the_example():
    """The parent calls the convolution of a block without the block's norm, where no trace comes."""
    class Misleading(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = pair()

        def forward(self, x):
            return self.block[0](x) if float(x.sum()) < 1e9 else self.block(x)

    model, x = lived(Misleading()), torch.randn(2, 3, 5)
    with pytest.warns(UserWarning, match="left the model as it was: results would differ"):
        mine, optimizer = optimize(model, example_inputs=x)
    assert mine is model and not optimizer.result.changes


# ---- models that are left, and what optimized ones refuse


class Unfit(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value, self.layers = value, pair()

    def forward(self, x):
        return self.layers(x)


LEFT = [
    (lambda: nn.DataParallel(pair()), "is a DataParallel"),
    (lambda: nn.Sequential(nn.LazyConv1d(4, 1), nn.BatchNorm1d(4)), "lazy"),
    (lambda: pair().to("meta"), "meta"),
    (lambda: torch.jit.trace(pair().eval(), torch.ones(2, 3, 5)), "torch.jit"),
    (lambda: torch.compile(pair()), "torch.compile already"),
    (lambda: Unfit((n for n in range(3))), "cannot be copied"),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("number", range(len(LEFT)))
@pytest.mark.filterwarnings("ignore:.*(torch.jit|Lazy).*")
def test_models_that_are_left(number, level):
    make, reason = LEFT[number]
    model = make().eval()
    with pytest.warns(UserWarning, match=f"left the model as it was: .*{reason}"):
        mine, optimizer = optimize(model, level)
    assert mine is model and optimizer.undo(mine) is model
    assert reason in optimizer.result.warnings[0] and not optimizer.result.optimizations_applied


def test_unknown_levels_and_things():
    model = pair().eval()
    before = dict(model.__dict__)
    for level in ("fast", "", 3, "Balanced"):
        with pytest.raises(AMDOptimizationError, match="conservative, balanced, aggressive") as caught:
            AMDOptimizer(AMDConfig()).optimize(model, level)
        assert caught.value.level == level
    assert model.__dict__ == before
    with pytest.raises(AMDOptimizationError, match="expected a torch.nn.Module, got function"):
        AMDOptimizer(AMDConfig()).optimize(lambda x: x)


def test_optimized_twice():
    model, x = convolutions(), torch.randn(2, 3, 8, 8)
    mine, optimizer = optimize(model)
    assert optimizer.optimize(mine) is not mine  # the level of the configuration is another
    again = optimizer.optimize(mine, "conservative")
    assert again is mine and optimizer.get_optimization_summary()["fused_operations"] == 4
    other = optimizer.optimize(mine, "balanced")
    assert other is not mine and optimizer.undo(other) is model
    torch.testing.assert_close(other(x), model(x))


def test_optimized_models_are_not_trained():
    mine, _ = optimize(convolutions())
    for train in (mine.train, mine[1].train):
        with pytest.raises((AMDOptimizationError, RuntimeError), match="optimized for inference"):
            train()
    assert not any(m.training for m in mine.modules())
    mine.eval()


def test_checkpoints():
    model = convolutions()
    mine, optimizer = optimize(model)
    mine.load_state_dict(mine.state_dict())
    with pytest.raises(RuntimeError, match="batch norm that was folded"):
        mine.load_state_dict(model.state_dict(), strict=False)


def test_copies_and_files_work_and_have_no_original():
    model, x = convolutions(), torch.randn(2, 3, 8, 8)
    mine, optimizer = optimize(model)
    file = io.BytesIO()
    torch.save(mine, file)
    file.seek(0)
    for other in (copy.deepcopy(mine), torch.load(file, weights_only=False)):
        torch.testing.assert_close(other(x), model(x))
        with pytest.raises(AMDOptimizationError, match="does not have its original"):
            optimizer.undo(other)
    mine, optimizer = optimize(model, keep_original=False)
    with pytest.raises(AMDOptimizationError, match="keep_original"):
        optimizer.undo(mine)


def test_moving_an_optimized_model_leaves_the_original():
    model = convolutions()
    mine, optimizer = optimize(model)
    mine.to("rdna").half()
    assert {p.device.type for p in model.parameters()} == {"cpu"} and optimizer.undo(mine) is model
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_under_inference_mode():
    with torch.inference_mode():
        model, x = convolutions(), torch.randn(2, 3, 8, 8)
        want = model(x)
        mine, _ = optimize(model, "balanced", example_inputs=x)
        torch.testing.assert_close(mine(x), want)
    with torch.no_grad():
        torch.testing.assert_close(mine(torch.zeros(2, 3, 8, 8)), model(torch.zeros(2, 3, 8, 8)))


def test_buffers_and_random_numbers_are_left_by_measuring():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.layers = pair()

        def forward(self, x):
            self.calls += 1
            torch.rand(3)
            return self.layers(x)

    model, x = lived(Counts()), torch.randn(2, 3, 5)
    state = torch.get_rng_state()
    mine, _ = optimize(model, example_inputs=x)
    assert torch.equal(torch.get_rng_state(), state) and model.calls == 0 and mine.calls == 0
    mine(x)
    assert model.calls == 0 and mine.calls == 1


def test_what_a_removed_module_had_can_still_be_asked():
    mine, _ = optimize(nn.Sequential(nn.Dropout(0.3), nn.Linear(2, 2)).eval())
    assert mine[0].p == 0.3 and "Dropout" in repr(mine[0])
    with pytest.raises(AttributeError):
        mine[0].q


# ---- gradients


def test_gradients_of_an_optimized_model_in_evaluation():
    """The fused operators have none: where one is asked for, the layers' own are taken."""
    model, x = convolutions(), torch.randn(2, 3, 8, 8)
    given = x.clone().requires_grad_()
    model(given).square().sum().backward()
    for level in LEVELS:
        mine, _ = optimize(model.to("rdna"), level)
        got = x.to("rdna").requires_grad_()
        mine(got).square().sum().backward()
        close(got.grad, (given.grad.double(),))
        model.cpu()


# ---- torch.compile


def test_models_that_dynamo_cannot_follow_still_run(monkeypatch):
    from torch_rdna import _compile

    def fails(gm, inputs, **more):
        raise RuntimeError("no graph today")

    model, x = lived(pair()).to("rdna"), torch.randn(2, 3, 5)
    monkeypatch.setattr(_compile, "backend", fails)
    mine, _ = optimize(model, "balanced")
    with pytest.warns(UserWarning, match="runs without it.*no graph today"), torch.no_grad():
        out = mine(x.to("rdna"))
    close(out, in_float64(model, x))
    with torch.no_grad():
        close(mine(x.to("rdna")), in_float64(model, x))  # and says so once


def test_graph_breaks_are_said():
    model, x = lived(Shut()).to("rdna"), torch.randn(2, 3, 5, device="rdna")
    mine, optimizer = optimize(model, "balanced", example_inputs=x)
    assert any("Dynamo split the model" in w for w in optimizer.result.warnings)
    with torch.no_grad():
        close(mine(x), in_float64(model, x))


class Writes(nn.Module):
    """Two layers of one input, which is written between them."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = x * 2
        first = self.a(x)
        x.add_(1)
        return first, self.b(x)


class Other(nn.Module):
    """Attention in ways that are none of the pattern, or only nearly."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, q, k, v):
        s = q @ k.transpose(-1, -2) * 0.3
        mask = torch.ones(s.shape[-2:], device=s.device).triu(1) * -1e4
        if self.kind == "weights are read":
            w = F.softmax(s, -1)
            return w @ v, w
        if self.kind == "another dimension":
            return F.softmax(s, -2) @ v
        if self.kind == "scaled behind the mask":
            return F.softmax((s + mask) * 0.5, -1) @ v
        if self.kind == "a mask that is wider":
            return F.softmax(s[:1] + mask.expand(3, 1, *mask.shape), -1) @ v[:1]
        if self.kind == "written between":
            product = q @ k.transpose(-1, -2)
            v.mul_(2)
            return F.softmax(product, -1) @ v
        if self.kind == "heads in one dimension":
            q, k, v = (t.flatten(0, 1) for t in (q, k, v))
            return torch.bmm(torch.softmax(torch.bmm(q, k.mT) / 2 + mask, 2), v)
        if self.kind == "in f32":
            return torch.matmul(F.softmax(s + mask, dim=-1, dtype=torch.float32).to(q.dtype), v)
        return F.softmax(mask + s, -1).matmul(v)


@pytest.mark.parametrize("kind, count", [
    ("plain", 1), ("heads in one dimension", 1), ("in f32", 1), ("weights are read", 0), ("another dimension", 0),
    ("scaled behind the mask", 0), ("a mask that is wider", 0), ("written between", 0)])
def test_attention_that_is_written_out(kind, count):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.attention = nn.Linear(16, 48), Other(kind)

        def forward(self, x):
            q, k, v = self.layer(x).view(2, -1, 3, 4, 4).permute(2, 0, 3, 1, 4)
            return self.attention(q, k, v.clone())

    model, x = Layer().eval().to("rdna"), torch.randn(2, 7, 16)
    mine, optimizer = optimize(model, "balanced")
    with torch.no_grad():
        close(mine(x.to("rdna")), in_float64(model, x))
    applied = optimizer.get_optimization_summary()["optimizations_applied"]
    assert ("attention: 1" in applied) == bool(count)


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_multihead_attention(batch_first, read):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 4, dropout=0.1, batch_first=batch_first)

        def forward(self, x):
            out, weights = self.attention(x, x, x)
            return (out, weights) if read else out

    model, x = Layer().eval().to("rdna"), torch.randn(3, 7, 16)
    for grad in (False, True):  # under autograd the layer has no path of its own
        with torch.set_grad_enabled(grad):
            mine, optimizer = optimize(model, "balanced")
            close(mine(x.to("rdna")), in_float64(model, x))
    assert ("attention: 1" in optimizer.get_optimization_summary()["optimizations_applied"]) == (not read)


def test_layers_are_packed_once():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(8, 12), nn.Linear(8, 4), nn.Linear(8, 4)
            self.g, self.h = nn.Linear(20, 5, bias=False), nn.Linear(20, 5, bias=False)

        def forward(self, x):
            x = torch.cat((self.q(x).relu(), self.k(x), self.v(x)), -1)
            return self.g(x) * self.h(x)

    model, x = Layers().eval().to("rdna"), torch.randn(3, 5, 8)
    state = state_of(model)
    mine, optimizer = optimize(model, "aggressive", example_inputs=x.to("rdna"))
    assert "packed layers: 5" in optimizer.get_optimization_summary()["optimizations_applied"]
    assert mine.q.weight.untyped_storage().data_ptr() == mine.v.weight.untyped_storage().data_ptr()
    assert abs(optimizer.result.memory_savings_mb) < 1e-6 and unchanged(mine, state) and unchanged(model, state)
    for rows in (x, x[:1], x[:2, :3]):
        with torch.no_grad():
            close(mine(rows.to("rdna")), in_float64(model, rows))
    # a layer that is given other memory, and one whose values change
    mine.k.weight.data = torch.ones_like(mine.k.weight)
    mine.v.bias.data.fill_(3)
    other = copy.deepcopy(model)
    other.k.weight.data.fill_(1)
    other.v.bias.data.fill_(3)
    with torch.no_grad():
        close(mine(x.to("rdna")), in_float64(other, x))
    # with gradients the layers are their own again
    given = x.to("rdna").requires_grad_()
    mine(given).sum().backward()
    assert all(p.grad is not None for p in mine.parameters())


def test_layers_of_an_input_that_is_written_are_not_packed():
    model, x = Writes().eval().to("rdna"), torch.randn(3, 8)
    mine, optimizer = optimize(model, "aggressive", example_inputs=x.to("rdna"))
    with torch.no_grad():
        close(mine(x.to("rdna")), in_float64(model, x))
    assert not any("packed" in a for a in optimizer.get_optimization_summary()["optimizations_applied"])


class SelfAttention(nn.Module):
    """Layers as vision transformers have them: nn.MultiheadAttention of a batch to itself, its weights unread."""

    def __init__(self, width=12, heads=3, bias=True, batch_first=True):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, heads, bias=bias, batch_first=batch_first)

    def forward(self, x):
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


@pytest.mark.parametrize("bias, batch_first", [(True, True), (False, True), (True, False)])
def test_attention_of_a_batch_to_itself_copies_nothing(bias, batch_first):
    model, x = SelfAttention(bias=bias, batch_first=batch_first).eval().to("rdna"), torch.randn(4, 7, 12)
    mine, optimizer = optimize(model, "balanced", example_inputs=x.to("rdna"))
    with torch.no_grad():
        close(mine(x.to("rdna")), in_float64(model, x))
        if batch_first:  # norm, product, attention, product with the sum
            assert optimizer.result.launches_after == 4, optimizer.result
    assert optimizer.get_optimization_summary()["optimizations_applied"].count("attention without copies: 1") == 1


def test_what_is_slower_on_a_card_is_left_out(monkeypatch):
    """Times are made up: of each model by what was done to it so far."""
    from rdna.amd import measuring

    model, x = convolutions().to("rdna"), torch.randn(2, 3, 8, 8, device="rdna")
    monkeypatch.setattr(measuring.Example, "is_timed", property(lambda self: True))

    def slow(what):
        def milliseconds(self, model):
            self(model)
            done = {"compiled": model._compiled_call_impl is not None,
                    "activation fused": any("Activation" in type(m).__name__ for m in model.modules())}
            return 1.2 if done[what] else 1.0
        return milliseconds

    for what in ("compiled", "activation fused"):
        monkeypatch.setattr(measuring.Example, "milliseconds", slow(what))
        _, optimizer = optimize(model, "balanced", example_inputs=x)
        there = set(names(optimizer))
        assert what not in there, (what, there)
        assert f"{what} was left out: a forward took 1.2 ms with it and 1 ms without" in optimizer.result.warnings, optimizer.result


# ---- training


def losses(model, x, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05)
    seen = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


@pytest.mark.parametrize("level", LEVELS)
def test_training(level):
    def network():
        torch.manual_seed(5)
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.Flatten(),
                             nn.Linear(8 * 16, 5), nn.GELU())

    x, theirs, mine = torch.randn(4, 3, 8, 8), network().double(), network().to("rdna")
    before, inner = state_of(mine), torch.optim.SGD(mine.parameters(), 0.05)  # made before
    strides = [p.stride() for p in mine.parameters()]
    made, optimizer = optimize(mine, level)
    assert made is mine and unchanged(mine, before)
    want = losses(theirs, x.double())
    assert losses(made, x.to("rdna"), inner) == pytest.approx(want, rel=1e-4)
    assert not names(optimizer)
    said = [f"{level} changes what evaluation does: nothing of it makes training steps faster"]
    assert optimizer.result.warnings == (said if level != "aggressive" else []), optimizer.result
    for name, t in mine.state_dict().items():
        torch.testing.assert_close(t.cpu().double(), theirs.state_dict()[name].double(), rtol=1e-3, atol=1e-4)
    trained = state_of(mine)
    assert optimizer.undo(mine) is mine and unchanged(mine, trained) and mine._compiled_call_impl is None
    assert [p.stride() for p in mine.parameters()] == strides
    assert optimizer.undo(mine) is mine


def test_training_in_mixed_precision():
    model, x = nn.Linear(64, 64).to("rdna"), torch.randn(5, 64, device="rdna")
    config = AMDConfig(architecture="cdna3", default_precision="bf16")
    made, optimizer = optimize(model, "aggressive", config, training=True)
    out = made(x)
    out.sum().backward()
    assert out.dtype == torch.bfloat16 and model.weight.grad.dtype == torch.float32
    assert "autocast to bf16" in names(optimizer)
    assert optimizer.undo(made)(x).dtype == torch.float32


def test_the_mode_of_the_model_says_what_it_is_optimized_for():
    model = convolutions().train().to("rdna")
    assert optimize(model, "balanced")[0] is model
    AMDOptimizer(AMDConfig()).undo(model)
    mine, optimizer = optimize(model, "conservative", training=False)
    assert mine is not model and not mine.training and model.training and all(m.training for m in model.modules())


# ---- the interface of the specification


def test_summary_and_result():
    optimizer = AMDOptimizer(AMDConfig(architecture="cdna3", optimization_level="aggressive"))
    optimizer.optimize(nn.Linear(8, 8))
    summary = optimizer.get_optimization_summary()
    assert {"optimization_level": "aggressive", "architecture": "cdna3", "matrix_cores_enabled": True, "mixed_precision": True,
            "operator_fusion": True, "fused_operations": 0, "optimizations_applied": []}.items() <= summary.items()
    result = OptimizationResult(["a"], 1.5, 3.0, ["b"])
    assert (result.optimizations_applied, result.performance_improvement, result.memory_savings_mb, result.warnings) == (
        ["a"], 1.5, 3.0, ["b"])


def test_fusion_can_be_turned_off():
    model, x = convolutions().to("rdna"), torch.randn(2, 3, 8, 8, device="rdna")
    mine, optimizer = optimize(model, "aggressive", AMDConfig(enable_operator_fusion=False), example_inputs=x)
    assert set(names(optimizer)) - {"channels last"} == {"dropout removed", "batch norm folded"}


# ---- an emulated card

ON_A_CARD = """
import torch, torch_rdna
from networks import lived
from rdna.amd import AMDBackend, AMDConfig, AMDOptimizer
from torch import nn

torch.manual_seed(0)
model = lived(nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(),
                            nn.Linear(32, 16), nn.GELU(), nn.Dropout()))
x = torch.randn(2, 3, 6, 6)
want = model.double()(x.double()).detach()
model, x = model.float().to("rdna"), x.to("rdna")
for level, tolerance in (("conservative", 1e-5), ("balanced", 1e-5), ("aggressive", 1e-2)):
    optimizer = AMDOptimizer(AMDConfig(default_precision="fp16"))
    out = optimizer.optimize(model, level, example_inputs=x)(x).detach().cpu().double()
    assert (out - want).abs().max() <= tolerance * want.abs().max(), level
    assert optimizer.result.launches_after < optimizer.result.launches_before == 6, optimizer.result
torch.rdna.synchronize()
print("right on", torch.rdna.get_device_name())
"""


def test_each_level_on_an_emulated_card():
    beside = [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "RDNA_DRIVER": "hip", "RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1",
                   "PYTHONPATH": os.pathsep.join(beside)}
    there = subprocess.run([sys.executable, "-c", "import torch_rdna as r; print(r.device_count(), r._C.unavailable())"],
                           env=environment, capture_output=True, text=True)
    if there.stdout.startswith("0 ") and "librdna_emulator.so" in there.stdout:
        pytest.skip(f"no emulated card, as the emulator was not built: {there.stdout}")
    done = subprocess.run([sys.executable, "-c", ON_A_CARD], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines()[-1:] and done.stdout.splitlines()[-1].startswith("right on"), done.stdout + done.stderr
    assert "rdna emulator" not in done.stderr, done.stderr[-4000:]
