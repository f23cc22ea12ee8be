// AMD's rocRAND as Debian ships it, unmodified, on the emulated gfx1030: Philox4x32-10 against the paper's algorithm
// (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011), XORWOW against Marsaglia's
// ("Xorshift RNGs", 2003) and MRG32k3a against L'Ecuyer's ("Good parameters and implementations for combined multiple
// recursive random number generators", 1999), bit by bit: words and uniforms, and normals within float rounding.
// Distributions of all three against what they are named for, within six standard errors.
//
// How rocRAND seeds the two and hands their numbers out is not in the papers. The facts are from its public source
// (rocrand_xorwow.h, rocrand_mrg32k3a.h, rocrand_uniform.h, rocrand_normal.h; library/src/rng/xorwow.hpp and
// mrg32k3a.hpp): 512 * 256 threads, thread t in subsequence t; number i is from thread i modulo their count; a pair of
// normals is from two numbers of one thread. A subsequence of XORWOW is 2^67 long. For MRG32k3a the headers say 2^67
// too, but their tables hold the recurrences to the power 2^76, the substreams that L'Ecuyer recommends.
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

enum { XORWOW = 401, MRG32K3A = 402, PHILOX = 404, COPY_TO_HOST = 2, NUMBERS = 1 << 16, THREADS = 512 * 256 };
static const uint64_t seed = 0x0123456789abcdefULL;

// rocRAND's products of an MRG32k3a seed are exact up to 32 bits; a longer seed wraps within 64.
static uint64_t seed_of(int generator) { return generator == MRG32K3A ? (uint32_t)seed : seed; }

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

// Marsaglia's xorwow: 160 bits of xorshift, and a counter that steps by 362437 (the Weyl sequence).
struct xorwow {
  uint32_t x[5], weyl;
};

static void xorshift(uint32_t x[5]) {
  uint32_t t = x[0] ^ x[0] >> 2;
  memmove(x, x + 1, 4 * sizeof *x);
  x[4] = x[3] ^ x[3] << 4 ^ t ^ t << 1;
}

static uint32_t xorwow_next(struct xorwow *s) {
  xorshift(s->x);
  s->weyl += 362437;
  return s->weyl + s->x[4];
}

static struct xorwow xorwow_seeded(uint64_t from) {
  uint32_t low = 1228688033U * ((uint32_t)from ^ 0x2c7f967f);
  uint32_t high = 2073658381U * ((uint32_t)(from >> 32) ^ 0xa03697cb);
  return (struct xorwow){
      {123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low},
      6615241 + low + high,
  };
}

// A linear map of the 160 bits over GF(2): where each single bit goes.
typedef uint32_t bit_map[160][5];  // (bit, word)

static void bit_map_apply(bit_map map, uint32_t x[5]) {
  uint32_t sum[5] = {0};
  for (int bit = 0; bit < 160; bit++) {
    if (!(x[bit / 32] >> bit % 32 & 1)) continue;
    for (int word = 0; word < 5; word++) sum[word] ^= map[bit][word];
  }
  memcpy(x, sum, sizeof sum);
}

// 2 to the `doublings` steps of the xorshift as one map.
static void xorshift_jump(int doublings, bit_map map) {
  static bit_map squared;
  memset(map, 0, sizeof(bit_map));
  for (int bit = 0; bit < 160; bit++) {
    map[bit][bit / 32] = UINT32_C(1) << bit % 32;
    xorshift(map[bit]);
  }
  for (int i = 0; i < doublings; i++) {
    memcpy(squared, map, sizeof squared);
    for (int bit = 0; bit < 160; bit++) bit_map_apply(map, squared[bit]);
    memcpy(map, squared, sizeof squared);
  }
}

// The first `each` numbers of every thread. 2^67 steps leave the 32-bit Weyl counter where it is.
static uint32_t *xorwow_threads(size_t each) {
  static bit_map jump;
  uint32_t *out = malloc(THREADS * each * sizeof *out);  // (thread, number)
  assert_non_null(out);
  xorshift_jump(67, jump);
  struct xorwow start = xorwow_seeded(seed_of(XORWOW));
  for (size_t thread = 0; thread < THREADS; thread++) {
    struct xorwow s = start;
    for (size_t i = 0; i < each; i++) out[thread * each + i] = xorwow_next(&s);
    bit_map_apply(jump, start.x);
  }
  return out;
}

// L'Ecuyer's two recurrences of order three, oldest value first, as matrices. Entries stay below their modulus.
static const uint64_t moduli[2] = {4294967087, 4294944443};
typedef uint64_t recurrence[3][3];  // (row, column)
static const recurrence one_step[2] = {
    {{0, 1, 0}, {0, 0, 1}, {4294967087 - 810728, 1403580, 0}},
    {{0, 1, 0}, {0, 0, 1}, {4294944443 - 1370589, 0, 527612}},
};

static void recurrence_apply(const recurrence r, uint64_t modulus, uint64_t x[3]) {
  uint64_t sum[3] = {0};
  for (int row = 0; row < 3; row++) {
    for (int column = 0; column < 3; column++) sum[row] += r[row][column] * x[column] % modulus;
    sum[row] %= modulus;
  }
  memcpy(x, sum, sizeof sum);
}

static void recurrence_jump(int doublings, int which, recurrence r) {
  memcpy(r, one_step[which], sizeof(recurrence));
  for (int i = 0; i < doublings; i++) {
    recurrence squared;
    for (int column = 0; column < 3; column++) {
      uint64_t x[3] = {r[0][column], r[1][column], r[2][column]};
      recurrence_apply((const uint64_t(*)[3])r, moduli[which], x);
      for (int row = 0; row < 3; row++) squared[row][column] = x[row];
    }
    memcpy(r, squared, sizeof squared);
  }
}

static uint32_t mrg_next(uint64_t x[2][3]) {
  for (int which = 0; which < 2; which++) recurrence_apply(one_step[which], moduli[which], x[which]);
  uint64_t a = x[0][2], b = x[1][2];
  return (uint32_t)(a > b ? a - b : a + moduli[0] - b);  // 1 to the first modulus
}

static uint32_t *mrg_threads(size_t each) {
  uint32_t *out = malloc(THREADS * each * sizeof *out);  // (thread, number)
  assert_non_null(out);
  recurrence jump[2];
  uint64_t from = seed_of(MRG32K3A), start[2][3];
  for (int which = 0; which < 2; which++) {
    recurrence_jump(76, which, jump[which]);
    for (int i = 0; i < 3; i++) {
      uint64_t mask = (which + i) % 2 ? 0xaaaaaaaa ^ from >> 32 : 0x55555555 ^ (uint32_t)from;
      start[which][i] = mask % moduli[which] * (from % moduli[which]) % moduli[which];
    }
  }
  for (size_t thread = 0; thread < THREADS; thread++) {
    uint64_t s[2][3];
    memcpy(s, start, sizeof s);
    for (size_t i = 0; i < each; i++) out[thread * each + i] = mrg_next(s);
    for (int which = 0; which < 2; which++)
      recurrence_apply((const uint64_t(*)[3])jump[which], moduli[which], start[which]);
  }
  return out;
}

static uint32_t *threads_of(int generator, size_t each) {
  return generator == XORWOW ? xorwow_threads(each) : mrg_threads(each);
}

static double uniform_of(int generator, uint32_t number) {
  return generator == XORWOW ? ((double)number + 1) * 0x1p-32 : (double)number / (double)moduli[0];
}

enum kind { WORDS, UNIFORM, NORMAL, POISSON };

static void *make(int generator, enum kind kind, size_t count, double parameter) {
  void *g = NULL, *device = NULL, *host = malloc(4 * count);
  assert_non_null(host);
  memset(host, 0x5a, 4 * count);
  assert_int_equal(f.create(&g, generator), 0);
  assert_int_equal(f.set_seed(g, seed_of(generator)), 0);
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

// In (0, 1]. The conversion to float rounds, the product with 2^-32 does not, the sum rounds: one instruction or two
// for the last two give the same.
static float scaled_word(uint32_t word) { return (float)(((double)(float)word + 1) * 0x1p-32); }

static void test_philox_uniforms_are_scaled_words(void **state) {
  float *x = make(PHILOX, UNIFORM, NUMBERS, 0);
  for (size_t i = 0; i < NUMBERS; i++) {
    uint32_t block[4];
    philox(i / 4, block);
    float exact = scaled_word(block[i % 4]);
    if (!(x[i] >= exact && x[i] <= exact))
      fail_msg("uniform %zu is %.9g, its word says %.9g", i, (double)x[i], (double)exact);
  }
  free(x);
}

// More than two rounds of the threads, and not a multiple of them.
static void check_words(int generator) {
  enum { EACH = 3, COUNT = 2 * THREADS + 1003 };
  uint32_t *expected = threads_of(generator, EACH), *words = make(generator, WORDS, COUNT, 0);
  for (size_t i = 0; i < COUNT; i++) {
    uint32_t word = expected[i % THREADS * EACH + i / THREADS];
    // L'Ecuyer's numbers are 1 to his modulus; rocRAND stretches them to 32 bits in double precision.
    if (generator == MRG32K3A) word = (uint32_t)((double)(word - 1) * 1.000000048661607);
    if (words[i] != word) fail_msg("word %zu is %08x, the paper's is %08x", i, words[i], word);
  }
  free(words);
  free(expected);
}

static void check_uniforms(int generator) {
  uint32_t *expected = threads_of(generator, 1);
  float *x = make(generator, UNIFORM, NUMBERS, 0);
  for (size_t i = 0; i < NUMBERS; i++) {
    // MRG32k3a's is divided in double precision and rounded once.
    float exact = generator == XORWOW ? scaled_word(expected[i]) : (float)uniform_of(MRG32K3A, expected[i]);
    if (!(x[i] >= exact && x[i] <= exact))
      fail_msg("uniform %zu is %.9g, its number says %.9g", i, (double)x[i], (double)exact);
  }
  free(x);
  free(expected);
}

// Box and Muller's transform of a thread's two numbers: the first is the radius, the second the angle, sine first.
static void check_normals(int generator) {
  uint32_t *expected = threads_of(generator, 2);
  float *x = make(generator, NORMAL, NUMBERS, 3);
  for (size_t i = 0; i < NUMBERS; i++) {
    const uint32_t *pair = expected + i / 2 * 2;
    double angle = 2 * acos(-1) * uniform_of(generator, pair[1]);
    double radius = sqrt(-2 * log(uniform_of(generator, pair[0])));
    double exact = 2 + 3 * radius * (i % 2 ? cos(angle) : sin(angle));
    // The angle is a float up to 2 pi: its rounding, and the sine's own, move the value by the radius times 2^-19. A
    // uniform near 1 rounds by 2^-24, which moves the squared radius by 2^-21 at most: a small radius most of all.
    double moved = 0x1p-21 / fmax(radius, sqrt(0x1p-21));
    double bound = 3 * (radius * 0x1p-19 + moved) + 0x1p-22 * fabs(exact);
    if (!(fabs((double)x[i] - exact) <= bound))
      fail_msg("normal %zu is %.9g, its numbers say %.9g within %g", i, (double)x[i], exact, bound);
  }
  free(x);
  free(expected);
}

static void test_xorwow_words(void **state) { check_words(XORWOW); }
static void test_xorwow_uniforms(void **state) { check_uniforms(XORWOW); }
static void test_xorwow_normals(void **state) { check_normals(XORWOW); }
static void test_mrg32k3a_words(void **state) { check_words(MRG32K3A); }
static void test_mrg32k3a_uniforms(void **state) { check_uniforms(MRG32K3A); }
static void test_mrg32k3a_normals(void **state) { check_normals(MRG32K3A); }

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
      cmocka_unit_test(test_xorwow_words),
      cmocka_unit_test(test_xorwow_uniforms),
      cmocka_unit_test(test_xorwow_normals),
      cmocka_unit_test(test_mrg32k3a_words),
      cmocka_unit_test(test_mrg32k3a_uniforms),
      cmocka_unit_test(test_mrg32k3a_normals),
      cmocka_unit_test(test_philox),
      cmocka_unit_test(test_xorwow),
      cmocka_unit_test(test_mrg32k3a),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
