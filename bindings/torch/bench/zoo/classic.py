"""Networks that classify pictures."""
import torch
import torch.nn.functional as F
from torch import nn

from . import Work, model
from .blocks import Layer, Residual, conv, mlp


def pictures(s, rows, side=224, classes=1000):
    """Pictures and their classes."""
    side, classes = s(side, 32), s(classes, 10)
    return torch.randn(s(rows, 2), 3, side, side), torch.randint(classes, (s(rows, 2),)), classes


def head(width, classes):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def basic(inputs, width, stride):
    body = nn.Sequential(conv(inputs, width, 3, stride), conv(width, width, act=None))
    skip = conv(inputs, width, 1, stride, act=None) if stride > 1 or inputs != width else None
    return Residual(body, skip, nn.ReLU(inplace=True))


def bottleneck(inputs, width, stride):
    body = nn.Sequential(conv(inputs, width, 1), conv(width, width, 3, stride), conv(width, 4 * width, 1, act=None))
    skip = conv(inputs, 4 * width, 1, stride, act=None) if stride > 1 or inputs != 4 * width else None
    return Residual(body, skip, nn.ReLU(inplace=True))


def residual_stages(block, grow, width, counts, inputs):
    layers = []
    for i, count in enumerate(counts):
        for j in range(count):
            layers.append(block(inputs, width << i, 2 if i and not j else 1))
            inputs = grow * (width << i)
    return layers, inputs


@model("ResNet-50", train="bf16", infer="f16", optimizer="sgd")
def resnet50(s):
    x, y, classes = pictures(s, 64)
    width = s(64, 4)
    layers, last = residual_stages(bottleneck, 4, width, s((3, 4, 6, 3), (1, 1)), width)
    return Work(nn.Sequential(conv(3, width, 7, 2), nn.MaxPool2d(3, 2, 1), *layers, head(last, classes)), (x,), (y,))


@model("ResNet-18, 32x32", optimizer="sgd")
def resnet18(s):
    x, y, classes = pictures(s, 128, 32, 10)
    width = s(64, 4)
    layers, last = residual_stages(basic, 1, width, s((2, 2, 2, 2), (1, 1)), width)
    return Work(nn.Sequential(conv(3, width), *layers, head(last, classes)), (x,), (y,))


@model("VGG-11", train="bf16", infer="f16", optimizer="sgd")
def vgg(s):
    x, y, classes = pictures(s, 32)
    layers, inputs = [], 3
    for width in s((64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0), (4, 0, 8, 0)):
        layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)] if width else [nn.MaxPool2d(2)]
        inputs = width or inputs
    pooled, hidden = s(7, 2), s(4096, 16)
    return Work(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(pooled), nn.Flatten(),
                              mlp(inputs * pooled * pooled, hidden, hidden, classes)), (x,), (y,))


class Dense(nn.Module):
    """Each layer reads what all before it made."""

    def __init__(self, inputs, growth, count):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(
            nn.BatchNorm2d(inputs + i * growth), nn.ReLU(), conv(inputs + i * growth, 4 * growth, 1),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)) for i in range(count))

    def forward(self, x):
        made = [x]
        for layer in self.layers:
            made.append(layer(torch.cat(made, 1)))
        return torch.cat(made, 1)


@model("DenseNet-121", optimizer="sgd")
def densenet(s):
    x, y, classes = pictures(s, 32)
    growth = s(32, 4)
    width = 2 * growth
    layers = [conv(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)]
    for i, count in enumerate(s((6, 12, 24, 16), (2, 2))):
        if i:
            layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.Conv2d(width, width // 2, 1, bias=False),
                       nn.AvgPool2d(2)]
            width //= 2
        layers.append(Dense(width, growth, count))
        width += growth * count
    return Work(nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(inplace=True), head(width, classes)), (x,), (y,))


class Gate(nn.Module):
    """Scales the channels by what is seen in all of the picture (squeeze and excitation)."""

    def __init__(self, width, inner, act, gate):
        super().__init__()
        self.down, self.up, self.act, self.gate = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1), act(), gate()

    def forward(self, x):
        return x * self.gate(self.up(self.act(self.down(x.mean((2, 3), keepdim=True)))))


def inverted(inputs, outputs, size, stride, expand, act, gate=None):
    """Wider, one window a channel, narrower again."""
    inner = int(inputs * expand)
    body = nn.Sequential(*([conv(inputs, inner, 1, act=act)] if expand != 1 else []), conv(inner, inner, size, stride, inner, act=act),
                         *([gate(inner)] if gate else []), conv(inner, outputs, 1, act=None))
    return Residual(body) if stride == 1 and inputs == outputs else body


@model("EfficientNet-B0", train="bf16", infer="f16", optimizer="sgd")
def efficientnet(s):
    x, y, classes = pictures(s, 64)
    stages = s(((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
                (6, 320, 1, 1, 3)), ((1, 8, 1, 1, 3), (6, 8, 2, 2, 5)))
    inputs, layers = s(32, 8), [conv(3, s(32, 8), 3, 2, act=nn.SiLU)]
    for expand, width, count, stride, size in stages:
        for i in range(count):
            squeezed = max(1, inputs // 4)
            layers.append(inverted(inputs, width, size, stride if i == 0 else 1, expand, nn.SiLU,
                                   lambda inner, squeezed=squeezed: Gate(inner, squeezed, nn.SiLU, nn.Sigmoid)))
            inputs = width
    last = s(1280, 16)
    return Work(nn.Sequential(*layers, conv(inputs, last, 1, act=nn.SiLU), head(last, classes)), (x,), (y,))


@model("MobileNetV3, channels last", train="bf16", infer="f16", optimizer="sgd")
def mobilenet(s):
    x, y, classes = pictures(s, 128)
    swish, relu = nn.Hardswish, nn.ReLU
    # window, inner width, width, gate, activation, stride
    rows = s(((3, 16, 16, 0, relu, 1), (3, 64, 24, 0, relu, 2), (3, 72, 24, 0, relu, 1), (5, 72, 40, 1, relu, 2),
              (5, 120, 40, 1, relu, 1), (5, 120, 40, 1, relu, 1), (3, 240, 80, 0, swish, 2), (3, 200, 80, 0, swish, 1),
              (3, 184, 80, 0, swish, 1), (3, 184, 80, 0, swish, 1), (3, 480, 112, 1, swish, 1),
              (3, 672, 112, 1, swish, 1), (5, 672, 160, 1, swish, 2), (5, 960, 160, 1, swish, 1),
              (5, 960, 160, 1, swish, 1)), ((3, 16, 16, 0, relu, 1), (5, 24, 24, 1, swish, 2), (5, 48, 24, 1, swish, 1)))
    inputs, layers = 16, [conv(3, 16, 3, 2, act=swish)]
    for size, inner, width, gated, act, stride in rows:
        gate = (lambda n: Gate(n, max(1, n // 4), nn.ReLU, nn.Hardsigmoid)) if gated else None
        layers.append(inverted(inputs, width, size, stride, inner / inputs, act, gate))
        inputs = width
    last, hidden = s(960, 48), s(1280, 32)
    net = nn.Sequential(*layers, conv(inputs, last, 1, act=swish), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        mlp(last, hidden, classes, act=swish))
    return Work(net.to(memory_format=torch.channels_last), (x.contiguous(memory_format=torch.channels_last),), (y,))


class ChannelNorm(nn.LayerNorm):
    """Layer norm of the channels of pictures."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.body, self.scale = mlp(width, 4 * width, width, act=nn.GELU), nn.Parameter(torch.full((width,), 1e-2))

    def forward(self, x):
        y = self.scale * self.body(self.norm(self.mix(x).permute(0, 2, 3, 1)))
        return x + y.permute(0, 3, 1, 2)


@model("ConvNeXt-T", train="bf16", infer="bf16")
def convnext(s):
    x, y, classes = pictures(s, 32)
    widths, counts = s((96, 192, 384, 768), (8, 16)), s((3, 3, 9, 3), (1, 1))
    layers = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0])]
    for i, (width, count) in enumerate(zip(widths, counts)):
        if i:
            layers += [ChannelNorm(widths[i - 1]), nn.Conv2d(widths[i - 1], width, 2, 2)]
        layers += [ConvNeXtBlock(width) for _ in range(count)]
    return Work(nn.Sequential(*layers, head(widths[-1], classes)), (x,), (y,))


class ViT(nn.Module):
    def __init__(self, side, patch, width, heads, count, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        self.layers, self.norm = nn.Sequential(*(Layer(width, heads) for _ in range(count))), nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


@model("ViT-B/16", train="bf16", infer="bf16")
def vit(s):
    x, y, classes = pictures(s, 32)
    return Work(ViT(x.shape[-1], s(16, 8), s(768, 16), s(12, 2), s(12, 2), classes), (x,), (y,))


class Windows(nn.Module):
    """Swin's layer: attention within windows, which every second layer shifts by half of one."""

    def __init__(self, side, width, heads, window, shift):
        super().__init__()
        self.side, self.heads, self.window, self.shift = side, heads, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.body = mlp(width, 4 * width, width, act=nn.GELU)
        self.bias = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = at[:, :, None] - at[:, None] + window - 1
        self.register_buffer("index", (apart[0] * (2 * window - 1) + apart[1]).flatten())
        if shift:  # values that the shift brought together from both ends of the picture do not meet
            part = torch.zeros(side, dtype=torch.long)
            part[-window:-shift], part[-shift:] = 1, 2
            parts = self.cut((part[:, None] * 3 + part)[None, :, :, None].float())[..., 0]
            self.register_buffer("mask", torch.where(parts[:, :, None] == parts[:, None], 0.0, -100.0))

    def cut(self, x):
        n, w = self.side // self.window, self.window
        return x.view(-1, n, w, n, w, x.shape[-1]).transpose(2, 3).reshape(-1, w * w, x.shape[-1])

    def forward(self, x):  # rows, side, side, width
        rows, side, _, width = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.cut(y)
        q, k, v = self.qkv(y).view(len(y), -1, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        n = self.window ** 2
        bias = self.bias[self.index].view(1, n, n, self.heads).permute(0, 3, 1, 2)
        if self.shift:
            bias = (bias + self.mask[:, None]).repeat(rows, 1, 1, 1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype)).transpose(1, 2).reshape(-1, n, width)
        m, w = side // self.window, self.window
        y = self.out(y).view(rows, m, m, w, w, width).transpose(2, 3).reshape(rows, side, side, width)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.body(self.norm2(x))


class Merge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        corners = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.reduce(self.norm(torch.cat(corners, -1)))


class Swin(nn.Module):
    def __init__(self, side, patch, width, heads, counts, window, classes):
        super().__init__()
        self.patches, self.norm1 = nn.Conv2d(3, width, patch, patch), nn.LayerNorm(width)
        layers, side = [], side // patch
        for i, count in enumerate(counts):
            if i:
                layers.append(Merge(width))
                width, heads, side = 2 * width, 2 * heads, side // 2
            layers += [Windows(side, width, heads, window, window // 2 if j % 2 and side > window else 0) for j in range(count)]
        self.layers, self.norm2, self.head = nn.Sequential(*layers), nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.layers(self.norm1(self.patches(x).permute(0, 2, 3, 1)))
        return self.head(self.norm2(x).mean((1, 2)))


@model("Swin-T", train="bf16", infer="f16")
def swin(s):
    x, y, classes = pictures(s, 32)
    return Work(Swin(x.shape[-1], 4, s(96, 8), s(3, 2), s((2, 2, 6, 2), (2, 2)), s(7, 4), classes), (x,), (y,))


@model("Siamese, triplets of cdist", optimizer="adam")
def siamese(s):
    """Of each picture the farthest of its class and the nearest of another."""
    rows, width = s(128, 8), s(32, 4)
    net = nn.Sequential(conv(3, width, 3, 2), conv(width, 2 * width, 3, 2), conv(2 * width, 4 * width, 3, 2),
                        head(4 * width, s(128, 8)))

    def loss(out, y):
        out = F.normalize(out)
        apart, same = torch.cdist(out, out), y[:, None] == y
        far = apart.masked_fill(~same, 0).amax(1)
        near = apart.masked_fill(same, float("inf")).amin(1)
        return F.relu(far - near + 0.2).mean()
    return Work(net, (torch.randn(rows, 3, s(64, 16), s(64, 16)),), (torch.arange(rows) // 4,), loss)


class Capsules(nn.Module):
    """Votes of small capsules for larger ones, which agreement weighs in three rounds."""

    def __init__(self, width, side, count, inner, classes, outer):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 9), nn.ReLU())
        self.primary = nn.Conv2d(width, count * inner, 9, 2)
        self.inner, self.places = inner, count * ((side - 8 - 7) // 2) ** 2
        self.votes = nn.Parameter(torch.randn(self.places, classes, outer, inner) * 0.1)

    @staticmethod
    def squash(x):
        square = x.square().sum(-1, keepdim=True)
        return x * (square / (1 + square) / (square + 1e-7).sqrt())

    def forward(self, x):
        x = self.primary(self.stem(x))
        x = self.squash(x.view(len(x), -1, self.inner, *x.shape[2:]).permute(0, 1, 3, 4, 2).reshape(len(x), -1, self.inner))
        votes = torch.einsum("pcoi,bpi->bpco", self.votes, x)
        scores = votes.new_zeros(votes.shape[:3])
        for i in range(3):
            out = self.squash((scores.softmax(2)[..., None] * votes).sum(1))
            if i < 2:
                scores = scores + torch.einsum("bpco,bco->bpc", votes, out)
        return (out.square().sum(-1) + 1e-7).sqrt()


@model("capsules", optimizer="adam")
def capsules(s):
    side, classes = s(28, 20), 10

    def loss(out, y):
        right = F.one_hot(y, classes).to(out.dtype)
        return (right * F.relu(0.9 - out).square() + 0.5 * (1 - right) * F.relu(out - 0.1).square()).sum(1).mean()
    return Work(Capsules(s(256, 4), side, s(32, 2), 8, classes, 16), (torch.randn(s(64, 2), 1, side, side),),
                (torch.randint(classes, (s(64, 2),)),), loss)
