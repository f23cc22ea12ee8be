"""Memory shared with other libraries in this process, by DLPack."""

import ctypes
import sys

from . import _core
from ._array import Array, again, empty_on, extension, from_numpy, later, report, run, stream_of
from ._core import library
from ._making import asarray

CPU = 1
# Capsules keep the address of their name, and PyCapsule calls the function when nobody took what is in one.
_NAMES = (b"dltensor", b"dltensor_versioned")
_USED = (b"used_dltensor", b"used_dltensor_versioned")
_python = ctypes.PyDLL(None)
_python.PyCapsule_New.argtypes, _python.PyCapsule_New.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
# of an object, while Python lets go of it too, by its address
_python.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_python.PyCapsule_GetPointer.argtypes, _python.PyCapsule_GetPointer.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_void_p
_python.PyCapsule_SetName.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


# The extension's destructor of a capsule that nobody took. A function of Python cannot be one: it may be called while an exception is on its way,
# NumPy's of a device that it does not know, and would fail of it. Without the extension capsules are looked through when the next one is made.
_destructor = extension.capsule_destructor(_core.address("rdna_dlpack_release")) if extension else None
_given = []


def _capsule(managed, name):
    if _destructor:
        return _python.PyCapsule_New(managed, name, _destructor)
    made = _python.PyCapsule_New(managed, name, None)
    _let_go()
    _given.append(made)
    return made


def _let_go():
    """Lets go of what is in capsules that nobody has any more, and forgets those that were taken."""
    for at in reversed(range(len(_given))):
        capsule = _given[at]
        if sys.getrefcount(capsule) > 3:  # here, in the list, and in the call
            continue
        del _given[at]
        for versioned, name in enumerate(_NAMES):
            if _python.PyCapsule_IsValid(id(capsule), name):
                library.rdna_dlpack_release(_python.PyCapsule_GetPointer(id(capsule), name), bool(versioned))
                break


def dlpack_device(stream):
    kind, index = ctypes.c_int32(), ctypes.c_int32()
    library.rdna_dlpack_device(stream, ctypes.byref(kind), ctypes.byref(index))
    return kind.value, index.value


def to_dlpack(x, /, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule of the values, for which the call waits. They must not be written through it unless they are a copy: |copy| True, and
    without it where the reader's |max_version| is before 1.0, which has no flag to say so."""
    if later:
        report(len(later))
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    if dl_device is not None and tuple(dl_device) != dlpack_device(stream_of(x)):
        if tuple(dl_device) != (CPU, 0) or copy is False:
            raise BufferError(f"the values are on DLPack's device {dlpack_device(stream_of(x))}, not on {tuple(dl_device)}")
        x, copy = from_numpy(x.numpy(), "host"), True
    copied = copy or (copy is None and not versioned)
    managed = ctypes.c_void_p()
    _core.check(library.rdna_array_to_dlpack(x.pointer, versioned, bool(copied), x.pairs, ctypes.byref(managed)))
    return _capsule(managed.value, _NAMES[versioned])


def _take(capsule, stream):
    """An array over what is in a capsule, which then is nobody else's."""
    address = id(capsule)
    for versioned, name in enumerate(_NAMES):
        if _python.PyCapsule_IsValid(address, name):
            break
    else:
        raise BufferError("from_dlpack: the capsule has no DLPack tensor, or somebody has taken it")
    pairs = ctypes.c_bool()
    pointer = _core.make("rdna_array_from_dlpack", stream, _python.PyCapsule_GetPointer(address, name), bool(versioned), ctypes.byref(pairs))
    _python.PyCapsule_SetName(address, _USED[versioned])
    return Array(pointer, pairs.value)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of another library's, which must then stay as it is; a copy with |copy| True, or where |device| is another."""
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack is of arrays that have __dlpack__, not of {type(x).__name__}; asarray takes other things")
    place = tuple(int(n) for n in x.__dlpack_device__())
    stream = _core.stream(device)
    if place != dlpack_device(stream):
        stream = _stream_of(place)
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # of before 1.0
        capsule = x.__dlpack__()
    made = _take(capsule, stream)
    if place[0] != CPU:
        _core.check(library.rdna_device_synchronize(library.rdna_stream_device(stream)))  # the other library's work is on streams of its own
    if device is not None and made.device != _core.device_name(_core.stream(device)):
        if copy is False:
            raise ValueError(f"from_dlpack: on {device} there is but a copy of values that are on {made.device}")
        return from_numpy(made.numpy(), device)
    if not copy:
        return again(made)
    copied = empty_on(stream, made.shape, made.dtype)
    run("copy", made, made, copied)
    return copied


def _stream_of(place):
    """The stream of the device that DLPack calls |place|."""
    for name in _core.devices():
        if dlpack_device(_core.stream(name)) == place:
            return _core.stream(name)
    raise BufferError(f"from_dlpack: the values are on DLPack's device {place}, which is none of {', '.join(_core.devices())}; bring them to the host")
