/* Rows of the operators of fused.h and pointwise.h for arguments_test.c. */
#ifndef RDNA_MATH_POINTWISE_POINTWISE_ARGUMENTS_H
#define RDNA_MATH_POINTWISE_POINTWISE_ARGUMENTS_H

#include "math/common/test/arguments.h"

/* ---- fused.h ---- */

OPERATOR(fused, plain, .types = FLOATS, .empty = "MN", .same = "out=inputs[0] out=inputs[1]") {
  static rdna_fused_step steps[RDNA_FUSED_MAX_STEPS + 1];
  for (int i = 0; i <= RDNA_FUSED_MAX_STEPS; i++) steps[i] = (rdna_fused_step){.op = RDNA_MAP_ABS};
  steps[1] = (rdna_fused_step){.op = (int)number("op operation", RDNA_ZIP_ADD, "", "-1 1000"),
                               .is_zip = true,
                               .input = (int)number("input", 1, "0", "-1 2")};
  const rdna_tensor *inputs[] = {in("inputs[0]", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)),
                                 in("inputs[1]", MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_fused(stream, given("steps", steps), (int)number("steps", 2, "16", "0 -1 17"), given("inputs", inputs),
                       (int)number("inputs", 2, "", "0 -1 7"), out("out", MAIN, STRIDED | MORE_DIMS, SHAPE(M, N)));
}

/* ---- pointwise.h ---- */

#define VALUES_IN MAIN, STRIDED | FEWER_DIMS, SHAPE(M, N)
#define VALUES_OUT MAIN, STRIDED | MORE_DIMS, SHAPE(M, N)
OPERATOR(map, numbers, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  return rdna_op_map(stream, (rdna_map)number("op operation", RDNA_MAP_ABS, "1 5", "-1 1000"), in("x", VALUES_IN), two,
                     two, out("out", VALUES_OUT));
}
OPERATOR(map, integers, .types = INTEGERS | UNSIGNED, .same = "out=x") {
  return rdna_op_map(stream, RDNA_MAP_BITWISE_NOT, in("x", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(map, reals, .types = REALS, .same = "out=x") {
  return rdna_op_map(stream, RDNA_MAP_EXP, in("x", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip, numbers, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_zip(stream, (rdna_zip)number("op operation", RDNA_ZIP_ADD, "1 11", "-1 1000"), in("a", VALUES_IN),
                     in("b", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip, reals, .types = REALS, .same = "out=a out=b") {
  return rdna_op_zip(stream, RDNA_ZIP_LERP, in("a", VALUES_IN), in("b", VALUES_IN), two, two, out("out", VALUES_OUT));
}
OPERATOR(zip_scalar, plain, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  return rdna_op_zip_scalar(stream, (rdna_zip)number("op operation", RDNA_ZIP_ADD, "1 11", "-1 1000"),
                            in("x", VALUES_IN), two, number("scalar_first", 0, "1", "") != 0, two, two,
                            out("out", VALUES_OUT));
}
OPERATOR(zip3, plain, .types = NUMBERS, .empty = "MN", .same = "out=a out=b out=c") {
  return rdna_op_zip3(stream, (rdna_zip3)number("op operation", RDNA_ZIP3_FMA, "1 2", "-1 1000"), in("a", VALUES_IN),
                      in("b", VALUES_IN), in("c", VALUES_IN), two, out("out", VALUES_OUT));
}
#define ITEMS(form, ...)                                                   \
  static rdna_pointwise items[2];                                          \
  items[0] = (rdna_pointwise){__VA_ARGS__, .out = out("out", VALUES_OUT)}; \
  items[1] = items[0];                                                     \
  return form(stream, op, given("items", items), (int)number("count", 2, "1 0", "-1")
OPERATOR(map_each, plain, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  rdna_map op = (rdna_map)number("op operation", RDNA_MAP_ABS, "1 5", "-1 1000");
  ITEMS(rdna_op_map_each, .a = in("x", VALUES_IN)), two, two);
}
OPERATOR(zip_each, plain, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  rdna_zip op = (rdna_zip)number("op operation", RDNA_ZIP_ADD, "1 11", "-1 1000");
  ITEMS(rdna_op_zip_each, .a = in("a", VALUES_IN), .b = in("b", VALUES_IN)), two, two);
}
OPERATOR(zip_scalar_each, plain, .types = NUMBERS, .empty = "MN", .same = "out=x") {
  rdna_zip op = (rdna_zip)number("op operation", RDNA_ZIP_ADD, "1 11", "-1 1000");
  ITEMS(rdna_op_zip_scalar_each, .a = in("x", VALUES_IN)), two, number("scalar_first", 0, "1", "") != 0, two, two);
}
OPERATOR(zip3_each, plain, .types = NUMBERS, .empty = "MN", .same = "out=a out=b out=c") {
  rdna_zip3 op = (rdna_zip3)number("op operation", RDNA_ZIP3_FMA, "1 2", "-1 1000");
  ITEMS(rdna_op_zip3_each, .a = in("a", VALUES_IN), .b = in("b", VALUES_IN), .c = in("c", VALUES_IN)), two);
}
#undef ITEMS
OPERATOR(compare, two, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_compare(stream, (rdna_compare)number("op operation", RDNA_COMPARE_LT, "0 8", "-1 1000"),
                         in("a", VALUES_IN), in("b", VALUES_IN),
                         out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(compare, one, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_compare(stream, (rdna_compare)number("op operation", RDNA_COMPARE_ISNAN, "9 11 12", ""),
                         in("a", MAIN_OR(NUMBERS), STRIDED | FEWER_DIMS, SHAPE(M, N)), NULL,
                         out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
OPERATOR(compare_scalar, plain, .types = NUMBERS, .empty = "MN", .same = "out=a out=b") {
  return rdna_op_compare_scalar(stream, (rdna_compare)number("op operation", RDNA_COMPARE_LT, "0 8", "-1 1000"),
                                in("a", MAIN_OR(NUMBERS), STRIDED | FEWER_DIMS, SHAPE(M, N)), two,
                                out("out", ONLY(RDNA_BOOL), STRIDED | MORE_DIMS, SHAPE(M, N)));
}
#define CONDITION in("condition", ONLY(RDNA_BOOL), STRIDED | FEWER_DIMS, SHAPE(M, N))
OPERATOR(where, plain, .types = PLAIN, .empty = "MN", .same = "out=a out=b out=condition") {
  return rdna_op_where(stream, CONDITION, in("a", VALUES_IN), in("b", VALUES_IN), out("out", VALUES_OUT));
}
OPERATOR(masked_fill, plain, .types = PLAIN, .empty = "MN", .same = "out=b out=condition") {
  return rdna_op_masked_fill(stream, CONDITION, two, in("b", VALUES_IN), out("out", VALUES_OUT));
}

OPERATOR(swiglu, plain, .types = FLOATS, .empty = "MN", .same = "out=gate out=up") {
  return rdna_op_swiglu(stream, in("gate", MAIN, 0, SHAPE(M, N)), in("up", MAIN, 0, SHAPE(M, N)),
                        out("out", MAIN, 0, SHAPE(M, N)));
}

#endif
