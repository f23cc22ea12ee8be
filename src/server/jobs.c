#include "server/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "rdna/memory.h"
#include "server/catalog.h"
#include "server/clock.h"
#include "server/http.h"
#include "server/images_jobs.h"
#include "server/jobs_request.h"
#include "server/routes.h"

enum { MOST_KEPT = 1024 };
static const double UNREAD_SECONDS = 300; /* that a job waits for its reader */

struct kept_job {
  kept_job *next;
  char id[48], started_at[40];
  job *job;
  catalog_model *model; /* that it holds */
  exchange *reader;     /* NULL: nobody has come yet */
};

/* ---- the list, under the lock ---- */

static kept_job **find(server *s, const char *id) {
  kept_job **link = &s->jobs;
  while (*link && strcmp((*link)->id, id) != 0) link = &(*link)->next;
  return link;
}

static void forget(server *s, kept_job **link) {
  kept_job *k = *link;
  *link = k->next;
  s->job_count--;
  if (k->job->unfinished) scheduler_cancel(k->model->scheduler, k->job);
  scheduler_drop_job(k->model->scheduler, k->job);
  catalog_drop(s, k->model);
  free(k);
}

void jobs_leave(exchange *x) {
  server *s = x->server;
  if (!x->kept) return;
  kept_job **link = &s->jobs;
  while (*link != x->kept) link = &(*link)->next;
  forget(s, link);
  x->kept = NULL;
}

void jobs_sweep(server *s, double now) {
  for (kept_job **link = &s->jobs; *link;) {
    kept_job *k = *link;
    if (!k->reader && now - k->job->asked > UNREAD_SECONDS)
      forget(s, link);
    else
      link = &k->next;
  }
}

void jobs_end(server *s) {
  while (s->jobs) forget(s, &s->jobs);
}

/* ---- asking ---- */

static void now_text(char *text, size_t size) {
  struct timespec now;
  struct tm parts;
  char date[32];
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text, size, "%s.%03ldZ", date, now.tv_nsec / 1000000);
}

static bool read_job(exchange *x, request *r, json_t **out_errors, problem *p) {
  *out_errors = NULL;
  r->json = parse_object(x->body.data, x->body.size, p);
  if (!r->json) return false;
  *out_errors = jobs_check(r->json, x->server->options->worker_id);
  if (!*out_errors) return refuse(p, 500, NULL, NULL, "no host memory for the request");
  if (json_array_size(*out_errors) > 0) return false;
  const char *prompt = json_string_value(json_object_get(r->json, "prompt"));
  size_t size = json_string_length(json_object_get(r->json, "prompt"));
  return read_model(x, r->json, p) && jobs_settings(r->json, &r->settings, p) && request_add_prompts(r, 1, p) &&
         encode_text(x->model, prompt, size, &r->prompts[0], p) && request_check(x, r, p);
}

/* Gives |j| to the scheduler and to the list, which has a reference to it then. */
static bool keep(exchange *x, job *j, char id[48], problem *p) {
  server *s = x->server;
  kept_job *k = calloc(1, sizeof *k);
  if (!k) return refuse(p, 500, NULL, NULL, "no host memory for the request");
  make_id(k->id, sizeof k->id, "job-");
  now_text(k->started_at, sizeof k->started_at);
  snprintf(id, 48, "%s", k->id);
  k->job = j;
  k->model = x->hosted;
  server_lock(s);
  bool full = s->job_count >= MOST_KEPT;
  s->job_count += !full; /* its place, before it is there */
  server_unlock(s);
  if (full)
    refuse(p, 429, "queue_full", NULL, "%d jobs wait for their readers already; try again later", MOST_KEPT);
  else
    submit_job(x, j);
  bool fine = p->status == 0;
  server_lock(s);
  if (fine) {
    k->model->holders++;
    k->next = s->jobs;
    s->jobs = k;
  } else {
    s->job_count -= !full;
  }
  server_unlock(s);
  if (!fine) free(k);
  return fine;
}

enum MHD_Result handle_jobs(exchange *x) {
  if (x->server->images) return handle_image_jobs(x);
  request r = REQUEST_DEFAULT;
  problem *p = &x->problem;
  json_t *errors;
  char id[48], url[80];
  if (!read_job(x, &r, &errors, p)) {
    bool found = json_array_size(errors) > 0;
    request_deinit(&r);
    if (found) return respond_json(x, 400, json_pack("{s:o}", "errors", errors));
    json_decref(errors);
    return respond_problem(x);
  }
  json_decref(errors);
  job *j = request_make_job(&r, p);
  if (!j) return respond_problem(x);
  if (!keep(x, j, id, p)) {
    job_free(j);
    return respond_problem(x);
  }
  snprintf(url, sizeof url, "/v1/jobs/%s/stream", id);
  return respond_json(x, 200, json_pack("{s:s, s:s}", "job_id", id, "sse_url", url));
}

/* ---- reading ---- */

/* "ID/stream" of the path behind |prefix|; false: it is something else. */
static bool read_id(const char *path, const char *prefix, char id[48]) {
  static const char ending[] = "/stream";
  const char *begin = path + strlen(prefix);
  size_t size = strlen(begin), most = sizeof ending - 1;
  if (strncmp(path, prefix, strlen(prefix)) != 0 || size <= most || size - most >= 48) return false;
  if (strcmp(begin + size - most, ending) != 0) return false;
  snprintf(id, 48, "%.*s", (int)(size - most), begin);
  return true;
}

enum MHD_Result handle_job_stream(exchange *x) {
  server *s = x->server;
  char id[48];
  if (!read_id(x->path, "/v1/jobs/", id) && !read_id(x->path, "/v1/inference/", id)) {
    refuse(&x->problem, 404, NULL, NULL, "there is no GET %s here; a job is read from /v1/jobs/ID/stream", x->path);
    return respond_problem(x);
  }
  if (s->images) return handle_image_job_stream(x, id);
  server_lock(s);
  kept_job *k = *find(s, id);
  if (!k) {
    refuse(&x->problem, 404, "job_not_found", "job_id",
           "there is no job '%s' here; each is read once, within %.0f seconds", id, UNREAD_SECONDS);
  } else if (k->reader) {
    refuse(&x->problem, 409, "job_taken", "job_id", "the job '%s' is being read already", id);
  } else {
    k->reader = x;
    k->job->references++;
    x->kept = k;
    x->stream = true;
    snprintf(x->id, sizeof x->id, "%s", id);
    catalog_take(x, k->model);
  }
  server_unlock(s);
  return x->problem.status ? respond_problem(x) : respond_kept_job(x, k->job);
}

/* ---- what a reader is told ---- */

static void refuse_worker(const problem *p, bytes *out) {
  const char *code = p->code            ? p->code
                     : p->status == 401 ? "unauthorized"
                     : p->status == 404 ? "not_found"
                     : p->status == 503 ? "unavailable"
                     : p->status >= 500 ? "internal"
                                        : "invalid_request";
  if (p->status == 400 || p->status == 413)
    append_line(out, json_pack("{s:[{s:s, s:s, s:s}]}", "errors", "field", p->field[0] ? p->field : "body",
                               "constraint", code, "message", p->message));
  else
    append_line(out, json_pack("{s:s, s:s}", "code", code, "message", p->message));
}

static void narrate(const exchange *x, const char *action, bytes *out, json_t *human) {
  append_event(out, NULL,
               json_pack("{s:s, s:s, s:s, s:s, s:o}", "type", "narration", "actor", "rdna", "action", action, "target",
                         x->id, "human", human));
}

static void begin(exchange *x, bytes *out) {
  const kept_job *k = x->kept;
  append_event(out, NULL,
               json_pack("{s:s, s:s, s:s, s:s}", "type", "started", "job_id", k->id, "model", model_name(x),
                         "started_at", k->started_at));
  narrate(x, "prompt", out,
          json_sprintf("a prompt of %lld tokens for %s", (long long)prompt_tokens(x->job), model_name(x)));
}

static void token(bytes *out, const char *text, size_t size, size_t index) {
  append_event(out, NULL,
               json_pack("{s:s, s:o, s:I}", "type", "token", "t", rdna__json_of_text(size ? text : "", size), "i",
                         (json_int_t)index));
}

/* One event for each token, with what it adds to the text; what was held back until the end comes with no token of its
 * own, and belongs to the last. */
static void piece(exchange *x, const news *n, bytes *out) {
  size_t begin = 0, end = n->text.size;
  const char *text = n->text.data ? n->text.data : "";
  for (size_t i = 0; i < n->token_count; i++) {
    bool last = n->finish_reason && i + 1 == n->token_count;
    size_t next = n->ends[i] > n->text_first ? n->ends[i] - n->text_first : 0;
    if (last || next > end) next = end;
    token(out, text + begin, next - begin, n->first_token + i);
    begin = next;
  }
  if (begin < end) token(out, text + begin, end - begin, n->first_token + n->token_count);
}

static const char *stop_reason(const choice *c) {
  if (c->stop) return "STOP_SEQUENCE";
  if (strcmp(c->finish_reason, "stop") == 0) return "EOS";
  return strcmp(c->finish_reason, "length") == 0 ? "MAX_TOKENS" : "CANCELLED";
}

/* The job is forgotten before its reader sees the end, and may ask for it again on another connection. */
static void done(exchange *x, bytes *out) {
  server_lock(x->server);
  jobs_leave(x);
  server_unlock(x->server);
  bytes_append_text(out, "data: [DONE]\n\n");
}

static void fail(exchange *x, const problem *p, bytes *out) {
  append_event(
      out, NULL,
      json_pack("{s:s, s:s, s:s}", "type", "error", "code", p->code ? p->code : "internal", "message", p->message));
  done(x, out);
}

static void end(exchange *x, bytes *out) {
  const job *j = x->job;
  const choice *c = &j->choices[0];
  rdna_memory_stats stats = {0};
  if (j->cancelled) {
    problem p = {0};
    refuse(&p, 503, "cancelled", NULL, "the job was cut off: its time was over, or the worker ends");
    fail(x, &p, out);
    return;
  }
  double seconds = j->finished - j->first;
  size_t count = c->token_count;
  rdna_memory_get_stats(x->server->device, &stats);
  append_event(out, NULL,
               json_pack("{s:s, s:f, s:I}", "type", "metrics", "tokens_per_sec",
                         count > 1 && seconds > 0 ? (double)(count - 1) / seconds : 0.0, "vram_bytes",
                         (json_int_t)stats.allocated));
  narrate(x, "end", out,
          json_sprintf("%zu tokens in %.0f ms, behind %lld of the prompt that were known already", count,
                       1e3 * (j->finished - j->asked), (long long)cached_tokens(j)));
  append_event(out, NULL,
               json_pack("{s:s, s:I, s:I, s:s}", "type", "end", "tokens_out", (json_int_t)count, "decode_time_ms",
                         (json_int_t)(1e3 * (j->finished - j->asked) + 0.5), "stop_reason", stop_reason(c)));
  done(x, out);
}

const dialect worker = {"text/event-stream", ": ping\n\n", refuse_worker, begin, piece, end, fail, NULL};
