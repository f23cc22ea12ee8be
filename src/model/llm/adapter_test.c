/* Adapters against models whose weights are W + scale alpha / rank B A, summed in double: in prompts, in steps that are
 * recorded, and in steps of sequences that have different ones. */
#include "model/llm/adapter.h"
#include "device/driver.h"
#include "model/llm/testing_model.h"

enum {
  VOCABULARY = MADE_VOCABULARY,
  ADAPTERS = 2,
  MATRICES = 12, /* of an adapter, at most */
  MOST_RANK = 5,
  TOKENS = 32,
  CASES = 5,
  LARGEST = MADE_WIDTH > MADE_HIDDEN ? MADE_WIDTH : MADE_HIDDEN
};

typedef float logit_row[VOCABULARY];

/* One of an adapter's matrices, in the place that list_tensors gives its W. */
typedef struct low_rank {
  const char *name;
  int rows, columns;
  float a[MOST_RANK * LARGEST], b[LARGEST * MOST_RANK];
} low_rank;

typedef struct plan {
  int rank, count;
  float alpha; /* 0: the file has none */
  const char *names[MATRICES];
  low_rank matrices[MATRICES];
} plan;

/* The second has matrices that a GPU joins (q, k, v; gate, up) in part. */
static plan plans[ADAPTERS] = {{.rank = 3,
                                .count = 8,
                                .alpha = 6,
                                .names = {"blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v", "blk.0.attn_output",
                                          "blk.0.ffn_gate", "blk.0.ffn_up", "blk.0.ffn_down", "output"}},
                               {.rank = 5, .count = 3, .names = {"blk.1.ffn_up", "blk.1.attn_v", "blk.0.attn_k"}}};

/* What sequences have of each. */
static const float cases[CASES][ADAPTERS] = {{0, 0}, {1, 0}, {0, 1}, {0.5F, -2}, {-1.5F, 0}};

static void draw_plans(void) {
  tensor_row rows[MADE_TENSORS];
  int count = list_tensors(rows);
  rdna__random random;
  rdna__random_seed(&random, 77);
  for (int p = 0; p < ADAPTERS; p++) {
    for (int i = 0; i < plans[p].count; i++) {
      low_rank *m = &plans[p].matrices[i];
      char full[48];
      m->name = plans[p].names[i];
      snprintf(full, sizeof full, "%s.weight", m->name);
      for (int k = 0; k < count; k++)
        if (strcmp(rows[k].name, full) == 0) m->columns = (int)rows[k].dims[0], m->rows = (int)rows[k].dims[1];
      assert_true(m->rows > 0);
      for (int k = 0; k < plans[p].rank * m->columns; k++) m->a[k] = (float)(rdna__random_normal(&random) * 0.15);
      for (int k = 0; k < plans[p].rank * m->rows; k++) m->b[k] = (float)(rdna__random_normal(&random) * 0.15);
    }
  }
}

/* |data|: the scales of a case. */
static void merge(void *data, const tensor_row *row, double *values) {
  const float *scales = data;
  for (int p = 0; p < ADAPTERS; p++) {
    for (int i = 0; i < plans[p].count; i++) {
      const low_rank *m = &plans[p].matrices[i];
      size_t size = strlen(m->name);
      int rank = plans[p].rank;
      double scale = (double)scales[p] * (plans[p].alpha > 0 ? (double)plans[p].alpha / rank : 1);
      if (strncmp(row->name, m->name, size) != 0 || strcmp(row->name + size, ".weight") != 0) continue;
      for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++)
          for (int k = 0; k < rank; k++)
            values[r * m->columns + c] += scale * (double)m->b[r * rank + k] * (double)m->a[k * m->columns + c];
    }
  }
}

/* ---- files ---- */

/* What is wrong in a file. */
typedef struct fault {
  const char *general, *architecture, *type; /* NULL: as they should be */
  const char *name;                          /* in place of the first matrix's */
  int more_rows, more_rank;                  /* of its B, and of its A */
  bool without_b, is_nan, is_alora, is_empty;
} fault;

static rdna_gguf *write_adapter(const plan *p, fault f, testing_gguf *bytes) {
  rdna_gguf *file;
  int tensors = f.is_empty ? 0 : 2 * p->count - f.without_b, keys = 3 + (p->alpha > 0) + f.is_alora;
  uint64_t offset = 0;
  const char *kinds[] = {"lora_a", "lora_b"};
  testing_put_header(bytes, 3, (uint64_t)tensors, (uint64_t)keys);
  testing_put_key_text(bytes, "general.type", f.general ? f.general : "adapter");
  testing_put_key_text(bytes, "general.architecture", f.architecture ? f.architecture : "llama");
  testing_put_key_text(bytes, "adapter.type", f.type ? f.type : "lora");
  if (f.is_alora) testing_put_key_u32(bytes, "adapter.alora.invocation_tokens", 1);
  if (p->alpha > 0) {
    testing_put_key(bytes, "adapter.lora.alpha", RDNA_GGUF_TYPE_F32);
    testing_put(bytes, &p->alpha, sizeof p->alpha);
  }
  for (int i = 0; i < p->count && !f.is_empty; i++) {
    const low_rank *m = &p->matrices[i];
    for (int k = 0; k < 2 - (f.without_b && i == 0); k++) {
      char name[96];
      uint64_t rank = (uint64_t)p->rank;
      uint64_t dims[2] = {k ? rank : (uint64_t)m->columns, k ? (uint64_t)m->rows : rank};
      if (i == 0) dims[1] += (uint64_t)(k ? f.more_rows : f.more_rank);
      snprintf(name, sizeof name, "%s.weight.%s", i == 0 && f.name ? f.name : m->name, kinds[k]);
      testing_put_tensor(bytes, name, 2, dims, 0, offset);
      offset += (dims[0] * dims[1] * sizeof(float) + 31) / 32 * 32;
    }
  }
  testing_pad(bytes, 32);
  for (int i = 0; i < p->count && !f.is_empty; i++) {
    const low_rank *m = &p->matrices[i];
    for (int k = 0; k < 2 - (f.without_b && i == 0); k++) {
      const float *values = k ? m->b : m->a, bad = NAN;
      int columns = k ? p->rank : m->columns, rows = k ? m->rows : p->rank;
      if (i == 0) rows += k ? f.more_rows : f.more_rank;
      testing_put(bytes, values, (size_t)(rows * columns) * sizeof *values);
      if (f.is_nan && i == 0) memcpy(bytes->data + bytes->size - sizeof bad, &bad, sizeof bad);
      testing_pad(bytes, 32);
    }
  }
  assert_ok(rdna_gguf_open_memory(bytes->data, bytes->size, &file));
  return file;
}

static rdna_status read_adapter(rdna_llm *llm, const plan *p, fault f, rdna_llm_adapter **out) {
  testing_gguf bytes = {0};
  rdna_gguf *file = write_adapter(p, f, &bytes);
  rdna_status status = rdna__llm_adapter_read(llm, file, out);
  rdna_gguf_close(file);
  free(bytes.data);
  return status;
}

static rdna_llm_adapter *open_adapter(rdna_llm *llm, int which) {
  rdna_llm_adapter *adapter = NULL;
  assert_ok(read_adapter(llm, &plans[which], (fault){0}, &adapter));
  return adapter;
}

static int uses_of(const float scales[ADAPTERS], rdna_llm_adapter *const *adapters, rdna_llm_adapter_use *uses) {
  int count = 0;
  for (int p = 0; p < ADAPTERS; p++)
    if (scales[p] != 0) uses[count++] = (rdna_llm_adapter_use){adapters[p], scales[p]};
  return count;
}

/* ---- what must come out ---- */

static int32_t tokens[TOKENS];
static logit_row want[CASES][TOKENS];

static rdna_llm_session *open_session(rdna_llm *llm, int batch, int exact) {
  rdna_llm_session *session = NULL;
  const rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = TOKENS, .kv_dtype = RDNA_F32,
                                            .exact = exact, .batch = batch};
  assert_ok(rdna_llm_session_create(llm, &options, &session));
  return session;
}

static int make_wanted(void **state) {
  rdna__random random;
  if (open_device(state) != 0) return -1;
  draw_plans();
  rdna__random_seed(&random, 5);
  for (int i = 0; i < TOKENS; i++) tokens[i] = (int32_t)rdna__random_below(&random, VOCABULARY);
  for (int c = 0; c < CASES; c++) {
    made m = make_changed_model(0, merge, (void *)cases[c]);
    rdna_llm_session *session = open_session(m.llm, 32, 1);
    assert_ok(rdna_llm_session_eval_all(session, tokens, TOKENS, want[c][0]));
    rdna_llm_session_release(session);
    free_model(&m);
    for (int k = 0; k < c; k++) assert_true(fabs((double)(want[c][9][3] - want[k][9][3])) > 1e-3);
  }
  return 0;
}

/* Sums of two products round otherwise than those of one matrix. */
static void check_rows_within(double tolerance, const float *got, int which, int first, int count, const char *what) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < VOCABULARY; k++)
      if (!(fabs((double)got[i * VOCABULARY + k] - (double)want[which][first + i][k]) < tolerance))
        fail_msg("%s, case %d: row %d, logit %d: got %g, want %g", what, which, first + i, k,
                 (double)got[i * VOCABULARY + k], (double)want[which][first + i][k]);
}

static void check_rows(const float *got, int which, int first, int count, const char *what) {
  check_rows_within(1e-4, got, which, first, count, what);
}

/* Prompts in two passes, and steps of one token, which are recorded at the second. */
static void check_sessions(rdna_llm *llm, rdna_llm_adapter *const *adapters, int exact, const char *what) {
  static logit_row got[TOKENS];
  rdna_llm_session *session = open_session(llm, 16, exact);
  for (int c = 0; c < CASES; c++) {
    rdna_llm_adapter_use uses[ADAPTERS];
    assert_ok(rdna_llm_session_rewind(session, 0));
    assert_ok(rdna_llm_session_adapt(session, uses, uses_of(cases[c], adapters, uses)));
    int half = TOKENS / 2 + 3;
    assert_ok(rdna_llm_session_eval_all(session, tokens, half, got[0]));
    for (int i = half; i < TOKENS; i++) assert_ok(rdna_llm_session_eval(session, tokens + i, 1, got[i]));
    check_rows_within(exact ? 1e-4 : 3e-2, got[0], c, 0, TOKENS, what);
  }
  rdna_llm_session_release(session);
}

static void test_sessions(void **state) {
  made m = make_model(0);
  rdna_llm_adapter *adapters[] = {open_adapter(m.llm, 0), open_adapter(m.llm, 1)};
  rdna_llm_adapter_info info = {RDNA_LLM_ADAPTER_INFO_INIT};
  assert_ok(rdna_llm_adapter_get_info(adapters[0], &info));
  assert_true(info.matrices == 8 && info.rank == 3 && info.bytes == info.parameters * sizeof(float));
  check_sessions(m.llm, adapters, 1, "a session");
  check_sessions(m.llm, adapters, 0, "a session in 16 bits");
  for (int p = 0; p < ADAPTERS; p++) rdna_llm_adapter_release(adapters[p]);
  free_model(&m);
}

/* The host has the first layer. */
static void test_split_models(void **state) {
  made m = make_model(0);
  rdna_llm *split = NULL;
  const rdna_llm_open_options options = {RDNA_LLM_OPEN_OPTIONS_INIT, .host_layers = 1};
  assert_ok(rdna_llm_open_with(device, m.file, &options, &split));
  rdna_llm_adapter *adapters[] = {open_adapter(split, 0), open_adapter(split, 1)};
  rdna_llm_adapter_info info = {RDNA_LLM_ADAPTER_INFO_INIT};
  assert_ok(rdna_llm_adapter_get_info(adapters[1], &info));
  assert_int_equal(info.matrices, 3);
  check_sessions(split, adapters, 1, "a split model");
  for (int p = 0; p < ADAPTERS; p++) rdna_llm_adapter_release(adapters[p]);
  rdna_llm_release(split);
  free_model(&m);
}

/* Sequences of all cases in one cache, some of their tokens in each step, and forks of them. */
static void check_steps(rdna_llm *llm, rdna_llm_adapter *const *adapters, int lanes) {
  enum { PIECE = 11 };
  static const int sizes[] = {1, 1, 3, PIECE};
  const rdna_llm_cache_options options = {RDNA_LLM_CACHE_OPTIONS_INIT,
                                          .positions = (CASES + 1) * TOKENS,
                                          .context = TOKENS,
                                          .sequences = CASES + 1,
                                          .batch = 64,
                                          .logits = 64,
                                          .page = 8,
                                          .kv_dtype = RDNA_F32,
                                          .exact = 1,
                                          .lanes = lanes};
  rdna_llm_cache *cache;
  rdna_llm_sequence *sequences[CASES], *fork;
  const float *logits;
  assert_ok(rdna_llm_cache_create(llm, &options, &cache));
  for (int c = 0; c < CASES; c++) {
    rdna_llm_adapter_use uses[ADAPTERS];
    assert_ok(rdna_llm_sequence_create(cache, &sequences[c]));
    assert_ok(rdna_llm_sequence_adapt(sequences[c], uses, uses_of(cases[c], adapters, uses)));
  }
  for (int step = 0, left = CASES; left > 0; step++) {
    rdna_llm_part parts[CASES];
    int who[CASES], count = 0;
    for (int c = 0; c < CASES; c++) {
      int at = rdna_llm_sequence_position(sequences[c]), size = sizes[(step + c) % 4];
      if (at == TOKENS || (step + 2 * c) % 7 == 0) continue;
      if (size > TOKENS - at) size = TOKENS - at;
      if (step % 8 > 3) size = 1; /* steps of single tokens, which are recorded */
      who[count] = c;
      parts[count++] = part_of(sequences[c], tokens + at, size, size > 1 ? size - 1 : 1);
    }
    if (count == 0) continue;
    assert_ok(rdna_llm_step(cache, parts, count, &logits));
    for (int i = 0; i < count; logits += parts[i++].logits * VOCABULARY) {
      int at = rdna_llm_sequence_position(parts[i].sequence);
      check_rows(logits, who[i], at - parts[i].logits, parts[i].logits, lanes ? "lanes" : "a step");
      left -= at == TOKENS;
    }
  }
  assert_ok(rdna_llm_sequence_fork(sequences[3], TOKENS - 4, &fork));
  rdna_llm_part part = part_of(fork, tokens + TOKENS - 4, 4, 4);
  assert_ok(rdna_llm_step(cache, &part, 1, &logits));
  check_rows(logits, 3, TOKENS - 4, 4, "a fork");
  rdna_llm_sequence_release(fork);
  for (int c = 0; c < CASES; c++) rdna_llm_sequence_release(sequences[c]);
  rdna_llm_cache_release(cache);
}

static void test_sequences_with_different_adapters(void **state) {
  made m = make_model(0);
  rdna_llm_adapter *adapters[] = {open_adapter(m.llm, 0), open_adapter(m.llm, 1)};
  check_steps(m.llm, adapters, 0);
  check_steps(m.llm, adapters, 8);
  for (int p = 0; p < ADAPTERS; p++) rdna_llm_adapter_release(adapters[p]);
  free_model(&m);
}

/* ---- what is refused ---- */

static void test_wrong_files(void **state) {
  static const struct {
    fault fault;
    rdna_status status;
    const char *mentions;
  } rows[] = {{{.general = "model"}, RDNA_UNSUPPORTED, "it is no adapter"},
              {{.type = "control"}, RDNA_UNSUPPORTED, "low-rank"},
              {{.architecture = "qwen2"}, RDNA_UNSUPPORTED, "another architecture"},
              {{.is_alora = true}, RDNA_UNSUPPORTED, "aLoRA"},
              {{.is_empty = true}, RDNA_BAD_DATA, "no tensors"},
              {{.name = "blk.7.attn_q"}, RDNA_UNSUPPORTED, "blk.7.attn_q"},
              {{.name = "blk.0.ffn_gate_exps"}, RDNA_UNSUPPORTED, "experts"},
              {{.name = "token_embd"}, RDNA_UNSUPPORTED, "embedding"},
              {{.name = "blk.0.attn_norm"}, RDNA_UNSUPPORTED, "no matrix"},
              {{.name = "blk.1.ffn_down"}, RDNA_BAD_DATA, "ask for"},
              {{.more_rows = 1}, RDNA_BAD_DATA, "ask for"},
              {{.more_rank = 1}, RDNA_BAD_DATA, "ask for"},
              {{.without_b = true}, RDNA_BAD_DATA, "without"},
              {{.is_nan = true}, RDNA_BAD_DATA, "no numbers"}};
  made m = make_model(0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rdna_llm_adapter *adapter = NULL;
    assert_refused(read_adapter(m.llm, &plans[0], rows[i].fault, &adapter), rows[i].status, rows[i].mentions);
    assert_null(adapter);
  }
  rdna_llm_adapter *adapter = NULL;
  assert_refused(rdna_llm_adapter_open(m.llm, "/nowhere", &adapter), RDNA_NOT_FOUND, "/nowhere");
  assert_refused(rdna_llm_adapter_open(NULL, "/nowhere", &adapter), RDNA_INVALID_ARGUMENT, "rdna_llm_adapter_open");
  free_model(&m);
}

static void test_wrong_uses(void **state) {
  made m = make_model(0), other = make_model(0);
  rdna_llm_adapter *adapter = open_adapter(m.llm, 0), *of_other = open_adapter(other.llm, 0);
  rdna_llm_session *session = open_session(m.llm, 16, 1);
  static logit_row logits;
  rdna_llm_adapter_use use = {adapter, 1}, twice[] = {use, use}, wrong = {of_other, 1}, bad = {adapter, NAN};
  const rdna_status invalid = RDNA_INVALID_ARGUMENT;
  assert_refused(rdna_llm_session_adapt(session, twice, 2), invalid, "the same");
  assert_refused(rdna_llm_session_adapt(session, &wrong, 1), invalid, "another model's");
  assert_refused(rdna_llm_session_adapt(session, &bad, 1), invalid, "no number");
  assert_refused(rdna_llm_session_adapt(NULL, &use, 1), invalid, "rdna_llm_session_adapt");
  assert_refused(rdna_llm_sequence_adapt(NULL, &use, 1), invalid, "rdna_llm_sequence_adapt");
  assert_ok(rdna_llm_session_eval(session, tokens, 2, logits));
  check_rows(logits, 0, 1, 1, "what was refused changes nothing");
  assert_refused(rdna_llm_session_adapt(session, &use, 1), invalid, "tokens already");
  assert_ok(rdna_llm_session_rewind(session, 0));
  for (int i = 0; i < RDNA_LLM_MOST_ADAPTERS; i++) {
    rdna_llm_adapter *one = open_adapter(m.llm, 0);
    rdna_llm_adapter_use of_one = {one, 1};
    assert_ok(rdna_llm_session_adapt(session, &of_one, 1));
    rdna_llm_adapter_release(one); /* the session has it */
  }
  assert_refused(rdna_llm_session_adapt(session, &use, 1), invalid, "more than 32");
  rdna_llm_session_release(session);
  rdna_llm_adapter_release(adapter);
  rdna_llm_adapter_release(of_other);
  free_model(&other);
  free_model(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sessions), cmocka_unit_test(test_split_models),
                                     cmocka_unit_test(test_sequences_with_different_adapters),
                                     cmocka_unit_test(test_wrong_files), cmocka_unit_test(test_wrong_uses)};
  return cmocka_run_group_tests(tests, make_wanted, close_device);
}
