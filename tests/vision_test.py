"""Language models that see pictures: towers and logits against transformers in float64, with its processors' pixels."""
import ctypes
import pathlib
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np
import torch

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
import llm_sessions
from logits_test import relative_squared_error
from vision_library import Picture, Tower, show
from vision_models import ROWS, SeeingModel

SIZES = [(48, 48), (97, 31), (13, 29), (7, 7), (200, 301), (48, 24), (1, 90)]


def pictures(rng, sizes=SIZES):
    """Smooth and rough ones."""
    for height, width in sizes:
        yield rng.integers(0, 256, (height, width, 3), np.uint8)
    y, x = np.mgrid[0:64, 0:80]
    yield np.stack([x * 3, y * 3, x + y], -1).astype(np.uint8)


class Made:
    """A row's model and its files."""

    def __init__(self, row, folder, seed=5):
        self.model = SeeingModel(row, seed)
        self.width = self.model.config.text_config.hidden_size
        self.path, self.tower_path = folder / "model.gguf", folder / "tower.gguf"
        self.model.write(self.path)
        self.model.write_tower(self.tower_path)


class Vision(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def open(self, made, tower=True):
        model = llm_sessions.Model(made.path, rdna_program.DEVICE)
        self.addCleanup(model.close)
        opened = Tower(model, made.tower_path)
        self.addCleanup(opened.close)
        opened.check()
        return model, opened

    def test_towers(self):
        for row in ROWS:
            with self.subTest(row.name):
                made = Made(row, self.folder)
                model, tower = self.open(made)
                for picture in pictures(np.random.default_rng(1)):
                    want = made.model.rows(picture)
                    f32 = relative_squared_error(made.model.rows(picture, torch.float32), want)
                    self.assertEqual(tower.grid(*picture.shape[:2]), row.grid(made.model.config, picture))
                    got = tower.see(picture, made.width)
                    self.assertLess(relative_squared_error(got.astype(float), want), max(1e-9, 4 * f32), picture.shape)

    def test_logits(self):
        """A prompt with three pictures, of which two are neighbours, part by part; and again from the middle."""
        for row in ROWS:
            with self.subTest(row.name):
                rng = np.random.default_rng(2)
                made = Made(row, self.folder)
                model, tower = self.open(made)
                texts = [rng.integers(0, 60, count).tolist() for count in (11, 3, 1, 14)]
                first, second, third = list(pictures(rng, [(30, 50), (61, 20)]))
                parts = [texts[0], first, texts[1], second, texts[2], third, texts[3]]
                want = made.model.logits_of(parts)
                f32 = relative_squared_error(made.model.logits_of(parts, torch.float32), want)
                vocabulary = want.shape[1]
                session = llm_sessions.Session(model, vocabulary, len(want) + 8, 64)
                self.addCleanup(session.close)
                begun = self.read(tower, session, made, parts, want, max(1e-8, 4 * f32))
                # behind a picture, and before two; layers with states have left these places for later ones
                for back in () if row.architecture == "qwen35" else (2, 4):
                    session.rewind(begun[back])
                    self.read(tower, session, made, parts[back:], want[begun[back]:], max(1e-8, 4 * f32))
                # one token at a time behind a picture, and a picture matters
                session.rewind(begun[6])
                for i, token in enumerate(texts[3]):
                    got = session.step(token)
                    self.assertLess(relative_squared_error(got, want[begun[6] + i]), max(1e-8, 4 * f32))
                other = np.random.default_rng(9).integers(0, 256, first.shape, np.uint8)
                blind = made.model.logits_of([texts[0], other, *parts[2:]])
                self.assertGreater(relative_squared_error(blind[begun[2]], want[begun[2]]), 1e-4)

    def test_deepstack(self):
        """What the first layers add is there in every pass of a picture, on the host's layers and the device's."""
        row = next(row for row in ROWS if row.projector == "qwen3vl_merger")
        rng = np.random.default_rng(8)
        made = Made(row, self.folder)
        picture, texts = rng.integers(0, 256, (45, 30, 3), np.uint8), [rng.integers(0, 60, count).tolist() for count in (5, 9)]
        want = made.model.logits_of([texts[0], picture, texts[1]])[-len(texts[1]):]
        for host_layers in (0, 1, 2):
            model = llm_sessions.Model(made.path, rdna_program.DEVICE, opened=False)
            self.addCleanup(model.close)
            model.open(host_layers)
            tower = Tower(model, made.tower_path)
            self.addCleanup(tower.close)
            rows, grid = tower.see(picture, made.width), tower.grid(*picture.shape[:2])
            tokens = int(np.prod(grid))
            self.assertEqual((tower.info.deepstack, len(rows)), (2, 3 * tokens))
            for batch in (64, 4):
                session = llm_sessions.Session(model, want.shape[1], 64, batch)
                self.addCleanup(session.close)
                session.read(texts[0])
                show(session, rows, grid)
                self.assertLess(relative_squared_error(session.read(texts[1]), want), 1e-8, (host_layers, batch))
        for layer in (1, 2):
            without = rows.copy()
            without[layer * tokens:(layer + 1) * tokens] = 0
            session.rewind(len(texts[0]))
            show(session, without, grid)
            self.assertGreater(relative_squared_error(session.read(texts[1]), want), 1e-4, layer)

    def test_back_into_a_picture(self):
        """Layers with states come back to where a picture begins or ends, not into it, and are none the worse for being asked."""
        row = next(row for row in ROWS if row.architecture == "qwen35")
        rng = np.random.default_rng(10)
        made = Made(row, self.folder)
        model, tower = self.open(made)
        picture, texts = rng.integers(0, 256, (40, 33, 3), np.uint8), [rng.integers(0, 60, count).tolist() for count in (5, 9)]
        want = made.model.logits_of([texts[0], picture, texts[1]])
        end = len(want) - len(texts[1])
        session = llm_sessions.Session(model, want.shape[1], 64, 64)
        self.addCleanup(session.close)
        self.read(tower, session, made, [texts[0], picture, texts[1]], want, 1e-8)
        with self.assertRaisesRegex(RuntimeError, "rewinding to position 7, for which the picture at 5 would .* is 5"):
            session.rewind(7)
        for position in (end + 4, end):
            session.rewind(position)
            got = session.read(texts[1][position - end:])
            self.assertLess(relative_squared_error(got, want[position:]), 1e-8, position)
        session.rewind(3)
        self.read(tower, session, made, [texts[0][3:]], want[3:5], 1e-8)

    def read(self, tower, session, made, parts, want, bound):
        at, begun = 0, []
        for part in parts:
            begun.append(at)
            if isinstance(part, list):
                self.assertLess(relative_squared_error(session.read(part), want[at : at + len(part)]), bound, at)
                at += len(part)
                continue
            rows, grid = tower.see(part, made.width), tower.grid(*part.shape[:2])
            show(session, rows, grid)
            at += int(np.prod(grid))
        return begun

    def test_steps_of_many(self):
        """Pictures in steps with other texts' parts, in passes of their own with lanes, and in forks."""
        for row in ROWS:
            for lanes in (0, 8):
                with self.subTest(row.name, lanes=lanes):
                    rng = np.random.default_rng(3)
                    made = Made(row, self.folder)
                    model, tower = self.open(made)
                    picture = rng.integers(0, 256, (40, 33, 3), np.uint8)
                    rows, grid = tower.see(picture, made.width), tower.grid(40, 33)
                    tokens = int(np.prod(grid))
                    texts = [rng.integers(0, 60, count).tolist() for count in (9, 17, 12)]
                    seeing = made.model.logits_of([texts[0], picture, texts[1]])
                    blind = made.model.logits_of([texts[2], picture, texts[0]])[: len(texts[2])]
                    cache = llm_sessions.Cache(model, seeing.shape[1], sequences=3, batch=64, logits=64, context=96, page=16,
                                               positions=480, lanes=lanes)
                    self.addCleanup(cache.close)
                    a, b = cache.sequence(), cache.sequence()
                    got = cache.step([(a, texts[0], 9), (b, texts[2][:7], 7)])
                    shown = Picture(rows.ctypes.data_as(ctypes.c_void_p), *grid)
                    more = cache.step([(a, shown, 0), (b, texts[2][7:8], 1)])
                    fork = cache.fork(a, 9 + tokens)
                    last = cache.step([(a, texts[1][:5], 5), (b, texts[2][8:], 4), (fork, texts[1], 17)])
                    rest = cache.step([(a, texts[1][5:], 12)])
                    for of, mine in ((seeing, [(0, got[0]), (9 + tokens, last[0]), (14 + tokens, rest[0]),
                                               (9 + tokens, last[2])]),
                                     (blind, [(0, got[1]), (7, more[1]), (8, last[1])])):
                        for at, logits in mine:
                            self.assertLess(relative_squared_error(logits, of[at : at + len(logits)]), 1e-8, at)
                    for sequence in (a, b, fork):
                        cache.release(sequence)

    def test_half_weights(self):
        """Matrices of 16 bits are computed with as they are."""
        for row in ROWS[:1]:
            made = Made(row, self.folder)
            for name, array in made.model.weights.items():
                made.model.weights[name] = array.astype(np.float16).astype(float)
            made.model.networks.clear()
            made.model.write_tower(made.tower_path, gf.TENSOR_F16)
            _, tower = self.open(made)
            for picture in pictures(np.random.default_rng(4), SIZES[:2]):
                want = made.model.rows(picture)
                self.assertLess(relative_squared_error(tower.see(picture, made.width).astype(float), want), 1e-9)

    def test_converted(self):
        """A folder that transformers wrote, as the file that llama.cpp's converter would make of it."""
        for row in ROWS:
            with self.subTest(row.name):
                made, folder = Made(row, self.folder), self.folder / "m"
                made.model.network({}, torch.float32).save_pretrained(folder)
                row.processor(made.model.config).save_pretrained(folder)
                rdna_program.output("convert", "--mmproj", folder, self.folder / "got.gguf")
                rdna_program.output("convert", folder, self.folder / "model.gguf")  # the language model alone
                got, want = gf.Reader(self.folder / "got.gguf"), gf.Reader(made.tower_path)
                self.assertEqual(got.tensors.keys(), want.tensors.keys())
                for name, array in want.tensors.items():
                    if name == "mm.soft_emb_norm.weight":  # 1 less in the folder, in float32
                        np.testing.assert_allclose(got.tensors[name], array, 2e-7, 1e-7, err_msg=name)
                    else:
                        np.testing.assert_array_equal(got.tensors[name], array, name)
                for name in want.keys.keys() - {"clip.vision.image_size"}:
                    self.assertEqual(got.keys[name], want.keys[name], name)
                picture = next(pictures(np.random.default_rng(6)))
                rows = [self.seen(path, made.width, picture) for path in (self.folder / "got.gguf", made.tower_path)]
                self.assertLess(relative_squared_error(*rows), 1e-11)
                (folder / "preprocessor_config.json").unlink()
                result = rdna_program.run("convert", "--mmproj", folder, self.folder / "none.gguf")
                self.assertEqual((result.returncode, b"preprocessor_config.json" in result.stderr), (1, True))
        for arguments, status in ((["--mmproj", "--json"], 2), (["--mmproj", "--type", "q8_0"], 2)):
            self.assertEqual(rdna_program.run("convert", *arguments, self.folder / "m", self.folder / "x").returncode, status)

    def seen(self, path, width, picture):
        model = llm_sessions.Model(self.folder / "model.gguf", rdna_program.DEVICE)
        tower = Tower(model, path)
        tower.check()
        rows = tower.see(picture, width)
        tower.close()
        model.close()
        return rows

    def test_what_is_refused(self):
        made = Made(ROWS[0], self.folder)
        model, tower = self.open(made)
        session = llm_sessions.Session(model, 67, 60, 6)
        self.addCleanup(session.close)
        rows = np.zeros((9, made.width), np.float32)
        with self.assertRaisesRegex(RuntimeError, "a picture of 9 tokens is read in one pass, and those have 6"):
            show(session, rows, (3, 3))
        for size in ((0, 5), (5, 0), (20000, 20000), (2, 1000)):
            with self.assertRaisesRegex(RuntimeError, "pixels; sides are from 1"):
                tower.grid(*size)

        def opens(change=None, without=()):
            made.model.write_tower(made.tower_path, change=change, without=without)
            Tower(model, made.tower_path).close()

        def replaced(name, value):
            return lambda entries, tensors: ([(k, *gf.typed(value)) if k == name else (k, *v) for k, *v in entries], tensors)

        def tensor(name, array):
            return lambda entries, tensors: (entries, [(n, gf.TENSOR_F32, array) if n == name else (n, *t) for n, *t in tensors])

        def added(name):
            return lambda entries, tensors: (entries, [*tensors, (name, gf.TENSOR_F32, np.zeros(3))])

        def key(name, value):
            return lambda entries, tensors: ([*entries, (name, *gf.typed(value))], tensors)

        opens()
        for sentence, options in (
                ("is 'cobra'; known are gemma3", dict(change=replaced("clip.projector_type", "cobra"))),
                ("architecture is 'llama'", dict(change=replaced("general.architecture", "llama"))),
                ("'clip.use_gelu' is false", dict(change=replaced("clip.use_gelu", False))),
                ("'clip.use_silu' is true", dict(change=key("clip.use_silu", True))),
                ("layers before its last", dict(change=key("clip.vision.feature_layer", 1))),
                ("no tower for pictures", dict(change=replaced("clip.has_vision_encoder", False))),
                ("no key 'clip.vision.image_mean' of three numbers", dict(without=("vision.image_mean",))),
                ("no key 'clip.vision.block_count'", dict(without=("vision.block_count",))),
                ("a colour has the mean", dict(change=replaced("clip.vision.image_std", [0.5, 0.0, 0.5]))),
                ("no whole number of 4 x 4 patches", dict(change=replaced("clip.vision.image_size", 50))),
                ("'v.position_embd.weight' is 144 x 48", dict(change=replaced("clip.vision.image_size", 64))),
                ("values for 5 heads", dict(change=replaced("clip.vision.attention.head_count", 5))),
                ("no tensor 'v.blk.3.ln1.weight'", dict(change=replaced("clip.vision.block_count", 4))),
                ("no use for, 'v.blk.2", dict(change=replaced("clip.vision.block_count", 2))),
                ("no use for, 'v.pre_ln.weight'", dict(change=added("v.pre_ln.weight"))),
                ("'mm.soft_emb_norm.weight' is 3", dict(change=tensor("mm.soft_emb_norm.weight", np.zeros(3)))),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(RuntimeError, sentence):
                opens(**options)
        made = Made(next(row for row in ROWS if row.projector == "qwen3vl_merger"), self.folder)
        self.open(made)
        for sentence, options in (
                ("'v.position_embd.weight' has 35 rows, which are no square",
                 dict(change=tensor("v.position_embd.weight", np.zeros((35, 64))))),
                ("no tensor 'v.deepstack.1.norm.weight'",
                 dict(change=replaced("clip.vision.is_deepstack_layers", [True, True, True, False]))),
                ("no use for, 'v.deepstack.2",
                 dict(change=replaced("clip.vision.is_deepstack_layers", [True, False, False, False]))),
                ("is_deepstack_layers", dict(change=replaced("clip.vision.is_deepstack_layers", [True, False]))),
                ("'v.deepstack.0.norm.weight' is 64", dict(change=tensor("v.deepstack.0.norm.weight", np.zeros(64)))),
                ("'v.blk.0.attn_qkv.weight' is", dict(change=tensor("v.blk.0.attn_qkv.weight", np.zeros((128, 64))))),
                ("no use for, 'v.deepstack.", dict(without=("vision.is_deepstack_layers",))),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(RuntimeError, sentence):
                opens(**options)
        fewer = Made(next(row for row in ROWS if row.name.startswith("qwen3-vl, one layer")), self.folder)
        made.model.write_tower(fewer.tower_path)
        with self.assertRaisesRegex(RuntimeError, "rows for 2 of the model's layers, .*n_deepstack_layers. reads those of 1"):
            self.open(fewer)
        made = Made(ROWS[0], self.folder)
        made.model.write_tower(made.tower_path, change=replaced("clip.vision.projection_dim", 64))
        other = Made(type(ROWS[0])("narrow", dict(hidden_size=32)), self.folder)
        narrow = llm_sessions.Model(other.path, rdna_program.DEVICE)
        self.addCleanup(narrow.close)
        with self.assertRaisesRegex(RuntimeError, "rows of 64 values, and the model reads 32"):
            wide = self.folder / "wide.gguf"
            made.model.write_tower(wide)
            tower = Tower(narrow, wide)
            self.addCleanup(tower.close)
            tower.check()


if __name__ == "__main__":
    unittest.main()
