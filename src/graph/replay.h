/* Replays of plans that the driver has recorded. */
#ifndef RDNA_GRAPH_REPLAY_H
#define RDNA_GRAPH_REPLAY_H

#include "graph/plan.h"

/* Replays or records |plan|, which has a replay; |*out_done|: the outputs are there. Else its steps are to be run. */
rdna_status rdna__replay_run(const rdna_plan *plan, rdna_array *const *inputs, rdna_array **outputs, bool *out_done);
void rdna__replay_release(rdna_plan *plan);
/* run.c: the steps, of inputs that were checked. */
rdna_status rdna__plan_run_steps(const rdna_plan *plan, rdna_array *const *inputs, rdna_array **outputs);

#endif
