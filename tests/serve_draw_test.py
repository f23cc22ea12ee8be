"""The page of a server that draws, in Chromium: packaging/setup.sh packaging/browser-packages.txt installs it, and without it
this is skipped."""
import base64
import io
import json
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import numpy as np
import PIL.Image
import safetensors.torch

import browser
import image_adapter_test
import image_command_test
import image_upscaler_test as upscaler
import serving
from serve_extras_test import lora

FIGURES = "document.querySelectorAll('figure').length"
SET = "for (const [id, value] of Object.entries(%s)) document.getElementById(id).value = value"
DRAW = "document.getElementById('ask').requestSubmit()"


def pixels(data):
    return np.asarray(PIL.Image.open(io.BytesIO(data))).astype(int)


class Draw(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder = serving.folder_for(cls)
        pipeline = image_command_test.make_folder(folder / "sd")
        image_adapter_test.random_encoder(2).save_pretrained(folder / "encoder")
        safetensors.torch.save_file(image_adapter_test.random_adapter(pipeline.unet, 3, image_adapter_test.VISION["projection_dim"], False), folder / "face.safetensors")
        safetensors.torch.save_file(lora(pipeline, 0), folder / "ink.safetensors")
        small = upscaler.save(folder / "toy-x2.safetensors", upscaler.random_network(upscaler.Compact(scale=2), 1).state_dict())
        cls.server = serving.serve_for(cls, folder / "sd", "--upscaler", small, "--ip-adapter", folder / "face.safetensors", "--ip-encoder", folder / "encoder", "--lora", folder / "ink.safetensors", "--key", "secret", model_option="--images")

    def open(self):
        tab = browser.Browser(1200, 900)
        self.addCleanup(tab.close)
        tab.open(self.server.url + "/")
        tab.wait("!document.getElementById('locked').hidden")  # it asks for the key
        tab.evaluate("localStorage.setItem('rdna.key', 'secret')")
        tab.open(self.server.url + "/")
        tab.wait("document.getElementById('model').textContent === 'sd \u00b7 Stable Diffusion'")
        tab.problems.clear()  # the refusal without a key
        return tab

    def ask(self, path, **body):
        status, _, text = self.server.ask("POST", "/sdapi/v1/" + path, body, {"Authorization": "Bearer secret"})
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def figure(self, tab, which=0):
        return base64.b64decode(tab.evaluate(f"document.querySelectorAll('figure img')[{which}].src").split(",")[1])

    def test_pictures(self):
        """What is asked by hand is what the interface answers: texts and LoRAs, a mask over a picture, larger ones."""
        tab = self.open()
        tab.evaluate(SET % json.dumps({"prompt": "a dog", "negative": "cats", "width": 40, "height": 32, "steps": 3, "guidance": 4, "seed": 7, "count": 2, "sampler": "Euler a"}))
        tab.evaluate("document.querySelector('#loras input').click(); document.querySelector('#loras input[type=number]').value = 0.5")
        tab.evaluate(DRAW)
        tab.wait(FIGURES + " === 2", 60)
        asked = {"prompt": "a dog <lora:ink:0.5>", "negative_prompt": "cats", "width": 40, "height": 32, "steps": 3, "cfg_scale": 4, "seed": 7, "n_iter": 2, "sampler_name": "Euler a"}
        want = [base64.b64decode(image) for image in self.ask("txt2img", **asked)["images"]]
        self.assertEqual([self.figure(tab, 1), self.figure(tab, 0)], want)
        tab.evaluate("[...document.querySelectorAll('figure:last-of-type button')].find((b) => b.textContent === 'Begin with it').click()")
        tab.wait("document.getElementById('mask').width === 40")
        left, top, width, height = tab.evaluate("(() => { const node = document.getElementById('mask'); node.scrollIntoView(); const b = node.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
        self.assertGreater(width, 200)
        for i, kind in enumerate(("mousePressed", "mouseMoved", "mouseMoved", "mouseReleased")):
            tab.call("Input.dispatchMouseEvent", type=kind, x=left + width * (0.6 + 0.1 * i), y=top + height / 2, button="left", buttons=int(kind != "mouseReleased"), clickCount=1)
        tab.evaluate(SET % json.dumps({"strength": 0.8, "count": 1, "seed": 9}))
        tab.evaluate(DRAW)
        tab.wait(FIGURES + " === 3", 60)
        changed = np.abs(pixels(self.figure(tab)) - pixels(want[0])).max(-1)
        self.assertEqual(changed.shape, (32, 40))
        self.assertEqual(changed[:, :12].max(), 0)  # far from what was painted it is what it was
        self.assertGreater(changed[14:18, 26:36].min(), 0)
        tab.evaluate("[...document.querySelectorAll('figure:last-of-type button')].find((b) => b.textContent === 'Enlarge: toy-x2').click()")
        tab.wait(FIGURES + " === 4", 60)
        self.assertEqual(self.figure(tab), base64.b64decode(self.ask("extra-single-image", image=base64.b64encode(want[0]).decode(), upscaler_1="toy-x2", upscaling_resize=2)["image"]))
        tab.evaluate("document.getElementById('forget').click()")
        tab.evaluate(SET % json.dumps({"times": "2", "upscaler": "toy-x2", "width": 24, "height": 20}))
        tab.evaluate(DRAW)
        tab.wait(FIGURES + " === 5", 60)
        self.assertEqual(pixels(self.figure(tab)).shape, (40, 48, 3))
        self.assertEqual(tab.problems, [])
        self.assertTrue(all(address.startswith((self.server.url, "data:")) for address in tab.requests), tab.requests)

    def test_progress_and_stop(self):
        tab = self.open()
        self.ask("txt2img", prompt="x", steps=2, width=256, height=256)  # from here on there are previews
        tab.evaluate(SET % json.dumps({"prompt": "a dog", "width": 256, "height": 256, "steps": 150}))
        tab.evaluate(DRAW)
        tab.wait("document.getElementById('progress').value > 0 && /^Step [0-9]+ of 150$/.test(document.getElementById('state').textContent)", 60)
        tab.wait("!document.getElementById('preview').hidden", 60)
        tab.evaluate("document.getElementById('stop').click()")
        tab.wait("document.getElementById('state').textContent === 'Stopped' && document.getElementById('progress').hidden")
        serving.wait_for(lambda: json.loads(self.server.ask("GET", "/sdapi/v1/progress", headers={"Authorization": "Bearer secret"})[2])["state"]["job_count"] == 0)
        tab.evaluate(SET % json.dumps({"width": 42, "steps": 1}) + "; document.getElementById('ask').noValidate = true; " + DRAW)  # refused by the server's sentence
        tab.wait("document.getElementById('state').classList.contains('wrong')")
        self.assertIn("multiples of 4", tab.evaluate("document.getElementById('state').textContent"))
        for width in (1200, 390):  # nothing sticks out
            tab.resize(width, 800)
            self.assertLessEqual(tab.evaluate("document.documentElement.scrollWidth"), width)


if __name__ == "__main__":
    if not browser.PROGRAM:
        print("skipped: there is no Chromium here; packaging/setup.sh packaging/browser-packages.txt installs one")
        raise SystemExit(77)
    unittest.main()
