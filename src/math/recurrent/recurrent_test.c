/* The operators of recurrent.h against their definitions in double: batches of sequences of random lengths, padding and
 * rows of no sequence among them, in any strides. */
#include "rdna/op/recurrent.h"
#include "math/common/test/operand.h"

/* ---- batches ---- */

typedef struct batch {
  operand starts, slots;
  int64_t count, tokens, slot_count, max_tokens; /* the last is any number, as it is a hint */
} batch;

static int64_t below(int64_t count) { return (int64_t)rdna__random_below(&random_state, (uint64_t)count); }

static batch make_batch(int64_t count, const int64_t *lengths, int64_t before, int64_t behind) {
  batch b = {.count = count, .slot_count = count + 2, .max_tokens = 1 + below(80)};
  int64_t ends = count + 1;
  b.starts = operand_make(RDNA_I32, 1, &ends, NULL, 0);
  b.slots = operand_make(RDNA_I32, 1, &count, NULL, 0);
  int64_t at = before;
  for (int64_t i = 0; i < count; i++) {
    operand_set(&b.starts, i, (double)at);
    operand_set(&b.slots, i, (double)(count - i));
    at += lengths[i];
  }
  operand_set(&b.starts, count, (double)at);
  b.tokens = at + behind;
  operand_upload(&b.starts);
  operand_upload(&b.slots);
  return b;
}

/* Batch |n|: a prompt, a step of decoding, or up to 5 sequences of up to |longest| tokens, of which some have no tokens
 * and some no slot. */
static batch random_batch(int n, int64_t longest) {
  int64_t lengths[5] = {longest, 1, 1, 1, 1}, count = n == 0 ? 1 : 1 + below(5);
  if (n == 1) lengths[0] = 1, count = 5;
  for (int64_t i = 0; n > 1 && i < count; i++) lengths[i] = below(4) ? 1 + below(longest) : 0;
  batch b = make_batch(count, lengths, n % 3 == 2, n % 4 == 3 ? 2 : 0);
  for (int64_t i = 0; n > 1 && i < count; i++) {
    if (below(5) == 0) operand_set(&b.slots, i, (double)(below(2) ? -1 : b.slot_count));
  }
  operand_upload(&b.slots);
  return b;
}

static rdna_sequences given(const batch *b) {
  return (rdna_sequences){RDNA_SEQUENCES_INIT, &b->starts.tensor, &b->slots.tensor, b->max_tokens};
}

static void free_batch(batch *b) {
  operand_free(&b->starts);
  operand_free(&b->slots);
}

static int64_t begin_of(const batch *b, int64_t sequence) { return (int64_t)operand_get(&b->starts, sequence); }
/* Of token |t|: its sequence, or -1; of a sequence: its slot, or -1. */
static int64_t sequence_of(const batch *b, int64_t t) {
  for (int64_t i = 0; i < b->count; i++) {
    if (t >= begin_of(b, i) && t < begin_of(b, i + 1)) return i;
  }
  return -1;
}
static int64_t slot_of(const batch *b, int64_t sequence) {
  int64_t slot = (int64_t)operand_get(&b->slots, sequence);
  return slot >= 0 && slot < b->slot_count ? slot : -1;
}

/* ---- tensors ---- */

static operand make(int rank, const int64_t *shape, const int64_t *stride, double deviation) {
  operand o = operand_make(RDNA_F32, rank, shape, stride, 0);
  if (deviation > 0) {
    operand_fill(&o, deviation);
  } else {
    operand_upload(&o);
  }
  return o;
}

static double *values_of(const operand *o) {
  double *values = malloc((size_t)(operand_span(o) + 1) * sizeof *values);
  assert_non_null(values);
  for (int64_t i = 0; i < operand_span(o); i++) values[i] = operand_get(o, i);
  return values;
}
static float *floats_of(operand *o) {
  float *values = malloc(o->bytes + 1);
  assert_non_null(values);
  operand_download(o);
  memcpy(values, o->host, o->bytes);
  return values;
}

/* Where (i, j, k) is, of which a tensor of fewer dimensions ignores the last. */
static int64_t at3(const rdna_tensor *t, int64_t i, int64_t j, int64_t k) {
  return i * t->stride[0] + j * t->stride[1] + (t->rank > 2 ? k * t->stride[2] : 0);
}

static double logistic(double x) { return 1 / (1 + exp(-x)); }

/* ---- causal_conv ---- */

/* Input |t| of a channel, in the state if it was before the sequence's first. */
static double input_of(const batch *b, int64_t sequence, const operand *x, const double *state, int64_t width,
                       int64_t channel, int64_t t) {
  int64_t back = begin_of(b, sequence) - t;
  if (back <= 0) return operand_get(x, at3(&x->tensor, t, channel, 0));
  int64_t channels = x->tensor.shape[1], slot = slot_of(b, sequence);
  return state[(slot * channels + channel) * (width - 1) + (width - 1) - back];
}

static void check_conv_row(const batch *b, const operand *x, const operand *weight, const double *state, bool silu,
                           const operand *out, int64_t t) {
  int64_t channels = x->tensor.shape[1], width = weight->tensor.shape[1], sequence = sequence_of(b, t);
  for (int64_t c = 0; c < channels; c++) {
    int64_t place = at3(&out->tensor, t, c, 0);
    double sum = 0, size = 0;
    if (sequence < 0) {
      assert_true(operand_is_poison(out, place));
      continue;
    }
    for (int64_t j = 0; j < width && slot_of(b, sequence) >= 0; j++) {
      double term = operand_get(weight, c * width + j) * input_of(b, sequence, x, state, width, c, t - width + 1 + j);
      sum += term, size += fabs(term);
    }
    assert_close(RDNA_F32, operand_get(out, place), silu ? sum * logistic(sum) : sum, size * 0x1p-20, "out", place);
  }
}

static void check_conv_state(const batch *b, const operand *x, const double *before, const operand *state,
                             int64_t width) {
  int64_t channels = x->tensor.shape[1], size = channels * (width - 1);
  for (int64_t slot = 0; slot < b->slot_count; slot++) {
    int64_t sequence = -1;
    for (int64_t i = 0; i < b->count; i++) {
      if (slot_of(b, i) == slot) sequence = i;
    }
    for (int64_t i = 0; i < size; i++) {
      int64_t c = i / (width - 1), back = width - 1 - i % (width - 1);
      double want = before[slot * size + i];
      if (sequence >= 0) want = input_of(b, sequence, x, before, width, c, begin_of(b, sequence + 1) - back);
      assert_true(operand_get(state, slot * size + i) == want);
    }
  }
}

static void causal_conv_matches_double(void **test_state) {
  for (int n = 0; n < 36; n++) {
    batch b = random_batch(n, n % 2 ? 5 : 70);
    int64_t width = 2 + n % 3, channels = n % 5 == 4 ? 300 : 1 + below(70);
    int64_t x_stride[] = {channels + below(3), 1}, out_stride[] = {channels + below(3), 1};
    operand x = make(2, (int64_t[]){b.tokens, channels}, x_stride, 1);
    operand weight = make(2, (int64_t[]){channels, width}, NULL, 1);
    operand state = make(3, (int64_t[]){b.slot_count, channels, width - 1}, NULL, 1);
    operand out = make(2, (int64_t[]){b.tokens, channels}, out_stride, 0);
    double *before = values_of(&state);
    bool silu = n % 4 < 2;
    const rdna_sequences sequences = given(&b);
    assert_ok(rdna_op_causal_conv(stream, &sequences, &x.tensor, &weight.tensor,
                                  silu ? RDNA_ACTIVATION_SILU : RDNA_ACTIVATION_NONE, &state.tensor, &out.tensor));
    operand_download(&out);
    operand_download(&state);
    for (int64_t t = 0; t < b.tokens; t++) check_conv_row(&b, &x, &weight, before, silu, &out, t);
    check_conv_state(&b, &x, before, &state, width);
    free(before);
    operand *all[] = {&x, &weight, &state, &out};
    for (int i = 0; i < 4; i++) operand_free(all[i]);
    free_batch(&b);
  }
}

/* ---- gated_delta ---- */

struct delta {
  int64_t k_heads, repeats, d_k, d_v;
  operand q, k, v, a, b, rate, dt, state, out;
  rdna_gated_delta options;
};

/* Of (tokens, heads, repeats, size): key head by key head or repeat by repeat, with a gap behind each token. */
static operand make_heads(int rank, const int64_t *shape, int64_t gap, double deviation) {
  int64_t size = rank == 4 ? shape[3] : 1, stride[4] = {0, 0, 0, 1};
  bool by_key_heads = below(2);
  stride[0] = shape[1] * shape[2] * size + gap * below(2);
  stride[1] = by_key_heads ? shape[2] * size : size;
  stride[2] = by_key_heads ? size : shape[1] * size;
  return make(rank, shape, stride, deviation);
}

static struct delta make_delta(int64_t tokens, int64_t slots, int64_t k_heads, int64_t repeats, int64_t d_k,
                               int64_t d_v) {
  struct delta d = {.k_heads = k_heads, .repeats = repeats, .d_k = d_k, .d_v = d_v};
  const int64_t values[] = {tokens, k_heads, repeats, d_v}, keys[] = {tokens, k_heads, d_k};
  const int64_t gap[] = {k_heads * d_k + 4, d_k, 1}, of_heads[] = {k_heads, repeats}, across[] = {1, k_heads};
  d.q = make(3, keys, NULL, 1), d.k = make(3, keys, gap, 1), d.v = make_heads(4, values, 1, 1);
  d.a = make_heads(3, values, 3, 2), d.b = make_heads(3, values, 3, 2), d.out = make_heads(4, values, 1, 0);
  d.rate = make(2, of_heads, NULL, 1), d.dt = make(2, of_heads, across, 1);
  d.state = make(5, (int64_t[]){slots, k_heads, repeats, d_v, d_k}, NULL, 0.5);
  for (int64_t i = 0; i < operand_span(&d.rate); i++) operand_set(&d.rate, i, -fabs(operand_get(&d.rate, i)));
  operand_upload(&d.rate);
  d.options = (rdna_gated_delta){RDNA_GATED_DELTA_INIT, 0.3f, 1e-6f, NULL, NULL};
  return d;
}
static void free_delta(struct delta *d) {
  operand *all[] = {&d->q, &d->k, &d->v, &d->a, &d->b, &d->rate, &d->dt, &d->state, &d->out};
  for (int i = 0; i < 9; i++) operand_free(all[i]);
}

/* Rows from |first| on of what has a row for each token. */
static rdna_tensor rows_from(const operand *o, int64_t first, int64_t count) {
  rdna_tensor t = o->tensor;
  t.data = (float *)t.data + first * t.stride[0];
  t.shape[0] = count;
  return t;
}

static void run_delta(struct delta *d, const batch *of, int64_t first, int64_t count) {
  const rdna_sequences sequences = given(of);
  rdna_tensor q = rows_from(&d->q, first, count), k = rows_from(&d->k, first, count);
  rdna_tensor v = rows_from(&d->v, first, count), a = rows_from(&d->a, first, count);
  rdna_tensor b = rows_from(&d->b, first, count), out = rows_from(&d->out, first, count);
  d->options.rate = &d->rate.tensor, d->options.dt = &d->dt.tensor;
  assert_ok(rdna_op_gated_delta(stream, &d->options, &sequences, &q, &k, &v, &a, &b, &d->state.tensor, &out));
}

/* A row of q or k of length |length|. */
static void normalised(const struct delta *d, const operand *o, int64_t t, int64_t head, double length, double *out) {
  double sum = (double)d->options.epsilon;
  for (int64_t i = 0; i < d->d_k; i++) {
    out[i] = operand_get(o, at3(&o->tensor, t, head, i));
    sum += out[i] * out[i];
  }
  for (int64_t i = 0; i < d->d_k; i++) out[i] *= length / sqrt(sum);
}

/* One token of a value head, by the definition: S decays, is corrected, is asked. */
static void definition(const struct delta *d, int64_t t, int64_t head, int64_t repeat, double *s, double *answer) {
  double k[256], q[256];
  normalised(d, &d->k, t, head, 1, k);
  normalised(d, &d->q, t, head, (double)d->options.scale, q);
  double x =
      operand_get(&d->a, at3(&d->a.tensor, t, head, repeat)) + operand_get(&d->dt, at3(&d->dt.tensor, head, repeat, 0));
  double decay = exp(operand_get(&d->rate, at3(&d->rate.tensor, head, repeat, 0)) * log1p(exp(x)));
  double beta = logistic(operand_get(&d->b, at3(&d->b.tensor, t, head, repeat)));
  for (int64_t c = 0; c < d->d_v; c++) {
    double *row = s + c * d->d_k, known = 0;
    for (int64_t i = 0; i < d->d_k; i++) {
      row[i] *= decay;
      known += row[i] * k[i];
    }
    double error = operand_get(&d->v, at3(&d->v.tensor, t, head, repeat) + c) - known;
    answer[c] = 0;
    for (int64_t i = 0; i < d->d_k; i++) {
      row[i] += beta * error * k[i];
      answer[c] += row[i] * q[i];
    }
  }
}

/* Roundings of each token's sums, some of which later tokens carry on. */
static double delta_error(const struct delta *d, int64_t tokens) {
  return 0x1p-23 * (4 + sqrt((double)d->d_k)) * sqrt((double)tokens + 1);
}

/* Runs the definition over the head's sequences: |states| becomes what the state must be, and out is compared. */
static void check_head(const struct delta *d, const batch *b, int64_t head, int64_t repeat, double *states) {
  double *answer = calloc((size_t)d->d_v + 1, sizeof *answer);
  assert_non_null(answer);
  for (int64_t t = 0; t < b->tokens; t++) {
    int64_t sequence = sequence_of(b, t), slot = sequence < 0 ? -1 : slot_of(b, sequence);
    double *s = states + ((slot * d->k_heads + head) * d->repeats + repeat) * d->d_v * d->d_k;
    if (slot >= 0) {
      definition(d, t, head, repeat, s, answer);
    } else {
      memset(answer, 0, (size_t)d->d_v * sizeof *answer);
    }
    for (int64_t c = 0; c < d->d_v; c++) {
      int64_t place = at3(&d->out.tensor, t, head, repeat) + c;
      if (sequence < 0) {
        assert_true(operand_is_poison(&d->out, place));
      } else {
        assert_close(RDNA_F32, operand_get(&d->out, place), answer[c], slot < 0 ? 0 : delta_error(d, 70), "out", place);
      }
    }
  }
  free(answer);
}

static void gated_delta_matches_double(void **test_state) {
  static const int64_t keys[] = {128, 4, 256, 20, 128, 64, 100};
  for (int n = 0; n < 28; n++) {
    batch b = random_batch(n, n % 2 ? 4 : 40);
    struct delta d =
        make_delta(b.tokens, b.slot_count, 1 + below(3), 1 + below(3), keys[n % 7], n % 3 ? 1 + below(40) : 32);
    if (n % 5 == 4) d.options.epsilon = 3.0f;
    double *states = values_of(&d.state);
    run_delta(&d, &b, 0, b.tokens);
    operand_download(&d.out);
    operand_download(&d.state);
    for (int64_t h = 0; h < d.k_heads; h++) {
      for (int64_t r = 0; r < d.repeats; r++) check_head(&d, &b, h, r, states);
    }
    for (int64_t i = 0; i < operand_span(&d.state); i++) {
      assert_close(RDNA_F32, operand_get(&d.state, i), states[i], delta_error(&d, 70), "state", i);
    }
    free(states);
    free_delta(&d);
    free_batch(&b);
  }
}

/* A state that is not asked for stays as it is, to the bit, and so does one that a sequence without tokens has. */
static void other_slots_stay(void **test_state) {
  batch b = make_batch(3, (int64_t[]){2, 0, 1}, 0, 0); /* slots 3, 2, 1 of 5 */
  struct delta d = make_delta(b.tokens, b.slot_count, 2, 1, 128, 20);
  float *before = floats_of(&d.state);
  run_delta(&d, &b, 0, b.tokens);
  operand_download(&d.state);
  size_t size = d.state.bytes / (size_t)b.slot_count;
  for (size_t slot = 0; slot < 5; slot++) {
    bool same = memcmp((uint8_t *)before + slot * size, d.state.host + slot * size, size) == 0;
    assert_int_equal(same, slot != 1 && slot != 3);
  }
  free(before);
  free_delta(&d);
  free_batch(&b);
}

/* A prompt and its tokens in several calls, the last of them one by one, give the same bits. */
static void pieces_give_the_bits_of_the_whole(void **test_state) {
  static const int64_t pieces[] = {33, 3, 40, 1, 1};
  static const int64_t tokens = 78, d_k[] = {128, 36};
  for (int n = 0; n < 2; n++) {
    struct delta d = make_delta(tokens, 3, 2, 2, d_k[n], 40);
    operand start = make(5, d.state.tensor.shape, NULL, 0.5);
    float *out[2], *state[2];
    for (int turn = 0; turn < 2; turn++) {
      assert_ok(rdna_copy_on_device(stream, d.state.tensor.data, start.tensor.data, start.bytes));
      for (int64_t i = 0, at = 0; i < (turn ? 5 : 1); i++) {
        int64_t count = turn ? pieces[i] : tokens;
        batch b = make_batch(1, &count, 0, 0);
        run_delta(&d, &b, at, count);
        at += count;
        free_batch(&b);
      }
      out[turn] = floats_of(&d.out), state[turn] = floats_of(&d.state);
    }
    assert_memory_equal(out[0], out[1], d.out.bytes);
    assert_memory_equal(state[0], state[1], d.state.bytes);
    for (int turn = 0; turn < 2; turn++) free(out[turn]), free(state[turn]);
    operand_free(&start);
    free_delta(&d);
  }
}

/* Starts before the first token or behind the last mean the tokens that there are. */
static void starts_outside_are_cut(void **test_state) {
  batch b = make_batch(2, (int64_t[]){2, 1}, 0, 0);
  struct delta d = make_delta(b.tokens, b.slot_count, 1, 2, 128, 9);
  operand x = make(2, (int64_t[]){3, 5}, NULL, 1), weight = make(2, (int64_t[]){5, 3}, NULL, 1);
  operand convolved = make(2, (int64_t[]){3, 5}, NULL, 0);
  float *out[2], *row[2];
  for (int turn = 0; turn < 2; turn++) {
    operand start = make(5, d.state.tensor.shape, NULL, 0), inputs = make(3, (int64_t[]){b.slot_count, 5, 2}, NULL, 0);
    assert_ok(rdna_fill_bytes(stream, start.tensor.data, 0, start.bytes));
    assert_ok(rdna_fill_bytes(stream, inputs.tensor.data, 0, inputs.bytes));
    assert_ok(rdna_copy_on_device(stream, d.state.tensor.data, start.tensor.data, start.bytes));
    for (int i = 0; turn && i < 3; i++) operand_set(&b.starts, i, (double)(int[]){-2, 2, 9}[i]);
    operand_upload(&b.starts);
    const rdna_sequences sequences = given(&b);
    run_delta(&d, &b, 0, b.tokens);
    assert_ok(rdna_op_causal_conv(stream, &sequences, &x.tensor, &weight.tensor, RDNA_ACTIVATION_NONE, &inputs.tensor,
                                  &convolved.tensor));
    out[turn] = floats_of(&d.out), row[turn] = floats_of(&convolved);
    operand_free(&start);
    operand_free(&inputs);
  }
  assert_memory_equal(out[0], out[1], d.out.bytes);
  assert_memory_equal(row[0], row[1], convolved.bytes);
  for (int turn = 0; turn < 2; turn++) free(out[turn]), free(row[turn]);
  operand *all[] = {&x, &weight, &convolved};
  for (int i = 0; i < 3; i++) operand_free(all[i]);
  free_delta(&d);
  free_batch(&b);
}

/* ---- gates ---- */

/* (tokens, heads, d), perhaps the second half of heads of 2 d, as gates are in Qwen's projections of q. */
static operand make_gate(rdna_dtype dtype, const int64_t *shape, int64_t gap, bool halves) {
  int64_t stride[] = {0, halves ? 2 * shape[2] : shape[2] + gap, 1};
  stride[0] = shape[1] * stride[1] + gap;
  operand o = operand_make(dtype, 3, shape, stride, halves ? shape[2] : 0);
  return o;
}

static void check_gated(const operand *out, const double *x, const operand *x_at, const double *gate,
                        const operand *gate_at, const operand *weight, double epsilon) {
  const int64_t *shape = out->tensor.shape;
  for (int64_t row = 0; row < shape[0] * shape[1]; row++) {
    int64_t t = row / shape[1], h = row % shape[1];
    double squares = 0;
    for (int64_t i = 0; i < shape[2]; i++) squares += pow(x[at3(&x_at->tensor, t, h, i)], 2);
    double norm = 1 / sqrt(squares / (double)shape[2] + epsilon);
    for (int64_t i = 0; i < shape[2]; i++) {
      double g = gate[at3(&gate_at->tensor, t, h, gate_at->tensor.shape[2] > 1 ? i : 0)];
      double want = x[at3(&x_at->tensor, t, h, i)] * logistic(g);
      if (epsilon >= 0) want *= norm * g * (weight ? operand_get(weight, i) : 1);
      int64_t place = at3(&out->tensor, t, h, i);
      assert_close(out->tensor.dtype, operand_get(out, place), want, fabs(want) * 0x1p-19, "out", place);
    }
  }
}

static void gates_match_double(void **test_state) {
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
  for (int n = 0; n < 48; n++) {
    const bool norm = n % 2, one_gate = !norm && n % 6 == 2;
    const int64_t sizes[] = {128, 256, 1, 2048, 1 + below(300), 4 * (1 + below(80))};
    int64_t shape[] = {1 + below(5), 1 + below(5), sizes[n / 2 % 6]}, size = shape[2], gap = n % 4 == 3 ? 1 : 4;
    int64_t gate_shape[] = {shape[0], shape[1], one_gate ? 1 : size};
    operand x = make_gate(RDNA_F32, shape, gap, false), weight = make(1, &size, NULL, 1);
    operand gate = make_gate(RDNA_F32, gate_shape, gap, n % 3 == 0);
    operand own = make_gate(types[n % 3], shape, gap, false);
    operand_fill(&x, 1), operand_fill(&gate, 3), operand_upload(&own);
    double *x_before = values_of(&x), *gate_before = values_of(&gate);
    operand *out = n % 3 == 0 && n % 4 == 1 ? &x : n % 3 == 0 && n % 4 == 2 && !one_gate ? &gate : &own;
    const operand *by = n % 8 == 1 ? NULL : &weight;
    assert_ok(norm
                  ? rdna_op_rms_norm_gated(stream, &x.tensor, &gate.tensor, by ? &by->tensor : NULL, 1e-3, &out->tensor)
                  : rdna_op_mul_sigmoid(stream, &x.tensor, &gate.tensor, &out->tensor));
    operand_download(out);
    check_gated(out, x_before, &x, gate_before, &gate, by, norm ? 1e-3 : -1);
    for (int64_t i = 0; out == &own && i < gap && shape[1] > 1; i++) assert_true(operand_is_poison(out, size + i));
    free(x_before);
    free(gate_before);
    operand *all[] = {&x, &gate, &own, &weight};
    for (int i = 0; i < 4; i++) operand_free(all[i]);
  }
}

/* ---- the cells of LSTM and GRU ---- */

static operand make_rows(rdna_dtype dtype, int64_t rows, int64_t n, int64_t gap, double deviation) {
  operand o = operand_make(dtype, 2, (int64_t[]){rows, n}, (int64_t[]){n + gap, 1}, gap);
  deviation > 0 ? operand_fill(&o, deviation) : operand_upload(&o);
  return o;
}
static double at2(const operand *o, int64_t row, int64_t i) { return operand_get(o, row * o->tensor.stride[0] + i); }
static void check2(const operand *o, int64_t row, int64_t i, double want, double error, const char *what) {
  const int64_t place = row * o->tensor.stride[0] + i;
  assert_close(o->tensor.dtype, operand_get(o, place), want, error, what, place);
}
static const rdna_dtype reals[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

static void lstm_cell_matches_double(void **test_state) {
  for (int turn = 0; turn < 24; turn++) {
    const rdna_dtype type = reals[turn % 4];
    const double unit = type == RDNA_F64 ? 0x1p-48 : 0x1p-19; /* of sums of five terms of about 10 */
    const int64_t rows = 1 + below(5), n = turn < 4 ? 257 : 1 + below(70), four = 4 * n, gap = below(3);
    operand input = make_rows(type, rows, four, gap, 1), hidden = make_rows(type, rows, four, gap, 1);
    operand b[2] = {make_rows(type, 1, four, 0, 1), make_rows(type, 1, four, 0, 1)},
            c = make_rows(type, rows, n, gap, 1);
    operand h_out = make_rows(type, rows, n, gap, 0), c_out = make_rows(type, rows, n, 2, 0);
    operand own = make_rows(type, rows, four, gap, 0), *gates = turn % 3 == 1 ? &input : turn % 3 == 2 ? &hidden : &own;
    const bool biased = turn % 2;
    double *x = values_of(&input), *y = values_of(&hidden);
    rdna_tensor line[2];
    for (int i = 0; i < 2; i++) line[i] = rdna_tensor_contiguous(b[i].tensor.data, type, 1, &four);
    assert_ok(rdna_op_lstm_cell(stream, &input.tensor, &hidden.tensor, biased ? &line[0] : NULL,
                                biased ? &line[1] : NULL, &c.tensor, &h_out.tensor, &c_out.tensor, &gates->tensor));
    operand_download(&h_out), operand_download(&c_out), operand_download(gates);
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t j = 0; j < n; j++) {
        double g[4];
        for (int64_t k = 0; k < 4; k++) {
          const int64_t i = k * n + j, place = row * input.tensor.stride[0] + i;
          g[k] = x[place] + y[place] + (biased ? operand_get(&b[0], i) + operand_get(&b[1], i) : 0);
          g[k] = k == 2 ? tanh(g[k]) : logistic(g[k]);
          check2(gates, row, i, g[k], unit, "gates");
        }
        const double next = g[1] * at2(&c, row, j) + g[0] * g[2];
        check2(&c_out, row, j, next, unit * (1 + fabs(at2(&c, row, j))), "c_out");
        check2(&h_out, row, j, g[3] * tanh(next), unit * (2 + fabs(at2(&c, row, j))), "h_out");
      }
      for (int64_t i = 0; i < 2 && row + 1 < rows; i++) assert_true(operand_is_poison(&c_out, row * (n + 2) + n + i));
    }
    free(x), free(y);
    operand *all[] = {&input, &hidden, &b[0], &b[1], &c, &h_out, &c_out, &own};
    for (int i = 0; i < 8; i++) operand_free(all[i]);
  }
}

/* What the step makes of the sums of its gates and of c, weighted: the gradient's definition is its differences. */
static double weighted(const double *sum, double c, double dh, double dc) {
  const double next = logistic(sum[1]) * c + logistic(sum[0]) * tanh(sum[2]);
  return dh * logistic(sum[3]) * tanh(next) + dc * next;
}

static void lstm_cell_backward_matches_differences(void **test_state) {
  for (int turn = 0; turn < 16; turn++) {
    const rdna_dtype type = reals[turn % 4];
    const int64_t rows = 1 + below(4), n = 1 + below(40), four = 4 * n, gap = below(3);
    operand sums = make_rows(RDNA_F64, rows, four, 0, 1), gates = make_rows(type, rows, four, gap, 0);
    operand c = make_rows(type, rows, n, gap, 1), next = make_rows(type, rows, n, gap, 0);
    operand dh = make_rows(type, rows, n, gap, 1), dc = make_rows(type, rows, n, gap, 1);
    operand dout = make_rows(type, rows, n, 0, 1);
    operand dgates = make_rows(type, rows, four, gap, 0), own = make_rows(type, rows, n, gap, 0);
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t j = 0; j < n; j++) {
        double g[4];
        for (int64_t k = 0; k < 4; k++) {
          const double v = at2(&sums, row, k * n + j);
          g[k] = k == 2 ? tanh(v) : logistic(v);
          operand_set(&gates, row * gates.tensor.stride[0] + k * n + j, g[k]);
        }
        operand_set(&next, row * next.tensor.stride[0] + j, g[1] * at2(&c, row, j) + g[0] * g[2]);
      }
    }
    operand_upload(&gates), operand_upload(&next);
    const bool of_h = turn / 4 != 1, of_c = turn / 4 != 2, of_out = turn % 3 != 0;
    double *before = values_of(&dc);
    operand *dc_out = turn / 4 == 3 ? &dc : &own;
    assert_ok(rdna_op_lstm_cell_backward(stream, of_h ? &dh.tensor : NULL, of_out ? &dout.tensor : NULL,
                                         of_c ? &dc.tensor : NULL, &gates.tensor, &c.tensor, &next.tensor,
                                         &dgates.tensor, &dc_out->tensor));
    operand_download(&dgates), operand_download(dc_out);
    const double step = 0x1p-17; /* its square is what the differences are wrong by */
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t j = 0; j < n; j++) {
        double sum[4], in_h = (of_h ? at2(&dh, row, j) : 0) + (of_out ? at2(&dout, row, j) : 0),
                       in_c = of_c ? before[row * dc.tensor.stride[0] + j] : 0;
        const double at = at2(&c, row, j), size = (fabs(in_h) + fabs(in_c)) * (1 + fabs(at));
        const double error = size * (type == RDNA_F64 ? 0x1p-30 : type == RDNA_F32 ? 0x1p-19 : 8 * half_step(type, 1));
        for (int64_t k = 0; k < 4; k++) sum[k] = at2(&sums, row, k * n + j);
        for (int64_t k = 0; k < 4; k++) {
          double up[4], down[4];
          memcpy(up, sum, sizeof sum), memcpy(down, sum, sizeof sum);
          up[k] += step, down[k] -= step;
          const double want = (weighted(up, at, in_h, in_c) - weighted(down, at, in_h, in_c)) / (2 * step);
          check2(&dgates, row, k * n + j, want, error, "dgates");
        }
        const double want = (weighted(sum, at + step, in_h, in_c) - weighted(sum, at - step, in_h, in_c)) / (2 * step);
        check2(dc_out, row, j, want, error, "dc_out");
      }
    }
    free(before);
    operand *all[] = {&sums, &gates, &c, &next, &dh, &dout, &dc, &dgates, &own};
    for (int i = 0; i < 9; i++) operand_free(all[i]);
  }
}

/* What a step of a GRU makes of the thirds of its two rows and of h; |out| takes the gates and b_n. */
static double gru(const double *x, const double *y, double h, double *out) {
  const double r = logistic(x[0] + y[0]), z = logistic(x[1] + y[1]), fresh = tanh(x[2] + r * y[2]);
  if (out) out[0] = r, out[1] = z, out[2] = fresh, out[3] = y[2];
  return (1 - z) * fresh + z * h;
}

static void gru_cell_matches_double(void **test_state) {
  for (int turn = 0; turn < 24; turn++) {
    const rdna_dtype type = reals[turn % 4];
    const double unit = type == RDNA_F64 ? 0x1p-48 : 0x1p-19;
    const int64_t rows = 1 + below(5), n = turn < 4 ? 257 : 1 + below(70), three = 3 * n, gap = below(3);
    operand input = make_rows(type, rows, three, gap, 1), hidden = make_rows(type, rows, three, gap, 1);
    operand b[2] = {make_rows(type, 1, three, 0, 1), make_rows(type, 1, three, 0, 1)};
    operand h = make_rows(type, rows, n, gap, 1), h_out = make_rows(type, rows, n, 2, 0),
            inner = make_rows(type, rows, n, 2, 0);
    operand own = make_rows(type, rows, three, gap, 0);
    operand *gates = turn % 3 == 1 ? &input : turn % 3 == 2 ? &hidden : &own;
    const bool of_input = turn / 4 % 3 != 1, of_hidden = turn / 4 % 3 != 2; /* the biases */
    double *x = values_of(&input), *y = values_of(&hidden);
    rdna_tensor line[2];
    for (int i = 0; i < 2; i++) line[i] = rdna_tensor_contiguous(b[i].tensor.data, type, 1, &three);
    assert_ok(rdna_op_gru_cell(stream, &input.tensor, &hidden.tensor, of_input ? &line[0] : NULL,
                               of_hidden ? &line[1] : NULL, &h.tensor, &h_out.tensor, &gates->tensor, &inner.tensor));
    operand_download(&h_out), operand_download(&inner), operand_download(gates);
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t j = 0; j < n; j++) {
        double from[2][3], want[4];
        for (int64_t k = 0; k < 3; k++) {
          const int64_t i = k * n + j, place = row * input.tensor.stride[0] + i;
          from[0][k] = x[place] + (of_input ? operand_get(&b[0], i) : 0);
          from[1][k] = y[place] + (of_hidden ? operand_get(&b[1], i) : 0);
        }
        const double next = gru(from[0], from[1], at2(&h, row, j), want), size = 1 + fabs(want[3]);
        for (int64_t k = 0; k < 3; k++) check2(gates, row, k * n + j, want[k], unit * size, "gates");
        check2(&inner, row, j, want[3], unit * size, "inner");
        check2(&h_out, row, j, next, unit * (size + fabs(at2(&h, row, j))), "h_out");
      }
      for (int64_t i = 0; i < 2 && row + 1 < rows; i++) {
        assert_true(operand_is_poison(&h_out, row * (n + 2) + n + i));
        assert_true(operand_is_poison(&inner, row * (n + 2) + n + i));
      }
    }
    free(x), free(y);
    operand *all[] = {&input, &hidden, &b[0], &b[1], &h, &h_out, &inner, &own};
    for (int i = 0; i < 8; i++) operand_free(all[i]);
  }
}

static void gru_cell_backward_matches_differences(void **test_state) {
  for (int turn = 0; turn < 16; turn++) {
    const rdna_dtype type = reals[turn % 4];
    const int64_t rows = 1 + below(4), n = 1 + below(40), three = 3 * n, gap = below(3);
    operand sums[2] = {make_rows(RDNA_F64, rows, three, 0, 1), make_rows(RDNA_F64, rows, three, 0, 1)};
    operand gates = make_rows(type, rows, three, gap, 0), inner = make_rows(type, rows, n, gap, 0);
    operand h = make_rows(type, rows, n, gap, 1), dh = make_rows(type, rows, n, gap, 1),
            dout = make_rows(type, rows, n, 0, 1);
    operand d[2] = {make_rows(type, rows, three, gap, 0), make_rows(type, rows, three, 1, 0)};
    operand own = make_rows(type, rows, n, gap, 0);
    for (int64_t i = 0; i < rows * n; i++) {
      const int64_t row = i / n, j = i % n;
      double x[3], y[3], made[4];
      for (int64_t k = 0; k < 3; k++) x[k] = at2(&sums[0], row, k * n + j), y[k] = at2(&sums[1], row, k * n + j);
      gru(x, y, 0, made);
      for (int64_t k = 0; k < 3; k++) operand_set(&gates, row * gates.tensor.stride[0] + k * n + j, made[k]);
      operand_set(&inner, row * inner.tensor.stride[0] + j, made[3]);
    }
    operand_upload(&gates), operand_upload(&inner);
    const bool of_h = turn / 4 != 1, of_out = turn / 4 != 2;
    double *before = values_of(&dh);
    operand *dh_out = turn / 4 == 3 ? &dh : &own;
    assert_ok(rdna_op_gru_cell_backward(stream, of_h ? &dh.tensor : NULL, of_out ? &dout.tensor : NULL, &gates.tensor,
                                        &inner.tensor, &h.tensor, &d[0].tensor, &d[1].tensor, &dh_out->tensor));
    operand_download(&d[0]), operand_download(&d[1]), operand_download(dh_out);
    const double step = 0x1p-17; /* its square is what the differences are wrong by */
    for (int64_t i = 0; i < rows * n; i++) {
      const int64_t row = i / n, j = i % n;
      const double by = (of_h ? before[row * dh.tensor.stride[0] + j] : 0) + (of_out ? at2(&dout, row, j) : 0);
      const double at = at2(&h, row, j), size = fabs(by) * (1 + fabs(at)) * (1 + fabs(at2(&sums[1], row, 2 * n + j)));
      const double error = size * (type == RDNA_F64 ? 0x1p-30 : type == RDNA_F32 ? 0x1p-19 : 8 * half_step(type, 1));
      double of[2][3];
      for (int64_t k = 0; k < 6; k++) of[k / 3][k % 3] = at2(&sums[k / 3], row, k % 3 * n + j);
      for (int64_t k = 0; k < 6; k++) {
        double *moved = &of[k / 3][k % 3], was = *moved;
        *moved = was + step;
        const double up = gru(of[0], of[1], at, NULL);
        *moved = was - step;
        const double down = gru(of[0], of[1], at, NULL);
        *moved = was;
        check2(&d[k / 3], row, k % 3 * n + j, by * (up - down) / (2 * step), error, k < 3 ? "dinput" : "dhidden");
      }
      const double change = gru(of[0], of[1], at + step, NULL) - gru(of[0], of[1], at - step, NULL);
      check2(dh_out, row, j, by * change / (2 * step), error, "dh_out");
    }
    free(before);
    operand *all[] = {&sums[0], &sums[1], &gates, &inner, &h, &dh, &dout, &d[0], &d[1], &own};
    for (int i = 0; i < 10; i++) operand_free(all[i]);
  }
}

static void rnn_cell_backward_matches_double(void **test_state) {
  for (int turn = 0; turn < 24; turn++) {
    const rdna_dtype type = reals[turn % 4];
    const int64_t rows = 1 + below(4), n = turn < 4 ? 257 : 1 + below(40), gap = below(3);
    const bool relu = turn / 4 % 2, of_h = turn % 3 != 1, of_out = turn % 3 != 2;
    operand h_out = make_rows(type, rows, n, gap, 0.6), dh = make_rows(type, rows, n, gap, 1);
    operand dout = make_rows(type, rows, n, 1, 1), own = make_rows(type, rows, n, gap, 0);
    operand_set(&h_out, 0, 0), operand_set(&dh, 0, INFINITY), operand_set(&h_out, n - 1, NAN);
    operand_upload(&h_out), operand_upload(&dh);
    double *before = values_of(&dh);
    operand *dsum = turn / 8 == 1 ? &dh : &own;
    assert_ok(rdna_op_rnn_cell_backward(stream, relu ? RDNA_ACTIVATION_RELU : RDNA_ACTIVATION_TANH,
                                        of_h ? &dh.tensor : NULL, of_out ? &dout.tensor : NULL, &h_out.tensor,
                                        &dsum->tensor));
    operand_download(dsum);
    for (int64_t i = 0; i < rows * n; i++) {
      const int64_t row = i / n, j = i % n;
      const double d = (of_h ? before[row * dh.tensor.stride[0] + j] : 0) + (of_out ? at2(&dout, row, j) : 0);
      const double h = at2(&h_out, row, j), want = !relu ? d * (1 - h * h) : h <= 0 ? 0 : d;
      check2(dsum, row, j, want, (8 * fabs(d) + 1) * (type == RDNA_F64 ? 0x1p-50 : 0x1p-21), "dsum");
    }
    free(before);
    operand *all[] = {&h_out, &dh, &dout, &own};
    for (int i = 0; i < 4; i++) operand_free(all[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(causal_conv_matches_double),
      cmocka_unit_test(gated_delta_matches_double),
      cmocka_unit_test(other_slots_stay),
      cmocka_unit_test(pieces_give_the_bits_of_the_whole),
      cmocka_unit_test(starts_outside_are_cut),
      cmocka_unit_test(gates_match_double),
      cmocka_unit_test(lstm_cell_matches_double),
      cmocka_unit_test(lstm_cell_backward_matches_differences),
      cmocka_unit_test(gru_cell_matches_double),
      cmocka_unit_test(gru_cell_backward_matches_differences),
      cmocka_unit_test(rnn_cell_backward_matches_double),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
