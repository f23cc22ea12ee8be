"""Networks that make samples: diffusion, adversaries, autoencoders, flows."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from . import Work, model
from .blocks import Attention, mlp, sinusoids


class Noised(nn.Module):
    """Two convolutions, between which the time enters."""

    def __init__(self, inputs, outputs, times, groups):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(groups, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(times, outputs))
        self.second = nn.Sequential(nn.GroupNorm(groups, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        return self.skip(x) + self.second(self.first(x) + self.time(t)[..., None, None])


class Look(nn.Module):
    """Attention of all places of a picture."""

    def __init__(self, width, heads, groups):
        super().__init__()
        self.norm, self.attention = nn.GroupNorm(groups, width), Attention(width, heads)

    def forward(self, x):
        y = self.attention(self.norm(x).flatten(2).transpose(1, 2))
        return x + y.transpose(1, 2).reshape(x.shape)


class Denoiser(nn.Module):
    def __init__(self, width, widths, groups, steps):
        super().__init__()
        self.register_buffer("times", sinusoids(steps, width))
        self.time = mlp(width, 4 * width, 4 * width, act=nn.SiLU)
        self.first, skips, n = nn.Conv2d(3, width, 3, padding=1), [width], width
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for i, m in enumerate(widths):
            last = i == len(widths) - 1
            self.down.append(nn.ModuleList([Noised(n, m, 4 * width, groups), Look(m, 4, groups) if i else nn.Identity(),
                                            nn.Identity() if last else nn.Conv2d(m, m, 3, 2, 1)]))
            skips += [m] * (1 if last else 2)
            n = m
        self.middle = nn.ModuleList([Noised(n, n, 4 * width, groups), Look(n, 4, groups), Noised(n, n, 4 * width, groups)])
        for i, m in reversed(list(enumerate(widths))):
            self.up.append(nn.ModuleList([Noised(n + skips.pop(), m, 4 * width, groups), Noised(m + skips.pop(), m, 4 * width, groups),
                                          Look(m, 4, groups) if i else nn.Identity(),
                                          nn.Conv2d(m, m, 3, padding=1) if i else nn.Identity()]))
            n = m
        self.out = nn.Sequential(nn.GroupNorm(groups, n), nn.SiLU(), nn.Conv2d(n, 3, 3, padding=1))

    def forward(self, x, step):
        t = self.time(self.times[step])
        x = self.first(x)
        seen = [x]
        for i, (block, look, shrink) in enumerate(self.down):
            x = look(block(x, t))
            seen.append(x)
            if i < len(self.down) - 1:
                x = shrink(x)
                seen.append(x)
        block, look, last = self.middle
        x = last(look(block(x, t)), t)
        for i, (one, two, look, grow) in enumerate(self.up):
            x = one(torch.cat([x, seen.pop()], 1), t)
            x = look(two(torch.cat([x, seen.pop()], 1), t))
            if i < len(self.up) - 1:
                x = grow(F.interpolate(x, scale_factor=2, mode="nearest"))
        return self.out(x)


@model("diffusion U-Net with attention", train="bf16", infer="f16")
def diffusion(s):
    rows, side, steps = s(16, 2), s(64, 8), s(1000, 10)
    net = Denoiser(s(128, 8), s((128, 256, 384), (8, 16)), s(32, 4), steps)

    def objective(net, picture, step, noise):
        share = torch.linspace(0.9999, 0.02, steps, device=picture.device, dtype=picture.dtype)[step, None, None, None]
        return F.mse_loss(net(picture * share.sqrt() + noise * (1 - share).sqrt(), step), noise)
    return Work(net, (torch.randn(rows, 3, side, side), torch.randint(steps, (rows,))), (torch.randn(rows, 3, side, side),),
                objective=objective)


class Adversaries(nn.Module):
    def __init__(self, seed, width, side):
        super().__init__()
        depth = int(math.log2(side)) - 2
        layers = [nn.ConvTranspose2d(seed, width << (depth - 1), 4, bias=False)]
        for i in reversed(range(depth)):
            n = width << i
            layers += [nn.BatchNorm2d(n), nn.ReLU(True), nn.ConvTranspose2d(n, n // 2 if i else 3, 4, 2, 1, bias=False)]
        self.maker = nn.Sequential(*layers, nn.Tanh())
        layers = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
        for i in range(1, depth):
            n = width << i
            layers += [nn.Conv2d(n // 2, n, 4, 2, 1, bias=False), nn.BatchNorm2d(n), nn.LeakyReLU(0.2, True)]
        self.judge = nn.Sequential(*layers, nn.Conv2d(width << (depth - 1), 1, 4, bias=False), nn.Flatten(0))

    def forward(self, seed):
        return self.maker(seed)


def adversaries_loss(net, seed, real):
    """What the judge learns of, and what the maker does, for which the judge's weights stand still."""
    made = net.maker(seed)
    loss = F.softplus(-net.judge(real)).mean() + F.softplus(net.judge(made.detach())).mean()
    net.judge.requires_grad_(False)
    loss = loss + F.softplus(-net.judge(made)).mean()
    net.judge.requires_grad_(True)
    return loss


@model("DCGAN", optimizer="adam", compiles=False)
def dcgan(s):
    rows, seed, side = s(128, 4), s(100, 8), s(64, 16)
    return Work(Adversaries(seed, s(64, 4), side), (torch.randn(rows, seed, 1, 1),), (torch.randn(rows, 3, side, side),),
                objective=adversaries_loss)


class Variational(nn.Module):
    def __init__(self, width, side, hidden):
        super().__init__()
        self.shape = (2 * width, side // 4, side // 4)
        flat = 2 * width * (side // 4) ** 2
        self.read = nn.Sequential(nn.Conv2d(3, width, 4, 2, 1), nn.ELU(), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.ELU(),
                                  nn.Flatten(), nn.Linear(flat, 2 * hidden))
        self.write = nn.Sequential(nn.Linear(hidden, flat), nn.Unflatten(1, self.shape),
                                   nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(width, 3, 4, 2, 1))

    def forward(self, x, noise):
        mean, spread = self.read(x).chunk(2, 1)
        return self.write(mean + noise * (spread / 2).exp()), mean, spread


@model("variational autoencoder", optimizer="adam")
def variational(s):
    rows, side, hidden = s(256, 4), s(64, 8), s(128, 4)

    def loss(out, x):
        picture, mean, spread = out
        apart = (mean.square() + spread.exp() - 1 - spread).sum(1).mean() / 2
        return F.binary_cross_entropy_with_logits(picture, x, reduction="none").flatten(1).sum(1).mean() + apart
    x = torch.rand(rows, 3, side, side)
    return Work(Variational(s(64, 4), side, hidden), (x, torch.randn(rows, hidden)), (x,), loss)


@model("denoising autoencoder", optimizer="adam")
def autoencoder(s):
    x = torch.rand(s(1024, 8), s(784, 20))
    widths = s((784, 512, 256, 64, 256, 512, 784), (20, 12, 4, 12, 20))
    return Work(mlp(*widths), (x * (torch.rand_like(x) > 0.3),), (x,), F.mse_loss)


class Steps(nn.Module):
    """A flow over channels of pictures: scale, an invertible product, and a coupling of halves; the density of x."""

    def __init__(self, width, inner, count):
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.zeros(count, width)) for _ in (0, 1))
        self.turn = nn.Parameter(torch.linalg.qr(torch.randn(count, width, width))[0])
        self.nets = nn.ModuleList(nn.Sequential(nn.Conv2d(width // 2, inner, 3, padding=1), nn.ReLU(), nn.Conv2d(inner, inner, 1),
                                                nn.ReLU(), nn.Conv2d(inner, width, 3, padding=1)) for _ in range(count))

    def forward(self, x):
        places = x.shape[2] * x.shape[3]
        volume = (self.scale.sum() + torch.linalg.slogdet(self.turn)[1].sum()) * places
        for scale, shift, turn, net in zip(self.scale, self.shift, self.turn, self.nets):
            x = x * scale.exp()[:, None, None] + shift[:, None, None]
            x = F.conv2d(x, turn[..., None, None])
            a, b = x.chunk(2, 1)
            t, grow = net(a).chunk(2, 1)
            grow = torch.tanh(grow)
            x = torch.cat([a, (b + t) * grow.exp()], 1)
            volume = volume + grow.flatten(1).sum(1)
        return x, volume


@model("normalizing flow, slogdet", optimizer="adam")
def flow(s):
    rows, width, side = s(64, 2), s(12, 4), s(16, 4)

    def loss(out):
        z, volume = out
        return ((z.square().flatten(1).sum(1) / 2 - volume) / z[0].numel() + math.log(2 * math.pi) / 2).mean()
    return Work(Steps(width, s(256, 8), s(16, 3)), (torch.randn(rows, width, side, side),), (), loss)
