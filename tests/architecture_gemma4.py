"""Gemma 4 as architecture_rows.py has models: layers of two shapes, caches that layers share, an input of each layer's
own, and experts beside a dense feed-forward network."""
import re

import numpy as np

import gguf_file as gf
from architecture_mixtures import Mixture
from architecture_rows import POST_NORMS, Row, rope

LAYER_NAMES = {
    "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "post_feedforward_layernorm_2": "post_ffw_norm_2",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
    "router.proj": "ffn_gate_inp",
}
GLOBAL_NAMES = {
    "model.embed_tokens_per_layer": "per_layer_token_embd",
    "model.per_layer_model_projection": "per_layer_model_proj",
    "model.per_layer_projection_norm": "per_layer_proj_norm",
}
# of a layer, without an end in transformers
NAMES = {
    "layer_scalar": "layer_output_scale.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
}


def kinds(letters):
    return [{"w": "sliding_attention", "g": "full_attention"}[letter] for letter in letters]


class Gemma4(Mixture):
    architecture, model, fused = "gemma4", "Gemma4ForCausalLM", True
    layer_names = {**Mixture.layer_names, **POST_NORMS, **LAYER_NAMES}
    deviations = {"embed_tokens.weight": 1 / 8, "embed_tokens_per_layer": 0.3, r"router\.proj": 2.4}
    base = dict(rope_parameters=dict(full_attention=rope(1e5, "proportional", partial_rotary_factor=0.25),
                                     sliding_attention=rope(1e3)),
                head_dim=24, global_head_dim=32, tie_word_embeddings=True, sliding_window=9, num_hidden_layers=6,
                layer_types=kinds("wwgwwg"), final_logit_softcapping=5.0, hidden_size_per_layer_input=0,
                vocab_size_per_layer_input=67)

    def draw(self, name, shape, rng):
        if name.endswith("q_norm.weight"):  # nothing else keeps the scores small
            return rng.normal(0.3, 0.06, shape).astype(np.float32).astype(np.float64)
        if name.endswith(tuple(NAMES)):
            return rng.normal(1, 0.2, shape).astype(np.float32).astype(np.float64)
        return None

    def tensors(self, name, array, config):
        stem, _, end = name.rpartition(".")
        if stem in GLOBAL_NAMES:
            return [(f"{GLOBAL_NAMES[stem]}.{end}", array)]
        layer = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", name)
        if layer and layer[2] in NAMES:
            return [(f"blk.{layer[1]}.{NAMES[layer[2]]}", array)]
        return super().tensors(name.replace(".experts.", ".mlp.experts."), array, config)

    def extra_tensors(self, config):
        """The pairs of a global layer's head that do not turn are slowed to a stop."""
        pairs = self.config["global_head_dim"] // 2
        turned = int(config.rope_parameters["full_attention"]["partial_rotary_factor"] * pairs)
        return [("rope_freqs.weight", gf.TENSOR_F32, np.where(np.arange(pairs) < turned, 1, 1e30))]

    def keys(self, config):
        config.allow_global_per_layer_attribute_access = True  # the windowed layers' head and heads
        keys = Row.keys(self, config)
        windowed = [kind == "sliding_attention" for kind in config.layer_types]
        head = self.config["global_head_dim"]
        keys.update({
            "attention.key_length": head, "attention.value_length": head,
            "attention.key_length_swa": config.head_dim, "attention.value_length_swa": config.head_dim,
            "rope.dimension_count": head, "rope.dimension_count_swa": config.head_dim,
            "attention.sliding_window": config.sliding_window, "attention.sliding_window_pattern": windowed,
            "attention.shared_kv_layers": config.num_kv_shared_layers,
            "embedding_length_per_layer_input": config.hidden_size_per_layer_input,
            "final_logit_softcapping": config.final_logit_softcapping,
        })
        if (heads := self.config.get("num_global_key_value_heads")) is not None:
            keys["attention.head_count_kv"] = [config.num_key_value_heads if near else heads for near in windowed]
        if config.use_double_wide_mlp:
            first = config.num_hidden_layers - config.num_kv_shared_layers
            keys["feed_forward_length"] = [config.intermediate_size * (1 + (i >= first))
                                           for i in range(config.num_hidden_layers)]
        if config.enable_moe_block:
            keys.update(self.expert_keys(config), expert_used_count=config.top_k_experts)
        return keys

    def rope_keys(self, parameters):
        return {"rope.freq_base": parameters["full_attention"]["rope_theta"],
                "rope.freq_base_swa": parameters["sliding_attention"]["rope_theta"]}


class SplitGemma4(Gemma4):
    fused = False


WINDOW = {"window": dict(sliding_window=10), "cap": dict(final_logit_softcapping=None)}
SHARED = dict(hidden_size_per_layer_input=16, num_kv_shared_layers=3, use_double_wide_mlp=True, num_key_value_heads=1)
EXPERTS = dict(enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=40, attention_k_eq_v=True,
               num_global_key_value_heads=1)

GEMMA4 = [
    Gemma4("gemma4", {}, WINDOW),
    Gemma4("gemma4, of E2B", SHARED, WINDOW),
    Gemma4("gemma4, of 26B", EXPERTS, {**WINDOW, "experts used": dict(top_k_experts=1)}),
    SplitGemma4("gemma4, of 26B, gate and up apart", {**EXPERTS, "num_experts": 4}),
    Gemma4("gemma4, of 31B", dict(attention_k_eq_v=True, num_global_key_value_heads=1), WINDOW),
]
