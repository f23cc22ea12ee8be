"""pyflame.backend.rocm: tuning, pinned memory and the pool, as librdna has them."""

import ctypes
import os
import threading

from rdna._native import MemoryStats
from rdna.arrays import _core
from rdna.arrays._pinned import pinned_pool
from rdna.arrays.random import uniform

_library = _core.library


class _TuneStats(ctypes.Structure):  # rdna_tune_stats
    _fields_ = [(name, ctypes.c_uint64) for name in ("entries", "hits", "misses")]


def _stream():
    """The current device's, if that is an AMD GPU, else the first such."""
    name = _core.device_name(_core.stream())
    return _core.stream(name if name.startswith("hip") else "rocm")


def _device():
    return _library.rdna_stream_device(_stream())


class TuningCache:
    """What librdna's tuner chooses among implementations, and where it keeps what it measured."""

    def enable_exhaustive_search(self, enabled=True):
        """Shapes that are met from now on are measured without a bound of time; False: for at most a second in the process, as without this."""
        _core.check(_library.rdna_tune_set(_device(), b"full" if enabled else b"auto", None))

    def set_cache_file(self, path):
        """An SQLite file, which is made where it is not there."""
        _core.check(_library.rdna_tune_set(_device(), None, os.fsencode(path)))

    def get_stats(self):
        """Of this process: how many classes of shapes have a choice, and of those where there was one how many were known and unknown."""
        stats = _TuneStats()
        _core.check(_library.rdna_tune_get_stats(_device(), ctypes.byref(stats)))
        return {"hits": stats.hits, "misses": stats.misses, "entries": stats.entries}

    def clear(self):
        raise NotImplementedError("what the tuner has chosen stays for the life of the process; delete the file that set_cache_file named, or "
                                  "rdna/tune.sqlite in the user's cache folder, before the next")


class PinnedPool:
    """Page-locked host memory for copies to the current device."""

    def warmup(self, sizes):
        """A block for each size in bytes."""
        pinned_pool(_core.device_name(_stream())).warmup(sizes)

    def acquire(self, nbytes):
        return pinned_pool(_core.device_name(_stream())).acquire(nbytes)

    def release(self, block):
        pinned_pool(_core.device_name(_stream())).release(block)

    def clear(self):
        pinned_pool(_core.device_name(_stream())).clear()

    def get_stats(self):
        return pinned_pool(_core.device_name(_stream())).get_stats()


class MemoryManager:
    """The pool of device memory."""

    def clear_pool(self):
        """Gives what is cached and not in use back to the driver."""
        _core.check(_library.rdna_memory_empty_cache(_device()))

    def get_stats(self):
        """Bytes and counts under the names of rdna/memory.h; "cached" is what is reserved and not in use."""
        stats = MemoryStats()
        _library.rdna_memory_get_stats(_device(), ctypes.byref(stats))
        found = {name: getattr(stats, name) for name, _ in MemoryStats._fields_}
        return {**found, "cached": found["reserved"] - found["allocated"]}

    def reset_peak_stats(self):
        _library.rdna_memory_reset_peaks(_device())


_lock, _made = threading.Lock(), {}


def _the(kind):
    with _lock:
        return _made.setdefault(kind, kind())


def get_tuning_cache():
    return _the(TuningCache)


def get_pinned_pool():
    return _the(PinnedPool)


def get_memory_manager():
    return _the(MemoryManager)


# Values of float32 in the largest activation of a sample: of networks of small, medium and large images.
_VALUES = {"small": 32 * 32 * 64, "medium": 112 * 112 * 64, "large": 224 * 224 * 64}


def warmup_memory_pool(batch_size=32, model_size="medium"):
    """Takes eight blocks of a batch's largest activation for such a network and gives them back, so that the pool has them. Returns their bytes."""
    if model_size not in _VALUES:
        raise ValueError(f"warmup_memory_pool: model_size is {', '.join(map(repr, _VALUES))}, not {model_size!r}")
    if batch_size < 1:
        raise ValueError(f"warmup_memory_pool: batch_size {batch_size}")
    device = _core.device_name(_stream())
    blocks = [uniform((int(batch_size), _VALUES[model_size]), device=device) for _ in range(8)]
    return sum(block.nbytes for block in blocks)
