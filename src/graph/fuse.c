/* Fewer launches: operations on values join into chains (rdna/op/fused.h), and what follows a product becomes its
 * epilogue. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "math/pointwise/contiguous.h"

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
  rdna_map map;
  double p, q;
  bool found = rdna__zip_number_as_map(op, n, number_first, &map, &p, &q);
  *out = map_step(map, p, q);
  return found;
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

/* The number of |value| among the chain's inputs, which |reads| more of its readers read; -1: there is no room. */
static int add_input(rdna__chain *chain, int32_t value, int reads) {
  int i = 0;
  while (i < chain->input_count && chain->inputs[i] != value) i++;
  if (i == chain->input_count) {
    if (chain->input_count + chain->kept_count == RDNA_FUSED_MAX_INPUTS) return -1;
    chain->reads[chain->input_count] = 0;
    chain->inputs[chain->input_count++] = value;
  }
  chain->reads[i] += reads;
  return i;
}

static bool add_step(rdna__chain *chain, rdna_fused_step step) {
  if (chain->step_count == RDNA_FUSED_MAX_STEPS) return false;
  chain->steps[chain->step_count++] = step;
  return true;
}

/* Adds an operation; false: there is no place for it. */
static bool append(rdna__chain *chain, operation o) {
  if (chain->step_count == RDNA_FUSED_MAX_STEPS) return false;
  if (o.side >= 0 && (o.step.input = add_input(chain, o.side, 1)) < 0) return false;
  return add_step(chain, o.step);
}

/* The step that makes |value|, if it is a chain or an operation that can go on into |node|, which has all |reads| of
 * its readers. */
static rdna__step *source(rdna_plan *plan, int32_t value, const rdna_node *node, int reads) {
  const rdna__value *v = &plan->values[value];
  if (v->step < 0 || v->readers != reads || v->is_output) return NULL;
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
  *chain = (rdna__chain){.input_count = 1, .inputs = {o.through}, .reads = {1}};
  (void)append(chain, o);
}

static rdna_status join(rdna_plan *plan, rdna__step *step) {
  operation o;
  if (!as_operation(step, &o)) return RDNA_OK;
  rdna__step *from = source(plan, o.through, step->node, 1);
  if (!from && o.side >= 0 && (from = source(plan, o.side, step->node, 1))) {
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

/* Whether a chain that makes |node| is all epilogue of the product that it begins with. */
static bool is_epilogue(rdna_plan *plan, const rdna__chain *chain, const rdna_node *node) {
  rdna__step *product = product_before(plan, chain->inputs[0], node);
  rdna__epilogue ignored;
  return product && read_epilogue(plan, chain, product->node, &ignored);
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

/* ---- forks: branches that join are one chain, which keeps what it computes of the one during the other ---- */

static int kept(int i) { return RDNA_FUSED_MAX_INPUTS + i; }

/* Whether a step reads input |k|, beside the chain's beginning. */
static bool reads_again(const rdna__chain *chain, int k) {
  for (int i = 0; i < chain->step_count; i++) {
    const rdna_fused_step *step = &chain->steps[i];
    if ((step->is_zip || step->op == RDNA_FUSED_TAKE) && step->input == k) return true;
  }
  return false;
}

/* Adds the steps of |chain|, whose inputs have the numbers |number| in |out|. */
static bool add_steps(rdna__chain *out, const rdna__chain *chain, const int *number) {
  for (int i = 0; i < chain->step_count; i++) {
    rdna_fused_step step = chain->steps[i];
    if ((step.is_zip || step.op < 0) && step.input < chain->input_count) step.input = number[step.input];
    if (!add_step(out, step)) return false;
  }
  return true;
}

/* |chain| with the steps of |first| before it, which make its input |k|; false: they are too many. */
static bool prepend(const rdna__chain *chain, int k, const rdna__chain *first, rdna__chain *out) {
  bool keeps = k > 0 || reads_again(chain, k);
  int own = chain->kept_count + keeps, number[2][RDNA_FUSED_MAX_INPUTS];
  *out = (rdna__chain){.kept_count = own > first->kept_count ? own : first->kept_count};
  if (out->kept_count >= RDNA_FUSED_MAX_INPUTS) return false;
  for (int i = 0; i < first->input_count; i++)
    if ((number[0][i] = add_input(out, first->inputs[i], first->reads[i])) < 0) return false;
  for (int i = 0; i < chain->input_count; i++) {
    number[1][i] = i == k ? kept(chain->kept_count) : add_input(out, chain->inputs[i], chain->reads[i]);
    if (number[1][i] < 0) return false;
  }
  if (!add_steps(out, first, number[0])) return false;
  if (keeps && !add_step(out, (rdna_fused_step){.op = RDNA_FUSED_KEEP, .input = number[1][k]})) return false;
  if (k > 0 && !add_step(out, (rdna_fused_step){.op = RDNA_FUSED_TAKE, .input = number[1][0]})) return false;
  return add_steps(out, chain, number[1]);
}

/* The steps of |made|, as they are or will be: false where they go behind a product, in its launch. */
static bool as_chain(rdna_plan *plan, const rdna__step *made, rdna__chain *out) {
  if (made->chain)
    *out = *made->chain;
  else
    start(plan, made, out);
  return !is_epilogue(plan, out, made->node);
}

/* What makes inputs of the step's chain, and is read by nothing else, becomes part of it. */
static rdna_status gather(rdna_plan *plan, rdna__step *step) {
  operation ignored;
  rdna__chain chain, first, whole;
  if (!step->chain && !as_operation(step, &ignored)) return RDNA_OK;
  bool more = as_chain(plan, step, &chain), any = false;
  for (int k = 0; k < chain.input_count && more; k++) {
    rdna__step *made = source(plan, chain.inputs[k], step->node, chain.reads[k]);
    if (!made || !as_chain(plan, made, &first) || !prepend(&chain, k, &first, &whole)) continue;
    chain = whole;
    free(made->chain);
    made->chain = NULL;
    made->dropped = any = true;
    k = -1; /* its inputs may be read by nothing else now */
  }
  if (!any) return RDNA_OK;
  if (!step->chain) step->chain = malloc(sizeof *step->chain);
  if (!step->chain) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a chain");
  *step->chain = chain;
  return RDNA_OK;
}

/* An operation of two values alone is a chain, which may be compiled to a kernel of its own, where only sums,
 * differences, products and quotients have kernels for dense values: of a ResNet-50's step in f16 33 gradients of ReLU
 * take 0.50 ms on an H200, and 0.90 by the kernel for any operation and strides. */
static rdna_status stand_alone(rdna_plan *plan, rdna__step *step) {
  operation o;
  if (step->chain || step->epilogue || !as_operation(step, &o) || o.side < 0) return RDNA_OK;
  if (o.step.op == RDNA_ZIP_ADD || o.step.op == RDNA_ZIP_SUB || o.step.op == RDNA_ZIP_MUL || o.step.op == RDNA_ZIP_DIV)
    return RDNA_OK;
  step->chain = malloc(sizeof *step->chain);
  if (!step->chain) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a chain");
  *step->chain = (rdna__chain){.input_count = 1, .inputs = {o.through}, .reads = {1}};
  (void)append(step->chain, o);
  return RDNA_OK;
}

/* What is kept gets the numbers behind the inputs'. */
static void settle(rdna__chain *chain) {
  for (int i = 0; i < chain->step_count; i++)
    if (chain->steps[i].input >= RDNA_FUSED_MAX_INPUTS)
      chain->steps[i].input += chain->input_count - RDNA_FUSED_MAX_INPUTS;
}

rdna_status rdna__plan_fuse(rdna_plan *plan) {
  for (int64_t i = 0; i < plan->step_count; i++) {
    RDNA_TRY(join(plan, &plan->steps[i]));
    if (!plan->steps[i].dropped) RDNA_TRY(gather(plan, &plan->steps[i]));
  }
  for (int64_t i = 0; i < plan->step_count; i++)
    if (!plan->steps[i].dropped) {
      RDNA_TRY(absorb(plan, &plan->steps[i]));
      RDNA_TRY(stand_alone(plan, &plan->steps[i]));
      if (plan->steps[i].chain) settle(plan->steps[i].chain);
    }
  return RDNA_OK;
}
