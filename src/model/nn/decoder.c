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

/* Who reads the residual stream next: through a norm, if there is one, which its products make themselves or not. */
typedef struct reader {
  const rdna__nn_norm *norm;
  bool norms_itself;
} reader;

/* |*h| becomes what |next| reads of x. */
static rdna_status give(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const reader *next,
                        const rdna_tensor *x, const rdna_tensor *branch, const rdna_tensor *place, rdna_tensor *h) {
  *h = *x;
  if (next->norms_itself) return RDNA_OK;
  if (!next->norm->weight.data) return as_input(pass, x, place, h);
  *h = *place;
  return rdna__nn_normalize(pass, decoder, x, next->norm, branch, place);
}

/* What a block gave is added to the residual stream |x|, after the block's own norm |post|; |*h| becomes what the next
 * block reads: the norm of x, or x itself. |branch| is the block's result, or x where it was added there; |place| where
 * a norm goes. */
static rdna_status add(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *branch,
                       const rdna_tensor *post, const reader *next, const rdna_tensor *x, const rdna_tensor *place,
                       rdna_tensor *h) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor free_row = rdna__nn_matrix(pass->projected, pass->count, decoder->width);
  if (branch->data == x->data) return give(pass, decoder, next, x, &free_row, place, h);
  if (decoder->post_norm) {
    RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, branch, zero, zero, branch));
    RDNA_TRY(rdna__nn_normalize(pass, decoder, branch, next->norm, branch, x));
    return as_input(pass, x, place, h);
  }
  if (post->data) RDNA_TRY(rdna_op_rms_norm(pass->stream, branch, post, decoder->norm_epsilon, branch));
  RDNA_TRY(rdna__nn_scale(pass->stream, branch, decoder->residual_scale));
  *h = *place;
  if (next->norm->weight.data && !decoder->layer_norm && !next->norms_itself)
    return rdna_op_add_rms_norm(pass->stream, branch, x, &next->norm->weight, decoder->norm_epsilon, place);
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, branch, zero, zero, x));
  return give(pass, decoder, next, x, branch, place, h);
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

/* Whether rows of pictures are added behind layer |index| (DeepStack). */
static bool adds_pictures(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index) {
  for (int i = 0; decoder->first + index < decoder->deepstack && i < pass->span_count; i++)
    if (pass->spans[i].rows) return true;
  return false;
}

/* x += the rows of the model's layer |number|, which are put at |place|. */
static rdna_status add_pictures(const rdna__nn_pass *pass, int number, const rdna_tensor *place, const rdna_tensor *x) {
  const rdna_scalar zero = rdna_scalar_real(0);
  for (int i = 0; i < pass->span_count; i++) {
    const rdna__nn_span *span = &pass->spans[i];
    if (!span->rows) continue;
    rdna_tensor to = rdna__nn_rows(x, span->first, span->count), rows = rdna__nn_rows(place, span->first, span->count);
    const float *from = span->rows + (1 + number) * span->of_picture * x->shape[1];
    RDNA_TRY(rdna_copy_to_device(pass->stream, rows.data, from, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&rows))));
    RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, &to, &rows, zero, zero, &to));
  }
  return RDNA_OK;
}

/* Ends a layer: adds |branch| to the residual stream |x|, injects the token's vector for this layer, scales, adds what
 * pictures have for it, and norms for the next one. */
static rdna_status finish_layer(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index,
                                const rdna_tensor *branch, const reader *next, const rdna_tensor *x,
                                const rdna_tensor *place, rdna_tensor *h) {
  const rdna__nn_layer *layer = &decoder->layers[index];
  const rdna__nn_norm no_norm = {0};
  const reader none = {.norm = &no_norm};
  bool deeper = adds_pictures(pass, decoder, index),
       more = deeper || layer->injection.norm.data || layer->output_scale != 1;
  RDNA_TRY(add(pass, decoder, branch, &layer->ffn_post_norm, more ? &none : next, x, place, h));
  if (!more) return RDNA_OK;
  if (layer->injection.norm.data) RDNA_TRY(rdna__nn_inject(pass, decoder, index, x));
  RDNA_TRY(rdna__nn_scale(pass->stream, x, layer->output_scale));
  rdna_tensor free_row = rdna__nn_matrix(pass->projected, pass->count, decoder->width);
  if (deeper) RDNA_TRY(add_pictures(pass, decoder->first + index, &free_row, x));
  return give(pass, decoder, next, x, &free_row, place, h);
}

int64_t rdna__nn_given_values(const rdna__nn_decoder *decoder, const rdna__nn_pass *pass) {
  if (pass->gives == RDNA_LLM_GIVES_LABELS) return decoder->labels;
  if (pass->gives != RDNA_LLM_GIVES_STATES) return decoder->vocabulary;
  return (int64_t)decoder->width * (pass->layer_count ? pass->layer_count : 1);
}

/* The wanted rows of |h|, perhaps where blocks write, which nobody reads any more. */
static rdna_status take_wanted(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int rows,
                               const rdna_tensor *h, rdna_tensor *wanted) {
  *wanted = rdna__nn_rows(h, pass->count - rows, rows);
  if (!pass->wanted.data) return RDNA_OK;
  *wanted = rdna_tensor_contiguous(pass->projected, h->dtype, 2, (int64_t[]){rows, decoder->width});
  return rdna_op_index_select(pass->stream, h, 0, &pass->wanted, wanted, NULL);
}

/* Writes the wanted rows of |x|, which layer |index| reads, to their places in |out|, if the pass gives them. */
static rdna_status give_layer(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index, int rows,
                              const rdna_tensor *x, void *out) {
  rdna_tensor wanted;
  for (int i = 0; i < pass->layer_count && rows > 0; i++) {
    if (pass->layers[i] != index) continue;
    RDNA_TRY(take_wanted(pass, decoder, rows, x, &wanted));
    rdna_tensor given = rdna__nn_matrix((float *)out + (ptrdiff_t)i * decoder->width, rows, decoder->width);
    given.stride[0] = rdna__nn_given_values(decoder, pass);
    RDNA_TRY(rdna_op_copy(pass->stream, &wanted, &given));
  }
  return RDNA_OK;
}

/* How many layers must be run for what the pass gives. */
static int layers_for(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder) {
  int last = pass->layer_count ? 0 : decoder->layer_count;
  for (int i = 0; i < pass->layer_count; i++) last = pass->layers[i] > last ? pass->layers[i] : last;
  return last;
}

/* What models say of tokens that judge texts; |h| is f32, of the rows that take_wanted gave. */
static rdna_status write_labels(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *h,
                                const rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  if (!decoder->judge.weight.data) return rdna__nn_linear(pass, &decoder->classifier, h, out);
  rdna_tensor judged = rdna__nn_matrix(pass->wanted.data ? pass->x : pass->projected, h->shape[0], decoder->width);
  RDNA_TRY(rdna__nn_linear(pass, &decoder->judge, h, &judged));
  RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_TANH, &judged, zero, zero, &judged));
  return rdna__nn_linear(pass, &decoder->classifier, &judged, out);
}

/* |h| is f32 where the pass gives no logits. */
static rdna_status write_given(const rdna__nn_pass *of_all, const rdna__nn_decoder *decoder, int rows,
                               const rdna_tensor *h, void *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna__nn_pass of_wanted = *of_all;
  const rdna__nn_pass *pass = &of_wanted;
  of_wanted.adapter_scales = of_all->wanted_scales;
  rdna_tensor last;
  RDNA_TRY(take_wanted(pass, decoder, rows, h, &last));
  rdna_tensor given = rdna__nn_matrix(out, rows, rdna__nn_given_values(decoder, pass));
  if (pass->gives == RDNA_LLM_GIVES_STATES) return rdna_op_copy(pass->stream, &last, &given);
  if (pass->gives == RDNA_LLM_GIVES_LABELS) return write_labels(pass, decoder, &last, &given);
  rdna_tensor logits = rdna__nn_matrix(out, rows, decoder->vocabulary);
  RDNA_TRY(rdna__nn_linear_in(pass, &decoder->output, &last, &logits));
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

/* Rows of pictures take the places of their tokens' embeddings. */
static rdna_status put_pictures(const rdna__nn_pass *pass, const rdna_tensor *x) {
  for (int i = 0; i < pass->span_count; i++) {
    const rdna__nn_span *span = &pass->spans[i];
    rdna_tensor to = rdna__nn_rows(x, span->first, span->count);
    if (span->rows)
      RDNA_TRY(
          rdna_copy_to_device(pass->stream, to.data, span->rows, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&to))));
  }
  return RDNA_OK;
}

static rdna_status embed(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna_tensor *place,
                         const rdna_tensor *x) {
  RDNA_TRY(rdna_op_embedding(pass->stream, &decoder->embedding, &pass->ids, x, NULL));
  RDNA_TRY(rdna__nn_scale(pass->stream, x, decoder->embedding_scale));
  RDNA_TRY(put_pictures(pass, x));
  RDNA_TRY(add_rows(pass, &decoder->position_embedding, &pass->positions, place, x));
  RDNA_TRY(add_rows(pass, &decoder->type_embedding, &pass->types, place, x));
  return decoder->injected ? rdna__nn_prepare_injections(pass, decoder, x) : RDNA_OK;
}

/* What the first layer reads of x. */
static rdna_status enter(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const reader *first,
                         const rdna_tensor *x, const rdna_tensor *branch, const rdna_tensor *place, rdna_tensor *h) {
  if (!decoder->post_norm || !first->norm->weight.data) return give(pass, decoder, first, x, branch, place, h);
  RDNA_TRY(rdna_op_copy(pass->stream, x, branch));
  RDNA_TRY(rdna__nn_normalize(pass, decoder, branch, first->norm, branch, x));
  return as_input(pass, x, place, h);
}

/* ---- which products do what stands around them ---- */

static bool is_rms_norm(const rdna__nn_decoder *decoder, const rdna__nn_norm *norm) {
  return norm->weight.data && !norm->bias.data && !decoder->layer_norm && !decoder->post_norm;
}

/* Who reads x in layer |index|'s first block, or behind the last layer. */
static reader reader_of(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index, int rows,
                        const rdna_tensor *x) {
  bool is_output = index == decoder->layer_count;
  const rdna__nn_layer *layer = &decoder->layers[index];
  reader of = {.norm = is_output ? &decoder->output_norm : &layer->attention_norm};
  const rdna_tensor *norm = &of.norm->weight;
  if (!is_rms_norm(decoder, of.norm)) return of;
  if (is_output) {
    of.norms_itself = rows == 1 && pass->gives == RDNA_LLM_GIVES_LOGITS && !pass->wanted.data &&
                      rdna__nn_can_norm(pass, &decoder->output, x, norm);
    return of;
  }
  const rdna__nn_attention *a = &layer->attention;
  if (layer->parallel || layer->recurrent.width || layer->latent.rank) return of;
  bool keys = a->shares_cache || rdna__nn_can_norm(pass, &a->k, x, norm);
  bool both =
      a->qk.weight.data ? rdna__nn_can_norm(pass, &a->qk, x, norm) : rdna__nn_can_norm(pass, &a->q, x, norm) && keys;
  of.norms_itself = a->qkv.weight.data ? rdna__nn_can_norm(pass, &a->qkv, x, norm)
                                       : both && (!a->v.weight.data || rdna__nn_can_norm(pass, &a->v, x, norm));
  return of;
}

static reader feeding_reader(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna__nn_layer *layer,
                             const rdna_tensor *x) {
  const rdna__nn_ffn *ffn = &layer->ffn;
  reader of = {.norm = &layer->ffn_norm};
  if (!is_rms_norm(decoder, of.norm)) return of;
  if (layer->moe.experts) of.norms_itself = rdna__nn_can_norm_experts(pass, &layer->moe, x, &of.norm->weight);
  if (layer->moe.experts || !ffn->gate.weight.data) return of;
  of.norms_itself = rdna__nn_can_norm(pass, &ffn->gate, x, &of.norm->weight) &&
                    rdna__nn_can_norm(pass, &ffn->up, x, &of.norm->weight) &&
                    (!ffn->gate_up.weight.data || rdna__nn_can_norm(pass, &ffn->gate_up, x, &of.norm->weight));
  return of;
}

/* Whether a block whose result has the norm |post|, or none, adds it to x by its last product, |last|. */
static bool adds_itself(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna__nn_layer *layer,
                        const rdna_tensor *post, const rdna__matrix_weights *last) {
  return !decoder->post_norm && !layer->parallel && !post->data && decoder->residual_scale == 1 &&
         rdna__nn_can_add(pass, last);
}
static bool mixing_adds(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna__nn_layer *layer) {
  const rdna__matrix_weights *last = layer->recurrent.width ? &layer->recurrent.output
                                     : layer->latent.rank   ? &layer->latent.output
                                                            : &layer->attention.output;
  return adds_itself(pass, decoder, layer, &layer->attention_post_norm, last);
}
static bool feeding_adds(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, const rdna__nn_layer *layer) {
  const rdna__nn_moe *moe = &layer->moe;
  if (moe->experts && (moe->on_host || moe->norm.data)) return false;
  return adds_itself(pass, decoder, layer, &layer->ffn_post_norm, moe->experts ? NULL : &layer->ffn.down);
}
static void set_steps(rdna__nn_pass *pass, const reader *of, bool adds) {
  pass->input_norm = of->norms_itself ? &of->norm->weight : NULL;
  pass->adds = adds;
}

/* Runs layer |index| over |*h|, which becomes what |next| reads. */
static rdna_status run_layer(rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index, const reader *first,
                             const reader *next, const rdna_tensor *x, const rdna_tensor *place,
                             const rdna_tensor *last_place, rdna_tensor *h) {
  const rdna__nn_layer *layer = &decoder->layers[index];
  rdna_tensor result = rdna__nn_matrix(pass->projected, pass->count, decoder->width);
  set_steps(pass, first, mixing_adds(pass, decoder, layer));
  rdna_tensor branch = pass->adds ? *x : result;
  RDNA_TRY(mix_tokens(pass, decoder, index, h, &branch));
  if (layer->parallel) {
    RDNA_TRY(feed_beside(pass, decoder, layer, h, &branch));
  } else {
    const reader of = feeding_reader(pass, decoder, layer, x);
    RDNA_TRY(add(pass, decoder, &branch, &layer->attention_post_norm, &of, x, place, h));
    set_steps(pass, &of, feeding_adds(pass, decoder, layer));
    branch = pass->adds ? *x : result;
    RDNA_TRY(feed(pass, decoder, layer, h, x, &branch));
  }
  return finish_layer(pass, decoder, index, &branch, next, x, last_place, h);
}

rdna_status rdna__nn_decode(const rdna__nn_pass *whole, const rdna__nn_decoder *decoder, int rows, void *out) {
  rdna__nn_pass pass = *whole;
  pass.norm_epsilon = decoder->norm_epsilon;
  rdna_tensor x = rdna__nn_matrix(pass.x, pass.count, decoder->width);
  rdna_tensor place = rdna__nn_input(&pass, pass.h, decoder->width), last_place = place;
  rdna_tensor branch = rdna__nn_matrix(pass.projected, pass.count, decoder->width), h = place;
  reader next = reader_of(&pass, decoder, 0, rows, &x);
  if (decoder->embedding.data) RDNA_TRY(embed(&pass, decoder, &branch, &x));
  RDNA_TRY(enter(&pass, decoder, &next, &x, &branch, &place, &h));
  int layers = layers_for(&pass, decoder);
  for (int i = 0; i < layers; i++) {
    const reader first = next;
    RDNA_TRY(give_layer(&pass, decoder, i, rows, &x, out));
    next = reader_of(&pass, decoder, i + 1, rows, &x);
    /* what is no input of a product is not rounded */
    if (i + 1 == decoder->layer_count && pass.gives != RDNA_LLM_GIVES_LOGITS)
      last_place = rdna__nn_matrix(pass.h, pass.count, decoder->width);
    RDNA_TRY(run_layer(&pass, decoder, i, &first, &next, &x, &place, &last_place, &h));
  }
  if (pass.layer_count) return give_layer(&pass, decoder, layers, rows, layers == decoder->layer_count ? &h : &x, out);
  set_steps(&pass, &next, false);
  return rows == 0 ? RDNA_OK : write_given(&pass, decoder, rows, &h, out);
}
