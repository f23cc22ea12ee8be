"""Models that give vectors of texts: encoders of transformers with small configurations, and how GGUF has them.

Names are the GGUF convention as llama.cpp's converter (github.com/ggml-org/llama.cpp, conversion of BertModel,
NomicBertModel and Gemma3TextModel) writes it.
"""
import re

import numpy as np
import torch

import gguf_file as gf
from architecture_models import Model
from architecture_rows import Gemma3, Qwen3, Row, rope

POOLING = {"none": 0, "mean": 1, "cls": 2, "last": 3, "rank": 4}


class Encoder(Row):
    """A row with a kind of pooling, whose network gives states."""

    pooling = "mean"
    base = dict(pad_token_id=0, type_vocab_size=2, num_key_value_heads=4)
    body = ""  # of the network, where that has a head
    first_id = 0  # ids below mean something else to the network
    deviations = {r"word_embeddings|embed_tokens": 1.0, r"(position|token_type)_embeddings": 0.5}

    def draw(self, name, shape, rng):
        if not re.search(r"[Nn]orm\.weight$", name):
            return None
        return rng.normal(1, 0.2, shape).astype(np.float32).astype(np.float64)

    def keys(self, config):
        return {
            "block_count": config.num_hidden_layers,
            "context_length": config.max_position_embeddings,
            "embedding_length": config.hidden_size,
            "feed_forward_length": config.intermediate_size,
            "attention.head_count": config.num_attention_heads,
            "attention.layer_norm_epsilon": config.layer_norm_eps,
            "attention.causal": False,
            "pooling_type": POOLING[self.pooling],
        }


class Bert(Encoder):
    architecture, model, layers = "bert", "BertModel", "encoder.layer"
    layer_names = {
        "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
        "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
        "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
    }
    global_names = {"embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
                    "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm"}

    def tensors(self, name, array, config):
        stem, end = name.removeprefix("bert.").removeprefix("roberta.").rsplit(".", 1)
        if stem in self.global_names:
            return [(f"{self.global_names[stem]}.{end}", array)]
        if stem.startswith("pooler"):
            return []
        match = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", stem)
        return [(f"blk.{match[1]}.{self.layer_names[match[2]]}.{end}", array)]

    def serves_text(self, name):
        return "pooler" not in name


class Roberta(Bert):
    """Positions begin behind the token for padding, and the file has them from there."""

    model, pooling, first_id = "RobertaModel", "cls", 4
    base = {**Bert.base, "pad_token_id": 1, "type_vocab_size": 1, "max_position_embeddings": 130}

    def tensors(self, name, array, config):
        return super().tensors(name, array[2:] if "position_embeddings" in name else array, config)

    def keys(self, config):
        return {**super().keys(config), "context_length": config.max_position_embeddings - 2}


class Labels:
    """The first token's state becomes labels, by the pooler and a row for each."""

    def tensors(self, name, array, config):
        stem, end = name.rsplit(".", 1)
        if stem in self.judge_names:
            return [(f"{self.judge_names[stem]}.{end}", array)]
        return super().tensors(name, array, config)

    def serves_text(self, name):
        return True


class Judge(Labels, Bert):
    model, pooling, layers = "BertForSequenceClassification", "rank", "bert.encoder.layer"
    base = {**Bert.base, "num_labels": 3}
    judge_names = {"bert.pooler.dense": "cls", "classifier": "cls.output"}


class RobertaJudge(Labels, Roberta):
    model, pooling, layers = "RobertaForSequenceClassification", "rank", "roberta.encoder.layer"
    base = {**Roberta.base, "num_labels": 3}
    judge_names = {"classifier.dense": "cls", "classifier.out_proj": "cls.output"}


class XlmRobertaJudge(RobertaJudge):
    model = "XLMRobertaForSequenceClassification"


class NomicBert(Encoder):
    architecture, model = "nomic-bert", "NomicBertModel"
    base = {**Encoder.base, "rope_parameters": rope(1000.0)}
    layer_names = {
        "self_attn.o_proj": "attn_output", "post_attention_layernorm": "attn_output_norm",
        "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
        "post_mlp_layernorm": "layer_output_norm",
    }

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.parts = {}

    def tensors(self, name, array, config):
        stem, end = name.rsplit(".", 1)
        if stem in Bert.global_names:
            return [(f"{Bert.global_names[stem]}.{end}", array)]
        if stem.startswith("pooler"):
            return []
        match = re.fullmatch(r"layers\.(\d+)\.(.+)", stem)
        if match[2] in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"):
            self.parts[match[1], match[2][10]] = array
            return []
        return [(f"blk.{match[1]}.{self.layer_names[match[2]]}.{end}", array)]

    def extra_tensors(self, config):
        return [(f"blk.{i}.attn_qkv.weight", gf.TENSOR_F32, np.concatenate([self.parts[str(i), c] for c in "qkv"]))
                for i in range(config.num_hidden_layers)]

    def keys(self, config):
        return {**super().keys(config), "rope.freq_base": float(config.rope_parameters["rope_theta"])}

    def serves_text(self, name):
        return "pooler" not in name


class Qwen3Embedding(Qwen3):
    pooling, body, first_id = "last", "model", 0

    def keys(self, config):
        return {**super().keys(config), "pooling_type": POOLING[self.pooling]}

    def serves_text(self, name):
        return name != "lm_head.weight"


class GemmaEmbedding(Gemma3):
    architecture, pooling, body, first_id = "gemma-embedding", "mean", "model", 0

    def keys(self, config):
        keys = {**super().keys(config), "pooling_type": POOLING[self.pooling]}
        # transformers keeps half of the window that its files and GGUF have
        keys["attention.sliding_window"] = (config.sliding_window - 1) * 2
        return keys

    def serves_text(self, name):
        return name != "lm_head.weight"


class States(Model):
    """What a row's network gives of a text."""

    def inner(self, dtype=torch.float64):
        network = self.networks.get((str({}), dtype)) or self.network({}, dtype)
        self.networks[str({}), dtype] = network
        return network.get_submodule(self.row.body) if self.row.body else network

    def states(self, tokens, second=0, dtype=torch.float64):
        """(tokens, width), or of a judge (labels). |second|: where a second text begins."""
        given = {}
        if second:
            given["token_type_ids"] = torch.tensor([[int(i >= second) for i in range(len(tokens))]])
        with torch.no_grad(), self.mode(dtype):
            result = self.inner(dtype)(torch.tensor([tokens]), **given)
        values = result.logits[0] if hasattr(result, "logits") else result.last_hidden_state[0]
        assert values.dtype == dtype
        return values.double().numpy()

    def disturbed(self, tokens, name, rng, second=0):
        """The same with one weight multiplied by random factors about 1."""
        self.inner()
        weight = self.networks[str({}), torch.float64].state_dict()[name]
        weight *= torch.from_numpy(rng.normal(1, 0.5, weight.shape))
        values = self.states(tokens, second)
        weight.copy_(torch.from_numpy(self.weights[name]))
        return values


ROWS = [
    Bert("bert"),
    Bert("bert, a text of one type, wide heads",
         dict(num_hidden_layers=2, num_attention_heads=2, hidden_size=96, type_vocab_size=1)),
    Roberta("roberta"),
    NomicBert("nomic-bert"),
    Qwen3Embedding("qwen3 as an embedding"),
    GemmaEmbedding("gemma-embedding", dict(use_bidirectional_attention=True, sliding_window=8, num_hidden_layers=7)),
]
JUDGES = [Judge("a judge"), RobertaJudge("a judge of roberta's kind"), XlmRobertaJudge("a judge of xlm-roberta's kind")]
