"""Edges that PyTorch's operator samples do not reach: values outside of a domain, signs of zero, results into tensors of
another type, arguments that no window fits."""

import math
import random
import re

import numpy as np
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


WHOLE_RANGE = ("sinh cosh tanh asinh acosh atanh asin acos atan exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sigmoid erf "
               "sin cos tan square sinc logit frac trunc").split()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", WHOLE_RANGE)
def test_functions_over_their_whole_range(name, dtype):
    """Where a formula changes, and far from where samples are: magnitudes from the smallest to the largest."""
    most = 38 if dtype == torch.float32 else 308
    if name in ("sin", "cos", "tan", "sinc"):
        most = 5  # beyond, the CPU's own digits in f32 end
    x = torch.cat((torch.logspace(-most, most, 999, dtype=torch.float64), torch.linspace(0, 120, 999, dtype=torch.float64))).to(dtype)
    x = torch.cat((-x.flip(0), x, torch.tensor([0.0, 1, -1, INF, -INF, NAN], dtype=dtype)))
    ours, theirs = getattr(torch, name)(x.to("rdna")).cpu(), getattr(torch, name)(x.double()).to(dtype)
    least = torch.finfo(dtype).smallest_normal  # below it, some devices have 0
    torch.testing.assert_close(ours, theirs, rtol=(200 if name == "tan" else 16) * torch.finfo(dtype).eps,
                               atol=torch.finfo(dtype).eps if most == 5 or name == "logit" else 2 * least, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_begin_with_any_share_of_what_is_given(dtype):
    """addmm and its kin: rows, columns and single values that are broadcast, times beta."""
    a, b, v = torch.randn(4, 5, dtype=dtype), torch.randn(5, 3, dtype=dtype), torch.randn(5, dtype=dtype)
    for beta in (0, 0.5, 1, -2):
        for shape in ((3,), (1, 3), (4, 1), (4, 3), (1,), ()):
            same(*both(lambda c, a, b: torch.addmm(c, a, b, beta=beta, alpha=0.3), torch.randn(shape, dtype=dtype), a, b))
            if len(shape) < 2:
                same(*both(lambda c, b, v: torch.addmv(c, b, v, beta=beta, alpha=0.3), torch.randn(shape, dtype=dtype), b.t().contiguous(), v))
            batch = (a.expand(2, 4, 5).contiguous(), b.expand(2, 5, 3).contiguous())
            same(*both(lambda c, a, b: torch.baddbmm(c, a, b, beta=beta, alpha=0.3), torch.randn(shape, dtype=dtype), *batch))
            same(*both(lambda c, a, b: torch.addbmm(c, a, b, beta=beta, alpha=0.3), torch.randn(shape, dtype=dtype), *batch))
        same(*both(lambda c, a, b: torch.addr(c, a, b, beta=beta, alpha=0.3), torch.randn(3, dtype=dtype), v, b[0]))


def test_sizes_of_zero():
    x = torch.arange(6, device="rdna")
    assert x.resize_(0, 3).shape == (0, 3) and x.resize_(2, 3).flatten().tolist() == list(range(6))
    refused(RuntimeError, "negative", lambda: x.resize_(-1))


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


NUMBERS = {torch.uint8: (300, -1, -300, 1e20), torch.int8: (-1, 128, 300), torch.int32: (1 << 40, -(1 << 31) - 1, 1e20), torch.bool: (2,),
           torch.float16: (70000, -1e9, -INF), torch.bfloat16: (1e39, 3.4e38), torch.float32: (1e39, -1e300, 1e-300, NAN),
           torch.float64: (1e39,)}
TAKE_NUMBERS = {
    "fill_": lambda x, v: x.fill_(v),
    "full_like": torch.full_like,
    "masked_fill": lambda x, v: x.masked_fill(x == x[1], v),
    "masked_fill by a tensor": lambda x, v: x.masked_fill(x == x[1], torch.tensor(v, dtype=torch.float64 if x.is_floating_point() else None)),
    "scatter": lambda x, v: x.scatter(0, torch.tensor([0], device=x.device), v),
    "index_fill": lambda x, v: x.index_fill(0, torch.tensor([0], device=x.device), v),
    "where": lambda x, v: torch.where(x == x[1], x, v),
    "pad": lambda x, v: F.pad(x, (1, 0), value=v),
    "fill_diagonal_": lambda x, v: torch.diag_embed(x).fill_diagonal_(v),
    "clamp": lambda x, v: x.clamp(max=v),
    "clamp of both": lambda x, v: x.clamp(0, v),
    "hardtanh": lambda x, v: F.hardtanh(x, -1, v),
    "add": torch.add,
    "alpha": lambda x, v: x.add(x, alpha=v),
    "addcmul": lambda x, v: x.addcmul(x, x, value=v),
    "threshold": lambda x, v: F.threshold(x, 1, v),
    "pow": lambda x, v: x**v if v != -1 else x,
    "lerp": lambda x, v: x.lerp(x, v),
    "maximum": lambda x, v: torch.maximum(x, torch.tensor(v)),
    "remainder": lambda x, v: x % v if v != 1 << 40 else x,  # by 0: the CPU raises, GPUs do not
    **{name: getattr(torch, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "mul", "bitwise_and")}}


@pytest.mark.parametrize("name", TAKE_NUMBERS)
def test_numbers_that_a_type_does_not_hold(name):
    """Refused where the CPU refuses them, and otherwise what is left of them in the type, as on the CPU."""
    def told(x, v):
        try:
            return TAKE_NUMBERS[name](x, v).cpu()
        except (RuntimeError, ValueError) as e:
            return e

    for dtype, numbers in NUMBERS.items():
        for v in numbers:
            x = torch.tensor([1, 2]).to(dtype)
            ours, theirs = told(x.to("rdna"), v), told(x, v)
            if isinstance(theirs, Exception):
                assert isinstance(ours, Exception), (dtype, v, ours, theirs)
                assert "overflow" not in str(theirs) or "without overflow" in str(ours), (dtype, v, ours)
            else:
                assert not isinstance(ours, Exception), (dtype, v, ours, theirs)
                same(ours, theirs)


def test_adding_truths_more_than_once():
    same(*both(lambda x, i, y: x.index_add(0, i, y, alpha=2), torch.tensor([True, False, False]), torch.tensor([0, 0, 1]),
               torch.tensor([True, True, False])))


IN_PLACE = {"add_": 1, "sub_": 1, "mul_": 1, "div_": 1, "lt_": 1, "ge_": 1, "atan2_": 1, "neg_": 0, "exp_": 0, "sqrt_": 0, "tanh_": 0, "sigmoid_": 0}


@pytest.mark.parametrize("name", IN_PLACE)
def test_results_in_place_that_do_not_fit_are_refused(name):
    """With PyTorch's own exceptions, and nothing written: another shape, a type that does not hold them, one place for several values."""
    def refuse(make, *others):
        words = []
        for device in ("cpu", "rdna"):
            t, rest = make(device), [o.to(device) for o in others]
            before = t.clone()
            with pytest.raises(RuntimeError) as refusal:
                getattr(t, name)(*rest)
            words.append(str(refusal.value).split("\n")[0].replace("rdna:0", "cpu"))
            assert torch.equal(t.cpu(), before.cpu())
        assert words[0] == words[1]

    others = [torch.ones(1)] * IN_PLACE[name]
    refuse(lambda device: torch.ones(1, device=device).expand(4), *others)
    if others:
        refuse(lambda device: torch.ones(3, device=device), torch.ones(2, 3))
    if name in ("div_", "exp_", "sqrt_", "tanh_", "sigmoid_", "atan2_"):
        refuse(lambda device: torch.ones(3, dtype=torch.int64, device=device), *[o.long() for o in others])
    if name in ("add_", "mul_"):
        refuse(lambda device: torch.ones(3, dtype=torch.int64, device=device), torch.ones(3))


@pytest.mark.parametrize("name", ["add.Tensor", "add_.Tensor", "mul.Tensor", "div_.Tensor", "lt.Scalar", "exp", "exp_", "neg", "sigmoid_backward", "lerp.Scalar", "addcmul",
                                  "mm", "addmm", "bmm", "sum.dim_IntList", "mean.dim", "any.dim", "amax", "cumsum", "_softmax", "index.Tensor", "gather", "scatter_add"])
def test_forms_of_an_operator_are_ours(name):
    assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, "PrivateUse1")


def test_forms_of_an_operator_give_the_same():
    """New, in place and out=, of several types and layouts, with numbers first and last."""
    for x in (torch.randn(3, 4), torch.randn(4, 3).t(), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(3, 4).bfloat16()):
        here = x.to("rdna")
        for f in (lambda t: t * 2, lambda t: 2 - t, lambda t: t / t.flip(0), lambda t: t.clone().mul_(3), lambda t: t.clone().exp_(), lambda t: t > 0.5,
                  lambda t: torch.add(t, t, alpha=0.5, out=t.new_empty(0)), lambda t: t.sigmoid(), lambda t: torch.maximum(t, t.flip(-1)), lambda t: t.lerp(t.flip(0), 0.25)):
            ours, theirs = f(here), f(x)
            assert ours.dtype == theirs.dtype and ours.stride() == theirs.stride()
            same(ours.cpu(), theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.int32, torch.uint8, torch.bool, torch.complex64], ids=str)
def test_padding_with_a_number(dtype):
    """Any layout; what grows, is cut or both; numbers that fit or do not: values, layout and words are the CPU's."""
    rng = random.Random(str(dtype))
    torch.manual_seed(0)
    for _ in range(40):
        shape = [rng.randint(1, 5) for _ in range(rng.randint(1, 5))]
        x = (torch.randn(shape) * 3).to(dtype)
        if rng.random() < 0.4 and len(shape) > 1:
            x = x.transpose(0, -1)
        if len(shape) == 4 and rng.random() < 0.4:
            x = x.contiguous(memory_format=torch.channels_last)
        sizes = [rng.randint(-1, 3) for _ in range(2 * rng.randint(1, len(shape)))]
        number = rng.choice([0, 1, 0.5, math.inf, 1e30] if dtype.is_floating_point else [0, 1])
        try:
            expected = F.pad(x, sizes, value=number)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=re.escape(str(error))):
                F.pad(x.to("rdna"), sizes, value=number)
            continue
        mine = F.pad(x.to("rdna"), sizes, value=number)
        assert torch.equal(mine.cpu(), expected) and mine.stride() == expected.stride(), (x.shape, x.stride(), sizes, number)


ENDS = [0.0, -0.0, 1.0, -3.0, math.inf, -math.inf, math.nan, 1e-40, 1e38, 3e38, 5e-324, 1e308, -1.7e308, 65504.0, 4e-8]


@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_hypot_near_the_ends_of_the_range(dtype):
    a, b = torch.meshgrid(torch.tensor(ENDS, dtype=torch.float64).to(dtype), torch.tensor(ENDS, dtype=torch.float64).to(dtype), indexing="ij")
    with np.errstate(over="ignore"):
        expected = torch.from_numpy(np.hypot(a.double().numpy().astype(np.longdouble), b.double().numpy().astype(np.longdouble)).astype(np.float64)).to(dtype)
    torch.testing.assert_close(torch.hypot(a.to("rdna"), b.to("rdna")).cpu(), expected, rtol=2 * torch.finfo(dtype).eps, atol=0, equal_nan=True)


@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_nan_to_num_with_every_number(dtype):
    x = torch.tensor(ENDS, dtype=torch.float64).to(dtype)
    for numbers in ({}, {"nan": 3.0}, {"posinf": 1.0}, {"neginf": -2.0}, {"nan": 1.0, "posinf": math.inf, "neginf": math.nan}):
        ours, theirs = torch.nan_to_num(x.to("rdna"), **numbers).cpu(), torch.nan_to_num(x, **numbers)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(ours.signbit(), theirs.signbit())


@pytest.mark.parametrize("shape, dim", [((0, 5), 1), ((0, 5), -1), ((3, 0, 2), 0), ((0, 0), 0), ((4, 0), 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_extremes_of_no_values(shape, dim, dtype):
    """Rows that are not there have no extreme and none is missing; of rows without values PyTorch says that there is none."""
    x = torch.empty(shape, dtype=dtype)
    torch.rdna.reset_fallback_report()
    calls = [lambda t: torch.max(t, dim), lambda t: torch.min(t, dim, keepdim=True)]
    if dtype != torch.bool:
        calls += [lambda t: (torch.argmax(t, dim),), lambda t: (torch.argmin(t, dim, keepdim=True),)]
    for f in calls:
        if x.shape[dim] == 0:
            with pytest.raises(IndexError) as theirs:
                f(x)
            refused(IndexError, re.escape(str(theirs.value)), lambda f=f: f(x.to("rdna")))
            continue
        for mine, want in zip(f(x.to("rdna")), f(x)):
            assert (mine.shape, mine.dtype, mine.stride()) == (want.shape, want.dtype, want.stride()) and mine.is_rdna
    assert x.shape[dim] == 0 or not torch.rdna.fallback_report(), torch.rdna.fallback_report()


def test_renorm_of_what_is_not_above_the_norm():
    """A norm that is a NaN is above none: the row's other values stay, as on the CPU; what PyTorch refuses is refused."""
    x = torch.tensor([[1.0, NAN, -3, 4], [3, 4, 0, 0], [INF, 1, 2, 3], [0, 0, 0, 0]])
    same(*both(lambda t: torch.renorm(t, 2, 0, 1.0), x))
    for rows, most in ((x, -1.0), (x[1], 1.0)):
        for device in ("cpu", "rdna"):
            with pytest.raises(RuntimeError, match="renorm: (expected maxnorm to be >= 0|input needs at least 2 dimensions)"):
                torch.renorm(rows.to(device), 2, 0, most)
