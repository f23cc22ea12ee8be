#!/usr/bin/env python3
"""What a call of each of 200 operators costs its thread, beside PyTorch's own CPU: tensors of 64 values, no kernel behind them.

    RDNA_DRIVER=null python bindings/torch/bench/calls.py [--only equal,median] [--above 3]

small.py measures the commonest thirty on a card. This one asks of the many what the way to a launch takes, so it wants the
device that computes nothing (what comes back from it are zeros), and both sides are in one process by turns, where a
busy machine slows both alike. The ratio is of the least of the rounds' times of the calling thread; that of PyTorch's
side has the arithmetic of 64 values in it."""
import argparse
import os
import sys
import time

import torch
from torch.nn import functional as F

import sides

UNARY = ("abs neg sign floor ceil round trunc frac exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan sinh cosh tanh asin "
         "acos atan asinh acosh atanh erf sigmoid relu isnan isinf isfinite logical_not nan_to_num deg2rad").split()
BINARY = ("add sub mul div maximum minimum fmod remainder atan2 eq ne lt le gt ge logical_and logical_or logical_xor hypot logaddexp copysign "
          "nextafter heaviside floor_divide xlogy fmax fmin pow").split()
REDUCE = "sum mean prod amax amin argmax argmin std var norm any all count_nonzero median nansum".split()


def calls(device):
    """Name to a function of no arguments; the same names for each device."""
    random = torch.Generator().manual_seed(0)
    x, y, p = ((torch.rand(8, 8, generator=random) + 0.1).to(device) for _ in range(3))
    b, image = torch.rand(4, 8, 8, generator=random).to(device), torch.rand(1, 1, 8, 8, generator=random).to(device)
    i, long = torch.arange(8, device=device), torch.arange(64, device=device).view(8, 8) % 8
    row, mask, flat = y[0].contiguous(), x > 0.5, x.reshape(64).contiguous()
    kernel, table, cut = torch.rand(1, 1, 3, 3, generator=random).to(device), torch.rand(9, 8, generator=random).to(device), torch.arange(0.0, 1, 0.125, device=device)
    found = {name: lambda f=getattr(torch, name): f(x) for name in UNARY}
    found.update({name: lambda f=getattr(torch, name): f(x, y) for name in BINARY})
    found.update({name: lambda f=getattr(torch, name): f(x) for name in REDUCE})
    found.update({f"{name} of rows": lambda f=getattr(torch, name): f(x, 1) for name in ("sum", "mean", "amax", "argmax", "std", "median", "logsumexp", "all")})
    found.update({
        "add of a row": lambda: x + row, "mul by a number": lambda: x * 2, "add_": lambda: p.add_(0), "pow 2": lambda: x ** 2, "pow -1.5": lambda: x ** -1.5,
        "where": lambda: torch.where(mask, x, y), "where of numbers": lambda: torch.where(mask, 1.0, 0.0), "clamp": lambda: x.clamp(0, 1), "lerp": lambda: torch.lerp(x, y, 0.5),
        "addcmul": lambda: torch.addcmul(x, x, y), "addcdiv": lambda: torch.addcdiv(x, x, y), "masked_fill": lambda: x.masked_fill(mask, 0), "equal": lambda: torch.equal(x, y),
        "allclose": lambda: torch.allclose(x, x), "isclose": lambda: torch.isclose(x, y), "to f64": lambda: x.double(), "to bf16": lambda: x.bfloat16(), "to int": lambda: x.int(),
        "clone": lambda: x.clone(), "contiguous": lambda: x.t().contiguous(), "copy_": lambda: p.copy_(x), "fill_": lambda: p.fill_(1), "zero_": lambda: p.zero_(),
        "zeros": lambda: torch.zeros(8, 8, device=device), "full": lambda: torch.full((8, 8), 2.0, device=device), "empty": lambda: torch.empty(8, 8, device=device),
        "arange": lambda: torch.arange(64, device=device), "linspace": lambda: torch.linspace(0, 1, 64, device=device), "eye": lambda: torch.eye(8, device=device),
        "ones_like": lambda: torch.ones_like(x), "tril": lambda: x.tril(), "triu": lambda: x.triu(), "diag": lambda: row.diag(), "diag_embed": lambda: x.diag_embed(),
        "cumsum": lambda: x.cumsum(1), "cumprod": lambda: x.cumprod(1), "cummax": lambda: x.cummax(1), "logcumsumexp": lambda: x.logcumsumexp(1), "diff": lambda: x.diff(),
        "sort": lambda: x.sort(), "argsort": lambda: x.argsort(), "topk": lambda: x.topk(3), "kthvalue": lambda: x.kthvalue(3), "mode": lambda: long.mode(), "unique": lambda: long.unique(),
        "searchsorted": lambda: torch.searchsorted(cut, x), "bucketize": lambda: torch.bucketize(x, cut), "histc": lambda: x.histc(10), "bincount": lambda: i.bincount(),
        "index": lambda: x[i], "index of a mask": lambda: x[mask], "index_put_": lambda: p.index_put_((i,), row), "index_select": lambda: x.index_select(0, i), "index_add": lambda: x.index_add(0, i, y),
        "index_copy": lambda: x.index_copy(0, i, y), "index_fill": lambda: x.index_fill(0, i, 0), "gather": lambda: x.gather(1, long), "scatter": lambda: x.scatter(1, long, y),
        "scatter_add": lambda: x.scatter_add(1, long, y), "take": lambda: x.take(i), "masked_select": lambda: x.masked_select(mask), "nonzero": lambda: x.nonzero(), "one_hot": lambda: F.one_hot(i, 8),
        "cat": lambda: torch.cat((x, y)), "stack": lambda: torch.stack((x, y)), "flip": lambda: x.flip(0), "roll": lambda: x.roll(1, 0), "repeat": lambda: x.repeat(2, 1),
        "repeat_interleave": lambda: x.repeat_interleave(2, 0), "rot90": lambda: x.rot90(), "pad": lambda: F.pad(x, (1, 1)), "view": lambda: x.view(64), "slice": lambda: x[:, 1:3],
        "transpose": lambda: x.t(), "expand": lambda: row.expand(8, 8), "unfold": lambda: F.unfold(image, 3), "fold": lambda: F.fold(torch.empty(1, 9, 36, device=device), (8, 8), 3),
        "split": lambda: x.split(2), "mm": lambda: x @ y, "mv": lambda: x @ row, "dot": lambda: flat @ flat, "bmm": lambda: b @ b, "addmm": lambda: torch.addmm(row, x, y),
        "baddbmm": lambda: torch.baddbmm(b, b, b), "outer": lambda: torch.outer(row, row), "einsum": lambda: torch.einsum("ij,kj->ik", x, y), "linear": lambda: F.linear(x, y, row),
        "bilinear": lambda: F.bilinear(x, y, b, None), "cdist": lambda: torch.cdist(x, y), "cross": lambda: torch.linalg.cross(x[:, :3], y[:, :3]), "trace": lambda: x.trace(), "renorm": lambda: x.renorm(2, 0, 1.0),
        "conv2d": lambda: F.conv2d(image, kernel), "max_pool2d": lambda: F.max_pool2d(image, 2), "avg_pool2d": lambda: F.avg_pool2d(image, 2), "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(image, 2),
        "interpolate": lambda: F.interpolate(image, scale_factor=2), "pixel_shuffle": lambda: F.pixel_shuffle(b.view(1, 4, 8, 8), 2), "grid_sample": lambda: F.grid_sample(image, b[:1, :, :2].view(1, 8, 1, 2), align_corners=False),
        "embedding": lambda: F.embedding(i, table), "softmax": lambda: x.softmax(1), "log_softmax": lambda: x.log_softmax(1), "layer_norm": lambda: F.layer_norm(x, (8,)),
        "rms_norm": lambda: F.rms_norm(x, (8,)), "group_norm": lambda: F.group_norm(b, 2), "batch_norm": lambda: F.batch_norm(x, None, None, training=True), "normalize": lambda: F.normalize(x),
        "gelu": lambda: F.gelu(x), "silu": lambda: F.silu(x), "elu": lambda: F.elu(x), "leaky_relu": lambda: F.leaky_relu(x), "softplus": lambda: F.softplus(x), "hardswish": lambda: F.hardswish(x),
        "mish": lambda: F.mish(x), "glu": lambda: F.glu(x), "prelu": lambda: F.prelu(x, row[:1]), "attention": lambda: F.scaled_dot_product_attention(b, b, b), "cross_entropy": lambda: F.cross_entropy(x, i),
        "mse_loss": lambda: F.mse_loss(x, y), "l1_loss": lambda: F.l1_loss(x, y), "smooth_l1_loss": lambda: F.smooth_l1_loss(x, y), "bce": lambda: F.binary_cross_entropy_with_logits(x, y),
        "kl_div": lambda: F.kl_div(x, y, reduction="sum"), "dropout": lambda: F.dropout(x), "rand": lambda: torch.rand(8, 8, device=device), "randn": lambda: torch.randn(8, 8, device=device),
        "randint": lambda: torch.randint(8, (8, 8), device=device), "randperm": lambda: torch.randperm(64, device=device),
        "item": lambda: flat[0].item(), "tolist": lambda: flat.tolist(), "foreach add": lambda: torch._foreach_add([x, y], 1),
    })
    return found


def least(call, rounds, repeats):
    """Microseconds of the calling thread, the least of the rounds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time_ns()
        for _ in range(repeats):
            call()
        best = min(best, (time.thread_time_ns() - began) / repeats / 1e3)
    return best


def measured(only=None, rounds=15, repeats=100):
    """Name, microseconds on rdna, on the CPU, for each call."""
    ours, theirs = calls("rdna"), calls("cpu")
    for name, call in ours.items():
        if only and name not in only:
            continue
        for f in (call, theirs[name]):
            least(f, 1, repeats // 2)
        best = [float("inf")] * 2
        for _ in range(rounds):  # by turns
            best = [min(value, least(f, 1, repeats)) for value, f in zip(best, (call, theirs[name]))]
        yield name, *best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda names: names.split(","), help="these alone")
    parser.add_argument("--above", type=float, help="exit status 1 where a ratio is above this")
    options = parser.parse_args()
    os.environ.setdefault("RDNA_DRIVER", "null")
    sides.begin("rdna")
    torch.set_num_threads(1)
    ratios = {}
    print(f"{'':24}{'rdna us':>10}{'cpu us':>10}{'ratio':>8}")
    for name, ours, theirs in measured(options.only):
        ratios[name] = ours / theirs
        print(f"{name:24}{ours:10.2f}{theirs:10.2f}{ratios[name]:8.2f}", flush=True)
    fallen = sides.fallbacks("rdna")
    print("geometric mean", f"{sides.geometric_mean(list(ratios.values())):.2f}", "  on the CPU:", ", ".join(sorted(fallen)) or "none")
    above = sorted((ratio, name) for name, ratio in ratios.items() if ratio > (options.above or 3))
    print(f"above {options.above or 3:g}:", ", ".join(f"{name} {ratio:.1f}" for ratio, name in reversed(above)) or "none")
    return 1 if options.above and above else 0


if __name__ == "__main__":
    sys.exit(main())
