"""Low-rank adapters (LoRA) by request and by rdna run, against models whose weights are W + scale B A: a base in q8_0,
whose merged twin is f32."""
import concurrent.futures
import json
import subprocess
import unittest

import numpy as np

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
import serving
from rdna_program import DEMO_MODEL

PROMPTS = ["And God said", "The king of Israel", "Blessed is the man", "Woe unto"]
BASE = "rdna-demo-q8_0"
COUNT = 12
ALPHA = {"one": 8.0, "two": 0.0}  # 0: the file has none, and its factor is 1
RANK = {"one": 4, "two": 7}
SCALE = {"one": 1.0, "two": 0.5}  # that the server has for a request that names the adapter alone


def draw_adapters(rng, base):
    """Of each adapter, a matrix's name to (A, B)."""
    adapters = {"one": {}, "two": {}}
    for name, w in base.tensors.items():
        if w.ndim != 2 or name == "token_embd.weight":
            continue
        for adapter, part in adapters.items():
            if adapter == "two" and ("ffn" in name or name == "output.weight"):
                continue
            rank = RANK[adapter]
            a = rng.normal(0, w.shape[1] ** -0.5, (rank, w.shape[1])).astype("f4")
            part[name] = a, rng.normal(0, 0.6 * w.std() * w.shape[1] ** 0.5 / rank ** 0.5, (w.shape[0], rank)).astype("f4")
    return adapters


def write_adapter(path, matrices, alpha, architecture="llama"):
    keys = [("general.type", gf.TEXT, "adapter"), ("general.architecture", gf.TEXT, architecture), ("adapter.type", gf.TEXT, "lora")]
    gf.write(path, keys + ([("adapter.lora.alpha", gf.F32, alpha)] if alpha else []),
             [(f"{name}.lora_{'ab'[i]}", gf.TENSOR_F32, pair[i]) for name, pair in matrices.items() for i in range(2)])


class Adapters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, cls.merged_paths = serving.folder_for(cls), {}
        cls.base = gf.Reader(DEMO_MODEL)
        cls.adapters = draw_adapters(np.random.default_rng(3), cls.base)
        for name, matrices in cls.adapters.items():
            write_adapter(cls.folder / f"{name}.gguf", matrices, ALPHA[name])
        cls.server = serving.serve_for(cls, DEMO_MODEL, "--lora", cls.folder / "one.gguf", "--lora", f"two={cls.folder}/two.gguf:0.5", "--slots", 6, "--keep", 12)

    def merged(self, **scales):
        """The model whose weights have these adapters in them, in f32."""
        key = tuple(sorted(scales.items()))
        if key not in self.merged_paths:
            tensors = dict(self.base.tensors)
            for adapter, scale in scales.items():
                for name, (a, b) in self.adapters[adapter].items():
                    factor = scale * (ALPHA[adapter] / RANK[adapter] if ALPHA[adapter] else 1)
                    tensors[name] = tensors[name] + factor * b.astype("f8") @ a.astype("f8")
            self.merged_paths[key] = self.folder / f"merged-{len(self.merged_paths)}.gguf"
            keys = [(k, *gf.typed(v)) for k, v in self.base.keys.items() if k != "general.file_type"]
            gf.write(self.merged_paths[key], keys, [(n, gf.TENSOR_F32, t) for n, t in tensors.items()])
        return self.merged_paths[key]

    def want(self, prompt, **scales):
        path = self.merged(**scales) if scales else DEMO_MODEL
        return serving.greedy(path, prompt, COUNT, "--kv", "f32")["text"]

    def ask(self, prompt=PROMPTS[0], **more):
        return self.server.post("/v1/completions", prompt=prompt, max_tokens=COUNT, temperature=0, **more)

    def text(self, prompt=PROMPTS[0], **more):
        return self.ask(prompt, **more)["choices"][0]["text"]

    def refused(self, status, mention, path="/v1/completions", **body):
        found, _, text = self.server.ask("POST", path, body if "input" in body else {"prompt": "x", "max_tokens": 1, **body})
        self.assertEqual(found, status, text)
        self.assertIn(mention, text)
        return json.loads(text)

    def test_run(self):
        options = {"one": [f"{self.folder}/one.gguf"], "two": [f"{self.folder}/two.gguf:-0.75"]}
        for prompt in PROMPTS[:2]:
            one = serving.greedy(DEMO_MODEL, prompt, COUNT, "--kv", "f32", "--lora", *options["one"])["text"]
            both = serving.greedy(DEMO_MODEL, prompt, COUNT, "--kv", "f32", "--lora", *options["one"], "--lora", *options["two"])["text"]
            self.assertEqual(one, self.want(prompt, one=1))
            self.assertEqual(both, self.want(prompt, one=1, two=-0.75))
            self.assertEqual(len({one, both, self.want(prompt)}), 3)

    def test_joined_matrices(self):
        """A file that has q, k and v as one, of which an adapter changes that one."""
        base, merged, adapter = {}, {}, {}
        for name, tensor in self.base.tensors.items():
            parts = [name.replace("attn_q.", f"attn_{x}.") for x in "qkv"] if ".attn_q." in name else []
            if parts:
                joined = name.replace("attn_q.", "attn_qkv.")
                base[joined] = np.concatenate([self.base.tensors[part] for part in parts])
                a = self.adapters["two"][name][0]
                b = np.concatenate([self.adapters["two"][part][1] for part in parts])
                adapter[joined], merged[joined] = (a, b), base[joined] + b.astype("f8") @ a.astype("f8")
            elif ".attn_k." not in name and ".attn_v." not in name:
                base[name] = merged[name] = tensor
        keys = [(k, *gf.typed(v)) for k, v in self.base.keys.items() if k != "general.file_type"]
        for file, tensors in (("joined", base), ("joined-merged", merged)):
            gf.write(self.folder / f"{file}.gguf", keys, [(n, gf.TENSOR_F32, t) for n, t in tensors.items()])
        write_adapter(self.folder / "joined-adapter.gguf", adapter, 0)
        want = serving.greedy(self.folder / "joined-merged.gguf", PROMPTS[0], COUNT)["text"]
        self.assertNotEqual(want, serving.greedy(self.folder / "joined.gguf", PROMPTS[0], COUNT)["text"])
        self.assertEqual(serving.greedy(self.folder / "joined.gguf", PROMPTS[0], COUNT, "--lora", self.folder / "joined-adapter.gguf")["text"], want)

    def test_run_refuses(self):
        write_adapter(self.folder / "other.gguf", self.adapters["two"], 0, "qwen2")
        for lora, mention in ((self.folder / "other.gguf", "another architecture"), (DEMO_MODEL, "no adapter"), ("/nowhere.gguf", "/nowhere.gguf"), (self.folder, "adapter_config.json"), (":2", "a path has")):
            done = subprocess.run([rdna_program.PROGRAM, "run", DEMO_MODEL, "x", "--lora", lora, "--device", rdna_program.DEVICE], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(mention, done.stderr)

    def test_lists(self):
        models = json.loads(self.server.ask("GET", "/v1/models")[2])["data"]
        self.assertEqual([(m["id"], m.get("parent")) for m in models], [(BASE, None), ("one", BASE), ("two", BASE)])
        self.assertEqual([m["lora"] for m in models[1:]], [{"id": 0, "scale": 1.0}, {"id": 1, "scale": 0.5}])
        self.assertEqual(json.loads(self.server.ask("GET", "/v1/models/two")[2]), models[2])

    def test_by_name_and_by_number(self):
        for prompt in PROMPTS:
            self.assertEqual(self.text(prompt, model=BASE), self.want(prompt))
            for name in ("one", f"{BASE}:one", "one:latest"):
                answer = self.ask(prompt, model=name)
                self.assertEqual((answer["model"], answer["choices"][0]["text"]), ("one", self.want(prompt, one=1)))
            self.assertEqual(self.text(prompt, model="two"), self.want(prompt, two=0.5))
            self.assertEqual(self.text(prompt, lora=[{"id": 1, "scale": -0.75}, {"id": "one"}]), self.want(prompt, one=1, two=-0.75))
            self.assertEqual(self.text(prompt, lora=[{"id": 0, "scale": 0}]), self.want(prompt))
            self.assertEqual(self.text(prompt, lora=[]), self.want(prompt))

    def test_at_the_same_time(self):
        """Texts with different adapters in the same steps."""
        cases = [({"model": BASE}, {}), ({"model": "one"}, {"one": 1}), ({"model": "two"}, {"two": 0.5}), ({"lora": [{"id": 0, "scale": 1}, {"id": 1, "scale": -0.75}]}, {"one": 1, "two": -0.75})]
        work = [(prompt, *cases[(i + k) % len(cases)]) for k in range(len(cases)) for i, prompt in enumerate(PROMPTS)] * 2
        steps = self.server.metrics()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda w: self.text(w[0], **w[1]), work))
        for (prompt, how, scales), text in zip(work, texts):
            self.assertEqual(text, self.want(prompt, **scales), how)
        name = next(n for n in steps if "steps" in n and "seconds" not in n)
        self.assertLess(self.server.metrics()[name] - steps[name], len(work) * COUNT * 0.7)  # they did share steps

    def test_prefixes_are_kept_apart(self):
        prompt = "In the beginning God created the heaven and the earth, and the earth was without form"
        cached = lambda **how: self.ask(prompt, **how)["usage"]["prompt_tokens_details"]["cached_tokens"]
        for how in ({"model": BASE}, {"model": "one"}, {"lora": [{"id": 0, "scale": 0.5}]}, {"model": "two"}):
            self.assertLessEqual(cached(**how), 1, how)  # of other tests' texts the token that all begin with
            self.assertGreater(cached(**how), 5, how)
        self.assertGreater(cached(lora=[{"id": 0, "scale": 1}]), 5)  # the same as by name
        self.assertGreater(cached(model=BASE), 5)

    def test_what_is_refused(self):
        self.refused(404, "'two'", model="three")
        self.refused(404, "three", model=f"{BASE}:three")
        for lora, mention in (({}, "list"), ([1], "list"), ([{"id": 2}], "no adapter 2"), ([{"id": -1}], "no adapter -1"), ([{}], "without"), ([{"id": "three"}], "three"),
                              ([{"id": 0, "scale": "1"}], "scale"), ([{"id": 0}, {"id": "one"}], "twice"), ([{"id": 0, "more": 1}], "more")):
            error = self.refused(400, mention, lora=lora)["error"]
            self.assertEqual(error["type"], "invalid_request_error")
        self.refused(400, "give one of them", model="one", lora=[{"id": 1}])
        self.refused(400, "is an adapter", path="/v1/embeddings", model="one", input="x")
        self.assertEqual(self.text(model="one"), self.want(PROMPTS[0], one=1))

    def test_presets(self):
        path = self.folder / "models.json"
        path.write_text(json.dumps({"models": [{"path": str(DEMO_MODEL), "name": "demo", "lora": ["two.gguf", {"path": "one.gguf", "name": "first", "scale": 0.5}]}]}))
        server = serving.serve_for(self, path, model_option="--models")
        answer = server.post("/v1/completions", model="demo:first", prompt=PROMPTS[0], max_tokens=COUNT, temperature=0)
        self.assertEqual((answer["model"], answer["choices"][0]["text"]), ("first", self.want(PROMPTS[0], one=0.5)))
        for lora, mention in (([{"name": "x"}], "no path"), ("two.gguf", "list"), (["demo.gguf"], "two models or adapters"), ([{"path": "two.gguf", "size": 1}], "size")):
            path.write_text(json.dumps({"models": [{"path": str(DEMO_MODEL), "name": "demo", "lora": lora}]}))
            done = subprocess.run([rdna_program.PROGRAM, "serve", "--models", path, "--port", "0"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(mention, done.stderr)


if __name__ == "__main__":
    unittest.main()
