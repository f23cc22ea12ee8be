/* Recurrent layers of language models: what a layer knows of the tokens before is a state of fixed size, which each
 * token reads and changes. Here are the parts of Gated DeltaNet (Yang, Kautz and Hatamizadeh, "Gated Delta Networks",
 * 2024), of which Qwen3-Next and Qwen3.5 are made, and at the end the cells of LSTM, GRU
 * and plain RNNs, and whole layers of them.
 *
 *     x -- product -- causal_conv -- q, k, v -- gated_delta -- rms_norm_gated -- product
 *                      state: the last inputs    a, b, state       gate z
 *
 * All but the cells is f32. Empty tensors are RDNA_OK. RDNA_INVALID_ARGUMENT: shapes or types that disagree, missing
 * data, overlap, a number that is not finite. RDNA_UNSUPPORTED: another type, width or layout, more than 65,535
 * sequences. */
#ifndef RDNA_OP_RECURRENT_H
#define RDNA_OP_RECURRENT_H

#include <stdbool.h>

#include "rdna/op/activation.h"
#include "rdna/stream.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which tokens follow one another, and where their state is: sequence s is the rows from starts[s] to starts[s + 1] of
 * what has a row for each token, in the order of time, and its state is slot slots[s] of the state, which the call
 * reads once and writes once. A slot of zeros begins a sequence; a copy of a slot is a checkpoint. A prompt is one
 * sequence of many tokens, a step of decoding many sequences of one token.
 *
 *     starts  0  3  4        tokens  | 0 1 2 | 3 |       state  | slot 0 | slot 1 | slot 2 |
 *     slots   2  0                     seq 0  seq 1                seq 1             seq 0
 *
 * No two sequences may have one slot. A sequence whose slot does not exist, -1 say, is padding: its rows of |out|
 * become zeros. A sequence without tokens leaves its state alone, and rows of no sequence are not written. */
typedef struct rdna_sequences {
  size_t size;               /* of the struct: RDNA_SEQUENCES_INIT sets it */
  const rdna_tensor *starts; /* (sequences + 1) i32, contiguous, ascending, from 0 to the number of tokens at most */
  const rdna_tensor *slots;  /* (sequences) i32, contiguous */
  int64_t max_tokens;        /* the most tokens of one sequence, at least 1: a wrong one is slow, never wrong */
} rdna_sequences;
#define RDNA_SEQUENCES_INIT .size = sizeof(rdna_sequences)

/* Convolution of each channel over time, which sees the token and those before it:
 *
 *     out(t, c) = activation(sum over j < width of weight(c, j) * x(t - (width - 1) + j, c))
 *
 * where x of before the sequence's first row is what |state| holds, the oldest first; it then holds the last width - 1
 * rows. |x| and |out| are (tokens, channels), of any stride between rows, and overlap nothing; |weight| (channels,
 * width) and |state| (slots, channels, width - 1) are contiguous. width is 2, 3 or 4, |activation| none or SiLU. */
RDNA_CHECKED rdna_status rdna_op_causal_conv(rdna_stream *stream, const rdna_sequences *sequences, const rdna_tensor *x,
                                             const rdna_tensor *weight, rdna_activation activation,
                                             const rdna_tensor *state, const rdna_tensor *out);

typedef struct rdna_gated_delta {
  size_t size;             /* of the struct: RDNA_GATED_DELTA_INIT sets it */
  float scale;             /* of q, usually 1 / sqrt(d_k) */
  float epsilon;           /* of the norms of q and k, not negative; 1e-6 in all models so far */
  const rdna_tensor *rate; /* (k_heads, repeats), of any strides: -exp(A_log), not positive, or states grow */
  const rdna_tensor *dt;   /* (k_heads, repeats), of any strides */
} rdna_gated_delta;
#define RDNA_GATED_DELTA_INIT .size = sizeof(rdna_gated_delta)

/* The gated delta rule. A head has a state S of (d_v, d_k), a map from keys to values. A token lets it decay, corrects
 * what it answers to the token's key towards the token's value, and asks it for the answer to q:
 *
 *     k' = k / sqrt(sum(k^2) + epsilon)       q' = scale * q / sqrt(sum(q^2) + epsilon)
 *     S  = S * exp(rate * softplus(a + dt))
 *     S  = S + sigmoid(b) * (v - S k') k'^T
 *     out = S q'
 *
 * |q| and |k| are (tokens, k_heads, d_k). Each of their heads serves |repeats| value heads: |v| and |out| are
 * (tokens, k_heads, repeats, d_v), |a| and |b| (tokens, k_heads, repeats), |state| (slots, k_heads, repeats, d_v, d_k).
 * d_k is a multiple of 4, at most 256. |state| is contiguous; the others may have any strides, but for the last
 * dimension of q, k, v and out, which is dense, so that how value heads are ordered is a matter of strides. q, k and
 * state are aligned to 16 bytes, the strides of q and k multiples of 4 values. |state| and |out| overlap nothing.
 *
 *     value heads of 2 key heads with 3 repeats    stride of k_heads    of repeats
 *     0 0 0 1 1 1  key head by key head                  3 d_v             d_v
 *     0 1 0 1 0 1  repeat by repeat                        d_v           2 d_v
 *
 * Sums have a fixed order: the same call gives the same bits, and so does a sequence given in several calls. */
RDNA_CHECKED rdna_status rdna_op_gated_delta(rdna_stream *stream, const rdna_gated_delta *options,
                                             const rdna_sequences *sequences, const rdna_tensor *q,
                                             const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *a,
                                             const rdna_tensor *b, const rdna_tensor *state, const rdna_tensor *out);

/* out = x / sqrt(mean(x^2) + epsilon) * weight * silu(gate), the mean over d. |x|, |gate| and |out| are (tokens, heads,
 * d), of any strides but for the last dimension, which is dense; |weight| is (d), contiguous, NULL for ones. |out| may
 * be f16 or bf16 too. If it is f32 it may be |x| or |gate|; otherwise it overlaps nothing. */
RDNA_CHECKED rdna_status rdna_op_rms_norm_gated(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *gate,
                                                const rdna_tensor *weight, double epsilon, const rdna_tensor *out);

/* out = x * sigmoid(gate): the gate of attention's results, or of an expert's. Tensors as above; |gate| may also be
 * (tokens, heads, 1), one number for a whole head, and is then not |out|. */
RDNA_CHECKED rdna_status rdna_op_mul_sigmoid(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *gate,
                                             const rdna_tensor *out);

/* One step of an LSTM (Hochreiter and Schmidhuber, 1997), after its products with the weights:
 *
 *     i, f, g, o = the quarters of a row of input + hidden + input_bias + hidden_bias
 *     c_out = sigmoid(f) * c + sigmoid(i) * tanh(g)         h_out = sigmoid(o) * tanh(c_out)
 *
 * |gates| takes sigmoid(i), sigmoid(f), tanh(g) and sigmoid(o), which the gradient reads. |c|, |h_out| and |c_out| are
 * (rows, n), |input|, |hidden| and |gates| (rows, 4 n), of any stride between rows; the biases are (4 n), contiguous,
 * or NULL. All are of one type, f32, f16, bf16 or f64. |gates| may be |input| or |hidden|; otherwise what is written
 * overlaps nothing. */
RDNA_CHECKED rdna_status rdna_op_lstm_cell(rdna_stream *stream, const rdna_tensor *input, const rdna_tensor *hidden,
                                           const rdna_tensor *input_bias, const rdna_tensor *hidden_bias,
                                           const rdna_tensor *c, const rdna_tensor *h_out, const rdna_tensor *c_out,
                                           const rdna_tensor *gates);

/* The gradient of lstm_cell: from |dh| + |dout|, of h_out, and |dc|, of c_out (NULL: zeros), that of the rows that the
 * gates are made of, |dgates|, and of c, |dc_out|. In a layer dh is what the next step hands back, and dout that of the
 * layer's output. |gates|, |c| and |c_next| are lstm_cell's gates, c and c_out. Shapes, strides and types as there.
 * |dc_out| may be |dc|; otherwise what is written overlaps nothing. */
RDNA_CHECKED rdna_status rdna_op_lstm_cell_backward(rdna_stream *stream, const rdna_tensor *dh, const rdna_tensor *dout,
                                                    const rdna_tensor *dc, const rdna_tensor *gates,
                                                    const rdna_tensor *c, const rdna_tensor *c_next,
                                                    const rdna_tensor *dgates, const rdna_tensor *dc_out);

/* One step of a GRU (Cho et al., 2014), after its products with the weights, with the reset gate behind the product:
 *
 *     a_r, a_z, a_n = the thirds of a row of input + input_bias       b_r, b_z, b_n = those of hidden + hidden_bias
 *     r = sigmoid(a_r + b_r)     z = sigmoid(a_z + b_z)     n = tanh(a_n + r b_n)     h_out = n + z (h - n)
 *
 * |gates| takes r, z and n, |inner| b_n, which the gradient reads. |h|, |h_out| and |inner| are (rows, n), |input|,
 * |hidden| and |gates| (rows, 3 n), the biases (3 n); strides, types and overlap as lstm_cell's. */
RDNA_CHECKED rdna_status rdna_op_gru_cell(rdna_stream *stream, const rdna_tensor *input, const rdna_tensor *hidden,
                                          const rdna_tensor *input_bias, const rdna_tensor *hidden_bias,
                                          const rdna_tensor *h, const rdna_tensor *h_out, const rdna_tensor *gates,
                                          const rdna_tensor *inner);

/* The gradient of gru_cell: from |dh| + |dout|, of h_out (NULL: zeros), those of input and of hidden, |dinput| and
 * |dhidden|, and of h as h_out alone reads it, |dh_out|, to which the caller adds dhidden times the weights. |gates|,
 * |inner| and |h| are the step's. Shapes, strides and types as there. |dh_out| may be |dh|; otherwise what is written
 * overlaps nothing. */
RDNA_CHECKED rdna_status rdna_op_gru_cell_backward(rdna_stream *stream, const rdna_tensor *dh, const rdna_tensor *dout,
                                                   const rdna_tensor *gates, const rdna_tensor *inner,
                                                   const rdna_tensor *h, const rdna_tensor *dinput,
                                                   const rdna_tensor *dhidden, const rdna_tensor *dh_out);

/* The gradient of a step h_out = activation(sum), which products make (rdna_op_gemm_epilogue): dsum = (dh + dout)
 * activation'(sum). |activation| is tanh or relu, and all else is as above. |dsum| may be |dh|; otherwise it overlaps
 * nothing. */
RDNA_CHECKED rdna_status rdna_op_rnn_cell_backward(rdna_stream *stream, rdna_activation activation,
                                                   const rdna_tensor *dh, const rdna_tensor *dout,
                                                   const rdna_tensor *h_out, const rdna_tensor *dsum);

/* The most units of a layer whose steps are one call. */
enum { RDNA_RECURRENT_LAYER_UNITS = 1024 };

typedef enum rdna_cell { RDNA_CELL_LSTM, RDNA_CELL_GRU, RDNA_CELL_TANH, RDNA_CELL_RELU, RDNA_CELL_COUNT } rdna_cell;

/* A layer of one direction, without its products with the inputs. |h| and |c|, the states of its sequences before their
 * first step, are (rows, n), n at most RDNA_RECURRENT_LAYER_UNITS. Tokens are those of all steps: step t has tokens
 * begin[t] to begin[t + 1], of which the first is the first sequence's, and so on; sequences that end leave the later
 * ones shorter, so the longest come first. A token that |begin| puts outside belongs to no step. */
typedef struct rdna_recurrent_layer {
  size_t size; /* of the struct: RDNA_RECURRENT_LAYER_INIT sets it */
  rdna_cell cell;
  bool reverse;              /* from the last step to the first */
  const rdna_tensor *begin;  /* (steps + 1) i32, contiguous; NULL: all steps have |rows| tokens */
  const rdna_tensor *weight; /* (parts n, n) of the states, parts being an LSTM's 4, a GRU's 3, else 1 */
  const rdna_tensor *bias;   /* (3 n) of a GRU's products with the states, or NULL; of forward alone */
  const rdna_tensor *h;
  const rdna_tensor *c; /* an LSTM's, else NULL */
} rdna_recurrent_layer;
#define RDNA_RECURRENT_LAYER_INIT .size = sizeof(rdna_recurrent_layer)

/* Whether recurrent_layer is thought to be faster than a product and a cell for each step, for |rows| sequences and n
 * units: of more units or rows than that the products of gemm are, which read the weights less often. False for what it
 * does not offer. */
RDNA_API bool rdna_recurrent_layer_pays(rdna_cell cell, rdna_dtype dtype, int64_t rows, int64_t n);

/* All steps of a layer, in one launch of up to 64 units, of more in one for each step: before it |gates|, (tokens,
 * parts n), holds the products of the inputs with their weights and biases; after it what lstm_cell and gru_cell call
 * gates. |out| takes the h of each token, |cells| an LSTM's c, |inner| a GRU's, (tokens, n); those that a cell has not
 * are NULL. Without gates, of tanh and relu, the sums are in |out| before. States are rounded to the type after every
 * step.
 *
 * All are contiguous, of one type, f32, f16 or bf16; what is written overlaps nothing. RDNA_UNSUPPORTED: more
 * units, more than 2^30 tokens, rows or steps. */
RDNA_CHECKED rdna_status rdna_op_recurrent_layer(rdna_stream *stream, const rdna_recurrent_layer *layer,
                                                 const rdna_tensor *gates, const rdna_tensor *out,
                                                 const rdna_tensor *cells, const rdna_tensor *inner);

/* Its gradient: from |dout|, of out, |dh| and |dc|, of each sequence's last states (NULL: zeros), those of the sums,
 * |dsums|, (tokens, parts n), of a GRU's products with the states, |dhidden|, (tokens, 3 n), and of the first states,
 * |dfirst| and |dfirst_c|. The gradient of |weight| is the product of dsums (dhidden) with the states before each
 * token. |gates|, |out|, |cells| and |inner| are as the steps left them; of a cell that has it not, all that is c's,
 * cells, inner or dhidden is NULL. */
RDNA_CHECKED rdna_status rdna_op_recurrent_layer_backward(rdna_stream *stream, const rdna_recurrent_layer *layer,
                                                          const rdna_tensor *dout, const rdna_tensor *dh,
                                                          const rdna_tensor *dc, const rdna_tensor *gates,
                                                          const rdna_tensor *out, const rdna_tensor *cells,
                                                          const rdna_tensor *inner, const rdna_tensor *dsums,
                                                          const rdna_tensor *dhidden, const rdna_tensor *dfirst,
                                                          const rdna_tensor *dfirst_c);

#ifdef __cplusplus
}
#endif
#endif
