/* Tiny autoencoders in files of their own: diffusers' "encoder.layers.…" and "decoder.layers.…" without their folder,
 * or the decoder alone as its maker saved it ("taesd_decoder.safetensors"), whose layers are called by their numbers:
 *
 *     diffusers    decoder.layers.0  0          the first window
 *                  decoder.layers.2  3.conv.0   … a block
 *                                    0          3 tanh(x / 3), which has no weights                             */
#include <stdio.h>
#include <string.h>

#include "model/image/checkpoint.h"

enum { NAME_BYTES = 96, MOST_LEVELS = 8, MOST_SIZE = 1 << 20 };

/* Size |dimension| of the tensor "|prefix||layer||end|"; 0: there is none. */
static int size_of(const rdna__safetensors *s, const char *prefix, int layer, const char *end, int dimension) {
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s%d%s", prefix, layer, end);
  const rdna__safetensor *t = rdna__safetensors_find(s, name);
  return t && dimension < t->rank && t->shape[dimension] <= MOST_SIZE ? (int)t->shape[dimension] : 0;
}

typedef struct walk {
  int width, levels, blocks[MOST_LEVELS], end; /* the last window's number */
} walk;

/* What layers say, from |at| on, behind the first window. |between|: layers without weights between levels. */
static bool walk_on(const rdna__safetensors *s, const char *prefix, int at, int between, walk *out) {
  for (out->levels = 0; out->levels < MOST_LEVELS;) {
    int count = 0;
    for (; size_of(s, prefix, at, ".conv.0.weight", 0); at++) count++;
    out->blocks[out->levels++] = count;
    out->end = at;
    if (size_of(s, prefix, at, ".bias", 0)) return true; /* windows between levels have none */
    if (!size_of(s, prefix, at + between, ".weight", 0)) return false;
    at += between + 1;
  }
  return false;
}

static json_t *list(const int *values, int count) {
  json_t *array = json_array();
  for (int i = 0; i < count; i++) json_array_append_new(array, json_integer(values[i]));
  return array;
}

/* Sets what is said of a half. */
static void set_half(json_t *json, const char *half, const walk *w) {
  char name[64];
  int widths[MOST_LEVELS];
  for (int i = 0; i < w->levels; i++) widths[i] = w->width;
  snprintf(name, sizeof name, "%s_block_out_channels", half);
  json_object_set_new(json, name, list(widths, w->levels));
  snprintf(name, sizeof name, "num_%s_blocks", half);
  json_object_set_new(json, name, list(w->blocks, w->levels));
}

static rdna_status refuse(const rdna__safetensors *s) {
  if (size_of(s, "", 0, ".weight", 0) && size_of(s, "", 1, ".conv.0.weight", 0))
    return rdna__fail(RDNA_UNSUPPORTED, "it is the encoder of a tiny autoencoder alone; its decoder is asked for");
  if (rdna__safetensors_find(s, "decoder.conv_in.weight"))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "it is no tiny autoencoder but one as models have themselves, by names of diffusers, whose "
                      "settings it does not say; the folder with config.json is asked for");
  return rdna__fail(RDNA_UNSUPPORTED,
                    "it is no tiny autoencoder (TAESD): it has neither 'decoder.layers.0.weight' nor '1.weight' and "
                    "blocks behind it");
}

rdna_status rdna__checkpoint_read_tiny(const rdna__safetensors *s, json_t **out, rdna__checkpoint_part *part) {
  static const char *const prefixes[] = {"decoder.layers.", ""};
  walk decoder = {0}, encoder = {0};
  bool bare = !size_of(s, prefixes[0], 0, ".weight", 0);
  const char *prefix = prefixes[bare];
  int first = bare ? 1 : 0; /* the first window's number */
  decoder.width = size_of(s, prefix, first, ".weight", 0);
  if (!decoder.width || !walk_on(s, prefix, first + 2, 1, &decoder)) return refuse(s);
  encoder.width = size_of(s, "encoder.layers.", 0, ".weight", 0);
  bool encodes = encoder.width && walk_on(s, "encoder.layers.", 1, 0, &encoder);
  *part = (rdna__checkpoint_part){bare ? CHECKPOINT_TINY : CHECKPOINT_DIFFUSERS, "", 0, 0, 0};
  json_t *json =
      json_pack("{s:s, s:i, s:i, s:i}", "_class_name", "AutoencoderTiny", "latent_channels",
                size_of(s, prefix, first, ".weight", 1), "out_channels", size_of(s, prefix, decoder.end, ".bias", 0),
                "in_channels", encodes ? size_of(s, "encoder.layers.", 0, ".weight", 1) : 3);
  if (!json) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings");
  set_half(json, "decoder", &decoder);
  set_half(json, "encoder", encodes ? &encoder : &decoder); /* which is not there, and not loaded */
  *out = json;
  return RDNA_OK;
}
