"""Prints the operators that have a kernel for GPUs in the TensorFlow that runs it, which must be a build for CUDA (the wheel
`tensorflow`, no GPU needed): the names of gpu_operators.txt."""

import tensorflow as tf
from tensorflow.python.framework import kernels

if not tf.test.is_built_with_cuda():
    raise SystemExit("this TensorFlow has no kernels for GPUs: it is the CPU's build")
print("\n".join(sorted({k.op for k in kernels.get_all_registered_kernels().kernel if k.device_type == "GPU"})))
