"""XL's refiner, alone and as the second of two experts: every step and the picture against diffusers' pipelines in float64 on
small random networks."""
import base64
import contextlib
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

import image_command_test as command
import serving
from image_command_test import CLASSES, NEGATIVE, PROMPT, UNET, VAE, error, randomize, schedule_of
from image_text_encoder_test import POSITIONS, random_model, write_tokenizer


def make_refiner(folder, **changes):
    """As the published one: the second text encoder alone, and a score in place of a size."""
    folder.mkdir()
    count = write_tokenizer(folder / "tokenizer_2", "!")
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer_2", model_max_length=POSITIONS)
    text = random_model(transformers.CLIPTextModelWithProjection, 13, eos_token_id=count - 1, hidden_act="gelu")
    unet = diffusers.UNet2DConditionModel(**{**UNET, "cross_attention_dim": 36, "addition_embed_type": "text_time", "use_linear_projection": True, "addition_time_embed_dim": 6,
                                             "projection_class_embeddings_input_dim": 20 + 5 * 6, **changes})
    kind = diffusers.EulerDiscreteScheduler
    pipeline = diffusers.StableDiffusionXLImg2ImgPipeline(vae=randomize(diffusers.AutoencoderKL(**VAE), 12), text_encoder=None, tokenizer=None, text_encoder_2=text, tokenizer_2=tokenizer, unet=randomize(unet, 14),
                                                          scheduler=kind(**schedule_of(kind)), requires_aesthetics_score=True, force_zeros_for_empty_prompt=False, add_watermarker=False)
    pipeline.save_pretrained(folder)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(torch.float64)


class Refiners(unittest.TestCase):
    draw, reference, compare, refused = (getattr(command.Pictures, name) for name in ("draw", "reference", "compare", "refused"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {"xl": command.make_folder(cls.root / "xl", True, diffusers.EulerDiscreteScheduler), "refiner": make_refiner(cls.root / "refiner")}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def init(self):
        PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (24, 40, 3), np.uint8)).save(self.out / "init.png")
        with PIL.Image.open(self.out / "init.png") as image:
            return image.copy()

    def drawn(self, model, *options):
        shutil.rmtree(self.out / "dump", ignore_errors=True)
        return self.draw(model, *options)

    def test_alone(self):
        """It changes pictures, as any other model."""
        image, pipeline = self.init(), self.pipelines["refiner"]
        for negative, sampler, steps, strength in [(NEGATIVE, "euler", 8, 0.5), (None, "dpmpp_2m", 6, 0.75)]:
            with self.subTest(sampler):
                report, dumped = self.drawn("refiner", "--init", self.out / "init.png", "--strength", strength, "--seed", 5, "--steps", steps, "--sampler", sampler, "--cfg", 4, *(["--negative", negative] if negative else []))
                self.compare(dumped, self.reference(pipeline, sampler, 5, prompt=PROMPT, negative_prompt=negative, image=image, strength=strength, num_inference_steps=steps, guidance=4), int(steps * strength))
                states = pipeline.encode_prompt(PROMPT, None, "cpu", 1, True, negative)
                self.assertLess(error(dumped["states"], torch.cat([states[1], states[0]])), 1e-5)
                self.assertLess(error(dumped["pooled"], torch.cat([states[3], states[2]])), 1e-5)
        self.assertEqual(report["model"], "Stable Diffusion XL refiner")

    def experts(self, sampler, share, steps, seed, base=None, **options):
        """Latents after each step of both, and the picture, of one generator."""
        latents, generator = [], torch.Generator().manual_seed(seed)
        base, refiner = base or self.pipelines["xl"], self.pipelines["refiner"]

        def keep(_, step, timestep, values):
            latents.append(values["latents"].numpy().copy())
            return values

        def numbers(shape, generator=generator, **_):
            return torch.randn(shape, generator=generator).double()

        with contextlib.ExitStack() as stack:
            for pipeline in (base, refiner):
                stack.callback(setattr, pipeline, "scheduler", pipeline.scheduler)
                pipeline.scheduler = CLASSES[sampler](**schedule_of(CLASSES[sampler]))
                for place in (__import__(type(pipeline.scheduler).__module__, fromlist=["x"]), __import__(type(pipeline).__module__, fromlist=["x"]), diffusers.models.autoencoders.vae):
                    if hasattr(place, "randn_tensor"):
                        stack.callback(setattr, place, "randn_tensor", place.randn_tensor)
                        place.randn_tensor = numbers
            both = {"prompt": PROMPT, "negative_prompt": NEGATIVE, "guidance_scale": 4, "num_inference_steps": steps, "generator": generator, "callback_on_step_end": keep}
            made = base(**both, **options, output_type="latent", denoising_end=share).images
            picture = refiner(**both, image=made, output_type="latent", denoising_start=share).images
            decoded = self.pipelines["xl"].vae.decode(picture / self.pipelines["xl"].vae.config.scaling_factor).sample[0] / 2 + 0.5
        return latents, decoded.clip(0, 1)

    def test_experts(self):
        options = ["--refiner", self.root / "refiner", "--seed", 6, "--negative", NEGATIVE, "--cfg", 4, "--size", "40x24"]
        for sampler, share, steps in [("euler", 0.8, 10), ("euler_ancestral", 0.5, 7), ("dpmpp_2m", 0.7, 9), ("unipc", 0.35, 8)]:
            with self.subTest(f"{sampler} {share}"):
                _, dumped = self.drawn("xl", *options, "--sampler", sampler, "--steps", steps, *(["--refine-from", share] if share != 0.8 else []))
                self.compare(dumped, self.experts(sampler, share, steps, 6, width=40, height=24), steps)
                self.assertEqual(len(dumped["timesteps"]), steps)
        states = self.pipelines["refiner"].encode_prompt(PROMPT, None, "cpu", 1, True, NEGATIVE)
        self.assertLess(error(dumped["refiner_states"], torch.cat([states[1], states[0]])), 1e-5)
        self.assertLess(error(dumped["refiner_pooled"], torch.cat([states[3], states[2]])), 1e-5)
        with PIL.Image.open(self.out / "x.png") as image:
            said = image.text["parameters"]
        self.assertIn(", Refiner: refiner, Refiner switch at: 0.35,", said)

    def test_initial_pictures(self):
        """Of which both take the last steps, or the refiner alone does."""
        image = self.init()
        base = diffusers.StableDiffusionXLImg2ImgPipeline(**{k: v for k, v in self.pipelines["xl"].components.items() if k != "image_encoder"}, add_watermarker=False)
        base.set_progress_bar_config(disable=True)
        options = ["--refiner", self.root / "refiner", "--init", self.out / "init.png", "--seed", 6, "--negative", NEGATIVE, "--cfg", 4, "--sampler", "euler"]
        _, dumped = self.drawn("xl", *options, "--strength", 0.7, "--steps", 10)
        self.compare(dumped, self.experts("euler", 0.8, 10, 6, base, image=image, strength=0.7), 7)
        report, dumped = self.drawn("xl", *options, "--strength", 0.1, "--steps", 10)
        self.assertEqual((len(dumped["timesteps"]), "latents-0001" in dumped), (1, False))

    def test_several(self):
        """Each picture's noise goes on where the first expert left it."""
        options = ["--refiner", self.root / "refiner", "--sampler", "euler_ancestral", "--steps", 5, "--size", "24x24"]
        self.draw("xl", *options, "--seed", 3, "--count", 3)
        several = [(self.out / f"x-{i}.png").read_bytes() for i in range(3)]
        self.draw("xl", *options, "--seed", 5)
        self.assertEqual((self.out / "x.png").read_bytes(), several[2])

    def test_server(self):
        server = serving.serve_for(self, self.root / "xl", "--refiner", self.root / "refiner", model_option="--images")
        answer = server.post("/v1/images/generations", prompt=PROMPT, steps=5, seed=3)
        self.draw("xl", "--refiner", self.root / "refiner", "--steps", 5, "--seed", 3)
        self.assertEqual(base64.b64decode(answer["data"][0]["b64_json"]), (self.out / "x.png").read_bytes())

    def test_plan(self):
        report, _ = self.draw("xl", "--refiner", self.root / "refiner", "--steps", 5)
        self.assertEqual([part["part"] for part in report["plan"]["parts"]], ["text encoder", "refiner's encoder", "U-Net", "refiner's U-Net", "autoencoder"])
        self.assertLess(abs(report["plan"]["peak"] - report["peak_bytes"]), 0.03 * report["peak_bytes"])

    def test_refusals(self):
        self.init()
        shutil.copytree(self.root / "xl", self.out / "sdxl")
        refiner, given = ["--refiner", self.root / "refiner"], ["--init", self.out / "init.png"]
        eight = diffusers.AutoencoderKL(**{**VAE, "latent_channels": 8})
        shutil.copytree(self.root / "refiner", self.out / "eight")
        eight.save_pretrained(self.out / "eight/vae")
        diffusers.UNet2DConditionModel(**{**UNET, "in_channels": 8, "out_channels": 8, "cross_attention_dim": 36, "addition_embed_type": "text_time", "addition_time_embed_dim": 6,
                                          "projection_class_embeddings_input_dim": 50}).save_pretrained(self.out / "eight/unet")
        for model, options, words in [("refiner", [], ["refiner", "changes pictures"]), ("refiner", [*given, *refiner], ["refiner"]), ("xl", ["--refiner", self.out / "sdxl"], ["no refiner", "Stable Diffusion XL"]), ("xl", ["--refiner", self.out / "none"], ["none"]),
                                      ("xl", ["--refiner", self.out / "eight"], ["8 channels"]), ("xl", [*refiner, "--refine-from", 1], ["below 1"]), ("xl", ["--refine-from", 0.5], ["has none"]), ("xl", [*refiner, "--steps", 2, "--refine-from", 0.9995], ["the refiner", "more steps"]),
                                      ("xl", [*refiner, "--steps", 4, "--refine-from", 0.001], ["the model", "more steps"]), ("xl", [*refiner, *given, "--mask", self.out / "init.png"], ["mask"])]:
            with self.subTest(f"{model} {options}"):
                self.refused(self.root / model, *options, words=words)


if __name__ == "__main__":
    unittest.main()
