#!/usr/bin/env python3
"""Linear algebra on device='rdna' beside PyTorch's own CUDA (cuSOLVER, cuBLAS, MAGMA), in one run on one NVIDIA GPU.

    python bindings/torch/bench/linalg.py [--tiny] [--devices rdna,cuda]

Factorizations, solutions, and a step of a Gaussian process's training (Cholesky, solutions, gradients). Each side has a
process of its own, since PyTorch's autograd knows one accelerator at a time. Ratio: CUDA's time over ours, so that more is
better. A case that falls back to the CPU on rdna is marked."""
import sys

import torch

import sides


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


def names(tiny):
    return [f"{name}, {str(dtype).removeprefix('torch.')}" for name, dtype, _ in cases(tiny)]


def one(device, tiny):
    """Milliseconds of each case."""
    for _, dtype, make in cases(tiny):
        torch.manual_seed(0)
        step = make(device, dtype)
        last = lambda: step().reshape(-1)[-1]  # noqa: E731  what is waited for
        yield {"ms": sides.measure(device, last, 1 if tiny else 5, 3)[0]}


if __name__ == "__main__":
    sys.exit(sides.main(__file__, __doc__, names, one))
