"""FLUX Fill, which reads a mask and the rest of a picture, and Kontext, which looks at another picture: every step and the
picture against diffusers' pipelines in float64 on small random networks."""
import base64
import pathlib
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image

import image_flux_test
import rdna_program
import serve_edits_test
import serving
from image_flux_test import PROMPT, VAE, make_folder


class Edits(unittest.TestCase):
    draw, reference, compare = (getattr(image_flux_test.Pictures, name) for name in ("draw", "reference", "compare"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        places, channels = (2 ** (len(VAE["block_out_channels"]) - 1)) ** 2, VAE["latent_channels"]
        cls.pipelines = {"fill": make_folder(cls.root / "fill", "dev", diffusers.FluxFillPipeline, in_channels=4 * (2 * channels + places), out_channels=4 * channels),
                         "kontext": make_folder(cls.root / "kontext", "dev", diffusers.FluxKontextPipeline)}

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        random = np.random.default_rng(5)
        PIL.Image.fromarray(random.integers(0, 256, (24, 40, 3), np.uint8)).save(self.out / "init.png")
        PIL.Image.fromarray(random.choice(np.array([0, 127, 128, 255], np.uint8), (24, 40))).save(self.out / "mask.png")
        self.image, self.mask = (PIL.Image.open(self.out / name).copy() for name in ("init.png", "mask.png"))

    def test_fill(self):
        for steps, strength, options, guidance in [(6, 1, [], 30), (9, 0.6, ["--strength", 0.6, "--cfg", 5], 5)]:
            with self.subTest(f"{steps} {strength}"):
                report, dumped = self.draw("fill", "--init", self.out / "init.png", "--mask", self.out / "mask.png", "--seed", 6, "--steps", steps, *options)
                wanted = self.reference(self.pipelines["fill"], 6, 24, 40, image=self.image, mask_image=self.mask, strength=strength, num_inference_steps=steps, guidance_scale=guidance)
                self.compare(dumped, wanted, steps - int(steps - steps * strength))
        self.assertEqual(report["model"], "FLUX.1 Fill")

    def test_kontext(self):
        for options, given, guidance in [(["--init", self.out / "init.png"], self.image, 3.5), (["--size", "40x24"], None, 3.5)]:
            with self.subTest(str(options)):
                report, dumped = self.draw("kontext", "--seed", 6, "--steps", 5, *options)
                wanted = self.reference(self.pipelines["kontext"], 6, 24, 40, image=given, num_inference_steps=5, guidance_scale=guidance, max_area=24 * 40, _auto_resize=False)
                self.compare(dumped, wanted, 5)
        self.assertEqual(report["model"], "FLUX.1 Kontext")
        self.draw("kontext", "--init", self.out / "init.png", "--steps", 2, "--seed", 3, "--count", 2)
        several = [(self.out / f"x-{i}.png").read_bytes() for i in range(2)]
        report, _ = self.draw("kontext", "--init", self.out / "init.png", "--steps", 2, "--seed", 4)
        self.assertEqual((self.out / "x.png").read_bytes(), several[1])
        self.assertIn(", Context: given,", PIL.Image.open(self.out / "x.png").text["parameters"])
        self.assertLess(abs(report["plan"]["peak"] - report["peak_bytes"]), 0.03 * report["peak_bytes"])

    def test_refusals(self):
        init, mask = ["--init", self.out / "init.png"], ["--mask", self.out / "mask.png"]
        for model, options, words in [("fill", [], ["asks for one and a mask"]), ("fill", init, ["asks for one and a mask"]), ("kontext", [*init, *mask], ["FLUX.1 Kontext", "without a mask"]), ("kontext", [*init, "--strength", 0.5], ["all steps"])]:
            with self.subTest(f"{model} {options}"):
                result = rdna_program.run("image", self.root / model, PROMPT, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE, *options)
                self.assertEqual(result.returncode, 1, result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr.decode())

    def test_served_without_strength(self):
        """As rdna image refuses --strength."""
        server = serving.serve_for(self, self.root / "kontext", model_option="--images")
        data = (self.out / "init.png").read_bytes()
        body, headers = serve_edits_test.form([("image", data), ("prompt", "x"), ("steps", 2), ("strength", 0.5)])
        text = base64.b64encode(data).decode()
        job = {"operation": "image_transform", "prompt": "x", "steps": 2, "input_image": text, "strength": 0.5}
        old = {"prompt": "x", "steps": 2, "init_images": [text], "denoising_strength": 0.5}
        for path, sent, options in [("/v1/images/edits", body, [headers]), ("/v1/jobs", job, []), ("/sdapi/v1/img2img", old, [])]:
            status, _, said = server.ask("POST", path, sent, *options)
            self.assertIn(status, (400, 422), said)
            self.assertIn("all steps", said)


if __name__ == "__main__":
    unittest.main()
