/* Softmax of rows; softmax_kernels.h says which rows are a wave's and which a group's. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/common/device/chunk.h"
#include "math/common/device/fast.h"
#include "math/common/device/teams.h"
#include "math/common/edges.h"
#include "math/softmax/softmax_kernels.h"

/* exp, by the hardware's exponential where the error is lost in rounding to 16 bits. */
template <typename type>
RDNA_DEVICE float exp_of(float v) {
  return type::BYTES == 4 ? scalar_exp(v) : fast_exp(v);
}

/* The value written for scale x = v. |top| is the row's maximum; |last| is 1 / sum, or log(sum). */
template <typename type>
RDNA_DEVICE float finish(float v, float top, float last, bool log) {
  return log ? v - top - last : exp_of<type>(v - top) * last;
}

/* Where the vectors of a row lie; see "Rows at any alignment" in src/math/README.md. */
template <typename type>
RDNA_DEVICE row_edges edges_of(const char *row, uint64_t cols) {
  return row_edges_of(address_of(row), cols, type::IN_16);
}
template <typename type>
RDNA_DEVICE void store_vector(char *to, const float *v, bool alike) {
  if (alike) return type::store_16(to, v);
#pragma unroll
  for (uint32_t k = 0; k < type::IN_16; k++) type::store(to, k, v[k]);
}
/* Whether what is a vector's place in |x| is one in |out|. */
RDNA_DEVICE bool is_alike(const char *x, const char *out) { return all_16(address_of(x) ^ address_of(out)); }

/* A row in the registers of a team, |pieces| vectors a thread: vector j of thread t is number j * team::SIZE + t.
 * Unless |edged| it is aligned. Exponentials are computed twice: to keep them would take twice the registers, so that
 * half as many loads were in flight. */
template <typename type, bool edged, int pieces, typename team>
RDNA_DEVICE void held_row(const softmax_args &a, const char *x, char *out, float *scratch) {
  typedef piece<type, true> part;
  constexpr uint32_t width = type::IN_16;
  const uint32_t first = team::rank() * width, cols = (uint32_t)a.cols;
  const bool alike = !edged || is_alike(x, out);
  row_edges e = {0, cols / width, 0};
  if (edged) e = edges_of<type>(x, cols);
  const uint32_t single = edged ? (uint32_t)row_edges_single(&e, cols, team::rank(), width) : cols;
  uint32_t end = (uint32_t)e.vectors * width;
  const char *body = x + e.head * type::BYTES;
  part held[pieces];
  float v[width], alone = -infinity_f32(), sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    uint32_t col = i * team::SIZE * width + first;
    if (col < end) held[i] = part::load(body, col);
  }
  if (edged && single < cols) alone = type::load(x, single) * a.scale;
  float top = alone;
  end = again_uniform(end);
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    if (i * team::SIZE * width + first >= end) continue;
    part::unpack(held[i], v);
#pragma unroll
    for (uint32_t j = 0; j < width; j++) top = max_f32(top, v[j] * a.scale);
  }
  top = team::max(top, scratch);
  end = again_uniform(end);
  if (edged && single < cols) sum = exp_of<type>(alone - top);
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    if (i * team::SIZE * width + first >= end) continue;
    part::unpack(held[i], v);
#pragma unroll
    for (uint32_t j = 0; j < width; j++) sum += exp_of<type>(v[j] * a.scale - top);
  }
  sum = team::sum(sum, scratch);
  end = again_uniform(end);
  float last = a.log ? scalar_log(sum) : 1 / sum;
  if (edged && single < cols) type::store(out, single, finish<type>(alone, top, last, a.log));
  out += e.head * type::BYTES;
#pragma unroll
  for (uint32_t i = 0; i < pieces; i++) {
    uint32_t col = i * team::SIZE * width + first;
    if (col >= end) continue;
    part::unpack(held[i], v);
#pragma unroll
    for (uint32_t j = 0; j < width; j++) v[j] = finish<type>(v[j] * a.scale, top, last, a.log);
    store_vector<type>(out + col * type::BYTES, v, alike);
  }
}

/* The maximum of some values, and the sum of exp(v - maximum); 0 where all are -inf. */
struct running {
  float top, sum;
};
template <typename type>
RDNA_DEVICE float rescaled(const running &s, float top) {
  return s.sum != 0 ? s.sum * exp_of<type>(s.top - top) : 0;
}

/* How many vectors of a longer row a thread has at once: together they are a stretch, SOFTMAX_PART_VECTORS vectors. */
static constexpr uint32_t at_once = SOFTMAX_PART_VECTORS / SOFTMAX_THREADS;

template <typename type>
struct stretch {
  piece<type, true> held[at_once];
  RDNA_DEVICE uint32_t vector(uint32_t i) { return i * SOFTMAX_THREADS + thread_id(); }
  /* How many vectors there are of |first| to |end|. */
  RDNA_DEVICE uint32_t count(uint64_t first, uint64_t end) {
    return again_uniform(end - first < SOFTMAX_PART_VECTORS ? (uint32_t)(end - first) : SOFTMAX_PART_VECTORS);
  }
  RDNA_DEVICE void load(stretch &s, const char *body, uint64_t first, uint64_t end) {
    if (first >= end) return;
    const uint32_t left = count(first, end);
#pragma unroll
    for (uint32_t i = 0; i < at_once; i++) {
      if (vector(i) < left) s.held[i].bits = load_as<uint4>(body + first * 16 + vector(i) * 16);
    }
  }
  RDNA_DEVICE void add(stretch &s, running &r, uint64_t first, uint64_t end, float scale) {
    float v[type::IN_16], grown = r.top;
    uint32_t left = count(first, end);
#pragma unroll
    for (uint32_t i = 0; i < at_once; i++) {
      if (vector(i) >= left) continue;
      piece<type, true>::unpack(s.held[i], v);
#pragma unroll
      for (uint32_t j = 0; j < type::IN_16; j++) grown = max_f32(grown, v[j] * scale);
    }
    /* a row that begins with -inf has no difference of maxima yet, and nothing to rescale */
    if (grown == -infinity_f32()) return;
    r.sum = rescaled<type>(r, grown);
    r.top = grown;
    left = again_uniform(left);
#pragma unroll
    for (uint32_t i = 0; i < at_once; i++) {
      if (vector(i) >= left) continue;
      piece<type, true>::unpack(s.held[i], v);
#pragma unroll
      for (uint32_t j = 0; j < type::IN_16; j++) r.sum += exp_of<type>(v[j] * scale - grown);
    }
  }
  RDNA_DEVICE void write(stretch &s, char *body, uint64_t first, uint64_t end, float scale, const running &row,
                         bool log, bool alike) {
    float v[type::IN_16];
    const uint32_t left = count(first, end);
#pragma unroll
    for (uint32_t i = 0; i < at_once; i++) {
      if (vector(i) >= left) continue;
      piece<type, true>::unpack(s.held[i], v);
#pragma unroll
      for (uint32_t j = 0; j < type::IN_16; j++) v[j] = finish<type>(v[j] * scale, row.top, row.sum, log);
      store_vector<type>(body + first * 16 + vector(i) * 16, v, alike);
    }
  }
};

/* Reduces vectors |begin| to |end| of a row, and its single values if |edges|, for the whole group. */
template <typename type>
RDNA_DEVICE running group_running(const char *x, uint64_t cols, float scale, const row_edges &e, uint64_t begin,
                                  uint64_t end, bool edges, float *scratch) {
  running r = {-infinity_f32(), 0};
  stretch<type> s;
  const char *body = x + e.head * type::BYTES;
  uint64_t single = row_edges_single(&e, cols, thread_id(), type::IN_16);
  if (edges && single < cols) {
    r.top = type::load(x, single) * scale;
    r.sum = r.top == -infinity_f32() ? 0 : 1;
  }
  for (uint64_t first = begin; first < end; first += SOFTMAX_PART_VECTORS) {
    stretch<type>::load(s, body, first, end);
    stretch<type>::add(s, r, first, end, scale);
  }
  float top = group_max_f32<SOFTMAX_THREADS>(r.top, scratch);
  return {top, group_sum_f32<SOFTMAX_THREADS>(rescaled<type>(r, top), scratch)};
}

/* Writes vectors |begin| to |end|, the first of which are in |s|, and single values. |row| has what finish takes. */
template <typename type>
RDNA_DEVICE void group_write(stretch<type> &s, const char *x, char *out, uint64_t cols, float scale, bool log,
                             const row_edges &e, uint64_t begin, uint64_t end, bool edges, const running &row) {
  const char *body = x + e.head * type::BYTES;
  const bool alike = is_alike(x, out);
  uint64_t single = row_edges_single(&e, cols, thread_id(), type::IN_16);
  if (edges && single < cols)
    type::store(out, single, finish<type>(type::load(x, single) * scale, row.top, row.sum, log));
  for (uint64_t first = begin; first < end; first += SOFTMAX_PART_VECTORS) {
    if (first > begin) stretch<type>::load(s, body, first, end);
    stretch<type>::write(s, out + e.head * type::BYTES, first, end, scale, row, log, alike);
  }
}

/* A longer row: one pass keeps a maximum and a sum a thread, the second writes. */
template <typename type>
RDNA_DEVICE void long_row(const softmax_args &a, const char *x, char *out, float *scratch) {
  const row_edges e = edges_of<type>(x, (uint64_t)a.cols);
  running row = group_running<type>(x, (uint64_t)a.cols, a.scale, e, 0, e.vectors, true, scratch);
  row.sum = a.log ? scalar_log(row.sum) : 1 / row.sum;
  stretch<type> s;
  stretch<type>::load(s, x + e.head * type::BYTES, 0, e.vectors);
  group_write<type>(s, x, out, (uint64_t)a.cols, a.scale, a.log, e, 0, e.vectors, true, row);
}

template <typename type, bool edged, int pieces>
RDNA_DEVICE void wave_rows(const softmax_args &a) {
  constexpr int64_t waves = SOFTMAX_THREADS / WAVE_SIZE;
  for (int64_t row = group_id_x() * waves + wave_id(); row < a.rows; row += group_count_x() * waves) {
    held_row<type, edged, pieces, wave_team<SOFTMAX_THREADS>>(a, row_at<type>(a.x, row, a.x_stride),
                                                              row_at<type>(a.out, row, a.out_stride), NULL);
  }
}
template <typename type, bool edged, int pieces>
RDNA_DEVICE void group_rows(const softmax_args &a, float *scratch) {
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    held_row<type, edged, pieces, group_team<SOFTMAX_THREADS>>(a, row_at<type>(a.x, row, a.x_stride),
                                                               row_at<type>(a.out, row, a.out_stride), scratch);
  }
}

/* Rows of at most 16 bytes a lane, which |lanes| of a wave share; they have |at_once| rows in flight together. */
template <typename type, uint32_t lanes, uint32_t at_once>
RDNA_DEVICE void short_rows(const softmax_args &a) {
  constexpr uint32_t width = type::IN_16, teams = SOFTMAX_THREADS / lanes;
  const uint32_t col = lane_id() % lanes * width;
  for (int64_t first = (int64_t)group_id_x() * teams * at_once; first < a.rows;
       first += (int64_t)group_count_x() * teams * at_once) {
    uint4 bits[at_once];
    int64_t row[at_once];
    bool there[at_once];
#pragma unroll
    for (uint32_t r = 0; r < at_once; r++) {
      row[r] = first + r * teams + thread_id() / lanes;
      there[r] = row[r] < a.rows && col < (uint32_t)a.cols;
      bits[r] = uint4{};
      if (there[r]) bits[r] = load_as<uint4>(row_at<type>(a.x, row[r], a.x_stride) + col * type::BYTES);
    }
#pragma unroll
    for (uint32_t r = 0; r < at_once; r++) {
      float v[width], top = -infinity_f32(), sum = 0;
      type::unpack(bits[r], v);
#pragma unroll
      for (uint32_t k = 0; k < width; k++) {
        v[k] *= a.scale;
        if (there[r]) top = max_f32(top, v[k]);
      }
#pragma unroll
      for (uint32_t mask = 1; mask < lanes; mask *= 2) top = max_f32(top, wave_shuffle_xor_f32(top, mask));
#pragma unroll
      for (uint32_t k = 0; k < width; k++) {
        if (there[r]) sum += exp_of<type>(v[k] - top);
      }
#pragma unroll
      for (uint32_t mask = 1; mask < lanes; mask *= 2) sum += wave_shuffle_xor_f32(sum, mask);
      float last = a.log ? scalar_log(sum) : 1 / sum;
#pragma unroll
      for (uint32_t k = 0; k < width; k++) v[k] = finish<type>(v[k], top, last, a.log);
      if (there[r]) type::store_16(row_at<type>(a.out, row[r], a.out_stride) + col * type::BYTES, v);
    }
  }
}

RDNA_DEVICE bool is_aligned(const softmax_args &a, uint32_t value_bytes) {
  uint64_t sizes = (uint64_t)a.cols | (uint64_t)a.x_stride | (uint64_t)a.out_stride;
  return all_16(address_of(a.x) | address_of(a.out) | sizes * value_bytes);
}

template <typename type>
RDNA_DEVICE void softmax(const softmax_args &a, float *scratch) {
  constexpr int few = 4; /* vectors of a thread */
  const bool aligned = is_aligned(a, type::BYTES);
  if (aligned && a.cols <= 4 * type::IN_16) return short_rows<type, 4, 4>(a);
  if (aligned && a.cols <= 16 * type::IN_16) return short_rows<type, 16, 4>(a);
  if (a.waves) {
    if (aligned) return wave_rows<type, false, few>(a);
    return wave_rows<type, true, few>(a);
  }
  if ((uint64_t)a.cols * type::BYTES <= few * SOFTMAX_THREADS * 16) {
    if (aligned) return group_rows<type, false, few>(a, scratch);
    return group_rows<type, true, few>(a, scratch);
  }
  for (int64_t row = group_id_x(); row < a.rows; row += group_count_x()) {
    long_row<type>(a, row_at<type>(a.x, row, a.x_stride), row_at<type>(a.out, row, a.out_stride), scratch);
  }
}

/* Longer rows in registers: a kernel of its own, since they take so many that few groups run at once. */
template <typename type>
RDNA_DEVICE void softmax_held(const softmax_args &a, float *scratch) {
  constexpr int of_wave = SOFTMAX_WAVE_BYTES / 16 / WAVE_SIZE, of_group = SOFTMAX_HELD_BYTES / 16 / SOFTMAX_THREADS;
  const bool aligned = is_aligned(a, type::BYTES);
  if (a.waves) {
    if (aligned) return wave_rows<type, false, of_wave>(a);
    return wave_rows<type, true, of_wave>(a);
  }
  if (aligned) return group_rows<type, false, of_group>(a, scratch);
  group_rows<type, true, of_group>(a, scratch);
}

/* Reduces parts of rows. */
template <typename type>
RDNA_DEVICE void softmax_part(const softmax_part_args &a, float *scratch) {
  for (int64_t item = group_id_x(); item < a.rows * a.parts; item += group_count_x()) {
    int64_t row = item / a.parts, part = item - row * a.parts;
    const char *x = row_at<type>(a.x, row, a.x_stride);
    row_edges e = edges_of<type>(x, (uint64_t)a.cols);
    uint64_t begin = (uint64_t)(part * a.part_vectors), end = begin + (uint64_t)a.part_vectors;
    end = end < e.vectors ? end : e.vectors;
    running r = group_running<type>(x, (uint64_t)a.cols, a.scale, e, begin, end, part == 0, scratch);
    if (thread_id() == 0) store_as<float2>(a.states + 2 * item, float2{r.top, r.sum});
  }
}

/* Writes parts of rows, each group joining the row's states for itself. The last parts come first: see "The second pass
 * goes backwards" in src/math/README.md. */
template <typename type>
RDNA_DEVICE void softmax_finish(const softmax_finish_args &a, float *scratch) {
  for (int64_t item = a.rows * a.parts - 1 - group_id_x(); item >= 0; item -= group_count_x()) {
    int64_t row = item / a.parts, part = item - row * a.parts;
    const char *x = row_at<type>(a.x, row, a.x_stride);
    char *out = row_at<type>(a.out, row, a.out_stride);
    row_edges e = edges_of<type>(x, (uint64_t)a.cols);
    uint64_t begin = (uint64_t)(part * a.part_vectors), end = begin + (uint64_t)a.part_vectors;
    end = end < e.vectors ? end : e.vectors;
    stretch<type> s;
    stretch<type>::load(s, x + e.head * type::BYTES, begin, end);
    const float *states = a.states + 2 * row * a.parts;
    running all = {-infinity_f32(), 0};
    for (uint32_t p = thread_id(); p < (uint32_t)a.parts; p += SOFTMAX_THREADS)
      all.top = max_f32(all.top, states[2 * p]);
    all.top = group_max_f32<SOFTMAX_THREADS>(all.top, scratch);
    for (uint32_t p = thread_id(); p < (uint32_t)a.parts; p += SOFTMAX_THREADS) {
      all.sum += rescaled<type>({states[2 * p], states[2 * p + 1]}, all.top);
    }
    all.sum = group_sum_f32<SOFTMAX_THREADS>(all.sum, scratch);
    all.sum = a.log ? scalar_log(all.sum) : 1 / all.sum;
    group_write<type>(s, x, out, (uint64_t)a.cols, a.scale, a.log, e, begin, end, part == 0, all);
  }
}

#define SOFTMAX(type)                                                                \
  RDNA_KERNEL_RESIDENT(SOFTMAX_THREADS, 4) softmax_##type(struct softmax_args a) {   \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(SOFTMAX_THREADS)];                \
    softmax<type>(a, scratch);                                                       \
  }                                                                                  \
  RDNA_KERNEL(SOFTMAX_THREADS) softmax_held_##type(struct softmax_args a) {          \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(SOFTMAX_THREADS)];                \
    softmax_held<type>(a, scratch);                                                  \
  }                                                                                  \
  RDNA_KERNEL(SOFTMAX_THREADS) softmax_part_##type(struct softmax_part_args a) {     \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(SOFTMAX_THREADS)];                \
    softmax_part<type>(a, scratch);                                                  \
  }                                                                                  \
  RDNA_KERNEL(SOFTMAX_THREADS) softmax_finish_##type(struct softmax_finish_args a) { \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(SOFTMAX_THREADS)];                \
    softmax_finish<type>(a, scratch);                                                \
  }
SOFTMAX(f32)
SOFTMAX(f16)
SOFTMAX(bf16)
