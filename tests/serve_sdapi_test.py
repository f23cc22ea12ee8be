"""What clients of AUTOMATIC1111's interface ask of rdna serve beside a picture of a text: masks, other sides, second passes,
pictures as prompts, what pictures say of themselves, and lists. Pictures are what rdna image and rdna upscale make of what
Pillow and NumPy prepare by that page's rules."""
import base64
import io
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import numpy as np
import PIL.Image
import PIL.ImageFilter
import PIL.ImageOps
import safetensors.torch

import image_adapter_test
import image_command_test
import image_upscaler_test as upscaler
import rdna_program
import serving

PROMPT = image_command_test.PROMPT
TXT2IMG, IMG2IMG, INFO = "/sdapi/v1/txt2img", "/sdapi/v1/img2img", "/sdapi/v1/png-info"
SEEDED = ("--seed", 5, "--steps", 4)
ASKED = {"prompt": PROMPT, "seed": 5, "steps": 4}


def base(data):
    if not isinstance(data, bytes):
        file = io.BytesIO()
        data.save(file, "PNG")
        data = file.getvalue()
    return base64.b64encode(data).decode()


def smooth(seed, width, height, mode="RGB"):
    noise = np.random.default_rng(seed).integers(0, 256, (4, 5, len(mode)), np.uint8)
    return PIL.Image.fromarray(noise, mode).resize((width, height), PIL.Image.Resampling.BICUBIC)


def oval(width, height, box):
    rows, columns = np.mgrid[:height, :width]
    left, top, right, bottom = box
    inside = ((columns - (left + right) / 2) / (right - left) * 2) ** 2 + ((rows - (top + bottom) / 2) / (bottom - top) * 2) ** 2 <= 1
    return PIL.Image.fromarray((inside * 255).astype(np.uint8))


def blurred(mask, sigma):
    """As OpenCV's GaussianBlur with a kernel of 2 int(2.5 sigma + 0.5) + 1, along one way and then the other."""
    values, reach = np.asarray(mask).astype(float), int(2.5 * sigma + 0.5)
    if not sigma:
        return values
    weights = np.exp(-np.arange(-reach, reach + 1) ** 2 / (2 * sigma**2))
    for axis in (1, 0):
        padded = np.pad(values, [(reach, reach) if i == axis else (0, 0) for i in (0, 1)], mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis)
        values = np.rint(windows @ weights / weights.sum())
    return values


def around(mask, padding, wide, high):
    """The part that is drawn: what is not 0, padded, in the proportions of what is drawn, inside of the picture."""
    height, width = mask.shape
    rows, columns = np.nonzero(mask.any(1))[0], np.nonzero(mask.any(0))[0]
    x1, x2 = max(columns[0] - padding, 0), min(columns[-1] + 1 + padding, width)
    y1, y2 = max(rows[0] - padding, 0), min(rows[-1] + 1 + padding, height)

    def grown(begin, end, wanted, most):
        more = int(wanted - (end - begin))
        begin, end = begin - more // 2, end + more - more // 2
        if end >= most:
            begin, end = begin - (end - most), most
        if begin < 0:
            begin, end = 0, end - begin
        return begin, min(end, most)
    if (x2 - x1) / (y2 - y1) > wide / high:
        y1, y2 = grown(y1, y2, (x2 - x1) / (wide / high), height)
    else:
        x1, x2 = grown(x1, x2, (y2 - y1) * (wide / high), width)
    return x1, y1, x2, y2


def filled(image, mask):
    """That page's masking.fill."""
    made, masked = PIL.Image.new("RGBA", image.size), PIL.Image.new("RGBa", image.size)
    masked.paste(image.convert("RGBA").convert("RGBa"), mask=PIL.ImageOps.invert(mask))
    for radius, repeats in ((256, 1), (64, 1), (16, 2), (4, 4), (2, 2), (0, 1)):
        layer = masked.filter(PIL.ImageFilter.GaussianBlur(radius)).convert("RGBA")
        for _ in range(repeats):
            made.alpha_composite(layer)
    return made.convert("RGB")


def pixels(image):
    return np.asarray(PIL.Image.open(io.BytesIO(image)) if isinstance(image, bytes) else image).astype(float)


class Sdapi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        pipeline = image_command_test.make_folder(cls.folder / "sd")
        image_adapter_test.random_encoder(2).save_pretrained(cls.folder / "encoder")
        for name, plus in (("face", False), ("plus", True)):
            tensors = image_adapter_test.random_adapter(pipeline.unet, 3 + plus, image_adapter_test.VISION["hidden_size" if plus else "projection_dim"], plus)
            safetensors.torch.save_file(tensors, cls.folder / f"{name}.safetensors")
        cls.x2 = upscaler.save(cls.folder / "toy-x2.safetensors", upscaler.random_network(upscaler.Compact(scale=2), 1).state_dict())
        cls.server = serving.serve_for(cls, cls.folder / "sd", "--upscaler", cls.x2, "--ip-adapter", cls.folder / "face.safetensors", "--ip-adapter", f"like={cls.folder}/plus.safetensors",
                                       "--ip-encoder", cls.folder / "encoder", model_option="--images")

    def run_in(self, program, folder, *options, **files):
        """The first file that rdna |program| writes; |files| are pictures that options are given."""
        folder = pathlib.Path(folder)
        for name, image in files.items():
            (image if not isinstance(image, bytes) else PIL.Image.open(io.BytesIO(image))).save(folder / f"{name}.png")
            options += (f"--{name}", folder / f"{name}.png")
        said = rdna_program.output(program, *options, "--out", folder / "x.png", "--json", "--device", rdna_program.DEVICE)
        said = json.loads(said)
        return pathlib.Path(said["files"][0] if program == "image" else said["file"]).read_bytes()

    def draw(self, *options, **files):
        with tempfile.TemporaryDirectory() as folder:
            return self.run_in("image", folder, self.folder / "sd", PROMPT, *SEEDED, *options, **files)

    def ask(self, path, **body):
        answer = self.server.post(path, **{**ASKED, **body})
        return [base64.b64decode(image) for image in answer["images"]], json.loads(answer["info"])

    def near(self, got, want, most=1):
        self.assertEqual(got.shape, want.shape)
        self.assertLessEqual(np.abs(got - want).max(), most)

    # ---- masks and sides ----

    def test_masks(self):
        """All of the picture, brought to the sides that are asked for; what is outside stays as it was, to the bit."""
        for sizes, fit, sigma, invert in (((40, 24), 0, 2, 0), ((40, 24), 0, 0, 1), ((61, 50), 0, 1, 0)):
            with self.subTest(sizes=sizes, sigma=sigma, invert=invert):
                init, mask = smooth(1, *sizes), oval(*sizes, (8, 4, 30, 20))
                (got,), info = self.ask(IMG2IMG, init_images=[base(init)], mask=base(mask), mask_blur=sigma, inpainting_fill=1, inpaint_full_res=False, inpainting_mask_invert=invert,
                                        resize_mode=fit, denoising_strength=0.6, width=40, height=24)
                soft = PIL.Image.fromarray(blurred(PIL.ImageOps.invert(mask) if invert else mask, sigma).astype(np.uint8))
                init, soft = (i.resize((40, 24), PIL.Image.Resampling.LANCZOS) if i.size != (40, 24) else i for i in (init, soft))
                drawn = self.draw("--strength", 0.6, init=init, mask=soft)
                share = np.minimum(2 * np.asarray(soft).astype(float), 255)[..., None] / 255
                self.near(pixels(got), pixels(drawn) * share + pixels(init) * (1 - share))
                self.assertTrue((pixels(got)[share[..., 0] == 0] == pixels(init)[share[..., 0] == 0]).all())
                self.assertGreater(np.abs(pixels(got) - pixels(init)).max(), 10)
                self.assertEqual(info["infotexts"], [PIL.Image.open(io.BytesIO(drawn)).text["parameters"]])

    def test_around_a_mask(self):
        """The part around the mask alone, drawn larger and put back into a picture of any sides."""
        for sizes, box, padding, wide, high in (((90, 70), (50, 40, 62, 52), 3, 40, 24), ((90, 70), (0, 0, 9, 40), 0, 24, 24), ((33, 64), (10, 8, 30, 60), 5, 40, 24)):
            with self.subTest(box=box):
                init, mask = smooth(2, *sizes), oval(*sizes, box)
                (got,), _ = self.ask(IMG2IMG, init_images=[base(init)], mask=base(mask), mask_blur_x=1, mask_blur_y=1, inpainting_fill=1, inpaint_full_res_padding=padding, denoising_strength=0.8, width=wide, height=high)
                soft = blurred(mask, 1)
                region = around(soft, padding, wide, high)
                x1, y1, x2, y2 = region

                def fit(image):
                    """Whole, with its edges repeated; Pillow's own rounding says how wide."""
                    if (image.width * high) // image.height != wide:
                        w, h = (wide, image.height * wide // image.width) if wide * image.height < image.width * high else (image.width * high // image.height, high)
                        inner = np.asarray(image.resize((max(w, 1), max(h, 1)), PIL.Image.Resampling.LANCZOS))
                        rows = np.clip(np.arange(high) - (high // 2 - h // 2), 0, h - 1)
                        columns = np.clip(np.arange(wide) - (wide // 2 - w // 2), 0, w - 1)
                        return PIL.Image.fromarray(inner[rows][:, columns])
                    return image.resize((wide, high), PIL.Image.Resampling.LANCZOS)
                drawn = self.draw("--strength", 0.8, init=fit(init.crop(region)), mask=fit(PIL.Image.fromarray(soft.astype(np.uint8)).crop(region)))
                whole = pixels(init)
                whole[y1:y2, x1:x2] = pixels(PIL.Image.open(io.BytesIO(drawn)).resize((x2 - x1, y2 - y1), PIL.Image.Resampling.LANCZOS))
                share = soft[..., None] / 255
                self.near(pixels(got), whole * share + pixels(init) * (1 - share))

    def test_fill(self):
        """Under the mask begins what is around it; with all steps nothing of it counts."""
        init, mask = smooth(3, 40, 24), oval(40, 24, (10, 5, 30, 20))
        asked = dict(init_images=[base(init)], mask=base(mask), mask_blur=0, inpaint_full_res=False)
        (got,), _ = self.ask(IMG2IMG, **asked, inpainting_fill=0, denoising_strength=0.5)
        share = np.asarray(mask)[..., None] / 255
        want = pixels(self.draw("--strength", 0.5, init=filled(init, mask), mask=mask)) * share + pixels(init) * (1 - share)
        other = pixels(self.draw("--strength", 0.5, init=init, mask=mask)) * share + pixels(init) * (1 - share)
        self.assertLess(np.abs(pixels(got) - want).mean(), 0.1 * np.abs(other - want).mean())
        whole = [self.ask(IMG2IMG, **asked, inpainting_fill=fill, denoising_strength=1)[0] for fill in range(4)]
        self.assertTrue(all(one == whole[0] for one in whole))
        painted = PIL.Image.fromarray(np.concatenate([np.zeros((24, 40, 3), np.uint8), np.asarray(mask)[..., None]], 2), "RGBA")  # by its opacity
        self.assertEqual(self.ask(IMG2IMG, **{**asked, "mask": base(painted)}, denoising_strength=1)[0], whole[0])

    def test_sides(self):
        init = smooth(4, 50, 31)
        wide = init.resize((40, 24), PIL.Image.Resampling.LANCZOS)
        (got,), _ = self.ask(IMG2IMG, init_images=[base(init)], width=40, height=24, denoising_strength=0.5)
        self.assertEqual(got, self.draw("--strength", 0.5, init=wide))
        w = 50 * 24 // 31
        inner = np.asarray(init.resize((w, 24), PIL.Image.Resampling.LANCZOS))
        (got,), _ = self.ask(IMG2IMG, init_images=[base(init)], width=40, height=24, denoising_strength=0.5, resize_mode=2)
        self.assertEqual(got, self.draw("--strength", 0.5, init=PIL.Image.fromarray(inner[:, np.clip(np.arange(40) - (20 - w // 2), 0, w - 1)])))
        h = 31 * 40 // 50
        inner = init.resize((40, h), PIL.Image.Resampling.LANCZOS)
        cut = PIL.Image.new("RGB", (40, 24))
        cut.paste(inner, (0, 12 - h // 2))
        (got,), _ = self.ask(IMG2IMG, init_images=[base(init)], width=40, height=24, denoising_strength=0.5, resize_mode=1)
        self.assertEqual(got, self.draw("--strength", 0.5, init=cut))

    # ---- a second pass ----

    def test_second_pass(self):
        first = self.draw("--size", "24x20")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.png").write_bytes(first)
            large = self.run_in("upscale", folder, self.x2, pathlib.Path(folder) / "a.png")
        for body, between, options in (({"hr_upscaler": "toy-x2"}, large, ()), ({}, PIL.Image.open(io.BytesIO(first)).resize((48, 40), PIL.Image.Resampling.LANCZOS), ()),
                                       ({"hr_upscaler": "toy-x2", "hr_second_pass_steps": 6, "hr_sampler_name": "Euler", "hr_scheduler": "Karras"}, large, ("--steps", 6, "--sampler", "euler", "--schedule", "karras"))):
            (got,), info = self.ask(TXT2IMG, width=24, height=20, enable_hr=True, hr_scale=2, denoising_strength=0.6, **body)
            self.assertTrue((pixels(got) == pixels(self.draw("--strength", 0.6, *options, init=between))).all())
            self.assertIn(", Denoising strength: 0.6, Hires upscale: 2, Hires steps: %d, Hires upscaler: %s" % (body.get("hr_second_pass_steps", 4), body.get("hr_upscaler", "Lanczos")), info["infotexts"][0])
        got, _ = self.ask(TXT2IMG, width=24, height=20, enable_hr=True, hr_resize_x=48, hr_prompt="a dog", denoising_strength=0.6, n_iter=2)
        again, _ = self.ask(TXT2IMG, width=24, height=20, enable_hr=True, hr_resize_y=40, hr_prompt="a dog", denoising_strength=0.6, seed=6)
        plain, _ = self.ask(TXT2IMG, width=24, height=20, enable_hr=True, hr_resize_y=40, denoising_strength=0.6, seed=6)
        self.assertTrue((pixels(got[1]) == pixels(again[0])).all())
        self.assertEqual(pixels(got[0]).shape, (40, 48, 3))
        self.assertTrue((pixels(plain[0]) != pixels(again[0])).any())

    # ---- pictures as prompts ----

    def test_adapters(self):
        seen = [smooth(7, 40, 33), smooth(8, 20, 20)]
        with tempfile.TemporaryDirectory() as folder:
            for i, image in enumerate(seen):
                image.save(pathlib.Path(folder) / f"{i}.png")
            want = self.run_in("image", folder, self.folder / "sd", PROMPT, *SEEDED, "--ip-encoder", self.folder / "encoder", "--ip-adapter", f"{self.folder}/face.safetensors:{folder}/0.png:0.6",
                               "--ip-adapter", f"{self.folder}/plus.safetensors:{folder}/1.png:-0.5")
        units = [{"module": "ip-adapter_clip_sd15", "model": "face [abcd]", "image": base(seen[0]), "weight": 0.6}, {"module": "ip-adapter-auto", "model": "like", "image": base(seen[1]), "weight": -0.5}]
        (got,), _ = self.ask(TXT2IMG, alwayson_scripts={"ControlNet": {"args": [{**unit, "weight": abs(unit["weight"])} for unit in units]}})
        self.assertNotEqual(got, want)  # weights there are not below 0
        adapters = [{"name": "face", "image": base(seen[0]), "scale": 0.6}, {"name": "like", "image": base(seen[1]), "scale": -0.5}]
        self.assertEqual(base64.b64decode(self.server.post("/v1/images/generations", **ASKED, ip_adapters=adapters)["data"][0]["b64_json"]), want)
        job = self.server.post("/v1/jobs", operation="image_generation", **{**ASKED, "steps": 1}, width=256, height=256, ip_adapters=adapters)
        self.assertIn('"complete"', self.server.ask("GET", job["sse_url"])[2])
        lists = json.loads(self.server.ask("GET", "/controlnet/model_list")[2])
        self.assertEqual(lists, {"model_list": ["face", "like"]})
        meta = json.loads(self.server.ask("GET", "/v1/models")[2])["data"][0]["meta"]
        self.assertEqual((meta["ip_adapters"], meta["upscalers"], meta["steps"]), (["face", "like"], ["toy-x2"], 20))
        for body, field in ((adapters[:1] * 2, "ip_adapters"), ([{"name": "face"}], "ip_adapters"), ([{"name": "x", "image": ""}], "ip_adapters"), ([{"name": "face", "image": "AAAA"}], "ip_adapters"), ([3], "ip_adapters")):
            status, _, text = self.server.ask("POST", "/v1/images/generations", {**ASKED, "ip_adapters": body})
            self.assertEqual((status, json.loads(text)["error"]["param"]), (400, field))

    # ---- what there is ----

    def test_info(self):
        data = self.draw("--negative", "a: b, c")
        text = PIL.Image.open(io.BytesIO(data)).text["parameters"]
        said = self.server.post(INFO, image=base(data))
        self.assertEqual((said["info"], said["items"]), (text, {"parameters": text}))
        self.assertEqual({k: said["parameters"][k] for k in ("Prompt", "Negative prompt", "Steps", "Seed", "Size")}, {"Prompt": PROMPT, "Negative prompt": "a: b, c", "Steps": "4", "Seed": "5", "Size": "40x40"})
        self.assertEqual(self.server.post(INFO, image=base(smooth(9, 4, 4))), {"info": "", "items": {}, "parameters": {}})
        for text, want in (("a\nb\nNegative prompt: c\nd\nSteps: 3, Hashes: {\"x\": \"1, 2\"}, Note: \"a, b\", CFG scale: 4", {"Prompt": "a\nb", "Negative prompt": "c\nd", "Steps": "3", "Hashes": '{"x": "1, 2"}', "Note": '"a, b"', "CFG scale": "4"}),
                           ("no pairs", {"Prompt": "no pairs", "Negative prompt": ""}), ("", {"Prompt": "", "Negative prompt": ""}), ("Negative prompt:\nSteps: ", {"Prompt": "", "Negative prompt": "", "Steps": ""}),
                           ("Steps: 1, ,:, {{{", {"Prompt": "", "Negative prompt": "", "Steps": "1", ",": ""})):
            file, chunk = io.BytesIO(), PIL.PngImagePlugin.PngInfo()
            chunk.add_text("parameters", text)
            smooth(9, 4, 4).save(file, "PNG", pnginfo=chunk)
            self.assertEqual(self.server.post(INFO, image=base(file.getvalue()))["parameters"], want)

    def test_lists(self):
        for path in ("cmd-flags", "embeddings", "face-restorers", "hypernetworks", "latent-upscale-modes", "prompt-styles", "realesrgan-models", "scripts", "script-info", "sd-modules", "sd-vae", "sd-models", "options", "progress"):
            status, headers, text = self.server.ask("GET", f"/sdapi/v1/{path}")
            self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
            json.loads(text)
        status, headers, _ = self.server.ask("GET", "/")  # the page of servers that draw
        self.assertEqual((status, headers["Location"]), (302, "page/draw.html"))
        self.assertIn(b"draw.js", self.server.ask_bytes("GET", "/page/draw.html")[2])
        for path in ("refresh-checkpoints", "refresh-loras", "skip", "interrupt"):
            self.assertEqual(self.server.ask("POST", f"/sdapi/v1/{path}", {})[0], 200)

    def test_refused(self):
        init, mask = base(smooth(1, 40, 24)), base(oval(40, 24, (5, 5, 20, 20)))
        masked = {"init_images": [init], "mask": mask}
        cases = [(IMG2IMG, {**masked, "mask": base(oval(41, 24, (5, 5, 20, 20)))}, "mask"), (IMG2IMG, {**masked, "mask": 3}, "mask"), (IMG2IMG, {**masked, "mask": "AAAA"}, "mask"), (IMG2IMG, {**masked, "mask": base(PIL.Image.new("L", (40, 24)))}, "mask"),
                 (IMG2IMG, {**masked, "inpainting_fill": 2}, "inpainting_fill"), (IMG2IMG, {**masked, "inpainting_fill": 4}, "inpainting_fill"), (IMG2IMG, {**masked, "mask_blur": 65}, "mask_blur"), (IMG2IMG, {**masked, "mask_round": False}, "mask_round"),
                 (IMG2IMG, {"init_images": [init], "resize_mode": 3}, "resize_mode"), (IMG2IMG, {"init_images": [init], "enable_hr": True}, "enable_hr"), (IMG2IMG, {"init_images": [base(PIL.Image.new("RGB", (2049, 4)))]}, "init_images"),
                 (IMG2IMG, {"init_images": [base(PIL.Image.new("RGB", (4000, 1)))], "width": 8, "height": 2000, "resize_mode": 1}, "init_images"), (TXT2IMG, {"mask": mask}, "mask"), (TXT2IMG, {"enable_hr": True, "hr_upscaler": "Latent"}, "hr_upscaler"),
                 (TXT2IMG, {"enable_hr": True, "hr_scale": 5}, "hr_scale"), (TXT2IMG, {"enable_hr": True, "width": 1024, "height": 1024, "hr_scale": 3}, "hr_scale"), (TXT2IMG, {"enable_hr": True, "hr_resize_x": 37}, "hr_scale"), (TXT2IMG, {"enable_hr": True, "denoising_strength": 0}, "denoising_strength"),
                 (TXT2IMG, {"enable_hr": True, "hr_sampler_name": "x"}, "hr_sampler_name"), (TXT2IMG, {"enable_hr": True, "hr_checkpoint_name": "x"}, "hr_checkpoint_name"), (TXT2IMG, {"eta": 0.5, "sampler_name": "DDIM"}, "eta"),
                 (TXT2IMG, {"alwayson_scripts": {"controlnet": {"args": [{"module": "ip-adapter-auto", "model": "face", "image": init, "guidance_end": 0.5}]}}}, "alwayson_scripts"),
                 (TXT2IMG, {"alwayson_scripts": {"controlnet": {"args": [{"module": "canny", "model": "face", "image": init}]}}}, "module"), (INFO, {"image": 3}, "image"), (INFO, {"image": "x"}, "image"), (INFO, {"other": 3}, "other")]
        for path, body, field in cases:
            with self.subTest(path=path, field=field, body=str(body)[:60]):
                status, _, text = self.server.ask("POST", path, {**(ASKED if path != INFO else {}), **body})
                self.assertEqual(status, 422, text)
                self.assertEqual(json.loads(text)["detail"][0]["loc"], ["body", field])

    def test_client_package(self):
        """PyPI's webuiapi, which sends all its fields, whatever they are."""
        if os.environ.get("RDNA_TEST_CLIENTS", "1") == "0":
            self.skipTest("RDNA_TEST_CLIENTS=0, and the interface's client is needed")
        python = subprocess.run([rdna_program.ROOT / "packaging/client-venv.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        script = f"""import webuiapi, PIL.Image
api = webuiapi.WebUIApi(host="127.0.0.1", port={self.server.port}, sampler="Euler", steps=2)
assert api.controlnet_version() == 2
drawn = api.txt2img(prompt="x", width=40, height=24, seed=1)
mask = PIL.Image.new("L", (40, 24)); mask.paste(255, (8, 8, 24, 20))
again = api.img2img(images=[drawn.image], mask_image=mask, prompt="x", width=40, height=24, seed=1, denoising_strength=0.7)
hires = api.txt2img(prompt="x", width=20, height=20, enable_hr=True, hr_scale=2, hr_upscaler=webuiapi.HiResUpscaler.Lanczos, hr_second_pass_steps=2)
large = api.extra_single_image(drawn.image, upscaler_1="toy-x2", upscaling_resize=2)
print(drawn.image.size, again.image.size, hires.image.size, large.image.size, api.png_info(drawn.image).info[:1])
unit = webuiapi.ControlNetUnit(image=drawn.image, module="ip-adapter-auto", model="face", weight=0.5)
api.txt2img(prompt="x", width=40, height=24, controlnet_units=[unit])
for ask in (api.get_options, api.get_progress, api.get_cmd_flags, api.get_samplers, api.get_sd_vae, api.get_upscalers, api.get_latent_upscale_modes, api.get_loras, api.get_sd_models, api.get_hypernetworks, api.get_face_restorers,
            api.get_realesrgan_models, api.get_prompt_styles, api.refresh_checkpoints, api.get_scripts, api.get_embeddings, api.get_schedulers, api.interrupt, api.skip, api.util_get_current_model, api.util_wait_for_ready):
    ask()
api.util_set_model("sd")
"""
        said = subprocess.run([python, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("(40, 24) (40, 24) (40, 40) (80, 48) x", said.stdout)


if __name__ == "__main__":
    unittest.main()
