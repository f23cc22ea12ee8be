/* A GGUF file written again with its weights in another type, and the rules by which a weight gets its type. */
#ifndef RDNA_MODEL_WEIGHTS_QUANTIZE_H
#define RDNA_MODEL_WEIGHTS_QUANTIZE_H

#include "model/weights/imatrix.h"
#include "model/weights/recipe.h"
#include "rdna/device.h"
#include "rdna/model.h"

/* The type by its name, "f16" or "q4_K" in any case: f32, f16, bf16, and the blocks that rdna_op_quantize makes.
 * RDNA_INVALID_ARGUMENT, with the list of those. */
rdna_status rdna__weight_type_parse(const char *name, rdna_dtype *out_type);
/* The same of types of blocks alone. */
rdna_status rdna__block_type_parse(const char *name, rdna_dtype *out_type);

/* The same, or a mix by its name, whose type is that of most of its matrices; |*out_mix| is NULL for a type. */
rdna_status rdna__weight_recipe_parse(const char *name, rdna_dtype *out_type, const rdna__mix **out_mix);

/* GGUF's general.file_type for a file whose weights are mostly |type|. */
uint32_t rdna__weight_file_type(rdna_dtype type);

/* The type of |tensor| (name, rank, shape, dtype) in a file of |type|:
 *
 *   vectors, norms and the router of experts     f32
 *   output.weight, and token_embd.weight where   q6_K if |type| has fewer bits: each logit comes from it
 *   the model has no output.weight (|tied|)
 *   other matrices                               |type|
 *   not whole blocks of 256 in a row             q2_K, q3_K, tq1_0, tq2_0: q4_0; q4_K: q5_0; q5_K: q5_1;
 *                                                q6_K: q8_0; iq1 to iq3, iq4_xs: iq4_nl
 *   not whole blocks of 32                       bf16 if it was bf16 before, else f16
 *   integers and others that are no weights      as they were
 */
rdna_dtype rdna__weight_type_for(const rdna_gguf_tensor *tensor, rdna_dtype type, bool tied);

/* The same of a matrix whose rows have |columns| values, which was |before|. */
rdna_dtype rdna__weight_type_fitting(rdna_dtype type, int64_t columns, rdna_dtype before);

/* Tensors and bytes of each of GGUF's types, before and after. */
enum { RDNA__WEIGHT_TYPES = 64 };
typedef struct rdna__weight_counts {
  struct {
    int64_t tensors;
    uint64_t bytes;
  } before[RDNA__WEIGHT_TYPES], after[RDNA__WEIGHT_TYPES];
  int64_t fallbacks;   /* tensors whose rows are no whole blocks of the type that was asked for */
  int64_t unimportant; /* matrices that the importance matrix lacks, and that could have used it */
} rdna__weight_counts;

void rdna__weight_count(rdna__weight_counts *counts, bool after, const rdna_gguf_tensor *tensor);
/* Counts the tensors of |file| as those after; |type|, or RDNA_DTYPE_COUNT, is what was asked for. */
rdna_status rdna__weight_count_file(const rdna_gguf *file, rdna_dtype type, rdna__weight_counts *counts);

/* Writes |file| to |path| with its weights in |type|, or as |mix| has it unless that is NULL, computed on |device|.
 * With |imatrix|, which may be NULL, scales of blocks are searched (rdna_op_quantize_weighted), for matrices that it
 * lacks with all columns alike. Without one types of fewer bits than q2_K that are searched, IQ1 and IQ2, give a
 * warning. |progress| as in rdna_gguf_writer_write. */
rdna_status rdna__quantize(const rdna_gguf *file, const char *path, rdna_dtype type, const rdna__mix *mix,
                           const rdna__imatrix *imatrix, rdna_device *device,
                           void (*progress)(void *data, double share), void *progress_data,
                           rdna__weight_counts *out_counts);

#endif
