#!/usr/bin/env python3
"""Ten thousand training steps of a small net: what the process holds must stay as it was after the first ones.

    RDNA_DRIVER=host python bindings/torch/tests/soak.py [--steps 10000]

Each step brings a batch over from page-locked memory on a stream of its own, waits by events, trains in mixed precision
with a gradient scaler and a fused optimizer, and reads the loss. Every tenth of the way a line with the device's memory
and blocks, the process's size, open files and threads. Exit status 1 when any of them is higher at the end than after
the first tenth; the process's size may differ by 64 bytes a step and 2 MiB, which is less than a tensor's handle a step
takes."""
import argparse
import gc
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(self.layer(x.flatten(2).transpose(1, 2)).mean(1))


class Training:
    def __init__(self):
        torch.manual_seed(0)
        self.model = Net().to("rdna")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3, fused=True)
        self.scaler = torch.amp.GradScaler("rdna", init_scale=256.0)
        self.copies = torch.rdna.Stream()
        self.x, self.y = torch.randn(64, 1, 8, 8), torch.randint(10, (64,))

    def step(self, i):
        rows = torch.arange(i, i + 16) % 64
        x, y = self.x[rows].pin_memory(), self.y[rows].pin_memory()
        with torch.rdna.stream(self.copies):
            x, y = x.to("rdna", non_blocking=True), y.to("rdna", non_blocking=True)
            arrived = torch.rdna.Event()
            arrived.record()
        arrived.wait()
        for t in (x, y):
            t.record_stream(torch.rdna.current_stream())
        self.optimizer.zero_grad()
        with torch.autocast("rdna", torch.float16):
            loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


def held():
    """What the process holds, by name."""
    gc.collect()
    torch.rdna.synchronize()
    stats = torch.rdna.memory_stats()
    resident = int(open("/proc/self/statm", encoding="ascii").read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return {"allocated": torch.rdna.memory_allocated(), "reserved": torch.rdna.memory_reserved(),
            "blocks": stats["allocation.all.current"], "segments": stats["segment.all.current"], "resident": resident,
            "files": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task"))}


def grown(before, after, steps):
    """What |after| has more of than |before| |steps| steps earlier, in sentences."""
    spare = {"resident": 64 * steps + (2 << 20)}
    return [f"{name}: {before[name]} before, {after[name]} after {steps} more steps"
            for name in before if after[name] > before[name] + spare.get(name, 0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10000)
    args = parser.parse_args()
    training, tenth, first, began = Training(), args.steps // 10, None, time.perf_counter()
    print(f"{torch.rdna.get_device_name()}, PyTorch {torch.__version__}")
    for part in range(10):
        for i in range(part * tenth, (part + 1) * tenth):
            loss = training.step(i)
        now = held()
        print(f"{(part + 1) * tenth:6} steps {time.perf_counter() - began:6.1f} s  loss {loss:.4f}  "
              + "  ".join(f"{name} {value}" for name, value in now.items()), flush=True)
        first = first or now
    wrong = grown(first, now, 9 * tenth)
    print("\n".join(wrong) or "nothing has grown")
    return 1 if wrong else 0


if __name__ == "__main__":
    if not hasattr(torch, "rdna"):
        import torch_rdna  # noqa: F401
    sys.exit(main())
