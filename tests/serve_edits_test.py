"""OpenAI's edits and variations of pictures, which come as forms: they are what rdna image draws of the same picture and
mask, byte for byte; by OpenAI's own client too; and forms that are wrong."""
import base64
import io
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import numpy as np
import PIL.Image

import image_command_test
import rdna_program
import serving

PROMPT, NEGATIVE = image_command_test.PROMPT, image_command_test.NEGATIVE
EDITS, VARIATIONS = "/v1/images/edits", "/v1/images/variations"


def picture(width, height, seed=5, mode="RGB"):
    values = np.random.default_rng(seed).integers(0, 256, (height, width, len(mode)), np.uint8)
    if mode == "RGBA":
        values[:, :, 3] = np.where(np.arange(width) < width // 2, values[:, :, 3] // 2, 255)  # transparent from half on: opacity up to 127
    return PIL.Image.fromarray(values, mode)


def png(image, kind="PNG"):
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def form(parts, boundary="xYz", files=("image", "mask", "image[]")):
    """A body, and its Content-Type, of (name, value): files are those of these names."""
    lines = []
    for name, value in parts:
        file = '; filename="a \\"b\\".png"\r\nContent-Type: image/png' if name in files else ""
        lines.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + (value if isinstance(value, bytes) else str(value).encode()) + b"\r\n")
    return b"".join(lines) + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


class Edits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        image_command_test.make_folder(cls.folder / "sd")
        cls.server = serving.serve_for(cls, cls.folder / "sd", model_option="--images")

    def command(self, init, *options, mask=None, prompt=PROMPT):
        """The files that rdna image writes of pictures."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            init.convert("RGB").save(folder / "init.png")
            if mask is not None:
                PIL.Image.fromarray(np.where(np.asarray(mask)[:, :, 3] < 128, 255, 0).astype(np.uint8)).save(folder / "mask.png")
                options = (*options, "--mask", folder / "mask.png")
            said = rdna_program.output("image", self.folder / "sd", prompt, "--init", folder / "init.png", "--out", folder / "x.png", "--json", "--device", rdna_program.DEVICE, *options)
            return [pathlib.Path(path).read_bytes() for path in json.loads(said)["files"]]

    def send(self, path, *parts, **more):
        body, headers = form([*parts, *more.items()])
        return self.server.ask("POST", path, body, headers)

    def drawn(self, path, *parts, **more):
        status, _, text = self.send(path, *parts, **more)
        self.assertEqual(status, 200, text)
        return [base64.b64decode(entry["b64_json"], validate=True) for entry in json.loads(text)["data"]]

    def test_masks(self):
        init, mask = picture(40, 24), picture(40, 24, 6, "RGBA")
        want = self.command(init, "--count", 2, "--steps", 3, "--seed", 2, "--negative", NEGATIVE, mask=mask)
        got = self.drawn(EDITS, ("image", png(init)), ("mask", png(mask)), prompt=PROMPT, n=2, size="40x24", response_format="b64_json", steps=3, seed=2, negative_prompt=NEGATIVE, user="me")
        self.assertEqual(got, want)
        self.assertNotEqual(want, self.command(init, "--count", 2, "--steps", 3, "--seed", 2, "--negative", NEGATIVE, "--strength", 1))
        # without a mask the picture's own transparency is one
        clear = picture(40, 24, 7, "RGBA")
        got = self.drawn(EDITS, ("image[]", png(clear)), prompt=PROMPT, steps=3, seed=4, strength=0.7)
        self.assertEqual(got, self.command(clear, "--steps", 3, "--seed", 4, "--strength", 0.7, mask=clear))

    def test_whole_pictures(self):
        init = picture(40, 24)
        for data in (png(init), png(init.convert("RGBA"))):
            got = self.drawn(EDITS, ("image", data), prompt=PROMPT, size="auto", steps=4, seed=2, sampler="Euler Karras", guidance_scale=2.5)
            self.assertEqual(got, self.command(init, "--steps", 4, "--seed", 2, "--sampler", "euler", "--schedule", "karras", "--cfg", 2.5))
        photo = png(init, "JPEG")
        got = self.drawn(VARIATIONS, ("image", photo), n=2, steps=4, seed=2, strength=0.5, model="sd")
        self.assertEqual(got, self.command(PIL.Image.open(io.BytesIO(photo)), "--count", 2, "--steps", 4, "--seed", 2, "--strength", 0.5, prompt=""))

    def test_forms(self):
        """Ways in which clients may write the same form."""
        init = png(picture(40, 24))
        want = self.drawn(VARIATIONS, ("image", init), steps=1, seed=2, strength=1)
        body, headers = form([("image", init), ("steps", 1), ("seed", 2), ("strength", 1)])
        quoted = {"Content-Type": 'Multipart/Form-Data; charset=utf-8; Boundary="xYz"'}
        ways = [(body, quoted), (b"before\r\n" + body + b"behind", headers), (body.replace(b"--xYz\r\n", b"--xYz \t\r\n"), headers), (body.replace(b"Content-Disposition: form-data;", b"X: y\r\ncontent-disposition:form-data ;"), headers),
                (body.replace(b'name="steps"', b"name=steps"), headers), (body.replace(b"\r\n\r\n1\r\n", b"\r\nContent-Transfer-Encoding: 8bit\r\n\r\n1\r\n", 1), headers)]
        for body, headers in ways:
            with self.subTest(body[:60]):
                status, _, text = self.server.ask("POST", VARIATIONS, body, headers)
                self.assertEqual(status, 200, text)
                self.assertEqual([base64.b64decode(json.loads(text)["data"][0]["b64_json"])], want)

    def test_official_client(self):
        if os.environ.get("RDNA_TEST_CLIENTS", "1") == "0":
            self.skipTest("RDNA_TEST_CLIENTS=0, and the interface's client is needed")
        python = subprocess.run([rdna_program.ROOT / "packaging/client-venv.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        init, mask = picture(40, 24), picture(40, 24, 6, "RGBA")
        for name, image in (("init", init), ("mask", mask)):
            image.save(self.folder / f"{name}.png")
        script = f"""import openai, pathlib
folder = pathlib.Path({str(self.folder)!r})
with openai.OpenAI(base_url="{self.server.url}/v1", api_key="none", max_retries=0) as client:
    more = dict(model="sd", response_format="b64_json", size="auto", extra_body={{"seed": 6, "steps": 2}})
    with open(folder / "init.png", "rb") as image, open(folder / "mask.png", "rb") as mask:
        print(client.images.edit(image=image, mask=mask, prompt={PROMPT!r}, n=1, **more).data[0].b64_json)
    print(client.images.edit(image=[("a.png", (folder / "init.png").read_bytes(), "image/png")], prompt={PROMPT!r}, **more).data[0].b64_json)
    print(client.images.create_variation(image=(folder / "init.png").read_bytes(), **more).data[0].b64_json)
    for options in ({{"size": "48x24"}}, {{"n": 11}}, {{"model": "other"}}, {{"image": b"no picture"}}, {{"mask": (folder / "init.png").read_bytes()}}):
        try:
            client.images.edit(**{{"image": folder / "init.png", "prompt": "x", **options}})
        except openai.APIStatusError as error:
            print(error.status_code, error.body["type"], error.body["param"])
"""
        said = subprocess.run([python, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        seeded = ["--seed", 6, "--steps", 2]
        self.assertEqual([base64.b64decode(line) for line in said[:3]], self.command(init, *seeded, mask=mask) + self.command(init, *seeded) + self.command(init, *seeded, prompt=""))
        self.assertEqual(said[3:], ["400 invalid_request_error size", "400 invalid_request_error n", "404 invalid_request_error model", "400 invalid_request_error image", "400 invalid_request_error mask"])

    def test_refusals(self):
        small, clear = png(picture(40, 24)), png(picture(40, 24, 6, "RGBA"))
        image, prompt = ("image", small), ("prompt", "x")
        cases = [(EDITS, [prompt], "image", "missing"), (EDITS, [image], "prompt", "missing"), (EDITS, [("image", b""), prompt], "image", "something else"), (EDITS, [("image", small[:200]), prompt], "image", ""),
                 (EDITS, [("image", b"GIF89a"), prompt], "image", "a GIF"), (EDITS, [image, image, prompt], "image", "2 pictures"), (EDITS, [image, ("image[]", small), prompt], "image", "2 pictures"),
                 (EDITS, [image, prompt, ("mask", png(picture(40, 28, 6, "RGBA")))], "mask", "40 x 28"), (EDITS, [image, prompt, ("mask", small)], "mask", "transparent"), (EDITS, [image, prompt, ("mask", b"x")], "mask", "PNG"),
                 (EDITS, [image, ("prompt", b"\xff")], "prompt", "UTF-8"), (EDITS, [image, prompt, ("n", "x")], "n", "a text"), (EDITS, [image, prompt, ("n", "1.5")], "n", "a number"), (EDITS, [image, prompt, ("n", "0")], "n", "1 to 10"),
                 (EDITS, [image, prompt, ("size", "80x24")], "size", "not resized"), (EDITS, [image, prompt, ("size", "x")], "size", "size"), (EDITS, [image, prompt, ("response_format", "url")], "response_format", "b64_json"),
                 (EDITS, [image, prompt, ("strength", "2")], "strength", "from 0 to 1"), (EDITS, [image, prompt, ("strength", "0")], "strength", "strength"), (EDITS, [image, prompt, ("stream", "3")], "stream", "true or false"), (EDITS, [image, prompt, ("partial_images", "1")], "partial_images", "of a stream"),
                 (EDITS, [image, prompt, ("magic", "1")], "magic", "magic"), (EDITS, [image, prompt, ("background", "transparent")], "background", "background"), (EDITS, [("image", png(picture(41, 24))), prompt], "image", "multiples of 4"),
                 (EDITS, [("image", png(picture(2052, 4))), prompt], "image", "2048"), (EDITS, [image, ("prompt", "x" * 40000)], "prompt", "32768"), (EDITS, [image, prompt, ("schedule", "none")], "schedule", "none"),
                 (VARIATIONS, [image, prompt], "prompt", "prompt"), (VARIATIONS, [image, ("mask", clear)], "mask", "mask"), (VARIATIONS, [], "image", "missing"), (VARIATIONS, [("n", 1)], "image", "missing")]
        cases += [(EDITS, [image, *[(f"f{i}", "") for i in range(64)]], "", "64 parts")]
        for path, parts, field, word in cases:
            with self.subTest(f"{path} {str(parts)[:90]} {word}"):
                body, headers = form(parts)
                status, _, text = self.server.ask("POST", path, body, headers)
                self.assertEqual(status, 400, text)
                said = json.loads(text)["error"]
                self.assertEqual(said["param"] or "", field)
                self.assertIn(word, said["message"])
        body, headers = form([("prompt", "x")], files=("image", "prompt"))
        self.assertEqual(self.server.ask("POST", EDITS, body, headers)[0], 400)  # a file is no text
        body, headers = form([("image", "abc"), prompt], files=())
        self.assertIn("must be a file", self.server.ask("POST", EDITS, body, headers)[2])
        self.assertEqual(self.server.ask("GET", EDITS)[0], 405)

    def test_broken_forms(self):
        body, headers = form([("image", png(picture(40, 24))), ("prompt", "x")])
        typed = lambda text: {"Content-Type": text}
        cases = [(body, {}, 415), (body, typed("application/x-www-form-urlencoded"), 415), (json.dumps({"prompt": "x"}).encode(), typed("application/json"), 415), (body, typed("multipart/form-data"), 400),
                 (body, typed("multipart/form-data; boundary="), 400), (body, typed("multipart/form-data; boundary=" + 71 * "x"), 400), (body, typed('multipart/form-data; boundary="xYz'), 400), (body, typed("multipart/form-data; boundary=other"), 400),
                 (b"", headers, 400), (body[:-9], headers, 400), (body[:300], headers, 400), (body[:20], headers, 400), (body.replace(b"--xYz\r\n", b"--xYzz\r\n"), headers, 400), (body.replace(b"form-data; name", b"attachment; name"), headers, 400),
                 (body.replace(b'name="prompt"', b'name="prompt'), headers, 400), (body.replace(b'name="prompt"', b'name=""'), headers, 400), (body.replace(b'name="prompt"', b'name="' + 64 * b"x" + b'"'), headers, 400),
                 (body.replace(b"Content-Type:", b"Content-Transfer-Encoding: base64\r\nX:"), headers, 400), (body.replace(b"Content-Disposition", b"X" * 9000 + b": y\r\nContent-Disposition"), headers, 400),
                 (body.replace(b'Content-Disposition: form-data; name="prompt"', b"X: y"), headers, 400)]
        for body, headers, status in cases:
            with self.subTest(f"{headers} {body[:40]}"):
                found, _, text = self.server.ask("POST", EDITS, body, headers or {"Content-Type": "text/plain"})
                self.assertEqual(found, status, text)
                self.assertTrue(json.loads(text)["error"]["message"])

    def test_damaged_forms(self):
        """Whatever is done to a form, it is an answer or a refusal, and the server draws as before."""
        order = random.Random(3)
        whole, headers = form([("image", png(picture(8, 8))), ("mask", png(picture(8, 8, 6, "RGBA"))), ("prompt", "x"), ("steps", 1), ("seed", 3), ("n", 1)])
        before = self.server.ask("POST", EDITS, whole, headers)
        self.assertEqual(before[0], 200, before[2])
        for _ in range(150):
            body = bytearray(whole)
            for _ in range(order.randrange(1, 4)):
                at = order.randrange(len(body))
                body[at:at + order.randrange(1, 9)] = order.choice([b"", b"\r\n", b"--xYz", bytes([order.randrange(256)]), b'"', b"\r\n--xYz--"])
            status, _, text = self.server.ask("POST", EDITS, bytes(body), headers)
            self.assertIn(status, (200, 400, 404), text)
        self.assertEqual(json.loads(self.server.ask("POST", EDITS, whole, headers)[2])["data"], json.loads(before[2])["data"])


if __name__ == "__main__":
    unittest.main()
