/* Every operator. Each is queued on a stream and returns before the work is done; a failure found before that is
 * returned and nothing was written.
 *
 * A struct of options begins with its size, which its initialiser sets, and grows at its end alone, where zero means
 * what the field's absence did; it ends without padding, which the size would count and nobody sets:
 *
 *     rdna_sdpa options = {RDNA_SDPA_INIT, .scale = 0.125f, .causal = true};
 *
 * So a program compiled against an older header runs with a newer library, and one against a newer header with an
 * older library as long as it leaves alone what that does not know: RDNA_UNSUPPORTED otherwise. A size that was never
 * set is RDNA_INVALID_ARGUMENT.
 *
 * |dim| stands behind the tensors that it belongs to and counts from the end when it is negative; a scalar has one.
 * |dims| are bits, bit 0 for the first dimension. */
#ifndef RDNA_OP_H
#define RDNA_OP_H

#include "rdna/op/attention.h"
#include "rdna/op/cast.h"
#include "rdna/op/channel_norm.h"
#include "rdna/op/complex.h"
#include "rdna/op/conv.h"
#include "rdna/op/fft.h"
#include "rdna/op/fused.h"
#include "rdna/op/gemm.h"
#include "rdna/op/index.h"
#include "rdna/op/linalg.h"
#include "rdna/op/linear.h"
#include "rdna/op/loss.h"
#include "rdna/op/moe.h"
#include "rdna/op/movement.h"
#include "rdna/op/norm.h"
#include "rdna/op/optim.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/pool.h"
#include "rdna/op/quant.h"
#include "rdna/op/random.h"
#include "rdna/op/recurrent.h"
#include "rdna/op/reduce.h"
#include "rdna/op/rope.h"
#include "rdna/op/sample.h"
#include "rdna/op/scan.h"
#include "rdna/op/softmax.h"
#include "rdna/op/sort.h"
#include "rdna/op/special.h"
#include "rdna/op/upsample.h"
#include "rdna/op/vision.h"

#endif
