/* Convolution and the two that are its gradients, each of which has the others for its own. The numbers are those of an
 * rdna_convolution, then three sizes. */
#include <string.h>

#include "base/options.h"
#include "graph/build.h"
#include "graph/convolution_f64.h"
#include "graph/operands.h"
#include "rdna/graph_neural.h"

enum { NUMBERS = 17 };

static void write_numbers(const rdna_convolution *conv, const int64_t *sizes, int64_t *numbers) {
  memset(numbers, 0, NUMBERS * sizeof *numbers);
  numbers[0] = conv->spatial_dims;
  numbers[1] = conv->groups;
  for (int d = 0; d < conv->spatial_dims; d++) {
    numbers[2 + d] = conv->stride[d];
    numbers[5 + d] = conv->pad_before[d];
    numbers[8 + d] = conv->pad_after[d];
    numbers[11 + d] = conv->dilation[d];
    if (sizes) numbers[14 + d] = sizes[d];
  }
}

static rdna_convolution read_numbers(const rdna__attributes *a) {
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = (int)a->numbers[0], .groups = a->numbers[1]};
  for (int d = 0; d < conv.spatial_dims; d++) {
    conv.stride[d] = a->numbers[2 + d];
    conv.pad_before[d] = a->numbers[5 + d];
    conv.pad_after[d] = a->numbers[8 + d];
    conv.dilation[d] = a->numbers[11 + d];
  }
  return conv;
}

static rdna_node *record(rdna_recorder *r, const rdna__operator *op, const rdna_convolution *conv, const int64_t *sizes,
                         rdna_node *const *inputs, int input_count) {
  int64_t numbers[NUMBERS];
  write_numbers(conv, sizes, numbers);
  return rdna__record(r, op, &(rdna__attributes){.number_count = NUMBERS, .numbers = numbers}, inputs, input_count);
}

/* The shape with |channels| and spatial sizes in the places behind the first. */
static rdna__type with_sizes(const rdna__type *like, int64_t channels, const int64_t *sizes) {
  rdna__type type = *like;
  type.shape[1] = channels;
  memcpy(type.shape + 2, sizes, (size_t)(type.rank - 2) * sizeof *sizes);
  return type;
}

/* ---- y from x and the weight ---- */

static rdna_status infer_conv(const rdna__making *m, rdna__type *out) {
  const rdna__type *x = &m->inputs[0]->type, *w = &m->inputs[1]->type;
  const rdna__type *bias = m->input_count > 2 ? &m->inputs[2]->type : NULL;
  rdna_convolution conv = read_numbers(m->attributes);
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  bool fits = x->rank == conv.spatial_dims + 2 && w->rank == x->rank && x->shape[1] == w->shape[1] * conv.groups &&
              w->shape[0] % conv.groups == 0 && (!bias || (bias->rank == 1 && bias->shape[0] == w->shape[0]));
  int64_t sizes[3] = {0};
  for (int d = 0; d < conv.spatial_dims && fits; d++) {
    int64_t room = x->shape[2 + d] + conv.pad_before[d] + conv.pad_after[d] - conv.dilation[d] * (w->shape[2 + d] - 1);
    fits = room >= 1;
    sizes[d] = (room - 1) / conv.stride[d] + 1;
  }
  if (!fits)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "conv: x %s, weight %s and bias of %lld do not fit with %d spatial dimensions and %lld groups",
                      rdna__type_text(x, first), rdna__type_text(w, second),
                      (long long)(bias && bias->rank == 1 ? bias->shape[0] : 0), conv.spatial_dims,
                      (long long)conv.groups);
  *out = with_sizes(x, w->shape[0], sizes);
  return RDNA_OK;
}

static rdna_status run_activated(const rdna_node *node, rdna_array *const *inputs, rdna_activation activation,
                                 rdna_array **out) {
  rdna__operands o;
  rdna_convolution conv = read_numbers(&node->attributes);
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(
      &o, rdna_op_conv_activate(node->stream, &conv, o.in[0], o.in[1], o.in[2], activation, o.out[0]), out);
}
static rdna_status run_conv(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  return run_activated(node, inputs, RDNA_ACTIVATION_NONE, out);
}

static void gradient_conv(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_convolution conv = read_numbers(&node->attributes);
  rdna_node *x = node->inputs[0], *w = node->inputs[1], *g = upstream[0];
  out[0] = record(r, &rdna__operator_conv_data, &conv, x->type.shape + 2, (rdna_node *[]){g, w}, 2);
  out[1] = record(r, &rdna__operator_conv_weight, &conv, w->type.shape + 2, (rdna_node *[]){g, x}, 2);
  uint32_t all_but_channels = ((1u << node->type.rank) - 1) & ~2u;
  if (node->input_count > 2) out[2] = rdna_record_reduce(r, g, RDNA_REDUCTION_SUM, all_but_channels, false, 0);
}

const rdna__operator rdna__operator_conv = {
    .name = "conv", .infer = infer_conv, .run = run_conv, .run_activated = run_activated, .gradient = gradient_conv};

/* ---- x from y and the weight; the sizes are x's ---- */

static rdna_status infer_data(const rdna__making *m, rdna__type *out) {
  const rdna__type *y = &m->inputs[0]->type, *w = &m->inputs[1]->type;
  *out = with_sizes(y, w->shape[1] * m->attributes->numbers[1], m->attributes->numbers + 14);
  return RDNA_OK;
}
static rdna_status run_data(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_convolution conv = read_numbers(&node->attributes);
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_conv_backward_data(node->stream, &conv, o.in[0], o.in[1], NULL, o.out[0]), out);
}
static void gradient_data(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_convolution conv = read_numbers(&node->attributes);
  rdna_node *y = node->inputs[0], *w = node->inputs[1], *g = upstream[0];
  out[0] = record(r, &rdna__operator_conv, &conv, NULL, (rdna_node *[]){g, w}, 2);
  out[1] = record(r, &rdna__operator_conv_weight, &conv, w->type.shape + 2, (rdna_node *[]){y, g}, 2);
}
const rdna__operator rdna__operator_conv_data = {
    .name = "conv_data", .infer = infer_data, .run = run_data, .gradient = gradient_data};

/* ---- the weight from y and x; the sizes are the window's ---- */

static rdna_status infer_weight(const rdna__making *m, rdna__type *out) {
  const rdna__type *y = &m->inputs[0]->type, *x = &m->inputs[1]->type;
  *out = with_sizes(x, x->shape[1] / m->attributes->numbers[1], m->attributes->numbers + 14);
  out->shape[0] = y->shape[1];
  return RDNA_OK;
}
static rdna_status run_weight(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  rdna__operands o;
  rdna_convolution conv = read_numbers(&node->attributes);
  RDNA_TRY(rdna__operands_init(&o, node, inputs, 1));
  return rdna__operands_end(&o, rdna_op_conv_backward_weight(node->stream, &conv, o.in[0], o.in[1], o.out[0]), out);
}
static void gradient_weight(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_convolution conv = read_numbers(&node->attributes);
  rdna_node *y = node->inputs[0], *x = node->inputs[1], *g = upstream[0];
  out[0] = record(r, &rdna__operator_conv, &conv, NULL, (rdna_node *[]){x, g}, 2);
  out[1] = record(r, &rdna__operator_conv_data, &conv, x->type.shape + 2, (rdna_node *[]){y, g}, 2);
}
const rdna__operator rdna__operator_conv_weight = {
    .name = "conv_weight", .infer = infer_weight, .run = run_weight, .gradient = gradient_weight};

/* ---- the public face ---- */

static rdna_node *with_bias(rdna_recorder *r, rdna_node *y, rdna_node *bias) {
  int64_t spread[RDNA_MAX_RANK] = {1, 0, 1, 1, 1};
  if (!bias || !y) return y;
  spread[1] = y->type.shape[1];
  return add(r, y, rdna_record_reshape(r, bias, y->type.rank, spread));
}

static rdna_status read_description(const char *name, const rdna_convolution *given, rdna_convolution *conv) {
  const int64_t most = 1 << 28; /* so that sums of a few cannot overflow */
  RDNA_TRY(RDNA__OPTIONS(name, "conv", given, conv));
  if (conv->spatial_dims < 1 || conv->spatial_dims > 3 || conv->groups < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %d spatial dimensions and %lld groups; there are 1 to 3, and a group",
                      name, conv->spatial_dims, (long long)conv->groups);
  for (int d = 0; d < conv->spatial_dims; d++)
    if (conv->stride[d] < 1 || conv->dilation[d] < 1 || conv->pad_before[d] < 0 || conv->pad_after[d] < 0 ||
        conv->stride[d] > most || conv->dilation[d] > most || conv->pad_before[d] > most || conv->pad_after[d] > most)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: stride and dilation are at least 1, padding at least 0, and all at most 2^28", name);
  return RDNA_OK;
}

/* Whether something is missing; casts |inputs| to the first's type. */
static bool stopped(rdna_recorder *r, const char *name, rdna_node **inputs, int count, const rdna_convolution *given,
                    rdna_convolution *conv) {
  if (rdna__record_stopped(r, name, inputs, count)) return true;
  rdna_status status = read_description(name, given, conv);
  if (status != RDNA_OK) rdna__record_failure(r, status);
  for (int i = 1; i < count; i++) inputs[i] = rdna_record_cast(r, inputs[i], inputs[0]->type.dtype);
  return status != RDNA_OK;
}

rdna_node *rdna_record_conv(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                            const rdna_convolution *conv) {
  rdna_node *inputs[] = {x, weight, bias};
  rdna_convolution known;
  int count = bias ? 3 : 2;
  if (stopped(r, "conv", inputs, count, conv, &known)) return NULL;
  rdna_node *made = record(r, &rdna__operator_conv, &known, NULL, inputs, count);
  if (!made || x->type.dtype != RDNA_F64) return made;
  return with_bias(r, rdna__compose_conv(r, inputs[0], inputs[1], &known, &made->type), inputs[2]);
}

rdna_node *rdna_record_conv_transpose(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                                      const rdna_convolution *given, const int64_t *more) {
  rdna_node *inputs[] = {x, weight, bias};
  rdna_convolution known, *conv = &known;
  if (stopped(r, "conv_transpose", inputs, bias ? 3 : 2, given, conv)) return NULL;
  const rdna__type *of_x = &x->type, *of_w = &weight->type;
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  bool fits = of_x->rank == conv->spatial_dims + 2 && of_w->rank == of_x->rank && of_x->shape[1] == of_w->shape[0];
  int64_t sizes[3] = {0};
  for (int d = 0; d < conv->spatial_dims && fits; d++) {
    int64_t extra = more ? more[d] : 0;
    sizes[d] = (of_x->shape[2 + d] - 1) * conv->stride[d] - conv->pad_before[d] - conv->pad_after[d] +
               conv->dilation[d] * (of_w->shape[2 + d] - 1) + 1 + extra;
    fits = extra >= 0 && (extra < conv->stride[d] || extra == 0) && sizes[d] >= 1;
  }
  fits = fits && of_x->shape[1] % conv->groups == 0;
  if (!fits)
    return rdna__record_failure(
        r, rdna__fail(RDNA_INVALID_ARGUMENT, "conv_transpose: x %s and weight %s do not fit with %d spatial dimensions",
                      rdna__type_text(of_x, first), rdna__type_text(of_w, second), conv->spatial_dims));
  rdna_node *y = of_x->dtype == RDNA_F64 ? rdna__compose_conv_transpose(r, inputs[0], inputs[1], conv, sizes)
                                         : record(r, &rdna__operator_conv_data, conv, sizes, inputs, 2);
  return with_bias(r, y, bias ? inputs[2] : NULL);
}
