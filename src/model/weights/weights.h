/* The weights of a model: keys and tensors of a file, found by name, checked, and put on a device. */
#ifndef RDNA_MODEL_WEIGHTS_H
#define RDNA_MODEL_WEIGHTS_H

#include "base/strmap.h"
#include "model/weights/upload.h"
#include "rdna/device.h"
#include "rdna/model.h"
#include "rdna/tensor.h"

/* A matrix as a network applies it:  y = x W^T * scale + bias,  or  (x W^T + bias) * scale  when the scale comes after
 * (see rdna__nn_linear). */
typedef struct rdna__matrix_weights {
  rdna_tensor weight; /* (rows out, columns in); data NULL: there is no such matrix */
  rdna_tensor bias;   /* (rows), f32; data NULL when there is none */
  float scale;        /* 1 when the file has no NAME.scale */
  bool scale_after_bias;
} rdna__matrix_weights;

/* A matrix by its name in the file, without ".weight": what an adapter may change. */
typedef struct rdna__named_matrix {
  char name[64];
  rdna_tensor weight; /* where its rows lie */
} rdna__named_matrix;

/* What a model has on its device, and while it is loaded the file that it comes from. */
typedef struct rdna__weights {
  rdna_device *device;
  bool in_place;         /* weights lie in the file's map: the device reads host memory */
  bool experts_for_host; /* of the layer that is loaded, the host computes the experts, and the device has the rest */
  bool for_host;         /* so this stays where it is mapped */
  void **allocations;    /* device memory to free, (allocation_count) */
  int allocation_count, allocation_room;
  rdna__named_matrix *matrices; /* (matrix_count): those that are applied as they lie */
  int matrix_count, matrix_room;
  uint64_t bytes;      /* of all that was loaded */
  uint64_t mapped;     /* of that, what is used in place */
  uint64_t parameters; /* values in it */
  uint64_t staging;    /* pinned host memory that loading took */

  const rdna_gguf *file; /* these are for the time of loading */
  char architecture[32]; /* before the names of most keys */
  void (*progress)(void *data, double share);
  void *progress_data;
  uint64_t bytes_total;
  rdna__uploader *uploader;      /* NULL: bytes of the file are copied from its map */
  char *next_weight, *next_bias; /* where the next matrix and bias go; NULL: memory of their own */
  rdna__strmap *read;            /* names of the tensors that were read, or that need not be */
} rdna__weights;

/* Frees the device memory. */
void rdna__weights_free(rdna__weights *weights);

/* Waits until the device has all that was loaded, and ends the uploader. */
rdna_status rdna__weights_arrive(rdna__weights *weights);

/* Notes that |weight| is applied as the matrix |name|. */
rdna_status rdna__weights_name(rdna__weights *weights, const char *name, const rdna_tensor *weight);
const rdna__named_matrix *rdna__weights_find(const rdna__weights *weights, const char *name); /* NULL: none has it */

/* Adds to what was loaded. */
void rdna__weights_count(rdna__weights *weights, uint64_t bytes, int64_t values);

/* ---- what is left unread: from unread.c ---- */

/* Notes that a tensor of the file was read. */
rdna_status rdna__mark_read(const rdna__weights *w, const char *name);
/* A tensor of a layer that some files have and that changes nothing, |name| whole. */
rdna_status rdna__leave_unread(const rdna__weights *w, int layer, const char *name);
/* RDNA_UNSUPPORTED: the file has tensors that nobody read, with the name of one; without them the model would be
 * another. Those are no matter that lie behind the |layers| that are run, or where it |writes| serve no text. */
rdna_status rdna__check_all_read(const rdna__weights *w, int layers, bool writes);

/* ---- keys, without the architecture's name before them: from keys.c ---- */

enum { RDNA__LARGEST_COUNT = 1 << 24 };

rdna_status rdna__key_count(const rdna__weights *w, const char *key, int initial, int *out);
/* The same of a layer, where the file gives one number for all or one a layer, of which 0 is |initial|. */
rdna_status rdna__key_count_of_layer(const rdna__weights *w, const char *key, int layer, int initial, int *out);
/* A count that may be 0, which it is when the key is missing. */
rdna_status rdna__key_count_or_none(const rdna__weights *w, const char *key, int *out);
/* A positive finite number; |initial| when the key is missing or 0, unless |initial| is 0. */
rdna_status rdna__key_number(const rdna__weights *w, const char *key, double initial, double *out);
/* A positive number, or 0 when the key is missing or 0. */
rdna_status rdna__key_number_or_none(const rdna__weights *w, const char *key, float *out);
/* Whether the file gives several values, one a layer, and those: integers, or bools as 0 and 1. RDNA_BAD_DATA: there
 * are fewer. */
bool rdna__key_is_array(const rdna__weights *w, const char *key);
rdna_status rdna__key_array(const rdna__weights *w, const char *key, int layers, int32_t *out);
/* A yes or no that the file has; |*inout| stays what it is when it has not. */
rdna_status rdna__key_flag(const rdna__weights *w, const char *key, bool *inout);
/* The text of a key that the file has; |*inout| stays what it is when it has not. */
rdna_status rdna__key_text(const rdna__weights *w, const char *key, rdna_text *inout);
/* Whether |text| is |word|. */
bool rdna__text_is(rdna_text text, const char *word);

/* ---- tensors: from weights.c ---- */

/* How many rows a table has, from 1 to RDNA__LARGEST_COUNT. */
rdna_status rdna__table_rows(const rdna__weights *w, const char *name, int *out_rows);
/* A matrix as it stands in the file, uploaded or used in place. */
rdna_status rdna__load_table(rdna__weights *w, const char *name, int64_t rows, int64_t columns, rdna_tensor *out);
/* A vector as f32 in host memory that the caller frees. */
rdna_status rdna__read_vector(const rdna__weights *w, const char *name, int64_t count, float **out_values);
/* A vector as f32 on the device. */
rdna_status rdna__load_vector(rdna__weights *w, const char *name, int64_t count, rdna_tensor *out);
/* A matrix as f32 in host memory that the caller frees. */
rdna_status rdna__read_matrix(const rdna__weights *w, const char *name, int64_t rows, int64_t columns,
                              float **out_values);
/* The same of any rank. */
rdna_status rdna__read_values(const rdna__weights *w, const char *name, int rank, const int64_t *shape,
                              float **out_values);
/* |values| (count) of the host's as a vector on the device. */
rdna_status rdna__put_vector(rdna__weights *w, const float *values, int64_t count, rdna_tensor *out);
/* PREFIX.weight with PREFIX.bias and PREFIX.scale where the file has them. */
rdna_status rdna__load_linear(rdna__weights *w, const char *prefix, int64_t rows, int64_t columns,
                              rdna__matrix_weights *out);

/* The same of a layer, "blk.LAYER.NAME". */
bool rdna__has_in_layer(const rdna__weights *w, int layer, const char *name);
/* Whether it is there as a vector of |count| values. */
bool rdna__is_vector_in_layer(const rdna__weights *w, int layer, const char *name, int64_t count);
/* Its rows; 0 when it is not there. */
int64_t rdna__rows_in_layer(const rdna__weights *w, int layer, const char *name);
rdna_status rdna__load_layer_vector(rdna__weights *w, int layer, const char *name, int64_t count, rdna_tensor *out);

/* ffn_gate_inp of a layer with its bias. Its .scale, where there is one, is not a factor of its result. */
rdna_status rdna__load_router(rdna__weights *w, int layer, int experts, int64_t columns, rdna__matrix_weights *out);
/* The matrices of a layer's experts, |name|.weight of (experts, rows, columns), and |name|.bias (experts, rows) as f32
 * where the file has it; |bias| NULL: it must not. */
rdna_status rdna__load_experts(rdna__weights *w, int layer, const char *name, int experts, int64_t rows,
                               int64_t columns, rdna_tensor *out, rdna_tensor *bias);

/* |name| of a layer as (count, rows, columns), of any type. */
rdna_status rdna__load_layer_matrices(rdna__weights *w, int layer, const char *name, int64_t count, int64_t rows,
                                      int64_t columns, rdna_tensor *out);
/* A small matrix of a layer as f32 on the device. */
rdna_status rdna__load_layer_values(rdna__weights *w, int layer, const char *name, int64_t rows, int64_t columns,
                                    rdna_tensor *out);
/* The same as f32 in host memory that the caller frees. */
rdna_status rdna__read_layer_values(const rdna__weights *w, int layer, const char *name, int rank, const int64_t *shape,
                                    float **out_values);

/* A matrix of a layer, what it is called there, and where it goes. */
typedef struct rdna__part {
  const char *name;
  rdna__matrix_weights *matrix;
  int64_t rows, columns;
  bool scale_after_bias; /* as llama.cpp applies it */
} rdna__part;

/* The matrices |parts| of a layer. Where |joined| is given, they are also the one matrix that they are when they lie
 * one after the other:
 *
 *     joined   | rows of part 0 | rows of part 1 | …      all of as many columns
 *
 * That is so where the file has them as one, |joined_name| (or NULL: it never does), and where they are copied to the
 * device, of one type, all with a bias or none, none with a scale. joined->weight.data is NULL where it is not so. */
rdna_status rdna__load_parts(rdna__weights *w, int layer, const rdna__part *parts, int count, const char *joined_name,
                             rdna__matrix_weights *joined);
/* Whether they would be one matrix. */
rdna_status rdna__parts_join(const rdna__weights *w, int layer, const rdna__part *parts, int count,
                             const char *joined_name, bool *out_join);

#endif
