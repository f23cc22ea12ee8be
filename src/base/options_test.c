/* Structs of options from an older and from a newer header. */
#include "base/options.h"
#include "base/testing.h"
#include "rdna/llm.h"
#include "rdna/llm_cache.h"
#include "rdna/llm_embed.h"
#include "rdna/model.h"
#include "rdna/op.h"

typedef struct options {
  size_t size;
  float scale;
  int32_t window;
  const void *sinks; /* what the older header lacks */
} options;

typedef struct newer {
  options of;
  const void *more;
} newer;

static void whole(void **state) {
  const options given = {.size = sizeof given, .scale = 2, .window = 3, .sinks = &given};
  options known;
  assert_ok(RDNA__OPTIONS("op", "options", &given, &known));
  assert_memory_equal(&given, &known, sizeof known);
}

/* What lies behind a shorter struct is not its own. */
static void shorter(void **state) {
  options given = {.size = offsetof(options, sinks), .scale = 2, .window = 3, .sinks = &given}, known;
  memset(&known, 0xff, sizeof known);
  assert_ok(RDNA__OPTIONS("op", "options", &given, &known));
  assert_true(known.scale == 2 && known.window == 3 && known.sinks == NULL);
  assert_int_equal(known.size, sizeof known);
}

static void longer(void **state) {
  newer given = {.of = {.size = sizeof given, .scale = 2}};
  options known;
  assert_ok(rdna__options_read("op", "options", &given, &known, sizeof known));
  assert_true(known.scale == 2 && known.size == sizeof known);
  given.more = &given;
  assert_int_equal(rdna__options_read("op", "options", &given, &known, sizeof known), RDNA_UNSUPPORTED);
  assert_non_null(strstr(rdna_last_error(), "op: options has 32 bytes, of which this library knows 24"));
}

static void refused(void **state) {
  options given = {.size = 0}, known;
  assert_int_equal(RDNA__OPTIONS("op", "options", (const options *)NULL, &known), RDNA_INVALID_ARGUMENT);
  assert_non_null(strstr(rdna_last_error(), "op: options is NULL"));
  const size_t sizes[] = {0, sizeof(size_t) - 1, (size_t)1 << 20, SIZE_MAX};
  for (int i = 0; i < 4; i++) {
    given.size = sizes[i];
    assert_int_equal(RDNA__OPTIONS("op", "options", &given, &known), RDNA_INVALID_ARGUMENT);
    assert_non_null(strstr(rdna_last_error(), "INIT"));
  }
}

/* Padding at the end would count as a field that a later header puts there, and an old caller never sets it. */
// NOLINTBEGIN(bugprone-sizeof-expression): some of these members are pointers
#define ENDS_WITH(type, last) \
  _Static_assert(offsetof(type, last) + sizeof((type *)0)->last == sizeof(type), #type " does not end with " #last)
ENDS_WITH(rdna_attention, reserved);
ENDS_WITH(rdna_convolution, groups);
ENDS_WITH(rdna_cross_entropy, outside);
ENDS_WITH(rdna_gemm_epilogue, residual);
ENDS_WITH(rdna_llm_cache_options, layers);
ENDS_WITH(rdna_llm_embedder_options, reserved);
ENDS_WITH(rdna_llm_session_options, exact);
ENDS_WITH(rdna_moe_product, shares);
ENDS_WITH(rdna_moe_routing, bias);
ENDS_WITH(rdna_optim, step);
ENDS_WITH(rdna_pooling, divisor);
ENDS_WITH(rdna_quant_groups, offsets);
ENDS_WITH(rdna_rope, epsilon);
ENDS_WITH(rdna_sampling, seed);
ENDS_WITH(rdna_sdpa, sinks);
ENDS_WITH(rdna_upsample, factor);
// NOLINTEND(bugprone-sizeof-expression)

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(shorter), cmocka_unit_test(longer),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
