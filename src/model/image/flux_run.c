/* Tokens of text and picture stand in one matrix, text first, so that blocks of both kinds attend over all of it:
 *
 *     rows    | text … | picture, line by line … | one that is looked at, if there is any … |
 *
 *     x = embedding -- double blocks -- single blocks -- norm of the picture's rows, out
 *
 * Norms have no weights of their own: each block makes a row that scales and one that shifts of the timestep, the
 * text's vector and, where it is guided, the guidance, and gates by which its results are multiplied. FLUX.2 makes
 * these rows once for all blocks. Values of a head turn by its token's places: FLUX.1's by row and column, Qwen-Image's
 * by those from the middle on, where text goes on behind the picture's corner along the diagonal, and FLUX.2's by
 * those and, of text, the token's number. Stable Diffusion 3's do not turn: rows for each place are added to the
 * picture's; and behind its last block the text is not needed. */
#include <math.h>
#include <stdlib.h>

#include "base/options.h"
#include "model/image/flux.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum {
  MOST_SIDE = 1 << 13,
  MOST_TOKENS = 1 << 14,
  AXES = RDNA__DIT_AXES,
  TEXT = RDNA__FLUX_TEXT,
  PICTURE = RDNA__FLUX_PICTURE,
  SIDES = RDNA__FLUX_SIDES
};

typedef struct running {
  const rdna_image_flux *flux;
  rdna__image_pass pass;
  const rdna_image_flux_input *given;
  int64_t first[SIDES], count[SIDES]; /* rows of text and picture */
  int64_t made; /* of the picture's rows the first, which are drawn: others are those of pictures that are looked at */
  rdna_image_picture looked[RDNA__FLUX_PICTURES]; /* (looked_count) those, as latents */
  int looked_count;
  const bool *skipped; /* (doubles); NULL: none */
  int64_t rows;
  int64_t turned;         /* the first row that turns: all behind it do */
  rdna_tensor conditions; /* (1, width), f32: SiLU of what all blocks are modulated by */
  rdna_tensor still;      /* the same at timestep 0; data NULL: there is none */
  rdna__dit_modulation
      shared[SIDES + 1];       /* of double blocks' sides, and of single blocks, where those are the same for all */
  rdna_tensor positions[AXES]; /* (rows that turn), i32; data NULL: all are 0 */
  rdna_tensor x;               /* (rows, width) */
  rdna_tensor h, q, k, v;      /* the same, of a block */
  rdna_tensor alone;           /* (picture's rows, width): what a picture reads that attends to itself alone */
} running;

static rdna_tensor side_of(const running *r, const rdna_tensor *t, int which) {
  return rdna__dit_rows(t, r->first[which], r->count[which]);
}

static rdna_status linear(const running *r, const rdna__image_linear *by, const rdna_tensor *x,
                          const rdna_tensor *out) {
  return rdna__dit_linear(&r->pass, by, x, out);
}

/* ---- what blocks are modulated by ---- */

static rdna_status embed(running *r, double timestep, rdna_tensor *out) {
  const rdna_image_flux *f = r->flux;
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t wide[] = {1, f->set.width};
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 2, wide, out));
  RDNA_TRY(rdna__dit_embed_number(&r->pass, &f->time, timestep, true, out));
  if (f->set.guided) RDNA_TRY(rdna__dit_embed_number(&r->pass, &f->guidance, 1000 * r->given->guidance, false, out));
  if (f->set.pooled_width) RDNA_TRY(rdna__dit_embed(&r->pass, &f->pooled, r->given->pooled, false, out));
  return rdna_op_map(r->pass.stream, RDNA_MAP_SILU, out, zero, zero, out);
}

static rdna_status embed_conditions(running *r) {
  RDNA_TRY(embed(r, r->given->timestep, &r->conditions));
  return r->flux->set.stills && r->looked_count ? embed(r, 0, &r->still) : RDNA_OK;
}

static rdna_status modulate(running *r, const rdna__image_linear *by, const int ones[RDNA__DIT_ONES],
                            rdna__dit_modulation *out) {
  return rdna__dit_modulate(&r->pass, by, &r->conditions, r->flux->set.width, ones, out);
}

static rdna_status drop_modulation(running *r, rdna__dit_modulation *m) {
  return r->flux->set.shares ? RDNA_OK : rdna__dit_drop_modulation(&r->pass, m);
}

static rdna_status norm_into(const running *r, const rdna__dit_modulation *m, int scale, int shift,
                             const rdna_tensor *x, const rdna_tensor *out) {
  return rdna__dit_norm(&r->pass, m, scale, shift, r->flux->set.epsilon, x, out);
}

/* ---- attention ---- */

static rdna_status norm_heads(const running *r, const rdna_tensor *t, const rdna_tensor *weight) {
  return rdna__dit_norm_heads(&r->pass, weight, r->flux->set.epsilon, t);
}

static rdna_status turn(running *r, const rdna_tensor *t) {
  rdna_tensor turned = rdna__dit_rows(t, r->turned, r->rows - r->turned);
  if (r->flux->set.positions) return RDNA_OK;
  return rdna__dit_turn(&r->pass, &r->flux->axes, r->positions, r->flux->set.head, &turned);
}

/* |out| = attention of all rows of q, k and v, which are turned first */
static rdna_status attend(running *r, const rdna_tensor *out) {
  RDNA_TRY(turn(r, &r->q));
  RDNA_TRY(turn(r, &r->k));
  return rdna__dit_attend(&r->pass, r->flux->set.head, &r->q, &r->k, &r->v, out);
}

/* ---- blocks ---- */

/* Parts of a double block's modulation, the last three where the picture attends to itself alone, too. Of a text that
 * is not needed behind the block there are two, as of the last norm. */
enum { SHIFT_1, SCALE_1, GATE_1, SHIFT_2, SCALE_2, GATE_2, SHIFT_ALONE, SCALE_ALONE, GATE_ALONE };
static const int double_ones[] = {SCALE_1, SCALE_2, -1}, single_ones[] = {SCALE_1, -1, -1};
static const int dual_ones[] = {SCALE_1, SCALE_2, SCALE_ALONE};

static rdna_status modulate_all(running *r) {
  for (int i = 0; r->flux->set.shares && i <= SIDES; i++)
    RDNA_TRY(modulate(r, &r->flux->shared[i], i < SIDES ? double_ones : single_ones, &r->shared[i]));
  return RDNA_OK;
}

/* What follows attention: |made| (rows, hidden) of |up|'s x. It is the first half of |hidden|, or all of it. */
static rdna_status activate(const running *r, const rdna_tensor *hidden, const rdna_tensor *made) {
  const rdna_scalar zero = rdna_scalar_real(0);
  if (!r->flux->set.gates) return rdna_op_map(r->pass.stream, RDNA_MAP_GELU_TANH, hidden, zero, zero, made);
  const rdna_fused_step steps[] = {{.op = RDNA_MAP_SILU}, {.op = RDNA_ZIP_MUL, .is_zip = true, .input = 1}};
  const int64_t half = r->flux->set.hidden;
  const rdna_tensor gate = rdna__dit_columns(hidden, 0, half), by = rdna__dit_columns(hidden, half, half);
  return rdna_op_fused(r->pass.stream, steps, 2, (const rdna_tensor *const[]){&gate, &by}, 2, made);
}

/* Of rows |h|. */
static rdna_status read_heads(const running *r, const rdna__flux_heads *by, const rdna_tensor *h, const rdna_tensor *q,
                              const rdna_tensor *k, const rdna_tensor *v) {
  RDNA_TRY(linear(r, &by->q, h, q));
  RDNA_TRY(linear(r, &by->k, h, k));
  RDNA_TRY(linear(r, &by->v, h, v));
  if (!r->flux->set.normed) return RDNA_OK;
  RDNA_TRY(norm_heads(r, q, &by->q_norm));
  return norm_heads(r, k, &by->k_norm);
}

static bool is_last(const rdna__flux_side *s) { return !s->joint.out.weight.data; }
static bool is_dual(const rdna__flux_side *s) { return s->own.q.weight.data != NULL; }

/* What modulates a side's rows, and those of pictures that are looked at, if they are by something else. */
typedef struct modulations {
  rdna__dit_modulation drawn, still; /* still.wide.data NULL: there are none */
} modulations;

static rdna_status modulate_side(running *r, const rdna__flux_side *s, int which, modulations *out) {
  const int last[] = {r->flux->last_scale, -1, -1};
  const int *ones = is_last(s) ? last : is_dual(s) ? dual_ones : double_ones;
  *out = (modulations){.drawn = r->shared[which]};
  if (r->flux->set.shares) return RDNA_OK;
  RDNA_TRY(modulate(r, &s->modulation, ones, &out->drawn));
  if (which != PICTURE || !r->still.data) return RDNA_OK;
  return rdna__dit_modulate(&r->pass, &s->modulation, &r->still, r->flux->set.width, ones, &out->still);
}

static rdna_status drop_modulations(running *r, modulations *m) {
  RDNA_TRY(drop_modulation(r, &m->drawn));
  return m->still.wide.data ? drop_modulation(r, &m->still) : RDNA_OK;
}

/* The rows of a side that are drawn, or that are looked at. */
static rdna_tensor share_of(const running *r, const rdna_tensor *t, bool still) {
  return rdna__dit_rows(t, still ? r->made : 0, still ? r->count[PICTURE] - r->made : r->made);
}

static rdna_status norm_side(const running *r, const modulations *m, int scale, int shift, const rdna_tensor *x,
                             const rdna_tensor *h) {
  if (!m->still.wide.data) return norm_into(r, &m->drawn, scale, shift, x, h);
  for (int still = 0; still < 2; still++) {
    rdna_tensor from = share_of(r, x, still), to = share_of(r, h, still);
    RDNA_TRY(norm_into(r, still ? &m->still : &m->drawn, scale, shift, &from, &to));
  }
  return RDNA_OK;
}

static rdna_status add_side(const running *r, const modulations *m, int gate, const rdna_tensor *h,
                            const rdna_tensor *x) {
  if (!m->still.wide.data) return rdna__dit_add_gated(&r->pass, &m->drawn, gate, h, x);
  for (int still = 0; still < 2; still++) {
    rdna_tensor from = share_of(r, h, still), to = share_of(r, x, still);
    RDNA_TRY(rdna__dit_add_gated(&r->pass, still ? &m->still : &m->drawn, gate, &from, &to));
  }
  return RDNA_OK;
}

static rdna_status read_side(running *r, const rdna__flux_side *s, const modulations *m, int which) {
  rdna_tensor x = side_of(r, &r->x, which), h = side_of(r, &r->h, which);
  rdna_tensor q = side_of(r, &r->q, which), k = side_of(r, &r->k, which), v = side_of(r, &r->v, which);
  int scale = is_last(s) ? r->flux->last_scale : SCALE_1, shift = is_last(s) ? r->flux->last_shift : SHIFT_1;
  RDNA_TRY(norm_side(r, m, scale, shift, &x, &h));
  if (is_dual(s)) RDNA_TRY(norm_side(r, m, SCALE_ALONE, SHIFT_ALONE, &x, &r->alone));
  return read_heads(r, &s->joint, &h, &q, &k, &v);
}

/* x += gate out(attention of the picture to itself), of what it read before the block changed it */
static rdna_status attend_alone(const running *r, const rdna__flux_heads *by, const rdna__dit_modulation *m) {
  rdna_tensor q = side_of(r, &r->q, PICTURE), k = side_of(r, &r->k, PICTURE), v = side_of(r, &r->v, PICTURE);
  rdna_tensor h = side_of(r, &r->h, PICTURE), x = side_of(r, &r->x, PICTURE);
  RDNA_TRY(read_heads(r, by, &r->alone, &q, &k, &v));
  RDNA_TRY(rdna__dit_attend(&r->pass, r->flux->set.head, &q, &k, &v, &h));
  RDNA_TRY(linear(r, &by->out, &h, &q));
  return rdna__dit_add_gated(&r->pass, m, GATE_ALONE, &q, &x);
}

/* x += gate out(attention); x += gate down(activation(up(norm(x)))). q is free then. */
static rdna_status change_side(running *r, const rdna__flux_side *s, const modulations *m, int which) {
  const int64_t wide[] = {r->count[which], s->up.weight.shape[0]};
  rdna_tensor x = side_of(r, &r->x, which), h = side_of(r, &r->h, which), made = side_of(r, &r->q, which), hidden;
  if (is_last(s)) return RDNA_OK;
  RDNA_TRY(linear(r, &s->joint.out, &h, &made));
  RDNA_TRY(add_side(r, m, GATE_1, &made, &x));
  if (is_dual(s)) RDNA_TRY(attend_alone(r, &s->own, &m->drawn));
  RDNA_TRY(norm_side(r, m, SCALE_2, SHIFT_2, &x, &h));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, wide, &hidden));
  RDNA_TRY(linear(r, &s->up, &h, &hidden));
  rdna_tensor read = rdna__dit_columns(&hidden, 0, r->flux->set.hidden);
  RDNA_TRY(activate(r, &hidden, &read));
  RDNA_TRY(linear(r, &s->down, &read, &made));
  RDNA_TRY(rdna__pass_drop(&r->pass, &hidden));
  return add_side(r, m, GATE_2, &made, &x);
}

static rdna_status run_double(running *r, const rdna__flux_side block[SIDES]) {
  modulations m[SIDES];
  for (int i = 0; i < SIDES; i++) {
    RDNA_TRY(modulate_side(r, &block[i], i, &m[i]));
    RDNA_TRY(read_side(r, &block[i], &m[i], i));
  }
  RDNA_TRY(attend(r, &r->h));
  for (int i = 0; i < SIDES; i++) {
    RDNA_TRY(change_side(r, &block[i], &m[i], i));
    RDNA_TRY(drop_modulations(r, &m[i]));
  }
  return RDNA_OK;
}

/* |made|, beside what attention makes: activation(up(h)) */
static rdna_status run_hidden(running *r, const rdna__flux_single *s, const rdna_tensor *made) {
  const int64_t wide[] = {r->rows, s->up.weight.shape[0]};
  rdna_tensor hidden = *made;
  if (r->flux->set.gates) RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, wide, &hidden));
  RDNA_TRY(linear(r, &s->up, &r->h, &hidden));
  RDNA_TRY(activate(r, &hidden, made));
  return hidden.data == made->data ? RDNA_OK : rdna__pass_drop(&r->pass, &hidden);
}

/* x += gate down(attention beside activation(up(norm(x)))) */
static rdna_status run_single(running *r, const rdna__flux_single *s) {
  const int64_t width = r->flux->set.width, hidden = r->flux->set.hidden, shape[] = {r->rows, width + hidden};
  rdna__dit_modulation m = r->shared[SIDES];
  rdna_tensor both;
  if (!r->flux->set.shares) RDNA_TRY(modulate(r, &s->modulation, single_ones, &m));
  RDNA_TRY(norm_into(r, &m, SCALE_1, SHIFT_1, &r->x, &r->h));
  RDNA_TRY(linear(r, &s->q, &r->h, &r->q));
  RDNA_TRY(linear(r, &s->k, &r->h, &r->k));
  RDNA_TRY(linear(r, &s->v, &r->h, &r->v));
  RDNA_TRY(norm_heads(r, &r->q, &s->q_norm));
  RDNA_TRY(norm_heads(r, &r->k, &s->k_norm));
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, &both));
  rdna_tensor attended = rdna__dit_columns(&both, 0, width), made = rdna__dit_columns(&both, width, hidden);
  RDNA_TRY(attend(r, &attended));
  RDNA_TRY(run_hidden(r, s, &made));
  RDNA_TRY(linear(r, &s->down, &both, &r->h));
  RDNA_TRY(rdna__pass_drop(&r->pass, &both));
  RDNA_TRY(rdna__dit_add_gated(&r->pass, &m, GATE_1, &r->h, &r->x));
  return drop_modulation(r, &m);
}

/* ---- ends ---- */

/* Rows |which| of x = by(|values| (rows, width) of host memory), which are normed first unless |norm| has no data. */
static rdna_status begin_side(running *r, const rdna__image_linear *by, const rdna_tensor *norm, const float *values,
                              int which) {
  const rdna_tensor x = side_of(r, &r->x, which);
  return rdna__dit_linear_of(&r->pass, by, norm, r->flux->set.epsilon, values, &x);
}

/* A token's place, of the pictures or, with |picture| NULL, of the text. */
typedef struct spot {
  const int64_t *picture; /* rows and columns of tokens */
  int64_t which;          /* of the pictures: 0 is drawn, others are looked at */
  int64_t row, column;    /* of a text the token's number, and 0 */
} spot;

static int64_t flux_place(const spot *s, int axis) {
  const int64_t places[AXES] = {s->which, s->row, s->column, 0};
  return s->picture ? places[axis] : 0;
}

static int64_t flux2_place(const spot *s, int axis) {
  const int64_t places[AXES] = {10 * s->which, s->row, s->column, 0}; /* so far from one another it was trained */
  if (s->picture) return places[axis];
  return axis == AXES - 1 ? s->row : 0;
}

/* |corner| of the larger picture, counted from its middle */
static int64_t qwen_place(const spot *s, int64_t corner, int axis) {
  if (!s->picture) return corner + s->row;
  const int64_t places[] = {s->which, s->row - (s->picture[0] - s->picture[0] / 2),
                            s->column - (s->picture[1] - s->picture[1] / 2), 0};
  return places[axis];
}

enum { PICTURES = 1 + RDNA__FLUX_PICTURES };

static int64_t place_of(const running *r, const int64_t sizes[PICTURES][2], int64_t row, int axis) {
  rdna__flux_kind kind = r->flux->set.kind;
  spot s = {.row = row};
  if (row >= r->first[PICTURE]) {
    int64_t at = row - r->first[PICTURE];
    for (; at >= sizes[s.which][0] * sizes[s.which][1]; s.which++) at -= sizes[s.which][0] * sizes[s.which][1];
    s.picture = sizes[s.which];
    s.row = at / s.picture[1];
    s.column = at % s.picture[1];
  }
  if (kind == RDNA__FLUX_1) return flux_place(&s, axis);
  if (kind == RDNA__FLUX_2) return flux2_place(&s, axis);
  int64_t corner = 0;
  for (int i = 0; i < 2 * PICTURES; i++)
    if (sizes[i / 2][i % 2] / 2 > corner) corner = sizes[i / 2][i % 2] / 2;
  return qwen_place(&s, corner, axis);
}

static rdna_status place(running *r, int32_t *values) {
  const rdna_image_flux_input *g = r->given;
  const int64_t patch = r->flux->set.patch, count = r->rows - r->turned;
  int64_t sizes[PICTURES][2] = {{g->height / patch, g->width / patch}};
  for (int i = 0; i < r->looked_count; i++) {
    sizes[i + 1][0] = r->looked[i].height / patch;
    sizes[i + 1][1] = r->looked[i].width / patch;
  }
  for (int a = 0; a < AXES; a++) {
    bool any = false;
    if (!r->flux->axes.frequencies[a].data) continue;
    for (int64_t i = 0; i < count; i++) {
      values[i] = (int32_t)place_of(r, sizes, r->turned + i, a);
      any |= values[i] != 0;
    }
    if (!any) continue;
    RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_I32, 1, &count, &r->positions[a]));
    RDNA_TRY(rdna_copy_to_device(r->pass.stream, r->positions[a].data, values, (size_t)count * sizeof *values));
  }
  return RDNA_OK;
}

/* The middle of the table of positions is added to the picture's rows. */
static rdna_status add_positions(const running *r) {
  const rdna_scalar zero = rdna_scalar_real(0);
  int64_t rows = r->given->height / 2, columns = r->given->width / 2, width = r->flux->set.width;
  const int64_t shape[] = {rows, columns, width};
  rdna_tensor x = side_of(r, &r->x, PICTURE), table = r->flux->positions;
  x = rdna_tensor_contiguous(x.data, x.dtype, 3, shape);
  int64_t all = table.shape[0], at = (all - rows) / 2 * all + (all - columns) / 2;
  table.data = (char *)table.data + rdna_dtype_bytes(table.dtype, at * width);
  table.shape[0] = rows, table.shape[1] = columns;
  return rdna_op_zip(r->pass.stream, RDNA_ZIP_ADD, &x, &table, zero, zero, &x);
}

static bool has_dual(const rdna__flux_settings *s) {
  for (int i = 0; i < s->doubles; i++)
    if (s->dual[i]) return true;
  return false;
}

static rdna_status begin(running *r, void *host) {
  const rdna_image_flux *f = r->flux;
  const int64_t shape[] = {r->rows, f->set.width};
  const rdna_tensor none = {0};
  rdna_tensor *const all[] = {&r->x, &r->h, &r->q, &r->k, &r->v};
  for (int i = 0; i < 5; i++) RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, shape, all[i]));
  const int64_t picture[] = {r->count[PICTURE], f->set.width};
  if (has_dual(&f->set)) RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, 2, picture, &r->alone));
  RDNA_TRY(place(r, host));
  const rdna_image_flux_input *g = r->given;
  int channels = f->info.in_channels, patch = f->set.patch;
  float *tokens = host;
  rdna__dit_pack(DIT_CHANNELS_FIRST, patch, g->sample, channels, g->height, g->width, tokens);
  tokens += r->made * f->set.in_channels;
  for (int i = 0; i < r->looked_count; i++) {
    const rdna_image_picture *p = &r->looked[i];
    rdna__dit_pack(DIT_CHANNELS_FIRST, patch, p->values, channels, p->height, p->width, tokens);
    tokens += (ptrdiff_t)channels * p->height * p->width;
  }
  RDNA_TRY(begin_side(r, &f->in, &none, host, PICTURE));
  if (f->set.positions) RDNA_TRY(add_positions(r));
  return begin_side(r, &f->text, &f->text_norm, g->states, TEXT);
}

static rdna_status end(running *r, float *host, float *out) {
  const rdna_image_flux *f = r->flux;
  rdna_tensor x = rdna__dit_rows(&r->x, r->first[PICTURE], r->made),
              h = rdna__dit_rows(&r->h, r->first[PICTURE], r->made);
  const int ones[] = {f->last_scale, -1, -1};
  rdna__dit_modulation m;
  RDNA_TRY(modulate(r, &f->modulation, ones, &m));
  RDNA_TRY(norm_into(r, &m, f->last_scale, f->last_shift, &x, &h));
  RDNA_TRY(rdna__dit_linear_to(&r->pass, &f->out, &h, host));
  rdna__dit_order order = f->set.kind == RDNA__FLUX_SD3 ? DIT_CHANNELS_LAST : DIT_CHANNELS_FIRST;
  rdna__dit_unpack(order, f->set.patch, host, f->info.out_channels, r->given->height, r->given->width, out);
  return RDNA_OK;
}

/* |host|: room for the tokens of all pictures, and for places of all rows */
static rdna_status run(running *r, void *host, float *out) {
  const rdna_image_flux *f = r->flux;
  RDNA_TRY(embed_conditions(r));
  RDNA_TRY(modulate_all(r));
  RDNA_TRY(begin(r, host));
  for (int i = 0; i < f->set.doubles; i++)
    if (!r->skipped || !r->skipped[i]) RDNA_TRY(run_double(r, f->doubles[i]));
  for (int i = 0; i < f->set.singles; i++) RDNA_TRY(run_single(r, &f->singles[i]));
  return end(r, host, out);
}

static rdna_status check_sides(const char *what, int height, int width, int patch) {
  if (height >= patch && width >= patch && height <= MOST_SIDE && width <= MOST_SIDE && height % patch == 0 &&
      width % patch == 0)
    return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s of %d x %d; each side is %s %d to %d", what, height, width,
                    patch == 2 ? "even," : "from", patch, MOST_SIDE);
}

static rdna_status check(const running *r) {
  const rdna_image_flux *f = r->flux;
  const rdna_image_flux_input *g = r->given;
  if (!g->sample || !g->states || (f->set.pooled_width && !g->pooled))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_flux_run needs a sample, and a text's states%s",
                      f->set.pooled_width ? " and vector" : "");
  RDNA_TRY(check_sides("a sample", g->height, g->width, f->set.patch));
  if (f->set.positions && (r->looked_count || g->height / 2 > f->set.positions || g->width / 2 > f->set.positions))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "a sample of %d x %d%s; the transformer has positions for one picture with sides up to %d",
                      g->height, g->width, r->looked_count ? " and another picture" : "", 2 * f->set.positions);
  for (int i = 0; i < r->looked_count; i++)
    RDNA_TRY(check_sides("a picture to look at", r->looked[i].height, r->looked[i].width, f->set.patch));
  if (g->tokens < 1 || g->tokens > MOST_TOKENS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a text of %d tokens; 1 to %d may be", g->tokens, MOST_TOKENS);
  if (isfinite(g->timestep) && (!f->set.guided || isfinite(g->guidance))) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the timestep or the guidance is no number");
}

/* Of what is given in all. */
static rdna_status run_checked(running *r, float *out) {
  const rdna_image_flux *f = r->flux;
  const rdna_image_flux_input *g = r->given;
  const int patch = f->set.patch;
  int64_t other = 0;
  RDNA_TRY(check(r));
  for (int i = 0; i < r->looked_count; i++)
    other += (int64_t)(r->looked[i].height / patch) * (r->looked[i].width / patch);
  r->made = (int64_t)(g->height / patch) * (g->width / patch);
  r->first[PICTURE] = r->count[TEXT] = g->tokens;
  r->count[PICTURE] = r->made + other;
  r->rows = r->count[TEXT] + r->count[PICTURE];
  r->turned = f->set.kind == RDNA__FLUX_1 ? r->first[PICTURE] : 0; /* FLUX.1's text stands at 0 */
  int widest = f->set.in_channels > f->set.out_channels ? f->set.in_channels : f->set.out_channels;
  void *host = malloc(((size_t)r->count[PICTURE] * (size_t)widest + (size_t)g->tokens) * sizeof(float));
  if (!host) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the tokens of a picture");
  rdna_stream *stream = rdna_device_default_stream(f->network.device);
  r->pass = (rdna__image_pass){.stream = stream, .dtype = f->network.dtype, .holder = "a transformer"};
  rdna_status status = run(r, host, out);
  rdna_status waited = rdna_stream_synchronize(stream); /* what is copied from and to is the caller's */
  status = rdna__pass_end(&r->pass, status);
  free(host);
  return status == RDNA_OK ? waited : status;
}

rdna_status rdna__flux_run(rdna_image_flux *f, const rdna_image_flux_input *given, const rdna__flux_extra *extra,
                           float *out) {
  running r = {.flux = f, .given = given, .skipped = extra->skipped, .looked_count = extra->count};
  for (int i = 0; i < extra->count; i++) r.looked[i] = extra->pictures[i];
  return run_checked(&r, out);
}

rdna_status rdna_image_flux_run(rdna_image_flux *f, const rdna_image_flux_input *given, float *out) {
  if (!f || !given || !out)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_flux_run needs a transformer, what it reads and a place");
  rdna_image_flux_input read;
  RDNA_TRY(RDNA__OPTIONS("rdna_image_flux_run", "input", given, &read));
  const rdna_image_picture context = {read.context, read.context_width, read.context_height};
  return rdna__flux_run(f, &read, &(rdna__flux_extra){.pictures = &context, .count = read.context != NULL}, out);
}
