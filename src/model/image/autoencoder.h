/* The autoencoder of latent diffusion (Rombach et al., 2022), AutoencoderKL of diffusers: pictures as latents of an
 * eighth of the size, and back. Qwen-Image's (AutoencoderKLQwenImage) was made for films, where convolutions see
 * earlier pictures too; of a single one these are convolutions over height and width. FLUX.2's (AutoencoderKLFlux2)
 * has patches of 2 x 2 places as latents. A tiny one (AutoencoderTiny, TAESD) was trained to do the same with less
 * work, and is told apart in autoencoder_tiny.c.
 *
 *     encoder   conv_in -- [resnets -- smaller] for each level -- mid -- norm, SiLU, conv_out -- quant_conv: moments
 *     decoder   post_quant_conv -- conv_in -- mid -- [resnets -- larger] for each level -- norm, SiLU, conv_out
 *     mid       resnet -- attention -- resnet                                                                     */
#ifndef RDNA_MODEL_IMAGE_AUTOENCODER_H
#define RDNA_MODEL_IMAGE_AUTOENCODER_H

#include "model/image/blocks.h"
#include "rdna/image.h"

/* At most: levels, resnets in one, and channels of latents that networks see. */
enum { RDNA__AUTOENCODER_LEVELS = 8, RDNA__AUTOENCODER_RESNETS = 17, RDNA__AUTOENCODER_LATENTS = 1024 };

typedef enum rdna__autoencoder_kind {
  RDNA__AUTOENCODER_KL,
  RDNA__AUTOENCODER_QWEN,
  RDNA__AUTOENCODER_FLUX2,
  RDNA__AUTOENCODER_TINY
} rdna__autoencoder_kind;

typedef struct rdna__autoencoder_settings {
  rdna__autoencoder_kind kind;
  int in_channels, out_channels;
  int latent_channels; /* of the autoencoder's own, */
  int patch;           /* and how many places high and wide one of the latents is that networks see */
  int levels, channels[RDNA__AUTOENCODER_LEVELS];
  int first;                               /* channels before the first level of the encoder */
  int resnets;                             /* of a level of the encoder; the decoder has one more */
  int blocks[2][RDNA__AUTOENCODER_LEVELS]; /* of a tiny one, in place of these: of each level of decoder and encoder */
  int groups;
  bool quant, post_quant, attention;
  bool decodes_alone;                          /* a tiny one's file has no encoder */
  bool borrows;                                /* |mean| and |deviation| are those of the model that it is for */
  bool upcast;                                 /* said to leave the range of f16 */
  double scaling, shift;                       /* of latents, of all channels; 1 and 0 where each has its own */
  double epsilon;                              /* of FLUX.2's variances */
  double mean[RDNA__AUTOENCODER_LATENTS];      /* (latent_channels patch^2) of what the autoencoder makes; networks */
  double deviation[RDNA__AUTOENCODER_LATENTS]; /* see that less |mean|, over |deviation| */
} rdna__autoencoder_settings;

/* Of latents that networks see. */
int rdna__autoencoder_latents(const rdna__autoencoder_settings *set);
int rdna__autoencoder_factor(const rdna__autoencoder_settings *set);

/* RDNA_BAD_DATA, RDNA_UNSUPPORTED: see rdna_image_autoencoder_create. */
rdna_status rdna__autoencoder_settings_read(const json_t *json, rdna__autoencoder_settings *out);

/* Of a tiny one: ReLU of x and of what three windows with ReLUs between them make of it. */
typedef struct rdna__tiny_block {
  rdna__image_conv conv[3];
} rdna__tiny_block;

typedef struct rdna__autoencoder_level {
  rdna__image_resnet resnets[RDNA__AUTOENCODER_RESNETS];
  rdna__image_conv smaller;                           /* of the encoder; weight.data NULL: the size stays */
  rdna__image_doubling larger;                        /* of the decoder; weight[0][0].data NULL: the size stays */
  rdna__tiny_block blocks[RDNA__AUTOENCODER_RESNETS]; /* (block_count) of a tiny one, in place of resnets */
  int block_count;
} rdna__autoencoder_level;

/* The encoder or the decoder. */
typedef struct rdna__autoencoder_half {
  rdna__image_conv in, out, quant; /* quant.weight.data NULL: there is none */
  rdna__image_resnet mid[2];
  rdna__image_attention attention; /* q.weight.data NULL: there is none */
  rdna__autoencoder_level levels[RDNA__AUTOENCODER_LEVELS];
  int level_count, resnets;
  rdna__image_norm norm;
  bool tiny; /* it has in, out and levels alone */
} rdna__autoencoder_half;

rdna_status rdna__autoencoder_load(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                   rdna__autoencoder_half *out);
/* The same of RDNA__AUTOENCODER_QWEN. */
rdna_status rdna__autoencoder_load_qwen(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                        rdna__autoencoder_half *out);
/* The same of RDNA__AUTOENCODER_TINY. */
rdna_status rdna__autoencoder_load_tiny(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                        rdna__autoencoder_half *out);
/* |x|, an image of the pass, becomes its moments: means of latents, then logarithms of variances; of a tiny one latents
 * alone. */
rdna_status rdna__autoencoder_encode(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x);
/* |x|, latents of the pass, become a picture. */
rdna_status rdna__autoencoder_decode(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x);
/* Both of a tiny one. */
rdna_status rdna__autoencoder_encode_tiny(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x);
rdna_status rdna__autoencoder_decode_tiny(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x);

/* Settings of what stands at |path| alone: a folder of diffusers, or a file that has a tiny one. RDNA_NOT_FOUND too. */
rdna_status rdna__autoencoder_look(const char *path, rdna__autoencoder_settings *out);
/* From here on latents are as those of |own| are, which has as many channels. */
void rdna__autoencoder_borrow(rdna_image_autoencoder *autoencoder, const rdna__autoencoder_settings *own);
/* rdna_image_autoencoder_create of that. */
rdna_status rdna__autoencoder_open(rdna_device *device, const char *path, rdna_dtype dtype, bool encodes,
                                   rdna_image_autoencoder **out_autoencoder);

#endif
