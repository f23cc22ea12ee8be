#!/usr/bin/env python3
"""Writes a GGUF of random weights in the shape of a model that people run, to measure with: tools/made_model.py OUT.gguf [SHAPE]

Q4_K with Q6_K where llama.cpp's Q4_K_M has it; the demo model's vocabulary, lengthened with tokens <0>, <1> …, so that
texts can be read and written. What such a model writes means nothing."""
import math
import pathlib
import sys

import numpy as np

import gguf_file as gf

ROOT = pathlib.Path(__file__).parent.parent
# layers, width, heads, of keys, of a head, between, vocabulary; experts, and how many of them a token takes
SHAPES = {"8b": (32, 4096, 32, 8, 128, 14336, 128256), "1b": (16, 2048, 32, 8, 64, 8192, 128256), "tiny": (3, 256, 4, 2, 64, 512, 3000), "tiny-experts": (3, 256, 4, 2, 64, 256, 3000, 8, 2),
          "tiny-150k": (3, 256, 4, 2, 64, 512, 150000)}
POOL = 8 << 20  # values drawn of a kind; larger matrices repeat them


class Weights:
    def __init__(self):
        self.rng, self.pools = np.random.default_rng(1), {}

    def matrix(self, kind, *sizes):
        values, size = gf.BLOCKS[kind]
        if kind not in self.pools:
            self.pools[kind] = gf.random_blocks(kind, self.rng, (POOL,), 0.02)
        pool, count = self.pools[kind], math.prod(sizes) // values * size
        return gf.Blocks(sizes, (pool * (count // len(pool) + 1))[:count])


def write(path, shape):
    layers, width, heads, of_keys, head, between, vocabulary, *experts = SHAPES[shape]
    weights, ones = Weights(), np.ones(width)
    tensors = [("token_embd.weight", gf.TENSOR_Q4_K, weights.matrix(gf.TENSOR_Q4_K, vocabulary, width)),
               ("output_norm.weight", gf.TENSOR_F32, ones),
               ("output.weight", gf.TENSOR_Q6_K, weights.matrix(gf.TENSOR_Q6_K, vocabulary, width))]
    for layer in range(layers):
        # the first and the last eighth, and every third between
        more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        finer = gf.TENSOR_Q6_K if more else gf.TENSOR_Q4_K
        for name in ("attn_norm", "ffn_norm"):
            tensors.append((f"blk.{layer}.{name}.weight", gf.TENSOR_F32, ones))
        for name, kind, rows, columns in (("attn_q", gf.TENSOR_Q4_K, heads * head, width), ("attn_k", gf.TENSOR_Q4_K, of_keys * head, width),
                                          ("attn_v", finer, of_keys * head, width), ("attn_output", gf.TENSOR_Q4_K, width, heads * head)):
            tensors.append((f"blk.{layer}.{name}.weight", kind, weights.matrix(kind, rows, columns)))
        for name, kind, rows, columns in (("gate", gf.TENSOR_Q4_K, between, width), ("up", gf.TENSOR_Q4_K, between, width),
                                          ("down", finer, width, between)):
            name, sizes = (f"ffn_{name}_exps", (experts[0], rows, columns)) if experts else (f"ffn_{name}", (rows, columns))
            tensors.append((f"blk.{layer}.{name}.weight", kind, weights.matrix(kind, *sizes)))
        if experts:
            router = weights.rng.standard_normal((experts[0], width)) / width ** 0.5
            tensors.append((f"blk.{layer}.ffn_gate_inp.weight", gf.TENSOR_F32, router))
    demo = gf.Reader(ROOT / "examples/demo-model/rdna-demo-q8_0.gguf").keys
    tokens = demo["tokenizer.ggml.tokens"]
    more = vocabulary - len(tokens)
    keys = {"general.architecture": "llama", "general.name": f"random weights, {shape}", "llama.context_length": 8192,
            "llama.embedding_length": width, "llama.block_count": layers, "llama.feed_forward_length": between,
            "llama.attention.head_count": heads, "llama.attention.head_count_kv": of_keys,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.dimension_count": head, "llama.rope.freq_base": 500000.0,
            "llama.vocab_size": vocabulary, **{key: value for key, value in demo.items() if key.startswith("tokenizer.")}}
    if experts:
        keys |= {"llama.expert_count": experts[0], "llama.expert_used_count": experts[1]}
    keys["tokenizer.ggml.tokens"] = tokens + [f"<{i}>" for i in range(more)]
    keys["tokenizer.ggml.token_type"] = demo["tokenizer.ggml.token_type"] + [1] * more
    gf.write(path, [(key, *gf.typed(value)) for key, value in keys.items()], tensors)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[-1] in ("-h", "--help") or (sys.argv[2:] or ["8b"])[0] not in SHAPES:
        sys.exit(f"{__doc__}\nshapes: {' '.join(SHAPES)} (8b where none is named)")
    write(sys.argv[1], (sys.argv[2:] or ["8b"])[0])
