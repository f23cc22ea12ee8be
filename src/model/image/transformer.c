#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/image/adapter.h"
#include "model/image/unet.h"
#include "rdna/op.h"

static const double group_epsilon = 1e-6, layer_epsilon = 1e-5; /* no setting says them */

/* ---- loading ---- */

static rdna_status load_norm(rdna__component *c, const char *prefix, const char *name, int channels,
                             rdna__image_layer_norm *out) {
  char full[RDNA__COMPONENT_NAME];
  const int64_t count = channels;
  out->epsilon = layer_epsilon;
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(rdna__component_load(c, prefix, full, RDNA_F32, 1, &count, &out->weight));
  snprintf(full, sizeof full, "%s.bias", name);
  return rdna__component_load(c, prefix, full, RDNA_F32, 1, &count, &out->bias);
}

static rdna_status load_heads(rdna__component *c, const char *prefix, const char *name, int channels, int read,
                              rdna__image_heads *out) {
  char whole[RDNA__COMPONENT_NAME];
  snprintf(whole, sizeof whole, "%s.%s", prefix, name);
  RDNA_TRY(rdna__image_load_linear(c, whole, "to_q", channels, channels, false, &out->q));
  RDNA_TRY(rdna__image_load_linear(c, whole, "to_k", read, channels, false, &out->k));
  RDNA_TRY(rdna__image_load_linear(c, whole, "to_v", read, channels, false, &out->v));
  return rdna__image_load_linear(c, whole, "to_out.0", channels, channels, true, &out->out);
}

static rdna_status load_block(rdna__component *c, const char *prefix, int channels, int text_width,
                              rdna__image_transformer_block *out) {
  int hidden = 4 * channels;
  RDNA_TRY(load_norm(c, prefix, "norm1", channels, &out->norm1));
  RDNA_TRY(load_heads(c, prefix, "attn1", channels, channels, &out->own));
  RDNA_TRY(load_norm(c, prefix, "norm2", channels, &out->norm2));
  RDNA_TRY(load_heads(c, prefix, "attn2", channels, text_width, &out->text));
  RDNA_TRY(load_norm(c, prefix, "norm3", channels, &out->norm3));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "ff.net.0.proj", channels, 2 * hidden, true, &out->up));
  return rdna__image_load_linear(c, prefix, "ff.net.2", hidden, channels, true, &out->down);
}

rdna_status rdna__image_load_transformer(rdna__component *c, const char *prefix, int channels, int text_width,
                                         int heads, int groups, int blocks, rdna__image_transformer *out) {
  char name[RDNA__COMPONENT_NAME];
  *out = (rdna__image_transformer){.heads = heads, .count = blocks};
  out->blocks = calloc((size_t)blocks, sizeof *out->blocks);
  if (!out->blocks) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a transformer");
  RDNA_TRY(rdna__image_load_norm(c, prefix, "norm", channels, groups, group_epsilon, &out->norm));
  RDNA_TRY(rdna__image_load_projection(c, prefix, "proj_in", channels, &out->in));
  for (int i = 0; i < blocks; i++) {
    snprintf(name, sizeof name, "%s.transformer_blocks.%d", prefix, i);
    RDNA_TRY(load_block(c, name, channels, text_width, &out->blocks[i]));
  }
  return rdna__image_load_projection(c, prefix, "proj_out", channels, &out->out);
}

void rdna__image_transformer_deinit(rdna__image_transformer *t) {
  free(t->blocks);
  *t = (rdna__image_transformer){0};
}

/* ---- running ---- */

static rdna_status norm_into(rdna__image_pass *pass, const rdna__image_layer_norm *norm, const rdna_tensor *x,
                             const rdna_tensor *out) {
  return rdna_op_layer_norm(pass->stream, x, &norm->weight, &norm->bias, norm->epsilon, out, NULL, NULL);
}

/* t += out(attention(h over |read|)); h (n, tokens, channels) is used up. */
static rdna_status attend(rdna__image_pass *pass, const rdna__image_heads *a, int heads, const rdna_tensor *h,
                          const rdna_tensor *read, const rdna_tensor *t) {
  rdna_tensor q, k, v;
  RDNA_TRY(rdna__image_linear_run(pass, &a->q, h, &q));
  RDNA_TRY(rdna__image_linear_run(pass, &a->k, read, &k));
  RDNA_TRY(rdna__image_linear_run(pass, &a->v, read, &v));
  RDNA_TRY(rdna__image_attend(pass, heads, &q, &k, &v, h));
  RDNA_TRY(rdna__pass_drop(pass, &q));
  RDNA_TRY(rdna__pass_drop(pass, &k));
  RDNA_TRY(rdna__pass_drop(pass, &v));
  return rdna__image_linear_add(pass->stream, &a->out, h, t);
}

/* The images of |t| (n, tokens, channels) from |first| on. */
static rdna_tensor images_from(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor part = *t;
  part.shape[0] = count;
  part.data = (char *)t->data + rdna_dtype_bytes(t->dtype, first * t->stride[0]);
  return part;
}

/* The same over h itself, where tokens of the last |perturbed| images see themselves alone: their scores are 1. */
static rdna_status attend_own(rdna__image_pass *pass, const rdna__image_heads *a, int heads, int perturbed,
                              const rdna_tensor *h, const rdna_tensor *t) {
  if (!perturbed) return attend(pass, a, heads, h, h, t);
  int64_t seeing = h->shape[0] - perturbed;
  rdna_tensor q, k, v, first = images_from(h, 0, seeing), last = images_from(h, seeing, perturbed);
  RDNA_TRY(rdna__image_linear_run(pass, &a->v, h, &v));
  rdna_tensor seen = images_from(&v, 0, seeing), own = images_from(&v, seeing, perturbed);
  if (seeing > 0) {
    RDNA_TRY(rdna__image_linear_run(pass, &a->q, &first, &q));
    RDNA_TRY(rdna__image_linear_run(pass, &a->k, &first, &k));
    RDNA_TRY(rdna__image_attend(pass, heads, &q, &k, &seen, &first));
    RDNA_TRY(rdna__pass_drop(pass, &q));
    RDNA_TRY(rdna__pass_drop(pass, &k));
  }
  RDNA_TRY(rdna_op_copy(pass->stream, &own, &last));
  RDNA_TRY(rdna__pass_drop(pass, &v));
  return rdna__image_linear_add(pass->stream, &a->out, h, t);
}

/* t += down(kept * gelu(gate)), of kept and gate in one product of h */
static rdna_status feed_forward(rdna__image_pass *pass, const rdna__image_transformer_block *b, const rdna_tensor *h,
                                const rdna_tensor *t) {
  const rdna_fused_step steps[] = {{.op = RDNA_MAP_GELU_ERF}, {.op = RDNA_ZIP_MUL, .is_zip = true, .input = 1}};
  rdna_tensor both, gated;
  RDNA_TRY(rdna__image_linear_run(pass, &b->up, h, &both));
  rdna_tensor kept = both, gate = both;
  kept.shape[2] = gate.shape[2] = both.shape[2] / 2;
  gate.data = (char *)both.data + rdna_dtype_bytes(both.dtype, kept.shape[2]);
  RDNA_TRY(rdna__pass_tensor(pass, pass->dtype, 3, kept.shape, &gated));
  RDNA_TRY(rdna_op_fused(pass->stream, steps, 2, (const rdna_tensor *const[]){&gate, &kept}, 2, &gated));
  RDNA_TRY(rdna__pass_drop(pass, &both));
  RDNA_TRY(rdna__image_linear_add(pass->stream, &b->down, &gated, t));
  return rdna__pass_drop(pass, &gated);
}

/* h += scale attention(q over the adapter's tokens) */
static rdna_status add_adapter(rdna__image_pass *pass, const rdna_image_adapter_use *use, int place, int heads,
                               const rdna_tensor *q, const rdna_tensor *h) {
  const rdna_tensor *k = rdna__adapter_keys(use->adapter, place), *v = rdna__adapter_values(use->adapter, place);
  rdna_tensor more;
  if (use->scale == 0) return RDNA_OK;
  RDNA_TRY(rdna__pass_tensor(pass, pass->dtype, 3, h->shape, &more));
  RDNA_TRY(rdna__image_attend(pass, heads, q, k, v, &more));
  RDNA_TRY(
      rdna_op_zip(pass->stream, RDNA_ZIP_ADD_SCALED, h, &more, rdna_scalar_real(use->scale), rdna_scalar_real(0), h));
  return rdna__pass_drop(pass, &more);
}

/* The same over |text|, and over the tokens of adapters, each by itself. */
static rdna_status attend_text(rdna__image_pass *pass, const rdna__image_heads *a, int heads, int place,
                               const rdna__image_attending *attending, const rdna_tensor *h, const rdna_tensor *text,
                               const rdna_tensor *t) {
  if (!attending->adapter_count) return attend(pass, a, heads, h, text, t);
  rdna_tensor q, k, v;
  RDNA_TRY(rdna__image_linear_run(pass, &a->q, h, &q));
  RDNA_TRY(rdna__image_linear_run(pass, &a->k, text, &k));
  RDNA_TRY(rdna__image_linear_run(pass, &a->v, text, &v));
  RDNA_TRY(rdna__image_attend(pass, heads, &q, &k, &v, h));
  RDNA_TRY(rdna__pass_drop(pass, &k));
  RDNA_TRY(rdna__pass_drop(pass, &v));
  for (size_t i = 0; i < attending->adapter_count; i++)
    RDNA_TRY(add_adapter(pass, &attending->adapters[i], place, heads, &q, h));
  RDNA_TRY(rdna__pass_drop(pass, &q));
  return rdna__image_linear_add(pass->stream, &a->out, h, t);
}

rdna_status rdna__image_transformer_run(rdna__image_pass *pass, const rdna__image_transformer *of,
                                        const rdna_tensor *text, const rdna__image_attending *attending,
                                        const rdna_tensor *x) {
  rdna_tensor image, t, outer = rdna__image_tokens(x);
  RDNA_TRY(rdna__pass_image(pass, x->shape[0], x->shape[1], x->shape[2], x->shape[3], &image));
  rdna_tensor h = rdna__image_tokens(&image);
  RDNA_TRY(rdna__image_norm_into(pass, &of->norm, x, false, &image));
  RDNA_TRY(rdna__image_linear_run(pass, &of->in, &h, &t));
  for (int i = 0; i < of->count; i++) {
    const rdna__image_transformer_block *b = &of->blocks[i];
    RDNA_TRY(norm_into(pass, &b->norm1, &t, &h));
    int perturbed = attending->blocks >> i & 1 ? attending->perturbed : 0;
    RDNA_TRY(attend_own(pass, &b->own, of->heads, perturbed, &h, &t));
    RDNA_TRY(norm_into(pass, &b->norm2, &t, &h));
    RDNA_TRY(attend_text(pass, &b->text, of->heads, of->place + i, attending, &h, text, &t));
    RDNA_TRY(norm_into(pass, &b->norm3, &t, &h));
    RDNA_TRY(feed_forward(pass, b, &h, &t));
  }
  RDNA_TRY(rdna__pass_drop(pass, &image));
  RDNA_TRY(rdna__image_linear_add(pass->stream, &of->out, &t, &outer));
  return rdna__pass_drop(pass, &t);
}
