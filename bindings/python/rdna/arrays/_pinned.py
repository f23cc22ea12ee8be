"""Page-locked host memory, which GPUs copy from while the host goes on: blocks are powers of two and are used again."""

import ctypes
import threading

import numpy as np

from . import _core
from ._array import Array, stream_of, tensor_of
from ._core import check, library, make, sizes
from ._types import known

_LEAST = 4096


class Block:
    """|size| bytes at |address|, of which |view(n)| is NumPy's array of the first n."""

    __slots__ = ("address", "size")

    def __init__(self, address, size):
        self.address, self.size = address, size

    def view(self, nbytes):
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(self.address), np.uint8) if nbytes else np.empty(0, np.uint8)


class PinnedPool:
    """Blocks for one device, None: the default one. They are freed by clear(), those that are held when they are released."""

    def __init__(self, device=None):
        self._device = library.rdna_stream_device(_core.stream(device))
        self._lock, self._free, self._held, self._leaving = threading.Lock(), {}, {}, set()
        self.allocations = 0

    @staticmethod
    def _room(nbytes):
        return 1 << (max(int(nbytes), _LEAST) - 1).bit_length()

    def _make(self, room):
        out = ctypes.c_void_p()
        check(library.rdna_host_alloc(self._device, room, ctypes.byref(out)))
        self.allocations += 1
        return Block(out.value, room)

    def acquire(self, nbytes):
        """A block of |nbytes| at least, the caller's until it is released."""
        if nbytes < 0:
            raise ValueError(f"PinnedPool.acquire: {nbytes} bytes")
        room = self._room(nbytes)
        with self._lock:
            waiting = self._free.get(room)
            block = waiting.pop() if waiting else self._make(room)
            self._held[block.address] = block
        return block

    def release(self, block):
        with self._lock:
            if not isinstance(block, Block) or self._held.get(block.address) is not block:
                raise ValueError("PinnedPool.release: this is no block that the pool has given and not got back")
            del self._held[block.address]
            if block.address in self._leaving:
                self._leaving.discard(block.address)
                library.rdna_host_free(self._device, block.address)
            else:
                self._free.setdefault(block.size, []).append(block)

    def warmup(self, sizes):
        """Makes a block for each of |sizes|, in bytes, so that later ones need not ask the driver."""
        blocks = [self.acquire(n) for n in sizes]
        for block in blocks:
            self.release(block)

    def clear(self):
        with self._lock:
            for blocks in self._free.values():
                for block in blocks:
                    library.rdna_host_free(self._device, block.address)
            self._free = {}
            self._leaving = set(self._held)

    def get_stats(self):
        with self._lock:
            free = [block.size for blocks in self._free.values() for block in blocks]
            held = [block.size for block in self._held.values()]
        return {"held_blocks": len(held), "held_bytes": sum(held), "free_blocks": len(free), "free_bytes": sum(free), "allocations": self.allocations}


_pools, _pools_lock = {}, threading.Lock()


def pinned_pool(device=None):
    """The pool of a device, which the data loader uses too."""
    with _pools_lock:
        stream = _core.stream(device)
        if stream not in _pools:
            _pools[stream] = PinnedPool(device)
        return _pools[stream]


class Upload:
    """NumPy's values on their way to a device: |stage|, which any thread may do, then |begin|, and |settle| when the copies may be through."""

    def __init__(self, device=None):
        self.device, self.stream, self.pool, self._under_way = device, _core.stream(device), pinned_pool(device), []

    def stage(self, values):
        """A copy of |values| in pinned memory."""
        values = np.ascontiguousarray(values).reshape(np.shape(values))
        known(values.dtype)
        block = self.pool.acquire(values.nbytes)
        block.view(values.nbytes)[:] = values.reshape(-1).view(np.uint8)
        return block, values.shape, values.dtype

    def drop(self, staged):
        self.pool.release(staged[0])

    def begin(self, staged):
        """The array, whose values arrive in the order of its stream."""
        block, shape, dtype = staged
        pairs = dtype.kind == "c"
        own, whole = (_core.part_of[dtype], (*shape, 2)) if pairs else (dtype, shape)
        made = Array(make("rdna_array_empty", self.stream, _core.number_of[own], len(whole), sizes(whole)), pairs)
        event = ctypes.c_void_p()
        try:
            if made.nbytes:
                check(library.rdna_copy_to_device(stream_of(made), ctypes.c_void_p.from_address(tensor_of(made)).value, block.address, made.nbytes))
            check(library.rdna_event_create(library.rdna_stream_device(self.stream), False, ctypes.byref(event)))
            check(library.rdna_event_record(event, self.stream))
        except BaseException:
            library.rdna_stream_synchronize(self.stream)
            library.rdna_event_release(event)
            self.pool.release(block)
            raise
        self._under_way.append((event, block))
        return made

    def settle(self, wait=False):
        """Gives blocks back whose copies are through, or waits for all."""
        left = []
        for event, block in self._under_way:
            if wait:
                check(library.rdna_event_synchronize(event))
            elif library.rdna_event_query(event):
                left.append((event, block))
                continue
            library.rdna_event_release(event)
            self.pool.release(block)
        self._under_way = left
