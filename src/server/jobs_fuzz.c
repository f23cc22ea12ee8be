/* Bodies of the worker's jobs: what the check lets pass can be read. */
#include <stdint.h>
#include <stdlib.h>

#include "server/jobs_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  problem p = {0};
  request r = REQUEST_DEFAULT;
  r.json = parse_object((const char *)data, size, &p);
  json_t *errors = r.json ? jobs_check(r.json, "worker-1") : NULL;
  if (!r.json && !p.status) abort(); /* who refuses says why */
  if (errors && json_array_size(errors) == 0) {
    const rdna_sampling *s = &r.settings.sampling;
    if (!jobs_settings(r.json, &r.settings, &p)) abort();
    if (r.settings.most_tokens < 1 || r.settings.stop_count > 4 || !(s->temperature >= 0 && s->temperature <= 2))
      abort();
  }
  json_decref(errors);
  request_deinit(&r);
  return 0;
}
