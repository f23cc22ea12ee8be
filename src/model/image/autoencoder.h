/* The autoencoder of latent diffusion (Rombach et al., 2022), AutoencoderKL of diffusers: pictures as latents of an
 * eighth of the size, and back.
 *
 *     encoder   conv_in -- [resnets -- smaller] for each level -- mid -- norm, SiLU, conv_out -- quant_conv: moments
 *     decoder   post_quant_conv -- conv_in -- mid -- [resnets -- larger] for each level -- norm, SiLU, conv_out
 *     mid       resnet -- attention -- resnet                                                                     */
#ifndef RDNA_MODEL_IMAGE_AUTOENCODER_H
#define RDNA_MODEL_IMAGE_AUTOENCODER_H

#include "model/image/blocks.h"

enum { RDNA__AUTOENCODER_LEVELS = 8, RDNA__AUTOENCODER_RESNETS = 17 }; /* at most, of one and in one level */

typedef struct rdna__autoencoder_settings {
  int in_channels, out_channels, latent_channels;
  int levels, channels[RDNA__AUTOENCODER_LEVELS];
  int resnets; /* of a level of the encoder; the decoder has one more */
  int groups;
  bool quant, post_quant, attention;
  bool upcast; /* said to leave the range of f16 */
  double scaling, shift;
} rdna__autoencoder_settings;

/* RDNA_BAD_DATA, RDNA_UNSUPPORTED: see rdna_image_autoencoder_create. */
rdna_status rdna__autoencoder_settings_read(const json_t *json, rdna__autoencoder_settings *out);

typedef struct rdna__autoencoder_level {
  rdna__image_resnet resnets[RDNA__AUTOENCODER_RESNETS];
  rdna__image_conv smaller;    /* of the encoder; weight.data NULL: the size stays */
  rdna__image_doubling larger; /* of the decoder; bias.data NULL: the size stays */
} rdna__autoencoder_level;

/* The encoder or the decoder. */
typedef struct rdna__autoencoder_half {
  rdna__image_conv in, out, quant; /* quant.weight.data NULL: there is none */
  rdna__image_resnet mid[2];
  rdna__image_attention attention; /* q.weight.data NULL: there is none */
  rdna__autoencoder_level levels[RDNA__AUTOENCODER_LEVELS];
  int level_count, resnets;
  rdna__image_norm norm;
} rdna__autoencoder_half;

rdna_status rdna__autoencoder_load(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                   rdna__autoencoder_half *out);
/* |x|, an image of the pass, becomes its moments: means of latents, then logarithms of variances. */
rdna_status rdna__autoencoder_encode(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x);
/* |x|, latents of the pass, become a picture. */
rdna_status rdna__autoencoder_decode(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x);

#endif
