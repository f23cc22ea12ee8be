/* Transformers in which text and picture have streams of their own that attend to each other: FLUX.1's
 * (FluxTransformer2DModel of diffusers), those made after it, Qwen-Image's (QwenImageTransformer2DModel) and FLUX.2's
 * (Flux2Transformer2DModel), and the one made before it, Stable Diffusion 3's (SD3Transformer2DModel; Esser et al.,
 * 2024). Settings say what a network of any of them is, and flux_run.c runs it. */
#ifndef RDNA_MODEL_IMAGE_FLUX_H
#define RDNA_MODEL_IMAGE_FLUX_H

#include "model/image/dit.h"
#include "model/image/settings.h"
#include "rdna/image_flow.h"
#include "rdna/image_model.h"

typedef enum rdna__flux_kind { RDNA__FLUX_1, RDNA__FLUX_QWEN, RDNA__FLUX_2, RDNA__FLUX_SD3 } rdna__flux_kind;

enum { RDNA__FLUX_MOST_BLOCKS = 256 };

typedef struct rdna__flux_settings {
  rdna__flux_kind kind;
  int patch;                     /* a token is so many places high and wide: 1 or 2 */
  int in_channels, out_channels; /* of a token */
  int doubles, singles;          /* blocks with weights of their own for text and picture, and with common ones */
  int heads, head;               /* how many, and the values of one */
  int width;                     /* heads head */
  int hidden;                    /* values between the two layers behind attention */
  int text_width, pooled_width;  /* the last 0: a text has no vector */
  int embedded;                  /* values that a timestep is embedded in */
  int axes[RDNA__DIT_AXES];      /* values of a head that turn with each coordinate of a token */
  double theta, epsilon;
  bool guided;
  bool biased; /* layers have biases, */
  bool gates;  /* what attention is followed by is silu(a) b of halves a and b, not a GELU, */
  bool shares; /* and all blocks of a kind are modulated by the same rows */
  bool normed; /* queries and keys are divided by the root of their mean square */
  bool stills; /* pictures that are looked at are modulated as at timestep 0 */
  /* of Stable Diffusion 3 alone, where heads do not turn */
  int positions;                     /* a table's rows and columns of rows that are added to a picture's tokens, which
                                        have the middle ones; 0: there is none, and heads turn */
  int sample;                        /* side of a sample that it was trained with; 0: nobody says */
  bool dual[RDNA__FLUX_MOST_BLOCKS]; /* (doubles): the picture attends to itself alone, too */
} rdna__flux_settings;

/* RDNA_UNSUPPORTED: a setting that is not known, or a value of one that would make it another network. RDNA_BAD_DATA:
 * values that make no sense. */
rdna_status rdna__flux_settings_read(json_t *json, rdna__flux_settings *out);

/* rdna_image_flux_create with matrices rounded to |weights|, blocks, as they are loaded; of another type: as they are;
 * and with |loras|' changes, or NULL. */
rdna_status rdna__flux_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                              rdna_dtype weights, rdna__loras *loras, rdna_image_flux **out_flux);
/* rdna_image_t5_create, the same. */
rdna_status rdna__t5_create(rdna_device *device, const char *folder, const char *encoder, const char *tokenizer,
                            rdna_dtype dtype, rdna_dtype weights, rdna__loras *loras, rdna_image_t5 **out_encoder);

enum { RDNA__FLUX_PICTURES = 4 };

/* What it reads beside its input. */
typedef struct rdna__flux_extra {
  const rdna_image_picture *pictures; /* (count) up to RDNA__FLUX_PICTURES latents that are looked at, as the input's
                                         |context| would be */
  int count;
  const bool *skipped; /* (doubles) blocks that are left out; NULL: none */
} rdna__flux_extra;

rdna_status rdna__flux_run(rdna_image_flux *flux, const rdna_image_flux_input *input, const rdna__flux_extra *extra,
                           float *out_sample);

/* ---- The network ---- */

typedef struct rdna__flux_heads {
  rdna__image_linear q, k, v, out; /* out.weight.data NULL: nobody reads what it would make, nor what follows it */
  rdna_tensor q_norm, k_norm;      /* (head), f32; data NULL: there are none */
} rdna__flux_heads;

typedef struct rdna__flux_side { /* of a double block: what text or picture has for itself */
  rdna__image_linear modulation; /* weight.data NULL: that of all */
  rdna__flux_heads joint, own;   /* own.q.weight.data NULL: it does not attend to itself alone */
  rdna__image_linear up, down;
} rdna__flux_side;

typedef struct rdna__flux_single {
  rdna__image_linear modulation;        /* weight.data NULL: that of all */
  rdna__image_linear q, k, v, up, down; /* down reads what attention made and what up made, side by side */
  rdna_tensor q_norm, k_norm;
} rdna__flux_single;

enum { RDNA__FLUX_TEXT, RDNA__FLUX_PICTURE, RDNA__FLUX_SIDES };

struct rdna_image_flux {
  rdna__network network;
  rdna__flux_settings set;
  rdna_image_flux_info info;
  rdna__image_linear in, text, modulation, out;
  rdna_tensor text_norm;                           /* (text_width), f32; data NULL: there is none */
  rdna__image_linear shared[RDNA__FLUX_SIDES + 1]; /* of double blocks' sides, and of single blocks; or none */
  rdna__dit_embedding time, guidance, pooled;
  rdna__dit_axes axes;
  rdna_tensor positions;                        /* (positions, positions, width); data NULL: there is none */
  rdna__flux_side (*doubles)[RDNA__FLUX_SIDES]; /* (set.doubles) */
  rdna__flux_single *singles;                   /* (set.singles) */
  int last_scale, last_shift; /* parts of what the last norm is modulated by: files have them in either order */
};

#endif
