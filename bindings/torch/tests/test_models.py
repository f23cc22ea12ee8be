"""Small models of the common families train two steps on rdna as they do on the CPU, and nothing falls back."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn


@pytest.fixture(autouse=True)
def nothing_falls_back():
    before = torch.rdna.fallback_mode()
    torch.rdna.set_fallback_mode("error")
    yield
    torch.rdna.set_fallback_mode(before)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.skip = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
        if stride == 1 and inputs == 4 * width:
            self.skip = nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        self.stages = nn.Sequential(Bottleneck(8, 4, 1), Bottleneck(16, 4, 1), Bottleneck(16, 8, 2))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(32, 10)

    def forward(self, x, y):
        return F.cross_entropy(self.head(torch.flatten(self.pool(self.stages(self.stem(x))), 1)), y, label_smoothing=0.1)

    @staticmethod
    def batch():
        return torch.randn(4, 3, 32, 32), torch.randint(10, (4,))


class SelfAttention(nn.Module):
    """With |kv_heads| heads of keys and values; |rotary| as in Llama."""

    def __init__(self, width, heads, kv_heads=None, causal=True, rotary=False, bias=True):
        super().__init__()
        self.heads, self.kv_heads, self.causal, self.rotary = heads, kv_heads or heads, causal, rotary
        self.d = width // heads
        self.qkv = nn.Linear(width, (heads + 2 * self.kv_heads) * self.d, bias)
        self.out, self.drop = nn.Linear(width, width, bias), nn.Dropout(0.0)

    def forward(self, x, mask=None):
        b, t, w = x.shape
        q, k, v = self.qkv(x).split([w, self.kv_heads * self.d, self.kv_heads * self.d], dim=2)
        q, k, v = (z.view(b, t, -1, self.d).transpose(1, 2) for z in (q, k, v))
        if self.rotary:
            q, k = rotate(q), rotate(k)
        k, v = (z.repeat_interleave(self.heads // self.kv_heads, dim=1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.drop(self.out(y.transpose(1, 2).reshape(b, t, w)))


def rotate(x):
    t, d = x.shape[-2:]
    angle = torch.outer(torch.arange(t, device=x.device).float(),
                        10000 ** (-torch.arange(0, d, 2, device=x.device).float() / d))
    cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
    a, b = x.chunk(2, dim=-1)
    return (x.float() * cos + torch.cat([-b, a], -1).float() * sin).type_as(x)


class GPT2(nn.Module):
    def __init__(self, vocabulary=61, width=32, length=16, heads=4, layers=2):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(0.0)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "attention": SelfAttention(width, heads), "norm2": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)),
        }) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight
        nn.init.normal_(self.token.weight, std=(0.32 / width) ** 0.5)

    def forward(self, ids):
        x = self.drop(self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device)))
        for block in self.blocks:
            x = x + block["attention"](block["norm1"](x))
            x = x + block["mlp"](block["norm2"](x))
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    @staticmethod
    def batch():
        return (torch.randint(61, (3, 16)),)


class BERT(nn.Module):
    """Masked words and next sentence; padding is hidden by a mask."""

    def __init__(self, vocabulary=61, width=32, length=16):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width, padding_idx=0)
        self.place, self.kind = nn.Embedding(length, width), nn.Embedding(2, width)
        self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.0)
        self.register_buffer("places", torch.arange(length)[None])
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "attention": SelfAttention(width, 4, causal=False), "norm1": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
            "norm2": nn.LayerNorm(width)}) for _ in range(2))
        self.pooler, self.next = nn.Linear(width, width), nn.Linear(width, 2)
        self.words = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, ids, kinds, words, following):
        x = self.drop(self.norm(self.token(ids) + self.place(self.places) + self.kind(kinds)))
        hidden = (1.0 - (ids != 0)[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for block in self.blocks:
            x = block["norm1"](x + block["attention"](x, hidden))
            x = block["norm2"](x + block["mlp"](x))
        first = torch.tanh(self.pooler(x[:, 0]))
        return (F.cross_entropy(self.words(x).view(-1, 61), words.view(-1), ignore_index=-100)
                + F.cross_entropy(self.next(first), following))

    @staticmethod
    def batch():
        ids = torch.randint(1, 61, (3, 16))
        ids[1, 9:] = 0
        words = torch.where(torch.rand(3, 16) < 0.3, ids, -100)
        words[0, 0] = 5
        return ids, torch.randint(2, (3, 16)), words, torch.randint(2, (3,))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        return self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x)


class Llama(nn.Module):
    def __init__(self, vocabulary=61, width=32):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm1": RMSNorm(width), "attention": SelfAttention(width, 4, 2, rotary=True, bias=False),
            "norm2": nn.RMSNorm(width), "gate": nn.Linear(width, 48, False), "up": nn.Linear(width, 48, False),
            "down": nn.Linear(48, width, False)}) for _ in range(2))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, vocabulary, False)

    def forward(self, ids):
        x = self.token(ids)
        for block in self.blocks:
            x = x + block["attention"](block["norm1"](x))
            y = block["norm2"](x)
            x = x + block["down"](F.silu(block["gate"](y)) * block["up"](y))
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits[:, :-1].reshape(-1, 61), ids[:, 1:].reshape(-1))

    @staticmethod
    def batch():
        return (torch.randint(61, (3, 16)),)


class ViT(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.first, self.place = nn.Parameter(torch.randn(1, 1, width) * 0.02), nn.Parameter(torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, activation="gelu", batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x, y):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1) + self.place
        return F.cross_entropy(self.head(self.norm(self.encoder(x)[:, 0])), y)

    batch = ResNet.batch


class UNet(nn.Module):
    """A denoiser: group norms, a time embedding, skips, both ways of going up."""

    def __init__(self):
        super().__init__()
        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.SiLU(),
                                 nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.SiLU())
        self.time = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16))
        self.down1, self.down2, self.middle = block(1, 8), block(8, 16), block(16, 16)
        self.halve = nn.Conv2d(8, 8, 3, 2, 1)
        self.up2, self.up1 = block(32, 8), block(16, 8)
        self.rise2, self.rise1 = nn.ConvTranspose2d(16, 16, 2, 2), nn.Conv2d(8, 8, 1)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x, t):
        frequency = torch.exp(-math.log(1e4) * torch.arange(4, device=x.device) / 4)
        angle = t[:, None] * frequency
        e = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        a = self.down1(x)
        b = self.down2(self.halve(a))
        c = self.middle(F.avg_pool2d(b, 2)) + e[:, :, None, None]
        c = self.up2(torch.cat([self.rise2(c), b], 1))
        c = self.up1(torch.cat([self.rise1(F.interpolate(c, scale_factor=2, mode="nearest")), a], 1))
        return F.mse_loss(self.out(c), x)

    @staticmethod
    def batch():
        return torch.randn(2, 1, 16, 16), torch.rand(2) * 100


OPTIMIZERS = {
    "ResNet": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True),
    "BERT": lambda p: torch.optim.AdamW(p, lr=3e-3, eps=1e-4, fused=True),
    "UNet": lambda p: torch.optim.Adam(p, lr=1e-3, eps=1e-4),
}


def trained(model, batch, device, amp):
    """The losses of three steps, and the gradients of the first."""
    model = copy.deepcopy(model).to(device)
    batch = [t.to(device) for t in batch]
    # Adam's first step is the gradient's sign, be it ever so small: a large epsilon lets small ones stay small
    optimizer = OPTIMIZERS.get(type(model).__name__, lambda p: torch.optim.AdamW(p, lr=3e-3, eps=1e-4))(model.parameters())
    found, gradients = [], {}
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=amp):
            loss = model(*batch)
        loss.backward()
        gradients = gradients or {name: p.grad.double().cpu() for name, p in model.named_parameters()}
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.detach().float().cpu())
    return torch.stack(found), gradients


BF16 = torch.finfo(torch.bfloat16).eps
LAYERS = 16  # or so: each adds a rounding to a gradient, in bf16 at other places than the CPU's kernels do


def off(found, expected):
    """The distance of all these tensors, as a share of how large they are."""
    distance = sum((a - b).square().sum() for a, b in zip(found, expected, strict=True))
    return (distance / sum(b.square().sum() for b in expected)).sqrt()


def close(kind, found, expected, amp):
    torch.testing.assert_close(found[0], expected[0], rtol=BF16 if amp else 2e-4, atol=0)
    found, expected = found[1], expected[1]
    most = LAYERS * BF16 if amp else 2e-5
    assert off(found.values(), expected.values()) <= most, "the gradients are off"
    # of batch norms over few values most cancels: in bf16 some gradients are mostly noise, on the CPU too
    most *= 3 if amp and kind is ResNet else 1
    for name in expected:
        assert off([found[name]], [expected[name]]) <= most, f"the gradient of {name} is off"


KINDS = [ResNet, GPT2, BERT, Llama, ViT, UNet]


@pytest.mark.parametrize("amp", [False, True], ids=["f32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_as_on_the_cpu(kind, amp):
    torch.manual_seed(0)
    model, batch = kind(), kind.batch()
    expected, found = trained(model, batch, "cpu", amp), trained(model, batch, "rdna", amp)
    assert expected[0][-1] < expected[0][0]
    close(kind, found, expected, amp)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_wrong_would_be_seen(kind):
    torch.manual_seed(0)
    found, gradients = trained(kind(), kind.batch(), "cpu", True)
    close(kind, (found, gradients), (found, gradients), True)
    for spoil in (torch.zeros_like, lambda g: g * 0.6, lambda g: g.roll(1)):  # lost, too small, in wrong places
        wrong = {name: spoil(g) if i % 2 else g for i, (name, g) in enumerate(gradients.items())}
        with pytest.raises(AssertionError, match="the gradient"):
            close(kind, (found, wrong), (found, gradients), True)


def test_shared_parameters_stay_shared():
    model = GPT2()
    for device in ("rdna", "cpu"):
        model.to(device)
        assert model.head.weight is model.token.weight and model.head.weight.device.type == device
    assert len(list(model.half().parameters())) == len(list(GPT2().parameters()))


@pytest.mark.parametrize("kind", [GPT2, ViT])
def test_dropout_and_the_gradient_scaler_stay_on_the_device(kind):
    torch.manual_seed(0)
    model = kind().to("rdna")
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.1
    batch = [t.to("rdna") for t in kind.batch()]
    optimizer, scaler = torch.optim.AdamW(model.parameters(), lr=3e-3), torch.amp.GradScaler("rdna", init_scale=256)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("rdna", torch.float16):
            loss = model(*batch)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        assert torch.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.0)).item()
        scaler.step(optimizer)
        scaler.update()
    assert math.isfinite(loss.item())
