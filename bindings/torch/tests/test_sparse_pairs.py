"""Products, masks and shares of two sparse tensors on the device beside dense ones in float64, gradients beside the CPU's;
nothing falls back. Some 3 s."""

import pytest
import torch

from test_sparse_products import agree, coordinates, exact

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]
SHAPES = [(5, 4, 3, 9, 7), (7, 9, 1, 0, 5), (7, 9, 2, 5, 0), (1, 1, 1, 1, 2), (30, 20, 18, 70, 90), (0, 4, 3, 0, 5), (4, 0, 3, 0, 0), (3, 50, 4, 7, 40)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m, n, k, count, more", SHAPES)
def test_products(m, n, k, count, more, dtype):
    for coalesced in (True, False):
        s, q = coordinates(m, n, count, dtype, coalesced), coordinates(n, k, more, dtype, coalesced)
        a, b, wide = s.to("rdna"), q.to("rdna"), exact(s).to_dense() @ exact(q).to_dense()
        found = torch.sparse.mm(a, b)
        agree(found, wide, dtype, torch.sparse_coo)
        assert found.is_coalesced()
        agree(a @ b, wide, dtype, torch.sparse_coo)
        rows = [t.coalesce().to_sparse_csr() for t in (a, b)]
        columns = [t.coalesce().to_sparse_csc() for t in (a, b)]
        for x, y in ((rows[0], rows[1]), (rows[0], columns[1]), (columns[0], rows[1]), (columns[0], columns[1])):
            agree(x @ y, wide, dtype, torch.sparse_csr)
    if dtype != torch.float16 and dtype != torch.bfloat16:  # which the CPU has no product of
        there = (s.coalesce() @ q.coalesce()).coalesce()
        assert torch.equal(found.indices().cpu(), there.indices())


def gradients(device, layout, m=6, n=5, k=7):
    torch.manual_seed(3)
    parts = [coordinates(*shape, torch.float64, True) for shape in ((m, n, 11), (n, k, 13))]
    a, b = (layout(t.to(device)).requires_grad_() for t in parts)
    y = a @ b
    torch.sparse.sum(y * y if y.is_sparse else y).backward()
    return [t.detach().cpu().to_dense() for t in (y, a.grad, b.grad)]


def test_gradients_of_products():
    """By coordinates: the CPU has none of products in rows."""
    for ours, theirs in zip(gradients("rdna", lambda t: t), gradients("cpu", lambda t: t)):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64, torch.bfloat16])
@pytest.mark.parametrize("count, more", [(9, 14), (0, 5), (5, 0), (40, 3)])
def test_masks_and_elementwise_products(count, more, dtype):
    for first in (True, False):
        for second in (True, False):
            s, q = coordinates(6, 5, count, dtype, first), coordinates(6, 5, more, dtype, second)
            a, b = s.to("rdna"), q.to("rdna")
            found = a.sparse_mask(b)
            agree(found, s.sparse_mask(q), dtype, torch.sparse_coo)
            assert torch.equal(found._indices().cpu(), q._indices()) and found.is_coalesced() == q.is_coalesced()
            agree(a * b, exact(s).to_dense() * exact(q).to_dense(), dtype, torch.sparse_coo)
            for accumulate in (False, True):
                found, wanted = (torch.ops.aten._sparse_mask_projection(*pair, accumulate) for pair in ((a, b), (s, q)))
                if count:
                    assert torch.equal(found._indices().cpu(), wanted._indices())
                agree(found, wanted, dtype, torch.sparse_coo)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("count, more", [(9, 14), (0, 5), (5, 0)])
def test_masks_and_elementwise_products_in_rows(count, more, dtype):
    s, q = (coordinates(6, 5, n, dtype, True) for n in (count, more))
    a, b = s.to_sparse_csr().to("rdna"), q.to_sparse_csr().to("rdna")
    agree(a.sparse_mask(b), s.sparse_mask(q), dtype, torch.sparse_csr)
    assert torch.equal(a.sparse_mask(b).col_indices().cpu(), b.col_indices().cpu())
    agree(a * b, exact(s).to_dense() * exact(q).to_dense(), dtype, torch.sparse_csr)
    agree(abs(a) * b, exact(s).to_dense().abs() * exact(q).to_dense(), dtype, torch.sparse_csr)
    agree(torch.randn(0, 5, device="rdna").sparse_mask(torch.zeros(0, 5, device="rdna").to_sparse_csr()), torch.zeros(0, 5), torch.float32, torch.sparse_csr)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_products_where_one_has_no_entry(layout):
    """Zeros, whatever the other has there."""
    s, q = (torch.sparse_coo_tensor(torch.tensor([at, at]), torch.tensor(values), (3, 3)) for at, values in (([0, 1], [float("inf"), 2.0]), ([1, 2], [3.0, float("nan")])))
    found = (s.to_sparse(layout=layout).to("rdna") * q.to_sparse(layout=layout).to("rdna")).cpu().to_dense()
    assert torch.equal(found, (s * q).to_dense())


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.bfloat16])
@pytest.mark.parametrize("count", [9, 0])
def test_products_of_rows_with_dense_ones(count, dtype):
    s, dense = coordinates(6, 5, count, dtype, True), torch.randn(6, 5).to(dtype)
    a, b = s.to_sparse_csr().to("rdna"), dense.to("rdna")
    for found in (a * b, b * a, a * b.t().contiguous().t()):
        agree(found, exact(s).to_dense() * dense.to(exact(s).dtype), dtype, torch.sparse_csr)
        assert torch.equal(found.col_indices().cpu(), a.col_indices().cpu())


def test_masks_with_dense_dimensions():
    s, q = (torch.sparse_coo_tensor(torch.randint(4, (2, n)), torch.randn(n, 3), (4, 4, 3)) for n in (7, 5))
    agree(s.to("rdna").sparse_mask(q.to("rdna")), s.sparse_mask(q), torch.float32, torch.sparse_coo)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_softmax(dim, log):
    f = torch.sparse.log_softmax if log else torch.sparse.softmax
    at, values = torch.randint(4, (2, 13)), torch.randn(13, 3, dtype=torch.float64)
    results = []
    for device, dtype in (("cpu", torch.float64), ("rdna", torch.float64), ("rdna", torch.float32), ("rdna", torch.float16)):
        s = torch.sparse_coo_tensor(at.to(device), values.to(device, dtype), (4, 4, 3)).requires_grad_()
        y = f(s, dim if device == "rdna" else dim % 3)  # the CPU's gradient takes a negative one for another
        torch.sparse.sum(y * y).backward()
        results.append([y.detach().cpu().to_dense().double(), s.grad.cpu().to_dense().double()])
        if device == "rdna":
            assert torch.equal(y._indices().cpu(), s.detach().coalesce().indices().cpu())
            unit = torch.finfo(dtype).eps
            for ours, theirs in zip(results[-1], results[0]):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=64 * unit)
