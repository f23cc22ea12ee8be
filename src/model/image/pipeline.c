/* Of noise a picture: the U-Net says at each step what is noise, with the prompt and without, and the schedule takes
 * some of it away.
 *
 *     text -- encoders -- states --.
 *     seed -- noise -- latents -- U-Net -- guidance -- schedule -- latents … -- autoencoder -- picture         */
#include "model/image/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "model/image/schedule.h"

enum { MOST_PICTURES = 64, MOST_SIDE = 1 << 13, NUMBERS = 6 };

/* Who takes steps: the model, and behind it its refiner. */
typedef struct stage {
  rdna_image_model *model;
  rdna_image_schedule *schedule;
  rdna__image_texts texts;
  bool guided;
  int first, end; /* the steps that it takes, of its schedule: from, and up to but not with */
} stage;

typedef struct drawing {
  rdna_image_model *model;
  rdna_image_request r; /* with what is usual where nothing is asked for */
  stage stages[2], *now;
  int stage_count;
  rdna_image_flow *flow;                 /* in a schedule's place: of FLUX */
  rdna_image_noise *noise;               /* of the present picture, */
  rdna_image_noise *kept[MOST_PICTURES]; /* and of each while a stage begins the others */
  int64_t shape[3];                      /* of the latents of a picture */
  size_t count;                          /* their product */
  float *latents;                        /* (pictures, count) */
  float *input;                          /* (texts, count) what the U-Net reads */
  float *output;                         /* (texts, count) */
  float *fresh;                          /* (count) noise that is added */
  size_t area;                           /* of a channel of the latents */
  int channels;                          /* that the U-Net reads */
  float *context;                        /* latents of pictures that are looked at, one behind another, or NULL */
  rdna_image_picture looked[RDNA__PIPELINE_PICTURES]; /* (looked_count) each of them */
  int looked_count;
  bool *skipped; /* (blocks of the transformer) which are left out for guidance, or NULL */
  float *shown;  /* (3, height, width) what the last step is about, or NULL */
  bool shows;    /* it is one of the present picture's */
  /* with a mask */
  float *mask;     /* (area) 1 where it is drawn anew; of FLUX (factor factor, area) */
  float *begun;    /* (pictures, count) latents of the initial picture */
  float *hidden;   /* (pictures, count) of that picture without what is under the mask, for a U-Net that reads it */
  float *noised;   /* (count) the noise that the present picture began with */
  bool from_noise; /* nothing of the initial picture is where the mask is */
} drawing;

/* Values of the mask that the model reads, or that latents are kept by. */
static size_t mask_size(const drawing *d) {
  size_t factor = d->model->family && d->model->inpaints ? (size_t)d->model->info.factor : 1;
  return factor * factor * d->area;
}

/* ---- what is asked for ---- */

static rdna_status check_limits(const rdna_image_model *m, const rdna_image_request *r) {
  const rdna_image_model_info *info = &m->info;
  if (r->count < 1 || r->count > MOST_PICTURES)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d pictures; 1 to %d may be asked for at a time", r->count,
                      MOST_PICTURES);
  if (r->width < info->multiple || r->height < info->multiple || r->width > MOST_SIDE || r->height > MOST_SIDE ||
      r->width % info->multiple != 0 || r->height % info->multiple != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture of %d x %d; sides are multiples of %d up to %d", r->width,
                      r->height, info->multiple, MOST_SIDE);
  if (!isfinite(r->guidance) || r->guidance > 1000)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a guidance of %g; it is a number up to 1000", r->guidance);
  if (m->family && r->skip != 0)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s reads texts by all layers that it was trained with; leave out no more of them", info->family);
  return RDNA_OK;
}

/* With an initial picture the last steps alone are taken. */
static rdna_status check_init(const rdna_image_model *m, const rdna_image_request *r) {
  if (r->init && m->decodes_alone)
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "%s has a decoder alone, and a picture to begin with asks for its encoder, too, which the folder or "
        "the file of diffusers has",
        m->vae_path);
  if (!r->init || m->looks) return RDNA_OK;
  if (!(r->strength > 0 && r->strength <= 1))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a strength of %g; it is above 0 and up to 1", r->strength);
  if ((int)(r->steps * r->strength) > 0) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "of %d steps a strength of %g takes none; take more of one of them",
                    r->steps, r->strength);
}

/* Of |part|, which computes in |dtype|. In a rehearsal there are no values. */
static rdna_status check_finite(const rdna_image_model *m, const char *part, rdna_dtype dtype, const float *values,
                                size_t count) {
  for (size_t k = 0; k < count && !m->notes; k++)
    if (!isfinite(values[k]))
      return rdna__fail(RDNA_BAD_DATA, "%s made values that are not finite, computing in %s; %s", part,
                        rdna_dtype_name(dtype),
                        dtype == RDNA_F32 ? "its weights are damaged, or the values before it were too large"
                                          : "--type f32 or another of more range may not");
  return RDNA_OK;
}

static rdna_status check_given(const rdna_image_model *m, const rdna_image_request *r) {
  size_t pixels = (size_t)r->width * (size_t)r->height, factor = (size_t)m->info.factor;
  size_t latents = (size_t)r->count * (size_t)m->info.latent_channels * (pixels / (factor * factor));
  for (size_t k = 0; r->latents && k < latents; k++)
    if (!isfinite(r->latents[k])) return rdna__fail(RDNA_INVALID_ARGUMENT, "value %zu of the latents is not finite", k);
  for (size_t k = 0; r->init && k < 3 * pixels; k++)
    if (!isfinite(r->init[k]))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "value %zu of the initial picture is not finite", k);
  return RDNA_OK;
}

static rdna_status check_guides(const rdna_image_model *m, const rdna_image_request *r, bool look) {
  size_t values = 3 * (size_t)r->width * (size_t)r->height;
  bool used[RDNA__PIPELINE_CONTROLS] = {false};
  if (r->guide_count && !r->guides) return rdna__fail(RDNA_INVALID_ARGUMENT, "the ControlNets to be used are missing");
  for (size_t i = 0; i < r->guide_count; i++) {
    const rdna_image_guide *g = &r->guides[i];
    if (g->control >= (size_t)m->control_count || used[g->control])
      return rdna__fail(RDNA_INVALID_ARGUMENT, "ControlNet %zu is asked for %s, and there are %d, from 0", g->control,
                        g->control < (size_t)m->control_count ? "twice" : "", m->control_count);
    used[g->control] = true;
    if (!isfinite(g->scale) || fabs(g->scale) > 1000)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "a ControlNet is to be added %g times; it is a number up to 1000",
                        g->scale);
    if (!(g->start >= 0 && g->start < g->end && g->end <= 1))
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "a ControlNet from %g to %g of the steps; it begins before it ends, from 0 to 1", g->start,
                        g->end);
    if (look && !g->picture) return rdna__fail(RDNA_INVALID_ARGUMENT, "a ControlNet to be used has no picture");
    for (size_t k = 0; look && k < values; k++)
      if (!isfinite(g->picture[k]))
        return rdna__fail(RDNA_INVALID_ARGUMENT, "value %zu of a ControlNet's picture is not finite", k);
  }
  return RDNA_OK;
}

static rdna_status check_loras(const rdna_image_model *m, const rdna_image_request *r) {
  int count = rdna__loras_count(m->loras);
  if (!r->lora_scales) return RDNA_OK;
  if (r->lora_count != (size_t)count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "scales of %zu LoRAs, and the model was opened with %d", r->lora_count,
                      count);
  for (int i = 0; i < count; i++)
    if (!isfinite(r->lora_scales[i]) || fabs(r->lora_scales[i]) > 1000)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "a LoRA is to be added %g times; it is a number up to 1000",
                        r->lora_scales[i]);
  return RDNA_OK;
}

static rdna_status check_mask(const rdna_image_model *m, const rdna_image_request *r) {
  if (r->mask && !r->init) return rdna__fail(RDNA_INVALID_ARGUMENT, "a mask without the initial picture that it is of");
  if (r->mask && m->looks)
    return rdna__fail(RDNA_UNSUPPORTED, "%s looks at pictures, and draws without a mask only", m->info.family);
  if (r->mask && (m->refiner || m->refines))
    return rdna__fail(RDNA_UNSUPPORTED, "a mask and a refiner; pictures are refined as a whole only");
  if (m->refines && !r->init)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s is a refiner, which changes pictures, and asks for one", m->folder);
  if (m->must_look && !r->init)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s changes pictures, and asks for one (--init)", m->info.family);
  if (!r->mask && m->inpaints)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s was made to fill in a part of a picture, and asks for one and a mask",
                      m->folder);
  return RDNA_OK;
}

static rdna_status check_refining(const rdna_image_model *m, const rdna_image_request *r) {
  if (!m->refiner && r->refine_from != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a share of %g of the steps is for a refiner, and the model has none",
                      1 - r->refine_from);
  if (!m->refiner || (r->refine_from > 0 && r->refine_from < 1)) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "a refiner from %g of the noise levels on; it is above 0 and below 1",
                    r->refine_from);
}

static rdna_status check_guidance(const rdna_image_model *m, const rdna_image_request *r) {
  rdna__unet_places places;
  if (!(r->pag >= 0 && r->pag <= 1000))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "guidance by perturbed attention of %g; it is a number from 0 to 1000",
                      r->pag);
  if (!(r->rescale >= 0 && r->rescale <= 1))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "guidance is rescaled by a share of %g; it is from 0 to 1", r->rescale);
  if (r->pag_layers && r->pag == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "layers of perturbed attention, and no guidance by it");
  if (m->family && (r->pag > 0 || r->rescale > 0))
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "%s is guided by texts alone; perturbed attention and rescaled guidance are for Stable Diffusion 1, "
        "2 and XL",
        m->info.family);
  if (r->rescale > 0 && (m->distilled || r->guidance <= 1))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "guidance is to be rescaled, and there is none%s",
                      m->distilled ? ", as it was distilled into the model" : "");
  return r->pag > 0 ? rdna__unet_places_read(r->pag_layers, &m->unet_settings, &places) : RDNA_OK;
}

/* Puts in what is usual for the model where nothing is asked for. */
static rdna_status fill_request(const rdna_image_model *m, const rdna_image_request *given, rdna_image_request *r) {
  RDNA_TRY(RDNA__OPTIONS("rdna_image_model_draw", "request", given, r));
  if (r->count == 0) r->count = 1;
  if (r->width == 0) r->width = m->info.width;
  if (r->height == 0) r->height = m->info.height;
  if (r->steps == 0) r->steps = m->info.steps;
  if (r->guidance < 0) r->guidance = m->info.guidance;
  if (m->refiner && r->refine_from == 0) r->refine_from = RDNA__REFINE_FROM;
  if (r->skip_guidance > 0 && !r->skip_layers) r->skip_layers = RDNA__SKIP_LAYERS;
  if (r->skip_guidance > 0 && r->skip_end == 0) r->skip_end = RDNA__SKIP_END;
  if (r->pag > 0 && !r->pag_layers) r->pag_layers = "mid";
  if (!r->sampler) r->sampler = m->info.sampler;
  if (!r->spacing) r->spacing = rdna__pipeline_spacing(m, r->sampler);
  if (strcmp(r->spacing, "ays") == 0 && m->encoders > 1) r->spacing = "ays_xl";
  return RDNA_OK;
}

static rdna_status read_request(const rdna_image_model *m, const rdna_image_request *given, rdna_image_request *r) {
  RDNA_TRY(fill_request(m, given, r));
  RDNA_TRY(check_limits(m, r));
  RDNA_TRY(check_given(m, r));
  RDNA_TRY(check_guides(m, r, true));
  RDNA_TRY(rdna__pipeline_check_references(m, r));
  RDNA_TRY(check_loras(m, r));
  RDNA_TRY(check_refining(m, r));
  RDNA_TRY(check_guidance(m, r));
  RDNA_TRY(rdna__pipeline_check_skipping(m, r));
  RDNA_TRY(check_mask(m, r));
  RDNA_TRY(rdna__pipeline_check_pictures(m, r, true));
  return check_init(m, r);
}

/* ---- who takes which steps ---- */

static void release_schedules(drawing *d) {
  for (int i = 0; i < 2; i++) rdna_image_schedule_release(d->stages[i].schedule);
  rdna_image_flow_release(d->flow);
}

/* The refiner's, from the same share of its own noise levels on as the model ends with. */
static rdna_status share_with_refiner(drawing *d, int level) {
  const rdna_image_request *r = &d->r;
  stage *base = &d->stages[0], *other = &d->stages[1];
  other->model = d->model->refiner;
  other->guided = r->guidance > 1;
  d->stage_count = 2;
  RDNA_TRY(rdna_image_schedule_create(other->model->schedule, r->sampler, r->spacing, r->steps, &other->schedule));
  int from = rdna__schedule_level_behind(base->schedule, r->refine_from);
  int on = rdna__schedule_level_behind(other->schedule, r->refine_from);
  if (on == r->steps || from == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "of %d steps %s has none with the refiner from %g on; take more steps, or another share",
                      r->steps, from == 0 ? "the model" : "the refiner", r->refine_from);
  if (from < r->steps) base->end = rdna_image_schedule_step_of(base->schedule, from);
  if (base->end < base->first) base->end = base->first; /* a picture to begin with leaves all to it */
  other->first = rdna_image_schedule_step_of(other->schedule, on > level ? on : level);
  other->end = rdna_image_schedule_steps(other->schedule);
  return RDNA_OK;
}

static rdna_status share_steps(drawing *d) {
  rdna_image_model *m = d->model;
  const rdna_image_request *r = &d->r;
  stage *base = &d->stages[0];
  int level = r->init ? r->steps - (int)(r->steps * r->strength) : 0;
  *base = (stage){.model = m, .guided = r->guidance > 1 && !m->distilled};
  d->stage_count = 1;
  d->now = base;
  if (m->family) {
    RDNA_TRY(rdna__flow_schedule(m, r, &d->flow));
    base->first = rdna__flow_first(m, r);
    base->end = r->steps;
  } else {
    RDNA_TRY(rdna_image_schedule_create(m->schedule, r->sampler, r->spacing, r->steps, &base->schedule));
    base->first = rdna_image_schedule_step_of(base->schedule, level);
    base->end = rdna_image_schedule_steps(base->schedule);
  }
  if (m->refiner) RDNA_TRY(share_with_refiner(d, level));
  for (int i = 0; m->notes && i < d->stage_count; i++) d->stages[i].end = d->stages[i].first + 1;
  return RDNA_OK;
}

/* How many all take together. */
static int steps_of(const drawing *d) {
  int count = 0;
  for (int i = 0; i < d->stage_count; i++) count += d->stages[i].end - d->stages[i].first;
  return count;
}

/* How many were taken before |step| of the present stage. */
static int steps_before(const drawing *d, int step) {
  const stage *base = &d->stages[0];
  return step - d->now->first + (d->now == base ? 0 : base->end - base->first);
}

static rdna_status check_schedule(const rdna_image_model *m, const rdna_image_request *r, rdna__request_part *part) {
  if (m->family) {
    rdna_image_flow *flow = NULL;
    *part = strcmp(r->sampler, "euler") != 0    ? RDNA__REQUEST_SAMPLER
            : strcmp(r->spacing, "simple") != 0 ? RDNA__REQUEST_SPACING
                                                : RDNA__REQUEST_STEPS;
    rdna_status status = rdna__flow_schedule(m, r, &flow);
    rdna_image_flow_release(flow);
    return status;
  }
  /* Every sampler has the spacing simple: where that fails too, the spacing is not at fault. */
  const char *const spacings[] = {"simple", r->spacing};
  for (int i = 0; i < 2; i++) {
    rdna_image_schedule *schedule = NULL;
    *part = i == 1                           ? RDNA__REQUEST_SPACING
            : rdna__sampler_find(r->sampler) ? RDNA__REQUEST_STEPS
                                             : RDNA__REQUEST_SAMPLER;
    RDNA_TRY(rdna_image_schedule_create(m->schedule, r->sampler, spacings[i], r->steps, &schedule));
    rdna_image_schedule_release(schedule);
  }
  if (!m->refiner) return RDNA_OK;
  drawing d = {.model = (rdna_image_model *)m, .r = *r}; /* which stays as it is */
  *part = RDNA__REQUEST_REFINER;
  rdna_status status = share_steps(&d);
  release_schedules(&d);
  return status;
}

rdna_status rdna__pipeline_check(const rdna_image_model *m, const rdna_image_request *given,
                                 rdna__request_part *out_part) {
  rdna_image_request r;
  *out_part = RDNA__REQUEST_OTHER;
  RDNA_TRY(fill_request(m, given, &r));
  *out_part = RDNA__REQUEST_SIDES;
  RDNA_TRY(check_limits(m, &r));
  *out_part = RDNA__REQUEST_GUIDES;
  RDNA_TRY(check_guides(m, &r, false));
  *out_part = RDNA__REQUEST_REFERENCES;
  RDNA_TRY(rdna__pipeline_check_references(m, &r));
  *out_part = RDNA__REQUEST_LORAS;
  RDNA_TRY(check_loras(m, &r));
  *out_part = RDNA__REQUEST_REFINER;
  RDNA_TRY(check_refining(m, &r));
  *out_part = RDNA__REQUEST_GUIDANCE;
  RDNA_TRY(check_guidance(m, &r));
  RDNA_TRY(rdna__pipeline_check_skipping(m, &r));
  *out_part = RDNA__REQUEST_INIT;
  RDNA_TRY(check_mask(m, &r));
  RDNA_TRY(rdna__pipeline_check_pictures(m, &r, false));
  *out_part = RDNA__REQUEST_STRENGTH;
  RDNA_TRY(check_init(m, &r));
  return check_schedule(m, &r, out_part);
}

/* ---- what the caller is told ---- */

static rdna_status tell(const drawing *d, const char *what, int picture, int step, const float *latents) {
  const rdna_image_progress progress = {
      what, picture, d->r.count, step, steps_of(d), latents, latents && d->shows ? d->shown : NULL};
  if (!d->r.progress || d->r.progress(d->r.data, &progress)) return RDNA_OK;
  return rdna__fail(RDNA_CANCELLED, "the pictures were cancelled");
}

static rdna_status give(const drawing *d, const char *name, int picture, int step, int rank, const int64_t *shape,
                        const float *values) {
  return d->r.values ? d->r.values(d->r.data, name, picture, step, rank, shape, values) : RDNA_OK;
}

static rdna_status give_texts(const drawing *d) {
  const rdna__image_texts *t = &d->now->texts;
  bool refines = d->now != &d->stages[0];
  const int64_t states[] = {t->count, t->tokens, t->width}, pooled[] = {t->count, t->pooled_width};
  RDNA_TRY(give(d, refines ? "refiner_states" : "states", -1, -1, 3, states, t->states));
  return t->pooled_width ? give(d, refines ? "refiner_pooled" : "pooled", -1, -1, 2, pooled, t->pooled) : RDNA_OK;
}

static double timestep_of(const drawing *d, const stage *s, int step) {
  return d->flow ? 1000 * rdna_image_flow_sigma(d->flow, step) : rdna_image_schedule_timestep(s->schedule, step);
}

static rdna_status give_timesteps(const drawing *d) {
  if (!d->r.values) return RDNA_OK;
  const int64_t steps = steps_of(d);
  int at = 0;
  float *values = malloc((size_t)steps * sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for timesteps");
  for (int k = 0; k < d->stage_count; k++)
    for (int i = d->stages[k].first; i < d->stages[k].end; i++) values[at++] = (float)timestep_of(d, &d->stages[k], i);
  rdna_status status = give(d, "timesteps", -1, -1, 1, &steps, values);
  free(values);
  return status;
}

/* ---- steps ---- */

/* Whether |step| lies in a ControlNet's share, by where it begins and ends among all that are taken. */
static bool shares(const drawing *d, const rdna_image_guide *g, int step) {
  double steps = steps_of(d), at = steps_before(d, step);
  return at / steps >= g->start && (at + 1) / steps <= g->end;
}

static rdna_status check_shares(const drawing *d) {
  for (size_t i = 0; i < d->r.guide_count && !d->model->notes; i++) {
    const rdna_image_guide *g = &d->r.guides[i];
    bool any = g->scale == 0;
    for (int step = d->now->first; step < d->now->end; step++) any |= shares(d, g, step);
    if (!any)
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "a ControlNet is asked for from %g to %g of %d steps, between which none lies as a whole; it "
                        "would change nothing: let its share be larger",
                        g->start, g->end, steps_of(d));
  }
  return RDNA_OK;
}

/* The ControlNets that say something at |step|. */
static size_t guides_of(const drawing *d, int step, rdna_image_control_use *uses) {
  size_t count = 0;
  for (size_t i = 0; i < d->r.guide_count; i++) {
    const rdna_image_guide *g = &d->r.guides[i];
    bool off = !shares(d, g, step) || g->scale == 0;
    if (d->now != &d->stages[0]) continue; /* the refiner has none */
    if (off && !d->model->notes) continue; /* a rehearsal's one step is for all */
    uses[count++] = (rdna_image_control_use){d->model->controls[g->control], g->scale};
  }
  return count;
}

static int numbers_of(const rdna_image_model *m) { return m->refines ? NUMBERS - 1 : NUMBERS; }

/* What XL is told of a text beside it: sizes before and after cropping at 0, 0; its refiner instead of the second how
 * beautiful the picture is, from 0 to 10, by the usual words for it. */
static void fill_numbers(const drawing *d, bool negative, float *out) {
  float height = (float)d->r.height, width = (float)d->r.width;
  const float sizes[NUMBERS] = {height, width, 0, 0, height, width}, score = negative ? 2.5f : 6;
  memcpy(out, sizes, (size_t)numbers_of(d->now->model) * sizeof *out);
  if (d->now->model->refines) out[NUMBERS - 2] = score;
}

/* Whether the last answer is that of perturbed attention, which the refiner has none of. */
static bool perturbs(const drawing *d) { return d->r.pag > 0 && d->now == &d->stages[0]; }

/* output = the U-Net's answer to both texts, or to the prompt alone, and that of perturbed attention to the prompt */
static rdna_status ask(drawing *d, int step) {
  const rdna__image_texts *t = &d->now->texts;
  rdna_image_control_use uses[RDNA__PIPELINE_CONTROLS];
  rdna_image_adapter_use adapters[RDNA__PIPELINE_ADAPTERS];
  bool base = d->now == &d->stages[0]; /* the refiner has none */
  rdna_image_unet *unet = d->now->model->unet;
  const rdna_image_unet_info *info = rdna_image_unet_get_info(unet);
  float numbers[3 * NUMBERS];
  for (int i = 0; i < t->count; i++) fill_numbers(d, d->now->guided && i == 0, numbers + i * numbers_of(d->now->model));
  const rdna_image_unet_input input = {RDNA_IMAGE_UNET_INPUT_INIT,
                                       .count = t->count,
                                       .height = (int)d->shape[1],
                                       .width = (int)d->shape[2],
                                       .tokens = t->tokens,
                                       .sample = d->input,
                                       .states = t->states,
                                       .timestep = rdna_image_schedule_timestep(d->now->schedule, step),
                                       .pooled = t->pooled,
                                       .numbers = numbers,
                                       .pooled_width = t->pooled_width,
                                       .number_count = info->added_width ? numbers_of(d->now->model) : 0,
                                       .guidance = d->r.guidance - 1,
                                       .controls = uses,
                                       .control_count = guides_of(d, step, uses),
                                       .adapters = adapters,
                                       .adapter_count = base ? rdna__pipeline_adapters(d->model, &d->r, adapters) : 0,
                                       .perturbed = perturbs(d),
                                       .perturbed_layers = d->r.pag_layers};
  return rdna_image_unet_run(unet, &input, d->output);
}

/* What the U-Net reads of one text: latents and, where it was made to fill in, the mask and the rest of the picture. */
static void fill_input(const drawing *d, float scale, const float *latents, const float *hidden, float *input) {
  for (size_t k = 0; k < d->count; k++) input[k] = scale * latents[k];
  if (!hidden) return;
  memcpy(input + d->count, d->mask, d->area * sizeof *input);
  memcpy(input + d->count + d->area, hidden, d->count * sizeof *input);
}

/* The same of FLUX, which reads the mask last. */
static void fill_flow_input(drawing *d, const float *latents, const float *hidden) {
  memcpy(d->input, latents, d->count * sizeof *latents);
  memcpy(d->input + d->count, hidden, d->count * sizeof *hidden);
  memcpy(d->input + 2 * d->count, d->mask, mask_size(d) * sizeof *d->mask);
}

static void guide(drawing *d) {
  const rdna__guidance guidance = {d->r.guidance, perturbs(d) ? d->r.pag : 0, d->r.rescale, d->now->guided};
  rdna__guidance_mix(&guidance, d->output, d->count);
}

static double length_of(const drawing *d, const float *values, int64_t row, int64_t column, int64_t patch) {
  double sum = 0;
  for (int64_t c = 0; c < d->shape[0]; c++)
    for (int64_t i = 0; i < patch * patch; i++) {
      double value = values[(c * d->shape[1] + row + i / patch) * d->shape[2] + column + i % patch];
      sum += value * value;
    }
  return sqrt(sum);
}

/* Each token of the output, |patch| places high and wide, becomes as long as that of the answer to the prompt. */
static void keep_norm(drawing *d) {
  int64_t patch = d->model->info.multiple / d->model->info.factor;
  for (int64_t row = 0; row < d->shape[1]; row += patch)
    for (int64_t column = 0; column < d->shape[2]; column += patch) {
      double made = length_of(d, d->output, row, column, patch);
      double by = made > 0 ? length_of(d, d->output + d->count, row, column, patch) / made : 1;
      for (int64_t c = 0; c < d->shape[0]; c++)
        for (int64_t i = 0; i < patch * patch; i++) {
          float *value = &d->output[(c * d->shape[1] + row + i / patch) * d->shape[2] + column + i % patch];
          *value = (float)(by * *value);
        }
    }
}

/* What |latents| are about, by the network's answer to them: the picture behind the noise. */
static rdna_status show(drawing *d, int step, const float *latents) {
  if (!d->shown) return RDNA_OK;
  if (d->flow) {
    double level = rdna_image_flow_sigma(d->flow, step);
    for (size_t k = 0; k < d->count; k++) d->fresh[k] = (float)((double)latents[k] - level * (double)d->output[k]);
  } else {
    rdna__schedule_picture(d->now->schedule, step, latents, d->output, d->fresh, d->count);
  }
  d->shows = true;
  return rdna__pipeline_preview(d->model, d->fresh, (int)d->shape[1], (int)d->shape[2], d->shown);
}

/* output += skip_guidance (the answer to the prompt - that without some blocks), in its share of the steps */
static rdna_status skip_blocks(drawing *d, int step, rdna__image_asking *a) {
  double at = steps_before(d, step), steps = steps_of(d);
  bool now = d->model->notes || (at > d->r.skip_start * steps && at < d->r.skip_end * steps);
  if (!d->skipped || !now) return RDNA_OK;
  const float *prompted = d->output + d->count;
  a->which = a->texts->count - 1;
  a->skipped = d->skipped;
  RDNA_TRY(d->model->family->ask(d->model, a, d->fresh));
  for (size_t k = 0; k < d->count; k++)
    d->output[k] = (float)(d->output[k] + d->r.skip_guidance * ((double)prompted[k] - (double)d->fresh[k]));
  return RDNA_OK;
}

static rdna_status take_flow_step(drawing *d, int step, const float *hidden, float *latents) {
  rdna_image_model *m = d->model;
  rdna__image_asking a = {.texts = &d->now->texts, .request = &d->r, .sample = latents};
  a.looked = d->looked;
  a.looked_count = d->looked_count;
  a.level = rdna_image_flow_sigma(d->flow, step);
  if (hidden) {
    fill_flow_input(d, latents, hidden);
    a.sample = d->input;
  }
  for (; a.which < a.texts->count; a.which++) RDNA_TRY(m->family->ask(m, &a, d->output + (size_t)a.which * d->count));
  guide(d);
  if (d->now->guided && m->family->keeps_norm) keep_norm(d);
  RDNA_TRY(skip_blocks(d, step, &a));
  RDNA_TRY(show(d, step, latents));
  return rdna_image_flow_step(d->flow, step, d->output, latents, d->count);
}

/* Outside of the mask the latents are the initial picture's, with as much noise as the next step is given. */
static void keep_rest(drawing *d, int step, const float *begun, float *latents) {
  bool more = step + 1 < d->now->end;
  if (more && d->flow)
    (void)!rdna_image_flow_begin(d->flow, step + 1, begun, d->noised, d->fresh, d->count); /* of its own steps */
  else if (more)
    rdna__schedule_mix(d->now->schedule, step + 1, begun, d->noised, d->fresh, d->count);
  const float *rest = more ? d->fresh : begun;
  for (size_t k = 0; k < d->count; k++)
    if (d->mask[k % d->area] == 0) latents[k] = rest[k];
}

static rdna_status take_step(drawing *d, int step, const float *hidden, float *latents) {
  if (d->flow) return take_flow_step(d, step, hidden, latents);
  rdna_image_schedule *schedule = d->now->schedule;
  float scale = (float)rdna_image_schedule_input_scale(schedule, step);
  bool noisy = rdna_image_schedule_needs_noise(schedule);
  for (int i = 0; i < d->now->texts.count; i++)
    fill_input(d, scale, latents, hidden, d->input + (size_t)i * d->area * (size_t)d->channels);
  RDNA_TRY(ask(d, step));
  guide(d);
  RDNA_TRY(show(d, step, latents));
  if (noisy) rdna_image_noise_draw(d->noise, d->fresh, d->count);
  return rdna_image_schedule_step(schedule, step, d->output, noisy ? d->fresh : NULL, latents, d->count);
}

static rdna_status restart_noise(drawing *d, int picture) {
  rdna_image_noise_release(d->noise);
  d->noise = NULL;
  return rdna_image_noise_create(d->r.seed + (uint64_t)picture, &d->noise);
}

/* Whether the first numbers of a seed are those that the initial picture's latents are drawn with. */
static bool draws_init(const drawing *d) {
  return d->r.init && !d->context && !(d->hidden && d->from_noise && !d->flow);
}

/* |latents| of |values|, a picture, drawn with the next numbers. */
static rdna_status encode(drawing *d, const float *values, float *latents) {
  bool drawn = !d->model->undrawn;
  if (drawn) rdna_image_noise_draw(d->noise, d->fresh, d->count);
  RDNA_TRY(rdna_image_autoencoder_encode(d->model->autoencoder, values, 1, d->r.height, d->r.width, d->r.tile,
                                         drawn ? d->fresh : NULL, latents));
  return check_finite(d->model, "the autoencoder", d->model->picture_dtype, latents, d->count);
}

/* Of the initial picture what is not under the mask, which is grey; its latents are drawn behind the noise. */
static rdna_status encode_hidden(drawing *d, float *latents) {
  size_t pixels = (size_t)d->r.width * (size_t)d->r.height;
  float *rest = malloc(3 * pixels * sizeof *rest);
  if (!rest) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a masked picture");
  for (size_t k = 0; k < 3 * pixels; k++) rest[k] = d->r.mask[k % pixels] >= 0.5f ? 0 : d->r.init[k];
  if (!d->r.latents) rdna_image_noise_draw(d->noise, d->fresh, d->count);
  rdna_status status = encode(d, rest, latents);
  free(rest);
  return status;
}

/* What pictures that are looked at are for the transformer: nothing is drawn. */
static rdna_status encode_context(drawing *d) {
  const int factor = d->model->info.factor;
  float *to = d->context;
  for (int i = 0; i < d->looked_count; i++) {
    const rdna_image_picture first = {d->r.init, d->r.width, d->r.height}, *p = i ? &d->r.pictures[i - 1] : &first;
    const int64_t shape[] = {d->shape[0], p->height / factor, p->width / factor};
    size_t count = (size_t)(shape[0] * shape[1] * shape[2]);
    RDNA_TRY(
        rdna_image_autoencoder_encode(d->model->autoencoder, p->values, 1, p->height, p->width, d->r.tile, NULL, to));
    RDNA_TRY(check_finite(d->model, "the autoencoder", d->model->picture_dtype, to, count));
    RDNA_TRY(give(d, "init", 0, i ? i : -1, 3, shape, to));
    d->looked[i] = (rdna_image_picture){to, (int)shape[2], (int)shape[1]};
    to += count;
  }
  return RDNA_OK;
}

/* |latents| of the initial picture, and what a mask needs of it */
static rdna_status encode_init(drawing *d, int picture, float *latents) {
  size_t at = (size_t)picture * d->count;
  RDNA_TRY(tell(d, "init", picture, 0, NULL));
  if (d->context) return picture == 0 ? encode_context(d) : RDNA_OK;
  RDNA_TRY(restart_noise(d, picture));
  if (draws_init(d)) {
    RDNA_TRY(encode(d, d->r.init, latents));
    RDNA_TRY(give(d, "init", picture, -1, 3, d->shape, latents));
  }
  if (d->begun) memcpy(d->begun + at, latents, d->count * sizeof *latents);
  return d->hidden ? encode_hidden(d, d->hidden + at) : RDNA_OK;
}

/* |latents|, of the initial picture if there is one, become those before the first step. */
static rdna_status begin(drawing *d, int picture, float *latents) {
  RDNA_TRY(restart_noise(d, picture));
  if (draws_init(d) && !d->model->undrawn) /* these its latents have */
    rdna_image_noise_draw(d->noise, d->fresh, d->count);
  if (d->r.latents)
    memcpy(d->fresh, d->r.latents + (size_t)picture * d->count, d->count * sizeof *latents);
  else
    rdna_image_noise_draw(d->noise, d->fresh, d->count);
  RDNA_TRY(give(d, "noise", picture, -1, 3, d->shape, d->fresh));
  if (d->begun) memcpy(d->noised, d->fresh, d->count * sizeof *latents);
  if (d->flow) /* the first sample of all is noise alone, whatever the picture is */
    return rdna_image_flow_begin(d->flow, d->now->first, draws_init(d) ? latents : d->fresh, d->fresh, latents,
                                 d->count);
  if (d->r.mask) rdna_image_noise_draw(d->noise, d->output, d->count); /* these the rest of the picture has */
  if (d->r.init && !d->from_noise)
    return rdna_image_schedule_begin(d->now->schedule, d->now->first, latents, d->fresh, latents, d->count);
  float scale = (float)rdna_image_schedule_initial_scale(d->now->schedule);
  for (size_t k = 0; k < d->count; k++) latents[k] = scale * d->fresh[k];
  return RDNA_OK;
}

/* The stage's steps of one picture, whose noise goes on where the stage before left it. */
static rdna_status run_steps(drawing *d, int picture) {
  size_t at = (size_t)picture * d->count;
  float *latents = d->latents + at;
  const int64_t pixels[] = {3, d->r.height, d->r.width};
  const stage *s = d->now;
  d->shows = false;
  if (s == &d->stages[0]) {
    RDNA_TRY(begin(d, picture, latents));
  } else {
    rdna__schedule_take_over(s->schedule, s->first, d->count);
    d->noise = d->kept[picture];
    d->kept[picture] = NULL;
  }
  for (int i = s->first; i < s->end; i++) {
    RDNA_TRY(tell(d, "noise", picture, steps_before(d, i), latents));
    RDNA_TRY(take_step(d, i, d->hidden ? d->hidden + at : NULL, latents));
    if (d->begun) keep_rest(d, i, d->begun + at, latents);
    RDNA_TRY(check_finite(d->model, d->flow ? "the transformer" : "the U-Net", d->model->dtype, latents, d->count));
    RDNA_TRY(give(d, "latents", picture, steps_before(d, i), 3, d->shape, latents));
    if (d->shown) RDNA_TRY(give(d, "preview", picture, steps_before(d, i), 3, pixels, d->shown));
  }
  if (s + 1 == d->stages + d->stage_count) return tell(d, "noise", picture, steps_of(d), latents);
  d->kept[picture] = d->noise;
  d->noise = NULL;
  return RDNA_OK;
}

/* ---- all of it ---- */

/* Of pictures that are looked at, where there are some. */
static rdna_status alloc_context(drawing *d) {
  size_t factor = (size_t)d->model->info.factor, values = d->count;
  if (!d->model->looks || !d->r.init) return RDNA_OK;
  d->looked_count = 1 + (int)d->r.picture_count;
  for (size_t i = 0; i < d->r.picture_count; i++)
    values +=
        (size_t)d->shape[0] * ((size_t)d->r.pictures[i].width / factor) * ((size_t)d->r.pictures[i].height / factor);
  d->context = malloc(values * sizeof *d->context);
  return d->context ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for pictures that are looked at");
}

static rdna_status alloc(drawing *d) {
  const rdna_image_model_info *info = &d->model->info;
  d->shape[0] = info->latent_channels;
  d->shape[1] = d->r.height / info->factor;
  d->shape[2] = d->r.width / info->factor;
  d->count = (size_t)(d->shape[0] * d->shape[1] * d->shape[2]);
  bool guided = d->stages[0].guided || d->stages[1].guided;
  size_t texts = (guided ? 2 : 1) + (d->r.pag > 0), bytes = d->count * sizeof(float);
  d->latents = malloc((size_t)d->r.count * bytes);
  d->area = (size_t)(d->shape[1] * d->shape[2]);
  d->channels = info->latent_channels;
  if (d->model->inpaints) d->channels += info->latent_channels + (int)(mask_size(d) / d->area);
  d->input = malloc(texts * d->area * (size_t)d->channels * sizeof(float));
  d->output = malloc(texts * bytes);
  d->fresh = malloc(bytes);
  bool shows = d->r.previews && d->model->preview_path;
  if (shows) d->shown = malloc(3 * (size_t)d->r.width * (size_t)d->r.height * sizeof(float));
  if (d->latents && d->input && d->output && d->fresh && (d->shown || !shows)) return alloc_context(d);
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for latents");
}

/* The mask at latents' places: of FLUX all of a place's pixels, as channels, of others its first one. */
static void fill_mask(drawing *d) {
  size_t factor = (size_t)d->model->info.factor, width = (size_t)d->shape[2];
  for (size_t k = 0; k < mask_size(d); k++) {
    size_t pixel = k / d->area, place = k % d->area;
    size_t y = place / width * factor + pixel / factor, x = place % width * factor + pixel % factor;
    d->mask[k] = d->r.mask[y * (size_t)d->r.width + x] >= 0.5f ? 1 : 0;
  }
}

static rdna_status alloc_mask(drawing *d) {
  size_t bytes = d->count * sizeof(float);
  d->mask = malloc(mask_size(d) * sizeof *d->mask);
  d->noised = malloc(bytes);
  float **const kept = d->model->inpaints ? &d->hidden : &d->begun;
  *kept = malloc((size_t)d->r.count * bytes);
  if (!d->mask || !d->noised || !*kept) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask");
  fill_mask(d);
  d->from_noise = d->r.strength == 1;
  return RDNA_OK;
}

static rdna_status read_texts(drawing *d) {
  rdna_image_model *m = d->now->model;
  rdna__image_texts *t = &d->now->texts;
  RDNA_TRY(tell(d, "text", 0, 0, NULL));
  bool guided = d->now->guided;
  RDNA_TRY(m->family ? m->family->encode(m, &d->r, guided, t) : rdna__pipeline_encode(m, &d->r, guided, t));
  size_t texts = (size_t)t->count;
  RDNA_TRY(check_finite(m, "a text encoder", RDNA_F32, t->states, texts * (size_t)t->tokens * (size_t)t->width));
  RDNA_TRY(check_finite(m, "a text encoder", RDNA_F32, t->pooled, texts * (size_t)t->pooled_width));
  if (d->r.frugal) rdna__pipeline_drop_encoders(m);
  RDNA_TRY(give_texts(d));
  return perturbs(d) ? rdna__image_texts_repeat(t) : RDNA_OK;
}

static rdna_status need_network(const drawing *d) {
  rdna_image_model *m = d->now->model;
  const rdna__image_texts *t = &d->now->texts;
  if (d->flow) return m->family->need(m, t);
  RDNA_TRY(rdna__pipeline_need_unet(m));
  const rdna_image_unet_info *info = rdna_image_unet_get_info(m->unet);
  int numbers = numbers_of(m);
  if (info->text_width != t->width)
    return rdna__fail(RDNA_BAD_DATA, "%s: text encoders make %d values of a token, and the U-Net reads %d", m->folder,
                      t->width, info->text_width);
  if (!info->added_width || info->added_width == t->pooled_width + numbers * info->number_width) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "%s: the U-Net reads %d values beside the timestep, which are not a text's vector of %d and %d "
                    "numbers of %d",
                    m->folder, info->added_width, t->pooled_width, numbers, info->number_width);
}

/* The ControlNets that are used, each with its picture. */
static rdna_status show_guides(const drawing *d) {
  size_t values = 3 * (size_t)d->r.width * (size_t)d->r.height;
  float *picture = d->r.guide_count ? malloc(values * sizeof *picture) : NULL;
  rdna_status status = RDNA_OK;
  if (d->r.guide_count && !picture) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a ControlNet's picture");
  for (size_t i = 0; i < d->r.guide_count && status == RDNA_OK; i++) {
    const rdna_image_guide *g = &d->r.guides[i];
    for (size_t k = 0; k < values; k++) picture[k] = g->picture[k] / 2 + 0.5f;
    status = rdna__pipeline_need_control(d->model, g->control);
    if (status == RDNA_OK)
      status = rdna_image_control_see(d->model->controls[g->control], picture, d->r.height, d->r.width);
    status = rdna__annotate(status, "%s", d->model->control_paths[g->control]);
  }
  free(picture);
  return status;
}

static rdna_status draw(drawing *d, float *out) {
  rdna_image_model *m = d->model;
  size_t pixels = 3 * (size_t)d->r.width * (size_t)d->r.height;
  const int64_t shape[] = {3, d->r.height, d->r.width};
  RDNA_TRY(alloc(d));
  if (d->r.mask) RDNA_TRY(alloc_mask(d));
  for (int i = 0; i < d->stage_count; i++) {
    d->now = &d->stages[i];
    RDNA_TRY(read_texts(d));
  }
  RDNA_TRY(rdna__pipeline_see_references(m, &d->r, d->stages[0].guided, d->stages[0].texts.count));
  RDNA_TRY(give_timesteps(d));
  if (d->r.init) RDNA_TRY(rdna__pipeline_need_autoencoder(m, true));
  for (int i = 0; d->r.init && i < d->r.count; i++) RDNA_TRY(encode_init(d, i, d->latents + (size_t)i * d->count));
  if (d->r.frugal) rdna__pipeline_drop_autoencoder(m);
  for (int k = 0; k < d->stage_count; k++) {
    d->now = &d->stages[k];
    RDNA_TRY(need_network(d));
    if (d->shown) RDNA_TRY(rdna__pipeline_need_preview(m));
    if (k == 0) RDNA_TRY(show_guides(d));
    for (int i = 0; i < d->r.count; i++) RDNA_TRY(run_steps(d, i));
    if (d->r.frugal) rdna__pipeline_drop_unet(d->now->model);
  }
  RDNA_TRY(rdna__pipeline_need_autoencoder(m, false));
  for (int i = 0; i < d->r.count; i++) {
    float *picture = out + (size_t)i * pixels;
    RDNA_TRY(tell(d, "picture", i, steps_of(d), NULL));
    RDNA_TRY(rdna_image_autoencoder_decode(m->autoencoder, d->latents + (size_t)i * d->count, 1, (int)d->shape[1],
                                           (int)d->shape[2], d->r.tile, picture));
    RDNA_TRY(check_finite(m, "the autoencoder", m->picture_dtype, picture, pixels));
    RDNA_TRY(give(d, "picture", i, -1, 3, shape, picture));
  }
  if (d->r.frugal) rdna__pipeline_drop_autoencoder(m);
  return RDNA_OK;
}

/* Parts whose weights have other LoRAs, or as many of another scale, leave the device. */
static void use_loras(rdna_image_model *m, const rdna_image_request *r) {
  if (!rdna__loras_use(m->loras, r->lora_scales, m->lora_scales)) return;
  rdna__pipeline_drop_encoders(m);
  rdna__pipeline_drop_unet(m);
}

static rdna_status draw_request(rdna_image_model *m, const rdna_image_request *request, float *out_pictures) {
  drawing d = {.model = m};
  RDNA_TRY(read_request(m, request, &d.r));
  use_loras(m, &d.r);
  rdna_status status = share_steps(&d);
  if (status == RDNA_OK) status = check_shares(&d);
  if (status == RDNA_OK && d.r.skip_guidance > 0) status = rdna__pipeline_read_blocks(m, d.r.skip_layers, &d.skipped);
  if (status == RDNA_OK) status = draw(&d, out_pictures);
  release_schedules(&d);
  rdna_image_noise_release(d.noise);
  for (int i = 0; i < d.r.count && i < MOST_PICTURES; i++) rdna_image_noise_release(d.kept[i]);
  for (int i = 0; i < 2; i++) rdna__image_texts_deinit(&d.stages[i].texts);
  free(d.latents);
  free(d.input);
  free(d.output);
  free(d.fresh);
  free(d.mask);
  free(d.begun);
  free(d.hidden);
  free(d.noised);
  free(d.context);
  free(d.skipped);
  free(d.shown);
  return status;
}

rdna_status rdna_image_model_draw(rdna_image_model *m, const rdna_image_request *request, float *out_pictures) {
  if (!m || !request || !out_pictures)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_model_draw needs a model, a request and a place");
  return draw_request(m, request, out_pictures);
}

rdna_status rdna__pipeline_rehearse(rdna_image_model *m, const rdna_image_request *request) {
  rdna_image_request r;
  RDNA_TRY(read_request(m, request, &r)); /* all that draws is refused, before it becomes one picture */
  r = *request;
  r.count = 1;
  r.frugal = true;
  r.progress = NULL;
  r.values = NULL;
  size_t width = (size_t)(r.width ? r.width : m->info.width), height = (size_t)(r.height ? r.height : m->info.height);
  if (width > MOST_SIDE || height > MOST_SIDE) width = height = 1; /* which is refused */
  float *picture = malloc(3 * width * height * sizeof *picture);
  if (!picture) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture of %zu x %zu", width, height);
  rdna_status status = draw_request(m, &r, picture);
  free(picture);
  return status;
}
