"""Collective operations among GPUs of one machine: checked, DistributedDataParallel against one process with all of the data,
and then their bus bandwidth. With --device cuda the bandwidth of PyTorch's own NCCL backend, to compare with.

    torchrun --nproc-per-node 2 bindings/torch/bench/collectives.py [--device cuda] [--least MIB] [--most MIB]"""

import argparse
import os
import pathlib
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="rdna", choices=("rdna", "cuda"))
parser.add_argument("--least", type=float, default=0.0625, help="MiB of the smallest result")
parser.add_argument("--most", type=float, default=256)
options = parser.parse_args()
if options.device == "cuda":  # PyTorch's CUDA works alone in a process
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch  # noqa: E402

if options.device == "rdna" and not hasattr(torch, "rdna"):
    import torch_rdna  # noqa: F401
import torch.distributed as dist  # noqa: E402


def milliseconds(module, call, repeat=20):
    for _ in range(5):
        call()
    module.synchronize()
    dist.barrier()
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    module.synchronize()
    return (time.perf_counter() - start) / repeat * 1e3


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device, module = options.device, getattr(torch, options.device)
    module.set_device(rank)
    dist.init_process_group("cpu:gloo,rdna:rdna" if device == "rdna" else "cpu:gloo,cuda:nccl")
    say = print if rank == 0 else (lambda *a, **k: None)
    if device == "rdna":
        sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
        import ranks

        here = torch.device("rdna", rank)
        ranks.collectives(rank, size, here)
        ranks.ddp(rank, size, here)
        say(f"{size} ranks, {torch.rdna.get_device_name()}: collectives and DDP are right", flush=True)
    # ring: every rank sends and receives this many times the bytes of the result
    operations = {
        "all_reduce": (lambda x, y: dist.all_reduce(x), 2 * (size - 1) / size),
        "all_gather": (lambda x, y: dist.all_gather_into_tensor(y, x), (size - 1) / size),
        "reduce_scatter": (lambda x, y: dist.reduce_scatter_tensor(x, y), (size - 1) / size),
        "broadcast": (lambda x, y: dist.broadcast(x, 0), 1),
    }
    for name, (call, factor) in operations.items():
        for mib in (m for m in (0.0625, 1, 16, 256) if options.least <= m <= options.most):
            count = int(mib * 2**20 / 2)
            part = 1 if name in ("all_reduce", "broadcast") else size
            x = torch.zeros(count // part, dtype=torch.bfloat16, device=device)
            y = torch.zeros(count, dtype=torch.bfloat16, device=device)
            ms = milliseconds(module, lambda: call(x, y))
            rate = count * 2 * factor / ms / 1e6
            say(f"{device} {name:15} {mib:8g} MiB {ms:9.3f} ms {rate:7.1f} GB/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
