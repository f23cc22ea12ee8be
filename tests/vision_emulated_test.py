"""Towers and prompts with pictures on an emulated card, by the code objects that we ship and with the checker, against
transformers in float64."""
import os
import pathlib
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np

os.environ |= {"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"}  # before librdna is loaded
import rdna_program  # makes tools/ importable
import llm_sessions
import serving
from logits_test import relative_squared_error
from vision_library import Tower, show
from vision_models import ROWS, SeeingModel

os.environ.setdefault("RDNA_HIP_LIBRARY", str(serving.EMULATOR))


class Emulated(unittest.TestCase):
    def test_rows(self):
        """In f32, and with what a prompt's products read rounded to 16 bits, as on a card."""
        for row in (ROWS[1], ROWS[3], ROWS[6]):
            with self.subTest(row.name), tempfile.TemporaryDirectory() as folder:
                path, tower_path = pathlib.Path(folder) / "model.gguf", pathlib.Path(folder) / "tower.gguf"
                made, rng = SeeingModel(row, seed=6), np.random.default_rng(7)
                made.write(path)
                made.write_tower(tower_path)
                picture = rng.integers(0, 256, (31, 45, 3), np.uint8)
                before, behind = (rng.integers(0, 60, count).tolist() for count in (9, 12))
                want_rows, want = made.rows(picture), made.logits_of([before, picture, behind])
                model = llm_sessions.Model(path, "hip")
                tower = Tower(model, tower_path)
                rows = tower.see(picture, want_rows.shape[1])
                self.assertLess(relative_squared_error(rows.astype(float), want_rows), 1e-9)
                for exact, kv, bound in ((1, 0, 1e-8), (0, 1, 1e-4)):
                    options = llm_sessions.SessionOptions(len(want), kv, 64, exact)
                    session = llm_sessions.Session(model, want.shape[1], len(want), 64, options)
                    session.read(before)
                    show(session, rows, tower.grid(31, 45))
                    got = session.read(behind)
                    self.assertLess(relative_squared_error(got, want[-len(behind):]), bound)
                    session.close()
                tower.close()
                model.close()


if __name__ == "__main__":
    unittest.main()
