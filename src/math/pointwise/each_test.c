/* One operation on each of many tensors: the bits of the operators for one, in few launches. */
#include "math/common/test/operand.h"
#include "math/pointwise/each_kernels.h"
#include "rdna/op/pointwise.h"

enum { MOST = 130 };
static const rdna_scalar none;

/* What a test calls: kind 1 map, 2 zip, 3 zip3, 4 and 5 zip_scalar, the number last and first. */
typedef struct call {
  int kind, op;
  rdna_scalar p, q, scalar;
} call;

static int inputs_of(int kind) { return kind == 2 ? 2 : kind == 3 ? 3 : 1; }

static void run_each(const call *c, const rdna_pointwise *items, int count) {
  if (c->kind == 1) assert_ok(rdna_op_map_each(stream, (rdna_map)c->op, items, count, c->p, c->q));
  if (c->kind == 2) assert_ok(rdna_op_zip_each(stream, (rdna_zip)c->op, items, count, c->p, c->q));
  if (c->kind == 3) assert_ok(rdna_op_zip3_each(stream, (rdna_zip3)c->op, items, count, c->p));
  if (c->kind < 4) return;
  assert_ok(rdna_op_zip_scalar_each(stream, (rdna_zip)c->op, items, count, c->scalar, c->kind == 5, c->p, c->q));
}

static void run_one(const call *c, const rdna_pointwise *x, const rdna_tensor *out) {
  if (c->kind == 1) assert_ok(rdna_op_map(stream, (rdna_map)c->op, x->a, c->p, c->q, out));
  if (c->kind == 2) assert_ok(rdna_op_zip(stream, (rdna_zip)c->op, x->a, x->b, c->p, c->q, out));
  if (c->kind == 3) assert_ok(rdna_op_zip3(stream, (rdna_zip3)c->op, x->a, x->b, x->c, c->p, out));
  if (c->kind < 4) return;
  assert_ok(rdna_op_zip_scalar(stream, (rdna_zip)c->op, x->a, c->scalar, c->kind == 5, c->p, c->q, out));
}

static operand random_operand(rdna_dtype dtype, int rank, const int64_t *shape, const int64_t *stride) {
  operand o = operand_make(dtype, rank, shape, stride, rdna__random_below(&random_state, 3) ? 0 : 1);
  operand_fill(&o, 3);
  return o;
}

/* A tensor of a list: its operands (the result first, then inputs), and where the operator for one writes. */
typedef struct tensors {
  operand operand[4], want;
  rdna_pointwise item;
} tensors;

/* |special|: the item's input lies with gaps, is broadcast, is one value, or is empty. */
static void make(tensors *t, const call *c, rdna_dtype dtype, int64_t most, bool special) {
  int kind = special ? (int)rdna__random_below(&random_state, 4) : -1;
  int64_t shape[2] = {rdna__random_range(&random_state, 1, 6), rdna__random_range(&random_state, 1, most)};
  int64_t gaps[2] = {shape[1] + 3, 1}, row[2] = {1, shape[1]}, one[2] = {1, 1};
  if (kind == 0) shape[rdna__random_below(&random_state, 2)] = 0;
  for (int k = 0; k < 4; k++) {
    bool last = k == inputs_of(c->kind);
    const int64_t *sizes = last && kind == 2 ? row : last && kind == 3 ? one : shape;
    if (kind == 0) sizes = shape;
    t->operand[k] = random_operand(dtype, 2, sizes, last && kind == 1 ? gaps : NULL);
  }
  t->want = operand_make(dtype, 2, shape, NULL, 0);
  t->item = (rdna_pointwise){.a = &t->operand[1].tensor, .out = &t->operand[0].tensor};
  if (inputs_of(c->kind) > 1) t->item.b = &t->operand[2].tensor;
  if (inputs_of(c->kind) > 2) t->item.c = &t->operand[3].tensor;
  if (kind < 0 && rdna__random_below(&random_state, 2)) t->item.out = t->item.a; /* in place */
}

static void check_list(const call *c, rdna_dtype dtype, int count, int64_t most, bool special) {
  static tensors list[MOST];
  rdna_pointwise items[MOST] = {0};
  for (int i = 0; i < count; i++) {
    make(&list[i], c, dtype, most, special && rdna__random_below(&random_state, 3) == 0);
    for (int k = 0; k < 4; k++) operand_upload(&list[i].operand[k]);
    operand_upload(&list[i].want);
    items[i] = list[i].item;
    run_one(c, &items[i], &list[i].want.tensor);
  }
  run_each(c, items, count);
  for (int i = 0; i < count; i++) {
    operand *got = &list[i].operand[items[i].out == items[i].a], *want = &list[i].want;
    operand_download(got);
    operand_download(want);
    for (int64_t n = 0; n < rdna_tensor_count(&want->tensor); n++) {
      double g = operand_get(got, n), w = operand_get(want, n);
      bool same = isnan(w) ? isnan(g) : g == w && signbit(g) == signbit(w);
      if (!same)
        fail_msg("kind %d, op %d, %s: tensor %d of %d, value %lld is %.9g, alone %.9g", c->kind, c->op,
                 rdna_dtype_name(dtype), i, count, (long long)n, g, w);
    }
    for (int k = 0; k < 4; k++) operand_free(&list[i].operand[k]);
    operand_free(want);
  }
}

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

static call random_call(int kind) {
  static const int counts[] = {0, RDNA_MAP_COUNT, RDNA_ZIP_COUNT, RDNA_ZIP3_COUNT, RDNA_ZIP_COUNT, RDNA_ZIP_COUNT};
  call c = {.kind = kind,
            .p = rdna_scalar_real(rdna__random_normal(&random_state)),
            .q = rdna_scalar_real(rdna__random_normal(&random_state) + 2),
            .scalar = rdna_scalar_real(rdna__random_normal(&random_state))};
  bool of_integers;
  do {
    c.op = (int)rdna__random_below(&random_state, (uint64_t)counts[kind]);
    of_integers = kind == 1               ? c.op == RDNA_MAP_BITWISE_NOT
                  : kind == 2 || kind > 3 ? (c.op >= RDNA_ZIP_BITWISE_AND && c.op <= RDNA_ZIP_SHIFT_RIGHT) ||
                                                c.op == RDNA_ZIP_GCD || c.op == RDNA_ZIP_LCM
                                          : false;
  } while (of_integers);
  return c;
}

static void lists_have_the_bits_of_single_calls(void **state) {
  for (int n = 0; n < 60; n++) {
    call c = random_call(1 + n % 5);
    int count = (int)rdna__random_range(&random_state, 0, n % 10 ? 12 : MOST);
    check_list(&c, types[rdna__random_below(&random_state, n % 4 ? 3 : 4)], count, n % 7 ? 120 : 1500, n % 2);
  }
}

/* So many tensors share a launch that what is left of one more is alone, and of two more is not. */
static void tensors_share_launches(void **state) {
  static const int shared[] = {0, 64, 62, 46};
  static const char *const alone[] = {"", "map_strided_f32", "mul_f32", "zip3_strided_f32"};
  static const char *const together[] = {"", "map_each_f32", "zip_each_f32", "zip3_each_f32"};
  for (int kind = 1; kind <= 3; kind++) {
    call c = {.kind = kind, .op = kind == 1 ? RDNA_MAP_SQRT : kind == 2 ? RDNA_ZIP_MUL : RDNA_ZIP3_ADDCMUL};
    static tensors list[MOST];
    rdna_pointwise items[MOST] = {0};
    for (int i = 0; i < MOST; i++) {
      make(&list[i], &c, RDNA_F32, 9, false);
      items[i] = list[i].item;
    }
    for (int more = 1; more <= 2; more++) {
      run_each(&c, items, 2 * shared[kind] + more);
      assert_string_equal(rdna_stream_last_kernel(stream), more == 1 ? alone[kind] : together[kind]);
    }
    assert_ok(rdna_stream_synchronize(stream));
    for (int i = 0; i < MOST; i++) {
      for (int k = 0; k < 4; k++) operand_free(&list[i].operand[k]);
      operand_free(&list[i].want);
    }
  }
}

/* Which kernel came last says whether items shared a launch. */
static void check_alone(const rdna_pointwise *items, int count, bool alone) {
  assert_ok(rdna_op_zip_each(stream, RDNA_ZIP_ADD, items, count, none, none));
  assert_int_equal(strcmp(rdna_stream_last_kernel(stream), "zip_each_f32") != 0, alone);
}

/* One after the other, although a list could be one launch: x = x + y twice, then y = x + y, then x + y once more; then
 * z = x + y, which is read or written by another item of its list. */
static void items_see_what_those_before_them_wrote(void **state) {
  const int64_t size = 700;
  operand x = operand_make(RDNA_F32, 1, &size, NULL, 0), y = operand_make(RDNA_F32, 1, &size, NULL, 0);
  operand z = operand_make(RDNA_F32, 1, &size, NULL, 0), w = operand_make(RDNA_F32, 1, &size, NULL, 0);
  for (int64_t i = 0; i < size; i++) operand_set(&x, i, (double)i), operand_set(&y, i, 3);
  operand_upload(&x), operand_upload(&y), operand_upload(&z), operand_upload(&w);
  const rdna_pointwise to_x = {.a = &x.tensor, .b = &y.tensor, .out = &x.tensor},
                       to_y = {.a = &x.tensor, .b = &y.tensor, .out = &y.tensor},
                       to_z = {.a = &x.tensor, .b = &y.tensor, .out = &z.tensor},
                       to_w = {.a = &y.tensor, .b = &y.tensor, .out = &w.tensor},
                       from_z = {.a = &y.tensor, .b = &z.tensor, .out = &w.tensor};
  check_alone((const rdna_pointwise[]){to_x, to_x, to_y, to_x}, 4, true);
  check_alone((const rdna_pointwise[]){to_z, from_z}, 2, true);
  operand_download(&x), operand_download(&y), operand_download(&z), operand_download(&w);
  for (int64_t i = 0; i < size; i++) {
    assert_true(operand_get(&x, i) == (double)(2 * i + 15));
    assert_true(operand_get(&y, i) == (double)(i + 9));
    assert_true(operand_get(&z, i) == (double)(3 * i + 24));
    assert_true(operand_get(&w, i) == (double)(4 * i + 33));
  }
  check_alone((const rdna_pointwise[]){to_z, to_w}, 2, false);
  check_alone((const rdna_pointwise[]){to_z, to_x, to_w}, 3, true);
  rdna_tensor upper = z.tensor, last = x.tensor;
  upper.shape[0] = last.shape[0] = size - 1; /* all but the first value of z; what is read of x is its last one */
  upper.data = (float *)upper.data + 1;
  const rdna_pointwise part = {.a = &last, .b = &last, .out = &upper};
  check_alone((const rdna_pointwise[]){to_z, part}, 2, true);
  check_alone((const rdna_pointwise[]){part, from_z}, 2, true);
  last.shape[0] = 1, last.data = (float *)last.data + size - 1;
  const rdna_pointwise with_one = {.a = &y.tensor, .b = &last, .out = &w.tensor};
  check_alone((const rdna_pointwise[]){to_x, with_one}, 2, true);
  check_alone((const rdna_pointwise[]){to_z, with_one}, 2, false);
  assert_ok(rdna_stream_synchronize(stream));
  operand_free(&x), operand_free(&y), operand_free(&z), operand_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_have_the_bits_of_single_calls),
      cmocka_unit_test(tensors_share_launches),
      cmocka_unit_test(items_see_what_those_before_them_wrote),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
