"""torch.fft on the device against NumPy in float64: lengths, dimensions, layouts, norms, gradients; nothing falls back."""

import math

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.float32, torch.float64]
LENGTHS = [1, 2, 7, 12, 31, 64, 105, 1000, 4099, 8192]


def random(*shape, dtype, complex=True):
    real = torch.randn(shape, dtype=torch.float64)
    x = torch.complex(real, torch.randn(shape, dtype=torch.float64)) if complex else real
    return x.to(dtype.to_complex() if complex else dtype)


def agree(found, expected, count, dtype):
    """Errors of a transform grow with the logarithm of its length, in units of the root of the mean square (Higham, 24.1);
    of one by convolution three transforms' worth."""
    found = found.cpu().numpy().astype(np.complex128)
    assert found.shape == expected.shape
    size = max(np.sqrt(np.mean(np.abs(expected) ** 2)), np.finfo(np.float64).tiny)
    assert np.abs(found - expected).max() <= 16 * math.log2(count + 2) * torch.finfo(dtype).eps * size


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n, dtype):
    x, real, half = random(3, n, dtype=dtype), random(3, n, dtype=dtype, complex=False), random(3, n // 2 + 1, dtype=dtype)
    for norm in ("backward", "ortho", "forward"):
        agree(torch.fft.fft(x.to("rdna"), norm=norm), np.fft.fft(x.to(torch.complex128), norm=norm), n, dtype)
        agree(torch.fft.ifft(x.to("rdna"), norm=norm), np.fft.ifft(x.to(torch.complex128), norm=norm), n, dtype)
        agree(torch.fft.rfft(real.to("rdna"), norm=norm), np.fft.rfft(real.double(), norm=norm), n, dtype)
        agree(torch.fft.fft(real.to("rdna"), norm=norm), np.fft.fft(real.double(), norm=norm), n, dtype)
        agree(torch.fft.irfft(half.to("rdna"), n, norm=norm), np.fft.irfft(half.to(torch.complex128), n, norm=norm), n, dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_dimensions_and_layouts(dtype):
    x, real = random(4, 6, 9, 5, dtype=dtype), random(4, 6, 9, 5, dtype=dtype, complex=False)
    for dims in ((0,), (1, 3), (2, 0), (0, 1, 2, 3)):
        for turn in (lambda t: t, lambda t: t.transpose(0, 2), lambda t: t[:, ::2, 1:]):
            a, r = turn(x.to("rdna")), turn(real.to("rdna"))
            a64, r64 = turn(x).to(torch.complex128).numpy(), turn(real).double().numpy()
            count, n = math.prod(a.shape[d] for d in dims), a.shape[dims[-1]]
            agree(torch.fft.fftn(a, dim=dims), np.fft.fftn(a64, axes=dims), count, dtype)
            agree(torch.fft.ifftn(a, dim=dims, norm="ortho"), np.fft.ifftn(a64, axes=dims, norm="ortho"), count, dtype)
            agree(torch.fft.rfftn(r, dim=dims), np.fft.rfftn(r64, axes=dims), count, dtype)
            agree(torch.fft.irfftn(a, dim=dims, s=[a.shape[d] if d != dims[-1] else n + 1 for d in dims]),
                  np.fft.irfftn(a64, axes=dims, s=[a.shape[d] if d != dims[-1] else n + 1 for d in dims]), count, dtype)
    kept = x.to("rdna")
    torch.fft.irfftn(kept)
    assert torch.equal(kept.cpu(), x)


def test_strides_are_those_of_the_cpu():
    """Where a user views or reshapes a result on the CPU, that works here too. Dimensions in any order, more than three too."""
    turns = torch.Generator().manual_seed(1)
    for case in range(40):
        rank = 1 + case % 5
        x = torch.randn([2, 3, 4, 5, 6][:rank], dtype=torch.complex64).permute(*torch.randperm(rank, generator=turns).tolist())
        dims = torch.randperm(rank, generator=turns)[: 1 + case // 5 % rank].tolist()
        for f in (torch.fft.fftn, torch.fft.ifftn, torch.fft.rfftn, torch.fft.irfftn):
            on = x.real.clone() if f is torch.fft.rfftn else x
            here, there = f(on.to("rdna"), dim=dims), f(on, dim=dims)
            assert here.stride() == there.stride(), (f.__name__, on.shape, on.stride(), dims)
            assert torch.allclose(here.cpu(), there, atol=1e-4)
        here, there = torch.fft.fft(x.real.to("rdna"), dim=dims[0]), torch.fft.fft(x.real, dim=dims[0])
        assert here.stride() == there.stride()


def test_into_a_given_tensor_and_in_place():
    x = random(5, 12, dtype=torch.float32)
    out = torch.empty(0, dtype=torch.complex64, device="rdna")
    assert torch.fft.fft(x.to("rdna"), out=out) is out
    agree(out, np.fft.fft(x.to(torch.complex128)), 12, torch.float32)
    same = x.to("rdna")
    torch.fft.fft(same, out=same)
    assert torch.equal(same.cpu(), out.cpu())
    turned = torch.empty(12, 5, dtype=torch.complex64, device="rdna").mT
    torch.fft.fft(x.to("rdna"), out=turned)
    assert torch.equal(turned.cpu(), out.cpu())


def test_a_nan_stays_in_its_line_and_what_a_real_result_does_not_need_is_not_read():
    x = random(3, 40, dtype=torch.float32)
    x[1, 7] = complex(math.nan, 0)
    assert torch.fft.fft(x.to("rdna")).cpu().isnan().all(1).tolist() == [False, True, False]
    half = random(2, 21, dtype=torch.float32)
    spoilt = half.clone()
    torch.view_as_real(spoilt)[:, [0, 20], 1] = math.nan
    assert torch.equal(torch.fft.irfft(spoilt.to("rdna"), 40), torch.fft.irfft(half.to("rdna"), 40))


def test_empty():
    assert torch.fft.fft(torch.empty(0, 4, dtype=torch.complex64, device="rdna")).shape == (0, 4)
    assert torch.fft.rfft2(torch.empty(0, 4, 6, device="rdna")).shape == (0, 4, 4)
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        torch.fft.fft(torch.empty(4, 0, dtype=torch.complex64, device="rdna"))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "rfft2", "irfft2"])
def test_gradients(name):
    function = getattr(torch.fft, name)
    x = random(4, 10, dtype=torch.float64, complex=name not in ("rfft", "rfft2"))
    given = []
    for device in ("cpu", "rdna"):
        on = x.to(device).requires_grad_()
        out = function(on)
        weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape).to(out.dtype).to(device)
        given.append(torch.autograd.grad(out, on, weight)[0].cpu())
    assert torch.allclose(*given, rtol=0, atol=1e-13 * given[0].abs().max().item())
