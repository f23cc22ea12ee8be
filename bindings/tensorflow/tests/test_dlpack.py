"""DLPack without a copy. On the host driver the device's memory is the processor's, so that NumPy reads and lends it."""

import gc
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_rdna
from tf_rdna import dlpack

rng = np.random.default_rng(29)
TYPES = [np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.complex64, bool]


class Lent:
    """What NumPy takes and TensorFlow gives."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **_):
        return tf.experimental.dlpack.to_dlpack(self.tensor)

    def __dlpack_device__(self):
        return (1, 0)


def aligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    x = memory[start : start + size].view(dtype).reshape(shape)
    x[...] = rng.integers(0, 2, shape)
    return x


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_out(dtype):
    x = rng.integers(0, 2, (3, 5)).astype(dtype)
    with tf.device("/device:RDNA:0"):
        t = tf.identity(tf.constant(x))
    lent, again = np.from_dlpack(Lent(t)), np.from_dlpack(Lent(t))
    assert lent.ctypes.data == again.ctypes.data or dtype == np.int32  # the tensor's own memory; of int32 that is not the device's
    np.testing.assert_array_equal(lent, t.numpy())
    expected = t.numpy()
    del t, again
    gc.collect()
    with tf.device("/device:RDNA:0"):
        tf.fill([64], 7.0)  # would take the memory, were it free
    np.testing.assert_array_equal(lent, expected)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_in(dtype):
    x = aligned((4, 3), dtype)
    t = dlpack.from_dlpack(x)
    assert "RDNA" in t.device and t.dtype == dtype and t.shape == (4, 3)
    np.testing.assert_array_equal(t.numpy(), x)
    if dtype == np.int32:
        return  # whose values TensorFlow takes to the processor
    x[0, 0] = not x[0, 0]  # it is the same memory
    with tf.device("/device:RDNA:0"):
        np.testing.assert_array_equal(tf.transpose(t).numpy(), x.T)  # a tensor keeps what numpy() gave
    if dtype == np.float32:
        with tf.device("/device:RDNA:0"):
            np.testing.assert_array_equal(tf.matmul(t, t, transpose_b=True).numpy(), x @ x.T)


def test_in_with_gaps_and_odd_places():
    x = aligned((6, 5), np.float32)
    for view in (x.T, x[::2, 1:], x[1:, 3], x[:0], x[2, 2, ...]):
        t = dlpack.from_dlpack(view)
        np.testing.assert_array_equal(t.numpy(), view)
        assert t.shape == view.shape and "RDNA" in t.device


def test_what_is_lent_lives_as_long():
    freed = []

    class Watched(np.ndarray):
        def __del__(self):
            freed.append(True)

    x = aligned((64, 64), np.float32).view(Watched)
    t = dlpack.from_dlpack(x)
    del x
    gc.collect()
    assert not freed
    y = t + 1
    del t
    gc.collect()
    assert freed and y.numpy().min() >= 1


def test_round_and_nobody_takes():
    with tf.device("/device:RDNA:0"):
        before = tf_rdna.config.get_memory_info()["current"]
        t = tf.random.normal([256, 256])
        held = tf_rdna.config.get_memory_info()["current"]
        capsule = tf.experimental.dlpack.to_dlpack(t)
        back = dlpack.from_dlpack(capsule)
        np.testing.assert_array_equal(back.numpy(), t.numpy())
        assert tf_rdna.config.get_memory_info()["current"] == held  # no copy
        with pytest.raises(BufferError, match="somebody has taken it"):
            dlpack.from_dlpack(capsule)
        for _ in range(100):
            tf.experimental.dlpack.to_dlpack(t)
        del t, back, capsule
        gc.collect()
        assert tf_rdna.config.get_memory_info()["current"] < before + 2**16


def test_with_arrays_of_ours():
    """rdna.arrays in this process has the librdna that the plugin has loaded, and its memory."""
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    import rdna.arrays as ra

    with tf.device("/device:RDNA:0"):
        t = tf.random.normal([50, 40])
        array = ra.from_dlpack(Lent(t), device="host", copy=False)
        total = ra.sum(array * 2)
        np.testing.assert_allclose(float(total), 2 * float(tf.reduce_sum(t)), rtol=1e-5)
        before = tf_rdna.config.get_memory_info()["current"]
        back = dlpack.from_dlpack(array.__dlpack__(max_version=(1, 0)))
        np.testing.assert_array_equal(tf.transpose(back).numpy(), t.numpy().T)
        assert np.from_dlpack(Lent(back)).ctypes.data == np.from_dlpack(Lent(t)).ctypes.data
        assert tf_rdna.config.get_memory_info()["current"] - before < 2**13


def test_refusals():
    with pytest.raises(ValueError, match="the tensor is on"), tf.device("/device:CPU:0"):
        dlpack.to_dlpack(tf.zeros([2]))
    with pytest.raises(BufferError, match="no DLPack tensor"):
        dlpack.from_dlpack(object())
    with tf.device("/device:CPU:0"):  # TensorFlow's own goes on
        assert tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(tf.ones([2]))).numpy().tolist() == [1, 1]
    with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.NotFoundError, match="RdnaToDlpack"):
        dlpack.to_dlpack(tf.cast(tf.zeros([2]), tf.complex128))
