"""The models of architecture_rows.py that are mixtures of experts."""
import re

import numpy as np

import gguf_file as gf
from architecture_rows import LAYER_NAMES, YARN, Llama, Qwen3, Row, head_size, rope

EXPERTS = {
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "block_sparse_moe.router": "ffn_gate_inp",
    **{f"mlp.{shared}.{part}_proj": f"ffn_{part}_shexp" for part in ("gate", "up", "down")
       for shared in ("shared_expert", "shared_experts")},
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}


class Mixture(Row):
    """Experts' matrices are one tensor each, of all experts: gate and up are parts of one in transformers, and in files
    of newer converters."""

    fused = False  # gate and up

    layer_names = {**LAYER_NAMES, **EXPERTS}
    # choices clear and different from token to token
    deviations = {r"(mlp\.gate|router)\.weight": 0.3}

    def tensors(self, name, array, config):
        match = re.fullmatch(r"model\.layers\.(\d+)\.(?:mlp|block_sparse_moe)\.experts\.(gate_up|down)_proj", name)
        if match and match[2] == "down":
            return [(f"blk.{match[1]}.ffn_down_exps.weight", array)]
        if match and self.fused:
            return [(f"blk.{match[1]}.ffn_gate_up_exps.weight", array)]
        if match:
            gate, up = np.split(array, 2, axis=1)
            return [(f"blk.{match[1]}.ffn_gate_exps.weight", gate), (f"blk.{match[1]}.ffn_up_exps.weight", up)]
        if name.endswith("shared_expert_gate.weight"):
            array = array[0]
        if name.endswith("e_score_correction_bias"):
            return [(f"blk.{name.split('.')[2]}.exp_probs_b.bias", array)]
        return super().tensors(name, array, config)

    def keys(self, config):
        return {**super().keys(config), **self.expert_keys(config)}

    def expert_keys(self, config):
        keys = {"expert_count": self.expert_count(config),
                "expert_used_count": getattr(config, "num_experts_per_tok", None)}
        if hasattr(config, "moe_intermediate_size"):
            keys["expert_feed_forward_length"] = config.moe_intermediate_size
        if getattr(config, "shared_expert_intermediate_size", None):
            keys["expert_shared_feed_forward_length"] = config.shared_expert_intermediate_size
        return keys

    def expert_count(self, config):
        return config.num_experts


class Mixtral(Mixture, Llama):
    model = "MixtralForCausalLM"
    base = dict(rope_parameters=rope(), num_local_experts=5, num_experts_per_tok=2)

    def expert_count(self, config):
        return config.num_local_experts


class Qwen2Moe(Mixture):
    architecture, model = "qwen2moe", "Qwen2MoeForCausalLM"
    base = dict(rope_parameters=rope(1e6), num_experts=6, num_experts_per_tok=3, moe_intermediate_size=48,
                shared_expert_intermediate_size=80)


class Qwen3Moe(Mixture, Qwen3):
    architecture, model = "qwen3moe", "Qwen3MoeForCausalLM"
    base = dict(rope_parameters=rope(1e6), head_dim=24, num_experts=7, num_experts_per_tok=2, norm_topk_prob=True,
                moe_intermediate_size=48)


class FusedQwen3Moe(Qwen3Moe):
    fused = True


class GraniteMoe(Mixture, Llama):
    architecture, model = "granitemoe", "GraniteMoeForCausalLM"
    base = dict(rope_parameters=rope(), embedding_multiplier=1.5, residual_multiplier=0.7, attention_multiplier=0.1,
                logits_scaling=3.0, num_local_experts=5, num_experts_per_tok=2)

    def expert_count(self, config):
        return config.num_local_experts

    def keys(self, config):
        return {**super().keys(config), "embedding_scale": config.embedding_multiplier,
                "residual_scale": config.residual_multiplier, "attention.scale": config.attention_multiplier,
                "logit_scale": config.logits_scaling}


class GraniteMoeShared(GraniteMoe):
    """One expert more, of all tokens, whose gate and up are one matrix in transformers."""

    model = "GraniteMoeSharedForCausalLM"
    base = {**GraniteMoe.base, "shared_intermediate_size": 80}

    def tensors(self, name, array, config):
        if ".shared_mlp." not in name:
            return super().tensors(name, array, config)
        number = name.split(".")[2]
        if name.endswith("output_linear.weight"):
            return [(f"blk.{number}.ffn_down_shexp.weight", array)]
        return [(f"blk.{number}.ffn_{part}_shexp.weight", half)
                for part, half in zip(("gate", "up"), np.split(array, 2))]

    def keys(self, config):
        return {**super().keys(config), "expert_shared_feed_forward_length": config.shared_intermediate_size}


class GptOss(Mixture):
    """Experts in MXFP4 with biases, columns of gate and up in turn, and a logit of its own in each head's softmax."""

    architecture, model = "gpt-oss", "GptOssForCausalLM"
    layer_names = {**LAYER_NAMES, **EXPERTS, "post_attention_layernorm": "post_attention_norm",
                   "self_attn.sinks": "attn_sinks"}
    base = dict(rope_parameters=rope(1.5e5, "yarn", factor=8.0, original_max_position_embeddings=32, beta_fast=32.0,
                                     beta_slow=1.0, truncate=False),
                head_dim=24, intermediate_size=96, num_local_experts=5, num_experts_per_tok=2, num_hidden_layers=4,
                sliding_window=9)
    deviations = {**Mixture.deviations, "sinks": 1.0, "proj_bias": 0.3}

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.blocks = {}

    def draw(self, name, shape, rng):
        """An expert's matrix as transformers has it: transposed."""
        if not name.endswith(("gate_up_proj", "down_proj")):
            return None
        experts, columns, rows = shape
        # some gates beyond the clamp
        raw = gf.random_blocks(gf.TENSOR_MXFP4, rng, (experts, rows, columns), 3 * columns**-0.5)
        self.blocks[name] = np.frombuffer(raw, np.uint8).reshape(experts, rows, -1)
        values = gf.decode_blocks(gf.TENSOR_MXFP4, self.blocks[name].reshape(-1, 17))
        return values.reshape(experts, rows, columns).swapaxes(1, 2).copy()

    def tensors(self, name, array, config):
        if name.endswith(("gate_up_proj_bias", "down_proj_bias")) or name in self.blocks:
            number, rows = name.split(".")[2], self.blocks.get(name, array)
            end = "bias" if name.endswith("bias") else "weight"
            if "down_proj" in name:
                return [self.blocks_or_values(f"blk.{number}.ffn_down_exps.{end}", rows)]
            return [self.blocks_or_values(f"blk.{number}.ffn_{part}_exps.{end}", rows[:, first::2])
                    for first, part in enumerate(("gate", "up"))]
        if name.endswith("sinks"):
            name += ".weight"
        return super().tensors(name, array, config)

    @staticmethod
    def blocks_or_values(name, rows):
        if rows.dtype != np.uint8:
            return name, rows
        shape = (*rows.shape[:2], rows.shape[2] // 17 * 32)
        return name, gf.Blocks(shape, rows.tobytes()), gf.TENSOR_MXFP4

    def keys(self, config):
        return {**super().keys(config), "attention.sliding_window": config.sliding_window,
                "expert_feed_forward_length": config.intermediate_size}

    def expert_count(self, config):
        return config.num_local_experts


class DeepSeek2(Mixture):
    """Keys and values are products of one short vector a token; the file has the two halves of that matrix apart."""

    architecture, model = "deepseek2", "DeepseekV2ForCausalLM"
    layer_names = {**LAYER_NAMES, **EXPERTS, "self_attn.q_a_proj": "attn_q_a", "self_attn.q_b_proj": "attn_q_b",
                   "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
                   "self_attn.kv_a_layernorm": "attn_kv_a_norm"}
    base = dict(rope_parameters=rope(), num_key_value_heads=4, num_hidden_layers=4, first_k_dense_replace=1,
                kv_lora_rank=32, q_lora_rank=None, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=20,
                n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=48,
                routed_scaling_factor=1.0, norm_topk_prob=False, rms_norm_eps=1e-6)
    gating = 1
    deviations = {**Mixture.deviations, "e_score_correction_bias": 0.2}

    def expert_count(self, config):
        return config.n_routed_experts

    def tensors(self, name, array, config):
        if not name.endswith("kv_b_proj.weight"):
            return super().tensors(name, array, config)
        number = name.split(".")[2]
        keys, values = np.split(array.reshape(config.num_attention_heads, -1, config.kv_lora_rank),
                                [config.qk_nope_head_dim], axis=1)
        return [(f"blk.{number}.attn_k_b.weight", keys.swapaxes(1, 2).copy()),
                (f"blk.{number}.attn_v_b.weight", values)]

    def keys(self, config):
        keys = super().keys(config)
        rotated = config.qk_rope_head_dim
        keys.update({
            "attention.head_count_kv": 1,
            "attention.key_length": config.kv_lora_rank + rotated,
            "attention.value_length": config.kv_lora_rank,
            "attention.key_length_mla": config.qk_nope_head_dim + rotated,
            "attention.value_length_mla": config.v_head_dim,
            "attention.kv_lora_rank": config.kv_lora_rank,
            "rope.dimension_count": rotated,
            "leading_dense_block_count": self.dense_layers(config),
            "expert_shared_count": config.n_shared_experts,
            "expert_weights_scale": config.routed_scaling_factor,
            "expert_weights_norm": bool(config.norm_topk_prob),
            "expert_gating_func": self.gating,
        })
        if config.q_lora_rank:
            keys["attention.q_lora_rank"] = config.q_lora_rank
        if (config.n_group or 1) > 1:
            keys["expert_group_count"], keys["expert_group_used_count"] = config.n_group, config.topk_group
        return keys

    def rope_keys(self, parameters):
        keys = super().rope_keys(parameters)
        if parameters.get("mscale_all_dim"):
            keys["rope.scaling.yarn_log_multiplier"] = 0.1 * parameters["mscale_all_dim"]
        return keys

    def dense_layers(self, config):
        return config.first_k_dense_replace


class OldDeepSeek2(DeepSeek2):
    """As files were before the matrix was split: heads as in any attention."""

    def tensors(self, name, array, config):
        if name.endswith("kv_b_proj.weight"):
            return [(f"blk.{name.split('.')[2]}.attn_kv_b.weight", array)]
        return super().tensors(name, array, config)

    def keys(self, config):
        keys = super().keys(config)
        keys["attention.head_count_kv"] = config.num_attention_heads
        keys["attention.key_length"] = keys.pop("attention.key_length_mla")
        keys["attention.value_length"] = keys.pop("attention.value_length_mla")
        return keys


class QuantizedOldDeepSeek2(OldDeepSeek2):
    """That matrix in blocks, which are no blocks of its halves any more."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.blocks = {}

    def draw(self, name, shape, rng):
        if not name.endswith("kv_b_proj.weight"):
            return None
        self.blocks[name] = gf.random_blocks(gf.TENSOR_Q8_0, rng, shape, 1.2 * shape[1] ** -0.5)
        raw = np.frombuffer(self.blocks[name], np.uint8).reshape(-1, 34)
        return gf.decode_blocks(gf.TENSOR_Q8_0, raw).reshape(shape).astype(np.float64)

    def tensors(self, name, array, config):
        entries = super().tensors(name, array, config)
        if name not in self.blocks:
            return entries
        return [(entries[0][0], gf.Blocks(array.shape, self.blocks[name]), gf.TENSOR_Q8_0)]


class DeepSeek3(DeepSeek2):
    model, gating = "DeepseekV3ForCausalLM", 2
    base = {**DeepSeek2.base, "q_lora_rank": 40, "n_group": 4, "topk_group": 2, "n_shared_experts": 1,
            "norm_topk_prob": True, "routed_scaling_factor": 2.5}


class GlmLite(DeepSeek3):
    model = "Glm4MoeLiteForCausalLM"
    base = {key: value for key, value in DeepSeek3.base.items() if key != "first_k_dense_replace"}
    base.update(n_group=1, topk_group=1, routed_scaling_factor=1.8)

    def dense_layers(self, config):
        return config.mlp_layer_types.count("dense")


DEEPSEEK_YARN = {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}
USED = {"experts used": dict(num_experts_per_tok=1)}
NOT_NORMED = {"weights' sum": dict(norm_topk_prob=False)}

MIXTURES = [
    Mixtral("llama, mixture", {}, USED),
    Qwen2Moe("qwen2moe", {}, {**USED, "weights' sum": dict(norm_topk_prob=True)}),
    Qwen3Moe("qwen3moe", {}, {**USED, **NOT_NORMED}),
    Qwen3Moe("qwen3moe, one expert of many", dict(num_experts=33, num_experts_per_tok=1)),
    FusedQwen3Moe("qwen3moe, gate and up in one matrix"),
    GraniteMoe("granitemoe", {}, {**USED, "residual_multiplier": dict(residual_multiplier=1.0)}),
    GraniteMoeShared("granitemoe, shared expert", {}, USED),
    GptOss("gpt-oss", {}, {**USED, "window": dict(sliding_window=10), "clamp": dict(swiglu_limit=100.0),
                           "rounding of the ramp": dict(rope_parameters=dict(truncate=True))}),
    GptOss("gpt-oss, unscaled", dict(rope_parameters=rope(1.5e5), num_key_value_heads=4)),
    DeepSeek2("deepseek2", {}, {**USED, "scale": dict(routed_scaling_factor=2.0)}),
    DeepSeek2("deepseek2, short queries, yarn", dict(q_lora_rank=40, rope_parameters=DEEPSEEK_YARN),
              {"scaling": dict(rope_parameters=dict(rope_type="default"))}),
    OldDeepSeek2("deepseek2, keys and values in one matrix"),
    QuantizedOldDeepSeek2("deepseek2, keys and values in one matrix of blocks"),
    DeepSeek3("deepseek2, of V3", {}, {**USED, **NOT_NORMED, "groups": dict(topk_group=4)}),
    GlmLite("deepseek2, of GLM", {}, {**USED, **NOT_NORMED, "scale": dict(routed_scaling_factor=1.0)}),
]
