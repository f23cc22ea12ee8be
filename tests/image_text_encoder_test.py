"""CLIP's text encoder and tokenizer through librdna, against transformers' on small random models in their folders."""
import ctypes
import json
import pathlib
import random
import shutil
import tempfile
import unicodedata
import unittest

import diffusers_python  # first: this goes on in a Python that has transformers
import numpy as np
import safetensors.torch
import torch
import transformers

from image_library import BAD_DATA, DEVICE, INT, INVALID, LIBRARY, NOT_FOUND, POINTER, TEXT, UNSUPPORTED, declare

BEGIN, END = "<|startoftext|>", "<|endoftext|>"
POSITIONS = 61

declare("rdna_image_text_encoder_", [("create", INT, [POINTER, TEXT, TEXT, TEXT, POINTER]), ("release", None, [POINTER]),
                                     ("get_info", POINTER, [POINTER]),
                                     ("tokens", INT, [POINTER, TEXT, ctypes.c_size_t, POINTER, POINTER]),
                                     ("encode", INT, [POINTER, POINTER, INT, INT, ctypes.c_bool, POINTER, POINTER])])


class Info(ctypes.Structure):
    _fields_ = [("positions", INT), ("layers", INT), ("width", INT), ("pooled", INT), ("projected", ctypes.c_bool),
                ("weights_bytes", ctypes.c_size_t)]


class Encoder:
    def __init__(self, folder, encoder="text_encoder", tokenizer="tokenizer"):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_text_encoder_create(DEVICE, str(folder).encode(), encoder.encode(),
                                                             tokenizer.encode(), ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        if self.status == 0:
            self.info = Info.from_address(LIBRARY.rdna_image_text_encoder_get_info(self.handle))

    def tokens(self, text):
        text = text if isinstance(text, bytes) else text.encode()
        ids, count = np.full(self.info.positions, -7, np.int32), ctypes.c_size_t()
        status = LIBRARY.rdna_image_text_encoder_tokens(self.handle, text, len(text), ids.ctypes.data,
                                                        ctypes.byref(count))
        assert status == 0, LIBRARY.rdna_last_error()
        return ids.tolist(), count.value

    def encode(self, ids, skip=0, normed=True, states=True, pooled=True):
        """States and vectors, NaN where nothing was written, and the status."""
        ids = np.ascontiguousarray(ids, np.int32)
        of_tokens = np.full((*ids.shape, self.info.width), np.nan, np.float32)
        of_texts = np.full((len(ids), self.info.pooled), np.nan, np.float32)
        status = LIBRARY.rdna_image_text_encoder_encode(self.handle, ids.ctypes.data, len(ids), skip, normed,
                                                        of_tokens.ctypes.data if states else None,
                                                        of_texts.ctypes.data if pooled else None)
        return of_tokens, of_texts, status

    def __del__(self):
        LIBRARY.rdna_image_text_encoder_release(self.handle)


def alphabet():
    """The characters by which byte-level vocabularies write bytes, by byte."""
    kept = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(b if b in kept else next(others)) for b in range(256)]


def learn_merges(words, count):
    """Byte pair encoding: the most frequent pair of neighbours, again and again."""
    byte = alphabet()
    words = [[*(byte[b] for b in word.encode()[:-1]), byte[word.encode()[-1]] + "</w>"] for word in words]
    merges = []
    while len(merges) < count:
        pairs = {}
        for word in words:
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for word in words:
            i = 0
            while i + 1 < len(word):
                if (word[i], word[i + 1]) == best:
                    word[i:i + 2] = ["".join(best)]
                i += 1
    return merges


WORDS = ("a photograph of an astronaut riding horse on mars the cat sat with hat it's they're we'll i'm i'd don't highly "
         "detailed digital painting trending artstation straße naïve été Größe привет мир кошка на крыше ελληνικά λέξεις "
         "絵 猫の絵 日本 한국어 ñandú 🙂🙂 🚀 -- ... ,, !! ((masterpiece)) <|endoftext|> <|start").lower().split()


def write_tokenizer(folder, pad=None):
    folder.mkdir()
    byte, merges = alphabet(), learn_merges(WORDS * 2, 330)
    tokens = [*byte, *(b + "</w>" for b in byte), *dict.fromkeys("".join(pair) for pair in merges), BEGIN, END]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    if pad:
        settings = {"tokenizer_class": "CLIPTokenizer", "bos_token": BEGIN, "eos_token": {"__type": "AddedToken", "content": END, "lstrip": False, "normalized": False,
                                  "rstrip": False, "single_word": False},
                    "unk_token": END, "pad_token": pad}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(tokens)


def random_model(kind, seed, **options):
    config = transformers.CLIPTextConfig(**{
        "vocab_size": 1000, "hidden_size": 36, "intermediate_size": 52, "num_hidden_layers": 3, "num_attention_heads": 3,
        "projection_dim": 20, "max_position_embeddings": POSITIONS, "layer_norm_eps": 1e-5, **options})
    model = kind(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            one = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            p.copy_(one + 0.3 * torch.randn(p.shape, generator=generator))
    return model.eval()


def error(got, wanted):
    wanted = wanted.detach().numpy()
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


class TextEncoder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.count = write_tokenizer(cls.root / "tokenizer")
        write_tokenizer(cls.root / "tokenizer_2", "!")
        cls.model = random_model(transformers.CLIPTextModel, 1, eos_token_id=cls.count - 1)
        cls.model.save_pretrained(cls.root / "text_encoder")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def folder(self, *copied):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        for name in copied:
            shutil.copytree(self.root / name, pathlib.Path(temporary.name) / name)
        return pathlib.Path(temporary.name)

    # ---- tokens ----

    def random_text(self, chance):
        def character():
            while True:
                code = chance.choice([chance.randrange(0x80), chance.randrange(0x250), chance.randrange(0x3000),
                                      chance.randrange(0x20000)])
                if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co"):
                    return chr(code)
        parts = [lambda: chance.choice(WORDS), lambda: chance.choice(WORDS).upper(), lambda: chance.choice(WORDS).title(),
                 character, lambda: chance.choice(" \t\n\r\v\f\x1c\x1f\x85\xa0\u1680\u180e\u2003\u200b\u2028\u3000\ufeff"),
                 lambda: chance.choice("'\"!?<>|.,:-_()[]{}0123456789"), lambda: chance.choice(["'s", "'T", "'re", "'LL", "''d"]),
                 lambda: chance.choice([END, BEGIN, END.upper(), "<|endof", "text|>", "</w>", "<|", "|>"]),
                 lambda: "e" + chance.choice("\u0301\u0308\u0327\u0345\u3099"), lambda: chance.choice("İIıſßẞΣςΆＡ①½٣ǅ")]
        return "".join(chance.choice(parts)() + chance.choice(["", "", " "]) for _ in range(chance.choice([3, 24, 60])))

    def compare_tokens(self, tokenizer, texts):
        ours = Encoder(self.root, tokenizer=tokenizer)
        self.assertEqual(ours.status, 0, ours.sentence)
        theirs = transformers.CLIPTokenizer.from_pretrained(self.root / tokenizer)
        cut = 0
        for text in texts:
            wanted = theirs(text, padding="max_length", max_length=POSITIONS, truncation=True)["input_ids"]
            count = len(theirs(text)["input_ids"]) - 2
            self.assertEqual(ours.tokens(text), (wanted, count), repr(text))
            cut += count > POSITIONS - 2
        return cut

    def test_tokens(self):
        for tokenizer in ["tokenizer", "tokenizer_2"]:
            chance = random.Random(5)
            with self.subTest(tokenizer):
                cut = self.compare_tokens(tokenizer, ["", " ", " ".join(WORDS), *(self.random_text(chance) for _ in range(1500))])
                self.assertGreater(cut, 100)

    def test_one_file(self):
        """tokenizer.json, as transformers saves it today, and with merges as older ones have them."""
        chance, texts = random.Random(6), ["", " ".join(WORDS)]
        texts += [self.random_text(chance) for _ in range(300)]
        for name in ["tokenizer", "tokenizer_2"]:
            transformers.CLIPTokenizer.from_pretrained(self.root / name).save_pretrained(self.root / f"{name}_saved")
            self.assertFalse((self.root / f"{name}_saved/vocab.json").exists())
            self.compare_tokens(f"{name}_saved", texts)
            path = self.root / f"{name}_saved/tokenizer.json"
            whole = json.loads(path.read_text())
            path.write_text(json.dumps({**whole, "model": {**whole["model"], "merges": [" ".join(pair) for pair in whole["model"]["merges"]]}}))
            ours = [Encoder(self.root, tokenizer=folder) for folder in (name, f"{name}_saved")]
            for text in texts:
                self.assertEqual(ours[0].tokens(text), ours[1].tokens(text))

    def test_one_file_that_is_another(self):
        folder = self.folder("tokenizer", "text_encoder")
        transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer").save_pretrained(folder / "saved")
        whole = json.loads((folder / "saved/tokenizer.json").read_text())
        shutil.rmtree(folder / "tokenizer")
        (folder / "saved").rename(folder / "tokenizer")
        model, added = whole["model"], whole["added_tokens"]
        for change, status, word in [
                ({"model": {**model, "type": "Unigram"}}, UNSUPPORTED, "CLIP"), ({"model": {**model, "end_of_word_suffix": ""}}, UNSUPPORTED, "CLIP"),
                ({"model": {**model, "continuing_subword_prefix": "##"}}, UNSUPPORTED, "CLIP"), ({"model": {**model, "vocab": []}}, BAD_DATA, "vocabulary"),
                ({"model": {**model, "vocab": {}}, "added_tokens": []}, BAD_DATA, "startoftext"), ({"model": {**model, "merges": "a b"}}, BAD_DATA, "merges"),
                ({"model": {**model, "merges": [["a"]]}}, BAD_DATA, "merges"), ({"model": {**model, "merges": [["q", "zz"]]}}, BAD_DATA, "merge"),
                ({"normalizer": {"type": "NFC"}}, UNSUPPORTED, "another way"), ({"pre_tokenizer": None}, UNSUPPORTED, "another way"),
                ({"added_tokens": [*added, {"id": len(model["vocab"]), "content": "<concept>"}]}, UNSUPPORTED, "<concept>"),
                ({"added_tokens": [{"id": 0, "content": END}]}, UNSUPPORTED, END)]:
            with self.subTest(str(change)[-60:]):
                (folder / "tokenizer/tokenizer.json").write_text(json.dumps({**whole, **change}))
                self.refused(folder, status, word)
        for text in ["", "[]", "{"]:
            (folder / "tokenizer/tokenizer.json").write_text(text)
            self.refused(folder, NOT_FOUND if not text else BAD_DATA, "vocab.json" if not text else "tokenizer.json")

    def test_every_character(self):
        """Each by itself, behind and before a letter."""
        codes = [c for c in range(1, 0x20000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co", "Lo")]
        self.compare_tokens("tokenizer", [f"{chr(a)}x{chr(a)} {chr(b)}x{chr(b)}" for a, b in zip(codes[::2], codes[1::2])])

    def test_bytes_that_are_no_utf8(self):
        ours = Encoder(self.root)
        byte = json.loads((self.root / "tokenizer/vocab.json").read_text())
        ids, count = ours.tokens(b"\xff\xfe")
        self.assertEqual(ids[1:3], [byte[alphabet()[0xff]], byte[alphabet()[0xfe] + "</w>"]])
        self.assertEqual(count, 2)
        self.assertEqual(ours.tokens(b"\xc3 " * 500_000)[1], 500_000)

    # ---- states ----

    def compare_states(self, model, folder, texts):
        model.save_pretrained(folder / "text_encoder")
        ours = Encoder(folder)
        self.assertEqual(ours.status, 0, ours.sentence)
        ids = np.array([ours.tokens(text)[0] for text in texts])
        # f64 of the weights as they were saved
        saved = type(model).from_pretrained(folder / "text_encoder", dtype=torch.float64, attn_implementation="eager").eval()
        wanted = saved(torch.from_numpy(ids).long(), output_hidden_states=True)
        inner = getattr(saved, "text_model", saved)
        pooled = wanted.text_embeds if hasattr(wanted, "text_embeds") else wanted.pooler_output
        info, config = ours.info, saved.config
        self.assertEqual((info.positions, info.layers, info.width, info.pooled, info.projected),
                         (POSITIONS, config.num_hidden_layers, config.hidden_size, pooled.shape[1],
                          hasattr(saved, "text_projection")))
        self.assertEqual(info.weights_bytes, 4 * sum(p.numel() for p in saved.parameters()))
        for skip in range(info.layers + 1):
            state = wanted.hidden_states[info.layers - skip]
            plain, vectors, status = ours.encode(ids, skip, normed=False)
            self.assertEqual(status, 0)
            self.assertLess(error(plain, state), 2e-6)
            self.assertLess(error(vectors, pooled), 2e-6)
            normed, vectors, status = ours.encode(ids, skip, pooled=False)
            self.assertEqual(status, 0)
            self.assertLess(error(normed, inner.final_layer_norm(state)), 2e-6)
            self.assertTrue(np.isnan(vectors).all())
        states, vectors, status = ours.encode(ids, states=False)
        self.assertTrue(status == 0 and np.isnan(states).all())
        self.assertLess(error(vectors, pooled), 2e-6)
        self.assertEqual(ours.encode(ids, states=False, pooled=False)[2], 0)

    def test_states(self):
        texts = ["a cat", "", "the astronaut's hat " * 9, "!", "photograph of a horse <|endoftext|> on mars"]
        plain, projecting = transformers.CLIPTextModel, transformers.CLIPTextModelWithProjection
        for kind, activation, dtype, count, options in [
                (plain, "quick_gelu", torch.float32, 5, {}), (projecting, "gelu", torch.float32, 3, {}),
                (projecting, "quick_gelu", torch.float16, 1, {"num_attention_heads": 1}),
                (plain, "gelu", torch.bfloat16, 2, {"layer_norm_eps": 1e-2}),
                (plain, "quick_gelu", torch.float32, 5, {"eos_token_id": 2}),
                (projecting, "gelu", torch.float32, 2, {"hidden_size": 7, "num_attention_heads": 7, "num_hidden_layers": 1})]:
            with self.subTest(f"{kind.__name__} {activation} {dtype} {count} {options}"):
                model = random_model(kind, 3, hidden_act=activation, **{"eos_token_id": self.count - 1, **options})
                self.compare_states(model.to(dtype), self.folder("tokenizer"), texts[:count])

    def test_names_with_text_model(self):
        """As transformers 4 saved models without a projection."""
        folder = self.folder("tokenizer", "text_encoder")
        path = folder / "text_encoder/model.safetensors"
        tensors = safetensors.torch.load_file(path)
        safetensors.torch.save_file({"text_model." + name: t for name, t in tensors.items()}, path)
        ids = np.array([Encoder(self.root).tokens("a cat")[0]])
        wanted, got = Encoder(self.root).encode(ids), Encoder(folder).encode(ids)
        np.testing.assert_array_equal(got[0], wanted[0])
        np.testing.assert_array_equal(got[1], wanted[1])

    def test_variant(self):
        folder = self.folder("tokenizer", "text_encoder")
        path = folder / "text_encoder/model.safetensors"
        path.rename(path.with_name("model.fp16.safetensors"))
        ids = np.array([Encoder(self.root).tokens("a hat")[0]])
        np.testing.assert_array_equal(Encoder(folder).encode(ids)[0], Encoder(self.root).encode(ids)[0])

    # ---- refusals ----

    def refused(self, folder, status, *words):
        encoder = Encoder(folder)
        self.assertEqual(encoder.status, status, encoder.sentence)
        for word in words:
            self.assertIn(word, encoder.sentence)

    def test_missing_files(self):
        for name in ["text_encoder/config.json", "text_encoder/model.safetensors", "tokenizer/vocab.json", "tokenizer/merges.txt"]:
            with self.subTest(name):
                folder = self.folder("tokenizer", "text_encoder")
                (folder / name).unlink()
                self.refused(folder, NOT_FOUND, name.split("/")[1])

    def test_settings(self):
        plain = json.loads((self.root / "text_encoder/config.json").read_text())
        for change, status, word in [
                ("", BAD_DATA, "JSON"), ("[]", BAD_DATA, "object"), ("[" * 100_000, BAD_DATA, "JSON"), ("{\"a\": \"\0\"}", BAD_DATA, "JSON"),
                ({"architectures": ["CLIPModel"]}, UNSUPPORTED, "CLIPModel"), ({"architectures": 3}, UNSUPPORTED, "architecture"),
                ({"hidden_act": "relu"}, UNSUPPORTED, "relu"), ({"hidden_act": None}, UNSUPPORTED, "hidden_act"),
                ({"hidden_size": 40}, BAD_DATA, "num_attention_heads"), ({"hidden_size": 33}, BAD_DATA, "settings ask for"),
                ({"hidden_size": 2**40}, BAD_DATA, "hidden_size"), ({"hidden_size": "36"}, BAD_DATA, "hidden_size"),
                ({"num_attention_heads": 0}, BAD_DATA, "num_attention_heads"), ({"num_hidden_layers": -1}, BAD_DATA, "layers"),
                ({"num_hidden_layers": 4}, BAD_DATA, "encoder.layers.3.layer_norm1.weight"),
                ({"num_hidden_layers": None}, BAD_DATA, "num_hidden_layers"), ({"vocab_size": 999}, BAD_DATA, "settings ask for"),
                ({"max_position_embeddings": 2}, BAD_DATA, "max_position"), ({"layer_norm_eps": "x"}, BAD_DATA, "eps"),
                ({"layer_norm_eps": -1}, BAD_DATA, "eps"), ({"eos_token_id": [1]}, BAD_DATA, "eos_token_id"),
                ({"architectures": ["CLIPTextModelWithProjection"]}, BAD_DATA, "text_projection.weight")]:
            with self.subTest(str(change)[:80]):
                folder = self.folder("tokenizer", "text_encoder")
                text = change if isinstance(change, str) else json.dumps({**plain, **change})
                (folder / "text_encoder/config.json").write_text(text)
                self.refused(folder, status, word)

    def test_tensors(self):
        name = "encoder.layers.1.mlp.fc1.weight"
        for change, status in [(None, BAD_DATA), (lambda t: t.T.contiguous(), BAD_DATA), (lambda t: t.reshape(-1), BAD_DATA),
                               (lambda t: t[None], BAD_DATA), (lambda t: t.double(), UNSUPPORTED), (lambda t: t[:0], BAD_DATA)]:
            folder = self.folder("tokenizer", "text_encoder")
            path = folder / "text_encoder/model.safetensors"
            tensors = safetensors.torch.load_file(path)
            tensor = tensors.pop(name)
            if change:
                tensors[name] = change(tensor)
            safetensors.torch.save_file(tensors, path)
            self.refused(folder, status, name)
        for cut in [0, 7, 100, path.stat().st_size - 1]:
            whole = (self.root / "text_encoder/model.safetensors").read_bytes()
            path.write_bytes(whole[:cut])
            self.refused(folder, BAD_DATA, "text_encoder")

    def test_unread_tensors(self):
        """More than the settings speak of is refused; but for numbers of positions, and a projection that none is said of."""
        def changed(model_settings, **tensors):
            folder = self.folder("tokenizer", "text_encoder")
            path, config = folder / "text_encoder/model.safetensors", folder / "text_encoder/config.json"
            safetensors.torch.save_file({**safetensors.torch.load_file(path), **tensors}, path)
            config.write_text(json.dumps({**json.loads(config.read_text()), **model_settings}))
            return folder
        self.refused(changed({"num_hidden_layers": 2}), UNSUPPORTED, "16 tensors", "encoder.layers.2.")
        self.refused(changed({}, more=torch.zeros(1)), UNSUPPORTED, "'more'")
        fine = {"embeddings.position_ids": torch.arange(POSITIONS)[None], "text_projection.weight": torch.ones(20, 36)}
        ids = np.array([Encoder(self.root).tokens("a cat")[0]])
        np.testing.assert_array_equal(Encoder(changed({}, **fine)).encode(ids)[1], Encoder(self.root).encode(ids)[1])

    def test_added_tokens(self):
        """Those of textual inversion are refused; the vocabulary's own may be listed again."""
        plain = json.loads((self.root / "tokenizer/vocab.json").read_text())
        for name, added, word in [
                ("added_tokens.json", {"<toy>": self.count}, "<toy>"), ("added_tokens.json", {END: 3}, END), ("added_tokens.json", "[", "JSON"),
                ("added_tokens.json", {END: "x"}, END), ("added_tokens.json", {END: plain[END]}, ""),
                ("tokenizer_config.json", {"added_tokens_decoder": {str(self.count): {"content": "<toy>"}}}, "<toy>"),
                ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": END}}}, END), ("tokenizer_config.json", {"added_tokens_decoder": {"": 3}}, "adds"),
                ("tokenizer_config.json", {"added_tokens_decoder": {str(plain[END]): {"content": END}}}, "")]:
            with self.subTest(f"{name} {added}"):
                folder = self.folder("tokenizer", "text_encoder")
                (folder / "tokenizer" / name).write_text(added if isinstance(added, str) else json.dumps(added))
                if word:
                    self.refused(folder, BAD_DATA if word == "JSON" else UNSUPPORTED, name, word)
                else:
                    self.assertEqual(Encoder(folder).tokens("a cat"), Encoder(self.root).tokens("a cat"))

    def test_vocabularies(self):
        plain = json.loads((self.root / "tokenizer/vocab.json").read_text())
        def without(token):
            return {t: i for i, t in enumerate(t for t in plain if t != token)}
        files = {"vocab.json": [("", "JSON"), ("[]", "object"), ("{}", "startoftext"), ("{\"a\": 1, \"a\": 2}", "JSON"),
                                (without(END), END), (without("a</w>"), "0x61"), (without(list(plain)[-3]), "merge"), ({**plain, "zz": 0}, "zz"),
                                ({**plain, "zz": -1}, "zz"), ({**plain, "zz": "7"}, "zz"), ({**plain, "zz": 2**40}, "zz"),
                                ({**plain, END: 2**33}, END), ({**plain, END: -5}, "id -5"),
                                ({**plain, **{f"z{i}": len(plain) + i for i in range(300)}}, "1000")],
                 "merges.txt": [("#version: 0.2\nab\n", "merge"), ("a \n", "merge"), ("q zz\n", "merge")],
                 "tokenizer_config.json": [("[", "JSON"), ({"pad_token": "<pad>"}, "<pad>")]}
        for name, changes in files.items():
            for change, word in changes:
                with self.subTest(f"{name} {str(change)[-60:]}"):
                    folder = self.folder("tokenizer", "text_encoder")
                    (folder / "tokenizer" / name).write_text(change if isinstance(change, str) else json.dumps(change))
                    self.refused(folder, BAD_DATA, word)
        folder = self.folder("tokenizer", "text_encoder")
        (folder / "tokenizer/tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>"}))
        self.refused(folder, UNSUPPORTED, "<s>")

    def test_arguments(self):
        ours = Encoder(self.root)
        ids = np.zeros((2, POSITIONS), np.int32)
        for count, skip, bad in [(0, 0, 0), (65, 0, 0), (2, -1, 0), (2, 4, 0), (2, 0, -1), (2, 0, 1000)]:
            given = np.zeros((max(count, 1), POSITIONS), np.int32)
            given[-1, 7] = bad
            states, vectors, status = ours.encode(given[:count], skip)
            self.assertEqual(status, INVALID)
            self.assertTrue(np.isnan(states).all() and np.isnan(vectors).all())
        self.assertEqual(ours.encode(ids)[2], 0)
        self.assertEqual(LIBRARY.rdna_image_text_encoder_tokens(ours.handle, None, 1, ids.ctypes.data, None), INVALID)
        self.assertEqual(LIBRARY.rdna_image_text_encoder_create(None, b".", b"a", b"b", ctypes.byref(POINTER())), INVALID)
        self.assertEqual(Encoder("x" * 5000).status, INVALID)


if __name__ == "__main__":
    unittest.main()
