#include <stddef.h>
#include <stdio.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/recurrent/cell_kernels.h"
#include "math/recurrent/sequences_case.h"

static const int64_t edges[][2] = {{2, 3}, {0, 4}, {3, 0}, {1, 1}, {5, 257}, {1, 600}};

/* Adds (rows, n), with gaps between its rows, that begins |offset| into the arguments; gives the distance of rows. */
static bool add(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, rdna_dtype dtype, int64_t rows,
                int64_t n, size_t offset, int64_t *out_at) {
  *out_at = n + (int64_t)rdna__random_below(random, 3);
  if (role == RDNA__OUT) {
    rdna__case_buffer *out = case_add_unwritten(c, dtype, rows * *out_at, (uint32_t)offset);
    for (int64_t i = 0; out && i < rows; i++) case_written(out, i * *out_at, n);
    if (out) rdna__case_tolerance(c, case_tiny(dtype), 16 * case_unit(dtype) + 2 * case_step(dtype));
    return out;
  }
  void *data = rdna__case_add(c, role, dtype, rows * *out_at, (uint32_t)offset);
  if (data) case_fill_doubles(random, dtype, data, rows * *out_at, 0);
  return data;
}
#define ADD(type, role, member, columns) \
  add(out_case, random, role, dtype, a.rows, columns, offsetof(struct type, member), &a.member##_at)

static void pick(rdna__random *random, int n, int64_t *out_rows, int64_t *out_n) {
  *out_rows = n < 6 ? edges[n][0] : rdna__random_range(random, 1, 9);
  *out_n = n < 6 ? edges[n][1] : rdna__random_range(random, 1, 300);
}

RDNA_CASE_MAKER(rdna__lstm_cell_case) {
  const rdna_dtype dtype = case_name_dtype(kernel->name);
  struct lstm_cell_args a = {0};
  pick(random, n, &a.rows, &a.n);
  const bool biased = n % 2;
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d)%s, %u groups", (int)a.rows, (int)a.n,
           biased ? " biases" : "", out_case->grid.x);
  int64_t unused;
  bool fits = ADD(lstm_cell_args, RDNA__IN, input, 4 * a.n) && ADD(lstm_cell_args, RDNA__IN, hidden, 4 * a.n) &&
              ADD(lstm_cell_args, RDNA__IN, c, a.n) && ADD(lstm_cell_args, RDNA__OUT, h_out, a.n) &&
              ADD(lstm_cell_args, RDNA__OUT, c_out, a.n) && ADD(lstm_cell_args, RDNA__OUT, gates, 4 * a.n);
  if (biased) {
    fits = fits &&
           add(out_case, random, RDNA__IN, dtype, 1, 4 * a.n, offsetof(struct lstm_cell_args, input_bias), &unused) &&
           add(out_case, random, RDNA__IN, dtype, 1, 4 * a.n, offsetof(struct lstm_cell_args, hidden_bias), &unused);
  }
  memcpy(out_case->args, &a, sizeof a);
  return fits ? RDNA_OK : rdna__case_no_memory(out_case);
}

RDNA_CASE_MAKER(rdna__lstm_cell_backward_case) {
  const rdna_dtype dtype = case_name_dtype(kernel->name);
  struct lstm_cell_backward_args a = {0};
  pick(random, n, &a.rows, &a.n);
  const bool of_h = n % 3 != 1, of_c = n % 3 != 2, of_out = n % 4 > 1;
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d)%s%s%s, %u groups", (int)a.rows, (int)a.n,
           of_h ? " dh" : "", of_out ? " dout" : "", of_c ? " dc" : "", out_case->grid.x);
  bool fits = (!of_h || ADD(lstm_cell_backward_args, RDNA__IN, dh, a.n)) &&
              (!of_out || ADD(lstm_cell_backward_args, RDNA__IN, dout, a.n)) &&
              (!of_c || ADD(lstm_cell_backward_args, RDNA__IN, dc, a.n)) &&
              ADD(lstm_cell_backward_args, RDNA__IN, gates, 4 * a.n) &&
              ADD(lstm_cell_backward_args, RDNA__IN, c, a.n) && ADD(lstm_cell_backward_args, RDNA__IN, c_next, a.n) &&
              ADD(lstm_cell_backward_args, RDNA__OUT, dgates, 4 * a.n) &&
              ADD(lstm_cell_backward_args, RDNA__OUT, dc_out, a.n);
  memcpy(out_case->args, &a, sizeof a);
  return fits ? RDNA_OK : rdna__case_no_memory(out_case);
}

RDNA_CASE_MAKER(rdna__gru_cell_case) {
  const rdna_dtype dtype = case_name_dtype(kernel->name);
  struct gru_cell_args a = {0};
  pick(random, n, &a.rows, &a.n);
  const bool biased = n % 2;
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d)%s, %u groups", (int)a.rows, (int)a.n,
           biased ? " biases" : "", out_case->grid.x);
  int64_t unused;
  bool fits = ADD(gru_cell_args, RDNA__IN, input, 3 * a.n) && ADD(gru_cell_args, RDNA__IN, hidden, 3 * a.n) &&
              ADD(gru_cell_args, RDNA__IN, h, a.n) && ADD(gru_cell_args, RDNA__OUT, h_out, a.n) &&
              ADD(gru_cell_args, RDNA__OUT, gates, 3 * a.n) && ADD(gru_cell_args, RDNA__OUT, inner, a.n);
  if (biased) {
    fits = fits &&
           add(out_case, random, RDNA__IN, dtype, 1, 3 * a.n, offsetof(struct gru_cell_args, input_bias), &unused) &&
           add(out_case, random, RDNA__IN, dtype, 1, 3 * a.n, offsetof(struct gru_cell_args, hidden_bias), &unused);
  }
  memcpy(out_case->args, &a, sizeof a);
  return fits ? RDNA_OK : rdna__case_no_memory(out_case);
}

RDNA_CASE_MAKER(rdna__gru_cell_backward_case) {
  const rdna_dtype dtype = case_name_dtype(kernel->name);
  struct gru_cell_backward_args a = {0};
  pick(random, n, &a.rows, &a.n);
  const bool of_h = n % 3 != 1, of_out = n % 3 != 2;
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d)%s%s, %u groups", (int)a.rows, (int)a.n, of_h ? " dh" : "",
           of_out ? " dout" : "", out_case->grid.x);
  bool fits =
      (!of_h || ADD(gru_cell_backward_args, RDNA__IN, dh, a.n)) &&
      (!of_out || ADD(gru_cell_backward_args, RDNA__IN, dout, a.n)) &&
      ADD(gru_cell_backward_args, RDNA__IN, gates, 3 * a.n) && ADD(gru_cell_backward_args, RDNA__IN, inner, a.n) &&
      ADD(gru_cell_backward_args, RDNA__IN, h, a.n) && ADD(gru_cell_backward_args, RDNA__OUT, dinput, 3 * a.n) &&
      ADD(gru_cell_backward_args, RDNA__OUT, dhidden, 3 * a.n) && ADD(gru_cell_backward_args, RDNA__OUT, dh_out, a.n);
  memcpy(out_case->args, &a, sizeof a);
  return fits ? RDNA_OK : rdna__case_no_memory(out_case);
}

RDNA_CASE_MAKER(rdna__rnn_cell_backward_case) {
  const rdna_dtype dtype = case_name_dtype(kernel->name);
  struct rnn_cell_backward_args a = {.relu = n % 2};
  pick(random, n, &a.rows, &a.n);
  const bool of_h = n % 3 != 1, of_out = n % 3 != 2;
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%d, %d)%s%s%s, %u groups", (int)a.rows, (int)a.n,
           a.relu ? " relu" : "", of_h ? " dh" : "", of_out ? " dout" : "", out_case->grid.x);
  bool fits = (!of_h || ADD(rnn_cell_backward_args, RDNA__IN, dh, a.n)) &&
              (!of_out || ADD(rnn_cell_backward_args, RDNA__IN, dout, a.n)) &&
              ADD(rnn_cell_backward_args, RDNA__IN, h_out, a.n) && ADD(rnn_cell_backward_args, RDNA__OUT, dsum, a.n);
  memcpy(out_case->args, &a, sizeof a);
  return fits ? RDNA_OK : rdna__case_no_memory(out_case);
}
