/* What the operator and the generated cases of pooled boxes share. */
#ifndef RDNA_MATH_VISION_ROI_H
#define RDNA_MATH_VISION_ROI_H

#include "math/vision/roi_kernels.h"
#include "rdna/op/vision.h"
#include "rdna/tensor.h"

/* Fills all but the order and pointers to what is optional; backward, |x| is dx and |out| dout. */
void rdna__roi_fill(const rdna_roi *options, const rdna_tensor *x, const rdna_tensor *boxes, const rdna_tensor *out,
                    bool backward, struct roi_args *a);
/* Divides the work of a forward. */
rdna_status rdna__roi_order(const char *op_name, const rdna_roi *options, const rdna_tensor *x, const rdna_tensor *out,
                            struct volume_order *order);
/* Returns the groups of a backward. */
static inline int64_t rdna__roi_groups(const struct roi_args *a) {
  int64_t tiles = (int64_t)((a->size[0] + ROI_TILE - 1) / ROI_TILE) * ((a->size[1] + ROI_TILE - 1) / ROI_TILE);
  return tiles * ((a->channels + ROI_BLOCK - 1) / ROI_BLOCK) * a->samples;
}

#endif
