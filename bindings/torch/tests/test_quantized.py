"""Products with weights of 8 and 4 bits beside float64's and integers', and rounding to steps beside the CPU's."""

import math

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")


@pytest.mark.parametrize("m, k, n", [(1, 16, 8), (33, 70, 5), (5, 3, 4), (4, 0, 3), (0, 8, 8)])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_bytes(m, k, n, turned):
    a, b = (torch.randint(-128, 128, s, dtype=torch.int8) for s in ((m, k), (n, k) if turned else (k, n)))
    b = b.t() if turned else b
    exact = (a.long() @ b.long()).int()
    b = b.to("rdna")
    assert torch.equal(torch._int_mm(a.to("rdna"), b).cpu(), exact)
    out = torch.full((m, n), -7, dtype=torch.int32, device="rdna")
    assert torch._int_mm(a.to("rdna"), b, out=out) is out and torch.equal(out.cpu(), exact)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)])
@pytest.mark.parametrize("m", [0, 1, 33])
def test_weights_of_bytes(dtype, tolerance, m):
    a, w = torch.randn(m, 70).to(dtype), torch.randint(-128, 128, (37, 70), dtype=torch.int8)
    scales = (torch.rand(37) / 128).to(dtype)
    out = torch._weight_int8pack_mm(a.to("rdna"), w.to("rdna"), scales.to("rdna"))
    exact = a.double() @ w.double().t() * scales.double()
    assert out.dtype == dtype
    torch.testing.assert_close(out.cpu().double(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("tiles, group", [(2, 32), (4, 64), (8, 128)])
def test_weights_of_four_bits(dtype, tolerance, tiles, group):
    n, k = 24, 256
    whole = torch.randint(0, 16, (n, k))
    both = torch.stack([torch.rand(k // group, n) / 8, torch.randn(k // group, n)], -1).to(dtype)
    packed = torch._convert_weight_to_int4pack((whole[:, ::2] << 4 | whole[:, 1::2]).to(torch.uint8).to("rdna"), tiles)
    assert packed.dtype == torch.int32 and packed.shape == (n // 8, k // (tiles * 16), 32, tiles // 2)
    scale, zero = (both[..., i].double().repeat_interleave(group, 0).t() for i in (0, 1))
    weights = (whole - 8) * scale + zero
    for m in (1, 5):
        a = torch.randn(m, k).to(dtype)
        out = torch._weight_int4pack_mm(a.to("rdna"), packed, group, both.to("rdna"))
        assert out.dtype == dtype
        # weights are rounded to |dtype| before the product, which grows with the root of k
        bound = tolerance * (a.double().abs() @ weights.abs().t()) / math.sqrt(k) + tolerance
        assert ((out.cpu().double() - a.double() @ weights.t()).abs() <= bound).all()


def test_weights_that_do_not_fit():
    def refused(words, f):
        with pytest.raises(RuntimeError, match=words):
            f()

    a, w = torch.ones(2, 64, device="rdna"), torch.ones(8, 64, dtype=torch.int8, device="rdna")
    refused("must match mat2.size", lambda: torch._int_mm(w, w))
    refused("expected tensors of int8", lambda: torch._int_mm(a, w.t()))
    refused("of int32", lambda: torch._int_mm(w, w.t(), out=torch.empty(8, 8, device="rdna")))
    refused("8 scales", lambda: torch._weight_int8pack_mm(a, w, torch.ones(7, device="rdna")))
    refused("mat2 of int8", lambda: torch._weight_int8pack_mm(a, a, torch.ones(2, device="rdna")))
    packed = torch._convert_weight_to_int4pack(torch.zeros(8, 32, dtype=torch.uint8, device="rdna"), 2)
    refused("multiple of 8", lambda: torch._convert_weight_to_int4pack(torch.zeros(7, 32, dtype=torch.uint8, device="rdna"), 2))
    refused("2, 4 or 8", lambda: torch._convert_weight_to_int4pack(torch.zeros(8, 32, dtype=torch.uint8, device="rdna"), 3))
    refused("rows of 32 values, mat2 of 64", lambda: torch._weight_int4pack_mm(a[:, :32], packed, 32, torch.ones(2, 8, 2, device="rdna")))
    refused("qGroupSize", lambda: torch._weight_int4pack_mm(a, packed, 16, torch.ones(4, 8, 2, device="rdna")))
    refused("qScaleAndZeros", lambda: torch._weight_int4pack_mm(a, packed, 32, torch.ones(2, 7, 2, device="rdna")))


VALUES = [0.0, 0.04, 0.05, -0.05, 0.15, 25.4, 25.6, -30.0, math.inf, -math.inf, math.nan, 1e30]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_rounding_to_steps(dtype):
    x = torch.cat([torch.tensor(VALUES), torch.randn(36) * 8]).view(4, 12).to(dtype)
    scales, whole = torch.rand(4) + 0.05, torch.tensor([0, 3, -7, 100])
    calls = {
        "a number": lambda t, on: torch.fake_quantize_per_tensor_affine(t, 0.1, 3, -128, 127),
        "tensors": lambda t, on: torch.fake_quantize_per_tensor_affine(t, scales[:1].to(on), torch.tensor([5], dtype=torch.int32, device=on), 0, 255),
        "rows": lambda t, on: torch.fake_quantize_per_channel_affine(t, scales.to(on), whole.int().to(on), 0, -128, 127),
        "between": lambda t, on: torch.fake_quantize_per_channel_affine(t, scales.to(on), whole.to(on) + 0.25, 0, -128, 127),
        "off": lambda t, on: torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
            t, scales[:1].to(on), torch.tensor([5], dtype=torch.int32, device=on), torch.zeros(1, dtype=torch.int64, device=on), 0, 255)[0],
    }
    for name, f in calls.items():
        if name in ("rows", "between"):  # beyond int64 the CPU's processor gives the smallest there is, and so the lower end
            x = x.clamp(-1e4, 1e4)
        if dtype in (torch.float64, torch.bfloat16) and name != "a number":
            continue  # the CPU has none
        results = []
        for on in ("cpu", "rdna"):
            t = x.to(on).detach().requires_grad_()
            y = f(t, on)
            y.backward(torch.arange(48.0).view(4, 12).to(on).to(dtype)) if name != "off" else None
            results.append((y.detach().cpu(), t.grad.cpu() if t.grad is not None else torch.zeros(0)))
        for theirs, ours in zip(*results):
            assert theirs.dtype == ours.dtype
            torch.testing.assert_close(ours, theirs, equal_nan=True, rtol=1e-6 if dtype == torch.float32 else None,
                                       atol=1e-6 if dtype == torch.float32 else None, msg=lambda m, name=name: f"{name}: {m}")


def test_steps_that_there_are_not():
    x = torch.ones(3, 2, device="rdna")
    for f in (lambda d: torch.fake_quantize_per_tensor_affine(x.to(d), 0.1, 300, 0, 255),
              lambda d: torch.fake_quantize_per_channel_affine(x.to(d), torch.ones(2, device=d), torch.zeros(2, dtype=torch.int32, device=d), 0, 0, 255),
              lambda d: torch.fake_quantize_per_tensor_affine(x.to(d), 0.1, 3, 5, 2)):
        for device in ("cpu", "rdna"):
            with pytest.raises(RuntimeError):
                f(device)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_steps_that_are_learned(axis):
    x = torch.cat([torch.tensor([0.0, 0.04, -0.05, 25.4, -30.0, 300.0]), torch.randn(42) * 8]).view(4, 12)
    n = 1 if axis is None else x.shape[axis]
    scale, zero = torch.rand(n) + 0.05, torch.randint(-9, 9, (n,)).float() + torch.where(torch.rand(n) < 0.5, 0.0, 0.3)
    zero[0] = 400.0  # is brought to the end

    def run(on):
        t, s, z = (v.to(on).detach().requires_grad_() for v in (x, scale, zero))
        if axis is None:
            y = torch._fake_quantize_learnable_per_tensor_affine(t, s, z, -128, 127, 0.5)
        else:
            y = torch._fake_quantize_learnable_per_channel_affine(t, s, z, axis, -128, 127, 0.5)
        y.backward(torch.arange(48.0).view(4, 12).to(on))
        return [v.cpu() for v in (y.detach(), t.grad, s.grad, z.grad)]

    for ours, theirs in zip(run("rdna"), run("cpu")):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)
    with pytest.raises(RuntimeError):
        torch._fake_quantize_learnable_per_channel_affine(x.to("rdna"), scale.to("rdna"), torch.zeros(9, device="rdna"), 0, -128, 127, 1.0)


@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("least, most", [(-128, 127), (0, 255), (-8, 7)])
def test_an_observer_follows_the_range(least, most, rows, symmetric):
    """Ranges of both signs and of one, nothing but zeros, little values; switched on and off; nine steps."""
    steps = [torch.randn(5, 3, 4) * 8, torch.rand(5, 3, 4) + 1, -torch.rand(5, 3, 4), torch.zeros(5, 3, 4), torch.randn(5, 3, 4) * 1e-6,
             torch.randn(5, 3, 4) * 100, torch.randn(5, 3, 4), torch.randn(5, 3, 4) * 3, torch.randn(5, 3, 4)]

    def run(on, first):
        state = [torch.zeros(0) if rows else torch.tensor([v]) for v in (math.inf, -math.inf)]
        low, high = (v.to(on) for v in state)
        scale, zero = (torch.zeros(0 if rows else 1, dtype=d, device=on) for d in (torch.float32, torch.int32))
        results = []
        for i, x in enumerate(steps[first:]):
            t = x.to(on).detach().requires_grad_()
            watched, rounds = (torch.tensor([int(v)], device=on) for v in (i != 4, i not in (2, 3)))
            y = torch.fused_moving_avg_obs_fake_quant(t, watched, rounds, low, high, scale, zero, 0.3, least, most, 0, rows, symmetric)
            y.backward(torch.arange(60.0).view(5, 3, 4).to(on))
            results += [v.detach().cpu().clone() for v in (low, high, scale, zero, y, t.grad)]
        return results

    for first in range(5):
        for ours, theirs in zip(run("rdna", first), run("cpu", first), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def test_an_observer_of_another_axis_is_refused():
    for on in ("cpu", "rdna"):
        x, one = torch.ones(2, 3, device=on), torch.ones(1, device=on)
        with pytest.raises(RuntimeError, match="only supported on axis == 0"):
            torch.fused_moving_avg_obs_fake_quant(x, one, one, one.clone(), one.clone(), one.clone(), one.int(), 0.1, 0, 255, 1, True)


@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.skipif(not hasattr(torch, "hash_tensor"), reason="torch.hash_tensor came with PyTorch 2.9")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool])
def test_hashes(dtype):
    x = (torch.randn(5, 3, 7) * 40).to(dtype)
    for t in (x, x.mT, x[:, :0], x[1, 1, 1], x[:, ::2, 1::3]):
        for dims in ((), 0, -1, (0, 2)) if t.numel() else (0, -1, (0, 2)):
            if t.dim() == 0 and dims != () or t.dim() < 3 and isinstance(dims, tuple) and dims:
                continue
            for kept in (False, True):
                theirs = torch.hash_tensor(t, dims, keepdim=kept)
                ours = torch.hash_tensor(t.to("rdna"), dims, keepdim=kept)
                assert ours.dtype == theirs.dtype and torch.equal(ours.cpu(), theirs)
