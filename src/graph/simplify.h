/* Steps that move fewer bytes. */
#ifndef RDNA_GRAPH_SIMPLIFY_H
#define RDNA_GRAPH_SIMPLIFY_H

#include "graph/plan.h"

/* Changes steps of a plan whose readers are counted, and counts them anew; to be called before steps are joined. */
rdna_status rdna__plan_simplify(rdna_plan *plan);

#endif
