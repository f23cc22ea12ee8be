/* rdna serve: a language model for clients over HTTP. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "command/command.h"
#include "command/generation.h"
#include "server/server.h"

enum { MOST_KEYS = 64 };

typedef struct serve_options {
  device_choice device;
  const char *host, *name, *cors, *kv, *key, *keys_file;
  int64_t port, slots, context, cache, batch, queue, body, connections, drain;
  double seconds;
  bool any_model, exact, log;
} serve_options;

/* One key a line; the file's text must stay. */
static rdna_status read_keys(const serve_options *o, char **out_text, const char *keys[MOST_KEYS], size_t *out_count) {
  size_t size;
  if (o->key) keys[(*out_count)++] = o->key;
  if (!o->keys_file) return RDNA_OK;
  RDNA_TRY(read_whole(o->keys_file, out_text, &size));
  char *text = realloc(*out_text, size + 1), *rest = text;
  if (!text) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for keys");
  text[size] = 0;
  *out_text = text;
  for (char *line; (line = strsep(&rest, "\n"));) {
    line[strcspn(line, "\r")] = 0;
    if (*line == 0) continue;
    if (*out_count == MOST_KEYS)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s has more than %d keys", o->keys_file, MOST_KEYS);
    keys[(*out_count)++] = line;
  }
  if (*out_count == 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s has no key; write one a line", o->keys_file);
  return RDNA_OK;
}

/* Waits for SIGINT or SIGTERM, which all threads have blocked. */
static void wait_for_signal(const sigset_t *signals) {
  int signal_number;
  sigwait(signals, &signal_number);
}

/* A second signal does not wait. */
static void *leave_at_once(void *data) {
  wait_for_signal(data);
  _exit(EXIT_FAILED);
}

static rdna_status serve(const serve_options *o, const char *path, const server_options *options) {
  rdna_device *device;
  server *s;
  sigset_t signals;
  pthread_t impatient;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  signal(SIGPIPE, SIG_IGN);
  RDNA_TRY(open_chosen_device(&o->device, &device));
  rdna_status status = server_start(options, path, device, show_loading, NULL, &s);
  end_progress();
  if (status == RDNA_OK) {
    printf("%s on http://%s%s%s:%d, %s\n", server_model_name(s), strchr(o->host, ':') ? "[" : "", o->host,
           strchr(o->host, ':') ? "]" : "", server_port(s), rdna_device_get_info(device)->name);
    fflush(stdout);
    wait_for_signal(&signals);
    if (pthread_create(&impatient, NULL, leave_at_once, &signals) == 0) pthread_detach(impatient);
    server_drain(s, (double)o->drain);
    server_stop(s);
  }
  rdna_device_release(device);
  return status;
}

int command_serve(int argc, char **argv) {
  serve_options o = {.device = DEVICE_CHOICE_DEFAULT,
                     .host = "127.0.0.1",
                     .kv = "f16",
                     .port = 8080,
                     .slots = 8,
                     .batch = 512,
                     .queue = 256,
                     .body = 32,
                     .connections = 256,
                     .drain = 30};
  const option_row options[] = {
      {"--host", OPTION_TEXT, &o.host, "ADDRESS", "where to listen; 0.0.0.0 is everywhere (127.0.0.1)", 0, 0},
      {"--port", OPTION_INTEGER, &o.port, "N", "0 is any free one (8080)", 0, 65535},
      {"--name", OPTION_TEXT, &o.name, "NAME", "what the model is called (its file, without .gguf)", 0, 0},
      {"--any-model", OPTION_FLAG, &o.any_model, NULL, "answer whatever model a request names", 0, 0},
      {"--slots", OPTION_INTEGER, &o.slots, "N", "texts that are written at a time (8)", 1, 1024},
      {"--context", OPTION_INTEGER, &o.context, "N", "most tokens of a text (the model's, at most 4096)", 1, 1e8},
      {"--cache", OPTION_INTEGER, &o.cache, "N", "tokens that all texts have room for (slots times context)", 1, 1e10},
      {"--batch", OPTION_INTEGER, &o.batch, "N", "most tokens in a step (512)", 1, 65536},
      {"--kv", OPTION_CHOICE, &o.kv, KV_CHOICES, "type of the cache (f16)", 0, 0},
      {"--exact", OPTION_FLAG, &o.exact, NULL, "round nothing to 16 bits in a prompt's products on a GPU", 0, 0},
      {"--key", OPTION_TEXT, &o.key, "KEY", "what requests must show: Authorization: Bearer KEY", 0, 0},
      {"--keys", OPTION_TEXT, &o.keys_file, "FILE", "the same, any of its lines", 0, 0},
      {"--cors", OPTION_TEXT, &o.cors, "ORIGIN", "whose web pages may ask; * is all", 0, 0},
      {"--queue", OPTION_INTEGER, &o.queue, "N", "most texts that wait (256)", 0, 1e6},
      {"--body", OPTION_INTEGER, &o.body, "MIB", "most of a request's body (32)", 1, 4096},
      {"--connections", OPTION_INTEGER, &o.connections, "N", "most at a time (256)", 1, 65536},
      {"--seconds", OPTION_NUMBER, &o.seconds, "S", "most that a request may take (0: any)", 0, 1e9},
      {"--drain", OPTION_INTEGER, &o.drain, "S", "seconds that SIGTERM leaves to what is being written (30)", 0, 1e6},
      {"--log", OPTION_FLAG, &o.log, NULL, "a line of JSON on stderr for each request", 0, 0},
      DEVICE_OPTIONS(o.device),
  };
  const command_line line = {
      "rdna serve",
      "Serves a language model over HTTP in the manners of OpenAI (/v1/chat/completions, /v1/completions,\n"
      "/v1/models), Anthropic (/v1/messages) and Ollama (/api/chat, /api/generate); /health, /metrics.",
      "MODEL.gguf",
      1,
      1,
      options,
      sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX], *keys[MOST_KEYS + 1];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  char *text = NULL;
  server_options served = {.host = o.host,
                           .port = (int)o.port,
                           .name = o.name,
                           .any_model = o.any_model,
                           .keys = keys,
                           .cors = o.cors,
                           .most_body = (size_t)o.body << 20,
                           .most_connections = (int)o.connections,
                           .most_seconds = o.seconds,
                           .log_requests = o.log,
                           .scheduler = {.writers = (int)o.slots,
                                         .context = (int)o.context,
                                         .positions = o.cache,
                                         .batch = (int)(o.batch < o.slots ? o.slots : o.batch),
                                         .queue = (int)o.queue,
                                         .exact = o.exact,
                                         .kv_dtype = kv_type(o.kv)}};
  rdna_status status = read_keys(&o, &text, keys, &served.key_count);
  if (status == RDNA_OK) status = serve(&o, positionals[0], &served);
  free(text);
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}
