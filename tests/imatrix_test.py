"""Importance matrices: what `rdna imatrix` writes against float64 NumPy, what `rdna quantize --imatrix` makes of both
forms of the file, and what both refuse."""
import json
import struct
import unittest

import numpy as np

import rdna_program  # first: it makes tools/ importable

import gguf_file as gf
import llama_reference
from convert_test import DEVICE, InFolder
from logits_test import write_model
from perplexity_test import TEXT, perplexity
from rdna_program import DEMO_MODEL, output, run

SEARCHED = "q4_0 q4_1 q5_0 q5_1 q2_K q3_K q4_K q5_K q6_K iq4_nl iq4_xs mxfp4".split()  # MXFP4 has only powers of two
GRIDS = "iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s".split()  # these are searched in any case


def write_gguf(path, means, counts=7):
    """|means|: name to (matrices, columns), or (columns)."""
    tensors = []
    for name, values in means.items():
        values = np.atleast_2d(values)
        number = np.broadcast_to(np.asarray(counts, np.float32), (len(values), 1))
        tensors += [(name + ".in_sum2", gf.TENSOR_F32, values * number), (name + ".counts", gf.TENSOR_F32, number)]
    gf.write(path, [("general.type", gf.TEXT, "imatrix"), ("imatrix.chunk_count", gf.U32, 1)], tensors)


def older(means, calls=4):
    """The bytes of the older form."""
    data = struct.pack("<i", len(means))
    for name, values in means.items():
        sums = (np.ravel(values) * calls).astype("<f4")
        data += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", calls, sums.size) + sums.tobytes()
    return data + struct.pack("<ii", 1, 4) + b"text"


class Watched:
    """A matrix that notes the squares of what it is multiplied by."""
    __array_ufunc__ = None

    def __init__(self, matrix):
        self.matrix, self.squares, self.rows = matrix, 0, 0

    def __getitem__(self, index):
        return self.matrix[index]

    @property
    def T(self):
        return self

    def __rmatmul__(self, x):
        self.squares, self.rows = self.squares + (x * x).sum(0), self.rows + len(x)
        return x @ self.matrix.T


class Made(InFolder):
    def test_squares(self):
        """The demo model over two windows, matrix by matrix."""
        window, path, text = 48, self.folder / "m.imatrix", self.folder / "text"
        text.write_text(TEXT)
        model = gf.Reader(DEMO_MODEL)
        output("imatrix", DEMO_MODEL, text, "--out", path, "--window", window)
        ids = [int(i) for i in output("tokenize", DEMO_MODEL, text).split()]
        model.tensors = {name: Watched(t) if t.ndim == 2 else t for name, t in model.tensors.items()}
        for first in range(0, len(ids) - window + 1, window):
            llama_reference.logits(model, [model.keys["tokenizer.ggml.bos_token_id"]] + ids[first + 1 : first + window])
        got = gf.Reader(path)
        self.assertEqual(got.keys["general.type"], "imatrix")
        self.assertEqual((got.keys["imatrix.chunk_count"], got.keys["imatrix.chunk_size"]), (len(ids) // window, window))
        blocks = {name: w for name, w in model.tensors.items() if isinstance(w, Watched) and name.startswith("blk.")}
        self.assertGreater(len(blocks), 20)
        for name, want in blocks.items():
            last = max(int(n.split(".")[1]) for n in blocks) == int(name.split(".")[1])
            self.assertEqual(got.tensors[name + ".counts"].shape, (1, 1), name)
            if last and got.tensors[name + ".counts"][0, 0] != want.rows:
                continue  # of the last layer only what makes the last token's logits is computed
            self.assertEqual(got.tensors[name + ".counts"][0, 0], want.rows, name)
            np.testing.assert_allclose(got.tensors[name + ".in_sum2"][0], want.squares, rtol=2e-3,
                                       atol=2e-3 * want.squares.mean(), err_msg=name)

    def test_refusals(self):
        out, text = self.folder / "m.imatrix", self.folder / "text"
        text.write_text("And God said")
        self.refused(2, "imatrix", DEMO_MODEL, text, mentions="--out")
        self.refused(1, "imatrix", DEMO_MODEL, text, "--out", out, mentions="less than a window")
        self.refused(1, "imatrix", DEMO_MODEL, self.folder / "none", "--out", out, mentions="none")
        self.assertFalse(out.exists())


class Quantized(InFolder):
    def quantize(self, *arguments):
        return json.loads(output("quantize", *arguments, "--json", *DEVICE))

    def test_weighted_errors(self):
        """Columns that count more come back nearer, and each expert's matrix by what counts in it."""
        path, matrix, experts = self.folder / "m.gguf", self.rng.normal(0, 1, (96, 512)), self.rng.normal(0, 1, (3, 32, 256))
        means = {"blk.0.ffn_up.weight": self.rng.uniform(0, 1, 512) ** 6,
                 "blk.0.ffn_up_exps.weight": self.rng.uniform(0, 1, (3, 256)) ** 6}
        means["blk.0.ffn_up_exps.weight"][1] = 0  # an expert that the text did not choose
        tensors = {"blk.0.ffn_up.weight": matrix, "blk.0.ffn_up_exps.weight": experts, "blk.0.other.weight": matrix}
        gf.write(path, [], [(n, gf.TENSOR_F32, t.astype(np.float32)) for n, t in tensors.items()])
        write_gguf(self.folder / "new", means)
        (self.folder / "old").write_bytes(older({**means, "another.weight": np.ones(3)}))
        for kind in SEARCHED + GRIDS:
            with self.subTest(kind):
                self.quantize(path, self.folder / "plain.gguf", kind)
                report = self.quantize(path, self.folder / "new.gguf", kind, "--imatrix", self.folder / "new")
                self.quantize(path, self.folder / "old.gguf", kind, "--imatrix", self.folder / "old")
                self.assertEqual(report["without_importance"], 1)
                plain, new, old = (gf.Reader(self.folder / f"{n}.gguf").tensors for n in ("plain", "new", "old"))
                for name, want in tensors.items():
                    weight = means.get(name, np.ones(512))
                    others = np.mean(np.abs(new[name] - old[name]) > 0.2)  # sums round in other places
                    self.assertLessEqual(others, 0 if kind in SEARCHED else 1e-3)
                    counts = weight.sum(-1, keepdims=True) > 0
                    bound = np.where(counts[..., 0] & (name in means), 0.93 if kind == "mxfp4" else 0.85,
                                     0.99 if kind in SEARCHED else 1 + 1e-9)
                    weight = np.where(counts, weight, 1)[..., None, :]
                    errors = [(weight * (got[name] - want) ** 2).mean((-1, -2)) for got in (new, plain)]
                    self.assertTrue(np.all(errors[0] < bound * errors[1]), (name, errors))

    def test_foretells(self):
        """The demo model in few bits: with an importance matrix no worse than without."""
        text = self.folder / "text"
        text.write_bytes(output("run", DEMO_MODEL, "And it came to pass", "--max-tokens", 400, "--seed", 5, "--ignore-end",
                                "--temperature", 0.8, *DEVICE))
        output("imatrix", DEMO_MODEL, text, "--out", self.folder / "demo.imatrix", "--window", 64)
        for kind in "q2_K q3_K iq4_xs".split():
            with self.subTest(kind):
                self.quantize(DEMO_MODEL, self.folder / "plain.gguf", kind)
                self.quantize(DEMO_MODEL, self.folder / "with.gguf", kind, "--imatrix", self.folder / "demo.imatrix")
                plain, got = (perplexity(self.folder / f"{n}.gguf")["perplexity"] for n in ("plain", "with"))
                self.assertLess(got, 1.005 * plain, kind)

    def test_few_bits(self):
        """The demo model foretells the better the more bits its weights have, and not much worse in the fewest. Without an
        importance matrix there is a warning where it is missed."""
        path, before = self.folder / "m.gguf", perplexity(DEMO_MODEL)["perplexity"]
        got = []
        for kind, warns in (("iq1_s", True), ("iq2_xxs", True), ("iq4_xs", False)):
            made = run("quantize", DEMO_MODEL, path, kind, *DEVICE)
            self.assertEqual((made.returncode, b"importance matrix" in made.stderr), (0, warns), made.stderr)
            got.append(perplexity(path)["perplexity"])
        self.assertEqual(got, sorted(got, reverse=True))
        self.assertLess(got[0], 1.5 * before)
        self.assertLess(got[2], 1.05 * before)

    def test_refusals(self):
        path, out = self.folder / "m.gguf", self.folder / "o.gguf"
        write_model(path, self.rng, gf.TENSOR_F32, width=256, heads=8, kv_heads=4, hidden=256)
        good = {"blk.0.ffn_up.weight": np.ones(256), "blk.1.ffn_up.weight": np.ones(256)}
        data = older(good)[:-12]  # without what follows the entries
        made = self.folder / "i"
        for end in list(range(0, 60)) + [len(data) - 1]:
            made.write_bytes(data[:end])
            self.refused(1, "quantize", path, out, "q4_K", "--imatrix", made, mentions="importance matrix")
        for mentions, broken in (("sum of squares", older({"blk.0.ffn_up.weight": np.full(256, -1.0)})),
                                 ("sum of squares", older({"blk.0.ffn_up.weight": np.full(256, np.nan)})),
                                 ("numbers for tensor blk.0.ffn_up.weight", older({"blk.0.ffn_up.weight": np.ones(255)})),
                                 ("the number of entries", struct.pack("<i", -3) + data[4:])):
            made.write_bytes(broken)
            self.refused(1, "quantize", path, out, "q4_K", "--imatrix", made, mentions=mentions)
        gf.write(made, [], [("a.in_sum2", gf.TENSOR_F32, np.ones((1, 4)))])
        self.refused(1, "quantize", path, out, "q4_K", "--imatrix", made, mentions="a.counts")
        self.refused(1, "quantize", path, out, "q4_K", "--imatrix", path, mentions="in_sum2")
        self.refused(1, "quantize", path, out, "q4_K", "--imatrix", "/nowhere/i", mentions="/nowhere/i")
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
