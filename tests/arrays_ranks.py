"""What the ranks of arrays_distributed_test.py do: python arrays_ranks.py devices NAMES | processes. Beside NumPy, training in float64."""
import os
import sys

import arrays_tools  # noqa: F401  finds the package
import numpy as np
import rdna.arrays as ra
from rdna.arrays import distributed, nn, optim


def part(rank, dtype, shape):
    """Whole numbers, of bfloat16 in float32."""
    values = np.random.default_rng(rank).integers(1 if dtype != "bool" else 0, 2 if dtype == "bool" else 4, shape)
    return values.astype("float32" if dtype == "bfloat16" else dtype)


def collectives(group):
    """Every operation on every type, of all ranks' parts."""
    size, shape = group.size, (3, 5)

    def asked(call, of, *more):
        given = [of(rank, device) for rank, device in zip(group.ranks, group.devices)]
        made = call(given if group._several else given[0], *more)
        return made if group._several else [made]
    others = ("uint16", "uint32", "uint64") if group.by == "host" else ()  # which the library has not
    for dtype in ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8", "int8", "bool", "complex64", *others):
        everyone = np.stack([part(rank, dtype, shape) for rank in range(size)])
        for op, way in (("sum", np.sum), ("product", np.prod), ("max", np.max), ("min", np.min), ("mean", np.mean)):
            if op == "mean" and "float" not in dtype and dtype[0] != "c" or dtype[0] == "c" and op not in ("sum", "mean"):
                continue
            want = way(everyone.astype("c16" if dtype[0] == "c" else "f8"), axis=0).astype("f4" if dtype == "bfloat16" else dtype)
            # a view, backwards: what it shares memory with stays as it is
            wholes = {rank: ra.asarray(part(rank, dtype, shape)[::-1].copy(), dtype=dtype, device=device) for rank, device in zip(group.ranks, group.devices)}
            for got, device in zip(asked(group.all_reduce, lambda rank, _: wholes[rank][::-1], op), group.devices):
                assert got.device == device and got.dtype == dtype
                np.testing.assert_allclose(got.numpy(), want, rtol={"float16": 1e-3, "bfloat16": 1e-2}.get(dtype, 1e-6))
            for rank, x in wholes.items():
                assert (x.numpy()[::-1] == part(rank, dtype, shape)).all()
    for root in range(size):
        for got in asked(group.broadcast, lambda rank, device: {"a": [ra.asarray(part(rank, "float32", (70000,)), device=device)], "b": 7}, root):
            assert got["b"] == 7 and (got["a"][0].numpy() == part(root, "float32", (70000,))).all()
    for shape in ((2, 3), (), (0, 4)):
        everyone = np.concatenate([part(rank, "int64", shape).reshape(shape or (1,)) for rank in range(size)])
        for got in asked(group.all_gather, lambda rank, device: ra.asarray(part(rank, "int64", shape), device=device)):
            np.testing.assert_array_equal(got.numpy(), everyone)
    many = [[ra.asarray(np.float32(rank + i), device=device) for i in range(70)] for rank, device in zip(group.ranks, group.devices)]
    for got in asked(group.all_reduce, lambda rank, _: many[group.ranks.index(rank)]):  # more than are handed over together
        assert [float(x) for x in got] == [sum(range(size)) + size * i for i in range(70)]
    group.barrier()


def refusals(group):
    lists = group._several

    def one(value, device=None):
        return [ra.asarray(value, device=d) for d in group.devices] if lists else ra.asarray(value, device=group.devices[0])
    for call, words in ((lambda: group.all_reduce(one([1.0]), "median"), "'median'"),
                        (lambda: group.all_reduce(one([1]), "mean"), "no mean of int64"),
                        (lambda: group.all_reduce(one([1j]), "max"), "no max of complex64"),
                        (lambda: group.broadcast(one([1.0]), group.size), "there are 0 to"),
                        *([(lambda: group.all_reduce(one([1.0])[:-1]), "one for each of")] if lists else [])):
        try:
            call()
        except (ValueError, TypeError) as error:
            assert words in str(error), str(error)
        else:
            raise AssertionError(f"not refused: {words}")


class Tied(nn.Module):
    """Words in and out by one matrix, a norm of batches between."""

    def __init__(self):
        self.table = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6)
        self.out = nn.Linear(6, 11)
        self.out.weight = self.table.weight

    def forward(self, ids):
        return self.out(self.norm(self.table(ids)))


def oracle(table, weight, bias, out, ids, targets, steps, lr):
    """The same network by hand in float64, with plain descent: losses, and the table in the end."""
    losses = []
    for at in range(steps):
        x = table[ids[at]]
        centred = x - x.mean(1, keepdims=True)
        deviation = np.sqrt((centred ** 2).mean(1, keepdims=True) + 1e-5)
        normal = centred / deviation
        h = normal * weight + bias
        logits = h @ table.T + out
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        rows = np.arange(len(x))
        losses.append(-np.log(p[rows, targets[at]]).mean())
        p[rows, targets[at]] -= 1
        p /= len(x)
        slope_h = p @ table
        slope_n = slope_h * weight
        slope_x = (slope_n - slope_n.mean(1, keepdims=True) - normal * (slope_n * normal).mean(1, keepdims=True)) / deviation
        slope_table = p.T @ h
        np.add.at(slope_table, ids[at], slope_x)
        weight, bias = weight - lr * (slope_h * normal).sum(0), bias - lr * slope_h.sum(0)
        table, out = table - lr * slope_table, out - lr * p.sum(0)
    return losses, table


def training(group, rows):
    """|rows| samples in all: each process its part, which its devices share."""
    nn.manual_seed(5 + group.rank)  # those of rank 0 are everyone's
    model = distributed.DataParallel(Tied(), group)
    begin = [model.state_dict()[name].numpy().astype("f8") for name in ("table.weight", "norm.weight", "norm.bias", "out.bias")]
    random, steps = np.random.default_rng(1), 4
    ids, targets = random.integers(0, 11, (steps, rows)), random.integers(0, 11, (steps, rows))
    want, table = oracle(*begin, ids, targets, steps, 0.5)
    per = rows // (group.size // len(group.ranks))
    mine = slice(0, rows) if group._several else slice(per * group.rank, per * (group.rank + 1))
    for compiled in (False, True):
        model.load_state_dict({name: v.astype("f4") for name, v in zip(("table.weight", "norm.weight", "norm.bias", "out.bias"), begin)})
        step, sgd, losses = model.value_and_grad(lambda net, x, t: nn.cross_entropy(net(x), t), compiled=compiled), optim.SGD(lr=0.5), []
        for at in range(steps):
            value, slopes = step(ra.asarray(ids[at][mine]), ra.asarray(targets[at][mine]))
            sgd.update(model, slopes)
            losses.append(float(value))
        np.testing.assert_allclose(losses, want, rtol=2e-6)
        tables = [replica.table.weight.numpy() for replica in model.replicas]
        np.testing.assert_allclose(tables[0], table, rtol=0, atol=3e-6)
        for replica, other in zip(model.replicas, tables):
            assert replica.out.weight is replica.table.weight and (other == tables[0]).all()
    if group._several:
        return
    everyone = group.all_gather(model.model.table.weight).numpy().reshape(group.size, 11, 6)
    assert (everyone == everyone[0]).all()


def resumed(group):
    """An optimizer that is saved and loaded goes on where it was, on every device."""
    if not group._several:
        return
    model, adam = distributed.DataParallel(nn.Linear(3, 2), group), optim.Adam(lr=0.1)
    step = model.value_and_grad(lambda net, x: (net(x) ** 2).sum(), reduction="sum")
    x = ra.asarray(np.arange(12.0, dtype="f4").reshape(4, 3))
    adam.update(model, step(x)[1])
    state, weights = adam.state_dict(), model.state_dict()
    value, slopes = step(x)
    np.testing.assert_allclose(float(value), (model(x).numpy().astype("f8") ** 2).sum(), rtol=1e-5)
    adam.update(model, slopes)
    want = model.model.weight.numpy()
    model.load_state_dict(weights)
    other = optim.Adam(lr=1.0)
    other.load_state_dict(state)
    other.update(model, step(x)[1])
    assert all((replica.weight.numpy() == want).all() for replica in model.replicas)


def differing(group):
    """Ranks that ask for different things are told so, all of them."""
    if group._several or group.by != "host":
        return
    try:
        group.all_reduce(ra.ones((4,), dtype=ra.bfloat16) if group.rank == 1 else ra.ones((3,)))
    except ValueError as error:
        assert "rank 1 asks for all_reduce sum of bfloat16 (4,), another for all_reduce sum of float32 (3,)" in str(error), str(error)
    else:
        raise AssertionError("not refused")


def main():
    if sys.argv[1] == "devices":
        group = distributed.of_devices(sys.argv[2].split(","))
    else:
        group = distributed.init(timeout=120)
    with group:
        collectives(group)
        refusals(group)
        training(group, 7 if group._several else 4 * group.size)
        resumed(group)
        differing(group)
        # in one piece, as other processes write there too
        os.write(1, f"{group.ranks} of {group.size} by {group.by} on {group.devices} done\n".encode())


if __name__ == "__main__":
    main()
