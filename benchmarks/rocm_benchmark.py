#!/usr/bin/env python3
"""How fast rdna.arrays computes what networks are made of, on a GPU or the processor, and how near that is to what the device can do.

    python benchmarks/rocm_benchmark.py --all
    python benchmarks/rocm_benchmark.py --matmul --conv --iterations 200 --warmup 20 --svg roofline.svg

The bound of a row is the device's own: the faster of what it copies and multiplies in the same run, as many operations and bytes as the row has
(Williams, Waterman and Patterson, "Roofline", 2009); what lies in a cache may be above it. Emulated cards are right and slow: their times say nothing about a card.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bindings/python"))

import rdna.arrays as ra
from rdna.arrays import nn, random
from rdna.compat import pyflame

GROUPS = ("matmul", "conv", "pooling", "normalization", "activation", "elementwise", "reduction", "loss", "fusion")


def normal(*shape):
    return random.normal(shape)


def product(shape):
    count = 1
    for n in shape:
        count *= n
    return count


def conv(batch, channels, size, filters, window):
    x, w = normal(batch, channels, size, size), normal(filters, channels, window, window)
    flops = 2 * batch * filters * size * size * channels * window * window
    return lambda: nn.conv2d(x, w, padding=window // 2), flops, [x, w], batch * filters * size * size


def rows(small):
    """(group, name, function, operations, arrays that it reads, values that it makes)"""
    def of_one(group, name, function, shape, flops=1, makes=None):
        x = normal(*shape)
        return group, f"{name} {shape}", lambda: function(x), flops * product(shape), [x], product(shape) if makes is None else makes

    for n in (16, 33) if small else (512, 1024, 2048):
        a, b = normal(n, n), normal(n, n)
        yield "matmul", f"matmul {n}", lambda a=a, b=b: a @ b, 2 * n ** 3, [a, b], n * n
    a, b = (normal(*s) for s in (((2, 8, 9), (2, 9, 7)) if small else ((64, 256, 256), (64, 256, 256))))
    yield "matmul", f"bmm {a.shape}", lambda: a @ b, 2 * product(a.shape) * b.shape[2], [a, b], product(a.shape[:2]) * b.shape[2]
    for shape in ((2, 3, 8, 4, 3),) if small else ((16, 64, 56, 64, 3), (16, 256, 14, 256, 3), (16, 64, 56, 256, 1)):
        function, flops, read, made = conv(*shape)
        yield "conv", f"conv2d {shape}", function, flops, read, made
    image, row = ((2, 4, 8, 8), (8, 32)) if small else ((16, 64, 56, 56), (4096, 1024))
    yield of_one("pooling", "max_pool2d", lambda x: nn.max_pool2d(x, 2), image, 1, product(image) // 4)
    yield of_one("pooling", "adaptive_avg_pool2d", lambda x: nn.adaptive_avg_pool2d(x, 1), image, 1, product(image[:2]))
    ones, zeros = ra.ones((image[1],)), ra.zeros((image[1],))
    yield of_one("normalization", "batch_norm", lambda x: nn.batch_norm(x, zeros, ones, ones, zeros), image, 4)
    yield of_one("normalization", "layer_norm", nn.layer_norm, row, 8)
    for name in ("relu", "gelu", "silu", "sigmoid", "tanh"):
        yield of_one("activation", name, getattr(ra, name), row, 8)
    yield of_one("activation", "softmax", nn.softmax, row, 8)
    x, y = normal(*row), normal(*row)
    yield "elementwise", f"add {row}", lambda: x + y, product(row), [x, y], product(row)
    yield of_one("elementwise", "exp", ra.exp, row, 8)
    yield of_one("reduction", "sum", ra.sum, row, 1, 1)
    yield of_one("reduction", "max of rows", lambda v: ra.max(v, axis=1), row, 1, row[0])
    target = random.integers(0, row[1], (row[0],))
    yield of_one("loss", "cross_entropy", lambda v: nn.cross_entropy(v, target), row, 8, 1)
    n = row[1]
    w, bias = normal(n, n), normal(n)
    fused = ra.compile(lambda v: ra.relu(v @ w + bias))
    yield "fusion", f"matmul + bias + relu {row}", lambda: fused(x), 2 * row[0] * n * n, [x, w, bias], product(row)
    chain = ra.compile(lambda v: ra.sqrt(ra.relu(v * 2.0 + 1.0) + 0.5) * v + v)
    yield "fusion", f"chain of 7 {row}", lambda: chain(x), 7 * product(row), [x], product(row)


def seconds(function, iterations, warmup, of=statistics.median):
    """The median, or other, of the times of single runs, each waited for."""
    times = []
    for i in range(warmup + iterations):
        begun = time.perf_counter()
        made = function()
        pyflame.synchronize()
        if i >= warmup:
            times.append(time.perf_counter() - begun)
        del made
    return of(times)


def limits(small, iterations, warmup):
    """The most bytes and operations a second of a large copy and a large product."""
    n = 1 << (12 if small else 24)
    values, square = ra.ones((n,)), ra.ones((32, 32) if small else (2048, 2048))
    # a sum with a number reads and writes each value once
    rate = 8 * n / seconds(lambda: values + 1.0, iterations, warmup, min)
    return rate, 2 * square.shape[0] ** 3 / seconds(lambda: square @ square, iterations, warmup, min)


def measure(groups, small, iterations, warmup):
    rate, peak = limits(small, iterations, warmup)
    found = []
    for group, name, function, flops, read, made in rows(small):
        if group not in groups:
            continue
        took = seconds(function, iterations, warmup)
        moved = sum(x.nbytes for x in read) + 4 * made
        found.append({"group": group, "name": name, "ms": took * 1e3, "gflops": flops / took / 1e9, "gbytes": moved / took / 1e9,
                      "intensity": flops / moved, "of_bound": max(moved / rate, flops / peak) / took})
    return {"device": pyflame.device_info(), "copy_gbytes": rate / 1e9, "product_gflops": peak / 1e9, "rows": found}


def print_table(result):
    device = result["device"]
    print(f"{device['name']} ({device['architecture']}): copies {result['copy_gbytes']:.4g} GB/s, multiplies {result['product_gflops']:.4g} GFLOP/s\n")
    print(f"{'operation':44} {'ms':>10} {'GFLOP/s':>10} {'GB/s':>10} {'of bound':>9}")
    for row in result["rows"]:
        print(f"{row['name']:44} {row['ms']:10.4f} {row['gflops']:10.4g} {row['gbytes']:10.4g} {row['of_bound']:8.0%}")


def roofline(result):
    """An SVG: operations a second over operations a byte, both as powers of ten, under the two bounds."""
    import math
    from xml.sax.saxutils import escape

    rate, peak, points = result["copy_gbytes"], result["product_gflops"], result["rows"]
    at = lambda intensity, gflops: (80 + 110 * (math.log10(intensity) + 2), 420 - 60 * (math.log10(gflops) + 2))
    ridge, least, most = peak / rate, 1e-2, 1e4
    corners = [at(least, rate * least), at(ridge, peak), at(most, peak)]
    lines = [f'<polyline fill="none" stroke="#444" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}"/>']
    for row in points:
        x, y = at(max(row["intensity"], least), max(row["gflops"], 1e-2))
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#c33"><title>{escape(row["name"])}: {row["gflops"]:.4g} GFLOP/s</title></circle>')
    texts = (f'<text x="80" y="20">{escape(result["device"]["name"])}: GFLOP/s over operations a byte; copies {rate:.4g} GB/s, multiplies {peak:.4g}</text>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="460" font-family="sans-serif" font-size="13">{texts}{"".join(lines)}</svg>\n'


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every group")
    for group in GROUPS:
        parser.add_argument(f"--{group}", action="store_true")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--device", help="'cpu', 'rocm' or 'rocm:N'; a GPU where there is one")
    parser.add_argument("--small", action="store_true", help="sizes of a few values, to see that all of it runs")
    parser.add_argument("--json", metavar="FILE", help="the rows, too")
    parser.add_argument("--svg", metavar="FILE", help="the roofline, too")
    options = parser.parse_args(arguments)
    if options.iterations < 1 or options.warmup < 0:
        parser.error("--iterations is at least 1, --warmup at least 0")
    groups = GROUPS if options.all else [group for group in GROUPS if getattr(options, group)]
    if not groups:
        parser.error(f"name groups, or --all: {', '.join('--' + group for group in GROUPS)}")
    pyflame.set_device(options.device or ("rocm" if pyflame.rocm_is_available() else "cpu"))
    result = measure(groups, options.small, options.iterations, options.warmup)
    print_table(result)
    for file, text in ((options.json, json.dumps(result, indent=1)), (options.svg, roofline(result))):
        if file:
            pathlib.Path(file).write_text(text)


if __name__ == "__main__":
    main()
