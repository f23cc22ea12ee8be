"""A function of tensors on /device:RDNA:0 beside TensorFlow's own CPU, results and gradients."""

import numpy as np
import tensorflow as tf

# of the type, times the number of values that are added where that is many
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23,
           "complex128": 2.0**-52}  # fmt: skip


def run(device, function, inputs, gradients):
    with tf.device(device):
        tensors = [tf.constant(x) for x in inputs]
        with tf.GradientTape() as tape:
            wanted = [t for t in tensors if t.dtype.is_floating] if gradients else []
            for t in wanted:
                tape.watch(t)
            results = function(*tensors)
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            floats = [r for r in results if r.dtype.is_floating]
            # weights that differ, so that a gradient at the wrong place shows
            loss = [tf.reduce_sum(tf.cast(r, tf.float64) * weights(r)) for r in floats] if gradients else []
        grads = tape.gradient(loss, wanted) if gradients and loss else []
    return results, [tf.convert_to_tensor(g) for g in grads if g is not None]


def weights(result):
    count = int(np.prod(result.shape))
    return tf.constant(np.cos(np.arange(count)).reshape(result.shape), tf.float64)


def close(ours, theirs, scale):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (ours.dtype, theirs.dtype, ours.shape, theirs.shape)
    a, b = ours.numpy(), theirs.numpy()
    if ours.dtype.is_complex:
        a, b = [np.stack([x.real, x.imag]) for x in (a, b)]
    elif not ours.dtype.is_floating:
        np.testing.assert_array_equal(a, b)
        return
    a, b = a.astype(np.float64), b.astype(np.float64)
    error = EPSILON[theirs.dtype.name] * (min(scale, 4) if theirs.dtype.size == 2 else scale)
    assert error < 0.1, "a tolerance that any value passes"
    largest = np.max(np.abs(b[np.isfinite(b)]), initial=0)
    np.testing.assert_allclose(a, b, rtol=error, atol=error * max(largest, 1e-3), equal_nan=True)


def compare(function, inputs, gradients=True, scale=16, cpu_type=None):
    """|scale|: how many roundings the result may be off, by the type's epsilon, relative to the largest value;
    types of 16 bits at most 4. |cpu_type|: in which the CPU computes what it has not in the inputs' type of 16 bits."""
    ours, our_grads = run("/device:RDNA:0", function, inputs, gradients)
    if cpu_type:
        narrow = next(x.dtype for x in inputs if x.dtype.itemsize == 2 and x.dtype.kind != "i")
        inputs = [x.astype(cpu_type) if x.dtype == narrow else x for x in inputs]
    theirs, their_grads = run("/device:CPU:0", function, inputs, gradients)
    if cpu_type:
        theirs, their_grads = [[tf.cast(x, narrow) if x.dtype == cpu_type else x for x in part] for part in (theirs, their_grads)]
    assert len(ours) == len(theirs) and len(our_grads) == len(their_grads)
    for a, b in zip(ours + our_grads, theirs + their_grads):
        close(a, b, scale)
    for result in ours:
        assert "RDNA" in result.device, result.device
