/* What becomes of a network's answers to several texts, and where a U-Net is asked otherwise for them. */
#ifndef RDNA_MODEL_IMAGE_GUIDANCE_H
#define RDNA_MODEL_IMAGE_GUIDANCE_H

#include <stddef.h>

#include "model/image/unet.h"

/* How answers are mixed. */
typedef struct rdna__guidance {
  double scale;   /* of guidance without a classifier */
  double pag;     /* of perturbed attention; 0: none */
  double rescale; /* the share of a mixture as much spread as the answer to the prompt; 0: none */
  bool guided;    /* there is an answer to the text of what is not to be seen, and it is the first */
} rdna__guidance;

/* |answers| (1 + guided + (pag > 0), count): to what is not to be seen, to the prompt, and that of a network whose
 * tokens see themselves alone. The first becomes
 *
 *     unprompted + scale (prompted - unprompted) + pag (prompted - perturbed)
 *
 * (Ho and Salimans, 2022; Ahn et al., 2024), of which the share |rescale| is divided by how much more it is spread than
 * the answer to the prompt (Lin et al., 2024, section 3.4). */
void rdna__guidance_mix(const rdna__guidance *guidance, float *answers, size_t count);

/* ---- Places of attention in a U-Net ---- */

/* Blocks of transformers: "mid", "down", "up", and narrower with numbers behind points: of a stage, of a transformer in
 * it and of a block in that ("down.2.0.1"), in the order in which they run. Several are divided by commas or spaces. */
typedef enum rdna__unet_way { RDNA__UNET_DOWN, RDNA__UNET_MIDDLE, RDNA__UNET_UP } rdna__unet_way;

enum { RDNA__UNET_PLACES = 32 };

typedef struct rdna__unet_places {
  int count;
  struct {
    rdna__unet_way way;
    int numbers[3]; /* -1: all */
  } items[RDNA__UNET_PLACES];
} rdna__unet_places;

/* RDNA_INVALID_ARGUMENT: no such text, or a place where the network of |settings| attends nowhere. */
rdna_status rdna__unet_places_read(const char *text, const rdna__unet_settings *settings, rdna__unet_places *out);
/* Bit i: block i of that transformer is one of them. */
uint32_t rdna__unet_places_in(const rdna__unet_places *places, rdna__unet_way way, int stage, int layer);

#endif
