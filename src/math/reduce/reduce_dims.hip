/* Reductions over any dimensions. What is kept of the values seen so far is a struct with one value's worth of each
 * part; waves and groups join such structs. */
#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/common/device/join.h"
#include "math/common/device/values.h"
#include "math/reduce/reduce_dims_kernels.h"

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

RDNA_DEVICE float reverse(float v) { return -v; }
RDNA_DEVICE double reverse(double v) { return -v; }
RDNA_DEVICE int64_t reverse(int64_t v) { return ~v; }
RDNA_DEVICE float power(float v, double p) { return scalar_exp2((float)p * scalar_log2(v)); }
RDNA_DEVICE float root(float v) { return __builtin_sqrtf(v); }
RDNA_DEVICE double root(double v) { return __builtin_sqrt(v); }

/* What a kind of reduction asks of values one by one. */
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

/* Largest value, and the sum of exponentials of the others' distances from it. */
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
  /* Of a vector only its best value is found and where the vector begins: which of its values that was is looked up
   * once, at the end. */
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

/* Not unrolled: more dimensions than one are rare where each value has to be looked for. */
RDNA_DEVICE int64_t place(int32_t rank, const int64_t *size, const int64_t *stride, int64_t i) {
  if (rank == 1) return i * stride[0];
  int64_t offset = 0;
  uint32_t left = (uint32_t)i;
#pragma nounroll
  for (int d = 0; d < rank; d++) {
    uint32_t quotient = left / (uint32_t)size[d];
    offset += (int64_t)(left - quotient * (uint32_t)size[d]) * stride[d];
    left = quotient;
  }
  return offset;
}

RDNA_DEVICE void store(void *out, int64_t i, int32_t dtype, int64_t v) {
  if (dtype == RDNA_I64) {
    ((int64_t *)out)[i] = v;
  } else if (dtype == RDNA_I32) {
    ((int32_t *)out)[i] = (int32_t)v;
  } else {
    ((uint8_t *)out)[i] = (uint8_t)v;
  }
}
RDNA_DEVICE void store(void *out, int64_t i, int32_t dtype, float v) {
  if (dtype == RDNA_F32) {
    ((float *)out)[i] = v;
  } else if (dtype == RDNA_F16) {
    ((uint16_t *)out)[i] = f32_to_f16(v);
  } else if (dtype == RDNA_BF16) {
    ((uint16_t *)out)[i] = f32_to_bf16(v);
  } else {
    ((uint8_t *)out)[i] = (uint8_t)(int32_t)v;
  }
}
RDNA_DEVICE void store(void *out, int64_t i, int32_t dtype, double v) {
  if (dtype == RDNA_F64) {
    ((double *)out)[i] = v;
  } else {
    ((uint8_t *)out)[i] = (uint8_t)(int32_t)v;
  }
}

template <typename state>
RDNA_DEVICE void write(const reduce_dims_args &a, int64_t out, int64_t slice, state s) {
  typedef typename state::kept acc;
  if (a.slices == 1) {
    store(a.out, out, a.out_dtype, state::end(s, a.end, a.parameter));
    return;
  }
  int64_t at = slice * a.outs + out;
  const acc *parts = (const acc *)&s;
#pragma unroll
  for (int i = 0; i < state::PARTS; i++) ((acc *)a.partial)[i * a.slices * a.outs + at] = parts[i];
  if constexpr (state::KIND == REDUCE_ARG) a.partial_index[at] = s.index;
}

template <typename type, typename state, int width, typename acc>
RDNA_DEVICE void load(const reduce_dims_args &a, int64_t at, acc *v) {
  if constexpr (width == 1) {
    v[0] = type::load(a.x, (uint64_t)at);
  } else {
    type::load_16((const char *)a.x + at * type::BYTES, v);
  }
  map_values<state::KIND, width>(v, a.map, a.parameter);
}

/* |count| vectors of a thread from value |i| on, |step| apart, all under way before the first is looked at. */
template <int count, typename type, typename state, int width>
RDNA_DEVICE void add_vectors(const reduce_dims_args &a, int64_t base, int64_t i, int64_t step, state &s) {
  uint4 bits[count];
#pragma unroll
  for (int j = 0; j < count; j++) bits[j] = load_as<uint4>((const char *)a.x + (base + i + j * step) * type::BYTES);
#pragma unroll
  for (int j = 0; j < count; j++) {
    typename state::kept v[width];
    type::unpack(bits[j], v);
    map_values<state::KIND, width>(v, a.map, a.parameter);
    state::template add_to<width>(s, v, i + j * step);
  }
}

/* What thread |rank| of |threads| finds in its share of a slice. */
template <typename type, typename state, int width>
RDNA_DEVICE state share(const reduce_dims_args &a, int64_t out, int64_t slice, int64_t rank, int64_t threads) {
  typename state::kept v[width];
  const int64_t base = place(a.kept_rank, a.kept_size, a.kept_stride, out), step = threads * width;
  state s;
  for (int64_t first = slice * a.slice; first < a.count; first += a.slices * a.slice) {
    int64_t end = first + a.slice < a.count ? first + a.slice : a.count, i = first + rank * width;
    if constexpr (width > 1) {
      if (a.reduced_rank == 1) {
        for (; i + (REDUCE_DIMS_AHEAD - 1) * step < end; i += REDUCE_DIMS_AHEAD * step) {
          add_vectors<REDUCE_DIMS_AHEAD, type, state, width>(a, base, i, step, s);
        }
      }
    }
#pragma nounroll
    for (; i < end; i += step) {
      load<type, state, width>(a, base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i), v);
      state::template add_to<width>(s, v, i);
    }
  }
  return s;
}

/* The argument itself, from the vector that holds it. */
template <typename type, typename state, int width>
RDNA_DEVICE void look_up(const reduce_dims_args &a, int64_t out, state &s) {
  typename state::kept v[width];
  int64_t base = place(a.kept_rank, a.kept_size, a.kept_stride, out);
  if (s.index == INT64_MAX) return;
  load<type, state, width>(a, base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, s.index), v);
  int at = width - 1;
#pragma unroll
  for (int j = width - 2; j >= 0; j--) at = v[j] == s.v || (v[j] != v[j] && s.v != s.v) ? j : at;
  s.index += at;
}

template <typename type, typename state, int width>
RDNA_DEVICE void rows(const reduce_dims_args &args, state *scratch) {
  bool wave = args.layout == REDUCE_WAVE;
  int64_t units = args.outs * args.slices, at_once = wave ? REDUCE_DIMS_THREADS / WAVE_SIZE : 1;
  uint32_t rank = wave ? lane_id() : thread_id(), threads = wave ? WAVE_SIZE : REDUCE_DIMS_THREADS;
  for (int64_t unit = group_id_x() * at_once + (wave ? wave_id() : 0); unit < units;
       unit += group_count_x() * at_once) {
    const reduce_dims_args &a = arguments_again_wide(args);
    int64_t slice = a.slices == 1 ? 0 : unit / a.outs, out = unit - slice * a.outs;
    state s = wave_join(share<type, state, width>(a, out, slice, rank, threads));
    if (!wave) s = group_join<REDUCE_DIMS_THREADS>(s, scratch);
    if (rank != 0) continue;
    if constexpr (state::KIND == REDUCE_ARG && width > 1) look_up<type, state, width>(a, out, s);
    write(a, out, slice, s);
  }
}

/* Lanes take neighbouring outputs and waves take values in turn. */
template <typename type, typename state, int width>
RDNA_DEVICE void columns(const reduce_dims_args &args, state *scratch) {
  typedef typename state::kept acc;
  constexpr int waves = REDUCE_DIMS_THREADS / WAVE_SIZE, tile = WAVE_SIZE * width;
  int64_t tiles = (args.outs + tile - 1) / tile;
  for (int64_t unit = group_id_x(); unit < tiles * args.slices; unit += group_count_x()) {
    const reduce_dims_args &a = arguments_again(args);
    int64_t out = unit % tiles * tile + lane_id() * width, slice = unit / tiles;
    state s[width];
    int64_t base = out < a.outs ? place(a.kept_rank, a.kept_size, a.kept_stride, out) : 0;
    for (int64_t first = slice * a.slice; first < a.count && out < a.outs; first += a.slices * a.slice) {
      int64_t end = first + a.slice < a.count ? first + a.slice : a.count, i = first + wave_id();
      constexpr int ahead = state::PARTS == 1 ? REDUCE_DIMS_AHEAD : 2;
      if constexpr (width > 1) {
        for (; i + (ahead - 1) * waves < end; i += ahead * waves) {
          uint4 bits[ahead];
#pragma unroll
          for (int k = 0; k < ahead; k++) {
            int64_t at = base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i + k * waves);
            bits[k] = load_as<uint4>((const char *)a.x + at * type::BYTES);
          }
#pragma unroll
          for (int k = 0; k < ahead; k++) {
            acc v[width];
            type::unpack(bits[k], v);
            map_values<state::KIND, width>(v, a.map, a.parameter);
#pragma unroll
            for (int j = 0; j < width; j++) state::template add_to<1>(s[j], v + j, i + k * waves);
          }
        }
      } else {
        for (; i + (ahead - 1) * waves < end; i += ahead * waves) {
          acc v[ahead];
#pragma unroll
          for (int k = 0; k < ahead; k++) {
            int64_t at = base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i + k * waves);
            load<type, state, 1>(a, at, v + k);
          }
#pragma unroll
          for (int k = 0; k < ahead; k++) state::template add_to<1>(s[0], v + k, i + k * waves);
        }
      }
#pragma nounroll
      for (; i < end; i += waves) {
        acc v[width];
        load<type, state, width>(a, base + place(a.reduced_rank, a.reduced_size, a.reduced_stride, i), v);
#pragma unroll
        for (int j = 0; j < width; j++) state::template add_to<1>(s[j], v + j, i);
      }
    }
    /* Not unrolled: the end of a reduction is long. */
#pragma nounroll
    for (int j = 0; j < width; j++) {
      state next = s[0];
#pragma unroll
      for (int k = 1; k < width; k++) s[k - 1] = s[k];
      group_barrier();
      scratch[thread_id()] = next;
      group_barrier();
      if (thread_id() < WAVE_SIZE && out < a.outs) {
#pragma nounroll
        for (int w = 1; w < waves; w++) state::join(next, scratch[w * WAVE_SIZE + thread_id()]);
        write(a, out + j, slice, next);
      }
    }
  }
}

template <typename type, typename state, int width>
RDNA_DEVICE void reduce_width(const reduce_dims_args &a, void *scratch) {
  if (a.layout == REDUCE_COLUMNS) {
    /* arguments side by side need more scalar registers for their comparisons than there are */
    if constexpr (state::KIND != REDUCE_ARG || width == 1) columns<type, state, width>(a, (state *)scratch);
  } else {
    rows<type, state, width>(a, (state *)scratch);
  }
}

template <typename type, typename state>
RDNA_DEVICE void reduce_any(const reduce_dims_args &a, void *scratch) {
  if constexpr (__is_same(typename state::kept, float)) {
    if (a.vector) {
      reduce_width<type, state, type::IN_16>(a, scratch);
      return;
    }
  }
  reduce_width<type, state, 1>(a, scratch);
}

#define REDUCE(name, type, state)                                                 \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) name(struct reduce_dims_args a) {              \
    RDNA_SHARED static uint64_t scratch[REDUCE_DIMS_THREADS * sizeof(state) / 8]; \
    reduce_any<type, state>(a, scratch);                                          \
  }
#define REDUCE_FOUR(type, acc)                   \
  REDUCE(reduce_sum_##type, type, sum_of<acc>)   \
  REDUCE(reduce_prod_##type, type, prod_of<acc>) \
  REDUCE(reduce_max_##type, type, max_of<acc>)   \
  REDUCE(reduce_arg_##type, type, arg_of<acc>)
#define REDUCE_FLOATS(type, acc) \
  REDUCE_FOUR(type, acc)         \
  REDUCE(reduce_var_##type, type, var_of<acc>)
REDUCE_FLOATS(f32, float)
REDUCE_FLOATS(f16, float)
REDUCE_FLOATS(bf16, float)
REDUCE_FLOATS(f64, double)
REDUCE_FOUR(i32, int64_t)
REDUCE_FOUR(i64, int64_t)
REDUCE_FOUR(u8, int64_t)
REDUCE(reduce_lse_f32, f32, lse_of<float>)
REDUCE(reduce_lse_f16, f16, lse_of<float>)
REDUCE(reduce_lse_bf16, bf16, lse_of<float>)

/* Dense rows of any alignment, for kinds that are asked for often. */
/* The maps that lines offer: of signs, by bits, and squares. Floats of which |sign| has the sign bits. */
RDNA_DEVICE uint32_t mapped(uint32_t bits, uint32_t sign, int32_t map) {
  return map == REDUCE_ABS ? bits & ~sign : map == REDUCE_REVERSE ? bits ^ sign : bits;
}
template <typename type>
RDNA_DEVICE uint4 mapped(uint4 bits, int32_t map) {
  constexpr uint32_t sign = type::BYTES == 4 ? 0x80000000 : 0x80008000;
  return uint4{mapped(bits.x, sign, map), mapped(bits.y, sign, map), mapped(bits.z, sign, map),
               mapped(bits.w, sign, map)};
}

/* What a thread keeps of the vectors of a line. */
template <typename type, typename state>
struct line_of_vectors {
  state s;
  RDNA_DEVICE void add(line_of_vectors &l, const reduce_dims_args &a, uint4 bits, uint32_t) {
    typename state::kept v[type::IN_16];
    type::unpack(state::KIND == REDUCE_VAR || state::KIND == REDUCE_LSE ? bits : mapped<type>(bits, a.map), v);
    if constexpr (state::KIND == REDUCE_SUM) {
      bool square = a.map == REDUCE_SQUARE;
#pragma unroll
      for (int j = 0; j < type::IN_16; j++) v[j] *= square ? v[j] : 1;
    }
    state::template add_to<type::IN_16>(l.s, v, 0);
  }
  RDNA_DEVICE void join_to(state &s, const line_of_vectors &l, const reduce_dims_args &, int64_t, uint32_t) {
    state::join(s, l.s);
  }
};

/* Of arguments: the vector itself with the best value of all, and its number among the thread's. Which of its values
 * that was is found once. */
template <typename type>
struct line_of_vectors<type, arg_of<float>> {
  enum { NONE = 0xffffffff };
  uint4 held = {0, 0, 0, 0};
  float best = limits<float>::lowest();
  uint32_t number = NONE;
  RDNA_DEVICE void add(line_of_vectors &l, const reduce_dims_args &a, uint4 bits, uint32_t number) {
    float v[type::IN_16];
    bits = mapped<type>(bits, a.map);
    type::unpack(bits, v);
#pragma unroll
    for (int by = 1; by < type::IN_16; by *= 2)
#pragma unroll
      for (int k = 0; k + by < type::IN_16; k += 2 * by) v[k] = larger(v[k], v[k + by]);
    bool before = v[0] > l.best || (v[0] != v[0] && l.best == l.best) || l.number == NONE;
    l.best = before ? v[0] : l.best;
    l.number = before ? number : l.number;
#pragma unroll
    for (int k = 0; k < 4; k++) l.held[k] = before ? bits[k] : l.held[k];
  }
  RDNA_DEVICE void join_to(arg_of<float> &s, const line_of_vectors &l, const reduce_dims_args &a, int64_t first,
                           uint32_t apart) {
    float v[type::IN_16];
    if (l.number == NONE) return;
    type::unpack(l.held, v);
    int lane = type::IN_16 - 1;
#pragma unroll
    for (int j = type::IN_16 - 2; j >= 0; j--) lane = v[j] == l.best || (v[j] != v[j] && l.best != l.best) ? j : lane;
    arg_of<float> found = {l.best, first + (int64_t)l.number * apart + lane};
    arg_of<float>::join(s, found);
  }
};

/* |count| vectors of a thread from |p| on, |step| bytes apart, as far as they begin before |end|, all under way before
 * the first is looked at: it is number |number|. */
template <int count, typename type, typename state>
RDNA_DEVICE void add_vectors(const reduce_dims_args &a, const char *p, const char *end, uint32_t step, uint32_t number,
                             line_of_vectors<type, state> &line) {
  uint4 bits[count];
#pragma unroll
  for (uint32_t j = 0; j < count; j++) {
    bits[j] = uint4{0, 0, 0, 0};
    if (p + j * step < end) bits[j] = load_as<uint4>(p + j * step);
  }
#pragma unroll
  for (uint32_t j = 0; j < count; j++) {
    if (p + j * step >= end) break;
    line_of_vectors<type, state>::add(line, a, again(bits[j]), number + j);
  }
}

/* Values [first, end) of a dense row at any alignment: single values up to a multiple of 16 bytes, vectors, and what
 * is left. */
template <typename type, typename state>
RDNA_DEVICE void add_line(const reduce_dims_args &a, int64_t base, int64_t first, int64_t end, uint32_t rank,
                          uint32_t threads, state &s) {
  constexpr uint32_t width = type::IN_16, ahead = REDUCE_DIMS_AHEAD;
  const char *p = (const char *)a.x + (base + first) * type::BYTES;
  int64_t count = end - first, before = (int64_t)((-address_of(p) & 15) / type::BYTES);
  if (before > count) before = count;
  const uint32_t after = (uint32_t)(count - before) % width, step = threads * 16;
  const char *last = p + (count - after) * type::BYTES;
  line_of_vectors<type, state> line;
  uint32_t number = 0;
#pragma nounroll
  for (p += (before + rank * width) * type::BYTES; p < last; p += ahead * step) {
    add_vectors<ahead, type, state>(a, p, last, step, number, line);
    number += ahead;
  }
  line_of_vectors<type, state>::join_to(s, line, a, first + before + rank * width, threads * width);
  /* Of equal arguments the lower wins in a join, whichever is seen first. */
#pragma nounroll
  for (uint32_t k = rank; k < (uint32_t)before + after; k += threads) {
    int64_t at = k < before ? first + k : end - after + (k - before);
    float v = type::load(a.x, (uint64_t)(base + at));
    state one;
    if constexpr (state::KIND != REDUCE_VAR && state::KIND != REDUCE_LSE)
      v = bits_as<float>(mapped(bits_as<uint32_t>(v), 0x80000000, a.map));
    if (state::KIND == REDUCE_SUM && a.map == REDUCE_SQUARE) v *= v;
    state::template add_to<1>(one, &v, at);
    state::join(s, one);
  }
}

/* |a.team| lanes of a wave, or a group, for each output. */
template <typename type, typename state>
RDNA_DEVICE void lines(const reduce_dims_args &args, void *scratch) {
  const bool group = args.layout == REDUCE_GROUP;
  const uint32_t threads = group ? REDUCE_DIMS_THREADS : (uint32_t)args.team, rank = thread_id() & (threads - 1);
  const int64_t units = args.outs * args.slices, at_once = REDUCE_DIMS_THREADS / threads;
  for (int64_t first = group_id_x() * at_once; first < units; first += group_count_x() * at_once) {
    const reduce_dims_args &a = arguments_again_wide(args);
    int64_t unit = first + thread_id() / threads;
    int64_t slice = a.slices == 1 ? 0 : (uint32_t)unit / (uint32_t)a.outs, out = unit - slice * a.outs;
    int64_t base = unit < units ? place(a.kept_rank, a.kept_size, a.kept_stride, out) : 0;
    state s;
#pragma nounroll
    for (int64_t i = slice * a.slice; i < a.count && unit < units; i += a.slices * a.slice) {
      add_line<type, state>(a, base, i, i + a.slice < a.count ? i + a.slice : a.count, rank, threads, s);
    }
    s = wave_join(s, threads);
    if (group) s = group_join<REDUCE_DIMS_THREADS>(s, (state *)scratch);
    if (rank != 0 || unit >= units) continue;
    write(a, out, slice, s);
  }
}

#define LINES(name, resident, type, state)                                                    \
  RDNA_KERNEL_RESIDENT(REDUCE_DIMS_THREADS, resident) name(struct reduce_dims_args a) {       \
    RDNA_SHARED static uint64_t scratch[REDUCE_DIMS_THREADS / WAVE_SIZE * sizeof(state) / 4]; \
    lines<type, state>(a, scratch);                                                           \
  }
#define LINES_OF(type)                                  \
  LINES(reduce_sum_line_##type, 4, type, sum_of<float>) \
  LINES(reduce_max_line_##type, 4, type, max_of<float>) \
  LINES(reduce_var_line_##type, 4, type, var_of<float>) \
  LINES(reduce_lse_line_##type, 4, type, lse_of<float>) \
  LINES(reduce_arg_line_##type, 4, type, arg_of<float>)
LINES_OF(f32)
LINES_OF(f16)
LINES_OF(bf16)

/* Plain sums along dense rows, the most frequent reduction, without a choice inside of the loop. |ahead| vectors of a
 * thread are under way together; |all| of them lie before |end|, or as many as do. */
template <int ahead, bool all, typename type>
RDNA_DEVICE float sum_vectors(const char *p, const char *end, uint32_t step, float sum) {
  uint4 bits[ahead];
#pragma unroll
  for (uint32_t j = 0; j < ahead; j++) {
    bits[j] = uint4{0, 0, 0, 0};
    if (all || p + (uint64_t)j * step < end) bits[j] = load_as<uint4>(p + (uint64_t)j * step);
  }
#pragma unroll
  for (int j = 0; j < ahead; j++) {
    float v[type::IN_16];
    type::unpack(again(bits[j]), v); /* one after the other: unpacked all at once they would not fit the registers */
#pragma unroll
    for (int by = 1; by < type::IN_16; by *= 2)
#pragma unroll
      for (int k = 0; k + by < type::IN_16; k += 2 * by) v[k] += v[k + by];
    sum = again(sum + v[0]);
  }
  return sum;
}

/* |bytes| in all: what lies before a multiple of 16 bytes and what is left at the end, then |most| vectors at once,
 * then up to |rest|. */
template <int most, int rest, typename type>
RDNA_DEVICE float sum_line(const char *p, int64_t bytes, uint32_t rank, uint32_t threads) {
  const uint32_t step = threads * 16;
  int64_t before = (int64_t)(-address_of(p) & 15);
  if (before > bytes) before = bytes;
  int64_t after = (bytes - before) & 15;
  const char *end = p + (bytes - after);
  float sum = 0;
  if (rank * type::BYTES < before) sum = type::load(p, rank);
  if (rank * type::BYTES < after) sum += type::load(end, rank);
#pragma nounroll
  for (uint32_t k = rank + threads; k < type::IN_16; k += threads) { /* where threads are fewer than single values */
    if (k * type::BYTES < before) sum += type::load(p, k);
    if (k * type::BYTES < after) sum += type::load(end, k);
  }
  p += before + rank * 16;
  for (; p + (most - 1) * step < end; p += most * step) sum = sum_vectors<most, true, type>(p, end, step, sum);
#pragma nounroll
  for (; p < end; p += rest * step) sum = sum_vectors<rest, false, type>(p, end, step, sum);
  return sum;
}

template <typename type>
RDNA_DEVICE const char *line_of(const reduce_dims_args &a, int64_t out) {
  return (const char *)a.x + place(a.kept_rank, a.kept_size, a.kept_stride, out) * type::BYTES;
}

/* A row of up to 8 KB is in flight as a whole; a short one is a part of the wave's. */
template <typename type>
RDNA_DEVICE void sum_rows_of_waves(const reduce_dims_args &a) {
  const uint32_t team = (uint32_t)a.team, rank = thread_id() & (team - 1);
  const int64_t at_once = REDUCE_DIMS_THREADS / team, bytes = a.count * type::BYTES;
  for (int64_t first = group_id_x() * at_once; first < a.outs; first += group_count_x() * at_once) {
    int64_t out = first + thread_id() / team;
    sum_of<float> s;
    if (team == WAVE_SIZE) {
      if (out < a.outs) s.v = sum_line<16, 8, type>(line_of<type>(a, out), bytes, rank, team);
      s.v = wave_sum_f32(s.v);
    } else {
      if (out < a.outs) s.v = sum_line<4, 4, type>(line_of<type>(a, out), bytes, rank, team);
      s = wave_join(s, team);
    }
    if (rank == 0 && out < a.outs) write(a, out, 0, s);
  }
}

template <typename type>
RDNA_DEVICE void sum_long_rows(const reduce_dims_args &a, float *scratch) {
  for (int64_t unit = group_id_x(); unit < a.outs * a.slices; unit += group_count_x()) {
    int64_t slice = a.slices == 1 ? 0 : (uint32_t)unit / (uint32_t)a.outs, out = unit - slice * a.outs;
    const char *line = line_of<type>(a, out);
    float sum = 0;
    for (int64_t first = slice * a.slice; first < a.count; first += a.slices * a.slice) {
      int64_t count = first + a.slice < a.count ? a.slice : a.count - first;
      sum += sum_line<REDUCE_DIMS_AHEAD, REDUCE_DIMS_AHEAD, type>(line + first * type::BYTES, count * type::BYTES,
                                                                  thread_id(), REDUCE_DIMS_THREADS);
    }
    sum = group_sum_f32<REDUCE_DIMS_THREADS>(sum, scratch);
    if (thread_id() == 0) write(a, out, slice, sum_of<float>{sum});
  }
}

/* Plain sums of outputs side by side, whose rows may begin anywhere. Rows whose numbers are equal modulo 8 begin at the
 * same distance from a multiple of 16 bytes, so each 32 threads take one such class and add whole aligned vectors; only
 * their sums are moved to their columns, through LDS. A vector at an edge holds values of other rows, or, of the first
 * and of the last row, of other memory, which is not read. */
template <typename type>
RDNA_DEVICE void sum_columns(const reduce_dims_args &args, float *scratch) {
  constexpr int width = type::IN_16, lanes = 32, line = lanes * width, ahead = REDUCE_DIMS_AHEAD;
  constexpr uint32_t classes = REDUCE_DIMS_THREADS / lanes;
  constexpr int64_t tile = line - width;
  const int64_t tiles = (args.kept_size[0] + tile - 1) / tile, whole = tiles * (args.outs / args.kept_size[0]);
  const uint32_t my_class = thread_id() / lanes, lane = thread_id() % lanes;
  for (int64_t unit = group_id_x(); unit < whole * args.slices; unit += group_count_x()) {
    const reduce_dims_args &a = arguments_again_wide(args);
    const int64_t inner = a.kept_size[0], row_bytes = a.reduced_stride[0] * type::BYTES;
    int64_t slice = unit / whole, left = unit - slice * whole, outer = left / tiles;
    int64_t column = (left - outer * tiles) * tile;
    int64_t base = place(a.kept_rank - 1, a.kept_size + 1, a.kept_stride + 1, outer);
    const char *p = (const char *)a.x + (base + column) * type::BYTES;
    int64_t mine = column + lane * width - (int64_t)((address_of(p) + my_class * row_bytes & 15) / type::BYTES);
    const bool edge = mine < 0 || mine + width > inner;
    const char *q = (const char *)a.x + (base + mine) * type::BYTES;
    float s[width];
#pragma unroll
    for (int j = 0; j < width; j++) s[j] = 0;
    for (int64_t first = slice * a.slice; first < a.count && mine < inner; first += a.slices * a.slice) {
      int64_t end = first + a.slice < a.count ? first + a.slice : a.count, i = first + my_class;
      if (edge && i == 0) i += classes;
      if (edge && end == a.count) end--;
      const char *row = q + i * row_bytes;
#pragma nounroll
      for (; i < end; i += ahead * classes) {
        uint4 bits[ahead];
#pragma unroll
        for (int k = 0; k < ahead; k++) {
          bits[k] = uint4{0, 0, 0, 0};
          if (i + k * classes < end) bits[k] = load_as<uint4>(row);
          row += classes * row_bytes;
        }
#pragma unroll
        for (int k = 0; k < ahead; k++) {
          float v[width];
          type::unpack(again(bits[k]), v);
#pragma unroll
          for (int j = 0; j < width; j++) s[j] += v[j];
        }
      }
    }
    if (edge && mine < inner) {
#pragma nounroll
      for (int64_t row = 0; row < a.count; row = row + 1 < a.count ? a.count - 1 : a.count) {
        if (row % classes != my_class || row / a.slice % a.slices != slice) continue;
#pragma unroll
        for (int j = 0; j < width; j++)
          if (mine + j >= 0 && mine + j < inner) s[j] += type::load(q + row * row_bytes, j);
      }
    }
    group_barrier();
#pragma unroll
    for (int j = 0; j < width; j++) scratch[my_class * line + lane * width + j] = s[j];
    group_barrier();
    if (thread_id() < tile && column + thread_id() < inner) {
      sum_of<float> sum;
#pragma unroll
      for (uint32_t c = 0; c < classes; c++)
        sum.v += scratch[c * line + thread_id() + (address_of(p) + c * row_bytes & 15) / type::BYTES];
      write(a, outer * inner + column + thread_id(), slice, sum);
    }
  }
}

template <typename type>
struct dtype_of;
template <>
struct dtype_of<f32> {
  enum { DTYPE = RDNA_F32 };
};
template <>
struct dtype_of<f16> {
  enum { DTYPE = RDNA_F16 };
};
template <>
struct dtype_of<bf16> {
  enum { DTYPE = RDNA_BF16 };
};

/* Plain sums of outputs side by side, a vector of them to a thread, which takes all of their values: for short columns
 * that are many. */
template <typename type>
RDNA_DEVICE void sum_alone(const reduce_dims_args &a) {
  constexpr int width = type::IN_16, ahead = 8;
  constexpr int64_t tile = REDUCE_DIMS_THREADS * width;
  const int64_t row_bytes = a.reduced_stride[0] * type::BYTES;
  for (int64_t out = group_id_x() * tile + thread_id() * width; out < a.outs; out += group_count_x() * tile) {
    const char *p = line_of<type>(a, out);
    float s[width];
#pragma unroll
    for (int j = 0; j < width; j++) s[j] = 0;
#pragma nounroll
    for (int64_t i = 0; i < a.count; i += ahead) {
      uint4 bits[ahead];
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        bits[k] = uint4{0, 0, 0, 0};
        if (i + k < a.count) bits[k] = load_as<uint4>(p);
        p += row_bytes;
      }
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        float v[width];
        type::unpack(again(bits[k]), v);
#pragma unroll
        for (int j = 0; j < width; j++) s[j] += v[j];
      }
    }
    if (a.out_dtype == dtype_of<type>::DTYPE && all_16(address_of(a.out))) {
      if (a.end == REDUCE_SCALED) {
#pragma unroll
        for (int j = 0; j < width; j++) s[j] *= (float)a.parameter;
      }
      type::store_16((char *)a.out + out * type::BYTES, s);
      continue;
    }
#pragma nounroll
    for (int j = 0; j < width; j++) {
      write(a, out + j, 0, sum_of<float>{s[0]});
#pragma unroll
      for (int k = 1; k < width; k++) s[k - 1] = s[k];
    }
  }
}

#define PLAIN_SUMS(type)                                                                                             \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_wave_##type(struct reduce_dims_args a) { sum_rows_of_waves<type>(a); } \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_long_##type(struct reduce_dims_args a) {                               \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(REDUCE_DIMS_THREADS)];                                            \
    sum_long_rows<type>(a, scratch);                                                                                 \
  }                                                                                                                  \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_columns_##type(struct reduce_dims_args a) {                            \
    RDNA_SHARED static float scratch[REDUCE_DIMS_THREADS * type::IN_16];                                             \
    sum_columns<type>(a, scratch);                                                                                   \
  }                                                                                                                  \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_alone_##type(struct reduce_dims_args a) { sum_alone<type>(a); }
PLAIN_SUMS(f32)
PLAIN_SUMS(f16)
PLAIN_SUMS(bf16)

/* A wave joins the slices of an output, or a group, where they are many. */
template <typename state>
RDNA_DEVICE void join_slices(const reduce_join_args &a, void *scratch) {
  typedef typename state::kept acc;
  const bool group = a.slices > REDUCE_JOIN_WAVE_SLICES;
  const uint32_t team = group ? REDUCE_DIMS_THREADS : WAVE_SIZE, rank = thread_id() & (team - 1);
  const int64_t at_once = REDUCE_DIMS_THREADS / team;
  for (int64_t first = group_id_x() * at_once; first < a.outs; first += group_count_x() * at_once) {
    int64_t out = first + thread_id() / team;
    state s;
#pragma nounroll
    for (int64_t slice = rank; slice < a.slices && out < a.outs; slice += team) {
      state o;
      acc *parts = (acc *)&o;
#pragma unroll
      for (int i = 0; i < state::PARTS; i++) parts[i] = ((const acc *)a.partial)[(i * a.slices + slice) * a.outs + out];
      if constexpr (state::KIND == REDUCE_ARG) o.index = a.partial_index[slice * a.outs + out];
      state::join(s, o);
    }
    s = wave_join(s);
    if (group) s = group_join<REDUCE_DIMS_THREADS>(s, (state *)scratch);
    if (rank == 0 && out < a.outs) store(a.out, out, a.out_dtype, state::end(s, a.end, a.parameter));
  }
}

template <typename acc>
RDNA_DEVICE void join_kind(const reduce_join_args &a, void *scratch) {
  switch (a.kind) {
    case REDUCE_SUM:
      return join_slices<sum_of<acc>>(a, scratch);
    case REDUCE_PROD:
      return join_slices<prod_of<acc>>(a, scratch);
    case REDUCE_MAX:
      return join_slices<max_of<acc>>(a, scratch);
    case REDUCE_ARG:
      return join_slices<arg_of<acc>>(a, scratch);
    case REDUCE_VAR:
      if constexpr (acc(0.5) != 0) join_slices<var_of<acc>>(a, scratch);
      return;
    default:
      if constexpr (sizeof(acc) == 4) join_slices<lse_of<acc>>(a, scratch);
  }
}

RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_join(struct reduce_join_args a) {
  RDNA_SHARED static uint64_t scratch[REDUCE_DIMS_THREADS / WAVE_SIZE * sizeof(moments<double>) / 8];
  switch (a.keeper) {
    case RDNA_F32:
      return join_kind<float>(a, scratch);
    case RDNA_F64:
      return join_kind<double>(a, scratch);
    default:
      return join_kind<int64_t>(a, scratch);
  }
}
