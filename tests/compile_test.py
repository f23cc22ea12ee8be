"""rdna compile: what it says of a code object against llvm-readelf's notes, and the code run by rdna emulate against NumPy."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

from rdna_program import output, run

SOURCE = """
#include <hip/hip_runtime.h>
#include "scale.h"

template <typename number>
__device__ number scaled(number x) { return x * SCALE; }

__global__ __launch_bounds__(256) void scale(const float* in, float* out, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x % 64] = i < n ? in[i] : 0.0f;
  __syncthreads();
  if (i < n) out[i] = scaled(tile[threadIdx.x % 64]) + OFFSET;
}

extern "C" __global__ void lookup(const int* index, double* out, long long big) {
  int table[64];  // indexed at run time: scratch memory
  for (int i = 0; i < 64; i++) table[i] = index[i] * 3;
  out[threadIdx.x] = table[index[threadIdx.x] & 63] + (double)big;
}
"""
READELF = shutil.which("llvm-readelf-19") or shutil.which("llvm-readelf")


class Compile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.keep.name)
        cls.cache = cls.folder / "cache"
        (cls.folder / "scale.h").write_text("#define SCALE 3\n")
        cls.source = cls.folder / "two kernels.hip"
        cls.source.write_text(SOURCE)

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def compile(self, *arguments):
        return output("compile", self.source, "--cache", self.cache, "-DOFFSET=2", *arguments)

    def refused(self, code, *arguments, mentions):
        result = run("compile", "--cache", self.cache, *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        for text in [mentions] if isinstance(mentions, str) else mentions:
            self.assertIn(text, result.stderr.decode())

    def test_what_it_says_is_what_the_file_has(self):
        for target in ("gfx1100", "gfx90a"):
            out = self.folder / f"{target}.hsaco"
            report = json.loads(self.compile("--target", target, "--out", out, "--json"))
            self.assertEqual((report["target"], report["out"], report["bytes"]), (target, str(out), out.stat().st_size))
            notes = subprocess.run([READELF, "--notes", out], capture_output=True, text=True, check=True).stdout
            self.assertIn("amdgcn-amd-amdhsa--" + target, notes)
            kernels = re.split(r"\n  - (?=\.)", notes.partition("amdhsa.target")[0])[1:]
            self.assertEqual(len(kernels), len(report["kernels"]))
            for note, kernel in zip(kernels, report["kernels"]):
                def number(key):
                    return int(re.search(rf"(?m)^ *\.{key}: +(\d+)", note)[1])

                self.assertIn(kernel["symbol"] + ".kd", note)
                for name, key in (("vector_registers", "vgpr_count"), ("scalar_registers", "sgpr_count"),
                                  ("vector_spills", "vgpr_spill_count"), ("scalar_spills", "sgpr_spill_count"),
                                  ("group_memory", "group_segment_fixed_size"), ("wave_size", "wavefront_size"),
                                  ("private_memory", "private_segment_fixed_size"),
                                  ("max_group_threads", "max_flat_workgroup_size")):
                    self.assertEqual(kernel[name], number(key), (target, kernel["name"], name))
            scale, lookup = report["kernels"]
            self.assertEqual([scale["name"], lookup["name"]], ["scale", "lookup"])
            self.assertEqual((scale["group_memory"], scale["max_group_threads"]), (256, 256))
            self.assertGreater(lookup["private_memory"], 0)
            self.assertEqual([(a["name"], a["type"], a["offset"], a["size"]) for a in scale["arguments"]],
                             [("in", "const float*", 0, 8), ("out", "float*", 8, 8), ("n", "int", 16, 4)])

    def test_it_runs(self):
        out = self.folder / "run.hsaco"
        table = self.compile("--target", "gfx1100", "--out", out).decode()
        self.assertRegex(table, r"(?m)^scale +\d+ +\d+ +256 +0 +256 +0  const float\* in, float\* out, int n$")
        self.assertRegex(table, r"(?m)^lookup .*pointer index, pointer out, 8 bytes big$")
        self.assertIn(str(out), table)
        x = np.random.default_rng(3).standard_normal(1000, np.float32)
        x.tofile(self.folder / "x")
        symbol = json.loads(self.compile("--target", "gfx1100", "--out", out, "--json"))["kernels"][0]["symbol"]
        output("emulate", out, symbol, "--check", "--grid", "16", "--block", "64", f"in:{self.folder}/x",
               f"out:4000:{self.folder}/y", "i32:1000")
        np.testing.assert_allclose(np.fromfile(self.folder / "y", np.float32), x.astype(float) * 3 + 2, rtol=1.2e-7,
                                   atol=5e-7)  # the product may be rounded before the sum

    def test_the_cache_and_what_is_included(self):
        def cached():
            return json.loads(self.compile("-O2", "--target", "gfx1030", "--out", self.folder / "c", "--json"))["cached"]

        self.assertFalse(cached())
        self.assertTrue(cached())
        (self.folder / "scale.h").write_text("#define SCALE 3 \n")
        self.assertFalse(cached())

    def test_names_of_files(self):
        before = set(self.folder.iterdir())
        code = output("compile", "-", "--cache", self.cache, "--target", "gfx1100", "--out", "-",
                      stdin=b"__global__ void f(int* x) { *x = 1; }")
        self.assertEqual(code[:4], b"\x7fELF")
        ptx = self.compile("--target", "sm_80", "--out", "-")
        self.assertIn(b".entry lookup", ptx)
        self.assertNotIn(b"\0", ptx)
        self.assertEqual(before, set(self.folder.iterdir()))

    def test_bad_use(self):
        bad = self.folder / "bad.hip"
        bad.write_text("\n__global__ void f(float* x) {\n  x[0] = undefined_name;\n}\n")
        self.refused(1, bad, "--target", "gfx1100", mentions=(f"{bad}:3:10", "undefined_name"))
        self.assertFalse(pathlib.Path("bad.gfx1100.hsaco").exists())
        self.refused(1, self.source, "--target", "gfx9", mentions=("'gfx9'", "gfx1100"))
        self.refused(1, self.source, "--target", "gfx1100", "-ofile", mentions="'-ofile' is no flag")
        self.refused(1, self.folder / "none.hip", "--target", "gfx1100", mentions="none.hip")
        self.refused(1, bad.parent / "scale.h", "--target", "gfx1100", "--out", bad.parent / "scale.h", mentions="both")
        self.refused(2, "--target", "gfx1100", mentions="FILE.hip")
        result = run("compile", self.source, "-DOFFSET=2", "--target", "gfx1100", "--cache", "/proc/self", "--out",
                     self.folder / "ro.hsaco")
        self.assertEqual(result.returncode, 0)
        self.assertIn("/proc/self", result.stderr.decode())
        self.assertTrue((self.folder / "ro.hsaco").exists())


if __name__ == "__main__":
    unittest.main()
