"""Parts of rdna.arrays' arrays, taken and assigned to, against NumPy."""
import math
import unittest

import numpy as np
from arrays_tools import COMPLEX, TYPES, Case, any_shape, draw, normal, part_of, ra, rng


def any_slice(n):
    return slice(*(None if rng.integers(2) else int(rng.integers(-n - 1, n + 2)) for _ in range(2)), int(rng.choice([-2, -1, 1, 3])))


def any_key(shape):
    """A key of slices, integers, None, '...', with arrays of integers or a mask among them in two of three cases."""
    kinds, keys, dim = rng.integers(3), [], 0
    broadcast = any_shape(2, empty=False)
    while dim < len(shape):
        n, kind = shape[dim], rng.integers(8)
        if kind == 0 and len(keys) < 3:
            keys.append(None)
            continue
        if kind == 1 and Ellipsis not in [k for k in keys if k is Ellipsis]:
            keys.append(Ellipsis)
            break
        if kind < 4 and kinds == 1 and n:
            keys.append(rng.integers(-n, n, part_of(broadcast)).astype(rng.choice(["i1", "i4", "i8"])))
        elif kind < 4 and kinds == 2 and n and not any(isinstance(k, np.ndarray) for k in keys):
            width = int(rng.integers(1, len(shape) - dim + 1))
            keys.append(rng.integers(0, 2, shape[dim:dim + width]).astype(bool))
            dim += width
            continue
        elif kind < 6 and n:
            keys.append(int(rng.integers(-n, n)))
        else:
            keys.append(any_slice(n))
        dim += 1
    return tuple(keys)


def ours(key):
    return tuple(ra.asarray(k) if isinstance(k, np.ndarray) and rng.integers(2) else k for k in key)


class Indexing(Case):
    def test_taken(self):
        for _ in range(400):
            a = draw(rng.choice(TYPES + COMPLEX), any_shape())
            key = any_key(a.shape)
            self.same(ra.asarray(a)[ours(key)], a[key])

    def test_assigned(self):
        for _ in range(400):
            a = np.array(draw(rng.choice(TYPES + COMPLEX), any_shape()))
            x, key = ra.asarray(a), any_key(a.shape)
            view, other = x[..., ::-1] if a.ndim else x[...], a.copy()
            shape = a[key].shape
            if any(isinstance(k, np.ndarray) and k.dtype != bool and k.size > 1 for k in key) or rng.integers(3) == 0:
                value = draw(a.dtype, ())[()]  # several may go to one place
            else:
                value = draw(a.dtype, part_of(shape))
            a[key] = value
            x[ours(key)] = ra.asarray(value) if rng.integers(2) else value if isinstance(value, np.ndarray) else value.item()
            self.same(x, a)
            self.same(view, other[..., ::-1] if a.ndim else other)  # what was taken before stays

    def test_assigned_parts_of_itself(self):
        a = np.arange(12.0).reshape(3, 4)
        x = ra.asarray(a)
        x[1:], x[:, 0] = x[:-1], x[:, 3]
        a[1:], a[:, 0] = a[:-1].copy(), a[:, 3].copy()
        self.same(x, a)
        x[...] = ra.asarray([1, 2, 3, 4])
        self.same(x, np.broadcast_to(np.float64([1, 2, 3, 4]), (3, 4)))
        y = ra.broadcast_to(ra.asarray(np.float32(2)), (2, 3))
        y[0, 0] = 5
        self.same(y, np.float32([[5, 2, 2], [2, 2, 2]]))

    def test_of_repeated_places_the_last_stays(self):
        x = ra.zeros(4)
        x[[1, 1, 3]] = np.float32([5, 6, 7])
        self.same(x, np.float32([0, 6, 0, 7]))

    def test_masks_of_no_dimensions(self):
        for value in (True, False):
            a = np.float32([1, 2])
            mask = ra.asarray(value)
            self.same(ra.asarray(a)[mask], a[np.asarray(value)])
            self.same(ra.asarray(np.float32(3))[mask], np.float32(3)[np.asarray(value)])
            x = ra.asarray(a)
            x[mask] = 7
            a[np.asarray(value)] = 7
            self.same(x, a)

    def test_masks_of_no_places(self):
        for shape, mask in (((0, 1), (0, 0)), ((2, 3), (0, 3)), ((2, 3), (0,)), ((2, 3, 4), (2, 0))):
            a, mask = draw("f4", shape), np.zeros(mask, bool)
            self.same(ra.asarray(a)[ra.asarray(mask)], np.zeros((0, *shape[mask.ndim:]), "f4"))

    def test_take(self):
        for _ in range(100):
            a = draw(rng.choice(TYPES + COMPLEX), any_shape(empty=False) or (3,))
            axis = int(rng.integers(-a.ndim, a.ndim))
            n = a.shape[axis]
            indices = rng.integers(-n, n, rng.integers(0, 6))
            self.same(ra.take(ra.asarray(a), ra.asarray(indices), axis=axis), np.take(a, indices, axis=axis))
            along = list(a.shape)
            along[axis] = int(rng.integers(0, 5))
            indices = rng.integers(-n, n, along)
            self.same(ra.take_along_axis(ra.asarray(a), ra.asarray(indices), axis=axis), np.take_along_axis(a, indices, axis))
        self.same(ra.take(ra.asarray([4, 5, 6]), ra.asarray([2, 0])), [6, 4])

    def test_nonzero(self):
        for _ in range(60):
            a = draw(rng.choice(TYPES + COMPLEX), any_shape() or (2,))
            for got, want in zip(ra.nonzero(ra.asarray(a)), np.nonzero(a), strict=True):
                self.same(got, want)

    def test_refusals(self):
        x = ra.zeros((3, 4))
        for error, mentions, call in (
            (IndexError, "index 4 of dimension 1", lambda: x[0, 4]),
            (IndexError, "outside of an array of shape \\(3, 4\\)", lambda: x[[0, 3]]),
            (IndexError, "outside of an array of shape \\(3, 4\\)", lambda: x.__setitem__([0, 3], 7)),
            (IndexError, "outside of an array", lambda: ra.take(x, ra.asarray([-5]), axis=1)),
            (IndexError, "mask of shape \\(4,\\) at dimension 0", lambda: x[np.ones(4, bool)]),
            (IndexError, "integers, not float32", lambda: ra.take(x, ra.ones(2), axis=0)),
            (ValueError, "needs an axis", lambda: ra.take(x, ra.asarray([0]))),
            (ValueError, "no common shape", lambda: x[[0, 1], [0, 1, 2]]),
            (ValueError, "does not repeat", lambda: x.__setitem__(0, ra.zeros(3))),
            (TypeError, "is no value", lambda: x.__setitem__(0, "x")),
            (TypeError, "complex64 does not become float32", lambda: x.__setitem__(0, ra.asarray([1j]))),
            (ValueError, "no coordinates", lambda: ra.nonzero(x[0, 0])),
        ):
            with self.assertRaisesRegex(error, mentions):
                call()
        self.same(x, np.zeros((3, 4), "f4"))


class Assigned(Case):
    def test_from_itself(self):
        """What is read is what was there before, as NumPy has it."""
        for _ in range(60):
            n = int(rng.integers(1, 9))
            a = rng.permutation(n)
            for assign in (lambda v: v.__setitem__(slice(None, None, -1), v), lambda v: v.__setitem__(slice(1, None), v[:-1]),
                           lambda v: v.__setitem__(v, v[::-1]), lambda v: v.__setitem__(v, v), lambda v: v.__setitem__(v, 3),
                           lambda v: v.__setitem__(v[::-1], v), lambda v: v.__setitem__(Ellipsis, v), lambda v: v.__setitem__(v > 1, v[v > 1][::-1])):
                x, want = ra.asarray(a), a.copy()
                beside = x[...]
                assign(x)
                key = want.copy()
                assign(want)
                self.same(x, want)
                self.same(beside, key)
                self.same(x, x.numpy())
        x = ra.asarray(np.arange(6.0).reshape(2, 3))
        x[:, ::-1] = x
        self.same(x, np.arange(6.0).reshape(2, 3)[:, ::-1])

    def test_numbers_that_do_not_fit(self):
        """As NumPy assigns Python's numbers: without their fractions, and refused where the type has none such."""
        kinds = []
        for dtype in TYPES:
            for value in (300, -1, 2, 0, 127, 128, 255, 256, 2**31, 2**63 - 1, 2**63, -2**63, 10**30, 3.7, -0.5, 300.0, 1e30, math.nan, math.inf, True, 1j):
                want, expected = np.zeros(3, dtype), None
                if dtype.kind == "f" and isinstance(value, int) and value > 2**62:
                    with np.errstate(over="ignore"):
                        want[0] = float(value)
                elif dtype.kind == "b" and value != 1j:
                    want[0] = value != 0
                elif value == 1j:
                    expected = TypeError
                else:
                    try:
                        with np.errstate(over="ignore"):
                            want[0] = value
                    except (OverflowError, ValueError) as error:
                        expected = type(error)
                kinds.append(expected)
                for write in (lambda x: x.__setitem__(0, value), lambda x: x.__setitem__([0], value), lambda x: x.__setitem__(x.astype(ra.float64) > 9, value)
                              if expected else x.__setitem__(slice(0, 1), value), lambda x: ra.full((2,), value, dtype=dtype)):
                    x = ra.zeros(3, dtype=dtype)
                    if expected:
                        with self.assertRaises(expected, msg=f"{value} in {dtype}"):
                            write(x)
                        self.same(x, np.zeros(3, dtype))
                        continue
                    made = write(x)
                    self.same(made if made is not None else x, np.full(2, want[0]) if made is not None else want)
        self.assertEqual(set(kinds), {None, OverflowError, ValueError, TypeError})
        for value in (300, -129):
            with self.assertRaisesRegex(OverflowError, f"{value} is no value of type int8"):
                ra.full(2, value, dtype=ra.int8)

    def test_index_add(self):
        """NumPy's add.at, at once and in plans, with gradients by the values."""
        for dtype, scale in (("f2", 4), ("f4", 8), ("f8", 8)):
            for shape, axis, count in (((6, 4), 0, 9), ((3, 5, 2), 1, 7), ((5,), 0, 3), ((4, 3), -1, 0)):
                x, at = normal(dtype, shape), rng.integers(-shape[axis], shape[axis], count)
                v = normal(dtype, tuple(count if d == axis % len(shape) else n for d, n in enumerate(shape)))
                want = x.astype("f8")
                np.add.at(want, (slice(None),) * (axis % len(shape)) + (at,), v)
                add = lambda a, i, b: ra.index_add(a, i, b, axis=axis)
                given = [ra.asarray(a) for a in (x, at, v)]
                for call in (add, ra.compile(add)):
                    self.near(call(*given), want, dtype, scale)
                slope = ra.grad(lambda b: (add(given[0], given[1], b) ** 2).sum())(given[2])
                self.near(slope, 2 * np.take(want, at, axis=axis), dtype, 4 * scale)
                self.same(given[0], x)
        self.same(ra.index_add(ra.zeros((2, 3)), ra.asarray([1, 1]), ra.ones(())), [[0, 0, 0], [2, 2, 2]], "f4")
        with self.assertRaisesRegex(TypeError, "of real floats, not of int64"):
            ra.index_add(ra.asarray([1]), ra.asarray([0]), ra.asarray([1]))
        with self.assertRaisesRegex(IndexError, "outside of an array of shape"):
            ra.index_add(ra.ones(3), ra.asarray([3]), ra.ones(1))


if __name__ == "__main__":
    unittest.main()
