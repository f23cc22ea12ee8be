/* Pooling. The numbers are those of an rdna_pooling, then three sizes. */
#include <string.h>

#include "base/options.h"
#include "graph/build.h"
#include "graph/operands.h"
#include "rdna/graph_neural.h"

enum { NUMBERS = 22 };

static void write_numbers(const rdna_pooling *pooling, const int64_t *sizes, int64_t *numbers) {
  memset(numbers, 0, NUMBERS * sizeof *numbers);
  numbers[0] = pooling->spatial_dims;
  numbers[1] = pooling->ceil;
  numbers[2] = pooling->count_padding;
  numbers[3] = pooling->divisor;
  for (int d = 0; d < pooling->spatial_dims; d++) {
    numbers[4 + d] = pooling->window[d];
    numbers[7 + d] = pooling->stride[d];
    numbers[10 + d] = pooling->pad_before[d];
    numbers[13 + d] = pooling->pad_after[d];
    numbers[16 + d] = pooling->dilation[d];
    if (sizes) numbers[19 + d] = sizes[d];
  }
}

static rdna_pooling read_numbers(const rdna__attributes *a) {
  rdna_pooling pooling = {RDNA_POOLING_INIT, .spatial_dims = (int)a->numbers[0], .ceil = a->numbers[1] != 0,
                          .count_padding = a->numbers[2] != 0, .divisor = a->numbers[3]};
  for (int d = 0; d < pooling.spatial_dims; d++) {
    pooling.window[d] = a->numbers[4 + d];
    pooling.stride[d] = a->numbers[7 + d];
    pooling.pad_before[d] = a->numbers[10 + d];
    pooling.pad_after[d] = a->numbers[13 + d];
    pooling.dilation[d] = a->numbers[16 + d];
  }
  return pooling;
}

/* |pooling| NULL: that of |from|. */
static rdna_node *record(rdna_recorder *r, const rdna__operator *op, const rdna_pooling *pooling, const rdna_node *from,
                         const int64_t *sizes, rdna_node *const *inputs, int count) {
  int64_t numbers[NUMBERS];
  rdna_pooling same = {RDNA_POOLING_INIT};
  if (!pooling) same = read_numbers(&from->attributes);
  write_numbers(pooling ? pooling : &same, sizes, numbers);
  return rdna__record(r, op, &(rdna__attributes){.number_count = NUMBERS, .numbers = numbers}, inputs, count);
}

static rdna_status infer_windows(const rdna__making *m, rdna__type *out) {
  rdna_pooling pooling = read_numbers(m->attributes);
  char text[RDNA__ARRAY_TEXT];
  *out = m->inputs[0]->type;
  bool fits = out->rank == pooling.spatial_dims + 2;
  for (int d = 0; d < pooling.spatial_dims && fits; d++) {
    out->shape[2 + d] = rdna_pooling_size(&pooling, d, out->shape[2 + d]);
    fits = out->shape[2 + d] >= 1;
  }
  if (fits) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "pool: %s has no windows of %d spatial dimensions of this description",
                    rdna__type_text(&m->inputs[0]->type, text), pooling.spatial_dims);
}

/* The shape of what windows were taken of: the sizes. */
static rdna_status infer_back(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[0]->type;
  memcpy(out->shape + 2, m->attributes->numbers + 19, (size_t)(out->rank - 2) * sizeof *out->shape);
  return RDNA_OK;
}

static rdna_node *back(rdna_recorder *r, const rdna__operator *op, const rdna_node *node, rdna_node *const *inputs,
                       int count) {
  return record(r, op, NULL, node, node->inputs[0]->type.shape + 2, inputs, count);
}

/* ---- the largest; its second result says where ---- */

static rdna_status infer_max(const rdna__making *m, rdna__type *out) {
  RDNA_TRY(infer_windows(m, out));
  out[1] = out[0];
  out[1].dtype = RDNA_I64;
  return RDNA_OK;
}
static rdna_status run_max(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_pooling pooling = read_numbers(&node->attributes);
  RDNA_TRY(rdna__operands_init(&o, node, inputs, wanted | 1));
  return rdna__operands_end(&o, rdna_op_max_pool(node->stream, &pooling, o.in[0], o.out[0], o.out[1]), out);
}
static void gradient_max(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  if (upstream[0])
    out[0] = back(r, &rdna__operator_max_pool_back, node, (rdna_node *[]){upstream[0], rdna__part(r, node, 1)}, 2);
}
const rdna__operator rdna__operator_max_pool = {
    .name = "max_pool", .results = 2, .infer = infer_max, .run = run_max, .gradient = gradient_max};

static rdna_status run_max_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_pooling pooling = read_numbers(&node->attributes);
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_max_pool_backward(node->stream, &pooling, o.in[0], o.in[1], o.out[0]), out);
}
/* What was put at the places is taken from them. */
static void gradient_max_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  const rdna__type *of_x = &node->type, *of_out = &node->inputs[0]->type;
  int64_t plane[3] = {of_x->shape[0], of_x->shape[1], 1}, windows[3] = {of_x->shape[0], of_x->shape[1], 1};
  for (int d = 2; d < of_x->rank; d++) {
    plane[2] *= of_x->shape[d];
    windows[2] *= of_out->shape[d];
  }
  rdna_node *places = rdna_record_reshape(r, node->inputs[1], 3, windows);
  rdna_node *taken = rdna_record_gather(r, rdna_record_reshape(r, upstream[0], 3, plane), 2, places);
  out[0] = rdna_record_reshape(r, taken, of_out->rank, of_out->shape);
}
const rdna__operator rdna__operator_max_pool_back = {
    .name = "max_pool_back", .infer = infer_back, .run = run_max_back, .gradient = gradient_max_back};

/* ---- the average ---- */

static rdna_status run_average(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_pooling pooling = read_numbers(&node->attributes);
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_average_pool(node->stream, &pooling, o.in[0], o.out[0]), out);
}
static void gradient_average(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = back(r, &rdna__operator_average_pool_back, node, upstream, 1);
}
const rdna__operator rdna__operator_average_pool = {
    .name = "average_pool", .infer = infer_windows, .run = run_average, .gradient = gradient_average};

static rdna_status run_average_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted,
                                    rdna_array **out) {
  rdna__operands o;
  rdna_pooling pooling = read_numbers(&node->attributes);
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_average_pool_backward(node->stream, &pooling, o.in[0], o.out[0]), out);
}
static void gradient_average_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = record(r, &rdna__operator_average_pool, NULL, node, NULL, upstream, 1);
}
const rdna__operator rdna__operator_average_pool_back = {
    .name = "average_pool_back", .infer = infer_back, .run = run_average_back, .gradient = gradient_average_back};

/* ---- to a given number of windows: the numbers are the spatial sizes of the result ---- */

static rdna_status infer_adaptive(const rdna__making *m, rdna__type *out) {
  *out = m->inputs[0]->type;
  memcpy(out->shape + 2, m->attributes->numbers, (size_t)(out->rank - 2) * sizeof *out->shape);
  return rdna__array_check_shape(out->dtype, out->rank, out->shape);
}
static rdna_node *record_adaptive(rdna_recorder *r, const rdna__operator *op, const int64_t *sizes, rdna_node *x) {
  return rdna__record(r, op, &(rdna__attributes){.number_count = x ? x->type.rank - 2 : 0, .numbers = sizes}, &x, 1);
}
static rdna_status run_adaptive(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_adaptive_average_pool(node->stream, o.in[0], o.out[0]), out);
}
static void gradient_adaptive(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = record_adaptive(r, &rdna__operator_adaptive_back, node->inputs[0]->type.shape + 2, upstream[0]);
}
const rdna__operator rdna__operator_adaptive = {
    .name = "adaptive_average_pool", .infer = infer_adaptive, .run = run_adaptive, .gradient = gradient_adaptive};

static rdna_status run_adaptive_back(const rdna_node *node, rdna_array *const *inputs, unsigned wanted,
                                     rdna_array **out) {
  rdna__operands o;
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_adaptive_average_pool_backward(node->stream, o.in[0], o.out[0]), out);
}
static void gradient_adaptive_back(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  out[0] = record_adaptive(r, &rdna__operator_adaptive, node->inputs[0]->type.shape + 2, upstream[0]);
}
const rdna__operator rdna__operator_adaptive_back = {.name = "adaptive_average_pool_back",
                                                     .infer = infer_adaptive,
                                                     .run = run_adaptive_back,
                                                     .gradient = gradient_adaptive_back};

/* ---- the public face ---- */

static bool stopped(rdna_recorder *r, rdna_node *x, const rdna_pooling *given, rdna_pooling *pooling) {
  const int64_t most = 1 << 28; /* so that sums of a few cannot overflow */
  if (rdna__record_stopped(r, "pool", &x, 1)) return true;
  rdna_status status = RDNA__OPTIONS("pool", "pooling", given, pooling);
  bool fits = status == RDNA_OK && pooling->spatial_dims >= 1 && pooling->spatial_dims <= 3;
  for (int d = 0; fits && d < pooling->spatial_dims; d++)
    fits = pooling->window[d] >= 1 && pooling->stride[d] >= 1 && pooling->dilation[d] >= 1 &&
           pooling->pad_before[d] >= 0 && pooling->pad_after[d] >= 0 && pooling->window[d] <= most &&
           pooling->stride[d] <= most && pooling->dilation[d] <= most && pooling->pad_before[d] <= most &&
           pooling->pad_after[d] <= most;
  if (fits) return false;
  if (status == RDNA_OK)
    status = rdna__fail(RDNA_INVALID_ARGUMENT,
                        "pool: there are 1 to 3 spatial dimensions; windows, strides and dilations are at least 1, "
                        "padding at least 0, and all at most 2^28");
  rdna__record_failure(r, status);
  return true;
}

rdna_node *rdna_record_max_pool(rdna_recorder *r, rdna_node *x, const rdna_pooling *pooling) {
  rdna_pooling known;
  if (stopped(r, x, pooling, &known)) return NULL;
  return rdna__part(r, record(r, &rdna__operator_max_pool, &known, NULL, NULL, &x, 1), 0);
}

rdna_node *rdna_record_average_pool(rdna_recorder *r, rdna_node *x, const rdna_pooling *pooling) {
  rdna_pooling known;
  if (stopped(r, x, pooling, &known)) return NULL;
  return record(r, &rdna__operator_average_pool, &known, NULL, NULL, &x, 1);
}

rdna_node *rdna_record_adaptive_average_pool(rdna_recorder *r, rdna_node *x, const int64_t *sizes) {
  if (rdna__record_stopped(r, "adaptive_average_pool", &x, 1)) return NULL;
  char text[RDNA__ARRAY_TEXT];
  if (x->type.rank < 3 || x->type.rank > 5 || !sizes)
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT,
                      "adaptive_average_pool: needs sizes, and an array of (n, channels) and 1 to 3 more, not %s",
                      rdna__type_text(&x->type, text)));
  return record_adaptive(r, &rdna__operator_adaptive, sizes, x);
}
