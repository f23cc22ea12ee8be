"""nn.CTCLoss beside the CPU's and float64's: values, gradients, lengths of every kind, texts that do not fit."""

import math

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.usefixtures("nothing_falls_back")


def problem(steps=20, batch=5, classes=9, longest=6):
    logits = 2 * torch.randn(steps, batch, classes)
    targets = torch.randint(1, classes, (batch, longest))
    targets[0, 1:3] = targets[0, 0]  # labels that repeat
    lengths = torch.randint(0, longest + 1, (batch,))
    lengths[0], lengths[1] = longest, 0
    times = torch.randint(2 * longest + 1, steps + 1, (batch,)) if steps > 2 * longest else torch.full((batch,), steps)
    times[0] = steps
    return logits, targets, times, lengths


def both(logits, targets, times, lengths, move=lambda t: t.to("rdna"), **options):
    """Loss and gradient, of the CPU in float64 and of rdna."""
    results = []
    for device in ("cpu", "rdna"):
        z = (logits.double() if device == "cpu" else logits.to("rdna")).requires_grad_()
        where = (lambda t: t) if device == "cpu" else move
        loss = F.ctc_loss(z.log_softmax(2), where(targets), where(times), where(lengths), **options)
        (grad,) = torch.autograd.grad(loss, z, torch.linspace(1, 2, loss.numel(), dtype=loss.dtype).view(loss.shape).to(device))
        results += [loss.detach().cpu(), grad.cpu()]
    return results


def assert_close(results):
    loss, grad, our_loss, our_grad = results
    assert our_loss.dtype == our_grad.dtype == torch.float32
    unit = torch.finfo(torch.float32).eps
    torch.testing.assert_close(our_loss.double(), loss, rtol=100 * unit, atol=100 * unit, equal_nan=True)
    # exponentials of sums as large as the loss, each of which is rounded
    room = 50 * unit * max(1, loss[loss.isfinite()].max().item()) if loss.isfinite().any() else 0
    torch.testing.assert_close(our_grad.double(), grad, rtol=room, atol=room, equal_nan=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_values_and_gradients(reduction):
    for blank in (0, 3):
        logits, targets, times, lengths = problem()
        targets = torch.where(targets == blank, (targets + 1) % 9, targets)
        assert_close(both(logits, targets, times, lengths, blank=blank, reduction=reduction))


@pytest.mark.parametrize("kind", ["lists", "cpu", "int32", "one row"])
def test_lengths_and_targets(kind):
    logits, targets, times, lengths = problem()
    want = both(logits, targets, times, lengths, reduction="none")[:2]
    if kind == "lists":
        z = logits.to("rdna").requires_grad_()
        loss = F.ctc_loss(z.log_softmax(2), targets.to("rdna"), times.tolist(), lengths.tolist(), reduction="none")
        (grad,) = torch.autograd.grad(loss, z, torch.linspace(1, 2, 5, dtype=loss.dtype).to("rdna"))
        got = [loss.detach().cpu(), grad.cpu()]
    elif kind == "one row":
        row = torch.cat([t[:n] for t, n in zip(targets, lengths)])
        got = both(logits, row, times, lengths, reduction="none")[2:]
    elif kind == "int32":
        got = both(logits, targets.int(), times.int(), lengths.int(), reduction="none")[2:]
    else:
        got = both(logits, targets, times, lengths, reduction="none")[2:]
    assert_close([*want, *got])


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_texts_that_do_not_fit(zero_infinity):
    """More labels than steps, no steps, no labels, repeated labels that need blanks: infinity, and its gradient."""
    logits = torch.randn(4, 6, 5)
    targets = torch.tensor([[1, 2, 3, 4, 1], [1, 1, 1, 2, 3], [2, 3, 4, 1, 1], [1, 2, 3, 4, 1], [4, 4, 2, 1, 1], [1, 2, 3, 4, 2]])
    times, lengths = torch.tensor([4, 4, 4, 0, 3, 4]), torch.tensor([5, 3, 0, 2, 2, 4])
    loss, grad, ours, our_grad = both(logits, targets, times, lengths, reduction="none", zero_infinity=zero_infinity)
    assert torch.equal(loss.isinf(), ours.isinf()) and (zero_infinity or loss.isinf().sum() == 3)
    assert_close([loss, grad, ours, our_grad])


def test_layouts_and_long_texts():
    logits, targets, times, lengths = problem(300, 3, 40, 120)
    across = logits.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert not across.is_contiguous()
    assert_close(both(across, targets, times, lengths, reduction="none"))
    results = []
    for device in ("cpu", "rdna"):  # not through log_softmax
        x = across.log_softmax(2).to(device)[::2].requires_grad_()
        loss = F.ctc_loss(x, targets.to(device), [150, 100, 140], [20, 3, 70], reduction="sum")
        results += [loss.detach().cpu(), *(g.cpu() for g in torch.autograd.grad(loss, x))]
    torch.testing.assert_close(results[2:], results[:2], rtol=1e-2, atol=1e-2)


def test_module_without_batch_autocast_and_determinism():
    logits, targets, times, lengths = problem()
    loss = torch.nn.CTCLoss()
    one = loss(logits[:, 0].log_softmax(1), targets[0], times[0], lengths[0])
    ours = loss(logits[:, 0].to("rdna").log_softmax(1), targets[0].to("rdna"), times[0].to("rdna"), lengths[0].to("rdna"))
    torch.testing.assert_close(ours.cpu(), one, rtol=1e-5, atol=1e-5)
    with torch.autocast("rdna", torch.float16):
        half = loss(logits.half().to("rdna").log_softmax(2), targets.to("rdna"), times, lengths)
    assert half.dtype == torch.float32 and math.isfinite(half.item())
    grads = [both(logits, targets, times, lengths)[3] for _ in range(2)]
    assert torch.equal(*grads)
    empty = both(torch.randn(5, 2, 4), torch.zeros(2, 0, dtype=torch.long), torch.tensor([5, 3]), torch.tensor([0, 0]))
    assert_close(empty)


def test_mistakes():
    logits, targets, times, lengths = problem()
    x, t = logits.log_softmax(2).to("rdna"), targets.to("rdna")
    for arguments in ((times + 20, lengths), (times, lengths + 7), (times[:2], lengths), (times, lengths[:2])):
        with pytest.raises(RuntimeError) as theirs:
            F.ctc_loss(x.cpu(), targets, *arguments)
        with pytest.raises(RuntimeError) as ours:
            F.ctc_loss(x, t, *arguments)
        assert type(ours.value) is type(theirs.value) and str(ours.value).split(" (")[0] in str(theirs.value)
    with pytest.raises(RuntimeError, match="blank must be in label range"):
        F.ctc_loss(x, t, times, lengths, blank=9)
    with pytest.raises(IndexError, match="ctc_loss: an index was out of range"):
        F.ctc_loss(x, t + 9, times, lengths).item()
