"""Vectors from rdna serve, through the official clients and plain HTTP: those of rdna embed, beside texts that are being written."""
import clients_python  # goes on in another interpreter where the clients are not here
import base64
import concurrent.futures
import json
import select
import socket
import time
import unittest

import numpy as np
import ollama
import openai

import embedding_files
import rdna_program
import serving

TEXTS = ["the king of israel", "and god said", "blessed is the man in days", "x", "Thou shalt not!", "it came to pass the lord is my shepherd"]


class Embeddings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.folder_for(cls)
        cls.paths = {"words": embedding_files.write_encoder(folder / "words.gguf"),
                     "both": embedding_files.write_decoder(folder / "both.gguf"),
                     "each": embedding_files.write_encoder(folder / "each.gguf", pooling=0)}
        cls.server = serving.serve_for(cls, cls.paths["words"], cls.paths["both"], cls.paths["each"], rdna_program.DEMO_MODEL, "--slots", 4, "--kv", "f32")
        cls.openai = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)
        cls.addClassCleanup(cls.openai.close)
        cls.ollama = ollama.Client(cls.server.url)

    def want(self, name, texts, *options):
        """What rdna embed makes of them, and how many tokens they have."""
        out = rdna_program.output("embed", self.paths[name], *texts, "--kv", "f32", "--device", rdna_program.DEVICE, *options)
        lines = [json.loads(line) for line in out.splitlines()]
        return np.array([line["embedding"] for line in lines]), sum(line["tokens"] for line in lines)

    def same(self, got, want):
        got = np.array(got)
        self.assertEqual(got.shape, want.shape)
        self.assertLess(np.abs(got - want).max(), 2e-6 * np.abs(want).max())

    def test_openai(self):
        for name in ("words", "both"):
            want, tokens = self.want(name, TEXTS)
            self.assertLess(abs(want @ want.T - np.eye(len(TEXTS))).max(), 1.001)
            self.assertGreater(min(np.abs(a - b).max() for i, a in enumerate(want) for b in want[:i]), 0.01)  # texts are told apart
            for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
                got = self.openai.embeddings.create(model=name, input=TEXTS, **options)
                values = [x.embedding for x in got.data]
                if isinstance(values[0], str):
                    values = [np.frombuffer(base64.b64decode(value, validate=True), "<f4") for value in values]
                self.same(values, want)
                self.assertEqual([x.index for x in got.data], list(range(len(TEXTS))))
                self.assertEqual((got.model, got.object, got.usage.prompt_tokens, got.usage.total_tokens), (name, "list", tokens, tokens))
            one = self.openai.embeddings.create(model=name, input=TEXTS[2])
            self.same([x.embedding for x in one.data], want[2:3])

    def test_dimensions(self):
        for dimensions in (1, 7, 63):
            want, _ = self.want("words", TEXTS, "--dimensions", dimensions)
            for form in ("float", "base64"):  # of every number of bytes that base64 pads
                got = self.openai.embeddings.create(model="words", input=TEXTS, dimensions=dimensions, encoding_format=form)
                values = [x.embedding if form == "float" else np.frombuffer(base64.b64decode(x.embedding, validate=True), "<f4") for x in got.data]
                self.same(values, want)
            self.same(self.ollama.embed("words", TEXTS, dimensions=dimensions).embeddings, want)

    def test_ids(self):
        lists = [[2, 5, 6, 7, 3], [2, 3], list(range(4, 40))]
        lines = "".join(",".join(map(str, ids)) + "\n" for ids in lists).encode()
        out = rdna_program.output("embed", self.paths["words"], "--ids", "--device", rdna_program.DEVICE, stdin=lines)
        want = np.array([json.loads(line)["embedding"] for line in out.splitlines()])
        got = self.openai.embeddings.create(model="words", input=lists)
        self.same([x.embedding for x in got.data], want)
        self.assertEqual(got.usage.prompt_tokens, 5 + 2 + 36)
        self.same([self.openai.embeddings.create(model="words", input=lists[2]).data[0].embedding], want[2:])

    def test_ollama(self):
        for name in ("words", "both"):
            want, tokens = self.want(name, TEXTS)
            got = self.ollama.embed(name, TEXTS)
            self.same(got.embeddings, want)
            self.assertEqual((got.model, got.prompt_eval_count), (name, tokens))
            self.same(self.ollama.embed(name, TEXTS[1]).embeddings, want[1:2])
            raw, _ = self.want(name, TEXTS[:1], "--normalize", "no")
            self.same([self.ollama.embeddings(name, TEXTS[0]).embedding], raw)
        self.assertEqual(list(self.ollama.embed("words", "").embeddings), [])
        self.assertEqual(self.ollama.show("words").capabilities, ["embedding"])
        self.assertEqual(self.ollama.show("both").capabilities, ["completion", "embedding"])

    def test_long_texts(self):
        """Of 64 positions: refused, and by Ollama's manner cut, with the token at the end kept."""
        long = "the king " * 50
        with self.assertRaises(openai.BadRequestError) as refused:
            self.openai.embeddings.create(model="words", input=["and", long])
        self.assertEqual((refused.exception.code, refused.exception.param), ("context_length_exceeded", "input"))
        want, _ = self.want("words", ["the king " * 31])
        self.same(self.ollama.embed("words", long).embeddings, want)
        with self.assertRaises(ollama.ResponseError) as refused:
            self.ollama.embed("words", long, truncate=False)
        self.assertEqual(refused.exception.status_code, 400)

    def test_what_a_model_cannot(self):
        for model, mention in (("rdna-demo-q8_0", "pooling_type"), ("each", "each token"), ("nobody", "no model")):
            with self.assertRaises(openai.APIStatusError) as refused:
                self.openai.embeddings.create(model=model, input="x")
            self.assertIn(mention, refused.exception.message)
            self.assertIn(refused.exception.status_code, (400, 404))
            with self.assertRaises(ollama.ResponseError) as refused:
                self.ollama.embed(model, "x")
            self.assertIn(mention, refused.exception.error)
        messages = [{"role": "user", "content": "x"}]
        for path, body in (("/v1/completions", {"prompt": "x"}), ("/v1/chat/completions", {"messages": messages}), ("/v1/responses", {"input": "x"}),
                           ("/v1/messages", {"messages": messages, "max_tokens": 1}), ("/api/chat", {"messages": messages}), ("/api/generate", {"prompt": "x"})):
            status, _, text = self.server.ask("POST", path, {"model": "words", **body})
            self.assertEqual(status, 400, path)
            error = json.loads(text)["error"]
            self.assertIn("is an encoder", error if path.startswith("/api/") else error["message"])

    def test_refusals(self):
        for body, field in (({}, "input"), ({"input": 3}, "input"), ({"input": []}, "input"), ({"input": [[]]}, "input"), ({"input": ["a", 3]}, "input"),
                            ({"input": [1, 2, 5000]}, "input"), ({"input": [-1]}, "input"), ({"input": ["a"] * 2049}, "input"), ({"input": "a", "dimensions": 65}, "dimensions"),
                            ({"input": "a", "dimensions": 0}, "dimensions"), ({"input": "a", "encoding_format": "int8"}, "encoding_format"), ({"input": "a", "speed": 1}, "speed")):
            status, _, text = self.server.ask("POST", "/v1/embeddings", {"model": "words", **body})
            self.assertEqual((status, json.loads(text)["error"]["param"]), (400, field), body)
        self.assertEqual(self.server.ask("GET", "/v1/embeddings")[0], 405)

    def test_many_texts(self):
        """More than a pass takes, in several requests at once: each as it is alone."""
        want, _ = self.want("words", TEXTS)

        def ask(count):
            got = self.openai.embeddings.create(model="words", input=[TEXTS[i % len(TEXTS)] for i in range(count)])
            self.same([x.embedding for x in got.data], want[np.arange(count) % len(TEXTS)])

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, [2048, 1, 300, 65, 64, 63, 1, 2]))

    def test_beside_writing(self):
        """Texts are written as they are alone, while vectors are made, and neither waits for all of the other."""
        prompts = ["And God said", "The king of Israel", "In those days"]
        alone = [serving.greedy(self.paths["both"], prompt, 60, "--kv", "f32")["text"] for prompt in prompts]
        want, _ = self.want("both", TEXTS)
        write = lambda prompt: self.openai.completions.create(model="both", prompt=prompt, max_tokens=60, temperature=0).choices[0].text

        def embed(_):
            got = self.openai.embeddings.create(model="both", input=TEXTS * 20)
            self.same([x.embedding for x in got.data], np.tile(want, (20, 1)))

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            vectors = [pool.submit(embed, i) for i in range(3)]
            self.assertEqual(list(pool.map(write, prompts)), alone)
            for vector in vectors:
                vector.result()

    def test_clients_that_go(self):
        """A request for more than can be read in a test keeps nobody else waiting, and ends with its client."""
        before = self.server.metrics()["cancelled_total"]
        body = json.dumps({"model": "both", "input": [[5] * 400] * 2048}).encode()
        with socket.create_connection(("127.0.0.1", self.server.port)) as endless:
            endless.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            while not self.server.metrics()["waiting"]:
                time.sleep(0.01)
            self.ollama.embed("both", "x")
            self.openai.completions.create(model="both", prompt="x", max_tokens=4)
            self.assertEqual(select.select([endless], [], [], 0)[0], [])  # it is still being read
        deadline = time.monotonic() + 60
        while self.server.metrics()["cancelled_total"] == before:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.assertEqual(self.server.metrics()["waiting"], 0)


if __name__ == "__main__":
    unittest.main()
