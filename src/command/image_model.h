/* A model of pictures and its files, as rdna image and rdna serve are told of them. */
#ifndef RDNA_COMMAND_IMAGE_MODEL_H
#define RDNA_COMMAND_IMAGE_MODEL_H

#include "command/adapters.h"
#include "rdna/image_model.h"

enum { FILE_NAME_BYTES = 128 };

typedef struct image_model_choice {
  const char *tokenizer, *prediction, *transformer, *t5, *vae, *preview, *refiner, *weights, *type;
  option_texts embeddings, controls; /* FILE[:WORD]; [NAME=]FOLDER */
} image_model_choice;
#define IMAGE_MODEL_CHOICE_DEFAULT {.type = "auto"}

/* Their rows in a table of options, but for --control. */
#define IMAGE_MODEL_OPTIONS(c)                                                                                         \
  {                                                                                                                    \
      "--embedding",                                                                                                   \
      OPTION_TEXTS,                                                                                                    \
      &(c).embeddings,                                                                                                 \
      "FILE[:WORD]",                                                                                                   \
      "what a word stands for in texts; several times",                                                                \
      0,                                                                                                               \
      0},                                                                                                              \
      {"--tokenizer",                                                                                                  \
       OPTION_TEXT,                                                                                                    \
       &(c).tokenizer,                                                                                                 \
       "FOLDER",                                                                                                       \
       "of a model in one file: where CLIP's vocabulary is",                                                           \
       0,                                                                                                              \
       0},                                                                                                             \
      {"--prediction",                                                                                                 \
       OPTION_CHOICE,                                                                                                  \
       &(c).prediction,                                                                                                \
       "epsilon|v_prediction",                                                                                         \
       "of a model in one file: what it was trained to answer",                                                        \
       0,                                                                                                              \
       0},                                                                                                             \
      {"--transformer",                                                                                                \
       OPTION_TEXT,                                                                                                    \
       &(c).transformer,                                                                                               \
       "FILE",                                                                                                         \
       "the transformer or U-Net in a GGUF or safetensors file, not the folder's",                                     \
       0,                                                                                                              \
       0},                                                                                                             \
      {"--refiner", OPTION_TEXT, &(c).refiner, "FOLDER", "XL's, which takes the last steps", 0, 0},                    \
      {"--t5", OPTION_TEXT, &(c).t5, "FILE", "the same of T5", 0, 0},                                                  \
      {"--vae", OPTION_TEXT, &(c).vae, "FOLDER", "another autoencoder that makes the pictures, or a file of TAESD", 0, \
       0},                                                                                                             \
      {"--preview-model",                                                                                              \
       OPTION_TEXT,                                                                                                    \
       &(c).preview,                                                                                                   \
       "FILE",                                                                                                         \
       "the same, by which steps are shown while they are taken",                                                      \
       0,                                                                                                              \
       0},                                                                                                             \
      {"--weights",                                                                                                    \
       OPTION_TEXT,                                                                                                    \
       &(c).weights,                                                                                                   \
       "TYPE",                                                                                                         \
       "round matrices to q8_0, q5_K, q4_K … while they are loaded, for less memory",                                  \
       0,                                                                                                              \
       0},                                                                                                             \
      {"--type",                                                                                                       \
       OPTION_CHOICE,                                                                                                  \
       &(c).type,                                                                                                      \
       "auto|f32|f16|bf16",                                                                                            \
       "to compute in (auto: f16 on a GPU, FLUX bf16; f32 on the host)",                                               \
       0,                                                                                                              \
       0}

/* What they say, and what rdna_image_model_options points to. */
typedef struct image_model_files {
  rdna_image_model_options options;
  adapter_option adapters[OPTION_TEXTS_MOST];
  rdna_image_lora loras[OPTION_TEXTS_MOST];
  rdna_image_embedding embeddings[OPTION_TEXTS_MOST];
  char embedding_paths[OPTION_TEXTS_MOST][4096];
  const char *controls[OPTION_TEXTS_MOST];
  const char *ip_adapters[OPTION_TEXTS_MOST]; /* of IP-Adapters, whom the caller counts */
  /* By which a request names them: as the option says it, or the file's without its ending */
  char lora_names[OPTION_TEXTS_MOST][FILE_NAME_BYTES], control_names[OPTION_TEXTS_MOST][FILE_NAME_BYTES],
      adapter_names[OPTION_TEXTS_MOST][FILE_NAME_BYTES];
} image_model_files;

/* The type that --type names; RDNA_DTYPE_COUNT for "auto". */
rdna_dtype read_image_type(const char *name);

/* [NAME=]FILE as |option| was given it, or a folder; a name has no slash. Without one it is the file's, without
 * .safetensors or .pth. */
rdna_status read_named_file(const char *option, const char *text, const char **out_path, char name[FILE_NAME_BYTES]);

/* The caller frees |*out|, also after a failure; it must stay while its options are used. */
rdna_status read_image_model(const image_model_choice *choice, const option_texts *loras, image_model_files **out);

#endif
