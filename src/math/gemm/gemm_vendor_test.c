/* Products by vendors' libraries, against sums in double. The libraries are stand-ins that compute on the memory of a
 * stand-in libcuda or of an emulated card, and refuse every argument that the vendors' references do not allow. */
#include "math/gemm/gemm_vendor.h"
#include "base/config.h"
#include "device/driver/testing_flavours.h"
#include "kernel/tuner.h"
#include "kernel/tuner_store.h"
#include "math/common/test/operand.h"
#include "math/vendor/testing_vendor.h"
#include "rdna/op/gemm.h"

static rdna__vendor vendor;

typedef struct problem {
  rdna_dtype types[3];
  int m, n, k, batch;
  bool a_turned, b_turned, one_b, with_bias;
  int gap, offset, between; /* values after rows, before everything, and after each matrix of a batch */
  unsigned in;              /* A 1, B 2, C 4 and the bias 8 where these three are; 0: everywhere */
  float alpha, beta;
  rdna_activation activation;
  bool with_residual, rows;
  int way;
} problem;

static operand make(const problem *p, unsigned bit, rdna_dtype dtype, int runs, int length, bool shared) {
  bool in = p->in == 0 || p->in & bit;
  int64_t shape[3] = {bit == 8 ? 1 : p->batch, runs, length}, row = length + (in && bit != 8 ? p->gap : 0);
  int64_t stride[3] = {shared ? 0 : runs * row + (in ? p->between : 0), row, 1};
  operand o = operand_make(dtype, 3, shape, stride, in ? p->offset : 0);
  operand_fill(&o, 1);
  return o;
}

/* Runs it and compares, or finds that it does not apply and that running it says so. Returns whether it applied. */
static bool check(problem p) {
  operand a = make(&p, 1, p.types[0], p.a_turned ? p.k : p.m, p.a_turned ? p.m : p.k, false);
  operand b = make(&p, 2, p.types[1], p.b_turned ? p.n : p.k, p.b_turned ? p.k : p.n, p.one_b);
  operand c = make(&p, 4, p.types[2], p.m, p.n, false);
  operand bias = make(&p, 8, p.types[2], 1, p.n > p.m ? p.n : p.m, false);
  problem beside = p;
  beside.gap = 2, beside.in = 0;
  operand residual = make(&beside, 16, p.types[2], p.m, p.n, false);
  struct gemm_args args = {.a = a.tensor.data,
                           .b = b.tensor.data,
                           .bias = p.with_bias ? bias.tensor.data : NULL,
                           .c = c.tensor.data,
                           .lda = a.tensor.stride[1],
                           .ldb = b.tensor.stride[1],
                           .ldc = c.tensor.stride[1],
                           .stride_a = a.tensor.stride[0],
                           .stride_b = b.tensor.stride[0],
                           .stride_c = c.tensor.stride[0],
                           .m = p.m,
                           .n = p.n,
                           .k = p.k,
                           .batch = p.batch,
                           .flags = (p.a_turned ? GEMM_A_TRANSPOSED : 0) | (p.b_turned ? GEMM_B_TRANSPOSED : 0) |
                                    (p.rows ? GEMM_BIAS_OF_ROWS : 0),
                           .alpha = p.alpha,
                           .beta = p.beta,
                           .activation = p.activation,
                           .residual = p.with_residual ? residual.tensor.data : NULL,
                           .ld_residual = residual.tensor.stride[1],
                           .stride_residual = residual.tensor.stride[0]};
  rdna__gemm_problem call = {
      {p.types[0], p.types[1], p.types[2]}, args, rdna_device_get_info(device), NULL, NULL, NULL, {0}};
  int64_t values = operand_span(&c);
  double *old = malloc((size_t)values * sizeof *old);
  for (int64_t i = 0; i < values; i++) old[i] = operand_get(&c, i);
  bool applies = rdna__gemm_vendor_applies(device, vendor, p.way, &call);
  int runs = record->runs;
  rdna_status status = rdna__gemm_vendor_run(stream, vendor, p.way, &call);
  if (!applies) {
    assert_int_equal(status, RDNA_UNSUPPORTED);
    assert_int_equal(record->runs, runs);
  } else {
    assert_ok(status);
    assert_int_equal(record->runs, runs + 1);
    assert_string_equal(rdna_stream_last_kernel(stream), rdna__gemm_vendor_name(vendor, p.way));
  }
  operand_download(&c);
  for (int z = 0; z < p.batch; z++) {
    for (int i = 0; i < p.m; i++) {
      for (int j = 0; j < p.n; j++) {
        double sum = 0, magnitude = 0;
        for (int q = 0; q < p.k; q++) {
          int64_t at = p.a_turned ? q * a.tensor.stride[1] + i : i * a.tensor.stride[1] + q;
          int64_t bt = p.b_turned ? j * b.tensor.stride[1] + q : q * b.tensor.stride[1] + j;
          double v = operand_get(&a, z * a.tensor.stride[0] + at) * operand_get(&b, z * b.tensor.stride[0] + bt);
          sum += v, magnitude += fabs(v);
        }
        int64_t at = z * c.tensor.stride[0] + i * c.tensor.stride[1] + j;
        double want = (double)p.alpha * sum + (p.beta == 0 ? 0 : (double)p.beta * old[at]);
        if (p.with_bias) want += operand_get(&bias, j);
        if (p.with_residual)
          want += operand_get(&residual, z * residual.tensor.stride[0] + i * residual.tensor.stride[1] + j);
        if (applies)
          assert_close(p.types[2], operand_get(&c, at), want,
                       0x1p-24 * (p.k + 8) * (fabs((double)p.alpha) * magnitude + fabs(old[at]) + 4), "gemm", at);
        else
          assert_true(operand_get(&c, at) == old[at]);
      }
    }
  }
  free(old);
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
  operand_free(&bias);
  operand_free(&residual);
  return applies;
}

static const rdna_dtype types[][3] = {{RDNA_F32, RDNA_F32, RDNA_F32},
                                      {RDNA_F16, RDNA_F16, RDNA_F16},
                                      {RDNA_F16, RDNA_F16, RDNA_F32},
                                      {RDNA_BF16, RDNA_BF16, RDNA_BF16},
                                      {RDNA_BF16, RDNA_BF16, RDNA_F32}};

static void every_type_and_layout(void **state) {
  bool lt = vendor != RDNA__ROCBLAS;
  for (int t = 0; t < 5; t++) {
    for (int number = 0; number < 24; number++) {
      problem p = {.m = 1 + number * 5 % 17, .n = 1 + number * 7 % 19, .k = 1 + number % 12, .batch = 1 + number % 3};
      memcpy(p.types, types[t], sizeof p.types);
      p.a_turned = number & 1, p.b_turned = number & 2, p.one_b = number % 5 == 1;
      p.alpha = number % 4 == 1 ? -1.5f : 1, p.beta = number % 3 == 2 ? 0.5f : 0;
      p.gap = number % 4 == 3 ? 3 : 0, p.offset = number % 7 == 5;
      p.with_bias = lt && number % 2;
      p.with_residual = p.beta == 0 && number % 4 == 0;
      p.way = lt ? number % 2 : 0;
      /* these sizes are none that cuBLASLt adds a bias to before it rounds to 16 bits */
      bool twice = p.with_bias && (p.types[2] == RDNA_F16 || p.types[2] == RDNA_BF16);
      assert_int_equal(check(p), !twice);
    }
  }
}

/* A bias beside a sum of 16 bits: everything is to lie at multiples of 16 bytes, and nothing else is added. */
static void biases_in_16_bits(void **state) {
  if (vendor == RDNA__ROCBLAS) return;
  for (int t = 1; t < 4; t += 2) {
    problem p = {.m = 11, .n = 24, .k = 8, .batch = 2, .with_bias = true, .alpha = 1};
    memcpy(p.types, types[t], sizeof p.types);
    for (int layout = 0; layout < 4; layout++) {
      p.a_turned = layout & 1, p.b_turned = layout & 2, p.m = p.a_turned ? 16 : 11;
      assert_true(check(p));
      problem apart = p, old = p, residual = p;
      apart.gap = apart.between = 8;
      assert_true(check(apart));
      for (unsigned in = 1; in < 16; in *= 2) {
        problem rows = p, later = p, matrices = p;
        rows.gap = 4, later.offset = 1, matrices.between = 4, rows.in = later.in = matrices.in = in;
        assert_false(check(later));
        assert_int_equal(check(rows), in == 8);
        assert_int_equal(check(matrices), in == 8);
        matrices.batch = 1; /* there is nothing between */
        assert_true(check(matrices));
      }
      problem odd = p; /* of C the rows are at multiples of 16 bytes all the same, and of B */
      odd.n = 20, odd.gap = 4, odd.in = p.b_turned ? 4 : 6;
      assert_false(check(odd));
      old.beta = 1, residual.with_residual = true;
      assert_false(check(old));
      assert_false(check(residual));
    }
  }
}

static void what_it_cannot_do(void **state) {
  problem p = {.types = {RDNA_F32, RDNA_F32, RDNA_F32}, .m = 5, .n = 6, .k = 7, .batch = 1, .alpha = 1};
  assert_true(check(p));
  problem mixed = p;
  mixed.types[1] = RDNA_F16;
  assert_false(check(mixed));
  problem activated = p, both = p, of_rows = p;
  for (int i = 1; i < RDNA_ACTIVATION_COUNT; i++) {
    activated.activation = (rdna_activation)i;
    assert_false(check(activated));
  }
  both.with_residual = true, both.beta = 1;
  assert_false(check(both));
  of_rows.rows = of_rows.with_bias = true;
  assert_false(check(of_rows));
  if (vendor == RDNA__ROCBLAS) {
    problem with_bias = p;
    with_bias.with_bias = true;
    assert_false(check(with_bias));
    return;
  }
  problem no_algorithm = p;
  no_algorithm.k = 13;
  assert_false(check(no_algorithm));
  problem third = p; /* there are two */
  third.way = 2;
  assert_false(check(third));
}

/* int8 into i32, exactly, and scaled by whole numbers alone. */
static void integers(void **state) {
  enum { M = 6, N = 9, K = 70 };
  int8_t a[M * K], b[N * K];
  int32_t c[M * N], got[M * N];
  for (int i = 0; i < M * K; i++) a[i] = (int8_t)(i * 37);
  for (int i = 0; i < N * K; i++) b[i] = (int8_t)(i * 91);
  for (int i = 0; i < M * N; i++) c[i] = i * 1000;
  void *memory[3];
  const void *from[] = {a, b, c};
  size_t bytes[] = {sizeof a, sizeof b, sizeof c};
  for (int i = 0; i < 3; i++) {
    assert_ok(rdna_memory_alloc(device, bytes[i], stream, &memory[i]));
    assert_ok(rdna_copy_to_device(stream, memory[i], from[i], bytes[i]));
  }
  struct gemm_args args = {.a = memory[0],
                           .b = memory[1],
                           .c = memory[2],
                           .lda = K,
                           .ldb = K,
                           .ldc = N,
                           .m = M,
                           .n = N,
                           .k = K,
                           .batch = 1,
                           .flags = GEMM_B_TRANSPOSED,
                           .alpha = 2,
                           .beta = -3};
  rdna__gemm_problem call = {{RDNA_I8, RDNA_I8, RDNA_I32}, args, rdna_device_get_info(device), NULL, NULL, NULL, {0}};
  assert_ok(rdna__gemm_vendor_run(stream, vendor, 0, &call));
  assert_ok(rdna_copy_to_host(stream, got, memory[2], sizeof got));
  assert_ok(rdna_stream_synchronize(stream));
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < N; j++) {
      int32_t sum = 0;
      for (int q = 0; q < K; q++) sum += a[i * K + q] * b[j * K + q];
      assert_int_equal(got[i * N + j], 2 * sum - 3 * c[i * N + j]);
    }
  }
  int64_t shape_a[] = {M, K}, shape_c[] = {M, N};
  rdna_tensor ta = rdna_tensor_contiguous(memory[0], RDNA_I8, 2, shape_a);
  rdna_tensor tb = {.data = memory[1], .dtype = RDNA_I8, .rank = 2, .shape = {K, N}, .stride = {1, K}};
  rdna_tensor tc = rdna_tensor_contiguous(memory[2], RDNA_I32, 2, shape_c);
  rdna_choice choice;
  if (vendor != RDNA__CUBLASLT) { /* its card runs none of our kernels, and rows of 70 are copied by one */
    assert_ok(rdna_op_gemm_i8(stream, NULL, &ta, NULL, &tb, NULL, &tc));
    assert_ok(rdna_choice_last("gemm_i8", &choice));
    assert_string_equal(choice.implementation, "own");
    assert_string_equal(choice.why, "rule"); /* the other is measured on a card alone */
  }
  call.args.k = 131072;
  assert_false(rdna__gemm_vendor_applies(device, vendor, 0, &call));
  call.args.k = K;
  call.args.alpha = 0.5f;
  assert_false(rdna__gemm_vendor_applies(device, vendor, 0, &call));
  for (int i = 0; i < 3; i++) assert_ok(rdna_memory_free(device, memory[i]));
}

/* The second call of a shape asks nothing and allocates nothing from the driver, whatever its bias is. */
static void a_shape_is_asked_about_once(void **state) {
  if (vendor == RDNA__ROCBLAS) return;
  problem p = {.types = {RDNA_F16, RDNA_F16, RDNA_F16}, .m = 31, .n = 40, .k = 24, .batch = 1, .alpha = 1};
  p.with_bias = true;
  assert_true(check(p));
  int questions = record->questions, objects = record->objects;
  rdna_memory_stats before, after;
  rdna_memory_get_stats(device, &before);
  for (int i = 0; i < 5; i++) assert_true(check(p));
  rdna_memory_get_stats(device, &after);
  assert_int_equal(record->questions, questions);
  assert_int_equal(record->objects, objects);
  assert_int_equal(after.driver_allocs, before.driver_allocs);
}

static void on_two_streams(void **state) {
  rdna_stream *first = stream, *second;
  assert_ok(rdna_stream_create(device, 0, &second));
  problem p = {.types = {RDNA_F32, RDNA_F32, RDNA_F32}, .m = 20, .n = 30, .k = 11, .batch = 1, .alpha = 1};
  for (int i = 0; i < 4; i++) {
    stream = i % 2 ? second : first;
    assert_true(check(p));
  }
  stream = first;
  rdna_stream_release(second);
}

static void is_described(void **state) {
  rdna_vendor_info info;
  for (int i = 0; i < rdna_vendor_count(); i++) {
    if (i == RDNA__NCCL || i == RDNA__RCCL) continue; /* found beside these, whatever RDNA_VENDOR says */
    assert_ok(rdna_vendor_get_info(device, i, &info));
    assert_int_equal(info.status == RDNA_OK, i == (int)vendor);
    assert_true(strlen(info.message) > 20);
    if (i != (int)vendor) continue;
    assert_non_null(strstr(info.library, RDNA_FAKES));
    assert_non_null(strstr(info.message, info.version));
  }
  assert_refused(rdna_vendor_get_info(device, 99, &info), RDNA_INVALID_ARGUMENT, "99", "number");
}

static int open_library(void **state) { return open_vendor(state, vendor); }

static int run_suite(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_and_layout),
      cmocka_unit_test(biases_in_16_bits),
      cmocka_unit_test(what_it_cannot_do),
      cmocka_unit_test(integers),
      cmocka_unit_test(a_shape_is_asked_about_once),
      cmocka_unit_test(on_two_streams),
      cmocka_unit_test(is_described),
  };
  return cmocka_run_group_tests(tests, open_library, close_vendor);
}

static void use_cuda(const char *folder) {
  setenv("RDNA_CUDA_LIBRARY", RDNA_FAKE_CUDA, 1);
  setenv("RDNA_TEST_DEVICE", "cuda:1", 1);
  setenv("RDNA_VENDOR_PATH", folder, 1);
}
static void use_emulator(const char *target, const char *folder) {
  setenv("RDNA_HIP_LIBRARY", RDNA_EMULATOR, 1);
  setenv("RDNA_EMULATE", target, 1);
  setenv("RDNA_TEST_DEVICE", "hip", 1);
  setenv("RDNA_VENDOR_PATH", folder, 1);
}

static int cublaslt(void) {
  use_cuda(RDNA_FAKES "/cuda_math");
  vendor = RDNA__CUBLASLT;
  return run_suite();
}
static int hipblaslt(void) {
  use_emulator("gfx1100", RDNA_FAKES "/hip_math");
  setenv("RDNA_VENDOR", "hipblaslt", 1);
  vendor = RDNA__HIPBLASLT;
  return run_suite();
}
static int rocblas(void) {
  use_emulator("gfx1100", RDNA_FAKES "/hip_math");
  setenv("RDNA_VENDOR", "rocblas", 1);
  vendor = RDNA__ROCBLAS;
  return run_suite();
}

/* Why each stays out; |text| is in its sentence. */
static void stays_out(rdna__vendor which, rdna_status status, const char *text) {
  rdna_vendor_info info;
  assert_ok(rdna_vendor_get_info(device, (int)which, &info));
  assert_string_equal(rdna_status_name(info.status), rdna_status_name(status));
  if (!strstr(info.message, text)) fail_msg("no '%s' in: %s", text, info.message);
  assert_null(rdna__vendor_handle(device, which));
  assert_int_equal(rdna__gemm_vendor_ways(device, which), 0);
}

static void no_kernels_for_this_card(void **state) {
  stays_out(RDNA__ROCBLAS, RDNA_UNSUPPORTED, "no kernels for gfx1030");
  stays_out(RDNA__HIPBLASLT, RDNA_UNSUPPORTED, "no kernels for gfx1030");
  stays_out(RDNA__CUBLASLT, RDNA_UNSUPPORTED, "cuda driver");
}
static int another_card(void) {
  use_emulator("gfx1030", RDNA_FAKES "/hip_math");
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_kernels_for_this_card)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

static void old_library(void **state) { stays_out(RDNA__HIPBLASLT, RDNA_UNSUPPORTED, "0.6.0 is older than 0.10"); }
static int old_hipblaslt(void) {
  use_emulator("gfx1100", RDNA_FAKES "/hip_math");
  setenv("FAKE_LT_OLD", "1", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(old_library)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

static void left_out(void **state) { stays_out(RDNA__CUBLASLT, RDNA_UNAVAILABLE, "RDNA_VENDOR is 'off'"); }
static int turned_off(void) {
  use_cuda(RDNA_FAKES "/cuda_math");
  setenv("RDNA_VENDOR", "off", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(left_out)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

static void unknown_name(void **state) { stays_out(RDNA__CUBLASLT, RDNA_INVALID_ARGUMENT, "'cublastl' is no library"); }
static int misspelt(void) {
  use_cuda(RDNA_FAKES "/cuda_math");
  setenv("RDNA_VENDOR", "rocblas,cublastl", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(unknown_name)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

/* The real libraries need a real runtime: on an emulated card only what RDNA_VENDOR_PATH names is loaded. */
static void not_on_the_emulator(void **state) {
  stays_out(RDNA__ROCBLAS, RDNA_UNAVAILABLE, "emulated");
  stays_out(RDNA__MIOPEN, RDNA_UNAVAILABLE, "emulated");
}
static int emulated_alone(void) {
  use_emulator("gfx1100", "");
  const struct CMUnitTest tests[] = {cmocka_unit_test(not_on_the_emulator)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

/* ---- which one the operator takes -------------------------------------------------------------------------- */

typedef struct seen {
  char shape[RDNA__TUNER_SHAPE];
  int count;
} seen;
static void see(void *context, const char *operator_name, const char *shape_text, const rdna__tuner_result *result) {
  seen *s = context;
  snprintf(s->shape, sizeof s->shape, "%s", shape_text);
  s->count++;
}

/* a (m, 24) b (24, 40), all ones; the implementation is |want| by |why|. */
static void multiply(int64_t m, const char *want, const char *why, bool check_values) {
  operand a = operand_make(RDNA_F16, 2, (int64_t[]){m, 24}, NULL, 0);
  operand b = operand_make(RDNA_F16, 2, (int64_t[]){24, 40}, NULL, 0);
  operand c = operand_make(RDNA_F32, 2, (int64_t[]){m, 40}, NULL, 0);
  for (int64_t i = 0; i < m * 24; i++) operand_set(&a, i, 1);
  for (int64_t i = 0; i < 24 * 40; i++) operand_set(&b, i, 1);
  operand_upload(&a);
  operand_upload(&b);
  operand_upload(&c);
  rdna_choice choice;
  assert_ok(rdna_op_gemm(stream, 1, &a.tensor, &b.tensor, 0, NULL, &c.tensor));
  assert_ok(rdna_choice_last("gemm", &choice));
  assert_string_equal(choice.implementation, want);
  assert_string_equal(choice.why, why);
  bool by_library = strcmp(want, "cublaslt") == 0 || strcmp(want, "hipblaslt") == 0;
  assert_int_equal(strncmp(rdna_stream_last_kernel(stream), "gem", 3) != 0, by_library);
  operand_download(&c);
  for (int64_t i = 0; i < m * 40 && check_values; i++) assert_true(operand_get(&c, i) == 24);
  operand_free(&a);
  operand_free(&b);
  operand_free(&c);
}

static void the_library_comes_first_on_nvidia(void **state) {
  multiply(20, "cublaslt", "rule", true);
  rdna_deterministic_set(true);
  assert_true(rdna_deterministic_get());
  multiply(20, "tile 64 x 64", "deterministic", false); /* the stand-in runs no kernels */
  rdna_deterministic_set(false);
  multiply(20, "cublaslt", "rule", true);
}
static int choice_on_cuda(void) {
  use_cuda(RDNA_FAKES "/cuda_math");
  setenv("RDNA_TUNE", "off", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_library_comes_first_on_nvidia)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}

/* On AMD ours are first; what the database says wins; an emulated card is never measured. */
static void the_database_is_heard(void **state) {
  seen s = {"", 0};
  char text[RDNA__TUNER_TEXT], *rest = text, *fields[3], code[RDNA__TUNER_CODE], other[RDNA__TUNER_CODE];
  multiply(20, "tile 64 x 64", "rule", true);
  rdna__tuner_visit(device, see, &s);
  assert_int_equal(s.count, 1);
  rdna__tuner_device_text(device, text);
  for (int i = 0; i < 3; i++) fields[i] = strsep(&rest, ",");
  assert_non_null(strstr(fields[0], "emulated"));
  assert_string_equal(fields[1], "gfx1100");
  char libraries[64];
  rdna__vendor_text(device, RDNA__HIPBLASLT, libraries);
  rdna__tuner_code_text(device, "gemm_f16 gemm", code);
  rdna__tuner_code_text(device, "gemm_bf16 gemm", other);
  assert_int_equal(strlen(code), 16);
  assert_string_not_equal(code, other);
  rdna__tuner_row row = {fields[0], fields[1],   fields[2],      code, "gemm", s.shape,
                         libraries, "hipblaslt", "tile 64 x 64", 1,    2};
  rdna__tuner_store *store;
  assert_ok(rdna__tuner_store_open(getenv("RDNA_TUNE_FILE"), &store));
  assert_ok(rdna__tuner_store_write(store, &row));
  rdna__tuner_store_close(store);
  close_device(state);
  open_device(state);
  multiply(20, "hipblaslt", "stored", true);
  multiply(18, "hipblaslt", "stored", true); /* of the same class */
  multiply(40, "tile 64 x 64", "rule", true);
  rdna_deterministic_set(true);
  multiply(20, "tile 64 x 64", "deterministic", true);
}
static int choice_on_amd(void) {
  char path[] = "/tmp/rdna-choice-XXXXXX";
  if (!mkdtemp(path)) return 1;
  char file[64];
  snprintf(file, sizeof file, "%s/tune.sqlite", path);
  use_emulator("gfx1100", RDNA_FAKES "/hip_math");
  setenv("RDNA_TUNE_FILE", file, 1);
  setenv("RDNA_VENDOR", "hipblaslt", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_database_is_heard)};
  int failed = cmocka_run_group_tests(tests, open_device, close_device);
  unlink(file);
  rmdir(path);
  return failed;
}

int main(void) {
  const flavour flavours[] = {
      {"cublaslt", cublaslt},
      {"hipblaslt", hipblaslt},
      {"rocblas", rocblas},
      {"another card", another_card},
      {"old", old_hipblaslt},
      {"turned off", turned_off},
      {"misspelt", misspelt},
      {"choice on NVIDIA", choice_on_cuda},
      {"choice on AMD", choice_on_amd},
      {"emulated", emulated_alone},
  };
  return run_flavours(flavours, sizeof flavours / sizeof *flavours, 120);
}
