"""Memory, files and threads after many steps and after failures. Ten thousand steps: soak.py."""

import pytest
import torch
from soak import Training, grown, held
from test_models import ViT


def test_three_hundred_steps_leave_nothing():
    training = Training()
    for i in range(60):
        training.step(i)
    before = held()
    for i in range(300):
        training.step(i)
    assert grown(before, held(), 300) == []


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context, gradient):
        raise ValueError("on purpose")


def test_an_exception_inside_backward_gives_the_memory_back():
    model, (x, y) = ViT().to("rdna"), (t.to("rdna") for t in ViT.batch())

    def fail(x):
        with pytest.raises(ValueError, match="on purpose"):
            Raises.apply(model(Raises.apply(x), y)).backward()
        model.zero_grad()

    fail(x)
    before = held()
    for _ in range(5):
        fail(x)
    assert grown(before, held(), 5) == []
    loss = model(x, y)
    handle = next(model.parameters()).register_hook(lambda gradient: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loss.backward()
    handle.remove()
    model(x, y).backward()
    assert all(torch.isfinite(p.grad).all().item() for p in model.parameters())


def test_a_mistake_on_the_device_inside_backward_is_told_where_it_is_waited_for():
    """An operator that is refused in the middle of a backward pass, and one whose index is out of range."""
    x = torch.randn(4, 4, device="rdna", requires_grad=True)

    class Refused(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.clone()

        @staticmethod
        def backward(context, gradient):
            return gradient @ torch.ones(3, 3, device="rdna")

    for _ in range(3):
        with pytest.raises(RuntimeError, match="mat1 and mat2|cannot be multiplied|matmul|shapes"):
            Refused.apply(x).sum().backward()
    x.sum().backward()
    assert torch.equal(x.grad.cpu(), torch.ones(4, 4))


def test_running_out_of_memory_in_the_middle_of_training():
    model, (x, y) = ViT().to("rdna"), (t.to("rdna") for t in ViT.batch())
    model(x, y).backward()
    model.zero_grad()
    torch.rdna.synchronize()
    before = torch.rdna.memory_allocated()
    for _ in range(3):
        with pytest.raises(torch.OutOfMemoryError):
            (model(x, y) * torch.ones(1 << 58, device="rdna")).backward()
    assert torch.rdna.memory_allocated() == before
    model(x, y).backward()


def test_repeated_steps_of_many_sizes_do_not_ask_the_driver_for_memory():
    torch.rdna.synchronize()
    torch.rdna.empty_cache()

    def step():
        before = torch.empty(3 << 20, device="rdna")
        for i in range(4, 17, 2):  # two of 16 to 64 MiB are live at once, all together four times that
            before = torch.empty(i << 20, device="rdna")
        del before

    for _ in range(2):
        step()
    calls = torch.rdna.memory_stats()["num_device_alloc"], torch.rdna.memory_stats()["num_device_free"]
    for _ in range(3):
        step()
    assert calls == (torch.rdna.memory_stats()["num_device_alloc"], torch.rdna.memory_stats()["num_device_free"])
