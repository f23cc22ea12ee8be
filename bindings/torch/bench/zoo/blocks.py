"""What several models are made of."""
import torch
import torch.nn.functional as F
from torch import nn


def wide(x):
    """The type that sums of |x| are taken in: float32 of 16 bits, else its own."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def conv(inputs, outputs, size=3, stride=1, groups=1, dilation=1, act=nn.ReLU):
    """Convolution, batch norm, activation."""
    layers = [nn.Conv2d(inputs, outputs, size, stride, dilation * (size // 2), dilation, groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act(inplace=True)] if act else []))


def mlp(*widths, act=nn.ReLU):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), act()]
    return nn.Sequential(*layers[:-1])


class Residual(nn.Module):
    """x + body(x), with what brings x to the body's shape."""

    def __init__(self, body, skip=None, act=None):
        super().__init__()
        self.body, self.skip, self.act = body, skip or nn.Identity(), act or nn.Identity()

    def forward(self, x):
        return self.act(self.skip(x) + self.body(x))


class Attention(nn.Module):
    """Heads over one sequence, or from one to another; |bias| is added to the scores."""

    def __init__(self, width, heads, causal=False, bias=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.kv = nn.Linear(width, width, bias), nn.Linear(width, 2 * width, bias)
        self.out = nn.Linear(width, width, bias)

    def forward(self, x, memory=None, bias=None):
        rows, length, width = x.shape
        memory = x if memory is None else memory
        q = self.q(x).view(rows, length, self.heads, -1).transpose(1, 2)
        k, v = self.kv(memory).view(rows, memory.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(rows, length, width))


class Layer(nn.Module):
    """A transformer's layer: norm first, or after the sum as in BERT."""

    def __init__(self, width, heads, causal=False, cross=False, after=False, act=nn.GELU):
        super().__init__()
        self.after = after
        self.attention, self.norm1 = Attention(width, heads, causal), nn.LayerNorm(width)
        self.cross, self.norm2 = (Attention(width, heads), nn.LayerNorm(width)) if cross else (None, None)
        self.body, self.norm3 = mlp(width, 4 * width, width, act=act), nn.LayerNorm(width)

    def forward(self, x, memory=None):
        if self.after:
            x = self.norm1(x + self.attention(x))
            return self.norm3(x + self.body(x))
        x = x + self.attention(self.norm1(x))
        if self.cross is not None:
            x = x + self.cross(self.norm2(x), memory)
        return x + self.body(self.norm3(x))


def tokens_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def sinusoids(length, width):
    """Positions as sines and cosines, one row each."""
    angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.cat([angle.sin(), angle.cos()], 1)
