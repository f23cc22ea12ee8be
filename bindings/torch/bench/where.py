#!/usr/bin/env python3
"""Where a model's time goes on device='rdna' and on PyTorch's own CUDA: kernels by their time, for models of the zoo.

    python bindings/torch/bench/where.py [--only REGEX] [--modes training inference] [--top 12] [--tiny] [--device DEVICE …]

Each side is a process. A step's time is the clock's; what its kernels take, and how many there are, is the profiler's over
STEPS steps. Queued: how long the processor takes until it has queued a step, where nothing waits for the device. A side
whose kernels take much less than its step is held up by the processor."""
import argparse
import json
import re
import time

import torch
from torch.profiler import ProfilerActivity, profile

import models
import sides

STEPS = 3


def kernels_of(step, device):
    """{name: [launches a step, milliseconds a step]} of what ran on the device, copies and fills too."""
    # Where PyTorch has CUDA its tracer may see rdna's work too, and closer: ours measures between events, which adds
    # microseconds to each, and with PyTorch 2.11 for CUDA it reported every kernel twice.
    kinds = (["CUDA"] if torch.backends.cuda.is_built() else []) + (["PrivateUse1"] if device == "rdna" else [])
    for kind in kinds:
        with profile(activities=[getattr(ProfilerActivity, kind)]) as seen:
            for _ in range(STEPS):
                step()
            sides.module_of(device).synchronize()
        found = {}
        for event in seen.events():
            if event.device_type == getattr(torch.autograd.DeviceType, kind):
                row = found.setdefault(event.name, [0, 0.0])
                row[0] += 1 / STEPS
                row[1] += event.time_range.elapsed_us() / 1e3 / STEPS
        if found:
            break
    return found


def one(options):
    device = options.one
    sides.begin(device)
    for name, mode, dtype in wanted(options):
        try:
            model = models.zoo.MODELS[name]
            work = models.prepared(model, dtype, mode, device, options.tiny)
            step = models.stepper(model, work, mode, dtype, device, lambda f: f)
            ms, _, _ = sides.measure(device, step, 2 * STEPS, 4)
            began = time.perf_counter()
            for _ in range(STEPS):
                step()
            queued = (time.perf_counter() - began) / STEPS * 1e3
            sides.module_of(device).synchronize()
            result = {"ms": ms, "queued": queued, "kernels": kernels_of(step, device)}
        except Exception as e:
            result = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(result), flush=True)


def wanted(options):
    return [line for line in models.every_line() if line[1] in options.modes and re.search(options.only, line[0])]


def table(result, top):
    if "error" in result:
        print(f"    failed: {result['error']}")
        return
    kernels = sorted(result["kernels"].items(), key=lambda item: -item[1][1])
    busy, count = (sum(row[i] for _, row in kernels) for i in (1, 0))
    print(f"    a step {result['ms']:9.3f} ms, queued in {result['queued']:.3f}; {count:.0f} kernels of {busy:.3f} ms")
    for name, (count, ms) in kernels[:top]:
        print(f"    {ms:9.3f} ms {ms / busy:6.1%} {count:7.1f} x {ms / count * 1e3:9.1f} us  {name[:110]}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="models whose name this finds")
    options.add_argument("--modes", nargs="+", default=["training", "inference"], choices=["training", "inference"])
    options.add_argument("--device", nargs="+", default=["rdna", "cuda"], help="sides, in the table's order")
    options.add_argument("--top", type=int, default=12, help="kernels of each side")
    options.add_argument("--tiny", action="store_true", help="tiny sizes")
    options.add_argument("--one", help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.one:
        return one(options)
    passed = ["--only", options.only, "--modes", *options.modes] + ["--tiny"] * options.tiny
    for device in options.device:  # each side whole before the next: two processes on a card would disturb each other
        for line, result in zip(wanted(options), sides.lines(__file__, "--one", device, *passed)):
            print(device, *line, flush=True)
            table(result, options.top)


if __name__ == "__main__":
    main()
