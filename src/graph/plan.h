/* A plan's insides: steps over numbered values. */
#ifndef RDNA_GRAPH_PLAN_H
#define RDNA_GRAPH_PLAN_H

#include "graph/node.h"
#include "rdna/op/fused.h"
#include "rdna/op/gemm.h"

/* Operations on values in one launch: inputs[0] goes through the steps, whose inputs are numbers of values. What is
 * kept on the way has the numbers behind the inputs'; while chains grow, those from RDNA_FUSED_MAX_INPUTS on. */
typedef struct rdna__chain {
  int step_count, input_count, kept_count;
  rdna_fused_step steps[RDNA_FUSED_MAX_STEPS];
  int32_t inputs[RDNA_FUSED_MAX_INPUTS];
  int reads[RDNA_FUSED_MAX_INPUTS]; /* how many of the value's readers are steps of the chain */
} rdna__chain;

/* What follows a product in its launch; -1: nothing. */
typedef struct rdna__epilogue {
  int32_t bias, residual;
  rdna_activation activation;
} rdna__epilogue;

typedef struct rdna__step {
  const rdna_node *node; /* whose type the result has; without a chain and an epilogue its operator runs */
  rdna__chain *chain;
  rdna__epilogue *epilogue; /* of a product */
  int32_t *inputs;          /* (node's input_count) values; -1 where the operator takes a number */
  int32_t result;           /* the first value that it makes */
  unsigned wanted;          /* bits of its results that are read */
  int32_t dead;             /* the first value that is not read behind it, or -1; |next_dead| has the others */
  bool dropped;
} rdna__step;

typedef struct rdna__value {
  const rdna_node *node; /* of its step; NULL of an unused one */
  int32_t step;          /* that makes it, -1 of an input or constant */
  int32_t base;          /* the value whose memory it is a view of, or itself */
  int32_t readers;       /* inputs of steps, and outputs */
  int32_t next_dead;
  bool is_output;
} rdna__value;

typedef struct rdna__replay rdna__replay;

struct rdna_plan {
  rdna_stream *stream;
  rdna_recorder *recorder;       /* of nodes that steps became; NULL: none did */
  rdna__replay *replay;          /* NULL: runs are queued step by step */
  rdna_node **outputs, **inputs; /* (output_count), (input_count) retained */
  int output_count, input_count;
  int32_t *output_values, *input_values; /* of an input that nothing reads: -1 */
  rdna__step *steps;                     /* (step_count) */
  rdna__value *values;                   /* (value_count) */
  int64_t step_count, value_count;
  size_t peak_bytes;
};

/* The type of result |index| of a step. */
rdna_status rdna__step_type(const rdna__step *step, int index, rdna__type *out);
/* Joins steps into chains, and chains to the products that they follow. Steps that are not needed any more are marked
 * as dropped. */
rdna_status rdna__plan_fuse(rdna_plan *plan);
/* Counts the readers of each value anew, drops the steps that nobody reads. */
void rdna__plan_count_readers(rdna_plan *plan);

/* How many inputs a step reads, and which; of a chain and an epilogue too. |i| from 0. -1: a number. */
int rdna__step_input_count(const rdna__step *step);
int32_t rdna__step_input(const rdna__step *step, int i);

#endif
