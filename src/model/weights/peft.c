/* Of a module "model.layers.3.self_attn.q_proj" a folder has
 *
 *     base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight   (rank, columns)
 *     base_model.model.model.layers.3.self_attn.q_proj.lora_B.weight   (rows, rank)
 *
 * and the scale is alpha / rank, or alpha / sqrt(rank). Rows of B are in the order of the model's in the folder, which
 * GGUF changes for queries and keys of some architectures. */
#include "model/weights/peft.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/gguf/gguf.h"
#include "model/weights/hf.h"

enum { NAME = 192 };

typedef struct peft {
  rdna__safetensors *weights;
  rdna_gguf_writer *writer;
  float **values; /* (value_count) of the tensors */
  size_t value_count;
} peft;

/* ---- settings ---- */

static rdna_status check_settings(const json_t *c) {
  static const char *const no[] = {"use_dora", "fan_in_fan_out", "lora_bias"};
  const char *type = rdna__hf_text(c, "peft_type", "?"), *bias = rdna__hf_text(c, "bias", "none");
  if (strcmp(type, "LORA") != 0) return rdna__fail(RDNA_UNSUPPORTED, "peft_type is '%.40s'; LORA alone is read", type);
  if (strcmp(bias, "none") != 0) return rdna__fail(RDNA_UNSUPPORTED, "bias is '%.40s'; none alone is read", bias);
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    if (json_is_true(json_object_get(c, no[i]))) return rdna__fail(RDNA_UNSUPPORTED, "%s is true", no[i]);
  if (json_array_size(json_object_get(c, "modules_to_save")) > 0)
    return rdna__fail(RDNA_UNSUPPORTED, "modules_to_save names whole modules, and low-rank changes alone are read");
  return RDNA_OK;
}

/* Whether |module| is the one that |pattern| says: it, or its end behind a dot. */
static bool fits(const char *module, const char *pattern) {
  size_t size = strlen(module), end = strlen(pattern);
  return end > 0 && end <= size && strcmp(module + size - end, pattern) == 0 &&
         (end == size || module[size - end - 1] == '.');
}

static rdna_status scale_of(const json_t *c, const char *module, int64_t rank, double *out) {
  const char *pattern;
  json_t *value;
  double alpha;
  RDNA_TRY(rdna__hf_number(c, "lora_alpha", 8, &alpha));
  json_object_foreach(json_object_get(c, "alpha_pattern"), pattern, value) {
    if (strpbrk(pattern, "^$*+?()[]{}|\\"))
      return rdna__fail(RDNA_UNSUPPORTED, "alpha_pattern has '%.80s'; ends of names alone are read", pattern);
    if (!json_is_number(value)) return rdna__fail(RDNA_BAD_DATA, "alpha_pattern of '%.80s' is no number", pattern);
    if (fits(module, pattern)) alpha = json_number_value(value);
  }
  if (!isfinite(alpha) || fabs(alpha) > 1e9) return rdna__fail(RDNA_BAD_DATA, "an alpha is %g", alpha);
  *out = json_is_true(json_object_get(c, "use_rslora")) ? alpha / sqrt((double)rank) : alpha / (double)rank;
  return RDNA_OK;
}

/* ---- names ---- */

/* GGUF's name of |module|, and whether its rows are in another order there. */
static rdna_status name_of(const char *architecture, const char *module, char out[NAME], bool *out_reordered) {
  static const char *const prefixes[] = {"model.layers.", "model.language_model.layers.",
                                         "language_model.model.layers."};
  *out_reordered = false;
  if (strcmp(module, "lm_head") == 0) {
    strcpy(out, "output");
    return RDNA_OK;
  }
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
    size_t size = strlen(prefixes[i]);
    char *rest;
    if (strncmp(module, prefixes[i], size) != 0 || module[size] < '0' || module[size] > '9') continue;
    long layer = strtol(module + size, &rest, 10);
    const char *gguf = *rest == '.' ? rdna__hf_matrix_name(architecture, rest + 1, out_reordered) : NULL;
    if (gguf && layer < 100000) {
      snprintf(out, NAME, "blk.%ld.%s", layer, gguf);
      return RDNA_OK;
    }
  }
  return rdna__fail(RDNA_UNSUPPORTED, "it changes '%.120s', which is no matrix of a %s that an adapter changes", module,
                    architecture);
}

/* ---- tensors ---- */

/* Row |r| of GGUF's order, where halves of a head are interleaved. */
static int64_t source_row(int64_t r, int64_t head_dim) {
  int64_t in_head = r % head_dim;
  return r - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
}

/* |from| times |scale| as the tensor |name|, with its rows in another order where |head_dim| is not 0. */
static rdna_status add_tensor(peft *p, const rdna__safetensor *from, const char *name, double scale, int64_t head_dim) {
  if (from->rank != 2 || from->shape[0] < 1 || from->shape[1] < 1)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%.120s' is no matrix", from->name);
  if (from->dtype != RDNA_F32 && from->dtype != RDNA_F16 && from->dtype != RDNA_BF16)
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.120s' holds values of type %s; F32, F16 and BF16 are read",
                      from->name, from->type);
  int64_t rows = from->shape[0], columns = from->shape[1];
  if (head_dim > 0 && (rows % head_dim || head_dim % 2))
    return rdna__fail(RDNA_BAD_DATA, "tensor '%.120s' has %lld rows, which are no heads of %lld", from->name,
                      (long long)rows, (long long)head_dim);
  float *values = malloc((size_t)(rows * columns) * sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an adapter");
  p->values[p->value_count++] = values;
  for (int64_t r = 0; r < rows; r++) {
    int64_t row = head_dim ? source_row(r, head_dim) : r;
    for (int64_t i = 0; i < columns; i++)
      values[r * columns + i] = (float)((double)rdna__safetensor_value(from, row * columns + i) * scale);
  }
  const rdna_gguf_tensor tensor = {
      .name = name, .dtype = RDNA_F32, .rank = 2, .shape = {rows, columns}, .data = values};
  return rdna_gguf_writer_add_tensor(p->writer, &tensor, NULL, NULL);
}

/* Tensor |index|, A or B of a module. */
static rdna_status read_tensor(peft *p, const json_t *config, size_t index, const char *architecture, int head_dim) {
  static const char prefix[] = "base_model.model.", endings[2][16] = {".lora_A.weight", ".lora_B.weight"};
  const rdna__safetensor *from = rdna__safetensors_at(p->weights, index);
  size_t size = strlen(from->name), end = strlen(endings[0]), before = strlen(prefix);
  char module[NAME], name[NAME], full[NAME + 24];
  int which = 0;
  while (which < 2 && (size <= end || strcmp(from->name + size - end, endings[which]) != 0)) which++;
  if (which == 2 || size - end <= before || strncmp(from->name, prefix, before) != 0 || size - end - before >= NAME)
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.120s' is no A or B of a low-rank change", from->name);
  snprintf(module, sizeof module, "%.*s", (int)(size - end - before), from->name + before);
  bool reordered;
  double scale = 1;
  RDNA_TRY(name_of(architecture, module, name, &reordered));
  if (which == 1 && from->rank == 2 && from->shape[1] > 0) RDNA_TRY(scale_of(config, module, from->shape[1], &scale));
  snprintf(full, sizeof full, "%s.weight.lora_%c", name, which ? 'b' : 'a');
  return add_tensor(p, from, full, scale, which == 1 && reordered ? head_dim : 0);
}

static rdna_status put_text(peft *p, const char *key, const char *value) {
  const rdna_text text = {value, strlen(value)};
  return rdna_gguf_writer_put(p->writer, key, RDNA_GGUF_TYPE_TEXT, &text);
}

static void release(void *owner) {
  peft *p = owner;
  for (size_t i = 0; i < p->value_count; i++) free(p->values[i]);
  free(p->values);
  rdna_gguf_writer_release(p->writer);
  rdna__safetensors_close(p->weights);
  free(p);
}

static rdna_status fill(peft *p, const json_t *config, const char *architecture, int head_dim) {
  size_t count = rdna__safetensors_count(p->weights);
  p->values = calloc(count + 1, sizeof *p->values);
  if (!p->values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an adapter");
  RDNA_TRY(rdna_gguf_writer_create(&p->writer));
  RDNA_TRY(put_text(p, "general.type", "adapter"));
  RDNA_TRY(put_text(p, "general.architecture", architecture));
  RDNA_TRY(put_text(p, "adapter.type", "lora"));
  for (size_t i = 0; i < count; i++) RDNA_TRY(read_tensor(p, config, i, architecture, head_dim));
  return RDNA_OK;
}

rdna_status rdna__peft_read(rdna_text config, rdna_text weights, const char *architecture, int head_dim,
                            rdna_gguf **out_file) {
  json_error_t error;
  json_t *json = json_loadb(config.data, config.size, 0, &error);
  peft *p = calloc(1, sizeof *p);
  rdna_status status = p ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an adapter");
  if (status == RDNA_OK && !json_is_object(json))
    status = rdna__fail(RDNA_BAD_DATA, "no JSON object: %s", json ? "it holds another value" : error.text);
  if (status == RDNA_OK) status = check_settings(json);
  status = rdna__annotate(status, "adapter_config.json");
  if (status == RDNA_OK) {
    status = rdna__safetensors_open_memory(weights.data, weights.size, &p->weights);
    if (status == RDNA_OK) status = fill(p, json, architecture, head_dim);
    status = rdna__annotate(status, "adapter_model.safetensors");
  }
  json_decref(json);
  if (status == RDNA_OK) status = rdna__gguf_open_writer(p->writer, release, p, out_file);
  if (status != RDNA_OK && p) release(p);
  return status;
}

static rdna_status map_file(const char *folder, const char *name, rdna__file *out) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", name);
  return rdna__annotate(rdna__file_map(path, out), "%s", path);
}

rdna_status rdna__peft_open(const char *folder, const char *architecture, int head_dim, rdna_gguf **out_file) {
  rdna__file config = {0}, weights = {0};
  rdna_status status = map_file(folder, "adapter_config.json", &config);
  if (status == RDNA_OK) status = map_file(folder, "adapter_model.safetensors", &weights);
  if (status == RDNA_OK)
    status = rdna__annotate(
        rdna__peft_read((rdna_text){(const char *)config.data, config.size},
                        (rdna_text){(const char *)weights.data, weights.size}, architecture, head_dim, out_file),
        "%s", folder);
  rdna__file_unmap(&config);
  rdna__file_unmap(&weights);
  return status;
}
