"""A tiny CNN's losses on the device and on the CPU, which test_emulated.py asks for in a process of its own."""

import keras
import numpy as np
import tensorflow as tf
import tf_rdna  # noqa: F401  lets Keras compile

tf.config.set_soft_device_placement(False)


def losses(device):
    layers = keras.layers
    with tf.device(device):
        model = keras.Sequential([
            keras.Input((4, 4, 1)), layers.Conv2D(4, 3, padding="same", use_bias=False), layers.BatchNormalization(),
            layers.ReLU(), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3),
        ])  # fmt: skip
        rng = np.random.default_rng(0)
        model.set_weights([0.3 * rng.standard_normal(w.shape).astype(np.float32) if w.ndim > 1 else w
                           for w in model.get_weights()])  # fmt: skip
        model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        x, y = rng.standard_normal((4, 4, 4, 1)).astype(np.float32), np.array([0, 1, 2, 1])
        return [float(model.train_on_batch(x, y)) for _ in range(3)]


ours, theirs = losses("/device:RDNA:0"), losses("/device:CPU:0")
np.testing.assert_allclose(ours, theirs, rtol=1e-4)
assert ours[2] < ours[0]
print("emulated and CPU:", ours, theirs)
