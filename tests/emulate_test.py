"""rdna emulate: kernels compiled here, run from the command line, their buffers compared with NumPy."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from rdna_program import PROGRAM, output, run

SOURCE = r"""
struct scaling { float by; int add; };
extern "C" __attribute__((global)) void scale(const float *in, float *out, double *in_place, int n, long long wide,
                                              float f, double d, scaling s) {
  int i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
  if (i >= n) return;
  out[i] = in[i] * f * s.by + (float)s.add;
  in_place[i] = in_place[i] + d + (double)wide;
}
extern __attribute__((shared)) int tile[];
extern "C" __attribute__((global)) void reverse(int *data) {
  int t = __builtin_amdgcn_workitem_id_x(), n = __builtin_amdgcn_workgroup_size_x();
  tile[t] = data[t];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  data[t] = tile[n - 1 - t];
}
extern "C" __attribute__((global)) void past_the_end(int *out, int n) {
  out[__builtin_amdgcn_workitem_id_x() + n] = 1;
}
extern "C" __attribute__((global)) void unwritten(const int *in, int *out) {
  if (in[0] == 3) out[0] = 1;
}
"""


def line_of(text):
    """Where it stands in the source, as reports say it."""
    return "kernels.hip:%d" % (SOURCE[:SOURCE.index(text)].count("\n") + 1)


CLANG = shutil.which("clang-19") or shutil.which("clang")


class Emulate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.keep.name)
        source = cls.folder / "kernels.hip"
        source.write_text(SOURCE)
        for target in ("gfx1030", "gfx1100"):
            subprocess.run([CLANG, "-x", "hip", "-nogpuinc", "-nogpulib", "--offload-device-only",
                            "--no-gpu-bundle-output", "--offload-arch=" + target, "-O2", "-gline-tables-only", source,
                            "-o", cls.folder / (target + ".hsaco")], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def test_every_kind_of_argument(self):
        n = 1000
        random = np.random.default_rng(5)
        x = random.standard_normal(n, dtype=np.float32)
        y = random.standard_normal(n)
        x.tofile(self.folder / "x")
        y.tofile(self.folder / "y")
        struct = np.float32(0.5).tobytes() + np.int32(-3).tobytes()
        for target in ("gfx1030", "gfx1100"):
            output("emulate", self.folder / (target + ".hsaco"), "scale", "--grid", "4", "--block", "256,1,1", "--check",
                   f"in:{self.folder}/x", f"out:{4 * n}:{self.folder}/out", f"inout:{self.folder}/y:{self.folder}/y2",
                   f"i32:{n}", f"i64:{2 ** 40}", "f32:3", "f64:0.125", "bytes:" + struct.hex())
            got = np.fromfile(self.folder / "out", np.float32)
            # two products and a sum in single precision, perhaps contracted
            np.testing.assert_allclose(got, x.astype(np.float64) * 1.5 - 3, rtol=2 ** -23, atol=3 * 2 ** -23)
            np.testing.assert_array_equal(np.fromfile(self.folder / "y2"), y + 0.125 + 2.0 ** 40)

    def test_lds_and_counters(self):
        np.arange(64, dtype=np.int32).tofile(self.folder / "d")
        text = output("emulate", self.folder / "gfx1100.hsaco", "reverse", "--block", "64", "--lds", 256, "--check",
                      "--counters", f"inout:{self.folder}/d:{self.folder}/d2").decode()
        np.testing.assert_array_equal(np.fromfile(self.folder / "d2", np.int32), np.arange(64)[::-1])
        self.assertIn("counts, not times", text)
        self.assertIn("2 waves of 32", text)
        self.assertTrue(re.search(r"stores 256 bytes", text), text)

    def refused(self, *arguments, mentions):
        result = run("emulate", *arguments)
        self.assertEqual(result.returncode, 1, result.stderr)
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        for mention in mentions if isinstance(mentions, tuple) else (mentions,):
            self.assertIn(mention, lines[0])

    def test_a_fault_names_the_line(self):
        np.zeros(32, np.int32).tofile(self.folder / "z")
        file = self.folder / "gfx1100.hsaco"
        self.refused(file, "past_the_end", "--block", "32", f"inout:{self.folder}/z:{self.folder}/z2", "i32:1",
                     mentions=("past_the_end", "global_store_b32", line_of("+ n] = 1"), "lane 31", "argument 0"))
        output("emulate", file, "past_the_end", "--block", "32", f"inout:{self.folder}/z:{self.folder}/z2", "i32:0")

    def test_the_checker_finds_unwritten_memory(self):
        result = run("emulate", self.folder / "gfx1100.hsaco", "unwritten", "--check", f"out:4:{self.folder}/u",
                     f"out:4:{self.folder}/v")
        self.assertEqual(result.returncode, 1)
        self.assertIn(line_of("in[0] == 3"), result.stderr.decode())

    def test_break_and_trace(self):
        file = self.folder / "gfx1100.hsaco"
        np.arange(64, dtype=np.int32).tofile(self.folder / "d")
        done = subprocess.run([PROGRAM, "emulate", "--break", "reverse", "--break", "scale", "--trace", self.folder / "trace",
                               "--trace-wave", "0,0,0:1", file, "reverse", "--block", "64", "--lds", "256",
                               f"inout:{self.folder}/d:{self.folder}/d2"], input="where\nscalars\ncontinue\nstep 3\n",
                              capture_output=True, text=True, check=True)
        np.testing.assert_array_equal(np.fromfile(self.folder / "d2", np.int32), np.arange(64)[::-1])
        self.assertEqual(done.stderr.count("\nbreakpoint: "), 2, done.stderr)  # of two waves
        self.assertEqual(done.stderr.count("\nstepped: "), 1, done.stderr)
        trace = (self.folder / "trace").read_text()
        self.assertIn("work-group (0, 0, 0), wave 1", trace)
        self.assertRegex(trace, r"s_barrier +\(\S*kernels\.hip:\d+\)")

    def test_wishes_of_the_other_form(self):
        file = self.folder / "gfx1100.hsaco"
        program = ["--target", "gfx1100", "--", sys.executable, "-c", ""]
        for arguments, said in ((["--grid", "1", *program], "are of a kernel"), (["--block", "1", *program], "are of a kernel"),
                                (["--lds", "0", *program], "are of a kernel"),
                                (["--target", "gfx1100", file, "reverse"], "--target is of a program"),
                                (["--trace-wave", "0,0,0:1", *program], "there is no --trace"),
                                ([*["--break", "k" * 1100] * 8, *program], "there is room for 8191")):
            done = run("emulate", *arguments)
            self.assertEqual((done.returncode, said in done.stderr.decode()), (2, True), done.stderr)

    def test_a_program(self):
        shows = "import os; print(os.environ['RDNA_EMULATE'], os.environ['LD_LIBRARY_PATH'].split(':')[0])"
        environment = {k: v for k, v in os.environ.items() if k != "RDNA_EMULATE"}
        for arguments, said in ((["--target", "gfx942,gfx1201", "--", sys.executable, "-c", shows], "gfx942,gfx1201"),
                                ([sys.executable], "which GPU"), ([self.folder], "of which kernel"),
                                (["--gdb", "70000", sys.executable], "65535")):
            done = subprocess.run([PROGRAM, "emulate", *arguments], env=environment, capture_output=True, text=True)
            self.assertIn(said, done.stdout + done.stderr)
            self.assertEqual(done.returncode == 0, said == "gfx942,gfx1201", done.stderr)
            if done.returncode == 0:
                self.assertTrue(pathlib.Path(done.stdout.split()[1], "libamdhip64.so").exists(), done.stdout)

    def test_bad_use(self):
        file = self.folder / "gfx1100.hsaco"
        self.refused(file, "no_such", mentions="no kernel 'no_such'")
        self.refused(file, "reverse", mentions="takes 1 argument")
        self.refused(file, "reverse", "i32:1", mentions="8 bytes")
        self.refused(file, "reverse", "i32:one", mentions="i32:one")
        self.refused(file, "reverse", "bytes:123", mentions="even number")
        self.refused(file, "reverse", "what:1", mentions="inout:FILE:OUTFILE")
        self.refused(file, "reverse", f"in:{self.folder}/none", mentions="cannot be read")
        for sides in ("0", "-1", "+4", " 4", "x", "4,", "4,,1", "4,0", "1,1,1,1", "4294967297", "4x"):
            self.refused(file, "reverse", "--grid", sides, "i64:0", mentions=("--grid", f"'{sides}'"))
        self.refused(file, "reverse", "--block", "2000", "i64:0", mentions="2000")
        self.refused(self.folder / "kernels.hip", "reverse", mentions="neither an ELF")
        self.refused(self.folder / "none", "reverse", mentions="cannot be read")


if __name__ == "__main__":
    unittest.main()
