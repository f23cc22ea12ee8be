/* Which implementation multiplies: one of our kernels, by the estimate of its cost, or what a vendor's library or the
 * tuner holds to be faster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deterministic.h"
#include "device/traits.h"
#include "kernel/tuner.h"
#include "math/common/plan/scratch.h"
#include "math/gemm/gemm.h"
#include "math/gemm/gemm_aligned.h"
#include "math/gemm/gemm_vendor.h"

enum {
  VENDOR_ID = 1000, /* ids below are places in rdna__gemm_rows */
  VENDOR_WAYS = 8,
  EXACT_ROWS = 16,
  MANY_ROWS = 8, /* above, a product is bound by arithmetic and a library's kernels are worth trying first */
  MAX_SCRATCH = 1 << 30,
  COPY_BYTES = 256 << 20 /* of an operand whose rows are moved to multiples of 16 bytes */
};

/* Products that one choice is good for; compared by its bytes. Weights have few shapes, activations any number of
 * rows: those are rounded up. */
typedef struct shape_class {
  int32_t types[3];
  uint32_t flags;
  int32_t m, n, k, batch;
  uint8_t bias, beta, residual, activation, aligned, spread;
} shape_class;

/* Up to 16 as it is, then 24, 32, 48, 64, 96 … */
static int32_t round_up(int32_t value) {
  if (value <= EXACT_ROWS) return value;
  int64_t step = EXACT_ROWS;
  for (; step < value; step *= 2)
    if (step + step / 2 >= value) return (int32_t)(step + step / 2);
  return step > INT32_MAX ? INT32_MAX : (int32_t)step;
}

static bool is_aligned(const void *data, int64_t ld, int64_t stride, rdna_dtype type) {
  return ((uintptr_t)data | (uint64_t)(ld | stride) * rdna_dtype_block_bytes(type)) % 16 == 0;
}

static shape_class class_of(const rdna__gemm_problem *problem) {
  const struct gemm_args *a = &problem->args;
  shape_class c;
  memset(&c, 0, sizeof c);
  for (int i = 0; i < 3; i++) c.types[i] = (int32_t)problem->types[i];
  c.flags = a->flags;
  c.m = round_up(a->m), c.n = a->n, c.k = a->k, c.batch = round_up(a->batch);
  c.bias = a->bias != NULL, c.beta = a->beta != 0;
  c.residual = a->residual != NULL, c.activation = (uint8_t)a->activation;
  c.aligned = (uint8_t)(is_aligned(a->a, a->lda, a->stride_a, problem->types[0]) |
                        is_aligned(a->b, a->ldb, a->stride_b, problem->types[1]) << 1 |
                        is_aligned(a->c, a->ldc, a->stride_c, problem->types[2]) << 2);
  /* rows with gaps, one matrix for the whole batch */
  c.spread = (uint8_t)((a->lda != (a->flags & GEMM_A_TRANSPOSED ? a->m : a->k)) |
                       (a->ldb != (a->flags & GEMM_B_TRANSPOSED ? a->k : a->n)) << 1 | (a->ldc != a->n) << 2 |
                       (a->batch > 1 && a->stride_a == 0) << 3 | (a->batch > 1 && a->stride_b == 0) << 4);
  return c;
}

static void describe(const shape_class *c, char text[RDNA__TUNER_SHAPE]) {
  snprintf(text, RDNA__TUNER_SHAPE, "%s %s %s %c%c m%d n%d k%d batch%d%s%s%s activation%d aligned%d spread%d",
           rdna_dtype_name((rdna_dtype)c->types[0]), rdna_dtype_name((rdna_dtype)c->types[1]),
           rdna_dtype_name((rdna_dtype)c->types[2]), c->flags & GEMM_A_TRANSPOSED ? 't' : 'n',
           c->flags & GEMM_B_TRANSPOSED ? 't' : 'n', c->m, c->n, c->k, c->batch,
           c->flags & GEMM_BIAS_OF_ROWS ? " rowbias"
           : c->bias                    ? " bias"
                                        : "",
           c->beta ? " beta" : "", c->residual ? " residual" : "", c->activation, c->aligned, c->spread);
}

static rdna_status run_id(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem, int id) {
  if (id < VENDOR_ID && problem->own) return problem->own(stream, &problem->args);
  if (id < VENDOR_ID) {
    const rdna__gemm_route *own = &rdna__gemm_rows[id];
    if (!own->route.applies(&own->route, problem))
      return rdna__fail(RDNA_UNSUPPORTED, "%s: %s does not apply", op_name, own->route.name);
    return own->run(own, stream, op_name, problem);
  }
  id -= VENDOR_ID;
  return rdna__gemm_vendor_run(stream, (rdna__vendor)(id / VENDOR_WAYS), id % VENDOR_WAYS, problem);
}

/* ---- candidates -------------------------------------------------------------------------------------------- */

static void add(rdna__tuner_question *q, int id, const char *name) {
  for (int i = 0; i < q->count; i++)
    if (q->candidates[i].id == id) return;
  if (q->count < RDNA__TUNER_CANDIDATES) q->candidates[q->count++] = (rdna__tuner_candidate){id, name, false};
}

static void add_vendor(rdna__tuner_question *q, rdna_device *device, rdna__vendor vendor,
                       const rdna__gemm_problem *problem) {
  int ways = rdna__gemm_vendor_ways(device, vendor);
  for (int way = 0; way < ways; way++)
    if (rdna__gemm_vendor_applies(device, vendor, way, problem))
      add(q, VENDOR_ID + (int)vendor * VENDOR_WAYS + way, rdna__gemm_vendor_name(vendor, way));
}

/* Whether cuBLASLt has only slow kernels, and A and B lie so that ours have fast ones: of 16 bits with rows of C that
 * begin anywhere or end between multiples of 16 bytes, or with rows of k values that do. On an H200 8,192 x 50,257 x
 * 768 took 6.2 ms by it and 1.6 by ours, with 50,264 columns 0.9 and 1.2; 8,192 x 768 x 50,257 8.5 and 2.0. */
static bool is_slow_in_libraries(const rdna__gemm_problem *problem) {
  enum { CHUNK = 8 };
  const struct gemm_args *a = &problem->args;
  bool is_batch = a->batch > 1, along_k = !(a->flags & GEMM_A_TRANSPOSED) || a->flags & GEMM_B_TRANSPOSED;
  bool odd_c = a->n % CHUNK != 0 || !is_aligned(a->c, a->ldc, is_batch ? a->stride_c : 0, problem->types[2]);
  return rdna__gemm_is_half(problem->types[0]) &&
         ((rdna__gemm_is_half(problem->types[2]) && odd_c) || (along_k && a->k % CHUNK != 0)) &&
         is_aligned(a->a, a->lda, is_batch ? a->stride_a : 0, problem->types[0]) &&
         is_aligned(a->b, a->ldb, is_batch ? a->stride_b : 0, problem->types[1]);
}

/* The rule's first. Where it was measured, on NVIDIA, that is cuBLASLt where arithmetic is what takes the time; on AMD
 * ours, since what the libraries have for a card differs wildly from card to card. */
static void list_candidates(rdna__tuner_question *q, rdna_device *device, const rdna__gemm_problem *problem,
                            char libraries[RDNA__TUNER_TEXT]) {
  static const rdna__vendor vendors[] = {RDNA__CUBLASLT, RDNA__HIPBLASLT, RDNA__ROCBLAS};
  const rdna__gemm_route *own = problem->own ? rdna__gemm_rows : rdna__gemm_choose(problem);
  bool library_first = rdna__device_traits_of(problem->device)->is_measured && problem->args.m > MANY_ROWS &&
                       !problem->own && !is_slow_in_libraries(problem);
  if (library_first) add_vendor(q, device, RDNA__CUBLASLT, problem);
  add(q, (int)(own - rdna__gemm_rows), problem->own ? "own" : own->route.name);
  libraries[0] = 0;
  for (int i = 0; i < 3; i++) {
    char text[64];
    add_vendor(q, device, vendors[i], problem);
    rdna__vendor_text(device, vendors[i], text);
    size_t used = strlen(libraries);
    if (text[0]) snprintf(libraries + used, RDNA__TUNER_TEXT - used, "%s%s", used ? " + " : "", text);
  }
  for (int i = 0; i < rdna__gemm_row_count && !problem->own; i++)
    if (rdna__gemm_rows[i].route.applies(&rdna__gemm_rows[i].route, problem)) add(q, i, rdna__gemm_rows[i].route.name);
}

typedef struct trial {
  rdna__scratch scratch;
  rdna__gemm_problem problem; /* its result in scratch */
  size_t bytes;
} trial;

static rdna_status run_trial(void *context, int id) {
  trial *t = context;
  if (!t->problem.args.c) RDNA_TRY(rdna__scratch_take(&t->scratch, t->bytes, &t->problem.args.c));
  return run_id(t->scratch.stream, "gemm", &t->problem, id);
}

static void decide(rdna_stream *stream, const rdna__gemm_problem *problem, const shape_class *class,
                   rdna__tuner_result *out_result) {
  rdna_device *device = rdna_stream_device(stream);
  char text[RDNA__TUNER_SHAPE], libraries[RDNA__TUNER_TEXT], families[RDNA__TUNER_TEXT];
  const struct gemm_args *args = &problem->args;
  describe(class, text);
  rdna__gemm_families(problem, families);
  trial t = {{.stream = stream, .holder = "tuner's results"}, *problem, 0};
  int64_t span = llabs(args->stride_c) * (args->batch - 1) + llabs(args->ldc) * (args->m - 1) + args->n;
  t.bytes = (size_t)span * rdna_dtype_block_bytes(problem->types[2]);
  t.problem.args.c = NULL;
  double flops = 2.0 * args->m * args->n * args->k * args->batch;
  rdna__tuner_question q = {
      .operator_name = "gemm",
      .shape = class,
      .shape_size = sizeof *class,
      .shape_text = text,
      .families = families,
      .libraries = libraries,
      /* 64 a cycle of 1 GHz is slow for any unit of a GPU */
      .seconds = flops / (64e9 * (problem->device->compute_units > 0 ? problem->device->compute_units : 1)),
      .trial = run_trial,
      .context = &t,
  };
  list_candidates(&q, device, problem, libraries);
  /* results that would lie backwards or far apart are not worth a copy of all that is between them */
  if (t.bytes > MAX_SCRATCH || args->ldc < 0 || args->stride_c < 0) q.count = 1;
  rdna__tuner_decide(stream, &q, out_result);
  if (rdna__scratch_release(&t.scratch, RDNA_OK) != RDNA_OK) out_result->why = "rule";
}

static rdna_status run_own(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem,
                           const char *why) {
  const rdna__gemm_route *own = problem->own ? NULL : rdna__gemm_choose(problem);
  rdna__choice_note(op_name, own ? own->route.name : "own", why);
  if (!own) return problem->own(stream, &problem->args);
  return own->run(own, stream, op_name, problem);
}

rdna_status rdna__gemm_run(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem) {
  if (rdna__gemm_aligned_pays(problem)) return rdna__gemm_run_aligned(stream, op_name, problem, COPY_BYTES);
  if (rdna__deterministic()) return run_own(stream, op_name, problem, "deterministic");
  if (!rdna__device_traits_of(problem->device)->is_gpu || problem->args.k == 0)
    return run_own(stream, op_name, problem, "rule");
  shape_class class = class_of(problem);
  rdna__tuner_result result;
  if (!rdna__tuner_find(rdna_stream_device(stream), "gemm", &class, sizeof class, &result))
    decide(stream, problem, &class, &result);
  rdna_status status = run_id(stream, op_name, problem, result.id);
  /* another member of the class may have no algorithm */
  if (status == RDNA_UNSUPPORTED) return run_own(stream, op_name, problem, "rule");
  rdna__choice_note(op_name, result.implementation, result.why);
  return status;
}
