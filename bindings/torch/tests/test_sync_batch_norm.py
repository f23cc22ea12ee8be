"""The operators of torch.nn.SyncBatchNorm over parts of a batch, as two processes would call them; test_distributed.py
has the processes."""

import pytest
import torch
import torch.nn.functional as F

SHAPES = {"rows": (12, 5), "images": (12, 5, 3, 4), "volumes": (12, 5, 2, 3, 2)}


@pytest.fixture(autouse=True)
def nothing_falls_back():
    torch.rdna.set_fallback_mode("error")
    yield
    torch.rdna.set_fallback_mode("allow")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("affine", [True, False], ids=["affine", "plain"])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_give_what_the_whole_gives(shape, affine, dtype):
    torch.manual_seed(0)
    x, dy = (torch.randn(SHAPES[shape]) * 3 + 7).to(dtype), torch.randn(SHAPES[shape]).to(dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    weight, bias = (torch.rand(5, dtype=wide) + 0.5, torch.randn(5, dtype=wide)) if affine else (None, None)
    running = torch.randn(5, dtype=wide), torch.rand(5, dtype=wide)
    # the whole, in f64
    joined = [t.double().requires_grad_() if t is not None else None for t in (x, weight, bias)]
    expected_running = [t.clone().double() for t in running]
    y = F.batch_norm(joined[0], *expected_running, joined[1], joined[2], True, 0.2, 1e-3)
    y.backward(dy.double())

    there = {k: None if t is None else t.to("rdna") for k, t in {"weight": weight, "bias": bias}.items()}
    mean_running, var_running = (t.to("rdna") for t in running)
    split = (3, 9)  # not alike
    parts, slopes = (t.to("rdna").split(split) for t in (x, dy))
    if len(x.shape) == 4:
        parts = [p.contiguous(memory_format=torch.channels_last) for p in parts]
    stats = [torch.batch_norm_stats(p, 1e-3) for p in parts]
    counts = torch.tensor([p.numel() / 5 for p in parts], dtype=wide, device="rdna")
    mean, invstd = torch.batch_norm_gather_stats_with_counts(parts[0], torch.stack([s[0] for s in stats]),
                                                             torch.stack([s[1] for s in stats]),
                                                             mean_running, var_running, 0.2, 1e-3, counts)
    assert mean.dtype == wide and invstd.dtype == wide
    found = [torch.batch_norm_elemt(p, there["weight"], there["bias"], mean, invstd, 1e-3) for p in parts]
    assert all(f.dtype == dtype and f.stride() == p.stride() for f, p in zip(found, parts))
    sums = [torch.batch_norm_backward_reduce(g, p, mean, invstd, there["weight"], True, True, True) for g,
            p in zip(slopes, parts)]
    total = [sums[0][i] + sums[1][i] for i in range(2)]
    dx = [torch.batch_norm_backward_elemt(g, p, mean, invstd, there["weight"], *total, counts.int()) for g,
          p in zip(slopes, parts)]
    tolerance = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]

    def close(ours, theirs, bound=tolerance):
        torch.testing.assert_close(ours.detach().cpu().double(), theirs.detach(), rtol=bound, atol=bound)

    close(torch.cat([f.contiguous() for f in found]), y)
    close(torch.cat([d.contiguous() for d in dx]), joined[0].grad)
    exact = 1e-9 if dtype == torch.float64 else 2e-5  # of 16 bits only what is read was rounded
    close(mean_running, expected_running[0], exact), close(var_running, expected_running[1], exact)
    if affine:
        close(sums[0][2] + sums[1][2], joined[1].grad, 10 * exact),
        close(sums[0][3] + sums[1][3], joined[2].grad, 10 * exact)
    else:
        assert sums[0][2] is None and sums[0][3] is None


def test_the_module_without_a_group_is_batch_norm():
    torch.manual_seed(0)
    ours, theirs = torch.nn.SyncBatchNorm(3).to("rdna"), torch.nn.BatchNorm2d(3)
    x = torch.randn(4, 3, 5, 5)
    for _ in range(2):
        a, b = x.to("rdna").requires_grad_(), x.clone().requires_grad_()
        y, z = ours(a), theirs(b)
        y.square().sum().backward(), z.square().sum().backward()
        torch.testing.assert_close(y.detach().cpu(), z.detach())
        torch.testing.assert_close(a.grad.cpu(), b.grad, atol=1e-4, rtol=1e-4)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name].cpu(), value)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(x.to("rdna")).detach().cpu(), theirs(x).detach())
