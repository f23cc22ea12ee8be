#!/usr/bin/env python3
"""Training steps and small operators on device='rdna' beside PyTorch's own CUDA, in one run on one NVIDIA GPU.

    python bindings/torch/bench/training.py [--only resnet,gpt2,small] [--json FILE]

ResNet-50 (torchvision) with a batch of 64 at 224 x 224, GPT-2 small (transformers) with 8 x 1,024 tokens. Both sides
start from the same weights and see the same data; losses are printed beside each other, and what fell back to the CPU.
Each side has a process of its own, since PyTorch's autograd knows one accelerator at a time. Ratio: PyTorch's time over
ours, so that more is better."""
import argparse
import json
import time

import torch
import torch.nn.functional as F

import sides

BF16 = torch.bfloat16


def resnet(device, dtype, base, x, y):
    model = base.to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    x, y = x.to(device), y.to(device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, dtype=BF16, enabled=dtype is BF16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def gpt2(device, dtype, base, ids, _):
    model = base.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    ids = ids.to(device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, dtype=BF16, enabled=dtype is BF16):
            loss = model(ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def latency(device):
    x, module = torch.randn(16, device=device), sides.module_of(device)
    for _ in range(500):
        x + 1
    module.synchronize()
    began = time.perf_counter()
    for _ in range(10000):
        x + 1
    module.synchronize()
    return (time.perf_counter() - began) / 10000 * 1e6


def resnet_data():
    import torchvision
    return resnet, torchvision.models.resnet50(), (torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,)))


def gpt2_data():
    import transformers
    config = transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return gpt2, transformers.GPT2LMHeadModel(config), (torch.randint(0, 50257, (8, 1024)), None)


CASES = {"ResNet-50 b64 f32": (resnet_data, torch.float32), "ResNet-50 b64 bf16": (resnet_data, BF16),
         "GPT-2 small 8x1024 bf16": (gpt2_data, BF16)}


def one(device, name, steps):
    """What a process of its own measures, as JSON on standard output."""
    sides.begin(device)
    torch.manual_seed(0)
    if name == "small":
        return {"us": latency(device)}
    prepare, dtype = CASES[name]
    make, base, data = prepare()
    ms, peak, losses = sides.measure(device, make(device, dtype, base, *data), steps, 3)
    return {"ms": ms, "peak_gib": peak, "losses": losses,
            "fallbacks": sides.fallbacks(device)}


def run(device, name, steps):
    return list(sides.lines(__file__, "--one", device, name, "--steps", str(steps)))[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="small,ResNet,GPT")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--json")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(*args.one, args.steps)))
        return
    lines = []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for name in ["small", *CASES]:
        if not any(word in name for word in args.only.split(",")):
            continue
        line = {"case": name, **{device: run(device, name, args.steps) for device in ("cuda", "rdna")}}
        lines.append(line)
        cuda, rdna = line["cuda"], line["rdna"]
        if "error" in cuda or "error" in rdna:
            print(f"{name:24} failed: CUDA {cuda.get('error', 'ran')}; rdna {rdna.get('error', 'ran')}", flush=True)
        elif name == "small":
            print(f"add of 16 values, launch to launch: CUDA {cuda['us']:.2f} us, rdna {rdna['us']:.2f} us, "
                  f"{rdna['us'] / cuda['us']:.2f} times as long", flush=True)
        else:
            print(f"{name:24} CUDA {cuda['ms']:8.1f} ms {cuda['peak_gib']:6.2f} GiB   rdna {rdna['ms']:8.1f} ms "
                  f"{rdna['peak_gib']:6.2f} GiB   ratio {cuda['ms'] / rdna['ms']:.2f}")
            for device in ("cuda", "rdna"):
                print(f"    losses {device}", " ".join(f"{loss:.4f}" for loss in line[device]["losses"][:8]))
            print("    fell back:", rdna["fallbacks"] or "nothing", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(lines, f, indent=1)


if __name__ == "__main__":
    main()
