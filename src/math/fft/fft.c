/* Transforms of any length by the kernel for short ones: longer ones in two passes with scratch memory between them,
 * and lengths that are no product of 2, 3, 5 and 7 as convolutions with a chirp,
 *
 *     X[k] = w[k] sum over j of (x[j] w[j]) conj(w[k - j]),    w[j] = exp(-pi i j^2 / n),
 *
 * that is as transforms of a power of two from 2 n - 1: of the chirp, of x w, and back. */
#include "rdna/op/fft.h"

#include <assert.h>
#include <math.h>

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "math/fft/fft_kernels.h"

static const rdna__route routes[] = {
    {.name = "lines",
     .kernels = {"fft_{f32|f64}"},
     .when = "once for up to 4096 values (f64: 2048), twice for more; lengths with other factors than 2, 3, 5, 7: two "
             "transforms of a power of two, and one of the chirp"},
};
RDNA_FIXED_ROUTES(rdna__fft_routes, "fft_c2c, fft_r2c, fft_c2r", routes)

enum {
  READ_FLAGS = FFT_REAL_IN | FFT_HALF_IN | FFT_READ_CONJ | FFT_CHIRP_IN | FFT_LOAD_CONJ | FFT_CHIRP,
  WRITE_FLAGS = FFT_REAL_OUT | FFT_STORE_CONJ | FFT_CHIRP_OUT | FFT_WRITE_CONJ,
};

typedef struct work {
  const char *name;
  rdna_dtype dtype;
  rdna__scratch scratch;
  uint32_t batch;
} work;

static uint32_t most_points(rdna_dtype dtype) { return dtype == RDNA_F64 ? FFT_POINTS_F64 : FFT_POINTS_F32; }

/* The steps' radices, or 0 where n has other factors than 2, 3, 5 and 7. */
static uint64_t radices_of(uint32_t n) {
  static const uint32_t offered[] = {8, 4, 2, 3, 5, 7};
  uint64_t radices = 0;
  int bits = 0;
  for (int i = 0; i < 6; i++) {
    for (; n % offered[i] == 0; n /= offered[i], bits += 4) radices |= bits < 64 ? (uint64_t)offered[i] << bits : 0;
  }
  return n == 1 ? radices : 0;
}
static bool is_smooth(uint32_t n) { return n == 1 || radices_of(n) != 0; }

/* The divisor of n, both it and its quotient at most |most|, that is nearest to the root; 0 if there is none. */
static uint32_t divisor_of(uint32_t n, uint32_t most) {
  for (uint32_t d = (uint32_t)sqrt((double)n); d > 0 && n / d <= most; d--) {
    if (n % d == 0 && d <= most) return d;
  }
  return 0;
}

static rdna_status launch(const work *w, struct fft_args a) {
  int64_t lines = (int64_t)w->batch * a.columns;
  if (lines > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld lines at once; at most 2^31 - 1 are offered", w->name,
                      (long long)lines);
  }
  a.lines = (uint32_t)lines;
  a.radices = radices_of(a.n);
  a.per_group = most_points(w->dtype) / a.n;
  if (a.per_group > FFT_LINES) a.per_group = FFT_LINES;
  int64_t next_x = a.columns > 1 ? a.x_column * a.x_stride : a.x_outer[0];
  int64_t next_out = a.columns > 1 ? a.out_column * a.out_stride : a.out_outer[0];
  if (next_x < a.x_step * a.x_stride) a.flags |= FFT_ACROSS_IN;
  if (next_out < a.out_step * a.out_stride) a.flags |= FFT_ACROSS_OUT;
  uint32_t groups = rdna__groups_in_turn(rdna__divide_up(lines, a.per_group));
  return RDNA__ROUTE_LAUNCH(w->scratch.stream, &routes[0], 0, ((rdna_grid){groups, 1, 1}), &a,
                            rdna_dtype_name(w->dtype));
}

/* Takes memory for the whole transforms of all lines, and gives their strides. */
static rdna_status take(work *w, const struct fft_args *a, void **out_data, int64_t outer[FFT_RANK]) {
  size_t pair = 2 * rdna_dtype_block_bytes(w->dtype);
  for (int64_t d = 0, stride = 2 * (int64_t)a->whole; d < FFT_RANK; stride *= a->size[d++]) outer[d] = stride;
  return rdna__scratch_take(&w->scratch, w->batch * (size_t)a->whole * pair, out_data);
}

/* A whole transform that is a product of the radices. */
static rdna_status transform(work *w, struct fft_args a) {
  uint32_t most = most_points(w->dtype);
  a.columns = 1, a.n = a.whole, a.x_step = a.out_step = 1;
  if (a.whole <= most) return launch(w, a);
  uint32_t n1 = divisor_of(a.whole, most);
  assert(n1 > 0); /* others are convolutions */
  struct fft_args first = a, second = a;
  RDNA_TRY(take(w, &a, &first.out, first.out_outer));
  first.flags &= READ_FLAGS, first.scale = 1, first.twiddles = 1, first.out_count = a.whole, first.out_stride = 2;
  first.n = n1, first.columns = a.whole / n1;
  first.x_column = first.out_column = 1, first.x_step = first.out_step = first.columns;
  second.flags &= WRITE_FLAGS, second.factor = NULL, second.x_count = a.whole, second.x_stride = 2;
  second.x = first.out;
  for (int d = 0; d < FFT_RANK; d++) second.x_outer[d] = first.out_outer[d];
  second.n = first.columns, second.columns = n1;
  second.x_column = second.n, second.x_step = 1, second.out_column = 1, second.out_step = n1;
  RDNA_TRY(launch(w, first));
  return launch(w, second);
}

static rdna_status convolve(work *w, struct fft_args a, uint32_t n) {
  a.chirp = n, a.whole = 1;
  while (a.whole < 2 * n - 1) a.whole *= 2;
  struct fft_args chirp = {.flags = FFT_CHIRP, .chirp = n, .whole = a.whole, .out_count = a.whole, .out_stride = 2};
  struct fft_args there = a, back = a;
  work one = {.name = w->name, .dtype = w->dtype, .batch = 1};
  one.scratch = (rdna__scratch){.stream = w->scratch.stream, .holder = w->name};
  chirp.scale = there.scale = 1;
  for (int d = 0; d < FFT_RANK; d++) chirp.size[d] = 1;
  void *spectrum;
  RDNA_TRY(rdna__scratch_take(&w->scratch, 2 * (size_t)a.whole * rdna_dtype_block_bytes(w->dtype), &spectrum));
  chirp.out = spectrum;
  RDNA_TRY(rdna__scratch_release(&one.scratch, transform(&one, chirp)));
  RDNA_TRY(take(w, &a, &there.out, there.out_outer));
  there.flags = (a.flags & READ_FLAGS) | FFT_CHIRP_IN, there.out_count = a.whole, there.out_stride = 2;
  RDNA_TRY(transform(w, there));
  back.flags = (a.flags & WRITE_FLAGS) | FFT_LOAD_CONJ | FFT_STORE_CONJ | FFT_CHIRP_OUT;
  back.x = there.out, back.x_count = a.whole, back.x_stride = 2, back.factor = spectrum;
  back.scale = a.scale / a.whole;
  for (int d = 0; d < FFT_RANK; d++) back.x_outer[d] = there.out_outer[d];
  return transform(w, back);
}

/* |t| without its pairs, if |complex|. */
static rdna_status check(const char *name, const char *argument, const rdna_tensor *t, bool complex,
                         rdna_tensor *out_values) {
  RDNA_TRY(rdna__check_tensor(name, argument, t));
  if (t->dtype != RDNA_F32 && t->dtype != RDNA_F64) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the types offered are f32 and f64", name, argument,
                      rdna_dtype_name(t->dtype));
  }
  char text[RDNA__TENSOR_TEXT];
  *out_values = *t;
  if (complex) {
    int last = t->rank - 1;
    if (last < 0 || t->shape[last] != 2) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; a complex tensor has a last dimension of 2", name,
                        argument, rdna__tensor_text(t, text));
    }
    if (t->stride[last] != 1) {
      return rdna__fail(RDNA_UNSUPPORTED, "%s: %s has its imaginary parts %lld values behind the real ones, not 1",
                        name, argument, (long long)t->stride[last]);
    }
    out_values->rank = last;
  }
  if (out_values->rank < 1 || out_values->rank > FFT_RANK + 1) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; 1 to %d dimensions are offered", name, argument,
                      rdna__tensor_text(t, text), FFT_RANK + 1);
  }
  return RDNA_OK;
}

/* |argument|, of |dtype|, has n values along the transformed dimension. */
static rdna_status check_length(const char *name, const char *argument, rdna_dtype dtype, int64_t n, uint32_t *out_n) {
  int64_t most = most_points(dtype), limit = most * most;
  if (n < 1) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s has %lld values to transform; at least 1 is needed", name,
                      argument, (long long)n);
  }
  bool offered = n <= limit &&
                 (is_smooth((uint32_t)n) ? n <= most || divisor_of((uint32_t)n, (uint32_t)most) > 0 : n <= limit / 2);
  if (!offered) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: %s has %lld values to transform; up to %lld are offered, %lld where it is no "
                      "product of 2, 3, 5 and 7",
                      name, argument, (long long)n, (long long)limit, (long long)limit / 2);
  }
  *out_n = (uint32_t)n;
  return RDNA_OK;
}

/* All but dimension |dim|, merged. */
static void set_outer(struct fft_args *a, rdna_tensor x, rdna_tensor out, int dim) {
  a->x_stride = x.stride[dim], a->out_stride = out.stride[dim];
  x.shape[dim] = out.shape[dim] = 1;
  strided_plan plan;
  rdna__plan_begin(&plan, &out);
  rdna__plan_add(&plan, &x);
  rdna__plan_merge(&plan);
  for (int d = 0; d < FFT_RANK; d++) {
    bool there = d < plan.rank;
    a->size[d] = there ? (uint32_t)plan.size[d] : 1;
    a->out_outer[d] = there ? plan.operand[0].stride[d] : 0, a->x_outer[d] = there ? plan.operand[1].stride[d] : 0;
  }
}

static rdna_status run(rdna_stream *stream, const char *name, uint32_t flags, double scale, const rdna_tensor *x,
                       int dim, const rdna_tensor *out) {
  rdna_tensor from, to;
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(check(name, "x", x, !(flags & FFT_REAL_IN), &from));
  RDNA_TRY(check(name, "out", out, !(flags & FFT_REAL_OUT), &to));
  RDNA_TRY(rdna__check_same_dtype(name, "out", out, "x", x));
  RDNA_TRY(rdna__check_dim(name, "x", &from, &dim));
  if (to.rank != from.rank) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: out has %d dimensions and x %d", name, to.rank, from.rank);
  }
  uint32_t n = 0;
  bool half = flags & FFT_HALF_IN;
  RDNA_TRY(check_length(name, half ? "out" : "x", x->dtype, half ? to.shape[dim] : from.shape[dim], &n));
  for (int d = 0; d < to.rank; d++) {
    bool half_in = d == dim && flags & FFT_HALF_IN, half_out = d == dim && flags & FFT_REAL_IN;
    if (half_in) {
      RDNA_TRY(rdna__check_size(name, "x", x, d, to.shape[d] / 2 + 1, "half of out's, and 1"));
    } else {
      RDNA_TRY(rdna__check_size(name, "out", out, d, half_out ? from.shape[d] / 2 + 1 : from.shape[d],
                                half_out ? "half of x's, and 1" : "x's"));
    }
  }
  RDNA_TRY(rdna__check_written(name, "out", out));
  if (flags & (FFT_REAL_IN | FFT_REAL_OUT)) {
    RDNA_TRY(rdna__check_apart(name, "out", out, "x", x));
  } else {
    RDNA_TRY(rdna__check_overlap(name, "out", out, "x", x));
  }
  if (rdna_tensor_count(&to) == 0) return RDNA_OK;
  int64_t batch = rdna_tensor_count(&to) / to.shape[dim];
  if (batch > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld transforms at once; at most 2^31 - 1 are offered", name,
                      (long long)batch);
  }
  struct fft_args a = {.x = x->data, .out = out->data, .scale = scale, .flags = flags, .whole = n, .x_count = n};
  a.out_count = flags & FFT_REAL_IN ? n / 2 + 1 : n;
  set_outer(&a, from, to, dim);
  work w = {.name = name, .dtype = x->dtype, .batch = (uint32_t)batch};
  w.scratch = (rdna__scratch){.stream = stream, .holder = name};
  return rdna__scratch_release(&w.scratch, is_smooth(n) ? transform(&w, a) : convolve(&w, a, n));
}

rdna_status rdna_op_fft_c2c(rdna_stream *stream, bool inverse, double scale, const rdna_tensor *x, int dim,
                            const rdna_tensor *out) {
  return run(stream, "fft_c2c", inverse ? FFT_READ_CONJ | FFT_WRITE_CONJ : 0, scale, x, dim, out);
}
rdna_status rdna_op_fft_r2c(rdna_stream *stream, double scale, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  return run(stream, "fft_r2c", FFT_REAL_IN, scale, x, dim, out);
}
rdna_status rdna_op_fft_c2r(rdna_stream *stream, double scale, const rdna_tensor *x, int dim, const rdna_tensor *out) {
  return run(stream, "fft_c2r", FFT_HALF_IN | FFT_REAL_OUT | FFT_READ_CONJ, scale, x, dim, out);
}
