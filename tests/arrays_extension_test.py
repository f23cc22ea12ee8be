"""rdna.arrays' extension in C: that it is used where it was built, that the package does the same without it, and what could go wrong in C: counts of
references, failures, other classes, threads."""
import copy
import gc
import math
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import numpy as np
from arrays_tools import ROOT, Case, ra, rng

from rdna._native import MemoryStats
from rdna.compat._pyflame_rocm import MemoryManager

LIBRARY = pathlib.Path(ra._core.path())


class Foreign:
    """Something that knows what to do beside an array."""

    def __radd__(self, other):
        return "radd", type(other).__name__

    def __rtruediv__(self, other):
        return "rtruediv"

    def __mul__(self, other):
        return "mul"


def live_blocks():
    """How many blocks of device memory are in use."""
    stats = MemoryStats()
    ra._core.check(ra._core.library.rdna_stream_synchronize(ra._core.stream()))
    ra._core.library.rdna_memory_get_stats(ra._core.library.rdna_stream_device(ra._core.stream()), ra._core.ctypes.byref(stats))
    return stats.blocks


class Extension(Case):
    def test_it_is_used(self):
        if not (LIBRARY.parent / "rdna_arrays.abi3.so").exists():
            self.skipTest("it was not built: Python's headers (python3-dev) were missing")
        self.assertEqual(ra._array.extension.__name__, "rdna_arrays")
        self.assertEqual(type(ra.exp).__name__, "builtin_function_or_method")

    def test_without_it(self):
        """The suites that look at operators, where librdna lies alone."""
        with tempfile.TemporaryDirectory() as folder:
            alone = pathlib.Path(folder) / "librdna.so"
            alone.symlink_to(LIBRARY.resolve())
            environment = {**os.environ, "RDNA_LIBRARY": str(alone)}
            check = "import sys; sys.path.insert(0, sys.argv[1]); import rdna.arrays as ra; assert ra._array.extension is None; assert (ra.ones(2) + 1.0).tolist() == [2, 2]"
            subprocess.run([sys.executable, "-c", check, str(ROOT / "bindings/python")], env=environment, check=True)
            for suite in ("arrays_test.py", "arrays_recorded_test.py"):
                done = subprocess.run([sys.executable, str(ROOT / "tests" / suite)], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_operands(self):
        a = rng.standard_normal((3, 2)).astype("f4")
        x = ra.asarray(a)
        for dtype in (np.float16, np.float32, np.float64):
            v = a.astype(dtype)
            y = ra.asarray(v)
            for number in (2.0, -0.0, math.inf, 3, True, np.float32(0.5), np.float64(0.5), np.int8(3)):
                with np.errstate(all="ignore"):
                    for got, want in ((y + number, v + number), (number + y, number + v), (y - number, v - number), (number - y, number - v),
                                      (y * number, v * number), (number * y, number * v), (y / number, v / number), (number / y, number / v)):
                        self.same(got, want, ulps=2)
            self.same(-y, -v)
            self.same(abs(y), abs(v))
        self.assertEqual(math.copysign(1, float((ra.zeros(1) * -1.0)[0])), -1)
        ints = ra.asarray([1, -2])
        self.same(ints + 1.5, np.array([2.5, -0.5]))
        self.same(ints / 2, np.array([0.5, -1.0]))
        self.same(-ints, np.array([-1, 2]))
        self.same(abs(ints), np.array([1, 2]))
        self.same(np.ones(2) + ints, np.array([2.0, -1.0]))
        self.same(ra.asarray([1j, 2]) * 2.0 + x[0], np.complex64([2j, 4]) + a[0])
        self.same(abs(ra.asarray([3 + 4j])), np.float32([5]))
        self.same(x + x.astype(ra.float64), a + a.astype("f8"))
        self.same(x + x[0], a + a[0])
        # attributes that are known beforehand are those of the result
        for got in (x + 1.0, x + x, ra.exp(x), -x, x * x[:, :1], x + x[0]):
            self.assertEqual((got.shape, got.dtype), ((3, 2), np.dtype("f4")))
        x.shape, x[0].shape
        self.assertEqual((x[0] + x).shape, (3, 2))

    def test_other_classes(self):
        x = ra.ones(2)
        self.assertEqual((x + Foreign(), x / Foreign(), Foreign() * x), (("radd", "Array"), "rtruediv", "mul"))
        for call in (lambda: x + "a", lambda: "a" + x, lambda: x * None, lambda: [] - x, lambda: x / {}):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(TypeError):
            ra.exp("a")
        with self.assertRaises(TypeError):
            ra.exp(x, x)
        self.assertEqual((x.__add__(1.0).tolist(), x.__rsub__(3.0).tolist(), x.__mul__("a"), x.__neg__().tolist()), ([2, 2], [2, 2], NotImplemented, [-1, -1]))

    def test_objects(self):
        x = ra.asarray([1.0, 2.0])
        there = weakref.ref(x)
        self.assertIs(there(), x)
        for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            self.same(other, x.numpy())
        with self.assertRaises(AttributeError):
            x.anything = 3
        with self.assertRaises(TypeError):
            hash(x)
        with self.assertRaises(TypeError):
            ra.Array()
        if ra._array.extension:
            for wrong in (2**70, "a"):
                with self.assertRaises((TypeError, OverflowError)):
                    x.pointer = wrong
        del x
        self.assertIsNone(there())

    def test_nothing_is_left(self):
        """Neither memory of the device nor references, of what succeeds and what fails."""
        x, y, big, number = ra.ones((4, 4)), ra.ones((3, 3)), ra.ones((2, 2), dtype=ra.float64), 1.23456
        x.shape, y.shape, x.dtype

        def once():
            z = ra.exp(x * number + x) / (x - number) * -abs(x)
            for call in (lambda: x + y, lambda: x * y, lambda: x + "a", lambda: ra.exp("a"), lambda: x + big):
                try:
                    call()
                except (TypeError, ValueError):
                    pass
            return z
        once()
        gc.collect()
        blocks, counts = live_blocks(), [sys.getrefcount(v) for v in (x, y, big, number, ra._core.F32, x._shape, ra.Array)]
        for _ in range(3000):
            once()
        gc.collect()
        self.assertEqual(live_blocks(), blocks)
        for before, after in zip(counts, [sys.getrefcount(v) for v in (x, y, big, number, ra._core.F32, x._shape, ra.Array)]):
            self.assertLess(abs(after - before), 10)
        kept = [x + 1.0 for _ in range(50)]
        self.assertEqual(live_blocks(), blocks + 50)
        del kept
        self.assertEqual(live_blocks(), blocks)

    def test_threads(self):
        failures = []

        def work(seed):
            a = np.random.default_rng(seed).standard_normal(33).astype("f4")
            try:
                for _ in range(200):
                    x = ra.asarray(a)
                    y = (x * 2.0 + x) - x / 2.0
                    np.testing.assert_allclose(y.numpy(), a * 2.5, rtol=1e-5, atol=1e-6)  # three roundings of float32
            except BaseException as error:
                failures.append(error)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])
        self.assertTrue(callable(MemoryManager().get_stats))


if __name__ == "__main__":
    unittest.main()
