"""Keras on the device: what is trained learns as on the CPU."""

import keras
import numpy as np
import tensorflow as tf
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
