"""Sparse tensors: kept on rdna as indices and values, computed with on the CPU, and counted as fallbacks."""

import torch


def some(*shape):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))
    return x * (x > 0)


def test_layouts_go_there_and_back():
    x = some(4, 6)
    for made in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((2, 2)), x.to_sparse_bsc((2, 3))):
        there = made.to("rdna")
        assert there.device.type == "rdna" and there.layout == made.layout and there._nnz() == made._nnz()
        assert there.values().device.type == "rdna"
        assert torch.equal(there.cpu().to_dense(), x) and torch.equal(there.to_dense().cpu(), x)
    assert x.to_sparse().to("rdna").is_coalesced()


def test_made_from_parts():
    at, values = torch.tensor([[0, 2, 2], [1, 0, 0]]), torch.tensor([3.0, 4.0, 5.0])
    s = torch.sparse_coo_tensor(at.to("rdna"), values.to("rdna"), (3, 2))
    assert s.device.type == "rdna" and not s.is_coalesced() and s._nnz() == 3
    assert s.coalesce()._nnz() == 2
    assert s.to_dense().cpu().tolist() == [[0, 3], [0, 0], [9, 0]]


def test_products_and_sums():
    x, y = some(5, 4), torch.randn(4, 3)
    for sparse in (x.to_sparse(), x.to_sparse_csr()):
        product = sparse.to("rdna") @ y.to("rdna")
        assert product.device.type == "rdna" and torch.allclose(product.cpu(), x @ y, atol=1e-6)
    s = x.to("rdna").to_sparse()
    assert torch.equal((s + s).to_dense().cpu(), 2 * x)
    s.add_(s)
    assert torch.equal(s.to_dense().cpu(), 2 * x)
    assert abs(torch.sparse.sum(s).item() - 2 * x.sum().item()) < 1e-4


def test_gradients():
    def gradient(device):
        x = some(4, 5).to(device).requires_grad_()
        (x.to_sparse() * 3.0).sum().backward()
        return x.grad.cpu()

    assert torch.equal(gradient("rdna"), gradient("cpu"))


def test_sparse_embedding_trains():
    def trained(device):
        torch.manual_seed(0)
        layer = torch.nn.Embedding(10, 4, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(layer.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            layer(torch.tensor([1, 2, 2, 7], device=device)).square().sum().backward()
            assert layer.weight.grad.is_sparse
            optimizer.step()
        return layer.weight.detach().cpu()

    assert torch.allclose(trained("rdna"), trained("cpu"), atol=1e-6)


def test_conversions_run_on_the_device(nothing_falls_back):
    for shape in ((4, 6), (3, 4, 6), (0, 6), (4, 0)):
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            x = (some(*shape) * 4).to(dtype)
            made = [lambda t: t.to_sparse(), lambda t: t.to_sparse(1)]
            if x.dim() == 2 and x.numel():
                made += [lambda t: t.to_sparse_csr(), lambda t: t.to_sparse_csc(), lambda t: t.to_sparse_bsr((2, 3)), lambda t: t.to_sparse_bsc((2, 2))]
            for make in made:
                ours, theirs = make(x.to("rdna")), make(x)
                assert ours.layout == theirs.layout and ours.values().device.type == "rdna" and ours.dtype == dtype
                assert torch.equal(ours.values().cpu(), theirs.values())
                if ours.layout == torch.sparse_coo:
                    assert torch.equal(ours.indices().cpu(), theirs.indices())
                else:
                    for name in ("crow_indices", "col_indices") if ours.layout in (torch.sparse_csr, torch.sparse_bsr) else ("ccol_indices", "row_indices"):
                        assert torch.equal(getattr(ours, name)().cpu(), getattr(theirs, name)())


def test_indices_that_are_no_layout(nothing_falls_back):
    """Each broken invariant in PyTorch's words; what holds is taken, batches too."""
    good = ([0, 2, 2, 3], [0, 3, 1])
    for rows, columns in (good, ([1, 2, 2, 3], [0, 3, 1]), ([0, 2, 2, 4], [0, 3, 1]), ([0, 2, 1, 3], [0, 3, 1]), (good[0], [0, 4, 1]),
                          (good[0], [0, -1, 1]), (good[0], [3, 0, 1]), (good[0], [3, 3, 1]), ([0, 3, 3, 3], [2, 3, 1]), ([0, 0, 0, 3], [1, 2, 3])):
        said = []
        for device in ("cpu", "rdna"):
            for make in (torch.sparse_csr_tensor, torch.sparse_csc_tensor):
                at = [torch.tensor(i, device=device) for i in (rows, columns)]
                size = (3, 4) if make is torch.sparse_csr_tensor else (4, 3)
                try:
                    make(*at, torch.ones(3, device=device), size, check_invariants=True)
                    said.append("")
                except RuntimeError as error:
                    said.append(str(error).split("is not satisfied")[0])
        assert said[:2] == said[2:], said
    batch = [torch.tensor(i, device="rdna").expand(2, -1).contiguous() for i in good]
    torch.sparse_csr_tensor(*batch, torch.ones(2, 3, device="rdna"), (2, 3, 4), check_invariants=True)
    batch[1][1, 0] = 3
    try:
        torch.sparse_csr_tensor(*batch, torch.ones(2, 3, device="rdna"), (2, 3, 4), check_invariants=True)
        raise AssertionError("columns that fall were taken")
    except RuntimeError as error:
        assert "sorted and distinct" in str(error)
