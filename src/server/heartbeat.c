#include "server/heartbeat.h"

#include <jansson.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "server/log.h"

enum { ANSWER_SECONDS = 5 };

struct heartbeat {
  url_parts url;
  char *worker_id, *token;
  double seconds;
  bool log;
  bool (*is_healthy)(void *data);
  void *data;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool leaving; /* under the lock */
};

rdna_status url_parse(const char *url, url_parts *out) {
  static const char scheme[] = "http://";
  const char *host = url + sizeof scheme - 1;
  if (strncmp(url, scheme, sizeof scheme - 1) != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the hive's URL '%.200s' does not begin with http://", url);
  size_t authority = strcspn(host, "/?#"), path = strlen(host + authority);
  const char *end = host + authority, *close = *host == '[' ? memchr(host, ']', authority) : NULL;
  const char *colon = memchr(close ? close : host, ':', (size_t)(end - (close ? close : host)));
  const char *name_end = colon ? colon : end, *port = colon ? colon + 1 : "80";
  size_t port_size = colon ? (size_t)(end - port) : 2;
  if (close) host++, name_end = close;
  size_t name = (size_t)(name_end - host);
  while (path > 0 && end[path - 1] == '/') path--;
  bool whole = name > 0 && name < sizeof out->host && port_size > 0 && port_size < 6 && path < sizeof out->path &&
               strspn(port, "0123456789") >= port_size && strpbrk(url, " \t\r\n@?#") == NULL;
  if (!whole)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the hive's URL '%.200s' is not of the form http://HOST:PORT/PATH", url);
  snprintf(out->host, sizeof out->host, "%.*s", (int)name, host);
  snprintf(out->port, sizeof out->port, "%.*s", (int)port_size, port);
  snprintf(out->path, sizeof out->path, "%.*s", (int)path, end);
  return RDNA_OK;
}

/* A socket that gives up soon; -1 with a sentence. */
static int connect_to(const url_parts *url, const char **out_why) {
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
  struct addrinfo *found;
  int error = getaddrinfo(url->host, url->port, &hints, &found), fd = -1;
  *out_why = error ? gai_strerror(error) : "no connection";
  if (error) return -1;
  for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) continue;
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

/* Whether the hive took it. */
static bool exchange_bytes(int fd, const char *request, size_t size, const char **out_why) {
  char answer[64] = "";
  size_t got = 0;
  *out_why = "the connection broke off";
  for (size_t sent = 0; sent < size;) {
    ssize_t n = send(fd, request + sent, size - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += (size_t)n;
  }
  while (got < 12) { /* "HTTP/1.1 200" */
    ssize_t n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
    if (n <= 0) return false;
    got += (size_t)n;
  }
  *out_why = "the hive's answer is not of the 200s";
  return strncmp(answer, "HTTP/1.", 7) == 0 && answer[9] == '2';
}

static char *make_request(const heartbeat *h) {
  struct timespec now;
  struct tm parts;
  char date[32], *request = NULL;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
  json_t *json = json_pack("{s:s, s:s, s:s}", "worker_id", h->worker_id, "timestamp", date, "health_status",
                           h->is_healthy(h->data) ? "healthy" : "degraded");
  char *body = json ? json_dumps(json, JSON_COMPACT) : NULL;
  json_decref(json);
  if (!body) return NULL;
  bool is_v6 = strchr(h->url.host, ':') != NULL;
  int size = asprintf(&request,
                      "POST %s/v1/heartbeat HTTP/1.1\r\nHost: %s%s%s:%s\r\nContent-Type: application/json\r\n"
                      "%s%s%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                      h->url.path, is_v6 ? "[" : "", h->url.host, is_v6 ? "]" : "", h->url.port,
                      h->token ? "Authorization: Bearer " : "", h->token ? h->token : "", h->token ? "\r\n" : "",
                      strlen(body), body);
  free(body);
  return size < 0 ? NULL : request;
}

static void beat(const heartbeat *h) {
  const char *why = "no host memory";
  char *request = make_request(h);
  int fd = request ? connect_to(&h->url, &why) : -1;
  bool taken = fd >= 0 && exchange_bytes(fd, request, strlen(request), &why);
  if (fd >= 0) close(fd);
  free(request);
  if (!taken && h->log)
    log_event("heartbeat",
              json_pack("{s:b, s:s, s:s, s:s}", "taken", 0, "host", h->url.host, "port", h->url.port, "why", why));
}

static void *run(void *data) {
  heartbeat *h = data;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  pthread_mutex_lock(&h->lock);
  while (!h->leaving) {
    pthread_mutex_unlock(&h->lock);
    beat(h);
    long long next = until.tv_nsec + (long long)(1e9 * h->seconds);
    until.tv_sec += (time_t)(next / 1000000000);
    until.tv_nsec = (long)(next % 1000000000);
    pthread_mutex_lock(&h->lock);
    while (!h->leaving && pthread_cond_timedwait(&h->changed, &h->lock, &until) == 0);
  }
  pthread_mutex_unlock(&h->lock);
  return NULL;
}

static void heartbeat_free(heartbeat *h) {
  pthread_mutex_destroy(&h->lock);
  pthread_cond_destroy(&h->changed);
  free(h->worker_id);
  free(h->token);
  free(h);
}

rdna_status heartbeat_start(const char *url, const char *worker_id, const char *token, double seconds, bool log,
                            bool (*is_healthy)(void *data), void *data, heartbeat **out) {
  url_parts parts;
  pthread_condattr_t clock;
  RDNA_TRY(url_parse(url, &parts));
  heartbeat *h = calloc(1, sizeof *h);
  if (!h) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for heartbeats");
  h->url = parts;
  h->seconds = seconds;
  h->log = log;
  h->is_healthy = is_healthy;
  h->data = data;
  h->worker_id = strdup(worker_id ? worker_id : "");
  h->token = token ? strdup(token) : NULL;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->changed, &clock);
  pthread_condattr_destroy(&clock);
  rdna_status status = RDNA_OK;
  if (!h->worker_id || (token && !h->token))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for heartbeats");
  else if (pthread_create(&h->thread, NULL, run, h) != 0)
    status = rdna__fail(RDNA_UNAVAILABLE, "the system starts no thread for heartbeats");
  if (status != RDNA_OK) {
    heartbeat_free(h);
    return status;
  }
  *out = h;
  return RDNA_OK;
}

void heartbeat_stop(heartbeat *h) {
  if (!h) return;
  pthread_mutex_lock(&h->lock);
  h->leaving = true;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
  pthread_join(h->thread, NULL);
  heartbeat_free(h);
}
