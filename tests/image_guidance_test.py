"""Guidance by perturbed attention (PAG), and rescaled: a U-Net's answers, and pictures, against diffusers' in float64 on small
random networks."""
import ctypes
import pathlib
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import torch
from diffusers.pipelines.pag.pag_utils import PAGMixin

import image_command_test as command
import image_control_test
import image_unet_test
from image_command_test import NEGATIVE, PROMPT, make_folder
from image_control_test import added, double, given
from image_library import F16, F32, INT, INVALID, LIBRARY, POINTER, TEXT
from image_unet_test import ONE, XL, error, random_network


class Input(ctypes.Structure):
    _fields_ = image_control_test.Input._fields_ + [("perturbed", INT), ("perturbed_layers", TEXT)]


def theirs(places):
    """Our places as diffusers' patterns of modules' names."""
    patterns = []
    for place in places.replace(" ", ",").split(","):
        way, *numbers = place.split(".")
        parts = ["mid_block.attentions.0"] if way == "mid" else [way + "_blocks"]
        for number, form in zip(numbers, ["transformer_blocks.{}"] if way == "mid" else ["{}", "attentions.{}", "transformer_blocks.{}"]):
            parts.append(form.format(number))
        patterns.append("^" + r"\.".join(part.replace(".", r"\.") for part in parts) + r"\.")
    return patterns


class Networks(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def ask(self, ours, values, timestep, perturbed, places):
        count, channels, height, width = values["sample"].shape
        sized = {"count": count, "height": height, "width": width, "tokens": values["states"].shape[1], "timestep": timestep, "pooled_width": 12 * ("pooled" in values), "number_count": 6 * ("pooled" in values)}
        out = np.full((count, 4, height, width), np.nan, np.float32)
        asked = Input(**{"size": ctypes.sizeof(Input), **{k: v.ctypes.data for k, v in values.items()}, **sized, "perturbed": perturbed, "perturbed_layers": places})
        return out, LIBRARY.rdna_image_unet_run(ours.handle, ctypes.byref(asked), out.ctypes.data)

    def test_places(self):
        """Of three samples the last one, and of two."""
        random = np.random.default_rng(3)
        for name, settings, dtype, limit in [("1", ONE, F32, 1e-4), ("XL", XL, F32, 1e-4), ("XL in f16", XL, F16, 16 * 2.0**-11)]:
            unet = random_network(settings, 3)
            unet.save_pretrained(self.folder / "unet")
            ours = image_unet_test.UNet(self.folder, dtype)
            self.assertEqual(ours.status, 0, ours.sentence)
            unet.double()
            plain = unet.attn_processors
            for places, count in [("mid", 3), ("down.1", 2), ("up", 3), ("mid,up.1.2 down.1.0.0", 3), *([("mid.2,up.0.1.2", 2)] if settings is XL else [])]:
                with self.subTest(f"{name} {places}"):
                    values = given(count, 6, 5, 4, random, unet)
                    mixin = type("Mixin", (PAGMixin,), {})()
                    mixin.unet = unet
                    mixin.set_pag_applied_layers(theirs(places))
                    mixin._set_pag_attn_processor(mixin.pag_applied_layers, count == 3)
                    with torch.no_grad():
                        wanted = unet(double(values, "sample"), 77, double(values, "states"), added_cond_kwargs=added(values)).sample
                    unet.set_attn_processor(dict(plain))
                    got, status = self.ask(ours, values, 77, 1, places.encode())
                    self.assertEqual(status, 0, LIBRARY.rdna_last_error())
                    self.assertLess(error(got, wanted), limit)
                    without, _ = self.ask(ours, values, 77, 0, None)
                    self.assertGreater(error(without[-1:], wanted[-1:]), 1e-2)

    def test_refused(self):
        random_network(ONE, 3).save_pretrained(self.folder / "unet")
        ours = image_unet_test.UNet(self.folder)
        values = given(2, 4, 4, 3, np.random.default_rng(1), random_network(ONE, 3))
        for perturbed, places in [(1, None), (-1, b"mid"), (3, b"mid"), *((1, x) for x in (b"", b",", b"middle", b"mid.1", b"down.2", b"down.9", b"up.0", b"up.1.3", b"down.0.0.1", b"down.0.0.0.0", b"down.", b"down.x",
                                                                           b"up.99999999999", b"mid," * 33))]:
            self.assertEqual(self.ask(ours, values, 1, perturbed, places)[1], INVALID, places)
            self.assertTrue(LIBRARY.rdna_last_error())
        self.assertEqual(self.ask(ours, values, 1, 2, b"up.1.2.0")[1], 0)


class Pictures(unittest.TestCase):
    draw, reference, compare, refused = (getattr(command.Pictures, name) for name in ("draw", "reference", "compare", "refused"))

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

    def pipeline(self, kind, model, **options):
        parts = {k: v for k, v in self.pipelines[model].components.items() if k != "image_encoder"}
        if "pag_applied_layers" in options:  # which leaves its ways of attention in the network
            unet = diffusers.UNet2DConditionModel(**parts["unet"].config).double()
            unet.load_state_dict(parts["unet"].state_dict())
            parts["unet"] = unet
        pipeline = kind(**parts, **options, **({"add_watermarker": False} if model == "xl" else {}))
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    def test_steps(self):
        """With guidance and without, at several places, and with a picture to begin with."""
        image = PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (24, 40, 3), np.uint8))
        image.save(self.out / "init.png")
        sized, begun = {"width": 40, "height": 24}, {"image": image, "strength": 0.5}
        for model, kind, sampler, cfg, places, others in [
                ("sd", diffusers.StableDiffusionPAGPipeline, "ddim", 4, None, sized), ("sd", diffusers.StableDiffusionPAGPipeline, "heun", 1, "up.1.1,mid", sized),
                ("xl", diffusers.StableDiffusionXLPAGPipeline, "euler", 4, "mid", sized), ("xl", diffusers.StableDiffusionXLPAGPipeline, "euler", 1, "down.0", sized),
                ("sd", diffusers.StableDiffusionPAGImg2ImgPipeline, "euler", 4, "mid", begun), ("xl", diffusers.StableDiffusionXLPAGImg2ImgPipeline, "euler", 3, "mid", begun)]:
            with self.subTest(f"{model} {cfg} {places} {kind.__name__}"):
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                pipeline = self.pipeline(kind, model, pag_applied_layers=theirs(places or "mid"))
                options = ["--init", self.out / "init.png", "--strength", 0.5] if "image" in others else ["--size", "40x24"]
                _, dumped = self.draw(model, "--seed", 5, "--steps", 6, "--sampler", sampler, "--cfg", cfg, "--pag", 2.5, *(["--pag-layers", places] if places else []), *(["--negative", NEGATIVE] if cfg > 1 else []), *options)
                wanted = self.reference(pipeline, sampler, 5, prompt=PROMPT, negative_prompt=NEGATIVE if cfg > 1 else None, num_inference_steps=6, guidance=cfg, pag_scale=2.5, **others)
                self.compare(dumped, wanted, 3 if "image" in others else 11 if sampler == "heun" else 6)
        self.draw("sd", "--seed", 5, "--steps", 2, "--cfg", 3, "--pag", 2.5, "--pag-layers", "up.1.1,mid")
        self.assertIn("CFG scale: 3, PAG scale: 2.5, PAG layers: up.1.1 mid, Seed: 5", PIL.Image.open(self.out / "x.png").text["parameters"])
        first = (self.out / "x.png").read_bytes()
        self.draw("sd", "--seed", 5, "--steps", 2, "--cfg", 3, "--pag", 2.5, "--pag-layers", "up.1.1 mid")  # as the file says it
        self.assertEqual((self.out / "x.png").read_bytes(), first)

    def test_rescaled(self):
        for model, kind, pag in [("sd", diffusers.StableDiffusionPipeline, 0), ("xl", diffusers.StableDiffusionXLPipeline, 0), ("sd", diffusers.StableDiffusionPAGPipeline, 2)]:
            with self.subTest(f"{model} {pag}"):
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                pipeline = self.pipeline(kind, model, **({"pag_applied_layers": theirs("mid")} if pag else {}))
                _, dumped = self.draw(model, "--seed", 6, "--steps", 5, "--sampler", "euler", "--cfg", 9, "--cfg-rescale", 0.7, "--size", "40x24", "--negative", NEGATIVE, *(["--pag", pag] if pag else []))
                wanted = self.reference(pipeline, "euler", 6, prompt=PROMPT, negative_prompt=NEGATIVE, num_inference_steps=5, guidance=9, guidance_rescale=0.7, width=40, height=24, **({"pag_scale": pag} if pag else {}))
                self.compare(dumped, wanted, 5)
        self.assertIn("CFG rescale: 0.7", PIL.Image.open(self.out / "x.png").text["parameters"])

    def test_refusals(self):
        for options, words, status in [(["--pag-layers", "mid"], ["perturbed"], 1), (["--pag", 3, "--pag-layers", "down.1"], ["down.1"], 1), (["--pag", 3, "--pag-layers", "x"], ["'x'"], 1), (["--pag", -1], ["--pag"], 2),
                                       (["--cfg-rescale", 0.5, "--cfg", 1], ["rescaled"], 1), (["--cfg-rescale", 2], ["--cfg-rescale"], 2)]:
            with self.subTest(str(options)):
                self.refused(self.root / "sd", *options, words=words, status=status)


if __name__ == "__main__":
    unittest.main()
