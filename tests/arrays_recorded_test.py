"""Operations on values, computed at once, in a plan, and by NumPy in the widest type: all of them, over numbers of all magnitudes, infinities, NaN
and zeros of both signs, and over integers."""
import math
import unittest

import numpy as np
from arrays_tools import Case, ra, rng

from rdna.arrays import nn

FLOATS = [np.dtype(t) for t in ("float16", "float32", "float64")]
WHOLE = [np.dtype(t) for t in ("bool", "uint8", "int8", "int16", "int32", "int64")]
ODD = [math.inf, -math.inf, math.nan, 0.0, -0.0]


def places(dtype):
    """Where functions of one number change what they do."""
    magnitudes = [1e-9, 1e-30, 0.3, 0.5, 0.999, 1.0, 2.5, 3.0, 9.0, 11.0, 17.0, 22.5, 40.0, 88.5, 89.2, 709.5, 710.2, 1e9, 1e30, 1e200]
    numbers = np.array([*np.linspace(-40, 40, 33), *magnitudes, *[-x for x in magnitudes], *ODD])
    with np.errstate(over="ignore"):
        return numbers.astype(dtype)


def each(function):
    """|function| of a float, over an array; what it cannot do is NaN."""
    def one(x):
        try:
            return function(float(x))
        except (ValueError, OverflowError):
            return math.nan
    return lambda values: np.array([one(x) for x in values.ravel()]).reshape(values.shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def tail(x):
    """The part of the normal distribution that is below x."""
    return each(lambda v: math.erfc(-v / math.sqrt(2)) / 2)(x)


def gelu_tanh(x):
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))


# What NumPy has not, or not of that name. x is of the widest type.
ONE = {"rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "erf": each(math.erf), "sigmoid": sigmoid,
       "relu": lambda x: np.where(x <= 0, 0, x), "silu": lambda x: x * sigmoid(x), "gelu": lambda x: x * tail(x), "round": np.rint,
       "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "acosh": np.arccosh, "asinh": np.arcsinh, "atanh": np.arctanh,
       "positive": lambda x: x, "real": lambda x: x, "conj": lambda x: x, "imag": np.zeros_like, "gelu_tanh": gelu_tanh}
TWO = {"pow": np.power, "atan2": np.arctan2, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift}
NAMES = [name for name in ra._pointwise.__all__ if name not in ("clip", "where", "nextafter")]
WHOLE_ONLY = {"bitwise_invert", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"}
PAIRS = {"add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum", "atan2", "hypot", "logaddexp",
         "copysign", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor"} | (
             WHOLE_ONLY - {"bitwise_invert"})


def whole_quotient(a, b):
    """NumPy's, but of infinities as the array API has it."""
    quotient = np.floor_divide(a, b)
    return np.where(np.isinf(a) | np.isinf(b), a / b, quotient) if quotient.dtype.kind == "f" else quotient


class Recorded(Case):
    def alike(self, name, function, arrays, want, ulps=8, least=0.0):
        """function at once and in a plan: |want| within |ulps| epsilons, or within |least| beside it; NaN and zeros' signs too."""
        given = [ra.asarray(a) for a in arrays]
        at_once, planned = function(*given), ra.compile(function)(*given)
        self.assertEqual((planned.dtype, planned.shape), (at_once.dtype, at_once.shape), name)
        kinds = {"at once": at_once.numpy(), "in a plan": planned.numpy()}
        for how, got in kinds.items():
            with np.errstate(over="ignore", invalid="ignore"):
                wanted = np.asarray(want).astype(got.dtype)
            if got.dtype.kind != "f":
                np.testing.assert_array_equal(got, wanted, f"{name} of {arrays[0].dtype} {how}")
                continue
            of = np.finfo(got.dtype)
            with np.errstate(all="ignore"):
                close = np.abs(got - wanted) <= ulps * of.eps * np.abs(wanted) + max(float(of.smallest_normal), least)
            # what is rounded to infinity by one may be the largest number by the other
            edge = (np.sign(got) == np.sign(wanted)) & (np.abs(got) > of.max * (1 - 2 * ulps * of.eps)) & (np.abs(wanted) > of.max * (1 - 2 * ulps * of.eps))
            good = (got == wanted) | (np.isnan(got) & np.isnan(wanted)) | (close & np.isfinite(wanted)) | edge
            self.report(name, how, arrays, got, wanted, good)
        got, other = kinds.values()
        if got.dtype.kind == "f":
            zero = (got == 0) & (other == 0)
            self.report(name, "in a plan, as at once,", arrays, other, got, ~zero | (np.signbit(got) == np.signbit(other)))

    def report(self, name, how, arrays, got, want, good):
        if not good.all():
            at = np.argwhere(~good)[0]
            at = tuple(at)
            given = [np.broadcast_to(a, got.shape)[at] for a in arrays]
            self.fail(f"{name} of {arrays[0].dtype} {how}: of {given} it is {got[at]!r}, not {want[at]!r}; {(~good).sum()} such")

    def test_names(self):
        """Every operation is among those that are compared."""
        self.assertEqual(PAIRS - set(NAMES), set())
        self.assertGreater(len(NAMES), 60)

    def test_functions_of_one(self):
        for name in NAMES:
            if name in PAIRS or name in WHOLE_ONLY:
                continue
            reference = ONE.get(name) or getattr(np, name)
            for dtype in FLOATS:
                x = places(dtype)
                with np.errstate(all="ignore"):
                    want = reference(x.astype(np.longdouble))
                # far below 0 the tail is what 1 + erf leaves of an epsilon, times x
                self.alike(name, getattr(ra, name), [x], want, least=20 * float(np.finfo(dtype).eps) if name == "gelu" else 0.0)
        for dtype in FLOATS:
            x = places(dtype)
            with np.errstate(all="ignore"):
                self.alike("gelu by tanh", lambda v: ra.gelu(v, approximate=True), [x], gelu_tanh(x.astype(np.longdouble)),
                           least=20 * float(np.finfo(dtype).eps))

    def test_functions_of_one_of_integers(self):
        for name in NAMES:
            if name in PAIRS:
                continue
            reference = ONE.get(name) or getattr(np, name)
            for dtype in WHOLE:
                x = np.array([0, 1, 2, 3, 100] if dtype.kind != "b" else [0, 1]).astype(dtype)
                x = np.concatenate([x, -x]) if dtype.kind == "i" else x
                if dtype.kind == "b" and name in ("negative", "positive", "square", "sign", "reciprocal", "ceil", "floor", "round", "trunc"):
                    continue  # of bool NumPy refuses these, or has other types
                kept = getattr(ra, name)(ra.asarray(x)).dtype.kind in "biu"
                with np.errstate(all="ignore"):
                    want = reference(x if kept else x.astype(np.longdouble))
                self.alike(name, getattr(ra, name), [x], want)

    def test_functions_of_two(self):
        for name in PAIRS - WHOLE_ONLY:
            reference = whole_quotient if name == "floor_divide" else TWO.get(name) or getattr(np, name)
            for dtype in FLOATS:
                x = places(dtype)
                a, b = x[:, None], np.concatenate([x[::3], x[-5:]])
                wide = np.float64 if name in ("floor_divide", "remainder", "fmod") and dtype != np.float64 else dtype if name in (
                    "floor_divide", "remainder", "fmod") else np.longdouble
                with np.errstate(all="ignore"):
                    want = reference(a.astype(wide), b.astype(wide))
                # where exponentials cancel only what is near to 1 is exact
                self.alike(name, getattr(ra, name), [a, b], want, least=8 * float(np.finfo(dtype).eps) if name == "logaddexp" else 0.0)

    def test_functions_of_two_of_integers(self):
        for name in PAIRS:
            reference = TWO.get(name) or getattr(np, name)
            for dtype in WHOLE[1:]:
                top = np.iinfo(dtype).max
                a = np.array([0, 1, 2, 7, 100, top], dtype)[:, None]
                b = np.array([1, 2, 3, 5], dtype)
                if dtype.kind == "i" and name not in WHOLE_ONLY and name != "pow":
                    a, b = np.concatenate([a, -a]), np.concatenate([b, -b])
                kept = getattr(ra, name)(ra.asarray(a), ra.asarray(b)).dtype.kind in "biu"
                with np.errstate(all="ignore"):
                    want = reference(a, b) if kept else reference(a.astype(np.longdouble), b.astype(np.longdouble))
                self.alike(name, getattr(ra, name), [a, b], want)

    def test_numbers_beside_arrays(self):
        """Python's numbers, on either side, are what arrays of them would be."""
        for name in ("add", "subtract", "multiply", "divide", "pow", "maximum", "atan2", "hypot", "logaddexp", "less", "copysign", "remainder"):
            function = getattr(ra, name)
            for dtype in FLOATS[1:]:
                x = places(dtype)
                for number in (0.0, -0.0, 2.0, -3.0, math.inf, math.nan):
                    full = np.full(1, number, dtype)
                    self.alike(name, lambda v: function(v, number), [x], function(ra.asarray(x), ra.asarray(full)).numpy())
                    self.alike(name, lambda v: function(number, v), [x], function(ra.asarray(full), ra.asarray(x)).numpy())

    def test_layers_of_values(self):
        soft = lambda x: np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))
        for dtype in FLOATS[1:]:
            x = places(dtype)
            wide = x.astype(np.longdouble)
            with np.errstate(all="ignore"):
                for name, function, want in (
                        ("leaky_relu", lambda v: nn.leaky_relu(v, 0.2), np.where(wide > 0, wide, wide * dtype.type(0.2))),
                        ("elu", nn.elu, np.where(wide > 0, wide, np.expm1(wide))), ("softplus", nn.softplus, soft(wide)),
                        ("mish", nn.mish, wide * np.tanh(soft(wide))), ("hardsigmoid", nn.hardsigmoid, np.clip(wide + 3, 0, 6) / 6),
                        ("hardswish", nn.hardswish, wide * (np.clip(wide + 3, 0, 6) / 6)), ("clip", lambda v: ra.clip(v, -1.5, 2.0), np.clip(wide, -1.5, 2)),
                        ("where", lambda v: ra.where(v > 1, v, -v), np.where(wide > 1, wide, -wide))):
                    self.alike(name, function, [x], want)

    def test_next_numbers(self):
        for dtype in ("float16", "float32", "float64"):
            a, b = (rng.normal(size=(5, 3)).astype(dtype) for _ in range(2))
            a[0], b[1] = 0, a[1]
            self.same(ra.compile(ra.nextafter)(ra.asarray(a), ra.asarray(b[:, :1])), np.nextafter(a, b[:, :1]))
        with self.assertRaisesRegex(TypeError, "nextafter has no gradient"):
            ra.grad(lambda x: ra.nextafter(x, 1.0).sum())(ra.asarray([0.5]))


if __name__ == "__main__":
    unittest.main()
