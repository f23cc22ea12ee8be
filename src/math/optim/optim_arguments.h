/* Rows of the operators of optim.h for arguments_test.c. */
#ifndef RDNA_MATH_OPTIM_OPTIM_ARGUMENTS_H
#define RDNA_MATH_OPTIM_OPTIM_ARGUMENTS_H

#include "math/common/test/arguments.h"

#define GRAD in("grad", MAIN_OR(FLOATS), 0, SHAPE(M, N))
#define STATE(name) out(name, ONLY(RDNA_F32), 0, SHAPE(M, N))
static rdna_status optimize(rdna_optim options, const rdna_optim_item *item) {
  options.learning_rate = (float)number("learning_rate", 0.1, "0", "-1 nan");
  options.weight_decay = (float)number("weight_decay", 0.1, "0", "-1 nan");
  options.step = (int64_t)number("step", 2, "1", "0 -1");
  return rdna_op_optim_step(stream, given_options("options", &options), given("items", item),
                            (int)number("count", 1, "0", "-1"), in("grad_scale", ONLY(RDNA_F32), OPTIONAL, ONE),
                            in("found_inf", ONLY(RDNA_F32), OPTIONAL, ONE));
}
OPERATOR(optim_step, sgd, .types = FLOATS, .empty = "MN") {
  return optimize(
      (rdna_optim){RDNA_OPTIM_INIT, .kind = (rdna_optim_kind)number("kind", RDNA_OPTIM_KIND_SGD, "", "-1 3"),
                   .momentum = (float)number("momentum", 0.9, "", "-1 nan")},
      &(rdna_optim_item){.param = STATE("param"), .grad = GRAD, .state = {STATE("state 0")}});
}
OPERATOR(optim_step, adam, .types = FLOATS, .empty = "MN") {
  return optimize(
      (rdna_optim){RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_ADAM, .beta1 = (float)number("beta1", 0.9, "0", "-1 1 nan"),
                   .beta2 = (float)number("beta2", 0.9, "0", "-1 1 nan"), .amsgrad = true,
                   .epsilon = number("epsilon", 1e-8, "0", "-1 nan")},
      &(rdna_optim_item){.param = STATE("param"),
                         .grad = GRAD,
                         .state = {STATE("state 0"), STATE("state 1"), STATE("state 2")},
                         .step = in("step", ONLY(RDNA_F32), OPTIONAL, ONE)});
}
OPERATOR(optim_step, rmsprop, .types = FLOATS, .empty = "MN") {
  return optimize(
      (rdna_optim){RDNA_OPTIM_INIT, .kind = RDNA_OPTIM_KIND_RMSPROP, .beta1 = 0.9f, .momentum = 0.5f, .centered = true,
                   .epsilon = number("epsilon", 1e-8, "0", "-1 nan")},
      &(rdna_optim_item){
          .param = STATE("param"), .grad = GRAD, .state = {STATE("state 0"), STATE("state 1"), STATE("state 2")}});
}
OPERATOR(grad_norm, plain, .types = FLOATS, .empty = "MN") {
  const rdna_tensor *grads[] = {in("grad", MAIN_OR(FLOATS), FREE_ALL | MORE_DIMS | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_grad_norm(stream, given("grads", grads), (int)number("count", 1, "0", "-1"),
                           (float)number("largest", 1, "0 inf", "-1 nan"), out("norm", ONLY(RDNA_F32), 0, ONE),
                           out("factor", ONLY(RDNA_F32), OPTIONAL, ONE));
}
OPERATOR(grad_norms, plain, .types = FLOATS, .empty = "MN") {
  const rdna_tensor *grads[] = {in("grad", MAIN_OR(FLOATS), FREE_ALL | MORE_DIMS | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_grad_norms(stream, given("grads", grads), (int)number("count", 1, "", "-1 0 2"),
                            out("norms", ONLY(RDNA_F32), 0, SHAPE(1)));
}
OPERATOR(grad_scale, plain, .types = FLOATS, .empty = "MN") {
  const rdna_tensor *grads[] = {out("grad", MAIN_OR(FLOATS), FREE_ALL | MORE_DIMS | FEWER_DIMS, SHAPE(M, N))};
  return rdna_op_grad_scale(stream, given("grads", grads), (int)number("count", 1, "0", "-1"),
                            in("factor", ONLY(RDNA_F32), 0, ONE), out("found_inf", ONLY(RDNA_F32), OPTIONAL, ONE));
}
static const rdna_tensor *const *no_tensors(void) { return NULL; }
OPERATOR(grad_norm, of_none, .types = F32) {
  return rdna_op_grad_norm(stream, no_tensors(), 0, 1, out("norm", ONLY(RDNA_F32), 0, ONE), NULL);
}
OPERATOR(grad_scale, of_none, .types = F32) {
  return rdna_op_grad_scale(stream, no_tensors(), 0, in("factor", ONLY(RDNA_F32), 0, ONE), NULL);
}

#endif
