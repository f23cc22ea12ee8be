/* Pictures of texts: the parts of rdna/image.h together, as a folder of diffusers has them. */
#ifndef RDNA_IMAGE_MODEL_H
#define RDNA_IMAGE_MODEL_H

#include "rdna/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stable Diffusion 1, 2, XL, 3 or 3.5, FLUX.1, FLUX.2 klein, Z-Image or Qwen-Image. Its parts come to the device when
 * they are needed. One thread at a time. */
typedef struct rdna_image_model rdna_image_model;

typedef struct rdna_image_model_info {
  const char *family; /* "Stable Diffusion", "Stable Diffusion XL", "Stable Diffusion XL refiner", "FLUX.1 dev", … */
  int width, height;  /* of pictures that it was trained with */
  int factor;         /* how many pixels a latent is wide and high */
  int multiple;       /* of pixels, what sizes are multiples of */
  int latent_channels;
  double guidance;     /* what is usual */
  int steps;           /* what is usual */
  const char *sampler; /* the folder's, or dpmpp_2m where rdna/image.h does not have that one */
  bool own_sampler;    /* whether it is the folder's */
  const char *spacing; /* the folder's, of samplers that have more than "simple" */
} rdna_image_model_info;

/* A file of low-rank changes to weights ("LoRA"; LyCORIS' LoHa and LoKr too), which are added |scale| times. Names are
 * those of kohya-ss' scripts or of diffusers and PEFT. */
typedef struct rdna_image_lora {
  const char *path;
  double scale;
} rdna_image_lora;

/* A file of vectors that stand for a word in texts (textual inversion, Gal et al., 2022): safetensors with
 * "emb_params", a tensor that is called as the word, or XL's "clip_l" and "clip_g". */
typedef struct rdna_image_embedding {
  const char *path;
  const char *name; /* the word; NULL: as the file says it, or its name up to the last point */
} rdna_image_embedding;

typedef struct rdna_image_model_options {
  size_t size; /* of the struct: RDNA_IMAGE_MODEL_OPTIONS_INIT sets it */
  /* Of weights and activations of U-Net and autoencoder, f32, f16 or bf16, or with RDNA_DTYPE_COUNT f32 on the host and
   * on a GPU f16, of models that flow bf16; but f32 where an autoencoder leaves the range of f16 */
  rdna_dtype dtype;
  /* Of a model in one file, which has no vocabulary: a folder with CLIP's, vocab.json and merges.txt or tokenizer.json,
   * or one that has such a folder "tokenizer", as those of diffusers do. NULL: the folder "tokenizer" beside the file
   */
  const char *tokenizer;
  /* Of a model in one file, which does not say what its network was trained to answer: "epsilon" or "v_prediction";
   * NULL: what is usual, and of Stable Diffusion 2 "v_prediction" */
  const char *prediction;
  /* (lora_count) up to 32, which need not stay. One that does not fit is refused when the part that it
   * is for comes to the device: RDNA_BAD_DATA where it is for another version of the model, RDNA_UNSUPPORTED for
   * another kind */
  const rdna_image_lora *loras;
  int lora_count;
  /* A type of blocks (RDNA_Q8_0, RDNA_Q4_K, …): the matrices of the U-Net's and the transformer's blocks and of T5 are
   * rounded to it while they are loaded, those whose rows are no whole blocks to a similar one; what is of blocks in
   * its file stays so. 0, or another type: nothing is rounded */
  rdna_dtype weights;
  /* Files of safetensors or GGUF in place of the folder's transformer or, of Stable Diffusion, U-Net, and T5, or NULL:
   * the names are those of the models' makers or ComfyUI, and of T5 transformers' or GGUF's; floats of 32, 16 or 8
   * bits, or blocks, which stay so on the device where they are whole rows */
  const char *transformer, *t5;
  /* (control_count) up to 8 ControlNets, each a folder or file as for rdna_image_control_create, which need not stay;
   * none with FLUX. Requests say which are used. One for another version of the model is RDNA_BAD_DATA */
  const char *const *controls;
  size_t control_count;
  /* (embedding_count) up to 64, which need not stay, with other words each; none with FLUX. Where texts have a word,
   * whatever the case of its letters, its vectors are. One that does not fit is refused when texts are read */
  const rdna_image_embedding *embeddings;
  size_t embedding_count;
  /* Of XL, its refiner, which takes the last steps of each picture, or NULL: a folder, or a file as |path| may be,
   * which need not stay. It reads the prompt by the second text encoder alone, has a schedule of its own, and neither
   * LoRAs nor ControlNets nor words. RDNA_BAD_DATA: it is none, or of other latents */
  const char *refiner;
  /* Autoencoders, or NULL: one that makes pictures in place of the model's own, and one that shows what steps are about
   * (rdna_image_progress): folders of diffusers, or files of safetensors that have a tiny one (TAESD), which need not
   * stay. RDNA_BAD_DATA: one for other latents. Of equal shapes those of two versions of Stable Diffusion cannot be
   * told apart */
  const char *vae, *preview;
  /* Of Stable Diffusion 1, 2 and XL, (adapter_count) up to 8 IP-Adapters' files, and the folder of the encoder of
   * pictures that they were trained with, as for rdna_image_adapter_create and rdna_image_vision_encoder_create, which
   * need not stay. Requests say which are used. One for another version of the model is RDNA_BAD_DATA */
  const char *const *adapters;
  size_t adapter_count;
  const char *image_encoder;
} rdna_image_model_options;
#define RDNA_IMAGE_MODEL_OPTIONS_INIT .size = sizeof(rdna_image_model_options)

/* Of the folder |path|, which diffusers saved: model_index.json and the settings of its parts, which are all that is
 * read now. Or of a file of safetensors that has all parts, as most sites offer models (docs/image.md). The device is
 * retained. RDNA_NOT_FOUND: a file is missing. RDNA_BAD_DATA: settings that make no sense, or parts that do not fit
 * each other. RDNA_UNSUPPORTED: another kind of pipeline. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_model_open(rdna_device *device, const char *path,
                                               const rdna_image_model_options *options, rdna_image_model **out_model);
RDNA_API void rdna_image_model_release(rdna_image_model *model); /* NULL is fine */
/* Borrowed; lives as long as the model. */
RDNA_API const rdna_image_model_info *rdna_image_model_get_info(const rdna_image_model *model);

/* Where a request is. */
typedef struct rdna_image_progress {
  const char *stage;    /* "text", "noise", "picture"; with an initial one "init" before "noise" */
  int picture, count;   /* which one of how many, from 0 */
  int step, steps;      /* of "noise": how many are done */
  const float *latents; /* of "noise": (latent_channels, height / factor, width / factor); else NULL */
  const float *preview; /* of "noise" behind a step, with the request's |previews|: (3, height, width), what the model's
                           preview makes of the picture that the step saw behind the noise; else NULL */
} rdna_image_progress;

/* A ControlNet of the model in a request: what it makes of |picture| is added to the U-Net, |scale| times. */
typedef struct rdna_image_guide {
  size_t control;       /* which one of the model's, from 0; each may be used once */
  const float *picture; /* (3, height, width), -1 to 1: edges, depths or poses, as the ControlNet was trained with */
  double scale;
  double start, end; /* of the steps those that begin from the share |start| on and end up to |end|: 0 and 1 are all */
} rdna_image_guide;

/* An IP-Adapter of the model in a request: the U-Net reads, beside the texts, what the picture shows. */
typedef struct rdna_image_reference {
  size_t adapter;        /* which one of the model's, from 0; each may be used once */
  const uint8_t *pixels; /* (height, width, 3), 0 to 255, of any size, of which a square in the middle is seen */
  int width, height;
  double scale; /* how much it counts beside the texts */
} rdna_image_reference;

/* A picture of any size that the model makes. */
typedef struct rdna_image_picture {
  const float *values; /* (3, height, width), -1 to 1 */
  int width, height;
} rdna_image_picture;

typedef struct rdna_image_request {
  size_t size;          /* of the struct: RDNA_IMAGE_REQUEST_INIT sets it */
  const char *prompt;   /* what is to be seen; NULL: nothing in particular */
  const char *negative; /* what is not; NULL: nothing, which XL may have another vector for than "" */
  int count;            /* pictures; 0: 1 */
  int width, height;    /* pixels; 0: as the model has them */
  int steps;            /* 0: as is usual for the model */
  /* Each step's answer is unprompted + guidance (prompted - unprompted), of two in one pass (Ho and Salimans, 2022). Up
   * to 1 it is that to the prompt alone, as it is of networks that guidance was distilled into, which are told it;
   * below 0: as the model has it, which is what RDNA_IMAGE_REQUEST_INIT says */
  double guidance;
  const char *sampler, *spacing; /* see rdna_image_schedule_create, but "ays" is the family's;
                                    NULL: the model's */
  /* Picture i begins with the first numbers of rdna_image_noise of seed + i, and what steps add is what follows; with
   * |init| the very first draw its latents from what the autoencoder makes of it. */
  uint64_t seed;
  /* Instead of the first numbers: (count, latent_channels, height / factor, width / factor) of deviation 1 */
  const float *latents;
  /* NULL, or (3, height, width), -1 to 1: the picture to begin with. Its latents get noise, and of the steps the last
   * |strength| (above 0 to 1) is taken: SDEdit (Meng et al., 2022) */
  const float *init;
  double strength;
  int skip;    /* more layers of text encoders that are left out ("clip skip" less 1) */
  int tile;    /* see rdna_image_autoencoder_decode */
  bool frugal; /* each part leaves the device when it has done its work */
  /* Each may be NULL. |progress| is called before, between and behind steps, and stops all by returning false. |values|
   * is given, to be compared with what others compute, of all pictures (picture and step -1)
   *
   *     "states" (texts, tokens, width)  "pooled" (texts, width)  "timesteps" (steps)      of the negative text first
   *     "refiner_states"                 "refiner_pooled"
   *
   * of IP-Adapters "adapter_tokens" (texts, tokens, width) with their number in the request as the step, and of a
   * picture "noise" and "init" (channels, height, width), with each step "latents", "picture" (3, height, width). What
   * it returns other than RDNA_OK is what the request returns. */
  bool (*progress)(void *data, const rdna_image_progress *progress);
  rdna_status (*values)(void *data, const char *name, int picture, int step, int rank, const int64_t *shape,
                        const float *values);
  void *data; /* theirs */
  /* Texts are read as AUTOMATIC1111's page does: (word) weighs 1.1 times as much, [word] 1 / 1.1, (word:1.3) 1.3 times;
   * a backslash before a bracket makes it text; what is longer than the text encoders read at a time goes through them
   * in chunks, as does what follows BREAK. |plain|: as they are, cut where the encoders end. Those of all but Stable
   * Diffusion always are */
  bool plain;
  /* NULL, or with |init| (height, width) of what is to be drawn anew: from 1/2 on. Models made for it read the mask and
   * the rest of the picture; of others each step's latents outside of the mask are the initial picture's. With a
   * strength of 1 nothing of it is where the mask is. Not of models that look at a picture */
  const float *mask;
  const rdna_image_guide *guides; /* (guide_count) ControlNets that are used */
  size_t guide_count;
  /* NULL, or (lora_count, which is the model's) how often each of its LoRAs is added to the weights, in place of the
   * scales that it was opened with; at 0 it is left out. After a request with other scales the parts that LoRAs may be
   * for are loaded anew */
  const double *lora_scales;
  size_t lora_count;
  /* Of a model with a refiner, the share of the noise levels, above 0 and below 1, behind which it takes over, as an
   * ensemble of experts (Podell et al., 2023); 0: 0.8 */
  double refine_from;
  /* Of Stable Diffusion 1, 2 and XL, perturbed attention guidance (Ahn et al., 2024): to each step's answer |pag|
   * (prompted
   * - perturbed) is added, of a U-Net whose tokens see themselves alone at |pag_layers|, "mid" where that is NULL; a
   * third more work. 0: none. The refiner has none */
  double pag;
  const char *pag_layers;
  /* Of the same, with guidance: the share, up to 1, of an answer that is only spread as much as that to the prompt (Lin
   * et al., 2024, section 3.4) */
  double rescale;
  const rdna_image_reference *references; /* (reference_count) IP-Adapters that are used; the refiner has none */
  size_t reference_count;
  bool previews; /* |progress| is given pictures, and |values| "preview" with each step, by the model's preview */
  /* (picture_count) up to 3 that are looked at behind |init|, of sides as |width| may be, by Qwen-Image-Edit-Plus and
   * FLUX.2 */
  const rdna_image_picture *pictures;
  size_t picture_count;
  /* Of Stable Diffusion 3 with guidance, to each step's answer |skip_guidance| (prompted - skipped) is added, of a
   * transformer without the blocks |skip_layers|, "7,8,9" where that is NULL; in those steps of n whose number is above
   * skip_start n and below skip_end n, which is 0.2 n where that is 0. 0: none */
  double skip_guidance;
  const char *skip_layers;
  double skip_start, skip_end;
} rdna_image_request;
#define RDNA_IMAGE_REQUEST_INIT .size = sizeof(rdna_image_request), .guidance = -1

/* |out_pictures| (count, 3, height, width) in host memory: f32, -1 to 1 and a little beyond. RDNA_INVALID_ARGUMENT:
 * what is asked for is outside the limits. RDNA_CANCELLED. RDNA_BAD_DATA: a part makes values that are not finite,
 * which one of more range than f16 may not. RDNA_OUT_OF_MEMORY, RDNA_DEVICE_ERROR, and what the parts say when they are
 * loaded. The model can be used again after any failure. */
RDNA_CHECKED rdna_status rdna_image_model_draw(rdna_image_model *model, const rdna_image_request *request,
                                               float *out_pictures);
enum { RDNA_IMAGE_PLAN_PARTS = 8 };
/* What one part takes of the device while it is there. */
typedef struct rdna_image_plan_part {
  const char *name;     /* "text encoder", "T5", "U-Net", "transformer", "autoencoder" */
  uint64_t weights;     /* bytes */
  uint64_t activations; /* beside them where it takes the most, with operators' own workspace */
  uint64_t peak;        /* both */
} rdna_image_plan_part;
typedef struct rdna_image_plan {
  rdna_image_plan_part parts[RDNA_IMAGE_PLAN_PARTS]; /* (count), in the order in which they come to the device */
  int count;
  int tile;          /* the request's; where that is 0 and a whole picture does not fit, the largest one that does */
  uint64_t peak;     /* of all parts the most, as they leave when they are done */
  uint64_t reserved; /* what the pool takes for it */
  uint64_t free;     /* on the device now */
  uint64_t budget;   /* of that, for pictures: some is left to the driver, and a quarter of what the host shares */
  bool fits;
  char sentence[327]; /* what was chosen, or what to do where it does not fit; "": nothing */
} rdna_image_plan;
/* What |request| will take with |frugal|, whatever it says, beside |budget| bytes, or where that is 0 what is free: by
 * a rehearsal on a device that only counts, before any part is loaded. A plan that does not fit is RDNA_OK. Fails as
 * rdna_image_model_draw does where it says what is wrong before it draws. */
RDNA_CHECKED rdna_status rdna_image_model_make_plan(rdna_image_model *model, const rdna_image_request *request,
                                                    uint64_t budget, rdna_image_plan *out_plan);
/* How many tokens |text| has as it is, and how many of them the model reads in one chunk: the smallest number of its
 * encoders. Loads those. */
RDNA_CHECKED rdna_status rdna_image_model_tokens(rdna_image_model *model, const char *text, size_t *out_count,
                                                 size_t *out_read);

#ifdef __cplusplus
}
#endif
#endif
