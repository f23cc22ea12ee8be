"""What importing rdna.arrays costs beside importing NumPy alone, in the processor's time and with compiled bytecode, and what it leaves for later."""
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import unittest

from arrays_tools import ROOT, ra


def run(code, folder):
    """The processor's time of a Python that runs |code|, and what it writes."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONPATH": str(ROOT / "bindings/python")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


class Import(unittest.TestCase):
    def test_takes_little_more_than_numpy(self):
        with tempfile.TemporaryDirectory() as folder:
            run("import rdna.arrays", folder)  # compiles it
            times = [[run(f"import {name}", folder)[0] for name in ("numpy", "rdna.arrays")] for _ in range(5)]
        numpy, ours = (statistics.median(each) for each in zip(*times))
        self.assertLess(ours, 1.6 * numpy)

    def test_leaves_for_later_what_few_programs_use(self):
        with tempfile.TemporaryDirectory() as folder:
            _, said = run("import sys, numpy; before = set(sys.modules); import rdna.arrays as ra\n"
                          "print(*sorted({*sys.modules} - before)); ra.sort, ra.save, ra.linalg.inv, ra.nn.Linear, ra.fft.fft, ra.VERSIONS\n"
                          "print('rdna.arrays.linalg' in sys.modules)", folder)
        loaded, later = said.splitlines()
        later_ones = {"data", "distributed", "fft", "linalg", "nn", "optim", "random", "_files", "_functional", "_modules", "_numpy", "_ordering", "_origins", "_recurrent"}
        self.assertEqual({f"rdna.arrays.{name}" for name in later_ones} & {*loaded.split()}, set())
        self.assertEqual({"json", "hashlib", "socket", "inspect"} & {*loaded.split()}, set())
        self.assertIn("rdna.arrays._array", loaded.split())
        self.assertEqual(later, "True")

    def test_has_all_names_before_they_are_used(self):
        self.assertLessEqual({"load", "save", "sort", "unique_all", "linalg", "fft", "nn", "optim", "data", "distributed", "random", "exp", "asarray"}, {*dir(ra)})
        with self.assertRaisesRegex(AttributeError, "has no attribute 'sorted'"):
            ra.sorted


if __name__ == "__main__":
    unittest.main()
