/* A folder of PEFT's (github.com/huggingface/peft): a low-rank adapter that was trained on a Hugging Face model. */
#ifndef RDNA_MODEL_WEIGHTS_PEFT_H
#define RDNA_MODEL_WEIGHTS_PEFT_H

#include "rdna/model.h"

/* Opens |folder| (adapter_config.json, adapter_model.safetensors) as the GGUF file that it would become for a model of
 * |architecture|, by GGUF's name, whose heads have |head_dim| values. Factors of single matrices are in their B.
 * RDNA_NOT_FOUND, RDNA_BAD_DATA, RDNA_UNSUPPORTED: with the file and what is wrong in it. */
rdna_status rdna__peft_open(const char *folder, const char *architecture, int head_dim, rdna_gguf **out_file);
/* The same of the files' bytes, |config| and |weights|. */
rdna_status rdna__peft_read(rdna_text config, rdna_text weights, const char *architecture, int head_dim,
                            rdna_gguf **out_file);

#endif
