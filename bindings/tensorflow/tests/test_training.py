"""Keras on the device: what is trained learns as on the CPU."""

import keras
import numpy as np
import pytest
import releases
import tensorflow as tf
import tf_rdna
from sklearn.datasets import load_digits


def digits():
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.images[order] / 16).astype(np.float32)[..., None], data.target[order]


def curve(device, build, optimizer, batches):
    """The losses of a model that begins with the same weights on every device."""
    with tf.device(device):
        model = build()
        rng = np.random.default_rng(3)
        model.set_weights([0.1 * rng.standard_normal(w.shape).astype(np.float32) if w.ndim > 1 else w
                           for w in model.get_weights()])  # fmt: skip
        model.compile(optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model, [float(model.train_on_batch(x, y)) for x, y in batches]


def perceptron():
    return keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(64, activation="relu"),
                             keras.layers.Dense(10)])  # fmt: skip


def test_perceptron_tracks_the_cpu():
    images, labels = digits()
    batches = [(images[i : i + 32], labels[i : i + 32]) for i in range(0, 640, 32)]
    for optimizer in (lambda: keras.optimizers.SGD(0.1, momentum=0.9), lambda: keras.optimizers.Adam(0.01)):
        model, ours = curve("/device:RDNA:0", perceptron, optimizer, batches)
        _, theirs = curve("/device:CPU:0", perceptron, optimizer, batches)
        assert all("RDNA" in w.value.device for w in model.weights)
        np.testing.assert_allclose(ours, theirs, rtol=2e-3)
        assert ours[-1] < 0.5 * ours[0]


def network():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(16, 3, padding="same", use_bias=False), layers.BatchNormalization(momentum=0.9),
        layers.ReLU(), layers.DepthwiseConv2D(3, padding="same"), layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(10),
    ])  # fmt: skip


def test_convolutions_track_the_cpu_and_learn_digits():
    images, labels = digits()
    batches = [(images[i : i + 64], labels[i : i + 64]) for i in range(0, 1280, 64)]
    model, ours = curve("/device:RDNA:0", network, lambda: keras.optimizers.Adam(0.01), batches)
    _, theirs = curve("/device:CPU:0", network, lambda: keras.optimizers.Adam(0.01), batches)
    np.testing.assert_allclose(ours[:10], theirs[:10], rtol=5e-3)
    with tf.device("/device:RDNA:0"):
        for _ in range(8):
            for x, y in batches:
                model.train_on_batch(x, y)
        right = model.predict_on_batch(images[1280:]).argmax(-1) == labels[1280:]
    assert right.mean() >= 0.97, right.mean()


def transformer():
    layers = keras.layers
    tokens = keras.Input((12,), dtype="int64")
    x = layers.Embedding(20, 32)(tokens)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True))
        x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation="gelu")(x)))
    return keras.Model(tokens, layers.Dense(20)(x))


def test_a_transformer_tracks_the_cpu():
    """It learns to count on from a number: each token is the one before plus a step that stays."""
    rng = np.random.default_rng(5)
    start, step = rng.integers(0, 20, (640, 1)), rng.integers(1, 4, (640, 1))
    texts = (start + step * np.arange(13)) % 20
    batches = [(texts[i : i + 32, :-1], texts[i : i + 32, 1:]) for i in range(0, 640, 32)]
    _, ours = curve("/device:RDNA:0", transformer, lambda: keras.optimizers.Adam(0.005), batches)
    _, theirs = curve("/device:CPU:0", transformer, lambda: keras.optimizers.Adam(0.005), batches)
    np.testing.assert_allclose(ours, theirs, rtol=5e-3)
    assert ours[-1] < 0.8 * ours[0]


@releases.copies_on_devices
def test_recurrent_layers_track_the_cpu():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((64, 7, 5)).astype(np.float32)
    y = (x.sum((1, 2)) > 0).astype(np.int64)

    def build():
        plain = {"recurrent_initializer": "glorot_uniform"}  # the usual one is a QR decomposition, on the CPU
        return keras.Sequential([keras.Input((7, 5)), keras.layers.LSTM(8, return_sequences=True, **plain),
                                 keras.layers.GRU(6, **plain), keras.layers.Dense(2)])  # fmt: skip

    _, ours = curve("/device:RDNA:0", build, lambda: keras.optimizers.RMSprop(0.01), [(x, y)] * 5)
    _, theirs = curve("/device:CPU:0", build, lambda: keras.optimizers.RMSprop(0.01), [(x, y)] * 5)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


NORMS = {
    "images": ((3, 4, 5, 6), {}, "float32", True), "rows": ((7, 5), {"epsilon": 1e-5, "momentum": 0.6}, "float32", True),
    "one row": ((1, 5), {}, "float32", True), "volumes": ((2, 3, 2, 4, 5), {"scale": False}, "float32", True),
    "lines": ((3, 4, 5), {"center": False}, "mixed_float16", True), "half": ((4, 3, 3, 8), {}, "mixed_bfloat16", True),
    "channels first": ((3, 4, 5, 6), {"axis": 1}, "float32", False), "frozen": ((3, 4, 5), {"trainable": False}, "float32", False),
}  # fmt: skip


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_batch_norm_in_training_is_one_operator(name, open_batch):
    """Beside Keras' own dozen of operators on the CPU: results, gradients, and what the moving statistics become."""
    shape, options, dtype, fused = NORMS[name]
    rng = np.random.default_rng(5)
    x, weights = rng.normal(3, 2, shape).astype("float32"), rng.standard_normal(shape).astype("float32")
    results = []
    for device in ("/device:RDNA:0", "/device:CPU:0"):
        with tf.device(device):
            layer = keras.layers.BatchNormalization(dtype=dtype, **options)
            layer.build(shape)
            layer.set_weights([np.random.default_rng(6).uniform(0.5, 2, w.shape) for w in layer.weights])

            @tf.function(input_signature=[tf.TensorSpec([None, *shape[1:]] if open_batch else shape)])
            def step(x):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = layer(x, training=True)
                    loss = tf.reduce_sum(tf.cast(y, "float32") * weights)
                return [y, *tape.gradient(loss, [x, *layer.trainable_weights])]

            tf_rdna.reset_operator_report()
            made = step(tf.constant(x))
            results.append([tf.cast(r, "float32").numpy() for r in made] + [w.numpy() for w in layer.non_trainable_weights])
            assert ("FusedBatchNormV3" in tf_rdna.operator_report()["device"]) == (fused and "RDNA" in device)
            assert made[0].dtype == layer.compute_dtype and made[0].shape == shape
    error = {"float32": 2e-5, "mixed_float16": 4e-3, "mixed_bfloat16": 3e-2}[dtype]
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=error, atol=error * max(1, np.abs(theirs).max()))


def test_batch_norm_with_a_mask_stays_keras_own():
    x, mask = np.random.default_rng(7).standard_normal((3, 4, 5)).astype("float32"), np.arange(12).reshape(3, 4) % 3 > 0
    results = []
    for device in ("/device:RDNA:0", "/device:CPU:0"):
        with tf.device(device):
            layer = keras.layers.BatchNormalization()
            results.append(layer(tf.constant(x), training=True, mask=tf.constant(mask)).numpy())
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)
