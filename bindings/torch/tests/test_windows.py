"""Gradients of padding that copies values, and fractional max pooling, beside the CPU."""

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def compared(f, *inputs, dtype):
    results = []
    for device in ("cpu", "rdna"):
        x = [t.to(device).requires_grad_(t is inputs[0]) for t in inputs]
        out = f(*x)
        # whole numbers, so that what is added is exact whatever the order
        grad = (torch.arange(out.numel()) % 5 - 2).view(out.shape).to(dtype).to(device)
        results.append([out.detach().cpu(), *(g.cpu() for g in torch.autograd.grad(out, x[0], grad))])
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding(dtype, mode):
    for shape, pad in (((2, 3, 6), (2, 3)), ((3, 6), (0, 4)), ((2, 3, 5, 6), (1, 2, 3, 4)), ((3, 5, 6), (5, 0, 0, 1)),
                       ((2, 2, 4, 5, 6), (1, 2, 3, 3, 0, 2)), ((0, 2, 5), (1, 1)), ((2, 2, 3, 3), (0, 0, 0, 0))):
        compared(lambda x: F.pad(x, pad, mode=mode), torch.randn(shape).to(dtype), dtype=dtype)
    wide = torch.randn(2, 3, 5, 6).to(dtype).to(memory_format=torch.channels_last)
    compared(lambda x: F.pad(x, (2, 1, 1, 0), mode=mode), wide, dtype=dtype)
    if mode == "replicate":
        for pad in ((-2, 3, 0, 0), (4, -3, -2, 1), (-1, -1, -1, -1)):
            compared(lambda x: F.pad(x, pad, mode=mode), torch.randn(2, 2, 5, 6).to(dtype), dtype=dtype)
    compared(lambda x: F.pad(x, (-1, 2, 1, -2), mode=mode), torch.randn(1, 2, 5, 6).to(dtype), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fractional_max_pooling(dtype):
    for rank, shape in ((2, (2, 3, 9, 11)), (2, (3, 8, 8)), (3, (2, 2, 7, 8, 9)), (3, (2, 6, 7, 7)), (2, (0, 2, 8, 8)), (3, (0, 2, 7, 7, 7))):
        f = F.fractional_max_pool2d if rank == 2 else F.fractional_max_pool3d
        batch = shape[: len(shape) - rank - 1] or (1,)
        samples = torch.rand(*batch, shape[-rank - 1], rank, dtype=dtype)
        for outputs in (3, 1, (2, 4, 5)[:rank]):
            x = torch.randn(shape, dtype=dtype)
            call = lambda x, s: f(x, 2, output_size=outputs, _random_samples=s)  # noqa: E731
            if x.numel():
                compared(lambda x, s: call(x, s), x, samples, dtype=dtype)
            got = f(x.to("rdna"), 2, output_size=outputs, _random_samples=samples.to("rdna"), return_indices=True)
            want = f(x, 2, output_size=outputs, _random_samples=samples, return_indices=True)
            assert all(torch.equal(a.cpu(), b) for a, b in zip(got, want))
    nan = torch.randn(1, 1, 6, 6)
    nan[0, 0, 2, 3] = torch.nan
    s = torch.full((1, 1, 2), 0.5)
    assert torch.equal(F.fractional_max_pool2d(nan.to("rdna"), 2, 3, _random_samples=s.to("rdna")).isnan().cpu(),
                       F.fractional_max_pool2d(nan, 2, 3, _random_samples=s).isnan())
