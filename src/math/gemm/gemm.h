/* What the operators over matrix products share. */
#ifndef RDNA_MATH_GEMM_H
#define RDNA_MATH_GEMM_H

#include <stdbool.h>

#include "base/status.h"
#include "kernel/tuner.h"
#include "math/common/plan/route.h"
#include "math/gemm/gemv_kernels.h"
#include "rdna/kernel.h"
#include "rdna/op/gemm.h"
#include "rdna/tensor.h"

/* A matrix, or a batch of them, as the kernels see it. */
typedef struct rdna__matrix {
  int64_t rows, columns, batch;
  int64_t ld, stride; /* elements between rows as stored, and between matrices */
  bool transposed;    /* element (i, j) lies at j * ld + i instead of i * ld + j */
} rdna__matrix;

/* Reads the last two dimensions of |tensor|, of rank 2 or 3. RDNA_UNSUPPORTED when neither is contiguous. */
rdna_status rdna__matrix_view(const char *op_name, const char *argument, const rdna_tensor *tensor,
                              rdna__matrix *out_matrix);

/* The matrix that is written: not transposed, and no element twice. */
rdna_status rdna__matrix_check_written(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                       const rdna__matrix *matrix);

rdna_status rdna__check_activation(const char *op_name, rdna_activation activation);

/* The activation, the bias and the residual of an epilogue into |c|; |*out_residual| is where the last lies. */
rdna_status rdna__gemm_check_epilogue(const char *op_name, const rdna_gemm_epilogue *epilogue, const rdna_tensor *c,
                                      rdna__matrix *out_residual);
/* All of a checked one into |args|, whose flags it adds to. */
void rdna__gemm_set_epilogue(const rdna_gemm_epilogue *epilogue, const rdna__matrix *residual, struct gemm_args *args);

/* |bias|, unless it is NULL, is a contiguous (size) of |out|'s type and apart from it; |meaning| says of what. */
rdna_status rdna__check_bias(const char *op_name, const rdna_tensor *bias, const rdna_tensor *out, int64_t size,
                             const char *meaning);

/* What matrix units take as it lies. */
static inline bool rdna__gemm_is_half(rdna_dtype type) { return type == RDNA_F16 || type == RDNA_BF16; }

/* The most of m, n and k: kernels count in 31 bits, and tiles and steps end a little past the size. */
enum { RDNA__GEMM_SIZE_MAX = INT32_MAX - 65535 };

/* A row of gemm_product.h. */
typedef struct rdna__gemm_product rdna__gemm_product;

/* What is to be multiplied: |args| is complete, with a batch that one launch can count. */
typedef struct rdna__gemm_problem {
  rdna_dtype types[3]; /* A, B, C */
  struct gemm_args args;
  const rdna_device_info *device;
  /* NULL, or what takes the place of the routes below, for other types than theirs. */
  rdna_status (*own)(rdna_stream *stream, const struct gemm_args *args);
  const char *own_families;          /* of its kernels, for the tuner */
  const rdna__gemm_product *product; /* the kernels for the types; NULL with |own| */
  struct gemv_steps steps;           /* all zero but where rdna__gemm_run_stepped runs it */
} rdna__gemm_problem;

/* One way to multiply. All of them that apply give the same sums in another order. */
typedef struct rdna__gemm_route rdna__gemm_route;
struct rdna__gemm_route {
  rdna__route route; /* of a rdna__gemm_problem */
  rdna_status (*run)(const rdna__gemm_route *route, rdna_stream *stream, const char *op_name,
                     const rdna__gemm_problem *problem);
  int variant, rows, columns; /* of kernel; its tile, or the most rows of A */
  bool aligned;               /* with 16-bit types, rows of A and B must lie at multiples of 16 bytes */
  /* of the rate that a device reaches on a large product: in f32, on matrix units, and on those that run by
   * themselves */
  double share, mma_share, wgmma_share;
  uint32_t group_bytes; /* of group memory for 16-bit types where copies are asynchronous */
};
extern const rdna__gemm_route rdna__gemm_rows[];
extern const int rdna__gemm_row_count;

/* The families of the kernels that they run for the problem, with spaces between. */
void rdna__gemm_families(const rdna__gemm_problem *problem, char text[RDNA__TUNER_TEXT]);

/* Runs the one that was measured to be the fastest, a vendor's among them, or the one of the least cost; see
 * rdna/tune.h. */
rdna_status rdna__gemm_run(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem);

/* The implementation that applies with the least cost. Never NULL. */
const rdna__gemm_route *rdna__gemm_choose(const rdna__gemm_problem *problem);

/* Whether a product of one row can have the steps around it that |problem| says, by the kernel for vectors; and runs
 * it. */
bool rdna__gemm_is_stepped(const rdna__gemm_problem *problem);
rdna_status rdna__gemm_run_stepped(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem);

/* The kernels for dense types, or NULL. */
const rdna__gemm_product *rdna__gemm_dense_product(const rdna_dtype types[3]);

/* (m, k) times (k, n) into (m, n), all with a batch in front or none. */
rdna_status rdna__gemm_check_shapes(const char *op_name, const rdna_tensor *a, const rdna_tensor *b,
                                    const rdna_tensor *c);

/* Chooses the implementation for the types and the shape and queues it; |args| is complete but for m, n, k and batch.
 * RDNA_UNSUPPORTED: no kernel for these types, or a size past 31 bits. */
rdna_status rdna__gemm_launch(rdna_stream *stream, const char *op_name, const rdna_dtype types[3],
                              struct gemm_args args, int64_t m, int64_t n, int64_t k, int64_t batch);
/* The same with kernels that another family brings; NULL: there are none for the types, RDNA_UNSUPPORTED. */
rdna_status rdna__gemm_launch_product(rdna_stream *stream, const char *op_name, const rdna__gemm_product *product,
                                      const rdna_dtype types[3], struct gemm_args args, int64_t m, int64_t n, int64_t k,
                                      int64_t batch);

#endif
