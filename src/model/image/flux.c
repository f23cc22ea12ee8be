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
#include "model/image/dit.h"
#include "rdna/image_flow.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, MOST_SIDE = 1 << 13, MOST_TOKENS = 1 << 14, AXES = RDNA__FLUX_AXES };
static const double theta = 10000; /* no setting says it */

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
  rdna__dit_embedding time, guidance, pooled;
  rdna__dit_axes axes;
  side (*doubles)[SIDES];     /* (set.doubles) */
  single *singles;            /* (set.singles) */
  int last_scale, last_shift; /* parts of what the last norm is modulated by: files have them in either order */
};

/* ---- loading ---- */

static rdna_status load_two(rdna__component *c, const char *name, int in, int out, rdna__dit_embedding *to) {
  static const char *const names[] = {"linear_1", "linear_2"};
  char prefix[RDNA__COMPONENT_NAME];
  snprintf(prefix, sizeof prefix, "time_text_embed.%s", name);
  return rdna__dit_load_embedding(c, prefix, names, in, out, out, to);
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
  RDNA_TRY(rdna__dit_load_wide(c, prefix, name[0], width, 6 * width, &to->modulation));
  for (int k = 0; k < 4; k++) RDNA_TRY(rdna__image_load_linear(c, prefix, name[1 + k], width, width, true, squares[k]));
  RDNA_TRY(rdna__image_load_linear(c, prefix, name[5], width, 4 * width, true, &to->up));
  RDNA_TRY(rdna__image_load_linear(c, prefix, name[6], 4 * width, width, true, &to->down));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, name[7], f->set.head, &to->q_norm));
  return rdna__dit_load_vector(c, prefix, name[8], f->set.head, &to->k_norm);
}

static rdna_status load_single(const rdna_image_flux *f, rdna__component *c, int i, single *to) {
  char prefix[RDNA__COMPONENT_NAME];
  int width = f->set.width;
  snprintf(prefix, sizeof prefix, "single_transformer_blocks.%d", i);
  RDNA_TRY(rdna__dit_load_wide(c, prefix, "norm.linear", width, 3 * width, &to->modulation));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attn.to_q", width, width, true, &to->q));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attn.to_k", width, width, true, &to->k));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attn.to_v", width, width, true, &to->v));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, "attn.norm_q.weight", f->set.head, &to->q_norm));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, "attn.norm_k.weight", f->set.head, &to->k_norm));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "proj_mlp", width, 4 * width, true, &to->up));
  return rdna__image_load_linear(c, prefix, "proj_out", 5 * width, width, true, &to->down);
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
  RDNA_TRY(load_two(c, "timestep_embedder", RDNA__DIT_EMBEDDED, s->width, &f->time));
  if (s->guided) RDNA_TRY(load_two(c, "guidance_embedder", RDNA__DIT_EMBEDDED, s->width, &f->guidance));
  RDNA_TRY(load_two(c, "text_embedder", s->pooled_width, s->width, &f->pooled));
  c->kept = false;
  for (int i = 0; i < s->doubles; i++)
    for (int k = 0; k < SIDES; k++) RDNA_TRY(load_side(f, c, i, k, &f->doubles[i][k]));
  for (int i = 0; i < s->singles; i++) RDNA_TRY(load_single(f, c, i, &f->singles[i]));
  c->kept = true;
  RDNA_TRY(rdna__dit_load_wide(c, "", "norm_out.linear", s->width, 2 * s->width, &f->modulation));
  RDNA_TRY(rdna__image_load_linear(c, "", "proj_out", s->width, s->out_channels, true, &f->out));
  memcpy(f->axes.values, s->axes, sizeof s->axes);
  RDNA_TRY(rdna__dit_make_axes(&f->network, theta, &f->axes));
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

static rdna_tensor side_of(const running *r, const rdna_tensor *t, int which) {
  return rdna__dit_rows(t, r->first[which], r->count[which]);
}

/* ---- what blocks are modulated by ---- */

static rdna_status embed_conditions(running *r) {
  const rdna_image_flux *f = r->flux;
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t wide[] = {1, f->set.width};
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, wide, &r->conditions));
  RDNA_TRY(rdna__dit_embed_number(&r->pass, &f->time, r->given->timestep, true, &r->conditions));
  if (f->set.guided)
    RDNA_TRY(rdna__dit_embed_number(&r->pass, &f->guidance, 1000 * r->given->guidance, false, &r->conditions));
  RDNA_TRY(rdna__dit_embed(&r->pass, &f->pooled, r->given->pooled, false, &r->conditions));
  return rdna_op_map(r->pass.stream, RDNA_MAP_SILU, &r->conditions, zero, zero, &r->conditions);
}

static rdna_status modulate(running *r, const rdna__image_linear *by, const int ones[RDNA__DIT_ONES],
                            rdna__dit_modulation *out) {
  return rdna__dit_modulate(&r->pass, by, &r->conditions, r->flux->set.width, ones, out);
}

/* ---- attention ---- */

/* Of the picture's rows of |t|; text stands at place 0, where nothing turns. */
static rdna_status turn(running *r, const rdna_tensor *t) {
  rdna_tensor picture = side_of(r, t, PICTURE);
  return rdna__dit_turn(&r->pass, &r->flux->axes, r->positions, r->flux->set.head, &picture);
}

/* |out| = attention of all rows of q, k and v, which are turned first */
static rdna_status attend(running *r, const rdna_tensor *out) {
  RDNA_TRY(turn(r, &r->q));
  RDNA_TRY(turn(r, &r->k));
  return rdna__dit_attend(&r->pass, r->flux->set.head, &r->q, &r->k, &r->v, out);
}

/* ---- blocks ---- */

enum { SHIFT_1, SCALE_1, GATE_1, SHIFT_2, SCALE_2, GATE_2 }; /* parts of a double block's modulation */
static const int double_ones[] = {SCALE_1, SCALE_2, -1}, single_ones[] = {SCALE_1, -1, -1};

static rdna_status read_side(running *r, const side *s, const rdna__dit_modulation *m, int which) {
  rdna_tensor x = side_of(r, &r->x, which), h = side_of(r, &r->h, which);
  rdna_tensor q = side_of(r, &r->q, which), k = side_of(r, &r->k, which), v = side_of(r, &r->v, which);
  RDNA_TRY(rdna__dit_norm(&r->pass, m, SCALE_1, SHIFT_1, &x, &h));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->q, &h, &q));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->k, &h, &k));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->v, &h, &v));
  RDNA_TRY(rdna__dit_norm_heads(&r->pass, &s->q_norm, RDNA__DIT_EPSILON, &q));
  return rdna__dit_norm_heads(&r->pass, &s->k_norm, RDNA__DIT_EPSILON, &k);
}

/* x += gate out(attention); x += gate down(gelu(up(norm(x)))). q is free then. */
static rdna_status change_side(running *r, const side *s, const rdna__dit_modulation *m, int which) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t wide[] = {r->count[which], 4 * (int64_t)r->flux->set.width};
  rdna_tensor x = side_of(r, &r->x, which), h = side_of(r, &r->h, which), made = side_of(r, &r->q, which), hidden;
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->out, &h, &made));
  RDNA_TRY(rdna__dit_add_gated(&r->pass, m, GATE_1, &made, &x));
  RDNA_TRY(rdna__dit_norm(&r->pass, m, SCALE_2, SHIFT_2, &x, &h));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, wide, &hidden));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->up, &h, &hidden));
  RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_GELU_TANH, &hidden, zero, zero, &hidden));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->down, &hidden, &made));
  RDNA_TRY(rdna__pass_drop(&r->pass, &hidden));
  return rdna__dit_add_gated(&r->pass, m, GATE_2, &made, &x);
}

static rdna_status run_double(running *r, const side block[SIDES]) {
  rdna__dit_modulation m[SIDES];
  for (int i = 0; i < SIDES; i++) {
    RDNA_TRY(modulate(r, &block[i].modulation, double_ones, &m[i]));
    RDNA_TRY(read_side(r, &block[i], &m[i], i));
  }
  RDNA_TRY(attend(r, &r->h));
  for (int i = 0; i < SIDES; i++) {
    RDNA_TRY(change_side(r, &block[i], &m[i], i));
    RDNA_TRY(rdna__dit_drop_modulation(&r->pass, &m[i]));
  }
  return RDNA_OK;
}

/* x += gate down(attention beside gelu(up(norm(x)))) */
static rdna_status run_single(running *r, const single *s) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t width = r->flux->set.width, shape[] = {r->rows, 5 * width};
  rdna__dit_modulation m;
  rdna_tensor both;
  RDNA_TRY(modulate(r, &s->modulation, single_ones, &m));
  RDNA_TRY(rdna__dit_norm(&r->pass, &m, SCALE_1, SHIFT_1, &r->x, &r->h));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->q, &r->h, &r->q));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->k, &r->h, &r->k));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->v, &r->h, &r->v));
  RDNA_TRY(rdna__dit_norm_heads(&r->pass, &s->q_norm, RDNA__DIT_EPSILON, &r->q));
  RDNA_TRY(rdna__dit_norm_heads(&r->pass, &s->k_norm, RDNA__DIT_EPSILON, &r->k));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, &both));
  rdna_tensor attended = rdna__dit_columns(&both, 0, width), hidden = rdna__dit_columns(&both, width, 4 * width);
  RDNA_TRY(attend(r, &attended));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->up, &r->h, &hidden));
  RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_GELU_TANH, &hidden, zero, zero, &hidden));
  RDNA_TRY(rdna__dit_linear(&r->pass, &s->down, &both, &r->h));
  RDNA_TRY(rdna__pass_drop(&r->pass, &both));
  RDNA_TRY(rdna__dit_add_gated(&r->pass, &m, GATE_1, &r->h, &r->x));
  return rdna__dit_drop_modulation(&r->pass, &m);
}

/* ---- ends ---- */

/* The picture stands at 0 of the first axis, and what it looks at at 1. */
static rdna_status place(running *r, int32_t *values) {
  const rdna_image_flux_input *g = r->given;
  for (int a = g->context ? 0 : 1; a < AXES; a++) {
    const int64_t count = r->count[PICTURE];
    if (!r->flux->axes.frequencies[a].data) continue;
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
  rdna__dit_pack(DIT_CHANNELS_FIRST, g->sample, channels, g->height, g->width, tokens);
  if (g->context)
    rdna__dit_pack(DIT_CHANNELS_FIRST, g->context, channels, g->context_height, g->context_width,
                   tokens + r->made * r->flux->set.in_channels);
  rdna_tensor picture = side_of(r, &r->x, PICTURE), text = side_of(r, &r->x, TEXT);
  RDNA_TRY(rdna__dit_linear_of(&r->pass, &r->flux->in, host, &picture));
  return rdna__dit_linear_of(&r->pass, &r->flux->text, r->given->states, &text);
}

static rdna_status end(running *r, float *host, float *out) {
  const rdna_image_flux *f = r->flux;
  rdna_tensor x = rdna__dit_rows(&r->x, r->first[PICTURE], r->made),
              h = rdna__dit_rows(&r->h, r->first[PICTURE], r->made);
  const int ones[] = {f->last_scale, -1, -1};
  rdna__dit_modulation m;
  RDNA_TRY(modulate(r, &f->modulation, ones, &m));
  RDNA_TRY(rdna__dit_norm(&r->pass, &m, f->last_scale, f->last_shift, &x, &h));
  RDNA_TRY(rdna__dit_linear_to(&r->pass, &f->out, &h, host));
  rdna__dit_unpack(DIT_CHANNELS_FIRST, host, f->info.out_channels, r->given->height, r->given->width, out);
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
