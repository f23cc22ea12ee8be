/* A TensorFlow kernel of ours: a row of kernels.def, the attributes of one place where it is used, and a call of it.
 *
 * A function of ops/ computes one call. It takes inputs and outputs as librdna's tensors and returns librdna's status;
 * what it says is what TensorFlow raises. Its work is queued on the call's stream, which nobody else uses meanwhile. */
#ifndef RDNA_TENSORFLOW_KERNEL_H
#define RDNA_TENSORFLOW_KERNEL_H

#include <stdatomic.h>

#include "device.h"
#include "rdna/scalar.h"
#include "rdna/tensor.h"

enum { LIST_SIZE = 10, TEXT_SIZE = 128, SCRATCH_SIZE = 64 };

struct list {
  int count;
  int64_t values[LIST_SIZE];
};

struct reals {
  int count;
  float *values; /* NULL: none */
};

struct attributes { /* those that the operator does not have are zero */
#define FLAG(name) bool name;
#define NUMBER(name) int64_t name;
#define REAL(name) float name;
#define LIST(name) struct list name;
#define REAL_LIST(name) struct reals name;
#define TEXT(name) char name[TEXT_SIZE];
#include "attributes.def"
#undef FLAG
#undef NUMBER
#undef REAL
#undef LIST
#undef REAL_LIST
#undef TEXT
};

static const rdna_scalar zero = {0, 0}; /* the parameter of operations that have none, and their 0 */

typedef struct call {
  const struct attributes *attributes;
  int number; /* which operation of its family, by the row */
  rdna_stream *stream;
  rdna_device *device;
  _Atomic uint64_t *drawn; /* random numbers that this kernel has given */
  TF_OpKernelContext *ctx;
  TF_Status *status;
  char message[400]; /* of a failure that is not librdna's */
  void *scratch[SCRATCH_SIZE];
  int scratch_count;
} call;

#define TRY(expression)                           \
  do {                                            \
    rdna_status try_status = (expression);        \
    if (try_status != RDNA_OK) return try_status; \
  } while (0)

/* Types that librdna only moves, such as u16 and complex64, come as integers of their size. */
rdna_dtype dtype_of(TF_DataType type);

/* "float", as TensorFlow writes them. */
const char *type_name(TF_DataType type);

int call_inputs(const call *c);
/* Input |i|, contiguous, on the device or, where its argument is in host memory, there. Its memory lasts as long as the
 * call. */
rdna_status call_input(call *c, int i, rdna_tensor *out_tensor);
/* TensorFlow's type of it, which tells unsigned and complex types apart. */
rdna_status call_type(call *c, int i, TF_DataType *out_type);
/* The same of more dimensions than librdna has, up to |size|: its memory and type, and the shape apart. */
rdna_status call_input_of_any_rank(call *c, int i, int size, rdna_tensor *out_flat, int *out_rank, int64_t *out_shape);
/* |count| integers of either width from an input in host memory, at most |size|. */
rdna_status call_integers(call *c, int i, int size, int64_t *out_values, int *out_count);
rdna_status call_integer(call *c, int i, int64_t *out_value);
/* A dimension among |rank|, from an input in host memory, where it may count from the end. */
rdna_status call_dim(call *c, int i, int rank, int *out_dim);

/* Makes output |i|, contiguous, of the type that TensorFlow expects. */
rdna_status call_output(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out_tensor);
/* The same in the memory of one of the first |inputs| inputs, where that has this shape and nobody needs it any more.
 */
rdna_status call_output_over(call *c, int inputs, int i, int rank, const int64_t *shape, rdna_tensor *out_tensor);
/* Memory for the time of the call. */
rdna_status call_scratch(call *c, rdna_dtype dtype, int rank, const int64_t *shape, rdna_tensor *out_tensor);
/* Input |i|; one of 16 bits in f32, in which its operator computes. */
rdna_status call_wide_input(call *c, int i, rdna_tensor *out_tensor);
/* Output |i|, and where to compute it: itself, or for 16 bits scratch memory in f32, which call_round then rounds. */
rdna_status call_wide_output(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out_tensor,
                             rdna_tensor *out_wide);
rdna_status call_round(call *c, const rdna_tensor *wide, const rdna_tensor *out);
/* Complex numbers as pairs of f32 or f64: the shape has one dimension more, of size 2. */
rdna_status call_pairs(call *c, int i, rdna_tensor *out_pairs);
/* |rank| and |shape| are without the pairs. */
rdna_status call_output_pairs(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out_pairs);
/* The only value of an input in host memory; of 8 bytes without arithmetic as an integer. */
rdna_status call_scalar(call *c, int i, rdna_scalar *out_value);
/* Gives back all scratch memory but the first |count| pieces, |c->scratch_count| at an earlier time: of loops. */
rdna_status call_release(call *c, int count);
/* Waits for |x|, which is contiguous, and copies its values to |out_values|. */
rdna_status call_read(call *c, const rdna_tensor *x, void *out_values);
/* Values of the host into memory for the time of the call; they are read before it returns. */
rdna_status call_upload(call *c, rdna_dtype dtype, int64_t count, const void *values, rdna_tensor *out_tensor);
/* Returns |status| with a sentence of our own. */
rdna_status call_fail(call *c, rdna_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What TensorFlow said in |c->status| when it was asked for |bytes|: where it had none, with our allocator's report,
 * which TensorFlow's error does not have. */
rdna_status call_memory_status(call *c, int64_t bytes);
/* What TensorFlow said in |c->status|. */
rdna_status call_status(call *c);

/* Makes known the operators that TensorFlow has not (operators.c). */
void register_operators(TF_Status *status);

bool same_shape(const rdna_tensor *x, int rank, const int64_t *shape);
/* A tensor with the same values in another contiguous shape. */
rdna_tensor reshaped(const rdna_tensor *x, int rank, const int64_t *shape);
/* The last two dimensions swapped. */
rdna_tensor transposed(rdna_tensor x);
/* (n, channels, spatial…) of an image in the layout that |data_format| says. */
rdna_tensor channels_second(const call *c, rdna_tensor x);
/* The shape of two that are broadcast. */
rdna_status call_broadcast(call *c, const rdna_tensor *a, const rdna_tensor *b, int *out_rank, int64_t *out_shape);

#endif
