#include "model/image/dit.h"

#include <math.h>
#include <stdio.h>

#include "model/image/unet.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { AXES = RDNA__DIT_AXES, MOST_PAIRS = 256 };

/* ---- loading ---- */

rdna_status rdna__dit_load_vector(rdna__component *c, const char *prefix, const char *name, int count,
                                  rdna_tensor *out) {
  const int64_t shape = count;
  return rdna__component_load(c, prefix, name, RDNA_F32, 1, &shape, out);
}

rdna_status rdna__dit_load_one(rdna__component *c, const char *name, rdna_dtype dtype, int rank, const int64_t *shape,
                               rdna_tensor *out) {
  bool less = rdna__component_rank(c, "", name) == rank - 1;
  RDNA_TRY(rdna__component_load(c, "", name, dtype, rank - less, shape + less, out));
  *out = rdna_tensor_contiguous(out->data, dtype, rank, shape);
  return RDNA_OK;
}

rdna_status rdna__dit_load_wide(rdna__component *c, const char *prefix, const char *name, int in, int out, bool biased,
                                rdna__image_linear *to) {
  char full[RDNA__COMPONENT_NAME];
  RDNA_TRY(rdna__image_load_linear(c, prefix, name, in, out, false, to));
  if (!biased) return RDNA_OK;
  snprintf(full, sizeof full, "%s.bias", name);
  return rdna__dit_load_vector(c, prefix, full, out, &to->bias);
}

rdna_status rdna__dit_load_embedding(rdna__component *c, const char *prefix, const char *const names[2], int in,
                                     int hidden, int out, bool biased, rdna__dit_embedding *to) {
  RDNA_TRY(rdna__dit_load_wide(c, prefix, names[0], in, hidden, biased, &to->first));
  return rdna__dit_load_wide(c, prefix, names[1], hidden, out, biased, &to->second);
}

rdna_status rdna__dit_make_axes(rdna__network *network, double theta, rdna__dit_axes *out) {
  float values[MOST_PAIRS];
  rdna_stream *stream = rdna_device_default_stream(network->device);
  for (int a = 0; a < AXES; a++) {
    const int64_t half = out->values[a] / 2;
    if (!half) continue;
    for (int i = 0; i < half; i++) values[i] = (float)pow(theta, -2.0 * i / out->values[a]);
    RDNA_TRY(rdna__network_tensor(network, RDNA_F32, 1, &half, &out->frequencies[a]));
    RDNA_TRY(rdna_copy_to_device(stream, out->frequencies[a].data, values, (size_t)half * sizeof *values));
  }
  return RDNA_OK;
}

/* ---- parts of matrices ---- */

rdna_tensor rdna__dit_rows(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor part = *t;
  part.data = (char *)t->data + rdna_dtype_bytes(t->dtype, first * t->stride[0]);
  part.shape[0] = count;
  return part;
}

rdna_tensor rdna__dit_columns(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor part = *t;
  part.data = (char *)t->data + rdna_dtype_bytes(t->dtype, first);
  part.shape[1] = count;
  return part;
}

rdna_tensor rdna__dit_part(const rdna_tensor *of, int64_t width, int part) {
  return rdna_tensor_contiguous((char *)of->data + rdna_dtype_bytes(of->dtype, part * width), of->dtype, 1, &width);
}

/* ---- products ---- */

rdna_status rdna__dit_linear(const rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *x,
                             const rdna_tensor *out) {
  return rdna__image_linear_into(pass->stream, by, x, out);
}

rdna_status rdna__dit_linear_of(rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *norm,
                                double epsilon, const float *values, const rdna_tensor *out) {
  const int64_t shape[] = {out->shape[0], by->weight.shape[1]};
  rdna_tensor given, read;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 2, shape, &given));
  RDNA_TRY(
      rdna_copy_to_device(pass->stream, given.data, values, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&given))));
  if (norm->data) RDNA_TRY(rdna_op_rms_norm(pass->stream, &given, norm, epsilon, &given));
  read = given;
  if (pass->dtype != RDNA_F32) {
    RDNA_TRY(rdna__pass_tensor(pass, pass->dtype, 2, shape, &read));
    RDNA_TRY(rdna_op_copy(pass->stream, &given, &read));
  }
  RDNA_TRY(rdna__dit_linear(pass, by, &read, out));
  if (read.data != given.data) RDNA_TRY(rdna__pass_drop(pass, &read));
  return rdna__pass_drop(pass, &given);
}

rdna_status rdna__dit_linear_to(rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *h,
                                float *values) {
  const int64_t shape[] = {h->shape[0], by->weight.shape[0]};
  rdna_tensor made, wide;
  RDNA_TRY(rdna__pass_tensor(pass, pass->dtype, 2, shape, &made));
  RDNA_TRY(rdna__dit_linear(pass, by, h, &made));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 2, shape, &wide));
  RDNA_TRY(rdna_op_copy(pass->stream, &made, &wide));
  RDNA_TRY(rdna_copy_to_host(pass->stream, values, wide.data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&wide))));
  return rdna_stream_synchronize(pass->stream);
}

/* ---- what blocks are modulated by ---- */

rdna_status rdna__dit_embed(rdna__image_pass *pass, const rdna__dit_embedding *by, const float *values, bool first,
                            const rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t shape[] = {1, by->first.weight.shape[1]}, hidden[] = {1, by->first.weight.shape[0]};
  rdna_tensor x, h;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 2, shape, &x));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 2, hidden, &h));
  RDNA_TRY(rdna_copy_to_device(pass->stream, x.data, values, (size_t)shape[1] * sizeof *values));
  RDNA_TRY(rdna__dit_linear(pass, &by->first, &x, &h));
  RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_SILU, &h, zero, zero, &h));
  if (first)
    RDNA_TRY(rdna__dit_linear(pass, &by->second, &h, out));
  else
    RDNA_TRY(rdna__image_linear_add(pass->stream, &by->second, &h, out));
  RDNA_TRY(rdna__pass_drop(pass, &x));
  return rdna__pass_drop(pass, &h);
}

rdna_status rdna__dit_embed_number(rdna__image_pass *pass, const rdna__dit_embedding *by, double number, bool first,
                                   const rdna_tensor *out) {
  static const rdna__unet_settings numbers = {.cosines_first = true};
  float values[RDNA__DIT_MOST_EMBEDDED];
  rdna__image_embed_number(&numbers, number, (int)by->first.weight.shape[1], values);
  return rdna__dit_embed(pass, by, values, first, out);
}

rdna_status rdna__dit_modulate(rdna__image_pass *pass, const rdna__image_linear *by, const rdna_tensor *conditions,
                               int64_t width, const int ones[RDNA__DIT_ONES], rdna__dit_modulation *out) {
  const int64_t shape[] = {1, by->weight.shape[0]};
  out->width = width;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 2, shape, &out->wide));
  RDNA_TRY(rdna__dit_linear(pass, by, conditions, &out->wide));
  for (int i = 0; i < RDNA__DIT_ONES && ones[i] >= 0; i++) {
    rdna_tensor part = rdna__dit_columns(&out->wide, ones[i] * width, width);
    RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_AFFINE, &part, rdna_scalar_real(1), rdna_scalar_real(1), &part));
  }
  out->narrow = out->wide;
  if (pass->dtype == RDNA_F32) return RDNA_OK;
  RDNA_TRY(rdna__pass_tensor(pass, pass->dtype, 2, shape, &out->narrow));
  return rdna_op_copy(pass->stream, &out->wide, &out->narrow);
}

rdna_status rdna__dit_drop_modulation(rdna__image_pass *pass, rdna__dit_modulation *m) {
  if (m->narrow.data != m->wide.data) RDNA_TRY(rdna__pass_drop(pass, &m->narrow));
  return rdna__pass_drop(pass, &m->wide);
}

rdna_status rdna__dit_norm(const rdna__image_pass *pass, const rdna__dit_modulation *m, int scale, int shift,
                           double epsilon, const rdna_tensor *x, const rdna_tensor *out) {
  const rdna_tensor weight = rdna__dit_part(&m->wide, m->width, scale);
  const rdna_tensor bias = rdna__dit_part(&m->wide, m->width, shift < 0 ? 0 : shift);
  return rdna_op_layer_norm(pass->stream, x, &weight, shift < 0 ? NULL : &bias, epsilon, out, NULL, NULL);
}

rdna_status rdna__dit_add_gated(const rdna__image_pass *pass, const rdna__dit_modulation *m, int gate,
                                const rdna_tensor *h, const rdna_tensor *x) {
  const rdna_fused_step steps[] = {{.op = RDNA_ZIP_MUL, .is_zip = true, .input = 1},
                                   {.op = RDNA_ZIP_ADD, .is_zip = true, .input = 2}};
  rdna_tensor over = rdna__dit_part(&m->narrow, m->width, gate);
  return rdna_op_fused(pass->stream, steps, 2, (const rdna_tensor *const[]){h, &over, x}, 3, x);
}

/* ---- attention ---- */

/* (rows, width) as (rows, heads, head) */
static rdna_tensor by_head(const rdna_tensor *t, int64_t head) {
  return (rdna_tensor){.data = t->data,
                       .dtype = t->dtype,
                       .rank = 3,
                       .shape = {t->shape[0], t->shape[1] / head, head},
                       .stride = {t->stride[0], head, 1}};
}

rdna_status rdna__dit_norm_heads(const rdna__image_pass *pass, const rdna_tensor *weight, double epsilon,
                                 const rdna_tensor *t) {
  rdna_tensor heads = by_head(t, weight->shape[0]);
  return rdna_op_rms_norm(pass->stream, &heads, weight, epsilon, &heads);
}

static rdna_status turn_axes(const rdna__image_pass *pass, const rdna__dit_axes *axes, const rdna_tensor *positions,
                             const rdna_tensor *heads) {
  int64_t at = 0;
  for (int a = 0; a < AXES; at += axes->values[a++]) {
    if (!positions[a].data || !axes->values[a]) continue;
    const rdna_rope rope = {RDNA_ROPE_INIT, .layout = RDNA_ROPE_LAYOUT_INTERLEAVED, .positions = &positions[a],
                            .inv_freq = &axes->frequencies[a], .scale = 1};
    rdna_tensor part = *heads;
    part.data = (char *)heads->data + rdna_dtype_bytes(heads->dtype, at);
    part.shape[2] = axes->values[a];
    RDNA_TRY(rdna_op_rope(pass->stream, &rope, &part, &part));
  }
  return RDNA_OK;
}

/* In bf16 each axis would be rounded by itself. */
rdna_status rdna__dit_turn(rdna__image_pass *pass, const rdna__dit_axes *axes, const rdna_tensor *positions, int head,
                           const rdna_tensor *t) {
  rdna_tensor heads = by_head(t, head), wide;
  if (t->dtype != RDNA_BF16) return turn_axes(pass, axes, positions, &heads);
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, heads.shape, &wide));
  RDNA_TRY(rdna_op_copy(pass->stream, &heads, &wide));
  RDNA_TRY(turn_axes(pass, axes, positions, &wide));
  RDNA_TRY(rdna_op_copy(pass->stream, &wide, &heads));
  return rdna__pass_drop(pass, &wide);
}

/* (rows, …) as (1, heads, rows, head) */
static rdna_tensor for_attention(const rdna_tensor *t, int64_t head) {
  return (rdna_tensor){.data = t->data,
                       .dtype = t->dtype,
                       .rank = 4,
                       .shape = {1, t->shape[1] / head, t->shape[0], head},
                       .stride = {t->shape[0] * t->stride[0], head, t->stride[0], 1}};
}

rdna_status rdna__dit_attend(const rdna__image_pass *pass, int head, const rdna_tensor *q, const rdna_tensor *k,
                             const rdna_tensor *v, const rdna_tensor *out) {
  const rdna_sdpa options = {RDNA_SDPA_INIT, .scale = (float)(1 / sqrt((double)head))};
  rdna_tensor queries = for_attention(q, head), keys = for_attention(k, head), values = for_attention(v, head);
  rdna_tensor to = for_attention(out, head);
  return rdna_op_sdpa(pass->stream, &options, &queries, &keys, &values, &to, NULL);
}

/* ---- tokens of p x p places ---- */

/* Where value (channel 0, y, x) is among tokens, and in |*out_stride| how far from it the next channel's. */
static ptrdiff_t place_of(rdna__dit_order order, int p, int channels, int width, int y, int x, ptrdiff_t *out_stride) {
  ptrdiff_t token = ((ptrdiff_t)(y / p) * (width / p) + x / p) * p * p * channels, place = y % p * p + x % p;
  *out_stride = order == DIT_CHANNELS_FIRST ? (ptrdiff_t)p * p : 1;
  return token + (order == DIT_CHANNELS_FIRST ? place : place * channels);
}

void rdna__dit_pack(rdna__dit_order order, int p, const float *sample, int channels, int height, int width,
                    float *tokens) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      ptrdiff_t stride, to = place_of(order, p, channels, width, y, x, &stride);
      for (int c = 0; c < channels; c++) tokens[to + c * stride] = sample[((ptrdiff_t)c * height + y) * width + x];
    }
}

void rdna__dit_unpack(rdna__dit_order order, int p, const float *tokens, int channels, int height, int width,
                      float *sample) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      ptrdiff_t stride, from = place_of(order, p, channels, width, y, x, &stride);
      for (int c = 0; c < channels; c++) sample[((ptrdiff_t)c * height + y) * width + x] = tokens[from + c * stride];
    }
}
