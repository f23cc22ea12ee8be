#include "command/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static rdna_status parse(const char *option, const char *text, int *out) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  *out = RDNA_LLM_AUTO;
  if (strcmp(text, "auto") == 0) return RDNA_OK;
  if (end == text || *end || errno || value < 0 || value > 100000)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s '%s': a number of layers or 'auto' is wanted", option, text);
  *out = (int)value;
  return RDNA_OK;
}

/* The layers that the host is to have: those that |gpu_layers| leaves of the model's. */
static rdna_status count_host_layers(rdna_device *device, const rdna_gguf *file, int gpu_layers, int *out) {
  const rdna_llm_session_options least = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = 1, .batch = 1};
  const rdna_llm_plan_options options = {RDNA_LLM_PLAN_OPTIONS_INIT, .session = &least};
  rdna_llm_plan plan;
  *out = RDNA_LLM_AUTO;
  if (gpu_layers == RDNA_LLM_AUTO) return RDNA_OK;
  RDNA_TRY(rdna_llm_make_plan(device, file, &options, &plan));
  *out = gpu_layers < plan.layers ? plan.layers - gpu_layers : 0;
  return RDNA_OK;
}

rdna_status plan_model(rdna_device *device, const rdna_gguf *file, const placement *p,
                       const rdna_llm_session_options *session, int most_context, rdna_llm_plan *out_plan) {
  int gpu_layers;
  rdna_llm_plan_options options = {RDNA_LLM_PLAN_OPTIONS_INIT, .session = session, .most_context = most_context};
  RDNA_TRY(parse("--gpu-layers", p->gpu_layers, &gpu_layers));
  RDNA_TRY(parse("--experts-on-host", p->experts_on_host, &options.host_experts));
  RDNA_TRY(count_host_layers(device, file, gpu_layers, &options.host_layers));
  RDNA_TRY(rdna_llm_make_plan(device, file, &options, out_plan));
  if (p->plan || out_plan->fits || out_plan->device.reserved <= out_plan->device.free) return RDNA_OK;
  return rdna__fail(RDNA_OUT_OF_MEMORY, "the model does not fit: %s", out_plan->sentence);
}

rdna_status open_planned_model(rdna_device *device, const rdna_gguf *file, const rdna_llm_plan *plan,
                               rdna_llm **out_llm) {
  const rdna_llm_open_options options = {RDNA_LLM_OPEN_OPTIONS_INIT, .host_layers = plan->host_layers,
                                         .host_experts = plan->host_experts, .progress = show_loading};
  rdna_status status = rdna_llm_open_with(device, file, &options, out_llm);
  end_progress();
  return status;
}

/* ---- reports ---- */

static bool has_host_part(const rdna_llm_plan *plan) { return plan->host_layers > 0 || plan->host_experts > 0; }

static void print_row(const rdna_llm_plan *plan, const char *name, uint64_t device, uint64_t host, const char *more) {
  char text[32];
  printf("  %-14s %12s", name, format_bytes((double)device, text));
  if (has_host_part(plan)) printf(" %12s", format_bytes((double)host, text));
  printf("%s%s\n", *more ? "   " : "", more);
}

static void print_table(rdna_device *device, const rdna_llm_plan *plan) {
  const rdna_device_info *info = rdna_device_get_info(device);
  const rdna_llm_memory *d = &plan->device, *h = &plan->host;
  char of_caches[64], of_passes[64], name[32];
  snprintf(of_caches, sizeof of_caches, "a context of %d, of the model's %d", plan->context, plan->model_context);
  snprintf(of_passes, sizeof of_passes, "passes of %d tokens", plan->batch);
  snprintf(name, sizeof name, "%s:%d", info->driver, info->index);
  printf("%s\n\n  %-14s %12s%s%s\n", info->name, "", name, has_host_part(plan) ? "         host" : "",
         d->mapped ? "   weights are used where the file is mapped" : "");
  print_row(plan, "weights", d->weights, h->weights, "");
  print_row(plan, "caches", d->caches, h->caches, of_caches);
  print_row(plan, "activations", d->activations, h->activations, of_passes);
  print_row(plan, "workspace", d->workspace, h->workspace, "");
  print_row(plan, "peak", d->peak + d->mapped, h->peak + h->mapped, "");
  print_row(plan, "reserved", d->reserved + d->mapped, h->reserved + h->mapped, "what the pool takes for it");
  print_row(plan, "free", d->free, h->free, "");
  if (plan->staging)
    printf("  %-14s %12s   of pinned host memory while it is read\n", "loading",
           format_bytes((double)plan->staging, name));
  printf("\n");
  printf("  it %s%s%s\n", plan->fits ? "fits" : "does not fit", *plan->sentence ? ": " : "", plan->sentence);
}

static json_t *json_of_memory(const rdna_llm_memory *m) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "weights", (json_int_t)m->weights, "caches",
                   (json_int_t)m->caches, "activations", (json_int_t)m->activations, "workspace",
                   (json_int_t)m->workspace, "peak", (json_int_t)m->peak, "reserved", (json_int_t)m->reserved, "mapped",
                   (json_int_t)m->mapped, "free", (json_int_t)m->free, "total", (json_int_t)m->total);
}

int report_plan(rdna_device *device, const rdna_llm_plan *plan, bool json) {
  if (json)
    return print_json(json_pack("{s:s, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:o, s:o}", "device",
                                rdna_device_get_info(device)->name, "fits", plan->fits, "sentence", plan->sentence,
                                "context", plan->context, "model_context", plan->model_context, "batch", plan->batch,
                                "layers", plan->layers, "host_layers", plan->host_layers, "host_experts",
                                plan->host_experts, "budget", (json_int_t)plan->budget, "staging",
                                (json_int_t)plan->staging, "memory", json_of_memory(&plan->device), "host_memory",
                                json_of_memory(&plan->host)));
  print_table(device, plan);
  return EXIT_OK;
}

void say_plan(rdna_device *device, const rdna_llm_plan *plan) {
  const rdna_llm_memory *d = &plan->device;
  char weights[32], caches[32], rest[32], free_text[32], host[64] = "", staging[64] = "", bytes[32];
  if (has_host_part(plan))
    snprintf(host, sizeof host, ", %s on the host", format_bytes((double)(plan->host.mapped + plan->host.peak), bytes));
  if (plan->staging)
    snprintf(staging, sizeof staging, ", %s on the host while it is read", format_bytes((double)plan->staging, bytes));
  fprintf(stderr, "%s: weights %s, caches %s (%d tokens), activations %s; free %s%s%s\n",
          rdna_device_get_info(device)->name, format_bytes((double)d->weights, weights),
          format_bytes((double)d->caches, caches), plan->context,
          format_bytes((double)(d->activations + d->workspace), rest), format_bytes((double)d->free, free_text), host,
          staging);
  if (*plan->sentence) fprintf(stderr, "%s\n", plan->sentence);
}
