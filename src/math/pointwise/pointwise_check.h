/* Stops the build at a row of rdna/op/pointwise.def that is incomplete, with a sentence that names it. */
#ifndef RDNA_MATH_POINTWISE_CHECK_H
#define RDNA_MATH_POINTWISE_CHECK_H

#include "rdna/op/pointwise.def"

#define POINTWISE_IS_(text, word) (__builtin_strcmp(text, word) == 0)
#define POINTWISE_GIVEN_(text) (sizeof(text) > 1 && !POINTWISE_IS_(text, "NONE"))
#define POINTWISE_FAIL_(row, sentence) "include/rdna/op/pointwise.def: " row ": " sentence
#define POINTWISE_CHECK_(row, types, chain, integer, real, f64)                                                        \
  _Static_assert(POINTWISE_IS_(types, "R") || POINTWISE_IS_(types, "I") || POINTWISE_IS_(types, "RI"),                 \
                 POINTWISE_FAIL_(row, "the column |types| is " types "; write R, I or RI"));                           \
  _Static_assert(POINTWISE_IS_(chain, "NO") || POINTWISE_IS_(chain, "SLOW") || POINTWISE_IS_(chain, "QUICK") ||        \
                     POINTWISE_IS_(chain, "FAST"),                                                                     \
                 POINTWISE_FAIL_(row, "the column |chain| is " chain "; write NO, SLOW, QUICK or FAST"));              \
  _Static_assert(POINTWISE_GIVEN_(integer) == !POINTWISE_IS_(types, "R"),                                              \
                 POINTWISE_FAIL_(row, "it is offered for " types ", and its expression for integers is " integer       \
                                      "; write one if the types have I, else NONE"));                                  \
  _Static_assert(                                                                                                      \
      POINTWISE_GIVEN_(real) == !POINTWISE_IS_(types, "I") && POINTWISE_GIVEN_(f64) == !POINTWISE_IS_(types, "I"),     \
      POINTWISE_FAIL_(row, "it is offered for " types ", and its expressions for floating types are " real " and " f64 \
                           "; write them if the types have R, else NONE"));

/* Counts the arguments, up to 8, so that a row with too few or too many columns is reported first. */
#define POINTWISE_COUNT_(...) POINTWISE_NINTH_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define POINTWISE_NINTH_(a, b, c, d, e, f, g, h, count, ...) count
#define POINTWISE_COUNT_SIMPLE_(NAME, ...)                 \
  _Static_assert(POINTWISE_COUNT_(NAME, __VA_ARGS__) == 6, \
                 POINTWISE_FAIL_(#NAME, "a SIMPLE row has the columns NAME, name, types, chain, integer, real"));
#define POINTWISE_COUNT_ELEMENTARY_(NAME, ...)  \
  _Static_assert(                               \
      POINTWISE_COUNT_(NAME, __VA_ARGS__) == 7, \
      POINTWISE_FAIL_(#NAME, "an ELEMENTARY row has the columns NAME, name, types, chain, integer, f32, f64"));
#define POINTWISE_COUNT_COMPARE_(NAME, ...)                \
  _Static_assert(POINTWISE_COUNT_(NAME, __VA_ARGS__) == 4, \
                 POINTWISE_FAIL_(#NAME, "a row of comparisons has the columns NAME, name, inputs, expression"));
RDNA_POINTWISE_MAPS(POINTWISE_COUNT_SIMPLE_, POINTWISE_COUNT_ELEMENTARY_, f, fast)
RDNA_POINTWISE_ZIPS(POINTWISE_COUNT_SIMPLE_, POINTWISE_COUNT_ELEMENTARY_, f)
RDNA_POINTWISE_ZIP3S(POINTWISE_COUNT_SIMPLE_, f)
RDNA_POINTWISE_COMPARES(POINTWISE_COUNT_COMPARE_)

#define POINTWISE_CHECK_SIMPLE_(NAME, name, types, chain, integer, real)                                   \
  _Static_assert(sizeof(#name) > 1, POINTWISE_FAIL_(#NAME, "it has no name; write one as second column")); \
  POINTWISE_CHECK_(#NAME, #types, #chain, #integer, #real, #real)
#define POINTWISE_CHECK_ELEMENTARY_(NAME, name, types, chain, integer, f32, f64)                           \
  _Static_assert(sizeof(#name) > 1, POINTWISE_FAIL_(#NAME, "it has no name; write one as second column")); \
  POINTWISE_CHECK_(#NAME, #types, #chain, #integer, #f32, #f64)
#define POINTWISE_CHECK_COMPARE_(NAME, name, inputs, expression)                                            \
  _Static_assert(sizeof(#name) > 1, POINTWISE_FAIL_(#NAME, "it has no name; write one as second column"));  \
  _Static_assert(inputs == 1 || inputs == 2, POINTWISE_FAIL_(#NAME, "it has 1 or 2 inputs, not " #inputs)); \
  _Static_assert(POINTWISE_GIVEN_(#expression), POINTWISE_FAIL_(#NAME, "it has no expression"));
RDNA_POINTWISE_MAPS(POINTWISE_CHECK_SIMPLE_, POINTWISE_CHECK_ELEMENTARY_, f, fast)
RDNA_POINTWISE_ZIPS(POINTWISE_CHECK_SIMPLE_, POINTWISE_CHECK_ELEMENTARY_, f)
RDNA_POINTWISE_ZIP3S(POINTWISE_CHECK_SIMPLE_, f)
RDNA_POINTWISE_COMPARES(POINTWISE_CHECK_COMPARE_)

#endif
