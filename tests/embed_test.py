"""Vectors of texts by `rdna embed`, against transformers' states in float64 and NumPy's pooling of them."""
import json
import pathlib
import re
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np
import torch

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
from architecture_encoders import JUDGES, ROWS, Encoder, States
from architecture_errors import BOUND
from logits_test import relative_squared_error

LENGTHS = [1, 2, 23, 9, 41]  # of the texts, which share a pass


def embed(path, texts, *options, kv="f32"):
    lines = "".join(",".join(map(str, text)) + "\n" for text in texts)
    out = rdna_program.output("embed", path, "--ids", "--kv", kv, "--exact", "--device", rdna_program.DEVICE, *options,
                              stdin=lines.encode())
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["tokens"] for answer in answers] == [len(text) for text in texts]
    return [np.array(answer[next(k for k in ("embeddings", "embedding", "labels") if k in answer)]) for answer in answers]


def pooled(states, pooling):
    return {"mean": states.mean(0), "cls": states[0], "last": states[-1]}[pooling]


class Made:
    """A row's model in a file, texts, and their states."""

    def __init__(self, folder, row):
        self.row, self.path = row, pathlib.Path(folder) / "model.gguf"
        self.model = States(row, seed=sum(map(ord, row.name)))
        self.model.write(self.path)
        rng = np.random.default_rng(len(row.name))
        first = getattr(row, "first_id", 0)
        self.texts = [rng.integers(first, row.config["vocab_size"], length).tolist() for length in LENGTHS]
        self.want = [self.model.states(text) for text in self.texts]
        self.f32 = max(relative_squared_error(self.model.states(text, dtype=torch.float32), want)
                       for text, want in zip(self.texts, self.want))

    def wrong(self):
        """What is further from float64 than sums in f32 explain."""
        decoder = not isinstance(self.row, Encoder)
        runs = {"f32": ((), "f32", max(BOUND, 4 * self.f32)),
                **({"f32, in pieces": (("--batch", 7), "f32", max(BOUND, 4 * self.f32)), "f16": ((), "f16", 1e-5)}
                   if decoder else {})}
        for name, (options, kv, bound) in runs.items():
            got = embed(self.path, self.texts, "--pooling", "none", "--normalize", "no", *options, kv=kv)
            for states, want in zip(got, self.want):
                error = relative_squared_error(states, want)
                if states.shape != want.shape or not error <= bound:
                    yield f"{self.row.name}, {name}: {len(want)} tokens are off by {error:.1e}"

    def unseen(self):
        """Weights that the states of the longest text do not show."""
        rng = np.random.default_rng(3)
        kinds = {re.sub(r"\d+", "N", name): name for name in reversed(self.model.weights) if self.row.serves_text(name)}
        for name in kinds.values():
            change = relative_squared_error(self.model.disturbed(self.texts[-1], name, rng), self.want[-1])
            if change < 1e-4 and not name.endswith("key.bias"):  # which adds the same to all scores of a query
                yield f"{name}: {change:.1e}"


class Embeddings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_states(self):
        for row in ROWS:
            with self.subTest(row.name):
                made = Made(self.folder, row)
                self.assertEqual([*made.wrong(), *made.unseen()], [])

    def test_labels(self):
        """Of models that judge texts, whose labels are not normalized."""
        for row in JUDGES:
            made = Made(self.folder, row)
            want, got = np.array(made.want), np.array(embed(made.path, made.texts))
            f32 = np.array([made.model.states(text, dtype=torch.float32) for text in made.texts])
            self.assertEqual(got.shape, want.shape)
            self.assertLess(relative_squared_error(got, want), max(BOUND, 4 * relative_squared_error(f32, want)))
            self.assertEqual([*made.unseen()], [])

    def test_pooling(self):
        for name in ("bert", "roberta", "qwen3 as an embedding"):
            made = Made(self.folder, next(row for row in ROWS if row.name == name))
            width = made.want[0].shape[1]
            for pooling in ("file", "mean", "cls", "last"):
                for dimensions in (width, 10):
                    for normalize in ("yes", "no"):
                        got = embed(made.path, made.texts, "--pooling", pooling, "--dimensions", dimensions,
                                    "--normalize", normalize)
                        for vector, states in zip(got, made.want):
                            want = pooled(states, made.row.pooling if pooling == "file" else pooling)[:dimensions]
                            want = want / np.linalg.norm(want) if normalize == "yes" else want
                            self.assertEqual(vector.shape, want.shape)
                            self.assertLess(relative_squared_error(vector, want), max(BOUND, 4 * made.f32))

    def test_many_texts(self):
        """More than are read at a time, of one token among them: each as it is alone."""
        made = Made(self.folder, ROWS[0])
        texts = [made.texts[i % len(LENGTHS)] for i in range(300)]
        want = {tuple(text): pooled(states, "mean") for text, states in zip(made.texts, made.want)}
        got = embed(made.path, texts, "--normalize", "no")
        self.assertEqual(len(got), 300)
        for vector, text in zip(got, texts):
            self.assertLess(relative_squared_error(vector, want[tuple(text)]), max(BOUND, 4 * made.f32))
        self.assertEqual(embed(made.path, []), [])

    def refused(self, mentions, *arguments, stdin=b""):
        result = rdna_program.run(*arguments, "--device", rdna_program.DEVICE, stdin=stdin)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn(mentions, result.stderr.decode())

    def test_refusals(self):
        path = Made(self.folder, ROWS[0]).path
        for mentions, options, text in (
                ("129 tokens", (), b"1," * 128 + b"1"), ("no list", (), b"\n"), ("ids 0 to 66", (), b"67"),
                ("have 64", ("--dimensions", 65), b"1"), ("128 positions", ("--context", 129), b"1"),
                ("no labels", ("--pooling", "rank"), b"1")):
            self.refused(mentions, "embed", path, "--ids", *options, stdin=text)
        self.refused("writes none", "logits", path, "--tokens", "1,2", "--out", "/dev/null")
        self.refused("pooling_type", "embed", rdna_program.DEMO_MODEL, "a text")
        self.refused("pooling_type", "embed", rdna_program.DEMO_MODEL, stdin=b"a text\n")

    def test_files_that_leave_it_open(self):
        """-1 in the file, as in those of many chat models, says no more than nothing; a kind that nobody knows is refused."""
        path = pathlib.Path(self.folder) / "open.gguf"
        file = gf.Reader(rdna_program.DEMO_MODEL)
        keys = [(key, *gf.typed(value)) for key, value in file.keys.items() if key != "general.file_type"]
        for number, mentions in ((0xffffffff, "does not say"), (5, "knows 0 to 4")):
            gf.write(path, [*keys, ("llama.pooling_type", gf.U32, number)], [(name, gf.TENSOR_F32, array) for name, array in file.tensors.items()])
            self.refused(mentions, "embed", path, "a text")
        gf.write(path, [*keys, ("llama.pooling_type", gf.U32, 0xffffffff)], [(name, gf.TENSOR_F32, array) for name, array in file.tensors.items()])
        self.assertEqual(len(embed(path, [[1, 2, 3]], "--pooling", "last")), 1)


if __name__ == "__main__":
    unittest.main()
