"""Many requests for pictures at once, of every kind that rdna serve has, of which some are left, some are wrong, some are
interrupted and some get no memory: what is answered is what a quiet server answers, and nothing is kept. The number of
requests and a seed are arguments (tests/nightly.sh gives it a thousand, and each commit its own)."""
import base64
import http.client
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import safetensors.torch

import image_adapter_test
import image_command_test
import image_control_test
import image_upscaler_test as upscaler
import rdna_program
import serving
from serve_edits_test import form, picture, png
from serve_extras_test import lora
from serve_sdapi_test import base, oval, smooth

REQUESTS = int(os.environ.get("RDNA_SOAK", 48))
SEED = 1
READERS = 5
PARTS = 4
MALLOC = os.environ.get("RDNA_FAILING_MALLOC", str(pathlib.Path(rdna_program.PROGRAM).parent.parent / "tests/libfailing_malloc.so"))


def recipes():
    """(path, body, headers) of each kind, always the same picture."""
    init, mask = base(smooth(1, 40, 24)), base(oval(40, 24, (8, 4, 30, 20)))
    drawn = {"prompt": "a dog", "seed": 3, "steps": 2}
    sized = {**drawn, "width": 40, "height": 24}
    masked = {**sized, "init_images": [init], "mask": mask, "denoising_strength": 0.6}
    unit = lambda **more: {"alwayson_scripts": {"controlnet": {"args": [{"image": init, **more}]}}}
    fields = [("image", png(picture(24, 20))), ("mask", png(picture(24, 20, 6, "RGBA"))), ("prompt", "x"), ("steps", 2), ("seed", 3)]
    json_ones = [("/sdapi/v1/txt2img", sized), ("/sdapi/v1/txt2img", {**sized, "prompt": "a dog <lora:ink:0.7>"}), ("/sdapi/v1/txt2img", {**sized, "prompt": "a dog <lora:ink:-0.2>", "n_iter": 2}), ("/sdapi/v1/txt2img", {**sized, **unit(model="lines", weight=0.8)}),
                 ("/sdapi/v1/txt2img", {**sized, **unit(model="face", module="ip-adapter-auto")}), ("/sdapi/v1/txt2img", {**drawn, "width": 24, "height": 20, "enable_hr": True, "hr_upscaler": "toy-x2", "denoising_strength": 0.6}),
                 ("/sdapi/v1/img2img", {**sized, "init_images": [init], "steps": 4, "denoising_strength": 0.5}), ("/sdapi/v1/img2img", {**masked, "inpaint_full_res": False, "inpainting_fill": 1}), ("/sdapi/v1/img2img", {**masked, "inpainting_fill": 0}),
                 ("/sdapi/v1/extra-single-image", {"image": init, "upscaler_1": "toy-x2"}), ("/v1/images/generations", {**drawn, "size": "40x24", "output_format": "jpeg", "loras": [{"name": "ink"}], "ip_adapters": [{"name": "face", "image": mask}]}),
                 ("/v1/images/generations", {**drawn, "size": "40x24", "stream": True, "partial_images": 3, "steps": 5}),
                 ("/v1/jobs", {**drawn, "operation": "image_transform", "input_image": init, "steps": 4, "strength": 0.9})]
    return [(path, json.dumps(body).encode(), {"Content-Type": "application/json"}) for path, body in json_ones] + [("/v1/images/edits", *form(fields))]


def pictures(text):
    """The finished pictures of an answer of whatever interface; None: it says that it failed, which only a stream does late."""
    if text.startswith(("event:", "data:", ":")):
        data = [event.split("data: ", 1)[1] for event in text.split("\n\n") if "data: " in event]
        events = [json.loads(one) for one in data if one != "[DONE]"]
        made = [event.get("b64_json") or event["image"] for event in events if event["type"].endswith(("complete", "completed"))]
        return None if events[-1]["type"] == "error" else made
    answer = json.loads(text)
    return answer["images"] if "images" in answer else [answer["image"]] if "image" in answer else [entry["b64_json"] for entry in answer["data"]]


class Soak(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder = serving.folder_for(cls)
        pipeline = image_command_test.make_folder(folder / "sd")
        image_adapter_test.random_encoder(2).save_pretrained(folder / "encoder")
        safetensors.torch.save_file(image_adapter_test.random_adapter(pipeline.unet, 3, image_adapter_test.VISION["projection_dim"], False), folder / "face.safetensors")
        safetensors.torch.save_file(lora(pipeline, 0), folder / "ink.safetensors")
        image_control_test.random_control(dict(pipeline.unet.config), 7).save_pretrained(folder / "lines")
        small = upscaler.save(folder / "toy-x2.safetensors", upscaler.random_network(upscaler.Compact(scale=2), 1).state_dict())
        cls.server = serving.serve_for(cls, folder / "sd", "--upscaler", small, "--ip-adapter", folder / "face.safetensors", "--ip-encoder", folder / "encoder", "--lora", folder / "ink.safetensors", "--control", folder / "lines",
                                       model_option="--images", environment={"LD_PRELOAD": MALLOC, "RDNA_TEST_FAIL_SOON": "1"})

    def resident(self):
        lines = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024

    def files(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def fail_soon(self):
        """Some call soon gets no memory."""
        self.failing.append(True)  # by several threads
        os.kill(self.server.process.pid, signal.SIGUSR1)

    def ask(self, method, path, body=None, headers=None):
        """(status, text); (0, "") of a connection that closed, as one does without memory for an answer."""
        try:
            status, _, text = self.server.ask(method, path, body, headers)
            return status, text
        except (http.client.HTTPException, ConnectionError):
            return 0, ""

    def draw(self, path, body, headers):
        """The same of a recipe, whose pictures a job's stream has where it is one."""
        status, text = self.ask("POST", path, body, headers)
        return self.ask("GET", json.loads(text)["sse_url"]) if status == 200 and path == "/v1/jobs" else (status, text)

    def leave(self, path, body, headers, seconds):
        method = "POST"
        if path == "/v1/jobs":  # whose stream is left
            status, text = self.ask("POST", path, body, headers)
            if status != 200:
                self.assertIn("memory" if status else "", text)
                return
            method, path, body = "GET", json.loads(text)["sse_url"], None
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request(method, path, body, headers)
        time.sleep(seconds)
        connection.close()

    def one(self, order):
        """A request, and what came of it."""
        which, chance = order.randrange(len(self.recipes)), order.random()
        path, body, headers = self.recipes[which]
        if chance < 0.1:
            self.leave(path, body, headers, order.random() / 4)
            return "left"
        if chance < 0.15:
            status, text = self.ask("POST", "/sdapi/v1/interrupt")
            self.assertIn((status, text.strip()), ((200, "{}"), (0, "")))
            return "interrupts" if status else "broken off"
        if chance < 0.2:
            damaged = bytearray(body)
            damaged[order.randrange(len(damaged))] = order.randrange(256)
            status, text = self.ask("POST", path, bytes(damaged), headers)
            self.assertIn(status, (200, 400, 404, 422, 500, 503) if text else (0,), text)
            self.assertTrue(status != 500 or "memory" in text, text)
            return "damaged"
        if chance < 0.3:
            self.fail_soon()
        status, text = self.draw(path, body, headers)
        if not status:
            return "broken off"
        got = pictures(text) if status == 200 else None
        if got is not None:
            self.assertEqual(got, self.wanted[which], f"{path} {body[:200]}")
            return "right"
        if "memory" in text:
            self.assertIn(status, (200, 500, 503), text)  # 200: of a stream
            return "without memory"
        self.assertIn("cancelled", text)
        self.assertIn(status, (200, 503), text)
        return "interrupted"

    def storm(self, count, seed):
        counts, problems, left = {}, [], list(range(count))
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    if not left or problems:
                        return
                    number = left.pop()
                order = random.Random(seed * 100000 + number)
                try:
                    what = self.one(order)
                except Exception as problem:
                    problem.add_note(f"at request {number} of seed {seed}")
                    problems.append(problem)
                    return
                with lock:
                    counts[what] = counts.get(what, 0) + 1
        threads = [threading.Thread(target=work) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):  # somebody looks all the while
            self.ask("GET", "/sdapi/v1/progress")
            time.sleep(0.05)
        if problems:
            raise problems[0]
        return counts

    def quiet(self):
        made = []
        for path, body, headers in self.recipes:
            status, text = self.draw(path, body, headers)
            self.assertEqual(status, 200, text)
            made.append(pictures(text))
        return made

    def test_soak(self):
        self.__class__.recipes = recipes()
        self.__class__.wanted = self.quiet()
        self.assertEqual(len({str(one) for one in self.wanted}), len(self.recipes))
        self.__class__.failing = []
        counts, held = {}, []
        for part in range(PARTS):
            for what, number in self.storm(REQUESTS // PARTS, PARTS * SEED + part).items():
                counts[what] = counts.get(what, 0) + number
            self.fail_soon()
            for _ in range(20):  # until what was still to fail has failed
                self.ask("POST", self.recipes[0][0], self.recipes[0][1])
            serving.wait_for(lambda: json.loads(self.server.ask("GET", "/sdapi/v1/progress")[2])["state"]["job_count"] == 0)
            self.assertEqual(self.quiet(), self.wanted)
            held.append((self.resident(), self.server.metrics()["memory_bytes"], self.files()))
        print(f"{REQUESTS} requests: {counts}; {len(self.failing)} times no memory soon; resident, on the device, open files {held}")
        self.assertGreater(counts["right"], REQUESTS // 3)
        self.assertLessEqual(counts.get("interrupted", 0), counts.get("interrupts", 0) + counts.get("broken off", 0))
        self.assertLessEqual(counts.get("without memory", 0) + counts.get("broken off", 0), len(self.failing))
        self.assertLessEqual(held[-1][0], held[0][0] + (4 << 20))  # a heap in pieces, not pictures that are kept
        self.assertLessEqual(held[-1][1], held[0][1])
        self.assertLessEqual(held[-1][2], held[0][2] + 3)  # connections that end while they are counted


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[-2].isdigit():
        SEED = int(sys.argv.pop())
    if len(sys.argv) > 1 and sys.argv[-1].isdigit():
        REQUESTS = int(sys.argv.pop())
    unittest.main()
