"""What each rank of test_distributed.py does: python ranks.py BACKEND RANK SIZE STORE. bench/collectives.py does it on GPUs."""

import copy
import os
import sys

import torch

if not hasattr(torch, "rdna"):
    import torch_rdna  # noqa: F401
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy


def value(rank, i):
    return (i * 7 + rank * 3) % 5 - (rank == 1)


def tensor(rank, shape, dtype=torch.float32):
    count = torch.Size(shape).numel()
    return torch.tensor([value(rank, i) for i in range(count)]).to(dtype).reshape(shape)


def collectives(rank, size, here):
    ranks = range(size)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8):
        for op, combine in ((dist.ReduceOp.SUM, torch.sum), (dist.ReduceOp.MAX, torch.amax), (dist.ReduceOp.MIN, torch.amin),
                            (dist.ReduceOp.PRODUCT, torch.prod)):
            parts = torch.stack([tensor(r, (3, 50)).abs().to(dtype) for r in ranks])
            x = parts[rank].to(here)
            dist.all_reduce(x, op)
            assert torch.equal(x.cpu(), combine(parts, 0).to(dtype)), (dtype, op)
    x = tensor(rank, (64,)).to(here)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    torch.testing.assert_close(x.cpu(), torch.stack([tensor(r, (64,)) for r in ranks]).mean(0))
    x = torch.tensor([True, rank == 0, False], device=here)
    dist.all_reduce(x)
    assert x.tolist() == [True, True, False]

    x = tensor(rank, (6, 4)).to(here).t()[::2]  # gaps, transposed
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    assert torch.equal(x.cpu(), sum(tensor(r, (6, 4)).t()[::2] for r in ranks)) and work.is_completed()

    for root in ranks:
        x = tensor(rank, (5, 3)).to(here)
        dist.broadcast(x, root)
        assert torch.equal(x.cpu(), tensor(root, (5, 3)))
        x = tensor(rank, (5, 3)).to(here)
        dist.reduce(x, root)
        if rank == root:
            assert torch.equal(x.cpu(), sum(tensor(r, (5, 3)) for r in ranks))

        outs = [torch.empty(2, 3, device=here) for _ in ranks] if rank == root else None
        dist.gather(tensor(rank, (2, 3)).to(here), outs, root)
        if rank == root:
            assert all(torch.equal(o.cpu(), tensor(r, (2, 3))) for r, o in enumerate(outs))
        out = torch.empty(2, 3, device=here)
        dist.scatter(out, [tensor(r, (2, 3)).to(here) + 10 for r in ranks] if rank == root else None, root)
        assert torch.equal(out.cpu(), tensor(rank, (2, 3)) + 10)

    outs = [torch.empty(4, 2, device=here).t() if r else torch.empty(2, 4, device=here) for r in ranks]
    dist.all_gather(outs, tensor(rank, (2, 4)).to(here))
    assert all(torch.equal(o.cpu(), tensor(r, (2, 4))) for r, o in enumerate(outs))
    out = torch.empty(size * 3, 2, dtype=torch.int64, device=here)
    dist.all_gather_into_tensor(out, tensor(rank, (3, 2), torch.int64).to(here))
    assert torch.equal(out.cpu(), torch.cat([tensor(r, (3, 2), torch.int64) for r in ranks]))

    whole = [tensor(r, (size * 3, 2)) for r in ranks]
    out = torch.empty(3, 2, device=here)
    dist.reduce_scatter_tensor(out, whole[rank].to(here))
    assert torch.equal(out.cpu(), sum(whole)[3 * rank:3 * rank + 3])
    dist.reduce_scatter(out, [t.contiguous() for t in whole[rank].to(here).split(3)], dist.ReduceOp.MAX)
    assert torch.equal(out.cpu(), torch.stack(whole).amax(0)[3 * rank:3 * rank + 3])

    ins = torch.cat([torch.full((r + 1, 2), 10.0 * rank + r) for r in ranks]).to(here)
    out = torch.empty((rank + 1) * size, 2, device=here)
    dist.all_to_all_single(out, ins, [rank + 1] * size, [r + 1 for r in ranks])
    assert torch.equal(out.cpu(), torch.cat([torch.full((rank + 1, 2), 10.0 * r + rank) for r in ranks]))
    outs = [torch.empty(3, device=here) for _ in ranks]
    dist.all_to_all(outs, [torch.full((3,), 10.0 * rank + r, device=here) for r in ranks])
    assert all(torch.equal(o.cpu(), torch.full((3,), 10.0 * r + rank)) for r, o in enumerate(outs))

    if rank == 0:
        dist.send(tensor(0, (70000,)).to(here), 1)
    elif rank == 1:
        x = torch.empty(70000, device=here)
        dist.recv(x, 0)
        assert torch.equal(x.cpu(), tensor(0, (70000,)))
    x = torch.empty(500, device=here)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor(rank, (500,)).to(here), (rank + 1) % size),
                                        dist.P2POp(dist.irecv, x, (rank - 1) % size)]):
        work.wait()
    assert torch.equal(x.cpu(), tensor((rank - 1) % size, (500,)))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in ranks]
    dist.barrier()

    # what is computed before and after, on the current stream, is in order with it
    with torch.rdna.stream(torch.rdna.Stream()):
        x = torch.ones(100000, device=here) * (rank + 1)
        dist.all_reduce(x)
        assert (x + 1).sum().item() == 100000 * (size * (size + 1) / 2 + 1)

    # subgroups have communicators of their own
    group = dist.new_group([0])
    if rank == 0:
        x = torch.ones(3, device=here)
        dist.all_reduce(x, group=group)
        assert x.tolist() == [1, 1, 1]


def refusals(rank, size, here):
    for call, words in ((lambda: dist.all_reduce(torch.ones(3)), "rdna|cpu|backend"),
                        (lambda: dist.all_reduce(torch.ones(3, device=here), dist.ReduceOp.BAND), "SUM, AVG|BAND|bitwise|integral"),
                        (lambda: dist.all_gather_into_tensor(torch.empty(3, device=here), torch.empty(4, device=here)), "fit|size|shape"),
                        (lambda: dist.all_to_all_single(torch.empty(2 * size + 1, device=here), torch.empty(2 * size + 1, device=here)), "rows|split")):
        try:
            call()
        except (RuntimeError, ValueError, NotImplementedError) as error:
            import re
            assert re.search(words, str(error)), str(error)
        else:
            raise AssertionError(f"not refused: {words}")


def ddp(rank, size, here, steps=3):
    """As many steps as one process does with all of the data."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.BatchNorm1d(32) if size == 1 else nn.LayerNorm(32), nn.Linear(32, 5))
    alone = copy.deepcopy(model)
    model = nn.parallel.DistributedDataParallel(model.to(here), device_ids=[here.index], bucket_cap_mb=0.001)
    a, b = (torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (model, alone))
    for _ in range(steps):
        x, y = torch.randn(8 * size, 12), torch.randint(5, (8 * size,))
        a.zero_grad()
        cross_entropy(model(x[8 * rank:8 * rank + 8].to(here)), y[8 * rank:8 * rank + 8].to(here)).backward()
        b.zero_grad()
        cross_entropy(alone(x), y).backward()
        for p, q in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(p.grad.cpu(), q.grad, rtol=1e-4, atol=1e-5)
        a.step()
        b.step()
    for p, q in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(p.detach().cpu(), q.detach(), rtol=1e-4, atol=1e-5)


def synchronized(rank, size, here):
    """SyncBatchNorm on parts that are not alike does what BatchNorm does on all of the batch."""
    torch.manual_seed(1)
    alone = nn.Sequential(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 9, 4))
    model = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone)).to(here)
    assert isinstance(model[1], nn.SyncBatchNorm)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[here.index])
    torch.rdna.reset_fallback_report()
    for _ in range(2):
        x, y = torch.randn(8, 2, 5, 5) * 2 + 1, torch.randint(4, (8,))
        parts = [(0, 3)] + [(3 + 5 * r // (size - 1), 3 + 5 * (r + 1) // (size - 1)) for r in range(size - 1)]
        mine = slice(*parts[rank])
        found, expected = model(x[mine].to(here)), alone(x)
        torch.testing.assert_close(found.detach().cpu(), expected[mine].detach(), rtol=1e-4, atol=1e-4)
        (cross_entropy(found, y[mine].to(here), reduction="sum") * size).backward()  # DDP takes the mean
        cross_entropy(expected, y, reduction="sum").backward()
    for p, q in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(p.grad.cpu(), q.grad, rtol=1e-3, atol=1e-3)
    for name, value in alone[1].state_dict().items():
        torch.testing.assert_close(model.module[1].state_dict()[name].cpu(), value, rtol=1e-5, atol=1e-5)
    model.eval(), alone.eval()
    torch.testing.assert_close(model(x.to(here)).detach().cpu(), alone(x).detach(), rtol=1e-4, atol=1e-4)
    assert torch.rdna.fallback_report() == {}, torch.rdna.fallback_report()


def late(rank, here):
    """Rank 1 never comes: rank 0 waits for as long as it was told to, and goes on."""
    import datetime

    if rank == 0:
        work = dist.all_reduce(torch.ones(5, device=here), async_op=True)
        assert not work.is_completed()
        try:
            work.wait(datetime.timedelta(seconds=0.3))
        except RuntimeError as error:
            assert "took longer than 300 ms" in str(error), str(error)
        else:
            raise AssertionError("it came")
        assert torch.ones(3, device=here).sum().item() == 3
        try:
            dist.all_reduce(torch.ones(5, device=here))
        except RuntimeError as error:
            assert "communicator" in str(error), str(error)
        else:
            raise AssertionError("a group that was given up works")


def main():
    backend, rank, size, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method="file://" + store, rank=rank, world_size=size)
    here = torch.device("rdna", rank % torch.rdna.device_count())
    torch.rdna.set_device(here)
    collectives(rank, size, here)
    if "ddp" in sys.argv:
        ddp(rank, size, here)
        synchronized(rank, size, here)
    refusals(rank, size, here)
    dist.barrier()
    if "late" in sys.argv:
        late(rank, here)
    dist.destroy_process_group()
    print(f"rank {rank} of {size} is done")


if __name__ == "__main__":
    main()
