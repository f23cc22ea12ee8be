"""benchmarks/llm_host.py: that our side runs and measures, and what is said where llama.cpp's libraries are not."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import rdna_program  # first: it makes tools/ importable

import made_model

SCRIPT = pathlib.Path(__file__).parent.parent / "benchmarks/llm_host.py"
LIBRARY = pathlib.Path(rdna_program.PROGRAM).parent.parent / "lib/librdna.so"


class HostBenchmark(unittest.TestCase):
    def run_side(self, side, folder, model, lines=""):
        return subprocess.run([sys.executable, SCRIPT, folder, "--side", side, "--model", model, "--context", "64", "--clock"], input=lines,
                              capture_output=True, text=True, timeout=120, env={**os.environ, "RDNA_LIBRARY": str(LIBRARY), "RDNA_THREADS": "1"})

    def test_sides(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "tiny.gguf"
            made_model.write(model, "tiny")
            ours = self.run_side("ours", folder, model, "0 32 1\n40 1 8\n40 16 1\n")
            self.assertEqual(ours.returncode, 0, ours.stderr)
            times = [float(line) for line in ours.stdout.split()]
            self.assertEqual(len(times), 3)
            self.assertTrue(all(0 < t < 100 for t in times), times)
            too_long = self.run_side("ours", folder, model, "60 8 1\n")
            self.assertIn("8 tokens after 60 do not fit", too_long.stderr)
            theirs = self.run_side("theirs", folder, model)
            self.assertEqual(theirs.returncode, 1)
            self.assertIn(f"no libggml-base.so in {folder}", theirs.stderr)

    def compare(self, folder, *more):
        return subprocess.run([sys.executable, SCRIPT, folder, "--depth", "64", *more], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "RDNA_LIBRARY": str(LIBRARY)})

    def test_what_cannot_be_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            made_model.write(pathlib.Path(folder) / "f16.gguf", "tiny")
            ended = self.compare(folder, "--models", "f16", "--keep", folder)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(f"no libggml-base.so in {folder}", ended.stderr)
            self.assertNotIn("Traceback", ended.stderr)
            for more, words in ((("--models", "f17"), "there is no f17"), (("--works", "read"), "there is no read"), (("--works", "write behind 2048"), "no write behind 2048")):
                refused = self.compare(folder, *more)
                self.assertEqual(refused.returncode, 2)
                self.assertIn(words, refused.stderr)


if __name__ == "__main__":
    unittest.main()
