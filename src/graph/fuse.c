/* Fewer launches: operations on values join into chains (rdna/op/fused.h), and what follows a product becomes its
 * epilogue. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"

/* Which operations chains have: the column |chain| of rdna/op/pointwise.def. */
enum { NO, SLOW, QUICK, FAST };
#define CHAIN(NAME, name, types, chain, ...) chain,
static const uint8_t map_chains[] = {RDNA_POINTWISE_MAPS(CHAIN, CHAIN, , )};
static const uint8_t zip_chains[] = {RDNA_POINTWISE_ZIPS(CHAIN, CHAIN, )};

/* One operation as a chain's step. |through| is the value that goes through it, |side| the other or -1. */
typedef struct operation {
  rdna_fused_step step;
  int32_t through, side;
} operation;

static rdna_fused_step map_step(rdna_map op, double p, double q) {
  return (rdna_fused_step){.op = (int)op, .p = (float)p, .q = (float)q};
}

/* A zip with a number as a map; false: there is none that gives the same values. */
static bool with_number(rdna_zip op, double n, bool number_first, rdna_fused_step *out) {
  int exponent;
  switch (op) {
    case RDNA_ZIP_ADD:
      *out = map_step(RDNA_MAP_AFFINE, 1, n);
      return true;
    case RDNA_ZIP_SUB:
      *out = number_first ? map_step(RDNA_MAP_AFFINE, -1, n) : map_step(RDNA_MAP_AFFINE, 1, -n);
      return true;
    case RDNA_ZIP_MUL:
      *out = map_step(RDNA_MAP_AFFINE, n, -0.0); /* which leaves a product of -0 as it is */
      return true;
    case RDNA_ZIP_DIV:
      *out = map_step(RDNA_MAP_AFFINE, 1 / n, -0.0);
      return !number_first && fabs(frexp(n, &exponent)) == 0.5 && exponent > -100 && exponent < 100;
    case RDNA_ZIP_MAXIMUM:
      *out = map_step(RDNA_MAP_CLAMP, n, (double)INFINITY);
      return !isnan(n);
    case RDNA_ZIP_MINIMUM:
      *out = map_step(RDNA_MAP_CLAMP, -(double)INFINITY, n);
      return !isnan(n);
    default:
      return false;
  }
}

static bool has_chains(const rdna_node *node) {
  const rdna__type *type = &node->type;
  bool real = type->dtype == RDNA_F32 || type->dtype == RDNA_F16 || type->dtype == RDNA_BF16;
  return real && type->rank <= 4 && rdna__type_count(type) < INT32_MAX;
}

/* |step| as an operation, with the first input going through. */
static bool as_operation(const rdna__step *step, operation *out) {
  const rdna_node *node = step->node;
  const rdna__attributes *a = &node->attributes;
  if (step->dropped || !has_chains(node)) return false;
  if (node->op == &rdna__operator_map && map_chains[a->code] != NO) {
    *out = (operation){map_step((rdna_map)a->code, a->p.real, a->q.real), step->inputs[0], -1};
    return true;
  }
  if (node->op != &rdna__operator_zip || zip_chains[a->code] == NO) return false;
  if (step->inputs[0] >= 0 && step->inputs[1] >= 0) {
    *out = (operation){{.op = a->code, .is_zip = true, .p = (float)a->p.real, .q = (float)a->q.real},
                       step->inputs[0],
                       step->inputs[1]};
    return true;
  }
  bool first = step->inputs[0] < 0;
  const rdna_node *number = rdna__number_behind(node->inputs[first ? 0 : 1]);
  *out = (operation){.through = step->inputs[first ? 1 : 0], .side = -1};
  return with_number((rdna_zip)a->code, number->attributes.p.real, first, &out->step);
}

/* ---- chains ---- */

/* Adds an operation; false: there is no place for it. */
static bool append(rdna__chain *chain, operation o) {
  if (chain->step_count == RDNA_FUSED_MAX_STEPS) return false;
  if (o.side >= 0) {
    int i = 0;
    while (i < chain->input_count && chain->inputs[i] != o.side) i++;
    if (i == RDNA_FUSED_MAX_INPUTS) return false;
    if (i == chain->input_count) chain->inputs[chain->input_count++] = o.side;
    o.step.input = i;
  }
  chain->steps[chain->step_count++] = o.step;
  return true;
}

/* The step that makes |value|, if it is a chain or an operation that can go on into |node|, its only reader. */
static rdna__step *source(rdna_plan *plan, int32_t value, const rdna_node *node) {
  const rdna__value *v = &plan->values[value];
  if (v->step < 0 || v->readers != 1 || v->is_output) return NULL;
  rdna__step *made = &plan->steps[v->step];
  operation ignored;
  bool fits = made->node->type.dtype == node->type.dtype && rdna__same_shape(&made->node->type, &node->type);
  return fits && (made->chain || as_operation(made, &ignored)) ? made : NULL;
}

/* The product, or other operator with an activation, that |value| is, if |node|, of its type, is all that reads it. */
static rdna__step *product_before(rdna_plan *plan, int32_t value, const rdna_node *node) {
  const rdna__value *v = &plan->values[value];
  if (v->step < 0 || v->readers != 1 || v->is_output) return NULL;
  rdna__step *made = &plan->steps[v->step];
  const rdna_node *product = made->node;
  bool fits = product->op->run_activated || (product->op == &rdna__operator_matmul && product->type.rank == 2);
  fits = fits && !made->epilogue && product->type.dtype == node->type.dtype;
  return fits && rdna__same_shape(&product->type, &node->type) ? made : NULL;
}

/* The other value goes through the operation. */
static void turn(operation *o) {
  int32_t side = o->side;
  o->side = o->through;
  o->through = side;
  o->step.input_first = true;
}

/* Begins a chain, with a product going through it where there is one. */
static void start(rdna_plan *plan, const rdna__step *step, rdna__chain *chain) {
  operation o;
  (void)as_operation(step, &o);
  if (!product_before(plan, o.through, step->node) && o.side >= 0 && product_before(plan, o.side, step->node)) turn(&o);
  *chain = (rdna__chain){.input_count = 1, .inputs = {o.through}};
  (void)append(chain, o);
}

static rdna_status join(rdna_plan *plan, rdna__step *step) {
  operation o;
  if (!as_operation(step, &o)) return RDNA_OK;
  rdna__step *from = source(plan, o.through, step->node);
  if (!from && o.side >= 0 && (from = source(plan, o.side, step->node))) {
    turn(&o);
  }
  if (!from) return RDNA_OK;
  if (!from->chain) {
    from->chain = malloc(sizeof *from->chain);
    if (!from->chain) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a chain");
    start(plan, from, from->chain);
  }
  if (!append(from->chain, o)) return RDNA_OK;
  step->chain = from->chain;
  from->chain = NULL;
  from->dropped = true;
  return RDNA_OK;
}

/* ---- products ---- */

static rdna_activation activation_of(const rdna_fused_step *step) {
  if (step->is_zip) return RDNA_ACTIVATION_NONE;
  switch ((rdna_map)step->op) {
    case RDNA_MAP_RELU:
      return RDNA_ACTIVATION_RELU;
    case RDNA_MAP_SIGMOID:
      return RDNA_ACTIVATION_SIGMOID;
    case RDNA_MAP_TANH:
      return RDNA_ACTIVATION_TANH;
    case RDNA_MAP_SILU:
      return RDNA_ACTIVATION_SILU;
    case RDNA_MAP_GELU_TANH:
      return RDNA_ACTIVATION_GELU_TANH;
    case RDNA_MAP_GELU_ERF:
      return RDNA_ACTIVATION_GELU_ERF;
    default:
      return RDNA_ACTIVATION_NONE;
  }
}

static bool is_sum_with(const rdna__chain *chain, int i, int32_t *value) {
  if (i >= chain->step_count || !chain->steps[i].is_zip || chain->steps[i].op != RDNA_ZIP_ADD) return false;
  *value = chain->inputs[chain->steps[i].input];
  return true;
}

/* The type of a value, which is known to be there. */
static rdna__type type_of(const rdna_plan *plan, int32_t at) {
  const rdna__value *value = &plan->values[at];
  rdna__type type = value->node->type;
  if (value->step >= 0 &&
      rdna__step_type(&plan->steps[value->step], at - plan->steps[value->step].result, &type) != RDNA_OK)
    type.rank = -1; /* which nothing fits */
  return type;
}

/* Reads a chain as bias, activation and residual, in that order, each of which may be missing; false: it is more. */
static bool read_epilogue(const rdna_plan *plan, const rdna__chain *chain, const rdna_node *product,
                          rdna__epilogue *out) {
  const rdna__type *type = &product->type;
  int i = 0;
  int32_t value;
  *out = (rdna__epilogue){-1, -1, RDNA_ACTIVATION_NONE};
  if (product->op->run_activated) {
    out->activation = activation_of(&chain->steps[0]);
    unsigned taken = product->op->activations ? product->op->activations : ~1u;
    return chain->step_count == 1 && (taken >> out->activation & 1);
  }
  if (is_sum_with(chain, i, &value)) {
    rdna__type side = type_of(plan, value);
    bool row =
        (side.rank == 1 || (side.rank == 2 && side.shape[0] == 1)) && side.shape[side.rank - 1] == type->shape[1];
    if (row) out->bias = value, i++;
  }
  if (i < chain->step_count && activation_of(&chain->steps[i]) != RDNA_ACTIVATION_NONE)
    out->activation = activation_of(&chain->steps[i++]);
  if (is_sum_with(chain, i, &value)) {
    rdna__type side = type_of(plan, value);
    if (rdna__same_shape(&side, type)) out->residual = value, i++;
  }
  return i == chain->step_count;
}

/* The chain's step becomes the product with its epilogue: what the chain reads is there by then. */
static rdna_status absorb(rdna_plan *plan, rdna__step *step) {
  operation ignored;
  rdna__chain alone, *chain = step->chain;
  if (!chain) {
    if (!as_operation(step, &ignored)) return RDNA_OK;
    start(plan, step, &alone);
    chain = &alone;
  }
  rdna__step *product = product_before(plan, chain->inputs[0], step->node);
  rdna__epilogue epilogue;
  if (!product || !read_epilogue(plan, chain, product->node, &epilogue)) return RDNA_OK;
  rdna__epilogue *kept = malloc(sizeof *kept);
  if (!kept) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an epilogue");
  *kept = epilogue;
  free(step->chain);
  free(step->inputs);
  step->chain = NULL;
  step->epilogue = kept;
  step->inputs = product->inputs;
  step->node = product->node;
  product->inputs = NULL;
  product->dropped = true;
  return RDNA_OK;
}

rdna_status rdna__plan_fuse(rdna_plan *plan) {
  for (int64_t i = 0; i < plan->step_count; i++) RDNA_TRY(join(plan, &plan->steps[i]));
  for (int64_t i = 0; i < plan->step_count; i++)
    if (!plan->steps[i].dropped) RDNA_TRY(absorb(plan, &plan->steps[i]));
  return RDNA_OK;
}
