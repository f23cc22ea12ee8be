"""Targets that are no class: an IndexError where the device is waited for, as with every index, never a NaN alone."""

import pytest
import torch
import torch.nn.functional as F

CLASSES = 4
OUTSIDE = [4, 9, -1, -5, 1 << 40]
SHAPES = {"rows": ((3, CLASSES), (3,)), "one row": ((CLASSES,), ()), "an image": ((2, CLASSES, 3, 5), (2, 3, 5)),
          "a line": ((2, CLASSES, 3), (2, 3)), "many classes": ((3, 3000), (3,))}
OPTIONS = [{}, {"reduction": "sum"}, {"reduction": "none"}, {"weight": True}, {"weight": True, "reduction": "none"},
           {"label_smoothing": 0.1},
           {"ignore_index": 2}]


def arguments(shape, options, dtype):
    torch.manual_seed(0)
    x, target = torch.randn(SHAPES[shape][0]).to(dtype), torch.randint(0, CLASSES, SHAPES[shape][1])
    options = dict(options)
    if options.pop("weight", False):
        options["weight"] = torch.rand(x.shape[min(1, x.dim() - 1)]).to(dtype) + 0.5
    return x, target, options


def there(options):
    return {k: v.to("rdna") if isinstance(v, torch.Tensor) else v for k, v in options.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_target_that_is_no_class_raises(shape, options, dtype):
    x, target, options = arguments(shape, options, dtype)
    loss_of = [F.cross_entropy] if "label_smoothing" in options else [F.cross_entropy, F.nll_loss]
    for loss in loss_of:
        for bad in OUTSIDE:
            if shape == "many classes" and bad < 3000 and bad > 0:
                bad += 3000
            wrong = target.clone()
            wrong.view(-1)[-1] = bad
            given = x.to("rdna").requires_grad_()
            value = loss(given, wrong.to("rdna"), **there(options))
            with pytest.raises(IndexError, match="index was out of range"):
                value.sum().item()
            value = loss(given, wrong.to("rdna"), **there(options))
            value.sum().backward()
            with pytest.raises(IndexError, match="index was out of range"):
                torch.rdna.synchronize()
            ignored = dict(options, ignore_index=bad)  # then it is none of the classes, and counts for nothing
            mine, theirs = x.to("rdna").requires_grad_(), x.clone().requires_grad_()
            value, expected = loss(mine, wrong.to("rdna"), **there(ignored)), loss(theirs, wrong, **ignored)
            tolerance = {"rtol": 3e-2, "atol": 3e-2} if dtype == torch.bfloat16 else {}
            torch.testing.assert_close(value.cpu(), expected.detach(), equal_nan=True, **tolerance)
            if expected.isfinite().all():
                value.sum().backward(), expected.sum().backward()
                torch.testing.assert_close(mine.grad.cpu(), theirs.grad, **tolerance)
            torch.rdna.synchronize()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_gradient_alone_raises(dtype):
    x, total = torch.randn(3, 4).to("rdna", dtype), torch.ones((), device="rdna", dtype=dtype)
    for target in ([0, 1, 4], [0, 1, -5]):
        torch.ops.aten.nll_loss_backward(total, x, torch.tensor(target, device="rdna"), None, 1, -100, total)
        with pytest.raises(IndexError, match="index was out of range"):
            torch.rdna.synchronize()
    grad = torch.ops.aten.nll_loss_backward(total, x, torch.tensor([0, 1, -100], device="rdna"), None, 1, -100, total)
    assert grad.isfinite().all()
