"""Arrays on AMD GPUs without a framework: librdna's, with NumPy's shapes, types and names.

    import rdna.arrays as ra
    x = ra.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = ra.exp(x) @ x.T + 1
    y.numpy()

NumPy is all that it needs. The device is what `auto` means to the rdna command (RDNA_DRIVER, RDNA_EMULATE). Work is queued;
a value that is asked for waits for it. Names and rules are the Python array API's (data-apis.org/array-api), NumPy's where
that has none.
"""

from math import e, inf, nan, pi  # noqa: F401

from . import _methods  # noqa: F401
from ._array import Array  # noqa: F401
from ._exchange import from_dlpack  # noqa: F401
from ._grad import checkpoint, compile, grad, graph, jvp, stop_gradient, value_and_grad, vjp  # noqa: F401
from ._indexing import index_add, nonzero, take, take_along_axis  # noqa: F401
from ._making import (  # noqa: F401
    arange, asarray, astype, empty, empty_like, eye, full, full_like, linspace, meshgrid, ones, ones_like, tril, triu, zeros, zeros_like)
from ._moving import (  # noqa: F401
    broadcast_arrays, broadcast_to, concat, expand_dims, flip, matrix_transpose, moveaxis, permute_dims, repeat, reshape, roll, squeeze, stack,
    tile, unstack)
from ._pointwise import *  # noqa: F401,F403  the operations, a function each
from ._products import matmul, tensordot, vecdot  # noqa: F401
from ._reducing import all, any, argmax, argmin, count_nonzero, diff, max, mean, min, prod, std, sum, var  # noqa: F401
from ._types import (  # noqa: F401
    bfloat16, bool, can_cast, complex64, complex128, finfo, float16, float32, float64, iinfo, int8, int16, int32, int64, isdtype, result_type, uint8,
    uint16, uint32, uint64)

__array_api_version__ = "2024.12"
newaxis = None


# What not every program asks for is imported when one does: these modules, and functions by the module that has them.
_MODULES = ("data", "distributed", "fft", "linalg", "nn", "optim", "random")
_LATER = {name: module for module, names in {
    "_files": "load load_metadata save",
    "_info": "VERSIONS __array_namespace_info__",
    "_numpy": "allclose array_equal dot einsum isclose logsumexp median pad split swapaxes",
    "_origins": "origin trace_origins",
    "_ordering": "argsort cumulative_prod cumulative_sum searchsorted sort unique_all unique_counts unique_inverse unique_values",
}.items() for name in names.split()}


def __getattr__(name):
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    return found


def __dir__():
    return sorted({*globals(), *_MODULES, *_LATER})
