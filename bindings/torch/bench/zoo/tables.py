"""Recommendations, tables, splines, decisions, and learning to learn."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from . import Work, model
from .blocks import mlp


class Recommend(nn.Module):
    """Bags of marks and numbers: their products two by two say how likely a click is."""

    def __init__(self, sizes, width, numbers):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(n, width, mode="sum") for n in sizes)
        self.bottom, count = mlp(numbers, 8 * width, 2 * width, width), len(sizes) + 1
        self.top = mlp(width + count * (count - 1) // 2, 16 * width, 8 * width, 1)
        self.register_buffer("pairs", torch.tril_indices(count, count, -1))

    def forward(self, numbers, marks, starts):
        first = F.relu(self.bottom(numbers))
        x = torch.stack([first, *(bag(mark, starts).to(first.dtype) for bag, mark in zip(self.bags, marks))], 1)
        pairs = (x @ x.mT)[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([first, pairs], 1))[:, 0]


@model("DLRM, bags of embeddings", optimizer="sgd")
def recommend(s):
    rows, each, numbers = s(4096, 6), s(4, 2), s(13, 3)
    sizes = s([100000, 50000, 20000, 10000, 5000, 2000, 1000, 500] * 2, [20, 10, 5])
    marks = torch.stack([torch.randint(size, (rows * each,)) for size in sizes])
    return Work(Recommend(sizes, s(32, 4), numbers), (torch.randn(rows, numbers), marks, torch.arange(rows) * each),
                (torch.rand(rows).round(),), F.binary_cross_entropy_with_logits)


class Factors(nn.Module):
    def __init__(self, users, things, width):
        super().__init__()
        self.user, self.thing = nn.Embedding(users, width), nn.Embedding(things, width)
        self.user_bias, self.thing_bias = nn.Embedding(users, 1), nn.Embedding(things, 1)
        for table in (self.user, self.thing):
            nn.init.normal_(table.weight, std=width ** -0.5)

    def forward(self, user, thing):
        return (self.user(user) * self.thing(thing)).sum(1) + (self.user_bias(user) + self.thing_bias(thing))[:, 0]


@model("matrix factorization", optimizer="adam")
def factors(s):
    users, things, rows = s(50000, 20), s(20000, 15), s(65536, 12)
    return Work(Factors(users, things, s(64, 4)), (torch.randint(users, (rows,)), torch.randint(things, (rows,))),
                (torch.rand(rows) * 4 + 1,), F.mse_loss)


class Table(nn.Module):
    """Numbers and marks of a row, batch norms, and a net."""

    def __init__(self, numbers, sizes, width, inner, classes):
        super().__init__()
        self.norm = nn.BatchNorm1d(numbers)
        self.marks = nn.ModuleList(nn.Embedding(n, width) for n in sizes)
        layers, inputs = [], numbers + width * len(sizes)
        for outputs in inner:
            layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True), nn.BatchNorm1d(outputs)]
            inputs = outputs
        self.net = nn.Sequential(*layers, nn.Linear(inputs, classes))

    def forward(self, numbers, marks):
        x = torch.cat([self.norm(numbers), *(table(marks[:, i]) for i, table in enumerate(self.marks))], 1)
        return self.net(x)


@model("table of numbers and marks", optimizer="adam")
def table(s):
    rows, sizes = s(4096, 8), s([10, 20, 50, 100, 1000, 7, 12, 24], [5, 3])
    marks = torch.stack([torch.randint(n, (rows,)) for n in sizes], 1)
    return Work(Table(s(40, 5), sizes, s(16, 2), s((512, 256, 128), (8, 6)), 2), (torch.randn(rows, s(40, 5)), marks),
                (torch.randint(2, (rows,)),))


class Splines(nn.Module):
    """A spline of the third degree of each input for each output (Kolmogorov and Arnold)."""

    def __init__(self, inputs, outputs, pieces):
        super().__init__()
        self.register_buffer("knots", (torch.arange(-3, pieces + 4) * (2 / pieces) - 1).float())
        self.weight = nn.Parameter(torch.randn(outputs, inputs, pieces + 3) * 0.1)
        self.base = nn.Linear(inputs, outputs)

    def forward(self, x):
        k, y = self.knots, x[..., None]
        basis = ((y >= k[:-1]) & (y < k[1:])).to(x.dtype)
        for d in (1, 2, 3):
            basis = ((y - k[:-d - 1]) / (k[d:-1] - k[:-d - 1]) * basis[..., :-1]
                     + (k[d + 1:] - y) / (k[d + 1:] - k[1:-d]) * basis[..., 1:])
        return self.base(F.silu(x)) + torch.einsum("bin,oin->bo", basis, self.weight)


@model("KAN, splines", optimizer="adam")
def kan(s):
    widths = s((64, 128, 128, 1), (3, 4, 1))
    net = nn.Sequential(*(Splines(a, b, s(8, 4)) for a, b in zip(widths, widths[1:])))
    return Work(net, (torch.rand(s(1024, 6), widths[0]) * 1.8 - 0.9,), (torch.randn(s(1024, 6), 1),), F.mse_loss)


class Actor(nn.Module):
    """Says what to do, and what a state is worth."""

    def __init__(self, states, width, actions):
        super().__init__()
        self.body, self.act, self.worth = mlp(states, width, width, act=nn.Tanh), nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, x):
        x = torch.tanh(self.body(x))
        return self.act(x).log_softmax(-1), self.worth(x)[..., 0]


def clipped(net, states, actions, rewards, ended, before):
    """Proximal policy optimization: advantages backward in time, one step of the ratio that is clipped."""
    scores, worth = net(states)
    with torch.no_grad():
        later, advantage, out = worth[-1], torch.zeros_like(worth[0]), []
        for t in reversed(range(len(rewards))):
            error = rewards[t] + 0.99 * later * (1 - ended[t]) - worth[t]
            advantage = error + 0.99 * 0.95 * (1 - ended[t]) * advantage
            later = worth[t]
            out.append(advantage)
        advantage = torch.stack(out[::-1])
        goal = advantage + worth
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = (scores.gather(-1, actions[..., None])[..., 0] - before).exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    return F.mse_loss(worth, goal) / 2 - gain + 0.01 * (scores.exp() * scores).sum(-1).mean()


@model("actor and critic", optimizer="adam")
def actor(s):
    steps, places, states, actions = s(32, 5), s(64, 3), s(8, 4), s(4, 3)
    shape = (steps, places)
    return Work(Actor(states, s(64, 6), actions), (torch.randn(*shape, states),),
                (torch.randint(actions, shape), torch.randn(shape), (torch.rand(shape) < 0.05).float(),
                 torch.full(shape, 1.0 / actions).log() + 0.1 * torch.randn(shape)), objective=clipped)


def adapted(net, x, y, new_x, new_y):
    """The loss of each task after steps of its own from common weights, all tasks at once."""
    weights = dict(net.named_parameters())

    def loss(weights, x, y):
        return F.mse_loss(functional_call(net, weights, (x,)), y)

    def task(x, y, new_x, new_y):
        own = weights
        for _ in range(2):
            slopes = grad(loss)(own, x, y)
            own = {name: own[name] - 0.05 * slopes[name] for name in own}
        return loss(own, new_x, new_y)
    return vmap(task)(x, y, new_x, new_y).mean()


@model("learning to learn, vmap of grad", optimizer="adam")
def meta(s):
    tasks, each = s(32, 3), s(20, 4)
    data = [torch.randn(tasks, each, 1) for _ in range(4)]
    return Work(mlp(1, s(64, 6), s(64, 6), 1, act=nn.Tanh), (data[0],), tuple(data[1:]), objective=adapted)
