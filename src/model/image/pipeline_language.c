/* Texts of families that read them by a language model, in the folder's "text_encoder" and "tokenizer". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/pipeline.h"

enum { PATH_BYTES = 4096 };

typedef struct paths {
  char encoder[PATH_BYTES], tokenizer[PATH_BYTES], processor[PATH_BYTES];
} paths;

static rdna_status paths_of(const rdna_image_model *m, paths *out) {
  if (snprintf(out->encoder, PATH_BYTES, "%s/text_encoder", m->folder) < PATH_BYTES &&
      snprintf(out->tokenizer, PATH_BYTES, "%s/tokenizer", m->folder) < PATH_BYTES &&
      snprintf(out->processor, PATH_BYTES, "%s/processor", m->folder) < PATH_BYTES)
    return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of text_encoder is too long");
}

static rdna_status need_language(rdna_image_model *m, const rdna__language_reading *reading) {
  paths p;
  if (m->language) return RDNA_OK;
  RDNA_TRY(paths_of(m, &p));
  return rdna__language_create(m->device, p.encoder, p.tokenizer, p.processor, reading, m->dtype, &m->language);
}

rdna_status rdna__language_count(const rdna_image_model *m, const rdna__language_reading *reading, const char *text,
                                 size_t *out_count, size_t *out_read) {
  paths p;
  RDNA_TRY(paths_of(m, &p));
  return rdna__language_tokens(p.encoder, p.tokenizer, reading, text, out_count, out_read);
}

rdna_status rdna__language_texts(rdna_image_model *m, const rdna__language_reading *reading, const char *const *texts,
                                 int count, const rdna__language_picture *pictures, int picture_count,
                                 rdna__image_texts *t) {
  int room;
  *t = (rdna__image_texts){.count = count};
  RDNA_TRY(need_language(m, reading));
  RDNA_TRY(rdna__language_room(m->language, pictures, picture_count, &room));
  t->width = rdna__language_get_info(m->language)->width;
  size_t most = (size_t)room, width = (size_t)t->width;
  t->states = calloc((size_t)count * most * width, sizeof *t->states);
  if (!t->states) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of texts");
  for (int i = 0; i < count; i++) {
    RDNA_TRY(rdna__language_encode(m->language, texts[i], pictures, picture_count, t->states + (size_t)i * most * width,
                                   &t->lengths[i]));
    if (t->lengths[i] > t->tokens) t->tokens = t->lengths[i];
  }
  for (size_t i = 1; i < (size_t)count; i++) /* as many tokens as the longest has */
    memmove(t->states + i * (size_t)t->tokens * width, t->states + i * most * width,
            (size_t)t->tokens * width * sizeof *t->states);
  return RDNA_OK;
}
