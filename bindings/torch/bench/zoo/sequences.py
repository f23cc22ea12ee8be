"""Speech, sound, series and what recurrent networks do with words."""
import torch
import torch.nn.functional as F
from torch import nn

from . import Work, model
from .blocks import Attention, Layer, Residual, mlp, sinusoids, tokens_loss, wide


class Recurrent(nn.Module):
    """Words, a recurrent network, and a word or a mark for each."""

    def __init__(self, kind, vocabulary, width, count, outputs, both=False):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.net = kind(width, width, count, batch_first=True, bidirectional=both)
        self.head = nn.Linear(width * (1 + both), outputs)

    def forward(self, words):
        return self.head(self.net(self.words(words))[0])


@model("LSTM, language")
def lstm(s):
    vocabulary = s(10000, 40)
    words = torch.randint(vocabulary, (s(64, 2), s(64, 6) + 1))
    return Work(Recurrent(nn.LSTM, vocabulary, s(512, 8), 2, vocabulary), (words[:, :-1],), (words[:, 1:],), tokens_loss)


@model("bidirectional LSTM, tagger", infer="f16")
def tagger(s):
    vocabulary, tags = s(20000, 40), s(18, 4)
    words = torch.randint(vocabulary, (s(64, 2), s(60, 6)))
    return Work(Recurrent(nn.LSTM, vocabulary, s(256, 8), 2, tags, True), (words,), (torch.randint(tags, words.shape),),
                tokens_loss)


class Pair(nn.Module):
    """A GRU reads packed rows of unlike lengths; another writes a word at a time and looks back at them."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.read, self.write = nn.GRU(width, width, batch_first=True), nn.GRUCell(2 * width, width)
        self.head = nn.Linear(2 * width, vocabulary)

    def forward(self, source, lengths, target):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(source), lengths.cpu(), batch_first=True)
        memory, state = self.read(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True, total_length=source.shape[1])
        hidden = torch.arange(source.shape[1], device=source.device) >= lengths[:, None]
        state, out = state[0], []
        for word in self.words(target).unbind(1):
            scores = torch.einsum("bd,bld->bl", state, memory).masked_fill(hidden, -1e4)
            seen = torch.einsum("bl,bld->bd", wide(scores).softmax(-1).to(memory.dtype), memory)
            state = self.write(torch.cat([word, seen.to(word.dtype)], 1), state)
            out.append(self.head(torch.cat([state, seen], 1)))
        return torch.stack(out, 1)


@model("GRU, sequence to sequence", optimizer="adam")
def pair(s):
    rows, vocabulary = s(64, 3), s(8000, 30)
    source, target = torch.randint(vocabulary, (rows, s(40, 6))), torch.randint(vocabulary, (rows, s(20, 4) + 1))
    lengths = torch.linspace(source.shape[1], 2, rows).long()
    return Work(Pair(vocabulary, s(512, 8)), (source, lengths, target[:, :-1]), (target[:, 1:],), tokens_loss)


class Wave(nn.Module):
    """Samples of sound from those before, in windows whose gaps double; each layer adds to what leaves."""

    def __init__(self, levels, width, repeats, depth):
        super().__init__()
        gaps = [2 ** i for _ in range(repeats) for i in range(depth)]
        self.enter, self.gaps = nn.Conv1d(levels, width, 1), gaps
        self.windows = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=gap) for gap in gaps)
        self.skip = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in gaps)
        self.stay = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in gaps[1:])
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, levels, 1))

    def forward(self, x):
        x, total = self.enter(x), 0
        for gap, window, stay, skip in zip(self.gaps, self.windows, [*self.stay, None], self.skip):
            a, b = window(F.pad(x, (gap, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(y)
            if stay is not None:
                x = x + stay(y)
        return self.out(total)


@model("WaveNet, 1-D dilated", optimizer="adam")
def wavenet(s):
    levels, rows, length = s(256, 8), s(8, 2), s(4096, 20)
    sound = torch.randint(levels, (rows, length + 1))
    return Work(Wave(levels, s(64, 6), s(2, 1), s(10, 3)), (F.one_hot(sound[:, :-1], levels).float().transpose(1, 2),),
                (sound[:, 1:],))


class Conformer(nn.Module):
    """Half a body, attention, a window over time, half a body."""

    def __init__(self, width, heads, window):
        super().__init__()
        half = lambda: nn.Sequential(nn.LayerNorm(width), mlp(width, 4 * width, width, act=nn.SiLU))  # noqa: E731
        self.first, self.last, self.norm1, self.norm2 = half(), half(), nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.end = Attention(width, heads), nn.LayerNorm(width)
        self.window = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1),
                                    nn.Conv1d(width, width, window, padding=window // 2, groups=width),
                                    nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1))

    def forward(self, x):
        x = x + self.first(x) / 2
        x = x + self.attention(self.norm1(x))
        x = x + self.window(self.norm2(x).transpose(1, 2)).transpose(1, 2)
        return self.end(x + self.last(x) / 2)


class Speech(nn.Module):
    """Spectra become a quarter as many, then letters at each place."""

    def __init__(self, bands, width, body, letters):
        super().__init__()
        self.shrink = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU())
        self.enter, self.body, self.head = nn.Linear(8 * bands, width), body, nn.Linear(width, letters)

    def forward(self, x):  # rows, length, bands
        x = self.shrink(x[:, None]).transpose(1, 2).flatten(2)
        x = self.body(self.enter(x))
        return self.head(x[0] if isinstance(x, tuple) else x)


def letters_loss(out, letters, lengths):
    places = torch.full_like(lengths, out.shape[1])
    return F.ctc_loss(wide(out).log_softmax(-1).transpose(0, 1), letters, places, lengths)


def spoken(s, rows):
    rows, length, bands, letters = s(rows, 2), s(800, 32), s(80, 8), s(32, 6)
    lengths = torch.randint(2, s(100, 4), (rows,))
    return torch.randn(rows, length, bands), torch.randint(1, letters, (rows, int(lengths.max()))), lengths, bands, letters


@model("Conformer, CTC", train="bf16", infer="f16")
def conformer(s):
    sound, letters, lengths, bands, count = spoken(s, 16)
    width = s(256, 16)
    body = nn.Sequential(*(Conformer(width, s(4, 2), s(31, 5)) for _ in range(s(8, 2))))
    return Work(Speech(bands, width, body, count), (sound,), (letters, lengths), letters_loss)


@model("convolutions and GRU, CTC")
def deep_speech(s):
    sound, letters, lengths, bands, count = spoken(s, 16)
    width = s(512, 16)
    body = nn.GRU(width, width // 2, s(3, 2), batch_first=True, bidirectional=True)
    return Work(Speech(bands, width, body, count), (sound,), (letters, lengths), letters_loss)


class Whisper(nn.Module):
    def __init__(self, bands, width, heads, count, vocabulary, length, words):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv1d(bands, width, 3, padding=1), nn.GELU(), nn.Conv1d(width, width, 3, 2, 1), nn.GELU())
        self.register_buffer("places", sinusoids(length // 2, width))
        self.read = nn.Sequential(*(Layer(width, heads) for _ in range(count)), nn.LayerNorm(width))
        self.words, self.order = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(words, width) * 0.02)
        nn.init.normal_(self.words.weight, std=0.02)
        self.write = nn.ModuleList(Layer(width, heads, causal=True, cross=True) for _ in range(count))
        self.norm = nn.LayerNorm(width)

    def forward(self, sound, words):
        memory = self.read(self.enter(sound).transpose(1, 2) + self.places)
        x = self.words(words) + self.order
        for layer in self.write:
            x = layer(x, memory)
        return F.linear(self.norm(x), self.words.weight)


@model("Whisper, speech to text", train="bf16", infer="f16")
def whisper(s):
    rows, bands, length, vocabulary = s(8, 2), s(80, 6), s(3000, 20), s(51865, 40)
    words = torch.randint(vocabulary, (rows, s(64, 6) + 1))
    return Work(Whisper(bands, s(512, 16), s(8, 2), s(6, 2), vocabulary, length, words.shape[1] - 1),
                (torch.randn(rows, bands, length), words[:, :-1]), (words[:, 1:],), tokens_loss)


class Causal(nn.Conv1d):
    """A window that sees the past only."""

    def forward(self, x):
        return super().forward(F.pad(x, ((self.kernel_size[0] - 1) * self.dilation[0], 0)))


@model("temporal convolutions", optimizer="adam")
def temporal(s):
    width, rows, length = s(128, 6), s(64, 2), s(1024, 20)
    weighted = lambda a, b, gap: nn.utils.parametrizations.weight_norm(Causal(a, b, 3, dilation=gap))  # noqa: E731
    layers = []
    for i in range(s(8, 3)):
        inputs = width if i else 2
        layers.append(Residual(nn.Sequential(weighted(inputs, width, 2 ** i), nn.ReLU(), weighted(width, width, 2 ** i), nn.ReLU()),
                               None if i else nn.Conv1d(inputs, width, 1), nn.ReLU()))
    return Work(nn.Sequential(*layers, nn.Conv1d(width, 1, 1)), (torch.rand(rows, 2, length),), (torch.rand(rows, 1, length),),
                F.mse_loss)
