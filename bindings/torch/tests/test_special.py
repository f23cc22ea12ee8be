"""Special functions beside mpmath's in 40 digits, their gradients, edges as the CPU has them; nothing falls back."""

import math

import mpmath
import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

mp = mpmath.mp.clone()
mp.dps = 40
S = torch.special
TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def erfinv(x):
    return mp.erfinv(x)


def ndtri(p):
    return mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p) - 1)


def scaled(n):
    return lambda x: mp.besseli(n, x) * mp.exp(-abs(x))


def around(size):
    """Of both signs, small ones and large ones."""
    return lambda n: torch.cat([torch.randn(n), size * torch.randn(n), 1e-3 * torch.randn(n)]).double()


def positive(n):
    return torch.cat([torch.rand(n), 4 * torch.rand(n), 60 * torch.rand(n), 1 + 0.01 * torch.randn(n)]).double() + 0.01


def within(n):
    """In (-1, 1), many of them near its ends."""
    x = torch.cat([2 * torch.rand(n) - 1, 1 - 10 ** (-3 * torch.rand(n)), -1e-3 * torch.rand(n)]).double()
    return x.clamp(-0.99, 0.99)


# name: ours, mpmath's, arguments, units of 2^-52 that rdna/op/special.h allows of the result, or of the size if that is more
FUNCTIONS = {
    "erfc": (S.erfc, mp.erfc, around(4), 4, None),
    "erfinv": (S.erfinv, erfinv, within, 8, None),
    "ndtri": (S.ndtri, ndtri, lambda n: (within(n) + 1) / 2, 16, lambda x: 1),
    "lgamma": (torch.lgamma, lambda x: mp.log(abs(mp.gamma(x))), around(20), 16, lambda x: mp.log(abs(x)) + abs(mp.loggamma(abs(x))) + 1),
    "lgamma above 0": (torch.lgamma, mp.loggamma, positive, 8, None),
    "digamma": (S.digamma, mp.digamma, around(4), 16, lambda x: 1 + abs(mp.pi * mp.cot(mp.pi * x)) + mp.log(2 + abs(x))),
    "i0": (S.i0, lambda x: mp.besseli(0, x), around(10), 16 + 2 * 60, None),
    "i0e": (S.i0e, scaled(0), around(20), 16, None),
    "i1": (S.i1, lambda x: mp.besseli(1, x), around(10), 16 + 2 * 60, None),
    "i1e": (S.i1e, scaled(1), around(20), 16, None),
    "modified_bessel_i0": (S.modified_bessel_i0, lambda x: mp.besseli(0, x), around(3), 16 + 2 * 60, None),
    "bessel_j0": (S.bessel_j0, lambda x: mp.besselj(0, x), around(20), 8, lambda x: 1),
    "bessel_j1": (S.bessel_j1, lambda x: mp.besselj(1, x), around(20), 8, lambda x: 1),
    "bessel_y0": (S.bessel_y0, lambda x: mp.bessely(0, x), positive, 8, lambda x: 1),
    "bessel_y1": (S.bessel_y1, lambda x: mp.bessely(1, x), positive, 8, lambda x: 1),
    "modified_bessel_k0": (S.modified_bessel_k0, lambda x: mp.besselk(0, x), positive, 16 + 2 * 60, None),
    "modified_bessel_k1": (S.modified_bessel_k1, lambda x: mp.besselk(1, x), positive, 16 + 2 * 60, None),
    "scaled_modified_bessel_k0": (S.scaled_modified_bessel_k0, lambda x: mp.besselk(0, x) * mp.exp(x), positive, 16, None),
    "scaled_modified_bessel_k1": (S.scaled_modified_bessel_k1, lambda x: mp.besselk(1, x) * mp.exp(x), positive, 16, None),
    "airy_ai": (S.airy_ai, mp.airyai, around(8), 16 + 2 * 60**1.5, lambda x: x < 0),
    "modified_bessel_i1": (S.modified_bessel_i1, lambda x: mp.besseli(1, x), around(3), 16 + 2 * 60, None),
    "asin": (torch.asin, mp.asin, within, 4, None),
    "acos": (torch.acos, mp.acos, within, 4, None),
    "atan": (torch.atan, mp.atan, around(20), 4, None),
    "sinh": (torch.sinh, mp.sinh, around(20), 4, None),
    "cosh": (torch.cosh, mp.cosh, around(20), 4, None),
    "asinh": (torch.asinh, mp.asinh, around(20), 4, None),
    "acosh": (torch.acosh, mp.acosh, lambda n: 1 + positive(n), 4, None),
    "atanh": (torch.atanh, mp.atanh, within, 4, None),
    **{
        f"polygamma {k}": (lambda x, k=k: torch.polygamma(k, x), lambda x, k=k: mp.psi(k, x), positive, 64 + 4 * k, lambda x: 1)
        for k in (0, 1, 2, 3, 7)
    },
}


def assert_near(got, wanted, sizes, units):
    """|got| is rounded once from a float64 off by |units|; f16 and bf16 by float32, once more."""
    kind = torch.finfo(got.dtype)
    step = kind.smallest_normal * kind.eps
    for g, w, s in zip(got.detach().cpu().flatten().tolist(), wanted, sizes):
        if abs(w) >= kind.max * (1 + kind.eps / 2):
            assert g == math.copysign(math.inf, w)
            continue
        rounding = 0 if got.dtype == torch.float64 else (kind.eps / 2 + 2.0**-24 * (got.dtype != torch.float32)) * abs(w) + step
        room = units * 2.0**-52 * max(abs(w), s) + rounding + 2.0**-1074
        assert math.isinf(g) and abs(w) * (1 + kind.eps) > kind.max or abs(g - w) <= room, (g, w, float(abs(g - w) / room))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, dtype):
    ours, exact, arguments, units, size = FUNCTIONS[name]
    x = arguments(25).to(dtype)
    x = x[(x != x.round()) & (x.abs() < 60) & (x != 1)] if "amma" in name else x[x.abs() < 60]
    values = [mp.mpf(v) for v in x.tolist()]
    got = ours(x.to("rdna"))
    assert got.dtype == dtype
    assert_near(got, [exact(v) for v in values], [size(v) if size else 0 for v in values], units)


# The derivative, and the size of the largest of the terms that PyTorch adds for it, enlarged by what a rounding of x's
# square or of the function's value does to an exponential.
GRADIENTS = {
    "erfc": lambda x: [-2 / mp.sqrt(mp.pi) * mp.exp(-x * x), x * x * mp.exp(-x * x)],
    "erfinv": lambda x: [d := mp.sqrt(mp.pi) / 2 * mp.exp(erfinv(x) ** 2), d * (1 + 2 * erfinv(x) ** 2)],
    "ndtri": lambda x: [d := mp.sqrt(2 * mp.pi) * mp.exp(ndtri(x) ** 2 / 2), d * (1 + abs(ndtri(x)) + ndtri(x) ** 2)],
    "lgamma above 0": lambda x: [mp.digamma(x), 1],
    "i0": lambda x: [mp.besseli(1, x), 0],
    "i0e": lambda x: [scaled(1)(x) - mp.sign(x) * scaled(0)(x), scaled(0)(x)],
    "i1": lambda x: [mp.besseli(0, x) - mp.besseli(1, x) / x, mp.besseli(0, x)],
    "i1e": lambda x: [scaled(0)(x) - scaled(1)(x) * (mp.sign(x) + 1 / x), scaled(0)(x)],
    **{f"polygamma {k}": lambda x, k=k: [mp.psi(k + 1, x), 1] for k in (0, 1, 3)},
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    ours, _, arguments, units, _ = FUNCTIONS[name]
    x = arguments(15)
    x = x[x.abs() < 60]
    on = x.to("rdna").requires_grad_()
    (got,) = torch.autograd.grad(ours(on), on, torch.full_like(on, 2))
    rows = [GRADIENTS[name](mp.mpf(v)) for v in x.tolist()]
    assert_near(got, [2 * r[0] for r in rows], [2 * r[1] for r in rows], 2 * units + 16)


def test_second_gradient_of_lgamma():
    x = positive(10)
    on = x.to("rdna").requires_grad_()
    (first,) = torch.autograd.grad(torch.lgamma(on).sum(), on, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), on)
    assert_near(second, [mp.psi(1, v) for v in x.tolist()], [0] * len(x), 68)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "lgamma above 0"])
def test_edges(name, dtype):
    """Poles, ends, infinities, NaN and huge values as on the CPU in float64, but for its NaN at infinity, where the limits
    are wanted, and its finite trigamma at poles."""
    ours = FUNCTIONS[name][0]
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, -2.0, -7.0, math.inf, math.nan, 1e4, -1e4, 2.0, 1e-4, -math.inf], dtype=dtype)
    x = x[:-1] if "polygamma" in name else x
    want = ours(x.double())
    if name.endswith(("i0", "i1")):
        want = torch.where(x.isinf(), x.double().abs() if name.endswith("i0") else x.double(), want)
    if name.startswith(("bessel_", "airy")):
        want = want.masked_fill(x.isposinf() | (x.isneginf() & (not name.startswith("bessel_y"))), 0)
    if name.startswith("polygamma") and name != "polygamma 0":
        want[6] = 0
    if name == "polygamma 1":
        want[(x < 0) & (x == x.round())] = math.inf
    apart = 1e-6 if name.startswith("bessel_") else 0  # the CPU's are off by up to 2e-7 between their roots
    torch.testing.assert_close(ours(x.to("rdna")).cpu(), want.to(dtype), rtol=4 * torch.finfo(dtype).eps + 1e-9, atol=apart, equal_nan=True)
    zero = ours(torch.tensor([-0.0], dtype=dtype, device="rdna")).cpu()
    if name in ("erfinv", "i1", "i1e", "asin", "atan", "sinh", "asinh", "atanh"):
        assert torch.signbit(zero).item()


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "lgamma above 0"])
def test_layouts_types_and_outputs(name):
    ours = FUNCTIONS[name][0]
    x = (0.05 + 0.9 * torch.rand(6, 10) + (name == "acosh")).to("rdna")
    want = ours(x)
    assert torch.equal(ours(x.t()), want.t()) and torch.equal(ours(x[::2, 1::3]), want[::2, 1::3])
    assert torch.equal(ours(x[:1].expand(4, 10)), want[:1].expand(4, 10)) and torch.equal(ours(x[2, 3]), want[2, 3])
    assert ours(x[:0]).shape == (0, 10)
    whole = torch.tensor([[1, 2], [0, 3]])
    for integers in (whole, whole.to(torch.uint8), whole > 1):
        got = ours(integers.to("rdna"))
        assert got.dtype == torch.float32
        assert torch.equal(got.cpu().nan_to_num(7), ours(integers.float().to("rdna")).cpu().nan_to_num(7))


def test_outputs_and_in_place():
    x = torch.rand(5, 4).to("rdna")
    out = torch.full((4, 10), math.nan).to("rdna")
    torch.erfc(x.t(), out=out[:, ::2])
    assert torch.equal(out[:, ::2], torch.erfc(x).t()) and out[:, 1::2].isnan().all()
    for name in ("erfc_", "erfinv_", "lgamma_", "digamma_", "i0_"):
        y = x.clone()
        assert getattr(y, name)() is y and torch.equal(y, getattr(torch, name[:-1])(x))
    assert torch.equal(x.clone().polygamma_(2), torch.polygamma(2, x))
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, x)


def incomplete(lower):
    return lambda a, x: mp.gammainc(a, 0, x, regularized=True) if lower else mp.gammainc(a, x, mp.inf, regularized=True)


def of_degree(f):
    return lambda x, n: f(int(n), x)


def third_kind(n, x):
    return mp.cos((n + mp.mpf(1) / 2) * mp.acos(x)) / mp.cos(mp.acos(x) / 2)


def fourth_kind(n, x):
    return mp.sin((n + mp.mpf(1) / 2) * mp.acos(x)) / mp.sin(mp.acos(x) / 2)


def shifted(f):
    return lambda x, n: f(int(n), 2 * x - 1)


def probabilists(n, x):
    return mp.hermite(n, x / mp.sqrt(2)) / mp.mpf(2) ** (mp.mpf(n) / 2)


# name: ours, mpmath's, units of 2^-52 of the result or of 1 if that is more
PAIRS = {
    "gammainc": (torch.special.gammainc, incomplete(True), 256),
    "gammaincc": (torch.special.gammaincc, incomplete(False), 256),
    "zeta": (S.zeta, mp.zeta, 128),
    "chebyshev_polynomial_t": (S.chebyshev_polynomial_t, of_degree(mp.chebyt), 1024),
    "chebyshev_polynomial_u": (S.chebyshev_polynomial_u, of_degree(mp.chebyu), 1024),
    "chebyshev_polynomial_v": (S.chebyshev_polynomial_v, of_degree(third_kind), 1024),
    "chebyshev_polynomial_w": (S.chebyshev_polynomial_w, of_degree(fourth_kind), 1024),
    "shifted_chebyshev_polynomial_t": (S.shifted_chebyshev_polynomial_t, shifted(mp.chebyt), 4096),
    "shifted_chebyshev_polynomial_u": (S.shifted_chebyshev_polynomial_u, shifted(mp.chebyu), 4096),
    "shifted_chebyshev_polynomial_v": (S.shifted_chebyshev_polynomial_v, shifted(third_kind), 4096),
    "shifted_chebyshev_polynomial_w": (S.shifted_chebyshev_polynomial_w, shifted(fourth_kind), 4096),
    "hermite_polynomial_h": (S.hermite_polynomial_h, of_degree(mp.hermite), 4096),
    "hermite_polynomial_he": (S.hermite_polynomial_he, of_degree(probabilists), 4096),
    "laguerre_polynomial_l": (S.laguerre_polynomial_l, lambda x, n: mp.laguerre(int(n), 0, x), 1024),
    "legendre_polynomial_p": (S.legendre_polynomial_p, of_degree(mp.legendre), 1024),
}


def arguments_of(name, n):
    if name.startswith("gamma"):
        return 8 * torch.rand(n, dtype=torch.float64) + 0.01, 12 * torch.rand(n, dtype=torch.float64)
    if name == "zeta":
        return 1.5 + 8 * torch.rand(n, dtype=torch.float64), 9 * torch.rand(n, dtype=torch.float64) + 0.05
    x = 1.98 * torch.rand(n, dtype=torch.float64) - 0.99
    return (x + 1) / 2 if name.startswith("shifted") else x, torch.randint(0, 9, (n,)).double()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name, dtype):
    ours, exact, units = PAIRS[name]
    x, y = (t.to(dtype) for t in arguments_of(name, 40))
    got = ours(x.to("rdna"), y.to("rdna"))
    assert got.dtype == dtype
    wanted = [exact(mp.mpf(a), mp.mpf(b)) for a, b in zip(x.tolist(), y.tolist())]
    assert_near(got, wanted, [max(1, abs(w)) for w in wanted], units)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_broadcast_numbers_and_types(name):
    ours = PAIRS[name][0]
    x, y = arguments_of(name, 6)
    want = ours(x.unsqueeze(1), y)  # the CPU's
    close = {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(ours(x.to("rdna").unsqueeze(1), y.to("rdna")).cpu(), want, **close)
    torch.testing.assert_close(ours(x.to("rdna").expand(3, 6).t(), y.to("rdna")[0]).cpu(), want[:, :1].expand(6, 3), **close)
    assert ours(x[:0].to("rdna"), y[:0].to("rdna")).shape == (0,)
    out = torch.zeros(6, 12, dtype=torch.float64, device="rdna")
    ours(x.to("rdna").unsqueeze(1), y.to("rdna"), out=out[:, ::2])
    torch.testing.assert_close(out[:, ::2].cpu(), want, **close)
    if name.startswith("gamma"):  # whose functions take neither numbers nor integers
        with pytest.raises((NotImplementedError, RuntimeError)):
            ours(torch.tensor([1, 2]).to("rdna"), torch.tensor([1, 2]).to("rdna"))
    else:
        torch.testing.assert_close(ours(x.to("rdna"), 3).cpu(), ours(x, 3), **close)
        torch.testing.assert_close(ours(2, y.to("rdna").float()).cpu(), ours(2, y.float()), rtol=1e-5, atol=1e-5)
        whole = torch.tensor([1, 2, 3])
        got, theirs = ours(whole.to("rdna") + 1, whole.to("rdna")), ours(whole + 1, whole)
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.cpu(), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [*TYPES, torch.int32, torch.uint8])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "xlogy", "hypot", "copysign", "fmax", "fmin"])
def test_elementary_pairs(name, dtype):
    """Beside the CPU: infinities and NaN, broadcast operands, both layouts, the type and the strides of the result."""
    ours = getattr(torch, name)
    x = torch.cat([torch.tensor([0.0, -0.0, 1, -1, math.inf, -math.inf, math.nan, 0.5, 2, 1e-3, 40]), 4 * torch.randn(52)])
    x = (x if dtype.is_floating_point else x.nan_to_num(0, 5, 7).abs()).to(dtype).view(7, 9)
    if not dtype.is_floating_point and name in ("logaddexp", "logaddexp2", "hypot"):
        with pytest.raises((NotImplementedError, RuntimeError)):
            ours(x.to("rdna"), x.to("rdna"))
        return
    y = x.flip(1)
    for a, b in ((x, y), (x, y[0]), (x[:, :1], y), (x.t(), y.t()), (x, y.t().contiguous().t()), (x[::2, 1::3], y[::2, 1::3]), (x[:0], y[:0])):
        want, got = ours(a, b), ours(a.to("rdna"), b.to("rdna"))
        assert got.stride() == want.stride()
        torch.testing.assert_close(got.cpu(), want, rtol=4 * torch.finfo(want.dtype).eps if want.is_floating_point() else 0, atol=1e-5, equal_nan=True)
    wide = torch.rand(9, dtype=torch.float64)
    torch.testing.assert_close(ours(x.to("rdna"), wide.to("rdna")).cpu(), ours(x, wide), equal_nan=True)
    if name in ("xlogy", "copysign"):
        torch.testing.assert_close(ours(x.to("rdna"), -2.5 if name == "copysign" else 2.5).cpu(), ours(x, -2.5 if name == "copysign" else 2.5), equal_nan=True)


def test_gradient_of_gammainc():
    a, x = arguments_of("gammainc", 20)
    on = x.to("rdna").requires_grad_()
    (got,) = torch.autograd.grad(torch.special.gammainc(a.to("rdna"), on).sum(), on)
    assert_near(got, [mp.exp(-v) * v ** (p - 1) / mp.gamma(p) for p, v in zip(a.tolist(), x.tolist())], [1] * 20, 4096)


MADE = {
    "erfcx": (S.erfcx, lambda x: mp.erfc(x) * mp.exp(x * x), lambda x: 0),
    "log_ndtr": (S.log_ndtr, lambda x: mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), lambda x: 0),
    "spherical_bessel_j0": (S.spherical_bessel_j0, lambda x: mp.sinc(x), lambda x: 0),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", MADE)
def test_made_of_others(name, dtype):
    ours, exact, size = MADE[name]
    x = torch.cat([torch.randn(30), 8 * torch.randn(30), torch.tensor([0.0, 40.0, 9.99, 10.01])]).clamp(-20, 60).to(dtype)
    values = [mp.mpf(v) for v in x.tolist()]
    assert_near(ours(x.to("rdna")), [exact(v) for v in values], [size(v) for v in values], 2048)
    hard = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -30.0], dtype=dtype)
    hard = hard if name != "spherical_bessel_j0" else hard[2:]
    torch.testing.assert_close(ours(hard.to("rdna")).cpu(), ours(hard.double()).to(dtype), rtol=4 * torch.finfo(dtype).eps, atol=0, equal_nan=True)
