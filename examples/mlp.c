/* Trains a network of two hidden layers on three spirals of points, in C alone, until it tells them apart.
 *
 *     cc mlp.c $(pkg-config --cflags --libs rdna) -lm -o mlp */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rdna/device.h"
#include "rdna/graph.h"
#include "rdna/op/optim.h"

enum { CLASSES = 3, EACH = 100, POINTS = CLASSES * EACH, WIDTH = 64, LAYERS = 3, PARAMETERS = 2 * LAYERS, STEPS = 400 };

static const int64_t sizes[LAYERS + 1] = {2, WIDTH, WIDTH, CLASSES};
static const rdna_scalar none = {0, 0};

/* Ends the program with the sentence of a call that failed. */
static void check(rdna_status status) {
  if (status == RDNA_OK) return;
  fprintf(stderr, "%s\n", rdna_last_error());
  exit(1);
}

/* Numbers in [-1, 1), the same each time. */
static float draw(void) {
  static uint64_t state = 20260103;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (float)(state >> 40) / (1 << 23) - 1;
}

/* |points| (POINTS, 2) and |labels| (POINTS, CLASSES), 1 for the class of each and 0 for others. */
static void make_spirals(float *points, float *labels) {
  for (int i = 0; i < POINTS; i++) {
    int class = i % CLASSES;
    float far = (float)(i / CLASSES) / EACH, turn = 4 * far + 2.0944f * (float)class + 0.1f * draw();
    points[2 * i] = far * sinf(turn);
    points[2 * i + 1] = far * cosf(turn);
    for (int k = 0; k < CLASSES; k++) labels[CLASSES * i + k] = k == class;
  }
}

static rdna_array *make_weights(rdna_stream *stream, int64_t rows, int64_t cols) {
  float *values = malloc((size_t)(rows * cols) * sizeof *values), range = sqrtf(6 / (float)rows);
  if (!values) exit(1);
  for (int64_t i = 0; i < rows * cols; i++) values[i] = range * draw();
  rdna_array *made;
  check(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){rows, cols}, values, &made));
  free(values);
  return made;
}

/* relu(relu(x w + b) w + b) w + b */
static rdna_node *record_network(rdna_recorder *r, rdna_node *x, rdna_node *const *parameters) {
  for (int i = 0; i < LAYERS; i++) {
    x = rdna_record_matmul(r, x, parameters[2 * i]);
    x = rdna_record_zip(r, x, parameters[2 * i + 1], RDNA_ZIP_ADD, none, none);
    if (i + 1 < LAYERS) x = rdna_record_map(r, x, RDNA_MAP_RELU, none, none);
  }
  return x;
}

/* The mean over points of log(sum of exp(logits)) - the label's logit. */
static rdna_node *record_loss(rdna_recorder *r, rdna_node *logits, rdna_node *labels) {
  rdna_node *all = rdna_record_reduce(r, logits, RDNA_REDUCTION_LOGSUMEXP, 2, false, 0);
  rdna_node *its = rdna_record_zip(r, logits, labels, RDNA_ZIP_MUL, none, none);
  its = rdna_record_reduce(r, its, RDNA_REDUCTION_SUM, 2, false, 0);
  return rdna_record_reduce(r, rdna_record_zip(r, all, its, RDNA_ZIP_SUB, none, none), RDNA_REDUCTION_MEAN, 1, false,
                            0);
}

/* The share of points whose largest logit is the label's. */
static rdna_node *record_accuracy(rdna_recorder *r, rdna_node *logits, rdna_node *labels) {
  rdna_node *said = rdna_record_reduce(r, logits, RDNA_REDUCTION_ARGMAX, 2, false, 0);
  rdna_node *is = rdna_record_reduce(r, labels, RDNA_REDUCTION_ARGMAX, 2, false, 0);
  rdna_node *right = rdna_record_cast(r, rdna_record_compare(r, said, is, RDNA_COMPARE_EQ), RDNA_F32);
  return rdna_record_reduce(r, right, RDNA_REDUCTION_MEAN, 1, false, 0);
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
  rdna_stream *stream = rdna_device_default_stream(device);

  static float points[POINTS * 2], labels[POINTS * CLASSES];
  rdna_array *x, *target, *parameters[PARAMETERS], *states[PARAMETERS][2];
  make_spirals(points, labels);
  check(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){POINTS, 2}, points, &x));
  check(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){POINTS, CLASSES}, labels, &target));
  for (int i = 0; i < LAYERS; i++) {
    parameters[2 * i] = make_weights(stream, sizes[i], sizes[i + 1]);
    check(rdna_array_full(stream, RDNA_F32, 1, &sizes[i + 1], none, &parameters[2 * i + 1]));
  }

  /* what a step computes: the loss, and its gradient by each parameter */
  rdna_recorder *r;
  rdna_node *inputs[PARAMETERS], *outputs[1 + PARAMETERS], *accuracy;
  rdna_plan *step, *test;
  check(rdna_recorder_create(stream, &r));
  for (int i = 0; i < PARAMETERS; i++) {
    const rdna_tensor *tensor = rdna_array_tensor(parameters[i]);
    inputs[i] = rdna_record_input(r, tensor->dtype, tensor->rank, tensor->shape);
    for (int k = 0; k < 2; k++)
      check(rdna_array_full(stream, RDNA_F32, tensor->rank, tensor->shape, none, &states[i][k]));
  }
  rdna_node *labels_node = rdna_record_constant(r, target);
  rdna_node *logits = record_network(r, rdna_record_constant(r, x), inputs);
  outputs[0] = record_loss(r, logits, labels_node);
  accuracy = record_accuracy(r, logits, labels_node);
  check(rdna_recorder_status(r));
  check(rdna_record_gradients(r, outputs, 1, NULL, inputs, PARAMETERS, outputs + 1));
  check(rdna_plan_create(outputs, 1 + PARAMETERS, inputs, PARAMETERS, &step));
  check(rdna_plan_create(&accuracy, 1, inputs, PARAMETERS, &test));
  rdna_recorder_release(r);

  rdna_array *results[1 + PARAMETERS];
  for (int at = 1; at <= STEPS; at++) {
    rdna_optim adam = {RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_ADAM, .learning_rate = 0.01f, .beta1 = 0.9f};
    rdna_optim_item items[PARAMETERS];
    adam.beta2 = 0.999f;
    adam.epsilon = 1e-8;
    adam.step = at;
    check(rdna_plan_run(step, parameters, PARAMETERS, results));
    for (int i = 0; i < PARAMETERS; i++)
      items[i] = (rdna_optim_item){.param = rdna_array_tensor(parameters[i]),
                                   .grad = rdna_array_tensor(results[1 + i]),
                                   .state = {rdna_array_tensor(states[i][0]), rdna_array_tensor(states[i][1])}};
    check(rdna_op_optim_step(stream, &adam, items, PARAMETERS, NULL, NULL));
    for (int i = 0; i < PARAMETERS; i++) rdna_array_release(results[1 + i]);
    float loss = value_of(results[0]);
    if (at == 1 || at % 100 == 0) printf("step %d: loss %.4f\n", at, (double)loss);
  }
  check(rdna_plan_run(test, parameters, PARAMETERS, results));
  float right = value_of(results[0]);
  printf("%.1f %% of the points are told right\n", 100 * (double)right);

  rdna_plan_release(step);
  rdna_plan_release(test);
  for (int i = 0; i < PARAMETERS; i++) {
    rdna_array_release(parameters[i]);
    for (int k = 0; k < 2; k++) rdna_array_release(states[i][k]);
  }
  rdna_array_release(x);
  rdna_array_release(target);
  rdna_device_release(device);
  return right >= 0.97f ? 0 : 1;
}
