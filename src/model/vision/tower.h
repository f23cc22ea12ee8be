/* Towers, inside: a row of layers in which all patches of a picture see each other, or those of a window.
 *
 *     pixels -- patches -- product (+ positions) -- layers -- norm -- what makes fewer tokens of them -- product --
 * rows
 *
 * A kind is one file of this folder, with one struct of hooks, and a row in vision.c. */
#ifndef RDNA_MODEL_VISION_TOWER_H
#define RDNA_MODEL_VISION_TOWER_H

#include "model/nn/nn.h"
#include "model/vision/resize.h"
#include "rdna/vision.h"

/* Makes a row of the model's width of neighbouring patches: a product, a GELU, a product. */
typedef struct rdna__vision_merger {
  rdna__nn_norm norm;                     /* of all their values; weight.data NULL: none */
  rdna__matrix_weights inner, projection; /* weight.data NULL: projection alone, or there is no merger */
} rdna__vision_merger;

typedef struct rdna__vision_layer {
  rdna__nn_norm attention_norm, ffn_norm;
  rdna__matrix_weights q, k, v, out;
  rdna__nn_ffn ffn;
  bool windowed;            /* patches see those of their window alone */
  rdna__vision_merger deep; /* of what the layer gives, for the language model's next of these (DeepStack) */
} rdna__vision_layer;

typedef struct rdna__vision_kind rdna__vision_kind;

struct rdna_vision {
  const rdna__vision_kind *kind;
  rdna__weights weights;
  rdna_vision_info info;
  rdna__nn_decoder norms; /* of which norms read their kind, epsilon and width */
  int heads, hidden;
  int side;                          /* tokens are made of so many patches in height and width */
  int image;                         /* pixels of a side, where all pictures have one size */
  int64_t least_pixels, most_pixels; /* where they have not */
  int period;                        /* of so many layers in a row all but the last have windows; 0: none has */
  int window;                        /* tokens of a side of one */
  double mean[3], deviation[3];      /* of the pixels' colours, from 0 to 1 */
  rdna_tensor patches;               /* (width, 3 patch patch), f32 */
  rdna_tensor patch_bias;            /* (width); data NULL: none */
  rdna_tensor positions;             /* (patches, width), f32; data NULL: none */
  int grid; /* those are of a square with so many on a side, whose corners are the picture's; 0: of the patches */
  rdna_tensor row_freq, column_freq; /* by which heads turn; data NULL: they do not. See rdna__nn_rotation */
  rdna__nn_norm last_norm;
  rdna_tensor soft_norm; /* of tokens that were averaged */
  rdna__vision_merger merger;
  rdna__vision_layer *layers;
};

/* One picture on its way. Patches lie in any order in which those of a token are neighbours, or row by row. */
typedef struct rdna__vision_pass {
  const rdna_vision *vision;
  rdna__nn_pass nn; /* its stream, its count and a place for feed-forward blocks */
  rdna__scratch scratch;
  rdna_llm_picture picture; /* in tokens */
  int32_t *order; /* (tokens): which token the next |side| |side| patches are of; NULL: patches go row by row */
  rdna_tensor starts, all;           /* of windows, and of the one that all patches are: see rdna_sdpa */
  rdna_tensor rows, columns;         /* (patches), i32: where they stand */
  int most;                          /* patches of a window */
  rdna_tensor x, h, q, k, v, branch; /* (patches, width) */
} rdna__vision_pass;

struct rdna__vision_kind {
  const char *projector;        /* clip.projector_type */
  const char *architectures[4]; /* of the language models that it is for; NULL behind the last */
  /* Of a prompt: what chat templates put for a picture, and what then stands before its tokens and behind them. */
  const char *mark, *before, *after;
  rdna__filter filter;
  bool gated;
  rdna__nn_gate activation;
  /* Reads the kind's own keys and tensors. Common ones were read, and those of all layers are afterwards. */
  rdna_status (*load)(rdna_vision *vision);
  /* How many tokens a picture becomes. */
  rdna_status (*measure)(const rdna_vision *vision, int height, int width, rdna_llm_picture *out_picture);
  /* Orders the patches, in pass->order; NULL: they go row by row. */
  rdna_status (*arrange)(rdna__vision_pass *pass, int32_t *starts, int *out_count);
  /* |rows| (tokens, row) of pass->x; and by a layer's merger, where some layer has one. That leaves x as it is, and
   * writes to h and branch. */
  rdna_status (*project)(rdna__vision_pass *pass, const rdna_tensor *rows);
  rdna_status (*deepen)(rdna__vision_pass *pass, const rdna__vision_merger *merger, const rdna_tensor *rows);
};

extern const rdna__vision_kind rdna__vision_gemma3, rdna__vision_qwen25, rdna__vision_qwen3;

/* From vision.c. |*out| (height, width, 3), the caller's to free: |pixels| at the size that the tokens of |picture| ask
 * for, *out_height x *out_width. */
rdna_status rdna__vision_fit(const rdna_vision *vision, const rdna_llm_picture *picture, const uint8_t *pixels,
                             int height, int width, uint8_t **out, int *out_height, int *out_width);
/* From run.c. Runs the tower over |pixels| (height, width, 3), which have the size that the tokens ask for. */
rdna_status rdna__vision_run(rdna_vision *vision, const rdna_llm_picture *picture, const uint8_t *pixels,
                             float *out_rows);

#endif
