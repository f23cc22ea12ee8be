/* Device code: what a reduction keeps of the values seen so far. A state has
 *
 *     PARTS, KIND       how many values of type |kept| it is, first of all its members; an enum reduce_kind
 *     add_to<width>     takes |width| values, the first of which is number |index| of its output's
 *     join              takes another state
 *     end               the result */
#ifndef RDNA_MATH_REDUCE_REDUCE_STATES_H
#define RDNA_MATH_REDUCE_REDUCE_STATES_H

#include "kernel/scalar.h"
#include "math/common/device/join.h"
#include "math/reduce/reduce_dims_kernels.h"
#include "rdna/tensor.h"

/* Below every other value. */
template <typename acc>
struct limits {};
template <>
struct limits<float> {
  RDNA_DEVICE float lowest() { return -__builtin_inff(); }
};
template <>
struct limits<double> {
  RDNA_DEVICE double lowest() { return -__builtin_inf(); }
};
template <>
struct limits<int64_t> {
  RDNA_DEVICE int64_t lowest() { return INT64_MIN; }
};

/* Turns the order around. */
RDNA_DEVICE float reverse(float v) { return -v; }
RDNA_DEVICE double reverse(double v) { return -v; }
RDNA_DEVICE int64_t reverse(int64_t v) { return ~v; }
RDNA_DEVICE float power(float v, double p) { return scalar_exp2((float)p * scalar_log2(v)); }
RDNA_DEVICE float root(float v) { return __builtin_sqrtf(v); }
RDNA_DEVICE double root(double v) { return __builtin_sqrt(v); }

/* What is done to values before they are joined, for each |kind|: an enum reduce_map. */
template <int kind, int width, typename acc>
RDNA_DEVICE void map_values(acc *v, int32_t map, double parameter) {
#define EACH(value)                                                 \
  {                                                                 \
    _Pragma("unroll") for (int j = 0; j < width; j++) v[j] = value; \
    return;                                                         \
  }
  if (map == REDUCE_PLAIN) return;
  if constexpr (kind == REDUCE_SUM) {
    if (map == REDUCE_ABS) EACH(v[j] < 0 ? -v[j] : v[j]);
    if (map == REDUCE_SQUARE) EACH(v[j] * v[j]);
    if (map == REDUCE_NONZERO) EACH(v[j] != 0);
    if constexpr (width == 1 && sizeof(acc) == 4) v[0] = power(abs_f32(v[0]), parameter);
  }
  if constexpr (kind == REDUCE_MAX) {
    if (map == REDUCE_ABS) EACH(v[j] < 0 ? -v[j] : v[j]);
    if (map == REDUCE_NONZERO) EACH(v[j] != 0);
    if (map == REDUCE_ZERO) EACH(v[j] == 0);
  }
  if constexpr (kind == REDUCE_MAX || kind == REDUCE_ARG) EACH(reverse(v[j]));
#undef EACH
}

/* What is done to the joined value: an enum reduce_end. */
RDNA_DEVICE int64_t ended(int64_t v, int32_t end, double parameter) {
  return end == REDUCE_REVERSED ? ~v : end == REDUCE_IF ? v > 0 : end == REDUCE_UNLESS ? !(v > 0) : v;
}
template <typename acc>
RDNA_DEVICE acc ended(acc v, int32_t end, double parameter) {
  if (end == REDUCE_SCALED) return v * (acc)parameter;
  if (end == REDUCE_ROOT) return root(v);
  if (end == REDUCE_REVERSED) return reverse(v);
  if (end == REDUCE_IF) return v > 0;
  if (end == REDUCE_UNLESS) return !(v > 0);
  if constexpr (sizeof(acc) == 4) return end == REDUCE_UNPOWER ? power(v, 1 / parameter) : v;
  return v;
}

template <typename acc>
struct sum_of {
  enum { PARTS = 1, KIND = REDUCE_SUM };
  typedef acc kept;
  acc v = 0;
  template <int width>
  RDNA_DEVICE void add_to(sum_of &s, acc *x, int64_t) {
#pragma unroll
    for (int step = 1; step < width; step *= 2)
#pragma unroll
      for (int j = 0; j + step < width; j += 2 * step) x[j] += x[j + step];
    s.v += x[0];
  }
  RDNA_DEVICE void join(sum_of &s, const sum_of &o) { s.v += o.v; }
  RDNA_DEVICE acc end(const sum_of &s, int32_t how, double parameter) { return ended(s.v, how, parameter); }
};

template <typename acc>
struct prod_of {
  enum { PARTS = 1, KIND = REDUCE_PROD };
  typedef acc kept;
  acc v = 1;
  template <int width>
  RDNA_DEVICE void add_to(prod_of &s, acc *x, int64_t) {
#pragma unroll
    for (int j = 0; j < width; j++) s.v *= x[j];
  }
  RDNA_DEVICE void join(prod_of &s, const prod_of &o) { s.v *= o.v; }
  RDNA_DEVICE acc end(const prod_of &s, int32_t how, double parameter) { return s.v; }
};

/* A NaN wins. */
RDNA_DEVICE float larger(float a, float b) {
#ifdef RDNA_NVIDIA
  return __nvvm_fmax_nan_f(a, b);
#else
  return max_f32(a, b);
#endif
}
template <typename acc>
RDNA_DEVICE acc larger(acc a, acc b) {
  return a > b || a != a ? a : b;
}

template <typename acc>
struct max_of {
  enum { PARTS = 1, KIND = REDUCE_MAX };
  typedef acc kept;
  acc v = limits<acc>::lowest();
  template <int width>
  RDNA_DEVICE void add_to(max_of &s, acc *x, int64_t) {
#pragma unroll
    for (int j = 0; j < width; j++) s.v = larger(s.v, x[j]);
  }
  RDNA_DEVICE void join(max_of &s, const max_of &o) { s.v = larger(s.v, o.v); }
  RDNA_DEVICE acc end(const max_of &s, int32_t how, double parameter) { return ended(s.v, how, parameter); }
};

template <typename acc>
struct var_of : moments<acc> {
  enum { PARTS = 3, KIND = REDUCE_VAR };
  typedef acc kept;
  template <int width>
  RDNA_DEVICE void add_to(var_of &s, acc *x, int64_t) {
    moments<acc>::template add<width>(s, x);
  }
  RDNA_DEVICE acc end(const var_of &s, int32_t how, double parameter) {
    acc below = s.n - (acc)parameter, v = s.squares / (below > 0 ? below : 0);
    return how == REDUCE_DEVIATION ? root(v) : v;
  }
};

/* The largest value, and the sum of exp(v - largest) of all. */
template <typename acc>
struct lse_of {
  enum { PARTS = 2, KIND = REDUCE_LSE };
  typedef acc kept;
  acc top = limits<acc>::lowest(), sum = 0;
  /* exp(v - top) where both may be infinite */
  RDNA_DEVICE acc below(acc v, acc top) { return v == top ? 1 : scalar_exp(v - top); }
  RDNA_DEVICE void join(lse_of &s, const lse_of &o) {
    acc top = max_f32(s.top, o.top);
    s.sum = (s.sum == 0 ? 0 : s.sum * below(s.top, top)) + (o.sum == 0 ? 0 : o.sum * below(o.top, top));
    s.top = top;
  }
  template <int width>
  RDNA_DEVICE void add_to(lse_of &s, acc *x, int64_t) {
    lse_of here;
#pragma unroll
    for (int j = 0; j < width; j++) here.top = max_f32(here.top, x[j]);
#pragma unroll
    for (int j = 0; j < width; j++) here.sum += below(x[j], here.top);
    join(s, here);
  }
  RDNA_DEVICE acc end(const lse_of &s, int32_t how, double parameter) {
    return s.sum == 0 || s.top == -infinity_f32() ? s.top : s.top + scalar_log(s.sum);
  }
};

/* The best value and where it is; the first of equals. */
template <typename acc>
struct arg_of {
  enum { PARTS = 1, KIND = REDUCE_ARG };
  typedef acc kept;
  acc v = limits<acc>::lowest();
  int64_t index = INT64_MAX;
  RDNA_DEVICE void join(arg_of &s, const arg_of &o) {
    bool s_nan = s.v != s.v, o_nan = o.v != o.v;
    bool before = o_nan != s_nan ? o_nan : !o_nan && o.v != s.v ? o.v > s.v : o.index < s.index;
    if (before) s = o;
  }
  /* Of a vector, keeps its best value and where the vector begins. Which of its values that was is looked up once, at
   * the end. */
  template <int width>
  RDNA_DEVICE void add_to(arg_of &s, acc *x, int64_t index) {
    acc best = x[0];
#pragma unroll
    for (int j = 1; j < width; j++) best = larger(best, x[j]);
    bool before = best > s.v || (best != best && s.v == s.v) || s.index == INT64_MAX;
    s.v = before ? best : s.v;
    s.index = before ? index : s.index;
  }
  RDNA_DEVICE int64_t end(const arg_of &s, int32_t how, double parameter) { return s.index; }
};

#endif
