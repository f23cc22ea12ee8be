"""rdna convert of folders as transformers and tokenizers write them.

Models: the rows of tests/architecture_rows.py and architecture_mixtures.py, saved by transformers and converted, against
the GGUF file that those rows write themselves; tests/architectures_test.py has its logits. Tokenizers: ids of
`rdna tokenize` against those of the tokenizers library.
"""
import json
import pathlib
import tempfile
import unicodedata
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np
import torch
from safetensors.numpy import load_file
from tokenizers import AddedToken

import rdna_program  # first: it makes tools/ importable

import gguf_file as gf
import hf_folder
import tokenizer_models
from architecture_delta import DELTA
from architecture_gemma4 import GEMMA4
from architecture_mixtures import MIXTURES
from architecture_models import Model
from architecture_more import MORE
from architecture_rows import ROWS
from command_test import Refusing
from logits_test import logits_of
from rdna_program import output, run

# GGUF's names of the architectures that convert knows. Rows of others must be refused by name.
KNOWN = {"llama", "mistral3", "qwen2", "qwen3", "qwen2moe", "qwen3moe", "gemma2", "gemma3", "phi3", "olmo2", "smollm3",
         "granite", "granitemoe", "gpt-oss", "deepseek2", "qwen3next", "qwen35", "qwen35moe", "gemma4", "glm4", "glm4moe",
         "dots1", "minimax-m2", "ernie4_5", "exaone4", "seed_oss", "qwen2vl", "qwen3vl", "qwen3vlmoe", "command-r",
         "cohere2", "stablelm", "starcoder2", "nemotron", "lfm2", "lfm2moe"}
# Rows whose file is not what transformers' folder says.
OTHERWISE = {
    "deepseek2, keys and values in one matrix",  # as older files were
    "deepseek2, keys and values in one matrix of blocks",
    "granite, without positions",  # which config.json cannot say
    "qwen2, q, k and v in one matrix", "qwen3moe, gate and up in one matrix",  # as other converters join them
    "qwen3next, q, k, v and z in one matrix", "gemma4, of 26B, gate and up apart",  # as older ones had them
    # folders have the layers that are not run, if at all, under another name
    "qwen35, with a layer that is not run", "glm4moe, with a layer that is not run",
}
# Keys that the converter may write beside those of a row: what a reader would assume without them, or reads nowhere.
EXTRA = {"attention.key_length", "attention.value_length", "rope.dimension_count", "vocab_size", "rope.freq_base",
         "rope.freq_base_swa", "attention.sliding_window", "attention.sliding_window_pattern", "attention.scale",
         "rope.scaling.type", "expert_weights_norm", "embedding_length_per_layer_input", "expert_used_count",
         "attention.shared_kv_layers"}


class Architectures(unittest.TestCase):
    def test_rows(self):
        converted = set()
        for row in ROWS + MIXTURES + DELTA + GEMMA4 + MORE:
            if row.name in OTHERWISE:
                continue
            with self.subTest(row.name), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                model = Model(row, seed=1)
                model.network({}, torch.float32).save_pretrained(folder / "m")
                result = run("convert", folder / "m", folder / "got.gguf")
                if row.architecture not in KNOWN:
                    self.assertIn(f"'{row.model}' cannot be converted", result.stderr.decode())
                    continue
                self.assertEqual(result.returncode, 0, result.stderr.decode())
                converted.add(row.architecture)
                model.write(folder / "want.gguf")
                self.compare(row, gf.Reader(folder / "got.gguf"), gf.Reader(folder / "want.gguf"))
                self.runs_as_it_is(folder)
        self.assertEqual(converted, KNOWN)

    def runs_as_it_is(self, folder):
        """The folder's logits are the file's, bit by bit."""
        np.testing.assert_array_equal(logits_of(folder / "m", (3, 1, 4, 1, 5)), logits_of(folder / "got.gguf", (3, 1, 4, 1, 5)))

    def test_blocks_of_gpt_oss(self):
        """Its published files have the experts in MXFP4: neighbours in a byte, and scales apart."""
        row = next(row for row in MIXTURES if row.architecture == "gpt-oss")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            model = Model(row, seed=2)
            model.network({}, torch.float32).save_pretrained(folder / "m")
            tensors = {name: ("F32", t) for name, t in model.weights.items() if name not in row.blocks}
            for name, raw in row.blocks.items():
                blocks = raw.reshape(*raw.shape[:2], -1, 17)
                codes = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], -1)
                tensors[name + "_blocks"] = "U8", codes[..., 0::2] | codes[..., 1::2] << 4
                tensors[name + "_scales"] = "U8", blocks[..., 0]
            (folder / "m/model.safetensors").write_bytes(hf_folder.safetensors(tensors))
            model.write(folder / "want.gguf")
            output("convert", folder / "m", folder / "got.gguf")
            self.compare(row, gf.Reader(folder / "got.gguf"), gf.Reader(folder / "want.gguf"))
            self.runs_as_it_is(folder)
            self.assertEqual((folder / "got.gguf").read_bytes().count(b"ffn_up_exps.weight"), 4)

    def test_forms_of_published_folders(self):
        """Where they are older, or newer, than what this transformers writes."""
        def global_heads(folder, tensors):
            config = json.loads((folder / "config.json").read_text())
            del config["per_layer_config"]
            config |= {"global_head_dim": 32, "num_global_key_value_heads": 1}
            hf_folder.write_json(folder / "config.json", config)

        def fuse(folder, tensors):
            for layer in {name.split(".mlp.")[0] for name in tensors if ".mlp.experts." in name}:
                gate, up, down = (np.stack([tensors.pop(f"{layer}.mlp.experts.{e}.{part}_proj.weight") for e in range(6)])
                                  for part in ("gate", "up", "down"))
                tensors[f"{layer}.mlp.experts.gate_up_proj"] = np.concatenate([gate, up], 1)
                tensors[f"{layer}.mlp.experts.down_proj"] = down

        def turn(folder, tensors):
            for name in tensors:
                if ".mlp.experts." in name:
                    tensors[name] = tensors[name].swapaxes(1, 2).copy()

        for name, change in (("gemma4, of 26B", global_heads), ("qwen35moe", fuse), ("qwen3vlmoe", turn)):
            row = next(row for row in DELTA + GEMMA4 + MORE if row.name == name)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                model = Model(row, seed=3)
                model.network({}, torch.float32).save_pretrained(folder / "m")
                tensors = load_file(folder / "m/model.safetensors")
                change(folder / "m", tensors)
                (folder / "m/model.safetensors").write_bytes(
                    hf_folder.safetensors({name: ("F32", tensor) for name, tensor in tensors.items()}))
                output("convert", folder / "m", folder / "got.gguf")
                model.write(folder / "want.gguf")
                self.compare(row, gf.Reader(folder / "got.gguf"), gf.Reader(folder / "want.gguf"))
                output("convert", folder / "m", folder / "q8.gguf", "--type", "q8_0")  # what small tensors become, too
                output("logits", folder / "q8.gguf", "--tokens", "1,2,3", "--out", folder / "logits")

    def test_factors_of_another_number(self):
        row = next(row for row in ROWS if row.name == "phi3, long factors")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            Model(row, seed=1).network({}, torch.float32).save_pretrained(folder / "m")
            config = json.loads((folder / "m/config.json").read_text())
            config["rope_parameters"]["long_factor"] += [1.0]
            hf_folder.write_json(folder / "m/config.json", config)
            result = run("convert", folder / "m", folder / "x.gguf")
            self.assertEqual(result.returncode, 1)
            self.assertIn("'long_factor' of RoPE has 9 numbers, not 8", result.stderr.decode())

    def compare(self, row, got, want):
        self.assertEqual(set(got.tensors), set(want.tensors))
        for name, tensor in want.tensors.items():
            offset = name.endswith("_norm.weight") and row.norm_is_offset("norm.weight")
            if offset or name.endswith("ssm_a"):  # 1 + w or -exp(w), where w itself was rounded
                np.testing.assert_allclose(got.tensors[name], tensor, atol=2**-24, rtol=2**-24)
            else:
                np.testing.assert_array_equal(got.tensors[name], tensor, name)
        self.assertEqual({key: got.keys.get(key) for key in want.keys}, want.keys)
        extra = {key.removeprefix(row.architecture + ".") for key in got.keys if key not in want.keys} - set(row.without)
        self.assertLessEqual(extra, EXTRA | {"general.name", "general.file_type", "tokenizer.ggml.model"})


class Tokenizers(Refusing):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def convert(self, made, **config):
        """The folder of a model with |made|'s tokenizer, converted; its keys."""
        rng = np.random.default_rng(1)
        model = hf_folder.llama(rng, num_hidden_layers=1, hidden_size=8, intermediate_size=8, num_attention_heads=1,
                                num_key_value_heads=1, vocab_size=made.size + 3, **config)
        model.config |= made.settings
        model.write(self.folder / "m")
        made.write(self.folder / "m")
        output("convert", self.folder / "m", self.folder / "m.gguf")
        return gf.Reader(self.folder / "m.gguf").keys

    def ids(self, text, *options):
        return [int(i) for i in output("tokenize", self.folder / "m.gguf", *options, stdin=text.encode()).split()]

    def test_ids(self):
        for name, (make, model, pre) in tokenizer_models.MADE.items():
            with self.subTest(name):
                made = make()
                keys = self.convert(made)
                self.assertEqual((keys["tokenizer.ggml.model"], keys.get("tokenizer.ggml.pre")), (model, pre))
                self.assertEqual(len(keys["tokenizer.ggml.tokens"]), made.size + 3)
                self.assertEqual(keys["tokenizer.ggml.tokens"][made.size], f"[PAD{made.size}]")
                for text in tokenizer_models.TEXTS + tokenizer_models.hard_texts():
                    want = made.tokenizer.encode(text, add_special_tokens=False).ids
                    self.assertEqual(self.ids(text, "--special"), want, ascii(text[:200]))
                folder_ids = output("tokenize", self.folder / "m", "--special", stdin=text.encode()).split()
                self.assertEqual([int(i) for i in folder_ids], want)

    def test_normal_form(self):
        """Every character that is taken apart, whole and in its parts, and marks in any order and number."""
        made = tokenizer_models.qwen2()
        self.convert(made)
        whole = [chr(code) for code in range(0xc0, 0x30000) if unicodedata.decomposition(chr(code))[:1] not in ("", "<")]
        random = np.random.default_rng(3)
        marks = [chr(code) for code in range(0x300, 0x1e900) if unicodedata.combining(chr(code))]
        some = ["".join(random.choice(whole + marks * 2 + list("aeiouAEIOU"), 200)) for _ in range(20)]
        for text in (" ".join(whole), "".join(whole), unicodedata.normalize("NFD", " ".join(whole)), *some,
                     *(unicodedata.normalize("NFD", text) for text in some), "a" + "\u0301\u0323" * 2000):
            normal = unicodedata.normalize("NFC", text)  # by newer tables than the tokenizers library has
            self.assertEqual(self.ids(text), made.tokenizer.encode(normal, add_special_tokens=False).ids, ascii(text[:99]))

    def test_added_tokens_that_take_space(self):
        for make in (tokenizer_models.qwen2, tokenizer_models.sentencepiece):
            made = make()
            for name, flags in (("<l>", dict(lstrip=True)), ("<r>", dict(rstrip=True)), ("<b>", dict(lstrip=True, rstrip=True))):
                made.tokenizer.add_special_tokens([AddedToken(name, normalized=False, **flags)])
            made.size = made.tokenizer.get_vocab_size()
            self.convert(made)
            for text in ("a  <l>  b", "a \u3000\u00a0<r> \u2028\n b", "\n<b>\t<b>  x\u200b <l>", "<l><r><b>", " <r> <l> "):
                self.assertEqual(self.ids(text, "--special"), made.tokenizer.encode(text, add_special_tokens=False).ids,
                                 ascii(text))

    def test_special_tokens(self):
        made = tokenizer_models.llama3()
        bos, end = made.tokenizer.token_to_id("<|begin_of_text|>"), made.tokenizer.token_to_id("<|eot_id|>")
        made.config = {"eos_token": {"content": "<|eot_id|>"}, "chat_template": "{{ messages }}"}
        made.generation = {"eos_token_id": [end, made.tokenizer.token_to_id("<|end_of_text|>")]}
        keys = self.convert(made)
        want = {"bos_token_id": bos, "eos_token_id": end, "eot_token_id": made.generation["eos_token_id"][1],
                "add_bos_token": True, "add_eos_token": False}
        self.assertEqual({key: keys["tokenizer.ggml." + key] for key in want}, want)
        self.assertEqual(keys["tokenizer.chat_template"], "{{ messages }}")
        types = keys["tokenizer.ggml.token_type"]
        self.assertEqual((types[bos], types[made.tokenizer.token_to_id("<tool>")], types[0], types[-1]), (3, 4, 1, 5))
        # what config.json and tokenizer_config.json say where tokenizer.json does not
        made = tokenizer_models.qwen2()
        made.config = {"add_bos_token": True, "chat_template": [{"name": "default", "template": "a"},
                                                                {"name": "tools", "template": "b"}]}
        keys = self.convert(made, bos_token_id=7, eos_token_id=[8, 9])
        want = {"bos_token_id": 7, "eos_token_id": 8, "add_bos_token": True, "add_eos_token": False}
        self.assertEqual({key: keys["tokenizer.ggml." + key] for key in want}, want)
        self.assertEqual((keys["tokenizer.chat_template"], keys["tokenizer.chat_template.tools"]), ("a", "b"))
        (self.folder / "m/chat_template.jinja").write_text("its own file")
        output("convert", self.folder / "m", self.folder / "m.gguf")
        self.assertEqual(gf.Reader(self.folder / "m.gguf").keys["tokenizer.chat_template"], "its own file")

    def test_refusals(self):
        made = tokenizer_models.qwen2()
        self.convert(made)
        good = made.json()
        for mentions, change in (
            ("none that this library knows", lambda t: t["pre_tokenizer"]["pretokenizers"][0]["pattern"].update(Regex="a+")),
            ("'Whitespace'", lambda t: t.update(pre_tokenizer={"type": "Whitespace"})),
            ("not of bytes", lambda t: t["pre_tokenizer"]["pretokenizers"].pop()),
            ("a space before", lambda t: t["pre_tokenizer"]["pretokenizers"][-1].update(add_prefix_space=True)),
            ("drops text", lambda t: t["pre_tokenizer"]["pretokenizers"][0].update(behavior="Removed")),
            ("'ignore_merges'", lambda t: t["model"].update(ignore_merges=True)),
            ("'Lowercase'", lambda t: t.update(normalizer={"type": "Lowercase"})),
            ("'WordLevel'", lambda t: t["model"].update(type="WordLevel")),
            ("'vocab'", lambda t: t["model"].pop("vocab")),
            ("'merges'", lambda t: t["model"].pop("merges")),
            ("merge 0", lambda t: t["model"]["merges"].__setitem__(0, "ab")),
            ("merge 0", lambda t: t["model"]["merges"].__setitem__(0, "a b c")),
            ("a pair of texts", lambda t: t["model"]["merges"].__setitem__(0, ["a"])),
            ("both have id 5", lambda t: t["model"]["vocab"].update({"another": 5})),
            ("has id 5000", lambda t: t["model"]["vocab"].update({"another": 5000})),
            ("no whole number", lambda t: t["model"]["vocab"].update({"another": "5"})),
            ("no 'content'", lambda t: t["added_tokens"][0].pop("content")),
            ("a whole word", lambda t: t["added_tokens"][0].update(single_word=True)),
            ("has no id", lambda t: t["added_tokens"][0].pop("id")),
        ):
            with self.subTest(mentions):
                changed = made.json()
                change(changed)
                hf_folder.write_json(self.folder / "m/tokenizer.json", changed)
                self.refused(1, "convert", self.folder / "m", self.folder / "x.gguf", mentions=mentions)
        hf_folder.write_json(self.folder / "m/tokenizer.json", good)
        output("convert", self.folder / "m", self.folder / "x.gguf")

    def test_sentencepiece(self):
        """tokenizer.model in place of the tokenizer.json that says the same."""
        made = tokenizer_models.sentencepiece()
        self.convert(made)
        texts = [self.ids(text, "--special") for text in tokenizer_models.TEXTS]
        (self.folder / "m/tokenizer.json").unlink()
        (self.folder / "m/tokenizer.model").write_bytes(tokenizer_models.model_bytes(made))
        output("convert", self.folder / "m", self.folder / "m.gguf")
        keys = gf.Reader(self.folder / "m.gguf").keys
        self.assertEqual(keys["tokenizer.ggml.add_space_prefix"], True)
        self.assertEqual([self.ids(text, "--special") for text in tokenizer_models.TEXTS], texts)
        data = tokenizer_models.model_bytes(made)
        for mentions, broken in (("cut short", data[:-1]), ("cut short", b""), ("cut short", b"\xff" * 20),
                                 ("kind 3", tokenizer_models.model_bytes(made, kind=3)),
                                 ("takes spaces", tokenizer_models.model_bytes(made, trims=1)),
                                 ("more pieces", data + data), ("type 9", data + b"\x0a\x02\x18\x09")):
            (self.folder / "m/tokenizer.model").write_bytes(broken)
            if broken:
                self.refused(1, "convert", self.folder / "m", self.folder / "x.gguf", mentions=mentions)


if __name__ == "__main__":
    unittest.main()
