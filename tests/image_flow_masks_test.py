"""rdna image with masks for transformers that flow (Stable Diffusion 3, FLUX.1, Qwen-Image, Z-Image), and with guidance by
left out blocks, against diffusers' pipelines in float64 on small random folders."""
import contextlib
import pathlib
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import torch

import image_flux_test as flux
import image_qwen_test
import image_sd3_test
import image_zimage_test
import rdna_program

SIDES = (24, 40)  # height and width


class Masks(unittest.TestCase):
    draw, compare = flux.Pictures.draw, flux.Pictures.compare

    def setUp(self):
        self.out = self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        random = np.random.default_rng(5)
        PIL.Image.fromarray(random.integers(0, 256, (*SIDES, 3), np.uint8)).save(self.out / "init.png")
        PIL.Image.fromarray(random.choice(np.array([0, 127, 128, 255], np.uint8), SIDES)).save(self.out / "mask.png")
        self.given = {"image": PIL.Image.open(self.out / "init.png").copy(), "mask_image": PIL.Image.open(self.out / "mask.png").copy()}
        self.options = ("--init", self.out / "init.png", "--mask", self.out / "mask.png", "--seed", 6)

    def inpaint(self, kind, pipeline, unpack, prompt=flux.PROMPT, names=(), **options):
        """diffusers' latents after each step and its picture, in float64 from float32 noise."""
        components = {name: pipeline.components.get(name) for name in names} if names else pipeline.components
        pipeline, latents, generator = kind(**components), [], torch.Generator().manual_seed(6)
        pipeline.set_progress_bar_config(disable=True)

        def numbers(shape, generator=generator, **_):
            return torch.randn(shape, generator=generator).double()

        def keep(_, step, timestep, values):
            latents.append(unpack(pipeline, values["latents"])[0].numpy().copy())
            return values
        with contextlib.ExitStack() as stack:
            for place in (__import__(kind.__module__, fromlist=["x"]), diffusers.models.autoencoders.vae):
                stack.callback(setattr, place, "randn_tensor", place.randn_tensor)
                place.randn_tensor = numbers
            if kind is diffusers.ZImageInpaintPipeline:
                stack.callback(setattr, torch, "float32", torch.float32)  # which the pipeline asks latents to be
                torch.float32 = torch.float64
            picture = pipeline(prompt=prompt, **self.given, generator=generator, output_type="pt", callback_on_step_end=keep, height=SIDES[0], width=SIDES[1], **options).images[0]
        return latents, picture

    def test_sd3(self):
        pipeline = image_sd3_test.make_folder(self.root / "sd3", image_sd3_test.MEDIUM)
        for steps, strength, options in ((3, 1, []), (5, 0.6, ["--strength", 0.6])):
            _, dumped = self.draw("sd3", *self.options, "--steps", steps, "--cfg", 3, *options)
            latents, _ = self.inpaint(diffusers.StableDiffusion3InpaintPipeline, pipeline, lambda p, x: x, strength=strength, num_inference_steps=steps, guidance_scale=3)
            last = torch.from_numpy(latents[-1])[None] / pipeline.vae.config.scaling_factor + pipeline.vae.config.shift_factor  # the latter this pipeline of 0.42.1 leaves out
            picture = pipeline.image_processor.postprocess(pipeline.vae.decode(last).sample.detach(), output_type="pt")[0]
            self.compare(dumped, (latents, picture), steps - int(steps - steps * strength))
        self.assertIn(", Mask: given", PIL.Image.open(self.out / "x.png").text["parameters"])

    def test_flux(self):
        pipeline = flux.make_folder(self.root / "dev", "dev")
        names = ("scheduler", "vae", "text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2", "transformer")
        _, dumped = self.draw("dev", *self.options, "--strength", 0.8, "--steps", 5)
        wanted = self.inpaint(diffusers.FluxInpaintPipeline, pipeline, lambda p, x: p._unpack_latents(x, *SIDES, 4), names=names, strength=0.8, num_inference_steps=5, guidance_scale=3.5)
        self.compare(dumped, wanted, 4)

    def test_qwen(self):
        pipeline = image_qwen_test.make_folder(self.root / "qwen")
        _, dumped = self.draw("qwen", *self.options, "--strength", 0.8, "--steps", 5, "--cfg", 3)
        wanted = self.inpaint(diffusers.QwenImageInpaintPipeline, pipeline, lambda p, x: p._unpack_latents(x, *SIDES, 4)[:, :, 0], strength=0.8, num_inference_steps=5, true_cfg_scale=3, negative_prompt=" ")
        self.compare(dumped, wanted, 4)

    def test_zimage(self):
        pipeline = image_zimage_test.make_folder(self.root / "zimage")
        kept, flux.PROMPT = flux.PROMPT, image_zimage_test.PROMPT
        self.addCleanup(setattr, flux, "PROMPT", kept)
        _, dumped = self.draw("zimage", *self.options, "--strength", 0.8, "--steps", 5)
        wanted = self.inpaint(diffusers.ZImageInpaintPipeline, pipeline, lambda p, x: x, prompt=image_zimage_test.PROMPT, strength=0.8, num_inference_steps=5, guidance_scale=0)
        self.compare(dumped, wanted, 4)


class LeftOut(unittest.TestCase):
    draw, compare, refuse = (getattr(flux.Pictures, name) for name in ("draw", "compare", "refuse"))
    reference = image_sd3_test.Pictures.reference

    def setUp(self):
        self.out = self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_pictures(self):
        pipeline = image_sd3_test.make_folder(self.root / "sd3", image_sd3_test.MEDIUM)
        for options, layers, scale, start, stop in [(["--skip-layers", "1"], [1], 2.8, 0.01, 0.2), (["--skip-layers", "2,0", "--skip-start", 0.2, "--skip-end", 0.7], [0, 2], 1.5, 0.2, 0.7)]:
            with self.subTest(str(layers)):
                _, dumped = self.draw("sd3", "--seed", 5, "--steps", 6, "--size", "16x8", "--cfg", 4, "--skip-guidance", scale, *options)
                wanted = self.reference(pipeline, 5, guidance_scale=4, num_inference_steps=6, width=16, height=8, skip_guidance_layers=layers, skip_layer_guidance_scale=scale,
                                        skip_layer_guidance_start=start, skip_layer_guidance_stop=stop)
                self.compare(dumped, wanted, 6)
        self.assertIn("Skip layers: 2,0", PIL.Image.open(self.out / "x.png").text["parameters"])
        one = ["--skip-guidance", 2]
        (self.out / "x.png").unlink()
        self.refuse(self.root / "sd3", [
            (flux.nothing, one, ["7,8,9", "0 to 2"]), (flux.nothing, [*one, "--skip-layers", "3"], ["0 to 2"]), (flux.nothing, [*one, "--skip-layers", "1,"], ["1,"]), (flux.nothing, [*one, "--skip-layers", " 1"], ["numbers"]),
            (flux.nothing, [*one, "--skip-layers", "1", "--cfg", 1], ["off"]), (flux.nothing, [*one, "--skip-layers", "1", "--skip-start", 0.5], ["0.5", "0.2"]), (flux.nothing, ["--skip-layers", "1"], ["there is none"])])

    def test_others(self):
        flux.make_folder(self.root / "schnell", "schnell")
        self.refuse(self.root / "schnell", [(flux.nothing, ["--skip-guidance", 2, "--skip-layers", "1"], ["schnell", "Stable Diffusion 3"]), (flux.nothing, ["--image", self.png(), "--image", self.png()], ["2 pictures", "schnell"])])

    def png(self):
        PIL.Image.new("RGB", (8, 8)).save(self.out / "x8.png")
        return self.out / "x8.png"


if __name__ == "__main__":
    unittest.main()
