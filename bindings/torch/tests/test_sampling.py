"""Random numbers by tensors of probabilities, means and deviations: how often what comes, and nothing falls back."""

import pytest
import torch


pytestmark = pytest.mark.usefixtures("nothing_falls_back")


@pytest.mark.parametrize("count, replacement", [(1, False), (2, False), (20000, True)])
def test_multinomial_draws_by_weight(count, replacement):
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0])
    rows = 20000 if count < 3 else 1
    drawn = torch.multinomial(weights.to("rdna").expand(rows, 5), count, replacement)
    first = torch.bincount(drawn[:, 0].cpu() if count < 3 else drawn.cpu().flatten(), minlength=5) / 20000
    torch.testing.assert_close(first, weights / 8, rtol=0, atol=0.015)
    if count == 2:
        assert (drawn[:, 0] != drawn[:, 1]).all() and not torch.isin(drawn, torch.tensor([0, 3], device="rdna")).any()


def test_multinomial_refuses_what_are_no_probabilities():
    for weights in ([1.0, -1.0], [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]):
        with pytest.raises(RuntimeError, match="probability tensor"):
            torch.multinomial(torch.tensor(weights, device="rdna"), 1)
    with pytest.raises(RuntimeError, match="without replacement"):
        torch.multinomial(torch.ones(2, device="rdna"), 3)
    with pytest.raises(RuntimeError, match="expects Long tensor out, got: Double"):
        torch.multinomial(torch.ones(2, device="rdna").double(), 1, out=torch.empty(1, device="rdna").double())


def test_bernoulli_and_normal_by_tensors():
    p = torch.tensor([0.0, 0.2, 0.7, 1.0])
    drawn = torch.bernoulli(p.to("rdna").expand(20000, 4))
    torch.testing.assert_close(drawn.mean(0).cpu(), p, rtol=0, atol=0.015)
    assert set(drawn.unique().cpu().tolist()) == {0.0, 1.0}
    mean, deviation = torch.tensor([[-3.0], [5.0]]), torch.tensor([0.0, 0.5, 2.0])
    x = torch.normal(mean.to("rdna").expand(2, 3).repeat(20000, 1, 1), deviation.to("rdna"))
    torch.testing.assert_close(x.mean(0).cpu(), mean.expand(2, 3), rtol=0, atol=0.06)
    torch.testing.assert_close(x.std(0).cpu(), deviation.expand(2, 3), rtol=0.03, atol=0)


def test_made_distributions():
    x = torch.empty(40000, device="rdna")
    assert abs(x.log_normal_(0.5, 0.25).log().mean().item() - 0.5) < 0.01
    assert abs(x.cauchy_(2.0, 1.0).median().item() - 2) < 0.05
    x.geometric_(0.25)
    assert abs(x.mean().item() - 4) < 0.1 and x.min().item() == 1
