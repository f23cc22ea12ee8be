"""The models that tests/architectures_test.py makes: for each a class of transformers with a small configuration, and
how GGUF has it.

Names of keys and tensors, and what is permuted or folded, are the GGUF convention as llama.cpp's converter
(github.com/ggml-org/llama.cpp, gguf-py/gguf/constants.py and the converter's classes) writes it.
"""
import math
import re

import numpy as np

import gguf_file as gf

# transformers' names of a layer's parts, without their ends (.weight or .bias), and GGUF's
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
# of those that have norms after the branches
POST_NORMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GLOBAL_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}

SMALL = dict(vocab_size=67, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False, pad_token_id=None,
             bos_token_id=None, eos_token_id=None)


def rope(theta=10000.0, kind="default", **rest):
    return dict(rope_theta=theta, rope_type=kind, **rest)


def neighbours(matrix, heads):
    """Rows of q or k so that what RoPE turns together are neighbours: of each head's halves in turn."""
    halves = matrix.reshape(heads, 2, matrix.shape[0] // heads // 2, *matrix.shape[1:])
    return halves.swapaxes(1, 2).reshape(matrix.shape)


class Row:
    """A model. Families derive from it, tests give options: configuration, features, keys that the file lacks."""

    architecture = model = ""  # in GGUF; transformers' class
    layers = "model.layers"
    base = {}  # configuration beside SMALL
    layer_names = LAYER_NAMES
    permuted = False  # q and k by neighbours()
    deviations = {}  # of weights: pattern of the name -> deviation

    def __init__(self, name, config=None, features=None, without=()):
        self.name, self.without = name, without
        self.config = {**SMALL, **self.base, **(config or {})}
        # What the text must make visible: a name, and the change of the configuration that takes it away.
        self.features = features or {}

    def draw(self, name, shape, rng):
        """An array, for weights that are not drawn as others are."""
        return None

    def norm_is_offset(self, name):
        """Whether the network multiplies by 1 + w."""
        return False

    def tensors(self, name, array, config):
        """What the file has for one weight of transformers: [(name, array), …], with a third, the type, unless f32."""
        stem, end = name.rsplit(".", 1)
        if stem in GLOBAL_NAMES:
            return [(f"{GLOBAL_NAMES[stem]}.{end}", array + self.norm_is_offset(name))]
        match = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", stem)
        number, part = match[1], match[2]
        if self.permuted and part in ("self_attn.q_proj", "self_attn.k_proj"):
            heads = config.num_attention_heads if part.endswith("q_proj") else config.num_key_value_heads
            array = neighbours(array, heads)
        return [(f"blk.{number}.{self.layer_names[part]}.{end}", array + self.norm_is_offset(name))]

    def extra_tensors(self, config):
        return []

    def keys(self, config):
        keys = {
            "block_count": config.num_hidden_layers,
            "context_length": config.max_position_embeddings,
            "embedding_length": config.hidden_size,
            "feed_forward_length": config.intermediate_size,
            "attention.head_count": config.num_attention_heads,
            "attention.head_count_kv": config.num_key_value_heads,
            "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        }
        if getattr(config, "head_dim", None):
            keys["attention.key_length"] = keys["attention.value_length"] = config.head_dim
        keys.update(self.rope_keys(config.rope_parameters))
        return keys

    def rope_keys(self, parameters):
        keys = {"rope.freq_base": float(parameters["rope_theta"])}
        kind = parameters["rope_type"]
        if kind in ("linear", "yarn"):
            keys["rope.scaling.type"] = kind
            keys["rope.scaling.factor"] = float(parameters["factor"])
        if kind == "yarn":
            keys["rope.scaling.original_context_length"] = parameters["original_max_position_embeddings"]
            for name in ("beta_fast", "beta_slow", "attention_factor"):
                if parameters.get(name) is not None:
                    keys[f"rope.scaling.yarn_{name.replace('attention', 'attn')}"] = float(parameters[name])
        return keys


class Llama(Row):
    architecture, model, permuted = "llama", "LlamaForCausalLM", True
    base = dict(rope_parameters=rope())

    def keys(self, config):
        keys = super().keys(config)
        keys["rope.dimension_count"] = config.head_dim or config.hidden_size // config.num_attention_heads
        return keys

    def extra_tensors(self, config):
        """What llama3's scaling divides frequencies by: 1 for short waves, the factor for long ones, and between them
        what blends the two linearly in the number of waves that the original context holds."""
        p = config.rope_parameters
        if p["rope_type"] != "llama3":
            return []
        size = config.head_dim or config.hidden_size // config.num_attention_heads
        frequencies = float(p["rope_theta"]) ** (-np.arange(0, size, 2) / size)
        waves = p["original_max_position_embeddings"] * frequencies / (2 * math.pi)
        share = np.clip((waves - p["low_freq_factor"]) / (p["high_freq_factor"] - p["low_freq_factor"]), 0, 1)
        return [("rope_freqs.weight", gf.TENSOR_F32, 1 / (share + (1 - share) / p["factor"]))]


class Mistral(Llama):
    model = "MistralForCausalLM"
    base = dict(rope_parameters=rope(), sliding_window=None)

    def keys(self, config):
        keys = super().keys(config)
        if config.sliding_window:
            keys["attention.sliding_window"] = config.sliding_window
        return keys


class Qwen2(Row):
    architecture, model = "qwen2", "Qwen2ForCausalLM"
    base = dict(rope_parameters=rope())


class Qwen3(Row):
    architecture, model = "qwen3", "Qwen3ForCausalLM"
    base = dict(rope_parameters=rope(1e6), head_dim=24)


LLAMA3 = rope(5e5, "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
YARN = rope(1e4, "yarn", factor=4.0, original_max_position_embeddings=32)
PLAIN = dict(rope_parameters=rope())

ROWS = [
    Llama("llama"),
    Llama("llama, tied, wide heads", dict(tie_word_embeddings=True, head_dim=24, num_key_value_heads=1)),
    Llama("llama, biases", dict(attention_bias=True, mlp_bias=True, num_key_value_heads=4)),
    Llama("llama 3 scaling", dict(rope_parameters=LLAMA3), {"scaling": dict(rope_parameters=dict(rope_type="default"))}),
    Llama("llama, linear scaling", dict(rope_parameters=rope(kind="linear", factor=2.5)), {"scaling": PLAIN}),
    Llama("llama, yarn", dict(rope_parameters=YARN), {"scaling": dict(rope_parameters=dict(rope_type="default"))}),
    Mistral("mistral"),
    Mistral("mistral, window", dict(sliding_window=9), {"window": dict(sliding_window=10)}),
    Qwen2("qwen2"),
    Qwen2("qwen2, tied, yarn", dict(tie_word_embeddings=True, rope_parameters=YARN),
          {"scaling": dict(rope_parameters=dict(rope_type="default"))}),
    Qwen3("qwen3"),
    Qwen3("qwen3, tied", dict(tie_word_embeddings=True, head_dim=16, num_key_value_heads=4)),
]
