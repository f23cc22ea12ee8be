/* Nodes, what an operator is, and recorders: what the files of this folder share. */
#ifndef RDNA_GRAPH_NODE_H
#define RDNA_GRAPH_NODE_H

#include "array/array.h"
#include "base/status.h"
#include "rdna/graph.h"
#include "rdna/op/activation.h"

enum { RDNA__MOST_RESULTS = 4, RDNA__MOST_OPERANDS = 12 /* but of concat */ };

typedef struct rdna__type {
  rdna_dtype dtype;
  int rank;
  int64_t shape[RDNA_MAX_RANK];
} rdna__type;

typedef struct rdna__own rdna__own; /* own.c: an operator of a user's, counted */

/* What an operator is told beside its inputs; each says which of it it reads. */
typedef struct rdna__attributes {
  int code; /* which of rdna_map, rdna_zip, … */
  int dim;
  uint32_t dims;
  bool flag;
  int number_count;
  const int64_t *numbers; /* shapes, windows: (number_count) */
  rdna_scalar p, q;
  rdna__own *own; /* NULL but of |call|; a node retains it */
} rdna__attributes;

typedef struct rdna__origin rdna__origin; /* a counted text */
typedef struct rdna__operator rdna__operator;

struct rdna_node {
  uint64_t serial; /* from 1, in the order in which nodes are made */
  int count;       /* of references */
  int input_count;
  const rdna__operator *op;
  rdna_node **inputs; /* retained */
  rdna__attributes attributes;
  rdna__type type; /* of the first result, where there are several */
  rdna_stream *stream;
  rdna_array *value; /* of a constant */
  rdna__origin *origin;
  rdna_node *next; /* while many are released */
};

/* What |infer| looks at. |blank| is an array without values, by which shapes of views can be found. */
typedef struct rdna__making {
  rdna_array *blank;
  const rdna__attributes *attributes;
  rdna_node *const *inputs;
  int input_count;
} rdna__making;

struct rdna__operator {
  const char *name;
  int results; /* 0 is 1; several are read by the operator |part|, and inferred without |blank| */
  bool view;   /* running it costs no launch, as a rule */
  /* The types of the results, into |out|; refuses what cannot be, with the operator's name and the shapes. */
  rdna_status (*infer)(const rdna__making *m, rdna__type *out);
  /* The values, into |out|, of which those with a bit in |wanted| must be made. An input is NULL where |number| takes
   * it. */
  rdna_status (*run)(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out);
  /* The first result of |inputs| through an activation; NULL: there is no such launch. */
  rdna_status (*run_activated)(const rdna_node *node, rdna_array *const *inputs, rdna_activation activation,
                               rdna_array **out);
  unsigned activations; /* bits of those that it takes; 0: all */
  /* Records the gradients by each input, given those of the results, of which some may be NULL. What stays NULL is 0.
   * An operator without is not differentiated: results of integers. */
  void (*gradient)(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out);
  /* Whether |run| can take the number of a |full| in the place of input |i|. */
  bool (*number)(const rdna_node *node, int i);
  /* What of its code to show: "exp". NULL: the name says it all. */
  const char *(*detail)(const rdna_node *node);
};

/* Bits of the dims of cross_entropy and its gradient: there are weights; the loss is f32 where x is narrower; rows of
 * the gradient begin at multiples of 16 bytes. */
enum { RDNA__ENTROPY_WEIGHT = 1, RDNA__ENTROPY_F32 = 2, RDNA__ENTROPY_PADDED = 4 };

/* The operators: rdna__operator_map and so on, one a row. */
#define RDNA__OPERATORS(ROW) \
  /* leaf.c */               \
  ROW(input)                 \
  ROW(constant)              \
  ROW(full)                  \
  ROW(part)                  \
  ROW(pass)                  \
  ROW(stop)                  \
  /* checkpoint.c */         \
  ROW(after)                 \
  ROW(checkpoint)            \
  /* own.c */                \
  ROW(call)                  \
  /* pointwise.c */          \
  ROW(map)                   \
  ROW(zip)                   \
  ROW(compare)               \
  ROW(where)                 \
  ROW(cast)                  \
  /* movement.c */           \
  ROW(reshape)               \
  ROW(permute)               \
  ROW(slice)                 \
  ROW(broadcast)             \
  ROW(concat)                \
  ROW(unslice)               \
  /* reduction.c */          \
  ROW(reduce)                \
  /* product.c */            \
  ROW(matmul)                \
  /* convolution.c */        \
  ROW(conv)                  \
  ROW(conv_data)             \
  ROW(conv_weight)           \
  /* pool.c */               \
  ROW(max_pool)              \
  ROW(max_pool_back)         \
  ROW(average_pool)          \
  ROW(average_pool_back)     \
  ROW(adaptive)              \
  ROW(adaptive_back)         \
  /* softmax.c */            \
  ROW(softmax)               \
  ROW(softmax_back)          \
  /* norm.c */               \
  ROW(norm)                  \
  ROW(norm_back)             \
  ROW(norm_by)               \
  /* index.c */              \
  ROW(gather)                \
  ROW(scatter)               \
  ROW(embedding)             \
  ROW(embedding_back)        \
  /* attention.c */          \
  ROW(attention)             \
  ROW(attention_back)        \
  ROW(dropout)               \
  /* recurrent.c */          \
  ROW(recurrent)             \
  ROW(recurrent_back)        \
  /* loss.c */               \
  ROW(loss)                  \
  ROW(loss_back)             \
  ROW(cross_entropy)         \
  ROW(cross_entropy_back)
#define RDNA__DECLARE(name) extern const rdna__operator rdna__operator_##name;
RDNA__OPERATORS(RDNA__DECLARE)

rdna__own *rdna__own_retain(rdna__own *own); /* NULL is fine; returns it */
void rdna__own_release(rdna__own *own);      /* NULL is fine */

/* An array that stands for |node|, with a reference of its own to both. */
rdna_status rdna__lazy_wrap(rdna_recorder *r, rdna_node *node, rdna_array **out_array);

/* Records an operator. NULL after a failure, and when an input is NULL. */
rdna_node *rdna__record(rdna_recorder *r, const rdna__operator *op, const rdna__attributes *attributes,
                        rdna_node *const *inputs, int input_count);
/* Keeps the thread's failure as the recorder's; returns NULL. */
rdna_node *rdna__record_failure(rdna_recorder *r, rdna_status status);
/* Whether something failed, or an input is NULL, which becomes a failure. */
bool rdna__record_stopped(rdna_recorder *r, const char *name, rdna_node *const *inputs, int input_count);
/* The |full| that |node| is, or hands on; NULL: it is none. */
const rdna_node *rdna__number_behind(const rdna_node *node);
rdna_stream *rdna__recorder_stream(const rdna_recorder *r);
rdna_array *rdna__recorder_blank(const rdna_recorder *r); /* borrowed: an array without values */
rdna_recorder *rdna__recorder_retain(rdna_recorder *r);   /* returns it */
/* Releases all nodes that the recorder owns: those that nobody retained are gone. */
void rdna__recorder_forget(rdna_recorder *r);
/* Puts the node's origin behind the thread's sentence. */
rdna_status rdna__node_annotate(const rdna_node *node, rdna_status status);
const char *rdna__node_origin(const rdna_node *node); /* "" without */

int64_t rdna__type_count(const rdna__type *type);
bool rdna__same_shape(const rdna__type *a, const rdna__type *b);
rdna_tensor rdna__type_tensor(const rdna__type *type); /* without data */
const char *rdna__type_text(const rdna__type *type, char text[RDNA__ARRAY_TEXT]);
/* An array of the type that has no values, for the time of a call. */
rdna_array rdna__blank(const rdna__making *m, const rdna__type *type);
/* The type of |*made|, which it releases, unless |status| is a failure. */
rdna_status rdna__take_type(rdna_status status, rdna_array **made, rdna__type *out);
/* For rows of operators: the first input's type; the first input itself; and no gradient, which is zeros. */
rdna_status rdna__infer_same(const rdna__making *m, rdna__type *out);
rdna_status rdna__run_same(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out);
void rdna__gradient_none(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out);
/* The shape that inputs are broadcast to; the type of the last of them that is no condition. */
rdna_status rdna__join(const char *name, const rdna__making *m, rdna__type *out);

#endif
