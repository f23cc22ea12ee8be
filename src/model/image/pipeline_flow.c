/* What families of models that flow have in common: the table of them, T5, their schedule, and parts that leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/component.h"
#include "model/image/flow.h"
#include "model/image/flux.h"
#include "model/image/pipeline.h"
#include "model/image/t5_tokenizer.h"

enum { PATH_BYTES = 4096 };

static const rdna__image_family *const families[] = {&rdna__flux_family, &rdna__zimage_family, &rdna__qwen_family,
                                                     &rdna__flux2_family, &rdna__sd3_family};
enum { FAMILIES = sizeof families / sizeof *families };

const rdna__image_family *rdna__image_family_find(const char *pipeline) {
  for (size_t i = 0; i < FAMILIES; i++)
    for (const char *const *name = families[i]->pipelines; *name; name++)
      if (strcmp(pipeline, *name) == 0) return families[i];
  return NULL;
}

void rdna__image_family_names(char *out, size_t size) {
  size_t used = 0;
  for (size_t i = 0; i < FAMILIES && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", families[i]->pipelines[0]);
}

/* ---- parts ---- */

rdna_status rdna__flow_open_settings(const rdna_image_model *m, const char *file, const char *name, json_t **out) {
  char path[PATH_BYTES];
  rdna__component c;
  int length =
      file ? snprintf(path, sizeof path, "%s/%s", file, name) : snprintf(path, sizeof path, "%s/config.json", name);
  if (length >= (int)sizeof path) return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of the %s is too long", name);
  if (!file) return rdna__pipeline_open_settings(m->folder, path, out, NULL);
  if (!rdna__component_is_file(file)) return rdna__fail(RDNA_NOT_FOUND, "there is no file %s", file);
  RDNA_TRY(rdna__component_open(path, "", NULL, &c));
  *out = json_incref(c.settings);
  rdna__component_close(&c);
  return RDNA_OK;
}

static rdna_status read_vocabulary(const rdna_image_model *m, const char *encoder, int *out) {
  json_t *json;
  RDNA_TRY(rdna__flow_open_settings(m, m->t5_file, encoder, &json));
  rdna_status status = rdna__setting_whole(json, "vocab_size", 0, 1, 1 << 24, out);
  json_decref(json);
  return rdna__annotate(status, "T5 of %s", m->t5_file ? m->t5_file : m->folder);
}

static rdna_status tokenizer_path(const rdna_image_model *m, const char *tokenizer, char *out) {
  if (snprintf(out, PATH_BYTES, "%s/%s", m->folder, tokenizer) < PATH_BYTES) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", tokenizer);
}

rdna_status rdna__flow_need_t5(rdna_image_model *m, const char *encoder, const char *tokenizer) {
  if (m->t5) return RDNA_OK;
  char path[PATH_BYTES];
  if (!m->t5_file)
    return rdna__t5_create(m->device, m->folder, encoder, tokenizer, m->dtype, m->weights, m->loras, &m->t5);
  if (!rdna__component_is_file(m->t5_file)) return rdna__fail(RDNA_NOT_FOUND, "there is no file %s for T5", m->t5_file);
  RDNA_TRY(tokenizer_path(m, tokenizer, path));
  return rdna__t5_create(m->device, m->t5_file, encoder, path, m->dtype, m->weights, m->loras, &m->t5);
}

/* The tokenizer alone: T5 is the largest of what is not yet needed. */
rdna_status rdna__flow_t5_tokens(const rdna_image_model *m, const char *encoder, const char *tokenizer,
                                 const char *text, int most, size_t *out_count, size_t *out_read) {
  char path[PATH_BYTES];
  rdna__t5_tokenizer t;
  rdna_tokens tokens = {0};
  int vocabulary;
  RDNA_TRY(tokenizer_path(m, tokenizer, path));
  RDNA_TRY(read_vocabulary(m, encoder, &vocabulary));
  RDNA_TRY(rdna__t5_tokenizer_open(path, vocabulary, &t));
  rdna_status status = rdna_tokenizer_encode(t.tokenizer, text, strlen(text), RDNA_ENCODE_PARSE_SPECIAL, &tokens);
  size_t room = (size_t)most - 1;
  *out_count = tokens.count;
  *out_read = tokens.count < room ? tokens.count : room;
  rdna_tokens_deinit(&tokens);
  rdna__t5_tokenizer_close(&t);
  return status;
}

void rdna__flow_drop_encoders(rdna_image_model *m) {
  if (m->t5) rdna__pipeline_note(m, "T5", rdna_image_t5_get_info(m->t5)->weights_bytes);
  rdna_image_t5_release(m->t5);
  if (m->t5) rdna__pipeline_left(m);
  m->t5 = NULL;
  if (m->language) rdna__pipeline_note(m, "text encoder", rdna__language_get_info(m->language)->weights_bytes);
  rdna__language_release(m->language);
  if (m->language) rdna__pipeline_left(m);
  m->language = NULL;
}

void rdna__flow_drop_network(rdna_image_model *m) {
  if (!m->network) return;
  rdna__pipeline_note(m, "transformer", m->family->weights_of(m->network) + rdna__pipeline_preview_bytes(m));
  m->family->release(m->network);
  m->network = NULL;
  rdna__pipeline_left(m);
}

/* ---- steps ---- */

rdna_status rdna__flow_schedule(const rdna_image_model *m, const rdna_image_request *r, rdna_image_flow **out) {
  if (strcmp(r->sampler, "euler") != 0 || strcmp(r->spacing, "simple") != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "'%.40s' with '%.40s' noise levels; %s is sampled by euler with simple ones", r->sampler,
                      r->spacing, m->info.family);
  int tokens = (r->width / m->info.multiple) * (r->height / m->info.multiple);
  return rdna__flow_create(m->schedule, r->steps, tokens, m->family->levels, out);
}

int rdna__flow_first(const rdna_image_model *m, const rdna_image_request *r) {
  return r->init && !m->looks ? (int)(r->steps - r->steps * r->strength) : 0;
}
