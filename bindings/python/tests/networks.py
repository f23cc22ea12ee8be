"""Networks of the shapes that people run, written here, of any size: residual networks, BERT's layers, a vision transformer."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Basic(nn.Module):
    widening = 1

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or channels != width:
            self.down = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        same = x if self.down is None else self.down(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        x += same
        return self.relu(x)


class Bottleneck(nn.Module):
    widening = 4

    def __init__(self, channels, width, stride):
        super().__init__()
        out = width * 4
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or channels != out:
            self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        same = x if self.down is None else self.down(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        x += same
        return self.relu(x)


class ResNet(nn.Module):
    def __init__(self, block, depths, width=64, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels, stages = width, []
        for i, depth in enumerate(depths):
            blocks = []
            for j in range(depth):
                blocks.append(block(channels, width << i, 2 if i and not j else 1))
                channels = (width << i) * block.widening
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.stages(x)), 1))


def resnet18(width=64):
    return lived(ResNet(Basic, (2, 2, 2, 2), width))


def resnet50(width=64):
    return lived(ResNet(Bottleneck, (3, 4, 6, 3), width))


def lived(model):
    """With batch norms whose statistics are not those of the start, with which folding would not be seen. Variances keep
    deep networks' values near 1."""
    for m in model.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            m.running_mean.normal_(0, 0.2)
            m.running_var.uniform_(0.5, 2)
            if m.affine:
                nn.init.uniform_(m.weight, 0.5, 1.2)
                nn.init.normal_(m.bias, 0, 0.2)
    return model.eval()


class Attention(nn.Module):
    """Attention that is written out, as models did before PyTorch had an operator for it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores + mask
        weights = self.dropout(F.softmax(scores, dim=-1))
        return torch.matmul(weights, v).transpose(1, 2).reshape(x.shape)


class EncoderLayer(nn.Module):
    """With norms behind the sums, BERT's, or before the layers, a vision transformer's."""

    def __init__(self, width, heads, first):
        super().__init__()
        self.first = first
        self.attention, self.out = Attention(width, heads), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def feed(self, x):
        return self.dropout(self.down(self.act(self.up(x))))

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.dropout(self.out(self.attention(self.norm1(x), mask)))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.dropout(self.out(self.attention(x, mask))))
        return self.norm2(x + self.feed(x))


class Bert(nn.Module):
    def __init__(self, width=768, heads=12, depth=12, words=1000, most=512):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(most, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, False) for _ in range(depth))
        self.pooler, self.tanh = nn.Linear(width, width), nn.Tanh()

    def forward(self, ids, mask=None):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        x = self.dropout(self.norm(x))
        if mask is not None:
            mask = (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e4
        for layer in self.layers:
            x = layer(x, mask)
        return x, self.tanh(self.pooler(x[:, 0]))


class Vit(nn.Module):
    def __init__(self, width=768, heads=12, depth=12, patch=16, size=224, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width))
        self.layers = nn.Sequential(*(EncoderLayer(width, heads, True) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), x), 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])
