/* The networks; what is around them is in upscaler_run.c. */
#include "model/image/upscaler.h"

#include <stdio.h>
#include <stdlib.h>

#include "rdna/op.h"

enum { NAME_BYTES = RDNA__COMPONENT_NAME, ROW = 5, COLOURS = 3 };

#define SLOPE 0.2f    /* of leaky ReLUs below 0 */
#define RESIDUAL 0.2f /* what dense blocks and their rows are multiplied by before they are added */

/* ---- weights ---- */

static rdna_status load_conv(rdna__component *c, const char *name, int in, int out, rdna__image_conv *to) {
  return rdna__image_load_conv(c, "", name, &(rdna__image_window){in, out, 3, 1, 1, 1}, to);
}

static void name_dense(rdna__upscaler_names names, int block, int i, char name[NAME_BYTES]) {
  int row = i / ROW + 1, conv = i % ROW + 1;
  if (names == RDNA__UPSCALER_NEW) snprintf(name, NAME_BYTES, "body.%d.rdb%d.conv%d", block, row, conv);
  if (names == RDNA__UPSCALER_TRUNK) snprintf(name, NAME_BYTES, "RRDB_trunk.%d.RDB%d.conv%d", block, row, conv);
  if (names == RDNA__UPSCALER_NUMBERS) snprintf(name, NAME_BYTES, "model.1.sub.%d.RDB%d.conv%d.0", block, row, conv);
}

static rdna_status load_dense(rdna__component *c, rdna__upscaler_network *to, int block) {
  const rdna__upscaler_settings *s = &to->set;
  char name[NAME_BYTES];
  for (int i = 0; i < RDNA__UPSCALER_DENSE; i++) {
    name_dense(s->names, block, i, name);
    RDNA_TRY(load_conv(c, name, s->features + i % ROW * s->growth, i % ROW == ROW - 1 ? s->features : s->growth,
                       &to->dense[block][i]));
  }
  return RDNA_OK;
}

/* What is around the blocks; of those that double the number stands behind |up|, or is 3 more each time. */
typedef struct ends {
  char first[NAME_BYTES], trunk[NAME_BYTES], up[NAME_BYTES], high[NAME_BYTES], last[NAME_BYTES];
  int up_first, up_step;
} ends;

static void name_ends(const rdna__upscaler_settings *s, ends *e) {
  if (s->names == RDNA__UPSCALER_NEW) *e = (ends){"conv_first", "conv_body", "conv_up", "conv_hr", "conv_last", 1, 1};
  if (s->names == RDNA__UPSCALER_TRUNK) *e = (ends){"conv_first", "trunk_conv", "upconv", "HRconv", "conv_last", 1, 1};
  if (s->names != RDNA__UPSCALER_NUMBERS) return;
  *e = (ends){"model.0", "", "model.", "", "", 3, 3};
  snprintf(e->trunk, NAME_BYTES, "model.1.sub.%d", s->blocks);
  snprintf(e->high, NAME_BYTES, "model.%d", 3 * s->doublings + 2);
  snprintf(e->last, NAME_BYTES, "model.%d", 3 * s->doublings + 4);
}

static rdna_status load_rrdb(rdna__component *c, rdna__upscaler_network *to) {
  const rdna__upscaler_settings *s = &to->set;
  char name[NAME_BYTES + 16];
  ends e = {0};
  name_ends(s, &e);
  to->dense = calloc((size_t)s->blocks, sizeof *to->dense);
  if (!to->dense) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a network's layers");
  RDNA_TRY(load_conv(c, e.first, COLOURS * s->gathered * s->gathered, s->features, &to->first));
  for (int i = 0; i < s->blocks; i++) RDNA_TRY(load_dense(c, to, i));
  RDNA_TRY(load_conv(c, e.trunk, s->features, s->features, &to->trunk));
  for (int i = 0; i < s->doublings; i++) {
    snprintf(name, sizeof name, "%s%d", e.up, e.up_first + i * e.up_step);
    RDNA_TRY(rdna__image_load_doubling(c, "", name, s->features, s->features, true, &to->up[i]));
  }
  RDNA_TRY(load_conv(c, e.high, s->features, s->features, &to->high));
  return load_conv(c, e.last, s->features, COLOURS, &to->last);
}

static rdna_status load_slopes(rdna__component *c, int number, int channels, rdna_tensor *out) {
  char name[NAME_BYTES];
  const int64_t count = channels;
  snprintf(name, sizeof name, "body.%d.weight", number);
  RDNA_TRY(rdna__component_load(c, "", name, c->network->dtype, 1, &count, out));
  *out = (rdna_tensor){.data = out->data,
                       .dtype = out->dtype,
                       .rank = 4,
                       .shape = {1, channels, 1, 1},
                       .stride = {channels, 1, channels, channels}};
  return RDNA_OK;
}

static rdna_status load_compact(rdna__component *c, rdna__upscaler_network *to) {
  const rdna__upscaler_settings *s = &to->set;
  char name[NAME_BYTES];
  to->between = calloc((size_t)s->blocks + 1, sizeof *to->between);
  to->slopes = calloc((size_t)s->blocks + 1, sizeof *to->slopes);
  if (!to->between || !to->slopes) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a network's layers");
  RDNA_TRY(load_conv(c, "body.0", COLOURS, s->features, &to->first));
  for (int i = 0; i <= s->blocks; i++) {
    bool last = i == s->blocks;
    RDNA_TRY(load_slopes(c, 2 * i + 1, s->features, &to->slopes[i]));
    snprintf(name, sizeof name, "body.%d", 2 * i + 2);
    RDNA_TRY(load_conv(c, name, s->features, last ? COLOURS * s->scale * s->scale : s->features,
                       last ? &to->last : &to->between[i]));
  }
  return RDNA_OK;
}

rdna_status rdna__upscaler_load(rdna__component *c, rdna__upscaler_network *to) {
  RDNA_TRY(to->set.kind == RDNA__UPSCALER_RRDB ? load_rrdb(c, to) : load_compact(c, to));
  return rdna__component_check_all_read(c);
}

void rdna__upscaler_deinit(rdna__upscaler_network *network) {
  free(network->dense);
  free(network->between);
  free(network->slopes);
}

/* ---- a pass ---- */

static const rdna_scalar zero = {0};

/* |to| = |from| where that is above 0, below it times the slope */
static rdna_status leak(rdna__image_pass *pass, const rdna_tensor *from, const rdna_tensor *to) {
  return rdna_op_map(pass->stream, RDNA_MAP_LEAKY_RELU, from, rdna_scalar_real(SLOPE), zero, to);
}

/* Channels [first, first + count) of |x|. */
static rdna_tensor channels_of(const rdna_tensor *x, int64_t first, int64_t count) {
  rdna_tensor part = *x;
  part.shape[1] = count;
  part.data = (char *)x->data + rdna_dtype_bytes(x->dtype, first);
  return part;
}

/* |picture|'s pixels of (3, height, width) as places of |gathered| x |gathered| of them, in the pass's type: channel
 * (colour, row, column) of place (y, x). */
static rdna_status gather(rdna__image_pass *pass, int gathered, const rdna_tensor *picture, rdna_tensor *out) {
  const int64_t g = gathered, height = picture->shape[2] / g, width = picture->shape[3] / g, row = picture->shape[3];
  RDNA_TRY(rdna__pass_image(pass, 1, COLOURS * g * g, height, width, out));
  const rdna_tensor from = {.data = picture->data,
                            .dtype = RDNA_F32,
                            .rank = 5,
                            .shape = {COLOURS, g, g, height, width},
                            .stride = {picture->shape[2] * row, row, 1, g * row, g}};
  const rdna_tensor to = {.data = out->data,
                          .dtype = out->dtype,
                          .rank = 5,
                          .shape = {COLOURS, g, g, height, width},
                          .stride = {g * g, g, 1, out->stride[2], out->stride[3]}};
  return rdna_op_copy(pass->stream, &from, &to);
}

/* x of the first channels of |wide|, which has room for what the row's convolutions add to it, becomes the row's. */
static rdna_status run_row(rdna__image_pass *pass, const rdna__upscaler_settings *s, const rdna__image_conv *convs,
                           const rdna_tensor *wide) {
  const rdna_tensor x = channels_of(wide, 0, s->features);
  rdna_tensor made;
  for (int i = 0; i < ROW; i++) {
    const int64_t before = s->features + i * s->growth;
    const rdna_tensor read = channels_of(wide, 0, before), to = channels_of(wide, before, s->growth);
    RDNA_TRY(rdna__image_conv_run(pass, &convs[i], &read, &made));
    RDNA_TRY(i < ROW - 1
                 ? leak(pass, &made, &to)
                 : rdna_op_zip(pass->stream, RDNA_ZIP_ADD_SCALED, &x, &made, rdna_scalar_real(RESIDUAL), zero, &x));
    RDNA_TRY(rdna__pass_drop(pass, &made));
  }
  return RDNA_OK;
}

static rdna_status run_dense(rdna__image_pass *pass, const rdna__upscaler_settings *s, const rdna__image_conv *convs,
                             const rdna_tensor *wide, const rdna_tensor *kept) {
  const rdna_tensor x = channels_of(wide, 0, s->features);
  RDNA_TRY(rdna_op_copy(pass->stream, &x, kept));
  for (int i = 0; i < RDNA__UPSCALER_DENSE; i += ROW) RDNA_TRY(run_row(pass, s, convs + i, wide));
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD_SCALED, kept, &x, rdna_scalar_real(RESIDUAL), zero, &x);
}

/* |x| += what the blocks and the trunk make of it */
static rdna_status run_blocks(rdna__image_pass *pass, const rdna__upscaler_network *n, const rdna_tensor *x) {
  const rdna__upscaler_settings *s = &n->set;
  rdna_tensor wide, kept, made;
  RDNA_TRY(rdna__pass_image(pass, 1, s->features + (ROW - 1) * s->growth, x->shape[2], x->shape[3], &wide));
  RDNA_TRY(rdna__pass_image(pass, 1, s->features, x->shape[2], x->shape[3], &kept));
  const rdna_tensor end = channels_of(&wide, 0, s->features);
  RDNA_TRY(rdna_op_copy(pass->stream, x, &end));
  for (int i = 0; i < s->blocks; i++) RDNA_TRY(run_dense(pass, s, n->dense[i], &wide, &kept));
  RDNA_TRY(rdna__image_conv_run(pass, &n->trunk, &end, &made));
  RDNA_TRY(rdna__pass_drop(pass, &wide));
  RDNA_TRY(rdna__pass_drop(pass, &kept));
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, &made, zero, zero, x));
  return rdna__pass_drop(pass, &made);
}

/* |x| becomes |next|, in place of which it is given back. */
static rdna_status go_on(rdna__image_pass *pass, rdna_tensor *x, const rdna_tensor *next) {
  RDNA_TRY(rdna__pass_drop(pass, x));
  *x = *next;
  return RDNA_OK;
}

static rdna_status run_rrdb(rdna__image_pass *pass, const rdna__upscaler_network *n, const rdna_tensor *picture,
                            rdna_tensor *out) {
  rdna_tensor x, next;
  RDNA_TRY(gather(pass, n->set.gathered, picture, &next));
  RDNA_TRY(rdna__image_conv_run(pass, &n->first, &next, &x));
  RDNA_TRY(rdna__pass_drop(pass, &next));
  RDNA_TRY(run_blocks(pass, n, &x));
  for (int i = 0; i < n->set.doublings; i++) {
    RDNA_TRY(rdna__image_doubling_run(pass, &n->up[i], &x, &next));
    RDNA_TRY(go_on(pass, &x, &next));
    RDNA_TRY(leak(pass, &x, &x));
  }
  RDNA_TRY(rdna__image_conv_run(pass, &n->high, &x, &next));
  RDNA_TRY(go_on(pass, &x, &next));
  RDNA_TRY(leak(pass, &x, &x));
  RDNA_TRY(rdna__image_conv_run(pass, &n->last, &x, &next));
  RDNA_TRY(go_on(pass, &x, &next));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, x.shape, out));
  RDNA_TRY(rdna_op_copy(pass->stream, &x, out));
  return rdna__pass_drop(pass, &x);
}

/* x = relu(x) - slopes relu(-x) */
static rdna_status bend(rdna__image_pass *pass, const rdna_tensor *slopes, const rdna_tensor *x) {
  enum { X, SLOPES, ABOVE };
  const rdna_fused_step steps[] = {{.op = RDNA_MAP_RELU},
                                   {.op = RDNA_FUSED_KEEP, .input = ABOVE},
                                   {.op = RDNA_FUSED_TAKE, .input = X},
                                   {.op = RDNA_MAP_NEG},
                                   {.op = RDNA_MAP_RELU},
                                   {.op = RDNA_ZIP_MUL, .is_zip = true, .input = SLOPES},
                                   {.op = RDNA_ZIP_SUB, .is_zip = true, .input_first = true, .input = ABOVE}};
  return rdna_op_fused(pass->stream, steps, sizeof steps / sizeof *steps, (const rdna_tensor *const[]){x, slopes}, 2,
                       x);
}

/* |out| of |x|, whose channel (colour, row, column) is a pixel of a place's, with |picture| added to each of these. */
static rdna_status spread(rdna__image_pass *pass, int scale, const rdna_tensor *x, const rdna_tensor *picture,
                          rdna_tensor *out) {
  const int64_t s = scale, height = x->shape[2], width = x->shape[3], row = width * s;
  const int64_t shape[] = {1, COLOURS, height * s, width * s};
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, shape, out));
  rdna_tensor from = {.data = x->data,
                      .dtype = x->dtype,
                      .rank = 5,
                      .shape = {COLOURS, s, s, height, width},
                      .stride = {s * s, s, 1, x->stride[2], x->stride[3]}};
  rdna_tensor to = from, under = from;
  to.data = out->data, under.data = picture->data;
  to.dtype = under.dtype = RDNA_F32;
  const int64_t to_strides[] = {height * s * row, row, 1, s * row, s};
  const int64_t under_strides[] = {height * width, 0, 0, width, 1};
  for (int i = 0; i < 5; i++) to.stride[i] = to_strides[i], under.stride[i] = under_strides[i];
  RDNA_TRY(rdna_op_copy(pass->stream, &from, &to));
  return rdna_op_zip(pass->stream, RDNA_ZIP_ADD, &to, &under, zero, zero, &to);
}

static rdna_status run_compact(rdna__image_pass *pass, const rdna__upscaler_network *n, const rdna_tensor *picture,
                               rdna_tensor *out) {
  rdna_tensor x, next;
  RDNA_TRY(gather(pass, 1, picture, &next));
  RDNA_TRY(rdna__image_conv_run(pass, &n->first, &next, &x));
  RDNA_TRY(rdna__pass_drop(pass, &next));
  for (int i = 0; i <= n->set.blocks; i++) {
    RDNA_TRY(bend(pass, &n->slopes[i], &x));
    RDNA_TRY(rdna__image_conv_run(pass, i < n->set.blocks ? &n->between[i] : &n->last, &x, &next));
    RDNA_TRY(go_on(pass, &x, &next));
  }
  RDNA_TRY(spread(pass, n->set.scale, &x, picture, out));
  return rdna__pass_drop(pass, &x);
}

rdna_status rdna__upscaler_pass(rdna__image_pass *pass, const rdna__upscaler_network *n, const rdna_tensor *picture,
                                rdna_tensor *out) {
  return n->set.kind == RDNA__UPSCALER_RRDB ? run_rrdb(pass, n, picture, out) : run_compact(pass, n, picture, out);
}
