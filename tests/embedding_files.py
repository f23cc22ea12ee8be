"""Models that give vectors of texts, as small files with a vocabulary of words, for tests of rdna serve."""
import numpy as np

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
from rdna_program import DEMO_MODEL

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the king of israel said and god in days blessed is man it came to pass thou shalt not lord my shepherd".split()
VOCABULARY = SPECIAL + ["\u2581" + word for word in WORDS] + [chr(c) for c in range(ord("a"), ord("z") + 1)] + [
    "\u2581" + chr(c) for c in range(ord("a"), ord("z") + 1)]
CONTROL, NORMAL = 3, 1


def words_of_keys():
    """The keys of that vocabulary in a file."""
    return [("tokenizer.ggml.model", gf.TEXT, "bert"), ("tokenizer.ggml.tokens", (gf.ARRAY, gf.TEXT), VOCABULARY),
            ("tokenizer.ggml.token_type", (gf.ARRAY, gf.I32), [CONTROL if word in SPECIAL else NORMAL for word in VOCABULARY])]


def write_encoder(path, pooling=1, positions=64, width=64, layers=2, labels=0):
    """A BERT of random weights; with |labels| one that judges texts."""
    rng = np.random.default_rng(5)
    normal = lambda *shape, deviation=1.0, mean=0.0: rng.normal(mean, deviation, shape).astype(np.float32)
    tensors = {"token_embd.weight": normal(len(VOCABULARY), width), "position_embd.weight": normal(positions, width, deviation=0.5),
               "token_types.weight": normal(2, width, deviation=0.5)}

    def norm(name):
        tensors[name + ".weight"], tensors[name + ".bias"] = normal(width, mean=1, deviation=0.2), normal(width, deviation=0.3)

    norm("token_embd_norm")
    for i in range(layers):
        for name, rows, columns in (("attn_q", width, width), ("attn_k", width, width), ("attn_v", width, width), ("attn_output", width, width),
                                    ("ffn_up", 2 * width, width), ("ffn_down", width, 2 * width)):
            tensors[f"blk.{i}.{name}.weight"] = normal(rows, columns, deviation=1.2 * columns ** -0.5)
            tensors[f"blk.{i}.{name}.bias"] = normal(rows, deviation=0.3)
        norm(f"blk.{i}.attn_output_norm")
        norm(f"blk.{i}.layer_output_norm")
    for name, rows in (("cls", width), ("cls.output", labels)) if labels else ():
        tensors[name + ".weight"], tensors[name + ".bias"] = normal(rows, width, deviation=width ** -0.5), normal(rows)
    keys = {"block_count": layers, "context_length": positions, "embedding_length": width, "feed_forward_length": 2 * width,
            "attention.head_count": 4, "attention.layer_norm_epsilon": 1e-12, "attention.causal": False, "pooling_type": pooling}
    gf.write(path, [("general.architecture", gf.TEXT, "bert"), *[(f"bert.{key}", *gf.typed(value)) for key, value in keys.items()], *words_of_keys()],
             [(name, gf.TENSOR_F32, array) for name, array in tensors.items()])
    return path


def write_decoder(path, pooling=3):
    """The demo model, whose last token's state is a vector too."""
    file = gf.Reader(DEMO_MODEL)
    keys = [(key, *gf.typed(value)) for key, value in file.keys.items() if key != "general.file_type"]
    gf.write(path, [*keys, ("llama.pooling_type", gf.U32, pooling)], [(name, gf.TENSOR_F32, array) for name, array in file.tensors.items()])
    return path
