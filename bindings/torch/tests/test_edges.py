"""Edges that PyTorch's operator samples do not reach: values outside of a domain, signs of zero, results into tensors of
another type, arguments that no window fits."""

import pytest
import torch
import torch.nn.functional as F
from test_results import refused

NAN, INF = float("nan"), float("inf")


def both(f, *inputs):
    """(ours, the CPU's) results of |f|."""
    ours = f(*(t.to("rdna") if isinstance(t, torch.Tensor) else t for t in inputs))
    return ours.cpu(), f(*inputs)


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_acosh_has_no_value_below_one(dtype):
    x = torch.tensor([-INF, -1e15, -1e9, -12345, -2, -1, -0.5, 0, 0.99, 1, 1.5, 1e9, INF, NAN], dtype=dtype)
    same(*both(torch.acosh, x))


@pytest.mark.parametrize("name", ["asin", "atan", "sinh", "tanh", "asinh", "atanh", "sin", "tan", "erf", "expm1", "log1p"])
def test_zero_keeps_its_sign(name):
    ours, theirs = both(getattr(torch, name), torch.tensor([-0.0, 0.0]))
    assert torch.equal(torch.signbit(ours), torch.signbit(theirs)), ours


def test_the_angle_of_integers_is_no_integer():
    same(*both(lambda x: torch.angle(x, out=torch.empty(2, device=x.device)), torch.tensor([-1, 2])))


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, INF])
def test_gradients_of_distances_where_values_are_equal(p):
    a, b = torch.tensor([[1.0, 2], [3, 4], [0, 4]]), torch.tensor([[1.0, 5], [3, 4]])

    def gradient(a, b):
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        return torch.cat(torch.autograd.grad(torch.cdist(a, b, p=p).sum(), (a, b)))

    same(*both(gradient, a, b))


def test_distances_of_many_rows_take_little_memory():
    a, b = torch.randn(1200, 48), torch.randn(1, 1000, 48)  # 2^26 differences or so, 220 MiB

    def gradient(a, b):
        a = a.clone().requires_grad_()
        distances = torch.cdist(a, b, p=1)
        return torch.cat((distances.detach()[0], torch.autograd.grad(distances.square().sum(), a)[0]), 1)

    inside = a.to("rdna"), b.to("rdna")
    torch.rdna.reset_peak_memory_stats()
    ours = gradient(*inside)
    assert torch.rdna.max_memory_allocated() < 400 << 20, torch.rdna.max_memory_allocated()
    theirs = gradient(a.double(), b.double())
    torch.testing.assert_close(ours.cpu().double(), theirs, rtol=1e-5, atol=theirs.abs().max().item() * 1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_linspace_ends_where_it_is_told(dtype):
    for n in (2, 3, 50, 99, 1000):
        assert torch.linspace(-3.3, 7.1, n, dtype=dtype, device="rdna")[-1].item() == torch.tensor(7.1, dtype=dtype).item()


def test_a_class_of_weight_zero_is_not_an_ignored_one():
    x = torch.tensor([[-INF, 0], [-1, -2], [-3, -4]], dtype=torch.float64)
    target, weight = torch.tensor([0, 1, -100]), torch.tensor([0, 1], dtype=torch.float64)
    same(*both(lambda x, t, w: F.nll_loss(x, t, w, reduction="none"), x, target, weight))

    def gradient(x, t, w):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(F.nll_loss(x, t, w), x)[0]

    same(*both(gradient, x, target[[0, 0, 2]], weight))


def test_rsub_of_complex_numbers_and_of_numbers():
    x, y = torch.tensor([1 + 1j, 2 - 3j]), torch.tensor([2 + 1j, 4j])
    same(*both(lambda x, y: torch.rsub(x, y, alpha=1 + 2j), x, y))
    torch.rdna.reset_fallback_report()
    same(*both(lambda x: torch.rsub(x, 3.0, alpha=2), torch.tensor([1.0, 2])))
    assert not torch.rdna.fallback_report()


def test_powers_of_complex_numbers():
    x, y = torch.tensor([1 + 1j, 2 - 3j]), torch.tensor([2 + 1j, 4j])
    same(*both(torch.pow, x, y))
    same(*both(lambda x: torch.addcmul(x, x, x, value=2j), x))


def test_a_sixth_of_float64():
    x = torch.tensor([0.3, -1], dtype=torch.float64, device="rdna").requires_grad_()
    gradient, = torch.autograd.grad(F.hardsigmoid(x).sum(), x)
    assert torch.equal(gradient.cpu(), torch.full((2,), 1 / 6, dtype=torch.float64))


def test_ranges_of_whole_numbers_with_a_step_below_one():
    """As many as the step says, which is then cut to a whole number, as PyTorch's CPU does from 2.7 on."""
    for dtype in (torch.int32, torch.int16, torch.uint8):
        found = torch.arange(0, 3, 0.5, out=torch.empty(0, dtype=dtype, device="rdna"))
        assert found.dtype == dtype and found.tolist() == [0] * 6


def test_sorted_into_its_own_memory():
    x, at = torch.randn(7), torch.arange(7)
    same(*both(lambda x, at: torch.sort(x, out=(x, at))[0], x.clone(), at.clone()))
    same(*both(lambda x, at: torch.topk(x, 7, out=(x, at))[1], x.clone(), at.clone()))


def test_outputs_of_another_type_are_refused():
    x, one = torch.tensor([1, 0, 2], device="rdna"), torch.tensor(3.0, device="rdna")
    for dtype in (torch.float32, torch.int32):
        refused(RuntimeError, "dtype", lambda: torch.nonzero(x, out=torch.empty(0, dtype=dtype, device="rdna")))
    refused(RuntimeError, "dtype", lambda: torch.masked_select(x, x > 0, out=torch.empty(0, device="rdna")))
    for f in (torch.topk, torch.kthvalue):
        narrow = torch.full((), 7, dtype=torch.int32, device="rdna")
        refused(RuntimeError, "dtype|scalar type", lambda: f(one, 1, out=(torch.empty_like(one), narrow)))
    refused(RuntimeError, "types Float and Long", lambda: torch.mode(one.expand(3), 0, out=(torch.empty_like(one), narrow)))


def test_statistics_into_a_wider_type():
    x = torch.randn(4, 3)
    outs = [torch.empty(4, 3, device="rdna")] + [torch.full((3,), 7.0, dtype=torch.float64, device="rdna") for _ in "ab"]
    torch.native_batch_norm(x.to("rdna"), None, None, None, None, True, 0.1, 1e-5, out=tuple(outs))
    same(outs[1].cpu(), x.mean(0).double())


def test_results_do_not_go_where_they_are_read():
    x = torch.rand(6, device="rdna")
    overlap = "single memory location"
    for f in (torch.sinh, torch.logit, torch.nan_to_num):
        refused(RuntimeError, overlap, lambda: f(x[:4], out=x[2:]))
    refused(RuntimeError, overlap, lambda: torch.hypot(x[2:], x[:4], out=x[2:]))
    refused(RuntimeError, overlap, lambda: torch.masked_select(x, x > 2, out=x))
    whole = torch.tensor([[1, 0, 2]], device="rdna")
    refused(RuntimeError, overlap, lambda: torch.nonzero(whole, out=whole))
    same(torch.sinh(x, out=x.clone()).cpu(), torch.sinh(x.cpu()))


WINDOWS = {"kernel size": dict(kernel_size=0), "dilation": dict(kernel_size=2, dilation=0),
           "padding": dict(kernel_size=2, padding=-1), "stride": dict(kernel_size=2, stride=0)}


@pytest.mark.parametrize("what", WINDOWS)
def test_windows_that_cannot_be(what):
    refused(RuntimeError, what + " should be", lambda: F.unfold(torch.rand(1, 2, 5, 5, device="rdna"), **WINDOWS[what]))
    refused(RuntimeError, what + " should be", lambda: F.fold(torch.rand(1, 8, 9, device="rdna"), (4, 4), **WINDOWS[what]))


def test_numbers_that_cannot_be():
    a = torch.rand(3, 2, device="rdna")
    refused(RuntimeError, "searchsorted", lambda: torch.searchsorted(a[0, 0], 1.5))
    refused(RuntimeError, "non-negative p", lambda: torch.cdist(a, a, p=-1))
    refused(RuntimeError, "to-from", lambda: torch.empty(5, dtype=torch.float64, device="rdna").uniform_(-1.7e308, 1.7e308))
    x, w = (torch.rand(shape, dtype=torch.float64, device="rdna") for shape in ((1, 2, 4, 4), (2, 2, 2, 2)))
    refused(RuntimeError, "dilation", lambda: F.conv2d(x, w, dilation=0))
    refused(RuntimeError, "dilation", lambda: F.conv_transpose2d(x, w, dilation=0))
    refused(RuntimeError, "kernel size", lambda: F.conv2d(x, w[:, :, :0]))
    places = torch.zeros(1, 1, 2, 2, dtype=torch.int32, device="rdna")
    refused(RuntimeError, "int64", lambda: F.max_unpool2d(torch.rand(1, 1, 2, 2, device="rdna"), places, 2))
