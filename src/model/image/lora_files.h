/* Files of LoRAs, and what they call a module: see lora.h. */
#ifndef RDNA_MODEL_IMAGE_LORA_FILES_H
#define RDNA_MODEL_IMAGE_LORA_FILES_H

#include "model/image/lora.h"

enum { RDNA__LORA_NAME = 512, RDNA__LORA_BASES = 20 };

typedef struct rdna__lora_file {
  rdna__safetensors *tensors;
  char *path;
  double opened, scale; /* what it is added by: as it was opened, and now; 0: it is left out */
  bool *used;           /* (tensors) */
  struct {
    double rank, scale; /* alpha / rank; rank 0: nothing is said */
  } said[LORA_PARTS];   /* by the file of itself */
} rdna__lora_file;

struct rdna__loras {
  rdna__lora_file files[RDNA__IMAGE_LORAS];
  int count;
  rdna__lora_target target;
};

/* Whose a tensor is; LORA_PARTS: nobody's. */
rdna__lora_part rdna__lora_owner(const rdna__lora_target *target, const char *name);

/* What stands before a tensor's own name, of a module or of several in one, of which it is some rows. */
typedef struct rdna__lora_base {
  char name[RDNA__LORA_NAME];
  int first, end, parts; /* rows [first, end) of |parts| shares */
  bool made_first;       /* by the names of the makers of a transformer, whose last norm shifts before it scales */
} rdna__lora_base;

/* All that files may call it; returns how many. */
int rdna__lora_names(const rdna__lora_module *module, rdna__lora_base out_bases[RDNA__LORA_BASES]);

/* The tensor |base|.|kind| of the file, which counts as used if |use|; NULL: there is none. */
const rdna__safetensor *rdna__lora_ask(const rdna__lora_file *file, const char *base, const char *kind, bool use);

#endif
