"""rdna convert of encoders' folders: BERT's, RoBERTa's and Nomic's, those that judge texts, and their vocabularies.

Models are saved by transformers; what is asked for is the GGUF file that tests/architecture_encoders.py writes itself,
whose states tests/embed_test.py compares with float64. Ids are those of the tokenizers library.
"""
import json
import pathlib
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers
import numpy as np
import torch
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer, processors

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
import hf_folder
import tokenizer_models
from architecture_encoders import JUDGES, ROWS, States
from command_test import Refusing
from rdna_program import output
from wordpiece_test import agreed

# Keys that the converter may write beside those of a row: what a reader would assume without them, or reads nowhere.
EXTRA = {"attention.head_count_kv", "attention.key_length", "attention.value_length", "vocab_size", "rope.dimension_count"}
ROWS = [row for row in ROWS if row.architecture in ("bert", "nomic-bert")]


def save(folder, row):
    """|row|'s model as transformers writes it, in |folder|/m, and as the row writes it itself."""
    model = States(row, seed=5)
    model.network({}, torch.float32).save_pretrained(folder / "m")
    model.write(folder / "want.gguf")
    return model


class Encoders(Refusing):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def converted(self, *options):
        output("convert", self.folder / "m", self.folder / "got.gguf", *options)
        return gf.Reader(self.folder / "got.gguf")

    def test_rows(self):
        for row in ROWS + JUDGES:
            with self.subTest(row.name):
                save(self.folder, row)
                got, want = self.converted(), gf.Reader(self.folder / "want.gguf")
                self.assertEqual(set(got.tensors), set(want.tensors))
                for name, tensor in want.tensors.items():
                    np.testing.assert_array_equal(got.tensors[name], tensor, name)
                keys, of = dict(want.keys), row.architecture + "."
                if row.pooling != "rank":  # which the folder does not say
                    del keys[of + "pooling_type"]
                else:
                    keys[of + "classifier.output_labels"] = ["LABEL_0", "LABEL_1", "LABEL_2"]
                self.assertEqual({key: got.keys.get(key) for key in keys}, keys)
                self.assertEqual(of + "pooling_type" in got.keys, row.pooling == "rank")
                extra = {key.removeprefix(of) for key in got.keys if key not in keys}
                self.assertLessEqual(extra, EXTRA | {"general.name", "general.file_type", "tokenizer.ggml.model"})
                self.runs_as_it_is(row)

    def runs_as_it_is(self, row):
        """The folder's vectors are the file's, and small types run."""
        pooling = "rank" if row.pooling == "rank" else "none"
        options = ("--ids", "--pooling", pooling, "--device", rdna_program.DEVICE)
        want, got = (output("embed", self.folder / name, *options, stdin=b"5,6,7,8\n") for name in ("got.gguf", "m"))
        self.assertEqual(want, got)
        small = self.converted("--type", "q8_0")
        for name in {"position_embd.weight", "token_types.weight"} & set(small.tensors):
            np.testing.assert_array_equal(small.tensors[name], gf.Reader(self.folder / "want.gguf").tensors[name])
        values = [np.ravel(json.loads(line)[key]) for line in
                  (want, output("embed", self.folder / "got.gguf", *options, stdin=b"5,6,7,8\n"))
                  for key in ("embeddings", "labels") if key in json.loads(line)]
        self.assertLess(np.linalg.norm(values[0] - values[1]), 0.05 * np.linalg.norm(values[0]))
        self.assertFalse(np.array_equal(*values))

    def test_nomic_by_its_published_settings(self):
        """The names and values of nomic-embed-text-v1.5's config.json."""
        save(self.folder, next(row for row in ROWS if row.architecture == "nomic-bert"))
        self.converted()
        want, path = (self.folder / "got.gguf").read_bytes(), self.folder / "m/config.json"
        config = json.loads(path.read_text())
        published = {
            "activation_function": "swiglu", "architectures": ["NomicBertModel"], "causal": False,
            "layer_norm_epsilon": config["layer_norm_eps"], "max_trained_positions": config["max_position_embeddings"],
            "model_type": "nomic_bert", "n_embd": config["hidden_size"], "n_head": config["num_attention_heads"],
            "n_inner": config["intermediate_size"], "n_layer": config["num_hidden_layers"], "n_positions": 8192,
            "parallel_block": False, "prenorm": False, "qkv_proj_bias": False, "rotary_emb_base": 1000,
            "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
            "rotary_scaling_factor": None, "type_vocab_size": 2, "use_rms_norm": False, "vocab_size": config["vocab_size"],
        }
        hf_folder.write_json(path, published)
        self.converted()
        self.assertEqual((self.folder / "got.gguf").read_bytes(), want)
        for mentions, settings in (("'prenorm' is set", {"prenorm": True}), ("'causal' is set", {"causal": True}),
                                   ("'parallel_block' is set", {"parallel_block": True}),
                                   ("its activation is 'gelu'", {"activation_function": "gelu"}),
                                   ("it has experts", {"num_experts": 8}),
                                   ("'rotary_emb_interleaved' is set", {"rotary_emb_interleaved": True}),
                                   ("'rotary_emb_scale_base' is set", {"rotary_emb_scale_base": 512}),
                                   ("'use_rms_norm' is set", {"use_rms_norm": True}),
                                   ("base of RoPE", {"rotary_emb_base": None}),
                                   ("'partial_rotary_factor' is 0", {"rotary_emb_fraction": 0.0}),
                                   ("'hidden_size' is", {"n_embd": KeyError})):
            self.refuse(mentions, **settings)

    def test_pooling_of_sentence_transformers(self):
        save(self.folder, ROWS[0])
        (self.folder / "m/1_Pooling").mkdir()
        for kind, number in (("mean_tokens", 1), ("cls_token", 2)):
            hf_folder.write_json(self.folder / "m/1_Pooling/config.json",
                                 {"word_embedding_dimension": 64, **{f"pooling_mode_{k}": k == kind for k in
                                                                     ("cls_token", "mean_tokens", "max_tokens")}})
            self.assertEqual(self.converted().keys["bert.pooling_type"], number)

    def refuse(self, mentions, **settings):
        config = json.loads((self.folder / "m/config.json").read_text())
        changed = {key: value for key, value in {**config, **settings}.items() if value is not KeyError}
        hf_folder.write_json(self.folder / "m/config.json", changed)
        self.refused(1, "convert", self.folder / "m", self.folder / "x.gguf", mentions=mentions)
        self.assertFalse((self.folder / "x.gguf").exists())
        hf_folder.write_json(self.folder / "m/config.json", config)

    def test_refusals(self):
        row = next(row for row in JUDGES if row.model.startswith("Roberta"))
        save(self.folder, row)
        self.refuse("'position_embedding_type' is 'relative_key'", position_embedding_type="relative_key")
        self.refuse("'is_decoder' is set", is_decoder=True)
        self.refuse("its activation is 'relu'", hidden_act="relu")
        self.refuse("the first token's is row 200", pad_token_id=199, max_position_embeddings=400)
        self.refuse("'max_position_embeddings' is 130", pad_token_id=129)
        self.refuse("'id2label' has no text for label 1", id2label={"0": "a", "2": "b", "3": "c"})
        self.refuse("'layer_norm_eps' is missing", layer_norm_eps=KeyError)
        self.refuse("'RobertaForMaskedLM' cannot be converted", architectures=["RobertaForMaskedLM"])


def wordpiece(lowercase):
    t = BertWordPieceTokenizer(lowercase=lowercase, strip_accents=lowercase)
    t.train_from_iterator(tokenizer_models.corpus(), vocab_size=700, show_progress=False)
    ends = [(name, t.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=ends)
    return t, {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}


def bytes_of_roberta():
    t = ByteLevelBPETokenizer(add_prefix_space=False)
    t.train_from_iterator(tokenizer_models.corpus(), vocab_size=900, show_progress=False,
                          special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                                    add_prefix_space=False)
    return t, {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}


class Vocabularies(Refusing):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, made, row=ROWS[0]):
        tokenizer, config = made
        row.config["vocab_size"], before = tokenizer.get_vocab_size() + 2, row.config["vocab_size"]
        try:
            save(self.folder, row)
        finally:
            row.config["vocab_size"] = before
        saved = json.loads(tokenizer.to_str())
        hf_folder.write_json(self.folder / "m/tokenizer.json", saved)
        hf_folder.write_json(self.folder / "m/tokenizer_config.json", config)
        return saved

    def test_ids(self):
        for name, made in (("small letters", wordpiece(True)), ("capitals", wordpiece(False)), ("roberta", bytes_of_roberta())):
            with self.subTest(name):
                self.write(made)
                output("convert", self.folder / "m", self.folder / "m.gguf")
                for text in tokenizer_models.TEXTS[:6] + ["Élan vital, the King's 2nd Élan!", "the ##ing [x]"]:
                    text = agreed(text).replace("<tool>", "")
                    for source in ("m", "m.gguf"):
                        plain = output("tokenize", self.folder / source, stdin=text.encode()).split()
                        self.assertEqual([int(i) for i in plain], made[0].encode(text, add_special_tokens=False).ids, text)
                keys = gf.Reader(self.folder / "m.gguf").keys
                whole = made[0].encode("the king").ids
                first, last = ((keys[f"tokenizer.ggml.{k}_id"] for k in ("bos_token", "eos_token")) if name == "roberta" else
                               (keys[f"tokenizer.ggml.{k}_id"] for k in ("cls_token", "seperator_token")))
                self.assertEqual((first, last), (whole[0], whole[-1]))
                self.assertTrue(keys["tokenizer.ggml.add_bos_token"] and keys["tokenizer.ggml.add_eos_token"])
                answer = json.loads(output("embed", self.folder / "m", "--pooling", "mean", stdin=b"the king\n"))
                self.assertEqual(answer["tokens"], len(whole))

    def test_refusals(self):
        saved = self.write(wordpiece(True))
        for mentions, change in (
            ("do not begin with '##'", lambda t: t["model"].update(continuing_subword_prefix="@@")),
            ("its pre-tokenizer is not BERT's", lambda t: t["pre_tokenizer"].update(type="Whitespace")),
            ("its normalizer is not BERT's", lambda t: t["normalizer"].update(type="NFC")),
            ("leaves out a step of BERT's", lambda t: t["normalizer"].update(strip_accents=False)),
            ("leaves out a step of BERT's", lambda t: t["normalizer"].update(clean_text=False)),
            ("keeps capitals, but its vocabulary has none",
             lambda t: t["normalizer"].update(lowercase=False, strip_accents=False)),
            ("'cls' of its post-processor", lambda t: t.update(
                post_processor={"type": "BertProcessing", "cls": ["[CLS]", -1], "sep": ["[SEP]", 3]})),
        ):
            changed = json.loads(json.dumps(saved))
            change(changed)
            hf_folder.write_json(self.folder / "m/tokenizer.json", changed)
            with self.subTest(mentions):
                self.refused(1, "convert", self.folder / "m", self.folder / "x.gguf", mentions=mentions)


if __name__ == "__main__":
    unittest.main()
