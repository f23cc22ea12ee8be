"""Losses of seven unlike models of the bench over 50 steps: rdna's are as near to float64's as the CPU's of float32 are.

Errors grow from step to step, and a small wrong share of a gradient, which three steps hide, shows after fifty. Run on a
card with RDNA_DRIVER=cuda or hip."""
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import check  # noqa: E402
import models  # noqa: E402
import zoo  # noqa: E402

MODELS = ["EfficientNet-B0", "nn.Transformer, translation", "LSTM, language", "Mixtral, experts", "graph attention, scatter",
          "U-Net, segmentation", "PINN, second derivatives"]
STEPS, FACTOR = 50, 4


def losses(name, device, dtype, change=None):
    """Of each step; |change| spoils the module first."""
    model = zoo.MODELS[name]
    work = check.prepared(model, dtype, "training", device, True)
    if change:
        change(work.module)
    step = models.stepper(model, work, "training", dtype, device, lambda f: f)
    return torch.stack([step().cpu().double() for _ in range(STEPS)])


def allowed(theirs, right):
    """How far one may be: as the CPU's float32, which is not taken for nearer than the rounding of each loss itself."""
    return FACTOR * max(check.distance(theirs, right), torch.finfo(torch.float32).eps / 2)


@pytest.fixture(autouse=True)
def one_thread():
    """These sizes are too small for more, which would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", MODELS)
def test_losses_follow_float64(name, nothing_falls_back):
    right, theirs, ours = (losses(name, device, dtype) for device, dtype in (("cpu", "f64"), ("cpu", "f32"), ("rdna", "f32")))
    assert right[-1] < right[0], "the loss did not fall"
    assert check.distance(ours, right) <= allowed(theirs, right)


def test_a_gradient_in_wrong_places_would_be_seen():
    """Of one weight of many, its values one place further."""
    name = "graph attention, scatter"

    def spoil(module):
        next(module.parameters()).register_hook(lambda slope: slope.roll(1, 0))

    right, theirs = losses(name, "cpu", "f64"), losses(name, "cpu", "f32")
    assert check.distance(losses(name, "rdna", "f32", spoil), right) > allowed(theirs, right)
