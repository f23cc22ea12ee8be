/* Stages that halve the image and stages that double it again, which read what those on the way down have made:
 *
 *     conv_in -- stage 0 -- stage 1 --  …  -- middle --  …  -- stage 1 -- stage 0 -- norm, SiLU, conv_out
 *             |_____________|_______________________________________|__________|   each image is kept for the way up */
#include "model/image/adapter.h"
#include "model/image/control.h"
#include "model/image/unet_half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/options.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, MOST_IMAGES = 64, MOST_SIDE = 1 << 14, MOST_TOKENS = 1 << 16 };

typedef rdna__unet_stage stage;
typedef rdna__two_layers two_layers;
typedef rdna__unet_pass running;

/* ---- loading ---- */

static rdna_status load_two(rdna__component *c, const char *prefix, int in, int out, two_layers *to) {
  RDNA_TRY(rdna__image_load_linear(c, prefix, "linear_1", in, out, true, &to->first));
  return rdna__image_load_linear(c, prefix, "linear_2", out, out, true, &to->second);
}

/* Layer |i| of a stage: a resnet block from |in| to |out| channels and, where it attends, the transformer behind it. */
static rdna_status load_layer(const rdna_image_unet *u, rdna__component *c, const char *prefix, int i, int in, int out,
                              int of, stage *to) {
  const rdna__unet_settings *s = &u->set;
  char name[RDNA__COMPONENT_NAME];
  snprintf(name, sizeof name, "%s.resnets.%d", prefix, i);
  RDNA_TRY(rdna__image_load_resnet(c, name, in, out, s->time_width, s->groups, s->epsilon, &to->resnets[i]));
  if (!to->attends) return RDNA_OK;
  snprintf(name, sizeof name, "%s.attentions.%d", prefix, i);
  return rdna__image_load_transformer(c, name, out, s->text_width, s->heads[of], s->groups, s->blocks[of],
                                      &to->transformers[i]);
}

static rdna_status load_down(rdna_image_unet *u, rdna__component *c, int i) {
  const rdna__unet_settings *s = &u->set;
  int in = s->channels[i ? i - 1 : 0], out = s->channels[i];
  char prefix[RDNA__COMPONENT_NAME];
  stage *to = &u->down[i];
  to->layers = s->layers[i];
  to->attends = s->down_attends[i];
  snprintf(prefix, sizeof prefix, "down_blocks.%d", i);
  for (int j = 0; j < to->layers; j++) RDNA_TRY(load_layer(u, c, prefix, j, j ? out : in, out, i, to));
  const rdna__image_window half = {out, out, 3, 2, 1, 1};
  return i + 1 < s->stages ? rdna__image_load_conv(c, prefix, "downsamplers.0.conv", &half, &to->resample) : RDNA_OK;
}

static rdna_status load_middle(rdna_image_unet *u, rdna__component *c) {
  const rdna__unet_settings *s = &u->set;
  int last = s->stages - 1, channels = s->channels[last];
  stage *to = &u->middle;
  to->layers = 1;
  to->attends = true;
  RDNA_TRY(load_layer(u, c, "mid_block", 0, channels, channels, last, to));
  RDNA_TRY(rdna__image_load_resnet(c, "mid_block.resnets.1", channels, channels, s->time_width, s->groups, s->epsilon,
                                   &to->resnets[1]));
  to->resnets[0].divisor = to->resnets[1].divisor = (float)s->middle_divisor;
  return RDNA_OK;
}

/* Stage |i| on the way up has the width of stage |of| on the way down. */
static rdna_status load_up(rdna_image_unet *u, rdna__component *c, int i) {
  const rdna__unet_settings *s = &u->set;
  int last = s->stages - 1, of = last - i, out = s->channels[of];
  int before = s->channels[i ? of + 1 : last], below = s->channels[of ? of - 1 : 0];
  char prefix[RDNA__COMPONENT_NAME];
  stage *to = &u->up[i];
  to->layers = s->layers[of] + 1;
  to->attends = s->up_attends[of];
  snprintf(prefix, sizeof prefix, "up_blocks.%d", i);
  for (int j = 0; j < to->layers; j++) {
    int kept = j + 1 < to->layers ? out : below; /* the last reads what came into that stage on the way down */
    RDNA_TRY(load_layer(u, c, prefix, j, (j ? out : before) + kept, out, of, to));
  }
  const rdna__image_window same = {out, out, 3, 1, 1, 1};
  return i < last ? rdna__image_load_conv(c, prefix, "upsamplers.0.conv", &same, &to->resample) : RDNA_OK;
}

static rdna__checkpoint_part names_of(const rdna__unet_settings *s) {
  rdna__checkpoint_part names = {CHECKPOINT_UNET, "", s->stages, s->layers[0], 0};
  for (int i = 0; i < s->stages; i++) names.up_attends |= (unsigned)s->up_attends[s->stages - 1 - i] << i;
  return names;
}

rdna_status rdna__unet_load_half(rdna_image_unet *u, rdna__component *c) {
  const rdna__unet_settings *s = &u->set;
  const rdna__image_window in = {s->in_channels, s->channels[0], 3, 1, 1, 1};
  c->kept = true; /* what steps and sizes are embedded by is little of the whole */
  RDNA_TRY(load_two(c, "time_embedding", s->channels[0], s->time_width, &u->time));
  if (s->guidance_width)
    RDNA_TRY(rdna__image_load_linear(c, "time_embedding", "cond_proj", s->guidance_width, s->channels[0], false,
                                     &u->guidance));
  if (s->added_width) RDNA_TRY(load_two(c, "add_embedding", s->added_width, s->time_width, &u->added));
  c->kept = false;
  RDNA_TRY(rdna__image_load_conv(c, "", "conv_in", &in, &u->in));
  for (int i = 0; i < s->stages; i++) RDNA_TRY(load_down(u, c, i));
  return load_middle(u, c);
}

/* Numbers the places of a stage's attention over texts from |first| on; returns that of the next. */
static int number_places(stage *s, int first) {
  for (int i = 0; i < s->layers && s->attends; i++) {
    s->transformers[i].place = first;
    first += s->transformers[i].count;
  }
  return first;
}

static rdna_status load(rdna_image_unet *u, rdna__component *c, rdna__loras *loras) {
  rdna__unet_settings *s = &u->set;
  RDNA_TRY(rdna__annotate(rdna__unet_settings_read(c->settings, s), "config.json"));
  const rdna__checkpoint_part names = names_of(s);
  rdna__component_change(c, loras, LORA_NETWORK, &names);
  const rdna__image_window out = {s->channels[0], s->out_channels, 3, 1, 1, 1};
  RDNA_TRY(rdna__unet_load_half(u, c));
  for (int i = 0; i < s->stages; i++) RDNA_TRY(load_up(u, c, i));
  int places = 0;
  for (int i = 0; i < 2 * s->stages; i++)
    places = number_places(i < s->stages ? &u->down[i] : &u->up[i - s->stages], places);
  number_places(&u->middle, places);
  RDNA_TRY(rdna__image_load_norm(c, "", "conv_norm_out", s->channels[0], s->groups, s->epsilon, &u->norm));
  RDNA_TRY(rdna__image_load_conv(c, "", "conv_out", &out, &u->out));
  return rdna__component_check_all_read(c);
}

static rdna_status open_unet(rdna_image_unet *u, const char *folder, const char *name, rdna__loras *loras) {
  rdna__component c;
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", name);
  RDNA_TRY(rdna__component_open(path, "diffusion_pytorch_model", &u->network, &c));
  rdna_status status = rdna__annotate(load(u, &c, loras), "%s", path);
  rdna__component_close(&c);
  const rdna__unet_settings *s = &u->set;
  u->info = (rdna_image_unet_info){.in_channels = s->in_channels,
                                   .out_channels = s->out_channels,
                                   .sample = s->sample,
                                   .text_width = s->text_width,
                                   .added_width = s->added_width,
                                   .number_width = s->number_width,
                                   .guidance_width = s->guidance_width,
                                   .weights_bytes = u->network.bytes};
  return status;
}

rdna_status rdna_image_unet_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                                   rdna_image_unet **out_unet) {
  return rdna__unet_create(device, folder, name, dtype, RDNA_DTYPE_COUNT, NULL, out_unet);
}

rdna_status rdna__unet_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                              rdna_dtype weights, rdna__loras *loras, rdna_image_unet **out_unet) {
  if (!device || !folder || !name || !out_unet)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_unet_create needs a device, a folder, a name and a place");
  if (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a U-Net computes in f32, f16 or bf16, not in %s", rdna_dtype_name(dtype));
  rdna_image_unet *u = calloc(1, sizeof *u);
  if (!u) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a U-Net");
  u->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype, .weights = weights};
  rdna_status status = open_unet(u, folder, name, loras);
  if (status == RDNA_OK)
    *out_unet = u;
  else
    rdna_image_unet_release(u);
  return status;
}

static void release_stage(stage *s) {
  for (int i = 0; i <= RDNA__UNET_LAYERS; i++) rdna__image_transformer_deinit(&s->transformers[i]);
}

void rdna__unet_deinit(rdna_image_unet *u) {
  rdna_device *device = u->network.device;
  for (int i = 0; i < RDNA__UNET_STAGES; i++) {
    release_stage(&u->down[i]);
    release_stage(&u->up[i]);
  }
  release_stage(&u->middle);
  rdna__network_deinit(&u->network);
  rdna_device_release(device);
}

void rdna_image_unet_release(rdna_image_unet *u) {
  if (u) rdna__unet_deinit(u);
  free(u);
}

const rdna_image_unet_info *rdna_image_unet_get_info(const rdna_image_unet *u) { return &u->info; }

/* ---- a pass ---- */

void rdna__image_embed_number(const rdna__unet_settings *s, double number, int width, float *out) {
  int half = width / 2, cosines = s->cosines_first ? 0 : half, sines = half - cosines;
  for (int i = 0; i < half; i++) {
    float exponent = (float)-log(10000) * (float)i / ((float)half - (float)s->shift);
    float angle = (float)number * (float)exp((double)exponent);
    out[sines + i] = (float)sin((double)angle);
    out[cosines + i] = (float)cos((double)angle);
  }
  if (width % 2) out[width - 1] = 0;
}

void rdna__image_embed_guidance(double guidance, int width, float *out) {
  int half = width / 2;
  for (int i = 0; i < half; i++) {
    float frequency = (float)exp(-log(10000) / (half - 1) * i), angle = (float)(1000 * guidance) * frequency;
    out[i] = (float)sin((double)angle);
    out[half + i] = (float)cos((double)angle);
  }
  if (width % 2) out[width - 1] = 0;
}

/* |values| of host memory as a tensor of the pass's type. */
static rdna_status put(running *r, const float *values, int rank, const int64_t *shape, rdna_tensor *out) {
  rdna_tensor given;
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, rank, shape, &given));
  RDNA_TRY(
      rdna_copy_to_device(r->pass.stream, given.data, values, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&given))));
  *out = given;
  if (r->pass.dtype == RDNA_F32) return RDNA_OK;
  RDNA_TRY(rdna__pass_tensor(&r->pass, r->pass.dtype, rank, shape, out));
  RDNA_TRY(rdna_op_copy(r->pass.stream, &given, out));
  return rdna__pass_drop(&r->pass, &given);
}

/* out = second(silu(first(x))), |x| (n, width), which is used up */
static rdna_status embed(running *r, const two_layers *by, rdna_tensor *x, rdna_tensor *out) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor h;
  RDNA_TRY(rdna__image_linear_run(&r->pass, &by->first, x, &h));
  RDNA_TRY(rdna_op_map(r->pass.stream, RDNA_MAP_SILU, &h, zero, zero, &h));
  RDNA_TRY(rdna__image_linear_run(&r->pass, &by->second, &h, out));
  RDNA_TRY(rdna__pass_drop(&r->pass, x));
  return rdna__pass_drop(&r->pass, &h);
}

/* |t| (n, channels) += what the guidance becomes, the same for all */
static rdna_status add_guidance(running *r, float *values, const rdna_tensor *t) {
  int width = r->unet->set.guidance_width;
  const int64_t shape[] = {r->given->count, width};
  rdna_tensor x;
  for (int i = 0; i < r->given->count; i++)
    rdna__image_embed_guidance(r->given->guidance, width, values + (ptrdiff_t)i * width);
  RDNA_TRY(put(r, values, 2, shape, &x));
  RDNA_TRY(rdna_op_linear_add(r->pass.stream, &x, &r->unet->guidance.weight, NULL, t));
  return rdna__pass_drop(&r->pass, &x);
}

/* The timestep and what is added to it, each embedded in |values|, which has room for the longer one of each image. */
static rdna_status embed_all(running *r, float *values) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const rdna_image_unet_input *g = r->given;
  const rdna__unet_settings *s = &r->unet->set;
  const int64_t time[] = {g->count, s->channels[0]}, beside[] = {g->count, s->added_width};
  rdna_tensor x, added;
  for (int i = 0; i < g->count; i++)
    rdna__image_embed_number(s, g->timestep, s->channels[0], values + (ptrdiff_t)i * s->channels[0]);
  RDNA_TRY(put(r, values, 2, time, &x));
  if (s->guidance_width) RDNA_TRY(add_guidance(r, values, &x));
  RDNA_TRY(embed(r, &r->unet->time, &x, &r->time));
  if (s->added_width) {
    for (int i = 0; i < g->count; i++) {
      float *to = values + (ptrdiff_t)i * s->added_width;
      for (int k = 0; k < g->pooled_width; k++) *to++ = g->pooled[(ptrdiff_t)i * g->pooled_width + k];
      for (int k = 0; k < g->number_count; k++, to += s->number_width)
        rdna__image_embed_number(s, g->numbers[(ptrdiff_t)i * g->number_count + k], s->number_width, to);
    }
    RDNA_TRY(put(r, values, 2, beside, &x));
    RDNA_TRY(embed(r, &r->unet->added, &x, &added));
    RDNA_TRY(rdna_op_zip(r->pass.stream, RDNA_ZIP_ADD, &r->time, &added, zero, zero, &r->time));
    RDNA_TRY(rdna__pass_drop(&r->pass, &added));
  }
  return rdna_op_map(r->pass.stream, RDNA_MAP_SILU, &r->time, zero, zero, &r->time);
}

static rdna_status embed_numbers(running *r) {
  const rdna__unet_settings *s = &r->unet->set;
  int width = s->added_width > s->channels[0] ? s->added_width : s->channels[0];
  if (s->guidance_width > width) width = s->guidance_width;
  float *values = malloc((size_t)r->given->count * (size_t)width * sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for embeddings");
  rdna_status status = embed_all(r, values);
  free(values);
  return status;
}

/* x = block(x). |kept|: what x was stays, as it is needed again. */
static rdna_status run_resnet(running *r, const rdna__image_resnet *block, bool kept) {
  rdna_tensor out;
  RDNA_TRY(rdna__image_resnet_run(&r->pass, block, &r->x, &r->time, &out));
  if (!kept) RDNA_TRY(rdna__pass_drop(&r->pass, &r->x));
  r->x = out;
  return RDNA_OK;
}

/* Transformer |i| of |s|, which is stage |of| on its way. */
static rdna_status run_transformer(running *r, const stage *s, rdna__unet_way way, int of, int i) {
  if (!s->attends) return RDNA_OK;
  const rdna__image_attending attending = {r->given->perturbed, rdna__unet_places_in(&r->perturbed, way, of, i),
                                           r->adapters, r->adapter_count};
  return rdna__image_transformer_run(&r->pass, &s->transformers[i], &r->text, &attending, &r->x);
}

static rdna_status run_down(running *r, int of) {
  const stage *s = &r->unet->down[of];
  for (int i = 0; i < s->layers; i++) {
    RDNA_TRY(run_resnet(r, &s->resnets[i], true));
    RDNA_TRY(run_transformer(r, s, RDNA__UNET_DOWN, of, i));
    r->skips[r->skip_count++] = r->x;
  }
  if (!s->resample.weight.data) return RDNA_OK;
  rdna_tensor half;
  RDNA_TRY(rdna__image_conv_run(&r->pass, &s->resample, &r->x, &half));
  r->skips[r->skip_count++] = r->x = half;
  return RDNA_OK;
}

static rdna_status run_middle(running *r, const stage *s) {
  RDNA_TRY(run_resnet(r, &s->resnets[0], true)); /* what it reads is the last that is kept */
  RDNA_TRY(run_transformer(r, s, RDNA__UNET_MIDDLE, 0, 0));
  return run_resnet(r, &s->resnets[1], false);
}

/* x = x and the image that was kept last, side by side in their channels. */
static rdna_status join(running *r) {
  rdna_tensor *kept = &r->skips[--r->skip_count], both;
  RDNA_TRY(
      rdna__pass_image(&r->pass, r->x.shape[0], r->x.shape[1] + kept->shape[1], r->x.shape[2], r->x.shape[3], &both));
  RDNA_TRY(rdna_op_cat(r->pass.stream, (const rdna_tensor *const[]){&r->x, kept}, 2, 1, &both));
  RDNA_TRY(rdna__pass_drop(&r->pass, kept));
  RDNA_TRY(rdna__pass_drop(&r->pass, &r->x));
  r->x = both;
  return RDNA_OK;
}

static rdna_status run_up(running *r, int of) {
  const stage *s = &r->unet->up[of];
  for (int i = 0; i < s->layers; i++) {
    RDNA_TRY(join(r));
    RDNA_TRY(run_resnet(r, &s->resnets[i], false));
    RDNA_TRY(run_transformer(r, s, RDNA__UNET_UP, of, i));
  }
  if (!s->resample.weight.data) return RDNA_OK;
  const rdna_tensor *next = &r->skips[r->skip_count - 1];
  rdna_tensor twice;
  RDNA_TRY(rdna__image_upsample_run(&r->pass, &s->resample, &r->x, next->shape[2], next->shape[3], &twice));
  RDNA_TRY(rdna__pass_drop(&r->pass, &r->x));
  r->x = twice;
  return RDNA_OK;
}

/* x = conv_in(sample), and what a ControlNet's picture became, which is the same for all. It is the first that is kept
 */
static rdna_status begin(running *r) {
  const rdna_image_unet_input *g = r->given;
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t shape[] = {g->count, r->channels, g->height, g->width};
  rdna_tensor sample, image;
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 4, shape, &sample));
  RDNA_TRY(rdna_copy_to_device(r->pass.stream, sample.data, g->sample,
                               rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&sample))));
  rdna_tensor read = sample; /* of the channels the first ones */
  read.shape[1] = r->unet->set.in_channels;
  RDNA_TRY(rdna__pass_image(&r->pass, shape[0], read.shape[1], shape[2], shape[3], &image));
  RDNA_TRY(rdna_op_copy(r->pass.stream, &read, &image));
  RDNA_TRY(rdna__pass_drop(&r->pass, &sample));
  RDNA_TRY(rdna__image_conv_run(&r->pass, &r->unet->in, &image, &r->x));
  if (r->seen) {
    rdna_tensor over = *r->seen;
    over.shape[0] = g->count;
    over.stride[0] = 0;
    RDNA_TRY(rdna_op_zip(r->pass.stream, RDNA_ZIP_ADD, &r->x, &over, zero, zero, &r->x));
  }
  r->skips[r->skip_count++] = r->x;
  return rdna__pass_drop(&r->pass, &image);
}

static rdna_status end(running *r, float *out) {
  rdna_tensor image, values;
  RDNA_TRY(rdna__image_norm_into(&r->pass, &r->unet->norm, &r->x, true, &r->x));
  RDNA_TRY(rdna__image_conv_run(&r->pass, &r->unet->out, &r->x, &image));
  RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 4, image.shape, &values));
  RDNA_TRY(rdna_op_copy(r->pass.stream, &image, &values));
  return rdna_copy_to_host(r->pass.stream, out, values.data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&values)));
}

rdna_status rdna__unet_run_half(running *r) {
  const rdna_image_unet *u = r->unet;
  const int64_t text[] = {r->given->count, r->given->tokens, u->set.text_width};
  RDNA_TRY(put(r, r->given->states, 3, text, &r->text));
  RDNA_TRY(embed_numbers(r));
  RDNA_TRY(begin(r));
  for (int i = 0; i < u->set.stages; i++) RDNA_TRY(run_down(r, i));
  return run_middle(r, &u->middle);
}

static rdna_status run(running *r, float *out) {
  const rdna_image_unet *u = r->unet;
  RDNA_TRY(rdna__unet_run_half(r));
  for (size_t i = 0; i < r->given->control_count; i++) RDNA_TRY(rdna__control_add(&r->given->controls[i], r));
  for (int i = 0; i < u->set.stages; i++) RDNA_TRY(run_up(r, i));
  return end(r, out);
}

rdna_status rdna__unet_check(const rdna_image_unet *u, const rdna_image_unet_input *g) {
  if (!g->sample || !g->states)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a U-Net needs samples and the states of texts");
  if (g->count < 1 || g->count > MOST_IMAGES || g->tokens < 1 || g->tokens > MOST_TOKENS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d samples with texts of %d tokens; 1 to %d and 1 to %d may be", g->count,
                      g->tokens, MOST_IMAGES, MOST_TOKENS);
  if (g->height < 1 || g->height > MOST_SIDE || g->width < 1 || g->width > MOST_SIDE)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "samples of %d x %d; each side may be 1 to %d", g->height, g->width,
                      MOST_SIDE);
  if (g->perturbed < 0 || g->perturbed > g->count || (g->perturbed && !g->perturbed_layers))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "of %d samples %d are to be perturbed, somewhere", g->count, g->perturbed);
  if (u->set.guidance_width && !isfinite(g->guidance))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the guidance is no number");
  if (!isfinite(g->timestep)) return rdna__fail(RDNA_INVALID_ARGUMENT, "the timestep is no number");
  const rdna__unet_settings *s = &u->set;
  if (!s->added_width) return RDNA_OK; /* what else is given says nothing to this network */
  int64_t width = g->pooled_width + (int64_t)g->number_count * s->number_width;
  if (g->pooled_width < 0 || g->number_count < 0 || width != s->added_width)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "vectors of %d values and %d numbers of %d; together they must have the U-Net's %d",
                      g->pooled_width, g->number_count, s->number_width, s->added_width);
  if ((g->pooled || !g->pooled_width) && (g->numbers || !g->number_count)) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the U-Net needs the texts' vectors and numbers");
}

rdna_status rdna_image_unet_run(rdna_image_unet *u, const rdna_image_unet_input *given, float *out) {
  if (!u || !given || !out)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_unet_run needs a U-Net, what it reads and a place");
  rdna_image_unet_input read;
  RDNA_TRY(RDNA__OPTIONS("rdna_image_unet_run", "input", given, &read));
  RDNA_TRY(rdna__unet_check(u, &read));
  if (read.control_count && !read.controls)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_unet_run needs the ControlNets that it is to read");
  for (size_t i = 0; i < read.control_count; i++) RDNA_TRY(rdna__control_check(&read.controls[i], u, &read));
  if (read.adapter_count && !read.adapters)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_unet_run needs the IP-Adapters that it is to read");
  for (size_t i = 0; i < read.adapter_count; i++)
    RDNA_TRY(rdna__adapter_check(&read.adapters[i], &u->network, &u->set, &read));
  running r = {.unet = u,
               .given = &read,
               .channels = u->set.in_channels,
               .adapters = read.adapters,
               .adapter_count = read.adapter_count};
  if (read.perturbed) RDNA_TRY(rdna__unet_places_read(read.perturbed_layers, &u->set, &r.perturbed));
  rdna_stream *stream = rdna_device_default_stream(u->network.device);
  r.pass = (rdna__image_pass){.stream = stream, .dtype = u->network.dtype, .holder = "a U-Net"};
  rdna_status status = run(&r, out);
  rdna_status waited = rdna_stream_synchronize(stream); /* what is copied from and to is the caller's */
  status = rdna__pass_end(&r.pass, status);
  return status == RDNA_OK ? waited : status;
}
