/* Pictures for language models: a tower, which is a network of its own with a file of its own ("mmproj"), makes of a
 * picture's pixels the vectors that a language model reads in place of tokens' embeddings (rdna_llm_picture). */
#ifndef RDNA_VISION_H
#define RDNA_VISION_H

#include "rdna/llm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_vision rdna_vision; /* one thread at a time */

typedef struct rdna_vision_info {
  char projector[32];    /* the kind: clip.projector_type of the file */
  int layers, width;     /* of the tower */
  int row;               /* values of a row of its result: the language model's width */
  int patch;             /* pixels of a side of what its tokens are made of */
  int most_tokens;       /* that a picture becomes */
  uint64_t weight_bytes; /* on the device */
  int deepstack;         /* rows of a token beside the first, which the language model's first layers add */
} rdna_vision_info;

/* Puts the tower of |file|, as llama.cpp's converter writes them (general.architecture clip), on |device|. On the host
 * weights are used where the file is mapped, so |file| must stay open until the tower is released, which keeps the
 * device alive. Kinds: gemma3 (SigLIP, Zhai et al., 2023, whose tokens are averaged in squares),
 * qwen2.5vl_merger (Bai et al., 2025, with windows), qwen3vl_merger (Qwen3-VL, 2025, with DeepStack). RDNA_UNSUPPORTED:
 * another architecture, kind or tensor type, by name. RDNA_BAD_DATA: missing keys or tensors, shapes or numbers that
 * make no sense. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_vision_open(rdna_device *device, const rdna_gguf *file, rdna_vision **out_vision);
RDNA_API void rdna_vision_release(rdna_vision *vision); /* NULL is fine */
/* Borrowed; lives as long as the tower. */
RDNA_API const rdna_vision_info *rdna_vision_get_info(const rdna_vision *vision);
/* RDNA_INVALID_ARGUMENT: the tower is of another family of models than that of |model|, a language model's file, or its
 * rows have another width, or a token has more or fewer of them. RDNA_NOT_FOUND, RDNA_BAD_DATA: that says neither. */
RDNA_CHECKED rdna_status rdna_vision_check(const rdna_vision *vision, const rdna_gguf *model);

/* Sets |out_picture|'s height and width to how many tokens a picture of |height| x |width| pixels becomes; its rows are
 * left alone. RDNA_INVALID_ARGUMENT: a side below 1 or above 16,384, or one that is 200 times as long as the other or
 * more. */
RDNA_CHECKED rdna_status rdna_vision_measure(const rdna_vision *vision, int height, int width,
                                             rdna_llm_picture *out_picture);
/* |out_rows| (1 + deepstack, tokens, row), f32 in host memory, of |pixels| (height, width, 3): red, green and blue, 0
 * to 255. The picture is resized as Pillow 12 does it and transformers' processor of the kind asks for.
 * RDNA_INVALID_ARGUMENT: as above. RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_vision_see(rdna_vision *vision, const uint8_t *pixels, int height, int width,
                                         float *out_rows);

#ifdef __cplusplus
}
#endif
#endif
