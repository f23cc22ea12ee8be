"""Logits of whole models that are made here, and of the demo model, against float64 NumPy."""
import pathlib
import re
import tempfile
import unittest

import numpy as np

import rdna_program  # first: it makes tools/ importable

import gguf_file as gf
import llama_reference


def relative_squared_error(got, want):
    return float(((got - want) ** 2).sum() / (want**2).sum())


def logits_of(path, tokens, *options, device=None, exact=True, environment=None):
    with tempfile.NamedTemporaryFile(suffix=".f32") as out:
        rdna_program.output("logits", path, "--tokens", ",".join(map(str, tokens)), "--out", out.name, "--device",
                            device or rdna_program.DEVICE, *(["--exact"] if exact else []), *options,
                            environment=environment)
        return np.fromfile(out.name, "<f4").astype(np.float64).reshape(len(tokens), -1)


def rounded_bound(options):
    """On a GPU what goes into a prompt's products is rounded to 16 bits: f16 beside weights of 4 to 16 bits, bf16 beside
    bf16. Rounding to a mantissa of n bits has a relative squared error of 2^-2(n+1) / 3 at most; a layer does it about 6
    times (the four inputs of products, probabilities and values). f16's would be 1e-6 in 2 layers: 1e-5 is asked for."""
    if options["kind"] != gf.TENSOR_BF16:
        return 1e-5
    return 6 * options.get("layers", 2) * 2.0**-16 / 3


def write_model(path, rng, kind, width=64, heads=4, kv_heads=2, head=None, hidden=96, layers=2, vocabulary=67,
                rotated=None, biases=False, scales=False, tied=False, frequencies=False, factor=None,
                window=None, context=64, vectors=gf.TENSOR_F32):
    head = head or width // heads
    entries = [("general.architecture", gf.TEXT, "llama"), ("llama.context_length", gf.U32, context),
               ("llama.embedding_length", gf.U32, width), ("llama.block_count", gf.U32, layers),
               ("llama.feed_forward_length", gf.U32, hidden), ("llama.attention.head_count", gf.U32, heads),
               ("llama.attention.head_count_kv", gf.U32, kv_heads), ("llama.attention.key_length", gf.U32, head),
               ("llama.attention.value_length", gf.U32, head),
               ("llama.attention.layer_norm_rms_epsilon", gf.F32, 1e-5), ("llama.rope.freq_base", gf.F32, 10000.0)]
    if rotated:
        entries.append(("llama.rope.dimension_count", gf.U32, rotated))
    if factor:
        entries += [("llama.rope.scaling.type", gf.TEXT, "linear"), ("llama.rope.scaling.factor", gf.F32, factor)]
    if window:
        entries.append(("llama.attention.sliding_window", gf.U32, window))
    tensors = []

    def add(name, *shape, tensor_kind=vectors, mean=0.0, deviation=1.0):
        if tensor_kind in gf.ENCODERS:
            array = rng.normal(mean, deviation, shape).astype(np.float32)
        else:
            array = gf.Blocks(shape, gf.random_blocks(tensor_kind, rng, shape, deviation))
        tensors.append((name, tensor_kind, array))

    def linear(name, rows, columns):
        add(name + ".weight", rows, columns, tensor_kind=kind, deviation=columns**-0.5)
        if biases:
            add(name + ".bias", rows, deviation=0.3)
        if scales:
            add(name + ".scale", 1, mean=1.0, deviation=0.3)

    add("token_embd.weight", vocabulary, width, tensor_kind=kind)
    add("output_norm.weight", width, mean=1.0, deviation=0.2)
    if not tied:
        add("output.weight", vocabulary, width, tensor_kind=kind, deviation=width**-0.5)
    if frequencies:
        tensors.append(("rope_freqs.weight", gf.TENSOR_F32, rng.uniform(0.5, 4, (rotated or head) // 2)))
    for i in range(layers):
        for norm in ("attn_norm", "ffn_norm"):
            add(f"blk.{i}.{norm}.weight", width, mean=1.0, deviation=0.2)
        linear(f"blk.{i}.attn_q", heads * head, width)
        linear(f"blk.{i}.attn_k", kv_heads * head, width)
        linear(f"blk.{i}.attn_v", kv_heads * head, width)
        linear(f"blk.{i}.attn_output", width, heads * head)
        linear(f"blk.{i}.ffn_gate", hidden, width)
        linear(f"blk.{i}.ffn_up", hidden, width)
        linear(f"blk.{i}.ffn_down", width, hidden)
    gf.write(path, entries, tensors)


class MadeModels(unittest.TestCase):
    # An f16 cache rounds keys and values to 2^-11, so squared errors are of the order of 1e-7; with an f32 cache only
    # f32 sums remain.
    VARIANTS = {
        "plain": dict(kind=gf.TENSOR_F32),
        "f16": dict(kind=gf.TENSOR_F16, kv_heads=4, biases=True, vectors=gf.TENSOR_F16),
        "bf16 with biases": dict(kind=gf.TENSOR_BF16, biases=True, kv_heads=1, vectors=gf.TENSOR_BF16),
        "tied": dict(kind=gf.TENSOR_F32, tied=True),
        "scales and biases": dict(kind=gf.TENSOR_F32, scales=True, biases=True),
        "part of each head rotated": dict(kind=gf.TENSOR_F32, head=24, rotated=16),
        "frequency factors": dict(kind=gf.TENSOR_F16, frequencies=True, factor=2.5),
        "a window": dict(kind=gf.TENSOR_F32, window=9),
        "a window of one token": dict(kind=gf.TENSOR_F32, window=1, kv_heads=4),
        "a window as wide as the text": dict(kind=gf.TENSOR_F16, window=40),
        "heads for which there is no kernel": dict(kind=gf.TENSOR_F32, head=260, rotated=64, window=9),
        "heads for which there is no kernel, a window wider than the context": dict(kind=gf.TENSOR_F16, head=260, heads=2,
                                                                                   kv_heads=1, rotated=32, window=1000),
        "odd sizes": dict(kind=gf.TENSOR_F32, width=60, heads=5, kv_heads=5, head=12, hidden=77, layers=3),
    }
    VARIANTS.update({f"blocks of GGUF's type {kind}": dict(kind=kind, width=64 if values == 32 else values,
                                                           hidden=128 if values == 32 else 2 * values,
                                                           tied=kind == gf.TENSOR_Q5_0)
                     for kind, (values, _) in gf.BLOCKS.items()})

    def test_blocks_are_the_library_s(self):
        """The reference has sizes and formulas of its own: they are of the same formats."""
        rows = re.findall(r"F\(X, \w+, \w+, (\d+), (\d+), (\d+),",
                          (pathlib.Path(__file__).parent.parent / "src/base/block_formats.h").read_text())
        self.assertEqual({int(kind): (int(values), int(size)) for kind, values, size in rows}, gf.BLOCKS)

    def test_against_float64(self):
        for number, (name, options) in enumerate(self.VARIANTS.items()):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                rng = np.random.default_rng(number)
                path = pathlib.Path(folder) / "model.gguf"
                write_model(path, rng, **options)
                tokens = rng.integers(0, 67, 41).tolist()
                want = llama_reference.logits(gf.Reader(path), tokens)
                self.assertLess(relative_squared_error(logits_of(path, tokens, "--kv", "f32"), want), 1e-11)
                with_f16 = relative_squared_error(logits_of(path, tokens, "--kv", "f16"), want)
                self.assertLess(with_f16, 1e-6)
                if name == "plain":  # bf16 has 3 bits less: 64 times the squared error
                    with_bf16 = relative_squared_error(logits_of(path, tokens, "--kv", "bf16"), want)
                    self.assertTrue(8 * with_f16 < with_bf16 < 64e-6, f"{with_bf16:.1e} with bf16, {with_f16:.1e} with f16")
                rounded = logits_of(path, tokens, exact=False)
                self.assertLess(relative_squared_error(rounded, want), rounded_bound(options))
                if rdna_program.DEVICE == "host":  # to whole numbers of 16 bits, where weights are in blocks
                    rounded = logits_of(path, tokens, "--kv", "f32", exact=False)
                    self.assertLess(relative_squared_error(rounded, want), 1e-7)
                # passes of 1 go through the decoding kernels, of 7 through the others in several steps
                for batch in (1, 7):
                    got = logits_of(path, tokens, "--kv", "f32", "--batch", batch)
                    self.assertLess(relative_squared_error(got, want), 1e-11)

    def test_demo_model(self):
        tokens = np.random.default_rng(1).integers(0, 2048, 48).tolist()
        want = llama_reference.logits(gf.Reader(rdna_program.DEMO_MODEL), tokens)
        self.assertLess(relative_squared_error(logits_of(rdna_program.DEMO_MODEL, tokens), want), 1e-6)
        # a cache of the type that is asked for: each has fewer bits for a value than the one before
        errors = [relative_squared_error(logits_of(rdna_program.DEMO_MODEL, tokens, "--kv", kind), want)
                  for kind in ("f32", "f16", "bf16", "q8_0")]
        self.assertEqual(errors, sorted(set(errors)))
        self.assertLess(errors[-1], 1e-3)


if __name__ == "__main__":
    unittest.main()
