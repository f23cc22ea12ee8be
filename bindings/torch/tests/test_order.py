"""What sorted values tell, beside the CPU: unique slices, the most frequent value, histograms of given and even edges."""

import itertools
import math

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
REALS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def few(shape, dtype):
    return torch.randint(0, 2 if dtype == torch.bool else 3, shape).to(dtype)


def same(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype and a.device.type == "rdna" and torch.equal(a.cpu(), b), (a, b)


@pytest.mark.parametrize("dtype", INTEGERS + REALS)
def test_unique_slices(dtype):
    for shape in ((7, 2), (40, 3), (5, 1), (1, 4), (6,), (2, 30, 2), (3, 2, 9)):
        x = few(shape, dtype)
        for dim in range(-len(shape), len(shape)):
            for inverse, counts in itertools.product((False, True), repeat=2):
                for f, options in ((torch.unique, {}), (torch.unique_consecutive, {})):
                    if f is torch.unique and dtype == torch.bfloat16:  # the CPU lacks it
                        continue
                    got = f(x.to("rdna"), dim=dim, return_inverse=inverse, return_counts=counts)
                    want = f(x, dim=dim, return_inverse=inverse, return_counts=counts)
                    same(got if inverse or counts else [got], want if inverse or counts else [want])


def test_unique_slices_of_many_columns_nan_and_strides():
    x = torch.randn(9, 500)[torch.randint(0, 9, (60,))]  # slices differ late or early
    x[::7, 499] += 1
    same(torch.unique(x.to("rdna"), dim=0, return_inverse=True, return_counts=True),
         torch.unique(x, dim=0, return_inverse=True, return_counts=True))
    y = torch.randint(0, 2, (8, 12))[:, ::3]
    same([torch.unique(y.to("rdna").t(), dim=1)], [torch.unique(y.t(), dim=1)])
    z = torch.tensor([[0.0, 1], [-0.0, 1], [math.nan, 1], [0, math.nan], [math.nan, 1]], device="rdna")
    values, inverse, counts = torch.unique(z, dim=0, return_inverse=True, return_counts=True)
    assert values.shape == (4, 2) and counts.tolist() == [2, 1, 1, 1] and inverse[:2].tolist() == [0, 0]
    for shape, dim in (((0, 3), 0), ((3, 0), 1)):
        e = torch.zeros(shape)
        same(torch.unique(e.to("rdna"), dim=dim, return_inverse=True, return_counts=True),
             torch.unique(e, dim=dim, return_inverse=True, return_counts=True))
    torch.rdna.set_fallback_mode("allow")  # PyTorch says it on the CPU
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        torch.unique(torch.zeros(2, 0, 3).to("rdna"), dim=0)


@pytest.mark.parametrize("dtype", INTEGERS + [torch.float32, torch.float64])
def test_mode(dtype):
    for shape in ((9,), (4, 7), (2, 13, 3), ()):
        x = few(shape, dtype) if dtype == torch.bool else torch.randint(0, 5, shape).to(dtype)
        for dim in range(-max(1, len(shape)), max(1, len(shape))):
            same(x.to("rdna").mode(dim), x.mode(dim))
            same(x.to("rdna").mode(dim, True), x.mode(dim, True))
    wide = torch.randint(0, 20, (3, 2000)).to(dtype) if dtype != torch.bool else few((3, 2000), dtype)
    values, places = wide.to("rdna").mode(1)
    assert torch.equal(values.cpu(), wide.mode(1).values)  # which place is open where there are many
    assert torch.equal(wide.gather(1, places.cpu().unsqueeze(1)).squeeze(1), values.cpu())
    out = (torch.empty(0, dtype=dtype, device="rdna"), torch.empty(0, dtype=torch.long, device="rdna"))
    torch.mode(wide[:, :9].to("rdna"), 1, out=out)
    same(out, wide[:, :9].mode(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [False, True])
def test_histograms(dtype, weighted, density):
    x = torch.randn(41, 5, dtype=dtype)
    x[3, 2], x[4, 1] = x.max(), x.min()
    options = {"weight": torch.rand_like(x) if weighted else None, "density": density}
    edges = torch.tensor([-1.5, -0.5, 0.25, 0.5, 2], dtype=dtype)
    close = {"rtol": 1e-5 if dtype == torch.float32 else 1e-12, "atol": 0}
    for bins, more in ((7, {}), (1, {}), (10, {"range": (-1.0, 1.5)}), (edges, {})):
        ours = {k: v.to("rdna") if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        want = torch.histogram(x, bins, **more, **options)
        got = torch.histogram(x.to("rdna"), bins.to("rdna") if isinstance(bins, torch.Tensor) else bins, **more, **ours)
        torch.testing.assert_close([t.cpu() for t in got], list(want), **close)
        rows = {**options, "weight": options["weight"][:, 0].contiguous() if weighted else None}
        ours = {**ours, "weight": rows["weight"].to("rdna") if weighted else None}
        several = [bins] * 2 if isinstance(bins, torch.Tensor) else [bins, 3]
        both = {"range": (-1.0, 1.5, -2.0, 2.0)} if more else {}
        want = torch.histogramdd(x[:, 1:3], several, **both, **rows)
        several = [b.to("rdna") if isinstance(b, torch.Tensor) else b for b in several]
        got = torch.histogramdd(x.to("rdna")[:, 1:3], several, **both, **ours)
        torch.testing.assert_close(got.hist.cpu(), want.hist, **close)
        torch.testing.assert_close([e.cpu() for e in got.bin_edges], list(want.bin_edges), **close)


def test_edges_of_histograms():
    nan = torch.tensor([0.5, math.nan, 2, -1, 1, 0], device="rdna")
    got = torch.histogram(nan, torch.tensor([0.0, 1, 2]).to("rdna")).hist
    assert got.tolist() == [2, 2]  # the last edge belongs to it
    same([torch.histogram(torch.ones(3).to("rdna"), 4).bin_edges], [torch.histogram(torch.ones(3), 4).bin_edges])
    same([*torch.histogram(torch.zeros(0).to("rdna"), 3)], [*torch.histogram(torch.zeros(0), 3)])
    out = (torch.empty(0, device="rdna"), torch.empty(0, device="rdna"))
    torch.histogram(torch.ones(3).to("rdna"), 4, out=out)
    same(out, torch.histogram(torch.ones(3), 4))
    torch.rdna.set_fallback_mode("allow")
    with pytest.raises(RuntimeError, match="is not finite"):
        torch.histogram(torch.tensor([1.0, math.inf]).to("rdna"), 3)


def test_places_in_more_values_than_32_bits_count():
    """A row that is seen 2^15 + 1 times takes no memory."""
    row = torch.zeros(2**16, dtype=torch.bool)
    row[[5, 2**16 - 1]] = True
    x, out = row.to("rdna").expand(2**15 + 1, -1), torch.empty(0, dtype=torch.int64, device="rdna")
    assert x.numel() > 2**31
    rows, columns = torch.nonzero(x[None], out=out).cpu()[:, 1:].unbind(1)
    assert torch.equal(rows, torch.arange(2**15 + 1).repeat_interleave(2))
    assert torch.equal(columns, torch.tensor([5, 2**16 - 1]).repeat(2**15 + 1))
