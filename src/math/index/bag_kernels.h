/* Sums, means and largest values of bags of rows of a table. Indices name the rows, one bag behind another:
 *
 *     indices   7 1 | 3 3 9 | | 4 0      bags of 2, 3, 0 and 2 rows
 *     begins    0     2     5   5 */
#ifndef RDNA_MATH_INDEX_BAG_KERNELS_H
#define RDNA_MATH_INDEX_BAG_KERNELS_H

#include <stdint.h>

enum { BAG_THREADS = 256 };
enum { BAG_SUM, BAG_MEAN, BAG_MAX };

/* A bag ends where the next begins; the last at |count|, or at begins[bags] where |has_end|. |lanes| threads, a power
 * of two, share a bag's columns; a group does BAG_THREADS / lanes bags at once, and groups take bags in turn. Rows are
 * added one after another, in f32, of f64 in f64. */
struct bag_args {
  const void *table;   /* (rows, cols) */
  const void *indices; /* (count) of i32 or i64 */
  const void *begins;  /* (bags + has_end), of the same type */
  const void *weights; /* (count) of the table's type, or NULL for ones */
  void *out;           /* (bags, cols) */
  int64_t *largest;    /* (bags, cols): the row that has the largest value, 0 of an empty bag; or NULL */
  int64_t *bag_of;     /* (count): the bag of each index; or NULL. Not written where there is none */
  int64_t *sizes;      /* (bags): rows that count; or NULL */
  int64_t rows, cols, table_stride, count, bags, padding; /* padding: a row that does not count, or -1 */
  uint32_t *outside; /* becomes 1 when an index is no row, which is left out; or NULL */
  uint32_t mode, lanes, has_end, indices_i64;
};

#define RDNA_BAG_KERNELS(X)                                 \
  X(bag_f32, struct bag_args, BAG_THREADS, rdna__bag_case)  \
  X(bag_f16, struct bag_args, BAG_THREADS, rdna__bag_case)  \
  X(bag_bf16, struct bag_args, BAG_THREADS, rdna__bag_case) \
  X(bag_f64, struct bag_args, BAG_THREADS, rdna__bag_case)

#endif
