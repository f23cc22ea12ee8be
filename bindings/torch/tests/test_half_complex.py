"""complex32, numbers of two halves, beside the same in complex128 rounded once; on the device, nothing falls back. Some 2 s."""

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")
HALF = torch.complex32


def random(*shape):
    return torch.randn(shape, dtype=torch.complex64).to(HALF)


def near(found, wanted, units=4):
    """Within |units| of f16's rounding of the largest value."""
    assert found.device.type == "rdna"
    assert found.dtype == {torch.complex128: HALF, torch.float64: torch.float16}.get(wanted.dtype, wanted.dtype)
    found = found.detach().cpu().to(wanted.dtype)
    assert found.shape == wanted.shape
    if wanted.dtype == torch.bool:
        assert torch.equal(found, wanted)
        return
    bound = units * 2**-11 * max(wanted.abs().max().item() if wanted.numel() else 0, 2**-10)
    assert ((found - wanted).abs() <= bound).all()


def test_copies():
    x = random(5, 7)
    there = x.to("rdna")
    assert there.dtype == HALF and torch.equal(torch.view_as_real(there.cpu()), torch.view_as_real(x))
    for view in (lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t.conj(), lambda t: t.reshape(7, 5), lambda t: t.expand(2, 5, 7)):
        assert torch.equal(torch.view_as_real(view(there).clone().cpu()), torch.view_as_real(view(x).resolve_conj().clone()))
    for dtype in (torch.complex64, torch.complex128):
        assert torch.equal(there.to(dtype).cpu(), x.to(dtype))
        assert torch.equal(torch.view_as_real(there.to(dtype).to(HALF).cpu()), torch.view_as_real(x))
    assert torch.equal(torch.view_as_real(torch.ones(3, device="rdna").to(HALF).cpu()), torch.tensor([[1, 0]] * 3).half())
    assert there[2, 3].item() == x[2, 3].item()
    for made in (torch.zeros(3, dtype=HALF, device="rdna"), torch.full((3,), 1 + 2j, dtype=HALF, device="rdna"), torch.ones_like(there)):
        assert made.dtype == HALF
        near(made, made.cpu().to(torch.complex128))


POINTWISE = {
    "sum": lambda x, y: x + y, "difference": lambda x, y: x - 2 * y, "product": lambda x, y: x * y, "ratio": lambda x, y: x / (y + 3),
    "of a real": lambda x, y: x * y.real, "negative": lambda x, y: -x, "conjugate": lambda x, y: torch.conj_physical(x), "root": lambda x, y: x.sqrt(),
    "exponential": lambda x, y: x.exp(), "size": lambda x, y: x.abs(), "angle": lambda x, y: x.angle(), "tanh": lambda x, y: x.tanh(),
    "equal": lambda x, y: x == y, "chosen": lambda x, y: torch.where(x.real > 0, x, y), "total": lambda x, y: x.sum(0), "mean": lambda x, y: x.mean(),
    "joined": lambda x, y: torch.cat([x, y]), "turned": lambda x, y: x.flip(0), "at places": lambda x, y: x[torch.tensor([2, 0], device=x.device)],
    "stacked": lambda x, y: torch.stack([x, y]), "in place": lambda x, y: x.clone().add_(y).mul_(2j), "filled": lambda x, y: x.clone().fill_(1 - 2j),
    "masked": lambda x, y: x.masked_fill(y.real > 0, 3j), "powers": lambda x, y: x.pow(2), "lower": lambda x, y: x.tril(), "sums": lambda x, y: x.cumsum(0),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_functions(name):
    f, x, y = POINTWISE[name], random(5, 6), random(5, 6)
    near(f(x.to("rdna"), y.to("rdna")), f(x.to(torch.complex128), y.to(torch.complex128)))


def test_products():
    a, b, batch, v = random(6, 9), random(9, 5), random(3, 9, 4), random(9)
    wide = [t.to(torch.complex128) for t in (a, b, batch, v)]
    ours = [t.to("rdna") for t in (a, b, batch, v)]
    for f in (lambda a, b, c, v: a @ b, lambda a, b, c, v: a @ c, lambda a, b, c, v: a @ v, lambda a, b, c, v: torch.dot(v, v), lambda a, b, c, v: torch.vdot(v, v),
              lambda a, b, c, v: torch.einsum("ij,kjl->kil", a, c), lambda a, b, c, v: (b.mH @ b), lambda a, b, c, v: torch.outer(v, v)):
        near(f(*ours), f(*wide), 8)


@pytest.mark.parametrize("n", [8, 12, 16])
def test_transforms(n):
    x = random(3, n)
    for f in (torch.fft.fft, torch.fft.ifft, torch.fft.fftn, torch.fft.irfft):
        near(f(x.to("rdna")), f(x.to(torch.complex128)), 8)


def test_out_and_types():
    x, y = random(4, 3), random(4, 3)
    out = torch.empty(0, dtype=HALF, device="rdna")
    assert torch.mul(x.to("rdna"), y.to("rdna"), out=out) is out
    near(out, x.to(torch.complex128) * y.to(torch.complex128))
    near(torch.complex(x.real.to("rdna"), y.real.to("rdna")), torch.complex(x.real.double(), y.real.double()))
    assert (x.to("rdna") + torch.ones(3, device="rdna")).dtype == (x.to(torch.complex64) + torch.ones(3)).dtype
    assert torch.randn(100, dtype=HALF, device="rdna").dtype == HALF
    near(torch.view_as_real(x.to("rdna")), torch.view_as_real(x).double())


@pytest.mark.parametrize("f", [torch.sum, torch.nansum, torch.mean])
def test_types_of_results_that_are_asked_for(f):
    x = random(4, 3)
    wide = x.to(torch.complex64)
    for given, asked in ((x, torch.complex64), (wide, HALF), (x, HALF), (x, torch.complex128)):
        found = f(given.to("rdna"), 0, dtype=asked)
        assert found.dtype == asked
        near(found.to(HALF), getattr(torch, "sum" if f is torch.nansum else f.__name__)(x.to(torch.complex128), 0))
    assert torch.linalg.vector_norm(x.to("rdna"), dtype=torch.complex64).dtype == torch.float32


def test_windows_of_f16():
    """Which ask for the transform itself."""
    x, window = torch.randn(100).half(), torch.hann_window(16)
    found = torch.stft(x.to("rdna"), 16, window=window.half().to("rdna"), return_complex=True)
    near(found, torch.stft(x.double(), 16, window=window.half().double(), return_complex=True), 8)


@pytest.mark.parametrize("dtype", [HALF, torch.complex64, torch.complex128])
def test_sums_without_nan(dtype):
    """Which the CPU refuses of complex numbers."""
    x = torch.randn(4, 5, dtype=torch.complex64).to(dtype)
    torch.view_as_real(x)[1, 2, 1] = float("nan")
    there, rest = x.to("rdna"), x.to(torch.complex128)
    is_nan = rest.isnan()
    rest[is_nan] = 0
    for dims in (None, 0, (0, 1)):
        count = (~is_nan).sum(dims)
        near(torch.nansum(there, dims).to(HALF), rest.sum(dims))
        near(torch.nanmean(there, dims).to(HALF), rest.sum(dims) / count)


def test_gradients():
    x, y = random(4, 3), random(3, 5)
    results = []
    for device, dtype in (("cpu", torch.complex128), ("rdna", HALF)):
        a, b = x.to(device, dtype).requires_grad_(), y.to(device, dtype).requires_grad_()
        value = (a @ b).abs().sum()
        value.backward()
        results.append([value, a.grad, b.grad])
    for wanted, found in zip(*results):
        near(found, wanted.detach(), 16)
