#!/usr/bin/env python3
"""Linear algebra on device='rdna' beside PyTorch's own CUDA (cuSOLVER, cuBLAS, MAGMA), in one run on one NVIDIA GPU.

    python bindings/torch/bench/linalg.py [--tiny] [--devices rdna,cuda]

Factorizations, solutions, and a step of a Gaussian process's training (Cholesky, solutions, gradients). Each side has a
process of its own, since PyTorch's autograd knows one accelerator at a time. Ratio: CUDA's time over ours, so that more is
better. A case that falls back to the CPU on rdna is marked."""
import argparse
import json
import math
import os
import subprocess
import sys

import torch

import training


def gaussian_process(device, dtype, n):
    x, y = torch.randn(n, 8, device=device, dtype=dtype), torch.randn(n, 1, device=device, dtype=dtype)
    parameters = torch.zeros(9, device=device, dtype=dtype, requires_grad=True)

    def step():
        parameters.grad = None
        z = x / parameters[:8].exp()
        square = z.square().sum(-1)
        k = torch.exp(z @ z.mT - square[:, None] / 2 - square / 2)
        k = k + parameters[8].exp() * torch.eye(n, device=device, dtype=dtype)
        l = torch.linalg.cholesky(k)
        loss = (y * torch.cholesky_solve(y, l)).sum() / 2 + l.diagonal().log().sum()
        loss.backward()
        return loss.detach()

    return step


def cases(tiny):
    """Name, dtype, and what makes the step from a device."""
    def of(shape, run):
        def make(device, dtype):
            a = torch.randn(shape, device=device, dtype=dtype)
            a = a + 2 * torch.eye(shape[-1], device=device, dtype=dtype)
            return lambda: run(a)

        return make

    def symmetric(run):
        return lambda a: run(a + a.mT)

    n = lambda size: size // 32 + 2 if tiny else size  # noqa: E731
    batch = 3 if tiny else 4096
    for dtype in (torch.float32, torch.float64):
        yield f"Gaussian process, {n(2048)}", dtype, lambda device, dtype: gaussian_process(device, dtype, n(2048))
        yield f"solve {batch} of {n(32)}", dtype, of((batch, n(32), n(32)), lambda a: torch.linalg.solve(a, a))
        yield f"inv {batch} of {n(32)}", dtype, of((batch, n(32), n(32)), torch.linalg.inv)
        yield f"slogdet {batch} of {n(32)}", dtype, of((batch, n(32), n(32)), lambda a: torch.linalg.slogdet(a)[1])
        for size in (512, 2048):
            shape = (n(size), n(size))
            yield f"Cholesky {n(size)}", dtype, of(shape, lambda a: torch.linalg.cholesky_ex(a @ a.mT)[0])
            yield f"LU {n(size)}", dtype, of(shape, lambda a: torch.linalg.lu_factor_ex(a)[0])
            yield f"solve {n(size)}", dtype, of(shape, lambda a: torch.linalg.solve_ex(a, a)[0])
            yield f"QR {n(size)}", dtype, of(shape, lambda a: torch.linalg.qr(a)[1])
        yield f"eigh {n(512)}", dtype, of((n(512), n(512)), symmetric(lambda a: torch.linalg.eigh(a)[0]))
        yield f"SVD {n(512)}", dtype, of((n(512), n(512)), lambda a: torch.linalg.svd(a)[1])


def one(device, tiny):
    """Of each case: milliseconds, and the operators that were computed on the CPU."""
    if device == "rdna":
        import torch_rdna  # noqa: F401  registers the device
    torch.backends.cuda.matmul.allow_tf32 = False  # f32 is f32 on both sides
    for _, dtype, make in cases(tiny):
        torch.manual_seed(0)
        step = make(device, dtype)
        if device == "rdna":
            torch.rdna.reset_fallback_report()
        last = lambda: step().reshape(-1)[-1]  # noqa: E731  what is waited for
        ms = training.measure(device, last, 1 if tiny else 5, 3)[0]
        fallen = sorted(torch.rdna.fallback_report()) if device == "rdna" else []
        print(json.dumps([ms, fallen]), flush=True)


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
    print(f"{'':32}" + "".join(f"{device + ' ms':>14}" for device in sides) + f"{'ratio':>10}")
    ratios = []
    for i, (name, dtype, _) in enumerate(cases(options.tiny)):
        ratio = sides["cuda"][i][0] / sides["rdna"][i][0] if len(sides) == 2 else math.nan
        fallen = sides["rdna"][i][1] if "rdna" in sides else []
        if not fallen:
            ratios.append(ratio)
        name += f", {str(dtype).removeprefix('torch.')}"
        print(f"{name:32}" + "".join(f"{side[i][0]:14.3f}" for side in sides.values()) + f"{ratio:10.2f}"
              + ("  on the CPU: " + ", ".join(fallen)) * bool(fallen))
    print(f"geometric mean of those on the device {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
