/* A Hugging Face folder as a GGUF file. */
#ifndef RDNA_MODEL_WEIGHTS_CONVERT_H
#define RDNA_MODEL_WEIGHTS_CONVERT_H

#include "model/weights/quantize.h"

typedef struct rdna__conversion {
  char architecture[32];  /* general.architecture */
  char tokenizer[32];     /* tokenizer.ggml.model */
  char pre_tokenizer[64]; /* tokenizer.ggml.pre; "" when there is none */
  bool has_chat_template;
  rdna__weight_counts counts; /* after */
} rdna__conversion;

/* Writes what |folder| holds (config.json, model.safetensors or its parts, tokenizer.json or tokenizer.model,
 * tokenizer_config.json, generation_config.json, chat_template.jinja, 1_Pooling/config.json) to |path|, under
 * llama.cpp's names, with its matrices in |type|, or as they are where it is RDNA_DTYPE_COUNT; rdna__weight_type_for
 * says which tensors are another. MXFP4 stays MXFP4. A folder without a tokenizer gives a model for token ids only.
 * RDNA_NOT_FOUND, RDNA_BAD_DATA, RDNA_UNSUPPORTED: with the file and what is wrong in it; nothing is written then. */
rdna_status rdna__convert(const char *folder, const char *path, rdna_dtype type, rdna_device *device,
                          void (*progress)(void *data, double share), void *progress_data,
                          rdna__conversion *out_conversion);

/* rdna_model_open of a folder whose tokenizer's files are in another one, |tokenizer|. */
rdna_status rdna__model_open_folder(const char *folder, const char *tokenizer, rdna_gguf **out_file);

/* The same of the folder's tower, which sees pictures: config.json, preprocessor_config.json and the weights, matrices
 * as they are and what else there is in f32. RDNA_UNSUPPORTED: the folder has none, or one of another kind. */
rdna_status rdna__convert_vision(const char *folder, const char *path, void (*progress)(void *data, double share),
                                 void *progress_data);

/* What that would write, open, of a folder whose processor's settings are in another one, |processor|: in
 * preprocessor_config.json, or as "image_processor" in processor_config.json. */
rdna_status rdna__model_open_tower(const char *folder, const char *processor, rdna_gguf **out_file);

#endif
