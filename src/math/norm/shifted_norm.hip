/* Norms of rows that begin at any alignment: a group holds a row's vectors and single values in registers, the next row
 * in flight meanwhile (src/math/README.md has both ideas). Memory is read once: 4 bytes a 16-bit value in all, at 3/4
 * of a copy's speed.
 *
 * The weights of a row's vectors begin at weight |head|, so not at a multiple of 16 bytes. They lie in group memory,
 * and load_shifted takes them from there when |head| changes. With a grid of a multiple of 8 groups it never does where
 * rows are equally far apart, as a group has every 8th row, or every 16th and so on: 8 rows are a multiple of 16 bytes
 * apart. */
#include "math/norm/norm_kernels.h"
#include "math/norm/shift.h"
#include "math/norm/span.h"

static constexpr uint32_t threads = SPAN_THREADS;

/* The weights, or biases, that belong to the vectors of a row with so many values before them. */
template <typename type, typename weights, uint32_t count>
struct shifted_factors {
  enum : uint32_t { LOADS = (uint32_t)type::IN_16 / (uint32_t)weights::IN_16 };
  uint4 bits[count][LOADS];
  RDNA_DEVICE void load(shifted_factors &f, const uint4 *from, const span &s) {
#pragma unroll
    for (uint32_t j = 0; j < count; j++) {
      const uint32_t i = j * threads + thread_id();
      if (i >= s.vectors) continue;
#pragma unroll
      for (uint32_t k = 0; k < LOADS; k++) f.bits[j][k] = load_shifted<weights>(from, s.head, i * LOADS + k);
    }
  }
  RDNA_DEVICE void unpack(const shifted_factors &f, uint32_t j, float *v) {
#pragma unroll
    for (uint32_t k = 0; k < LOADS; k++) weights::unpack(f.bits[j][k], v + k * weights::IN_16);
  }
};

struct shifted_rows {
  const void *x;      /* (rows, cols) */
  void *residual;     /* (rows, cols), where x is added to it first */
  const void *weight; /* (cols) or NULL */
  const void *bias;   /* (cols) or NULL */
  void *out;          /* (rows, cols) */
  int64_t rows, cols;
  int64_t x_stride, residual_stride, out_stride;
  float epsilon;
  float *mean, *inverse; /* (rows), or NULL where they are not wanted */
};

/* |weight|, |bias|: group memory for a weight of each of NORM_SHIFTED_BYTES / type::BYTES values, and 16 bytes more. */
template <typename type, typename weights, bool adds, bool centred>
RDNA_DEVICE void shifted_norm(const shifted_rows &a, uint4 *weight, uint4 *bias, float *scratch) {
  constexpr uint32_t size = type::IN_16, count = NORM_SHIFTED_BYTES / 16 / threads;
  typedef held<type, count> row_of;
  typedef typename weights::stored factor;
  const uint32_t cols = (uint32_t)a.cols;
  row_of next;
  typedef shifted_factors<type, weights, count> factors_of;
  factors_of weight_here, bias_here;
  uint32_t head = 0xffffffff; /* that weight_here and bias_here are for */
  span next_span;
  auto load = [&](int64_t r) {
    const char *x = row_at<type>(a.x, r, a.x_stride);
    const char *first = adds ? row_at<type>(a.residual, r, a.residual_stride) : x;
    next_span = span_of<type>(first, cols);
    row_of::load(next, x, next_span, !adds || all_16(address_of(x) ^ address_of(first)));
  };
  if (group_id_x() < a.rows) load(group_id_x());
  for (uint32_t i = thread_id(); i < cols; i += threads) {
    if (a.weight) ((factor *)weight)[i] = ((const factor *)a.weight)[i];
    if (a.bias) ((factor *)bias)[i] = ((const factor *)a.bias)[i];
  }
  group_barrier();
  for (int64_t r = group_id_x(); r < a.rows; r += group_count_x()) {
    row_of now = next;
    const span s = next_span;
    if (r + group_count_x() < a.rows) load(r + group_count_x());
    if (head != s.head) {
      head = s.head;
      if (a.weight) factors_of::load(weight_here, weight, s);
      if (a.bias) factors_of::load(bias_here, bias, s);
    }
    if (adds) add_residual(now, row_at<type>(a.residual, r, a.residual_stride), s);
    const moments<float> m = moments_of(now, s, centred, scratch);
    const float scale = 1.0f / sqrt_f32(m.squares / m.n + a.epsilon);
    if (centred && thread_id() == 0) {
      if (a.mean) a.mean[r] = m.mean;
      if (a.inverse) a.inverse[r] = scale;
    }
    char *out = row_at<type>(a.out, r, a.out_stride), *body = out + s.head * type::BYTES;
    const bool alike = all_16(address_of(body));
#pragma unroll
    for (uint32_t j = 0; j < count; j++) {
      const uint32_t i = j * threads + thread_id();
      if (i >= s.vectors) continue;
      float v[size], w[size];
      type::unpack(now.vector[j] = again(now.vector[j]), v);
#pragma unroll
      for (uint32_t k = 0; k < size; k++) v[k] = (v[k] - m.mean) * scale;
      if (a.weight) {
        factors_of::unpack(weight_here, j, w);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] *= w[k];
      }
      if (a.bias) {
        factors_of::unpack(bias_here, j, w);
#pragma unroll
        for (uint32_t k = 0; k < size; k++) v[k] += w[k];
      }
      if (alike) {
        type::store_16(body + i * 16, v);
      } else {
#pragma unroll
        for (uint32_t k = 0; k < size; k++) ((typename type::stored *)body)[i * size + k] = stored_of<type>(v[k]);
      }
    }
    if (s.single >= cols) continue;
    float v = (type::load(&now.single, 0) - m.mean) * scale;
    if (a.weight) v *= weights::load(weight, s.single);
    if (a.bias) v += weights::load(bias, s.single);
    ((typename type::stored *)out)[s.single] = stored_of<type>(v);
  }
}

#define SHIFTED(name, adds, centred, suffix, type, weights, args, residual, bias, residual_stride, mean, inverse) \
  RDNA_KERNEL_RESIDENT(256, type::BYTES == 4 || centred || adds ? 3 : 4) name##_shifted_##suffix(struct args a) { \
    constexpr uint32_t vectors = NORM_SHIFTED_BYTES / type::BYTES * weights::BYTES / 16 + 1;                      \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(threads)];                                                     \
    RDNA_SHARED static uint4 factors[centred ? 2 : 1][vectors];                                                   \
    shifted_norm<type, weights, adds, centred>({a.x, residual, a.weight, bias, a.out, a.rows, a.cols, a.x_stride, \
                                                residual_stride, a.out_stride, a.epsilon, mean, inverse},         \
                                               factors[0], factors[centred ? 1 : 0], scratch);                    \
  }
#define NORMS(suffix, type, weights)                                                                                \
  SHIFTED(rms_norm, false, false, suffix, type, weights, rms_norm_args, NULL, NULL, 0, NULL, NULL)                  \
  SHIFTED(add_rms_norm, true, false, suffix, type, weights, add_rms_norm_args, a.residual, NULL, a.residual_stride, \
          NULL, NULL)                                                                                               \
  SHIFTED(layer_norm, false, true, suffix, type, weights, layer_norm_args, NULL, a.bias, 0, a.mean, a.inverse)
RDNA__NORM_TYPES(NORMS)
