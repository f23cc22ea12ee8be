/* Plans that are queued by one call: their second run is recorded by the driver (rdna_graph_begin), and later ones are
 * replays of that.
 *
 *   inputs    are read where they lie; of one that moves, the values are copied to where the recording reads them
 *   results   lie in the recording's memory and are handed out as they lie. One that somebody still has at the next run
 *             is copied out from then on, by another recording with other memory
 *   constants stay where they are, as the plan retains them */
#include "graph/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "rdna/op/movement.h"

enum {
  MOST_MOVES = 4,             /* of inputs, each of which makes another recording */
  RECORDED_BYTES = 256 << 20, /* that a plan holds: above, the device has more to do than who queues */
  FEWEST_STEPS = 2,
  COPIED = -1
};

typedef enum progress { UNSEEN, SEEN, READY, NEVER } progress;

struct rdna__replay {
  progress progress;
  rdna_graph *graph;
  rdna_tensor *read;   /* (inputs) what the recording reads, or was seen */
  rdna_array **staged; /* (inputs) memory for values that move; NULL: read where they lie */
  rdna_array **kept;   /* (outputs) in the recording's memory; NULL: an input is handed on */
  int *holders;        /* (outputs) of that memory, when nobody has it; COPIED: nobody ever has */
  int moves;
  int64_t count;
  char why[256];
};

static rdna_status fail_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a plan's replay"); }

/* ---- the state ---- */

static void forget(const rdna_plan *plan) {
  rdna__replay *own = plan->replay;
  for (int i = 0; i < plan->output_count; i++) {
    rdna_array_release(own->kept[i]);
    own->kept[i] = NULL;
  }
  rdna_graph_release(own->graph);
  own->graph = NULL;
}

void rdna__replay_release(rdna_plan *plan) {
  rdna__replay *own = plan->replay;
  if (!own) return;
  if (own->kept) forget(plan);
  for (int i = 0; own->staged && i < plan->input_count; i++) rdna_array_release(own->staged[i]);
  free(own->read);
  free(own->staged);
  free(own->kept);
  free(own->holders);
  free(own);
  plan->replay = NULL;
}

/* Runs are queued step by step from now on. */
static void stop(const rdna_plan *plan, const char *why) {
  rdna__replay *own = plan->replay;
  snprintf(own->why, sizeof own->why, "%s", why); /* before another call fails */
  forget(plan);
  for (int i = 0; i < plan->input_count; i++) {
    rdna_array_release(own->staged[i]);
    own->staged[i] = NULL;
  }
  own->progress = NEVER;
}

/* Why the plan is not worth it or cannot be; NULL: it can. */
static const char *obstacle(const rdna_plan *plan) {
  if (rdna_plan_steps(plan) < FEWEST_STEPS) return "the plan has one launch at most";
  if (plan->peak_bytes > RECORDED_BYTES) return "the plan holds more memory than queueing it could matter for";
  for (int i = 0; i < plan->output_count; i++) {
    int32_t at = plan->output_values[i], base = plan->values[at].base;
    if (at != base && plan->values[base].step < 0 && !plan->values[base].node->value)
      return "a result is a view of an input";
  }
  return NULL;
}

rdna_status rdna_plan_replay(rdna_plan *plan, bool wanted) {
  if (!plan) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_plan_replay needs a plan");
  if (!wanted || plan->replay) {
    if (!wanted) rdna__replay_release(plan);
    return RDNA_OK;
  }
  rdna__replay *own = plan->replay = calloc(1, sizeof *own);
  if (!own) return fail_memory();
  own->read = calloc((size_t)plan->input_count + 1, sizeof *own->read);
  own->staged = calloc((size_t)plan->input_count + 1, sizeof(rdna_array *));
  own->kept = calloc((size_t)plan->output_count + 1, sizeof(rdna_array *));
  own->holders = calloc((size_t)plan->output_count + 1, sizeof *own->holders);
  if (!own->read || !own->staged || !own->kept || !own->holders) {
    rdna__replay_release(plan);
    return fail_memory();
  }
  const char *why = obstacle(plan);
  if (why) stop(plan, why);
  return RDNA_OK;
}

int64_t rdna_plan_replays(const rdna_plan *plan, const char **out_obstacle) {
  const rdna__replay *own = plan ? plan->replay : NULL;
  if (out_obstacle) *out_obstacle = own ? own->why : "";
  return own ? own->count : 0;
}

/* ---- a recording ---- */

static bool same_place(const rdna_tensor *a, const rdna_tensor *b) {
  size_t bytes = (size_t)a->rank * sizeof *a->stride;
  return a->data == b->data && memcmp(a->stride, b->stride, bytes) == 0; /* types and shapes are the plan's */
}

static rdna_status copy_staged(const rdna_plan *plan, rdna_array *const *inputs) {
  const rdna__replay *own = plan->replay;
  for (int i = 0; i < plan->input_count; i++)
    if (own->staged[i]) RDNA_TRY(rdna_op_copy(plan->stream, &inputs[i]->tensor, &own->staged[i]->tensor));
  return RDNA_OK;
}

static bool is_input(const rdna_plan *plan, int output, int *out_input) {
  for (*out_input = 0; *out_input < plan->input_count; ++*out_input)
    if (plan->input_values[*out_input] == plan->output_values[output]) return true;
  return false;
}

/* Runs the plan while the driver records, of inputs where they lie and of staged ones. */
static rdna_status record_steps(const rdna_plan *plan, rdna_array *const *inputs, rdna_array **read) {
  rdna__replay *own = plan->replay;
  for (int i = 0; i < plan->input_count; i++) {
    read[i] = own->staged[i] ? own->staged[i] : inputs[i];
    own->read[i] = inputs[i]->tensor;
  }
  RDNA_TRY(rdna_graph_begin(plan->stream));
  rdna_status status = rdna__plan_run_steps(plan, read, own->kept);
  if (status != RDNA_OK) {
    for (int i = 0; i < plan->output_count; i++) own->kept[i] = NULL; /* none was made */
    char sentence[sizeof own->why];
    snprintf(sentence, sizeof sentence, "%s", rdna_last_error());
    (void)!rdna_graph_end(plan->stream, NULL);
    return rdna__fail(status, "%s", sentence);
  }
  status = rdna_graph_end(plan->stream, &own->graph);
  for (int i = 0, from; i < plan->output_count && status == RDNA_OK; i++) {
    if (!is_input(plan, i, &from)) continue;
    rdna_array_release(own->kept[i]);
    own->kept[i] = NULL;
  }
  for (int i = 0; i < plan->output_count && status == RDNA_OK; i++)
    if (own->kept[i] && own->holders[i] != COPIED) own->holders[i] = rdna__array_holders(own->kept[i]);
  return status;
}

/* Inputs that lie elsewhere than they did are staged. Says whether one is new among these. */
static rdna_status stage_moved(const rdna_plan *plan, rdna_array *const *inputs, bool *out_moved) {
  rdna__replay *own = plan->replay;
  *out_moved = false;
  for (int i = 0; i < plan->input_count; i++) {
    if (own->staged[i] || plan->input_values[i] < 0 || same_place(&own->read[i], &inputs[i]->tensor)) continue;
    const rdna__type *type = &plan->inputs[i]->type;
    RDNA_TRY(rdna__array_make(plan->stream, type->dtype, type->rank, type->shape, &own->staged[i]));
    *out_moved = true;
  }
  return RDNA_OK;
}

static rdna_status record(const rdna_plan *plan, rdna_array *const *inputs) {
  forget(plan);
  rdna_array **read = calloc((size_t)plan->input_count + 1, sizeof *read);
  if (!read) return fail_memory();
  rdna_status status = record_steps(plan, inputs, read);
  free(read);
  return status;
}

/* ---- results ---- */

/* Whether somebody still has results of the last replay, which are copied out from now on. */
static bool find_held(const rdna_plan *plan) {
  rdna__replay *own = plan->replay;
  bool found = false;
  for (int i = 0; i < plan->output_count; i++) {
    if (!own->kept[i] || own->holders[i] == COPIED || rdna__array_holders(own->kept[i]) == own->holders[i]) continue;
    own->holders[i] = COPIED;
    found = true;
  }
  return found;
}

static rdna_status hand_out(const rdna_plan *plan, rdna_array *const *inputs, rdna_array **outputs) {
  const rdna__replay *own = plan->replay;
  rdna_status status = RDNA_OK;
  int made = 0;
  for (int from = 0; made < plan->output_count && status == RDNA_OK; made++) {
    rdna_array *kept = own->kept[made];
    if (!kept && is_input(plan, made, &from))
      outputs[made] = rdna_array_retain(inputs[from]);
    else if (own->holders[made] == COPIED)
      status = rdna__array_copy(kept, kept->tensor.dtype, &outputs[made]);
    else
      status = rdna__array_view(kept, &kept->tensor, &outputs[made]);
  }
  if (status != RDNA_OK)
    for (made--; made > 0;) rdna_array_release(outputs[--made]);
  return status;
}

/* ---- a run ---- */

rdna_status rdna__replay_run(const rdna_plan *plan, rdna_array *const *inputs, rdna_array **outputs, bool *out_done) {
  rdna__replay *own = plan->replay;
  bool moved = false;
  *out_done = false;
  if (own->progress == NEVER || rdna__stream_records(plan->stream)) return RDNA_OK;
  if (own->progress == UNSEEN) { /* kernels are loaded and choices made */
    for (int i = 0; i < plan->input_count; i++) own->read[i] = inputs[i]->tensor;
    own->progress = SEEN;
    return RDNA_OK;
  }
  bool held = own->progress == READY && find_held(plan);
  RDNA_TRY(stage_moved(plan, inputs, &moved));
  if (own->progress == READY && moved && ++own->moves > MOST_MOVES) {
    stop(plan, "its inputs lie elsewhere again and again");
    return RDNA_OK;
  }
  if (own->progress == SEEN || moved || held) {
    if (record(plan, inputs) != RDNA_OK) {
      stop(plan, rdna_last_error());
      return RDNA_OK;
    }
    own->progress = READY;
  }
  RDNA_TRY(copy_staged(plan, inputs));
  RDNA_TRY(rdna_graph_launch(own->graph, plan->stream));
  RDNA_TRY(hand_out(plan, inputs, outputs));
  own->count++;
  *out_done = true;
  return RDNA_OK;
}
