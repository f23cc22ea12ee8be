"""Variables, whose values the plugin keeps: updates, sharing, lifetime, memory."""

import gc

import numpy as np
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


def test_checkpoint(tmp_path):
    with tf.device("/device:RDNA:0"):
        v = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    saved = checkpoint.write(str(tmp_path / "v"))
    v.assign([0.0, 0.0])
    checkpoint.read(saved)
    np.testing.assert_array_equal(v.numpy(), [1, 2])
