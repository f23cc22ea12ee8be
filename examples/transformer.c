/* Trains a small transformer to write what it has read in reverse, in C alone, until it does so for texts that it has
 * not seen.
 *
 *     cc transformer.c $(pkg-config --cflags --libs rdna) -lm -o transformer */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rdna/device.h"
#include "rdna/graph_neural.h"
#include "rdna/op/optim.h"

enum {
  DIGITS = 5,          /* of a text, which is read, then written in reverse */
  TOKENS = 2 * DIGITS, /* digits, a mark, and all but the last of the reverse */
  MARK = 10,           /* the token between */
  VOCABULARY = 11,
  BATCH = 48,
  WIDTH = 32,
  HEADS = 4,
  LAYERS = 2,
  STEPS = 150,
  IGNORED = -1, /* the target of what is read */
  MOST_PARAMETERS = 64
};

static const rdna_scalar none = {0, 0};

/* Parameters in the order in which the network asks for them: arrays, and the nodes that stand for them. */
typedef struct model {
  rdna_stream *stream;
  rdna_recorder *recorder;
  int count;
  rdna_array *values[MOST_PARAMETERS], *states[MOST_PARAMETERS][2];
  rdna_node *nodes[MOST_PARAMETERS];
} model;

/* Ends the program with the sentence of a call that failed. */
static void check(rdna_status status) {
  if (status == RDNA_OK) return;
  fprintf(stderr, "%s\n", rdna_last_error());
  exit(1);
}

/* Random bits, the same each time. */
static uint32_t draw(void) {
  static uint64_t state = 20260103;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* A new parameter, uniform in |mean| - |range| to |mean| + |range|. */
static rdna_node *add_parameter(model *m, int rank, const int64_t *shape, float mean, float range) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  float *values = malloc((size_t)count * sizeof *values);
  if (!values || m->count == MOST_PARAMETERS) exit(1);
  for (int64_t i = 0; i < count; i++) values[i] = mean + range * ((float)draw() / (1u << 30) - 1);
  check(rdna_array_from_host(m->stream, RDNA_F32, rank, shape, values, &m->values[m->count]));
  for (int i = 0; i < 2; i++) check(rdna_array_full(m->stream, RDNA_F32, rank, shape, none, &m->states[m->count][i]));
  free(values);
  m->nodes[m->count] = rdna_record_input(m->recorder, RDNA_F32, rank, shape);
  return m->nodes[m->count++];
}

static rdna_node *add_matrix(model *m, int64_t rows, int64_t cols) {
  return add_parameter(m, 2, (int64_t[]){rows, cols}, 0, sqrtf(3 / (float)rows));
}

static rdna_node *plus(model *m, rdna_node *a, rdna_node *b) {
  return rdna_record_zip(m->recorder, a, b, RDNA_ZIP_ADD, none, none);
}

static rdna_node *normalize(model *m, rdna_node *x) {
  int64_t width = WIDTH;
  rdna_node *weight = add_parameter(m, 1, &width, 1, 0), *bias = add_parameter(m, 1, &width, 0, 0);
  return rdna_record_layer_norm(m->recorder, x, weight, bias, 1e-5);
}

/* x w, as (batch, heads, tokens, width / heads) */
static rdna_node *project(model *m, rdna_node *x) {
  rdna_node *y = rdna_record_matmul(m->recorder, x, add_matrix(m, WIDTH, WIDTH));
  y = rdna_record_reshape(m->recorder, y, 4, (int64_t[]){BATCH, TOKENS, HEADS, WIDTH / HEADS});
  return rdna_record_permute(m->recorder, y, (int[]){0, 2, 1, 3});
}

static rdna_node *attend(model *m, rdna_node *x) {
  rdna_recorder *r = m->recorder;
  rdna_node *q = project(m, x), *k = project(m, x), *v = project(m, x);
  rdna_node *y = rdna_record_attention(r, q, k, v, 1 / sqrt((double)WIDTH / HEADS), true);
  y = rdna_record_reshape(r, rdna_record_permute(r, y, (int[]){0, 2, 1, 3}), 3, (int64_t[]){BATCH, TOKENS, WIDTH});
  return rdna_record_matmul(r, y, add_matrix(m, WIDTH, WIDTH));
}

static rdna_node *feed_forward(model *m, rdna_node *x) {
  int64_t inner = 4 * WIDTH, width = WIDTH;
  rdna_node *y = rdna_record_matmul(m->recorder, x, add_matrix(m, width, inner));
  y = rdna_record_map(m->recorder, plus(m, y, add_parameter(m, 1, &inner, 0, 0)), RDNA_MAP_GELU_TANH, none, none);
  y = rdna_record_matmul(m->recorder, y, add_matrix(m, inner, width));
  return plus(m, y, add_parameter(m, 1, &width, 0, 0));
}

/* Logits (batch * tokens, vocabulary) of |ids| (batch, tokens). */
static rdna_node *record_network(model *m, rdna_node *ids) {
  rdna_node *table = add_parameter(m, 2, (int64_t[]){VOCABULARY, WIDTH}, 0, 0.5f);
  rdna_node *places = add_parameter(m, 2, (int64_t[]){TOKENS, WIDTH}, 0, 0.5f);
  rdna_node *x = plus(m, rdna_record_embedding(m->recorder, table, ids), places);
  for (int i = 0; i < LAYERS; i++) {
    x = plus(m, x, attend(m, normalize(m, x)));
    x = plus(m, x, feed_forward(m, normalize(m, x)));
  }
  x = rdna_record_matmul(m->recorder, normalize(m, x), add_matrix(m, WIDTH, VOCABULARY));
  return rdna_record_reshape(m->recorder, x, 2, (int64_t[]){BATCH * TOKENS, VOCABULARY});
}

/* Random texts, |ids| (batch, tokens), and the token that follows each place of what is written, |targets|. */
static void make_texts(model *m, rdna_array **ids, rdna_array **targets) {
  int64_t read[BATCH][TOKENS], next[BATCH * TOKENS];
  for (int b = 0; b < BATCH; b++) {
    int64_t text[2 * DIGITS + 1];
    for (int i = 0; i < DIGITS; i++) text[i] = text[2 * DIGITS - i] = draw() % 10;
    text[DIGITS] = MARK;
    for (int i = 0; i < TOKENS; i++) {
      read[b][i] = text[i];
      next[b * TOKENS + i] = i < DIGITS ? IGNORED : text[i + 1];
    }
  }
  check(rdna_array_from_host(m->stream, RDNA_I64, 2, (int64_t[]){BATCH, TOKENS}, read, ids));
  check(rdna_array_from_host(m->stream, RDNA_I64, 1, (int64_t[]){BATCH * TOKENS}, next, targets));
}

/* The share of written tokens that are right. */
static rdna_node *record_accuracy(rdna_recorder *r, rdna_node *logits, rdna_node *targets) {
  rdna_node *said = rdna_record_reduce(r, logits, RDNA_REDUCTION_ARGMAX, 2, false, 0);
  rdna_node *right = rdna_record_cast(r, rdna_record_compare(r, said, targets, RDNA_COMPARE_EQ), RDNA_F32);
  rdna_node *share = rdna_record_reduce(r, right, RDNA_REDUCTION_MEAN, 1, false, 0);
  return rdna_record_map(r, share, RDNA_MAP_AFFINE, rdna_scalar_real((double)TOKENS / DIGITS), none);
}

static void update(model *m, int step, rdna_array *const *gradients) {
  rdna_optim adam = {RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_ADAM, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8};
  rdna_optim_item items[MOST_PARAMETERS];
  adam.learning_rate = 0.01f * fminf(1, 2 - 2 * (float)step / (STEPS + 1));
  adam.step = step;
  for (int i = 0; i < m->count; i++)
    items[i] = (rdna_optim_item){.param = rdna_array_tensor(m->values[i]),
                                 .grad = rdna_array_tensor(gradients[i]),
                                 .state = {rdna_array_tensor(m->states[i][0]), rdna_array_tensor(m->states[i][1])}};
  check(rdna_op_optim_step(m->stream, &adam, items, m->count, NULL, NULL));
}

static float value_of(rdna_array *array) {
  float value;
  check(rdna_array_to_host(array, &value, sizeof value));
  rdna_array_release(array);
  return value;
}

int main(void) {
  rdna_device *device;
  check(rdna_device_open("auto", &device));
  static model m;
  m.stream = rdna_device_default_stream(device);
  check(rdna_recorder_create(m.stream, &m.recorder));

  rdna_node *ids = rdna_record_input(m.recorder, RDNA_I64, 2, (int64_t[]){BATCH, TOKENS});
  rdna_node *targets = rdna_record_input(m.recorder, RDNA_I64, 1, (int64_t[]){BATCH * TOKENS});
  rdna_node *logits = record_network(&m, ids), *outputs[1 + MOST_PARAMETERS], *inputs[2 + MOST_PARAMETERS];
  rdna_node *accuracy = record_accuracy(m.recorder, logits, targets);
  rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT, RDNA_LOSS_REDUCTION_MEAN, IGNORED, 0, false, NULL};
  outputs[0] = rdna_record_cross_entropy(m.recorder, logits, targets, NULL, &options);
  check(rdna_recorder_status(m.recorder));
  check(rdna_record_gradients(m.recorder, outputs, 1, NULL, m.nodes, m.count, outputs + 1));
  inputs[0] = ids;
  inputs[1] = targets;
  for (int i = 0; i < m.count; i++) inputs[2 + i] = m.nodes[i];
  rdna_plan *step, *test;
  check(rdna_plan_create(outputs, 1 + m.count, inputs, 2 + m.count, &step));
  check(rdna_plan_create(&accuracy, 1, inputs, 2 + m.count, &test));
  rdna_recorder_release(m.recorder);
  printf("%d parameters; a step has %lld launches and holds %.1f MB\n", m.count, (long long)rdna_plan_steps(step),
         (double)rdna_plan_peak_bytes(step) / 1e6);

  rdna_array *given[2 + MOST_PARAMETERS], *results[1 + MOST_PARAMETERS];
  for (int i = 0; i < m.count; i++) given[2 + i] = m.values[i];
  for (int at = 1; at <= STEPS; at++) {
    make_texts(&m, &given[0], &given[1]);
    check(rdna_plan_run(step, given, 2 + m.count, results));
    update(&m, at, results + 1);
    for (int i = 0; i < m.count; i++) rdna_array_release(results[1 + i]);
    float loss = value_of(results[0]);
    if (at == 1 || at % 50 == 0) printf("step %d: loss %.4f\n", at, (double)loss);
    for (int i = 0; i < 2; i++) rdna_array_release(given[i]);
  }
  make_texts(&m, &given[0], &given[1]);
  check(rdna_plan_run(test, given, 2 + m.count, results));
  float right = value_of(results[0]);
  printf("%.1f %% of the digits are right\n", 100 * (double)right);

  rdna_plan_release(step);
  rdna_plan_release(test);
  for (int i = 0; i < 2; i++) rdna_array_release(given[i]);
  for (int i = 0; i < m.count; i++) {
    rdna_array_release(m.values[i]);
    for (int k = 0; k < 2; k++) rdna_array_release(m.states[i][k]);
  }
  rdna_device_release(device);
  return right >= 0.97f ? 0 : 1;
}
