/* Blocks of which the networks of pictures are made, over rdna_op. An image is a tensor (n, channels, height, width)
 * that lies with channels last, so that it is at the same time the matrix (n height width, channels) of its tokens. */
#ifndef RDNA_MODEL_IMAGE_BLOCKS_H
#define RDNA_MODEL_IMAGE_BLOCKS_H

#include "model/image/component.h"
#include "rdna/stream.h"

/* ---- What a pass through a network holds ---- */

enum { RDNA__PASS_MOST = 64 };

typedef struct rdna__image_pass {
  rdna_stream *stream;
  rdna_dtype dtype;   /* the network's */
  const char *holder; /* for reports of memory: a static string */
  int count;
  void *blocks[RDNA__PASS_MOST]; /* of memory that tensors of the pass have */
} rdna__image_pass;

/* Memory for a contiguous tensor, or an image with channels last, of |dtype|. What is in it is not set. */
rdna_status rdna__pass_tensor(rdna__image_pass *pass, rdna_dtype dtype, int rank, const int64_t *shape,
                              rdna_tensor *out);
rdna_status rdna__pass_image(rdna__image_pass *pass, int64_t n, int64_t channels, int64_t height, int64_t width,
                             rdna_tensor *out); /* of the pass's type */
/* Gives the memory of |t|, or of nothing where its data is NULL, back to the stream; its data is NULL then. */
rdna_status rdna__pass_drop(rdna__image_pass *pass, rdna_tensor *t);
/* Gives all back. Returns |status| if that is a failure. */
rdna_status rdna__pass_end(rdna__image_pass *pass, rdna_status status);

/* |image| as its tokens: (n, height width, channels). Borrows. */
rdna_tensor rdna__image_tokens(const rdna_tensor *image);

/* ---- Parts ---- */

typedef struct rdna__image_linear {
  rdna_tensor weight, bias; /* (out, in), (out) of the network's type; bias.data NULL: none */
  rdna_tensor down, up;     /* (rank, in), (out, rank): the weight is W + up down, of a W in blocks that LoRAs change;
                               data NULL: it is W */
} rdna__image_linear;

typedef struct rdna__image_norm { /* over groups of channels */
  rdna_tensor weight, bias;       /* (channels), f32; bias of groups alone */
  int groups;                     /* 0: each place's channels are divided by the root of their mean square */
  double epsilon;
} rdna__image_norm;

typedef struct rdna__image_conv {
  rdna_tensor weight, bias;          /* (out, in, window, window) with channels last, (out); data NULL: there is none */
  int stride, pad_before, pad_after; /* alike in both directions */
} rdna__image_conv;

/* Nearest values at twice the height and width, then a convolution of 3 x 3; the larger image is never made:
 * see doubling.c. */
typedef struct rdna__image_doubling {
  rdna_tensor weight[2][2], bias; /* (out, in, 2, 2) with channels last of the results above and below, left and right;
                                     (out), with data NULL where there is none. weight[0][0].data NULL: there is no
                                     doubling */
} rdna__image_doubling;

/* x + h, or shortcut(x) + h, over |divisor|, where
 *
 *     x -- norm1 -- SiLU -- conv1 -- (+ time silu(embedding)) -- norm2 -- SiLU -- conv2 -- h          */
typedef struct rdna__image_resnet {
  rdna__image_norm norm1, norm2;
  rdna__image_conv conv1, conv2, shortcut;
  rdna__image_linear time; /* weight.data NULL: none */
  float divisor;           /* 1: none */
} rdna__image_resnet;

/* x + out(attention(norm(x))), all tokens of an image with each other */
typedef struct rdna__image_attention {
  rdna__image_norm norm;
  rdna__image_linear q, k, v, out;
  int heads;
} rdna__image_attention;

/* ---- Loading: names are |prefix| and those of diffusers behind it ---- */

typedef struct rdna__image_window { /* of a convolution */
  int in, out, size, stride, pad_before, pad_after;
} rdna__image_window;

/* With |name|.weight and |name|.bias; or the former alone. */
rdna_status rdna__image_load_conv(rdna__component *c, const char *prefix, const char *name,
                                  const rdna__image_window *window, rdna__image_conv *out);
rdna_status rdna__image_load_unbiased(rdna__component *c, const char *prefix, const char *name,
                                      const rdna__image_window *window, rdna__image_conv *out);
rdna_status rdna__image_load_doubling(rdna__component *c, const char *prefix, const char *name, int in, int out,
                                      bool biased, rdna__image_doubling *out_doubling);
rdna_status rdna__image_load_norm(rdna__component *c, const char *prefix, const char *name, int channels, int groups,
                                  double epsilon, rdna__image_norm *out);
rdna_status rdna__image_load_linear(rdna__component *c, const char *prefix, const char *name, int in, int out,
                                    bool biased, rdna__image_linear *out_linear);
/* Between equal channels, with a bias, of a matrix or a window of 1 x 1. */
rdna_status rdna__image_load_projection(rdna__component *c, const char *prefix, const char *name, int channels,
                                        rdna__image_linear *out);
/* norm1, conv1, time_emb_proj where |time_width| is not 0, norm2, conv2, and where in is not out conv_shortcut. */
rdna_status rdna__image_load_resnet(rdna__component *c, const char *prefix, int in, int out, int time_width, int groups,
                                    double epsilon, rdna__image_resnet *out_resnet);
/* group_norm, to_q, to_k, to_v and to_out.0; or as diffusers called them before, query, key, value and proj_attn. Those
 * may be windows of 1 x 1. */
rdna_status rdna__image_load_attention(rdna__component *c, const char *prefix, int channels, int heads, int groups,
                                       double epsilon, rdna__image_attention *out);

/* ---- Running: |out| is a new tensor of the pass, the inputs stay as they are. ---- */

rdna_status rdna__image_conv_run(rdna__image_pass *pass, const rdna__image_conv *conv, const rdna_tensor *x,
                                 rdna_tensor *out);
/* out = x weight^T + bias, which has been made, and the same added to |out|. */
rdna_status rdna__image_linear_into(rdna_stream *stream, const rdna__image_linear *linear, const rdna_tensor *x,
                                    const rdna_tensor *out);
rdna_status rdna__image_linear_add(rdna_stream *stream, const rdna__image_linear *linear, const rdna_tensor *x,
                                   const rdna_tensor *out);
/* Rows [first, first + count) of what makes an output, without a bias. */
rdna__image_linear rdna__image_linear_rows(const rdna__image_linear *linear, int64_t first, int64_t count);
/* (rows, in) -> (rows, out), leading dimensions as x has them. */
rdna_status rdna__image_linear_run(rdna__image_pass *pass, const rdna__image_linear *linear, const rdna_tensor *x,
                                   rdna_tensor *out);
/* SiLU of it where |silu|. |out| has been made and may be |x|. */
rdna_status rdna__image_norm_into(rdna__image_pass *pass, const rdna__image_norm *norm, const rdna_tensor *x, bool silu,
                                  const rdna_tensor *out);
/* |time| (n, width): SiLU of the embedding, which is the same for all blocks; NULL where the block has no time. */
rdna_status rdna__image_resnet_run(rdna__image_pass *pass, const rdna__image_resnet *block, const rdna_tensor *x,
                                   const rdna_tensor *time, rdna_tensor *out);
/* The same where x is not needed again and its memory is: x becomes the result. */
rdna_status rdna__image_resnet_on(rdna__image_pass *pass, const rdna__image_resnet *block, rdna_tensor *x,
                                  const rdna_tensor *time);
rdna_status rdna__image_doubling_run(rdna__image_pass *pass, const rdna__image_doubling *doubling, const rdna_tensor *x,
                                     rdna_tensor *out);
rdna_status rdna__image_attention_run(rdna__image_pass *pass, const rdna__image_attention *block, const rdna_tensor *x,
                                      rdna_tensor *out);
/* |conv| of x at (height, width), by nearest values. */
rdna_status rdna__image_upsample_run(rdna__image_pass *pass, const rdna__image_conv *conv, const rdna_tensor *x,
                                     int64_t height, int64_t width, rdna_tensor *out);
/* Attention of |heads| heads over tokens: q (n, queries, channels), k and v (n, keys, channels), out as q, each
 * contiguous. Scores are scaled by 1 / sqrt(channels / heads). out has been made, and overlaps none. */
rdna_status rdna__image_attend(rdna__image_pass *pass, int heads, const rdna_tensor *q, const rdna_tensor *k,
                               const rdna_tensor *v, const rdna_tensor *out);

#endif
