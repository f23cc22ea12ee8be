/* Which implementation convolves: our kernels, or MIOpen where the tuner's database says that it is faster. MIOpen may
 * compile for seconds before its first run, so it is only measured when that was asked for (RDNA_TUNE=full). */
#include <stdio.h>
#include <string.h>

#include "base/deterministic.h"
#include "kernel/tuner.h"
#include "math/common/plan/scratch.h"
#include "math/conv/conv_miopen.h"

enum { OWN, MIOPEN, MAX_DIMS = 5 };

/* Compared by its bytes. Convolutions have few shapes, so each is a class of its own. */
typedef struct shape_class {
  int32_t mode, type, dims, groups, bias;
  int32_t x[MAX_DIMS], weight[MAX_DIMS], y[MAX_DIMS];
  int32_t x_stride[MAX_DIMS], weight_stride[MAX_DIMS], y_stride[MAX_DIMS];
  int32_t pad_before[3], stride[3], dilation[3];
} shape_class;

static shape_class class_of(const rdna__conv_call *call) {
  shape_class c;
  memset(&c, 0, sizeof c);
  c.mode = (int32_t)call->mode, c.type = (int32_t)call->x->dtype, c.dims = call->conv->spatial_dims;
  c.groups = (int32_t)call->conv->groups, c.bias = call->bias != NULL;
  const rdna_tensor *tensors[] = {call->x, call->weight, call->y};
  int32_t *sizes[] = {c.x, c.weight, c.y}, *strides[] = {c.x_stride, c.weight_stride, c.y_stride};
  for (int t = 0; t < 3; t++)
    for (int d = 0; d < tensors[t]->rank; d++)
      sizes[t][d] = (int32_t)tensors[t]->shape[d], strides[t][d] = (int32_t)tensors[t]->stride[d];
  for (int d = 0; d < c.dims; d++)
    c.pad_before[d] = (int32_t)call->conv->pad_before[d], c.stride[d] = (int32_t)call->conv->stride[d],
    c.dilation[d] = (int32_t)call->conv->dilation[d];
  return c;
}

static void describe_sizes(char text[RDNA__TUNER_SHAPE], char name, const int32_t *sizes, int count) {
  for (int i = 0; i < count; i++) {
    size_t used = strlen(text);
    snprintf(text + used, RDNA__TUNER_SHAPE - used, i ? "x%d" : " %c%d", i ? sizes[i] : name, sizes[i]);
  }
}

static void describe(const shape_class *c, char text[RDNA__TUNER_SHAPE]) {
  static const char *const modes[] = {"forward", "data", "weight"};
  snprintf(text, RDNA__TUNER_SHAPE, "%s %s", rdna_dtype_name((rdna_dtype)c->type), modes[c->mode]);
  describe_sizes(text, 'x', c->x, c->dims + 2);
  describe_sizes(text, 'w', c->weight, c->dims + 2);
  describe_sizes(text, 'p', c->pad_before, c->dims);
  describe_sizes(text, 's', c->stride, c->dims);
  describe_sizes(text, 'd', c->dilation, c->dims);
  size_t used = strlen(text);
  snprintf(text + used, RDNA__TUNER_SHAPE - used, " g%d%s%s%s%s", c->groups, c->bias ? " bias" : "",
           c->x_stride[1] == 1 ? " xlast" : "", c->weight_stride[1] == 1 ? " wlast" : "",
           c->y_stride[1] == 1 ? " ylast" : "");
}

static rdna_status run_id(rdna_stream *stream, const char *op_name, const rdna__conv_call *call, int id) {
  return id == MIOPEN ? rdna__conv_miopen_run(stream, call) : rdna__conv_own(stream, op_name, call);
}

typedef struct trial {
  rdna__scratch scratch;
  rdna__conv_call call;
  rdna_tensor out; /* as the real one, over scratch */
  size_t bytes;
} trial;

static rdna_status run_trial(void *context, int id) {
  trial *t = context;
  if (!t->out.data) RDNA_TRY(rdna__scratch_take(&t->scratch, t->bytes, &t->out.data));
  return run_id(t->scratch.stream, "conv", &t->call, id);
}

static void decide(rdna_stream *stream, const rdna__conv_call *call, const shape_class *class,
                   rdna__tuner_result *out_result) {
  rdna_device *device = rdna_stream_device(stream);
  char text[RDNA__TUNER_SHAPE], libraries[64];
  describe(class, text);
  rdna__vendor_text(device, RDNA__MIOPEN, libraries);
  const rdna_tensor *out = rdna__conv_out(call);
  trial t = {{.stream = stream, .holder = "tuner's results"}, *call, *out, 0};
  int64_t last = 0;
  for (int d = 0; d < out->rank; d++) last += (out->shape[d] - 1) * out->stride[d];
  t.bytes = (size_t)(last + 1) * rdna_dtype_block_bytes(out->dtype);
  t.out.data = NULL;
  *(call->mode == RDNA__CONV_FORWARD ? &t.call.y : call->mode == RDNA__CONV_DATA ? &t.call.x : &t.call.weight) = &t.out;
  rdna__tuner_question q = {.operator_name = "conv",
                            .shape = class,
                            .shape_size = sizeof *class,
                            .shape_text = text,
                            .families = RDNA__CONV_FAMILIES,
                            .libraries = libraries,
                            .count = 2,
                            .candidates = {{OWN, "own", false}, {MIOPEN, "miopen", true}},
                            .trial = run_trial,
                            .context = &t};
  rdna__tuner_decide(stream, &q, out_result);
  if (rdna__scratch_release(&t.scratch, RDNA_OK) != RDNA_OK) out_result->why = "rule";
}

rdna_status rdna__conv_run(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  rdna_device *device = rdna_stream_device(stream);
  rdna__tuner_result result = {OWN, "own", "only one", 0, "", 0};
  if (rdna__deterministic()) {
    result.why = "deterministic";
  } else if (!call->bias && call->activation == RDNA_ACTIVATION_NONE && rdna__vendor_handle(device, RDNA__MIOPEN)) {
    shape_class class = class_of(call);
    if (!rdna__tuner_find(device, "conv", &class, sizeof class, &result)) decide(stream, call, &class, &result);
  }
  rdna_status status = run_id(stream, op_name, call, result.id);
  if (status == RDNA_UNSUPPORTED && result.id == MIOPEN) {
    result.implementation = "own", result.why = "rule";
    status = run_id(stream, op_name, call, OWN);
  }
  rdna__choice_note(op_name, result.implementation, result.why);
  return status;
}
