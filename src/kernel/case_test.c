/* The case engine must find every kind of wrong kernel. The manifest here holds one right kernel and one for each
 * mistake: "baseline" twins are right, "avx2" twins make the mistake, and so does the host device, which runs the
 * best twin. */
#include <math.h>

#include "base/testing.h"
#include "kernel/manifest.h"

struct scale_args {
  const float *in;
  float *out;
  int64_t count;
};

static void right(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  for (int64_t i = 0; i < a->count; i++) a->out[i] = 2 * a->in[i];
}
static void inexact(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  for (int64_t i = 0; i < a->count; i++) a->out[i] = 2 * a->in[i] * (1 + 0x1p-20f);
}
static void past_end(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  right(args, grid);
  a->out[a->count] = 0;
}
static void before_start(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  right(args, grid);
  ((uint8_t *)a->out)[-1] ^= 1;
}
static void reads_past_end(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  right(args, grid);
  a->out[0] += 0 * a->in[a->count];
}
static void forgets_last(const void *args, rdna_grid grid) {
  struct scale_args a = *(const struct scale_args *)args;
  a.count--;
  right(&a, grid);
}
static void changes_input(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  right(args, grid);
  ((float *)(uintptr_t)a->in)[a->count / 2] += 1;
}
static void loses_nan(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  for (int64_t i = 0; i < a->count; i++) a->out[i] = isnan(a->in[i]) ? 0 : 2 * a->in[i];
}
static void other_nan(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  for (int64_t i = 0; i < a->count; i++) a->out[i] = isnan(a->in[i]) ? -a->in[i] : 2 * a->in[i];
}

/* The right kernel for integers. */
static void right_i32(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  const int32_t *in = (const int32_t *)(const void *)a->in;
  for (int64_t i = 0; i < a->count; i++) ((int32_t *)(void *)a->out)[i] = (int32_t)(2 * (uint32_t)in[i]);
}
static void forgets_last_i32(const void *args, rdna_grid grid) {
  struct scale_args a = *(const struct scale_args *)args;
  a.count--;
  right_i32(&a, grid);
}
static void reads_past_end_i32(const void *args, rdna_grid grid) {
  const struct scale_args *a = args;
  right_i32(args, grid);
  *(int32_t *)(void *)a->out ^= ((const int32_t *)(const void *)a->in)[a->count];
}

static const struct {
  const char *name;
  rdna__host_kernel twin;
  const char *message; /* NULL: passes */
  rdna__host_kernel plainest;
} kernels[] = {
    {"right", right, NULL, right},
    {"inexact", inexact, "times the bound", right},
    {"past_end", past_end, "wrote outside, at byte 68 of 68", right},
    {"before_start", before_start, "wrote outside, at byte -1 of 68", right},
    {"reads_past_end", reads_past_end, "buffer 1: [0] got", right},
    {"forgets_last", forgets_last, "[16] was not written by the device", right},
    {"changes_input", changes_input, "changed an input", right},
    {"loses_nan", loses_nan, "[3] got 0 want nan", right},
    {"other_nan", other_nan, NULL, right},
    {"both_forget_last", forgets_last, "[16] was written neither by the device nor by the twin", forgets_last},
    {"right_i32", right_i32, NULL, right_i32},
    {"forgets_last_i32", forgets_last_i32, "buffer 1: [16] got", right_i32},
    {"both_forget_last_i32", forgets_last_i32, "[16] was written neither by the device nor by the twin",
     forgets_last_i32},
    {"both_read_past_end_i32", reads_past_end_i32, "buffer 1: [0] got", reads_past_end_i32}};
enum { KERNELS = sizeof kernels / sizeof kernels[0], COUNT = 17 };

static rdna_status make_case(const rdna__kernel_info *kernel, rdna__random *random, int n, rdna__kernel_case *c) {
  struct scale_args args = {.count = COUNT};
  memcpy(c->args, &args, sizeof args);
  c->grid = (rdna_grid){1, 1, 1};
  rdna_dtype dtype = strstr(kernel->name, "i32") ? RDNA_I32 : RDNA_F32;
  float *in = rdna__case_add(c, RDNA__IN, dtype, COUNT, offsetof(struct scale_args, in));
  for (int i = 0; i < COUNT; i++) in[i] = (float)rdna__random_normal(random); /* any bits, as integers */
  if (dtype == RDNA_F32) {
    static const uint32_t poisons[] = {0xffa5a5a5u, 0xffdadadau}; /* NaN, which a kernel may write as well */
    in[3] = NAN;
    memcpy(in + 4, poisons, sizeof poisons);
  }
  assert_non_null(rdna__case_add(c, RDNA__OUT, dtype, COUNT, offsetof(struct scale_args, out)));
  return RDNA_OK;
}

#define INFO(kernel) {kernel, "test", sizeof(struct scale_args), 64, make_case, {0, 0}}
const rdna__kernel_info rdna__manifest[] = {INFO("right"),
                                            INFO("inexact"),
                                            INFO("past_end"),
                                            INFO("before_start"),
                                            INFO("reads_past_end"),
                                            INFO("forgets_last"),
                                            INFO("changes_input"),
                                            INFO("loses_nan"),
                                            INFO("other_nan"),
                                            INFO("both_forget_last"),
                                            INFO("right_i32"),
                                            INFO("forgets_last_i32"),
                                            INFO("both_forget_last_i32"),
                                            INFO("both_read_past_end_i32")};
const int rdna__manifest_count = KERNELS;
rdna__host_kernel rdna__host_twin(int index) { return kernels[index].twin; }
const char *rdna__host_isa(void) { return "avx2"; }
rdna__host_kernel rdna__host_twin_for(const char *isa, int index) {
  if (!strcmp(isa, "baseline")) return kernels[index].plainest;
  return strcmp(isa, "avx2") ? NULL : kernels[index].twin;
}

static rdna__kernel_case *new_case(int index) {
  rdna__kernel_case *c = calloc(1, sizeof *c);
  rdna__random random;
  rdna__random_seed(&random, 7);
  assert_ok(make_case(&rdna__manifest[index], &random, 0, c));
  return c;
}

static void drop_case(rdna__kernel_case *c) {
  rdna__case_free(c);
  free(c);
}

static void expect(int index, const rdna__case_result *result) {
  const char *message = kernels[index].message;
  if (message ? result->passed || !strstr(result->message, message) : !result->passed)
    fail_msg("%s: passed %d, message '%s', wanted '%s'", kernels[index].name, result->passed, result->message,
             message ? message : "a pass");
}

static void test_mistakes_of_twins(void **state) {
  for (int i = 0; i < KERNELS; i++) {
    assert_int_equal(rdna__manifest_find(kernels[i].name), i);
    rdna__kernel_case *c = new_case(i);
    rdna__case_result result;
    assert_ok(rdna__case_run_isa("avx2", &rdna__manifest[i], c, &result));
    expect(i, &result);
    drop_case(c);
  }
  assert_int_equal(rdna__manifest_find("wrong"), -1);
}

static void test_mistakes_on_a_device(void **state) {
  rdna_device *device;
  assert_ok(rdna_device_open("host", &device));
  for (int i = 0; i < KERNELS; i++) {
    rdna__kernel_case *c = new_case(i);
    rdna__case_result result;
    assert_ok(rdna__case_run(device, &rdna__manifest[i], c, &result));
    expect(i, &result);
    drop_case(c);
  }
  rdna_device_release(device);
}

/* The null driver's kernels do nothing: every value is missing. */
static void test_kernel_that_does_nothing(void **state) {
  rdna_device *device;
  assert_ok(rdna_device_open("null", &device));
  rdna__kernel_case *c = new_case(0);
  rdna__case_result result;
  assert_ok(rdna__case_run(device, &rdna__manifest[0], c, &result));
  assert_false(result.passed);
  assert_non_null(strstr(result.message, "buffer 1: [0] was not written by the device"));
  drop_case(c);
  rdna_device_release(device);
}

static void test_tolerance(void **state) {
  rdna__case_result result;
  rdna__kernel_case *c = new_case(1);
  rdna__case_tolerance(c, 0, 0x1.2p-20); /* 2^-20 and one rounding */
  assert_ok(rdna__case_run_isa("avx2", &rdna__manifest[1], c, &result));
  assert_true(result.passed);
  assert_true(result.worst > 0.8 && result.worst <= 1);
  rdna__case_tolerance(c, 0, 0x1p-21);
  assert_ok(rdna__case_run_isa("avx2", &rdna__manifest[1], c, &result));
  assert_false(result.passed);
  drop_case(c);
}

/* The last value is marked as untouched: the kernel that does not write it passes, and the others fail. */
static void test_untouched(void **state) {
  rdna__case_result result;
  rdna__kernel_case *c = new_case(5);
  assert_ok(rdna__case_guard_rows(c, 1, COUNT - 1, COUNT));
  for (int i = 0; i < COUNT; i++) assert_int_equal(c->buffers[1].untouched[i], i == COUNT - 1);
  assert_ok(rdna__case_run_isa("avx2", &rdna__manifest[5], c, &result));
  assert_false(result.passed);
  assert_non_null(strstr(result.message, "written by the twin"));
  assert_ok(rdna__case_run_isa("avx2", &rdna__manifest[0], c, &result));
  assert_non_null(strstr(result.message, "[16] was written and must not be"));
  drop_case(c);
}

static void test_case_add(void **state) {
  rdna__kernel_case *c = calloc(1, sizeof *c);
  assert_null(rdna__case_add(c, RDNA__IN, RDNA_Q8_0, 33, 0));
  assert_null(rdna__case_add(c, RDNA__IN, RDNA_F32, -1, 0));
  assert_null(rdna__case_add(c, RDNA__IN, RDNA_F32, 1, (uint32_t)sizeof c->args - 7));
  for (int i = 0; i < RDNA__CASE_MAX_BUFFERS; i++) {
    uint8_t *data = rdna__case_add(c, RDNA__IN, RDNA_Q8_0, 64, 8);
    assert_non_null(data);
    for (int b = 0; b < 68; b++) assert_int_equal(data[b], 0);
  }
  assert_null(rdna__case_add(c, RDNA__IN, RDNA_F32, 1, 0));
  drop_case(c);
  rdna__kernel_case *outside = new_case(0);
  outside->buffers[0].args_offset = 20; /* the pointer would end past the struct */
  rdna__case_result result;
  assert_int_equal(rdna__case_run_isa("avx2", &rdna__manifest[0], outside, &result), RDNA_INVALID_ARGUMENT);
  assert_int_equal(rdna__case_run_isa("avx512", &rdna__manifest[0], outside, &result), RDNA_UNSUPPORTED);
  drop_case(outside);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mistakes_of_twins),
      cmocka_unit_test(test_mistakes_on_a_device),
      cmocka_unit_test(test_kernel_that_does_nothing),
      cmocka_unit_test(test_tolerance),
      cmocka_unit_test(test_untouched),
      cmocka_unit_test(test_case_add),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
