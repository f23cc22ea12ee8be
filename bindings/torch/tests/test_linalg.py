"""Linear algebra: residuals in float64 beside those of LAPACK, layouts, gradients, PyTorch's own errors; nothing falls back."""

import math

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

SHAPES = [(1, 1), (5, 5), (3, 2, 33, 33), (70, 70), (0, 0), (0, 4, 4), (2, 0, 0)]
TYPES = [torch.float32, torch.float64]


def random(*shape, dtype):
    return torch.randn(shape, dtype=torch.float64).to(dtype)


def positive(*shape, dtype):
    x = torch.randn(shape, dtype=torch.float64)
    return (x @ x.mT + shape[-1] * torch.eye(shape[-1])).to(dtype)


def layouts(x):
    """The same values: by rows, by columns, with gaps, every second of a batch, and one matrix for a whole batch."""
    yield x
    yield x.mT.contiguous().mT
    wide = torch.full((*x.shape[:-1], 2 * x.shape[-1] + 1), math.nan, dtype=x.dtype, device=x.device)
    wide[..., 1::2] = x
    yield wide[..., 1::2]
    yield torch.stack([x, x], 1)[:, 1] if x.dim() > 2 else torch.nn.functional.pad(x, (1, 2))[:, 1 : 1 + x.shape[1]]


def error(found, expected):
    """The largest difference, in units in the last place of the largest value."""
    a, b = (t.cpu().double().numpy() for t in (found, expected))
    assert found.dtype == expected.dtype and a.shape == b.shape
    size = max(np.abs(b).max(initial=0), np.finfo(np.float64).tiny)
    return np.abs(a - b).max(initial=0) / size / torch.finfo(found.dtype).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(shape, dtype, upper):
    a = positive(*shape, dtype=dtype)
    spoiled = a + torch.full_like(a, math.nan).tril(-1) if upper else a + torch.full_like(a, math.nan).triu(1)
    spoiled = torch.where(torch.isnan(spoiled), torch.full_like(a, math.nan), a)
    for x in layouts(spoiled.to("rdna")):
        f = torch.linalg.cholesky(x, upper=upper)
        assert f.shape == a.shape and f.mT.is_contiguous()
        assert torch.equal(f, f.triu() if upper else f.tril())
        exact = f.cpu().double()
        assert error((exact.mT @ exact if upper else exact @ exact.mT).to(dtype), a) <= shape[-1] + 2
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(a, upper=upper).to("rdna"), upper=upper)
    assert error((a.double() @ inverse.cpu().double()).to(dtype), torch.eye(shape[-1], dtype=dtype).expand(shape)) <= 8 * shape[-1] + 8


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("n, columns", [(1, 3), (7, 1), (37, 40), (70, 5), (0, 3), (3, 0)])
def test_triangular_systems(n, columns, left, upper, unit, dtype):
    a = random(2, 1, n, n, dtype=dtype) / max(n, 1) + 2 * torch.eye(n, dtype=dtype)
    b = random(3, *((n, columns) if left else (columns, n)), dtype=dtype)
    triangle = (a.triu() if upper else a.tril()).double()
    if unit:
        triangle = triangle - torch.diag_embed(triangle.diagonal(0, -2, -1)) + torch.eye(n)
    outside = torch.ones(n, n).tril(-1) if upper else torch.ones(n, n).triu(1)
    a = torch.where(outside.bool() | (torch.eye(n).bool() & unit), torch.full_like(a, math.nan), a)
    for x in layouts(a.to("rdna")):
        for y in layouts(b.to("rdna")):
            found = torch.linalg.solve_triangular(x, y, upper=upper, left=left, unitriangular=unit)
            assert found.shape == (2, *b.shape) and (found.mT.is_contiguous() or columns * n == 0)
            exact = found.cpu().double()
            back = (triangle @ exact if left else exact @ triangle).to(dtype)
            assert error(back, b.expand(found.shape)) <= 4 * n + 4
    # in place, and into memory with gaps
    y = b.expand(2, 3, *b.shape[-2:]).contiguous().to("rdna")
    assert torch.linalg.solve_triangular(x, y, upper=upper, left=left, unitriangular=unit, out=y) is y
    assert torch.equal(y, found)
    gaps = torch.zeros(2, 3, *b.shape[-2:], 2, dtype=dtype, device="rdna")
    torch.linalg.solve_triangular(x, b.to("rdna"), upper=upper, left=left, unitriangular=unit, out=gaps[..., 1])
    assert torch.equal(gaps[..., 1], found) and not gaps[..., 0].any()


def test_cholesky_solve_and_triangular_solve():
    a, b = positive(2, 9, 9, dtype=torch.float64), random(9, 4, dtype=torch.float64)
    for upper in (False, True):
        factor = torch.linalg.cholesky(a, upper=upper)
        found = torch.cholesky_solve(b.to("rdna"), factor.to("rdna"), upper=upper)
        assert error(a @ found.cpu(), b.expand(2, 9, 4)) <= 40
        for transpose in (False, True):
            x, m = torch.triangular_solve(b.to("rdna"), factor.to("rdna"), upper=upper, transpose=transpose)
            assert torch.equal(m.cpu(), factor)
            assert error((factor.mT if transpose else factor) @ x.cpu(), b.expand(2, 9, 4)) <= 40


def gaussian_process(device, dtype, n=60):
    """One step of exact inference: a kernel's matrix, its factor, the log of its determinant, gradients of all of it."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(n, 3, generator=generator).to(device, dtype), torch.randn(n, generator=generator).to(device, dtype)
    scale = torch.zeros(3, dtype=dtype, device=device, requires_grad=True)
    noise = torch.zeros((), dtype=dtype, device=device, requires_grad=True)
    z = x / scale.exp()
    k = torch.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(-1)) + noise.exp() * torch.eye(n, dtype=dtype, device=device)
    l = torch.linalg.cholesky(k)
    v = torch.linalg.solve_triangular(l, y[:, None], upper=False)
    normal = torch.distributions.MultivariateNormal(y, scale_tril=l, validate_args=False)
    w = torch.cholesky_solve(y[:, None], l)
    loss = (v**2).sum() / 2 + l.diagonal().log().sum() - normal.log_prob(y.flip(0)) + (w * y[:, None]).sum()
    loss.backward()
    return loss.detach(), scale.grad, noise.grad


def test_a_gaussian_process_stays_on_the_device():
    """The kernel's matrix has eigenvalues from 1 (the noise) to n + 1, so that its condition is at most n + 1; sums of n
    values have errors of random sign."""
    n = 60
    exact = gaussian_process("cpu", torch.float64, n)
    for dtype in TYPES:
        bound = math.sqrt(n) * (n + 1) * torch.finfo(dtype).eps
        for a, b in zip(gaussian_process("rdna", dtype, n), exact):
            torch.testing.assert_close(a.cpu().double(), b, rtol=bound, atol=bound)


def refusals(device):
    eye = torch.eye(3, device=device)
    yield lambda: torch.linalg.cholesky(-eye)
    yield lambda: torch.linalg.cholesky(torch.stack([eye, eye - 2 * torch.diag(eye[2])]))
    yield lambda: torch.linalg.cholesky_ex(eye * math.nan, check_errors=True)
    yield lambda: torch.linalg.cholesky(eye[:2])
    yield lambda: torch.linalg.cholesky(eye.int())
    yield lambda: torch.linalg.cholesky(eye, out=torch.empty(3, 3, dtype=torch.int32, device=device))
    yield lambda: torch.linalg.solve_triangular(eye, eye[:2], upper=True)
    yield lambda: torch.linalg.solve_triangular(eye[0], eye, upper=True)
    yield lambda: torch.cholesky_inverse(eye[:2])
    yield lambda: torch.cholesky_solve(eye, eye[:2, :2])
    singular = torch.diag(eye[0])
    yield lambda: torch.linalg.inv(singular)
    yield lambda: torch.linalg.inv(torch.stack([eye, singular]))
    yield lambda: torch.linalg.solve(singular, eye)
    yield lambda: torch.linalg.inv_ex(singular, check_errors=True)
    yield lambda: torch.linalg.lu_factor_ex(singular, check_errors=True)
    yield lambda: torch.linalg.lu_factor(torch.stack([eye, singular]))
    yield lambda: torch.linalg.solve(eye, eye[:2])
    yield lambda: torch.linalg.solve(eye[:2], eye)
    yield lambda: torch.linalg.inv(eye[:2])
    yield lambda: torch.linalg.det(eye[:2])
    yield lambda: torch.linalg.lu_solve(eye, torch.ones(3, device=device), eye)
    yield lambda: torch.linalg.lu_solve(eye, torch.ones(2, dtype=torch.int32, device=device), eye)
    yield lambda: torch.lu_unpack(eye, torch.ones(3, device=device))
    yield lambda: torch.linalg.qr(eye, mode="none")
    yield lambda: torch.linalg.qr(eye[0])
    yield lambda: torch.linalg.householder_product(eye[:2], eye[0])
    yield lambda: torch.linalg.householder_product(eye, torch.ones(4, device=device))
    yield lambda: torch.ormqr(eye, eye[0], eye[:2])
    yield lambda: torch.linalg.lstsq(eye, eye[:2], driver="gels")
    yield lambda: torch.linalg.lstsq(singular, eye, driver="gels")
    yield lambda: torch.linalg.lstsq(eye, eye[:2], driver="gelsd")
    yield lambda: torch.linalg.lstsq(eye, eye, driver="gelsx")
    unknown = eye * math.nan
    yield lambda: torch.linalg.svd(unknown)
    yield lambda: torch.linalg.svdvals(torch.stack([eye, unknown]))
    yield lambda: torch.linalg.pinv(unknown)
    yield lambda: torch.linalg.eigh(unknown)
    yield lambda: torch.linalg.eigvalsh(torch.stack([eye, unknown]))
    yield lambda: torch.linalg.eigh(eye[:2])
    yield lambda: torch.linalg.eigh(eye, UPLO="x")
    yield lambda: torch.linalg.svd(eye, driver="gesvd")
    yield lambda: torch.linalg.svd(eye[0])
    yield lambda: torch.linalg.matrix_exp(eye[:2])


def test_errors_are_pytorchs():
    for ours, theirs in zip(refusals("rdna"), refusals("cpu")):
        with pytest.raises(RuntimeError) as expected:
            theirs()
        with pytest.raises(type(expected.value)) as found:
            ours()
        assert str(found.value) == str(expected.value)


def test_matrices_that_fail_are_named_and_others_factored():
    a = positive(4, 40, 40, dtype=torch.float32)
    a[1, 37, 37] = -1
    a[3, 0, 0] = math.nan
    l, info = torch.linalg.cholesky_ex(a.to("rdna"))
    assert info.dtype == torch.int32 and info.tolist() == [0, 38, 0, 1]
    for i in (0, 2):
        assert error((l[i].cpu().double() @ l[i].cpu().double().mT).float(), a[i]) <= 42


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_minors_that_fail_are_those_of_lapack(dtype, upper):
    """Sizes of several blocks: at their edges, two in one matrix, and at the last row."""
    a = positive(9, 300, 300, dtype=dtype)
    for i, at in enumerate([[0], [127], [128], [130, 135], [5, 200], [255], [256, 299], [299]]):
        for j in at:
            a[i, j, j] = math.nan if j % 2 else -1
    a[:, 128:256, 40] = a[:, 40, 128:256] = 0
    _, expected = torch.linalg.cholesky_ex(a, upper=upper)
    l, info = torch.linalg.cholesky_ex(a.to("rdna"), upper=upper)
    assert info.tolist() == expected.tolist() and info[-1] == 0
    exact = l[-1].cpu().double()
    assert error((exact.mT @ exact if upper else exact @ exact.mT).to(dtype), a[-1]) <= 302
    assert (l.tril(-1) if upper else l.triu(1)).count_nonzero() == 0


def residual(found, expected, scale):
    """The largest difference, in units in the last place of |scale|: of values that cancel."""
    assert found.shape == expected.shape
    size = max(scale.abs().max().item() if scale.numel() else 0, np.finfo(np.float64).tiny)
    return (found - expected).abs().max().item() / size if found.numel() else 0


def condition(a):
    """The largest of a batch: what an error of the matrix is multiplied by in its inverse and its determinant."""
    return torch.linalg.cond(a.double()).max().item() if a.numel() else 1


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n", [(1, 1), (5, 3), (33, 70), (70, 33), (131, 40), (0, 3), (3, 0)])
def test_lu(m, n, dtype):
    a, k, eps = random(2, 1, m, n, dtype=dtype), min(m, n), torch.finfo(dtype).eps
    for x in layouts(a.to("rdna")):
        lu, pivots = torch.linalg.lu_factor(x)
        assert lu.mT.is_contiguous() or lu.numel() == 0
        assert pivots.dtype == torch.int32 and pivots.shape == (*x.shape[:-2], k)
        p, l, u = torch.lu_unpack(lu, pivots)
        exact = [t.cpu().double() for t in (p, l, u)]
        back = exact[0] @ exact[1] @ exact[2]
        assert residual(back, x.cpu().double(), exact[1].abs() @ exact[2].abs()) <= (k + 1) * eps
        assert (exact[1].tril() == exact[1]).all() and (exact[1].abs() <= 1).all()
        assert (exact[1].diagonal(0, -2, -1) == 1).all() and (exact[2].triu() == exact[2]).all()
        assert (exact[0].sum(-1) == 1).all() and (exact[0].sum(-2) == 1).all()
        for found, again in zip(torch.linalg.lu(x), (p, l, u)):
            assert torch.equal(found, again)
    if k:
        _, expected = torch.linalg.lu_factor(a)
        assert torch.equal(pivots.cpu(), expected) or dtype == torch.float32
    dominant = (a[0, 0] + 4 * n * torch.eye(m, n)).to(dtype)
    lu, pivots = torch.linalg.lu_factor(dominant.to("rdna"), pivot=False)
    assert pivots.tolist() == list(range(1, k + 1))
    exact = [t.cpu().double() for t in torch.lu_unpack(lu, pivots)[1:]]
    assert residual(exact[0] @ exact[1], dominant.double(), exact[0].abs() @ exact[1].abs()) <= (k + 1) * eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("n, columns", [(1, 1), (9, 3), (70, 40), (0, 3), (3, 0)])
def test_systems(n, columns, left, dtype):
    """The residual of a solution, which is small whatever the matrix's condition (Higham, theorem 9.4)."""
    a, eps = random(2, 1, n, n, dtype=dtype), torch.finfo(dtype).eps
    b = random(3, *((n, columns) if left else (columns, n)), dtype=dtype)
    factors = torch.linalg.lu_factor(a.to("rdna"))
    for y in layouts(b.to("rdna")):
        rows = y.cpu().double()
        for adjoint in (False, True):
            x = torch.linalg.lu_solve(*factors, y, left=left, adjoint=adjoint).cpu().double()
            exact = (a.mT if adjoint else a).double()
            back, size = (exact @ x, exact.abs() @ x.abs()) if left else (x @ exact, x.abs() @ exact.abs())
            assert residual(back, rows.expand(back.shape), size) <= 8 * (n + 1) * eps
        x = torch.linalg.solve(a.to("rdna"), y, left=left).cpu().double()
        back, size = (a.double() @ x, a.double().abs() @ x.abs()) if left else (x @ a.double(), x.abs() @ a.double().abs())
        assert residual(back, rows.expand(back.shape), size) <= 8 * (n + 1) * eps
    out = torch.zeros(2, 3, *b.shape[-2:], 2, dtype=dtype, device="rdna")
    torch.linalg.solve(a.to("rdna"), b.to("rdna"), left=left, out=out[..., 1])
    assert torch.equal(out[..., 1], torch.linalg.solve(a.to("rdna"), b.to("rdna"), left=left)) and not out[..., 0].any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 2, 33, 33), (70, 70), (0, 0), (0, 4, 4), (2, 0, 0)])
def test_inverses_and_determinants(shape):
    a = random(*shape, dtype=torch.float64) + 2 * torch.eye(shape[-1], dtype=torch.float64)
    for x in layouts(a.to("rdna")):
        exact = x.cpu()
        bound = shape[-1] * condition(exact) * torch.finfo(torch.float64).eps
        for name in ("inv", "det", "slogdet"):
            found, expected = getattr(torch.linalg, name)(x), getattr(torch.linalg, name)(exact)
            for f, e in zip(*((t,) if torch.is_tensor(t) else t for t in (found, expected))):
                torch.testing.assert_close(f.cpu(), e, rtol=bound, atol=bound * max(1, e.abs().max().item() if e.numel() else 0))
    assert torch.linalg.det(torch.zeros(3, 3, device="rdna")).item() == 0
    sign, log = torch.linalg.slogdet(torch.zeros(3, 3, device="rdna"))
    assert sign.item() == 0 and log.item() == -math.inf
    assert torch.linalg.det(torch.full((3, 3), math.nan, device="rdna")).isnan()


def gradients(device, dtype):
    """Of everything that LU gives, through PyTorch's own formulas."""
    generator = torch.Generator().manual_seed(2)
    a = (torch.randn(2, 7, 7, generator=generator) + 3 * torch.eye(7)).to(device, dtype).requires_grad_()
    b = torch.randn(2, 7, 3, generator=generator).to(device, dtype).requires_grad_()
    _, l, u = torch.linalg.lu(a)
    sign, log = torch.linalg.slogdet(a)
    loss = (torch.linalg.solve(a, b) ** 2).sum() + torch.linalg.inv(a).sin().sum() + torch.linalg.det(a).sum() / 1000
    loss = loss + (sign * log).sum() + (l.sin() + u.cos()).sum() + torch.linalg.solve(a, b.mT, left=False).sum()
    loss.backward()
    return a.detach(), (loss.detach(), a.grad, b.grad)


def test_gradients_of_lu():
    """A solution's gradient is a solution of a solution, so that the condition stands squared."""
    a, exact = gradients("cpu", torch.float64)
    for dtype in TYPES:
        bound = a.shape[-1] * condition(a) ** 2 * torch.finfo(dtype).eps
        for f, e in zip(gradients("rdna", dtype)[1], exact):
            torch.testing.assert_close(f.cpu().double(), e, rtol=bound, atol=bound * e.abs().max().item())


def test_singular_matrices_are_named_and_others_solved():
    a = random(3, 40, 40, dtype=torch.float64)
    a[1, :, 37] = 0
    _, _, info = torch.linalg.lu_factor_ex(a.to("rdna"))
    assert info.dtype == torch.int32 and info.tolist() == [0, 38, 0]
    x, info = torch.linalg.solve_ex(a.to("rdna"), torch.eye(40, dtype=torch.float64, device="rdna"))
    assert info.tolist() == [0, 38, 0]
    a, x = a[::2], x[::2].cpu()
    eye = torch.eye(40, dtype=torch.float64).expand(2, 40, 40)
    assert residual(a @ x, eye, a.abs() @ x.abs()) <= 8 * 41 * torch.finfo(torch.float64).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n", [(1, 1), (5, 3), (33, 70), (70, 33), (131, 40), (0, 3), (3, 0)])
def test_qr(m, n, dtype):
    """Q is orthogonal, and Q R each column of the matrix, up to a multiple of eps (Higham, theorem 19.4)."""
    a, k, eps = random(2, 1, m, n, dtype=dtype), min(m, n), torch.finfo(dtype).eps
    for x in layouts(a.to("rdna")):
        for mode, size in (("reduced", k), ("complete", m)):
            q, r = torch.linalg.qr(x, mode=mode)
            assert q.shape == (*x.shape[:-1], size) and r.shape == (*x.shape[:-2], size, n)
            exact, upper = q.cpu().double(), r.cpu().double()
            eye = torch.eye(size, dtype=torch.float64)
            assert residual(exact.mT @ exact, eye.expand(*x.shape[:-2], size, size), eye) <= 2 * (k + 4) * eps
            length = torch.linalg.vector_norm(x.cpu().double(), dim=-2, keepdim=True)
            assert residual(exact @ upper, x.cpu().double(), length) <= 2 * (k + 4) * eps
            assert (upper.triu() == upper).all()
        _, alone = torch.linalg.qr(x, mode="r")
        assert torch.equal(alone, torch.linalg.qr(x)[1])
    if k:  # signs are LAPACK's
        expected = torch.linalg.qr(a.double())[1].diagonal(0, -2, -1)
        assert torch.equal(torch.linalg.qr(a.to("rdna"))[1].cpu().double().diagonal(0, -2, -1).sign(), expected.sign())
    qr, tau = torch.geqrf(a.to("rdna"))
    if k:
        assert torch.equal(torch.linalg.householder_product(qr[..., :k], tau), torch.linalg.qr(a.to("rdna"))[0])


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_products_with_reflections(left, transpose):
    a = random(2, 50, 40, dtype=torch.float64)
    qr, tau = torch.geqrf(a)
    for columns in (1, 9):
        for x in layouts(random(2, *((50, columns) if left else (columns, 50)), dtype=torch.float64).to("rdna")):
            found, expected = torch.ormqr(qr.to("rdna"), tau.to("rdna"), x, left, transpose), torch.ormqr(qr, tau, x.cpu(), left, transpose)
            assert error(found, expected) <= 200
    some = tau[:, :7]
    found, expected = torch.linalg.householder_product(qr.to("rdna"), some.to("rdna")), torch.linalg.householder_product(qr, some)
    assert error(found, expected) <= 100


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n, columns", [(1, 1, 1), (9, 5, 3), (70, 40, 2), (5, 9, 3), (40, 70, 2), (0, 3, 2), (3, 0, 2)])
def test_least_squares(m, n, columns, dtype):
    """What is left over is orthogonal to the columns; of many solutions the one in the span of the rows."""
    a, b, eps = random(2, m, n, dtype=dtype), random(2, m, columns, dtype=dtype), torch.finfo(dtype).eps
    bound = 20 * (m + n) * condition(a) * eps
    for driver in (None, "gels"):
        for x in layouts(a.to("rdna")):
            if x.shape[1:] != a.shape[1:]:
                continue
            found = torch.linalg.lstsq(x, b.to("rdna"), driver=driver)
            exact = torch.linalg.lstsq(x.cpu().double(), b.double(), driver="gels")
            scale = exact.solution.abs().max().item() if exact.solution.numel() else 1
            torch.testing.assert_close(found.solution.cpu().double(), exact.solution, rtol=0, atol=bound * max(scale, 1))
            assert found.residuals.shape == exact.residuals.shape and found.rank.numel() == 0
            torch.testing.assert_close(found.residuals.cpu().double(), exact.residuals, rtol=bound, atol=bound)


def fitted(m, n, rank, dtype, *batch):
    """A matrix of that rank whose other singular values are nothing, and what it is to meet."""
    u, v = (torch.linalg.qr(torch.randn(*batch, k, min(m, n), dtype=torch.float64)).Q for k in (m, n))
    s = torch.linspace(2, 1, min(m, n), dtype=torch.float64) * (torch.arange(min(m, n)) < rank)
    return ((u * s) @ v.mT).to(dtype), torch.randn(*batch, m, 3, dtype=dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "GELSS"])
@pytest.mark.parametrize("m, n, rank", [(1, 1, 1), (9, 5, 5), (9, 5, 2), (70, 40, 33), (5, 9, 5), (5, 9, 3), (40, 70, 1), (4, 4, 0), (0, 3, 0), (3, 0, 0)])
def test_least_squares_of_any_rank(m, n, rank, driver, dtype):
    """The shortest solution, by the pseudoinverse; what is known of rank, singular values and rests is what LAPACK's gelsd
    says. (The CPU's gelsy takes whatever was in memory for columns that are to be first, and miscounts.)"""
    for batch in ((), (2, 3), (0,)):
        a, b = fitted(m, n, rank, dtype, *batch)
        bound = 40 * (m + n + 1) * torch.finfo(dtype).eps
        theirs = torch.linalg.lstsq(a, b, driver="gelsd", rcond=1e-4)
        for x in layouts(a.to("rdna")):
            if x.shape != a.shape:
                continue
            found = torch.linalg.lstsq(x, b.to("rdna"), driver=driver, rcond=1e-4)
            exact = torch.linalg.pinv(a.double(), rtol=1e-4) @ b.double()
            torch.testing.assert_close(found.solution.cpu().double(), exact, rtol=0, atol=bound)
            assert found.rank.shape == torch.Size(batch) and bool((found.rank == rank).all()) and found.rank.dtype == torch.int64
            by_values = driver != "gelsy"
            assert found.singular_values.shape == (theirs.singular_values.shape if by_values else (0,))
            assert found.residuals.shape == (theirs.residuals.shape if by_values else (0,))
            if by_values:
                torch.testing.assert_close(found.singular_values.cpu(), theirs.singular_values, rtol=0, atol=bound)
                torch.testing.assert_close(found.residuals.cpu(), theirs.residuals, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", TYPES)
def test_least_squares_count_as_the_drivers_do(dtype):
    """Each driver has its own idea of rcond below 0, of 0, and from 1 on."""
    a = torch.diag(torch.tensor([4, 1, 1e-3, torch.finfo(dtype).eps / 8], dtype=dtype))
    b = torch.ones(4, 1, dtype=dtype)
    for driver in ("gelsd", "gelss"):
        for rcond in (None, -1.0, 0.0, 1e-5, 0.01, 1.0, 2.0):
            ours, theirs = (torch.linalg.lstsq(x, y, driver=driver, rcond=rcond) for x, y in ((a.to("rdna"), b.to("rdna")), (a, b)))
            assert ours.rank.item() == theirs.rank.item(), (driver, rcond)
            torch.testing.assert_close(ours.solution.cpu(), theirs.solution, rtol=1e-5, atol=0)
    for rcond, rank in ((None, 3), (0.0, 4), (0.01, 2), (1.0, 1), (2.0, 1)):
        assert torch.linalg.lstsq(a.to("rdna"), b.to("rdna"), driver="gelsy", rcond=rcond).rank.item() == rank


def test_least_squares_into_given_tensors():
    a, b = fitted(9, 5, 5, torch.float32, 2)
    given = [torch.empty(0, dtype=t, device="rdna") for t in (torch.float32, torch.float32, torch.int64, torch.float32)]
    torch.linalg.lstsq(a.to("rdna"), b.to("rdna"), driver="gelsd", out=tuple(given))
    for ours, theirs in zip(given, torch.linalg.lstsq(a, b, driver="gelsd")):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-5, atol=1e-5)


def test_gradients_of_least_squares():
    a, b = fitted(9, 5, 5, torch.float64, 2)
    slopes = []
    for device, dtype in (("cpu", torch.float64), ("rdna", torch.float64), ("rdna", torch.float32)):
        x, y = (t.to(device, dtype, copy=True).requires_grad_() for t in (a, b))
        torch.linalg.lstsq(x, y, driver="gelsd" if device == "cpu" else "gelss").solution.square().sum().backward()
        slopes.append([t.grad.cpu().double() for t in (x, y)])
    for found, bound in zip(slopes[1:], (1e-12, 1e-5)):
        for ours, theirs in zip(found, slopes[0]):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=bound * theirs.abs().max().item())


def gradients_of_qr(device, dtype):
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(2, 7, 5, generator=generator).to(device, dtype).requires_grad_()
    q, r = torch.linalg.qr(a)
    full, square = torch.linalg.qr(a[:, :5], mode="complete")
    v, tau = (t.detach().requires_grad_() for t in torch.geqrf(a))
    loss = q.sin().sum() + r.cos().sum() + (full * square).sum() + torch.linalg.householder_product(v, tau).sin().sum()
    loss = loss + torch.ormqr(v, tau, a).square().cos().sum()
    loss.backward()
    return loss.detach(), a.grad, v.grad, tau.grad


def test_gradients_of_qr():
    for dtype in TYPES:
        bound = 1000 * torch.finfo(dtype).eps
        for f, e in zip(gradients_of_qr("rdna", dtype), gradients_of_qr("cpu", torch.float64)):
            torch.testing.assert_close(f.cpu().double(), e, rtol=bound, atol=bound * e.abs().max().item())


def matrices(kind, m, n, dtype):
    """Normal; of rank 2; columns of ever smaller size; with singular values in clusters; zeros."""
    a = random(2, m, n, dtype=torch.float64)
    if kind == "rank":
        a = a[..., :2] @ random(2, min(2, n), n, dtype=torch.float64)
    if kind == "graded":
        a = a * 10 ** torch.linspace(0, -20, n, dtype=torch.float64)
    if kind == "clusters":
        u, v = torch.linalg.qr(a @ a.mT)[0], torch.linalg.qr(a.mT @ a)[0]
        a = u[..., : min(m, n)] * torch.arange(1, min(m, n) + 1).div(4, rounding_mode="floor") @ v[..., : min(m, n)].mT
    return (a * (kind != "zeros")).to(dtype)


KINDS = ["normal", "rank", "graded", "clusters", "zeros"]


def orthogonal(q, bound):
    eye = torch.eye(q.shape[-1], dtype=torch.float64)
    assert residual(q.mT @ q, eye.expand(*q.shape[:-2], *eye.shape), eye) <= bound


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 9, 33, 70])
def test_eigh(n, kind, dtype):
    """Residuals as LAPACK's are bounded: ||A V - V L|| and ||V^T V - 1|| by a multiple of n eps."""
    a, eps = matrices(kind, n, n, dtype), torch.finfo(dtype).eps
    a = a + a.mT
    exact = a.double()
    size = torch.linalg.matrix_norm(exact, 2).max().item()
    bound = 2 * (n + 4) * eps
    for uplo in ("L", "U"):
        outside = torch.ones(n, n).triu(1) if uplo == "L" else torch.ones(n, n).tril(-1)
        spoiled = torch.where(outside.bool(), torch.full_like(a, math.nan), a)
        for x in layouts(spoiled.to("rdna")) if kind == "normal" and n == 9 else [spoiled.to("rdna")]:
            if x.shape != a.shape:
                continue
            values, vectors = torch.linalg.eigh(x, UPLO=uplo)
            assert vectors.mT.is_contiguous() and values.shape == a.shape[:-1] and values.dtype == dtype
            found, v = values.cpu().double(), vectors.cpu().double()
            assert (found.diff(dim=-1) >= 0).all()
            orthogonal(v, bound)
            assert (exact @ v - v * found[..., None, :]).abs().max().item() <= bound * size
            if kind == "normal":  # where vectors are refined: of all together, as LAPACK's
                rest = torch.linalg.matrix_norm(exact @ v - v * found[..., None, :])
                assert rest.max().item() <= (n + 4) * eps * size
            alone = torch.linalg.eigvalsh(x, UPLO=uplo).cpu().double()
            expected = torch.linalg.eigvalsh(exact)
            for t in (alone, found):
                assert (t - expected).abs().max().item() <= bound * size


def graded(n, dtype):
    """D M D with D from 1 to 1e-4, out of order, and M near the identity: eigenvalues from 1 to 1e-8."""
    generator = torch.Generator().manual_seed(n)
    order = torch.randperm(n, generator=generator)
    d = (10 ** torch.linspace(0, -4, n, dtype=torch.float64))[order]
    m = torch.randn(3, n, n, generator=generator, dtype=torch.float64)
    a = ((0.1 * (m + m.mT) / math.sqrt(n) + torch.eye(n)) * d * d[:, None]).to(dtype)
    return a.tril() + a.tril(-1).mT


@pytest.mark.parametrize("n", [3, 9, 32, 45])
def test_eigh_of_graded_matrices(n):
    """Each value and vector to its own last digits, small or not (Demmel and Veselic, 1992), in f32 beside LAPACK in f64,
    whose errors are 1e-16 of the largest, 1e-8 of the smallest."""
    a = graded(n, torch.float32)
    bound = 4 * (n + 4) * torch.finfo(torch.float32).eps
    values, vectors = (t.cpu().double() for t in torch.linalg.eigh(a.to("rdna")))
    expected, right = torch.linalg.eigh(a.double())
    assert ((values - expected).abs() <= bound * expected.abs()).all()
    assert ((torch.linalg.eigvalsh(a.to("rdna")).cpu().double() - expected).abs() <= bound * expected.abs()).all()
    signs = (vectors * right).sum(-2, keepdim=True).sign()
    apart = torch.linalg.vector_norm(vectors * signs - right, dim=-2)
    i, j = expected.unsqueeze(-1), expected.unsqueeze(-2)
    gap = ((i - j).abs() / (i * j).abs().sqrt()).masked_fill(torch.eye(n).bool(), math.inf).amin(-2)
    assert (apart * gap.clamp(max=1) <= bound).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m, n", [(1, 1), (5, 3), (20, 33), (70, 40), (65, 65)])
def test_svd(m, n, kind, dtype):
    a, k, eps = matrices(kind, m, n, dtype), min(m, n), torch.finfo(dtype).eps
    exact, expected = a.double(), torch.linalg.svdvals(a.double())
    size, bound = expected.max().item(), 2 * (max(m, n) + 4) * eps
    x = a.to("rdna")
    for full in (False, True):
        u, s, vh = torch.linalg.svd(x, full_matrices=full)
        assert u.shape == (2, m, m if full else k) and s.shape == (2, k) and vh.shape == (2, n if full else k, n)
        u, s, vh = (t.cpu().double() for t in (u, s, vh))
        orthogonal(u, bound), orthogonal(vh.mT, bound)
        assert (s.diff(dim=-1) <= 0).all() and (s >= 0).all()
        assert (u[..., :k] * s[..., None, :] @ vh[..., :k, :] - exact).abs().max().item() <= bound * size
        for t in (s, torch.linalg.svdvals(x).cpu().double()):
            assert (t - expected).abs().max().item() <= bound * size


def test_sizes_near_the_ends_of_the_range():
    for scale in (1e-30, 1e30):
        a = random(9, 9, dtype=torch.float32) * scale
        s = torch.linalg.svdvals(a.to("rdna")).cpu().double()
        torch.testing.assert_close(s, torch.linalg.svdvals(a.double()), rtol=1e-5, atol=1e-5 * s.max().item())
        w = torch.linalg.eigvalsh((a + a.mT).to("rdna")).cpu().double()
        torch.testing.assert_close(w, torch.linalg.eigvalsh((a + a.mT).double()), rtol=1e-5, atol=1e-5 * w.abs().max().item())


def test_what_stands_on_singular_values():
    a = matrices("rank", 20, 12, torch.float64)
    x = a.to("rdna")
    assert torch.linalg.matrix_rank(x).tolist() == [2, 2]
    torch.testing.assert_close(torch.linalg.pinv(x).cpu(), torch.linalg.pinv(a), rtol=1e-10, atol=1e-10)
    square = (x @ x.mT).cpu().to("rdna")
    torch.testing.assert_close(torch.linalg.pinv(square, hermitian=True, rtol=1e-10).cpu(), torch.linalg.pinv(square.cpu(), hermitian=True, rtol=1e-10), rtol=1e-8, atol=1e-8)
    assert torch.linalg.matrix_rank(square, hermitian=True).tolist() == [2, 2]
    b = matrices("normal", 12, 12, torch.float64)
    for order in (None, 2, -2, "nuc"):
        expected = torch.linalg.cond(b, order)
        torch.testing.assert_close(torch.linalg.cond(b.to("rdna"), order).cpu(), expected, rtol=1e-12 * expected.max().item(), atol=0)
    torch.testing.assert_close(torch.linalg.matrix_norm(x, 2).cpu(), torch.linalg.matrix_norm(a, 2), rtol=1e-13, atol=0)
    for shape in ((0, 0), (0, 3), (3, 0), (2, 0, 3)):
        for full in (False, True):
            for f, e in zip(torch.linalg.svd(torch.zeros(shape, device="rdna"), full), torch.linalg.svd(torch.zeros(shape), full)):
                assert torch.equal(f.cpu(), e)
    assert all(t.numel() == 0 for t in torch.linalg.eigh(torch.zeros(0, 0, device="rdna")))


def gradients_of_spectra(device, dtype):
    generator = torch.Generator().manual_seed(4)
    a = torch.randn(2, 6, 4, generator=generator).to(device, dtype).requires_grad_()
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    values, vectors = torch.linalg.eigh(a.mT @ a)
    loss = (s.sin() + torch.linalg.svdvals(a)).sum() + ((u * s.unsqueeze(-2)) @ vh).cos().sum()
    loss = loss + (vectors * values.sin().unsqueeze(-2) @ vectors.mT).square().sum() + torch.linalg.pinv(a).sin().sum()
    loss = loss + torch.linalg.matrix_exp(a[:, :4]).sin().sum()
    loss.backward()
    return loss.detach(), a.grad


def test_gradients_of_spectra():
    for dtype in TYPES:
        bound = 10000 * torch.finfo(dtype).eps
        for f, e in zip(gradients_of_spectra("rdna", dtype), gradients_of_spectra("cpu", torch.float64)):
            torch.testing.assert_close(f.cpu().double(), e, rtol=bound, atol=bound * e.abs().max().item())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("norm", [1e-4, 0.1, 1, 5, 30])
def test_matrix_exp(norm, dtype):
    """Each product's rounding is at most n eps of exp(|A|), and squaring doubles what was there."""
    for shape in ((1, 1), (5, 5), (3, 2, 9, 9), (40, 40), (0, 0), (2, 0, 0)):
        a = random(*shape, dtype=dtype)
        a = a * (norm / max(torch.linalg.matrix_norm(a, 1).max().item() if a.numel() else 1, 1e-9))
        for x in layouts(a.to("rdna")):
            exact = x.cpu().double()
            found = torch.linalg.matrix_exp(x)
            assert found.shape == x.shape and found.dtype == dtype
            scale = torch.linalg.matrix_exp(exact.abs())
            bound = torch.finfo(dtype).eps * (shape[-1] + 4) * 8 * max(1, norm)
            assert ((found.cpu().double() - torch.linalg.matrix_exp(exact)).abs() <= bound * scale).all()
    mixed = torch.stack([random(6, 6, dtype=dtype) * f for f in (1e-9, 1e-3, 0.3, 2, 10)])
    found, exact = torch.linalg.matrix_exp(mixed.to("rdna")).cpu().double(), torch.linalg.matrix_exp(mixed.double())
    assert ((found - exact).abs() <= torch.finfo(dtype).eps * 10 * 8 * 60 * torch.linalg.matrix_exp(mixed.double().abs())).all()
    assert torch.linalg.matrix_exp(torch.full((3, 3), math.nan, dtype=dtype, device="rdna")).isnan().all()


EIGEN = ["normal", "whole", "graded", "companion", "cycle", "jordan", "zero"]


def general(kind, n, dtype):
    """Matrices without symmetry: small integers, D M / D of many sizes, the zeros of a polynomial, a cycle, one vector."""
    a = torch.randn(2, n, n, dtype=torch.float64)
    if kind == "whole":
        a = torch.randint(-1, 2, (2, n, n)).double()
    if kind == "graded":
        d = 10.0 ** (torch.arange(n) * 3 % 5).double()
        a = a * d[:, None] / d
    if kind == "companion":
        a = torch.zeros(2, n, n, dtype=torch.float64)
        a[:, 1:, :-1] = torch.eye(n - 1)
        a[:, :, -1] = -torch.randn(2, n, dtype=torch.float64)
    if kind == "cycle":
        a = torch.eye(n, dtype=torch.float64).roll(1, 0).expand(2, n, n).clone()
    if kind == "jordan":
        a = (torch.eye(n) / 2 + torch.diag(torch.ones(n - 1), 1)).double().expand(2, n, n).clone()
    return (a * 0 if kind == "zero" else a).to(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", EIGEN)
@pytest.mark.parametrize("n", [1, 2, 9, 33, 70])
def test_eig(n, kind, dtype):
    """Residuals beside the size of the matrix; each value of LAPACK's in float64 near one of ours, where they are well conditioned."""
    a = general(kind, n, dtype)
    exact = a.double()
    size = torch.linalg.matrix_norm(exact).clamp(min=1e-300)
    for x in layouts(a.to("rdna")):
        values, vectors = torch.linalg.eig(x)
        assert values.dtype == vectors.dtype == dtype.to_complex() and values.shape == (2, n) and vectors.shape == (2, n, n)
        found, v = values.cpu().to(torch.complex128), vectors.cpu().to(torch.complex128)
        rest = (exact.to(v.dtype) @ v - v * found.unsqueeze(-2)).abs().amax((-2, -1)) / size
        bound = 8 * (n + 8) * torch.finfo(dtype).eps
        assert (rest <= bound).all(), rest / bound
        assert ((torch.linalg.vector_norm(v, dim=-2) - 1).abs() <= bound).all()
        assert torch.equal(found.imag.sort(-1)[0], -found.imag.sort(-1, descending=True)[0])
        alone = torch.linalg.eigvals(x).cpu().to(torch.complex128)
        expected, w = torch.linalg.eig(exact)
        if kind in ("normal", "cycle", "companion", "zero"):
            condition = torch.linalg.cond(w).amax()
            for ours in (found, alone):
                apart = (expected.unsqueeze(-1) - ours.unsqueeze(-2)).abs()
                assert apart.amin(-1).max() <= bound * condition * size.max()
                assert apart.amin(-2).max() <= bound * condition * size.max()


def test_eig_takes_what_pytorch_takes():
    for n, shape in [(0, (0, 0)), (0, (3, 0, 0)), (4, (0, 4, 4)), (5, (2, 3, 5, 5))]:
        x = torch.randn(shape).to("rdna")
        values, vectors = torch.linalg.eig(x)
        assert values.shape == shape[:-1] and vectors.shape == shape and torch.linalg.eigvals(x).shape == shape[:-1]
    outs = torch.empty(0, dtype=torch.complex64, device="rdna"), torch.empty(2, 3, 5, 5, dtype=torch.complex64, device="rdna")
    torch.linalg.eig(x, out=outs)
    assert torch.equal(outs[0], values) and torch.equal(outs[1], vectors)
    assert torch.equal(torch.linalg.eigvals(x, out=outs[0]), torch.linalg.eigvals(x))


def eig_refusals(device):
    bad = torch.tensor([[1.0, math.nan], [2, 3]], device=device)
    real = torch.empty(2, device=device)
    for call in (
        lambda: torch.linalg.eig(bad),
        lambda: torch.linalg.eigvals(torch.ones(2, 3, device=device)),
        lambda: torch.linalg.eig(torch.ones(3, device=device)),
        lambda: torch.linalg.eig(torch.ones(2, 2, device=device), out=(real, real)),
        lambda: torch.linalg.eigvals(torch.ones(2, 2, device=device), out=real),
    ):
        with pytest.raises(Exception) as caught:
            call()
        yield type(caught.value), str(caught.value).split("\n")[0]


def test_errors_of_eig_are_pytorchs():
    assert list(eig_refusals("rdna")) == list(eig_refusals("cpu"))


def gradients_of_eig(device, dtype):
    torch.manual_seed(5)
    a = torch.randn(3, 6, 6, dtype=torch.float64).to(device, dtype).requires_grad_()
    values, vectors = torch.linalg.eig(a)
    (values.abs().square().sum() + vectors.abs().pow(3).sum() + torch.linalg.eigvals(a @ a).real.square().sum()).backward()
    return a.grad.cpu()


def test_gradients_of_eig():
    exact = gradients_of_eig("cpu", torch.float64)
    assert error(gradients_of_eig("rdna", torch.float64), exact) <= 1e6
    assert (gradients_of_eig("rdna", torch.float32).double() - exact).abs().max() <= 1e-3 * exact.abs().max()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_symmetric_systems(shape, dtype):
    """L D L^T: LAPACK's pivots, layout and residuals; what is above the diagonal is not read."""
    a = random(*shape, dtype=torch.float64)
    a = ((a + a.mT) / 2).to(dtype)
    theirs, b = torch.linalg.ldl_factor_ex(a), random(*shape[:-1], 3, dtype=dtype)
    expected = torch.linalg.ldl_solve(theirs.LD, theirs.pivots, b)
    for x in layouts((a + torch.full_like(a, math.nan).triu(1)).to("rdna")):
        x = x if x.shape == a.shape else x[..., : a.shape[-1]]
        ours = torch.linalg.ldl_factor_ex(x)
        assert torch.equal(ours.pivots.cpu(), theirs.pivots) and torch.equal(ours.info.cpu(), theirs.info)
        assert ours.LD.stride() == theirs.LD.stride() and error(ours.LD, theirs.LD) <= 64 * shape[-1] + 8
        solution = torch.linalg.ldl_solve(ours.LD, ours.pivots, b.to("rdna"))
        assert solution.shape == expected.shape and solution.stride() == expected.stride()
        if a.numel():
            left, mine, lapack = (t.cpu().double() for t in (a, solution, expected))
            residual = lambda s: ((left @ s - b.double()).norm() / (left.norm() * s.norm())).item() / torch.finfo(dtype).eps  # noqa: E731
            assert residual(mine) <= 4 * residual(lapack) + 1


def test_symmetric_systems_that_are_none():
    zero, ones = torch.zeros(2, 3, 3), torch.ones(2, 2)
    assert torch.equal(torch.linalg.ldl_factor_ex(zero.to("rdna")).info.cpu(), torch.linalg.ldl_factor_ex(zero).info)
    for f in (lambda d: torch.linalg.ldl_factor(torch.ones(2, 3, device=d)), lambda d: torch.linalg.ldl_factor(zero[0].to(d)),
              lambda d: torch.linalg.ldl_solve(ones.to(d), torch.ones(2, dtype=torch.int32, device=d), torch.ones(3, 1, device=d))):
        words = []
        for device in ("cpu", "rdna"):
            with pytest.raises(RuntimeError) as raised:
                f(device)
            words.append(str(raised.value).split("\n")[0])
        assert words[0] == words[1]
