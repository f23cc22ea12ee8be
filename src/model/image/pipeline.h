/* The parts of a folder together. */
#ifndef RDNA_MODEL_IMAGE_PIPELINE_H
#define RDNA_MODEL_IMAGE_PIPELINE_H

#include "model/image/family.h"
#include "model/image/guidance.h"
#include "model/image/inversion.h"
#include "model/image/language.h"
#include "model/image/lora.h"
#include "model/image/settings.h"
#include "model/image/unet.h"
#include "rdna/image_flow.h"
#include "rdna/image_model.h"

enum {
  RDNA__PIPELINE_ENCODERS = 2,
  RDNA__PIPELINE_CONTROLS = 8,
  RDNA__PIPELINE_ADAPTERS = 8,
  RDNA__PIPELINE_PICTURES = 4 /* that are looked at */
};

/* What parts took of a device that only counts, noted when they leave it (plan.c). */
typedef struct rdna__image_notes {
  rdna_image_plan_part parts[RDNA_IMAGE_PLAN_PARTS];
  int count;
  uint64_t peak, reserved;
} rdna__image_notes;

struct rdna_image_model {
  rdna_device *device;
  char *folder;                    /* or file */
  char *tokenizer;                 /* of a file: the folder with the vocabulary */
  rdna_dtype dtype, picture_dtype; /* of the U-Net and of the autoencoder */
  rdna_image_model_info info;
  char *schedule;                        /* the text of scheduler_config.json */
  int first_encoder;                     /* 1 of a refiner, which has the second alone, else 0 */
  int encoders;                          /* 1, or 2 of XL */
  bool refines;                          /* it is XL's refiner */
  rdna_image_model *refiner;             /* that takes the last steps, or NULL */
  bool distilled;                        /* the U-Net is told the guidance, and asked once a step */
  rdna__loras *loras;                    /* NULL: none */
  double lora_scales[RDNA__IMAGE_LORAS]; /* those that parts on the device have */
  rdna__inversions *words;               /* the same */
  bool inpaints;                         /* the U-Net reads a mask and the rest of a picture, too */
  bool zeros;                            /* what is not asked for is zeros, and not what the encoders make of no text */
  /* NULL: not on the device */
  rdna_image_text_encoder *encoder[RDNA__PIPELINE_ENCODERS];
  rdna_image_unet *unet;
  rdna_image_autoencoder *autoencoder, *preview;
  char *vae_path, *preview_path; /* of autoencoders in place of the model's own and beside it, or NULL */
  struct rdna__autoencoder_settings *own_latents; /* of its own, which these borrow; or NULL */
  bool vae_borrows, preview_borrows;
  rdna_dtype preview_dtype;
  bool decodes_alone; /* its autoencoder reads no picture to begin with */
  bool undrawn;       /* its autoencoder makes latents of a picture, of which none are drawn */
  char *control_paths[RDNA__PIPELINE_CONTROLS]; /* (control_count) */
  rdna_image_control *controls[RDNA__PIPELINE_CONTROLS];
  int control_count;
  char *image_encoder_path, *adapter_paths[RDNA__PIPELINE_ADAPTERS]; /* (adapter_count) of IP-Adapters */
  rdna_image_vision_encoder *image_encoder;
  rdna_image_adapter *adapters[RDNA__PIPELINE_ADAPTERS]; /* with what pictures became in the last request */
  int adapter_count;
  rdna__unet_settings unet_settings;
  const rdna__image_family *family; /* of models that flow: see family.h; NULL: it has a U-Net */
  bool looks;                       /* FLUX Kontext, FLUX.2: it looks at the initial picture, and takes all steps */
  bool must_look;                   /* Qwen-Image-Edit, which draws nothing without that */
  int most_pictures;                /* that are looked at, where those may be several; 0: one */
  int blocks;                       /* of a transformer, which may be left out for guidance */
  const rdna__language_reading *reading; /* … how it reads texts */
  int text_tokens;                       /* … that its transformer reads of T5 */
  int text_width, pooled_width;     /* Stable Diffusion 3: values of a token and of a text that the transformer reads */
  bool leaves_t5;                   /* … whose T5 is left out: it says zeros */
  char *transformer_file, *t5_file; /* … whose transformer and T5 are these files, or NULL: the folder's */
  rdna_dtype weights;               /* of blocks: matrices are rounded to it, see rdna__network */
  rdna_image_t5 *t5;                /* a family's text encoders beside CLIP's, or NULL */
  rdna__language *language;
  void *network;            /* … and what it has in place of the U-Net */
  rdna__image_notes *notes; /* of a rehearsal, or NULL */
};

#define RDNA__REFINE_FROM 0.8 /* where nobody says it */
#define RDNA__SKIP_LAYERS "7,8,9"
#define RDNA__SKIP_END 0.2

/* Whether a request's pictures, behind the first, are some that the model looks at; |look|: at their values, too. */
rdna_status rdna__pipeline_check_pictures(const rdna_image_model *model, const rdna_image_request *request, bool look);
/* Whether guidance by left out blocks is the model's, and says which. */
rdna_status rdna__pipeline_check_skipping(const rdna_image_model *model, const rdna_image_request *request);
/* |out_skipped| (blocks), the caller's to free, of a list of numbers. */
rdna_status rdna__pipeline_read_blocks(const rdna_image_model *model, const char *list, bool **out_skipped);

/* |guided|: of two texts. To be given back by _deinit whatever is returned. */
rdna_status rdna__pipeline_encode(rdna_image_model *model, const rdna_image_request *request, bool guided,
                                  rdna__image_texts *out_texts);
void rdna__image_texts_deinit(rdna__image_texts *texts);
/* The last text once more. */
rdna_status rdna__image_texts_repeat(rdna__image_texts *texts);

/* The spacing of |sampler|'s noise levels where nobody asks for one: the folder's, if that sampler has it. */
const char *rdna__pipeline_spacing(const rdna_image_model *model, const char *sampler);
/* Whether the sampler has other spacings than "simple". */
bool rdna__sampler_is_spaced(const char *name);

/* What of a request the model would refuse. */
typedef enum rdna__request_part {
  RDNA__REQUEST_OTHER,
  RDNA__REQUEST_SIDES,
  RDNA__REQUEST_INIT, /* the initial picture: that there is one, or none */
  RDNA__REQUEST_STRENGTH,
  RDNA__REQUEST_STEPS,
  RDNA__REQUEST_SAMPLER,
  RDNA__REQUEST_SPACING,
  RDNA__REQUEST_GUIDES,
  RDNA__REQUEST_LORAS,
  RDNA__REQUEST_REFINER,
  RDNA__REQUEST_REFERENCES,
  RDNA__REQUEST_GUIDANCE /* of perturbed attention, or rescaled */
} rdna__request_part;
/* What rdna_image_model_draw would refuse before it reads the texts, in its sentence; but values are not looked at.
 * |*out_part| is what is wrong. It asks nothing of the device. */
rdna_status rdna__pipeline_check(const rdna_image_model *model, const rdna_image_request *request,
                                 rdna__request_part *out_part);

/* Settings of the file |name| in |folder|, to be given back with json_decref, and where |out_text| is not NULL its
 * text, with free(). */
rdna_status rdna__pipeline_open_settings(const char *folder, const char *name, json_t **out, char **out_text);

/* Brings the part to the device if it is not there, the autoencoder with its encoder if |encodes|. */
rdna_status rdna__pipeline_need_encoder(rdna_image_model *model, int which);
rdna_status rdna__pipeline_need_unet(rdna_image_model *model);
rdna_status rdna__pipeline_need_control(rdna_image_model *model, size_t which);
rdna_status rdna__pipeline_need_autoencoder(rdna_image_model *model, bool encodes);
rdna_status rdna__pipeline_need_preview(rdna_image_model *model); /* where there is one */
void rdna__pipeline_drop_encoders(rdna_image_model *model);
void rdna__pipeline_drop_unet(rdna_image_model *model); /* and ControlNets and the preview */
void rdna__pipeline_drop_autoencoder(rdna_image_model *model);

/* Of a model that is open but for these: what |options| say of autoencoders, if they fit. */
rdna_status rdna__pipeline_keep_autoencoders(rdna_image_model *model, const rdna_image_model_options *options);
rdna_status rdna__pipeline_keep_adapters(rdna_image_model *model, const rdna_image_model_options *options);
rdna_status rdna__pipeline_check_references(const rdna_image_model *model, const rdna_image_request *request);
/* What becomes of a request's pictures for |count| texts, the first of which says what is not to be seen if |guided|.
 */
rdna_status rdna__pipeline_see_references(rdna_image_model *model, const rdna_image_request *request, bool guided,
                                          int count);
/* |uses| (RDNA__PIPELINE_ADAPTERS) of a request whose pictures were seen; returns how many. */
size_t rdna__pipeline_adapters(const rdna_image_model *model, const rdna_image_request *request,
                               rdna_image_adapter_use *uses);
void rdna__pipeline_drop_image_encoder(rdna_image_model *model);
void rdna__pipeline_drop_adapters(rdna_image_model *model);
uint64_t rdna__pipeline_preview_bytes(const rdna_image_model *model); /* of its weights on the device */
/* |out| (3, factor height, factor width): what the preview makes of |latents|. */
rdna_status rdna__pipeline_preview(rdna_image_model *model, const float *latents, int height, int width, float *out);

/* No part is on the device, whose they stay that had them: of a copy of a model. */
void rdna__pipeline_forget_parts(rdna_image_model *copy);
/* Goes through one step of one picture on a device that only counts, whose values are none. */
rdna_status rdna__pipeline_rehearse(rdna_image_model *model, const rdna_image_request *request);
/* In a rehearsal, before a part leaves the device: what it took since another did. */
void rdna__pipeline_note(rdna_image_model *model, const char *part, uint64_t weights);
/* When it has left: gives what it had back to the driver. */
void rdna__pipeline_left(const rdna_image_model *model);

/* ---- models that flow ---- */

/* Brings T5 to the device, of the folder's parts |encoder| and |tokenizer|. */
rdna_status rdna__flow_need_t5(rdna_image_model *model, const char *encoder, const char *tokenizer);
/* Without it: how many tokens |text| has, and how many of them are read of |most| with the end. */
rdna_status rdna__flow_t5_tokens(const rdna_image_model *model, const char *encoder, const char *tokenizer,
                                 const char *text, int most, size_t *out_count, size_t *out_read);
/* Settings of the part |name|: of its folder, or of |file|, unless that is NULL. */
rdna_status rdna__flow_open_settings(const rdna_image_model *model, const char *file, const char *name, json_t **out);
/* Drop what is on the device. */
void rdna__flow_drop_encoders(rdna_image_model *model);
void rdna__flow_drop_network(rdna_image_model *model);
/* Texts by the language model in the folder, which is brought to the device: |out_texts| of |count| texts, up to two,
 * each read with |pictures| (picture_count); to be given back by rdna__image_texts_deinit whatever is returned. */
rdna_status rdna__language_texts(rdna_image_model *model, const rdna__language_reading *reading,
                                 const char *const *texts, int count, const rdna__language_picture *pictures,
                                 int picture_count, rdna__image_texts *out_texts);
/* As rdna__image_family has it. */
rdna_status rdna__language_count(const rdna_image_model *model, const rdna__language_reading *reading, const char *text,
                                 size_t *out_count, size_t *out_read);
rdna_status rdna__flow_schedule(const rdna_image_model *model, const rdna_image_request *request,
                                rdna_image_flow **out_flow);
/* The step that is taken first. */
int rdna__flow_first(const rdna_image_model *model, const rdna_image_request *request);

#endif
