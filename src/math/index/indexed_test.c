/* Compares indexing with plain loops over coordinates, in any layout. */
#include "math/common/test/strided.h"
#include "rdna/op/index.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64, RDNA_I8,  RDNA_U8, RDNA_I16,
                                   RDNA_I32, RDNA_I64, RDNA_BOOL, RDNA_U16, RDNA_U32, RDNA_U64};
enum { TYPES = sizeof types / sizeof *types };

static uint32_t *outside; /* on the device */

static void outside_clear(void) { assert_ok(rdna_fill_bytes(stream, outside, 0, sizeof *outside)); }
static void assert_outside(bool want) {
  uint32_t word;
  assert_ok(rdna_copy_to_host(stream, &word, outside, sizeof word));
  assert_ok(rdna_stream_synchronize(stream));
  assert_int_equal(word, want);
}

/* Small whole numbers, which all types hold. */
static void fill_small(operand *o, int64_t low, int64_t high) {
  int64_t count = rdna_tensor_count(&o->tensor);
  for (int64_t i = 0; i < count; i++) {
    bool is_signed = o->tensor.dtype != RDNA_U8 && o->tensor.dtype < RDNA_BOOL;
    int64_t v = rdna__random_range(&random_state, is_signed ? low : 0, high);
    any_set(o, place_of(&o->tensor, &o->tensor, i), (double)v);
  }
  operand_upload(o);
}

/* Fills indices from |low| to size - 1, and now and then outside. */
static bool fill_indices(operand *o, int64_t size, int64_t low, bool may_be_outside) {
  bool some = false;
  int64_t count = rdna_tensor_count(&o->tensor);
  for (int64_t i = 0; i < count; i++) {
    bool is_outside = size == 0 || (may_be_outside && rdna__random_below(&random_state, 20) == 0);
    int64_t v = !is_outside                            ? rdna__random_range(&random_state, low, size - 1)
                : rdna__random_below(&random_state, 2) ? size
                                                       : low - 1 - (int64_t)rdna__random_below(&random_state, 3);
    any_set(o, place_of(&o->tensor, &o->tensor, i), (double)v);
    some = some || is_outside;
  }
  operand_upload(o);
  return some;
}

/* Fills indices with each place along |dim| once, starting anywhere; some count from the end. */
static void fill_apart(operand *o, int dim, int64_t size, bool may_be_negative) {
  int64_t first = rdna__random_range(&random_state, 0, size - 1), count = rdna_tensor_count(&o->tensor),
          at[RDNA_MAX_RANK];
  for (int64_t i = 0; i < count; i++) {
    for (int64_t d = o->tensor.rank - 1, rest = i; d >= 0; d--)
      at[d] = rest % o->tensor.shape[d], rest /= o->tensor.shape[d];
    int64_t v = (first + at[dim]) % size;
    if (may_be_negative && rdna__random_below(&random_state, 2)) v -= size;
    any_set(o, place_of(&o->tensor, &o->tensor, i), (double)v);
  }
  operand_upload(o);
}

static double get(const operand *o, int64_t i) { return real_get(o, place_of(&o->tensor, &o->tensor, i)); }

static void coordinates(int rank, const int64_t *shape, int64_t i, int64_t *out) {
  for (int d = rank - 1; d >= 0; d--) out[d] = i % shape[d], i /= shape[d];
}
static int64_t number(int rank, const int64_t *shape, const int64_t *coordinate) {
  int64_t i = 0;
  for (int d = 0; d < rank; d++) i = i * shape[d] + coordinate[d];
  return i;
}

static void small_shape(int *rank, int64_t *shape) {
  *rank = (int)rdna__random_range(&random_state, 1, 4);
  for (int d = 0; d < *rank; d++) shape[d] = rdna__random_range(&random_state, 1, *rank > 2 ? 6 : *rank > 1 ? 20 : 90);
  if (rdna__random_below(&random_state, 3) == 0) shape[*rank - 1] = 16;
}

static void assert_value(double got, double want, const char *what, rdna_dtype dtype, int64_t i) {
  if (!(got == want)) fail_msg("%s %s [%lld]: got %g, want %g", what, rdna_dtype_name(dtype), (long long)i, got, want);
}

static void gathers(void **state) {
  for (int round = 0; round < 150; round++) {
    rdna_dtype dtype = types[round % TYPES], index_type = round % 3 ? RDNA_I64 : RDNA_I32;
    int rank;
    int64_t shape[RDNA_MAX_RANK], index_shape[RDNA_MAX_RANK], out_shape[RDNA_MAX_RANK], at[RDNA_MAX_RANK];
    small_shape(&rank, shape);
    bool select = round % 2;
    int dim = (int)rdna__random_below(&random_state, (uint64_t)rank);
    for (int d = 0; d < rank; d++) {
      index_shape[d] =
          d == dim ? rdna__random_range(&random_state, 0, 30) : rdna__random_range(&random_state, 1, shape[d]);
      out_shape[d] = d == dim || !select ? index_shape[d] : shape[d];
    }
    operand x = strided_make(dtype, rank, shape, false), out = strided_make(dtype, rank, out_shape, false);
    operand indices = select ? strided_make(index_type, 1, &index_shape[dim], false)
                             : strided_make(index_type, rank, index_shape, false);
    fill_small(&x, -50, 100), operand_upload(&out);
    bool some = fill_indices(&indices, shape[dim], 0, round % 4 > 1) && rdna_tensor_count(&out.tensor) > 0;
    outside_clear();
    if (select)
      assert_ok(rdna_op_index_select(stream, &x.tensor, either_way(dim, rank), &indices.tensor, &out.tensor, outside));
    if (!select)
      assert_ok(rdna_op_gather(stream, &x.tensor, either_way(dim, rank), &indices.tensor, &out.tensor, outside));
    operand_download(&out), operand_download(&indices), operand_download(&x);
    assert_gaps_whole(&out), assert_outside(some);
    for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
      coordinates(rank, out_shape, i, at);
      int64_t index = (int64_t)get(&indices, select ? at[dim] : i);
      at[dim] = index;
      double want = index < 0 || index >= shape[dim] ? 0 : get(&x, number(rank, shape, at));
      assert_value(get(&out, i), want, select ? "index_select" : "gather", dtype, i);
    }
    operand_free(&x), operand_free(&out), operand_free(&indices);
  }
}

static double joined(rdna_scatter mode, rdna_dtype dtype, double a, double b) {
  bool logical = dtype == RDNA_BOOL;
  if (mode == RDNA_SCATTER_PROD) return a * b;
  if (mode == RDNA_SCATTER_MIN) return fmin(a, b);
  if (mode == RDNA_SCATTER_MAX || logical) return fmax(a, b);
  return a + b;
}

/* Combines |v| into value |i| of the wanted result; count[i] is how many were combined there before. */
static void join_into(double *want, int64_t *count, int64_t i, rdna_scatter mode, rdna_dtype dtype, double v,
                      bool include_self) {
  bool first = count[i] == 0 && !include_self;
  bool replaces = first || mode == RDNA_SCATTER_LAST || mode == RDNA_SCATTER_ASSIGN;
  want[i] = replaces ? v : joined(mode, dtype, want[i], v);
  count[i]++;
}

static void compare_joined(const operand *dst, double *want, const int64_t *count, rdna_scatter mode, bool include_self,
                           const char *what) {
  rdna_dtype dtype = dst->tensor.dtype;
  for (int64_t i = 0; i < rdna_tensor_count(&dst->tensor); i++) {
    double got = get(dst, i), n = (double)(count[i] + include_self);
    if (mode == RDNA_SCATTER_MEAN && count[i] > 0) want[i] /= n;
    if (mode == RDNA_SCATTER_MEAN && dtype > RDNA_F64) want[i] = floor(want[i]);
    double error = mode == RDNA_SCATTER_MEAN && dtype < RDNA_F64 ? half_step(dtype, want[i]) : 0;
    if (dtype > RDNA_F64) want[i] = (double)wrapped(dtype, (int64_t)want[i]);
    if (!(fabs(got - want[i]) <= error)) {
      fail_msg("%s %s mode %d self %d [%lld], %lld times: got %g, want %g", what, rdna_dtype_name(dtype), (int)mode,
               include_self, (long long)i, (long long)count[i], got, want[i]);
    }
  }
}

static double *read_all(const operand *o) {
  double *v = calloc((size_t)rdna_tensor_count(&o->tensor) + 1, sizeof *v);
  for (int64_t i = 0; i < rdna_tensor_count(&o->tensor); i++) v[i] = get(o, i);
  return v;
}

/* Whole numbers whose joins are exact: sums below 256, products of -1, 1 and few 2. */
static void fill_for(operand *o, rdna_scatter mode) {
  if (mode != RDNA_SCATTER_PROD) {
    fill_small(o, -2, 2);
    return;
  }
  for (int64_t i = 0; i < rdna_tensor_count(&o->tensor); i++) {
    uint64_t pick = rdna__random_below(&random_state, 12);
    bool is_signed = o->tensor.dtype != RDNA_U8 && o->tensor.dtype <= RDNA_I64;
    any_set(o, place_of(&o->tensor, &o->tensor, i), pick == 0 ? 2 : pick < 6 && is_signed ? -1 : pick == 6 ? 0 : 1);
  }
  operand_upload(o);
}

static void scatters(void **state) {
  for (int round = 0; round < 420; round++) {
    rdna_scatter mode = (rdna_scatter)(round % RDNA_SCATTER_COUNT);
    rdna_dtype dtype = types[round / RDNA_SCATTER_COUNT % TYPES], index_type = round % 3 ? RDNA_I64 : RDNA_I32;
    if (dtype == RDNA_BOOL && mode == RDNA_SCATTER_MEAN) continue;
    if (dtype > RDNA_BOOL && (mode == RDNA_SCATTER_MIN || mode == RDNA_SCATTER_MAX || mode == RDNA_SCATTER_MEAN))
      continue;
    bool include_self = rdna__random_below(&random_state, 2), by_rows = rdna__random_below(&random_state, 3) == 0;
    bool one_dimension = rdna__random_below(&random_state, 3) == 0;
    int rank;
    int64_t shape[RDNA_MAX_RANK], index_shape[RDNA_MAX_RANK], src_shape[RDNA_MAX_RANK], at[RDNA_MAX_RANK];
    small_shape(&rank, shape);
    int dim = (int)rdna__random_below(&random_state, (uint64_t)rank);
    for (int d = 0; d < rank; d++) {
      index_shape[d] = d == dim || by_rows || one_dimension ? shape[d] : rdna__random_range(&random_state, 1, shape[d]);
      if (d == dim) index_shape[d] = rdna__random_range(&random_state, 0, 70);
      src_shape[d] = index_shape[d] + (one_dimension ? 0 : (int64_t)rdna__random_below(&random_state, 3));
    }
    if (mode == RDNA_SCATTER_ASSIGN) { /* without repetition */
      shape[dim] = index_shape[dim] + 3;
    }
    operand dst = strided_make(dtype, rank, shape, false), src = strided_make(dtype, rank, src_shape, false);
    operand indices = by_rows || one_dimension || mode == RDNA_SCATTER_ASSIGN
                          ? strided_make(index_type, 1, &index_shape[dim], false)
                          : strided_make(index_type, rank, index_shape, false);
    fill_for(&dst, mode), fill_for(&src, mode);
    bool some = fill_indices(&indices, shape[dim], 0, round % 4 == 1);
    if (mode == RDNA_SCATTER_ASSIGN) {
      some = false;
      for (int64_t i = 0; i < index_shape[dim]; i++)
        any_set(&indices, place_of(&indices.tensor, &indices.tensor, i), (double)(shape[dim] - 1 - i));
      operand_upload(&indices);
    }
    rdna_tensor spread = indices.tensor;
    bool is_line = by_rows || one_dimension || mode == RDNA_SCATTER_ASSIGN;
    if (is_line && !one_dimension) {
      spread.rank = rank;
      for (int d = 0; d < rank; d++)
        spread.shape[d] = index_shape[d], spread.stride[d] = d == dim ? indices.tensor.stride[0] : 0;
    }
    double *want = read_all(&dst);
    int64_t *count = calloc((size_t)rdna_tensor_count(&dst.tensor) + 1, sizeof *count);
    outside_clear();
    if (one_dimension) {
      assert_ok(rdna_op_index_copy(stream, &dst.tensor, either_way(dim, rank), &indices.tensor, &src.tensor, mode,
                                   include_self, outside));
    } else {
      assert_ok(rdna_op_scatter(stream, &dst.tensor, either_way(dim, rank), &spread, &src.tensor, mode, include_self,
                                outside));
    }
    operand_download(&dst), operand_download(&indices), operand_download(&src);
    assert_gaps_whole(&dst), assert_outside(some);
    int64_t all = 1;
    for (int d = 0; d < rank; d++) all *= index_shape[d];
    for (int64_t i = 0; i < all; i++) {
      coordinates(rank, index_shape, i, at);
      double v = get(&src, number(rank, src_shape, at));
      int64_t index = (int64_t)get(&indices, is_line ? at[dim] : i);
      if (index < 0 || index >= shape[dim]) continue;
      at[dim] = index;
      join_into(want, count, number(rank, shape, at), mode, dtype, v, include_self);
    }
    compare_joined(&dst, want, count, mode, include_self && mode != RDNA_SCATTER_LAST,
                   one_dimension ? "index_copy" : "scatter");
    free(want), free(count);
    operand_free(&dst), operand_free(&src), operand_free(&indices);
  }
}

static void values_put(void **state) {
  /* Lanes that write one value to one place do no harm, but the emulator's checker cannot tell between groups. */
  bool apart = getenv("RDNA_EMULATE_CHECK") != NULL;
  for (int round = 0; round < 60; round++) {
    rdna_dtype dtype = types[round % TYPES];
    int rank;
    int64_t shape[RDNA_MAX_RANK], index_shape[RDNA_MAX_RANK], at[RDNA_MAX_RANK];
    small_shape(&rank, shape);
    bool fill = round % 2;
    int dim = (int)rdna__random_below(&random_state, (uint64_t)rank);
    for (int d = 0; d < rank; d++) index_shape[d] = rdna__random_range(&random_state, 1, shape[d]);
    operand dst = strided_make(dtype, rank, shape, false);
    operand indices =
        fill ? strided_make(RDNA_I64, 1, &index_shape[dim], false) : strided_make(RDNA_I32, rank, index_shape, false);
    fill_small(&dst, 0, 1);
    bool some = false;
    if (apart)
      fill_apart(&indices, fill ? 0 : dim, shape[dim], fill);
    else
      some = fill_indices(&indices, shape[dim], fill ? -shape[dim] : 0, round % 4 < 2);
    double *want = read_all(&dst), value = dtype == RDNA_BOOL ? 1 : 77;
    outside_clear();
    if (fill)
      assert_ok(rdna_op_index_fill(stream, &dst.tensor, either_way(dim, rank), &indices.tensor, rdna_scalar_real(value),
                                   outside));
    if (!fill)
      assert_ok(rdna_op_scatter_value(stream, &dst.tensor, either_way(dim, rank), &indices.tensor,
                                      rdna_scalar_real(value), outside));
    operand_download(&dst), operand_download(&indices);
    assert_gaps_whole(&dst), assert_outside(some);
    if (fill) {
      for (int d = 0; d < rank; d++) index_shape[d] = d == dim ? index_shape[d] : shape[d];
    }
    int64_t all = 1;
    for (int d = 0; d < rank; d++) all *= index_shape[d];
    for (int64_t i = 0; i < all; i++) {
      coordinates(rank, index_shape, i, at);
      int64_t index = (int64_t)get(&indices, fill ? at[dim] : i);
      if (fill && index < 0) index += shape[dim];
      if (index < 0 || index >= shape[dim]) continue;
      at[dim] = index;
      want[number(rank, shape, at)] = value;
    }
    for (int64_t i = 0; i < rdna_tensor_count(&dst.tensor); i++) assert_value(get(&dst, i), want[i], "put", dtype, i);
    free(want);
    operand_free(&dst), operand_free(&indices);
  }
}

/* Random dimensions with indices of random shapes that are broadcast. */
static void advanced(void **state) {
  for (int round = 0; round < 200; round++) {
    rdna_dtype dtype = types[round % TYPES];
    int rank, bcast_rank = (int)rdna__random_below(&random_state, 3), mode_pick = round % 4; /* 0: read, else written */
    int64_t shape[RDNA_MAX_RANK], bcast[RDNA_MAX_RANK], out_shape[RDNA_MAX_RANK], at[RDNA_MAX_RANK], to[RDNA_MAX_RANK];
    small_shape(&rank, shape);
    rdna_scatter mode = mode_pick == 1 ? RDNA_SCATTER_ASSIGN : mode_pick == 2 ? RDNA_SCATTER_ADD : RDNA_SCATTER_LAST;
    for (int b = 0; b < bcast_rank; b++) bcast[b] = rdna__random_range(&random_state, 1, 7);
    if (mode_pick == 1) { /* without repetition: one place */
      for (int b = 0; b < bcast_rank; b++) bcast[b] = 1;
    }
    bool indexed[RDNA_MAX_RANK] = {false}, some = false;
    operand index[RDNA_MAX_RANK];
    const rdna_tensor *list[RDNA_MAX_RANK] = {NULL};
    indexed[rdna__random_below(&random_state, (uint64_t)rank)] = true;
    int count = 0, first = -1, last = -1;
    for (int d = 0; d < rank; d++) {
      indexed[d] = indexed[d] || rdna__random_below(&random_state, 2);
      if (!indexed[d]) continue;
      index[d] = strided_make(d % 2 ? RDNA_I64 : RDNA_I32, bcast_rank, bcast, count > 0);
      some = fill_indices(&index[d], shape[d], -shape[d], round % 3 == 0) || some;
      list[d] = &index[d].tensor;
      first = first < 0 ? d : first, last = d, count++;
    }
    bool front = last - first + 1 != count;
    int out_rank = 0, bcast_at = front ? 0 : first;
    for (int d = 0; d < rank || out_rank == bcast_at; d++) {
      if (out_rank == bcast_at) {
        for (int b = 0; b < bcast_rank; b++) out_shape[out_rank++] = bcast[b];
        if (bcast_rank == 0) bcast_at = -1 - bcast_at;
      }
      if (d < rank && !indexed[d]) out_shape[out_rank++] = shape[d];
    }
    if (bcast_at < 0) bcast_at = -1 - bcast_at;
    operand x = strided_make(dtype, rank, shape, false);
    operand values = strided_make(dtype, out_rank, out_shape, mode_pick > 0 && round % 8 > 3 && out_rank > 0);
    fill_small(&x, -2, 2);
    if (mode_pick > 0) fill_small(&values, -2, 2);
    operand_upload(&values);
    double *want = read_all(&x);
    int64_t *times = calloc((size_t)rdna_tensor_count(&x.tensor) + 1, sizeof *times);
    outside_clear();
    if (mode_pick == 0) assert_ok(rdna_op_index(stream, &x.tensor, list, &values.tensor, outside));
    if (mode_pick > 0) assert_ok(rdna_op_index_put(stream, &x.tensor, list, &values.tensor, mode, outside));
    operand_download(&x), operand_download(&values);
    for (int d = 0; d < rank; d++) {
      if (indexed[d]) operand_download(&index[d]);
    }
    assert_gaps_whole(&x), assert_outside(some);
    if (mode_pick == 0) assert_gaps_whole(&values);
    int64_t all = 1;
    for (int d = 0; d < out_rank; d++) all *= out_shape[d];
    rdna_tensor whole = rdna_tensor_contiguous(NULL, dtype, out_rank, out_shape);
    for (int64_t i = 0; i < all; i++) {
      coordinates(out_rank, out_shape, i, at);
      bool inside = true;
      int64_t b_number = number(bcast_rank, bcast, at + bcast_at);
      rdna_tensor b_whole = rdna_tensor_contiguous(NULL, RDNA_I64, bcast_rank, bcast);
      for (int d = 0, o = 0; d < rank; d++) {
        if (!indexed[d]) {
          if (o == bcast_at) o += bcast_rank;
          to[d] = at[o++];
          continue;
        }
        to[d] = (int64_t)real_get(&index[d], place_of(&index[d].tensor, &b_whole, b_number));
        if (to[d] < 0) to[d] += shape[d];
        inside = inside && to[d] >= 0 && to[d] < shape[d];
      }
      double v = real_get(&values, place_of(&values.tensor, &whole, i));
      int64_t place = inside ? number(rank, shape, to) : -1;
      if (mode_pick == 0) assert_value(v, inside ? get(&x, place) : 0, "index", dtype, i);
      if (mode_pick > 0 && inside) join_into(want, times, place, mode, dtype, v, mode == RDNA_SCATTER_ADD);
    }
    if (mode_pick > 0) compare_joined(&x, want, times, mode, false, "index_put");
    free(want), free(times);
    for (int d = 0; d < rank; d++) {
      if (indexed[d]) operand_free(&index[d]);
    }
    operand_free(&x), operand_free(&values);
  }
}

/* Both dimensions run backwards. */
static void negative_strides(void **state) {
  int64_t shape[2] = {4, 5}, n = 30;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), rows = operand_make(RDNA_I64, 1, &n, NULL, 0);
  operand cols = operand_make(RDNA_I64, 1, &n, NULL, 0), out = operand_make(RDNA_F32, 1, &n, NULL, 0);
  for (int64_t i = 0; i < 20; i++) any_set(&x, i, (double)i);
  operand_upload(&x), operand_upload(&out);
  fill_indices(&rows, 4, -4, false), fill_indices(&cols, 5, -5, false);
  rdna_tensor flipped = x.tensor;
  flipped.data = (float *)x.tensor.data + 19;
  flipped.stride[0] = -5, flipped.stride[1] = -1;
  assert_ok(rdna_op_index(stream, &flipped, (const rdna_tensor *[2]){&rows.tensor, &cols.tensor}, &out.tensor, NULL));
  operand_download(&out);
  for (int64_t i = 0; i < n; i++) {
    int64_t row = (integer_get(&rows, i) + 4) % 4, col = (integer_get(&cols, i) + 5) % 5;
    assert_true(real_get(&out, i) == (double)(19 - 5 * row - col));
  }
  operand_free(&x), operand_free(&rows), operand_free(&cols), operand_free(&out);
}

/* A dimension of 2^40 places, all of them one value: indices pass 32 bits, and the ends of 64. */
static void huge_dimension(void **state) {
  int64_t one = 1, n = 7, size = INT64_C(1) << 40, spaced[] = {size, 3};
  operand x = operand_make(RDNA_F32, 1, &one, NULL, 0), out = operand_make(RDNA_F32, 1, &n, NULL, 0);
  operand at = operand_make(RDNA_I64, 1, &n, NULL, 0), rows = operand_make(RDNA_F32, 2, (int64_t[]){n, 3}, NULL, 0);
  static const int64_t places[] = {
      0, -1, INT64_MIN, INT64_MAX, (INT64_C(1) << 40) - 1, INT64_C(1) << 40, INT64_C(1) << 31};
  any_set(&x, 0, 5);
  memcpy(at.host, places, sizeof places);
  operand_upload(&x), operand_upload(&out), operand_upload(&at), operand_upload(&rows);
  rdna_tensor wide = rdna_tensor_contiguous(x.tensor.data, RDNA_F32, 1, &size);
  wide.stride[0] = 0;
  assert_ok(rdna_op_index_select(stream, &wide, 0, &at.tensor, &out.tensor, NULL));
  operand_download(&out);
  for (int i = 0; i < 7; i++) assert_true(real_get(&out, i) == (places[i] >= 0 && places[i] < size ? 5 : 0));
  assert_ok(rdna_op_index(stream, &wide, (const rdna_tensor *[1]){&at.tensor}, &out.tensor, NULL));
  operand_download(&out);
  for (int i = 0; i < 7; i++) assert_true(real_get(&out, i) == (places[i] >= -size && places[i] < size ? 5 : 0));
  rdna_tensor table = rdna_tensor_contiguous(x.tensor.data, RDNA_F32, 2, spaced);
  table.stride[0] = table.stride[1] = 0;
  assert_ok(rdna_op_embedding(stream, &table, &at.tensor, &rows.tensor, NULL));
  operand_download(&rows);
  for (int i = 0; i < 21; i++) assert_true(real_get(&rows, i) == (places[i / 3] >= 0 && places[i / 3] < size ? 5 : 0));
  operand_free(&x), operand_free(&out), operand_free(&at), operand_free(&rows);
}

/* Long runs of one place, through several launches, against a sum in double, and twice the same bits. */
static void long_runs(void **state) {
  static const int64_t sizes[][3] = {{100000, 3, 1}, {5000, 2, 40}, {3000, 700, 9}, {33, 1, 257}, {70000, 65000, 1}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int64_t n = sizes[s][0], rows = sizes[s][1], cols = sizes[s][2], src_shape[] = {n, cols},
            dst_shape[] = {rows, cols};
    operand src = operand_make(RDNA_F32, 2, src_shape, NULL, 0), ids = operand_make(RDNA_I64, 1, &n, NULL, 0);
    operand dst = operand_make(RDNA_F32, 2, dst_shape, NULL, 0), again = operand_make(RDNA_F32, 2, dst_shape, NULL, 0);
    any_fill(&src, 1), fill_indices(&ids, rows, 0, true);
    for (int by_frequency = 0; by_frequency < 2; by_frequency++) {
      int64_t padding = rows > 2 ? 1 : -1;
      operand_upload(&dst), operand_upload(&again);
      assert_ok(rdna_op_embedding_backward(stream, &src.tensor, &ids.tensor, padding, by_frequency, &dst.tensor, NULL));
      assert_ok(
          rdna_op_embedding_backward(stream, &src.tensor, &ids.tensor, padding, by_frequency, &again.tensor, NULL));
      operand_download(&dst), operand_download(&again);
      assert_memory_equal(dst.host, again.host, dst.bytes);
      double *sum = calloc((size_t)(rows * cols), sizeof *sum), *size = calloc((size_t)(rows * cols), sizeof *size);
      int64_t *count = calloc((size_t)rows, sizeof *count);
      for (int64_t i = 0; i < n; i++) {
        int64_t id = integer_get(&ids, i);
        if (id < 0 || id >= rows || id == padding) continue;
        count[id]++;
        for (int64_t c = 0; c < cols; c++) {
          sum[id * cols + c] += real_get(&src, i * cols + c);
          size[id * cols + c] += fabs(real_get(&src, i * cols + c));
        }
      }
      for (int64_t i = 0; i < rows * cols; i++) {
        double by = by_frequency && count[i / cols] > 0 ? (double)count[i / cols] : 1;
        /* at most 31 additions in each of a few launches */
        assert_close(RDNA_F32, real_get(&dst, i), sum[i] / by, size[i] / by * 0x1p-24 * 130, "embedding_backward", i);
      }
      free(sum), free(size), free(count);
    }
    operand_free(&src), operand_free(&ids), operand_free(&dst), operand_free(&again);
  }
}

/* Returns values whose combination is exact, and differs from that with a 0, with which accumulators begin. */
static double far_from_nothing(rdna_scatter mode, int64_t i, int64_t n) {
  double some = (double)(5 + rdna__random_below(&random_state, 60));
  if (mode == RDNA_SCATTER_MIN || mode == RDNA_SCATTER_LAST) return some;
  if (mode == RDNA_SCATTER_PROD) return i % (n / 6 + 1) == 0 ? 2 : rdna__random_below(&random_state, 2) ? -1 : 1;
  return -some;
}

/* Runs of one place that end before a chunk of segment_* does, with it, and many chunks later, in each mode. */
static void long_runs_of_every_mode(void **state) {
  static const int64_t lengths[] = {31, 32, 33, 64, 65, 96, 97, 1024, 1025, 5000};
  static const rdna_dtype kept[] = {RDNA_F32, RDNA_F64, RDNA_I32, RDNA_I64};
  enum { LENGTHS = sizeof lengths / sizeof *lengths, MODES = RDNA_SCATTER_COUNT - 1 };
  for (int round = 0; round < LENGTHS * MODES * 4; round++) {
    rdna_scatter mode = (rdna_scatter)(1 + round % MODES);
    rdna_dtype dtype = kept[round / MODES % 4];
    int64_t n = lengths[round / MODES / 4], rows = 1 + round % 3, cols = 2, src_shape[] = {n, cols};
    int64_t dst_shape[] = {rows, cols};
    bool include_self = round % 2;
    operand src = operand_make(dtype, 2, src_shape, NULL, 0), ids = operand_make(RDNA_I64, 1, &n, NULL, 0);
    operand dst = operand_make(dtype, 2, dst_shape, NULL, 0);
    for (int64_t i = 0; i < n * cols; i++) any_set(&src, i, far_from_nothing(mode, i / cols, n));
    for (int64_t i = 0; i < rows * cols; i++) any_set(&dst, i, far_from_nothing(mode, 1, n));
    for (int64_t i = 0; i < n; i++) any_set(&ids, i, (double)rdna__random_below(&random_state, (uint64_t)rows));
    operand_upload(&src), operand_upload(&ids), operand_upload(&dst);
    double *want = read_all(&dst);
    int64_t *count = calloc((size_t)(rows * cols), sizeof *count);
    for (int64_t i = 0; i < n * cols; i++)
      join_into(want, count, (int64_t)get(&ids, i / cols) * cols + i % cols, mode, dtype, get(&src, i), include_self);
    assert_ok(rdna_op_index_copy(stream, &dst.tensor, 0, &ids.tensor, &src.tensor, mode, include_self, NULL));
    operand_download(&dst);
    compare_joined(&dst, want, count, mode, include_self && mode != RDNA_SCATTER_LAST, "a long run");
    free(want), free(count);
    operand_free(&src), operand_free(&ids), operand_free(&dst);
  }
}

static void embeddings(void **state) {
  for (int round = 0; round < 30; round++) {
    rdna_dtype dtype = types[round % TYPES];
    int64_t rows = rdna__random_range(&random_state, 1, 30), ids_shape[] = {rdna__random_range(&random_state, 1, 6), 5};
    int64_t cols = round % 3 ? 16 : rdna__random_range(&random_state, 1, 20), table_shape[] = {rows, cols};
    int64_t out_shape[] = {ids_shape[0], 5, cols};
    operand table = strided_make(dtype, 2, table_shape, false), ids = strided_make(RDNA_I32, 2, ids_shape, false);
    operand out = strided_make(dtype, 3, out_shape, false);
    fill_small(&table, -50, 100), operand_upload(&out);
    bool some = fill_indices(&ids, rows, 0, true);
    outside_clear();
    assert_ok(rdna_op_embedding(stream, &table.tensor, &ids.tensor, &out.tensor, outside));
    operand_download(&table), operand_download(&ids), operand_download(&out);
    assert_gaps_whole(&out), assert_outside(some);
    for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
      int64_t id = (int64_t)get(&ids, i / cols);
      assert_value(get(&out, i), id < 0 || id >= rows ? 0 : get(&table, id * cols + i % cols), "embedding", dtype, i);
    }
    operand_free(&table), operand_free(&ids), operand_free(&out);
  }
}

/* Rows that begin at no multiple of 16 bytes, into memory that does not either, against a copy of bytes. */
static void unaligned_rows(void **state) {
  static const rdna_dtype dtypes[] = {RDNA_BF16, RDNA_F32, RDNA_I64, RDNA_U8, RDNA_I16};
  enum { ROWS = 13, IDS = 300 };
  for (int round = 0; round < 40; round++) {
    rdna_dtype dtype = dtypes[round % 5];
    size_t each = rdna_dtype_block_bytes(dtype);
    int64_t cols = round < 5 ? 333 : rdna__random_range(&random_state, 1, 90), ids_count = IDS;
    int64_t skip = rdna__random_range(&random_state, 0, 9), all = ROWS * cols + 9, out_all = IDS * cols + 9;
    operand table = operand_make(dtype, 1, &all, NULL, 0), out = operand_make(dtype, 1, &out_all, NULL, 0);
    operand ids = operand_make(RDNA_I64, 1, &ids_count, NULL, 0);
    for (size_t i = 0; i < table.bytes; i++) ((uint8_t *)table.host)[i] = (uint8_t)rdna__random_bits(&random_state);
    for (int i = 0; i < IDS; i++)
      ((int64_t *)ids.host)[i] = rdna__random_range(&random_state, i == 7 ? -2 : 0, ROWS - 1);
    memset(out.host, 0x5a, out.bytes);
    operand_upload(&table), operand_upload(&ids), operand_upload(&out);
    int64_t table_shape[] = {ROWS, cols}, out_shape[] = {IDS, cols};
    char *to = (char *)out.tensor.data + (size_t)skip * each;
    rdna_tensor rows =
        rdna_tensor_contiguous((char *)table.tensor.data + (size_t)(skip % 4) * each, dtype, 2, table_shape);
    rdna_tensor result = rdna_tensor_contiguous(to, dtype, 2, out_shape);
    assert_ok(rdna_op_embedding(stream, &rows, &ids.tensor, &result, NULL));
    operand_download(&out);
    const uint8_t *got = out.host, *from = (const uint8_t *)table.host + (size_t)(skip % 4) * each;
    size_t row = (size_t)cols * each, before = (size_t)skip * each;
    for (size_t i = 0; i < before; i++) assert_int_equal(got[i], 0x5a);
    for (size_t i = 0; i < IDS; i++) {
      int64_t id = ((int64_t *)ids.host)[i];
      for (size_t j = 0; j < row; j++)
        assert_int_equal(got[before + i * row + j], id < 0 ? 0 : from[(size_t)id * row + j]);
    }
    for (size_t i = before + IDS * row; i < out.bytes; i++) assert_int_equal(got[i], 0x5a);
    operand_free(&table), operand_free(&out), operand_free(&ids);
  }
}

static void masks(void **state) {
  for (int round = 0; round < 60; round++) {
    rdna_dtype dtype = types[round % TYPES];
    int64_t shape[RDNA_MAX_RANK], one = 1;
    int rank = random_shape(shape);
    if (round == 7) rank = 1, shape[0] = 50000;
    operand x = strided_make(dtype, rank, shape, false), count_out = operand_make(RDNA_I64, 1, &one, NULL, 0);
    operand mask = strided_make(round % 2 ? RDNA_BOOL : RDNA_U8, rank, shape, false),
            dst = strided_make(dtype, rank, shape, false);
    fill_small(&x, -1, 1), fill_small(&mask, 0, 1), fill_small(&dst, 1, 5);
    if (dtype == RDNA_F32) { /* -0 is 0, NaN is not */
      any_set(&x, 0, -0.0);
      if (rdna_tensor_count(&x.tensor) > 1) any_set(&x, place_of(&x.tensor, &x.tensor, 1), NAN);
      operand_upload(&x);
    }
    int64_t all = rdna_tensor_count(&x.tensor), nonzero = 0, kept = 0, at[RDNA_MAX_RANK];
    for (int64_t i = 0; i < all; i++) nonzero += get(&x, i) != 0, kept += get(&mask, i) != 0;
    assert_ok(rdna_op_nonzero_count(stream, &x.tensor, &count_out.tensor));
    assert_ok(rdna_copy_to_host(stream, count_out.host, count_out.tensor.data, 8));
    assert_ok(rdna_stream_synchronize(stream));
    assert_int_equal(integer_get(&count_out, 0), nonzero);
    int64_t rows = round % 5 == 4 ? nonzero / 2 : nonzero, list_shape[] = {rows, rank},
            list_kept = round % 5 == 3 ? kept / 2 : kept;
    operand list = operand_make(RDNA_I64, 2, list_shape, NULL, 0), some = operand_make(dtype, 1, &list_kept, NULL, 0);
    operand_upload(&list), operand_upload(&some);
    double *before = read_all(&dst);
    assert_ok(rdna_op_nonzero(stream, &x.tensor, &list.tensor));
    assert_ok(rdna_op_masked_select(stream, &x.tensor, &mask.tensor, &some.tensor));
    assert_ok(rdna_op_masked_scatter(stream, &dst.tensor, &mask.tensor, &some.tensor));
    operand_download(&list), operand_download(&some), operand_download(&dst), operand_download(&x);
    assert_gaps_whole(&dst);
    int64_t listed = 0, taken = 0;
    for (int64_t i = 0; i < all; i++) {
      double v = get(&x, i);
      coordinates(rank, shape, i, at);
      for (int d = 0; v != 0 && listed < rows && d < rank; d++)
        assert_int_equal(integer_get(&list, listed * rank + d), at[d]);
      listed += v != 0;
      bool is_kept = get(&mask, i) != 0 && taken < list_kept;
      double got = get(&dst, i), want = is_kept ? v : before[i];
      assert_true(got == want || (isnan(got) && isnan(want)));
      if (is_kept) assert_true(get(&some, taken) == v || isnan(v));
      taken += is_kept;
    }
    free(before);
    operand_free(&x), operand_free(&mask), operand_free(&dst), operand_free(&list), operand_free(&some);
    operand_free(&count_out);
  }
}

static void empty_and_refused(void **state) {
  int64_t shape[2] = {3, 4}, wide[2] = {3, 5}, none[2] = {0, 4}, three = 3, zero = 0;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand half = operand_make(RDNA_F16, 2, shape, NULL, 0), five = operand_make(RDNA_I64, 2, wide, NULL, 0);
  operand indices = operand_make(RDNA_I64, 2, shape, NULL, 0), line = operand_make(RDNA_I32, 1, &three, NULL, 0);
  operand empty = operand_make(RDNA_F32, 2, none, NULL, 0), no_line = operand_make(RDNA_I32, 1, &zero, NULL, 0);
  operand_upload(&out);
  const rdna_tensor *nothing[2] = {NULL, NULL}, *both[2] = {&line.tensor, &indices.tensor};
  assert_ok(rdna_op_index_select(stream, &x.tensor, 0, &no_line.tensor, &empty.tensor, NULL));
  assert_ok(rdna_op_index_copy(stream, &out.tensor, 0, &no_line.tensor, &empty.tensor, RDNA_SCATTER_ADD, true, NULL));
  assert_refused(rdna_op_gather(stream, &x.tensor, 2, &indices.tensor, &out.tensor, NULL), RDNA_INVALID_ARGUMENT,
                 "dim is 2", "f32 (3, 4)");
  assert_refused(rdna_op_gather(stream, &x.tensor, 0, &five.tensor, &out.tensor, NULL), RDNA_INVALID_ARGUMENT, "(3, 5)",
                 "at most 4");
  assert_refused(rdna_op_gather(stream, &x.tensor, 0, &x.tensor, &out.tensor, NULL), RDNA_INVALID_ARGUMENT, "indices",
                 "i64");
  assert_refused(rdna_op_gather(stream, &x.tensor, 0, &indices.tensor, &half.tensor, NULL), RDNA_INVALID_ARGUMENT,
                 "f16", "f32");
  assert_refused(rdna_op_gather(stream, &x.tensor, 0, &indices.tensor, &x.tensor, NULL), RDNA_INVALID_ARGUMENT, "out",
                 "apart");
  assert_refused(rdna_op_gather(NULL, &x.tensor, 0, &indices.tensor, &out.tensor, NULL), RDNA_INVALID_ARGUMENT,
                 "stream", "NULL");
  assert_refused(rdna_op_index_select(stream, &x.tensor, 1, &line.tensor, &out.tensor, NULL), RDNA_INVALID_ARGUMENT,
                 "size 1 must be 3", "number of indices");
  assert_refused(rdna_op_scatter(stream, &out.tensor, 0, &indices.tensor, &half.tensor, RDNA_SCATTER_ADD, true, NULL),
                 RDNA_INVALID_ARGUMENT, "f16", "f32");
  assert_refused(rdna_op_scatter(stream, &out.tensor, 0, &indices.tensor, &x.tensor, (rdna_scatter)9, true, NULL),
                 RDNA_INVALID_ARGUMENT, "9", "mode");
  assert_refused(rdna_op_index(stream, &x.tensor, nothing, &out.tensor, NULL), RDNA_INVALID_ARGUMENT, "index",
                 "no dimension");
  assert_refused(rdna_op_index(stream, &x.tensor, both, &out.tensor, NULL), RDNA_INVALID_ARGUMENT, "i64 (3, 4)",
                 "dimension 1");
  assert_refused(rdna_op_index_put(stream, &out.tensor, (const rdna_tensor *[2]){&line.tensor, NULL}, &x.tensor,
                                   RDNA_SCATTER_MAX, NULL),
                 RDNA_INVALID_ARGUMENT, "mode", "ADD");
  assert_refused(rdna_op_embedding(stream, &x.tensor, &line.tensor, &five.tensor, NULL), RDNA_INVALID_ARGUMENT, "i64",
                 "f32");
  assert_refused(rdna_op_embedding_backward(stream, &x.tensor, &line.tensor, 7, false, &out.tensor, NULL),
                 RDNA_INVALID_ARGUMENT, "padding is 7", "3 rows");
  assert_refused(rdna_op_masked_select(stream, &x.tensor, &half.tensor, &out.tensor), RDNA_INVALID_ARGUMENT,
                 "mask is f16", "bool");
  assert_refused(rdna_op_nonzero(stream, &x.tensor, &five.tensor), RDNA_INVALID_ARGUMENT, "size 1 must be 2",
                 "rank of x");
  rdna_tensor quantized = x.tensor, huge = line.tensor;
  quantized.dtype = RDNA_Q8_0;
  assert_refused(rdna_op_gather(stream, &quantized, 0, &indices.tensor, &out.tensor, NULL), RDNA_UNSUPPORTED, "q8_0",
                 "quantized");
  huge.shape[0] = INT64_C(1) << 31, huge.stride[0] = 0;
  rdna_tensor many = rdna_tensor_contiguous(x.tensor.data, RDNA_F32, 2, (int64_t[]){huge.shape[0], 4});
  many.stride[0] = many.stride[1] = 0;
  assert_refused(rdna_op_index_copy(stream, &out.tensor, 0, &huge, &many, RDNA_SCATTER_ADD, true, NULL),
                 RDNA_UNSUPPORTED, "2147483648", "2147483647");
  operand_download(&out);
  for (size_t i = 0; i < out.bytes; i++) assert_int_equal(out.host[i], OPERAND_POISON);
  operand_free(&x), operand_free(&out), operand_free(&half), operand_free(&five), operand_free(&indices);
  operand_free(&line), operand_free(&empty), operand_free(&no_line);
}

/* 8-bit floats are moved as bytes, a NaN too: of several values for one place the last stays. They are not added. */
static void eight_bit_floats(void **state) {
  static const uint8_t values[] = {0x38, 0x40, 0x44, 0x7f}, want[] = {0x7f, 0x44, 0, 0x40};
  static const int64_t places[] = {1, 3, 1, 0}, four = 4;
  operand dst = operand_make(RDNA_F8_E4M3FN, 1, &four, NULL, 0), src = operand_make(RDNA_F8_E4M3FN, 1, &four, NULL, 0);
  operand indices = operand_make(RDNA_I64, 1, &four, NULL, 0);
  memset(dst.host, 0, sizeof want);
  memcpy(src.host, values, sizeof values);
  memcpy(indices.host, places, sizeof places);
  operand_upload(&dst), operand_upload(&src), operand_upload(&indices);
  assert_ok(rdna_op_scatter(stream, &dst.tensor, 0, &indices.tensor, &src.tensor, RDNA_SCATTER_LAST, true, NULL));
  assert_refused(rdna_op_scatter(stream, &dst.tensor, 0, &indices.tensor, &src.tensor, RDNA_SCATTER_ADD, true, NULL),
                 RDNA_UNSUPPORTED, "scatter", "f8_e4m3fn are not joined");
  operand_download(&dst);
  assert_memory_equal(dst.host, want, sizeof want);
  operand_free(&dst), operand_free(&src), operand_free(&indices);
}

static int open_all(void **state) {
  void *memory;
  open_device(state);
  assert_ok(rdna_memory_alloc(device, sizeof *outside, stream, &memory));
  outside = memory;
  return 0;
}
static int close_all(void **state) {
  assert_ok(rdna_memory_free(device, outside));
  return close_device(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gathers),
                                     cmocka_unit_test(scatters),
                                     cmocka_unit_test(values_put),
                                     cmocka_unit_test(advanced),
                                     cmocka_unit_test(negative_strides),
                                     cmocka_unit_test(huge_dimension),
                                     cmocka_unit_test(long_runs),
                                     cmocka_unit_test(long_runs_of_every_mode),
                                     cmocka_unit_test(embeddings),
                                     cmocka_unit_test(unaligned_rows),
                                     cmocka_unit_test(masks),
                                     cmocka_unit_test(eight_bit_floats),
                                     cmocka_unit_test(empty_and_refused)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
