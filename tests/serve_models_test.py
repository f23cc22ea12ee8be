"""rdna serve with several models: who answers, when each is in memory, what files of presets say, and files that change."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import time
import unittest

import rdna_program
import serving
from rdna_program import DEMO_MODEL

PROMPTS = ["And God said", "The king of Israel", "Blessed is the man", "Woe unto", "Then Moses"]


def write_turned(path, turn):
    """The demo model, but that each token is called by the name of one |turn| places on: it writes other texts."""
    import gguf_file as gf
    import numpy as np
    file = gf.Reader(DEMO_MODEL)
    keys = [(key, *gf.typed(value)) for key, value in file.keys.items() if key != "general.file_type"]
    tensors = [(name, gf.TENSOR_F32, np.roll(array, turn, 0) if name == "output.weight" else array) for name, array in file.tensors.items()]
    gf.write(path, keys, tensors)


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        cls.paths = {"rdna-demo-q8_0": DEMO_MODEL}
        for turn, name in enumerate(("one", "two"), 1):
            cls.paths[name] = cls.folder / f"{name}.gguf"
            write_turned(cls.paths[name], turn)

    def serve(self, *options, model=None, **more):
        model = DEMO_MODEL if model is None else model
        server = serving.Server(model, *options, **more)
        self.addCleanup(server.stop)
        return server

    def presets(self, *models, name="models.json"):
        path = self.folder / name
        path.write_text(json.dumps({"models": models}))
        return path

    def want(self, name, prompt, count):
        return serving.greedy(self.paths[name], prompt, count)["text"]

    def ask(self, server, name, prompt=PROMPTS[0], count=8, **more):
        answer = server.post("/v1/completions", model=name, prompt=prompt, max_tokens=count, temperature=0, **more)
        self.assertEqual(answer["model"], name)
        return answer["choices"][0]["text"]

    def loaded(self, server):
        return {model["name"].removesuffix(":latest") for model in json.loads(server.ask("GET", "/api/ps")[2])["models"]}

    def test_each_answers_by_its_name(self):
        self.assertEqual(len({self.want(name, PROMPTS[0], 8) for name in self.paths}), 3)
        server = self.serve(self.paths["one"], self.paths["two"])
        listed = [model["id"] for model in json.loads(server.ask("GET", "/v1/models")[2])["data"]]
        self.assertEqual(listed, list(self.paths))
        self.assertEqual([model["model"] for model in json.loads(server.ask("GET", "/api/tags")[2])["models"]], [name + ":latest" for name in listed])
        self.assertEqual(self.loaded(server), {"rdna-demo-q8_0"})  # the others when somebody asks
        self.assertEqual(json.loads(server.ask("GET", "/v1/models/one")[2])["id"], "one")
        for name in ("two", "one", "rdna-demo-q8_0", "two"):
            self.assertEqual(self.ask(server, name), self.want(name, PROMPTS[0], 8))
        self.assertEqual(self.loaded(server), set(self.paths))
        self.assertEqual(server.post("/v1/completions", prompt=PROMPTS[0], max_tokens=8, temperature=0)["choices"][0]["text"], self.want("rdna-demo-q8_0", PROMPTS[0], 8))
        self.assertEqual(server.post("/api/show", model="two:latest")["model_info"]["general.architecture"], "llama")

    def test_unknown_names(self):
        server = self.serve(self.paths["one"])
        messages = [{"role": "user", "content": "x"}]
        for path, body, mention in (("/v1/completions", {"prompt": "x"}, lambda a: a["error"]["code"] == "model_not_found"), ("/v1/chat/completions", {"messages": messages}, lambda a: a["error"]["param"] == "model"),
                                    ("/v1/responses", {"input": "x"}, lambda a: a["error"]), ("/v1/messages", {"messages": messages, "max_tokens": 1}, lambda a: a["error"]["type"] == "not_found_error"),
                                    ("/api/chat", {"messages": messages}, lambda a: isinstance(a["error"], str)), ("/api/generate", {"prompt": "x"}, lambda a: isinstance(a["error"], str)),
                                    ("/api/show", {}, lambda a: isinstance(a["error"], str)), ("/tokenize", {"content": "x"}, lambda a: a["error"]["code"] == "model_not_found"),
                                    ("/v1/jobs", {"prompt": "x", "max_tokens": 1}, lambda a: a["code"] == "model_not_found")):
            status, _, text = server.ask("POST", path, {**body, "model": "three"})
            self.assertEqual((status, bool(mention(json.loads(text))), "'one'" in text), (404, True, True), (path, text))
        self.assertEqual(server.ask("GET", "/v1/models/three")[0], 404)

    def test_any_model(self):
        server = self.serve(self.paths["one"], "--any-model")
        text = lambda name: server.post("/v1/completions", model=name, prompt=PROMPTS[0], max_tokens=8, temperature=0)["choices"][0]["text"]
        self.assertEqual((text("gpt-9"), text("one")), (self.want("rdna-demo-q8_0", PROMPTS[0], 8), self.want("one", PROMPTS[0], 8)))

    def test_idle_models_leave(self):
        server = self.serve(self.paths["one"], "--idle", 0.3)
        self.assertEqual(self.ask(server, "one"), self.want("one", PROMPTS[0], 8))
        written = server.metrics()["written_tokens_total"]
        serving.wait_for(lambda: not self.loaded(server))
        self.assertEqual(server.metrics()["written_tokens_total"], written)  # what they did is not forgotten
        self.assertEqual(self.ask(server, "one"), self.want("one", PROMPTS[0], 8))

    def test_keep_alive(self):
        server = self.serve(self.paths["one"], self.paths["two"])
        generate = lambda name, **more: server.post("/api/generate", model=name, stream=False, **more)
        self.assertEqual(generate("one")["done_reason"], "load")
        self.assertEqual(self.loaded(server), {"rdna-demo-q8_0", "one"})
        self.assertEqual(generate("one", keep_alive=0)["done_reason"], "unload")
        serving.wait_for(lambda: self.loaded(server) == {"rdna-demo-q8_0"})
        options = {"temperature": 0, "num_predict": 8, "repeat_penalty": 1.0}
        self.assertEqual(generate("two", prompt=PROMPTS[0], raw=True, keep_alive="100ms", options=options)["response"], self.want("two", PROMPTS[0], 8))
        serving.wait_for(lambda: self.loaded(server) == {"rdna-demo-q8_0"})
        self.assertEqual(server.post("/api/chat", model="two", messages=[], stream=False, keep_alive="1h30m")["done_reason"], "load")
        expires = next(model["expires_at"] for model in json.loads(server.ask("GET", "/api/ps")[2])["models"] if model["name"] == "two:latest")
        left = time.mktime(time.strptime(expires[:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.gmtime())
        self.assertAlmostEqual(left, 5400, delta=30)
        generate("two", keep_alive=-1)
        for bad in ("soon", "5x", "", "m", "1h30", [], True):
            status, _, text = server.ask("POST", "/api/generate", {"model": "two", "prompt": "x", "keep_alive": bad})
            self.assertEqual((status, "keep_alive" in json.loads(text)["error"]), (400, True), bad)

    def test_most_loaded(self):
        server = self.serve(self.paths["one"], self.paths["two"], "--loaded", 2)
        for name, then in (("one", {"rdna-demo-q8_0", "one"}), ("two", {"one", "two"}), ("one", {"one", "two"}), ("rdna-demo-q8_0", {"one", "rdna-demo-q8_0"})):
            self.assertEqual(self.ask(server, name), self.want(name, PROMPTS[0], 8))
            self.assertEqual(self.loaded(server), then)  # the one that was used least recently went

    def test_a_model_in_use_stays(self):
        server = self.serve(self.paths["one"], "--loaded", 1, "--context", 1024)
        long = 400
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            first = pool.submit(self.ask, server, "rdna-demo-q8_0", PROMPTS[1], long, ignore_eos=True)
            serving.wait_for(lambda: server.metrics()["running"] > 0)
            second = pool.submit(self.ask, server, "one")
            time.sleep(0.05)
            third = pool.submit(self.ask, server, "rdna-demo-q8_0")  # behind the one that waits
            self.assertEqual(second.result(), self.want("one", PROMPTS[0], 8))
            self.assertTrue(first.done())
            self.assertEqual(first.result(), serving.greedy(DEMO_MODEL, PROMPTS[1], long, "--ignore-end")["text"])
            self.assertEqual(third.result(), self.want("rdna-demo-q8_0", PROMPTS[0], 8))

    def test_many_clients_and_few_places(self):
        for name in self.paths:
            for prompt in PROMPTS:
                self.want(name, prompt, 8)
        server = self.serve(self.paths["one"], self.paths["two"], "--loaded", 2, "--idle", 0.05)
        choices = random.Random(5)
        asked = [(choices.choice(list(self.paths)), choices.choice(PROMPTS), choices.random()) for _ in range(60)]

        def one(what):
            name, prompt, luck = what
            if luck < 0.2:  # goes before the answer, or before the model, is there
                with contextlib.suppress(OSError):
                    server.ask("POST", "/v1/completions", {"model": name, "prompt": prompt, "max_tokens": 200}, timeout=0.02)
                return None
            return self.ask(server, name, prompt)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for (name, prompt, luck), text in zip(asked, pool.map(one, asked)):
                if luck >= 0.2:
                    self.assertEqual(text, self.want(name, prompt, 8))
        serving.wait_for(lambda: not self.loaded(server))
        metrics = server.metrics()
        self.assertEqual((metrics["running"], metrics["waiting"]), (0, 0))

    def test_a_model_that_cannot_be_loaded(self):
        bad = self.folder / "bad.gguf"
        bad.write_bytes(b"GGUF but no more")
        server = self.serve(bad, self.folder / "gone.gguf")
        for name, path, shape in (("bad", "/v1/completions", lambda a: a["error"]["message"]), ("gone", "/api/generate", lambda a: a["error"]), ("gone", "/v1/jobs", lambda a: a["message"])):
            body = {"model": name, "prompt": "x", "max_tokens": 1} if path[:3] == "/v1" else {"model": name, "prompt": "x"}
            for _ in range(2):  # also when it is asked for again
                status, _, text = server.ask("POST", path, body)
                self.assertEqual((status, f"'{name}' cannot be loaded" in shape(json.loads(text))), (500, True), text)
        self.assertEqual(self.ask(server, "rdna-demo-q8_0"), self.want("rdna-demo-q8_0", PROMPTS[0], 8))
        result = rdna_program.run("serve", bad, "--port", 0, "--device", rdna_program.DEVICE)
        self.assertEqual((result.returncode, result.stdout), (1, b""))

    def test_a_file_of_presets(self):
        template = self.folder / "chat.jinja"
        template.write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
        path = self.presets({"path": str(DEMO_MODEL), "name": "small", "context": 64, "slots": 1, "preload": True}, {"path": "one.gguf", "kv": "q8_0", "idle": 0.2},
                            {"path": "one.gguf", "name": "chatty", "template": "chat.jinja", "gpu-layers": -1})
        server = self.serve(model=path, model_option="--models")
        self.assertEqual([model["id"] for model in json.loads(server.ask("GET", "/v1/models")[2])["data"]], ["small", "one", "chatty"])
        self.assertEqual(self.loaded(server), {"small"})
        self.assertEqual(json.loads(server.ask("GET", "/v1/models/small")[2])["meta"]["context"], 64)
        status, _, text = server.ask("POST", "/v1/completions", {"model": "small", "prompt": "word " * 80})
        self.assertEqual((status, json.loads(text)["error"]["code"]), (400, "context_length_exceeded"))
        self.assertEqual(self.ask(server, "one"), serving.greedy(self.paths["one"], PROMPTS[0], 8, "--kv", "q8_0")["text"])
        self.assertEqual(server.post("/apply-template", model="chatty", messages=[{"role": "user", "content": "Hi"}])["prompt"], "<user>Hi")
        serving.wait_for(lambda: self.loaded(server) == {"small", "chatty"})

    def test_presets_that_are_wrong(self):
        one = {"path": "one.gguf"}
        for text, mentions in (("{", "no JSON"), ("[]", "no object"), ("{}", "at least one"), ('{"models": []}', "at least one"), ('{"models": {}}', "at least one"), ('{"modles": []}', "modles"), ('{"models": [5]}', "no object"),
                               (json.dumps({"models": [one, {"name": "x"}]}), "model 1: 'path'"), (json.dumps({"models": [{**one, "kv": "f8"}]}), "f8"), (json.dumps({"models": [{**one, "slots": 0}]}), "slots"), (json.dumps({"models": [{**one, "ctx": 5}]}), "ctx"),
                               (json.dumps({"models": [{**one, "name": ""}]}), "name"), (json.dumps({"models": [{**one, "name": "x" * 200}]}), "name"), (json.dumps({"models": [one, one]}), "the name 'one'"), (json.dumps({"models": [{**one, "idle": "5m"}]}), "idle"),
                               (json.dumps({"models": [one] * 300}), "more than")):
            path = self.folder / "wrong.json"
            path.write_text(text)
            result = rdna_program.run("serve", "--models", path, "--port", 0, "--device", rdna_program.DEVICE)
            self.assertEqual((result.returncode, result.stdout, mentions in result.stderr.decode()), (1, b"", True), (text[:80], result.stderr))
        result = rdna_program.run("serve", "--models", self.folder / "none.json", "--device", rdna_program.DEVICE)
        self.assertEqual((result.returncode, b"none.json" in result.stderr), (1, True))

    def test_presets_are_read_again(self):
        path = self.presets({"path": str(DEMO_MODEL), "name": "a", "preload": True, "context": 1024}, {"path": "one.gguf"}, name="again.json")
        said = self.enterContext((path.parent / "again.log").open("w+"))
        server = self.serve(model=path, model_option="--models", stderr=said)
        names = lambda: [model["id"] for model in json.loads(server.ask("GET", "/v1/models")[2])["data"]]
        self.ask(server, "one")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(self.ask, server, "one", PROMPTS[1], 400, ignore_eos=True)
            serving.wait_for(lambda: server.metrics()["running"] > 0)
            loads = self.loaded(server)
            self.presets({"path": "two.gguf"}, {"path": str(DEMO_MODEL), "name": "a", "preload": True, "context": 1024}, name="again.json")
            server.process.send_signal(signal.SIGHUP)
            serving.wait_for(lambda: names() == ["two", "a"])
            self.assertLessEqual(loads - {"one"}, self.loaded(server))  # what is as it was stays
            self.assertEqual(running.result(), serving.greedy(self.paths["one"], PROMPTS[1], 400, "--ignore-end")["text"])  # and what is written goes on
        serving.wait_for(lambda: "one" not in self.loaded(server))
        self.assertEqual(server.ask("POST", "/v1/completions", {"model": "one", "prompt": "x"})[0], 404)
        self.assertEqual(self.ask(server, "two"), self.want("two", PROMPTS[0], 8))
        path.write_text("{")
        server.process.send_signal(signal.SIGHUP)
        serving.wait_for(lambda: "stay as they were" in pathlib.Path(said.name).read_text())  # before there is another file
        self.assertEqual(names(), ["two", "a"])
        self.presets({"path": str(DEMO_MODEL), "name": "a", "context": 32}, name="again.json")  # the same name, otherwise
        server.process.send_signal(signal.SIGHUP)
        serving.wait_for(lambda: names() == ["a"])
        self.assertEqual(server.ask("POST", "/v1/completions", {"model": "a", "prompt": "word " * 40})[0], 400)
        server.stop()

    def test_a_file_that_is_written_over(self):
        """In place: on the host weights are read where the file is mapped, and what is cut off is there no more."""
        path = self.folder / "over.gguf"
        shutil.copy(DEMO_MODEL, path)
        whole = path.read_bytes()
        server = self.serve(path, self.paths["one"])
        body = {"model": "over", "prompt": PROMPTS[0], "max_tokens": 8, "temperature": 0}
        want = self.want("rdna-demo-q8_0", PROMPTS[0], 8)
        refused = lambda: server.ask("POST", "/v1/completions", body)
        for change, reload in ((lambda: os.truncate(path, len(whole) // 2), (500, "cannot be loaded")), (lambda: path.write_bytes(whole[:-4] + bytes(4)), (200, "")), (lambda: os.truncate(path, 0), (500, "cannot be loaded"))):
            path.write_bytes(whole)
            os.utime(path, (1, 1))
            serving.wait_for(lambda: refused()[0] == 200)
            self.assertEqual(self.ask(server, "over"), want)
            change()
            status, _, text = refused()
            self.assertEqual((status, json.loads(text)["error"]["code"]), (503, "model_changed"))
            serving.wait_for(lambda: refused()[0] != 503)
            status, _, text = refused()
            self.assertEqual((status, reload[1] in text), (reload[0], True), text)
            self.assertEqual(self.ask(server, "one"), self.want("one", PROMPTS[0], 8))

    def test_a_file_that_is_cut_short_while_it_is_read(self):
        path = self.folder / "cut.gguf"
        shutil.copy(DEMO_MODEL, path)
        server = self.serve(path, self.paths["one"])
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            connection.request("POST", "/v1/completions", json.dumps({"model": "cut", "prompt": PROMPTS[0], "max_tokens": 3000, "ignore_eos": True, "stream": True}), {"Content-Type": "application/json"})
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            response.readline()
            os.truncate(path, 4096)
            self.assertIn(b"cut short while it was read", response.read())
        self.assertEqual(self.ask(server, "one"), self.want("one", PROMPTS[0], 8))

    def test_a_file_that_is_replaced(self):
        path, fresh = self.folder / "file.gguf", self.folder / "fresh.gguf"
        shutil.copy(self.paths["one"], path)
        server = self.serve(model=path)
        self.assertEqual(self.ask(server, "file"), self.want("one", PROMPTS[0], 8))
        shutil.copy(self.paths["two"], fresh)
        os.rename(fresh, path)
        self.assertEqual(self.ask(server, "file", PROMPTS[1]), self.want("one", PROMPTS[1], 8))  # what is in memory stays as it is
        server.post("/api/generate", model="file", keep_alive=0)
        serving.wait_for(lambda: not self.loaded(server))
        self.assertEqual(self.ask(server, "file", PROMPTS[1]), self.want("two", PROMPTS[1], 8))

    @unittest.skipUnless(serving.EMULATOR.exists() and rdna_program.DEVICE == "host", "the emulator is not built, or RDNA_TEST_DEVICE is not the host")
    def test_memory_that_another_model_wants(self):
        options = ("--driver", "hip", "--context", 128, "--slots", 1, "--kv", "f32", "--exact")
        server = self.serve(self.paths["one"], self.paths["two"], *options, environment={"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_MEMORY": "64"}, device=None)
        for name in ("one", "two", "one"):
            self.assertEqual(self.ask(server, name, "God", 1), self.want(name, "God", 1))
            self.assertEqual(self.loaded(server) - {"rdna-demo-q8_0"}, {name})  # there is room for one of these

    @unittest.skipUnless(serving.EMULATOR.exists() and rdna_program.DEVICE == "host", "the emulator is not built, or RDNA_TEST_DEVICE is not the host")
    def test_layers_on_the_host(self):
        used = []
        for layers in (8, 1):
            server = self.serve("--gpu-layers", layers, "--driver", "hip", "--context", 64, "--slots", 1, environment={"RDNA_EMULATE": "gfx1100"}, device=None)
            self.assertEqual(self.ask(server, "rdna-demo-q8_0", "God", 1), self.want("rdna-demo-q8_0", "God", 1))
            events = server.ask("GET", server.post("/v1/jobs", prompt="God", max_tokens=1)["sse_url"])[2]
            used.append(int(events.split('"vram_bytes":')[1].split("}")[0]))
        self.assertLess(used[1], 0.7 * used[0])


if __name__ == "__main__":
    unittest.main()
