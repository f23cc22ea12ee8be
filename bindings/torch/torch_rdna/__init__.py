"""torch.device('rdna'): AMD GPUs for PyTorch through librdna. This module is torch.rdna."""

import os
import sys
import threading

import torch

from . import _C  # registers the device type with PyTorch
from ._compile import compile_report, reset_compile_report
from ._compile import serve_inductor as _serve_inductor
from ._device import is_ours as _is_ours
from ._device import (
    DeviceProperties,
    _DeviceGuard,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_sync_debug_mode,
    ipc_collect,
    is_available,
    last_choice,
    set_device,
    set_sync_debug_mode,
    synchronize,
)
from ._collect_env import register as _register_collect_env
from ._distributed import register as _register_distributed
from ._encoder import register as _register_encoder
from ._exit import register as _register_exit
from ._fallback import fallback_mode, fallback_report, reset_fallback_report, set_fallback_mode
from ._libraries import register as _register_libraries
from ._sensors import clock_rate, device_memory_used, memory_usage, power_draw, temperature, utilization
from ._tensors import add_types as _add_types
from .graphs import Graph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (
    MemPool,
    OutOfMemoryError,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    change_current_allocator,
    CUDAPluggableAllocator,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from ._profiler import register as _register_profiler
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from ._sharing import register as _register_sharing
from ._trace import register as _register_trace
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from . import amp, graphs, memory, nvtx, random, sparse, streams

AcceleratorError = getattr(torch, "AcceleratorError", RuntimeError)
has_half = True
_add_types(globals(), "torch.rdna")


def init():
    """Opens the current device, if none is open yet."""
    _C.init(-1)


def is_initialized():
    return any(_C.is_open(i) for i in range(_C.device_count()))


def __getattr__(name):
    # torch.utils.checkpoint keeps the generators' states for the recomputation where this is true.
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.rdna' has no attribute {name!r}")


def _lazy_init():
    init()


def _is_in_bad_fork():
    return _C.in_bad_fork()


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation=True):
    return True


def is_tf32_supported():
    """False: products of f32 are computed in f32."""
    return False


def from_dlpack(source):
    """A tensor on rdna with the values of |source|, an object with __dlpack__: over the same memory where that is
    rdna's or, on CUDA's or ROCm's GPUs, of a device that rdna uses in this process; a copy of memory of the host."""
    kind, _ = source.__dlpack_device__()
    if kind in (2, 10):  # kDLCUDA, kDLROCM
        capsule = source.__dlpack__()
        _C.adopt_dlpack(capsule)
        synchronize()  # whatever stream the other library wrote it in
        return torch.utils.dlpack.from_dlpack(capsule)
    found = torch.from_dlpack(source)
    return found if _is_ours(found.device) else found.to("rdna")


def _dlpack_device(self, original=torch.Tensor.__dlpack_device__):
    # PyTorch compares with the name "privateuse1", which is no longer the device's; 12 is kDLExtDev.
    if _is_ours(self.device):
        return (12, self.device.index or 0)
    return original(self)


def _register():
    # Before torch.testing._internal is imported, which remembers the names of devices.
    torch.utils.rename_privateuse1_backend("rdna")
    torch._register_device_module("rdna", sys.modules[__name__])
    sys.modules["torch.rdna"] = sys.modules[__name__]
    for module in (amp, graphs, memory, nvtx, random, sparse, streams):
        sys.modules[module.__name__.replace(__name__, "torch.rdna", 1)] = module
    for module in (memory, random, streams):  # by the names that they had before
        folder, name = module.__name__.rsplit(".", 1)
        sys.modules[f"{folder}._{name}"] = globals()[f"_{name}"] = module
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    torch.Tensor.__dlpack_device__ = _dlpack_device
    _register_distributed()
    _register_profiler()
    _register_sharing()
    _serve_inductor()
    _register_libraries()
    _register_collect_env()
    _register_encoder()
    _register_exit()
    _register_trace()
    if os.environ.get("RDNA_AS_CUDA", "0") != "0":
        from . import _as_cuda

        _as_cuda.register()


_lock = threading.Lock()
with _lock:
    if getattr(torch, "rdna", None) is not sys.modules[__name__]:
        _register()
