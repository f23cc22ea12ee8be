"""Random numbers by tensors of probabilities, means and deviations: how often what comes, and nothing falls back."""

import pytest
import torch
import torch.nn.functional as F
from test_random import REAL, of_ones
from test_results import refused


pytestmark = pytest.mark.usefixtures("nothing_falls_back")


@pytest.mark.parametrize("count, replacement", [(1, False), (2, False), (20000, True)])
@pytest.mark.parametrize("scale, dtype", [(1, torch.float32), (1, torch.bfloat16), (8e37, torch.float32), (1e-44, torch.float32),
                                          (4e307, torch.float64), (1e-323, torch.float64)])
def test_multinomial_draws_by_weight(count, replacement, scale, dtype):
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0])
    rows = 20000 if count < 3 else 1
    drawn = torch.multinomial((weights.double() * scale).to(dtype).to("rdna").expand(rows, 5), count, replacement)
    first = torch.bincount(drawn[:, 0].cpu() if count < 3 else drawn.cpu().flatten(), minlength=5) / 20000
    torch.testing.assert_close(first, weights / 8, rtol=0, atol=0.015)
    if count == 2:
        assert (drawn[:, 0] != drawn[:, 1]).all() and not torch.isin(drawn, torch.tensor([0, 3], device="rdna")).any()


def test_rare_choices_are_rare():
    """Of 100,000 exponential numbers one is about 1e-5 of the others. Where the least of them became 0, or nearly, its
    index was chosen however small its weight."""
    def few(draw):
        torch.rdna.set_rng_state(of_ones().get_state())
        return draw()

    weights = torch.tensor([1e-12, 1.0], device="rdna")
    for dtype in (torch.float32, torch.float64):
        assert few(lambda: torch.multinomial(weights.to(dtype), 1)).item() == 1
        assert few(lambda: torch.multinomial(weights.to(dtype), 2)).tolist() == [1, 0]
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        logits = torch.tensor([-40.0, 0.0], device="rdna", dtype=dtype)
        assert few(lambda: F.gumbel_softmax(logits, hard=True)).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_of_zero_are_never_drawn(dtype):
    weights = torch.rand(1 << 16, dtype=dtype, device="rdna") * (torch.rand(1 << 16, device="rdna") < 0.3)
    assert (weights[torch.multinomial(weights, 1 << 20, True)] > 0).all()
    assert (weights[torch.multinomial(weights, 1 << 12)] > 0).all()


def test_multinomial_refuses_what_are_no_probabilities():
    for weights in ([1.0, -1.0], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]):
        with pytest.raises(RuntimeError, match="probability tensor"):
            torch.multinomial(torch.tensor(weights, device="rdna"), 1)
    with pytest.raises(RuntimeError, match="without replacement"):
        torch.multinomial(torch.ones(2, device="rdna"), 3)
    with pytest.raises(RuntimeError, match="expects Long tensor out, got: Double"):
        torch.multinomial(torch.ones(2, device="rdna").double(), 1, out=torch.empty(1, device="rdna").double())
    with pytest.raises(RuntimeError, match="number of categories cannot exceed"):
        torch.multinomial(torch.ones(2**24 + 1, device="rdna"), 1)
    assert 0 <= torch.multinomial(torch.ones(2**24, device="rdna"), 1).item() < 2**24


def test_bernoulli_and_normal_by_tensors():
    p = torch.tensor([0.0, 0.2, 0.7, 1.0])
    drawn = torch.bernoulli(p.to("rdna").expand(20000, 4))
    torch.testing.assert_close(drawn.mean(0).cpu(), p, rtol=0, atol=0.015)
    assert set(drawn.unique().cpu().tolist()) == {0.0, 1.0}
    mean, deviation = torch.tensor([[-3.0], [5.0]]), torch.tensor([0.0, 0.5, 2.0])
    x = torch.normal(mean.to("rdna").expand(2, 3).repeat(20000, 1, 1), deviation.to("rdna"))
    torch.testing.assert_close(x.mean(0).cpu(), mean.expand(2, 3), rtol=0, atol=0.06)
    torch.testing.assert_close(x.std(0).cpu(), deviation.expand(2, 3), rtol=0.03, atol=0)


def test_chances_that_are_none():
    for p in (float("nan"), -0.1, 1.5):
        chances = torch.tensor([0.5, p], device="rdna")
        refused(RuntimeError, "in \\[0, 1\\]", lambda: torch.bernoulli(chances))
        refused(RuntimeError, "in \\[0, 1\\]", lambda: torch.empty(2, device="rdna").bernoulli_(chances))
    assert torch.bernoulli(torch.empty(0, device="rdna")).numel() == 0


def test_made_distributions():
    x = torch.empty(40000, device="rdna")
    assert abs(x.log_normal_(0.5, 0.25).log().mean().item() - 0.5) < 0.01
    assert abs(x.cauchy_(2.0, 1.0).median().item() - 2) < 0.05
    x.geometric_(0.25)
    assert abs(x.mean().item() - 4) < 0.1 and x.min().item() == 1
    counts = torch.empty(100000, dtype=torch.int64, device="rdna").geometric_(1e-9)
    assert len(counts.unique()) > 99900  # and not multiples of a step


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_log_normal_numbers_are_rounded_once(dtype):
    x = torch.empty(100000, device="rdna", dtype=dtype).log_normal_(5, 0.25)
    inside = x[(x >= 128) & (x < 256)].unique()
    assert len(inside) >= (128 if dtype == torch.bfloat16 else 1000)  # all that bf16 has; not exp of rounded numbers
