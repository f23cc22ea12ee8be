/* Attention forward for heads of up to 576 values in a key and 512 in a value, as flash.hip has it for 256.
 *
 * Sums of a row's 512 values leave no registers for anything else, so a group makes 256 of them, and another group the
 * rest, from scores that it computes too. Keys come through LDS in slices, two of which are there: one is stored while
 * the other is multiplied. Values come a part at a time.
 *
 *     keys      | slice 0 | slice 1 | ...          scores = sum over slices of Q K^T
 *     values    | part 0 | part 1 | ...            out += P V */
#include "math/attention/flash_forward.h"
#include "math/attention/flash_wide_kernels.h"

template <typename type, flash_kind kind>
struct wide_plan {
  typedef typename unit_of<type>::is unit;
  static constexpr flash_kind KIND = kind;
  static constexpr bool ASYNC = unit::ASYNC, MATRIX = !unit::THROUGH_LDS;
  /* Queries are read again for each tile: many keys to a tile are few reads. */
  static constexpr bool MANY = MATRIX && !ASYNC && WAVE_SIZE == 32;
  static constexpr int KEYS = MANY ? 64 : type::BYTES == 4 ? 16 : 32, SLICE = MANY ? 64 : 128;
  /* two leave no registers for more on waves of 64 lanes without matrix units */
  static constexpr int M_TILES = WAVE_SIZE == 64 && MATRIX ? 2 : 1, N_TILES = KEYS / 16, D_TILES = FLASH_WIDE_PART / 16;
  static constexpr int ROWS = FLASH_WAVES * 16 * M_TILES;
  typedef plain_tile<type, SLICE, KEYS> key_tile;
  typedef typename value_tile_of<type, FLASH_WIDE_PART, KEYS, ASYNC>::is value_tile;
  /* what is in registers on its way to LDS */
  static constexpr int AT_ONCE = ASYNC ? FLASH_WIDE_PART : MANY ? 64 : 128;
  typedef typename value_tile_of<type, AT_ONCE, KEYS, ASYNC>::is value_part;
  typedef score_strip<type, KEYS> strip;
  static constexpr int VALUE_BYTES =
      FLASH_WIDE_PART / AT_ONCE * (ASYNC ? KEYS * AT_ONCE * type::BYTES : value_part::BYTES);
  static constexpr int TILES_BYTES = 2 * key_tile::BYTES + VALUE_BYTES + FLASH_WAVES * strip::BYTES;
  static constexpr int WRITE_BYTES = FLASH_WAVES * FLASH_STAGE_BYTES;
  static constexpr int LDS_BYTES = TILES_BYTES > WRITE_BYTES ? TILES_BYTES : WRITE_BYTES;
  static_assert(LDS_BYTES <= (MANY ? 64 : 48) * 1024, "shared memory that every GPU has, or that those with WMMA have");
  static_assert(FLASH_ROWS % ROWS == 0, "whole passes");
};

/* scores += products of the wave's rows from |first_row| on with the tile's slice, values |first| to |end| of each. */
template <typename type, typename plan>
RDNA_DEVICE void wide_scores(const flash_rows &queries, int32_t first_row, int32_t first, int32_t end, const char *lds,
                             mma_acc (&scores)[plan::M_TILES][plan::N_TILES]) {
  typedef typename plan::unit unit;
  typename unit::rows row[plan::M_TILES], next[plan::M_TILES];
  int32_t steps = (end - first + unit::K - 1) / unit::K;
  first_row = flash_in_turn(first_row); /* addresses are made for these steps alone */
#pragma unroll
  for (int m = 0; m < plan::M_TILES; m++) next[m] = flash_load_rows<type>(queries, first_row + 16 * m, first);
#pragma unroll 1 /* else all rows would be kept in registers */
  for (int32_t s = 0; s < steps; s++) {
#pragma unroll
    for (int m = 0; m < plan::M_TILES; m++) {
      row[m] = next[m];
      next[m] = flash_load_rows<type>(queries, first_row + 16 * m, first + (s + 1 < steps ? s + 1 : s) * unit::K);
    }
#pragma unroll
    for (int n = 0; n < plan::N_TILES; n++) {
      typename unit::keys key = plan::key_tile::load(lds, n, s * unit::K);
#pragma unroll
      for (int m = 0; m < plan::M_TILES; m++) unit::multiply(scores[m][n], row[m], key);
      flash_loads_in_turn(2 * n + 1);
    }
  }
}

/* Computes ROWS queries from |first_row| on. */
template <typename type, flash_kind kind>
struct wide_rows {
  typedef wide_plan<type, kind> plan;
  static constexpr int ROWS = plan::ROWS;
  RDNA_DEVICE void run(flash_place &place, int32_t first_row, char *lds) {
    typedef typename plan::unit unit;
    flash_place_renew(place);
    const flash_args &a = *place.a;
    const flash_sequence &s = place.s;
    int32_t kv_head = place.head / (a.heads / a.kv_heads);
    /* computed again for each tile: see "Arguments again" */
    auto first_value = [&]() __attribute__((device, always_inline)) {
      return (int32_t)group_id_x() % flash_wide_parts(&arguments_again(a)) * FLASH_WIDE_PART;
    };
    auto queries = [&]() __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again(a);
      return flash_rows_of<type>(now.q, now.q_stride, place.batch, s.q_row, place.head, s.sq, now.d);
    };
    auto keys_from = [&](int32_t first, int32_t slice) __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again(a);
      flash_rows rows = flash_rows_of<type>(now.k, now.k_stride, place.batch, s.k_row, kv_head, s.sk, now.d);
      rows.base += slice * plan::SLICE * type::BYTES;
      rows.d = now.d - slice * plan::SLICE < plan::SLICE ? now.d - slice * plan::SLICE : plan::SLICE;
      return rows.from(first);
    };
    auto values_from = [&](int32_t first, int32_t value) __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again(a);
      flash_rows rows = flash_rows_of<type>(now.v, now.v_stride, place.batch, s.k_row, kv_head, s.sk, now.dv);
      rows.base += value * type::BYTES;
      rows.d = now.dv - value < plan::AT_ONCE ? now.dv - value : plan::AT_ONCE;
      return rows.from(first);
    };
    float c = kind == FLASH_ANY ? 1 : a.scale * FLASH_LOG2_E;
    auto slope = [&]() __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again(a);
      return now.slopes ? global(now.slopes)[place.batch * now.slopes_stride + place.head] : 0;
    };
    char *values = lds + 2 * plan::key_tile::BYTES;
    char *strip = values + plan::VALUE_BYTES + wave_id() * plan::strip::BYTES;

    forward_wave wave = forward_wave_of(a, s, first_row + (int32_t)wave_id() * 16 * plan::M_TILES, 16 * plan::M_TILES);
    int32_t group_last = first_row + plan::ROWS <= s.sq ? first_row + plan::ROWS - 1 : s.sq - 1;
    int32_t tile = flash_first_key(&a, &s, first_row) / plan::KEYS;
    int32_t end = (flash_last_key(&a, &s, group_last) + plan::KEYS) / plan::KEYS;
    forward_state<plan> state;
#pragma unroll
    for (int m = 0; m < plan::M_TILES; m++) {
#pragma unroll
      for (int d = 0; d < plan::D_TILES; d++) state.out[m][d] = mma_acc{};
#pragma unroll
      for (int r = 0; r < unit::STATS; r++) {
        state.m[m][r] = -infinity_f32();
        state.l[m][r] = 0;
      }
    }

    typename plan::key_tile key_tile;
    typename plan::value_part value_part;
    uint32_t stage = 0;
    group_barrier(); /* LDS is no more read for the rows before */
    if (tile < end) key_tile.fetch(keys_from(tile * plan::KEYS, 0), lds);
#pragma unroll 1
    for (; tile < end; tile++) {
      int32_t first_key = tile * plan::KEYS;
      bool busy = first_key <= wave.any_last && first_key + plan::KEYS > wave.any_first;
      mma_acc scores[plan::M_TILES][plan::N_TILES];
#pragma unroll
      for (int m = 0; m < plan::M_TILES; m++)
#pragma unroll
        for (int n = 0; n < plan::N_TILES; n++) scores[m][n] = mma_acc{};
#pragma unroll 1
      for (int32_t slice = 0, d = arguments_again(a).d; slice * plan::SLICE < d; slice++) {
        char *keys = lds + stage * plan::key_tile::BYTES;
        stage ^= 1;
        key_tile.store(keys);
        group_barrier();
        /* values of the tile before are no more read */
        if (plan::ASYNC && slice == 0) value_part.fetch(values_from(first_key, first_value()), values);
        char *other = lds + stage * plan::key_tile::BYTES;
        int32_t last = (slice + 1) * plan::SLICE;
        if (last < d)
          key_tile.fetch(keys_from(first_key, slice + 1), other);
        else if (tile + 1 < end)
          key_tile.fetch(keys_from(first_key + plan::KEYS, 0), other);
        if (busy)
          wide_scores<type, plan>(queries(), wave.first, slice * plan::SLICE, last < d ? last : d, keys, scores);
      }
      if (busy) forward_tile<type, plan>(place, wave, first_key, slope(), scores);
#pragma unroll
      for (int part = 0; part < FLASH_WIDE_PART; part += plan::AT_ONCE) {
        char *to = values + part / plan::AT_ONCE * (plan::VALUE_BYTES / (FLASH_WIDE_PART / plan::AT_ONCE));
        if (!plan::ASYNC) value_part.fetch(values_from(first_key, first_value() + part), to);
        value_part.store(to);
      }
      group_barrier();
      if (busy) {
        forward_softmax<plan>(scores, c, state);
        if constexpr (kind == FLASH_ANY) forward_dropout<plan>(place, wave, first_key, scores);
        flash_accumulate<type, typename plan::value_tile>(scores, values, strip, state.out);
      }
    }
    group_barrier(); /* LDS becomes the way out */
    flash_place_renew(place);
    forward_store<type, plan>(place, wave, c, state, lds, first_value());
  }
};

#define WIDE(name, type, kind)                                                                    \
  RDNA_KERNEL(FLASH_THREADS) name(struct flash_args a) {                                          \
    RDNA_SHARED static __attribute__((aligned(1024))) char lds[wide_plan<type, kind>::LDS_BYTES]; \
    uint32_t parts = (uint32_t)flash_wide_parts(&a);                                              \
    forward<wide_rows<type, kind>>(a, lds, group_id_x() / parts, group_count_x() / parts);        \
  }
WIDE(flash_forward_any_f32_wide, f32, FLASH_ANY)
WIDE(flash_forward_any_f16_wide, f16, FLASH_ANY)
WIDE(flash_forward_any_bf16_wide, bf16, FLASH_ANY)
WIDE(flash_forward_f32_wide, f32, FLASH_PLAIN)
WIDE(flash_forward_f16_wide, f16, FLASH_PLAIN)
WIDE(flash_forward_bf16_wide, bf16, FLASH_PLAIN)
