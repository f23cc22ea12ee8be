"""Each architecture's logits against transformers' network of that architecture in float64, with random weights.

tests/architectures_test.py                  all rows but those that MISSING names, which must not run
tests/architectures_test.py NAME… [--all]    a table of the rows whose names begin so; with --all those of MISSING too
tests/architectures_test.py --write FOLDER   models and logits for machines without PyTorch: architecture_errors.py
"""
import argparse
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

if not importlib.util.find_spec("transformers"):
    # Where PyTorch cannot be had, RDNA_TEST_TORCH=0 leaves out what needs it; anything else that fails is a failure.
    if os.environ.get("RDNA_TEST_TORCH", "1") == "0":
        print("left out: RDNA_TEST_TORCH=0, and the reference needs PyTorch and transformers")
        raise SystemExit(77)
    ROOT = pathlib.Path(__file__).resolve().parent.parent
    python = subprocess.run([ROOT / "packaging/torch-venv.sh"], check=True, capture_output=True, text=True).stdout.strip()
    os.execv(python, [python, *sys.argv])

import numpy as np
import torch

import rdna_program  # first: it makes tools/ importable
import llm_sessions
from architecture_delta import DELTA
from architecture_errors import BOUND, HEAD, Errors, refusal
from architecture_gemma4 import GEMMA4
from architecture_mixtures import MIXTURES
from architecture_models import Model
from architecture_rows import ROWS as DENSE
from logits_test import logits_of, relative_squared_error

ROWS = DENSE + MIXTURES + DELTA + GEMMA4
# Those that rdna does not run yet.
MISSING = []
LENGTH = 41


class Reference:
    """A row's model, a text, and the logits of it."""

    def __init__(self, row):
        self.row = row
        self.model = Model(row, seed=sum(map(ord, row.name)))
        self.tokens = np.random.default_rng(len(row.name)).integers(0, row.config["vocab_size"], LENGTH).tolist()
        self.want = self.model.logits(self.tokens)
        self.f32 = relative_squared_error(self.model.logits(self.tokens, dtype=torch.float32), self.want)

    def errors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.gguf"
            self.model.write(path)
            return Errors(path, self.tokens, self.want, self.f32)

    def unseen(self):
        """Layers, features and weights of the model that these tokens' logits do not show, to which the row is blind."""
        count = self.row.config["num_hidden_layers"]
        some = range(count) if count < 8 else (0, count // 2, count - 1)
        layers = {f"layer {i}": self.model.logits(self.tokens, skip=i) for i in some}
        features = {name: self.model.logits(self.tokens, changes) for name, changes in self.row.features.items()}
        kinds = {re.sub(r"\d+", "N", name): name for name in reversed(self.model.weights)}
        rng = np.random.default_rng(count)
        weights = {name: self.model.disturbed_logits(self.tokens, name, rng) for name in kinds.values()}
        return [f"{name}: {change:.1e}" for least, group in ((0.01, layers), (1e-4, features), (1e-6, weights))
                for name, logits in group.items() if (change := relative_squared_error(logits, self.want)) < least]


class Architectures(unittest.TestCase):
    def test_rows(self):
        names = [row.name for row in ROWS]
        self.assertEqual(len(set(names)), len(names))
        self.assertLessEqual(set(MISSING), set(names))
        for row in ROWS:
            with self.subTest(row.name):
                reference = Reference(row)
                if row.name in MISSING:
                    with self.assertRaisesRegex(AssertionError, "exit status", msg="it runs: MISSING should not name it"):
                        reference.errors()
                    continue
                self.assertEqual(reference.errors().wrong() + reference.unseen(), [])


# One of each kind of layer, by the code objects that we ship, with the emulator's checker: in f32, and with what products
# read rounded to 16 bits, as a prompt's is on a card.
EMULATED = ["llama", "gemma3", "gpt-oss", "deepseek2", "qwen35moe", "gemma4, of 26B"]


class Emulated(unittest.TestCase):
    def test_rows(self):
        if "gfx1100" not in {pack["target"] for pack in json.loads(rdna_program.output("kernels", "--json"))}:
            self.skipTest("this build has no kernels for gfx1100")
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


def table(rows):
    failed = False
    print(HEAD)
    for row in rows:
        reference = Reference(row)
        try:
            errors = reference.errors()
        except AssertionError as error:
            print(refusal(row.name, error))
            failed = True
            continue
        wrong = errors.wrong() + reference.unseen()
        failed |= bool(wrong)
        print(errors.line(row.name), "; ".join(wrong), flush=True)
    return failed


def write(rows, folder):
    """For architecture_errors.py."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        reference = Reference(row)
        reference.model.write(folder / f"{row.name}.gguf")
        np.savez(folder / f"{row.name}.npz", tokens=reference.tokens, want=reference.want, f32=reference.f32)


def main():
    parser = argparse.ArgumentParser(description="Logits against transformers in float64, as a table.")
    parser.add_argument("names", nargs="*", metavar="NAME", default=[""], help="rows whose names begin so")
    parser.add_argument("--all", action="store_true", help="those too that rdna does not run yet")
    parser.add_argument("--write", metavar="FOLDER", type=pathlib.Path, help="models and logits for architecture_errors.py")
    given = parser.parse_args()
    rows = [row for row in ROWS if row.name.startswith(tuple(given.names)) and (given.all or row.name not in MISSING)]
    return write(rows, given.write) if given.write else table(rows)


if __name__ == "__main__":
    if sys.argv[1:]:
        raise SystemExit(main())
    unittest.main()
