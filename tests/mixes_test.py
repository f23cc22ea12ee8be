"""rdna quantize's mixes: the type of each matrix is the one that llama.cpp's quantizer chooses.

What it chooses is recorded from llama-quantize --dry-run (April 2026): of each mix the matrices that are not of its own
type, with their layers."""
import re
import unittest

import numpy as np

import rdna_program  # first: it makes tools/ importable

import gguf_file as gf
from convert_test import InFolder
from rdna_program import output

# layers, heads, of keys, experts, tied
MODELS = {"shared": (16, 8, 2, 0, False), "plain": (20, 4, 4, 0, True), "eight": (16, 8, 2, 8, False),
          "four": (17, 4, 2, 4, False), "seventy": (80, 8, 2, 0, False)}
TYPES = {"Q2_K_S": "q2_K", "Q3_K_S": "q3_K", "Q3_K_M": "q3_K", "Q3_K_L": "q3_K", "Q4_K_S": "q4_K", "Q4_K_M": "q4_K",
         "Q5_K_S": "q5_K", "Q5_K_M": "q5_K", "IQ2_M": "iq2_s", "IQ3_XS": "iq3_s", "IQ3_M": "iq3_s", "MXFP4_MOE": "q8_0"}
# enum llama_ftype in llama.h
FILE_TYPES = dict(zip(TYPES, (21, 11, 12, 13, 14, 15, 16, 17, 29, 22, 27, 38)))
OTHERS = {
    "shared": {
        "Q2_K_S": "attn_v q4_K 0-15; ffn_down q4_K 0-1; output q6_K",
        "Q3_K_S": "output q6_K",
        "Q3_K_M": "attn_output q4_K 0-15; attn_v q4_K 2-15; attn_v q5_K 0-1; ffn_down q4_K 1-15; ffn_down q5_K 0; output q6_K",
        "Q3_K_L": "attn_output q5_K 0-15; attn_v q5_K 0-15; ffn_down q5_K 0-15; output q6_K",
        "Q4_K_S": "attn_v q5_K 0-3; ffn_down q5_K 0-1; output q6_K",
        "Q4_K_M": "attn_v q6_K 0-1,4,7,10,13-15; ffn_down q6_K 0-1,4,7,10,13-15; output q6_K",
        "Q5_K_S": "output q6_K",
        "Q5_K_M": "attn_v q6_K 0-1,4,7,10,13-15; ffn_down q6_K 0-1,4,7,10,13-15; output q6_K",
        "IQ2_M": "attn_output iq3_s 0-15; attn_v q4_K 0-15; ffn_down iq3_s 0-1; output q5_K; token_embd iq3_s",
        "IQ3_XS": "attn_k iq3_xxs 0-15; attn_q iq3_xxs 0-15; attn_v q4_K 0-15; ffn_gate iq3_xxs 2-13; ffn_up iq3_xxs 2-13; "
                  "output q6_K",
        "IQ3_M": "attn_output q4_K 0-15; attn_v q4_K 0-15; ffn_down q4_K 0-1; output q6_K",
        "MXFP4_MOE": "",
    },
    "plain": {
        "Q2_K_S": "ffn_down q4_K 0-1; token_embd q6_K",
        "Q3_K_S": "token_embd q6_K",
        "Q3_K_M": "attn_output q4_K 0-19; attn_v q4_K 2-19; attn_v q5_K 0-1; ffn_down q4_K 1-19; ffn_down q5_K 0; "
                  "token_embd q6_K",
        "Q3_K_L": "attn_output q5_K 0-19; attn_v q5_K 0-19; ffn_down q5_K 0-19; token_embd q6_K",
        "Q4_K_S": "attn_v q5_K 0-3; ffn_down q5_K 0-1; token_embd q6_K",
        "Q4_K_M": "attn_v q6_K 0-1,4,7,10,13,16-19; ffn_down q6_K 0-1,4,7,10,13,16-19; token_embd q6_K",
        "Q5_K_S": "token_embd q6_K",
        "Q5_K_M": "attn_v q6_K 0-1,4,7,10,13,16-19; ffn_down q6_K 0-1,4,7,10,13,16-19; token_embd q6_K",
        "IQ2_M": "attn_output iq3_s 0-19; attn_v iq3_s 0-19; ffn_down iq3_s 0-1; token_embd q5_K",
        "IQ3_XS": "attn_k iq3_xxs 0-19; attn_q iq3_xxs 0-19; ffn_gate iq3_xxs 2-16; ffn_up iq3_xxs 2-16; token_embd q6_K",
        "IQ3_M": "attn_output q4_K 0-19; attn_v q4_K 0-19; ffn_down q4_K 0-1; token_embd q6_K",
        "MXFP4_MOE": "",
    },
    "eight": {
        "Q2_K_S": "attn_k q8_0 0-15; attn_v q8_0 0-15; ffn_down q4_K 0-1; output q6_K",
        "Q3_K_S": "attn_k q8_0 0-15; attn_output q5_K 0-15; attn_v q8_0 0-15; output q6_K",
        "Q3_K_M": "attn_k q8_0 0-15; attn_output q5_K 0-15; attn_v q8_0 0-15; ffn_down q4_K 1-15; ffn_down q5_K 0; output q6_K",
        "Q3_K_L": "attn_k q8_0 0-15; attn_v q8_0 0-15; ffn_down q5_K 0-15; output q6_K",
        "Q4_K_S": "attn_k q8_0 0-15; attn_output q5_K 0-15; attn_v q8_0 0-15; ffn_down q5_K 0-1; output q6_K",
        "Q4_K_M": "attn_k q8_0 0-15; attn_output q5_K 0-15; attn_v q8_0 0-15; ffn_down q6_K 0-1,4,7,10,13-15; output q6_K",
        "Q5_K_S": "attn_k q8_0 0-15; attn_v q8_0 0-15; output q6_K",
        "Q5_K_M": "attn_k q8_0 0-15; attn_v q8_0 0-15; ffn_down q6_K 0-1,4,7,10,13-15; output q6_K",
        "IQ2_M": "attn_k q4_K 0-15; attn_output q5_K 0-15; attn_v q4_K 0-15; ffn_down iq3_s 0-1; output q5_K; token_embd iq3_s",
        "IQ3_XS": "attn_k q8_0 0-15; attn_output q5_K 0-15; attn_q iq3_xxs 0-15; attn_v q8_0 0-15; ffn_gate iq3_xxs 2-13; "
                  "ffn_up iq3_xxs 2-13; output q6_K",
        "IQ3_M": "attn_k q8_0 0-15; attn_output q5_K 0-15; attn_v q8_0 0-15; ffn_down q4_K 0-1,4,7,10,13-15; output q6_K",
        "MXFP4_MOE": "ffn_down mxfp4 0-15; ffn_gate mxfp4 0-15; ffn_up mxfp4 0-15",
    },
    "four": {
        "Q2_K_S": "ffn_down q4_K 0-1; output q6_K",
        "Q3_K_S": "output q6_K",
        "Q3_K_M": "attn_output q4_K 0-16; attn_v q4_K 2-16; attn_v q5_K 0-1; ffn_down q4_K 1-16; ffn_down q5_K 0; output q6_K",
        "Q3_K_L": "attn_output q5_K 0-16; attn_v q5_K 0-16; ffn_down q5_K 0-16; output q6_K",
        "Q4_K_S": "attn_v q5_K 0-3; ffn_down q5_K 0-1; output q6_K",
        "Q4_K_M": "attn_v q6_K 0-1,4,7,10,13-16; ffn_down q6_K 0-1,4,7,10,13-16; output q6_K",
        "Q5_K_S": "output q6_K",
        "Q5_K_M": "attn_v q6_K 0-1,4,7,10,13-16; ffn_down q6_K 0-1,4,7,10,13-16; output q6_K",
        "IQ2_M": "attn_output iq3_s 0-16; attn_v q4_K 0-16; ffn_down iq3_s 0-1; output q5_K; token_embd iq3_s",
        "IQ3_XS": "attn_k iq3_xxs 0-16; attn_q iq3_xxs 0-16; ffn_gate iq3_xxs 2-13; ffn_up iq3_xxs 2-13; output q6_K",
        "IQ3_M": "attn_output q4_K 0-16; attn_v q4_K 0-16; ffn_down q4_K 0-1; output q6_K",
        "MXFP4_MOE": "ffn_down mxfp4 0-16; ffn_gate mxfp4 0-16; ffn_up mxfp4 0-16",
    },
    "seventy": {
        "Q2_K_S": "attn_v q5_K 0-79; ffn_down q4_K 0-9; output q6_K",
        "Q3_K_S": "attn_v q5_K 0-79; output q6_K",
        "Q3_K_M": "attn_output q4_K 0-79; attn_v q5_K 0-79; ffn_down q4_K 5-79; ffn_down q5_K 0-4; output q6_K",
        "Q3_K_L": "attn_output q5_K 0-79; attn_v q5_K 0-79; ffn_down q5_K 0-79; output q6_K",
        "Q4_K_S": "attn_v q5_K 0-79; ffn_down q5_K 0-9; output q6_K",
        "Q4_K_M": "attn_v q5_K 10-11,13-14,16-17,19-20,22-23,25-26,28-29,31-32,34-35,37-38,40-41,43-44,46-47,49-50,"
                  "52-53,55-56,58-59,61-62,64-65,67-68; "
                  "attn_v q6_K 0-9,12,15,18,21,24,27,30,33,36,39,42,45,48,51,54,57,60,63,66,69-79; "
                  "ffn_down q6_K 0-9,12,15,18,21,24,27,30,33,36,39,42,45,48,51,54,57,60,63,66,69-79; output q6_K",
        "Q5_K_S": "output q6_K",
        "Q5_K_M": "attn_v q6_K 0-9,12,15,18,21,24,27,30,33,36,39,42,45,48,51,54,57,60,63,66,69-79; "
                  "ffn_down q6_K 0-9,12,15,18,21,24,27,30,33,36,39,42,45,48,51,54,57,60,63,66,69-79; output q6_K",
        "IQ2_M": "attn_output iq3_s 0-79; attn_v q4_K 0-79; ffn_down iq3_s 0-9; output q5_K; token_embd iq3_s",
        "IQ3_XS": "attn_k iq3_xxs 0-79; attn_q iq3_xxs 0-79; attn_v q5_K 0-79; ffn_gate iq3_xxs 10-69; "
                  "ffn_up iq3_xxs 10-69; output q6_K",
        "IQ3_M": "attn_output q4_K 0-79; attn_v q5_K 0-79; ffn_down q4_K 0-9; output q6_K",
        "MXFP4_MOE": "",
    },
}


def others(model, mix):
    """The types by tensor of those that differ."""
    found = {}
    for part in filter(None, OTHERS[model][mix].split("; ")):
        name, kind, *layers = part.split(" ")
        if not layers:
            found[f"{name}.weight"] = kind
            continue
        for span in layers[0].split(","):
            first, _, last = span.partition("-")
            for layer in range(int(first), int(last or first) + 1):
                found[f"blk.{layer}.{name}.weight"] = kind
    return found


def write_matrices(path, layers, heads, of_keys, experts, tied):
    """What a mix looks at: keys, and matrices of one row (of each expert)."""
    rng = np.random.default_rng(1)
    matrix, norm = rng.normal(0, 1, (1, 256)).astype(np.float32), np.ones(256)
    names = ["token_embd"] + ["output"] * (not tied)
    names += [f"blk.{layer}.{name}" for layer in range(layers)
              for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")]
    tensors = [("output_norm.weight", gf.TENSOR_F32, norm)]
    for name in names:
        of_experts = experts and ".ffn_" in name
        value = np.broadcast_to(matrix, (experts, 1, 256)) if of_experts else matrix
        tensors.append((f"{name}{'_exps' if of_experts else ''}.weight", gf.TENSOR_F32, value))
    keys = {"general.architecture": "llama", "llama.block_count": layers, "llama.attention.head_count": heads,
            "llama.attention.head_count_kv": of_keys}
    if experts:
        keys["llama.expert_count"] = experts
        tensors += [(f"blk.{layer}.ffn_gate_inp.weight", gf.TENSOR_F32, matrix) for layer in range(layers)]
    gf.write(path, [(key, *gf.typed(value)) for key, value in keys.items()], tensors)


class Mixes(InFolder):
    def test_types(self):
        source, path = self.folder / "f32.gguf", self.folder / "out.gguf"
        for model, shape in MODELS.items():
            write_matrices(source, *shape)
            for mix, plain in TYPES.items():
                with self.subTest(model, mix=mix):
                    output("quantize", source, path, mix.lower() if model == "plain" else mix, "--driver", "host")
                    made, want = gf.Reader(path), others(model, mix)
                    self.assertEqual(made.keys["general.file_type"], FILE_TYPES[mix])
                    for name, kind in made.kinds.items():
                        stays = made.tensors[name].ndim == 1 or name.endswith("ffn_gate_inp.weight")
                        wanted = "f32" if stays else want.pop(name.replace("_exps", ""), plain)
                        self.assertEqual(kind, getattr(gf, "TENSOR_" + wanted.upper()), name)
                    self.assertFalse(want)  # and each of the table's tensors is there

    def test_heads_by_layer(self):
        """A list of the layers' heads of keys counts by its first, and a file without numbers has no shared heads."""
        source, path = self.folder / "f32.gguf", self.folder / "out.gguf"
        matrix = np.ones((1, 256), np.float32)
        for heads, kind in (([2, 8], gf.TENSOR_Q4_K), (None, gf.TENSOR_Q2_K)):
            keys = {"general.architecture": "llama", "llama.block_count": 2, "llama.attention.head_count": 8}
            if heads:
                keys["llama.attention.head_count_kv"] = heads
            gf.write(source, [(key, *gf.typed(value)) for key, value in keys.items()],
                     [("blk.1.attn_v.weight", gf.TENSOR_F32, matrix), ("output.weight", gf.TENSOR_F32, matrix)])
            output("quantize", source, path, "q2_k_s", "--driver", "host")
            self.assertEqual(gf.Reader(path).kinds["blk.1.attn_v.weight"], kind)

    def test_names_of_no_layer(self):
        """What is named for no layer is not among the first ones, and is not counted with them."""
        source, path = self.folder / "f32.gguf", self.folder / "out.gguf"
        matrix = np.ones((1, 256), np.float32)
        none = ("v.blk.0", "mm", "blk.-1", "blk.1x", "blk")
        tensors = [(f"{of}.{name}.weight", gf.TENSOR_F32, matrix) for name in ("attn_v", "ffn_down")
                   for of in (*none, *(f"blk.{layer}" for layer in range(32)))]
        keys = {"general.architecture": "llama", "llama.block_count": 32, "llama.attention.head_count": 8,
                "llama.attention.head_count_kv": 8}
        gf.write(source, [(key, *gf.typed(value)) for key, value in keys.items()],
                 tensors + [("output.weight", gf.TENSOR_F32, matrix)])
        for mix, first, plain in (("q3_k_m", {"attn_v": ("q5_K", 2), "ffn_down": ("q5_K", 2)}, "q4_K"),
                                  ("q4_k_s", {"attn_v": ("q5_K", 4), "ffn_down": ("q5_K", 4)}, "q4_K"),
                                  ("q2_k_s", {"attn_v": ("q2_K", 0), "ffn_down": ("q4_K", 4)}, "q2_K"),
                                  ("q4_k_m", {}, "q4_K")):
            output("quantize", source, path, mix, "--driver", "host")
            kinds = gf.Reader(path).kinds
            for name in ("attn_v", "ffn_down"):
                for of in none:
                    self.assertEqual(kinds[f"{of}.{name}.weight"], getattr(gf, "TENSOR_" + plain.upper()), (mix, of))
                if name in first:
                    kind, count = first[name]
                    for layer in range(8):
                        want = kind if layer < count else plain
                        self.assertEqual(kinds[f"blk.{layer}.{name}.weight"], getattr(gf, "TENSOR_" + want.upper()))
            if mix == "q4_k_m":  # the first and the last eighth, and every third between
                more = {layer for layer in range(32) if layer < 4 or layer >= 28 or (layer - 4) % 3 == 2}
                found = {layer for layer in range(32) if kinds[f"blk.{layer}.attn_v.weight"] == gf.TENSOR_Q6_K}
                self.assertEqual(found, more)

    def test_rows_that_are_no_blocks(self):
        source, path = self.folder / "f32.gguf", self.folder / "out.gguf"
        gf.write(source, [("general.architecture", gf.TEXT, "llama")],
                 [("blk.0.attn_v.weight", gf.TENSOR_F32, np.ones((2, 96))), ("output.weight", gf.TENSOR_F32, np.ones((2, 256)))])
        text = output("quantize", source, path, "q5_k_s", "--driver", "host").decode()
        self.assertEqual(gf.Reader(path).kinds, {"blk.0.attn_v.weight": gf.TENSOR_Q5_1, "output.weight": gf.TENSOR_Q6_K})
        self.assertTrue(re.search("1 tensors have rows that are no whole blocks", text), text)


if __name__ == "__main__":
    unittest.main()
