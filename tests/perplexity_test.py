"""How well the demo model foretells a text, against float64 NumPy, and in each type that weights can have."""
import json
import pathlib
import tempfile
import unittest

import numpy as np

import rdna_program  # first: it makes tools/ importable
from rdna_program import DEMO_MODEL, output, run

import gguf_file as gf
import llama_reference

TEXT = """And it came to pass in those days, that the king sent forth his servants into all the cities of the land, and
they went, and told the people all that the king had commanded. Then said the elders of the city unto them, Who is this
that hath sent you? And they answered and said, The king of all this land, whose word is as the sword, and whose mercy is
as the rain upon the grass. And the people lifted up their voice, and wept, and said, Behold, our fathers have sinned, and
are not; and we have borne their iniquities. Turn thou us unto thee, O Lord, and we shall be turned; renew our days as of
old. And the servants departed from thence, and came unto the king at the going down of the sun, and told him all these
things; and the king rose up, and put on his garments, and went in unto the house of the Lord, and prayed there all the
night, until the morning was come.
""" * 2
WINDOW = 64
TYPES = "f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_K q3_K q4_K q5_K q6_K".split()


def perplexity(model, *options):
    return json.loads(output("perplexity", model, "--json", "--window", WINDOW, "--driver", "host", *options,
                             stdin=TEXT.encode()))


class Perplexity(unittest.TestCase):
    def test_against_float64(self):
        model = gf.Reader(DEMO_MODEL)
        ids = [int(i) for i in output("tokenize", DEMO_MODEL, stdin=TEXT.encode()).split()]
        bos = model.keys["tokenizer.ggml.bos_token_id"]
        surprises = []
        for first in range(0, len(ids) - WINDOW + 1, WINDOW):
            window = ([bos] if model.keys.get("tokenizer.ggml.add_bos_token", True) else [ids[first]]) \
                + ids[first + 1 : first + WINDOW]
            logits = llama_reference.logits(model, window)
            largest = logits.max(-1, keepdims=True)
            log_p = logits - largest - np.log(np.exp(logits - largest).sum(-1, keepdims=True))
            surprises += [-log_p[i - 1, window[i]] for i in range(WINDOW // 2, WINDOW)]
        got = perplexity(DEMO_MODEL, "--kv", "f32")
        self.assertEqual(got["tokens"], len(surprises))
        self.assertGreater(got["tokens"], 200)
        want = np.exp(np.mean(surprises))
        self.assertLess(abs(got["perplexity"] / want - 1), 1e-5)
        self.assertLess(abs(got["standard_error"] / (want * np.std(surprises) / len(surprises) ** 0.5) - 1), 1e-4)

    def test_each_type_computes_what_its_values_are(self):
        """The weights in blocks, and the same ones as f32, foretell alike."""
        with tempfile.TemporaryDirectory() as folder:
            quantized, plain = pathlib.Path(folder) / "quantized.gguf", pathlib.Path(folder) / "plain.gguf"
            seen = set()
            for kind in TYPES:
                with self.subTest(kind):
                    output("quantize", DEMO_MODEL, quantized, kind)
                    output("quantize", quantized, plain, "f32")
                    want, got = perplexity(plain)["perplexity"], perplexity(quantized)["perplexity"]
                    self.assertLess(abs(got / want - 1), 5e-3)
                    seen.add(round(want, 3))
            self.assertGreater(len(seen), len(TYPES) // 2)  # types do differ

    def test_refused(self):
        for arguments, mentions in ((("--window", "4000000"), b"less than a window"), (("--window", "2"), b"--window")):
            result = run("perplexity", DEMO_MODEL, *arguments, stdin=TEXT.encode())
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(mentions, result.stderr)


if __name__ == "__main__":
    unittest.main()
