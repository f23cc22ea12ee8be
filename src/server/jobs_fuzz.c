/* Bodies of the worker's jobs: what the check lets pass can be read. */
#include <stdlib.h>

#include "server/jobs_request.h"
#include "server/json_of_bytes.h"

static const char *const names[] = {
    "operation", "hive_id", "worker_id",          "device", "model", "prompt", "max_tokens", "temperature", "top_p",
    "top_k",     "min_p",   "repetition_penalty", "seed",   "stop",  "stream", "priority",   "timeout",     "infer",
    "worker-1",  "other"};

static void read_job(request *r) {
  problem p = {0};
  json_t *errors = jobs_check(r->json, "worker-1");
  for (size_t i = 0; i < json_array_size(errors); i++) /* who refuses says why */
    if (!json_string_length(json_object_get(json_array_get(errors, i), "message"))) abort();
  if (errors && json_array_size(errors) == 0) {
    const rdna_sampling *s = &r->settings.sampling;
    bool fine = jobs_settings(r->json, &r->settings, &p) && r->settings.most_tokens >= 1 &&
                r->settings.most_tokens <= 2048 && r->settings.stop_count <= 4 && s->temperature >= 0 &&
                s->temperature <= 2 && s->repetition_penalty > 0 && s->top_k >= 0 && r->settings.most_seconds >= 0;
    if (!fine) abort();
  }
  json_decref(errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  problem p = {0};
  request r = REQUEST_DEFAULT;
  byte_reader reader = {data, size};
  r.json = parse_object((const char *)data, size, &p);
  if (!r.json && !p.status) abort(); /* who refuses says why */
  if (!r.json) r.json = object_of_bytes(&reader, names, sizeof names / sizeof *names, 2);
  read_job(&r);
  request_deinit(&r);
  return 0;
}
