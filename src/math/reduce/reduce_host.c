/* Reductions over any dimensions on the host, in double or in 64-bit integers. */
#include <math.h>

#include "kernel/host.h"
#include "math/common/host/floats.h"
#include "math/reduce/reduce_dims_kernels.h"
#include "rdna/tensor.h"

enum { CHUNK = 256, WAYS = 8 };

struct state {
  double a, b, n;       /* sum, product, largest or mean; squares or exponentials; how many */
  int64_t whole, index; /* |a| of integers */
};

struct work {
  struct reduce_dims_args a;
  enum reduce_kind kind;
  rdna_dtype dtype;
};

static int64_t place(int32_t rank, const int64_t *size, const int64_t *stride, int64_t i) {
  int64_t offset = 0;
  for (int d = 0; d < rank; d++) {
    offset += i % size[d] * stride[d];
    i /= size[d];
  }
  return offset;
}

static bool is_integer(rdna_dtype dtype) { return dtype == RDNA_I32 || dtype == RDNA_I64 || dtype == RDNA_U8; }

/* |n| values, at most CHUNK, |stride| apart. */
static void load(rdna_dtype dtype, const void *x, int64_t at, int64_t stride, int64_t n, double *v, int64_t *whole) {
#define EACH(to, type, value)             \
  {                                       \
    const type *p = (const type *)x + at; \
    for (int64_t i = 0; i < n; i++) {     \
      type one = p[i * stride];           \
      to[i] = value;                      \
    }                                     \
    return;                               \
  }
  if (dtype == RDNA_F16 && stride == 1) { /* gcc does not vectorise the conversion by itself */
    float part[CHUNK];
    floats_load(dtype, (const uint16_t *)x + at, n, part);
    for (int64_t i = 0; i < n; i++) v[i] = (double)part[i];
    return;
  }
  switch (dtype) {
    case RDNA_F32:
      EACH(v, float, (double)one)
    case RDNA_F16:
      EACH(v, uint16_t, (double)f16_to_f32(one))
    case RDNA_BF16:
      EACH(v, uint16_t, (double)bf16_to_f32(one))
    case RDNA_F64:
      EACH(v, double, one)
    case RDNA_I32:
      EACH(whole, int32_t, one)
    case RDNA_I64:
      EACH(whole, int64_t, one)
    default:
      EACH(whole, uint8_t, one)
  }
#undef EACH
}

static void map_values(const struct reduce_dims_args *a, int64_t n, double *v) {
  for (int64_t i = 0; i < n; i++) {
    switch (a->map) {
      case REDUCE_ABS:
        v[i] = fabs(v[i]);
        break;
      case REDUCE_SQUARE:
        v[i] *= v[i];
        break;
      case REDUCE_POWER:
        v[i] = pow(fabs(v[i]), a->parameter);
        break;
      case REDUCE_NONZERO:
        v[i] = v[i] != 0;
        break;
      case REDUCE_ZERO:
        v[i] = v[i] == 0;
        break;
      case REDUCE_REVERSE:
        v[i] = -v[i];
        break;
      default:
        return;
    }
  }
}
static void map_wholes(const struct reduce_dims_args *a, int64_t n, int64_t *v) {
  for (int64_t i = 0; i < n && a->map != REDUCE_PLAIN; i++) {
    v[i] = a->map == REDUCE_NONZERO ? v[i] != 0 : a->map == REDUCE_ZERO ? v[i] == 0 : ~v[i];
  }
}

static struct state nothing(enum reduce_kind kind) {
  struct state s = {.index = INT64_MAX};
  if (kind == REDUCE_PROD) s.a = 1, s.whole = 1;
  if (kind == REDUCE_MAX || kind == REDUCE_ARG || kind == REDUCE_LSE) s.a = -INFINITY, s.whole = INT64_MIN;
  return s;
}

static double exponential(double v, double top) { return v == top ? 1 : exp(v - top); }

static void join(enum reduce_kind kind, bool whole, struct state *s, const struct state *o) {
  switch (kind) {
    case REDUCE_SUM:
      s->a += o->a, s->whole = (int64_t)((uint64_t)s->whole + (uint64_t)o->whole);
      break;
    case REDUCE_PROD:
      s->a *= o->a, s->whole = (int64_t)((uint64_t)s->whole * (uint64_t)o->whole);
      break;
    case REDUCE_MAX:
      if (o->a > s->a || o->a != o->a) s->a = o->a;
      if (o->whole > s->whole) s->whole = o->whole;
      break;
    case REDUCE_VAR:
      if (o->n > 0) {
        double n = s->n + o->n, apart = o->a - s->a;
        s->b += o->b + apart * apart * s->n * (o->n / n);
        s->a += apart * (o->n / n);
        s->n = n;
      }
      break;
    case REDUCE_LSE: {
      double top = s->a > o->a || s->a != s->a ? s->a : o->a;
      s->b = (s->b == 0 ? 0 : s->b * exponential(s->a, top)) + (o->b == 0 ? 0 : o->b * exponential(o->a, top));
      s->a = top;
      break;
    }
    default: {
      bool s_nan = !whole && s->a != s->a, o_nan = !whole && o->a != o->a;
      bool equal = whole ? s->whole == o->whole : s->a == o->a, larger = whole ? o->whole > s->whole : o->a > s->a;
      if (s_nan != o_nan ? o_nan : !s_nan && !equal ? larger : o->index < s->index) *s = *o;
    }
  }
}

/* |n| values in a row, the first of which is number |index| of its output. */
static void add(const struct work *work, struct state *s, const double *v, const int64_t *whole, int64_t n,
                int64_t index) {
  bool integer = is_integer(work->dtype);
  if (work->kind == REDUCE_SUM && !integer) {
    double part[WAYS] = {0};
    int64_t i = 0;
    for (; i + WAYS <= n; i += WAYS)
      for (int j = 0; j < WAYS; j++) part[j] += v[i + j];
    for (; i < n; i++) part[0] += v[i];
    for (int j = 0; j < WAYS; j++) s->a += part[j];
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    struct state one = {.b = work->kind == REDUCE_LSE, .n = 1, .index = index + i};
    if (integer) {
      one.whole = whole[i];
    } else {
      one.a = v[i];
      if (work->kind == REDUCE_VAR) one.b = v[i] - v[i]; /* from itself: 0, or not a number where v is infinite */
    }
    join(work->kind, integer, s, &one);
  }
}

static void store(void *out, int64_t i, rdna_dtype dtype, double v, int64_t whole, bool integer) {
  switch (dtype) {
    case RDNA_F32:
      ((float *)out)[i] = (float)v;
      break;
    case RDNA_F16:
      ((uint16_t *)out)[i] = f32_to_f16((float)v);
      break;
    case RDNA_BF16:
      ((uint16_t *)out)[i] = f32_to_bf16((float)v);
      break;
    case RDNA_F64:
      ((double *)out)[i] = v;
      break;
    case RDNA_I32:
      ((int32_t *)out)[i] = (int32_t)whole;
      break;
    case RDNA_I64:
      ((int64_t *)out)[i] = whole;
      break;
    default:
      ((uint8_t *)out)[i] = (uint8_t)(integer ? whole : (int64_t)v);
      break;
  }
}

static void finish(enum reduce_kind kind, bool integer, int32_t end, double parameter, rdna_dtype dtype, void *out,
                   int64_t i, struct state s) {
  double v = s.a, below = s.n - parameter;
  if (kind == REDUCE_ARG) integer = true, s.whole = s.index;
  if (kind == REDUCE_VAR) v = s.b / (below > 0 ? below : 0);
  if (kind == REDUCE_VAR && end == REDUCE_DEVIATION) v = sqrt(v);
  if (kind == REDUCE_LSE && s.b != 0 && s.a != -INFINITY) v = s.a + log(s.b);
  switch (end) {
    case REDUCE_SCALED:
      v *= parameter;
      break;
    case REDUCE_ROOT:
      v = sqrt(v);
      break;
    case REDUCE_UNPOWER:
      v = pow(v, 1 / parameter);
      break;
    case REDUCE_REVERSED:
      v = -v, s.whole = ~s.whole;
      break;
    case REDUCE_IF:
      v = v > 0, s.whole = s.whole > 0;
      break;
    case REDUCE_UNLESS:
      v = !(v > 0), s.whole = !(s.whole > 0);
      break;
    default:
      break;
  }
  store(out, i, dtype, v, s.whole, integer);
}

static void write_out(const struct work *work, int64_t out, int64_t slice, const struct state *s) {
  const struct reduce_dims_args *a = &work->a;
  bool integer = is_integer(work->dtype);
  if (a->slices == 1) {
    finish(work->kind, integer, a->end, a->parameter, (rdna_dtype)a->out_dtype, a->out, out, *s);
    return;
  }
  int64_t at = slice * a->outs + out, part = a->slices * a->outs;
  rdna_dtype keeper = integer ? RDNA_I64 : work->dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  store(a->partial, at, keeper, s->a, s->whole, integer);
  if (work->kind == REDUCE_VAR || work->kind == REDUCE_LSE) store(a->partial, part + at, keeper, s->b, 0, false);
  if (work->kind == REDUCE_VAR) store(a->partial, 2 * part + at, keeper, s->n, 0, false);
  if (work->kind == REDUCE_ARG) a->partial_index[at] = s->index;
}

/* A slice of one output, along its values. */
static void reduce_along(const struct work *work, int64_t out, int64_t slice) {
  const struct reduce_dims_args *a = &work->a;
  double v[CHUNK];
  int64_t whole[CHUNK], base = place(a->kept_rank, a->kept_size, a->kept_stride, out), inner = a->reduced_size[0];
  int64_t first = slice * a->slice, n;
  struct state s = nothing(work->kind);
  for (int64_t i = first; i < a->count; i += n) {
    if (i == first + a->slice) { /* the pieces between are the other slices' */
      n = (a->slices - 1) * a->slice;
      first += a->slices * a->slice;
      continue;
    }
    int64_t end = first + a->slice < a->count ? first + a->slice : a->count;
    n = a->reduced_rank == 1 ? end - i : inner - i % inner;
    if (n > end - i) n = end - i;
    if (n > CHUNK) n = CHUNK;
    int64_t at = base + place(a->reduced_rank, a->reduced_size, a->reduced_stride, i);
    load(work->dtype, a->x, at, a->reduced_stride[0], n, v, whole);
    if (is_integer(work->dtype)) {
      map_wholes(a, n, whole);
    } else {
      map_values(a, n, v);
    }
    add(work, &s, v, whole, n, i);
  }
  write_out(work, out, slice, &s);
}

/* Outputs [out, out + n) side by side, so that memory is read in order. */
static void reduce_across(const struct work *work, int64_t out, int64_t n, int64_t slice) {
  const struct reduce_dims_args *a = &work->a;
  double v[CHUNK];
  int64_t whole[CHUNK], base = place(a->kept_rank, a->kept_size, a->kept_stride, out);
  struct state s[CHUNK];
  for (int64_t j = 0; j < n; j++) s[j] = nothing(work->kind);
  for (int64_t i = slice * a->slice; i < a->count; i++) {
    if (i / a->slice % a->slices != slice) { /* the pieces between are the other slices' */
      i += (a->slices - 1) * a->slice - 1;
      continue;
    }
    int64_t at = base + place(a->reduced_rank, a->reduced_size, a->reduced_stride, i);
    load(work->dtype, a->x, at, a->kept_stride[0], n, v, whole);
    if (is_integer(work->dtype)) {
      map_wholes(a, n, whole);
    } else {
      map_values(a, n, v);
    }
    for (int64_t j = 0; j < n; j++) add(work, &s[j], v + j, whole + j, 1, i);
  }
  for (int64_t j = 0; j < n; j++) write_out(work, out + j, slice, &s[j]);
}

static void reduce_outs(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  const struct reduce_dims_args *a = &work->a;
  for (int64_t unit = begin, n; unit < end; unit += n) {
    int64_t slice = unit / a->outs, out = unit % a->outs, inner = a->kept_size[0];
    n = 1;
    if (a->layout != REDUCE_COLUMNS && a->layout != REDUCE_ALONE) {
      reduce_along(work, out, slice);
      continue;
    }
    n = inner - out % inner < end - unit ? inner - out % inner : end - unit;
    if (n > CHUNK) n = CHUNK;
    reduce_across(work, out, n, slice);
  }
}

static void reduce(const void *args, enum reduce_kind kind, rdna_dtype dtype) {
  struct work work = {*(const struct reduce_dims_args *)args, kind, dtype};
  int64_t length = work.a.slices > 0 ? work.a.count / work.a.slices : 0;
  int64_t grain = length > 0 ? 1 + (1 << 16) / length : 1 << 16;
  rdna__parallel_for(work.a.outs * work.a.slices, grain, reduce_outs, &work);
}

#define TWIN(name, kind, dtype) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { reduce(args, kind, dtype); }
#define FOUR(type, dtype)                      \
  TWIN(reduce_sum_##type, REDUCE_SUM, dtype)   \
  TWIN(reduce_prod_##type, REDUCE_PROD, dtype) \
  TWIN(reduce_max_##type, REDUCE_MAX, dtype)   \
  TWIN(reduce_arg_##type, REDUCE_ARG, dtype)
FOUR(f32, RDNA_F32)
FOUR(f16, RDNA_F16)
FOUR(bf16, RDNA_BF16)
FOUR(f64, RDNA_F64)
FOUR(i32, RDNA_I32)
FOUR(i64, RDNA_I64)
FOUR(u8, RDNA_U8)
#define SPECIAL(type, dtype)                         \
  TWIN(reduce_sum_line_##type, REDUCE_SUM, dtype)    \
  TWIN(reduce_max_line_##type, REDUCE_MAX, dtype)    \
  TWIN(reduce_var_line_##type, REDUCE_VAR, dtype)    \
  TWIN(reduce_lse_line_##type, REDUCE_LSE, dtype)    \
  TWIN(reduce_arg_line_##type, REDUCE_ARG, dtype)    \
  TWIN(reduce_sum_wave_##type, REDUCE_SUM, dtype)    \
  TWIN(reduce_sum_long_##type, REDUCE_SUM, dtype)    \
  TWIN(reduce_sum_columns_##type, REDUCE_SUM, dtype) \
  TWIN(reduce_sum_alone_##type, REDUCE_SUM, dtype)
SPECIAL(f32, RDNA_F32)
SPECIAL(f16, RDNA_F16)
SPECIAL(bf16, RDNA_BF16)
TWIN(reduce_var_f32, REDUCE_VAR, RDNA_F32)
TWIN(reduce_var_f16, REDUCE_VAR, RDNA_F16)
TWIN(reduce_var_bf16, REDUCE_VAR, RDNA_BF16)
TWIN(reduce_var_f64, REDUCE_VAR, RDNA_F64)
TWIN(reduce_lse_f32, REDUCE_LSE, RDNA_F32)
TWIN(reduce_lse_f16, REDUCE_LSE, RDNA_F16)
TWIN(reduce_lse_bf16, REDUCE_LSE, RDNA_BF16)

static double get(const struct reduce_join_args *a, int part, int64_t at) {
  int64_t i = part * a->slices * a->outs + at;
  return a->keeper == RDNA_F64 ? ((const double *)a->partial)[i] : (double)((const float *)a->partial)[i];
}

static void join_outs(void *context, int64_t begin, int64_t end) {
  const struct reduce_join_args *a = context;
  enum reduce_kind kind = (enum reduce_kind)a->kind;
  bool integer = a->keeper == RDNA_I64;
  for (int64_t out = begin; out < end; out++) {
    struct state s = nothing(kind);
    for (int64_t slice = 0; slice < a->slices; slice++) {
      int64_t at = slice * a->outs + out;
      struct state o = {0};
      if (integer) {
        o.whole = ((const int64_t *)a->partial)[at];
      } else {
        o.a = get(a, 0, at);
      }
      if (kind == REDUCE_VAR || kind == REDUCE_LSE) o.b = get(a, 1, at);
      if (kind == REDUCE_VAR) o.n = get(a, 2, at);
      if (kind == REDUCE_ARG) o.index = a->partial_index[at];
      join(kind, integer, &s, &o);
    }
    finish(kind, integer, a->end, a->parameter, (rdna_dtype)a->out_dtype, a->out, out, s);
  }
}

void RDNA_HOST_KERNEL(reduce_join)(const void *args, rdna_grid grid) {
  struct reduce_join_args a = *(const struct reduce_join_args *)args;
  rdna__parallel_for(a.outs, 1 + (1 << 12) / (a.slices + 1), join_outs, &a);
}
