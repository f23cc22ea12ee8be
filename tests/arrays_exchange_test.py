"""rdna.arrays' memory shared with NumPy through DLPack, both ways."""
import ctypes
import gc
import unittest
import weakref

import numpy as np
from arrays_tools import COMPLEX, TYPES, Case, any_shape, draw, ra, rng


class Old:
    """A producer of before DLPack 1.0."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Owned(np.ndarray):
    """Can be asked whether it is still there."""


class Exchange(Case):
    def test_given(self):
        for _ in range(100):
            a = draw(rng.choice(TYPES + COMPLEX), any_shape())
            x = ra.asarray(a)
            if a.ndim:
                a, x = a[::-1].T, ra.permute_dims(x[::-1], tuple(reversed(range(a.ndim))))
            self.assertEqual(x.__dlpack_device__(), (1, 0))
            for copy in (None, True, False):
                got = np.from_dlpack(x, copy=copy)
                self.assertEqual((got.dtype, got.shape), (a.dtype, a.shape))
                self.assertTrue(got.flags.writeable == (copy is True) or not a.size)
                np.testing.assert_array_equal(got, a)

    def test_what_is_given_stays(self):
        x = ra.asarray([1.0, 2.0, 3.0])
        shared = np.from_dlpack(x)
        x[0] = 9
        del x
        gc.collect()
        np.testing.assert_array_equal(shared, [1, 2, 3])

    def test_taken(self):
        for _ in range(100):
            a = np.array(draw(rng.choice(TYPES + COMPLEX), any_shape(3)))
            a = a[..., ::2].T if a.ndim else a
            for given in (a, Old(a)):
                x = ra.from_dlpack(given)
                self.same(x, a)
                if a.size and a.dtype.kind in "if":
                    self.same(x + 1, a + a.dtype.type(1))
                if a.size:
                    x[...] = 0  # in memory of its own
                    self.assertEqual(x.size, ra.count_nonzero(x == 0).item())
                self.same(ra.from_dlpack(given, copy=True), a)

    def test_memory_is_shared_and_let_go(self):
        a = np.zeros(4).view(Owned)
        there = weakref.ref(a)
        x, copied = ra.from_dlpack(a), ra.from_dlpack(a, copy=True)
        a[1] = 5
        self.assertEqual((x.tolist(), copied.tolist()), ([0, 5, 0, 0], [0] * 4))
        view = x[1:]
        del a, x
        self.assertIsNotNone(there())
        self.assertEqual(view.tolist(), [5, 0, 0])
        del view
        self.assertIsNone(there())

    def test_capsules_that_nobody_takes(self):
        a = np.zeros(4).view(Owned)
        there = weakref.ref(a)
        x = ra.from_dlpack(a)
        for version in (None, (1, 0)):
            capsule = x.__dlpack__(max_version=version, copy=False)
            self.assertIn('"dltensor_versioned"' if version else '"dltensor"', repr(capsule))
            del capsule
        del a, x
        ra._exchange._let_go()  # where the extension was not built
        self.assertIsNone(there())

    def test_an_exception_on_its_way_stays(self):
        """NumPy refuses a device that it does not know, and lets the capsule go meanwhile: with the extension, and without it when the next is made."""
        python = ctypes.pythonapi
        python.PyCapsule_GetPointer.argtypes, python.PyCapsule_GetPointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p

        class OnCard:
            def __dlpack_device__(self):
                return 10, 0

            def __dlpack__(self, **_):
                capsule = x.__dlpack__(max_version=(1, 0), copy=False)
                at = python.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
                ctypes.c_int32.from_address(at + 40).value = 10  # the device's kind, ROCm, behind version, context, deleter, flags and data
                return capsule
        was = ra._exchange._destructor
        try:
            for destructor in {was, None}:
                ra._exchange._destructor = destructor
                a = np.zeros(4).view(Owned)
                there, x = weakref.ref(a), ra.from_dlpack(a)
                with self.assertRaisesRegex((RuntimeError, BufferError), "[Dd]evice"):
                    np.from_dlpack(OnCard())
                del a, x
                if not destructor:
                    self.assertEqual(len(ra._exchange._given), 1)
                    ra._exchange._let_go()
                    self.assertEqual(ra._exchange._given, [])
                self.assertIsNone(there())
        finally:
            ra._exchange._destructor = was

    def test_buffers(self):
        for dtype in TYPES + COMPLEX:
            a = draw(dtype, (2, 3))
            view = ra.asarray(a).__buffer__(0)  # what memoryview asks from Python 3.12 on
            self.assertEqual((view.shape, view.readonly, view.tobytes()), ((2, 3), True, a.tobytes()))

    def test_bfloat16(self):
        x = ra.asarray([1.5, -2.0, 3.0], dtype=ra.bfloat16)

        class Brain:
            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **_):
                return ra._exchange.to_dlpack(x, max_version=(1, 0))
        for copy in (None, True):
            made = ra.from_dlpack(Brain(), copy=copy)
            self.assertEqual((made.dtype, made.tolist()), (ra.bfloat16, [1.5, -2.0, 3.0]))

    def test_refusals(self):
        class Twice(Old):
            def __dlpack__(self, stream=None):
                return self.values

            def __dlpack_device__(self):
                return 1, 0

        class Elsewhere(Old):
            def __dlpack_device__(self):
                return 8, 0
        capsule = np.zeros(2).__dlpack__()
        self.same(ra.from_dlpack(Twice(capsule)), np.zeros(2))
        for error, mentions, call in (
            (BufferError, "somebody has taken it", lambda: ra.from_dlpack(Twice(capsule))),
            (BufferError, "no DLPack tensor", lambda: ra.from_dlpack(Twice(3))),
            (BufferError, "\\(8, 0\\), which is none of", lambda: ra.from_dlpack(Elsewhere(np.zeros(2)))),
            (BufferError, "not on \\(2, 0\\)", lambda: ra.ones(2).__dlpack__(dl_device=(2, 0))),
            (TypeError, "not of list", lambda: ra.from_dlpack([1])),
        ):
            with self.assertRaisesRegex(error, mentions):
                call()


if __name__ == "__main__":
    unittest.main()
