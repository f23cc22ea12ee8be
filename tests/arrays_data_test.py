"""Batches of rdna.arrays: their order and values beside NumPy's, also while memory is used again, what threads do, what fails in them, and that
nothing is left behind."""
import collections
import threading
import time
import unittest

import numpy as np
from arrays_tools import COMPLEX, TYPES, Case, draw, ra, rng

from rdna.arrays import _pinned, data, nn, optim

Pair = collections.namedtuple("Pair", "image label")


class Items:
    """A dataset of the numbers from 0, by a function."""

    def __init__(self, count, function=lambda i: i):
        self.count, self.function = count, function

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.function(i)


class Batches(Case):
    def tearDown(self):
        """No thread goes on, and no memory is held."""
        for _ in range(200):
            if not [t for t in threading.enumerate() if t.name.startswith("rdna-data")]:
                break
            time.sleep(0.01)
        self.assertEqual([t.name for t in threading.enumerate() if t.name.startswith("rdna-data")], [])
        self.assertEqual(_pinned.pinned_pool().get_stats()["held_blocks"], 0)

    def test_types_do_not_depend_on_the_order(self):
        for items in ([1, 2.5, 3], [2.5, 1, 3], [1, 2j], [2j, 1], [True, 2.5], [1, 2], [np.float64(1), 2], [2, np.float64(1)], [1.5, np.int64(1)]):
            wanted = np.asarray(items).dtype
            if not any(isinstance(x, np.generic) for x in items):
                wanted = ra.asarray(items).dtype
            self.assertEqual(data.collate(items).dtype, wanted, items)

    def test_a_dataset_that_stops(self):
        def stop(i):
            raise StopIteration
        for workers in (0, 2):
            with self.assertRaisesRegex(RuntimeError, r"raised StopIteration where items \[0, 1\]"):
                list(data.DataLoader(Items(4, stop), batch_size=2, workers=workers))

    def test_order_and_types(self):
        arrays = [draw(dtype, (11, 2)) for dtype in TYPES + COMPLEX]
        for size, drop, workers in ((1, False, 1), (4, False, 0), (4, True, 3), (11, False, 1), (50, False, 2)):
            loader = data.DataLoader(data.ArrayDataset(*arrays), size, drop_last=drop, workers=workers, prefetch=3)
            batches = list(loader)
            count = 11 // size if drop else -(-11 // size)
            self.assertEqual((len(batches), len(loader)), (count, count))
            for i, batch in enumerate(batches):
                for got, a in zip(batch, arrays, strict=True):
                    self.same(got, a[i * size:(i + 1) * size])
        self.assertEqual((list(data.DataLoader(Items(0))), len(data.DataLoader(Items(0)))), ([], 0))
        alone, = data.DataLoader(data.ArrayDataset(arrays[7]), 20, device="cpu")
        self.same(alone, arrays[7])
        self.assertEqual(alone.device, "host")

    def test_shuffled(self):
        """Every item once an epoch, in an order that the seed and the epoch decide, whatever threads do."""
        def epochs(**options):
            loader = data.DataLoader(Items(37), 5, shuffle=True, **options)
            return [np.concatenate([x.numpy() for x in loader]) for _ in range(3)]
        first = epochs(seed=4)
        for order in first:
            np.testing.assert_array_equal(np.sort(order), np.arange(37))
        self.assertFalse((first[0] == first[1]).all())
        for other in (epochs(seed=4, workers=0), epochs(seed=4, workers=4, prefetch=7)):
            np.testing.assert_array_equal(first, other)
        self.assertFalse((epochs(seed=5)[0] == first[0]).all())
        loader = data.DataLoader(Items(37), 37, shuffle=True, seed=4)
        loader.epoch = 2
        np.testing.assert_array_equal(next(iter(loader)).numpy(), first[2])

    def test_memory_that_is_used_again(self):
        """Many batches that are looked at last, while the device has other work."""
        rows = rng.standard_normal((60, 5000)).astype("f4")
        busy, kept = ra.ones((200, 200)), []
        for x in data.DataLoader(data.ArrayDataset(rows), 3, workers=2, prefetch=4):
            for _ in range(3):
                busy = busy @ busy * 0.005
            kept.append(x)
        for i, x in enumerate(kept):
            self.same(x, rows[3 * i:3 * i + 3])

    def test_collated(self):
        items = Items(4, lambda i: {"x": np.float64([i, 2]), "pair": Pair(ra.asarray([i]), [i, float(i)]), "name": f"n{i}", "flag": i > 1, "z": 1j * i,
                                    "n": np.int16(i), "none": None})
        batch, = data.DataLoader(items, 4)
        self.same(batch["x"], np.array([[i, 2.0] for i in range(4)]))
        self.same(batch["pair"].image, np.arange(4)[:, None])
        self.same(batch["pair"].label[0], np.arange(4))
        self.same(batch["pair"].label[1], np.arange(4, dtype="f4"))
        self.same(batch["flag"], np.array([False, False, True, True]))
        self.same(batch["z"], 1j * np.arange(4), "c8")
        self.same(batch["n"], np.arange(4, dtype="i2"))
        self.assertEqual((batch["name"], batch["none"]), (["n0", "n1", "n2", "n3"], [None] * 4))
        own, = data.DataLoader(data.ArrayDataset(np.arange(3)), 3, collate=lambda items: sum(items))
        self.assertEqual(own, 3)  # asked for, though the dataset has batches
        for function, mentions in ((lambda i: np.zeros(i), "items of shapes"), (lambda i: {i: 1}, "different forms"), (lambda i: (1,) * (i + 1), "different forms"),
                                   (lambda i: np.zeros(2, "g"), None)):
            with self.assertRaisesRegex(ValueError if mentions else TypeError, mentions or "hold no values of type (float128|longdouble)"):
                list(data.DataLoader(Items(3, function), 3))

    def test_failures(self):
        """What a thread raises comes out where its batch is asked for, behind those before it; what was read ahead is given back."""
        def seventh(i):
            if i == 7:
                raise KeyError("the seventh")
            return np.full(3000, i)
        for workers in (0, 1, 3):
            loader, seen = data.DataLoader(Items(12, seventh), 2, workers=workers, prefetch=4), []
            with self.assertRaisesRegex(KeyError, "the seventh"):
                for x in loader:
                    seen.append(int(x[0, 0]))
            self.assertEqual(seen, [0, 2, 4])
        for i, x in enumerate(data.DataLoader(Items(40, lambda i: np.full(3000, i)), 2, workers=3, prefetch=6)):
            if i == 2:
                break  # with batches ahead
        self.tearDown()
        left = iter(data.DataLoader(Items(40), 2))
        next(left)
        left.close()
        for error, text, call in ((ValueError, "batch_size 0", lambda: data.DataLoader(Items(3), 0)), (ValueError, "prefetch 0", lambda: data.DataLoader(Items(3), prefetch=0)),
                                  (TypeError, "float", lambda: data.DataLoader(Items(3), 1.5)), (ValueError, r"shapes \(2,\), \(3,\)|shapes \(3,\), \(2,\)", lambda: data.ArrayDataset(np.zeros(3), np.zeros(2))),
                                  (ValueError, "nothing", lambda: data.ArrayDataset()), (ValueError, "equally many", lambda: data.ArrayDataset(np.float32(3)))):
            with self.assertRaisesRegex(error, text):
                call()

    def test_reading_ahead(self):
        """While one batch is looked at, threads read the next ones, and no more than asked."""
        read, names = [], set()

        def item(i):
            read.append(i)
            names.add(threading.current_thread().name[:9])
            return i
        batches = iter(data.DataLoader(Items(20, item), 2, workers=2, prefetch=3))
        next(batches)
        for _ in range(500):
            if len(read) >= 6:
                break
            time.sleep(0.01)
        time.sleep(0.05)
        self.assertEqual((sorted(read), names), (list(range(6)), {"rdna-data"}))
        batches.close()

    def test_training(self):
        points = rng.standard_normal((256, 2)).astype("f4")
        labels = (points[:, 0] * points[:, 1] > 0).astype("i8")
        nn.manual_seed(2)
        model, adam = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)), optim.Adam(lr=0.03)
        step = nn.value_and_grad(model, lambda x, t: nn.cross_entropy(model(x), t), compiled=True)
        loader = data.DataLoader(data.ArrayDataset(points, labels), 64, shuffle=True)
        for _ in range(40):
            for x, t in loader:
                adam.update(model, step(x, t)[1])
        self.assertGreater((model(ra.asarray(points)).numpy().argmax(1) == labels).mean(), 0.9)

    def test_pinned_pool(self):
        pool = _pinned.PinnedPool()
        pool.warmup([5000, 100, 100])
        self.assertEqual(pool.get_stats(), {"held_blocks": 0, "held_bytes": 0, "free_blocks": 3, "free_bytes": 8192 + 2 * 4096, "allocations": 3})
        first, second = pool.acquire(100), pool.acquire(4096)
        self.assertNotEqual(first.address, second.address)
        self.assertEqual((pool.allocations, second.size), (3, 4096))
        first.view(100)[:] = 7
        self.assertEqual(first.view(100).sum(), 700)
        pool.release(first)
        self.assertEqual(pool.acquire(1).address, first.address)
        pool.clear()
        self.assertEqual((pool.get_stats()["free_blocks"], pool.get_stats()["held_blocks"]), (0, 2))
        pool.release(second)
        self.assertEqual(pool.get_stats()["free_blocks"], 0)  # freed, as clear() said
        for wrong in (second, None, 3):
            with self.assertRaisesRegex(ValueError, "no block that the pool has given"):
                pool.release(wrong)
        pool.release(first)
        with self.assertRaisesRegex(ValueError, "-1 bytes"):
            pool.acquire(-1)
        with self.assertRaises(MemoryError):
            pool.acquire(2**55)
        self.assertIs(_pinned.pinned_pool(), _pinned.pinned_pool())


if __name__ == "__main__":
    unittest.main()
