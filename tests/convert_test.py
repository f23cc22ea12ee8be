"""rdna convert and rdna quantize: what they write against readers of this folder's own, and what they refuse.

tests/convert_architectures_test.py has the architectures and tokenizers, which need transformers.
"""
import json
import pathlib
import shutil
import struct
import tempfile
import unittest

import numpy as np

import rdna_program  # first: it makes tools/ importable

import gguf_file as gf
import hf_folder
from command_test import Refusing
from logits_test import logits_of, relative_squared_error, write_model
from rdna_program import DEMO_MODEL, output

DEVICE = ("--device", rdna_program.DEVICE)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)


class InFolder(Refusing):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(sum(map(ord, self.id())))


class Llama(InFolder):
    """Logits by transformers' conventions from what the folder holds, so that names, shapes and order all matter."""

    CASES = {
        "plain": dict(),
        "biases, bf16": dict(bias=True, kind="BF16"),
        "tied, wide heads": dict(tie_word_embeddings=True, head_dim=24),
        "a window": dict(architecture="MistralForCausalLM", sliding_window=5, kind="F16"),
        "Llama 3's scaling": dict(rope_scaling=LLAMA3),
        "linear scaling": dict(rope_scaling=dict(rope_type="linear", factor=2.5)),
        "one head": dict(num_attention_heads=1, num_key_value_heads=1, hidden_size=36, intermediate_size=33),
    }

    def test_logits(self):
        for name, options in self.CASES.items():
            for files in (1, 3):
                with self.subTest(name, files=files):
                    model = hf_folder.llama(self.rng, **options)
                    model.write(self.folder / f"m{files}", files)
                    path = self.folder / "m.gguf"
                    output("convert", self.folder / f"m{files}", path, *DEVICE)
                    tokens = self.rng.integers(0, model.vocab_size, 40).tolist()
                    want = hf_folder.llama_logits(model, tokens)
                    got = logits_of(path, tokens, "--kv", "f32")
                    self.assertLess(relative_squared_error(got, want), 1e-11)
                    # the folder itself, wherever its tensors begin
                    for longer in range(0, 32, 8):
                        model.write(self.folder / f"m{files}", files, longer)
                        np.testing.assert_array_equal(logits_of(self.folder / f"m{files}", tokens, "--kv", "f32"), got)
                    shutil.rmtree(self.folder / f"m{files}")

    def test_keys_and_types(self):
        model = hf_folder.llama(self.rng, "F16", rope_theta=5e5)
        model.write(self.folder / "a name")
        report = json.loads(output("convert", f"{self.folder}/a name/", self.folder / "m.gguf", "--json", *DEVICE))
        self.assertEqual(report["after"], {"F32": {"tensors": 5, "bytes": 5 * 64 * 4}, "F16": {
            "tensors": 16, "bytes": sum(t.size for t in model.tensors.values() if t.ndim == 2) * 2}})
        keys = gf.Reader(self.folder / "m.gguf").keys
        want = {"general.architecture": "llama", "general.name": "a name", "general.file_type": 1,
                "llama.block_count": 2, "llama.context_length": 64, "llama.embedding_length": 64,
                "llama.feed_forward_length": 96, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
                "llama.attention.key_length": 16, "llama.attention.value_length": 16, "llama.vocab_size": 67,
                "llama.rope.dimension_count": 16, "llama.rope.freq_base": 5e5, "tokenizer.ggml.model": "no_vocab"}
        self.assertEqual({key: keys[key] for key in want}, want)

    def test_types(self):
        model = hf_folder.llama(self.rng, hidden_size=256, intermediate_size=96, vocab_size=40)
        model.write(self.folder / "m")
        path = self.folder / "m.gguf"
        for kind, matrices, down in (("f16", "F16", "F16"), ("bf16", "BF16", "BF16"), ("q8_0", "Q8_0", "Q8_0"),
                                     ("Q4_K", "Q4_K", "Q5_0")):
            after = json.loads(output("convert", self.folder / "m", path, "--type", kind, "--json", *DEVICE))["after"]
            other = {"Q6_K": 1} if matrices == "Q4_K" else {}
            counts = {"F32": 5, matrices: 13, down: 2, **other} if down != matrices else {"F32": 5, matrices: 16}
            self.assertEqual({name: row["tensors"] for name, row in after.items()}, counts)
            read = gf.Reader(path).tensors
            bound = {"f16": 2**-11, "bf16": 2**-8, "q8_0": 0.01, "Q4_K": 0.12}[kind]
            for hf, name in (("mlp.gate_proj", "ffn_gate"), ("mlp.down_proj", "ffn_down"), ("self_attn.v_proj", "attn_v")):
                want = model.tensors[f"model.layers.1.{hf}.weight"]
                error = np.abs(read[f"blk.1.{name}.weight"] - want).max() / np.abs(want).max()
                self.assertLess(error, bound)
                self.assertGreater(error, 0)


class Folders(InFolder):
    """What is wrong with a folder, in one sentence that names it."""

    def convert(self):
        return ("convert", self.folder / "m", self.folder / "m.gguf", *DEVICE)

    def model(self, **options):
        shutil.rmtree(self.folder / "m", ignore_errors=True)
        model = hf_folder.llama(self.rng, **options)
        model.write(self.folder / "m")
        return model

    def refused_folder(self, *mentions):
        for text in mentions:
            self.refused(1, *self.convert(), mentions=text)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["m"])  # and nothing was written

    def test_settings(self):
        for mentions, changes in (
            ("architectures", dict(architectures=[])),
            ("'FlyForCausalLM' cannot be converted", dict(architectures=["FlyForCausalLM"])),
            ("'|LlamaForCausalLM'", dict(architectures=["|LlamaForCausalLM"])),
            ("num_hidden_layers", dict(num_hidden_layers=None)),
            ("num_hidden_layers", dict(num_hidden_layers=-1)),
            ("layers.2.input_layernorm", dict(num_hidden_layers=3)),
            ("has no place in GGUF's llama of 1 layers", dict(num_hidden_layers=1)),
            ("num_attention_heads", dict(num_attention_heads=2.5)),
            ("64 rows, where config.json speaks of 8 heads of 16", dict(num_attention_heads=8, head_dim=16)),
            ("odd number", dict(head_dim=15)),
            ("rms_norm_eps", dict(rms_norm_eps="small")),
            ("rms_norm_eps", dict(rms_norm_eps=None)),
            ("68 tokens", dict(vocab_size=68)),
            ("activation is 'relu'", dict(hidden_act="relu")),
            ("'dynamic'", dict(rope_scaling=dict(type="dynamic", factor=2.0))),
            ("has no factor", dict(rope_scaling=dict(type="linear"))),
            ("lacks a number", dict(rope_scaling=dict(LLAMA3, factor=None))),
            ("longrope", dict(rope_scaling=dict(rope_type="longrope", long_factor=[1.0] * 16))),
            ("partial_rotary_factor", dict(partial_rotary_factor=0)),
            ("quantized (gptq)", dict(quantization_config=dict(quant_method="gptq"))),
            ("layer 1 has attention of type 'linear_attention'",
             dict(layer_types=["full_attention", "linear_attention"])),
            ("use_sliding_window", dict(architectures=["Qwen2ForCausalLM"], use_sliding_window=True)),
            ("layer 0 is no exception", dict(architectures=["SmolLM3ForCausalLM"], no_rope_layers=[0, 0])),
            ("num_experts", dict(architectures=["Qwen3MoeForCausalLM"])),
            ("have no experts", dict(architectures=["Qwen3MoeForCausalLM"], num_experts=2, decoder_sparse_step=2)),
        ):
            with self.subTest(changes=changes):
                model = self.model()
                hf_folder.write_json(self.folder / "m/config.json", model.config | changes)
                self.refused_folder(mentions)

    def test_tensors(self):
        model = self.model()
        path = self.folder / "m/model.safetensors"
        at = "model.layers.1.self_attn."
        for mentions, changes in (
            ("no tensor 'model.embed_tokens.weight'", {"model.embed_tokens.weight": None}),
            ("no tensor 'lm_head.weight'", {"lm_head.weight": None}),
            ("'" + at + "o_proj.weight'", {at + "o_proj.weight": None}),
            ("'" + at + "v_proj.weight' has 3 dimensions", {at + "v_proj.weight": ("F32", np.zeros((2, 16, 64)))}),
            ("type F64", {at + "v_proj.weight": ("F64", np.zeros((32, 64)))}),
            ("is empty", {at + "v_proj.weight": ("F32", np.zeros((0, 64)))}),
            ("'extra' has no place", {"extra": ("F32", np.zeros(3))}),
        ):
            with self.subTest(mentions):
                tensors = {name: (model.kinds[name], t) for name, t in model.tensors.items()} | changes
                path.write_bytes(hf_folder.safetensors({name: t for name, t in tensors.items() if t is not None}))
                self.refused_folder(mentions)
        needless = {"model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", np.zeros(8))}
        path.write_bytes(hf_folder.safetensors({n: ("F32", t) for n, t in model.tensors.items()} | needless))
        output(*self.convert())

    def test_folders_for_vectors(self):
        """As sentence-transformers writes them: no prefix before the tensors' names, and how states are pooled."""
        model = hf_folder.Model(self.rng, "Qwen3ForCausalLM", "qwen3", head_dim=16, tie_word_embeddings=True)
        model.ends()
        for i in range(model.num_hidden_layers):
            at = f"model.layers.{i}."
            model.norm(at + "input_layernorm", model.hidden_size)
            model.norm(at + "post_attention_layernorm", model.hidden_size)
            model.norm(at + "self_attn.q_norm", 16)
            model.norm(at + "self_attn.k_norm", 16)
            model.attention(at)
            model.feed_forward(at)
        model.write(self.folder / "with")
        output("convert", self.folder / "with", self.folder / "with.gguf")
        want = gf.Reader(self.folder / "with.gguf")
        model.tensors = {name.removeprefix("model."): tensor for name, tensor in model.tensors.items()}
        model.kinds = {name.removeprefix("model."): kind for name, kind in model.kinds.items()}
        model.write(self.folder / "without")
        pooling = self.folder / "without/1_Pooling"
        pooling.mkdir()
        for mode, number in (("lasttoken", 3), ("mean_tokens", 1), ("cls_token", 2)):
            hf_folder.write_json(pooling / "config.json", {"word_embedding_dimension": 64, "pooling_mode_max_tokens": False, f"pooling_mode_{mode}": True})
            output("convert", self.folder / "without", self.folder / "without.gguf")
            got = gf.Reader(self.folder / "without.gguf")
            self.assertEqual(got.keys.pop("qwen3.pooling_type"), number)
            self.assertEqual({**got.keys, "general.name": 0}, {**want.keys, "general.name": 0})
            self.assertEqual(got.tensors.keys(), want.tensors.keys())
            self.assertTrue(all(np.array_equal(got.tensors[name], want.tensors[name]) for name in want.tensors))
        for modes, mention in ((["max_tokens"], "max_tokens"), (["mean_tokens", "cls_token"], "both"), ([], "1_Pooling")):
            hf_folder.write_json(pooling / "config.json", {f"pooling_mode_{mode}": True for mode in modes})
            self.refused(1, "convert", self.folder / "without", self.folder / "x.gguf", mentions=mention)

    def test_layers_that_foretell(self):
        """One layer of multi-token prediction stands behind the last: what it has is left out, and nothing behind it."""
        model = self.model()
        model.config["num_nextn_predict_layers"] = 1
        for layer in (2, 3):
            kept = dict(model.tensors)
            model.add(f"model.layers.{layer}.eh_proj.weight", 64, 128)
            model.write(self.folder / "m")
            if layer == 2:
                output(*self.convert())
                (self.folder / "m.gguf").unlink()
            else:
                self.refused_folder(f"'model.layers.{layer}.eh_proj.weight' has no place in GGUF's llama of 2 layers")
            model.tensors = kept

    def test_values_beyond_f16(self):
        model = self.model()
        model.tensors["model.layers.1.mlp.up_proj.weight"][5, 7] = 1e8
        model.write(self.folder / "m")
        for kind in ("f16", "q8_0"):
            self.refused(1, *self.convert(), "--type", kind, mentions="blk.1.ffn_up.weight")
            self.refused(1, *self.convert(), "--type", kind, mentions="too large")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["m"])
        output(*self.convert(), "--type", "bf16")

    def test_files(self):
        self.refused(1, "convert", "/nowhere", self.folder / "m.gguf", mentions="/nowhere/config.json")
        self.model()
        self.refused(1, "convert", self.folder / "m", "/nowhere/m.gguf", mentions="/nowhere/m.gguf")
        self.refused(1, *self.convert(), "--type", "q9", mentions="types are f32 f16 bf16 q8_0")
        self.refused(2, "convert", self.folder / "m", mentions="too few")
        (self.folder / "m/config.json").write_text("{")
        self.refused_folder("config.json", "no JSON object")
        (self.folder / "m/config.json").write_text("[1]")
        self.refused_folder("holds another value")
        self.model()
        (self.folder / "m/model.safetensors").unlink()
        self.refused_folder("neither model.safetensors nor model.safetensors.index.json")

    def test_index(self):
        model = self.model()
        folder = self.folder / "m"
        (folder / "model.safetensors").unlink()
        model.write(folder, 2)
        index = folder / "model.safetensors.index.json"
        good = json.loads(index.read_text())
        names = list(good["weight_map"])
        first, second = sorted(set(good["weight_map"].values()))
        for mentions, changed in (
            ("weight_map", {"metadata": {}}),
            ("no JSON", "{"),
            ("no name of a file", {"weight_map": {**good["weight_map"], names[0]: "../x.safetensors"}}),
            ("no name of a file", {"weight_map": {**good["weight_map"], names[0]: 5}}),
            ("'other' is listed, but not in", {"weight_map": {**good["weight_map"], "other": first}}),
            ("missing.safetensors", {"weight_map": {**good["weight_map"], names[0]: "missing.safetensors"}}),
        ):
            with self.subTest(mentions):
                index.write_text(changed if isinstance(changed, str) else json.dumps(changed))
                self.refused_folder(mentions)
        index.write_text(json.dumps(good))
        shutil.copy(folder / first, folder / second)
        self.refused_folder("another file has it too")


class Hostile(InFolder):
    """Safetensors that are none."""

    def test_headers(self):
        def file(header, data=b"", length=None):
            text = header if isinstance(header, bytes) else json.dumps(header).encode()
            return struct.pack("<Q", len(text) if length is None else length) + text + data

        def tensor(shape, begin, end, kind="F32"):
            return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}

        one = {"a": tensor([2], 0, 8)}
        whole = file(one, bytes(8))
        cases = [
            ("has only 0 bytes", b""), ("has only 7 bytes", bytes(7)), ("no JSON object", bytes(8)),
            ("may be incomplete", whole[:20]), ("header would have", file(one, length=2**63)),
            ("header would have", file(one, length=200 << 20)), ("no JSON object", file(b"[]")),
            ("no JSON object", file(b'{"a":')), ("no JSON object", file(b"[" * 5000)), ("no JSON object", file(b"\xff")),
            ("no JSON object", file(b'{"a": {"dtype":"F32","shape":[],"data_offsets":[0,4]},'
                                    b' "a": {"dtype":"F32","shape":[],"data_offsets":[0,4]}}', bytes(4))),
            ("no JSON object", file(b'{"a": {"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}}')),
            ("not inside the file's 4 bytes", file(one, bytes(4))),
            ("not inside", file({"a": tensor([2], 4, 2**62)}, bytes(8))),
            ("not inside", file({"a": tensor([2], 8, 0)}, bytes(8))),
            ("not inside", file({"a": tensor([2], -8, 0)}, bytes(8))),
            ("which its shape and the type F32 do not make", file({"a": tensor([3], 0, 8)}, bytes(8))),
            ("do not make", file({"a": tensor([2**62, 2**62], 0, 0)})),
            ("do not make", file({"a": tensor([2**61, 8], 0, 0)})),  # 2^64 values
            ("dimension 0", file({"a": tensor([-2], 0, 8)}, bytes(8))),
            ("dimension 0", file({"a": tensor([2.0], 0, 8)}, bytes(8))),
            ("9 dimensions", file({"a": tensor([1] * 9, 0, 4)}, bytes(4))),
            ("'shape'", file({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4))),
            ("'dtype'", file({"a": {"dtype": 7, "shape": [], "data_offsets": [0, 4]}}, bytes(4))),
            ("'data_offsets'", file({"a": {"dtype": "F32", "shape": [], "data_offsets": [0]}}, bytes(4))),
            ("'data_offsets'", file({"a": {"dtype": "F32", "shape": [], "data_offsets": ["0", 4]}}, bytes(4))),
            ("'dtype'", file({"a": 5})),
            ("share bytes", file({"a": tensor([2], 0, 8), "b": tensor([2], 4, 12)}, bytes(12))),
            ("share bytes", file({"a": tensor([2], 0, 8), "b": tensor([1], 2, 6)}, bytes(12))),
            ("no tensor 'model.embed_tokens.weight'", whole),
            ("no tensor 'model.embed_tokens.weight'", file({"a": tensor([2], 0, 3, "F6_E2M3")}, bytes(3))),
        ]
        model = hf_folder.llama(self.rng)
        model.write(self.folder)
        for mentions, data in cases:
            with self.subTest(mentions, data=data[:60]):
                (self.folder / "model.safetensors").write_bytes(data)
                self.refused(1, "convert", self.folder, self.folder / "m.gguf", *DEVICE, mentions=mentions)

    def test_every_truncation(self):
        hf_folder.llama(self.rng, num_hidden_layers=1, hidden_size=8, intermediate_size=8).write(self.folder)
        path = self.folder / "model.safetensors"
        data = path.read_bytes()
        for size in sorted({*range(0, 2000, 97), *range(2000, len(data), 997), len(data) - 1}):
            path.write_bytes(data[:size])
            self.refused(1, "convert", self.folder, self.folder / "m.gguf", *DEVICE, mentions="model.safetensors")


# The largest error against the largest magnitude of 32 or 256 neighbours: half a step, and what the scales of K lose by
# being multiples, half the gap between a table's entries. Formats without a minimum have one code less on one side, by
# which a value may miss a whole step. In iq4_xs a value as large as the largest, of the other sign, meets entry 113 where
# it wants 127, at a scale of 31 steps where it wants 32: -32 is one of the block's whole numbers and 32 is not.
WORST = {"q8_0": 1 / 254, "q4_0": 1 / 8, "q4_1": 1 / 15, "q5_0": 1 / 16, "q5_1": 1 / 31, "q2_K": 0.47, "q3_K": 0.27,
         "q4_K": 0.1, "q5_K": 0.065, "q6_K": 0.037, "iq4_nl": 14 / 127, "iq4_xs": 1 - 113 / 127 * 31 / 32, "tq1_0": 0.5, "tq2_0": 0.5,
         "mxfp4": 0.25}


class Quantize(InFolder):
    def quantize(self, *arguments):
        return json.loads(output("quantize", *arguments, "--json", *DEVICE))

    def test_errors_and_types(self):
        source = self.folder / "f32.gguf"
        write_model(source, self.rng, gf.TENSOR_F32, width=256, heads=8, kv_heads=4, hidden=512, biases=True, scales=True,
                    frequencies=True)
        before = gf.Reader(source)
        for kind, worst in WORST.items():
            with self.subTest(kind):
                path = self.folder / "out.gguf"
                report = self.quantize(source, path, kind)
                after = gf.Reader(path)
                self.assertEqual(list(after.tensors), list(before.tensors))
                small = gf.BLOCKS[getattr(gf, "TENSOR_" + kind.upper())]
                six = small[1] / small[0] < 210 / 256
                matrices = sum(t.ndim == 2 for t in before.tensors.values())
                self.assertEqual(report["after"][kind.upper()]["tensors"], matrices - six)
                self.assertEqual(report["other_type_than_asked"], 0)
                self.assertEqual(report["before"], {"F32": {"tensors": len(before.tensors), "bytes": 4 * sum(
                    t.size for t in before.tensors.values())}})
                for name, want in before.tensors.items():
                    got = after.tensors[name]
                    if want.ndim < 2:
                        np.testing.assert_array_equal(got, want)
                        continue
                    logits = six and name == "output.weight"
                    blocks = want.reshape(-1, 256 if logits else small[0])
                    error = np.abs(got.reshape(blocks.shape) - blocks).max(1) / np.abs(blocks).max(1)
                    self.assertLess(error.max(), 1.01 * (WORST["q6_K"] if logits else worst) + 2**-11, name)
                    self.assertGreater(error.max(), 0)

    def test_keys_stay(self):
        path = self.folder / "out.gguf"
        self.quantize(DEMO_MODEL, path, "q4_K")
        before, after = gf.Reader(DEMO_MODEL).keys, gf.Reader(path).keys
        changed = {"general.file_type": 14, "general.quantization_version": 2}
        self.assertEqual(after, {**before, **changed})
        self.assertEqual([key for key in after if key in before], list(before))

    def test_back(self):
        """Blocks to floats, which hold them, and to themselves."""
        before = gf.Reader(DEMO_MODEL).tensors
        path = self.folder / "out.gguf"
        for kind, bound in (("f32", 0), ("f16", 2**-11), ("bf16", 2**-8), ("q8_0", 0)):
            self.quantize(DEMO_MODEL, path, kind)
            for name, got in gf.Reader(path).tensors.items():
                want = before[name]
                self.assertLessEqual(np.abs(got - want).max(), bound * np.abs(want).max(), (kind, name))

    def test_rows_that_are_no_blocks(self):
        """Two layers of 7 matrices, of which ffn_down has rows of |hidden| values, and the embedding, which is tied."""
        for kind, width, heads, hidden, want, others in (
            ("q4_K", 96, 2, 256, {"Q5_0": 12, "Q4_K": 2, "Q8_0": 1}, 13),
            ("q2_K", 96, 2, 60, {"Q4_0": 12, "half": 2, "Q8_0": 1}, 15),
            ("iq2_s", 96, 2, 256, {"IQ4_NL": 12, "IQ2_S": 2, "Q8_0": 1}, 13),
            ("q8_0", 60, 3, 96, {"half": 13, "Q8_0": 2}, 13),
        ):
            for source, half in ((gf.TENSOR_F32, "F16"), (gf.TENSOR_BF16, "BF16")):
                with self.subTest(kind, source=source):
                    path = self.folder / "m.gguf"
                    write_model(path, self.rng, source, width=width, heads=heads, kv_heads=heads, hidden=hidden, tied=True)
                    report = self.quantize(path, path, kind)  # over itself
                    found = {name: row["tensors"] for name, row in report["after"].items() if name != "F32"}
                    self.assertEqual(found, {name.replace("half", half): count for name, count in want.items()})
                    self.assertEqual(report["other_type_than_asked"], others)
                    logits_of(path, [1, 2, 3])

    def test_slices(self):
        """A matrix of several slices, the last of them short: what is in one does not shift what is in the next."""
        rows, columns = 1031, 4096 + 32  # 4.06 of 2^20 values
        matrix = self.rng.normal(0, 1, (rows, columns)).astype(np.float32)
        path = self.folder / "m.gguf"
        gf.write(path, [], [("a.weight", gf.TENSOR_F32, matrix), ("b.weight", gf.TENSOR_F16, matrix[:1040])])
        self.quantize(path, path, "q8_0")
        for name, got in gf.Reader(path).tensors.items():
            blocks = matrix.reshape(-1, 32)
            error = np.abs(got.reshape(-1, 32) - blocks).max(1) / np.abs(blocks).max(1)
            self.assertLess(error.max(), 1 / 254 + 2**-10, name)

    def test_parts(self):
        """A model in two files becomes one."""
        matrix = self.rng.normal(0, 1, (4, 32)).astype(np.float32)
        for i in range(2):
            gf.write(self.folder / f"m-0000{i + 1}-of-00002.gguf",
                     [("split.no", gf.U16, i), ("split.count", gf.U16, 2), ("split.tensors.count", gf.I32, 2),
                      ("a key", gf.TEXT, f"of {i}")], [(f"{i}.weight", gf.TENSOR_F32, matrix + i)])
        path = self.folder / "m.gguf"
        self.quantize(self.folder / "m-00001-of-00002.gguf", path, "f32")
        read = gf.Reader(path)
        self.assertEqual(read.keys, {"a key": "of 0", "general.file_type": 0})
        for i in range(2):
            np.testing.assert_array_equal(read.tensors[f"{i}.weight"], matrix + i)
        (self.folder / "m-00002-of-00002.gguf").unlink()
        self.refused(1, "quantize", self.folder / "m-00001-of-00002.gguf", path, "f32", mentions="m-00002-of-00002.gguf")

    def test_refusals(self):
        path = self.folder / "m.gguf"
        self.refused(2, "quantize", DEMO_MODEL, path, mentions="too few")
        self.refused(1, "quantize", DEMO_MODEL, path, "q9_9", mentions="types are f32 f16 bf16 q8_0 q4_0")
        self.refused(1, "quantize", DEMO_MODEL, path, "i8", mentions="i8")
        self.refused(1, "quantize", "/nowhere/x.gguf", path, "q8_0", mentions="/nowhere/x.gguf")
        self.refused(1, "quantize", DEMO_MODEL, "/nowhere/x.gguf", "q8_0", mentions="/nowhere/x.gguf")
        self.refused(1, "quantize", DEMO_MODEL, self.folder, "q8_0", mentions="no regular file")
        gf.write(path, [], [("a.weight", gf.TENSOR_F32, np.full((2, 32), 1e30, np.float32))])
        for kind in ("f16", "q8_0", "q4_0"):
            self.refused(1, "quantize", path, self.folder / "o.gguf", kind, mentions="a.weight")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["m.gguf"])

    def test_table(self):
        text = output("quantize", DEMO_MODEL, self.folder / "m.gguf", "q4_0", *DEVICE).decode()
        rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
        self.assertEqual(rows["Q8_0"][0], "58")
        self.assertEqual((rows["all"][0], rows["all"][3]), ("75", "75"))
        self.assertEqual(rows["Q4_0"][:2] + rows["Q6_K"][:2], ["-", "-", "-", "-"])
        self.assertEqual((rows["Q4_0"][2], rows["Q6_K"][2]), ("57", "1"))


if __name__ == "__main__":
    unittest.main()
