/* rdna image: a picture of a text. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "command/command.h"
#include "command/image_model.h"
#include "command/picture_text.h"
#include "command/upscaling.h"
#include "model/image/npy.h"
#include "model/image/parameters.h"
#include "model/image/pipeline.h"
#include "picture/decode.h"
#include "picture/encode.h"
#include "picture/enlarge.h"
#include "picture/jpeg.h"
#include "rdna/image_model.h"
#include "rdna/memory.h"

enum { PATH_BYTES = 4096 };
#define STRENGTH 0.75   /* where nobody asks for one */
#define SKIP_START 0.01 /* the same */

typedef struct image_options {
  device_choice device;
  image_model_choice model;
  const char *pag_layers, *negative, *size, *sampler, *spacing, *out, *latents, *dump, *init, *mask, *upscale,
      *skip_layers;
  option_texts loras, control_images, control_scales, adapters, images;
  double control_start, control_end;
  int64_t steps, seed, count, clip_skip, tile, quality;
  const char *ip_encoder;
  double guidance, strength, refine_from, pag, rescale, skip_guidance, skip_start, skip_end;
  bool json, grid, plain, plan;
} image_options;

typedef struct imaging {
  const image_options *options;
  const char *folder, *prompt;
  rdna_device *device;
  rdna_image_model *model;
  const rdna_image_model_info *info;
  rdna_image_request request;
  image_model_files *files;
  rdna__npy latents;
  float *init; /* (3, height, width) */
  float *mask; /* (height, width) */
  rdna_image_picture looked[OPTION_TEXTS_MOST];
  float *looked_values[OPTION_TEXTS_MOST];
  rdna_image_guide guides[OPTION_TEXTS_MOST];
  float *control_pictures[OPTION_TEXTS_MOST]; /* (3, height, width) */
  rdna_image_reference references[OPTION_TEXTS_MOST];
  rdna__picture reference_pictures[OPTION_TEXTS_MOST];
  char adapter_paths[OPTION_TEXTS_MOST][PATH_BYTES], reference_paths[OPTION_TEXTS_MOST][PATH_BYTES];
  float *pictures;
  rdna_image_plan plan;
  rdna__enlargement enlargement; /* upscaler NULL: none */
  char upscaler_name[UPSCALER_NAME_BYTES];
  /* by when each stage began, and the present one */
  double began, of_text, of_steps, of_pictures;
  const char *stage;
  int lines; /* of the picture that is shown above the progress; 0: none is */
} imaging;

/* ---- while it is drawn ---- */

static void end_stage(imaging *g) {
  double now = seconds(), took = now - g->began;
  if (g->stage && strcmp(g->stage, "text") == 0) g->of_text += took;
  if (g->stage && strcmp(g->stage, "init") == 0) g->of_pictures += took;
  if (g->stage && strcmp(g->stage, "noise") == 0) g->of_steps += took;
  if (g->stage && strcmp(g->stage, "picture") == 0) g->of_pictures += took;
  g->began = now;
}

static bool show(void *data, const rdna_image_progress *p) {
  imaging *g = data;
  char note[32] = "";
  if (!g->stage || strcmp(g->stage, p->stage) != 0) {
    end_stage(g);
    g->stage = p->stage;
  }
  int done = p->picture * p->steps + p->step, all = p->count * p->steps;
  if (strcmp(p->stage, "noise") == 0 && done > 0) {
    double left = (seconds() - g->began) / done * (all - done);
    snprintf(note, sizeof note, "  step %d of %d, %.0f s left", done, all, left);
  }
  if (p->preview && isatty(STDERR_FILENO)) {
    end_progress();
    g->lines = print_picture(stderr, p->preview, g->request.width, g->request.height, g->lines);
  }
  show_progress_note(p->stage, (double)done / all, note);
  return true;
}

static rdna_status dump(void *data, const char *name, int picture, int step, int rank, const int64_t *shape,
                        const float *values) {
  const imaging *g = data;
  char path[PATH_BYTES], which[16] = "", when[16] = "";
  if (picture >= 0 && g->request.count > 1) snprintf(which, sizeof which, "-%d", picture);
  if (step >= 0) snprintf(when, sizeof when, "-%04d", step);
  if (snprintf(path, sizeof path, "%s/%s%s%s.npy", g->options->dump, name, which, when) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s.npy is too long", name);
  return rdna__npy_save(path, rank, shape, values);
}

/* ---- what is asked for ---- */

static rdna_status read_size(const char *text, int *out_width, int *out_height) {
  char *end;
  long width = strtol(text, &end, 10), height = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
  *out_width = (int)width;
  *out_height = (int)height;
  if (*end == 0 && width > 0 && height > 0 && width < 1 << 16 && height < 1 << 16) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "--size '%.40s' is no size such as 512x768", text);
}

/* Noise from a file, of (channels, height, width) or several of them, which says the picture's size where nobody does.
 */
static rdna_status read_latents(imaging *g) {
  const rdna_image_model_info *info = g->info;
  rdna__npy *n = &g->latents;
  RDNA_TRY(rdna__npy_open(g->options->latents, n));
  if (n->rank < 3 || n->rank > 4)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: an array of %d dimensions; (%d, height, width) is asked for",
                      g->options->latents, n->rank, info->latent_channels);
  const int64_t *shape = n->shape + n->rank - 3;
  rdna_image_request *r = &g->request;
  if (r->width == 0 && shape[1] < INT32_MAX / info->factor && shape[2] < INT32_MAX / info->factor) {
    r->height = (int)shape[1] * info->factor;
    r->width = (int)shape[2] * info->factor;
  }
  if (n->count == 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the array has no values", g->options->latents);
  for (int64_t i = 0; i < n->count; i++)
    if (!isfinite(n->values[i]))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: value %lld is not finite", g->options->latents, (long long)i);
  int64_t pictures = n->rank == 4 ? n->shape[0] : 1;
  if (pictures != r->count || shape[0] != info->latent_channels || shape[1] * info->factor != r->height ||
      shape[2] * info->factor != r->width)
    return rdna__fail(
        RDNA_INVALID_ARGUMENT, "%s: %lld latents of (%lld, %lld, %lld); %d pictures of %d x %d ask for (%d, %d, %d)",
        g->options->latents, (long long)pictures, (long long)shape[0], (long long)shape[1], (long long)shape[2],
        r->count, r->width, r->height, info->latent_channels, r->height / info->factor, r->width / info->factor);
  r->latents = n->values;
  return RDNA_OK;
}

/* |*out| (3, height, width) of the picture |path|, which says the size where nobody does. */
static rdna_status read_picture(imaging *g, const char *path, float **out) {
  rdna__picture picture = {0};
  rdna_image_request *r = &g->request;
  RDNA_TRY(rdna__picture_load(path, &picture));
  if (r->width == 0) r->width = picture.width, r->height = picture.height;
  rdna_status status = RDNA_OK;
  if (picture.width != r->width || picture.height != r->height)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "%s is %d x %d, and the picture is to be %d x %d", path, picture.width,
                        picture.height, r->width, r->height);
  if (status == RDNA_OK && !(*out = malloc(3 * (size_t)r->width * (size_t)r->height * sizeof **out)))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture of %d x %d", r->width, r->height);
  if (status == RDNA_OK) rdna__picture_values(&picture, *out);
  rdna__picture_deinit(&picture);
  return status;
}

static rdna_status read_init(imaging *g, const char *path) {
  rdna_status status = read_picture(g, path, &g->init);
  g->request.init = g->init;
  return status;
}

/* A picture that is looked at, of whatever size it has. */
static rdna_status read_looked(imaging *g, const char *path, float **values, rdna_image_picture *out) {
  rdna__picture picture = {0};
  RDNA_TRY(rdna__picture_load(path, &picture));
  size_t count = 3 * (size_t)picture.width * (size_t)picture.height;
  rdna_status status =
      (*values = malloc(count * sizeof **values))
          ? RDNA_OK
          : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture of %d x %d", picture.width, picture.height);
  if (status == RDNA_OK) rdna__picture_values(&picture, *values);
  *out = (rdna_image_picture){*values, picture.width, picture.height};
  rdna__picture_deinit(&picture);
  return status;
}

/* Without --init the first of --image is the initial picture. */
static rdna_status read_pictures(imaging *g) {
  const image_options *o = g->options;
  int first = o->init ? 0 : 1;
  if (o->images.count == 0) return RDNA_OK;
  if (!o->init) RDNA_TRY(read_init(g, o->images.values[0]));
  for (int i = first; i < o->images.count; i++)
    RDNA_TRY(read_looked(g, o->images.values[i], &g->looked_values[i - first], &g->looked[i - first]));
  g->request.pictures = g->looked;
  g->request.picture_count = (size_t)(o->images.count - first);
  return RDNA_OK;
}

/* Pictures and scales of ControlNets, in their order; one scale is for all. */
static rdna_status read_controls(imaging *g) {
  const image_options *o = g->options;
  for (int i = 0; i < o->model.controls.count; i++) {
    const option_texts *scales = &o->control_scales;
    const char *text = scales->count ? scales->values[scales->count > 1 ? i : 0] : "1";
    char *end;
    double scale = strtod(text, &end);
    if (end == text || *end || !isfinite(scale))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "--control-scale '%.40s' is no number", text);
    RDNA_TRY(read_picture(g, o->control_images.values[i], &g->control_pictures[i]));
    g->guides[i] = (rdna_image_guide){(size_t)i, g->control_pictures[i], scale, o->control_start, o->control_end};
  }
  g->request.guides = g->guides;
  g->request.guide_count = (size_t)o->model.controls.count;
  return RDNA_OK;
}

/* FILE:IMAGE[:SCALE] of each --ip-adapter. */
static rdna_status read_adapters(imaging *g) {
  const image_options *o = g->options;
  for (int i = 0; i < o->adapters.count; i++) {
    const char *text = o->adapters.values[i], *end = text + strlen(text), *colon = strrchr(text, ':');
    double scale = 1;
    char *rest = NULL;
    if (colon && colon[1]) scale = strtod(colon + 1, &rest);
    if (rest && !*rest && rest != colon + 1)
      end = colon; /* it says a scale */
    else
      scale = 1;
    const char *middle = NULL;
    for (const char *at = text; at < end; at++)
      if (*at == ':') middle = at;
    if (!middle || middle == text || middle + 1 == end || middle - text >= PATH_BYTES || end - middle > PATH_BYTES)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "--ip-adapter '%.200s' is not FILE:IMAGE[:SCALE]", text);
    snprintf(g->adapter_paths[i], PATH_BYTES, "%.*s", (int)(middle - text), text);
    snprintf(g->reference_paths[i], PATH_BYTES, "%.*s", (int)(end - middle - 1), middle + 1);
    g->references[i] = (rdna_image_reference){.adapter = (size_t)i, .scale = scale};
    g->files->ip_adapters[i] = g->adapter_paths[i];
  }
  g->files->options.adapters = g->files->ip_adapters;
  g->files->options.adapter_count = (size_t)o->adapters.count;
  g->files->options.image_encoder = o->ip_encoder;
  return RDNA_OK;
}

/* Their pictures. */
static rdna_status read_references(imaging *g) {
  for (int i = 0; i < g->options->adapters.count; i++) {
    rdna__picture *p = &g->reference_pictures[i];
    RDNA_TRY(rdna__picture_load(g->reference_paths[i], p));
    g->references[i].pixels = p->pixels;
    g->references[i].width = p->width;
    g->references[i].height = p->height;
  }
  g->request.references = g->references;
  g->request.reference_count = (size_t)g->options->adapters.count;
  return RDNA_OK;
}

static rdna_status read_mask(imaging *g) {
  rdna__picture picture = {0};
  rdna_image_request *r = &g->request;
  RDNA_TRY(rdna__picture_load(g->options->mask, &picture));
  rdna_status status = RDNA_OK;
  if (picture.width != r->width || picture.height != r->height)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "%s is %d x %d, and the picture it masks %d x %d", g->options->mask,
                        picture.width, picture.height, r->width, r->height);
  if (status == RDNA_OK && !(g->mask = malloc((size_t)r->width * (size_t)r->height * sizeof *g->mask)))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask of %d x %d", r->width, r->height);
  if (status == RDNA_OK) rdna__picture_light(&picture, g->mask);
  r->mask = g->mask;
  rdna__picture_deinit(&picture);
  return status;
}

static rdna_status read_seed(const image_options *o, uint64_t *out) {
  uint32_t drawn = 0;
  if (o->seed < 0 && getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
    return rdna__fail(RDNA_IO_ERROR, "the system gives no random number; choose a --seed");
  *out = o->seed < 0 ? drawn : (uint64_t)o->seed;
  return RDNA_OK;
}

/* A folder that |dump| can write to. */
static rdna_status make_dump_folder(const char *path) {
  struct stat at;
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    return rdna__fail(RDNA_IO_ERROR, "cannot make the folder %s: %s", path, strerror(errno));
  if (stat(path, &at) == 0 && S_ISDIR(at.st_mode) && access(path, W_OK) == 0) return RDNA_OK;
  return rdna__fail(RDNA_IO_ERROR, "nothing can be written to %s as to a folder", path);
}

/* Says so when a negative prompt has no effect, and forgets it. */
static void drop_negative(imaging *g) {
  rdna_image_request *r = &g->request;
  if (!r->negative || (r->guidance > 1 && !g->model->distilled)) return;
  if (*r->negative)
    fprintf(stderr, "rdna image: the negative prompt has no effect %s\n",
            g->model->distilled ? "on this model, which guidance was distilled into" : "with --cfg up to 1");
  r->negative = NULL;
}

static rdna_status prepare(imaging *g) {
  const image_options *o = g->options;
  rdna_image_request *r = &g->request;
  *r = (rdna_image_request){RDNA_IMAGE_REQUEST_INIT,
                            .prompt = g->prompt,
                            .negative = o->negative,
                            .count = (int)o->count,
                            .steps = o->steps ? (int)o->steps : g->info->steps,
                            .sampler = o->sampler ? o->sampler : g->info->sampler,
                            .skip = (int)o->clip_skip - 1,
                            .tile = (int)o->tile,
                            .strength = o->strength >= 0 ? o->strength
                                        : o->mask        ? 1
                                                         : STRENGTH,
                            .plain = o->plain,
                            .refine_from = o->refine_from,
                            .pag = o->pag,
                            .pag_layers = o->pag_layers,
                            .rescale = o->rescale,
                            .skip_guidance = o->skip_guidance,
                            .skip_layers = o->skip_layers,
                            .skip_start = o->skip_start >= 0     ? o->skip_start
                                          : o->skip_guidance > 0 ? SKIP_START
                                                                 : 0,
                            .skip_end = o->skip_end,
                            .frugal = true,
                            .previews = o->model.preview && (o->dump || isatty(STDERR_FILENO)),
                            .progress = show,
                            .values = o->dump ? dump : NULL,
                            .data = g};
  if (o->strength >= 0 && g->model->looks)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s takes all steps, whatever picture it looks at; leave --strength out",
                      g->info->family);
  r->spacing = o->spacing ? o->spacing : rdna__pipeline_spacing(g->model, r->sampler);
  r->guidance = o->guidance < 0 ? g->info->guidance : o->guidance;
  drop_negative(g);
  RDNA_TRY(read_seed(o, &r->seed));
  if (o->size) RDNA_TRY(read_size(o->size, &r->width, &r->height));
  if (o->init) RDNA_TRY(read_init(g, o->init));
  RDNA_TRY(read_pictures(g));
  RDNA_TRY(read_controls(g));
  RDNA_TRY(read_references(g));
  if (o->mask) RDNA_TRY(read_mask(g));
  if (o->latents) RDNA_TRY(read_latents(g));
  if (r->width == 0) r->width = g->info->width;
  if (r->height == 0) r->height = g->info->height;
  return o->dump ? make_dump_folder(o->dump) : RDNA_OK;
}

static int files(const imaging *g) { return g->options->grid ? 1 : g->request.count; }

/* |out|, or of several files its name with a number before its ending. */
static rdna_status name_file(const imaging *g, int i, char path[PATH_BYTES]) {
  const char *out = g->options->out, *dot = out ? strrchr(out, '.') : NULL;
  if (dot && strchr(dot, '/')) dot = NULL;
  int stem = dot ? (int)(dot - out) : out ? (int)strlen(out) : 0;
  int length;
  if (!out)
    length = snprintf(path, PATH_BYTES, "rdna-%llu.png", (unsigned long long)(g->request.seed + (uint64_t)i));
  else if (files(g) == 1)
    length = snprintf(path, PATH_BYTES, "%s", out);
  else
    length = snprintf(path, PATH_BYTES, "%.*s-%d%s", stem, out, i, dot ? dot : "");
  return length < PATH_BYTES ? RDNA_OK : rdna__fail(RDNA_INVALID_ARGUMENT, "the path of --out is too long");
}

/* Of the files; check_file has refused other endings. */
static rdna__picture_kind kind_of_out(const image_options *o) {
  rdna__picture_kind kind = RDNA__PICTURE_PNG;
  if (o->out) (void)!rdna__picture_kind_of(o->out, &kind);
  return kind;
}

static int grid_columns(int count) {
  int columns = 1;
  while (columns * columns < count) columns++;
  return columns;
}

/* Says so when a text is longer than the model reads. */
static rdna_status warn_of_cut(const imaging *g) {
  const char *const texts[] = {g->prompt, g->request.negative};
  static const char *const names[] = {"the prompt", "the negative prompt"};
  for (int i = 0; i < 2; i++) {
    size_t count, read;
    if (!texts[i] || !(g->options->plain || g->model->family)) continue;
    RDNA_TRY(rdna_image_model_tokens(g->model, texts[i], &count, &read));
    if (read < count)
      fprintf(stderr, "rdna image: %s has %zu tokens, of which the model reads %zu\n", names[i], count, read);
  }
  return RDNA_OK;
}

/* ---- what it takes ---- */

static json_t *json_of_plan(const rdna_image_plan *plan) {
  json_t *parts = json_array();
  for (int i = 0; i < plan->count; i++) {
    const rdna_image_plan_part *p = &plan->parts[i];
    json_array_append_new(parts, json_pack("{s:s, s:I, s:I, s:I}", "part", p->name, "weights", (json_int_t)p->weights,
                                           "activations", (json_int_t)p->activations, "peak", (json_int_t)p->peak));
  }
  return json_pack("{s:o, s:i, s:I, s:I, s:I, s:I, s:b, s:s}", "parts", parts, "tile", plan->tile, "peak",
                   (json_int_t)plan->peak, "reserved", (json_int_t)plan->reserved, "free", (json_int_t)plan->free,
                   "budget", (json_int_t)plan->budget, "fits", plan->fits, "sentence", plan->sentence);
}

static void print_plan(FILE *to, const imaging *g) {
  const rdna_image_plan *plan = &g->plan;
  char texts[3][32];
  fprintf(to, "%s\n\n  %-16s %12s %12s %12s\n", rdna_device_get_info(g->device)->name, "", "weights", "activations",
          "together");
  for (int i = 0; i < plan->count; i++) {
    const rdna_image_plan_part *p = &plan->parts[i];
    fprintf(to, "  %-16s %12s %12s %12s\n", p->name, format_bytes((double)p->weights, texts[0]),
            format_bytes((double)p->activations, texts[1]), format_bytes((double)p->peak, texts[2]));
  }
  fprintf(to, "  %-16s %38s   one part after another\n", "peak", format_bytes((double)plan->peak, texts[0]));
  fprintf(to, "  %-16s %38s   what the pool takes for it\n", "reserved",
          format_bytes((double)plan->reserved, texts[0]));
  fprintf(to, "  %-16s %38s\n\n  it %s%s%s\n", "free", format_bytes((double)plan->free, texts[0]),
          plan->fits ? "fits" : "does not fit", *plan->sentence ? ": " : "", plan->sentence);
}

/* In a line or two, before anything is loaded. */
static void say_plan(const imaging *g) {
  const rdna_image_plan *plan = &g->plan;
  char weights[32], rest[32];
  fprintf(stderr, "%s:", rdna_device_get_info(g->device)->name);
  for (int i = 0; i < plan->count; i++)
    fprintf(stderr, "%s %s %s and %s", i ? "," : "", plan->parts[i].name,
            format_bytes((double)plan->parts[i].weights, weights),
            format_bytes((double)plan->parts[i].activations, rest));
  fprintf(stderr, "; peak %s, free %s\n", format_bytes((double)plan->peak, weights),
          format_bytes((double)plan->free, rest));
  if (*plan->sentence) fprintf(stderr, "%s\n", plan->sentence);
}

static rdna_status make_plan(imaging *g) {
  rdna_image_request *r = &g->request;
  RDNA_TRY(rdna_image_model_make_plan(g->model, r, 0, &g->plan));
  if (g->options->plan) return RDNA_OK;
  if (!g->plan.fits) return rdna__fail(RDNA_OUT_OF_MEMORY, "the picture does not fit: %s", g->plan.sentence);
  if (!g->options->json) say_plan(g);
  r->tile = g->plan.tile;
  return RDNA_OK;
}

/* ---- what becomes of it ---- */

/* What picture |i| was made with, NULL without memory. */
static char *describe(const imaging *g, int i) {
  char more[32] = "";
  if (g->options->grid) snprintf(more, sizeof more, ", Grid of: %d", g->request.count);
  return rdna__image_parameters(g->model, &g->request, i, g->folder, more);
}

/* Whether one file can be written, and said. */
static rdna_status check_file(const imaging *g, int i) {
  char path[PATH_BYTES];
  RDNA_TRY(name_file(g, i, path));
  RDNA_TRY(rdna__picture_check_path(path));
  json_t *said = g->options->json ? json_string(path) : NULL;
  if (g->options->json && !said)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "--json cannot say the name %s, which is no UTF-8", path);
  json_decref(said);
  return RDNA_OK;
}

static rdna_status open_own_upscaler(imaging *g) {
  const image_options *o = g->options;
  if (!o->upscale) return RDNA_OK;
  g->enlargement = (rdna__enlargement){.name = g->upscaler_name, .progress = show_tiles};
  return open_upscaler(g->device, o->upscale, o->model.type, &g->enlargement.upscaler, g->upscaler_name);
}

/* Whether what is drawn can be written, before it is. */
static rdna_status check_out(imaging *g) {
  const rdna_image_request *r = &g->request;
  int64_t columns = g->options->grid ? grid_columns(r->count) : 1, rows = (r->count + columns - 1) / columns;
  int64_t width = columns * r->width, height = g->options->grid ? rows * r->height : r->height;
  if (width > RDNA__PICTURE_MOST_SIDE || height > RDNA__PICTURE_MOST_SIDE || width * height > RDNA__PICTURE_MOST_PIXELS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a file of %lld x %lld pixels; up to %d of them, and %d a side, can be",
                      (long long)width, (long long)height, RDNA__PICTURE_MOST_PIXELS, RDNA__PICTURE_MOST_SIDE);
  const rdna__picture drawn = {.width = (int)width, .height = (int)height};
  if (g->enlargement.upscaler) RDNA_TRY(rdna__enlargement_size(&g->enlargement, &drawn, 0));
  for (int i = 0; i < files(g); i++) RDNA_TRY(check_file(g, i));
  char *text = describe(g, 0);
  if (!text) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's text");
  rdna_status status = rdna__picture_check_parameters(kind_of_out(g->options), text);
  free(text);
  return rdna__annotate(status, "the prompt, the negative one or the folder's name");
}

/* |picture| made larger in its place, if it is to be. */
static rdna_status enlarge(const imaging *g, rdna__picture *picture) {
  rdna__picture larger;
  if (!g->enlargement.upscaler) return RDNA_OK;
  rdna_status status = rdna__picture_enlarge(&g->enlargement, picture, &larger);
  end_progress();
  if (status != RDNA_OK) return status;
  rdna__picture_deinit(picture);
  *picture = larger;
  return RDNA_OK;
}

static rdna_status save(const imaging *g, int i, const float *values, int width, int height) {
  char path[PATH_BYTES];
  rdna__picture picture = {0};
  RDNA_TRY(name_file(g, i, path));
  RDNA_TRY(rdna__picture_of_values(values, width, height, &picture));
  picture.parameters = describe(g, i);
  rdna_status status =
      picture.parameters ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's text");
  if (status == RDNA_OK) status = enlarge(g, &picture);
  if (status == RDNA_OK) status = rdna__picture_save(path, &picture, (int)g->options->quality);
  rdna__picture_deinit(&picture);
  return status;
}

/* All pictures in one, row by row, about as many of them in a row as there are rows. */
static rdna_status save_grid(const imaging *g) {
  const rdna_image_request *r = &g->request;
  int columns = grid_columns(r->count), rows = (r->count + columns - 1) / columns;
  size_t width = (size_t)r->width, wide = width * (size_t)columns, plane = (size_t)r->height * (size_t)rows * wide;
  float *grid = malloc(3 * plane * sizeof *grid);
  if (!grid) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grid of pictures");
  for (size_t k = 0; k < 3 * plane; k++) grid[k] = -1;       /* black, where there is no picture */
  for (int row = 0; row < 3 * r->count * r->height; row++) { /* of a picture's channel */
    int y = row % r->height, channel = row / r->height % 3, i = row / r->height / 3;
    float *to =
        grid + (size_t)channel * plane + (size_t)(i / columns * r->height + y) * wide + (size_t)(i % columns) * width;
    memcpy(to, g->pictures + (size_t)row * width, width * sizeof *to);
  }
  rdna_status status = save(g, 0, grid, (int)wide, r->height * rows);
  free(grid);
  return status;
}

static rdna_status save_all(const imaging *g) {
  const rdna_image_request *r = &g->request;
  if (g->options->grid) return save_grid(g);
  for (int i = 0; i < r->count; i++)
    RDNA_TRY(save(g, i, g->pictures + (size_t)i * 3 * (size_t)r->width * (size_t)r->height, r->width, r->height));
  return RDNA_OK;
}

static int report(const imaging *g) {
  const rdna_image_request *r = &g->request;
  const rdna_device_info *device = rdna_device_get_info(g->device);
  char path[PATH_BYTES];
  if (g->options->plan) {
    if (g->options->json) return print_json(json_of_plan(&g->plan));
    print_plan(stdout, g);
    return EXIT_OK;
  }
  rdna_memory_stats stats;
  rdna_memory_get_stats(g->device, &stats);
  json_t *names = json_array();
  for (int i = 0; i < files(g); i++) {
    (void)!name_file(g, i, path); /* which check_out saw */
    if (g->options->json)
      json_array_append_new(names, json_string(path));
    else
      puts(path);
  }
  if (g->options->json)
    return print_json(json_pack(
        "{s:s, s:s, s:b, s:s, s:o, s:I, s:i, s:s, s:f, s:i, s:i, s:f, s:f, s:f, s:I, s:o}", "device", device->name,
        "driver", device->driver, "emulated", device->emulated, "model", g->info->family, "files", names, "seed",
        (json_int_t)r->seed, "steps", r->steps, "sampler", r->sampler, "guidance", r->guidance, "width", r->width,
        "height", r->height, "text_seconds", g->of_text, "steps_seconds", g->of_steps, "picture_seconds",
        g->of_pictures, "peak_bytes", (json_int_t)stats.peak_allocated, "plan", json_of_plan(&g->plan)));
  json_decref(names);
  fprintf(stderr, "%s: text %.1f s, %d steps of %s %.1f s, picture %.1f s, seed %llu\n", device->name, g->of_text,
          r->steps * r->count, r->sampler, g->of_steps, g->of_pictures, (unsigned long long)r->seed);
  return EXIT_OK;
}

/* ---- all of it ---- */

static rdna_status draw(imaging *g) {
  const rdna_image_request *r = &g->request;
  RDNA_TRY(open_chosen_device(&g->options->device, &g->device));
  RDNA_TRY(read_image_model(&g->options->model, &g->options->loras, &g->files));
  RDNA_TRY(read_adapters(g));
  RDNA_TRY(rdna_image_model_open(g->device, g->folder, &g->files->options, &g->model));
  g->info = rdna_image_model_get_info(g->model);
  if (!g->info->own_sampler && !g->options->sampler)
    fprintf(stderr, "rdna image: the model's own sampler is not there yet; %s takes its place\n", g->info->sampler);
  RDNA_TRY(prepare(g));
  RDNA_TRY(open_own_upscaler(g));
  RDNA_TRY(check_out(g));
  RDNA_TRY(make_plan(g));
  if (g->options->plan) return RDNA_OK;
  rdna_memory_reset_peaks(g->device);
  g->began = seconds();
  RDNA_TRY(warn_of_cut(g));
  size_t values = 3 * (size_t)r->width * (size_t)r->height * (size_t)r->count;
  g->pictures = malloc(values * sizeof *g->pictures + 1);
  if (!g->pictures) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d pictures", r->count);
  RDNA_TRY(rdna_image_model_draw(g->model, r, g->pictures));
  end_stage(g);
  end_progress();
  return save_all(g);
}

/* What is wrong with options together; NULL: nothing. */
static const char *misuse_of(const image_options *o) {
  if (o->mask && !o->init) return "--mask is of an --init picture, and there is none";
  if (o->strength >= 0 && !o->init) return "--strength is of the change to an --init picture, and there is none";
  if (o->model.controls.count != o->control_images.count) return "each --control asks for one --control-image";
  if (o->control_scales.count > 1 && o->control_scales.count != o->model.controls.count)
    return "--control-scale is given once for all, or once for each --control";
  if (!o->model.controls.count && (o->control_scales.count || o->control_start > 0 || o->control_end < 1))
    return "--control-scale, --control-start and --control-end are of a --control, and there is none";
  if (o->quality != RDNA__JPEG_QUALITY && kind_of_out(o) != RDNA__PICTURE_JPEG)
    return "--quality is of a JPEG, and --out names none";
  return NULL;
}

static int draw_chosen(const image_options *o, const char *folder, const char *prompt) {
  const char *misuse = misuse_of(o);
  if (misuse) {
    fprintf(stderr, "rdna image: %s\n", misuse);
    return EXIT_USAGE;
  }
  imaging g = {.options = o, .folder = folder, .prompt = prompt};
  rdna_status status = draw(&g);
  int exit_status = status == RDNA_OK ? report(&g) : fail_with_status();
  free(g.files);
  free(g.pictures);
  free(g.latents.values);
  free(g.init);
  free(g.mask);
  for (int i = 0; i < OPTION_TEXTS_MOST; i++) free(g.control_pictures[i]);
  for (int i = 0; i < OPTION_TEXTS_MOST; i++) free(g.looked_values[i]);
  for (int i = 0; i < OPTION_TEXTS_MOST; i++) rdna__picture_deinit(&g.reference_pictures[i]);
  rdna_image_upscaler_release(g.enlargement.upscaler);
  rdna_image_model_release(g.model);
  rdna_device_release(g.device);
  return exit_status;
}

/* Rows of options: of guidance by left out blocks. */
#define SKIP_OPTIONS(o)                                                                                     \
  {"--skip-guidance",                                                                                       \
   OPTION_NUMBER,                                                                                           \
   &o.skip_guidance,                                                                                        \
   "X",                                                                                                     \
   "guidance away from Stable Diffusion 3 without some blocks, such as 2.8 (0: none)",                      \
   0,                                                                                                       \
   1000},                                                                                                   \
      {"--skip-layers", OPTION_TEXT, &o.skip_layers, "LIST", "the blocks that are left out (7,8,9)", 0, 0}, \
      {"--skip-start", OPTION_NUMBER, &o.skip_start, "X", "behind which share of the steps (0.01)", 0, 1},  \
      {"--skip-end", OPTION_NUMBER, &o.skip_end, "X", "up to which share of the steps (0.2)", 0, 1}

int command_image(int argc, char **argv) {
  image_options o = {.device = DEVICE_CHOICE_DEFAULT,
                     .model = IMAGE_MODEL_CHOICE_DEFAULT,
                     .seed = -1,
                     .count = 1,
                     .clip_skip = 1,
                     .guidance = -1,
                     .strength = -1,
                     .quality = RDNA__JPEG_QUALITY,
                     .skip_start = -1,
                     .control_end = 1};
  const option_row options[] = {
      {"--negative", OPTION_TEXT, &o.negative, "TEXT", "what is not to be seen", 0, 0},
      {"--steps", OPTION_INTEGER, &o.steps, "N", "in which noise is taken away (20, lcm and FLUX schnell 4, dev 28)", 1,
       1000},
      {"--cfg", OPTION_NUMBER, &o.guidance, "X",
       "how closely the text is followed (7.5, XL 5, FLUX dev 3.5); up to 1 halves the work", 0, 1000},
      {"--cfg-rescale", OPTION_NUMBER, &o.rescale, "X",
       "the share of a guided answer that is only spread as the answer to the text is (0)", 0, 1},
      {"--pag", OPTION_NUMBER, &o.pag, "X", "guidance away from a U-Net with perturbed attention, such as 3 (0: none)",
       0, 1000},
      {"--pag-layers", OPTION_TEXT, &o.pag_layers, "LIST", "where it is perturbed: mid, down.1, up.0.2 … (mid)", 0, 0},
      SKIP_OPTIONS(o),
      {"--seed", OPTION_INTEGER, &o.seed, "N", "of the noise, as PyTorch's (any)", 0, 4294967295.0},
      {"--size", OPTION_TEXT, &o.size, "WxH", "in pixels (as the model was trained with)", 0, 0},
      {"--sampler", OPTION_CHOICE, &o.sampler,
       "ddim|ddpm|pndm|euler|euler_ancestral|heun|dpmpp_2m|dpmpp_2m_sde|dpmpp_3m_sde|dpmpp_sde|unipc|lcm",
       "(the model's, else dpmpp_2m)", 0, 0},
      {"--schedule", OPTION_CHOICE, &o.spacing, "simple|karras|exponential|beta|ays|sgm_uniform",
       "how noise levels are spaced (the model's)", 0, 0},
      {"--clip-skip", OPTION_INTEGER, &o.clip_skip, "N", "take what the text encoder's last layer but N - 1 says (1)",
       1, 12},
      {"--count", OPTION_INTEGER, &o.count, "N", "pictures, with seeds one after another (1)", 1, 64},
      {"--grid", OPTION_FLAG, &o.grid, NULL, "put them into one file", 0, 0},
      {"--out", OPTION_TEXT, &o.out, "FILE", "a .png or .jpg, with several pictures numbered (rdna-SEED.png)", 0, 0},
      {"--quality", OPTION_INTEGER, &o.quality, "N", "of a .jpg (95)", 1, 100},
      {"--init", OPTION_TEXT, &o.init, "FILE", "change this picture, a PNG or JPEG", 0, 0},
      {"--image", OPTION_TEXTS, &o.images, "FILE", "look at this picture, too, a PNG or JPEG; several times", 0, 0},
      {"--strength", OPTION_NUMBER, &o.strength, "X",
       "of that change: the share of steps that is taken (0.75, with a mask 1)", 0, 1},
      {"--latents", OPTION_TEXT, &o.latents, "FILE.npy", "begin with this noise", 0, 0},
      {"--dump", OPTION_TEXT, &o.dump, "FOLDER", "write text states, noise, timesteps and each step as .npy", 0, 0},
      {"--mask", OPTION_TEXT, &o.mask, "FILE", "draw anew what is bright in this, of the picture of --init", 0, 0},
      {"--plain", OPTION_FLAG, &o.plain, NULL, "brackets in texts weigh nothing, and long texts are cut", 0, 0},
      {"--lora", OPTION_TEXTS, &o.loras, "FILE[:SCALE]", "change the model's weights; several times", 0, 0},
      {"--control", OPTION_TEXTS, &o.model.controls, "FOLDER", "a ControlNet, in a folder or one file; several times",
       0, 0},
      {"--control-image", OPTION_TEXTS, &o.control_images, "FILE", "what it is shown; one for each --control", 0, 0},
      {"--control-scale", OPTION_TEXTS, &o.control_scales, "X", "how much it counts, for all or for each (1)", 0, 0},
      {"--control-start", OPTION_NUMBER, &o.control_start, "X", "from which share of the steps on (0)", 0, 1},
      {"--control-end", OPTION_NUMBER, &o.control_end, "X", "up to which share of the steps (1)", 0, 1},
      {"--ip-adapter", OPTION_TEXTS, &o.adapters, "FILE:IMAGE[:SCALE]",
       "a picture as a prompt, by an IP-Adapter; several times", 0, 0},
      {"--ip-encoder", OPTION_TEXT, &o.ip_encoder, "FOLDER", "CLIP's encoder of pictures that they read by", 0, 0},
      IMAGE_MODEL_OPTIONS(o.model),
      {"--refine-from", OPTION_NUMBER, &o.refine_from, "X", "behind which share of the noise levels it does (0.8)", 0,
       1},
      {"--tile", OPTION_INTEGER, &o.tile, "N",
       "make the picture of tiles of N x N latents, in less memory (as many as must be)", 4, 1024},
      {"--upscale", OPTION_TEXT, &o.upscale, "[NAME=]FILE", "make it larger by this network, as rdna upscale does", 0,
       0},
      {"--plan", OPTION_FLAG, &o.plan, NULL, "print what the picture will take of the device, and end", 0, 0},
      {"--json", OPTION_FLAG, &o.json, NULL, "say what was done as JSON", 0, 0},
      DEVICE_OPTIONS(o.device),
  };
  const command_line line = {
      "rdna image",
      "Draws what a text says, with Stable Diffusion (1, 2, XL, 3, 3.5), FLUX, Z-Image or Qwen-Image of "
      "diffusers, or in one file.",
      "MODEL PROMPT",
      2,
      2,
      options,
      sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  return draw_chosen(&o, positionals[0], positionals[1]);
}
