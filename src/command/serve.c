/* rdna serve: a language model for clients over HTTP. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "command/command.h"
#include "command/generation.h"
#include "command/image_model.h"
#include "server/heartbeat.h"
#include "server/presets_file.h"
#include "server/server.h"

enum { MOST_KEYS = 64 };

typedef struct serve_options {
  device_choice device;
  const char *host, *name, *cors, *kv, *key, *keys_file, *models_file, *cache_folder;
  int64_t port, slots, context, cache, batch, queue, body, connections, drain, gpu_layers, loaded, keep, lanes,
      checkpoints;
  double seconds, ping, idle, queue_seconds, heartbeat, patience;
  bool any_model, exact, log, no_page, images_frugal;
  const char *images;
  image_model_choice image_model;
  option_texts upscalers, ip_adapters;
  const char *ip_encoder;
  int64_t tile;
  option_texts lora;
  const char *mmproj;
  /* Of a worker. */
  const char *worker_id, *model, *model_ref, *hive_url;
  int64_t rocm_device;
  char rocm_name[16];

  const char *paths[POSITIONAL_MAX];
  int path_count;
} serve_options;
#define SERVE_OPTIONS_DEFAULT                 \
  {.device = DEVICE_CHOICE_DEFAULT,           \
   .host = "127.0.0.1",                       \
   .kv = "f16",                               \
   .image_model = IMAGE_MODEL_CHOICE_DEFAULT, \
   .port = 8080,                              \
   .slots = 8,                                \
   .keep = -1,                                \
   .checkpoints = 8,                          \
   .batch = 512,                              \
   .queue = 256,                              \
   .body = 32,                                \
   .connections = 256,                        \
   .drain = 30,                               \
   .gpu_layers = -1,                          \
   .idle = -1,                                \
   .ping = 10,                                \
   .patience = 60,                            \
   .heartbeat = 30,                           \
   .rocm_device = -1}

/* One key a line; the file's text must stay. */
static rdna_status read_keys(const serve_options *o, char **out_text, const char *keys[MOST_KEYS], size_t *out_count) {
  size_t size;
  const char *token = getenv("LLORCH_API_TOKEN"); /* which hives give their workers */
  if (token && *token) keys[(*out_count)++] = token;
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

/* ---- the models ---- */

/* What the options say of all models, but for their names and files. */
static preset default_preset(const serve_options *o) {
  return (preset){.gpu_layers = (int)o->gpu_layers,
                  .idle_seconds = o->idle,
                  .scheduler = {.writers = (int)o->slots,
                                .context = (int)o->context,
                                .positions = o->cache,
                                .batch = (int)(o->batch < o->slots ? o->slots : o->batch),
                                .queue = (int)o->queue,
                                .kept = (int)o->keep,
                                .lanes = (int)o->lanes,
                                .checkpoints = (int)o->checkpoints,
                                .queue_seconds = o->queue_seconds,
                                .exact = o->exact,
                                .kv_dtype = kv_type(o->kv)}};
}

static rdna_status read_presets(const char *path, const preset *defaults, preset *presets, size_t *count) {
  char *text = NULL, *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
  size_t size;
  if (!copy) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for presets");
  if (slash) *slash = 0;
  rdna_status status = read_whole(path, &text, &size);
  if (status == RDNA_OK)
    status = rdna__annotate(presets_parse(text, size, slash ? copy : ".", defaults, presets, count), "%s", path);
  free(text);
  free(copy);
  return status;
}

static rdna_status add_adapters(const option_texts *texts, preset *p) {
  for (int i = 0; i < texts->count; i++) {
    adapter_option option;
    RDNA_TRY(read_adapter(texts->values[i], &option));
    RDNA_TRY(preset_add_adapter(p, option.name[0] ? option.name : NULL, option.path, option.scale));
  }
  return RDNA_OK;
}

/* Those of the command line, of which the first is loaded at the start, and those of the file. The caller frees them,
 * also after a failure. */
static rdna_status collect_models(const serve_options *o, preset presets[MOST_PRESETS], size_t *out_count) {
  const preset defaults = default_preset(o);
  *out_count = 0;
  for (int i = 0; i < o->path_count; i++) {
    preset one = defaults;
    one.path = (char *)o->paths[i];
    one.preload = i == 0;
    preset_name_after(&one, o->paths[i]);
    if (o->name) snprintf(one.name, sizeof one.name, "%s", o->name);
    one.vision_path = i == 0 ? (char *)o->mmproj : NULL;
    RDNA_TRY(preset_copy(&one, &presets[*out_count]));
    (*out_count)++;
    if (i == 0) RDNA_TRY(add_adapters(&o->lora, &presets[0]));
  }
  if (o->models_file) RDNA_TRY(read_presets(o->models_file, &defaults, presets, out_count));
  return presets_check(presets, *out_count);
}

static void free_models(preset *presets, size_t count) {
  while (count > 0) preset_deinit(&presets[--count]);
}

/* Reads the file of presets again; where it is wrong, all stays as it was. */
static void reload(const serve_options *o, server *s) {
  preset presets[MOST_PRESETS];
  size_t count;
  rdna_status status = collect_models(o, presets, &count);
  if (status == RDNA_OK) status = server_reload(s, presets, count);
  if (status == RDNA_OK)
    fprintf(stderr, "rdna: %zu models from now on\n", count);
  else
    fprintf(stderr, "rdna: the models stay as they were: %s\n", rdna_last_error());
  free_models(presets, count);
}

/* ---- its life ---- */

/* Waits for SIGINT or SIGTERM, which all threads have blocked; with SIGHUP the models are read again. */
static void wait_for_end(const sigset_t *signals, const serve_options *o, server *s) {
  int number;
  while (sigwait(signals, &number) == 0 && number == SIGHUP) reload(o, s);
}

/* A signal that ends the process where it is. */
typedef struct abrupt_end {
  const sigset_t *signals;
  int status;
} abrupt_end;

static void *leave_at_once(void *data) {
  const abrupt_end *end = data;
  int number;
  while (sigwait(end->signals, &number) == 0 && number == SIGHUP);
  _exit(end->status);
}

/* Starts the server; a signal while the models are loaded, which may take minutes, ends all at once. */
static rdna_status start(const server_options *options, const preset *presets, size_t count, rdna_device *device,
                         const sigset_t *signals, server **out) {
  abrupt_end end = {signals, EXIT_OK};
  pthread_t waiting;
  bool waits = pthread_create(&waiting, NULL, leave_at_once, &end) == 0;
  rdna_status status = server_start(options, presets, count, device, show_loading, NULL, out);
  end_progress();
  if (!waits) return status;
  pthread_cancel(waiting);
  pthread_join(waiting, NULL);
  return status;
}

/* Tells the system's service manager, where it started us and asks for it. */
static void notify_manager(const char *state) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || !*path || strlen(path) >= sizeof address.sun_path) return;
  memcpy(address.sun_path, path, strlen(path));
  if (*path == '@') address.sun_path[0] = 0; /* an abstract name */
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
  (void)sent; /* nobody to tell */
  close(fd);
}

static void warn(const char *sentence) { fprintf(stderr, "rdna: %s\n", sentence); }

static bool is_healthy(void *data) { return server_is_healthy(data); }

static void say_start(const serve_options *o, const server *s, const preset *presets, size_t count,
                      const char *device) {
  bool is_v6 = strchr(o->host, ':') != NULL;
  char more[48] = "";
  if (count > 1) snprintf(more, sizeof more, " and %zu more", count - 1);
  const char *path = o->images ? strrchr(o->images, '/') : NULL;
  const char *name = count ? presets[0].name : o->name ? o->name : path && path[1] ? path + 1 : o->images;
  printf("%s%s on http://%s%s%s:%d, %s\n", name, more, is_v6 ? "[" : "", o->host, is_v6 ? "]" : "", server_port(s),
         device);
  fflush(stdout);
}

static rdna_status serve_models(const serve_options *o, const preset *presets, size_t count,
                                const server_options *options) {
  rdna_device *device;
  server *s;
  sigset_t signals;
  pthread_t impatient;
  abrupt_end second = {&signals, EXIT_FAILED}; /* who is asked twice does not wait */
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  signal(SIGPIPE, SIG_IGN);
  RDNA_TRY(rdna__file_guard());
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its writer */
  RDNA_TRY(open_chosen_device(&o->device, &device));
  rdna_status status = start(options, presets, count, device, &signals, &s);
  heartbeat *beats = NULL;
  if (status == RDNA_OK && o->hive_url) {
    status = heartbeat_start(o->hive_url, o->worker_id, getenv("LLORCH_API_TOKEN"), o->heartbeat, o->log, is_healthy, s,
                             &beats);
    if (status != RDNA_OK) server_stop(s);
  }
  if (status == RDNA_OK) {
    say_start(o, s, presets, count, rdna_device_get_info(device)->name);
    notify_manager("READY=1");
    wait_for_end(&signals, o, s);
    notify_manager("STOPPING=1");
    if (pthread_create(&impatient, NULL, leave_at_once, &second) == 0) pthread_detach(impatient);
    heartbeat_stop(beats);
    server_drain(s, (double)o->drain);
    server_stop(s);
  }
  rdna_device_release(device);
  return status;
}

/* Whether requests can tell LoRAs from each other, ControlNets and IP-Adapters. */
static rdna_status check_names(const image_model_files *f) {
  const struct {
    int count;
    const char (*names)[FILE_NAME_BYTES];
    const char *kind, *option;
  } lists[] = {{f->options.lora_count, f->lora_names, "LoRA", "--lora"},
               {(int)f->options.control_count, f->control_names, "ControlNet", "--control"},
               {(int)f->options.adapter_count, f->adapter_names, "IP-Adapter", "--ip-adapter"}};
  for (int k = 0; k < 3; k++)
    for (int i = 1; i < lists[k].count; i++)
      for (int j = 0; j < i; j++)
        if (strcmp(lists[k].names[i], lists[k].names[j]) == 0)
          return rdna__fail(RDNA_INVALID_ARGUMENT, "two %ss are called '%s'; give one another name: %s NAME=FILE",
                            lists[k].kind, lists[k].names[i], lists[k].option);
  return RDNA_OK;
}

static rdna_status read_ip_adapters(const serve_options *o, image_model_files *f) {
  for (int i = 0; i < o->ip_adapters.count; i++)
    RDNA_TRY(read_named_file("--ip-adapter", o->ip_adapters.values[i], &f->ip_adapters[i], f->adapter_names[i]));
  f->options.adapters = f->ip_adapters;
  f->options.adapter_count = (size_t)o->ip_adapters.count;
  f->options.image_encoder = o->ip_encoder;
  return RDNA_OK;
}

/* What upscalers are called, and where they are. */
typedef struct upscaler_files {
  char names[OPTION_TEXTS_MOST][FILE_NAME_BYTES];
  const char *shown[OPTION_TEXTS_MOST], *paths[OPTION_TEXTS_MOST];
} upscaler_files;

static rdna_status read_upscalers(const option_texts *given, upscaler_files *out) {
  for (int i = 0; i < given->count; i++) {
    RDNA_TRY(read_named_file("--upscaler", given->values[i], &out->paths[i], out->names[i]));
    out->shown[i] = out->names[i];
    for (int j = 0; j < i; j++)
      if (strcmp(out->names[i], out->names[j]) == 0)
        return rdna__fail(RDNA_INVALID_ARGUMENT,
                          "two upscalers are called '%s'; give one another name: --upscaler NAME=FILE", out->names[i]);
  }
  return RDNA_OK;
}

/* With the model of pictures, if there is one. */
static rdna_status serve_pictures(const serve_options *o, const preset *presets, size_t count,
                                  server_options *options) {
  image_model_files *files = NULL;
  const char *loras[OPTION_TEXTS_MOST], *controls[OPTION_TEXTS_MOST], *adapters[OPTION_TEXTS_MOST];
  if (!o->images) return serve_models(o, presets, count, options);
  rdna_status status = read_image_model(&o->image_model, &o->lora, &files);
  upscaler_files upscalers;
  if (status == RDNA_OK) status = read_ip_adapters(o, files);
  if (status == RDNA_OK) status = check_names(files);
  if (status == RDNA_OK) status = read_upscalers(&o->upscalers, &upscalers);
  if (status == RDNA_OK) {
    for (int i = 0; i < OPTION_TEXTS_MOST; i++) {
      loras[i] = files->lora_names[i];
      controls[i] = files->control_names[i];
      adapters[i] = files->adapter_names[i];
    }
    const images_options images = {.folder = o->images,
                                   .name = o->name,
                                   .frugal = o->images_frugal,
                                   .queue = (int)o->queue,
                                   .tile = (int)o->tile,
                                   .model = &files->options,
                                   .lora_names = loras,
                                   .control_names = controls,
                                   .adapter_names = adapters,
                                   .upscalers = upscalers.paths,
                                   .upscaler_names = upscalers.shown,
                                   .upscaler_count = o->upscalers.count};
    options->images = &images;
    status = serve_models(o, presets, count, options);
  }
  free(files);
  return status;
}

static rdna_status serve(const serve_options *o, server_options options) {
  preset presets[MOST_PRESETS];
  const char *keys[MOST_KEYS + 1];
  char *text = NULL;
  size_t count;
  options.keys = keys;
  options.cache_folder = o->cache_folder;
  options.warn = warn;
  if (o->cache_folder && mkdir(o->cache_folder, 0700) != 0 && errno != EEXIST)
    return rdna__fail(RDNA_IO_ERROR, "--cache-dir %s: %s", o->cache_folder, strerror(errno));
  rdna_status status = read_keys(o, &text, keys, &options.key_count);
  if (status == RDNA_OK) {
    status = collect_models(o, presets, &count);
    if (status == RDNA_OK) status = serve_pictures(o, presets, count, &options);
    free_models(presets, count);
  }
  free(text);
  return status;
}

/* What a hive gives its workers: other names for some options. */
static const char *take_worker_options(serve_options *o) {
  if (o->model) {
    if (o->path_count > 0) return "--model and another MODEL; give one of them";
    o->paths[o->path_count++] = o->model;
  }
  if (o->model_ref) o->name = o->model_ref;
  if (o->rocm_device >= 0) {
    snprintf(o->rocm_name, sizeof o->rocm_name, "%d", (int)o->rocm_device);
    o->device = (device_choice){.driver = "hip", .device = o->rocm_name};
  }
  if (o->images && (o->path_count > 0 || o->models_file))
    return "--images goes without language models; start a server for each";
  if (o->tile % 4) return "--tile is a multiple of 4";
  if (o->images) return NULL;
  const image_model_choice *c = &o->image_model;
  if (o->images_frugal || o->tile || c->tokenizer || c->prediction || c->transformer || c->t5 || c->vae || c->preview ||
      c->refiner || c->weights || strcmp(c->type, "auto") != 0 || c->embeddings.count || c->controls.count ||
      o->upscalers.count || o->ip_adapters.count || o->ip_encoder)
    return "--images-frugal, --tile, --tokenizer, --prediction, --transformer, --t5, --vae, --preview-model, "
           "--refiner, "
           "--weights, --type, --embedding, --upscaler, --ip-adapter, --ip-encoder and --control go with --images";
  if (o->path_count == 0 && !o->models_file) return "no model; give a MODEL.gguf, or --models FILE";
  if (o->name && o->path_count != 1) return "--name goes with one MODEL";
  if (o->lora.count > 0 && o->path_count != 1) return "--lora goes with one MODEL; others have theirs in --models FILE";
  if (o->mmproj && o->path_count != 1) return "--mmproj goes with one MODEL; others have theirs in --models FILE";
  return NULL;
}

static server_options server_options_of(const serve_options *o) {
  return (server_options){.host = o->host,
                          .port = (int)o->port,
                          .any_model = o->any_model,
                          .most_loaded = (int)o->loaded,
                          .cors = o->cors,
                          .most_body = (size_t)o->body << 20,
                          .most_connections = (int)o->connections,
                          .most_seconds = o->seconds,
                          .patience_seconds = o->patience,
                          .ping_seconds = o->ping,
                          .log = o->log,
                          .no_page = o->no_page,
                          .worker_id = o->worker_id};
}

int command_serve(int argc, char **argv) {
  serve_options o = SERVE_OPTIONS_DEFAULT;
  const option_row options[] = {
      {"--host", OPTION_TEXT, &o.host, "ADDRESS", "where to listen; 0.0.0.0 is everywhere (127.0.0.1)", 0, 0},
      {"--port", OPTION_INTEGER, &o.port, "N", "0 is any free one (8080)", 0, 65535},
      {"--models", OPTION_TEXT, &o.models_file, "FILE", "more models, as JSON; read again with SIGHUP", 0, 0},
      {"--name", OPTION_TEXT, &o.name, "NAME", "what the model is called (its file, without .gguf)", 0, 0},
      {"--lora", OPTION_TEXTS, &o.lora, "[NAME=]FILE[:SCALE]", "an adapter or LoRA for requests; several times", 0, 0},
      {"--mmproj", OPTION_TEXT, &o.mmproj, "FILE.gguf", "the tower with which the model sees pictures", 0, 0},
      {"--images", OPTION_TEXT, &o.images, "FOLDER", "a model of pictures, in place of language models", 0, 0},
      {"--images-frugal", OPTION_FLAG, &o.images_frugal, NULL, "each part of it is on the device while it works", 0, 0},
      {"--control", OPTION_TEXTS, &o.image_model.controls, "[NAME=]FOLDER",
       "its ControlNet for requests; several times", 0, 0},
      IMAGE_MODEL_OPTIONS(o.image_model),
      {"--upscaler", OPTION_TEXTS, &o.upscalers, "[NAME=]FILE",
       "a network for requests that makes pictures larger; several times", 0, 0},
      {"--ip-adapter", OPTION_TEXTS, &o.ip_adapters, "[NAME=]FILE",
       "an IP-Adapter, by which requests show pictures as prompts; several times", 0, 0},
      {"--ip-encoder", OPTION_TEXT, &o.ip_encoder, "FOLDER", "CLIP's encoder of pictures that they read by", 0, 0},
      {"--tile", OPTION_INTEGER, &o.tile, "N", "its pictures are made of tiles of N x N latents, in less memory", 4,
       1024},
      {"--any-model", OPTION_FLAG, &o.any_model, NULL, "answer whatever model a request names", 0, 0},
      {"--idle", OPTION_NUMBER, &o.idle, "S", "unused for so long, a model leaves memory (-1: never)", -1, 1e9},
      {"--loaded", OPTION_INTEGER, &o.loaded, "N", "most models in memory (0: as many as have room)", 0, 1e6},
      {"--slots", OPTION_INTEGER, &o.slots, "N", "texts that are written at a time (8)", 1, 1024},
      {"--keep", OPTION_INTEGER, &o.keep, "N", "texts whose caches wait for one that begins so (as many as slots)", -1,
       1024},
      {"--context", OPTION_INTEGER, &o.context, "N", "most tokens of a text (the model's, at most 4096)", 1, 1e8},
      {"--cache", OPTION_INTEGER, &o.cache, "N", "tokens that all texts have room for (slots times context)", 1, 1e10},
      {"--batch", OPTION_INTEGER, &o.batch, "N", "most tokens in a step (512)", 1, 65536},
      {"--kv", OPTION_CHOICE, &o.kv, KV_CHOICES, "type of the cache (f16)", 0, 0},
      {"--exact", OPTION_FLAG, &o.exact, NULL, "round nothing in products", 0, 0},
      {"--lanes", OPTION_INTEGER, &o.lanes, "N", "the same bits whatever others ask: 8 or more tokens a pass (0: off)",
       0, 256},
      {"--checkpoints", OPTION_INTEGER, &o.checkpoints, "N", "most states of a text, where layers are recurrent (8)", 3,
       1024},
      {"--cache-dir", OPTION_TEXT, &o.cache_folder, "FOLDER", "where what texts have read is saved at the end", 0, 0},
      {"--gpu-layers", OPTION_INTEGER, &o.gpu_layers, "N", "last layers on the card, others on the host (all)", -1,
       1e5},
      {"--key", OPTION_TEXT, &o.key, "KEY", "what requests must show: Authorization: Bearer KEY", 0, 0},
      {"--keys", OPTION_TEXT, &o.keys_file, "FILE", "the same, any of its lines", 0, 0},
      {"--cors", OPTION_TEXT, &o.cors, "ORIGIN", "whose web pages may ask; * is all", 0, 0},
      {"--queue", OPTION_INTEGER, &o.queue, "N", "most texts that wait (256)", 0, 1e6},
      {"--queue-seconds", OPTION_NUMBER, &o.queue_seconds, "S", "most that a text waits (0: any)", 0, 1e9},
      {"--body", OPTION_INTEGER, &o.body, "MIB", "most of a request's body (32)", 1, 4096},
      {"--connections", OPTION_INTEGER, &o.connections, "N", "most at a time (256)", 1, 65536},
      {"--seconds", OPTION_NUMBER, &o.seconds, "S", "most that a request may take (0: any)", 0, 1e9},
      {"--patience", OPTION_NUMBER, &o.patience, "S", "most that a request may take to arrive (60)", 0.01, 1e6},
      {"--ping", OPTION_NUMBER, &o.ping, "S", "silent for so long, a stream says that it goes on (10)", 0.01, 1e6},
      {"--drain", OPTION_INTEGER, &o.drain, "S", "seconds that SIGTERM leaves to what is being written (30)", 0, 1e6},
      {"--no-page", OPTION_FLAG, &o.no_page, NULL, "no web page at /", 0, 0},
      {"--log", OPTION_FLAG, &o.log, NULL, "a line of JSON on stderr for each request and model", 0, 0},
      {"--worker-id", OPTION_TEXT, &o.worker_id, "ID", "what the hive calls this worker", 0, 0},
      {"--model", OPTION_TEXT, &o.model, "MODEL.gguf", "the same as MODEL", 0, 0},
      {"--model-ref", OPTION_TEXT, &o.model_ref, "NAME", "the same as --name", 0, 0},
      {"--hive-url", OPTION_TEXT, &o.hive_url, "URL", "where heartbeats go: http://HOST:PORT", 0, 0},
      {"--heartbeat", OPTION_NUMBER, &o.heartbeat, "S", "seconds between heartbeats (30)", 0.01, 1e6},
      {"--rocm-device", OPTION_INTEGER, &o.rocm_device, "N", "the same as --driver hip --device N", 0, 1e4},
      DEVICE_OPTIONS(o.device),
  };
  const command_line line = {
      "rdna serve",
      "Serves language models over HTTP in the manners of OpenAI (/v1/chat/completions, /v1/completions,\n"
      "/v1/models), Anthropic (/v1/messages) and Ollama (/api/chat, /api/generate), and as a hive's worker "
      "(/v1/jobs);\n"
      "/health, /ready, /metrics; a web page at /. docs/serve.md has it all.",
      "[MODEL.gguf…]",
      0,
      POSITIONAL_MAX,
      options,
      sizeof options / sizeof *options};
  int exit_status;
  if (!parse_command_line(&line, argc, argv, o.paths, &o.path_count, &exit_status)) return exit_status;
  const char *misuse = take_worker_options(&o);
  if (misuse) {
    fprintf(stderr, "rdna serve: %s; see rdna serve --help\n", misuse);
    return EXIT_USAGE;
  }
  return serve(&o, server_options_of(&o)) == RDNA_OK ? EXIT_OK : fail_with_status();
}
