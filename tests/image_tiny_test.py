"""Tiny autoencoders (TAESD): by themselves, in folders and files, in place of a model's own, and as what shows steps,
against diffusers' AutoencoderTiny in float64 on small random weights."""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import safetensors.torch
import torch

import image_autoencoder_test
import image_command_test as command
import image_flux_test
import rdna_program
from image_autoencoder_test import Autoencoder
from image_command_test import NEGATIVE, PROMPT, error, make_folder
from image_library import BAD_DATA, BF16, F16, F32, NOT_FOUND, UNSUPPORTED

SETTINGS = {  # as published, with fewer channels, and others
    "four levels": {"encoder_block_out_channels": (8,) * 4, "decoder_block_out_channels": (12,) * 4},
    "three levels, scaled": {"encoder_block_out_channels": (6,) * 3, "decoder_block_out_channels": (10,) * 3, "num_encoder_blocks": (1, 2, 0),
                             "num_decoder_blocks": (2, 3, 1), "scaling_factor": 0.7, "shift_factor": 0.3},
    "16 channels": {"encoder_block_out_channels": (8,) * 2, "decoder_block_out_channels": (8,) * 2, "num_encoder_blocks": (1, 3), "num_decoder_blocks": (3, 1),
                    "latent_channels": 16},
    "one level": {"encoder_block_out_channels": (7,), "decoder_block_out_channels": (5,), "num_encoder_blocks": (2,), "num_decoder_blocks": (1,), "out_channels": 1},
}
THREE = SETTINGS["three levels, scaled"]  # of pictures that are halved twice, as those of the models below


def tiny(seed, **settings):
    return command.randomize(diffusers.AutoencoderTiny(**settings), seed)


def makers_names(model, half):
    """The tensors of a half as its maker's files call them."""
    first = {"decoder": 1, "encoder": 0}[half]
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name.startswith(half + ".layers."):
            number, rest = name.removeprefix(half + ".layers.").split(".", 1)
            tensors[f"{int(number) + first}.{rest}"] = tensor.float().contiguous()
    return tensors


class Opened(Autoencoder):
    """Of a file."""

    def __init__(self, path, encodes=True):
        self.handle = image_autoencoder_test.POINTER()
        self.status = image_autoencoder_test.LIBRARY.rdna_image_autoencoder_create(
            image_autoencoder_test.DEVICE, str(path).encode(), b"taesd", F32, encodes, image_autoencoder_test.ctypes.byref(self.handle))
        self.sentence = image_autoencoder_test.LIBRARY.rdna_last_error().decode() if self.status else ""
        if self.status == 0:
            self.info = image_autoencoder_test.Info.from_address(image_autoencoder_test.LIBRARY.rdna_image_autoencoder_get_info(self.handle))


class Parts(unittest.TestCase):
    def folder(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def compare(self, ours, model, limit, sizes=((2, 5, 3), (1, 1, 2), (1, 8, 8))):
        config, generator = model.config, torch.Generator().manual_seed(5)
        factor = 2 ** (len(config.decoder_block_out_channels) - 1)
        self.assertEqual((ours.info.in_channels, ours.info.out_channels, ours.info.latent_channels, ours.info.factor),
                         (config.in_channels, config.out_channels, config.latent_channels, factor))
        for n, height, width in sizes:
            latents = 2 * torch.randn((n, config.latent_channels, height, width), generator=generator)
            with torch.no_grad():
                wanted = model.decode(latents.double() / config.scaling_factor + config.shift_factor).sample
            self.assertLess(error(ours.decode(latents.numpy()), wanted), limit)
            if not ours.info.encodes:
                continue
            pictures = torch.rand((n, config.in_channels, height * factor, width * factor), generator=generator) * 2 - 1
            with torch.no_grad():
                wanted = (model.encode(pictures.double()).latents - config.shift_factor) * config.scaling_factor
            for noise in (None, torch.randn(latents.shape, generator=generator).numpy()):  # nothing is drawn
                self.assertLess(error(ours.encode(pictures.numpy(), noise=noise), wanted), limit)

    def test_folders(self):
        for i, (name, settings) in enumerate(SETTINGS.items()):
            with self.subTest(name):
                folder, model = self.folder(), tiny(i, **settings)
                model.save_pretrained(folder / "vae")
                ours = Autoencoder(folder)
                self.assertEqual(ours.status, 0, ours.sentence)
                self.compare(ours, model.double(), 1e-5)

    def test_types(self):
        """Of weights, and of activations: some dozen windows in a row, each rounded."""
        for saved, dtype, limit in [(torch.float16, F32, 1e-5), (torch.float32, F16, 16 * 2.0**-11), (torch.bfloat16, BF16, 16 * 2.0**-8)]:
            with self.subTest(f"{saved} {dtype}"):
                folder = self.folder()
                tiny(3, **THREE).to(saved).save_pretrained(folder / "vae")
                ours = Autoencoder(folder, dtype)
                self.assertEqual(ours.status, 0, ours.sentence)
                self.compare(ours, diffusers.AutoencoderTiny.from_pretrained(folder / "vae", torch_dtype=torch.float64), limit)

    def test_files(self):
        """Of diffusers, and the decoder by its maker's names, whose settings tensors say."""
        for name in ("four levels", "16 channels"):
            settings = SETTINGS[name]
            folder, model = self.folder(), tiny(4, **settings)
            model.save_pretrained(folder)
            safetensors.torch.save_file(makers_names(model, "decoder"), folder / "taesd_decoder.safetensors")
            model.double()
            for file, encodes in [("diffusion_pytorch_model", True), ("diffusion_pytorch_model", False), ("taesd_decoder", False)]:
                with self.subTest(f"{name} {file} {encodes}"):
                    ours = Opened(folder / f"{file}.safetensors", encodes)
                    self.assertEqual(ours.status, 0, ours.sentence)
                    self.compare(ours, model, 1e-5)

    def test_tiles(self):
        """No norm sees all of a picture: but for seams tiles that lap over by a quarter make the same."""
        folder = self.folder()
        model = tiny(5, **{**SETTINGS["four levels"], "num_decoder_blocks": (1, 1, 1, 1)})
        model.save_pretrained(folder / "vae")
        latents = np.random.default_rng(1).standard_normal((1, 4, 70, 41)).astype(np.float32)
        ours = Autoencoder(folder)
        self.assertLess(error(ours.decode(latents, 32).astype(np.float64), ours.decode(latents).astype(np.float64)), 3e-2)

    def refused(self, path, status, *words, encodes=False, file=True):
        ours = Opened(path, encodes) if file else Autoencoder(path)
        self.assertEqual(ours.status, status, ours.sentence)
        for word in words:
            self.assertIn(word, ours.sentence)

    def test_settings(self):
        folder, model = self.folder(), tiny(1, **THREE)
        model.save_pretrained(folder / "vae")
        path = folder / "vae/config.json"
        plain = json.loads(path.read_text())
        for change, status, word in [
                ({"act_fn": "silu"}, UNSUPPORTED, "silu"), ({"upsample_fn": "bilinear"}, UNSUPPORTED, "bilinear"), ({"upsampling_scaling_factor": 4}, UNSUPPORTED, "halved"),
                ({"decoder_block_out_channels": [10, 10, 12]}, BAD_DATA, "decoder_block_out_channels"), ({"num_decoder_blocks": [2, 3]}, BAD_DATA, "num_decoder_blocks"),
                ({"encoder_block_out_channels": [6] * 4, "num_encoder_blocks": [1] * 4}, UNSUPPORTED, "halved"), ({"num_encoder_blocks": [1, 2, 18]}, BAD_DATA, "num_encoder_blocks"),
                ({"num_decoder_blocks": [2, 2, 1]}, BAD_DATA, "tensor"), ({"num_decoder_blocks": [2, 4, 1]}, BAD_DATA, "conv"), ({"latent_channels": 5}, BAD_DATA, "layers.0"),
                ({"scaling_factor": 0}, BAD_DATA, "scaling"), ({"decoder_block_out_channels": [10] * 9}, BAD_DATA, "decoder_block"), ({"num_encoder_blocks": "x"}, BAD_DATA, "num_encoder")]:
            with self.subTest(str(change)):
                path.write_text(json.dumps({**plain, **change}))
                self.refused(folder, status, word, file=False)

    def test_refused_files(self):
        folder, model = self.folder(), tiny(1, **SETTINGS["four levels"])
        path = folder / "x.safetensors"
        decoder, encoder = makers_names(model, "decoder"), makers_names(model, "encoder")
        for tensors, status, words, encodes in [
                (decoder, UNSUPPORTED, ["decoder alone"], True), (encoder, UNSUPPORTED, ["encoder of a tiny autoencoder"], False),
                ({k: v for k, v in decoder.items() if k != "19.weight"}, BAD_DATA, ["decoder.layers.18.weight"], False),
                ({k: v for k, v in decoder.items() if k != "8.conv.2.bias"}, BAD_DATA, ["layers.7.conv.2.bias"], False),
                ({**decoder, "20.weight": torch.zeros(1)}, UNSUPPORTED, ["20.weight"], False),
                ({"decoder.conv_in.weight": torch.zeros(1)}, BAD_DATA, ["levels"], False),
                ({"decoder.conv_in.weight": torch.zeros(1), "decoder.up_blocks.0.resnets.0.conv1.weight": torch.zeros(1)}, UNSUPPORTED, ["config.json"], False), ({"x": torch.zeros(1)}, UNSUPPORTED, ["TAESD"], False)]:
            with self.subTest(str(words)):
                safetensors.torch.save_file(tensors, path)
                self.refused(path, status, *words, encodes=encodes)


class Pictures(unittest.TestCase):
    draw, reference, compare, refused = (getattr(command.Pictures, name) for name in ("draw", "reference", "compare", "refused"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {"sd": make_folder(cls.root / "sd"), "xl": make_folder(cls.root / "xl", True, diffusers.EulerDiscreteScheduler)}
        cls.tiny = tiny(9, **{**THREE, "shift_factor": 0})  # which pipelines of Stable Diffusion do not look at
        cls.tiny.save_pretrained(cls.root / "tiny")
        safetensors.torch.save_file(makers_names(cls.tiny, "decoder"), cls.root / "taesd_decoder.safetensors")
        cls.tiny.double()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def with_tiny(self, kind, model):
        parts = {**{k: v for k, v in self.pipelines[model].components.items() if k != "image_encoder"}, "vae": self.tiny}
        pipeline = kind(**parts, **({"add_watermarker": False} if model == "xl" else {}))
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    def test_in_place(self):
        """Pictures by it, and those that begin with one: of a picture's latents nothing is drawn."""
        image = PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (24, 40, 3), np.uint8))
        image.save(self.out / "init.png")
        for model, kind, begun in [("sd", diffusers.StableDiffusionPipeline, False), ("xl", diffusers.StableDiffusionXLPipeline, False),
                                   ("sd", diffusers.StableDiffusionImg2ImgPipeline, True), ("xl", diffusers.StableDiffusionXLImg2ImgPipeline, True)]:
            with self.subTest(f"{model} {begun}"):
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                options = ["--init", self.out / "init.png", "--strength", 0.5] if begun else ["--size", "40x24"]
                _, dumped = self.draw(model, "--vae", self.root / "tiny", "--seed", 5, "--steps", 8, "--sampler", "euler", "--cfg", 4, "--negative", NEGATIVE, *options)
                others = {"image": image, "strength": 0.5} if begun else {"width": 40, "height": 24}
                wanted = self.reference(self.with_tiny(kind, model), "euler", 5, prompt=PROMPT, negative_prompt=NEGATIVE, num_inference_steps=8, guidance=4, **others)
                latents, picture = wanted
                picture = picture.clamp(0, 1)
                self.compare(dumped, (latents, picture), 4 if begun else 8)
        self.assertIn(", VAE: tiny,", PIL.Image.open(self.out / "x.png").text["parameters"])
        _, of_folder = self.draw("sd", "--vae", self.root / "tiny", "--seed", 5, "--steps", 1)
        shutil.copytree(self.root / "sd/vae", self.out / "vae")  # the model's own from elsewhere
        own, other = (self.draw("sd", "--seed", 5, "--steps", 1, *options)[1]["picture"] for options in ([], ["--vae", self.out / "vae"]))
        np.testing.assert_array_equal(own, other)
        self.assertGreater(error(of_folder["picture"].astype(np.float64), own.astype(np.float64)), 0.1)

    def test_previews(self):
        """What each step takes the picture for, of schedules that scale samples, that do not, and that flow."""
        for sampler in ("ddim", "euler"):
            with self.subTest(sampler):
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                scheduler, kept = command.CLASSES[sampler], []
                step = scheduler.step

                def keep(*arguments, **options):
                    out = step(*arguments, **{**options, "return_dict": True})
                    kept.append(out.pred_original_sample)
                    return (out.prev_sample,)
                scheduler.step = keep
                try:
                    self.reference(self.pipelines["sd"], sampler, 5, prompt=PROMPT, num_inference_steps=5, guidance=4, width=40, height=24)
                finally:
                    scheduler.step = step
                _, dumped = self.draw("sd", "--preview-model", self.root / "tiny", "--seed", 5, "--steps", 5, "--sampler", sampler, "--cfg", 4, "--size", "40x24")
                self.assertEqual(len(kept), 5)
                for i, picture in enumerate(kept):
                    with torch.no_grad():
                        wanted = self.tiny.decode(picture / self.tiny.config.scaling_factor + self.tiny.config.shift_factor).sample
                    self.assertLess(error(dumped[f"preview-{i:04d}"], wanted[0]), 1e-3)
        folder = self.root / "flux"
        image_flux_test.make_folder(folder, "schnell")
        channels = json.loads((folder / "vae/config.json").read_text())["latent_channels"]
        levels = len(json.loads((folder / "vae/config.json").read_text())["block_out_channels"])
        model = tiny(3, encoder_block_out_channels=(6,) * levels, decoder_block_out_channels=(6,) * levels, num_encoder_blocks=(1,) * levels, num_decoder_blocks=(1,) * levels, latent_channels=channels)
        model.save_pretrained(self.out / "taef1")
        shutil.rmtree(self.out / "dump", ignore_errors=True)
        _, dumped = self.draw("flux", "--preview-model", self.out / "taef1", "--seed", 5, "--steps", 2, "--size", "40x32")
        # the last step's picture is what it ends with
        with torch.no_grad():
            wanted = model.double().decode(torch.from_numpy(dumped["latents-0001"]).double()[None]).sample
        self.assertLess(error(dumped["preview-0001"], wanted[0]), 1e-4)
        self.assertGreater(error(dumped["preview-0000"], wanted[0]), 1e-3)

    def test_terminal(self):
        """Of a terminal, each step's picture takes the place of the last one's; its colours are means of pixels."""
        options = ["--seed", 5, "--steps", 3, "--size", "56x40", "--driver", rdna_program.DEVICE, "--type", "f32"]
        ours, theirs = pty.openpty()
        process = subprocess.Popen([rdna_program.PROGRAM, "image", self.root / "sd", PROMPT, "--preview-model", self.root / "taesd_decoder.safetensors", "--out", self.out / "x.png",
                                    "--dump", self.out / "dump", *map(str, options)], stderr=theirs, stdout=subprocess.DEVNULL)
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:  # the terminal's other end is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0, said)
        text = said.decode()
        cells = re.findall("\x1b\\[38;2;(\\d+);(\\d+);(\\d+)m\x1b\\[48;2;(\\d+);(\\d+);(\\d+)m▀", text)
        columns, lines = 48, 17
        self.assertEqual(len(cells), 3 * columns * lines)
        self.assertEqual(text.count(f"\x1b[{lines}A"), 2)
        self.assertIn("step 3 of 3", text)
        last = np.array(cells[-columns * lines:], int).reshape(lines, columns, 2, 3).transpose(0, 2, 1, 3).reshape(2 * lines, columns, 3)
        preview = np.load(self.out / "dump/preview-0002.npy").astype(np.float64)
        rows, across = ([i * size // count for i in range(count + 1)] for size, count in ((40, 2 * lines), (56, columns)))
        for y in range(2 * lines):
            for x in range(columns):
                mean = preview[:, rows[y]:rows[y + 1], across[x]:across[x + 1]].mean((1, 2))
                self.assertLessEqual(abs(last[y, x] - (127.5 * (mean + 1)).clip(0, 255)).max(), 0.51)
        quiet = subprocess.run([rdna_program.PROGRAM, "image", self.root / "sd", PROMPT, "--preview-model", self.root / "tiny", "--out", self.out / "x.png", *map(str, options)], capture_output=True, check=True)
        self.assertNotIn(b"\x1b", quiet.stderr)

    def test_plan(self):
        """It is on the device beside the U-Net."""
        def parts(*options):
            report = rdna_program.output("image", self.root / "sd", PROMPT, "--plan", "--json", "--driver", rdna_program.DEVICE, "--dump", self.out / "d", "--out", self.out / "x.png", *options)
            return {part["part"]: part for part in json.loads(report)["parts"]}
        plain, shown, other = parts(), parts("--preview-model", self.root / "taesd_decoder.safetensors"), parts("--vae", self.root / "taesd_decoder.safetensors")
        held = shown["U-Net"]["weights"] - plain["U-Net"]["weights"]
        self.assertEqual(held, other["autoencoder"]["weights"])
        self.assertLess(other["autoencoder"]["weights"], plain["autoencoder"]["weights"])

    def test_refusals(self):
        PIL.Image.new("RGB", (40, 24)).save(self.out / "init.png")
        tiny(1, **{**THREE, "latent_channels": 16}).save_pretrained(self.out / "sixteen")
        tiny(1, **SETTINGS["16 channels"], out_channels=3).save_pretrained(self.out / "two")
        (self.out / "empty").mkdir()
        for option in ("--vae", "--preview-model"):
            for path, words in [(self.out / "sixteen", ["sixteen", "16 channels", "another"]), (self.out / "two", ["two", "another"]), (self.out / "empty", ["config.json"]), (self.out / "init.png", ["init.png"]),
                                (self.out / "nothing", ["nothing"])]:
                with self.subTest(f"{option} {path.name}"):
                    self.refused(self.root / "sd", option, path, words=words, status=1)
        torch.save(makers_names(self.tiny, "decoder"), self.out / "taesd_decoder.pth")  # as which it is published, too
        for option in ("--vae", "--preview-model"):
            self.refused(self.root / "sd", option, self.out / "taesd_decoder.pth", words=["taesd_decoder.pth", "PyTorch", "safetensors.torch.save_file"], status=1)
        self.refused(self.root / "sd", "--vae", self.root / "taesd_decoder.safetensors", "--init", self.out / "init.png", words=["decoder alone"], status=1)


if __name__ == "__main__":
    unittest.main()
