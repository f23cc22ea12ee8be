/* Rows of the operators of vision.h for arguments_test.c. */
#ifndef RDNA_MATH_VISION_VISION_ARGUMENTS_H
#define RDNA_MATH_VISION_VISION_ARGUMENTS_H

#include "math/common/test/arguments.h"

OPERATOR(nms, plain, .types = REALS, .empty = "M") {
  return rdna_op_nms(stream, in("boxes", MAIN, STRIDED, SHAPE(M, 4)), in("scores", MAIN, STRIDED, SHAPE(M)),
                     number("threshold", 0.5, "0 1 -1", "nan"), out("kept", ONLY(RDNA_I64), 0, SHAPE(M)),
                     out("count", ONLY(RDNA_I64), 0, ONE));
}

static const rdna_roi *pooled(rdna_roi_mode mode) {
  static rdna_roi how;
  bool sampled = mode == RDNA_ROI_MODE_ALIGN || mode == RDNA_ROI_MODE_PS_ALIGN;
  how = (rdna_roi){RDNA_ROI_INIT, .mode = (rdna_roi_mode)number("mode", mode, "", "-1 4"),
                   .half_pixel = (bool)number("half_pixel", 0, "", mode == RDNA_ROI_MODE_ALIGN ? "" : "1"),
                   .scale = number("scale", 0.5, "1", "nan inf"),
                   .grid = (int64_t)number("grid", 0, sampled ? "3" : "", sampled ? "-1 2000000" : "2")};
  return given_options("options", &how);
}
#define ROI_BOXES in("boxes", MAIN, STRIDED, SHAPE(B, 5))
#define ROI_X MAIN, STRIDED | FREE << 2 | FREE << 3 | FREE, SHAPE(M, N, 3, 4)
#define ROI_OUT MAIN, STRIDED | FREE << 2 | FREE << 3, SHAPE(B, N, 2, 2)
#define ROI_PS MAIN, STRIDED | FREE << 2 | FREE << 3 | FREE, SHAPE(M, N * 4, 3, 4)
OPERATOR(roi_pool, align, .types = REALS, .empty = "BMN") {
  return rdna_op_roi_pool(stream, pooled(RDNA_ROI_MODE_ALIGN), in("x", ROI_X), ROI_BOXES, out("out", ROI_OUT), NULL,
                          NULL);
}
OPERATOR(roi_pool, max, .types = REALS, .empty = "BMN") {
  return rdna_op_roi_pool(stream, pooled(RDNA_ROI_MODE_MAX), in("x", ROI_X), ROI_BOXES,
                          out("out", MAIN, STRIDED, SHAPE(B, N, 2, 2)),
                          out("places", ONLY(RDNA_I32), OPTIONAL, SHAPE(B, N, 2, 2)), NULL);
}
OPERATOR(roi_pool, ps_mean, .types = REALS, .empty = "BMN") {
  return rdna_op_roi_pool(stream, pooled(RDNA_ROI_MODE_PS_MEAN), in("x", ROI_PS), ROI_BOXES,
                          out("out", MAIN, STRIDED, SHAPE(B, N, 2, 2)), NULL, NULL);
}
OPERATOR(roi_pool_backward, align, .types = REALS, .empty = "BMN") {
  return rdna_op_roi_pool_backward(stream, pooled(RDNA_ROI_MODE_ALIGN), in("dout", ROI_OUT), ROI_BOXES, NULL,
                                   out("dx", ROI_X), NULL);
}
OPERATOR(roi_pool_backward, max, .types = REALS, .empty = "BMN") {
  return rdna_op_roi_pool_backward(stream, pooled(RDNA_ROI_MODE_MAX), in("dout", MAIN, STRIDED, SHAPE(B, N, 2, 2)),
                                   ROI_BOXES, in("places", ONLY(RDNA_I32), 0, SHAPE(B, N, 2, 2)), out("dx", ROI_X),
                                   NULL);
}

#endif
