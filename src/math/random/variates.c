/* Samples whose distribution tensors give, and their gradients. */
#include <math.h>

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/random/variates_kernels.h"
#include "math/softmax/softmax.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/random.h"

enum { GAMMA, POISSON, BINOMIAL, GAMMA_GRADIENT, DIRICHLET_GRADIENT };
static const rdna__route routes[] = {
    [GAMMA] = {.name = "gamma", .kernels = {"variates_gamma"}, .when = "gamma and Dirichlet distributions"},
    [POISSON] = {.name = "poisson", .kernels = {"variates_poisson"}, .when = "Poisson distributions"},
    [BINOMIAL] = {.name = "binomial", .kernels = {"variates_binomial"}, .when = "binomial distributions"},
    [GAMMA_GRADIENT] = {.name = "gamma gradient",
                        .kernels = {"variates_gamma_gradient"},
                        .when = "how a gamma distribution's samples move with its shape"},
    [DIRICHLET_GRADIENT] = {.name = "dirichlet gradient",
                            .kernels = {"variates_dirichlet_gradient"},
                            .when = "how a Dirichlet distribution's samples move with its concentrations"}};
RDNA_FIXED_ROUTES(rdna__variates_routes, "samples by tensors of parameters", routes)

/* Checks that |count| inputs and |out| are contiguous, of one shape and one type, and that none overlaps |out| in part.
 */
static rdna_status check(const char *name, rdna_stream *stream, const rdna__named *in, int count,
                         const rdna_tensor *out) {
  RDNA_TRY(rdna__check_stream(name, stream));
  for (int i = 0; i < count; i++) {
    RDNA_TRY(rdna__check_real(name, in[i].name, in[i].tensor));
    RDNA_TRY(rdna__check_contiguous(name, in[i].name, in[i].tensor));
    RDNA_TRY(rdna__check_same_dtype(name, in[i].name, in[i].tensor, in[0].name, in[0].tensor));
    RDNA_TRY(rdna__check_same_shape(name, in[i].name, in[i].tensor, in[0].name, in[0].tensor));
  }
  RDNA_TRY(rdna__check_real(name, "out", out));
  RDNA_TRY(rdna__check_contiguous(name, "out", out));
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, in[0].name, in[0].tensor));
  RDNA_TRY(rdna__check_same_shape(name, "out", out, in[0].name, in[0].tensor));
  for (int i = 0; i < count; i++) RDNA_TRY(rdna__check_overlap(name, "out", out, in[i].name, in[i].tensor));
  return RDNA_OK;
}

static rdna_status launch(const char *name, rdna_stream *stream, int route, const rdna__named *in, int count,
                          const rdna_tensor *out, struct variates_args a) {
  a.first = in[0].tensor->data;
  a.second = count > 1 ? in[1].tensor->data : NULL;
  a.third = count > 2 ? in[2].tensor->data : NULL;
  a.out = out->data;
  a.count = (uint64_t)rdna_tensor_count(out);
  a.dtype = (uint32_t)in[0].tensor->dtype, a.out_dtype = (uint32_t)out->dtype;
  if (a.count == 0) return RDNA_OK;
  rdna_grid grid = {1, 1, 1};
  RDNA_TRY(rdna__check_groups(name, (int64_t)a.count, VARIATES_THREADS, &grid.x));
  return rdna__launch_named(stream, routes[route].kernels[0], grid, &a);
}

static rdna_status run(const char *name, rdna_stream *stream, int route, const rdna__named *in, int count,
                       const rdna_tensor *out, struct variates_args a) {
  RDNA_TRY(check(name, stream, in, count, out));
  return launch(name, stream, route, in, count, out, a);
}

/* The least sample: as exponential ones, above 0 in the type. */
static double least_of(rdna_dtype dtype) {
  return dtype == RDNA_F64 ? 0x1p-1022 : dtype == RDNA_F16 ? 0x1p-24 : 0x1p-126;
}

rdna_status rdna_op_random_gamma(rdna_stream *stream, uint64_t seed, uint64_t offset, const rdna_tensor *shape,
                                 const rdna_tensor *out) {
  const rdna__named in[] = {{"shape", shape}};
  struct variates_args a = {.seed = seed, .offset = offset, .least = out ? least_of(out->dtype) : 0};
  return run("random_gamma", stream, GAMMA, in, 1, out, a);
}

rdna_status rdna_op_random_poisson(rdna_stream *stream, uint64_t seed, uint64_t offset, const rdna_tensor *rate,
                                   const rdna_tensor *out) {
  const rdna__named in[] = {{"rate", rate}};
  struct variates_args a = {.seed = seed, .offset = offset};
  return run("random_poisson", stream, POISSON, in, 1, out, a);
}

rdna_status rdna_op_random_binomial(rdna_stream *stream, uint64_t seed, uint64_t offset, const rdna_tensor *count,
                                    const rdna_tensor *probability, const rdna_tensor *out) {
  const rdna__named in[] = {{"count", count}, {"probability", probability}};
  struct variates_args a = {.seed = seed, .offset = offset};
  return run("random_binomial", stream, BINOMIAL, in, 2, out, a);
}

rdna_status rdna_op_random_gamma_gradient(rdna_stream *stream, const rdna_tensor *shape, const rdna_tensor *sample,
                                          const rdna_tensor *out) {
  const rdna__named in[] = {{"shape", shape}, {"sample", sample}};
  return run("random_gamma_gradient", stream, GAMMA_GRADIENT, in, 2, out, (struct variates_args){.count = 0});
}

rdna_status rdna_op_random_dirichlet_gradient(rdna_stream *stream, const rdna_tensor *sample,
                                              const rdna_tensor *concentration, const rdna_tensor *total,
                                              const rdna_tensor *out) {
  const rdna__named in[] = {{"sample", sample}, {"concentration", concentration}, {"total", total}};
  return run("random_dirichlet_gradient", stream, DIRICHLET_GRADIENT, in, 3, out, (struct variates_args){.count = 0});
}

/* Gamma samples over their sum, which is a softmax of their logarithms: where concentrations are small all of a row's
 * samples may be too small for any type. */
static rdna_status dirichlet(const char *name, rdna__scratch *scratch, const rdna__named *in, const rdna_tensor *out,
                             struct variates_args a) {
  const rdna_scalar least = rdna_scalar_real(least_of(out->dtype)), most = rdna_scalar_real((double)INFINITY);
  rdna_tensor logs;
  RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_F64, out->rank, out->shape, &logs));
  RDNA_TRY(launch(name, scratch->stream, GAMMA, in, 1, &logs, a));
  RDNA_TRY(rdna__softmax_f64(name, scratch->stream, &logs, out->rank - 1, 1, false, &logs));
  RDNA_TRY(rdna_op_map(scratch->stream, RDNA_MAP_CLAMP, &logs, least, most, &logs));
  return rdna_op_copy(scratch->stream, &logs, out);
}

rdna_status rdna_op_random_dirichlet(rdna_stream *stream, uint64_t seed, uint64_t offset,
                                     const rdna_tensor *concentration, const rdna_tensor *out) {
  const char *name = "random_dirichlet";
  const rdna__named in[] = {{"concentration", concentration}};
  RDNA_TRY(check(name, stream, in, 1, out));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  struct variates_args a = {.seed = seed, .offset = offset, .least = (double)-INFINITY, .logarithm = true};
  return rdna__scratch_release(&scratch, dirichlet(name, &scratch, in, out, a));
}
