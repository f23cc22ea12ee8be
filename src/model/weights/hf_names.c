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
    {"intermediate_size", "feed_forward_length", RDNA__HF_U32, true},
    {"num_attention_heads", "attention.head_count", RDNA__HF_U32, true},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", RDNA__HF_F32, true},
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

static const rdna__hf_key_name deepseek_keys[] = {
    {"n_routed_experts", "expert_count", RDNA__HF_U32, true},
    {"num_experts_per_tok", "expert_used_count", RDNA__HF_U32, true},
    {"moe_intermediate_size", "expert_feed_forward_length", RDNA__HF_U32, true},
    {"n_shared_experts", "expert_shared_count", RDNA__HF_U32, false},
    {"routed_scaling_factor", "expert_weights_scale", RDNA__HF_F32, false},
    {"norm_topk_prob", "expert_weights_norm", RDNA__HF_BOOL, false},
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
    {.hf = "|Qwen3ForCausalLM|",
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
    {.hf = "|DeepseekV2ForCausalLM|",
     .gguf = "deepseek2",
     .activation = "silu",
     .latent = true,
     .gating = 1,
     .tensors = {norms_before, latent_attention},
     .dense = feed_forward,
     .sparse = deepseek_experts,
     .keys = {deepseek_keys}},
    {.hf = "|DeepseekV3ForCausalLM|Glm4MoeLiteForCausalLM|",
     .gguf = "deepseek2",
     .activation = "silu",
     .latent = true,
     .gating = 2,
     .tensors = {norms_before, latent_attention},
     .dense = feed_forward,
     .sparse = deepseek_experts,
     .keys = {deepseek_keys}},
    {.hf = "|GptOssForCausalLM|",
     .gguf = "gpt-oss",
     .activation = "silu",
     .window_period = 2,
     .tensors = {gpt_oss_layer, attention},
     .window = true,
     .keys = {expert_keys, gpt_oss_keys}},
};

rdna_status rdna__hf_architecture_find(const char *name, const rdna__hf_architecture **out_architecture) {
  char known[1024] = "";
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
