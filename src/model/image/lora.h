/* Low-rank changes of a model of pictures ("LoRA", Hu et al., 2022), added to its weights when these are loaded, or
 * loaded beside weights that are to stay as they are. */
#ifndef RDNA_MODEL_IMAGE_LORA_H
#define RDNA_MODEL_IMAGE_LORA_H

#include "model/image/checkpoint.h"
#include "rdna/image_model.h"
#include "rdna/stream.h"

/* The network is a U-Net or a transformer. */
typedef enum rdna__lora_part { LORA_NETWORK, LORA_ENCODER, LORA_ENCODER_2, LORA_T5, LORA_PARTS } rdna__lora_part;

/* What a model has of these parts. */
typedef struct rdna__lora_target {
  bool flows;   /* the network is a transformer that flows */
  int encoders; /* of CLIP's */
  bool has_t5;
} rdna__lora_target;

/* A weight, which diffusers calls |name|.weight, or a bias, |name|.bias. */
typedef struct rdna__lora_module {
  rdna__lora_part part;
  const rdna__checkpoint_part *names; /* those of whole files, which some use */
  bool swapped; /* a transformer's last norm shifts before it scales, as its makers' files have it */
  const char *name;
  bool bias;
} rdna__lora_module;

typedef struct rdna__loras rdna__loras;
enum { RDNA__IMAGE_LORAS = 32 };

/* Files are read from |given| (count), which need not stay; each tensor's name says which part it is for.
 * RDNA_NOT_FOUND, RDNA_BAD_DATA, RDNA_UNSUPPORTED, RDNA_OUT_OF_MEMORY. */
rdna_status rdna__loras_open(const rdna_image_lora *given, int count, const rdna__lora_target *target,
                             rdna__loras **out_loras);
void rdna__loras_close(rdna__loras *loras);      /* NULL is fine */
int rdna__loras_count(const rdna__loras *loras); /* NULL: 0 */
const char *rdna__loras_path(const rdna__loras *loras, int i);
double rdna__loras_opened_scale(const rdna__loras *loras, int i);
/* From now on each is added |scales| times (count), or where that is NULL as it was opened; one of 0 is left out.
 * |used| becomes these; returns whether it was something else. NULL is fine, and has none. */
bool rdna__loras_use(rdna__loras *loras, const double *scales, double used[RDNA__IMAGE_LORAS]);

/* Whether any changes the module. |loras| NULL: none does. */
bool rdna__loras_change(const rdna__loras *loras, const rdna__lora_module *module);
/* Adds all changes to |weight|, contiguous f32 on the stream's device, whose first dimension is what it makes and whose
 * others are what it reads. RDNA_BAD_DATA: a change is of another shape. RDNA_UNSUPPORTED: one of a kind that is not
 * known. */
rdna_status rdna__loras_add(rdna__loras *loras, const rdna__lora_module *module, rdna_stream *stream,
                            const rdna_tensor *weight);
/* The rank of all changes of the module together, if each is a product of two matrices; else 0. */
int64_t rdna__loras_rank(const rdna__loras *loras, const rdna__lora_module *module);
/* These matrices side by side, with which the weight is W + up down: |down| (rank, in) and |up| (out, rank), contiguous
 * floats on the stream's device. Fails as rdna__loras_add. */
rdna_status rdna__loras_load(rdna__loras *loras, const rdna__lora_module *module, rdna_stream *stream,
                             const rdna_tensor *down, const rdna_tensor *up);
/* RDNA_BAD_DATA: a file has tensors for the part that nothing of it asked for. */
rdna_status rdna__loras_check_used(const rdna__loras *loras, rdna__lora_part part);

#endif
