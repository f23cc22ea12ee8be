"""State in files: what rdna.arrays writes as safetensors is read by the format's description and the other way round, files that are wrong are
refused with a sentence, and training that goes on from a file is training that was not interrupted."""
import concurrent.futures
import json
import os
import pathlib
import struct
import tempfile
import unittest

import numpy as np
from arrays_tools import TYPES, Case, any_shape, draw, ra, rng

from rdna.arrays import nn, optim

NAMES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64",
         "uint16": "U16", "uint32": "U32", "uint64": "U64"}


def packed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def unpacked(content):
    """NumPy's arrays of a file that is right, by the format's description."""
    length, = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    types = {name: dtype for dtype, name in NAMES.items()}
    return {name: np.frombuffer(data[slice(*e["data_offsets"])], types[e["dtype"]]).reshape(e["shape"]) for name, e in header.items()
            if name != "__metadata__"}


class Files(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "state.safetensors"

    def test_written_and_read(self):
        arrays = {f"{dtype}.{i}": draw(dtype, any_shape()) for dtype in TYPES for i in range(4)} | {"ü \"q\"\n": np.float32([1.5]), "": np.int8([3])}
        views = {name: ra.asarray(a) for name, a in arrays.items()}
        views["turned"] = ra.asarray(np.arange(6.0).reshape(2, 3)).T
        arrays["turned"] = np.arange(6.0).reshape(2, 3).T
        ra.save(self.path, views, metadata={"format": "pt", "ä": ""})
        content = self.path.read_bytes()
        for name, a in unpacked(content).items():
            np.testing.assert_array_equal(a, arrays[name], name)
            self.assertEqual(a.dtype, arrays[name].dtype)
        length, = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        self.assertEqual((length % 8, content[8:9], len(header)), (0, b"{", len(arrays) + 1))
        self.assertTrue(all(e["data_offsets"][0] % np.dtype(next(t for t, n in NAMES.items() if n == e["dtype"])).itemsize == 0
                            for name, e in header.items() if name != "__metadata__"))
        read = ra.load(self.path)
        self.assertEqual(read.keys(), arrays.keys())
        for name, a in arrays.items():
            self.same(read[name], a)
        self.assertEqual(ra.load_metadata(self.path), {"format": "pt", "ä": ""})
        self.assertEqual(list(ra.load(str(self.path), names=["turned"])), ["turned"])
        ra.save(self.path, {})  # in its place
        self.assertEqual((ra.load(self.path), ra.load_metadata(self.path)), ({}, {}))
        ra.save(self.path, {"x": np.float32([1, 2])})  # NumPy's
        self.same(ra.load(self.path)["x"], np.float32([1, 2]))
        self.assertEqual(os.listdir(self.folder), ["state.safetensors"])

    def test_replaces_what_is_there(self):
        ra.save(self.path, {"a": np.zeros(1)})
        os.chmod(self.path, 0o640)
        link = self.path.with_name("link")
        link.symlink_to(self.path)
        ra.save(link, {"a": np.ones(2)})
        self.assertTrue(link.is_symlink())
        self.assertEqual((os.stat(self.path).st_mode & 0o777, ra.load(self.path)["a"].shape), (0o640, (2,)))
        link.unlink()
        left = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")  # of a process that was killed
        left.touch()
        ra.save(os.fsencode(self.path), {"a": np.ones(3)})
        self.assertTrue(left.exists())
        left.unlink()
        with self.assertRaisesRegex(ValueError, "cannot hold"):
            ra.save(self.path, {"\ud800": np.ones(3)})
        self.assertEqual([f.name for f in self.path.parent.iterdir()], [self.path.name])
        mask = os.umask(0o027)
        try:
            ra.save(link, {"a": np.ones(1)})
        finally:
            os.umask(mask)
        self.assertEqual(os.stat(link).st_mode & 0o777, 0o640)
        link.unlink()

    def test_many_threads_save_one_file(self):
        def work(n):
            for _ in range(20):
                ra.save(self.path, {"a": np.full(n, n)})
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(work, n) for n in (3, 500, 1000, 1500)]:
                done.result()
        a = ra.load(self.path)["a"].numpy()
        np.testing.assert_array_equal(a, len(a))
        self.assertEqual([f.name for f in self.path.parent.iterdir()], [self.path.name])

    def test_shapes_that_no_array_has(self):
        for shape in ([0, 2**40, 2**40], [2**40, 0, 2**21]):
            self.path.write_bytes(packed({"many": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}))
            with self.assertRaisesRegex(ValueError, "many.*larger than an array"):
                ra.load(self.path)

    def test_of_others(self):
        """Without padding, in any order, of types that NumPy has not."""
        halves = rng.standard_normal(6).astype("f4")
        brain = (halves.view("u4") >> 16).astype("<u2")
        data = np.int64([7, 8]).tobytes() + b"\1\0\1" + brain.tobytes() + b"\5"
        entry = lambda dtype, shape, a, b: {"dtype": dtype, "shape": shape, "data_offsets": [a, b]}
        self.path.write_bytes(packed({"b": entry("BOOL", [3], 16, 19), "bf": entry("BF16", [2, 3], 19, 31), "i": entry("I64", [2], 0, 16),
                                      "f8": entry("F8_E4M3", [1], 31, 32), "none": entry("F32", [0, 5], 19, 19)}, data))
        read = ra.load(self.path, names=["i", "b", "bf", "none"])
        self.same(read["i"], np.int64([7, 8]))
        self.same(read["b"], np.array([True, False, True]))
        self.assertEqual((read["bf"].dtype, read["bf"].shape), (ra.bfloat16, (2, 3)))
        np.testing.assert_array_equal(read["bf"].numpy(), (brain.astype("u4") << 16).view("f4").reshape(2, 3))
        again = self.folder / "again.safetensors"
        ra.save(again, {"bf": read["bf"].T, "x": ra.ones(1)})
        self.assertIn(b'"dtype":"BF16","shape":[3,2]', again.read_bytes())
        np.testing.assert_array_equal(ra.load(again)["bf"].T.numpy(), read["bf"].numpy())
        self.same(read["none"], np.zeros((0, 5), "f4"))
        with self.assertRaisesRegex(TypeError, "'f8' is F8_E4M3, which arrays do not hold"):
            ra.load(self.path)
        with self.assertRaisesRegex(KeyError, "has no c, d"):
            ra.load(self.path, names=["d", "b", "c"])

    def refused(self, content, mentions):
        self.path.write_bytes(content)
        with self.assertRaisesRegex(ValueError, mentions):
            ra.load(self.path)
        with self.assertRaisesRegex(ValueError, mentions):
            ra.load_metadata(self.path)

    def test_wrong_files(self):
        good = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        data = bytes(8)
        self.path.write_bytes(packed({"x": good}, data))
        self.assertEqual(ra.load(self.path)["x"].shape, (2,))
        for content in (b"", b"1234567", struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 3) + b"{}", struct.pack("<Q", 2**64 - 1) + bytes(99)):
            self.refused(content, "is no safetensors file, or not whole")
        for header in (b"", b"{", b"[]x", b"\xff\xfe", b"{'x': 1}", b'{"x": NaN}', b'{"x": 1.5}', b'{"x": ' + b"9" * 9000 + b"}", b"[" * 100000,
                       b'{"a":' * 50000, b'{"x": {}, "x": {}}', b'{"x": {"dtype": "F32", "dtype": "F32", "shape": [], "data_offsets": [0, 4]}}'):
            self.refused(packed(header, data), "is no JSON that can be read")
        for header in ([], 3, "x", None):
            self.refused(packed(header, data), "is no object of JSON")
        for entry, mentions in (
                (3, "it has no dtype"), ({}, "it has no dtype"), (good | {"dtype": 4}, "it has no dtype"), (good | {"shape": 2}, "its shape is no list"),
                (good | {"shape": [-2]}, "its shape is no list"), (good | {"shape": ["2"]}, "its shape is no list"),
                (good | {"shape": [True]}, "its shape is no list"), (good | {"shape": [2**63]}, "its shape is no list"),
                (good | {"shape": [1] * 9}, "9 dimensions; arrays have 8"), (good | {"shape": [3]}, "has 12 bytes, its data 8"),
                (good | {"shape": [2**40, 2**40]}, "bytes, its data 8"), (good | {"shape": [2**62, 4, 0]}, "has 0 bytes, its data 8"),
                (good | {"data_offsets": [0]}, "is not within"), (good | {"data_offsets": [0, 8, 8]}, "is not within"),
                (good | {"data_offsets": [8, 0]}, "is not within"), (good | {"data_offsets": [0, 16]}, "is not within"),
                (good | {"data_offsets": [-8, 0]}, "its data_offsets is no list"), (good | {"data_offsets": None}, "its data_offsets is no list"),
                (good | {"shape": [1], "data_offsets": [4, 8]}, "begins at byte 4"), (good | {"shape": [1], "data_offsets": [0, 4]}, "arrays have 4")):
            self.refused(packed({"x": entry}, data), mentions)
        one = good | {"shape": [1]}
        self.refused(packed({"x": good, "y": one | {"data_offsets": [4, 8]}}, data), "'y' begins at byte 4 of the data, and what is before it ends at 8")
        self.refused(packed({"x": good}, data + b"more"), "there are 12 bytes of data, and arrays have 8")
        for metadata in (3, {"a": 1}, ["a"]):
            self.path.write_bytes(packed({"x": good, "__metadata__": metadata}, data))
            with self.assertRaisesRegex(ValueError, "metadata are not texts"):
                ra.load_metadata(self.path)

    def test_damaged_files(self):
        """Bytes that are changed, lost or added give arrays or a sentence."""
        ra.save(self.path, {"a.weight": ra.ones((3, 2)), "b": ra.asarray([True, False]), "c": ra.asarray(np.int16([1, 2, 3]))}, {"k": "v"})
        content, outcomes = self.path.read_bytes(), {"arrays": 0, "refused": 0}
        length = 8 + struct.unpack("<Q", content[:8])[0]
        for _ in range(600):
            damaged = bytearray(content)
            for _ in range(rng.integers(1, 4)):
                at = int(rng.integers(0, length))
                kind = rng.integers(4)
                if kind == 0:
                    damaged[at:at + 1] = bytes([rng.integers(0, 256)])
                elif kind == 1:
                    damaged[at:at + 1] = rng.choice([b"0", b"9", b"-", b"]", b"[", b"}", b'"', b",", b"e9"])
                elif kind == 2:
                    del damaged[at:at + int(rng.integers(1, 9))]
                else:
                    damaged[at:at] = damaged[at:at + int(rng.integers(1, 9))]
            if rng.integers(2):  # so that more than the length is looked at
                damaged[:8] = struct.pack("<Q", max(0, length - 8 + len(damaged) - len(content)))
            self.path.write_bytes(damaged)
            try:
                for x in ra.load(self.path).values():
                    x.numpy()
                outcomes["arrays"] += 1
            except (ValueError, TypeError) as error:
                self.assertRegex(str(error), "^load: ")
                outcomes["refused"] += 1
        self.assertGreater(min(outcomes.values()), 0, outcomes)

    def test_what_is_not_written(self):
        ra.save(self.path, {"x": ra.ones(2)})
        for error, arrays, metadata in ((TypeError, {"x": ra.asarray([1j])}, None), (TypeError, {3: ra.ones(1)}, None), (TypeError, {"x": [1.0]}, None),
                                        (TypeError, {"x": ra.ones(1)}, {"a": 3}), (TypeError, {"__metadata__": ra.ones(1)}, None),
                                        (TypeError, {"x": np.zeros(2, "c8")}, None)):
            with self.assertRaises(error):
                ra.save(self.path, arrays, metadata)
        self.same(ra.load(self.path)["x"], np.ones(2, "f4"))
        with self.assertRaises(OSError):
            ra.save(self.folder / "no" / "folder", {})
        (self.folder / "other").mkdir()
        with self.assertRaises(OSError):
            ra.save(self.folder / "other", {"x": ra.ones(2)})  # a folder is not replaced
        self.assertEqual(sorted(os.listdir(self.folder)), ["other", "state.safetensors"])
        with self.assertRaises(FileNotFoundError):
            ra.load(self.folder / "none")

    def test_training_goes_on(self):
        x, t = ra.asarray(rng.standard_normal((16, 3)).astype("f4")), ra.asarray(rng.integers(0, 2, 16))

        def begin():
            model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
            return model, nn.value_and_grad(model, lambda x: nn.cross_entropy(model(x), t), compiled=True)

        for make in (lambda: optim.Adam(lr=0.02, amsgrad=True), lambda: optim.RMSprop(momentum=0.5), lambda: optim.SGD(lr=0.1), optim.AdamW):
            (one, step), optimizer = begin(), make()
            for i in range(6):
                if i == 3:
                    optimizer.lr *= 0.5
                    ra.save(self.path, one.state_dict())
                    ra.save(self.folder / "optimizer", optimizer.state_dict())
                optimizer.update(one, step(x)[1])
            (other, step), after = begin(), make()
            other.load_state_dict(ra.load(self.path))
            after.load_state_dict(ra.load(self.folder / "optimizer"))
            for i in range(3):
                after.update(other, step(x)[1])
            self.assertEqual((after.step, after.lr), (6, optimizer.lr))
            for name, value in one.state_dict().items():
                self.same(other.state_dict()[name], value.numpy())

    def test_state_of_optimizers(self):
        p, adam = {"a.b": ra.ones(3)}, optim.Adam()
        adam.update(p, {"a.b": ra.ones(3)})
        seen = adam.state_dict()
        self.assertEqual(sorted(seen), ["0.a.b", "1.a.b", "lr", "step"])
        before = seen["0.a.b"].tolist()
        adam.update(p, {"a.b": ra.ones(3)})
        self.assertEqual(seen["0.a.b"].tolist(), before)
        other = optim.Adam()
        other.load_state_dict(seen)
        other.update({"a.b": ra.ones(3)}, {"a.b": ra.ones(3)})
        self.assertEqual((seen["0.a.b"].tolist(), other.step), (before, 2))
        for error, text, call in (
                (ValueError, "are not there", lambda: adam.load_state_dict({})), (ValueError, "'2.a.b' is nothing", lambda: adam.load_state_dict({**seen, "2.a.b": p["a.b"]})),
                (ValueError, "'x' is nothing", lambda: adam.load_state_dict({**seen, "x": p["a.b"]})),
                (ValueError, "there is not all", lambda: adam.load_state_dict({name: x for name, x in seen.items() if name[0] != "1"})),
                (ValueError, "in one shape", lambda: adam.load_state_dict({**seen, "1.a.b": ra.ones(4)})),
                (TypeError, "is float64", lambda: adam.load_state_dict({**seen, "1.a.b": np.ones(3)})),
                (ValueError, "and what is kept of it", lambda: other.update({"a.b": ra.ones(2)}, {"a.b": ra.ones(2)}))):
            with self.assertRaisesRegex(error, text):
                call()


if __name__ == "__main__":
    unittest.main()
