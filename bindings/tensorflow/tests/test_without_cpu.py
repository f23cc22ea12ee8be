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


@pytest.mark.parametrize("operator", ["FFTND", "IFFTND", "RFFTND", "IRFFTND"])
def test_the_cpu_has_none(operator):
    assert all(k.device_type != "CPU" for k in kernels.get_registered_kernels_for_op(operator).kernel)
