"""torch.distributed: the backends "rdna" (RCCL or NCCL, also as "rccl") and "rdna_gloo" (Gloo on copies in host memory,
for devices that neither serves and for tests; never taken unless it is asked for by name)."""

import torch

from . import _C
from ._device import is_ours


def _make(store, rank, size, timeout):
    return _C.make_process_group(store, rank, size, timeout.total_seconds(), None)


def _make_staged(store, rank, size, timeout):
    from torch.distributed import PrefixStore, ProcessGroupGloo

    host = ProcessGroupGloo(PrefixStore("rdna_gloo", store), rank, size, timeout)
    return _C.make_process_group(store, rank, size, timeout.total_seconds(), host)


def _batch_together():
    """torch 2.6 puts sends and receives under way at once on CUDA alone; elsewhere those that cross would wait for each
    other for ever."""
    from torch.distributed import distributed_c10d as c10d

    plain = c10d.batch_isend_irecv

    def batch_isend_irecv(p2p_op_list):
        if not p2p_op_list or not is_ours(p2p_op_list[0].tensor.device):
            return plain(p2p_op_list)
        c10d._check_p2p_op_list(p2p_op_list)
        first = p2p_op_list[0]
        with c10d._coalescing_manager(first.group, first.tensor.device, async_ops=True) as manager:
            for p in p2p_op_list:
                p.op(p.tensor, p.peer, group=p.group, tag=p.tag)
        return manager.works

    c10d.batch_isend_irecv = torch.distributed.batch_isend_irecv = batch_isend_irecv


def register():
    """Called when torch_rdna is imported; torch.distributed may be left out of a build of PyTorch."""
    import torch.distributed

    if not torch.distributed.is_available() or not hasattr(_C, "make_process_group"):
        return
    backend = torch.distributed.Backend
    for name, make in (("rdna", _make), ("rccl", _make), ("rdna_gloo", _make_staged)):
        if name not in backend.backend_list:
            backend.register_backend(name, make, devices=["rdna"])
    if not hasattr(torch._C._distributed_c10d.Backend, "supports_coalescing"):
        _batch_together()
    backend.default_device_backend_map["rdna"] = "rdna"  # not the last that was registered
