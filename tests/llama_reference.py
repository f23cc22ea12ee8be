"""A Llama in float64 NumPy: what the library's logits are compared with.

    python3 llama_reference.py MODEL.gguf 1,2,3 OUT.f32
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import gguf_file  # noqa: E402


def logits(model, tokens):
    """Logits of every token in one pass, from a gguf_file.Reader.  (tokens, vocabulary)"""
    key = lambda name, default=None: model.keys.get("llama." + name, default)
    weights = model.tensors
    heads, width = key("attention.head_count"), key("embedding_length")
    kv_heads = key("attention.head_count_kv", heads)
    head = key("attention.key_length", width // heads)
    rotated = key("rope.dimension_count", head)
    epsilon = key("attention.layer_norm_rms_epsilon")
    frequencies = key("rope.freq_base", 10000.0) ** (-np.arange(0, rotated, 2) / rotated)
    if key("rope.scaling.type") == "linear" and key("rope.scaling.factor", 0):
        frequencies /= key("rope.scaling.factor")
    if "rope_freqs.weight" in weights:
        frequencies /= weights["rope_freqs.weight"]
    angles = np.arange(len(tokens))[:, None] * frequencies
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight

    def linear(x, name):
        """llama.cpp applies NAME.scale before the bias of q, k and v, and after the bias of the other matrices."""
        y, bias = x @ weights[name + ".weight"].T, weights.get(name + ".bias", 0)
        scale = weights.get(name + ".scale", 1.0)
        return y * scale + bias if name[-2:] in ("_q", "_k", "_v") else (y + bias) * scale

    def rotate(x):  # (tokens, heads, head): neighbouring pairs
        even, odd = x[..., 0:rotated:2], x[..., 1:rotated:2]
        turned = np.stack((even * cos - odd * sin, even * sin + odd * cos), -1).reshape(*x.shape[:-1], rotated)
        return np.concatenate((turned, x[..., rotated:]), -1)

    count = len(tokens)
    seen = np.tri(count, dtype=bool)
    window = key("attention.sliding_window", 0)
    if window:  # a token sees that many, itself included
        seen &= ~np.tri(count, k=-window, dtype=bool)
    mask = np.where(seen, 0, -np.inf)
    x = weights["token_embd.weight"][tokens]
    for i in range(key("block_count")):
        at = f"blk.{i}."
        h = norm(x, weights[at + "attn_norm.weight"])
        q = rotate(linear(h, at + "attn_q").reshape(count, heads, head))
        k = rotate(linear(h, at + "attn_k").reshape(count, kv_heads, head))
        v = linear(h, at + "attn_v").reshape(count, kv_heads, -1)
        k, v = (np.repeat(t, heads // kv_heads, 1) for t in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(head) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hqk,khd->qhd", scores, v).reshape(count, -1), at + "attn_output")
        h = norm(x, weights[at + "ffn_norm.weight"])
        gate = linear(h, at + "ffn_gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, at + "ffn_up"), at + "ffn_down")
    x = norm(x, weights["output_norm.weight"])
    return x @ weights.get("output.weight", weights["token_embd.weight"]).T


if __name__ == "__main__":
    result = logits(gguf_file.Reader(sys.argv[1]), [int(t) for t in sys.argv[2].split(",")])
    result.astype("<f4").tofile(sys.argv[3])
