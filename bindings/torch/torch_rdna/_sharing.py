"""Tensors of rdna in torch.multiprocessing: queues, pipes, and the arguments of processes.

Memory of the device cannot be opened by another process. What arrives there is a copy, on the device of the same number,
and its values travel in the message: nothing has to be kept until they are taken. Tensors that share a storage and are
sent together share one on arrival."""

import ctypes
import warnings
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing import reductions

from ._device import is_ours

_warned = False


def _warn():
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "a tensor of rdna goes to another process as a copy: what one of them writes into it, the other does not see",
            UserWarning, stacklevel=2)


def _rebuild(values, index):
    on_host = torch.frombuffer(bytearray(values), dtype=torch.uint8) if values else torch.empty(0, dtype=torch.uint8)
    return on_host.to(torch.device("rdna", index)).untyped_storage()


def _reduce(storage):
    if not is_ours(storage.device):
        return reductions.reduce_storage(storage)
    _warn()
    index = storage.device.index
    torch.rdna.synchronize(index)  # whatever stream wrote it: a queue's thread has a current stream of its own
    on_host = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage).cpu()
    return _rebuild, (ctypes.string_at(on_host.data_ptr(), on_host.numel()) if on_host.numel() else b"", index)


def register():
    ForkingPickler.register(torch.UntypedStorage, _reduce)
