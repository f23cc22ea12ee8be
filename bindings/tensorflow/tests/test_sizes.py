"""Sizes that no tensor has, from attributes and from tensors: an error and no end of the process, no reading elsewhere."""

import numpy as np
import pytest
import tensorflow as tf

R = tf.raw_ops
LARGE = 2**63 - 1
X = np.ones([1, 4, 4, 1], np.float32)
CUBE = np.ones([1, 3, 3, 3, 1], np.float32)


def long(x):
    return tf.constant(x, tf.int64)


def to_space(block, crops):
    return R.BatchToSpaceND(input=np.ones([4, 2, 2, 1], np.float32), block_shape=long(block), crops=long(crops))


def to_batch(block, paddings):
    return R.SpaceToBatchND(input=X, block_shape=long(block), paddings=long(paddings))


def patches(**changes):
    plain = {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    return R.ExtractImagePatches(images=X, **{**plain, **changes})


def volumes(**changes):
    return R.ExtractVolumePatches(input=CUBE, **{"ksizes": [1, 1, 1, 1, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME", **changes})


def conv(x=X, filters=(2, 2, 1, 1), **changes):
    return R.Conv2D(input=x, filter=np.ones(filters, np.float32), **{"strides": [1, 1, 1, 1], "padding": "SAME", **changes})


def pool(**changes):
    return R.MaxPool(input=X, **{"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID", **changes})


REFUSED = {
    "a product of blocks that is 0 in 64 bits": lambda: to_space([2**32, 2**32], [[0, 0], [0, 0]]),
    "crops whose sum is negative": lambda: to_space([2, 2], [[LARGE, LARGE], [0, 0]]),
    "a crop beyond the image": lambda: to_space([2, 2], [[0, LARGE], [0, 0]]),
    "paddings whose sum is negative": lambda: to_batch([2, 2], [[LARGE, LARGE], [0, 0]]),
    "a padding of nearly 2**63": lambda: to_batch([1, 1], [[LARGE - 8, 0], [0, 0]]),
    "a block of depth whose square is 0": lambda: R.DepthToSpace(input=X, block_size=2**32),
    "a block of space": lambda: R.SpaceToDepth(input=np.ones([0, 4, 4, 1], np.float32), block_size=2**33),
    "steps of 0": lambda: patches(strides=[1, 0, 1, 1]),
    "a window below 0": lambda: patches(ksizes=[1, -1, 1, 1]),
    "a window and rate of 2**64": lambda: patches(ksizes=[1, 2**40, 1, 1], rates=[1, 2**24, 1, 1]),
    "rates of 0": lambda: patches(rates=[1, 0, 1, 1]),
    "steps over samples": lambda: patches(strides=[2, 1, 1, 1]),
    "steps of 0 in a volume": lambda: volumes(strides=[1, 1, 1, 0, 1]),
    "a large window in a volume": lambda: volumes(ksizes=[1, LARGE, 1, 1, 1]),
    "mirrors whose sum is negative": lambda: R.MirrorPadGrad(input=np.ones(5, np.float32), paddings=long([[LARGE, LARGE]]), mode="REFLECT"),
    "mirrors of 2**62": lambda: R.MirrorPadGrad(input=np.ones(5, np.float32), paddings=long([[2**62, 2**62]]), mode="SYMMETRIC"),
    "a mirror of 2**62": lambda: R.MirrorPad(input=np.ones(5, np.float32), paddings=long([[2**62, 2**62]]), mode="SYMMETRIC"),
    "a slice that begins at 2**63 - 1": lambda: R.Slice(input=np.ones(5, np.float32), begin=long([LARGE]), size=long([1])),
    "a slice that begins below": lambda: R.Slice(input=np.ones(5, np.float32), begin=long([-(2**63)]), size=long([-1])),
    "parts whose sum is right in 64 bits": lambda: R.SplitV(value=np.ones([2**60, 0], np.float32), size_splits=long([2**60] * 17), axis=0, num_split=17),
    "a range of 2**63 downwards": lambda: R.Range(start=long(0), limit=long(-(2**63)), delta=long(-1)),
    "a range of 2**64": lambda: R.Range(start=long(-(2**63)), limit=long(LARGE), delta=long(1)),
    "a range of infinitely many": lambda: R.Range(start=0.0, limit=np.float32(np.inf), delta=1.0),
    "a range the other way": lambda: R.Range(start=long(5), limit=long(4), delta=long(10)),
    "a convolution of no channels": lambda: conv(np.ones([1, 4, 4, 0], np.float32)),
    "a depthwise one of no channels": lambda: R.DepthwiseConv2dNative(
        input=np.ones([1, 4, 4, 0], np.float32), filter=np.ones([2, 2, 0, 1], np.float32), strides=[1, 1, 1, 1], padding="SAME"),
    "a convolution's steps of 0": lambda: conv(strides=[1, 0, 1, 1]),
    "a convolution with holes of 0": lambda: conv(dilations=[1, 0, 0, 1]),
    "a convolution in large steps": lambda: conv(strides=[1, LARGE, LARGE, 1]),
    "a convolution padded by 2**63": lambda: conv(padding="EXPLICIT", explicit_paddings=[0, 0, LARGE, LARGE, 0, 0, 0, 0]),
    "a pool's steps of 0": lambda: pool(strides=[1, 0, 1, 1]),
    "a pool in large steps": lambda: pool(strides=[1, LARGE, LARGE, 1]),
    "places of no samples": lambda: R.MaxPoolGradGradWithArgmax(
        input=np.ones([0, 2, 2, 1], np.float32), grad=np.ones([0, 2, 2, 1], np.float32), argmax=long([[[[0]]]]), ksize=[1, 1, 1, 1],
        strides=[1, 1, 1, 1], padding="VALID"),
    "a tensor of 2**63 bytes": lambda: R.Fill(dims=long([2**40, 2**40]), value=np.float32(1)),
    "a repetition of 2**63": lambda: R.Tile(input=X, multiples=long([1, 2**62, 1, 1])),
    "a band beyond the matrix": lambda: R.MatrixBandPart(input=np.ones([3, 4]), num_lower=long(LARGE), num_upper=long(1)),
    "boundaries that are not sorted": lambda: R.Bucketize(input=X, boundaries=[2.0, 1.0]),
    "a range of quantization of several numbers": lambda: R.FakeQuantWithMinMaxVars(inputs=X, min=-np.ones(1, np.float32), max=np.ones(1, np.float32)),
    "a range of one channel of three": lambda: R.FakeQuantWithMinMaxVarsPerChannel(
        inputs=np.ones([2, 3], np.float32), min=-np.ones(1, np.float32), max=np.ones(1, np.float32)),
    "steps of more than 62 bits": lambda: R.QuantizeAndDequantizeV2(input=X, input_min=-1.0, input_max=1.0, num_bits=63),
    "steps of a dimension that is not there": lambda: R.QuantizeAndDequantizeV2(input=X, input_min=[-1.0], input_max=[1.0], axis=4),
    "a range that falls": lambda: R.QuantizeAndDequantizeV2(input=X, input_min=2.0, input_max=1.0, range_given=True),
    "a crop of no rows": lambda: R.CropAndResize(image=X, boxes=[[0.0, 0, 1, 1]], box_ind=[0], crop_size=[0, 2]),
    "the gradient of an image of 2**124 values": lambda: R.CropAndResizeGradImage(
        grads=X, boxes=[[0.0, 0, 1, 1]], box_ind=[0], image_size=[2**31 - 1] * 4, T=tf.float32),
    "more steps than there are": lambda: R.BlockLSTM(
        seq_len_max=long(3), x=np.ones([2, 1, 1], np.float32), cs_prev=np.ones([1, 1], np.float32), h_prev=np.ones([1, 1], np.float32),
        w=np.ones([2, 4], np.float32), wci=np.ones(1, np.float32), wcf=np.ones(1, np.float32), wco=np.ones(1, np.float32), b=np.ones(4, np.float32)),
    "a weight of other cells": lambda: R.GRUBlockCell(
        x=np.ones([1, 2], np.float32), h_prev=np.ones([1, 3], np.float32), w_ru=np.ones([4, 6], np.float32), w_c=np.ones([5, 3], np.float32),
        b_ru=np.ones(6, np.float32), b_c=np.ones(3, np.float32)),
    "three diagonals of which there are two": lambda: R.TridiagonalSolve(diagonals=np.ones([2, 3]), rhs=np.ones([3, 1])),
    "a disturbance of what has no answer": lambda: R.TridiagonalSolve(diagonals=np.ones([3, 3]), rhs=np.ones([3, 1]), perturb_singular=True),
    "diagonals of another length": lambda: R.TridiagonalMatMul(superdiag=np.ones([1, 2]), maindiag=np.ones([1, 3]), subdiag=np.ones([1, 3]), rhs=np.ones([3, 2])),
    "a convolution of one dimension": lambda: R.Conv(input=np.ones([1, 4, 2], np.float32), filter=np.ones([3, 2, 1], np.float32), strides=[1, 1, 1], padding="SAME"),
    "a convolution behind all dimensions": lambda: R.Conv(
        input=X, filter=np.ones([2, 2, 1, 1], np.float32), strides=[1, 1, 1, 1], padding="SAME", batch_dims=7),
    "a neighbourhood below 0": lambda: R.LRN(input=X, depth_radius=-1),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with tf.device("/device:RDNA:0"), pytest.raises((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError)):
        print(REFUSED[name]())


def test_large_numbers_that_are_right():
    large = {
        "slice": lambda: R.StridedSlice(input=np.arange(5.0), begin=long([-(2**63)]), end=long([LARGE]), strides=long([LARGE])),
        "back": lambda: R.StridedSlice(input=np.arange(5.0), begin=long([LARGE]), end=long([-(2**63)]), strides=long([-(2**63) + 1])),
        "neighbours": lambda: R.LRN(input=np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3), depth_radius=2**20),
        "step": lambda: R.ExtractImagePatches(
            images=X, ksizes=[1, 2, 2, 1], strides=[1, 2**30, 3, 1], rates=[1, 1, 1, 1], padding="SAME"),
    }  # fmt: skip
    for name, function in large.items():
        results = []
        for device in ("/device:RDNA:0", "/device:CPU:0"):
            with tf.device(device):
                results.append(function().numpy())
        np.testing.assert_allclose(*results, rtol=1e-5, err_msg=name)
    with tf.device("/device:RDNA:0"):  # of which the CPU of releases before 2.20 has one number
        steps = R.Range(start=long(-(2**63)), limit=long(LARGE), delta=long(2**62)).numpy()
    assert steps.tolist() == [-(2**63) + i * 2**62 for i in range(4)]
    with tf.device("/device:RDNA:0"):  # of which the CPU takes 32 bits
        rolled = R.Roll(input=np.arange(5.0), shift=long([LARGE, LARGE]), axis=long([0, 0])).numpy()
    np.testing.assert_array_equal(rolled, np.roll(np.arange(5.0), 2 * LARGE % 5))
