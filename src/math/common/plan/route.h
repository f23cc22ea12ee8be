/* Which kernel runs, as data. An operator that has several ways to compute its result has a table of routes, which it
 * chooses from; `rdna kernels --where` and docs/kernels.md read the same rows, and a test holds them against the
 * manifest.
 *
 *     static const rdna__route routes[] = {
 *         {.name = "parts", .kernels = {"softmax_part_{float}", "softmax_finish_{float}"},
 *          .when = "long rows, too few to fill the device", .applies = has_few_long_rows, .measured_on = "H200"},
 *         {.name = "rows", .kernels = {"softmax_{float}"}, .when = "all others"},
 *     };
 *     RDNA_ROUTES(rdna__softmax_routes, "softmax", routes)
 *
 * The name of a kernel is a pattern: {a|b} stands for one of these words, {float} for one of a set that
 * rdna__word_sets names. The caller fills in the words. */
#ifndef RDNA_MATH_COMMON_PLAN_ROUTE_H
#define RDNA_MATH_COMMON_PLAN_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "rdna/kernel.h"

enum { RDNA__ROUTE_KERNELS = 6, RDNA__ROUTE_NAME = 64 };

typedef struct rdna__route rdna__route;
struct rdna__route {
  const char *name; /* unique within the table; where the tuner chooses, its name of the candidate */
  const char *kernels[RDNA__ROUTE_KERNELS];                       /* in the order of their launch */
  const char *when;                                               /* the condition in words, or what the row is for */
  bool (*applies)(const rdna__route *route, const void *problem); /* NULL: always */
  /* Estimates the time; the row of the least cost among those that apply is taken. NULL in all rows of a table in which
   * the first row that applies is taken. */
  double (*cost)(const rdna__route *route, const void *problem);
  const char *measured_on; /* the card on which the row's constants were measured; NULL if there are none */
};

/* The rows of one choice. A family may use larger structs as rows, which begin with a rdna__route. */
typedef struct rdna__route_table {
  const char *title;  /* the operators it serves */
  const char *source; /* the file that holds it */
  const void *first;
  size_t stride; /* bytes from row to row */
  int count;
  bool fixed; /* nothing is chosen: each row is a step, which the operator picks by its index */
} rdna__route_table;

#define RDNA_ROUTES(table, title, rows) RDNA_ROUTES_(table, title, rows, false)
#define RDNA_FIXED_ROUTES(table, title, rows) RDNA_ROUTES_(table, title, rows, true)
#define RDNA_ROUTES_(table, title, rows, fixed) \
  extern const rdna__route_table table;         \
  const rdna__route_table table = {title, __FILE__, rows, sizeof *(rows), (int)(sizeof(rows) / sizeof *(rows)), fixed};

static inline const rdna__route *rdna__route_at(const rdna__route_table *table, int index) {
  return (const rdna__route *)((const char *)table->first + (size_t)index * table->stride);
}

/* Returns the row for |problem|, which is passed to the functions of the table: the first that applies or, where rows
 * have a cost, the one of the least (the first of equals). NULL when none applies. */
const rdna__route *rdna__route_choose(const rdna__route_table *table, const void *problem);

/* Writes |pattern| to |name| with its braces replaced by |words|, in order. */
const char *rdna__route_kernel(char name[RDNA__ROUTE_NAME], const char *pattern, const char *const *words);

/* Launches kernel |step| of |route|; the words of its name follow. */
#define RDNA__ROUTE_LAUNCH(stream, route, step, grid, args, ...) \
  rdna__route_launch(stream, (route)->kernels[step], grid, args, (const char *const[]){__VA_ARGS__})
rdna_status rdna__route_launch(rdna_stream *stream, const char *pattern, rdna_grid grid, const void *args,
                               const char *const *words);

/* Returns the word for {bits} of a value of 1, 2, 4, 8 or 16 bytes. */
static inline const char *rdna__route_bits(size_t bytes) {
  return bytes == 1 ? "8" : bytes == 2 ? "16" : bytes == 4 ? "32" : bytes == 8 ? "64" : "128";
}

/* All tables, and what the sets in the braces of names stand for: src/math/routes.c. */
extern const rdna__route_table *const rdna__route_tables[];
extern const int rdna__route_table_count;
typedef struct rdna__word_set {
  const char *name, *words; /* "float", "f32|f16|bf16" */
} rdna__word_set;
extern const rdna__word_set rdna__word_sets[];
extern const int rdna__word_set_count;

/* Visits each name that |pattern| stands for, until |visit| returns false; returns false then. */
bool rdna__route_expand(const char *pattern, bool (*visit)(void *context, const char *name), void *context);
/* Returns whether |name| is one of the names that |pattern| stands for. */
bool rdna__route_matches(const char *pattern, const char *name);

#endif
