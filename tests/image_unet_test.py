"""The U-Net of Stable Diffusion through librdna, against diffusers' in float64 on small random networks."""
import ctypes
import json
import pathlib
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import safetensors.torch
import torch

from image_library import (BAD_DATA, BF16, DEVICE, F16, F32, I32,
                           INT, INVALID, LIBRARY, NOT_FOUND, POINTER, TEXT, UNSUPPORTED, declare)

diffusers.utils.logging.set_verbosity_error()
torch.set_num_threads(1)  # more wait for each other, for so little

declare("rdna_image_unet_", [("create", INT, [POINTER, TEXT, TEXT, INT, POINTER]), ("release", None, [POINTER]),
                             ("get_info", POINTER, [POINTER]), ("run", INT, [POINTER, POINTER, POINTER])])


class Info(ctypes.Structure):
    _fields_ = [(name, INT) for name in ("in_channels", "out_channels", "sample", "text_width", "added_width",
                                         "number_width", "guidance_width")] + [("weights_bytes", ctypes.c_size_t)]


class Input(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("count", INT), ("height", INT), ("width", INT), ("tokens", INT),
                ("sample", POINTER), ("states", POINTER), ("timestep", ctypes.c_double), ("pooled", POINTER),
                ("numbers", POINTER), ("pooled_width", INT), ("number_count", INT), ("guidance", ctypes.c_double)]


class UNet:
    def __init__(self, folder, dtype=F32):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_unet_create(DEVICE, str(folder).encode(), b"unet", dtype,
                                                     ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        if self.status == 0:
            self.info = Info.from_address(LIBRARY.rdna_image_unet_get_info(self.handle))

    def run(self, sample, timestep, states, pooled=None, numbers=None, changes={}):
        """What the network answers, NaN where nothing was written, and the status; with |changes| of what it is given."""
        kept = [None if x is None else np.ascontiguousarray(x, np.float32) for x in (sample, states, pooled, numbers)]
        pointers = [None if x is None else x.ctypes.data for x in kept]
        count, _, height, width = sample.shape
        given = {"size": ctypes.sizeof(Input), "count": count, "height": height, "width": width, "tokens": states.shape[1],
                 "sample": pointers[0], "states": pointers[1], "timestep": timestep, "pooled": pointers[2],
                 "numbers": pointers[3], "pooled_width": 0 if pooled is None else pooled.shape[1],
                 "number_count": 0 if numbers is None else numbers.shape[1], "guidance": GUIDANCE, **changes}
        out = np.full((count, self.info.out_channels, height, width), np.nan, np.float32)
        return out, LIBRARY.rdna_image_unet_run(self.handle, ctypes.byref(Input(**given)), out.ctypes.data)

    def __del__(self):
        LIBRARY.rdna_image_unet_release(self.handle)


GUIDANCE = 6.5

# As the published networks are, but small.
ONE = {"block_out_channels": [16, 32, 32], "layers_per_block": 2, "norm_num_groups": 8, "cross_attention_dim": 20,
       "attention_head_dim": 4, "sample_size": 8, "flip_sin_to_cos": True, "freq_shift": 0, "act_fn": "silu", "norm_eps": 1e-5,
       "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
       "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"]}
TWO = {**ONE, "attention_head_dim": [2, 4, 4], "use_linear_projection": True, "upcast_attention": True, "norm_eps": 1e-4}
XL = {**ONE, "block_out_channels": [16, 32, 48], "attention_head_dim": [2, 4, 6], "use_linear_projection": True,
      "transformer_layers_per_block": [1, 2, 3], "addition_embed_type": "text_time", "addition_time_embed_dim": 8,
      "projection_class_embeddings_input_dim": 12 + 6 * 8,
      "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
      "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"]}
ODD = {**ONE, "block_out_channels": [24, 17 * 3, 40, 30], "norm_num_groups": 1, "layers_per_block": [1, 3, 2, 1],
       "attention_head_dim": [8, 3, 5, 10], "freq_shift": 1, "flip_sin_to_cos": False, "in_channels": 9, "out_channels": 3,
       "mid_block_scale_factor": 1.7, "time_embedding_dim": 31, "sample_size": [8, 6], "cross_attention_dim": 7,
       "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
       "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D", "UpBlock2D"]}
DISTILLED = {**TWO, "time_cond_proj_dim": 11}
SINGLE = {**ONE, "block_out_channels": [15], "norm_num_groups": 5, "attention_head_dim": 3, "layers_per_block": 1,
          "down_block_types": ["CrossAttnDownBlock2D"], "up_block_types": ["UpBlock2D"]}


def random_network(settings, seed):
    network = diffusers.UNet2DConditionModel(**settings)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in network.named_parameters():
            one = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            size = 1 / np.sqrt(p[0].numel()) if p.ndim > 1 else 0.2
            p.copy_(one + size * torch.randn(p.shape, generator=generator))
    return network.eval()


def guidance_embedding(width, count):
    return diffusers.LatentConsistencyModelPipeline.get_guidance_scale_embedding(None, torch.full((count,), GUIDANCE), embedding_dim=width).double()


def error(got, wanted):
    wanted = wanted.detach().double().numpy()
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


class Networks(unittest.TestCase):
    def folder(self, network, dtype=torch.float32, **options):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        network.to(dtype).save_pretrained(pathlib.Path(temporary.name) / "unet", **options)
        network.to(torch.float64)
        return pathlib.Path(temporary.name)

    def inputs(self, network, count, height, width, tokens, seed):
        random, settings = np.random.default_rng(seed), network.config
        sample = random.standard_normal((count, settings.in_channels, height, width)).astype(np.float32)
        states = random.standard_normal((count, tokens, settings.cross_attention_dim)).astype(np.float32)
        if not settings.addition_embed_type:
            return sample, states, None, None
        numbers = random.choice([0, 64, 512, 1024, 77.0], (count, 6)).astype(np.float32)
        return sample, states, random.standard_normal((count, 12)).astype(np.float32), numbers

    def answer(self, network, sample, timestep, states, pooled, numbers):
        double = [None if x is None else torch.from_numpy(x).double() for x in (sample, states, pooled, numbers)]
        added = {"text_embeds": double[2], "time_ids": double[3]} if pooled is not None else None
        with torch.no_grad():
            told = guidance_embedding(network.config.time_cond_proj_dim, len(sample)) if network.config.time_cond_proj_dim else None
            return network(double[0], timestep, double[1], added_cond_kwargs=added, timestep_cond=told).sample

    def compare(self, settings, shapes, dtype=torch.float32, on_device=F32, limit=1e-4, **options):
        network = random_network(settings, 3)
        ours = UNet(self.folder(network, dtype, **options), on_device)
        self.assertEqual(ours.status, 0, ours.sentence)
        for shape, timestep in shapes:
            given = self.inputs(network, *shape, seed=sum(shape))
            got, status = ours.run(given[0], timestep, *given[1:])
            self.assertEqual(status, 0, LIBRARY.rdna_last_error())
            self.assertLess(error(got, self.answer(network, given[0], timestep, *given[1:])), limit, (shape, timestep))
        return ours

    def test_networks(self):
        shapes = [((2, 8, 8, 11), 981), ((1, 16, 4, 3), 0), ((3, 5, 7, 1), 437.25), ((1, 1, 1, 2), 1), ((1, 13, 6, 77), 999)]
        for name, settings in [("1", ONE), ("2", TWO), ("XL", XL), ("odd", ODD), ("single", SINGLE), ("distilled", DISTILLED)]:
            with self.subTest(name):
                ours = self.compare(settings, shapes)
                added = settings.get("projection_class_embeddings_input_dim", 0)
                side = settings["sample_size"]
                self.assertEqual([getattr(ours.info, field) for field, _ in Info._fields_[:7]],
                                 [settings.get("in_channels", 4), settings.get("out_channels", 4), side if isinstance(side, int) else 0,
                                  settings["cross_attention_dim"], added, 8 if added else 0, settings.get("time_cond_proj_dim", 0)])

    def test_stored_types(self):
        for dtype in (torch.float16, torch.bfloat16):
            self.compare(ONE, [((2, 6, 8, 9), 501)], dtype)
        self.compare(TWO, [((1, 6, 8, 9), 501)], torch.float16, variant="fp16")
        self.compare(XL, [((1, 6, 8, 9), 501)], max_shard_size="200KB")

    def test_16_bits(self):
        for dtype, limit in [(F16, 5e-3), (BF16, 4e-2)]:  # a dozen blocks, each rounded to 2^-11 or 2^-8
            for settings in (ONE, XL):
                self.compare(settings, [((2, 8, 6, 9), 501)], on_device=dtype, limit=limit)

    def test_weights_bytes(self):
        network = random_network(ONE, 3)
        self.assertEqual(UNet(self.folder(network)).info.weights_bytes, 4 * sum(p.numel() for p in network.parameters()))

    # ---- what is refused ----

    def refused(self, folder, status, *words, dtype=F32):
        ours = UNet(folder, dtype)
        self.assertEqual(ours.status, status, ours.sentence)
        for word in words:
            self.assertIn(word, ours.sentence)

    def test_settings(self):
        folder = self.folder(random_network(SINGLE, 1))
        path = folder / "unet/config.json"
        settings = json.loads(path.read_text())
        for change, status, word in [
                ({"_class_name": "UNet2DModel"}, UNSUPPORTED, "UNet2DModel"), ({"magic": 3}, UNSUPPORTED, "magic"),
                ({"center_input_sample": True}, UNSUPPORTED, "center_input_sample"), ({"act_fn": "mish"}, UNSUPPORTED, "mish"),
                ({"only_cross_attention": True}, UNSUPPORTED, "only_cross"), ({"only_cross_attention": [False]}, UNSUPPORTED, "only_cross"),
                ({"dual_cross_attention": True}, UNSUPPORTED, "dual"), ({"class_embed_type": "timestep"}, UNSUPPORTED, "class_embed"),
                ({"num_class_embeds": 3}, UNSUPPORTED, "num_class"), ({"time_cond_proj_dim": 8}, BAD_DATA, "cond_proj"), ({"time_cond_proj_dim": 1}, BAD_DATA, "time_cond"),
                ({"addition_embed_type": "text"}, UNSUPPORTED, "addition_embed_type"), ({"encoder_hid_dim": 8}, UNSUPPORTED, "encoder_hid"),
                ({"mid_block_type": "UNetMidBlock2D"}, UNSUPPORTED, "UNetMidBlock2D"), ({"mid_block_type": None}, UNSUPPORTED, "mid_block_type"),
                ({"norm_num_groups": None}, UNSUPPORTED, "norm_num_groups"), ({"resnet_time_scale_shift": "scale_shift"}, UNSUPPORTED, "scale_shift"),
                ({"time_embedding_type": "fourier"}, UNSUPPORTED, "fourier"), ({"conv_in_kernel": 5}, UNSUPPORTED, "conv_in_kernel"),
                ({"downsample_padding": 0}, UNSUPPORTED, "downsample_padding"), ({"attention_type": "gated"}, UNSUPPORTED, "gated"),
                ({"down_block_types": ["AttnDownBlock2D"]}, UNSUPPORTED, "AttnDownBlock2D"), ({"up_block_types": ["X"]}, UNSUPPORTED, "X"),
                ({"up_block_types": ["UpBlock2D"] * 2}, BAD_DATA, "up_block_types"), ({"block_out_channels": []}, BAD_DATA, "block_out"),
                ({"block_out_channels": [15] * 7}, BAD_DATA, "block_out"), ({"block_out_channels": [2**20]}, BAD_DATA, "block_out"),
                ({"block_out_channels": [18]}, BAD_DATA, "18"), ({"layers_per_block": 7}, BAD_DATA, "layers_per_block"),
                ({"layers_per_block": [1, 1]}, BAD_DATA, "layers_per_block"), ({"transformer_layers_per_block": [[1]]}, BAD_DATA, "transformer"),
                ({"attention_head_dim": 4}, BAD_DATA, "heads"), ({"norm_num_groups": 4}, BAD_DATA, "groups"), ({"norm_eps": "x"}, BAD_DATA, "norm_eps"),
                ({"freq_shift": 9}, BAD_DATA, "freq_shift"), ({"sample_size": "8"}, BAD_DATA, "sample_size"), ({"in_channels": 9}, BAD_DATA, "conv_in"),
                ({"layers_per_block": 2}, BAD_DATA, "resnets.1"), ({"down_block_types": ["DownBlock2D"]}, UNSUPPORTED, "attentions"),
                ({"addition_embed_type": "text_time"}, BAD_DATA, "addition_time"), ({"projection_class_embeddings_input_dim": 8}, UNSUPPORTED, "projection"),
                ({"block_out_channels": [1], "norm_num_groups": 1, "attention_head_dim": 1}, BAD_DATA, "too few")]:
            with self.subTest(str(change)):
                path.write_text(json.dumps({**settings, **change}))
                self.refused(folder, status, word, "unet")
        for text in ["", "[]", "{", "3"]:
            path.write_text(text)
            self.refused(folder, BAD_DATA, "config.json")
        path.unlink()
        self.refused(folder, NOT_FOUND, "config.json")

    def test_tensors(self):
        folder = self.folder(random_network(SINGLE, 1))
        path = folder / "unet/diffusion_pytorch_model.safetensors"
        tensors = safetensors.torch.load_file(path)
        for name in ["conv_in.bias", "mid_block.attentions.0.transformer_blocks.0.attn2.to_k.weight", "up_blocks.0.resnets.1.conv2.weight"]:
            safetensors.torch.save_file({k: v for k, v in tensors.items() if k != name}, path)
            self.refused(folder, BAD_DATA, name)
            safetensors.torch.save_file({**tensors, name: tensors[name][:-1].clone()}, path)
            self.refused(folder, BAD_DATA, name)
            safetensors.torch.save_file({**tensors, name: tensors[name].to(torch.int32)}, path)
            self.refused(folder, UNSUPPORTED, name)
        safetensors.torch.save_file({**tensors, "position_net.weight": torch.zeros(3)}, path)
        self.refused(folder, UNSUPPORTED, "position_net.weight")
        path.unlink()
        self.refused(folder, NOT_FOUND, "diffusion_pytorch_model")

    def test_arguments(self):
        network = random_network(XL, 1)
        folder = self.folder(network)
        self.refused(folder, INVALID, "i32", dtype=I32)
        self.refused("x" * 5000, INVALID, "too long")
        ours = UNet(folder)
        given = self.inputs(network, 2, 4, 4, 5, 1)
        arguments = [given[0], 3, *given[1:]]
        for change in [{"count": 0}, {"count": 65}, {"height": 0}, {"width": -1}, {"width": 1 << 20}, {"tokens": 0}, {"sample": None},
                       {"states": None}, {"timestep": np.nan}, {"pooled": None}, {"numbers": None}, {"pooled_width": 11}, {"number_count": 5},
                       {"pooled_width": -36, "number_count": 12}, {"size": 0}]:
            with self.subTest(str(change)):
                out, status = ours.run(*arguments, changes=change)
                self.assertEqual(status, INVALID)
                self.assertTrue(np.isnan(out).all())
        self.assertEqual(ours.run(*arguments)[1], 0)
        self.assertEqual(LIBRARY.rdna_image_unet_create(None, b".", b"unet", F32, ctypes.byref(POINTER())), INVALID)
        self.assertEqual(LIBRARY.rdna_image_unet_run(ours.handle, None, None), INVALID)


if __name__ == "__main__":
    unittest.main()
