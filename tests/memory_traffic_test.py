"""How many bytes decoding a token moves through memory on the host, counted by cachegrind's model of a cache that is
much smaller than the weights. The difference between two lengths leaves start-up and the prompt out."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import rdna_program

CACHE = 1 << 20
LINE = 64


def cache_misses(tokens):
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--LL={CACHE},16,{LINE}",
             f"--cachegrind-out-file={folder}/out", rdna_program.PROGRAM, "run", rdna_program.DEMO_MODEL, "In",
             "--greedy", "--ignore-end", "--max-tokens", str(tokens), "--driver", "host"],
            capture_output=True, check=True, timeout=600,
            # valgrind does not know AVX-512, and one thread keeps its schedule out of the count
            env={**os.environ, "RDNA_THREADS": "1", "RDNA_HOST_ISA": "avx2"})
    return int(re.search(rb"LLd misses:\s+([\d,]+)", result.stderr)[1].replace(b",", b""))


class MemoryTraffic(unittest.TestCase):
    @unittest.skipUnless(shutil.which("valgrind"), "valgrind counts the cache misses, and it is not installed")
    def test_decoding_reads_the_weights_once(self):
        report = json.loads(rdna_program.output("bench", rdna_program.DEMO_MODEL, "--driver", "host", "--prompt", 2,
                                                "--decode", 2, "--json"))
        weights = report["results"][0]["weight_bytes_per_token"]
        self.assertGreater(weights, 6 * CACHE)
        moved = (cache_misses(10) - cache_misses(2)) / 8 * LINE
        print(f"{moved / weights:.3f} times the weights' {weights} bytes move for a token")
        self.assertGreater(moved, 0.9 * weights)  # less would mean that the count is wrong
        self.assertLess(moved, 1.1 * weights)


if __name__ == "__main__":
    unittest.main()
