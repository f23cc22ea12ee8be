/* Embedding lookup; see index_kernels.h. */
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/index/index_kernels.h"
#include "math/quant/quant_blocks.h"

/* How a table is read: load_8 loads and converts 8 values of a row from column |col| on; columns past |cols| give 0.
 * |aligned|: the table's address, its rows and their stride are multiples of 16 bytes. */
template <typename type>
struct float_table {
  RDNA_DEVICE int64_t row_bytes(int64_t stride) { return stride * type::BYTES; }
  RDNA_DEVICE bool aligned(const gather_args &a) {
    return all_16(address_of(a.table) | (uint64_t)(a.cols | a.table_stride) * type::BYTES);
  }
  RDNA_DEVICE void load_8(const char *row, int64_t col, int64_t cols, bool aligned, float out[8]) {
    if (aligned && col + 8 <= cols) {
#pragma unroll
      for (int i = 0; i < 8; i += type::IN_16) type::load_16(row + (col + i) * type::BYTES, out + i);
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) out[i] = col + i < cols ? type::load(row, (uint64_t)(col + i)) : 0;
    }
  }
};

template <typename format>
struct block_table {
  RDNA_DEVICE int64_t row_bytes(int64_t stride) { return stride / format::block_values * format::block_bytes; }
  RDNA_DEVICE bool aligned(const gather_args &a) { return true; }
  RDNA_DEVICE void load_8(const char *row, int64_t col, int64_t cols, bool aligned, float out[8]) {
    format::decode8(format::load8(row, (int)(col / 8)), out); /* cols is a multiple of 32: 8 values are always whole */
  }
};

template <typename table>
RDNA_DEVICE void gather(const gather_args &a) {
  int64_t parts = (a.cols + GATHER_VALUES_PER_GROUP - 1) / GATHER_VALUES_PER_GROUP;
  bool aligned = table::aligned(a), out_aligned = all_16(address_of(a.out) | (uint64_t)a.out_stride * 4);
  for (int64_t item = group_id_x(); item < a.tokens * parts; item += group_count_x()) {
    int64_t token = item / parts, col = item % parts * GATHER_VALUES_PER_GROUP + thread_id() * 8;
    int64_t id = a.ids[token];
    float *out = a.out + token * a.out_stride + col;
    float v[8];
    if (col >= a.cols) continue;
    if (id >= 0 && id < a.rows) {
      table::load_8((const char *)a.table + id * table::row_bytes(a.table_stride), col, a.cols, aligned, v);
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] = __builtin_nanf("");
    }
    if (out_aligned && col + 8 <= a.cols) {
      f32::store_16(out, v);
      f32::store_16(out + 4, v + 4);
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) {
        if (col + i < a.cols) out[i] = v[i];
      }
    }
  }
}

#define GATHER(name, table) \
  RDNA_KERNEL(GATHER_THREADS) name(struct gather_args a) { gather<table>(a); }
GATHER(gather_rows_f16, float_table<f16>)
GATHER(gather_rows_bf16, float_table<bf16>)
#define GATHER_BLOCKS(F, NAME) GATHER(gather_rows_##F, block_table<F>)
RDNA_QUANT_FORMATS(GATHER_BLOCKS)
