/* Which network a file has: there are no settings beside its tensors. */
#include <stdio.h>

#include "model/image/upscaler.h"

enum { NAME_BYTES = 64, WINDOW = 3 };

/* The window of 3 x 3 called |name|, or NULL. */
static const rdna__safetensor *window(const rdna__safetensors *tensors, const char *name) {
  const rdna__safetensor *t = rdna__safetensors_find(tensors, name);
  return t && t->rank == 4 && t->shape[2] == WINDOW && t->shape[3] == WINDOW ? t : NULL;
}

static const rdna__safetensor *numbered(const rdna__safetensors *tensors, const char *before, int i,
                                        const char *after) {
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s%d%s", before, i, after);
  return window(tensors, name);
}

static rdna_status check_channels(const char *what, int64_t count) {
  if (count >= 1 && count <= RDNA__UPSCALER_CHANNELS) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "%lld channels of %s; there must be 1 to %d", (long long)count, what,
                    RDNA__UPSCALER_CHANNELS);
}

/* How many there are of what is called |before|, a number and |after|, from |first| on. */
static rdna_status count(const rdna__safetensors *tensors, const char *before, int first, const char *after, int most,
                         int *out) {
  *out = 0;
  while (*out <= most && numbered(tensors, before, first + *out, after)) ++*out;
  if (*out <= most) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "more than %d of '%s0%s' and its like", most, before, after);
}

/* ---- RRDBNet ---- */

typedef struct row {
  const char *first, *block, *conv; /* the first block is |block|, 0 and |conv| */
  const char *up, *up_end;          /* "": they have every third number */
} row;

static const row rows[] = {
    [RDNA__UPSCALER_NEW] = {"conv_first.weight", "body.", ".rdb1.conv1.weight", "conv_up", ".weight"},
    [RDNA__UPSCALER_TRUNK] = {"conv_first.weight", "RRDB_trunk.", ".RDB1.conv1.weight", "upconv", ".weight"},
    [RDNA__UPSCALER_NUMBERS] = {"model.0.weight", "model.1.sub.", ".RDB1.conv1.0.weight", "", ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Where they have numbers the last one is 4, and 3 more for each that doubles. */
static rdna_status count_doublings(const rdna__safetensors *tensors, const row *r, int *out) {
  if (*r->up) return count(tensors, r->up, 1, r->up_end, RDNA__UPSCALER_DOUBLINGS, out);
  for (*out = RDNA__UPSCALER_DOUBLINGS; *out > 0; --*out)
    if (numbered(tensors, "model.", 4 + 3 * *out, ".weight")) break;
  return RDNA_OK;
}

static rdna_status read_rrdb(const rdna__safetensors *tensors, const row *r, rdna__upscaler_settings *s) {
  const rdna__safetensor *first = window(tensors, r->first), *dense = numbered(tensors, r->block, 0, r->conv);
  s->kind = RDNA__UPSCALER_RRDB;
  s->names = (rdna__upscaler_names)(r - rows);
  RDNA_TRY(check_channels("its first convolution", first->shape[0]));
  RDNA_TRY(check_channels("a dense block's convolution", dense->shape[0]));
  RDNA_TRY(count(tensors, r->block, 0, r->conv, RDNA__UPSCALER_BLOCKS, &s->blocks));
  RDNA_TRY(count_doublings(tensors, r, &s->doublings));
  s->features = (int)first->shape[0];
  s->growth = (int)dense->shape[0];
  for (s->gathered = 1; s->gathered <= 4; s->gathered *= 2)
    if (first->shape[1] == 3 * s->gathered * s->gathered) break;
  if (s->gathered > 4)
    return rdna__fail(RDNA_UNSUPPORTED, "it reads %lld channels; 3 are read, or 12 or 48 of gathered pixels",
                      (long long)first->shape[1]);
  s->scale = (1 << s->doublings) / s->gathered;
  if (s->scale >= 1) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "it makes pictures smaller: %d x %d pixels are one place, and it doubles %d times", s->gathered,
                    s->gathered, s->doublings);
}

/* ---- SRVGGNetCompact ---- */

/* Convolutions have even numbers, and slopes stand between. */
static rdna_status read_compact(const rdna__safetensors *tensors, rdna__upscaler_settings *s) {
  const rdna__safetensor *first = window(tensors, "body.0.weight"), *last = NULL;
  char name[NAME_BYTES];
  int convs = 1;
  s->kind = RDNA__UPSCALER_COMPACT;
  RDNA_TRY(check_channels("its first convolution", first->shape[0]));
  s->features = (int)first->shape[0];
  while (convs <= RDNA__UPSCALER_BLOCKS + 2 && numbered(tensors, "body.", 2 * convs, ".weight")) convs++;
  if (convs < 2 || convs > RDNA__UPSCALER_BLOCKS + 2)
    return rdna__fail(RDNA_UNSUPPORTED, "it is a row of %d convolutions or more; 2 to %d are taken", convs,
                      RDNA__UPSCALER_BLOCKS + 2);
  s->blocks = convs - 2;
  last = numbered(tensors, "body.", 2 * convs - 2, ".weight");
  for (s->scale = 1; s->scale < RDNA__UPSCALER_SCALE && 3 * s->scale * s->scale < last->shape[0];) s->scale++;
  if (3 * s->scale * s->scale != last->shape[0])
    return rdna__fail(RDNA_UNSUPPORTED,
                      "its last convolution makes %lld channels; 3 times a square up to %d are spread",
                      (long long)last->shape[0], RDNA__UPSCALER_SCALE * RDNA__UPSCALER_SCALE);
  snprintf(name, sizeof name, "body.1.weight");
  if (rdna__safetensors_find(tensors, name)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "there is no '%s': its activation is no PReLU, and which one its tensors do not "
                    "say",
                    name);
}

rdna_status rdna__upscaler_settings_read(const rdna__safetensors *tensors, rdna__upscaler_settings *out) {
  *out = (rdna__upscaler_settings){.gathered = 1};
  for (int i = 0; i < ROWS; i++)
    if (window(tensors, rows[i].first) && numbered(tensors, rows[i].block, 0, rows[i].conv))
      return read_rrdb(tensors, &rows[i], out);
  if (window(tensors, "body.0.weight")) return read_compact(tensors, out);
  return rdna__fail(RDNA_UNSUPPORTED,
                    "it is no ESRGAN: its tensors are neither RRDBNet's ('conv_first.weight', 'model.0.weight') nor "
                    "SRVGGNetCompact's ('body.0.weight')");
}
