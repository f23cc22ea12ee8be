"""Models of which the host has layers or experts and the device the rest, against transformers' networks in float64."""
import json
import os
import pathlib
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np

import rdna_program  # first: it makes tools/ importable
import llm_sessions
from architecture_delta import DELTA
from architecture_gemma4 import GEMMA4
from architecture_mixtures import MIXTURES
from architecture_models import Model as Made
from architecture_rows import ROWS as DENSE
from llm_sessions import SessionOptions
from logits_test import relative_squared_error

F32, F16 = 0, 1
ALL = 99
# The layers that the host has, and those whose experts it has; ALL is as many as there are.
SPLITS = {"llama": [(1, 0), (ALL, 0)], "gpt-oss": [(0, 2), (1, ALL)], "deepseek2": [(2, ALL)],
          "qwen35moe": [(2, 0), (0, ALL)], "gemma4, of E2B": [(1, 0)], "gemma4, of 26B": [(1, 2)]}


class Splits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model.gguf"

    def made(self, name):
        row = next(row for row in DENSE + MIXTURES + DELTA + GEMMA4 if row.name == name)
        model = Made(row, seed=1)
        model.write(self.path)
        vocabulary = row.config["vocab_size"]
        tokens = np.random.default_rng(2).integers(0, vocabulary, 33).tolist()
        return vocabulary, tokens, model.logits(tokens)

    def open(self, device, host_layers, host_experts):
        model = llm_sessions.Model(self.path, device, opened=False)
        self.addCleanup(model.close)
        layers = model.plan(SessionOptions(33, F32, 16, 1)).layers
        model.open(min(host_layers, layers), min(host_experts, layers))
        return model

    def follow(self, model, vocabulary, tokens, want, bound, exact):
        """Passes of many tokens, steps, and a way back: none of them shows where the parts meet."""
        session = llm_sessions.Session(model, vocabulary, 0, 0, SessionOptions(33, F32, 16, exact))
        got = [session.read(tokens[:25])] + [session.step(token)[None] for token in tokens[25:]]
        self.assertLess(relative_squared_error(np.concatenate(got), want), bound)
        session.rewind(14)
        self.assertLess(relative_squared_error(session.read(tokens[14:24]), want[14:24]), bound)
        self.assertLess(relative_squared_error(session.step(tokens[24]), want[24]), bound)
        session.close()

    def test_exact(self):
        for name, splits in SPLITS.items():
            vocabulary, tokens, want = self.made(name)
            for device in DEVICES:
                for split in splits:
                    with self.subTest(name, device=device, split=split):
                        model = self.open(device, *split)
                        self.follow(model, vocabulary, tokens, want, 1e-10, exact=1)

    def test_rounded(self):
        """With what a prompt's products read on the card rounded to 16 bits."""
        if "hip" not in DEVICES:
            self.skipTest("this build's RDNA_TARGETS leave gfx1100 out, the card that is emulated here")
        vocabulary, tokens, want = self.made("gpt-oss")
        self.follow(self.open("hip", 1, ALL), vocabulary, tokens, want, 1e-5, exact=0)

    def test_what_cannot_be_parted(self):
        self.made("gemma4, of E2B")
        model = llm_sessions.Model(self.path, opened=False)
        self.addCleanup(model.close)
        with self.assertRaisesRegex(RuntimeError, "reads the cache of layer 1, so that either both are the host's or none"):
            model.open(2)
        with self.assertRaisesRegex(RuntimeError, "of a model of 6 layers"):
            model.open(7)
        with self.assertRaisesRegex(RuntimeError, "neither may be negative"):
            model.open(0, -1)


if __name__ == "__main__":
    os.environ.update({"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"})
    targets = {pack["target"] for pack in json.loads(rdna_program.output("kernels", "--json"))}
    DEVICES = ["host", "hip"] if "gfx1100" in targets else ["host"]
    unittest.main()
