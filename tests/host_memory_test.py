"""Host memory that runs out: each call by which rdna asks for some gets none, one after another. The command must then do
what it does otherwise, or say in a sentence that memory ran out; it never crashes, and never does less in silence."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import unittest

import numpy as np

import rdna_program
from rdna_program import DEMO_MODEL, output, run

import gguf_file as gf
import serving
from logits_test import write_model

PRELOADED = os.environ["RDNA_FAILING_MALLOC"]
SHARE = 40  # of a command's calls; and of each place in the program that no command had before, the first and the last


class HostMemory(unittest.TestCase):
    seen = set()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ask(self, arguments, stdin, **environment):
        made = self.folder / "made"
        made.unlink(missing_ok=True)
        result = run(*arguments, stdin=stdin, environment={"RDNA_THREADS": "1", "LD_PRELOAD": PRELOADED, **environment})
        return result, made.read_bytes() if made.exists() else None

    def places_of(self, calls, share):
        """The numbers of the calls that get nothing, and each one's place."""
        places = calls.read_text().split()
        self.assertGreater(len(places), 0)
        ends = {end for place in set(places) - self.seen for end in (places.index(place), len(places) - 1 - places[::-1].index(place))}
        self.seen.update(places)
        return [(number, places[number]) for number in sorted(ends | set(random.Random(1).sample(range(len(places)), min(share, len(places)))))]

    def check(self, *arguments, stdin=b"", share=SHARE, **environment):
        calls = self.folder / "calls"
        want, made = self.ask(arguments, stdin, RDNA_TEST_CALLS=str(calls), **environment)
        self.assertEqual(want.returncode, 0, want.stderr)
        numbers = self.places_of(calls, share)
        refused = 0
        for number, place in numbers:
            with self.subTest(arguments[0], call=number, place=place):
                got, made_now = self.ask(arguments, stdin, RDNA_TEST_FAIL=str(number), **environment)
                if got.returncode == 0:
                    self.assertEqual((got.stdout, made_now), (want.stdout, made))
                    continue
                refused += 1
                self.assertEqual(got.returncode, 1, got.stderr)
                self.assertRegex(got.stderr.decode().splitlines()[-1], "memory|tried to allocate")
        self.assertGreater(refused, len(numbers) // 2)

    def test_reading_and_writing_text(self):
        model = serving.write_model(self.folder)
        self.check("tokenize", model, stdin=b"In the beginning, caf\xc3\xa9 \xe2\x82\xac 123")
        self.check("run", model, "And God said", "--greedy", "--max-tokens", 3, "--context", 64)
        self.check("run", model, "Who?", "--chat", "--system", "Be brief.", "--temperature", 1, "--seed", 1, "--top-k", 5, "--max-tokens", 3, "--context", 64)

    def test_grammars(self):
        grammar = self.folder / "grammar"
        grammar.write_text('root ::= ("a" | "b" [c-e]{2,3})+ word? "."\nword ::= [^a-z ]*')
        schema = self.folder / "schema"
        schema.write_text('{"type": "object", "properties": {"a": {"enum": [1, "x"]}, "b": {"type": "string", "pattern": "^a+b?$"}, "c": {"type": "array", "items": {"type": "number"}}}, "required": ["a"]}')
        for option, file in (("--grammar", grammar), ("--json-schema", schema)):
            self.check("run", DEMO_MODEL, "x", "--greedy", option, file, "--max-tokens", 6, "--context", 64)

    def test_logits_and_weights(self):
        model = self.folder / "model.gguf"
        write_model(model, np.random.default_rng(1), gf.TENSOR_F32, width=32, hidden=32)
        self.check("logits", model, "--tokens", "1,2,3", "--out", self.folder / "made")
        self.check("quantize", model, self.folder / "made", "q8_0")
        self.check("kernels", "--json")
        if any(pack["target"] == "gfx1100" for pack in json.loads(output("kernels", "--json"))):
            self.check("logits", model, "--tokens", "1,2,3", "--out", self.folder / "made", "--batch", 1, "--device", "hip", share=5,
                       RDNA_EMULATE="gfx1100", RDNA_TUNE_FILE=str(self.folder / "tuned.sqlite"))

    def test_measures(self):
        model, text, matrix = serving.write_model(self.folder), self.folder / "text", self.folder / "matrix.gguf"
        text.write_text("In the beginning was the word. " * 8)
        self.check("imatrix", model, text, "--out", self.folder / "made", "--window", 16, share=4)
        output("imatrix", model, text, "--out", matrix, "--window", 16)
        self.check("quantize", model, self.folder / "made", "q8_0", "--imatrix", matrix, share=4)
        self.check("perplexity", model, "--json", "--window", 16, text, share=4)
        self.check("embed", model, "--pooling", "mean", stdin=b"In the beginning", share=4)

    def serve(self, model, **environment):
        """A server that answers one request, and ends: how it did, the request's status, what it said."""
        process = subprocess.Popen([rdna_program.PROGRAM, "serve", model, "--port", "0", "--device", rdna_program.DEVICE, "--context", "64", "--slots", "1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "RDNA_THREADS": "1", "LD_PRELOAD": PRELOADED, **environment})
        line = process.stdout.readline()
        status = None
        if "http://" in line:
            connection = http.client.HTTPConnection("127.0.0.1", int(line.split("http://127.0.0.1:")[1].split(",")[0]), timeout=60)
            with contextlib.closing(connection):
                try:
                    connection.request("POST", "/v1/completions", json.dumps({"prompt": "In", "max_tokens": 2, "temperature": 0}))
                    status = connection.getresponse().status
                except (OSError, http.client.HTTPException):
                    status = "none"  # the connection was closed: there was no memory for an answer
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
        return process.returncode, status, said

    def test_serving(self):
        """Threads take turns as they like, so that a number may be another call's: whichever it is, the server lives on, or says why it does not start."""
        model, calls = serving.write_model(self.folder), self.folder / "calls"
        code, status, said = self.serve(model, RDNA_TEST_CALLS=str(calls))
        self.assertEqual((code, status), (0, 200), said)
        ends = set()
        for number, place in self.places_of(calls, 0):
            with self.subTest(call=number, place=place):
                code, status, said = self.serve(model, RDNA_TEST_FAIL=str(number))
                ends.add((code, status))
                if code == 1 and status is None:
                    self.assertRegex(said.splitlines()[-1], "memory|tried to allocate")
                else:
                    self.assertEqual(code, 0, said)
                    self.assertIn(status, (200, 500, 503, "none"), said)
        self.assertIn((1, None), ends)


if __name__ == "__main__":
    unittest.main()
