"""float64: elementary functions and what is made of them, to a few units in the last place, and nothing falls back."""

import pytest
import torch
import torch.nn.functional as F


pytestmark = pytest.mark.usefixtures("nothing_falls_back")


def doubles(*shape):
    return torch.randn(shape, dtype=torch.float64)


def same(ours, theirs, units=8):
    size = theirs.abs().nan_to_num(0, 0, 0).max().item() if theirs.numel() else 0
    torch.testing.assert_close(ours.cpu(), theirs, rtol=units * 2.0**-52, atol=units * 2.0**-54 * size, equal_nan=True)


FUNCTIONS = {name: getattr(torch, name) for name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh erf sigmoid asin acos atan sinh cosh asinh acosh atanh sinc "
    "logit angle").split()}
FUNCTIONS.update({name: getattr(F, name) for name in "silu gelu mish softplus elu selu celu logsigmoid".split()})
FUNCTIONS["gelu_tanh"] = lambda x: F.gelu(x, approximate="tanh")
FUNCTIONS["pow"] = lambda x: x**2.5
FUNCTIONS["round"] = lambda x: torch.round(x, decimals=3)
FUNCTIONS["softmax"] = lambda x: F.softmax(x, 0)
FUNCTIONS["log_softmax"] = lambda x: F.log_softmax(x, 1)
FUNCTIONS["glu"] = lambda x: F.glu(x, 1)
FUNCTIONS["entr"] = torch.special.entr
FUNCTIONS["norms"] = lambda x: torch.stack([torch.linalg.vector_norm(x, p) for p in (0, 0.5, 1, 2, 3.5, -1, float("inf"))])
FUNCTIONS["product"] = lambda x: torch.addmm(x[:, :1], x, x.t(), beta=0.3, alpha=0.1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_their_gradients(name):
    x = doubles(17, 20)
    if name in ("logit", "atanh", "asin", "acos"):
        x = torch.tanh(x) * (0.5 if name == "logit" else 1) + (0.5 if name == "logit" else 0)
    leaf, ours = x.clone().requires_grad_(), x.to("rdna").requires_grad_()
    expected, found = FUNCTIONS[name](leaf), FUNCTIONS[name](ours)
    same(found.detach(), expected.detach(), 64 if name in ("asinh", "acosh", "atanh", "logit", "norms") else 8)
    pull = torch.randn_like(expected)
    if expected.requires_grad:
        (a,), (b,) = torch.autograd.grad(expected, leaf, pull), torch.autograd.grad(found, ours, pull.to("rdna"))
        near = torch.isfinite(a)  # where the function has a gradient
        same(b.cpu()[near], a[near], 64)


PAIRS = {name: getattr(torch, name) for name in (
    "atan2 fmod remainder floor_divide hypot logaddexp logaddexp2 xlogy copysign pow").split()}


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two(name):
    a, b = doubles(13, 7), doubles(7)
    same(PAIRS[name](a.to("rdna"), b.to("rdna")), PAIRS[name](a, b))
    if name not in ("hypot", "logaddexp", "logaddexp2", "atan2"):
        same(PAIRS[name](a.to("rdna"), 1.3), PAIRS[name](a, 1.3))


LOSSES = {
    "mse": F.mse_loss, "smooth_l1": lambda x, t, **o: F.smooth_l1_loss(x, t, beta=0.7, **o),
    "huber": lambda x, t, **o: F.huber_loss(x, t, delta=0.4, **o),
    "bce": lambda x, t, **o: F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(t), weight=t.abs(), **o),
    "bce_logits": lambda x, t, **o: F.binary_cross_entropy_with_logits(x, torch.sigmoid(t), **o),
    "nll": lambda x, t, **o: F.cross_entropy(x, t.abs().argmax(1).masked_fill(t[:, 0] > 1, -100), weight=t[0].abs(), **o),
    "nll2d": lambda x, t, **o: F.nll_loss(F.log_softmax(x[:, :, None, None], 1), t.abs().argmax(1)[:, None, None], **o),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction):
    x, t = doubles(15, 6), doubles(15, 6)
    leaf, ours = x.clone().requires_grad_(), x.to("rdna").requires_grad_()
    expected, found = LOSSES[name](leaf, t, reduction=reduction), LOSSES[name](ours, t.to("rdna"), reduction=reduction)
    same(found.detach(), expected.detach(), 32)
    pull = torch.randn_like(expected)
    (a,), (b,) = torch.autograd.grad(expected, leaf, pull), torch.autograd.grad(found, ours, pull.to("rdna"))
    same(b, a, 64)


CONVOLUTIONS = [(1, dict(stride=2, padding=1)), (2, dict(padding=(2, 1), dilation=2, groups=2)), (2, dict(stride=3)),
                (3, dict(padding=1)), (1, dict(transposed=True, stride=3, output_padding=2)),
                (2, dict(transposed=True, stride=2, padding=1, output_padding=1, groups=2)),
                (3, dict(transposed=True, dilation=2))]


@pytest.mark.parametrize("dims, options", CONVOLUTIONS)
def test_convolutions_and_their_gradients(dims, options):
    options = dict(options)
    transposed, groups = options.pop("transposed", False), options.get("groups", 1)
    f = getattr(F, f"conv{'_transpose' if transposed else ''}{dims}d")
    parts = (doubles(2, 4, *(11, 9, 8)[:dims]), doubles(4, 6 // groups if transposed else 4 // groups, *(3, 2, 3)[:dims])
             if transposed else doubles(6, 4 // groups, *(3, 2, 3)[:dims]), doubles(6))
    leaves, ours = ([t.to(place).requires_grad_() for t in parts] for place in ("cpu", "rdna"))
    expected, found = f(*leaves, **options), f(*ours, **options)
    same(found.detach(), expected.detach(), 64)
    pull = torch.randn_like(expected)
    for b, a in zip(torch.autograd.grad(found, ours, pull.to("rdna")), torch.autograd.grad(expected, leaves, pull)):
        same(b, a, 256)


def test_random_numbers_have_all_their_bits():
    n = 200000
    u = torch.empty(n, dtype=torch.float64, device="rdna").uniform_(2, 5).cpu()
    z = torch.empty(n, dtype=torch.float64, device="rdna").normal_(1, 2).cpu()
    e = torch.empty(n, dtype=torch.float64, device="rdna").exponential_(2).cpu()
    for sample, mean, deviation in ((u, 3.5, 3 / 12**0.5), (z, 1, 2), (e, 0.5, 0.5)):
        assert abs(sample.mean().item() - mean) < 0.02 and abs(sample.std().item() - deviation) < 0.02
        assert (sample != sample.float().double()).float().mean() > 0.99
    assert u.min() >= 2 and u.max() < 5 and e.min() >= 0
    kept = F.dropout(torch.ones(n, dtype=torch.float64, device="rdna"), 0.25)
    assert set(kept.unique().tolist()) == {0, 1 / 0.75} and abs(kept.mean().item() - 1) < 0.01


def test_a_network_trains():
    def losses(place):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(),
                                    torch.nn.Linear(16, 4)).double().to(place)
        x, t = doubles(32, 8).to(place), torch.randint(0, 4, (32,)).to(place)
        optimizer, seen = torch.optim.SGD(model.parameters(), 0.1), []
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), t)
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        return torch.tensor(seen, dtype=torch.float64)
    torch.testing.assert_close(losses("rdna"), losses("cpu"), rtol=1e-12, atol=0)
