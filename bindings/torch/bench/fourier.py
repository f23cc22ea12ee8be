#!/usr/bin/env python3
"""Fourier transforms and a Fourier neural operator on device='rdna' beside PyTorch's own CUDA, on one NVIDIA GPU.

    python bindings/torch/bench/fourier.py [--only c2c,stft,operator] [--json FILE]
    RDNA_DRIVER=host python bindings/torch/bench/fourier.py --tiny     small sizes; the CPU stands for CUDA

Each side has a process of its own, since PyTorch's autograd knows one accelerator at a time. "errors" are distances
from float64's result on the CPU over that result's norm; a transform's is good below sqrt(log2 n) * 2^-23. GB/s count an
input read once and an output written once. Ratio: PyTorch's time over ours, so that more is better."""
import argparse
import json
import math
import os
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

BASE = "cuda" if torch.cuda.is_available() else "cpu"


def wait(device):
    if device != "cpu":
        (torch.cuda if device == "cuda" else torch.rdna).synchronize()


def time_of(device, step, seconds):
    """Milliseconds of a call, over as many calls as take |seconds|."""
    for _ in range(3):
        step()
    wait(device)
    began = time.perf_counter()
    step()
    wait(device)
    calls = max(3, min(1000, int(seconds / max(time.perf_counter() - began, 1e-6))))
    began = time.perf_counter()
    for _ in range(calls):
        step()
    wait(device)
    return (time.perf_counter() - began) / calls * 1e3


def as_double(x):
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def transform(function, shape, complex_input=True):
    """A case: |function| of random values."""
    def case(device, seconds):
        dtype = torch.complex64 if complex_input else torch.float32
        host = torch.randn(shape, dtype=dtype)
        x = host.to(device)
        out = function(x)
        exact = function(as_double(host))
        error = (as_double(out.cpu()) - exact).norm() / exact.norm()
        moved = x.numel() * x.element_size() + out.numel() * out.element_size()
        return {"ms": time_of(device, lambda: function(x), seconds), "error": float(error), "least_gb": moved / 1e9}
    return case


def stft(x):
    return torch.stft(x, 400, 160, window=torch.hann_window(400, dtype=x.dtype, device=x.device), return_complex=True)


class SpectralConv(torch.nn.Module):
    """Products of the lowest |modes| x |modes| frequencies, of both signs along the rows, with complex weights."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        shape = (2, width, width, modes, modes)
        self.weight = torch.nn.Parameter(torch.randn(shape, dtype=torch.complex64) / width)

    def forward(self, x):
        m, spectrum = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.weight[0])
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.weight[1])
        return torch.fft.irfft2(out, s=x.shape[-2:])


class FourierOperator(torch.nn.Module):
    def __init__(self, width, modes, layers=4):
        super().__init__()
        self.lift, self.project = torch.nn.Conv2d(3, width, 1), torch.nn.Conv2d(width, 1, 1)
        self.spectral = torch.nn.ModuleList(SpectralConv(width, modes) for _ in range(layers))
        self.local = torch.nn.ModuleList(torch.nn.Conv2d(width, width, 1) for _ in range(layers))

    def forward(self, x):
        x = self.lift(x)
        for spectral, local in zip(self.spectral, self.local):
            x = F.gelu(spectral(x) + local(x))
        return self.project(x)


def operator(batch, side, width, modes):
    """A case: a training step, whose weights are the same on both sides."""
    def case(device, seconds):
        model = FourierOperator(width, modes)
        x, y = torch.randn(batch, 3, side, side), torch.randn(batch, 1, side, side)
        model, x, y = model.to(device), x.to(device), y.to(device)
        optimizer, losses = torch.optim.Adam(model.parameters(), 1e-3), []

        def step():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()
        for _ in range(8):
            losses.append(step())
        return {"losses": [float(loss) for loss in losses], "ms": time_of(device, step, seconds)}
    return case


def cases(tiny):
    """By name. All 1-D transforms of a power of two have 2^24 values, 2^12 with |tiny|."""
    values, made = 1 << (12 if tiny else 24), {}
    for n in (16, 64, 256) if tiny else (256, 1024, 4096, 16384, 65536, 1 << 20):
        batch = max(1, values // n)
        made[f"c2c {n} x {batch}"] = transform(torch.fft.fft, (batch, n))
        made[f"r2c {n} x {batch}"] = transform(torch.fft.rfft, (batch, n), False)
        made[f"c2r {n} x {batch}"] = transform(lambda x, n=n: torch.fft.irfft(x, n), (batch, n // 2 + 1))
    for n in (1000, 1009):  # 2^3 5^3, and a prime
        made[f"c2c {n} x {values // n}"] = transform(torch.fft.fft, (values // n, n))
    side, images = (32, 2) if tiny else (512, 32)
    made[f"c2c {side} x {side} x {images}"] = transform(torch.fft.fft2, (images, side, side))
    made[f"r2c {side} x {side} x {images}"] = transform(torch.fft.rfft2, (images, side, side), False)
    made["stft 400 by 160"] = transform(stft, (2, 1600) if tiny else (32, 160000), False)
    made["operator"] = operator(2, 16, 4, 4) if tiny else operator(16, 64, 64, 16)
    return made


def one(device, name, tiny):
    """What a process of its own measures."""
    if device == "rdna":
        import torch_rdna  # noqa: F401  registers the device
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # f32 is f32 on both sides
    torch.manual_seed(0)
    result = cases(tiny)[name](device, 0.05 if tiny else 1.0)
    return {**result, "fallbacks": torch.rdna.fallback_report() if device == "rdna" else {}}


def run(device, name, tiny):
    command = [sys.executable, __file__, "--one", device, name, *(["--tiny"] if tiny else [])]
    environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return {"failed": result.stderr.strip().splitlines()[-1][:400] if result.stderr.strip() else "no word"}
    return json.loads(result.stdout.splitlines()[-1])


def show(name, base, rdna):
    if "failed" in base or "failed" in rdna:
        print(f"{name:22} failed: {BASE} {base.get('failed', 'ran')}; rdna {rdna.get('failed', 'ran')}", flush=True)
        return False
    print(f"{name:22} {base['ms']:10.3f} {rdna['ms']:10.3f} {base['ms'] / rdna['ms']:7.2f}", end="")
    if "error" in rdna:
        rate = rdna["least_gb"] / rdna["ms"] * 1e3
        print(f"   {rate:8.0f} GB/s   errors {base['error']:.1e} {rdna['error']:.1e}", end="")
    print(f"   fell back: {', '.join(rdna['fallbacks']) or 'nothing'}")
    for device, side in ((BASE, base), ("rdna", rdna)):
        if "losses" in side:
            print(f"    losses {device}", " ".join(f"{loss:.5f}" for loss in side["losses"]))
    sys.stdout.flush()
    return all(math.isfinite(value) for side in (base, rdna) for value in side.get("losses", [side.get("error")]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words, with commas: cases whose names have one")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(*args.one, args.tiny)))
        return 0
    lines, right = [], True
    print(f"{torch.cuda.get_device_name() if BASE == 'cuda' else 'no CUDA'}, PyTorch {torch.__version__}")
    print(f"{'case':22} {BASE + ' ms':>10} {'rdna ms':>10} {'ratio':>7}")
    for name in cases(args.tiny):
        if not any(word in name for word in args.only.split(",")):
            continue
        base, rdna = run(BASE, name, args.tiny), run("rdna", name, args.tiny)
        lines.append({"case": name, BASE: base, "rdna": rdna})
        right = show(name, base, rdna) and right
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(lines, f, indent=1)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
