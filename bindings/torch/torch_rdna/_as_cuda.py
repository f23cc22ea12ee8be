"""What PyTorch's Python side has to be told for "cuda" to be a name of rdna's devices; csrc/as_cuda.cpp does C++'s.

torch.cuda stays the module that it is, since PyTorch and programs hold it: its names get torch.rdna's values."""

import functools
import sys
import types

import torch

from . import _C, _device, graphs, memory, nvtx, random, streams
from ._tensors import add_types

# What of torch.rdna is no public name and is asked of torch.cuda by PyTorch's own code.
_INNER = ("_DeviceGuard", "_is_in_bad_fork", "_lazy_init")

# What speaks of CUDA's own libraries. A build of PyTorch without CUDA fails within these, one with CUDA would reach a GPU
# that torch.rdna knows nothing of.
_REFUSED = ("check_error", "cudart", "current_blas_handle", "current_solver_handle", "list_gpu_processes")


def _refuse(name):
    def refused(*arguments, **named):
        raise NotImplementedError(f"torch.cuda.{name} speaks of a library of CUDA, which rdna is not")

    return refused


def _give(theirs, ours, names=()):
    """The module |theirs| gets what |ours| defines."""
    for name, value in list(vars(ours).items()):
        where = getattr(value, "__module__", None) or type(value).__module__
        if name in names or (name[0] != "_" and where.startswith(__package__) and not isinstance(value, types.ModuleType)):
            setattr(theirs, name, value)


def _module():
    cuda, rdna = torch.cuda, sys.modules[__package__]
    _give(cuda, rdna, _INNER)
    for ours in (graphs, memory, nvtx, random, streams):
        _give(getattr(cuda, ours.__name__.rsplit(".", 1)[1]), ours)
    cuda.CUDAGraph = cuda.graphs.CUDAGraph = graphs.Graph
    add_types(vars(cuda), "torch.cuda")
    add_types(vars(cuda.sparse), "torch.cuda.sparse", torch.sparse_coo)
    for name in _REFUSED:
        setattr(cuda, name, _refuse(name))
    cuda.default_generators = random.default_generators
    cuda._lazy_call = lambda call, **named: call()
    cuda.get_amp_supported_dtype = rdna.get_amp_supported_dtype
    cuda.nccl.is_available = lambda tensors: False  # nn.DataParallel then adds by itself
    del cuda._initialized  # true once a device was used, which only a function knows
    cuda.__getattr__ = rdna.__getattr__


def _tensors():
    def moved(self, device=None, non_blocking=False, **named):
        return self.to(device=torch.device("rdna", _device._index(device)), non_blocking=non_blocking, **named)

    def cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
        return moved(self, device, non_blocking, memory_format=memory_format)

    def cuda_of_storage(self, device=None, non_blocking=False):
        return moved(self, device, non_blocking)

    def typed(self, dtype=None, non_blocking=False, **named):
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            dtype = getattr(torch.cuda, dtype.rsplit(".", 1)[1])
        if getattr(dtype, "__module__", None) not in ("torch.cuda", "torch.rdna"):
            return plain_type(self, dtype, non_blocking, **named)
        return self.to("rdna", dtype.dtype, non_blocking=non_blocking)

    def array_interface(self):
        card = torch.rdna.get_device_properties(self.device) if self.is_cuda else None
        if card is None or card.driver == "host" or card.emulated:
            # AttributeError, by which other libraries see that there is none
            raise AttributeError("__cuda_array_interface__ is for memory of a GPU; this is memory of the host")
        torch.rdna.synchronize(self.device)  # whatever stream wrote it: the interface's version here names none
        return plain_interface.fget(self)

    plain_interface = torch.Tensor.__cuda_array_interface__
    torch.Tensor.__cuda_array_interface__ = property(array_interface)
    plain_type = torch.Tensor.type
    torch.Tensor.type = functools.wraps(plain_type)(typed)
    ours = property(lambda self: _device.is_ours(self.device))
    for name in ("cuda", "rdna"):
        setattr(torch.Tensor, name, cuda)
        setattr(torch.Tensor, f"is_{name}", ours)
        for storage in (torch.UntypedStorage, torch.TypedStorage):
            setattr(storage, name, cuda_of_storage)
            setattr(storage, f"is_{name}", ours)


def _default_type(plain):
    def set_default_tensor_type(t, /):
        name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
        if not name.startswith("torch.cuda."):
            return plain(t)
        torch.set_default_dtype(getattr(torch.cuda, name.rsplit(".", 1)[1]).dtype)
        torch.set_default_device("rdna")

    return set_default_tensor_type


def _backend(plain):
    def with_ours(backend):
        if not isinstance(backend, str):
            return backend
        return backend.replace("cuda:", "rdna:").replace("nccl", "rdna")  # also "cpu:gloo,cuda:nccl"

    def make(*arguments, **named):
        if isinstance(named.get("backend"), str):
            named["backend"] = with_ours(named["backend"])
        if plain.__name__ == "init_process_group":  # its first argument, which for new_group are the ranks
            arguments = tuple(map(with_ours, arguments[:1])) + arguments[1:]
        return plain(*arguments, **named)

    return make


def _distributed():
    distributed = torch.distributed
    if not distributed.is_available() or not hasattr(_C, "make_process_group"):
        return
    for module in (distributed, distributed.distributed_c10d):
        for name in ("init_process_group", "new_group"):
            _wrap(module, name, _backend)
        module.is_nccl_available = lambda: True
    distributed.Backend.default_device_backend_map["cuda"] = "rdna"


def _parallel():
    """nn.DataParallel, whose copies between devices are C++ of CUDA."""
    from torch.nn.parallel import comm

    def broadcast(tensor, devices=None, *, out=None):
        if out is not None:
            return tuple(to.copy_(tensor) for to in out)
        return tuple(tensor.to(torch.device("rdna", _device._index(i)), copy=True) for i in devices)

    def broadcast_coalesced(tensors, devices, buffer_size=None):
        there = [tensors, *([t.to(torch.device("rdna", _device._index(i))) for t in tensors] for i in devices[1:])]
        return [list(copies) for copies in there]

    def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
        sizes = chunk_sizes if out is None else [part.size(dim) for part in out]
        parts = tensor.split(sizes, dim) if sizes else tensor.chunk(len(devices), dim)
        if out is not None:
            return tuple(to.copy_(part) for to, part in zip(out, parts))
        return tuple(part.to(torch.device("rdna", _device._index(i))) for part, i in zip(parts, devices))

    def gather(tensors, dim=0, destination=None, *, out=None):
        to = torch.device("rdna", _device._index(destination)) if destination not in ("cpu", torch.device("cpu")) else "cpu"
        if out is not None:
            return torch.cat([t.to(out.device) for t in tensors], dim, out=out)
        return torch.cat([t.to(to) for t in tensors], dim)

    for function in (broadcast, broadcast_coalesced, scatter, gather):
        setattr(comm, function.__name__, function)


def _checkpoints():
    """Files that were saved on rdna without this module; those of CUDA are read and written by its name."""

    def restore(storage, location):
        if location.startswith("rdna"):
            return torch.serialization.default_restore_location(storage, location.replace("rdna", "cuda", 1))

    torch.serialization.register_package(19, lambda storage: None, restore)


def _wrap(module, name, make):
    plain = getattr(module, name)
    setattr(module, name, functools.wraps(plain)(make(plain)))


_done = False


def register():
    global _done
    if _done:
        return
    _C.as_cuda()  # raises before anything has changed
    _done = True
    _device.types.add("cuda")
    _module()
    _tensors()
    _wrap(torch, "set_default_tensor_type", _default_type)
    _distributed()
    _parallel()
    _checkpoints()
    activity = torch.profiler.ProfilerActivity
    activity.CUDA = activity.PrivateUse1
    torch.backends.cudnn.is_acceptable = lambda tensor: False  # or PyTorch would give cuDNN the weights of an LSTM
