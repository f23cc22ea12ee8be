#include "command/adapters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

rdna_status read_adapter(const char *text, adapter_option *out) {
  const char *path = text, *equals = strchr(text, '='), *slash = strchr(text, '/'), *colon = strrchr(text, ':');
  size_t size = strlen(text);
  char *end;
  *out = (adapter_option){.scale = 1};
  if (equals && (!slash || equals < slash)) {
    if (equals == text || (size_t)(equals - text) >= sizeof out->name)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "--lora %.200s: a name has 1 to %zu bytes", text, sizeof out->name - 1);
    snprintf(out->name, sizeof out->name, "%.*s", (int)(equals - text), text);
    path = equals + 1;
  }
  if (colon && colon >= path) {
    double scale = strtod(colon + 1, &end);
    if (end != colon + 1 && *end == 0) {
      if (!isfinite(scale)) return rdna__fail(RDNA_INVALID_ARGUMENT, "--lora %.200s: its scale is no number", text);
      out->scale = scale;
      size = (size_t)(colon - text);
    }
  }
  size -= (size_t)(path - text);
  if (size == 0 || size >= sizeof out->path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "--lora %.200s: a path has 1 to %zu bytes", text, sizeof out->path - 1);
  snprintf(out->path, sizeof out->path, "%.*s", (int)size, path);
  return RDNA_OK;
}

rdna_status adapt_session(rdna_llm *llm, rdna_llm_session *session, const option_texts *texts) {
  rdna_llm_adapter_use uses[OPTION_TEXTS_MOST] = {{0}};
  rdna_status status = RDNA_OK;
  int count = 0;
  for (; count < texts->count; count++) {
    adapter_option option;
    status = read_adapter(texts->values[count], &option);
    if (status == RDNA_OK) status = rdna_llm_adapter_open(llm, option.path, &uses[count].adapter);
    if (status != RDNA_OK) break;
    uses[count].scale = (float)option.scale;
  }
  if (status == RDNA_OK) status = rdna_llm_session_adapt(session, uses, count);
  while (count > 0) rdna_llm_adapter_release(uses[--count].adapter); /* the session keeps them */
  return status;
}
