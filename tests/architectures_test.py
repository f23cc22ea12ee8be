"""Each architecture's logits against transformers' network of that architecture in float64, with random weights.

tests/architectures_test.py                  all rows but those that MISSING names, which must not run; of them the
                                             second of three shares where RDNA_TEST_SHARE is 2/3
tests/architectures_test.py NAME… [--all]    a table of the rows whose names begin so; with --all those of MISSING too
tests/architectures_test.py --write FOLDER   models and logits for machines without PyTorch: architecture_errors.py
"""
import argparse
import os
import pathlib
import re
import sys
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np
import torch

import rdna_program  # first: it makes tools/ importable
from architecture_delta import DELTA
from architecture_errors import HEAD, Errors, refusal
from architecture_gemma4 import GEMMA4
from architecture_mixtures import MIXTURES
from architecture_models import Model
from architecture_more import MORE
from architecture_rows import ROWS as DENSE
from logits_test import relative_squared_error

ROWS = DENSE + MIXTURES + DELTA + GEMMA4 + MORE
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
        kinds = {re.sub(r"\d+", "N", name): name for name in reversed(self.model.weights)
                 if self.row.serves_text(name)}
        rng = np.random.default_rng(count)
        weights = {name: self.model.disturbed_logits(self.tokens, name, rng) for name in kinds.values()}
        return [f"{name}: {change:.1e}" for least, group in ((0.01, layers), (1e-4, features), (1e-6, weights))
                for name, logits in group.items() if (change := relative_squared_error(logits, self.want)) < least]


class Architectures(unittest.TestCase):
    def test_rows(self):
        names = [row.name for row in ROWS]
        self.assertEqual(len(set(names)), len(names))
        self.assertLessEqual(set(MISSING), set(names))
        share, shares = map(int, os.environ.get("RDNA_TEST_SHARE", "1/1").split("/"))
        print(f"share {share} of {shares}")
        rows = ROWS[share - 1::shares]
        self.assertTrue(rows)
        for row in rows:
            with self.subTest(row.name):
                reference = Reference(row)
                if row.name in MISSING:
                    with self.assertRaisesRegex(AssertionError, "exit status", msg="it runs: MISSING should not name it"):
                        reference.errors()
                    continue
                self.assertEqual(reference.errors().wrong() + reference.unseen(), [])


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
    parser.add_argument("--write", metavar="FOLDER", type=pathlib.Path, help="for architecture_errors.py")
    given = parser.parse_args()
    rows = [row for row in ROWS if row.name.startswith(tuple(given.names)) and (given.all or row.name not in MISSING)]
    return write(rows, given.write) if given.write else table(rows)


if __name__ == "__main__":
    if sys.argv[1:]:
        raise SystemExit(main())
    unittest.main()
