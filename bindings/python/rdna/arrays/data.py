"""Batches for training: threads read what comes next while the device computes, and copies go through pinned memory.

    loader = data.DataLoader(data.ArrayDataset(images, labels), batch_size=64, shuffle=True, seed=0)
    for x, target in loader:        # arrays on the device; a new order in each epoch
        ...
"""

import collections
import concurrent.futures
import operator

import numpy as np

from ._array import Array
from ._pinned import Upload


class ArrayDataset:
    """NumPy's arrays of equally many rows, of which item i is a tuple; of a single array its row."""

    def __init__(self, *arrays):
        self.arrays = [np.asarray(a) for a in arrays]
        counts = {a.shape[:1] for a in self.arrays}
        if len(counts) != 1 or counts == {()}:
            raise ValueError(f"ArrayDataset: arrays of equally many rows, not of shapes {', '.join(str(a.shape) for a in self.arrays) or '(nothing)'}")

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, i):
        rows = tuple(a[i] for a in self.arrays)
        return rows if len(rows) > 1 else rows[0]

    def batch(self, indices):
        """Many at once, which is all that a loader asks."""
        return self[np.asarray(indices, np.int64)]


def collate(items):
    """Items beside each other: numbers and arrays, ours too, become an array with a dimension in front, in the types of asarray; tuples, lists and
    dicts go part by part; anything else becomes a list."""
    first = items[0]
    if isinstance(first, dict):
        _alike(items, [item.keys() if isinstance(item, dict) else None for item in items])
        return {key: collate([item[key] for item in items]) for key in first}
    if isinstance(first, (tuple, list)):
        _alike(items, [len(item) if isinstance(item, (tuple, list)) else None for item in items])
        parts = [collate(list(part)) for part in zip(*items)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if not isinstance(first, (Array, np.ndarray, np.generic, int, float, complex)):
        return list(items)
    values = [item.numpy() if isinstance(item, Array) else np.asarray(item) for item in items]
    if len({v.shape for v in values}) > 1:
        raise ValueError(f"collate: items of shapes {', '.join(sorted({str(v.shape) for v in values}))} make no array; give the loader a collate of your own")
    made = np.stack(values)
    plain = not any(isinstance(item, (Array, np.ndarray, np.generic)) for item in items)
    narrow = {"f": np.float32, "c": np.complex64}.get(made.dtype.kind) if plain else None  # Python's own numbers
    return made.astype(narrow) if narrow else made


def _alike(items, forms):
    if any(form != forms[0] for form in forms):
        raise ValueError(f"collate: items of different forms: {type(items[0]).__name__} of {forms[0]} and others")


class _Staged:
    """An array that waits in pinned memory."""

    def __init__(self, upload, values):
        self.upload, self.block = upload, upload.stage(values)

    def begin(self):
        return self.upload.begin(self.block)

    def drop(self):
        self.upload.drop(self.block)


def _begin(staged):
    """The arrays that come of what is staged, by the ids of that."""
    begun = {}
    for i, one in enumerate(staged):
        try:
            begun[id(one)] = one.begin()
        except BaseException:
            for other in staged[i + 1:]:
                other.drop()
            raise
    return begun


def _walk(tree, kind, function):
    """|tree| with function of each |kind| in it in its place."""
    if isinstance(tree, kind):
        return function(tree)
    if isinstance(tree, dict):
        return {key: _walk(x, kind, function) for key, x in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [_walk(x, kind, function) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


class DataLoader:
    """Batches of |dataset|, which has a length and items by numbers, and may have a `batch` for many of these. |shuffle|: each epoch, which is one iteration, in
    another order, that |seed| and its number alone decide. |drop_last|: without a last batch that is smaller. |workers| threads read |prefetch| batches
    ahead, 0: none, and the batch is read when it is asked for. |collate| makes a batch of a list of items, |device| says where arrays go. What fails in a
    thread is raised where the batch is asked for."""

    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, seed=0, collate=collate, workers=1, prefetch=2, device=None):
        self.batch_size, self.workers, self.prefetch = (operator.index(n) for n in (batch_size, workers, prefetch))
        if self.batch_size < 1 or self.workers < 0 or self.prefetch < 1:
            raise ValueError(f"DataLoader: batch_size {batch_size} and prefetch {prefetch} are at least 1, workers {workers} at least 0")
        self.dataset, self.shuffle, self.drop_last, self.seed, self.collate, self.device = dataset, shuffle, drop_last, seed, collate, device
        self.epoch = 0  # the next; set it to go on from somewhere

    def __len__(self):
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _order(self, epoch):
        count = len(self.dataset)
        return np.random.default_rng((self.seed, epoch)).permutation(count) if self.shuffle else np.arange(count)

    def _read(self, indices, upload):
        """A batch whose arrays are staged, and a list of these."""
        try:
            if self.collate is collate and callable(getattr(self.dataset, "batch", None)):
                batch = self.dataset.batch(indices)
            else:
                batch = self.collate([self.dataset[int(i)] for i in indices])
        except StopIteration as error:  # which would end the loop, were it raised there
            raise RuntimeError(f"DataLoader: the dataset raised StopIteration where items {indices[:8].tolist()} were asked for; "
                               "its length says how many there are") from error
        staged = []

        def stage(values):
            if values.dtype.kind not in "biufc":
                return values
            staged.append(_Staged(upload, values))
            return staged[-1]
        try:
            return _walk(batch, np.ndarray, stage), staged
        except BaseException:
            for one in staged:
                one.drop()
            raise

    def __iter__(self):
        order, self.epoch = self._order(self.epoch), self.epoch + 1
        batches = (order[i * self.batch_size:(i + 1) * self.batch_size] for i in range(len(self)))
        return self._batches(batches, Upload(self.device))

    def _batches(self, batches, upload):
        threads = concurrent.futures.ThreadPoolExecutor(self.workers, thread_name_prefix="rdna-data") if self.workers else None
        ahead = collections.deque()
        try:
            while True:
                while threads and len(ahead) < self.prefetch and (indices := next(batches, None)) is not None:
                    ahead.append(threads.submit(self._read, indices, upload))
                if threads:
                    if not ahead:
                        return
                    batch, staged = ahead.popleft().result()
                else:
                    if (indices := next(batches, None)) is None:
                        return
                    batch, staged = self._read(indices, upload)
                upload.settle()
                begun = _begin(staged)
                yield _walk(batch, _Staged, lambda one: begun[id(one)])
        finally:  # also where the loop is left
            for future in ahead:
                future.cancel()
            if threads:
                threads.shutdown(wait=True)
            for future in ahead:
                if not future.cancelled() and future.exception() is None:
                    for one in future.result()[1]:
                        one.drop()
            upload.settle(wait=True)
