/* Files that have them, as safetensors:
 *
 *     "emb_params" (n, width)                       AUTOMATIC1111's, of Stable Diffusion 1 and 2; the file's name is
 * the word
 *     "<word>" (width) or (n, width), no other      diffusers'
 *     "clip_l" (n, width), "clip_g" (n, width)      of both encoders of XL; the file's name is the word */
#include "model/image/inversion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { MOST_FILES = 64, MOST_VECTORS = 1024, MOST_NAME = 256 };

/* ---- files ---- */

static rdna_status check_tensor(const rdna__safetensor *t, int *out_count, int *out_width) {
  if (t->dtype != RDNA_F32 && t->dtype != RDNA_F16 && t->dtype != RDNA_BF16)
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.120s' is of type %s; F32, F16 and BF16 are read", t->name, t->type);
  int64_t count = t->rank == 2 ? t->shape[0] : 1, width = t->rank ? t->shape[t->rank - 1] : 0;
  if (t->rank < 1 || t->rank > 2 || count < 1 || count > MOST_VECTORS || width < 1 || width > 1 << 14)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%.120s' is no row of up to %d vectors of a word", t->name, MOST_VECTORS);
  *out_count = (int)count;
  *out_width = (int)width;
  return RDNA_OK;
}

static rdna_status take(const rdna__safetensor *t, int encoder, rdna__inversion *out) {
  int count = 0;
  RDNA_TRY(check_tensor(t, &count, &out->of[encoder].width));
  if (out->count && count != out->count)
    return rdna__fail(RDNA_BAD_DATA, "it has %d vectors of a word for one text encoder and %d for the other",
                      out->count, count);
  out->count = count;
  out->of[encoder].tensor = t;
  return RDNA_OK;
}

rdna_status rdna__inversion_read(const rdna__safetensors *file, int encoders, rdna__inversion *out,
                                 const char **out_name) {
  const rdna__safetensor *l = rdna__safetensors_find(file, "clip_l"), *g = rdna__safetensors_find(file, "clip_g");
  size_t tensors = rdna__safetensors_count(file);
  *out_name = NULL;
  if (l && g && tensors == 2) {
    if (encoders < 2)
      return rdna__fail(RDNA_BAD_DATA, "it has vectors for two text encoders, as XL has them, and the model has one");
    RDNA_TRY(take(l, 0, out));
    return take(g, 1, out);
  }
  if (tensors != 1)
    return rdna__fail(RDNA_UNSUPPORTED, "it has %zu tensors; textual inversion has one, or 'clip_l' and 'clip_g'",
                      tensors);
  const rdna__safetensor *only = rdna__safetensors_at(file, 0);
  if (encoders > 1)
    return rdna__fail(RDNA_BAD_DATA,
                      "it has '%.120s' for one text encoder, and the model has two, whose vectors are 'clip_l' and "
                      "'clip_g'",
                      only->name);
  if (l || g)
    return rdna__fail(RDNA_BAD_DATA, "it has '%s' alone, and not the other of XL's text encoders", only->name);
  if (strcmp(only->name, "emb_params") != 0) *out_name = only->name;
  return take(only, 0, out);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* |given|, or what the file says, or its path's name up to the point. */
static rdna_status name_it(const char *given, const char *said, const char *path, rdna__inversion *out) {
  const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path, *point = strrchr(stem, '.');
  const char *name = given ? given : said ? said : stem;
  size_t size = name == stem && point && point > stem ? (size_t)(point - stem) : strlen(name);
  while (size && is_space(*name)) name++, size--;
  while (size && is_space(name[size - 1])) size--;
  if (size < 1 || size > MOST_NAME)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the word that it stands for has %zu bytes; 1 to %d may be", size,
                      MOST_NAME);
  out->name = strndup(name, size);
  return out->name ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a word");
}

static rdna_status open_one(const rdna_image_embedding *given, int encoders, rdna__inversion *out) {
  const char *said, *end = strrchr(given->path, '.');
  if (end && (strcmp(end, ".pt") == 0 || strcmp(end, ".bin") == 0))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "it is a program of Python's (pickle), which is not run; its safetensors are read");
  out->path = strdup(given->path);
  if (!out->path) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a path");
  out->chosen = given->name != NULL;
  RDNA_TRY(rdna__safetensors_open_file(given->path, &out->file));
  RDNA_TRY(rdna__inversion_read(out->file, encoders, out, &said));
  return name_it(given->name, said, given->path, out);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool same(const char *a, const char *b, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

rdna_status rdna__inversions_open(const rdna_image_embedding *given, int count, int encoders, rdna__inversions **out) {
  *out = NULL;
  if (count == 0) return RDNA_OK;
  if (count < 0 || count > MOST_FILES || !given)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d files of words; up to %d may be", count, MOST_FILES);
  rdna__inversions *v = calloc(1, sizeof *v);
  if (v) v->items = calloc((size_t)count, sizeof *v->items);
  rdna_status status = v && v->items ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for words");
  for (int i = 0; i < count && status == RDNA_OK; i++) {
    rdna__inversion *one = &v->items[v->count++];
    if (!given[i].path) status = rdna__fail(RDNA_INVALID_ARGUMENT, "file %d of words has no path", i);
    if (status == RDNA_OK) status = rdna__annotate(open_one(&given[i], encoders, one), "%s", given[i].path);
    for (int k = 0; k < i && status == RDNA_OK; k++)
      if (strlen(v->items[k].name) == strlen(one->name) && same(v->items[k].name, one->name, strlen(one->name)))
        status = rdna__fail(RDNA_BAD_DATA, "%s and %s both stand for '%.80s'", v->items[k].path, one->path, one->name);
  }
  if (status == RDNA_OK)
    *out = v;
  else
    rdna__inversions_close(v);
  return status;
}

void rdna__inversions_close(rdna__inversions *v) {
  if (!v) return;
  for (int i = 0; i < v->count; i++) {
    rdna__safetensors_close(v->items[i].file);
    free(v->items[i].name);
    free(v->items[i].path);
  }
  free(v->items);
  free(v);
}

/* ---- texts ---- */

static bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

/* No letter or digit of the word has another beside it: it is not a part of a longer one. */
static bool stands(const char *text, size_t size, size_t at, size_t length) {
  if (at && is_word(text[at - 1]) && is_word(text[at])) return false;
  return at + length == size || !is_word(text[at + length - 1]) || !is_word(text[at + length]);
}

size_t rdna__inversions_find(const rdna__inversions *v, const char *text, size_t size, int *out_which) {
  size_t longest = 0;
  for (size_t at = 0; v && at < size; at++) {
    for (int i = 0; i < v->count; i++) {
      size_t length = strlen(v->items[i].name);
      if (length <= longest || length > size - at) continue;
      if (!same(text + at, v->items[i].name, length) || !stands(text, size, at, length)) continue;
      longest = length;
      *out_which = i;
    }
    if (longest) return at;
  }
  return size;
}
