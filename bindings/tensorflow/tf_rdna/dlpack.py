"""Tensors shared with other libraries without a copy, by DLPack: tf.experimental.dlpack.to_dlpack takes tensors of this device too
where tf_rdna is imported, and from_dlpack capsules of it."""

import ctypes
import functools
import sys

from . import _plugin

_python = ctypes.pythonapi
_python.PyCapsule_New.argtypes, _python.PyCapsule_New.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
for _function, _result in (("IsValid", ctypes.c_int), ("GetPointer", ctypes.c_void_p)):
    getattr(_python, "PyCapsule_" + _function).argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    getattr(_python, "PyCapsule_" + _function).restype = _result
_python.PyCapsule_SetName.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

# Capsules keep the address of their name.
_NAMES, _USED = (b"dltensor", b"dltensor_versioned"), (b"used_dltensor", b"used_dltensor_versioned")


@functools.cache
def _dropper():
    """What PyCapsule calls when nobody has taken what is in one, be it while Python ends and imports no more."""
    release, valid, pointer, name = _plugin.library().rdna_dlpack_release, _python.PyCapsule_IsValid, _python.PyCapsule_GetPointer, _NAMES[0]
    release.argtypes = [ctypes.c_void_p, ctypes.c_bool]

    @ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    def drop(capsule):
        if valid(capsule, name):
            release(pointer(capsule, name), False)

    return drop


def _run(name, inputs, attributes, device):
    from tensorflow.python.eager import context, execute
    from tensorflow.python.framework import ops

    with ops.device(device):
        return execute.execute(name, 1, inputs=inputs, attrs=attributes, ctx=context.context())[0]


def to_dlpack(tensor):
    """A capsule of the tensor's memory, for whose values the call waits. They must not be written through it."""
    if "RDNA" not in tensor.device:
        raise ValueError(f"to_dlpack: the tensor is on {tensor.device}")
    managed = _run("RdnaToDlpack", [tensor], ("T", tensor.dtype.as_datatype_enum), tensor.device)
    return _python.PyCapsule_New(int(managed.numpy()), _NAMES[0], ctypes.cast(_dropper(), ctypes.c_void_p))


def _find(capsule):
    """The struct in a capsule, and whether it is a versioned one; None where there is none any more."""
    for versioned, name in enumerate(_NAMES):
        if _python.PyCapsule_IsValid(id(capsule), name):
            return _python.PyCapsule_GetPointer(id(capsule), name), bool(versioned)
    return None


def from_dlpack(x, device="/device:RDNA:0"):
    """A tensor of |device| over the memory of a capsule, or of what has __dlpack__. Where that is not contiguous, or does not
    begin where TensorFlow's tensors may, it is a copy. BufferError: there is nothing in the capsule, or a type that TensorFlow
    has not; InvalidArgumentError: it is of another device."""
    import tensorflow as tf

    capsule = x.__dlpack__() if hasattr(x, "__dlpack__") else x
    found = _find(capsule)
    if found is None:
        raise BufferError("from_dlpack: the capsule has no DLPack tensor, or somebody has taken it")
    managed, versioned = found
    _name_as_ours(managed, versioned)
    kind = _plugin.library().rdna_tensorflow_dlpack_type(ctypes.c_void_p(managed), versioned)
    if kind == 0:
        raise BufferError("from_dlpack: the capsule's values have a type that TensorFlow has not")
    with tf.device("/device:CPU:0"):
        address = tf.constant(managed, tf.int64)
    made = _run("RdnaFromDlpack", [address], ("dtype", kind, "versioned", versioned), device)
    _python.PyCapsule_SetName(id(capsule), _USED[versioned])
    return made


def to_torch(tensor):
    """A tensor of PyTorch's on its rdna device over the memory of |tensor|, which is on the same: torch_rdna is there. It must not be
    written. ValueError: the tensor is elsewhere, or PyTorch does not see that device."""
    import torch

    capsule = to_dlpack(tensor)
    managed, versioned = _find(capsule)
    header = _header(managed, versioned)
    for i in range(torch.rdna.device_count()):
        if _place_in_torch(i) == (header.device_type, header.device_id):
            header.device_type, header.device_id = _EXTENSION, i
            return torch.utils.dlpack.from_dlpack(capsule)
    raise ValueError(f"to_torch: {tensor.device} is none of PyTorch's {torch.rdna.device_count()} rdna devices")


class _Header(ctypes.Structure):  # of DLTensor
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


_OURS = 10  # DLPack's number of ROCm, of which TensorFlow has nothing else
_EXTENSION = 12  # and of devices that it has no name for: PyTorch's rdna, by PyTorch's number
_KINDS = {"host": 1, "cuda": 2, "hip": 10}


def _header(managed, versioned):
    return _Header.from_address(managed + 32 * versioned)  # 32 bytes are before a versioned one's


def _place_in_torch(index):
    """How DLPack numbers the device that PyTorch calls rdna:|index|."""
    properties = sys.modules["torch"].rdna.get_device_properties(index)
    return _KINDS.get(properties.driver, 0), 0 if properties.driver == "host" else properties.native_index


def _name_as_ours(managed, versioned):
    """Memory of PyTorch's rdna is that of the device behind it. What PyTorch has queued there is waited for."""
    header = _header(managed, versioned)
    if header.device_type == _EXTENSION and "torch_rdna" in sys.modules:
        sys.modules["torch"].rdna.synchronize(header.device_id)
        header.device_type, header.device_id = _place_in_torch(header.device_id)


def _is_ours(capsule):
    found = _find(capsule)
    return found is not None and _header(*found).device_type in (_OURS, _EXTENSION)


def _patch(module):
    theirs_to, theirs_from = module.to_dlpack, module.from_dlpack
    if getattr(theirs_to, "of_tf_rdna", False):
        return

    def to(tf_tensor):
        return (to_dlpack if "RDNA" in getattr(tf_tensor, "device", "") else theirs_to)(tf_tensor)

    def of(dlcapsule):
        return (from_dlpack if _is_ours(dlcapsule) else theirs_from)(dlcapsule)

    to.of_tf_rdna = True
    to.__doc__, of.__doc__ = theirs_to.__doc__, theirs_from.__doc__
    module.to_dlpack, module.from_dlpack = to, of


# where it is defined, and where tf.experimental has it from once that is imported
PATCHES = {"tensorflow.python.dlpack.dlpack": _patch, "tensorflow._api.v2.experimental.dlpack": _patch}
