"""rdna.arrays against NumPy: making, the operators, views, reductions, products, and what is refused."""
import copy
import os
import pickle
import subprocess
import sys
import unittest

import numpy as np
from arrays_tools import NARROW, ROOT, TYPES, Case, any_shape, draw, part_of, ra, rng


class Arrays(Case):
    def test_there_and_back(self):
        for dtype in TYPES:
            for shape in [(), (0,), (3,), (2, 0, 4), (2, 3, 4)]:
                a = draw(dtype, shape)
                for given in (a, np.array(a, order="F"), a[..., ::-1] if a.ndim else a):
                    x = ra.asarray(given)
                    self.same(x, given)
                    np.testing.assert_array_equal(np.asarray(x), given)
                    self.assertEqual((x.ndim, x.size, x.nbytes, x.tolist()), (a.ndim, a.size, a.nbytes, given.tolist()))
        self.assertEqual([ra.asarray(v).dtype.name for v in (1, 1.5, True, [1, 2.5], np.float64(2))],
                         ["int64", "float32", "bool", "float32", "float64"])

    def test_files_copies_and_text(self):
        for dtype in TYPES:
            a = draw(dtype, (2, 3))
            x = ra.asarray(a)
            for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x[:, ::-1])[:, ::-1]):
                self.same(made, a)
        x = ra.asarray([1.25, 2.0])
        self.assertEqual((f"{x[0]:.3f}", f"{x}", str(x), repr(x)), ("1.250", "[1.25 2.  ]", "[1.25 2.  ]", "Array([1.25, 2.  ], dtype=float32)"))

    def test_making(self):
        for shape in [(), 3, (2, 3)]:
            for value in (True, 3, 2.5):
                self.same(ra.full(shape, value), np.full(shape, value, "f4" if isinstance(value, float) else None))
            self.same(ra.zeros(shape), np.zeros(shape, "f4"))
            self.same(ra.ones(shape, dtype=np.int8), np.ones(shape, "i1"))
        for arguments in [(5,), (2, 9, 3), (9, 2, -2), (3, 3), (0, -4)]:
            self.same(ra.arange(*arguments), np.arange(*arguments))
        for dtype in TYPES:
            self.same(ra.asarray([1, 0], dtype=dtype), np.asarray([1, 0], dtype))
        for k in (-2**64, -3, 0, 2, 2**64):
            self.same(ra.eye(2, 3, k=k), np.eye(2, 3, int(np.clip(k, -9, 9)), dtype="f4"))
            self.same(ra.tril(ra.ones((2, 3)), k=k), np.tril(np.ones((2, 3), "f4"), int(np.clip(k, -9, 9))))
        self.same(ra.arange(0.0, 1.0, 0.25), np.arange(0, 1, 0.25, dtype="f4"))

    def test_operators(self):
        operations = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a < b, lambda a, b: a == b, lambda a, b: a >= b]
        whole = [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b]
        for _ in range(300):
            shape = any_shape()
            ta, tb = rng.choice(TYPES, 2)
            a, b = draw(ta, part_of(shape)), draw(tb, part_of(shape))
            table = operations + (whole if np.result_type(ta, tb).kind != "f" else [])
            op = table[rng.integers(len(table))]
            if ta.kind == tb.kind == "b" and op is operations[1]:
                continue  # which NumPy has not
            want = op(a, b)
            self.same(op(ra.asarray(a), ra.asarray(b)), want)
            if rng.integers(2):
                self.same(op(ra.asarray(a), b), want)
                self.same(op(a, ra.asarray(b)), want)

    def test_quotients(self):
        for _ in range(100):
            ta, tb = rng.choice(TYPES, 2)
            shape = any_shape()
            a, b = draw(ta, shape), draw(tb, part_of(shape))
            b = np.where(b == 0, np.ones_like(b), b)
            joined = np.result_type(ta, tb)
            dtype = joined if joined.kind == "f" else np.dtype("f4") if joined in NARROW else np.dtype("f8")
            self.same(ra.asarray(a) / ra.asarray(b), a.astype(dtype) / b.astype(dtype), ulps=1)
            if joined.kind in "iu" or joined == np.float64:
                self.same(ra.asarray(a) // ra.asarray(b), a // b)
                self.same(ra.asarray(a) % ra.asarray(b), a % b)

    def test_numbers_take_the_array_s_type(self):
        for dtype in TYPES:
            a = draw(dtype, (2, 3))
            for value in (True, 2, 0.5):
                want = a + np.asarray(value) if dtype.kind == "b" and value is True else a + value
                self.same(ra.asarray(a) + value, want)
                self.same(value * ra.asarray(a), value * a)
                self.same(ra.asarray(a) < value, a < value)
        with self.assertRaisesRegex(OverflowError, "300 is no value of type int8"):
            ra.asarray(np.ones(3, "i1")) + 300

    def test_functions_of_one_array(self):
        names = {"exp": np.exp, "log1p": np.log1p, "sin": np.sin, "tanh": np.tanh, "sqrt": np.sqrt, "expm1": np.expm1, "log2": np.log2}
        for name, function in names.items():
            for dtype in TYPES:
                a = np.abs(draw(dtype, (3, 4)).astype("f8"))
                a = a.astype(dtype)
                kind = dtype if dtype.kind == "f" else np.dtype("f4") if dtype in NARROW else np.dtype("f8")
                with np.errstate(divide="ignore"):
                    want = function(a.astype("f8"))
                self.same(getattr(ra, name)(ra.asarray(a)), want, kind, ulps=4)
        for dtype in TYPES[1:]:
            a = draw(dtype, (4, 5))
            x = ra.asarray(a)
            for got, want in ((ra.square(x), a * a), (-x, -a), (abs(x), abs(a)), (ra.sign(x), np.sign(a)), (ra.floor(x), np.floor(a)),
                              (ra.round(x), np.round(a)), (ra.isnan(x), np.isnan(a)), (ra.logical_not(x), ~a.astype(bool)),
                              (ra.relu(x), np.maximum(a, 0)), (ra.maximum(x, 1), np.maximum(a, 1))):
                self.same(got, want, want.dtype if want.dtype.kind == "b" else dtype)
        x = np.linspace(-4, 4, 33, dtype="f4")
        from math import erf
        self.same(ra.gelu(ra.asarray(x)), [v / 2 * (1 + erf(v / 2 ** 0.5)) for v in x.astype(float)], "f4", ulps=64)

    def test_views(self):
        for _ in range(300):
            a = draw(TYPES[rng.integers(len(TYPES))], any_shape())
            x = ra.asarray(a)
            for _ in range(5):
                kind = rng.integers(5)
                if kind == 0:
                    axes = tuple(int(i) for i in rng.permutation(a.ndim))
                    a, x = a.transpose(axes), ra.permute_dims(x, axes)
                elif kind == 1:
                    key = tuple(self.any_index(n) for n in a.shape[:rng.integers(0, a.ndim + 1)])
                    key = key + (Ellipsis,) if rng.integers(2) else key
                    key = (None,) + key if rng.integers(4) == 0 and a.ndim < 5 else key
                    a, x = a[key], x[key]
                elif kind == 2:
                    shape = (-1,) if rng.integers(2) and a.size else (*reversed(a.shape),)
                    a, x = a.reshape(shape), x.reshape(shape)
                elif kind == 3 and a.ndim < 5:
                    axis = int(rng.integers(-a.ndim - 1, a.ndim + 1))
                    a, x = np.expand_dims(a, axis), ra.expand_dims(x, axis=axis)
                elif kind == 4 and a.size < 200 and a.ndim < 5:
                    shape = (2, *a.shape)
                    a, x = np.broadcast_to(a, shape), ra.broadcast_to(x, shape)
                self.same(x, a)
        m = ra.asarray(np.arange(6.0).reshape(2, 3))
        self.same(m.T, np.arange(6.0).reshape(2, 3).T)
        self.assertEqual([row.tolist() for row in m], [[0, 1, 2], [3, 4, 5]])

    def any_index(self, n):
        if n and rng.integers(2):
            return int(rng.integers(-n, n))
        return slice(*(None if rng.integers(2) else int(rng.integers(-n - 1, n + 2)) for _ in range(2)), int(rng.choice([-2, -1, 1, 3])))

    def test_reductions(self):
        for _ in range(300):
            a = draw(TYPES[rng.integers(len(TYPES))], tuple(max(1, n) for n in any_shape()))
            x, keep = ra.asarray(a), bool(rng.integers(2))
            axes = [None, *range(-a.ndim, a.ndim)]
            axis = axes[rng.integers(len(axes))] if rng.integers(2) else tuple(int(i) for i in rng.permutation(a.ndim)[:rng.integers(0, a.ndim + 1)])
            whole = "i8" if a.dtype.kind in "bi" else "u8" if a.dtype.kind == "u" else a.dtype
            mean = a.dtype if a.dtype.kind == "f" else "f4" if a.dtype in NARROW else "f8"
            exact = a.astype("f8")
            for name, want, dtype, ulps in (
                ("sum", exact.sum(axis, keepdims=keep), whole, 1), ("max", exact.max(axis, keepdims=keep), a.dtype, 0),
                ("min", exact.min(axis, keepdims=keep), a.dtype, 0), ("any", a.any(axis, keepdims=keep), "?", 0),
                ("all", a.all(axis, keepdims=keep), "?", 0), ("mean", exact.mean(axis, keepdims=keep), mean, 4),
                ("std", exact.std(axis, keepdims=keep), mean, 16)):
                self.same(getattr(ra, name)(x, axis=axis, keepdims=keep), want, dtype, ulps)
                self.same(getattr(x, name)(axis, keepdims=keep), want, dtype, ulps)
            if axis is None or isinstance(axis, int):
                self.same(ra.argmax(x, axis=axis), a.argmax(axis))
                self.same(ra.argmin(x, axis=axis), a.argmin(axis))

    def test_products(self):
        for _ in range(150):
            batch = any_shape(2)
            m, k, n = rng.integers(1, 6, 3)
            a = draw(np.dtype(rng.choice(["f4", "f8", "f2", "i1"])), (*part_of(batch), m, k) if rng.integers(5) else (k,))
            b = draw(np.dtype(rng.choice(["f4", "f8", "f2"])), (*part_of(batch), k, n) if rng.integers(5) else (k,))
            want = np.matmul(a.astype("f8"), b.astype("f8"))
            got = ra.asarray(a) @ ra.asarray(b)
            # matrix units of gfx11 round what they sum (DOT2, as measured on a W7900)
            self.same(got, want, np.result_type(a, b), ulps=2, atol=k * 2.0**-23 * float(np.matmul(abs(a.astype("f8")), abs(b.astype("f8"))).max(initial=0)))

    def test_where(self):
        for _ in range(60):
            shape = any_shape()
            c, a, b = draw(TYPES[0], part_of(shape)), draw(rng.choice(TYPES), part_of(shape)), draw(rng.choice(TYPES), part_of(shape))
            self.same(ra.where(ra.asarray(c), ra.asarray(a), ra.asarray(b)), np.where(c, a, b))
        self.same(ra.where(ra.asarray([True, False]), ra.asarray([1.0, 2.0]), 0), np.float32([1, 0]))

    def test_refusals(self):
        a = ra.zeros((3, 4))
        for error, mentions, call in (
            (ValueError, "f32 \\(3, 4\\) and f32 \\(2, 4\\)", lambda: a + ra.zeros((2, 4))),
            (ValueError, "must be equal", lambda: a @ a),
            (ValueError, "do not fill", lambda: a.reshape(5, -1)),
            (IndexError, "index 3 of dimension 0", lambda: a[3]),
            (IndexError, "3 indices", lambda: a[0, 0, 0]),
            (IndexError, "one '...'", lambda: a[..., ...]),
            (IndexError, "not by arrays of float32", lambda: a[a]),
            (IndexError, "not by str", lambda: a["x"]),
            (TypeError, "for integers and bool", lambda: ~a),
            (TypeError, "complex256", lambda: ra.asarray(np.clongdouble(1))),
            (OverflowError, "-1 is no value of type uint64", lambda: ra.asarray(np.uint64(1)) + -1),
            (OverflowError, "18446744073709551616 is no value of type uint64", lambda: ra.full(2, 2**64, dtype=ra.uint64)),
            (TypeError, "is no operand", lambda: ra.where(a > 0, a, "x")),
            (ValueError, "no single one", lambda: float(a)),
            (ValueError, "axis 2 of an array of 2", lambda: ra.sum(a, axis=2)),
            (ValueError, "named twice", lambda: ra.sum(a, axis=(0, -2))),
            (ValueError, "of matrices", lambda: ra.zeros(3).T),
            (TypeError, "unsupported operand", lambda: a + "x"),
            (OverflowError, "9223372036854775808 is no value of type int64", lambda: ra.full(2, 2**63)),
        ):
            with self.assertRaisesRegex(error, mentions):
                call()
        with self.assertRaises(TypeError):
            hash(a)
        self.same(a, np.zeros((3, 4), "f4"))

    def test_page(self):
        """The page's Python runs as it stands."""
        made = []
        for block in (ROOT / "docs/arrays.md").read_text().split("```python\n")[1:]:
            made.append({})
            exec(block.split("```")[0], made[-1])
        np.testing.assert_allclose(made[0]["y"].numpy(), np.exp([[1, 2], [3, 4]]) @ np.array([[1, 2], [3, 4]]).T + 1, rtol=1e-5)
        self.assertAlmostEqual(float(made[1]["value"]), np.log(3), 5)  # of logits that are all alike
        self.assertLess(float(made[2]["value"]), 0.1)

    def test_light(self):
        """Importing takes no framework, and less than NumPy does."""
        code = "import sys, time; a = time.process_time(); import numpy; b = time.process_time(); import rdna.arrays; " \
               "assert not {'torch', 'tensorflow'} & set(sys.modules); print((time.process_time() - b) / (b - a))"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python")}
        ratios = [float(subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout) for _ in range(3)]
        self.assertLess(min(ratios), 1)


if __name__ == "__main__":
    unittest.main()
