/* Gated DeltaNet (Yang, Kautz and Hatamizadeh, 2024), a layer that remembers earlier tokens in a state of fixed size:
 *
 *     h -- qkv -- convolution over time -- q, k, v --+
 *     h -- z                                         +-- gated delta rule -- norm, gated by z -- output
 *     h -- a, b -------------------------------------+
 *
 * A key head serves |repeats| value heads. Whether those are neighbours (grouped), or one of each key head comes after
 * the other (tiled), is a matter of strides. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

int64_t rdna__nn_recurrent_channels(const rdna__nn_recurrent *r) {
  return 2 * (int64_t)r->k_heads * r->k_dim + (int64_t)r->v_heads * r->v_dim;
}

int64_t rdna__nn_recurrent_values(const rdna__nn_recurrent *r) {
  int64_t values = (int64_t)r->v_heads * r->v_dim;
  return 3 * rdna__nn_recurrent_channels(r) + 3 * values + 2 * (int64_t)r->v_heads;
}

/* A view of |data|, |tokens| rows of |row| values each, as (tokens, k_heads, repeats, dim), whether heads are grouped
 * or tiled. */
static rdna_tensor value_heads(const rdna__nn_recurrent *r, float *data, int64_t tokens, int64_t row, int64_t dim) {
  int64_t k_heads = r->k_heads, repeats = r->v_heads / r->k_heads;
  rdna_tensor t = rdna_tensor_contiguous(data, RDNA_F32, 4, (int64_t[]){tokens, k_heads, repeats, dim});
  t.stride[0] = row;
  t.stride[1] = r->tiled ? dim : repeats * dim;
  t.stride[2] = r->tiled ? k_heads * dim : dim;
  return t;
}

/* The same of one number for each value head: (tokens, k_heads, repeats), or (k_heads, repeats) where |tokens| is 0. */
static rdna_tensor of_heads(const rdna__nn_recurrent *r, float *data, int64_t tokens, int64_t row) {
  rdna_tensor t = value_heads(r, data, tokens, row, 1);
  t.rank = 3;
  if (tokens > 0) return t;
  t.rank = 2;
  for (int i = 0; i < 2; i++) t.shape[i] = t.shape[i + 1], t.stride[i] = t.stride[i + 1];
  return t;
}

/* |qkv| (count, channels) and |z| (count, v_heads v_dim). Older files have both in one matrix, key head by key head:
 *
 *     q k_dim | k k_dim | v repeats v_dim | z repeats v_dim */
static rdna_status project(const rdna__nn_pass *pass, const rdna__nn_recurrent *r, const rdna_tensor *h, float *raw,
                           const rdna_tensor *qkv, const rdna_tensor *z) {
  if (!r->together.weight.data) {
    RDNA_TRY(rdna__nn_linear(pass, &r->qkv, h, qkv));
    return rdna__nn_linear(pass, &r->z, h, z);
  }
  int64_t count = pass->count, k = r->k_dim, v = (int64_t)r->v_heads / r->k_heads * r->v_dim, part = 2 * k + 2 * v;
  int64_t keys = r->k_heads * k, from[] = {0, k, 2 * k, 2 * k + v}, sizes[] = {k, k, v, v};
  float *to[] = {qkv->data, (float *)qkv->data + keys, (float *)qkv->data + 2 * keys, z->data};
  int64_t strides[] = {qkv->shape[1], qkv->shape[1], qkv->shape[1], z->shape[1]};
  rdna_tensor all = rdna__nn_matrix(raw, count, r->k_heads * part);
  RDNA_TRY(rdna__nn_linear(pass, &r->together, h, &all));
  for (int i = 0; i < 4; i++) {
    rdna_tensor x = rdna_tensor_contiguous(raw + from[i], RDNA_F32, 3, (int64_t[]){count, r->k_heads, sizes[i]});
    rdna_tensor out = x;
    x.stride[0] = r->k_heads * part, x.stride[1] = part;
    out.data = to[i];
    out.stride[0] = strides[i];
    RDNA_TRY(rdna_op_copy(pass->stream, &x, &out));
  }
  return RDNA_OK;
}

/* |a| and |b|, (count, k_heads, repeats), from two matrices, or from one with the b and a of a key head in turn. */
static rdna_status project_gates(const rdna__nn_pass *pass, const rdna__nn_recurrent *r, const rdna_tensor *h,
                                 float *place, rdna_tensor *a, rdna_tensor *b) {
  int64_t count = pass->count, heads = r->v_heads;
  if (r->ba.weight.data) {
    int64_t repeats = heads / r->k_heads;
    rdna_tensor both = rdna__nn_matrix(place, count, 2 * heads);
    *b = rdna_tensor_contiguous(place, RDNA_F32, 3, (int64_t[]){count, r->k_heads, repeats});
    b->stride[0] = 2 * heads, b->stride[1] = 2 * repeats;
    *a = *b;
    a->data = place + repeats;
    return rdna__nn_linear(pass, &r->ba, h, &both);
  }
  rdna_tensor of_b = rdna__nn_matrix(place, count, heads), of_a = rdna__nn_matrix(place + count * heads, count, heads);
  *b = of_heads(r, of_b.data, count, heads);
  *a = of_heads(r, of_a.data, count, heads);
  RDNA_TRY(rdna__nn_linear(pass, &r->b, h, &of_b));
  return rdna__nn_linear(pass, &r->a, h, &of_a);
}

static int64_t whole_vectors(int64_t values) { return (values + 3) / 4 * 4; }

rdna_sequences rdna__nn_sequences(const rdna__nn_pass *pass) {
  int64_t most = 1;
  for (int i = 0; i < pass->span_count; i++) most = pass->spans[i].count > most ? pass->spans[i].count : most;
  return (rdna_sequences){RDNA_SEQUENCES_INIT, &pass->starts, &pass->slots, most};
}

rdna_tensor rdna__nn_conv_state(const rdna__nn_pass *pass, const rdna__nn_layer *layer) {
  const rdna__nn_recurrent *r = &layer->recurrent;
  int64_t shape[] = {pass->state_slots, rdna__nn_recurrent_channels(r), r->width - 1};
  return rdna_tensor_contiguous((char *)pass->conv_states + pass->conv_layer_bytes * (size_t)layer->state, RDNA_F32, 3,
                                shape);
}

rdna_status rdna__nn_recur(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index, const rdna_tensor *h,
                           const rdna_tensor *projected) {
  const rdna__nn_layer *layer = &decoder->layers[index];
  const rdna__nn_recurrent *r = &layer->recurrent;
  int64_t count = pass->count, channels = rdna__nn_recurrent_channels(r), values = (int64_t)r->v_heads * r->v_dim;
  int64_t keys = (int64_t)r->k_heads * r->k_dim, repeats = r->v_heads / r->k_heads;
  float *raw = pass->recurrent, *mixed = raw + whole_vectors(count * (channels + values));
  float *convolving = mixed + whole_vectors(count * channels), *gates = convolving + count * (channels + values);
  rdna_tensor qkv = rdna__nn_matrix(convolving, count, channels);
  rdna_tensor z = rdna__nn_matrix((float *)qkv.data + count * channels, count, values), a, b;
  RDNA_TRY(project(pass, r, h, raw, &qkv, &z));
  RDNA_TRY(project_gates(pass, r, h, gates, &a, &b));

  int64_t state_shape[] = {pass->state_slots, r->k_heads, repeats, r->v_dim, r->k_dim};
  rdna_tensor conv_state = rdna__nn_conv_state(pass, layer);
  rdna_tensor state = rdna_tensor_contiguous((char *)pass->states + pass->state_layer_bytes * (size_t)layer->state,
                                             RDNA_F32, 5, state_shape);
  rdna_sequences sequence = rdna__nn_sequences(pass);
  rdna_tensor convolved = rdna__nn_matrix(mixed, count, channels);
  RDNA_TRY(rdna_op_causal_conv(pass->stream, &sequence, &qkv, &r->convolution, RDNA_ACTIVATION_SILU, &conv_state,
                               &convolved));

  rdna_tensor q = rdna_tensor_contiguous(mixed, RDNA_F32, 3, (int64_t[]){count, r->k_heads, r->k_dim}), k;
  q.stride[0] = channels;
  k = q;
  k.data = mixed + keys;
  rdna_tensor v = value_heads(r, mixed + 2 * keys, count, channels, r->v_dim);
  rdna_tensor out = value_heads(r, raw, count, values, r->v_dim);
  rdna_tensor rate = of_heads(r, r->rate.data, 0, 0), dt = of_heads(r, r->dt.data, 0, 0);
  rdna_gated_delta delta = {RDNA_GATED_DELTA_INIT, r->scale, 1e-6f, &rate, &dt};
  RDNA_TRY(rdna_op_gated_delta(pass->stream, &delta, &sequence, &q, &k, &v, &a, &b, &state, &out));

  rdna_tensor heads = rdna_tensor_contiguous(raw, RDNA_F32, 3, (int64_t[]){count, r->v_heads, r->v_dim}), gate = heads;
  gate.data = z.data;
  RDNA_TRY(rdna_op_rms_norm_gated(pass->stream, &heads, &gate, &r->norm, decoder->norm_epsilon, &heads));
  rdna_tensor rows = rdna__nn_matrix(raw, count, values);
  return rdna__nn_linear_out(pass, &r->output, &rows, projected);
}
