/* Transforms lines of up to FFT_POINTS values in group memory, several at once where they are short. Each step reads
 * the values and writes them back in another order, so that after the last one results stand in their own order
 * (Stockham's formulation; Govindaraju et al., "High performance discrete Fourier transforms on graphics processors",
 * 2008). When transforms of |length| values are done, a step of radix r combines r of them:
 *
 *     for each j below n / r, with k = j % length and i = 0 … r - 1
 *         reads r values j + i n / r    ->    writes r values (j - k) r + k + i length */
#include "kernel/arguments.h"
#include "math/fft/fft_math.h"

/* "Values again" in src/math/README.md. */
RDNA_DEVICE uint32_t again_u32(uint32_t v) { return bits_as<uint32_t>(again(bits_as<float>(v))); }

/* One value in 17 is a gap, so that values 8 or 4 apart are in different banks. */
RDNA_DEVICE uint32_t padded(uint32_t i) { return i + i / 16; }
constexpr uint32_t padded_size(uint32_t points) { return points + points / 16; }

/* i / by for i up to FFT_POINTS_F32; |inverse| is 1 / by. i + 1/2 is at least 2^-13 of a unit from each whole quotient,
 * and the product is off by less. */
RDNA_DEVICE uint32_t quotient(uint32_t i, float inverse) { return (uint32_t)(((float)i + 0.5f) * inverse); }

RDNA_DEVICE void step(fft_pair_f32 *v, uint32_t radix, uint32_t k, uint32_t length) {
  fft_step_f32(v, radix, k, length);
}
RDNA_DEVICE void step(fft_pair_f64 *v, uint32_t radix, uint32_t k, uint32_t length) {
  fft_step_f64(v, radix, k, length);
}
RDNA_DEVICE fft_pair_f32 read(const fft_args &a, const float *x, uint32_t column, uint32_t i) {
  return fft_read_f32(&a, x, column, i);
}
RDNA_DEVICE fft_pair_f64 read(const fft_args &a, const double *x, uint32_t column, uint32_t i) {
  return fft_read_f64(&a, x, column, i);
}
RDNA_DEVICE void write(const fft_args &a, float *out, uint32_t column, uint32_t k, fft_pair_f32 v) {
  fft_write_f32(&a, out, column, k, v);
}
RDNA_DEVICE void write(const fft_args &a, double *out, uint32_t column, uint32_t k, fft_pair_f64 v) {
  fft_write_f64(&a, out, column, k, v);
}

template <typename pair, uint32_t points, uint32_t radix>
RDNA_DEVICE void pass(pair *s, uint32_t n, uint32_t length, uint32_t values) {
  uint32_t thread = again_u32(thread_id()); /* else indices of all passes are computed ahead of them, and spill */
  constexpr uint32_t turns = (points / radix + FFT_THREADS - 1) / FFT_THREADS;
  pair v[turns][radix] = {}; /* else what no thread has set stays in registers through the passes of all radices */
  uint32_t apart = n / radix, to[turns] = {};
  float per_line = 1.0f / (float)apart, per_length = 1.0f / (float)length;
#pragma unroll
  for (uint32_t turn = 0; turn < turns; turn++) {
    uint32_t b = turn * FFT_THREADS + thread;
    if (b * radix >= values) break;
    uint32_t line = quotient(b, per_line), j = b - line * apart, k = j - quotient(j, per_length) * length;
#pragma unroll
    for (uint32_t r = 0; r < radix; r++) v[turn][r] = s[padded(line * n + j + r * apart)];
    step(v[turn], radix, k, length);
    to[turn] = line * n + (j - k) * radix + k;
  }
  group_barrier();
#pragma unroll
  for (uint32_t turn = 0; turn < turns; turn++) {
    if ((turn * FFT_THREADS + thread) * radix >= values) break;
#pragma unroll
    for (uint32_t r = 0; r < radix; r++) s[padded(to[turn] + r * length)] = v[turn][r];
  }
  group_barrier();
}

template <typename T, typename pair, uint32_t points>
RDNA_DEVICE void fft(const struct fft_args &args, pair *s, struct fft_line *lines) {
  for (uint32_t first = group_id_x() * args.per_group; first < args.lines; first += group_count_x() * args.per_group) {
    const struct fft_args &a = arguments_again(args);
    float per_n = 1.0f / (float)a.n;
    uint32_t count = min_u32(a.per_group, a.lines - first), values = count * a.n;
    float per_count = 1.0f / (float)count;
    if (thread_id() < count) lines[thread_id()] = fft_line_of(&a, first + thread_id());
    group_barrier();
    for (uint32_t e = thread_id(); e < values; e += FFT_THREADS) {
      const struct fft_args &b = arguments_again(args);
      uint32_t q = quotient(e, b.flags & FFT_ACROSS_IN ? per_count : per_n);
      uint32_t line = b.flags & FFT_ACROSS_IN ? e - q * count : q, i = b.flags & FFT_ACROSS_IN ? q : e - q * b.n;
      s[padded(line * b.n + i)] = read(b, (const T *)b.x + lines[line].x, lines[line].column, i);
    }
    group_barrier();
    uint32_t length = 1;
    for (uint64_t radices = a.radices; radices; radices >>= 4) {
      uint32_t radix = radices & 15, n = arguments_again(args).n;
      if (radix == 8) pass<pair, points, 8>(s, n, length, values);
      if (radix == 4) pass<pair, points, 4>(s, n, length, values);
      if (radix == 2) pass<pair, points, 2>(s, n, length, values);
      if (radix == 3) pass<pair, points, 3>(s, n, length, values);
      if (radix == 5) pass<pair, points, 5>(s, n, length, values);
      if (radix == 7) pass<pair, points, 7>(s, n, length, values);
      length *= radix;
    }
    for (uint32_t e = thread_id(); e < values; e += FFT_THREADS) {
      const struct fft_args &b = arguments_again(args);
      uint32_t q = quotient(e, b.flags & FFT_ACROSS_OUT ? per_count : per_n);
      uint32_t line = b.flags & FFT_ACROSS_OUT ? e - q * count : q, k = b.flags & FFT_ACROSS_OUT ? q : e - q * b.n;
      write(b, (T *)b.out + lines[line].out, lines[line].column, k, s[padded(line * b.n + k)]);
    }
    group_barrier();
  }
}

#define KERNEL(suffix, T, points)                            \
  RDNA_KERNEL(FFT_THREADS) fft_##suffix(struct fft_args a) { \
    RDNA_SHARED fft_pair_##suffix s[padded_size(points)];    \
    RDNA_SHARED struct fft_line lines[FFT_LINES];            \
    fft<T, fft_pair_##suffix, points>(a, s, lines);          \
  }
KERNEL(f32, float, FFT_POINTS_F32)
KERNEL(f64, double, FFT_POINTS_F64)
