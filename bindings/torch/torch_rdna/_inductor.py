"""Inductor for rdna: torch.compile's own code generator, whose kernels Triton compiles and _triton.py's driver launches.

Inductor takes a device that is registered with it: how its streams and properties are asked for (Interface), what the
Python code around the kernels calls (_Overrides), and which generator writes kernels. What it asks by the names of the
devices that it knows itself is told here too, once, when the first graph of rdna's is compiled: from then on Inductor's
kernels of this process are rdna's, so that a process does not compile for torch.cuda's devices beside."""

import functools

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from . import _C, _libraries
from ._device import get_device_properties, types
from ._triton import usable


class Interface(DeviceInterface):
    """What Dynamo and Inductor ask of a device type."""

    device = torch.rdna.device
    Event = torch.rdna.Event
    Stream = torch.rdna.Stream
    current_device = staticmethod(torch.rdna.current_device)
    set_device = staticmethod(torch.rdna.set_device)
    device_count = staticmethod(torch.rdna.device_count)
    is_available = staticmethod(torch.rdna.is_available)
    stream = staticmethod(torch.rdna.stream)
    current_stream = staticmethod(torch.rdna.current_stream)
    set_stream = staticmethod(torch.rdna.set_stream)
    synchronize = staticmethod(torch.rdna.synchronize)
    memory_allocated = staticmethod(torch.rdna.memory_allocated)
    get_raw_stream = staticmethod(_C.driver_stream)
    get_device_properties = staticmethod(get_device_properties)
    is_bf16_supported = staticmethod(torch.rdna.is_bf16_supported)

    class Worker:
        """Asked in processes that only compile, of what this one found."""

        set_device = staticmethod(torch.rdna.set_device)
        current_device = staticmethod(torch.rdna.current_device)
        get_device_properties = staticmethod(get_device_properties)

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        _C.set_stream(device_index, stream_id)

    @staticmethod
    def exchange_device(index):
        before = torch.rdna.current_device()
        if index >= 0:
            torch.rdna.set_device(index)
        return before

    maybe_exchange_device = exchange_device

    @staticmethod
    def get_compute_capability(device=None):
        """As Triton's targets name it: "gfx1100", 90."""
        card = get_device_properties(device)
        return card.arch.split(":")[0] if card.driver == "hip" else card.major * 10 + card.minor

    @staticmethod
    def is_triton_capable(device=None):
        return usable()

    @staticmethod
    def raise_if_triton_unavailable(device=None):
        if not usable():
            raise RuntimeError("Inductor's kernels for rdna are Triton's: install triton, and choose a GPU, not the host")


class _CardInKeys(CustomGraphModulePass):
    """Changes no graph. What it is known by enters the keys of Inductor's cache, which has torch.cuda's card there and
    no other: code for one architecture must not be found for another."""

    def __call__(self, gm):
        pass

    def uuid(self):
        return repr([(card.driver, card.arch, card.compute_units) for card in map(get_device_properties, range(_C.device_count()))])


def _properties(original):
    """DeviceProperties.create, by whose type Inductor chooses Triton's compiler."""
    from torch._inductor.runtime.hints import DeviceProperties

    @functools.cache
    def create(device):
        if device.type not in types:
            return original(device)
        card = get_device_properties(device)
        return DeviceProperties(
            type=card.driver,
            index=device.index,
            multi_processor_count=card.compute_units,
            cc=Interface.get_compute_capability(device),
            major=card.major,
            regs_per_multiprocessor=None,
            max_threads_per_multi_processor=None,
            max_threads_per_block=card.max_group_threads,
            warp_size=card.wave_size,
        )

    return create


@functools.cache
def overrides():
    from torch._inductor.codegen import common

    class Overrides(common.DeviceOpOverrides):
        """Lines of the Python code that launches the kernels."""

        def import_get_raw_stream_as(self, name):
            return f"from torch_rdna._C import driver_stream as {name}"

        def set_device(self, index):
            return f"torch.rdna.set_device({index})"

        def synchronize(self):
            return "torch.rdna.synchronize()"

        def device_guard(self, index):
            return f"torch.rdna.device({index})"

        def current_stream(self):
            return "torch.rdna.current_stream()"

    return Overrides()


@functools.cache
def register():
    from torch._inductor import config, utils
    from torch._inductor.codegen import common, triton, wrapper
    from torch._inductor.runtime import benchmarking, hints, triton_heuristics
    import torch.utils._triton

    class Kernel(triton.TritonKernel):
        """One whose source finds Triton's driver for rdna, in processes that only compile too."""

        @classmethod
        def gen_common_triton_imports(cls):
            return f"from torch_rdna import _triton\n_triton.serve({_C.driver()[0]!r})\n" + super().gen_common_triton_imports()

    class Scheduling(triton.TritonScheduling):
        kernel_type = Kernel

    common.init_backend_registration()  # its own first: it leaves those be that are there
    register_interface_for_device("rdna", Interface)
    common.register_device_op_overrides("rdna", overrides())
    common.register_backend_for_device(
        "rdna", Scheduling, wrapper.PythonWrapperCodegen, device_custom_pass=_CardInKeys()
    )
    utils.GPU_TYPES[:] = ["rdna"]  # of which there may be one
    if hasattr(benchmarking, "GPU_BENCHMARK_DEVICE_TYPES"):  # newer than torch 2.11
        benchmarking.GPU_BENCHMARK_DEVICE_TYPES = ("rdna",)
    hints.DeviceProperties.create = staticmethod(_properties(hints.DeviceProperties.create))
    triton_heuristics.CachingAutotuner.get_device_interface = lambda self: Interface
    for name in ("use_static_cuda_launcher", "use_static_triton_launcher"):  # they launch into torch.cuda's streams
        if hasattr(config, name):
            setattr(config, name, False)
    _libraries.replace(torch.utils._triton, "has_triton", lambda before: lambda: True)
