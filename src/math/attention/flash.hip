/* Attention forward, in one pass over the keys and values: each row keeps the running maximum m of its scores, the sum
 * l of exp(s - m) and the sum of exp(s - m) * v, and all are scaled down when the maximum grows (Milakov and
 * Gimelshein 2018; Dao 2023). Scores never leave the registers.
 *
 * For each query, key and head 2 (d + dv) floating-point operations, half of that where the diagonal cuts; each key and
 * value is read once for every FLASH_ROWS queries at most. */
#define RDNA_SM_90A_IMAGE /* a second one: cmake/kernels.cmake */
#include "math/attention/flash_forward.h"

template <typename type, int max_d, flash_kind kind>
struct forward_plan {
  typedef typename unit_of<type>::is unit;
  static constexpr flash_kind KIND = kind;
  static constexpr bool MATRIX = !unit::THROUGH_LDS, any = kind != FLASH_PLAIN;
  /* with every option 64 keys at once leave no registers for more on waves of 64 lanes without matrix units */
  static constexpr bool FEW = any && !MATRIX && type::BYTES == 2 && max_d == 64;
  static constexpr int M_TILES = (WAVE_SIZE == 64 && !FEW) || (unit::ASYNC && max_d <= 128 && !any) ? 2 : 1;
#ifdef RDNA_MFMA_
  static constexpr int KEYS_128 = 64;
#else
  static constexpr int KEYS_128 = 32;
#endif
  static constexpr int KEYS = type::BYTES == 4 ? (max_d == 256 ? 16 : 32)
                              : max_d == 64    ? 64
                              : max_d == 128   ? KEYS_128
                                               : 32;
  /* the registers have room for the queries too */
  static constexpr bool RESIDENT =
      MATRIX && ((max_d <= 128 && (!any || unit::ASYNC)) || (unit::ASYNC && !any) || (WAVE_SIZE == 64 && max_d <= 128));
  /* and for the next tile while this one is worked on */
  static constexpr bool EARLY = unit::ASYNC || (MATRIX ? max_d <= 128 : max_d == 64 && !any);
  static constexpr int STAGES = unit::ASYNC && max_d <= 128 ? 2 : 1;
  static constexpr int ROWS = FLASH_WAVES * 16 * M_TILES, N_TILES = KEYS / 16, D_TILES = max_d / 16;
  static constexpr int STEPS = max_d / unit::K;
  typedef plain_tile<type, max_d, KEYS> key_tile;
  typedef typename value_tile_of<type, max_d, KEYS, unit::ASYNC>::is value_tile;
  static constexpr int VALUE_BYTES = unit::ASYNC ? key_tile::BYTES : turned_tile<type, max_d, KEYS>::BYTES;
  static constexpr int STAGE_BYTES = key_tile::BYTES + VALUE_BYTES;
  typedef score_strip<type, KEYS> strip;
  static constexpr int TILES_BYTES = STAGES * STAGE_BYTES + FLASH_WAVES * strip::BYTES;
  static constexpr int WRITE_BYTES = FLASH_WAVES * FLASH_STAGE_BYTES;
  static constexpr int LDS_BYTES = TILES_BYTES > WRITE_BYTES ? TILES_BYTES : WRITE_BYTES;
  static_assert(LDS_BYTES <= 48 * 1024, "shared memory that every GPU has");
  static_assert(FLASH_ROWS % ROWS == 0, "whole passes");
};

/* Computes ROWS queries from |first_row| on: walks over the tiles of keys and values that some of them see. With two
 * STAGES in LDS the next tile is in flight while one is computed; with one stage the values are, and if EARLY the next
 * keys:
 *
 *     one stage    | fetch values, scores | store values | fetch next keys, softmax, out += P V | store keys | */
template <typename type, int max_d, flash_kind kind>
struct forward_rows {
  static constexpr int ROWS = forward_plan<type, max_d, kind>::ROWS;
  RDNA_DEVICE void run(flash_place &place, int32_t first_row, char *lds) {
    typedef forward_plan<type, max_d, kind> plan;
    typedef typename plan::unit unit;
    flash_place_renew(place);
    const flash_args &a = *place.a;
    const flash_sequence &s = place.s;
    int32_t kv_head = place.head / (a.heads / a.kv_heads);
    /* computed again for each tile where scalar registers are short: see "Arguments again" */
    auto queries = [&]() __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again_wide(a);
      return flash_rows_of<type>(now.q, now.q_stride, place.batch, s.q_row, place.head, s.sq, now.d);
    };
    auto keys_from = [&](int32_t first) __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again_wide(a);
      return flash_rows_of<type>(now.k, now.k_stride, place.batch, s.k_row, kv_head, s.sk, now.d).from(first);
    };
    auto values_from = [&](int32_t first) __attribute__((device, always_inline)) {
      const flash_args &now = arguments_again_wide(a);
      return flash_rows_of<type>(now.v, now.v_stride, place.batch, s.k_row, kv_head, s.sk, now.dv).from(first);
    };
    float c = kind == FLASH_ANY ? 1 : kind == FLASH_MASKED ? FLASH_LOG2_E : a.scale * FLASH_LOG2_E;
    float slope = a.slopes ? global(a.slopes)[place.batch * a.slopes_stride + place.head] : 0;
    char *strip = lds + plan::STAGES * plan::STAGE_BYTES + wave_id() * plan::strip::BYTES;

    forward_wave wave = forward_wave_of(a, s, first_row + (int32_t)wave_id() * 16 * plan::M_TILES, 16 * plan::M_TILES);
    int32_t group_last = first_row + plan::ROWS <= s.sq ? first_row + plan::ROWS - 1 : s.sq - 1;
    int32_t tile = flash_first_key(&a, &s, first_row) / plan::KEYS;
    int32_t end = (flash_last_key(&a, &s, group_last) + plan::KEYS) / plan::KEYS;

    wave_rows<type, max_d, plan::M_TILES, plan::RESIDENT, plan::MATRIX || !plan::any> rows;
    rows.init(queries(), wave.first);
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
    typename plan::value_tile value_tile;
    group_barrier(); /* LDS is no more read for the rows before */
    if (tile < end) {
      key_tile.fetch(keys_from(tile * plan::KEYS), lds);
      if (plan::STAGES == 2) value_tile.fetch(values_from(tile * plan::KEYS), lds + plan::key_tile::BYTES);
      key_tile.store(lds);
    }
    group_barrier();
    uint32_t stage = 0;
#pragma unroll 1
    for (; tile < end; tile++) {
      int32_t first_key = tile * plan::KEYS;
      bool busy = first_key <= wave.any_last && first_key + plan::KEYS > wave.any_first;
      char *keys = lds + stage * plan::STAGE_BYTES, *values = keys + plan::key_tile::BYTES;
      mma_acc scores[plan::M_TILES][plan::N_TILES];
      if constexpr (plan::STAGES == 2) {
        stage ^= 1;
        if (tile + 1 < end) {
          key_tile.fetch(keys_from(first_key + plan::KEYS), lds + stage * plan::STAGE_BYTES);
          value_tile.fetch(values_from(first_key + plan::KEYS),
                           lds + stage * plan::STAGE_BYTES + plan::key_tile::BYTES);
        }
      } else if constexpr (plan::EARLY) {
        value_tile.fetch(values_from(first_key), values);
      }
      if (busy) {
        if constexpr (!plan::RESIDENT) rows.init(queries(), wave.first);
        flash_scores<typename plan::key_tile, plan::M_TILES, plan::N_TILES, plan::STEPS>(rows, keys, scores);
        forward_tile<type, plan>(place, wave, first_key, slope, scores);
      }
      if constexpr (plan::STAGES == 1) {
        if constexpr (!plan::EARLY) value_tile.fetch(values_from(first_key), values);
        value_tile.store(values);
        group_barrier();
        if (plan::EARLY && tile + 1 < end) key_tile.fetch(keys_from(first_key + plan::KEYS), keys);
      }
      if (busy) {
        forward_softmax<plan>(scores, c, state);
        if constexpr (kind == FLASH_ANY) forward_dropout<plan>(place, wave, first_key, scores);
        flash_accumulate<type, typename plan::value_tile>(scores, values, strip, state.out);
      }
      if (tile + 1 < end) {
        if constexpr (!plan::EARLY) key_tile.fetch(keys_from(first_key + plan::KEYS), keys);
        key_tile.store(keys);
      }
      group_barrier();
    }

    flash_place_renew(place);
    forward_store<type, plan>(place, wave, c, state, lds);
  }
};

#ifdef RDNA_WGMMA
#include "math/attention/nvidia/flash_forward_wgmma.h"
#endif

#define FORWARD(name, type, max_d, kind)                                                                    \
  RDNA_KERNEL(FLASH_THREADS) name(struct flash_args a) {                                                    \
    RDNA_SHARED static __attribute__((aligned(1024))) char lds[forward_plan<type, max_d, kind>::LDS_BYTES]; \
    forward<forward_rows<type, max_d, kind>>(a, lds, group_id_x(), group_count_x());                        \
  }
#ifdef RDNA_WGMMA
#define FORWARD_MATRIX(name, type, max_d, kind)                                                               \
  RDNA_KERNEL_RESIDENT(FLASH_THREADS, 2) name(struct flash_args a) {                                          \
    WGMMA_MEMORY(lds, kind == FLASH_MASKED ? FLASH_FORWARD_MASKED_BYTES(max_d) : FLASH_FORWARD_BYTES(max_d)); \
    forward<wgmma_rows<type, max_d, kind>>(a, (char *)lds, group_id_x(), group_count_x());                    \
  }
#else
#define FORWARD_MATRIX(name, type, max_d, kind) FORWARD(name, type, max_d, kind)
#endif
#define FORWARD_ANY(type)                                       \
  FORWARD(flash_forward_any_##type##_64, type, 64, FLASH_ANY)   \
  FORWARD(flash_forward_any_##type##_128, type, 128, FLASH_ANY) \
  FORWARD(flash_forward_any_##type##_256, type, 256, FLASH_ANY)
#define FORWARD_16_BITS(type)                                              \
  FORWARD_MATRIX(flash_forward_##type##_64, type, 64, FLASH_PLAIN)         \
  FORWARD_MATRIX(flash_forward_##type##_128, type, 128, FLASH_PLAIN)       \
  FORWARD(flash_forward_##type##_256, type, 256, FLASH_PLAIN)              \
  FORWARD_MATRIX(flash_forward_masked_##type##_64, type, 64, FLASH_MASKED) \
  FORWARD_MATRIX(flash_forward_masked_##type##_128, type, 128, FLASH_MASKED)

FORWARD_ANY(f32)
FORWARD_ANY(f16)
FORWARD_ANY(bf16)
FORWARD(flash_forward_f32_64, f32, 64, FLASH_PLAIN)
FORWARD(flash_forward_f32_128, f32, 128, FLASH_PLAIN)
FORWARD(flash_forward_f32_256, f32, 256, FLASH_PLAIN)
FORWARD_16_BITS(f16)
FORWARD_16_BITS(bf16)
