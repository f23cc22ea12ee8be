/* Every operator. Each is queued on a stream and returns before the work is done; a failure found before that is
 * returned and nothing was written. */
#ifndef RDNA_OP_H
#define RDNA_OP_H

#include "rdna/op/attention.h"
#include "rdna/op/cast.h"
#include "rdna/op/channel_norm.h"
#include "rdna/op/conv.h"
#include "rdna/op/fused.h"
#include "rdna/op/gemm.h"
#include "rdna/op/index.h"
#include "rdna/op/linear.h"
#include "rdna/op/loss.h"
#include "rdna/op/movement.h"
#include "rdna/op/norm.h"
#include "rdna/op/optim.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/pool.h"
#include "rdna/op/quant.h"
#include "rdna/op/random.h"
#include "rdna/op/reduce.h"
#include "rdna/op/rope.h"
#include "rdna/op/scan.h"
#include "rdna/op/softmax.h"
#include "rdna/op/sort.h"
#include "rdna/op/upsample.h"

#endif
