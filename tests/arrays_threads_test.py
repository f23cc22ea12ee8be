"""A compiled function that several threads call, on an emulated card, where its second run is recorded: values of every call by NumPy."""
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

import rdna_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = textwrap.dedent("""
    import threading
    import numpy as np, rdna.arrays as ra
    f, done = ra.compile(lambda x: ra.sum(x @ x, axis=0) * 2 + ra.max(x)), []
    def work(i):
        for k in range(6):
            a = np.full((8, 8), i + k % 7, "f4")
            got = f(ra.asarray(a)).numpy()
            done.append(bool((got == (a @ a).sum(0) * 2 + a.max()).all()))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert done == [True] * 24, done
    """)


class Threads(unittest.TestCase):
    def test_one_function_of_four_threads(self):
        built = pathlib.Path(rdna_program.PROGRAM).parent.parent
        emulator = pathlib.Path(os.environ.get("RDNA_HIP_LIBRARY", built / "emulator/librdna_emulator.so"))
        kernels = pathlib.Path(os.environ.get("RDNA_KERNEL_PATH", built / "kernels"))
        if not emulator.exists() or not list(kernels.glob("*gfx1100*")):
            self.skipTest(f"needs {emulator} and kernels for gfx1100 in {kernels}: cmake --build build/release")
        environment = {"RDNA_LIBRARY": str(built / "lib/librdna.so"), **os.environ, "PYTHONPATH": str(ROOT / "bindings/python"), "RDNA_DRIVER": "hip",
                       "RDNA_EMULATE": "gfx1100", "RDNA_HIP_LIBRARY": str(emulator), "RDNA_KERNEL_PATH": str(kernels)}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
