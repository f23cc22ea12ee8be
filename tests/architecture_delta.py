"""The models of architecture_rows.py that have Gated DeltaNet layers: a matrix of memory a head in place of a cache."""
import re

import numpy as np

import gguf_file as gf
from architecture_mixtures import NOT_NORMED, USED, Mixture
from architecture_rows import rope

LINEAR_NAMES = {
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "post_attention_layernorm": "post_attention_norm",
}


class DeltaNet(Mixture):
    """Three layers of four are linear; of the others the output is gated, and a part of each head turns."""

    layer_names = {**Mixture.layer_names, **LINEAR_NAMES}
    base = dict(rope_parameters=rope(1e5, partial_rotary_factor=0.5), head_dim=24, num_hidden_layers=5,
                linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2,
                linear_num_value_heads=4)
    deviations = {**Mixture.deviations, "conv1d": 0.6, r"self_attn\.o_proj": 0.4}

    def norm_is_offset(self, name):
        return name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")

    def draw(self, name, shape, rng):
        if name.endswith("A_log"):  # the file has -exp(A_log): that is what must be a float32
            return np.log(rng.uniform(0.05, 1.5, shape).astype(np.float32).astype(np.float64))
        if name.endswith("dt_bias"):
            return rng.normal(-1, 0.5, shape).astype(np.float32).astype(np.float64)
        return None

    def tensors(self, name, array, config):
        part = re.fullmatch(r"model\.layers\.(\d+)\.linear_attn\.(A_log|dt_bias|conv1d\.weight)", name)
        if not part:
            return super().tensors(name, array, config)
        if part[2] == "A_log":
            return [(f"blk.{part[1]}.ssm_a", -np.exp(array))]
        return [(f"blk.{part[1]}.ssm_dt.bias", array) if part[2] == "dt_bias" else
                (f"blk.{part[1]}.ssm_conv1d.weight", array[:, 0])]

    def keys(self, config):
        keys = super().keys(config)
        keys.update({
            "rope.dimension_count": int(config.head_dim * config.rope_parameters["partial_rotary_factor"]),
            "ssm.conv_kernel": config.linear_conv_kernel_dim,
            "ssm.state_size": config.linear_key_head_dim,
            "ssm.group_count": config.linear_num_key_heads,
            "ssm.time_step_rank": config.linear_num_value_heads,
            "ssm.inner_size": config.linear_value_head_dim * config.linear_num_value_heads,
            "full_attention_interval": 4,
        })
        return keys


class Qwen3Next(DeltaNet):
    """Of each key head in turn transformers has the rows of q, k, v and z; the file has all of q, then k, v; z apart."""

    architecture, model = "qwen3next", "Qwen3NextForCausalLM"
    base = {**DeltaNet.base, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
            "shared_expert_intermediate_size": 80, "norm_topk_prob": True}

    def tensors(self, name, array, config):
        if not name.endswith("in_proj_qkvz.weight"):
            return super().tensors(name, array, config)
        number, keys = name.split(".")[2], config.linear_key_head_dim
        values = config.linear_num_value_heads // config.linear_num_key_heads * config.linear_value_head_dim
        parts = np.split(array.reshape(config.linear_num_key_heads, -1, array.shape[1]),
                         [keys, 2 * keys, 2 * keys + values], axis=1)
        q, k, v, z = (part.reshape(-1, array.shape[1]) for part in parts)
        return [(f"blk.{number}.attn_qkv.weight", np.concatenate([q, k, v])), (f"blk.{number}.attn_gate.weight", z)]


class OldQwen3Next(Qwen3Next):
    """As files were before q, k, v and z were parted."""

    def tensors(self, name, array, config):
        if name.endswith("in_proj_qkvz.weight"):
            return [(f"blk.{name.split('.')[2]}.ssm_in.weight", array)]
        return super().tensors(name, array, config)


class Qwen35(DeltaNet):
    """Value heads in the file's order: the first of every key head, the second of every key head, …"""

    architecture, model = "qwen35", "Qwen3_5ForCausalLM"
    base = {**DeltaNet.base, "rope_parameters": rope(1e5, partial_rotary_factor=0.5, mrope_section=[2, 2, 2],
                                                     mrope_interleaved=True)}

    def tensors(self, name, array, config):
        if ".linear_attn." not in name or name.endswith("linear_attn.norm.weight"):
            return super().tensors(name, array, config)
        if name.endswith("out_proj.weight"):
            return super().tensors(name, self.tiled(array.T, config).T.copy(), config)
        if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
            first = 2 * config.linear_key_head_dim * config.linear_num_key_heads
            array = np.concatenate([array[:first], self.tiled(array[first:], config)])
        else:
            array = self.tiled(array, config)
        return super().tensors(name, array, config)

    @staticmethod
    def tiled(rows, config):
        """|rows| of all value heads."""
        heads = config.linear_num_key_heads
        apart = rows.reshape(heads, config.linear_num_value_heads // heads, -1, *rows.shape[1:])
        return apart.swapaxes(0, 1).reshape(rows.shape)

    def keys(self, config):
        return {**super().keys(config), "rope.dimension_sections": [*config.rope_parameters["mrope_section"], 0]}

    def expert_keys(self, config):
        return {}


class Qwen35WithNext(Qwen35):
    """Files may have, behind the layers, one that guesses the token after the next, which is not run; and may say of each
    layer what it is."""

    def keys(self, config):
        keys = super().keys(config)
        keys.update({"block_count": config.num_hidden_layers + 1, "nextn_predict_layers": 1})
        recurrent = [kind == "linear_attention" for kind in config.layer_types]
        keys["attention.recurrent_layers"] = recurrent + [False]
        return keys

    def extra_tensors(self, config):
        number, width = config.num_hidden_layers, config.hidden_size
        return [(f"blk.{number}.nextn.{name}.weight", gf.TENSOR_F32, np.ones(shape))
                for name, shape in (("eh_proj", (width, 2 * width)), ("enorm", width), ("hnorm", width))]


class Qwen35Moe(Qwen35):
    architecture, model = "qwen35moe", "Qwen3_5MoeForCausalLM"
    base = {**Qwen35.base, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
            "shared_expert_intermediate_size": 80}

    def expert_keys(self, config):
        return Mixture.expert_keys(self, config)


WIDER = dict(linear_num_key_heads=3, linear_num_value_heads=9, linear_conv_kernel_dim=3)

DELTA = [
    Qwen3Next("qwen3next", {}, {**USED, **NOT_NORMED}),
    Qwen3Next("qwen3next, three value heads a key head", {**WIDER, "num_hidden_layers": 4}),
    OldQwen3Next("qwen3next, q, k, v and z in one matrix", dict(linear_num_value_heads=6)),
    Qwen35("qwen35"),
    Qwen35WithNext("qwen35, with a layer that is not run", dict(num_hidden_layers=3, layer_types=[
        "linear_attention", "full_attention", "linear_attention"]), without=("full_attention_interval",)),
    Qwen35("qwen35, tied, as many value heads", dict(tie_word_embeddings=True, linear_num_key_heads=4)),
    Qwen35Moe("qwen35moe", {}, USED),
    Qwen35Moe("qwen35moe, three value heads a key head", {**WIDER, "num_hidden_layers": 4}),
]
