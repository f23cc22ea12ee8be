"""rdna image with small random folders of FLUX.1, against diffusers' pipelines in float64: texts, noise, every step and
the picture; and what is refused."""
import contextlib
import json
import pathlib
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import torch
import transformers

import rdna_program
import serving
from image_flow_test import DEV, SCHNELL, random_t5, randomize, write_t5_tokenizer
from image_text_encoder_test import POSITIONS, random_model, write_tokenizer

diffusers.utils.logging.set_verbosity_error()
VAE = {"force_upcast": False, "block_out_channels": [8, 16, 16], "layers_per_block": 1, "norm_num_groups": 4, "latent_channels": 4,
       "scaling_factor": 0.36, "shift_factor": 0.12, "use_quant_conv": False, "use_post_quant_conv": False,
       "down_block_types": ["DownEncoderBlock2D"] * 3, "up_block_types": ["UpDecoderBlock2D"] * 3}
PROMPT = "a photograph of an astronaut riding horse"
SCHEDULES = {"dev": {"use_dynamic_shifting": True, "shift": 3.0}, "schnell": {"shift": 1.0}}
TOKENS = {"dev": 512, "schnell": 256}


def make_folder(folder, name, kind=diffusers.FluxPipeline, **changes):
    """A pipeline of diffusers on random weights, which |folder| becomes; in float64."""
    folder.mkdir()
    count = write_tokenizer(folder / "tokenizer", "!")
    write_t5_tokenizer(folder / "tokenizer_2")
    pipeline = kind(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**SCHEDULES[name]), vae=randomize(diffusers.AutoencoderKL(**VAE), 2),
        text_encoder=random_model(transformers.CLIPTextModel, 1, eos_token_id=count - 1), text_encoder_2=random_t5(6),
        tokenizer=transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer", model_max_length=POSITIONS),
        tokenizer_2=transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer_2/tokenizer.json"), eos_token="</s>", pad_token="<pad>", unk_token="<unk>"),
        transformer=randomize(diffusers.FluxTransformer2DModel(**{**{"dev": DEV, "schnell": SCHNELL}[name], **changes}), 4))
    kept = (folder / "tokenizer_2/tokenizer.json").read_bytes()
    pipeline.save_pretrained(folder)
    (folder / "tokenizer_2/tokenizer.json").write_bytes(kept)
    shutil.rmtree(folder / "tokenizer")
    write_tokenizer(folder / "tokenizer", "!")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(torch.float64)


def error(got, wanted):
    wanted = wanted.detach().double().numpy() if isinstance(wanted, torch.Tensor) else wanted
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


def compare_emulated(test, folder):
    """A picture on an emulated card, with the emulator's checker, is the host's."""
    with tempfile.TemporaryDirectory() as out:
        for dtype, limit in (("f32", 1e-5), ("bf16", 5e-2)):
            made = []
            for driver, environment in (("host", {}), ("hip", {"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"})):
                rdna_program.output("image", folder, PROMPT, "--out", f"{out}/x.png", "--dump", f"{out}/{driver}", "--driver", driver, "--type", dtype, "--seed", 5, "--size", "8x8",
                                    "--steps", 2, "--cfg", 1, environment=environment)
                made.append(np.load(f"{out}/{driver}/picture.npy"))
            test.assertLess(error(made[1], made[0]), limit, dtype)


emulated = unittest.skipUnless(serving.EMULATOR.exists() and rdna_program.DEVICE == "host", "the emulator is not built, or RDNA_TEST_DEVICE is not the host")


def nothing(folder):
    pass


def settings(name, **changes):
    return lambda folder: (folder / name).write_text(json.dumps({**json.loads((folder / name).read_text()), **changes}))


def remove(name):
    return lambda folder: shutil.rmtree(folder / name)


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {name: make_folder(cls.root / name, name) for name in ("dev", "schnell")}

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def draw(self, model, *options):
        """What the command reports, and what it dumped."""
        dump = self.out / "dump"
        shutil.rmtree(dump, ignore_errors=True)
        report = rdna_program.output("image", self.root / model, PROMPT, "--out", self.out / "x.png", "--dump", dump, "--json",
                                     "--driver", rdna_program.DEVICE, "--type", "f32", *options)
        return json.loads(report), {path.stem: np.load(path) for path in dump.glob("*.npy")}

    def reference(self, pipeline, seed, height, width, **options):
        """diffusers' latents after each step, unpacked, and its picture, in float64 from float32 noise."""
        latents, generator = [], torch.Generator().manual_seed(seed)

        def numbers(shape, generator=generator, **_):
            return torch.randn(shape, generator=generator).double()

        def keep(_, step, timestep, values):
            latents.append(pipeline._unpack_latents(values["latents"], height, width, 4)[0].numpy().copy())
            return values

        with contextlib.ExitStack() as stack:
            for place in (__import__(type(pipeline).__module__, fromlist=["x"]), diffusers.models.autoencoders.vae):
                if hasattr(place, "randn_tensor"):
                    stack.callback(setattr, place, "randn_tensor", place.randn_tensor)
                    place.randn_tensor = numbers
            picture = pipeline(prompt=PROMPT, generator=generator, output_type="pt", callback_on_step_end=keep, height=height, width=width, **options).images[0]
        return latents, picture

    def compare(self, dumped, wanted, steps):
        latents, picture = wanted
        self.assertEqual(len(latents), steps)
        self.assertEqual(len([name for name in dumped if name.startswith("latents-")]), steps)
        for i, values in enumerate(latents):
            self.assertLess(error(dumped[f"latents-{i:04d}"], values), 1e-3, f"step {i}")
        self.assertLess(error(dumped["picture"].clip(-1, 1) / 2 + 0.5, picture), 1e-3)

    def test_pictures(self):
        for name, options, steps, guidance, width, height in [("dev", ["--steps", 20], 20, 3.5, 48, 32), ("dev", ["--cfg", 1.5, "--steps", 6], 6, 1.5, 8, 24), ("schnell", [], 4, 0, 40, 40)]:
            with self.subTest(f"{name} {options}"):
                report, dumped = self.draw(name, "--seed", 5, "--size", f"{width}x{height}", *options)
                pipeline = self.pipelines[name]
                self.compare(dumped, self.reference(pipeline, 5, height, width, guidance_scale=guidance, num_inference_steps=steps, max_sequence_length=TOKENS[name]), steps)
                states, pooled, _ = pipeline.encode_prompt(PROMPT, None, max_sequence_length=TOKENS[name])
                self.assertLess(error(dumped["states"], states), 1e-5)
                self.assertLess(error(dumped["pooled"], pooled), 1e-5)
                np.testing.assert_allclose(dumped["timesteps"], pipeline.scheduler.timesteps, atol=2e-3)
                self.assertEqual((report["model"], report["steps"], report["sampler"], report["width"], report["height"]), (f"FLUX.1 {name}", steps, "euler", width, height))

    def test_initial_pictures(self):
        PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (24, 40, 3), np.uint8)).save(self.out / "init.png")
        kept = self.pipelines["dev"].components
        pipeline = diffusers.FluxImg2ImgPipeline(**{k: kept[k] for k in ("scheduler", "vae", "text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2", "transformer")})
        pipeline.set_progress_bar_config(disable=True)
        for steps, strength in [(9, 0.6), (10, 0.55), (4, 1)]:
            with self.subTest(f"{steps} {strength}"):
                _, dumped = self.draw("dev", "--init", self.out / "init.png", "--strength", strength, "--seed", 6, "--steps", steps)
                wanted = self.reference(pipeline, 6, 24, 40, image=PIL.Image.open(self.out / "init.png"), strength=strength, num_inference_steps=steps, guidance_scale=3.5)
                self.compare(dumped, wanted, steps - int(steps - steps * strength))

    def test_files(self):
        """Given noise, several pictures, a negative prompt that has no effect, 16 bits, and the same bytes again."""
        self.draw("schnell", "--seed", 8, "--size", "40x32")
        first = (self.out / "x.png").read_bytes()
        said = PIL.Image.open(self.out / "x.png").text["parameters"]
        for word in ("Steps: 4", "Sampler: euler", "Seed: 8", "Size: 40x32"):
            self.assertIn(word, said)
        noise = self.draw("schnell", "--seed", 8, "--size", "40x32")[1]["noise"]
        self.assertEqual((self.out / "x.png").read_bytes(), first)
        np.save(self.out / "noise.npy", noise)
        picture = self.draw("schnell", "--latents", self.out / "noise.npy")[1]["picture"]
        self.draw("schnell", "--seed", 7, "--size", "40x32", "--count", 2)
        self.assertEqual((self.out / "x-1.png").read_bytes(), first)
        result = rdna_program.run("image", self.root / "schnell", PROMPT * 60, "--negative", "cat", "--steps", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 0)
        self.assertIn("the negative prompt has no effect", result.stderr.decode())
        self.assertRegex(result.stderr.decode(), r"the prompt has \d+ tokens, of which the model reads 255\n")
        for dtype, limit in (("f16", 1e-2), ("bf16", 8e-2)):
            dump = self.draw("schnell", "--seed", 8, "--size", "40x32", "--type", dtype)[1]
            self.assertLess(error(dump["picture"], picture), limit)

    def refuse(self, source, cases):
        """Each of (what is changed in a copy of |source|, options, words) ends with a sentence that has the words."""
        for change, options, words in cases:
            with self.subTest(f"{options} {words}"):
                folder = self.out / "model"
                shutil.copytree(source, folder)
                change(folder)
                result = rdna_program.run("image", folder, PROMPT, "--size", "8x8", "--steps", 2, *options, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE)
                shutil.rmtree(folder)
                self.assertEqual(result.returncode, 1, result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr.decode().splitlines()[-1])
                self.assertFalse((self.out / "x.png").exists())

    def test_refusals(self):
        PIL.Image.new("RGB", (8, 8)).save(self.out / "init.png")
        self.refuse(self.root / "schnell", [
            (nothing, ["--size", "12x8"], ["12 x 8", "8"]), (nothing, ["--sampler", "ddim"], ["ddim", "euler"]), (nothing, ["--sampler", "euler", "--schedule", "karras"], ["karras"]),
            (nothing, ["--init", self.out / "init.png", "--strength", 0.1], ["strength"]), (remove("transformer"), [], ["transformer"]), (remove("text_encoder_2"), [], ["text_encoder_2"]),
            (remove("tokenizer_2"), [], ["tokenizer_2"]), (remove("tokenizer"), [], ["tokenizer"]), (remove("scheduler"), [], ["scheduler"]), (remove("vae"), [], ["vae"]),
            (settings("transformer/config.json", in_channels=32, out_channels=16), [], ["32", "16"]), (settings("transformer/config.json", magic=2), [], ["magic"]),
            (settings("vae/config.json", out_channels=1), [], ["1 channels"]), (settings("scheduler/scheduler_config.json", stochastic_sampling=True), [], ["stochastic"]),
            (settings("scheduler/scheduler_config.json", _class_name="DDIMScheduler"), [], ["DDIM"]), (settings("text_encoder_2/config.json", d_model=20), [], ["text_encoder_2"])])


if __name__ == "__main__":
    unittest.main()
