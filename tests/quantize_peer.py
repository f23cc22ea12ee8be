#!/usr/bin/env python3
"""Weights in few bits beside llama.cpp's: tests/quantize_peer.py LIBGGML

LIBGGML is a shared library with ggml_quantize_chunk (libggml-base.so of a build of llama.cpp). Of normal values and of
such with heavy tails, and with columns that count alike and that do not, prints the share of the weighted squares that
each loses, and how fast each is on one thread, in MB of f32 a second. Fails where ours loses more than 1.05 times theirs."""
import argparse
import ctypes
import pathlib
import sys
import tempfile
import time

import numpy as np

import rdna_program  # first: it makes tools/ importable

import gguf_file as gf
from imatrix_test import write_gguf

KINDS = "iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s mxfp4".split()
ROWS, COLUMNS = 2048, 1024


def theirs(library, kind, values, weights):
    number = getattr(gf, "TENSOR_" + kind.upper())
    size, count = gf.BLOCKS[number]
    raw = np.empty(values.size // size * count, np.uint8)

    def pointer(array):
        return ctypes.c_void_p(array.ctypes.data)

    def make(rows):
        library.ggml_quantize_chunk(number, pointer(values), pointer(raw), ctypes.c_int64(0), ctypes.c_int64(rows),
                                    ctypes.c_int64(COLUMNS), pointer(weights))

    make(1)  # it makes tables at first
    start = time.perf_counter()
    make(len(values))
    seconds = time.perf_counter() - start
    return gf.decode_blocks(number, raw.reshape(-1, count)).reshape(values.shape), seconds


def ours(folder, kind, values, weights):
    path, out, means = folder / "in.gguf", folder / "out.gguf", folder / "means.gguf"
    gf.write(path, [], [("blk.0.ffn_up.weight", gf.TENSOR_F32, values)])
    write_gguf(means, {"blk.0.ffn_up.weight": weights})
    start = time.perf_counter()
    rdna_program.output("quantize", path, out, kind, "--imatrix", means, "--driver", "host",
                        environment={"RDNA_THREADS": "1"})
    seconds = time.perf_counter() - start
    return gf.Reader(out).tensors["blk.0.ffn_up.weight"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    library = ctypes.CDLL(parser.parse_args().library)
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    rng = np.random.default_rng(1)
    worst = 0
    print(f"{'':8} {'values':7} {'columns':9} {'ours':>8} {'theirs':>8} {'ratio':>6} {'MB/s':>6} {'theirs':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for values_name, values in (("normal", rng.normal(0, 1, (ROWS, COLUMNS))),
                                        ("t of 4", rng.standard_t(4, (ROWS, COLUMNS)))):
                for columns_name, weights in (("alike", np.ones(COLUMNS)), ("not alike", rng.uniform(0, 1, COLUMNS) ** 4)):
                    x, w = values.astype(np.float32), weights.astype(np.float32)
                    lost, rates = [], []
                    for got, seconds in (ours(pathlib.Path(folder), kind, x, w), theirs(library, kind, x, w)):
                        lost.append((w * (got - x) ** 2).sum() / (w * x * x).sum())
                        rates.append(x.nbytes / seconds / 1e6)
                    worst = max(worst, lost[0] / lost[1])
                    print(f"{kind:8} {values_name:7} {columns_name:9} {lost[0]:8.5f} {lost[1]:8.5f} {lost[0] / lost[1]:6.3f} "
                          f"{rates[0]:6.1f} {rates[1]:7.1f}", flush=True)
    return worst > 1.05


if __name__ == "__main__":
    sys.exit(main())
