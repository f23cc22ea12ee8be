"""Products of integers, which wrap as the CPU's do, whatever the size of the numbers; nothing falls back."""

import pytest
import torch

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def numbers(dtype, *shape, seed=0):
    """Of all bits, the ends of the range among them."""
    bounds = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(bounds.min, bounds.max, shape, generator=generator, dtype=dtype)
    if x.numel() > 3:
        x.view(-1)[:3] = torch.tensor([bounds.min, bounds.max, bounds.max - 1], dtype=dtype)
    return x


@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (5, 7, 3), (33, 70, 40), (4, 0, 3), (0, 4, 3), (3, 4, 0)])
def test_products_are_the_cpus(m, k, n, dtype):
    a, b, c = numbers(dtype, 2, m, k), numbers(dtype, 2, k, n, seed=1), numbers(dtype, 2, m, n, seed=2)
    x, y, z = (t.to("rdna") for t in (a, b, c))
    wide = numbers(dtype, k, 2 * m, seed=3)

    def all_of(a, b, c, wide):
        yield a @ b
        yield torch.mm(a[0], b[1])
        yield wide[:, ::2].T @ b[0]
        yield torch.addmm(c[0], a[0], b[0], beta=-3, alpha=5)
        yield torch.addmm(c[0, :1], a[0], b[0], beta=0)
        if m:
            yield torch.addmm(c[0, 0], a[0], b[0])
        yield torch.baddbmm(c, a, b, beta=2, alpha=-1)
        yield torch.baddbmm(c, a, b, beta=0)
        if n:
            yield a[0] @ b[0, :, 0]
            yield torch.addmv(c[0, :, 0], a[0], b[0, :, 0], beta=7, alpha=3)
        if m and n:
            yield torch.dot(a[0, 0], b[0, :, 0])
        yield torch.einsum("bij,bjk->bik", a, b)

    for i, (found, expected) in enumerate(zip(all_of(x, y, z, wide.to("rdna")), all_of(a, b, c, wide), strict=True)):
        assert found.dtype == dtype and torch.equal(found.cpu(), expected), i
    out = torch.full((m, 2 * n), 7, dtype=dtype, device="rdna")
    torch.mm(x[0], y[0], out=out[:, ::2])
    assert torch.equal(out[:, ::2].cpu(), a[0] @ b[0]) and (out[:, 1::2] == 7).all()


@pytest.mark.usefixtures("nothing_falls_back")
def test_long_sums_are_exact():
    """Longer than f64 holds the sum of in one piece: of 2^19 products of the largest digits."""
    a = torch.full((1, 2**19 + 3), -1, dtype=torch.int64)
    b = torch.full((2**19 + 3, 2), 2**32 - 1, dtype=torch.int64)
    assert torch.equal((a.to("rdna") @ b.to("rdna")).cpu(), a @ b)


def test_factors_that_are_no_integers():
    a = numbers(torch.int64, 3, 3)
    for change in ({"beta": 0.5}, {"alpha": 1.5}):
        assert torch.equal(torch.addmm(a.to("rdna"), a.to("rdna"), a.to("rdna"), **change).cpu(), torch.addmm(a, a, a, **change))


@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_different_values_of_nothing(shape, dtype):
    a = torch.zeros(shape, dtype=dtype)
    for flags in ({}, {"return_inverse": True}, {"return_counts": True}, {"return_inverse": True, "return_counts": True}):
        for call in (torch.unique, torch.unique_consecutive):
            found, expected = call(a.to("rdna"), **flags), call(a, **flags)
            for f, e in zip(*((t,) if torch.is_tensor(t) else t for t in (found, expected)), strict=True):
                assert f.dtype == e.dtype and torch.equal(f.cpu(), e)


@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.parametrize("dtype", TYPES)
def test_integers_filled_with_whole_floats(dtype):
    a = numbers(dtype, 5, 7)
    for value in (0.0, -0.0, 1.0, 127.0):
        assert torch.equal(a.to("rdna").masked_fill((a > 3).to("rdna"), value).cpu(), a.masked_fill(a > 3, value))
