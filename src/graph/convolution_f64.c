/* Convolutions of f64, for which there are no kernels: a product for each place of the window, summed. Every operator
 * here has its gradient, and so have they. */
#include "graph/convolution_f64.h"

#include "graph/build.h"

/* Goes on to the next place of the window; false behind the last. */
static bool next_place(const rdna__type *weight, int dims, int64_t place[3]) {
  for (int d = dims - 1; d >= 0; d--) {
    if (++place[d] < weight->shape[2 + d]) return true;
    place[d] = 0;
  }
  return false;
}

/* The weight's matrices at a place, (groups, rows, columns). */
static rdna_node *matrices_at(rdna_recorder *r, rdna_node *weight, const rdna_convolution *conv,
                              const int64_t place[3]) {
  int64_t shape[] = {conv->groups, weight->type.shape[0] / conv->groups, weight->type.shape[1]};
  for (int d = 0; d < conv->spatial_dims; d++) weight = rdna_record_slice(r, weight, 2 + d, place[d], 1, 1);
  return rdna_record_reshape(r, weight, 3, shape);
}

/* (n, channels, …) as (n, groups, channels / groups, everything else). */
static rdna_node *grouped(rdna_recorder *r, rdna_node *x, int64_t groups) {
  if (!x) return NULL;
  int64_t shape[] = {x->type.shape[0], groups, x->type.shape[1] / groups, 1};
  for (int i = 2; i < x->type.rank; i++) shape[3] *= x->type.shape[i];
  return rdna_record_reshape(r, x, 4, shape);
}

rdna_node *rdna__compose_conv(rdna_recorder *r, rdna_node *x, rdna_node *weight, const rdna_convolution *conv,
                              const rdna__type *out) {
  int dims = conv->spatial_dims;
  int64_t place[3] = {0};
  rdna_node *sum = NULL;
  for (int d = 0; d < dims && x; d++) {
    int64_t size = x->type.shape[2 + d] + conv->pad_before[d] + conv->pad_after[d];
    if (size != x->type.shape[2 + d]) x = rdna_record_unslice(r, x, 2 + d, conv->pad_before[d], 1, size);
  }
  do {
    rdna_node *part = x;
    for (int d = 0; d < dims; d++)
      part = rdna_record_slice(r, part, 2 + d, place[d] * conv->dilation[d], out->shape[2 + d], conv->stride[d]);
    rdna_node *product = rdna_record_matmul(r, matrices_at(r, weight, conv, place), grouped(r, part, conv->groups));
    sum = sum ? add(r, sum, product) : product;
  } while (sum && next_place(&weight->type, dims, place));
  return rdna_record_reshape(r, sum, out->rank, out->shape);
}

rdna_node *rdna__compose_conv_transpose(rdna_recorder *r, rdna_node *x, rdna_node *weight, const rdna_convolution *conv,
                                        const int64_t *sizes) {
  int dims = conv->spatial_dims;
  int64_t place[3] = {0};
  rdna__type spread = x->type;
  spread.shape[1] = weight->type.shape[1] * conv->groups;
  rdna_node *sum = NULL, *given = grouped(r, x, conv->groups);
  do {
    rdna_node *turned = rdna_record_permute(r, matrices_at(r, weight, conv, place), (int[]){0, 2, 1});
    rdna_node *part = rdna_record_reshape(r, rdna_record_matmul(r, turned, given), spread.rank, spread.shape);
    for (int d = 0; d < dims; d++)
      part = rdna_record_unslice(r, part, 2 + d, place[d] * conv->dilation[d], conv->stride[d],
                                 sizes[d] + conv->pad_before[d] + conv->pad_after[d]);
    sum = sum ? add(r, sum, part) : part;
  } while (sum && next_place(&weight->type, dims, place));
  for (int d = 0; d < dims; d++) sum = rdna_record_slice(r, sum, 2 + d, conv->pad_before[d], sizes[d], 1);
  return sum;
}
