/* The layers of CLIP's encoders (Radford et al., 2021), of texts and of pictures alike:
 *
 *     x --+-- norm -- attention --(+)--+-- norm -- up, activation, down --(+)--
 *         |_________________________|  |_________________________________|            */
#ifndef RDNA_MODEL_IMAGE_CLIP_LAYERS_H
#define RDNA_MODEL_IMAGE_CLIP_LAYERS_H

#include "math/common/plan/scratch.h"
#include "model/image/component.h"

typedef struct rdna__clip_affine { /* of a product or a norm, f32 */
  rdna_tensor weight, bias;
} rdna__clip_affine;

typedef struct rdna__clip_layer {
  rdna__clip_affine norm1, q, k, v, out, norm2, up, down;
} rdna__clip_layer;

typedef struct rdna__clip_shape {
  int tokens, width, hidden, heads;
  double epsilon;
  bool quick;  /* x sigmoid(1.702 x) for GELU */
  bool causal; /* tokens see those before them alone */
} rdna__clip_shape;

/* |name|.weight (rows, columns) and .bias (rows); columns 0: both are vectors. */
rdna_status rdna__clip_load_affine(rdna__component *component, const char *prefix, const char *name, int rows,
                                   int columns, rdna__clip_affine *out);
/* |out| (count) of |prefix|.encoder.layers.N. */
rdna_status rdna__clip_load_layers(rdna__component *component, const char *prefix, const rdna__clip_shape *shape,
                                   int count, rdna__clip_layer *out);

typedef struct rdna__clip_pass {
  rdna__clip_shape shape;
  rdna_stream *stream;
  rdna__scratch scratch;
  int count;            /* texts or pictures; rows are count x tokens */
  rdna_tensor x, h;     /* (rows, width): the residual stream, and what blocks read */
  rdna_tensor q, k, v;  /* (rows, width) */
  rdna_tensor up, gate; /* (rows, 1, hidden) */
} rdna__clip_pass;

/* Room for all of these, of the pass's scratch, which the caller gives back. */
rdna_status rdna__clip_prepare(rdna__clip_pass *pass);
/* x through a layer. */
rdna_status rdna__clip_layer_run(const rdna__clip_pass *pass, const rdna__clip_layer *layer);
rdna_status rdna__clip_norm(const rdna__clip_pass *pass, const rdna__clip_affine *of, const rdna_tensor *x,
                            const rdna_tensor *out);

#endif
