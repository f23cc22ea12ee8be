"""Two emulated cards as RDNA:0 and RDNA:1, which test_emulated.py asks for in a process of its own: values move between them, each
computes and keeps variables, one model's halves train on both, and copies of a model train side by side."""

import keras
import numpy as np
import tensorflow as tf
import tf_rdna

tf.config.set_soft_device_placement(False)
BOTH = ["/device:RDNA:0", "/device:RDNA:1"]
rng = np.random.default_rng(1)
assert tf_rdna.device_count() == len(tf.config.list_logical_devices("RDNA")) == 2


def moved():
    a = rng.standard_normal((33, 17)).astype(np.float32)
    with tf.device(BOTH[0]):
        x = tf.constant(a)
        before = [tf_rdna.config.get_memory_info(i)["current"] for i in range(2)]
    with tf.device(BOTH[1]):
        y = tf.identity(x) * 2
    assert "RDNA:0" in x.device and "RDNA:1" in y.device
    assert tf_rdna.config.get_memory_info(1)["current"] > before[1], "RDNA:1 holds what was computed there"
    with tf.device(BOTH[0]):
        back = tf.identity(y) + x
    np.testing.assert_array_equal(back.numpy(), 3 * a)


def halves(devices):
    """Losses of a perceptron whose first layer is on one device and whose second is on the other."""
    own = np.random.default_rng(2)
    x, y = own.standard_normal((8, 6)).astype(np.float32), own.standard_normal((8, 2)).astype(np.float32)
    weights = []
    for device, shape in zip(devices, ((6, 5), (5, 2))):
        with tf.device(device):
            weights.append(tf.Variable(own.standard_normal(shape).astype(np.float32)))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            with tf.device(devices[0]):
                hidden = tf.tanh(tf.matmul(x, weights[0]))
            with tf.device(devices[1]):
                loss = tf.reduce_mean(tf.square(tf.matmul(hidden, weights[1]) - y))
        for w, g, device in zip(weights, tape.gradient(loss, weights), devices):
            with tf.device(device):
                w.assign_sub(0.1 * g)
        return loss

    losses = [float(step()) for _ in range(4)]
    assert all(device in w.device for w, device in zip(weights, devices))
    return losses


def mirrored():
    """Two replicas by a strategy, whose gradients are summed, learn what one learns of all rows."""
    x, y = rng.standard_normal((8, 4)).astype(np.float32), rng.standard_normal((8, 1)).astype(np.float32)
    strategy = tf.distribute.MirroredStrategy(["RDNA:0", "RDNA:1"], cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())
    start = rng.standard_normal((4, 1)).astype(np.float32)
    with strategy.scope():
        w = tf.Variable(start)
    shares = strategy.experimental_distribute_values_from_function(lambda c: (x, y)[0][c.replica_id_in_sync_group::2])
    wanted = strategy.experimental_distribute_values_from_function(lambda c: y[c.replica_id_in_sync_group::2])

    @tf.function
    def step():
        def one(rows, right):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(tf.matmul(rows, w) - right)) / 8
            gradient = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, w))
            w.assign_sub(0.1 * gradient)
            return loss

        return strategy.reduce("sum", strategy.run(one, (shares, wanted)), axis=None)

    own = start.astype(np.float64)
    for _ in range(3):
        off = x @ own - y
        np.testing.assert_allclose(float(step()), (off**2).mean(), rtol=1e-5)
        own -= 0.1 * 2 * x.T @ off / 8
    for value in strategy.experimental_local_results(w):
        np.testing.assert_allclose(value.numpy(), own, rtol=1e-4, atol=1e-5)
    assert [v.device[-6:] for v in strategy.experimental_local_results(w)] == ["RDNA:0", "RDNA:1"]


moved()
np.testing.assert_allclose(halves(BOTH), halves(["/device:CPU:0"] * 2), rtol=1e-5)
mirrored()
print("two devices compute")
