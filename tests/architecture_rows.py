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


def head_size(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


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

    def serves_text(self, name):
        """Whether logits of a text can depend on a weight."""
        return True

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
        keys["rope.dimension_count"] = head_size(config)
        return keys

    def extra_tensors(self, config):
        """What llama3's scaling divides frequencies by: 1 for short waves, the factor for long ones, and between them
        what blends the two linearly in the number of waves that the original context holds."""
        p = config.rope_parameters
        if p["rope_type"] != "llama3":
            return []
        size = head_size(config)
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


class JoinedQwen2(Qwen2):
    """A file with one matrix of q, k and v, and one bias."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.parts = {}

    def tensors(self, name, array, config):
        if ".q_proj." not in name and ".k_proj." not in name and ".v_proj." not in name:
            return super().tensors(name, array, config)
        self.parts[name] = array
        return []

    def extra_tensors(self, config):
        return [(f"blk.{i}.attn_qkv.{end}", gf.TENSOR_F32, np.concatenate([
            self.parts[f"model.layers.{i}.self_attn.{part}_proj.{end}"] for part in "qkv"]))
                for i in range(config.num_hidden_layers) for end in ("weight", "bias")]


class Qwen3(Row):
    architecture, model = "qwen3", "Qwen3ForCausalLM"
    base = dict(rope_parameters=rope(1e6), head_dim=24)


class Phi3(Row):
    """q, k and v are one matrix, and gate and up; of the longrope's two lists of factors the text's length chooses."""

    architecture, model = "phi3", "Phi3ForCausalLM"
    base = dict(rope_parameters=rope(partial_rotary_factor=1.0), original_max_position_embeddings=128)

    def keys(self, config):
        keys = super().keys(config)
        p, original = config.rope_parameters, config.original_max_position_embeddings
        keys["rope.dimension_count"] = int(p["partial_rotary_factor"] * head_size(config))
        keys["rope.scaling.original_context_length"] = original
        keys["attention.sliding_window"] = config.sliding_window or 0
        if p["rope_type"] == "longrope":
            longer = math.log(config.max_position_embeddings / original)
            keys["rope.scaling.attn_factor"] = math.sqrt(1 + longer / math.log(original))
        return keys

    def extra_tensors(self, config):
        return [(f"rope_factors_{which}.weight", gf.TENSOR_F32, np.array(config.rope_parameters[f"{which}_factor"]))
                for which in ("long", "short") if f"{which}_factor" in config.rope_parameters]


class Gemma2(Row):
    architecture, model = "gemma2", "Gemma2ForCausalLM"
    layer_names = {**LAYER_NAMES, **POST_NORMS}
    # times sqrt(hidden_size) they are of 1
    deviations = {"embed_tokens": 1 / 8}
    base = dict(rope_parameters=rope(), head_dim=24, query_pre_attn_scalar=24, tie_word_embeddings=True,
                sliding_window=9, num_hidden_layers=4, attn_logit_softcapping=2.0, final_logit_softcapping=5.0)

    def norm_is_offset(self, name):
        return name.endswith("norm.weight")

    def keys(self, config):
        keys = super().keys(config)
        del keys["rope.freq_base"]  # its converter leaves it out
        for name in ("attn_logit_softcapping", "final_logit_softcapping"):
            keys[name] = config.to_dict()[name]
        keys["attention.sliding_window"] = config.sliding_window
        return keys


class Gemma3(Gemma2):
    architecture, model = "gemma3", "Gemma3ForCausalLM"
    base = dict(rope_parameters=dict(full_attention=rope(1e6), sliding_attention=rope(1e4)), head_dim=24,
                query_pre_attn_scalar=24, tie_word_embeddings=True, sliding_window=9, num_hidden_layers=7)

    def keys(self, config):
        keys = Row.keys(self, config)
        keys["attention.sliding_window"] = config.sliding_window
        if config.final_logit_softcapping:
            keys["final_logit_softcapping"] = config.final_logit_softcapping
        return keys

    def rope_keys(self, parameters):
        return {**super().rope_keys(parameters["full_attention"]),
                "rope.freq_base_swa": float(parameters["sliding_attention"]["rope_theta"])}


class Olmo2(Row):
    """Norms after the branches and none before; q and k are normed over their whole width."""

    architecture, model = "olmo2", "Olmo2ForCausalLM"
    layer_names = {**LAYER_NAMES, **POST_NORMS}
    base = dict(rope_parameters=rope(5e5))


class Olmo3(Olmo2):
    model = "Olmo3ForCausalLM"
    base = dict(rope_parameters=dict(full_attention=rope(5e5), sliding_attention=rope(5e5)), sliding_window=9,
                num_hidden_layers=5)

    def keys(self, config):
        keys = super().keys(config)
        keys["attention.sliding_window"] = config.sliding_window
        keys["attention.sliding_window_pattern"] = [kind == "sliding_attention" for kind in config.layer_types]
        return keys

    def rope_keys(self, parameters):
        return super().rope_keys(parameters["full_attention"])


class SmolLM3(Llama):
    architecture, model = "smollm3", "SmolLM3ForCausalLM"
    base = dict(rope_parameters=rope(5e6), num_hidden_layers=5, tie_word_embeddings=True)


class Granite(Llama):
    architecture, model = "granite", "GraniteForCausalLM"
    base = dict(rope_parameters=rope(), embedding_multiplier=1.5, residual_multiplier=0.7, attention_multiplier=0.1,
                logits_scaling=3.0)

    def keys(self, config):
        return {**super().keys(config), "embedding_scale": config.embedding_multiplier,
                "residual_scale": config.residual_multiplier, "attention.scale": config.attention_multiplier,
                "logit_scale": config.logits_scaling}


class GraniteWithoutPositions(Granite):
    """transformers' network has no such switch: RoPE by angles of nothing does the same."""

    base = {**Granite.base, "rope_parameters": rope(kind="linear", factor=1e30)}

    def rope_keys(self, parameters):
        return {**super().rope_keys(rope()), "rope.scaling.finetuned": False}


class Mistral3(Llama):
    """Ministral 3: queries grow with the logarithm of how often the original context has passed."""

    architecture, model = "mistral3", "Ministral3ForCausalLM"
    base = dict(rope_parameters=rope(1e4, "yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0,
                                     beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5,
                                     max_position_embeddings=128), head_dim=24)

    def rope_keys(self, parameters):
        return {**super().rope_keys(parameters), "rope.scaling.yarn_log_multiplier": parameters["mscale_all_dim"],
                "attention.temperature_scale": parameters["llama_4_scaling_beta"]}


LLAMA3 = rope(5e5, "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
YARN = rope(1e4, "yarn", factor=4.0, original_max_position_embeddings=32)
UNSCALED = {"scaling": dict(rope_parameters=dict(rope_type="default"))}
# of 16 values, and of 12
LONGROPE = rope(1e4, "longrope", long_factor=[1.5 + 0.5 * i for i in range(8)],
                short_factor=[1 + 0.3 * i for i in range(8)])
PARTIAL = rope(1e4, "longrope", partial_rotary_factor=0.75, long_factor=[1.5 + 0.5 * i for i in range(6)],
               short_factor=[1 + 0.3 * i for i in range(6)])
WINDOW = {"window": dict(sliding_window=10)}
CAPS = {"attention's cap": dict(attn_logit_softcapping=None), "the cap at the end": dict(final_logit_softcapping=None)}

ROWS = [
    Llama("llama"),
    Llama("llama, tied, wide heads", dict(tie_word_embeddings=True, head_dim=24, num_key_value_heads=1)),
    Llama("llama, biases", dict(attention_bias=True, mlp_bias=True, num_key_value_heads=4)),
    Llama("llama 3 scaling", dict(rope_parameters=LLAMA3), UNSCALED),
    Llama("llama, linear scaling", dict(rope_parameters=rope(kind="linear", factor=2.5)), UNSCALED),
    Llama("llama, yarn", dict(rope_parameters=YARN), UNSCALED),
    Llama("llama, yarn, no pair turns often", dict(rope_parameters={**YARN, "rope_theta": 2.0, "beta_fast": 3.0}),
          UNSCALED),
    Mistral("mistral"),
    Mistral("mistral, window", dict(sliding_window=9), WINDOW),
    Qwen2("qwen2"),
    JoinedQwen2("qwen2, q, k and v in one matrix"),
    Qwen2("qwen2, tied, yarn", dict(tie_word_embeddings=True, rope_parameters=YARN), UNSCALED),
    Qwen3("qwen3"),
    Qwen3("qwen3, tied", dict(tie_word_embeddings=True, head_dim=16, num_key_value_heads=4)),
    Phi3("phi3"),
    Phi3("phi3, part of each head, window", dict(sliding_window=9, tie_word_embeddings=True,
                                                 rope_parameters=rope(partial_rotary_factor=0.75)),
         {**WINDOW, "part": dict(rope_parameters=dict(partial_rotary_factor=1.0))}),
    Phi3("phi3, short factors", dict(rope_parameters=PARTIAL, original_max_position_embeddings=64),
         {"which factors": dict(original_max_position_embeddings=40)}),
    Phi3("phi3, long factors", dict(rope_parameters=LONGROPE, original_max_position_embeddings=40),
         {"which factors": dict(original_max_position_embeddings=64)}, without=("rope.scaling.attn_factor",)),
    Gemma2("gemma2", {}, {**WINDOW, **CAPS}),
    Gemma2("gemma2, without keys", dict(attn_logit_softcapping=50.0, final_logit_softcapping=30.0, sliding_window=4096),
           without=("attn_logit_softcapping", "final_logit_softcapping", "attention.sliding_window")),
    Gemma2("gemma2, shape of 27B", dict(num_hidden_layers=46, hidden_size=48, head_dim=16, query_pre_attn_scalar=12),
           {"scale": dict(query_pre_attn_scalar=16)}),
    Gemma3("gemma3", {}, {**WINDOW, "the windows' base": dict(rope_parameters=dict(sliding_attention=rope(1e6)))},
           without=("rope.freq_base_swa",)),
    Gemma3("gemma3, scaled, bases", dict(final_logit_softcapping=5.0, rope_parameters=dict(
        full_attention=rope(1e5, "linear", factor=8.0), sliding_attention=rope(2e3))),
           {"cap": dict(final_logit_softcapping=None),
            "scaling": dict(rope_parameters=dict(full_attention=rope(1e5))),
            "the windows' base": dict(rope_parameters=dict(sliding_attention=rope(1e4)))}),
    Gemma3("gemma3, shape of 27B", dict(num_hidden_layers=62, hidden_size=48, head_dim=16, query_pre_attn_scalar=12),
           {"scale": dict(query_pre_attn_scalar=16)}),
    Olmo2("olmo2"),
    Olmo3("olmo 3", {}, WINDOW),
    Olmo3("olmo 3, the usual pattern", {}, WINDOW, without=("attention.sliding_window_pattern",)),
    Olmo3("olmo 3, another pattern", dict(num_hidden_layers=3, layer_types=[
        "full_attention", "sliding_attention", "full_attention"]), WINDOW),
    Olmo3("olmo 3, yarn in some layers", dict(rope_parameters=dict(full_attention=YARN, sliding_attention=rope())),
          {"scaling": dict(rope_parameters=dict(full_attention=rope())),
           "where": dict(rope_parameters=dict(sliding_attention=YARN))}),
    SmolLM3("smollm3", {}, {"layers without RoPE": dict(no_rope_layer_interval=3)}),
    Granite("granite", {}, {name: {name: 1.0} for name in ("embedding_multiplier", "residual_multiplier",
                                                           "attention_multiplier", "logits_scaling")}),
    Granite("granite, tied, biases", dict(tie_word_embeddings=True, attention_bias=True, mlp_bias=True)),
    GraniteWithoutPositions("granite, without positions", {}, {"positions": dict(rope_parameters=rope())}),
    Mistral3("mistral3", {}, {"temperature": dict(rope_parameters=dict(llama_4_scaling_beta=0.0)), **UNSCALED}),
]
