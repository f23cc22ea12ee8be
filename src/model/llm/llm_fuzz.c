/* Models of every architecture with strange numbers in their keys. What a file lacks is said in the sentence with which
 * it is refused, and is added, so that most numbers lead to a model that is whole: it then reads some tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gguf/testing_gguf.h"
#include "rdna/llm_embed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_TENSORS = 160, MOST_VALUES = 1 << 18, LAYERS = 3, CONTEXT = 24, TOKENS = 5, VOCABULARY = 5 };

static const char *const architectures[] = {
    "llama",      "qwen2",      "qwen3",    "phi3",       "gemma2",         "gemma3",   "olmo2",
    "smollm3",    "granite",    "mistral3", "qwen2moe",   "glm4",           "glm4moe",  "dots1",
    "gpt-oss",    "deepseek2",  "gemma4",   "qwen3moe",   "exaone4",        "seed_oss", "qwen3next",
    "qwen35",     "cohere2",    "qwen2vl",  "stablelm",   "starcoder2",     "nemotron", "command-r",
    "minimax-m2", "granitemoe", "bert",     "nomic-bert", "gemma-embedding"};

/* What a small model has, behind the architecture's name; 0: it is left out. */
static const struct {
  const char *name;
  uint32_t usual;
} keys[] = {{"block_count", LAYERS},
            {"context_length", 64},
            {"embedding_length", 16},
            {"feed_forward_length", 12},
            {"attention.head_count", 4},
            {"attention.head_count_kv", 2},
            {"attention.key_length", 0},
            {"attention.value_length", 0},
            {"attention.sliding_window", 0},
            {"attention.sliding_window_pattern", 0},
            {"attention.kv_lora_rank", 8},
            {"attention.q_lora_rank", 0},
            {"attention.key_length_mla", 12},
            {"attention.value_length_mla", 8},
            {"attention.key_length_swa", 0},
            {"attention.shared_kv_layers", 0},
            {"rope.dimension_count", 4},
            {"rope.dimension_count_swa", 0},
            {"rope.scaling.original_context_length", 0},
            {"expert_count", 0},
            {"expert_used_count", 2},
            {"expert_feed_forward_length", 8},
            {"expert_gating_func", 0},
            {"expert_group_count", 0},
            {"expert_group_used_count", 0},
            {"leading_dense_block_count", 0},
            {"nextn_predict_layers", 0},
            {"full_attention_interval", 0},
            {"embedding_length_per_layer_input", 0},
            {"pooling_type", 0},
            {"ssm.conv_kernel", 4},
            {"ssm.state_size", 8},
            {"ssm.group_count", 2},
            {"ssm.time_step_rank", 4},
            {"ssm.inner_size", 32}};
enum { KEYS = sizeof keys / sizeof *keys };

/* Tensors that some models have, of a layer that the input names. */
static const char *const optional[] = {
    "attn_q.bias",       "attn_qkv.weight",          "attn_q_norm.weight", "attn_v.scale",
    "ffn_down.bias",     "exp_probs_b.bias",         "attn_kv_b.weight",   "ffn_up_shexp.weight",
    "attn_norm.bias",    "ffn_gate_up_exps.weight",  "ssm_in.weight",      "ssm_ba.weight",
    "rope_freqs.weight", "layer_output_scale.weight"};

/* The same that are no layer's. */
static const char *const global[] = {"token_types.weight", "cls.weight", "cls.output.weight", "cls.output.bias"};

typedef struct made {
  const uint8_t *input;
  size_t left;
  char architecture[16];
  uint32_t values[KEYS];
  double logit_scale;
  struct {
    char name[96];
    int rank;
    uint64_t dims[4]; /* slowest first */
  } tensors[MOST_TENSORS];
  int count;
} made;

static uint8_t next(made *m) {
  if (m->left == 0) return 0;
  m->left--;
  return *m->input++;
}

/* |usual|, or with a large byte of the input something else. */
static uint32_t number(made *m, uint32_t usual) {
  static const uint32_t strange[] = {0,          1,
                                     2,          3,
                                     4,          5,
                                     7,          8,
                                     12,         16,
                                     24,         31,
                                     32,         33,
                                     64,         255,
                                     256,        257,
                                     1000,       4096,
                                     65535,      (1u << 24) - 1,
                                     1u << 24,   (1u << 24) + 1,
                                     0x7fffffff, 0x80000000,
                                     0xffffffff};
  uint8_t byte = next(m);
  return byte < 200 ? usual : strange[(byte - 200u) % (sizeof strange / sizeof *strange)];
}

static void add_tensor(made *m, const char *name, int rank, const uint64_t *dims) {
  int at = 0;
  while (at < m->count && strcmp(m->tensors[at].name, name) != 0) at++;
  if (at == MOST_TENSORS) return;
  if (at == m->count) m->count++;
  snprintf(m->tensors[at].name, sizeof m->tensors[at].name, "%s", name);
  m->tensors[at].rank = rank;
  memcpy(m->tensors[at].dims, dims, (size_t)rank * sizeof *dims);
}

/* The file in memory; false when its tensors are too large. */
static bool write(const made *m, testing_gguf *g) {
  uint64_t offset = 0, written = 1;
  for (int k = 0; k < KEYS; k++) written += m->values[k] != 0;
  g->size = 0;
  testing_put_header(g, 3, (uint64_t)m->count, written + 1);
  testing_put_key_text(g, "general.architecture", m->architecture);
  char name[96];
  for (int k = 0; k < KEYS; k++) {
    snprintf(name, sizeof name, "%s.%s", m->architecture, keys[k].name);
    if (m->values[k]) testing_put_key_u32(g, name, m->values[k]);
  }
  snprintf(name, sizeof name, "%s.logit_scale", m->architecture);
  testing_put_key(g, name, RDNA_GGUF_TYPE_F64);
  testing_put(g, &m->logit_scale, sizeof m->logit_scale);
  for (int i = 0; i < m->count; i++) {
    uint64_t reversed[4], values = 1;
    for (int d = 0; d < m->tensors[i].rank; d++) {
      reversed[d] = m->tensors[i].dims[m->tensors[i].rank - 1 - d];
      if (reversed[d] > MOST_VALUES || (values *= reversed[d]) > MOST_VALUES) return false;
    }
    testing_put_tensor(g, m->tensors[i].name, (uint32_t)m->tensors[i].rank, reversed, 0, offset);
    offset += (values * sizeof(float) + 31) / 32 * 32;
    if (offset > 4 * MOST_VALUES) return false;
  }
  testing_pad(g, 32);
  for (uint64_t i = 0; i < offset / sizeof(float); i++) {
    float value = 0.02f * (float)(1 + i % 7);
    testing_put(g, &value, sizeof value);
  }
  return true;
}

/* Adds to the file what the sentence |said| asks for, or takes out what it has no use for. False: it says neither. */
static bool mend(made *m, const char *said) {
  char name[96] = "";
  const char *at = strstr(said, "has no tensor ");
  if (at) {
    if (sscanf(at + strlen("has no tensor "), "%*[']%95[^']", name) != 1)
      (void)sscanf(at + strlen("has no tensor "), "%95s", name);
    uint64_t one = 1, table[] = {VOCABULARY, m->values[2]};
    bool of_positions = strcmp(name, "position_embd.weight") == 0;
    bool is_table = of_positions || strcmp(name, "token_embd.weight") == 0;
    if (of_positions) table[0] = m->values[1];
    add_tensor(m, name, is_table ? 2 : 1, is_table ? table : &one);
    return m->count < MOST_TENSORS;
  }
  at = strstr(said, "has no use for, '");
  if (at && sscanf(at + strlen("has no use for, '"), "%95[^']", name) == 1) {
    for (int i = 0; i < m->count; i++)
      if (strcmp(m->tensors[i].name, name) == 0) m->tensors[i] = m->tensors[--m->count];
    return true;
  }
  at = strstr(said, "ask for ");
  const char *tensor = strstr(said, "tensor '");
  if (!at || !tensor || sscanf(tensor, "tensor '%95[^']", name) != 1) return false;
  uint64_t dims[4];
  int rank = 0;
  for (char *end = (char *)at + strlen("ask for "); rank < 4; end += 3) {
    dims[rank++] = strtoull(end, &end, 10);
    if (strncmp(end, " x ", 3) != 0) break;
  }
  for (int i = 0; i < m->count; i++) /* the same again would be asked for ever */
    if (strcmp(m->tensors[i].name, name) == 0 && m->tensors[i].rank == rank &&
        memcmp(m->tensors[i].dims, dims, (size_t)rank * sizeof *dims) == 0)
      return false;
  add_tensor(m, name, rank, dims);
  return true;
}

static void check(rdna_status status) {
  if (status != RDNA_OK && !*rdna_last_error()) abort();
}

/* Two texts, as vectors or as labels. */
static void embed_tokens(rdna_llm *llm) {
  static const int32_t tokens[TOKENS] = {1, 0, 2, 4, 3};
  const rdna_llm_info *info = rdna_llm_get_info(llm);
  const rdna_llm_text texts[] = {{.tokens = tokens, .count = TOKENS, .second = 2}, {.tokens = tokens, .count = 1}};
  const rdna_llm_embedder_options options = {RDNA_LLM_EMBEDDER_OPTIONS_INIT, .context = CONTEXT, .batch = 4,
                                             .kv_dtype = RDNA_F16,
                                             .pooling = info->pooling ? info->pooling : RDNA_LLM_POOLING_MEAN};
  rdna_llm_embedder_info of = {RDNA_LLM_EMBEDDER_INFO_INIT};
  rdna_llm_embedder *embedder;
  rdna_status status = rdna_llm_embedder_create(llm, &options, &embedder);
  check(status);
  if (status != RDNA_OK) return;
  check(rdna_llm_embedder_get_info(embedder, &of));
  float *vectors = malloc((TOKENS + 1) * (size_t)of.values * sizeof *vectors);
  if (vectors && info->vocabulary >= TOKENS) check(rdna_llm_embed(embedder, texts, 2, vectors));
  free(vectors);
  rdna_llm_embedder_release(embedder);
}

static void read_tokens(rdna_llm *llm) {
  const rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = CONTEXT, .kv_dtype = RDNA_F16,
                                            .batch = 4};
  const rdna_llm_info *info = rdna_llm_get_info(llm);
  static const int32_t tokens[TOKENS] = {1, 0, 2, 4, 3};
  rdna_llm_session *session = NULL;
  rdna_status status = rdna_llm_session_create(llm, &options, &session);
  check(status);
  embed_tokens(llm);
  float *logits = malloc((size_t)info->vocabulary * sizeof *logits);
  if (status == RDNA_OK && logits && info->vocabulary >= TOKENS) {
    check(rdna_llm_session_eval(session, tokens, TOKENS, logits));
    check(rdna_llm_session_eval(session, tokens, 1, logits));
  }
  free(logits);
  rdna_llm_session_release(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rdna_device *device;
  if (!device && rdna_device_open("host", &device) != RDNA_OK) abort();
  made *m = calloc(1, sizeof *m);
  if (!m) return 0;
  m->input = data;
  m->left = size;
  snprintf(m->architecture, sizeof m->architecture, "%s",
           architectures[next(m) % (sizeof architectures / sizeof *architectures)]);
  bool mixture = next(m) % 2;
  for (int k = 0; k < KEYS; k++)
    m->values[k] = number(m, strcmp(keys[k].name, "expert_count") == 0 && mixture ? 4 : keys[k].usual);
  m->logit_scale = 0.5 * next(m);
  for (int i = next(m) % 4; i > 0; i--) {
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s", next(m) % LAYERS,
             optional[next(m) % (sizeof optional / sizeof *optional)]);
    add_tensor(m, name, 1, (uint64_t[]){1});
  }
  for (int i = next(m) % 4; i > 0; i--)
    add_tensor(m, global[next(m) % (sizeof global / sizeof *global)], 2, (uint64_t[]){2, m->values[2]});
  testing_gguf g = {0};
  bool again = true;
  for (int i = 0; i < 4 * MOST_TENSORS && again && write(m, &g); i++) {
    rdna_gguf *file = NULL;
    rdna_llm *llm = NULL;
    rdna_status status = rdna_gguf_open_memory(g.data, g.size, &file);
    check(status);
    if (status != RDNA_OK) break;
    status = rdna_llm_open(device, file, NULL, NULL, &llm);
    check(status);
    again = status != RDNA_OK && mend(m, rdna_last_error());
    if (status == RDNA_OK) read_tokens(llm);
    rdna_llm_release(llm);
    rdna_gguf_close(file);
  }
  free(g.data);
  free(m);
  return 0;
}
