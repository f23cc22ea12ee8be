#include "model/weights/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "model/gguf/gguf.h"
#include "model/weights/hf.h"

/* The files of a folder, but for the weights. */
enum {
  CONFIG,
  TOKENIZER,
  TOKENIZER_CONFIG,
  GENERATION_CONFIG,
  POOLING,
  VOCABULARY,
  JSONS,
  SPM = JSONS,
  CHAT_TEMPLATE,
  MERGES,
  FILES
};
static const char *const names[FILES] = {"config.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "generation_config.json",
                                         "1_Pooling/config.json",
                                         "vocab.json",
                                         "tokenizer.model",
                                         "chat_template.jinja",
                                         "merges.txt"};

typedef struct conversion {
  const char *folder, *tokenizer; /* the latter has the tokenizer's files */
  rdna_dtype type;
  rdna__file files[FILES];
  json_t *json[JSONS];
  rdna__hf_config config;
  rdna__safetensors *weights;
  rdna__hf_tensors *tensors;
  rdna__transcoder *transcoder;
  rdna_gguf_writer *writer;
} conversion;

/* A file that is not there stays empty, but for config.json. */
static rdna_status read_file(conversion *c, int which) {
  char path[4096];
  bool of_tokenizer = which == TOKENIZER || which == TOKENIZER_CONFIG || which >= VOCABULARY;
  if (which == VOCABULARY && c->json[TOKENIZER]) return RDNA_OK; /* which has it too */
  const char *folder = of_tokenizer ? c->tokenizer : c->folder;
  if (snprintf(path, sizeof path, "%s/%s", folder, names[which]) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", names[which]);
  rdna_status status = rdna__file_map(path, &c->files[which]);
  if (status == RDNA_NOT_FOUND && which != CONFIG) return RDNA_OK;
  if (status == RDNA_OK && which < JSONS) {
    json_error_t error;
    /* transformers writes 10^30 for a tokenizer without a limit of tokens */
    size_t flags = which == TOKENIZER_CONFIG ? JSON_DECODE_INT_AS_REAL : 0;
    c->json[which] = json_loadb((const char *)c->files[which].data, c->files[which].size, flags, &error);
    if (!json_is_object(c->json[which]))
      status = rdna__fail(RDNA_BAD_DATA, "no JSON object: %s", c->json[which] ? "it holds another value" : error.text);
  }
  return rdna__annotate(status, "%s", path);
}

static rdna_text bytes_of(const conversion *c, int which) {
  return (rdna_text){(const char *)c->files[which].data, c->files[which].size};
}

static rdna_status put_general(const conversion *c) {
  /* of a path that may end in slashes */
  size_t end = strlen(c->folder);
  while (end > 1 && c->folder[end - 1] == '/') end--;
  size_t start = end;
  while (start > 0 && c->folder[start - 1] != '/') start--;
  const rdna_text name = {c->folder + start, end - start};
  if (name.size && name.data[0] != '.')
    RDNA_TRY(rdna_gguf_writer_put(c->writer, "general.name", RDNA_GGUF_TYPE_TEXT, &name));
  rdna_dtype type = c->type;
  for (size_t i = 0; type == RDNA_DTYPE_COUNT && i < rdna__safetensors_count(c->weights); i++)
    if (rdna__safetensors_at(c->weights, i)->rank == 2) type = rdna__safetensors_at(c->weights, i)->dtype;
  uint32_t number = rdna__weight_file_type(type), version = 2; /* of the layout of blocks: since May 2023 */
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "general.file_type", RDNA_GGUF_TYPE_U32, &number));
  if (rdna_dtype_block_values(type) == 1) return RDNA_OK;
  return rdna_gguf_writer_put(c->writer, "general.quantization_version", RDNA_GGUF_TYPE_U32, &version);
}

/* How states become a vector of a text, which sentence-transformers writes: "pooling_mode_…": true, of one kind. */
static rdna_status put_pooling(const conversion *c) {
  static const char prefix[] = "pooling_mode_";
  static const struct {
    const char *name;
    uint32_t gguf;
  } kinds[] = {{"mean_tokens", 1}, {"cls_token", 2}, {"lasttoken", 3}};
  json_t *json = c->json[POOLING], *value;
  const char *name, *chosen = NULL;
  char key[128];
  json_object_foreach(json, name, value) {
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || !json_is_true(value)) continue;
    if (chosen) return rdna__fail(RDNA_UNSUPPORTED, "both %s and %s are true", chosen, name);
    chosen = name;
  }
  if (!json) return RDNA_OK;
  if (!chosen) return rdna__fail(RDNA_BAD_DATA, "no %s… is true", prefix);
  snprintf(key, sizeof key, "%s.pooling_type", c->config.architecture->gguf);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(chosen + sizeof prefix - 1, kinds[i].name) == 0)
      return rdna_gguf_writer_put(c->writer, key, RDNA_GGUF_TYPE_U32, &kinds[i].gguf);
  return rdna__fail(RDNA_UNSUPPORTED, "%.80s is true, which GGUF has no number for", chosen);
}

static rdna_status put_tokenizer(conversion *c) {
  if (!c->json[TOKENIZER] && !c->files[SPM].data && c->json[VOCABULARY] && c->files[MERGES].data)
    RDNA_TRY(rdna__annotate(
        rdna__hf_pairs_read(c->json[VOCABULARY], bytes_of(c, MERGES), c->json[TOKENIZER_CONFIG], &c->json[TOKENIZER]),
        "the tokenizer of %s", c->tokenizer));
  const rdna__hf_tokenizer tokenizer = {.tokenizer = c->json[TOKENIZER],
                                        .tokenizer_config = c->json[TOKENIZER_CONFIG],
                                        .generation_config = c->json[GENERATION_CONFIG],
                                        .config = c->config.json,
                                        .spm = bytes_of(c, SPM),
                                        .chat_template = bytes_of(c, CHAT_TEMPLATE),
                                        .vocabulary = c->config.vocabulary};
  return rdna__annotate(rdna__hf_tokenizer_put(&tokenizer, c->writer), "the tokenizer of %s", c->tokenizer);
}

/* All that the file is to hold, so that what is wrong shows before anything is written. */
static rdna_status plan(conversion *c, rdna_device *device) {
  for (int i = 0; i < FILES; i++) RDNA_TRY(read_file(c, i));
  RDNA_TRY(rdna__annotate(rdna__hf_config_read(c->json[CONFIG], &c->config), "%s/%s", c->folder, names[CONFIG]));
  RDNA_TRY(rdna__safetensors_open(c->folder, &c->weights));
  RDNA_TRY(rdna__transcoder_create(device, &c->transcoder));
  RDNA_TRY(rdna_gguf_writer_create(&c->writer));
  RDNA_TRY(rdna__annotate(rdna__hf_config_put(&c->config, c->writer), "%s/%s", c->folder, names[CONFIG]));
  RDNA_TRY(put_general(c));
  RDNA_TRY(rdna__annotate(put_pooling(c), "%s/%s", c->folder, names[POOLING]));
  rdna_status status = rdna__hf_tensors_add(&c->config, c->weights, c->type, c->transcoder, c->writer, &c->tensors);
  RDNA_TRY(rdna__annotate(status, "the weights of %s", c->folder));
  return put_tokenizer(c);
}

static void copy_key(const rdna_gguf *file, const char *name, char *out, size_t size) {
  rdna_text text = {"", 0};
  if (rdna_gguf_find_key(file, name, NULL) && rdna_gguf_get_text(file, name, &text) != RDNA_OK) text.size = 0;
  snprintf(out, size, "%.*s", (int)(text.size < size ? text.size : size - 1), text.data);
}

/* What was written, from the file itself. */
static rdna_status describe(const char *path, rdna_dtype type, rdna__conversion *out) {
  rdna_gguf *file;
  RDNA_TRY(rdna_gguf_open(path, &file));
  *out = (rdna__conversion){.has_chat_template = rdna_gguf_find_key(file, "tokenizer.chat_template", NULL)};
  copy_key(file, "general.architecture", out->architecture, sizeof out->architecture);
  copy_key(file, "tokenizer.ggml.model", out->tokenizer, sizeof out->tokenizer);
  copy_key(file, "tokenizer.ggml.pre", out->pre_tokenizer, sizeof out->pre_tokenizer);
  rdna_status status = rdna__weight_count_file(file, type, &out->counts);
  rdna_gguf_close(file);
  return status;
}

static void release(conversion *c) {
  rdna_gguf_writer_release(c->writer);
  rdna__hf_tensors_release(c->tensors);
  rdna__transcoder_release(c->transcoder);
  rdna__safetensors_close(c->weights);
  for (int i = 0; i < JSONS; i++) json_decref(c->json[i]);
  for (int i = 0; i < FILES; i++) rdna__file_unmap(&c->files[i]);
}

rdna_status rdna__convert(const char *folder, const char *path, rdna_dtype type, rdna_device *device,
                          void (*progress)(void *data, double share), void *progress_data,
                          rdna__conversion *out_conversion) {
  conversion c = {.folder = folder, .tokenizer = folder, .type = type};
  rdna_status status = plan(&c, device);
  if (status == RDNA_OK) status = rdna_gguf_writer_write(c.writer, path, progress, progress_data);
  release(&c);
  return status == RDNA_OK ? describe(path, type, out_conversion) : status;
}

static void release_all(void *owner) {
  release(owner);
  free(owner);
}

rdna_status rdna__model_open_folder(const char *folder, const char *tokenizer, rdna_gguf **out_file) {
  rdna_device *host;
  conversion *c = calloc(1, sizeof *c);
  if (!c) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model");
  *c = (conversion){.folder = folder, .tokenizer = tokenizer, .type = RDNA_DTYPE_COUNT};
  rdna_status status = rdna_device_open("host", &host);
  if (status == RDNA_OK) {
    status = plan(c, host);
    rdna_device_release(host);
  }
  if (status == RDNA_OK) status = rdna__gguf_open_writer(c->writer, release_all, c, out_file);
  if (status != RDNA_OK) release_all(c);
  return status;
}

rdna_status rdna_model_open(const char *path, rdna_gguf **out_file) {
  struct stat info;
  if (!path || !out_file) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_model_open needs a path and a place");
  bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
  return is_folder ? rdna__model_open_folder(path, path, out_file) : rdna_gguf_open(path, out_file);
}
