/* Rows of the operators of rope.h for arguments_test.c: tokens M, heads B, heads of N, of which 4 values are rotated.
 */
#ifndef RDNA_MATH_ROPE_ROPE_ARGUMENTS_H
#define RDNA_MATH_ROPE_ROPE_ARGUMENTS_H

#include "math/common/test/arguments.h"

static const rdna_rope *rope(void) {
  static rdna_rope r;
  r = (rdna_rope){RDNA_ROPE_INIT, .layout = (rdna_rope_layout)number("layout", RDNA_ROPE_LAYOUT_HALVES, "0", "-1 2"),
                  .positions = in("positions", ONLY(RDNA_I32), 0, SHAPE(M)),
                  .inv_freq = in("inv_freq", ONLY(RDNA_F32), FREE, SHAPE(2)), .scale = 1};
  return given_options("rope", &r);
}
#define NORM(name) in(name, ONLY(RDNA_F32), OPTIONAL, SHAPE(N))
static const rdna_rope *rope_with_norms(bool with_q) {
  static rdna_rope r;
  r = (rdna_rope){RDNA_ROPE_INIT,
                  .positions = in("positions", ONLY(RDNA_I32), 0, SHAPE(M)),
                  .inv_freq = in("inv_freq", ONLY(RDNA_F32), FREE, SHAPE(2)),
                  .scale = 1,
                  .k_norm = NORM("k_norm"),
                  .v_norm = NORM("v_norm"),
                  .epsilon = EPSILON};
  if (with_q) r.q_norm = NORM("q_norm");
  return given_options("rope", &r);
}
#define HALF_OR_F32 (BIT(RDNA_F32) | BIT(RDNA_F16))
OPERATOR(rope, plain, .types = HALF_OR_F32, .empty = "MB", .same = "out=x") {
  return rdna_op_rope(stream, rope(), in("x", MAIN, 0, SHAPE(M, B, N)), out("out", MAIN, 0, SHAPE(M, B, N)));
}
OPERATOR(rope, a_table_too_long, .types = F32, .besides = BIT(RDNA_F16), .same = "out=x") {
  const rdna_rope r = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_HALVES, in("positions", ONLY(RDNA_I32), 0, SHAPE(M)),
                       in("inv_freq", ONLY(RDNA_F32), 0, SHAPE(N / 2)), 1};
  return rdna_op_rope(stream, &r, in("x", MAIN, 0, SHAPE(M, B, N)), out("out", MAIN, 0, SHAPE(M, B, N)));
}
#define KV(name) in(name, ONLY(RDNA_F32), 0, SHAPE(M, B, N))
#define CACHE(name) out(name, MAIN, 0, SHAPE(5, B, N))
#define CACHE_ROW in("cache_row", ONLY(RDNA_I32), 0, SHAPE(M))
OPERATOR(rope_kv_write, plain, .types = FLOATS, .empty = "MB") {
  return rdna_op_rope_kv_write(stream, rope(), KV("k"), KV("v"), CACHE_ROW, CACHE("k_cache"), CACHE("v_cache"));
}
OPERATOR(rope_kv_write, normed, .types = FLOATS, .empty = "MB") {
  return rdna_op_rope_kv_write(stream, rope_with_norms(false), KV("k"), KV("v"), CACHE_ROW, CACHE("k_cache"),
                               CACHE("v_cache"));
}
OPERATOR(rope_qkv_write, normed, .types = FLOATS, .empty = "M") {
  return rdna_op_rope_qkv_write(stream, rope_with_norms(true), out("q", ONLY(RDNA_F32), FREE << 1, SHAPE(M, 4, N)),
                                KV("k"), KV("v"), CACHE_ROW, CACHE("k_cache"), CACHE("v_cache"));
}
OPERATOR(rope_qkv_write_to, normed, .types = FLOATS, .empty = "M") {
  return rdna_op_rope_qkv_write_to(stream, rope_with_norms(true), in("q", ONLY(RDNA_F32), 0, SHAPE(M, 4, N)), KV("k"),
                                   KV("v"), CACHE_ROW, out("q_out", MAIN, 0, SHAPE(M, 4, N)), CACHE("k_cache"),
                                   CACHE("v_cache"));
}
OPERATOR(rope_qkv_write, plain, .types = FLOATS, .empty = "M") {
  return rdna_op_rope_qkv_write(stream, rope(), out("q", ONLY(RDNA_F32), FREE << 1, SHAPE(M, 4, N)), KV("k"), KV("v"),
                                CACHE_ROW, CACHE("k_cache"), CACHE("v_cache"));
}
OPERATOR(rope_qkv_write_to, plain, .types = FLOATS, .empty = "M") {
  return rdna_op_rope_qkv_write_to(stream, rope(), in("q", ONLY(RDNA_F32), 0, SHAPE(M, 4, N)), KV("k"), KV("v"),
                                   CACHE_ROW, out("q_out", MAIN, 0, SHAPE(M, 4, N)), CACHE("k_cache"),
                                   CACHE("v_cache"));
}

#endif
