"""Networks whose result is a picture: segmentation, super-resolution, style, motion; and video."""
import torch
import torch.nn.functional as F
from torch import nn

from . import Work, model
from .blocks import Residual, conv
from .classic import bottleneck


class UNet(nn.Module):
    def __init__(self, width, depth, classes):
        super().__init__()
        pair = lambda inputs, outputs: nn.Sequential(conv(inputs, outputs), conv(outputs, outputs))  # noqa: E731
        widths = [width << i for i in range(depth)]
        self.down = nn.ModuleList(pair(a, b) for a, b in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, 2) for n in reversed(widths[:-1]))
        self.join = nn.ModuleList(pair(2 * n, n) for n in reversed(widths[:-1]))
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        seen = []
        for i, layer in enumerate(self.down):
            x = layer(F.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for up, join, skip in zip(self.up, self.join, reversed(seen[:-1])):
            x = join(torch.cat([skip, up(x)], 1))
        return self.out(x)


@model("U-Net, segmentation", train="bf16", infer="f16", optimizer="adam")
def unet(s):
    rows, side = s(8, 2), s(256, 16)
    return Work(UNet(s(64, 4), s(5, 3), 4), (torch.randn(rows, 3, side, side),), (torch.randint(4, (rows, side, side)),))


class DeepLab(nn.Module):
    """Strides end at 8, dilated windows go on; five views of the result, the widest of all of it, are joined."""

    def __init__(self, width, counts, rates, classes):
        super().__init__()
        layers, inputs = [conv(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)], width
        for i, count in enumerate(counts):
            for j in range(count):
                layers.append(bottleneck(inputs, width << i, 2 if i == 1 and j == 0 else 1))
                inputs = 4 * (width << i)
                if i > 1:
                    part = layers[-1].body[1][0]
                    part.dilation = part.padding = (2 ** (i - 1), 2 ** (i - 1))
        self.body = nn.Sequential(*layers)
        self.views = nn.ModuleList([conv(inputs, 4 * width, 1), *(conv(inputs, 4 * width, 3, dilation=r) for r in rates)])
        self.whole = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(inputs, 4 * width, 1), nn.ReLU())
        self.out = nn.Sequential(conv((2 + len(rates)) * 4 * width, 4 * width, 1), nn.Conv2d(4 * width, classes, 1))

    def forward(self, x):
        y = self.body(x)
        whole = self.whole(y).expand(-1, -1, *y.shape[2:])
        y = self.out(torch.cat([whole, *(view(y) for view in self.views)], 1))
        return F.interpolate(y, x.shape[2:], mode="bilinear", align_corners=False)


@model("DeepLab, dilated", train="bf16", infer="f16", optimizer="sgd")
def deeplab(s):
    rows, side, classes = s(8, 2), s(256, 32), s(21, 3)
    return Work(DeepLab(s(64, 4), s((3, 4, 6, 3), (1, 1, 1)), s((6, 12, 18), (2, 3)), classes),
                (torch.randn(rows, 3, side, side),), (torch.randint(classes, (rows, side, side)),))


@model("super-resolution, pixel shuffle", optimizer="adam")
def super_resolution(s):
    width, rows, side = s(64, 8), s(16, 2), s(48, 8)
    plain = lambda n, m: nn.Conv2d(n, m, 3, padding=1)  # noqa: E731
    blocks = [Residual(nn.Sequential(plain(width, width), nn.ReLU(), plain(width, width))) for _ in range(s(16, 2))]
    net = nn.Sequential(plain(3, width), Residual(nn.Sequential(*blocks, plain(width, width))), plain(width, 4 * width),
                        nn.PixelShuffle(2), plain(width, 4 * width), nn.PixelShuffle(2), plain(width, 3))
    return Work(net, (torch.randn(rows, 3, side, side),), (torch.randn(rows, 3, 4 * side, 4 * side),), F.l1_loss)


class Style(nn.Module):
    """A picture is the parameter; its products of channels are to be those of another."""

    def __init__(self, picture, style, widths):
        super().__init__()
        self.picture = nn.Parameter(picture)
        layers = [nn.Conv2d(a, b, 3, padding=1) for a, b in zip([3] + widths, widths)]
        self.layers = nn.ModuleList(layers).requires_grad_(False)
        with torch.no_grad():
            for i, gram in enumerate(self.grams(style)):
                self.register_buffer(f"gram{i}", gram)

    def grams(self, x):
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(F.avg_pool2d(x, 2) if i % 2 == 0 and i else x))
            y = x.flatten(2)
            yield y @ y.transpose(1, 2) / y.shape[-1]

    def forward(self, scale):
        return sum(F.mse_loss(gram, getattr(self, f"gram{i}"), reduction="sum")
                   for i, gram in enumerate(self.grams(self.picture * scale)))


@model("neural style, products of channels", optimizer="adam")
def style(s):
    side = s(384, 16)
    net = Style(torch.randn(1, 3, side, side), torch.rand(1, 3, side, side), s([64, 64, 128, 128, 256, 256, 512, 512], [4, 4, 8]))
    return Work(net, (torch.ones(1),), (), lambda loss: loss)


class Flow(nn.Module):
    """Motion from coarse to fine: at each size the second picture is warped by what is known so far."""

    def __init__(self, width, sizes):
        super().__init__()
        leaky = lambda inplace: nn.LeakyReLU(0.1, inplace)  # noqa: E731
        self.features = nn.ModuleList(conv(width * (i > 0) or 3, width, 3, 2, act=leaky) for i in range(sizes))
        self.motion = nn.ModuleList(nn.Sequential(
            conv(2 * width + 2, 2 * width, act=leaky), conv(2 * width, width, act=leaky), nn.Conv2d(width, 2, 3, padding=1))
            for _ in range(sizes))

    @staticmethod
    def warp(x, flow):
        rows, _, height, width = x.shape
        eye = torch.eye(2, 3, device=x.device, dtype=flow.dtype).expand(rows, -1, -1)
        grid = F.affine_grid(eye, x.shape, align_corners=False)
        return F.grid_sample(x, (grid + flow.permute(0, 2, 3, 1)).to(x.dtype), padding_mode="border", align_corners=False)

    def forward(self, first, second):
        maps, flow = [], None
        for layer in self.features:
            first, second = layer(first), layer(second)
            maps.append((first, second))
        for (one, two), motion in zip(reversed(maps), self.motion):
            if flow is None:
                flow = torch.zeros(len(one), 2, *one.shape[2:], device=one.device, dtype=one.dtype)
            else:
                flow = F.interpolate(flow, one.shape[2:], mode="bilinear", align_corners=False)
            flow = flow + motion(torch.cat([one, self.warp(two, flow), flow], 1))
        return flow


@model("optical flow, warped", optimizer="adam")
def optical_flow(s):
    rows, side = s(8, 2), s(256, 32)

    def loss(flow, first, second):
        first, second = F.adaptive_avg_pool2d(first, flow.shape[2:]), F.adaptive_avg_pool2d(second, flow.shape[2:])
        error = (Flow.warp(second, flow) - first).square() + 1e-3
        smooth = (flow[..., 1:] - flow[..., :-1]).abs().mean() + (flow[..., 1:, :] - flow[..., :-1, :]).abs().mean()
        return error.sqrt().mean() + 0.1 * smooth
    pictures = torch.randn(rows, 3, side, side), torch.randn(rows, 3, side, side)
    return Work(Flow(s(64, 6), s(5, 2)), pictures, pictures, loss)


def space_time(inputs, outputs, stride):
    """A window in space, then one in time."""
    norm = lambda n: [nn.BatchNorm3d(n), nn.ReLU(inplace=True)]  # noqa: E731
    return [nn.Conv3d(inputs, outputs, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False), *norm(outputs),
            nn.Conv3d(outputs, outputs, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False), nn.BatchNorm3d(outputs)]


@model("video, 3-D convolutions", train="bf16", infer="f16", optimizer="sgd")
def video(s):
    rows, side, classes = s(8, 2), s(112, 8), s(400, 5)
    width = s(64, 4)
    layers = [nn.Conv3d(3, width, 3, (1, 2, 2), 1, bias=False), nn.BatchNorm3d(width), nn.ReLU(inplace=True)]
    for i in range(s(4, 2)):
        inputs, outputs, stride = width << max(0, i - 1), width << i, 2 if i else 1
        skip = nn.Conv3d(inputs, outputs, 1, stride, bias=False) if i else None
        layers.append(Residual(nn.Sequential(*space_time(inputs, outputs, stride)), skip, nn.ReLU(inplace=True)))
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(width << s(3, 1), classes))
    return Work(net, (torch.randn(rows, 3, s(16, 4), side, side),), (torch.randint(classes, (rows,)),))
