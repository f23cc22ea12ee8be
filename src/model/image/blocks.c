#include "model/image/blocks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "math/common/plan/scratch.h"
#include "rdna/memory.h"
#include "rdna/op.h"

/* ---- what a pass holds ---- */

static rdna_status take(rdna__image_pass *pass, rdna_tensor *t) {
  t->data = NULL;
  if (pass->count == RDNA__PASS_MOST)
    return rdna__fail(RDNA_INTERNAL, "%s: more than %d tensors at a time", pass->holder, RDNA__PASS_MOST);
  RDNA_TRY(rdna_memory_alloc_named(rdna_stream_device(pass->stream), rdna_dtype_bytes(t->dtype, rdna_tensor_count(t)),
                                   pass->stream, pass->holder, &t->data));
  pass->blocks[pass->count++] = t->data;
  return RDNA_OK;
}

rdna_status rdna__pass_tensor(rdna__image_pass *pass, rdna_dtype dtype, int rank, const int64_t *shape,
                              rdna_tensor *out) {
  *out = rdna_tensor_contiguous(NULL, dtype, rank, shape);
  return take(pass, out);
}

rdna_status rdna__pass_image(rdna__image_pass *pass, int64_t n, int64_t channels, int64_t height, int64_t width,
                             rdna_tensor *out) {
  *out = (rdna_tensor){.dtype = pass->dtype,
                       .rank = 4,
                       .shape = {n, channels, height, width},
                       .stride = {height * width * channels, 1, width * channels, channels}};
  return take(pass, out);
}

rdna_status rdna__pass_drop(rdna__image_pass *pass, rdna_tensor *t) {
  void *data = t->data;
  t->data = NULL;
  if (!data) return RDNA_OK;
  for (int i = pass->count; i-- > 0;) {
    if (pass->blocks[i] != data) continue;
    pass->blocks[i] = pass->blocks[--pass->count];
    return rdna_memory_free(rdna_stream_device(pass->stream), data);
  }
  return rdna__fail(RDNA_INTERNAL, "%s: a tensor is given back that is not its own", pass->holder);
}

rdna_status rdna__pass_end(rdna__image_pass *pass, rdna_status status) {
  while (pass->count > 0) {
    rdna_status freed = rdna_memory_free(rdna_stream_device(pass->stream), pass->blocks[--pass->count]);
    if (status == RDNA_OK) status = freed;
  }
  return status;
}

rdna_tensor rdna__image_tokens(const rdna_tensor *x) {
  const int64_t shape[] = {x->shape[0], x->shape[2] * x->shape[3], x->shape[1]};
  return rdna_tensor_contiguous(x->data, x->dtype, 3, shape);
}

/* ---- loading ---- */

static rdna_status load_vector(rdna__component *c, const char *prefix, const char *name, const char *kind,
                               rdna_dtype dtype, int64_t count, rdna_tensor *out) {
  char full[RDNA__COMPONENT_NAME];
  snprintf(full, sizeof full, "%s.%s", name, kind);
  return rdna__component_load(c, prefix, full, dtype, 1, &count, out);
}

rdna_status rdna__image_load_unbiased(rdna__component *c, const char *prefix, const char *name,
                                      const rdna__image_window *window, rdna__image_conv *out) {
  char full[RDNA__COMPONENT_NAME];
  snprintf(full, sizeof full, "%s.weight", name);
  out->stride = window->stride;
  out->pad_before = window->pad_before;
  out->pad_after = window->pad_after;
  return rdna__component_load_window(c, prefix, full, window->out, window->in, window->size, window->size,
                                     &out->weight);
}

rdna_status rdna__image_load_conv(rdna__component *c, const char *prefix, const char *name,
                                  const rdna__image_window *window, rdna__image_conv *out) {
  RDNA_TRY(rdna__image_load_unbiased(c, prefix, name, window, out));
  return load_vector(c, prefix, name, "bias", c->network->dtype, window->out, &out->bias);
}

rdna_status rdna__image_load_norm(rdna__component *c, const char *prefix, const char *name, int channels, int groups,
                                  double epsilon, rdna__image_norm *out) {
  if (groups < 1 || channels % groups != 0)
    return rdna__fail(RDNA_BAD_DATA, "the %d channels of the norm '%s.%s' are no whole number of %d groups", channels,
                      prefix, name, groups);
  out->groups = groups;
  out->epsilon = epsilon;
  RDNA_TRY(load_vector(c, prefix, name, "weight", RDNA_F32, channels, &out->weight));
  return load_vector(c, prefix, name, "bias", RDNA_F32, channels, &out->bias);
}

rdna_status rdna__image_load_linear(rdna__component *c, const char *prefix, const char *name, int in, int out,
                                    bool biased, rdna__image_linear *out_linear) {
  char full[RDNA__COMPONENT_NAME];
  rdna_dtype dtype = c->network->dtype;
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(
      rdna__component_load_beside(c, prefix, full, out, in, &out_linear->weight, &out_linear->down, &out_linear->up));
  return biased ? load_vector(c, prefix, name, "bias", dtype, out, &out_linear->bias) : RDNA_OK;
}

rdna_status rdna__image_load_resnet(rdna__component *c, const char *prefix, int in, int out, int time_width, int groups,
                                    double epsilon, rdna__image_resnet *r) {
  *r = (rdna__image_resnet){.divisor = 1};
  RDNA_TRY(rdna__image_load_norm(c, prefix, "norm1", in, groups, epsilon, &r->norm1));
  RDNA_TRY(rdna__image_load_conv(c, prefix, "conv1", &(rdna__image_window){in, out, 3, 1, 1, 1}, &r->conv1));
  c->kept = true; /* it reads one row */
  if (time_width) RDNA_TRY(rdna__image_load_linear(c, prefix, "time_emb_proj", time_width, out, true, &r->time));
  c->kept = false;
  RDNA_TRY(rdna__image_load_norm(c, prefix, "norm2", out, groups, epsilon, &r->norm2));
  RDNA_TRY(rdna__image_load_conv(c, prefix, "conv2", &(rdna__image_window){out, out, 3, 1, 1, 1}, &r->conv2));
  if (in == out) return RDNA_OK;
  const rdna__image_window one = {in, out, 1, 1, 0, 0};
  return rdna__image_load_conv(c, prefix, "conv_shortcut", &one, &r->shortcut);
}

rdna_status rdna__image_load_projection(rdna__component *c, const char *prefix, const char *name, int channels,
                                        rdna__image_linear *out) {
  char full[RDNA__COMPONENT_NAME];
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(rdna__component_load_beside(c, prefix, full, channels, channels, &out->weight, &out->down, &out->up));
  return load_vector(c, prefix, name, "bias", c->network->dtype, channels, &out->bias);
}

rdna_status rdna__image_load_attention(rdna__component *c, const char *prefix, int channels, int heads, int groups,
                                       double epsilon, rdna__image_attention *out) {
  static const char *const names[2][4] = {{"to_q", "to_k", "to_v", "to_out.0"}, {"query", "key", "value", "proj_attn"}};
  *out = (rdna__image_attention){.heads = heads};
  if (heads < 1 || channels % heads != 0)
    return rdna__fail(RDNA_BAD_DATA, "the %d channels of the attention '%s' are no whole number of %d heads", channels,
                      prefix, heads);
  const char *const *name = names[rdna__component_rank(c, prefix, "query.weight") > 0];
  rdna__image_linear *const all[] = {&out->q, &out->k, &out->v, &out->out};
  RDNA_TRY(rdna__image_load_norm(c, prefix, "group_norm", channels, groups, epsilon, &out->norm));
  for (int i = 0; i < 4; i++) RDNA_TRY(rdna__image_load_projection(c, prefix, name[i], channels, all[i]));
  return RDNA_OK;
}

/* ---- running ---- */

rdna_status rdna__image_conv_run(rdna__image_pass *pass, const rdna__image_conv *conv, const rdna_tensor *x,
                                 rdna_tensor *out) {
  const int64_t stride = conv->stride, before = conv->pad_before, after = conv->pad_after;
  const int64_t less = conv->weight.shape[2] - before - after;
  const int64_t height = (x->shape[2] - less) / stride + 1, width = (x->shape[3] - less) / stride + 1;
  if (x->shape[2] < less || x->shape[3] < less)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: an image of %lld x %lld is too small", pass->holder,
                      (long long)x->shape[2], (long long)x->shape[3]);
  const rdna_convolution how = {RDNA_CONVOLUTION_INIT,
                                .spatial_dims = 2,
                                .stride = {stride, stride},
                                .pad_before = {before, before},
                                .pad_after = {after, after},
                                .dilation = {1, 1},
                                .groups = 1};
  RDNA_TRY(rdna__pass_image(pass, x->shape[0], conv->weight.shape[0], height, width, out));
  return rdna_op_conv(pass->stream, &how, x, &conv->weight, conv->bias.data ? &conv->bias : NULL, out);
}

/* out += (x down) up */
static rdna_status add_change(rdna_stream *stream, const rdna__image_linear *linear, const rdna_tensor *x,
                              const rdna_tensor *out) {
  rdna__scratch scratch = {.stream = stream, .holder = "a LoRA"};
  rdna_tensor made;
  int64_t shape[RDNA_MAX_RANK];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->rank - 1] = linear->down.shape[0];
  rdna_status status = rdna__scratch_tensor(&scratch, x->dtype, x->rank, shape, &made);
  if (status == RDNA_OK) status = rdna_op_linear(stream, x, &linear->down, NULL, &made);
  if (status == RDNA_OK) status = rdna_op_linear_add(stream, &made, &linear->up, NULL, out);
  return rdna__scratch_release(&scratch, status);
}

static const rdna_tensor *bias_of(const rdna__image_linear *linear) { return linear->bias.data ? &linear->bias : NULL; }

rdna_status rdna__image_linear_into(rdna_stream *stream, const rdna__image_linear *linear, const rdna_tensor *x,
                                    const rdna_tensor *out) {
  RDNA_TRY(rdna_op_linear(stream, x, &linear->weight, bias_of(linear), out));
  return linear->up.data ? add_change(stream, linear, x, out) : RDNA_OK;
}

rdna_status rdna__image_linear_add(rdna_stream *stream, const rdna__image_linear *linear, const rdna_tensor *x,
                                   const rdna_tensor *out) {
  RDNA_TRY(rdna_op_linear_add(stream, x, &linear->weight, bias_of(linear), out));
  return linear->up.data ? add_change(stream, linear, x, out) : RDNA_OK;
}

static rdna_tensor rows_of(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor part = *t;
  if (t->data) part.data = (char *)t->data + rdna_dtype_bytes(t->dtype, first * t->stride[0]);
  part.shape[0] = count;
  return part;
}

rdna__image_linear rdna__image_linear_rows(const rdna__image_linear *linear, int64_t first, int64_t count) {
  return (rdna__image_linear){
      .weight = rows_of(&linear->weight, first, count), .down = linear->down, .up = rows_of(&linear->up, first, count)};
}

rdna_status rdna__image_linear_run(rdna__image_pass *pass, const rdna__image_linear *linear, const rdna_tensor *x,
                                   rdna_tensor *out) {
  rdna_tensor like = *x;
  like.shape[x->rank - 1] = linear->weight.shape[0];
  RDNA_TRY(rdna__pass_tensor(pass, pass->dtype, x->rank, like.shape, out));
  return rdna__image_linear_into(pass->stream, linear, x, out);
}

static rdna_status group_norm(rdna__image_pass *pass, const rdna__image_norm *norm, const rdna_tensor *x,
                              const rdna_tensor *out) {
  const int64_t saved[] = {x->shape[0], norm->groups};
  rdna_tensor mean, inverse;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 2, saved, &mean));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 2, saved, &inverse));
  RDNA_TRY(rdna_op_group_norm(pass->stream, x, norm->groups, &norm->weight, &norm->bias, norm->epsilon, out, &mean,
                              &inverse));
  RDNA_TRY(rdna__pass_drop(pass, &mean));
  return rdna__pass_drop(pass, &inverse);
}

rdna_status rdna__image_norm_into(rdna__image_pass *pass, const rdna__image_norm *norm, const rdna_tensor *x, bool silu,
                                  const rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const rdna_tensor tokens = rdna__image_tokens(x), normed = rdna__image_tokens(out);
  RDNA_TRY(norm->groups ? group_norm(pass, norm, x, out)
                        : rdna_op_rms_norm(pass->stream, &tokens, &norm->weight, norm->epsilon, &normed));
  return silu ? rdna_op_map(pass->stream, RDNA_MAP_SILU, out, zero, zero, out) : RDNA_OK;
}

/* A new tensor like |x|. */
static rdna_status norm_of(rdna__image_pass *pass, const rdna__image_norm *norm, const rdna_tensor *x, bool silu,
                           rdna_tensor *out) {
  RDNA_TRY(rdna__pass_image(pass, x->shape[0], x->shape[1], x->shape[2], x->shape[3], out));
  return rdna__image_norm_into(pass, norm, x, silu, out);
}

/* h (n, channels, …) += what |time| (n, width) makes of each image's embedding */
static rdna_status add_time(rdna__image_pass *pass, const rdna__image_linear *project, const rdna_tensor *time,
                            const rdna_tensor *h) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor row;
  RDNA_TRY(rdna__image_linear_run(pass, project, time, &row));
  rdna_tensor over = *h;
  over.data = row.data;
  over.stride[0] = row.stride[0];
  over.stride[2] = over.stride[3] = 0;
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, h, &over, zero, zero, h));
  return rdna__pass_drop(pass, &row);
}

/* |out| = h of the block, of |normed|, which is given back. */
static rdna_status rest_of_resnet(rdna__image_pass *pass, const rdna__image_resnet *r, rdna_tensor *normed,
                                  const rdna_tensor *time, rdna_tensor *out) {
  rdna_tensor h;
  RDNA_TRY(rdna__image_conv_run(pass, &r->conv1, normed, &h));
  RDNA_TRY(rdna__pass_drop(pass, normed));
  if (r->time.weight.data) RDNA_TRY(add_time(pass, &r->time, time, &h));
  RDNA_TRY(rdna__image_norm_into(pass, &r->norm2, &h, true, &h));
  RDNA_TRY(rdna__image_conv_run(pass, &r->conv2, &h, out));
  return rdna__pass_drop(pass, &h);
}

/* out = (out + x) / divisor */
static rdna_status add_residual(rdna__image_pass *pass, const rdna__image_resnet *r, const rdna_tensor *x,
                                const rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, out, x, zero, zero, out));
  if (r->divisor == 1) return RDNA_OK;
  return rdna_op_map(pass->stream, RDNA_MAP_AFFINE, out, rdna_scalar_real(1 / (double)r->divisor), zero, out);
}

rdna_status rdna__image_resnet_run(rdna__image_pass *pass, const rdna__image_resnet *r, const rdna_tensor *x,
                                   const rdna_tensor *time, rdna_tensor *out) {
  rdna_tensor normed, shortcut = {0};
  RDNA_TRY(norm_of(pass, &r->norm1, x, true, &normed));
  RDNA_TRY(rest_of_resnet(pass, r, &normed, time, out));
  if (r->shortcut.weight.data) RDNA_TRY(rdna__image_conv_run(pass, &r->shortcut, x, &shortcut));
  RDNA_TRY(add_residual(pass, r, shortcut.data ? &shortcut : x, out));
  return rdna__pass_drop(pass, &shortcut);
}

rdna_status rdna__image_resnet_on(rdna__image_pass *pass, const rdna__image_resnet *r, rdna_tensor *x,
                                  const rdna_tensor *time) {
  rdna_tensor normed, kept = *x, out;
  if (r->shortcut.weight.data) {
    RDNA_TRY(rdna__image_conv_run(pass, &r->shortcut, x, &kept));
    normed = *x;
    RDNA_TRY(rdna__image_norm_into(pass, &r->norm1, x, true, &normed));
  } else {
    RDNA_TRY(norm_of(pass, &r->norm1, x, true, &normed));
  }
  RDNA_TRY(rest_of_resnet(pass, r, &normed, time, &out));
  RDNA_TRY(add_residual(pass, r, &kept, &out));
  *x = out;
  return rdna__pass_drop(pass, &kept);
}

/* (n, tokens, channels) as (n, heads, tokens, channels of a head). */
static rdna_tensor by_head(const rdna_tensor *t, int heads) {
  int64_t each = t->shape[2] / heads;
  return (rdna_tensor){.data = t->data,
                       .dtype = t->dtype,
                       .rank = 4,
                       .shape = {t->shape[0], heads, t->shape[1], each},
                       .stride = {t->stride[0], each, t->stride[1], 1}};
}

rdna_status rdna__image_attend(rdna__image_pass *pass, int heads, const rdna_tensor *q, const rdna_tensor *k,
                               const rdna_tensor *v, const rdna_tensor *out) {
  const rdna_sdpa options = {RDNA_SDPA_INIT, .scale = (float)(1 / sqrt((double)(q->shape[2] / heads)))};
  rdna_tensor q4 = by_head(q, heads), k4 = by_head(k, heads), v4 = by_head(v, heads), out4 = by_head(out, heads);
  return rdna_op_sdpa(pass->stream, &options, &q4, &k4, &v4, &out4, NULL);
}

rdna_status rdna__image_attention_run(rdna__image_pass *pass, const rdna__image_attention *a, const rdna_tensor *x,
                                      rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor normed, q, k, v;
  RDNA_TRY(norm_of(pass, &a->norm, x, false, &normed));
  rdna_tensor tokens = rdna__image_tokens(&normed);
  RDNA_TRY(rdna__image_linear_run(pass, &a->q, &tokens, &q));
  RDNA_TRY(rdna__image_linear_run(pass, &a->k, &tokens, &k));
  RDNA_TRY(rdna__image_linear_run(pass, &a->v, &tokens, &v));
  RDNA_TRY(rdna__image_attend(pass, a->heads, &q, &k, &v, &tokens)); /* what they were made of is not needed again */
  RDNA_TRY(rdna__pass_drop(pass, &q));
  RDNA_TRY(rdna__pass_drop(pass, &k));
  RDNA_TRY(rdna__pass_drop(pass, &v));
  RDNA_TRY(rdna__pass_image(pass, x->shape[0], x->shape[1], x->shape[2], x->shape[3], out));
  rdna_tensor to = rdna__image_tokens(out);
  RDNA_TRY(rdna__image_linear_into(pass->stream, &a->out, &tokens, &to));
  RDNA_TRY(rdna__pass_drop(pass, &normed));
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD, out, x, zero, zero, out);
}

rdna_status rdna__image_upsample_run(rdna__image_pass *pass, const rdna__image_conv *conv, const rdna_tensor *x,
                                     int64_t height, int64_t width, rdna_tensor *out) {
  const rdna_upsample how = {RDNA_UPSAMPLE_INIT, .mode = RDNA_UPSAMPLE_MODE_NEAREST};
  rdna_tensor larger;
  RDNA_TRY(rdna__pass_image(pass, x->shape[0], x->shape[1], height, width, &larger));
  RDNA_TRY(rdna_op_upsample(pass->stream, &how, x, &larger));
  RDNA_TRY(rdna__image_conv_run(pass, conv, &larger, out));
  return rdna__pass_drop(pass, &larger);
}
