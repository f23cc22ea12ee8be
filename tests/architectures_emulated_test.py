"""Models of several architectures on an emulated card, by the code objects that we ship and with the checker, against
transformers' networks in float64."""
import json
import pathlib
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np
import torch

import rdna_program  # first: it makes tools/ importable
from architecture_errors import BOUND
from architecture_delta import DELTA
from architecture_gemma4 import GEMMA4
from architecture_mixtures import MIXTURES
from architecture_models import Model
from architecture_more import MORE
from architecture_rows import ROWS as DENSE
from logits_test import logits_of, relative_squared_error

ROWS = DENSE + MIXTURES + DELTA + GEMMA4 + MORE
# One of each kind of layer, by the code objects that we ship, with the emulator's checker: in f32, and with what products
# read rounded to 16 bits, as a prompt's is on a card.
EMULATED = ["llama", "gemma3", "gpt-oss", "deepseek2", "qwen35moe", "gemma4, of 26B", "cohere2", "nemotron"]


class Emulated(unittest.TestCase):
    def test_rows(self):
        environment = {"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"}
        for row in (row for row in ROWS if row.name in EMULATED):
            with self.subTest(row.name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.gguf"
                model = Model(row, seed=5)
                tokens = np.random.default_rng(7).integers(0, row.config["vocab_size"], 19).tolist()
                want = model.logits(tokens)
                model.write(path)
                exact, rounded = (logits_of(path, tokens, "--kv", "f32", device="hip", exact=exact,
                                            environment=environment) for exact in (True, False))
                bound = max(BOUND, 4 * relative_squared_error(model.logits(tokens, dtype=torch.float32), want))
                self.assertLess(relative_squared_error(exact, want), bound)
                self.assertLess(relative_squared_error(rounded, want), 1e-5)
                self.assertFalse(np.array_equal(exact, rounded))  # 16 bits were in use

    def test_products_beyond_f16(self):
        """Gemma's gate times up leaves the range of f16, which products read on a card."""
        row = next(row for row in ROWS if row.name == "gemma3")
        model, environment = Model(row, seed=6), {"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"}
        for name, weight in model.weights.items():
            for part, factor in (("up_proj", 2000.0), ("gate_proj", 30.0), ("down_proj", 1 / 2000.0)):
                if part in name:
                    weight *= factor
        tokens = np.random.default_rng(8).integers(0, row.config["vocab_size"], 19).tolist()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.gguf"
            model.write(path)
            rounded = logits_of(path, tokens, device="hip", exact=False, environment=environment)
        self.assertLess(relative_squared_error(rounded, model.logits(tokens)), 1e-4)


if __name__ == "__main__":
    if "gfx1100" not in {pack["target"] for pack in json.loads(rdna_program.output("kernels", "--json"))}:
        print("skipped: this build has no kernels for gfx1100")
        raise SystemExit(77)
    unittest.main()
