/* Layers and losses of networks as nodes of rdna/graph.h, each with its gradient and, through it, its second
 * derivative. Types are f32, f16 and bf16 unless more is said; operands of other floats than the first are cast to its
 * type. Shapes that do not fit are the recorder's failure, with a sentence. */
#ifndef RDNA_GRAPH_NEURAL_H
#define RDNA_GRAPH_NEURAL_H

#include "rdna/graph.h"
#include "rdna/op/conv.h"
#include "rdna/op/loss.h"
#include "rdna/op/pool.h"
#include "rdna/op/recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolutions: (n, channels, spatial…) ---- */

/* rdna_op_conv's, with |weight| (out channels, channels / groups, window…) and |bias| (out channels) or NULL. */
RDNA_API rdna_node *rdna_record_conv(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                                     const rdna_convolution *conv);
/* The convolution of which |conv| is the gradient: |x| has |weight|'s first number of channels, the result groups times
 * its second. Each spatial size is (size - 1) * stride - padding + dilation * (window - 1) + 1 + |more|, of which there
 * is one for each, at least 0 and less than the stride; NULL: zeros. */
RDNA_API rdna_node *rdna_record_conv_transpose(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                                               const rdna_convolution *conv, const int64_t *more);

/* ---- pooling: (n, channels, spatial…), f64 too ---- */

/* rdna_op_max_pool's and rdna_op_average_pool's. */
RDNA_API rdna_node *rdna_record_max_pool(rdna_recorder *r, rdna_node *x, const rdna_pooling *pooling);
RDNA_API rdna_node *rdna_record_average_pool(rdna_recorder *r, rdna_node *x, const rdna_pooling *pooling);
/* To |sizes|, one for each spatial dimension: all 1 is the mean over them. */
RDNA_API rdna_node *rdna_record_adaptive_average_pool(rdna_recorder *r, rdna_node *x, const int64_t *sizes);

/* ---- normalization, f64 too. |weight| and |bias| may be NULL: ones and zeros ---- */

/* Over the last dimension, of which |weight| and |bias| have the size. */
RDNA_API rdna_node *rdna_record_layer_norm(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                                           double epsilon);
RDNA_API rdna_node *rdna_record_rms_norm(rdna_recorder *r, rdna_node *x, rdna_node *weight, double epsilon);
/* By the statistics of (n, channels, spatial…) itself; who keeps running ones takes the mean and the variance of |x|
 * over all dimensions but the second by rdna_record_reduce. */
RDNA_API rdna_node *rdna_record_batch_norm(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                                           double epsilon);
/* By |mean| and |variance|, (channels). */
RDNA_API rdna_node *rdna_record_batch_norm_inference(rdna_recorder *r, rdna_node *x, rdna_node *weight, rdna_node *bias,
                                                     rdna_node *mean, rdna_node *variance, double epsilon);
/* Of |groups| of neighbouring channels of a sample; as many as channels: instance norm. */
RDNA_API rdna_node *rdna_record_group_norm(rdna_recorder *r, rdna_node *x, int64_t groups, rdna_node *weight,
                                           rdna_node *bias, double epsilon);

/* ---- along a dimension, f64 too ---- */

/* rdna_op_softmax's, and its logarithm. Integers become floats first. */
RDNA_API rdna_node *rdna_record_softmax(rdna_recorder *r, rdna_node *x, int dim);
RDNA_API rdna_node *rdna_record_log_softmax(rdna_recorder *r, rdna_node *x, int dim);

/* ---- by indices, i32 or i64; values of any type. An index outside of its dimension reads 0 ---- */

/* rdna_op_gather's: out(i, j, k) = x(i, indices(i, j, k), k), for |dim| 1. */
RDNA_API rdna_node *rdna_record_gather(rdna_recorder *r, rdna_node *x, int dim, rdna_node *indices);
/* The rows of |table| (rows, …) that |ids| name. */
RDNA_API rdna_node *rdna_record_embedding(rdna_recorder *r, rdna_node *table, rdna_node *ids);

/* ---- attention and dropout ---- */

/* softmax(scale * q k^T) v of (batch, heads, tokens, d), which with |causal| sees no key behind the query's place. */
RDNA_API rdna_node *rdna_record_attention(rdna_recorder *r, rdna_node *q, rdna_node *k, rdna_node *v, double scale,
                                          bool causal);
/* The same with a |mask|, NULL or (batch or 1, heads or 1, queries or 1, keys): bool, false hides the key, or floats
 * that are added to the scores, in the type of q, and have gradients. A query that sees nothing gives zeros. */
RDNA_API rdna_node *rdna_record_attention_masked(rdna_recorder *r, rdna_node *q, rdna_node *k, rdna_node *v,
                                                 rdna_node *mask, double scale, bool causal);
/* 0 with |probability|, else x / (1 - probability), by rdna_op_dropout's numbers: the same in each run of a plan. */
RDNA_API rdna_node *rdna_record_dropout(rdna_recorder *r, rdna_node *x, double probability, uint64_t seed,
                                        uint64_t offset);

/* ---- recurrent networks, f64 too ---- */

/* A layer of one direction, with the cells' formulas of rdna/op/recurrent.h. Where n is the size of a state and an LSTM
 * has 4 parts, a GRU 3 and the others 1: |x| (steps, rows, inputs), of a step or more; |weight_ih| (parts n, inputs),
 * |weight_hh| (parts n, n); each bias (parts n) or NULL; the states before the first step, |h| and of an LSTM |c|, else
 * NULL, (rows, n). The result, (steps, rows, n), has the h of each step in its place; with |reverse| the last step is
 * the first. On GPUs all steps are one call where rdna_recurrent_layer_pays says so. */
RDNA_API rdna_node *rdna_record_recurrent(rdna_recorder *r, rdna_cell cell, bool reverse, rdna_node *x,
                                          rdna_node *weight_ih, rdna_node *weight_hh, rdna_node *bias_ih,
                                          rdna_node *bias_hh, rdna_node *h, rdna_node *c);
/* The c behind the last step, (rows, n), of the LSTM whose result |out| is. */
RDNA_API rdna_node *rdna_record_recurrent_cells(rdna_recorder *r, rdna_node *out);

/* ---- losses, f64 too ---- */

/* rdna_op_loss's; |x| and |target| of one shape. */
RDNA_API rdna_node *rdna_record_loss(rdna_recorder *r, rdna_node *x, rdna_node *target, rdna_loss loss, double beta,
                                     rdna_loss_reduction reduction);
/* rdna_op_cross_entropy's, without |options->outside|: |x| (rows, classes), |target| (rows) of i32 or i64, |weight|
 * (classes) or NULL. */
RDNA_API rdna_node *rdna_record_cross_entropy(rdna_recorder *r, rdna_node *x, rdna_node *target, rdna_node *weight,
                                              const rdna_cross_entropy *options);

#ifdef __cplusplus
}
#endif
#endif
