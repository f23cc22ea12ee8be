/* Mixes of types: in such a file the matrices that matter more have more bits than the others. */
#ifndef RDNA_MODEL_WEIGHTS_RECIPE_H
#define RDNA_MODEL_WEIGHTS_RECIPE_H

#include "rdna/model.h"

/* The types of a mix's matrices, by llama.cpp's rules, whose names and numbers of files they are. */
typedef struct rdna__mix rdna__mix;

/* The mix "q4_K_M", in any case; NULL: there is none of that name. */
const rdna__mix *rdna__mix_find(const char *name);
/* All names, with spaces between; 128 bytes hold them. */
void rdna__mix_names(char *out, size_t size);

rdna_dtype rdna__mix_type(const rdna__mix *mix);        /* of most matrices */
uint32_t rdna__mix_file_type(const rdna__mix *mix);     /* GGUF's general.file_type */
rdna_dtype rdna__mix_logits_type(const rdna__mix *mix); /* of the matrix that makes logits */

/* The type of |tensor|, a matrix of |file| that makes no logits, where its rows are whole blocks. */
rdna_dtype rdna__mix_type_of(const rdna__mix *mix, const rdna_gguf *file, const rdna_gguf_tensor *tensor);

#endif
