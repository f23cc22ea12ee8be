/* Nearest values at twice the size, then a window of 3 x 3. Of the three lines that a window reads two are the same
 * line of the smaller image, so that their weights are summed beforehand:
 *
 *     lines of the larger image     a a b b c c           result above, of b: a w0 + b (w1 + w2)
 *     windows of the two of b         [. . .]             result below, of b: b (w0 + w1) + c w2
 *                                       [. . .]                                                                     */
#include <stdio.h>

#include "model/image/blocks.h"
#include "rdna/memory.h"
#include "rdna/op.h"

/* The first and the last of the three that fall on line |at| of two, for the result |below| or above. */
static void sources(int below, int at, int *out_first, int *out_last) {
  int cut = below ? 2 : 1;
  *out_first = at ? cut : 0;
  *out_last = at ? 2 : cut - 1;
}

/* (out, in) of one place of a window. */
static rdna_tensor place_of(const rdna_tensor *weight, int row, int column) {
  rdna_tensor t = *weight;
  t.rank = 2;
  t.data = (char *)t.data + (row * t.stride[2] + column * t.stride[3]) * (int64_t)sizeof(float);
  return t;
}

/* |sums| (out, in, 2, 2), f32, of |weight| (out, in, 3, 3). */
static rdna_status sum_weights(rdna_stream *stream, const rdna_tensor *weight, int below, int right,
                               const rdna_tensor *sums) {
  const rdna_scalar zero = rdna_scalar_real(0);
  for (int i = 0; i < 4; i++) {
    int rows[2], columns[2];
    sources(below, i / 2, &rows[0], &rows[1]);
    sources(right, i % 2, &columns[0], &columns[1]);
    rdna_tensor to = place_of(sums, i / 2, i % 2);
    for (int r = rows[0]; r <= rows[1]; r++)
      for (int c = columns[0]; c <= columns[1]; c++) {
        rdna_tensor from = place_of(weight, r, c);
        bool is_first = r == rows[0] && c == columns[0];
        RDNA_TRY(is_first ? rdna_op_copy(stream, &from, &to)
                          : rdna_op_zip(stream, RDNA_ZIP_ADD, &to, &from, zero, zero, &to));
      }
  }
  return RDNA_OK;
}

static rdna_status make(rdna__component *c, rdna__image_pass *pass, const char *prefix, const char *name, int in,
                        int out, bool biased, rdna__image_doubling *to) {
  char full[RDNA__COMPONENT_NAME];
  const int64_t whole[] = {out, in, 3, 3}, half[] = {out, in, 2, 2}, row = out;
  rdna_tensor weight, sums;
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, whole, &weight));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, half, &sums));
  RDNA_TRY(rdna__component_fetch(c, prefix, full, &weight));
  for (int i = 0; i < 4; i++) {
    RDNA_TRY(sum_weights(pass->stream, &weight, i / 2, i % 2, &sums));
    RDNA_TRY(rdna__network_window(c->network, out, in, 2, 2, &to->weight[i / 2][i % 2]));
    RDNA_TRY(rdna_op_copy(pass->stream, &sums, &to->weight[i / 2][i % 2]));
  }
  if (!biased) return RDNA_OK;
  snprintf(full, sizeof full, "%s.bias", name);
  return rdna__component_load(c, prefix, full, c->network->dtype, 1, &row, &to->bias);
}

rdna_status rdna__image_load_doubling(rdna__component *c, const char *prefix, const char *name, int in, int out,
                                      bool biased, rdna__image_doubling *out_doubling) {
  rdna__image_pass pass = {.stream = rdna_device_default_stream(c->network->device),
                           .dtype = c->network->dtype,
                           .holder = "loading weights"};
  return rdna__pass_end(&pass, make(c, &pass, prefix, name, in, out, biased, out_doubling));
}

/* One of the four results of each place: |out|'s lines and columns from |below| and |right| on, every other. */
static rdna_status run_one(rdna__image_pass *pass, const rdna__image_doubling *d, const rdna_tensor *x, int below,
                           int right, const rdna_tensor *out) {
  const rdna_convolution how = {
      RDNA_CONVOLUTION_INIT,       .spatial_dims = 2,  .stride = {1, 1}, .pad_before = {!below, !right},
      .pad_after = {below, right}, .dilation = {1, 1}, .groups = 1};
  rdna_tensor y = *out;
  int64_t at = below * y.stride[2] + right * y.stride[3];
  y.data = (char *)y.data + at * (int64_t)rdna_dtype_block_bytes(y.dtype);
  for (int i = 2; i < 4; i++) y.shape[i] /= 2, y.stride[i] *= 2;
  return rdna_op_conv(pass->stream, &how, x, &d->weight[below][right], d->bias.data ? &d->bias : NULL, &y);
}

rdna_status rdna__image_doubling_run(rdna__image_pass *pass, const rdna__image_doubling *d, const rdna_tensor *x,
                                     rdna_tensor *out) {
  RDNA_TRY(rdna__pass_image(pass, x->shape[0], d->weight[0][0].shape[0], 2 * x->shape[2], 2 * x->shape[3], out));
  for (int i = 0; i < 4; i++) RDNA_TRY(run_one(pass, d, x, i / 2, i % 2, out));
  return RDNA_OK;
}
