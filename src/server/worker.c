/* How a worker is: /ready, /v1/ready, and /v1/loading/progress. */
#include <stdlib.h>
#include <string.h>

#include "rdna/memory.h"
#include "server/catalog.h"
#include "server/http.h"
#include "server/routes.h"

/* Under the lock: the model that must be there before the server is ready, and is not; NULL: it is ready. */
static const catalog_model *find_missing(const server *s) {
  for (const catalog_model *m = s->models; m; m = m->next)
    if (m->preset.preload && !m->retired && m->loads == 0 && m->failure == RDNA_OK) return m;
  return NULL;
}

/* For probes: 503 until the models of the start are loaded, when the device is lost, and when the server is about to
 * end. */
enum MHD_Result handle_ready(exchange *x) {
  server *s = x->server;
  server_lock(s);
  const catalog_model *missing = find_missing(s);
  bool lost = catalog_counts(s).lost, ready = !s->draining && !missing && !lost;
  const char *state = s->draining ? "ending" : lost ? "lost its device" : missing ? "loading" : "ready";
  server_unlock(s);
  return respond_json(x, ready ? 200 : 503, json_pack("{s:b, s:s}", "ready", ready, "state", state));
}

/* For the hive, which reads the state from the body. */
enum MHD_Result handle_worker_ready(exchange *x) {
  server *s = x->server;
  server_lock(s);
  const catalog_model *missing = find_missing(s);
  scheduler_counts counts = catalog_counts(s);
  bool busy = counts.running + counts.waiting > 0;
  json_t *answer = json_pack("{s:b, s:s}", "ready", !missing && !counts.lost, "state",
                             counts.lost ? "error"
                             : missing   ? "loading"
                             : busy      ? "busy"
                                         : "idle");
  if (missing)
    json_object_set_new(answer, "progress_url", json_string("/v1/loading/progress"));
  else
    json_object_set_new(answer, "model_loaded", json_true());
  if (s->options->worker_id) json_object_set_new(answer, "worker_id", json_string(s->options->worker_id));
  server_unlock(s);
  return respond_json(x, 200, answer);
}

/* ---- the progress ---- */

static void tell_progress(const exchange *x, const catalog_model *m, bytes *out) {
  rdna_memory_stats stats = {0};
  rdna_memory_get_stats(x->server->device, &stats);
  append_event(out, NULL,
               json_pack("{s:s, s:s, s:I, s:i, s:I, s:f}", "stage", "loading_to_vram", "model", m->preset.name,
                         "layers_loaded", (json_int_t)(m->share * m->layers), "layers_total", m->layers, "vram_mb",
                         (json_int_t)(stats.allocated >> 20), "share", m->share));
}

/* An event where the share is another one than the last time, and the end when all is there; the connection sleeps in
 * between, and the loader wakes it. */
static bool fill_progress(exchange *x) {
  server *s = x->server;
  server_lock(s);
  const catalog_model *m = find_missing(s);
  if (!m || s->draining) {
    append_event(&x->out, NULL, json_pack("{s:s}", "stage", m ? "ending" : "ready"));
    bytes_append_text(&x->out, "data: [DONE]\n\n");
    x->ended = true;
    leave_waiting(x);
  } else if (m->share != x->told_share) {
    x->told_share = m->share;
    tell_progress(x, m, &x->out);
  } else {
    x->suspended = true;
    MHD_suspend_connection(x->connection);
  }
  server_unlock(s);
  return !x->out.failed;
}

enum MHD_Result handle_loading_progress(exchange *x) {
  server *s = x->server;
  x->fill = fill_progress;
  x->told_share = -1;
  server_lock(s);
  x->watches_load = true;
  join_waiting(x);
  server_unlock(s);
  return respond_stream(x, "text/event-stream");
}
