#include "rdna/op/movement.h"
#include "math/common/test/strided.h"

static const rdna_dtype moved_types[] = {RDNA_U8, RDNA_F16, RDNA_F32, RDNA_F64, RDNA_BOOL, RDNA_I64};
enum { MOVED_TYPES = 6 };

static void random_bytes(operand *o) {
  for (size_t i = 0; i < o->bytes; i++) o->host[i] = (uint8_t)rdna__random_bits(&random_state);
  operand_upload(o);
}

static bool same_value(const operand *a, int64_t i, const operand *b, int64_t j) {
  size_t bytes = rdna_dtype_block_bytes(a->tensor.dtype);
  return memcmp(a->host + (size_t)i * bytes, b->host + (size_t)j * bytes, bytes) == 0;
}

static void assert_copied(const operand *x, const operand *out) {
  for (int64_t i = 0; i < rdna_tensor_count(&out->tensor); i++) {
    int64_t to = place_of(&out->tensor, &out->tensor, i), from = place_of(&x->tensor, &out->tensor, i);
    if (!same_value(x, from, out, to)) {
      fail_msg("%s value %lld is not x's", rdna_dtype_name(x->tensor.dtype), (long long)i);
    }
  }
  assert_gaps_whole(out);
}

static void copy_moves_every_value(void **state) {
  for (int k = 0; k < 40 * MOVED_TYPES; k++) {
    rdna_dtype dtype = moved_types[k % MOVED_TYPES];
    int64_t shape[RDNA_MAX_RANK];
    int rank = random_shape(shape);
    operand x = strided_make(dtype, rank, shape, k % 5 == 0), out = strided_make(dtype, rank, shape, false);
    random_bytes(&x);
    operand_upload(&out);
    assert_ok(rdna_op_copy(stream, &x.tensor, &out.tensor));
    operand_download(&out);
    assert_copied(&x, &out);
    operand_free(&x);
    operand_free(&out);
  }
}

/* Long lines that begin anywhere, in each of the two by itself. */
static void copy_moves_long_lines(void **state) {
  for (int k = 0; k < 24 * MOVED_TYPES; k++) {
    rdna_dtype dtype = moved_types[k % MOVED_TYPES];
    int rank = 1 + k / MOVED_TYPES % 3;
    int64_t shape[] = {2, 3, 0}, held[2][3];
    shape[rank - 1] = rdna__random_range(&random_state, 30, 900);
    operand o[2];
    for (int i = 0; i < 2; i++) {
      memcpy(held[i], shape, sizeof shape);
      held[i][rank - 1] += rdna__random_range(&random_state, 0, 17);
      o[i] = operand_make(dtype, rank, held[i], NULL, rdna__random_range(&random_state, 0, 17));
      o[i].tensor.shape[rank - 1] = shape[rank - 1];
    }
    random_bytes(&o[0]);
    operand_upload(&o[1]);
    assert_ok(rdna_op_copy(stream, &o[0].tensor, &o[1].tensor));
    operand_download(&o[1]);
    assert_copied(&o[0], &o[1]);
    operand_free(&o[0]);
    operand_free(&o[1]);
  }
}

/* Every permutation of three dimensions, with sizes on both sides of the tiles. */
static void copy_permutes(void **state) {
  static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int k = 0; k < 24 * MOVED_TYPES; k++) {
    rdna_dtype dtype = moved_types[k / 24];
    const int *order = orders[k % 6];
    int64_t shape[3], out_shape[3];
    for (int d = 0; d < 3; d++) shape[d] = rdna__random_range(&random_state, 1, d == k % 3 ? 5 : 150);
    if (k % 24 > 11) shape[1] = shape[1] / 16 * 16 + 16, shape[2] = shape[2] / 16 * 16 + 16;
    operand x = operand_make(dtype, 3, shape, NULL, k % 4 == 1);
    for (int d = 0; d < 3; d++) out_shape[d] = shape[order[d]];
    operand out = operand_make(dtype, 3, out_shape, NULL, k % 4 == 2);
    random_bytes(&x);
    operand_upload(&out);
    for (int d = 0; d < 3; d++) {
      x.tensor.shape[d] = shape[order[d]];
      x.tensor.stride[d] = order[d] == 2 ? 1 : order[d] == 1 ? shape[2] : shape[1] * shape[2];
    }
    assert_ok(rdna_op_copy(stream, &x.tensor, &out.tensor));
    operand_download(&out);
    assert_copied(&x, &out);
    operand_free(&x);
    operand_free(&out);
  }
}

/* Each copy reads all over what the one before it wrote, with nothing in between that would wait for it. */
static void copies_in_a_row_see_each_other(void **state) {
  enum { ROWS = 257, COLS = 259, COUNT = ROWS * COLS, ROUNDS = 30 };
  int64_t shape[] = {COLS, ROWS}, across[] = {1, COLS};
  operand a = operand_make(RDNA_F32, 2, shape, NULL, 0), b = operand_make(RDNA_F32, 2, shape, NULL, 0);
  random_bytes(&a);
  operand_upload(&b);
  size_t bytes = COUNT * sizeof(float);
  float *want = malloc(bytes), *before = malloc(bytes);
  memcpy(want, a.host, bytes);
  rdna_stream *row;
  rdna_graph *graph = NULL;
  assert_ok(rdna_stream_synchronize(stream)); /* which brought the values */
  assert_ok(rdna_stream_create(device, 0, &row));
  rdna_status status = rdna_graph_begin(row);
  if (status != RDNA_UNSUPPORTED) assert_ok(status);
  rdna_tensor views[] = {a.tensor, b.tensor};
  for (int k = 0; k < 2; k++) memcpy(views[k].stride, across, sizeof across); /* (ROWS, COLS), transposed */
  for (int k = 0; k < 2 * ROUNDS; k++) {
    assert_ok(rdna_op_copy(row, &views[k % 2], k % 2 == 0 ? &b.tensor : &a.tensor));
  }
  bool recorded = status == RDNA_OK;
  if (recorded) {
    assert_ok(rdna_graph_end(row, &graph));
    for (int replay = 0; replay < 3; replay++) assert_ok(rdna_graph_launch(graph, row));
  }
  assert_ok(rdna_stream_synchronize(row));
  for (int k = 0; k < 2 * ROUNDS * (recorded ? 3 : 1); k++) {
    memcpy(before, want, bytes);
    for (int i = 0; i < COUNT; i++) want[i] = before[i % ROWS * COLS + i / ROWS];
  }
  operand_download(&a);
  assert_memory_equal(a.host, want, bytes);
  rdna_graph_release(graph);
  rdna_stream_release(row);
  free(want);
  free(before);
  operand_free(&a);
  operand_free(&b);
}

/* |v|, a number of type |from|, as |to|: what the header promises. */
static double converted(rdna_dtype to, double v) {
  static const double above[RDNA_DTYPE_COUNT] = {
      [RDNA_I8] = 0x1p7,   [RDNA_U8] = 0x1p8,   [RDNA_I16] = 0x1p15, [RDNA_I32] = 0x1p31,
      [RDNA_I64] = 0x1p63, [RDNA_U16] = 0x1p16, [RDNA_U32] = 0x1p32, [RDNA_U64] = 0x1p64};
  if (to <= RDNA_F64) return v;
  if (to == RDNA_BOOL) return v != 0;
  bool no_sign = to == RDNA_U8 || to == RDNA_U16 || to == RDNA_U32 || to == RDNA_U64;
  double low = no_sign ? 0 : -above[to];
  if (isnan(v)) return 0;
  if (v <= low) return low;
  return v >= above[to] ? above[to] - 1 : trunc(v); /* of I64, 2^63 - 1 reads back as 2^63 */
}

static void copy_converts(void **state) {
  static const double hard[] = {(double)INFINITY,
                                -(double)INFINITY,
                                (double)NAN,
                                0,
                                0.5,
                                -0.5,
                                255.9,
                                256,
                                -1,
                                127.9,
                                128,
                                -128.9,
                                -129,
                                32768,
                                3e9,
                                -3e9,
                                1e19,
                                -1e19,
                                70000,
                                4294967295,
                                4294967296,
                                0x1.fffffep63,
                                0x1p63,
                                0x1p64};
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64, RDNA_I8,  RDNA_U8, RDNA_I16,
                                     RDNA_I32, RDNA_I64, RDNA_BOOL, RDNA_U16, RDNA_U32, RDNA_U64};
  enum { TYPES = sizeof types / sizeof *types };
  for (int f = 0; f < TYPES; f++) {
    for (int t = 0; t < TYPES; t++) {
      rdna_dtype from = types[f], to = types[t];
      int64_t shape[RDNA_MAX_RANK];
      int rank = random_shape(shape);
      operand x = strided_make(from, rank, shape, from % 2), out = strided_make(to, rank, shape, false);
      for (int64_t i = 0; i < operand_span(&x); i++) {
        double v = 60 * rdna__random_normal(&random_state);
        if (from <= RDNA_F64 && i % 5 == 0) v = hard[rdna__random_below(&random_state, sizeof hard / sizeof *hard)];
        any_set(&x, i, v);
      }
      operand_upload(&x);
      operand_upload(&out);
      assert_ok(rdna_op_copy(stream, &x.tensor, &out.tensor));
      operand_download(&out);
      for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
        double v = real_get(&x, place_of(&x.tensor, &out.tensor, i)), want = converted(to, v);
        if (from > RDNA_F64 && to > RDNA_F64) {
          int64_t whole = wrapped(to, integer_get(&x, place_of(&x.tensor, &out.tensor, i)));
          want = to == RDNA_U64 ? (double)(uint64_t)whole : (double)whole;
        }
        int64_t at = place_of(&out.tensor, &out.tensor, i);
        if (to < RDNA_F64) {
          assert_close(to, real_get(&out, at), want, fabs(want) * 0x1p-24, "copy", i);
        } else if (real_get(&out, at) != want && !(isnan(want) && isnan(real_get(&out, at)))) {
          fail_msg("%s to %s of %.17g: got %.17g want %.17g", rdna_dtype_name(from), rdna_dtype_name(to), v,
                   real_get(&out, at), want);
        }
      }
      assert_gaps_whole(&out);
      operand_free(&x);
      operand_free(&out);
    }
  }
}

static void integers_wrap(void **state) {
  const int64_t shape[] = {5}, in[] = {300, -1, 65535, INT64_MIN, 128};
  const int64_t want[] = {44, -1, -1, 0, -128};
  operand x = operand_make(RDNA_I64, 1, shape, NULL, 0), out = operand_make(RDNA_I8, 1, shape, NULL, 0);
  memcpy(x.host, in, sizeof in);
  operand_upload(&x);
  operand_upload(&out);
  assert_ok(rdna_op_copy(stream, &x.tensor, &out.tensor));
  operand_download(&out);
  for (int i = 0; i < 5; i++) assert_int_equal(integer_get(&out, i), want[i]);
  operand_free(&x);
  operand_free(&out);
}

static void fill_sets_every_value(void **state) {
  for (int k = 0; k < 8 * (RDNA_BOOL + 1); k++) {
    rdna_dtype dtype = (rdna_dtype)(k / 8);
    int64_t shape[RDNA_MAX_RANK];
    int rank = random_shape(shape);
    operand out = k % 2 ? strided_make(dtype, rank, shape, false) : operand_make(dtype, rank, shape, NULL, 0);
    double value = k % 8 == 7 ? -1 : 1 + k % 8;
    operand_upload(&out);
    assert_ok(rdna_op_fill(stream, rdna_scalar_real(value), &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
      double want = dtype > RDNA_F64 ? (double)wrapped(dtype, (int64_t)value) : value;
      assert_true(real_get(&out, place_of(&out.tensor, &out.tensor, i)) == want);
    }
    assert_gaps_whole(&out);
    operand_free(&out);
  }
}

static void arange_counts(void **state) {
  for (int k = 0; k < 3 * (RDNA_BOOL + 1); k++) {
    rdna_dtype dtype = (rdna_dtype)(k / 3);
    int64_t shape[] = {rdna__random_range(&random_state, 1, 3000)}, stride[] = {1 + k % 2};
    operand out = operand_make(dtype, 1, shape, stride, 0);
    int64_t first =
        k % 3 == 2 ? INT64_C(0x7ffffff0) : -7; /* integers go on behind the largest as two's complement does */
    rdna_scalar start = dtype <= RDNA_F64 ? rdna_scalar_real(-2.25) : rdna_scalar_integer(first);
    rdna_scalar step = dtype <= RDNA_F64 ? rdna_scalar_real(0.3) : rdna_scalar_integer(3);
    operand_upload(&out);
    assert_ok(rdna_op_arange(stream, start, step, &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < shape[0]; i++) {
      double want = -2.25 + 0.3 * (double)i, got = real_get(&out, i * stride[0]);
      if (dtype > RDNA_F64) assert_true(got == (double)wrapped(dtype, first + 3 * i));
      if (dtype == RDNA_F64) assert_true(fabs(got - want) <= 0x1p-50 * (1 + fabs(want)));
      if (dtype < RDNA_F64) assert_close(dtype, got, want, 0x1p-24 * fabs(want), "arange", i);
    }
    assert_gaps_whole(&out);
    operand_free(&out);
  }
}

enum { CAT_MOST = 40 };

/* |dense|: all lie alike, in the order of their dimensions that |k| picks, and the joined tensor with or without a gap
 * between its rows. */
static void check_cat(int k, int count, bool dense) {
  static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const int *order = orders[k % 6];
  rdna_dtype dtype = moved_types[k % MOVED_TYPES];
  int64_t shape[RDNA_MAX_RANK], stride[3], size[CAT_MOST], total = 0;
  int rank = dense ? 3 : random_shape(shape), dim = (int)rdna__random_below(&random_state, (uint64_t)rank);
  const int64_t even = k % 4 < 2 ? 8 : 1; /* so that neighbours move together */
  operand in[CAT_MOST];
  const rdna_tensor *inputs[CAT_MOST];
  for (int d = 0; dense && d < 3; d++) shape[d] = rdna__random_range(&random_state, 1, 9) * (d == order[2] ? even : 1);
  for (int i = 0; i < count; i++) {
    size[i] = shape[dim] = i == 2 ? 0 : rdna__random_range(&random_state, 1, 40) * (dense ? even : 1);
    total += size[i];
    stride[order[2]] = 1, stride[order[1]] = shape[order[2]], stride[order[0]] = shape[order[2]] * shape[order[1]];
    in[i] = dense || i == 2 ? operand_make(dtype, rank, shape, dense ? stride : NULL, 0)
                            : strided_make(dtype, rank, shape, false);
    random_bytes(&in[i]);
    inputs[i] = &in[i].tensor;
  }
  shape[dim] = total;
  stride[order[1]] = shape[order[2]], stride[order[0]] = shape[order[2]] * shape[order[1]] + (k % 3 ? 0 : even);
  operand out = dense ? operand_make(dtype, rank, shape, stride, 0) : strided_make(dtype, rank, shape, false);
  operand_upload(&out);
  assert_ok(rdna_op_cat(stream, inputs, count, k % 2 ? dim : dim - rank, &out.tensor));
  operand_download(&out);
  rdna_tensor part = out.tensor;
  int64_t begin = 0;
  for (int i = 0; i < count; begin += size[i] * out.tensor.stride[dim], i++) {
    part.shape[dim] = size[i];
    for (int64_t n = 0; n < rdna_tensor_count(&part); n++) {
      assert_true(same_value(&in[i], place_of(&in[i].tensor, &part, n), &out, begin + place_of(&part, &part, n)));
    }
  }
  assert_gaps_whole(&out);
  for (int i = 0; i < count; i++) operand_free(&in[i]);
  operand_free(&out);
}

static void cat_joins(void **state) {
  for (int k = 0; k < 30; k++) check_cat(k, 4, false);
  for (int k = 0; k < 36; k++) check_cat(k, k % 5 ? (int)rdna__random_range(&random_state, 1, 8) : CAT_MOST, true);
}

/* The coordinates of value |i| of |shape|. */
static void coordinates_of(int rank, const int64_t *shape, int64_t i, int64_t *out) {
  for (int d = rank - 1; d >= 0; d--) {
    out[d] = i % shape[d];
    i /= shape[d];
  }
}

static void flip_turns_around(void **state) {
  for (int k = 0; k < 30; k++) {
    rdna_dtype dtype = moved_types[k % MOVED_TYPES];
    int64_t shape[RDNA_MAX_RANK], at[RDNA_MAX_RANK];
    int rank = random_shape(shape);
    uint32_t dims = (uint32_t)rdna__random_below(&random_state, UINT64_C(1) << rank);
    operand x = strided_make(dtype, rank, shape, false), out = strided_make(dtype, rank, shape, false);
    random_bytes(&x);
    operand_upload(&out);
    assert_ok(rdna_op_flip(stream, &x.tensor, dims, &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
      int64_t from = 0;
      coordinates_of(rank, shape, i, at);
      for (int d = 0; d < rank; d++) {
        from += (dims >> d & 1 ? shape[d] - 1 - at[d] : at[d]) * x.tensor.stride[d];
      }
      assert_true(same_value(&x, from, &out, place_of(&out.tensor, &out.tensor, i)));
    }
    assert_gaps_whole(&out);
    operand_free(&x);
    operand_free(&out);
  }
}

/* Where a padded coordinate comes from, by walking there; -1: outside. */
static int64_t pad_source(rdna_pad_mode mode, int64_t i, int64_t size) {
  int64_t at = 0, direction = 1;
  if (mode == RDNA_PAD_MODE_CONSTANT) return i >= 0 && i < size ? i : -1;
  if (mode == RDNA_PAD_MODE_REPLICATE) return i < 0 ? 0 : i < size ? i : size - 1;
  for (int64_t step = i < 0 ? -1 : 1, n = 0; n != i; n += step) {
    int64_t next = at + step * direction;
    if (mode == RDNA_PAD_MODE_CIRCULAR) {
      at = next < 0 ? size - 1 : next == size ? 0 : next;
    } else {
      if (next < 0 || next == size) direction = -direction;
      at += step * direction;
    }
  }
  return at;
}

static void check_pad(rdna_dtype dtype, rdna_pad_mode mode) {
  int64_t shape[RDNA_MAX_RANK], out_shape[RDNA_MAX_RANK], before[RDNA_MAX_RANK], at[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  for (int d = 0; d < rank; d++) {
    int64_t most = mode == RDNA_PAD_MODE_REFLECT ? shape[d] - 1 : mode == RDNA_PAD_MODE_CIRCULAR ? shape[d] : 9;
    if (most > 9) most = 9;
    before[d] = rdna__random_range(&random_state, shape[d] > 3 ? -1 : 0, most);
    out_shape[d] = shape[d] + before[d] + rdna__random_range(&random_state, shape[d] > 3 ? -1 : 0, most);
  }
  operand x = strided_make(dtype, rank, shape, false), out = strided_make(dtype, rank, out_shape, false);
  random_bytes(&x);
  operand_upload(&out);
  assert_ok(rdna_op_pad(stream, mode, &x.tensor, before, rdna_scalar_integer(1), &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    int64_t from = 0, to = place_of(&out.tensor, &out.tensor, i);
    bool inside = true;
    coordinates_of(rank, out_shape, i, at);
    for (int d = 0; d < rank; d++) {
      int64_t source = pad_source(mode, at[d] - before[d], shape[d]);
      inside = inside && source >= 0;
      from += source * x.tensor.stride[d];
    }
    assert_true(inside ? same_value(&x, from, &out, to) : real_get(&out, to) == 1);
  }
  assert_gaps_whole(&out);
  operand_free(&x);
  operand_free(&out);
}

static void pad_surrounds(void **state) {
  for (int k = 0; k < 15 * RDNA_PAD_MODE_COUNT; k++) {
    check_pad(moved_types[k % MOVED_TYPES], (rdna_pad_mode)(k % RDNA_PAD_MODE_COUNT));
  }
}

static void triangle_keeps_one_side(void **state) {
  for (int k = 0; k < 40; k++) {
    rdna_dtype dtype = moved_types[k % MOVED_TYPES];
    int64_t shape[RDNA_MAX_RANK], diagonal = rdna__random_range(&random_state, -12, 12);
    int rank = random_shape(shape);
    if (rank == 1) shape[rank++] = 3;
    bool upper = k % 2;
    operand x = strided_make(dtype, rank, shape, false), out = strided_make(dtype, rank, shape, false);
    random_bytes(&x);
    operand_upload(&out);
    assert_ok(rdna_op_triangle(stream, &x.tensor, upper, diagonal, &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
      int64_t column = i % shape[rank - 1], row = i / shape[rank - 1] % shape[rank - 2];
      int64_t to = place_of(&out.tensor, &out.tensor, i), from = place_of(&x.tensor, &out.tensor, i);
      bool kept = upper ? column >= row + diagonal : column <= row + diagonal;
      assert_true(kept ? same_value(&x, from, &out, to) : real_get(&out, to) == 0);
    }
    assert_gaps_whole(&out);
    operand_free(&x);
    operand_free(&out);
  }
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  const int64_t shape[] = {2, 3}, other[] = {3, 2}, none[] = {0, 3}, before[] = {0, 3};
  const int64_t wider[] = {2, 7};
  operand a = operand_make(RDNA_F32, 2, shape, NULL, 0), b = operand_make(RDNA_F32, 2, other, NULL, 0);
  operand h = operand_make(RDNA_F16, 2, shape, NULL, 0), out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand wide = operand_make(RDNA_F32, 2, wider, NULL, 0);
  const rdna_tensor *two[] = {&a.tensor, &b.tensor}, *mixed[] = {&h.tensor};
  rdna_scalar zero = rdna_scalar_integer(0);
  operand_upload(&out);
  operand_upload(&wide);
  assert_refused(rdna_op_copy(stream, &b.tensor, &out.tensor), bad, "copy: x is f32 (3, 2)", "out is f32 (2, 3)");
  assert_refused(rdna_op_copy(stream, &a.tensor, &a.tensor), bad, "copy: out", "overlap");
  assert_refused(rdna_op_copy(NULL, &a.tensor, &out.tensor), bad, "copy", "stream is NULL");
  assert_refused(rdna_op_cat(stream, two, 2, 0, &out.tensor), bad, "inputs[1] is f32 (3, 2)", "out is f32 (2, 3)");
  assert_refused(rdna_op_cat(stream, two, 1, 2, &out.tensor), bad, "cat: dim is 2", "-2 to 1");
  assert_refused(rdna_op_cat(stream, two, 0, 0, &out.tensor), bad, "cat: out is f32 (2, 3)", "must be 0");
  assert_refused(rdna_op_cat(stream, mixed, 1, 0, &out.tensor), bad, "inputs[0] is f16", "out is f32");
  assert_refused(rdna_op_flip(stream, &a.tensor, 4, &out.tensor), bad, "flip: dims 0x4", "rank 2");
  assert_refused(rdna_op_pad(stream, RDNA_PAD_MODE_REFLECT, &a.tensor, before, zero, &wide.tensor), bad,
                 "dimension 1 of size 3", "3 before and 1 after");
  assert_refused(rdna_op_pad(stream, (rdna_pad_mode)9, &a.tensor, before, zero, &wide.tensor), bad, "mode", "9");
  assert_refused(rdna_op_pad(stream, RDNA_PAD_MODE_CONSTANT, &a.tensor, NULL, zero, &wide.tensor), bad, "before",
                 "NULL");
  assert_refused(rdna_op_triangle(stream, &a.tensor, true, 0, &b.tensor), bad, "out is f32 (3, 2)", "(2, 3)");
  assert_refused(rdna_op_arange(stream, zero, zero, &out.tensor), bad, "arange: out is f32 (2, 3)", "rank must be 1");
  rdna_tensor t = out.tensor;
  t.stride[1] = 0;
  assert_refused(rdna_op_fill(stream, zero, &t), bad, "fill: out is f32 (2, 3)", "stride of 0");
  t.dtype = RDNA_Q8_0;
  assert_refused(rdna_op_fill(stream, zero, &t), RDNA_UNSUPPORTED, "fill: out is q8_0", "quantized");
  rdna_tensor empty = rdna_tensor_contiguous(NULL, RDNA_F32, 2, none);
  assert_ok(rdna_op_copy(stream, &empty, &empty));
  assert_ok(rdna_op_fill(stream, zero, &empty));
  assert_ok(rdna_op_flip(stream, &empty, 3, &empty));
  assert_ok(rdna_op_triangle(stream, &empty, true, 0, &empty));
  assert_ok(rdna_op_cat(stream, NULL, 0, 0, &empty));
  operand_download(&out);
  operand_download(&wide);
  for (int64_t i = 0; i < 6; i++) assert_true(operand_is_poison(&out, i));
  for (int64_t i = 0; i < 14; i++) assert_true(operand_is_poison(&wide, i));
  operand_free(&a);
  operand_free(&b);
  operand_free(&h);
  operand_free(&out);
  operand_free(&wide);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copy_moves_every_value),
      cmocka_unit_test(copy_moves_long_lines),
      cmocka_unit_test(copy_permutes),
      cmocka_unit_test(copies_in_a_row_see_each_other),
      cmocka_unit_test(copy_converts),
      cmocka_unit_test(integers_wrap),
      cmocka_unit_test(fill_sets_every_value),
      cmocka_unit_test(arange_counts),
      cmocka_unit_test(cat_joins),
      cmocka_unit_test(flip_turns_around),
      cmocka_unit_test(pad_surrounds),
      cmocka_unit_test(triangle_keeps_one_side),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
