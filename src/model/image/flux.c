/* The weights of transformers of text and picture, by the names that each kind's folder has for them. */
#include "model/image/flux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, TEXT = RDNA__FLUX_TEXT, PICTURE = RDNA__FLUX_PICTURE, SIDES = RDNA__FLUX_SIDES };

typedef struct head_names {
  const char *q, *k, *v, *out, *q_norm, *k_norm;
} head_names;

typedef struct side_names { /* of a double block */
  const char *modulation, *up, *down;
} side_names;

/* What kinds call their tensors. */
typedef struct names {
  const char *in, *text, *embedder;
  side_names sides[SIDES];
} names;

/* Of all kinds: how a side reads what both attend to, and how a picture what it attends to alone. */
static const head_names joint_names[SIDES] = {
    {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "attn.to_add_out", "attn.norm_added_q.weight",
     "attn.norm_added_k.weight"},
    {"attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0", "attn.norm_q.weight", "attn.norm_k.weight"}};
static const head_names own_names = {"attn2.to_q",     "attn2.to_k",          "attn2.to_v",
                                     "attn2.to_out.0", "attn2.norm_q.weight", "attn2.norm_k.weight"};
#define FLUX_TEXT "norm1_context.linear", "ff_context.net.0.proj", "ff_context.net.2"
#define FLUX_PICTURE "norm1.linear", "ff.net.0.proj", "ff.net.2"
static const names of_kind[] = {
    [RDNA__FLUX_1] = {"x_embedder", "context_embedder", "time_text_embed", {{FLUX_TEXT}, {FLUX_PICTURE}}},
    [RDNA__FLUX_QWEN] = {"img_in",
                         "txt_in",
                         "time_text_embed",
                         {{"txt_mod.1", "txt_mlp.net.0.proj", "txt_mlp.net.2"},
                          {"img_mod.1", "img_mlp.net.0.proj", "img_mlp.net.2"}}},
    [RDNA__FLUX_2] = {"x_embedder",
                      "context_embedder",
                      "time_guidance_embed",
                      {{"", "ff_context.linear_in", "ff_context.linear_out"}, {"", "ff.linear_in", "ff.linear_out"}}},
    [RDNA__FLUX_SD3] = {"pos_embed.proj", "context_embedder", "time_text_embed", {{FLUX_TEXT}, {FLUX_PICTURE}}}};

/* How their makers call them, which files of LoRAs may do, too. */
static const rdna__checkpoint_kind named_as[] = {[RDNA__FLUX_1] = CHECKPOINT_FLUX,
                                                 [RDNA__FLUX_QWEN] = CHECKPOINT_DIFFUSERS,
                                                 [RDNA__FLUX_2] = CHECKPOINT_FLUX,
                                                 [RDNA__FLUX_SD3] = CHECKPOINT_SD3};

/* ---- loading ---- */

static rdna_status load_embedding(const rdna_image_flux *f, rdna__component *c, const char *name, int in,
                                  rdna__dit_embedding *to) {
  static const char *const layers[] = {"linear_1", "linear_2"};
  char prefix[RDNA__COMPONENT_NAME];
  int width = f->set.width;
  snprintf(prefix, sizeof prefix, "%s.%s", of_kind[f->set.kind].embedder, name);
  return rdna__dit_load_embedding(c, prefix, layers, in, width, width, f->set.biased, to);
}

/* |last|: what they make is not read. */
static rdna_status load_heads(const rdna_image_flux *f, rdna__component *c, const char *prefix, const head_names *name,
                              bool last, rdna__flux_heads *to) {
  const rdna__flux_settings *s = &f->set;
  const char *const squares[] = {name->q, name->k, name->v, name->out};
  rdna__image_linear *const made[] = {&to->q, &to->k, &to->v, &to->out};
  for (int i = 0; i < 4 - last; i++)
    RDNA_TRY(rdna__image_load_linear(c, prefix, squares[i], s->width, s->width, s->biased, made[i]));
  if (!s->normed) return RDNA_OK;
  RDNA_TRY(rdna__dit_load_vector(c, prefix, name->q_norm, s->head, &to->q_norm));
  return rdna__dit_load_vector(c, prefix, name->k_norm, s->head, &to->k_norm);
}

static rdna_status load_side(const rdna_image_flux *f, rdna__component *c, int i, int which, rdna__flux_side *to) {
  const rdna__flux_settings *s = &f->set;
  const side_names *name = &of_kind[s->kind].sides[which];
  bool last = s->kind == RDNA__FLUX_SD3 && which == TEXT && i + 1 == s->doubles;
  bool dual = which == PICTURE && s->dual[i];
  int parts = last ? 2 : dual ? 9 : 6;
  char prefix[RDNA__COMPONENT_NAME];
  snprintf(prefix, sizeof prefix, "transformer_blocks.%d", i);
  if (!s->shares)
    RDNA_TRY(rdna__dit_load_wide(c, prefix, name->modulation, s->width, parts * s->width, s->biased, &to->modulation));
  RDNA_TRY(load_heads(f, c, prefix, &joint_names[which], last, &to->joint));
  if (dual) RDNA_TRY(load_heads(f, c, prefix, &own_names, false, &to->own));
  if (last) return RDNA_OK;
  RDNA_TRY(rdna__image_load_linear(c, prefix, name->up, s->width, (1 + s->gates) * s->hidden, s->biased, &to->up));
  return rdna__image_load_linear(c, prefix, name->down, s->hidden, s->width, s->biased, &to->down);
}

/* Of FLUX.2, which has what reads the same rows in one matrix. */
static rdna_status load_joined(const rdna_image_flux *f, rdna__component *c, const char *prefix,
                               rdna__flux_single *to) {
  const rdna__flux_settings *s = &f->set;
  const int rows[] = {s->width, s->width, s->width, 2 * s->hidden};
  rdna__image_linear *const parts[] = {&to->q, &to->k, &to->v, &to->up};
  rdna__image_linear all = {0};
  RDNA_TRY(rdna__image_load_linear(c, prefix, "to_qkv_mlp_proj", s->width, 3 * s->width + 2 * s->hidden, false, &all));
  for (int64_t k = 0, first = 0; k < 4; first += rows[k++]) {
    *parts[k] = rdna__image_linear_rows(&all, first, rows[k]);
  }
  return rdna__image_load_linear(c, prefix, "to_out", s->width + s->hidden, s->width, false, &to->down);
}

static rdna_status load_single(const rdna_image_flux *f, rdna__component *c, int i, rdna__flux_single *to) {
  const rdna__flux_settings *s = &f->set;
  char prefix[RDNA__COMPONENT_NAME], attention[RDNA__COMPONENT_NAME];
  int width = s->width;
  snprintf(prefix, sizeof prefix, "single_transformer_blocks.%d", i);
  snprintf(attention, sizeof attention, "single_transformer_blocks.%d.attn", i);
  RDNA_TRY(rdna__dit_load_vector(c, attention, "norm_q.weight", s->head, &to->q_norm));
  RDNA_TRY(rdna__dit_load_vector(c, attention, "norm_k.weight", s->head, &to->k_norm));
  if (s->kind == RDNA__FLUX_2) return load_joined(f, c, attention, to);
  RDNA_TRY(rdna__dit_load_wide(c, prefix, "norm.linear", width, 3 * width, f->set.biased, &to->modulation));
  RDNA_TRY(rdna__image_load_linear(c, attention, "to_q", width, width, true, &to->q));
  RDNA_TRY(rdna__image_load_linear(c, attention, "to_k", width, width, true, &to->k));
  RDNA_TRY(rdna__image_load_linear(c, attention, "to_v", width, width, true, &to->v));
  RDNA_TRY(rdna__image_load_linear(c, prefix, "proj_mlp", width, s->hidden, true, &to->up));
  return rdna__image_load_linear(c, prefix, "proj_out", width + s->hidden, width, true, &to->down);
}

static rdna_status load_shared(rdna_image_flux *f, rdna__component *c) {
  static const char *const modulations[] = {"double_stream_modulation_txt", "double_stream_modulation_img",
                                            "single_stream_modulation"};
  for (int k = 0; k <= SIDES; k++) {
    int parts = k < SIDES ? 6 : 3;
    RDNA_TRY(rdna__dit_load_wide(c, modulations[k], "linear", f->set.width, parts * f->set.width, f->set.biased,
                                 &f->shared[k]));
  }
  return RDNA_OK;
}

/* What reads a picture's tokens: of Stable Diffusion 3 a window of 2 x 2 at every other place, which is a matrix over a
 * token's values, and rows that are added. */
static rdna_status load_picture(rdna_image_flux *f, rdna__component *c) {
  const rdna__flux_settings *s = &f->set;
  const char *name = of_kind[s->kind].in;
  if (!s->positions) return rdna__image_load_linear(c, "", name, s->in_channels, s->width, s->biased, &f->in);
  const int64_t width = s->width, window[] = {width, s->in_channels / 4, 2, 2}, matrix[] = {width, s->in_channels};
  const int64_t places = s->positions, table[] = {1, places * places, width}, grid[] = {places, places, width};
  rdna_dtype dtype = f->network.dtype;
  RDNA_TRY(rdna__component_load(c, name, "weight", dtype, 4, window, &f->in.weight));
  RDNA_TRY(rdna__component_load(c, name, "bias", dtype, 1, &width, &f->in.bias));
  RDNA_TRY(rdna__dit_load_one(c, "pos_embed.pos_embed", dtype, 3, table, &f->positions));
  f->in.weight = rdna_tensor_contiguous(f->in.weight.data, dtype, 2, matrix);
  f->positions = rdna_tensor_contiguous(f->positions.data, dtype, 3, grid);
  return RDNA_OK;
}

/* What is before the blocks. */
static rdna_status load_beginning(rdna_image_flux *f, rdna__component *c) {
  const rdna__flux_settings *s = &f->set;
  const names *name = &of_kind[s->kind];
  RDNA_TRY(load_picture(f, c));
  RDNA_TRY(rdna__image_load_linear(c, "", name->text, s->text_width, s->width, s->biased, &f->text));
  if (s->kind == RDNA__FLUX_QWEN)
    RDNA_TRY(rdna__dit_load_vector(c, "", "txt_norm.weight", s->text_width, &f->text_norm));
  RDNA_TRY(load_embedding(f, c, "timestep_embedder", s->embedded, &f->time));
  if (s->guided) RDNA_TRY(load_embedding(f, c, "guidance_embedder", s->embedded, &f->guidance));
  if (s->pooled_width) RDNA_TRY(load_embedding(f, c, "text_embedder", s->pooled_width, &f->pooled));
  return s->shares ? load_shared(f, c) : RDNA_OK;
}

static rdna_status load(rdna_image_flux *f, rdna__component *c, rdna__loras *loras) {
  rdna__flux_settings *s = &f->set;
  RDNA_TRY(rdna__annotate(rdna__flux_settings_read(c->settings, s), "config.json"));
  rdna__component_change(c, loras, LORA_NETWORK, &(rdna__checkpoint_part){.kind = named_as[s->kind], .prefix = ""});
  f->doubles = calloc((size_t)s->doubles + 1, sizeof *f->doubles);
  f->singles = calloc((size_t)s->singles + 1, sizeof *f->singles);
  if (!f->doubles || !f->singles) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a transformer");
  f->last_scale = c->part.kind == CHECKPOINT_FLUX || c->part.kind == CHECKPOINT_SD3;
  f->last_shift = !f->last_scale;
  c->kept = true; /* little of the whole, and its ends */
  RDNA_TRY(load_beginning(f, c));
  c->kept = false;
  for (int i = 0; i < s->doubles; i++)
    for (int k = 0; k < SIDES; k++) RDNA_TRY(load_side(f, c, i, k, &f->doubles[i][k]));
  for (int i = 0; i < s->singles; i++) RDNA_TRY(load_single(f, c, i, &f->singles[i]));
  c->kept = true;
  RDNA_TRY(rdna__dit_load_wide(c, "", "norm_out.linear", s->width, 2 * s->width, f->set.biased, &f->modulation));
  RDNA_TRY(rdna__image_load_linear(c, "", "proj_out", s->width, s->out_channels, s->biased, &f->out));
  memcpy(f->axes.values, s->axes, sizeof s->axes);
  RDNA_TRY(rdna__dit_make_axes(&f->network, s->theta, &f->axes));
  return rdna__component_check_all_read(c);
}

static rdna_status open_flux(rdna_image_flux *f, const char *folder, const char *name, rdna__loras *loras) {
  rdna__component c;
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", name);
  RDNA_TRY(rdna__component_open(path, "diffusion_pytorch_model", &f->network, &c));
  rdna_status status = rdna__annotate(load(f, &c, loras), "%s", path);
  rdna__component_close(&c);
  const rdna__flux_settings *s = &f->set;
  int places = s->patch * s->patch;
  if (status == RDNA_OK)
    f->info = (rdna_image_flux_info){.in_channels = s->in_channels / places,
                                     .out_channels = s->out_channels / places,
                                     .text_width = s->text_width,
                                     .pooled_width = s->pooled_width,
                                     .guided = s->guided,
                                     .weights_bytes = f->network.bytes};
  return status;
}

rdna_status rdna_image_flux_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                                   rdna_image_flux **out_flux) {
  return rdna__flux_create(device, folder, name, dtype, RDNA_DTYPE_COUNT, NULL, out_flux);
}

rdna_status rdna__flux_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                              rdna_dtype weights, rdna__loras *loras, rdna_image_flux **out_flux) {
  if (!device || !folder || !name || !out_flux || (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_flux_create needs a device, two names of folders, f32, f16 or bf16, and a place");
  rdna_image_flux *f = calloc(1, sizeof *f);
  if (!f) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a transformer");
  f->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype, .weights = weights};
  rdna_status status = open_flux(f, folder, name, loras);
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
