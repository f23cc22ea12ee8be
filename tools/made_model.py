#!/usr/bin/env python3
"""Writes a GGUF of random weights in the shape of a model that people run, to measure with: tools/made_model.py OUT.gguf [SHAPE]

The types of its matrices are those of the file that people take: Q4_K with Q6_K where llama.cpp's Q4_K_M has it, f16, or
MXFP4 in experts and Q8_0 elsewhere. The vocabulary is the demo model's, lengthened with tokens <0>, <1> …, so that texts
can be read and written. What such a model writes means nothing."""
import dataclasses
import math
import pathlib
import sys

import numpy as np

import gguf_file as gf

ROOT = pathlib.Path(__file__).parent.parent
POOL = 8 << 20  # values drawn of a kind; larger matrices repeat them


@dataclasses.dataclass
class Shape:
    layers: int
    width: int
    heads: int
    of_keys: int
    head: int
    between: int  # of a feed-forward layer or of an expert
    vocabulary: int
    experts: int = 0
    chosen: int = 0
    architecture: str = "llama"
    plain: int = gf.TENSOR_Q4_K
    finer: int = gf.TENSOR_Q6_K  # of the logits, and in some layers of values and of the way down
    of_experts: int | None = None


SHAPES = {
    "8b": Shape(32, 4096, 32, 8, 128, 14336, 128256),
    "8b-f16": Shape(32, 4096, 32, 8, 128, 14336, 128256, plain=gf.TENSOR_F16, finer=gf.TENSOR_F16),
    "1b": Shape(16, 2048, 32, 8, 64, 8192, 128256),
    "1b-f16": Shape(16, 2048, 32, 8, 64, 8192, 128256, plain=gf.TENSOR_F16, finer=gf.TENSOR_F16),
    "1b-q8_0": Shape(16, 2048, 32, 8, 64, 8192, 128256, plain=gf.TENSOR_Q8_0, finer=gf.TENSOR_Q8_0),
    "qwen3-30b-a3b": Shape(48, 2048, 32, 4, 128, 768, 151936, 128, 8, "qwen3moe"),
    "gpt-oss-20b": Shape(24, 2880, 64, 8, 64, 2880, 201088, 32, 4, "gpt-oss", gf.TENSOR_Q8_0, gf.TENSOR_Q8_0, gf.TENSOR_MXFP4),
    **{f"host-{name}": Shape(2, 2048, 32, 8, 64, 5632, 4096, plain=plain, finer=finer) for name, plain, finer in (
        ("f16", gf.TENSOR_F16, gf.TENSOR_F16), ("bf16", gf.TENSOR_BF16, gf.TENSOR_BF16), ("f32", gf.TENSOR_F32, gf.TENSOR_F32),
        ("q8_0", gf.TENSOR_Q8_0, gf.TENSOR_Q8_0), ("q4_0", gf.TENSOR_Q4_0, gf.TENSOR_Q4_0), ("q4_k_m", gf.TENSOR_Q4_K, gf.TENSOR_Q6_K))},
    "host-experts": Shape(2, 2048, 32, 8, 64, 1024, 4096, 32, 4, "qwen3moe"),
    "host-mxfp4": Shape(2, 2048, 32, 8, 64, 1024, 4096, 32, 4, "gpt-oss", gf.TENSOR_Q8_0, gf.TENSOR_Q8_0, gf.TENSOR_MXFP4),
    "tiny": Shape(3, 256, 4, 2, 64, 512, 3000),
    "tiny-experts": Shape(3, 256, 4, 2, 64, 256, 3000, 8, 2),
    "tiny-qwen3moe": Shape(3, 256, 4, 2, 64, 256, 3000, 8, 2, "qwen3moe"),
    "tiny-gpt-oss": Shape(3, 256, 4, 2, 64, 256, 3000, 8, 2, "gpt-oss", gf.TENSOR_Q8_0, gf.TENSOR_Q8_0, gf.TENSOR_MXFP4),
    "tiny-150k": Shape(3, 256, 4, 2, 64, 512, 150000),
}


class Weights:
    def __init__(self):
        self.rng, self.pools = np.random.default_rng(1), {}

    def matrix(self, kind, *sizes):
        if kind not in self.pools:
            self.pools[kind] = (gf.random_blocks(kind, self.rng, (POOL,), 0.02) if kind in gf.BLOCKS
                                else gf.ENCODERS[kind](0.02 * self.rng.standard_normal(POOL)))
        values, size = gf.BLOCKS.get(kind, (1, 4 if kind == gf.TENSOR_F32 else 2))
        pool, count = self.pools[kind], math.prod(sizes) // values * size
        return gf.Blocks(sizes, (pool * (count // len(pool) + 1))[:count])

    def vector(self, *sizes):
        return 0.02 * self.rng.standard_normal(sizes)


def layer_tensors(weights, s, layer):
    """Of one layer: names behind "blk.N.", kinds, values."""
    # the first and the last eighth, and every third between
    more = layer < s.layers // 8 or layer >= 7 * s.layers // 8 or (layer - s.layers // 8) % 3 == 2
    finer, in_experts, oss = s.finer if more else s.plain, s.of_experts or s.plain, s.architecture == "gpt-oss"
    yield "attn_norm.weight", gf.TENSOR_F32, np.ones(s.width)
    yield "post_attention_norm.weight" if oss else "ffn_norm.weight", gf.TENSOR_F32, np.ones(s.width)
    if s.architecture == "qwen3moe":
        yield "attn_q_norm.weight", gf.TENSOR_F32, np.ones(s.head)
        yield "attn_k_norm.weight", gf.TENSOR_F32, np.ones(s.head)
    if oss:
        yield "attn_sinks.weight", gf.TENSOR_F32, weights.vector(s.heads)
    for name, kind, rows, columns in (("attn_q", s.plain, s.heads * s.head, s.width), ("attn_k", s.plain, s.of_keys * s.head, s.width),
                                      ("attn_v", finer, s.of_keys * s.head, s.width), ("attn_output", s.plain, s.width, s.heads * s.head)):
        yield f"{name}.weight", kind, weights.matrix(kind, rows, columns)
        if oss:
            yield f"{name}.bias", gf.TENSOR_F32, weights.vector(rows)
    for name, kind, rows, columns in (("gate", in_experts, s.between, s.width), ("up", in_experts, s.between, s.width),
                                      ("down", s.of_experts or finer, s.width, s.between)):
        name, sizes = (f"ffn_{name}_exps", (s.experts, rows, columns)) if s.experts else (f"ffn_{name}", (rows, columns))
        yield f"{name}.weight", kind, weights.matrix(kind, *sizes)
        if oss:
            yield f"{name}.bias", gf.TENSOR_F32, weights.vector(s.experts, rows)
    if s.experts:
        yield "ffn_gate_inp.weight", gf.TENSOR_F32, weights.rng.standard_normal((s.experts, s.width)) / s.width ** 0.5
        if oss:
            yield "ffn_gate_inp.bias", gf.TENSOR_F32, weights.vector(s.experts)


def architecture_keys(s):
    keys = {"context_length": 40960, "embedding_length": s.width, "block_count": s.layers, "feed_forward_length": s.between,
            "attention.head_count": s.heads, "attention.head_count_kv": s.of_keys, "attention.layer_norm_rms_epsilon": 1e-5,
            "attention.key_length": s.head, "attention.value_length": s.head, "rope.dimension_count": s.head,
            "rope.freq_base": 500000.0, "vocab_size": s.vocabulary}
    if s.experts:
        keys |= {"expert_count": s.experts, "expert_used_count": s.chosen, "expert_feed_forward_length": s.between}
    if s.architecture == "gpt-oss":
        keys |= {"attention.sliding_window": 128, "rope.scaling.type": "yarn", "rope.scaling.factor": 32.0,
                 "rope.scaling.original_context_length": 4096}
    return {f"{s.architecture}.{key}": value for key, value in keys.items()}


def write(path, shape):
    s, weights = SHAPES[shape], Weights()
    tensors = [("token_embd.weight", s.plain, weights.matrix(s.plain, s.vocabulary, s.width)),
               ("output_norm.weight", gf.TENSOR_F32, np.ones(s.width)),
               ("output.weight", s.finer, weights.matrix(s.finer, s.vocabulary, s.width))]
    for layer in range(s.layers):
        tensors += [(f"blk.{layer}.{name}", kind, values) for name, kind, values in layer_tensors(weights, s, layer)]
    demo = gf.Reader(ROOT / "examples/demo-model/rdna-demo-q8_0.gguf").keys
    tokens = demo["tokenizer.ggml.tokens"]
    more = s.vocabulary - len(tokens)
    keys = {"general.architecture": s.architecture, "general.name": f"random weights, {shape}", **architecture_keys(s),
            **{key: value for key, value in demo.items() if key.startswith("tokenizer.")}}
    keys["tokenizer.ggml.tokens"] = tokens + [f"<{i}>" for i in range(more)]
    keys["tokenizer.ggml.token_type"] = demo["tokenizer.ggml.token_type"] + [1] * more
    types = {"tokenizer.ggml.token_type": (gf.ARRAY, gf.I32)}  # llama.cpp takes no other
    gf.write(path, [(key, *((types[key], value) if key in types else gf.typed(value))) for key, value in keys.items()], tensors)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[-1] in ("-h", "--help") or (sys.argv[2:] or ["8b"])[0] not in SHAPES:
        sys.exit(f"{__doc__}\nshapes: {' '.join(SHAPES)} (8b where none is named)")
    write(sys.argv[1], (sys.argv[2:] or ["8b"])[0])
