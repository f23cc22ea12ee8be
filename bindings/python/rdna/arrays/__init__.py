"""Arrays on AMD GPUs without a framework: librdna's, with NumPy's shapes, types and names.

    import rdna.arrays as ra
    x = ra.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = ra.exp(x) @ x.T + 1
    y.numpy()

NumPy is all that it needs. The device is what `auto` means to the rdna command (RDNA_DRIVER, RDNA_EMULATE). Work is queued;
a value that is asked for waits for it. Names and rules are the Python array API's where it has them
(data-apis.org/array-api), NumPy's elsewhere.
"""

from ._array import (  # noqa: F401
    Array, all, any, arange, argmax, argmin, asarray, astype, broadcast_to, expand_dims, full, matmul, matrix_transpose, max, mean, min,
    ones, permute_dims, prod, reshape, result_type, squeeze, std, sum, var, where, zeros)
from ._pointwise import *  # noqa: F401,F403  the operations, a function each
from ._types import bool, float16, float32, float64, int8, int16, int32, int64, uint8  # noqa: F401
