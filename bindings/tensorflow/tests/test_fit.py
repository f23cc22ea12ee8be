"""Keras' fit, evaluate and predict on the device with soft placement off, beside the CPU; tf.data stays on the processor."""

import contextlib

import keras
import numpy as np
import pytest
import releases
import tensorflow as tf
import tf_rdna

rng = np.random.default_rng(2)
X = rng.standard_normal((70, 6)).astype(np.float32)  # the last batch is a smaller one
Y = (X.sum(1) > 0).astype(np.int64) + (X[:, 0] > 1)


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return X[16 * i : 16 * i + 16], Y[16 * i : 16 * i + 16]


DATA = {
    "arrays": lambda: {"x": X, "y": Y, "batch_size": 16},
    "dataset": lambda: {"x": tf.data.Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x * 1, y)).batch(16).prefetch(2)},
    "python": lambda: {"x": Batches()},
}


def trained(scope, data, **options):
    with scope:
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(9, activation="relu"), keras.layers.Dense(3)])
        own = np.random.default_rng(3)
        model.set_weights([0.3 * own.standard_normal(w.shape).astype(np.float32) for w in model.get_weights()])
        model.compile(keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy"], **options)  # fmt: skip
        history = model.fit(**data(), epochs=2, shuffle=False, verbose=0, validation_data=(X[:20], Y[:20])).history
        return model, history, model.evaluate(**data(), verbose=0), model.predict(X, batch_size=16, verbose=0)


@pytest.fixture(scope="module")
def on_cpu():
    return trained(tf.device("/device:CPU:0"), DATA["arrays"])


@pytest.mark.parametrize("kind,scope,options", [
    ("arrays", None, {}),
    pytest.param("dataset", "/device:RDNA:0", {"steps_per_execution": 3}, marks=releases.copies_on_devices),
    ("python", "/device:RDNA:0", {"run_eagerly": True}),
], ids=str)  # fmt: skip
def test_fit_tracks_the_cpu(on_cpu, kind, scope, options):
    """However the data comes, it is the same, in the same order."""
    tf_rdna.reset_operator_report()
    model, history, scores, answers = trained(tf.device(scope) if scope else contextlib.nullcontext(), DATA[kind], **options)
    assert all("RDNA" in w.value.device for w in model.weights)
    assert tf_rdna.operator_report()["device"]["MatMul"] > 20
    assert history.keys() == on_cpu[1].keys()
    for name in history:
        np.testing.assert_allclose(history[name], on_cpu[1][name], rtol=1e-4, atol=1e-6, err_msg=name)
    assert history["loss"][1] < history["loss"][0]
    np.testing.assert_allclose(scores, on_cpu[2], rtol=1e-4)
    np.testing.assert_allclose(answers, on_cpu[3], rtol=1e-3, atol=1e-4)


def test_layers_that_need_more():
    """Convolutions in groups, which Keras compiles by XLA, and a larger image, whose gradient is a sum over ten dimensions."""
    layers = keras.layers
    x, y = rng.standard_normal((4, 6, 5, 4)).astype(np.float32), np.array([0, 1, 2, 1])
    losses = []
    for device in ("/device:RDNA:0", "/device:CPU:0"):
        with tf.device(device):
            model = keras.Sequential([keras.Input((6, 5, 4)), layers.Conv2D(6, 3, groups=2), layers.UpSampling2D(2),
                                      layers.UpSampling2D((1, 2), interpolation="bilinear"), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3)])  # fmt: skip
            own = np.random.default_rng(3)
            model.set_weights([0.3 * own.standard_normal(w.shape).astype(np.float32) for w in model.get_weights()])
            model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            losses.append(model.fit(x, y, epochs=4, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


def learned(kind, policy, optimizer, seed=3, images=True):
    """Losses and predictions of a tiny network."""
    layers, own = keras.layers, np.random.default_rng(seed)
    x, y = own.standard_normal((8, 8, 8, 3)).astype(np.float32), own.integers(0, 3, 8)
    keras.config.set_dtype_policy(policy)
    try:
        with tf.device(f"/device:{kind}:0"):
            first = [layers.Conv2D(4, 3), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(), layers.Flatten()]
            last = layers.Dense(3, dtype="float32" if "mixed" in policy else None)
            begin = first if images else [layers.Flatten(), layers.Dense(9, "tanh"), layers.BatchNormalization()]
            model = keras.Sequential([keras.Input((8, 8, 3)), *begin, layers.LayerNormalization(), last])
            model.set_weights([(0.2 * own.standard_normal(w.shape)).astype(w.dtype) if w.ndim > 1 else w for w in model.get_weights()])
            model.compile(optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
            losses = [model.train_on_batch(x[i : i + 4], y[i : i + 4]) for _ in range(2) for i in (0, 4)]
            return np.array(losses, np.float64), np.asarray(model(x, training=False), np.float64)
    finally:
        keras.config.set_dtype_policy("float32")


def momentum():
    return keras.optimizers.SGD(0.05, 0.9)


@pytest.mark.parametrize("policy,optimizer,near", [("float32", lambda: keras.optimizers.Adafactor(0.01), 1e-3), ("float64", momentum, 1e-6)], ids=["adafactor", "float64"])
def test_what_has_variables_of_other_types(policy, optimizer, near):
    """Adafactor has some of int32; under the policy float64 weights are drawn in f64."""
    for a, b in zip(learned("RDNA", policy, optimizer, images=False), learned("CPU", policy, optimizer, images=False)):
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


def test_policies_of_16_bits():
    """As far from f64 as the CPU's 16 bits are, whose roundings are others."""
    seeds = 3, 4
    exact = [learned("CPU", "float64", momentum, seed) for seed in seeds]
    for policy in ("float16", "mixed_float16"):
        far = []
        for kind in ("RDNA", "CPU"):
            runs = [learned(kind, policy, momentum, seed) for seed in seeds]
            far.append(np.sqrt(np.mean([np.square(a[1] - b[1]) for a, b in zip(runs, exact)])))
        print(policy, far)
        assert far[0] < 2 * far[1], (policy, far)


def test_gradients_of_traced_loops():
    """A function's tape makes empty lists of tensors, and adds two where one is used twice."""

    @tf.function
    def loop(x):
        rows = tf.TensorArray(tf.float32, 4)
        for i in tf.range(4):
            rows = rows.write(i, x[i] * x[i] * tf.cast(i, tf.float32))
        once = rows.stack()
        return once, tf.reduce_sum(rows.stack()) + tf.scan(lambda p, v: p * 0.5 + v, x)

    x = np.arange(4, dtype=np.float32)
    found = []
    for kind in ("RDNA", "CPU"):
        with tf.device(f"/device:{kind}:0"), tf.GradientTape() as tape:
            given = tf.constant(x)
            tape.watch(given)
            total = tf.add_n([tf.reduce_sum(y) for y in loop(given)])
            found.append(tape.gradient(total, given).numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)
    with tf.device("/device:RDNA:0"):
        one = tf.raw_ops.TensorListFromTensor(tensor=tf.ones([3, 2]), element_shape=[2])
        both = tf.raw_ops.TensorListStack(input_handle=tf.add_n([one, one]), element_shape=[2], element_dtype=tf.float32)
        assert "RDNA" in both.device and (both.numpy() == 2).all()


def test_data_stays_on_the_processor():
    with tf.device("/device:RDNA:0"):
        for x in tf.data.Dataset.range(3).batch(2):
            assert "CPU" in x.device
            assert "RDNA" in (x + 1).device
        there, none = tf.experimental.Optional.from_value(tf.ones([2])), tf.experimental.Optional.empty(tf.TensorSpec([2]))
        assert bool(there.has_value()) and not bool(none.has_value())
        assert there.get_value().numpy().tolist() == [1, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Optional"):
            none.get_value()
