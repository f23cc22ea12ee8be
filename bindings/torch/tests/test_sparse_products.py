"""Sums, products and conversions of sparse matrices on the device beside dense ones in float64 or the CPU's sparse ones;
nothing falls back."""

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.complex64]
REALS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SHAPES = [(5, 4, 3, 9), (7, 9, 1, 0), (1, 1, 1, 1), (30, 20, 8, 70), (0, 4, 3, 0), (4, 0, 3, 0), (4, 3, 0, 5), (3, 50, 4, 7)]


def random(*shape, dtype):
    real = dtype.is_floating_point or dtype.is_complex
    return torch.randn(shape, dtype=dtype) if real else torch.randint(-5, 6, shape, dtype=dtype)


def coordinates(m, n, count, dtype, coalesced):
    """With places that are named twice, where they are not coalesced."""
    at = torch.stack([torch.randint(max(m, 1), (count,)), torch.randint(max(n, 1), (count,))])
    made = torch.sparse_coo_tensor(at, random(count, dtype=dtype), (m, n))
    return exact(made).coalesce().to(dtype) if coalesced else made


def exact(x):
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def units(dtype):
    return 0 if dtype == torch.int64 else 16 * torch.finfo(dtype).eps


def agree(found, expected, dtype, layout=torch.strided):
    assert found.device.type == "rdna" and found.layout == layout and found.dtype == dtype
    found = exact(found.cpu()).to_dense() if layout != torch.strided else exact(found.cpu())
    expected = exact(expected).to_dense() if expected.layout != torch.strided else exact(expected)
    assert found.shape == expected.shape
    size = max(expected.abs().max().item(), 1) if expected.numel() else 1
    assert not expected.numel() or (found - expected).abs().max() <= units(dtype) * size


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n, k, count", SHAPES)
def test_products(m, n, k, count, dtype):
    right, left, more, vector = (random(*shape, dtype=dtype) for shape in ((n, k), (k, m), (m, k), (n,)))
    for s in (coordinates(m, n, count, dtype, True), coordinates(m, n, count, dtype, False), coordinates(m, n, count, dtype, True).to_sparse_csr()):
        a, wide = s.to("rdna"), exact(s).to_dense()
        agree(a @ right.to("rdna"), wide @ exact(right), dtype)
        agree(a @ right.mT.contiguous().mT.to("rdna"), wide @ exact(right), dtype)
        agree(left.to("rdna") @ a, exact(left) @ wide, dtype)
        agree(torch.addmm(more.to("rdna"), a, right.to("rdna"), beta=2, alpha=3), 2 * exact(more) + 3 * (wide @ exact(right)), dtype)
        agree(torch.sparse.mm(a, right.to("rdna")), wide @ exact(right), dtype)
        out = torch.empty(0, dtype=dtype, device="rdna")
        agree(torch.mm(a, right.to("rdna"), out=out), wide @ exact(right), dtype)
        agree(torch.mv(a, vector.to("rdna")), wide @ exact(vector), dtype)
    if m and n:
        s, q = coordinates(m, n, count, dtype, False), coordinates(m, k, 4 if k else 0, dtype, True)
        found = torch.sspaddmm(q.to("rdna"), s.to("rdna"), right.to("rdna"), beta=2, alpha=3)
        agree(found, 2 * exact(q).to_dense() + 3 * (exact(s).to_dense() @ exact(right)), dtype, torch.sparse_coo)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n, k, count", SHAPES)
def test_forms_and_sums(m, n, k, count, dtype):
    dense = random(m, n, dtype=dtype)
    for coalesced in (True, False):
        s, other = (coordinates(m, n, c, dtype, coalesced) for c in (count, count + 1 if m * n else 0))
        a, b, wide = s.to("rdna"), other.to("rdna"), exact(s).to_dense()
        agree(a.to_dense(), wide, dtype)
        whole = a.coalesce()
        agree(whole, wide, dtype, torch.sparse_coo)
        assert whole.is_coalesced() and torch.equal(whole.indices().cpu(), exact(s).coalesce().indices())
        agree(torch.add(a, b, alpha=2), wide + 2 * exact(other).to_dense(), dtype, torch.sparse_coo)
        assert torch.add(a, b).is_coalesced() or not (a.is_coalesced() and b.is_coalesced())
        kept = a.clone()
        kept.add_(b)
        agree(kept, wide + exact(other).to_dense(), dtype, torch.sparse_coo)
        agree(a * 3, 3 * wide, dtype, torch.sparse_coo)
        agree(-a, -wide, dtype, torch.sparse_coo)
        agree(torch.cat([a, b]), torch.cat([wide, exact(other).to_dense()]), dtype, torch.sparse_coo)
        agree(torch.sparse.sum(a), wide.sum(), dtype)
        if dense.numel():
            x = dense.to("rdna")
            agree(x + a, exact(dense) + wide, dtype)
            agree(torch.empty_like(x).copy_(x).add_(a, alpha=-2), exact(dense) - 2 * wide, dtype)
            agree(a * x, wide * exact(dense), dtype, torch.sparse_coo)
            agree(x.sparse_mask(whole), exact(dense) * (exact(s).coalesce() * 0 + torch.sparse_coo_tensor(s.coalesce().indices() if dtype not in REALS[2:] else exact(s).coalesce().indices(), torch.ones(whole._nnz(), dtype=exact(s).dtype), s.shape)).to_dense(), dtype, torch.sparse_coo)
        for made, layout in ((whole.to_sparse_csr(), torch.sparse_csr), (whole.to_sparse_csc(), torch.sparse_csc)):
            agree(made, wide, dtype, layout)
            agree(made.to_dense(), wide, dtype)
            agree(made.clone(), wide, dtype, layout)


def test_dense_dimensions_stay_dense():
    at, values = torch.tensor([[0, 2, 2, 0], [1, 0, 0, 1]]), torch.randn(4, 3)
    s = torch.sparse_coo_tensor(at, values, (3, 2, 3))
    a = torch.sparse_coo_tensor(at.to("rdna"), values.to("rdna"), (3, 2, 3))
    agree(a.coalesce(), s, torch.float32, torch.sparse_coo)
    agree(a.to_dense(), s, torch.float32)
    agree(torch.ones(3, 2, 3, device="rdna") + a, 1 + s.to_dense(), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("m, n, k, count", [shape for shape in SHAPES if shape[0] and shape[1]] + [(60, 70, 5, 30)])
def test_sampled_products(m, n, k, count, dtype):
    """Of few entries each by itself, of many the whole product."""
    s = coordinates(m, n, count, dtype, True).to_sparse_csr()
    a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
    there = torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), torch.ones(s._nnz(), dtype=exact(a).dtype), s.shape).to_dense()
    wanted = 2 * exact(s).to_dense() + 3 * (exact(a) @ exact(b)) * there
    agree(torch.sparse.sampled_addmm(s.to("rdna"), a.to("rdna"), b.to("rdna"), beta=2, alpha=3), wanted, dtype, torch.sparse_csr)
    out = s.to("rdna")
    agree(torch.sparse.sampled_addmm(out, a.to("rdna"), b.to("rdna"), beta=2, alpha=3, out=out), wanted, dtype, torch.sparse_csr)


def reduced(s, dense, how, device, dtype):
    """The value, and the gradients of both."""
    a, x = s.to(device).to(dtype).requires_grad_(), dense.detach().to(device, dtype).requires_grad_()
    y = torch.sparse.mm(a, x, how)
    y.backward(torch.linspace(1, 2, y.numel(), dtype=torch.float64).view(y.shape).to(device, dtype))
    return y.detach(), a.grad.values(), x.grad


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("m, n, k, count", [(5, 4, 3, 9), (7, 9, 1, 0), (30, 20, 8, 70), (3, 50, 4, 7)])
def test_reduced_products(m, n, k, count, how, dtype):
    """Rows without entries are 0, and get nothing."""
    s = coordinates(m, n, count, torch.float64, True).to_sparse_csr()
    s, dense = s.to(dtype).to(torch.float64), torch.randn(n, k, dtype=torch.float64).to(dtype).double()
    for ours, theirs in zip(reduced(s, dense, how, "rdna", dtype), reduced(s, dense, how, "cpu", torch.float64)):
        agree(ours, theirs, dtype)


def test_gradients_of_products():
    """Of a sparse matrix and of the dense one, as the CPU's."""
    s, dense = coordinates(6, 5, 11, torch.float64, True), torch.randn(5, 3, dtype=torch.float64)
    for layout in (lambda t: t, lambda t: t.to_sparse_csr()):
        slopes = []
        for device in ("cpu", "rdna"):
            a, x = layout(s).to(device).detach().requires_grad_(), dense.to(device, copy=True).requires_grad_()
            torch.sparse.mm(a, x).square().sum().backward()
            slopes.append([a.grad.to_dense().cpu(), x.grad.cpu()])
        for ours, theirs in zip(*slopes):
            torch.testing.assert_close(ours, theirs)


def test_what_there_is_not_says_so():
    torch.rdna.set_fallback_mode("allow")
    x = torch.eye(3, device="rdna").to_sparse_csr()
    with pytest.raises(NotImplementedError, match="_spsolve has no rdna kernel .* PyTorch's CPU, where it would run instead, has none either"):
        torch.sparse.spsolve(x, torch.ones(3, device="rdna"))
    one = torch.ones(2, 2, device="rdna")
    with pytest.raises(RuntimeError, match="can only be called on sparse tensors"):
        torch.sspaddmm(one, one, one)


def test_numbers_that_values_cannot_take():
    """As on the CPU, which runs them: refused, or cut off."""
    torch.rdna.set_fallback_mode("allow")
    for dtype, alpha, match in ((torch.int64, 1.5, "must not be a floating point number"), (torch.float32, 2j, "must not be a complex number")):
        s, dense = coordinates(3, 4, 5, dtype, False).to("rdna"), random(3, 4, dtype=dtype).to("rdna")
        for x in (s, dense):
            with pytest.raises(RuntimeError, match=match):
                torch.add(x, s, alpha=alpha)
    s, right, more = coordinates(3, 4, 5, torch.int64, False), random(4, 2, dtype=torch.int64), random(3, 2, dtype=torch.int64)
    found = torch.addmm(more.to("rdna"), s.to("rdna"), right.to("rdna"), alpha=1.5)
    assert found.dtype == torch.int64 and torch.equal(found.cpu(), torch.addmm(more, s, right, alpha=1.5))
