#!/usr/bin/env python3
"""Products, convolutions and attention beside PyTorch's on one GPU, in one run: the same data, the same events.

    tools/matrix_bench.py LIBRDNA_SO [--driver cuda] [--only WORD] [--json FILE]

Needs PyTorch with that GPU. RDNA_VENDOR=off keeps to our own kernels; RDNA_VENDOR=cublaslt allows that library. Each
line has both times, the rates, and the ratio PyTorch's time over ours. Results are compared; a wrong one makes the
exit status 1."""
import argparse
import ctypes
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

from rdna_ctypes import BF16, F32, Convolution, Library, Sdpa, torch_time, view


def close(got, want, rtol):
    """Largest error over what is expected and its root mean square, beyond a step of the type of either side."""
    step = {BF16: 2.0**-7, torch.float16: 2.0**-10}.get(want.dtype, 0.0)
    size = want.float().abs()
    error = ((got.float() - want.float()).abs() - step * size).clamp(min=0)
    worst = (error / (size + size.pow(2).mean().sqrt() + 1e-30)).max().item()
    return worst <= rtol, worst


class Bench:
    """Each method named case_* yields (name, FLOPs, PyTorch's call, our call, check)."""

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
                parts = [close(mine, theirs, 1e-1) for mine, theirs in zip(grads, wants)]
                return all(p[0] for p in parts), max(p[1] for p in parts)
            yield (f"attention causal {length} bwd", 2.5 * flops,
                   lambda: torch.autograd.grad(result, leaves, g, retain_graph=True),
                   self.lib.op("sdpa_backward", ctypes.byref(options), view(q), view(k), view(v), view(out), view(lse),
                               view(g), *[view(t) for t in grads]), check)
            del result, wants, leaves

    def case_conv(self):
        for dtype, name, rtol in ((BF16, "bf16", 5e-2), (F32, "f32", 1e-3)):
            for c, h, k in ((64, 56, 3), (128, 28, 3), (256, 14, 3), (512, 7, 3), (256, 56, 1)):
                nhwc = {"memory_format": torch.channels_last}
                x = torch.randn(64, c, h, h, device="cuda", dtype=dtype).contiguous(**nhwc)
                w = torch.randn(c, c, k, k, device="cuda", dtype=dtype).contiguous(**nhwc)
                y = torch.empty_like(x)
                conv = Convolution.square(k)
                flops = 2.0 * 64 * h * h * c * c * k * k
                want = F.conv2d(x, w, padding=k // 2)
                yield (f"conv {name} {c}ch {h}x{h} k{k} fwd", flops, lambda: F.conv2d(x, w, padding=k // 2),
                       self.lib.op("conv", ctypes.byref(conv), view(x), view(w), None, view(y)),
                       lambda: close(y, want, rtol))
                g = torch.randn_like(x)
                call = lambda mask: torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], [k // 2] * 2, [1, 1],
                                                                        False, [0, 0], 1, mask)
                dx, dw = torch.empty_like(x), torch.empty_like(w)
                want_x, want_w = call([True, True, False])[:2]
                yield (f"conv {name} {c}ch {h}x{h} k{k} dx", flops, lambda: call([True, False, False]),
                       self.lib.op("conv_backward_data", ctypes.byref(conv), view(g), view(w), None, view(dx)),
                       lambda: close(dx, want_x, rtol))
                yield (f"conv {name} {c}ch {h}x{h} k{k} dw", flops, lambda: call([False, True, False]),
                       self.lib.op("conv_backward_weight", ctypes.byref(conv), view(g), view(x), view(dw)),
                       lambda: close(dw, want_w, 4 * rtol))


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
            for name, flops, theirs, ours, check in getattr(bench, method)():
                rounds = 5
                t = torch_time(theirs, 3, rounds)
                r = lib.time(ours, 3, rounds)
                right, worst = check()
                failed |= not right
                lines.append({"operator": name, "pytorch_ms": t, "rdna_ms": r, "ratio": t / r,
                              "tflop_s": flops / r / 1e9, "right": right, "worst": worst})
                print(f"{name:34} {t:10.3f} {flops / t / 1e9:8.1f} {r:9.3f} {flops / r / 1e9:8.1f} {t / r:6.2f}  "
                      f"{'right' if right else 'WRONG'} ({worst:.1e})", flush=True)
        except (RuntimeError, AttributeError) as error:
            failed = True
            print(f"{method[5:]:34} failed: {error}", flush=True)
        torch.cuda.empty_cache()
    if lines:
        mean = math.exp(sum(math.log(l["ratio"]) for l in lines) / len(lines))
        print(f"{len(lines)} lines, geometric mean of the ratios {mean:.2f}, least {min(l['ratio'] for l in lines):.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(), "lines": lines}, f, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
