"""What requests for pictures add to the model by the names of files that rdna serve was started with: LoRAs and ControlNets,
through every interface, are those of rdna image with the same files, byte for byte."""
import base64
import io
import json
import pathlib
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import numpy as np
import PIL.Image
import safetensors.torch
import torch

import image_command_test
import image_control_test
import image_flux_test
import rdna_program
import serving
from serve_edits_test import form, picture, png

PROMPT, NEGATIVE = image_command_test.PROMPT, image_command_test.NEGATIVE
OPENAI, TXT2IMG, IMG2IMG, JOBS, EDITS = "/v1/images/generations", "/sdapi/v1/txt2img", "/sdapi/v1/img2img", "/v1/jobs", "/v1/images/edits"
FORGET = {"steps": 2, "seed": 4}


def lora(pipeline, seed, rank=2):
    """Changes of two matrices of the U-Net and one of the text encoder, large enough to be seen."""
    generator, tensors = torch.Generator().manual_seed(seed), {}
    for part, prefix, ends in (("unet", "lora_unet_", ("attn1.to_q.weight", "ff.net.2.weight")), ("text_encoder", "lora_te_", ("layers.0.self_attn.v_proj.weight",))):
        for end in ends:
            name, weight = next((n, p) for n, p in getattr(pipeline, part).named_parameters() if n.endswith(end))
            whole = name if part == "unet" or name.startswith("text_model.") else "text_model." + name
            base = prefix + whole.removesuffix(".weight").replace(".", "_")
            tensors |= {f"{base}.lora_up.weight": torch.randn(len(weight), rank, generator=generator), f"{base}.lora_down.weight": torch.randn(rank, weight.shape[1], generator=generator) / 8}
    return tensors


class Extras(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        pipeline = image_command_test.make_folder(cls.folder / "sd")
        for i, name in enumerate(("ink", "gold")):
            safetensors.torch.save_file(lora(pipeline, i), cls.folder / f"{name}.safetensors")
        safetensors.torch.save_file({k: torch.ones(3, 3) for k in lora(pipeline, 0)}, cls.folder / "other.safetensors")
        for i in range(2):
            image_control_test.random_control(dict(pipeline.unet.config), 7 + i).save_pretrained(cls.folder / f"lines-{i}")
        width = pipeline.text_encoder.config.hidden_size
        safetensors.torch.save_file({"emb_params": torch.randn(2, width, generator=torch.Generator().manual_seed(1))}, cls.folder / "toy.safetensors")
        cls.words = ["--embedding", cls.folder / "toy.safetensors"]
        cls.server = serving.serve_for(cls, cls.folder / "sd", "--lora", cls.folder / "ink.safetensors", "--lora", f"shiny={cls.folder}/gold.safetensors:0.5", "--lora", cls.folder / "other.safetensors",
                                       "--control", cls.folder / "lines-0", "--control", f"pose={cls.folder}/lines-1", *cls.words, model_option="--images")

    def command(self, *options, prompt=PROMPT, init=None, guides=(), loras=()):
        """What rdna image draws; |guides| are (folder, picture), |loras| (file, scale)."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for i, (name, image) in enumerate(guides):
                image.save(folder / f"{i}.png")
                options += ("--control", self.folder / name, "--control-image", folder / f"{i}.png")
            if init is not None:
                init.save(folder / "init.png")
                options += ("--init", folder / "init.png")
            options += tuple(x for name, scale in loras for x in ("--lora", f"{self.folder}/{name}.safetensors:{scale}"))
            said = rdna_program.output("image", self.folder / "sd", prompt, "--out", folder / "x.png", "--json", "--device", rdna_program.DEVICE, *self.words, *map(str, options))
            return [pathlib.Path(path).read_bytes() for path in json.loads(said)["files"]]

    def openai(self, **body):
        return [base64.b64decode(entry["b64_json"]) for entry in self.server.post(OPENAI, prompt=PROMPT, **FORGET, **body)["data"]]

    def job(self, **body):
        job = self.server.post(JOBS, **{"prompt": PROMPT, **FORGET, **body})
        text = self.server.ask("GET", job["sse_url"])[2]
        return [base64.b64decode(json.loads(text.split("data: ")[-2])["image"])]

    def sdapi(self, path=TXT2IMG, **body):
        return [base64.b64decode(image) for image in self.server.post(path, **{"prompt": PROMPT, **FORGET, **body})["images"]]

    def test_loras(self):
        seeded = ("--steps", 2, "--seed", 4)
        plain, inked = self.command(*seeded), self.command(*seeded, loras=[("ink", 0.7)])
        both = self.command(*seeded, loras=[("ink", -0.25), ("gold", 0.5)])
        self.assertEqual(len({plain[0], inked[0], both[0]}), 3)
        pixels = [np.asarray(PIL.Image.open(io.BytesIO(data[0]))).astype(int) for data in (plain, inked, both)]
        self.assertTrue(all(abs(a - b).max() > 2 for a, b in ((pixels[0], pixels[1]), (pixels[1], pixels[2]))))
        self.assertEqual(self.openai(), plain)
        self.assertEqual(self.openai(loras=[{"name": "ink", "scale": 0.7}]), inked)
        self.assertEqual(self.sdapi(prompt="<lora:ink:0.7>" + PROMPT), inked)
        self.assertEqual(self.sdapi(prompt=f"{PROMPT}<lora:shiny><lora:ink:-0.25>"), both)  # its scale is that of the start
        self.assertEqual(self.openai(loras=[{"name": "shiny"}, {"name": "ink", "scale": -0.25}]), both)
        self.assertEqual(self.openai(loras=[]), plain)
        self.assertEqual(self.openai(loras=[{"name": "ink", "scale": 0}]), plain)
        init = picture(24, 40)
        want = self.command(*seeded, init=init, loras=[("ink", 0.7)])
        self.assertEqual(self.job(operation="image_transform", input_image=base64.b64encode(png(init)).decode(), strength=0.75, loras=[{"name": "ink", "scale": 0.7}]), want)
        body, headers = form([("image", png(init)), ("prompt", PROMPT), ("steps", 2), ("seed", 4), ("loras", '[{"name": "ink", "scale": 0.7}]')])
        self.assertEqual([base64.b64decode(json.loads(self.server.ask("POST", EDITS, body, headers)[2])["data"][0]["b64_json"])], want)
        self.assertIn("LoRA: ink.safetensors:0.7, Embeddings: toy.safetensors, ", PIL.Image.open(io.BytesIO(want[0])).text["parameters"])
        # one that is for another version of the model fails when it is loaded, and what comes next does not
        status, _, text = self.server.ask("POST", OPENAI, {"prompt": "x", "loras": [{"name": "other"}]})
        self.assertEqual(status, 500)
        self.assertIn("another version", text)
        self.assertEqual(self.openai(loras=[{"name": "ink", "scale": 0.7}]), inked)

    def test_words(self):
        self.assertEqual(self.sdapi(prompt="a toy"), self.command("--steps", 2, "--seed", 4, prompt="a toy"))

    def test_controls(self):
        seeded, images = ("--steps", 2, "--seed", 4), [picture(24, 40, seed) for seed in (1, 2)]
        texts = [base64.b64encode(png(image)).decode() for image in images]
        one = self.command(*seeded, "--control-scale", 0.8, guides=[("lines-0", images[0])])
        self.assertEqual(self.openai(size="24x40", controls=[{"name": "lines-0", "image": texts[0], "scale": 0.8}]), one)
        self.assertEqual(self.openai(controls=[{"name": "lines-0", "image": "data:image/png;base64," + texts[0], "scale": 0.8}]), one)  # which says the size
        self.assertEqual(self.job(operation="image_generation", controls=[{"name": "lines-0", "image": texts[0], "scale": 0.8}]), one)
        unit = {"enabled": True, "module": "none", "model": "lines-0 [e3fe7712]", "weight": 0.8, "image": texts[0], "resize_mode": "Crop and Resize", "processor_res": 512, "pixel_perfect": False, "control_mode": "Balanced"}
        self.assertEqual(self.sdapi(width=24, height=40, alwayson_scripts={"controlnet": {"args": [unit, {"enabled": False}]}}), one)
        seeded = ("--steps", 4, "--seed", 4)
        both = self.command(*seeded, "--control-scale", 0.8, "--control-scale", -0.5, "--control-start", 0.3, init=images[0], guides=[("lines-1", images[1]), ("lines-0", images[0])], loras=[("ink", 1)])
        self.assertEqual(self.job(operation="image_transform", input_image=texts[0], strength=0.75, steps=4, loras=[{"name": "ink", "scale": 1}],
                                  controls=[{"name": "pose", "image": texts[1], "scale": 0.8, "start": 0.3}, {"name": "lines-0", "image": texts[0], "scale": -0.5, "start": 0.3}]), both)
        units = [{**unit, "guidance_start": 0.3}, {"model": "pose", "input_image": texts[1], "guidance_start": 0.3}]
        got = self.sdapi(IMG2IMG, init_images=[texts[0]], denoising_strength=0.75, steps=4, alwayson_scripts={"ControlNet": {"args": units}})
        self.assertEqual(got, self.command(*seeded, "--control-scale", 0.8, "--control-scale", 1, "--control-start", 0.3, init=images[0], guides=[("lines-0", images[0]), ("lines-1", images[1])]))

    def test_lists(self):
        get = lambda path: json.loads(self.server.ask("GET", path)[2])
        self.assertEqual([entry["name"] for entry in get("/sdapi/v1/loras")], ["ink", "shiny", "other"])
        self.assertEqual(get("/controlnet/model_list"), {"model_list": ["lines-0", "pose"]})
        self.assertEqual((get("/controlnet/module_list"), get("/controlnet/version")), ({"module_list": ["none", "ip-adapter-auto"]}, {"version": 2}))
        meta = get("/v1/models")["data"][0]["meta"]
        self.assertEqual((meta["loras"], meta["controls"]), (["ink", "shiny", "other"], ["lines-0", "pose"]))

    def test_refusals(self):
        text = base64.b64encode(png(picture(40, 40))).decode()
        lines = {"name": "lines-0", "image": text}
        unit = lambda **more: {"alwayson_scripts": {"controlnet": {"args": [{"model": "lines-0", "image": text, **more}]}}}
        cases = [(OPENAI, {"loras": [{"name": name}]}, "loras", "no LoRA") for name in ("none", "../ink", f"{self.folder}/ink.safetensors", "", "ink.safetensors")]
        cases += [(OPENAI, {"controls": [{**lines, "name": name}]}, "controls", "no ControlNet") for name in ("none", "../lines-0", f"{self.folder}/lines-0", "")]
        cases += [(OPENAI, {"loras": value}, "loras", "loras") for value in (3, "ink", {"name": "ink"}, ["ink"], [{}], [None])] + [(OPENAI, {"controls": value}, "controls", "controls") for value in (3, "x", [3], [{}])]
        cases += [(OPENAI, {"loras": [{"name": "ink", "scale": 101}]}, "scale", "100"), (OPENAI, {"loras": [{"name": "ink", "path": "x"}]}, "path", "path"), (OPENAI, {"loras": [{"name": "ink", "scale": "1"}]}, "scale", "number"),
                  (OPENAI, {"loras": [{"name": "ink", "scale": 1}] * 2}, "loras", "twice"), (OPENAI, {"loras": [{"name": "ink", "scale": scale} for scale in (0, 1)]}, "loras", "twice"), (OPENAI, {"prompt": "a\0b"}, "prompt", "zero byte"), (OPENAI, {"controls": [lines] * 2}, "controls", "twice"), (OPENAI, {"controls": [lines, {**lines, "image": "?"}]}, "controls", "twice"), (OPENAI, {"controls": [lines] * 9}, "controls", "twice"),
                  (OPENAI, {"controls": [{"name": "lines-0"}]}, "controls", "base64"), (OPENAI, {"controls": [{**lines, "image": "?"}]}, "controls", "base64"), (OPENAI, {"controls": [{**lines, "image": 3}]}, "controls", "base64"),
                  (OPENAI, {"controls": [lines], "size": "40x44"}, "controls", "40 x 44"), (OPENAI, {"controls": [{**lines, "start": 0.7, "end": 0.2}]}, "controls", "begins before"), (OPENAI, {"controls": [{**lines, "end": 2}]}, "end", "0 to 1"),
                  (OPENAI, {"controls": [{**lines, "image": base64.b64encode(png(picture(2052, 4))).decode()}]}, "controls", "2048"), (OPENAI, {"controls": [{**lines, "image": base64.b64encode(png(picture(41, 40))).decode()}]}, "size", "multiples"),
                  (JOBS, {"operation": "image_generation", "loras": [{"name": "none"}]}, "loras", "none"), (JOBS, {"operation": "image_transform", "input_image": text, "controls": [{**lines, "image": base64.b64encode(png(picture(44, 40))).decode()}]}, "controls", "44 x 40"),
                  (TXT2IMG, {"prompt": "<lora:none:1>"}, "prompt", "none"), (TXT2IMG, {"prompt": "<lora:ink:x>"}, "prompt", "NAME:SCALE"), (TXT2IMG, {"prompt": "<lora:ink:1:2>"}, "prompt", "NAME:SCALE"), (TXT2IMG, {"prompt": "<lora::1>"}, "prompt", "NAME:SCALE"),
                  (TXT2IMG, {"prompt": "<lora:ink:>"}, "prompt", "NAME:SCALE"), (TXT2IMG, {"prompt": "<lora:ink:1e9>"}, "prompt", "NAME:SCALE"), (TXT2IMG, {"prompt": "<lora:ink:nan>"}, "prompt", "NAME:SCALE"), (TXT2IMG, {"prompt": "<lora:ink:1>x<lora:ink:1>"}, "prompt", "twice"),
                  (TXT2IMG, unit(model="none"), "alwayson_scripts", "none"), (TXT2IMG, unit(module="canny"), "module", "none"), (TXT2IMG, unit(control_mode=1), "control_mode", "Balanced"), (TXT2IMG, unit(mask=text), "mask", "mask"),
                  (TXT2IMG, unit(image={"image": text}), "alwayson_scripts", "base64"), (TXT2IMG, unit(magic=1), "magic", "magic"), (TXT2IMG, unit(weight=-1), "weight", "0 to 100"), (TXT2IMG, {**unit(), "width": 44, "height": 40}, "alwayson_scripts", "44 x 40"),
                  (TXT2IMG, {"alwayson_scripts": {"controlnet": {}}}, "alwayson_scripts", "args"), (TXT2IMG, {"alwayson_scripts": {"controlnet": {"args": [3]}}}, "alwayson_scripts", "object"), (TXT2IMG, {"alwayson_scripts": {"adetailer": {"args": []}}}, "alwayson_scripts", "adetailer")]
        for path, body, field, word in cases:
            with self.subTest(f"{path} {str(body)[:100]}"):
                status, _, said = self.server.ask("POST", path, {"prompt": "x", "steps": 2, **body})
                self.assertEqual(status, 422 if path.startswith("/sdapi") else 400, said)
                said = json.loads(said)
                found, message = (said["detail"][0]["loc"][1], said["detail"][0]["msg"]) if path.startswith("/sdapi") else (said["errors"][0]["field"], said["errors"][0]["message"]) if path == JOBS else (said["error"]["param"], said["error"]["message"])
                self.assertEqual(found, field)
                self.assertIn(word, message)
        text = "a <lora b> <hypernet:x:1> <lora:"
        self.assertEqual(self.sdapi(prompt=text), self.command("--steps", 2, "--seed", 4, prompt=text))

    def test_options(self):
        """What rdna image has for its model, rdna serve has for its, too."""
        server = serving.serve_for(self, self.folder / "sd", "--type", "bf16", "--weights", "q8_0", "--tile", 4, model_option="--images")
        got = [base64.b64decode(entry["b64_json"]) for entry in server.post(OPENAI, prompt=PROMPT, **FORGET)["data"]]
        with tempfile.TemporaryDirectory() as folder:
            rdna_program.output("image", self.folder / "sd", PROMPT, "--steps", 2, "--seed", 4, "--type", "bf16", "--weights", "q8_0", "--tile", 4, "--out", pathlib.Path(folder) / "x.png", "--device", rdna_program.DEVICE)
            self.assertEqual(got, [(pathlib.Path(folder) / "x.png").read_bytes()])

    def test_command_lines(self):
        model, lines = rdna_program.DEMO_MODEL, self.folder / "lines-0"
        sd, ink = ["--images", self.folder / "sd"], self.folder / "ink.safetensors"
        for options, status, word in [(["--tile", 4, model], 2, "--tile"), (["--weights", "q8_0", model], 2, "--weights"), (["--control", lines, model], 2, "--control"), (["--type", "f16", model], 2, "--type"), ([*sd, "--tile", 5], 2, "multiple of 4"),
                                      ([*sd, "--lora", ink, "--lora", f"ink={self.folder}/gold.safetensors"], 1, "called 'ink'"), ([*sd, "--control", lines, "--control", f"lines-0={self.folder}/lines-1"], 1, "called 'lines-0'"),
                                      ([*sd, "--control", self.folder / "none"], 1, "none"), ([*sd, "--lora", self.folder / "none"], 1, "none"), ([*sd, "--weights", "nvfp4"], 1, "blocks are q8_0 q4_0"), ([*sd, "--transformer", ink], 1, "it is a LoRA")]:
            result = rdna_program.run("serve", *options, "--port", 0, "--device", rdna_program.DEVICE)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn(word, result.stderr.decode())


if __name__ == "__main__":
    unittest.main()
