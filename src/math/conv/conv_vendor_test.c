/* Convolutions by MIOpen, against our kernels on the same emulated card. The library is a stand-in that computes on its
 * memory and refuses every argument that AMD's reference does not allow. */
#include <unistd.h>

#include "kernel/manifest.h"
#include "kernel/tuner.h"
#include "kernel/tuner_store.h"
#include "math/common/test/operand.h"
#include "math/conv/conv_miopen.h"
#include "math/vendor/testing_vendor.h"

typedef struct problem {
  rdna_dtype dtype;
  int dims, batch, in, out, size, window, stride, padding, dilation, groups;
  bool channels_last, with_bias, one_sided;
} problem;

static operand make(const problem *p, int64_t first, int64_t second, int64_t size) {
  int64_t shape[5] = {first, second, size, size, size}, stride[5], step = p->channels_last ? second : 1;
  for (int d = p->dims + 1; d >= 2; d--) stride[d] = step, step *= size;
  stride[1] = p->channels_last ? 1 : step;
  stride[0] = p->channels_last ? step : step * second;
  operand o = operand_make(p->dtype, p->dims + 2, shape, stride, 0);
  operand_fill(&o, 1);
  return o;
}

/* Every mode by both; returns whether MIOpen took it. */
static bool check(problem p) {
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = p.dims, .groups = p.groups};
  for (int d = 0; d < p.dims; d++) {
    conv.stride[d] = p.stride, conv.dilation[d] = p.dilation;
    conv.pad_before[d] = p.padding, conv.pad_after[d] = p.one_sided ? 0 : p.padding;
  }
  int64_t room = p.size + conv.pad_before[0] + conv.pad_after[0] - p.dilation * (p.window - 1) - 1;
  operand t[3] = {make(&p, p.batch, p.in, p.size), make(&p, p.out, p.in / p.groups, p.window),
                  make(&p, p.batch, p.out, room / p.stride + 1)};
  int64_t channels = p.out;
  operand bias = operand_make(p.dtype, 1, &channels, NULL, 0);
  operand_fill(&bias, 1);
  bool applies = false;
  for (int mode = 0; mode < 3; mode++) {
    operand *out = &t[mode == RDNA__CONV_FORWARD ? 2 : mode == RDNA__CONV_DATA ? 0 : 1];
    int64_t span = operand_span(out);
    const rdna_tensor *b = p.with_bias && mode == RDNA__CONV_FORWARD ? &bias.tensor : NULL;
    rdna__conv_call call = {(rdna__conv_mode)mode, &conv, &t[0].tensor,        &t[1].tensor,
                            &t[2].tensor,          b,     RDNA_ACTIVATION_NONE};
    bool takes_it = rdna__conv_miopen_applies(device, &call);
    if (mode == RDNA__CONV_FORWARD) applies = takes_it;
    double *old = malloc((size_t)span * sizeof *old), *own = malloc((size_t)span * sizeof *own);
    for (int64_t i = 0; i < span; i++) old[i] = operand_get(out, i);
    rdna_status status = mode == RDNA__CONV_FORWARD ? rdna_op_conv(stream, &conv, call.x, call.weight, b, call.y)
                         : mode == RDNA__CONV_DATA
                             ? rdna_op_conv_backward_data(stream, &conv, call.y, call.weight, NULL, call.x)
                             : rdna_op_conv_backward_weight(stream, &conv, call.y, call.x, call.weight);
    assert_ok(status);
    assert_string_not_equal(rdna_stream_last_kernel(stream), "miopen"); /* ours: a convolution, or a product */
    operand_download(out);
    for (int64_t i = 0; i < span; i++) own[i] = operand_get(out, i), operand_set(out, i, old[i]);
    operand_upload(out);
    status = rdna__conv_miopen_run(stream, &call);
    if (takes_it) {
      assert_ok(status);
      assert_string_equal(rdna_stream_last_kernel(stream), "miopen");
      operand_download(out);
      int64_t sums = mode == RDNA__CONV_WEIGHT ? (int64_t)p.batch * p.size * p.size * p.size
                                               : (int64_t)p.in * p.out * p.window * p.window * p.window;
      for (int64_t i = 0; i < span; i++)
        assert_close(p.dtype, operand_get(out, i), own[i], 0x1p-23 * (double)(sums + 8) * 16 + fabs(own[i]) * 0x1p-8,
                     "conv", i);
      for (int64_t i = 0; i < span; i++) operand_set(out, i, old[i]);
      operand_upload(out);
    } else {
      assert_int_equal(status, RDNA_UNSUPPORTED);
    }
    free(old);
    free(own);
  }
  for (int i = 0; i < 3; i++) operand_free(&t[i]);
  operand_free(&bias);
  return applies;
}

static void modes_types_and_layouts(void **state) {
  static const rdna_dtype dtypes[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
  for (int number = 0; number < 12; number++) {
    problem p = {.dtype = dtypes[number % 3],
                 .dims = 1 + number % 3,
                 .batch = 1 + number % 2,
                 .in = 4,
                 .out = 6,
                 .size = 5,
                 .window = 1 + number % 3,
                 .stride = 1 + number % 2,
                 .padding = number % 2,
                 .dilation = 1 + (number % 4 == 3),
                 .groups = 1 + (number % 5 == 2),
                 .channels_last = number % 4 >= 2};
    assert_true(check(p));
  }
}

static void what_it_cannot_do(void **state) {
  problem p = {.dims = 2,
               .batch = 1,
               .in = 4,
               .out = 4,
               .size = 6,
               .window = 3,
               .stride = 1,
               .dilation = 1,
               .groups = 1,
               .padding = 1};
  problem biased = p, seven = p, sided = p;
  biased.with_bias = true;
  assert_false(check(biased));
  seven.in = 7; /* no solution */
  assert_false(check(seven));
  sided.one_sided = true; /* padding that differs, and with it the size */
  assert_false(check(sided));
  sided.stride = 3; /* differs, and changes nothing: (6 + 1 - 3) / 3 is (6 + 2 - 3) / 3 */
  assert_true(check(sided));
}

static void a_shape_is_asked_about_once(void **state) {
  problem p = {
      .dims = 2, .batch = 2, .in = 4, .out = 4, .size = 6, .window = 3, .stride = 1, .dilation = 1, .groups = 1};
  assert_true(check(p));
  int questions = record->questions, objects = record->objects;
  assert_true(check(p));
  assert_int_equal(record->questions, questions);
  assert_int_equal(record->objects, objects);
}

static void see(void *context, const char *operator_name, const char *shape_text, const rdna__tuner_result *result) {
  strcpy(context, shape_text);
}

static void convolve(const char *want, const char *why) {
  problem p = {.dims = 2};
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  operand x = make(&p, 1, 3, 5), weight = make(&p, 2, 3, 2), y = make(&p, 1, 2, 4);
  rdna_choice choice;
  assert_ok(rdna_op_conv(stream, &conv, &x.tensor, &weight.tensor, NULL, &y.tensor));
  assert_ok(rdna_choice_last("conv", &choice));
  assert_string_equal(choice.implementation, want);
  assert_string_equal(choice.why, why);
  operand_download(&y);
  operand_free(&x);
  operand_free(&weight);
  operand_free(&y);
}

/* Ours, until the database says that MIOpen is faster. */
static void the_database_is_heard(void **state) {
  char shape[RDNA__TUNER_SHAPE] = "", text[RDNA__TUNER_TEXT], *rest = text, *fields[3], libraries[64];
  char code[RDNA__TUNER_CODE];
  close_device(state); /* forgets */
  open_device(state);
  convolve("own", "rule");
  rdna__tuner_visit(device, see, shape);
  rdna__tuner_device_text(device, text);
  for (int i = 0; i < 3; i++) fields[i] = strsep(&rest, ",");
  rdna__tuner_code_text(device, RDNA__CONV_FAMILIES, code);
  rdna__vendor_text(device, RDNA__MIOPEN, libraries);
  rdna__tuner_row row = {fields[0], fields[1], fields[2], code, "conv", shape, libraries, "miopen", "own", 1, 2};
  rdna__tuner_store *store;
  assert_ok(rdna__tuner_store_open(getenv("RDNA_TUNE_FILE"), &store));
  assert_ok(rdna__tuner_store_write(store, &row));
  rdna__tuner_store_close(store);
  close_device(state);
  open_device(state);
  convolve("miopen", "stored");
  rdna_deterministic_set(true);
  convolve("own", "deterministic");
  rdna_deterministic_set(false);
}

/* What the tuner's hash covers: code objects that there are, and all of the convolutions' own. */
static void families_are_all_there(void **state) {
  char text[] = RDNA__CONV_FAMILIES, *rest = text, *name;
  int listed = 0, own = 0;
  while ((name = strsep(&rest, " "))) {
    bool known = false;
    for (int i = 0; i < rdna__manifest_count; i++) known |= !strcmp(rdna__manifest[i].family, name);
    if (!known) fail_msg("there is no family '%s'", name);
    listed += !strncmp(name, "conv", 4) || !strcmp(name, "winograd");
  }
  for (int i = 0; i < rdna__manifest_count; i++) { /* kernels of a family follow each other */
    const char *family = rdna__manifest[i].family;
    if (i > 0 && !strcmp(family, rdna__manifest[i - 1].family)) continue;
    own += !strncmp(family, "conv", 4) || !strcmp(family, "winograd");
  }
  assert_int_equal(listed, own);
}

static int open_miopen(void **state) { return open_vendor(state, RDNA__MIOPEN); }

int main(void) {
  char folder[] = "/tmp/rdna-conv-XXXXXX", file[64];
  if (!mkdtemp(folder)) return 1;
  snprintf(file, sizeof file, "%s/tune.sqlite", folder);
  setenv("RDNA_TUNE_FILE", file, 1);
  setenv("RDNA_HIP_LIBRARY", RDNA_EMULATOR, 1);
  setenv("RDNA_EMULATE", "gfx1100", 1);
  setenv("RDNA_TEST_DEVICE", "hip", 1);
  setenv("RDNA_VENDOR_PATH", RDNA_FAKES "/hip_math", 1);
  setenv("RDNA_VENDOR", "miopen", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(modes_types_and_layouts),     cmocka_unit_test(what_it_cannot_do),
      cmocka_unit_test(a_shape_is_asked_about_once), cmocka_unit_test(the_database_is_heard),
      cmocka_unit_test(families_are_all_there),
  };
  int failed = cmocka_run_group_tests(tests, open_miopen, close_vendor);
  unlink(file);
  rmdir(folder);
  return failed;
}
