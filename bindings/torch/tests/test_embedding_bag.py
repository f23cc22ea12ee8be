"""nn.EmbeddingBag beside the CPU: sums, means, largest values, weights, offsets of every kind, gradients."""

import itertools

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def compare(table, indices, offsets, weights, dtype, **options):
    """Values and gradients on rdna beside the CPU's in float64."""
    results = []
    for device, kind in (("cpu", torch.float64), ("rdna", dtype)):
        t = table.to(device, kind).requires_grad_()
        w = None if weights is None else weights.to(device, kind).requires_grad_()
        out = F.embedding_bag(indices.to(device), t, None if offsets is None else offsets.to(device), per_sample_weights=w, **options)
        grad = ((torch.arange(out.numel()) % 7) / 4 - 0.5).view(out.shape).to(device, kind)
        wanted = [t] if w is None else [t, w]
        grads = torch.autograd.grad(out, wanted, grad)
        results.append([out.detach().cpu().double(), *((g.to_dense() if g.is_sparse else g).cpu().double() for g in grads)])
        assert out.dtype == kind
    unit = torch.finfo(dtype).eps
    for ours, theirs in zip(results[1], results[0]):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=8 * unit * max(1, theirs.abs().max().item() if theirs.numel() else 1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(dtype, mode):
    table = torch.randn(13, 6).to(dtype)
    indices = torch.randint(0, 13, (21,))
    offsets = torch.tensor([0, 4, 4, 9, 20])
    for weighted, last, padding in itertools.product((False, True), (False, True), (None, 2, -1)):
        if weighted and mode != "sum":
            continue
        ends = torch.cat([offsets, torch.tensor([21])]) if last else offsets
        compare(table, indices, ends, torch.randn(21).to(dtype) if weighted else None, dtype, mode=mode,
                include_last_offset=last, padding_idx=padding)
    compare(table, indices.view(3, 7), None, None, dtype, mode=mode)
    compare(table.t().contiguous().t(), indices.int(), offsets.int(), None, dtype, mode=mode)
    compare(torch.randn(5, 300).to(dtype), torch.randint(0, 5, (40,)), torch.tensor([0, 39, 40]), None, dtype, mode=mode)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_nothing_in_bags(mode):
    table, none = torch.randn(4, 3), torch.zeros(0, dtype=torch.long)
    compare(table, none, torch.tensor([0, 0, 0]), None, torch.float32, mode=mode)
    compare(table, none, none, None, torch.float32, mode=mode)
    compare(table, torch.tensor([1, 1]), torch.tensor([0, 1]), None, torch.float32, mode=mode, padding_idx=1)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_frequencies_and_sparse_gradients(mode):
    table, indices, offsets = torch.randn(6, 4), torch.tensor([1, 1, 3, 5, 1]), torch.tensor([0, 2])
    plain, shared = (torch.nn.EmbeddingBag(6, 4, mode=mode, scale_grad_by_freq=f).to("rdna") for f in (False, True))
    for bag in (plain, shared):
        bag(indices.to("rdna"), offsets.to("rdna")).sum().backward()
    counts = torch.tensor([1, 3, 1, 1, 1, 1]).unsqueeze(1)  # the CPU divides some rows by others' counts
    torch.testing.assert_close(shared.weight.grad.cpu(), plain.weight.grad.cpu() / counts)
    torch.rdna.set_fallback_mode("allow")  # sparse gradients become dense on the CPU
    compare(table, indices, offsets, None, torch.float32, mode=mode, sparse=True)


def test_ties_and_nan_of_the_largest():
    table = torch.tensor([[1.0, 2], [1, torch.nan], [3, 1]])
    for rows in ([0, 1], [1, 0], [0, 1, 2]):
        ours = F.embedding_bag(torch.tensor([rows]).to("rdna"), table.to("rdna"), mode="max").cpu()
        theirs = F.embedding_bag(torch.tensor([rows]), table, mode="max")
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


def test_module_trains_the_same_each_time_and_finds_indices_outside():
    bag = torch.nn.EmbeddingBag(50, 16, mode="sum").to("rdna")
    indices, offsets = torch.randint(0, 5, (4000,)).to("rdna"), torch.arange(0, 4000, 40).to("rdna")
    grads = []
    for _ in range(2):
        bag.zero_grad()
        bag(indices, offsets).square().sum().backward()
        grads.append(bag.weight.grad.clone())
    assert torch.equal(*grads)
    with torch.no_grad():
        assert torch.equal(bag(indices, offsets), bag.eval()(indices, offsets))
    with pytest.raises(IndexError, match="embedding_bag: an index was out of range"):
        bag(torch.tensor([[1, 50]]).to("rdna")).cpu()
