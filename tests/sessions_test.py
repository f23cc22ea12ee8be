"""Sessions of models of several architectures, through librdna, against transformers' networks in float64."""
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
from architecture_models import Model
from architecture_rows import ROWS as DENSE
from logits_test import relative_squared_error

ROWS = DENSE + MIXTURES + DELTA + GEMMA4


class Sessions(unittest.TestCase):
    """Sessions that are rewound and go on otherwise, as agents' do: what a layer remembers must be as if it had been read
    once. Recurrent layers go back to checkpoints; others have windows, caches that layers share, or latent vectors."""
    ROWS = ["llama", "gemma3", "gpt-oss", "deepseek2", "qwen3next", "qwen35moe", "gemma4, of E2B"]

    def follow(self, session, tokens, want, rng):
        """Reads, steps and rewinds at random places, and compares each logit with those of the whole text."""
        at, bound = 0, 1e-9
        for _ in range(40):
            kind = rng.integers(4)
            if kind == 0 and at > 0:  # another text, then back
                others = rng.integers(0, want.shape[1], min(int(rng.integers(1, 9)), len(tokens) - at))
                if len(others):
                    session.read(others.tolist())
                session.rewind(at)
            elif kind == 1:
                at = int(rng.integers(0, at + 1))
                session.rewind(at)
            elif kind == 2 and at < len(tokens):
                count = int(rng.integers(1, len(tokens) - at + 1))
                got = session.read(tokens[at : at + count])
                self.assertLess(relative_squared_error(got, want[at : at + count]), bound, f"{count} tokens at {at}")
                at += count
            else:
                for _ in range(min(5, len(tokens) - at)):
                    self.assertLess(relative_squared_error(session.step(tokens[at]), want[at]), bound, f"a step at {at}")
                    at += 1

    def test_rows(self):
        for row in (row for row in ROWS if row.name in self.ROWS):
            with self.subTest(row.name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.gguf"
                made, rng = Model(row, seed=11), np.random.default_rng(12)
                tokens = rng.integers(0, row.config["vocab_size"], 37).tolist()
                made.write(path)
                model = llm_sessions.Model(path)
                for batch in (64, 5):
                    session = llm_sessions.Session(model, row.config["vocab_size"], 40, batch)
                    self.follow(session, tokens, made.logits(tokens), rng)
                    session.close()
                model.close()


if __name__ == "__main__":
    unittest.main()
