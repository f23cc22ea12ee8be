"""Whether a model of the zoo computes on rdna what it computes on the CPU, at tiny sizes.

Float64 on the CPU is what is right. How far one may be from it is the model's own answer: as far as PyTorch's kernels of
the same type on the CPU are, or as float64 comes where weights and inputs move by half a unit in that type's last place
(the first rounding that any computation in it makes), whichever is more, FACTOR times; and FLOOR of the result.

Training is followed for three plain steps whose length comes from the first gradient, so that each lowers the loss by
about a tenth: a gradient that is wrong by a share shows as a tenth of that share. (Adam would hide its size.)"""
import torch

import zoo

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9), "adam": lambda p: torch.optim.Adam(p, lr=1e-4),
              "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4)}
FACTOR, DRAWS, STEPS = 4, 3, 3
# Roundings of the result itself, in units in the last place. Under autocast cross_entropy asks for a log_softmax of its
# input's type, on CUDA as on rdna, which rounds each row's loss once; the CPU's autocast does not.
FLOOR = {"f32": 4, "bf16": 0.5, "f16": 0.5}


def moved(values, device, dtype):
    return tuple(value.to(device, dtype if dtype and value.is_floating_point() else None) for value in values)


def settle(work):
    """Gives batch norms the statistics of two pictures. Those that they begin with, 0 and 1, let a deep network's result
    hardly depend on its input, and comparing it would say little."""
    norms = [m for m in work.module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms or work.inputs[0].dim() != 4:
        return
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        work.module.train()(*(x[:2] for x in work.inputs))
    for norm, momentum in zip(norms, usual):
        norm.momentum = momentum


def prepared(model, dtype, mode, device, tiny):
    """The model's work on the device. Training in 16 bits keeps weights of f32, for autocast."""
    torch.manual_seed(0)
    work = model.make((lambda people, little: little) if tiny else (lambda people, little: people))
    if mode == "inference":
        settle(work)
    dtype = TYPES[dtype] if mode == "inference" or dtype == "f64" else None
    work.module.to(device, dtype)
    work.inputs, work.targets = moved(work.inputs, device, dtype), moved(work.targets, device, dtype)
    return work


def spread(length, count):
    """|count| indices at even distances, the first and the last among them."""
    return torch.linspace(0, length - 1, count, dtype=torch.float64).long()


def sample(module, inputs, count=None):
    """What the module gives, as float64 on the CPU: all, or |count| values of it at even distances."""
    with torch.no_grad():
        out = module(*inputs)
    parts = [part for part in (out if isinstance(out, tuple) else (out,)) if part.is_floating_point()]
    flat = torch.cat([part.detach().cpu().double().flatten() for part in parts])
    return flat if count is None or len(flat) <= count else flat[spread(len(flat), count)]


def shaken(work, eps, draw):
    """Weights, inputs and targets times 1 + eps u, with u between -1 and 1."""
    random = torch.Generator().manual_seed(draw)
    shake = lambda x: x * (1 + eps * (2 * torch.rand(x.shape, generator=random, dtype=x.dtype) - 1))  # noqa: E731
    with torch.no_grad():
        for weight in work.module.parameters():
            weight.copy_(shake(weight))
    work.inputs, work.targets = (tuple(shake(x) if x.is_floating_point() else x for x in values)
                                 for values in (work.inputs, work.targets))


def descended(work, device, dtype):
    """The losses before and after each of the steps."""
    weights = [p for p in work.module.parameters() if p.requires_grad]
    narrow, length, losses = dtype in ("bf16", "f16"), None, []
    for _ in range(STEPS + 1):
        with torch.autocast(device, TYPES[dtype] if narrow else torch.bfloat16, enabled=narrow):
            loss = work.training_loss(work.inputs, work.targets)
        losses.append(loss.detach().cpu().double())
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            length = length or 0.1 * abs(losses[0].item()) / sum(slope.double().square().sum().item() for slope in slopes)
            for weight, slope in zip(weights, slopes):
                weight -= length * slope
    return torch.stack(losses)


def computed(model, mode, dtype, device, shake=None, change=None):
    work = prepared(model, dtype, mode, device, True)
    if shake:
        shaken(work, *shake)
    if change:
        change(work.module)
    return descended(work, device, dtype) if mode == "training" else sample(work.module.eval(), work.inputs)


def distance(a, b):
    """Of |a| from |b|, relative to |b|."""
    return ((a - b).norm() / b.norm()).item()


def off_and_allowed(model, mode, dtype, change=None):
    """How far rdna is from float64, and how far it may be. |change| spoils the module on rdna, to see that this is seen."""
    eps = torch.finfo(TYPES[dtype]).eps
    right = computed(model, mode, "f64", "cpu")
    scale = max(distance(other, right) for other in (
        computed(model, mode, dtype, "cpu"),
        *(computed(model, mode, "f64", "cpu", (eps / 2, draw)) for draw in range(DRAWS))))
    off = distance(computed(model, mode, dtype, "rdna", change=change), right)
    return off, FACTOR * scale + FLOOR[dtype] * eps
