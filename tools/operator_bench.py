#!/usr/bin/env python3
"""Memory-bound operators beside PyTorch's on one GPU, in one run: the same data, the same events, one table.

    tools/operator_bench.py LIBRDNA_SO [--driver cuda] [--only WORD] [--sizes SET,…] [--scale 1.0] [--extra] [--json FILE]

With --extra it takes other operators: chains in one pass, beside PyTorch's operators one by one, and f64, whose chains
and functions wait for arithmetic too. The sets of sizes are below: the default is large, the others are smaller or of awkward shapes. Needs PyTorch with that GPU. Each line has the median time of PyTorch's eager operator and of ours, the ratio, and the
share of the copy bandwidth, measured in the same run, at which ours moves the bytes that the operator must move.
Results are compared too: a fast wrong answer is shown as WRONG and makes the exit status 1."""
import argparse
import ctypes
import json
import math
import sys
from typing import NamedTuple

import torch
import torch.nn.functional as F

from rdna_ctypes import BF16, F32, CrossEntropy, FusedStep, Library, Optim, OptimItem, Pool, Tensor, real, torch_time, view


def close(got, want, rtol):
    """Largest error relative to the size of what is expected, within |rtol| of the larger of it and the mean size."""
    total = want.numel()
    worst = 0.0
    g, w = got.reshape(-1), want.reshape(-1)
    step = 1 << 26
    for i in range(0, total, step):  # in pieces: operands are most of the card's memory already
        a, b = g[i:i + step].double(), w[i:i + step].double()
        scale = b.abs() + b.abs().mean() + 1e-30
        worst = max(worst, ((a - b).abs() / scale).nan_to_num(1e9).max().item())
    return worst <= rtol, worst


class Sizes(NamedTuple):
    """Values of a flat tensor, shapes of rows, of logits, of images and of what is sorted, (words, width, how many are
    looked up) of an embedding, (how many, shape) of parameters."""
    flat: int
    rows: tuple
    logits: tuple
    images: tuple
    sort: tuple
    table: tuple
    parameters: tuple


SIZES = {
    "large": Sizes(1 << 28, (65536, 4096), (8192, 50304), (64, 256, 112, 112), (1 << 26,), (50304, 4096, 65536),
                   (16, (4096, 4096))),
    "medium": Sizes(1 << 23, (4096, 4096), (512, 32000), (16, 64, 112, 112), (1 << 22,), (30522, 768, 16384),
                    (12, (768, 3072))),
    "odd": Sizes(12345677, (4001, 3001), (333, 50257), (7, 37, 113, 75), (3001, 4001), (10007, 333, 40001),
                 (20, (1023, 517))),
    "narrow": Sizes(1 << 21, (262144, 96), (65536, 100), (256, 32, 28, 28), (65536, 128), (1000, 64, 262144),
                    (100, (64, 192))),
    "wide": Sizes((1 << 24) + 4, (24, 1 << 20), (32, 256000), (2, 32, 512, 512), (64, 65536), (2000, 16384, 1024),
                  (2, (2048, 8192))),
}


class Bench:
    """Each method named case_* (extra_* with --extra) yields (name, bytes, PyTorch's call, our call, check), where
    check() compares."""

    def __init__(self, lib, sizes, scale):
        self.lib, self.scale, self.sizes = lib, scale, SIZES[sizes]
        torch.manual_seed(0)

    def n(self, count):
        """|count| at this scale; a multiple of 64 unless it is whole."""
        return count if self.scale == 1 else max(64, int(count * self.scale) // 64 * 64)

    def of(self, shape, dtype=F32):
        return torch.randn(self.n(shape[0]), *shape[1:], device="cuda", dtype=dtype)

    def rows(self, dtype=BF16):
        return self.of(self.sizes.rows, dtype)

    def case_silu(self):
        x = self.of((self.sizes.flat,))
        out = torch.empty_like(x)
        want = F.silu(x)
        yield ("silu f32", 8 * x.numel(), lambda: F.silu(x), self.lib.op("map", "silu", view(x), real(0), real(0), view(out)),
               lambda: close(out, want, 1e-5))

    def case_gelu(self):
        x = self.rows()
        out = torch.empty_like(x)
        want = F.gelu(x)
        yield ("gelu bf16", 4 * x.numel(), lambda: F.gelu(x),
               self.lib.op("map", "gelu_erf", view(x), real(0), real(0), view(out)), lambda: close(out, want, 2e-2))

    def case_binary(self):
        x, y = self.rows(), self.rows()
        out = torch.empty_like(x)
        want = x + y
        yield ("add bf16", 6 * x.numel(), lambda: x + y,
               self.lib.op("zip", "add", view(x), view(y), real(0), real(0), view(out)), lambda: close(out, want, 1e-2))
        t = torch.empty_like(x)
        product = x * y
        yield ("mul of transposed views", 6 * x.numel(), lambda: x.t() * y.t(),
               self.lib.op("zip", "mul", view(x.t()), view(y.t()), real(0), real(0), view(t.t())),
               lambda: close(t, product, 1e-2))

    def case_transpose(self):
        x = self.rows()
        out = torch.empty(x.shape[1], x.shape[0], device="cuda", dtype=x.dtype)
        want = x.t().contiguous()
        yield ("transpose copy", 4 * x.numel(), lambda: x.t().contiguous(),
               self.lib.op("copy", view(x.t()), view(out)), lambda: close(out, want, 0))

    def case_cast(self):
        x = self.of((self.sizes.flat,))
        out = torch.empty_like(x, dtype=BF16)
        want = x.to(BF16)
        yield ("cast f32 to bf16", 6 * x.numel(), lambda: x.to(BF16), self.lib.op("cast", view(x), view(out)),
               lambda: close(out, want, 0))

    def case_dropout(self):
        x = self.rows()
        out, mask = torch.empty_like(x), torch.empty(x.shape, device="cuda", dtype=torch.bool)

        def check():
            share = mask.float().mean().item()
            kept = close(out, (x.float() / 0.9 * mask).to(BF16), 2e-2)
            return kept[0] and abs(share - 0.9) < 5 * (0.09 / mask.numel()) ** 0.5, kept[1]
        yield ("dropout", 5 * x.numel(), lambda: torch.native_dropout(x, 0.1, True),
               self.lib.op("dropout", ctypes.c_uint64(1), ctypes.c_uint64(0), ctypes.c_float(0.1), view(x), view(out),
                           view(mask)), check)

    def case_reductions(self):
        x = self.rows()
        out, want = torch.empty(x.shape[0], device="cuda", dtype=BF16), x.sum(-1)
        zero = ctypes.c_double(0)
        yield ("sum rows", 2 * x.numel(), lambda: x.sum(-1),
               self.lib.op("reduce", 0, view(x), ctypes.c_uint32(2), zero, view(out)), lambda: close(out, want, 2e-2))
        columns, wanted = torch.empty(x.shape[1], device="cuda", dtype=BF16), x.sum(0)
        yield ("sum columns", 2 * x.numel(), lambda: x.sum(0),
               self.lib.op("reduce", 0, view(x), ctypes.c_uint32(1), zero, view(columns)),
               lambda: close(columns, wanted, 2e-2))
        index, first = torch.empty(x.shape[0], device="cuda", dtype=torch.int64), x.float().argmax(-1)
        picked = x.gather(1, first[:, None])

        def check():
            same = (x.gather(1, index[:, None]) == picked).all().item()
            return same, 0.0 if same else 1.0
        yield ("argmax rows", 2 * x.numel(), lambda: x.argmax(-1),
               self.lib.op("reduce", 6, view(x), ctypes.c_uint32(2), zero, view(index)), check)

    def case_sum_all(self):
        x = self.of((self.sizes.flat,))
        out, want = torch.empty((), device="cuda"), x.double().sum()
        size = x.double().abs().sum().item()
        yield ("sum of all f32", 4 * x.numel(), lambda: x.sum(),
               self.lib.op("reduce", 0, view(x), ctypes.c_uint32(1), ctypes.c_double(0), view(out)),
               lambda: (abs(out.item() - want.item()) <= 1e-6 * size, abs(out.item() - want.item()) / size))

    def case_cumsum(self):
        x = self.rows()
        out = torch.empty_like(x)
        want = x.float().cumsum(-1).to(BF16)
        yield ("cumsum rows", 4 * x.numel(), lambda: x.cumsum(-1), self.lib.op("cumsum", view(x), 1, view(out)),
               lambda: close(out, want, 2e-2))

    def case_softmax(self):
        x, g = self.rows(), self.rows()
        y, out = torch.softmax(x, -1), torch.empty_like(x)
        one = ctypes.c_float(1)
        yield ("softmax", 4 * x.numel(), lambda: torch.softmax(x, -1),
               self.lib.op("softmax", view(x), 1, one, view(out)), lambda: close(out, y, 2e-2))
        want = torch._softmax_backward_data(g, y, -1, BF16)
        dx = torch.empty_like(x)
        yield ("softmax backward", 6 * x.numel(), lambda: torch._softmax_backward_data(g, y, -1, BF16),
               self.lib.op("softmax_backward", view(g), view(y), 1, one, view(dx)), lambda: close(dx, want, 3e-2))

    def case_norms(self):
        x, g = self.rows(), self.rows()
        w, b = (torch.randn(x.shape[1], device="cuda", dtype=BF16) for _ in range(2))
        shape = (x.shape[1],)
        eps = ctypes.c_double(1e-5)
        out, want = torch.empty_like(x), F.rms_norm(x, shape, w, 1e-5)
        yield ("RMS norm", 4 * x.numel(), lambda: F.rms_norm(x, shape, w, 1e-5),
               self.lib.op("rms_norm", view(x), view(w), eps, view(out)), lambda: close(out, want, 3e-2))
        wanted, mean, rstd = torch.native_layer_norm(x, shape, w, b, 1e-5)
        out2 = torch.empty_like(x)
        yield ("layer norm", 4 * x.numel(), lambda: F.layer_norm(x, shape, w, b),
               self.lib.op("layer_norm", view(x), view(w), view(b), eps, view(out2)),
               lambda: close(out2, wanted, 3e-2))
        call = lambda: torch.ops.aten.native_layer_norm_backward(g, x, shape, mean, rstd, w, b, [True] * 3)
        dx = call()[0]
        dw, db = (g.double() * (x.double() - mean) * rstd).sum(0).to(BF16), g.sum(0, dtype=torch.float64).to(BF16)
        mx, mw, mb = torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)

        def check():
            parts = [close(mx, dx, 3e-2), close(mw, dw, 6e-2), close(mb, db, 6e-2)]
            return all(p[0] for p in parts), max(p[1] for p in parts)
        yield ("layer norm backward", 6 * x.numel(), call,
               self.lib.op("layer_norm_backward", view(g), view(x), view(w), eps, None, None, view(mx), view(mw),
                           view(mb)), check)

    def case_cross_entropy(self):
        x = self.of(self.sizes.logits, BF16).requires_grad_()
        target = torch.randint(0, x.shape[1], (x.shape[0],), device="cuda")
        call = lambda: torch.autograd.grad(F.cross_entropy(x, target), x)
        want = torch.softmax(x.detach().float(), -1)  # PyTorch's own gradient is off by a step of its type
        want[torch.arange(x.shape[0], device="cuda"), target] -= 1
        want = (want / x.shape[0]).to(BF16)
        options = CrossEntropy(1, -100, 0.0, False)
        loss, total = torch.empty((), device="cuda", dtype=F32), torch.empty((), device="cuda", dtype=F32)
        one = torch.ones((), device="cuda", dtype=F32)
        lse, dx = torch.empty(x.shape[0], device="cuda", dtype=F32), torch.empty_like(x)
        d = x.detach()
        forward = self.lib.op("cross_entropy", ctypes.byref(options), view(d), view(target), None, view(loss),
                              view(lse), view(total))
        backward = self.lib.op("cross_entropy_backward", ctypes.byref(options), view(one), view(d), view(target), None,
                               view(lse), view(total), view(dx))

        def ours():
            forward()
            backward()
        yield "cross-entropy fwd + bwd", 6 * x.numel(), call, ours, lambda: close(dx, want, 3e-2)

    def case_channel_norms(self):
        x = self.of(self.sizes.images)
        out = torch.empty_like(x)
        mean, rstd = (torch.empty(x.shape[1], device="cuda") for _ in range(2))
        eps = ctypes.c_double(1e-5)
        want = F.batch_norm(x, None, None, training=True)
        yield ("batch norm, training", 12 * x.numel(), lambda: F.batch_norm(x, None, None, training=True),
               self.lib.op("batch_norm", view(x), None, None, None, None, ctypes.c_double(0.1), eps, view(out), view(mean),
                           view(rstd)), lambda: close(out, want, 1e-4))
        del want
        groups = 32 if x.shape[1] % 32 == 0 else 1
        wanted = F.group_norm(x, groups)
        gm, gr = (torch.empty(x.shape[0], groups, device="cuda") for _ in range(2))
        yield ("group norm", 12 * x.numel(), lambda: F.group_norm(x, groups),
               self.lib.op("group_norm", view(x), ctypes.c_int64(groups), None, None, eps, view(out),
                           view(gm), view(gr)), lambda: close(out, wanted, 1e-4))

    def case_max_pool(self):
        x = self.of(self.sizes.images)
        pool = Pool(spatial_dims=2)
        for i in range(2):
            pool.window[i], pool.stride[i], pool.pad_before[i], pool.pad_after[i], pool.dilation[i] = 3, 2, 1, 1, 1
        want, where = torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
        out, indices = torch.empty_like(want), torch.empty_like(where)

        def check():
            same = bool((out == want).all()) and bool((indices == where).all())
            return same, 0.0 if same else 1.0
        yield ("max pool 3x3/2, indices", 4 * x.numel() + 12 * out.numel(),
               lambda: torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1]),
               self.lib.op("max_pool", ctypes.byref(pool), view(x), view(out), view(indices)), check)

    def case_embedding(self):
        words, width, count = self.sizes.table
        table = torch.randn(words, width, device="cuda", dtype=BF16)
        ids = torch.randint(0, words, (self.n(count),), device="cuda")
        out = torch.empty(ids.shape[0], width, device="cuda", dtype=BF16)
        want = F.embedding(ids, table)
        yield ("embedding", 4 * out.numel(), lambda: F.embedding(ids, table),
               self.lib.op("embedding", view(table), view(ids), view(out), None), lambda: close(out, want, 0))

    def case_sort(self):
        x = self.of(self.sizes.sort)
        values, indices = torch.empty_like(x), torch.empty(x.shape, device="cuda", dtype=torch.int64)
        want = x.sort()[0]

        def check():
            same = bool((values == want).all()) and bool((x.gather(-1, indices) == want).all())
            return same, 0.0 if same else 1.0
        yield ("sort", 12 * x.numel(), lambda: x.sort(),
               self.lib.op("sort", view(x), x.dim() - 1, ctypes.c_bool(False), view(values), view(indices)), check)

    def case_adamw(self):
        count, shape = self.sizes.parameters
        p = [torch.randn(shape, device="cuda").requires_grad_() for _ in range(max(1, int(count * self.scale)))]
        for q in p:
            q.grad = torch.randn_like(q)
        mine = [[q.detach().clone(), q.grad, torch.zeros_like(q), torch.zeros_like(q)] for q in p]
        items = (OptimItem * len(p))()
        for item, (param, grad, m, v) in zip(items, mine):
            item.param, item.grad = view(param), view(grad)
            item.state[0], item.state[1] = view(m.detach()), view(v.detach())
        options = Optim(kind=1, learning_rate=1e-3, weight_decay=1e-2, beta1=0.9, beta2=0.999, epsilon=1e-8,
                        decoupled=True, step=1)
        call = self.lib.op("optim_step", ctypes.byref(options), items, len(p), None, None)
        call()
        self.lib.check(self.lib.c.rdna_stream_synchronize(self.lib.stream))
        fused = torch.optim.AdamW(p, fused=True)
        fused.step()
        result = close(mine[0][0], p[0].detach(), 1e-5)  # after one step each: later ones have their own counts
        foreach = torch.optim.AdamW(p, foreach=True)
        size = sum(q.numel() for q in p) * 4 * 7
        yield "AdamW (fused)", size, lambda: fused.step(), call, lambda: result
        yield "AdamW (foreach)", size, lambda: foreach.step(), call, lambda: result

    def chain(self, steps, inputs, out):
        """The call of a chain; a step is (operation, p, q), or (operation, number of the input) of two operands."""
        words = (FusedStep * len(steps))(*(FusedStep(s[0], False, False, 0, s[1], s[2]) if len(s) == 3 else
                                           FusedStep(s[0], True, False, s[1], 0, 0) for s in steps))
        views = (ctypes.POINTER(Tensor) * len(inputs))(*(view(t) for t in inputs))
        return self.lib.op("fused", words, len(steps), views, len(inputs), view(out))

    def extra_chains(self):
        add, mul = (self.lib.number("zip", name) for name in ("add", "mul"))
        affine, silu, gelu_tanh, gelu = (self.lib.number("map", name) for name in ("affine", "silu", "gelu_tanh", "gelu_erf"))
        for dtype, name, near in ((BF16, "bf16", 5e-2), (F32, "f32", 1e-5)):
            x, y = self.rows(dtype), self.rows(dtype)
            bias, out = torch.randn(x.shape[1], device="cuda", dtype=dtype), torch.empty_like(x)
            for label, steps, inputs, call in (
                    ("bias gelu residual", [(add, 1), (gelu, 0, 0), (add, 2)], [x, bias, y],
                     lambda: F.gelu(x + bias) + y),
                    ("silu gate", [(silu, 0, 0), (mul, 1)], [x, y], lambda: F.silu(x) * y),
                    ("bias gelu gate affine", [(add, 1), (gelu_tanh, 0, 0), (mul, 2), (affine, 0.5, 0.25)], [x, bias, y],
                     lambda: F.gelu(x + bias, approximate="tanh") * y * 0.5 + 0.25)):
                want = call()
                yield (f"{label} {name}", (len([t for t in inputs if t is not bias]) + 1) * x.nbytes, call,
                       self.chain(steps, inputs, out), lambda: close(out, want, near))

    def extra_f64(self):
        x = self.of((self.sizes.flat // 4,), torch.float64)
        y, size = torch.randn_like(x), x.abs()
        out = torch.empty_like(x)
        for name, call, a in (
                ("sqrt", torch.sqrt, size), ("exp", torch.exp, x), ("expm1", torch.expm1, x), ("log", torch.log, size),
                ("log2", torch.log2, size), ("log1p", torch.log1p, size), ("sin", torch.sin, x), ("tan", torch.tan, x),
                ("tanh", torch.tanh, x), ("erf", torch.erf, x), ("sigmoid", torch.sigmoid, x), ("silu", F.silu, x),
                ("gelu_erf", F.gelu, x)):
            want = call(a)
            yield (f"{name} f64", 16 * x.numel(), lambda: call(a),
                   self.lib.op("map", name, view(a), real(0), real(0), view(out)), lambda: close(out, want, 1e-13))
        for name, call in (("add", torch.add), ("mul", torch.mul), ("pow", torch.pow)):
            want = call(size, y)
            yield (f"{name} f64", 24 * x.numel(), lambda: call(size, y),
                   self.lib.op("zip", name, view(size), view(y), real(0), real(0), view(out)),
                   lambda: close(out, want, 1e-13))


def run_set(lib, sizes, args, copy, lines):
    """Prints the table of a set of sizes and adds to |lines|; whether anything failed."""
    print(f"{sizes + ' sizes':26} {'PyTorch ms':>10} {'rdna ms':>9} {'ratio':>6} {'GB/s':>6} {'of copy':>7}  result")
    bench, first, failed = Bench(lib, sizes, args.scale), len(lines), False
    for method in [m for m in dir(bench) if m.startswith("extra_" if args.extra else "case_")]:
        if args.only and not any(w in method for w in args.only.split(",")):
            continue
        try:
            for name, size, theirs, ours, check in getattr(bench, method)():
                calls = 3 if size > 1 << 28 else 20
                t = torch_time(theirs, calls, args.rounds)
                r = lib.time(ours, calls, args.rounds)
                right, worst = check()
                failed |= not right
                rate = size / r / 1e6
                lines.append({"sizes": sizes, "operator": name, "pytorch_ms": t, "rdna_ms": r, "ratio": t / r,
                              "gb_s": rate, "of_copy": rate / copy, "right": right, "worst": worst})
                print(f"{name:26} {t:10.4f} {r:9.4f} {t / r:6.2f} {rate:6.0f} {100 * rate / copy:6.0f}%  "
                      f"{'right' if right else 'WRONG'} ({worst:.1e})", flush=True)
        except (RuntimeError, AttributeError) as error:
            failed = True
            print(f"{method.split('_', 1)[1]:26} failed: {error}", flush=True)
        torch.cuda.empty_cache()
    here = lines[first:]
    if here:
        mean = math.exp(sum(math.log(l["ratio"]) for l in here) / len(here))
        print(f"{len(here)} operators, geometric mean {mean:.2f}, least {min(l['ratio'] for l in here):.2f}, "
              f"below 80 % of copy: {', '.join(l['operator'] for l in here if l['of_copy'] < 0.8) or 'none'}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--driver", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--extra", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--sizes", default="large", help="of " + ", ".join(SIZES) + "; several with commas")
    args = parser.parse_args()
    lib = Library(args.library, args.driver)
    a = torch.randn(1 << 28, device="cuda")
    b = torch.empty_like(a)
    copy = 8 * a.numel() / torch_time(lambda: b.copy_(a), 3, 15) / 1e6
    del a, b
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, copy {copy:.0f} GB/s, sizes x {args.scale:g}")
    lines, failed = [], False
    for sizes in args.sizes.split(","):
        failed |= run_set(lib, sizes, args, copy, lines)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(), "copy_gb_s": copy, "lines": lines}, f, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
