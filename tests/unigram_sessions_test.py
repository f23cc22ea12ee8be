"""Texts of token ids of SentencePiece's Unigram vocabularies, against the sentencepiece library."""
import ctypes
import pathlib
import tempfile
import unittest

import unigram_test  # first: it goes on with the Python that has sentencepiece
import llm_sessions


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_char)), ("size", ctypes.c_size_t)]


def decode(path, ids):
    library, (file, tokenizer, detokenizer), text = ctypes.CDLL(str(llm_sessions.LIBRARY)), (ctypes.c_void_p() for _ in range(3)), Text()
    assert library.rdna_gguf_open(str(path).encode(), ctypes.byref(file)) == 0
    assert library.rdna_tokenizer_open(file, ctypes.byref(tokenizer)) == 0
    assert library.rdna_detokenizer_create(tokenizer, False, ctypes.byref(detokenizer)) == 0
    whole = b""
    for i in ids:
        assert library.rdna_detokenizer_push(detokenizer, i, ctypes.byref(text)) == 0
        whole += text.data[:text.size]
    library.rdna_detokenizer_finish(detokenizer, ctypes.byref(text))
    whole += text.data[:text.size]
    library.rdna_detokenizer_release(detokenizer)
    library.rdna_tokenizer_close(tokenizer)
    library.rdna_gguf_close(file)
    return whole.decode(errors="replace")


class Decoding(unittest.TestCase):
    def test_decodes(self):
        model, reference = unigram_test.train(byte_fallback=True, vocab_size=650)
        with tempfile.TemporaryDirectory() as folder:
            path = unigram_test.convert(unigram_test.write(pathlib.Path(folder) / "decode", reference.vocab_size(), "tokenizer.model", model))
            for text in (t for t in unigram_test.texts() if "\u2581" not in t):
                ids = reference.encode(text)
                self.assertEqual(decode(path, ids), reference.decode(ids), text)


if __name__ == "__main__":
    unittest.main()
