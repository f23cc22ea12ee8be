"""Token ids of BERT's vocabularies, against the tokenizers library."""
import pathlib
import tempfile
import unicodedata
import unittest

import transformers_python  # first: this goes on in a Python that has tokenizers
import numpy as np

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
from tokenizer_models import TEXTS, corpus, hard_texts
from tokenizers import BertWordPieceTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

NORMAL, CONTROL = 1, 3
OFF = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
CLEAN, STRIP, LOWER = (BertNormalizer(**{**OFF, step: True}) for step in ("clean_text", "strip_accents", "lowercase"))


def is_agreed(c):
    """Whether the library, whose tables are of Unicode 8, has a character in the kind that it has in Unicode today."""
    kind, lower = unicodedata.category(c), c.lower()
    kept = [name.normalize_str(f"a{c}b") for name in (CLEAN, STRIP)]
    alone = [word for word, _ in BertPreTokenizer().pre_tokenize_str(f"a{c}b")] == ["a", c, "b"]
    signs = kind[0] == "P" or ("!" <= c <= "~" and not c.isalnum())
    bare = "".join(x for x in unicodedata.normalize("NFD", c) if unicodedata.category(x) != "Mn")
    return (kind != "Cn" and alone == signs and kept[1] == f"a{bare}b" and LOWER.normalize_str(c) == lower
            and (c in "\t\n\r\ufffd" or (kept[0] == "ab") == (kind in ("Cc", "Cf", "Co"))))


def agreed(text):
    return "".join(filter(is_agreed, text))


def write(path, tokenizer):
    """As llama.cpp's converter writes such a vocabulary: a mark where words begin, in place of "##" where none does."""
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    texts = [text if text in special else text[2:] if text.startswith("##") else "\u2581" + text
             for text, _ in vocabulary]
    types = [CONTROL if text in special else NORMAL for text, _ in vocabulary]
    gf.write(path, [("general.architecture", gf.TEXT, "bert"), ("tokenizer.ggml.model", gf.TEXT, "bert"),
                    ("tokenizer.ggml.tokens", (gf.ARRAY, gf.TEXT), texts),
                    ("tokenizer.ggml.token_type", (gf.ARRAY, gf.I32), types)], [])


class WordPiece(unittest.TestCase):
    def test_ids(self):
        rng = np.random.default_rng(8)
        texts = [*TEXTS, *hard_texts(), "a" * 101, "b" * 100, "x\u2581the", "ÀÉÎ İstanbul ǅ ΑΣ ŻÓŁĆ"]
        texts += ["".join(map(chr, rng.integers(0x20, 0x2fff, 60))) for _ in range(10)]
        for lowercase in (True, False):
            tokenizer = BertWordPieceTokenizer(lowercase=lowercase, strip_accents=lowercase)
            tokenizer.train_from_iterator(corpus(), vocab_size=700, show_progress=False)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "vocabulary.gguf"
                write(path, tokenizer)
                self.assertGreater(sum(map(len, map(agreed, texts))), 0.9 * sum(map(len, texts)))
                for text in map(agreed, texts):
                    got = rdna_program.output("tokenize", path, stdin=text.encode()).split()
                    self.assertEqual([int(i) for i in got], tokenizer.encode(text, add_special_tokens=False).ids, text)


if __name__ == "__main__":
    unittest.main()
