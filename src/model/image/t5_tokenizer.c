#include "model/image/t5_tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "model/gguf/gguf.h"
#include "model/weights/hf.h"

enum { PATH_BYTES = 4096 };

typedef struct files {
  rdna__file whole, pieces, settings; /* tokenizer.json, spiece.model, tokenizer_config.json */
  json_t *tokenizer, *config;
} files;

static rdna_status map(const char *folder, const char *name, bool needed, rdna__file *out) {
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", name);
  rdna_status status = rdna__file_map(path, out);
  return status == RDNA_NOT_FOUND && !needed ? RDNA_OK : rdna__annotate(status, "%s", path);
}

static rdna_status parse(const rdna__file *file, const char *name, json_t **out) {
  json_error_t error;
  if (!file->data) return RDNA_OK;
  /* model_max_length may be 1e30, in digits; the vocabulary's numbers are whole */
  size_t flags = strcmp(name, "tokenizer_config.json") == 0 ? JSON_DECODE_INT_AS_REAL : 0;
  *out = json_loadb((const char *)file->data, file->size, flags, &error);
  if (json_is_object(*out)) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "%s holds no JSON object%s%s", name, *out ? "" : ": ", *out ? "" : error.text);
}

/* tokenizer.json says more than spiece.model: the tokens that were added. */
static rdna_status read_files(const char *folder, files *f) {
  RDNA_TRY(map(folder, "tokenizer_config.json", false, &f->settings));
  RDNA_TRY(map(folder, "tokenizer.json", false, &f->whole));
  if (!f->whole.data) RDNA_TRY(map(folder, "spiece.model", true, &f->pieces));
  RDNA_TRY(rdna__annotate(parse(&f->whole, "tokenizer.json", &f->tokenizer), "%s", folder));
  return rdna__annotate(parse(&f->settings, "tokenizer_config.json", &f->config), "%s", folder);
}

static void release_writer(void *writer) { rdna_gguf_writer_release(writer); }

static rdna_status write(const files *f, int vocabulary, rdna__t5_tokenizer *t) {
  const rdna__hf_tokenizer from = {.tokenizer = f->tokenizer,
                                   .tokenizer_config = f->config,
                                   .spm = {(const char *)f->pieces.data, f->pieces.size},
                                   .vocabulary = vocabulary};
  rdna_gguf_writer *writer = NULL;
  rdna_status status = rdna_gguf_writer_create(&writer);
  if (status == RDNA_OK) status = rdna__hf_tokenizer_put(&from, writer);
  if (status == RDNA_OK) status = rdna__gguf_open_writer(writer, release_writer, writer, &t->file);
  if (status != RDNA_OK) rdna_gguf_writer_release(writer);
  return status;
}

static rdna_status find(const rdna__t5_tokenizer *t, const char *text, int32_t *out) {
  if (rdna_tokenizer_find(t->tokenizer, text, strlen(text), out) == RDNA_OK) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the vocabulary has no token '%s', as T5's has", text);
}

static rdna_status make(const files *f, int vocabulary, rdna__t5_tokenizer *t) {
  RDNA_TRY(write(f, vocabulary, t));
  RDNA_TRY(rdna_tokenizer_open(t->file, &t->tokenizer));
  const char *kind = rdna_tokenizer_get_info(t->tokenizer)->model;
  if (strcmp(kind, "t5") != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "its pieces are cut as '%s' has them, not by SentencePiece's Unigram", kind);
  RDNA_TRY(find(t, "</s>", &t->end));
  RDNA_TRY(find(t, "<pad>", &t->pad));
  size_t count = rdna_tokenizer_get_info(t->tokenizer)->token_count;
  if (count <= (size_t)vocabulary) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "it has %zu tokens, and the text encoder %d", count, vocabulary);
}

rdna_status rdna__t5_tokenizer_open(const char *folder, int vocabulary, rdna__t5_tokenizer *out) {
  files f = {0};
  *out = (rdna__t5_tokenizer){0};
  rdna_status status = read_files(folder, &f);
  if (status == RDNA_OK) status = rdna__annotate(make(&f, vocabulary, out), "%s", folder);
  json_decref(f.tokenizer);
  json_decref(f.config);
  rdna__file_unmap(&f.whole);
  rdna__file_unmap(&f.pieces);
  rdna__file_unmap(&f.settings);
  if (status != RDNA_OK) rdna__t5_tokenizer_close(out);
  return status;
}

void rdna__t5_tokenizer_close(rdna__t5_tokenizer *t) {
  rdna_tokenizer_close(t->tokenizer);
  rdna_gguf_close(t->file);
  *t = (rdna__t5_tokenizer){0};
}
