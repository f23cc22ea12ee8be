"""The program as a person or a script meets it: what it prints, and what it says when something is wrong."""
import json
import os
import pathlib
import re
import struct
import tempfile
import time
import unittest

import rates
import rdna_program
from rdna_program import DEMO_MODEL, output, run

import gguf_file as gf

EMULATOR = pathlib.Path(rdna_program.PROGRAM).parent.parent / "emulator/librdna_emulator.so"
GREEDY = ("--greedy", "--ignore-end", "--device", rdna_program.DEVICE)


class Run(unittest.TestCase):
    def test_streams_the_prompt_and_text(self):
        text = output("run", DEMO_MODEL, "And God said", "--max-tokens", 12, *GREEDY).decode()
        self.assertTrue(text.startswith("And God said"))
        self.assertGreater(len(text), len("And God said") + 12)
        bare = output("run", DEMO_MODEL, "And God said", "--max-tokens", 12, "--no-echo", *GREEDY).decode()
        self.assertEqual("And God said" + bare, text)

    def test_json(self):
        report = json.loads(output("run", DEMO_MODEL, "And God said", "--max-tokens", 12, "--json", *GREEDY))
        self.assertEqual(len(report["tokens"]), 12)
        self.assertEqual(report["stop"], "length")
        self.assertEqual(report["prompt_tokens"], 4)  # the beginning, and three words
        text = output("run", DEMO_MODEL, "And God said", "--max-tokens", 12, "--no-echo", *GREEDY).decode()
        self.assertEqual(report["text"], text.removesuffix("\n"))
        self.assertGreater(report["decode_tokens_per_second"], 0)

    def test_writes_english(self):
        text = json.loads(output("run", DEMO_MODEL, "And God said", "--max-tokens", 200, "--temperature", 0.7, "--seed",
                                 3, "--ignore-end", "--json", "--device", rdna_program.DEVICE))["text"]
        words = re.findall("[a-z]+", text.lower())
        common = set("the and of to that in he shall unto for i his a lord they be is him not them with it all thou".split())
        self.assertGreater(sum(word in common for word in words) / len(words), 0.3)

    def test_seeds(self):
        def draw(seed):
            return json.loads(output("run", DEMO_MODEL, "And", "--max-tokens", 24, "--seed", seed, "--json",
                                     "--temperature", 1, "--device", rdna_program.DEVICE))["tokens"]

        self.assertEqual(draw(5), draw(5))
        self.assertNotEqual(draw(5), draw(6))

    def test_sampling_options_narrow_to_greedy(self):
        greedy = output("run", DEMO_MODEL, "And", "--max-tokens", 16, *GREEDY)
        for narrow in (("--top-k", 1), ("--top-p", 1e-6), ("--min-p", 1)):
            drawn = output("run", DEMO_MODEL, "And", "--max-tokens", 16, "--ignore-end", "--temperature", 1, *narrow,
                           "--device", rdna_program.DEVICE)
            self.assertEqual(drawn, greedy, narrow)

    def test_repetition_penalty_changes_the_text(self):
        plain = output("run", DEMO_MODEL, "And", "--max-tokens", 64, *GREEDY)
        self.assertNotEqual(output("run", DEMO_MODEL, "And", "--max-tokens", 64, "--repeat-penalty", 1.5, *GREEDY), plain)
        self.assertEqual(output("run", DEMO_MODEL, "And", "--max-tokens", 64, "--repeat-penalty", 1.5, "--repeat-last",
                                0, *GREEDY), plain)

    def test_batches_do_not_change_the_text(self):
        prompt = "And it came to pass in those days, that there went out a decree, and all the people heard it. "
        texts = {output("run", DEMO_MODEL, prompt, "--max-tokens", 24, "--kv", "f32", "--batch", n, *GREEDY)
                 for n in (1, 5, 512)}
        self.assertEqual(len(texts), 1)

    def test_stops_at_the_context(self):
        report = json.loads(output("run", DEMO_MODEL, "And God said", "--context", 10, "--json", *GREEDY))
        self.assertEqual(report["stop"], "context")
        self.assertEqual(len(report["tokens"]), 7)  # 4 of the prompt, 6 that were evaluated, the last was not


class Others(unittest.TestCase):
    def test_info(self):
        self.assertIn("host:0", output("info").decode())
        report = json.loads(output("info", "--json"))
        self.assertEqual([driver["name"] for driver in report["drivers"]], ["hip", "cuda", "host", "null"])
        for driver in report["drivers"]:
            self.assertGreater(len(driver["message"]), 10)
        host = next(device for device in report["devices"] if device["driver"] == "host")
        self.assertEqual(host["compute_units"], len(os.sched_getaffinity(0)))

    def test_kernels_extracts_code_objects(self):
        with tempfile.TemporaryDirectory() as folder:
            output("kernels", "--extract", folder)
            names = {path.name for path in pathlib.Path(folder).iterdir()}
            report = json.loads(output("kernels", "--json"))
            for pack in report:
                suffix = "ptx" if pack["target"].startswith("sm_") else "hsaco"
                for entry in pack["code_objects"]:
                    name = f"{entry['name']}.{pack['target']}.{suffix}"
                    self.assertIn(name, names)
                    data = (pathlib.Path(folder) / name).read_bytes()
                    if suffix == "hsaco":
                        self.assertEqual(len(data), entry["bytes"])
                        self.assertEqual(data[:4] + data[18:20], b"\x7fELF\xe0\x00")  # EM_AMDGPU is 224
                    else:
                        self.assertIn(b".visible .entry", data)
            self.assertEqual(len(names), sum(len(pack["code_objects"]) for pack in report))

    def test_kernels_of_a_gpu_without_a_pack_of_its_own(self):
        if "gfx1030" not in {pack["target"] for pack in json.loads(output("kernels", "--json"))}:
            self.skipTest("this build's RDNA_TARGETS leave gfx1030 out, whose pack gfx1031 runs")
        with tempfile.TemporaryDirectory() as folder:
            text = output("kernels", "--target", "gfx1031", "--extract", folder).decode()
            self.assertIn("gfx1031 has no pack of its own and runs these", text)
            for path in pathlib.Path(folder).iterdir():
                self.assertTrue(path.name.endswith(".gfx1031.hsaco"), path)
                data = path.read_bytes()
                self.assertEqual(data[48], 0x37)  # EF_AMDGPU_MACH_AMDGCN_GFX1031
                self.assertIn(b"gfx1031", data)
                self.assertNotIn(b"gfx1030", data)
            self.assertTrue(any(pathlib.Path(folder).iterdir()))
        result = run("kernels", "--target", "gfx803")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"there is no pack for 'gfx803'", result.stderr)

    def test_kernels_in_one_form_at_a_time(self):
        for flags in (("--needed", "--json"), ("--markdown", "--json"), ("--needed", "--where", "fill"), ("--markdown", "--needed")):
            result = run("kernels", *flags)
            self.assertEqual((result.returncode, result.stdout), (2, b""), flags)
            self.assertIn(b"exclude each other", result.stderr)

    @unittest.skipUnless(EMULATOR.exists(), "the emulator is not built, which stands for the GPUs here")
    def test_kernels_that_the_gpus_need(self):
        needed = output("kernels", "--needed", environment={"RDNA_EMULATE": "gfx1100,gfx1030,gfx1100"}).split()
        self.assertIn(b"gfx1030 gfx1100", b" ".join(needed))  # and what other GPUs are here

    def test_tokenize(self):
        text = "In the beginning God created the heaven and the earth.\n"
        ids = output("tokenize", DEMO_MODEL, stdin=text.encode()).split()
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            self.assertEqual(output("tokenize", DEMO_MODEL, file.name).split(), ids)
        self.assertEqual(output("tokenize", DEMO_MODEL, "-", "--bos", stdin=text.encode()).split(), [b"0"] + ids)
        self.assertEqual(output("tokenize", DEMO_MODEL, stdin=b""), b"\n")
        pieces = gf.Reader(DEMO_MODEL).keys["tokenizer.ggml.tokens"]
        self.assertEqual("".join(pieces[int(i)] for i in ids), text.replace(" ", "\u0120").replace("\n", "\u010a"))

    def test_selftest(self):
        text = output("selftest", "--cases", 1, "--device", rdna_program.DEVICE).decode()
        self.assertRegex(text, r"(\d+) of \1 kernels agree")
        report = json.loads(output("selftest", "--cases", 1, "--kernel", "norm", "--json", "--device",
                                   rdna_program.DEVICE))
        self.assertTrue(all(kernel["passed"] and kernel["cases"] == 1 for kernel in report["kernels"]))

    def test_bench(self):
        begun = time.monotonic()
        report = json.loads(output("bench", "--op", "argmax", "--json", "--device", rdna_program.DEVICE))
        self.assertEqual([row["op"] for row in report["results"]], ["argmax"])
        self.assertEqual(report["results"][0]["bytes"], 4096 * 4096 * 4)  # what its name says that it reads
        self.assertEqual(list(rates.impossible(report, time.monotonic() - begun)), [])

    def test_bench_of_a_model(self):
        report = json.loads(output("bench", DEMO_MODEL, "--prompt", 32, "--decode", 8, "--depth", "0,96", "--json",
                                   "--device", rdna_program.DEVICE))
        self.assertEqual([(row["depth"], row["prompt_tokens"]) for row in report["results"]], [(0, 32), (96, 32)])
        self.assertEqual(list(rates.impossible(report)), [])
        table = output("bench", DEMO_MODEL, "--prompt", 8, "--decode", 2, "--device", rdna_program.DEVICE).decode()
        self.assertRegex(table, r"depth +prompt +tokens/s +decode")

    def test_plans(self):
        """Plans are printed, and what they say of a context is what a run takes."""
        device = ("--device", rdna_program.DEVICE)
        plan = json.loads(output("run", DEMO_MODEL, "In the beginning", "--plan", "--json", "--max-tokens", 40, *device))
        self.assertEqual((plan["fits"], plan["sentence"], plan["context"], plan["model_context"]), (True, "", 256, 512))
        memory = plan["memory"]
        self.assertGreater(memory["weights"], 6e6)
        self.assertEqual(memory["weights"] - memory["mapped"] + sum(
            memory[part] for part in ("caches", "activations", "workspace")), memory["peak"])
        longer = json.loads(output("run", DEMO_MODEL, "--plan", "--json", "--context", 400, "--kv", "f32", *device))
        self.assertEqual((longer["context"], longer["memory"]["caches"]), (400, memory["caches"] * 400 * 2 // 256))
        table = output("chat", DEMO_MODEL, "--plan", *device).decode()
        for line in ("  weights ", "  caches ", "  peak ", "  it fits\n", "a context of 512, of the model's 512"):
            self.assertIn(line, table)
        bench = json.loads(output("bench", DEMO_MODEL, "--plan", "--json", "--prompt", 60, "--decode", 20, "--depth", "0,100",
                                  *device))
        self.assertEqual(bench["context"], 180)

    def test_layers_on_the_host(self):
        """The text is the same, wherever layers are."""
        run = ("run", DEMO_MODEL, "In the beginning", "--greedy", "--max-tokens", 12, "--device", rdna_program.DEVICE)
        for layers in ("0", "3", "99"):
            result = rdna_program.run(*run, "--gpu-layers", layers, "--experts-on-host", "auto")
            self.assertEqual(result.stdout, output(*run))
            self.assertEqual(b"the host has %d of 8 layers" % (8 - int(layers)) in result.stderr, layers != "99")
        plan = json.loads(output("run", DEMO_MODEL, "--plan", "--json", "--gpu-layers", 3, "--device", rdna_program.DEVICE))
        self.assertEqual((plan["host_layers"], plan["host_experts"], plan["layers"]), (5, 0, 8))
        self.assertIn(" host ", output("run", DEMO_MODEL, "--plan", "--gpu-layers", 3, "--device", rdna_program.DEVICE).decode())

    def test_bench_of_many_sequences(self):
        report = json.loads(output("bench", DEMO_MODEL, "--decode", 3, "--depth", "0,40", "--batch", "1,3", "--kernels",
                                   "--json", "--device", rdna_program.DEVICE))
        rates_of = [row for row in report["results"] if "kernel" not in row]
        self.assertEqual([(row["depth"], row["sequences"]) for row in rates_of], [(0, 1), (0, 3), (40, 1), (40, 3)])
        for row in rates_of:
            self.assertAlmostEqual(row["tokens_per_second"] * row["step_milliseconds"], 1000 * row["sequences"], places=3)
            self.assertLess(row["tokens_per_second_each"], 1e6)
        self.assertTrue(any(row["of"] == "token of 3 sequences" for row in report["results"] if "kernel" in row))
        table = output("bench", DEMO_MODEL, "--decode", 1, "--batch", "2", "--device", rdna_program.DEVICE).decode()
        self.assertRegex(table, r"depth +sequences +decode")

    def test_where_a_models_time_goes(self):
        report = json.loads(output("bench", DEMO_MODEL, "--prompt", 5, "--decode", 1, "--depth", "3", "--kernels", "--json",
                                   "--device", rdna_program.DEVICE))
        rows = [row for row in report["results"] if "kernel" in row]
        for part in ("prompt", "token"):
            of = [row for row in rows if row["of"] == part]
            self.assertTrue(all(row["depth"] == (3 if part == "prompt" else 8) for row in of))
            layers, told = 8, "norm" if part == "prompt" else "gemv"  # of which a token's norms are part
            self.assertGreaterEqual(sum(row["launches"] for row in of if told in row["kernel"]), layers, of)
            self.assertTrue(all(row["launches"] > 0 and row["milliseconds"] >= 0 for row in of))
        table = output("bench", DEMO_MODEL, "--prompt", 2, "--decode", 1, "--kernels", "--device", rdna_program.DEVICE).decode()
        self.assertRegex(table, r"token at depth 2: \d+ launches")

    def test_rates_that_cannot_be(self):
        right = {"op": "add", "dtype": "f32", "milliseconds": 10.0, "bytes": 2e8, "gb_per_second": 20.0,
                 "share_of_copy": 0.9, "gflop_per_second": 0.0}
        wrong = [{"milliseconds": 0.01, "gb_per_second": 2e4}, {"milliseconds": 1e4, "gb_per_second": 0.02},
                 {"gb_per_second": 2e4}, {"gb_per_second": 0.02}, {"milliseconds": 0.0}, {"gflop_per_second": 1e8},
                 {"milliseconds": -10.0, "gb_per_second": -20.0}]
        self.assertEqual(list(rates.impossible({"driver": "host", "results": [right]}, 1.0)), [])
        for change in wrong:
            report = {"driver": "host", "results": [{**right, **change}]}
            self.assertEqual(len(list(rates.impossible(report, 1.0))), 1, change)
        right = {"parameters": 7e6, "weight_bytes_per_token": 7e6, "prompt_tokens_per_second": 2000.0,
                 "decode_tokens_per_second": 900.0, "decode_gb_per_second": 6.5}
        self.assertEqual(list(rates.impossible({"driver": "host", "results": [right]})), [])
        for key in ("parameters", "weight_bytes_per_token", "decode_tokens_per_second", "decode_gb_per_second"):
            report = {"driver": "host", "results": [{**right, key: right[key] * 1e6}]}
            self.assertGreaterEqual(len(list(rates.impossible(report))), 1, key)
        self.assertEqual(len(list(rates.impossible({"driver": "host", "results": []}))), 1)

    def test_doctor_on_a_bare_machine(self):
        with tempfile.TemporaryDirectory() as root:
            result = run("doctor", "--root", root, "--json")
            report = json.loads(result.stdout)
            self.assertEqual(result.returncode, 1)
            self.assertGreater(report["failed"], 0)
            for check in report["checks"]:
                self.assertGreater(len(check["found"]), 10)
                if check["state"] == "fail":
                    self.assertGreater(len(check["advice"]), 10)

    def test_help_of_everything(self):
        self.assertIn("RDNA_DRIVER", output("--help").decode())
        for name in re.findall(r"^  ([a-z]+) ", output("--help").decode(), re.M):
            self.assertIn("usage: rdna " + name, output(name, "--help").decode())
        page = rdna_program.ROOT / "docs/configuration.md"
        self.assertEqual(output("help", "--settings").decode(), page.read_text(), "write it again: rdna help --settings")
        self.assertRegex(output("--version").decode(), r"^rdna \d+\.\d+\.\d+\n$")


class Profile(unittest.TestCase):
    """`rdna profile`, with a shell in the place of a program of PyTorch (bindings/torch/tests/test_profiler.py has one)."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trace = pathlib.Path(folder.name) / "t.json"

    def profile(self, script, *arguments):
        return run("profile", "--out", self.trace, "sh", "-c", script, "name", *arguments)

    def test_the_program_is_told_the_file_and_has_its_own_arguments(self):
        self.trace.write_text("old")
        result = self.profile('test ! -e "$RDNA_PROFILE" && echo "$@" > "$RDNA_PROFILE"', "--out", "x", "--", "-h")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(self.trace.read_text(), "--out x -- -h\n")

    def test_exit_statuses(self):
        self.assertEqual(self.profile("exit 7").returncode, 7)
        self.assertEqual(self.profile("kill -9 $$").returncode, 128 + 9)
        result = self.profile("true")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"t.json was not written: sh used no device", result.stderr)
        result = run("profile", "/nowhere/program")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"cannot run /nowhere/program", result.stderr)
        for wrong in ((), ("--out",), ("--fly", "true")):
            self.assertEqual(run("profile", *wrong).returncode, 2)


class Refusing(unittest.TestCase):
    """One sentence on stderr, nothing on stdout, exit status 1 for what went wrong and 2 for what was asked wrongly."""

    def refused(self, status, *arguments, mentions="", **options):
        result = run(*arguments, **options)
        message = result.stderr.decode()
        self.assertEqual(result.returncode, status, (arguments, message))
        self.assertEqual(result.stdout, b"", arguments)
        self.assertEqual(message.count("\n"), 1, (arguments, message))
        self.assertGreater(len(message), 20)
        self.assertIn(mentions, message)


class Misuse(Refusing):
    def test_layers_that_are_no_number(self):
        self.refused(1, "run", DEMO_MODEL, "And", "--gpu-layers", "most", mentions="'most': a number of layers or 'auto'")
        self.refused(1, "run", DEMO_MODEL, "And", "--experts-on-host", "9", mentions="of a model of 8 layers")

    def test_contexts_that_do_not_fit(self):
        self.refused(1, "run", DEMO_MODEL, "And", "--context", "90000000", "--driver", "host", mentions="at most")

    def test_depths_that_are_no_numbers(self):
        self.refused(1, "bench", DEMO_MODEL, "--depth", "0,x", mentions="--depth '0,x'")
        self.refused(1, "bench", DEMO_MODEL, "--batch", "0", mentions="1 to 4096 sequences")

    def test_command_lines(self):
        self.refused(2, "fly", mentions="fly")
        self.refused(2, "run", DEMO_MODEL, "x", "--frobnicate", mentions="--frobnicate")
        self.refused(2, "run", DEMO_MODEL, "x", "--max-tokens", mentions="--max-tokens")
        for bad in ("many", "-1", "0", "1.5", "", "99999999999999999999"):
            self.refused(2, "run", DEMO_MODEL, "x", "--max-tokens", bad, mentions="--max-tokens")
        for bad in ("hot", "-0.1", "nan", "inf"):
            self.refused(2, "run", DEMO_MODEL, "x", "--temperature", bad, mentions="--temperature")
        self.refused(2, "run", DEMO_MODEL, "x", "--driver", "metal", mentions="metal")
        self.refused(2, "run", DEMO_MODEL, "x", "--greedy=yes", mentions="--greedy=yes")
        self.refused(2, "run", mentions="MODEL.gguf")
        self.refused(2, "run", DEMO_MODEL, "x", "y", mentions="y")
        self.refused(2, "logits", DEMO_MODEL, mentions="--tokens")
        self.refused(2, "convert", "folder", mentions="FOLDER OUT.gguf")
        self.refused(2, "convert", "folder", "out", "--type", mentions="--type")
        self.refused(2, "quantize", DEMO_MODEL, "out.gguf", mentions="OUT.gguf TYPE")
        self.refused(2, "quantize", DEMO_MODEL, "out.gguf", "q8_0", "more", mentions="one argument too many")

    def test_settings(self):
        self.refused(2, "info", environment={"RDNA_DRIVER": "metal"}, mentions="RDNA_DRIVER")
        self.refused(2, "info", environment={"RDNA_THREADS": "many"}, mentions="RDNA_THREADS")

    def test_devices(self):
        self.refused(1, "run", DEMO_MODEL, "x", "--device", "host:7", mentions="host:7")
        self.refused(1, "run", DEMO_MODEL, "x", "--device", "warp:0", mentions="warp")
        self.refused(1, "run", DEMO_MODEL, "x", "--device", "1", mentions="--driver")
        self.refused(1, "run", DEMO_MODEL, "x", "--driver", "cuda", mentions="libcuda",
                     environment={"RDNA_CUDA_LIBRARY": "/nowhere/libcuda.so"})
        self.refused(1, "run", DEMO_MODEL, "x", "--driver", "hip", mentions="hip",
                     environment={"RDNA_HIP_LIBRARY": "/nowhere/libamdhip64.so"})

    def test_a_gpu_without_a_pack(self):
        fake = pathlib.Path(rdna_program.PROGRAM).parent.parent / "fakes/hip6/libamdhip64.so.6"
        if not fake.exists():
            self.skipTest(f"{fake} belongs to builds with tests")
        with tempfile.TemporaryDirectory() as empty:
            self.refused(1, "run", DEMO_MODEL, "x", "--driver", "hip", mentions="pack",
                         environment={"RDNA_HIP_LIBRARY": str(fake), "RDNA_KERNEL_PATH": empty})

    def test_prompts(self):
        self.refused(1, "run", DEMO_MODEL, "word " * 600, mentions="context")
        self.refused(1, "run", DEMO_MODEL, "word " * 60, "--context", 20, mentions="context")
        self.refused(1, "logits", DEMO_MODEL, "--tokens", "1,x", "--out", "/dev/null", mentions="1,x")
        self.refused(1, "logits", DEMO_MODEL, "--tokens", "1,2048", "--out", "/dev/null", mentions="2048")
        self.refused(1, "logits", DEMO_MODEL, "--tokens", "1", "--out", "/nowhere/x", mentions="/nowhere/x")


class BadModels(Refusing):
    def model(self, folder, entries=None, tensors=None, drop=()):
        """A valid model of one layer, changed: |entries| and |tensors| replace by name, |drop| removes."""
        import numpy as np

        rng = np.random.default_rng(0)
        keys = {"general.architecture": (gf.TEXT, "llama"), "llama.context_length": (gf.U32, 32),
                "llama.embedding_length": (gf.U32, 32), "llama.block_count": (gf.U32, 1),
                "llama.feed_forward_length": (gf.U32, 32), "llama.attention.head_count": (gf.U32, 2),
                "llama.attention.layer_norm_rms_epsilon": (gf.F32, 1e-5), **(entries or {})}
        shapes = {"token_embd.weight": (40, 32), "output_norm.weight": (32,), "output.weight": (40, 32),
                  "blk.0.attn_norm.weight": (32,), "blk.0.ffn_norm.weight": (32,),
                  **{f"blk.0.{m}.weight": (32, 32) for m in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate",
                                                             "ffn_up", "ffn_down")}, **(tensors or {})}
        path = pathlib.Path(folder) / "model.gguf"
        gf.write(path, [(k, *v) for k, v in keys.items() if k not in drop],
                 [(n, gf.TENSOR_F32, rng.normal(size=s)) for n, s in shapes.items() if n not in drop])
        return path

    def logits(self, path):
        return ("logits", path, "--tokens", "1,2", "--out", "/dev/null", "--device", rdna_program.DEVICE)

    def test_the_model_itself_is_good(self):
        with tempfile.TemporaryDirectory() as folder:
            output(*self.logits(self.model(folder)))

    def test_keys_and_tensors(self):
        cases = [
            ("general.architecture", dict(drop=["general.architecture"])),
            ("gpt2", dict(entries={"general.architecture": (gf.TEXT, "gpt2")})),
            ("general.architecture", dict(entries={"general.architecture": (gf.U32, 1)})),
            ("block_count", dict(drop=["llama.block_count"])),
            ("block_count", dict(entries={"llama.block_count": (gf.U32, 100000000)})),
            ("block_count", dict(entries={"llama.block_count": (gf.TEXT, "one")})),
            ("block_count", dict(entries={"llama.block_count": (gf.I32, -1)})),
            ("blk.1.", dict(entries={"llama.block_count": (gf.U32, 2)})),
            ("heads", dict(entries={"llama.attention.head_count_kv": (gf.U32, 3)})),
            ("head_count_kv", dict(entries={"llama.attention.head_count_kv": ((gf.ARRAY, gf.U32), [])})),
            ("share 3 key/value heads", dict(entries={"llama.attention.head_count_kv": ((gf.ARRAY, gf.U32), [3])})),
            ("rope", dict(entries={"llama.rope.dimension_count": (gf.U32, 17)})),
            ("dynamic", dict(entries={"llama.rope.scaling.type": (gf.TEXT, "dynamic")})),
            ("ffn_gate_inp", dict(entries={"llama.expert_count": (gf.U32, 8), "llama.expert_used_count": (gf.U32, 2)})),
            ("epsilon", dict(entries={"llama.attention.layer_norm_rms_epsilon": (gf.F32, float("nan"))})),
            ("ffn_up", dict(drop=["blk.0.ffn_up.weight"])),
            ("attn_q", dict(tensors={"blk.0.attn_q.weight": (32, 31)})),
            ("attn_norm", dict(tensors={"blk.0.attn_norm.weight": (33,)})),
            ("token_embd", dict(tensors={"token_embd.weight": (2, 20, 32)})),
            ("output.weight", dict(tensors={"token_embd.weight": (32,)})),  # a table of one row, which files write with one size
            ("output.weight", dict(tensors={"output.weight": (39, 32)})),
            ("output_norm", dict(drop=["output_norm.weight"])),
            # a variant that computes something else
            ("no use for, 'blk.0.attn_norm.bias'", dict(tensors={"blk.0.attn_norm.bias": (32,)})),
            ("2 tensors", dict(tensors={"blk.0.post_ffw_norm.weight": (32,), "blk.0.ffn_sub_norm.weight": (32,)})),
        ]
        for mentions, changes in cases:
            with self.subTest(changes=str(changes)[:80]), tempfile.TemporaryDirectory() as folder:
                self.refused(1, *self.logits(self.model(folder, **changes)), mentions=mentions)

    def test_tensors_that_text_needs_not(self):
        needless = {"v.patch_embd.weight": (3, 5), "mm.0.weight": (4, 4), "blk.0.attn_q.input_scale": (1,),
                    "blk.0.attn_rot_embd.weight": (8,), "blk.1.nextn.enorm.weight": (32,)}
        with tempfile.TemporaryDirectory() as folder:
            output(*self.logits(self.model(folder, tensors=needless)))

    def test_weights_that_are_no_numbers(self):
        import numpy as np

        with tempfile.TemporaryDirectory() as folder:
            path = self.model(folder, entries={
                "tokenizer.ggml.model": (gf.TEXT, "llama"),
                "tokenizer.ggml.tokens": ((gf.ARRAY, gf.TEXT), ["<unk>", *(f"<0x{b:02X}>" for b in range(39))]),
                "tokenizer.ggml.scores": ((gf.ARRAY, gf.F32), [0.0] * 40),
                "tokenizer.ggml.token_type": ((gf.ARRAY, gf.I32), [2] + [6] * 39)})
            output("run", path, "\t", "--greedy", "--max-tokens", 2, "--device", rdna_program.DEVICE)
            data = bytearray(path.read_bytes())
            data[-4:] = np.float32("nan").tobytes()  # of the last tensor
            path.write_bytes(data)
            result = run("run", path, "\t", "--greedy", "--device", rdna_program.DEVICE)
            self.assertEqual(result.returncode, 1)
            self.assertIn("is not a number; the model computed nonsense", result.stderr.decode())

    def test_files_that_are_none(self):
        self.refused(1, *self.logits("/nowhere/model.gguf"), mentions="/nowhere/model.gguf")
        self.refused(1, *self.logits("/"), mentions="/")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.gguf"
            for data in (b"", b"GGUF", b"GGML" + bytes(100), b"GGUF" + struct.pack("<I", 1) + bytes(100),
                         b"GGUF" + struct.pack(">I", 3) + bytes(100)):
                path.write_bytes(data)
                self.refused(1, *self.logits(path), mentions=str(path))

    def test_every_truncation(self):
        with tempfile.TemporaryDirectory() as folder:
            data = self.model(folder).read_bytes()
            path = pathlib.Path(folder) / "cut.gguf"
            for size in sorted({*range(0, 700, 23), *range(700, len(data), len(data) // 24), len(data) - 1}):
                path.write_bytes(data[:size])
                self.refused(1, *self.logits(path), mentions="cut.gguf")

    def test_sizes_that_overflow(self):
        with tempfile.TemporaryDirectory() as folder:
            data = bytearray(self.model(folder).read_bytes())
            path = pathlib.Path(folder) / "huge.gguf"
            at = data.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight")
            # behind the name: u32 rank, u64 sizes, u32 type, u64 offset
            for offset, values in ((4, (2**63, 2**64 - 1, 2**62)), (12, (2**63, 2**64 - 32)), (24, (2**63, 2**40))):
                for value in values:
                    broken = bytearray(data)
                    struct.pack_into("<Q", broken, at + offset, value)
                    path.write_bytes(broken)
                    self.refused(1, *self.logits(path), mentions="huge.gguf")
            for at in (8, 16):  # the counts of tensors and keys
                broken = bytearray(data)
                struct.pack_into("<Q", broken, at, 2**61)
                path.write_bytes(broken)
                self.refused(1, *self.logits(path), mentions="huge.gguf")

    def test_a_model_without_vocabulary(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(1, "run", self.model(folder), "x", "--device", rdna_program.DEVICE, mentions="token")
            self.refused(1, "tokenize", self.model(folder), mentions="token")


if __name__ == "__main__":
    unittest.main()
