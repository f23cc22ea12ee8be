"""Logits of a model against those that another engine wrote down. The files are no part of the repository: exit status
77 where ../shared/data beside it, or RDNA_SHARED_DATA, has no models; once there are any, a missing one is a failure."""
import unittest

import numpy as np

from logits_test import logits_of, relative_squared_error
from rdna_program import SHARED_DATA

MODELS = SHARED_DATA / "tiny_models"


class AnotherEngine(unittest.TestCase):
    def test_llama_dense(self):
        path = MODELS / "llama-dense.gguf"
        # the generator that the recorded logits were made with, with seed 1
        tokens = [(1103515245 + 12345 + i * 2654435761) % 2**32 % 128 for i in range(16)]
        want = np.fromfile(path.with_suffix(".logits.f32"), "<f4").astype(np.float64).reshape(16, 128)
        self.assertLess(relative_squared_error(logits_of(path, tokens), want), 1e-6)


if __name__ == "__main__":
    if not MODELS.exists():
        print(f"skipped: there is no folder {MODELS}; RDNA_SHARED_DATA names the one that holds tiny_models")
        raise SystemExit(77)
    unittest.main()
