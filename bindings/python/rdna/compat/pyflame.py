"""install() makes `import pyflame` mean rdna.arrays under PyFlame's names: its functions, devices and modules, over librdna.

What PyFlame names and rdna has not says so when it is asked for.
"""

import builtins
import ctypes
import sys

import numpy as np

import rdna.arrays as ra
from rdna._native import DeviceInfo
from rdna.arrays import _array, _core, _graph, nn, optim, random

from . import _pyflame_rocm
from ._names import begin, module

Tensor = ra.Array
float32, float16, float64, int32, int64 = ra.float32, ra.float16, ra.float64, ra.int32, ra.int64


# ---- devices ----


def _rocm():
    """How many AMD GPUs there are, and the sentence that says why if there are none."""
    info, number = _core.DriverInfo(), 0
    while _core.library.rdna_driver_get_info(number, ctypes.byref(info)) == 0:
        if info.name == b"hip":
            return (info.device_count if info.status == 0 else 0), (info.message or b"").decode(errors="replace")
        number += 1
    return 0, "this librdna has no driver for AMD GPUs"


def rocm_is_available():
    return _rocm()[0] > 0


def rocm_device_count():
    return _rocm()[0]


device_count = rocm_device_count


def _need_rocm(index, error):
    count, message = _rocm()
    if not count:
        raise RuntimeError(f"ROCm is not available: {message}")
    if not 0 <= index < count:
        raise error(f"there is no AMD GPU {index}; there are {count}")
    return f"rocm:{index}"


def _describe(name):
    device = _core.library.rdna_stream_device(_core.stream(name))
    info, free, total = DeviceInfo.from_address(_core.library.rdna_device_get_info(device)), ctypes.c_uint64(), ctypes.c_uint64()
    _core.check(_core.library.rdna_memory_get_info(device, ctypes.byref(free), ctypes.byref(total)))
    return {"device_id": info.index, "name": info.name.decode(), "architecture": info.arch.decode(), "total_memory": info.total_memory,
            "free_memory": free.value, "compute_units": info.compute_units}


def rocm_get_device_info(device_id=0):
    """device_id, name, architecture, total_memory, free_memory and compute_units. RuntimeError where there is no such device."""
    return _describe(_need_rocm(device_id, RuntimeError))


_current = {"name": None}


def set_device(spec):
    """'cpu', 'rocm' or 'rocm:N', where what is made from now on lies. ValueError: another text, or no such GPU; RuntimeError: there is none at all."""
    kind, colon, number = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if kind == "cerebras" and (not colon or number == "simulator"):
        raise RuntimeError("set_device: Cerebras' devices are not available: rdna computes on AMD GPUs ('rocm') and on the processor ('cpu')")
    if (kind, colon) == ("cpu", ""):
        name = "cpu"
    elif kind == "rocm" and (not colon or number.isdecimal() and number.isascii()):
        name = _need_rocm(int(number or 0), ValueError)
    else:
        raise ValueError(f"set_device: a device is 'cpu', 'rocm' or 'rocm:N', not {spec!r}")
    _core.set_default(name)
    _current["name"] = name


def get_device():
    """'cpu' or 'rocm:N'."""
    if _current["name"] is None:
        set_device("cpu")
    return _current["name"]


def device_info():
    """What is known of the current device; its type is 'cpu' or 'rocm'."""
    name = get_device()
    return {"type": name.partition(":")[0], **_describe(name)}


def rocm_set_device(device_id):
    set_device(f"rocm:{device_id}")


def rocm_get_device():
    """The number of the current device, -1 where that is no AMD GPU."""
    kind, _, number = get_device().partition(":")
    return int(number) if kind == "rocm" else -1


def synchronize():
    """Waits for all that was queued on the current device."""
    get_device()
    _core.check(_core.library.rdna_stream_synchronize(_core.stream()))


def rocm_synchronize():
    _core.check(_core.library.rdna_stream_synchronize(_core.stream(_need_rocm(builtins.max(rocm_get_device(), 0), RuntimeError))))


# ---- tensors ----


def _shape(given):
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


def _maker(function):
    def made(*shape, dtype=float32):
        get_device()
        return function(_shape(shape), dtype=dtype)
    made.__name__ = made.__qualname__ = function.__name__
    made.__doc__ = f"rdna.arrays' {function.__name__} of a shape, numbers or a list of them, on the current device."
    return made


zeros, ones, empty = (_maker(function) for function in (ra.zeros, ra.ones, ra.empty))
randn, rand = _maker(random.normal), _maker(random.uniform)
manual_seed = random.manual_seed


def full(shape, value, dtype=float32):
    get_device()
    return ra.full(_shape((shape,)), value, dtype=dtype)


def randint(low, high, size, dtype=int64):
    """From low to high - 1."""
    get_device()
    return random.integers(low, high, _shape((size,)), dtype=dtype)


def arange(start, stop=None, step=1, dtype=float32):
    get_device()
    return ra.arange(start, stop, step, dtype=dtype)


def tensor(data, dtype=float32):
    """In float32, as PyFlame's, unless another type is asked for."""
    get_device()
    return ra.asarray(np.asarray(data), dtype=dtype)


def from_numpy(array):
    """In the array's own type."""
    get_device()
    return ra.asarray(np.asarray(array))


def eval(*tensors):
    """The values of what was recorded; of one tensor that, else a list."""
    made = _graph.evaluate(list(tensors))
    return made[0] if len(made) == 1 else made


def is_lazy(x):
    return bool(_array.is_lazy(x))


def print_graph(*tensors):
    print(_graph.Graph(tensors))


class _Count(int):
    """x.numel, and x.numel()."""

    def __call__(self):
        return int(self)


# ---- functions ----


def _over(function, name):
    def reduced(x, dim=None, keepdim=False):
        return function(x, axis=dim, keepdims=keepdim)
    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = f"{name} over dim, a number or several; None: all."
    return reduced


sum, mean, prod = _over(ra.sum, "sum"), _over(ra.mean, "mean"), _over(ra.prod, "prod")


def _largest(function, pairwise, name):
    def made(x, other=None, dim=None, keepdim=False):
        if isinstance(other, int) and dim is None and not isinstance(other, bool):
            other, dim = None, other
        return function(x, axis=dim, keepdims=keepdim) if other is None else pairwise(x, other)
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"{name} over dim; of two tensors value by value."
    return made


max, min = _largest(ra.max, ra.maximum, "max"), _largest(ra.min, ra.minimum, "min")
matmul, bmm, batch_matmul = ra.matmul, ra.matmul, ra.matmul
add, sub, mul, div, pow, maximum, minimum = ra.add, ra.subtract, ra.multiply, ra.divide, ra.pow, ra.maximum, ra.minimum
neg, abs, sqrt, rsqrt, exp, log, sin, cos, tanh = ra.negative, ra.abs, ra.sqrt, ra.rsqrt, ra.exp, ra.log, ra.sin, ra.cos, ra.tanh
eq, ne, lt, less, le, gt, ge, where = ra.equal, ra.not_equal, ra.less, ra.less, ra.less_equal, ra.greater, ra.greater_equal, ra.where
relu, sigmoid, gelu, silu, leaky_relu = ra.relu, ra.sigmoid, ra.gelu, ra.silu, nn.leaky_relu
conv1d, conv2d, conv3d, conv_transpose2d = nn.conv1d, nn.conv2d, nn.conv3d, nn.conv_transpose2d
max_pool1d, max_pool2d, max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d = (
    nn.max_pool1d, nn.max_pool2d, nn.max_pool3d, nn.avg_pool1d, nn.avg_pool2d, nn.avg_pool3d)
adaptive_avg_pool1d, adaptive_avg_pool2d, global_avg_pool2d = nn.adaptive_avg_pool1d, nn.adaptive_avg_pool2d, nn.global_avg_pool2d
group_norm, instance_norm = nn.group_norm, nn.instance_norm
mse_loss, l1_loss, smooth_l1_loss, cross_entropy, nll_loss, bce_loss, bce_with_logits_loss, kl_div_loss = (
    nn.mse_loss, nn.l1_loss, nn.smooth_l1_loss, nn.cross_entropy, nn.nll_loss, nn.bce_loss, nn.bce_with_logits_loss, nn.kl_div_loss)


def softmax(x, dim=-1):
    return nn.softmax(x, dim)


def log_softmax(x, dim=-1):
    return nn.log_softmax(x, dim)


def clamp(x, min=None, max=None):
    return ra.clip(x, min, max)


def batch_norm(x, mean, var, gamma=None, beta=None, training=False, eps=1e-5):
    """By mean and var, or in training by the statistics of x."""
    return nn.batch_norm(x, mean, var, gamma, beta, training, eps)


def layer_norm(x, normalized_shape=None, weight=None, bias=None, eps=1e-5):
    """Over the last dimension, whose size normalized_shape, if it is given, says."""
    if normalized_shape is not None and (shape := _shape((normalized_shape,))) != x.shape[-1:] and shape != x.shape[-1]:
        raise NotImplementedError(f"layer_norm: rdna has it over the last dimension, {x.shape[-1:]} here, not over {shape}")
    return nn.layer_norm(x, weight, bias, eps)


def transpose(x, dim0=-2, dim1=-1):
    """Two dimensions change places."""
    dims = list(range(x.ndim))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return ra.permute_dims(x, dims)


def permute(x, *dims):
    return ra.permute_dims(x, _shape(dims))


def reshape(x, *shape):
    return ra.reshape(x, _shape(shape))


view = reshape


def squeeze(x, dim=None):
    return ra.squeeze(x, dim)


def unsqueeze(x, dim):
    return ra.expand_dims(x, axis=dim)


def slice(x, dim, start, end, step=1):
    """Places start, start + step, … before end of dimension dim."""
    keys = [builtins.slice(None)] * x.ndim
    keys[dim] = builtins.slice(start, end, step)
    return x[tuple(keys)]


def cat(tensors, dim=0):
    return ra.concat(tensors, axis=dim)


concat = cat


def stack(tensors, dim=0):
    return ra.stack(tensors, axis=dim)


def broadcast(x, *shape):
    return ra.broadcast_to(x, _shape(shape))


def copy(x):
    return ra.asarray(x, copy=True)


def contiguous(x):
    return _array.Array(_core.make("rdna_array_contiguous", x.pointer), x.pairs)


def gather(x, dim, index):
    return ra.take_along_axis(x, index, axis=dim)


def embedding(ids, weight):
    return nn.embedding(ids, weight)


def dropout(x, p=0.5, training=True):
    if not training or p == 0:
        return x
    seed, offset = random.take_place(x.size)
    return nn.dropout(x, p, seed=seed, offset=offset)


# ---- what is elsewhere or not there ----

_NOT_THERE = {
    "layout_transform": "arrays of rdna have strides, and permute is a view: there are no layouts of a fabric to change between",
    "layout": "arrays of rdna have strides, and permute is a view: there are no layouts of a fabric to change between",
    "backward": "rdna differentiates functions: pyflame.autograd.grad(f), or pyflame.nn.value_and_grad(model, f)",
}


def _refuse(where):
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{where}.{name} is not there: {_NOT_THERE.get(name, 'rdna.compat.pyflame has no such name')}")
    return __getattr__


__getattr__ = _refuse("pyflame")


def install(replace=False):
    """Puts pyflame, pyflame.nn, .optim, .autograd, .backend and .backend.rocm into sys.modules. Where a package of that name is installed, it stays, and
    ImportError says so; |replace| takes its name in this process. A second call changes nothing."""
    if not begin("pyflame", replace, "`import rdna.arrays`"):
        return
    Tensor.numel = property(lambda self: _Count(self.size))
    here = sys.modules[__name__]
    public = {name: value for name, value in vars(here).items() if not name.startswith("_") and name not in (
        "install", "begin", "module", "ctypes", "sys", "np", "ra", "nn", "optim", "random", "builtins")}
    autograd = module("pyflame.autograd", False, __name__, grad=ra.grad, value_and_grad=ra.value_and_grad, vjp=ra.vjp, jvp=ra.jvp,
                      stop_gradient=ra.stop_gradient, checkpoint=ra.checkpoint, __getattr__=_refuse("pyflame.autograd"))
    backend = module("pyflame.backend", True, __name__, rocm=_pyflame_rocm)
    top = module("pyflame", True, __name__, _of_rdna=True, nn=nn, optim=optim, autograd=autograd, backend=backend, compile=ra.compile,
                 __getattr__=__getattr__, **public)
    sys.modules.update({"pyflame": top, "pyflame.nn": nn, "pyflame.optim": optim, "pyflame.autograd": autograd, "pyflame.backend": backend,
                        "pyflame.backend.rocm": _pyflame_rocm})
