"""Sessions of models of several architectures, through librdna, against transformers' networks in float64."""
import pathlib
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np

import rdna_program  # first: it makes tools/ importable
import llm_sessions
from architecture_delta import DELTA
from architecture_gemma4 import GEMMA4, Gemma4
from architecture_mixtures import MIXTURES, DeepSeek2
from architecture_models import Model
from architecture_more import MORE
from architecture_rows import ROWS as DENSE
from logits_test import relative_squared_error

ROWS = DENSE + MIXTURES + DELTA + GEMMA4 + MORE
# Heads above 256 values and latent ones, with what rounding a cache may do to their logits: see Types. Random networks
# make more of it than a trained one, as much with heads of 256 values as with these.
WIDE = {Gemma4("gemma4, wide heads", dict(head_dim=32, global_head_dim=288)):
            {"f16": (1, 1e-4), "bf16": (2, 3e-3), "q8_0": (10, 2e-2)},
        DeepSeek2("deepseek2, whole blocks", dict(qk_rope_head_dim=32)):
            {"f16": (1, 2e-6), "bf16": (2, 1e-4), "q8_0": (10, 2e-2)}}


class Sessions(unittest.TestCase):
    """Sessions that are rewound and go on otherwise, as agents' do: what a layer remembers must be as if it had been read
    once. Recurrent layers go back to checkpoints; others have windows, caches that layers share, or latent vectors."""
    ROWS = ["llama", "gemma3", "gpt-oss", "deepseek2", "qwen3next", "qwen35moe", "gemma4, of E2B", "lfm2"]

    def follow(self, session, tokens, want, rng):
        """Reads, steps and rewinds at random places, and compares each logit with those of the whole text."""
        at, bound = 0, 1e-9
        for _ in range(40):
            kind = rng.integers(4)
            if kind == 0 and at > 0:  # another text, then back
                others = rng.integers(0, want.shape[1], min(int(rng.integers(1, 9)), len(tokens) - at))
                if len(others):
                    session.read(others.tolist())
                session.rewind(at)
            elif kind == 1:
                at = int(rng.integers(0, at + 1))
                session.rewind(at)
            elif kind == 2 and at < len(tokens):
                count = int(rng.integers(1, len(tokens) - at + 1))
                got = session.read(tokens[at : at + count])
                self.assertLess(relative_squared_error(got, want[at : at + count]), bound, f"{count} tokens at {at}")
                at += count
            else:
                for _ in range(min(5, len(tokens) - at)):
                    self.assertLess(relative_squared_error(session.step(tokens[at]), want[at]), bound, f"a step at {at}")
                    at += 1

    def test_rows(self):
        for row in [row for row in ROWS if row.name in self.ROWS] + list(WIDE):
            with self.subTest(row.name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.gguf"
                made, rng = Model(row, seed=11), np.random.default_rng(12)
                tokens = rng.integers(0, row.config["vocab_size"], 37).tolist()
                made.write(path)
                model = llm_sessions.Model(path)
                for batch in (64, 5):
                    session = llm_sessions.Session(model, row.config["vocab_size"], 40, batch)
                    self.follow(session, tokens, made.logits(tokens), rng)
                    session.close()
                model.close()


class Crowds(unittest.TestCase):
    """Sequences of one cache that come, fork, go back and go while they share steps: each logit is that of its own text,
    read alone by the network in float64."""
    MOST = 5

    def move(self, cache, crowd, texts, want, rng):
        """Something other than reading happens to the crowd, a list of [sequence, number of its text]."""
        kind = int(rng.integers(4))
        if (kind == 0 or not crowd) and len(crowd) < self.MOST:
            crowd.append([cache.sequence(), int(rng.integers(len(texts)))])
        elif kind == 1 and len(crowd) < self.MOST:
            other, text = crowd[rng.integers(len(crowd))]
            most, into = cache.position(other), int(rng.integers(len(texts)))
            same = next((i for i in range(most) if texts[text][i] != texts[into][i]), most)
            crowd.append([cache.fork(other, int(rng.integers(0, same + 1))), into])
        elif kind == 2:
            sequence, _ = crowd[rng.integers(len(crowd))]
            position = int(rng.integers(0, cache.position(sequence) + 1))
            cache.truncate(sequence, position)
            self.assertLessEqual(cache.position(sequence), position)
        elif kind == 3 and len(crowd) > 1:
            cache.release(crowd.pop(int(rng.integers(len(crowd))))[0])

    def read(self, cache, crowd, texts, want, rng):
        parts, places = [], []
        for sequence, text in crowd:
            at, length = cache.position(sequence), len(texts[text])
            count = min(int(rng.choice([1, 1, 2, 13])), length - at)
            if count == 0 or rng.integers(4) == 0:
                continue
            if rng.integers(2):
                cache.checkpoint(sequence)
            wanted = int(rng.integers(0, count + 1))
            parts.append((sequence, texts[text][at : at + count], wanted))
            places.append(want[text][at + count - wanted : at + count])
        if not parts:
            return 0
        for got, right in zip(cache.step(parts), places):
            self.assertEqual(got.shape, right.shape)
            for row, whole in zip(got, right):
                self.assertLess(relative_squared_error(row, whole), 1e-9)
        return sum(len(place) for place in places)

    def check_bits(self, model, texts, vocabulary, rng):
        """In lanes each sequence has the bits that it has alone, read in the same pieces."""
        plans = [[1, 1, 2, 10, 1, 3, 1, 1, 9, 1] for _ in texts]
        for plan in plans:
            rng.shuffle(plan)
        cache = llm_sessions.Cache(model, vocabulary, positions=128, context=37, sequences=len(texts), batch=64, page=8,
                                   lanes=8)
        alone = []
        for text, plan in zip(texts, plans):
            sequence, rows = cache.sequence(), []
            for count in plan:
                at = cache.position(sequence)
                rows.append(cache.step([(sequence, text[at : at + count], 1)])[0])
            alone.append(rows)
            cache.release(sequence)
        sequences, done = [cache.sequence() for _ in texts], [0] * len(texts)
        while min(done) < len(plans[0]):
            who = [i for i in range(len(texts)) if done[i] < len(plans[i]) and rng.integers(3)]
            places = [cache.position(sequences[i]) for i in who]
            got = cache.step([(sequences[i], texts[i][at : at + plans[i][done[i]]], 1)
                              for i, at in zip(who, places)]) if who else []
            for i, row in zip(who, got):
                self.assertTrue(np.array_equal(row, alone[i][done[i]]), f"sequence {i}, piece {done[i]}")
                done[i] += 1
        for sequence in sequences:
            cache.release(sequence)
        cache.close()

    def test_rows(self):
        for row in [row for row in ROWS if row.name in Sessions.ROWS] + list(WIDE):
            with self.subTest(row.name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.gguf"
                made, rng = Model(row, seed=13), np.random.default_rng(14)
                vocabulary = row.config["vocab_size"]
                made.write(path)
                texts = [rng.integers(0, vocabulary, 37).tolist() for _ in range(3)]
                texts[1][:21], texts[2][:9] = texts[0][:21], texts[0][:9]
                want = [made.logits(text) for text in texts]
                model = llm_sessions.Model(path)
                cache = llm_sessions.Cache(model, vocabulary, positions=self.MOST * 48, context=37,
                                           sequences=self.MOST, batch=64, logits=64, page=8, states=8)
                crowd, compared = [], 0
                for _ in range(30):
                    self.move(cache, crowd, texts, want, rng)
                    for _ in range(2):
                        compared += self.read(cache, crowd, texts, want, rng)
                self.assertGreater(compared, 100)
                for sequence, _ in crowd:
                    cache.release(sequence)
                cache.close()
                self.check_bits(model, texts, vocabulary, rng)
                model.close()


class Types(unittest.TestCase):
    """Caches of other types than f32: what rounding keys and values may do to logits, in proportion and squared. f16 and
    bf16 round by 2^-11 and 2^-8, q8_0 by 1/254 of the largest of 32; of the logits, which later layers make of many
    such values, that is about the square of it times some."""
    BOUNDS = {"f16": (1, 1e-7), "bf16": (2, 2e-6), "q8_0": (10, 1e-4)}

    def check(self, model, vocabulary, bounds, rng):
        texts = [rng.integers(0, vocabulary, 60).tolist() for _ in range(3)]
        texts[1][:31] = texts[0][:31]
        session = llm_sessions.Session(model, vocabulary, 60, 64)
        want = []
        for text in texts:
            want.append(session.read(text))
            session.rewind(0)
        session.close()
        for name, (kv_dtype, bound) in bounds.items():
            with self.subTest(name):
                cache = llm_sessions.Cache(model, vocabulary, positions=256, context=60, sequences=3, batch=128,
                                           logits=128, page=16, kv_dtype=kv_dtype)
                first, third, at = cache.sequence(), cache.sequence(), 31
                got = cache.step([(first, texts[0][:at], at), (third, texts[2][:1], 1)])
                second = cache.fork(first, at)
                errors = [relative_squared_error(got[0], want[0][:at]), relative_squared_error(got[1][0], want[2][0])]
                for count in (1, 1, 12, 3, 1, 9):  # pages of the three alternate
                    parts = [(first, texts[0][at : at + count], count), (second, texts[1][at : at + count], count),
                             (third, texts[2][at - 30 : at - 30 + count], count)]
                    got = cache.step(parts)
                    errors += [relative_squared_error(got[0], want[0][at : at + count]),
                               relative_squared_error(got[1], want[1][at : at + count]),
                               relative_squared_error(got[2], want[2][at - 30 : at - 30 + count])]
                    at += count
                self.assertLess(max(errors), bound)
                self.assertGreater(max(errors), bound / 1000)  # it is the type that was asked for
                for sequence in (first, second, third):
                    cache.release(sequence)
                cache.close()

    def test_types(self):
        model = llm_sessions.Model(rdna_program.DEMO_MODEL)
        self.check(model, 2048, self.BOUNDS, np.random.default_rng(15))
        model.close()

    def test_wide(self):  # caches of blocks have no kernel for these heads: rows are converted
        for row, bounds in WIDE.items():
            with self.subTest(row.name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.gguf"
                Model(row, seed=11).write(path)
                model = llm_sessions.Model(path)
                self.check(model, row.config["vocab_size"], bounds, np.random.default_rng(16))
                model.close()


class Checkpoints(unittest.TestCase):
    """Where sequences of recurrent layers can go back to, against a list of what must be there."""
    MOST, LENGTH = 6, 120

    @staticmethod
    def kept(cache, sequence):
        return sorted({cache.reach(sequence, at) for at in range(cache.position(sequence))} - {0})

    def test_they_stay_spread(self):
        row, rng = next(row for row in DELTA if row.name == "qwen35"), np.random.default_rng(15)
        with tempfile.TemporaryDirectory() as folder:
            Model(row, seed=16).write(pathlib.Path(folder) / "model.gguf")
            model = llm_sessions.Model(pathlib.Path(folder) / "model.gguf")
        text = rng.integers(0, row.config["vocab_size"], self.LENGTH).tolist()
        cache = llm_sessions.Cache(model, row.config["vocab_size"], positions=512, context=self.LENGTH, sequences=2,
                                   batch=64, page=8, states=9, checkpoints=self.MOST)
        first, second = cache.sequence(), cache.sequence()
        for sequence in (first, second):
            places = []
            while (at := cache.position(sequence)) < self.LENGTH:
                count = min(int(rng.integers(1, 9)), self.LENGTH - at)
                cache.step([(sequence, text[at : at + count], 0)])
                places.append(at + count)
                cache.checkpoint(sequence)
                kept = self.kept(cache, sequence)
                self.assertEqual(kept[-1:], [place for place in places[-2:-1]][-1:])  # the end itself is no way back
                gaps = np.diff([0, *kept, at + count])
                self.assertLessEqual(max(gaps), max(8, 2 * (at + count) / (self.MOST - 2)))
                self.assertEqual(len(kept), min(len(places), self.MOST) - 1)
        self.assertLess(len(self.kept(cache, first)), 3)  # the second needed their states
        position = self.kept(cache, second)[1]
        cache.truncate(second, position + 1)
        self.assertEqual(cache.position(second), position)
        for sequence in (first, second):
            cache.release(sequence)
        cache.close()
        model.close()


if __name__ == "__main__":
    unittest.main()
