/* Textual inversion (Gal et al., 2022): vectors that stand for a word, from files. */
#ifndef RDNA_MODEL_IMAGE_INVERSION_H
#define RDNA_MODEL_IMAGE_INVERSION_H

#include "model/weights/safetensors.h"
#include "rdna/image_model.h"

enum { RDNA__INVERSION_ENCODERS = 2 };

typedef struct rdna__inversion {
  char *name;  /* the word, without spaces at its ends */
  bool chosen; /* by who opened it, and not by the file */
  char *path;
  rdna__safetensors *file;
  int count; /* vectors that stand for it */
  struct {
    const rdna__safetensor *tensor; /* (count, width), or (width) of one */
    int width;
  } of[RDNA__INVERSION_ENCODERS]; /* by encoder */
} rdna__inversion;

typedef struct rdna__inversions {
  rdna__inversion *items; /* (count) */
  int count;
} rdna__inversions;

/* Files are read from |given| (count), which need not stay, for a model with so many text encoders. RDNA_NOT_FOUND,
 * RDNA_BAD_DATA: not of such a model, or a word that another file has. RDNA_UNSUPPORTED, RDNA_OUT_OF_MEMORY. */
rdna_status rdna__inversions_open(const rdna_image_embedding *given, int count, int encoders,
                                  rdna__inversions **out_inversions);
void rdna__inversions_close(rdna__inversions *inversions); /* NULL is fine */

/* Which tensor of |file| has the vectors of which encoder, and how many there are; |*out_name| is the word that it has
 * in it, or NULL. Its path and name stay as they are. */
rdna_status rdna__inversion_read(const rdna__safetensors *file, int encoders, rdna__inversion *out,
                                 const char **out_name);

/* The first place in |text| where one of the words stands, whatever the case of its letters, and which it is; of those
 * at one place the longest. |size|: none does. */
size_t rdna__inversions_find(const rdna__inversions *inversions, const char *text, size_t size, int *out_which);

#endif
