/* Lazy arrays: arrays that have no values yet and stand for nodes of a graph. What functions of rdna/array.h make of
 * them is recorded and is lazy too, so that a program which computes with arrays can be differentiated, or made a plan,
 * as it stands:
 *
 *     rdna_array_lazy(x, &lazy_x);
 *     program(lazy_x, &loss);                    knows nothing of it
 *     rdna_array_gradients(&loss, 1, NULL, &lazy_x, 1, &gradient);
 *     rdna_array_evaluate((rdna_array *[]){loss, gradient}, 2, values);
 *
 * rdna_array_to_host computes what it is asked for. Operators of rdna/op.h, and the views that rdna/array.h makes of a
 * diagonal or of bits, refuse lazy arrays: rdna_array_tensor has their shape and no data. */
#ifndef RDNA_GRAPH_ARRAY_H
#define RDNA_GRAPH_ARRAY_H

#include "rdna/array.h"
#include "rdna/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values of |array|, which may be lazy itself, as another lazy array: something to differentiate by. */
RDNA_CHECKED rdna_status rdna_array_lazy(rdna_array *array, rdna_array **out_array);
/* A lazy array whose values come when a plan is run. */
RDNA_CHECKED rdna_status rdna_array_placeholder(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                                                rdna_array **out_array);
RDNA_API bool rdna_array_is_lazy(const rdna_array *array); /* false for NULL */

/* rdna_record_gradients for lazy outputs and inputs; entries of |seeds| may be NULL. |out| are lazy. */
RDNA_CHECKED rdna_status rdna_array_gradients(rdna_array *const *outputs, int output_count, rdna_array *const *seeds,
                                              rdna_array *const *inputs, int input_count, rdna_array **out);
/* Values of lazy arrays, in one plan; others are themselves. */
RDNA_CHECKED rdna_status rdna_array_evaluate(rdna_array *const *arrays, int count, rdna_array **out_arrays);
/* rdna_plan_create for arrays; |inputs| are placeholders. */
RDNA_CHECKED rdna_status rdna_array_plan(rdna_array *const *outputs, int output_count, rdna_array *const *inputs,
                                         int input_count, rdna_plan **out_plan);

/* For functions of rdna/graph_neural.h and others that record: a recorder, and a node of it, which it owns, for each of
 * |arrays|, at least one. */
RDNA_CHECKED rdna_status rdna_array_record(rdna_array *const *arrays, int count, rdna_recorder **out_recorder,
                                           rdna_node **out_nodes);
/* Gives the recorder up and hands |node| over: as a lazy array if |lazy|, else its values. Fails with the recorder's
 * failure. */
RDNA_CHECKED rdna_status rdna_array_recorded(rdna_recorder *recorder, rdna_node *node, bool lazy,
                                             rdna_array **out_array);

/* ---- operators of one's own ---- */

/* What arrays are computed by that nothing here has a function for. The functions are given |data|, arrays that they
 * borrow, and places for arrays that they hand over. A failure that they return, with the sentence that
 * rdna_last_error has then, is that of what called them. */
typedef struct rdna_array_operator {
  size_t size;      /* sizeof(rdna_array_operator) */
  const char *name; /* in sentences and pictures; copied */
  void *data;
  void (*release)(void *data); /* once nobody will call any more, by whoever lets go of the last node; may be NULL */
  /* Queues the work on the stream of |inputs|, which have values, and fills |results|, of the types and shapes that
   * were recorded. Plans call it in each run. */
  rdna_status (*run)(void *data, rdna_array *const *inputs, rdna_array **results);
  /* The gradients by each input of the sum over results of result * upstream, in the input's type and shape. All arrays
   * are lazy, so that gradients can be differentiated again. |upstream| has NULL where nothing comes back; what stays
   * NULL in |gradients| is zero. NULL: the operator has no gradient, which is an error where it is asked for. */
  rdna_status (*differentiate)(void *data, rdna_array *const *inputs, rdna_array *const *results,
                               rdna_array *const *upstream, rdna_array **gradients);
} rdna_array_operator;

/* |op| of |inputs|, lazy: |out_arrays| receives |result_count| arrays, 1 to 3, with the types and shapes of |types|, of
 * which data and strides are not looked at. It runs when the values of one of them are computed. Gradients go through
 * it where the first result is of floats. On failure |data| stays the caller's. */
RDNA_CHECKED rdna_status rdna_array_call(const rdna_array_operator *op, rdna_array *const *inputs, int input_count,
                                         const rdna_tensor *types, int result_count, rdna_array **out_arrays);

#ifdef __cplusplus
}
#endif
#endif
