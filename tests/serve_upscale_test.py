"""Pictures that rdna image and rdna serve make larger are those of rdna upscale, byte for byte."""
import base64
import io
import json
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import numpy as np
import PIL.Image

import image_command_test
import image_upscaler_test as upscaler
import rdna_program
import serving

EXTRA, LIST = "/sdapi/v1/extra-single-image", "/sdapi/v1/upscalers"


class Larger(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        image_command_test.make_folder(cls.folder / "sd")
        cls.small = upscaler.save(cls.folder / "toy-x2.safetensors", upscaler.random_network(upscaler.Compact(scale=2), 1).state_dict())
        cls.large = upscaler.save(cls.folder / "x4.safetensors", upscaler.random_network(upscaler.RRDBNet(blocks=1), 2).state_dict())
        cls.server = serving.serve_for(cls, cls.folder / "sd", "--upscaler", cls.small, "--upscaler", f"anime={cls.large}", model_option="--images")
        chance = np.random.default_rng(3)
        for name, mode, channels in (("a", "RGB", 3), ("b", "RGBA", 4)):
            PIL.Image.fromarray(chance.integers(0, 256, (11, 16, channels), np.uint8), mode).save(cls.folder / f"{name}.png")

    def upscale(self, model, name, *options):
        rdna_program.output("upscale", model, self.folder / name, "--out", self.folder / "out.png", "--device", rdna_program.DEVICE, *options)
        return (self.folder / "out.png").read_bytes()

    def extra(self, name="a.png", **body):
        image = base64.b64encode((self.folder / name).read_bytes()).decode()
        answer = self.server.post(EXTRA, image=image, **body)
        self.assertEqual(answer["html_info"], "")
        return base64.b64decode(answer["image"])

    def test_command(self):
        draw = lambda *more: rdna_program.output("image", self.folder / "sd", "a cat", "--seed", 3, "--steps", 1, "--device", rdna_program.DEVICE, *more)
        draw("--out", self.folder / "drawn.png")
        for model, name in ((self.small, "toy-x2"), (f"other={self.large}", "other")):
            draw("--out", self.folder / "large.png", "--upscale", model)
            made = (self.folder / "large.png").read_bytes()
            self.assertIn(f", Postprocess upscaler: {name}", PIL.Image.open(io.BytesIO(made)).text["parameters"])
            self.assertEqual(made, self.upscale(model, "drawn.png"))
        draw("--out", self.folder / "grid.png", "--count", 3, "--grid", "--upscale", self.small)
        with PIL.Image.open(self.folder / "grid.png") as grid, PIL.Image.open(self.folder / "drawn.png") as drawn:
            self.assertEqual(grid.size, tuple(4 * side for side in drawn.size))
        result = rdna_program.run("image", self.folder / "sd", "a cat", "--upscale", self.folder / "none.safetensors", "--device", rdna_program.DEVICE, "--out", self.folder / "no.png")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"none.safetensors", result.stderr)

    def test_server(self):
        for name in ("a.png", "b.png"):
            self.assertEqual(self.extra(name, upscaler_1="toy-x2"), self.upscale(self.small, name))
            self.assertEqual(self.extra(name, upscaler_1="anime", upscaling_resize=4), self.upscale(f"anime={self.large}", name))
            self.assertEqual(self.extra(name, upscaler_1="anime", upscaling_resize=3, resize_mode=0, upscaler_2="None", gfpgan_visibility=0),
                             self.upscale(self.large, name, "--scale", 3))
        self.assertEqual(self.extra(upscaler_1="anime", resize_mode=1, upscaling_resize_w=48, upscaling_resize_h=33), self.upscale(self.large, "a.png", "--scale", 3))
        self.assertEqual(json.loads(self.server.ask("GET", LIST)[2]), [{"name": "toy-x2", "model_name": None, "model_path": str(self.small), "model_url": None, "scale": 2},
                                                 {"name": "anime", "model_name": None, "model_path": str(self.large), "model_url": None, "scale": 4}])

    def test_refused(self):
        image = base64.b64encode((self.folder / "a.png").read_bytes()).decode()
        PIL.Image.new("RGB", (2049, 1)).save(self.folder / "wide.png")
        wide = base64.b64encode((self.folder / "wide.png").read_bytes()).decode()
        cases = [({}, "upscaler_1"), ({"upscaler_1": "other"}, "upscaler_1"), ({"upscaler_1": 3}, "upscaler_1"), ({"image": 3}, "image"), ({"image": "AAAA"}, "image"), ({"image": wide}, "image"),
                 ({"upscaler_1": "anime", "upscaling_resize": 9}, "upscaling_resize"), ({"upscaler_1": "anime", "resize_mode": 2}, "resize_mode"), ({"upscaler_1": "anime", "resize_mode": 1}, "upscaling_resize_w"), ({"upscaler_1": "anime", "resize_mode": 1, "upscaling_resize_w": 16000, "upscaling_resize_h": 11000}, "upscaling_resize_w"),
                 ({"upscaler_1": "anime", "upscaler_2": "toy-x2"}, "upscaler_2"), ({"upscaler_1": "anime", "gfpgan_visibility": 0.5}, "gfpgan_visibility"), ({"upscaler_1": "anime", "x": 1}, "x")]
        for body, field in cases:
            with self.subTest(body=str(body)[:60]):
                status, _, text = self.server.ask("POST", EXTRA, {"image": image, **body})
                self.assertEqual(status, 422, text)
                self.assertEqual(json.loads(text)["detail"][0]["loc"], ["body", field])
        same = rdna_program.run("serve", "--images", self.folder / "sd", "--upscaler", self.small, "--upscaler", f"toy-x2={self.large}", "--device", rdna_program.DEVICE)
        self.assertEqual(same.returncode, 1)
        self.assertIn(b"two upscalers are called 'toy-x2'", same.stderr)
        alone = rdna_program.run("serve", rdna_program.DEMO_MODEL, "--upscaler", self.small)
        self.assertEqual(alone.returncode, 2)
        self.assertIn(b"--upscaler", alone.stderr)


if __name__ == "__main__":
    unittest.main()
