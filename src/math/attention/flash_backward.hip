/* Gradients of attention. A wave owns 16 rows and walks over tiles of the others (flash_tile.h). Two kinds of kernel:
 * rows are queries, which sums up dq, or keys, which sums up dk and dv. Both compute the scores again, and dp = dout
 * v^T, and keep them in registers (Dao 2023):
 *
 *     p = exp(score - lse)     ds = p (dp - delta)     dq = ds k     dk = ds^T q     dv = p^T dout
 *
 * For each query, key and head the kernel of queries does 6 d floating-point operations, that of keys 8 d
 * (10 d for heads above 128, as p and ds are made once for dv and once for dk: registers hold one sum). */
#define RDNA_SM_90A_IMAGE /* a second one: cmake/kernels.cmake */
#include "math/attention/flash_backward_kernels.h"
#include "math/attention/flash_options.h"

/* delta, the sum of out * dout of each query: 16 lanes a row. */
template <typename type>
RDNA_DEVICE void delta_rows(const flash_delta_args &a) {
  int32_t head = (int32_t)group_id_y(), batch = (int32_t)group_id_z();
  if (head >= a.of.heads || batch >= a.of.batch) return;
  flash_sequence s = flash_sequence_of(&a.of, batch);
  uint32_t lane = thread_id() % 16;
#pragma unroll 1
  for (int32_t block = (int32_t)group_id_x(); block * FLASH_ROWS < s.sq; block += (int32_t)group_count_x()) {
#pragma unroll 1
    for (int32_t row = block * FLASH_ROWS; row < (block + 1) * FLASH_ROWS; row += FLASH_THREADS / 16) {
      int32_t mine = row + (int32_t)thread_id() / 16;
      int64_t at = s.q_row + (mine < s.sq ? mine : s.sq - 1);
      const char *out =
          (const char *)a.of.out +
          (batch * a.of.out_stride[0] + at * a.of.out_stride[1] + head * a.of.out_stride[2]) * type::BYTES;
      const char *dout = (const char *)a.dout +
                         (batch * a.dout_stride[0] + at * a.dout_stride[1] + head * a.dout_stride[2]) * type::BYTES;
      float sum = 0;
      for (uint32_t i = lane * type::IN_16; i < (uint32_t)a.of.dv; i += 16 * type::IN_16) {
        float x[type::IN_16], y[type::IN_16];
        type::load_16(out + i * type::BYTES, x);
        type::load_16(dout + i * type::BYTES, y);
#pragma unroll
        for (int e = 0; e < type::IN_16; e++) sum = fma_f32(x[e], y[e], sum);
      }
      sum = flash_reduce_sum(sum, 1, 16);
      if (lane == 0 && mine < s.sq)
        a.delta[batch * a.of.lse_stride[0] + head * a.of.lse_stride[1] + s.q_row + mine] = sum;
    }
  }
}
RDNA_KERNEL(FLASH_THREADS) flash_delta_f32(struct flash_delta_args a) { delta_rows<f32>(a); }
RDNA_KERNEL(FLASH_THREADS) flash_delta_f16(struct flash_delta_args a) { delta_rows<f16>(a); }
RDNA_KERNEL(FLASH_THREADS) flash_delta_bf16(struct flash_delta_args a) { delta_rows<bf16>(a); }

/* |of_keys|: rows are keys and tiles are queries. Of rows and of tiles there are two kinds of vectors: q or k, of d
 * values, and dout or v, of dv values. */
template <typename type, int max_d, flash_kind kind, bool of_keys>
struct backward_plan {
  typedef typename unit_of<type>::is unit;
  static constexpr bool MATRIX = !unit::THROUGH_LDS, any = kind != FLASH_PLAIN;
  /* as in forward_plan */
  static constexpr bool FEW = any && of_keys && !MATRIX && type::BYTES == 2 && max_d == 64;
  static constexpr int M_TILES = WAVE_SIZE == 64 && !FEW ? 2 : 1, ROWS = FLASH_WAVES * 16 * M_TILES;
#if defined(RDNA_NVIDIA) || defined(RDNA_MFMA_)
  static constexpr int TILE_256 = 32; /* what one instruction sums over */
#else
  static constexpr int TILE_256 = any || unit::THROUGH_LDS ? 16 : 32;
#endif
  static constexpr int TILE = type::BYTES == 4 ? (max_d > 64 ? 16 : 32)
                              : max_d == 64    ? 64
                              : max_d == 128   ? 32
                                               : TILE_256;
  static constexpr int N_TILES = TILE / 16, D_TILES = max_d / 16, STEPS = max_d / unit::K;
#ifdef RDNA_MFMA_
  static constexpr bool RESIDENT = MATRIX && max_d <= 128;
#else
  static constexpr bool RESIDENT = unit::ASYNC && !any && max_d <= 128;
#endif
  /* registers have room for both tiles in flight */
  static constexpr bool TOGETHER = unit::ASYNC || (MATRIX ? max_d <= 128 : max_d == 64);
  static constexpr bool SPLIT = of_keys && max_d == 256;
  static constexpr int STAGES = unit::ASYNC && max_d <= 128 ? 2 : 1;
  typedef plain_tile<type, max_d, TILE> tile;
  typedef typename value_tile_of<type, max_d, TILE, unit::ASYNC>::is turned;
  static constexpr int TURNED_BYTES = unit::ASYNC ? 0 : turned_tile<type, max_d, TILE>::BYTES;
  static constexpr int ONE_BYTES = tile::BYTES > TURNED_BYTES ? tile::BYTES : TURNED_BYTES;
  static constexpr int STAGE_BYTES = 2 * ONE_BYTES;
  typedef score_strip<type, TILE> strip;
  static constexpr int NUMBERS = STAGES * STAGE_BYTES; /* lse and delta of the tile's queries, for each stage */
  static constexpr int STRIPS = NUMBERS + STAGES * 2 * TILE * 4;
  static constexpr int ALL_BYTES = STRIPS + FLASH_WAVES * strip::BYTES, WRITE_BYTES = FLASH_WAVES * FLASH_STAGE_BYTES;
  static constexpr int LDS_BYTES = ALL_BYTES > WRITE_BYTES ? ALL_BYTES : WRITE_BYTES;
  static_assert(LDS_BYTES <= 48 * 1024, "shared memory that every GPU has");
};

/* lse and delta of a tile of queries, one a thread: loaded, later stored to LDS. */
struct backward_numbers {
  float base, delta;
  RDNA_MEMBER void fetch(const float *lse, const float *delta_of, int32_t first, int32_t count, int32_t tile) {
    int32_t i = first + (int32_t)flash_thread();
    base = infinity_f32();
    delta = 0;
    if ((int32_t)thread_id() < tile && i < count) {
      base = backward_base(lse[i]);
      delta = delta_of[i];
    }
  }
  RDNA_MEMBER void store(float *lds, int32_t tile) const {
    if ((int32_t)thread_id() < tile) {
      lds[thread_id()] = base;
      lds[tile + thread_id()] = delta;
    }
  }
};

/* Turns one score and its dp, with every option: x into the probability that multiplies v, dp into ds. |base| and
 * |delta| are the query's. */
template <typename type>
RDNA_DEVICE void backward_score(const flash_place &place, float slope, int32_t i, int32_t j, float base, float delta,
                                float &x, float &dp) {
  const flash_args &a = arguments_again(*place.a);
  float slack, score = flash_score<type>(place, x * a.scale, slope, i, j, slack), p = fast_exp2(score - base);
  if (flash_hidden(place, i, j)) p = 0;
  float kept = a.dropout != 0 ? flash_kept(place, i, j) : 1;
  x = flash_in_turn(p * kept);
  dp = flash_in_turn(p * fma_f32(dp, kept, -delta) * slack);
}

/* Stores ds to value |at| of its head's dmask. */
template <typename type>
RDNA_DEVICE void flash_dmask_store(const flash_backward_args &all, const flash_place &place, int64_t at, float ds) {
  const flash_backward_args &args = arguments_again(all);
  at += flash_again(place.batch) * args.dmask_stride[0] + flash_again(place.head) * args.dmask_stride[1];
  if (args.of.mask_type == FLASH_MASK_F32)
    f32::store(args.dmask, (uint64_t)at, ds);
  else
    type::store(args.dmask, (uint64_t)at, ds);
}
/* Stores 16 x 16 of them from the given query and key on, as many as there are. */
template <typename type>
RDNA_DEVICE void flash_dmask_store_tile(const flash_backward_args &all, const flash_place &at, int32_t first_query,
                                        int32_t first_key, const mma_acc &ds) {
  typedef typename unit_of<type>::is unit;
#pragma unroll
  for (int v = 0; v < MMA_VALUES; v++) {
    const flash_backward_args &args = arguments_again(all);
    int32_t i = flash_in_turn(first_query + (int32_t)unit::row_of(v)), j = first_key + (int32_t)unit::key_of(v);
    if (i < args.of.sq && j < args.of.sk) /* there are no starts with a mask */
      flash_dmask_store<type>(all, at, i * args.dmask_stride[2] + j * args.dmask_stride[3], ds[v]);
  }
}
/* Stores zeros for queries |first| to |last| and the keys outside the tiles |from| .. |to|, which no query sees. */
template <typename type>
RDNA_DEVICE void flash_dmask_clear(const flash_backward_args &all, const flash_place &place, int32_t first,
                                   int32_t last, int32_t from, int32_t to, int32_t tile) {
  int32_t end = from <= to ? from + ((to - from) / tile + 1) * tile : from;
  int32_t outside = from + (end < place.s.sk ? place.s.sk - end : 0);
#pragma unroll 1
  for (int32_t i = first; i <= last; i++)
#pragma unroll 1
    for (int32_t at = (int32_t)thread_id(); at < outside; at += FLASH_THREADS)
      flash_dmask_store<type>(all, place,
                              i * all.dmask_stride[2] + (at < from ? at : at - from + end) * all.dmask_stride[3], 0);
}

template <typename plan, bool first, bool second>
struct backward_sums {
  mma_acc first_sum[first ? plan::M_TILES : 1][first ? plan::D_TILES : 1];
  mma_acc second_sum[second ? plan::M_TILES : 1][second ? plan::D_TILES : 1];
};

template <typename type, typename plan, int d_tiles>
RDNA_DEVICE void backward_write(const mma_acc (&sum)[plan::M_TILES][d_tiles], float scale, void *to,
                                const int64_t stride[3], int64_t batch, int64_t row, int64_t head, int32_t count,
                                int32_t d, char *lds) {
  float factor[plan::unit::STATS];
#pragma unroll
  for (int r = 0; r < plan::unit::STATS; r++) factor[r] = scale;
  char *at = (char *)to + (batch * stride[0] + row * stride[1] + head * stride[2]) * type::BYTES;
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++)
    flash_write<type>(sum[m], factor, at + 16 * m * stride[1] * type::BYTES, stride[1] * type::BYTES, count - 16 * m, d,
                      (float *)lds + wave_id() * (FLASH_STAGE_BYTES / 4));
}

/* Computes ROWS rows from |first_row| on, in one walk over the tiles that they meet. |first|: sums up ds (dq or dk);
 * |second|: sums up p (dv). */
template <typename type, int max_d, flash_kind kind, bool of_keys, bool first, bool second>
RDNA_DEVICE void backward_rows(const flash_backward_args &all, flash_place &place, int32_t kv_head, int32_t first_row,
                               char *lds) {
  typedef backward_plan<type, max_d, kind, of_keys> plan;
  constexpr bool gives_dmask = kind == FLASH_MASKED && !of_keys;
  typedef typename plan::unit unit;
  flash_place_renew(place);
  const flash_args &a = arguments_again(all).of;
  const flash_sequence &s = place.s;
  int32_t heads_per_kv = a.heads / a.kv_heads;
  float c = kind == FLASH_MASKED ? FLASH_LOG2_E : a.scale * FLASH_LOG2_E;
  int32_t row_count = of_keys ? s.sk : s.sq;
  /* computed again for each tile where scalar registers are short: see "Arguments again" */
  auto keys = [&]() __attribute__((device, always_inline)) {
    const flash_args &now = arguments_again_wide(all).of;
    return flash_rows_of<type>(now.k, now.k_stride, place.batch, s.k_row, kv_head, s.sk, now.d);
  };
  auto values = [&]() __attribute__((device, always_inline)) {
    const flash_args &now = arguments_again_wide(all).of;
    return flash_rows_of<type>(now.v, now.v_stride, place.batch, s.k_row, kv_head, s.sk, now.dv);
  };
  char *strip = lds + plan::STRIPS + wave_id() * plan::strip::BYTES;
  int32_t wave_first = first_row + (int32_t)wave_id() * 16 * plan::M_TILES;
  int32_t wave_last =
      wave_first + 16 * plan::M_TILES <= row_count ? wave_first + 16 * plan::M_TILES - 1 : row_count - 1;
  int32_t group_last = first_row + plan::ROWS <= row_count ? first_row + plan::ROWS - 1 : row_count - 1;
  int32_t from = of_keys ? flash_first_query(&a, &s, first_row) : flash_first_key(&a, &s, first_row);
  int32_t to = of_keys ? flash_last_query(&a, &s, group_last) : flash_last_key(&a, &s, group_last);
  from = from / plan::TILE * plan::TILE;

  wave_rows<type, max_d, plan::M_TILES, plan::RESIDENT, false> rows1, rows2;
  float base[plan::M_TILES][unit::STATS], delta[plan::M_TILES][unit::STATS];
  if constexpr (of_keys) {
    rows1.init(keys(), wave_first);
    rows2.init(values(), wave_first);
  }
  backward_sums<plan, first, second> sums = {};

#pragma unroll 1
  for (int32_t head = of_keys ? kv_head * heads_per_kv : place.head;
       head < (of_keys ? (kv_head + 1) * heads_per_kv : place.head + 1); head++) {
    const flash_backward_args &args = arguments_again(all);
    const flash_args &a = args.of;
    flash_place here = place;
    here.head = head;
    float slope = a.slopes ? a.slopes[place.batch * a.slopes_stride + head] : 0;
    flash_rows q = flash_rows_of<type>(a.q, a.q_stride, place.batch, s.q_row, head, s.sq, a.d);
    flash_rows dout = flash_rows_of<type>(args.dout, args.dout_stride, place.batch, s.q_row, head, s.sq, a.dv);
    int64_t number = place.batch * a.lse_stride[0] + head * a.lse_stride[1] + s.q_row;
    /* what tiles are taken from, made anew for each */
    auto tiles1 = [&]() __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again(all).of;
      return of_keys ? flash_rows_of<type>(now.q, now.q_stride, place.batch, s.q_row, head, s.sq, now.d)
                     : flash_rows_of<type>(now.k, now.k_stride, place.batch, s.k_row, kv_head, s.sk, now.d);
    };
    auto tiles2 = [&]() __attribute__((device, always_inline)) {
      const flash_backward_args &now = arguments_again(all);
      return of_keys ? flash_rows_of<type>(now.dout, now.dout_stride, place.batch, s.q_row, head, s.sq, now.of.dv)
                     : flash_rows_of<type>(now.of.v, now.of.v_stride, place.batch, s.k_row, kv_head, s.sk, now.of.dv);
    };
    if constexpr (!of_keys) {
      rows1.init(q, wave_first);
      rows2.init(dout, wave_first);
#pragma unroll
      for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
        for (int i = 0; i < MMA_VALUES; i++) {
          int32_t row = wave_first + 16 * m + (int32_t)unit::row_of(i);
          row = row < s.sq ? row : s.sq - 1;
          base[m][unit::stat_of(i)] = backward_base(a.lse[number + row]);
          delta[m][unit::stat_of(i)] = args.delta[number + row];
        }
    }

    typename plan::tile tile1, tile2;
    backward_numbers numbers;
    uint32_t stage = 0;
    if constexpr (plan::STAGES == 2) {
      group_barrier();
      if (from <= to) {
        tile1.fetch(tiles1().from(from), lds);
        tile2.fetch(tiles2().from(from), lds + plan::ONE_BYTES);
        if (of_keys) {
          numbers.fetch(a.lse + number, args.delta + number, from, s.sq, plan::TILE);
          numbers.store((float *)(lds + plan::NUMBERS), plan::TILE);
        }
        tile1.store(lds);
      }
      group_barrier();
    }
#pragma unroll 1
    for (int32_t at = from; at <= to; at += plan::TILE) {
      char *in1 = lds + stage * plan::STAGE_BYTES, *in2 = in1 + plan::ONE_BYTES;
      float *in_numbers = (float *)(lds + plan::NUMBERS) + stage * 2 * plan::TILE;
      const flash_backward_args &now = arguments_again(all);
      const flash_args &limits = now.of;
      if constexpr (plan::STAGES == 2) {
        stage ^= 1;
        if (at + plan::TILE <= to) {
          tile1.fetch(tiles1().from(at + plan::TILE), lds + stage * plan::STAGE_BYTES);
          tile2.fetch(tiles2().from(at + plan::TILE), lds + stage * plan::STAGE_BYTES + plan::ONE_BYTES);
          if (of_keys) numbers.fetch(now.of.lse + number, now.delta + number, at + plan::TILE, s.sq, plan::TILE);
        }
      } else {
        group_barrier(); /* the tile before is no more read */
        tile1.fetch(tiles1().from(at), in1);
        if constexpr (plan::TOGETHER) tile2.fetch(tiles2().from(at), in2);
        if (of_keys) {
          numbers.fetch(now.of.lse + number, now.delta + number, at, s.sq, plan::TILE);
          numbers.store(in_numbers, plan::TILE);
        }
        tile1.store(in1);
        if constexpr (!plan::TOGETHER) tile2.fetch(tiles2().from(at), in2);
        tile2.store(in2);
        group_barrier();
      }

      /* how far keys are from the diagonal in this wave's part of the tile, at least and at most */
      int32_t least = of_keys ? wave_first - (at + plan::TILE - 1) - s.shift : at - wave_last - s.shift;
      int32_t most = of_keys ? wave_last - at - s.shift : at + plan::TILE - 1 - wave_first - s.shift;
      bool busy = wave_first <= wave_last && most >= -limits.left && least <= limits.right;
      if (gives_dmask && now.dmask) busy = wave_first <= wave_last; /* it has zeros there */
      bool whole = least >= -limits.left && most <= limits.right && (of_keys || at + plan::TILE <= s.sk);
      mma_acc scores[plan::M_TILES][plan::N_TILES], dps[plan::M_TILES][plan::N_TILES];
      if (busy) {
        if constexpr (of_keys && !plan::RESIDENT) rows1.init(keys(), wave_first);
        flash_scores<typename plan::tile, plan::M_TILES, plan::N_TILES, plan::STEPS>(rows1, in1, scores);
        if constexpr (of_keys && !plan::RESIDENT) rows2.init(values(), wave_first);
        flash_scores<typename plan::tile, plan::M_TILES, plan::N_TILES, plan::STEPS>(rows2, in2, dps);
        flash_place there = flash_place_again(here);
        if (kind == FLASH_PLAIN && !whole) {
#pragma unroll
          for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
            for (int n = 0; n < plan::N_TILES; n++)
#pragma unroll
              for (int i = 0; i < MMA_VALUES; i++) {
                int32_t row = flash_in_turn(wave_first + 16 * m + (int32_t)unit::row_of(i));
                int32_t other = at + 16 * n + (int32_t)unit::key_of(i);
                if (flash_hidden(there, of_keys ? other : row, of_keys ? row : other))
                  scores[m][n][i] = -infinity_f32();
              }
        }
#pragma unroll
        for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
          for (int n = 0; n < plan::N_TILES; n++) {
            if constexpr (kind == FLASH_MASKED)
              flash_mask_add<type, of_keys>(there, of_keys ? at + 16 * n : wave_first + 16 * m,
                                            of_keys ? wave_first + 16 * m : at + 16 * n, scores[m][n]);
#pragma unroll
            for (int i = 0; i < MMA_VALUES; i++) {
              int32_t in_tile = 16 * n + (int32_t)unit::key_of(i);
              float x = scores[m][n][i], dp = dps[m][n][i];
              float from_base = of_keys ? in_numbers[in_tile] : base[m][unit::stat_of(i)];
              float from_delta = of_keys ? in_numbers[plan::TILE + in_tile] : delta[m][unit::stat_of(i)];
              if constexpr (kind == FLASH_ANY) {
                int32_t row = flash_in_turn(wave_first + 16 * m + (int32_t)unit::row_of(i)), other = at + in_tile;
                backward_score<type>(there, slope, of_keys ? other : row, of_keys ? row : other, from_base, from_delta,
                                     x, dp);
              } else {
                if constexpr (kind == FLASH_MASKED) {
                  int32_t row = flash_in_turn(wave_first + 16 * m + (int32_t)unit::row_of(i)), other = at + in_tile;
                  if (flash_hidden(there, of_keys ? other : row, of_keys ? row : other)) x = -infinity_f32();
                }
                x = fast_exp2(fma_f32(x, c, -from_base));
                dp = x * (dp - from_delta);
              }
              scores[m][n][i] = x;
              dps[m][n][i] = kind == FLASH_MASKED ? flash_in_turn(dp) : dp;
            }
          }
        if constexpr (gives_dmask) {
          if (arguments_again(all).dmask) {
#pragma unroll
            for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
              for (int n = 0; n < plan::N_TILES; n++)
                flash_dmask_store_tile<type>(all, there, wave_first + 16 * m, at + 16 * n, dps[m][n]);
          }
        }
      }
      if constexpr (!unit::ASYNC) { /* the other form of the tiles takes their place */
        typename plan::turned turned;
        group_barrier();
        if (second) {
          turned.fetch(tiles2().from(at), in2);
          turned.store(in2);
        }
        if (first) {
          turned.fetch(tiles1().from(at), in1);
          turned.store(in1);
        }
        group_barrier();
      }
      if (busy) {
        if constexpr (second) flash_accumulate<type, typename plan::turned>(scores, in2, strip, sums.second_sum);
        if constexpr (first) flash_accumulate<type, typename plan::turned>(dps, in1, strip, sums.first_sum);
      }
      if constexpr (plan::STAGES == 2) {
        if (at + plan::TILE <= to) {
          if (of_keys) numbers.store((float *)(lds + plan::NUMBERS) + stage * 2 * plan::TILE, plan::TILE);
          tile1.store(lds);
        }
        group_barrier();
      }
    }
  }

  const flash_backward_args &args = arguments_again(all);
  flash_place_renew(place);
  if (gives_dmask && args.dmask) flash_dmask_clear<type>(all, place, first_row, group_last, from, to, plan::TILE);
  group_barrier(); /* tiles are no more read where sums are staged */
  int32_t count = wave_last - wave_first + 1;
  int64_t row = (of_keys ? s.k_row : s.q_row) + wave_first;
  if constexpr (of_keys && first)
    backward_write<type, plan>(sums.first_sum, args.of.scale, args.dk, args.dk_stride, place.batch, row, kv_head, count,
                               args.of.d, lds);
  if constexpr (!of_keys)
    backward_write<type, plan>(sums.first_sum, args.of.scale, args.dq, args.dq_stride, place.batch, row, place.head,
                               count, args.of.d, lds);
  if constexpr (of_keys && second)
    backward_write<type, plan>(sums.second_sum, 1, args.dv, args.dv_stride, place.batch, row, kv_head, count,
                               args.of.dv, lds);
  group_barrier();
}

#ifdef RDNA_WGMMA
#include "math/attention/nvidia/flash_backward_wgmma.h"
#endif

/* |async|: by products that run by themselves. */
template <typename type, int max_d, flash_kind kind, bool of_keys, bool async>
RDNA_DEVICE void backward(const flash_backward_args &a, char *lds) {
  typedef backward_plan<type, max_d, kind, of_keys> plan;
  flash_place place;
  place.a = &a.of;
  place.batch = (int32_t)group_id_z();
  int32_t head = (int32_t)group_id_y(), heads_per_kv = a.of.heads / a.of.kv_heads;
  if (head >= (of_keys ? a.of.kv_heads : a.of.heads) || place.batch >= a.of.batch) return;
  place.head = head;
  place.s = flash_sequence_of(&a.of, place.batch);
  int32_t rows = of_keys ? place.s.sk : place.s.sq, kv_head = of_keys ? head : head / heads_per_kv;
  int32_t blocks = (rows + FLASH_ROWS - 1) / FLASH_ROWS;
  /* early keys and late queries have the most to do: they start first */
  int32_t block = of_keys ? (int32_t)group_id_x() : blocks - 1 - (int32_t)group_id_x();
  int32_t step = (of_keys ? 1 : -1) * (int32_t)group_count_x() * FLASH_ROWS;
#pragma unroll 1
  for (int32_t row = block * FLASH_ROWS; row >= 0 && row < rows;) {
#ifdef RDNA_WGMMA
    if constexpr (async) {
      static_assert(plan::ROWS == 64, "as many as it takes at a time");
      wgmma_backward_rows<type, max_d, kind, of_keys>(a, place, kv_head, row, lds);
    } else
#endif
        if constexpr (plan::SPLIT) {
      backward_rows<type, max_d, kind, of_keys, true, false>(a, place, kv_head, row, lds);
      backward_rows<type, max_d, kind, of_keys, false, true>(a, place, kv_head, row, lds);
    } else {
      backward_rows<type, max_d, kind, of_keys, true, of_keys>(a, place, kv_head, row, lds);
    }
    row += plan::ROWS;
    if (row % FLASH_ROWS != 0 && row < rows) continue;
    row = (row - 1) / FLASH_ROWS * FLASH_ROWS + step;
  }
}

#define BACKWARD(name, type, max_d, kind, of_keys)                                                                    \
  RDNA_KERNEL(FLASH_THREADS) name(struct flash_backward_args a) {                                                     \
    RDNA_SHARED static __attribute__((aligned(1024))) char lds[backward_plan<type, max_d, kind, of_keys>::LDS_BYTES]; \
    backward<type, max_d, kind, of_keys, false>(a, lds);                                                              \
  }
#ifdef RDNA_WGMMA
#define BACKWARD_MATRIX(name, type, max_d, kind, of_keys)                                                       \
  RDNA_KERNEL_RESIDENT(FLASH_THREADS, 2) name(struct flash_backward_args a) {                                   \
    WGMMA_MEMORY(lds, kind == FLASH_MASKED ? FLASH_BACKWARD_MASKED_BYTES(max_d) : FLASH_BACKWARD_BYTES(max_d)); \
    backward<type, max_d, kind, of_keys, true>(a, (char *)lds);                                                 \
  }
#else
#define BACKWARD_MATRIX(name, type, max_d, kind, of_keys) BACKWARD(name, type, max_d, kind, of_keys)
#endif
#define BACKWARD_BOTH(type, size)                                                  \
  BACKWARD(flash_backward_queries_##type##_##size, type, size, FLASH_PLAIN, false) \
  BACKWARD(flash_backward_keys_##type##_##size, type, size, FLASH_PLAIN, true)
#define BACKWARD_BOTH_MATRIX(type, size)                                                          \
  BACKWARD_MATRIX(flash_backward_queries_##type##_##size, type, size, FLASH_PLAIN, false)         \
  BACKWARD_MATRIX(flash_backward_keys_##type##_##size, type, size, FLASH_PLAIN, true)             \
  BACKWARD_MATRIX(flash_backward_queries_masked_##type##_##size, type, size, FLASH_MASKED, false) \
  BACKWARD_MATRIX(flash_backward_keys_masked_##type##_##size, type, size, FLASH_MASKED, true)
#define BACKWARD_ANY(type, size)                                                     \
  BACKWARD(flash_backward_queries_any_##type##_##size, type, size, FLASH_ANY, false) \
  BACKWARD(flash_backward_keys_any_##type##_##size, type, size, FLASH_ANY, true)
#define BACKWARD_TYPE_ANY(type) \
  BACKWARD_ANY(type, 64)        \
  BACKWARD_ANY(type, 128)       \
  BACKWARD_ANY(type, 256)
#define BACKWARD_16_BITS(type)    \
  BACKWARD_BOTH_MATRIX(type, 64)  \
  BACKWARD_BOTH_MATRIX(type, 128) \
  BACKWARD_BOTH(type, 256)

BACKWARD_TYPE_ANY(f32)
BACKWARD_TYPE_ANY(f16)
BACKWARD_TYPE_ANY(bf16)
BACKWARD_BOTH(f32, 64)
BACKWARD_BOTH(f32, 128)
BACKWARD_BOTH(f32, 256)
BACKWARD_16_BITS(f16)
BACKWARD_16_BITS(bf16)
