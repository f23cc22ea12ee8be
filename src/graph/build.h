/* Short names for what gradients are recorded from. Each returns NULL when something failed before. */
#ifndef RDNA_GRAPH_BUILD_H
#define RDNA_GRAPH_BUILD_H

#include "graph/node.h"

static const rdna_scalar rdna__nothing = {0, 0};

/* All of |like|'s shape, or one value of its type. */
rdna_node *rdna__full_like(rdna_recorder *r, const rdna_node *like, double value);
rdna_node *rdna__number(rdna_recorder *r, const rdna_node *like, double value);
/* |x| summed over the dimensions that broadcasting gave it, to |like|'s shape. */
rdna_node *rdna__sum_to(rdna_recorder *r, rdna_node *x, const rdna_node *like);
/* Result |index| of an operator that has several. */
rdna_node *rdna__part(rdna_recorder *r, rdna_node *of, int index);
/* The same values as a node of its own. */
rdna_node *rdna__pass(rdna_recorder *r, rdna_node *x);
/* Gradients of the results |outputs| by |inputs| where these are taken as if nothing stood before them. NULL for what
 * there is no path to. */
rdna_status rdna__differentiate(rdna_recorder *r, rdna_node *const *outputs, int output_count, rdna_node *const *seeds,
                                rdna_node *const *inputs, int input_count, bool partial, rdna_node **out);
/* For a rule: records the results of |node| again, of |inputs|, by operators that have gradients. */
typedef void rdna__composition(rdna_recorder *r, const rdna_node *node, rdna_node *const *inputs, rdna_node **out);
/* The gradients of what |compose| records. */
void rdna__gradient_of(rdna__composition *compose, rdna_recorder *r, rdna_node *node, rdna_node *const *upstream,
                       rdna_node **out);
/* Records the gradients of what |forward| records of |inputs|, for results whose gradients |seeds| are: the gradient of
 * an operator that is a gradient itself, and whose inputs these are, is had by differentiating this again. */
void rdna__record_backward(rdna__composition *forward, rdna_recorder *r, const rdna_node *node,
                           rdna_node *const *inputs, int input_count, rdna_node *const *seeds, rdna_node **out);
/* movement.c: |rows|, of two dimensions, as batches of rows of |type|'s shape. Nobody else has |rows|: operations on
 * values that see through the shape read them, and what comes to them is what comes to the batches. NULL: |x| is none
 * such. */
rdna_node *rdna__record_batches(rdna_recorder *r, rdna_node *rows, const rdna__type *type);
rdna_node *rdna__rows_behind(const rdna_node *x);
/* norm.c: whether |node| finds means and unbiased variances of channels, its results 1 and 3. */
bool rdna__is_batch_norm(const rdna_node *node);
/* Casts |count| nodes behind the first to its type, but those that are NULL. */
void rdna__cast_to_first(rdna_recorder *r, rdna_node **nodes, int count);

static inline rdna_node *zip(rdna_recorder *r, rdna_zip op, rdna_node *a, rdna_node *b) {
  return rdna_record_zip(r, a, b, op, rdna__nothing, rdna__nothing);
}
static inline rdna_node *map(rdna_recorder *r, rdna_map op, rdna_node *x) {
  return rdna_record_map(r, x, op, rdna__nothing, rdna__nothing);
}
static inline rdna_node *add(rdna_recorder *r, rdna_node *a, rdna_node *b) { return zip(r, RDNA_ZIP_ADD, a, b); }
static inline rdna_node *sub(rdna_recorder *r, rdna_node *a, rdna_node *b) { return zip(r, RDNA_ZIP_SUB, a, b); }
static inline rdna_node *mul(rdna_recorder *r, rdna_node *a, rdna_node *b) { return zip(r, RDNA_ZIP_MUL, a, b); }
static inline rdna_node *quotient(rdna_recorder *r, rdna_node *a, rdna_node *b) { return zip(r, RDNA_ZIP_DIV, a, b); }
static inline rdna_node *negative(rdna_recorder *r, rdna_node *x) { return map(r, RDNA_MAP_NEG, x); }
static inline rdna_node *square(rdna_recorder *r, rdna_node *x) { return map(r, RDNA_MAP_SQUARE, x); }
/* x p + q */
static inline rdna_node *affine(rdna_recorder *r, rdna_node *x, double p, double q) {
  return rdna_record_map(r, x, RDNA_MAP_AFFINE, rdna_scalar_real(p), rdna_scalar_real(q));
}
static inline rdna_node *power(rdna_recorder *r, rdna_node *x, double exponent) {
  return rdna_record_map(r, x, RDNA_MAP_POW, rdna_scalar_real(exponent), rdna__nothing);
}
/* |x| where |a| compared with |b|, else |y|. */
static inline rdna_node *choose(rdna_recorder *r, rdna_compare op, rdna_node *a, rdna_node *b, rdna_node *x,
                                rdna_node *y) {
  return rdna_record_where(r, rdna_record_compare(r, a, b, op), x, y);
}

#endif
