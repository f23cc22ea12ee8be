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


@pytest.mark.parametrize("dtype", [tf.uint16, tf.uint32, tf.uint64, tf.complex64, tf.complex128])
def test_sums_of_other_types(dtype):
    """Where TensorFlow has a kernel for every device, which looks for the value elsewhere."""
    with tf.device("/device:CPU:0"):  # complex128 moves alone
        start, more = (tf.cast(tf.constant(x), dtype) * (1 + 2j if dtype.is_complex else 1) for x in ([[5, 6, 7]], [[1, 9, 3]]))
    with tf.device("/device:RDNA:0"):
        v = tf.Variable(start)
        before = v.read_value()
        v.assign_add(more)
        v.assign_sub(start)
        assert "RDNA" in v.device
    np.testing.assert_array_equal(v.numpy(), more.numpy())
    np.testing.assert_array_equal(before.numpy(), start.numpy())


def test_int32_is_in_host_memory():
    with tf.device("/device:RDNA:0"):
        v, w = tf.Variable([1, 2]), tf.Variable(tf.zeros([2]))

        @tf.function
        def step(x):
            v.assign_add([1, 1])
            w.assign_add(tf.cast(v, tf.float32) * x)
            return v + 1

        for _ in range(2):
            result = step(tf.ones([2]))
    assert "CPU" in v.device and "RDNA" in w.device
    assert v.numpy().tolist() == [3, 4] and result.numpy().tolist() == [4, 5] and w.numpy().tolist() == [5, 7]


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


ADAM = {"beta1_power": 0.81, "beta2_power": 0.99, "lr": 0.1, "beta1": 0.9, "beta2": 0.995, "epsilon": 1e-3, "grad": None}
RMS = {"lr": 0.1, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-3, "grad": None}
FTRL = {"grad": None, "lr": 0.1, "l1": 0.3, "l2": 0.2}
# operator: its variables, its other arguments in their order, the same of an operator for rows; then attributes to try
STEPS = {
    "GradientDescent": (["var"], {"alpha": 0.1, "delta": None}),
    "Momentum": (["var", "accum"], {"lr": 0.1, "grad": None, "momentum": 0.9}, {"use_nesterov": True}),
    "KerasMomentum": (["var", "accum"], {"lr": 0.1, "grad": None, "momentum": 0.9}, {"use_nesterov": True}),
    "Adam": (["var", "m", "v"], ADAM, {"use_nesterov": True}),
    "AdamWithAmsgrad": (["var", "m", "v", "vhat"], ADAM),
    "AdaMax": (["var", "m", "v"], {name: value for name, value in ADAM.items() if name != "beta2_power"}),
    "RMSProp": (["var", "ms", "mom"], RMS),
    "CenteredRMSProp": (["var", "mg", "ms", "mom"], RMS),
    "Adagrad": (["var", "accum"], {"lr": 0.1, "grad": None}, {"update_slots": False}),
    "AdagradV2": (["var", "accum"], {"lr": 0.1, "epsilon": 1e-3, "grad": None}, {"update_slots": False}),
    "ProximalAdagrad": (["var", "accum"], {"lr": 0.1, "l1": 0.2, "l2": 0.1, "grad": None}),
    "Adadelta": (["var", "accum", "accum_update"], {"lr": 0.1, "rho": 0.9, "epsilon": 1e-3, "grad": None}),
    "AddSign": (["var", "m"], {"lr": 0.1, "alpha": 1.0, "sign_decay": 0.7, "beta": 0.9, "grad": None}),
    "PowerSign": (["var", "m"], {"lr": 0.1, "logbase": 0.5, "sign_decay": 0.7, "beta": 0.9, "grad": None}),
    "Ftrl": (["var", "accum", "linear"], {**FTRL, "lr_power": -0.5}, {"multiply_linear_by_lr": True}),
    "FtrlV2": (["var", "accum", "linear"], {**FTRL, "l2_shrinkage": 0.1, "lr_power": -0.6}, {"multiply_linear_by_lr": True}),
}  # fmt: skip
OF_ROWS = ["KerasMomentum", "Adagrad", "AdagradV2", "ProximalAdagrad", "Adadelta", "Ftrl", "FtrlV2"]
TYPES = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-2}  # how near each is to the CPU's, after three steps


def steps(name, indices, dtype, attributes, device):
    """What the variables hold after three steps."""
    states, arguments, *_ = STEPS[name]
    rng = np.random.default_rng(1)
    start = [np.abs(rng.standard_normal((5, 3))).astype(dtype) + np.dtype(dtype).type(0.1) for _ in states]
    start[0] -= 1
    operator = getattr(tf.raw_ops, "Resource" + ("Apply" if indices is None else "SparseApply") + name)
    with tf.device(device):
        variables = [tf.Variable(x) for x in start]
        for _ in range(3):
            grad = rng.standard_normal((5 if indices is None else len(indices), 3))
            given = {k: tf.constant(grad if v is None else v, dtype) for k, v in arguments.items()}
            if indices is not None:
                given["indices"] = tf.constant(indices)
            operator(**{k: v.handle for k, v in zip(states, variables)}, **given, **attributes)
        return [v.numpy() for v in variables]


@pytest.mark.parametrize("name, rows", [(name, None) for name in STEPS] + [(name, np.array(rows)) for name in OF_ROWS for rows in ([4, 0, 2], [4, 0, 4, 2, 0, 4])])
def test_optimizer_steps(name, rows):
    """A row that comes again makes another step, one after the other."""
    for dtype, error in TYPES.items():
        if dtype == "float16" and name == "ProximalAdagrad":
            continue  # the CPU has it not
        for attributes in [{}, *STEPS[name][2:]]:
            indices = rows if dtype == "float64" or rows is None else rows.astype(np.int32)
            ours, theirs = [steps(name, indices, dtype, attributes, device) for device in ("/device:RDNA:0", "/device:CPU:0")]
            for a, b in zip(ours, theirs):
                np.testing.assert_allclose(a, b, rtol=error, atol=error)


@pytest.mark.parametrize("rows", [None, np.array([1])])
def test_ftrl_before_any_gradient(rows):
    """Nothing is divided by the sum of no gradients: what is within l1 is 0."""
    operator = tf.raw_ops.ResourceApplyFtrl if rows is None else tf.raw_ops.ResourceSparseApplyFtrl
    with tf.device("/device:RDNA:0"):
        var, accum, linear = tf.Variable([[1.0], [2.0]]), tf.Variable([[0.0], [0.0]]), tf.Variable([[0.0], [0.0]])
        given = {} if rows is None else {"indices": rows}
        operator(var=var.handle, accum=accum.handle, linear=linear.handle, grad=tf.zeros([2 if rows is None else 1, 1]), lr=0.1, l1=0.0, l2=0.0, lr_power=-0.5, **given)
    assert var.numpy().ravel().tolist() == ([0, 0] if rows is None else [1, 0])


def test_rows_that_do_not_fit_are_refused():
    with tf.device("/device:RDNA:0"):
        v, accum = tf.Variable(tf.ones([5, 3])), tf.Variable(tf.ones([5, 3]))
        for grad, indices in (([2, 2], [0, 1]), ([2, 3], [[0], [1]]), ([3, 3], [0, 1])):
            with pytest.raises(tf.errors.InvalidArgumentError):
                tf.raw_ops.ResourceSparseApplyAdagrad(var=v.handle, accum=accum.handle, lr=0.1, grad=tf.ones(grad), indices=indices)
        tf.raw_ops.ResourceSparseApplyAdagrad(var=v.handle, accum=accum.handle, lr=0.1, grad=tf.ones([0, 3]), indices=tf.zeros([0], tf.int32))
        for outside in (7, 5, -1):  # nothing is changed then
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"Index {outside} at offset 1 in indices is out of range"):
                tf.raw_ops.ResourceSparseApplyAdagrad(var=v.handle, accum=accum.handle, lr=1.0, grad=tf.ones([2, 3]), indices=[1, outside])
        tf.raw_ops.ResourceSparseApplyAdagrad(var=v.handle, accum=accum.handle, lr=1.0, grad=tf.ones([1, 3]), indices=[1])
        after = np.ones((5, 3), np.float32)
        after[1] -= np.float32(0.5) ** 0.5
        np.testing.assert_allclose(v.numpy(), after, rtol=1e-6)
        with pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
            tf.raw_ops.ResourceApplyAdagrad(var=v.handle, accum=tf.Variable(tf.ones([3])).handle, lr=0.1, grad=tf.ones([5, 3]))


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
