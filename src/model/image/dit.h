/* What transformers of pictures that flow have in common, over blocks.h: tokens are rows of a matrix, blocks are
 * modulated by rows that a product makes of the timestep, and heads turn by a token's coordinates. */
#ifndef RDNA_MODEL_IMAGE_DIT_H
#define RDNA_MODEL_IMAGE_DIT_H

#include "model/image/blocks.h"

enum { RDNA__DIT_AXES = 4, RDNA__DIT_MOST_EMBEDDED = 1 << 10, RDNA__DIT_ONES = 3 };

/* ---- loading ---- */

/* What reads and makes f32: of a bias of f32, if it is |biased|, and a weight of the network's type. */
rdna_status rdna__dit_load_wide(rdna__component *c, const char *prefix, const char *name, int in, int out, bool biased,
                                rdna__image_linear *out_linear);
/* (count), f32. */
rdna_status rdna__dit_load_vector(rdna__component *c, const char *prefix, const char *name, int count,
                                  rdna_tensor *out);
/* A tensor whose first dimension is 1, which files of GGUF leave out. */
rdna_status rdna__dit_load_one(rdna__component *c, const char *name, rdna_dtype dtype, int rank, const int64_t *shape,
                               rdna_tensor *out);

typedef struct rdna__dit_embedding { /* second(silu(first(x))), of f32 */
  rdna__image_linear first, second;
} rdna__dit_embedding;
/* |prefix| with the layers |names|. */
rdna_status rdna__dit_load_embedding(rdna__component *c, const char *prefix, const char *const names[2], int in,
                                     int hidden, int out, bool biased, rdna__dit_embedding *out_embedding);

typedef struct rdna__dit_axes {            /* how heads turn */
  int values[RDNA__DIT_AXES];              /* of a head, that turn with each coordinate; each even */
  rdna_tensor frequencies[RDNA__DIT_AXES]; /* (half of them), f32; data NULL: there are none */
} rdna__dit_axes;
/* Pair i of an axis of d values turns by theta^(-2 i / d) a place. |out->values| are set, up to 512. */
rdna_status rdna__dit_make_axes(rdna__network *network, double theta, rdna__dit_axes *out);

/* ---- running ---- */

/* Rows, or columns, [first, first + count) of a matrix. */
rdna_tensor rdna__dit_rows(const rdna_tensor *t, int64_t first, int64_t count);
rdna_tensor rdna__dit_columns(const rdna_tensor *t, int64_t first, int64_t count);

/* |out|, which has been made, of rows |x|. */
rdna_status rdna__dit_linear(const rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *x,
                             const rdna_tensor *out);
/* The same where rows are |values| of host memory, f32, and |out| is of the pass's type. Rows are normed in f32 first
 * by their root mean squares and |norm|, unless it has no data. */
rdna_status rdna__dit_linear_of(rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *norm,
                                double epsilon, const float *values, const rdna_tensor *out);
/* |values| of host memory become by(h), after which all has been waited for. */
rdna_status rdna__dit_linear_to(rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *h,
                                float *values);
/* out (1, width) += by(values), or = for the |first|; values of host memory, f32 as |out| is. */
rdna_status rdna__dit_embed(rdna__image_pass *pass, const rdna__dit_embedding *by, const float *values, bool first,
                            const rdna_tensor *out);
/* The same of a number by as many cosines and sines as the embedding reads, up to RDNA__DIT_MOST_EMBEDDED. */
rdna_status rdna__dit_embed_number(rdna__image_pass *pass, const rdna__dit_embedding *by, double number, bool first,
                                   const rdna_tensor *out);

typedef struct rdna__dit_modulation {
  int64_t width;      /* of a part */
  rdna_tensor wide;   /* (1, parts width), f32 */
  rdna_tensor narrow; /* the same in the pass's type, which gates are read in */
} rdna__dit_modulation;
/* by(|conditions|), f32, to which 1 is added in the parts |ones|, that scale; behind the last of up to three is -1. */
rdna_status rdna__dit_modulate(rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *conditions,
                               int64_t width, const int ones[RDNA__DIT_ONES], rdna__dit_modulation *out);
rdna_status rdna__dit_drop_modulation(rdna__image_pass *pass, rdna__dit_modulation *m);
/* Part |part| of |of|, (width). */
rdna_tensor rdna__dit_part(const rdna_tensor *of, int64_t width, int part);
/* out = norm(x) scale + shift, of two parts; over a row, without weights of its own. |shift| -1: none. */
rdna_status rdna__dit_norm(const rdna__image_pass *pass, const rdna__dit_modulation *m, int scale, int shift,
                           double epsilon, const rdna_tensor *x, const rdna_tensor *out);
/* x += gate h */
rdna_status rdna__dit_add_gated(const rdna__image_pass *pass, const rdna__dit_modulation *m, int gate,
                                const rdna_tensor *h, const rdna_tensor *x);

/* Rows of |t| in heads of |weight|'s values: each head's norm of root mean squares. */
rdna_status rdna__dit_norm_heads(const rdna__image_pass *pass, const rdna_tensor *weight, double epsilon,
                                 const rdna_tensor *t);
/* Turns heads of |t|'s rows by their coordinates |positions| (axes), each (rows), i32, or without data: at 0. */
rdna_status rdna__dit_turn(rdna__image_pass *pass, const rdna__dit_axes *axes, const rdna_tensor *positions, int head,
                           const rdna_tensor *t);
/* |out| = attention of all rows with heads of |head| values; |out| overlaps none of them. */
rdna_status rdna__dit_attend(const rdna__image_pass *pass, int head, const rdna_tensor *q, const rdna_tensor *k,
                             const rdna_tensor *v, const rdna_tensor *out);

/* ---- tokens of p x p places: host memory ---- */

typedef enum rdna__dit_order {
  DIT_CHANNELS_FIRST, /* (channel, row, column) of a sample is value p (p channel + row) + column of its token */
  DIT_CHANNELS_LAST   /* … (p row + column) channels + channel */
} rdna__dit_order;
void rdna__dit_pack(rdna__dit_order order, int p, const float *sample, int channels, int height, int width,
                    float *tokens);
void rdna__dit_unpack(rdna__dit_order order, int p, const float *tokens, int channels, int height, int width,
                      float *sample);

#endif
