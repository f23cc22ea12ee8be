/* The loss of one value and its derivative, the same on the device and on the host. |beta| bounds the parabola of
 * SMOOTH_L1 and HUBER. */
#ifndef RDNA_MATH_LOSS_MATH_H
#define RDNA_MATH_LOSS_MATH_H

#include "kernel/scalar.h"

/* As rdna_loss in rdna/op/loss.h, which the device does not read. */
enum loss_kind { MSE, L1, SMOOTH_L1, HUBER, BCE, BCE_LOGITS, KL, KL_LOG };

/* -1, 0 or 1; a NaN stays one. */
RDNA_SCALAR float loss_sign(float d) { return d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d; }

RDNA_SCALAR float loss_of(uint32_t kind, float x, float t, float beta) {
  float d = x - t, a = scalar_abs(d);
  switch (kind) {
    case MSE:
      return d * d;
    case L1:
      return a;
    case SMOOTH_L1:
      return a < beta ? 0.5f * a * a / beta : a - 0.5f * beta;
    case HUBER:
      return a < beta ? 0.5f * a * a : beta * (a - 0.5f * beta);
    case BCE: /* a logarithm is never below -100, so that 0 times it is 0 */
      return (t - 1.0f) * scalar_max(scalar_log1p(-x), -100.0f) - t * scalar_max(scalar_log(x), -100.0f);
    case BCE_LOGITS:
      return scalar_max(x, 0.0f) - x * t + scalar_log1p(scalar_exp(-scalar_abs(x)));
    case KL:
      return (t == 0.0f ? 0.0f : t * scalar_log(t)) - t * x;
    default:
      return scalar_exp(t) * (t - x);
  }
}

RDNA_SCALAR float loss_slope(uint32_t kind, float x, float t, float beta) {
  float d = x - t, a = scalar_abs(d);
  switch (kind) {
    case MSE:
      return 2.0f * d;
    case L1:
      return loss_sign(d);
    case SMOOTH_L1:
      return a < beta ? d / beta : loss_sign(d);
    case HUBER:
      return a < beta ? d : beta * loss_sign(d);
    case BCE:
      return d / scalar_max((1.0f - x) * x, 1e-12f);
    case BCE_LOGITS:
      return scalar_sigmoid(x) - t;
    case KL:
      return -t;
    default:
      return -scalar_exp(t);
  }
}

#endif
