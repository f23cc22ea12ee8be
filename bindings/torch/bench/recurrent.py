#!/usr/bin/env python3
"""Recurrent networks on device='rdna' beside PyTorch's own CUDA (cuDNN), in one run on one NVIDIA GPU.

    python bindings/torch/bench/recurrent.py [--tiny] [--devices rdna,cuda]

A training step (forward, gradients of everything) and a pass without gradients, of two layers of 100 steps. Each side has a
process of its own, since PyTorch's autograd knows one accelerator at a time. Ratio: CUDA's time over ours, so that more is
better."""
import sys

import torch

import sides

KINDS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}


def cases(tiny):
    """(kind, hidden size, batch, 16-bit autocast)"""
    if tiny:
        return [(kind, 8, 2, False) for kind in KINDS]
    sizes = [(64, 16), (256, 1), (256, 64), (512, 64), (1024, 64), (1024, 256)]
    return [("LSTM", n, rows, half) for n, rows in sizes for half in (False, True)] + [
        (kind, n, 64, False) for kind in ("GRU", "RNN") for n in (256, 1024)]


def names(tiny):
    return [f"{kind} {n}, batch {rows}, {'bf16' if half else 'f32'}, {what}" for kind, n, rows, half in cases(tiny)
            for what in ("training", "inference")]


def one(device, tiny):
    """Milliseconds of training and of inference, of each case."""
    length, repeats = (5, 1) if tiny else (100, 10)
    for kind, n, rows, half in cases(tiny):
        torch.manual_seed(0)
        model = KINDS[kind](n, n, 2)
        x = torch.randn(length, rows, n)
        model, x = model.to(device), x.to(device)

        def train():
            model.zero_grad()
            with torch.autocast(device, dtype=torch.bfloat16, enabled=half):
                loss = model(x)[0].float().square().mean()
            loss.backward()
            return loss.detach()

        def infer():
            with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16, enabled=half):
                return model(x)[0][-1, 0, 0]

        for step in (train, infer):
            yield {"ms": sides.measure(device, step, repeats, 3)[0]}


if __name__ == "__main__":
    sys.exit(sides.main(__file__, __doc__, names, one))
