"""What the namespace can do, as the array API asks it."""

from . import _core, _types
from ._types import isdtype

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")


class _Info:
    """Capabilities, devices and types."""

    def capabilities(self):
        """Masks as indices and shapes that depend on values are there; arrays have 8 dimensions at most, complex ones 7."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _core.MAX_RANK}

    def default_device(self):
        """The device of arrays that are made without one."""
        return _core.device_name(_core.stream())

    def devices(self):
        """Names of all devices."""
        return _core.devices()

    def default_dtypes(self, *, device=None):
        """The types of Python's numbers, and of indices."""
        return {"real floating": _types.float32, "complex floating": _types.complex64, "integral": _types.int64, "indexing": _types.int64}

    def dtypes(self, *, device=None, kind=None):
        """The array API's types, by name; float16 and bfloat16 are there beside them."""
        return {name: getattr(_types, name) for name in _NAMES if kind is None or isdtype(getattr(_types, name), kind)}


def __array_namespace_info__():
    """What the namespace can do."""
    return _Info()
