"""The autoencoder of latent diffusion through librdna, against diffusers' in float64 on small random models in their
folders: both ways, whole and by tiles, every layout of a folder, and what is refused."""
import ctypes
import json
import pathlib
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import safetensors.torch
import torch

from image_library import (BAD_DATA, BF16, DEVICE, F16, F32, F64,
                           INT, INVALID, LIBRARY, NOT_FOUND, POINTER, TEXT, UNSUPPORTED, declare)

diffusers.utils.logging.set_verbosity_error()
torch.set_num_threads(1)  # small models wait for each other's threads longer than they compute
SMALL = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2,
         "block_out_channels": (12, 20), "layers_per_block": 1, "norm_num_groups": 4, "sample_size": 16}
# what SD 1.5, SD 3.5 and FLUX.1 have, of fewer channels
MODELS = {
    "small": SMALL,
    "four levels": {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4,
                    "block_out_channels": (8, 16, 24, 24), "layers_per_block": 2, "norm_num_groups": 8, "sample_size": 64},
    "16 channels, shifted": {**SMALL, "latent_channels": 16, "scaling_factor": 0.3611, "shift_factor": 0.1159,
                             "use_quant_conv": False, "use_post_quant_conv": False},
    "wide head": {**SMALL, "block_out_channels": (32, 512), "norm_num_groups": 32},
    "one level": {**SMALL, "down_block_types": ("DownEncoderBlock2D",), "up_block_types": ("UpDecoderBlock2D",),
                  "block_out_channels": (9,), "norm_num_groups": 3, "in_channels": 4, "out_channels": 1},
    "no attention": {**SMALL, "mid_block_add_attention": False, "norm_num_groups": 1},
    "one group a channel": {**SMALL, "norm_num_groups": 4, "block_out_channels": (4, 4)},
}

declare("rdna_image_autoencoder_", [("create", INT, [POINTER, TEXT, TEXT, INT, ctypes.c_bool, POINTER]),
                                    ("release", None, [POINTER]), ("get_info", POINTER, [POINTER]),
                                    ("decode", INT, [POINTER, POINTER, INT, INT, INT, INT, POINTER]),
                                    ("encode", INT, [POINTER, POINTER, INT, INT, INT, INT, POINTER, POINTER])])


class Info(ctypes.Structure):
    _fields_ = [("in_channels", INT), ("out_channels", INT), ("latent_channels", INT), ("factor", INT),
                ("scaling", ctypes.c_double), ("shift", ctypes.c_double), ("encodes", ctypes.c_bool),
                ("weights_bytes", ctypes.c_size_t)]


class Autoencoder:
    def __init__(self, folder, dtype=F32, encodes=True):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_autoencoder_create(DEVICE, str(folder).encode(), b"vae", dtype, encodes,
                                                            ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        if self.status == 0:
            self.info = Info.from_address(LIBRARY.rdna_image_autoencoder_get_info(self.handle))

    def decode(self, latents, tile=0):
        latents = np.ascontiguousarray(latents, np.float32)
        n, _, height, width = latents.shape
        factor = self.info.factor
        out = np.full((n, self.info.out_channels, height * factor, width * factor), np.nan, np.float32)
        self.status = LIBRARY.rdna_image_autoencoder_decode(self.handle, latents.ctypes.data, n, height, width, tile,
                                                            out.ctypes.data)
        return out

    def encode(self, pictures, tile=0, noise=None):
        pictures = np.ascontiguousarray(pictures, np.float32)
        n, _, height, width = pictures.shape
        factor = self.info.factor
        out = np.full((n, self.info.latent_channels, height // factor, width // factor), np.nan, np.float32)
        self.status = LIBRARY.rdna_image_autoencoder_encode(self.handle, pictures.ctypes.data, n, height, width, tile,
                                                            None if noise is None else noise.ctypes.data, out.ctypes.data)
        return out

    def __del__(self):
        LIBRARY.rdna_image_autoencoder_release(self.handle)


def random_model(seed, settings):
    torch.manual_seed(seed)
    model = diffusers.AutoencoderKL(**settings)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p.copy_((1.0 if name.endswith("weight") else 0.0) + 0.3 * torch.randn(p.shape))
            elif name.endswith("bias"):
                p.copy_(0.2 * torch.randn(p.shape))
    return model.eval()


def error(got, wanted):
    wanted = wanted.detach().double().numpy()
    assert got.shape == wanted.shape
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


class AutoencoderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        random_model(1, SMALL).save_pretrained(cls.root / "vae")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def folder(self, model=None, **options):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        if model is None:
            shutil.copytree(self.root / "vae", folder / "vae")
        else:
            model.save_pretrained(folder / "vae", **options)
        return folder

    def opened(self, *arguments):
        ours = Autoencoder(*arguments)
        self.assertEqual(ours.status, 0, ours.sentence)
        return ours

    # ---- values ----

    def compare(self, folder, dtype, limit, sizes, **options):
        """Of the weights as they were saved, in f64."""
        ours = self.opened(folder, dtype)
        theirs = diffusers.AutoencoderKL.from_pretrained(folder / "vae", torch_dtype=torch.float64, **options)
        config, info = theirs.config, ours.info
        shift = config.shift_factor or 0
        factor = 2 ** (len(config.block_out_channels) - 1)
        self.assertEqual((info.in_channels, info.out_channels, info.latent_channels, info.factor, info.scaling, info.shift),
                         (config.in_channels, config.out_channels, config.latent_channels, factor, config.scaling_factor, shift))
        generator = torch.Generator().manual_seed(5)
        for n, height, width in sizes:
            latents = torch.randn((n, config.latent_channels, height, width), generator=generator)
            wanted = theirs.decode(latents.double() / config.scaling_factor + shift).sample
            self.assertLess(error(ours.decode(latents.numpy()), wanted), limit)
            pictures = torch.rand((n, config.in_channels, height * factor, width * factor), generator=generator) * 2 - 1
            of = theirs.encode(pictures.double()).latent_dist
            self.assertLess(error(ours.encode(pictures.numpy()), (of.mode() - shift) * config.scaling_factor), limit)
            noise = torch.randn(latents.shape, generator=generator)
            self.assertLess(error(ours.encode(pictures.numpy(), noise=noise.numpy()),
                                  (of.mean + of.std * noise.double() - shift) * config.scaling_factor), limit)
        return ours, theirs

    def test_models(self):
        for i, (name, settings) in enumerate(MODELS.items()):
            with self.subTest(name):
                model = random_model(10 + i, settings)
                ours, _ = self.compare(self.folder(model), F32, 1e-5, [(2, 5, 3), (1, 1, 2), (1, 8, 8)])
                # the windows of 3 x 3 behind a larger image are four of 2 x 2
                held = {name: p.numel() * 16 // 9 if name.endswith("upsamplers.0.conv.weight") else p.numel()
                        for name, p in model.named_parameters()}
                self.assertEqual(ours.info.weights_bytes, 4 * sum(held.values()))

    def test_types(self):
        """Of weights, and of activations: those of 16 bits within 8 of their epsilon."""
        for saved in [torch.float32, torch.float16, torch.bfloat16]:
            for dtype, limit in [(F32, 1e-5), (F16, 8 * 2.0**-11), (BF16, 8 * 2.0**-8)]:
                with self.subTest(f"{saved} {dtype}"):
                    self.compare(self.folder(random_model(3, {**SMALL, "force_upcast": False}).to(saved)), dtype, limit, [(1, 6, 5)])

    def test_variance_has_limits(self):
        """Logarithms of variances end at -30 and 20."""
        model = random_model(4, SMALL)
        with torch.no_grad():
            model.quant_conv.bias[4:8] = torch.tensor([-1000.0, -60.0, 60.0, 1000.0])
        self.compare(self.folder(model), F32, 1e-5, [(1, 4, 4)])

    def test_folders(self):
        """Shards, the variant fp16, both, and weights as diffusers called them before."""
        model = random_model(6, SMALL)
        for options in [{}, {"max_shard_size": "20KB"}, {"variant": "fp16"}, {"variant": "fp16", "max_shard_size": "20KB"}, {"variant": "bf16"}]:
            with self.subTest(str(options)):
                folder = self.folder(model.half() if "variant" in options else model, **options)
                files = len(list((folder / "vae").glob("*.safetensors")))
                self.assertEqual(files > 1, "max_shard_size" in options)
                self.compare(folder, F32, 1e-5, [(1, 4, 4)], **{k: v for k, v in options.items() if k == "variant"})
        plain = random_model(7, SMALL)
        folder = self.folder(plain)
        random_model(8, SMALL).half().save_pretrained(folder / "vae", variant="fp16")
        self.compare(folder, F32, 1e-5, [(1, 4, 4)])

    def test_names_of_old(self):
        folder = self.folder()
        path = folder / "vae/diffusion_pytorch_model.safetensors"
        old = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
        for windows in [False, True]:
            tensors = {}
            for name, t in safetensors.torch.load_file(self.root / "vae/diffusion_pytorch_model.safetensors").items():
                for new, before in old.items():
                    if f".{new}." in name:
                        t = t[:, :, None, None].contiguous() if windows and t.ndim == 2 else t
                        name = name.replace(f".{new}.", f".{before}.")
                tensors[name] = t
            safetensors.torch.save_file(tensors, path)
            latents = np.random.default_rng(1).standard_normal((1, 4, 6, 6), np.float32)
            np.testing.assert_array_equal(self.opened(folder).decode(latents), self.opened(self.root).decode(latents))

    def test_without_encoder(self):
        whole, half = self.opened(self.root), self.opened(self.root, F32, False)
        latents = np.random.default_rng(2).standard_normal((1, 4, 3, 6), np.float32)
        np.testing.assert_array_equal(half.decode(latents), whole.decode(latents))
        self.assertLess(half.info.weights_bytes, 0.7 * whole.info.weights_bytes)
        self.assertTrue(np.isnan(half.encode(np.zeros((1, 3, 8, 8)))).all())
        self.assertEqual(half.status, INVALID)

    # ---- tiles ----

    def test_tiles(self):
        """As diffusers makes them, of every size of the last tile; and the picture without is near, not equal."""
        ours, theirs = self.compare(self.root, F32, 1e-5, [])
        factor = ours.info.factor
        generator = torch.Generator().manual_seed(9)
        for tile in [4, 8]:
            theirs.enable_tiling()
            theirs.tile_latent_min_size, theirs.tile_sample_min_size = tile, tile * factor
            for height, width in [(tile, tile), (tile, tile + 1), (tile + 1, 2), (3 * tile, 2 * tile), (13, 10), (1, 17)]:
                with self.subTest(f"{tile} {height} {width}"):
                    latents = torch.randn((2, 4, height, width), generator=generator)
                    wanted = theirs.decode(latents.double() / theirs.config.scaling_factor).sample
                    self.assertLess(error(ours.decode(latents.numpy(), tile), wanted), 1e-5)
                    pictures = torch.rand((1, 3, height * factor, width * factor), generator=generator) * 2 - 1
                    of = theirs.encode(pictures.double()).latent_dist
                    self.assertLess(error(ours.encode(pictures.numpy(), tile), of.mode() * theirs.config.scaling_factor), 1e-5)
        whole, tiled = ours.decode(latents.numpy()), ours.decode(latents.numpy(), 8)
        self.assertGreater(error(tiled, torch.tensor(whole)), 1e-3)

    # ---- refusals ----

    def refused(self, folder, status, *words, dtype=F32):
        ours = Autoencoder(folder, dtype)
        self.assertEqual(ours.status, status, ours.sentence)
        for word in words:
            self.assertIn(word, ours.sentence)

    def test_missing_files(self):
        for name in ["config.json", "diffusion_pytorch_model.safetensors"]:
            folder = self.folder()
            (folder / "vae" / name).unlink()
            self.refused(folder, NOT_FOUND, name)
        folder = self.folder(random_model(1, SMALL), max_shard_size="20KB")
        shard = sorted((folder / "vae").glob("*.safetensors"))[1]
        shard.unlink()
        self.refused(folder, NOT_FOUND, shard.name)

    def test_settings(self):
        plain = json.loads((self.root / "vae/config.json").read_text())
        for change, status, word in [
                ("", BAD_DATA, "JSON"), ("[]", BAD_DATA, "object"), ("[" * 100_000, BAD_DATA, "JSON"),
                ({"_class_name": "AutoencoderDC"}, UNSUPPORTED, "AutoencoderDC"), ({"_class_name": 3}, BAD_DATA, "_class_name"),
                ({"act_fn": "gelu"}, UNSUPPORTED, "gelu"), ({"latents_mean": [1.0]}, UNSUPPORTED, "latents_mean"),
                ({"latents_std": [1.0]}, UNSUPPORTED, "latents_std"),
                ({"down_block_types": ["DownEncoderBlock2D", "AttnDownEncoderBlock2D"]}, UNSUPPORTED, "AttnDown"),
                ({"up_block_types": ["UpDecoderBlock2D"]}, BAD_DATA, "up_block_types"),
                ({"down_block_types": [3, 4]}, BAD_DATA, "down_block_types"), ({"up_block_types": None}, BAD_DATA, "up_block_types"),
                ({"block_out_channels": [12, 20, 20]}, BAD_DATA, "down_block_types"), ({"block_out_channels": []}, BAD_DATA, "block_out"),
                ({"block_out_channels": [12, 2**33]}, BAD_DATA, "block_out"), ({"block_out_channels": [12, "20"]}, BAD_DATA, "block_out"),
                ({"block_out_channels": [12] * 9}, BAD_DATA, "block_out"), ({"block_out_channels": [12, 24]}, BAD_DATA, "settings ask for"),
                ({"norm_num_groups": 5}, BAD_DATA, "norm_num_groups"), ({"norm_num_groups": 0}, BAD_DATA, "norm_num_groups"),
                ({"layers_per_block": 2}, BAD_DATA, "resnets.2"), ({"layers_per_block": 17}, BAD_DATA, "layers_per_block"),
                ({"latent_channels": 5}, BAD_DATA, "conv"), ({"in_channels": -1}, BAD_DATA, "in_channels"),
                ({"scaling_factor": 0}, BAD_DATA, "scaling"), ({"scaling_factor": "1"}, BAD_DATA, "scaling"),
                ({"shift_factor": 1e300}, BAD_DATA, "shift"), ({"use_quant_conv": 1}, BAD_DATA, "use_quant_conv"),
                ({"use_quant_conv": False}, UNSUPPORTED, "quant_conv"), ({"use_post_quant_conv": False}, UNSUPPORTED, "post_quant_conv"),
                ({"mid_block_add_attention": False}, UNSUPPORTED, "attentions")]:
            with self.subTest(str(change)[:80]):
                folder = self.folder()
                text = change if isinstance(change, str) else json.dumps({**plain, **change})
                (folder / "vae/config.json").write_text(text)
                self.refused(folder, status, word, "vae")

    def test_range_of_f16(self):
        folder = self.folder()
        plain = json.loads((folder / "vae/config.json").read_text())
        for says, status in [(True, UNSUPPORTED), (False, 0), (None, 0)]:
            (folder / "vae/config.json").write_text(json.dumps({**plain, "force_upcast": says}))
            self.refused(folder, status, *["bf16"] * says if says else [], dtype=F16)
            self.refused(folder, 0, dtype=BF16)

    def test_tensors(self):
        name = "decoder.up_blocks.1.resnets.0.conv1.weight"
        for change, status in [(None, BAD_DATA), (lambda t: t.transpose(0, 1).contiguous(), BAD_DATA),
                               (lambda t: t.reshape(-1), BAD_DATA), (lambda t: t.double(), UNSUPPORTED), (lambda t: t[:0], BAD_DATA)]:
            folder = self.folder()
            path = folder / "vae/diffusion_pytorch_model.safetensors"
            tensors = safetensors.torch.load_file(path)
            tensor = tensors.pop(name)
            if change:
                tensors[name] = change(tensor)
            safetensors.torch.save_file(tensors, path)
            self.refused(folder, status, name)
        whole = (self.root / "vae/diffusion_pytorch_model.safetensors").read_bytes()
        for cut in [0, 7, 100, len(whole) - 1]:
            path.write_bytes(whole[:cut])
            self.refused(folder, BAD_DATA, "vae")

    def test_arguments(self):
        ours = self.opened(self.root)
        def status(function, n, height, width, tile):
            room = np.zeros(4096, np.float32)
            at = room.ctypes.data
            if function == "decode":
                return LIBRARY.rdna_image_autoencoder_decode(ours.handle, at, n, height, width, tile, at)
            return LIBRARY.rdna_image_autoencoder_encode(ours.handle, at, n, height, width, tile, None, at)
        for n, height, width, tile in [(0, 4, 4, 0), (2000, 4, 4, 0), (1, 0, 4, 0), (1, 4, -2, 0), (1, 4, 1 << 20, 0),
                                       (1, 4, 4, 3), (1, 4, 4, -4), (1, 4, 4, 1 << 20)]:
            self.assertEqual(status("decode", n, height, width, tile), INVALID)
            self.assertEqual(status("encode", n, height * 2, width * 2, tile), INVALID)
        self.assertEqual(status("encode", 1, 7, 8, 0), INVALID)
        self.assertEqual(status("encode", 1, 8, 7, 0), INVALID)
        self.assertEqual(status("decode", 1, 4, 4, 4), 0)
        self.assertEqual(Autoencoder(self.root, F64).status, INVALID)
        self.assertEqual(Autoencoder("x" * 5000).status, INVALID)
        self.assertEqual(LIBRARY.rdna_image_autoencoder_create(None, b".", b"a", F32, True, ctypes.byref(POINTER())), INVALID)
        self.assertEqual(LIBRARY.rdna_image_autoencoder_decode(ours.handle, None, 1, 4, 4, 0, None), INVALID)


if __name__ == "__main__":
    unittest.main()
