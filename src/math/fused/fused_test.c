#include "rdna/op/fused.h"

#include "math/common/test/operand.h"

static double at_step(const rdna_fused_step *step, double v, double input) {
  double a = step->input_first ? input : v, b = step->input_first ? v : input, p = (double)step->p, q = (double)step->q;
  if (!step->is_zip) {
    switch (step->op) {
      case RDNA_MAP_RELU:
        return v > 0 ? v : 0;
      case RDNA_MAP_NEG:
        return -v;
      case RDNA_MAP_SQUARE:
        return v * v;
      case RDNA_MAP_AFFINE:
        return v * p + q;
      case RDNA_MAP_CLAMP:
        return fmin(fmax(v, p), q);
      case RDNA_MAP_TANH:
        return tanh(v);
      case RDNA_MAP_SIGMOID:
        return 1 / (1 + exp(-v));
      case RDNA_MAP_SILU:
        return v / (1 + exp(-v));
      case RDNA_MAP_GELU_ERF:
        return v * 0.5 * erfc(-v * sqrt(0.5));
      default:
        return exp(v);
    }
  }
  switch (step->op) {
    case RDNA_ZIP_ADD:
      return a + b;
    case RDNA_ZIP_SUB:
      return a - b;
    case RDNA_ZIP_MUL:
      return a * b;
    case RDNA_ZIP_MAXIMUM:
      return fmax(a, b);
    default:
      return a + p * b; /* RDNA_ZIP_ADD_SCALED */
  }
}

typedef struct shape {
  int rank;
  int64_t size[4];
} shape;

/* How the output and the inputs lie. DENSE; GAPS: gaps between the output's rows, which are no whole vectors; SHIFTED:
 * all begin one value past a multiple of 16 bytes. */
enum { DENSE, GAPS, SHIFTED, PLACEMENTS };

/* Compares a chain with the same in double. Bit d of broadcast[k]: input k has size 1 in dimension d. */
static void check(rdna_dtype dtype, shape s, int step_count, const rdna_fused_step *steps, int input_count,
                  const uint32_t *broadcast, int placement) {
  operand input[RDNA_FUSED_MAX_INPUTS], out;
  const rdna_tensor *tensors[RDNA_FUSED_MAX_INPUTS];
  int64_t out_stride[4], step = 1;
  for (int d = s.rank - 1; d >= 0; d--) out_stride[d] = step, step *= s.size[d] + (placement == GAPS ? 3 : 0);
  out = operand_make(dtype, s.rank, s.size, out_stride, placement == SHIFTED);
  operand_upload(&out);
  for (int k = 0; k < input_count; k++) {
    int64_t size[4];
    for (int d = 0; d < s.rank; d++) size[d] = broadcast[k] >> d & 1 ? 1 : s.size[d];
    input[k] = operand_make(dtype, s.rank, size, NULL, placement == SHIFTED);
    operand_fill(&input[k], 1);
    tensors[k] = &input[k].tensor;
  }
  assert_ok(rdna_op_fused(stream, steps, step_count, tensors, input_count, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    double in[RDNA_FUSED_MAX_INPUTS], largest = 0;
    int64_t rest = i, at[4], place = 0;
    for (int d = s.rank - 1; d >= 0; d--) at[d] = rest % s.size[d], rest /= s.size[d];
    for (int d = 0; d < s.rank; d++) place += at[d] * out_stride[d];
    for (int k = 0; k < input_count; k++) {
      int64_t from = 0;
      for (int d = 0; d < s.rank; d++) from += broadcast[k] >> d & 1 ? 0 : at[d] * tensors[k]->stride[d];
      in[k] = operand_get(&input[k], from);
    }
    double v = in[0];
    for (int n = 0; n < step_count; n++) {
      v = at_step(&steps[n], v, steps[n].is_zip ? in[steps[n].input] : 0);
      largest = fmax(largest, fabs(v));
    }
    /* a few roundings a step, which later steps raise by at most 16 here */
    assert_close(dtype, operand_get(&out, place), v, 0x1p-24 * 16 * 4 * step_count * (1 + largest), "chain", i);
  }
  operand_free(&out);
  for (int k = 0; k < input_count; k++) operand_free(&input[k]);
}

#define MAP(name, p_, q_) {.op = RDNA_MAP_##name, .p = p_, .q = q_}
#define ZIP(name, input_) {.op = RDNA_ZIP_##name, .is_zip = true, .input = input_}
#define TURNED(name, input_) {.op = RDNA_ZIP_##name, .is_zip = true, .input = input_, .input_first = true}

/* bias, activation, residual; a gate; and one of as many steps and inputs as there may be */
static void chains_compute(void **state) {
  static const rdna_fused_step bias[] = {ZIP(ADD, 1), MAP(GELU_ERF, 0, 0), ZIP(ADD, 2)};
  static const rdna_fused_step gate[] = {MAP(SILU, 0, 0), ZIP(MUL, 1)};
  static const rdna_fused_step longest[] = {
      ZIP(ADD, 1),         TURNED(SUB, 2),
      MAP(CLAMP, -2, 1.5), {.op = RDNA_ZIP_ADD_SCALED, .is_zip = true, .input = 3, .p = 0.75f},
      MAP(SIGMOID, 0, 0),  ZIP(MUL, 4),
      ZIP(MAXIMUM, 5),     MAP(AFFINE, 1.25f, -0.5f),
      MAP(TANH, 0, 0),     ZIP(SUB, 1),
      MAP(SILU, 0, 0),     TURNED(SUB, 2),
      MAP(CLAMP, -3, 3),   ZIP(MUL, 3),
      MAP(NEG, 0, 0),      ZIP(ADD, 4)};
  static const rdna_fused_step one[] = {MAP(NEG, 0, 0)};
  static const shape shapes[] = {{2, {5, 16}},    {2, {7, 13}},       {1, {1}},    {1, {4099}},
                                 {3, {3, 24, 8}}, {4, {2, 3, 5, 40}}, {2, {0, 4}}, {2, {33, 256}}};
  for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
      uint32_t rows = (1u << (shapes[i].rank - 1)) - 1, last = 1u << (shapes[i].rank - 1); /* all but one broadcast */
      for (int placement = 0; placement < PLACEMENTS; placement++) {
        check((rdna_dtype)dtype, shapes[i], 3, bias, 3, (uint32_t[]){0, rows, 0}, placement);
        check((rdna_dtype)dtype, shapes[i], 2, gate, 2, (uint32_t[]){0, last}, placement);
        check((rdna_dtype)dtype, shapes[i], 16, longest, 6, (uint32_t[]){last, rows, 0, rows | last, 0, 1}, placement);
        check((rdna_dtype)dtype, shapes[i], 1, one, 1, (uint32_t[]){0}, placement);
      }
    }
  }
}

/* Counts the operations that rdna/op/pointwise.def gives to chains. */
#define CHAIN_NO 0
#define CHAIN_SLOW 1
#define CHAIN_QUICK 1
#define CHAIN_FAST 1
#define IN_CHAINS(NAME, name, types, chain, ...) +CHAIN_##chain

/* Every operation, in both orders if it has two operands, agrees with its operator, for which a device may use faster
 * functions. */
static void steps_agree_with_operators(void **state) {
  const int64_t size[] = {9, 20};
  operand x = operand_make(RDNA_F32, 2, size, NULL, 0), y = operand_make(RDNA_F32, 2, size, NULL, 0);
  operand got = operand_make(RDNA_F32, 2, size, NULL, 0), want = operand_make(RDNA_F32, 2, size, NULL, 0);
  operand_fill(&x, 2);
  operand_fill(&y, 2);
  operand_upload(&got);
  operand_upload(&want);
  const rdna_tensor *inputs[] = {&x.tensor, &y.tensor};
  int compared = 0;
  for (int kind = 0; kind < 3; kind++) {
    for (int op = 0; op < (kind ? (int)RDNA_ZIP_COUNT : (int)RDNA_MAP_COUNT); op++) {
      rdna_fused_step step = {.op = op, .is_zip = kind > 0, .input_first = kind == 2, .input = 1, .p = 0.5f, .q = 1.5f};
      rdna_scalar p = rdna_scalar_real(0.5), q = rdna_scalar_real(1.5);
      const rdna_tensor *a = kind == 2 ? inputs[1] : inputs[0], *b = kind == 2 ? inputs[0] : inputs[1];
      rdna_status status = kind ? rdna_op_zip(stream, (rdna_zip)op, a, b, p, q, &want.tensor)
                                : rdna_op_map(stream, (rdna_map)op, a, p, q, &want.tensor);
      rdna_status fused = rdna_op_fused(stream, &step, 1, inputs, 2, &got.tensor);
      if (fused == RDNA_UNSUPPORTED) continue; /* chains lack it */
      assert_ok(fused);
      assert_ok(status);
      operand_download(&got);
      operand_download(&want);
      for (int64_t i = 0; i < operand_span(&got); i++) {
        double w = operand_get(&want, i);
        assert_close(RDNA_F32, operand_get(&got, i), w, 0x1p-20 * (1 + fabs(w)), kind ? "zip" : "map", op);
      }
      compared++;
    }
  }
  assert_int_equal(compared,
                   RDNA_POINTWISE_MAPS(IN_CHAINS, IN_CHAINS, , ) + 2 * (RDNA_POINTWISE_ZIPS(IN_CHAINS, IN_CHAINS, )));
  operand_free(&x);
  operand_free(&y);
  operand_free(&got);
  operand_free(&want);
}

/* Rows that lie more than 2^31 values apart are computed in parts. On the host only, where the memory between the rows
 * takes no pages until it is touched. */
static void takes_rows_far_apart(void **state) {
  enum { ROWS = 3, COLUMNS = 8 };
  const char *name = getenv("RDNA_TEST_DEVICE");
  const size_t apart = (1u << 30) + 8;
  uint16_t *far = !name || !strcmp(name, "host") ? calloc(2 * apart + COLUMNS, sizeof *far) : NULL;
  if (!far) return;
  const int64_t size[] = {ROWS, COLUMNS};
  rdna_tensor x = rdna_tensor_contiguous(far, RDNA_BF16, 2, size);
  x.stride[0] = (int64_t)apart;
  operand out = operand_make(RDNA_BF16, 2, size, NULL, 0);
  operand_upload(&out);
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < COLUMNS; c++) far[r * apart + c] = f32_to_bf16((float)(10 * r + c));
  static const rdna_fused_step twice[] = {ZIP(ADD, 0)};
  assert_ok(rdna_op_fused(stream, twice, 1, (const rdna_tensor *[]){&x}, 1, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < ROWS * COLUMNS; i++)
    assert_true(operand_get(&out, i) == 2.0 * (double)(10 * (i / COLUMNS) + i % COLUMNS));
  operand_free(&out);
  free(far);
}

static void works_in_place(void **state) {
  const int64_t size[] = {1000};
  static const rdna_fused_step twice[] = {ZIP(ADD, 0), ZIP(MUL, 0)}; /* (x + x) x */
  operand x = operand_make(RDNA_F32, 1, size, NULL, 0);
  for (int64_t i = 0; i < 1000; i++) operand_set(&x, i, (double)(i % 40));
  operand_upload(&x);
  assert_ok(rdna_op_fused(stream, twice, 2, (const rdna_tensor *[]){&x.tensor}, 1, &x.tensor));
  operand_download(&x);
  for (int64_t i = 0; i < 1000; i++) assert_true(operand_get(&x, i) == 2.0 * (double)((i % 40) * (i % 40)));
  operand_free(&x);
}

#define KEEP(number) {.op = RDNA_FUSED_KEEP, .input = number}
#define TAKE(number) {.op = RDNA_FUSED_TAKE, .input = number}

/* A branch into |side|, and what reads it: the same bits as in one call that keeps it. */
static void check_fork(rdna_dtype dtype, shape s, int inputs, const rdna_fused_step *branch, int branch_count,
                       const rdna_fused_step *rest, int rest_count, int placement) {
  operand input[3], side = operand_make(dtype, s.rank, s.size, NULL, placement == SHIFTED);
  operand want = operand_make(dtype, s.rank, s.size, NULL, 0), got = operand_make(dtype, s.rank, s.size, NULL, 0);
  const rdna_tensor *tensors[4];
  rdna_fused_step all[RDNA_FUSED_MAX_STEPS];
  int count = 0;
  for (int k = 0; k < inputs; k++) {
    input[k] = operand_make(dtype, s.rank, s.size, NULL, placement == SHIFTED);
    operand_fill(&input[k], 1);
    tensors[k] = &input[k].tensor;
  }
  tensors[inputs] = &side.tensor;
  operand_upload(&side);
  operand_upload(&want);
  operand_upload(&got);
  assert_ok(rdna_op_fused(stream, branch, branch_count, tensors, inputs, &side.tensor));
  assert_ok(rdna_op_fused(stream, rest, rest_count, tensors, inputs + 1, &want.tensor));
  for (int i = 0; i < branch_count; i++) all[count++] = branch[i];
  all[count++] = (rdna_fused_step)KEEP(inputs);
  all[count++] = (rdna_fused_step)TAKE(0);
  for (int i = 0; i < rest_count; i++) all[count++] = rest[i];
  assert_ok(rdna_op_fused(stream, all, count, tensors, inputs, &got.tensor));
  operand_download(&want);
  operand_download(&got);
  assert_memory_equal(got.host, want.host, got.bytes);
  for (int k = 0; k < inputs; k++) operand_free(&input[k]);
  operand_free(&side);
  operand_free(&want);
  operand_free(&got);
}

static void forks(void **state) {
  static const rdna_fused_step gate[] = {MAP(SIGMOID, 0, 0)};
  static const rdna_fused_step rest[] = {MAP(AFFINE, 1.5f, 0.5f), MAP(RELU, 0, 0), ZIP(MUL, 1), ZIP(SUB, 0)};
  static const rdna_fused_step branch[] = {ZIP(MUL, 1), MAP(SILU, 0, 0), ZIP(ADD, 2)};
  static const rdna_fused_step turned[] = {TURNED(SUB, 3), MAP(TANH, 0, 0), ZIP(MUL, 3), MAP(EXP, 0, 0), ZIP(ADD, 1)};
  static const shape shapes[] = {{1, {1}}, {1, {4099}}, {2, {7, 13}}, {3, {3, 24, 8}}};
  for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++)
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
      for (int placement = 0; placement < PLACEMENTS; placement += SHIFTED) {
        check_fork((rdna_dtype)dtype, shapes[i], 1, gate, 1, rest, 4, placement);
        check_fork((rdna_dtype)dtype, shapes[i], 3, branch, 3, turned, 5, placement);
      }
}

/* Against double, and twice: what is kept goes on, is kept over, and is taken. */
static void keeps(void **state) {
  static const rdna_fused_step steps[] = {
      MAP(AFFINE, 2, 1), KEEP(5), MAP(SQUARE, 0, 0), KEEP(2),    TAKE(5),
      ZIP(SUB, 2),       KEEP(5), TAKE(0),           ZIP(ADD, 5)}; /* x + (y - y^2), y = 2 x + 1 */
  const int64_t size[] = {2051};
  operand x = operand_make(RDNA_F32, 1, size, NULL, 0);
  for (int64_t i = 0; i < size[0]; i++) operand_set(&x, i, (double)(i % 40));
  operand_upload(&x);
  assert_ok(rdna_op_fused(stream, steps, 9, (const rdna_tensor *[]){&x.tensor}, 1, &x.tensor));
  operand_download(&x);
  for (int64_t i = 0; i < size[0]; i++) {
    double v = (double)(i % 40), y = 2 * v + 1;
    assert_true(operand_get(&x, i) == v + y - y * y);
  }
  operand_free(&x);
}

static void refuses(void **state) {
  const int64_t size[] = {4, 8}, other[] = {5};
  operand x = operand_make(RDNA_F32, 2, size, NULL, 0), out = operand_make(RDNA_F32, 2, size, NULL, 0);
  operand odd = operand_make(RDNA_F32, 1, other, NULL, 0), half = operand_make(RDNA_F16, 2, size, NULL, 0);
  operand_fill(&x, 1);
  operand_upload(&out);
  const rdna_tensor *inputs[] = {&x.tensor, &odd.tensor, &half.tensor, NULL};
  rdna_fused_step step = ZIP(ADD, 0);
#define CALL(steps, inputs, count) rdna_op_fused(stream, &step, steps, inputs, count, &out.tensor)
  assert_refused(CALL(0, inputs, 1), RDNA_INVALID_ARGUMENT, "0 steps", "1 to 16");
  assert_refused(CALL(17, inputs, 1), RDNA_INVALID_ARGUMENT, "17 steps", "1 to 16");
  assert_refused(CALL(1, inputs, 0), RDNA_INVALID_ARGUMENT, "0 inputs", "1 to 6");
  assert_refused(CALL(1, inputs, 2), RDNA_INVALID_ARGUMENT, "inputs[1] is f32 (5)", "f32 (4, 8)");
  assert_refused(CALL(1, inputs + 2, 1), RDNA_INVALID_ARGUMENT, "inputs[0] is f16", "f32");
  assert_refused(CALL(1, inputs + 3, 1), RDNA_INVALID_ARGUMENT, "inputs[0]", "NULL");
  step.input = 1;
  assert_refused(CALL(1, inputs, 1), RDNA_INVALID_ARGUMENT, "step 0 takes input 1", "0 to 0");
  step = (rdna_fused_step)KEEP(0);
  assert_refused(CALL(1, inputs, 1), RDNA_INVALID_ARGUMENT, "step 0 keeps its value as number 0", "1 to 5 are free");
  step = (rdna_fused_step)KEEP(6);
  assert_refused(CALL(1, inputs, 1), RDNA_INVALID_ARGUMENT, "as number 6");
  step = (rdna_fused_step)TAKE(1);
  assert_refused(CALL(1, inputs, 1), RDNA_INVALID_ARGUMENT, "takes number 1", "neither an input nor kept");
  step = (rdna_fused_step)TAKE(-1);
  assert_refused(CALL(1, inputs, 1), RDNA_INVALID_ARGUMENT, "takes number -1");
  step = (rdna_fused_step){.op = -3};
  assert_refused(CALL(1, inputs, 1), RDNA_INVALID_ARGUMENT, "number -3 of rdna_map");
  step = (rdna_fused_step){.op = 99};
  assert_refused(CALL(1, inputs, 1), RDNA_INVALID_ARGUMENT, "step 0 is number 99", "rdna_map");
  step.op = RDNA_MAP_BITWISE_NOT;
  assert_refused(CALL(1, inputs, 1), RDNA_UNSUPPORTED, "bitwise_not", "chains");
  step.op = RDNA_MAP_NEG;
  rdna_tensor shifted = out.tensor;
  shifted.data = (char *)x.tensor.data + 4;
  assert_refused(rdna_op_fused(stream, &step, 1, inputs, 1, &shifted), RDNA_INVALID_ARGUMENT, "out", "overlap");
  assert_refused(rdna_op_fused(NULL, &step, 1, inputs, 1, &out.tensor), RDNA_INVALID_ARGUMENT, "fused", "stream");
  rdna_tensor integers = out.tensor;
  integers.dtype = RDNA_I32;
  assert_refused(rdna_op_fused(stream, &step, 1, inputs, 1, &integers), RDNA_UNSUPPORTED, "out is i32", "f32");
#undef CALL
  operand_download(&out);
  for (int64_t i = 0; i < 32; i++) assert_true(operand_is_poison(&out, i));
  operand_free(&x);
  operand_free(&out);
  operand_free(&odd);
  operand_free(&half);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains_compute),
      cmocka_unit_test(steps_agree_with_operators),
      cmocka_unit_test(takes_rows_far_apart),
      cmocka_unit_test(works_in_place),
      cmocka_unit_test(forks),
      cmocka_unit_test(keeps),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
