"""Ten thousand steps of training with flat memory, and what happens when there is no more: minutes, so that it is not among the
tests that pytest collects. soak.py [STEPS]"""

import gc
import os
import sys
import time

import keras
import numpy as np
import tensorflow as tf
import tf_rdna

tf.config.set_soft_device_placement(False)
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def build():
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(4, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dropout(0.1), layers.Dense(10),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def steps_in_flat_memory():
    rng = np.random.default_rng(0)
    model, sizes, began = build(), [], time.monotonic()
    for step in range(STEPS):
        count = 8 + step % 3  # three shapes by turns
        loss = model.train_on_batch(rng.standard_normal((count, 8, 8, 1)).astype(np.float32), rng.integers(0, 10, count))
        if step % 50 == 0:
            v = tf.Variable(tf.random.normal([128, 128]))  # dropped at once
            v.assign_add(tf.matmul(v, v))
        if (step + 1) % (STEPS // 10) == 0:
            gc.collect()
            info = tf_rdna.config.get_memory_info()
            sizes.append((resident(), info["current"], info["reserved"]))
            print(f"step {step + 1}: resident {sizes[-1][0] >> 20} MiB, tensors {info['current'] >> 10} KiB, pool {info['reserved'] >> 20} MiB, loss {float(loss):.3f}",
                  flush=True)  # fmt: skip
    print(f"{STEPS / (time.monotonic() - began):.0f} steps a second")
    warm = sizes[len(sizes) // 3]
    assert sizes[-1][0] - warm[0] < 24 << 20, "the process has grown by more than 24 MiB"
    assert sizes[-1][1] - warm[1] < 16 << 20, "tensors have grown by more than 16 MiB"  # variables that wait for a sweep
    assert sizes[-1][2] == warm[2], "the pool has grown"


def too_much():
    """TensorFlow waits ten seconds for memory before it gives up."""
    try:
        tf.fill([2**40], 1.0)
    except tf.errors.ResourceExhaustedError as error:
        assert "OOM when allocating tensor with shape[1099511627776]" in str(error) and "RDNA:0" in str(error), error
        assert "tried to allocate 4096.00 GiB" in str(error) and "this process holds" in str(error) and "largest holders" in str(error), error
    else:
        raise AssertionError("4 TiB were there")
    assert float(tf.reduce_sum(tf.ones([1000]))) == 1000


with tf.device("/device:RDNA:0"):
    steps_in_flat_memory()
    too_much()
print("soak: memory is flat, and what is too large is refused")
