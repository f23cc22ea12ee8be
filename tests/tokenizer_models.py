"""Small tokenizers as tokenizer.json has them, made with the tokenizers library, and SentencePiece's tokenizer.model.

The patterns are those that the models' authors published in their tokenizer.json.
"""
import json
import pathlib
import struct

import hf_folder
import numpy as np
from rdna_program import ROOT
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST
QWEN2 = ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDINGS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDINGS}?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"]

TEXTS = ["", "a", "Hello, world! It's 2026; the quick brown fox didn't jump 12345 times.\n\n  Twice?\t\r\n   end  ",
         "ÄÖü ñandú — «русский текст» 日本語のテキスト カタカナ 漢字 한국어 🙂👍🏽 ١٢٣ x²", "if (x[3] != 7) { return 'we''ll'; } // //\n\n\n",
         "HTTPServerError camelCase ALLCAPS don'T I'LL he'd 1,000,000.50", "a<tool>b <tool> <|eot_id|>c\n<|eot_id|>",
         "   leading\u00a0and\u3000odd spaces\u2003 ", "\u2581 mark \u2581\u2581", "\x00\x7f control"]


POOLS = ["abcdefghij KLMNOP  '\"", "0123456789٠١٢٣४५६", "\n\n\r\t \u00a0\u3000\u2028\x85", "!?.,;:(){}[]<>/\\|#@",
         "äößñçéàê", "e\u0301a\u0308o\u0302\u0323n\u0303i\u0307\u0328\u1e69\u212b\u2126\uf900\u0958\u0344",
         "漢字仮名交じり文ひらがなカタカナ", "한국어ᄒ\u1161\u11ab\u1100\u1161각", "العَرَبِيَّةُ", "עִבְרִית", "ไทยภาษา", "हिन्दी क़",
         "🙂👍🏽👨\u200d👩\u200d👧🇩🇪❤\ufe0f", "\x00\x01\x1b\x7f\u200b\u200e\ufeff\ufffd\U000e0001", "\u2581_\u2581"]


def hard_texts(count=40):
    """Texts that mix scripts, marks in and out of order, control characters, and long runs of one character."""
    random = np.random.default_rng(5)
    texts = ["a" * 3000, " " * 700, "\n" * 100, "\u0301" * 300, "ab" * 900, "🙂" * 200, "\u1100\u1161\u11a8" * 40]
    for _ in range(count):
        parts = []
        for _ in range(random.integers(1, 30)):
            pool = POOLS[random.integers(len(POOLS))]
            part = "".join(pool[i] for i in random.integers(0, len(pool), random.integers(1, 9)))
            parts.append(part * int(random.choice([1, 1, 1, 7])))
        texts.append("".join(parts))
    return texts


class Made:
    """A tokenizer and what lies beside it in a folder."""

    def __init__(self, tokenizer):
        self.tokenizer, self.size = tokenizer, tokenizer.get_vocab_size()
        self.config, self.generation = {}, {}
        self.settings = {}  # of config.json

    def json(self):
        return json.loads(self.tokenizer.to_str())

    def write(self, folder):
        hf_folder.write_json(folder / "tokenizer.json", self.json())
        hf_folder.write_json(folder / "tokenizer_config.json", self.config)
        hf_folder.write_json(folder / "generation_config.json", self.generation)


def corpus():
    text = (ROOT / "README.md").read_text() + (ROOT / "docs/architecture.md").read_text()
    return [text, *TEXTS[2:6]] * 2


def byte_level(steps, ignore_merges=False, normalizer=None, template=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=900, show_progress=False,
                                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    t.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    if template:
        first = "<|begin_of_text|>"
        t.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{first} $A", special_tokens=[(first, t.token_to_id(first))])])
    return Made(t)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def bytes_only():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def llama3():
    return byte_level([split(LLAMA3), bytes_only()], ignore_merges=True, template=True)


def qwen2():
    return byte_level([split(QWEN2), bytes_only()], normalizer=normalizers.NFC())


def sentencepiece():
    """As Llama 2's: marks for spaces, one in front, bytes for what has no token."""
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    # merges do not go over a mark that begins a word, as SentencePiece trains them
    t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    t.train_from_iterator(corpus()[:1], trainers.BpeTrainer(vocab_size=800, show_progress=False, special_tokens=special))
    saved = json.loads(t.to_str())
    saved["pre_tokenizer"] = None
    saved["added_tokens"] = [e for e in saved["added_tokens"] if not e["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(saved))
    t.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    t.add_special_tokens([AddedToken("<|eot_id|>", normalized=False)])
    return Made(t)


def gemma4():
    """As Gemma 4's: marks for spaces, merges by rank, bytes for what has no token, tokens for newlines in a row."""
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(Regex("[^\n]▁|\n+"), "isolated")  # merges stay in lines
    special = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{b:02X}>" for b in range(256))]
    t.train_from_iterator(corpus()[:1], trainers.BpeTrainer(vocab_size=1200, show_progress=False, special_tokens=special))
    saved = json.loads(t.to_str())
    saved["pre_tokenizer"] = json.loads(Tokenizer.to_str(splitting_at_spaces()))["pre_tokenizer"]
    saved["added_tokens"] = [e for e in saved["added_tokens"] if not e["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(saved))
    t.add_tokens([AddedToken("\n" * n, special=False, normalized=False) for n in range(1, 5)])
    t.add_special_tokens([AddedToken("<|eot_id|>", normalized=False), AddedToken("<|begin_of_text|>", normalized=False)])
    made = Made(t)
    made.settings = {"model_type": "gemma4_text"}
    return made


def splitting_at_spaces():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")  # of which there are none any more
    return t


def varint(number):
    out = b""
    while True:
        number, low = number >> 7, number & 127
        out += bytes([low | (128 if number else 0)])
        if not number:
            return out


def model_bytes(made, kind=2, trims=0):
    """tokenizer.model with the pieces of sentencepiece(): scores fall with the merge that makes a piece."""
    saved = made.json()
    ranks = {}
    for i, merge in enumerate(saved["model"]["merges"]):
        ranks.setdefault("".join(merge), i)
    added = {e["id"]: e for e in saved["added_tokens"]}
    tokens = {i: t for t, i in saved["model"]["vocab"].items()} | {i: e["content"] for i, e in added.items()}
    out = b""
    for i, text in sorted(tokens.items()):
        type_ = 2 if text == "<unk>" else 6 if text.startswith("<0x") else 1
        if type_ == 1 and i in added:
            type_ = 3 if added[i]["special"] else 4
        raw = text.encode()
        piece = b"\x0a" + varint(len(raw)) + raw + b"\x15" + struct.pack("<f", -ranks.get(text, 10000)) + b"\x18" + varint(type_)
        out += b"\x0a" + varint(len(piece)) + piece
    trainer, normalizer = b"\x18" + varint(kind), b"\x0a\x08identity\x18\x01\x20" + varint(trims)
    return out + b"\x12" + varint(len(trainer)) + trainer + b"\x1a" + varint(len(normalizer)) + normalizer


# name: how it is made, GGUF's model, GGUF's pre-tokenizer
MADE = {
    "Llama 3": (llama3, "gpt2", "llama-bpe"),
    "Qwen 2": (qwen2, "gpt2", "qwen2"),
    "GPT-2": (lambda: byte_level([pre_tokenizers.ByteLevel(add_prefix_space=False)]), "gpt2", "gpt-2"),
    "cl100k": (lambda: byte_level([split(LLAMA3), bytes_only()]), "gpt2", "dbrx"),
    "o200k": (lambda: byte_level([split(O200K, "removed", True), bytes_only()]), "gpt2", "gpt-4o"),
    "digits": (lambda: byte_level([pre_tokenizers.Digits(individual_digits=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)]), "gpt2", "starcoder"),
    "DeepSeek 3": (lambda: byte_level([*map(split, DEEPSEEK), bytes_only()]), "gpt2", "deepseek-v3"),
    "SentencePiece": (sentencepiece, "llama", "default"),
    "Gemma 4": (gemma4, "gemma4", None),
}
