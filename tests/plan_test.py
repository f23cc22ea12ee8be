"""What rdna_llm_make_plan foretells, against what the device's pool has seen afterwards."""
import json
import os
import pathlib
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np

import rdna_program  # first: it makes tools/ importable

import gguf_file as gf
import llm_sessions
from architecture_delta import DELTA
from architecture_gemma4 import GEMMA4
from architecture_mixtures import MIXTURES, GptOss
from architecture_models import Model as Made
from architecture_rows import ROWS as DENSE
from llm_sessions import SessionOptions
from logits_test import write_model

F32, F16 = 0, 1
# One of each kind of layer: windows, experts, states, latent vectors, heads beyond the kernels', shared caches.
ROWS = ["llama", "gemma3", "gpt-oss", "deepseek2", "qwen35moe", "gemma4, of E2B", "gemma4, of 26B"]


class Plans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model.gguf"

    def follow(self, device, vocabulary, options, tokens, steps, split=(0, 0)):
        """The plan, and the pools' statistics when as many tokens were read and stepped."""
        model = llm_sessions.Model(self.path, device, opened=False)
        try:
            plan = model.plan(options, 0, *split)
            self.assertEqual(model.stats().peak_reserved, 0)  # nothing was allocated for it
            model.open(*split)
            session = llm_sessions.Session(model, vocabulary, 0, 0, options)
            ids = np.random.default_rng(3).integers(0, vocabulary, tokens + steps).tolist()
            session.prompt(ids[:tokens])
            for token in ids[tokens:]:
                session.step(token)
            stats = [model.stats()] + ([model.stats("host")] if any(split) else [])
            session.close()
        finally:
            model.close()
        return plan, *stats

    def check(self, parts, stats):
        self.assertAlmostEqual(parts.peak / stats.peak_allocated, 1, delta=0.03)
        self.assertEqual(parts.weights - parts.mapped + parts.caches + parts.activations + parts.workspace, parts.peak)
        segment = 2 << 20  # one more or less of the smallest is a matter of when streams are found idle
        self.assertAlmostEqual(parts.reserved, stats.peak_reserved, delta=max(segment, 0.03 * stats.peak_reserved))

    def test_architectures(self):
        """Small models of each kind."""
        for device in DEVICES:
            for row in (row for row in DENSE + MIXTURES + DELTA + GEMMA4 if row.name in ROWS):
                with self.subTest(row.name, device=device):
                    Made(row, seed=1).write(self.path)
                    options = SessionOptions(90, F16, 24, 0)
                    plan, stats = self.follow(device, row.config["vocab_size"], options, *((72, 18) if device == "host" else (40, 4)))
                    self.check(plan.device, stats)
                    self.assertEqual((plan.context, plan.batch, plan.fits), (90, 24, 1))

    def test_a_larger_model(self):
        """Of 10 MB, with weights in blocks, which a card unpacks in slices for prompts of more than 64 tokens."""
        for device in DEVICES:
            for kind in (gf.TENSOR_Q4_K, gf.TENSOR_F16):
                with self.subTest(kind, device=device):
                    write_model(self.path, np.random.default_rng(2), kind, width=768, heads=6, kv_heads=2, hidden=1536,
                                layers=2, vocabulary=2000)
                    options = SessionOptions(1000, F16, 72, 0)
                    plan, stats = self.follow(device, 2000, options, 72, 3)
                    self.check(plan.device, stats)
                    self.assertGreater(plan.device.weights, 4e6)
                    self.assertEqual(plan.staging > 0, device == "hip")  # a host uses weights where they are mapped
                    self.assertLessEqual(plan.staging, 32 << 20)
                    if device == "hip" and kind == gf.TENSOR_Q4_K:
                        self.assertGreater(plan.device.workspace, 1e6)

    def test_parts_on_the_host(self):
        """Two pools have their peaks foretold, the host's and the card's."""
        if "hip" not in DEVICES:
            self.skipTest("this build's RDNA_TARGETS leave gfx1100 out, the card that is emulated here")
        for name, split in (("gpt-oss", (1, 3)), ("qwen35moe", (2, 0)), ("llama", (0, 0))):
            with self.subTest(name):
                row = next(row for row in DENSE + MIXTURES + DELTA + GEMMA4 if row.name == name)
                Made(row, seed=1).write(self.path)
                options = SessionOptions(90, F16, 24, 0)
                found = self.follow("hip", row.config["vocab_size"], options, 40, 4, split)
                self.check(found[0].device, found[1])
                if any(split):
                    self.check(found[0].host, found[2])
                    self.assertGreater(found[0].host.mapped, 1e5)
                self.assertEqual((found[0].host.peak > 0, found[0].host.mapped > 0), (any(split), any(split)))

    def test_what_stays_on_the_host(self):
        """As little as makes it fit: experts first, then layers."""
        if "hip" not in DEVICES:
            self.skipTest("this build's RDNA_TARGETS leave gfx1100 out, the card that is emulated here")
        Made(GptOss("gpt-oss", dict(hidden_size=256, intermediate_size=512, num_local_experts=8)),
             seed=1).write(self.path)
        model = llm_sessions.Model(self.path, "hip", opened=False)
        self.addCleanup(model.close)
        options, auto = SessionOptions(90, F16, 24, 0), llm_sessions.AUTO
        whole = model.plan(options, 0, auto, auto)
        self.assertEqual((whole.host_layers, whole.host_experts, whole.fits), (0, 0, 1))
        sizes = {split: model.plan(options, 1 << 30, *split).device.reserved
                 for split in [(0, n) for n in range(5)] + [(n, 4) for n in range(1, 5)]}
        self.assertGreater(len(set(sizes.values())), 1)
        for budget in sorted(set(sizes.values())):
            plan = model.plan(options, budget, auto, auto)
            self.assertEqual(plan.fits, 1)
            self.assertEqual((plan.host_layers, plan.host_experts),
                             next(split for split, size in sizes.items() if size <= budget))
            if plan.host_experts:
                self.assertIn(b"of 4 layers", plan.sentence)
        none = model.plan(options, 1 << 20, auto, auto)
        self.assertEqual((none.fits, none.host_layers, none.host_experts), (0, 0, 0))
        self.assertIn(b"--gpu-layers auto", none.sentence)

    def test_a_context_from_the_budget(self):
        """The longest that fits, and not a step longer; where none fits, why not."""
        write_model(self.path, np.random.default_rng(4), gf.TENSOR_Q8_0, width=256, layers=4, context=30000)
        model = llm_sessions.Model(self.path, opened=False)
        self.addCleanup(model.close)
        plan = model.plan(SessionOptions(0, F16, 0, 0))
        self.assertEqual((plan.context, plan.batch, plan.fits, plan.sentence), (30000, 512, 1, b""))
        budget = plan.device.reserved * 2 // 3
        plan = model.plan(SessionOptions(0, F16, 0, 0), budget)
        self.assertEqual((plan.batch, plan.fits), (512, 1))
        self.assertIn(b"of the model's 30000", plan.sentence)
        self.assertGreater(plan.context, 12000)
        self.assertLessEqual(plan.device.reserved, budget)
        longer = model.plan(SessionOptions(plan.context + 2048, F16, 0, 0), budget)
        self.assertEqual((longer.fits, longer.context), (0, plan.context + 2048))
        self.assertIn(b"it takes 0.0", longer.sentence)
        least = model.plan(SessionOptions(2000, F16, 32, 0)).device.reserved
        small = model.plan(SessionOptions(2000, F16, 0, 0), least)
        self.assertEqual(small.fits, 1)
        self.assertLess(small.batch, 512)
        self.assertIn(b"passes of", small.sentence)
        self.assertEqual(model.plan(SessionOptions(0, F16, 0, 0), 1 << 20).fits, 0)


if __name__ == "__main__":
    os.environ["RDNA_EMULATE"] = "gfx1100"
    targets = {pack["target"] for pack in json.loads(rdna_program.output("kernels", "--json"))}
    DEVICES = ["host", "hip"] if "gfx1100" in targets else ["host"]
    unittest.main()
