/* Texts of a request through the model's encoders. Those of XL stand side by side in a token's state, and the vector is
 * the last one's; a refiner has that alone:
 *
 *     states   | negative: | of encoder 0 | of encoder 1 |  for each token
 *              | prompt:   |      …       |      …       |                   */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/pipeline.h"
#include "model/image/prompt.h"

enum { ENDS = 2 }; /* tokens that begin and end a text */

/* Each token's state times its weight, and all so that their mean is what it was. */
static void weigh(const float *weights, size_t tokens, size_t width, float *states) {
  double before = 0, after = 0;
  bool weighed = false;
  for (size_t i = 0; i < tokens; i++) weighed = weighed || weights[i] != 1;
  if (!weighed) return;
  for (size_t k = 0; k < tokens * width; k++) {
    before += (double)states[k];
    states[k] *= weights[k / width];
    after += (double)states[k];
  }
  for (size_t k = 0; after != 0 && k < tokens * width; k++) states[k] = (float)((double)states[k] * (before / after));
}

/* What encoder |which| makes of text |i|'s chunks goes to |t->states| from value |at| of each token on. The text's
 * vector is its first chunk's. */
static rdna_status encode_chunks(rdna_image_model *m, int which, int skip, const rdna__prompt_chunks *chunks, int i,
                                 int at, rdna__image_texts *t) {
  rdna_image_text_encoder *e = m->encoder[which];
  const rdna_image_text_encoder_info *info = rdna_image_text_encoder_get_info(e);
  size_t tokens = (size_t)t->tokens, width = (size_t)info->width, each = (size_t)info->positions;
  size_t vector = (size_t)info->pooled;
  bool several = m->encoders > 1, last = which + 1 == m->encoders;
  float *states = malloc(tokens * width * sizeof *states);
  float *vectors = malloc((size_t)chunks->count * vector * sizeof *vectors);
  rdna_status status = states && vectors ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for texts");
  if (status == RDNA_OK)
    status = rdna_image_text_encoder_encode(e, chunks->ids, chunks->count, skip + several, !several, states,
                                            several && last ? vectors : NULL);
  if (status == RDNA_OK) {
    for (size_t c = 0; c < (size_t)chunks->count; c++)
      weigh(chunks->weights + c * each, each, width, states + c * each * width);
    for (size_t k = 0; k < tokens; k++)
      memcpy(t->states + ((size_t)i * tokens + k) * (size_t)t->width + at, states + k * width, width * sizeof *states);
    if (several && last) memcpy(t->pooled + (size_t)i * vector, vectors, vector * sizeof *vectors);
  }
  free(states);
  free(vectors);
  return status;
}

/* Sizes of what encoders make together, of so many chunks. */
static rdna_status measure(const rdna_image_model *m, int chunks, rdna__image_texts *t) {
  int positions = 0;
  for (int i = m->first_encoder; i < m->encoders; i++) {
    const rdna_image_text_encoder_info *info = rdna_image_text_encoder_get_info(m->encoder[i]);
    if (positions && info->positions != positions)
      return rdna__fail(RDNA_BAD_DATA, "%s: one text encoder has %d positions and the other %d", m->folder, positions,
                        info->positions);
    positions = info->positions;
    t->width += info->width;
    if (m->encoders > 1) t->pooled_width = info->pooled;
  }
  t->tokens = chunks * positions;
  size_t texts = (size_t)t->count, states = texts * (size_t)t->tokens * (size_t)t->width;
  t->states = malloc(states * sizeof *t->states);
  t->pooled = malloc((texts * (size_t)t->pooled_width + 1) * sizeof *t->pooled);
  return t->states && t->pooled ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of texts");
}

typedef struct read_texts {
  rdna__prompt_chunks chunks[RDNA__PIPELINE_ENCODERS][2]; /* of each encoder's texts */
  int most;
} read_texts;

static rdna_status read_all(rdna_image_model *m, const char *const *texts, int count, bool plain, read_texts *out) {
  for (int which = m->first_encoder; which < m->encoders; which++) {
    RDNA_TRY(rdna__pipeline_need_encoder(m, which));
    for (int i = 0; i < count; i++) {
      RDNA_TRY(rdna__prompt_read(m->encoder[which], texts[i] ? texts[i] : "", plain, &out->chunks[which][i]));
      if (out->chunks[which][i].count > out->most) out->most = out->chunks[which][i].count;
    }
  }
  return RDNA_OK;
}

static rdna_status encode_all(rdna_image_model *m, int skip, read_texts *r, rdna__image_texts *t) {
  RDNA_TRY(measure(m, r->most, t));
  for (int which = m->first_encoder, at = 0; which < m->encoders; which++) {
    for (int i = 0; i < t->count; i++) {
      RDNA_TRY(rdna__prompt_extend(m->encoder[which], &r->chunks[which][i], r->most));
      RDNA_TRY(encode_chunks(m, which, skip, &r->chunks[which][i], i, at, t));
    }
    at += rdna_image_text_encoder_get_info(m->encoder[which])->width;
  }
  return RDNA_OK;
}

rdna_status rdna__pipeline_encode(rdna_image_model *m, const rdna_image_request *r, bool guided, rdna__image_texts *t) {
  const char *const both[] = {r->negative, r->prompt};
  read_texts read = {0};
  *t = (rdna__image_texts){.count = guided ? 2 : 1};
  rdna_status status = read_all(m, guided ? both : both + 1, t->count, r->plain, &read);
  if (status == RDNA_OK) status = encode_all(m, r->skip, &read, t);
  for (int i = 0; i < 2 * RDNA__PIPELINE_ENCODERS; i++) rdna__prompt_chunks_deinit(&read.chunks[i / 2][i % 2]);
  if (status != RDNA_OK || !guided || r->negative || !m->zeros) return status;
  memset(t->states, 0, (size_t)t->tokens * (size_t)t->width * sizeof *t->states);
  memset(t->pooled, 0, (size_t)t->pooled_width * sizeof *t->pooled);
  return RDNA_OK;
}

void rdna__image_texts_deinit(rdna__image_texts *t) {
  free(t->states);
  free(t->pooled);
  *t = (rdna__image_texts){0};
}

rdna_status rdna__image_texts_repeat(rdna__image_texts *t) {
  size_t states = (size_t)t->tokens * (size_t)t->width, pooled = (size_t)t->pooled_width, last = (size_t)t->count - 1;
  float *more = realloc(t->states, (last + 2) * states * sizeof *more);
  if (more) t->states = more;
  float *vectors = realloc(t->pooled, (last + 2) * pooled * sizeof *vectors + 1);
  if (vectors) t->pooled = vectors;
  if (!more || !vectors) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the states of texts");
  memcpy(more + (last + 1) * states, more + last * states, states * sizeof *more);
  if (pooled) memcpy(vectors + (last + 1) * pooled, vectors + last * pooled, pooled * sizeof *vectors);
  t->count++;
  return RDNA_OK;
}

rdna_status rdna_image_model_tokens(rdna_image_model *m, const char *text, size_t *out_count, size_t *out_read) {
  if (!m || !text || !out_count || !out_read)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_model_tokens needs a model, a text and two places");
  if (m->family) return m->family->count_tokens(m, text, out_count, out_read);
  *out_count = 0;
  *out_read = SIZE_MAX;
  for (int i = m->first_encoder; i < m->encoders; i++) {
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
