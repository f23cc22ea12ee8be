"""Places and segments that are not there: what TensorFlow's CPU refuses is refused, not left out without a word."""

import numpy as np
import pytest
import tensorflow as tf

R = tf.raw_ops
ERRORS = (tf.errors.InvalidArgumentError, tf.errors.InternalError, tf.errors.OutOfRangeError)


def int32(*values):
    return tf.constant(values, tf.int32)


def int64(*values):
    return tf.constant(values, tf.int64)


def segments(name, indices, ids, **more):
    return lambda: getattr(R, "SparseSegment" + name)(data=tf.ones([4, 3]), indices=int32(*indices), segment_ids=int32(*ids), **more)


def gradients(name, indices, ids, **more):
    return lambda: getattr(R, "SparseSegment" + name)(grad=tf.ones([2, 3]), indices=int32(*indices), segment_ids=int32(*ids), **more)


def product(row, column, adjoint):
    return lambda: R.SparseTensorDenseMatMul(a_indices=int64([0, 0], [row, column]), a_values=[1.0, 2.0], a_shape=[3, 4],
                                             b=tf.ones([3 if adjoint else 4, 2]), adjoint_a=adjoint)  # fmt: skip


REFUSED = {f"{row}, {column} of a {'turned ' if adjoint else ''}matrix": product(row, column, adjoint)
           for row, column in ((3, 0), (-1, 0), (0, 4), (0, -1)) for adjoint in (False, True)}  # fmt: skip
for name in ("Sum", "Mean", "SqrtN"):
    for indices, ids in (([0, 4], [0, 1]), ([0, -1], [0, 1]), ([0, 1], [-1, 0])):
        REFUSED[f"{name} {indices} {ids}"] = segments(name, indices, ids)
        REFUSED[f"{name} of two {indices} {ids}"] = segments(name + "WithNumSegments", indices, ids, num_segments=2)
        for version, size in (("Grad", "output_dim0"), ("GradV2", "dense_output_dim0")):
            REFUSED[f"{name}{version} {indices} {ids}"] = gradients(name + version, indices, ids, **{size: 4})
    REFUSED[f"{name} out of order"] = segments(name, [0, 1, 2], [0, 2, 1])
    REFUSED[f"{name} of two, the third"] = segments(name + "WithNumSegments", [0, 1], [0, 2], num_segments=2)
    REFUSED[f"{name}Grad of two, the third"] = gradients(name + "Grad", [0, 1], [0, 2], output_dim0=4)
for name in ("Sum", "Prod", "Mean", "Min", "Max"):
    for ids in ([2, 1, 3], [-1, 0, 1]):
        REFUSED[f"Segment{name} {ids}"] = lambda name=name, ids=ids: getattr(R, "Segment" + name)(data=tf.ones([3, 2]), segment_ids=int64(*ids))
for outside in (3, -1):
    REFUSED[f"SparseFillEmptyRowsGrad {outside}"] = lambda outside=outside: R.SparseFillEmptyRowsGrad(
        reverse_index_map=int64(0, outside), grad_values=[1.0, 2.0, 3.0])  # fmt: skip
    REFUSED[f"RaggedFillEmptyRowsGrad {outside}"] = lambda outside=outside: R.RaggedFillEmptyRowsGrad(
        reverse_index_map=int64(0, outside), grad_values=[1.0, 2.0, 3.0])  # fmt: skip
    REFUSED[f"DynamicPartition {outside}"] = lambda outside=outside: tf.dynamic_partition(tf.ones([2]), int32(0, outside), 3)
for place in ([9, 9], [0, 4], [1, 0]):  # the second has the number of (1, 1), where there are three columns
    REFUSED[f"SparseSliceGrad {place}"] = lambda place=place: R.SparseSliceGrad(
        backprop_val_grad=[1.0, 2.0], input_indices=int64([0, 0], [1, 1], [2, 2]), input_start=int64(0, 0), output_indices=int64([0, 0], place))
REFUSED["Bincount"] = lambda: R.Bincount(arr=int32(1, -1), size=3, weights=tf.zeros([0]))
REFUSED["DenseBincount"] = lambda: R.DenseBincount(input=int32(1, -1), size=3, weights=tf.zeros([0]))
for length in (4, -1):
    REFUSED[f"ReverseSequence {length}"] = lambda length=length: R.ReverseSequence(input=tf.ones([2, 3]), seq_lengths=int32(1, length), seq_dim=1)
for name, of, corner in (("image 2 of 2", 2, 0.0), ("image -1", -1, 0.0), ("a corner that is not a number", 0, np.nan), ("a corner at infinity", 0, np.inf)):
    boxes, which = [[corner, 0.0, 1.0, 1.0]], int32(of)
    REFUSED[f"CropAndResize {name}"] = lambda boxes=boxes, of=which: R.CropAndResize(
        image=tf.ones([2, 3, 3, 1]), boxes=boxes, box_ind=of, crop_size=[2, 2])  # fmt: skip
    if np.isfinite(corner):
        REFUSED[f"CropAndResizeGradImage {name}"] = lambda boxes=boxes, of=which: R.CropAndResizeGradImage(
            grads=tf.ones([1, 2, 2, 1]), boxes=boxes, box_ind=of, image_size=[2, 3, 3, 1], T=tf.float32)  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_on_the_cpu(name):
    for device in ("/device:CPU:0", "/device:RDNA:0"):
        with tf.device(device), pytest.raises(ERRORS):
            np.array(REFUSED[name]())


def test_a_gradient_of_boxes_that_are_no_numbers_is_refused():
    """Beside which the CPU's writes outside of its memory."""
    for corner in (np.nan, np.inf):
        with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.InvalidArgumentError, match="not finite"):
            R.CropAndResizeGradImage(grads=tf.ones([1, 2, 2, 1]), boxes=[[corner, 0.0, 1.0, 1.0]], box_ind=[0], image_size=[2, 3, 3, 1], T=tf.float32)
