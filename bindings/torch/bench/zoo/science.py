"""Graphs, points, rays, equations, processes."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from . import Work, model
from .blocks import mlp, wide


def graph(s):
    """Words of the nodes, edges (from, to) with each node's own, and classes."""
    nodes, edges, classes = s(20000, 30), s(200000, 90), s(40, 4)
    own = torch.arange(nodes).repeat(2, 1)
    edges = torch.cat([torch.randint(nodes, (2, edges)), own], 1)
    return torch.randn(nodes, s(128, 6)), edges, torch.randint(classes, (nodes,)), classes


class Spread(nn.Module):
    """Each node becomes the sum of its neighbours, by the roots of how many each has."""

    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x, edges):
        source, target = edges
        degree = torch.zeros(len(x), device=x.device, dtype=x.dtype).index_add_(0, target, torch.ones_like(target, dtype=x.dtype))
        weight = (degree[source] * degree[target]).rsqrt()[:, None]
        for i, layer in enumerate(self.layers):
            x = layer(F.relu(x) if i else x)
            x = torch.zeros_like(x).index_add_(0, target, x[source] * weight)
        return x


@model("graph convolutions, index_add", optimizer="adam")
def gcn(s):
    x, edges, y, classes = graph(s)
    return Work(Spread((x.shape[1], s(128, 8), s(128, 8), classes)), (x, edges), (y,))


class Attend(nn.Module):
    """Each node weighs its neighbours: a softmax over the edges that end in it, by scatter_reduce."""

    def __init__(self, inputs, heads, width):
        super().__init__()
        self.heads, self.width, self.net = heads, width, nn.Linear(inputs, heads * width, bias=False)
        self.source, self.target = (nn.Parameter(torch.randn(heads, width) * 0.1) for _ in (0, 1))

    def forward(self, x, edges):
        source, target = edges
        x = self.net(x).view(-1, self.heads, self.width)
        score = F.leaky_relu((x * self.source).sum(-1)[source] + (x * self.target).sum(-1)[target], 0.2)
        place = target[:, None].expand(-1, self.heads)
        most = torch.zeros(len(x), self.heads, device=x.device, dtype=score.dtype).scatter_reduce(
            0, place, score.detach(), "amax", include_self=False)
        weight = (score - most[target]).exp()
        total = torch.zeros_like(most).scatter_add(0, place, weight)
        weight = weight / total[target]
        out = torch.zeros(x.shape, device=x.device, dtype=weight.dtype).index_add(0, target, x[source] * weight[..., None])
        return out.flatten(1)


class Attends(nn.Module):
    def __init__(self, inputs, heads, width, classes):
        super().__init__()
        self.first, self.second = Attend(inputs, heads, width), Attend(heads * width, 1, classes)

    def forward(self, x, edges):
        return self.second(F.elu(self.first(x, edges)), edges)


@model("graph attention, scatter", optimizer="adam")
def gat(s):
    x, edges, y, classes = graph(s)
    return Work(Attends(x.shape[1], s(8, 2), s(16, 3), classes), (x, edges), (y,))


class Points(nn.Module):
    """A net of each point, the greatest of all points, and a matrix that turns them first."""

    def __init__(self, width, classes):
        super().__init__()
        layer = lambda a, b: nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())  # noqa: E731
        each = lambda *n: nn.Sequential(*map(layer, n, n[1:]))  # noqa: E731
        self.turn, self.turned = each(3, width, 2 * width, 16 * width), mlp(16 * width, 4 * width, 9)
        self.points, self.head = each(3, width, 2 * width, 16 * width), mlp(16 * width, 4 * width, classes)

    def forward(self, x):  # rows, 3, points
        turn = self.turned(self.turn(x).amax(2)).view(-1, 3, 3) + torch.eye(3, device=x.device, dtype=x.dtype)
        return self.head(self.points(turn.to(x.dtype) @ x).amax(2))


@model("PointNet", optimizer="adam")
def points(s):
    rows, classes = s(32, 3), s(40, 4)
    return Work(Points(s(64, 4), classes), (torch.randn(rows, 3, s(1024, 16)),), (torch.randint(classes, (rows,)),))


class Field(nn.Module):
    """Color and density of each place, summed along rays."""

    def __init__(self, width, depth, waves):
        super().__init__()
        self.register_buffer("waves", 2.0 ** torch.arange(waves) * math.pi)
        self.first = mlp(3 + 6 * waves, *[width] * depth)
        self.second = mlp(width + 3 + 6 * waves, *[width] * depth)
        self.out = nn.Linear(width, 4)

    def forward(self, origin, direction, depth):
        place = origin[:, None] + direction[:, None] * depth[..., None]
        angle = (place[..., None] * self.waves).flatten(2)
        x = torch.cat([place, angle.sin(), angle.cos()], -1)
        x = wide(self.out(F.relu(self.second(torch.cat([F.relu(self.first(x)), x], -1)))))
        step = torch.cat([depth[:, 1:] - depth[:, :-1], torch.full_like(depth[:, :1], 0.1)], 1)
        through = F.softplus(x[..., 3]) * step
        before = torch.cumsum(through, 1) - through
        weight = torch.exp(-before) * (1 - torch.exp(-through))
        return (weight[..., None] * torch.sigmoid(x[..., :3])).sum(1)


@model("NeRF, rays through a field", optimizer="adam")
def nerf(s):
    rays = s(2048, 8)
    depth = torch.linspace(2, 6, s(64, 6)).repeat(rays, 1)
    return Work(Field(s(256, 8), s(4, 2), s(10, 3)), (torch.randn(rays, 3) * 0.1, F.normalize(torch.randn(rays, 3), dim=1), depth),
                (torch.rand(rays, 3),), F.mse_loss)


def burgers(net, inside, border, wanted):
    """u_t + u u_x = 0.01/π u_xx inside, the given values at the border."""
    place = inside.detach().requires_grad_(True)
    u = net(place)
    slope = torch.autograd.grad(u.sum(), place, create_graph=True)[0]
    bend = torch.autograd.grad(slope[:, :1].sum(), place, create_graph=True)[0][:, :1]
    left = slope[:, 1:] + u * slope[:, :1] - 0.01 / math.pi * bend
    return left.square().mean() + F.mse_loss(net(border), wanted)


@model("PINN, second derivatives", optimizer="adam", compiles=False)
def pinn(s):
    border = torch.rand(s(200, 6), 2)
    net = mlp(2, *[s(32, 6)] * s(8, 2), 1, act=nn.Tanh)
    return Work(net, (torch.rand(s(10000, 16), 2),), (border, -torch.sin(math.pi * border[:, :1])), objective=burgers)


class Process(nn.Module):
    """A Gaussian process with a length for each input: the likelihood of what was seen, by Cholesky's factors."""

    def __init__(self, inputs):
        super().__init__()
        self.length, self.scale = nn.Parameter(torch.zeros(inputs)), nn.Parameter(torch.zeros(1))
        self.noise = nn.Parameter(torch.full((1,), -2.0))

    def near(self, a, b):
        a, b = a * torch.exp(-self.length), b * torch.exp(-self.length)
        apart = a.square().sum(-1)[:, None] + b.square().sum(-1) - 2 * a @ b.mT
        return torch.exp(self.scale - apart.clamp(min=0) / 2)

    def factor(self, x):
        return torch.linalg.cholesky(self.near(x, x) + torch.exp(self.noise) * torch.eye(len(x), device=x.device, dtype=x.dtype))

    def forward(self, x, y, new):
        """Mean and variance at new places."""
        factor, cross = self.factor(x), self.near(x, new)
        half = torch.linalg.solve_triangular(factor, cross, upper=False)
        return cross.mT @ torch.cholesky_solve(y, factor), torch.exp(self.scale) - half.square().sum(0)


def likelihood(net, x, y, _):
    factor = net.factor(x)
    half = torch.linalg.solve_triangular(factor, y, upper=False)
    return (half.square().sum() / 2 + factor.diagonal().log().sum()) / len(x)


@model("Gaussian process, Cholesky", optimizer="adam")
def process(s):
    n = s(2048, 12)
    x = torch.randn(n, 8)
    return Work(Process(8), (x, torch.sin(x.sum(1, keepdim=True)) + 0.1 * torch.randn(n, 1), torch.randn(s(512, 4), 8)),
                objective=likelihood)


class Waves(nn.Module):
    """A product with weights at the low frequencies of a field."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(2, width, width, modes, modes, 2) / width)

    def forward(self, x):
        m, y = self.modes, torch.fft.rfft2(x)
        weight = torch.view_as_complex(self.weight)
        out = torch.zeros_like(y)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", y[:, :, :m, :m], weight[0])
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", y[:, :, -m:, :m], weight[1])
        return torch.fft.irfft2(out, s=x.shape[-2:])


class Operator(nn.Module):
    def __init__(self, width, modes, count):
        super().__init__()
        self.enter = nn.Conv2d(3, width, 1)
        self.waves = nn.ModuleList(Waves(width, modes) for _ in range(count))
        self.points = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(count))
        self.out = nn.Sequential(nn.Conv2d(width, 2 * width, 1), nn.GELU(), nn.Conv2d(2 * width, 1, 1))

    def forward(self, x):
        x = self.enter(x)
        for waves, points in zip(self.waves, self.points):
            x = F.gelu(waves(x) + points(x))
        return self.out(x)


@model("Fourier operator", optimizer="adam")
def fourier(s):
    rows, side = s(20, 2), s(64, 8)
    return Work(Operator(s(32, 4), s(12, 2), s(4, 2)), (torch.randn(rows, 3, side, side),), (torch.randn(rows, 1, side, side),),
                F.mse_loss)
