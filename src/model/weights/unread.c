/* Tensors of a model's file that nobody asks for: a bias or a norm of a variant that this library does not know would
 * otherwise be left out without a word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/weights/weights.h"

rdna_status rdna__mark_read(const rdna__weights *w, const char *name) {
  bool inserted;
  return rdna__strmap_insert(w->read, name, strlen(name), 0, &inserted);
}

rdna_status rdna__leave_unread(const rdna__weights *w, int layer, const char *name) {
  char full[96];
  rdna_gguf_tensor tensor;
  snprintf(full, sizeof full, "blk.%d.%s", layer, name);
  if (!rdna_gguf_has_tensor(w->file, full)) return RDNA_OK;
  RDNA_TRY(rdna_gguf_get_tensor(w->file, full, &tensor));
  return rdna__mark_read(w, tensor.name); /* the file's own copy, which lives on */
}

static bool begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

static bool ends(const char *name, const char *with) {
  size_t length = strlen(name), end = strlen(with);
  return length >= end && strcmp(name + length - end, with) == 0;
}

/* What the model is the same without, or its texts. */
static bool is_needless(const char *name, int layers, bool writes) {
  static const char *const prefixes[] = {
      "v.", "mm.", "a.", /* what sees pictures and hears */
      "cls."             /* what ranks or classifies a whole text */
  };
  static const char *const suffixes[] = {
      ".input_scale",         /* for products of quantized activations */
      ".attn_rot_embd.weight" /* angles, which follow from the keys */
  };
  long long layer;
  for (size_t i = 0; writes && i < sizeof prefixes / sizeof *prefixes; i++)
    if (begins(name, prefixes[i])) return true;
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
    if (ends(name, suffixes[i])) return true;
  return sscanf(name, "blk.%lld.", &layer) == 1 && layer >= layers; /* they foretell tokens further ahead */
}

rdna_status rdna__check_all_read(const rdna__weights *w, int layers, bool writes) {
  int unread = 0;
  const char *first = NULL;
  for (size_t i = 0; i < rdna_gguf_tensor_count(w->file); i++) {
    rdna_gguf_tensor tensor;
    uint32_t value;
    RDNA_TRY(rdna_gguf_tensor_at(w->file, i, &tensor));
    if (rdna__strmap_find(w->read, tensor.name, strlen(tensor.name), &value) ||
        is_needless(tensor.name, layers, writes))
      continue;
    if (unread++ == 0) first = tensor.name;
  }
  if (unread == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "the model file has %d tensor%s that this library's %s has no use for, '%.80s' for one; without "
                    "what they hold it would be another model",
                    unread, unread == 1 ? "" : "s", w->architecture, first);
}
