/* Convolution with one channel a group, forward and the gradient of the image: see depthwise_kernels.h. */
#include "kernel/prelude.h"
#include "math/conv/depthwise_device.h"

RDNA_DEVICE int depthwise_window(const depthwise_args &args, int channel, int y, int x) {
  return channel * args.other_stride[0] + y * args.other_stride[1] + x * args.other_stride[2];
}

template <typename type>
RDNA_DEVICE float depthwise_bias(const depthwise_args &args, int channel) {
  return args.bias ? type::load_global((const typename type::stored *)args.bias + channel) : 0;
}

/* The activations of DEPTHWISE_ACTIVATES for |count| sums: each further one would stand in the code |count| times. */
template <int count>
RDNA_DEVICE void depthwise_activate(uint32_t activation, float *v) {
  if (activation == RDNA_ACTIVATION_RELU) {
#pragma unroll
    for (int i = 0; i < count; ++i) v[i] = gemm_activate(RDNA_ACTIVATION_RELU, v[i]);
  } else if (activation == RDNA_ACTIVATION_SILU) {
#pragma unroll
    for (int i = 0; i < count; ++i) v[i] = gemm_activate(RDNA_ACTIVATION_SILU, v[i]);
  }
}

/* ---- planes ---------------------------------------------------------------------------------------------------- */

/* Sums of 4 x DEPTHWISE_ROWS places of one plane, whose part of the tile begins at |tile|, rows |pitch| apart. An image
 * row adds to each row of places that it meets, in the order of the window's rows. */
template <int K, int step>
RDNA_DEVICE void depthwise_sums(const float *tile, int pitch, const float *window,
                                float sums[DEPTHWISE_ROWS][DEPTHWISE_RUN]) {
  enum { ACROSS = (DEPTHWISE_RUN - 1) * step + K, DOWN = (DEPTHWISE_ROWS - 1) * step + K };
#pragma unroll
  for (int r = 0; r < DOWN; ++r) {
    float v[(ACROSS + 3) / 4 * 4];
    depthwise_row<ACROSS>(tile + r * pitch, v);
#pragma unroll
    for (int o = 0; o < DEPTHWISE_ROWS; ++o) {
      if (r < o * step || r - o * step >= K) continue;
#pragma unroll
      for (int j = 0; j < K; ++j)
#pragma unroll
        for (int q = 0; q < DEPTHWISE_RUN; ++q)
          sums[o][q] = fma_f32(window[(r - o * step) * K + j], v[q * step + j], sums[o][q]);
    }
  }
}

template <typename type>
RDNA_DEVICE void depthwise_store(const depthwise_args &args, int plane, int channel, int first_y, int first_x,
                                 const float sums[DEPTHWISE_ROWS][DEPTHWISE_RUN]) {
  typedef typename type::stored value;
  value *out = (value *)args.out + plane / args.channels * args.out_stride[0] + channel * args.out_stride[1];
  float bias = depthwise_bias<type>(args, channel);
#pragma unroll
  for (int o = 0; o < DEPTHWISE_ROWS; ++o) {
    int y = first_y + o;
    if (y >= args.place_size[0]) return;
    float v[DEPTHWISE_RUN];
#pragma unroll
    for (int q = 0; q < DEPTHWISE_RUN; ++q) v[q] = sums[o][q] + bias;
    depthwise_activate<DEPTHWISE_RUN>(args.activation, v);
    value *to = out + y * args.out_stride[2] + first_x * args.out_stride[3];
    if (args.vectors && first_x + DEPTHWISE_RUN <= args.place_size[1]) {
      type::store4(to, float4{v[0], v[1], v[2], v[3]});
      continue;
    }
#pragma unroll
    for (int q = 0; q < DEPTHWISE_RUN; ++q)
      if (first_x + q < args.place_size[1]) type::store_global(to + q * args.out_stride[3], v[q]);
  }
}

template <typename type, int K>
RDNA_DEVICE void depthwise_planes(const depthwise_args &args) {
  typedef typename type::stored value;
  alignas(16) RDNA_SHARED float memory[DEPTHWISE_FLOATS];
  int across = args.across, down = args.down, step_y = args.step[0], step_x = args.step[1];
  int tiles_x = depthwise_tiles(args.place_size[1], across * DEPTHWISE_RUN);
  int tiles_y = depthwise_tiles(args.place_size[0], down * DEPTHWISE_ROWS);
  int tile = (int)group_id_x() % (tiles_x * tiles_y),
      first_plane = (int)group_id_x() / (tiles_x * tiles_y) * args.planes;
  int tile_y = tile / tiles_x * down * DEPTHWISE_ROWS, tile_x = tile % tiles_x * across * DEPTHWISE_RUN;
  int rows = depthwise_reach(down * DEPTHWISE_ROWS, step_y, K), pitch = depthwise_pitch(across, step_x, K);
  int all = args.images * args.channels;
  float *windows = memory + args.planes * rows * pitch;
  for (int i = (int)thread_id(); i < args.planes * K * K; i += DEPTHWISE_THREADS) {
    int plane = first_plane + i / (K * K), tap = i % (K * K), channel = plane % args.channels;
    windows[i] = plane < all
                     ? type::load_global((const value *)args.other + depthwise_window(args, channel, tap / K, tap % K))
                     : 0;
  }
  depthwise_fill<type>(args, memory, args.planes, rows, pitch, tile_y * step_y - args.begin[0],
                       tile_x * step_x - args.begin[1], [&](int i) {
                         int plane = first_plane + i;
                         return plane < all ? plane / args.channels * args.image_stride[0] +
                                                  plane % args.channels * args.image_stride[1]
                                            : -1;
                       });
  group_barrier();
  int each = across * down, in_group = (int)thread_id() / each, at = (int)thread_id() % each;
  int plane = first_plane + in_group, y = at / across, x = at % across;
  if (in_group >= args.planes || plane >= all) return;
  if (tile_y + y * DEPTHWISE_ROWS >= args.place_size[0] || tile_x + x * DEPTHWISE_RUN >= args.place_size[1]) return;
  const float *from = memory + (in_group * rows + y * DEPTHWISE_ROWS * step_y) * pitch + x * DEPTHWISE_RUN * step_x;
  float window[K * K], sums[DEPTHWISE_ROWS][DEPTHWISE_RUN] = {};
#pragma unroll
  for (int i = 0; i < K * K; ++i) window[i] = windows[in_group * K * K + i];
  if (step_x == 1)
    depthwise_sums<K, 1>(from, pitch, window, sums);
  else
    depthwise_sums<K, 2>(from, pitch, window, sums);
  depthwise_store<type>(args, plane, plane % args.channels, tile_y + y * DEPTHWISE_ROWS, tile_x + x * DEPTHWISE_RUN,
                        sums);
}

/* ---- channels last --------------------------------------------------------------------------------------------- */

/* Sums of 4 x ROWS places for 16 bytes of channels. |windows| has for each tap the channels of the group. */
template <typename type, int K, int step>
RDNA_DEVICE void depthwise_sums_last(const depthwise_args &args, const float *windows, int at, int first_y, int first_x,
                                     float sums[DEPTHWISE_ROWS_LAST][DEPTHWISE_RUN][type::IN_16]) {
  enum { ROWS = DEPTHWISE_ROWS_LAST, ACROSS = (DEPTHWISE_RUN - 1) * step + K, IN_16 = type::IN_16 };
#pragma unroll(K == 3 ? 2 : 1)
  for (int r = 0; r < (ROWS - 1) * step + K; ++r) {
    uint4 raw[ACROSS];
    int y = first_y + r;
    depthwise_row_last<type, ACROSS>(args, at + y * args.image_stride[2], y, first_x, raw);
#pragma unroll
    for (int o = 0; o < ROWS; ++o) {
      int i = r - o * step;
      if (i < 0 || i >= K) continue;
#pragma unroll
      for (int j = 0; j < K; ++j) {
        float w[IN_16];
#pragma unroll
        for (int c = 0; c < IN_16; c += 4) {
          float4 four = load_as<float4>(windows + (i * K + j) * args.width + c);
          w[c] = four.x, w[c + 1] = four.y, w[c + 2] = four.z, w[c + 3] = four.w;
        }
#pragma unroll
        for (int q = 0; q < DEPTHWISE_RUN; ++q) {
          float v[IN_16];
          type::unpack(raw[q * step + j], v);
#pragma unroll
          for (int c = 0; c < IN_16; ++c) sums[o][q][c] = fma_f32(w[c], v[c], sums[o][q][c]);
        }
      }
    }
  }
}

/* Number |run| of the runs of places: image, row of runs and first x. */
struct depthwise_run {
  int image, y, x;
};
RDNA_DEVICE depthwise_run depthwise_run_of(const depthwise_args &args, int run, int rows_each) {
  int runs_x = depthwise_tiles(args.place_size[1], DEPTHWISE_RUN),
      runs_y = depthwise_tiles(args.place_size[0], rows_each);
  int row = run / runs_x;
  return {row / runs_y, row % runs_y * rows_each, (run - row * runs_x) * DEPTHWISE_RUN};
}

template <typename type, int K>
RDNA_DEVICE void depthwise_last(const depthwise_args &args) {
  typedef typename type::stored value;
  enum { IN_16 = type::IN_16 };
  enum { ROWS = DEPTHWISE_ROWS_LAST };
  alignas(16) RDNA_SHARED float windows[K * K * DEPTHWISE_WIDTH];
  int width = args.width, vectors = width / IN_16, shares = DEPTHWISE_THREADS / vectors;
  int first = (int)group_id_y() * width;
  for (int i = (int)thread_id(); i < K * K * width; i += DEPTHWISE_THREADS) {
    int channel = first + i % width, tap = i / width;
    windows[i] = channel < args.channels
                     ? type::load_global((const value *)args.other + depthwise_window(args, channel, tap / K, tap % K))
                     : 0;
  }
  group_barrier();
  int vector = (int)thread_id() % vectors * IN_16, share = (int)thread_id() / vectors, channel = first + vector;
  if (channel >= args.channels || share >= shares) return;
  float biases[IN_16];
#pragma unroll
  for (int c = 0; c < IN_16; ++c) biases[c] = depthwise_bias<type>(args, channel + c);
  int runs =
      args.images * depthwise_tiles(args.place_size[0], ROWS) * depthwise_tiles(args.place_size[1], DEPTHWISE_RUN);
  for (int run = (int)group_id_x() * shares + share; run < runs; run += (int)group_count_x() * shares) {
    depthwise_run place = depthwise_run_of(args, run, ROWS);
    int at = place.image * args.image_stride[0] + channel;
    int first_y = place.y * args.step[0] - args.begin[0], first_x = place.x * args.step[1] - args.begin[1];
    float sums[ROWS][DEPTHWISE_RUN][IN_16] = {};
    if (args.step[1] == 1)
      depthwise_sums_last<type, K, 1>(args, windows + vector, at, first_y, first_x, sums);
    else
      depthwise_sums_last<type, K, 2>(args, windows + vector, at, first_y, first_x, sums);
#pragma unroll
    for (int o = 0; o < ROWS; ++o) {
      if (place.y + o >= args.place_size[0]) continue;
#pragma unroll
      for (int q = 0; q < DEPTHWISE_RUN; ++q) {
        if (place.x + q >= args.place_size[1]) continue;
        float v[IN_16];
#pragma unroll
        for (int c = 0; c < IN_16; ++c) v[c] = sums[o][q][c] + biases[c];
        depthwise_activate<IN_16>(args.activation, v);
        int64_t to = (int64_t)place.image * args.out_stride[0] + (place.y + o) * args.out_stride[2] +
                     (place.x + q) * args.out_stride[3] + channel;
        store_global(row_at<type>(args.out, to, 1), type::pack(v));
      }
    }
  }
}

/* ---- any window ------------------------------------------------------------------------------------------------ */

/* A value, or with |width| above 1 16 bytes of neighbouring channels. */
template <typename type, int width>
RDNA_DEVICE void depthwise_any(const depthwise_args &args) {
  typedef typename type::stored value;
  int vectors = args.channels / width;
  int64_t values = (int64_t)args.images * args.place_size[0] * args.place_size[1] * vectors;
  uint32_t index = group_id_x() * DEPTHWISE_THREADS + thread_id(); /* channels are the fastest with vectors, else x */
  if (index >= values) return;
  int channel, x, y, image;
  if (width > 1) {
    uint32_t rest = index / (uint32_t)vectors;
    channel = (int)(index - rest * (uint32_t)vectors) * width;
    x = (int)(rest % (uint32_t)args.place_size[1]), rest /= (uint32_t)args.place_size[1];
    y = (int)(rest % (uint32_t)args.place_size[0]), image = (int)(rest / (uint32_t)args.place_size[0]);
  } else {
    uint32_t rest = index / (uint32_t)args.place_size[1];
    x = (int)(index - rest * (uint32_t)args.place_size[1]);
    y = (int)(rest % (uint32_t)args.place_size[0]), rest /= (uint32_t)args.place_size[0];
    channel = (int)(rest % (uint32_t)args.channels), image = (int)(rest / (uint32_t)args.channels);
  }
  depthwise_line down = depthwise_line_of(&args, 0, y), across = depthwise_line_of(&args, 1, x);
  const value *from = (const value *)args.image + image * args.image_stride[0] + channel * args.image_stride[1];
  float sums[width] = {};
  for (int i = down.tap, at_y = down.at; i < args.window[0]; i += down.tap_step, at_y += down.at_step) {
    if ((uint32_t)at_y >= (uint32_t)args.image_size[0]) continue;
    int at_x = across.at;
    for (int j = across.tap; j < args.window[1]; j += across.tap_step, at_x += across.at_step) {
      if ((uint32_t)at_x >= (uint32_t)args.image_size[1]) continue;
      const value *at = from + at_y * args.image_stride[2] + at_x * args.image_stride[3];
      float v[width];
      if constexpr (width > 1)
        type::unpack(load_global<uint4>(at), v);
      else
        v[0] = type::load_global(at);
#pragma unroll
      for (int c = 0; c < width; ++c) {
        float w = type::load_global((const value *)args.other + depthwise_window(args, channel + c, i, j));
        sums[c] = fma_f32(w, v[c], sums[c]);
      }
    }
  }
  value *out = (value *)args.out + image * args.out_stride[0] + channel * args.out_stride[1] + y * args.out_stride[2] +
               x * args.out_stride[3];
#pragma unroll
  for (int c = 0; c < width; ++c)
    sums[c] = gemm_activate(args.activation, sums[c] + depthwise_bias<type>(args, channel + c));
  if constexpr (width > 1)
    store_global(out, type::pack(sums));
  else
    type::store_global(out, sums[0]);
}

#define DEPTHWISE_OF(K, T)                                                                \
  RDNA_KERNEL(DEPTHWISE_THREADS) depthwise_planes_##K##_##T(struct depthwise_args args) { \
    depthwise_planes<T, K>(args);                                                         \
  }                                                                                       \
  RDNA_KERNEL(DEPTHWISE_THREADS) depthwise_last_##K##_##T(struct depthwise_args args) { depthwise_last<T, K>(args); }
#define DEPTHWISE_DEFINE(T)                                                                                   \
  DEPTHWISE_OF(3, T)                                                                                          \
  DEPTHWISE_OF(5, T)                                                                                          \
  DEPTHWISE_OF(7, T)                                                                                          \
  RDNA_KERNEL(DEPTHWISE_THREADS) depthwise_any_##T(struct depthwise_args args) { depthwise_any<T, 1>(args); } \
  RDNA_KERNEL(DEPTHWISE_THREADS) depthwise_any_last_##T(struct depthwise_args args) {                         \
    depthwise_any<T, T::IN_16>(args);                                                                         \
  }
DEPTHWISE_DEFINE(f32)
DEPTHWISE_DEFINE(f16)
DEPTHWISE_DEFINE(bf16)
