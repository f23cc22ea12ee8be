/* Blocks of which language models are made, over rdna_op: linear layers, rotary positions, attention over a cache,
 * gated feed-forward layers, and the decoder that most models are: a row of such layers with a residual stream.
 *
 *     x  --+-- norm -- attention -- [norm] --(+)--+-- norm -- feed-forward -- [norm] --(+)--  …  norm -- output
 *          |___________________________________|  |____________________________________|
 *
 * A model fills the structs of this header from its file (src/model/llm/arch/); what they hold decides what is run, and
 * a tensor whose data is NULL is not there. */
#ifndef RDNA_MODEL_NN_H
#define RDNA_MODEL_NN_H

#include "math/common/plan/scratch.h"
#include "model/weights/weights.h"
#include "rdna/llm_cache.h"
#include "rdna/op/attention.h"
#include "rdna/op/moe.h"
#include "rdna/op/recurrent.h"
#include "rdna/op/rope.h"
#include "rdna/stream.h"

enum { RDNA__NN_GIVEN_LAYERS = 8 }; /* at most, of those whose states a pass gives side by side */

/* The norm at a block's entry: RMSNorm, or LayerNorm where the decoder's layer_norm is set. */
typedef struct rdna__nn_norm {
  rdna_tensor weight; /* (width), f32; data NULL: there is no norm */
  rdna_tensor bias;   /* of LayerNorm, if it has one */
} rdna__nn_norm;

/* Rotary positions of some layers of a model. */
typedef struct rdna__nn_rotation {
  rdna_tensor inv_freq;      /* (rotated / 2), f32; of length 0: nothing is rotated */
  rdna_tensor long_inv_freq; /* instead of it where the context is longer than |short_context|; data NULL: never */
  int short_context;
  /* Of models whose tokens of a picture stand in rows and columns: the frequencies of the pairs that turn by the row,
   * and by the column, and 0 of the others, (rotated / 2); data NULL: none does. */
  rdna_tensor row_freq, column_freq;
  rdna_rope_layout layout;
  float magnitude; /* on sine and cosine */
} rdna__nn_rotation;

typedef struct rdna__nn_attention {
  rdna__matrix_weights q, k, v, output;
  rdna__matrix_weights qkv; /* q, k and v as one matrix, for fewer kernels a token */
  rdna__matrix_weights qk;  /* or q and k alone */
  bool shares_cache;        /* it reads the keys and values of an earlier layer, and has none of its own */
  bool gated; /* q's rows have, behind each head, a gate of as many values: sigmoid of it scales the head's result */
  rdna_tensor v_norm; /* of each head of v */
  rdna_tensor q_norm,
      k_norm; /* RMS norms before rotation: (head_dim), of each head, or of all heads of a token as one */
  const rdna__nn_rotation *rotation;
  int heads, kv_heads, head_dim;
  int window;        /* how far back it looks; 0: all the way */
  float scale;       /* of q.k */
  float softcap;     /* of scores; 0 is none */
  rdna_tensor sinks; /* (heads), f32: see rdna_attention */
} rdna__nn_attention;

/* Multi-head latent attention, which caches one vector a token for all heads: see latent.c. */
typedef struct rdna__nn_latent {
  rdna__matrix_weights q_a, q_b; /* queries through a vector of q_rank; q_rank 0: q_b alone */
  rdna__matrix_weights kv_a;     /* (rank + rotated, width) */
  rdna__matrix_weights output;
  rdna_tensor q_a_norm, kv_a_norm; /* (q_rank), (rank) */
  rdna_tensor k_b, v_b;            /* (heads, rank, unrotated), (heads, value_dim, rank) */
  const rdna__nn_rotation *rotation;
  int heads, q_rank, rank, rotated, unrotated, value_dim;
  float scale;
} rdna__nn_latent;

typedef enum rdna__nn_gate {
  RDNA__NN_GATE_SILU,
  RDNA__NN_GATE_GELU_TANH,
  RDNA__NN_GATE_GELU, /* as defined, by the error function */
  RDNA__NN_GATE_RELU_SQUARED,
  RDNA__NN_GATE_CLAMPED /* gpt-oss: gate sigmoid(1.702 gate) (up + 1), of gate and up clamped at 7 */
} rdna__nn_gate;
#define RDNA__NN_CLAMP_SLOPE 1.702
#define RDNA__NN_CLAMP_LIMIT 7.0

/* down (gate'(gate x) * up x); without a gate, down (gate'(up x)) */
typedef struct rdna__nn_ffn {
  rdna__matrix_weights gate, up, down;
  rdna__matrix_weights gate_up; /* gate and up as one matrix */
  int hidden;
  rdna__nn_gate activation;
  bool wide; /* what down reads leaves the range of f16 */
} rdna__nn_ffn;

/* A layer with a state: Gated DeltaNet, see recurrent.c; or without key heads a short convolution, see
 * short_convolution.c, which has qkv, convolution and output alone, and its channels as one head of values. */
typedef struct rdna__nn_recurrent {
  rdna__matrix_weights qkv, z;   /* (channels, width), (v_heads v_dim, width) */
  rdna__matrix_weights together; /* both in one, key head by key head, in place of them */
  rdna__matrix_weights b, a;     /* (v_heads, width) */
  rdna__matrix_weights ba;       /* both in one, key head by key head, in place of them */
  rdna__matrix_weights output;   /* (width, v_heads v_dim) */
  rdna_tensor convolution;       /* (channels, width of the convolution), f32 */
  rdna_tensor rate, dt;          /* (v_heads), f32 */
  rdna_tensor norm;              /* (v_dim), f32 */
  int k_heads, v_heads, k_dim, v_dim;
  int width;   /* of the convolution */
  bool tiled;  /* value head h is key head h % k_heads's; else h / repeats's */
  float scale; /* of q */
} rdna__nn_recurrent;

/* A mixture of experts in place of one feed-forward block. */
typedef struct rdna__nn_moe {
  rdna__matrix_weights router; /* (experts, width) */
  rdna_tensor ranking_bias;    /* (experts), f32: added to scores where experts are ranked */
  rdna_tensor gate, up, down;  /* (experts, hidden, width) twice, and (experts, width, hidden) */
  rdna_tensor gate_up;         /* (experts, 2 hidden, width) in place of the first two: rows of gate, then of up */
  rdna_tensor gate_bias, up_bias, down_bias; /* (experts, hidden) twice, (experts, width), f32 */
  int experts, used, hidden;
  rdna__nn_gate activation;
  bool wide;    /* as rdna__nn_ffn has it */
  bool on_host; /* the experts' matrices are in host memory, and the host computes their products */
  rdna_moe_score score;
  bool normalised;
  int groups, groups_kept, group_best; /* see rdna_moe_routing */
  float scale;
  rdna_tensor
      router_norm; /* (width): of the residual stream, for the router; data NULL: it reads what the experts read */
  rdna_tensor expert_scale; /* (experts): multiplies the router's weight of a chosen expert */
  /* Experts beside a dense ffn (Gemma 4): |norm| makes their input from the residual stream, and the two results are
   * added, normed by |ffn_post_norm| and |post_norm|. All (width); data NULL: experts alone, in place of ffn */
  rdna_tensor ffn_post_norm, post_norm, norm;
  rdna__nn_ffn shared;              /* an expert that every token takes; hidden 0: none */
  rdna__matrix_weights shared_gate; /* (1, width): sigmoid of this product scales it; weight.data NULL: none */
} rdna__nn_moe;

/* Per-layer embeddings (Gemma 3n and 4): a token has a small vector for each layer, which the layer adds as
 * x + norm(out(gelu(gate x) * vector)) */
typedef struct rdna__nn_injection {
  rdna__matrix_weights gate, out; /* (size, width), (width, size) */
  rdna_tensor norm;               /* (width); data NULL: there is none */
} rdna__nn_injection;

typedef struct rdna__nn_layer {
  rdna__nn_norm attention_norm, ffn_norm;
  rdna_tensor attention_post_norm, ffn_post_norm; /* (width), f32, of what comes out of a block */
  bool parallel; /* the feed-forward block reads what attention reads, and both are added at once */
  rdna__nn_attention attention;
  rdna__nn_latent latent;       /* in place of attention; rank 0: none */
  rdna__nn_recurrent recurrent; /* in place of both; width 0: none */
  rdna__nn_injection injection;
  float output_scale; /* of the residual stream behind the layer; 1: none */
  int cache, state;   /* the number of its cache or of its state among those of the model */
  rdna__nn_ffn ffn;
  rdna__nn_moe moe; /* in place of ffn; experts 0: none */
} rdna__nn_layer;

/* A row of layers. Of a model that is split, the host has the first layers and the device the others:
 *
 *     host     embedding, layers 0 to n - 1              |
 *     device                            x from the host  | layers n to the last, output
 */
typedef struct rdna__nn_decoder {
  int width, vocabulary, layer_count;
  int first, model_layers;      /* the number of layers[0] in the model, and how many that has */
  bool has_host_experts;        /* some layer has */
  int cache_count, state_count; /* layers with a cache, and with a state */
  double norm_epsilon;
  bool layer_norm;       /* norms of what goes into blocks are LayerNorm */
  float embedding_scale; /* 1: none */
  float residual_scale;  /* of what each block adds; 1: none */
  float logit_scale;     /* 1: none */
  float logit_softcap;   /* 0: none */
  /* Tokens see those behind them too: texts are read whole, in one pass, and nothing is kept of them. */
  bool bidirectional;
  bool whole_pictures; /* and tokens of a picture those of it, in models whose texts are causal */
  int deepstack;       /* behind so many of the model's first layers rows of pictures are added to x */
  /* What norms give is the residual stream, and not its blocks' input alone:
   *
   *     norm --+-- attention --(+)-- norm --+-- feed-forward --(+)-- norm  …
   *            |________________|           |___________________|            */
  bool post_norm;
  /* queries at position p are multiplied by 1 + beta ln(1 + floor(p / after)), so that attention over long texts does
   * not spread thin; beta 0: no */
  float temperature_beta;
  int temperature_after;
  rdna_dtype half;       /* the type of 16 bits for products of many tokens */
  rdna_tensor embedding; /* (vocabulary, width); data NULL: what comes in is in the pass's x and injected */
  rdna_tensor position_embedding, type_embedding; /* (positions, width), (types, width): added; data NULL: none */
  int injected;                                   /* values of the vectors for layers' injections; 0: none */
  rdna_tensor injected_embedding;                 /* (vocabulary, layers injected) */
  rdna__matrix_weights injected_projection;       /* (layers injected, width) */
  rdna_tensor injected_norm;                      /* (injected) */
  rdna__nn_norm output_norm;
  rdna__matrix_weights output; /* weight.data NULL, as that of the norm: what goes out is x */
  /* Of models that judge texts: labels = classifier(tanh(judge x)); judge.weight.data NULL: classifier(x) */
  rdna__matrix_weights judge, classifier;
  int labels;             /* 0: it does not */
  rdna__nn_layer *layers; /* (layer_count) */
} rdna__nn_decoder;

/* What a low-rank adapter adds to the product with a matrix W:  y = x W^T + scale (x A^T) B^T.  See adapter.c. */
typedef struct rdna__nn_low_rank {
  const char *begin, *end; /* where the rows of W lie, by which a matrix that has them finds this */
  rdna_tensor a, b;        /* (rank, columns), (rows, rank), f32 */
} rdna__nn_low_rank;

typedef struct rdna__nn_adapter {
  rdna__nn_low_rank *matrices; /* (count), ascending by where they begin; none overlaps another */
  int count;
} rdna__nn_adapter;

/* The tokens of one sequence in a pass, which are neighbours, and where its keys and values lie. */
typedef struct rdna__nn_span {
  int first, count;   /* tokens */
  int64_t length;     /* the positions that the last of them sees, or more: rows behind them hold numbers */
  int64_t base;       /* its position 0 is this row of the caches, and the others follow; -1: they are in pages */
  rdna_tensor pages;  /* i32: the pages of |length| positions, where base is -1 */
  const float *rows;  /* (count, width), on the host, in place of embeddings: it is of a picture; NULL: it is text */
  int64_t of_picture; /* tokens of that: what layer i adds stands (1 + i) of_picture rows behind */
  bool both_ways;     /* its tokens see each other, all |length| positions; it is none of those with few tokens */
  int filling;        /* so many of the last tokens see all that is before them alone; nor is it one with few tokens */
} rdna__nn_span;

/* One pass of tokens through the layers: where activations and caches are. The tokens of a sequence stand in order.
 * Sequences with few tokens in this pass (those that decode) come first, and attention takes them in one call; others
 * (prompts) follow, with a call each:
 *
 *     tokens   | a | b | c c | d d d d d d d … |      spans a b c d, few = 4
 *              |<--- few --->|                        */
typedef struct rdna__nn_pass {
  rdna_stream *stream;
  int count;                              /* tokens */
  int few;                                /* tokens of the sequences with few: the first so many */
  int few_spans, few_most;                /* how many spans those are, and the most tokens of one */
  bool few_paged;                         /* their caches are read through |table|, else from |cache_base| on */
  int64_t length;                         /* the most positions that a token sees */
  int64_t few_length;                     /* and one of the few */
  int span_count;                         /* sequences */
  const rdna__nn_span *spans;             /* (span_count) */
  rdna_tensor ids, positions, cache_base; /* (count), i32 */
  /* (count), i32: by which rotary positions turn, and by how much more row_freq and column_freq do. Behind a picture
   * they are fewer than |positions|, as it counts for no more than its longer side. */
  rdna_tensor turns, rows, columns;
  rdna_tensor cache_rows;   /* (count), i32: where keys and values of a token go */
  rdna_tensor sequence;     /* (count), i32: its row of |table| */
  rdna_tensor types;        /* (count), i32: its row of the decoder's type_embedding */
  rdna_tensor table;        /* (spans, most pages), i32: see rdna_op_attention_paged */
  rdna_tensor wanted;       /* i32: the tokens whose logits are asked for; data NULL: the last ones */
  rdna_tensor temperatures; /* (count, 1), f32: see temperature_beta */
  /* What goes into products: f32, or with many tokens 16 bits, for the matrix units. The residual stream x, what blocks
   * add to it, and q, k and v before they are rotated stay f32. */
  rdna_dtype type;
  bool may_round; /* on the host: tokens in f32 may be rounded where they meet weights in blocks */
  /* Of one token in f32, whose launches cost as much as their bytes: products do what stands around them. What a block
   * reads is then the residual stream, and |input_norm| (width) its norm, with |norm_epsilon|; NULL: it was normed. And
   * with |adds| the block's last product adds to what |projected| holds. The decoder sets them, block by block. */
  const rdna_tensor *input_norm;
  double norm_epsilon;
  bool adds;
  rdna_llm_gives gives; /* what it writes of a token that is wanted */
  /* … or, side by side, the residual stream before each of these layers; their number stands for the last norm */
  int layer_count, layers[RDNA__NN_GIVEN_LAYERS];
  /* The adapters of the pass's sequences, and the scale of each for each token, which is 0 where its sequence does not
   * have it: so sequences with different ones go through the same products. */
  int adapter_count;
  const rdna__nn_adapter *const *adapters;   /* (adapter_count) */
  rdna_tensor adapter_scales, wanted_scales; /* (adapter_count, count), (adapter_count, rows that are given), f32 */
  void *x, *h, *qkv, *attended, *projected;  /* activations of the tokens: see rdna__nn_buffers */
  void *gate_up;
  void *router_logits, *expert_indices, *expert_shares; /* of experts: (count, experts), (count, used) twice */
  void *experts;                                        /* (count, used, 2 hidden) */
  void *expert_input;                                   /* (count, width) */
  void *shared;                                         /* (count, width) */
  void *injected;                                       /* (2, count, layers injected) */
  void *latent;                                         /* what rdna__nn_latent_values counts */
  void *head_numbers;                                   /* (batch, heads), i32: 0 to heads - 1 in each row */
  void *recurrent;                                      /* what rdna__nn_recurrent_values counts */
  void *conv_states, *states; /* (recurrent layers, …_layer_bytes): of each (state_slots, …), see rdna_op_gated_delta */
  size_t conv_layer_bytes, state_layer_bytes;
  int64_t state_slots;
  rdna_tensor starts, slots; /* of the spans: see rdna_sequences */
  void *rotated;             /* q, of 16 bits, where attention is on matrix units */
  /* Where caches are blocks: keys and values of the tokens before they are rounded, (count, cache_row) each, the same
   * in blocks, and the numbers of the rows, 0, 1, 2, … */
  void *fresh, *fresh_blocks, *fresh_rows;
  rdna_tensor zeros; /* (batch), i32: the first rows of sequences that were copied, where caches are not read as they
                        lie */
  void *k_cache, *v_cache; /* (cache_count, cache_layer_bytes): each (rows, kv_heads, head_dim) of kv_dtype */
  size_t cache_layer_bytes, v_layer_bytes; /* the latter 0 where values lie in keys */
  int64_t page_rows, pages;                /* of a cache: rows are page_rows * pages */
  int64_t context;                         /* the most positions of one sequence */
  rdna_dtype kv_dtype;
  int32_t split;   /* of attention over caches: see rdna_attention */
  void *workspace; /* of attention */
  size_t workspace_bytes;
  /* Of experts that the host computes: its stream, and there h, expert_input, expert_indices, expert_shares, experts
   * and projected. */
  const struct rdna__nn_pass *host;
} rdna__nn_pass;

/* How many values the largest layer needs in each buffer: of activations for each token of a pass (gate_up has 7 more),
 * of caches for each position, of states for each slot. */
typedef struct rdna__nn_buffers {
  int64_t width, qkv, attended, gate_up;
  int64_t router, used, experts, shared; /* 0 where no layer has experts */
  int64_t injected;
  int64_t recurrent, conv_state, state; /* of recurrent layers: the buffer, and what a slot of a state holds */
  int64_t latent, heads;                /* of latent attention; heads that it has */
  int64_t cache_row;                    /* of one layer's keys */
  int64_t v_row;                        /* of values beside them; 0 where all layers have them in their keys */
  bool wide; /* a layer has heads above 256 values, or latent ones: of blocks, they are converted before attention */
} rdna__nn_buffers;
rdna__nn_buffers rdna__nn_buffers_of(const rdna__nn_decoder *decoder);

/* The attention of |tokens|, of which one sees |length| positions at most. */
rdna_attention rdna__nn_attention_options(const rdna__nn_pass *pass, const rdna__nn_attention *a, int tokens,
                                          int64_t length);

/* out = x W^T with the matrix's bias and scale, and what the pass's adapters add to it. */
rdna_status rdna__nn_linear(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                            const rdna_tensor *out);
/* Adds to out = x W^T what the pass's adapters have for the rows of W. */
rdna_status rdna__nn_adapt(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                           const rdna_tensor *out);
/* The same of what a block reads, with its norm where the pass says so; and of what it gives, which may be added. */
rdna_status rdna__nn_linear_in(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                               const rdna_tensor *out);
rdna_status rdna__nn_linear_out(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                                const rdna_tensor *out);
/* out = activation(G x) * (U x) of |m|, G's rows and then U's, with the same norm; false where that is no one launch.
 */
bool rdna__nn_is_gated(const rdna__nn_pass *pass, const rdna__matrix_weights *m, rdna__nn_gate gate,
                       const rdna_tensor *x, const rdna_tensor *out);
rdna_status rdna__nn_linear_gated(const rdna__nn_pass *pass, const rdna__matrix_weights *m, rdna__nn_gate gate,
                                  const rdna_tensor *x, const rdna_tensor *out);
/* The function of a gate that a product may apply; RDNA_ACTIVATION_NONE where none does. */
rdna_activation rdna__nn_activation(rdna__nn_gate gate);
/* Whether the products of the pass do what stands around them, as far as their matrices let them: whether |m| can norm
 * the residual stream |x| itself, and whether it, or NULL for experts, can add to it. */
bool rdna__nn_can_norm(const rdna__nn_pass *pass, const rdna__matrix_weights *m, const rdna_tensor *x,
                       const rdna_tensor *norm);
bool rdna__nn_can_add(const rdna__nn_pass *pass, const rdna__matrix_weights *m);
/* projected = the attention of layer |index| over |h| (count, width), whose keys and values go to the cache. */
rdna_status rdna__nn_attend(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index, const rdna_tensor *h,
                            const rdna_tensor *projected);
/* The same of latent attention, and the values of its buffer for one token. */
rdna_status rdna__nn_attend_latent(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                                   const rdna_tensor *h, const rdna_tensor *projected);
int64_t rdna__nn_latent_values(const rdna__nn_latent *latent);
/* projected = the feed-forward block |ffn| over |h| (count, width). */
rdna_status rdna__nn_feed_forward(const rdna__nn_pass *pass, const rdna__nn_ffn *ffn, const rdna_tensor *h,
                                  const rdna_tensor *projected);

/* projected = the recurrent layer |index|, Gated DeltaNet or a short convolution, over |h| (count, width). Moves its
 * state to behind these tokens. */
rdna_status rdna__nn_recur(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index, const rdna_tensor *h,
                           const rdna_tensor *projected);
rdna_status rdna__nn_convolve(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                              const rdna_tensor *h, const rdna_tensor *projected);
/* The pass's sequences; the last inputs of |layer|'s convolution; and, for one token, how many values its buffer has
 * and how many channels it convolves. */
rdna_sequences rdna__nn_sequences(const rdna__nn_pass *pass);
rdna_tensor rdna__nn_conv_state(const rdna__nn_pass *pass, const rdna__nn_layer *layer);
int64_t rdna__nn_recurrent_values(const rdna__nn_recurrent *recurrent);
int64_t rdna__nn_recurrent_channels(const rdna__nn_recurrent *recurrent);

/* The rows of |cache| (rows, kv_heads, d) that hold the positions of |span| up to its length, one after the other and
 * of |dtype|: a view of the cache where that will do, else a copy, gathered from its pages and converted. */
rdna_status rdna__nn_rows_of(const rdna__nn_pass *pass, const rdna__nn_span *span, const rdna_tensor *cache,
                             rdna_dtype dtype, rdna__scratch *scratch, rdna_tensor *rows);
/* The type of 16 bits in which attention over whole sequences reads the caches. */
rdna_dtype rdna__nn_sequence_type(const rdna__nn_pass *pass);
/* rdna_op_rope_qkv_write of tokens from |first| on; the caches may have any type, blocks too. */
rdna_status rdna__nn_rotate_and_keep(const rdna__nn_pass *pass, const rdna_rope *rope, int first, const rdna_tensor *q,
                                     const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *k_cache,
                                     const rdna_tensor *v_cache);

/* out (count, heads, dv) = the attention of a pass's tokens q (count, heads, d) over the caches (rows, kv_heads, d) and
 * (rows, kv_heads, dv), which may lie in the keys; f32, and on matrix units where the pass is of 16 bits. |a| has
 * heads, kv_heads, scale and limits. */
rdna_status rdna__nn_attend_over(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna_tensor *q,
                                 const rdna_tensor *k_cache, const rdna_tensor *v_cache, const rdna_tensor *out);

/* out = norm(x), of x (count, width); |out| may be of a pass's type, and |place| is as large in f32. */
rdna_status rdna__nn_normalize(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *x,
                               const rdna__nn_norm *norm, const rdna_tensor *place, const rdna_tensor *out);

/* gate = f(gate) up, both of any strides. */
rdna_status rdna__nn_gate_with(rdna_stream *stream, rdna__nn_gate activation, const rdna_tensor *gate,
                               const rdna_tensor *up);
/* Whether the experts |moe| and their router can norm the residual stream |x| themselves. */
bool rdna__nn_can_norm_experts(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *x,
                               const rdna_tensor *norm);
/* projected = the mixture |moe| over |h| (count, width), whose router reads |router_input|; |h| is both where the pass
 * has a norm for it. */
rdna_status rdna__nn_mix_experts(const rdna__nn_pass *pass, const rdna__nn_moe *moe, const rdna_tensor *h,
                                 const rdna_tensor *router_input, const rdna_tensor *projected);
/* The vectors of all layers' injections, from the embeddings |x|. */
rdna_status rdna__nn_prepare_injections(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder,
                                        const rdna_tensor *x);
/* x += what layer |index| injects. */
rdna_status rdna__nn_inject(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                            const rdna_tensor *x);
/* Runs the pass's tokens through the decoder, and writes what the pass gives of |rows| of them, (rows,
 * rdna__nn_given_values), to |out|: of those that the pass wants, or else of the last. */
rdna_status rdna__nn_decode(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int rows, void *out);
/* Values of a token. */
int64_t rdna__nn_given_values(const rdna__nn_decoder *decoder, const rdna__nn_pass *pass);

/* A contiguous matrix at |data|: of f32, or of a pass's type. */
rdna_tensor rdna__nn_matrix(void *data, int64_t rows, int64_t columns);
rdna_tensor rdna__nn_input(const rdna__nn_pass *pass, void *data, int64_t columns);
/* The same of f32 as (tokens, heads, columns). */
rdna_tensor rdna__nn_heads(void *data, int64_t tokens, int64_t heads, int64_t columns);
/* |count| rows of |t|, in its first dimension, from |first| on. */
rdna_tensor rdna__nn_rows(const rdna_tensor *t, int64_t first, int64_t count);
/* x = by x */
rdna_status rdna__nn_scale(rdna_stream *stream, const rdna_tensor *x, double by);

#endif
