"""Complex matrices: factors, systems, inverses, determinants, eigenvalues, singular values and least squares beside the CPU's,
by residuals; nothing falls back."""

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


def unitary(q, eps):
    one = torch.eye(q.shape[-1], dtype=torch.complex128).expand(*q.shape[:-2], -1, -1)
    wide = q.cpu().to(torch.complex128)
    close(wide.mH @ wide, one, 20 * (q.shape[-2] + 2) * eps)


def product(*factors):
    """Of matrices of both kinds, in complex128 on the CPU."""
    wide = [f.cpu().to(torch.complex128) for f in factors]
    return wide[0] @ wide[1] if len(wide) == 2 else product(wide[0] @ wide[1], *wide[2:])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n", [(1, 1), (5, 3), (3, 5), (45, 40), (33, 50), (0, 3), (3, 0)])
def test_qr(m, n, dtype):
    """R has LAPACK's signs; of a matrix whose rank is not full Q is unitary all the same. Sizes far from 1 are no matter."""
    eps, a = torch.finfo(dtype).eps, torch.randn(2, m, n, dtype=dtype)
    if min(m, n) > 2:
        a[1, :, 1] = a[1, :, 0]
        a[1, :, 2] = 0
    for size in (1, 1e-25, 1e25):
        for x in layouts((a * size).to("rdna")):
            for mode in ("reduced", "complete"):
                q, r = torch.linalg.qr(x, mode)
                unitary(q, eps)
                close(product(q, r).to(dtype), a * size, 4 * (m + 4) * eps)
                close(r[0], torch.linalg.qr(a[0] * size, mode).R, 100 * (m + 4) * eps)
                assert torch.equal(r, r.triu())
    h, tau = (t.to("rdna") for t in torch.geqrf(a[0]))
    close(torch.linalg.householder_product(h, tau) if m >= n else tau, torch.linalg.householder_product(h.cpu(), tau.cpu()) if m >= n else tau.cpu(), 50 * (m + 4) * eps)
    for left in (True, False):
        c = torch.randn(*((m, 4) if left else (4, m)), dtype=dtype)
        for transpose in (True, False):
            close(torch.ormqr(h, tau, c.to("rdna"), left, transpose), torch.ormqr(h.cpu(), tau.cpu(), c, left, transpose), 50 * (m + 4) * eps)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_cholesky(n, upper, dtype):
    """The other triangle is not read, nor are the diagonal's imaginary parts."""
    eps, x = torch.finfo(dtype).eps, torch.randn(3, n, n, dtype=dtype)
    a = x @ x.mH + torch.eye(n)
    spoiled = (a.triu() if upper else a.tril()) + (torch.full_like(a, math.nan).tril(-1) if upper else torch.full_like(a, math.nan).triu(1)).nan_to_num(7) + 3j * torch.eye(n)
    for y in layouts(spoiled.to("rdna")):
        close(torch.linalg.cholesky(y, upper=upper), torch.linalg.cholesky(a, upper=upper), 100 * (n + 4) * eps)
    factor, b = torch.linalg.cholesky(a, upper=upper), torch.randn(3, n, 2, dtype=dtype)
    close(torch.cholesky_solve(b.to("rdna"), factor.to("rdna"), upper=upper), torch.cholesky_solve(b, factor, upper=upper), 1e4 * eps)
    close(torch.cholesky_inverse(factor.to("rdna"), upper=upper), torch.cholesky_inverse(factor, upper=upper), 1e4 * eps)
    for k in range(n):
        wrong = torch.eye(n, dtype=dtype)
        wrong[k, k] = -1
        assert torch.linalg.cholesky_ex(wrong.to("rdna"), upper=upper).info.item() == k + 1


def hermitian(kind, n, dtype, *batch):
    x = torch.randn(*batch, n, n, dtype=torch.complex128)
    q = torch.linalg.qr(x).Q
    return {
        "random": lambda: x + x.mH,
        "one value": lambda: torch.eye(n).expand_as(x).clone(),
        "three alike": lambda: (q * (torch.arange(n) // 3)) @ q.mH,
        "of rank 1": lambda: x[..., :1] @ x[..., :1].mH,
        "real": lambda: x.real + x.real.mT,
        "nothing": lambda: torch.zeros_like(x),
    }[kind]().to(dtype)


KINDS = ["random", "one value", "three alike", "of rank 1", "real", "nothing"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 6, 40])
def test_hermitian_eigenvalues(n, kind, dtype):
    """Also where values are alike, whose vectors may be any."""
    eps = torch.finfo(dtype).eps
    for batch in ((), (3,), (0,)):
        a = hermitian(kind, n, dtype, *batch)
        for uplo, half in (("L", a.tril()), ("U", a.triu())):
            values, vectors = torch.linalg.eigh(half.to("rdna"), UPLO=uplo)
            assert values.dtype == a.real.dtype and vectors.dtype == dtype
            unitary(vectors, eps)
            bound = 30 * (n + 4) * eps * max(float(a.abs().max()) if a.numel() else 0, 1)
            rest = product(a, vectors) - vectors.cpu() * values.cpu().unsqueeze(-2)
            assert rest.numel() == 0 or rest.abs().max() <= bound
            for found in (values, torch.linalg.eigvalsh(half.to("rdna"), UPLO=uplo)):
                torch.testing.assert_close(found.cpu(), torch.linalg.eigvalsh(a), rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m, n", [(1, 1), (6, 6), (9, 4), (4, 9), (40, 40)])
def test_singular_values(m, n, kind, dtype):
    eps = torch.finfo(dtype).eps
    a = hermitian(kind, max(m, n), dtype, 2)[:, :m, :n].contiguous()
    for full in (False, True):
        u, s, vh = torch.linalg.svd(a.to("rdna"), full)
        unitary(u, eps), unitary(vh.mH, eps)
        bound = 30 * (m + n + 4) * eps * max(float(a.abs().max()), 1)
        k = min(m, n)
        assert (product(u[..., :k] * s.unsqueeze(-2), vh[..., :k, :]) - a).abs().max() <= bound
        for found in (s, torch.linalg.svdvals(a.to("rdna"))):
            torch.testing.assert_close(found.cpu(), torch.linalg.svdvals(a), rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_eigenvalues(n, dtype):
    """Of matrices that are real or Hermitian too, whose values conjugation does not tell apart."""
    eps = torch.finfo(dtype).eps
    for a in (torch.randn(2, n, n, dtype=dtype), torch.randn(n, n, dtype=dtype.to_real()).to(dtype), hermitian("random", n, dtype, 2)):
        values, vectors = torch.linalg.eig(a.to("rdna"))
        size = n * max(float(a.abs().max()), 1)
        rest = product(a, vectors) - vectors.cpu() * values.cpu().unsqueeze(-2)
        assert rest.abs().max() <= 50 * eps * size
        torch.testing.assert_close(vectors.cpu().norm(dim=-2), torch.ones_like(vectors.cpu().norm(dim=-2)), rtol=0, atol=20 * eps)
        theirs = torch.linalg.eigvals(a.to(torch.complex128))
        for found in (values.cpu(), torch.linalg.eigvals(a.to("rdna")).cpu()):
            apart = (found.to(torch.complex128).unsqueeze(-1) - theirs.unsqueeze(-2)).abs()
            assert apart.amin(-1).max() <= 1e4 * eps * size and apart.amin(-2).max() <= 1e4 * eps * size


@pytest.mark.parametrize("dtype", TYPES)
def test_exponentials_and_what_is_made_of_singular_values(dtype):
    eps = torch.finfo(dtype).eps
    a = torch.randn(2, 7, 7, dtype=dtype)
    x = a.to("rdna")
    close(torch.linalg.matrix_exp(x), torch.linalg.matrix_exp(a), 1e3 * eps)
    close(torch.linalg.pinv(x[:, :, :4]), torch.linalg.pinv(a[:, :, :4]), 1e3 * eps)
    assert torch.linalg.matrix_rank(hermitian("of rank 1", 7, dtype).to("rdna")).item() == 1
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        for m, n in ((9, 4), (4, 9)):
            b, c = torch.randn(2, m, n, dtype=dtype), torch.randn(2, m, 3, dtype=dtype)
            ours, theirs = torch.linalg.lstsq(b.to("rdna"), c.to("rdna"), driver=driver), torch.linalg.lstsq(b, c, driver=driver)
            close(ours.solution, theirs.solution, 1e3 * eps)
            assert ours.residuals.dtype == theirs.residuals.dtype and ours.residuals.shape == theirs.residuals.shape
            torch.testing.assert_close(ours.residuals.cpu(), theirs.residuals, rtol=1e3 * eps, atol=1e3 * eps)


def gradients_of_factors(device, dtype):
    generator = torch.Generator().manual_seed(5)
    a = torch.randn(2, 6, 6, dtype=torch.complex128, generator=generator).to(device, dtype).requires_grad_()
    h = a @ a.mH + torch.eye(6, device=device)
    u, s, vh = torch.linalg.svd(a[:, :, :4], full_matrices=False)
    values, vectors = torch.linalg.eigh(h)
    q, r = torch.linalg.qr(a[:, :, :4])
    loss = s.square().sum() + (u @ vh).abs().sum() + values.log().sum() + (vectors.abs() ** 4).sum() + (q * r.mT.sum(-1, keepdim=True).mT.sum()).abs().sum()
    loss = loss + torch.linalg.cholesky(h).abs().sum() + torch.linalg.eigvals(a).abs().square().sum()
    loss.backward()
    return a.grad.cpu()


def test_gradients_of_factors():
    exact = gradients_of_factors("cpu", torch.complex128)
    for dtype in TYPES:
        close(gradients_of_factors("rdna", dtype), exact.to(dtype), 2e-2 if dtype == torch.complex64 else 1e-9)
