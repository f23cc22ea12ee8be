/* Where a model goes: what it will take of the device, and what of it stays on the host. */
#ifndef RDNA_COMMAND_PLACEMENT_H
#define RDNA_COMMAND_PLACEMENT_H

#include "command/command.h"
#include "rdna/llm.h"

typedef struct placement {
  const char *gpu_layers, *experts_on_host; /* numbers, "all", "none" or "auto", as the person wrote them */
  bool plan;                                /* print the plan, and do nothing else */
} placement;
#define PLACEMENT_DEFAULT {.gpu_layers = "auto", .experts_on_host = "auto"}

/* Their rows in a table of options. */
#define PLACEMENT_OPTIONS(p)                                                                \
  {"--gpu-layers",                                                                          \
   OPTION_TEXT,                                                                             \
   &(p).gpu_layers,                                                                         \
   "N|auto",                                                                                \
   "layers on the card, the last ones; the host computes the others (auto: all that fit)",  \
   0,                                                                                       \
   0},                                                                                      \
      {"--experts-on-host",                                                                 \
       OPTION_TEXT,                                                                         \
       &(p).experts_on_host,                                                                \
       "N|auto",                                                                            \
       "layers whose experts the host computes, the first ones (auto: as many as must be)", \
       0,                                                                                   \
       0},                                                                                  \
      {"--plan", OPTION_FLAG, &(p).plan, NULL, "print what the model will take, and end", 0, 0}

/* The plan for a session of |session|, whose context and batch may be 0, and of no more than |most_context| then, where
 * that is not 0. RDNA_OUT_OF_MEMORY, with what to do: it takes more than the device has free. */
rdna_status plan_model(rdna_device *device, const rdna_gguf *file, const placement *p,
                       const rdna_llm_session_options *session, int most_context, rdna_llm_plan *out_plan);
/* Opens it so, with a bar while it is loaded. */
rdna_status open_planned_model(rdna_device *device, const rdna_gguf *file, const rdna_llm_plan *plan,
                               rdna_llm **out_llm);

/* As a table to stdout, or as JSON. */
int report_plan(rdna_device *device, const rdna_llm_plan *plan, bool json);
/* In one line on stderr, and in another what was chosen. */
void say_plan(rdna_device *device, const rdna_llm_plan *plan);

#endif
