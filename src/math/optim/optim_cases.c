#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/optim/optim_kernels.h"

enum { MOST_TENSORS = 5 };

struct plan {
  struct optim_tensors of;
  struct optim_tensor table[MOST_TENSORS];
  int64_t values; /* of all tensors and the gaps between them */
  bool single;
};

/* Lays tensors one after another in a buffer with gaps of odd sizes; some are empty. State k's buffer follows state
 * k - 1's. */
static void make_plan(rdna__random *random, int n, struct plan *p) {
  memset(p, 0, sizeof *p);
  p->single = n % 3 == 1;
  p->of.tensors = p->single ? 1 : rdna__random_range(random, 1, MOST_TENSORS);
  p->of.grad_dtype = (uint32_t)(n % 3 == 2 ? RDNA_F32 : n / 3 % 3);
  int64_t value = p->of.grad_dtype == RDNA_F32 ? 4 : 2;
  for (int64_t i = 0; i < p->of.tensors; i++) {
    struct optim_tensor *t = &p->table[i];
    t->count = n == 0 ? 5 : rdna__random_range(random, 0, rdna__random_below(random, 3) ? 300 : 20000);
    if (n % 2) t->count = t->count / 4 * 4;
    t->param = p->values * 4;
    t->grad = p->values * value;
    t->first_chunk = p->of.chunks;
    p->of.chunks += (t->count + OPTIM_CHUNK - 1) / OPTIM_CHUNK;
    p->values += t->count + (n % 2 ? 0 : rdna__random_range(random, 0, 3));
  }
  for (int64_t i = 0; i < p->of.tensors; i++) {
    p->table[i].step = i * 4;
    for (int k = 0; k < OPTIM_STATES; k++) p->table[i].state[k] = p->table[i].param + k * p->values * 4;
  }
  if (p->single) p->of.only = p->table[0];
}

static void describe(rdna__kernel_case *c, rdna__random *random, const struct plan *p, const char *what) {
  c->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 5), 1, 1};
  snprintf(c->label, sizeof c->label, "%s, %lld tensors%s, %lld values, %s gradients, grid %u", what,
           (long long)p->of.tensors, p->single ? " without a table" : "", (long long)p->values,
           rdna_dtype_name((rdna_dtype)p->of.grad_dtype), c->grid.x);
}

static bool add_table(rdna__kernel_case *c, const struct plan *p, size_t offset) {
  if (p->single) return true;
  int64_t words = (int64_t)(sizeof(struct optim_tensor) / 8) * p->of.tensors;
  void *table =
      rdna__case_add(c, RDNA__IN, RDNA_I64, words, (uint32_t)(offset + offsetof(struct optim_tensors, table)));
  if (table) memcpy(table, p->table, (size_t)words * 8);
  return table != NULL;
}

static bool add_one(rdna__kernel_case *c, rdna__buffer_role role, size_t offset, float v) {
  float *data = rdna__case_add(c, role, RDNA_F32, 1, (uint32_t)offset);
  if (data) *data = v;
  return data != NULL;
}

RDNA_CASE_MAKER(rdna__optim_step_case) {
  /* states_used: of sgd without and with momentum; of adam and amsgrad; of rmsprop's four forms */
  static const uint32_t sgd[] = {0, 1, 1, 1}, adam[] = {3, 7, 3, 7}, rmsprop[] = {1, 3, 5, 7};
  bool is_sgd = strstr(kernel->name, "sgd"), is_adam = strstr(kernel->name, "adam");
  struct plan p;
  make_plan(random, n, &p);
  struct optim_step_args args = {.of = p.of,
                                 .states_used = (is_sgd    ? sgd
                                                 : is_adam ? adam
                                                           : rmsprop)[n % 4],
                                 .nesterov = n / 4 % 2,
                                 .decoupled = n / 2 % 2,
                                 .first = n % 16 == 1,
                                 .maximize = n % 11 == 10,
                                 .rate = 0.01f,
                                 .decay = n % 3 ? 0.1f : 0,
                                 .momentum = 0.9f,
                                 .dampening = n % 5 == 4 ? 0.3f : 0,
                                 .beta1 = 0.9f,
                                 .beta2 = 0.999f,
                                 .epsilon = 1e-8f,
                                 .step_size = 0.03f,
                                 .root_correct = 0.06f,
                                 .counted = is_adam && n % 6 > 2,
                                 .log_beta1 = -0.10536f,
                                 .log_beta2 = n % 2 ? -INFINITY : -0.0010005f}; /* of 0 */
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &p, kernel->name);
  if (!add_table(out_case, &p, offsetof(struct optim_step_args, of))) return rdna__case_no_memory(out_case);
  rdna_dtype dtype = (rdna_dtype)p.of.grad_dtype;
  void *grads = rdna__case_add(out_case, RDNA__IN, dtype, p.values, offsetof(struct optim_step_args, grads));
  float *params = rdna__case_add(out_case, RDNA__INOUT, RDNA_F32, p.values, offsetof(struct optim_step_args, params));
  /* the same operations in the same order, so the same bits */
  rdna__case_tolerance(out_case, 0x1p-126, 0);
  float *states =
      rdna__case_add(out_case, RDNA__INOUT, RDNA_F32, p.values * 3, offsetof(struct optim_step_args, states));
  rdna__case_tolerance(out_case, 0x1p-126, 0);
  float *steps = rdna__case_add(out_case, RDNA__IN, RDNA_F32, MOST_TENSORS, offsetof(struct optim_step_args, steps));
  if (!grads || !params || !states || !steps) return rdna__case_no_memory(out_case);
  for (int i = 0; i < MOST_TENSORS; i++) steps[i] = (float)rdna__random_range(random, 0, i < 3 ? 5 : 100000);
  case_fill(random, dtype, grads, p.values, 1);
  case_fill(random, RDNA_F32, params, p.values, 1);
  for (int64_t i = 0; i < 3 * p.values; i++) states[i] = 1 + (float)rdna__random_unit(random);
  if (n % 7 == 5 && p.values > 0) case_set(dtype, grads, p.values / 2, NAN);
  if (n % 4 == 2 && !add_one(out_case, RDNA__IN, offsetof(struct optim_step_args, grad_scale), 128))
    return rdna__case_no_memory(out_case);
  if (n % 5 == 3 && !add_one(out_case, RDNA__IN, offsetof(struct optim_step_args, found_inf), n % 2 ? 1 : 0))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__grad_squares_case) {
  struct plan p;
  make_plan(random, n, &p);
  struct grad_squares_args args = {.of = p.of};
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &p, "squares");
  if (!add_table(out_case, &p, offsetof(struct grad_squares_args, of))) return rdna__case_no_memory(out_case);
  rdna_dtype dtype = (rdna_dtype)p.of.grad_dtype;
  void *grads = rdna__case_add(out_case, RDNA__IN, dtype, p.values, offsetof(struct grad_squares_args, grads));
  if (!grads) return rdna__case_no_memory(out_case);
  case_fill(random, dtype, grads, p.values, 1);
  if (n % 7 == 5 && p.values > 0) case_set(dtype, grads, p.values / 2, INFINITY);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, p.of.chunks, offsetof(struct grad_squares_args, partial)))
    return rdna__case_no_memory(out_case);
  /* all terms are positive; a thread adds 32 of them, and the tree over 256 threads has 8 levels */
  rdna__case_tolerance(out_case, 0, 48 * 0x1p-24);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__grad_norm_case) {
  struct grad_norm_args args = {.chunks = n == 0 ? 3 : rdna__random_range(random, 0, 5000), .largest = 5};
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){1, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld chunks", (long long)args.chunks);
  float *partial = rdna__case_add(out_case, RDNA__IN, RDNA_F32, args.chunks, offsetof(struct grad_norm_args, partial));
  if (!partial) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < args.chunks; i++) partial[i] = (float)rdna__random_unit(random);
  if (n % 5 == 4 && args.chunks > 0) partial[0] = NAN;
  if (n % 3 != 1 && !rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 1, offsetof(struct grad_norm_args, norm)))
    return rdna__case_no_memory(out_case);
  if (n % 3 != 1) rdna__case_tolerance(out_case, 0, 32 * 0x1p-24);
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, 1, offsetof(struct grad_norm_args, factor)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 0, 40 * 0x1p-24);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__grad_norms_case) {
  struct plan p;
  make_plan(random, n, &p);
  struct grad_norms_args args = {.of = p.of};
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &p, "norms");
  out_case->grid.x = (uint32_t)p.of.tensors;
  if (!add_table(out_case, &p, offsetof(struct grad_norms_args, of))) return rdna__case_no_memory(out_case);
  float *partial = rdna__case_add(out_case, RDNA__IN, RDNA_F32, p.of.chunks, offsetof(struct grad_norms_args, partial));
  if (!partial) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < p.of.chunks; i++) partial[i] = (float)rdna__random_unit(random);
  if (n % 5 == 4 && p.of.chunks > 0) partial[0] = NAN;
  if (!rdna__case_add(out_case, RDNA__OUT, RDNA_F32, p.of.tensors, offsetof(struct grad_norms_args, norms)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 0, 32 * 0x1p-24);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__grad_scale_case) {
  struct plan p;
  make_plan(random, n, &p);
  struct grad_scale_args args = {.of = p.of};
  memcpy(out_case->args, &args, sizeof args);
  describe(out_case, random, &p, "scale");
  if (!add_table(out_case, &p, offsetof(struct grad_scale_args, of))) return rdna__case_no_memory(out_case);
  rdna_dtype dtype = (rdna_dtype)p.of.grad_dtype;
  void *grads = rdna__case_add(out_case, RDNA__INOUT, dtype, p.values, offsetof(struct grad_scale_args, grads));
  if (!grads) return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, case_smallest(dtype), 0);
  case_fill(random, dtype, grads, p.values, 1);
  if (n % 3 == 2 && p.values > 0) case_set(dtype, grads, p.values / 2, n % 2 ? NAN : -INFINITY);
  if (!add_one(out_case, RDNA__IN, offsetof(struct grad_scale_args, factor), 0.0078f))
    return rdna__case_no_memory(out_case);
  if (n % 4 != 3 && !add_one(out_case, RDNA__INOUT, offsetof(struct grad_scale_args, found_inf), n % 8 == 6))
    return rdna__case_no_memory(out_case);
  return RDNA_OK;
}
