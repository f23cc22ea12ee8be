/* Rows of the operators of index.h for arguments_test.c. */
#ifndef RDNA_MATH_INDEX_INDEX_ARGUMENTS_H
#define RDNA_MATH_INDEX_INDEX_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define DIM_OF_TWO (int)number("dim", 1, "-1", "2 -3")
#define OUTSIDE outside_word()
static uint32_t *outside_word(void) {
  static uint32_t word;
  return &word;
}
#define IDS(name) in(name, ANY(RDNA_I64, INDICES), STRIDED, SHAPE(B))

OPERATOR(gather, plain, .types = PLAIN, .empty = "B") {
  return rdna_op_gather(stream, in("x", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                        in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                        out("out", MAIN, STRIDED, SHAPE(M, B)), OUTSIDE);
}
OPERATOR(index_select, plain, .types = PLAIN, .empty = "MB") {
  return rdna_op_index_select(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), DIM_OF_TWO, IDS("indices"),
                              out("out", MAIN, STRIDED, SHAPE(M, B)), OUTSIDE);
}
OPERATOR(index, plain, .types = PLAIN, .empty = "MB") {
  const rdna_tensor *indices[RDNA_MAX_RANK] = {NULL,
                                               in("indices[1] indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(B))};
  return rdna_op_index(stream, in("x", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), given("indices", indices),
                       out("out", MAIN, STRIDED, SHAPE(M, B)), OUTSIDE);
}
OPERATOR(embedding, plain, .types = PLAIN, .empty = "NB") {
  return rdna_op_embedding(stream, in("table", MAIN, STRIDED | FREE, SHAPE(M, N)), IDS("ids"),
                           out("out", MAIN, STRIDED, SHAPE(B, N)), OUTSIDE);
}
#define EMBED_AS_F32(also)                                                               \
  rdna_op_embedding(stream, in("table", MAIN_OR(FLOATS | QUANTIZED), FREE, SHAPE(M, K)), \
                    in("ids", ONLY(RDNA_I32), 0, SHAPE(B)), out("out", ANY(RDNA_F32, also), 0, SHAPE(B, K)), NULL)
OPERATOR(embedding, f16, .types = BIT(RDNA_F16), .besides = PLAIN | QUANTIZED, .empty = "KB") {
  return EMBED_AS_F32(BIT(RDNA_F16));
}
OPERATOR(embedding, bf16, .types = BIT(RDNA_BF16), .besides = PLAIN | QUANTIZED, .empty = "KB") {
  return EMBED_AS_F32(BIT(RDNA_BF16));
}
OPERATOR(embedding, blocks, .types = QUANTIZED, .besides = PLAIN, .empty = "KB") { return EMBED_AS_F32(0); }
OPERATOR(embedding_bag, plain, .types = REALS, .empty = "NB") {
  return rdna_op_embedding_bag(
      stream, (rdna_bag)number("mode", RDNA_BAG_SUM, "", "-1 3"), in("table", MAIN, FREE, SHAPE(M, N)),
      in("indices", ONLY(RDNA_I64), 0, SHAPE(B)), in("begins", ONLY(RDNA_I64), 0, SHAPE(K)), false,
      in("weights", MAIN, OPTIONAL, SHAPE(B)), (int64_t)number("padding", -1, "0 1", "-2 1000"),
      out("out", MAIN, 0, SHAPE(K, N)), out("largest", ONLY(RDNA_I64), OPTIONAL, SHAPE(K, N)),
      out("bag_of", ONLY(RDNA_I64), OPTIONAL, SHAPE(B)), out("sizes", ONLY(RDNA_I64), OPTIONAL, SHAPE(K)), OUTSIDE);
}
#define MODE(bad) (rdna_scatter) number("mode", RDNA_SCATTER_ADD, "0 1", bad)
OPERATOR(scatter, joined, .types = NUMBERS, .empty = "MB") {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), MODE("-1 7"), true, OUTSIDE);
}
OPERATOR(scatter, assigned, .types = PLAIN, .empty = "MB") {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), 1,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), RDNA_SCATTER_ASSIGN, true, OUTSIDE);
}
OPERATOR(scatter, last, .types = PLAIN) {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), 1,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), RDNA_SCATTER_LAST, true, OUTSIDE);
}
OPERATOR(scatter, mean, .types = (REALS | INTEGERS) - BIT(RDNA_BOOL), .besides = UNSIGNED) {
  return rdna_op_scatter(stream, out("dst", MAIN, STRIDED | FREE_ALL, SHAPE(M, N)), 1,
                         in("indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(M, B)),
                         in("src", MAIN, STRIDED | FREE_ALL, SHAPE(M, B)), RDNA_SCATTER_MEAN, true, OUTSIDE);
}
OPERATOR(scatter_value, plain, .types = PLAIN, .empty = "MB") {
  return rdna_op_scatter_value(stream, out("dst", MAIN_OR(PLAIN), STRIDED | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                               in("indices", ANY(RDNA_I64, INDICES), STRIDED | FREE << 1, SHAPE(M, B)), two, OUTSIDE);
}
OPERATOR(index_copy, plain, .types = NUMBERS, .empty = "MB") {
  return rdna_op_index_copy(stream, out("dst", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), DIM_OF_TWO, IDS("indices"),
                            in("src", MAIN, STRIDED, SHAPE(M, B)), MODE("-1 7"), true, OUTSIDE);
}
OPERATOR(index_fill, plain, .types = PLAIN, .empty = "MB") {
  return rdna_op_index_fill(stream, out("dst", MAIN_OR(PLAIN), STRIDED | MORE_DIMS | FREE_ALL, SHAPE(M, N)), DIM_OF_TWO,
                            in("indices", ANY(RDNA_I64, INDICES), STRIDED | FREE, SHAPE(B)), two, OUTSIDE);
}
OPERATOR(index_put, plain, .types = NUMBERS, .empty = "MB") {
  const rdna_tensor *indices[RDNA_MAX_RANK] = {NULL,
                                               in("indices[1] indices", ANY(RDNA_I64, INDICES), STRIDED, SHAPE(B))};
  return rdna_op_index_put(stream, out("dst", MAIN, STRIDED | FREE << 1, SHAPE(M, N)), given("indices", indices),
                           in("values", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, B)), MODE("-1 3 4 5 6 7"), OUTSIDE);
}
OPERATOR(embedding_backward, plain, .types = REALS, .empty = "NB") {
  return rdna_op_embedding_backward(stream, in("dout", MAIN, STRIDED, SHAPE(B, N)), IDS("ids"),
                                    (int64_t)number("padding", 1, "-1 0", "3 -2"), true,
                                    out("dtable", MAIN, STRIDED | FREE, SHAPE(M, N)), OUTSIDE);
}
OPERATOR(nonzero_count, plain, .types = PLAIN, .empty = "MN") {
  return rdna_op_nonzero_count(stream, in("x", MAIN_OR(PLAIN), ANY_PLACES, SHAPE(M, N)),
                               out("out", ONLY(RDNA_I64), 0, ONE));
}
OPERATOR(nonzero, plain, .types = PLAIN, .empty = "MNB") {
  return rdna_op_nonzero(stream, in("x", MAIN_OR(PLAIN), STRIDED | FREE_ALL, SHAPE(M, N)),
                         out("out", ONLY(RDNA_I64), FREE, SHAPE(B, 2)));
}
OPERATOR(masked_select, plain, .types = PLAIN, .empty = "MNB") {
  return rdna_op_masked_select(stream, in("x", MAIN, STRIDED, SHAPE(M, N)),
                               in("mask", ANY(RDNA_BOOL, BYTES), STRIDED, SHAPE(M, N)),
                               out("out", MAIN, FREE, SHAPE(B)));
}
OPERATOR(masked_scatter, plain, .types = PLAIN, .empty = "MNB") {
  return rdna_op_masked_scatter(stream, out("dst", MAIN, STRIDED, SHAPE(M, N)),
                                in("mask", ANY(RDNA_BOOL, BYTES), STRIDED, SHAPE(M, N)),
                                in("src", MAIN, STRIDED | FREE | MORE_DIMS | FEWER_DIMS, SHAPE(B)));
}

#endif
