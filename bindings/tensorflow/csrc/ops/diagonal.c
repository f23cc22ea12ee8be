/* Diagonals of matrices, one or a band of them. A band is (…, diagonals from the highest to the lowest, values), with
 * shorter ones filled up on one side as |align| says: "LEFT_RIGHT" has those above the main one to the left, those
 * below to the right. The operators of version 2 have no such attribute: all are to the left. */
#include <string.h>

#include "compose.h"
#include "matrix.h"
#include "ops.h"

struct band {
  int64_t low, high, rows, columns, longest;
};

static int64_t length_of(const struct band *b, int64_t which) {
  int64_t down = b->rows + (which < 0 ? which : 0), across = b->columns - (which > 0 ? which : 0);
  return down < across ? down : across;
}

/* Input |i|, in host memory, is one diagonal or the lowest and the highest. */
static rdna_status read_band(call *c, int i, struct band *out) {
  int64_t k[2];
  int count;
  TRY(call_integers(c, i, 2, k, &count));
  if (count < 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "diag_index must have 1 or 2 values");
  out->low = k[0];
  out->high = k[count - 1];
  if (out->low > out->high)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "diag_index[0] (%lld) must not be larger than diag_index[1] (%lld)",
                     (long long)out->low, (long long)out->high);
  return RDNA_OK;
}

static rdna_status check_band(call *c, struct band *b) {
  int64_t ends[] = {b->low, b->high};
  for (int i = 0; i < 2; i++)
    if (ends[i] != 0 && (ends[i] <= -b->rows || ends[i] >= b->columns))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "diagonal %lld is outside of matrices of %lld rows and %lld columns",
                       (long long)ends[i], (long long)b->rows, (long long)b->columns);
  b->longest = b->rows + (b->high < 0 ? b->high : 0);
  int64_t across = b->columns - (b->low > 0 ? b->low : 0);
  if (across < b->longest) b->longest = across;
  return RDNA_OK;
}

/* The part of |diagonals|, (…, values) for a single one, in which diagonal |which| lies. */
static rdna_tensor place_of(const call *c, const struct band *b, const rdna_tensor *diagonals, int64_t which) {
  const char *align = c->attributes->align;
  bool left_above = !align[0] || strncmp(align, "LEFT_", 5) == 0;
  bool left_below = !align[0] || strcmp(align + strcspn(align, "_"), "_LEFT") == 0;
  bool left = (which >= 0 && left_above) || (which <= 0 && left_below);
  int64_t length = length_of(b, which);
  rdna_tensor view = *diagonals;
  if (b->low != b->high) {
    int at = view.rank - 2;
    view = narrowed(&view, at, b->high - which, 1);
    view.shape[at] = view.shape[at + 1];
    view.stride[at] = view.stride[at + 1];
    view.rank--;
  }
  return narrowed(&view, view.rank - 1, left ? 0 : b->longest - length, length);
}

/* Copies the band's diagonals into matrices, or from them. */
static rdna_status move_band(call *c, const struct band *b, const rdna_tensor *matrices, const rdna_tensor *diagonals,
                             bool into_matrices) {
  for (int64_t which = b->low; which <= b->high; which++) {
    rdna_tensor in_matrix = diagonal_of(matrices, which), in_band = place_of(c, b, diagonals, which);
    if (rdna_tensor_count(&in_matrix) == 0) continue;
    TRY(into_matrices ? rdna_op_copy(c->stream, &in_band, &in_matrix) : rdna_op_copy(c->stream, &in_matrix, &in_band));
  }
  return RDNA_OK;
}

/* (diagonals), or of number 2 (diagonals, k, rows, columns, filling) */
rdna_status compute_matrix_diag(call *c) {
  rdna_tensor x, out;
  struct band b = {0};
  rdna_scalar filling = zero;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_input(c, 0, &x));
  b.rows = b.columns = -1;
  if (c->number == 2) {
    TRY(read_band(c, 1, &b));
    TRY(call_integer(c, 2, &b.rows));
    TRY(call_integer(c, 3, &b.columns));
    TRY(call_scalar(c, 4, &filling));
  }
  int front = x.rank - (b.low == b.high ? 1 : 2);
  if (front < 0 || front + 2 > RDNA_MAX_RANK || (b.low != b.high && x.shape[front] != b.high - b.low + 1))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "diagonals of rank %d do not fit to k", x.rank);
  int64_t longest = x.shape[x.rank - 1], rows = longest - (b.high < 0 ? b.high : 0),
          columns = longest + (b.low > 0 ? b.low : 0);
  if (b.rows == -1 && b.columns == -1) b.rows = b.columns = rows > columns ? rows : columns;
  if (b.rows == -1) b.rows = rows;
  if (b.columns == -1) b.columns = columns;
  TRY(check_band(c, &b));
  if (b.longest != longest)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "the longest diagonal has %lld values, and not %lld",
                     (long long)b.longest, (long long)longest);
  memcpy(shape, x.shape, sizeof shape);
  shape[front] = b.rows;
  shape[front + 1] = b.columns;
  TRY(call_output(c, 0, front + 2, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(rdna_op_fill(c->stream, filling, &out));
  return move_band(c, &b, &out, &x, true);
}

/* (matrices), or of number 2 (matrices, k, filling) */
rdna_status compute_matrix_diag_part(call *c) {
  rdna_tensor x, out;
  struct band b = {0};
  rdna_scalar filling = zero;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_matrices(c, 0, false, &x));
  if (c->number == 2) {
    TRY(read_band(c, 1, &b));
    TRY(call_scalar(c, 2, &filling));
  }
  int rank = x.rank - 2;
  b.rows = x.shape[rank];
  b.columns = x.shape[rank + 1];
  TRY(check_band(c, &b));
  memcpy(shape, x.shape, sizeof shape);
  if (b.low != b.high) shape[rank++] = b.high - b.low + 1;
  shape[rank++] = b.longest;
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(rdna_op_fill(c->stream, filling, &out));
  return move_band(c, &b, &x, &out, false);
}

/* (matrices, diagonals), or of number 2 (matrices, diagonals, k) */
rdna_status compute_matrix_set_diag(call *c) {
  rdna_tensor x, diagonals, out;
  struct band b = {0};
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_matrices(c, 0, false, &x));
  TRY(call_input(c, 1, &diagonals));
  if (c->number == 2) TRY(read_band(c, 2, &b));
  int rank = x.rank - 2;
  b.rows = x.shape[rank];
  b.columns = x.shape[rank + 1];
  TRY(check_band(c, &b));
  memcpy(shape, x.shape, sizeof shape);
  if (b.low != b.high) shape[rank++] = b.high - b.low + 1;
  shape[rank++] = b.longest;
  if (!same_shape(&diagonals, rank, shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "diagonals must be of rank %d, with %lld values in the longest", rank,
                     (long long)b.longest);
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(rdna_op_copy(c->stream, &x, &out));
  return move_band(c, &b, &out, &diagonals, true);
}

/* A tensor as the diagonal of one with its dimensions twice, and the inverse. */
rdna_status compute_diag(call *c) {
  rdna_tensor x, out;
  int64_t shape[RDNA_MAX_RANK], n;
  TRY(call_input(c, 0, &x));
  if (x.rank < 1 || 2 * x.rank > RDNA_MAX_RANK)
    return call_fail(c, RDNA_UNSUPPORTED, "the diagonal of a tensor of rank %d; from 2 to %d", 2 * x.rank,
                     RDNA_MAX_RANK);
  n = rdna_tensor_count(&x);
  memcpy(shape, x.shape, (size_t)x.rank * sizeof *shape);
  memcpy(shape + x.rank, x.shape, (size_t)x.rank * sizeof *shape);
  TRY(call_output(c, 0, 2 * x.rank, shape, &out));
  if (n == 0) return RDNA_OK;
  rdna_tensor flat = reshaped(&out, 2, (int64_t[]){n, n}), diagonal = diagonal_of(&flat, 0);
  x = reshaped(&x, 1, &n);
  TRY(fill(c, 0, &out));
  return rdna_op_copy(c->stream, &x, &diagonal);
}

rdna_status compute_diag_part(call *c) {
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  int half = x.rank / 2;
  if (x.rank < 2 || x.rank % 2 || memcmp(x.shape, x.shape + half, (size_t)half * sizeof *x.shape) != 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "The rank of the tensor should be even and positive, its halves alike");
  TRY(call_output(c, 0, half, x.shape, &out));
  int64_t n = rdna_tensor_count(&out);
  if (n == 0) return RDNA_OK;
  rdna_tensor flat = reshaped(&x, 2, (int64_t[]){n, n}), diagonal = diagonal_of(&flat, 0), to = reshaped(&out, 1, &n);
  return rdna_op_copy(c->stream, &diagonal, &to);
}
