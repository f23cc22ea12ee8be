"""Complex numbers on the device against PyTorch on the CPU in complex128; nothing falls back."""

import math

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.complex64, torch.complex128]


def random(*shape, dtype, real=False):
    x = torch.randn(shape, dtype=torch.float64)
    return x.to(dtype.to_real()) if real else torch.complex(x, torch.randn(shape, dtype=torch.float64)).to(dtype)


def wide(x):
    return x.cpu().to(torch.complex128 if x.is_complex() else torch.float64) if isinstance(x, torch.Tensor) else x


def agree(found, expected, dtype, units=16):
    """Within |units| of the largest value, and not conjugated where it should not be."""
    assert found.device.type == "rdna" and found.shape == expected.shape
    assert found.is_complex() == expected.is_complex()
    found, expected = wide(found), wide(expected).resolve_conj().resolve_neg()
    size = expected.abs().max().item() if expected.numel() else 0
    assert torch.allclose(found, expected, rtol=0, atol=units * torch.finfo(dtype).eps * size)


def check(f, *arguments, dtype, units=16):
    """|f| of what is on the device, beside |f| in complex128 on the CPU."""
    agree(f(*(x.to("rdna") if isinstance(x, torch.Tensor) else x for x in arguments)), f(*map(wide, arguments)), dtype,
          units)


TURNS = {
    "plain": lambda t: t,
    "turned": lambda t: t.mT.contiguous().mT,
    "conj": torch.conj,
    "adjoint": lambda t: t.mT.contiguous().mH,
    "gaps": lambda t: torch.empty(*t.shape, 3, dtype=t.dtype, device=t.device)[..., 1].copy_(t),
    "negated": torch._neg_view,
}


@pytest.mark.parametrize("dtype", TYPES)
def test_products(dtype):
    a, b = random(7, 5, dtype=dtype), random(5, 9, dtype=dtype)
    c, v = random(7, 9, dtype=dtype), random(5, dtype=dtype)
    stack, other = random(3, 7, 5, dtype=dtype), random(3, 5, 9, dtype=dtype)
    for left in TURNS.values():
        for right in TURNS.values():
            check(lambda a, b: left(a) @ right(b), a, b, dtype=dtype)
            check(lambda a, b: left(a) @ right(b), stack, other, dtype=dtype)
        check(lambda a, v: left(a) @ v.conj(), a, v, dtype=dtype)
        check(lambda c, a, b: torch.addmm(left(c), left(a), b, beta=0.5j, alpha=2 - 1j), c, a, b, dtype=dtype)
        check(lambda c, a, b: torch.baddbmm(left(c), left(a), b), c, stack, other, dtype=dtype)
        check(lambda a, v: torch.addmv(v.conj(), left(a), v, beta=2, alpha=-1j), random(5, 5, dtype=dtype), v, dtype=dtype)
    check(torch.dot, v, random(5, dtype=dtype).conj(), dtype=dtype)
    check(torch.vdot, v, random(5, dtype=dtype), dtype=dtype)
    check(lambda a, b: torch.einsum("bixy,ioxy->boxy", a, b), random(2, 3, 4, 5, dtype=dtype), random(3, 6, 4, 5, dtype=dtype),
          dtype=dtype)
    check(lambda a, b: a @ b, random(4, 0, dtype=dtype), random(0, 3, dtype=dtype), dtype=dtype)
    check(lambda a, b: a.expand(3, 7, 5) @ b, a, other, dtype=dtype)
    out = torch.full((9, 7), math.nan, dtype=dtype, device="rdna").mH  # lazily conjugated
    torch.mm(a.to("rdna"), b.to("rdna"), out=out)
    agree(out, wide(a) @ wide(b), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_pointwise(dtype):
    x, y = random(6, 1, 33, dtype=dtype), random(4, 33, dtype=dtype)
    r = random(4, 33, dtype=dtype, real=True)
    for turn in (lambda t: t, torch.conj, lambda t: t.mT.contiguous().mT, lambda t: t[..., ::2]):
        for f in (torch.add, torch.sub, torch.mul, torch.div, lambda a, b: torch.add(a, b, alpha=2 - 3j),
                  lambda a, b: a.pow(b), lambda a, b: torch.sub(a, b, alpha=0.5),
                  lambda a, b: torch.where(b.real > 0, a, b), torch.rsub):
            check(lambda a, b: f(turn(a), turn(b)), x, y, dtype=dtype, units=64)
        for f in (torch.mul, torch.add, torch.div, torch.sub):
            check(lambda a, b: f(turn(a), b[..., : turn(a).shape[-1]]), x, r, dtype=dtype)
            check(lambda a, b: f(b[..., : turn(a).shape[-1]], turn(a)), x, r, dtype=dtype, units=64)
        for f in (torch.abs, torch.angle, torch.neg, torch.exp, torch.log, torch.sqrt, torch.reciprocal, torch.sin, torch.cos,
                  torch.tan, torch.sinh, torch.cosh, torch.tanh, torch.sgn, torch.square, torch.conj_physical, torch.real, torch.imag,
                  lambda a: a * 2j, lambda a: 3 / a, lambda a: a + (1 - 2j), lambda a: 2 - a, lambda a: a ** 3, lambda a: a ** -1,
                  lambda a: a ** (1 + 2j), lambda a: 2j ** a, lambda a: a.conj() * a, lambda a: a.imag.neg() + a.conj().imag,
                  lambda a: a.resolve_conj(), lambda a: a.masked_fill(a.real > 0, 2 - 1j)):
            check(lambda a: f(turn(a)), x, dtype=dtype, units=64)
    assert torch.equal((x.to("rdna") * x.to("rdna").conj()).imag.cpu(), torch.zeros(6, 1, 33, dtype=dtype.to_real()))
    check(torch.complex, r, r.flip(0).clone(), dtype=dtype)
    check(torch.polar, r.abs(), r.flip(0).clone(), dtype=dtype)


EDGES = [0.0, -0.0, 0.25, -0.25, 1.0, -1.0, 2.0, -2.0, 1e-4, -1e-4, 30.0, -30.0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh", "expm1", "log1p", "sigmoid", "sinc"])
def test_functions(name, dtype):
    """Near 0, on both sides of the cuts, by the sign of a zero, and far out, each as near as its own size."""
    edges = torch.tensor(EDGES, dtype=dtype.to_real())
    x = torch.cat([torch.complex(*(t.flatten() for t in torch.meshgrid(edges, edges, indexing="ij"))), 3 * random(200, dtype=dtype)])
    found = getattr(torch, name)(x.to("rdna"))
    assert found.dtype == dtype
    want = getattr(torch, name)(x.to(torch.complex128))
    pole = ~torch.isfinite(want.to(dtype))  # or more than the type holds
    assert pole.sum() <= 48 and not torch.isfinite(found.cpu()[pole]).any()
    off = (found.cpu().to(torch.complex128) - want)[~pole].abs()
    assert (off <= 256 * torch.finfo(dtype).eps * want[~pole].abs() + 1e-300).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_inverse_tangents_of_infinity(dtype):
    """As C17's annex G has them: i pi / 2 of the hyperbolic one, in every direction."""
    ends = torch.tensor([math.inf, -math.inf, 2.0, -2.0, 0.0], dtype=dtype.to_real())
    x = torch.complex(*(t.flatten() for t in torch.meshgrid(ends, ends, indexing="ij")))
    x = x[x.isinf()]
    for f in (torch.atan, torch.atanh):
        torch.testing.assert_close(f(x.to("rdna")).cpu(), f(x))


@pytest.mark.parametrize("dtype", TYPES)
def test_functions_of_several(dtype):
    x, y = random(5, 7, dtype=dtype), random(5, 7, dtype=dtype)
    check(torch.logaddexp, x, y, dtype=dtype)
    for dim in (0, 1):
        check(lambda t: torch.cumprod(t, dim), x, dtype=dtype, units=64)
        check(lambda t: torch.logcumsumexp(t, dim).exp(), x, dtype=dtype, units=64)  # a logarithm is one of many
        for ours, theirs in zip(torch.var_mean(x.to("rdna"), dim), torch.var_mean(wide(x), dim)):
            agree(ours, theirs, dtype)
    check(F.silu, x, dtype=dtype)
    check(lambda t: torch.renorm(t, 2, 0, 1.5), x, dtype=dtype)
    assert torch.count_nonzero(x.to("rdna") * 0).item() == 0 and torch.count_nonzero(x.to("rdna")).item() == 35
    for f in (torch.logical_and, torch.logical_or, torch.logical_xor):
        z = torch.tensor([0, 1j, 2, 0], dtype=dtype)
        assert torch.equal(f(z.to("rdna"), z.flip(0).to("rdna")).cpu(), f(z, z.flip(0)))
    ends = {"dtype": dtype, "device": "rdna"}
    agree(torch.linspace(1 + 2j, -3 - 1j, 9, **ends), torch.linspace(1 + 2j, -3 - 1j, 9, dtype=torch.complex128), dtype)
    agree(torch.logspace(0.5 + 2j, -1 - 1j, 9, **ends), torch.logspace(0.5 + 2j, -1 - 1j, 9, dtype=torch.complex128), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_moves_of_parts(dtype):
    """Operators whose dimensions have meanings, with gradients: of each part alone."""
    x, image = random(3, 4, 5, dtype=dtype), random(2, 4, 6, 6, dtype=dtype)
    at = torch.tensor([[0, 2, 1], [1, 1, 0]])
    calls = {
        "reflection 1": (lambda t: F.pad(t, (2, 1), "reflect"), x),
        "reflection 2": (lambda t: F.pad(t, (2, 1, 0, 3), "reflect"), image),
        "replication 1": (lambda t: F.pad(t, (2, 1), "replicate"), x),
        "replication 2": (lambda t: F.pad(t, (2, 1, 0, 3), "replicate"), image),
        "replication 3": (lambda t: F.pad(t, (1, 1, 1, 0, 0, 2), "replicate"), image),
        "unfold": (lambda t: F.unfold(t, 3, padding=1), image),
        "shuffle": (lambda t: F.channel_shuffle(t, 2), image),
        "trace": (lambda t: t[0].trace(), x),
        "filled": (lambda t: t.index_fill(1, torch.tensor([0, 2], device=t.device), 2 - 3j), x),
        "masked": (lambda t: t.masked_fill(t.real > 0, torch.tensor(2 - 3j, dtype=t.dtype, device=t.device)), x),
        "value": (lambda t: t[0].scatter(0, at.to(t.device), 1 + 4j), x),
        "added": (lambda t: t[0].scatter(0, at.to(t.device), t[1], reduce="add"), x.detach()),
        "put": (lambda t: t.put(torch.tensor([3, 3, 9], device=t.device), t[0, 0, :3], accumulate=True), x),
        "windows": (lambda t: t.unfold(2, 3, 2), x),
    }
    for name, (f, value) in calls.items():
        check(f, value, dtype=dtype)
        if name == "added":
            continue
        slopes = []
        for t in (value.to("rdna"), wide(value)):
            t.requires_grad_()
            (slope,) = torch.autograd.grad(f(t).abs().sum(), t)
            slopes.append(slope)
        agree(slopes[0], slopes[1], dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_reals_do_not_become_both_parts(dtype):
    torch.rdna.set_fallback_mode("allow")
    x, real, at = random(3, 4, dtype=dtype).to("rdna"), torch.ones(3, 4, dtype=dtype.to_real(), device="rdna"), torch.tensor([[0, 1, 2, 0]], device="rdna")
    for call in (lambda: x.scatter(0, at, real, reduce="add"), lambda: x.clone().put_(at[0], real[0]), lambda: x.put(at[0], real[0], accumulate=True)):
        with pytest.raises(RuntimeError, match="dtype"):
            call()


@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons(dtype):
    x = random(5, 9, dtype=dtype)
    y = torch.where(random(5, 9, dtype=dtype).real > 0, x, torch.complex(x.real, -x.imag))
    for f in (torch.eq, torch.ne):
        assert torch.equal(f(x.to("rdna"), y.to("rdna")).cpu(), f(x, y))
        assert torch.equal(f(x.to("rdna"), x[0, 0].item()).cpu(), f(x, x[0, 0].item()))
    x[1, 2] = complex(math.nan, 0)
    x[2, 3] = complex(0, math.inf)
    for f in (torch.isnan, torch.isinf):
        assert torch.equal(f(x.to("rdna")).cpu(), f(x))


@pytest.mark.parametrize("dtype", TYPES)
def test_copies(dtype):
    x = random(5, 6, dtype=dtype)
    for turn in TURNS.values():
        given = turn(x.to("rdna"))
        assert torch.equal(given.clone().cpu(), turn(x).resolve_conj().resolve_neg())
        for other in TYPES:
            assert torch.allclose(given.to(other).cpu(), turn(x).to(other).resolve_conj(), rtol=1e-6)
        for to in TURNS.values():
            place = to(torch.zeros(5, 6, dtype=dtype, device="rdna"))
            place.copy_(given)
            assert torch.equal(place.resolve_conj().resolve_neg().cpu(), turn(x).resolve_conj().resolve_neg())
    same = x.to("rdna")
    same.copy_(same.conj())
    assert torch.equal(same.cpu(), x.conj().resolve_conj())
    filled = torch.conj(torch.empty(3, 4, dtype=dtype, device="rdna")).fill_(1 - 2j)
    assert torch.equal(filled.cpu(), torch.full((3, 4), 1 - 2j, dtype=dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_moves(dtype):
    x, y = random(5, 7, dtype=dtype), random(5, 2, dtype=dtype)
    index, mask = torch.randint(5, (3, 7)), torch.rand(5, 7) > 0.5
    for turn in (lambda t: t, torch.conj, lambda t: t.mT.contiguous().mT):
        for f in (lambda a, b: torch.cat([a, b], -1), lambda a, b: torch.stack([a, turn(a)], 1), lambda a, b: a.flip(0, -1),
                  lambda a, b: a.roll((1, -2), (0, 1)), lambda a, b: F.pad(a, (1, 2)), lambda a, b: a.tril(-1) + a.triu(1),
                  lambda a, b: a.index_select(-1, index[0].to(a.device)), lambda a, b: a[index[:, 0].to(a.device)],
                  lambda a, b: a.gather(0, index.to(a.device)), lambda a, b: a.scatter_add(0, index.to(a.device), a[:3]),
                  lambda a, b: a.index_add(1, index[0, :2].to(a.device), b), lambda a, b: a[mask.to(a.device)],
                  lambda a, b: a.clone().index_put_((index[0, :2].to(a.device),), b.mT[:, :1]),
                  lambda a, b: a.repeat(2, 3), lambda a, b: a.rsqrt() + a.log2() + a.log10() + a.exp2()):
            check(lambda a, b: f(turn(a), turn(b)), x, y, dtype=dtype, units=64)
    assert torch.equal(x.to("rdna").nonzero().cpu(), x.nonzero()) and torch.equal(x.to("rdna"), x.to("rdna"))
    normal = torch.randn(100, 100, dtype=dtype, device="rdna")
    for part in (normal.real, normal.imag):  # variances of a half, within six of their deviations
        assert abs(part.var().item() - 0.5) < 6 * 0.5 * math.sqrt(2 / 1e4) and abs(part.mean().item()) < 6 * math.sqrt(0.5e-4)


@pytest.mark.parametrize("dtype", TYPES)
def test_reductions(dtype):
    x = random(5, 7, 6, dtype=dtype)
    for turn in (lambda t: t, torch.conj, lambda t: t.transpose(0, 2)):
        for f in (torch.sum, torch.mean, torch.prod, torch.std, torch.var, torch.linalg.vector_norm,
                  lambda a: a.sum((0, -1)), lambda a: a.sum(1, keepdim=True), lambda a: a.mean(-1), lambda a: a.prod(1),
                  lambda a: a.prod(0, keepdim=True), lambda a: a.var(1), lambda a: a.norm(dim=1),
                  lambda a: torch.linalg.vector_norm(a, 1, dim=(0, 2)), lambda a: torch.linalg.vector_norm(a, math.inf),
                  lambda a: a.cumsum(1)):
            check(lambda a: f(turn(a)), x, dtype=dtype, units=64)
    empty = torch.empty(3, 0, dtype=dtype)
    for f in (torch.sum, torch.prod, lambda a: a.sum(1), lambda a: a.prod(1)):
        check(f, empty, dtype=dtype)


@pytest.mark.parametrize("name, function", {
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "matmul": lambda a, b: a @ b.mH,
    "abs": lambda a, b: a.abs() + b.abs(),
    "angle": lambda a, b: a.angle() * b.real,
    "powers": lambda a, b: a ** 2 + b ** 3 + a.sqrt() * b.reciprocal(),
    "exp": lambda a, b: a.exp() + b.log() + a.sin() * b.cos() + a.tanh(),
    "polar": lambda a, b: torch.polar(a.abs(), b.angle()) + torch.complex(a.real, b.imag),
    "sums": lambda a, b: a.sum(0) * b.mean(1).sum() + a.prod(0),
    "norm": lambda a, b: torch.linalg.vector_norm(a, dim=1) + b.conj().imag.sum(1),
    "irfft": lambda a, b: torch.fft.irfft2(a * b.conj()),
    "where": lambda a, b: torch.where(a.real > 0, a, b.conj()) * torch.view_as_real(b).sum(-1),
}.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_gradients(name, function):
    a, b = random(4, 6, dtype=torch.complex128), random(4, 6, dtype=torch.complex128)
    given = []
    for device in ("cpu", "rdna"):
        on = [x.to(device).requires_grad_() for x in (a, b)]
        out = function(*on)
        weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape).to(out.dtype).to(device)
        given.append(torch.autograd.grad(out, on, weight * (1 + 2j) if out.is_complex() else weight))
    for there, here in zip(*given):
        agree(here, there, torch.complex128, units=64)


class SpectralConv(torch.nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes, self.weight = modes, torch.nn.Parameter(random(2, width, width, modes, modes, dtype=torch.complex64) / width)

    def forward(self, x):
        m, spectrum = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.weight[0])
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.weight[1])
        return torch.fft.irfft2(out, s=x.shape[-2:])


@pytest.mark.parametrize("foreach", [False, True])
def test_a_fourier_operator_trains(foreach):
    """Losses of steps of Adam over complex weights, beside those in float64."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 1), SpectralConv(8, 3), torch.nn.GELU(), torch.nn.Conv2d(8, 1, 1))
    x, y, losses = torch.randn(2, 3, 12, 12), torch.randn(2, 1, 12, 12), []
    start = {name: value.clone() for name, value in model.state_dict().items()}
    for device, dtype in (("cpu", torch.float64), ("rdna", torch.float32)):
        model.load_state_dict(start)
        model.to(device)
        for p in model.parameters():
            p.data = p.data.to(dtype.to_complex() if p.is_complex() else dtype)
        here, there = x.to(device, dtype), y.to(device, dtype)
        optimizer = torch.optim.Adam(model.parameters(), 1e-2, foreach=foreach)
        losses.append([])
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.mse_loss(model(here), there)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0][-1] < losses[0][0]
    assert torch.allclose(*map(torch.tensor, losses), rtol=1e-5)
