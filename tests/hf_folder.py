"""Hugging Face folders from Python: safetensors, configurations and tokenizers of made models, for the tests.

Safetensors: a length, a JSON header of types, shapes and offsets, the data (github.com/huggingface/safetensors).
"""
import json
import pathlib
import struct

import numpy as np

import gguf_file as gf

TYPES = {"F32": lambda x: np.asarray(x, "<f4").tobytes(), "F16": lambda x: np.asarray(x, "<f2").tobytes(),
         "BF16": gf.encode_bf16, "U8": lambda x: np.asarray(x, np.uint8).tobytes(),
         "I64": lambda x: np.asarray(x, "<i8").tobytes(), "F64": lambda x: np.asarray(x, "<f8").tobytes()}


def safetensors(tensors, metadata=None):
    """|tensors|: name to (type, array). The bytes of a file."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (kind, array) in tensors.items():
        raw = TYPES[kind](array)
        header[name] = {"dtype": kind, "shape": list(np.shape(array)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_json(path, value):
    pathlib.Path(path).write_text(json.dumps(value))


def write(folder, config, tensors, files=1, longer=0):
    """A folder of one file, or of several with an index; their headers are longer by as many bytes."""
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config)
    if files == 1:
        (folder / "model.safetensors").write_bytes(safetensors(tensors, {"format": "pt" + " " * longer}))
        return
    names, index = list(tensors), {}
    for i in range(files):
        name = f"model-{i + 1:05}-of-{files:05}.safetensors"
        part = names[i::files]
        (folder / name).write_bytes(safetensors({n: tensors[n] for n in part}, {"": " " * longer}))
        index.update({n: name for n in part})
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": 1}, "weight_map": index})


def rounded(kind, array):
    """What a file of this type holds of the array, as float64."""
    array = np.asarray(array, np.float32)
    if kind == "BF16":
        array = (np.frombuffer(gf.encode_bf16(array), "<u2").astype("<u4") << 16).view("<f4").reshape(array.shape)
    return array.astype("<f2" if kind == "F16" else "<f4").astype(np.float64)


class Model:
    """A made model: its config, and tensors as float64 that are exactly what the file holds."""

    def __init__(self, rng, architecture, model_type, kind="F32", **settings):
        self.rng, self.kind = rng, kind
        self.config = dict(architectures=[architecture], model_type=model_type, vocab_size=67, hidden_size=64,
                           num_hidden_layers=2, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2,
                           max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu",
                           tie_word_embeddings=False) | settings
        self.tensors, self.kinds = {}, {}

    def __getattr__(self, name):
        return self.config[name]

    @property
    def head(self):
        return self.config.get("head_dim") or self.hidden_size // self.num_attention_heads

    def add(self, name, *shape, mean=0.0, deviation=1.0, kind=None):
        kind = kind or self.kind
        self.tensors[name] = rounded(kind, self.rng.normal(mean, deviation, shape))
        self.kinds[name] = kind

    def linear(self, name, rows, columns, bias=False):
        self.add(name + ".weight", rows, columns, deviation=columns**-0.5)
        if bias:
            self.add(name + ".bias", rows, deviation=0.3)

    def norm(self, name, size):
        self.add(name + ".weight", size, mean=1.0, deviation=0.2)

    def ends(self, prefix="model."):
        self.add(prefix + "embed_tokens.weight", self.vocab_size, self.hidden_size)
        self.norm(prefix + "norm", self.hidden_size)
        if not self.tie_word_embeddings:
            self.linear("lm_head", self.vocab_size, self.hidden_size)

    def attention(self, at, bias=False, bias_out=False):
        queries, keys = self.num_attention_heads * self.head, self.num_key_value_heads * self.head
        self.linear(at + "self_attn.q_proj", queries, self.hidden_size, bias)
        self.linear(at + "self_attn.k_proj", keys, self.hidden_size, bias)
        self.linear(at + "self_attn.v_proj", keys, self.hidden_size, bias)
        self.linear(at + "self_attn.o_proj", self.hidden_size, queries, bias_out)

    def feed_forward(self, at):
        self.linear(at + "mlp.gate_proj", self.intermediate_size, self.hidden_size)
        self.linear(at + "mlp.up_proj", self.intermediate_size, self.hidden_size)
        self.linear(at + "mlp.down_proj", self.hidden_size, self.intermediate_size)

    def write(self, folder, files=1, longer=0):
        write(folder, self.config, {n: (self.kinds[n], t) for n, t in self.tensors.items()}, files, longer)


def llama(rng, kind="F32", bias=False, architecture="LlamaForCausalLM", **settings):
    model = Model(rng, architecture, "llama", kind, **settings)
    model.ends()
    for i in range(model.num_hidden_layers):
        at = f"model.layers.{i}."
        model.norm(at + "input_layernorm", model.hidden_size)
        model.norm(at + "post_attention_layernorm", model.hidden_size)
        model.attention(at, bias, bias)
        model.feed_forward(at)
    return model


def llama_logits(model, tokens):
    """By transformers' modeling_llama.py: heads are rotated in halves, not in neighbouring pairs.  (tokens, vocabulary)"""
    w, config, head = model.tensors, model.config, model.head
    heads, kv_heads, count = config["num_attention_heads"], config["num_key_value_heads"], len(tokens)
    frequencies = config["rope_theta"] ** (-np.arange(0, head, 2) / head)
    scaling = config.get("rope_scaling")
    if scaling and scaling["rope_type"] == "linear":
        frequencies /= scaling["factor"]
    if scaling and scaling["rope_type"] == "llama3":  # modeling_rope_utils.py
        low, high, old = (scaling[k] for k in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings"))
        waves = 2 * np.pi / frequencies
        smooth = (old / waves - low) / (high - low)
        between = (1 - smooth) * frequencies / scaling["factor"] + smooth * frequencies
        frequencies = np.where(waves > old / low, frequencies / scaling["factor"],
                               np.where(waves < old / high, frequencies, between))
    angles = np.concatenate([np.arange(count)[:, None] * frequencies] * 2, -1)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * w[name + ".weight"]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)

    def rotate(x):
        half = head // 2
        return x * cos + np.concatenate((-x[..., half:], x[..., :half]), -1) * sin

    seen = np.tri(count, dtype=bool)
    if config.get("sliding_window"):
        seen &= ~np.tri(count, k=-config["sliding_window"], dtype=bool)
    mask = np.where(seen, 0, -np.inf)
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        h = norm(x, at + "input_layernorm")
        q = rotate(linear(h, at + "self_attn.q_proj").reshape(count, heads, head))
        k = rotate(linear(h, at + "self_attn.k_proj").reshape(count, kv_heads, head))
        v = linear(h, at + "self_attn.v_proj").reshape(count, kv_heads, head)
        k, v = (np.repeat(t, heads // kv_heads, 1) for t in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(head) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hqk,khd->qhd", scores, v).reshape(count, -1), at + "self_attn.o_proj")
        h = norm(x, at + "post_attention_layernorm")
        gate = linear(h, at + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj")
    x = norm(x, "model.norm")
    return x @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T
