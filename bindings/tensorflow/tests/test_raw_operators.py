"""Kernels of operators that TensorFlow's functions do not make any more, or only in graphs, by their own names."""

import beside_cpu
import numpy as np
import pytest
import tensorflow as tf

R = tf.raw_ops
rng = np.random.default_rng(11)
INTEGERS = [np.int64, np.int16, np.int8]


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


FLOATS = {
    "Add": (lambda x, y: R.Add(x=x, y=y), [normal(3, 5), normal(5)]),
    "BatchMatMul": (lambda x, y: R.BatchMatMul(x=x, y=y, adj_y=True), [normal(2, 3, 4), normal(2, 5, 4)]),
    "BesselI0": (lambda x: R.BesselI0(x=x), [normal(3, 7) * 4]),
    "BesselI1": (lambda x: R.BesselI1(x=x), [normal(3, 7) * 4]),
    "BiasAddV1": (lambda x, b: R.BiasAddV1(value=x, bias=b), [normal(4, 3), normal(3)]),
    "ClipByValue": (lambda x: R.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.7), [normal(5, 3)]),
    "Concat": (lambda x, y: R.Concat(concat_dim=1, values=[x, y, x]), [normal(3, 2), normal(3, 4)]),
    "ConjugateTranspose": (lambda x: R.ConjugateTranspose(x=x, perm=[2, 0, 1]), [normal(3, 4, 5)]),
    "Div": (lambda x, y: R.Div(x=x, y=y), [normal(3, 5), np.abs(normal(5)) + 1]),
    "Gather": (lambda x: R.Gather(params=x, indices=[[2, 0], [2, 1]]), [normal(3, 4)]),
    "Inv": (lambda x: R.Inv(x=x), [np.abs(normal(3, 5)) + 1]),
    "InvGrad": (lambda y, dy: R.InvGrad(y=y, dy=dy), [normal(3, 5), normal(3, 5)]),
    "Mod": (lambda x, y: R.Mod(x=x, y=y), [normal(3, 5), np.abs(normal(5)) + 1]),
    "SoftplusGrad": (lambda dy, x: R.SoftplusGrad(gradients=dy, features=x), [normal(3, 5), normal(3, 5) * 9]),
    "TruncateMod": (lambda x, y: R.TruncateMod(x=x, y=y), [normal(3, 5), np.abs(normal(5)) + 1]),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name):
    function, inputs = FLOATS[name]
    beside_cpu.compare(function, inputs, gradients=False, scale=64)


@pytest.mark.parametrize("name", ["Div", "TruncateMod", "Mod", "LeftShift", "RightShift"])
def test_integers(name):
    x, y = np.array([-7, 7, -8, 100, 1]), np.array([2, 3, 1, 4, 6])
    for dtype in INTEGERS[:1] if "Mod" in name else INTEGERS:
        function = lambda a, b: getattr(R, name)(x=a, y=b)  # noqa: E731
        beside_cpu.compare(function, [x.astype(dtype), y.astype(dtype)], gradients=False)


def test_invert_and_clip():
    for dtype in INTEGERS:
        x = np.array([-7, 7, 0], dtype)
        beside_cpu.compare(lambda a: R.Invert(x=a), [x], gradients=False)
        beside_cpu.compare(lambda a: R.ClipByValue(t=a, clip_value_min=dtype(-2), clip_value_max=dtype(3)), [x], gradients=False)


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Min", "Max", "Update"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8], ids=str)
def test_rows_of_variables(name, dtype):
    def function(start, updates):
        v = tf.Variable(start)
        getattr(R, "ResourceScatter" + name)(resource=v.handle, indices=tf.constant(rows), updates=updates)
        return v.read_value()

    rows = [2, 0, 3] if name == "Update" else [2, 0, 2]
    start = rng.integers(1, 9, (5, 3)).astype(dtype)
    for updates in (rng.integers(1, 9, (3, 3)).astype(dtype), np.array(2, dtype)):
        beside_cpu.compare(function, [start, updates], gradients=False)


def test_a_destroyed_variable_has_no_value():
    with tf.device("/device:RDNA:0"):
        v = tf.Variable([1.0, 2.0])
        R.DestroyResourceOp(resource=v.handle)
        with pytest.raises(tf.errors.FailedPreconditionError, match="deleted"):
            v.read_value()


def test_random_numbers_with_a_state():
    with tf.device("/device:RDNA:0"):
        a = R.RandomUniform(shape=[20000], dtype=tf.float32, seed=3).numpy()
        assert a.min() >= 0 and a.max() < 1 and abs(a.mean() - 0.5) < 0.01 and abs(a.var() - 1 / 12) < 0.005
        t = R.TruncatedNormal(shape=[20000], dtype=tf.float32, seed=3).numpy()
        assert np.abs(t).max() <= 2 and abs(t.mean()) < 0.03 and abs(t.std() - 0.8796) < 0.02
        i = R.RandomUniformInt(shape=[20000], minval=tf.constant(-3, tf.int64), maxval=tf.constant(4, tf.int64), seed=3).numpy()
        assert sorted(set(i.tolist())) == [-3, -2, -1, 0, 1, 2, 3]
        assert np.bincount(i + 3).min() > 20000 / 7 * 0.9
