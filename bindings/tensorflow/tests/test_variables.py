"""Variables, whose values the plugin keeps: updates, sharing, lifetime, memory."""

import gc

import numpy as np
import pytest
import tensorflow as tf
import tf_rdna


def test_values():
    with tf.device("/device:RDNA:0"):
        v = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
        before = v.read_value()
        v.assign_add(tf.ones([2, 3]))
        v.assign_sub(tf.fill([2, 3], 0.5))
        np.testing.assert_array_equal(v.numpy(), np.arange(6).reshape(2, 3) + 0.5)
        np.testing.assert_array_equal(before.numpy(), np.arange(6).reshape(2, 3))  # a reader's value stays
        v.assign(tf.zeros([2, 3]))
        assert not v.numpy().any()
        np.testing.assert_array_equal(tf.gather(tf.Variable(before), [1, 0]).numpy(), before.numpy()[[1, 0]])
        for dtype in (tf.float16, tf.bfloat16, tf.float64, tf.int64, tf.uint8, tf.bool):
            assert tf.Variable(tf.cast(tf.constant([0, 1]), dtype)).read_value().dtype == dtype


def test_in_functions_and_rows():
    with tf.device("/device:RDNA:0"):
        v = tf.Variable(tf.zeros([4, 2]))

        @tf.function
        def step(x):
            v.assign_add(x)
            v.scatter_add(tf.IndexedSlices(x[:1] * 3, [2]))
            return v + 1

        for _ in range(3):
            result = step(tf.ones([4, 2]))
        expected = np.full((4, 2), 3.0)
        expected[2] += 9
        np.testing.assert_array_equal(v.numpy(), expected)
        np.testing.assert_array_equal(result.numpy(), expected + 1)


def test_dropped_variables_give_their_memory_back():
    with tf.device("/device:RDNA:0"):
        for _ in range(200):
            v = tf.Variable(tf.zeros([64, 1024]))  # 256 KiB
            v.assign_add(tf.ones([64, 1024]))
        del v
        gc.collect()
    assert tf_rdna.config.get_memory_info()["current"] < 160 * 256 * 1024


def test_few_large_variables_are_dropped_too():
    def make(count):
        for _ in range(count):
            tf.Variable(tf.zeros([4, 2**20]))  # 16 MiB

    with tf.device("/device:RDNA:0"):
        make(2)
        before = tf_rdna.config.get_memory_info()["current"]
        make(30)
    assert tf_rdna.config.get_memory_info()["current"] - before < 8 * 2**24


def test_checkpoint(tmp_path):
    with tf.device("/device:RDNA:0"):
        v = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    saved = checkpoint.write(str(tmp_path / "v"))
    v.assign([0.0, 0.0])
    checkpoint.read(saved)
    np.testing.assert_array_equal(v.numpy(), [1, 2])


# operator: its variables, then its other arguments
STEPS = {
    "ResourceApplyGradientDescent": (["var"], {"alpha": 0.1, "delta": None}),
    "ResourceApplyMomentum": (["var", "accum"], {"lr": 0.1, "grad": None, "momentum": 0.9}),
    "ResourceApplyKerasMomentum": (["var", "accum"], {"lr": 0.1, "grad": None, "momentum": 0.9}),
    "ResourceApplyAdam": (["var", "m", "v"], {"beta1_power": 0.81, "beta2_power": 0.99, "lr": 0.1, "beta1": 0.9, "beta2": 0.995,
                                              "epsilon": 1e-3, "grad": None}),
    "ResourceApplyRMSProp": (["var", "ms", "mom"], {"lr": 0.1, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-3, "grad": None}),
    "ResourceApplyAdagradV2": (["var", "accum"], {"lr": 0.1, "epsilon": 1e-3, "grad": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("nesterov", [False, True])
def test_optimizer_steps(name, nesterov):
    states, arguments = STEPS[name]
    rng = np.random.default_rng(1)
    start = [np.abs(rng.standard_normal((5, 3))).astype(np.float32) for _ in states]
    grad = rng.standard_normal((5, 3)).astype(np.float32)
    results = []
    for device in ("/device:RDNA:0", "/device:CPU:0"):
        with tf.device(device):
            variables = [tf.Variable(x) for x in start]
            options = {"use_nesterov": nesterov} if "Momentum" in name or "Adam" in name else {}
            for _ in range(3):
                getattr(tf.raw_ops, name)(
                    **{k: v.handle for k, v in zip(states, variables)}, **options,
                    **{k: tf.constant(grad if v is None else np.float32(v)) for k, v in arguments.items()})  # fmt: skip
            results.append([v.numpy() for v in variables])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_several_are_read_at_once():
    """By an operator that only TensorFlow's rewriters of graphs make."""
    from tensorflow.python.eager import context, execute

    with tf.device("/device:RDNA:0"):
        a, b = tf.Variable([1.0, 2.0]), tf.Variable(tf.constant([3, 4], tf.int64))
        types = [a.dtype.as_datatype_enum, b.dtype.as_datatype_enum]
        read = execute.execute("_ReadVariablesOp", 2, inputs=[a.handle, b.handle], attrs=("N", 2, "dtypes", types), ctx=context.context())
    assert [x.numpy().tolist() for x in read] == [[1, 2], [3, 4]]


def refusals(device):
    """What TensorFlow says to values of another type or shape."""
    said = []
    with tf.device(device):
        v = tf.Variable([1.0, 2.0])
        for function in (
            lambda: tf.raw_ops.AssignVariableOp(resource=v.handle, value=tf.constant([1, 2], tf.int64)),
            lambda: tf.raw_ops.AssignVariableOp(resource=v.handle, value=tf.constant([[1.0, 2, 3]]), validate_shape=True),
            lambda: tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=tf.int64),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError) as info:
                function()
            said.append(str(info.value).rpartition("}}")[2])
        assert v.numpy().tolist() == [1, 2]
        tf.raw_ops.AssignVariableOp(resource=v.handle, value=tf.constant([4.0, 5, 6]))
        assert v.read_value().numpy().tolist() == [4, 5, 6]
    return said


def test_another_type_or_shape_is_refused_as_on_the_cpu():
    assert refusals("/device:RDNA:0") == refusals("/device:CPU:0")
