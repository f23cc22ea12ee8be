/* Tokens of text and picture stand in one matrix, text first, so that blocks of both kinds attend over all of it:
 *
 *     rows    | text … | picture, line by line … | with Kontext the other picture … |
 *
 *     x = embedding -- double blocks -- single blocks -- norm of the picture's rows, out
 *
 * Norms have no weights of their own: each block makes a row that scales and one that shifts of the timestep, the
 * text's vector and, where it is guided, the guidance, and gates by which its results are multiplied. */
#include "model/image/flux.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "model/image/unet.h"
#include "rdna/image_flow.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, MOST_SIDE = 1 << 13, MOST_TOKENS = 1 << 14, EMBEDDED = 256, AXES = RDNA__FLUX_AXES };
static const double epsilon = 1e-6, theta = 10000; /* no setting says them */

typedef struct two_layers { /* second(silu(first(x))), of f32 */
  rdna__image_linear first, second;
} two_layers;

typedef struct side { /* of a double block: what text or picture has for itself */
  rdna__image_linear modulation;
  rdna__image_linear q, k, v, out;
  rdna_tensor q_norm, k_norm; /* (head), f32 */
  rdna__image_linear up, down;
} side;

typedef struct single {
  rdna__image_linear modulation;
  rdna__image_linear q, k, v, up, down; /* down reads what attention made and what up made, side by side */
  rdna_tensor q_norm, k_norm;
} single;

enum { TEXT, PICTURE, SIDES };

struct rdna_image_flux {
  rdna__network network;
  rdna__flux_settings set;
  rdna_image_flux_info info;
  rdna__image_linear in, text, modulation, out;
  two_layers time, guidance, pooled;
  rdna_tensor frequencies[AXES]; /* (half of the axis' values), f32; data NULL: it has none */
  side (*doubles)[SIDES];        /* (set.doubles) */
  single *singles;               /* (set.singles) */
  int last_scale, last_shift;    /* parts of what the last norm is modulated by: files have them in either order */
};

/* ---- loading ---- */

/* What reads and makes f32: of a bias of f32, and a weight of the network's type. */
static rdna_status load_wide(rdna__component *c, const char *prefix, const char *name, int in, int out,
                             rdna__image_linear *to) {
  char full[RDNA__COMPONENT_NAME];
  const int64_t count = out;
  RDNA_TRY(rdna__image_load_linear(c, prefix, name, in, out, false, to));
  snprintf(full, sizeof full, "%s.bias", name);
  return rdna__component_load(c, prefix, full, RDNA_F32, 1, &count, &to->bias);
}

static rdna_status load_two(rdna__component *c, const char *name, int in, int out, two_layers *to) {
  char prefix[RDNA__COMPONENT_NAME];
  snprintf(prefix, sizeof prefix, "time_text_embed.%s", name);
  RDNA_TRY(load_wide(c, prefix, "linear_1", in, out, &to->first));
  return load_wide(c, prefix, "linear_2", out, out, &to->second);
}

static rdna_status load_head_norm(const rdna_image_flux *f, rdna__component *c, const char *prefix, const char *name,
                                  rdna_tensor *out) {
  const int64_t count = f->set.head;
  return rdna__component_load(c, prefix, name, RDNA_F32, 1, &count, out);
}

static rdna_status load_side(const rdna_image_flux *f, rdna__component *c, int i, int which, side *to) {
  static const char *const names[SIDES][10] = {
      {"norm1_context.linear", "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "attn.to_add_out",
       "ff_context.net.0.proj", "ff_context.net.2", "attn.norm_added_q.weight", "attn.norm_added_k.weight"},
      {"norm1.linear", "attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0", "ff.net.0.proj", "ff.net.2",
       "attn.norm_q.weight", "attn.norm_k.weight"}};
  const char *const *name = names[which];
  rdna__image_linear *const squares[] = {&to->q, &to->k, &to->v, &to->out};
  char prefix[RDNA__COMPONENT_NAME];
  int width = f->set.width;
  snprintf(prefix, sizeof prefix, "transformer_blocks.%d", i);
  RDNA_TRY(load_wide(c, prefix, name[0], width, 6 * width, &to->modulation));
  for (int k = 0; k < 4; k++) RDNA_TRY(rdna__image_load_linear(c, prefix, name[1 + k], width, width, true, squares[k]));
  RDNA_TRY(rdna__image_load_linear(c, prefix, name[5], width, 4 * width, true, &to->up));
  RDNA_TRY(rdna__image_load_linear(c, prefix, name[6], 4 * width, width, true, &to->down));
  RDNA_TRY(load_head_norm(f, c, prefix, name[7], &to->q_norm));
  return load_head_norm(f, c, prefix, name[8], &to->k_norm);
}

static rdna_status load_single(const rdna_image_flux *f, rdna__component *c, int i, single *to) {
  char prefix[RDNA__COMPONENT_NAME];
  int width = f->set.width;
  snprintf(prefix, sizeof prefix, "single_transformer_blocks.%d", i);
  RDNA_TRY(load_wide(c, prefix, "norm.linear", width, 3 * width, &to->modulation));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attn.to_q", width, width, true, &to->q));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attn.to_k", width, width, true, &to->k));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attn.to_v", width, width, true, &to->v));
  RDNA_TRY(load_head_norm(f, c, prefix, "attn.norm_q.weight", &to->q_norm));
  RDNA_TRY(load_head_norm(f, c, prefix, "attn.norm_k.weight", &to->k_norm));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "proj_mlp", width, 4 * width, true, &to->up));
  return rdna__image_load_linear(c, prefix, "proj_out", 5 * width, width, true, &to->down);
}

/* Pair i of an axis of d values turns by theta^(-2 i / d) a place. */
static rdna_status make_frequencies(rdna_image_flux *f) {
  float values[256];
  for (int a = 0; a < AXES; a++) {
    const int64_t half = f->set.axes[a] / 2;
    if (!half) continue;
    for (int i = 0; i < half; i++) values[i] = (float)pow(theta, -2.0 * i / f->set.axes[a]);
    RDNA_TRY(rdna__network_tensor(&f->network, RDNA_F32, 1, &half, &f->frequencies[a]));
    rdna_stream *stream = rdna_device_default_stream(f->network.device);
    RDNA_TRY(rdna_copy_to_device(stream, f->frequencies[a].data, values, (size_t)half * sizeof *values));
  }
  return RDNA_OK;
}

static rdna_status load(rdna_image_flux *f, rdna__component *c) {
  rdna__flux_settings *s = &f->set;
  RDNA_TRY(rdna__annotate(rdna__flux_settings_read(c->settings, s), "config.json"));
  f->doubles = calloc((size_t)s->doubles + 1, sizeof *f->doubles);
  f->singles = calloc((size_t)s->singles + 1, sizeof *f->singles);
  if (!f->doubles || !f->singles) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a transformer");
  f->last_scale = c->part.kind == CHECKPOINT_FLUX;
  f->last_shift = !f->last_scale;
  c->kept = true; /* little of the whole, and its ends */
  RDNA_TRY(rdna__image_load_linear(c, "", "x_embedder", s->in_channels, s->width, true, &f->in));
  RDNA_TRY(rdna__image_load_linear(c, "", "context_embedder", s->text_width, s->width, true, &f->text));
  RDNA_TRY(load_two(c, "timestep_embedder", EMBEDDED, s->width, &f->time));
  if (s->guided) RDNA_TRY(load_two(c, "guidance_embedder", EMBEDDED, s->width, &f->guidance));
  RDNA_TRY(load_two(c, "text_embedder", s->pooled_width, s->width, &f->pooled));
  c->kept = false;
  for (int i = 0; i < s->doubles; i++)
    for (int k = 0; k < SIDES; k++) RDNA_TRY(load_side(f, c, i, k, &f->doubles[i][k]));
  for (int i = 0; i < s->singles; i++) RDNA_TRY(load_single(f, c, i, &f->singles[i]));
  c->kept = true;
  RDNA_TRY(load_wide(c, "", "norm_out.linear", s->width, 2 * s->width, &f->modulation));
  RDNA_TRY(rdna__image_load_linear(c, "", "proj_out", s->width, s->out_channels, true, &f->out));
  RDNA_TRY(make_frequencies(f));
  return rdna__component_check_all_read(c);
}

static rdna_status open_flux(rdna_image_flux *f, const char *folder, const char *name) {
  rdna__component c;
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", name);
  RDNA_TRY(rdna__component_open(path, "diffusion_pytorch_model", &f->network, &c));
  rdna_status status = rdna__annotate(load(f, &c), "%s", path);
  rdna__component_close(&c);
  const rdna__flux_settings *s = &f->set;
  f->info = (rdna_image_flux_info){.in_channels = s->in_channels / 4,
                                   .out_channels = s->out_channels / 4,
                                   .text_width = s->text_width,
                                   .pooled_width = s->pooled_width,
                                   .guided = s->guided,
                                   .weights_bytes = f->network.bytes};
  return status;
}

rdna_status rdna_image_flux_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                                   rdna_image_flux **out_flux) {
  return rdna__flux_create(device, folder, name, dtype, RDNA_DTYPE_COUNT, out_flux);
}

rdna_status rdna__flux_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                              rdna_dtype weights, rdna_image_flux **out_flux) {
  if (!device || !folder || !name || !out_flux || (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_flux_create needs a device, two names of folders, f32, f16 or bf16, and a place");
  rdna_image_flux *f = calloc(1, sizeof *f);
  if (!f) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a transformer");
  f->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype, .weights = weights};
  rdna_status status = open_flux(f, folder, name);
  if (status == RDNA_OK)
    *out_flux = f;
  else
    rdna_image_flux_release(f);
  return status;
}

void rdna_image_flux_release(rdna_image_flux *f) {
  if (!f) return;
  rdna_device *device = f->network.device;
  rdna__network_deinit(&f->network);
  rdna_device_release(device);
  free(f->doubles);
  free(f->singles);
  free(f);
}

const rdna_image_flux_info *rdna_image_flux_get_info(const rdna_image_flux *f) { return &f->info; }

/* ---- a pass ---- */

typedef struct running {
  const rdna_image_flux *flux;
  rdna__image_pass pass;
  const rdna_image_flux_input *given;
  int64_t first[SIDES], count[SIDES]; /* rows of text and picture */
  int64_t made; /* of the picture's rows the first, which are drawn: others are those of a picture that is looked at */
  int64_t rows;
  rdna_tensor conditions;      /* (1, width), f32: SiLU of what all blocks are modulated by */
  rdna_tensor positions[AXES]; /* (picture's rows), i32 */
  rdna_tensor x;               /* (rows, width) */
  rdna_tensor h, q, k, v;      /* the same, of a block */
} running;

/* Rows [first, first + count) of a matrix. */
static rdna_tensor rows_of(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor part = *t;
  part.data = (char *)t->data + rdna_dtype_bytes(t->dtype, first * t->stride[0]);
  part.shape[0] = count;
  return part;
}

/* Columns [first, first + count). */
static rdna_tensor columns_of(const rdna_tensor *t, int64_t first, int64_t count) {
  rdna_tensor part = *t;
  part.data = (char *)t->data + rdna_dtype_bytes(t->dtype, first);
  part.shape[1] = count;
  return part;
}

static rdna_tensor side_of(const running *r, const rdna_tensor *t, int which) {
  return rows_of(t, r->first[which], r->count[which]);
}

static rdna_status linear(const running *r, const rdna__image_linear *by, const rdna_tensor *x,
                          const rdna_tensor *out) {
  return rdna_op_linear(r->pass.stream, x, &by->weight, &by->bias, out);
}

/* ---- what blocks are modulated by ---- */

/* out += second(silu(first(values))), or = for the first of them; values (width) of host memory */
static rdna_status embed(running *r, const two_layers *by, const float *values, int64_t width, bool first,
                         const rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t shape[] = {1, width}, wide[] = {1, r->flux->set.width};
  rdna_tensor x, h;
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, shape, &x));
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, wide, &h));
  RDNA_TRY(rdna_copy_to_device(r->pass.stream, x.data, values, (size_t)width * sizeof *values));
  RDNA_TRY(linear(r, &by->first, &x, &h));
  RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_SILU, &h, zero, zero, &h));
  if (first)
    RDNA_TRY(linear(r, &by->second, &h, out));
  else
    RDNA_TRY(rdna_op_linear_add(r->pass.stream, &h, &by->second.weight, &by->second.bias, out));
  RDNA_TRY(rdna__pass_drop(&r->pass, &x));
  return rdna__pass_drop(&r->pass, &h);
}

static rdna_status embed_conditions(running *r) {
  static const rdna__unet_settings numbers = {.cosines_first = true};
  const rdna_image_flux *f = r->flux;
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t wide[] = {1, f->set.width};
  float values[EMBEDDED];
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, wide, &r->conditions));
  rdna__image_embed_number(&numbers, r->given->timestep, EMBEDDED, values);
  RDNA_TRY(embed(r, &f->time, values, EMBEDDED, true, &r->conditions));
  if (f->set.guided) {
    rdna__image_embed_number(&numbers, 1000 * r->given->guidance, EMBEDDED, values);
    RDNA_TRY(embed(r, &f->guidance, values, EMBEDDED, false, &r->conditions));
  }
  RDNA_TRY(embed(r, &f->pooled, r->given->pooled, f->set.pooled_width, false, &r->conditions));
  return rdna_op_map(r->pass.stream, RDNA_MAP_SILU, &r->conditions, zero, zero, &r->conditions);
}

typedef struct modulation {
  rdna_tensor wide;   /* (1, parts width), f32 */
  rdna_tensor narrow; /* the same in the network's type, which gates are read in */
} modulation;

/* |ones|, of up to two, are the parts that scale, which count from one. */
static rdna_status modulate(running *r, const rdna__image_linear *by, const int ones[2], modulation *out) {
  const int64_t shape[] = {1, by->weight.shape[0]}, width = r->flux->set.width;
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, shape, &out->wide));
  RDNA_TRY(linear(r, by, &r->conditions, &out->wide));
  for (int i = 0; i < 2 && ones[i] >= 0; i++) {
    rdna_tensor part = columns_of(&out->wide, ones[i] * width, width);
    RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_AFFINE, &part, rdna_scalar_real(1), rdna_scalar_real(1), &part));
  }
  out->narrow = out->wide;
  if (r->pass.dtype == RDNA_F32) return RDNA_OK;
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, &out->narrow));
  return rdna_op_copy(r->pass.stream, &out->wide, &out->narrow);
}

static rdna_status drop_modulation(running *r, modulation *m) {
  if (m->narrow.data != m->wide.data) RDNA_TRY(rdna__pass_drop(&r->pass, &m->narrow));
  return rdna__pass_drop(&r->pass, &m->wide);
}

static rdna_tensor part_of(const running *r, const rdna_tensor *of, int part) {
  const int64_t width = r->flux->set.width;
  return rdna_tensor_contiguous((char *)of->data + rdna_dtype_bytes(of->dtype, part * width), of->dtype, 1, &width);
}

/* out = norm(x) scale + shift, of two parts of |m| */
static rdna_status norm_into(const running *r, const modulation *m, int scale, int shift, const rdna_tensor *x,
                             const rdna_tensor *out) {
  const rdna_tensor weight = part_of(r, &m->wide, scale), bias = part_of(r, &m->wide, shift);
  return rdna_op_layer_norm(r->pass.stream, x, &weight, &bias, epsilon, out, NULL, NULL);
}

/* x += gate h */
static rdna_status add_gated(const running *r, const modulation *m, int gate, const rdna_tensor *h,
                             const rdna_tensor *x) {
  const rdna_fused_step steps[] = {{.op = RDNA_ZIP_MUL, .is_zip = true, .input = 1},
                                   {.op = RDNA_ZIP_ADD, .is_zip = true, .input = 2}};
  rdna_tensor over = part_of(r, &m->narrow, gate);
  return rdna_op_fused(r->pass.stream, steps, 2, (const rdna_tensor *const[]){h, &over, x}, 3, x);
}

/* ---- attention ---- */

/* (rows, width) as (rows, heads, head) */
static rdna_tensor by_head(const running *r, const rdna_tensor *t) {
  const rdna__flux_settings *s = &r->flux->set;
  return (rdna_tensor){.data = t->data,
                       .dtype = t->dtype,
                       .rank = 3,
                       .shape = {t->shape[0], s->heads, s->head},
                       .stride = {t->stride[0], s->head, 1}};
}

static rdna_status norm_heads(const running *r, const rdna_tensor *t, const rdna_tensor *weight) {
  rdna_tensor heads = by_head(r, t);
  return rdna_op_rms_norm(r->pass.stream, &heads, weight, epsilon, &heads);
}

/* Turns |heads| by the picture's rows and columns. */
static rdna_status turn_axes(const running *r, const rdna_tensor *heads) {
  int64_t at = 0;
  for (int a = 0; a < AXES; at += r->flux->set.axes[a++]) {
    if (!r->positions[a].data) continue;
    const rdna_rope rope = {RDNA_ROPE_INIT, .layout = RDNA_ROPE_LAYOUT_INTERLEAVED, .positions = &r->positions[a],
                            .inv_freq = &r->flux->frequencies[a], .scale = 1};
    rdna_tensor part = *heads;
    part.data = (char *)heads->data + rdna_dtype_bytes(heads->dtype, at);
    part.shape[2] = r->flux->set.axes[a];
    RDNA_TRY(rdna_op_rope(r->pass.stream, &rope, &part, &part));
  }
  return RDNA_OK;
}

/* Of the picture's rows of |t|; text stands at place 0, where nothing turns. */
static rdna_status turn(running *r, const rdna_tensor *t) {
  rdna_tensor picture = side_of(r, t, PICTURE), heads = by_head(r, &picture);
  if (t->dtype != RDNA_BF16) return turn_axes(r, &heads);
  rdna_tensor wide;
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 3, heads.shape, &wide));
  RDNA_TRY(rdna_op_copy(r->pass.stream, &heads, &wide));
  RDNA_TRY(turn_axes(r, &wide));
  RDNA_TRY(rdna_op_copy(r->pass.stream, &wide, &heads));
  return rdna__pass_drop(&r->pass, &wide);
}

/* (rows, …) as (1, heads, rows, head) */
static rdna_tensor for_attention(const running *r, const rdna_tensor *t) {
  const rdna__flux_settings *s = &r->flux->set;
  return (rdna_tensor){.data = t->data,
                       .dtype = t->dtype,
                       .rank = 4,
                       .shape = {1, s->heads, t->shape[0], s->head},
                       .stride = {t->shape[0] * t->stride[0], s->head, t->stride[0], 1}};
}

/* |out| = attention of all rows of q, k and v, which are turned first */
static rdna_status attend(running *r, const rdna_tensor *out) {
  RDNA_TRY(turn(r, &r->q));
  RDNA_TRY(turn(r, &r->k));
  const rdna_sdpa options = {RDNA_SDPA_INIT, .scale = (float)(1 / sqrt((double)r->flux->set.head))};
  rdna_tensor q = for_attention(r, &r->q), k = for_attention(r, &r->k), v = for_attention(r, &r->v);
  rdna_tensor to = for_attention(r, out);
  return rdna_op_sdpa(r->pass.stream, &options, &q, &k, &v, &to, NULL);
}

/* ---- blocks ---- */

enum { SHIFT_1, SCALE_1, GATE_1, SHIFT_2, SCALE_2, GATE_2 }; /* parts of a double block's modulation */
static const int double_ones[] = {SCALE_1, SCALE_2}, single_ones[] = {SCALE_1, -1};

static rdna_status read_side(running *r, const side *s, const modulation *m, int which) {
  rdna_tensor x = side_of(r, &r->x, which), h = side_of(r, &r->h, which);
  rdna_tensor q = side_of(r, &r->q, which), k = side_of(r, &r->k, which), v = side_of(r, &r->v, which);
  RDNA_TRY(norm_into(r, m, SCALE_1, SHIFT_1, &x, &h));
  RDNA_TRY(linear(r, &s->q, &h, &q));
  RDNA_TRY(linear(r, &s->k, &h, &k));
  RDNA_TRY(linear(r, &s->v, &h, &v));
  RDNA_TRY(norm_heads(r, &q, &s->q_norm));
  return norm_heads(r, &k, &s->k_norm);
}

/* x += gate out(attention); x += gate down(gelu(up(norm(x)))). q is free then. */
static rdna_status change_side(running *r, const side *s, const modulation *m, int which) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t wide[] = {r->count[which], 4 * (int64_t)r->flux->set.width};
  rdna_tensor x = side_of(r, &r->x, which), h = side_of(r, &r->h, which), made = side_of(r, &r->q, which), hidden;
  RDNA_TRY(linear(r, &s->out, &h, &made));
  RDNA_TRY(add_gated(r, m, GATE_1, &made, &x));
  RDNA_TRY(norm_into(r, m, SCALE_2, SHIFT_2, &x, &h));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, wide, &hidden));
  RDNA_TRY(linear(r, &s->up, &h, &hidden));
  RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_GELU_TANH, &hidden, zero, zero, &hidden));
  RDNA_TRY(linear(r, &s->down, &hidden, &made));
  RDNA_TRY(rdna__pass_drop(&r->pass, &hidden));
  return add_gated(r, m, GATE_2, &made, &x);
}

static rdna_status run_double(running *r, const side block[SIDES]) {
  modulation m[SIDES];
  for (int i = 0; i < SIDES; i++) {
    RDNA_TRY(modulate(r, &block[i].modulation, double_ones, &m[i]));
    RDNA_TRY(read_side(r, &block[i], &m[i], i));
  }
  RDNA_TRY(attend(r, &r->h));
  for (int i = 0; i < SIDES; i++) {
    RDNA_TRY(change_side(r, &block[i], &m[i], i));
    RDNA_TRY(drop_modulation(r, &m[i]));
  }
  return RDNA_OK;
}

/* x += gate down(attention beside gelu(up(norm(x)))) */
static rdna_status run_single(running *r, const single *s) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t width = r->flux->set.width, shape[] = {r->rows, 5 * width};
  modulation m;
  rdna_tensor both;
  RDNA_TRY(modulate(r, &s->modulation, single_ones, &m));
  RDNA_TRY(norm_into(r, &m, SCALE_1, SHIFT_1, &r->x, &r->h));
  RDNA_TRY(linear(r, &s->q, &r->h, &r->q));
  RDNA_TRY(linear(r, &s->k, &r->h, &r->k));
  RDNA_TRY(linear(r, &s->v, &r->h, &r->v));
  RDNA_TRY(norm_heads(r, &r->q, &s->q_norm));
  RDNA_TRY(norm_heads(r, &r->k, &s->k_norm));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, &both));
  rdna_tensor attended = columns_of(&both, 0, width), hidden = columns_of(&both, width, 4 * width);
  RDNA_TRY(attend(r, &attended));
  RDNA_TRY(linear(r, &s->up, &r->h, &hidden));
  RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_GELU_TANH, &hidden, zero, zero, &hidden));
  RDNA_TRY(linear(r, &s->down, &both, &r->h));
  RDNA_TRY(rdna__pass_drop(&r->pass, &both));
  RDNA_TRY(add_gated(r, &m, GATE_1, &r->h, &r->x));
  return drop_modulation(r, &m);
}

/* ---- ends ---- */

/* The places of a token, of four: (channel, row, column) of the sample is value 4 channel + 2 row + column of it. */
static void pack(const float *sample, int channels, int height, int width, float *tokens) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      float *to = tokens + ((ptrdiff_t)(y / 2) * (width / 2) + x / 2) * 4 * channels + y % 2 * 2 + x % 2;
      for (int c = 0; c < channels; c++) to[(ptrdiff_t)4 * c] = sample[((ptrdiff_t)c * height + y) * width + x];
    }
}

static void unpack(const float *tokens, int channels, int height, int width, float *sample) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      const float *from = tokens + ((ptrdiff_t)(y / 2) * (width / 2) + x / 2) * 4 * channels + y % 2 * 2 + x % 2;
      for (int c = 0; c < channels; c++) sample[((ptrdiff_t)c * height + y) * width + x] = from[(ptrdiff_t)4 * c];
    }
}

/* Rows |which| of x = by(|values| (rows, width) of host memory) */
static rdna_status begin_side(running *r, const rdna__image_linear *by, const float *values, int which) {
  const int64_t shape[] = {r->count[which], by->weight.shape[1]};
  rdna_tensor given, read, x = side_of(r, &r->x, which);
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, shape, &given));
  RDNA_TRY(
      rdna_copy_to_device(r->pass.stream, given.data, values, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&given))));
  read = given;
  if (r->pass.dtype != RDNA_F32) {
    RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, &read));
    RDNA_TRY(rdna_op_copy(r->pass.stream, &given, &read));
  }
  RDNA_TRY(linear(r, by, &read, &x));
  if (read.data != given.data) RDNA_TRY(rdna__pass_drop(&r->pass, &read));
  return rdna__pass_drop(&r->pass, &given);
}

/* The picture stands at 0 of the first axis, and what it looks at at 1. */
static rdna_status place(running *r, int32_t *values) {
  const rdna_image_flux_input *g = r->given;
  for (int a = g->context ? 0 : 1; a < AXES; a++) {
    const int64_t count = r->count[PICTURE];
    if (!r->flux->frequencies[a].data) continue;
    for (int64_t i = 0; i < count; i++) {
      bool other = i >= r->made;
      int64_t columns = (other ? g->context_width : g->width) / 2, at = other ? i - r->made : i;
      values[i] = (int32_t)(a == 0 ? other : a == 1 ? at / columns : at % columns);
    }
    RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_I32, 1, &count, &r->positions[a]));
    RDNA_TRY(rdna_copy_to_device(r->pass.stream, r->positions[a].data, values, (size_t)count * sizeof *values));
  }
  return RDNA_OK;
}

static rdna_status begin(running *r, void *host) {
  const int64_t shape[] = {r->rows, r->flux->set.width};
  rdna_tensor *const all[] = {&r->x, &r->h, &r->q, &r->k, &r->v};
  for (int i = 0; i < 5; i++) RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, all[i]));
  RDNA_TRY(place(r, host));
  const rdna_image_flux_input *g = r->given;
  int channels = r->flux->info.in_channels;
  float *tokens = host;
  pack(g->sample, channels, g->height, g->width, tokens);
  if (g->context)
    pack(g->context, channels, g->context_height, g->context_width, tokens + r->made * r->flux->set.in_channels);
  RDNA_TRY(begin_side(r, &r->flux->in, host, PICTURE));
  return begin_side(r, &r->flux->text, r->given->states, TEXT);
}

static rdna_status end(running *r, float *host, float *out) {
  const rdna_image_flux *f = r->flux;
  const int64_t shape[] = {r->made, f->set.out_channels};
  rdna_tensor x = rows_of(&r->x, r->first[PICTURE], r->made), h = rows_of(&r->h, r->first[PICTURE], r->made);
  rdna_tensor made, values;
  const int ones[] = {f->last_scale, -1};
  modulation m;
  RDNA_TRY(modulate(r, &f->modulation, ones, &m));
  RDNA_TRY(norm_into(r, &m, f->last_scale, f->last_shift, &x, &h));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, &made));
  RDNA_TRY(linear(r, &f->out, &h, &made));
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, shape, &values));
  RDNA_TRY(rdna_op_copy(r->pass.stream, &made, &values));
  RDNA_TRY(
      rdna_copy_to_host(r->pass.stream, host, values.data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&values))));
  RDNA_TRY(rdna_stream_synchronize(r->pass.stream));
  unpack(host, f->info.out_channels, r->given->height, r->given->width, out);
  return RDNA_OK;
}

/* |host|: room for the tokens of all pictures */
static rdna_status run(running *r, void *host, float *out) {
  const rdna_image_flux *f = r->flux;
  RDNA_TRY(embed_conditions(r));
  RDNA_TRY(begin(r, host));
  for (int i = 0; i < f->set.doubles; i++) RDNA_TRY(run_double(r, f->doubles[i]));
  for (int i = 0; i < f->set.singles; i++) RDNA_TRY(run_single(r, &f->singles[i]));
  return end(r, host, out);
}

static rdna_status check_sides(const char *what, int height, int width) {
  if (height >= 2 && width >= 2 && height <= MOST_SIDE && width <= MOST_SIDE && height % 2 == 0 && width % 2 == 0)
    return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s of %d x %d; each side is even, 2 to %d", what, height, width, MOST_SIDE);
}

static rdna_status check(const rdna_image_flux *f, const rdna_image_flux_input *g) {
  if (!g->sample || !g->states || !g->pooled)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_flux_run needs a sample, and a text's states and vector");
  RDNA_TRY(check_sides("a sample", g->height, g->width));
  if (g->context) RDNA_TRY(check_sides("a picture to look at", g->context_height, g->context_width));
  if (g->tokens < 1 || g->tokens > MOST_TOKENS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a text of %d tokens; 1 to %d may be", g->tokens, MOST_TOKENS);
  if (isfinite(g->timestep) && (!f->set.guided || isfinite(g->guidance))) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the timestep or the guidance is no number");
}

rdna_status rdna_image_flux_run(rdna_image_flux *f, const rdna_image_flux_input *given, float *out) {
  if (!f || !given || !out)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_flux_run needs a transformer, what it reads and a place");
  rdna_image_flux_input read;
  RDNA_TRY(RDNA__OPTIONS("rdna_image_flux_run", "input", given, &read));
  RDNA_TRY(check(f, &read));
  int64_t picture = (int64_t)(read.height / 2) * (read.width / 2);
  int64_t other = read.context ? (int64_t)(read.context_height / 2) * (read.context_width / 2) : 0;
  running r = {.flux = f, .given = &read, .made = picture, .first = {0, read.tokens}};
  r.count[TEXT] = read.tokens;
  r.count[PICTURE] = picture + other;
  r.rows = r.count[TEXT] + r.count[PICTURE];
  int widest = f->set.in_channels > f->set.out_channels ? f->set.in_channels : f->set.out_channels;
  void *host = malloc((size_t)(picture + other) * (size_t)widest * sizeof(float));
  if (!host) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the tokens of a picture");
  rdna_stream *stream = rdna_device_default_stream(f->network.device);
  r.pass = (rdna__image_pass){.stream = stream, .dtype = f->network.dtype, .holder = "a transformer"};
  rdna_status status = run(&r, host, out);
  rdna_status waited = rdna_stream_synchronize(stream); /* what is copied from and to is the caller's */
  status = rdna__pass_end(&r.pass, status);
  free(host);
  return status == RDNA_OK ? waited : status;
}
