/* Operators give the same bits from run to run, and on the host whatever the number of threads: with RDNA_DETERMINISTIC
 * set, processes with one, two and five threads run each operator twice on sizes that are shared among threads, and
 * print the hashes of the results. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "math/test_device.h"
#include "rdna/op.h"
#include "rdna/tune.h"

enum { ROWS = 300, COLUMNS = 1030, BUFFERS = 8, LINE = 64, OPERATORS_MAX = 64 };
static const size_t buffer_bytes = (size_t)ROWS * COLUMNS * 4;
static float *buffers[BUFFERS]; /* 0 to 3 hold inputs, 4 to 7 results */

static rdna_tensor tensor(int buffer, rdna_dtype dtype, int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  return rdna_tensor_contiguous(buffers[buffer], dtype, rank, (int64_t[]){a, b, c, d});
}
#define MATRIX(buffer) tensor(buffer, RDNA_F32, 2, ROWS, COLUMNS, 0, 0)
#define VECTOR(buffer, count) tensor(buffer, RDNA_F32, 1, count, 0, 0, 0)
#define IMAGES(buffer) tensor(buffer, RDNA_F32, 4, 10, 30, 30, 30)

#define OPERATOR(name) static rdna_status run_##name(void)
OPERATOR(gemm) {
  rdna_tensor a = tensor(0, RDNA_F32, 2, 250, 700, 0, 0), b = tensor(1, RDNA_F32, 2, 700, 300, 0, 0);
  rdna_tensor bias = VECTOR(2, 300), c = tensor(4, RDNA_F32, 2, 250, 300, 0, 0);
  return rdna_op_gemm(test_stream, 0.5f, &a, &b, 0, &bias, &c);
}
OPERATOR(gemm_f16) {
  rdna_tensor a = tensor(0, RDNA_F16, 2, 250, 704, 0, 0), b = tensor(1, RDNA_F16, 2, 704, 304, 0, 0);
  rdna_tensor c = tensor(4, RDNA_F32, 2, 250, 304, 0, 0);
  return rdna_op_gemm(test_stream, 1, &a, &b, 0, NULL, &c);
}
OPERATOR(linear) {
  rdna_tensor x = tensor(0, RDNA_F32, 2, 1, 1024, 0, 0), w = tensor(1, RDNA_F32, 2, 290, 1024, 0, 0);
  rdna_tensor out = tensor(4, RDNA_F32, 2, 1, 290, 0, 0);
  return rdna_op_linear(test_stream, &x, &w, NULL, &out);
}
static const rdna_convolution conv = {
    .dims = 2, .stride = {1, 1}, .dilation = {1, 1}, .before = {1, 1}, .after = {1, 1}, .groups = 1};
OPERATOR(conv) {
  rdna_tensor x = IMAGES(0), w = tensor(1, RDNA_F32, 4, 30, 30, 3, 3), y = IMAGES(4);
  return rdna_op_conv(test_stream, &conv, &x, &w, NULL, &y);
}
OPERATOR(conv_backward_data) {
  rdna_tensor y = IMAGES(0), w = tensor(1, RDNA_F32, 4, 30, 30, 3, 3), x = IMAGES(4);
  return rdna_op_conv_backward_data(test_stream, &conv, &y, &w, NULL, &x);
}
OPERATOR(conv_backward_weight) {
  rdna_tensor y = IMAGES(0), x = IMAGES(1), w = tensor(4, RDNA_F32, 4, 30, 30, 3, 3);
  return rdna_op_conv_backward_weight(test_stream, &conv, &y, &x, &w);
}
OPERATOR(softmax) {
  rdna_tensor x = MATRIX(0), out = MATRIX(4);
  return rdna_op_softmax(test_stream, &x, 1, &out);
}
OPERATOR(softmax_backward) {
  rdna_tensor dout = MATRIX(0), out = MATRIX(1), dx = MATRIX(4);
  return rdna_op_softmax_backward(test_stream, &dout, &out, 1, 1, &dx);
}
OPERATOR(rms_norm_backward) {
  rdna_tensor dout = MATRIX(0), x = MATRIX(1), w = VECTOR(2, COLUMNS), dx = MATRIX(4), dw = VECTOR(5, COLUMNS);
  return rdna_op_rms_norm_backward(test_stream, &dout, &x, &w, 1e-5f, &dx, &dw);
}
OPERATOR(layer_norm) {
  rdna_tensor x = MATRIX(0), w = VECTOR(1, COLUMNS), b = VECTOR(2, COLUMNS), out = MATRIX(4);
  return rdna_op_layer_norm(test_stream, &x, &w, &b, 1e-5f, &out);
}
OPERATOR(layer_norm_backward) {
  rdna_tensor dout = MATRIX(0), x = MATRIX(1), w = VECTOR(2, COLUMNS), dx = MATRIX(4), dw = VECTOR(5, COLUMNS);
  rdna_tensor db = VECTOR(6, COLUMNS);
  return rdna_op_layer_norm_backward(test_stream, &dout, &x, &w, 1e-5f, NULL, NULL, &dx, &dw, &db);
}
OPERATOR(batch_norm) {
  rdna_tensor x = IMAGES(0), w = VECTOR(1, 30), b = VECTOR(2, 30), out = IMAGES(4), mean = VECTOR(5, 30);
  rdna_tensor inverse = VECTOR(6, 30);
  return rdna_op_batch_norm(test_stream, &x, &w, &b, NULL, NULL, 0.1, 1e-5, &out, &mean, &inverse);
}
OPERATOR(batch_norm_backward) {
  rdna_tensor dout = IMAGES(0), x = IMAGES(1), w = VECTOR(2, 30), mean = VECTOR(2, 30), inverse = VECTOR(3, 30);
  rdna_tensor dx = IMAGES(4), dw = VECTOR(5, 30), db = VECTOR(6, 30);
  return rdna_op_batch_norm_backward(test_stream, &dout, &x, &w, &mean, &inverse, &dx, &dw, &db);
}
OPERATOR(sum_rows) {
  rdna_tensor x = tensor(0, RDNA_F32, 2, 3, 100000, 0, 0), out = VECTOR(4, 3);
  return rdna_op_sum_rows(test_stream, &x, &out);
}
OPERATOR(mean_rows) {
  rdna_tensor x = MATRIX(0), out = VECTOR(4, ROWS);
  return rdna_op_mean_rows(test_stream, &x, &out);
}
OPERATOR(cumsum) {
  rdna_tensor x = tensor(0, RDNA_F32, 1, 300000, 0, 0, 0), out = tensor(4, RDNA_F32, 1, 300000, 0, 0, 0);
  return rdna_op_cumsum(test_stream, 0, &x, &out);
}
OPERATOR(loss) {
  rdna_tensor x = MATRIX(0), target = MATRIX(1), out = tensor(4, RDNA_F32, 0, 0, 0, 0, 0);
  return rdna_op_loss(test_stream, RDNA_LOSS_MSE, 1, RDNA_REDUCTION_MEAN, &x, &target, NULL, &out);
}
OPERATOR(grad_norm) {
  rdna_tensor x = MATRIX(0), y = MATRIX(1), norm = tensor(4, RDNA_F32, 0, 0, 0, 0, 0);
  rdna_tensor factor = tensor(5, RDNA_F32, 0, 0, 0, 0, 0);
  const rdna_tensor *grads[] = {&x, &y};
  return rdna_op_grad_norm(test_stream, grads, 2, 1, &norm, &factor);
}
OPERATOR(random_normal) {
  rdna_tensor out = MATRIX(4);
  return rdna_op_random_normal(test_stream, 7, 3, 0, 1, &out);
}
#undef OPERATOR

#define ROW(name) {#name, run_##name}
static const struct {
  const char *name;
  rdna_status (*run)(void);
} operators[] = {
    ROW(gemm),
    ROW(gemm_f16),
    ROW(linear),
    ROW(conv),
    ROW(conv_backward_data),
    ROW(conv_backward_weight),
    ROW(softmax),
    ROW(softmax_backward),
    ROW(rms_norm_backward),
    ROW(layer_norm),
    ROW(layer_norm_backward),
    ROW(batch_norm),
    ROW(batch_norm_backward),
    ROW(sum_rows),
    ROW(mean_rows),
    ROW(cumsum),
    ROW(loss),
    ROW(grad_norm),
    ROW(random_normal),
};
#undef ROW
enum { OPERATORS = sizeof operators / sizeof *operators };

static uint64_t hash_results(void) {
  static char bytes[sizeof(float) * ROWS * COLUMNS];
  uint64_t hash = 0;
  for (int i = 4; i < BUFFERS; i++) {
    test_download(bytes, buffers[i], buffer_bytes);
    hash = XXH3_64bits_withSeed(bytes, sizeof bytes, hash);
  }
  return hash;
}

/* Values between 0.5 and 1.5, also when read as f16. */
static void fill(uint64_t *state, float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint32_t bits = 0x3f003800u | ((uint32_t)(*state >> 33) & 0x00ff07ffu);
    memcpy(&values[i], &bits, sizeof bits);
  }
}

/* A child's: hashes to |to|, one an operator; returns how many operators failed. */
static int run_all(const char *threads, int to) {
  setenv("RDNA_THREADS", threads, 1);
  setenv("RDNA_DETERMINISTIC", "1", 1);
  int failed = 0;
  uint64_t state = 5, hashes[OPERATORS];
  float *values = malloc(buffer_bytes);
  test_device_open(NULL);
  assert_true(rdna_deterministic_get());
  for (int i = 0; i < BUFFERS; i++) {
    fill(&state, values, buffer_bytes / 4);
    buffers[i] = test_upload(values, buffer_bytes);
  }
  for (int i = 0; i < OPERATORS; i++) {
    for (int again = 0; again < 2; again++) {
      for (int b = 4; b < BUFFERS; b++) assert_ok(rdna_fill_bytes(test_stream, buffers[b], 0x3c, buffer_bytes));
      if (operators[i].run() != RDNA_OK) {
        printf("%s: %s\n", operators[i].name, rdna_last_error());
        failed++;
      }
      uint64_t hash = hash_results();
      if (again && hash != hashes[i]) {
        printf("%s with %s threads: other bits in the second run\n", operators[i].name, threads);
        failed++;
      }
      hashes[i] = hash;
    }
  }
  for (int i = 0; i < BUFFERS; i++) test_release(buffers[i]);
  test_device_close(NULL);
  free(values);
  return write(to, hashes, sizeof hashes) != (ssize_t)sizeof hashes || failed;
}

static void the_same_bits(void **state) {
  static const char *const threads[] = {"1", "2", "5"};
  uint64_t first[OPERATORS], hashes[OPERATORS];
  int different = 0;
  for (int i = 0; i < 3; i++) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) exit(run_all(threads[i], ends[1]) != 0);
    close(ends[1]); /* or a child that died would be waited for */
    assert_int_equal(read(ends[0], hashes, sizeof hashes), sizeof hashes);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    if (i == 0) memcpy(first, hashes, sizeof first);
    for (int k = 0; k < OPERATORS; k++) {
      if (hashes[k] == first[k]) continue;
      printf("%s: other bits with %s threads than with %s\n", operators[k].name, threads[i], threads[0]);
      different++;
    }
  }
  assert_int_equal(different, 0);
  for (int k = 1; k < OPERATORS; k++) assert_int_not_equal(first[k], first[k - 1]); /* they did something */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
