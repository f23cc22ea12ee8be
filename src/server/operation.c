/* How the server itself is. */
#include <stdio.h>

#include "rdna/memory.h"
#include "server/catalog.h"
#include "server/http.h"
#include "server/images.h"
#include "server/routes.h"

enum MHD_Result handle_health(exchange *x) {
  server *s = x->server;
  server_lock(s);
  scheduler_counts counts = catalog_counts(s);
  const catalog_model *first = catalog_find(s, NULL);
  json_t *answer =
      json_pack("{s:s, s:s, s:i, s:i, s:i}", "status", counts.lost ? "lost its device" : "healthy", "model",
                first       ? first->preset.name
                : s->images ? images_name(s)
                            : "",
                "running", counts.running, "waiting", counts.waiting, "idle", counts.idle);
  server_unlock(s);
  return respond_json(x, counts.lost ? 503 : 200, answer);
}

typedef struct metric {
  const char *name, *type, *help;
  double value;
} metric;

/* The text format of Prometheus, version 0.0.4. */
enum MHD_Result handle_metrics(exchange *x) {
  server_lock(x->server);
  const scheduler_counts c = catalog_counts(x->server);
  server_unlock(x->server);
  rdna_memory_stats memory;
  rdna_memory_get_stats(x->server->device, &memory);
  const metric metrics[] = {
      {"jobs_total", "counter", "requests to write", (double)c.jobs},
      {"refused_total", "counter", "of them refused, as the queue was full", (double)c.refused},
      {"cancelled_total", "counter", "of them cut off, as nobody waited any more or their time was over",
       (double)c.cancelled},
      {"failed_total", "counter", "of them failed", (double)c.failed},
      {"expired_total", "counter", "of those that failed, those that waited for too long", (double)c.expired},
      {"prompt_tokens_total", "counter", "tokens of prompts", (double)c.prompt_tokens},
      {"cached_tokens_total", "counter", "of them not computed again", (double)c.cached_tokens},
      {"processed_tokens_total", "counter", "tokens that the model read, of prompts and texts",
       (double)c.processed_tokens},
      {"written_tokens_total", "counter", "tokens of texts", (double)c.written_tokens},
      {"steps_total", "counter", "steps of the model", (double)c.steps},
      {"preempted_total", "counter", "texts that had to wait in the middle, as the cache was full",
       (double)c.preempted},
      {"step_seconds_total", "counter", "time in the model", c.step_seconds},
      {"other_seconds_total", "counter", "time between steps while there was work", c.other_seconds},
      {"pictures_total", "counter", "pictures that towers saw", (double)c.pictures},
      {"picture_seconds_total", "counter", "time in towers", c.picture_seconds},
      {"first_token_seconds_sum", "counter", "time from requests to their first tokens", c.first_token_seconds},
      {"first_token_seconds_count", "counter", "requests in that sum", (double)c.first_tokens},
      {"running", "gauge", "texts that are being written", c.running},
      {"waiting", "gauge", "texts that wait", c.waiting},
      {"memory_bytes", "gauge", "of the device that this process holds; files that are mapped do not count",
       (double)memory.reserved},
      {"memory_total_bytes", "gauge", "that the device has",
       (double)rdna_device_get_info(x->server->device)->total_memory},
      {"cache_pages", "gauge", "pages of the cache", (double)c.pages},
      {"cache_free_pages", "gauge", "of them free", (double)c.free_pages},
  };
  bytes body = {0};
  for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
    char lines[320];
    const metric *m = &metrics[i];
    snprintf(lines, sizeof lines, "# HELP rdna_%s %s\n# TYPE rdna_%s %s\nrdna_%s %.17g\n", m->name, m->help, m->name,
             m->type, m->name, m->value);
    bytes_append_text(&body, lines);
  }
  return respond_bytes(x, 200, "text/plain; version=0.0.4", &body);
}
