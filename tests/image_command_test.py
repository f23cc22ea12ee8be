"""rdna image with small random folders of Stable Diffusion and XL, against diffusers' pipelines in float64: texts, noise,
every step and the picture; and what the command says when it cannot."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest
import warnings

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import safetensors.torch
import torch
import transformers

import rdna_program
from image_text_encoder_test import POSITIONS, random_model, write_tokenizer

diffusers.utils.logging.set_verbosity_error()
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)  # more wait for each other, for so little
warnings.filterwarnings("ignore", "__array__", DeprecationWarning)  # of diffusers' schedulers
CLASSES = {"ddim": diffusers.DDIMScheduler, "euler": diffusers.EulerDiscreteScheduler,
           "euler_ancestral": diffusers.EulerAncestralDiscreteScheduler, "dpmpp_2m": diffusers.DPMSolverMultistepScheduler, "lcm": diffusers.LCMScheduler,
           "ddpm": diffusers.DDPMScheduler, "pndm": diffusers.PNDMScheduler, "heun": diffusers.HeunDiscreteScheduler,
           "unipc": diffusers.UniPCMultistepScheduler, "dpmpp_2m_sde": diffusers.DPMSolverMultistepScheduler}
CLIPPING = (diffusers.DDIMScheduler, diffusers.LCMScheduler, diffusers.DDPMScheduler)
SCHEDULE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "timestep_spacing": "leading",
            "steps_offset": 1, "clip_sample": False}
UNET = {"block_out_channels": [16, 32], "layers_per_block": 1, "norm_num_groups": 8, "attention_head_dim": 4,
        "sample_size": 10, "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]}
VAE = {"force_upcast": False, "block_out_channels": [8, 16, 16], "layers_per_block": 1, "norm_num_groups": 4, "latent_channels": 4,
       "down_block_types": ["DownEncoderBlock2D"] * 3, "up_block_types": ["UpDecoderBlock2D"] * 3}
FACTOR = 4
PROMPT, NEGATIVE = "a photograph of an astronaut riding horse", "the cat"


def randomize(network, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in network.named_parameters():
            one = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            size = 1 / np.sqrt(p[0].numel()) if p.ndim > 1 else 0.1
            p.copy_(one + size * torch.randn(p.shape, generator=generator))
    return network.eval()


def schedule_of(scheduler):
    own = {"skip_prk_steps": True} if scheduler is diffusers.PNDMScheduler else {}
    return {**{k: v for k, v in SCHEDULE.items() if k != "clip_sample" or scheduler in CLIPPING}, **own}


def make_folder(folder, xl=False, scheduler=diffusers.DDIMScheduler):
    """A pipeline of diffusers on random weights, which |folder| becomes; in float64."""
    folder.mkdir(exist_ok=True)
    count = write_tokenizer(folder / "tokenizer", "!")
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer", model_max_length=POSITIONS)
    text = random_model(transformers.CLIPTextModel, 1, eos_token_id=count - 1)
    parts = {"vae": randomize(diffusers.AutoencoderKL(**VAE), 2), "text_encoder": text, "tokenizer": tokenizer,
             "scheduler": scheduler(**schedule_of(scheduler))}
    if xl:
        other = random_model(transformers.CLIPTextModelWithProjection, 3, eos_token_id=count - 1, hidden_act="gelu")
        unet = diffusers.UNet2DConditionModel(**UNET, cross_attention_dim=72, addition_embed_type="text_time", use_linear_projection=True,
                                              addition_time_embed_dim=6, projection_class_embeddings_input_dim=20 + 6 * 6)
        pipeline = diffusers.StableDiffusionXLPipeline(**parts, unet=randomize(unet, 4), text_encoder_2=other,
                                                       tokenizer_2=tokenizer, add_watermarker=False)
    else:
        unet = randomize(diffusers.UNet2DConditionModel(**UNET, cross_attention_dim=36), 4)
        pipeline = diffusers.StableDiffusionPipeline(**parts, unet=unet, safety_checker=None, feature_extractor=None)
    pipeline.save_pretrained(folder)
    if not xl:  # as the published folders have it; today it is saved as one file
        shutil.rmtree(folder / "tokenizer")
        write_tokenizer(folder / "tokenizer", "!")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(torch.float64)


def error(got, wanted):
    wanted = wanted.detach().double().numpy() if isinstance(wanted, torch.Tensor) else wanted
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


class Noise(unittest.TestCase):
    def test_torch(self):
        library = ctypes.CDLL(pathlib.Path(rdna_program.PROGRAM).parent.parent / "lib/librdna.so")
        library.rdna_image_noise_create.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
        library.rdna_image_noise_draw.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        library.rdna_image_noise_release.argtypes = [ctypes.c_void_p]
        library.rdna_image_noise_draw.restype = library.rdna_image_noise_release.restype = None
        for seed in [0, 1, 42, 2**31, 2**32 - 1, 2**32 + 5, 2**64 - 1]:
            handle, theirs = ctypes.c_void_p(), torch.Generator().manual_seed(seed if seed < 2**63 else seed - 2**64)
            self.assertEqual(library.rdna_image_noise_create(seed, ctypes.byref(handle)), 0)
            for count in [16, 1, 15, 17, 0, 3, 4 * 64 * 64, 31, 2, 1, 48, 9 * 7 * 5, 14, 1000]:
                ours = np.full(count + 1, np.nan, np.float32)
                library.rdna_image_noise_draw(handle, ours.ctypes.data, count)
                self.assertTrue(np.isnan(ours[count]))
                # of angles up to 2 pi in f32, off by 5e-7, times radii up to 6
                np.testing.assert_allclose(ours[:count], torch.randn(count, generator=theirs), rtol=2e-6, atol=3e-6)
            library.rdna_image_noise_release(handle)


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {"sd": make_folder(cls.root / "sd"), "xl": make_folder(cls.root / "xl", True, diffusers.EulerDiscreteScheduler)}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def draw(self, model, *options, prompt=PROMPT):
        """What the command reports, and what it dumped."""
        dump = self.out / "dump"
        report = rdna_program.output("image", self.root / model, prompt, "--out", self.out / "x.png", "--dump", dump, "--json",
                                     "--driver", rdna_program.DEVICE, "--type", "f32", *options)
        return json.loads(report), {path.stem: np.load(path) for path in dump.glob("*.npy")}

    def reference(self, pipeline, sampler=None, seed=None, noise=None, width=None, height=None, guidance=None, **options):
        """diffusers' latents after each step, and its picture, in float64 from float32 noise."""
        kept, latents, module = pipeline.scheduler, [], None
        if sampler:
            pipeline.scheduler = CLASSES[sampler](**schedule_of(CLASSES[sampler]), **{k: options.pop(k) for k in [*options] if k.startswith("use_")},
                                                  **({"algorithm_type": "sde-dpmsolver++"} if sampler == "dpmpp_2m_sde" else {}))
        generator = torch.Generator().manual_seed(seed) if seed is not None else None

        def numbers(shape, generator=generator, **_):
            return torch.randn(shape, generator=generator).double()

        def keep(_, step, timestep, values):
            latents.append(values["latents"].numpy().copy())
            return values

        module = __import__(type(pipeline.scheduler).__module__, fromlist=["x"])
        with contextlib.ExitStack() as stack:
            for place in (module, __import__(type(pipeline).__module__, fromlist=["x"]), diffusers.models.autoencoders.vae):
                if hasattr(place, "randn_tensor"):
                    stack.callback(setattr, place, "randn_tensor", place.randn_tensor)
                    place.randn_tensor = numbers
            stack.callback(setattr, pipeline, "scheduler", kept)
            if "image" not in options:
                options |= {"latents": None if noise is None else torch.from_numpy(noise).double(), "height": height, "width": width}
            picture = pipeline(generator=generator, output_type="pt", callback_on_step_end=keep, guidance_scale=guidance, **options).images[0]
        return latents, picture

    def compare(self, dumped, wanted, steps):
        latents, picture = wanted
        self.assertEqual(len(latents), steps)
        for i, values in enumerate(latents):
            self.assertLess(error(dumped[f"latents-{i:04d}"], values[0]), 1e-3, f"step {i}")
        self.assertLess(error(dumped["picture"].clip(-1, 1) / 2 + 0.5, picture), 1e-3)

    def test_samplers(self):
        """20 steps from a seed and from given noise."""
        noise = np.random.default_rng(3).standard_normal((1, 4, 6, 10)).astype(np.float32)
        np.save(self.out / "noise.npy", noise)
        for sampler in list(CLASSES)[:4]:
            with self.subTest(sampler):
                report, dumped = self.draw("sd", "--sampler", sampler, "--seed", 5, "--negative", NEGATIVE, "--steps", 20)
                wanted = self.reference(self.pipelines["sd"], sampler, 5, prompt=PROMPT, negative_prompt=NEGATIVE, guidance=7.5, num_inference_steps=20)
                self.compare(dumped, wanted, 20)
                self.assertEqual((report["width"], report["height"], report["steps"], report["sampler"]), (40, 40, 20, sampler))
                _, dumped = self.draw("sd", "--sampler", sampler, "--seed", 6, "--latents", self.out / "noise.npy", "--cfg", 3, "--steps", 4)
                np.testing.assert_array_equal(dumped["noise"], noise[0])
                self.compare({k: v for k, v in dumped.items()}, self.reference(
                    self.pipelines["sd"], sampler, 6, noise, 40, 24, prompt=PROMPT, guidance=3, num_inference_steps=4), 4)

    def test_parts(self):
        """Texts and timesteps by themselves, other spacings, no guidance, and clip skip."""
        pipeline = self.pipelines["sd"]
        _, dumped = self.draw("sd", "--seed", 5, "--negative", NEGATIVE, "--steps", 3)
        prompted, negative = pipeline.encode_prompt(PROMPT, "cpu", 1, True, NEGATIVE)
        self.assertLess(error(dumped["states"], torch.cat([negative, prompted])), 1e-5)
        np.testing.assert_array_equal(dumped["timesteps"], [667, 334, 1])
        self.assertNotIn("pooled", dumped)
        # of both texts, as users of clip skip know it: diffusers skips no layer for the negative one
        ids = pipeline.tokenizer([PROMPT, ""], padding="max_length", max_length=POSITIONS, return_tensors="pt").input_ids
        with torch.no_grad():
            skipped = pipeline.text_encoder.final_layer_norm(pipeline.text_encoder(ids, output_hidden_states=True).hidden_states[-2])
        skip = {"prompt": None, "prompt_embeds": skipped[:1], "negative_prompt_embeds": skipped[1:], "guidance": 7}
        for options, others in [(["--cfg", 1], {"guidance": 1}), (["--cfg", 0], {"guidance": 0}), (["--clip-skip", 2, "--cfg", 7], skip),
                                (["--sampler", "dpmpp_2m", "--schedule", "karras"], {"sampler": "dpmpp_2m", "use_karras_sigmas": True, "guidance": 7.5})]:
            with self.subTest(str(options)):
                shutil.rmtree(self.out / "dump")
                _, dumped = self.draw("sd", "--seed", 7, "--steps", 6, *options)
                others = {"prompt": PROMPT, **others}
                self.compare(dumped, self.reference(pipeline, seed=7, num_inference_steps=6, **others), 6)
                self.assertEqual(len(dumped["states"]), 2 if others["guidance"] > 1 else 1)

    def test_xl(self):
        """With a negative prompt, with an empty one, and without, which are zeros."""
        pipeline = self.pipelines["xl"]
        for options, negative in [(["--negative", NEGATIVE], NEGATIVE), (["--negative", ""], ""), ([], None)]:
            with self.subTest(str(options)):
                _, dumped = self.draw("xl", "--seed", 8, "--steps", 20, "--size", "40x32", *options)
                wanted = self.reference(pipeline, seed=8, prompt=PROMPT, negative_prompt=negative, guidance=5, num_inference_steps=20, width=40, height=32)
                self.compare(dumped, wanted, 20)
                states = pipeline.encode_prompt(PROMPT, None, "cpu", 1, True, negative)
                self.assertLess(error(dumped["states"], torch.cat([states[1], states[0]])), 1e-5)
                self.assertLess(error(dumped["pooled"], torch.cat([states[3], states[2]])), 1e-5)

    def test_consistency_models(self):
        """Of a U-Net that is told the guidance, and of one that is not."""
        kept = self.pipelines["sd"]
        unet = randomize(diffusers.UNet2DConditionModel(**UNET, cross_attention_dim=36, time_cond_proj_dim=8), 6)
        folder = self.root / "lcm"
        shutil.copytree(self.root / "sd", folder)
        unet.save_pretrained(folder / "unet")
        diffusers.LCMScheduler(**schedule_of(diffusers.LCMScheduler)).save_pretrained(folder / "scheduler")
        index = json.loads((folder / "model_index.json").read_text())
        (folder / "model_index.json").write_text(json.dumps({**index, "_class_name": "LatentConsistencyModelPipeline"}))
        told = diffusers.LatentConsistencyModelPipeline(**{**kept.components, "unet": unet.double(), "scheduler": diffusers.LCMScheduler(**schedule_of(diffusers.LCMScheduler))})
        told.set_progress_bar_config(disable=True)
        report, dumped = self.draw("lcm", "--seed", 4, "--cfg", 8.5)
        self.assertEqual((report["sampler"], report["steps"], len(dumped["states"])), ("lcm", 4, 1))
        self.compare(dumped, self.reference(told, seed=4, prompt=PROMPT, guidance=8.5, num_inference_steps=4), 4)
        shutil.rmtree(self.out / "dump")
        _, dumped = self.draw("sd", "--seed", 4, "--cfg", 1.5, "--sampler", "lcm", "--steps", 8)
        self.compare(dumped, self.reference(kept, "lcm", 4, prompt=PROMPT, guidance=1.5, num_inference_steps=8), 8)

    def test_initial_pictures(self):
        random = np.random.default_rng(5)
        PIL.Image.fromarray(random.integers(0, 256, (24, 40, 3), np.uint8)).save(self.out / "init.png")
        image = PIL.Image.open(self.out / "init.png")
        for model, kind, sampler, steps, strength in [
                ("sd", diffusers.StableDiffusionImg2ImgPipeline, "ddim", 20, 0.6), ("sd", diffusers.StableDiffusionImg2ImgPipeline, "euler", 7, 0.5),
                ("sd", diffusers.StableDiffusionImg2ImgPipeline, "euler_ancestral", 7, 0.3), ("sd", diffusers.StableDiffusionImg2ImgPipeline, "dpmpp_2m", 9, 0.75),
                ("sd", diffusers.StableDiffusionImg2ImgPipeline, "dpmpp_2m", 3, 1), ("sd", diffusers.StableDiffusionImg2ImgPipeline, "heun", 5, 0.65),
                ("sd", diffusers.StableDiffusionImg2ImgPipeline, "unipc", 8, 0.5), ("xl", diffusers.StableDiffusionXLImg2ImgPipeline, "euler", 8, 0.75)]:
            with self.subTest(f"{model} {sampler} {steps} {strength}"):
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                pipeline = kind(**{k: v for k, v in self.pipelines[model].components.items() if k != "image_encoder"})
                pipeline.set_progress_bar_config(disable=True)
                _, dumped = self.draw(model, "--init", self.out / "init.png", "--strength", strength, "--seed", 5, "--steps", steps, "--sampler", sampler, "--cfg", 4)
                taken = int(steps * strength)
                self.compare(dumped, self.reference(pipeline, sampler, 5, prompt=PROMPT, image=image, strength=strength, num_inference_steps=steps, guidance=4),
                             2 * taken - 1 if sampler == "heun" else taken)
        said = PIL.Image.open(self.out / "x.png").text["parameters"]
        self.assertIn("Denoising strength: 0.75", said)

    def test_page(self):
        """docs/image.md has every option."""
        page, help_text = (rdna_program.ROOT / "docs/image.md").read_text(), rdna_program.output("image", "--help").decode()
        for option in re.findall(r"^  (--[a-z-]+)", help_text, re.M):
            self.assertIn(option, page)

    def test_files(self):
        """PNGs are the pictures, carry what they were made with, and come again from it."""
        report, dumped = self.draw("sd", "--seed", 9, "--steps", 3, "--negative", NEGATIVE)
        picture = PIL.Image.open(self.out / "x.png")
        self.assertEqual(report["files"], [str(self.out / "x.png")])
        wanted = np.rint(255 * (dumped["picture"].clip(-1, 1) / 2 + 0.5).astype(np.float64)).transpose(1, 2, 0)
        self.assertLessEqual(abs(np.asarray(picture) - wanted).max(), 1)
        self.assertFalse([*self.out.glob("*.partial")])
        self.assertEqual(picture.text["parameters"].split("\n")[:2], [PROMPT, "Negative prompt: " + NEGATIVE])
        said = dict(pair.split(": ") for pair in picture.text["parameters"].split("\n")[2].split(", "))
        self.assertEqual({k: said[k] for k in ("Steps", "Sampler", "CFG scale", "Seed", "Size", "Model")},
                         {"Steps": "3", "Sampler": "ddim", "CFG scale": "7.5", "Seed": "9", "Size": "40x40", "Model": "sd"})
        first = (self.out / "x.png").read_bytes()
        again = self.draw_again(self.out / "x.png", "sd")
        self.assertEqual((self.out / "y.png").read_bytes(), first)
        self.assertEqual(again.decode(), f"{self.out}/y.png\n")
        self.draw("sd", "--seed", 9, "--steps", 3, "--cfg", "1.23456789", "--sampler", "euler", "--schedule", "karras", "--type", "bf16", "--tile", 8, "--count", 2, "--grid")
        self.draw_again(self.out / "x.png", "sd")
        self.assertEqual((self.out / "y.png").read_bytes(), (self.out / "x.png").read_bytes())
        for options in ([], ["--negative", ""]):  # which of XL are two pictures
            self.draw("xl", "--seed", 9, "--steps", 2, *options)
            self.draw_again(self.out / "x.png", "xl")
            self.assertEqual((self.out / "y.png").read_bytes(), (self.out / "x.png").read_bytes())
        several = self.draw("sd", "--seed", 8, "--steps", 3, "--negative", NEGATIVE, "--count", 3)[0]
        self.assertEqual(several["files"], [str(self.out / f"x-{i}.png") for i in range(3)])
        self.assertEqual((self.out / "x-1.png").read_bytes(), first)
        for i in range(3):
            (self.out / f"x-{i}.png").rename(self.out / f"kept-{i}.png")
        grid = self.draw("sd", "--seed", 8, "--steps", 3, "--negative", NEGATIVE, "--count", 3, "--grid", "--size", "40x40")[0]
        self.assertEqual(grid["files"], [str(self.out / "x.png")])
        whole = np.asarray(PIL.Image.open(self.out / "x.png"))
        self.assertEqual(whole.shape, (80, 80, 3))
        for i in range(3):
            np.testing.assert_array_equal(whole[i // 2 * 40:][:40, i % 2 * 40:][:, :40], PIL.Image.open(self.out / f"kept-{i}.png"))
        self.assertFalse(whole[40:, 40:].any())
        seeds = {self.draw("sd", "--steps", 1)[0]["seed"] for _ in range(3)}
        self.assertEqual(len(seeds), 3)

    def draw_again(self, path, model):
        """y.png, with what the file's text says."""
        prompt, *negative, rest = PIL.Image.open(path).text["parameters"].split("\n")
        said = dict(pair.split(": ") for pair in rest.split(", "))
        names = {"Steps": "--steps", "Seed": "--seed", "CFG scale": "--cfg", "Sampler": "--sampler", "Schedule type": "--schedule", "Size": "--size", "Type": "--type",
                 "Tile": "--tile", "Grid of": "--count"}
        self.assertEqual(set(said) - set(names), {"Model", "Version"})
        options = [x for name, option in names.items() if name in said for x in (option, said[name])] + ["--grid"] * ("Grid of" in said)
        return rdna_program.output("image", self.root / model, prompt, *(x for line in negative for x in ("--negative", line.removeprefix("Negative prompt: "))), *options,
                                   "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)

    def test_saved_samplers(self):
        """Folders with each of diffusers' schedulers as it saves them, and with its spacing of noise levels."""
        pipeline, folder = self.pipelines["sd"], self.out / "model"
        shutil.copytree(self.root / "sd", folder)
        rows = [(CLASSES[name], {}) for name in CLASSES if name != "dpmpp_2m_sde"]
        rows += [(CLASSES["dpmpp_2m_sde"], {"algorithm_type": "sde-dpmsolver++"}), (CLASSES["heun"], {"use_beta_sigmas": True})]
        rows += [(CLASSES[name], {f"use_{spacing}_sigmas": True}) for name in ("euler", "dpmpp_2m") for spacing in ("karras", "exponential")]
        for kind, options in rows:
            with self.subTest(f"{kind.__name__} {options}"):
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                scheduler = kind(**schedule_of(kind), **options)
                scheduler.save_pretrained(folder / "scheduler")
                report, dumped = self.draw(folder, "--seed", 3, "--steps", 4, "--cfg", 3)
                self.assertIs(CLASSES[report["sampler"]], kind)
                wanted = self.reference(pipeline, report["sampler"], 3, prompt=PROMPT, guidance=3, num_inference_steps=4,
                                        **{k: v for k, v in options.items() if k.startswith("use_")})
                scheduler.set_timesteps(4)
                if float(scheduler.timesteps[0]) == dumped["timesteps"][0]:
                    self.compare(dumped, wanted, len(scheduler.timesteps))
                else:  # where theirs is cut from 999 to 998; what the spacing makes, tests of schedules compare
                    self.assertEqual((kind, options), (CLASSES["dpmpp_2m"], {"use_exponential_sigmas": True}))
                    np.testing.assert_allclose(dumped["timesteps"][1:], scheduler.timesteps[1:])
        shutil.rmtree(self.out / "dump")  # another sampler keeps the spacing if it has it, as diffusers' from_config does
        _, dumped = self.draw(folder, "--seed", 3, "--steps", 4, "--cfg", 3, "--sampler", "euler")
        self.compare(dumped, self.reference(pipeline, "euler", 3, prompt=PROMPT, guidance=3, num_inference_steps=4, use_exponential_sigmas=True), 4)
        self.draw(folder, "--steps", 1, "--sampler", "ddim")
        self.assertIn("Schedule type: simple", PIL.Image.open(self.out / "x.png").text["parameters"])
        _, dumped = self.draw(folder, "--seed", 3, "--steps", 4, "--cfg", 3, "--schedule", "simple")
        self.compare(dumped, self.reference(pipeline, "dpmpp_2m", 3, prompt=PROMPT, guidance=3, num_inference_steps=4), 4)

    def test_no_effect(self):
        """A negative prompt without guidance: said, and not in the file."""
        result = rdna_program.run("image", self.root / "sd", PROMPT, "--negative", NEGATIVE, "--cfg", 1, "--steps", 1, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 0)
        self.assertIn("the negative prompt has no effect", result.stderr.decode())
        self.assertNotIn(NEGATIVE, PIL.Image.open(self.out / "x.png").text["parameters"])

    def test_long_prompts(self):
        result = rdna_program.run("image", self.root / "sd", PROMPT * 9, "--plain", "--steps", 1, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr.decode(), rf"the prompt has \d+ tokens, of which the model reads {POSITIONS - 2}\n")

    # ---- what is refused ----

    def refused(self, folder, *options, words=(), status=1, prompt=PROMPT):
        result = rdna_program.run("image", folder, prompt, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE, *options)
        self.assertEqual(result.returncode, status, result.stderr.decode(errors="replace"))
        sentence = result.stderr.decode(errors="replace").replace("\r", "").strip().splitlines()[-1]
        for word in words:
            self.assertIn(word, sentence)
        self.assertFalse((self.out / "x.png").exists())

    def test_requests(self):
        PIL.Image.new("RGB", (25, 24)).save(self.out / "init.png"), PIL.Image.new("L", (24, 24)).save(self.out / "fine.png")
        folder, save = self.root / "sd", lambda name, *shape: np.save(self.out / name, np.zeros(shape, np.float32))
        for options, words, status in [
                (["--size", "37x36"], ["37 x 36", "4"], 1), (["--size", "0x4"], ["0x4"], 1), (["--size", "4"], ["size"], 1), (["--size", "9000x4"], ["9000"], 1),
                (["--size", "4x4x4"], ["4x4x4"], 1), (["--steps", "0"], ["--steps"], 2), (["--sampler", "magic"], ["magic"], 2), (["--cfg", "nan"], ["--cfg"], 2),
                (["--sampler", "ddim", "--schedule", "karras"], ["karras"], 1), (["--clip-skip", 9], ["layers"], 1), (["--tile", 6], ["tile"], 1),
                (["--steps", 1000, "--sampler", "dpmpp_2m"], ["steps"], 1), (["--latents", self.out / "none.npy"], ["none.npy"], 1),
                (["--init", self.out / "none.png"], ["none.png"], 1), (["--init", self.out / "init.png"], ["25 x 24", "4"], 1), (["--strength", 2], ["--strength"], 2),
                (["--init", self.out / "init.png", "--size", "40x40"], ["init.png", "25 x 24", "40 x 40"], 1), (["--init", self.out / "fine.png", "--strength", 0.04], ["strength"], 1),
                (["--init", self.out / "fine.png", "--strength", 0], ["strength"], 1), (["--init", self.root / "sd/model_index.json"], ["model_index.json", "PNG"], 1),
                (["--out", self.out / "no/where/x.png"], ["no/where"], 1), (["--grid", "--count", 64, "--size", "4000x40"], ["32000"], 1),
                (["--dump", self.out / "no/where"], ["no/where"], 1), (["--dump", self.out / "init.png"], ["init.png"], 1),
                (["--strength", 0.5], ["--strength", "--init"], 2)]:
            with self.subTest(str(options)):
                self.refused(folder, *options, words=words, status=status)
        save("flat.npy", 4, 9), save("three.npy", 3, 9, 9), save("two.npy", 2, 4, 9, 9), save("one.npy", 4, 9, 9)
        np.save(self.out / "words.npy", np.array(["x"])), np.save(self.out / "turned.npy", np.asfortranarray(np.zeros((4, 9, 8), np.float32)))
        np.save(self.out / "whole.npy", np.zeros((4, 9, 9), np.int32)), (self.out / "text.npy").write_text("nothing")
        save("none.npy", 4, 0, 0), save("thin.npy", 4, 0, 8)
        for name, value in [("nan", np.nan), ("infinity", np.inf)]:
            np.save(self.out / name, np.full((4, 9, 9), value, np.float32))
        (self.out / "cut.npy").write_bytes((self.out / "one.npy").read_bytes()[:-1])
        for name, words in [("flat", ["dimensions"]), ("three", ["(3, 9, 9)"]), ("two", ["2 latents"]), ("words", ["<U1"]), ("turned", ["Fortran"]), ("whole", ["<i4"]),
                            ("text", ["NumPy"]), ("cut", ["ends after 323 of 324"]), ("none", ["no values"]), ("thin", ["no values"]), ("nan", ["finite"]), ("infinity", ["finite"])]:
            with self.subTest(name):
                self.refused(folder, "--latents", self.out / f"{name}.npy", words=[f"{name}.npy", *words])
        self.refused(folder, "--latents", self.out / "one.npy", "--size", "36x40", words=["36 x 40"])

    def test_unwritable(self):
        """What cannot be written is refused before anything is drawn, for which this folder has no U-Net."""
        folder, strange, plain = self.out / "model", os.fsdecode(b"\xff"), self.out / "plain"
        shutil.copytree(self.root / "sd", folder)
        (folder / "unet/diffusion_pytorch_model.safetensors").unlink()
        plain.write_text("")
        self.refused(folder, words=["unet"])
        self.refused(folder, prompt=strange, words=["UTF-8"])
        for options, words in [(["--out", self.out], ["directory"]), (["--out", ""], ["empty"]), (["--out", plain / "x.png"], ["plain"]), (["--out", self.out / ("x" * 254)], ["long"]),
                               (["--out", "x/" * 2100], ["too long"]), (["--negative", strange], ["UTF-8"]), (["--out", self.out / f"{strange}.png", "--json"], ["--json"]),
                               (["--out", self.out / ("x" * 244 + ".png"), "--count", 11], ["long"]), (["--dump", plain], ["plain"])]:
            with self.subTest(str(options)[:80]):
                self.refused(folder, *options, words=words)

    def test_folders(self):
        def settings(name, **changes):
            return lambda folder: (folder / name).write_text(json.dumps({**json.loads((folder / name).read_text()), **changes}))
        for source, change, words in [
                ("sd", lambda folder: shutil.rmtree(folder), ["model_index.json"]), ("sd", lambda folder: (folder / "model_index.json").write_text("["), ["model_index.json", "JSON"]),
                ("sd", settings("model_index.json", _class_name="KandinskyPipeline"), ["KandinskyPipeline"]), ("sd", settings("model_index.json", _class_name=None), ["_class_name"]),
                ("sd", settings("model_index.json", _class_name="StableDiffusionXLPipeline"), ["U-Net"]), ("xl", settings("model_index.json", requires_aesthetics_score=True), ["refiner"]),
                ("sd", settings("unet/config.json", in_channels=5), ["5", "masked"]), ("sd", settings("vae/config.json", latent_channels=3), ["3"]),
                ("sd", settings("unet/config.json", magic=1), ["unet/config.json", "magic"]), ("sd", settings("scheduler/scheduler_config.json", thresholding=True), ["thresholding"]),
                ("sd", lambda folder: (folder / "scheduler/scheduler_config.json").unlink(), ["scheduler_config.json"]),
                ("sd", lambda folder: (folder / "vae/diffusion_pytorch_model.safetensors").write_bytes(b"\0" * 9), ["vae"]),
                ("sd", lambda folder: shutil.rmtree(folder / "text_encoder"), ["text_encoder"]), ("sd", lambda folder: shutil.rmtree(folder / "tokenizer"), ["tokenizer"])]:
            with self.subTest(str(words)):
                folder = self.out / "model"
                shutil.copytree(self.root / source, folder)
                change(folder)
                self.refused(folder, words=words)
                shutil.rmtree(folder, ignore_errors=True)

    def test_broken_weights(self):
        """Values that are no numbers are no picture."""
        for part, file, words in [("unet", "diffusion_pytorch_model", ["U-Net", "f32"]), ("vae", "diffusion_pytorch_model", ["autoencoder", "bf16", "--type"]),
                                  ("text_encoder", "model", ["text encoder"])]:
            with self.subTest(part):
                folder = self.out / part
                shutil.copytree(self.root / "sd", folder)
                path = folder / part / f"{file}.safetensors"
                tensors = safetensors.torch.load_file(path)
                for name, tensor in tensors.items():
                    if not name.startswith(("encoder.down", "encoder.mid", "encoder.conv")):
                        tensor[..., 0] = np.nan
                safetensors.torch.save_file(tensors, path)
                options = ["--type", "bf16"] if part == "vae" else []
                result = rdna_program.run("image", folder, PROMPT, "--steps", 2, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE, *options)
                self.assertEqual(result.returncode, 1)
                for word in words:
                    self.assertIn(word, result.stderr.decode().splitlines()[-1])
                self.assertFalse((self.out / "x.png").exists())

    def test_scheduler_files(self):
        """What is there twice, or contradicts itself."""
        folder = self.out / "model"
        shutil.copytree(self.root / "sd", folder)
        path = folder / "scheduler/scheduler_config.json"
        for text, word in [('"beta_end": 0.5, ', "beta_end"), ('"use_karras_sigmas": true, "use_exponential_sigmas": true, ', "both"), ('"use_karras_sigmas": 1, ', "use_karras_sigmas")]:
            path.write_text((self.root / "sd/scheduler/scheduler_config.json").read_text().replace("{", "{" + text, 1))
            self.refused(folder, words=["scheduler_config.json", word])

    def test_other_samplers(self):
        """A folder whose sampler is not there, as diffusers saves it, has dpmpp_2m, and says so."""
        folder = self.out / "model"
        shutil.copytree(self.root / "sd", folder)
        pictures = set()
        for kind, options in [(diffusers.DEISMultistepScheduler, {}), (diffusers.LMSDiscreteScheduler, {}), (diffusers.KDPM2DiscreteScheduler, {})]:
            with self.subTest(f"{kind.__name__} {options}"):
                kind(**{k: v for k, v in SCHEDULE.items() if k != "clip_sample"}, **options).save_pretrained(folder / "scheduler")
                result = rdna_program.run("image", folder, PROMPT, "--steps", 2, "--seed", 1, "--json", "--out", self.out / "x.png", "--driver", rdna_program.DEVICE)
                self.assertIn("dpmpp_2m takes its place", result.stderr.decode())
                self.assertEqual(json.loads(result.stdout)["sampler"], "dpmpp_2m")
                pictures.add(PIL.Image.open(self.out / "x.png").tobytes())
        self.assertEqual(len(pictures), 1)


if __name__ == "__main__":
    unittest.main()
