/* One component of a folder that diffusers saved, as "unet" or "vae", or of a file that has all of them: its settings,
 * and its tensors on their way to a device. Each tensor of the file is to be asked for, or the model is another one
 * than its settings say. */
#ifndef RDNA_MODEL_IMAGE_COMPONENT_H
#define RDNA_MODEL_IMAGE_COMPONENT_H

#include "base/strmap.h"
#include "model/image/checkpoint.h"
#include "model/image/lora.h"
#include "model/image/settings.h"
#include "model/weights/safetensors.h"
#include "rdna/device.h"

enum { RDNA__COMPONENT_NAME = 160 }; /* bytes of a tensor's name that is asked for, and its end */

/* What a network has on its device. Zeros but for |device| and |dtype| are an empty one. */
typedef struct rdna__network {
  rdna_device *device;
  rdna_dtype dtype;   /* of activations and of weights of products: f32, f16 or bf16. Those of norms are f32 */
  rdna_dtype weights; /* of blocks: matrices of floats are rounded to it as they are loaded, or to what fits their rows
                         (see rdna__weight_type_fitting). Another: they have the network's type */
  void **blocks;      /* (count) */
  size_t count, capacity;
  size_t bytes;
} rdna__network;

/* Gives the weights back. */
void rdna__network_deinit(rdna__network *network);
/* Memory of the network for a contiguous tensor. */
rdna_status rdna__network_tensor(rdna__network *network, rdna_dtype dtype, int rank, const int64_t *shape,
                                 rdna_tensor *out);
/* Memory of the network for a convolution's (out, in, height, width), in its type and laid out with channels last. */
rdna_status rdna__network_window(rdna__network *network, int64_t out, int64_t in, int64_t height, int64_t width,
                                 rdna_tensor *out_weight);

typedef struct rdna__component {
  json_t *settings;
  rdna__safetensors *tensors;
  rdna__checkpoint_part part; /* of one file: how its tensors are called there */
  rdna__strmap read;          /* names in the file that were asked for */
  rdna__network *network;
  rdna__safetensor view; /* of a part of a tensor */
  bool transposed;       /* the tensor that was found last lies so in the file */
  bool kept;             /* matrices that are loaded now are not rounded to the network's blocks */
  rdna__loras *loras;    /* NULL: weights are as the file has them */
  rdna__lora_part of;
  rdna__checkpoint_part names; /* those of one file, which LoRAs may use wherever the component is from */
} rdna__component;

/* config.json of |folder| and |stem|.safetensors, "diffusion_pytorch_model" for diffusers and "model" for transformers,
 * or the files that |stem|.safetensors.index.json lists; where there is neither, their variant fp16. Where |folder| is
 * a name behind that of a file, "model.safetensors/unet", it is that part of rdna__checkpoint_read; of "unet" the rest
 * of the model need not be there. What is loaded belongs to |network|. RDNA_NOT_FOUND, RDNA_BAD_DATA,
 * RDNA_OUT_OF_MEMORY; nothing is to be closed then. */
rdna_status rdna__component_open(const char *folder, const char *stem, rdna__network *network,
                                 rdna__component *out_component);
void rdna__component_close(rdna__component *component); /* of zeros is fine */

/* What is loaded from here on has the changes of |loras|, which must stay, or NULL. */
void rdna__component_change(rdna__component *component, rdna__loras *loras, rdna__lora_part part,
                            const rdna__checkpoint_part *names);

/* All functions below: the name of a tensor is |prefix|, a point and |name|; or one of them where the other is "". */

/* -1: there is no such tensor. */
int rdna__component_rank(rdna__component *component, const char *prefix, const char *name);
/* A tensor of exactly that shape, contiguous, of floats or blocks in the file, as |dtype| on the device.
 * RDNA_BAD_DATA: it is missing or of another shape. RDNA_UNSUPPORTED: another type. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__component_load(rdna__component *component, const char *prefix, const char *name, rdna_dtype dtype,
                                 int rank, const int64_t *shape, rdna_tensor *out);
/* A matrix that products read, (out, in) or a window of 1 x 1: of blocks, where the file's are, or as the network says
 * under |weights|. */
rdna_status rdna__component_load_matrix(rdna__component *component, const char *prefix, const char *name, int64_t out,
                                        int64_t in, rdna_tensor *out_weight);
/* The same, where blocks of the file stay as they are if LoRAs change them by products of two matrices: those are
 * |out_down| (rank, in) and |out_up| (out, rank) of the network's type, and else without data. */
rdna_status rdna__component_load_beside(rdna__component *component, const char *prefix, const char *name, int64_t out,
                                        int64_t in, rdna_tensor *out_weight, rdna_tensor *out_down,
                                        rdna_tensor *out_up);
/* A convolution's, as rdna__network_window lays it out. */
rdna_status rdna__component_load_window(rdna__component *component, const char *prefix, const char *name, int out,
                                        int in, int height, int width, rdna_tensor *out_weight);
/* Of a convolution over |time|, height and width, (out, in, time, height, width), what reads the last of its times, as
 * a window: all that counts of one that sees no later times where there are no earlier ones. */
rdna_status rdna__component_load_last_window(rdna__component *component, const char *prefix, const char *name, int out,
                                             int in, int time, int height, int width, rdna_tensor *out_weight);
/* A tensor as |to| is, contiguous memory of the caller's. */
rdna_status rdna__component_fetch(rdna__component *component, const char *prefix, const char *name,
                                  const rdna_tensor *to);
/* Tensors whose names begin with |prefix|, of one file behind the part's own, count as read. */
rdna_status rdna__component_leave(rdna__component *component, const char *prefix);
/* RDNA_UNSUPPORTED: some tensor was not asked for; the sentence names one. RDNA_BAD_DATA: some of a LoRA's. Waits until
 * all is on the device. */
rdna_status rdna__component_check_all_read(const rdna__component *component);

/* Whether |path| is a file, and so has all parts of a model. */
bool rdna__component_is_file(const char *path);

#endif
