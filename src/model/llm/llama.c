/* Llama (Touvron et al., 2023; Grattafiori et al., 2024) and Mistral 7B (Jiang et al., 2023): RMSNorm, RoPE over
 * neighbouring pairs, grouped heads, SwiGLU. Activations are f32. */
#include "base/status.h"
#include "model/llm/llm.h"
#include "rdna/op.h"

static rdna_tensor matrix(void *data, int64_t rows, int64_t columns) {
  return rdna_tensor_contiguous(data, RDNA_F32, 2, (int64_t[]){rows, columns});
}

static rdna_tensor heads(void *data, int64_t tokens, int64_t count, int64_t dim) {
  return rdna_tensor_contiguous(data, RDNA_F32, 3, (int64_t[]){tokens, count, dim});
}

static rdna_tensor integers(void *data, int64_t count) { return rdna_tensor_contiguous(data, RDNA_I32, 1, &count); }

/* One layer's part of a cache.  (context, kv_heads, head_dim) */
static rdna_tensor cache_of(const rdna_llm_session *s, void *cache, int layer) {
  const rdna_llm_info *info = &s->llm->info;
  int64_t shape[] = {s->context, info->kv_heads, info->head_dim};
  return rdna_tensor_contiguous((char *)cache + s->cache_layer_bytes * (size_t)layer, s->kv_dtype, 3, shape);
}

/* out = x W^T with the matrix's bias and scale. A file that has scales is rare, so they cost a pass of their own. */
static rdna_status apply(const rdna_llm_session *s, const rdna__llm_matrix *m, const rdna_tensor *x,
                         const rdna_tensor *out) {
  const rdna_tensor *bias = m->bias.data ? &m->bias : NULL;
  const rdna_scalar zero = rdna_scalar_real(0);
  if (m->scale == 1) return rdna_op_linear(s->stream, x, &m->weight, bias, out);
  RDNA_TRY(rdna_op_linear(s->stream, x, &m->weight, m->scale_after_bias ? bias : NULL, out));
  RDNA_TRY(rdna_op_map(s->stream, RDNA_MAP_AFFINE, out, rdna_scalar_real((double)m->scale), zero, out));
  if (bias && !m->scale_after_bias) RDNA_TRY(rdna_op_zip(s->stream, RDNA_ZIP_ADD, out, bias, zero, zero, out));
  return RDNA_OK;
}

static rdna_status attend(const rdna_llm_session *s, int index, int count, const rdna_tensor *h,
                          const rdna_tensor *projected) {
  const rdna_llm *llm = s->llm;
  const rdna_llm_info *info = &llm->info;
  const rdna__llm_layer *layer = &llm->layers[index];
  int64_t queries = (int64_t)info->heads * info->head_dim, keys = (int64_t)info->kv_heads * info->head_dim;
  float *k_data = (float *)s->qkv + count * queries, *v_data = k_data + count * keys;
  rdna_tensor q = matrix(s->qkv, count, queries), k = matrix(k_data, count, keys), v = matrix(v_data, count, keys);
  if (count == 1 && layer->qkv.weight.data) {
    rdna_tensor all = matrix(s->qkv, 1, queries + 2 * keys);
    RDNA_TRY(apply(s, &layer->qkv, h, &all));
  } else {
    RDNA_TRY(apply(s, &layer->q, h, &q));
    RDNA_TRY(apply(s, &layer->k, h, &k));
    RDNA_TRY(apply(s, &layer->v, h, &v));
  }

  q = heads(s->qkv, count, info->heads, info->head_dim);
  k = heads(k_data, count, info->kv_heads, info->head_dim);
  v = heads(v_data, count, info->kv_heads, info->head_dim);
  rdna_tensor k_cache = cache_of(s, s->k_cache, index), v_cache = cache_of(s, s->v_cache, index);
  rdna_tensor positions = integers(s->positions, count), base = integers(s->cache_base, count);
  rdna_rope rope = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_INTERLEAVED, &positions, &llm->inv_freq, 1.0f};
  /* the cache holds one sequence from row 0, so a token's row is its position */
  RDNA_TRY(rdna_op_rope_qkv_write(s->stream, &rope, &q, &k, &v, &positions, &k_cache, &v_cache));

  rdna_tensor attended = heads(s->attention, count, info->heads, info->head_dim);
  rdna_attention attention = rdna__llm_attention(llm, count, rdna__llm_length(s, count));
  RDNA_TRY(rdna_op_attention(s->stream, &attention, &q, &k_cache, &v_cache, &base, &positions, s->workspace,
                             s->workspace_bytes, &attended));
  attended = matrix(s->attention, count, queries);
  return apply(s, &layer->output, &attended, projected);
}

static rdna_status feed_forward(const rdna_llm_session *s, const rdna__llm_layer *layer, int count,
                                const rdna_tensor *h, const rdna_tensor *projected) {
  int64_t hidden = s->llm->info.hidden, after_gate = (count * hidden + 3) / 4 * 4;
  rdna_tensor gate = matrix(s->gate_up, count, hidden);
  rdna_tensor up = matrix((float *)s->gate_up + after_gate, count, hidden);
  if (count == 1 && after_gate == hidden && layer->gate_up.weight.data) {
    rdna_tensor both = matrix(s->gate_up, 1, 2 * hidden);
    RDNA_TRY(apply(s, &layer->gate_up, h, &both));
  } else {
    RDNA_TRY(apply(s, &layer->gate, h, &gate));
    RDNA_TRY(apply(s, &layer->up, h, &up));
  }
  RDNA_TRY(rdna_op_swiglu(s->stream, &gate, &up, &gate));
  return apply(s, &layer->down, &gate, projected);
}

rdna_status rdna__llama_forward(rdna_llm_session *s, int count, int rows) {
  const rdna_llm *llm = s->llm;
  const rdna_llm_info *info = &llm->info;
  double epsilon = llm->config.norm_epsilon;
  rdna_tensor x = matrix(s->x, count, info->width), h = matrix(s->h, count, info->width);
  rdna_tensor projected = matrix(s->projected, count, info->width), ids = integers(s->ids, count);
  RDNA_TRY(rdna_op_embedding(s->stream, &llm->embedding, &ids, &x, NULL));
  RDNA_TRY(rdna_op_rms_norm(s->stream, &x, &llm->layers[0].attention_norm, epsilon, &h));
  for (int i = 0; i < info->layers; i++) {
    const rdna__llm_layer *layer = &llm->layers[i];
    RDNA_TRY(attend(s, i, count, &h, &projected));
    RDNA_TRY(rdna_op_add_rms_norm(s->stream, &projected, &x, &layer->ffn_norm, epsilon, &h));
    RDNA_TRY(feed_forward(s, layer, count, &h, &projected));
    const rdna_tensor *next = i + 1 < info->layers ? &llm->layers[i + 1].attention_norm : &llm->output_norm;
    RDNA_TRY(rdna_op_add_rms_norm(s->stream, &projected, &x, next, epsilon, &h));
  }
  if (rows == 0) return RDNA_OK;
  rdna_tensor last = matrix((float *)s->h + (int64_t)(count - rows) * info->width, rows, info->width);
  rdna_tensor logits = matrix(s->logits, rows, info->vocabulary);
  return apply(s, &llm->output, &last, &logits);
}
