"""Tiny models of 55 of transformers' architectures with random weights: what each gives and all its gradients, beside float64.

They are too many for every run: $(packaging/torch-libraries-venv.sh) -m pytest bindings/torch/tests/architectures.py, each
night. A size is set by its name where the configuration has such a field; what a kind of model needs besides is in its row."""

import collections
import copy
import inspect

import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

ABSENT = object()  # leaves a field as it is
SIZES = {
    **dict.fromkeys(("hidden_size", "d_model", "dim", "embed_dim", "n_embd"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers", "num_experts_per_tok"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads", "num_heads"), 4),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "ffn_dim"), 48),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions"), 64),
    **dict.fromkeys(("head_dim", "d_kv", "patch_size"), 8),
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "activation_dropout", "layerdrop",
                     "decoder_layerdrop", "encoder_layerdrop", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
    "moe_intermediate_size": 24, "num_key_value_heads": 2, "vocab_size": 99, "image_size": 32,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}
SOUND = {"conv_dim": [16, 16], "conv_stride": [4, 2], "conv_kernel": [8, 4], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
         "num_conv_pos_embedding_groups": 2, "mask_time_prob": 0.0}
PYRAMID = {"depths": [1, 1], "hidden_sizes": [16, 32], "num_encoder_blocks": 2, "sr_ratios": [2, 1], "patch_sizes": [7, 3], "strides": [4, 2],
           "num_attention_heads": [1, 2], "mlp_ratios": [2, 2]}
SERIES = {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2], "num_time_features": 1}


def ids(length=16):
    return torch.randint(3, 99, (2, length))


def text(length=16):
    return lambda: {"input_ids": ids(length), "labels": ids(length)}


def picture(size=32, **more):
    return lambda: {"pixel_values": torch.randn(2, 3, size, size), **{name: made() for name, made in more.items()}}


def film():
    return {"pixel_values": torch.randn(2, 4, 3, 32, 32)}


def sound(*shape):
    return lambda: {"input_values": torch.randn(2, *shape)}


def series():
    return {"past_values": torch.randn(2, 18), "past_time_features": torch.randn(2, 18, 1), "past_observed_mask": torch.ones(2, 18),
            "future_values": torch.randn(2, 8), "future_time_features": torch.randn(2, 8, 1)}


def classes():
    return torch.tensor([0, 1])


# the model, what its configuration needs, what it is given
ROWS = [
    ("MambaForCausalLM", {"state_size": 8}, text()),
    ("Mamba2ForCausalLM", {"num_heads": 8, "state_size": 8, "expand": 2, "n_groups": 2, "chunk_size": 8}, text()),
    ("Qwen3NextForCausalLM", {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
                              "shared_expert_intermediate_size": 24, "num_hidden_layers": 4}, text()),
    ("DeepseekV3ForCausalLM", {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_group": 2,
                               "topk_group": 1, "first_k_dense_replace": 1, "head_dim": ABSENT, "num_key_value_heads": 4}, text()),
    ("GptOssForCausalLM", {}, text()),
    ("OlmoeForCausalLM", {}, text()),
    ("GraniteMoeHybridForCausalLM", {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 8,
                                     "shared_intermediate_size": 24, "layer_types": ["mamba", "attention"]}, text()),
    ("RecurrentGemmaForCausalLM", {"lru_width": 32, "num_hidden_layers": 3, "attention_window_size": 8}, text()),
    ("LongformerForMaskedLM", {"attention_window": 8}, text()),
    ("BigBirdForMaskedLM", {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 128}, text(96)),
    ("FNetForMaskedLM", {}, text()),
    ("NystromformerForMaskedLM", {"segment_means_seq_len": 16, "num_landmarks": 4}, text()),
    ("YosoForMaskedLM", {"use_expectation": True}, text()),
    ("MraForMaskedLM", {"block_per_row": 1}, text(64)),
    ("FunnelForMaskedLM", {"block_sizes": [1, 1], "num_decoder_layers": 1, "d_head": 8, "d_inner": 48, "num_hidden_layers": ABSENT}, text()),
    ("XLNetLMHeadModel", {"d_inner": 48, "max_position_embeddings": ABSENT}, text()),
    ("SqueezeBertForMaskedLM", {"embedding_size": 32}, text()),
    ("EsmForMaskedLM", {"mask_token_id": 3, "position_embedding_type": "rotary"}, text()),
    ("DebertaV2ForMaskedLM", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}, text()),
    ("ModernBertForMaskedLM", {"local_attention": 8, "global_attn_every_n_layers": 2}, text()),
    ("UMT5ForConditionalGeneration", {"decoder_start_token_id": 0, "dropout_rate": 0.0}, text()),
    ("LEDForConditionalGeneration", {"attention_window": [4, 4], "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64,
                                     "decoder_start_token_id": 1}, text()),
    ("ProphetNetForConditionalGeneration", {"num_encoder_layers": 2, "num_decoder_layers": 2, "num_encoder_attention_heads": 4, "num_buckets": 8,
                                            "num_decoder_attention_heads": 4, "num_hidden_layers": ABSENT, "relative_max_distance": 16,
                                            "decoder_start_token_id": 1}, text()),
    ("PerceiverForMaskedLM", {"num_latents": 8, "d_latents": 32, "num_self_attends_per_block": 2, "num_self_attention_heads": 4,
                              "num_cross_attention_heads": 4, "qk_channels": 32, "v_channels": 32},
     lambda: {"inputs": ids(64), "attention_mask": torch.ones(2, 64), "labels": ids(64)}),
    ("CLIPVisionModel", {}, picture()),
    ("SiglipVisionModel", {}, picture()),
    ("Dinov2Model", {}, picture()),
    ("SamVisionModel", {"output_channels": 16, "num_pos_feats": 8, "global_attn_indexes": [1], "window_size": 2, "mlp_dim": 48}, picture()),
    ("BeitForImageClassification", {"use_relative_position_bias": True, "out_indices": [1]}, picture(labels=classes)),
    ("Swinv2ForImageClassification", {"depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "patch_size": 4, "num_hidden_layers": ABSENT,
                                      "num_attention_heads": ABSENT}, picture(labels=classes)),
    ("SegformerForSemanticSegmentation", {**PYRAMID, "decoder_hidden_size": 16}, picture(labels=lambda: torch.randint(2, (2, 32, 32)))),
    ("GLPNForDepthEstimation", {**PYRAMID, "decoder_hidden_size": 16}, picture(64, labels=lambda: torch.rand(2, 64, 64))),
    ("PvtV2Model", PYRAMID, picture()),
    ("ViTMAEModel", {"decoder_hidden_size": 16, "mask_ratio": 0.5}, picture(noise=lambda: torch.rand(2, 16))),
    ("VitDetModel", {"window_block_indices": [0], "window_size": 2, "use_relative_position_embeddings": True, "out_indices": [2]}, picture()),
    ("HieraModel", {"embed_dim": 16, "depths": [1, 1], "num_heads": [1, 2], "patch_size": [7, 7], "patch_stride": [4, 4], "patch_padding": [3, 3],
                    "masked_unit_size": [4, 4], "query_stride": [2, 2], "image_size": [32, 32], "num_query_pool": 1, "num_layers": ABSENT}, picture()),
    ("FocalNetModel", {"embed_dim": 16, "depths": [1, 1], "hidden_sizes": [16, 32], "focal_levels": [2, 2], "focal_windows": [3, 3],
                       "patch_size": 4}, picture()),
    ("LevitModel", {"image_size": 64, "hidden_sizes": [16, 32, 32], "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1], "key_dim": [8, 8, 8],
                    "patch_size": 16, "mlp_ratio": [2, 2, 2], "attention_ratio": [2, 2, 2]}, picture(64)),
    ("PoolFormerModel", {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 16, 32], "num_encoder_blocks": 4, "patch_size": 16}, picture(64)),
    ("BitModel", {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16, "num_groups": 4}, picture(64)),
    ("VideoMAEModel", {"num_frames": 4, "tubelet_size": 2}, film),
    ("TimesformerModel", {"num_frames": 4}, film),
    ("WhisperForConditionalGeneration", {"num_mel_bins": 16, "decoder_start_token_id": 1},
     lambda: {"input_features": torch.randn(2, 16, 128), "decoder_input_ids": ids(), "labels": ids()}),
    ("ClapAudioModel", {"spec_size": 64, "num_mel_bins": 16, "depths": [1, 1], "num_attention_heads": [2, 4], "patch_embeds_hidden_size": 16,
                        "patch_size": 4, "enable_fusion": False, "window_size": 4, "patch_stride": [4, 4]},
     lambda: {"input_features": torch.randn(2, 1, 64, 16)}),
    ("HubertModel", {**SOUND, "feat_extract_norm": "layer"}, sound(400)),
    ("Wav2Vec2ConformerModel", {**SOUND, "conv_depthwise_kernel_size": 5, "position_embeddings_type": "relative"}, sound(400)),
    ("SEWDModel", {**SOUND, "squeeze_factor": 2, "position_buckets": 8, "feat_extract_norm": "layer"}, sound(400)),
    ("EncodecModel", {"num_filters": 4, "hidden_size": 16, "codebook_size": 16, "codebook_dim": 16, "upsampling_ratios": [4, 2],
                      "num_lstm_layers": 1, "target_bandwidths": [12.0], "audio_channels": 1}, sound(1, 320)),
    ("DacModel", {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_hidden_size": 16, "n_codebooks": 2, "codebook_size": 16,
                  "codebook_dim": 4}, sound(1, 320)),
    ("VitsModel", {"flow_size": 16, "spectrogram_bins": 17, "upsample_initial_channel": 16, "upsample_rates": [4, 4], "window_size": 4,
                   "upsample_kernel_sizes": [8, 8], "prior_encoder_num_flows": 1, "duration_predictor_num_flows": 1, "noise_scale": 0.0,
                   "duration_predictor_flow_bins": 4, "use_stochastic_duration_prediction": False, "resblock_kernel_sizes": [3],
                   "resblock_dilation_sizes": [[1, 3]], "wavenet_dilation_rate": 1, "posterior_encoder_num_wavenet_layers": 1,
                   "prior_encoder_num_wavenet_layers": 1, "depth_separable_num_layers": 1}, lambda: {"input_ids": ids(10).clamp(max=30)}),
    ("UnivNetModel", {"model_in_channels": 8, "model_hidden_channels": 8, "num_mel_bins": 16, "resblock_kernel_sizes": [3, 3],
                      "resblock_stride_sizes": [4, 4], "resblock_dilation_sizes": [[1, 3], [1, 3]], "kernel_predictor_hidden_channels": 8},
     lambda: {"input_features": torch.randn(2, 7, 16), "noise_sequence": torch.randn(2, 7, 8)}),
    ("PatchTSTForPrediction", {"context_length": 32, "prediction_length": 8, "num_input_channels": 2, "patch_length": 8, "patch_stride": 8,
                               "random_mask_ratio": 0.0}, lambda: {"past_values": torch.randn(2, 32, 2), "future_values": torch.randn(2, 8, 2)}),
    ("InformerModel", {**SERIES, "sampling_factor": 2}, series),
    ("AutoformerModel", {**SERIES, "moving_average": 5}, series),
    ("DecisionTransformerModel", {"state_dim": 5, "act_dim": 3, "max_ep_len": 50, "n_inner": 48},
     lambda: {"states": torch.randn(2, 6, 5), "actions": torch.randn(2, 6, 3), "rewards": torch.randn(2, 6, 1), "attention_mask": torch.ones(2, 6),
              "returns_to_go": torch.randn(2, 6, 1), "timesteps": torch.arange(6).repeat(2, 1)}),
]


def made(name, given):
    kind = getattr(transformers, name)
    usual = kind.config_class()
    fields = set(inspect.signature(kind.config_class.__init__).parameters)
    sizes = {field: size for field, size in SIZES.items() if field in fields or hasattr(usual, field)}
    return kind(kind.config_class(**{field: size for field, size in {**sizes, **given}.items() if size is not ABSENT})).eval()


def floats(given):
    """All tensors of floats in what a model returned, but its caches."""
    if isinstance(given, torch.Tensor):
        return [given] if given.is_floating_point() else []
    if isinstance(given, dict):
        given = [value for key, value in given.items() if key not in ("past_key_values", "cache_params")]
    return [t for part in given for t in floats(part)] if isinstance(given, (list, tuple)) else []


def computed(model, inputs, device, dtype):
    """What the model gives, and the gradients of the sum of its mean squares, as float64 on the CPU."""
    model = copy.deepcopy(model).to(device, dtype)
    torch.manual_seed(3)
    results = floats(model(**{name: t.to(device, dtype if t.is_floating_point() else None) for name, t in inputs.items()}))
    sum(t.square().mean() for t in results if t.requires_grad).backward()
    slopes = [p.grad for p in model.parameters()]
    return [t.detach().cpu().double() for t in results], [torch.zeros(()) if t is None else t.cpu().double() for t in slopes]


def off(found, right, size=None):
    """The largest difference, relative to the largest value of each tensor or to |size|."""
    assert len(found) == len(right) > 0
    worst = 0.0
    for a, b in zip(found, right):
        assert a.shape == b.shape and torch.equal(a.isnan(), b.isnan())
        if a.numel():
            worst = max(worst, ((a - b).nan_to_num().abs().max() / (size or max(b.nan_to_num().abs().max().item(), 1e-12))).item())
    return worst


@pytest.mark.parametrize("name, given, inputs", ROWS, ids=[name for name, *_ in ROWS])
def test_an_architecture(name, given, inputs):
    torch.manual_seed(0)
    model, x = made(name, given), inputs()
    theirs = computed(model, x, "cpu", torch.float32)
    try:
        right = computed(model, x, "cpu", torch.float64)
    except RuntimeError:  # PyTorch's CPU has no grouped products of f64, and two models make f32 tensors themselves
        right = theirs
    ours = computed(model, x, "rdna", torch.float32)
    assert off(ours[0], right[0]) <= max(1e-5, 4 * off(theirs[0], right[0]))
    slope = max(t.abs().max().item() for t in right[1] if t.numel())
    assert slope > 0 and off(ours[1], right[1], slope) <= max(1e-5, 4 * off(theirs[1], right[1], slope))


class Counted(TorchDispatchMode):
    """How often each operator is called."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.calls[str(function)] += 1
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize("name", ["MixtralForCausalLM", "Qwen3MoeForCausalLM", "OlmoeForCausalLM", "GptOssForCausalLM"])
def test_experts_wait_for_nothing(name):
    """Where the tokens of each expert end is never copied to the host; beside transformers' loop over experts in float64."""
    torch.manual_seed(0)
    model, x = made(name, {}), text()()
    model.set_experts_implementation("eager")
    right = computed(model, x, "cpu", torch.float64)
    model.set_experts_implementation("grouped_mm")
    with Counted() as counted:
        ours = computed(model, x, "rdna", torch.float32)
    slope = max(t.abs().max().item() for t in right[1] if t.numel())
    assert off(ours[0], right[0]) <= 1e-5 and off(ours[1], right[1], slope) <= 1e-5
    assert counted.calls["aten._grouped_mm.default"] >= 6 and not counted.calls["aten._local_scalar_dense.default"]
