"""AMD GPUs for PyTorch programs: a backend that prepares models, an optimizer, a compiler of HIP kernels, memory and
profiling. docs/amd/ has a page for each. Needs PyTorch; without its plugin or a device, models stay on the CPU and the
reason is said.

Every class is imported when it is first asked for."""

import importlib

_PLACES = {
    "config": ("AMDArchitecture", "AMDConfig", "HardwareConfig", "KernelPyTorchConfig"),
    "amd_exceptions": (
        "AMDBackendError", "AMDConfigurationError", "AMDDeviceError", "AMDOptimizationError", "HIPCompilationError",
        "HIPKernelError", "MatrixCoreError", "MIOpenError", "ROCBLASError", "ROCmMemoryError", "ROCmNotAvailableError",
        "raise_or_warn",
    ),
    "backend": ("AMDBackend", "AMDDeviceInfo", "DeviceInfo"),
    "optimizer": ("AMDOptimizer", "OptimizationResult"),
    "compiler": ("CompiledKernel", "LRUCache", "ROCmCompiler"),
    "memory": ("AMDMemoryManager", "MemoryStats"),
    "utilities": ("HIPEvent", "HIPStream", "HIPUtilities"),
}
_MODULE = {name: module for module, names in _PLACES.items() for name in names}
__all__ = sorted(_MODULE)


def __getattr__(name):
    if name in _MODULE:
        return getattr(importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
    if name in _PLACES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_MODULE, *_PLACES})
