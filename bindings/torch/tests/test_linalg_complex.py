"""Complex matrices: factors, systems, inverses and determinants beside the CPU's, by residuals; nothing falls back."""

import math

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.complex64, torch.complex128]


def layouts(x):
    """The same values: by rows, by columns, every second of a wider matrix, the conjugate of the conjugate, one batch for all."""
    yield x
    yield x.mT.contiguous().mT
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1] + 1), math.nan, dtype=x.dtype, device=x.device)
    wide[..., 1::2] = x
    yield wide[..., 1::2]
    yield x.conj().resolve_conj().conj()


def close(found, expected, bound):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    rest = (found.cpu().to(torch.complex128) - expected.to(torch.complex128)).abs().amax() if expected.numel() else torch.tensor(0.0)
    assert rest <= bound * max(float(expected.abs().amax()) if expected.numel() else 0, 1e-300), rest


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n", [(1, 1), (5, 3), (3, 5), (33, 33), (0, 3), (3, 0)])
def test_lu(m, n, dtype):
    eps, a = torch.finfo(dtype).eps, torch.randn(2, m, n, dtype=dtype)
    if n > 2 and m > 2:
        a[1, :, 1] = 0
    for x in layouts(a.to("rdna")):
        p, lower, upper = torch.linalg.lu(x)
        product = p.cpu().to(torch.complex128) @ lower.cpu().to(torch.complex128) @ upper.cpu().to(torch.complex128)
        close(product.to(dtype), a, 4 * (n + 4) * eps)
        assert torch.equal(upper, upper.triu()) and torch.equal(lower.cpu().diagonal(0, -2, -1), torch.ones(2, min(m, n), dtype=dtype))
        factors, pivots, info = torch.linalg.lu_factor_ex(x)
        theirs = torch.linalg.lu_factor_ex(a)
        assert torch.equal(pivots.cpu(), theirs.pivots) and torch.equal(info.cpu(), theirs.info)
        assert factors.stride() == theirs.LU.stride()
    if m:
        standing = torch.linalg.lu_factor_ex((a + 8 * max(m, n) * torch.eye(m, n)).to("rdna"), pivot=False)
        assert torch.equal(standing.pivots.cpu(), torch.arange(1, min(m, n) + 1).int().expand(2, -1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("n, columns", [(1, 1), (9, 3), (40, 45), (0, 3), (3, 0)])
def test_systems(n, columns, left, dtype):
    a = torch.randn(2, 1, n, n, dtype=dtype)
    b = torch.randn(3, *((n, columns) if left else (columns, n)), dtype=dtype)
    condition = float(torch.linalg.cond(a).amax()) if n else 1.0
    bound = 4 * (n + 4) * torch.finfo(dtype).eps * condition
    for x in layouts(a.to("rdna")):
        for y in layouts(b.to("rdna")):
            close(torch.linalg.solve(x, y, left=left), torch.linalg.solve(a.to(torch.complex128), b.to(torch.complex128), left=left).to(dtype), bound)
    lu, pivots = torch.linalg.lu_factor(a)
    for adjoint in (False, True):
        for y in layouts(b.to("rdna")):
            found = torch.linalg.lu_solve(lu.to("rdna"), pivots.to("rdna"), y, left=left, adjoint=adjoint)
            close(found, torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint), bound)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems(left, upper, unit, dtype):
    """What is on the other side of the diagonal, and the diagonal where it is 1, are not read."""
    n, columns = 21, 5
    a = torch.randn(2, 1, n, n, dtype=dtype) / n + 2j * torch.eye(n, dtype=dtype)
    b = torch.randn(3, *((n, columns) if left else (columns, n)), dtype=dtype)
    expected = torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
    outside = torch.ones(n, n).tril(-1) if upper else torch.ones(n, n).triu(1)
    a = torch.where(outside.bool() | (torch.eye(n).bool() & unit), torch.full_like(a, math.nan), a)
    for x in layouts(a.to("rdna")):
        for y in layouts(b.to("rdna")):
            close(torch.linalg.solve_triangular(x, y, upper=upper, left=left, unitriangular=unit), expected, 64 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", TYPES)
def test_inverses_and_determinants(dtype):
    for shape in ((1, 1), (3, 2, 9, 9), (0, 0), (0, 4, 4)):
        a = torch.randn(shape, dtype=dtype)
        x, bound = a.to("rdna"), 1e4 * torch.finfo(dtype).eps
        close(torch.linalg.inv(x), torch.linalg.inv(a), bound)
        close(torch.linalg.det(x), torch.linalg.det(a), bound)
        for ours, theirs in zip(torch.linalg.slogdet(x), torch.linalg.slogdet(a)):
            assert ours.dtype == theirs.dtype
            torch.testing.assert_close(ours.cpu(), theirs, rtol=bound, atol=bound)


def refusals(device):
    singular = torch.ones(3, 3, dtype=torch.complex64, device=device)
    for call in (
        lambda: torch.linalg.inv(singular),
        lambda: torch.linalg.solve(singular, singular),
        lambda: torch.linalg.lu_factor(singular[:, :2] * 0),
        lambda: torch.linalg.solve(singular, singular.to(torch.complex128)),
        lambda: torch.linalg.inv(singular[:2]),
    ):
        with pytest.raises(Exception) as caught:
            call()
        yield type(caught.value), str(caught.value).split("\n")[0]


def test_errors_are_pytorchs():
    assert list(refusals("rdna")) == list(refusals("cpu"))


def gradients(device, dtype):
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(3, 6, 6, dtype=torch.complex128, generator=generator).to(device, dtype).requires_grad_()
    b = torch.randn(3, 6, 2, dtype=torch.complex128, generator=generator).to(device, dtype).requires_grad_()
    loss = torch.linalg.solve(a, b).abs().square().sum() + torch.linalg.inv(a).abs().sum() + torch.linalg.slogdet(a)[1].sum()
    loss = loss + torch.linalg.det(a).abs().sum() + torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b).real.sum()
    loss.backward()
    return a.grad.cpu(), b.grad.cpu()


def test_gradients():
    exact = gradients("cpu", torch.complex128)
    for dtype in TYPES:
        for ours, theirs in zip(gradients("rdna", dtype), exact):
            close(ours, theirs.to(dtype), 3e-4 if dtype == torch.complex64 else 1e-11)
