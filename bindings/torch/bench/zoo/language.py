"""Language models."""
import torch
import torch.nn.functional as F
from torch import nn

from . import Work, model
from .blocks import Layer, mlp, sinusoids, tokens_loss, wide


def tokens(s, rows, length, vocabulary):
    vocabulary = s(vocabulary, 50)
    return torch.randint(vocabulary, (s(rows, 2), s(length, 10) + 1)), vocabulary


class Bert(nn.Module):
    def __init__(self, vocabulary, length, width, heads, count):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, heads, after=True) for _ in range(count)))
        self.guess = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, words, kinds):
        x = self.words(words) + self.places.weight[:words.shape[1]] + self.kinds(kinds)
        return F.linear(self.guess(self.layers(self.norm(x))), self.words.weight, self.bias)


@model("BERT, masked words", train="bf16", infer="f16")
def bert(s):
    words, vocabulary = tokens(s, 32, 127, 30522)
    hidden = torch.rand(words.shape) < 0.15
    hidden[:, 0] = True
    return Work(Bert(vocabulary, words.shape[1], s(768, 16), s(12, 2), s(12, 2)),
                (words.masked_fill(hidden, 3), torch.zeros_like(words)), (words.masked_fill(~hidden, -100),), tokens_loss)


class Gpt(nn.Module):
    def __init__(self, vocabulary, length, width, heads, count):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        nn.init.normal_(self.words.weight, std=0.02)
        act = lambda: nn.GELU(approximate="tanh")  # noqa: E731
        self.layers = nn.Sequential(*(Layer(width, heads, causal=True, act=act) for _ in range(count)))
        self.norm = nn.LayerNorm(width)

    def forward(self, words):
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        return F.linear(self.norm(self.layers(x)), self.words.weight)


@model("GPT-2 small", train="bf16", infer="f16")
def gpt2(s):
    words, vocabulary = tokens(s, 8, 512, 50257)
    net = Gpt(vocabulary, words.shape[1], s(768, 16), s(12, 2), s(12, 2))
    return Work(net, (words[:, :-1],), (words[:, 1:],), tokens_loss)


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = wide(x)
        return self.weight * (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class Rotated(nn.Module):
    """Causal attention with rotated pairs, and several query heads for each of keys and values."""

    def __init__(self, width, heads, groups, length):
        super().__init__()
        self.heads, self.groups, self.d = heads, groups, width // heads
        self.q, self.k, self.v, self.out = (nn.Linear(a, b, bias=False) for a, b in (
            (width, width), (width, groups * self.d), (width, groups * self.d), (width, width)))
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, self.d, 2) / self.d)
        angle = torch.cat([angle, angle], 1)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def turn(self, x):
        a, b = x.chunk(2, -1)
        length = x.shape[2]
        return (x * self.cos[:length] + torch.cat([-b, a], -1) * self.sin[:length]).to(x.dtype)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (y.view(rows, length, -1, self.d).transpose(1, 2) for y in (self.q(x), self.k(x), self.v(x)))
        q, k = self.turn(q), self.turn(k)
        share = self.heads // self.groups
        k, v = (y[:, :, None].expand(-1, -1, share, -1, -1).flatten(1, 2) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(rows, length, width))


class Gated(nn.Module):
    """SwiGLU."""

    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Each word goes to two experts, and what they say is weighed."""

    def __init__(self, width, inner, count, chosen=2):
        super().__init__()
        self.route, self.chosen = nn.Linear(width, count, bias=False), chosen
        self.experts = nn.ModuleList(Gated(width, inner) for _ in range(count))

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, index = wide(self.route(flat)).softmax(-1).topk(self.chosen, -1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows, place = torch.where(index == i)
            out.index_add_(0, rows, (expert(flat[rows]) * weights[rows, place, None]).to(out.dtype))
        return out.view(x.shape)


class Llama(nn.Module):
    def __init__(self, vocabulary, length, width, heads, groups, count, body):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.words.weight, std=0.5)
        self.layers = nn.ModuleList(nn.ModuleList([RootMeanSquare(width), Rotated(width, heads, groups, length),
                                                   RootMeanSquare(width), body()]) for _ in range(count))
        self.norm, self.head = RootMeanSquare(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, words):
        x = self.words(words)
        for norm1, attention, norm2, body in self.layers:
            x = x + attention(norm1(x))
            x = x + body(norm2(x))
        return self.head(self.norm(x))


@model("Llama, rotary and grouped", train="bf16", infer="bf16")
def llama(s):
    words, vocabulary = tokens(s, 4, 1024, 32000)
    width, inner = s(1024, 16), s(2816, 24)
    net = Llama(vocabulary, words.shape[1], width, s(16, 4), s(4, 2), s(8, 2), lambda: Gated(width, inner))
    return Work(net, (words[:, :-1],), (words[:, 1:],), tokens_loss)


@model("Mixtral, experts", train="bf16", infer="bf16")
def mixtral(s):
    words, vocabulary = tokens(s, 4, 512, 32000)
    width, inner = s(768, 16), s(1536, 24)
    net = Llama(vocabulary, words.shape[1], width, s(12, 4), s(4, 2), s(4, 2), lambda: Experts(width, inner, s(8, 4)))
    return Work(net, (words[:, :-1],), (words[:, 1:],), tokens_loss)


class Selective(nn.Module):
    """A state space whose steps depend on the input: a causal window, then a scan over the sequence, written as a loop
    over pieces within which it is a running sum of logarithms."""

    def __init__(self, width, inner, states, rank):
        super().__init__()
        self.inner, self.states, self.rank = inner, states, rank
        self.enter, self.leave = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.window = nn.Conv1d(inner, inner, 4, padding=3, groups=inner)
        self.from_x, self.step = nn.Linear(inner, rank + 2 * states, bias=False), nn.Linear(rank, inner)
        nn.init.constant_(self.step.bias, -3.0)
        self.decay = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(inner, 1))
        self.direct = nn.Parameter(torch.ones(inner))

    def scan(self, x, step, enter, leave, piece=8):
        """h becomes exp(step * decay) h + step * x * enter at each place; out is h · leave."""
        rows, length, inner = x.shape
        log = (step[..., None] * -wide(self.decay).exp()).split(piece, 1)
        add = ((step * x)[..., None] * enter[:, :, None]).split(piece, 1)
        state, out = x.new_zeros(rows, 1, inner, self.states), []
        for decays, added in zip(log, add):
            total = decays.cumsum(1)
            shrink = (total[:, :, None] - total[:, None]).masked_fill(
                torch.ones(total.shape[1], total.shape[1], dtype=torch.bool, device=x.device).triu(1)[:, :, None, None],
                float("-inf")).exp()
            states = (shrink * added[:, None]).sum(2) + total.exp() * state
            state = states[:, -1:]
            out.append(states)
        return torch.einsum("blds,bls->bld", torch.cat(out, 1), leave)

    def forward(self, x):
        length = x.shape[1]
        x, gate = self.enter(x).chunk(2, -1)
        x = F.silu(self.window(x.transpose(1, 2))[..., :length].transpose(1, 2))
        step, enter, leave = self.from_x(x).split([self.rank, self.states, self.states], -1)
        y = self.scan(wide(x), wide(F.softplus(self.step(step))), wide(enter), wide(leave)).to(x.dtype)
        return self.leave((y + self.direct * x) * F.silu(gate))


class Mamba(nn.Module):
    def __init__(self, vocabulary, width, count):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.words.weight, std=0.5)
        self.layers = nn.ModuleList(nn.ModuleList([RootMeanSquare(width), Selective(width, 2 * width, 8, max(1, width // 16))])
                                    for _ in range(count))
        self.norm, self.head = RootMeanSquare(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, words):
        x = self.words(words)
        for norm, mix in self.layers:
            x = x + mix(norm(x))
        return self.head(self.norm(x))


@model("Mamba, selective scan", train="bf16", infer="bf16")
def mamba(s):
    words, vocabulary = tokens(s, 2, 256, 16000)
    return Work(Mamba(vocabulary, s(384, 16), s(4, 2)), (words[:, :-1],), (words[:, 1:],), tokens_loss)


class T5Attention(nn.Module):
    """Unscaled products, with a learned bias that depends on how far apart two words are."""

    def __init__(self, width, heads, buckets=None, causal=False):
        super().__init__()
        self.heads, self.causal, self.buckets = heads, causal, buckets
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.near = nn.Embedding(buckets, heads) if buckets else None

    def bias(self, length, device):
        at = torch.arange(length, device=device)
        apart = at[None] - at[:, None]
        far = torch.minimum(apart.abs(), torch.tensor(self.buckets // 2 - 1, device=device))
        bias = self.near(far + (apart > 0) * (self.buckets // 2)).permute(2, 0, 1)[None]
        return bias.masked_fill(apart > 0, float("-inf")) if self.causal else bias

    def forward(self, x, memory=None):
        rows, length, width = x.shape
        memory = x if memory is None else memory
        q, k, v = (y.view(rows, y.shape[1], self.heads, -1).transpose(1, 2) for y in (self.q(x), self.k(memory), self.v(memory)))
        scores = q @ k.transpose(2, 3)
        if self.near is not None:
            scores = scores + self.bias(length, x.device)
        y = wide(scores).softmax(-1).to(v.dtype) @ v
        return self.out(y.transpose(1, 2).reshape(rows, length, width))


class T5Stack(nn.Module):
    def __init__(self, width, heads, count, cross):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(count):
            parts = [T5Attention(width, heads, 32, causal=cross)] + [T5Attention(width, heads)] * cross
            parts.append(mlp(width, 4 * width, width))
            self.layers.append(nn.ModuleList(nn.ModuleList([RootMeanSquare(width), part]) for part in parts))
        self.norm = RootMeanSquare(width)

    def forward(self, x, memory=None):
        for layer in self.layers:
            for i, (norm, part) in enumerate(layer):
                x = x + (part(norm(x), memory) if memory is not None and i == 1 else part(norm(x)))
        return self.norm(x)


class T5(nn.Module):
    def __init__(self, vocabulary, width, heads, count):
        super().__init__()
        self.words, self.scale = nn.Embedding(vocabulary, width), width ** -0.5
        self.read, self.write = T5Stack(width, heads, count, False), T5Stack(width, heads, count, True)
        for layer in self.modules():
            if isinstance(layer, T5Attention):
                nn.init.normal_(layer.q.weight, std=width ** -1.0)

    def forward(self, source, target):
        return F.linear(self.write(self.words(target), self.read(self.words(source))) * self.scale, self.words.weight)


@model("T5, encoder and decoder", train="bf16", infer="bf16")
def t5(s):
    source, vocabulary = tokens(s, 16, 256, 32128)
    target = torch.randint(vocabulary, (len(source), s(64, 6) + 1))
    return Work(T5(vocabulary, s(512, 16), s(8, 2), s(6, 2)), (source, target[:, :-1]), (target[:, 1:],), tokens_loss)


class Translator(nn.Module):
    """nn.Transformer with padding, as PyTorch's own tutorial of translation has it."""

    def __init__(self, vocabulary, length, width, heads, count):
        super().__init__()
        self.words, self.scale = nn.Embedding(vocabulary, width), width ** 0.5
        nn.init.normal_(self.words.weight, std=width ** -0.5)
        self.register_buffer("places", sinusoids(length, width))
        self.net = nn.Transformer(width, heads, count, count, 4 * width, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def enter(self, words):
        return self.words(words) * self.scale + self.places[:words.shape[1]]

    def forward(self, source, target):
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=target.device).triu(1)
        padding = source == 0
        out = self.net(self.enter(source), self.enter(target), tgt_mask=later, src_key_padding_mask=padding,
                       memory_key_padding_mask=padding)
        return self.head(out)


@model("nn.Transformer, translation", train="bf16", infer="f32", optimizer="adam")
def translator(s):
    source, vocabulary = tokens(s, 64, 63, 16000)
    source = source.clamp(min=1)
    for i, row in enumerate(source):
        row[len(row) - i % (len(row) // 2):] = 0
    target = torch.randint(1, vocabulary, (len(source), s(64, 8) + 1))
    return Work(Translator(vocabulary, s(65, 12), s(512, 16), s(8, 2), s(3, 2)), (source, target[:, :-1]), (target[:, 1:],),
                tokens_loss)
