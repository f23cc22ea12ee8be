/* Keys of a model's file, with the architecture's name before them. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "model/weights/weights.h"

enum { KEY_NAME = 128 };

static void key_name(const rdna__weights *w, const char *key, char name[KEY_NAME]) {
  snprintf(name, KEY_NAME, "%s.%s", w->architecture, key);
}

bool rdna__text_is(rdna_text text, const char *word) {
  return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* 0 when the key is missing. */
static rdna_status read_count(const rdna__weights *w, const char *name, uint64_t *out) {
  rdna_gguf_key found;
  *out = 0;
  if (!rdna_gguf_find_key(w->file, name, &found)) return RDNA_OK;
  /* some files give one number a layer */
  if (found.type == RDNA_GGUF_TYPE_ARRAY)
    return rdna__fail(RDNA_UNSUPPORTED, "%s differs between layers, which this library does not run", name);
  RDNA_TRY(rdna_gguf_get_u64(w->file, name, out));
  if (*out > RDNA__LARGEST_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "%s is %llu; at most %d makes sense", name, (unsigned long long)*out,
                      RDNA__LARGEST_COUNT);
  return RDNA_OK;
}

rdna_status rdna__key_count(const rdna__weights *w, const char *key, int initial, int *out) {
  char name[KEY_NAME];
  uint64_t value;
  key_name(w, key, name);
  RDNA_TRY(read_count(w, name, &value));
  if (value == 0) value = (uint64_t)initial;
  if (value == 0) return rdna__fail(RDNA_BAD_DATA, "the model file has no key '%s'", name);
  *out = (int)value;
  return RDNA_OK;
}

rdna_status rdna__key_count_or_none(const rdna__weights *w, const char *key, int *out) {
  char name[KEY_NAME];
  uint64_t value;
  key_name(w, key, name);
  RDNA_TRY(read_count(w, name, &value));
  *out = (int)value;
  return RDNA_OK;
}

rdna_status rdna__key_number(const rdna__weights *w, const char *key, double initial, double *out) {
  char name[KEY_NAME];
  double value = 0;
  key_name(w, key, name);
  if (rdna_gguf_find_key(w->file, name, NULL)) RDNA_TRY(rdna_gguf_get_f64(w->file, name, &value));
  if (value == 0) value = initial;
  if (!(value > 0 && value <= FLT_MAX))
    return rdna__fail(RDNA_BAD_DATA, "%s is %g; it must be a positive number", name, value);
  *out = value;
  return RDNA_OK;
}

rdna_status rdna__key_text(const rdna__weights *w, const char *key, rdna_text *inout) {
  char name[KEY_NAME];
  key_name(w, key, name);
  return rdna_gguf_find_key(w->file, name, NULL) ? rdna_gguf_get_text(w->file, name, inout) : RDNA_OK;
}

rdna_status rdna__key_number_or_none(const rdna__weights *w, const char *key, float *out) {
  const double none = 0x1p-149; /* no file means it */
  double value;
  RDNA_TRY(rdna__key_number(w, key, none, &value));
  *out = value == none ? 0 : (float)value;
  return RDNA_OK;
}

rdna_status rdna__key_flag(const rdna__weights *w, const char *key, bool *inout) {
  char name[KEY_NAME];
  key_name(w, key, name);
  return rdna_gguf_find_key(w->file, name, NULL) ? rdna_gguf_get_bool(w->file, name, inout) : RDNA_OK;
}

bool rdna__key_is_array(const rdna__weights *w, const char *key) {
  char name[KEY_NAME];
  rdna_gguf_key found;
  key_name(w, key, name);
  return rdna_gguf_find_key(w->file, name, &found) && found.type == RDNA_GGUF_TYPE_ARRAY;
}

/* |count| values of the array |name|, from that of layer |first| on. */
static rdna_status read_layers(const rdna__weights *w, const char *name, int first, int count, int32_t *out) {
  rdna_gguf_key key;
  if (rdna_gguf_find_key(w->file, name, &key) && key.count >= (uint64_t)first + (uint64_t)count)
    return rdna_gguf_read_i32(w->file, name, (uint64_t)first, (size_t)count, out);
  return rdna__fail(RDNA_BAD_DATA, "%s has fewer values than the model has layers", name);
}

rdna_status rdna__key_array(const rdna__weights *w, const char *key, int layers, int32_t *out) {
  char name[KEY_NAME];
  key_name(w, key, name);
  return read_layers(w, name, 0, layers, out);
}

rdna_status rdna__key_count_of_layer(const rdna__weights *w, const char *key, int layer, int initial, int *out) {
  char name[KEY_NAME];
  int32_t value;
  if (!rdna__key_is_array(w, key)) return rdna__key_count(w, key, initial, out);
  key_name(w, key, name);
  RDNA_TRY(read_layers(w, name, layer, 1, &value));
  if (value == 0) value = initial; /* as LFM2's layers without attention have it */
  if (value < 1 || value > RDNA__LARGEST_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "%s is %d in layer %d; at least 1 and at most %d makes sense", name, (int)value,
                      layer, RDNA__LARGEST_COUNT);
  *out = value;
  return RDNA_OK;
}
