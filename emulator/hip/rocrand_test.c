// AMD's rocRAND as Debian ships it, unmodified, on the emulated gfx1030: Philox4x32-10 against the paper's algorithm
// (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011), bit by bit; distributions of the
// others against what they are named for, within six standard errors.
//
// The library path has the drop-in first, so librocrand.so.1 finds it as libamdhip64.so.5. Exit status 77: librocrand1
// is not installed.
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { XORWOW = 401, MRG32K3A = 402, PHILOX = 404, COPY_TO_HOST = 2, NUMBERS = 1 << 16 };
static const unsigned long long seed = 0x0123456789abcdefULL;

static struct {
  int (*hipMalloc)(void **, size_t);
  int (*hipFree)(void *);
  int (*hipMemcpy)(void *, const void *, size_t, int);
  int (*create)(void **, int);
  int (*destroy)(void *);
  int (*set_seed)(void *, unsigned long long);
  int (*generate)(void *, unsigned *, size_t);
  int (*uniform)(void *, float *, size_t);
  int (*normal)(void *, float *, size_t, float, float);
  int (*poisson)(void *, unsigned *, size_t, double);
} f;

static void find(void *library, const char *name, void *to) {
  void *symbol = dlsym(library, name);
  if (!symbol) fprintf(stderr, "no symbol %s\n", name);
  memcpy(to, &symbol, sizeof symbol);
}

static int open_libraries(void) {
  void *hip = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_GLOBAL);
  void *rand = hip ? dlopen("librocrand.so.1", RTLD_NOW) : NULL;
  if (!rand) {
    fprintf(stderr, "skipped: %s\n", dlerror());
    return 77;
  }
  find(hip, "hipMalloc", &f.hipMalloc);
  find(hip, "hipFree", &f.hipFree);
  find(hip, "hipMemcpy", &f.hipMemcpy);
  find(rand, "rocrand_create_generator", &f.create);
  find(rand, "rocrand_destroy_generator", &f.destroy);
  find(rand, "rocrand_set_seed", &f.set_seed);
  find(rand, "rocrand_generate", &f.generate);
  find(rand, "rocrand_generate_uniform", &f.uniform);
  find(rand, "rocrand_generate_normal", &f.normal);
  find(rand, "rocrand_generate_poisson", &f.poisson);
  if (!dlsym(hip, "emu_run_file")) {
    fprintf(stderr, "libamdhip64.so.5 is not the emulator: put its drop-in folder first in LD_LIBRARY_PATH\n");
    return 1;
  }
  return 0;
}

// One block of the cipher: 128 bits of counter in, four words out.
static void cipher(const uint32_t counter[4], const uint32_t with_key[2], uint32_t out[4]) {
  uint32_t c[4], key[2] = {with_key[0], with_key[1]};
  memcpy(c, counter, sizeof c);
  for (int round = 0; round < 10; round++) {
    uint64_t a = UINT64_C(0xd2511f53) * c[0], b = UINT64_C(0xcd9e8d57) * c[2];
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ key[1],
                        (uint32_t)a};
    memcpy(c, next, sizeof c);
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  memcpy(out, c, sizeof c);
}

static void philox(uint64_t counter, uint32_t out[4]) {
  cipher((uint32_t[4]){(uint32_t)counter, (uint32_t)(counter >> 32)}, (uint32_t[2]){(uint32_t)seed, seed >> 32}, out);
}

enum kind { WORDS, UNIFORM, NORMAL, POISSON };

static void *make(int generator, enum kind kind, size_t count, double parameter) {
  void *g = NULL, *device = NULL, *host = malloc(4 * count);
  assert_non_null(host);
  memset(host, 0x5a, 4 * count);
  assert_int_equal(f.create(&g, generator), 0);
  assert_int_equal(f.set_seed(g, seed), 0);
  assert_int_equal(f.hipMalloc(&device, 4 * count), 0);
  int status = kind == WORDS     ? f.generate(g, device, count)
               : kind == UNIFORM ? f.uniform(g, device, count)
               : kind == NORMAL  ? f.normal(g, device, count, 2.0f, (float)parameter)
                                 : f.poisson(g, device, count, parameter);
  assert_int_equal(status, 0);
  assert_int_equal(f.hipMemcpy(host, device, 4 * count, COPY_TO_HOST), 0);
  assert_int_equal(f.hipFree(device), 0);
  assert_int_equal(f.destroy(g), 0);
  return host;
}

static void test_philox_words_are_the_papers(void **state) {
  enum { COUNT = 100003 };  // odd, and more than one block each thread
  uint32_t *words = make(PHILOX, WORDS, COUNT, 0);
  for (size_t i = 0; i < COUNT; i++) {
    uint32_t block[4];
    philox(i / 4, block);
    if (words[i] != block[i % 4]) fail_msg("word %zu is %08x, the paper's is %08x", i, words[i], block[i % 4]);
  }
  free(words);
}

static void test_philox_uniforms_are_scaled_words(void **state) {
  float *x = make(PHILOX, UNIFORM, NUMBERS, 0);
  for (size_t i = 0; i < NUMBERS; i++) {
    uint32_t block[4];
    philox(i / 4, block);
    double exact = (double)block[i % 4] * 0x1p-32 + 0x1p-32;  // (0, 1]
    // the product, its sum and the conversion each round once
    if (fabs((double)x[i] - exact) > 3 * 0x1p-24)
      fail_msg("uniform %zu is %.9g, its word says %.9g", i, (double)x[i], exact);
  }
  free(x);
}

// Moments and the correlation of neighbours, within six standard errors of what they must be.
static void check_moments(const double *x, size_t n, double mean, double variance, double fourth) {
  double sum = 0, squares = 0, lag = 0;
  for (size_t i = 0; i < n; i++) {
    sum += x[i];
    squares += (x[i] - mean) * (x[i] - mean);
    if (i) lag += (x[i] - mean) * (x[i - 1] - mean);
  }
  double error = sqrt(variance / (double)n);
  if (fabs(sum / (double)n - mean) > 6 * error) fail_msg("mean %g, expected %g", sum / (double)n, mean);
  double spread = sqrt((fourth - variance * variance) / (double)n);
  if (fabs(squares / (double)n - variance) > 6 * spread)
    fail_msg("variance %g, expected %g", squares / (double)n, variance);
  if (fabs(lag / (double)n) > 6 * variance / sqrt((double)n)) fail_msg("neighbours correlate: %g", lag / (double)n);
}

static void test_one(int generator, enum kind kind, double parameter, double mean, double variance, double fourth) {
  void *raw = make(generator, kind, NUMBERS, parameter);
  double *x = malloc(NUMBERS * sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < NUMBERS; i++) {
    float value;
    uint32_t word;
    memcpy(&value, (char *)raw + 4 * i, 4);
    memcpy(&word, (char *)raw + 4 * i, 4);
    x[i] = kind == UNIFORM || kind == NORMAL ? (double)value : (double)word;
    if (kind == UNIFORM) assert_true(value > 0 && value <= 1);
  }
  check_moments(x, NUMBERS, mean, variance, fourth);
  free(x);
  free(raw);
}

static void test_distributions(int generator) {
  test_one(generator, UNIFORM, 0, 0.5, 1.0 / 12, 1.0 / 80);
  test_one(generator, NORMAL, 3, 2, 9, 3 * 81);
  test_one(generator, POISSON, 12.5, 12.5, 12.5, 12.5 + 3 * 12.5 * 12.5);
}
static void test_philox(void **state) { test_distributions(PHILOX); }
static void test_xorwow(void **state) { test_distributions(XORWOW); }
static void test_mrg32k3a(void **state) { test_distributions(MRG32K3A); }

// The known answer of the paper's authors for counter 0 and key 0 checks this file's own cipher.
static void test_own_cipher(void **state) {
  static const uint32_t expected[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  uint32_t out[4];
  cipher((uint32_t[4]){0}, (uint32_t[2]){0}, out);
  assert_memory_equal(out, expected, sizeof out);
}

int main(void) {
  int status = open_libraries();
  if (status) return status;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_own_cipher),
      cmocka_unit_test(test_philox_words_are_the_papers),
      cmocka_unit_test(test_philox_uniforms_are_scaled_words),
      cmocka_unit_test(test_philox),
      cmocka_unit_test(test_xorwow),
      cmocka_unit_test(test_mrg32k3a),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
