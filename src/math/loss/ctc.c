/* Connectionist temporal classification and its gradient. */
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/loss/ctc_kernels.h"
#include "rdna/op/loss.h"

enum { ALPHA, POSTERIOR };
static const rdna__route routes[] = {
    [ALPHA] = {.name = "forward", .kernels = {"ctc_alpha"}, .when = "the loss: a group goes through a text"},
    [POSTERIOR] = {.name = "backward",
                   .kernels = {"ctc_posterior", "ctc_gradient"},
                   .when = "its gradient: the text from its end, then all classes at all steps"},
};
RDNA_FIXED_ROUTES(rdna__ctc_routes, "ctc, ctc_backward", routes)

static rdna_status check_shaped(const char *name, const char *argument, const rdna_tensor *t, rdna_dtype dtype,
                                int rank, const int64_t *shape, const char *meaning) {
  RDNA_TRY(rdna__check_tensor(name, argument, t));
  RDNA_TRY(rdna__check_dtype(name, argument, t, dtype));
  RDNA_TRY(rdna__check_rank(name, argument, t, rank));
  for (int d = 0; d < rank; d++) {
    if (shape[d] >= 0) RDNA_TRY(rdna__check_size(name, argument, t, d, shape[d], meaning));
  }
  return rdna__check_contiguous(name, argument, t);
}

static rdna_status check_texts(const char *name, const rdna_tensor *x, const rdna_tensor *targets,
                               const rdna_tensor *spans, int64_t blank, const rdna_tensor *states,
                               const rdna_tensor *loss, struct ctc_texts *out) {
  RDNA_TRY(rdna__check_tensor(name, "x", x));
  RDNA_TRY(rdna__check_dtype(name, "x", x, RDNA_F32));
  RDNA_TRY(rdna__check_rank(name, "x", x, 3));
  int64_t steps = x->shape[0], batch = x->shape[1], classes = x->shape[2];
  RDNA_TRY(check_shaped(name, "targets", targets, RDNA_I64, 1, (int64_t[]){-1}, ""));
  RDNA_TRY(check_shaped(name, "spans", spans, RDNA_I64, 2, (int64_t[]){batch, CTC_SPAN}, "(batch, 3)"));
  RDNA_TRY(check_shaped(name, "states", states, RDNA_F32, 3, (int64_t[]){batch, steps, -1}, "(batch, steps, states)"));
  RDNA_TRY(check_shaped(name, "loss", loss, RDNA_F32, 1, (int64_t[]){batch}, "the texts of x"));
  if (blank < 0 || blank >= classes) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: blank is %lld and x has %lld classes; it must be one of them", name,
                      (long long)blank, (long long)classes);
  }
  int64_t width = states->shape[2];
  if (steps > INT32_MAX || classes > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: x has %lld steps and %lld classes; each must be below 2^31", name,
                      (long long)steps, (long long)classes);
  }
  if (width % 2 == 0 || width > INT32_MAX / 4) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: states has %lld for a step; there must be two for each label and one",
                      name, (long long)width);
  }
  *out = (struct ctc_texts){.x = x->data,
                            .targets = targets->data,
                            .spans = spans->data,
                            .x_stride = {x->stride[0], x->stride[1], x->stride[2]},
                            .steps = steps,
                            .batch = batch,
                            .classes = classes,
                            .target_count = targets->shape[0],
                            .width = width,
                            .blank = blank};
  return RDNA_OK;
}

/* Takes the rows of texts that are too long for group memory. */
static rdna_status take_rows(rdna__scratch *scratch, const struct ctc_texts *texts, float **out) {
  void *rows = NULL;
  *out = NULL;
  if (texts->width <= CTC_SHARED) return RDNA_OK;
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)(texts->batch * 2 * texts->width) * sizeof(float), &rows));
  *out = rows;
  return RDNA_OK;
}

static rdna_status walk(rdna__scratch *scratch, struct ctc_args *args) {
  RDNA_TRY(take_rows(scratch, &args->texts, &args->rows));
  rdna_grid grid = {(uint32_t)args->texts.batch, 1, 1};
  return RDNA__ROUTE_LAUNCH(scratch->stream, &routes[args->alpha ? POSTERIOR : ALPHA], 0, grid, args, NULL);
}

rdna_status rdna_op_ctc(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *targets, const rdna_tensor *spans,
                        int64_t blank, const rdna_tensor *states, const rdna_tensor *loss, uint32_t *outside) {
  static const char name[] = "ctc";
  struct ctc_args args = {.outside = outside};
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(check_texts(name, x, targets, spans, blank, states, loss, &args.texts));
  const rdna_tensor *in[] = {x, targets, spans};
  static const char *const names[] = {"x", "targets", "spans"};
  for (int i = 0; i < 3; i++) {
    RDNA_TRY(rdna__check_apart(name, "states", states, names[i], in[i]));
    RDNA_TRY(rdna__check_apart(name, "loss", loss, names[i], in[i]));
  }
  RDNA_TRY(rdna__check_apart(name, "loss", loss, "states", states));
  if (args.texts.batch == 0) return RDNA_OK;
  uint32_t groups;
  RDNA_TRY(rdna__check_groups(name, args.texts.batch, 1, &groups));
  args.states = states->data, args.loss = loss->data;
  rdna__scratch scratch = {.stream = stream, .holder = "ctc: rows of long texts"};
  return rdna__scratch_release(&scratch, walk(&scratch, &args));
}

static rdna_status slope(rdna__scratch *scratch, struct ctc_args *args, struct ctc_gradient_args *gradient) {
  const struct ctc_texts *t = &args->texts;
  void *chain, *states;
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)(t->batch * (t->width / 2) + 1) * sizeof(int32_t), &chain));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)(t->batch * t->steps * t->width) * sizeof(float), &states));
  args->chain = chain, args->states = states;
  RDNA_TRY(walk(scratch, args));
  gradient->states = args->states, gradient->chain = chain;
  rdna_grid grid = {rdna__groups_in_turn(t->steps * t->batch), 1, 1};
  return RDNA__ROUTE_LAUNCH(scratch->stream, &routes[POSTERIOR], 1, grid, gradient, NULL);
}

rdna_status rdna_op_ctc_backward(rdna_stream *stream, const rdna_tensor *dloss, const rdna_tensor *x,
                                 const rdna_tensor *targets, const rdna_tensor *spans, int64_t blank,
                                 bool zero_infinity, const rdna_tensor *states, const rdna_tensor *loss,
                                 const rdna_tensor *dx) {
  static const char name[] = "ctc_backward";
  struct ctc_args args = {.outside = NULL};
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(check_texts(name, x, targets, spans, blank, states, loss, &args.texts));
  RDNA_TRY(check_shaped(name, "dloss", dloss, RDNA_F32, 1, (int64_t[]){x->shape[1]}, "the texts of x"));
  RDNA_TRY(rdna__check_tensor(name, "dx", dx));
  RDNA_TRY(rdna__check_same_dtype(name, "dx", dx, "x", x));
  RDNA_TRY(rdna__check_same_shape(name, "dx", dx, "x", x));
  RDNA_TRY(rdna__check_contiguous(name, "dx", dx));
  const rdna_tensor *in[] = {dloss, x, targets, spans, states, loss};
  static const char *const names[] = {"dloss", "x", "targets", "spans", "states", "loss"};
  for (int i = 0; i < 6; i++) RDNA_TRY(rdna__check_apart(name, "dx", dx, names[i], in[i]));
  if (rdna_tensor_count(dx) == 0) return RDNA_OK;
  uint32_t groups;
  RDNA_TRY(rdna__check_groups(name, args.texts.batch, 1, &groups));
  args.alpha = states->data, args.loss = loss->data;
  struct ctc_gradient_args gradient = {
      .texts = args.texts, .loss = loss->data, .dloss = dloss->data, .dx = dx->data, .zero_infinity = zero_infinity};
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, slope(&scratch, &args, &gradient));
}
