"""Every family of operators beside TensorFlow's CPU, with gradients where there are any."""

import beside_cpu
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
import tf_rdna

rng = np.random.default_rng(7)
TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def positive(*shape, dtype=np.float32):
    return rng.uniform(0.1, 3, shape).astype(dtype)


def inside(*shape, dtype=np.float32):
    return rng.uniform(-0.9, 0.9, shape).astype(dtype)


UNARY = {
    normal: [tf.abs, tf.negative, tf.square, tf.exp, tf.math.expm1, tf.sin, tf.cos, tf.tanh, tf.math.erf, tf.math.erfc,
             tf.sigmoid, tf.nn.relu, tf.nn.relu6, tf.nn.leaky_relu, tf.nn.elu, tf.nn.selu, tf.nn.softplus,
             tf.nn.softsign, tf.nn.gelu, tf.nn.silu, tf.math.bessel_i0e, tf.math.bessel_i1e],
    positive: [tf.sqrt, tf.math.rsqrt, tf.math.reciprocal, tf.math.log, tf.math.log1p, tf.math.lgamma],
    inside: [tf.tan, tf.math.erfinv, tf.math.ndtri],
}  # fmt: skip


@pytest.mark.parametrize("make,function", [(m, f) for m, fs in UNARY.items() for f in fs], ids=lambda x: x.__name__)
def test_unary(make, function):
    if function is tf.math.ndtri:
        beside_cpu.compare(function, [np.abs(make(3, 7)) + np.float32(0.01)], scale=64)
        return
    for dtype in TYPES if function in (tf.exp, tf.nn.relu, tf.tanh, tf.sqrt, tf.sigmoid) else TYPES[:2]:
        beside_cpu.compare(function, [make(3, 7, dtype=dtype)], scale=64)


@pytest.mark.parametrize("function", [tf.sign, tf.floor, tf.math.ceil, tf.round, tf.math.rint, tf.math.is_nan,
                                      tf.math.is_inf, tf.math.is_finite, tf.zeros_like, tf.ones_like],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_unary_edges(function):
    x = np.array([0.0, -0.5, 0.5, 1.5, 2.5, -2.7, np.inf, -np.inf, np.nan], np.float32)
    beside_cpu.compare(function, [x], gradients=False)


BINARY = [tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.minimum, tf.math.squared_difference, tf.pow,
          tf.math.atan2, tf.math.divide_no_nan, tf.math.floordiv, tf.math.floormod, tf.math.xdivy, tf.math.xlogy,
          tf.math.xlog1py, tf.math.multiply_no_nan]  # fmt: skip


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shapes", [((3, 5), (3, 5)), ((4, 1, 5), (3, 1)), ((0, 5), (5,))], ids=str)
def test_binary(function, shapes):
    for dtype in TYPES[:2]:
        beside_cpu.compare(function, [positive(*shape, dtype=dtype) for shape in shapes], scale=64,
                           gradients=function not in (tf.math.floordiv, tf.math.floormod))  # fmt: skip


@pytest.mark.parametrize("function", [tf.math.divide_no_nan, tf.math.multiply_no_nan, tf.math.xdivy, tf.math.xlogy],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_binary_of_zero(function):
    a = np.array([0, 1, 0, np.inf, 2], np.float32)
    b = np.array([0, 0, 3, 0, 4], np.float32)
    beside_cpu.compare(function, [a, b], gradients=False)


@pytest.mark.parametrize("function", [tf.equal, tf.not_equal, tf.less, tf.less_equal, tf.greater, tf.greater_equal],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_compare(function):
    a, b = np.array([1, 2, np.nan, 4], np.float32), np.array([[1], [3]], np.float32)
    beside_cpu.compare(function, [a, b], gradients=False)
    beside_cpu.compare(function, [a[:2].astype(np.int64), b.astype(np.int64)], gradients=False)


def test_integers():
    a = rng.integers(-50, 50, (4, 6))
    b = np.where(rng.integers(-5, 5, (6,)) == 0, 3, rng.integers(1, 5, (6,)))
    for function in (tf.add, tf.multiply, tf.subtract, tf.math.floordiv, tf.math.floormod, tf.maximum,
                     tf.bitwise.bitwise_and, tf.bitwise.bitwise_or, tf.bitwise.bitwise_xor, tf.truncatediv):  # fmt: skip
        for dtype in (np.int64, np.int16, np.int8):
            beside_cpu.compare(function, [a.astype(dtype), b.astype(dtype)], gradients=False)


@pytest.mark.parametrize("function", [
    lambda a, b: tf.bitwise.bitwise_and(a, b), lambda a, b: tf.bitwise.bitwise_or(a, b), lambda a, b: tf.bitwise.bitwise_xor(a, b),
    lambda a, b: tf.bitwise.left_shift(a, b), lambda a, b: tf.bitwise.right_shift(a, b), lambda a, b: tf.bitwise.invert(a),
    lambda a, b: tf.cumsum(a, 0), lambda a, b: tf.math.cumprod(b, 0), lambda a, b: tf.roll(a, 1, 0), lambda a, b: tf.nn.bias_add(a, b),
    lambda a, b: tf.math.unsorted_segment_sum(a, [1, 0, 2, 0], 4), lambda a, b: tf.math.unsorted_segment_max(a, [1, 0, 2, 0], 4),
])  # fmt: skip
def test_int32_on_the_device(function):
    beside_cpu.compare(function, [rng.integers(-50, 50, (4, 6)).astype(np.int32), rng.integers(1, 5, (6,)).astype(np.int32)],
                       gradients=False)  # fmt: skip


@pytest.mark.parametrize("function,b", [(tf.math.floordiv, 0), (tf.math.floormod, 0), (tf.pow, -1)])
def test_integers_that_are_not_there(function, b):
    """The sentence is the CPU's."""
    said = []
    for device in ("/device:RDNA:0", "/device:CPU:0"):
        with tf.device(device), pytest.raises(tf.errors.InvalidArgumentError) as info:
            function(tf.constant([4, 5, 6], tf.int64), tf.constant([2, b, 1], tf.int64))
        said.append(str(info.value).rpartition("}}")[2])
    assert said[0] == said[1]
    with tf.device("/device:RDNA:0"):
        assert function(tf.constant([4.0]), tf.constant([float(b)])).shape == [1]


def test_logic_and_choice():
    p, q = rng.integers(0, 2, (3, 4)).astype(bool), rng.integers(0, 2, (4,)).astype(bool)
    for function in (tf.logical_and, tf.logical_or):
        beside_cpu.compare(function, [p, q], gradients=False)
    beside_cpu.compare(tf.logical_not, [p], gradients=False)
    beside_cpu.compare(tf.where, [p, normal(3, 4), normal(4)])
    beside_cpu.compare(lambda c, a, b: tf.raw_ops.Select(condition=c, x=a, y=b), [p[:, 0], normal(3, 4), normal(3, 4)])
    beside_cpu.compare(lambda x: tf.clip_by_value(x, -0.5, 0.5), [normal(5, 5)])
    beside_cpu.compare(lambda a, b, c: tf.add_n([a, b, c]), [normal(5, 2) for _ in range(3)])


@pytest.mark.parametrize("source", [np.float32, np.float16, np.float64, np.int32, np.int64, np.uint8, bool], ids=str)
def test_cast(source):
    x = rng.uniform(0, 100, (3, 5)).astype(source)
    for to in (tf.float32, tf.float16, tf.bfloat16, tf.float64, tf.int32, tf.int64, tf.int8, tf.uint8, tf.bool):
        if tf.as_dtype(source) != to:
            beside_cpu.compare(lambda t: tf.cast(t, to), [x], gradients=False)


REDUCTIONS = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod, tf.reduce_logsumexp,
              tf.math.reduce_std, tf.math.reduce_variance, tf.math.reduce_euclidean_norm]  # fmt: skip


@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda f: f.__name__)
def test_reduce(function):
    for axis, keep in ((None, False), (0, False), (-1, True), ([0, 2], False)):
        beside_cpu.compare(lambda x: function(x, axis, keep), [positive(3, 4, 5)], scale=128)
    beside_cpu.compare(lambda x: function(x, 1), [positive(4, 6, dtype=np.float64)], scale=128)


def test_reduce_more():
    flags = rng.integers(0, 2, (3, 4)).astype(bool)
    for function in (tf.reduce_any, tf.reduce_all):
        beside_cpu.compare(lambda x: function(x, 1), [flags], gradients=False)
    for function in (tf.argmax, tf.argmin):
        beside_cpu.compare(lambda x: function(x, 1), [normal(4, 9)], gradients=False)
    for function in (tf.reduce_max, tf.reduce_min, tf.reduce_sum):
        beside_cpu.compare(lambda x: function(x, 0), [rng.integers(-9, 9, (4, 3))], gradients=False)
        beside_cpu.compare(lambda x: function(x, 1), [np.zeros((3, 0), np.float32)], gradients=False)
    beside_cpu.compare(tf.nn.l2_loss, [normal(7, 3)])
    for exclusive in (False, True):
        for reverse in (False, True):
            beside_cpu.compare(lambda x: tf.cumsum(x, 1, exclusive, reverse), [normal(3, 5, 2)])
            beside_cpu.compare(lambda x: tf.math.cumprod(x, 0, exclusive, reverse), [positive(4, 3)], scale=64)


def test_matmul():
    for dtype, scale in ((np.float32, 64), (np.float64, 64), (np.float16, 64), (ml_dtypes.bfloat16, 64)):
        for turn_a in (False, True):
            for turn_b in (False, True):
                a = normal(*((7, 5) if not turn_a else (5, 7)), dtype=dtype)
                b = normal(*((5, 9) if not turn_b else (9, 5)), dtype=dtype)
                beside_cpu.compare(lambda x, y: tf.matmul(x, y, turn_a, turn_b), [a, b], scale=scale)
    beside_cpu.compare(tf.matmul, [normal(2, 3, 4, 5), normal(2, 3, 5, 6)], scale=64)
    beside_cpu.compare(tf.matmul, [normal(2, 1, 4, 5), normal(3, 5, 6)], scale=64)
    beside_cpu.compare(lambda a, b: tf.matmul(a, b, transpose_b=True), [normal(3, 4, 5), normal(3, 6, 5)], scale=64)
    beside_cpu.compare(tf.nn.bias_add, [normal(3, 4, 5), normal(5)], scale=64)
    beside_cpu.compare(lambda x, b: tf.nn.bias_add(x, b, "NCHW"), [normal(3, 4, 5), normal(4)], scale=64)


@pytest.mark.parametrize("equation,shapes", [
    ("abc,cd->abd", [(3, 4, 5), (5, 6)]), ("abc,cde->abde", [(2, 3, 4), (4, 5, 6)]), ("aecd,abcd->acbe", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("acbe,aecd->abcd", [(2, 4, 6, 3), (2, 3, 4, 5)]), ("...ij,...jk->...ik", [(2, 3, 4, 5), (2, 3, 5, 6)]), ("ij,j->i", [(3, 4), (4,)]),
    ("i,j->ji", [(3,), (4,)]), ("ij,kj->", [(3, 4), (2, 4)]), ("ijk->ki", [(3, 4, 5)]), ("ij->", [(3, 4)]), ("b...->...b", [(3, 4, 5)]),
    ("...i,...i->...", [(2, 1, 4), (2, 3, 4)]), ("...ij,...jk->...ik", [(1, 3, 4, 5), (2, 1, 5, 6)]), ("...ij,...jk->ik...", [(3, 1, 4, 5), (2, 5, 6)]),
    ("...i,...i->...", [(3, 4), (2, 1, 4)]), ("...i,ij->...j", [(2, 3, 4), (4, 5)]), ("...i,...i->...", [(0, 4), (1, 4)]),
])  # fmt: skip
def test_einsum(equation, shapes):
    beside_cpu.compare(lambda *x: tf.einsum(equation, *x), [normal(*shape) for shape in shapes], scale=256)
    with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.UnimplementedError, match="diagonal"):
        tf.einsum("ii->i", tf.zeros([3, 3]))
    for equation, a, b in (("ai,ai->a", [1, 4], [3, 4]), ("...i,...i->...", [2, 4], [3, 4])):
        with tf.device("/device:RDNA:0"), pytest.raises((tf.errors.UnimplementedError, tf.errors.InvalidArgumentError)):
            tf.einsum(equation, tf.zeros(a), tf.zeros(b))


def test_softmax_and_losses():
    for function in (tf.nn.softmax, tf.nn.log_softmax):
        beside_cpu.compare(function, [normal(3, 4, 11)], scale=64)
        beside_cpu.compare(lambda x: function(x, 1), [normal(3, 5, 2, dtype=np.float64)], scale=64)
    labels = rng.integers(0, 11, (6,))
    for dtype in (np.int32, np.int64):
        beside_cpu.compare(lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels.astype(dtype), x),
                           [normal(6, 11)], scale=64)  # fmt: skip
    chances = positive(6, 11)
    chances /= chances.sum(-1, keepdims=True)
    beside_cpu.compare(lambda x: tf.nn.softmax_cross_entropy_with_logits(chances, x), [normal(6, 11)], scale=64)
    beside_cpu.compare(lambda x: tf.nn.sigmoid_cross_entropy_with_logits(chances, x), [normal(6, 11)], scale=64)


MOVED = [np.float32, np.float16, np.int64, np.uint8, bool, np.complex64, np.uint32]


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_movement(dtype):
    x = rng.integers(0, 100, (4, 5, 6)).astype(dtype)
    y = rng.integers(0, 100, (4, 2, 6)).astype(dtype)
    floats = dtype is np.float32
    for function in (
        lambda t: tf.transpose(t, [2, 0, 1]),
        lambda t: tf.concat([t, y, t], 1),
        lambda t: tf.split(t, 3, 2),
        lambda t: tf.split(t, [1, -1, 2], 1),
        lambda t: tf.stack([t, t], 1),
        lambda t: tf.unstack(t, axis=1),
        lambda t: tf.slice(t, [1, 0, 2], [2, -1, 3]),
        lambda t: t[1:, ::-2, tf.newaxis, ..., -1],
        lambda t: t[..., 3:0:-1],
        lambda t: t[2],
        lambda t: t[:, 4:2],
        lambda t: tf.tile(t, [2, 1, 3]),
        lambda t: tf.broadcast_to(t[:, :1], [2, 4, 5, 6]),
        lambda t: tf.reverse(t, [0, -1]),
        lambda t: tf.roll(t, [2, -1], [0, 2]),
        lambda t: tf.gather(t, [[3, 0], [1, 1]], axis=1),
        lambda t: tf.gather(t, [[0, 1, 1], [2, 2, 0], [4, 4, 4], [1, 0, 3]], batch_dims=1, axis=1),
        lambda t: tf.gather_nd(t, [[[0, 1], [3, 4]]]),
    ):
        beside_cpu.compare(function, [x], gradients=floats)


def test_movement_of_numbers():
    x = normal(3, 4)
    beside_cpu.compare(lambda t: tf.pad(t, [[1, 0], [2, 3]]), [x])
    beside_cpu.compare(lambda t: tf.pad(t, [[1, 0], [2, 3]], constant_values=1.5), [x])
    beside_cpu.compare(lambda t: tf.pad(t, [[1, 0], [2, 3]], "REFLECT"), [x], gradients=False)
    beside_cpu.compare(lambda t: tf.linalg.band_part(t, 1, 0), [normal(2, 5, 5)])
    beside_cpu.compare(lambda t: tf.linalg.band_part(t, -1, 2), [normal(5, 7)])
    beside_cpu.compare(lambda t: tf.one_hot(t, 5), [rng.integers(-1, 6, (3, 2))], gradients=False)
    beside_cpu.compare(lambda t: tf.one_hot(t, 5, 2.0, -1.0, 0), [rng.integers(-1, 6, (3, 2))], gradients=False)
    beside_cpu.compare(lambda t: tf.bitcast(t, tf.int16), [x], gradients=False)
    beside_cpu.compare(lambda t: tf.bitcast(t, tf.float32), [rng.integers(0, 9, (3, 2)).astype(np.int16)], gradients=False)
    beside_cpu.compare(lambda: tf.range(1.0, 8.0, 1.5), [])
    beside_cpu.compare(lambda: tf.range(tf.constant(9, tf.int64), tf.constant(-4, tf.int64), tf.constant(-3, tf.int64)), [])
    beside_cpu.compare(lambda: tf.fill([3, 2], 7.5), [])


def test_scatter_and_segments():
    x, rows, ids = normal(6, 3), normal(4, 3), np.array([[5], [0], [2], [1]])
    again = np.array([[5], [0], [5], [1]])
    beside_cpu.compare(lambda r: tf.scatter_nd(again, r, tf.constant([6, 3], tf.int64)), [rows])
    beside_cpu.compare(lambda t, r: tf.tensor_scatter_nd_update(t, ids, r), [x, rows])
    beside_cpu.compare(lambda t, r: tf.tensor_scatter_nd_add(t, again, r), [x, rows])
    beside_cpu.compare(lambda t, r: tf.tensor_scatter_nd_sub(t, again, r), [x, rows])
    for whole in (tf.int32, tf.int64):  # outside, on either side: as on TensorFlow's GPUs
        with tf.device("/device:RDNA:0"):
            outside, row = tf.constant([[-1], [7], [1]], whole), tf.constant([1.0, 2.0, 3.0])
            assert tf.scatter_nd(outside, row, tf.constant([4], whole)).numpy().tolist() == [0, 3, 0, 0]
            assert tf.tensor_scatter_nd_add(tf.zeros(4), outside, row).numpy().tolist() == [0, 3, 0, 0]
            assert tf.gather_nd(tf.range(1.0, 5.0), outside).numpy().tolist() == [0, 0, 2]
    segments = np.array([2, 0, 2, -1, 4, 0])
    for function in (tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max, tf.math.unsorted_segment_min,
                     tf.math.unsorted_segment_prod):  # fmt: skip
        beside_cpu.compare(lambda t: function(t, segments, 5), [x], gradients=False)


def test_shapes_stay_on_the_host():
    with tf.device("/device:RDNA:0"):
        shape = tf.shape(tf.zeros([3, 4, 5]))
        whole = tf.concat([shape[:1], [tf.reduce_prod(shape[1:])], tf.stack([shape[2], 7])], 0)
        assert whole.numpy().tolist() == [3, 20, 5, 7]
    assert {"StridedSlice", "Prod", "Pack"} <= set(tf_rdna.operator_report()["host"])


def test_random():
    with tf.device("/device:RDNA:0"):
        a = tf.random.stateless_uniform([20000], [1, 2]).numpy()
        assert (a == tf.random.stateless_uniform([20000], [1, 2]).numpy()).all()
        assert (a != tf.random.stateless_uniform([20000], [1, 3]).numpy()).mean() > 0.99
        assert a.min() >= 0 and a.max() < 1 and abs(a.mean() - 0.5) < 0.01 and abs(a.var() - 1 / 12) < 0.005
        n = tf.random.stateless_normal([20000], [3, 4], mean=2.0).numpy()
        assert abs(n.mean() - 2) < 0.03 and abs(n.std() - 1) < 0.03
        t = tf.random.stateless_truncated_normal([20000], [5, 6]).numpy()
        assert np.abs(t).max() <= 2 and abs(t.mean()) < 0.03 and abs(t.std() - 0.8796) < 0.02
        i = tf.random.stateless_uniform([20000], [7, 8], -3, 4, tf.int64).numpy()
        assert sorted(set(i.tolist())) == [-3, -2, -1, 0, 1, 2, 3]
        tf.random.set_seed(1)
        first, second = tf.random.normal([100]).numpy(), tf.random.normal([100]).numpy()
        assert (first != second).mean() > 0.9
        tf.random.set_seed(1)
        assert (tf.random.normal([100]).numpy() == first).all()


def test_bad_arguments_say_so():
    with tf.device("/device:RDNA:0"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible"):
            tf.raw_ops.MatMul(a=tf.zeros([2, 3]), b=tf.zeros([2, 3]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="permutation"):
            tf.transpose(tf.zeros([2, 3]), [0, 0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            tf.zeros([2, 3])[5]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
            tf.zeros([2, 3]) + tf.zeros([4])
        with pytest.raises(tf.errors.InvalidArgumentError, match="same size and shape"):
            tf.raw_ops.AddN(inputs=[tf.zeros([2, 3]), tf.zeros([3])])
        with pytest.raises(tf.errors.InvalidArgumentError, match="duplicate dimension"):
            tf.reduce_sum(tf.zeros([2, 3]), [0, -2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="CPU"):  # the devices that have a kernel
            tf.math.special.dawsn(tf.zeros([3]))


def test_ellipsis_within_eight_dimensions():
    with tf.device("/device:RDNA:0"):
        x, new = tf.zeros([1] * 6 + [2, 3]), (tf.newaxis,)
        assert x[0, 0][new * 2 + (...,)].shape == [1] * 6 + [2, 3]
        for count in (1, 8):
            with pytest.raises(tf.errors.UnimplementedError, match="more than 8 dimensions"):
                x[new * count + (...,)]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Multiple ellipses"):
            x[..., ...]


WIDE = np.array([2**40, 2**40])
IMPOSSIBLE = {
    "a negative size": [lambda: tf.scatter_nd([[0]], [1.0], tf.constant([-1])), lambda: tf.fill([2, -1], 1.0),
                        lambda: tf.raw_ops.RandomUniform(shape=[-1], dtype=tf.float32),
                        lambda: tf.nn.conv2d_transpose(tf.zeros([2, 5, 4, 4]), tf.zeros([3, 3, 3, 4]), [2, -9, 8, 3], 2, "SAME")],
    r"2\*\*63 bytes": [lambda: tf.fill(tf.constant(WIDE), 1.0), lambda: tf.broadcast_to(tf.zeros([1, 1]), tf.constant(WIDE)),
                       lambda: tf.raw_ops.RandomUniform(shape=tf.constant(WIDE), dtype=tf.float32)],
    "multiples": [lambda: tf.tile(tf.zeros([2, 2]), tf.constant(WIDE * 2**22)), lambda: tf.tile(tf.zeros([0]), [-1])],
    "Paddings": [lambda: tf.pad(tf.zeros([3]), tf.constant([[2**63 - 1, 2**63 - 1]], tf.int64))],
    "num_split": [lambda: tf.split(tf.zeros([3]), [1, 1, 1], num=2), lambda: tf.split(tf.zeros([3]), [1, 1, 1], num=4)],
    "a part of size": [lambda: tf.split(tf.zeros([3]), tf.constant([2**63 - 1, 2**63 - 1, 5], tf.int64))],
}  # fmt: skip


@pytest.mark.parametrize("match", IMPOSSIBLE)
def test_impossible_sizes_are_refused(match):
    for function in IMPOSSIBLE[match]:
        with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.InvalidArgumentError, match=match):
            function()


def test_bitcast_to_a_type_without_kernels():
    with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.UnimplementedError, match="Bitcast"):
        tf.bitcast(tf.zeros([2, 2], tf.int64), tf.complex128)


@pytest.mark.parametrize("values", [[1, np.nan], [np.inf, 2], [-np.inf], [np.nan, np.inf], [-np.inf, np.inf, np.nan], [-np.inf, np.nan]], ids=str)
def test_check_numerics_says_what_the_cpu_says(values):
    for function in (tf.raw_ops.CheckNumerics, tf.raw_ops.CheckNumericsV2):
        said = []
        for device in ("/device:RDNA:0", "/device:CPU:0"):
            with tf.device(device), pytest.raises(tf.errors.InvalidArgumentError) as info:
                function(tensor=tf.constant(values, tf.float32), message="a place" * 30)
            said.append(str(info.value).partition(" : ")[2])
        assert said[0] == said[1]


def test_factorizations_that_fail_say_so():
    with tf.device("/device:RDNA:0"):
        for function in (tf.linalg.inv, tf.linalg.lu, lambda x: tf.linalg.solve(x, x)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
                function(tf.ones([2, 3, 3]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cholesky decomposition was not successful"):
            tf.linalg.cholesky(tf.constant([[1.0, 2], [2, 1]]))
        assert float(tf.linalg.det(tf.ones([3, 3]))) == 0
        assert np.isnan(tf.linalg.svd(tf.fill([3, 3], np.nan), compute_uv=False).numpy()).all()


@pytest.mark.parametrize("places", [[[0, 1], [0, 1]], [[1, 0], [0, 2]], [[0, 0], [3, 0]], [[-1, 0]], [[0, 3]]])
def test_places_of_sparse_tensors_are_looked_at_where_that_is_asked_for(places):
    """Repeated, out of order or outside: refused on both devices; what is asked for without a look is taken."""
    given = {"sparse_indices": np.array(places, np.int64), "output_shape": [3, 3], "sparse_values": np.arange(len(places), dtype=np.float32) + 1, "default_value": 0.0}
    for device in ("/device:RDNA:0", "/device:CPU:0"):
        with tf.device(device), pytest.raises(tf.errors.InvalidArgumentError, match="ind(ices|ex)"):
            tf.raw_ops.SparseToDense(**given, validate_indices=True)
    with tf.device("/device:RDNA:0"):
        assert tf.raw_ops.SparseToDense(**given, validate_indices=False).shape == (3, 3)
        one = tf.raw_ops.SparseToDense(**{**given, "sparse_indices": [[2, 2]], "sparse_values": [5.0]})
    np.testing.assert_array_equal(one, np.diag([0, 0, 5]))
