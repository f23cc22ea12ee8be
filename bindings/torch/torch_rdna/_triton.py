"""Triton's kernels on rdna's tensors: Triton's own driver for AMD's or NVIDIA's cards, in which devices, streams and
targets are torch.rdna's.

Kernels are compiled and launched as Triton does it, through the vendor's library that librdna has loaded, into the
stream that is current in torch.rdna; so they are in order with everything else there, also while a graph is recorded.
Triton numbers devices as the vendor's library does. On the host Triton has no driver: its kernels stop with its words."""

import dataclasses
import functools
import importlib
import importlib.util
import os

import torch

from . import _C
from ._device import get_device_capability, get_device_properties

_FOLDERS = {"hip": "amd", "cuda": "nvidia"}  # of triton.backends
_CLASSES = {"hip": ("HIPDriver", "HIPLauncher", "HIPUtils"), "cuda": ("CudaDriver", "CudaLauncher", "CudaUtils")}


def usable():
    """Whether Triton is installed and the driver is one of those that it compiles for."""
    return importlib.util.find_spec("triton") is not None and _C.driver()[0] in _FOLDERS


def _index_of(native):
    cards = [get_device_properties(i).native_index for i in range(_C.device_count())]
    if native not in cards:
        raise ValueError(f"device {native} of the vendor's library was asked for; those of rdna are {', '.join(map(str, cards))}")
    return cards.index(native)


@functools.cache
def driver_class(name):
    """The class of Triton's driver for librdna's driver |name|, "hip" or "cuda"."""
    theirs = importlib.import_module(f"triton.backends.{_FOLDERS[name]}.driver")
    base, launcher, utilities = (getattr(theirs, thing) for thing in _CLASSES[name])

    class RdnaDriver(base):
        launcher_cls = launcher

        def __init__(self):  # not the base's: it asks torch.cuda, and compiles what only a launch needs
            pass

        @functools.cached_property
        def utils(self):
            return utilities()

        @staticmethod
        def is_active():
            return True  # or it would not be there

        def get_current_device(self):
            return get_device_properties().native_index

        def set_current_device(self, native):
            torch.rdna.set_device(_index_of(native))

        def get_current_stream(self, native=None):
            return _C.driver_stream(_C.current_device() if native is None else _index_of(native))

        def get_device_capability(self, native=None):
            return get_device_capability(None if native is None else _index_of(native))

        def get_current_target(self):
            if name == "cuda":
                return super().get_current_target()
            from triton.backends.compiler import GPUTarget
            from triton import knobs

            card = get_device_properties()
            return GPUTarget("hip", knobs.runtime.override_arch or card.arch.split(":")[0], card.wave_size)

        def get_active_torch_device(self):
            return torch.device("rdna", _C.current_device())

        def get_device_interface(self):
            return torch.rdna

        def get_empty_cache_for_benchmark(self):
            # as large as Triton's own, larger than the last cache of any card; emulated ones have none
            values = 1 if get_device_properties().emulated else 64 * 2**20
            return torch.empty(values, dtype=torch.int32, device=self.get_active_torch_device())

    return RdnaDriver


def _one_library(library):
    """Triton looks for AMD's library by its name; where librdna has another, an emulator, that has AMD's name too in a
    folder beside it. Loaded twice it would be two, and memory of one unknown to the other."""
    from triton import knobs

    beside = os.path.join(os.path.dirname(library), "dropin", "libamdhip64.so")
    if "libamdhip64.so" not in os.path.basename(library) and not knobs.amd.libhip_path and os.path.exists(beside):
        knobs.amd.libhip_path = beside


def serve(name):
    """Makes the driver for librdna's |name| Triton's. Processes that only compile are told the name, since they may be
    children of one that has used the vendor's library, which does not begin again in a child."""
    from triton.backends import backends

    folder, ours = _FOLDERS[name], driver_class(name)
    if backends[folder].driver is not ours:
        backends[folder] = dataclasses.replace(backends[folder], driver=ours)
        importlib.import_module("triton.runtime.driver").driver.set_active(ours())


def triton_runtime_driver(module):
    name, library, _ = _C.driver()
    if name not in _FOLDERS:
        return
    if name == "hip":
        _one_library(library)
    serve(name)
