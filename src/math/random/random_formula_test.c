/* Compares each kind of random number with its formula, written here again in double and in 128-bit integers: kernel
 * and host twin share a header, so that comparing them would not find a mistake in it. */
#include "math/common/test/operand.h"
#include "rdna/op/random.h"

__extension__ typedef unsigned __int128 wide_integer;

/* Philox4x32-10: each of 10 rounds has two products of 32 by 32 bits, whose halves are exchanged, and adds constants to
 * the keys: fractions of the golden ratio and of sqrt(3), in units of 2^-32. */
static void philox(uint64_t counter, uint64_t key, uint32_t *word) {
  uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  for (uint32_t round = 0; round < 10; round++) {
    uint32_t left = (uint32_t)key + round * 0x9e3779b9u, right = (uint32_t)(key >> 32) + round * 0xbb67ae85u;
    uint64_t even = (uint64_t)x[0] * 0xd2511f53u, odd = (uint64_t)x[2] * 0xcd9e8d57u;
    uint32_t next[4] = {(uint32_t)(odd >> 32) ^ x[1] ^ left, (uint32_t)odd, (uint32_t)(even >> 32) ^ x[3] ^ right,
                        (uint32_t)even};
    memcpy(x, next, sizeof x);
  }
  memcpy(word, x, sizeof x);
}

static uint32_t word_of(uint64_t seed, uint64_t offset, int64_t i) {
  uint32_t word[4];
  philox(offset + (uint64_t)i / 4, seed, word);
  return word[i % 4];
}

/* A uniform number in [0, 1) from the top 24 bits of a word; plus 2^-24 it is in (0, 1]. */
static double unit(uint32_t word) { return (word >> 8) * 0x1p-24; }

/* Value |i| by Box and Muller: the cosine of the angle makes the first number of a pair, the sine the second. */
static double normal(uint64_t seed, uint64_t offset, int64_t i) {
  const double turn = 6.283185307179586;
  double radius = sqrt(-2 * log(unit(word_of(seed, offset, i & ~1)) + 0x1p-24));
  double angle = turn * unit(word_of(seed, offset, i | 1));
  return radius * (i % 2 ? sin(angle) : cos(angle));
}

/* Words of seed 0 whose top 24 bits have a given value, which one word in 2^24 has: block, word in it, and the bits. */
static const struct rare {
  uint64_t block;
  int word;
  uint32_t bits;
} zeros[] = {{14883995, 0, 0}, {17169035, 1, 0}, {21603008, 2, 0}},
  ones[] = {{7113731, 1, 0xffffff}, {38471471, 0, 0xffffff}};

static void rare_words_are_where_they_were_found(void **state) {
  for (int n = 0; n < 3; n++) assert_int_equal(word_of(0, zeros[n].block, zeros[n].word) >> 8, zeros[n].bits);
  for (int n = 0; n < 2; n++) assert_int_equal(word_of(0, ones[n].block, ones[n].word) >> 8, ones[n].bits);
}

static operand draw(int64_t count) {
  operand o = operand_make(RDNA_F32, 1, &count, NULL, 0);
  operand_upload(&o);
  return o;
}

static const uint64_t seeds[] = {0, 1, 0x123456789abcdef0u}, offsets[] = {0, 0xfffffff0u, 0xffffffffffff0000u};
enum { PLACES = 3, COUNT = 20003 };

static void uniform_numbers_are_their_formula(void **state) {
  operand o = draw(COUNT);
  for (int n = 0; n < PLACES; n++) {
    assert_ok(rdna_op_random_uniform(stream, seeds[n], offsets[n], -3, 5, &o.tensor));
    operand_download(&o);
    for (int64_t i = 0; i < COUNT; i++) {
      double want = -3 + 8 * unit(word_of(seeds[n], offsets[n], i));
      assert_close(RDNA_F32, operand_get(&o, i), want, 0, "uniform", i);
    }
  }
  operand_free(&o);
}

static void check_normals(uint64_t seed, uint64_t offset, int64_t count) {
  operand o = draw(count);
  assert_ok(rdna_op_random_normal(stream, seed, offset, 0.5f, 2, &o.tensor));
  operand_download(&o);
  for (int64_t i = 0; i < count; i++) {
    double want = normal(seed, offset, i);
    /* the angle, the constant and each of a few operations on the radius are off by at most half an ulp */
    assert_close(RDNA_F32, operand_get(&o, i), 0.5 + 2 * want, 2 * (fabs(want) + 6) * 0x1p-21, "normal", i);
  }
  operand_free(&o);
}

static void normal_numbers_are_their_formula(void **state) {
  for (int n = 0; n < PLACES; n++) check_normals(seeds[n], offsets[n], COUNT);
  for (int n = 0; n < 3; n++) check_normals(0, zeros[n].block, 4);
  for (int n = 0; n < 2; n++) check_normals(0, ones[n].block, 4);
}

/* The smallest word gives the largest number, which is finite; numbers near 0 are as exact as others. */
static void exponential_numbers_are_their_formula(void **state) {
  const float rate = 4;
  for (int n = 0; n < PLACES + 5; n++) {
    uint64_t seed = n < PLACES ? seeds[n] : 0;
    uint64_t offset = n < PLACES ? offsets[n] : n < PLACES + 3 ? zeros[n - PLACES].block : ones[n - PLACES - 3].block;
    operand o = draw(n < PLACES ? COUNT : 4);
    assert_ok(rdna_op_random_exponential(stream, seed, offset, rate, &o.tensor));
    operand_download(&o);
    for (int64_t i = 0; i < operand_span(&o); i++) {
      double want = -log((word_of(seed, offset, i) + 0.5) * 0x1p-32) / (double)rate;
      assert_close(RDNA_F32, operand_get(&o, i), want, want * 0x1p-21, "exponential", i);
    }
    operand_free(&o);
  }
}

/* Neighbouring values are not correlated, nor are their squares: for each of the four places in a block the
 * correlation with each of the next five values is within six standard deviations of 0, of squares twelve. */
static void neighbours_are_independent(void **state) {
  const int64_t count = 1000000;
  operand o = draw(count);
  for (int kind = 0; kind < 2; kind++) {
    assert_ok(kind ? rdna_op_random_normal(stream, 11, 3, 0, 1, &o.tensor)
                   : rdna_op_random_uniform(stream, 11, 3, -1, 1, &o.tensor));
    operand_download(&o);
    double variance = kind ? 1 : 1.0 / 3, fourth = kind ? 3 : 0.2, spread = fourth - variance * variance;
    for (int lag = 1; lag <= 5; lag++) {
      double plain[4] = {0}, square[4] = {0}, limit = 6 / sqrt((double)count / 4);
      for (int64_t i = 0; i + lag < count; i++) {
        double a = operand_get(&o, i), b = operand_get(&o, i + lag);
        plain[i % 4] += a * b / variance / ((double)count / 4);
        square[i % 4] += (a * a - variance) * (b * b - variance) / spread / ((double)count / 4);
      }
      for (int place = 0; place < 4; place++) {
        if (fabs(plain[place]) > limit || fabs(square[place]) > limit * 2)
          fail_msg("%s: place %d and the %dth after it: correlation %.4f, of squares %.4f", kind ? "normal" : "uniform",
                   place, lag, plain[place], square[place]);
      }
    }
  }
  operand_free(&o);
}

/* Integers are low + floor(range * bits / 2^64), of the whole product. */
static void integers_are_their_formula(void **state) {
  static const uint64_t ranges[] = {1,
                                    2,
                                    1000003,
                                    ((uint64_t)1 << 32) - 1,
                                    (uint64_t)1 << 32,
                                    ((uint64_t)1 << 32) + 1,
                                    ((uint64_t)1 << 33) + 12345,
                                    ((uint64_t)1 << 33) - 1,
                                    ((uint64_t)1 << 40) + 987654321,
                                    0x0000ffffffffffffu,
                                    ((uint64_t)1 << 62) + 0x89abcdefu,
                                    ((uint64_t)1 << 63) - 1,
                                    (uint64_t)1 << 63,
                                    ((uint64_t)1 << 63) + 0xfedcba98u,
                                    UINT64_MAX};
  const int64_t count = COUNT;
  operand o = operand_make(RDNA_I64, 1, &count, NULL, 0), narrow = operand_make(RDNA_I32, 1, &count, NULL, 0);
  const int64_t *got = (const int64_t *)(const void *)o.host;
  const int32_t *got_narrow = (const int32_t *)(const void *)narrow.host;
  operand_upload(&o), operand_upload(&narrow);
  for (size_t n = 0; n < sizeof ranges / sizeof *ranges; n++) {
    int64_t low = ranges[n] > (uint64_t)1 << 62 ? INT64_MIN : -5, high = (int64_t)((uint64_t)low + ranges[n]);
    bool fits = ranges[n] < (uint64_t)1 << 31;
    uint64_t seed = seeds[n % PLACES], offset = offsets[n % PLACES];
    assert_ok(rdna_op_random_integers(stream, seed, offset, low, high, &o.tensor));
    if (fits) assert_ok(rdna_op_random_integers(stream, seed, offset, low, high, &narrow.tensor));
    operand_download(&o), operand_download(&narrow);
    for (int64_t i = 0; i < count; i++) {
      uint64_t bits = (uint64_t)word_of(seed, offset, 2 * i) << 32 | word_of(seed, offset, 2 * i + 1);
      int64_t want = (int64_t)((uint64_t)low + (uint64_t)(((wide_integer)bits * ranges[n]) >> 64));
      if (got[i] != want || (fits && got_narrow[i] != want))
        fail_msg("range %llu [%lld]: got %lld, want %lld", (unsigned long long)ranges[n], (long long)i,
                 (long long)got[i], (long long)want);
    }
  }
  operand_free(&o), operand_free(&narrow);
}

/* Blocks of seed 0 with a word whose top 24 bits are the last integer below probability * 2^24, or that number. */
static const struct edge {
  float probability;
  uint64_t block;
  int word;
} edges[] = {{0.05f, 1332730, 0},         {0.1f, 7968967, 2},      {1 / 3.0f, 2888949, 3},
             {0.3f, 15110106, 3},         {0.5f, 5194699, 3},      {0.5f, 454764, 3},
             {0x1p-24f, 14883995, 0},     {0x1p-30f, 17169035, 1}, {0x1.fffffep-1f, 38471471, 0},
             {0x1.fffffep-1f, 7113731, 1}};

/* kept where the unit number is at least the probability, whether or not that is a multiple of 2^-24 */
static void chances_are_exact_at_their_edges(void **state) {
  enum { EDGES = sizeof edges / sizeof *edges };
  for (int n = 0; n < 2 * EDGES; n++) {
    const struct edge *e = &edges[n % EDGES];
    const double p = (double)e->probability, bits = word_of(0, e->block, e->word) >> 8;
    assert_true(fabs(bits - p * 0x1p24) <= 1);
    const int64_t count = n < EDGES ? 4 : 2051;
    operand x = operand_make(RDNA_F32, 1, &count, NULL, 0), out = draw(count), coin = draw(count);
    operand mask = operand_make(RDNA_U8, 1, &count, NULL, 0);
    operand_fill(&x, 1);
    operand_upload(&mask);
    assert_ok(rdna_op_dropout(stream, 0, e->block, e->probability, &x.tensor, &out.tensor, &mask.tensor));
    assert_ok(rdna_op_random_bernoulli(stream, 0, e->block, e->probability, &coin.tensor));
    operand_download(&mask), operand_download(&out), operand_download(&coin);
    for (int64_t i = 0; i < count; i++) {
      bool kept = unit(word_of(0, e->block, i)) >= p;
      if (mask.host[i] != kept || operand_get(&coin, i) != !kept)
        fail_msg("%a [%lld]: %a: mask %d, bernoulli %g", p, (long long)i, unit(word_of(0, e->block, i)), mask.host[i],
                 operand_get(&coin, i));
      double want = kept ? operand_get(&x, i) / (1 - p) : 0;
      assert_close(RDNA_F32, operand_get(&out, i), want, fabs(want) * 0x1p-22, "dropout", i);
    }
    operand_free(&x), operand_free(&out), operand_free(&coin), operand_free(&mask);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rare_words_are_where_they_were_found), cmocka_unit_test(uniform_numbers_are_their_formula),
      cmocka_unit_test(normal_numbers_are_their_formula),     cmocka_unit_test(exponential_numbers_are_their_formula),
      cmocka_unit_test(neighbours_are_independent),           cmocka_unit_test(integers_are_their_formula),
      cmocka_unit_test(chances_are_exact_at_their_edges),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
