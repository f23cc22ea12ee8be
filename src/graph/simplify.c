/* Steps that move fewer bytes for the same values, before steps are joined: losses of classes read logits as they were
 * before a cast; a sum of parts that lie beside each other puts them there; a product whose transpose is what is asked
 * for is computed so; and rows of an odd number of 16-bit values are made at multiples of 16 bytes where every reader
 * takes them so; and what batch norm has found of its channels is not found again. */
#include "graph/simplify.h"

#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "rdna/op/loss.h"

enum { MOST_PARTS = 16, MOST_VIEWS = 8, PADDED_COLUMNS = 256, PADDED_ROWS = 16 };

/* A step that |step| of a plan's becomes, or that is put before it. */
typedef struct insertion {
  int64_t before;
  rdna__step step;
} insertion;

/* Who reads a value: a list of inputs of steps. */
typedef struct reader {
  int64_t step;
  int input;
  int32_t next; /* the next reader of the same value, or -1 */
} reader;

typedef struct simplifying {
  rdna_plan *plan;
  rdna_recorder *r; /* of nodes that the plan's steps become */
  int32_t *alias;   /* (values) what is read in a value's place */
  int32_t *first;   /* (values) the first of its readers, or -1 */
  reader *readers;
  insertion *inserted;
  int64_t inserted_count, inserted_capacity, value_capacity;
  bool changed;
} simplifying;

static rdna_status fail_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a plan"); }

/* ---- looking ---- */

static rdna__step *step_of(const simplifying *s, int32_t value) {
  int32_t step = value < 0 ? -1 : s->plan->values[value].step;
  return step < 0 ? NULL : &s->plan->steps[step];
}

static bool is_of(const rdna__step *step, const rdna__operator *op) { return step && step->node->op == op; }

/* The step that alone reads |value|, which is no output; NULL: there is none such. */
static rdna__step *only_reader(const simplifying *s, int32_t value) {
  const rdna__value *v = &s->plan->values[value];
  if (v->is_output || v->readers != 1 || s->first[value] < 0) return NULL;
  return &s->plan->steps[s->readers[s->first[value]].step];
}

static rdna_status find_readers(simplifying *s) {
  const rdna_plan *plan = s->plan;
  int64_t total = 0;
  int32_t at = 0;
  for (int64_t i = 0; i < plan->step_count; i++) total += rdna__step_input_count(&plan->steps[i]);
  free(s->first);
  free(s->readers);
  s->first = malloc(((size_t)plan->value_count + 1) * sizeof *s->first);
  s->readers = malloc(((size_t)total + 1) * sizeof *s->readers);
  if (!s->first || !s->readers) return fail_memory();
  for (int64_t i = 0; i < plan->value_count; i++) s->first[i] = -1;
  for (int64_t i = 0; i < plan->step_count; i++) {
    if (plan->steps[i].dropped) continue;
    for (int k = 0; k < rdna__step_input_count(&plan->steps[i]); k++) {
      int32_t value = rdna__step_input(&plan->steps[i], k);
      if (value < 0) continue;
      s->readers[at] = (reader){i, k, s->first[value]};
      s->first[value] = at++;
    }
  }
  return RDNA_OK;
}

/* ---- changing ---- */

/* A node in the place of a value of |type|, for others to be recorded with. */
static rdna_node *stand_in(simplifying *s, rdna_dtype dtype, const rdna__type *type) {
  return rdna_record_input(s->r, dtype, type->rank, type->shape);
}

static rdna_node *record_reshape(simplifying *s, rdna_dtype dtype, const rdna__type *from, const rdna__type *to) {
  rdna_node *x = stand_in(s, dtype, from);
  rdna__attributes a = {.number_count = to->rank, .numbers = to->shape};
  return rdna__record(s->r, &rdna__operator_reshape, &a, &x, 1);
}

/* Nodes that are recorded from now on say where |step|'s was. */
static void stand_for(simplifying *s, const rdna__step *step) {
  const char *origin = rdna__node_origin(step->node);
  rdna_recorder_origin(s->r, *origin ? origin : NULL);
}

/* |step| computes |node| from now on. */
static void become(simplifying *s, rdna__step *step, rdna_node *node) {
  step->node = node;
  for (int k = 0; k < (node->op->results > 1 ? node->op->results : 1); k++)
    s->plan->values[step->result + k].node = node;
  s->changed = true;
}

/* Puts a step of one input before |before|; |*out| is its value. */
static rdna_status insert(simplifying *s, int64_t before, rdna_node *node, int32_t input, int32_t *out) {
  rdna_plan *plan = s->plan;
  if (plan->value_count == s->value_capacity) {
    int64_t capacity = 2 * s->value_capacity + 16;
    rdna__value *values = realloc(plan->values, (size_t)capacity * sizeof *values);
    if (values) plan->values = values;
    int32_t *alias = values ? realloc(s->alias, (size_t)capacity * sizeof *alias) : NULL;
    if (!alias) return fail_memory();
    s->alias = alias;
    s->value_capacity = capacity;
  }
  if (s->inserted_count == s->inserted_capacity) {
    int64_t capacity = 2 * s->inserted_capacity + 16;
    insertion *grown = realloc(s->inserted, (size_t)capacity * sizeof *grown);
    if (!grown) return fail_memory();
    s->inserted = grown;
    s->inserted_capacity = capacity;
  }
  int32_t *inputs = malloc(2 * sizeof *inputs);
  if (!inputs) return fail_memory();
  *inputs = input;
  *out = (int32_t)plan->value_count++;
  s->alias[*out] = *out;
  plan->values[*out] = (rdna__value){.node = node, .step = -1, .base = *out, .next_dead = -1};
  s->inserted[s->inserted_count++] = (insertion){before, {.node = node, .inputs = inputs, .result = *out, .dead = -1}};
  s->changed = true;
  return RDNA_OK;
}

/* In the order of places, and of one place in the order in which they were made. */
static int by_place(const void *a, const void *b) {
  const insertion *left = a, *right = b;
  if (left->before != right->before) return left->before < right->before ? -1 : 1;
  return left->step.result < right->step.result ? -1 : left->step.result > right->step.result;
}

static int32_t resolve(const simplifying *s, int32_t value) {
  while (value >= 0 && s->alias[value] != value) value = s->alias[value];
  return value;
}

/* Puts the steps that were inserted in their places, and lets everyone read what stands for what. */
static rdna_status settle(simplifying *s) {
  rdna_plan *plan = s->plan;
  int64_t count = plan->step_count + s->inserted_count, at = 0, next = 0;
  rdna__step *steps = malloc(((size_t)count + 1) * sizeof *steps);
  if (!steps) return fail_memory();
  if (s->inserted_count) qsort(s->inserted, (size_t)s->inserted_count, sizeof *s->inserted, by_place);
  for (int64_t i = 0; i < plan->step_count; i++) {
    while (next < s->inserted_count && s->inserted[next].before == i) steps[at++] = s->inserted[next++].step;
    steps[at++] = plan->steps[i];
  }
  s->inserted_count = 0;
  free(plan->steps);
  plan->steps = steps;
  plan->step_count = count;
  for (int i = 0; i < plan->output_count; i++) {
    int32_t old = plan->output_values[i];
    plan->values[old].is_output = false;
    plan->output_values[i] = resolve(s, old);
  }
  for (int i = 0; i < plan->output_count; i++) plan->values[plan->output_values[i]].is_output = true;
  for (int64_t i = 0; i < count; i++) {
    rdna__step *step = &steps[i];
    for (int k = 0; k < step->node->input_count; k++) step->inputs[k] = resolve(s, step->inputs[k]);
    for (int k = 0; k < (step->node->op->results > 1 ? step->node->op->results : 1); k++) {
      rdna__value *value = &plan->values[step->result + k];
      value->step = (int32_t)i;
      value->base = step->node->op->view ? plan->values[step->inputs[0]].base : step->result + k;
    }
  }
  rdna__plan_count_readers(plan);
  return find_readers(s);
}

/* ---- logits that were cast ---- */

/* What |value|, which is f32, was before it was cast from 16 bits and reshaped; -1: nothing such. */
static int32_t before_cast(const simplifying *s, int32_t value) {
  const rdna__step *step = step_of(s, value);
  for (int i = 0; i < MOST_VIEWS && is_of(step, &rdna__operator_reshape); i++) step = step_of(s, step->inputs[0]);
  if (!is_of(step, &rdna__operator_cast) || step->node->type.dtype != RDNA_F32 || step->inputs[0] < 0) return -1;
  rdna_dtype dtype = step->node->inputs[0]->type.dtype;
  return dtype == RDNA_F16 || dtype == RDNA_BF16 ? step->inputs[0] : -1;
}

/* The cast to |dtype| that alone reads |value|, behind reshapes; NULL: others read it. */
static rdna__step *cast_behind(const simplifying *s, int32_t value, rdna_dtype dtype) {
  rdna__step *step = only_reader(s, value);
  for (int i = 0; i < MOST_VIEWS && is_of(step, &rdna__operator_reshape); i++) step = only_reader(s, step->result);
  return is_of(step, &rdna__operator_cast) && step->node->type.dtype == dtype ? step : NULL;
}

/* The loss reads |x|, the 16-bit logits, and so do its gradients, which are cast to them as it is. */
static rdna_status read_narrow(simplifying *s, rdna__step *loss, int32_t x) {
  int32_t logits = loss->inputs[0];
  rdna_dtype dtype = s->plan->values[x].node->type.dtype;
  rdna__type wide = loss->node->inputs[0]->type, narrow = step_of(s, logits)->node->type;
  bool shaped = is_of(step_of(s, logits), &rdna__operator_reshape);
  for (int32_t i = s->first[logits]; i >= 0; i = s->readers[i].next) {
    const rdna__step *other = &s->plan->steps[s->readers[i].step];
    if (other == loss && s->readers[i].input == 0) continue;
    bool back = is_of(other, &rdna__operator_cross_entropy_back) && s->readers[i].input == 3;
    if (!back || !cast_behind(s, other->result, dtype)) return RDNA_OK;
  }
  if (s->plan->values[logits].is_output) return RDNA_OK;
  narrow.dtype = dtype;
  stand_for(s, loss);
  for (int32_t i = s->first[logits]; i >= 0; i = s->readers[i].next) {
    rdna__step *step = &s->plan->steps[s->readers[i].step];
    const rdna_node *node = step->node;
    rdna_node *inputs[6];
    for (int k = 0; k < node->input_count; k++)
      inputs[k] = stand_in(s, node->inputs[k]->type.dtype, &node->inputs[k]->type);
    inputs[s->readers[i].input] = stand_in(s, dtype, &wide);
    rdna__attributes a = node->attributes;
    a.dims |= RDNA__ENTROPY_F32;
    rdna__step *cast = step == loss ? NULL : cast_behind(s, step->result, dtype);
    rdna_node *made = rdna__record(s->r, node->op, &a, inputs, node->input_count);
    rdna_node *view = cast ? record_reshape(s, dtype, &node->type, &cast->node->type) : NULL;
    if (!made || (cast && !view)) return rdna_recorder_status(s->r);
    become(s, step, made);
    if (!shaped) step->inputs[s->readers[i].input] = x;
    if (!cast) continue;
    become(s, cast, view);
    cast->inputs[0] = step->result;
  }
  if (!shaped) return RDNA_OK;
  rdna__step *view = step_of(s, logits);
  rdna_node *made = record_reshape(s, dtype, &s->plan->values[x].node->type, &narrow);
  if (!made) return rdna_recorder_status(s->r);
  become(s, view, made);
  view->inputs[0] = x;
  return RDNA_OK;
}

static rdna_status narrow_losses(simplifying *s) {
  for (int64_t i = 0; i < s->plan->step_count; i++) {
    rdna__step *step = &s->plan->steps[i];
    if (!is_of(step, &rdna__operator_cross_entropy) || step->node->attributes.dim == RDNA_LOSS_REDUCTION_NONE) continue;
    int32_t x = before_cast(s, step->inputs[0]);
    /* results of several are typed by their places, which this does not look at */
    if (x >= 0 && !(s->plan->values[x].node->op->results > 1)) RDNA_TRY(read_narrow(s, step, x));
  }
  return settle(s);
}

/* ---- parts that are summed ---- */

typedef struct parts {
  int count, dim;
  int64_t size;
  const rdna__step *steps[MOST_PARTS]; /* unslices, in the order of their places */
} parts;

static int dim_of(const rdna_node *node) {
  return node->attributes.dim < 0 ? node->attributes.dim + node->type.rank : node->attributes.dim;
}

/* Adds what |value| is the sum of; false: not of parts alone. */
static bool add_parts(const simplifying *s, int32_t value, parts *p) {
  int32_t rest[2 * MOST_PARTS];
  int count = 0;
  for (rest[count++] = value; count > 0;) {
    int32_t at = rest[--count];
    const rdna__step *step = step_of(s, at);
    if (!step || (at != value && !only_reader(s, at))) return false;
    if (is_of(step, &rdna__operator_zip) && step->node->attributes.code == RDNA_ZIP_ADD &&
        count + 2 <= 2 * MOST_PARTS) {
      for (int k = 0; k < 2; k++) rest[count++] = step->inputs[k];
      continue;
    }
    if (!is_of(step, &rdna__operator_unslice) || step->node->attributes.numbers[1] != 1 || p->count == MOST_PARTS)
      return false;
    if (p->count == 0) p->dim = dim_of(step->node), p->size = step->node->attributes.numbers[2];
    if (dim_of(step->node) != p->dim || step->node->attributes.numbers[2] != p->size) return false;
    if (!rdna__same_shape(&step->node->type, &s->plan->values[value].node->type)) return false; /* it is broadcast */
    int i = p->count++;
    for (; i > 0 && p->steps[i - 1]->node->attributes.numbers[0] > step->node->attributes.numbers[0]; i--)
      p->steps[i] = p->steps[i - 1];
    p->steps[i] = step;
  }
  return true;
}

/* Whether the parts fill the whole, and do not overlap. */
static bool fill(const parts *p) {
  int64_t end = 0;
  for (int i = 0; i < p->count; i++) {
    if (p->steps[i]->node->attributes.numbers[0] != end) return false;
    end += p->steps[i]->node->inputs[0]->type.shape[p->dim];
  }
  return p->count > 1 && end == p->size;
}

/* What is read as rows of a permuted sum is put there at once. */
static rdna_status join_parts(simplifying *s, int64_t at, const parts *p) {
  rdna__step *sum = &s->plan->steps[at];
  rdna__step *turn = only_reader(s, sum->result);
  bool turned = is_of(turn, &rdna__operator_permute) && is_of(only_reader(s, turn->result), &rdna__operator_reshape);
  int32_t *inputs = malloc(((size_t)p->count + 1) * sizeof *inputs);
  if (!inputs) return fail_memory();
  rdna_node *nodes[MOST_PARTS];
  int dim = p->dim, dims[RDNA_MAX_RANK];
  for (int i = 0; turned && i < turn->node->type.rank; i++) {
    int from = (int)turn->node->attributes.numbers[i];
    dims[i] = from < 0 ? from + turn->node->type.rank : from;
    if (dims[i] == p->dim) dim = i;
  }
  stand_for(s, sum);
  for (int i = 0; i < p->count; i++) {
    const rdna__type *type = &p->steps[i]->node->inputs[0]->type;
    nodes[i] = stand_in(s, type->dtype, type);
    inputs[i] = p->steps[i]->inputs[0];
    if (!turned || !nodes[i]) continue;
    nodes[i] = rdna_record_permute(s->r, nodes[i], dims);
    rdna_status status = nodes[i] ? insert(s, at, nodes[i], inputs[i], &inputs[i]) : RDNA_OK;
    if (status != RDNA_OK) {
      free(inputs);
      return status;
    }
  }
  rdna_node *made = rdna__record(s->r, &rdna__operator_concat, &(rdna__attributes){.dim = dim}, nodes, p->count);
  if (!made) {
    free(inputs);
    return rdna_recorder_status(s->r);
  }
  free(sum->inputs);
  sum->inputs = inputs;
  if (turned) s->alias[turn->result] = sum->result;
  become(s, sum, made);
  return RDNA_OK;
}

static rdna_status join_sums(simplifying *s) {
  for (int64_t i = s->plan->step_count - 1; i >= 0; i--) {
    parts p = {.count = 0};
    const rdna__step *step = &s->plan->steps[i];
    if (!is_of(step, &rdna__operator_zip) || step->dropped || !add_parts(s, step->result, &p) || !fill(&p)) continue;
    RDNA_TRY(join_parts(s, i, &p));
  }
  return settle(s);
}

/* ---- products ---- */

static rdna_status turn_products(simplifying *s) {
  static const int swapped[] = {1, 0};
  for (int64_t i = 0; i < s->plan->step_count; i++) {
    rdna__step *step = &s->plan->steps[i], *turn;
    if (!is_of(step, &rdna__operator_matmul) || step->node->type.rank != 2) continue;
    turn = only_reader(s, step->result);
    if (!is_of(turn, &rdna__operator_permute)) continue;
    stand_for(s, step);
    rdna_node *turned[2];
    int32_t inputs[2];
    for (int k = 0; k < 2; k++) {
      const rdna__type *type = &step->node->inputs[1 - k]->type;
      turned[k] = rdna_record_permute(s->r, stand_in(s, type->dtype, type), swapped);
      if (!turned[k]) return rdna_recorder_status(s->r);
      RDNA_TRY(insert(s, i, turned[k], step->inputs[1 - k], &inputs[k]));
    }
    rdna_node *made = rdna__record(s->r, &rdna__operator_matmul, &step->node->attributes, turned, 2);
    if (!made) return rdna_recorder_status(s->r);
    s->alias[turn->result] = step->result;
    step->inputs[0] = inputs[0];
    step->inputs[1] = inputs[1];
    become(s, step, made);
  }
  return settle(s);
}

/* Whether all that reads |value|, rows that lie apart, reads them so. */
static bool reads_rows(const simplifying *s, int32_t value, int64_t columns, int views) {
  if (s->plan->values[value].is_output || views > MOST_VIEWS) return false;
  for (int32_t i = s->first[value]; i >= 0; i = s->readers[i].next) {
    const rdna__step *step = &s->plan->steps[s->readers[i].step];
    const rdna_node *node = step->node;
    bool takes = (node->op == &rdna__operator_cross_entropy && s->readers[i].input == 0) ||
                 (node->op == &rdna__operator_cross_entropy_back && s->readers[i].input == 3) ||
                 (node->op == &rdna__operator_matmul && node->type.rank == 2);
    bool view = (node->op == &rdna__operator_reshape && node->type.shape[node->type.rank - 1] == columns) ||
                (node->op == &rdna__operator_permute && node->type.rank == 2);
    if (!takes && !(view && reads_rows(s, step->result, columns, views + 1))) return false;
  }
  return true;
}

static rdna_status pad_rows(simplifying *s) {
  for (int64_t i = 0; i < s->plan->step_count; i++) {
    rdna__step *step = &s->plan->steps[i];
    const rdna_node *node = step->node;
    bool product = node->op == &rdna__operator_matmul, back = node->op == &rdna__operator_cross_entropy_back;
    if ((!product && !back) || node->type.rank != 2 || rdna_dtype_bytes(node->type.dtype, 1) != 2) continue;
    int64_t columns = node->type.shape[1];
    if (columns % 8 == 0 || columns < PADDED_COLUMNS || node->type.shape[0] < PADDED_ROWS ||
        !reads_rows(s, step->result, columns, 0))
      continue;
    stand_for(s, step);
    rdna__attributes a = node->attributes;
    rdna_node *inputs[6];
    for (int k = 0; k < node->input_count; k++)
      inputs[k] = stand_in(s, node->inputs[k]->type.dtype, &node->inputs[k]->type);
    if (product)
      a.flag = true;
    else
      a.dims |= RDNA__ENTROPY_PADDED;
    rdna_node *made = rdna__record(s->r, node->op, &a, inputs, node->input_count);
    if (!made) return rdna_recorder_status(s->r);
    become(s, step, made);
  }
  return settle(s);
}

/* ---- statistics of channels ---- */

/* The batch norm of |x| before step |before|; NULL: there is none. */
static const rdna__step *norm_of(const simplifying *s, int32_t x, int64_t before) {
  for (int32_t i = s->first[x]; i >= 0; i = s->readers[i].next) {
    const rdna__step *step = &s->plan->steps[s->readers[i].step];
    if (s->readers[i].step < before && s->readers[i].input == 0 && rdna__is_batch_norm(step->node)) return step;
  }
  return NULL;
}

/* Puts |node|, of the value |*value|, before |before|; |*value| is what it makes. */
static rdna_status insert_next(simplifying *s, int64_t before, rdna_node *node, rdna_node **last, int32_t *value) {
  if (!node) return rdna_recorder_status(s->r);
  if (node == *last) return RDNA_OK; /* nothing was to be done */
  RDNA_TRY(insert(s, before, node, *value, value));
  *last = node;
  return RDNA_OK;
}

/* Means and variances by those of the norm, whose variances are unbiased. */
static rdna_status take_statistics(simplifying *s, int64_t at, const rdna__step *norm) {
  const rdna__step *step = &s->plan->steps[at];
  const rdna__attributes *a = &step->node->attributes;
  rdna__type type = step->node->type;
  int64_t channels = norm->node->type.shape[1];
  double count = (double)(rdna__type_count(&norm->node->type) / channels);
  bool mean = a->code == RDNA_REDUCTION_MEAN;
  int32_t value = norm->result + (mean ? 1 : 3);
  rdna_node *last = rdna_record_input(s->r, RDNA_F32, 1, &channels);
  stand_for(s, step);
  if (!mean && a->p.real != 1)
    RDNA_TRY(insert_next(s, at, affine(s->r, last, (count - 1) / (count - a->p.real), 0), &last, &value));
  RDNA_TRY(insert_next(s, at, rdna_record_cast(s->r, last, type.dtype), &last, &value));
  RDNA_TRY(insert_next(s, at, rdna_record_reshape(s->r, last, type.rank, type.shape), &last, &value));
  s->alias[step->result] = value;
  s->changed = true;
  return RDNA_OK;
}

static rdna_status share_statistics(simplifying *s) {
  for (int64_t i = 0; i < s->plan->step_count; i++) {
    const rdna__step *step = &s->plan->steps[i];
    if (!is_of(step, &rdna__operator_reduce) || step->dropped || step->inputs[0] < 0) continue;
    const rdna__type *x = &step->node->inputs[0]->type;
    const rdna__attributes *a = &step->node->attributes;
    bool finds = a->code == RDNA_REDUCTION_MEAN || a->code == RDNA_REDUCTION_VAR;
    if (!finds || x->rank < 2 || x->dtype == RDNA_F64 || a->dims != (((1u << x->rank) - 1) & ~2u)) continue;
    const rdna__step *norm = norm_of(s, step->inputs[0], i);
    int64_t count = rdna__type_count(x) / (x->shape[1] > 0 ? x->shape[1] : 1);
    if (!norm || (a->code == RDNA_REDUCTION_VAR && (count < 2 || (double)count <= a->p.real))) continue;
    RDNA_TRY(take_statistics(s, i, norm));
  }
  return settle(s);
}

/* ---- the whole ---- */

static bool has_candidates(const rdna_plan *plan) {
  for (int64_t i = 0; i < plan->step_count; i++) {
    const rdna_node *node = plan->steps[i].node;
    if (node->op == &rdna__operator_matmul || node->op == &rdna__operator_unslice ||
        node->op == &rdna__operator_cross_entropy || rdna__is_batch_norm(node))
      return true;
  }
  return false;
}

rdna_status rdna__plan_simplify(rdna_plan *plan) {
  if (!has_candidates(plan)) return RDNA_OK;
  RDNA_TRY(rdna_recorder_create(plan->stream, &plan->recorder));
  simplifying s = {.plan = plan, .r = plan->recorder, .value_capacity = plan->value_count};
  s.alias = malloc(((size_t)plan->value_count + 1) * sizeof *s.alias);
  rdna_status status = s.alias ? RDNA_OK : fail_memory();
  for (int64_t i = 0; s.alias && i < plan->value_count; i++) s.alias[i] = (int32_t)i;
  if (status == RDNA_OK) status = find_readers(&s);
  if (status == RDNA_OK) status = narrow_losses(&s);
  if (status == RDNA_OK) status = join_sums(&s);
  if (status == RDNA_OK) status = turn_products(&s);
  if (status == RDNA_OK) status = pad_rows(&s);
  if (status == RDNA_OK) status = share_statistics(&s);
  for (int64_t i = 0; i < s.inserted_count; i++) free(s.inserted[i].step.inputs);
  free(s.inserted);
  free(s.alias);
  free(s.first);
  free(s.readers);
  return status;
}
