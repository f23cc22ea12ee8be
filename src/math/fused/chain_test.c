/* Chains as kernels of their own beside the kernels that interpret them, on the same operands: the same bits. Of
 * devices that run a GPU's code; on the host the twin computes whatever is set. */
#include "math/fused/chain.h"

#include <pthread.h>

#include "base/config.h"
#include "kernel/compile.h"
#include "math/common/test/operand.h"
#include "math/fused/chain_source.h"
#include "math/fused/fused_layout.h"
#include "rdna/op/fused.h"
#include "rdna/tune.h"

static bool has_own; /* the device runs a GPU's code, and there is a compiler for it */

static void set_mode(const char *mode) { assert_ok(rdna__config_set(RDNA__CONFIG_FUSED_COMPILE, mode)); }

/* What ran this thread's last chain. */
static void assert_choice(const char *implementation, const char *why) {
  rdna_choice choice;
  if (!has_own) return;
  assert_ok(rdna_choice_last("fused", &choice));
  assert_string_equal(choice.implementation, implementation);
  if (!strstr(choice.why, why)) fail_msg("'%s' does not say '%s'", choice.why, why);
}

#define MAP(name, p_, q_) {.op = RDNA_MAP_##name, .p = p_, .q = q_}
#define ZIP(name, input_) {.op = RDNA_ZIP_##name, .is_zip = true, .input = input_}
#define TURNED(name, input_) {.op = RDNA_ZIP_##name, .is_zip = true, .input = input_, .input_first = true}

/* Operands of a chain. Bit d of broadcast[k]: input k has size 1 in dimension d. */
typedef struct case_operands {
  operand out, input[RDNA_FUSED_MAX_INPUTS];
  const rdna_tensor *tensors[RDNA_FUSED_MAX_INPUTS];
  int inputs;
} case_operands;

static void make(case_operands *c, rdna_dtype dtype, int rank, const int64_t *size, int inputs,
                 const uint32_t *broadcast, int64_t offset) {
  c->inputs = inputs;
  c->out = operand_make(dtype, rank, size, NULL, offset);
  operand_upload(&c->out);
  for (int k = 0; k < inputs; k++) {
    int64_t own[4];
    for (int d = 0; d < rank; d++) own[d] = broadcast && broadcast[k] >> d & 1 ? 1 : size[d];
    c->input[k] = operand_make(dtype, rank, own, NULL, offset);
    operand_fill(&c->input[k], 1.5);
    for (int64_t i = 0; i < operand_span(&c->input[k]); i += 97) /* a few that no formula likes */
      operand_set(&c->input[k], i, i % 2 ? 0 : i % 3 ? (double)INFINITY : i % 4 ? (double)NAN : -0.0);
    operand_upload(&c->input[k]);
    c->tensors[k] = &c->input[k].tensor;
  }
}
static void drop(case_operands *c) {
  operand_free(&c->out);
  for (int k = 0; k < c->inputs; k++) operand_free(&c->input[k]);
}
static void run(case_operands *c, const rdna_fused_step *steps, int count) {
  operand_upload(&c->out);
  assert_ok(rdna_op_fused(stream, steps, count, c->tensors, c->inputs, &c->out.tensor));
}

static bool same_bits(const operand *o, const uint8_t *a, const uint8_t *b, int64_t i) {
  size_t bytes = rdna_dtype_block_bytes(o->tensor.dtype);
  if (!memcmp(a + (size_t)i * bytes, b + (size_t)i * bytes, bytes)) return true;
  operand other = *o;
  double va, vb;
  other.host = (uint8_t *)(uintptr_t)a, va = operand_get(&other, i);
  other.host = (uint8_t *)(uintptr_t)b, vb = operand_get(&other, i);
  return isnan(va) && isnan(vb); /* which NaN it is differs with the order of operands */
}

/* Runs the chain in both ways, and compares. */
static void compare(case_operands *c, const rdna_fused_step *steps, int count, const char *implementation,
                    const char *why) {
  set_mode("off");
  run(c, steps, count);
  operand_download(&c->out);
  assert_choice("interpreted", "off");
  uint8_t *want = malloc(c->out.bytes + 1);
  assert_non_null(want);
  memcpy(want, c->out.host, c->out.bytes);
  set_mode("always");
  memset(c->out.host, OPERAND_POISON, c->out.bytes);
  run(c, steps, count);
  operand_download(&c->out);
  assert_choice(implementation, why);
  set_mode("auto");
  for (int64_t i = 0; i < operand_span(&c->out); i++) {
    if (same_bits(&c->out, c->out.host, want, i)) continue;
    operand other = c->out;
    other.host = want;
    fail_msg("value %lld of %d steps is %.9g, interpreted %.9g", (long long)i, count, operand_get(&c->out, i),
             operand_get(&other, i));
  }
  free(want);
}

/* Every operation of chains, in both orders if it has two operands, eight to a chain. What comes before each keeps its
 * operand where most of them have a value that is no NaN. */
static void every_operation(void **state) {
  static const int64_t size[] = {4099};
  static rdna_fused_step all[3 * RDNA_ZIP_COUNT + RDNA_MAP_COUNT];
  int count = 0, part = 0;
  for (int op = 0; op < (int)RDNA_MAP_COUNT; op++)
    if (fused_map_chain[op] != FUSED_NO) all[count++] = (rdna_fused_step){.op = op, .p = 0.75f, .q = 1.5f};
  for (int op = 0; op < 2 * (int)RDNA_ZIP_COUNT; op++)
    if (fused_zip_chain[op / 2] != FUSED_NO)
      all[count++] = (rdna_fused_step){
          .op = op / 2, .is_zip = true, .input_first = op % 2, .input = op % 3, .p = 0.75f, .q = 1.5f};
  for (int begin = 0; begin < count; begin += 8, part++) {
    rdna_fused_step steps[16];
    int n = 0;
    for (int i = begin; i < begin + 8 && i < count; i++) {
      steps[n++] = (rdna_fused_step){.op = RDNA_MAP_CLAMP, .p = i % 2 ? 0.125f : -2, .q = 3};
      steps[n++] = all[i];
    }
    for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
      if (dtype != RDNA_F32 && part % 3 != dtype % 3 && !getenv("RDNA_TEST_ALL")) continue;
      case_operands c;
      make(&c, (rdna_dtype)dtype, 1, size, 3, NULL, 0);
      compare(&c, steps, n, "compiled", "compiled at run time");
      drop(&c);
    }
  }
}

/* Each way to lie beside the output: as it, one value, a row, a column, a channel, twice. One kernel a type serves all
 * sizes. */
static void every_layout(void **state) {
  static const rdna_fused_step steps[] = {MAP(AFFINE, 1.25f, -0.5f), ZIP(ADD, 1),     TURNED(SUB, 2), ZIP(MUL, 3),
                                          ZIP(MAXIMUM, 4),           MAP(RELU, 0, 0), ZIP(ADD, 0),    ZIP(SUB, 5)};
  static const int64_t sizes[][3] = {{3, 5, 64}, {2, 7, 8}, {70, 3, 24}};
  /* dimension 0 is the slowest */
  static const uint32_t broadcast[] = {0, 7, 3, 4, 5, 0};
  for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      case_operands c;
      make(&c, (rdna_dtype)dtype, 3, sizes[i], 6, broadcast, 0);
      compare(&c, steps, 8, "compiled", "compiled at run time");
      drop(&c);
    }
  }
}

/* What is kept on the way, before an input and before the inputs' end, in each type. */
static void forks(void **state) {
  static const rdna_fused_step steps[] = {MAP(SIGMOID, 0, 0),
                                          {.op = RDNA_FUSED_KEEP, .input = 2},
                                          {.op = RDNA_FUSED_TAKE, .input = 1},
                                          MAP(RELU, 0, 0),
                                          {.op = RDNA_FUSED_KEEP, .input = 5},
                                          TURNED(SUB, 2),
                                          ZIP(MUL, 5),
                                          {.op = RDNA_FUSED_KEEP, .input = 2},
                                          {.op = RDNA_FUSED_TAKE, .input = 5},
                                          ZIP(ADD, 2),
                                          ZIP(MAXIMUM, 0)};
  const int64_t size[] = {2051};
  for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
    case_operands c;
    make(&c, (rdna_dtype)dtype, 1, size, 2, NULL, 0);
    compare(&c, steps, 11, "compiled", "compiled at run time");
    drop(&c);
  }
}

/* Sizes around a vector and a group's values, empty too; in place. */
static void odd_sizes(void **state) {
  static const rdna_fused_step steps[] = {MAP(AFFINE, 2, 1), ZIP(MUL, 0)};
  static const int64_t sizes[] = {1, 3, 4, 8, 9, 1023, 1024, 2047, 2048, 2049, 4095, 4096, 4103};
  for (int dtype = RDNA_F32; dtype <= RDNA_F16; dtype++) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      case_operands c;
      make(&c, (rdna_dtype)dtype, 1, &sizes[i], 1, NULL, 0);
      if (sizes[i] > 1) compare(&c, steps, 2, "compiled", "compiled at run time");
      set_mode("always");
      assert_ok(rdna_op_fused(stream, steps, 2, c.tensors, 1, &c.input[0].tensor)); /* in place */
      set_mode("auto");
      if (sizes[i] > 1) { /* of out, where compare left it, there is the same */
        operand_download(&c.input[0]);
        for (int64_t v = 0; v < sizes[i]; v++)
          if (!same_bits(&c.out, c.out.host, c.input[0].host, v)) fail_msg("in place value %lld differs", (long long)v);
      }
      drop(&c);
    }
  }
  const int64_t none[] = {0};
  case_operands c;
  make(&c, RDNA_F32, 1, none, 1, NULL, 0);
  set_mode("always");
  run(&c, steps, 2);
  set_mode("auto");
  drop(&c);
}

/* Against double. */
static void right(void **state) {
  static const rdna_fused_step steps[] = {
      MAP(AFFINE, 1.5f, 0.5f), MAP(RELU, 0, 0),           MAP(AFFINE, 1, -2), ZIP(MUL, 1), MAP(TANH, 0, 0),
      MAP(AFFINE, 1, 1),       MAP(AFFINE, 0.25f, -0.0f), MAP(SQUARE, 0, 0),  ZIP(SUB, 0)};
  const int64_t size[] = {3001};
  for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
    case_operands c;
    make(&c, (rdna_dtype)dtype, 1, size, 2, NULL, 0);
    set_mode("always");
    run(&c, steps, 9);
    assert_choice("compiled", "");
    set_mode("auto");
    operand_download(&c.out);
    for (int64_t i = 0; i < size[0]; i++) {
      double x = operand_get(&c.input[0], i), y = operand_get(&c.input[1], i), a = 1.5 * x + 0.5;
      double t = ((a <= 0 ? 0 : a) - 2) * y, v = 0.25 * (tanh(t) + 1);
      double error = dtype == RDNA_F32 ? 0x1p-18 : 0x1p-12;
      assert_close((rdna_dtype)dtype, operand_get(&c.out, i), v * v - x, error * (1 + fabs(x)), "chain", i);
    }
    drop(&c);
  }
}

/* What has no kernel of its own keeps the one that interprets. */
static void others_are_interpreted(void **state) {
  static const rdna_fused_step steps[] = {ZIP(ADD, 1), MAP(NEG, 0, 0)};
  static const int64_t odd[] = {5, 7}, even[] = {6, 16};
  case_operands c;
  make(&c, RDNA_F32, 2, even, 2, NULL, 1); /* not at a multiple of 16 bytes */
  compare(&c, steps, 2, "interpreted", "neither contiguous");
  drop(&c);
  make(&c, RDNA_F32, 2, odd, 2, (uint32_t[]){0, 1}, 0); /* a row that is no whole vectors */
  compare(&c, steps, 2, "interpreted", "neither contiguous");
  drop(&c);
  make(&c, RDNA_F32, 2, odd, 2, (uint32_t[]){0, 2}, 0);
  compare(&c, steps, 2, "interpreted", "neither contiguous");
  drop(&c);
  make(&c, RDNA_F32, 2, even, 2, NULL, 0); /* every second row */
  c.out.tensor.shape[0] = c.input[0].tensor.shape[0] = c.input[1].tensor.shape[0] = 3;
  c.input[1].tensor.stride[0] *= 2;
  compare(&c, steps, 2, "interpreted", "neither contiguous");
  drop(&c);
}

/* A compiler that is not there is no failure. */
static void without_a_compiler(void **state) {
  static const rdna_fused_step steps[] = {MAP(ABS, 0, 0), MAP(NEG, 0, 0)};
  const int64_t size[] = {100};
  case_operands c;
  make(&c, RDNA_F32, 1, size, 1, NULL, 0);
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, "/nowhere/clang"));
  compare(&c, steps, 2, "interpreted", "could not be compiled");
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILER, ""));
  compare(&c, steps, 2, "interpreted", "could not be compiled"); /* it is not tried again */
  drop(&c);
}

/* In the background, once it is worth it; never while a graph is recorded. */
static void in_the_background(void **state) {
  static const rdna_fused_step steps[] = {MAP(SQUARE, 0, 0), ZIP(ADD, 1), MAP(ABS, 0, 0)};
  const int64_t size[] = {1024};
  int64_t before = rdna__chain_worth;
  case_operands c;
  make(&c, RDNA_F32, 1, size, 2, NULL, 0);
  if (rdna_graph_begin(stream) == RDNA_OK) {
    rdna_graph *graph;
    set_mode("always");
    assert_ok(rdna_op_fused(stream, steps, 3, c.tensors, 2, &c.out.tensor));
    assert_choice("interpreted", "not moved enough");
    assert_ok(rdna_graph_end(stream, &graph));
    rdna_graph_release(graph);
    set_mode("auto");
  }
  rdna__chain_worth = 3 * 3 * 4096; /* three launches of three tensors */
  run(&c, steps, 3);
  run(&c, steps, 3);
  assert_choice("interpreted", "not moved enough");
  run(&c, steps, 3);
  assert_choice("interpreted", "being compiled");
  rdna__chain_wait();
  run(&c, steps, 3);
  assert_choice("compiled", "compiled at run time");
  if (has_own) assert_string_equal(rdna_stream_last_kernel(stream), "chain_f32_square_add_abs");
  if (rdna_graph_begin(stream) == RDNA_OK) { /* what is there may be recorded */
    rdna_graph *graph;
    assert_ok(rdna_op_fused(stream, steps, 3, c.tensors, 2, &c.out.tensor));
    assert_choice("compiled", "");
    assert_ok(rdna_graph_end(stream, &graph));
    operand_upload(&c.out);
    assert_ok(rdna_graph_launch(graph, stream));
    operand_download(&c.out);
    for (int64_t i = 0; i < 1024; i++) {
      double x = operand_get(&c.input[0], i), y = operand_get(&c.input[1], i);
      assert_close(RDNA_F32, operand_get(&c.out, i), fabs(x * x + y), 0x1p-20 * (1 + x * x), "replay", i);
    }
    rdna_graph_release(graph);
  }
  rdna__chain_worth = before;
  compare(&c, steps, 3, "compiled", "compiled at run time");
  drop(&c);
}

/* Without a thread it is not waited for: the chain counts anew, and is tried again. */
static void without_a_thread(void **state) {
  static const rdna_fused_step steps[] = {MAP(SQUARE, 0, 0), ZIP(SUB, 1), MAP(NEG, 0, 0)};
  const int64_t size[] = {1024};
  int64_t before = rdna__chain_worth;
  pthread_attr_t usual, huge;
  case_operands c;
  make(&c, RDNA_F32, 1, size, 2, NULL, 0);
  rdna__chain_worth = 2 * 3 * 4096;
  run(&c, steps, 3);
  assert_int_equal(pthread_getattr_default_np(&usual), 0);
  assert_int_equal(pthread_attr_init(&huge), 0);
  assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0); /* more than there are addresses */
  assert_int_equal(pthread_setattr_default_np(&huge), 0);
  rdna_status status = rdna_op_fused(stream, steps, 3, c.tensors, 2, &c.out.tensor);
  assert_int_equal(pthread_setattr_default_np(&usual), 0);
  assert_ok(status);
  assert_choice("interpreted", "not moved enough");
  run(&c, steps, 3);
  run(&c, steps, 3);
  assert_choice("interpreted", "being compiled");
  rdna__chain_wait();
  run(&c, steps, 3);
  assert_choice("compiled", "compiled at run time");
  rdna__chain_worth = before;
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&usual);
  drop(&c);
}

enum { THREADS = 4, LAUNCHES = 12 };
static void *launch_often(void *context) {
  case_operands *c = context;
  static const rdna_fused_step steps[3][2] = {
      {MAP(RELU, 0, 0), ZIP(ADD, 1)}, {MAP(NEG, 0, 0), ZIP(MUL, 1)}, {MAP(ABS, 0, 0), ZIP(SUB, 1)}};
  rdna_stream *own;
  rdna_status status = rdna_stream_create(device, 0, &own);
  if (status != RDNA_OK) return c;
  for (int i = 0; i < LAUNCHES && status == RDNA_OK; i++)
    status = rdna_op_fused(own, steps[i % 3], 2, c->tensors, 2, &c->out.tensor);
  if (status == RDNA_OK) status = rdna_stream_synchronize(own);
  rdna_stream_release(own);
  return status == RDNA_OK ? NULL : c;
}

/* Several threads that ask for the same chains at once, while they are compiled. */
static void from_several_threads(void **state) {
  const int64_t size[] = {2000};
  int64_t before = rdna__chain_worth;
  case_operands c[THREADS];
  pthread_t threads[THREADS];
  rdna__chain_worth = 6 * 3 * 8000;
  for (int t = 0; t < THREADS; t++) make(&c[t], RDNA_F32, 1, size, 2, NULL, 0);
  assert_ok(rdna_stream_synchronize(stream)); /* where operands are copied: the threads have streams of their own */
  for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&threads[t], NULL, launch_often, &c[t]), 0);
  for (int t = 0; t < THREADS; t++) {
    void *failed;
    assert_int_equal(pthread_join(threads[t], &failed), 0);
    assert_null(failed);
    operand_download(&c[t].out);
    for (int64_t i = 0; i < size[0]; i++) {
      double want = fabs(operand_get(&c[t].input[0], i)) - operand_get(&c[t].input[1], i);
      assert_close(RDNA_F32, operand_get(&c[t].out, i), want, 0, "thread", i);
    }
    drop(&c[t]);
  }
  rdna__chain_worth = before;
}

/* The device ends while a chain of it is being compiled: the group's tear-down. Nothing may be left. */
static void ends_while_one_is_compiled(void **state) {
  static const rdna_fused_step steps[] = {MAP(NEG, 0, 0), MAP(SQUARE, 0, 0), MAP(NEG, 0, 0)};
  const int64_t size[] = {64};
  int64_t before = rdna__chain_worth;
  case_operands c;
  make(&c, RDNA_F32, 1, size, 1, NULL, 0);
  rdna__chain_worth = 1;
  run(&c, steps, 3);
  assert_choice("interpreted", "being compiled");
  rdna__chain_worth = before;
  drop(&c);
}

static int open_with_compiler(void **state) {
  char target[RDNA__COMPILE_TARGET];
  rdna__compiler *compiler = malloc(sizeof *compiler);
  assert_non_null(compiler);
  assert_ok(rdna__config_set(RDNA__CONFIG_COMPILE_CACHE, "off"));
  open_device(state);
  if (strcmp(rdna_device_get_info(device)->driver, "host") != 0) {
    rdna__compile_target(device, target);
    assert_ok(rdna__compiler_find(target, compiler));
    has_own = true;
  }
  free(compiler);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operation),
      cmocka_unit_test(every_layout),
      cmocka_unit_test(forks),
      cmocka_unit_test(odd_sizes),
      cmocka_unit_test(right),
      cmocka_unit_test(others_are_interpreted),
      cmocka_unit_test(without_a_compiler),
      cmocka_unit_test(in_the_background),
      cmocka_unit_test(without_a_thread),
      cmocka_unit_test(from_several_threads),
      cmocka_unit_test(ends_while_one_is_compiled),
  };
  return cmocka_run_group_tests(tests, open_with_compiler, close_device);
}
