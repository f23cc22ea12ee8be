"""Samples of gamma, Poisson, binomial and Dirichlet distributions, and gradients through them. C tests compare samples
with exact distribution functions; here it is what PyTorch makes of them."""

import math

import pytest
import torch
import torch.distributions as D
from test_random import REAL

pytestmark = pytest.mark.usefixtures("nothing_falls_back")


def on(*values, dtype=torch.float32):
    return [torch.tensor(v, dtype=dtype, device="rdna") for v in values]


def near(got, want, deviation, count):
    """A mean of |count| samples within six of its deviations."""
    got, want, deviation = (torch.as_tensor(v).double().cpu() for v in (got, want, deviation))
    assert ((got - want).abs() <= 6 * deviation / math.sqrt(count) + 1e-12).all(), (got, want)


COUNT = 20000
FAMILIES = {
    "Gamma": lambda: D.Gamma(*on([0.05, 0.7, 3.0, 50.0], [1.0, 2.0, 0.5, 10.0])),
    "Beta": lambda: D.Beta(*on([0.3, 2.0, 40.0], [0.4, 1.0, 7.0])),
    "Dirichlet": lambda: D.Dirichlet(*on([[0.2, 0.7, 3.0], [1.0, 1.0, 20.0]])),
    "Chi2": lambda: D.Chi2(*on([1.0, 6.0])),
    "StudentT": lambda: D.StudentT(*on([9.0, 30.0])),
    "FisherSnedecor": lambda: D.FisherSnedecor(*on([3.0, 9.0], [20.0, 30.0])),
    "InverseGamma": lambda: D.InverseGamma(*on([6.0, 9.0], [1.0, 2.0])),
    "Poisson": lambda: D.Poisson(*on([0.1, 5.0, 10.0, 400.0])),
    "Binomial": lambda: D.Binomial(40, *on([0.0, 0.1, 0.5, 0.9, 1.0])),
    "Binomial of counts": lambda: D.Binomial(*on([1.0, 30.0, 1000.0], [0.3, 0.6, 0.02])),
    "NegativeBinomial": lambda: D.NegativeBinomial(*on([3.0, 9.0], [0.3, 0.6])),
    "Multinomial": lambda: D.Multinomial(9, *on([0.2, 0.5, 0.3])),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_distributions_have_their_means(name):
    torch.manual_seed(5)
    d = FAMILIES[name]()
    x = d.sample((COUNT,))
    assert x.device.type == "rdna" and x.shape == (COUNT, *d.batch_shape, *d.event_shape)
    near(x.mean(0), d.mean, d.variance.sqrt(), COUNT)
    assert torch.isfinite(d.log_prob(d.sample((5,)))).all()


@pytest.mark.parametrize("name", ["Wishart", "LKJCholesky", "VonMises"])
def test_distributions_that_are_made_of_others_run(name):
    d = {"Wishart": lambda: D.Wishart(torch.tensor(5.0, device="rdna"), torch.eye(3, device="rdna")),
         "LKJCholesky": lambda: D.LKJCholesky(3, torch.tensor(0.7, device="rdna")),
         "VonMises": lambda: D.VonMises(*on(0.5, 3.0))}[name]()
    assert torch.isfinite(d.sample((7,))).all()


def test_gradients_of_expectations():
    """Of E[x^2] and E[log x] by the parameters, which have closed forms."""
    torch.manual_seed(6)
    a = torch.tensor([0.3, 1.5, 20.0], dtype=torch.float64, device="rdna", requires_grad=True)
    x = D.Gamma(a, torch.ones_like(a)).rsample((COUNT,))
    square, log = (x * x).mean(0), x.log().mean(0)
    for value, want in ((square, 2 * a + 1), (log, torch.polygamma(1, a))):
        g, = torch.autograd.grad(value.sum(), a, retain_graph=True)
        torch.testing.assert_close(g, want.detach(), rtol=0.06, atol=0)
    c = torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64, device="rdna", requires_grad=True)
    value = (D.Dirichlet(c).rsample((COUNT,))[:, 0]).mean()
    g, = torch.autograd.grad(value, c)
    total = c.detach().sum()
    want = torch.stack((total - c[0], -c[0], -c[0])).detach() / total**2
    torch.testing.assert_close(g, want, rtol=0.05, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_beside_the_cpu(dtype):
    """The CPU's are fits of three digits; where it has series, the types' own."""
    a = torch.linspace(0.05, 90, 301, dtype=dtype)
    for factor in (0.01, 0.9, 1.0, 1.7):
        got = torch._standard_gamma_grad(a.to("rdna"), (a * factor).to("rdna")).cpu()
        want = torch._standard_gamma_grad(a, a * factor)
        torch.testing.assert_close(got, want, rtol=1e-3, atol=0)
        if factor == 0.01:
            torch.testing.assert_close(got[:20], want[:20], rtol=1e-5, atol=0)
    alpha = torch.tensor([0.1, 0.9, 2.0, 15.0], dtype=dtype)
    total = torch.tensor([16.0, 40.0], dtype=dtype).reshape(2, 1, 1)
    x = D.Beta(alpha.expand(2, 50, 4), (total - alpha).expand(2, 50, 4)).sample()
    got = torch._dirichlet_grad(*(t.to("rdna") for t in (x, alpha, total)))
    want = torch._dirichlet_grad(*(t.contiguous() for t in torch.broadcast_tensors(x, alpha, total)))
    torch.testing.assert_close(got.cpu(), want, rtol=2e-3, atol=0)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_types_shapes_and_strides(dtype):
    torch.manual_seed(7)
    rate = (torch.arange(12.0, device="rdna").reshape(3, 4).t() + 0.5).to(dtype)
    draws = {"gamma": torch._standard_gamma, "poisson": torch.poisson, "dirichlet": torch._sample_dirichlet,
             "binomial": lambda t: torch.binomial(t.ceil(), torch.full((3,), 0.5, dtype=dtype, device="rdna")),
             "gamma gradient": lambda t: torch._standard_gamma_grad(t, t[:1]),
             "dirichlet gradient": lambda t: torch._dirichlet_grad(t / 20, t, t.sum(-1, True))}
    for name, draw in draws.items():
        y = draw(rate)
        assert y.shape == (4, 3) and y.dtype == dtype and y.is_contiguous() and torch.isfinite(y).all(), name
        assert draw(rate[:0]).shape == (0, 3), name
        torch.manual_seed(8)
        first = draw(rate)
        torch.manual_seed(8)
        assert torch.equal(first, draw(rate.contiguous())), name
    assert torch._sample_dirichlet(rate[0, 0]).item() == 1
    assert torch._standard_gamma(rate[0, 0]).shape == ()
    assert torch.poisson(torch.ones(2, dtype=dtype, device="rdna").view([1] * 9 + [2])).dim() == 10
    out = torch.empty(4, 3, dtype=dtype, device="rdna")
    assert torch.ops.aten.poisson.out(rate, out=out) is out and (out == out.round()).all()


def test_what_is_no_parameter():
    nan = float("nan")
    for wrong in (-1.0, nan):
        for device in ("rdna", "cpu"):
            with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
                torch.poisson(torch.tensor([1.0, wrong], device=device))
        assert torch._standard_gamma(torch.tensor([wrong], device="rdna")).isnan().all()
        assert torch._sample_dirichlet(torch.tensor([1.0, wrong], device="rdna")).isnan().any()
    count = torch.tensor([-1.0, 10, 10, 10, 0, 10, 10])
    p = torch.tensor([0.5, -0.1, 1.1, nan, nan, 0, 1])
    got = torch.binomial(count.to("rdna"), p.to("rdna")).cpu()
    torch.testing.assert_close(got, torch.binomial(count, p), equal_nan=True)
    small = torch._standard_gamma(torch.full((1000,), 1e-4, device="rdna"))
    assert small.min() == torch.finfo(torch.float32).tiny


def test_types_that_are_refused():
    def told(call, device):
        try:
            return str(call(device)), "no error"
        except (RuntimeError, ValueError) as e:
            return type(e).__name__, str(e).split("\n")[0]

    whole, double = torch.tensor([3]), torch.tensor([0.5], dtype=torch.float64)
    torch.rdna.set_fallback_mode("allow")  # the CPU says what is wrong
    for call in (lambda d: torch.binomial(whole.to(d), torch.tensor([0.5], device=d)),
                 lambda d: torch.binomial(torch.tensor([3.0], device=d), double.to(d)),
                 lambda d: torch._standard_gamma_grad(torch.ones(1, device=d), double.to(d)),
                 lambda d: torch.poisson(whole.to(d)), lambda d: torch._sample_dirichlet(whole.to(d))):
        ours, theirs = told(call, "rdna"), told(call, "cpu")
        assert ours[0] == theirs[0] and theirs[1] in ours[1]
