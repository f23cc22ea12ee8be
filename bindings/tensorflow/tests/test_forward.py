"""Forward-mode derivatives beside differences in float64: TensorFlow traces a function for each operator, whose constants are
made while the kernels before are still queued, in memory that these may have used."""

import math

import numpy as np
import pytest
import tensorflow as tf

erf = np.vectorize(math.erf)
FUNCTIONS = {
    "erf of a quotient": (lambda t: tf.math.erf(t / 1.41421356) * tf.exp(t), lambda x: erf(x / 1.41421356) * np.exp(x)),
    "1 + erf": (lambda t: (1.0 + tf.math.erf(t)) * tf.exp(t), lambda x: (1 + erf(x)) * np.exp(x)),
    "gelu": (lambda t: tf.nn.gelu(t) * tf.exp(t), lambda x: x / 2 * (1 + erf(x / math.sqrt(2))) * np.exp(x)),
    "gelu and silu": (lambda t: tf.nn.gelu(t) * tf.nn.silu(t), lambda x: x / 2 * (1 + erf(x / math.sqrt(2))) * x / (1 + np.exp(-x))),
    "softplus of tanh": (lambda t: tf.math.softplus(3.0 * tf.tanh(t / 0.7)), lambda x: np.log1p(np.exp(3 * np.tanh(x / 0.7)))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_derivatives(name):
    function, exact = FUNCTIONS[name]
    x = np.random.default_rng(7).standard_normal(6)
    slope = (exact(x + 1e-6) - exact(x - 1e-6)) / 2e-6
    for _ in range(3):
        t = tf.constant(x.astype("f4"))
        with tf.autodiff.ForwardAccumulator(t, tf.ones_like(t)) as accumulator:
            y = function(t)
        np.testing.assert_allclose(y.numpy(), exact(x), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(accumulator.jvp(y).numpy(), slope, rtol=1e-5, atol=1e-5)
