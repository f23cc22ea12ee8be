#!/usr/bin/env python3
"""What small operators cost the host: time of the calls alone, of tensors of 64 values, where nothing waits for the device.

    python bindings/torch/bench/small.py [--tiny] [--devices rdna,cuda]

With RDNA_DRIVER=host --devices rdna,cpu it is our whole way beside PyTorch's own on the CPU."""
import sys
import time

import torch

import sides


def calls(device):
    x, y, w = torch.randn(8, 8, device=device), torch.randn(8, 8, device=device), torch.randn(8, 8, device=device, requires_grad=True)
    i, b = torch.arange(8, device=device), torch.randn(4, 8, 8, device=device)
    linear, norm = torch.nn.Linear(8, 8).to(device), torch.nn.LayerNorm(8).to(device)
    heavy = torch.rand(64, device=device)
    return {
        "empty": lambda: torch.empty(8, 8, device=device), "view": lambda: x.view(64), "slice": lambda: x[:, 1:3],
        "add": lambda: x + y, "add_": lambda: x.add_(y), "mul by a number": lambda: x * 2, "add of a row": lambda: x + y[0],
        "exp": lambda: x.exp(), "relu": lambda: x.relu(), "gt": lambda: x > y, "where": lambda: torch.where(x > 0, x, y),
        "sum": lambda: x.sum(), "mean of rows": lambda: x.mean(1), "mm": lambda: x @ y, "bmm": lambda: b @ b, "linear": lambda: linear(x),
        "softmax": lambda: x.softmax(-1), "layer_norm": lambda: norm(x), "cat": lambda: torch.cat((x, y)),
        "contiguous": lambda: x.t().contiguous(), "to bf16": lambda: x.to(torch.bfloat16), "index": lambda: x[i],
        "gather": lambda: x.gather(1, i.expand(8, 8)), "zeros": lambda: torch.zeros(8, 8, device=device), "fill_": lambda: x.fill_(1),
        "product, sum, backward": lambda: (w * x).sum().backward(), "item": lambda: heavy[0].item(), "nonzero": lambda: x.nonzero(),
        "unique": lambda: i.unique(), "multinomial": lambda: heavy.multinomial(4), "foreach add": lambda: torch._foreach_add([x, y], 1),
    }


def one(device, tiny):
    synchronize = sides.module_of(device).synchronize
    rounds, repeats = (1, 2) if tiny else (5, 200)
    for call in calls(device).values():
        for _ in range(1 if tiny else 50):
            call()
        best = float("inf")
        for _ in range(rounds):
            synchronize()
            began = time.perf_counter()
            for _ in range(repeats):
                call()
            best = min(best, (time.perf_counter() - began) / repeats)
        yield {"us": best * 1e6}


if __name__ == "__main__":
    sys.exit(sides.main(__file__, __doc__, lambda tiny: list(calls("cpu")), one, "us"))
