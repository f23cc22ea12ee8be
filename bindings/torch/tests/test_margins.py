"""Losses by margins, weight_norm and pdist, with gradients, beside the CPU's in float64, and nothing on the CPU."""

import pytest
import torch
import torch.nn.functional as F
from beside_cpu import values_and_gradients

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def assert_close(function, inputs, dtype, others=()):
    """function(*inputs, *others) and its gradients in inputs, which are rounded to the type before both."""
    for want, got in values_and_gradients(function, inputs, dtype, (0.5, 1.5), others):
        room = torch.finfo(dtype).eps * max(1.0, *want.abs().flatten().tolist(), 0.0)
        torch.testing.assert_close(got, want, rtol=0, atol=16 * room, equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(dtype, reduction, p):
    torch.manual_seed(1)
    y, w = torch.tensor([0, 6, 3, 3, 1]), torch.rand(7, dtype=dtype)

    def loss(x, y, w):
        return F.multi_margin_loss(x, y, p, 0.75, w, reduction=reduction)

    assert_close(loss, [torch.randn(7, 5).t()], dtype, (y, w))
    assert_close(lambda x, y: F.multi_margin_loss(x, y, p, reduction=reduction), [torch.randn(7)], dtype, (y[2],))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin_loss(dtype, reduction):
    torch.manual_seed(2)
    # ends at once, is full, ends with numbers behind the end, names a class twice
    y = torch.tensor([[-1, 2, 3, 0, 1], [4, 3, 2, 1, 0], [3, 0, -1, 1, 2], [2, 2, -1, -1, -1]])
    for x, labels in ((torch.randn(4, 5), y), (torch.randn(5, 4).t(), y), (torch.randn(5), y[2])):
        assert_close(lambda x, y: F.multilabel_margin_loss(x, y, reduction=reduction), [x], dtype, (labels,))


def test_multilabel_margin_loss_in_parts():
    """2^24 terms are made at a time: 5 rows of 2300 classes are more."""
    torch.manual_seed(3)
    y = torch.full((5, 2300), -1)
    y[:, 0], y[:, 1], y[3, 2] = torch.randint(2300, (5,)), 7, 2299
    assert_close(lambda x, y: F.multilabel_margin_loss(x, y), [torch.randn(5, 2300)], torch.float32, (y,))


def test_nan_is_no_term():
    x = torch.tensor([[0.5, float("nan"), 1.0], [0.1, 0.2, float("nan")]])
    several = torch.tensor([[2, 0, -1], [2, -1, -1]])
    for loss, y in ((F.multi_margin_loss, several[:, 0]), (F.multilabel_margin_loss, several)):
        ours, theirs = (loss(t, y.to(t.device), reduction="none") for t in (x.to("rdna"), x))
        assert torch.allclose(ours.cpu(), theirs)


@pytest.mark.parametrize("shape, dim", [((4, 3, 5), 0), ((4, 3, 5), 2), ((6,), 0), ((33, 17), 1)])
@pytest.mark.parametrize("dtype", TYPES)
def test_weight_norm(dtype, shape, dim):
    torch.manual_seed(4)
    scales = [n if d == dim else 1 for d, n in enumerate(shape)]
    v, g = torch.randn(shape), torch.randn(scales)
    assert_close(lambda v, g: torch._weight_norm(v, g, dim), [v, g], dtype)


def test_a_class_alone():
    for y in (0, -1):
        assert_close(F.multilabel_margin_loss, [torch.tensor(0.5)], torch.float32, (torch.tensor(y),))
    assert_close(F.multi_margin_loss, [torch.tensor(0.5)], torch.float32, (torch.tensor(0),))


@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (4, 0)])
def test_pdist_of_few_or_of_nothing(shape):
    assert_close(F.pdist, [torch.ones(shape).cumsum(0)], torch.float32)


def test_pdist_of_no_row():
    """Whose gradient ends the process on the CPU."""
    x = torch.ones(0, 3, device="rdna", requires_grad=True)
    F.pdist(x).sum().backward()
    assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
def test_pdist(p):
    torch.manual_seed(5)
    x = torch.randn(7, 5)
    assert_close(lambda x: F.pdist(x, p), [x], torch.float64)
    x[4] = x[2]  # a distance of 0 has a gradient of 0
    value = x.double().to("rdna").requires_grad_()
    want = x.double().requires_grad_()
    F.pdist(value, p).sum().backward()
    F.pdist(want, p).sum().backward()
    torch.testing.assert_close(value.grad.cpu(), want.grad)
