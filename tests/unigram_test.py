"""Token ids of SentencePiece's Unigram vocabularies, against the sentencepiece library and the tokenizers library."""
import base64
import io
import json
import pathlib
import tempfile
import unittest

from other_python import go_on_with

go_on_with(("tokenizers", "sentencepiece"), "pieces-venv.sh", "RDNA_TEST_PIECES", "the reference needs sentencepiece")
import numpy as np
import sentencepiece

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
import hf_folder
from tokenizer_models import TEXTS, corpus, hard_texts
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

WIDE = "ﬁne ｆｕｌｌ　ｗｉｄｔｈ ①② ㍿ ½ Å é ｶﾞ\t\ttabs\n\nlines  \u200bnothing\ufeff  STRASSE İ ǅ"


def fields(message):
    """(number, value) of a message of protocol buffers: numbers, and the bytes of texts and messages."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(message):
        tag = number()
        size = {0: 0, 1: 8, 2: None, 5: 4}[tag & 7]
        if size == 0:
            yield tag >> 3, number()
            continue
        size = number() if size is None else size
        yield tag >> 3, message[at:at + size]
        at += size


def charsmap(model):
    normalizer = next(value for number, value in fields(model) if number == 3)
    return dict(fields(normalizer)).get(2, b"")


def train(**options):
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter([*corpus(), WIDE] * 3), model_writer=file, model_type="unigram", hard_vocab_limit=False,
                                             minloglevel=2, num_threads=1, **{"vocab_size": 400, **options})
    return file.getvalue(), sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())


def texts():
    rng = np.random.default_rng(9)
    found = [t for t in [*TEXTS, *hard_texts(25), WIDE, " ", "  a", "a  ", "\u2581x", "\u00b4a \u00a8b \u00b4", "xyz<sep>  <sep>abc"] if "\x00" not in t]
    return found + ["".join(map(chr, rng.integers(0x20, 0x33ff, 60))) for _ in range(10)]


def write(folder, size, file, data):
    """A folder with the vocabulary; its path."""
    hf_folder.llama(np.random.default_rng(1), vocab_size=size, num_hidden_layers=1).write(folder)
    (folder / file).write_bytes(data)
    return folder


def convert(folder):
    path = folder.with_suffix(".gguf")
    rdna_program.output("convert", folder, path)
    return path


class Unigram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = texts()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def write(self, name, size, file, data):
        return write(self.folder / name, size, file, data)

    def ids(self, path, text):
        return [int(i) for i in rdna_program.output("tokenize", path, stdin=text.encode()).split()]

    def test_sentencepiece(self):
        kinds = [{}, {"byte_fallback": True, "vocab_size": 650}, {"normalization_rule_name": "identity"}, {"normalization_rule_name": "nmt_nfkc_cf", "byte_fallback": True, "vocab_size": 650},
                 {"add_dummy_prefix": False}, {"remove_extra_whitespaces": False}, {"remove_extra_whitespaces": False, "add_dummy_prefix": False, "split_by_whitespace": False, "byte_fallback": True, "vocab_size": 650}]
        for i, options in enumerate(kinds):
            model, reference = train(**options)
            path = convert(self.write(f"s{i}", reference.vocab_size(), "tokenizer.model", model))
            self.assertEqual(gf.Reader(path).keys["tokenizer.ggml.model"], "t5")
            several = 0
            for text in self.texts:
                want = reference.encode(text)
                self.assertEqual(self.ids(path, text), want, (options, text))
                several += len(want) > 3
            self.assertGreater(several, len(self.texts) // 2)

    def test_user_defined(self):
        """They are found whole, and text on both sides is text of its own, which the library has not: hence no spaces."""
        model, reference = train(user_defined_symbols=["<sep>"], add_dummy_prefix=False)
        path = convert(self.write("user", reference.vocab_size(), "tokenizer.model", model))
        for text in ("xyz<sep>abc", "<sep><sep>", "a<sep>"):
            self.assertEqual(self.ids(path, text), reference.encode(text), text)

    def test_tokenizer_json(self):
        model, reference = train(byte_fallback=True, vocab_size=650)
        pieces = [(reference.id_to_piece(i), reference.get_score(i)) for i in range(reference.vocab_size())]
        for i, fallback in enumerate((True, False)):
            tokenizer = Tokenizer(models.Unigram(pieces, 0, fallback))
            tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap(model)), normalizers.Replace(Regex(" {2,}"), " ")])
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
            written = json.loads(tokenizer.to_str())
            self.assertEqual(base64.b64decode(written["normalizer"]["normalizers"][0]["precompiled_charsmap"]), charsmap(model))
            path = convert(self.write(f"j{i}", len(pieces), "tokenizer.json", tokenizer.to_str().encode()))
            agreed = 0
            for text in self.texts:
                # the library rewrites clusters of characters as one, SentencePiece the longest that its table has
                if reference.normalize(text) != "\u2581" * bool(text.strip()) + tokenizer.normalizer.normalize_str(text).strip().replace(" ", "\u2581"):
                    continue
                agreed += 1
                self.assertEqual(self.ids(path, text), tokenizer.encode(text, add_special_tokens=False).ids, (fallback, text))
            self.assertGreater(agreed, len(self.texts) // 3)

    def test_unknown_characters(self):
        """What a character costs that is no piece: 10 more than the worst piece."""
        pieces = [("<unk>", 0.0), ("\u2581", -1.0), ("ab", -10.0), ("cd", -10.0), ("bcd", -1.0), ("bcde", -0.5), ("e", -9.5), ("xyz", -3.0), ("y", -2.0)]
        tokenizer = Tokenizer(models.Unigram(pieces, 0, False))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        path = convert(self.write("unknown", len(pieces), "tokenizer.json", tokenizer.to_str().encode()))
        for text in ("abcd", "abcde", "abcd abcde ab", "a", "aa", "xyz", "xyxyz", "qqyqq qq q"):
            self.assertEqual(self.ids(path, text), tokenizer.encode(text, add_special_tokens=False).ids, text)

    def test_what_is_refused(self):
        model, reference = train()
        folder = self.write("refused", reference.vocab_size(), "tokenizer.json", b"")
        pieces = [[reference.id_to_piece(i), reference.get_score(i)] for i in range(reference.vocab_size())]
        whole = {"normalizer": None, "pre_tokenizer": None, "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces}}
        blob = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(model)).decode()}
        for change, mention in (({"normalizer": {"type": "NFKD"}}, "NFKD"), ({"pre_tokenizer": {"type": "ByteLevel"}}, "ByteLevel"), ({"pre_tokenizer": {"type": "WhitespaceSplit"}}, "all kinds"),
                                ({"normalizer": {**blob, "precompiled_charsmap": "a*"}}, "base64"), ({"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}}, "Replace"),
                                ({"model": {**whole["model"], "vocab": [["a"]]}}, "a text and a score"), ({"model": {**whole["model"], "vocab": {}}}, "no array")):
            (folder / "tokenizer.json").write_text(json.dumps({**whole, **change}))
            done = rdna_program.run("convert", folder, self.folder / "refused.gguf")
            self.assertEqual(done.returncode, 1)
            self.assertIn(mention, done.stderr.decode())
        for data in (b"abc", b"\x04\0\0\0" + bytes(4), b"\x08\0\0\0" + bytes(8) + b"x", b"\x07\0\0\0" + bytes(20)):
            gf.write(self.folder / "broken.gguf", [("tokenizer.ggml.model", gf.TEXT, "t5"), ("tokenizer.ggml.tokens", (gf.ARRAY, gf.TEXT), ["a", "b", "c"]), ("tokenizer.ggml.scores", (gf.ARRAY, gf.F32), [0.0] * 3),
                                                  ("tokenizer.ggml.precompiled_charsmap", (gf.ARRAY, gf.U8), list(data))], [])
            done = rdna_program.run("tokenize", self.folder / "broken.gguf", stdin=b"x")
            self.assertEqual(done.returncode, 1)
            self.assertIn("map of characters", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
