#include "server/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"
#include "server/catalog.h"
#include "server/clients.h"
#include "server/clock.h"
#include "server/images.h"
#include "server/jobs.h"
#include "server/log.h"
#include "server/parts.h"
#include "server/routes.h"

enum { THREADS = 2, IDLE_SECONDS = 120, CONNECTION_BYTES = 64 * 1024 };

/* ---- what a request must have before it is read ---- */

/* Whether the two are equal, in a time that does not tell where they differ. */
static bool same_key(const char *given, const char *key) {
  size_t size = strlen(key), difference = strlen(given) ^ size;
  for (size_t i = 0; i < size && given[i]; i++) difference |= (size_t)(given[i] ^ key[i]);
  return difference == 0;
}

static bool has_key(const exchange *x) {
  const server_options *o = x->server->options;
  const char *given = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Authorization");
  if (given && strncasecmp(given, "Bearer ", 7) == 0)
    given += 7;
  else
    given = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "x-api-key");
  if (!given) return false;
  bool any = false;
  for (size_t i = 0; i < o->key_count; i++) any |= same_key(given, o->keys[i]);
  return any;
}

static bool refuse_size(exchange *x) {
  return refuse(&x->problem, 413, NULL, NULL, "the request's body is larger than the %zu bytes that this server takes",
                x->server->options->most_body);
}

/* Whether the body may be as long as the request says that it is: otherwise none of it is kept. */
static bool check_size(exchange *x) {
  const char *text = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Length");
  return !text || strtoull(text, NULL, 10) <= x->server->options->most_body || refuse_size(x);
}

static bool check_request(exchange *x, const char *method) {
  const server_options *o = x->server->options;
  const char *allowed;
  x->route = find_route(strcmp(method, "HEAD") == 0 ? "GET" : method, x->path, &allowed);
  x->dialect = x->route ? x->route->dialect : dialect_of_path(x->path);
  if (!x->route && allowed)
    return refuse(&x->problem, 405, NULL, NULL, "%s takes %s, and not %s", x->path, allowed, method);
  if (!x->route) return refuse(&x->problem, 404, NULL, NULL, "there is no %s %s here", method, x->path);
  if (o->key_count && !x->route->open && !has_key(x))
    return refuse(&x->problem, 401, "invalid_api_key", NULL, "this server asks for a key: 'Authorization: Bearer KEY'");
  return check_size(x);
}

/* ---- the life of an exchange ---- */

static exchange *exchange_create(server *s, struct MHD_Connection *connection, const char *url, const char *method) {
  exchange *x = calloc(1, sizeof *x);
  if (!x) return NULL;
  x->server = s;
  x->connection = connection;
  x->begun = clock_seconds();
  snprintf(x->path, sizeof x->path, "%s", url);
  if (strcmp(method, "OPTIONS") != 0) check_request(x, method);
  return x;
}

/* Under the lock; what log_event tells of an exchange. */
static json_t *describe(const exchange *x, bool whole) {
  const job *j = x->job;
  json_t *line = json_pack("{s:s, s:i, s:f, s:b}", "path", x->path, "status", x->status, "seconds",
                           clock_seconds() - x->begun, "whole", whole);
  if (line && x->hosted) json_object_set_new(line, "model", json_string(x->hosted->preset.name));
  if (line && x->id[0]) json_object_set_new(line, "id", json_string(x->id));
  if (line && x->problem.status) json_object_set_new(line, "error", json_string(x->problem.message));
  if (!line || !j) return line;
  json_object_set_new(line, "prompt_tokens", json_integer(prompt_tokens(j)));
  json_object_set_new(line, "cached_tokens", json_integer(cached_tokens(j)));
  json_object_set_new(line, "written_tokens", json_integer(written_tokens(j)));
  if (j->first > 0) json_object_set_new(line, "first_token_seconds", json_real(j->first - j->asked));
  if (j->settings.priority) json_object_set_new(line, "priority", json_integer(j->settings.priority));
  return line;
}

void server_lock(server *s) { pthread_mutex_lock(&s->lock); }
void server_unlock(server *s) { pthread_mutex_unlock(&s->lock); }

void join_waiting(exchange *x) {
  server *s = x->server;
  x->after = s->waiting;
  if (s->waiting) s->waiting->before = x;
  s->waiting = x;
}

void leave_waiting(exchange *x) {
  server *s = x->server;
  if (x->before) x->before->after = x->after;
  if (x->after) x->after->before = x->before;
  if (s->waiting == x) s->waiting = x->after;
  x->before = x->after = NULL;
}

void resume(exchange *x) {
  if (!x->suspended) return;
  x->suspended = false;
  MHD_resume_connection(x->connection);
}

void stop_awaiting(exchange *x) {
  x->awaited = NULL;
  leave_waiting(x);
  resume(x);
}

static void completed(void *data, struct MHD_Connection *connection, void **con_cls,
                      enum MHD_RequestTerminationCode why) {
  exchange *x = *con_cls;
  if (!x) return;
  *con_cls = NULL;
  server *s = x->server;
  client_answered(connection, s);
  server_lock(s);
  leave_waiting(x);
  if (x->job) {
    x->job->wake = NULL;
    if (x->job->unfinished) scheduler_cancel(x->scheduler, x->job);
  }
  jobs_leave(x);
  images_leave(x);
  json_t *line = s->options->log ? describe(x, why == MHD_REQUEST_TERMINATED_COMPLETED_OK) : NULL;
  server_unlock(s);
  if (line) log_event("request", line);
  readers_free(x);
  json_decref(x->tools);
  json_decref(x->echo);
  json_decref(x->output);
  bytes_deinit(&x->item_text);
  if (x->job) scheduler_release_job(x->scheduler, x->job);
  bytes_deinit(&x->body);
  bytes_deinit(&x->out);
  free(x->text_at);
  free(x->tokens_at);
  free(x->told_end);
  server_lock(s);
  if (x->hosted) catalog_drop(s, x->hosted);
  server_unlock(s);
  free(x);
}

/* ---- responses ---- */

static enum MHD_Result go_on(exchange *x) { return x->problem.status ? respond_problem(x) : x->route->handle(x); }

static void add_headers(exchange *x, struct MHD_Response *response, const char *type) {
  const char *origin = x->server->options->cors;
  if (type) MHD_add_response_header(response, "Content-Type", type);
  if (x->id[0]) MHD_add_response_header(response, "request-id", x->id);
  if (x->status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
  if (x->status == 429 || x->status == 503) MHD_add_response_header(response, "Retry-After", "1");
  if (x->problem.status == 405) {
    const char *allowed;
    if (!find_route("", x->path, &allowed) && allowed) MHD_add_response_header(response, "Allow", allowed);
  }
  if (!origin) return;
  MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
  MHD_add_response_header(response, "Access-Control-Allow-Headers", "*, Authorization");
  MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
}

enum MHD_Result respond_with(exchange *x, int status, const char *type, struct MHD_Response *response) {
  if (!response) return MHD_NO;
  x->status = status;
  add_headers(x, response, type);
  enum MHD_Result result = MHD_queue_response(x->connection, (unsigned)status, response);
  MHD_destroy_response(response);
  return result;
}

enum MHD_Result respond_bytes(exchange *x, int status, const char *type, bytes *body) {
  if (body->failed) {
    bytes_deinit(body);
    return MHD_NO; /* no memory even for a sentence: the connection closes */
  }
  struct MHD_Response *response = MHD_create_response_from_buffer(body->size, body->data, MHD_RESPMEM_MUST_FREE);
  if (!response) bytes_deinit(body);
  *body = (bytes){0};
  return respond_with(x, status, type, response);
}

enum MHD_Result respond_json(exchange *x, int status, json_t *json) {
  bytes body = {0};
  append_line(&body, json);
  return respond_bytes(x, status, "application/json", &body);
}

/* Where it was loaded meanwhile, the handler goes on at once. */
static enum MHD_Result wait_for_model(exchange *x) {
  server_lock(x->server);
  x->suspended = x->awaited != NULL;
  if (x->suspended) MHD_suspend_connection(x->connection);
  bool sleeps = x->suspended;
  server_unlock(x->server);
  return sleeps ? MHD_YES : go_on(x);
}

enum MHD_Result respond_problem(exchange *x) {
  bytes body = {0};
  if (!x->problem.status) return wait_for_model(x);
  x->dialect->refuse(&x->problem, &body);
  return respond_bytes(x, x->problem.status, "application/json", &body);
}

/* ---- answers that a model writes ---- */

/* Under the lock: something new is there. */
static void wake_exchange(void *data) {
  exchange *x = data;
  if (!x->suspended || (!x->stream && x->job->unfinished)) return;
  resume(x);
}

static bool copy_news(exchange *x, int index, news *n) {
  const choice *c = &x->job->choices[index];
  size_t tops = x->job->settings.top_logprobs > 0 ? (size_t)x->job->settings.top_logprobs : 0;
  size_t first = x->tokens_at[index], count = c->token_count - first;
  bool ends = c->finish_reason && !x->told_end[index];
  *n = (news){.choice = index, .first_token = first, .text_first = x->text_at[index]};
  if (c->text.size == x->text_at[index] && !ends) return false; /* tokens without a text wait for theirs */
  if (c->text.data) bytes_append(&n->text, c->text.data + x->text_at[index], c->text.size - x->text_at[index]);
  n->ids = malloc(count * sizeof *n->ids + 1);
  n->values = malloc(count * sizeof *n->values + 1);
  n->tops = malloc(count * tops * sizeof *n->tops + 1);
  n->ends = malloc(count * sizeof *n->ends + 1);
  if (n->ids && n->values && n->tops && n->ends && count) {
    n->token_count = count;
    memcpy(n->ids, c->ids + first, count * sizeof *n->ids);
    memcpy(n->values, c->values + first, count * sizeof *n->values);
    memcpy(n->ends, c->ends + first, count * sizeof *n->ends);
    if (tops) memcpy(n->tops, c->tops + first * tops, count * tops * sizeof *n->tops);
  }
  x->text_at[index] = c->text.size;
  x->tokens_at[index] = c->token_count;
  if (ends) {
    n->finish_reason = c->finish_reason;
    n->stop = c->stop;
    x->told_end[index] = true;
  }
  return true;
}

static void news_deinit(news *n) {
  bytes_deinit(&n->text);
  free(n->ids);
  free(n->values);
  free(n->tops);
  free(n->ends);
}

static void refuse_failed(exchange *x) {
  const job *j = x->job;
  refuse(&x->problem, j->error_status, j->error_status == 503 ? "queue_timeout" : NULL, NULL, "%s", j->error);
}

/* Turns what is new into bytes to send; without any the connection sleeps until there is something. */
static bool fill_stream(exchange *x) {
  job *j = x->job;
  news *all = calloc((size_t)j->choice_count, sizeof *all);
  if (!all) return false;
  int count = 0;
  server_lock(x->server);
  for (int i = 0; i < j->choice_count; i++) count += copy_news(x, i, &all[count]);
  bool finished = j->unfinished == 0, ping = x->ping;
  bool nothing = x->begun_stream && count == 0 && !finished && !ping;
  x->ping = false;
  x->last_sent = clock_seconds();
  if (nothing) {
    x->suspended = true;
    MHD_suspend_connection(x->connection);
  }
  server_unlock(x->server);
  if (!x->begun_stream) x->dialect->begin(x, &x->out);
  x->begun_stream = true;
  for (int i = 0; i < count; i++) {
    if (!j->error[0] || !finished) x->dialect->piece(x, &all[i], &x->out);
    news_deinit(&all[i]);
  }
  free(all);
  if (ping && count == 0) bytes_append_text(&x->out, x->dialect->ping);
  if (!finished) return !x->out.failed;
  if (j->error[0])
    refuse_failed(x), x->dialect->fail(x, &x->problem, &x->out);
  else
    x->dialect->end(x, &x->out);
  x->ended = true;
  return !x->out.failed;
}

static ssize_t read_stream(void *data, uint64_t position, char *buffer, size_t most) {
  exchange *x = data;
  if (x->out_at == x->out.size) {
    if (x->ended) return MHD_CONTENT_READER_END_OF_STREAM;
    x->out.size = x->out_at = 0;
    if (!x->fill(x)) return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  size_t left = x->out.size - x->out_at, size = left < most ? left : most;
  if (size == 0) return x->ended ? MHD_CONTENT_READER_END_OF_STREAM : 0;
  memcpy(buffer, x->out.data + x->out_at, size);
  x->out_at += size;
  return (ssize_t)size;
}

/* The whole answer when it is there, until which the connection sleeps. */
static enum MHD_Result respond_whole(exchange *x) {
  job *j = x->job;
  server_lock(x->server);
  bool finished = j->unfinished == 0;
  if (!finished) {
    x->suspended = true;
    MHD_suspend_connection(x->connection);
  }
  server_unlock(x->server);
  if (!finished) return MHD_YES;
  if (j->error[0])
    refuse_failed(x);
  else if (j->cancelled)
    refuse(&x->problem, 503, NULL, NULL, "the answer was cut off: its time was over, or the server ends");
  return x->problem.status ? respond_problem(x) : respond_json(x, 200, x->dialect->whole(x));
}

static enum MHD_Result begin_answer(exchange *x) {
  server *s = x->server;
  server_lock(s);
  x->last_sent = clock_seconds();
  join_waiting(x);
  server_unlock(s);
  if (!x->stream) return respond_whole(x);
  x->fill = fill_stream;
  return respond_stream(x, x->dialect->stream_type);
}

enum MHD_Result respond_stream(exchange *x, const char *type) {
  struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, x, NULL);
  if (response) {
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    MHD_add_response_header(response, "X-Accel-Buffering", "no");
  }
  return respond_with(x, 200, type, response);
}

bool submit_job(exchange *x, job *j) {
  double most = x->server->options->most_seconds;
  settings *s = &j->settings;
  if (most > 0 && (s->most_seconds == 0 || s->most_seconds > most)) s->most_seconds = most;
  switch (scheduler_submit(x->scheduler, j)) {
    case SUBMITTED:
      return true;
    case SUBMIT_FAILED:
      return refuse(&x->problem, 500, NULL, NULL, "%s", rdna_last_error());
    case SUBMIT_QUEUE_FULL:
      return refuse(&x->problem, 429, "queue_full", NULL, "too many requests wait already; try again later");
    default:
      return refuse(&x->problem, 503, NULL, NULL, "the server is about to end and takes no more requests");
  }
}

/* Room for what the answer to |j|, which is the exchange's from now on, has told. */
static bool attach_job(exchange *x, job *j) {
  size_t count = (size_t)j->choice_count;
  x->job = j;
  x->text_at = calloc(count, sizeof *x->text_at);
  x->tokens_at = calloc(count, sizeof *x->tokens_at);
  x->told_end = calloc(count, sizeof *x->told_end);
  return (x->text_at && x->tokens_at && x->told_end) ||
         refuse(&x->problem, 500, NULL, NULL, "no host memory for the request");
}

enum MHD_Result respond_job(exchange *x, job *j) {
  j->wake = wake_exchange;
  j->wake_data = x;
  if (attach_job(x, j) && submit_job(x, j)) return begin_answer(x);
  server_lock(x->server);
  j->unfinished = 0; /* of a job that nobody works on */
  server_unlock(x->server);
  return respond_problem(x);
}

enum MHD_Result respond_kept_job(exchange *x, job *j) {
  if (!attach_job(x, j)) return respond_problem(x);
  server_lock(x->server);
  j->wake = wake_exchange;
  j->wake_data = x;
  server_unlock(x->server);
  return begin_answer(x);
}

/* ---- the daemon ---- */

static void keep_body(exchange *x, const char *data, size_t size) {
  size_t most = x->server->options->most_body;
  if (x->problem.status) return;
  if (size > most - x->body.size) {
    bytes_deinit(&x->body);
    refuse_size(x);
    return;
  }
  bytes_append(&x->body, data, size);
}

static enum MHD_Result handle_options(exchange *x) {
  bytes none = {0};
  return respond_bytes(x, 204, NULL, &none);
}

static enum MHD_Result access_handler(void *data, struct MHD_Connection *connection, const char *url,
                                      const char *method, const char *version, const char *upload, size_t *upload_size,
                                      void **con_cls) {
  exchange *x = *con_cls;
  if (!x) {
    *con_cls = exchange_create(data, connection, url, method);
    return *con_cls ? MHD_YES : MHD_NO;
  }
  if (*upload_size) {
    keep_body(x, upload, *upload_size);
    *upload_size = 0;
    return MHD_YES;
  }
  client_arrived(connection, data);
  if (x->job) return respond_whole(x); /* it woke */
  if (strcmp(method, "OPTIONS") == 0) return handle_options(x);
  if (x->body.failed) refuse(&x->problem, 500, NULL, NULL, "no host memory for the request");
  return go_on(x);
}

static rdna_status open_socket(server *s, int *out_socket) {
  const server_options *o = s->options;
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  struct addrinfo *found;
  char port[16];
  snprintf(port, sizeof port, "%d", o->port);
  int error = getaddrinfo(o->host, port, &hints, &found);
  if (error) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is no address: %s", o->host, gai_strerror(error));
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  bool bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
               bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 256) == 0;
  freeaddrinfo(found);
  if (!bound) {
    int why = errno;
    if (fd >= 0) close(fd);
    return rdna__fail(RDNA_UNAVAILABLE, "cannot listen on %s port %d: %s", o->host, o->port, strerror(why));
  }
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  getsockname(fd, (struct sockaddr *)&address, &size);
  s->port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                : ((struct sockaddr_in *)&address)->sin_port);
  *out_socket = fd;
  return RDNA_OK;
}

/* A byte of zero would cut the path short, to that of another resource: such a path stays as it came. */
static size_t unescape(void *data, struct MHD_Connection *connection, char *text) {
  return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

rdna_status http_start(server *s) {
  int fd = -1;
  RDNA_TRY(open_socket(s, &fd));
  /* not epoll: in it MHD_quiesce_daemon and the daemon's threads may both take the listening socket out of the set, and
   * the second one ends the process (libmicrohttpd 0.9.75) */
  s->daemon =
      MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, access_handler, s,
                       MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, completed, s,
                       MHD_OPTION_NOTIFY_CONNECTION, client_notify, s, MHD_OPTION_CONNECTION_LIMIT,
                       (unsigned)s->options->most_connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                       MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                       (size_t)CONNECTION_BYTES, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
  if (s->daemon) return RDNA_OK;
  close(fd);
  return rdna__fail(RDNA_UNAVAILABLE, "the HTTP library does not start on %s port %d", s->options->host, s->port);
}

void http_stop(server *s) {
  if (s->daemon) MHD_stop_daemon(s->daemon);
  s->daemon = NULL;
}
