/* The U-Net that Stable Diffusion 1, 2 and XL take noise away with (diffusers' UNet2DConditionModel): its settings, and
 * the transformers between its convolutions. */
#ifndef RDNA_MODEL_IMAGE_UNET_H
#define RDNA_MODEL_IMAGE_UNET_H

#include "model/image/blocks.h"
#include "rdna/image.h"

/* ---- Settings ---- */

enum { RDNA__UNET_STAGES = 6, RDNA__UNET_LAYERS = 6 };

typedef struct rdna__unet_settings {
  int in_channels, out_channels;
  int sample; /* height and width of the latents it was trained with; 0: it is not said */
  int stages;
  int channels[RDNA__UNET_STAGES]; /* of each stage on the way down, as all that follow */
  int layers[RDNA__UNET_STAGES];   /* resnet blocks; on the way up there is one more */
  int blocks[RDNA__UNET_STAGES];   /* of a transformer */
  int heads[RDNA__UNET_STAGES];
  bool down_attends[RDNA__UNET_STAGES];
  bool up_attends[RDNA__UNET_STAGES]; /* by the stage's number on the way down */
  int text_width;
  int groups;
  double epsilon;
  double middle_divisor; /* of the resnet blocks in the middle */
  bool cosines_first;    /* of the embedding of numbers */
  double shift;          /* in its frequencies */
  int time_width;        /* of the embedding that resnet blocks read */
  int added_width;       /* what is embedded beside the timestep: a text's vector, and numbers; 0: nothing */
  int number_width;      /* values of each of these numbers */
  int guidance_width;    /* values that a distilled network has its guidance embedded in; 0: it has none */
} rdna__unet_settings;

/* RDNA_UNSUPPORTED: a setting that is not known, or a value of one that would make it another network. RDNA_BAD_DATA:
 * values that make no sense. */
rdna_status rdna__unet_settings_read(json_t *json, rdna__unet_settings *out);

enum { RDNA__CONTROL_LEVELS = 8 };

typedef struct rdna__control_settings { /* of a ControlNet, beside those of the half of a U-Net that it has */
  int levels;                           /* each but the last halves its picture */
  int channels[RDNA__CONTROL_LEVELS];
  bool reversed; /* it reads blue, green, red */
} rdna__control_settings;

/* The same of a ControlNetModel. */
rdna_status rdna__control_settings_read(json_t *json, rdna__unet_settings *out_half, rdna__control_settings *out);

/* rdna_image_unet_create with matrices rounded to |weights|, see rdna__network, and with |loras|' changes, or NULL. */
rdna_status rdna__unet_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                              rdna_dtype weights, rdna__loras *loras, rdna_image_unet **out_unet);

/* ---- Transformers ---- */

typedef struct rdna__image_layer_norm { /* over a token's channels */
  rdna_tensor weight, bias;             /* (channels), f32 */
  double epsilon;
} rdna__image_layer_norm;

typedef struct rdna__image_heads { /* attention of tokens over tokens */
  rdna__image_linear q, k, v, out; /* the first three without bias */
} rdna__image_heads;

typedef struct rdna__image_transformer_block {
  rdna__image_layer_norm norm1, norm2, norm3;
  rdna__image_heads own, text;
  rdna__image_linear up, down; /* (2 hidden, channels): what is kept, then its gates; (channels, hidden) */
} rdna__image_transformer_block;

/* x + out(blocks(in(norm(x)))), where each block is
 *
 *     t --+-- norm1 -- own -- (+) --+-- norm2 -- text -- (+) --+-- norm3 -- up, gelu gate, down -- (+) --
 *         |____________________|    |_____________________|    |_______________________________|         */
typedef struct rdna__image_transformer {
  rdna__image_norm norm;
  rdna__image_linear in, out;
  rdna__image_transformer_block *blocks; /* (count) */
  int count, heads;
  int place; /* of the first block among all of a U-Net's, which an IP-Adapter counts: down, up, and the middle */
} rdna__image_transformer;

/* Names are |prefix| and those of diffusers behind it. To be given back by _deinit whatever is returned. */
rdna_status rdna__image_load_transformer(rdna__component *component, const char *prefix, int channels, int text_width,
                                         int heads, int groups, int blocks, rdna__image_transformer *out);
void rdna__image_transformer_deinit(rdna__image_transformer *transformer); /* of zeros is fine; weights stay */

/* What changes attention. */
typedef struct rdna__image_attending {
  int perturbed;                          /* of the images of a pass the last ones, whose tokens see themselves alone */
  uint32_t blocks;                        /* in block i, where bit i is set */
  const rdna_image_adapter_use *adapters; /* (adapter_count) whose tokens are read beside a text's */
  size_t adapter_count;
} rdna__image_attending;

/* Changes the image |x| (n, channels, height, width). |text| (n, tokens, text_width). */
rdna_status rdna__image_transformer_run(rdna__image_pass *pass, const rdna__image_transformer *transformer,
                                        const rdna_tensor *text, const rdna__image_attending *attending,
                                        const rdna_tensor *x);

/* ---- Numbers as vectors ---- */

/* |out| (width): sines, then cosines of 1000 |guidance| at frequencies from 1 to 1 / 10000. */
void rdna__image_embed_guidance(double guidance, int width, float *out);

/* |out| (width): sine and cosine of |number| at frequencies from 1 to about 1 / 10000 (Vaswani et al., 2017), a 0 at
 * the end of an odd width. In f32, as in training: large arguments show its rounding. */
void rdna__image_embed_number(const rdna__unet_settings *settings, double number, int width, float *out);

#endif
