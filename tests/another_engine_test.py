"""Logits of a model against those that another engine wrote down. The files are no part of the repository: exit status
77 where ../shared/data beside it, or RDNA_SHARED_DATA, has no models; once there are any, a missing one is a failure."""
import pathlib
import tempfile
import unittest

import numpy as np

from logits_test import logits_of, relative_squared_error
from rdna_program import SHARED_DATA
import gguf_file as gf

MODELS = SHARED_DATA / "tiny_models"
NAMES = ("llama-dense", "qwen3-dense", "phi3-dense", "gemma2-dense", "gpt-oss-moe")
# Where that engine does not multiply by the NAME.scale tensors that the files have.
WITHOUT_SCALES = ("phi3-dense", "gemma2-dense", "gpt-oss-moe")
# that engine's own f32 lies up to a few 1e-9 from float64
BOUND = 1e-7


def as_that_engine_read(name, folder):
    """A copy of the file that says what the recorded logits were made of."""
    file, path = gf.Reader(MODELS / f"{name}.gguf"), pathlib.Path(folder) / f"{name}.gguf"
    if name == "phi3-dense":  # the session there was longer than the original context: the list of long factors
        file.keys["phi3.rope.scaling.original_context_length"] = 8
    keys = [(key, *gf.typed(value)) for key, value in file.keys.items()
            if value != [] and not key.startswith("tokenizer")]
    gf.write(path, keys, [(tensor, gf.TENSOR_F32, array) for tensor, array in file.tensors.items()
                          if not tensor.endswith("scale")])
    return path


class AnotherEngine(unittest.TestCase):
    def test_logits(self):
        # the generator that the recorded logits were made with, with seed 1
        tokens = [(1103515245 + 12345 + i * 2654435761) % 2**32 % 128 for i in range(16)]
        for name in NAMES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = as_that_engine_read(name, folder) if name in WITHOUT_SCALES else MODELS / f"{name}.gguf"
                want = np.fromfile(MODELS / f"{name}.logits.f32", "<f4").astype(np.float64).reshape(16, 128)
                for passes in ((), ("--batch", 1)):
                    got = logits_of(path, tokens, "--kv", "f32", *passes)
                    self.assertLess(relative_squared_error(got, want), BOUND)


if __name__ == "__main__":
    if not MODELS.exists():
        print(f"skipped: there is no folder {MODELS}; RDNA_SHARED_DATA names the one that holds tiny_models")
        raise SystemExit(77)
    unittest.main()
