/* A layer's attention: the projections q, k and v, norms of heads, rotary positions, the cache, and the projection of
 * the result. */
#include "base/status.h"
#include "model/nn/nn.h"
#include "rdna/op.h"

rdna_attention rdna__nn_attention_options(const rdna__nn_pass *pass, const rdna__nn_attention *a, int tokens,
                                          int64_t length) {
  return (rdna_attention){
      RDNA_ATTENTION_INIT,   .scale = a->scale,    .softcap = a->softcap, .window = a->window,
      .max_queries = tokens, .max_length = length, .split = pass->split,  .sinks = a->sinks.data ? &a->sinks : NULL};
}

/* One layer's part of a cache.  (rows, kv_heads, head_dim) */
static rdna_tensor cache_of(const rdna__nn_pass *pass, const rdna__nn_attention *a, void *cache, int layer) {
  int64_t shape[] = {pass->pages * pass->page_rows, a->kv_heads, a->head_dim};
  return rdna_tensor_contiguous((char *)cache + pass->cache_layer_bytes * (size_t)layer, pass->kv_dtype, 3, shape);
}

/* RMS norm of |of|, (tokens, heads, head_dim), in place: of each head, or of a token's heads as one row. */
static rdna_status normalize(const rdna__nn_pass *pass, const rdna_tensor *of, const rdna_tensor *weight,
                             double epsilon) {
  if (!weight->data) return RDNA_OK;
  int64_t tokens = of->shape[0], values = of->shape[1] * of->shape[2], row = weight->shape[0];
  rdna_tensor rows = rdna__nn_matrix(of->data, tokens * (values / row), row);
  return rdna_op_rms_norm(pass->stream, &rows, weight, epsilon, &rows);
}

/* The pass's q, k and v, each (tokens, heads, head_dim), and for each head of q its gate. In the buffer:
 *
 *     q of all tokens, with gates where there are | k | v | q without its gates
 */
static rdna_status project(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna_tensor *h, rdna_tensor *q,
                           rdna_tensor *k, rdna_tensor *v, rdna_tensor *gate) {
  int64_t count = pass->count, dim = a->head_dim, keys = a->kv_heads * dim, rows = (a->gated ? 2 : 1) * a->heads * dim;
  float *k_data = (float *)pass->qkv + count * rows, *v_data = k_data + count * keys;
  if (count == 1 && a->qkv.weight.data) {
    rdna_tensor all = rdna__nn_matrix(pass->qkv, 1, rows + 2 * keys);
    RDNA_TRY(rdna__nn_linear_in(pass, &a->qkv, h, &all));
  } else if (count == 1 && a->qk.weight.data) {
    rdna_tensor both = rdna__nn_matrix(pass->qkv, 1, rows + keys), of_v = rdna__nn_matrix(v_data, 1, keys);
    RDNA_TRY(rdna__nn_linear_in(pass, &a->qk, h, &both));
    RDNA_TRY(rdna__nn_linear_in(pass, &a->v, h, &of_v));
  } else {
    rdna_tensor of_q = rdna__nn_matrix(pass->qkv, count, rows), of_k = rdna__nn_matrix(k_data, count, keys);
    rdna_tensor of_v = rdna__nn_matrix(v_data, count, keys);
    RDNA_TRY(rdna__nn_linear_in(pass, &a->q, h, &of_q));
    if (!a->shares_cache) RDNA_TRY(rdna__nn_linear_in(pass, &a->k, h, &of_k));
    if (a->v.weight.data) RDNA_TRY(rdna__nn_linear_in(pass, &a->v, h, &of_v));
    if (!a->v.weight.data && !a->shares_cache) RDNA_TRY(rdna_op_copy(pass->stream, &of_k, &of_v)); /* keys are values */
  }
  *k = rdna__nn_heads(k_data, count, a->kv_heads, dim);
  *v = rdna__nn_heads(v_data, count, a->kv_heads, dim);
  *q = rdna__nn_heads(pass->qkv, count, a->heads, dim);
  if (!a->gated) return RDNA_OK;
  rdna_tensor with_gate = *q;
  with_gate.stride[0] = rows, with_gate.stride[1] = 2 * dim;
  *gate = with_gate;
  gate->data = (float *)pass->qkv + dim;
  q->data = v_data + count * keys;
  return rdna_op_copy(pass->stream, &with_gate, q);
}

/* attended = attended * sigmoid(gate), in f32 at |place| where attended is of 16 bits. */
static rdna_status apply_gate(const rdna__nn_pass *pass, const rdna_tensor *gate, const rdna_tensor *place,
                              const rdna_tensor *attended) {
  if (attended->dtype == RDNA_F32) return rdna_op_mul_sigmoid(pass->stream, attended, gate, attended);
  RDNA_TRY(rdna_op_cast(pass->stream, attended, place));
  return rdna_op_mul_sigmoid(pass->stream, place, gate, attended);
}

/* Whether prompts of this pass are attended sequence by sequence on matrix units, from caches of 16 bits. */
static bool is_on_matrix_units(const rdna__nn_pass *pass) {
  return pass->type != RDNA_F32 && pass->kv_dtype != RDNA_F32;
}

/* q, k and v of all tokens of a pass, (count, heads, head_dim) in f32, and a layer's caches. */
typedef struct attended_tensors {
  rdna_tensor q, k, v, k_cache, v_cache;
} attended_tensors;

/* A view of the first |tokens| rows of (rows, heads, head_dim) as (1, heads, tokens, head_dim), for rdna_op_sdpa. */
static rdna_tensor as_sequence(const rdna_tensor *t, int64_t tokens) {
  rdna_tensor view = *t;
  view.rank = 4;
  view.shape[0] = 1, view.shape[1] = t->shape[1], view.shape[2] = tokens, view.shape[3] = t->shape[2];
  view.stride[0] = 0, view.stride[1] = t->stride[1], view.stride[2] = t->stride[0], view.stride[3] = 1;
  return view;
}

/* |span| without the pages at its beginning that no token's window reaches. */
static rdna__nn_span in_window(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna__nn_span *span) {
  rdna__nn_span part = *span;
  int64_t first = span->length - span->count - (a->window - 1), pages = first / pass->page_rows;
  if (a->window <= 0 || first <= 0) return part;
  part.length -= pages * pass->page_rows;
  if (span->base >= 0)
    part.base += pages * pass->page_rows;
  else
    part.pages = rdna__nn_rows(&span->pages, pages, span->pages.shape[0] - pages);
  return part;
}

/* The span's rows of both caches, of |dtype|. Where values are the end of the keys' rows, both are one copy. */
static rdna_status rows_of_both(const rdna__nn_pass *pass, const rdna__nn_span *span, const rdna_tensor *k_cache,
                                const rdna_tensor *v_cache, rdna_dtype dtype, rdna__scratch *scratch, rdna_tensor *k,
                                rdna_tensor *v) {
  RDNA_TRY(rdna__nn_rows_of(pass, span, k_cache, dtype, scratch, k));
  int64_t row = (int64_t)rdna_dtype_bytes(k_cache->dtype, k_cache->stride[0]);
  int64_t inside = (const char *)v_cache->data - (const char *)k_cache->data;
  if (inside < 0 || inside >= row) return rdna__nn_rows_of(pass, span, v_cache, dtype, scratch, v);
  *v = *k;
  v->data = (char *)k->data + rdna_dtype_bytes(dtype, k->shape[2] - v_cache->shape[2]);
  v->shape[2] = v_cache->shape[2];
  return RDNA_OK;
}

/* |seen| = the attention of one span, of tokens that are all alike, with the queries |rotated|; both are of
 * rdna__nn_sequence_type, or f32. */
static rdna_status attend_alike(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna__nn_span *span,
                                const rdna_tensor *rotated, const rdna_tensor *k_cache, const rdna_tensor *v_cache,
                                const rdna_tensor *seen) {
  rdna_tensor k_rows, v_rows;
  rdna__scratch scratch = {.stream = pass->stream, .holder = "rows of a sequence"};
  rdna__nn_span part = in_window(pass, a, span);
  rdna_sdpa options = {RDNA_SDPA_INIT,
                       .scale = a->scale,
                       .softcap = a->softcap,
                       .causal = !span->both_ways,
                       .windowed = a->window > 0,
                       .left = a->window > 0 ? a->window - 1 : 0,
                       .right = a->window > 0 && span->both_ways ? span->count : 0,
                       .diagonal = RDNA_DIAGONAL_BOTTOM_RIGHT,
                       .sinks = a->sinks.data ? &a->sinks : NULL};
  rdna_status status = rows_of_both(pass, &part, k_cache, v_cache, seen->dtype, &scratch, &k_rows, &v_rows);
  if (status == RDNA_OK) {
    rdna_tensor q = as_sequence(rotated, span->count), out = as_sequence(seen, span->count);
    rdna_tensor k = as_sequence(&k_rows, part.length), v = as_sequence(&v_rows, part.length);
    status = rdna_op_sdpa(pass->stream, &options, &q, &k, &v, &out, NULL);
  }
  return rdna__scratch_release(&scratch, status);
}

/* The same, whether or not some of its tokens fill it up, which see what is before the first of them. */
static rdna_status attend_as_sequence(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna__nn_span *span,
                                      const rdna_tensor *rotated, const rdna_tensor *k_cache,
                                      const rdna_tensor *v_cache, const rdna_tensor *seen) {
  if (!span->filling) return attend_alike(pass, a, span, rotated, k_cache, v_cache, seen);
  int64_t before = span->count - span->filling;
  rdna__nn_span part = *span;
  part.filling = 0;
  part.count = (int)before;
  part.length -= span->filling;
  RDNA_TRY(attend_alike(pass, a, &part, rotated, k_cache, v_cache, seen));
  rdna_tensor q = rdna__nn_rows(rotated, before, span->filling), out = rdna__nn_rows(seen, before, span->filling);
  part.count = span->filling;
  part.both_ways = true;
  return attend_alike(pass, a, &part, &q, k_cache, v_cache, &out);
}

static const rdna_tensor *if_there(const rdna_tensor *t, int64_t count) {
  return t->data && t->shape[0] == count ? t : NULL;
}

/* Norms q and k of a picture's tokens, and turns them by how far rows and columns stand from the picture's first token:
 * what goes on from there is that token's turn, and the sum of both angles is what is wanted. */
static rdna_status turn_in_picture(const rdna__nn_pass *pass, const rdna__nn_attention *a, double epsilon,
                                   const rdna__nn_span *span, const attended_tensors *all) {
  const rdna__nn_rotation *r = a->rotation;
  rdna_tensor rows = rdna__nn_rows(&pass->rows, span->first, span->count);
  rdna_tensor columns = rdna__nn_rows(&pass->columns, span->first, span->count);
  const rdna_tensor *const tensors[] = {&all->q, &all->k}, *const norms[] = {&a->q_norm, &a->k_norm};
  for (int i = 0; i < 2; i++) {
    rdna_tensor t = rdna__nn_rows(tensors[i], span->first, span->count);
    rdna_rope by_row = {RDNA_ROPE_INIT, r->layout, &rows, &r->row_freq, 1}, by_column = by_row;
    by_column.positions = &columns, by_column.inv_freq = &r->column_freq;
    RDNA_TRY(normalize(pass, &t, norms[i], epsilon));
    RDNA_TRY(rdna_op_rope(pass->stream, &by_row, &t, &t));
    RDNA_TRY(rdna_op_rope(pass->stream, &by_column, &t, &t));
  }
  return RDNA_OK;
}

/* Norms and rotates q and k of |count| tokens from |first| on, and writes k and v to the caches; q goes to |rotated|
 * where that is what attention reads, of data NULL where not. A norm of each head is made on the way, one of all heads
 * before. The tensors are those of all tokens. |normed|: q and k are normed. */
static rdna_status rotate_some(const rdna__nn_pass *pass, const rdna__nn_attention *a, double epsilon, int first,
                               int count, const attended_tensors *all, const rdna_tensor *rotated, bool normed) {
  if (count == 0) return RDNA_OK;
  const rdna__nn_rotation *r = a->rotation;
  bool is_long = r->long_inv_freq.data && pass->context > r->short_context;
  rdna_tensor positions = rdna__nn_rows(&pass->turns, first, count), to = rdna__nn_rows(rotated, first, count);
  rdna_tensor q = rdna__nn_rows(&all->q, first, count), k = rdna__nn_rows(&all->k, first, count);
  rdna_tensor v = rdna__nn_rows(&all->v, first, count);
  rdna_rope rope = {RDNA_ROPE_INIT, r->layout, &positions, is_long ? &r->long_inv_freq : &r->inv_freq, r->magnitude};
  if (a->shares_cache) {
    if (!normed) RDNA_TRY(normalize(pass, &q, &a->q_norm, epsilon));
    RDNA_TRY(rdna_op_rope(pass->stream, &rope, &q, &q));
    return rotated->data ? rdna_op_cast(pass->stream, &q, &to) : RDNA_OK;
  }
  if (!normed) rope.q_norm = if_there(&a->q_norm, a->head_dim), rope.k_norm = if_there(&a->k_norm, a->head_dim);
  rope.v_norm = if_there(&a->v_norm, a->head_dim);
  rope.epsilon = epsilon;
  if (!normed && !rope.q_norm) RDNA_TRY(normalize(pass, &q, &a->q_norm, epsilon));
  if (!normed && !rope.k_norm) RDNA_TRY(normalize(pass, &k, &a->k_norm, epsilon));
  if (rotated->data && pass->kv_dtype == rotated->dtype) {
    rdna_tensor rows = rdna__nn_rows(&pass->cache_rows, first, count);
    return rdna_op_rope_qkv_write_to(pass->stream, &rope, &q, &k, &v, &rows, &to, &all->k_cache, &all->v_cache);
  }
  RDNA_TRY(rdna__nn_rotate_and_keep(pass, &rope, first, &q, &k, &v, &all->k_cache, &all->v_cache));
  return rotated->data ? rdna_op_cast(pass->stream, &q, &to) : RDNA_OK;
}

/* The same of spans, those of pictures turned in them where the model does so. */
static rdna_status rotate(const rdna__nn_pass *pass, const rdna__nn_attention *a, double epsilon, int first, int count,
                          const attended_tensors *all, const rdna_tensor *rotated) {
  int done = first, end = first + count;
  for (int i = 0; a->rotation->row_freq.data && i < pass->span_count; i++) {
    const rdna__nn_span *span = &pass->spans[i];
    if (!span->rows || span->first < first || span->first >= end) continue;
    RDNA_TRY(rotate_some(pass, a, epsilon, done, span->first - done, all, rotated, false));
    RDNA_TRY(turn_in_picture(pass, a, epsilon, span, all));
    RDNA_TRY(rotate_some(pass, a, epsilon, span->first, span->count, all, rotated, true));
    done = span->first + span->count;
  }
  return rotate_some(pass, a, epsilon, done, end - done, all, rotated, false);
}

/* A cache (rows, kv_heads, d) as (pages, page_rows, kv_heads, d). */
static rdna_tensor as_pages(const rdna__nn_pass *pass, const rdna_tensor *cache) {
  rdna_tensor pages = *cache;
  pages.rank = 4;
  pages.shape[0] = pass->pages, pages.shape[1] = pass->page_rows;
  pages.stride[0] = pass->page_rows * cache->stride[0], pages.stride[1] = cache->stride[0];
  for (int i = 1; i < 3; i++) pages.shape[i + 1] = cache->shape[i], pages.stride[i + 1] = cache->stride[i];
  return pages;
}

/* Attends the tokens of one sequence in f32. The kernels for many tokens read caches of f32 and f16, so others are
 * converted. A copy's rows begin at 0, and so does cache_base of a sequence in pages. */
static rdna_status attend_span(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna__nn_span *span,
                               const attended_tensors *all, const rdna_tensor *out_all) {
  rdna_attention attention = rdna__nn_attention_options(pass, a, span->count, span->length);
  rdna_tensor q = rdna__nn_rows(&all->q, span->first, span->count), k = all->k_cache, v = all->v_cache;
  rdna_tensor out = rdna__nn_rows(out_all, span->first, span->count);
  rdna_tensor base = rdna__nn_rows(&pass->cache_base, span->first, span->count);
  rdna_tensor positions = rdna__nn_rows(&pass->positions, span->first, span->count);
  rdna__scratch scratch = {.stream = pass->stream, .holder = "rows of a sequence"};
  rdna_dtype dtype = pass->kv_dtype == RDNA_F16 ? RDNA_F16 : RDNA_F32;
  rdna_status status = RDNA_OK;
  if (span->base < 0 || dtype != pass->kv_dtype) {
    status = rows_of_both(pass, span, &all->k_cache, &all->v_cache, dtype, &scratch, &k, &v);
    if (span->base > 0) base = rdna__nn_rows(&pass->zeros, 0, span->count);
  }
  if (status == RDNA_OK)
    status = rdna_op_attention(pass->stream, &attention, &q, &k, &v, &base, &positions, pass->workspace,
                               pass->workspace_bytes, &out);
  return rdna__scratch_release(&scratch, status);
}

/* Whether the cache must be converted first, as no kernel reads heads of this size from blocks. */
static bool is_converted(const attended_tensors *all) {
  int64_t d = all->k_cache.shape[2];
  return all->k_cache.dtype == RDNA_Q8_0 && (d > 256 || d != all->v_cache.shape[2]);
}

/* Attends the sequences with few tokens, in f32: in one call, or each for itself where caches must be converted. */
static rdna_status attend_few(const rdna__nn_pass *pass, const rdna__nn_attention *a, const attended_tensors *all,
                              const rdna_tensor *out_all) {
  for (int i = 0; i < pass->few_spans && is_converted(all); i++)
    RDNA_TRY(attend_span(pass, a, &pass->spans[i], all, out_all));
  if (is_converted(all)) return RDNA_OK;
  rdna_attention attention = rdna__nn_attention_options(pass, a, pass->few_most, pass->few_length);
  rdna_tensor q = rdna__nn_rows(&all->q, 0, pass->few), out = rdna__nn_rows(out_all, 0, pass->few);
  rdna_tensor positions = rdna__nn_rows(&pass->positions, 0, pass->few);
  if (!pass->few_paged) {
    rdna_tensor base = rdna__nn_rows(&pass->cache_base, 0, pass->few);
    return rdna_op_attention(pass->stream, &attention, &q, &all->k_cache, &all->v_cache, &base, &positions,
                             pass->workspace, pass->workspace_bytes, &out);
  }
  rdna_tensor k_pages = as_pages(pass, &all->k_cache), v_pages = as_pages(pass, &all->v_cache);
  rdna_tensor sequence = rdna__nn_rows(&pass->sequence, 0, pass->few);
  return rdna_op_attention_paged(pass->stream, &attention, &q, &k_pages, &v_pages, &pass->table, &sequence, &positions,
                                 pass->workspace, pass->workspace_bytes, &out);
}

/* Attends a span whose tokens see each other, in f32. |out_all| may be q. */
static rdna_status attend_picture(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna__nn_span *span,
                                  const attended_tensors *all, const rdna_tensor *out_all) {
  rdna_tensor q = rdna__nn_rows(&all->q, span->first, span->count), seen;
  rdna_tensor out = rdna__nn_rows(out_all, span->first, span->count);
  rdna__scratch scratch = {.stream = pass->stream, .holder = "what a picture's tokens see"};
  rdna_status status = rdna__scratch_tensor(&scratch, RDNA_F32, 3, out.shape, &seen);
  if (status == RDNA_OK) status = attend_as_sequence(pass, a, span, &q, &all->k_cache, &all->v_cache, &seen);
  if (status == RDNA_OK) status = rdna_op_copy(pass->stream, &seen, &out);
  return rdna__scratch_release(&scratch, status);
}

/* Attends all tokens of the pass in f32; |out| is f32 too. */
static rdna_status attend_in_f32(const rdna__nn_pass *pass, const rdna__nn_attention *a, const attended_tensors *all,
                                 const rdna_tensor *out) {
  if (pass->few > 0) RDNA_TRY(attend_few(pass, a, all, out));
  for (int i = pass->few_spans; i < pass->span_count; i++) {
    const rdna__nn_span *span = &pass->spans[i];
    RDNA_TRY(span->both_ways ? attend_picture(pass, a, span, all, out) : attend_span(pass, a, span, all, out));
  }
  return RDNA_OK;
}

/* Attends the sequences with many tokens on matrix units. |rotated|, the queries, and |seen|, the result, have rows for
 * all tokens and are of rdna__nn_sequence_type. */
static rdna_status attend_spans(const rdna__nn_pass *pass, const rdna__nn_attention *a, const attended_tensors *all,
                                const rdna_tensor *rotated, const rdna_tensor *seen) {
  for (int i = pass->few_spans; i < pass->span_count; i++) {
    const rdna__nn_span *span = &pass->spans[i];
    rdna_tensor q = rdna__nn_rows(rotated, span->first, span->count);
    rdna_tensor out = rdna__nn_rows(seen, span->first, span->count);
    RDNA_TRY(attend_as_sequence(pass, a, span, &q, &all->k_cache, &all->v_cache, &out));
  }
  return RDNA_OK;
}

/* to = from, of |count| tokens from |first| on, where their types or places differ. */
static rdna_status cast_rows(const rdna__nn_pass *pass, const rdna_tensor *from, int first, int count,
                             const rdna_tensor *to) {
  if (count == 0 || (from->data == to->data && from->dtype == to->dtype)) return RDNA_OK;
  rdna_tensor x = rdna__nn_rows(from, first, count), y = rdna__nn_rows(to, first, count);
  return rdna_op_cast(pass->stream, &x, &y);
}

/* Attends sequences with few tokens in f32, which overwrites their q, and the others on matrix units. |attended| is of
 * the pass's type. */
static rdna_status attend_in_halves(const rdna__nn_pass *pass, const rdna__nn_attention *a, double epsilon,
                                    const attended_tensors *all, const rdna_tensor *attended) {
  const rdna_tensor in_place = {0};
  rdna_dtype dtype = rdna__nn_sequence_type(pass);
  rdna_tensor rotated = rdna_tensor_contiguous(pass->rotated, dtype, 3, all->q.shape), seen = *attended;
  seen.dtype = dtype;
  int few = pass->few, rest = pass->count - few;
  RDNA_TRY(rotate(pass, a, epsilon, 0, few, all, &in_place));
  RDNA_TRY(rotate(pass, a, epsilon, few, rest, all, &rotated));
  RDNA_TRY(attend_spans(pass, a, all, &rotated, &seen));
  RDNA_TRY(cast_rows(pass, &seen, few, rest, attended));
  if (few > 0) RDNA_TRY(attend_few(pass, a, all, &all->q));
  return cast_rows(pass, &all->q, 0, few, attended);
}

rdna_status rdna__nn_attend_over(const rdna__nn_pass *pass, const rdna__nn_attention *a, const rdna_tensor *q,
                                 const rdna_tensor *k_cache, const rdna_tensor *v_cache, const rdna_tensor *out) {
  attended_tensors all = {.q = *q, .k_cache = *k_cache, .v_cache = *v_cache};
  if (!is_on_matrix_units(pass)) return attend_in_f32(pass, a, &all, out);
  rdna_tensor rotated = rdna_tensor_contiguous(pass->rotated, rdna__nn_sequence_type(pass), 3, q->shape);
  rdna_tensor seen = rdna_tensor_contiguous(pass->attended, rotated.dtype, 3, out->shape);
  int few = pass->few, rest = pass->count - few;
  RDNA_TRY(cast_rows(pass, q, few, rest, &rotated));
  RDNA_TRY(attend_spans(pass, a, &all, &rotated, &seen));
  RDNA_TRY(cast_rows(pass, &seen, few, rest, out));
  return few > 0 ? attend_few(pass, a, &all, out) : RDNA_OK;
}

/* ---- whole texts, without a cache ---- */

/* q, k and v of all tokens in the type of products, one behind the other. */
static rdna_status round_all(const rdna__nn_pass *pass, rdna__scratch *scratch, attended_tensors *all) {
  if (pass->type == RDNA_F32) return RDNA_OK;
  rdna_tensor *each[] = {&all->q, &all->k, &all->v};
  for (int i = 0; i < 3; i++) {
    rdna_tensor rounded;
    RDNA_TRY(rdna__scratch_tensor(scratch, pass->type, 3, each[i]->shape, &rounded));
    RDNA_TRY(rdna_op_cast(pass->stream, each[i], &rounded));
    *each[i] = rounded;
  }
  return RDNA_OK;
}

/* Each token over all of its text, or as far as the window reaches to both sides. */
static rdna_status attend_both_ways(const rdna__nn_pass *pass, const rdna__nn_attention *a, double epsilon,
                                    attended_tensors *all, const rdna_tensor *attended) {
  const rdna__nn_rotation *r = a->rotation;
  rdna_rope rope = {RDNA_ROPE_INIT, r->layout, &pass->positions, &r->inv_freq, r->magnitude};
  rdna__scratch scratch = {.stream = pass->stream, .holder = "heads of texts"};
  int longest = 0;
  for (int i = 0; i < pass->span_count; i++) longest = pass->spans[i].count > longest ? pass->spans[i].count : longest;
  rdna_sdpa options = {RDNA_SDPA_INIT,
                       .scale = a->scale,
                       .softcap = a->softcap,
                       .windowed = a->window > 0,
                       .left = a->window > 0 ? a->window - 1 : 0,
                       .right = a->window > 0 ? a->window - 1 : 0,
                       .q_starts = &pass->starts,
                       .k_starts = &pass->starts,
                       .max_queries = longest,
                       .max_keys = longest};
  RDNA_TRY(normalize(pass, &all->q, &a->q_norm, epsilon));
  RDNA_TRY(normalize(pass, &all->k, &a->k_norm, epsilon));
  if (r->inv_freq.shape[0] > 0) {
    RDNA_TRY(rdna_op_rope(pass->stream, &rope, &all->q, &all->q));
    RDNA_TRY(rdna_op_rope(pass->stream, &rope, &all->k, &all->k));
  }
  rdna_status status = round_all(pass, &scratch, all);
  if (status == RDNA_OK) status = rdna_op_sdpa(pass->stream, &options, &all->q, &all->k, &all->v, attended, NULL);
  return rdna__scratch_release(&scratch, status);
}

rdna_status rdna__nn_attend(const rdna__nn_pass *pass, const rdna__nn_decoder *decoder, int index, const rdna_tensor *h,
                            const rdna_tensor *projected) {
  const rdna__nn_layer *layer = &decoder->layers[index];
  const rdna__nn_attention *a = &layer->attention;
  attended_tensors all;
  rdna_tensor gate;
  RDNA_TRY(project(pass, a, h, &all.q, &all.k, &all.v, &gate));
  if (decoder->temperature_beta > 0 && pass->length > decoder->temperature_after) {
    const rdna_scalar zero = rdna_scalar_real(0);
    rdna_tensor rows = rdna__nn_matrix(all.q.data, pass->count, (int64_t)a->heads * a->head_dim);
    RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_MUL, &rows, &pass->temperatures, zero, zero, &rows));
  }
  all.k_cache = cache_of(pass, a, pass->k_cache, layer->cache);
  all.v_cache = cache_of(pass, a, pass->v_cache, layer->cache);
  rdna_tensor attended = rdna_tensor_contiguous(pass->attended, pass->type, 3, all.q.shape);
  if (decoder->bidirectional) {
    RDNA_TRY(attend_both_ways(pass, a, decoder->norm_epsilon, &all, &attended));
  } else if (is_on_matrix_units(pass)) {
    RDNA_TRY(attend_in_halves(pass, a, decoder->norm_epsilon, &all, &attended));
  } else {
    rdna_tensor out = pass->type == RDNA_F32 ? attended : all.q;
    const rdna_tensor in_place = {0};
    RDNA_TRY(rotate(pass, a, decoder->norm_epsilon, 0, pass->count, &all, &in_place));
    RDNA_TRY(attend_in_f32(pass, a, &all, &out));
    if (pass->type != RDNA_F32) RDNA_TRY(rdna_op_cast(pass->stream, &out, &attended));
  }
  if (a->gated) RDNA_TRY(apply_gate(pass, &gate, &all.q, &attended));
  rdna_tensor rows = rdna__nn_input(pass, pass->attended, (int64_t)a->heads * a->head_dim);
  return rdna__nn_linear_out(pass, &a->output, &rows, projected);
}
