"""Transformers and autoencoders of Qwen-Image and FLUX.2 through librdna, against diffusers' in float64 on small random
models in their folders, and what is refused."""
import json
import pathlib
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import torch

import image_autoencoder_test
import image_flow_test
from image_autoencoder_test import Autoencoder
from image_flow_test import Flux, FluxInput, error, packed, randomize
from image_library import BAD_DATA, BF16, F16, F32, INVALID, LIBRARY, UNSUPPORTED

QWEN = {"in_channels": 16, "out_channels": 4, "num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 3, "joint_attention_dim": 40,
        "axes_dims_rope": (4, 6, 6)}
FLUX2 = {"in_channels": 16, "num_layers": 2, "num_single_layers": 2, "attention_head_dim": 16, "num_attention_heads": 3, "joint_attention_dim": 60,
         "timestep_guidance_channels": 32, "axes_dims_rope": (4, 4, 4, 4), "guidance_embeds": False}
QWEN_VAE = {"base_dim": 8, "z_dim": 4, "dim_mult": [1, 2, 3], "num_res_blocks": 1, "temperal_downsample": [False, True],
            "latents_mean": [-0.7, 0.2, 0.9, 0.1], "latents_std": [2.8, 1.5, 0.6, 1.1]}
FLUX2_VAE = {"block_out_channels": (8, 16), "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2,
             "layers_per_block": 1, "norm_num_groups": 4, "latent_channels": 4}


def qwen_transformer(**changes):
    return randomize(diffusers.QwenImageTransformer2DModel(**{**QWEN, **changes}), 3)


def flux2_transformer(**changes):
    return randomize(diffusers.Flux2Transformer2DModel(**{**FLUX2, **changes}), 4)


def qwen_autoencoder(**changes):
    model = randomize(diffusers.AutoencoderKLQwenImage(**{**QWEN_VAE, **changes}), 5)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("gamma"):
                p.copy_(1 + 0.2 * torch.randn(p.shape, generator=torch.Generator().manual_seed(len(name))))
    return model


def flux2_autoencoder(**changes):
    model = randomize(diffusers.AutoencoderKLFlux2(**{**FLUX2_VAE, **changes}), 6)
    generator = torch.Generator().manual_seed(7)
    model.bn.running_mean.copy_(torch.randn(model.bn.running_mean.shape, generator=generator))
    model.bn.running_var.copy_(torch.rand(model.bn.running_var.shape, generator=generator) + 0.5)
    return model


def qwen_answer(network, sample, states, timestep, guidance, context):
    """Of (channels, height, width)."""
    height, width = sample.shape[1:]
    shapes, tokens = [(1, height // 2, width // 2)], packed(sample)
    if context is not None:
        shapes.append((1, context.shape[1] // 2, context.shape[2] // 2))
        tokens = torch.cat([tokens, packed(context)], 1)
    out = network(hidden_states=tokens, encoder_hidden_states=states[None], timestep=torch.tensor([timestep / 1000]).double(), img_shapes=[shapes]).sample
    return diffusers.QwenImagePipeline._unpack_latents(out[:, :height * width // 4], height * 8, width * 8, 8)[0, :, 0]


def flux2_answer(network, sample, states, timestep, guidance, context):
    pipeline = diffusers.Flux2KleinPipeline
    tokens, places = pipeline._pack_latents(sample[None]), pipeline._prepare_latent_ids(sample[None])
    if context is not None:
        tokens = torch.cat([tokens, pipeline._pack_latents(context[None])], 1)
        places = torch.cat([places, pipeline._prepare_image_ids([context[None]])], 1)
    out = network(hidden_states=tokens, encoder_hidden_states=states[None], timestep=torch.tensor([timestep / 1000]).double(), img_ids=places,
                  txt_ids=pipeline._prepare_text_ids(states[None]), guidance=torch.tensor([guidance]).double() if network.config.guidance_embeds else None).sample
    return out[0, :sample[0].numel()].T.reshape(-1, *sample.shape[1:])


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def save(self, network, name, dtype=torch.float32):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        network.to(dtype).save_pretrained(self.folder / name)
        return network.to(torch.float64)

    def settings(self, name, **changes):
        path = self.folder / name / "config.json"
        before = path.read_text()
        path.write_text(json.dumps({**json.loads(before), **changes}))
        return lambda: path.write_text(before)


class Transformers(Folder):
    def compare(self, network, answer, patch, shapes, dtype=F32, limit=1e-4):
        ours, settings = Flux(self.folder, dtype), network.config
        self.assertEqual(ours.status, 0, ours.sentence)
        self.assertEqual((ours.info.in_channels, ours.info.text_width, ours.info.pooled_width), (settings.in_channels // patch**2, settings.joint_attention_dim, 0))
        for height, width, tokens, timestep, guidance, other in shapes:
            rng = np.random.default_rng(height + tokens)
            sample, states = rng.standard_normal((ours.info.in_channels, height, width)).astype(np.float32), rng.standard_normal((tokens, ours.info.text_width)).astype(np.float32)
            context = rng.standard_normal((ours.info.in_channels, *other)).astype(np.float32) if other else None
            with torch.no_grad():
                wanted = answer(network, torch.from_numpy(sample).double(), torch.from_numpy(states).double(), timestep, guidance, None if context is None else torch.from_numpy(context).double())
            got, status = ours.run(sample, states, np.zeros(1), timestep, guidance, {"pooled": None}, context)
            self.assertEqual(status, 0, LIBRARY.rdna_last_error())
            self.assertLess(error(got, wanted), limit, (height, width, tokens))
        return ours

    def test_qwen(self):
        shapes = [(8, 8, 11, 1000, 1, None), (4, 10, 1, 251.25, 1, None), (2, 6, 70, 3.75, 1, (4, 2)), (6, 4, 5, 500, 1, (6, 4))]
        for settings in ({}, {"in_channels": 24, "out_channels": 3, "attention_head_dim": 10, "num_attention_heads": 5, "axes_dims_rope": (2, 0, 8), "joint_attention_dim": 7, "num_layers": 1}):
            self.compare(self.save(qwen_transformer(**settings), "transformer"), qwen_answer, 2, shapes)

    def test_flux2(self):
        shapes = [(4, 4, 11, 1000, 3.5, None), (3, 5, 1, 251.25, 1, None), (1, 2, 70, 3.75, 30, (3, 2)), (2, 7, 5, 500, 1, (2, 7))]
        for settings in ({}, {"guidance_embeds": True, "mlp_ratio": 2.5, "rope_theta": 500, "eps": 1e-4, "out_channels": 12, "axes_dims_rope": (2, 6, 0, 8)},
                         {"num_layers": 0}, {"num_single_layers": 0}):
            self.compare(self.save(flux2_transformer(**settings), "transformer"), flux2_answer, 1, shapes)

    def test_types(self):
        for make, answer, patch in ((qwen_transformer, qwen_answer, 2), (flux2_transformer, flux2_answer, 1)):
            self.compare(self.save(make(), "transformer", torch.bfloat16), answer, patch, [(4, 6, 9, 501, 1, None)])
            network = self.save(make(), "transformer")
            for dtype, limit in ((F16, 5e-3), (BF16, 4e-2)):
                self.compare(network, answer, patch, [(4, 6, 9, 501, 1, (2, 4))], dtype, limit)

    def test_refusals(self):
        for make, changes in (
                (qwen_transformer, [({"zero_cond_t": 3}, BAD_DATA, "zero_cond_t"), ({"use_layer3d_rope": True}, UNSUPPORTED, "layer3d"), ({"guidance_embeds": True}, UNSUPPORTED, "guidance"),
                                    ({"use_additional_t_cond": True}, UNSUPPORTED, "additional"), ({"magic": 1}, UNSUPPORTED, "magic"), ({"patch_size": 1}, UNSUPPORTED, "patch_size"),
                                    ({"num_single_layers": 1}, UNSUPPORTED, "single"), ({"in_channels": 18}, BAD_DATA, "18"), ({"num_layers": 3}, BAD_DATA, "blocks.2"), ({"num_layers": 1}, UNSUPPORTED, "blocks.1"),
                                    ({"axes_dims_rope": [4, 4, 4, 4]}, BAD_DATA, "axes"), ({"_class_name": "QwenImage21Transformer"}, UNSUPPORTED, "QwenImage21")]),
                (flux2_transformer, [({"mlp_ratio": 2}, BAD_DATA, "linear_in"), ({"mlp_ratio": "x"}, BAD_DATA, "mlp_ratio"), ({"mlp_ratio": 0.01}, BAD_DATA, "mlp_ratio"), ({"axes_dims_rope": [4, 6, 6]}, BAD_DATA, "axes"),
                                     ({"timestep_guidance_channels": 33}, BAD_DATA, "even"), ({"rope_theta": 0}, BAD_DATA, "rope_theta"), ({"eps": 2}, BAD_DATA, "eps"), ({"magic": 1}, UNSUPPORTED, "magic"),
                                     ({"guidance_embeds": True}, BAD_DATA, "guidance_embedder"), ({"num_single_layers": 1}, UNSUPPORTED, "single_transformer_blocks.1"), ({"joint_attention_dim": 61}, BAD_DATA, "context_embedder")])):
            self.save(make(), "transformer")
            for change, status, word in changes:
                with self.subTest(str(change)):
                    back = self.settings("transformer", **change)
                    ours = Flux(self.folder)
                    back()
                    self.assertEqual(ours.status, status, ours.sentence)
                    self.assertIn(word, ours.sentence)
                    self.assertIn("transformer", ours.sentence)
        ours = Flux(self.folder)
        sample, states = np.zeros((16, 2, 2)), np.zeros((3, 60))
        self.assertEqual(ours.run(sample, states, states, 1, 1)[1], 0)
        for changes in ({"height": 0}, {"tokens": 0}, {"sample": None}, {"states": None}, {"timestep": float("nan")}):
            self.assertEqual(ours.run(sample, states, states, 1, 1, changes)[1], INVALID, changes)


class Autoencoders(Folder):
    def opened(self, dtype=F32):
        ours = Autoencoder(self.folder, dtype)
        self.assertEqual(ours.status, 0, ours.sentence)
        return ours

    def compare(self, model, decode, encode, channels, factor, sizes, dtype=F32, limit=1e-5):
        ours = self.opened(dtype)
        self.assertEqual((ours.info.latent_channels, ours.info.factor, ours.info.in_channels, ours.info.out_channels), (channels, factor, 3, 3))
        generator = torch.Generator().manual_seed(5)
        for height, width in sizes:
            latents = torch.randn((1, channels, height, width), generator=generator)
            picture = torch.rand((1, 3, height * factor, width * factor), generator=generator) * 2 - 1
            with torch.no_grad():
                self.assertLess(image_autoencoder_test.error(ours.decode(latents.numpy()).clip(-1, 1), decode(model, latents.double()).clip(-1, 1)), limit)
                self.assertLess(image_autoencoder_test.error(ours.encode(picture.numpy()), encode(model, picture.double())), limit)
        return ours

    def test_qwen(self):
        def decode(model, latents):
            mean, deviation = (torch.tensor(x).double().reshape(1, -1, 1, 1) for x in (model.config.latents_mean, model.config.latents_std))
            return model.decode((latents * deviation + mean)[:, :, None]).sample[:, :, 0]

        def encode(model, picture):
            mean, deviation = (torch.tensor(x).double().reshape(1, -1, 1, 1) for x in (model.config.latents_mean, model.config.latents_std))
            return (model.encode(picture[:, :, None]).latent_dist.mode()[:, :, 0] - mean) / deviation
        model = self.save(qwen_autoencoder(), "vae")
        ours = self.compare(model, decode, encode, 4, 4, [(5, 3), (1, 2), (8, 8)])
        for dtype, limit in ((F16, 8 * 2.0**-11), (BF16, 8 * 2.0**-8)):
            self.compare(model, decode, encode, 4, 4, [(4, 6)], dtype, limit)
        half = Autoencoder(self.folder, F32, False)
        latents = np.random.default_rng(2).standard_normal((1, 4, 3, 6), np.float32)
        np.testing.assert_array_equal(half.decode(latents), ours.decode(latents))
        self.assertLess(half.info.weights_bytes, 0.7 * ours.info.weights_bytes)
        wide = {"dim_mult": [2, 4, 4, 3], "base_dim": 6, "temperal_downsample": [True, False, True], "num_res_blocks": 2}
        self.compare(self.save(qwen_autoencoder(**wide), "vae", torch.bfloat16), decode, encode, 4, 8, [(3, 2)])

    def test_flux2(self):
        def statistics(model):
            return model.bn.running_mean.reshape(1, -1, 1, 1), torch.sqrt(model.bn.running_var.reshape(1, -1, 1, 1) + model.config.batch_norm_eps)

        def decode(model, latents):
            mean, deviation = statistics(model)
            return model.decode(diffusers.Flux2KleinPipeline._unpatchify_latents(latents * deviation + mean)).sample

        def encode(model, picture):
            mean, deviation = statistics(model)
            return (diffusers.Flux2KleinPipeline._patchify_latents(model.encode(picture).latent_dist.mode()) - mean) / deviation
        model = self.save(flux2_autoencoder(), "vae")
        ours = self.compare(model, decode, encode, 16, 4, [(5, 3), (1, 2), (8, 8)])
        for dtype, limit in ((F16, 8 * 2.0**-11), (BF16, 8 * 2.0**-8)):
            self.compare(model, decode, encode, 16, 4, [(4, 6)], dtype, limit)
        latents = np.random.default_rng(2).standard_normal((1, 16, 9, 6), np.float32)
        whole, tiled = ours.decode(latents), ours.decode(latents, 4)
        self.assertTrue(1e-6 < error(tiled, torch.tensor(whole)) < 1)

    def test_refusals(self):
        for make, changes in (
                (qwen_autoencoder, [({"attn_scales": [0.5]}, UNSUPPORTED, "attn_scales"), ({"temperal_downsample": [True]}, BAD_DATA, "temperal_downsample"), ({"latents_mean": [1.0]}, BAD_DATA, "latents_mean"),
                                    ({"latents_std": [1, 1, 1, 0]}, BAD_DATA, "latents_std"), ({"latents_std": [1, 1, 1, "x"]}, BAD_DATA, "latents_std"), ({"latents_mean": None}, BAD_DATA, "latents_mean"),
                                    ({"dim_mult": [1, 2, 2]}, BAD_DATA, "settings ask for"), ({"dim_mult": []}, BAD_DATA, "dim_mult"), ({"base_dim": 7}, BAD_DATA, "odd"), ({"base_dim": 1 << 20}, BAD_DATA, "base_dim"),
                                    ({"num_res_blocks": 2}, BAD_DATA, "resnets.2"), ({"z_dim": 5}, BAD_DATA, "latents_mean"), ({"input_channels": 0}, BAD_DATA, "input_channels")]),
                (flux2_autoencoder, [({"patch_size": [1, 1]}, UNSUPPORTED, "patch_size"), ({"patch_size": 2}, UNSUPPORTED, "patch_size"), ({"decoder_block_out_channels": [8, 8]}, UNSUPPORTED, "decoder_block_out_channels"),
                                     ({"batch_norm_eps": -1}, BAD_DATA, "batch_norm_eps"), ({"latent_channels": 5}, BAD_DATA, "running_mean"), ({"act_fn": "gelu"}, UNSUPPORTED, "gelu")])):
            self.save(make(), "vae")
            for change, status, word in changes:
                with self.subTest(str(change)):
                    back = self.settings("vae", **change)
                    ours = Autoencoder(self.folder)
                    back()
                    self.assertEqual(ours.status, status, ours.sentence)
                    self.assertIn(word, ours.sentence)
        model = flux2_autoencoder()
        for value in (-1.0, float("nan"), float("inf")):
            model.bn.running_var[3] = value
            self.save(model, "vae")
            self.assertEqual(Autoencoder(self.folder).status, BAD_DATA)


if __name__ == "__main__":
    unittest.main()
