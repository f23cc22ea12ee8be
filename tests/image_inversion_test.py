"""Textual inversion through rdna image: words that vectors of files stand for, against diffusers' pipelines and transformers' encoders."""
import copy
import pathlib
import tempfile
import types
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import safetensors.torch
import torch

import image_command_test as command
from image_prompt_test import BREAK, COMMAS, ROOM, encode

VECTORS = {"<cat-toy>": 1, "easynegative": 3, "long": ROOM}


class Tokenizer:
    """A text's tokens, where word i of |words| stands between two signs that no text has."""

    def __init__(self, tokenizer, words, vocabulary):
        self.tokenizer, self.first = tokenizer, dict(zip(words, vocabulary + np.cumsum([0, *(len(v) for v in words.values())])))
        self.words = words
        for name in ("bos_token_id", "eos_token_id", "pad_token_id", "convert_tokens_to_ids"):
            setattr(self, name, getattr(tokenizer, name))

    def __call__(self, text, **options):
        ids = []
        for i, part in enumerate(text.split("\0")):
            if i % 2:
                ids += range(self.first[part], self.first[part] + len(self.words[part]))
            elif part:
                ids += self.tokenizer(part, **options).input_ids
        return types.SimpleNamespace(input_ids=ids)


def with_words(pipeline, *words):
    """What encode() asks a pipeline for, of one whose encoders have more rows."""
    parts = {}
    for end, vectors in zip(("", "_2"), words):
        encoder = copy.deepcopy(getattr(pipeline, "text_encoder" + end))
        table = encoder.text_model.embeddings if hasattr(encoder, "text_model") else encoder.embeddings
        rows = torch.cat([table.token_embedding.weight, *(torch.from_numpy(v).double() for v in vectors.values())])
        table.token_embedding = torch.nn.Embedding.from_pretrained(rows)
        parts |= {"text_encoder" + end: encoder, "tokenizer" + end: Tokenizer(pipeline.tokenizer, vectors, len(rows) - sum(map(len, vectors.values())))}
    return types.SimpleNamespace(**parts)


class Words(unittest.TestCase):
    draw, reference, compare, refused = (getattr(command.Pictures, name) for name in ("draw", "reference", "compare", "refused"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {"sd": command.make_folder(cls.root / "sd"), "xl": command.make_folder(cls.root / "xl", True, diffusers.EulerDiscreteScheduler)}
        random, cls.words = np.random.default_rng(4), [{}, {}]
        for name, count in VECTORS.items():
            for which in range(2):
                cls.words[which][name] = 0.3 * random.standard_normal((count, 36)).astype(np.float32)
        first, second = cls.words
        save = lambda name, **tensors: safetensors.torch.save_file({k: torch.from_numpy(v.copy()) for k, v in tensors.items()}, cls.root / name)
        save("toy.safetensors", **{"<cat-toy>": first["<cat-toy>"][0]})
        save("EasyNegative.safetensors", emb_params=first["easynegative"])
        save("long.safetensors", emb_params=first["long"])
        for name in VECTORS:
            save(f"{name}.xl.safetensors", clip_l=first[name], clip_g=second[name])
        cls.files = [x for name in ("toy", "EasyNegative", "long") for x in ("--embedding", cls.root / f"{name}.safetensors")]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_steps(self):
        """As diffusers' pipeline draws, with one vector in the prompt and several in the negative one."""
        pipeline = diffusers.StableDiffusionPipeline(**{**{k: v for k, v in self.pipelines["sd"].components.items() if k != "image_encoder"}, "tokenizer": copy.deepcopy(self.pipelines["sd"].tokenizer),
                                                        "text_encoder": copy.deepcopy(self.pipelines["sd"].text_encoder)})
        pipeline.set_progress_bar_config(disable=True)
        for name in ("<cat-toy>", "easynegative"):
            pipeline.load_textual_inversion({name: torch.from_numpy(self.words[0][name]).double()}, token=name)
        prompt, negative = "a photograph of <cat-toy> on mars", "easynegative, the hat"
        for plain in ([], ["--plain"]):
            _, dumped = self.draw("sd", "--seed", 3, "--steps", 3, "--cfg", 4, "--negative", negative.replace("easy", "Easy"), *self.files, *plain, prompt=prompt)
            wanted = self.reference(pipeline, seed=3, prompt=prompt, negative_prompt=negative, guidance=4, num_inference_steps=3)
            self.compare(dumped, wanted, 3)
        self.assertIn(", Embeddings: toy.safetensors EasyNegative.safetensors long.safetensors", PIL.Image.open(self.out / "x.png").text["parameters"])

    def states(self, model, pieces, prompt, *options):
        _, dumped = self.draw(model, "--steps", 1, "--size", "8x8", "--seed", 1, "--cfg", 1, *options, prompt=prompt)
        told, chunks = with_words(self.pipelines[model], *self.words[:1 + (model == "xl")]), len(dumped["states"][0]) // (ROOM + 2)
        rows = [encode(told, i, pieces, chunks, model == "xl") for i in range(1 + (model == "xl"))]
        self.assertLess(command.error(dumped["states"][0], np.concatenate([states for states, _ in rows], 1)), 1e-5, prompt)
        if model == "xl":
            self.assertLess(command.error(dumped["pooled"][0], rows[1][1]), 1e-5)

    def test_texts(self):
        """Weighed, beside signs, in long texts, of both encoders; and what is a part of another word is not one."""
        toy, easy, long = ("\0%s\0" % name for name in VECTORS)
        for prompt, pieces in [("a (<CAT-toy>:1.4),(EasyNegative) cat", [("a ", 1), (toy, 1.4), (",", 1), (easy, 1.1), (" cat", 1)]), ("<cat-toy><cat-toy>easynegative", [(toy + toy + easy, 1)]),
                               ("easynegatives uneasynegative easynegative_2 easynegative2 easynegative", [("easynegatives uneasynegative easynegative_2 easynegative2 " + easy, 1)]),
                               (f"{COMMAS} easynegative {COMMAS}", [(f"{COMMAS} {easy} {COMMAS}", 1)]),
                               ("a cat long", [("a cat", 1), BREAK, (long, 1)]), ("cat " * (ROOM - 2) + "easynegative hat", [("cat " * (ROOM - 2), 1), BREAK, (easy + " hat", 1)])]:
            with self.subTest(prompt[:40]):
                self.states("sd", pieces, prompt, *self.files)
        xl = [x for name in VECTORS for x in ("--embedding", f"{self.root / name}.xl.safetensors:{name}")]
        self.states("xl", [("a ", 1), (toy, 1.4), (" easynegative" .replace("easynegative", easy), 1)], "a (<cat-toy>:1.4) easynegative", *xl)
        self.states("sd", [("the ", 1), (easy, 1)], "the sat", "--embedding", f"{self.root}/toy.safetensors", "--embedding", f"{self.root}/EasyNegative.safetensors:sat")

    def test_stored_types(self):
        """16 bits, as most are stored."""
        rounded = torch.from_numpy(self.words[0]["easynegative"]).half()
        safetensors.torch.save_file({"emb_params": rounded}, self.root / "half.safetensors")
        kept, self.words[0]["easynegative"] = self.words[0]["easynegative"], rounded.float().numpy()
        self.addCleanup(self.words[0].__setitem__, "easynegative", kept)
        self.states("sd", [("a \0easynegative\0", 1)], "a half", "--embedding", self.root / "toy.safetensors", "--embedding", self.root / "half.safetensors")

    def test_refusals(self):
        def file(name=None, **tensors):
            path = self.out / (name or f"{len([*self.out.iterdir()])}.safetensors")
            safetensors.torch.save_file({k: v.clone() for k, v in tensors.items()}, path)
            return ["--embedding", path]
        zeros = torch.zeros(2, 36)
        for model, options, words in [
                ("sd", file(emb_params=torch.zeros(2, 35)), ["35", "36", "another version"]), ("sd", file(emb_params=torch.zeros(ROOM + 1, 36)), [str(ROOM + 1), str(ROOM)]),
                ("sd", file(clip_l=zeros, clip_g=zeros), ["XL"]), ("xl", file(emb_params=zeros), ["clip_g"]), ("sd", file(clip_g=zeros), ["clip_g"]),
                ("xl", file(clip_l=zeros, clip_g=torch.zeros(3, 36)), ["2", "3"]), ("xl", file(clip_l=zeros, clip_g=torch.zeros(2, 30)), ["30", "36"]),
                ("sd", file(one=zeros, two=zeros), ["2 tensors"]), ("sd", file(one=torch.zeros(2, 36, 1)), ["one", "vectors"]), ("sd", file(one=torch.zeros(0, 36)), ["one"]),
                ("sd", file(one=torch.zeros(2, 36, dtype=torch.int32)), ["I32"]), ("sd", ["--embedding", self.root / "none.safetensors"], ["none.safetensors"]),
                ("sd", ["--embedding", self.root / "x.pt"], ["pickle"]), ("sd", file(A=zeros) + file(a=zeros), ["'a'", "both"]), ("sd", ["--embedding", self.root / "sd/model_index.json"], ["model_index.json"]),
                ("sd", file(" .safetensors", emb_params=zeros), ["0 bytes"])]:
            with self.subTest(str(words)):
                self.refused(self.root / model, *options, words=words)


if __name__ == "__main__":
    unittest.main()
