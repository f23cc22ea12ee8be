"""Pictures for rdna run and rdna serve: in the manner of every interface, read once, and refused where they are none."""
import base64
import io
import itertools
import json
import re
import threading
import time
import unittest

import transformers_python  # first: this goes on in a Python that has transformers

import numpy as np
from PIL import Image

import rdna_program  # first: it makes tools/ importable
import serving
import vision_files
from rdna_program import output, run
from vision_files import encoded, picture

WORDS, COUNT = "What is there to be seen?", 12


def url(data, kind="png"):
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def part(data, kind="png"):
    return {"type": "image_url", "image_url": {"url": url(data, kind)}}


class Pictures:
    """For each family a model, a tower and a server of them."""

    options = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        cls.model, cls.tower = vision_files.write_files(cls.folder, cls.kind)
        cls.server = serving.serve_for(cls, cls.model, "--mmproj", cls.tower, "--name", "seer", "--kv", "f32", *cls.options,
                                       environment={"ASAN_OPTIONS": "quarantine_size_mb=1"})  # which keeps what was freed

    def chat(self, *content, server=None, **more):
        body = {"messages": [{"role": "user", "content": list(content)}], "temperature": 0, "max_tokens": COUNT, **more}
        return (server or self.server).post("/v1/chat/completions", **body)

    def text_of(self, answer):
        return answer["choices"][0]["message"]["content"]

    def written(self, pixels, *options):
        """What rdna run writes."""
        path = self.folder / f"{hash(pixels.tobytes())}.png"
        path.write_bytes(encoded(pixels))
        return json.loads(output("run", self.model, WORDS, "--chat", "--json", "--greedy", "--max-tokens", COUNT, "--kv", "f32",
                                 "--mmproj", self.tower, "--image", path, "--device", rdna_program.DEVICE, *options))

    def test_run(self):
        first, other = self.written(picture(1)), self.written(picture(2))
        self.assertNotEqual(first["text"], other["text"])
        self.assertGreater(len(set(first["tokens"])), COUNT // 2)
        self.assertEqual(first["prompt_tokens"], other["prompt_tokens"])
        self.assertEqual(self.written(picture(1), "--batch", 40)["text"], first["text"])
        self.files()
        both = json.loads(output("run", self.model, self.mark + WORDS + self.mark + "!", "--json", "--special", "--mmproj",
                                 self.tower, "--image", self.folder / "a.png", "--image", self.folder / "b.png",
                                 "--max-tokens", 3))
        self.assertEqual(len(both["tokens"]), 3)

    def files(self):
        for name, seed in (("a.png", 1), ("b.png", 2)):
            (self.folder / name).write_bytes(encoded(picture(seed)))

    def test_misuse(self):
        self.files()
        for arguments, status, sentence in (
                (["--image", self.folder / "a.png"], 2, "--mmproj and --image go together"),
                (["--mmproj", self.tower], 2, "--mmproj and --image go together"),
                (["--mmproj", self.tower, "--image", self.folder / "none.png"], 1, "none.png"),
                (["--mmproj", self.tower, "--image", self.tower], 1, "read as PNG and JPEG, and this is something else"),
                (["--mmproj", self.model, "--image", self.folder / "a.png"], 1, "towers for pictures have 'clip'"),
                (["--mmproj", self.tower, "--image", self.folder / "a.png"], 1, "1 pictures, and the text has 0 places"),
        ):
            with self.subTest(sentence):
                result = run("run", self.model, WORDS, *arguments)
                self.assertEqual((result.returncode, sentence in result.stderr.decode()), (status, True), result.stderr)

    def test_interfaces(self):
        pixels = picture(3)
        want, data = self.written(pixels), encoded(pixels)
        whole = self.chat(part(data), {"type": "text", "text": WORDS})
        self.assertEqual(self.text_of(whole), want["text"])
        self.assertEqual(whole["usage"]["prompt_tokens"], want["prompt_tokens"])
        raw = base64.b64encode(data).decode()
        said = self.server.post("/v1/messages", max_tokens=COUNT, temperature=0, messages=[{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": raw}},
            {"type": "text", "text": WORDS}]}])
        self.assertEqual(said["content"][0]["text"], want["text"])
        counted = self.server.post("/v1/messages/count_tokens", messages=[{"role": "user", "content": [
            {"type": "image", "source": {"type": "url", "url": url(data)}}, {"type": "text", "text": WORDS}]}])
        self.assertEqual(counted["input_tokens"], want["prompt_tokens"])
        message = {"role": "user", "content": WORDS, "images": [raw]}
        options = {"temperature": 0, "num_predict": COUNT, "repeat_penalty": 1}
        said = self.server.post("/api/chat", model="seer", messages=[message], stream=False, options=options)
        self.assertEqual(said["message"]["content"], want["text"])
        said = self.server.post("/api/generate", model="seer", prompt=WORDS, images=[raw], stream=False, options=options)
        self.assertEqual(said["response"], want["text"])
        said = self.server.post("/v1/responses", temperature=0, max_output_tokens=COUNT, input=[{"role": "user", "content": [
            {"type": "input_image", "image_url": url(data)}, {"type": "input_text", "text": WORDS}]}])
        self.assertEqual(said["output"][0]["content"][0]["text"], want["text"])
        status, _, stream = self.server.ask("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": [part(data), {"type": "text", "text": WORDS}]}], "temperature": 0,
            "max_tokens": COUNT, "stream": True})
        events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
        told = "".join(event["choices"][0]["delta"].get("content", "") for event in events if event["choices"])
        self.assertEqual((status, told), (200, want["text"]))
        self.assertIn("vision", self.server.post("/api/show", model="seer")["capabilities"])
        listed = json.loads(self.server.ask("GET", "/v1/models")[2])["data"][0]
        self.assertEqual(listed["input_modalities"], ["text", "image"])
        shown = self.server.post("/apply-template", messages=[{"role": "user", "content": [part(data)]}])
        self.assertIn(self.mark, shown["prompt"])

    def test_jpeg(self):
        """The answer to its pixels, which Pillow decodes, and to no others."""
        text, answers = {"type": "text", "text": WORDS}, []
        for seed, quality in enumerate((95, 2, 60), 4):
            data = encoded(picture(seed), "JPEG", quality=quality, subsampling=0)
            pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            answers.append(self.text_of(self.chat(part(data, "jpeg"), text)))
            self.assertEqual(answers[-1], self.text_of(self.chat(part(encoded(pixels)), text)))
        self.assertGreater(len(set(answers)), 1)

    def test_turned(self):
        """EXIF turns JPEGs and PNGs, and sizes are those of what is seen: this picture makes another prompt than its file's rows do."""
        exif = Image.Exif()
        exif[0x0112] = 6
        pixels, text = picture(12, 30, 90), {"type": "text", "text": WORDS}
        want = self.chat(part(encoded(np.rot90(pixels, -1))), text)
        got = self.chat(part(encoded(pixels, exif=exif)), text)
        self.assertEqual(self.text_of(got), self.text_of(want))
        self.assertEqual(got["usage"]["prompt_tokens"], want["usage"]["prompt_tokens"])
        self.assertNotEqual(self.text_of(self.chat(part(encoded(pixels)), text)), self.text_of(want))

    def test_many_pixels(self):
        """One after another is read, and none of a prompt that is too long or of more than a request may have."""
        with open(f"/proc/{self.server.process.pid}/status") as status:
            before = int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])
        large = encoded(np.zeros((3000, 2900), np.uint8))  # 26 MB
        self.chat(*[part(large)] * 8, {"type": "text", "text": WORDS}, max_tokens=1)
        status, _, body = self.server.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": [part(large)] * 16}]})
        self.assertEqual((status, "up to number 16 have 139200000 pixels" in body), (400, True), body)
        with open(f"/proc/{self.server.process.pid}/status") as status:
            peak = int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])
        self.assertLess(peak - before, 90 << 10)

    def test_nobody_waits_for_ever(self):
        """Among others that never cease, with no more room in a step than one of them asks for."""
        server = serving.serve_for(self, self.model, "--mmproj", self.tower, "--kv", "f32", "--batch", 9, "--slots", 3)
        text, ended = {"type": "text", "text": "and"}, threading.Event()

        def go_on(i, content, **more):
            for k in itertools.count():
                if ended.is_set():
                    return
                self.chat({"type": "text", "text": f"{i} {k}"}, *content(i, k), text, server=server, **more)

        texts = lambda i, k: []
        pictures = lambda i, k: [part(encoded(picture(100 * i + k, 30, 30)))] * 3
        for others, wanted, more in ((texts, [part(encoded(picture(9)))], {"max_tokens": 300, "ignore_eos": True}), (pictures, [], {"max_tokens": 1})):
            ended.clear()
            threads = [threading.Thread(target=go_on, args=(i, others), kwargs=more) for i in range(2)]
            for thread in threads:
                thread.start()
            answer = threading.Thread(target=self.chat, args=[*wanted, text], kwargs={"server": server, "max_tokens": 2}, daemon=True)
            time.sleep(0.2)
            answer.start()
            answer.join(20)
            waits = answer.is_alive()
            ended.set()
            for thread in [*threads, answer]:
                thread.join()
            self.assertFalse(waits, "texts" if others is texts else "pictures")

    def test_reuse(self):
        """A picture that was read is not seen again; another one of the same size is."""
        first, second = encoded(picture(5)), encoded(picture(6))
        text = {"type": "text", "text": WORDS}
        before = self.server.metrics()["pictures_total"]
        cold = self.chat(text, part(first), text)
        again = self.chat(text, part(first), text)
        tokens = cold["usage"]["prompt_tokens"]
        self.assertEqual(again["usage"]["prompt_tokens_details"]["cached_tokens"], tokens - 1)
        self.assertEqual(self.text_of(again), self.text_of(cold))
        self.assertEqual(self.server.metrics()["pictures_total"] - before, 1)
        other = self.chat(text, part(second), text)
        self.assertLess(other["usage"]["prompt_tokens_details"]["cached_tokens"], tokens - self.least)
        self.assertNotEqual(self.text_of(other), self.text_of(cold))
        turn = [{"role": "user", "content": [text, part(first), text]}, {"role": "assistant", "content": self.text_of(cold)},
                {"role": "user", "content": [text, part(second)]}]
        went_on = self.server.post("/v1/chat/completions", messages=turn, temperature=0, max_tokens=COUNT)
        self.assertGreater(went_on["usage"]["prompt_tokens_details"]["cached_tokens"], tokens - 20)
        self.assertEqual(self.server.metrics()["pictures_total"] - before, 3)
        fresh = serving.serve_for(self, self.model, "--mmproj", self.tower, "--kv", "f32")
        self.assertEqual(self.text_of(fresh.post("/v1/chat/completions", messages=turn, temperature=0, max_tokens=COUNT)),
                         self.text_of(went_on))

    def test_many_at_once(self):
        seeds = range(20, 28)
        alone = {seed: self.text_of(self.chat(part(encoded(picture(seed))), {"type": "text", "text": WORDS})) for seed in seeds}
        fresh = serving.serve_for(self, self.model, "--mmproj", self.tower, "--kv", "f32", "--slots", 3, "--cache", 400)
        got = {}

        def ask(seed):
            got[seed] = self.text_of(self.chat(part(encoded(picture(seed))), {"type": "text", "text": WORDS}, server=fresh))

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, alone)

    def test_saved(self):
        """What was read before a picture comes back from disk, and the rest is read again."""
        folder = serving.folder_for(self)
        text, answers = {"type": "text", "text": WORDS}, []
        for _ in range(2):
            server = serving.Server(self.model, "--mmproj", self.tower, "--kv", "f32", "--cache-dir", folder)
            answers.append(self.chat(text, part(encoded(picture(8))), text, server=server))
            server.stop()
        self.assertEqual(self.text_of(answers[0]), self.text_of(answers[1]))
        cached = answers[1]["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertTrue(5 < cached < answers[0]["usage"]["prompt_tokens"] - self.least, cached)

    def test_what_is_refused(self):
        fine = encoded(picture(7))
        text = {"type": "text", "text": WORDS}
        for sentence, content in (
                ("this server fetches nothing", [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]),
                ("this server fetches nothing", [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]),
                ("must be data:image/png;base64", [{"type": "image_url", "image_url": {"url": "data:image/png,abc"}}]),
                ("is no base64", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,a*b"}}]),
                ("must be a text", [{"type": "image_url", "image_url": {"url": 3}}]),
                ("this PNG breaks off", [part(fine[:-20])]),
                ("cannot be read", [part(encoded(picture(7), "JPEG")[:300])]),
                ("this is a GIF", [part(encoded(picture(7), "GIF"))]),
                ("this is a WebP", [part(b"RIFF\0\0\0\0WEBPVP8 ")]),
                ("this is something else", [part(b"")]),
                ("sides are from 1", [part(encoded(picture(7, 1, 300)))]),
                ("1 pictures, and the text has 2 places", [part(fine), {"type": "text", "text": f"and {self.mark}"}]),
                ("more than the 64 pictures", [part(fine)] * 65),
                ("prompt is too long", [part(fine)] * 60),
        ):
            with self.subTest(sentence):
                status, _, body = self.server.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": [
                    *content, text]}]})
                self.assertEqual(status, 400, body)
                self.assertIn(sentence, json.loads(body)["error"]["message"])
        bad = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        status, _, body = self.server.ask("POST", "/v1/messages", {"max_tokens": 3, "messages": [{"role": "user", "content": [bad]}]})
        self.assertEqual((status, json.loads(body)["error"]["type"]), (400, "invalid_request_error"))
        status, _, body = self.server.ask("POST", "/v1/messages", {"max_tokens": 3, "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "file", "file_id": "x"}}]}]})
        self.assertEqual((status, "an image's 'source'" in body), (400, True))
        status, _, body = self.server.ask("POST", "/api/chat", {"messages": [{"role": "user", "content": "x", "images": ["AAAA"]}]})
        self.assertEqual((status, "read as PNG and JPEG" in json.loads(body)["error"]), (400, True))
        blind = serving.serve_for(self, self.model, "--name", "blind")
        status, _, body = blind.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": [part(fine), text]}]})
        self.assertEqual((status, "'blind' sees none" in body), (400, True), body)
        self.assertNotIn("vision", blind.post("/api/show", model="blind")["capabilities"])
        self.assertEqual(self.text_of(self.chat(text)), self.text_of(self.chat(text)))  # both are still there


class Gemma3(Pictures, unittest.TestCase):
    kind, mark, least = "gemma3", "<start_of_image>", 9

    def test_pictures_larger_than_a_step(self):
        result = run("serve", self.model, "--mmproj", self.tower, "--slots", 4, "--batch", 8, "--port", 0)
        self.assertEqual(result.returncode, 1)
        self.assertIn("pictures have 9 tokens, which are read in one step, and steps have 8", result.stderr.decode())


class Qwen25(Pictures, unittest.TestCase):
    kind, mark, least = "qwen2.5-vl", "<|image_pad|>", 20


class Lanes(Pictures, unittest.TestCase):
    """The same where every reply has the bits that it has alone."""
    kind, mark, least, options = "qwen3-vl", "<|image_pad|>", 20, ("--lanes", 8)


if __name__ == "__main__":
    unittest.main()
