/* The row of layers that most language models are. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

rdna__nn_buffers rdna__nn_buffers_of(const rdna__nn_decoder *decoder) {
  rdna__nn_buffers most = {.width = decoder->width, .injected = 2 * (int64_t)decoder->model_layers * decoder->injected};
  for (int i = 0; i < decoder->layer_count; i++) {
    const rdna__nn_layer *layer = &decoder->layers[i];
    const rdna__nn_attention *a = &layer->attention;
    int64_t queries = (int64_t)a->heads * a->head_dim, keys = (int64_t)a->kv_heads * a->head_dim;
    most.qkv = larger(most.qkv, (a->gated ? 3 : 1) * queries + 2 * keys);
    most.attended = larger(most.attended, queries);
    const rdna__nn_recurrent *r = &layer->recurrent;
    if (r->width) {
      most.recurrent = larger(most.recurrent, rdna__nn_recurrent_values(r));
      most.conv_state = larger(most.conv_state, rdna__nn_recurrent_channels(r) * (r->width - 1));
      most.state = larger(most.state, (int64_t)r->v_heads * r->v_dim * r->k_dim);
    }
    const rdna__nn_latent *latent = &layer->latent;
    if (latent->rank) {
      queries = 0, keys = latent->rank + latent->rotated;
      most.latent = larger(most.latent, rdna__nn_latent_values(latent));
      most.heads = larger(most.heads, latent->heads);
      most.attended = larger(most.attended, latent->heads * keys);
    }
    const rdna__nn_moe *moe = &layer->moe;
    bool has_ffn = !moe->experts || moe->norm.data;
    if (has_ffn) most.gate_up = larger(most.gate_up, 2 * (int64_t)layer->ffn.hidden);
    most.gate_up = larger(most.gate_up, 2 * (int64_t)moe->shared.hidden);
    most.router = larger(most.router, moe->experts);
    most.used = larger(most.used, moe->used);
    most.experts = larger(most.experts, 2 * (int64_t)moe->used * moe->hidden);
    if (moe->experts || layer->parallel) most.shared = decoder->width;
    if (decoder->bidirectional) continue; /* without caches */
    if (!r->width) most.cache_row = larger(most.cache_row, keys);
    if (!latent->rank && !r->width) most.v_row = larger(most.v_row, keys);
    if (latent->rank || (a->head_dim > 256 && !r->width)) most.wide = true;
  }
  return most;
}

/* |*h| becomes x in the type of products. */
static rdna_status as_input(const rdna__nn_pass *pass, const rdna_tensor *x, const rdna_tensor *place, rdna_tensor *h) {
  *h = pass->type == RDNA_F32 ? *x : *place;
  return pass->type == RDNA_F32 ? RDNA_OK : rdna_op_cast(pass->stream, x, place);
}

rdna_status rdna__nn_normalize(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *x,
                               const rdna__nn_norm *norm, const rdna_tensor *place, const rdna_tensor *out) {
  double epsilon = decoder->norm_epsilon;
  if (!decoder->layer_norm) return rdna_op_rms_norm(pass->stream, x, &norm->weight, epsilon, out);
  const rdna_tensor *bias = norm->bias.data ? &norm->bias : NULL;
  if (out->dtype == RDNA_F32) return rdna_op_layer_norm(pass->stream, x, &norm->weight, bias, epsilon, out, NULL, NULL);
  RDNA_TRY(rdna_op_layer_norm(pass->stream, x, &norm->weight, bias, epsilon, place, NULL, NULL));
  return rdna_op_cast(pass->stream, place, out);
}

/* What a block gave is added to the residual stream |x|, after the block's own norm |post|; |*h| becomes what the next
 * block reads: the norm |next| of x, or x itself. |branch| is the block's result, |place| where a norm goes. */
static rdna_status add(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *branch,
                       const rdna_tensor *post, const rdna__nn_norm *next, const rdna_tensor *x,
                       const rdna_tensor *place, rdna_tensor *h) {
  const rdna_scalar zero = rdna_scalar_real(0);
  if (decoder->post_norm) {
    RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, branch, zero, zero, branch));
    RDNA_TRY(rdna__nn_normalize(pass, decoder, branch, next, branch, x));
    return as_input(pass, x, place, h);
  }
  if (post->data) RDNA_TRY(rdna_op_rms_norm(pass->stream, branch, post, decoder->norm_epsilon, branch));
  RDNA_TRY(rdna__nn_scale(pass->stream, branch, decoder->residual_scale));
  *h = *place;
  if (next->weight.data && !decoder->layer_norm)
    return rdna_op_add_rms_norm(pass->stream, branch, x, &next->weight, decoder->norm_epsilon, place);
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, branch, zero, zero, x));
  if (next->weight.data) return rdna__nn_normalize(pass, decoder, x, next, branch, place);
  return as_input(pass, x, place, h);
}

/* Runs the block of layer |index| that mixes tokens: attention, latent attention, recurrence or a convolution. */
static rdna_status mix_tokens(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                              const rdna_tensor *h, const rdna_tensor *out) {
  const rdna__nn_layer *layer = &decoder->layers[index];
  if (layer->recurrent.k_heads) return rdna__nn_recur(pass, decoder, index, h, out);
  if (layer->recurrent.width) return rdna__nn_convolve(pass, decoder, index, h, out);
  if (layer->latent.rank) return rdna__nn_attend_latent(pass, decoder, index, h, out);
  return rdna__nn_attend(pass, decoder, index, h, out);
}

/* Runs the block that takes each token alone: feed-forward, experts, or the sum of both after a norm of each. */
static rdna_status feed(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna__nn_layer *layer,
                        const rdna_tensor *h, const rdna_tensor *x, const rdna_tensor *out) {
  const rdna__nn_moe *moe = &layer->moe;
  if (!moe->experts) return rdna__nn_feed_forward(pass, &layer->ffn, h, out);
  if (!moe->norm.data) return rdna__nn_mix_experts(pass, moe, h, h, out);
  const rdna_scalar zero = rdna_scalar_real(0);
  double epsilon = decoder->norm_epsilon;
  rdna_tensor beside = rdna__nn_matrix(pass->shared, pass->count, decoder->width);
  rdna_tensor input = rdna__nn_matrix(pass->expert_input, pass->count, decoder->width), of_router = beside;
  RDNA_TRY(rdna_op_rms_norm(pass->stream, x, &moe->norm, epsilon, &input));
  RDNA_TRY(rdna_op_rms_norm(pass->stream, x, &moe->router_norm, epsilon, &of_router));
  RDNA_TRY(rdna__nn_mix_experts(pass, moe, &input, &of_router, out));
  RDNA_TRY(rdna_op_rms_norm(pass->stream, out, &moe->post_norm, epsilon, out));
  RDNA_TRY(rdna__nn_feed_forward(pass, &layer->ffn, h, &beside));
  RDNA_TRY(rdna_op_rms_norm(pass->stream, &beside, &moe->ffn_post_norm, epsilon, &beside));
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD, out, &beside, zero, zero, out);
}

/* Adds the feed-forward block over |h| to |branch|, which is attention's result over the same |h|. */
static rdna_status feed_beside(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna__nn_layer *layer,
                               const rdna_tensor *h, const rdna_tensor *branch) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor beside = rdna__nn_matrix(pass->shared, pass->count, decoder->width);
  RDNA_TRY(rdna__nn_feed_forward(pass, &layer->ffn, h, &beside));
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD, branch, &beside, zero, zero, branch);
}

/* Ends a layer: adds |branch| to the residual stream |x|, injects the token's vector for this layer, scales, and norms
 * for the next one. */
static rdna_status finish_layer(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                                const rdna_tensor *branch, const rdna__nn_norm *next, const rdna_tensor *x,
                                const rdna_tensor *place, rdna_tensor *h) {
  const rdna__nn_layer *layer = &decoder->layers[index];
  const rdna__nn_norm none = {0};
  bool more = layer->injection.norm.data || layer->output_scale != 1;
  RDNA_TRY(add(pass, decoder, branch, &layer->ffn_post_norm, more ? &none : next, x, place, h));
  if (!more) return RDNA_OK;
  if (layer->injection.norm.data) RDNA_TRY(rdna__nn_inject(pass, decoder, index, x));
  RDNA_TRY(rdna__nn_scale(pass->stream, x, layer->output_scale));
  if (!next->weight.data) return as_input(pass, x, place, h);
  *h = *place;
  return rdna__nn_normalize(pass, decoder, x, next, branch, place);
}

int64_t rdna__nn_given_values(const rdna__nn_decoder *decoder, rdna_llm_gives gives) {
  if (gives == RDNA_LLM_GIVES_LABELS) return decoder->labels;
  return gives == RDNA_LLM_GIVES_STATES ? decoder->width : decoder->vocabulary;
}

/* The wanted rows of |h|, perhaps where blocks write, which nobody reads any more. */
static rdna_status take_wanted(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int rows,
                               const rdna_tensor *h, rdna_tensor *wanted) {
  *wanted = rdna__nn_rows(h, pass->count - rows, rows);
  if (!pass->wanted.data) return RDNA_OK;
  *wanted = rdna_tensor_contiguous(pass->projected, h->dtype, 2, (int64_t[]){rows, decoder->width});
  return rdna_op_index_select(pass->stream, h, 0, &pass->wanted, wanted, NULL);
}

/* What models say of tokens that judge texts; |h| is f32, of the rows that take_wanted gave. */
static rdna_status write_labels(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *h,
                                const rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  if (!decoder->judge.weight.data) return rdna__nn_linear(pass->stream, &decoder->classifier, h, out);
  rdna_tensor judged = rdna__nn_matrix(pass->wanted.data ? pass->x : pass->projected, h->shape[0], decoder->width);
  RDNA_TRY(rdna__nn_linear(pass->stream, &decoder->judge, h, &judged));
  RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_TANH, &judged, zero, zero, &judged));
  return rdna__nn_linear(pass->stream, &decoder->classifier, &judged, out);
}

/* |h| is f32 where the pass gives no logits. */
static rdna_status write_given(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int rows,
                               const rdna_tensor *h, void *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor last;
  RDNA_TRY(take_wanted(pass, decoder, rows, h, &last));
  rdna_tensor given = rdna__nn_matrix(out, rows, rdna__nn_given_values(decoder, pass->gives));
  if (pass->gives == RDNA_LLM_GIVES_STATES) return rdna_op_copy(pass->stream, &last, &given);
  if (pass->gives == RDNA_LLM_GIVES_LABELS) return write_labels(pass, decoder, &last, &given);
  rdna_tensor logits = rdna__nn_matrix(out, rows, decoder->vocabulary);
  RDNA_TRY(rdna__nn_linear(pass->stream, &decoder->output, &last, &logits));
  float cap = decoder->logit_softcap;
  RDNA_TRY(rdna__nn_scale(pass->stream, &logits, cap > 0 ? decoder->logit_scale / cap : decoder->logit_scale));
  if (cap <= 0) return RDNA_OK;
  RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_TANH, &logits, zero, zero, &logits));
  return rdna__nn_scale(pass->stream, &logits, cap);
}

/* x += the rows |ids| of |table|, which are put at |place|. */
static rdna_status add_rows(const rdna__nn_pass *pass, const rdna_tensor *table, const rdna_tensor *ids,
                            const rdna_tensor *place, const rdna_tensor *x) {
  const rdna_scalar zero = rdna_scalar_real(0);
  if (!table->data) return RDNA_OK;
  RDNA_TRY(rdna_op_embedding(pass->stream, table, ids, place, NULL));
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, place, zero, zero, x);
}

static rdna_status embed(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *place,
                         const rdna_tensor *x) {
  RDNA_TRY(rdna_op_embedding(pass->stream, &decoder->embedding, &pass->ids, x, NULL));
  RDNA_TRY(rdna__nn_scale(pass->stream, x, decoder->embedding_scale));
  RDNA_TRY(add_rows(pass, &decoder->position_embedding, &pass->positions, place, x));
  RDNA_TRY(add_rows(pass, &decoder->type_embedding, &pass->types, place, x));
  return decoder->injected ? rdna__nn_prepare_injections(pass, decoder, x) : RDNA_OK;
}

/* What the first layer reads of x. */
static rdna_status enter(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *x,
                         const rdna_tensor *branch, const rdna_tensor *place, rdna_tensor *h) {
  const rdna__nn_norm *first = decoder->layer_count ? &decoder->layers[0].attention_norm : &decoder->output_norm;
  if (!first->weight.data) return as_input(pass, x, place, h);
  *h = *place;
  if (!decoder->post_norm) return rdna__nn_normalize(pass, decoder, x, first, branch, place);
  RDNA_TRY(rdna_op_copy(pass->stream, x, branch));
  RDNA_TRY(rdna__nn_normalize(pass, decoder, branch, first, branch, x));
  return as_input(pass, x, place, h);
}

rdna_status rdna__nn_decode(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int rows, void *out) {
  rdna_tensor x = rdna__nn_matrix(pass->x, pass->count, decoder->width);
  rdna_tensor place = rdna__nn_input(pass, pass->h, decoder->width);
  rdna_tensor branch = rdna__nn_matrix(pass->projected, pass->count, decoder->width), h = place;
  if (decoder->embedding.data) RDNA_TRY(embed(pass, decoder, &branch, &x));
  RDNA_TRY(enter(pass, decoder, &x, &branch, &place, &h));
  for (int i = 0; i < decoder->layer_count; i++) {
    const rdna__nn_layer *layer = &decoder->layers[i];
    bool is_last = i + 1 == decoder->layer_count;
    const rdna__nn_norm *next = !is_last ? &layer[1].attention_norm : &decoder->output_norm;
    RDNA_TRY(mix_tokens(pass, decoder, i, &h, &branch));
    if (layer->parallel) {
      RDNA_TRY(feed_beside(pass, decoder, layer, &h, &branch));
    } else {
      RDNA_TRY(add(pass, decoder, &branch, &layer->attention_post_norm, &layer->ffn_norm, &x, &place, &h));
      RDNA_TRY(feed(pass, decoder, layer, &h, &x, &branch));
    }
    /* what is no input of a product is not rounded */
    if (is_last && pass->gives != RDNA_LLM_GIVES_LOGITS) place = rdna__nn_matrix(pass->h, pass->count, decoder->width);
    RDNA_TRY(finish_layer(pass, decoder, i, &branch, next, &x, &place, &h));
  }
  return rows == 0 ? RDNA_OK : write_given(pass, decoder, rows, &h, out);
}
