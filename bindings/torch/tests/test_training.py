"""Training on rdna does what training on the CPU does, and learns."""

import copy
import os

import pytest
import torch
from test_device import IMPORT, emulated, run
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.head = nn.Linear(16 * 2 * 2, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.relu(self.conv2(x))
        return self.head(x.flatten(1))


class SmallTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(17, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 17)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.layer(self.embed(ids), src_mask=mask, is_causal=True))).flatten(0, 1)


def batches(model):
    generator = torch.Generator().manual_seed(3)
    for _ in range(4):
        if isinstance(model, SmallCNN):
            yield torch.randn(6, 1, 8, 8, generator=generator), torch.randint(10, (6,), generator=generator)
        else:
            ids = torch.randint(17, (3, 9), generator=generator)
            yield ids[:, :-1], ids[:, 1:].flatten()


# The adaptive ones divide a gradient by its size: an epsilon above what is rounding keeps gradients that are nothing
# else from deciding where a weight goes.
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "fused sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-3, eps=1e-3),
    "fused adamw": lambda p: torch.optim.AdamW(p, 1e-3, eps=1e-3, fused=True),
    "fused adam": lambda p: torch.optim.Adam(p, 1e-3, eps=1e-3, weight_decay=1e-2, amsgrad=True, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3, eps=1e-3),
    "fused adagrad": lambda p: torch.optim.Adagrad(p, 1e-2, lr_decay=0.1, weight_decay=1e-3, eps=1e-3, fused=True),
}


def train(model, optimizer, device):
    model = copy.deepcopy(model).to(device)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    losses = []
    for x, y in batches(model):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, {k: v.detach().cpu() for k, v in model.state_dict().items()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", [SmallCNN, SmallTransformer])
def test_training_follows_the_cpu(kind, optimizer):
    torch.manual_seed(0)
    model = kind()
    expected, weights = train(model, optimizer, "cpu")
    torch.rdna.reset_fallback_report()
    losses, mine = train(model, optimizer, "rdna")
    assert torch.rdna.fallback_report() == {}
    torch.testing.assert_close(losses, expected, rtol=2e-4, atol=2e-4)
    for name, value in weights.items():
        torch.testing.assert_close(mine[name], value, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_fused_steps_are_each_parameters_own(kind, amsgrad):
    """A parameter without a gradient is left out; how often each was taken is read on the device alone."""
    torch.manual_seed(0)
    shapes = [(5,), (0,), (70, 130), ()]
    values = [torch.randn(shape) for shape in shapes]
    gradients = [[torch.randn(shape) for shape in shapes] for _ in range(6)]

    def run(device):
        parameters = [v.to(device).requires_grad_() for v in values]
        optimizer = kind(parameters, 0.1, weight_decay=0.1, amsgrad=amsgrad, fused=True)
        for number, step in enumerate(gradients):
            for k, (p, g) in enumerate(zip(parameters, step)):
                p.grad = None if (number + k) % 3 == 0 else g.to(device)
            activities = {ProfilerActivity.CPU, ProfilerActivity.PrivateUse1} & torch.profiler.supported_activities()
            with profile(activities=activities) as seen:  # of 2.6 not the copies
                optimizer.step()
            assert "copy to host" not in {e.name for e in seen.events()}
        return [p.detach().cpu() for p in parameters]

    torch.rdna.reset_fallback_report()
    torch.testing.assert_close(run("rdna"), run("cpu"), rtol=1e-5, atol=1e-5)
    assert torch.rdna.fallback_report() == {}


@pytest.mark.parametrize("lr_decay", [0.0, 0.2])
@pytest.mark.parametrize("maximize", [False, True])
def test_fused_adagrad_with_a_scale(lr_decay, maximize):
    """Gradients are unscaled where they are, and a step in which one was not finite changes nothing."""
    torch.manual_seed(0)
    p, g, total = torch.randn(70, 3), torch.randn(70, 3), torch.rand(70, 3)
    at = [t.to("rdna") for t in (p, 8 * g, total)]
    step = torch.tensor(3.0, device="rdna")

    def run(found, rate):
        torch._fused_adagrad_([at[0]], [at[1]], [at[2]], [step], lr=rate, lr_decay=lr_decay, weight_decay=0.1, eps=1e-3, maximize=maximize,
                              grad_scale=torch.tensor(8.0, device="rdna"), found_inf=torch.tensor(found, device="rdna"))

    run(1.0, 0.05)
    assert torch.equal(at[0].cpu(), p) and torch.equal(at[1].cpu(), 8 * g) and torch.equal(at[2].cpu(), total)
    run(0.0, torch.tensor(0.05))
    slope = (-g if maximize else g) + 0.1 * p
    total = total + slope**2
    want = p - 0.05 / (1 + 2 * lr_decay) * slope / (total.sqrt() + 1e-3)
    for ours, theirs in zip(at, (want, g, total)):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_mixed_precision(dtype):
    torch.manual_seed(0)
    model = SmallCNN().to("rdna")
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    scaler = torch.amp.GradScaler("rdna", init_scale=2.0**10, growth_interval=2, enabled=dtype == torch.float16)
    first = last = None
    x, y = next(batches(model))
    for _ in range(8):
        optimizer.zero_grad()
        with torch.autocast("rdna", dtype=dtype):
            out = model(x.to("rdna"))
            assert out.dtype == dtype
            loss = F.cross_entropy(out, y.to("rdna"))
            assert loss.dtype == torch.float32
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        first, last = first or loss.item(), loss.item()
    assert last < first
    if dtype == torch.float16:
        assert scaler.get_scale() == 2.0**14
        for p in model.parameters():
            p.grad = torch.full_like(p, float("inf"))
        before = [p.detach().cpu() for p in model.parameters()]
        scaler.scale(torch.zeros((), device="rdna"))
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 2.0**13
        assert all(torch.equal(a, p.detach().cpu()) for a, p in zip(before, model.parameters()))


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "hooks"])
@pytest.mark.parametrize("preserve", [True, False], ids=["preserved", "drawn again"])
def test_what_is_computed_again_draws_the_same_numbers(reentrant, preserve):
    torch.manual_seed(0)
    x = torch.randn(4, 64, device="rdna", requires_grad=True)
    drop, options = nn.Dropout(0.5), {"use_reentrant": reentrant, "preserve_rng_state": preserve}
    y = x
    for _ in range(2):  # each block has numbers of its own
        y = checkpoint(lambda t: drop(t) * torch.rand_like(t), y, **options)
    between, state = torch.rand(3, device="rdna"), torch.rdna.get_rng_state()
    (gradient,) = torch.autograd.grad(y.sum(), x) if not reentrant else (y.sum().backward(), x.grad)[1:]
    # it is linear in x: the gradient times x is the result, where the numbers are the same
    assert torch.allclose(gradient * x, y, atol=1e-6) == preserve
    assert torch.equal(torch.rdna.get_rng_state(), state) == preserve
    assert len({*between.tolist()} & {*torch.rand(3, device="rdna").tolist()}) == 0


def test_what_is_computed_again_draws_the_same_numbers_on_each_device():
    done = run(IMPORT + """
from torch.utils.checkpoint import checkpoint
a, b = (torch.ones(64, device=f'rdna:{i}', requires_grad=True) for i in range(2))
for i in range(2): torch.rdna.default_generators[i].manual_seed(i)
f = lambda a, b: (torch.dropout(a, 0.5, True), torch.dropout(b, 0.5, True))
for reentrant in (True, False):
    a.grad = b.grad = None
    y, z = checkpoint(f, a, b, use_reentrant=reentrant)
    y.sum().backward(retain_graph=True)  # one after the other: each device's gradients have a thread of their own
    z.sum().backward()
    print(torch.equal(y, a.grad), torch.equal(z, b.grad), torch.equal(y.cpu(), z.cpu()))
""", PYTHONPATH=os.environ.get("PYTHONPATH", ""), **emulated("gfx1100,gfx1030"))
    assert (done.returncode, done.stdout) == (0, "True True False\n" * 2), done.stdout + done.stderr


def test_digits_are_learned():
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    torch.manual_seed(0)
    order = torch.randperm(len(x))
    x, y = x[order].to("rdna"), y[order].to("rdna")
    train_x, train_y, test_x, test_y = x[:1400], y[:1400], x[1400:], y[1400:]
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                          nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Dropout(0.25), nn.Linear(512, 10)).to("rdna")
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, fused=True)
    for _ in range(10):
        for batch in torch.randperm(1400, device="rdna").split(100):
            optimizer.zero_grad()
            F.cross_entropy(model(train_x[batch]), train_y[batch]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(test_x).argmax(1) == test_y).float().mean().item()
    assert right >= 0.97, right
