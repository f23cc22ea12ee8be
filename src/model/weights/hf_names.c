/* Names of Hugging Face's files (transformers, src/transformers/models) beside GGUF's (github.com/ggml-org/llama.cpp,
 * gguf-py/gguf/constants.py). An architecture is a row at the end; what it has of its own are lists above. */
#include <stdio.h>
#include <string.h>

#include "model/weights/hf.h"

#define END {0}

/* ---- settings ---- */

const rdna__hf_key_name rdna__hf_common_keys[] = {
    {"max_position_embeddings", "context_length", RDNA__HF_U32, true},
    {"hidden_size", "embedding_length", RDNA__HF_U32, true},
    {"num_hidden_layers", "block_count", RDNA__HF_U32, true},
    {"intermediate_size|block_ff_dim", "feed_forward_length", RDNA__HF_U32, true},
    {"num_attention_heads", "attention.head_count", RDNA__HF_U32, true},
    END,
};

static const rdna__hf_key_name softcap_keys[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping", RDNA__HF_F32, false},
    {"final_logit_softcapping", "final_logit_softcapping", RDNA__HF_F32, false},
    END,
};

static const rdna__hf_key_name granite_keys[] = {
    {"attention_multiplier", "attention.scale", RDNA__HF_F32, true},
    {"embedding_multiplier", "embedding_scale", RDNA__HF_F32, true},
    {"residual_multiplier", "residual_scale", RDNA__HF_F32, true},
    {"logits_scaling", "logit_scale", RDNA__HF_F32, true},
    END,
};

static const rdna__hf_key_name expert_keys[] = {
    {"num_experts|num_local_experts", "expert_count", RDNA__HF_U32, true},
    {"num_experts_per_tok", "expert_used_count", RDNA__HF_U32, true},
    {"moe_intermediate_size", "expert_feed_forward_length", RDNA__HF_U32, false},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", RDNA__HF_U32, false},
    {"norm_topk_prob", "expert_weights_norm", RDNA__HF_BOOL, false},
    END,
};

static const rdna__hf_key_name gpt_oss_keys[] = {
    {"intermediate_size", "expert_feed_forward_length", RDNA__HF_U32, true},
    END,
};

static const rdna__hf_key_name granite_shared_keys[] = {
    {"shared_intermediate_size", "expert_shared_feed_forward_length", RDNA__HF_U32, true},
    END,
};

static const rdna__hf_key_name gemma4_keys[] = {
    {"hidden_size_per_layer_input", "embedding_length_per_layer_input", RDNA__HF_U32, false},
    {"num_kv_shared_layers", "attention.shared_kv_layers", RDNA__HF_U32, false},
    {"num_experts", "expert_count", RDNA__HF_U32, false},
    {"top_k_experts", "expert_used_count", RDNA__HF_U32, false},
    {"moe_intermediate_size", "expert_feed_forward_length", RDNA__HF_U32, false},
    END,
};

static const rdna__hf_key_name lfm2_keys[] = {
    {"conv_L_cache", "shortconv.l_cache", RDNA__HF_U32, true},
    END,
};

static const rdna__hf_key_name logit_scale_keys[] = {
    {"logit_scale", "logit_scale", RDNA__HF_F32, true},
    END,
};

static const rdna__hf_key_name routed_keys[] = {
    {"n_routed_experts", "expert_count", RDNA__HF_U32, true},
    {"num_experts_per_tok", "expert_used_count", RDNA__HF_U32, true},
    {"moe_intermediate_size", "expert_feed_forward_length", RDNA__HF_U32, true},
    {"n_shared_experts", "expert_shared_count", RDNA__HF_U32, false},
    {"routed_scaling_factor", "expert_weights_scale", RDNA__HF_F32, false},
    {"norm_topk_prob", "expert_weights_norm", RDNA__HF_BOOL, false},
    END,
};

static const rdna__hf_key_name latent_keys[] = {
    {"kv_lora_rank", "attention.kv_lora_rank", RDNA__HF_U32, true},
    {"q_lora_rank", "attention.q_lora_rank", RDNA__HF_U32, false},
    END,
};

/* ---- tensors of a layer ---- */

static const rdna__hf_tensor_name attention[] = {
    {"self_attn.q_proj", "attn_q", RDNA__HF_QUERY},
    {"self_attn.k_proj", "attn_k", RDNA__HF_KEY},
    {"self_attn.v_proj", "attn_v", RDNA__HF_PLAIN},
    {"self_attn.o_proj", "attn_output", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name head_norms[] = {
    {"self_attn.q_norm", "attn_q_norm", RDNA__HF_NORM},
    {"self_attn.k_norm", "attn_k_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name optional_head_norms[] = {
    {"self_attn.q_norm", "attn_q_norm", RDNA__HF_OPTIONAL},
    {"self_attn.k_norm", "attn_k_norm", RDNA__HF_OPTIONAL},
    END,
};

/* the norm before the feed-forward under its name of gpt-oss and others */
static const rdna__hf_tensor_name norms_by_other_names[] = {
    {"input_layernorm", "attn_norm", RDNA__HF_NORM},
    {"post_attention_layernorm", "post_attention_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name one_norm[] = {
    {"input_layernorm", "attn_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name norms_before_or_one[] = {
    {"input_layernorm", "attn_norm", RDNA__HF_NORM},
    {"post_attention_layernorm", "ffn_norm", RDNA__HF_OPTIONAL}, /* without it blocks stand side by side */
    END,
};

static const rdna__hf_tensor_name norms_before[] = {
    {"input_layernorm", "attn_norm", RDNA__HF_NORM},
    {"post_attention_layernorm", "ffn_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name norms_behind[] = {
    {"post_attention_layernorm", "post_attention_norm", RDNA__HF_NORM},
    {"post_feedforward_layernorm", "post_ffw_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name feed_forward[] = {
    {"mlp.gate_proj", "ffn_gate", RDNA__HF_PLAIN},
    {"mlp.up_proj", "ffn_up", RDNA__HF_PLAIN},
    {"mlp.down_proj", "ffn_down", RDNA__HF_PLAIN},
    END,
};

/* with norms_behind, Gemma's norm before the feed-forward has another name than Llama's */
static const rdna__hf_tensor_name gemma_layer[] = {
    {"input_layernorm", "attn_norm", RDNA__HF_NORM}, {"pre_feedforward_layernorm", "ffn_norm", RDNA__HF_NORM},
    {"mlp.gate_proj", "ffn_gate", RDNA__HF_PLAIN},   {"mlp.up_proj", "ffn_up", RDNA__HF_PLAIN},
    {"mlp.down_proj", "ffn_down", RDNA__HF_PLAIN},   END,
};

/* queries, keys and values in one matrix, and gate above up */
static const rdna__hf_tensor_name phi3_layer[] = {
    {"self_attn.qkv_proj", "attn_qkv", RDNA__HF_PLAIN},
    {"self_attn.o_proj", "attn_output", RDNA__HF_PLAIN},
    {"mlp.gate_up_proj", "ffn_up", RDNA__HF_PLAIN},
    {"mlp.down_proj", "ffn_down", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name shared_expert[] = {
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp", RDNA__HF_PLAIN},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp", RDNA__HF_PLAIN},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp", RDNA__HF_PLAIN},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp", RDNA__HF_ROW},
    END,
};

static const rdna__hf_tensor_name mixtral_experts[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp", RDNA__HF_PLAIN},
    {"block_sparse_moe.experts.%d.w1", "ffn_gate_exps", RDNA__HF_EXPERTS},
    {"block_sparse_moe.experts.%d.w3", "ffn_up_exps", RDNA__HF_EXPERTS},
    {"block_sparse_moe.experts.%d.w2", "ffn_down_exps", RDNA__HF_EXPERTS},
    END,
};

static const rdna__hf_tensor_name granite_experts[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp", RDNA__HF_PLAIN},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", RDNA__HF_FUSED_GATE},
    {"block_sparse_moe.input_linear", "ffn_up_exps", RDNA__HF_FUSED_UP},
    {"block_sparse_moe.output_linear", "ffn_down_exps", RDNA__HF_FUSED},
    END,
};

static const rdna__hf_tensor_name qwen_experts[] = {
    {"mlp.gate", "ffn_gate_inp", RDNA__HF_PLAIN},
    {"mlp.experts.%d.gate_proj", "ffn_gate_exps", RDNA__HF_EXPERTS},
    {"mlp.experts.%d.up_proj", "ffn_up_exps", RDNA__HF_EXPERTS},
    {"mlp.experts.%d.down_proj", "ffn_down_exps", RDNA__HF_EXPERTS},
    END,
};

static const rdna__hf_tensor_name latent_attention[] = {
    {"self_attn.q_proj", "attn_q", RDNA__HF_OPTIONAL}, /* or in two steps */
    {"self_attn.q_a_proj", "attn_q_a", RDNA__HF_OPTIONAL},
    {"self_attn.q_a_layernorm", "attn_q_a_norm", RDNA__HF_OPTIONAL},
    {"self_attn.q_b_proj", "attn_q_b", RDNA__HF_OPTIONAL},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", RDNA__HF_PLAIN},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm", RDNA__HF_NORM},
    {"self_attn.kv_b_proj", "attn_k_b", RDNA__HF_LATENT_KEY},
    {"self_attn.kv_b_proj", "attn_v_b", RDNA__HF_LATENT_VALUE},
    {"self_attn.o_proj", "attn_output", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name deepseek_experts[] = {
    {"mlp.gate", "ffn_gate_inp", RDNA__HF_PLAIN},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias", RDNA__HF_AS_IS},
    {"mlp.experts.%d.gate_proj", "ffn_gate_exps", RDNA__HF_EXPERTS},
    {"mlp.experts.%d.up_proj", "ffn_up_exps", RDNA__HF_EXPERTS},
    {"mlp.experts.%d.down_proj", "ffn_down_exps", RDNA__HF_EXPERTS},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp", RDNA__HF_OPTIONAL},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp", RDNA__HF_OPTIONAL},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp", RDNA__HF_OPTIONAL},
    END,
};

static const rdna__hf_tensor_name granite_shared_expert[] = {
    {"shared_mlp.input_linear", "ffn_gate_shexp", RDNA__HF_HALF_GATE},
    {"shared_mlp.input_linear", "ffn_up_shexp", RDNA__HF_HALF_UP},
    {"shared_mlp.output_linear", "ffn_down_shexp", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name minimax_experts[] = {
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias", RDNA__HF_AS_IS},
    END,
};

static const rdna__hf_tensor_name glm4_layer[] = {
    {"mlp.gate_up_proj", "ffn_up", RDNA__HF_PLAIN},
    {"mlp.down_proj", "ffn_down", RDNA__HF_PLAIN},
    {"post_self_attn_layernorm", "post_attention_norm", RDNA__HF_NORM},
    {"post_mlp_layernorm", "post_ffw_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name starcoder2_layer[] = {
    {"mlp.c_fc", "ffn_up", RDNA__HF_PLAIN},
    {"mlp.c_proj", "ffn_down", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name without_gate[] = {
    {"mlp.up_proj", "ffn_up", RDNA__HF_PLAIN},
    {"mlp.down_proj", "ffn_down", RDNA__HF_PLAIN},
    END,
};

/* layers that read other layers' keys and values have none, and some have keys that are values too */
static const rdna__hf_tensor_name gemma4_layer[] = {
    {"self_attn.q_proj", "attn_q", RDNA__HF_PLAIN},
    {"self_attn.k_proj", "attn_k", RDNA__HF_OPTIONAL},
    {"self_attn.v_proj", "attn_v", RDNA__HF_OPTIONAL},
    {"self_attn.o_proj", "attn_output", RDNA__HF_PLAIN},
    {"per_layer_input_gate", "inp_gate", RDNA__HF_OPTIONAL},
    {"per_layer_projection", "proj", RDNA__HF_OPTIONAL},
    {"post_per_layer_input_norm", "post_norm", RDNA__HF_OPTIONAL},
    {"layer_scalar", "layer_output_scale.weight", RDNA__HF_AS_IS},
    END,
};

static const rdna__hf_tensor_name gemma4_experts[] = {
    {"router.proj", "ffn_gate_inp", RDNA__HF_PLAIN},
    {"router.scale", "ffn_gate_inp.scale", RDNA__HF_AS_IS},
    {"router.per_expert_scale", "ffn_down_exps.scale", RDNA__HF_AS_IS},
    {"experts.gate_up_proj", "ffn_gate_up_exps", RDNA__HF_FUSED},
    {"experts.down_proj", "ffn_down_exps", RDNA__HF_FUSED},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1", RDNA__HF_NORM},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2", RDNA__HF_NORM},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name gemma4_ends[] = {
    {"embed_tokens_per_layer", "per_layer_token_embd", RDNA__HF_OPTIONAL},
    {"per_layer_model_projection", "per_layer_model_proj", RDNA__HF_OPTIONAL},
    {"per_layer_projection_norm", "per_layer_proj_norm", RDNA__HF_OPTIONAL},
    END,
};

static const rdna__hf_tensor_name full_attention[] = {
    {"self_attn.q_proj", "attn_q", RDNA__HF_QUERY},
    {"self_attn.k_proj", "attn_k", RDNA__HF_KEY},
    {"self_attn.v_proj", "attn_v", RDNA__HF_PLAIN},
    {"self_attn.o_proj", "attn_output", RDNA__HF_PLAIN},
    {"self_attn.q_norm", "attn_q_norm", RDNA__HF_NORM},
    {"self_attn.k_norm", "attn_k_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name lfm2_norms[] = {
    {"operator_norm", "attn_norm", RDNA__HF_NORM},
    {"ffn_norm", "ffn_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name lfm2_attention[] = {
    {"self_attn.q_proj", "attn_q", RDNA__HF_QUERY},
    {"self_attn.k_proj", "attn_k", RDNA__HF_KEY},
    {"self_attn.v_proj", "attn_v", RDNA__HF_PLAIN},
    {"self_attn.out_proj", "attn_output", RDNA__HF_PLAIN},
    {"self_attn.q_layernorm", "attn_q_norm", RDNA__HF_NORM},
    {"self_attn.k_layernorm", "attn_k_norm", RDNA__HF_NORM},
    END,
};

static const rdna__hf_tensor_name lfm2_convolution[] = {
    {"conv.in_proj", "shortconv.in_proj", RDNA__HF_PLAIN},
    {"conv.conv", "shortconv.conv", RDNA__HF_CONVOLUTION},
    {"conv.out_proj", "shortconv.out_proj", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name lfm2_feed_forward[] = {
    {"feed_forward.w1", "ffn_gate", RDNA__HF_PLAIN},
    {"feed_forward.w3", "ffn_up", RDNA__HF_PLAIN},
    {"feed_forward.w2", "ffn_down", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name lfm2_experts[] = {
    {"feed_forward.gate", "ffn_gate_inp", RDNA__HF_PLAIN},
    {"feed_forward.expert_bias", "exp_probs_b.bias", RDNA__HF_AS_IS},
    {"feed_forward.experts.%d.w1", "ffn_gate_exps", RDNA__HF_EXPERTS},
    {"feed_forward.experts.%d.w3", "ffn_up_exps", RDNA__HF_EXPERTS},
    {"feed_forward.experts.%d.w2", "ffn_down_exps", RDNA__HF_EXPERTS},
    END,
};

static const rdna__hf_tensor_name qwen3next_recurrent[] = {
    {"linear_attn.in_proj_qkvz", "attn_qkv", RDNA__HF_DELTA_PARTS},
    {"linear_attn.in_proj_qkvz", "attn_gate", RDNA__HF_DELTA_APART},
    {"linear_attn.in_proj_ba", "ssm_ba", RDNA__HF_PLAIN},
    {"linear_attn.conv1d", "ssm_conv1d", RDNA__HF_DELTA_QKV},
    {"linear_attn.dt_bias", "ssm_dt.bias", RDNA__HF_DELTA_HEADS},
    {"linear_attn.A_log", "ssm_a", RDNA__HF_DELTA_RATE},
    {"linear_attn.norm", "ssm_norm", RDNA__HF_PLAIN},
    {"linear_attn.out_proj", "ssm_out", RDNA__HF_DELTA_OUT},
    END,
};

static const rdna__hf_tensor_name qwen35_recurrent[] = {
    {"linear_attn.in_proj_qkv", "attn_qkv", RDNA__HF_DELTA_QKV},
    {"linear_attn.in_proj_z", "attn_gate", RDNA__HF_DELTA_Z},
    {"linear_attn.in_proj_b.weight", "ssm_beta.weight", RDNA__HF_DELTA_HEADS},
    {"linear_attn.in_proj_a.weight", "ssm_alpha.weight", RDNA__HF_DELTA_HEADS},
    {"linear_attn.conv1d", "ssm_conv1d", RDNA__HF_DELTA_QKV},
    {"linear_attn.dt_bias", "ssm_dt.bias", RDNA__HF_DELTA_HEADS},
    {"linear_attn.A_log", "ssm_a", RDNA__HF_DELTA_RATE},
    {"linear_attn.norm", "ssm_norm", RDNA__HF_PLAIN},
    {"linear_attn.out_proj", "ssm_out", RDNA__HF_DELTA_OUT},
    END,
};

static const rdna__hf_tensor_name gpt_oss_layer[] = {
    {"input_layernorm", "attn_norm", RDNA__HF_NORM},
    {"post_attention_layernorm", "post_attention_norm", RDNA__HF_NORM},
    {"self_attn.sinks", "attn_sinks", RDNA__HF_BARE},
    {"mlp.router", "ffn_gate_inp", RDNA__HF_PLAIN},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps", RDNA__HF_EXPERT_GATE},
    {"mlp.experts.gate_up_proj", "ffn_up_exps", RDNA__HF_EXPERT_UP},
    {"mlp.experts.down_proj", "ffn_down_exps", RDNA__HF_EXPERT_DOWN},
    END,
};

/* ---- architectures ---- */

/* ---- encoders ---- */

static const rdna__hf_tensor_name bert_block[] = {
    {"attention.self.query", "attn_q", RDNA__HF_PLAIN},
    {"attention.self.key", "attn_k", RDNA__HF_PLAIN},
    {"attention.self.value", "attn_v", RDNA__HF_PLAIN},
    {"attention.output.dense", "attn_output", RDNA__HF_PLAIN},
    {"attention.output.LayerNorm", "attn_output_norm", RDNA__HF_PLAIN},
    {"intermediate.dense", "ffn_up", RDNA__HF_PLAIN},
    {"output.dense", "ffn_down", RDNA__HF_PLAIN},
    {"output.LayerNorm", "layer_output_norm", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name bert_ends[] = {
    {"embeddings.token_type_embeddings", "token_types", RDNA__HF_OPTIONAL},
    {"embeddings.position_embeddings", "position_embd", RDNA__HF_POSITIONS},
    {"embeddings.LayerNorm", "token_embd_norm", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name bert_labels[] = {
    {"classifier", "cls.output", RDNA__HF_PLAIN},
    {"bert.pooler.dense", "cls", RDNA__HF_PLAIN},
    END,
};

static const rdna__hf_tensor_name roberta_labels[] = {
    {"classifier.out_proj", "cls.output", RDNA__HF_PLAIN},
    {"classifier.dense", "cls", RDNA__HF_PLAIN},
    END,
};

/* Nomic's names, which transformers writes too. */
static const rdna__hf_tensor_name nomic_block[] = {
    {"attn.Wqkv", "attn_qkv", RDNA__HF_PLAIN},      {"attn.out_proj", "attn_output", RDNA__HF_PLAIN},
    {"norm1", "attn_output_norm", RDNA__HF_PLAIN},  {"mlp.fc11", "ffn_up", RDNA__HF_PLAIN},
    {"mlp.fc12", "ffn_gate", RDNA__HF_PLAIN},       {"mlp.fc2", "ffn_down", RDNA__HF_PLAIN},
    {"norm2", "layer_output_norm", RDNA__HF_PLAIN}, END,
};

static const rdna__hf_tensor_name nomic_ends[] = {
    {"embeddings.token_type_embeddings", "token_types", RDNA__HF_OPTIONAL},
    {"emb_ln", "token_embd_norm", RDNA__HF_PLAIN},
    END,
};

/* behind |max_trained_positions| published models stretch RoPE, as GGUF's do not */
static const rdna__hf_setting_name nomic_settings[] = {
    {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_inner", "intermediate_size"},
    {"max_trained_positions", "max_position_embeddings"},
    {"n_positions", "max_position_embeddings"},
    {"layer_norm_epsilon", "layer_norm_eps"},
    {"rotary_emb_base", "rope_theta"},
    {"rotary_emb_fraction", "partial_rotary_factor"},
    END,
};

static const rdna__hf_architecture architectures[] = {
    {.hf = "|LlamaForCausalLM|MistralForCausalLM|",
     .gguf = "llama",
     .activation = "silu",
     .neighbours = true,
     .tensors = {norms_before, attention, feed_forward},
     .window = true},
    {.hf = "|MixtralForCausalLM|",
     .gguf = "llama",
     .activation = "silu",
     .neighbours = true,
     .window = true,
     .tensors = {norms_before, attention, mixtral_experts},
     .keys = {expert_keys}},
    {.hf = "|Ministral3ForCausalLM|",
     .gguf = "mistral3",
     .activation = "silu",
     .neighbours = true,
     .tensors = {norms_before, attention, feed_forward}},
    {.hf = "|Qwen2MoeForCausalLM|",
     .gguf = "qwen2moe",
     .activation = "silu",
     .tensors = {norms_before, attention, qwen_experts, shared_expert},
     .keys = {expert_keys}},
    {.hf = "|Qwen2ForCausalLM|",
     .gguf = "qwen2",
     .activation = "silu",
     .tensors = {norms_before, attention, feed_forward}},
    {.hf = "|Qwen3ForCausalLM|Qwen3Model|",
     .gguf = "qwen3",
     .activation = "silu",
     .tensors = {norms_before, attention, head_norms, feed_forward}},
    {.hf = "|Qwen3MoeForCausalLM|",
     .gguf = "qwen3moe",
     .activation = "silu",
     .tensors = {norms_before, attention, head_norms, qwen_experts},
     .keys = {expert_keys}},
    {.hf = "|Gemma2ForCausalLM|",
     .gguf = "gemma2",
     .activation = "gelu_pytorch_tanh",
     .norms_from_1 = true,
     .window_period = 2,
     .tensors = {gemma_layer, attention, norms_behind},
     .window = true,
     .keys = {softcap_keys}},
    {.hf = "|Gemma3ForCausalLM|Gemma3ForConditionalGeneration|",
     .gguf = "gemma3",
     .activation = "gelu_pytorch_tanh",
     .norms_from_1 = true,
     .window_period = 6,
     .tensors = {gemma_layer, attention, norms_behind, head_norms},
     .window = true,
     .keys = {softcap_keys}},
    {.hf = "|Phi3ForCausalLM|",
     .gguf = "phi3",
     .activation = "silu",
     .tensors = {norms_before, phi3_layer},
     .window = true},
    {.hf = "|Olmo2ForCausalLM|",
     .gguf = "olmo2",
     .activation = "silu",
     .tensors = {attention, head_norms, norms_behind, feed_forward}},
    {.hf = "|Olmo3ForCausalLM|",
     .gguf = "olmo2",
     .activation = "silu",
     .window = true,
     .window_period = 4,
     .window_list = true,
     .tensors = {attention, head_norms, norms_behind, feed_forward}},
    {.hf = "|SmolLM3ForCausalLM|",
     .gguf = "smollm3",
     .activation = "silu",
     .neighbours = true,
     .tensors = {norms_before, attention, feed_forward}},
    {.hf = "|GraniteForCausalLM|",
     .gguf = "granite",
     .activation = "silu",
     .neighbours = true,
     .tensors = {norms_before, attention, feed_forward},
     .keys = {granite_keys}},
    {.hf = "|GraniteMoeForCausalLM|",
     .gguf = "granitemoe",
     .activation = "silu",
     .neighbours = true,
     .tensors = {norms_before, attention, granite_experts},
     .keys = {granite_keys, expert_keys}},
    {.hf = "|GraniteMoeSharedForCausalLM|",
     .gguf = "granitemoe",
     .activation = "silu",
     .neighbours = true,
     .tensors = {norms_before, attention, granite_experts, granite_shared_expert},
     .keys = {granite_keys, expert_keys, granite_shared_keys}},
    {.hf = "|DeepseekV2ForCausalLM|",
     .gguf = "deepseek2",
     .activation = "silu",
     .latent = true,
     .leading_dense = true,
     .gating = 1,
     .tensors = {norms_before, latent_attention},
     .dense = feed_forward,
     .sparse = deepseek_experts,
     .keys = {routed_keys, latent_keys}},
    {.hf = "|DeepseekV3ForCausalLM|Glm4MoeLiteForCausalLM|",
     .gguf = "deepseek2",
     .activation = "silu",
     .latent = true,
     .leading_dense = true,
     .gating = 2,
     .tensors = {norms_before, latent_attention},
     .dense = feed_forward,
     .sparse = deepseek_experts,
     .keys = {routed_keys, latent_keys}},
    {.hf = "|Glm4ForCausalLM|", .gguf = "glm4", .activation = "silu", .tensors = {norms_before, attention, glm4_layer}},
    {.hf = "|Glm4MoeForCausalLM|",
     .gguf = "glm4moe",
     .activation = "silu",
     .leading_dense = true,
     .gating = 2,
     .tensors = {norms_by_other_names, attention, optional_head_norms},
     .dense = feed_forward,
     .sparse = deepseek_experts,
     .keys = {routed_keys}},
    {.hf = "|Dots1ForCausalLM|",
     .gguf = "dots1",
     .activation = "silu",
     .leading_dense = true,
     .gating = 2,
     .tensors = {norms_before, attention, head_norms},
     .dense = feed_forward,
     .sparse = deepseek_experts,
     .keys = {routed_keys}},
    {.hf = "|MiniMaxM2ForCausalLM|",
     .gguf = "minimax-m2",
     .activation = "silu",
     .gating = 2,
     .tensors = {norms_before, attention, head_norms, mixtral_experts, minimax_experts},
     .keys = {expert_keys, gpt_oss_keys}},
    {.hf = "|Ernie4_5ForCausalLM|",
     .gguf = "ernie4_5",
     .activation = "silu",
     .tensors = {norms_before, attention, feed_forward}},
    {.hf = "|Exaone4ForCausalLM|",
     .gguf = "exaone4",
     .activation = "silu",
     .window = true,
     .window_period = 4,
     .window_list = true,
     .tensors = {attention, head_norms, norms_behind, feed_forward}},
    {.hf = "|SeedOssForCausalLM|",
     .gguf = "seed_oss",
     .activation = "silu",
     .tensors = {norms_by_other_names, attention, feed_forward}},
    {.hf = "|Qwen2VLForConditionalGeneration|Qwen2_5_VLForConditionalGeneration|",
     .gguf = "qwen2vl",
     .activation = "silu",
     .tensors = {norms_before, attention, feed_forward}},
    {.hf = "|Qwen3VLForConditionalGeneration|",
     .gguf = "qwen3vl",
     .activation = "silu",
     .tensors = {norms_before, attention, head_norms, feed_forward}},
    {.hf = "|Qwen3VLMoeForConditionalGeneration|",
     .gguf = "qwen3vlmoe",
     .activation = "silu",
     .tensors = {norms_before, attention, head_norms, qwen_experts},
     .keys = {expert_keys}},
    {.hf = "|Qwen3NextForCausalLM|",
     .gguf = "qwen3next",
     .activation = "silu",
     .norms_from_1 = true,
     .tensors = {norms_by_other_names, qwen_experts, shared_expert},
     .delta = true,
     .recurrent = qwen3next_recurrent,
     .full = full_attention,
     .keys = {expert_keys}},
    {.hf = "|Qwen3_5ForCausalLM|Qwen3_5ForConditionalGeneration|",
     .gguf = "qwen35",
     .activation = "silu",
     .norms_from_1 = true,
     .tiled = true,
     .tensors = {norms_by_other_names, feed_forward},
     .delta = true,
     .recurrent = qwen35_recurrent,
     .full = full_attention},
    {.hf = "|Qwen3_5MoeForCausalLM|Qwen3_5MoeForConditionalGeneration|",
     .gguf = "qwen35moe",
     .activation = "silu",
     .norms_from_1 = true,
     .tiled = true,
     .tensors = {norms_by_other_names, qwen_experts, shared_expert},
     .delta = true,
     .recurrent = qwen35_recurrent,
     .full = full_attention,
     .keys = {expert_keys}},
    {.hf = "|Gemma4ForCausalLM|Gemma4ForConditionalGeneration|",
     .gguf = "gemma4",
     .activation = "gelu_pytorch_tanh",
     .window = true,
     .window_period = 6,
     .window_list = true,
     .tensors = {gemma_layer, gemma4_layer, norms_behind, optional_head_norms},
     .sparse = gemma4_experts,
     .ends = gemma4_ends,
     .keys = {softcap_keys, gemma4_keys}},
    {.hf = "|Lfm2ForCausalLM|",
     .gguf = "lfm2",
     .activation = "silu",
     .epsilon = "norm_eps",
     .tensors = {lfm2_norms, lfm2_feed_forward},
     .recurrent = lfm2_convolution,
     .full = lfm2_attention,
     .keys = {lfm2_keys}},
    {.hf = "|Lfm2MoeForCausalLM|",
     .gguf = "lfm2moe",
     .activation = "silu",
     .epsilon = "norm_eps",
     .leading_dense = true,
     .gating = 2,
     .tensors = {lfm2_norms},
     .dense = lfm2_feed_forward,
     .sparse = lfm2_experts,
     .recurrent = lfm2_convolution,
     .full = lfm2_attention,
     .keys = {lfm2_keys, expert_keys}},
    {.hf = "|CohereForCausalLM|",
     .gguf = "command-r",
     .activation = "silu",
     .epsilon = "layer_norm_eps",
     .layer_norm = true,
     .tensors = {one_norm, attention, feed_forward},
     .keys = {logit_scale_keys}},
    {.hf = "|Cohere2ForCausalLM|",
     .gguf = "cohere2",
     .activation = "silu",
     .epsilon = "layer_norm_eps",
     .layer_norm = true,
     .window = true,
     .window_period = 4,
     .tensors = {one_norm, attention, feed_forward},
     .keys = {logit_scale_keys}},
    {.hf = "|StableLmForCausalLM|",
     .gguf = "stablelm",
     .activation = "silu",
     .epsilon = "layer_norm_eps",
     .layer_norm = true,
     .tensors = {norms_before_or_one, attention, feed_forward}},
    {.hf = "|Starcoder2ForCausalLM|",
     .gguf = "starcoder2",
     .activation = "gelu_pytorch_tanh",
     .epsilon = "norm_epsilon",
     .layer_norm = true,
     .window = true,
     .tensors = {norms_before, attention, starcoder2_layer}},
    {.hf = "|NemotronForCausalLM|",
     .gguf = "nemotron",
     .activation = "relu2",
     .epsilon = "norm_eps",
     .layer_norm = true,
     .norms_from_1 = true,
     .tensors = {norms_before, attention, without_gate}},
    {.hf = "|BertModel|BertForSequenceClassification|",
     .gguf = "bert",
     .activation = "gelu",
     .epsilon = "layer_norm_eps",
     .layer_norm = true,
     .encoder = true,
     .embedding = "embeddings.word_embeddings",
     .layer_prefix = "encoder.layer",
     .tensors = {bert_block},
     .ends = bert_ends,
     .labels = bert_labels},
    {.hf = "|RobertaModel|RobertaForSequenceClassification|XLMRobertaModel|XLMRobertaForSequenceClassification|",
     .gguf = "bert",
     .activation = "gelu",
     .epsilon = "layer_norm_eps",
     .layer_norm = true,
     .encoder = true,
     .offset_positions = true,
     .embedding = "embeddings.word_embeddings",
     .layer_prefix = "encoder.layer",
     .tensors = {bert_block},
     .ends = bert_ends,
     .labels = roberta_labels},
    {.hf = "|NomicBertModel|",
     .gguf = "nomic-bert",
     .activation = "silu",
     .epsilon = "layer_norm_eps",
     .layer_norm = true,
     .encoder = true,
     .rotary = true,
     .embedding = "embeddings.word_embeddings",
     .layer_prefix = "encoder.layers",
     .tensors = {nomic_block},
     .ends = nomic_ends,
     .settings = nomic_settings},
    {.hf = "|GptOssForCausalLM|",
     .gguf = "gpt-oss",
     .activation = "silu",
     .window_period = 2,
     .tensors = {gpt_oss_layer, attention},
     .window = true,
     .keys = {expert_keys, gpt_oss_keys}},
};

rdna_status rdna__hf_architecture_find(const char *name, const rdna__hf_architecture **out_architecture) {
  char known[4096] = "";
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
    const rdna__hf_architecture *a = &architectures[i];
    for (const char *at = strstr(a->hf, name); length && !strchr(name, '|') && at; at = strstr(at + 1, name)) {
      if (at[-1] != '|' || at[length] != '|') continue;
      *out_architecture = a;
      return RDNA_OK;
    }
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%.*s", i ? ", " : "", (int)strlen(a->hf) - 2, a->hf + 1);
  }
  for (char *bar; (bar = strchr(known, '|')) != NULL;) *bar = '/';
  return rdna__fail(RDNA_UNSUPPORTED, "models of architecture '%.64s' cannot be converted; known are %s", name, known);
}

static const rdna__hf_tensor_name *find_matrix(const rdna__hf_tensor_name *list, const char *hf) {
  for (const rdna__hf_tensor_name *row = list; row && row->hf; row++) {
    bool whole = row->kind == RDNA__HF_PLAIN || row->kind == RDNA__HF_OPTIONAL || row->kind == RDNA__HF_QUERY ||
                 row->kind == RDNA__HF_KEY || row->kind == RDNA__HF_ROW;
    if (whole && strcmp(row->hf, hf) == 0) return row;
  }
  return NULL;
}

const char *rdna__hf_matrix_name(const char *gguf, const char *hf, bool *out_reordered) {
  for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
    const rdna__hf_architecture *a = &architectures[i];
    const rdna__hf_tensor_name *found = NULL, *others[] = {a->dense, a->sparse, a->recurrent, a->full};
    if (strcmp(a->gguf, gguf) != 0) continue;
    for (int k = 0; k < RDNA__HF_LISTS && !found; k++) found = find_matrix(a->tensors[k], hf);
    for (int k = 0; k < 4 && !found; k++) found = find_matrix(others[k], hf);
    if (!found) continue;
    *out_reordered = a->neighbours && (found->kind == RDNA__HF_QUERY || found->kind == RDNA__HF_KEY);
    return found->gguf;
  }
  return NULL;
}
