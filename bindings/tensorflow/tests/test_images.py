"""Convolutions, pools and batch norm beside TensorFlow's CPU, with gradients."""

import beside_cpu
import numpy as np
import pytest
import tensorflow as tf

rng = np.random.default_rng(11)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [2, 1], [0, 3], [0, 0]]], ids=str)
@pytest.mark.parametrize("stride,dilation", [(1, 1), (2, 1), (1, 2)])
def test_conv(padding, stride, dilation):
    beside_cpu.compare(lambda x, w: tf.nn.conv2d(x, w, stride, padding, dilations=dilation),
                       [normal(2, 9, 8, 4), normal(3, 2, 4, 5)], scale=256,
                       gradients=dilation == 1 or isinstance(padding, str))  # fmt: skip  the CPU has no others


def test_conv_more():
    beside_cpu.compare(lambda x, w: tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"), [normal(2, 7, 6, 4), normal(1, 1, 4, 3)], scale=256)
    beside_cpu.compare(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), [normal(1, 5, 5, 3, dtype=np.float16),
                       normal(3, 3, 3, 2, dtype=np.float16)], scale=64)  # fmt: skip
    beside_cpu.compare(lambda x, w: tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME"), [normal(1, 4, 5, 6, 2), normal(2, 3, 3, 2, 3)], scale=256)
    for stride in (1, 2):
        beside_cpu.compare(lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], "SAME"),
                           [normal(2, 7, 6, 3), normal(3, 3, 3, 2)], scale=256)  # fmt: skip
    for samples in (2, -1):
        # the CPU of some releases ends the process at -1
        beside_cpu.compare(lambda x, w: tf.nn.conv2d_transpose(x, w, [samples if "RDNA" in x.device else 2, 9, 8, 3], 2, "SAME"),
                           [normal(2, 5, 4, 4), normal(3, 3, 3, 4)], scale=256)  # fmt: skip


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pools(padding):
    for dtype in (np.float32, np.float64):
        x = normal(2, 9, 8, 3, dtype=dtype)
        for function in (tf.nn.max_pool2d, tf.nn.avg_pool2d):
            beside_cpu.compare(lambda t: function(t, 3, 2, padding), [x], scale=64)
            beside_cpu.compare(lambda t: function(t, [2, 1], 2, padding), [x], scale=64)
    for function in (tf.nn.max_pool3d, tf.nn.avg_pool3d):
        beside_cpu.compare(lambda t: function(t, 2, 2, padding), [normal(1, 4, 5, 6, 2)], scale=64)


def test_pools_of_channels_are_refused():
    with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.UnimplementedError, match="not over samples or channels"):
        tf.raw_ops.MaxPool(input=tf.zeros([1, 4, 4, 4]), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("factor", [1.0, 0.1])
def test_batch_norm(training, factor):
    def function(x, scale, offset, mean, variance):
        y, new_mean, new_variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=offset, mean=mean, variance=variance, epsilon=1e-3, exponential_avg_factor=factor,
            data_format="NHWC", is_training=training)  # fmt: skip
        return y, tf.stop_gradient(new_mean), tf.stop_gradient(new_variance)

    beside_cpu.compare(function, [normal(3, 4, 5, 6), normal(6), normal(6), normal(6), np.abs(normal(6)) + 0.1], scale=512)
    one = [normal(1, 1, 1, 3), normal(3), normal(3), normal(3), np.abs(normal(3)) + 0.1]  # a value of each channel
    beside_cpu.compare(function, one, gradients=False)
