/* Running sums and their kin on the host, in double or in 64-bit integers, in order. */
#include <math.h>

#include "kernel/host.h"
#include "math/scan/scan_kernels.h"
#include "rdna/tensor.h"

enum scan_op { SUM, PROD, MAX, MIN, LOGSUMEXP };

struct work {
  struct scan_args a;
  enum scan_op op;
  rdna_dtype dtype;
};

static double none(enum scan_op op) { return op == SUM ? 0 : op == PROD ? 1 : op == MIN ? INFINITY : -INFINITY; }
static int64_t whole_none(enum scan_op op) {
  return op == SUM ? 0 : op == PROD ? 1 : op == MAX ? INT64_MIN : INT64_MAX;
}

static double join_logs(double a, double b) {
  double high = a > b || a != a ? a : b, low = a < b || a != a ? a : b;
  return low == high && isinf(high) ? high : high + log1p(exp(low - high));
}
static inline double join(enum scan_op op, double a, double b) {
  if (op == LOGSUMEXP) return join_logs(a, b);
  return op == SUM ? a + b : op == PROD ? a * b : op == MAX ? (a > b || a != a ? a : b) : (a < b || a != a ? a : b);
}
static inline int64_t whole_join(enum scan_op op, int64_t a, int64_t b) {
  return op == SUM    ? (int64_t)((uint64_t)a + (uint64_t)b)
         : op == PROD ? (int64_t)((uint64_t)a * (uint64_t)b)
         : op == MAX  ? (a > b ? a : b)
                      : (a < b ? a : b);
}

#define WHOLES(name, type)                                                                                  \
  static int64_t name(enum scan_op op, const type *x, type *out, int64_t n, int64_t stride, int64_t kept) { \
    for (int64_t i = 0; i < n * stride; i += stride) {                                                      \
      kept = whole_join(op, kept, x[i]);                                                                    \
      if (out) out[i] = (type)kept;                                                                         \
    }                                                                                                       \
    return kept;                                                                                            \
  }
WHOLES(scan_i32, int32_t)
WHOLES(scan_i64, int64_t)

#define FLOATS(name, type, from, to)                                                                      \
  static double name(enum scan_op op, const type *x, type *out, int64_t n, int64_t stride, double kept) { \
    for (int64_t i = 0; i < n * stride; i += stride) {                                                    \
      kept = join(op, kept, (double)from(x[i]));                                                          \
      if (out) out[i] = to(kept);                                                                         \
    }                                                                                                     \
    return kept;                                                                                          \
  }
#define AS_IS(v) (v)
#define TO_F32(v) ((float)(v))
#define TO_F16(v) f32_to_f16((float)(v))
#define TO_BF16(v) f32_to_bf16((float)(v))
FLOATS(scan_f32, float, AS_IS, TO_F32)
FLOATS(scan_f16, uint16_t, f16_to_f32, TO_F16)
FLOATS(scan_bf16, uint16_t, bf16_to_f32, TO_BF16)
FLOATS(scan_f64, double, AS_IS, AS_IS)

static void scan_units(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct scan_args *a = &work->a;
  bool integer = work->dtype == RDNA_I32 || work->dtype == RDNA_I64, f64 = work->dtype == RDNA_F64;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t segment = unit % a->segments, column = unit / a->segments, first = segment * a->segment;
    int64_t at = column / a->inner * a->n * a->inner + column % a->inner + first * a->inner;
    int64_t n = a->n - first < a->segment ? a->n - first : a->segment, whole = whole_none(work->op);
    double kept = none(work->op);
    for (int64_t before = unit - segment; a->carry && before < unit; before++) {
      if (integer) whole = whole_join(work->op, whole, ((const int64_t *)a->carry)[before]);
      if (!integer) {
        kept =
            join(work->op, kept, f64 ? ((const double *)a->carry)[before] : (double)((const float *)a->carry)[before]);
      }
    }
#define RUN(name, type, kept) \
  kept = name(work->op, (const type *)a->x + at, a->totals ? NULL : (type *)a->out + at, n, a->inner, kept)
    if (work->dtype == RDNA_F32) RUN(scan_f32, float, kept);
    if (work->dtype == RDNA_F16) RUN(scan_f16, uint16_t, kept);
    if (work->dtype == RDNA_BF16) RUN(scan_bf16, uint16_t, kept);
    if (f64) RUN(scan_f64, double, kept);
    if (work->dtype == RDNA_I32) RUN(scan_i32, int32_t, whole);
    if (work->dtype == RDNA_I64) RUN(scan_i64, int64_t, whole);
#undef RUN
    if (!a->totals) continue;
    if (integer) {
      ((int64_t *)a->totals)[unit] = whole;
    } else if (f64) {
      ((double *)a->totals)[unit] = kept;
    } else {
      ((float *)a->totals)[unit] = (float)kept;
    }
  }
}

static void scan(const void *args, enum scan_op op, rdna_dtype dtype) {
  struct work work = {*(const struct scan_args *)args, op, dtype};
  if (work.a.n == 0) return; /* several rows are each as one alone */
  rdna__parallel_for(work.a.outer * work.a.inner * work.a.segments, 1 + (1 << 14) / work.a.n, scan_units, &work);
}

#define TWINS(name, op)                                                                                      \
  void RDNA_HOST_KERNEL(scan_##name##_f32)(const void *args, rdna_grid grid) { scan(args, op, RDNA_F32); }   \
  void RDNA_HOST_KERNEL(scan_##name##_f16)(const void *args, rdna_grid grid) { scan(args, op, RDNA_F16); }   \
  void RDNA_HOST_KERNEL(scan_##name##_bf16)(const void *args, rdna_grid grid) { scan(args, op, RDNA_BF16); } \
  void RDNA_HOST_KERNEL(scan_##name##_f64)(const void *args, rdna_grid grid) { scan(args, op, RDNA_F64); }   \
  void RDNA_HOST_KERNEL(scan_##name##_i32)(const void *args, rdna_grid grid) { scan(args, op, RDNA_I32); }   \
  void RDNA_HOST_KERNEL(scan_##name##_i64)(const void *args, rdna_grid grid) { scan(args, op, RDNA_I64); }
TWINS(sum, SUM)
TWINS(prod, PROD)
TWINS(max, MAX)
TWINS(min, MIN)

void RDNA_HOST_KERNEL(scan_logsumexp_f32)(const void *args, rdna_grid grid) { scan(args, LOGSUMEXP, RDNA_F32); }
void RDNA_HOST_KERNEL(scan_logsumexp_f16)(const void *args, rdna_grid grid) { scan(args, LOGSUMEXP, RDNA_F16); }
void RDNA_HOST_KERNEL(scan_logsumexp_bf16)(const void *args, rdna_grid grid) { scan(args, LOGSUMEXP, RDNA_BF16); }
