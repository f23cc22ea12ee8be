"""grid_sample, affine_grid and interpolate(antialias=True), with gradients, beside the CPU's in float64, and nothing on the
CPU."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from beside_cpu import values_and_gradients

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def assert_close(function, inputs, dtype):
    """function(*inputs) and its gradients; the inputs are rounded to the type before both. Places among inputs are
    computed in float32, so that they are off by some of its roundings whatever the type."""
    for want, got in values_and_gradients(function, inputs, dtype, (-1, 1.5)):
        places = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
        finite = want[want.isfinite()]
        size = finite.abs().max().item() if finite.numel() else 0
        room = (2 * torch.finfo(dtype).eps + 100 * places) * size
        torch.testing.assert_close(got, want, rtol=0, atol=room, equal_nan=True)


MODES = [*itertools.product([2], ["bilinear", "nearest", "bicubic"]), *itertools.product([3], ["bilinear", "nearest"])]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("dims,mode", MODES)
def test_grid_sample(dims, mode, padding, align, dtype):
    torch.manual_seed(dims)
    sizes = [5, 7, 4][:dims]
    # up to three widths outside of the input
    grid = (torch.rand(2, *[6, 3, 5][:dims], dims) * 2 - 1) * torch.tensor([0.9, 1.3, 4]).repeat(2)[: dims * 2].view(
        2, *[1] * dims, dims)
    x = torch.randn(2, 3, *sizes).transpose(2, 3).contiguous().transpose(2, 3)

    def sample(x, grid):
        return F.grid_sample(x, grid, mode, padding, align)

    assert_close(sample, [x, grid], dtype)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample_edges(padding, align, mode):
    """Corners, places far outside, one input alone, infinite inputs that no place is near, empty batches."""
    far = 100.25 if padding == "reflection" else 1e30  # where mirrors put 1e30, float32 cannot say
    grid = torch.tensor([[-1.0, -1], [1, 1], [-1, 1], [far, -far], [0.25, -0.5], [3, -3], [-2, 2]]).view(1, 7, 1, 2)
    x = torch.randn(1, 2, 4, 6)
    assert_close(lambda x: F.grid_sample(x, grid.to(x), mode, padding, align), [x], torch.float32)
    nowhere = torch.tensor([[0.1, float("nan")], [float("inf"), 0.1], [0.1, float("-inf")], [0.1, 0.1]]).view(1, 4, 1, 2)
    got, want = (F.grid_sample(x.to(d), nowhere.to(d), mode, padding, align).cpu() for d in ("rdna", "cpu"))
    torch.testing.assert_close(got, want, equal_nan=True)
    one = torch.randn(1, 2, 1, 1)
    assert_close(lambda x: F.grid_sample(x, grid.to(x), mode, padding, align), [one], torch.float32)
    x[..., 3, 0] = float("inf")
    inner = torch.full((1, 3, 3, 2), 0.3)
    assert F.grid_sample(x.to("rdna"), inner.to("rdna"), mode, padding, align).isfinite().all()
    none = F.grid_sample(torch.empty(0, 2, 4, 6, device="rdna"), torch.empty(0, 3, 3, 2, device="rdna"), align_corners=align)
    assert none.shape == (0, 2, 3, 3)


def test_grid_sample_refuses():
    x, grid = torch.zeros(2, 3, 4, 5, device="rdna"), torch.zeros(2, 3, 4, 3, device="rdna")
    with pytest.raises(RuntimeError, match="expected grid to have size 2 in last dimension"):
        F.grid_sample(x, grid, align_corners=False)
    with pytest.raises(RuntimeError, match="same batch size"):
        F.grid_sample(x, grid[:1, ..., :2], align_corners=False)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 5, 4), (2, 3, 3, 5, 4)])
def test_affine_grid(size, align):
    dims = len(size) - 2
    assert_close(lambda t: F.affine_grid(t, size, align), [torch.randn(2, dims, dims + 1)], torch.float32)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 2), (20, 5), (13, 11), (1, 1), (4, 40)])
def test_antialias(mode, size, align, dtype):
    x = torch.randn(2, 3, 13, 11)
    for given in (x, x.contiguous(memory_format=torch.channels_last)):
        assert_close(lambda x: F.interpolate(x, size, mode=mode, align_corners=align, antialias=True), [given], dtype)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias_of_factors_and_infinities(mode):
    x = torch.randn(1, 2, 17, 9)
    assert_close(lambda x: F.interpolate(x, scale_factor=(0.3, 1.7), mode=mode, antialias=True), [x], torch.float64)
    x[0, 0, 0, 0] = float("inf")
    want = F.interpolate(x, (4, 4), mode=mode, antialias=True)
    got = F.interpolate(x.to("rdna"), (4, 4), mode=mode, antialias=True).cpu()
    torch.testing.assert_close(got, want)


def test_lanczos():
    x = torch.randn(2, 3, 13, 11)
    if not hasattr(torch.ops.aten, "_upsample_lanczos2d_aa"):
        pytest.skip(f"PyTorch {torch.__version__} has no _upsample_lanczos2d_aa; 2.13 has it")
    for size in ((4, 5), (20, 30)):
        assert_close(lambda x: torch.ops.aten._upsample_lanczos2d_aa(x, size, False), [x], torch.float32)
