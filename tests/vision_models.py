"""Tiny random models that see pictures, in float64 by transformers, and as two GGUF files: the language model's, as
architecture_models.py writes it, and the tower's ("mmproj").

Names of keys and tensors are the GGUF convention as llama.cpp's converter (github.com/ggml-org/llama.cpp,
gguf-py/gguf/constants.py) writes it.
"""
import re

import numpy as np
import torch
from PIL import Image

import gguf_file as gf
from architecture_delta import Qwen35
from architecture_models import Model
from architecture_more import Qwen25Vl, Qwen3Vl, Qwen3VlMoe
from architecture_rows import Gemma3

TOWER_NAMES = {
    "layer_norm1": "ln1", "layer_norm2": "ln2", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_out", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down",
}


class Gemma3Sees(Gemma3):
    """Gemma 3 with its SigLIP, of which it has no head."""

    model, layers = "Gemma3ForConditionalGeneration", "model.language_model.layers"
    projector = "gemma3"
    vision = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=3, image_size=48,
                  patch_size=4)
    deviations = {**Gemma3.deviations, r"patch_embedding\.weight": 0.15, "position_embedding": 0.5}
    picture, begin, end = 66, 64, 65  # tokens: of a picture, before it and behind it
    mean = deviation = [0.5, 0.5, 0.5]
    filter = Image.Resampling.BILINEAR

    def __init__(self, name, config=None, vision=None, tokens=9):
        super().__init__(name, config)
        text = self.config
        self.config = dict(text_config=text, vision_config={**self.vision, **(vision or {})},
                           mm_tokens_per_image=tokens, image_token_index=self.picture, boi_token_index=self.begin,
                           eoi_token_index=self.end, tie_word_embeddings=True)

    def serves_text(self, name):
        return ".vision_tower." not in name and ".multi_modal_projector." not in name

    def norm_is_offset(self, name):
        return super().norm_is_offset(name) and ".vision_tower." not in name

    def tensors(self, name, array, config):
        if not self.serves_text(name):
            return []
        return super().tensors(name.replace("language_model.", ""), array, config.text_config)

    def keys(self, config):
        return super().keys(config.text_config)

    # ---- the tower

    def tower_keys(self, config):
        vision = config.vision_config
        side = int(vision.image_size // vision.patch_size / config.mm_tokens_per_image**0.5)
        return {"use_gelu": True, "vision.image_size": vision.image_size,
                **({"vision.projector.scale_factor": side} if side != 4 else {})}

    def tower_tensors(self, name, array, config):
        if self.serves_text(name) or ".head." in name:
            return []
        if name.endswith("mm_input_projection_weight"):
            return [("mm.input_projection.weight", array)]
        if name.endswith("mm_soft_emb_norm.weight"):
            return [("mm.soft_emb_norm.weight", array + 1)]
        stem, end = name.split("vision_tower.")[1].rsplit(".", 1)
        whole = {"embeddings.patch_embedding": "v.patch_embd", "embeddings.position_embedding": "v.position_embd",
                 "post_layernorm": "v.post_ln"}
        if stem in whole:
            return [(f"{whole[stem]}.{end}", array)]
        number, part = re.fullmatch(r"encoder\.layers\.(\d+)\.(.+)", stem).groups()
        return [(f"v.blk.{number}.{TOWER_NAMES[part]}.{end}", array)]

    # ---- what transformers makes of a picture

    def size_of(self, config, height, width):
        """Pixels that a picture is resized to."""
        return (config.vision_config.image_size,) * 2

    def processor(self, config):
        from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
        return Gemma3ImageProcessorPil(size=dict(zip(("height", "width"), self.size_of(config, 0, 0))),
                                       image_mean=self.mean, image_std=self.deviation)

    def resized(self, config, pictures):
        """Rows are resized first: from Pillow 13 on that is not so in all cases."""
        images = []
        for picture in pictures:
            image = Image.fromarray(picture)
            height, width = self.size_of(config, *picture.shape[:2])
            images.append(image.resize((width, image.height), self.filter).resize((width, height), self.filter))
        return images

    def inputs(self, config, pictures):
        """For the network, in float32."""
        images = self.resized(config, pictures)
        return {"pixel_values": self.processor(config)(images, return_tensors="pt")["pixel_values"]}

    def grid(self, config, picture):
        """Tokens of a picture in height and width."""
        return (int(config.mm_tokens_per_image**0.5),) * 2

    def types(self, ids):
        return {"token_type_ids": (ids == self.picture).long()}


class SeeingModel(Model):
    def write_tower(self, path, kind=gf.TENSOR_F32, change=None, without=()):
        """|kind|: of matrices. |change|, a function: of the entries and tensors."""
        row, tensors = self.row, []
        for name, array in self.weights.items():
            for to, values in row.tower_tensors(name, array, self.config):
                tensors.append((to, kind if values.ndim == 2 and to.startswith("v.blk.") else gf.TENSOR_F32, values))
        vision = self.config.vision_config
        keys = {"has_vision_encoder": True, "projector_type": row.projector,
                "vision.embedding_length": vision.hidden_size, "vision.feed_forward_length": vision.intermediate_size,
                "vision.block_count": getattr(vision, "num_hidden_layers", None) or vision.depth,
                "vision.attention.head_count": getattr(vision, "num_attention_heads", None) or vision.num_heads,
                "vision.attention.layer_norm_epsilon": getattr(vision, "layer_norm_eps", 1e-6),
                "vision.patch_size": vision.patch_size, "vision.projection_dim": self.config.text_config.hidden_size,
                "vision.image_mean": row.mean, "vision.image_std": row.deviation, **row.tower_keys(self.config)}
        entries = [("general.architecture", gf.TEXT, "clip"), ("general.type", gf.TEXT, "mmproj")]
        entries += [(f"clip.{key}", *gf.typed(value)) for key, value in keys.items() if key not in without]
        if change:
            entries, tensors = change(entries, tensors)
        gf.write(path, entries, tensors)

    def rows(self, picture, dtype=torch.float64):
        """What the tower makes of a picture (height, width, 3) of bytes; behind it what it has for the language model's first
        layers."""
        network = self.networks.setdefault((str({}), dtype), None) or self.network({}, dtype)
        self.networks[str({}), dtype] = network
        inputs = {name: value.to(dtype) if value.is_floating_point() else value
                  for name, value in self.row.inputs(self.config, [picture]).items()}
        with torch.no_grad(), self.mode(dtype):
            features = network.model.get_image_features(**inputs, return_dict=True)
        got = features.pooler_output
        got = torch.cat(list(got)) if isinstance(got, (list, tuple)) else got
        got = torch.cat([got, *(torch.cat(list(of_layer)) for of_layer in getattr(features, "deepstack_features", None) or [])])
        assert got.dtype == dtype
        return got.reshape(-1, got.shape[-1]).double().numpy()

    def tokens_of(self, parts):
        """The ids of |parts|, lists of ids and pictures, with so many of the picture's own as it has tokens."""
        ids = []
        for part in parts:
            ids += part if isinstance(part, list) else [self.row.picture] * int(np.prod(self.row.grid(self.config, part)))
        return ids

    def logits_of(self, parts, dtype=torch.float64):
        network = self.networks.setdefault((str({}), dtype), None) or self.network({}, dtype)
        self.networks[str({}), dtype] = network
        ids = torch.tensor([self.tokens_of(parts)])
        pictures = [part for part in parts if not isinstance(part, list)]
        inputs = {name: value.to(dtype) if value.is_floating_point() else value
                  for name, value in self.row.inputs(self.config, pictures).items()}
        with torch.no_grad(), self.mode(dtype):
            logits = network(input_ids=ids, **inputs, **self.row.types(ids), use_cache=False).logits[0]
        assert logits.dtype == dtype
        return logits.double().numpy()


class Qwen25Sees(Qwen25Vl):
    """Qwen2.5-VL: pictures of any shape, windows of 4 x 4 tokens in some layers, positions in rows and columns."""

    projector = "qwen2.5vl_merger"
    vision = dict(depth=4, hidden_size=64, intermediate_size=72, num_heads=2, out_hidden_size=64, patch_size=4,
                  window_size=32, fullatt_block_indexes=[1, 3], spatial_merge_size=2, temporal_patch_size=2)
    deviations = {r"patch_embed\.proj": 0.1}
    picture = 64
    mean, deviation = [0.48, 0.45, 0.41], [0.27, 0.26, 0.28]
    filter = Image.Resampling.BICUBIC
    limits = 4 * 64, 40 * 64  # pixels
    names = {"norm1": "ln1", "norm2": "ln2", "attn.proj": "attn_out", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}

    def __init__(self, name, config=None, vision=None):
        super().__init__(name, config)
        self.config["vision_config"] = {**self.vision, **(vision or {})}

    def tower_keys(self, config):
        vision = config.vision_config
        return {"use_silu": True, "vision.image_size": 560, "vision.n_wa_pattern": vision.fullatt_block_indexes[0] + 1,
                "vision.window_size": vision.window_size, "vision.image_min_pixels": self.limits[0],
                "vision.image_max_pixels": self.limits[1]}

    def tower_tensors(self, name, array, config):
        if self.serves_text(name):
            return []
        stem, end = name.split("visual.")[1].rsplit(".", 1)
        if stem == "patch_embed.proj":  # one for each of two frames
            return [(f"v.patch_embd.{end}", array[:, :, 0]), (f"v.patch_embd.{end}.1", array[:, :, 1])]
        if stem == "merger.ln_q":
            return [(f"v.post_ln.{end}", array)]
        if stem.startswith("merger.mlp."):
            return [(f"mm.{stem[-1]}.{end}", array)]
        number, part = re.fullmatch(r"blocks\.(\d+)\.(.+)", stem).groups()
        if part == "attn.qkv":
            return [(f"v.blk.{number}.attn_{of}.{end}", third) for of, third in zip("qkv", np.split(array, 3))]
        return [(f"v.blk.{number}.{self.names[part]}.{end}", array)]

    def size_of(self, config, height, width):
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
        return smart_resize(height, width, 2 * config.vision_config.patch_size, *self.limits)

    def processor(self, config):
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
        return Qwen2VLImageProcessorPil(size=dict(shortest_edge=self.limits[0], longest_edge=self.limits[1]),
                                        patch_size=config.vision_config.patch_size, image_mean=self.mean,
                                        image_std=self.deviation)

    def inputs(self, config, pictures):
        images = Gemma3Sees.resized(self, config, pictures)
        made = self.processor(config)(images, return_tensors="pt")
        return {"pixel_values": made["pixel_values"], "image_grid_thw": made["image_grid_thw"]}

    def grid(self, config, picture):
        height, width = self.size_of(config, *picture.shape[:2])
        return height // config.vision_config.patch_size // 2, width // config.vision_config.patch_size // 2

    def types(self, ids):
        return {"mm_token_type_ids": (ids == self.picture).long()}


class Qwen3Sees(Qwen3Vl, Qwen25Sees):
    """Qwen3-VL: positions of a square besides, and features of layers in the middle for the model's first layers."""

    projector = "qwen3vl_merger"
    vision = dict(depth=4, hidden_size=64, intermediate_size=72, num_heads=2, out_hidden_size=64, patch_size=4,
                  spatial_merge_size=2, temporal_patch_size=2, num_position_embeddings=36, deepstack_visual_indexes=[2, 0])
    deviations = {**Qwen25Sees.deviations, r"pos_embed": 0.5}
    mean = deviation = [0.5, 0.5, 0.5]
    names = {"norm1": "ln1", "norm2": "ln2", "attn.qkv": "attn_qkv", "attn.proj": "attn_out", "mlp.linear_fc1": "ffn_up",
             "mlp.linear_fc2": "ffn_down"}
    mergers = {"norm": "norm", "linear_fc1": "fc1", "linear_fc2": "fc2"}

    def tower_keys(self, config):
        vision = config.vision_config
        side = int(vision.num_position_embeddings**0.5) * vision.patch_size
        deep = getattr(vision, "deepstack_visual_indexes", [])
        return {"use_gelu": True, "vision.image_size": side, "vision.spatial_merge_size": vision.spatial_merge_size,
                "vision.is_deepstack_layers": [i in deep for i in range(vision.depth)],
                "vision.image_min_pixels": self.limits[0], "vision.image_max_pixels": self.limits[1]}

    def tower_tensors(self, name, array, config):
        if self.serves_text(name):
            return []
        stem, end = name.split("visual.")[1].rsplit(".", 1)
        if stem == "patch_embed.proj":
            if array.ndim == 1:
                return [("v.patch_embd.bias", array)]
            return super().tower_tensors(name, array, config)
        whole = {"pos_embed": "v.position_embd", "merger.norm": "v.post_ln", "merger.linear_fc1": "mm.0",
                 "merger.linear_fc2": "mm.2"}
        if stem in whole:
            return [(f"{whole[stem]}.{end}", array)]
        if stem.startswith("deepstack_merger_list."):
            _, number, part = stem.split(".")
            return [(f"v.deepstack.{config.vision_config.deepstack_visual_indexes[int(number)]}.{self.mergers[part]}.{end}", array)]
        number, part = re.fullmatch(r"blocks\.(\d+)\.(.+)", stem).groups()
        return [(f"v.blk.{number}.{self.names[part]}.{end}", array)]


class Qwen3SeesWithExperts(Qwen3VlMoe, Qwen3Sees):
    architecture, model, text = Qwen3VlMoe.architecture, Qwen3VlMoe.model, Qwen3VlMoe.text
    layer_names, vision = Qwen3VlMoe.layer_names, Qwen3Sees.vision
    deviations = {**Qwen3Sees.deviations, **Qwen3VlMoe.deviations}


class Qwen35Sees(Qwen3Sees, Qwen35):
    """Qwen3.5: the same without features for other layers, before layers with states."""

    architecture, model, base, text = Qwen35.architecture, "Qwen3_5ForConditionalGeneration", Qwen35.base, {}
    layer_names, deviations = Qwen35.layer_names, {**Qwen3Sees.deviations, **Qwen35.deviations}
    vision = {name: value for name, value in Qwen3Sees.vision.items() if name != "deepstack_visual_indexes"}

    def norm_is_offset(self, name):
        return self.serves_text(name) and Qwen35.norm_is_offset(self, name)

    def keys(self, config):
        return super(Qwen3Vl, self).keys(config)


ROWS = [
    Gemma3Sees("gemma3"),
    Gemma3Sees("gemma3, a window shorter than the picture", dict(sliding_window=5)),
    Gemma3Sees("gemma3, other squares", dict(num_hidden_layers=2), dict(image_size=30, patch_size=5, num_hidden_layers=2),
               tokens=4),
    Qwen25Sees("qwen2.5-vl"),
    Qwen25Sees("qwen2.5-vl, without windows", {}, dict(depth=2, fullatt_block_indexes=[0, 1])),
    Qwen3Sees("qwen3-vl"),
    Qwen3Sees("qwen3-vl, one layer of the tower for the model's first", {},
              dict(depth=2, deepstack_visual_indexes=[1], num_position_embeddings=9)),
    Qwen3SeesWithExperts("qwen3-vl with experts", {}, dict(depth=2, deepstack_visual_indexes=[0, 1])),
    Qwen35Sees("qwen3.5", {}, dict(depth=2)),
]
