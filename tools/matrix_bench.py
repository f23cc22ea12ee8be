#!/usr/bin/env python3
"""Products, convolutions and attention beside PyTorch's on one GPU, in one run: the same data, the same events, and
both in turn, since what the clock is depends on what was done before.

    tools/matrix_bench.py LIBRDNA_SO [--driver cuda] [--only WORD] [--json FILE]

Needs PyTorch with that GPU. RDNA_VENDOR=off keeps to our own kernels; RDNA_VENDOR=cublaslt allows that library. Each
line has both times, the rates, and the ratio PyTorch's time over ours. Results are compared; a wrong one makes the
exit status 1. "unfused" is attention by our own products, a mask that is added, and softmax, beside our attention in one
kernel: time, and the most memory that either holds, operands and results included."""
import argparse
import ctypes
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

from rdna_ctypes import BF16, F32, Convolution, Library, MoeProduct, Sdpa, blocks_of, real, torch_time, view


# ResNet-50's convolutions: channels, size of the image, channels of the result, window, stride, how many there are.
RESNET_50 = ((3, 224, 64, 7, 2, 1),
             (64, 56, 64, 1, 1, 1), (64, 56, 64, 3, 1, 3), (64, 56, 256, 1, 1, 4), (256, 56, 64, 1, 1, 2),
             (256, 56, 128, 1, 1, 1), (128, 56, 128, 3, 2, 1), (128, 28, 512, 1, 1, 4), (256, 56, 512, 1, 2, 1),
             (512, 28, 128, 1, 1, 3), (128, 28, 128, 3, 1, 3),
             (512, 28, 256, 1, 1, 1), (256, 28, 256, 3, 2, 1), (256, 14, 1024, 1, 1, 6), (512, 28, 1024, 1, 2, 1),
             (1024, 14, 256, 1, 1, 5), (256, 14, 256, 3, 1, 5),
             (1024, 14, 512, 1, 1, 1), (512, 14, 512, 3, 2, 1), (512, 7, 2048, 1, 1, 3), (1024, 14, 2048, 1, 2, 1),
             (2048, 7, 512, 1, 1, 2), (512, 7, 512, 3, 1, 2))

# Convolutions with one channel a group, as MobileNet, EfficientNet and ConvNeXt have them: channels, size, window, stride.
DEPTHWISE = ((96, 56, 7, 1), (192, 28, 7, 1), (384, 14, 7, 1), (768, 7, 7, 1), (32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (144, 56, 5, 2),
             (240, 28, 5, 1), (480, 14, 5, 1), (480, 14, 3, 1), (672, 14, 5, 2), (960, 7, 5, 1), (64, 57, 9, 1))


def close(got, want, rtol):
    """Largest error over what is expected and its root mean square, beyond a step of the type of either side."""
    step = {BF16: 2.0**-7, torch.float16: 2.0**-10}.get(want.dtype, 0.0)
    size = want.float().abs()
    error = ((got.float() - want.float()).abs() - step * size).clamp(min=0)
    worst = (error / (size + size.pow(2).mean().sqrt() + 1e-30)).max().item()
    return worst <= rtol, worst


def close_rows(got, want, rtol):
    """The same of sums whose terms were rounded to the type: they are as far off as their row is large."""
    row = want.float().pow(2).mean(-1, keepdim=True).sqrt() + want.float().pow(2).mean().sqrt()
    worst = ((got.float() - want.float()).abs() / (want.float().abs() + row)).max().item()
    return worst <= rtol, worst


def first_of_dmask(q, k, v, dout, mask, rows=64):
    """The gradient of a mask's first rows by the formula in f32: PyTorch rounds each sequence's and head's share."""
    q, k, v, dout, mask = (t.float() for t in (q[:, :, :rows], k, v, dout[:, :, :rows], mask[:, :, :rows]))
    p = torch.softmax(q @ k.transpose(2, 3) * q.shape[-1]**-0.5 + mask, -1)
    dp = dout @ v.transpose(2, 3)
    return (p * (dp - (p * dp).sum(-1, keepdim=True))).sum_to_size(mask.shape)


class Stats(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in (
        "allocated", "requested", "reserved", "peak_allocated", "peak_requested", "peak_reserved", "blocks", "peak_blocks",
        "alloc_count", "free_count", "alloc_bytes", "free_bytes", "segment_count", "peak_segment_count", "driver_allocs", "driver_frees", "retries", "ooms")] + [("fragmentation", ctypes.c_double)]


class Bench:
    """Each method named case_* yields (name, FLOPs, PyTorch's call, our call, check) and, of convolutions, how many
    of them a batch of 64 through ResNet-50 has."""

    def __init__(self, lib):
        self.lib = lib
        torch.manual_seed(0)
        torch.backends.cudnn.allow_tf32 = False  # f32 is f32 on both sides

    def case_gemm(self):
        for dtype, name, rtol in ((BF16, "bf16", 5e-2), (torch.float16, "f16", 1e-2), (F32, "f32", 1e-4)):
            for m, n, k in ((1024,) * 3, (4096,) * 3, (8192,) * 3, (8192, 3072, 768), (8192, 768, 3072)):
                a = torch.randn(m, k, device="cuda", dtype=dtype)
                b = torch.randn(n, k, device="cuda", dtype=dtype)  # a layer's weight: (out, in)
                c = torch.empty(m, n, device="cuda", dtype=dtype)
                want = a @ b.t()
                yield (f"gemm {name} {m}x{n}x{k}", 2.0 * m * n * k, lambda: torch.mm(a, b.t()),
                       self.lib.op("gemm", ctypes.c_float(1), view(a), view(b.t()), ctypes.c_float(0), None, view(c)),
                       lambda: close(c, want, rtol))

    def weights(self, name, dense):
        """|dense| in f16, as it is or as blocks of type |name| have it; the operand of that type; and its memory."""
        half = dense.half()
        if name == "f16":
            return half, view(half), half
        blocks, memory = blocks_of(self.lib, name, dense)
        self.lib.op("dequantize", blocks, view(half))()
        self.lib.check(self.lib.c.rdna_stream_synchronize(self.lib.stream))
        return half, blocks, memory

    def case_linear(self):
        """A prompt in f16 through weights in blocks, beside PyTorch's product with the same weights in f16."""
        for n, k in ((4096, 4096), (14336, 4096), (4096, 14336)):
            for weights in ("f16", "q8_0", "q4_0", "q4_K"):
                dense = torch.randn(n, k, device="cuda")
                half, blocks, memory = self.weights(weights, dense)
                for m in (512, 4096):
                    x = torch.randn(m, k, device="cuda", dtype=torch.float16)
                    out = torch.empty(m, n, device="cuda", dtype=torch.float16)
                    want = x @ half.t()
                    yield (f"linear f16 x {weights} {m}x{n}x{k}", 2.0 * m * n * k, lambda: torch.mm(x, half.t()),
                           self.lib.op("linear", view(x), blocks, None, view(out)), lambda: close(out, want, 1e-2))
                del dense, half, memory

    def case_moe(self):
        """Tokens of which each takes 8 of 128 experts, all as often, beside PyTorch's products of the sorted rows with the
        same weights in f16."""
        experts, top, n, k = 128, 8, 768, 2048
        for weights in ("f16", "q8_0", "q4_K"):
            dense = torch.randn(experts, n, k, device="cuda")
            half, blocks, memory = self.weights(weights, dense)
            for tokens in (512, 4096):
                x = torch.randn(tokens, k, device="cuda", dtype=torch.float16)
                slots = torch.arange(tokens * top, device="cuda", dtype=torch.int32)
                indices = (slots * 37 % experts).view(tokens, top)
                order = torch.argsort(indices.flatten(), stable=True)
                rows = x[order // top].view(experts, -1, k)
                out = torch.empty(tokens, top, n, device="cuda")
                want = torch.empty(tokens * top, n, device="cuda")
                want[order] = torch.bmm(rows, half.transpose(1, 2)).float().view(-1, n)
                options = MoeProduct()
                yield (f"moe f16 x {weights} {tokens}, {top} of {experts}", 2.0 * tokens * top * n * k,
                       lambda: torch.bmm(rows, half.transpose(1, 2)),
                       self.lib.op("moe_linear", ctypes.byref(options), view(x), blocks, view(indices), view(out)),
                       lambda: close(out.view(-1, n), want, 1e-2))
            del dense, half, memory

    def case_attention(self):
        for length in (1024, 4096, 16384):
            q, k, v, g = (torch.randn(4, 32, length, 128, device="cuda", dtype=BF16) for _ in range(4))
            out, lse = torch.empty_like(q), torch.empty(4, 32, length, device="cuda")
            options = Sdpa(scale=128**-0.5, causal=True)
            flops = 4.0 * 4 * 32 * length * length * 128 / 2
            leaves = [t.requires_grad_() for t in (q, k, v)]
            result = F.scaled_dot_product_attention(*leaves, is_causal=True)
            want = result.detach()
            q, k, v = (t.detach() for t in leaves)
            yield (f"attention causal {length} fwd", flops,
                   lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                   self.lib.op("sdpa", ctypes.byref(options), view(q), view(k), view(v), view(out), view(lse)),
                   lambda: close(out, want, 5e-2))
            wants = torch.autograd.grad(result, leaves, g, retain_graph=True)
            grads = [torch.empty_like(t) for t in (q, k, v)]

            def check():
                parts = [close_rows(mine, theirs, 5e-2) for mine, theirs in zip(grads, wants)]
                return all(p[0] for p in parts), max(p[1] for p in parts)
            yield (f"attention causal {length} bwd", 2.5 * flops,
                   lambda: torch.autograd.grad(result, leaves, g, retain_graph=True),
                   self.lib.op("sdpa_backward", ctypes.byref(options), view(q), view(k), view(v), view(out), view(lse),
                               view(g), *[view(t) for t in grads], None), check)
            del result, wants, leaves

    def case_masked_attention(self):
        """A mask that is added: one for all sequences and heads, or each its own; forward, gradients, and with the mask's."""
        for length, batch, d, alone in ((1024, 16, 64, False), (1024, 16, 128, False), (4096, 4, 64, False),
                                        (4096, 4, 128, False), (1024, 16, 128, True), (4096, 4, 128, True)):
            heads = 8
            q, k, v, g = (torch.randn(batch, heads, length, d, device="cuda", dtype=BF16) for _ in range(4))
            mask = torch.randn(batch if alone else 1, heads if alone else 1, length, length, device="cuda", dtype=BF16)
            out, lse = torch.empty_like(q), torch.empty(batch, heads, length, device="cuda")
            described = view(mask)
            options = Sdpa(scale=d**-0.5, mask=ctypes.cast(described, ctypes.c_void_p))
            flops, name = 4.0 * batch * heads * length * length * d, f"attention mask{'s' if alone else ''} {length}x{d}"
            leaves = [t.requires_grad_() for t in (q, k, v)]
            result = F.scaled_dot_product_attention(*leaves, attn_mask=mask)
            want = result.detach()
            q, k, v = (t.detach() for t in leaves)
            yield (name + " fwd", flops, lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
                   self.lib.op("sdpa", ctypes.byref(options), view(q), view(k), view(v), view(out), view(lse)),
                   lambda: close(out, want, 5e-2))
            for of_mask in (False, True):
                if of_mask:
                    leaves.append(mask.requires_grad_())
                    result = F.scaled_dot_product_attention(*leaves[:3], attn_mask=mask)
                wants = list(torch.autograd.grad(result, leaves, g, retain_graph=True))
                if of_mask:
                    wants[3] = first_of_dmask(q, k, v, g, mask.detach())
                grads = [torch.empty_like(t) for t in leaves] + [None] * (not of_mask)

                def check():
                    pairs = [(mine[..., :theirs.shape[-2], :], theirs) for mine, theirs in zip(grads, wants)]
                    parts = [close_rows(mine, theirs, 5e-2) for mine, theirs in pairs]
                    return all(p[0] for p in parts), max(p[1] for p in parts)
                yield (name + (" bwd+mask" if of_mask else " bwd"), 2.5 * flops,
                       lambda: torch.autograd.grad(result, leaves, g, retain_graph=True),
                       self.lib.op("sdpa_backward", ctypes.byref(options), view(q), view(k), view(v), view(out), view(lse),
                                   view(g), *[view(t) for t in grads]), check)
            del result, wants, leaves, mask, grads

    def peak(self, call):
        """The most that our pool holds while |call| runs."""
        stats = Stats()
        self.lib.c.rdna_memory_reset_peaks(self.lib.device)
        call()
        self.lib.c.rdna_memory_get_stats(self.lib.device, ctypes.byref(stats))
        return stats.peak_allocated

    def unfused(self, length=4096, batch=4, heads=32, d=128):
        """Prints and returns a line: causal attention in one kernel beside products, mask and softmax."""
        q, k, v = (torch.randn(batch, heads, length, d, device="cuda", dtype=BF16) for _ in range(3))
        mask = torch.full((length, length), -math.inf, device="cuda", dtype=BF16).triu(1)
        one, two = torch.empty_like(q), torch.empty_like(q)
        options = Sdpa(scale=d**-0.5, causal=True)
        flash = self.lib.op("sdpa", ctypes.byref(options), view(q), view(k), view(v), view(one), None)
        flat = [t.reshape(batch * heads, length, d) for t in (q, k, v, two)]
        every = mask.expand(batch * heads, length, length)
        torch.cuda.synchronize()

        def by_steps():
            memory = ctypes.c_void_p()
            self.lib.check(self.lib.c.rdna_memory_alloc(self.lib.device, ctypes.c_size_t(2 * every.numel()),
                                                        self.lib.stream, ctypes.byref(memory)))
            scores = view(every)
            scores.contents.data, scores.contents.stride[0] = memory.value, length * length
            for name, *args in (
                    ("gemm", ctypes.c_float(d**-0.5), view(flat[0]), view(flat[1].transpose(1, 2)), ctypes.c_float(0), None,
                     scores),
                    ("zip", "add", scores, view(every), real(0), real(0), scores),
                    ("softmax", scores, -1, ctypes.c_float(1), scores),
                    ("gemm", ctypes.c_float(1), scores, view(flat[2]), ctypes.c_float(0), None, view(flat[3]))):
                self.lib.op(name, *args)()
            self.lib.check(self.lib.c.rdna_memory_free(self.lib.device, memory))

        fused_ms, unfused_ms = self.lib.time(flash, 3, 5), self.lib.time(by_steps, 1, 3)
        operands = 2 * 4 * q.numel()
        fused_bytes, unfused_bytes = operands + self.peak(flash), operands + 2 * mask.numel() + self.peak(by_steps)
        self.lib.check(self.lib.c.rdna_stream_synchronize(self.lib.stream))
        right, worst = close_rows(one, two, 1e-1)  # whose scores were rounded too
        print(f"attention {length} against unfused: {fused_ms:.3f} and {unfused_ms:.3f} ms, {unfused_ms / fused_ms:.2f} times as "
              f"fast; {fused_bytes >> 20} and {unfused_bytes >> 20} MiB; {'right' if right else 'WRONG'} ({worst:.1e})", flush=True)
        return {"operator": f"attention {length} against unfused", "unfused_ms": unfused_ms, "rdna_ms": fused_ms,
                "unfused_bytes": unfused_bytes, "rdna_bytes": fused_bytes, "right": right, "worst": worst}

    def case_conv(self):
        for dtype, name, rtol, last in ((BF16, "bf16 last", 5e-2, True), (BF16, "bf16 first", 5e-2, False),
                                        (F32, "f32 first", 1e-3, False)):
            for c, h, out, k, stride, count in RESNET_50:
                yield from self.conv(f"conv {name}", dtype, rtol, last, c, h, out, k, stride, 1, count)

    def case_depthwise(self):
        for dtype, name, rtol, last in ((BF16, "bf16 last", 5e-2, True), (BF16, "bf16 first", 5e-2, False),
                                        (F32, "f32 last", 1e-3, True), (F32, "f32 first", 1e-3, False)):
            for c, h, k, stride in DEPTHWISE:
                yield from self.conv(f"depthwise {name}", dtype, rtol, last, c, h, c, k, stride, c, 1)

    def conv(self, name, dtype, rtol, last, c, h, out, k, stride, groups, count):
        form = torch.channels_last if last else torch.contiguous_format
        make = lambda *shape: torch.randn(*shape, device="cuda", dtype=dtype).contiguous(memory_format=form)
        each = c // groups
        x, w = make(64, c, h, h), make(out, each, k, k) * (each * k * k) ** -0.5
        conv = Convolution.square(k, stride)
        conv.groups = groups
        want = F.conv2d(x, w, padding=k // 2, stride=stride, groups=groups)
        y, dx, dw = torch.empty_like(want), torch.empty_like(x), torch.empty_like(w)
        flops = 2.0 * want.numel() * each * k * k
        shape = f"{name} {c}-{out} {h} k{k}s{stride}"
        yield (shape + " fwd", flops, lambda: F.conv2d(x, w, padding=k // 2, stride=stride, groups=groups),
               self.lib.op("conv", ctypes.byref(conv), view(x), view(w), None, view(y)),
               lambda: close(y, want, rtol), count)
        g = torch.randn_like(want)
        call = lambda mask: torch.ops.aten.convolution_backward(g, x, w, None, [stride] * 2, [k // 2] * 2,
                                                                [1, 1], False, [0, 0], groups, mask)
        want_x, want_w = call([True, True, False])[:2]
        if c > 3:  # nobody asks for a picture's gradient
            yield (shape + " dx", flops, lambda: call([True, False, False]),
                   self.lib.op("conv_backward_data", ctypes.byref(conv), view(g), view(w), None, view(dx)),
                   lambda: close(dx, want_x, rtol), count)
        yield (shape + " dw", flops, lambda: call([False, True, False]),
               self.lib.op("conv_backward_weight", ctypes.byref(conv), view(g), view(x), view(dw)),
               lambda: close(dw, want_w, 4 * rtol), count)


def both_times(lib, theirs, ours, calls=3, rounds=5):
    """Medians of rounds that alternate, and of which each side begins every other one."""
    torch_time(theirs, 1, 1)
    lib.time(ours, 1, 1)
    sides = (lambda: torch_time(theirs, calls, 1, 1), lambda: lib.time(ours, calls, 1, 1))
    times = ([], [])
    for i in range(rounds):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            times[side].append(sides[side]())
    return tuple(sorted(side)[rounds // 2] for side in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--driver", default="cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    args = parser.parse_args()
    lib = Library(args.library, args.driver)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, RDNA_VENDOR={os.environ.get('RDNA_VENDOR', 'auto')}")
    print(f"{'operator':34} {'PyTorch ms':>10} {'TFLOP/s':>8} {'rdna ms':>9} {'TFLOP/s':>8} {'ratio':>6}  result")
    bench, lines, failed = Bench(lib), [], False
    for method in [m for m in dir(bench) if m.startswith("case_")]:
        if args.only and not any(w in method for w in args.only.split(",")):
            continue
        try:
            for name, flops, theirs, ours, check, *count in getattr(bench, method)():
                t, r = both_times(lib, theirs, ours)
                right, worst = check()
                failed |= not right
                lines.append({"operator": name, "pytorch_ms": t, "rdna_ms": r, "ratio": t / r,
                              "tflop_s": flops / r / 1e9, "right": right, "worst": worst,
                              **({"count": count[0], "kind": " ".join(name.split()[:3] + name.split()[-1:])}
                                 if count else {})})
                print(f"{name:34} {t:10.3f} {flops / t / 1e9:8.1f} {r:9.3f} {flops / r / 1e9:8.1f} {t / r:6.2f}  "
                      f"{'right' if right else 'WRONG'} ({worst:.1e})", flush=True)
        except (RuntimeError, AttributeError) as error:
            failed = True
            print(f"{method[5:]:34} failed: {error}", flush=True)
        torch.cuda.empty_cache()
    against = []
    if not args.only or any(w in "unfused" for w in args.only.split(",")):
        against.append(bench.unfused())
        failed |= not against[0]["right"]
    if lines:
        mean = math.exp(sum(math.log(l["ratio"]) for l in lines) / len(lines))
        print(f"{len(lines)} lines, geometric mean of the ratios {mean:.2f}, least {min(l['ratio'] for l in lines):.2f}")
    for kind in dict.fromkeys(l["kind"] for l in lines if "count" in l):
        of = [l for l in lines if l.get("kind") == kind]
        theirs, ours = (sum(l["count"] * l[side] for l in of) for side in ("pytorch_ms", "rdna_ms"))
        print(f"all of {kind:24} {theirs:8.3f} ms of PyTorch's, {ours:8.3f} ms of ours, ratio {theirs / ours:.2f}, "
              f"least {min(l['ratio'] for l in of):.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(), "lines": lines + against}, f, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
