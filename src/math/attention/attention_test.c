#include "rdna/op/attention.h"

#include <math.h>

#include "math/common/case/fill.h"
#include "math/common/test/device.h"

/* Runs of neighbouring tokens of one sequence: so many tokens after so much history. */
struct sequence {
  int32_t history, tokens;
};

struct setting {
  rdna_dtype dtype; /* of the caches */
  int32_t heads, kv_heads, d, window;
  float softcap;
  int64_t pad; /* between tokens and slots, values */
  int sequence_count;
  struct sequence sequences[6];
  bool spoiled; /* the first token is padding, the last reaches past the cache */
  bool sinks;
  int32_t dv;  /* of values; 0: d */
  bool latent; /* they are the last of the keys' numbers */
};

static int32_t dv_of(const struct setting *s) { return s->dv ? s->dv : s->d; }

struct data {
  int64_t tokens, slots, q_stride, out_stride, k_stride, v_stride, longest;
  int32_t most_tokens;
  int32_t *base, *position;
  float *q, *out, *sinks;
  void *k, *v;
};

static double cache_get(rdna_dtype dtype, const void *data, int64_t i) {
  if (dtype != RDNA_Q8_0) return (double)case_get(dtype, data, i);
  const uint8_t *block = (const uint8_t *)data + i / 32 * 34;
  uint16_t scale;
  memcpy(&scale, block, sizeof scale);
  return (double)f16_to_f32(scale) * (int8_t)block[2 + i % 32];
}

/* Values of about unit size behind the first |nobodys|, which are NaN. */
static void fill_cache(rdna__random *random, rdna_dtype dtype, void *data, int64_t count, int64_t nobodys) {
  if (dtype != RDNA_Q8_0) {
    case_fill(random, dtype, data, count, 1);
    for (int64_t i = 0; i < nobodys; i++) case_set(dtype, data, i, NAN);
    return;
  }
  for (int64_t i = 0; i < count; i += 32) {
    uint8_t *block = (uint8_t *)data + i / 32 * 34;
    uint16_t scale = i < nobodys ? 0x7e00 : f32_to_f16((float)rdna__random_normal(random) / 74);
    memcpy(block, &scale, sizeof scale);
    for (int k = 0; k < 32; k++) block[2 + k] = (uint8_t)rdna__random_below(random, 256);
  }
}

static void make_data(const struct setting *s, struct data *data) {
  rdna__random random;
  rdna__random_seed(&random, (uint64_t)(s->heads * 1000 + s->d));
  *data = (struct data){.slots = 3};
  for (int i = 0; i < s->sequence_count; i++) data->tokens += s->sequences[i].tokens;
  data->base = malloc((size_t)data->tokens * sizeof(int32_t));
  data->position = malloc((size_t)data->tokens * sizeof(int32_t));
  for (int i = 0, t = 0; i < s->sequence_count; i++) {
    const struct sequence *sequence = &s->sequences[i];
    for (int32_t j = 0; j < sequence->tokens; j++, t++) {
      data->base[t] = (int32_t)data->slots;
      data->position[t] = sequence->history + j;
    }
    data->slots += sequence->history + sequence->tokens;
    if (sequence->history + sequence->tokens > data->longest) data->longest = sequence->history + sequence->tokens;
    if (sequence->tokens > data->most_tokens) data->most_tokens = sequence->tokens;
  }
  if (s->spoiled) {
    data->position[0] = -1;
    data->position[data->tokens - 1] = (int32_t)(data->slots - data->base[data->tokens - 1]);
  }
  data->q_stride = (int64_t)s->heads * s->d + s->pad;
  data->k_stride = (int64_t)s->kv_heads * s->d + s->pad;
  data->out_stride = (int64_t)s->heads * dv_of(s) + s->pad;
  data->v_stride = s->latent ? data->k_stride : (int64_t)s->kv_heads * dv_of(s) + 2 * s->pad;
  data->q = malloc((size_t)(data->tokens * data->q_stride) * sizeof(float));
  data->out = malloc((size_t)(data->tokens * data->out_stride) * sizeof(float));
  data->k = malloc(rdna_dtype_bytes(s->dtype, data->slots * data->k_stride));
  data->v = malloc(rdna_dtype_bytes(s->dtype, data->slots * data->v_stride));
  data->sinks = malloc((size_t)s->heads * sizeof(float));
  for (int i = 0; i < s->heads; i++) data->sinks[i] = i % 5 == 4 ? -INFINITY : 3 * (float)rdna__random_normal(&random);
  case_fill(&random, RDNA_F32, data->q, data->tokens * data->q_stride, 1);
  fill_cache(&random, s->dtype, data->k, data->slots * data->k_stride, 3 * data->k_stride);
  fill_cache(&random, s->dtype, data->v, data->slots * data->v_stride, 3 * data->v_stride);
  for (int64_t i = 0; s->latent && i + s->d - dv_of(s) < data->slots * data->k_stride; i++)
    case_set(s->dtype, data->v, i, case_get(s->dtype, data->k, i + s->d - dv_of(s)));
}

static void free_data(struct data *data) {
  free(data->base), free(data->position), free(data->q), free(data->out), free(data->k), free(data->v);
  free(data->sinks);
}

/* One head of one token by the definition, in double. */
static void reference(const struct setting *s, const struct data *data, int64_t token, int32_t head, double *want) {
  int32_t kv_head = head / (s->heads / s->kv_heads), high = data->position[token];
  int32_t low = s->window > 0 && high - s->window + 1 > 0 ? high - s->window + 1 : 0;
  double *score = malloc(sizeof(double) * (size_t)(high + 2)), top = -INFINITY, sum = 0;
  for (int32_t p = low; p <= high; p++) {
    int64_t row = (data->base[token] + p) * data->k_stride + (int64_t)kv_head * s->d;
    score[p] = 0;
    for (int32_t i = 0; i < s->d; i++) {
      score[p] +=
          (double)data->q[token * data->q_stride + (int64_t)head * s->d + i] * cache_get(s->dtype, data->k, row + i);
    }
    score[p] *= (double)(float)(1 / sqrt(s->d));
    if (s->softcap != 0) score[p] = (double)s->softcap * tanh(score[p] / (double)s->softcap);
    top = fmax(top, score[p]);
  }
  if (s->sinks) top = fmax(top, (double)data->sinks[head]);
  if (s->sinks && top > -INFINITY) sum = exp((double)data->sinks[head] - top);
  for (int32_t i = 0; i < dv_of(s); i++) want[i] = 0;
  for (int32_t p = low; p <= high; p++) {
    int64_t row = (data->base[token] + p) * data->v_stride + (int64_t)kv_head * dv_of(s);
    double weight = exp(score[p] - top);
    sum += weight;
    for (int32_t i = 0; i < dv_of(s); i++) want[i] += weight * cache_get(s->dtype, data->v, row + i);
  }
  for (int32_t i = 0; i < dv_of(s); i++) want[i] = sum > 0 ? want[i] / sum : 0;
  free(score);
}

/* As in attention_cases.c, one-sided: scores of unit size from d products, weights off by their exponential, a mean
 * of values below 6. */
static double bound_of(const struct setting *s, int64_t longest) {
  double probability = (4 * sqrt(s->d) + 18) * 0x1p-24;
  return 6 * (2 * probability + 2 * sqrt((double)longest) * 0x1p-24);
}

static void compare(const struct setting *s, const struct data *data) {
  double want[512], bound = bound_of(s, data->longest);
  for (int64_t t = 0; t < data->tokens; t++) {
    bool outside = data->base[t] + data->position[t] >= data->slots;
    for (int32_t h = 0; h < s->heads; h++) {
      if (!outside) reference(s, data, t, h, want);
      for (int32_t i = 0; i < dv_of(s); i++) {
        double got = (double)data->out[t * data->out_stride + (int64_t)h * dv_of(s) + i];
        if (outside ? isnan(got) : fabs(got - want[i]) <= bound) continue;
        fail_msg("%d/%d heads of %d, window %d: token %d head %d [%d]: got %g, want %g (bound %g)", s->heads,
                 s->kv_heads, s->d, s->window, (int)t, h, i, got, outside ? NAN : want[i], bound);
      }
    }
    for (int64_t i = (int64_t)s->heads * dv_of(s); i < data->out_stride; i++) {
      assert_true(isnan(data->out[t * data->out_stride + i]));
    }
  }
}

static rdna_tensor vectors(void *memory, rdna_dtype dtype, int64_t count, int64_t heads, int64_t d, int64_t stride) {
  return (rdna_tensor){memory, dtype, 3, {count, heads, d}, {stride, d, 1}};
}

/* With splits of a given length each token alone has the bits that it had among the others. */
static void check_bits(const struct setting *s, const struct data *data, rdna_attention options, const rdna_tensor *q,
                       const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *base, const rdna_tensor *position,
                       const rdna_tensor *all) {
  for (int64_t t = 0; t < data->tokens; t++) {
    rdna_tensor one = *q, at = *position, from = *base, out = *all;
    one.shape[0] = at.shape[0] = from.shape[0] = out.shape[0] = 1;
    one.data = (float *)q->data + t * data->q_stride;
    at.data = (int32_t *)at.data + t, from.data = (int32_t *)from.data + t;
    size_t bytes = (size_t)(s->heads * dv_of(s)) * sizeof(float);
    out.data = test_poisoned(bytes);
    options.max_queries = 1, options.max_length = data->position[t] + 1;
    size_t workspace_size = rdna_op_attention_workspace(device, &options, 1, s->heads, s->kv_heads, dv_of(s));
    void *workspace = test_poisoned(workspace_size);
    float *got = malloc(bytes);
    assert_ok(rdna_op_attention(stream, &options, &one, k, v, &from, &at, workspace, workspace_size, &out));
    test_download(got, out.data, bytes);
    assert_memory_equal(got, data->out + t * data->out_stride, bytes);
    free(got);
    test_release(out.data), test_release(workspace);
  }
}

/* |max_length| and |max_queries| choose the kernel and may be anything. */
static void check_with(const struct setting *s, int64_t max_length, int32_t max_queries, int32_t split) {
  struct data data;
  make_data(s, &data);
  rdna_attention options = {RDNA_ATTENTION_INIT,
                            .scale = (float)(1 / sqrt(s->d)),
                            .softcap = s->softcap,
                            .window = s->window,
                            .max_queries = max_queries ? max_queries : data.most_tokens,
                            .max_length = max_length ? max_length : data.longest,
                            .split = split};
  size_t q_bytes = (size_t)(data.tokens * data.q_stride) * sizeof(float);
  size_t workspace_size = rdna_op_attention_workspace(device, &options, data.tokens, s->heads, s->kv_heads, dv_of(s));
  size_t out_bytes = (size_t)(data.tokens * data.out_stride) * sizeof(float);
  void *memory[] = {test_upload(data.q, q_bytes),
                    test_upload(data.k, rdna_dtype_bytes(s->dtype, data.slots * data.k_stride)),
                    test_upload(data.v, rdna_dtype_bytes(s->dtype, data.slots * data.v_stride)),
                    test_upload(data.base, (size_t)data.tokens * 4),
                    test_upload(data.position, (size_t)data.tokens * 4),
                    test_poisoned(workspace_size),
                    test_poisoned(out_bytes),
                    test_upload(data.sinks, (size_t)s->heads * sizeof(float))};
  rdna_tensor sinks = rdna_tensor_contiguous(memory[7], RDNA_F32, 1, (int64_t[]){s->heads});
  if (s->sinks) options.sinks = &sinks;
  rdna_tensor q = vectors(memory[0], RDNA_F32, data.tokens, s->heads, s->d, data.q_stride);
  rdna_tensor k = vectors(memory[1], s->dtype, data.slots, s->kv_heads, s->d, data.k_stride);
  rdna_tensor v = vectors(memory[2], s->dtype, data.slots, s->kv_heads, dv_of(s), data.v_stride);
  if (s->latent) v.data = (char *)k.data + rdna_dtype_bytes(s->dtype, s->d - dv_of(s));
  rdna_tensor base = rdna_tensor_contiguous(memory[3], RDNA_I32, 1, &data.tokens);
  rdna_tensor position = rdna_tensor_contiguous(memory[4], RDNA_I32, 1, &data.tokens);
  rdna_tensor out = vectors(memory[6], RDNA_F32, data.tokens, s->heads, dv_of(s), data.out_stride);
  assert_ok(rdna_op_attention(stream, &options, &q, &k, &v, &base, &position, memory[5], workspace_size, &out));
  test_download(data.out, memory[6], out_bytes);
  compare(s, &data);
  if (split && !s->spoiled) check_bits(s, &data, options, &q, &k, &v, &base, &position, &out);
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) test_release(memory[i]);
  free_data(&data);
}

/* The same cache in blocks of 5 rows, in an order of their own. */
static void check_paged(const struct setting *s) {
  enum { BLOCK = 5 };
  struct data data;
  make_data(s, &data);
  int64_t most = data.longest / BLOCK + 1, blocks = most * s->sequence_count + 2;
  size_t k_row = rdna_dtype_bytes(s->dtype, data.k_stride), v_row = rdna_dtype_bytes(s->dtype, data.v_stride);
  uint8_t *k = malloc((size_t)(blocks * BLOCK) * k_row), *v = malloc((size_t)(blocks * BLOCK) * v_row);
  int32_t *table = malloc((size_t)(most * s->sequence_count) * 4), *sequence = malloc((size_t)data.tokens * 4);
  memset(k, 0xff, (size_t)(blocks * BLOCK) * k_row);
  memset(v, 0xff, (size_t)(blocks * BLOCK) * v_row);
  for (int64_t i = 0; i < most * s->sequence_count; i++) table[i] = (int32_t)(most * s->sequence_count - i);
  int64_t token = 0, slot = 3;
  for (int i = 0; i < s->sequence_count; i++) {
    int32_t rows = s->sequences[i].history + s->sequences[i].tokens;
    for (int32_t r = 0; r < rows; r++, slot++) {
      size_t to = (size_t)table[i * most + r / BLOCK] * BLOCK + (size_t)(r % BLOCK);
      memcpy(k + to * k_row, (uint8_t *)data.k + (size_t)slot * k_row, k_row);
      memcpy(v + to * v_row, (uint8_t *)data.v + (size_t)slot * v_row, v_row);
    }
    for (int32_t j = 0; j < s->sequences[i].tokens; j++) sequence[token++] = i;
  }
  if (s->spoiled) data.position[data.tokens - 1] = (int32_t)(most - 1) * BLOCK; /* a block of its own */
  if (s->spoiled) table[(s->sequence_count - 1) * most + data.position[data.tokens - 1] / BLOCK] = (int32_t)blocks;
  rdna_attention options = {RDNA_ATTENTION_INIT, .scale = (float)(1 / sqrt(s->d)), .softcap = s->softcap,
                            .window = s->window, .max_queries = data.most_tokens,  .max_length = data.longest};
  size_t q_bytes = (size_t)(data.tokens * data.q_stride) * sizeof(float);
  size_t workspace_size = rdna_op_attention_workspace(device, &options, data.tokens, s->heads, s->kv_heads, dv_of(s));
  size_t out_bytes = (size_t)(data.tokens * data.out_stride) * sizeof(float);
  void *memory[] = {test_upload(data.q, q_bytes),
                    test_upload(k, (size_t)(blocks * BLOCK) * k_row),
                    test_upload(v, (size_t)(blocks * BLOCK) * v_row),
                    test_upload(sequence, (size_t)data.tokens * 4),
                    test_upload(data.position, (size_t)data.tokens * 4),
                    test_upload(table, (size_t)(most * s->sequence_count) * 4),
                    test_poisoned(workspace_size),
                    test_poisoned(out_bytes),
                    test_upload(data.sinks, (size_t)s->heads * sizeof(float))};
  rdna_tensor sinks = rdna_tensor_contiguous(memory[8], RDNA_F32, 1, (int64_t[]){s->heads});
  if (s->sinks) options.sinks = &sinks;
  rdna_tensor q = vectors(memory[0], RDNA_F32, data.tokens, s->heads, s->d, data.q_stride);
  rdna_tensor k_cache = {
      memory[1], s->dtype, 4, {blocks, BLOCK, s->kv_heads, s->d}, {BLOCK * data.k_stride, data.k_stride, s->d, 1}};
  rdna_tensor v_cache = {memory[2],
                         s->dtype,
                         4,
                         {blocks, BLOCK, s->kv_heads, dv_of(s)},
                         {BLOCK * data.v_stride, data.v_stride, dv_of(s), 1}};
  if (s->latent) v_cache.data = (char *)k_cache.data + rdna_dtype_bytes(s->dtype, s->d - dv_of(s));
  rdna_tensor sequences = rdna_tensor_contiguous(memory[3], RDNA_I32, 1, &data.tokens);
  rdna_tensor position = rdna_tensor_contiguous(memory[4], RDNA_I32, 1, &data.tokens);
  rdna_tensor block_table = rdna_tensor_contiguous(memory[5], RDNA_I32, 2, (int64_t[]){s->sequence_count, most});
  rdna_tensor out = vectors(memory[7], RDNA_F32, data.tokens, s->heads, dv_of(s), data.out_stride);
  assert_ok(rdna_op_attention_paged(stream, &options, &q, &k_cache, &v_cache, &block_table, &sequences, &position,
                                    memory[6], workspace_size, &out));
  test_download(data.out, memory[7], out_bytes);
  compare(s, &data);
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) test_release(memory[i]);
  free(k), free(v), free(table), free(sequence);
  free_data(&data);
}

static void prompts(void **state) {
  static const struct setting settings[] = {
      {RDNA_F16, 4, 4, 64, .sequence_count = 1, .sequences = {{0, 100}}},
      {RDNA_F16, 8, 2, 128, .sequence_count = 1, .sequences = {{70, 65}}},
      {RDNA_F32, 6, 2, 80, .sequence_count = 1, .sequences = {{10, 33}}, .pad = 4},
      {RDNA_F16, 7, 1, 96, .sequence_count = 1, .sequences = {{0, 50}}, .window = 20},
      {RDNA_F32, 2, 2, 256, .sequence_count = 1, .sequences = {{130, 20}}, .softcap = 3, .pad = 8},
      {RDNA_F16, 3, 3, 84, .sequence_count = 1, .sequences = {{5, 64}}, .pad = 4, .window = 64},
      {RDNA_F32, 2, 1, 4, .sequence_count = 1, .sequences = {{0, 200}}},
      {RDNA_F16, 72, 1, 12, .sequence_count = 1, .sequences = {{3, 10}}},
      {RDNA_F16, 4, 2, 64, .sequence_count = 5, .sequences = {{0, 40}, {90, 9}, {3, 1}, {64, 64}, {0, 2}}},
      {RDNA_F32, 4, 1, 160, .sequence_count = 3, .sequences = {{7, 13}, {100, 30}, {0, 9}}, .spoiled = true},
      {RDNA_F16, 8, 1, 64, .sequence_count = 1, .sequences = {{30, 50}}, .window = 16, .sinks = true},
      {RDNA_F32, 6, 3, 20, .sequence_count = 2, .sequences = {{0, 11}, {5, 17}}, .spoiled = true, .sinks = true},
      {RDNA_F16, 4, 1, 512, .sequence_count = 2, .sequences = {{30, 20}, {0, 9}}, .window = 24, .sinks = true},
      {RDNA_F32, 3, 1, 576, .dv = 512, .latent = true, .sequence_count = 1, .sequences = {{9, 30}}, .spoiled = true},
      {RDNA_F16, 4, 2, 576, .dv = 260, .sequence_count = 1, .sequences = {{3, 12}}, .softcap = 3, .pad = 4},
  };
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) check_with(&settings[i], 0, 9, 0);
}

/* (1, heads, rows, d) of the rows from |first| on of (rows, heads, d). */
static rdna_tensor whole(void *memory, int64_t first, int64_t rows, int64_t heads, int64_t d, int64_t stride) {
  uint16_t *at = (uint16_t *)memory + first * stride;
  return (rdna_tensor){at, RDNA_F16, 4, {1, heads, rows, d}, {rows * stride, d, stride, 1}};
}

/* The tokens of the first sequence by rdna_op_sdpa, as its header says; what is behind them in the cache is NaN. */
static void check_prompt(const struct setting *s) {
  struct data data;
  make_data(s, &data);
  int64_t tokens = s->sequences[0].tokens, length = s->sequences[0].history + tokens, first = data.base[0];
  int64_t values = tokens * data.q_stride, q_bytes = values * 2;
  uint16_t *half = malloc((size_t)q_bytes);
  for (int64_t i = 0; i < values; i++) {
    case_set(RDNA_F16, half, i, data.q[i]);
    data.q[i] = case_get(RDNA_F16, half, i);
  }
  for (int64_t i = (first + length) * data.k_stride; i < data.slots * data.k_stride; i++)
    case_set(RDNA_F16, data.k, i, NAN);
  for (int64_t i = (first + length) * data.v_stride; i < data.slots * data.v_stride; i++)
    case_set(RDNA_F16, data.v, i, NAN);
  void *memory[] = {
      test_upload(half, (size_t)q_bytes), test_upload(data.k, rdna_dtype_bytes(RDNA_F16, data.slots * data.k_stride)),
      test_upload(data.v, rdna_dtype_bytes(RDNA_F16, data.slots * data.v_stride)), test_poisoned((size_t)q_bytes)};
  rdna_tensor q = whole(memory[0], 0, tokens, s->heads, s->d, data.q_stride);
  rdna_tensor k = whole(memory[1], first, length, s->kv_heads, s->d, data.k_stride);
  rdna_tensor v = whole(memory[2], first, length, s->kv_heads, s->d, data.v_stride);
  rdna_tensor out = whole(memory[3], 0, tokens, s->heads, s->d, data.q_stride);
  rdna_sdpa options = {RDNA_SDPA_INIT,
                       .scale = (float)(1 / sqrt(s->d)),
                       .softcap = s->softcap,
                       .causal = true,
                       .windowed = s->window > 0,
                       .left = s->window > 0 ? s->window - 1 : 0,
                       .diagonal = RDNA_DIAGONAL_BOTTOM_RIGHT};
  assert_ok(rdna_op_sdpa(stream, &options, &q, &k, &v, &out, NULL));
  test_download(half, memory[3], (size_t)q_bytes);
  double want[256], bound = bound_of(s, length) + 6 * 0x1p-11; /* probabilities are rounded too */
  for (int64_t t = 0; t < tokens; t++) {
    for (int32_t h = 0; h < s->heads; h++) {
      reference(s, &data, t, h, want);
      for (int32_t i = 0; i < s->d; i++) {
        double got = (double)case_get(RDNA_F16, half, t * data.q_stride + (int64_t)h * s->d + i);
        if (fabs(got - want[i]) <= bound + fabs(want[i]) * 0x1p-11) continue;
        fail_msg("%d/%d heads of %d, window %d: token %d head %d [%d]: got %g, want %g (bound %g)", s->heads,
                 s->kv_heads, s->d, s->window, (int)t, h, i, got, want[i], bound);
      }
    }
  }
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) test_release(memory[i]);
  free(half);
  free_data(&data);
}

static void prompts_by_sdpa(void **state) {
  static const struct setting settings[] = {
      {RDNA_F16, 4, 4, 64, .sequence_count = 2, .sequences = {{0, 100}, {0, 9}}},
      {RDNA_F16, 8, 2, 128, .sequence_count = 2, .sequences = {{70, 65}, {0, 70}}},
      {RDNA_F16, 6, 2, 80, .sequence_count = 2, .sequences = {{10, 33}, {0, 30}}, .pad = 8},
      {RDNA_F16, 7, 1, 96, .sequence_count = 2, .sequences = {{0, 150}, {0, 1}}, .window = 20},
      {RDNA_F16, 2, 2, 256, .sequence_count = 2, .sequences = {{130, 20}, {0, 3}}, .softcap = 3, .window = 64},
      {RDNA_F16, 3, 3, 84, .sequence_count = 2, .sequences = {{5, 9}, {0, 9}}, .pad = 4},
  };
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) check_prompt(&settings[i]);
}

static void decoding(void **state) {
  static const struct setting settings[] = {
      {RDNA_F16, 4, 4, 64, .sequence_count = 1, .sequences = {{0, 1}}},
      {RDNA_F16, 8, 2, 128, .sequence_count = 1, .sequences = {{1000, 1}}},
      {RDNA_F32, 6, 2, 80, .sequence_count = 1, .sequences = {{300, 3}}, .pad = 4},
      {RDNA_F16, 7, 1, 96, .sequence_count = 1, .sequences = {{700, 8}}, .window = 300},
      {RDNA_F32, 2, 2, 256, .sequence_count = 1, .sequences = {{513, 1}}, .softcap = 3, .pad = 8},
      {RDNA_F16, 3, 3, 84, .sequence_count = 1, .sequences = {{127, 2}}, .pad = 4},
      {RDNA_F32, 72, 1, 12, .sequence_count = 1, .sequences = {{400, 1}}},
      {RDNA_F16, 11, 1, 64, .sequence_count = 4, .sequences = {{400, 1}, {0, 1}, {31, 1}, {256, 1}}},
      {RDNA_F16, 4, 1, 132, .sequence_count = 3, .sequences = {{40, 2}, {300, 2}, {0, 2}}, .spoiled = true},
      {RDNA_BF16, 4, 4, 64, .sequence_count = 1, .sequences = {{30, 1}}},
      {RDNA_BF16, 8, 2, 128, .sequence_count = 2, .sequences = {{700, 1}, {9, 3}}},
      {RDNA_BF16, 8, 1, 20, .sequence_count = 1, .sequences = {{200, 2}}, .pad = 4},
      {RDNA_BF16, 8, 1, 64, .sequence_count = 1, .sequences = {{700, 1}}, .window = 128, .sinks = true},
      {RDNA_F16, 6, 2, 96, .sequence_count = 3, .sequences = {{400, 2}, {0, 1}, {63, 1}}, .sinks = true},
      {RDNA_Q8_0, 4, 4, 64, .sequence_count = 1, .sequences = {{300, 1}}},
      {RDNA_Q8_0, 8, 2, 128, .sequence_count = 3, .sequences = {{700, 1}, {9, 3}, {0, 1}}, .window = 200},
      {RDNA_Q8_0, 8, 1, 96, .sequence_count = 2, .sequences = {{400, 2}, {3, 1}}, .pad = 32, .sinks = true},
      {RDNA_Q8_0, 2, 1, 256, .sequence_count = 2, .sequences = {{40, 2}, {299, 1}}, .spoiled = true, .softcap = 3},
      {RDNA_F32, 2, 2, 80, .sequence_count = 2, .sequences = {{40, 2}, {3, 2}}, .spoiled = true, .sinks = true},
      {RDNA_F16, 8, 2, 512, .sequence_count = 2, .sequences = {{300, 1}, {9, 3}}, .window = 200, .sinks = true},
      {RDNA_BF16, 5, 1, 260, .dv = 300, .sequence_count = 2, .sequences = {{70, 1}, {2, 2}}, .softcap = 3, .pad = 4},
      {RDNA_F16, 16, 1, 576, .dv = 512, .latent = true, .sequence_count = 2, .sequences = {{300, 1}, {0, 2}}},
      {RDNA_F32, 3, 1, 24, .dv = 16, .latent = true, .sequence_count = 2, .sequences = {{99, 2}, {5, 1}}, .pad = 8},
      {RDNA_F32, 2, 1, 320, .dv = 256, .latent = true, .sequence_count = 2, .sequences = {{40, 2}, {3, 2}},
       .spoiled = true},
      {RDNA_BF16, 2, 1, 64, .dv = 64, .latent = true, .sequence_count = 1, .sequences = {{130, 2}}, .sinks = true},
  };
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
    check_with(&settings[i], 0, 0, 0);
    check_with(&settings[i], 1, 1, 0);       /* as if short: one split */
    check_with(&settings[i], 1 << 20, 1, 0); /* as if long: splits with nothing to do */
    check_with(&settings[i], 0, 0, 96);
    if (settings[i].dtype == RDNA_F16 || settings[i].dtype == RDNA_F32)
      check_with(&settings[i], 0, 100, 0); /* as a prompt */
    check_paged(&settings[i]);
  }
}

/* Huge, equal and infinite scores. */
static void extreme_scores(void **state) {
  enum { D = 8, SLOTS = 300 };
  float q[2 * D], k[SLOTS * D], v[SLOTS * D], out[2 * D];
  int32_t base[2] = {0, 0}, position[2] = {SLOTS - 1, 9};
  for (int i = 0; i < 2 * D; i++) q[i] = 100;
  for (int i = 0; i < SLOTS * D; i++) {
    k[i] = i / D < 10 ? -INFINITY : i / D == 77 ? 1000 : -1000;
    v[i] = (float)(i / D);
  }
  void *memory[] = {test_upload(q, sizeof q),
                    test_upload(k, sizeof k),
                    test_upload(v, sizeof v),
                    test_upload(base, sizeof base),
                    test_upload(position, sizeof position),
                    test_poisoned(1 << 20),
                    test_poisoned(sizeof out)};
  rdna_tensor tq = vectors(memory[0], RDNA_F32, 2, 1, D, D), tout = vectors(memory[6], RDNA_F32, 2, 1, D, D);
  rdna_tensor tk = vectors(memory[1], RDNA_F32, SLOTS, 1, D, D), tv = vectors(memory[2], RDNA_F32, SLOTS, 1, D, D);
  rdna_tensor tbase = rdna_tensor_contiguous(memory[3], RDNA_I32, 1, (int64_t[]){2});
  rdna_tensor tposition = rdna_tensor_contiguous(memory[4], RDNA_I32, 1, (int64_t[]){2});
  for (int32_t queries = 2; queries <= 20; queries += 18) {
    rdna_attention options = {RDNA_ATTENTION_INIT, .scale = 1, .max_queries = queries, .max_length = SLOTS};
    assert_ok(rdna_op_attention(stream, &options, &tq, &tk, &tv, &tbase, &tposition, memory[5], 1 << 20, &tout));
    test_download(out, memory[6], sizeof out);
    for (int i = 0; i < D; i++) {
      assert_true(out[i] == 77);    /* the one that stands out */
      assert_true(out[D + i] == 0); /* nothing but -inf */
    }
  }
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) test_release(memory[i]);
}

static void refused(void **state) {
  void *memory = test_poisoned(1 << 16), *out_memory = test_poisoned(1 << 12);
  rdna_attention options = {RDNA_ATTENTION_INIT, .scale = 1, .max_queries = 1, .max_length = 1 << 20};
  rdna_tensor q = vectors(memory, RDNA_F32, 2, 4, 16, 64), out = vectors(out_memory, RDNA_F32, 2, 4, 16, 64);
  rdna_tensor k = vectors(memory, RDNA_F16, 10, 2, 16, 32), bad;
  rdna_tensor ids = rdna_tensor_contiguous(memory, RDNA_I32, 1, (int64_t[]){2});
#define TRY(q, k, v, ids, workspace, size, out) \
  rdna_op_attention(stream, &options, q, k, v, ids, ids, workspace, size, out)
  bad = k, bad.shape[1] = 3;
  assert_refused(TRY(&q, &bad, &bad, &ids, NULL, 0, &out), RDNA_INVALID_ARGUMENT, "q has 4 heads and k_cache 3");
  assert_refused(TRY(&q, &bad, &k, &ids, NULL, 0, &out), RDNA_INVALID_ARGUMENT,
                 "v_cache is f16 (10, 2, 16); size 1 must be 3", "");
  bad = k, bad.dtype = RDNA_F64;
  assert_refused(TRY(&q, &bad, &bad, &ids, NULL, 0, &out), RDNA_UNSUPPORTED, "k_cache is f64");
  bad = k, bad.dtype = RDNA_BF16;
  options.max_queries = 9;
  assert_refused(TRY(&q, &bad, &bad, &ids, NULL, 0, &out), RDNA_UNSUPPORTED, "the caches are bf16");
  options.max_queries = 1;
  rdna_tensor narrow = vectors(memory, RDNA_Q8_0, 10, 2, 16, 32);
  assert_refused(TRY(&q, &narrow, &narrow, &ids, NULL, 0, &out), RDNA_UNSUPPORTED, "whole blocks of 32");
  bad = vectors(memory, RDNA_F16, 10, 2, 20, 40);
  assert_refused(TRY(&q, &bad, &bad, &ids, NULL, 0, &out), RDNA_INVALID_ARGUMENT, "size 2 must be 16");
  bad = k, bad.stride[0] = 34;
  assert_refused(TRY(&q, &bad, &bad, &ids, NULL, 0, &out), RDNA_UNSUPPORTED, "stride 34");
  bad = k, bad.data = (char *)memory + 8;
  assert_refused(TRY(&q, &bad, &k, &ids, NULL, 0, &out), RDNA_UNSUPPORTED, "aligned to 16");
  bad = vectors(memory, RDNA_F32, 2, 4, 580, 2320);
  rdna_tensor wide = vectors(memory, RDNA_F16, 10, 2, 580, 1160);
  assert_refused(TRY(&bad, &wide, &k, &ids, NULL, 0, &out), RDNA_UNSUPPORTED, "heads of 580 values");
  bad.shape[2] = bad.stride[1] = wide.shape[2] = wide.stride[1] = 516, bad.stride[0] = 2064, wide.stride[0] = 1032;
  assert_refused(TRY(&q, &k, &wide, &ids, NULL, 0, &bad), RDNA_UNSUPPORTED, "v_cache of 516");
  bad = ids, bad.shape[0] = 3;
  assert_refused(TRY(&q, &k, &k, &bad, NULL, 0, &out), RDNA_INVALID_ARGUMENT, "cache_base is i32 (3); size 0 must be 2",
                 "");
  bad = out, bad.shape[0] = 1;
  assert_refused(TRY(&q, &k, &k, &ids, NULL, 0, &bad), RDNA_INVALID_ARGUMENT, "out is f32 (1, 4, 16); size 0 must be 2",
                 "");
  size_t needed = rdna_op_attention_workspace(device, &options, 2, 4, 2, 16);
  if (needed > 0) { /* a device with few compute units has no use for one */
    assert_refused(TRY(&q, &k, &k, &ids, memory, needed - 1, &out), RDNA_INVALID_ARGUMENT, "workspace is");
  }
  rdna_tensor blocks = {memory, RDNA_F16, 4, {5, 2, 2, 16}, {64, 32, 16, 1}},
              table = {memory, RDNA_I32, 2, {2, 3}, {3, 1}};
#define TRY_PAGED(k, v, table) rdna_op_attention_paged(stream, &options, &q, k, v, table, &ids, &ids, NULL, 0, &out)
  bad = blocks, bad.stride[0] = 96;
  assert_refused(TRY_PAGED(&bad, &blocks, &table), RDNA_UNSUPPORTED, "k_cache has stride 96");
  bad = blocks, bad.shape[1] = 1, bad.stride[0] = 32;
  assert_refused(TRY_PAGED(&blocks, &bad, &table), RDNA_INVALID_ARGUMENT,
                 "v_cache is f16 (5, 1, 2, 16); size 1 must be 2", "");
  bad = table, bad.stride[0] = 4;
  assert_refused(TRY_PAGED(&blocks, &blocks, &bad), RDNA_UNSUPPORTED, "block_table");
  options.max_queries = 9;
  assert_refused(TRY_PAGED(&blocks, &blocks, &table), RDNA_UNSUPPORTED, "max_queries is 9");
  options.max_queries = 0;
  assert_refused(TRY(&q, &k, &k, &ids, NULL, 0, &out), RDNA_INVALID_ARGUMENT, "max_queries 0");
  assert_refused(rdna_op_attention(stream, NULL, &q, &k, &k, &ids, &ids, NULL, 0, &out), RDNA_INVALID_ARGUMENT,
                 "options is NULL");
  float got[4];
  test_download(got, out_memory, sizeof got);
  for (int i = 0; i < 4; i++) assert_true(isnan(got[i]));

  options.max_queries = 1;
  q.shape[0] = out.shape[0] = ids.shape[0] = 0;
  q.data = out.data = ids.data = NULL;
  assert_ok(TRY(&q, &k, &k, &ids, NULL, 0, &out));
  test_release(memory);
  test_release(out_memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(prompts), cmocka_unit_test(prompts_by_sdpa),
                                     cmocka_unit_test(decoding), cmocka_unit_test(extreme_scores),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
