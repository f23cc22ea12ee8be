/* A tiny autoencoder (Boer Bohan's TAESD, AutoencoderTiny of diffusers), which was trained to make of another's latents
 * about the same pictures, without norms and attention, and so in a small share of the work.
 *
 *     encoder   (x + 1) / 2 -- in -- blocks -- [halving -- blocks] for each further level -- out: latents
 *     decoder   3 tanh(x / 3) -- in, ReLU -- [blocks -- doubling] for each level but the last -- blocks -- out -- 2 x -
 * 1 block     ReLU of x and of what three windows of 3 x 3 with ReLUs between them make of it
 *
 * Its layers have numbers, of which those without weights (ReLU, doubling) are some, too. */
#include <stdio.h>

#include "model/image/autoencoder.h"
#include "rdna/op.h"

enum { NAME_BYTES = RDNA__COMPONENT_NAME, WINDOW = 3, RANGE = 3 };

/* ---- weights ---- */

typedef struct loading {
  rdna__component *component;
  const char *of; /* "encoder.layers" */
  int at;         /* the number of the next layer */
} loading;

static rdna_status load_conv(loading *l, int in, int out, int stride, bool biased, rdna__image_conv *to) {
  const rdna__image_window window = {in, out, WINDOW, stride, 1, 1};
  char name[16];
  snprintf(name, sizeof name, "%d", l->at++);
  return biased ? rdna__image_load_conv(l->component, l->of, name, &window, to)
                : rdna__image_load_unbiased(l->component, l->of, name, &window, to);
}

static rdna_status load_blocks(loading *l, int channels, int count, rdna__autoencoder_level *level) {
  static const char *const names[] = {"0", "2", "4"};
  const rdna__image_window window = {channels, channels, WINDOW, 1, 1, 1};
  char prefix[NAME_BYTES];
  level->block_count = count;
  for (int i = 0; i < count; i++) {
    snprintf(prefix, sizeof prefix, "%s.%d.conv", l->of, l->at++);
    for (int k = 0; k < 3; k++)
      RDNA_TRY(rdna__image_load_conv(l->component, prefix, names[k], &window, &level->blocks[i].conv[k]));
  }
  return RDNA_OK;
}

static rdna_status load_doubling(loading *l, int channels, rdna__image_doubling *to) {
  char name[16];
  l->at++; /* what repeats values */
  snprintf(name, sizeof name, "%d", l->at++);
  return rdna__image_load_doubling(l->component, l->of, name, channels, channels, false, to);
}

rdna_status rdna__autoencoder_load_tiny(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                        rdna__autoencoder_half *to) {
  loading l = {c, encodes ? "encoder.layers" : "decoder.layers", 0};
  int width = encodes ? set->first : set->channels[0], last = set->levels - 1;
  *to = (rdna__autoencoder_half){.level_count = set->levels, .tiny = true};
  RDNA_TRY(load_conv(&l, encodes ? set->in_channels : set->latent_channels, width, 1, true, &to->in));
  if (!encodes) l.at++; /* ReLU */
  for (int i = 0; i <= last; i++) {
    rdna__autoencoder_level *level = &to->levels[i];
    if (encodes && i > 0) RDNA_TRY(load_conv(&l, width, width, 2, false, &level->smaller));
    RDNA_TRY(load_blocks(&l, width, set->blocks[encodes][i], level));
    if (!encodes && i < last) RDNA_TRY(load_doubling(&l, width, &level->larger));
  }
  return load_conv(&l, width, encodes ? set->latent_channels : set->out_channels, 1, true, &to->out);
}

/* ---- a pass ---- */

/* x becomes |next|. */
static rdna_status go_on(rdna__image_pass *pass, rdna_tensor *x, const rdna_tensor *next) {
  RDNA_TRY(rdna__pass_drop(pass, x));
  *x = *next;
  return RDNA_OK;
}

static rdna_status convolve(rdna__image_pass *pass, const rdna__image_conv *conv, rdna_tensor *x) {
  rdna_tensor next;
  RDNA_TRY(rdna__image_conv_run(pass, conv, x, &next));
  return go_on(pass, x, &next);
}

static rdna_status map(rdna__image_pass *pass, rdna_map op, double by, double more, const rdna_tensor *x) {
  return rdna_op_map(pass->stream, op, x, rdna_scalar_real(by), rdna_scalar_real(more), x);
}

static rdna_status run_block(rdna__image_pass *pass, const rdna__tiny_block *block, rdna_tensor *x) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor h;
  RDNA_TRY(rdna__image_conv_run(pass, &block->conv[0], x, &h));
  for (int k = 1; k < 3; k++) {
    RDNA_TRY(map(pass, RDNA_MAP_RELU, 0, 0, &h));
    RDNA_TRY(convolve(pass, &block->conv[k], &h));
  }
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, &h, x, zero, zero, &h));
  RDNA_TRY(map(pass, RDNA_MAP_RELU, 0, 0, &h));
  return go_on(pass, x, &h);
}

static rdna_status run_blocks(rdna__image_pass *pass, const rdna__autoencoder_level *level, rdna_tensor *x) {
  for (int i = 0; i < level->block_count; i++) RDNA_TRY(run_block(pass, &level->blocks[i], x));
  return RDNA_OK;
}

rdna_status rdna__autoencoder_encode_tiny(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x) {
  RDNA_TRY(map(pass, RDNA_MAP_AFFINE, 0.5, 0.5, x));
  RDNA_TRY(convolve(pass, &half->in, x));
  for (int i = 0; i < half->level_count; i++) {
    if (i > 0) RDNA_TRY(convolve(pass, &half->levels[i].smaller, x));
    RDNA_TRY(run_blocks(pass, &half->levels[i], x));
  }
  return convolve(pass, &half->out, x);
}

rdna_status rdna__autoencoder_decode_tiny(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x) {
  rdna_tensor next;
  RDNA_TRY(map(pass, RDNA_MAP_AFFINE, 1. / RANGE, 0, x));
  RDNA_TRY(map(pass, RDNA_MAP_TANH, 0, 0, x));
  RDNA_TRY(map(pass, RDNA_MAP_AFFINE, RANGE, 0, x));
  RDNA_TRY(convolve(pass, &half->in, x));
  RDNA_TRY(map(pass, RDNA_MAP_RELU, 0, 0, x));
  for (int i = 0; i < half->level_count; i++) {
    RDNA_TRY(run_blocks(pass, &half->levels[i], x));
    if (i + 1 == half->level_count) break;
    RDNA_TRY(rdna__image_doubling_run(pass, &half->levels[i].larger, x, &next));
    RDNA_TRY(go_on(pass, x, &next));
  }
  RDNA_TRY(convolve(pass, &half->out, x));
  return map(pass, RDNA_MAP_AFFINE, 2, -1, x);
}
