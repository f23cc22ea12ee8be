/* One value's step, the same on the device and on the host, with PyTorch's formulas. */
#ifndef RDNA_MATH_OPTIM_MATH_H
#define RDNA_MATH_OPTIM_MATH_H

#include "kernel/scalar.h"
#include "math/optim/optim_kernels.h"

/* What depends on the number of steps: Adam's step_size and root_correct (optim_kernels.h). */
struct optim_step {
  float size, root;
};

/* Computes 1 - beta^step by expm1, as the difference would cancel. */
RDNA_SCALAR struct optim_step optim_step_at(const struct optim_step_args *a, float step) {
  float count = step < 1 ? 1 : step;
  struct optim_step s = {a->rate / -scalar_expm1(count * a->log_beta1),
                         scalar_sqrt(-scalar_expm1(count * a->log_beta2))};
  return s;
}

RDNA_SCALAR float optim_sgd_value(const struct optim_step_args *a, struct optim_step step, float p, float g, float *s) {
  g = scalar_fma(a->decay, p, g);
  if (a->states_used) {
    s[0] = a->first ? g : a->momentum * s[0] + (1.0f - a->dampening) * g;
    g = a->nesterov ? scalar_fma(a->momentum, s[0], g) : s[0];
  }
  return scalar_fma(-a->rate, g, p);
}

RDNA_SCALAR float optim_adam_value(const struct optim_step_args *a, struct optim_step step, float p, float g,
                                   float *s) {
  if (a->decoupled) {
    p -= a->rate * a->decay * p;
  } else {
    g = scalar_fma(a->decay, p, g);
  }
  s[0] = scalar_fma(1.0f - a->beta1, g - s[0], s[0]);
  s[1] = scalar_fma(1.0f - a->beta2, g * g, a->beta2 * s[1]);
  float square = s[1];
  if (a->states_used & 4) square = s[2] = scalar_max(s[2], s[1]);
  return p - step.size * s[0] / (scalar_sqrt(square) / step.root + a->epsilon);
}

RDNA_SCALAR float optim_rmsprop_value(const struct optim_step_args *a, struct optim_step step, float p, float g,
                                      float *s) {
  g = scalar_fma(a->decay, p, g);
  s[0] = scalar_fma(1.0f - a->beta1, g * g, a->beta1 * s[0]);
  float square = s[0];
  if (a->states_used & 2) {
    s[1] = scalar_fma(1.0f - a->beta1, g - s[1], s[1]);
    square = scalar_fma(-s[1], s[1], square);
  }
  float slope = g / (scalar_sqrt(square) + a->epsilon);
  if (a->states_used & 4) slope = s[2] = scalar_fma(a->momentum, s[2], slope);
  return scalar_fma(-a->rate, slope, p);
}

#endif
