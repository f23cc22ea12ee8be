#include "model/image/clip_layers.h"

#include <math.h>
#include <stdio.h>

#include "rdna/op.h"

enum { NAME_BYTES = 128 };

/* ---- weights ---- */

rdna_status rdna__clip_load_affine(rdna__component *c, const char *prefix, const char *name, int rows, int columns,
                                   rdna__clip_affine *out) {
  char full[NAME_BYTES];
  const int64_t shape[] = {rows, columns};
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(rdna__component_load(c, prefix, full, RDNA_F32, columns ? 2 : 1, shape, &out->weight));
  snprintf(full, sizeof full, "%s.bias", name);
  return rdna__component_load(c, prefix, full, RDNA_F32, 1, shape, &out->bias);
}

static rdna_status load_layer(rdna__component *c, const char *prefix, const rdna__clip_shape *s, int i,
                              rdna__clip_layer *out) {
  const struct {
    const char *name;
    int rows, columns;
    rdna__clip_affine *to;
  } parts[] = {{"layer_norm1", s->width, 0, &out->norm1},
               {"self_attn.q_proj", s->width, s->width, &out->q},
               {"self_attn.k_proj", s->width, s->width, &out->k},
               {"self_attn.v_proj", s->width, s->width, &out->v},
               {"self_attn.out_proj", s->width, s->width, &out->out},
               {"layer_norm2", s->width, 0, &out->norm2},
               {"mlp.fc1", s->hidden, s->width, &out->up},
               {"mlp.fc2", s->width, s->hidden, &out->down}};
  char name[NAME_BYTES];
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
    snprintf(name, sizeof name, "encoder.layers.%d.%s", i, parts[k].name);
    RDNA_TRY(rdna__clip_load_affine(c, prefix, name, parts[k].rows, parts[k].columns, parts[k].to));
  }
  return RDNA_OK;
}

rdna_status rdna__clip_load_layers(rdna__component *c, const char *prefix, const rdna__clip_shape *shape, int count,
                                   rdna__clip_layer *out) {
  for (int i = 0; i < count; i++) RDNA_TRY(load_layer(c, prefix, shape, i, &out[i]));
  return RDNA_OK;
}

/* ---- a pass ---- */

/* (count, tokens, width) as (count, heads, tokens, width of a head). */
static rdna_tensor by_head(const rdna__clip_pass *p, const rdna_tensor *t) {
  const rdna__clip_shape *s = &p->shape;
  int64_t each = s->width / s->heads, row = s->width, whole = row * s->tokens;
  return (rdna_tensor){.data = t->data,
                       .dtype = RDNA_F32,
                       .rank = 4,
                       .shape = {p->count, s->heads, s->tokens, each},
                       .stride = {whole, each, row, 1}};
}

rdna_status rdna__clip_norm(const rdna__clip_pass *p, const rdna__clip_affine *of, const rdna_tensor *x,
                            const rdna_tensor *out) {
  return rdna_op_layer_norm(p->stream, x, &of->weight, &of->bias, p->shape.epsilon, out, NULL, NULL);
}

static rdna_status attend(const rdna__clip_pass *p, const rdna__clip_layer *l) {
  RDNA_TRY(rdna__clip_norm(p, &l->norm1, &p->x, &p->h));
  RDNA_TRY(rdna_op_linear(p->stream, &p->h, &l->q.weight, &l->q.bias, &p->q));
  RDNA_TRY(rdna_op_linear(p->stream, &p->h, &l->k.weight, &l->k.bias, &p->k));
  RDNA_TRY(rdna_op_linear(p->stream, &p->h, &l->v.weight, &l->v.bias, &p->v));
  rdna_sdpa options = {RDNA_SDPA_INIT, .scale = (float)(1 / sqrt((double)p->shape.width / p->shape.heads)),
                       .causal = p->shape.causal};
  rdna_tensor q = by_head(p, &p->q), k = by_head(p, &p->k), v = by_head(p, &p->v), out = by_head(p, &p->h);
  RDNA_TRY(rdna_op_sdpa(p->stream, &options, &q, &k, &v, &out, NULL));
  return rdna_op_linear_add(p->stream, &p->h, &l->out.weight, &l->out.bias, &p->x);
}

static rdna_tensor as_matrix(const rdna_tensor *t) {
  return rdna_tensor_contiguous(t->data, RDNA_F32, 2, (const int64_t[]){t->shape[0], t->shape[2]});
}

static rdna_status feed_forward(const rdna__clip_pass *p, const rdna__clip_layer *l) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor up = as_matrix(&p->up);
  RDNA_TRY(rdna__clip_norm(p, &l->norm2, &p->x, &p->h));
  RDNA_TRY(rdna_op_linear(p->stream, &p->h, &l->up.weight, &l->up.bias, &up));
  if (p->shape.quick) {
    RDNA_TRY(rdna_op_map(p->stream, RDNA_MAP_AFFINE, &p->up, rdna_scalar_real(1.702), zero, &p->gate));
    RDNA_TRY(rdna_op_mul_sigmoid(p->stream, &p->up, &p->gate, &p->up));
  } else {
    RDNA_TRY(rdna_op_map(p->stream, RDNA_MAP_GELU_ERF, &up, zero, zero, &up));
  }
  return rdna_op_linear_add(p->stream, &up, &l->down.weight, &l->down.bias, &p->x);
}

rdna_status rdna__clip_layer_run(const rdna__clip_pass *p, const rdna__clip_layer *l) {
  RDNA_TRY(attend(p, l));
  return feed_forward(p, l);
}

rdna_status rdna__clip_prepare(rdna__clip_pass *p) {
  const int64_t rows = (int64_t)p->count * p->shape.tokens;
  const int64_t wide[] = {rows, p->shape.width}, hidden[] = {rows, 1, p->shape.hidden};
  rdna_tensor *const of_width[] = {&p->x, &p->h, &p->q, &p->k, &p->v};
  for (size_t i = 0; i < sizeof of_width / sizeof *of_width; i++)
    RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_F32, 2, wide, of_width[i]));
  RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_F32, 3, hidden, &p->up));
  return p->shape.quick ? rdna__scratch_tensor(&p->scratch, RDNA_F32, 3, hidden, &p->gate) : RDNA_OK;
}
