"""rdna: deep learning on AMD GPUs. This package carries librdna, its kernels and the rdna program.

Devices, memory and a few operations by address are here (rdna.is_available(), rdna.device("rdna:0"), rdna.memory_allocated(), …);
arrays with gradients in rdna.arrays. Neither NumPy nor a framework is imported before something asks for it.
"""

import importlib
import os

__version__ = "0.1.0"

folder = os.path.dirname(os.path.abspath(__file__))

_PLACES = {name: place for place, names in {
    "_native": "RdnaError",
    "_devices": "is_available is_rdna_available device_count rdna_device_count current_device set_device synchronize device tf_device "
                "DeviceProperties get_device_properties get_device_capability check_device_capability DeviceContext Stream DeviceManager",
    "_memory": "AllocationOptions AllocationInfo MemoryStats MemoryAllocator MemoryManager is_device_pointer get_device_for_pointer "
               "get_memory_alignment calculate_aligned_size is_aligned align_pointer get_buffer_info memory_allocated max_memory_allocated "
               "memory_reserved memory_cached empty_cache set_memory_cache_limit memory_summary",
    "_kernels": "get_data_type_size TensorDesc MatmulConfig ConvConfig MatmulKernel ConvKernel CustomKernels KernelManager matmul conv2d",
    "_reports": "get_library_version get_hip_version get_roc_version get_build_info get_python_version get_system_info get_memory_info "
                "get_kernel_info print_system_info print_memory_info print_kernel_info run_diagnostics diagnostics LibraryConfig "
                "get_library_config set_library_config set_debug_logging set_profiling log_debug log_info log_warning log_error "
                "get_last_hip_error PerformanceStats PerformanceProfiler ScopedEvent Timer create_timer BenchmarkRunner to_dlpack from_dlpack",
}.items() for name in names.split()}  # fmt: skip
_PACKAGES = ("amd", "arrays", "compat", "config")

__all__ = [*_PLACES, *_PACKAGES, "library", "include", "program", "main"]


def __getattr__(name):
    if name in _PACKAGES:
        return importlib.import_module("." + name, __name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module("." + _PLACES[name], __name__), name)
    return found


def __dir__():
    return sorted({*globals(), *__all__})


def library():
    """Path of librdna.so."""
    return os.path.join(folder, "lib", "librdna.so.0")


def include():
    """Folder to which #include "rdna/op.h" is relative."""
    return os.path.join(folder, "include")


def program():
    """Path of the rdna program."""
    return os.path.join(folder, "bin", "rdna")


def main():
    """The command `rdna`."""
    import sys

    os.execv(program(), [program(), *sys.argv[1:]])
