/* Tokens of picture and text stand in one matrix, the picture first, each filled up to a multiple of 32 by a row that
 * was trained for it:
 *
 *     rows    | picture, line by line … | filling | text … | filling |
 *
 *     picture = embedding -- refiners, modulated --.
 *     text    = norm, embedding -- refiners --------+-- blocks over both, modulated -- norm of the picture, out
 *
 *     x += gate norm(attention(scale norm(x)));  x += gate norm(down(silu(gate) up(scale norm(x))))
 *
 * Gates are hyperbolic tangents, and they and scales become weights of the norms. */
#include "model/image/zimage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/memory.h"
#include "rdna/op.h"

/* What no setting says: of heads' norms and the last one, of the timestep's layers, and what tokens are filled up to.
 */
#define HEAD_EPSILON 1e-5
#define NORM_EPSILON 1e-6
enum {
  PATH_BYTES = 4096,
  EMBEDDED = 256,
  CONDITIONS = 256,
  HIDDEN_CONDITIONS = 1024,
  MULTIPLE = 32,
  MOST_SIDE = 1 << 13
};
enum { PICTURE, TEXT, SIDES };

typedef struct block {
  rdna__image_linear modulation; /* weight.data NULL: it is not modulated */
  rdna__image_linear q, k, v, out, gate, up, down;
  rdna_tensor q_norm, k_norm;               /* (head), f32 */
  rdna_tensor norm1, norm2, after1, after2; /* (width), f32: before and behind attention and the rest */
} block;

struct rdna__zimage {
  rdna__network network;
  rdna__zimage_settings set;
  rdna__dit_embedding time;
  rdna__dit_axes axes;
  rdna_tensor text_norm;      /* (text_width), f32 */
  rdna_tensor filling[SIDES]; /* (1, width) of the network's type */
  rdna__image_linear in[SIDES], modulation, out;
  block *blocks; /* refiners of the picture, of the text, and those of both */
};

/* ---- loading ---- */

static rdna_status load_block(const rdna__zimage *z, rdna__component *c, const char *of, int i, bool modulated,
                              block *to) {
  const rdna__zimage_settings *s = &z->set;
  char prefix[RDNA__COMPONENT_NAME];
  int width = s->width, head = width / s->heads, narrow = width < CONDITIONS ? width : CONDITIONS;
  snprintf(prefix, sizeof prefix, "%s.%d", of, i);
  if (modulated)
    RDNA_TRY(rdna__dit_load_wide(c, prefix, "adaLN_modulation.0", narrow, 4 * width, true, &to->modulation));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attention.to_q", width, width, false, &to->q));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attention.to_k", width, width, false, &to->k));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attention.to_v", width, width, false, &to->v));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "attention.to_out.0", width, width, false, &to->out));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, "attention.norm_q.weight", head, &to->q_norm));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, "attention.norm_k.weight", head, &to->k_norm));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "feed_forward.w1", width, s->hidden, false, &to->gate));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "feed_forward.w3", width, s->hidden, false, &to->up));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "feed_forward.w2", s->hidden, width, false, &to->down));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, "attention_norm1.weight", width, &to->norm1));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, "attention_norm2.weight", width, &to->after1));
  RDNA_TRY(rdna__dit_load_vector(c, prefix, "ffn_norm1.weight", width, &to->norm2));
  return rdna__dit_load_vector(c, prefix, "ffn_norm2.weight", width, &to->after2);
}

static rdna_status load_blocks(rdna__zimage *z, rdna__component *c) {
  const rdna__zimage_settings *s = &z->set;
  block *to = z->blocks;
  for (int i = 0; i < s->refiners; i++) RDNA_TRY(load_block(z, c, "noise_refiner", i, true, to++));
  for (int i = 0; i < s->refiners; i++) RDNA_TRY(load_block(z, c, "context_refiner", i, false, to++));
  for (int i = 0; i < s->layers; i++) RDNA_TRY(load_block(z, c, "layers", i, true, to++));
  return RDNA_OK;
}

static rdna_status load_ends(rdna__zimage *z, rdna__component *c) {
  static const char *const time[] = {"mlp.0", "mlp.2"};
  const rdna__zimage_settings *s = &z->set;
  const int64_t row[] = {1, s->width};
  int narrow = s->width < CONDITIONS ? s->width : CONDITIONS;
  RDNA_TRY(rdna__dit_load_embedding(c, "t_embedder", time, EMBEDDED, HIDDEN_CONDITIONS, narrow, true, &z->time));
  RDNA_TRY(rdna__dit_load_vector(c, "", "cap_embedder.0.weight", s->text_width, &z->text_norm));
  RDNA_TRY(rdna__image_load_linear(c, "", "cap_embedder.1", s->text_width, s->width, true, &z->in[TEXT]));
  RDNA_TRY(rdna__image_load_linear(c, "", "all_x_embedder.2-1", 4 * s->channels, s->width, true, &z->in[PICTURE]));
  RDNA_TRY(rdna__dit_load_one(c, "x_pad_token", z->network.dtype, 2, row, &z->filling[PICTURE]));
  RDNA_TRY(rdna__dit_load_one(c, "cap_pad_token", z->network.dtype, 2, row, &z->filling[TEXT]));
  RDNA_TRY(rdna__dit_load_wide(c, "all_final_layer.2-1", "adaLN_modulation.1", narrow, s->width, true, &z->modulation));
  return rdna__image_load_linear(c, "all_final_layer.2-1", "linear", s->width, 4 * s->channels, true, &z->out);
}

static rdna_status load(rdna__zimage *z, rdna__component *c, rdna__loras *loras) {
  rdna__zimage_settings *s = &z->set;
  RDNA_TRY(rdna__annotate(rdna__zimage_settings_read(c->settings, s), "config.json"));
  rdna__component_change(c, loras, LORA_NETWORK, &(rdna__checkpoint_part){.kind = CHECKPOINT_ZIMAGE, .prefix = ""});
  z->blocks = calloc(2 * (size_t)s->refiners + (size_t)s->layers, sizeof *z->blocks);
  if (!z->blocks) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a transformer");
  c->kept = true; /* little of the whole, and its ends */
  RDNA_TRY(load_ends(z, c));
  c->kept = false;
  RDNA_TRY(load_blocks(z, c));
  memcpy(z->axes.values, s->axes, sizeof s->axes);
  RDNA_TRY(rdna__dit_make_axes(&z->network, s->theta, &z->axes));
  return rdna__component_check_all_read(c);
}

static rdna_status open_folder(rdna__zimage *z, const char *folder, const char *name, rdna__loras *loras) {
  rdna__component c;
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", name);
  RDNA_TRY(rdna__component_open(path, "diffusion_pytorch_model", &z->network, &c));
  rdna_status status = rdna__annotate(load(z, &c, loras), "%s", path);
  rdna__component_close(&c);
  return status;
}

rdna_status rdna__zimage_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                                rdna_dtype weights, rdna__loras *loras, rdna__zimage **out) {
  rdna__zimage *z = calloc(1, sizeof *z);
  if (!z) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a transformer");
  z->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype, .weights = weights};
  rdna_status status = open_folder(z, folder, name, loras);
  if (status == RDNA_OK)
    *out = z;
  else
    rdna__zimage_release(z);
  return status;
}

void rdna__zimage_release(rdna__zimage *z) {
  if (!z) return;
  rdna_device *device = z->network.device;
  rdna__network_deinit(&z->network);
  rdna_device_release(device);
  free(z->blocks);
  free(z);
}

const rdna__zimage_settings *rdna__zimage_get_settings(const rdna__zimage *z) { return &z->set; }
size_t rdna__zimage_bytes(const rdna__zimage *z) { return z->network.bytes; }

/* ---- a pass ---- */

typedef struct running {
  const rdna__zimage *z;
  rdna__image_pass pass;
  const rdna__zimage_input *given;
  int64_t count[SIDES], filled[SIDES]; /* tokens of each, and with what fills them up */
  int64_t rows;
  rdna_tensor conditions;                /* (1, narrow), f32: of the timestep */
  rdna_tensor positions[RDNA__DIT_AXES]; /* (rows), i32 */
  rdna_tensor x;                         /* (rows, width) */
  rdna_tensor h, q, k, v;                /* the same, of a block */
  rdna_tensor gate, up;                  /* (rows, hidden) */
  rdna_tensor weight;                    /* (width), f32: of a norm times what it is modulated by */
} running;

/* Some rows of all that a block works on. */
typedef struct part {
  rdna_tensor x, h, q, k, v, gate, up, positions[RDNA__DIT_AXES];
} part;

static part part_of(const running *r, int64_t first, int64_t count) {
  part p = {.x = rdna__dit_rows(&r->x, first, count),
            .h = rdna__dit_rows(&r->h, first, count),
            .q = rdna__dit_rows(&r->q, first, count),
            .k = rdna__dit_rows(&r->k, first, count),
            .v = rdna__dit_rows(&r->v, first, count),
            .gate = rdna__dit_rows(&r->gate, first, count),
            .up = rdna__dit_rows(&r->up, first, count)};
  for (int a = 0; a < RDNA__ZIMAGE_AXES; a++) {
    p.positions[a] = r->positions[a];
    p.positions[a].data = (char *)r->positions[a].data + (size_t)first * sizeof(int32_t);
    p.positions[a].shape[0] = count;
  }
  return p;
}

enum { SCALE_1, GATE_1, SCALE_2, GATE_2 }; /* parts of a block's modulation */
static const int ones[RDNA__DIT_ONES] = {SCALE_1, SCALE_2, -1};

/* |*out| is |weight| times a part of |m|, or itself where there is none. */
static rdna_status weight_of(running *r, const rdna__dit_modulation *m, int which, const rdna_tensor *weight,
                             rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  *out = *weight;
  if (!m->wide.data) return RDNA_OK;
  const rdna_tensor by = rdna__dit_part(&m->wide, m->width, which);
  *out = r->weight;
  return rdna_op_zip(r->pass.stream, RDNA_ZIP_MUL, weight, &by, zero, zero, out);
}

/* out = scale norm(x) */
static rdna_status norm_into(running *r, const rdna__dit_modulation *m, int scale, const rdna_tensor *weight,
                             const rdna_tensor *x, const rdna_tensor *out) {
  rdna_tensor by;
  RDNA_TRY(weight_of(r, m, scale, weight, &by));
  return rdna_op_rms_norm(r->pass.stream, x, &by, r->z->set.epsilon, out);
}

/* x += gate norm(h), which h becomes */
static rdna_status add_normed(running *r, const rdna__dit_modulation *m, int gate, const rdna_tensor *weight,
                              const rdna_tensor *h, const rdna_tensor *x) {
  const rdna_scalar zero = rdna_scalar_real(0);
  RDNA_TRY(norm_into(r, m, gate, weight, h, h));
  return rdna_op_zip(r->pass.stream, RDNA_ZIP_ADD, x, h, zero, zero, x);
}

static rdna_status modulate(running *r, const block *b, rdna__dit_modulation *m) {
  static const int gates[] = {GATE_1, GATE_2};
  const int64_t width = r->z->set.width;
  const rdna_scalar zero = rdna_scalar_real(0);
  *m = (rdna__dit_modulation){0};
  if (!b->modulation.weight.data) return RDNA_OK;
  RDNA_TRY(rdna__dit_modulate(&r->pass, &b->modulation, &r->conditions, width, ones, m));
  for (int i = 0; i < 2; i++) {
    rdna_tensor gate = rdna__dit_columns(&m->wide, gates[i] * width, width);
    RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_TANH, &gate, zero, zero, &gate));
  }
  return RDNA_OK;
}

static rdna_status attend(running *r, const block *b, const rdna__dit_modulation *m, part *p) {
  int head = r->z->set.width / r->z->set.heads;
  rdna_tensor *const turned[] = {&p->q, &p->k};
  const rdna_tensor *const norms[] = {&b->q_norm, &b->k_norm};
  RDNA_TRY(norm_into(r, m, SCALE_1, &b->norm1, &p->x, &p->h));
  RDNA_TRY(rdna__dit_linear(&r->pass, &b->q, &p->h, &p->q));
  RDNA_TRY(rdna__dit_linear(&r->pass, &b->k, &p->h, &p->k));
  RDNA_TRY(rdna__dit_linear(&r->pass, &b->v, &p->h, &p->v));
  for (int i = 0; i < 2; i++) {
    RDNA_TRY(rdna__dit_norm_heads(&r->pass, norms[i], HEAD_EPSILON, turned[i]));
    RDNA_TRY(rdna__dit_turn(&r->pass, &r->z->axes, p->positions, head, turned[i]));
  }
  RDNA_TRY(rdna__dit_attend(&r->pass, head, &p->q, &p->k, &p->v, &p->h));
  RDNA_TRY(rdna__dit_linear(&r->pass, &b->out, &p->h, &p->q));
  return add_normed(r, m, GATE_1, &b->after1, &p->q, &p->x);
}

static rdna_status feed_forward(running *r, const block *b, const rdna__dit_modulation *m, part *p) {
  const rdna_fused_step steps[] = {{.op = RDNA_MAP_SILU}, {.op = RDNA_ZIP_MUL, .is_zip = true, .input = 1}};
  RDNA_TRY(norm_into(r, m, SCALE_2, &b->norm2, &p->x, &p->h));
  RDNA_TRY(rdna__dit_linear(&r->pass, &b->gate, &p->h, &p->gate));
  RDNA_TRY(rdna__dit_linear(&r->pass, &b->up, &p->h, &p->up));
  RDNA_TRY(rdna_op_fused(r->pass.stream, steps, 2, (const rdna_tensor *const[]){&p->gate, &p->up}, 2, &p->gate));
  RDNA_TRY(rdna__dit_linear(&r->pass, &b->down, &p->gate, &p->q));
  return add_normed(r, m, GATE_2, &b->after2, &p->q, &p->x);
}

/* |count| blocks over rows from |first| on. */
static rdna_status run_blocks(running *r, const block *blocks, int count, int64_t first, int64_t rows) {
  part p = part_of(r, first, rows);
  for (int i = 0; i < count; i++) {
    rdna__dit_modulation m;
    RDNA_TRY(modulate(r, &blocks[i], &m));
    RDNA_TRY(attend(r, &blocks[i], &m, &p));
    RDNA_TRY(feed_forward(r, &blocks[i], &m, &p));
    if (m.wide.data) RDNA_TRY(rdna__dit_drop_modulation(&r->pass, &m));
  }
  return RDNA_OK;
}

/* ---- ends ---- */

/* The text stands at 1, 2, … of the first axis, what fills it up too; behind it the picture, whose filling is at 0. */
static rdna_status place(running *r, int32_t *values) {
  const int64_t columns = r->given->width / 2, text = r->filled[PICTURE];
  for (int a = 0; a < RDNA__ZIMAGE_AXES; a++) {
    for (int64_t i = 0; i < r->rows; i++) {
      bool of_picture = i < r->count[PICTURE];
      int64_t at[] = {r->filled[TEXT] + 1, i / columns, i % columns};
      values[i] = (int32_t)(of_picture ? at[a] : i >= text && a == 0 ? i - text + 1 : 0);
    }
    RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_I32, 1, &r->rows, &r->positions[a]));
    RDNA_TRY(rdna_copy_to_device(r->pass.stream, r->positions[a].data, values, (size_t)r->rows * sizeof *values));
  }
  return RDNA_OK;
}

/* Rows of |which| behind its tokens become what fills them up. */
static rdna_status fill_up(running *r, int which) {
  int64_t first = (which == TEXT ? r->filled[PICTURE] : 0) + r->count[which], more = r->filled[which] - r->count[which];
  if (!more) return RDNA_OK;
  rdna_tensor to = rdna__dit_rows(&r->x, first, more), row = r->z->filling[which];
  row.shape[0] = more;
  row.stride[0] = 0;
  return rdna_op_copy(r->pass.stream, &row, &to);
}

static rdna_status begin(running *r, void *host) {
  const rdna__zimage_settings *s = &r->z->set;
  const rdna__zimage_input *g = r->given;
  const int64_t shape[] = {r->rows, s->width}, wide[] = {r->rows, s->hidden}, width = s->width;
  const int64_t narrow[] = {1, r->z->time.second.weight.shape[0]};
  rdna_tensor *const all[] = {&r->x, &r->h, &r->q, &r->k, &r->v};
  for (int i = 0; i < 5; i++) RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, all[i]));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, wide, &r->gate));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, wide, &r->up));
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 1, &width, &r->weight));
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, narrow, &r->conditions));
  RDNA_TRY(rdna__dit_embed_number(&r->pass, &r->z->time, s->timestep_scale * (1 - g->level), true, &r->conditions));
  RDNA_TRY(place(r, host));
  rdna_tensor picture = rdna__dit_rows(&r->x, 0, r->count[PICTURE]);
  rdna__dit_pack(DIT_CHANNELS_LAST, 2, g->sample, s->channels, g->height, g->width, host);
  const rdna_tensor none = {0}, text = rdna__dit_rows(&r->x, r->filled[PICTURE], r->count[TEXT]);
  RDNA_TRY(rdna__dit_linear_of(&r->pass, &r->z->in[PICTURE], &none, 0, host, &picture));
  RDNA_TRY(rdna__dit_linear_of(&r->pass, &r->z->in[TEXT], &r->z->text_norm, s->epsilon, g->states, &text));
  for (int i = 0; i < SIDES; i++) RDNA_TRY(fill_up(r, i));
  return RDNA_OK;
}

static rdna_status end(running *r, float *host, float *out) {
  static const int scale[RDNA__DIT_ONES] = {0, -1, -1};
  const rdna__zimage *z = r->z;
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna__dit_modulation m;
  rdna_tensor x = rdna__dit_rows(&r->x, 0, r->count[PICTURE]), h = rdna__dit_rows(&r->h, 0, r->count[PICTURE]);
  RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_SILU, &r->conditions, zero, zero, &r->conditions));
  RDNA_TRY(rdna__dit_modulate(&r->pass, &z->modulation, &r->conditions, z->set.width, scale, &m));
  RDNA_TRY(rdna__dit_norm(&r->pass, &m, 0, -1, NORM_EPSILON, &x, &h));
  RDNA_TRY(rdna__dit_linear_to(&r->pass, &z->out, &h, host));
  rdna__dit_unpack(DIT_CHANNELS_LAST, 2, host, z->set.channels, r->given->height, r->given->width, out);
  return RDNA_OK;
}

/* |host|: room for the picture's tokens and for numbers of all rows */
static rdna_status run(running *r, void *host, float *out) {
  const rdna__zimage_settings *s = &r->z->set;
  const block *blocks = r->z->blocks;
  RDNA_TRY(begin(r, host));
  RDNA_TRY(run_blocks(r, blocks, s->refiners, 0, r->filled[PICTURE]));
  RDNA_TRY(run_blocks(r, blocks + s->refiners, s->refiners, r->filled[PICTURE], r->filled[TEXT]));
  RDNA_TRY(run_blocks(r, blocks + (ptrdiff_t)2 * s->refiners, s->layers, 0, r->rows));
  return end(r, host, out);
}

static int64_t filled(int64_t count) { return (count + MULTIPLE - 1) / MULTIPLE * MULTIPLE; }

static rdna_status check(const rdna__zimage_settings *s, const rdna__zimage_input *g) {
  if (g->height < 2 || g->width < 2 || g->height % 2 || g->width % 2 || g->height > MOST_SIDE || g->width > MOST_SIDE)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a sample of %d x %d; each side is even, 2 to %d", g->height, g->width,
                      MOST_SIDE);
  if (g->height / 2 > s->lengths[1] || g->width / 2 > s->lengths[2])
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a sample of %d x %d; the transformer has coordinates for %d x %d",
                      g->height, g->width, 2 * s->lengths[1], 2 * s->lengths[2]);
  if (g->tokens >= 1 && g->tokens < s->lengths[0] && filled(g->tokens) + 1 < s->lengths[0]) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "a text of %d tokens; the transformer has coordinates for %d", g->tokens,
                    s->lengths[0]);
}

rdna_status rdna__zimage_run(rdna__zimage *z, const rdna__zimage_input *given, float *out) {
  RDNA_TRY(check(&z->set, given));
  running r = {.z = z, .given = given};
  r.count[PICTURE] = (int64_t)(given->height / 2) * (given->width / 2);
  r.count[TEXT] = given->tokens;
  for (int i = 0; i < SIDES; i++) r.filled[i] = filled(r.count[i]);
  r.rows = r.filled[PICTURE] + r.filled[TEXT];
  size_t tokens = (size_t)r.count[PICTURE] * 4 * (size_t)z->set.channels * sizeof(float);
  size_t numbers = (size_t)r.rows * sizeof(int32_t);
  void *host = malloc(tokens > numbers ? tokens : numbers);
  if (!host) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the tokens of a picture");
  rdna_stream *stream = rdna_device_default_stream(z->network.device);
  r.pass = (rdna__image_pass){.stream = stream, .dtype = z->network.dtype, .holder = "a transformer"};
  rdna_status status = run(&r, host, out);
  rdna_status waited = rdna_stream_synchronize(stream); /* what is copied from and to is the caller's */
  status = rdna__pass_end(&r.pass, status);
  free(host);
  return status == RDNA_OK ? waited : status;
}
