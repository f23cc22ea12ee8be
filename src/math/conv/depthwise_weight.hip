/* The gradient of the windows of a convolution with one channel a group: see depthwise_kernels.h. */
#include "kernel/prelude.h"

#include "kernel/arguments.h"
#include "math/conv/depthwise_device.h"
#include "math/gemm/gemm_tile.h"

/* Where the sum of a part for one tap of one channel lies. */
RDNA_DEVICE float *depthwise_sum_at(const depthwise_args &args, int taps, int part, int tap, int channel) {
  return args.sums + ((int64_t)part * taps + tap) * args.channels + channel;
}

/* ---- planes ---------------------------------------------------------------------------------------------------- */

/* Loads a run of 4 values of the gradient of y at (y, x) of the plane at |plane|, zero outside. */
template <typename type>
RDNA_DEVICE void depthwise_gradient(const depthwise_args &args, const typename type::stored *plane, int y, int x,
                                    float g[DEPTHWISE_RUN]) {
  const typename type::stored *from = plane + y * args.other_stride[2] + x * args.other_stride[3];
#pragma unroll
  for (int q = 0; q < DEPTHWISE_RUN; ++q)
    g[q] =
        y < args.place_size[0] && x + q < args.place_size[1] ? type::load_global(from + q * args.other_stride[3]) : 0;
}

template <int K, int step>
RDNA_DEVICE void depthwise_taps(const float *tile, int pitch, const float g[DEPTHWISE_RUN], float taps[K * K]) {
  enum { ACROSS = (DEPTHWISE_RUN - 1) * step + K };
#pragma unroll
  for (int i = 0; i < K; ++i) {
    float v[(ACROSS + 3) / 4 * 4];
    depthwise_row<ACROSS>(tile + i * pitch, v);
#pragma unroll
    for (int j = 0; j < K; ++j)
#pragma unroll
      for (int q = 0; q < DEPTHWISE_RUN; ++q) taps[i * K + j] = fma_f32(g[q], v[q * step + j], taps[i * K + j]);
  }
}

/* Adds up |taps| over the group, always in the same order, and stores them as those of a channel's part. */
template <int count>
RDNA_DEVICE void depthwise_join(const depthwise_args &args, const float taps[count], float *memory, int part,
                                int channel) {
  enum { WAVES = DEPTHWISE_THREADS / WAVE_SIZE };
#pragma unroll
  for (int i = 0; i < count; ++i) {
    float sum = wave_sum_f32(taps[i]);
    if (lane_id() == 0) memory[wave_id() * count + i] = sum;
  }
  group_barrier();
  int tap = (int)thread_id();
  if (tap >= count) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < WAVES; ++w) sum += memory[w * count + tap];
  *global(depthwise_sum_at(args, count, part, tap, channel)) = sum;
}

/* A tile has |planes| images of one channel; a thread takes a run of 4 places of one row. */
template <typename type, int K>
RDNA_DEVICE void depthwise_weight(const depthwise_args &args) {
  typedef typename type::stored value;
  alignas(16) RDNA_SHARED float memory[DEPTHWISE_FLOATS];
  int across = args.across, down = args.down, step_y = args.step[0], step_x = args.step[1];
  int part = (int)group_id_x(), channel = (int)group_id_y();
  int tiles_x = depthwise_tiles(args.place_size[1], across * DEPTHWISE_RUN);
  int tiles_y = depthwise_tiles(args.place_size[0], down);
  int rows = depthwise_reach(down, step_y, K), pitch = depthwise_pitch(across, step_x, K);
  int each = across * down, in_group = (int)thread_id() / each, at = (int)thread_id() % each;
  int y = at / across, x = at % across * DEPTHWISE_RUN;
  const float *from = memory + (in_group * rows + y * step_y) * pitch + x * step_x;
  const value *gradients = (const value *)args.other + channel * args.other_stride[1];
  float taps[K * K] = {};
  int tiles = tiles_x * tiles_y, all = tiles * depthwise_tiles(args.images, args.planes);
  for (int tile = part; tile < all; tile += args.parts) {
    const depthwise_args &now = arguments_again_wide(args);
    int first = tile / tiles * now.planes, in_image = tile % tiles;
    int tile_y = in_image / tiles_x * down, tile_x = in_image % tiles_x * across * DEPTHWISE_RUN;
    depthwise_fill<type>(now, memory, now.planes, rows, pitch, tile_y * step_y - now.begin[0],
                         tile_x * step_x - now.begin[1], [&](int i) {
                           int image = first + i;
                           return image < now.images ? image * now.image_stride[0] + channel * now.image_stride[1] : -1;
                         });
    group_barrier();
    int image = first + in_group;
    if (in_group < now.planes && image < now.images) {
      float g[DEPTHWISE_RUN];
      depthwise_gradient<type>(now, gradients + image * now.other_stride[0], tile_y + y, tile_x + x, g);
      if (step_x == 1)
        depthwise_taps<K, 1>(from, pitch, g, taps);
      else
        depthwise_taps<K, 2>(from, pitch, g, taps);
    }
    group_barrier();
  }
  depthwise_join<K * K>(args, taps, memory, part, channel);
}

/* ---- channels last --------------------------------------------------------------------------------------------- */

template <typename type, int K, int step>
RDNA_DEVICE void depthwise_taps_last(const depthwise_args &args, int at, int y, int first_x,
                                     const uint4 g[DEPTHWISE_RUN], float taps[K][type::IN_16]) {
  enum { ACROSS = (DEPTHWISE_RUN - 1) * step + K, IN_16 = type::IN_16 };
  uint4 raw[ACROSS];
  depthwise_row_last<type, ACROSS>(args, at + y * args.image_stride[2], y, first_x, raw);
#pragma unroll
  for (int q = 0; q < DEPTHWISE_RUN; ++q) {
    float gradient[IN_16];
    type::unpack(g[q], gradient);
#pragma unroll
    for (int j = 0; j < K; ++j) {
      float v[IN_16];
      type::unpack(raw[q * step + j], v);
#pragma unroll
      for (int c = 0; c < IN_16; ++c) taps[j][c] = fma_f32(gradient[c], v[c], taps[j][c]);
    }
  }
}

/* Threads of a group: 16 bytes of channels, for each a row of the window, and slices that take runs of places in turn:
 *
 *     | row 0: the channels | row 1: the same | ...  one slice | the next slice | ... | idle |     */
template <typename type, int K>
RDNA_DEVICE void depthwise_weight_last(const depthwise_args &args) {
  typedef typename type::stored value;
  enum { IN_16 = type::IN_16 };
  alignas(16) RDNA_SHARED float memory[K * K * DEPTHWISE_WIDTH];
  int width = args.width, vectors = width / IN_16, slices = DEPTHWISE_THREADS / (vectors * K);
  int part = (int)group_id_x(), first = (int)group_id_y() * width;
  int vector = (int)thread_id() % vectors * IN_16, row = (int)thread_id() / vectors % K;
  int slice = (int)thread_id() / (vectors * K), channel = first + vector;
  bool works = slice < slices && channel < args.channels;
  int runs_x = depthwise_tiles(args.place_size[1], DEPTHWISE_RUN), rows = args.place_size[0];
  float taps[K][IN_16] = {};
  for (int run = part * slices + slice; works && run < args.images * rows * runs_x; run += args.parts * slices) {
    int line = run / runs_x, image = line / rows, y = line % rows, x = (run - line * runs_x) * DEPTHWISE_RUN;
    const value *gradients =
        (const value *)args.other + image * args.other_stride[0] + y * args.other_stride[2] + channel;
    uint4 g[DEPTHWISE_RUN];
#pragma unroll
    for (int q = 0; q < DEPTHWISE_RUN; ++q) {
      g[q] = uint4{0, 0, 0, 0};
      if (x + q < args.place_size[1]) g[q] = load_global<uint4>(gradients + (x + q) * args.other_stride[3]);
    }
    int at = image * args.image_stride[0] + channel, at_y = y * args.step[0] - args.begin[0] + row;
    if (args.step[1] == 1)
      depthwise_taps_last<type, K, 1>(args, at, at_y, x - args.begin[1], g, taps);
    else
      depthwise_taps_last<type, K, 2>(args, at, at_y, x * 2 - args.begin[1], g, taps);
  }
  float *own = memory + row * K * width + vector;
#pragma unroll 1
  for (int s = 1; s < slices; ++s) { /* slice 0 adds up the others', one after the other */
    group_barrier();
#pragma unroll
    for (int j = 0; j < K; ++j)
#pragma unroll
      for (int c = 0; c < IN_16; ++c)
        if (slice == s) own[j * width + c] = taps[j][c];
    group_barrier();
#pragma unroll
    for (int j = 0; j < K; ++j)
#pragma unroll
      for (int c = 0; c < IN_16; ++c)
        if (slice == 0) taps[j][c] += own[j * width + c];
  }
  if (slice != 0 || !works) return;
#pragma unroll
  for (int j = 0; j < K; ++j) {
    float *out = depthwise_sum_at(args, K * K, part, row * K + j, channel);
#pragma unroll
    for (int c = 0; c < IN_16; c += 4)
      store_global(out + c, float4{taps[j][c], taps[j][c + 1], taps[j][c + 2], taps[j][c + 3]});
  }
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

template <typename type>
RDNA_DEVICE void depthwise_weight_sum(const depthwise_args &args) {
  int64_t values = (int64_t)args.channels * args.window[0] * args.window[1], index;
  float sum;
  if (!sum_parts(args.sums, values, args.parts, index, sum)) return;
  int tap = (int)index / args.channels, channel = (int)index % args.channels;
  int y = tap / args.window[1], x = tap % args.window[1];
  typename type::stored *out = (typename type::stored *)args.out + channel * args.out_stride[0];
  type::store_global(out + y * args.out_stride[1] + x * args.out_stride[2], sum);
}

#define DEPTHWISE_WEIGHT_OF(K, T)                                                              \
  RDNA_KERNEL(DEPTHWISE_THREADS) depthwise_weight_##K##_##T(struct depthwise_args args) {      \
    depthwise_weight<T, K>(args);                                                              \
  }                                                                                            \
  RDNA_KERNEL(DEPTHWISE_THREADS) depthwise_weight_last_##K##_##T(struct depthwise_args args) { \
    depthwise_weight_last<T, K>(args);                                                         \
  }
#define DEPTHWISE_WEIGHT_DEFINE(T) \
  DEPTHWISE_WEIGHT_OF(3, T)        \
  DEPTHWISE_WEIGHT_OF(5, T)        \
  DEPTHWISE_WEIGHT_OF(7, T)        \
  RDNA_KERNEL(GEMM_SUM_THREADS) depthwise_weight_sum_##T(struct depthwise_args args) { depthwise_weight_sum<T>(args); }
DEPTHWISE_WEIGHT_DEFINE(f32)
DEPTHWISE_WEIGHT_DEFINE(f16)
DEPTHWISE_WEIGHT_DEFINE(bf16)
