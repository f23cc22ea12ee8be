/* Parts of the matrices of a batch, which are cut and transposed without being moved: blocks of factorizations. */
#ifndef RDNA_MATH_LINALG_PARTS_H
#define RDNA_MATH_LINALG_PARTS_H

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "rdna/stream.h"

/* A part of each matrix of a batch; element (i, j) lies at i * row + j * column, and one of these two is 1. */
typedef struct rdna__part {
  char *data;
  int64_t rows, columns, row, column, stride;
} rdna__part;

/* What all parts that an operator works on have in common. */
typedef struct rdna__parts {
  rdna_stream *stream;
  const char *name; /* the operator's */
  rdna_dtype dtype;
  int64_t batch;
} rdna__parts;

rdna__part rdna__part_cut(const rdna__parts *w, rdna__part p, int64_t row, int64_t rows, int64_t column,
                          int64_t columns);
static inline rdna__part rdna__part_transposed(rdna__part p) {
  return (rdna__part){p.data, p.columns, p.rows, p.column, p.row, p.stride};
}

/* Gives (batch, rows, columns) of f32 or f64 as a part, and sets |w|'s type and batch. */
rdna_status rdna__part_check(rdna__parts *w, const char *argument, const rdna_tensor *t, rdna__part *out_part);
/* Checks that no two of its values lie in one place. */
rdna_status rdna__part_check_written(const rdna__parts *w, const char *argument, const rdna_tensor *t, rdna__part p);
/* Checks a contiguous tensor of |dtype| and of |rank|, the first of whose sizes is the batch. */
rdna_status rdna__part_check_beside(const rdna__parts *w, const char *argument, const rdna_tensor *t, rdna_dtype dtype,
                                    int rank);
/* Checks that kernels can count the rows in 32 bits. */
rdna_status rdna__part_check_rows(const rdna__parts *w, const char *argument, int64_t rows);
/* Checks a contiguous i32 (batch) or, with |count| not negative, (batch, count). */
rdna_status rdna__part_check_numbers(const rdna__parts *w, const char *argument, const rdna_tensor *t, int64_t count);

/* Launches the kernel of |route| for |units|, which its groups take in turn. */
rdna_status rdna__part_launch(const rdna__parts *w, const rdna__route *route, uint32_t units, const void *args);

/* c = alpha a b + beta c. Parts of one matrix lie between each other, which rdna_op_gemm takes for overlap. */
rdna_status rdna__part_product(const rdna__parts *w, float alpha, rdna__part a, rdna__part b, float beta, rdna__part c);
static inline rdna_status rdna__part_subtract(const rdna__parts *w, rdna__part a, rdna__part b, rdna__part c) {
  return a.columns == 0 ? RDNA_OK : rdna__part_product(w, -1, a, b, 1, c);
}
/* x becomes the solution of l x' = x, for a block of up to TRIANGULAR_BLOCK rows. */
rdna_status rdna__part_solve(const rdna__parts *w, rdna__part l, bool upper, bool unit, rdna__part x);

#endif
