"""Every operator of cases.py beside TensorFlow's CPU: several types, odd sizes, empty tensors, gradients."""

import beside_cpu
import numpy as np
import pytest
import tensorflow as tf
import tf_rdna
from cases import BF16, CASES, F16
from tensorflow.python.framework import kernels


def types_on_the_cpu(name):
    """Of all that an operator's kernels are for; None: of every type."""
    found = [list(c.allowed_values.list.type) for k in kernels.get_registered_kernels_for_op(name).kernel
             if k.device_type == "CPU" for c in k.constraint]  # fmt: skip
    return {t for types in found for t in types} or None


@pytest.mark.parametrize("name", CASES)
def test_operator(name):
    tf_rdna.reset_operator_report()
    known = types_on_the_cpu(name)
    for number, (types, make, function, options) in enumerate(CASES[name]):
        for t in types:
            # what the CPU has not in 16 bits it computes in 32, and the result is rounded
            instead = np.float32 if t in (F16, BF16) and known and tf.as_dtype(t).as_datatype_enum not in known else None
            for inputs in make(t):
                try:
                    beside_cpu.compare(function, inputs, cpu_type=instead, **options)
                except Exception as error:
                    error.add_note(f"case {number} of {name}, {np.dtype(t)}, shapes {[np.shape(x) for x in inputs]}")
                    raise
    assert name in tf_rdna.operator_report()["device"]
