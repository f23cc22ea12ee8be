/* Texts of a request through the model's encoders. Those of XL stand side by side in a token's state, and the vector is
 * the last one's:
 *
 *     states   | negative: | of encoder 0 | of encoder 1 |  for each token
 *              | prompt:   |      …       |      …       |                   */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/pipeline.h"

enum { ENDS = 2 }; /* tokens that begin and end a text */

/* ids of |count| texts, a NULL one like "". */
static rdna_status read_texts(const rdna_image_text_encoder *e, const char *const *texts, int count, int32_t *ids) {
  int positions = rdna_image_text_encoder_get_info(e)->positions;
  for (int i = 0; i < count; i++) {
    const char *text = texts[i] ? texts[i] : "";
    RDNA_TRY(rdna_image_text_encoder_tokens(e, text, strlen(text), ids + (ptrdiff_t)i * positions, NULL));
  }
  return RDNA_OK;
}

/* Encoder |which|'s states go to |t->states| from value |at| of each token on. */
static rdna_status encode_by(rdna_image_model *m, int which, int skip, const char *const *texts, int at,
                             rdna__image_texts *t) {
  rdna_image_text_encoder *e = m->encoder[which];
  const rdna_image_text_encoder_info *info = rdna_image_text_encoder_get_info(e);
  size_t tokens = (size_t)t->count * (size_t)t->tokens, width = (size_t)info->width;
  bool several = m->encoders > 1, last = which + 1 == m->encoders;
  int32_t *ids = malloc(tokens * sizeof *ids);
  float *states = malloc(tokens * width * sizeof *states);
  rdna_status status =
      ids && states ? read_texts(e, texts, t->count, ids) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for texts");
  if (status == RDNA_OK)
    status = rdna_image_text_encoder_encode(e, ids, t->count, skip + several, !several, states,
                                            several && last ? t->pooled : NULL);
  for (size_t i = 0; status == RDNA_OK && i < tokens; i++)
    memcpy(t->states + i * (size_t)t->width + at, states + i * width, width * sizeof *states);
  free(ids);
  free(states);
  return status;
}

/* Sizes of what encoders make together. */
static rdna_status measure(const rdna_image_model *m, rdna__image_texts *t) {
  for (int i = 0; i < m->encoders; i++) {
    const rdna_image_text_encoder_info *info = rdna_image_text_encoder_get_info(m->encoder[i]);
    if (i && info->positions != t->tokens)
      return rdna__fail(RDNA_BAD_DATA, "%s: one text encoder has %d positions and the other %d", m->folder, t->tokens,
                        info->positions);
    t->tokens = info->positions;
    t->width += info->width;
    if (m->encoders > 1) t->pooled_width = info->pooled;
  }
  size_t texts = (size_t)t->count, states = texts * (size_t)t->tokens * (size_t)t->width;
  t->states = malloc(states * sizeof *t->states);
  t->pooled = malloc((texts * (size_t)t->pooled_width + 1) * sizeof *t->pooled);
  return t->states && t->pooled ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of texts");
}

rdna_status rdna__pipeline_encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *const both[] = {r->negative, r->prompt};
  *t = (rdna__image_texts){.count = guided ? 2 : 1};
  for (int i = 0; i < m->encoders; i++) RDNA_TRY(rdna__pipeline_need_encoder(m, i));
  RDNA_TRY(measure(m, t));
  for (int i = 0, at = 0; i < m->encoders; i++) {
    RDNA_TRY(encode_by(m, i, r->skip, guided ? both : both + 1, at, t));
    at += rdna_image_text_encoder_get_info(m->encoder[i])->width;
  }
  if (!guided || r->negative || !m->zeros) return RDNA_OK;
  memset(t->states, 0, (size_t)t->tokens * (size_t)t->width * sizeof *t->states);
  memset(t->pooled, 0, (size_t)t->pooled_width * sizeof *t->pooled);
  return RDNA_OK;
}

void rdna__image_texts_deinit(rdna__image_texts *t) {
  free(t->states);
  free(t->pooled);
  *t = (rdna__image_texts){0};
}

rdna_status rdna_image_model_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  if (!m || !text || !out_count || !out_read)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_model_tokens needs a model, a text and two places");
  if (m->flows) return rdna__flux_tokens(m, text, out_count, out_read);
  *out_count = 0;
  *out_read = SIZE_MAX;
  for (int i = 0; i < m->encoders; i++) {
    size_t count;
    RDNA_TRY(rdna__pipeline_need_encoder(m, i));
    size_t positions = (size_t)rdna_image_text_encoder_get_info(m->encoder[i])->positions;
    int32_t *ids = malloc(positions * sizeof *ids);
    if (!ids) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for tokens");
    rdna_status status = rdna_image_text_encoder_tokens(m->encoder[i], text, strlen(text), ids, &count);
    free(ids);
    if (status != RDNA_OK) return status;
    if (count > *out_count) *out_count = count;
    if (positions - ENDS < *out_read) *out_read = positions - ENDS;
  }
  if (*out_count < *out_read) *out_read = *out_count;
  return RDNA_OK;
}
