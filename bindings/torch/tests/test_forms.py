"""Operators that are others in another form, or under another name, beside the CPU's."""

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.usefixtures("nothing_falls_back")


def same(f, *tensors, tolerance=0.0):
    """f gives the same of |tensors| on both devices: value, type, shape."""
    theirs, ours = (f(*(t.clone().to(device) for t in tensors)) for device in ("cpu", "rdna"))
    assert ours.device.type == "rdna"
    torch.testing.assert_close(ours.cpu(), theirs, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_shifts(dtype):
    x = torch.randint(-100 if dtype.is_signed else 0, 100, (5, 7)).to(dtype)
    by = torch.randint(0, 7, (7,)).to(dtype)
    for f in (lambda x, by: x << by, lambda x, by: x >> by, lambda x, by: x << 3, lambda x, by: x >> 2, lambda x, by: x.t() << 1,
              lambda x, by: x.__ilshift__(by), lambda x, by: x.__irshift__(1), lambda x, by: x.__irshift__(by), lambda x, by: x[:, 0].__ilshift__(2)):
        same(f, x, by)


def test_results_into_given_tensors():
    x, m = torch.randn(4, 5) + 3, torch.randn(2, 4, 3)
    cases = [
        (lambda x, out: torch.max(x, out=out), ()), (lambda x, out: torch.min(x, out=out), ()),
        (lambda x, out: torch.std(x, 1, out=out), (4,)), (lambda x, out: torch.var(x, dim=None, correction=0, keepdim=True, out=out), (1, 1)),
        (lambda x, out: torch.var(x, (0, 1), correction=2, out=out), ()), (lambda x, out: torch.mvlgamma(x + 3, 2, out=out), (4, 5)),
        (lambda x, out: torch.eye(3, out=out), (3, 3)), (lambda x, out: torch.range(1, 2.5, 0.25, out=out), (7,)),
        (lambda x, out: torch._addmm_activation(x[0], x, x.t() @ x, use_gelu=True, out=out), (4, 5)),
    ]
    for f, shape in cases:
        for given in (shape, (0,)):  # resized where it is empty
            same(lambda x, f=f, given=given: f(x, torch.full(given, 7.0, device=x.device)), x, tolerance=1e-5)
    same(lambda x: torch._addmm_activation(x[0], x, x.t() @ x), x, tolerance=1e-5)
    same(lambda m: torch.ones(4, 4, device=m.device).addbmm_(m, m.mT, beta=0.5, alpha=2), m, tolerance=1e-5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(4, device="rdna").addbmm_(m.to("rdna"), m.mT.to("rdna"))
    same(lambda x: x.sigmoid().logit_(), x, tolerance=1e-4)
    same(lambda x: (x / 4).logit_(0.1), x, tolerance=1e-5)


def test_numbers_in_place_of_tensors():
    edges, whole = torch.tensor([0.5, 1.0, 1.0, 4.0]), torch.tensor([[1, 2, 3], [3, 4, 5]])
    for value in (0.0, 1.0, 2.0, 9.0):
        for right in (False, True):
            same(lambda e, value=value, right=right: torch.bucketize(value, e, right=right, out_int32=right), edges)
    for invert in (False, True):
        same(lambda w, invert=invert: torch.isin(w, 3, invert=invert), whole)
        for value in (3, 9):
            same(lambda w, invert=invert, value=value: torch.isin(value, w, invert=invert), whole)


@pytest.mark.parametrize("rows, columns, offset", [(3, 3, 0), (4, 6, 2), (6, 4, -2), (3, 3, 9), (3, 3, -9), (0, 3, 0)])
def test_indices_of_triangles(rows, columns, offset):
    for f in (torch.tril_indices, torch.triu_indices):
        for dtype in (torch.int64, torch.int32):
            ours = f(rows, columns, offset, dtype=dtype, device="rdna")
            theirs = f(rows, columns, offset, dtype=dtype)
            assert ours.dtype == dtype and torch.equal(ours.cpu(), theirs) and ours.is_contiguous()
    with pytest.raises(RuntimeError, match="row must be non-negative"):
        torch.tril_indices(-1, 2, device="rdna")


@pytest.mark.parametrize("start, end, step", [(0, 5, 1), (5, -4, -3), (2, 2, 1), (0.5, 3.2, 0.3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_range(start, end, step, dtype):
    if not dtype.is_floating_point and step == 0.3:
        return
    theirs, ours = (torch.range(start, end, step, dtype=dtype, device=d) for d in ("cpu", "rdna"))
    torch.testing.assert_close(ours.cpu(), theirs)


def test_range_that_there_is_not():
    for arguments, words in (((0, 3, 0), "nonzero"), ((3, 0, 1), "inconsistent"), ((0, float("inf"), 1), "unsupported range")):
        for device in ("cpu", "rdna"):
            with pytest.raises(RuntimeError, match=words):
                torch.range(*arguments, device=device)


@pytest.mark.parametrize("dim", [0, -1])
def test_forward_derivatives_of_gated_units(dim):
    x, dx, g, dg = torch.randn(6, 4), torch.randn(6, 4), torch.randn(6, 4).chunk(2, dim)[0], torch.randn(6, 4).chunk(2, dim)[0]
    same(lambda x, dx: torch.func.jvp(lambda z: F.glu(z, dim), (x,), (dx,))[1], x, dx, tolerance=1e-6)

    def backward(x, dx, g, dg):
        gradient = torch.ops.aten.glu_backward(g, x, dim)
        return torch.ops.aten.glu_backward_jvp(gradient, g, x, dg, dx, dim)

    same(backward, x, dx, g, dg, tolerance=1e-5)


def test_indices_of_sparse_rows():
    rows, columns = torch.tensor([0, 0, 2, 2, 5]), torch.tensor([1, 3, 0, 2, 1])
    for small in (False, True):
        same(lambda r, small=small: torch._convert_indices_from_coo_to_csr(r, 7, out_int32=small), rows)
        starts = torch._convert_indices_from_coo_to_csr(rows, 7)
        for turned in (False, True):
            same(lambda s, c, small=small, turned=turned: torch._convert_indices_from_csr_to_coo(s, c, out_int32=small, transpose=turned), starts, columns)


def test_convolutions_by_older_names():
    x, one, w = torch.randn(2, 3, 9, 8), torch.randn(3, 1, 3, 3), torch.randn(4, 3, 3, 3)
    bias = torch.randn(3)
    alone = torch._C._nn._conv_depthwise2d(x.to("rdna"), one.to("rdna"), (3, 3), bias.to("rdna"), (2, 1), (1, 0), (1, 2))
    torch.testing.assert_close(alone.cpu(), F.conv2d(x, one, bias, (2, 1), (1, 0), (1, 2), 3), rtol=1e-5, atol=1e-5)
    same(lambda x, w: torch._C._nn.slow_conv_dilated2d(x, w, (3, 3), None, (1, 2), (1, 1), (2, 1)), x, w, tolerance=1e-5)
    same(lambda x, w: torch._C._nn.slow_conv_transpose2d(x, w, (3, 3), None, (2, 1), (1, 1), (1, 0), (1, 1)), x, w.transpose(0, 1).contiguous(), tolerance=1e-5)


def test_questions():
    x = torch.ones(3, device="rdna")
    assert x.is_set_to(x.view(3)) and not x.is_set_to(x[:2]) and not x.is_set_to(x.clone())
    torch._assert_async(x[0])
    torch._assert_async(x[0] == 1, "words")
    with pytest.raises(RuntimeError, match="these words"):
        torch._assert_async(x[0] == 2, "these words")
    with pytest.raises(RuntimeError, match="single nonzero value"):
        torch._assert_async(x[0] - 1)
    with pytest.raises(RuntimeError, match="more than one value"):
        torch._assert_async(x)


def test_statistics_of_many_processes():
    """Those of two halves of a batch, joined, are those of the batch."""
    x = torch.randn(6, 3, 4)
    halves = [h.transpose(0, 1).flatten(1) for h in x.chunk(2)]
    means = torch.stack([h.mean(1) for h in halves])
    inverse = torch.stack([(h.var(1, unbiased=False) + 1e-5).rsqrt() for h in halves])
    running = [torch.zeros(3, device="rdna"), torch.ones(3, device="rdna")]
    mean, invstd = torch.batch_norm_gather_stats(x.to("rdna"), means.to("rdna"), inverse.to("rdna"), *running, 0.1, 1e-5, 12)
    whole = x.double().transpose(0, 1).flatten(1)
    exact = [whole.mean(1), (whole.var(1, unbiased=False) + 1e-5).rsqrt(), 0.1 * whole.mean(1), 0.9 + 0.1 * whole.var(1)]
    for ours, theirs in zip((mean, invstd, *running), exact):
        torch.testing.assert_close(ours.cpu().double(), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64])
def test_weighted_means_reach_their_ends(dtype):
    """lerp goes from the nearer end: of weight 1 it is the second to the bit."""
    a, b = (torch.tensor(v, dtype=torch.float64).to(dtype) for v in ([1e4, -3e4, 5.0, 0.0], [1.0, 0.125, -5.0, 3.0]))
    for weight in (0.0, 0.25, 0.5, 0.75, 1.0, -2.0, 1.5):
        w = torch.full((4,), weight, dtype=dtype)
        for f in (lambda a, b, w, weight=weight: torch.lerp(a, b, weight), torch.lerp, lambda a, b, w, weight=weight: a.lerp_(b, weight),
                  lambda a, b, w, weight=weight: torch._foreach_lerp([a], [b], weight)[0], lambda a, b, w: torch._foreach_lerp([a], [b], [w])[0]):
            ours = f(a.to("rdna"), b.to("rdna"), w.to("rdna")).cpu()
            if weight in (0.0, 1.0):
                assert torch.equal(ours, (a, b)[int(weight)])
            else:
                exact = torch.lerp(*(t.to(torch.complex128 if dtype.is_complex else torch.float64) for t in (a, b)), weight)
                torch.testing.assert_close(ours, exact.to(dtype))
    if not dtype.is_complex:
        end = torch.tensor([-float("inf")], dtype=dtype)
        assert torch.lerp(end.to("rdna"), torch.zeros(1, dtype=dtype, device="rdna"), 0.7).item() == -float("inf")


def test_places_that_are_read_and_written():
    for device in ("cpu", "rdna"):
        x = torch.arange(6, device=device)
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            x[1:].__ilshift__(x[:-1])
        assert x.tolist() == list(range(6))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_common_divisors_and_multiples(dtype):
    top = 10 if dtype in (torch.int8, torch.uint8) else 170
    a, b = (torch.randint(-top if dtype.is_signed else 0, top, shape).to(dtype) for shape in ((6, 9), (9,)))
    a[0, :3] = 0
    b[0] = 0
    for f in (torch.gcd, torch.lcm):
        same(f, a, b)
        same(lambda a, b, f=f: f(a.t(), b[:6]), a[:, :4], b)
        same(lambda a, b, f=f: f(a, b, out=torch.empty(0, dtype=dtype, device=a.device)), a, b)
    same(lambda a, b: a.clone().gcd_(b), a, b)
    same(torch.gcd, a, b.to(torch.int16))
    if dtype == torch.int64:
        same(torch.gcd, a * 3**30, b * 3**31 * 2)
    for device in ("cpu", "rdna"):
        with pytest.raises(RuntimeError):
            torch.rdna.set_fallback_mode("allow")
            torch.gcd(a.to(device).float(), b.to(device).float())


def test_older_names():
    x = torch.randn(5, 3, 7)
    for f in (torch._aminmax, lambda x: torch._aminmax(x, 1), lambda x: torch._aminmax(x, 2, True)):
        for i in (0, 1):
            same(lambda x, f=f, i=i: f(x)[i], x)
    weights = torch.randn(4, 5)
    same(lambda x, w: torch._compute_linear_combination(x, w), x, weights, tolerance=1e-6)
    same(lambda x, w: torch._compute_linear_combination(x, w, out=torch.full((4, 3, 7), 1.5, device=x.device)), x, weights, tolerance=1e-6)
    mask = torch.rand(5, 3, 7) < 0.5
    assert torch.equal(torch._masked_scale(x.to("rdna"), mask.byte().to("rdna"), 2.5).cpu(), x * mask * 2.5)
    big = torch.full((400, 100), 3.0, device="rdna")
    y, kept = torch._fused_dropout(big, 0.8)
    assert kept.dtype == torch.uint8 and torch.equal(y, big * kept / 0.8)
    assert abs(kept.float().mean().item() - 0.8) < 5 * (0.16 / 40000) ** 0.5
    zero, none = torch._fused_dropout(big, 0.0)
    assert not zero.any() and not none.bool().any()


def test_forms_of_batch_norm():
    x, w, b = torch.randn(6, 3, 4), torch.rand(3), torch.randn(3)
    outs = lambda x, n: [torch.full((0,), 7.0, device=x.device) for _ in range(n)]  # noqa: E731

    def no_stats(x, w, b):
        o = outs(x, 3)
        torch.ops.aten._native_batch_norm_legit.no_stats_out(x, w, b, True, 0.1, 1e-5, out=o[0], save_mean=o[1], save_invstd=o[2])
        return torch.cat([t.flatten() for t in o])

    def with_update(x, w, b):
        mean, var, o = torch.zeros(3, device=x.device), torch.ones(3, device=x.device), outs(x, 3)
        r = torch.ops.aten._batch_norm_with_update.out(x, w, b, mean, var, 0.1, 1e-5, out=o[0], save_mean=o[1], save_invstd=o[2], reserve=torch.empty(0, dtype=torch.uint8, device=x.device))
        return torch.cat([t.flatten() for t in (*r[:3], mean, var)])

    def stats(x, w, b):
        mean, var = torch.zeros(3, device=x.device), torch.ones(3, device=x.device)
        return torch.cat([*torch.ops.aten.batch_norm_update_stats(x, mean, var, 0.25), mean, var])

    for f in (no_stats, with_update, stats):
        same(f, x, w, b, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool])
def test_integers_of_every_width(dtype):
    x = torch.randint(-50 if dtype.is_signed else 0, 2 if dtype == torch.bool else 50, (4, 6)).to(dtype)
    y = torch.randint(0, 2 if dtype == torch.bool else 50, (6,)).to(dtype)
    cases = [lambda x, y: torch.any(x, 1), lambda x, y: torch.all(x), lambda x, y: torch.all(x, (0, 1), keepdim=True), lambda x, y: x[:0].any(0),
             lambda x, y: torch.angle(x), lambda x, y: torch.logit(x, 0.25), lambda x, y: torch.nansum(x, 0), lambda x, y: torch.isposinf(x),
             lambda x, y: torch.isneginf(x.t()), lambda x, y: torch.fmax(x, y), lambda x, y: torch.fmin(x, y), lambda x, y: torch.sum(x, 1, dtype=torch.int16),
             lambda x, y: torch.prod(x, dtype=torch.int8), lambda x, y: torch.prod(x, 1, dtype=torch.int32)]
    if dtype != torch.bool:
        low, high = (-7, 100) if dtype.is_signed else (7, 100)
        cases += [lambda x, y: torch.cumsum(x, 1, dtype=dtype), lambda x, y: torch.cumprod(x, 0, dtype=dtype), lambda x, y: F.threshold(x, 3.7, 5),
                  lambda x, y: F.relu6(x), lambda x, y: torch.linspace(low, high, 9, dtype=dtype, device=x.device),
                  lambda x, y: torch.linspace(high, low, 4, dtype=dtype, device=x.device), lambda x, y: torch.linspace(3, 9, 1, dtype=dtype, device=x.device),
                  lambda x, y: torch.logspace(0, 2, 3, dtype=dtype, device=x.device), lambda x, y: torch.logspace(0, 4, 4, base=3, dtype=dtype, device=x.device)]
    if dtype == torch.int64:
        cases.append(lambda x, y: torch.logspace(0, 18, 19, dtype=dtype, device=x.device))
    if dtype == torch.uint8:
        cases += [lambda x, y: F.interpolate(x[None, None], (7, 9), mode="nearest"), lambda x, y: F.interpolate(x[None, None], (3, 2), mode="nearest-exact")]
    for f in cases:
        same(f, x, y, tolerance=1e-6)
