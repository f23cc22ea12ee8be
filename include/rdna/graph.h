/* Graphs of arrays: what is to be computed is recorded first, as nodes with a type and a shape and without values. Then
 * it can be differentiated, which records more nodes, and planned, which makes of it a list of steps that can be run
 * again and again.
 *
 *     rdna_recorder_create(stream, &r);
 *     rdna_node *x = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){8, 3});
 *     rdna_node *w = rdna_record_input(r, RDNA_F32, 2, (int64_t[]){3, 1});
 *     rdna_node *y = rdna_record_map(r, rdna_record_matmul(r, x, w), RDNA_MAP_TANH, none, none);
 *     rdna_node *sum = rdna_record_reduce(r, y, RDNA_REDUCTION_SUM, 3, false, 0), *dw;
 *     rdna_record_gradients(r, &sum, 1, NULL, &w, 1, &dw);
 *     rdna_plan_create((rdna_node *[]){sum, dw}, 2, (rdna_node *[]){x, w}, 2, &plan);
 *     rdna_plan_run(plan, (rdna_array *[]){of_x, of_w}, 2, results);
 *
 * A recorder owns the nodes that it made, which go with it unless they were retained. Functions that record return such
 * a node, the recorder's, or NULL: the first failure is kept, and nothing is recorded behind it, so that a whole
 * network may be written down before rdna_recorder_status is asked. Shapes are broadcast and types promoted as by
 * rdna/array.h, with the same sentences.
 *
 * A recorder, its nodes and plans belong to one thread at a time; counting alone is safe from any. Nodes of several
 * recorders may meet if their stream is the same, which must outlive them all. */
#ifndef RDNA_GRAPH_H
#define RDNA_GRAPH_H

#include "rdna/array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_recorder rdna_recorder;
typedef struct rdna_node rdna_node;
typedef struct rdna_plan rdna_plan;

/* For one stream. The recorder is the caller's to release. */
RDNA_CHECKED rdna_status rdna_recorder_create(rdna_stream *stream, rdna_recorder **out_recorder);
RDNA_API void rdna_recorder_release(rdna_recorder *recorder); /* NULL is fine */
/* The first failure since the last call, with its sentence, and forgets it: recording goes on. */
RDNA_CHECKED rdna_status rdna_recorder_status(rdna_recorder *recorder);
/* Where nodes come from that are recorded from now on, "train.c:12", which is copied: sentences end with it. NULL: they
 * do not. */
RDNA_API void rdna_recorder_origin(rdna_recorder *recorder, const char *origin);

/* For who keeps a node for longer than its recorder. */
RDNA_API rdna_node *rdna_node_retain(rdna_node *node); /* returns it */
RDNA_API void rdna_node_release(rdna_node *node);      /* NULL is fine */
/* Its type and shape, (rank) sizes, borrowed. Of NULL: RDNA_DTYPE_COUNT, -1 and NULL. */
RDNA_API rdna_dtype rdna_node_dtype(const rdna_node *node);
RDNA_API int rdna_node_rank(const rdna_node *node);
RDNA_API const int64_t *rdna_node_shape(const rdna_node *node);

/* ---- leaves ---- */

/* A place for an array that comes when a plan is run. */
RDNA_API rdna_node *rdna_record_input(rdna_recorder *r, rdna_dtype dtype, int rank, const int64_t *shape);
/* An array that is there; it is retained, and read when a plan is run. */
RDNA_API rdna_node *rdna_record_constant(rdna_recorder *r, rdna_array *array);
/* All of it is |value|; no memory where an operator takes a number. */
RDNA_API rdna_node *rdna_record_full(rdna_recorder *r, rdna_dtype dtype, int rank, const int64_t *shape,
                                     rdna_scalar value);

/* ---- as in rdna/array.h ---- */

/* What the functions rdna_array_map, zip, … of these names make of arrays. */
RDNA_API rdna_node *rdna_record_map(rdna_recorder *r, rdna_node *x, rdna_map op, rdna_scalar p, rdna_scalar q);
RDNA_API rdna_node *rdna_record_zip(rdna_recorder *r, rdna_node *a, rdna_node *b, rdna_zip op, rdna_scalar p,
                                    rdna_scalar q);
/* |b| is NULL for a question about one. */
RDNA_API rdna_node *rdna_record_compare(rdna_recorder *r, rdna_node *a, rdna_node *b, rdna_compare op);
RDNA_API rdna_node *rdna_record_where(rdna_recorder *r, rdna_node *condition, rdna_node *a, rdna_node *b);
RDNA_API rdna_node *rdna_record_cast(rdna_recorder *r, rdna_node *x, rdna_dtype dtype);
RDNA_API rdna_node *rdna_record_reshape(rdna_recorder *r, rdna_node *x, int rank, const int64_t *shape);
RDNA_API rdna_node *rdna_record_permute(rdna_recorder *r, rdna_node *x, const int *dims);
RDNA_API rdna_node *rdna_record_slice(rdna_recorder *r, rdna_node *x, int dim, int64_t start, int64_t count,
                                      int64_t step);
RDNA_API rdna_node *rdna_record_broadcast(rdna_recorder *r, rdna_node *x, int rank, const int64_t *shape);
RDNA_API rdna_node *rdna_record_reduce(rdna_recorder *r, rdna_node *x, rdna_reduction reduction, uint32_t dims,
                                       bool keep_dims, double parameter);
RDNA_API rdna_node *rdna_record_matmul(rdna_recorder *r, rdna_node *a, rdna_node *b);

/* ---- more of moving values ---- */

/* |count| nodes one behind the other along |dim|, of which they may differ in size; promoted to one type. */
RDNA_API rdna_node *rdna_record_concat(rdna_recorder *r, rdna_node *const *nodes, int count, int dim);
/* The values of |x|, along |dim| in the places start, start + step, … of |size|; zeros elsewhere: the reverse of a
 * slice. */
RDNA_API rdna_node *rdna_record_unslice(rdna_recorder *r, rdna_node *x, int dim, int64_t start, int64_t step,
                                        int64_t size);
/* The same values, through which no gradient passes. */
RDNA_API rdna_node *rdna_record_stop(rdna_recorder *r, rdna_node *x);

/* A number that grows with each node of this process: a mark for rdna_record_checkpoint. */
RDNA_API uint64_t rdna_record_mark(void);
/* The values of |y|, whose gradients compute what was recorded since |mark| and leads to y once more, from what was
 * there before, so that nothing of it has to be kept until then. Of what is no float, or not recorded since, y itself.
 * Random numbers are the same both times. */
RDNA_API rdna_node *rdna_record_checkpoint(rdna_recorder *r, rdna_node *y, uint64_t mark);

/* ---- gradients ---- */

/* Records the gradients of the sum over |outputs| of output * seed by each of |inputs|, into |out|, the recorder's.
 * |seeds| have the shapes and types of the outputs; NULL is a seed of ones, where the output has one value. What no
 * output depends on gets zeros, as does what it depends on only through comparisons, rounding, integers and
 * rdna_record_stop. Gradients are nodes like others: they may be differentiated again. Nothing recurses; chains may
 * have millions of nodes. RDNA_INVALID_ARGUMENT: an output or input that is not of floats, seeds that do not fit.
 * RDNA_UNSUPPORTED: an operator without a gradient lies between. */
RDNA_CHECKED rdna_status rdna_record_gradients(rdna_recorder *r, rdna_node *const *outputs, int output_count,
                                               rdna_node *const *seeds, rdna_node *const *inputs, int input_count,
                                               rdna_node **out);

/* ---- running ---- */

/* Makes the steps for |outputs|, given arrays for |inputs|, which rdna_record_input made: what the outputs do not need
 * is left out, what occurs twice is computed once, and chains of operations on values become one launch where
 * rdna/op/fused.h has them. The nodes may be released. RDNA_INVALID_ARGUMENT: an input that is none, or one that
 * outputs need and |inputs| has not. */
RDNA_CHECKED rdna_status rdna_plan_create(rdna_node *const *outputs, int output_count, rdna_node *const *inputs,
                                          int input_count, rdna_plan **out_plan);
RDNA_API void rdna_plan_release(rdna_plan *plan); /* NULL is fine */
/* Queues the steps. |inputs| are arrays of the types and shapes that were recorded; |outputs| receives as many as the
 * plan has, the caller's to release, some of which may be views of others or of inputs. Memory goes back to the pool
 * behind the last step that reads it. A failure, which names the operator and its origin, gives no array. */
RDNA_CHECKED rdna_status rdna_plan_run(const rdna_plan *plan, rdna_array *const *inputs, int input_count,
                                       rdna_array **outputs);
/* With |wanted|, the plan's second run is recorded by the driver (rdna_graph_begin) and later ones are replays: one
 * launch whatever the plan has, beside a copy for each input that lies elsewhere than it did, and for each result that
 * somebody still had when the plan was run again. The memory of the plan's steps and results is its own from then on.
 * Where it cannot be, or has nothing to gain, runs are as before. What another thread puts into the plan's stream while
 * a run is recorded would be recorded too: only for programs in which no other thread uses that stream. */
RDNA_CHECKED rdna_status rdna_plan_replay(rdna_plan *plan, bool wanted);
/* How many runs were replays; |*out_obstacle|, unless NULL, is why there will be none, "" where there may. Borrowed
 * until the plan is run. */
RDNA_API int64_t rdna_plan_replays(const rdna_plan *plan, const char **out_obstacle);
/* How many steps a run has, without views; and the largest number of bytes of results that it holds at one time, beside
 * inputs, constants and what operators take for the time of their call. */
RDNA_API int64_t rdna_plan_steps(const rdna_plan *plan);
RDNA_API size_t rdna_plan_peak_bytes(const rdna_plan *plan);
/* A plan that is run once: values of nodes that need no input. */
RDNA_CHECKED rdna_status rdna_evaluate(rdna_node *const *outputs, int output_count, rdna_array **out_arrays);

/* ---- looking at it ---- */

/* Receives text as it is made, |size| bytes without a 0 at the end. What it returns but RDNA_OK ends the making. */
typedef rdna_status (*rdna_graph_write)(void *data, const char *text, size_t size);
/* What |outputs| need, a line for each node: "%2 = matmul %0 %1 : f32 (8, 1)", with its origin if it has one. */
RDNA_CHECKED rdna_status rdna_nodes_print(rdna_node *const *outputs, int output_count, rdna_graph_write write,
                                          void *data);
/* The same as a picture, SVG of boxes in layers, each below its inputs. RDNA_UNSUPPORTED: more than 2,000 nodes. */
RDNA_CHECKED rdna_status rdna_nodes_draw(rdna_node *const *outputs, int output_count, rdna_graph_write write,
                                         void *data);
/* The steps of a plan, a line each: which operators run in it, what it reads and makes, what is freed behind it. */
RDNA_CHECKED rdna_status rdna_plan_print(const rdna_plan *plan, rdna_graph_write write, void *data);

#ifdef __cplusplus
}
#endif
#endif
