#!/usr/bin/env python3
"""Training steps and small operators on device='rdna' beside PyTorch's own CUDA, in one run on one NVIDIA GPU.

    python bindings/torch/bench/training.py [--only resnet,gpt2,small] [--json FILE]

ResNet-50 (torchvision) with a batch of 64 at 224 x 224, GPT-2 small (transformers) with 8 x 1,024 tokens. Both sides
start from the same weights and see the same data; losses are printed beside each other, and what fell back to the CPU.
Ratio: PyTorch's time over ours, so that more is better."""
import argparse
import copy
import json
import time

import torch
import torch.nn.functional as F

import torch_rdna  # noqa: F401  registers the device

BF16 = torch.bfloat16


def module_of(device):
    return torch.cuda if device == "cuda" else torch.rdna


def measure(device, step, steps, warm):
    module, losses = module_of(device), []
    module.reset_peak_memory_stats()
    for _ in range(warm):
        losses.append(step())
    module.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        losses.append(step())
    module.synchronize()
    ms = (time.perf_counter() - began) / steps * 1e3
    return ms, module.max_memory_allocated() / 2**30, [float(loss) for loss in losses]


def resnet(device, dtype, base, x, y):
    model = copy.deepcopy(base).to(device)
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
    model = copy.deepcopy(base).to(device)
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
    x, module = torch.randn(16, device=device), module_of(device)
    for _ in range(500):
        x + 1
    module.synchronize()
    began = time.perf_counter()
    for _ in range(10000):
        x + 1
    module.synchronize()
    return (time.perf_counter() - began) / 10000 * 1e6


def cases(only):
    torch.manual_seed(0)
    if "resnet" in only:
        import torchvision
        base = torchvision.models.resnet50()
        data = torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,))
        yield "ResNet-50 b64 f32", resnet, torch.float32, base, data
        yield "ResNet-50 b64 bf16", resnet, BF16, base, data
    if "gpt2" in only:
        import transformers
        base = transformers.GPT2LMHeadModel(transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
        yield "GPT-2 small 8x1024 bf16", gpt2, BF16, base, (torch.randint(0, 50257, (8, 1024)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="small,resnet,gpt2")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--json")
    args = parser.parse_args()
    lines = []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, rdna on {torch.rdna.get_device_name(0)}")
    torch.backends.cudnn.allow_tf32 = False  # f32 is f32 on both sides
    if "small" in args.only:
        theirs, ours = latency("cuda"), latency("rdna")
        lines.append({"case": "add of 16 values, launch to launch", "cuda_us": theirs, "rdna_us": ours})
        print(f"add of 16 values, launch to launch: CUDA {theirs:.2f} us, rdna {ours:.2f} us, {ours / theirs:.2f} times as long")
    for name, make, dtype, base, data in cases(args.only.split(",")):
        line = {"case": name}
        try:
            for device in ("cuda", "rdna"):
                if device == "rdna":
                    torch.rdna.reset_fallback_report()
                ms, peak, losses = measure(device, make(device, dtype, base, *data), args.steps, 3)
                line[device] = {"ms": ms, "peak_gib": peak, "losses": losses}
                torch.cuda.empty_cache()
            line["ratio"] = line["cuda"]["ms"] / line["rdna"]["ms"]
            line["fallbacks"] = torch.rdna.fallback_report()
            print(f"{name:24} CUDA {line['cuda']['ms']:8.1f} ms {line['cuda']['peak_gib']:6.2f} GiB   rdna "
                  f"{line['rdna']['ms']:8.1f} ms {line['rdna']['peak_gib']:6.2f} GiB   ratio {line['ratio']:.2f}")
            print("    losses CUDA", " ".join(f"{loss:.4f}" for loss in line["cuda"]["losses"][:8]))
            print("    losses rdna", " ".join(f"{loss:.4f}" for loss in line["rdna"]["losses"][:8]))
            print("    fell back:", line["fallbacks"] or "nothing", flush=True)
        except (RuntimeError, NotImplementedError) as error:
            line["error"] = str(error)
            print(f"{name:24} failed: {str(error)[:400]}", flush=True)
        lines.append(line)
        torch.rdna.empty_cache()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(lines, f, indent=1)


if __name__ == "__main__":
    main()
