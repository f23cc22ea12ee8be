"""torch.distributed: the backends "rdna" (RCCL or NCCL, also as "rccl") and "rdna_gloo" (Gloo on copies in host memory,
for devices that neither serves and for tests; never taken unless it is asked for by name)."""

from . import _C


def _make(store, rank, size, timeout):
    return _C.make_process_group(store, rank, size, timeout.total_seconds(), None)


def _make_staged(store, rank, size, timeout):
    from torch.distributed import PrefixStore, ProcessGroupGloo

    host = ProcessGroupGloo(PrefixStore("rdna_gloo", store), rank, size, timeout)
    return _C.make_process_group(store, rank, size, timeout.total_seconds(), host)


def register():
    """Called when torch_rdna is imported; torch.distributed may be left out of a build of PyTorch."""
    import torch.distributed

    if not torch.distributed.is_available() or not hasattr(_C, "make_process_group"):
        return
    backend = torch.distributed.Backend
    for name, make in (("rdna", _make), ("rccl", _make), ("rdna_gloo", _make_staged)):
        if name not in backend.backend_list:
            backend.register_backend(name, make, devices=["rdna"])
    backend.default_device_backend_map["rdna"] = "rdna"  # not the last that was registered
