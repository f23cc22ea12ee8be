"""The AMD code objects that we ship, interpreted instruction by instruction on emulated cards, with the checker on: they
must do what the host does, and the checker must find nothing."""
import json
import os
import pathlib
import tempfile
import unittest

import rdna_program
from rdna_program import DEMO_MODEL, output, run
import made_model

EMULATOR = pathlib.Path(rdna_program.PROGRAM).parent.parent / "emulator/librdna_emulator.so"
TARGETS = os.environ.get("RDNA_EMULATED_TARGETS", "gfx1030,gfx1100").split(",")  # each must have its kernels


class Emulated(unittest.TestCase):
    def environment(self, target, check=True):
        return {"RDNA_EMULATE": target, "RDNA_EMULATE_CHECK": "1" if check else "0"}

    def on_each_target(self):
        packs = {pack["target"] for pack in json.loads(output("kernels", "--json"))}
        for target in TARGETS:
            with self.subTest(target):
                self.assertIn(target, packs, "this build has no kernels for it")
                yield target

    def test_says_that_it_is_emulated(self):
        for target in self.on_each_target():
            device = json.loads(output("info", "--json", environment=self.environment(target)))["devices"][0]
            self.assertEqual((device["driver"], device["arch"], device["emulated"]), ("hip", target, True))
            self.assertIn("emulated", device["name"])

    def test_several_devices(self):
        report = json.loads(output("info", "--json", environment={"RDNA_EMULATE": ",".join(TARGETS)}))
        self.assertEqual([d["arch"] for d in report["devices"] if d["driver"] == "hip"], TARGETS)

    def test_unknown_targets_are_refused(self):
        for target in ("gfx9999", "sm_90", "gfx1100,", "x" * 500):
            result = run("selftest", "--driver", "hip", environment={"RDNA_EMULATE": target})
            self.assertEqual((result.returncode, result.stdout), (1, b""), target)
            self.assertGreater(len(result.stderr), 20)

    def test_writes_the_same_text(self):
        arguments = ("run", DEMO_MODEL, "And God said", "--exact", "--greedy", "--ignore-end", "--max-tokens", 20, "--json")
        want = json.loads(output(*arguments, "--driver", "host"))["tokens"]
        self.assertEqual(len(want), 20)
        for target in self.on_each_target():
            result = run(*arguments, "--driver", "hip", environment=self.environment(target), timeout=900)
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            self.assertEqual(result.stderr, b"")  # where the checker's findings would be
            self.assertEqual(json.loads(result.stdout)["tokens"], want)

    def test_launches_of_a_token(self):
        """A layer whose q, k and v are of one type takes six: these, rotation into the caches, attention, its output,
        gate and up, down. Norms, gates and additions are in the products. The last layer's v is of another type. With
        experts it takes nine: the router and its choice come before their products, and the sum of their results after
        them. Clamped gates with biases, gpt-oss's, take none of their own."""
        for shape, products, others in (("tiny", 2 * 4 + 5, [1, 3, 3]), ("tiny-experts", 2 * 5 + 6, [1, 3, 3, 3, 3]),
                                        ("tiny-qwen3moe", 2 * 5 + 6, [1, 3, 3, 3, 3]),
                                        ("tiny-gpt-oss", 3 * 5, [1, 3, 3, 3, 3])):
            with tempfile.TemporaryDirectory() as folder:
                model = pathlib.Path(folder) / "tiny.gguf"
                made_model.write(model, shape)
                report = json.loads(output("bench", model, "--driver", "hip", "--prompt", 2, "--decode", 1, "--kernels",
                                           "--json", environment=self.environment(TARGETS[-1], check=False)))
            of_token = {row["kernel"]: row["launches"] for row in report["results"] if row.get("of") == "token"}
            kernels = {name: count for name, count in of_token.items() if not name.startswith("copy")}
            of_products = sum(count for name, count in kernels.items() if "gemv" in name)
            of_others = sorted(count for name, count in kernels.items() if "gemv" not in name)
            self.assertEqual((of_products, of_others), (products + 1, others), of_token)

    def test_steps_are_replayed(self):
        """By a command without a plan, whose rehearsal records as the device would."""
        arguments = ("logits", DEMO_MODEL, "--exact", "--tokens", "5,6,7,8,9", "--batch", 1, "--out", os.devnull)
        for driver, said in (("hip", b"replays of a graph"), ("host", b"kernel by kernel")):
            environment = {"RDNA_EMULATE": TARGETS[0], "RDNA_LOG": "debug"}
            result = run(*arguments, "--driver", driver, environment=environment, timeout=300)
            self.assertEqual(result.stderr.count(said), 1, result.stderr.decode())


if __name__ == "__main__":
    if not EMULATOR.exists():
        print(f"skipped: {EMULATOR} was not built")
        raise SystemExit(77)
    if not TARGETS[0]:
        print("skipped: this build has kernels for none of the emulated cards")
        raise SystemExit(77)
    unittest.main()
