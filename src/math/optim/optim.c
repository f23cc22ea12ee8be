#include "rdna/op/optim.h"

#include <math.h>
#include <stdlib.h>

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/optim/optim_kernels.h"

enum { MOST_GROUPS = 1 << 14 };

/* The tensors of a launch. Their table is built in |host|, and copied to the device if there are several. */
struct list {
  const char *op_name;
  rdna_stream *stream;
  struct optim_tensors of;
  struct optim_tensor *host;
  rdna__scratch scratch;
  bool keeps_empty;             /* empty tensors are in the table too */
  const rdna_tensor *single[2]; /* the call's other arguments, which no tensor may overlap; or NULL */
  const char *single_name[2];
};

static rdna_status list_open(struct list *list, const char *op_name, rdna_stream *stream, int count) {
  *list = (struct list){.op_name = op_name, .stream = stream, .scratch = {.stream = stream, .holder = op_name}};
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (count < 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: count is %d; it must not be negative", op_name, count);
  list->host = calloc((size_t)count + 1, sizeof *list->host);
  if (!list->host) return rdna__fail(RDNA_OUT_OF_MEMORY, "%s: no memory for a table of %d tensors", op_name, count);
  return RDNA_OK;
}

static rdna_status check_apart_from_singles(const struct list *list, const char *argument, const rdna_tensor *tensor) {
  for (int i = 0; i < 2; i++) {
    if (!list->single[i]) continue;
    RDNA_TRY(rdna__check_apart(list->op_name, argument, tensor, list->single_name[i], list->single[i]));
  }
  return RDNA_OK;
}

static rdna_status list_add_grad(struct list *list, const char *argument, const rdna_tensor *grad,
                                 struct optim_tensor **out_entry) {
  RDNA_TRY(rdna__check_float(list->op_name, argument, grad));
  RDNA_TRY(rdna__check_contiguous(list->op_name, argument, grad));
  if (list->of.tensors > 0 && list->of.grad_dtype != (uint32_t)grad->dtype) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s %lld is %s and the first is %s; all must be of one type",
                      list->op_name, argument, (long long)list->of.tensors, rdna_dtype_name(grad->dtype),
                      rdna_dtype_name((rdna_dtype)list->of.grad_dtype));
  }
  struct optim_tensor *entry = &list->host[list->of.tensors];
  entry->grad = (int64_t)(intptr_t)grad->data;
  entry->count = rdna_tensor_count(grad);
  entry->first_chunk = list->of.chunks;
  list->of.grad_dtype = (uint32_t)grad->dtype;
  if (entry->count > 0 || list->keeps_empty) {
    list->of.chunks += rdna__divide_up(entry->count, OPTIM_CHUNK);
    list->of.tensors++;
  }
  *out_entry = entry;
  return RDNA_OK;
}

/* Copies the table to the device; a single tensor is passed in the arguments instead. */
static rdna_status list_upload(struct list *list) {
  list->of.only = list->host[0];
  if (list->of.tensors < 2) return RDNA_OK;
  size_t bytes = (size_t)list->of.tensors * sizeof *list->host;
  void *table;
  RDNA_TRY(rdna__scratch_take(&list->scratch, bytes, &table));
  list->of.table = table;
  return rdna_copy_to_device(list->stream, table, list->host, bytes);
}

static rdna_status list_close(struct list *list, rdna_status status) {
  free(list->host);
  return rdna__scratch_release(&list->scratch, status);
}

static rdna_grid chunk_grid(int64_t chunks) {
  return (rdna_grid){(uint32_t)(chunks < MOST_GROUPS ? chunks : MOST_GROUPS), 1, 1};
}

static rdna_status check_one(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  RDNA_TRY(rdna__check_dtype(op_name, argument, tensor, RDNA_F32));
  return rdna__check_one_value(op_name, argument, tensor);
}

static uint32_t states_used(const rdna_optim *o) {
  if (o->kind == RDNA_OPTIM_KIND_SGD) return o->momentum != 0;
  if (o->kind == RDNA_OPTIM_KIND_ADAM) return o->amsgrad ? 7 : 3;
  return 1u | (uint32_t)o->centered << 1 | (uint32_t)(o->momentum != 0) << 2;
}

static rdna_status check_options(const rdna_optim *o) {
  if ((unsigned)o->kind >= RDNA_OPTIM_KIND_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "optim_step: kind is %d; kinds are 0 to %d", (int)o->kind,
                      RDNA_OPTIM_KIND_COUNT - 1);
  }
  if (o->step < 1) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "optim_step: step is %lld; steps count from 1", (long long)o->step);
  }
  bool adam = o->kind == RDNA_OPTIM_KIND_ADAM;
  if (adam && !(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "optim_step: beta1 is %g and beta2 is %g; they must be in [0, 1)",
                      (double)o->beta1, (double)o->beta2);
  }
  if (!adam && !(o->momentum >= 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "optim_step: momentum is %g; it must not be negative",
                      (double)o->momentum);
  }
  if (!(o->epsilon >= 0) || !(o->learning_rate >= 0) || !(o->weight_decay >= 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "optim_step: learning_rate is %g, weight_decay %g and epsilon %g; none may be negative",
                      (double)o->learning_rate, (double)o->weight_decay, o->epsilon);
  }
  return RDNA_OK;
}

static rdna_status add_item(struct list *list, const rdna_optim_item *item, uint32_t used) {
  static const char *const names[] = {"state 0", "state 1", "state 2"};
  struct optim_tensor *entry;
  RDNA_TRY(list_add_grad(list, "grad", item->grad, &entry));
  if (item->step) {
    RDNA_TRY(check_one(list->op_name, "step", item->step));
    entry->step = (int64_t)(intptr_t)item->step->data;
  }
  const rdna_tensor *written[] = {item->param, item->state[0], item->state[1], item->state[2]};
  for (int k = -1; k < OPTIM_STATES; k++) {
    const rdna_tensor *t = written[k + 1];
    const char *name = k < 0 ? "param" : names[k];
    if (k >= 0 && !(used >> k & 1)) continue;
    RDNA_TRY(rdna__check_tensor(list->op_name, name, t));
    RDNA_TRY(rdna__check_dtype(list->op_name, name, t, RDNA_F32));
    RDNA_TRY(rdna__check_same_shape(list->op_name, name, t, "grad", item->grad));
    RDNA_TRY(rdna__check_contiguous(list->op_name, name, t));
    RDNA_TRY(rdna__check_apart(list->op_name, name, t, "grad", item->grad));
    RDNA_TRY(check_apart_from_singles(list, name, t));
    if (item->step) RDNA_TRY(rdna__check_apart(list->op_name, name, t, "step", item->step));
    for (int j = -1; j < k; j++) {
      if (j < 0 || used >> j & 1) RDNA_TRY(rdna__check_apart(list->op_name, name, t, "another of it", written[j + 1]));
    }
    *(k < 0 ? &entry->param : &entry->state[k]) = (int64_t)(intptr_t)t->data;
  }
  return RDNA_OK;
}

enum { STEP, NORM };
static const rdna__route routes[] = {
    [STEP] = {.name = "step", .kernels = {"optim_{sgd|adam|rmsprop}"}, .when = "all tensors of a step at once"},
    [NORM] = {.name = "norm",
              .kernels = {"grad_squares", "grad_norm", "grad_scale", "grad_norms"},
              .when = "the norm of all gradients, and their scaling to a largest one; the norm of each"},
};
RDNA_FIXED_ROUTES(rdna__optim_routes, "optim_step, grad_norm, grad_scale", routes)

static rdna_status step(struct list *list, const rdna_optim *o, const rdna_optim_item *items, int count,
                        struct optim_step_args *args) {
  for (int i = 0; i < count; i++) {
    if ((items[i].step != NULL) != (items[0].step != NULL) ||
        (items[i].step != NULL && o->kind != RDNA_OPTIM_KIND_ADAM)) {
      return rdna__fail(
          RDNA_INVALID_ARGUMENT,
          "%s: item %d has %s step of its own and kind is %d; Adam's items have one each or none has, and "
          "others have none",
          list->op_name, i, items[i].step ? "a" : "no", (int)o->kind);
    }
    RDNA_TRY(add_item(list, &items[i], args->states_used));
  }
  args->counted = count > 0 && items[0].step != NULL;
  RDNA_TRY(list_upload(list));
  args->of = list->of;
  static const char *const kinds[] = {"sgd", "adam", "rmsprop"};
  return RDNA__ROUTE_LAUNCH(list->stream, &routes[STEP], 0, chunk_grid(list->of.chunks), args, kinds[o->kind]);
}

rdna_status rdna_op_optim_step(rdna_stream *stream, const rdna_optim *options, const rdna_optim_item *items, int count,
                               const rdna_tensor *grad_scale, const rdna_tensor *found_inf) {
  static const char op_name[] = "optim_step";
  struct list list;
  rdna_optim known;
  const rdna_optim *o = &known;
  RDNA_TRY(RDNA__OPTIONS(op_name, "options", options, &known));
  RDNA_TRY(check_options(o));
  if (grad_scale) RDNA_TRY(check_one(op_name, "grad_scale", grad_scale));
  if (found_inf) RDNA_TRY(check_one(op_name, "found_inf", found_inf));
  if (count > 0 && !items) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: items is NULL, count %d", op_name, count);
  struct optim_step_args args = {
      .grad_scale = grad_scale ? grad_scale->data : NULL,
      .found_inf = found_inf ? found_inf->data : NULL,
      .states_used = states_used(o),
      .nesterov = o->nesterov,
      .decoupled = o->decoupled,
      .first = o->step == 1,
      .maximize = o->maximize,
      .rate = o->learning_rate,
      .decay = o->weight_decay,
      .momentum = o->momentum,
      .dampening = o->dampening,
      .beta1 = o->beta1,
      .beta2 = o->beta2,
      .epsilon = (float)o->epsilon,
      .step_size = (float)((double)o->learning_rate / (1 - pow((double)o->beta1, (double)o->step))),
      .root_correct = (float)sqrt(1 - pow((double)o->beta2, (double)o->step)),
      .log_beta1 = (float)log((double)o->beta1),
      .log_beta2 = (float)log((double)o->beta2)};
  rdna_status status = list_open(&list, op_name, stream, count);
  list.single[0] = grad_scale, list.single[1] = found_inf;
  list.single_name[0] = "grad_scale", list.single_name[1] = "found_inf";
  if (status == RDNA_OK) status = step(&list, o, items, count, &args);
  return list_close(&list, status);
}

static rdna_status add_grads(struct list *list, const rdna_tensor *const *grads, int count) {
  struct optim_tensor *entry;
  if (count > 0 && !grads) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: grads is NULL, count %d", list->op_name, count);
  }
  for (int i = 0; i < count; i++) {
    RDNA_TRY(list_add_grad(list, "grad", grads[i], &entry));
    RDNA_TRY(check_apart_from_singles(list, "grad", grads[i]));
  }
  return list_upload(list);
}

/* The sums of squares of each chunk. */
static rdna_status squares_of(struct list *list, const rdna_tensor *const *grads, int count, void **out_partial) {
  RDNA_TRY(add_grads(list, grads, count));
  RDNA_TRY(rdna__scratch_take(&list->scratch, (size_t)list->of.chunks * sizeof(float), out_partial));
  struct grad_squares_args squares = {.partial = *out_partial, .of = list->of};
  return RDNA__ROUTE_LAUNCH(list->stream, &routes[NORM], 0, chunk_grid(list->of.chunks), &squares, NULL);
}

static rdna_status norm_of(struct list *list, const rdna_tensor *const *grads, int count, struct grad_norm_args *args) {
  void *partial;
  RDNA_TRY(squares_of(list, grads, count, &partial));
  args->partial = partial;
  args->chunks = list->of.chunks;
  rdna_grid one = {1, 1, 1};
  return RDNA__ROUTE_LAUNCH(list->stream, &routes[NORM], 1, one, args, NULL);
}

rdna_status rdna_op_grad_norm(rdna_stream *stream, const rdna_tensor *const *grads, int count, float largest,
                              const rdna_tensor *norm, const rdna_tensor *factor) {
  struct list list;
  RDNA_TRY(check_one("grad_norm", "norm", norm));
  if (factor) RDNA_TRY(check_one("grad_norm", "factor", factor));
  if (!(largest >= 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "grad_norm: largest is %g; it must not be negative", (double)largest);
  }
  struct grad_norm_args args = {.norm = norm->data, .factor = factor ? factor->data : NULL, .largest = largest};
  if (factor) RDNA_TRY(rdna__check_apart("grad_norm", "factor", factor, "norm", norm));
  rdna_status status = list_open(&list, "grad_norm", stream, count);
  list.single[0] = norm, list.single[1] = factor;
  list.single_name[0] = "norm", list.single_name[1] = "factor";
  if (status == RDNA_OK) status = norm_of(&list, grads, count, &args);
  return list_close(&list, status);
}

static rdna_status norms_of(struct list *list, const rdna_tensor *const *grads, int count, const rdna_tensor *norms) {
  void *partial;
  RDNA_TRY(squares_of(list, grads, count, &partial));
  struct grad_norms_args args = {.partial = partial, .norms = norms->data, .of = list->of};
  rdna_grid grid = {(uint32_t)count, 1, 1};
  return RDNA__ROUTE_LAUNCH(list->stream, &routes[NORM], 3, grid, &args, NULL);
}

rdna_status rdna_op_grad_norms(rdna_stream *stream, const rdna_tensor *const *grads, int count,
                               const rdna_tensor *norms) {
  static const char op_name[] = "grad_norms";
  struct list list;
  RDNA_TRY(rdna__check_tensor(op_name, "norms", norms));
  RDNA_TRY(rdna__check_dtype(op_name, "norms", norms, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, "norms", norms, 1));
  RDNA_TRY(rdna__check_contiguous(op_name, "norms", norms));
  rdna_status status = list_open(&list, op_name, stream, count);
  list.keeps_empty = true;
  list.single[0] = norms, list.single_name[0] = "norms";
  if (status == RDNA_OK) status = rdna__check_size(op_name, "norms", norms, 0, count, "count");
  if (status == RDNA_OK && count > 0) status = norms_of(&list, grads, count, norms);
  return list_close(&list, status);
}

rdna_status rdna_op_grad_scale(rdna_stream *stream, const rdna_tensor *const *grads, int count,
                               const rdna_tensor *factor, const rdna_tensor *found_inf) {
  struct list list;
  RDNA_TRY(check_one("grad_scale", "factor", factor));
  if (found_inf) RDNA_TRY(check_one("grad_scale", "found_inf", found_inf));
  if (found_inf) RDNA_TRY(rdna__check_apart("grad_scale", "found_inf", found_inf, "factor", factor));
  rdna_status status = list_open(&list, "grad_scale", stream, count);
  list.single[0] = factor, list.single[1] = found_inf;
  list.single_name[0] = "factor", list.single_name[1] = "found_inf";
  if (status == RDNA_OK) status = add_grads(&list, grads, count);
  struct grad_scale_args args = {
      .factor = factor->data, .found_inf = found_inf ? found_inf->data : NULL, .of = list.of};
  if (status == RDNA_OK) status = RDNA__ROUTE_LAUNCH(stream, &routes[NORM], 2, chunk_grid(list.of.chunks), &args, NULL);
  return list_close(&list, status);
}
