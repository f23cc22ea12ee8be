#!/usr/bin/env python3
"""Recurrent networks on device='rdna' beside PyTorch's own CUDA (cuDNN), in one run on one NVIDIA GPU.

    python bindings/torch/bench/recurrent.py [--tiny] [--devices rdna,cuda]

A training step (forward, gradients of everything) and a pass without gradients, of two layers of 100 steps. Each side has a
process of its own, since PyTorch's autograd knows one accelerator at a time. Ratio: CUDA's time over ours, so that more is
better."""
import argparse
import json
import math
import os
import subprocess
import sys

import torch

import training

KINDS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}


def cases(tiny):
    """(kind, hidden size, batch, 16-bit autocast)"""
    if tiny:
        return [(kind, 8, 2, False) for kind in KINDS]
    sizes = [(64, 16), (256, 1), (256, 64), (512, 64), (1024, 64), (1024, 256)]
    return [("LSTM", n, rows, half) for n, rows in sizes for half in (False, True)] + [
        (kind, n, 64, False) for kind in ("GRU", "RNN") for n in (256, 1024)]


def one(device, tiny):
    """Milliseconds of each case: training, inference."""
    if device == "rdna":
        import torch_rdna  # noqa: F401  registers the device
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False  # f32 is f32 on both sides
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

        times = [training.measure(device, step, repeats, 3)[0] for step in (train, infer)]
        print(json.dumps(times), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="sizes at which only the script itself is tried")
    parser.add_argument("--devices", default="rdna,cuda")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(options.one, options.tiny)
    sides = {}
    for device in options.devices.split(","):
        command = [sys.executable, __file__, "--one", device] + ["--tiny"] * options.tiny
        environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        lines = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        sides[device] = [json.loads(line) for line in lines]
    print(f"{'':36}" + "".join(f"{device + ' ms':>20}" for device in sides) + f"{'ratio':>16}")
    ratios = []
    for i, (kind, n, rows, half) in enumerate(cases(options.tiny)):
        for what in (0, 1):
            times = [side[i][what] for side in sides.values()]
            ratio = sides["cuda"][i][what] / sides["rdna"][i][what] if len(sides) == 2 else math.nan
            ratios.append(ratio)
            name = f"{kind} {n}, batch {rows}, {'bf16' if half else 'f32'}, {('training', 'inference')[what]}"
            print(f"{name:36}" + "".join(f"{ms:20.3f}" for ms in times) + f"{ratio:16.2f}")
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
