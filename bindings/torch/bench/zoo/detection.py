"""Detectors: everything about boxes is written here, in operators of PyTorch alone."""
import torch
import torch.nn.functional as F
from torch import nn

from . import Work, model
from .blocks import Residual, conv, mlp, wide


def areas(boxes):
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)


def overlaps(a, b):
    """Intersection over union of each box of |a| with each of |b|; boxes are (left, top, right, bottom)."""
    low, high = torch.maximum(a[..., :, None, :2], b[..., None, :, :2]), torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    return shared / (areas(a)[..., :, None] + areas(b)[..., None, :] - shared + 1e-6)


def suppress(boxes, limit, rounds=8):
    """Which boxes, best first, overlap no better one that stays by more than |limit|; a few rounds settle who stays."""
    close = torch.triu(overlaps(boxes, boxes) > limit, 1)
    keep = torch.ones(boxes.shape[:-1], dtype=torch.bool, device=boxes.device)
    for _ in range(rounds):
        keep = ~(close & keep[..., :, None]).any(-2)
    return keep


def decode(anchors, deltas):
    center, size = (anchors[..., :2] + anchors[..., 2:]) / 2, anchors[..., 2:] - anchors[..., :2]
    center, size = center + deltas[..., :2] * size, size * deltas[..., 2:].clamp(max=4).exp()
    return torch.cat([center - size / 2, center + size / 2], -1)


def encode(anchors, boxes):
    size, wanted = anchors[..., 2:] - anchors[..., :2], boxes[..., 2:] - boxes[..., :2]
    moved = (boxes[..., :2] + boxes[..., 2:] - anchors[..., :2] - anchors[..., 2:]) / 2
    return torch.cat([moved / size, (wanted / size).log()], -1)


def cut_out(features, boxes, size):
    """size x size values of the features within each box: rows, boxes, channels, size, size. Boxes are in 0 to 1."""
    rows, count = boxes.shape[:2]
    at = (torch.arange(size, device=boxes.device, dtype=boxes.dtype) + 0.5) / size
    low, extent = boxes[..., :2], boxes[..., 2:] - boxes[..., :2]
    x, y = (low[..., i, None] + extent[..., i, None] * at for i in (0, 1))
    shape = (rows, count, size, size)
    grid = torch.stack([x[:, :, None].expand(shape), y[..., None].expand(shape)], -1) * 2 - 1
    out = F.grid_sample(features, grid.view(rows, count * size, size, 2).to(features.dtype), align_corners=False)
    return out.view(rows, -1, count, size, size).transpose(1, 2)


def made_up_boxes(rows, count):
    low = torch.rand(rows, count, 2) * 0.6
    return torch.cat([low, low + 0.15 + torch.rand(rows, count, 2) * 0.25], -1)


class TwoStages(nn.Module):
    """Proposals from anchors, the best of which are cut out of the features, classified and moved."""

    def __init__(self, width, depth, side, kept, hidden, classes):
        super().__init__()
        self.kept, self.classes = kept, classes
        layers = [conv(3, width, 7, 2)]
        for i in range(depth):
            layers += [conv(width << i, 2 * width << i, 3, 2), Residual(conv(2 * width << i, 2 * width << i))]
        self.backbone, last = nn.Sequential(*layers), width << depth
        self.look, self.score, self.move = conv(last, last), nn.Conv2d(last, 3, 1), nn.Conv2d(last, 12, 1)
        self.box = nn.Sequential(nn.Flatten(), mlp(last * 49, hidden, hidden), nn.ReLU())
        self.name, self.refine = nn.Linear(hidden, classes), nn.Linear(hidden, 4)
        n = side >> (depth + 1)
        at = (torch.arange(n) + 0.5) / n
        center = torch.stack(torch.meshgrid(at, at, indexing="xy"), -1)[:, :, None].expand(-1, -1, 3, -1)
        half = torch.tensor([[0.08, 0.08], [0.16, 0.16], [0.12, 0.2]])
        self.register_buffer("anchors", torch.cat([center - half, center + half], -1).view(-1, 4))

    def propose(self, x):
        features = self.backbone(x)
        y = self.look(features)
        scores = self.score(y).permute(0, 2, 3, 1).flatten(1)
        deltas = self.move(y).permute(0, 2, 3, 1).reshape(len(x), -1, 4)
        with torch.no_grad():
            best, index = scores.topk(4 * self.kept, 1)
            boxes = wide(decode(self.anchors[index], deltas.gather(1, index[..., None].expand(-1, -1, 4)))).clamp(0, 1)
            keep = suppress(boxes, 0.7)
            order = torch.where(keep, wide(best), best.new_full((), -1e4).to(wide(best).dtype)).topk(self.kept, 1)[1]
            boxes = boxes.gather(1, order[..., None].expand(-1, -1, 4))
        return features, scores, deltas, boxes

    def second(self, features, boxes):
        y = cut_out(features, boxes, 7)
        y = self.box(y.flatten(0, 1)).view(*boxes.shape[:2], -1)
        return self.name(y), self.refine(y)

    def forward(self, x):
        features, _, _, boxes = self.propose(x)
        names, deltas = self.second(features, boxes)
        scores, classes = wide(names).softmax(-1)[..., 1:].max(-1)
        boxes = decode(boxes, wide(deltas)).clamp(0, 1)
        scores, order = scores.sort(1, descending=True)
        boxes = boxes.gather(1, order[..., None].expand(-1, -1, 4))
        return boxes, scores * suppress(boxes, 0.5), classes.gather(1, order)


def matched(boxes, truth):
    """Of each box the truth that it overlaps most, and how much."""
    share, index = overlaps(boxes, truth).max(-1)
    return share, index, truth.gather(1, index[..., None].expand(-1, -1, 4))


def two_stages_loss(net, x, truth, classes):
    features, scores, deltas, boxes = net.propose(x)
    share, _, target = matched(net.anchors.expand(len(x), -1, -1), truth)
    hit, sure = (share > 0.4).to(scores.dtype), ((share > 0.4) | (share < 0.2)).to(scores.dtype)
    loss = (F.binary_cross_entropy_with_logits(scores, hit, reduction="none") * sure).sum() / sure.sum()
    moved = F.smooth_l1_loss(deltas, encode(net.anchors, target).to(deltas.dtype), reduction="none").sum(-1)
    loss = loss + (moved * hit).sum() / hit.sum().clamp(min=1)
    boxes = torch.cat([boxes, truth], 1)  # what is true is among the proposals, as is the custom
    share, index, target = matched(boxes, truth)
    names, deltas = net.second(features, boxes)
    wanted = torch.where(share > 0.5, classes.gather(1, index), 0)
    loss = loss + F.cross_entropy(names.flatten(0, 1), wanted.flatten())
    size = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3)
    moved = F.smooth_l1_loss(deltas, encode(torch.cat([boxes[..., :2], boxes[..., :2] + size], -1), target).to(deltas.dtype),
                             reduction="none").sum(-1)
    hit = (wanted > 0).to(deltas.dtype)
    return loss + (moved * hit).sum() / hit.sum().clamp(min=1)


@model("detector of two stages", optimizer="sgd")
def two_stages(s):
    rows, side, classes = s(4, 2), s(512, 32), s(81, 4)
    net = TwoStages(s(64, 4), s(3, 2), side, s(256, 8), s(1024, 16), classes)
    # numbers whose order no rounding changes
    with torch.no_grad():
        net.score.weight.mul_(20)
    return Work(net, (torch.randn(rows, 3, side, side),),
                (made_up_boxes(rows, s(16, 3)), torch.randint(1, classes, (rows, s(16, 3)))), objective=two_stages_loss)


class OneStage(nn.Module):
    """Boxes, whether there is one, and its class at each place of three sizes of features, which are joined both ways."""

    def __init__(self, width, classes):
        super().__init__()
        part = lambda a, b, stride=1: conv(a, b, 3, stride, act=nn.SiLU)  # noqa: E731
        mix = lambda n: Residual(nn.Sequential(conv(n, n // 2, 1, act=nn.SiLU), part(n // 2, n)))  # noqa: E731
        step = lambda a, b: nn.Sequential(part(a, b, 2), mix(b))  # noqa: E731
        self.stem = nn.Sequential(part(3, width, 2), step(width, 2 * width))
        self.steps = nn.ModuleList(step(width << i, 2 * width << i) for i in (1, 2, 3))
        self.down = nn.ModuleList(conv(width << i, width << 1, 1, act=nn.SiLU) for i in (2, 3, 4))
        self.join = nn.ModuleList(part(4 * width, 2 * width) for _ in (0, 1))
        self.heads = nn.ModuleList(nn.Conv2d(2 * width, 5 + classes, 1) for _ in range(3))

    def forward(self, x):
        x, maps = self.stem(x), []
        for step, down in zip(self.steps, self.down):
            x = step(x)
            maps.append(down(x))
        for i, join in ((1, self.join[0]), (0, self.join[1])):
            maps[i] = join(torch.cat([maps[i], F.interpolate(maps[i + 1], scale_factor=2, mode="nearest")], 1))
        return torch.cat([head(y).flatten(2) for head, y in zip(self.heads, maps)], 2).transpose(1, 2)


def one_stage_loss(out, there, boxes, classes):
    """Generalized overlap where a box is, and whether one is everywhere."""
    low, high = -F.softplus(out[..., :2]), F.softplus(out[..., 2:4])
    a, b = torch.cat([low, high], -1), boxes.to(out.dtype)
    shared = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    around = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(-1)
    both = areas(a) + areas(b) - shared
    overlap = shared / both - (around - both) / around
    weight = there.to(out.dtype)
    named = F.binary_cross_entropy_with_logits(out[..., 5:], F.one_hot(classes, out.shape[-1] - 5).to(out.dtype),
                                               reduction="none").mean(-1)
    return (((1 - overlap + named) * weight).sum() / weight.sum()
            + F.binary_cross_entropy_with_logits(out[..., 4], weight))


@model("detector of one stage", train="bf16", infer="f16", optimizer="sgd")
def one_stage(s):
    rows, side, classes = s(16, 2), s(416, 32), s(80, 4)
    places = sum((side // n) ** 2 for n in (8, 16, 32))
    boxes = torch.cat([-torch.rand(rows, places, 2) - 0.1, torch.rand(rows, places, 2) + 0.1], -1)
    return Work(OneStage(s(32, 4), classes), (torch.randn(rows, 3, side, side),),
                (torch.rand(rows, places) < s(0.02, 0.3), boxes, torch.randint(classes, (rows, places))), one_stage_loss)
