/* From nodes to steps: each value once, and only what the outputs need. */
#include "graph/replay.h"

#include <stdlib.h>
#include <string.h>

#include "graph/order.h"
#include "graph/simplify.h"

/* Keys of values that are there, in memory that stays where it is. */
enum { CHUNK_BYTES = 1 << 16 };
typedef struct chunk {
  struct chunk *next;
  size_t used, room;
  char data[];
} chunk;

typedef struct planning {
  rdna_plan *plan;
  rdna__order order;
  int32_t *value_of; /* (order.count) */
  rdna__strmap known;
  chunk *chunks;
  int64_t step_capacity, value_capacity;
} planning;

static rdna_status fail_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a plan"); }

/* ---- steps ---- */

int rdna__step_input_count(const rdna__step *step) {
  if (step->chain) return step->chain->input_count;
  return step->node->input_count + (step->epilogue ? 2 : 0);
}

int32_t rdna__step_input(const rdna__step *step, int i) {
  if (step->chain) return step->chain->inputs[i];
  int behind = i - step->node->input_count;
  if (behind < 0) return step->inputs[i];
  return behind == 0 ? step->epilogue->bias : step->epilogue->residual;
}

static int result_count(const rdna_node *node) { return node->op->results > 1 ? node->op->results : 1; }

rdna_status rdna__step_type(const rdna__step *step, int index, rdna__type *out) {
  *out = step->node->type;
  if (index == 0) return RDNA_OK;
  rdna__type types[RDNA__MOST_RESULTS];
  rdna__making m = {NULL, &step->node->attributes, step->node->inputs, step->node->input_count};
  RDNA_TRY(step->node->op->infer(&m, types));
  *out = types[index];
  return RDNA_OK;
}

static rdna_status add_values(planning *p, const rdna_node *node, int32_t step, int32_t *out) {
  rdna_plan *plan = p->plan;
  int count = result_count(node);
  if (plan->value_count + count > p->value_capacity) {
    int64_t capacity = p->value_capacity ? 2 * p->value_capacity : 64;
    rdna__value *grown = realloc(plan->values, (size_t)capacity * sizeof *grown);
    if (!grown) return fail_memory();
    plan->values = grown;
    p->value_capacity = capacity;
  }
  *out = (int32_t)plan->value_count;
  for (int i = 0; i < count; i++, plan->value_count++)
    plan->values[plan->value_count] =
        (rdna__value){.node = node, .step = step, .base = (int32_t)plan->value_count, .next_dead = -1};
  return RDNA_OK;
}

static rdna_status add_step(planning *p, const rdna_node *node, int32_t *inputs, int32_t result) {
  rdna_plan *plan = p->plan;
  if (plan->step_count == p->step_capacity) {
    int64_t capacity = p->step_capacity ? 2 * p->step_capacity : 64;
    rdna__step *grown = realloc(plan->steps, (size_t)capacity * sizeof *grown);
    if (!grown) return fail_memory();
    plan->steps = grown;
    p->step_capacity = capacity;
  }
  plan->steps[plan->step_count++] = (rdna__step){.node = node, .inputs = inputs, .result = result, .dead = -1};
  return RDNA_OK;
}

/* ---- values that are the same ---- */

static char *put(char *at, const void *bytes, size_t size) {
  if (size) memcpy(at, bytes, size);
  return at + size;
}

/* What makes two nodes' values the same: the operator, what it is told, and its inputs' values. */
static size_t write_key(const rdna_node *node, const int32_t *inputs, char *key) {
  const rdna__attributes *a = &node->attributes;
  const void *self = node->op == &rdna__operator_input ? (const void *)node : node->value;
  if (a->own) self = a->own;
  char *end = put(key, &node->op, sizeof(node->op));
  end = put(end, &self, sizeof self);
  end = put(end, &a->code, sizeof a->code);
  end = put(end, &a->dim, sizeof a->dim);
  end = put(end, &a->dims, sizeof a->dims);
  end = put(end, &a->flag, sizeof a->flag);
  end = put(end, &a->p, sizeof a->p);
  end = put(end, &a->q, sizeof a->q);
  end = put(end, &a->number_count, sizeof a->number_count);
  end = put(end, a->numbers, (size_t)a->number_count * sizeof *a->numbers);
  end = put(end, inputs, (size_t)node->input_count * sizeof *inputs);
  return (size_t)(end - key);
}

static size_t key_bytes(const rdna_node *node) {
  return 128 + (size_t)node->attributes.number_count * sizeof(int64_t) + (size_t)node->input_count * sizeof(int32_t);
}

static rdna_status take_key(planning *p, size_t bytes, char **out) {
  if (!p->chunks || p->chunks->used + bytes > p->chunks->room) {
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    chunk *made = malloc(sizeof *made + room);
    if (!made) return fail_memory();
    *made = (chunk){.next = p->chunks, .room = room};
    p->chunks = made;
  }
  *out = p->chunks->data + p->chunks->used;
  return RDNA_OK;
}

/* The value of |node|, whose inputs have theirs: one that is there, or a step's. */
static rdna_status number_node(planning *p, const rdna_node *node, int32_t *inputs, int32_t *out, bool *is_new) {
  char *key = NULL;
  uint32_t found;
  RDNA_TRY(take_key(p, key_bytes(node), &key));
  size_t size = write_key(node, inputs, key);
  *is_new = !rdna__strmap_find(&p->known, key, size, &found);
  if (!*is_new) {
    *out = (int32_t)found;
    return RDNA_OK;
  }
  bool leaf = node->op == &rdna__operator_input || node->op == &rdna__operator_constant;
  RDNA_TRY(add_values(p, node, leaf ? -1 : (int32_t)p->plan->step_count, out));
  p->chunks->used += size;
  RDNA_TRY(rdna__strmap_insert(&p->known, key, size, (uint32_t)*out, is_new));
  if (leaf) return RDNA_OK;
  for (int i = 0; i < node->input_count; i++)
    if (node->op->number && node->op->number(node, i) && rdna__number_behind(node->inputs[i])) inputs[i] = -1;
  if (node->op->view) p->plan->values[*out].base = p->plan->values[inputs[0]].base;
  return add_step(p, node, inputs, *out);
}

static rdna_status visit(planning *p, int64_t i) {
  const rdna_node *node = p->order.nodes[i];
  const rdna_node *first = node->input_count ? node->inputs[0] : NULL;
  int32_t of_first = first ? p->value_of[rdna__order_find(&p->order, first)] : -1;
  if (node->op == &rdna__operator_pass || node->op == &rdna__operator_stop || node->op == &rdna__operator_part ||
      node->op == &rdna__operator_checkpoint) {
    p->value_of[i] = of_first + (node->op == &rdna__operator_part ? node->attributes.dim : 0);
    return RDNA_OK;
  }
  int32_t *inputs = malloc(((size_t)node->input_count + 1) * sizeof *inputs);
  if (!inputs) return fail_memory();
  for (int k = 0; k < node->input_count; k++) inputs[k] = p->value_of[rdna__order_find(&p->order, node->inputs[k])];
  bool is_new = false;
  int64_t before = p->plan->step_count;
  rdna_status status = number_node(p, node, inputs, &p->value_of[i], &is_new);
  if (p->plan->step_count == before) free(inputs);
  return status;
}

/* ---- what is needed ---- */

void rdna__plan_count_readers(rdna_plan *plan) {
  for (int64_t i = 0; i < plan->value_count; i++) plan->values[i].readers = plan->values[i].is_output;
  for (int64_t i = plan->step_count - 1; i >= 0; i--) {
    rdna__step *step = &plan->steps[i];
    step->wanted = 0;
    for (int k = 0; k < result_count(step->node); k++)
      if (plan->values[step->result + k].readers) step->wanted |= 1u << k;
    step->dropped |= step->wanted == 0;
    for (int k = 0; k < rdna__step_input_count(step) && !step->dropped; k++)
      if (rdna__step_input(step, k) >= 0) plan->values[rdna__step_input(step, k)].readers++;
  }
}

/* Moves what is left to the front. */
static void close_gaps(rdna_plan *plan) {
  int64_t kept = 0;
  for (int64_t i = 0; i < plan->step_count; i++) {
    rdna__step *step = &plan->steps[i];
    if (step->dropped) {
      free(step->inputs);
      free(step->chain);
      free(step->epilogue);
      continue;
    }
    for (int k = 0; k < result_count(step->node); k++) plan->values[step->result + k].step = (int32_t)kept;
    plan->steps[kept++] = *step;
  }
  plan->step_count = kept;
}

/* Hangs each value on the last step that reads it, or that makes it where none does. */
static void find_deaths(rdna_plan *plan) {
  for (int64_t i = plan->step_count - 1; i >= 0; i--) {
    rdna__step *step = &plan->steps[i];
    int inputs = rdna__step_input_count(step);
    for (int k = 0; k < inputs + result_count(step->node); k++) {
      int32_t at = k < inputs ? rdna__step_input(step, k) : step->result + k - inputs;
      if (at < 0 || plan->values[at].is_output || plan->values[at].readers < 0) continue;
      plan->values[at].readers = -1; /* seen */
      plan->values[at].next_dead = step->dead;
      step->dead = at;
    }
  }
}

static size_t value_bytes(const rdna_plan *plan, int32_t at) {
  const rdna__value *value = &plan->values[at];
  const rdna__step *step = &plan->steps[value->step];
  rdna__type type;
  if (!(step->wanted >> (at - step->result) & 1) || rdna__step_type(step, at - step->result, &type) != RDNA_OK)
    return 0;
  return rdna_dtype_bytes(type.dtype, rdna__type_count(&type));
}

/* A value's memory lives as long as the last of its views. */
static rdna_status find_peak(rdna_plan *plan) {
  int32_t *holders = calloc((size_t)plan->value_count + 1, sizeof *holders);
  if (!holders) return fail_memory();
  size_t now = 0;
  for (int64_t i = 0; i < plan->step_count; i++) {
    const rdna__step *step = &plan->steps[i];
    for (int k = 0; k < result_count(step->node); k++) {
      int32_t at = step->result + k, base = plan->values[at].base;
      if (holders[base]++ == 0 && base == at) now += value_bytes(plan, at);
    }
    if (now > plan->peak_bytes) plan->peak_bytes = now;
    for (int32_t at = step->dead; at >= 0; at = plan->values[at].next_dead) {
      int32_t base = plan->values[at].base;
      if (--holders[base] == 0 && plan->values[base].step >= 0) now -= value_bytes(plan, base);
    }
  }
  free(holders);
  return RDNA_OK;
}

/* ---- the whole ---- */

static rdna_status link_leaves(planning *p) {
  rdna_plan *plan = p->plan;
  char text[RDNA__ARRAY_TEXT];
  for (int i = 0; i < plan->input_count; i++) {
    if (plan->inputs[i]->op != &rdna__operator_input)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_create: input %d is no rdna_record_input but %s", i,
                        plan->inputs[i]->op->name);
    int64_t at = rdna__order_find(&p->order, plan->inputs[i]);
    plan->input_values[i] = at < 0 ? -1 : p->value_of[at];
  }
  for (int i = 0; i < plan->output_count; i++) {
    plan->output_values[i] = p->value_of[rdna__order_find(&p->order, plan->outputs[i])];
    plan->values[plan->output_values[i]].is_output = true;
  }
  for (int64_t i = 0; i < p->order.count; i++) {
    const rdna_node *node = p->order.nodes[i];
    bool given = node->op != &rdna__operator_input;
    for (int k = 0; k < plan->input_count && !given; k++) given = plan->inputs[k] == node;
    if (!given)
      return rdna__node_annotate(node, rdna__fail(RDNA_INVALID_ARGUMENT,
                                                  "rdna_plan_create: the outputs need an input %s that is not among "
                                                  "the %d given",
                                                  rdna__type_text(&node->type, text), plan->input_count));
  }
  return RDNA_OK;
}

static rdna_status build(planning *p) {
  RDNA_TRY(rdna__order_init(&p->order, p->plan->outputs, p->plan->output_count, NULL, 0));
  p->value_of = malloc(((size_t)p->order.count + 1) * sizeof *p->value_of);
  if (!p->value_of) return fail_memory();
  for (int64_t i = 0; i < p->order.count; i++) RDNA_TRY(visit(p, i));
  RDNA_TRY(link_leaves(p));
  rdna__plan_count_readers(p->plan);
  RDNA_TRY(rdna__plan_simplify(p->plan));
  RDNA_TRY(rdna__plan_fuse(p->plan));
  rdna__plan_count_readers(p->plan);
  close_gaps(p->plan);
  find_deaths(p->plan);
  return find_peak(p->plan);
}

static rdna_node **retain_all(rdna_node *const *nodes, int count) {
  rdna_node **kept = calloc((size_t)count + 1, sizeof *kept);
  for (int i = 0; kept && i < count; i++) kept[i] = rdna_node_retain(nodes[i]);
  return kept;
}

rdna_status rdna_plan_create(rdna_node *const *outputs, int output_count, rdna_node *const *inputs, int input_count,
                             rdna_plan **out_plan) {
  bool whole = out_plan && output_count > 0 && input_count >= 0;
  for (int i = 0; whole && i < output_count; i++) whole = outputs[i] != NULL;
  for (int i = 0; whole && i < input_count; i++) whole = inputs[i] != NULL;
  if (!whole)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_plan_create needs an output or more, no node that is NULL, and a place for the plan");
  rdna_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return fail_memory();
  plan->stream = outputs[0]->stream;
  plan->outputs = retain_all(outputs, output_count);
  plan->inputs = retain_all(inputs, input_count);
  plan->output_count = plan->outputs ? output_count : 0;
  plan->input_count = plan->inputs ? input_count : 0;
  plan->output_values = calloc((size_t)output_count, sizeof *plan->output_values);
  plan->input_values = calloc((size_t)input_count + 1, sizeof *plan->input_values);
  bool enough = plan->outputs && plan->inputs && plan->output_values && plan->input_values;
  planning p = {.plan = plan};
  rdna_status status = enough ? build(&p) : fail_memory();
  while (p.chunks) {
    chunk *next = p.chunks->next;
    free(p.chunks);
    p.chunks = next;
  }
  rdna__strmap_deinit(&p.known);
  rdna__order_deinit(&p.order);
  free(p.value_of);
  if (status == RDNA_OK)
    *out_plan = plan;
  else
    rdna_plan_release(plan);
  return status;
}

void rdna_plan_release(rdna_plan *plan) {
  if (!plan) return;
  rdna__replay_release(plan);
  for (int64_t i = 0; i < plan->step_count; i++) {
    free(plan->steps[i].inputs);
    free(plan->steps[i].chain);
    free(plan->steps[i].epilogue);
  }
  for (int i = 0; i < plan->output_count; i++) rdna_node_release(plan->outputs[i]);
  for (int i = 0; i < plan->input_count; i++) rdna_node_release(plan->inputs[i]);
  free(plan->outputs);
  free(plan->inputs);
  free(plan->output_values);
  free(plan->input_values);
  free(plan->steps);
  free(plan->values);
  rdna_recorder_release(plan->recorder);
  free(plan);
}

int64_t rdna_plan_steps(const rdna_plan *plan) {
  int64_t count = 0;
  for (int64_t i = 0; plan && i < plan->step_count; i++) count += !plan->steps[i].node->op->view;
  return count;
}

size_t rdna_plan_peak_bytes(const rdna_plan *plan) { return plan ? plan->peak_bytes : 0; }
