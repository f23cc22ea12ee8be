"""Collective operations among GPUs of one machine: checked, and their bus bandwidth beside PyTorch's own NCCL backend in
the same processes, where PyTorch has CUDA. Then DistributedDataParallel against one process with all of the data.

    torchrun --nproc-per-node 2 bindings/torch/bench/collectives.py"""

import os
import pathlib
import sys
import time

import torch

if not hasattr(torch, "rdna"):
    import torch_rdna  # noqa: F401
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
import ranks  # noqa: E402


def milliseconds(device, call, repeat=20):
    module = getattr(torch, device)
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
    torch.rdna.set_device(rank)
    devices = ["rdna"]
    names = "cpu:gloo,rdna:rdna"
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
        devices, names = ["cuda", "rdna"], "cpu:gloo,cuda:nccl,rdna:rdna"
    dist.init_process_group(names)
    here = torch.device("rdna", rank)
    ranks.collectives(rank, size, here)
    ranks.ddp(rank, size, here)
    say = print if rank == 0 else (lambda *a: None)
    say(f"{size} ranks, {torch.rdna.get_device_name()}: collectives and DDP are right", flush=True)
    say(f"{'':24}" + "".join(f"{d:>22}" for d in devices))
    # ring: every rank sends and receives this many times the bytes of the result
    operations = {
        "all_reduce": (lambda x, y: dist.all_reduce(x), 2 * (size - 1) / size),
        "all_gather": (lambda x, y: dist.all_gather_into_tensor(y, x), (size - 1) / size),
        "reduce_scatter": (lambda x, y: dist.reduce_scatter_tensor(x, y), (size - 1) / size),
        "broadcast": (lambda x, y: dist.broadcast(x, 0), 1),
    }
    for name, (call, factor) in operations.items():
        for mib in (0.0625, 1, 16, 256):
            count = int(mib * 2**20 / 2)
            line = f"{name:15} {mib:8g} MiB"
            for device in devices:
                x = torch.ones(count // (1 if name in ("all_reduce", "broadcast") else size), dtype=torch.bfloat16, device=device)
                y = torch.ones(count, dtype=torch.bfloat16, device=device)
                ms = milliseconds(device, lambda: call(x, y))
                line += f"{ms:11.3f} ms {count * 2 * factor / ms / 1e6:5.0f} GB/s"
            say(line, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
