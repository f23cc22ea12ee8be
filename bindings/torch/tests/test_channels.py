"""Compiled graphs of images: channels last, batch norms that become their convolutions' weights or a chain's steps, pools that
keep no places. Results lie as they do without torch.compile and are as near to float64."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import torch_rdna._channels as channels
import torch_rdna._compile as compile_

pytestmark = pytest.mark.usefixtures("nothing_falls_back")
TYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    """Networks of this size are not worth a launch: as if there were none."""
    torch._dynamo.reset()
    torch.rdna.reset_compile_report()
    for module in (channels, compile_):
        monkeypatch.setattr(module, "LAUNCH", 0)
    monkeypatch.setattr(channels, "LEAST_PRODUCTS", 0)


@pytest.fixture
def graphs(monkeypatch):
    """(copies before, copies after) of each graph that was looked at."""
    seen, plain = [], compile_.channels_last

    def watched(graph):
        new = plain(graph)
        seen.append((channels._copies(graph), channels._copies(new)))
        return new

    monkeypatch.setattr(compile_, "channels_last", watched)
    return seen


def apart(mine, right):
    mine, right = mine.detach().cpu().double(), right.detach().cpu().double()
    return ((mine - right).norm() / right.norm().clamp(min=1e-12)).item()


def compared(net, x, dtype, classes=()):
    """The compiled results of |net| in evaluation: they lie as the eager ones do, and are at most twice as far from float64."""
    right = copy.deepcopy(net).double()(x.double())
    ours = copy.deepcopy(net).to("rdna", dtype)
    with torch.no_grad():
        eager = ours(x.to("rdna", dtype))
        mine = torch.compile(ours, backend="rdna")(x.to("rdna", dtype))
    for a, b, c in zip(*((t,) if isinstance(t, torch.Tensor) else t for t in (mine, eager, right))):
        assert a.stride() == b.stride() and a.dtype == dtype
        assert apart(a, c) <= max(2 * apart(b, c), 4 * torch.finfo(dtype).eps), (apart(a, c), apart(b, c))
    return torch.rdna.compile_report()["fused"]


class Residual(nn.Module):
    """What images meet besides convolutions: pools, sizes that change, what is put side by side, norms, attention over places."""

    def __init__(self, dims):
        super().__init__()
        conv, turned = (nn.Conv2d, nn.ConvTranspose2d) if dims == 2 else (nn.Conv3d, nn.ConvTranspose3d)
        self.first, self.down, self.up, self.last = conv(3, 8, 3, padding=1), conv(8, 16, 3, 2, 1), turned(16, 8, 2, 2), conv(16, 8, 3, padding=1)
        self.norm, self.heads = nn.GroupNorm(2, 16), nn.Linear(16, 16)
        self.pool = (nn.MaxPool2d if dims == 2 else nn.MaxPool3d)(3, 2, 1)

    def forward(self, x):
        a = F.relu(self.first(x))
        b = F.silu(self.norm(self.down(a)))
        rows = b.flatten(2).transpose(1, 2)
        b = b + F.scaled_dot_product_attention(rows, self.heads(rows), rows).transpose(1, 2).reshape(b.shape)
        c = self.last(torch.cat([a, self.up(b)], 1))
        return self.pool(c), c.mean(1), a.movedim(1, -1), c.flatten(1)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", TYPES[1:])
def test_images_lie_with_channels_last_inside(graphs, dims, dtype):
    torch.manual_seed(dims)
    compared(Residual(dims), torch.randn(2, 3, *[8, 12, 8][:dims]), dtype)
    (before, after), = graphs
    assert before > 0 and after == 0


def test_gradients_too(graphs):
    torch.manual_seed(0)
    net, x = Residual(2), torch.randn(2, 3, 8, 12)

    def loss(module, x):
        return sum(t.float().square().mean() for t in module(x))

    wide = copy.deepcopy(net).double()
    loss_of_wide = sum(t.square().mean() for t in wide(x.double()))
    right = torch.autograd.grad(loss_of_wide, list(wide.parameters()))
    ours, data = copy.deepcopy(net).to("rdna"), x.to("rdna").requires_grad_()
    found = []
    for f in (loss, torch.compile(loss, backend="rdna")):
        with torch.autocast("rdna", torch.bfloat16):
            value = f(ours, data)
        found.append(torch.autograd.grad(value, [*ours.parameters(), data]))
    for eager, mine, want in zip(*found, right):
        assert mine.stride() == eager.stride()
        assert apart(mine, want) <= max(2 * apart(eager, want), 0.02)
    assert found[1][-1].stride() == data.stride()
    (before, after), = graphs
    assert before > 0 and after == 0


@pytest.mark.parametrize("last", [nn.Conv2d(16, 16, 3, padding=1), nn.ConvTranspose2d(16, 3, 2, 2)])
def test_gradients_of_images(graphs, last):
    """Results of the forward pass that are copied, and what the backward pass alone wants with channels last."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), copy.deepcopy(last))
    wide, x = copy.deepcopy(net).double(), torch.randn(2, 8, 8, 12)
    y = wide(x.double())
    slope = torch.randn(y.shape)
    right = [y, *torch.autograd.grad(y, list(wide.parameters()), slope.double()), wide[1].running_var]
    found = []
    for f in (lambda module: module, lambda module: torch.compile(module, backend="rdna")):
        module = copy.deepcopy(net).to("rdna", torch.bfloat16)
        y = f(module)(x.to("rdna", torch.bfloat16))
        found.append([y, *torch.autograd.grad(y, list(module.parameters()), slope.to("rdna", torch.bfloat16)), module[1].running_var])
    for eager, mine, want in zip(*found, right):
        assert mine.stride() == eager.stride()
        assert apart(mine, want) <= max(2 * apart(eager, want), 0.02)
    (before, after), = graphs
    assert before > after


@pytest.mark.parametrize("why, f", [
    ("a result has gaps", lambda y: y[:, ::2]),
    ("its memory is looked at", lambda y: torch.as_strided(y, (4, 4), (8, 1)).clone()),
    ("how many there are is found on the device", lambda y: y[y > 0])])
def test_what_stays_as_it_was(graphs, why, f):
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Conv2d(16, 16, 3, padding=1) for _ in range(3))).half().to("rdna")
    x = torch.randn(2, 16, 8, 8).half().to("rdna")
    with torch.no_grad(), torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        eager, mine = f(net(x)), torch.compile(lambda x: f(net(x)), backend="rdna")(x)
    assert all(before == after > 0 for before, after in graphs[:1]), why
    assert mine.stride() == eager.stride() and torch.equal(mine, eager)


def test_a_single_convolution_stays_as_it_was(graphs):
    """What its copies take is what the graph's would."""
    net, x = nn.Conv2d(16, 16, 3, padding=1).half().to("rdna"), torch.randn(2, 16, 8, 8).half().to("rdna")
    with torch.no_grad():
        torch.compile(net, backend="rdna")(x)
    (before, after), = graphs
    assert before == after > 0


def settled(net):
    """With statistics that something was learned from."""
    for norm in net.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            if norm.affine:
                nn.init.normal_(norm.weight)
                nn.init.normal_(norm.bias)
    return net.eval()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dims, groups, bias, affine", [(1, 1, True, True), (2, 4, False, True), (2, 8, True, False), (3, 1, False, False)])
def test_batch_norms_become_weights(dims, groups, bias, affine, dtype):
    torch.manual_seed(dims)
    conv, norm = [(nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d)][dims - 1]
    net = settled(nn.Sequential(conv(8, 8, 3, groups=groups, bias=bias), norm(8, affine=affine), nn.ReLU(), conv(8, 16, 3), norm(16)))
    fused = compared(net, torch.randn(2, 8, *[[300], [12, 25], [12, 12, 11]][dims - 1]), dtype)
    assert fused["convolution + _native_batch_norm_legit_no_training"] == 2 and fused["convolution + relu"] == 1


def test_new_statistics_are_seen():
    net = settled(nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8))).to("rdna")
    f, x = torch.compile(net, backend="rdna"), torch.randn(2, 4, 6, 6, device="rdna")
    with torch.no_grad():
        f(x)
        net[1].running_var.data.mul_(3)
        net[0].weight.data.add_(1)
        torch.testing.assert_close(f(x), net(x))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("act", [nn.Hardswish(), nn.ReLU6(), nn.LeakyReLU(0.2)])
def test_batch_norms_become_steps_of_chains(act, dtype):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.other, self.act = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.BatchNorm2d(8, affine=False), act

        def forward(self, x):
            return self.act(self.norm(self.conv(x))), self.act(self.other(x) + x)

    torch.manual_seed(0)
    fused = compared(settled(Block()), torch.randn(2, 8, 6, 5), dtype)
    assert sum(times for chain, times in fused.items() if chain.startswith("mul + add")) == 2


@pytest.mark.parametrize("act", [nn.Identity(), nn.Hardswish()])
def test_statistics_may_lie_apart(act):
    """Or be one number for all channels: what is made of them would lie so too."""
    torch.manual_seed(0)
    table, one = torch.rand(8, 2, device="rdna") + 0.5, torch.ones(1, device="rdna")
    conv, x = nn.Conv2d(4, 8, 3).to("rdna"), torch.randn(2, 4, 6, 5, device="rdna")
    with torch.no_grad():
        for mean, variance in ((table[:, 0], table[:, 1]), (one.expand(8), one.expand(8))):
            f = lambda x: act(F.batch_norm(conv(x), mean, variance))  # noqa: B023, E731
            torch.testing.assert_close(torch.compile(f, backend="rdna")(x), f(x))


@pytest.mark.parametrize("dims", [2, 3])
def test_pools_keep_no_places_that_nobody_reads(dims):
    pool = [F.max_pool2d, F.max_pool3d][dims - 2]
    f = lambda x: (pool(x, 3, 2, 1, ceil_mode=True), pool(x, 2), pool(x, 2, return_indices=True))  # noqa: E731
    x = torch.randn(2, 3, *[7, 9, 8][:dims], device="rdna")
    with torch.no_grad():
        for mine, eager in zip(torch.utils._pytree.tree_leaves(torch.compile(f, backend="rdna")(x)), torch.utils._pytree.tree_leaves(f(x))):
            assert torch.equal(mine, eager)
    assert torch.rdna.compile_report()["fused"] == {f"max_pool{dims}d_with_indices": 2}
