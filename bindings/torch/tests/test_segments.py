"""segment_reduce beside the CPU, with gradients; steps of numbers (nextafter, frexp, logspace)."""

import math

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def close(ours, theirs, dtype):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(ours.cpu(), theirs, rtol=16 * unit, atol=16 * unit, equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 1.5])
def test_segments(dtype, reduce, initial):
    lengths = torch.tensor([2, 0, 5, 1, 0, 3])
    for shape in ((11,), (11, 3), (11, 2, 2)):
        x = torch.randn(shape, dtype=torch.float64)
        x.view(-1)[3], x.view(-1)[-1] = 0, 2  # a factor of 0; shared extremes
        x = x.to(dtype)
        results = []
        for device in ("cpu", "rdna"):
            data = x.to(device).requires_grad_()
            out = torch.segment_reduce(data, reduce, lengths=lengths.to(device), initial=initial)
            grad = torch.linspace(0.5, 1.5, out.numel(), dtype=torch.float64).view(out.shape).to(dtype).to(device)
            results.append((out, *torch.autograd.grad(out, data, grad)))
        close(results[1][0], results[0][0], dtype)
        close(results[1][1], results[0][1], dtype)


@pytest.mark.parametrize("reduce", ["sum", "max", "prod"])
def test_offsets_batches_and_what_is_in_none(reduce):
    x = torch.randn(2, 6, 3)
    lengths = torch.tensor([[2, 4], [6, 0]])
    close(torch.segment_reduce(x.to("rdna"), reduce, lengths=lengths.to("rdna"), axis=1),
          torch.segment_reduce(x, reduce, lengths=lengths, axis=1), torch.float32)
    offsets = torch.tensor([0, 2, 2, 6])
    close(torch.segment_reduce(x[0].to("rdna"), reduce, offsets=offsets.to("rdna")),
          torch.segment_reduce(x[0], reduce, offsets=offsets), torch.float32)
    nan = x[0].clone()
    nan[3, 1] = math.nan
    close(torch.segment_reduce(nan.to("rdna"), reduce, lengths=torch.tensor([2, 4]).to("rdna")),
          torch.segment_reduce(nan, reduce, lengths=torch.tensor([2, 4])), torch.float32)
    torch.rdna.set_fallback_mode("allow")  # PyTorch says it on the CPU
    with pytest.raises(RuntimeError):
        torch.segment_reduce(x[0].to("rdna"), reduce, lengths=torch.tensor([2, 3]).to("rdna"))


def edges(dtype):
    kind = torch.finfo(dtype)
    tiny = kind.smallest_normal * kind.eps
    x = [0, -0.0, 1, -1, tiny, -tiny, kind.smallest_normal, kind.max, -kind.max, math.inf, -math.inf, math.nan, 1.5, 3e-5]
    return torch.tensor(x, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_nextafter(dtype):
    x = edges(dtype)
    ours, theirs = torch.nextafter(x.to("rdna").unsqueeze(1), x.to("rdna")).cpu(), torch.nextafter(x.unsqueeze(1), x)
    whole = {torch.float32: torch.int32, torch.float64: torch.int64, torch.bfloat16: torch.int16}[dtype]
    assert torch.equal(ours.isnan(), theirs.isnan()) and torch.equal(ours[~ours.isnan()].view(whole), theirs[~ours.isnan()].view(whole))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_frexp(dtype):
    x = torch.cat([edges(dtype), torch.randn(50).to(dtype)])
    (m, e), (mantissa, exponent) = torch.frexp(x.to("rdna")), torch.frexp(x)
    finite = x.isfinite()
    torch.testing.assert_close(m.cpu(), mantissa, rtol=0, atol=0, equal_nan=True)
    assert e.dtype == torch.int32 and torch.equal(e.cpu()[finite], exponent[finite])


@pytest.mark.parametrize("dtype", TYPES)
def test_logspace(dtype):
    for arguments in ((0, 3, 7), (-2, 2, 1), (1, -1, 6), (0, 1, 0), (0.5, 2, 9, 2.0), (3, 3, 4)):
        ours, theirs = torch.logspace(*arguments, dtype=dtype, device="rdna"), torch.logspace(*arguments, dtype=dtype)
        torch.testing.assert_close(ours.cpu(), theirs, rtol=4 * torch.finfo(dtype).eps, atol=0)
