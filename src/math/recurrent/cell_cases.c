#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/recurrent/cell_kernels.h"
#include "math/recurrent/sequences_case.h"

static const int64_t edges[][2] = {{2, 3}, {0, 4}, {3, 0}, {1, 1}, {5, 257}, {1, 600}};

/* A tensor of (rows, parts n), at |offset| of the arguments, which say at |at| how far its rows are apart; or a bias of
 * (parts n), which is where there is no |at|. Those that a call may leave out are |named| in the label. */
typedef struct part {
  rdna__buffer_role role;
  int parts;
  size_t offset;
  int64_t *at;
  const char *named;
  bool there;
} part;
#define PART(role, member, parts) {role, parts, offsetof(__typeof__(a), member), &a.member##_at, "", true}
#define IN(member, parts) PART(RDNA__IN, member, parts)
#define OUT(member, parts) PART(RDNA__OUT, member, parts)
#define MAYBE(member, there) {RDNA__IN, 1, offsetof(__typeof__(a), member), &a.member##_at, " " #member, there}
#define BIAS(member, parts, there) {RDNA__IN, parts, offsetof(__typeof__(a), member), NULL, " " #member, there}

static bool add(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int64_t rows, int64_t n, const part *p) {
  const int64_t columns = p->parts * n, stride = columns + (int64_t)rdna__random_below(random, 3);
  const int64_t count = p->at ? rows * stride : columns;
  if (p->at) *p->at = stride;
  if (p->role == RDNA__OUT) {
    rdna__case_buffer *out = case_add_unwritten(c, dtype, count, (uint32_t)p->offset);
    for (int64_t i = 0; out && i < rows; i++) case_written(out, i * stride, columns);
    if (out) rdna__case_tolerance(c, case_tiny(dtype), 16 * case_unit(dtype) + 2 * case_step(dtype));
    return out;
  }
  void *data = rdna__case_add(c, p->role, dtype, count, (uint32_t)p->offset);
  if (data) case_fill_doubles(random, dtype, data, count, 0);
  return data;
}

/* Makes the case of |args|, of whose members |out_rows| and |out_n| are two. */
static rdna_status make(rdna__kernel_case *c, const rdna__kernel_info *kernel, rdna__random *random, int n, void *args,
                        size_t size, int64_t *out_rows, int64_t *out_n, const part *parts, size_t count) {
  *out_rows = n < 6 ? edges[n][0] : rdna__random_range(random, 1, 9);
  *out_n = n < 6 ? edges[n][1] : rdna__random_range(random, 1, 300);
  c->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  size_t said =
      (size_t)snprintf(c->label, sizeof c->label, "%u groups, (%d, %d)", c->grid.x, (int)*out_rows, (int)*out_n);
  for (const part *p = parts; p < parts + count; p++) {
    if (!p->there) continue;
    if (!add(c, random, case_name_dtype(kernel->name), *out_rows, *out_n, p)) return rdna__case_no_memory(c);
    if (said < sizeof c->label) said += (size_t)snprintf(c->label + said, sizeof c->label - said, "%s", p->named);
  }
  memcpy(c->args, args, size);
  return RDNA_OK;
}
#define MAKE(parts) \
  make(out_case, kernel, random, n, &a, sizeof a, &a.rows, &a.n, parts, sizeof parts / sizeof parts[0])

RDNA_CASE_MAKER(rdna__lstm_cell_case) {
  struct lstm_cell_args a = {0};
  const part parts[] = {IN(input, 4),
                        IN(hidden, 4),
                        IN(c, 1),
                        OUT(h_out, 1),
                        OUT(c_out, 1),
                        OUT(gates, 4),
                        BIAS(input_bias, 4, n % 2),
                        BIAS(hidden_bias, 4, n % 2)};
  return MAKE(parts);
}

RDNA_CASE_MAKER(rdna__lstm_cell_backward_case) {
  struct lstm_cell_backward_args a = {0};
  const part parts[] = {MAYBE(dh, n % 3 != 1), MAYBE(dout, n % 4 > 1), MAYBE(dc, n % 3 != 2), IN(gates, 4), IN(c, 1),
                        IN(c_next, 1),         OUT(dgates, 4),         OUT(dc_out, 1)};
  return MAKE(parts);
}

RDNA_CASE_MAKER(rdna__gru_cell_case) {
  struct gru_cell_args a = {0};
  const part parts[] = {IN(input, 3),
                        IN(hidden, 3),
                        IN(h, 1),
                        OUT(h_out, 1),
                        OUT(gates, 3),
                        OUT(inner, 1),
                        BIAS(input_bias, 3, n % 2),
                        BIAS(hidden_bias, 3, n % 2)};
  return MAKE(parts);
}

RDNA_CASE_MAKER(rdna__gru_cell_backward_case) {
  struct gru_cell_backward_args a = {0};
  const part parts[] = {MAYBE(dh, n % 3 != 1), MAYBE(dout, n % 3 != 2), IN(gates, 3),  IN(inner, 1), IN(h, 1),
                        OUT(dinput, 3),        OUT(dhidden, 3),         OUT(dh_out, 1)};
  return MAKE(parts);
}

RDNA_CASE_MAKER(rdna__rnn_cell_backward_case) {
  struct rnn_cell_backward_args a = {.relu = n % 2};
  const part parts[] = {MAYBE(dh, n % 3 != 1), MAYBE(dout, n % 3 != 2), IN(h_out, 1), OUT(dsum, 1)};
  return MAKE(parts);
}
