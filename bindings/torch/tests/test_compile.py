"""torch.compile(backend="rdna"): the same values as without it, in fewer operators."""

import copy
import math
import os
import re
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from test_device import IMPORT, emulated, run

torch._dynamo.config.cache_size_limit = 64
TYPES = [torch.float32, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    torch.rdna.reset_compile_report()
    torch.manual_seed(0)


def compiled(f, **options):
    return torch.compile(f, backend="rdna", **options)


def close(mine, expected, dtype):
    torch.testing.assert_close(mine.cpu().float(), expected.float(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def fused():
    return torch.rdna.compile_report()["fused"]


def test_the_backend_has_a_name():
    assert "rdna" in torch._dynamo.list_backends(exclude_tags=None)


# Each operator that chains know, followed by another so that there is a chain. The CPU in f64 says what is right.
OPERATORS = {
    "abs": lambda x, y: x.abs(), "neg": lambda x, y: -x, "square": lambda x, y: x.square(), "ceil": lambda x, y: x.ceil(),
    "floor": lambda x, y: x.floor(), "round": lambda x, y: x.round(), "trunc": lambda x, y: x.trunc(),
    "sqrt": lambda x, y: y.sqrt(), "rsqrt": lambda x, y: y.rsqrt(), "reciprocal": lambda x, y: y.reciprocal(),
    "relu": lambda x, y: x.relu(), "hardswish": lambda x, y: F.hardswish(x * 3), "hardsigmoid": lambda x, y: F.hardsigmoid(x * 3),
    "exp": lambda x, y: x.exp(), "log": lambda x, y: y.log(), "tanh": lambda x, y: x.tanh(), "sigmoid": lambda x, y: x.sigmoid(),
    "silu": lambda x, y: F.silu(x), "gelu": lambda x, y: F.gelu(x), "gelu tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "sign": lambda x, y: x.sign(), "sgn": lambda x, y: x.sgn(),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.2), "elu": lambda x, y: F.elu(x, 0.7), "selu": lambda x, y: F.selu(x),
    "softplus": lambda x, y: F.softplus(x, 2, 1), "hardtanh": lambda x, y: F.hardtanh(x, -0.5, 0.75),
    "clamp": lambda x, y: x.clamp(-0.5, 0.25), "clamp_min": lambda x, y: x.clamp(min=0.1), "clamp_max": lambda x, y: x.clamp(max=0.1),
    "add": lambda x, y: x + y, "add scaled": lambda x, y: torch.add(x, y, alpha=0.5), "add number": lambda x, y: x + 3,
    "sub": lambda x, y: x - y, "sub scaled": lambda x, y: torch.sub(x, y, alpha=-2), "sub number": lambda x, y: x - 0.5,
    "rsub": lambda x, y: 2 - x, "rsub tensor": lambda x, y: torch.rsub(x, y, alpha=3), "mul": lambda x, y: x * y,
    "mul self": lambda x, y: x * x, "mul number": lambda x, y: x * 0.3, "div": lambda x, y: x / y,
    "div number": lambda x, y: x / 3, "number div": lambda x, y: 3 / y, "pow 2": lambda x, y: x**2, "pow 3": lambda x, y: x**3,
    "pow -1": lambda x, y: y**-1, "pow .5": lambda x, y: y**0.5, "pow -.5": lambda x, y: y**-0.5,
    "maximum": lambda x, y: torch.maximum(x, y), "minimum": lambda x, y: torch.minimum(y, x),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3), "addcmul": lambda x, y: torch.addcmul(x, y, x, value=0.5),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=2),
    "threshold_backward": lambda x, y: torch.ops.aten.threshold_backward(y, x, 0),
    "leaky_relu_backward": lambda x, y: torch.ops.aten.leaky_relu_backward(y, x, 0.2, False),
    "sigmoid_backward": lambda x, y: torch.ops.aten.sigmoid_backward(x, y),
    "tanh_backward": lambda x, y: torch.ops.aten.tanh_backward(x, y),
    "hardswish_backward": lambda x, y: torch.ops.aten.hardswish_backward(y, x * 3),
    "hardsigmoid_backward": lambda x, y: torch.ops.aten.hardsigmoid_backward(y, x * 3),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_each_operator_in_a_chain(name):
    f = lambda pairs: [(OPERATORS[name](x, y) + 0.25) * y for x, y in pairs]  # noqa: E731
    pairs = [(torch.randn(7, 33).to(dtype), (torch.rand(33) + 0.5).to(dtype)) for dtype in TYPES]
    mine = compiled(f)([(x.to("rdna"), y.to("rdna")) for x, y in pairs])
    for out, expected, dtype in zip(mine, f([(x.double(), y.double()) for x, y in pairs]), TYPES):
        close(out, expected, dtype)
    assert torch.rdna.compile_report()["operators_after"] == 3


def test_the_other_operand_first():
    """The chain runs through the second operand."""
    f = lambda x, y: (y - x.exp().neg(), y / (x.square() + 1), torch.add(y, x.relu() * 2, alpha=3),  # noqa: E731
                      torch.lerp(y, x.abs() + 1, 0.2), torch.addcdiv(y, y, x.square() + 1, value=2))
    x, y = torch.randn(5, 17), torch.randn(5, 17)
    for mine, expected in zip(compiled(f)(x.to("rdna"), y.to("rdna")), f(x.double(), y.double())):
        close(mine, expected, torch.float32)
    assert torch.rdna.compile_report()["operators_after"] == 5


def test_long_chains_are_cut_and_shared_values_are_kept():
    def f(x, y):
        for i in range(41):
            x = x + y if i % 2 else x * 0.9
        shared = x.tanh()
        return (shared * 2).exp(), shared

    x, y = torch.randn(4, 100), torch.randn(100)
    for mine, expected in zip(compiled(f)(x.to("rdna"), y.to("rdna")), f(x.double(), y.double())):
        close(mine, expected, torch.float32)
    report = torch.rdna.compile_report()
    assert report["operators_before"] == 44 and report["operators_after"] == 4, report


@pytest.mark.parametrize("twice", [
    lambda e, y: e + e, lambda e, y: e / e, lambda e, y: torch.maximum(e, e),
    lambda e, y: torch.sub(e, e, alpha=0.5), lambda e, y: torch.where(y > 0, e, e), lambda e, y: torch.addcmul(y, e, e),
    lambda e, y: torch.lerp(e, y, e)])
def test_a_value_that_is_used_twice_is_no_link(twice):
    f = lambda x, y: twice(x.exp(), y).tanh()  # noqa: E731
    x, y = torch.randn(4, 100), torch.randn(4, 100)
    close(compiled(f)(x.to("rdna"), y.to("rdna")), f(x.double(), y.double()), torch.float32)

@pytest.mark.parametrize("view", [
    lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[:, :1].expand(6, 8), lambda x: x.reshape(2, 3, 8).transpose(0, 1),
    lambda x: x.reshape(1, 3, 4, 4).contiguous(memory_format=torch.channels_last), lambda x: x[:0], lambda x: x[1, 2],
    lambda x: x.reshape(2, 3, 2, 4).permute(3, 1, 0, 2), lambda x: x.reshape(2, 3, 2, 2, 2).permute(4, 0, 2, 3, 1)])
def test_layouts_are_what_they_are_without_it(view):
    f = lambda x: (x * 2 + 1).relu()  # noqa: E731
    x = view(torch.randn(6, 8).to("rdna"))
    mine, expected = compiled(f)(x), f(x)
    assert mine.shape == expected.shape and torch.allclose(mine.cpu(), expected.cpu())
    if x.numel() and view(torch.empty(6, 8)).is_contiguous() is False and 0 not in x.stride():
        assert [s for s, n in zip(mine.stride(), mine.shape) if n > 1] == [s for s, n in zip(expected.stride(), x.shape) if n > 1]
    assert fused() == {"mul + add + relu": 1}


def test_more_dimensions_than_a_chain_counts():
    x = torch.randn(2, 3, 2, 3, 2, 3).permute(5, 3, 1, 0, 2, 4)
    y = torch.randn(3, 1, 2, 1, 2)
    f = lambda x, y: ((x * y - 1).exp() + y).sigmoid()  # noqa: E731
    close(compiled(f)(x.to("rdna"), y.to("rdna")), f(x.double(), y.double()), torch.float32)
    assert torch.rdna.compile_report()["operators_after"] == 1


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("activation", [None, F.relu, torch.sigmoid, torch.tanh, F.silu, F.gelu,
                                        lambda x: F.gelu(x, approximate="tanh")])
@pytest.mark.parametrize("residual", [False, True])
def test_products_with_what_follows(activation, residual, dtype):
    weight, bias = torch.randn(24, 40).to(dtype) / 6, torch.randn(24).to(dtype)
    x, rest = torch.randn(2, 5, 40).to(dtype), torch.randn(2, 5, 24).to(dtype)

    def f(x, weight, bias, rest):
        y = F.linear(x, weight, bias)
        y = activation(y) if activation else y
        return y + rest if residual else y

    with torch.no_grad():
        mine = compiled(f)(*(t.to("rdna") for t in (x, weight, bias, rest)))
    close(mine, f(x.double(), weight.double(), bias.double(), rest.double()), dtype)
    assert torch.rdna.compile_report()["operators_after"] == 1


def test_products_without_a_bias_get_one():
    f = lambda x, w, b: (x @ w + b).relu()  # noqa: E731
    x, w, b = torch.randn(9, 20), torch.randn(20, 12), torch.randn(12)
    close(compiled(f)(x.to("rdna"), w.to("rdna"), b.to("rdna")), f(x.double(), w.double(), b.double()), torch.float32)
    assert fused() == {"mm + add + relu": 1}


@pytest.mark.parametrize("activation", [F.relu, torch.sigmoid, torch.tanh, F.silu, F.gelu])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_with_what_follows(dims, activation):
    conv = [F.conv1d, F.conv2d, F.conv3d][dims - 1]
    x, w, b = torch.randn(2, 4, *[9] * dims), torch.randn(6, 2, *[3] * dims) / 3, torch.randn(6)
    f = lambda x, w, b: activation(conv(x, w, b, stride=2, padding=1, groups=2))  # noqa: E731
    close(compiled(f)(x.to("rdna"), w.to("rdna"), b.to("rdna")), f(x.double(), w.double(), b.double()), torch.float32)
    assert torch.rdna.compile_report()["operators_after"] == 1


def test_layouts_of_convolutions_are_known_when_graphs_are_made():
    from torch._subclasses.fake_tensor import FakeTensorMode

    def strides(x, w, **how):
        y = F.conv2d(x, w, **how)
        gradients = torch.ops.aten.convolution_backward(y, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], how.get("groups", 1), [True, True, False])
        return [t.stride() for t in (y, *gradients[:2])]

    forms = (torch.contiguous_format, torch.channels_last)
    for of_x, of_w, groups in ((a, b, g) for a in forms for b in forms for g in (1, 2)):
        x = torch.randn(2, 4, 5, 6, device="rdna").to(memory_format=of_x)
        w = torch.randn(8, 4 // groups, 3, 3, device="rdna").to(memory_format=of_w)
        fake = FakeTensorMode()
        with fake:
            thought = strides(fake.from_tensor(x), fake.from_tensor(w), padding=1, groups=groups)
        assert thought == strides(x, w, padding=1, groups=groups), (of_x, of_w, groups)
        x, w = x.cpu(), w.cpu()
        on_cpu, fake = strides(x, w, padding=1, groups=groups), FakeTensorMode()
        x, w = fake.from_tensor(x), fake.from_tensor(w)
        with fake:  # another device's account stays its own
            assert strides(x, w, padding=1, groups=groups) == on_cpu


def test_a_window_of_one_place_is_the_vendors_where_its_products_are(monkeypatch):
    import torch_rdna
    conv = nn.Conv2d(8, 16, 1).to("rdna").eval()
    x = torch.randn(2, 8, 5, 6, device="rdna")
    for has, more_than, fused in ((True, 1, 0), (True, 2**30, 1), (False, 1, 1)):
        torch._dynamo.reset()
        torch.rdna.reset_compile_report()
        monkeypatch.setattr(torch_rdna._compile, "vendors_is_faster", lambda m, k, n, device: has and m * k * n >= more_than)
        with torch.no_grad():
            close(compiled(lambda x: F.relu(conv(x)))(x), F.relu(copy.deepcopy(conv).cpu().double()(x.cpu().double())), torch.float32)
        assert torch.rdna.compile_report()["fused"] == ({"convolution + relu": 1} if fused else {})
    sizes = []
    monkeypatch.setattr(torch_rdna._compile, "vendors_is_faster", lambda m, k, n, device: sizes.append((m, k, n)) or True)
    weight = torch.empty(16, 8, 1, 1, device="rdna")
    fits = torch_rdna._compile.vendors_window_is_faster
    assert fits(x, weight, [1, 1], [0, 0], 1) and sizes == [(60, 8, 16)]
    assert not fits(x, weight, [2, 2], [0, 0], 1) and not fits(x, weight, [1, 1], [1, 0], 1)
    assert not fits(x, torch.empty(16, 4, 1, 1, device="rdna"), [1, 1], [0, 0], 2) and not fits(x, torch.empty(16, 8, 3, 1, device="rdna"), [1, 1], [0, 0], 1)


@pytest.mark.parametrize("dtype", TYPES)
def test_batch_norm_of_inference(dtype):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(8).to(dtype)
            self.norm.running_mean.normal_()
            self.norm.running_var.uniform_(0.5, 2)
            nn.init.normal_(self.norm.weight)

        def forward(self, x, rest):
            return F.relu(self.norm(x)), F.relu(self.norm(x) + rest), rest + self.norm(x)

    block, x, rest = Block().eval(), torch.randn(3, 8, 5, 6).to(dtype), torch.randn(3, 8, 5, 6).to(dtype)
    for form in (torch.contiguous_format, torch.channels_last):
        torch._dynamo.reset()
        with torch.no_grad():
            expected = copy.deepcopy(block).double()(x.double(), rest.double())
            mine = compiled(copy.deepcopy(block).to("rdna"))(x.to("rdna").contiguous(memory_format=form), rest.to("rdna").contiguous(memory_format=form))
        for a, b in zip(mine, expected):
            close(a, b, dtype)
    assert torch.rdna.compile_report()["operators_after"] == 6


@pytest.mark.parametrize("dtype", TYPES)
def test_rms_norm_that_is_written_out(dtype):
    def wide(x, w):
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return w * h.to(x.dtype)

    def plain(x, w):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w

    x, w = torch.randn(3, 5, 64).to(dtype) * 3, torch.randn(64).to(dtype)
    with torch.no_grad():
        for f in (wide, plain):
            close(compiled(f)(x.to("rdna"), w.to("rdna")), plain(x.double(), w.double()), dtype)
    assert torch.rdna.compile_report()["operators_after"] == 2
    # gradients need what lies between: chains alone
    x, w = x.float().to("rdna").requires_grad_(), w.float().to("rdna").requires_grad_()
    mine = torch.autograd.grad(compiled(plain)(x, w).square().sum(), (x, w))
    for a, b in zip(mine, torch.autograd.grad(plain(x, w).square().sum(), (x, w))):
        torch.testing.assert_close(a.cpu(), b.cpu(), rtol=1e-4, atol=1e-3)


class Small(nn.Module):
    """A convolutional network with batch norm and a residual."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 7)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)) + x)
        return self.head(x.mean((2, 3)))


class Layer(nn.Module):
    """A transformer's layer."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (t.view(b, n, 4, 8).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, 32))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


MODELS = {"cnn": (Small, (4, 3, 8, 8)), "transformer": (Layer, (3, 6, 32)),
          "encoder": (lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True, norm_first=True), (3, 6, 32))}


@pytest.mark.parametrize("name", MODELS)
def test_training_follows_eager(name):
    make, shape = MODELS[name]
    model = make().to("rdna")
    ours = copy.deepcopy(model)
    step = compiled(ours)
    a, b = (torch.optim.SGD(m.parameters(), 0.05, momentum=0.9) for m in (model, ours))
    torch.rdna.reset_fallback_report()
    for i in range(3):
        x = torch.randn(shape, device="rdna")
        losses = []
        for m, optimizer in ((model, a), (step, b)):
            optimizer.zero_grad()
            loss = m(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    for (key, p), q in zip(model.state_dict().items(), ours.state_dict().values()):
        torch.testing.assert_close(q.cpu(), p.cpu(), rtol=1e-3, atol=1e-4, msg=key)
    assert torch.rdna.fallback_report() == {}
    report = torch.rdna.compile_report()
    assert report["graphs"] == 2 and report["operators_after"] < report["operators_before"], report


@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_inference_in_mixed_precision(name):
    make, shape = MODELS[name]
    model, x = make().to("rdna").eval(), torch.randn(shape, device="rdna")
    with torch.no_grad(), torch.autocast("rdna", dtype=torch.bfloat16):
        expected, mine = model(x), compiled(model)(x)
    assert mine.dtype == expected.dtype
    torch.testing.assert_close(mine.float().cpu(), expected.float().cpu(), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_running_statistics_are_updated_where_they_are(dtype):
    model = Small().to("rdna", dtype)
    ours = copy.deepcopy(model)
    f = compiled(ours)
    x = [torch.randn(4, 3, 8, 8, device="rdna", dtype=dtype) for _ in range(4)]
    for m in (model, f):
        (m(x[0]) + m(x[1])).float().square().sum().backward()  # two passes forward, then both back
        with torch.no_grad():
            m(x[2])
        m(x[3]).float().sum().backward()
    for (name, a), b in zip(model.state_dict().items(), ours.state_dict().values()):
        torch.testing.assert_close(b.cpu(), a.cpu(), msg=name)
    for (name, a), b in zip(model.named_parameters(), ours.parameters()):
        scale = a.grad.abs().max().item()
        torch.testing.assert_close(b.grad.cpu() / scale, a.grad.cpu() / scale, rtol=0, atol=TOLERANCE[dtype] * 2, msg=name)
    report = torch.rdna.compile_report()
    assert report["operators_after"] < report["operators_before"]


def test_one_norm_for_two_inputs():
    """Its running statistics are read and written twice."""
    norm = nn.BatchNorm1d(6).to("rdna")
    ours = copy.deepcopy(norm)
    x, y = torch.randn(5, 6, device="rdna"), torch.randn(5, 6, device="rdna")
    f = lambda norm: lambda x, y: (norm(x) + norm(y), norm.running_mean * 1)  # noqa: E731
    for a, b in zip(compiled(f(ours))(x, y), f(norm)(x, y)):
        torch.testing.assert_close(a.cpu(), b.cpu())
    for a, b in zip(ours.state_dict().values(), norm.state_dict().values()):
        torch.testing.assert_close(a.cpu(), b.cpu())


def test_statistics_that_are_read_before_and_after_they_are_written():
    norm = nn.BatchNorm1d(6).to("rdna")
    ours = copy.deepcopy(norm)
    x = torch.randn(5, 6, device="rdna")

    def f(norm):
        def g(x):
            before = norm.running_mean * 2
            y = norm(x)
            return y, (before + y.detach()[0] * 0).exp(), norm.running_mean * 3 + 1
        return g

    for a, b in zip(compiled(f(ours))(x), f(norm)(x)):
        torch.testing.assert_close(a.cpu(), b.cpu())
    for a, b in zip(ours.state_dict().values(), norm.state_dict().values()):
        torch.testing.assert_close(a.cpu(), b.cpu())


def test_a_layer_of_inference_in_few_operators():
    model, x = Layer().to("rdna"), torch.randn(2, 6, 32, device="rdna")
    with torch.no_grad():
        mine, expected = compiled(model)(x), model(x)
    torch.testing.assert_close(mine.cpu(), expected.cpu(), rtol=1e-5, atol=1e-5)
    # norm, product, attention, product + residual, norm, product + gelu, product + residual
    report = torch.rdna.compile_report()
    assert (report["operators_before"], report["operators_after"]) == (10, 7), report
    fused_names = {name.replace("_unsafe_view", "view"): n for name, n in report["fused"].items()}  # as later releases say
    assert fused_names == {"addmm + view + add": 2, "addmm + view + gelu": 1}


def test_shapes_that_change():
    model = Layer().to("rdna")
    f = compiled(model, dynamic=True)
    for b, n in ((2, 6), (3, 9), (5, 4), (2, 17)):
        x = torch.randn(b, n, 32, device="rdna", requires_grad=True)
        mine, = torch.autograd.grad(f(x).square().sum(), x)
        expected, = torch.autograd.grad(model(x).square().sum(), x)
        torch.testing.assert_close(mine.cpu(), expected.cpu(), rtol=1e-4, atol=1e-4)
    if torch.__version__ >= (2, 7):
        assert torch.rdna.compile_report()["graphs"] <= 4  # a forward and a backward for all; torch 2.6 begins anew once
    torch._dynamo.reset()
    torch.rdna.reset_compile_report()
    f = compiled(lambda x: (x * 2 + 1).relu())  # static first, then symbolic
    for n in (3, 5, 8, 13):
        x = torch.randn(n, 4, device="rdna")
        assert torch.equal(f(x).cpu(), (x * 2 + 1).relu().cpu())
    assert torch.rdna.compile_report()["graphs"] == 2


@pytest.mark.skipif(torch.__version__ < (2, 7), reason="Dynamo of 2.6 fails at graph_break() in a resumed function")
def test_graphs_that_break():
    def f(x):
        y = (x * 2 + 1).relu()
        torch.rdna.synchronize()
        if y.sum().item() > 0:
            y = (y - 1).exp() * x
        torch.rdna.synchronize()
        return (y + x).tanh()

    for x in (torch.randn(5, 6), -torch.rand(5, 6) - 3):
        close(compiled(f)(x.to("rdna")), f(x.double()), torch.float32)
    assert {"mul + add + relu", "sub + exp + mul", "add + tanh"} <= set(fused())


def test_what_is_written_in_place():
    def f(x, state):
        state.mul_(0.5).add_(x)
        y = state.exp() + 1
        x.add_(y)
        return y * 2

    x, state = torch.randn(3, 4), torch.randn(3, 4)
    mine = [x.to("rdna"), state.to("rdna")]
    out = compiled(f)(*mine)
    expected = f(x, state)
    for a, b in zip((out, *mine), (expected, x, state)):
        close(a, b, torch.float32)


def test_views_of_inputs_and_random_numbers():
    f = lambda x: (x.t(), F.dropout(x, 0.5), (x.view(-1) * 2 + 1).view(4, 3))  # noqa: E731
    x = torch.ones(3, 4, device="rdna")
    t, dropped, y = compiled(f)(x)
    assert t.data_ptr() == x.data_ptr() and set(dropped.cpu().flatten().tolist()) <= {0.0, 2.0}
    assert torch.equal(y.cpu(), torch.full((4, 3), 3.0))


def test_what_the_backend_cannot_do_stays_right():
    """Integers, f64, complex numbers and the CPU run as they would without it."""
    f = lambda x, n: ((x * 2 + 1).abs(), (n * 3 - 1).abs(), x.cpu() * 2 + 1)  # noqa: E731
    x, n = torch.randn(4, dtype=torch.float64), torch.arange(4)
    for mine, expected in zip(compiled(f)(x.to("rdna"), n.to("rdna")), f(x, n)):
        assert torch.equal(mine.cpu(), expected)
    assert fused() == {}


def test_modes_that_search_change_nothing_and_say_so_once():
    x = torch.ones(3, device="rdna")
    f = lambda x: x * 2 + 1  # noqa: E731
    for mode, said in (("default", 0), ("max-autotune", 1), ("max-autotune", 0), ("max-autotune-no-cudagraphs", 1), ("reduce-overhead", 0)):
        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert compiled(f, mode=mode)(x).tolist() == [3, 3, 3]
        assert sum("has no search" in str(w.message) and mode in str(w.message) for w in seen) == said
    assert fused()


@pytest.mark.parametrize("options, sentence", [
    ({"options": {"max_autotune": True}}, "has no options, got options={'max_autotune': True}"),
    ({"mode": "fastest"}, "mode='fastest' is none of default, reduce-overhead"),
])
def test_options_and_modes_that_there_are_not(options, sentence):
    with pytest.raises(Exception, match=re.escape(sentence)):
        compiled(lambda x: x * 2 + 1, **options)(torch.ones(3, device="rdna"))


@pytest.mark.parametrize("f, device", [
    (nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)).to("rdna"), "rdna"), (lambda x: x + torch.ones(3, device="rdna"), "rdna"),
    (lambda x: torch.ones(3, device="rdna") * 2, "cpu"), (lambda x: x.to("rdna") @ x.to("rdna"), "cpu"),
], ids=["a model", "a function", "made inside", "moved inside"])
def test_the_default_backend_is_ours(f, device, monkeypatch):
    import torch_rdna._compile

    seen, ours = [], torch_rdna._compile.backend
    monkeypatch.setattr(torch_rdna._compile, "backend", lambda gm, inputs, **more: seen.append(gm) or ours(gm, inputs, **more))
    torch._dynamo.reset()
    x = torch.ones(3, device=device)
    torch.testing.assert_close(torch.compile(f)(x), f(x))
    assert len(seen) == 1


def test_options_of_the_default_backend_change_nothing_and_say_so_once():
    import torch_rdna._compile

    torch_rdna._compile._options_mean_nothing.cache_clear()
    x = torch.ones(3, device="rdna")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for options in ({}, {"mode": "reduce-overhead"}, {"options": {"max_autotune": True}}):
            torch._dynamo.reset()
            assert torch.compile(lambda x: x * 2 + 1, **options)(x).tolist() == [3, 3, 3]
    assert sum("options of Inductor change nothing" in str(w.message) for w in seen) == 1


def test_the_environment_asks_for_a_log(capfd, monkeypatch):
    import torch_rdna._compile

    monkeypatch.setattr(torch_rdna._compile.log, "handlers", [])
    monkeypatch.setattr(torch_rdna._compile.log, "level", torch_rdna._compile.log.level)
    for value, lines in (("0", 0), ("1", 1)):
        monkeypatch.setenv("RDNA_COMPILE_LOG", value)
        torch._dynamo.reset()
        compiled(lambda x: x * 2 + 1)(torch.ones(3, device="rdna"))
        assert capfd.readouterr().err.count("inference: 2 operators became 1") == lines


def test_the_default_backend_still_gets_what_is_the_cpus(monkeypatch):
    from torch._inductor import compile_fx

    seen = []
    monkeypatch.setattr(compile_fx, "compile_fx", lambda model, inputs, **more: seen.append(more) or model.forward)
    torch._dynamo.reset()
    assert torch.compile(lambda x: x * 2 + 1)(torch.ones(3)).tolist() == [3, 3, 3] and len(seen) == 1


def test_operations_have_the_librarys_numbers():
    """Each single step computes what its name says, whatever its number is."""
    from torch_rdna._compile import MAP, ZIP
    x, y = torch.tensor([-2.5, -0.3, 0.0, 0.7, 3.0]), torch.tensor([0.5, -1.5, 2.0, 0.25, 1.0])
    positive = x.abs() + 0.5
    maps = {"abs": x.abs(), "neg": -x, "sign": x.sign(), "square": x * x, "ceil": x.ceil(), "floor": x.floor(),
            "round": x.round(), "trunc": x.trunc(), "relu": x.relu(), "hardswish": F.hardswish(x),
            "hardsigmoid": F.hardsigmoid(x), "exp": x.exp(), "tanh": x.tanh(), "sigmoid": x.sigmoid(), "silu": F.silu(x),
            "gelu_tanh": F.gelu(x, approximate="tanh"), "gelu_erf": F.gelu(x)}
    positives = {"sqrt": positive.sqrt(), "rsqrt": positive.rsqrt(), "reciprocal": 1 / positive, "log": positive.log()}
    parameters = {"affine": x * 0.5 + 0.75, "clamp": x.clamp(0.5, 0.75), "leaky_relu": F.leaky_relu(x, 0.5),
                  "elu": torch.where(x > 0, 0.75 * x, 0.5 * torch.expm1(x)), "softplus": F.softplus(x, 0.5, 0.75)}
    zips = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "add_scaled": x + 0.5 * y, "maximum": x.maximum(y),
            "minimum": x.minimum(y), "squared_diff": (x - y) ** 2, "lerp": x.lerp(y, 0.5), "relu_grad": x * (y > 0),
            "sigmoid_grad": x * y * (1 - y), "tanh_grad": x * (1 - y * y), "reciprocal_grad": -x * y * y,
            "rsqrt_grad": -0.5 * x * y**3, "sqrt_grad": x / (2 * y)}
    for operations, number, inputs in ((maps, MAP, (x,)), (positives, MAP, (positive,)), (parameters, MAP, (x,)),
                                       (zips, ZIP, (x, y))):
        for name, expected in operations.items():
            step = [number[name], int(len(inputs) == 2), len(inputs) - 1, 0]
            mine = torch.ops.rdna.fused([t.to("rdna") for t in inputs], step, [0.5, 0.75], [])
            torch.testing.assert_close(mine.cpu(), expected, rtol=1e-5, atol=1e-6, msg=lambda m, name=name: f"{name}: {m}")


def test_fused_operators_refuse_what_is_wrong():
    x = torch.ones(3, device="rdna")
    for arguments, words in ((([x], [0, 0, 0], [0.0, 0.0], []), "4 integers"), (([x], [99, 0, 0, 0], [0.0, 0.0], []), "number 99"),
                             (([x], [0, 1, 3, 0], [0.0, 0.0], []), "input 3"), (([], [0, 0, 0, 0], [0.0, 0.0], []), "no tensor"),
                             (([x, torch.ones(4, device="rdna")], [0, 1, 1, 0], [0.0, 0.0], []), "match|broadcast|size"),
                             (([x], [0, 0, 0, 0], [0.0, 0.0], [0, 0]), "order"),
                             (([x], [0, 0, 0, 0] * 17, [0.0, 0.0] * 17, []), "17 steps")):
        with pytest.raises((RuntimeError, NotImplementedError), match=words):
            torch.ops.rdna.fused(*arguments)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.ops.rdna.addmm(None, torch.ones(2, 3, device="rdna"), torch.ones(2, 3, device="rdna"), 0, None)
    with pytest.raises(RuntimeError, match="activation"):
        torch.ops.rdna.addmm(None, torch.ones(2, 3, device="rdna"), torch.ones(3, 3, device="rdna"), 99, None)
    with pytest.raises(RuntimeError, match="rdna::convolution takes"):
        torch.ops.rdna.convolution(torch.ones(1, 1, 3, device="rdna"), torch.ones(1, 1, 3, device="rdna"), None, [1], [0], [1],
                                   True, [0], 1, 1)


def test_shapes_of_rdnas_operators():
    """A graph traced through them has the shapes and strides that they give."""
    x = torch.randn(2, 3, 4, 4, device="rdna")
    assert math.isclose(torch.ops.rdna.fused([x], [0, 0, 0, 0], [0.0, 0.0], []).sum().item(), x.abs().sum().item(), rel_tol=1e-5)
    for call in (lambda x: torch.ops.rdna.fused([x, x[:, :1]], [0, 1, 1, 0], [0.0, 0.0], [0, 2, 3, 1]),
                 lambda x: torch.ops.rdna.addmm(None, x[0, 0], x[0, 1], 1, x[0, 2]),
                 lambda x: torch.ops.rdna.convolution(x, x[:, :, :2, :2].contiguous(), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, 1),
                 lambda x: torch.ops.rdna.rms_norm(x, None, 1e-5),
                 lambda x: torch.ops.rdna.batch_norm(x, None, None, x[0, :, 0, 0], x[0, :, 0, 1].abs(), 1e-5, x, True)):
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fake = call(mode.from_tensor(x))
        real = call(x)
        assert real.shape == fake.shape and real.stride() == fake.stride()


@pytest.mark.parametrize("f", [
    lambda x: (x + 1, x + 1), lambda x: ((x + 1).view(3, 4), (x + 1).view(4, 3)), lambda x: (x * 2, (x * 2).view(-1).clone().view(4, 3)),
    lambda x: (x.view(-1).clone().view(4, 3), x + 1)], ids=["twice", "views", "a copy of a result", "a copy of an input"])
def test_results_are_each_their_own(f):
    x = torch.ones(3, 4, device="rdna")
    with torch.no_grad():
        a, b = compiled(f)(x)
        before = b.clone()
        a.zero_()
        assert torch.equal(b, before)
        a, before = compiled(f)(x)[0], f(x)[0]
        x.add_(1)
        assert torch.equal(a, before)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("draw", [
    lambda x: F.dropout(x), torch.rand_like, torch.randn_like, lambda x: torch.empty_like(x).exponential_(),
    lambda x: torch.zeros_like(x).uniform_(), lambda x: F.rrelu(-x.abs(), training=True), lambda x: F.gumbel_softmax(x),
    lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5)])
def test_what_is_drawn_twice_is_two(draw, grad):
    x = torch.randn(64, 32, device="rdna", requires_grad=grad)
    with torch.set_grad_enabled(grad):
        a, b = compiled(lambda x: (draw(x) * 2, draw(x) * 2))(x)
    assert not torch.equal(a, b)


@pytest.mark.parametrize("f", [lambda x: x.t() + 1, lambda x: x.transpose(0, -1).exp()])
def test_transposed_scalars(f):
    x = torch.tensor(0.5)
    torch.testing.assert_close(compiled(f)(x.to("rdna")).cpu(), f(x))


@pytest.mark.parametrize("f", [lambda x: x.view(-1).chunk(2)[0].clone().chunk(2)[0], lambda x: x.unfold(0, 2, 2).clone().diagonal(dim1=1, dim2=2),
                               lambda x: x.split(2)[0].clone(), lambda x: x.unbind(1)[0].clone().view(2, -1)])
def test_copies_of_parts_are_no_views(f):
    x = torch.randn(4, 4, device="rdna")
    with torch.no_grad():
        mine, expected = compiled(f)(x), f(x)
        x.add_(1)
        assert torch.equal(mine, expected)


def test_statistics_that_were_copied_before_they_are_written():
    norm, x = nn.BatchNorm1d(4).to("rdna"), torch.randn(8, 4, device="rdna")
    def f(x):  # noqa: E306
        old = norm.running_mean.split(2)[0].clone()
        return norm(x), old * 2
    with torch.no_grad():
        assert compiled(f)(x)[1].tolist() == [0, 0]


OWN_KERNELS = IMPORT + """
torch.manual_seed(0)
f = lambda x, y: (torch.tanh(x * 1.5 + y).relu() - x) * 0.25
for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
    x, y = torch.randn(33, 24).to(dtype), torch.randn(24).to(dtype)
    mine = torch.compile(f, backend="rdna")(x.to("rdna"), y.to("rdna"))
    torch.testing.assert_close(mine.cpu().double(), f(x.double(), y.double()), rtol=tolerance, atol=tolerance)
    print(torch.rdna.last_choice("fused"))
"""


def test_chains_with_kernels_of_their_own():
    done = run(OWN_KERNELS, PYTHONPATH=os.environ.get("PYTHONPATH", ""),
               **emulated(RDNA_EMULATE_CHECK="1", RDNA_FUSED_COMPILE="always", RDNA_COMPILE_CACHE="off"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["('compiled', 'compiled at run time')"] * 2
