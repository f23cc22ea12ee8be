#include "server/model.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/status.h"
#include "model/llm/saved.h"
#include "model/template/conversation.h"

/* Of a file of its own, or the model's. */
static rdna_status open_template(served_model *m, const char *path) {
  rdna_gguf_key key;
  rdna_text text = {"", 0};
  rdna__file file = {0};
  if (path)
    RDNA_TRY(rdna__annotate(rdna__file_map(path, &file), "chat template %s", path));
  else if (!rdna_gguf_find_key(m->file, "tokenizer.chat_template", &key))
    return RDNA_OK;
  else
    RDNA_TRY(rdna_gguf_get_text(m->file, "tokenizer.chat_template", &text));
  if (file.data) text = (rdna_text){(const char *)file.data, file.size};
  m->format = rdna__reply_format_of(text.data, text.size);
  m->knows_developer = memmem(text.data, text.size, "developer", 9) != NULL;
  rdna_status status = path ? rdna_template_compile(text.data, text.size, &m->chat_template)
                            : rdna__compile_model_template(m->file, &m->chat_template);
  rdna__file_unmap(&file);
  return status;
}

/* A count in the file, which is checked where the model is opened; 0 where there is none. */
static int count_of(const rdna_gguf *file, const char *name) {
  rdna_text architecture;
  char key[128];
  uint64_t count;
  if (!rdna_gguf_find_key(file, "general.architecture", NULL) ||
      rdna_gguf_get_text(file, "general.architecture", &architecture) != RDNA_OK)
    return 0;
  snprintf(key, sizeof key, "%.*s.%s", (int)architecture.size, architecture.data, name);
  if (!rdna_gguf_find_key(file, key, NULL) || rdna_gguf_get_u64(file, key, &count) != RDNA_OK) return 0;
  return count < INT_MAX ? (int)count : 0;
}

/* How many of the model's layers the host is to have. */
static int count_layers(served_model *m, const preset *p) {
  m->layers = count_of(m->file, "block_count") - count_of(m->file, "nextn_predict_layers");
  return p->gpu_layers >= 0 && p->gpu_layers < m->layers ? m->layers - p->gpu_layers : 0;
}

/* The tower that sees pictures for it. One that are read in one step must fit in one. */
static rdna_status open_vision(served_model *m, const preset *p, rdna_device *device) {
  RDNA_TRY(rdna_gguf_open(p->vision_path, &m->vision_file));
  RDNA_TRY(rdna_vision_open(device, m->vision_file, &m->vision));
  RDNA_TRY(rdna_vision_check(m->vision, m->file));
  int tokens = rdna_vision_get_info(m->vision)->most_tokens;
  if (!rdna_llm_get_info(m->llm)->whole_pictures || tokens <= p->scheduler.batch) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "pictures have %d tokens, which are read in one step, and steps have %d (--batch)", tokens,
                    p->scheduler.batch);
}

rdna_status served_model_open(served_model *m, const preset *p, rdna_device *device,
                              void (*progress)(void *data, double share), void *progress_data) {
  rdna_llm_open_options options = {RDNA_LLM_OPEN_OPTIONS_INIT, .progress = progress, .progress_data = progress_data};
  snprintf(m->name, sizeof m->name, "%s", p->name);
  m->opened = (int64_t)time(NULL);
  if (stat(p->path, &m->as_opened) == 0) m->bytes = (uint64_t)m->as_opened.st_size;
  RDNA_TRY(rdna_gguf_open(p->path, &m->file));
  m->sum = rdna__llm_saved_model(m->file);
  RDNA_TRY(rdna_tokenizer_open(m->file, &m->tokenizer));
  RDNA_TRY(open_template(m, p->template_path));
  RDNA_TRY(judging_open(m->file, m->tokenizer, &m->judging));
  RDNA_TRY(grammars_create(m->tokenizer, &m->grammars));
  options.host_layers = count_layers(m, p);
  RDNA_TRY(rdna_llm_open_with(device, m->file, &options, &m->llm));
  if (p->vision_path) RDNA_TRY(rdna__annotate(open_vision(m, p, device), "%s", p->vision_path));
  for (int i = 0; i < p->adapter_count; i++) {
    RDNA_TRY(rdna_llm_adapter_open(m->llm, p->adapters[i].path, &m->adapters[i]));
    m->adapter_count++;
  }
  return RDNA_OK;
}

bool served_model_changed(const served_model *m, const char *path) {
  struct stat now;
  const struct stat *then = &m->as_opened;
  if (stat(path, &now) != 0 || now.st_ino != then->st_ino || now.st_dev != then->st_dev) return false;
  return now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != then->st_mtim.tv_nsec;
}

void served_model_close(served_model *m) {
  for (int i = 0; i < m->adapter_count; i++) rdna_llm_adapter_release(m->adapters[i]);
  rdna_llm_release(m->llm);
  rdna_vision_release(m->vision);
  rdna_gguf_close(m->vision_file);
  grammars_release(m->grammars);
  rdna_template_release(m->chat_template);
  rdna_tokenizer_close(m->tokenizer);
  rdna_gguf_close(m->file);
  *m = (served_model){0};
}

/* Of encoders, and of models that judge texts and do not say it otherwise. */
static rdna_llm_pooling pooling_of(const rdna_llm_info *info) {
  return info->pooling == RDNA_LLM_POOLING_UNSAID && info->labels > 0 ? RDNA_LLM_POOLING_RANK : info->pooling;
}

static bool can_embed(const served_model *m, problem *p) {
  const rdna_llm_info *info = rdna_llm_get_info(m->llm);
  switch (pooling_of(info)) {
    case RDNA_LLM_POOLING_UNSAID:
      return refuse(p, 400, NULL, "model",
                    "the model '%s' gives no vectors: its file does not say how its states become one "
                    "(%s.pooling_type)",
                    m->name, info->architecture);
    case RDNA_LLM_POOLING_NONE:
      return refuse(p, 400, NULL, "model", "the model '%s' gives a vector for each token, and none for a text",
                    m->name);
    case RDNA_LLM_POOLING_RANK:
      return refuse(p, 400, NULL, "model", "the model '%s' judges texts and gives no vectors (/v1/rerank)", m->name);
    default:
      return true;
  }
}

bool served_model_can(const served_model *m, model_work work, problem *p) {
  const rdna_llm_info *info = rdna_llm_get_info(m->llm);
  bool judges = pooling_of(info) == RDNA_LLM_POOLING_RANK;
  switch (work) {
    case WORK_WRITES:
      if (!info->encoder) return true;
      return refuse(p, 400, NULL, "model", "the model '%s' is an encoder and writes nothing; %s", m->name,
                    judges ? "it judges texts (/v1/rerank)" : "it gives vectors of texts (/v1/embeddings)");
    case WORK_EMBEDS:
      return can_embed(m, p);
    case WORK_RANKS:
      if (judges && info->encoder && info->labels == 1) return true;
      if (judges && m->judging.middle.data && info->labels == 2) return true;
      return refuse(p, 400, NULL, "model", "the model '%s' does not rank texts: %s", m->name,
                    judges ? "that takes an encoder with one label, or a language model with two and a template "
                             "'rerank'"
                           : "it is none that judges pairs of them");
    default:
      return true;
  }
}

/* What the template is given; NULL with a problem. */
static json_t *make_variables(const served_model *m, json_t *messages, const json_t *extra, problem *p) {
  if (!m->chat_template) {
    refuse(p, 400, NULL, "messages",
           "the model '%s' has no chat template, so that messages mean nothing to it; continue a text instead "
           "(/v1/completions)",
           m->name);
    return NULL;
  }
  json_t *variables = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
  if (variables && extra) json_object_update_missing(variables, (json_t *)extra);
  rdna_status status = variables ? rdna__set_special_tokens(variables, m->tokenizer)
                                 : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the messages");
  if (status == RDNA_OK) return variables;
  json_decref(variables);
  refuse_by_status(p, status, "messages");
  return NULL;
}

bool render_chat(const served_model *m, json_t *messages, const json_t *extra, char **out_text, size_t *out_size,
                 problem *p) {
  json_t *variables = make_variables(m, messages, extra, p);
  if (!variables) return false;
  rdna_status status = rdna__render_messages(m->chat_template, variables, out_text, out_size);
  json_decref(variables);
  return status == RDNA_OK || refuse_by_status(p, status, "messages");
}

bool encode_chat(const served_model *m, const char *text, size_t size, rdna_tokens *tokens, problem *p) {
  rdna_status status = rdna_tokenizer_encode(m->tokenizer, text, size, RDNA_ENCODE_PARSE_SPECIAL, tokens);
  if (status != RDNA_OK) return refuse_by_status(p, status, "messages");
  return tokens->count > 0 ||
         refuse(p, 400, NULL, "messages", "the model's chat template makes nothing of these messages");
}

bool encode_text(const served_model *m, const char *text, size_t size, rdna_tokens *tokens, problem *p) {
  rdna_status status = rdna_tokenizer_encode(m->tokenizer, text, size, RDNA_ENCODE_ADD_SPECIAL, tokens);
  if (status != RDNA_OK) return refuse_by_status(p, status, "prompt");
  if (tokens->count == 0)
    return refuse(p, 400, NULL, "prompt", "the prompt is empty, and this model has no token to begin with");
  return true;
}
