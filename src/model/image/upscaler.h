/* Networks that make a picture larger: what they are made of.
 *
 *     RRDBNet            first -- [dense blocks] -- trunk -- (+ first) -- [twice as large, leaky]… -- high, leaky --
 * last a dense block      three rows of five convolutions, each of which reads the row's input and all before it
 *     SRVGGNetCompact    [convolution -- PReLU]… -- convolution -- pixels spread -- (+ the picture, nearest values) */
#ifndef RDNA_MODEL_IMAGE_UPSCALER_H
#define RDNA_MODEL_IMAGE_UPSCALER_H

#include "model/image/blocks.h"

/* At most. */
enum {
  RDNA__UPSCALER_BLOCKS = 256,
  RDNA__UPSCALER_CHANNELS = 1024,
  RDNA__UPSCALER_DOUBLINGS = 3,
  RDNA__UPSCALER_SCALE = 8,
  RDNA__UPSCALER_DENSE = 15 /* convolutions of a dense block, in rows of five */
};

typedef enum rdna__upscaler_kind { RDNA__UPSCALER_RRDB, RDNA__UPSCALER_COMPACT } rdna__upscaler_kind;

/* How RRDBNet's tensors are called. */
typedef enum rdna__upscaler_names {
  RDNA__UPSCALER_NEW,    /* conv_first, body.0.rdb1.conv1, as in BasicSR */
  RDNA__UPSCALER_TRUNK,  /* conv_first, RRDB_trunk.0.RDB1.conv1 */
  RDNA__UPSCALER_NUMBERS /* model.0, model.1.sub.0.RDB1.conv1.0 */
} rdna__upscaler_names;

typedef struct rdna__upscaler_settings {
  rdna__upscaler_kind kind;
  rdna__upscaler_names names;
  int features, growth; /* channels of a block's input, and that each convolution in it adds */
  int blocks;           /* of SRVGGNetCompact: convolutions between its first and its last */
  int doublings;        /* of RRDBNet */
  int gathered;         /* of RRDBNet: so many pixels wide and high are one place of what it reads */
  int scale;            /* of all together */
} rdna__upscaler_settings;

/* What the names and shapes of |tensors| say. RDNA_UNSUPPORTED: another network. RDNA_BAD_DATA: shapes that make no
 * sense. */
rdna_status rdna__upscaler_settings_read(const rdna__safetensors *tensors, rdna__upscaler_settings *out);

typedef struct rdna__upscaler_network {
  rdna__upscaler_settings set;
  rdna__image_conv first, trunk, high, last;
  rdna__image_doubling up[RDNA__UPSCALER_DOUBLINGS];
  rdna__image_conv (*dense)[RDNA__UPSCALER_DENSE]; /* (blocks) */
  rdna__image_conv *between;                       /* (blocks) */
  rdna_tensor *slopes;                             /* (blocks + 1), (1, features, 1, 1): of the first, then of those */
} rdna__upscaler_network;

/* |to| has its settings. RDNA_BAD_DATA, RDNA_UNSUPPORTED, RDNA_OUT_OF_MEMORY; it is to be given back all the same. */
rdna_status rdna__upscaler_load(rdna__component *c, rdna__upscaler_network *to);
void rdna__upscaler_deinit(rdna__upscaler_network *network); /* without what is on the device */

/* |out| (1, 3, scale height, scale width), a new contiguous tensor of the pass in f32, of |picture| (1, 3, height,
 * width), contiguous, f32; both of 0 to 1. Height and width are multiples of |gathered|. */
rdna_status rdna__upscaler_pass(rdna__image_pass *pass, const rdna__upscaler_network *network,
                                const rdna_tensor *picture, rdna_tensor *out);

#endif
