/* Rows of the operators of attention.h for arguments_test.c. */
#ifndef RDNA_MATH_ATTENTION_ATTENTION_ARGUMENTS_H
#define RDNA_MATH_ATTENTION_ATTENTION_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define SINKS in("sinks", ONLY(RDNA_F32), OPTIONAL, SHAPE(4))
static const rdna_attention *attention_options(void) {
  static rdna_attention a;
  a = (rdna_attention){RDNA_ATTENTION_INIT,
                       .scale = 1,
                       .softcap = (float)number("softcap", 0, "5", ""),
                       .window = (int32_t)number("window", 0, "3", "-1"),
                       .max_queries = (int32_t)number("max_queries", 1, "", "0 -1"),
                       .max_length = 5,
                       .sinks = SINKS,
                       .split = (int32_t)number("split", 0, "64", "-1")};
  return given_options("options", &a);
}
_Alignas(64) static char workspace[1 << 20];
#define CACHED(name) in(name, MAIN, ALIGNED, SHAPE(5, B, N))
#define OF_TOKENS(name) in(name, ONLY(RDNA_I32), 0, SHAPE(M))
#define QUERIES (int)number("rank", 3, "", "2 4"), (int64_t[]){M, 4, N, 1} /* of q and out together */
OPERATOR(attention, plain, .types = FLOATS, .empty = "M", .same = "out=q") {
  return rdna_op_attention(stream, attention_options(), in("q", ONLY(RDNA_F32), ALIGNED, QUERIES), CACHED("k_cache"),
                           CACHED("v_cache"), OF_TOKENS("cache_base"), OF_TOKENS("position"), workspace,
                           sizeof workspace, out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
OPERATOR(attention, caches_like_q, .types = FLOATS, .same = "out=q") {
  return rdna_op_attention(stream, attention_options(), in("q", ONLY(RDNA_F32), ALIGNED, QUERIES),
                           in("k_cache", MAIN, ALIGNED, SHAPE(M, 4, N)), in("v_cache", MAIN, ALIGNED, SHAPE(M, 4, N)),
                           OF_TOKENS("cache_base"), OF_TOKENS("position"), workspace, sizeof workspace,
                           out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
OPERATOR(attention, long_caches, .types = FLOATS, .same = "out=q") {
  const rdna_attention options = {RDNA_ATTENTION_INIT, .scale = 1, .max_queries = 1, .max_length = 1 << 20};
  size_t needed = rdna_op_attention_workspace(device, &options, M, 4, B, N);
  size_t size = (size_t)number("workspace", sizeof workspace, "", needed > 1 ? "0 1" : "");
  return rdna_op_attention(stream, &options, in("q", ONLY(RDNA_F32), ALIGNED, QUERIES), CACHED("k_cache"),
                           CACHED("v_cache"), OF_TOKENS("cache_base"), OF_TOKENS("position"), workspace, size,
                           out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
#define PAGED(name) in(name, MAIN, ALIGNED, SHAPE(5, 4, B, N))
OPERATOR(attention_paged, plain, .types = FLOATS, .empty = "M", .same = "out=q") {
  return rdna_op_attention_paged(
      stream, attention_options(), in("q", ONLY(RDNA_F32), ALIGNED, QUERIES), PAGED("k_cache"), PAGED("v_cache"),
      in("block_table", ONLY(RDNA_I32), FREE_ALL, SHAPE(2, 3)), OF_TOKENS("sequence"), OF_TOKENS("position"), workspace,
      sizeof workspace, out("out", ONLY(RDNA_F32), ALIGNED, QUERIES));
}
/* Queries and keys M, two heads of keys to four, N values each. */
static rdna_sdpa sdpa_options(void) {
  return (rdna_sdpa){RDNA_SDPA_INIT,
                     .scale = 1,
                     .softcap = (float)number("softcap", 0, "5", ""),
                     .dropout = (float)number("dropout", 0, "0.5", "-0.1 1 nan"),
                     .windowed = true,
                     .diagonal = (rdna_diagonal)number("diagonal", 0, "1", "-1 2"),
                     .left = (int32_t)number("left", 1, "0", "-1"),
                     .right = (int32_t)number("right", 1, "0", "-1")};
}
#define Q4 MAIN, STRIDED, SHAPE(B, 4, M, N)
#define K4 MAIN, STRIDED, SHAPE(B, 2, 5, N)
#define V4 MAIN, STRIDED, SHAPE(B, 2, 5, 16)
#define OUT4 MAIN, STRIDED, SHAPE(B, 4, M, 16)
#define LSE ONLY(RDNA_F32), 0, SHAPE(B, 4, M)
#define MASK MAIN_OR(F32 | BIT(RDNA_BOOL)), STRIDED | OPTIONAL, SHAPE(B, 4, M, 5)
OPERATOR(sdpa, plain, .types = FLOATS, .empty = "MB") {
  rdna_sdpa options = sdpa_options();
  options.sinks = SINKS;
  options.mask = in("mask", MASK), options.slopes = in("slopes", ONLY(RDNA_F32), OPTIONAL | FEWER_DIMS, SHAPE(B, 4));
  return rdna_op_sdpa(stream, given_options("options", &options), in("q", Q4), in("k", K4), in("v", V4),
                      out("out", OUT4), out("lse", ONLY(RDNA_F32), OPTIONAL, SHAPE(B, 4, M)));
}
OPERATOR(sdpa_backward, plain, .types = FLOATS, .empty = "MB") {
  rdna_sdpa options = sdpa_options();
  options.sinks = SINKS;
  options.mask = in("mask", MAIN, STRIDED, SHAPE(B, 4, M, 5)),
  options.slopes = in("slopes", ONLY(RDNA_F32), OPTIONAL | FEWER_DIMS, SHAPE(B, 4));
  return rdna_op_sdpa_backward(
      stream, given_options("options", &options), in("q", Q4), in("k", K4), in("v", V4), in("out", OUT4),
      in("lse", LSE), in("dout", OUT4), out("dq", MAIN, STRIDED | OPTIONAL, SHAPE(B, 4, M, N)),
      out("dk", MAIN, STRIDED | OPTIONAL, SHAPE(B, 2, 5, N)), out("dv", MAIN, STRIDED | OPTIONAL, SHAPE(B, 2, 5, 16)),
      out("dmask", MAIN, STRIDED | OPTIONAL, SHAPE(B, 4, M, 5)));
}
#define STARTS(name) in(name, ONLY(RDNA_I32), 0, SHAPE(B + 1))
OPERATOR(sdpa, of_rows, .types = FLOATS) {
  const rdna_sdpa options = {
      RDNA_SDPA_INIT,   .scale = 1,   .q_starts = STARTS("q_starts"), .k_starts = STARTS("k_starts"),
      .max_queries = 3, .max_keys = 3};
  return rdna_op_sdpa(stream, &options, in("q", MAIN, STRIDED, SHAPE(M, 4, N)), in("k", MAIN, STRIDED, SHAPE(5, 2, N)),
                      in("v", MAIN, STRIDED, SHAPE(5, 2, N)), out("out", MAIN, STRIDED, SHAPE(M, 4, N)),
                      out("lse", ONLY(RDNA_F32), OPTIONAL, SHAPE(4, M)));
}
OPERATOR(sdpa_backward, of_rows, .types = FLOATS) {
  const rdna_sdpa options = {
      RDNA_SDPA_INIT,   .scale = 1,   .q_starts = STARTS("q_starts"), .k_starts = STARTS("k_starts"),
      .max_queries = 3, .max_keys = 3};
#define ROWS_OF(heads, count) MAIN, STRIDED, SHAPE(count, heads, N)
  return rdna_op_sdpa_backward(stream, &options, in("q", ROWS_OF(4, M)), in("k", ROWS_OF(2, 5)), in("v", ROWS_OF(2, 5)),
                               in("out", ROWS_OF(4, M)), in("lse", ONLY(RDNA_F32), 0, SHAPE(4, M)),
                               in("dout", ROWS_OF(4, M)), out("dq", MAIN, STRIDED | OPTIONAL, SHAPE(M, 4, N)),
                               out("dk", MAIN, STRIDED | OPTIONAL, SHAPE(5, 2, N)),
                               out("dv", MAIN, STRIDED | OPTIONAL, SHAPE(5, 2, N)), NULL);
}

#endif
