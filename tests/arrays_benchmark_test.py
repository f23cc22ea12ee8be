"""benchmarks/rocm_benchmark.py and arrays_gpu.py: that every group runs, with its flags, and what they write."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

import arrays_tools

SCRIPT, BESIDE = (arrays_tools.ROOT / "benchmarks" / name for name in ("rocm_benchmark.py", "arrays_gpu.py"))
GROUPS = {"matmul", "conv", "pooling", "normalization", "activation", "elementwise", "reduction", "loss", "fusion"}


def run(*arguments, script=SCRIPT):
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True)


class Benchmark(unittest.TestCase):
    def test_all(self):
        with tempfile.TemporaryDirectory() as folder:
            rows, picture = pathlib.Path(folder) / "rows.json", pathlib.Path(folder) / "roofline.svg"
            done = run("--all", "--small", "--iterations", "2", "--warmup", "1", "--device", "cpu", "--json", str(rows), "--svg", str(picture))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            result, circles = json.loads(rows.read_text()), ElementTree.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}circle")
        self.assertEqual({row["group"] for row in result["rows"]}, GROUPS)
        self.assertEqual(result["device"]["type"], "cpu")
        for row in result["rows"]:
            self.assertTrue(all(math.isfinite(row[name]) and row[name] > 0 for name in ("ms", "gflops", "gbytes", "intensity", "of_bound")), row)
            self.assertAlmostEqual(row["gflops"] / row["gbytes"], row["intensity"], delta=1e-9 * row["intensity"])
            self.assertIn(row["name"], done.stdout)
        self.assertEqual((len(circles), len(done.stdout.splitlines())), (len(result["rows"]), len(result["rows"]) + 3))
        counts = {row["name"]: row["gflops"] * row["ms"] * 1e6 for row in result["rows"]}  # operations
        for name, operations in (("matmul 33", 2 * 33 ** 3), ("bmm (2, 8, 9)", 2 * 2 * 8 * 9 * 7), ("conv2d (2, 3, 8, 4, 3)", 2 * 2 * 4 * 64 * 27)):
            self.assertAlmostEqual(counts[name], operations, delta=1e-6 * operations)

    def test_some(self):
        done = run("--matmul", "--loss", "--small", "--iterations", "1", "--warmup", "0", "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cross_entropy", done.stdout)
        self.assertNotIn("conv2d", done.stdout)
        for arguments, mentions in (((), "name groups, or --all"), (("--all", "--iterations", "0"), "--iterations is at least 1"), (("--all", "--device", "gpu"), "'cpu', 'rocm'")):
            done = run(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(mentions, done.stderr)

    def test_beside_pytorch(self):
        """Our side alone: steps train, chains are fused, and an operator is like itself."""
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder) / "rows.json"
            done = run("--tiny", "--sides", "ours", "--json", str(rows), script=BESIDE)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = {row["line"]: row for row in json.loads(rows.read_text()) if "line" in row}
        for name, launches in (("chain of 8 f32", 1), ("chain of 8 f16", 1), ("MLP 784-256-128-10, batch 32, forward", 3)):
            self.assertEqual(lines[name]["launches"], launches)
        for name in ("GPT-2 small step f32", "GPT-2 small step f16", "ResNet-50 step f32"):
            losses = lines[name]["losses"]
            self.assertTrue(0 < losses[-1] < losses[0], (name, losses))
        compared = [row for name, row in lines.items() if name.endswith("beside the processor")]
        self.assertGreater(len(compared), 25)
        self.assertEqual({row["of_largest"] for row in compared}, {0.0})
        done = run("--parts", "gpt3", script=BESIDE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no gpt3; there are chains", done.stderr)


if __name__ == "__main__":
    unittest.main()
