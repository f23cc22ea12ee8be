/* Optimizer steps on variables, as TensorFlow's operators of version 1 have them. Their numbers (learning rates and the
 * like) are values on the device, so that no step waits for it.
 *
 * Each is a rule of what it keeps, the variable first, of a gradient and of numbers in their order. The same rule
 * serves whole variables and, in the operators of sparse gradients, the rows that these have. */
#include <stdlib.h>
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "rdna/op/index.h"
#include "rdna/op/pointwise.h"
#include "variable.h"

enum { MOST_KEPT = 4, MOST_INPUTS = 12 };

/* (alpha): var -= alpha grad */
static rdna_status gradient_descent(call *c, const rdna_tensor *kept, const rdna_tensor *grad,
                                    const rdna_tensor *number) {
  rdna_tensor step;
  TRY(like(c, kept, &step));
  TRY(zip(c, RDNA_ZIP_MUL, grad, &number[0], &step));
  return zip(c, RDNA_ZIP_SUB, &kept[0], &step, &kept[0]);
}

/* (lr, momentum): accum = momentum accum + grad; var -= lr accum, or with Nesterov lr grad + lr momentum accum. */
static rdna_status momentum(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  const rdna_tensor *var = &kept[0], *accum = &kept[1], *lr = &number[0], *keep = &number[1];
  rdna_tensor step;
  TRY(like(c, var, &step));
  TRY(zip(c, RDNA_ZIP_MUL, accum, keep, accum));
  TRY(zip(c, RDNA_ZIP_ADD, accum, grad, accum));
  if (c->attributes->use_nesterov) {
    TRY(zip(c, RDNA_ZIP_MUL, grad, lr, &step));
    TRY(zip(c, RDNA_ZIP_SUB, var, &step, var));
    TRY(zip(c, RDNA_ZIP_MUL, accum, keep, &step));
    TRY(zip(c, RDNA_ZIP_MUL, &step, lr, &step));
  } else {
    TRY(zip(c, RDNA_ZIP_MUL, accum, lr, &step));
  }
  return zip(c, RDNA_ZIP_SUB, var, &step, var);
}

/* (lr, momentum): accum = momentum accum - lr grad; var += accum, or with Nesterov momentum accum - lr grad. */
static rdna_status keras_momentum(call *c, const rdna_tensor *kept, const rdna_tensor *grad,
                                  const rdna_tensor *number) {
  const rdna_tensor *var = &kept[0], *accum = &kept[1], *lr = &number[0], *keep = &number[1];
  rdna_tensor step;
  TRY(like(c, var, &step));
  TRY(zip(c, RDNA_ZIP_MUL, grad, lr, &step));
  TRY(zip(c, RDNA_ZIP_MUL, accum, keep, accum));
  TRY(zip(c, RDNA_ZIP_SUB, accum, &step, accum));
  if (!c->attributes->use_nesterov) return zip(c, RDNA_ZIP_ADD, var, accum, var);
  TRY(zip(c, RDNA_ZIP_SUB, var, &step, var));
  TRY(zip(c, RDNA_ZIP_MUL, accum, keep, &step));
  return zip(c, RDNA_ZIP_ADD, var, &step, var);
}

/* x = decay x + (1 - decay) y */
static rdna_status average(call *c, const rdna_tensor *x, const rdna_tensor *decay, const rdna_tensor *y,
                           const rdna_tensor *scratch) {
  TRY(zip(c, RDNA_ZIP_SUB, x, y, scratch));
  TRY(zip(c, RDNA_ZIP_MUL, scratch, decay, scratch));
  return zip(c, RDNA_ZIP_ADD, scratch, y, x);
}

/* var -= rate direction / (sqrt(squares) + epsilon) */
static rdna_status step_by_root(call *c, const rdna_tensor *var, const rdna_tensor *rate, const rdna_tensor *direction,
                                const rdna_tensor *squares, const rdna_tensor *epsilon) {
  rdna_tensor step;
  TRY(like(c, var, &step));
  TRY(map(c, RDNA_MAP_SQRT, squares, &step));
  if (epsilon) TRY(zip(c, RDNA_ZIP_ADD, &step, epsilon, &step));
  TRY(zip(c, RDNA_ZIP_DIV, direction, &step, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, rate, &step));
  return zip(c, RDNA_ZIP_SUB, var, &step, var);
}

/* The moments |m| and |v| of Adam's family, whose numbers these are: beta1 power, beta2 power, lr, beta1, beta2,
 * epsilon; and |rate| = lr sqrt(1 - beta2 power) / (1 - beta1 power) */
enum { POWER1, POWER2, RATE, BETA1, BETA2, EPSILON };
static rdna_status moments(call *c, const rdna_tensor *m, const rdna_tensor *v, const rdna_tensor *grad,
                           const rdna_tensor *number, rdna_tensor *rate) {
  rdna_tensor below, squares, scratch;
  TRY(like(c, &number[RATE], rate));
  TRY(like(c, &number[RATE], &below));
  TRY(like(c, m, &squares));
  TRY(like(c, m, &scratch));
  TRY(affine(c, &number[POWER2], -1, 1, rate));
  TRY(map(c, RDNA_MAP_SQRT, rate, rate));
  TRY(affine(c, &number[POWER1], -1, 1, &below));
  TRY(zip(c, RDNA_ZIP_DIV, rate, &below, rate));
  TRY(zip(c, RDNA_ZIP_MUL, rate, &number[RATE], rate));
  TRY(average(c, m, &number[BETA1], grad, &scratch));
  TRY(map(c, RDNA_MAP_SQUARE, grad, &squares));
  return average(c, v, &number[BETA2], &squares, &scratch);
}

/* Kingma and Ba, 2015: var -= rate m / (sqrt(v) + epsilon), with Nesterov's m beta1 + (1 - beta1) grad */
static rdna_status adam(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  const rdna_tensor *m = &kept[1], *v = &kept[2], *direction = m;
  rdna_tensor rate, ahead;
  TRY(moments(c, m, v, grad, number, &rate));
  if (c->attributes->use_nesterov) {
    TRY(like(c, m, &ahead));
    TRY(zip(c, RDNA_ZIP_SUB, m, grad, &ahead));
    TRY(zip(c, RDNA_ZIP_MUL, &ahead, &number[BETA1], &ahead));
    TRY(zip(c, RDNA_ZIP_ADD, &ahead, grad, &ahead));
    direction = &ahead;
  }
  return step_by_root(c, &kept[0], &rate, direction, v, &number[EPSILON]);
}

/* Reddi, Kale and Kumar, 2018: the largest v there has been */
static rdna_status amsgrad(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  const rdna_tensor *m = &kept[1], *v = &kept[2], *largest = &kept[3];
  rdna_tensor rate;
  TRY(moments(c, m, v, grad, number, &rate));
  TRY(zip(c, RDNA_ZIP_MAXIMUM, largest, v, largest));
  return step_by_root(c, &kept[0], &rate, m, largest, &number[EPSILON]);
}

/* (beta1 power, lr, beta1, beta2, epsilon): m = beta1 m + (1 - beta1) grad; v = max(beta2 v, |grad|);
 * var -= lr / (1 - beta1 power) m / (v + epsilon) */
static rdna_status ada_max(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  const rdna_tensor *m = &kept[1], *v = &kept[2];
  rdna_tensor rate, step;
  TRY(like(c, &number[1], &rate));
  TRY(like(c, m, &step));
  TRY(average(c, m, &number[2], grad, &step));
  TRY(zip(c, RDNA_ZIP_MUL, v, &number[3], v));
  TRY(map(c, RDNA_MAP_ABS, grad, &step));
  TRY(zip(c, RDNA_ZIP_MAXIMUM, v, &step, v));
  TRY(affine(c, &number[0], -1, 1, &rate));
  TRY(zip(c, RDNA_ZIP_DIV, &number[1], &rate, &rate));
  TRY(zip(c, RDNA_ZIP_ADD, v, &number[4], &step));
  TRY(zip(c, RDNA_ZIP_DIV, m, &step, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, &rate, &step));
  return zip(c, RDNA_ZIP_SUB, &kept[0], &step, &kept[0]);
}

/* mom = momentum mom + lr grad / sqrt(squares + epsilon); var -= mom. Changes |squares|. */
static rdna_status step_with_momentum(call *c, const rdna_tensor *var, const rdna_tensor *mom,
                                      const rdna_tensor *squares, const rdna_tensor *grad, const rdna_tensor *number) {
  TRY(zip(c, RDNA_ZIP_ADD, squares, &number[3], squares));
  TRY(map(c, RDNA_MAP_RSQRT, squares, squares));
  TRY(zip(c, RDNA_ZIP_MUL, squares, grad, squares));
  TRY(zip(c, RDNA_ZIP_MUL, squares, &number[0], squares));
  TRY(zip(c, RDNA_ZIP_MUL, mom, &number[2], mom));
  TRY(zip(c, RDNA_ZIP_ADD, mom, squares, mom));
  return zip(c, RDNA_ZIP_SUB, var, mom, var);
}

/* (lr, rho, momentum, epsilon): ms = rho ms + (1 - rho) grad^2, which the step divides by the root of */
static rdna_status rms_prop(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  const rdna_tensor *ms = &kept[1];
  rdna_tensor step, squares;
  TRY(like(c, ms, &step));
  TRY(like(c, ms, &squares));
  TRY(map(c, RDNA_MAP_SQUARE, grad, &squares));
  TRY(average(c, ms, &number[1], &squares, &step));
  TRY(rdna_op_copy(c->stream, ms, &squares));
  return step_with_momentum(c, &kept[0], &kept[2], &squares, grad, number);
}

/* The same about the gradient's mean, mg: ms - mg^2 */
static rdna_status centered_rms_prop(call *c, const rdna_tensor *kept, const rdna_tensor *grad,
                                     const rdna_tensor *number) {
  const rdna_tensor *mg = &kept[1], *ms = &kept[2];
  rdna_tensor step, squares;
  TRY(like(c, ms, &step));
  TRY(like(c, ms, &squares));
  TRY(map(c, RDNA_MAP_SQUARE, grad, &squares));
  TRY(average(c, ms, &number[1], &squares, &step));
  TRY(average(c, mg, &number[1], grad, &step));
  TRY(map(c, RDNA_MAP_SQUARE, mg, &squares));
  TRY(zip(c, RDNA_ZIP_SUB, ms, &squares, &squares));
  return step_with_momentum(c, &kept[0], &kept[3], &squares, grad, number);
}

static rdna_status add_square(call *c, const rdna_tensor *accum, const rdna_tensor *grad) {
  rdna_tensor square;
  TRY(like(c, accum, &square));
  TRY(map(c, RDNA_MAP_SQUARE, grad, &square));
  return zip(c, RDNA_ZIP_ADD, accum, &square, accum);
}

/* (lr), and of the second version (lr, epsilon): accum += grad^2; var -= lr grad / (sqrt(accum) + epsilon) */
static rdna_status adagrad(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  if (c->attributes->update_slots) TRY(add_square(c, &kept[1], grad));
  return step_by_root(c, &kept[0], &number[0], grad, &kept[1], NULL);
}

static rdna_status adagrad_v2(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  if (c->attributes->update_slots) TRY(add_square(c, &kept[1], grad));
  return step_by_root(c, &kept[0], &number[0], grad, &kept[1], &number[1]);
}

/* (lr, l1, l2), by Duchi and Singer, 2009: accum += grad^2; r = lr / sqrt(accum); x = var - r grad;
 * var = sign(x) max(|x| - r l1, 0) / (1 + r l2) */
static rdna_status proximal_adagrad(call *c, const rdna_tensor *kept, const rdna_tensor *grad,
                                    const rdna_tensor *number) {
  const rdna_tensor *var = &kept[0], *accum = &kept[1];
  rdna_tensor rate, step, size;
  TRY(like(c, var, &rate));
  TRY(like(c, var, &step));
  TRY(like(c, var, &size));
  TRY(add_square(c, accum, grad));
  TRY(map(c, RDNA_MAP_RSQRT, accum, &rate));
  TRY(zip(c, RDNA_ZIP_MUL, &rate, &number[0], &rate));
  TRY(zip(c, RDNA_ZIP_MUL, grad, &rate, &step));
  TRY(zip(c, RDNA_ZIP_SUB, var, &step, var));
  TRY(map(c, RDNA_MAP_ABS, var, &size));
  TRY(zip(c, RDNA_ZIP_MUL, &rate, &number[1], &step));
  TRY(zip(c, RDNA_ZIP_SUB, &size, &step, &size));
  TRY(zip_number(c, RDNA_ZIP_MAXIMUM, &size, 0, &size));
  TRY(map(c, RDNA_MAP_SIGN, var, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &size, &step, &size));
  TRY(zip(c, RDNA_ZIP_MUL, &rate, &number[2], &step));
  TRY(affine(c, &step, 1, 1, &step));
  return zip(c, RDNA_ZIP_DIV, &size, &step, var);
}

/* (lr, rho, epsilon), by Zeiler, 2012: accum = rho accum + (1 - rho) grad^2; x = sqrt((updates + epsilon) / (accum +
 * epsilon)) grad; updates = rho updates + (1 - rho) x^2; var -= lr x */
static rdna_status adadelta(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  const rdna_tensor *accum = &kept[1], *updates = &kept[2], *epsilon = &number[2];
  rdna_tensor step, scratch, square;
  TRY(like(c, grad, &step));
  TRY(like(c, grad, &scratch));
  TRY(like(c, grad, &square));
  TRY(map(c, RDNA_MAP_SQUARE, grad, &square));
  TRY(average(c, accum, &number[1], &square, &scratch));
  TRY(zip(c, RDNA_ZIP_ADD, updates, epsilon, &step));
  TRY(map(c, RDNA_MAP_SQRT, &step, &step));
  TRY(zip(c, RDNA_ZIP_ADD, accum, epsilon, &scratch));
  TRY(map(c, RDNA_MAP_RSQRT, &scratch, &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, &step, &scratch, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, grad, &step));
  TRY(map(c, RDNA_MAP_SQUARE, &step, &square));
  TRY(average(c, updates, &number[1], &square, &scratch));
  TRY(zip(c, RDNA_ZIP_MUL, &step, &number[0], &step));
  return zip(c, RDNA_ZIP_SUB, &kept[0], &step, &kept[0]);
}

/* m = beta m + (1 - beta) grad, and |agree| = sign_decay sign(grad) sign(m): 1 where they agree, before the decay */
static rdna_status agreement(call *c, const rdna_tensor *m, const rdna_tensor *grad, const rdna_tensor *decay,
                             const rdna_tensor *beta, rdna_tensor *agree) {
  rdna_tensor sign;
  TRY(like(c, m, agree));
  TRY(like(c, m, &sign));
  TRY(average(c, m, beta, grad, &sign));
  TRY(map(c, RDNA_MAP_SIGN, grad, agree));
  TRY(map(c, RDNA_MAP_SIGN, m, &sign));
  TRY(zip(c, RDNA_ZIP_MUL, agree, &sign, agree));
  return zip(c, RDNA_ZIP_MUL, agree, decay, agree);
}

/* var -= lr factor grad; changes |factor| */
static rdna_status step_by_factor(call *c, const rdna_tensor *var, const rdna_tensor *lr, const rdna_tensor *factor,
                                  const rdna_tensor *grad) {
  TRY(zip(c, RDNA_ZIP_MUL, factor, lr, factor));
  TRY(zip(c, RDNA_ZIP_MUL, factor, grad, factor));
  return zip(c, RDNA_ZIP_SUB, var, factor, var);
}

/* (lr, alpha, sign_decay, beta): var -= lr (alpha + agreement) grad */
static rdna_status add_sign(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  rdna_tensor factor;
  TRY(agreement(c, &kept[1], grad, &number[2], &number[3], &factor));
  TRY(zip(c, RDNA_ZIP_ADD, &factor, &number[1], &factor));
  return step_by_factor(c, &kept[0], &number[0], &factor, grad);
}

/* (lr, logbase, sign_decay, beta): var -= lr exp(logbase agreement) grad */
static rdna_status power_sign(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  rdna_tensor factor;
  TRY(agreement(c, &kept[1], grad, &number[2], &number[3], &factor));
  TRY(zip(c, RDNA_ZIP_MUL, &factor, &number[1], &factor));
  TRY(map(c, RDNA_MAP_EXP, &factor, &factor));
  return step_by_factor(c, &kept[0], &number[0], &factor, grad);
}

/* McMahan and others, 2013: new = accum + grad^2; linear += g - (new^-power - accum^-power) / lr var;
 * var = (linear held within l1 - linear) / (new^-power / lr + 2 l2); accum = new. g is the gradient, with a shrinkage
 * grad + 2 shrinkage var. Where linear is kept times lr, everything but its steps by grad is. */
static rdna_status follow_the_leader(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *lr,
                                     const rdna_tensor *l1, const rdna_tensor *l2, const rdna_tensor *shrinkage,
                                     const rdna_tensor *power) {
  const rdna_tensor *var = &kept[0], *accum = &kept[1], *linear = &kept[2];
  bool times_lr = c->attributes->multiply_linear_by_lr;
  rdna_tensor exponent, bound, below, step, before, after;
  TRY(like(c, power, &exponent));
  TRY(like(c, power, &bound));
  TRY(like(c, power, &below));
  TRY(like(c, var, &step));
  TRY(like(c, var, &before));
  TRY(like(c, var, &after));
  TRY(map(c, RDNA_MAP_NEG, power, &exponent));
  TRY(zip(c, RDNA_ZIP_POW, accum, &exponent, &before));
  TRY(add_square(c, accum, grad));
  TRY(zip(c, RDNA_ZIP_POW, accum, &exponent, &after));
  if (shrinkage) {
    TRY(zip(c, RDNA_ZIP_MUL, var, shrinkage, &step));
    TRY(affine(c, &step, 2, 0, &step));
    TRY(zip(c, RDNA_ZIP_ADD, &step, grad, &step));
  } else {
    TRY(rdna_op_copy(c->stream, grad, &step));
  }
  if (times_lr) TRY(zip(c, RDNA_ZIP_MUL, &step, lr, &step));
  TRY(zip(c, RDNA_ZIP_ADD, linear, &step, linear));
  TRY(zip(c, RDNA_ZIP_SUB, &after, &before, &step));
  TRY(zip(c, RDNA_ZIP_MUL, &step, var, &step));
  if (!times_lr) TRY(zip(c, RDNA_ZIP_DIV, &step, lr, &step));
  TRY(zip(c, RDNA_ZIP_SUB, linear, &step, linear));
  TRY(affine(c, l2, 2, 0, &below));
  if (times_lr) {
    TRY(zip(c, RDNA_ZIP_MUL, &below, lr, &below));
    TRY(zip(c, RDNA_ZIP_MUL, l1, lr, &bound));
  } else {
    TRY(zip(c, RDNA_ZIP_DIV, &after, lr, &after));
    TRY(rdna_op_copy(c->stream, l1, &bound));
  }
  TRY(zip(c, RDNA_ZIP_ADD, &after, &below, &after));
  TRY(zip(c, RDNA_ZIP_MINIMUM, linear, &bound, &step));
  TRY(map(c, RDNA_MAP_NEG, &bound, &bound));
  TRY(zip(c, RDNA_ZIP_MAXIMUM, &step, &bound, &step));
  TRY(zip(c, RDNA_ZIP_SUB, &step, linear, &step));
  /* 0 within l1, also where there was no gradient yet and no l2, so that the divisor is 0 too */
  rdna_tensor within, none;
  TRY(call_scratch(c, RDNA_BOOL, step.rank, step.shape, &within));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_EQ, &step, zero, &within));
  TRY(call_scratch(c, step.dtype, 0, NULL, &none));
  TRY(fill(c, 0, &none));
  rdna_tensor zeros = repeated(&none, step.rank, step.shape);
  TRY(zip(c, RDNA_ZIP_DIV, &step, &after, &step));
  return rdna_op_where(c->stream, &within, &zeros, &step, var);
}

/* (lr, l1, l2, lr_power), and of the second version (lr, l1, l2, l2_shrinkage, lr_power) */
static rdna_status ftrl(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  return follow_the_leader(c, kept, grad, &number[0], &number[1], &number[2], NULL, &number[3]);
}

static rdna_status ftrl_v2(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number) {
  return follow_the_leader(c, kept, grad, &number[0], &number[1], &number[2], &number[3], &number[4]);
}

/* ---- operators ---- */

static const struct rule {
  rdna_status (*apply)(call *c, const rdna_tensor *kept, const rdna_tensor *grad, const rdna_tensor *number);
  int kept, gradient; /* how many variables, which are the first inputs, and which input is the gradient */
} rules[] = {
    [OPTIMIZE_GRADIENT_DESCENT] = {gradient_descent, 1, 2},
    [OPTIMIZE_MOMENTUM] = {momentum, 2, 3},
    [OPTIMIZE_KERAS_MOMENTUM] = {keras_momentum, 2, 3},
    [OPTIMIZE_ADAM] = {adam, 3, 9},
    [OPTIMIZE_AMSGRAD] = {amsgrad, 4, 10},
    [OPTIMIZE_ADA_MAX] = {ada_max, 3, 8},
    [OPTIMIZE_RMS_PROP] = {rms_prop, 3, 7},
    [OPTIMIZE_CENTERED_RMS_PROP] = {centered_rms_prop, 4, 8},
    [OPTIMIZE_ADAGRAD] = {adagrad, 2, 3},
    [OPTIMIZE_ADAGRAD_V2] = {adagrad_v2, 2, 4},
    [OPTIMIZE_PROXIMAL_ADAGRAD] = {proximal_adagrad, 2, 5},
    [OPTIMIZE_ADADELTA] = {adadelta, 3, 6},
    [OPTIMIZE_ADD_SIGN] = {add_sign, 2, 6},
    [OPTIMIZE_POWER_SIGN] = {power_sign, 2, 6},
    [OPTIMIZE_FTRL] = {ftrl, 3, 3},
    [OPTIMIZE_FTRL_V2] = {ftrl_v2, 3, 3},
};

/* The inputs behind the variables: the gradient, indices behind it if |out_indices|, and the rest. */
static rdna_status read_inputs(call *c, const struct rule *rule, rdna_tensor *grad, rdna_tensor *out_indices,
                               rdna_tensor *number) {
  int last = call_inputs(c), numbers = 0;
  if (last > MOST_INPUTS) return call_fail(c, RDNA_INTERNAL, "an optimizer of %d inputs", last);
  for (int i = rule->kept; i < last; i++) {
    bool indices = out_indices && i == rule->gradient + 1;
    TRY(call_input(c, i, i == rule->gradient ? grad : indices ? out_indices : &number[numbers++]));
  }
  return RDNA_OK;
}

static rdna_status write_kept(call *c, const struct rule *rule, rdna_tensor *kept) {
  for (int i = 0; i < rule->kept; i++) {
    TRY(variable_to_write(c, i, true, &kept[i]));
    if (kept[i].dtype != kept[0].dtype || !same_shape(&kept[i], kept[0].rank, kept[0].shape))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "var and what is kept of it do not have the same shape");
  }
  return RDNA_OK;
}

static rdna_status optimize(call *c) {
  const struct rule *rule = &rules[c->number];
  rdna_tensor kept[MOST_KEPT], number[MOST_INPUTS], grad;
  TRY(read_inputs(c, rule, &grad, NULL, number));
  TRY(write_kept(c, rule, kept));
  if (!same_shape(&kept[0], grad.rank, grad.shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "var and grad do not have the same shape");
  return rule->apply(c, kept, &grad, number);
}

/* A gradient's place in the list of all, the row it is of, and how many there were of that row before it. */
struct use {
  int64_t row, place, turn;
};

static int by_row(const void *a, const void *b) {
  const struct use *x = a, *y = b;
  return x->row != y->row ? (x->row < y->row ? -1 : 1) : x->place < y->place ? -1 : x->place > y->place;
}

static int by_turn(const void *a, const void *b) {
  const struct use *x = a, *y = b;
  return x->turn != y->turn ? (x->turn < y->turn ? -1 : 1) : by_row(a, b);
}

/* |indices|, which are in host memory, sorted by turns: in each no row comes twice. */
static rdna_status take_turns(call *c, const int64_t *indices, int64_t count, int64_t rows, struct use *uses) {
  for (int64_t i = 0; i < count; i++) {
    if (indices[i] < 0 || indices[i] >= rows)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Index %lld at offset %lld in indices is out of range: [0, %lld)",
                       (long long)indices[i], (long long)i, (long long)rows);
    uses[i] = (struct use){.row = indices[i], .place = i};
  }
  qsort(uses, (size_t)count, sizeof *uses, by_row);
  for (int64_t i = 1; i < count; i++)
    if (uses[i].row == uses[i - 1].row) uses[i].turn = uses[i - 1].turn + 1;
  qsort(uses, (size_t)count, sizeof *uses, by_turn);
  return RDNA_OK;
}

/* The step of rows |indices|, none of them twice. */
static rdna_status step_rows(call *c, const struct rule *rule, const rdna_tensor *kept, const rdna_tensor *grad,
                             const rdna_tensor *indices, const rdna_tensor *number) {
  rdna_tensor rows[MOST_KEPT];
  for (int i = 0; i < rule->kept; i++) {
    TRY(like(c, grad, &rows[i]));
    TRY(rdna_op_index_select(c->stream, &kept[i], 0, indices, &rows[i], NULL));
  }
  TRY(rule->apply(c, rows, grad, number));
  for (int i = 0; i < rule->kept; i++)
    TRY(rdna_op_index_copy(c->stream, &kept[i], 0, indices, &rows[i], RDNA_SCATTER_ASSIGN, false, NULL));
  return RDNA_OK;
}

/* Turn by turn, |list| having room for a turn's places. */
static rdna_status step_in_turns(call *c, const struct rule *rule, const rdna_tensor *kept, const rdna_tensor *grad,
                                 const rdna_tensor *indices, const rdna_tensor *number, const struct use *uses,
                                 int64_t *list) {
  int64_t count = indices->shape[0];
  if (uses[count - 1].turn == 0) return step_rows(c, rule, kept, grad, indices, number);
  for (int64_t done = 0; done < count;) {
    int64_t n = 0, shape[RDNA_MAX_RANK];
    int before = c->scratch_count;
    rdna_tensor places, some, which;
    for (; done + n < count && uses[done + n].turn == uses[done].turn; n++) list[n] = uses[done + n].place;
    memcpy(shape, grad->shape, sizeof shape);
    shape[0] = n;
    TRY(call_upload(c, RDNA_I64, n, list, &places));
    TRY(call_scratch(c, grad->dtype, grad->rank, shape, &some));
    TRY(call_scratch(c, indices->dtype, 1, &n, &which));
    TRY(rdna_op_index_select(c->stream, grad, 0, &places, &some, NULL));
    TRY(rdna_op_index_select(c->stream, indices, 0, &places, &which, NULL));
    TRY(step_rows(c, rule, kept, &some, &which, number));
    TRY(call_release(c, before));
    done += n;
  }
  return RDNA_OK;
}

/* Rows that the indices say. A row that comes again makes another step, in the order of the list, as on TensorFlow's
 * CPU; one that is not there is refused. The host waits for the indices. */
static rdna_status optimize_rows(call *c) {
  const struct rule *rule = &rules[c->number];
  rdna_tensor kept[MOST_KEPT], number[MOST_INPUTS], grad, indices, var, wide;
  TRY(read_inputs(c, rule, &grad, &indices, number));
  TRY(variable_value(c, 0, &var));
  bool fits = var.rank > 0 && indices.rank == 1 && grad.rank == var.rank && grad.shape[0] == indices.shape[0];
  for (int i = 1; fits && i < grad.rank; i++) fits = grad.shape[i] == var.shape[i];
  if (!fits)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "grad must have a row of var for each index, and indices one dimension");
  int64_t count = indices.shape[0];
  if (count == 0) return RDNA_OK;
  TRY(as_type(c, &indices, RDNA_I64, &wide));
  int64_t *list = malloc((size_t)count * sizeof *list);
  struct use *uses = malloc((size_t)count * sizeof *uses);
  rdna_status result = list && uses ? call_read(c, &wide, list)
                                    : call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for %lld indices", (long long)count);
  if (result == RDNA_OK) result = take_turns(c, list, count, var.shape[0], uses);
  if (result == RDNA_OK) result = write_kept(c, rule, kept);
  if (result == RDNA_OK && rdna_tensor_count(&grad))
    result = step_in_turns(c, rule, kept, &grad, &indices, number, uses, list);
  free(uses);
  free(list);
  return result;
}

LOCKED(compute_optimize, optimize)
LOCKED(compute_optimize_rows, optimize_rows)
