"""Operators that TensorFlow's CPU does not have, or not so, beside NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

R = tf.raw_ops
rng = np.random.default_rng(23)


def on_device(function, *inputs):
    with tf.device("/device:RDNA:0"):
        results = function(*[tf.constant(x) for x in inputs])
    results = results if isinstance(results, (list, tuple)) else [results]
    assert all("RDNA" in r.device for r in results)
    return [r.numpy() for r in results]


@pytest.mark.parametrize("real,kind,error", [(np.float32, np.complex64, 1e-5), (np.float64, np.complex128, 1e-13)])
def test_fft_of_named_dimensions(real, kind, error):
    x = (rng.standard_normal((4, 3, 5)) + 1j * rng.standard_normal((4, 3, 5))).astype(kind)
    for lengths in ([3, 5], [4, 8], [6, 2]):
        for function, expected in ((R.FFTND, np.fft.fftn), (R.IFFTND, np.fft.ifftn)):
            (ours,) = on_device(lambda t: function(input=t, fft_length=lengths, axes=[0, -1]), x)
            np.testing.assert_allclose(ours, expected(x, lengths, (0, 2)), rtol=error, atol=error * 10)
        (ours,) = on_device(lambda t: R.RFFTND(input=t, fft_length=lengths, axes=[0, 2], Tcomplex=kind), x.real)
        np.testing.assert_allclose(ours, np.fft.rfftn(x.real, lengths, (0, 2)), rtol=error, atol=error * 10)
        half = np.fft.rfftn(x.real, lengths, (0, 2)).astype(kind)
        (ours,) = on_device(lambda t: R.IRFFTND(input=t, fft_length=lengths, axes=[0, 2], Treal=real), half)
        np.testing.assert_allclose(ours, np.fft.irfftn(half, lengths, (0, 2)), rtol=error, atol=error * 10)


def test_the_smallest():
    x = rng.permutation(60).reshape(4, 15).astype(np.float32)
    values, places = on_device(lambda t: R.ApproxTopK(input=t, k=2, reduction_dimension=0, is_max_k=False), x)
    np.testing.assert_array_equal(places, np.argsort(x, 0)[:2])
    np.testing.assert_array_equal(values, np.sort(x, 0)[:2])


@pytest.mark.parametrize("batch", [False, True])
def test_second_gradient_at_places(batch):
    x, d = rng.standard_normal((2, 7, 6, 3)).astype(np.float32), rng.standard_normal((2, 7, 6, 3)).astype(np.float32)
    options = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME", "include_batch_in_index": batch}
    with tf.device("/device:CPU:0"):
        places = R.MaxPoolWithArgmax(input=x, **options)[1].numpy()
    (ours,) = on_device(lambda a, b, w: R.MaxPoolGradGradWithArgmax(input=a, grad=b, argmax=w, **options), x, d, places)
    rows = d.reshape(1, -1) if batch else d.reshape(2, -1)
    np.testing.assert_array_equal(ours, np.take_along_axis(rows, places.reshape(len(rows), -1), 1).reshape(places.shape))


@pytest.mark.parametrize("operator", ["FFTND", "IFFTND", "RFFTND", "IRFFTND", "MaxPoolGradGradWithArgmax"])
def test_the_cpu_has_none(operator):
    assert all(k.device_type != "CPU" for k in kernels.get_registered_kernels_for_op(operator).kernel)
