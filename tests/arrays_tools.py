"""What the suites of rdna.arrays share: the module under test, random arrays, and the comparison with NumPy's. They run in the Python that
runs the tests, which needs nothing but NumPy."""
import ctypes
import os
import pathlib
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("RDNA_DRIVER", "host")
sys.path.insert(0, str(ROOT / "bindings/python"))
import rdna_program  # makes tools/ importable

os.environ.setdefault("RDNA_LIBRARY", str(pathlib.Path(rdna_program.PROGRAM).parent.parent / "lib/librdna.so"))
import rdna.arrays as ra
from rdna import _types
from rdna.arrays import _core

TYPES = [np.dtype(t) for t in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64")]
COMPLEX = [np.dtype("complex64"), np.dtype("complex128")]
NARROW = {np.dtype(t) for t in ("bool", "uint8", "uint16", "int8", "int16")}
rng = np.random.default_rng(7)


def draw(dtype, shape):
    """Small whole numbers, which every type holds, and of floats halves."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (draw(np.float64, shape) + 1j * draw(np.float64, shape)).astype(dtype)
    low = 0 if dtype.kind in "bu" else -9
    values = rng.integers(low, 2 if dtype.kind == "b" else 10, shape)
    return np.asarray(values / 2 if dtype.kind == "f" else values).astype(dtype)


def any_shape(most=4, empty=True):
    sizes = rng.choice([0, 1, 2, 3, 4, 5], rng.integers(0, most + 1), p=[0.03, 0.22, 0.2, 0.2, 0.2, 0.15])
    return tuple(int(n) for n in (sizes if empty else np.maximum(sizes, 1)))


def part_of(shape):
    own = shape[rng.integers(0, len(shape) + 1):]
    return tuple(n if rng.integers(3) else 1 for n in own)


def normal(dtype, shape):
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def wide(a):
    return a.astype("c16" if a.dtype.kind == "c" else "f8")


def emulated_card(case, cards="gfx1100"):
    """The environment of emulated cards, with the emulator's checker on. Skips |case| where this build has none."""
    built = pathlib.Path(rdna_program.PROGRAM).parent.parent
    emulator = pathlib.Path(os.environ.get("RDNA_HIP_LIBRARY", built / "emulator/librdna_emulator.so"))
    kernels = pathlib.Path(os.environ.get("RDNA_KERNEL_PATH", built / "kernels"))
    if not emulator.exists() or not list(kernels.glob("*gfx1100*")):
        case.skipTest(f"needs {emulator} and kernels for gfx1100 in {kernels}: cmake --build build/release")
    return {"RDNA_DRIVER": "hip", "RDNA_EMULATE": cards, "RDNA_EMULATE_CHECK": "1", "RDNA_HIP_LIBRARY": str(emulator), "RDNA_KERNEL_PATH": str(kernels)}


def launches(call):
    """The names of what |call| queues the second time, in its order."""
    call()
    device, records, count = _core.library.rdna_stream_device(_core.stream()), ctypes.POINTER(_types.rdna_profile_record)(), ctypes.c_size_t()
    _core.check(_core.library.rdna_profile_start(device))
    kept = call()  # noqa: F841  what it made may go when all is counted
    _core.check(_core.library.rdna_profile_stop(device, ctypes.byref(records), ctypes.byref(count)))
    names = [records[i].name.decode() for i in range(count.value)]
    ctypes.CDLL(None).free(records)
    return names


class Case(unittest.TestCase):
    def same(self, got, want, dtype=None, ulps=0, atol=1e-300):
        want = np.asarray(want)
        self.assertEqual((got.shape, got.dtype), (want.shape, np.dtype(dtype or want.dtype)))
        values = got.numpy()
        self.assertEqual((values.shape, values.dtype), (got.shape, got.dtype))
        if got.dtype.kind in "fc" and ulps:
            wide = complex if got.dtype.kind == "c" else float
            np.testing.assert_allclose(values.astype(wide), want.astype(wide), rtol=ulps * np.finfo(got.dtype).eps, atol=atol)
        else:
            np.testing.assert_array_equal(values, want.astype(got.dtype))

    def near(self, got, want, dtype, scale=64):
        """Within |scale| epsilons of the larger of 1 and the largest value."""
        want = np.asarray(want)
        self.assertEqual((got.shape, got.dtype), (want.shape, np.dtype(dtype)))
        if want.size:
            np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=scale * np.finfo(dtype).eps * max(1, np.abs(want).max()))
