#!/usr/bin/env python3
"""Trains the demo model and writes it as a Q8_0 GGUF file.

    apt-get install bible-kjv bible-kjv-text
    pip install torch==2.13.0 numpy
    bible -f 'Genesis1:1-Revelation22:21' > kjv.txt
    python3 train.py kjv.txt rdna-demo-q8_0.gguf [--device rdna] [--steps 6000]

The text is the King James Bible, one verse a line, as Debian's bible-kjv prints it. A byte-level BPE vocabulary is
learned from it (the scheme of GPT-2), then a Llama of about 7 million parameters; the checkpoint with the lowest loss
on every twentieth chapter, which training never sees, is the one that is written.
"""
import argparse
import collections
import math
import pathlib
import re
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import gguf_file  # noqa: E402
from gguf_file import ARRAY, BOOL, F32, I32, TENSOR_F32, TENSOR_Q8_0, TEXT, U32  # noqa: E402

VOCABULARY = 2048
WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN, CONTEXT = 256, 8, 4, 2, 768, 512
HEAD = WIDTH // HEADS
ROPE_BASE, NORM_EPSILON = 10000.0, 1e-5
END = "<|endoftext|>"
# GPT-2's pattern for ASCII text: contractions, words, numbers, the rest, white space
PIECES = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def byte_letters():
    """GPT-2's printable letter for each byte: itself where it prints, else from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    for b in range(256):
        if b not in letters:
            letters[b] = chr(256 + len(letters) - len(plain))
    return [letters[b] for b in range(256)]


def read_chapters(path):
    chapters, name = [], None
    for line in open(path, encoding="ascii"):
        match = re.match(r"(\S+):\d+ (.*)", line)
        if not match:
            continue
        if match[1] != name:
            name = match[1]
            chapters.append([])
        chapters[-1].append(match[2].strip())
    return ["\n".join(verses) + "\n" for verses in chapters]


def learn_merges(text, count):
    """The |count| most frequent successive pairs, by the counts of the words they stand in."""
    letters = byte_letters()
    words = [[tuple(letters[b] for b in word.encode()), n] for word, n in collections.Counter(PIECES.findall(text)).items()]
    pairs, places = collections.Counter(), collections.defaultdict(set)
    for i, (word, n) in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += n
            places[pair].add(i)
    merges = []
    for _ in range(count):
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        for i in list(places[best]):
            word, n = words[i]
            for pair in zip(word, word[1:]):
                pairs[pair] -= n
            merged, k = [], 0
            while k < len(word):
                if word[k : k + 2] == best:
                    merged.append(best[0] + best[1])
                    k += 2
                else:
                    merged.append(word[k])
                    k += 1
            words[i][0] = tuple(merged)
            for pair in zip(merged, merged[1:]):
                pairs[pair] += n
                places[pair].add(i)
        del pairs[best], places[best]
    return merges


class Tokenizer:
    def __init__(self, text):
        self.letters = byte_letters()
        self.merges = learn_merges(text, VOCABULARY - 257)
        self.tokens = [END, *self.letters, *(a + b for a, b in self.merges)]
        assert len(set(self.tokens)) == len(self.tokens)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.rank = {pair: i for i, pair in enumerate(self.merges)}
        self.cache = {}

    def encode_word(self, word):
        if word not in self.cache:
            parts = [self.letters[b] for b in word.encode()]
            while len(parts) > 1:
                rank, at = min((self.rank.get(pair, math.inf), i) for i, pair in enumerate(zip(parts, parts[1:])))
                if rank == math.inf:
                    break
                parts[at : at + 2] = [parts[at] + parts[at + 1]]
            self.cache[word] = [self.ids[part] for part in parts]
        return self.cache[word]

    def encode(self, text):
        return [i for word in PIECES.findall(text) for i in self.encode_word(word)]


def rotate(x, cos, sin):
    """RoPE over neighbouring pairs, the layout of llama GGUF files.  x (batch, time, heads, head); |cos| and |sin|
    (time, 1, head) hold each angle twice, the first of two sines negated"""
    other = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    return x * cos + other * sin


class Block(nn.Module):
    """Products of one input are one product; PARTS says what its rows are in the file."""

    def __init__(self, dropout):
        super().__init__()
        self.attn_norm, self.ffn_norm = nn.RMSNorm(WIDTH, NORM_EPSILON), nn.RMSNorm(WIDTH, NORM_EPSILON)
        self.attn_qkv = nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.attn_output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.ffn_gate_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.ffn_down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.dropout = dropout

    def forward(self, x, cos, sin):
        h = self.attn_qkv(self.attn_norm(x)).unflatten(-1, (-1, HEAD))
        qk, v = h.split((HEADS + KV_HEADS, KV_HEADS), 2)
        q, k = rotate(qk, cos, sin).to(v.dtype).split((HEADS, KV_HEADS), 2)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout, enable_gqa=True)
        x = x + F.dropout(self.attn_output(a.transpose(1, 2).flatten(2)), self.dropout, self.training)
        gate, up = self.ffn_gate_up(self.ffn_norm(x)).chunk(2, -1)
        return x + F.dropout(self.ffn_down(F.silu(gate) * up), self.dropout, self.training)


PARTS = {"attn_qkv": {"attn_q": HEADS * HEAD, "attn_k": KV_HEADS * HEAD, "attn_v": KV_HEADS * HEAD},
         "ffn_gate_up": {"ffn_gate": HIDDEN, "ffn_up": HIDDEN}}


def parts_of(name, array):
    """The (name, array) of the file that a parameter of the model holds."""
    for joined, parts in PARTS.items():
        if joined in name:
            start = 0
            for part, rows in parts.items():
                yield name.replace(joined, part), array[start : start + rows]
                start += rows
            return
    yield name, array


class Llama(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.token_embd = nn.Embedding(VOCABULARY, WIDTH)
        self.blk = nn.ModuleList(Block(dropout) for _ in range(LAYERS))
        self.output_norm = nn.RMSNorm(WIDTH, NORM_EPSILON)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.dropout = dropout
        angles = torch.arange(CONTEXT)[:, None, None] * ROPE_BASE ** (-torch.arange(0, HEAD, 2) / HEAD)
        sines = torch.stack((-angles.sin(), angles.sin()), -1).flatten(-2)
        self.register_buffer("cos", angles.cos().repeat_interleave(2, -1), persistent=False)
        self.register_buffer("sin", sines, persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                scale = 0.02 / math.sqrt(2 * LAYERS) if name.endswith(("attn_output.weight", "ffn_down.weight")) else 0.02
                nn.init.normal_(weight, 0.0, scale)

    def forward(self, ids):
        x = F.dropout(self.token_embd(ids), self.dropout, self.training)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for block in self.blk:
            x = block(x, cos, sin)
        return self.output(self.output_norm(x))


def train(tokens, held_out, options):
    if options.device.startswith("rdna") and not hasattr(torch, "rdna"):
        import torch_rdna  # noqa: F401  the plugin from a build folder; an installed one is there by itself
    device = torch.device(options.device)
    torch.manual_seed(options.seed)
    model = Llama(options.dropout).to(device)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(tokens)} tokens, {len(held_out)} held out")
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=options.rate, betas=(0.9, 0.95), fused=True)
    tokens, held_out = (torch.tensor(t, device=device) for t in (tokens, held_out))
    span, batch = 256, options.batch
    rows = torch.arange(span + 1, device=device)
    tests = held_out[: (len(held_out) - 1) // span * span + 1].unfold(0, span + 1, span)
    best, best_state, started = math.inf, None, time.time()
    for step in range(options.steps + 1):
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                loss = sum(F.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten()).item() * len(part)
                           for part in tests.split(batch)) / len(tests)
            model.train()
            print(f"step {step:5d}  held-out loss {loss:.4f}  {time.time() - started:6.1f} s", flush=True)
            if loss < best:
                best, best_state = loss, {k: v.detach().clone() for k, v in model.state_dict().items()}
        rate = options.rate * min(1, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / options.steps)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        part = tokens[torch.randint(0, len(tokens) - span, (batch, 1), device=device) + rows]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type != "cpu"):
            logits = model(part[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), part[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"best held-out loss {best:.4f}")
    arrays = {name: tensor.float().cpu().numpy() for name, tensor in best_state.items()}
    return {part: values for name, array in arrays.items() for part, values in parts_of(name, array)}


def write_gguf(path, weights, tokenizer):
    entries = [
        ("general.architecture", TEXT, "llama"),
        ("general.name", TEXT, "rdna demo"),
        ("general.description", TEXT, "A small Llama that writes in the manner of the King James Bible"),
        ("general.license", TEXT, "Apache-2.0"),
        ("general.file_type", U32, 7),
        ("llama.context_length", U32, CONTEXT),
        ("llama.embedding_length", U32, WIDTH),
        ("llama.block_count", U32, LAYERS),
        ("llama.feed_forward_length", U32, HIDDEN),
        ("llama.attention.head_count", U32, HEADS),
        ("llama.attention.head_count_kv", U32, KV_HEADS),
        ("llama.attention.layer_norm_rms_epsilon", F32, NORM_EPSILON),
        ("llama.rope.dimension_count", U32, WIDTH // HEADS),
        ("llama.rope.freq_base", F32, ROPE_BASE),
        ("llama.vocab_size", U32, VOCABULARY),
        ("tokenizer.ggml.model", TEXT, "gpt2"),
        ("tokenizer.ggml.pre", TEXT, "gpt-2"),
        ("tokenizer.ggml.tokens", (ARRAY, TEXT), tokenizer.tokens),
        ("tokenizer.ggml.token_type", (ARRAY, I32), [3] + [1] * (VOCABULARY - 1)),
        ("tokenizer.ggml.merges", (ARRAY, TEXT), [f"{a} {b}" for a, b in tokenizer.merges]),
        ("tokenizer.ggml.bos_token_id", U32, 0),
        ("tokenizer.ggml.eos_token_id", U32, 0),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.ggml.add_eos_token", BOOL, False),
    ]
    tensors = [(name, TENSOR_Q8_0 if array.ndim == 2 else TENSOR_F32, array) for name, array in weights.items()]
    gguf_file.write(path, entries, tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("out")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=64, help="sequences of 256 tokens in a step")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chapters = read_chapters(options.text)
    tokenizer = Tokenizer("".join(chapters))
    encoded = [[0, *tokenizer.encode(chapter)] for chapter in chapters]
    held_out = [i for n, chapter in enumerate(encoded) if n % 20 == 10 for i in chapter]
    tokens = [i for n, chapter in enumerate(encoded) if n % 20 != 10 for i in chapter]
    write_gguf(options.out, train(tokens, held_out, options), tokenizer)


if __name__ == "__main__":
    main()
