"""rdna serve with a model of pictures: OpenAI's route, AUTOMATIC1111's, and a worker's jobs, whose pictures are those of
rdna image, byte for byte; the queue, progress, previews, cancelling, and what is refused."""
import base64
import contextlib
import http.client
import io
import json
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import numpy as np
import PIL.Image
import safetensors.torch

import image_command_test
import image_flux_test
import image_tiny_test
import rdna_program
import serving

PROMPT, NEGATIVE = "a photograph of an astronaut riding horse", "the cat"
LONG = {"prompt": PROMPT, "steps": 150, "width": 256, "height": 256}  # seconds on any processor


def events(text):
    """The data of an event stream; the last one must be [DONE]."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "[DONE]", lines[-1]
    return [json.loads(line) for line in lines[:-1]]


def png(width, height, seed=5):
    file = io.BytesIO()
    PIL.Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)).save(file, "PNG")
    return file.getvalue()


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        image_command_test.make_folder(cls.folder / "sd")
        image_flux_test.make_folder(cls.folder / "flux", "schnell")
        cls.server = serving.serve_for(cls, cls.folder / "sd", model_option="--images")

    def command(self, model, *options, prompt=PROMPT, ending="png"):
        """The files that rdna image writes."""
        with tempfile.TemporaryDirectory() as folder:
            said = rdna_program.output("image", self.folder / model, prompt, "--out", pathlib.Path(folder) / f"x.{ending}", "--json", "--device", rdna_program.DEVICE, *options)
            return [pathlib.Path(path).read_bytes() for path in json.loads(said)["files"]]

    def progress(self, server=None):
        return json.loads((server or self.server).ask("GET", "/sdapi/v1/progress")[2])

    def wait_idle(self, server=None):
        serving.wait_for(lambda: self.progress(server)["state"]["job_count"] == 0)

    # ---- pictures ----

    def test_openai(self):
        answer = self.server.post("/v1/images/generations", model="sd", prompt=PROMPT, n=2, size="40x32", seed=3, steps=3, negative_prompt=NEGATIVE, quality="hd", user="me")
        got = [base64.b64decode(entry["b64_json"], validate=True) for entry in answer["data"]]
        self.assertEqual(got, self.command("sd", "--count", 2, "--size", "40x32", "--seed", 3, "--steps", 3, "--negative", NEGATIVE))
        self.assertEqual((answer["size"], answer["output_format"], answer["seed"]), ("40x32", "png", 3))
        self.assertLess(abs(answer["created"] - time.time()), 60)
        answer = self.server.post("/v1/images/generations", prompt=PROMPT, steps=2, sampler="euler", schedule="karras", guidance_scale=2.5)
        self.assertEqual([base64.b64decode(answer["data"][0]["b64_json"])],
                         self.command("sd", "--seed", answer["seed"], "--steps", 2, "--sampler", "euler", "--schedule", "karras", "--cfg", 2.5))
        models = json.loads(self.server.ask("GET", "/v1/models")[2])["data"]
        self.assertEqual([(m["id"], m["meta"]["family"], m["meta"]["width"], m["meta"]["multiple"]) for m in models], [("sd", "Stable Diffusion", 40, 4)])
        self.assertEqual(json.loads(self.server.ask("GET", "/v1/models/sd")[2]), models[0])

    def test_stream(self):
        """OpenAI's events: pictures of the way there where something can be seen, and the whole ones."""
        want = self.command("sd", "--count", 2, "--seed", 3, "--steps", 4, "--size", "40x32")
        for asked, kind, count in ((0, "png", 0), (3, "png", 3), (2, "jpeg", 2)):
            self.server.post("/v1/images/generations", prompt="x", steps=2, size="40x32")  # from here on there are previews
            status, headers, text = self.server.ask("POST", "/v1/images/generations", {"prompt": PROMPT, "n": 2, "size": "40x32", "seed": 3, "steps": 4, "stream": True, "partial_images": asked, "output_format": kind, "output_compression": 100})
            self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
            got = [(lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))) for lines in (event.split("\n") for event in text.split("\n\n") if event and event[0] != ":")]
            partial, whole = ([data for name, data in got if name == "image_generation." + what] for what in ("partial_image", "completed"))
            self.assertEqual((len(partial) + len(whole), len(whole)), (len(got), 2))
            self.assertLessEqual(len(partial), count)
            self.assertEqual([data["partial_image_index"] for data in partial], sorted(set(data["partial_image_index"] for data in partial)))
            for data in partial:
                PIL.Image.open(io.BytesIO(base64.b64decode(data["b64_json"]))).load()
            self.assertTrue(all((data["type"], data["size"], data["output_format"]) == ("image_generation.completed", "40x32", kind) for data in whole))
            if kind == "png":
                self.assertEqual([base64.b64decode(data["b64_json"]) for data in whole], want)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port)) as connection:  # an end in between is an event
            connection.request("POST", "/v1/images/generations", json.dumps({**{k: v for k, v in LONG.items() if k == "prompt"}, "steps": 150, "size": "256x256", "stream": True, "partial_images": 3}))
            response = connection.getresponse()
            serving.wait_for(lambda: self.progress()["state"]["sampling_step"] > 0)
            self.server.post("/sdapi/v1/interrupt")
            last = response.read().decode().strip().split("\n\n")[-1]
        self.assertTrue(last.startswith("event: error\n"), last)
        self.assertEqual(json.loads(last.split("data: ")[1])["error"]["code"], "cancelled")

    def test_jpeg(self):
        """With what they were made with, where AUTOMATIC1111's page has it."""
        common = ("--seed", 3, "--steps", 2)
        for quality in (100, 60, 0):
            answer = self.server.post("/v1/images/generations", prompt=PROMPT, seed=3, steps=2, output_format="jpeg", output_compression=quality)
            want = self.command("sd", *common, "--quality", quality or 1, ending="jpg")
            self.assertEqual(([base64.b64decode(entry["b64_json"]) for entry in answer["data"]], answer["output_format"]), (want, "jpeg"))
        answer = self.server.post("/sdapi/v1/txt2img", prompt=PROMPT, seed=3, steps=2, override_settings={"samples_format": "jpg", "jpeg_quality": 70})
        want, = self.command("sd", *common, "--quality", 70, ending="jpeg")
        self.assertEqual([base64.b64decode(image) for image in answer["images"]], [want])
        comment = PIL.Image.open(io.BytesIO(want)).getexif().get_ifd(0x8769)[0x9286]
        self.assertEqual(comment if isinstance(comment, str) else comment[8:].decode("utf-16-be"), PIL.Image.open(io.BytesIO(self.command("sd", *common)[0])).text["parameters"])
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.jpg").write_bytes(want)
            begun = self.command("sd", "--init", pathlib.Path(folder) / "a.jpg", "--seed", 1, "--steps", 3)
        answer = self.server.post("/sdapi/v1/img2img", prompt=PROMPT, seed=1, steps=3, init_images=[base64.b64encode(want).decode()])
        self.assertEqual([base64.b64decode(image) for image in answer["images"]], begun)
        for options, sentence in ((["--out", "a.webp"], "as .png and .jpg, and it ends in .webp"), (["--out", "a.png", "--quality", 5], "--quality is of a JPEG")):
            result = rdna_program.run("image", self.folder / "sd", "x", "--steps", 1, "--device", rdna_program.DEVICE, *options)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(sentence, result.stderr.decode())

    def test_official_client(self):
        if os.environ.get("RDNA_TEST_CLIENTS", "1") == "0":
            self.skipTest("RDNA_TEST_CLIENTS=0, and the interface's client is needed")
        python = subprocess.run([rdna_program.ROOT / "packaging/client-venv.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        script = f"""import openai
with openai.OpenAI(base_url="{self.server.url}/v1", api_key="none", max_retries=0) as client:
    answer = client.images.generate(model="sd", prompt={PROMPT!r}, n=1, size="auto", response_format="b64_json", extra_body={{"seed": 6, "steps": 2}})
    print(answer.data[0].b64_json)
    for event in client.images.generate(model="sd", prompt={PROMPT!r}, stream=True, partial_images=2, extra_body={{"seed": 6, "steps": 2}}):
        last = event
    print(last.type, last.b64_json == answer.data[0].b64_json)
    for options in ({{"size": "3x3"}}, {{"model": "other"}}):
        try:
            client.images.generate(**{{"model": "sd", "prompt": "x", **options}})
        except openai.APIStatusError as error:
            print(error.status_code, error.body["type"], error.body["param"])
"""
        said = subprocess.run([python, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.assertEqual([base64.b64decode(said[0])], self.command("sd", "--seed", 6, "--steps", 2))
        self.assertEqual(said[1:], ["image_generation.completed True", "400 invalid_request_error size", "404 invalid_request_error model"])

    def test_sdapi(self):
        answer = self.server.post("/sdapi/v1/txt2img", prompt=PROMPT, negative_prompt=NEGATIVE, steps=3, cfg_scale=4, width=40, height=32, seed=11, sampler_name="DPM++ 2M Karras",
                                  n_iter=2, override_settings={"CLIP_stop_at_last_layers": 2}, save_images=False)
        want = self.command("sd", "--count", 2, "--size", "40x32", "--seed", 11, "--steps", 3, "--negative", NEGATIVE, "--cfg", 4, "--sampler", "dpmpp_2m", "--schedule", "karras", "--clip-skip", 2)
        self.assertEqual([base64.b64decode(image, validate=True) for image in answer["images"]], want)
        info = json.loads(answer["info"])
        self.assertEqual((info["all_seeds"], info["sampler_name"], info["steps"], info["cfg_scale"], info["width"], info["sd_model_name"]), ([11, 12], "DPM++ 2M", 3, 4, 40, "sd"))
        self.assertEqual(info["infotexts"], [PIL.Image.open(io.BytesIO(data)).text["parameters"] for data in want])
        self.assertEqual(answer["parameters"]["seed"], 11)
        seeds = {json.loads(self.server.post("/sdapi/v1/txt2img", prompt="x", steps=1, seed=-1)["info"])["seed"] for _ in range(3)}
        self.assertEqual(len(seeds), 3)

    def test_initial_pictures(self):
        data = png(40, 24)
        for text in (base64.b64encode(data).decode(), "data:image/png;base64," + base64.b64encode(data).decode()):
            answer = self.server.post("/sdapi/v1/img2img", prompt=PROMPT, init_images=[text], denoising_strength=0.5, steps=6, seed=2, scheduler="Karras", sampler_name="Euler")
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "init.png").write_bytes(data)
                want = self.command("sd", "--init", pathlib.Path(folder) / "init.png", "--strength", 0.5, "--steps", 6, "--seed", 2, "--sampler", "euler", "--schedule", "karras")
            self.assertEqual([base64.b64decode(image) for image in answer["images"]], want)
            self.assertNotIn("init_images", answer["parameters"])
        job = self.server.post("/v1/jobs", operation="image_transform", prompt=PROMPT, input_image=base64.b64encode(data).decode(), strength=0.5, steps=6, seed=2, sampler="euler", schedule="karras")
        self.assertEqual([base64.b64decode(self.read(job)[-1]["image"])], want)

    def test_inpainting(self):
        """A worker's job with a mask is what the command draws with it."""
        data, mask = png(40, 24), png(40, 24, 6)
        text = lambda picture: base64.b64encode(picture).decode()
        with tempfile.TemporaryDirectory() as folder:
            for name, picture in (("init.png", data), ("mask.png", mask)):
                (pathlib.Path(folder) / name).write_bytes(picture)
            want = self.command("sd", "--init", pathlib.Path(folder) / "init.png", "--mask", pathlib.Path(folder) / "mask.png", "--steps", 3, "--seed", 2)
        job = self.server.post("/v1/jobs", operation="image_inpaint", prompt=PROMPT, init_image=text(data), mask_image=text(mask), steps=3, seed=2)
        self.assertEqual([base64.b64decode(self.read(job)[-1]["image"])], want)

    def read(self, job, server=None):
        status, headers, text = (server or self.server).ask("GET", job["sse_url"])
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        return events(text)

    def test_worker(self):
        for path in ("/v1/jobs", "/v1/inference"):
            job = self.server.post(path, operation="image_generation", prompt=PROMPT, negative_prompt=NEGATIVE, steps=4, guidance_scale=3, seed=9, width=256, height=264, worker_id="w", model="sd")
            self.assertEqual(job["sse_url"], f"/v1/jobs/{job['job_id']}/stream")
            got = self.read(job)
            self.assertEqual(got[0], {"type": "started", "job_id": job["job_id"], "model": "sd"})
            progress = [event for event in got if event["type"] == "progress"]
            self.assertTrue(all(event["total"] == 4 and event["percent"] == 25 * event["step"] for event in progress), progress)
            self.assertEqual(sorted({event["step"] for event in progress}), [event["step"] for event in progress])
            self.assertEqual((progress[-1]["step"], {event["type"] for event in got[1:-1]} - {"progress", "preview"}), (4, set()))
            self.assertEqual((got[-1]["type"], got[-1]["format"], got[-1]["seed"]), ("complete", "png", 9))
            self.assertEqual([base64.b64decode(got[-1]["image"])],
                             self.command("sd", "--size", "256x264", "--seed", 9, "--steps", 4, "--cfg", 3, "--negative", NEGATIVE))
            self.assertEqual(self.server.ask("GET", job["sse_url"])[0], 404)

    def test_guidance(self):
        """A worker's fields for guidance are the command's options."""
        job = self.server.post("/v1/jobs", operation="image_generation", prompt=PROMPT, steps=2, width=256, height=264, seed=2, guidance_scale=3, pag_scale=2, pag_layers="mid,up.1", guidance_rescale=0.5)
        self.assertEqual([base64.b64decode(self.read(job)[-1]["image"])],
                         self.command("sd", "--seed", 2, "--size", "256x264", "--steps", 2, "--cfg", 3, "--pag", 2, "--pag-layers", "mid,up.1", "--cfg-rescale", 0.5))
        for field, value in (("pag_scale", 21), ("pag_scale", "x"), ("pag_layers", "mid"), ("guidance_rescale", 2), ("pag_layers", "x" * 200)):
            self.assertEqual(self.server.ask("POST", "/v1/jobs", {"operation": "image_generation", "prompt": "x", "width": 256, "height": 256, field: value})[0], 400, field)

    def test_previews(self):
        """They are the last picture's colours over its latents, as least squares have it, of the next one's latents."""
        with contextlib.ExitStack() as stack:
            server = serving.Server(self.folder / "sd", model_option="--images")
            stack.callback(server.stop)
            server.post("/sdapi/v1/txt2img", prompt=PROMPT, steps=3, width=64, height=48, seed=1)
            job = server.post("/v1/jobs", operation="image_generation", prompt=PROMPT, steps=3, width=256, height=256, seed=2)
            previews = [event for event in self.read(job, server) if event["type"] == "preview"]
        self.assertEqual({event["format"] for event in previews}, {"png"})
        dumps = []
        for seed, size in ((1, "64x48"), (2, "256x256")):
            with tempfile.TemporaryDirectory() as folder:
                self.command("sd", "--seed", seed, "--size", size, "--steps", 3, "--dump", folder)
                dumps.append({path.stem: np.load(path).astype(np.float64) for path in pathlib.Path(folder).glob("*.npy")})
        latents = dumps[0]["latents-0002"].reshape(4, -1)
        colours = dumps[0]["picture"].reshape(3, 12, 4, 16, 4).mean((2, 4)).reshape(3, -1)
        by, *_ = np.linalg.lstsq(np.vstack([latents, np.ones(latents.shape[1])]).T, colours.T, rcond=None)
        last = dumps[1]["latents-0002"].reshape(4, -1)
        wanted = np.rint(127.5 * (np.vstack([last, np.ones(last.shape[1])]).T @ by + 1)).clip(0, 255).reshape(64, 64, 3)
        got = np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(previews[-1]["image"]))))
        self.assertLessEqual(abs(got - wanted).max(), 1)
        self.assertGreater(got.std(), 3)

    def test_preview_model(self):
        """With a model of previews the first picture has them too, and each is what that makes of the step."""
        image_tiny_test.tiny(1, **image_tiny_test.THREE).save_pretrained(self.folder / "tiny")
        server = serving.serve_for(self, self.folder / "sd", "--preview-model", self.folder / "tiny", model_option="--images")
        job = server.post("/v1/jobs", operation="image_generation", prompt=PROMPT, steps=3, width=256, height=264, seed=2)
        got = self.read(job, server)
        previews = [event for event in got if event["type"] == "preview"]
        with tempfile.TemporaryDirectory() as folder:
            self.command("sd", "--seed", 2, "--size", "256x264", "--steps", 3, "--preview-model", self.folder / "tiny", "--dump", folder)
            wanted = np.load(pathlib.Path(folder) / "preview-0002.npy").astype(np.float64)
        last = np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(previews[-1]["image"]))))
        self.assertLessEqual(abs(last - (127.5 * (wanted + 1)).clip(0, 255).transpose(1, 2, 0)).max(), 0.51)
        self.assertEqual(base64.b64decode(got[-1]["image"]), self.command("sd", "--seed", 2, "--size", "256x264", "--steps", 3)[0])

    def test_decoder_alone(self):
        """What reads no picture to begin with refuses one before it waits."""
        model = image_tiny_test.tiny(1, **image_tiny_test.THREE)
        safetensors.torch.save_file(image_tiny_test.makers_names(model, "decoder"), self.folder / "taesd_decoder.safetensors")
        server = serving.serve_for(self, self.folder / "sd", "--vae", self.folder / "taesd_decoder.safetensors", model_option="--images")
        status, _, said = server.ask("POST", "/v1/jobs", {"operation": "image_transform", "prompt": "x", "input_image": base64.b64encode(png(256, 256)).decode()})
        self.assertEqual(status, 400, said)
        self.assertIn("decoder alone", said)

    def test_flux(self):
        server = serving.serve_for(self, self.folder / "flux", "--images-frugal", "--name", "painter", model_option="--images")
        answer = server.post("/v1/images/generations", model="painter", prompt=PROMPT, size="40x32", seed=3)
        got = PIL.Image.open(io.BytesIO(base64.b64decode(answer["data"][0]["b64_json"])))
        want = PIL.Image.open(io.BytesIO(self.command("flux", "--size", "40x32", "--seed", 3)[0]))
        self.assertEqual(got.tobytes(), want.tobytes())
        self.assertIn("Model: painter", got.text["parameters"])
        self.assertEqual([sampler["name"] for sampler in json.loads(server.ask("GET", "/sdapi/v1/samplers")[2])], ["Euler"])
        self.assertEqual(server.ask("POST", "/sdapi/v1/txt2img", {"prompt": "x", "sampler_name": "DDIM", "width": 8, "height": 8})[0], 422)

    # ---- what there is, and what is being done ----

    def test_lists(self):
        get = lambda path: json.loads(self.server.ask("GET", path)[2])
        self.assertIn({"name": "Euler a", "aliases": ["euler_ancestral"], "options": {}}, get("/sdapi/v1/samplers"))
        for sampler in get("/sdapi/v1/samplers"):
            self.assertEqual(len(self.server.post("/sdapi/v1/txt2img", prompt="x", steps=2, sampler_name=sampler["name"])["images"]), 1)
        self.assertIn("Karras", [scheduler["label"] for scheduler in get("/sdapi/v1/schedulers")])
        self.assertEqual(get("/sdapi/v1/sd-models")[0]["model_name"], "sd")
        options = get("/sdapi/v1/options")
        self.assertEqual(options["sd_model_checkpoint"], "sd")
        self.assertEqual(self.server.ask("POST", "/sdapi/v1/options", options)[0], 200)
        self.assertEqual(get("/health")["model"], "sd")
        self.wait_idle()
        idle = self.progress()
        self.assertEqual((idle["progress"], idle["state"]["sampling_steps"], idle["current_image"]), (0, 0, None))

    def draw_in_background(self, server, path="/sdapi/v1/txt2img", body=LONG):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(server.ask("POST", path, body)))
        thread.start()
        self.addCleanup(thread.join)
        return thread, answers

    def test_progress_and_interrupt(self):
        self.server.post("/sdapi/v1/txt2img", prompt=PROMPT, steps=1)  # what previews are learned from
        thread, answers = self.draw_in_background(self.server)
        serving.wait_for(lambda: self.progress()["state"]["sampling_step"] > 1)
        now = self.progress()
        self.assertEqual((now["state"]["sampling_steps"], now["state"]["job_count"]), (150, 1))
        self.assertTrue(0 < now["progress"] < 1 and now["eta_relative"] > 0)
        self.assertEqual(PIL.Image.open(io.BytesIO(base64.b64decode(now["current_image"]))).size, (64, 64))
        self.server.post("/sdapi/v1/interrupt")
        thread.join()
        status, _, text = answers[0]
        self.assertEqual((status, json.loads(text)["error"]), (503, "Interrupted"))
        self.wait_idle()
        self.assertEqual(len(self.server.post("/sdapi/v1/txt2img", prompt=PROMPT, steps=1)["images"]), 1)

    def leave(self, server, path, body, seconds):
        """Asks, and goes before the answer."""
        data = json.dumps(body).encode()
        with contextlib.closing(socket.create_connection(("127.0.0.1", server.port))) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            time.sleep(seconds)

    def test_who_goes(self):
        """What nobody waits for is not drawn to its end, nor what waits behind it."""
        for _ in range(2):
            self.leave(self.server, "/sdapi/v1/txt2img", LONG, 0.3)
        begun = time.monotonic()
        self.wait_idle()
        self.assertLess(time.monotonic() - begun, 30)
        job = self.server.post("/v1/jobs", operation="image_generation", prompt=PROMPT, steps=150, width=256, height=256)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port)) as connection:
            connection.request("GET", job["sse_url"])
            self.assertIn(b"started", connection.getresponse().read(80))
        self.wait_idle()

    def test_queue(self):
        server = serving.serve_for(self, self.folder / "sd", "--queue", 1, "--seconds", 600, model_option="--images")
        first = self.draw_in_background(server)
        serving.wait_for(lambda: self.progress(server)["state"]["sampling_steps"] == 150)
        second = self.draw_in_background(server, body={"prompt": PROMPT, "steps": 1, "seed": 3})
        serving.wait_for(lambda: self.progress(server)["state"]["job_count"] == 2)
        for path, body in [("/sdapi/v1/txt2img", {"prompt": "x"}), ("/v1/images/generations", {"prompt": "x"}), ("/v1/jobs", {"operation": "image_generation", "prompt": "x", "width": 256, "height": 256})]:
            self.assertEqual(server.ask("POST", path, body)[0], 429)
        server.post("/sdapi/v1/interrupt")
        first[0].join(), second[0].join()
        self.assertEqual((first[1][0][0], second[1][0][0]), (503, 200))
        self.assertEqual([base64.b64decode(json.loads(second[1][0][2])["images"][0])], self.command("sd", "--steps", 1, "--seed", 3))

    def test_time_and_end(self):
        server = serving.Server(self.folder / "sd", "--seconds", 0.5, model_option="--images")
        self.assertEqual(server.ask("POST", "/sdapi/v1/txt2img", LONG)[0], 503)
        server.stop()
        server = serving.Server(self.folder / "sd", model_option="--images")
        thread, answers = self.draw_in_background(server, body={"prompt": PROMPT, "steps": 40, "width": 64, "height": 64})
        serving.wait_for(lambda: answers or self.progress(server)["state"]["sampling_steps"])
        server.stop()  # who waits is answered first
        thread.join()
        self.assertEqual(answers[0][0], 200)

    def test_random_jobs(self):
        """Many, of which some are left and some are wrong: those that are answered are right, and no memory is lost."""
        order, held = random.Random(4), []
        self.server.post("/sdapi/v1/txt2img", **{**LONG, "steps": 1})
        for i in range(25):
            if i in (8, 24):
                self.wait_idle()
                self.server.post("/sdapi/v1/txt2img", prompt=PROMPT, steps=1)
                held.append(self.server.metrics()["memory_bytes"])
            kind = order.randrange(4)
            if kind == 0:
                self.leave(self.server, "/sdapi/v1/txt2img", {**LONG, "steps": 8}, order.random() / 5)
            elif kind == 1:
                self.assertEqual(self.server.ask("POST", "/sdapi/v1/txt2img", {"prompt": "x", "width": 41})[0], 422)
            elif kind == 2:
                self.server.post("/v1/jobs", operation="image_generation", prompt="x", steps=1, width=256, height=256)
            else:
                answer = self.server.post("/sdapi/v1/txt2img", prompt=PROMPT, steps=2, seed=5)
                self.assertEqual(PIL.Image.open(io.BytesIO(base64.b64decode(answer["images"][0]))).size, (40, 40))
        self.assertLessEqual(held[1], held[0])

    # ---- what is refused ----

    def test_refusals(self):
        picture = base64.b64encode(png(40, 40)).decode()
        huge = {"prompt": "x" * 40000}
        jobs = {"operation": "image_generation", "prompt": "x"}
        openai, sdapi, img2img, worker = "/v1/images/generations", "/sdapi/v1/txt2img", "/sdapi/v1/img2img", "/v1/jobs"
        for path, body, status, word in [
                (openai, {}, 400, "prompt"), (openai, {"prompt": 3}, 400, "prompt"), (openai, huge, 400, "32768"), (openai, {"prompt": "x", "n": 11}, 400, "n"), (openai, {"prompt": "x", "n": 0}, 400, "n"),
                (openai, {"prompt": "x", "size": "40"}, 400, "size"), (openai, {"prompt": "x", "size": "41x40"}, 400, "multiples of 4"), (openai, {"prompt": "x", "size": "4096x4096"}, 400, "size"),
                (openai, {"prompt": "x", "size": "40x40x40"}, 400, "size"), (openai, {"prompt": "x", "response_format": "url"}, 400, "b64_json"), (openai, {"prompt": "x", "output_format": "webp"}, 400, "jpeg"), (openai, {"prompt": "x", "output_compression": 50}, 400, "output_compression"), (openai, {"prompt": "x", "output_format": "jpeg", "output_compression": 101}, 400, "output_compression"), (openai, {"prompt": "x", "quality": "best"}, 400, "quality"), (openai, {"prompt": "x", "background": "transparent"}, 400, "background"), (openai, {"prompt": "x" * 32700, "output_format": "jpeg"}, 400, "prompt"),
                (openai, {"prompt": "x", "stream": 3}, 400, "stream"), (openai, {"prompt": "x", "partial_images": 2}, 400, "partial_images"), (openai, {"prompt": "x", "stream": True, "partial_images": 4}, 400, "partial_images"), (openai, {"prompt": "x", "magic": 1}, 400, "magic"), (openai, {"prompt": "x", "model": "dall-e-3"}, 404, "dall-e-3"),
                (openai, {"prompt": "x", "steps": 1e9}, 400, "steps"), (openai, {"prompt": "x", "sampler": "none"}, 400, "sampler"), (openai, {"prompt": "x", "seed": -1}, 400, "seed"), (openai, b"[", 400, "JSON"),
                (openai, {"prompt": "x", "sampler": "ddim", "schedule": "karras"}, 400, "karras"),
                (sdapi, {"steps": 151}, 422, "steps"), (sdapi, {"width": 0}, 422, "width"), (sdapi, {"width": 42}, 422, "multiples"), (sdapi, {"cfg_scale": "x"}, 422, "cfg_scale"), (sdapi, huge, 422, "prompt"),
                (sdapi, {"sampler_name": "Magic"}, 422, "Magic"), (sdapi, {"scheduler": "Magic"}, 422, "Magic"), (sdapi, {"batch_size": 4, "n_iter": 5}, 422, "20"),
                (sdapi, {"alwayson_scripts": {"x": {}}}, 422, "script"), (sdapi, {"override_settings": {"sd_vae": "x"}}, 422, "sd_vae"), (sdapi, {"override_settings": {"sd_model_checkpoint": "x"}}, 422, "x"),
                (sdapi, {"override_settings": {"CLIP_stop_at_last_layers": 9}}, 422, "layers"), (sdapi, {"override_settings": 3}, 422, "override_settings"), (sdapi, b"", 422, "body"),
                (img2img, {}, 422, "init_images"), (img2img, {"init_images": []}, 422, "init_images"), (img2img, {"init_images": ["?"]}, 422, "base64"), (img2img, {"init_images": ["QUJD"]}, 422, "PNG"),
                (img2img, {"init_images": [picture[:400]]}, 422, ""), (img2img, {"init_images": [picture], "width": 82, "height": 80}, 422, "82 x 80"), (img2img, {"init_images": [picture], "denoising_strength": 2}, 422, "denoising"),
                (img2img, {"init_images": [picture], "denoising_strength": 0.01}, 422, "strength"), (img2img, {"init_images": [picture], "mask": 3}, 422, "mask"),
                (worker, {}, 400, "prompt"), (worker, {**jobs, "prompt": ""}, 400, "prompt"), (worker, {**jobs, "steps": 151}, 400, "steps"), (worker, {**jobs, "guidance_scale": 21}, 400, "guidance_scale"),
                (worker, {**jobs, "width": 255}, 400, "256"), (worker, {**jobs, "width": 2056}, 400, "2048"), (worker, {**jobs, "width": 260, "height": 256}, 400, "multiple of 8"), (worker, {**jobs, "operation": "infer"}, 400, "infer"),
                (worker, {**jobs, "operation": "image_outpaint"}, 400, "image_outpaint"), (worker, {**jobs, "loras": [{"path": "x"}]}, 400, "path"), (worker, {"operation": "image_transform", "prompt": "x"}, 400, "input_image"),
                ("/sdapi/v1/options", {"sd_model_checkpoint": "other"}, 422, "sd_model_checkpoint"), ("/sdapi/v1/options", {"magic": 1}, 422, "magic"), ("/sdapi/v1/nothing", {}, 404, "nothing"),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, 404, "model")]:
            with self.subTest(f"{path} {str(body)[:80]}"):
                found, _, text = self.server.ask("POST", path, body)
                self.assertEqual(found, status, text)
                self.assertIn(word, text)
                said = json.loads(text)
                if path.startswith("/sdapi"):
                    self.assertTrue(said["detail"])
                    self.assertTrue(status != 422 or said["detail"][0]["loc"][0] == "body")
                elif path == worker:
                    self.assertTrue(said["errors"][0]["message"])
                else:
                    self.assertTrue(said["error"]["message"])
        self.assertEqual(self.server.ask("GET", "/v1/jobs/job-1/stream")[0], 404)
        self.assertEqual(self.server.ask("GET", openai)[0], 405)

    def test_refusals_name_the_field(self):
        """All that the model would refuse is refused before it waits, by the name that the interface has for it."""
        picture = lambda *size: base64.b64encode(png(*size)).decode()
        small, most = picture(40, 40), 2 ** 32 - 1
        openai, sdapi, img2img, worker = "/v1/images/generations", "/sdapi/v1/txt2img", "/sdapi/v1/img2img", "/v1/jobs"
        change = lambda **more: {"operation": "image_transform", "input_image": small, **more}
        fill = lambda **more: {"operation": "image_inpaint", "init_image": small, "mask_image": small, **more}
        cases = [(worker, fill(mask_image=picture(40, 44)), "mask_image"), (worker, fill(mask_image=None), "mask_image"), (worker, fill(init_image=None), "init_image"), (worker, fill(init_image=picture(42, 40)), "mask_image"),
                 (worker, fill(init_image=picture(42, 40), mask_image=picture(42, 40)), "init_image"), (worker, fill(strength=0), "strength"), (worker, fill(input_image=small), "input_image"),
                 (openai, {"schedule": "nonsense"}, "schedule"), (openai, {"sampler": "ddim", "schedule": "karras"}, "schedule"), (openai, {"seed": most, "n": 2}, "seed"), (openai, {"size": "40x41"}, "size"),
                 (openai, {"background": "transparent"}, "background"), (openai, {"quality": 3}, "quality"), (sdapi, {"sampler_name": "DDIM", "scheduler": "Karras"}, "scheduler"), (sdapi, {"sampler_name": "DDIM Karras"}, "scheduler"),
                 (sdapi, {"width": 42}, "width"), (sdapi, {"height": 42}, "height"), (sdapi, {"seed": most, "batch_size": 2}, "seed"), (sdapi, {"seed": most - 2, "batch_size": 2, "n_iter": 2}, "seed"),
                 (img2img, {"init_images": [picture(2052, 4)]}, "init_images"), (img2img, {"init_images": [picture(4, 2052)]}, "init_images"), (img2img, {"init_images": [picture(41, 40)]}, "init_images"),
                 (img2img, {"init_images": [small], "denoising_strength": 0}, "denoising_strength"), (img2img, {"init_images": [small], "denoising_strength": 0.1, "steps": 9}, "denoising_strength"),
                 (worker, change(input_image=picture(2052, 4)), "input_image"), (worker, change(input_image=picture(42, 40)), "input_image"), (worker, change(strength=0), "strength"), (worker, change(schedule="nonsense"), "schedule"),
                 (worker, {"schedule": "nonsense", "width": 256, "height": 256}, "schedule")]
        cases += [(openai, {"size": size}, "size") for size in ("+40x 40", "+40x40", "40x+40", " 40x40", "40x 40", "40x40 ", "40x-40", "x40", "40x", "", "4294967336x40")]
        for path in (sdapi, img2img):
            asked = [("eta", "x"), ("s_noise", 0), ("s_noise", [1]), ("s_tmin", 0.5), ("s_tmax", 1), ("s_min_uncond", 0.5), ("seed_resize_from_h", 64), ("send_images", False), ("override_settings_restore_afterwards", False),
                     ("include_init_images", True), ("alwayson_scripts", ["a"]), ("alwayson_scripts", []), ("alwayson_scripts", "a"), ("alwayson_scripts", 3)]
            cases += [(path, {"init_images": [small], **{name: value}} if path == img2img else {name: value}, name) for name, value in asked]
        cases += [(sdapi, {name: value}, name) for name, value in [("init_images", "nonsense"), ("init_images", [small]), ("mask", small)]] + [(sdapi, {"eta": 0, "sampler_name": "Euler a"}, "eta")]
        for path, body, field in cases:
            with self.subTest(f"{path} {str(body)[:90]}"):
                found, _, text = self.server.ask("POST", path, {"prompt": "x", "steps": 2, **body})
                self.assertEqual(found, 422 if path.startswith("/sdapi") else 400, text)
                said = json.loads(text)
                self.assertEqual(said["detail"][0]["loc"][1] if path.startswith("/sdapi") else said["errors"][0]["field"] if path == worker else said["error"]["param"], field)
        for operation in ({"width": 256, "height": 256}, change()):
            found, _, text = self.server.ask("POST", worker, {"prompt": "x", "steps": 2, "model": "other", **operation})
            self.assertEqual(found, 404, text)
            self.assertIn("'other'", text)

    def test_usual_values(self):
        """What programs send as they always do, and what is at a limit."""
        usual = {"eta": None, "s_noise": 1.0, "s_tmin": 0.0, "s_tmax": 0, "s_churn": 0.0, "s_min_uncond": 0, "seed_resize_from_h": -1, "seed_resize_from_w": 0, "send_images": True, "save_images": True,
                 "override_settings_restore_afterwards": True, "alwayson_scripts": {}, "init_images": None, "denoising_strength": 0.0, "resize_mode": 0, "include_init_images": False}
        most = 2 ** 32 - 1
        answer = self.server.post("/sdapi/v1/txt2img", prompt=PROMPT, steps=2, seed=most - 1, batch_size=2, **usual)
        self.assertEqual([base64.b64decode(image) for image in answer["images"]], self.command("sd", "--count", 2, "--steps", 2, "--seed", most - 1))
        answer = self.server.post("/v1/images/generations", prompt=PROMPT, steps=2, seed=most, size="0040x40", background="opaque", style="vivid")
        self.assertEqual([base64.b64decode(answer["data"][0]["b64_json"])], self.command("sd", "--steps", 2, "--seed", most, "--size", "40x40"))
        picture = base64.b64encode(png(2048, 4)).decode()
        answer = self.server.post("/sdapi/v1/img2img", prompt=PROMPT, steps=1, init_images=[picture], denoising_strength=1)
        self.assertEqual(PIL.Image.open(io.BytesIO(base64.b64decode(answer["images"][0]))).size, (2048, 4))

    def test_unread_jobs(self):
        """Jobs that nobody reads are in memory no longer than their server, which ends in the middle of more."""
        server = serving.Server(self.folder / "sd", "--queue", 100, "--drain", 0, model_option="--images")
        body = {"operation": "image_generation", "prompt": "x", "steps": 150, "width": 256, "height": 256}
        found = []

        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException):
                while not found or found[-1] == 200:
                    found.append(server.ask("POST", "/v1/jobs", body)[0])
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        serving.wait_for(lambda: len(found) > 20)
        server.stop()  # with status 0: under a sanitizer nothing is lost either
        for thread in threads:
            thread.join()
        self.assertLessEqual(set(found), {200, 429, 503})

    def test_strange_requests(self):
        """Fields of any kind are an answer or a refusal, and the server stays."""
        order = random.Random(8)
        values = [None, True, 0, -1, 1, 2, 3.5, 1e300, "", "x", "40x40", [], [3], ["x"], {}, {"a": 1}, "é\x00", 2**40]
        names = ["prompt", "n", "size", "steps", "seed", "width", "height", "cfg_scale", "guidance_scale", "sampler_name", "scheduler", "init_images", "override_settings", "operation", "input_image", "strength", "model"]
        for _ in range(80):
            body = {"steps": 1, **{name: order.choice(values) for name in order.sample(names, order.randrange(1, 5))}}
            status = self.server.ask("POST", order.choice(["/v1/images/generations", "/sdapi/v1/txt2img", "/sdapi/v1/img2img", "/v1/jobs"]), body)[0]
            self.assertIn(status, (200, 400, 404, 422), body)
        self.assertEqual(json.loads(self.server.ask("GET", "/health")[2])["status"], "healthy")

    def test_without_pictures(self):
        server = serving.serve_for(self, rdna_program.DEMO_MODEL)
        for method, path in [("POST", "/v1/images/generations"), ("POST", "/sdapi/v1/txt2img"), ("GET", "/sdapi/v1/samplers"), ("GET", "/sdapi/v1/progress"), ("POST", "/sdapi/v1/interrupt")]:
            status, _, text = server.ask(method, path, {"prompt": "x"} if method == "POST" else None)
            self.assertEqual(status, 404)
            self.assertIn("--images", text)

    def test_command_lines(self):
        for options, status, word in [(["--images", self.folder / "sd", rdna_program.DEMO_MODEL], 2, "--images"), (["--images-frugal", rdna_program.DEMO_MODEL], 2, "--images"),
                                      (["--images", self.folder], 1, "model_index.json")]:
            result = rdna_program.run("serve", *options, "--port", 0, "--device", rdna_program.DEVICE)
            self.assertEqual(result.returncode, status)
            self.assertIn(word, result.stderr.decode())


if __name__ == "__main__":
    unittest.main()
