"""The models of architecture_rows.py that came later: GLM 4, EXAONE 4, Seed-OSS, dots, MiniMax, ERNIE, and the language
models of Qwen's that see pictures."""
import numpy as np

import gguf_file as gf
from architecture_mixtures import NOT_NORMED, USED, Mixture
from architecture_rows import LAYER_NAMES, LLAMA3, POST_NORMS, UNSCALED, WINDOW, Llama, Qwen2, Row, rope

# norms before the feed-forward block under another name
OTHER_NORMS = {"post_attention_layernorm": "post_attention_norm"}


class Partial(Row):
    """A part of each head turns."""

    def rope_keys(self, parameters):
        size = self.config.get("head_dim") or self.config["hidden_size"] // self.config["num_attention_heads"]
        rotated = int(parameters.get("partial_rotary_factor", 1) * size)
        return {**super().rope_keys(parameters), "rope.dimension_count": rotated}


class Glm4(Partial):
    architecture, model = "glm4", "Glm4ForCausalLM"
    layer_names = {**LAYER_NAMES, "post_self_attn_layernorm": "post_attention_norm",
                   "post_mlp_layernorm": "post_ffw_norm"}
    base = dict(rope_parameters=rope(partial_rotary_factor=0.5), head_dim=24, attention_bias=True)


class Glm4Moe(Partial, Mixture):
    architecture, model, gating = "glm4moe", "Glm4MoeForCausalLM", 2
    layer_names = {**Mixture.layer_names, **OTHER_NORMS}
    base = dict(rope_parameters=rope(partial_rotary_factor=0.5), head_dim=24, attention_bias=True, use_qk_norm=True,
                first_k_dense_replace=1, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1,
                moe_intermediate_size=48, routed_scaling_factor=1.8, norm_topk_prob=True)
    deviations = {**Mixture.deviations, "e_score_correction_bias": 0.2}

    def expert_count(self, config):
        return config.n_routed_experts

    def keys(self, config):
        keys = super().keys(config)
        keys.update({
            "leading_dense_block_count": config.first_k_dense_replace,
            "expert_shared_count": config.n_shared_experts,
            "expert_weights_scale": config.routed_scaling_factor,
            "expert_weights_norm": config.norm_topk_prob,
            "expert_gating_func": self.gating,
        })
        return keys


class Glm4MoeWithNext(Glm4Moe):
    """Published files have a layer behind the last that foretells a token further ahead."""

    def keys(self, config):
        return {**super().keys(config), "block_count": config.num_hidden_layers + 1, "nextn_predict_layers": 1}

    def extra_tensors(self, config):
        width = config.hidden_size
        return [(f"blk.{config.num_hidden_layers}.{name}.weight", gf.TENSOR_F32, np.ones(shape))
                for name, shape in (("nextn.eh_proj", (width, 2 * width)), ("attn_norm", width))]


class Dots1(Glm4Moe):
    architecture, model = "dots1", "Dots1ForCausalLM"
    layer_names = Mixture.layer_names
    base = {**Glm4Moe.base, "rope_parameters": rope(), "attention_bias": False}
    base.pop("use_qk_norm")


class MiniMaxM2(Partial, Mixture):
    architecture, model = "minimax-m2", "MiniMaxM2ForCausalLM"
    layer_names = {**Mixture.layer_names, "mlp.e_score_correction_bias": "exp_probs_b"}
    base = dict(rope_parameters=rope(partial_rotary_factor=0.5), head_dim=24, num_local_experts=6,
                num_experts_per_tok=2)
    deviations = {**Mixture.deviations, "e_score_correction_bias": 0.2}

    def expert_count(self, config):
        return config.num_local_experts

    def keys(self, config):
        return {**super().keys(config), "expert_feed_forward_length": config.intermediate_size, "expert_gating_func": 2}


class Ernie45(Row):
    architecture, model = "ernie4_5", "Ernie4_5ForCausalLM"
    base = dict(rope_parameters=rope(5e5), head_dim=24, tie_word_embeddings=True)


class Exaone4(Llama):
    architecture, model, permuted = "exaone4", "Exaone4ForCausalLM", False
    layer_names = {**LAYER_NAMES, **POST_NORMS}
    base = dict(rope_parameters=rope(1e6), sliding_window=9, sliding_window_pattern=4, num_hidden_layers=5)

    def keys(self, config):
        keys = super().keys(config)
        if config.sliding_window:
            keys["attention.sliding_window"] = config.sliding_window
            keys["attention.sliding_window_pattern"] = [kind == "sliding_attention" for kind in config.layer_types]
        return keys


class SeedOss(Row):
    architecture, model = "seed_oss", "SeedOssForCausalLM"
    layer_names = {**LAYER_NAMES, **OTHER_NORMS}
    base = dict(rope_parameters=rope(1e6), head_dim=24, attention_bias=True, attention_out_bias=False)


SEEING = dict(image_token_id=64, video_token_id=65, vision_start_token_id=63, vision_end_token_id=62)
TEXT = {"rope_parameters": rope(1e6, mrope_section=[4, 2, 2]), "head_dim": 16}


class Seeing(Row):
    """The language model of one that sees pictures too, which lie in another file."""

    layers = "model.language_model.layers"
    vision = {}
    text = {}

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        text = {**self.config, **self.text}
        self.config = {**text, "text_config": text, "vision_config": self.vision, **SEEING}

    def serves_text(self, name):
        return ".visual." not in name

    def tensors(self, name, array, config):
        if not self.serves_text(name):
            return []
        return super().tensors(name.replace("language_model.", ""), array, config.text_config)

    def keys(self, config):
        return {**super().keys(config.text_config),
                "rope.dimension_sections": [*config.text_config.rope_parameters["mrope_section"], 0]}


class Qwen25Vl(Seeing, Qwen2):
    architecture, model = "qwen2vl", "Qwen2_5_VLForConditionalGeneration"
    text = TEXT
    vision = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=64, fullatt_block_indexes=[0])


class Qwen3Vl(Seeing):
    architecture, model = "qwen3vl", "Qwen3VLForConditionalGeneration"
    text = {**TEXT, "rope_parameters": rope(1e6, mrope_section=[4, 2, 2], mrope_interleaved=True)}
    vision = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=64,
                  deepstack_visual_indexes=[0], num_position_embeddings=16)

    def keys(self, config):
        return {**super().keys(config), "n_deepstack_layers": len(config.vision_config.deepstack_visual_indexes)}


class Qwen3VlMoe(Qwen3Vl, Mixture):
    architecture, model = "qwen3vlmoe", "Qwen3VLMoeForConditionalGeneration"
    text = {**Qwen3Vl.text, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 48}


class LayerNorm(Partial):
    """Norms subtract the mean; some have biases."""

    epsilon = "layer_norm_eps"

    def keys(self, config):
        config.rms_norm_eps = 1.0
        keys = super().keys(config)
        del keys["attention.layer_norm_rms_epsilon"]
        return {**keys, "attention.layer_norm_epsilon": getattr(config, self.epsilon)}


class Cohere(LayerNorm):
    architecture, model = "command-r", "CohereForCausalLM"
    base = dict(rope_parameters=rope(), tie_word_embeddings=True, logit_scale=0.25, layer_norm_eps=1e-2)

    def keys(self, config):
        return {**super().keys(config), "logit_scale": config.logit_scale}


class Cohere2(Cohere):
    architecture, model = "cohere2", "Cohere2ForCausalLM"
    base = {**Cohere.base, "sliding_window": 9, "num_hidden_layers": 5}

    def keys(self, config):
        return {**super().keys(config), "attention.sliding_window": config.sliding_window}


class StableLm(LayerNorm):
    architecture, model = "stablelm", "StableLmForCausalLM"
    base = dict(rope_parameters=rope(partial_rotary_factor=0.25), use_qkv_bias=True, layer_norm_eps=1e-2)


class Starcoder2(LayerNorm):
    architecture, model, epsilon = "starcoder2", "Starcoder2ForCausalLM", "norm_epsilon"
    layer_names = {**LAYER_NAMES, "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    base = dict(rope_parameters=rope(1e5), use_bias=True, tie_word_embeddings=True, norm_epsilon=1e-2,
                sliding_window=None)

    def keys(self, config):
        return {**super().keys(config), "attention.sliding_window": config.sliding_window or 0}


class Nemotron(LayerNorm):
    architecture, model, epsilon = "nemotron", "NemotronForCausalLM", "norm_eps"
    base = dict(rope_parameters=rope(partial_rotary_factor=0.5), head_dim=24, norm_eps=1e-2)

    def norm_is_offset(self, name):
        return name.endswith("norm.weight")


class Lfm2(Llama):
    """Layers of attention among short convolutions."""

    architecture, model, permuted = "lfm2", "Lfm2ForCausalLM", False
    layer_names = {
        **LAYER_NAMES, "operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "self_attn.out_proj": "attn_output",
        "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm", "feed_forward.w1": "ffn_gate",
        "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down", "conv.in_proj": "shortconv.in_proj",
        "conv.out_proj": "shortconv.out_proj"}
    base = dict(rope_parameters=rope(1e6), num_hidden_layers=5, tie_word_embeddings=True, conv_L_cache=3,
                block_auto_adjust_ff_dim=False, layer_types=["conv", "full_attention", "conv", "conv", "full_attention"])
    deviations = {"conv.conv": 0.6}

    def tensors(self, name, array, config):
        if name == "model.embedding_norm.weight":
            return [("token_embd_norm.weight", array)]
        if name.endswith("conv.conv.weight"):
            return [(f"blk.{name.split('.')[2]}.shortconv.conv.weight", array[:, 0])]
        return super().tensors(name, array, config)

    def keys(self, config):
        config.rms_norm_eps = config.norm_eps
        return {**super().keys(config), "shortconv.l_cache": config.conv_L_cache, "attention.head_count_kv": [
            config.num_key_value_heads if kind == "full_attention" else 0 for kind in config.layer_types]}


class Lfm2Moe(Lfm2, Mixture):
    """The same with experts behind a dense layer."""

    architecture, model = "lfm2moe", "Lfm2MoeForCausalLM"
    layer_names = {**Lfm2.layer_names, "feed_forward.gate": "ffn_gate_inp"}
    base = {**Lfm2.base, "num_dense_layers": 1, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
            "norm_topk_prob": True, "use_expert_bias": True, "routed_scaling_factor": 1.0}
    base.pop("block_auto_adjust_ff_dim")
    deviations = {**Lfm2.deviations, r"feed_forward\.gate\.weight": 0.3, "expert_bias": 0.2}

    def tensors(self, name, array, config):
        if name.endswith("expert_bias"):
            return [(f"blk.{name.split('.')[2]}.exp_probs_b.bias", array)]
        if ".experts." in name:
            return Mixture.tensors(self, name.replace("feed_forward", "mlp"), array, config)
        return super().tensors(name, array, config)

    def keys(self, config):
        return {**super().keys(config), **self.expert_keys(config), "leading_dense_block_count": config.num_dense_layers,
                "expert_gating_func": 2}


SCALE = {"scale": dict(routed_scaling_factor=1.0)}

MORE = [
    Glm4("glm4"),
    Glm4Moe("glm4moe", {}, {**USED, **NOT_NORMED, **SCALE}),
    Glm4MoeWithNext("glm4moe, with a layer that is not run", dict(use_qk_norm=False)),
    Dots1("dots1", {}, {**USED, **NOT_NORMED, **SCALE}),
    MiniMaxM2("minimax-m2", {}, USED),
    Ernie45("ernie4_5"),
    Exaone4("exaone4", {}, WINDOW),
    Exaone4("exaone4, without windows", dict(sliding_window=None, layer_types=["full_attention"] * 3,
                                             num_hidden_layers=3, rope_parameters=LLAMA3), UNSCALED),
    SeedOss("seed_oss"),
    Qwen25Vl("qwen2vl"),
    Qwen3Vl("qwen3vl"),
    Qwen3VlMoe("qwen3vlmoe"),
    Cohere("command-r", {}, {"logit_scale": dict(logit_scale=1.0)}),
    Cohere2("cohere2", {}, WINDOW),
    StableLm("stablelm"),
    StableLm("stablelm, blocks side by side", dict(use_parallel_residual=True, use_qkv_bias=False)),
    Starcoder2("starcoder2"),
    Starcoder2("starcoder2, window", dict(sliding_window=9), WINDOW),
    Nemotron("nemotron"),
    Lfm2("lfm2"),
    Lfm2("lfm2, longer convolutions", dict(conv_L_cache=4, num_key_value_heads=1)),
    Lfm2Moe("lfm2moe", {}, {"experts used": dict(num_experts_per_tok=1)}),
]
