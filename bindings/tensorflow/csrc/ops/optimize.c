/* Optimizer steps on variables, as TensorFlow's operators of version 1 have them. Their numbers (learning rates and the
 * like) are values on the device, so that no step waits for it. */
#include "compose.h"
#include "ops.h"
#include "rdna/op/pointwise.h"
#include "variable.h"

static rdna_status inputs(call *c, int first, int count, rdna_tensor *out) {
  for (int i = 0; i < count; i++) TRY(call_input(c, first + i, &out[i]));
  return RDNA_OK;
}

static rdna_status check_gradient(call *c, const rdna_tensor *var, const rdna_tensor *grad) {
  if (same_shape(var, grad->rank, grad->shape)) return RDNA_OK;
  return call_fail(c, RDNA_INVALID_ARGUMENT, "var and grad do not have the same shape");
}

/* (var, alpha, delta): var -= alpha delta */
static rdna_status gradient_descent(call *c) {
  rdna_tensor var, in[2], step;
  TRY(inputs(c, 1, 2, in));
  TRY(variable_to_write(c, 0, true, &var));
  TRY(check_gradient(c, &var, &in[1]));
  TRY(like(c, &var, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &in[1], &in[0], &step));
  return zip(c, RDNA_ZIP_SUB, &var, &step, &var);
}

/* (var, accum, lr, grad, momentum): accum = momentum accum + grad; var -= lr accum, or with Nesterov lr grad + lr
 * momentum accum. Keras' (number 1): accum = momentum accum - lr grad; var += accum, or momentum accum - lr grad. */
static rdna_status momentum(call *c) {
  rdna_tensor var, accum, in[3], step;
  TRY(inputs(c, 2, 3, in));
  const rdna_tensor *lr = &in[0], *grad = &in[1], *keep = &in[2];
  bool keras = c->number == 1, nesterov = c->attributes->use_nesterov;
  TRY(variable_to_write(c, 0, true, &var));
  TRY(variable_to_write(c, 1, true, &accum));
  TRY(check_gradient(c, &var, grad));
  TRY(like(c, &var, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &accum, keep, &accum));
  TRY(zip(c, RDNA_ZIP_MUL, grad, lr, &step));
  TRY(zip(c, keras ? RDNA_ZIP_SUB : RDNA_ZIP_ADD, &accum, keras ? &step : grad, &accum));
  if (nesterov) {
    TRY(zip(c, RDNA_ZIP_SUB, &var, &step, &var));
    TRY(zip(c, RDNA_ZIP_MUL, &accum, keep, &step));
    if (!keras) TRY(zip(c, RDNA_ZIP_MUL, &step, lr, &step));
  } else if (keras) {
    return zip(c, RDNA_ZIP_ADD, &var, &accum, &var);
  } else {
    TRY(zip(c, RDNA_ZIP_MUL, &accum, lr, &step));
  }
  return zip(c, keras ? RDNA_ZIP_ADD : RDNA_ZIP_SUB, &var, &step, &var);
}

/* x = decay x + (1 - decay) y */
static rdna_status average(call *c, const rdna_tensor *x, const rdna_tensor *decay, const rdna_tensor *y,
                           const rdna_tensor *scratch) {
  TRY(zip(c, RDNA_ZIP_SUB, x, y, scratch));
  TRY(zip(c, RDNA_ZIP_MUL, scratch, decay, scratch));
  return zip(c, RDNA_ZIP_ADD, scratch, y, x);
}

/* (var, m, v, beta1 power, beta2 power, lr, beta1, beta2, epsilon, grad), by Kingma and Ba, 2015:
 * var -= lr sqrt(1 - beta2 power) / (1 - beta1 power) m / (sqrt(v) + epsilon), with Nesterov's m beta1 + (1 - beta1)
 * grad */
static rdna_status adam(call *c) {
  enum { POWER1, POWER2, RATE, BETA1, BETA2, EPSILON, GRAD };
  rdna_tensor var, m, v, in[7], rate, below, step, ahead;
  TRY(inputs(c, 3, 7, in));
  TRY(variable_to_write(c, 0, true, &var));
  TRY(variable_to_write(c, 1, true, &m));
  TRY(variable_to_write(c, 2, true, &v));
  TRY(check_gradient(c, &var, &in[GRAD]));
  TRY(like(c, &in[RATE], &rate));
  TRY(like(c, &in[RATE], &below));
  TRY(like(c, &var, &step));
  TRY(like(c, &var, &ahead));
  TRY(affine(c, &in[POWER2], -1, 1, &rate));
  TRY(map(c, RDNA_MAP_SQRT, &rate, &rate));
  TRY(affine(c, &in[POWER1], -1, 1, &below));
  TRY(zip(c, RDNA_ZIP_DIV, &rate, &below, &rate));
  TRY(zip(c, RDNA_ZIP_MUL, &rate, &in[RATE], &rate));
  TRY(average(c, &m, &in[BETA1], &in[GRAD], &step));
  TRY(map(c, RDNA_MAP_SQUARE, &in[GRAD], &ahead));
  TRY(average(c, &v, &in[BETA2], &ahead, &step));
  const rdna_tensor *direction = &m;
  if (c->attributes->use_nesterov) {
    TRY(zip(c, RDNA_ZIP_SUB, &m, &in[GRAD], &ahead));
    TRY(zip(c, RDNA_ZIP_MUL, &ahead, &in[BETA1], &ahead));
    TRY(zip(c, RDNA_ZIP_ADD, &ahead, &in[GRAD], &ahead));
    direction = &ahead;
  }
  TRY(map(c, RDNA_MAP_SQRT, &v, &step));
  TRY(zip(c, RDNA_ZIP_ADD, &step, &in[EPSILON], &step));
  TRY(zip(c, RDNA_ZIP_DIV, direction, &step, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, &rate, &step));
  return zip(c, RDNA_ZIP_SUB, &var, &step, &var);
}

/* (var, ms, mom, lr, rho, momentum, epsilon, grad): ms = rho ms + (1 - rho) grad^2; mom = momentum mom + lr grad /
 * sqrt(ms + epsilon); var -= mom */
static rdna_status rms_prop(call *c) {
  rdna_tensor var, ms, mom, in[5], step;
  TRY(inputs(c, 3, 5, in));
  TRY(variable_to_write(c, 0, true, &var));
  TRY(variable_to_write(c, 1, true, &ms));
  TRY(variable_to_write(c, 2, true, &mom));
  TRY(check_gradient(c, &var, &in[4]));
  rdna_tensor squares;
  TRY(like(c, &var, &step));
  TRY(like(c, &var, &squares));
  TRY(map(c, RDNA_MAP_SQUARE, &in[4], &squares));
  TRY(average(c, &ms, &in[1], &squares, &step));
  TRY(zip(c, RDNA_ZIP_ADD, &ms, &in[3], &step));
  TRY(map(c, RDNA_MAP_RSQRT, &step, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, &in[4], &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, &in[0], &step));
  TRY(zip(c, RDNA_ZIP_MUL, &mom, &in[2], &mom));
  TRY(zip(c, RDNA_ZIP_ADD, &mom, &step, &mom));
  return zip(c, RDNA_ZIP_SUB, &var, &mom, &var);
}

/* (var, accum, lr, epsilon, grad): accum += grad^2; var -= lr grad / (sqrt(accum) + epsilon) */
static rdna_status adagrad(call *c) {
  rdna_tensor var, accum, in[3], step;
  TRY(inputs(c, 2, 3, in));
  TRY(variable_to_write(c, 0, true, &var));
  TRY(variable_to_write(c, 1, true, &accum));
  TRY(check_gradient(c, &var, &in[2]));
  TRY(like(c, &var, &step));
  TRY(map(c, RDNA_MAP_SQUARE, &in[2], &step));
  TRY(zip(c, RDNA_ZIP_ADD, &accum, &step, &accum));
  TRY(map(c, RDNA_MAP_SQRT, &accum, &step));
  TRY(zip(c, RDNA_ZIP_ADD, &step, &in[1], &step));
  TRY(zip(c, RDNA_ZIP_DIV, &in[2], &step, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, &in[0], &step));
  return zip(c, RDNA_ZIP_SUB, &var, &step, &var);
}

LOCKED(compute_gradient_descent, gradient_descent)
LOCKED(compute_momentum, momentum)
LOCKED(compute_adam, adam)
LOCKED(compute_rms_prop, rms_prop)
LOCKED(compute_adagrad, adagrad)
