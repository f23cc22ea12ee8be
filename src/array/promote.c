/* Which type holds the values of two, and which shape those of several arrays. */
#include <stdio.h>

#include "array/array.h"

enum {
  PLAIN = 13,
  B = RDNA_BOOL,
  U = RDNA_U8,
  I = RDNA_I8,
  S = RDNA_I16,
  US = RDNA_U16,
  UN = RDNA_U32,
  UL = RDNA_U64,
  N = RDNA_I32,
  L = RDNA_I64,
  H = RDNA_F16,
  BF = RDNA_BF16,
  F = RDNA_F32,
  D = RDNA_F64
};

/* NumPy's (github.com/numpy/numpy, doc/source/reference/arrays.promotion.rst): the smallest type that holds every value
 * of both; of u64 and signed integers f64. bf16, which it has not, holds the integers of 8 bits. By places. */
static const uint8_t promotions[PLAIN][PLAIN] = {
    /*   F  H  BF D  I  U  S  N  L  B  US UN UL */
    /* F  */ {F, F, F, D, F, F, F, D, D, F, F, D, D},
    /* H  */ {F, H, F, D, H, H, F, D, D, H, F, D, D},
    /* BF */ {F, F, BF, D, BF, BF, F, D, D, BF, F, D, D},
    /* D  */ {D, D, D, D, D, D, D, D, D, D, D, D, D},
    /* I  */ {F, H, BF, D, I, S, S, N, L, I, N, L, D},
    /* U  */ {F, H, BF, D, S, U, S, N, L, U, US, UN, UL},
    /* S  */ {F, F, F, D, S, S, S, N, L, S, N, L, D},
    /* N  */ {D, D, D, D, N, N, N, N, L, N, N, L, D},
    /* L  */ {D, D, D, D, L, L, L, L, L, L, L, L, D},
    /* B  */ {F, H, BF, D, I, U, S, N, L, B, US, UN, UL},
    /* US */ {F, F, F, D, N, US, N, N, L, US, US, UN, UL},
    /* UN */ {D, D, D, D, L, UN, L, L, L, UN, UN, UN, UL},
    /* UL */ {D, D, D, D, D, UL, D, D, D, UL, UL, UL, UL},
};

/* The plain types are the first ten, and the three that came last. PLAIN: another. */
static int place_of(rdna_dtype dtype) {
  if ((unsigned)dtype <= RDNA_BOOL) return (int)dtype;
  return dtype == RDNA_U16 ? 10 : dtype == RDNA_U32 ? 11 : dtype == RDNA_U64 ? 12 : PLAIN;
}

bool rdna__array_is_plain(rdna_dtype dtype) { return place_of(dtype) < PLAIN; }

bool rdna__array_is_unsigned(rdna_dtype dtype) {
  return dtype == RDNA_U8 || dtype == RDNA_U16 || dtype == RDNA_U32 || dtype == RDNA_U64;
}

bool rdna__array_is_float(rdna_dtype dtype) {
  return dtype == RDNA_F32 || dtype == RDNA_F16 || dtype == RDNA_BF16 || dtype == RDNA_F64;
}

rdna_dtype rdna__array_float_for(rdna_dtype dtype) {
  if (rdna__array_is_float(dtype)) return dtype;
  bool wide = dtype == RDNA_I32 || dtype == RDNA_I64 || dtype == RDNA_U32 || dtype == RDNA_U64;
  return wide ? RDNA_F64 : RDNA_F32;
}

rdna_dtype rdna_dtype_promote(rdna_dtype a, rdna_dtype b) {
  if (!rdna__array_is_plain(a) || !rdna__array_is_plain(b)) return RDNA_DTYPE_COUNT;
  return (rdna_dtype)promotions[place_of(a)][place_of(b)];
}

/* Of |tensor|'s sizes, aligned at the end with |rank| others, that of dimension |i|. */
static int64_t size_at(const rdna_tensor *tensor, int rank, int i) {
  int own = i - (rank - tensor->rank);
  return own < 0 ? 1 : tensor->shape[own];
}

rdna_status rdna__array_join_shapes(const char *function, rdna_array *const *arrays, int count, rdna_tensor *out) {
  int rank = 0;
  for (int i = 0; i < count; i++)
    if (arrays[i]->tensor.rank > rank) rank = arrays[i]->tensor.rank;
  out->rank = rank;
  for (int d = 0; d < rank; d++) {
    out->shape[d] = 1;
    for (int i = 0; i < count; i++) {
      int64_t size = size_at(&arrays[i]->tensor, rank, d);
      if (size == out->shape[d] || size == 1) continue;
      if (out->shape[d] == 1) {
        out->shape[d] = size;
        continue;
      }
      char first[RDNA__ARRAY_TEXT], other[RDNA__ARRAY_TEXT];
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: arrays %s and %s have no common shape: %lld and %lld meet at dimension %d from the end, "
                        "and neither is 1",
                        function, rdna__array_text(&arrays[0]->tensor, first),
                        rdna__array_text(&arrays[i]->tensor, other), (long long)out->shape[d], (long long)size,
                        rank - d);
    }
  }
  return RDNA_OK;
}

rdna_status rdna__array_check(const char *function, rdna_array *const *arrays, int count, rdna_array **out_array) {
  for (int i = 0; i < count; i++) {
    if (!arrays[i] || !out_array)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s needs %d array%s and a place for the result", function, count,
                        count > 1 ? "s" : "");
    if (arrays[i]->stream != arrays[0]->stream)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: array %d belongs to another stream than the first; make both on one, or copy it", function,
                        i + 1);
  }
  return RDNA_OK;
}

rdna_status rdna__array_dim(const char *function, int rank, int *dim) {
  if (*dim < -rank || *dim >= rank)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: dim %d is none of %d dimensions", function, *dim, rank);
  if (*dim < 0) *dim += rank;
  return RDNA_OK;
}
