/* The autoencoder's interface: pictures and latents in host memory, one at a time, whole or by tiles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "model/image/autoencoder.h"
#include "model/image/tiles.h"
#include "rdna/image.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, MOST_SIDE = 1 << 15, MOST_COUNT = 1 << 10 };

struct rdna_image_autoencoder {
  rdna__network network;
  rdna__autoencoder_settings set;
  rdna_image_autoencoder_info info;
  rdna__autoencoder_half encoder, decoder;
};

/* ---- making one ---- */

/* What FLUX.2's latents are normed by is in two tensors. A rehearsal has no values. */
static rdna_status read_statistics(rdna__component *c, rdna__autoencoder_settings *set) {
  static const char *const names[] = {"running_mean", "running_var"};
  const int64_t count = rdna__autoencoder_latents(set);
  float values[2][RDNA__AUTOENCODER_LATENTS];
  rdna_stream *stream = rdna_device_default_stream(c->network->device);
  for (int k = 0; k < 2; k++) {
    rdna_tensor t;
    RDNA_TRY(rdna__component_load(c, "bn", names[k], RDNA_F32, 1, &count, &t));
    RDNA_TRY(rdna_copy_to_host(stream, values[k], t.data, (size_t)count * sizeof(float)));
  }
  RDNA_TRY(rdna__component_leave(c, "bn.num_batches_tracked"));
  RDNA_TRY(rdna_stream_synchronize(stream));
  for (int i = 0; i < count && !rdna__device_is_rehearsal(c->network->device); i++) {
    if (!(values[1][i] >= 0) || !isfinite(values[0][i]) || !isfinite(values[1][i]))
      return rdna__fail(RDNA_BAD_DATA, "value %d of 'bn.running_var' or 'bn.running_mean' is %g or %g", i,
                        (double)values[1][i], (double)values[0][i]);
    set->mean[i] = values[0][i];
    set->deviation[i] = sqrt(values[1][i] + set->epsilon);
  }
  return RDNA_OK;
}

/* Files may have the decoder of a tiny one alone. */
static rdna_status check_encoder(const rdna_image_autoencoder *a, rdna__component *c) {
  if (a->set.kind != RDNA__AUTOENCODER_TINY || rdna__component_rank(c, "encoder.layers.0", "weight") >= 0)
    return RDNA_OK;
  return rdna__fail(
      RDNA_UNSUPPORTED,
      "it has a decoder alone, and a picture to begin with asks for its encoder, too, which the folder or "
      "the file of diffusers has");
}

static rdna_status load(rdna_image_autoencoder *a, rdna__component *c, bool encodes) {
  RDNA_TRY(rdna__autoencoder_settings_read(c->settings, &a->set));
  if (a->set.upcast && a->network.dtype == RDNA_F16)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "the setting 'force_upcast' says that values leave the range of f16; ask for bf16 or f32");
  if (a->set.kind == RDNA__AUTOENCODER_FLUX2) RDNA_TRY(read_statistics(c, &a->set));
  if (encodes) RDNA_TRY(check_encoder(a, c));
  RDNA_TRY(rdna__autoencoder_load(c, &a->set, false, &a->decoder));
  if (encodes) {
    RDNA_TRY(rdna__autoencoder_load(c, &a->set, true, &a->encoder));
  } else {
    RDNA_TRY(rdna__component_leave(c, "encoder."));
    RDNA_TRY(rdna__component_leave(c, "quant_conv."));
  }
  return rdna__component_check_all_read(c);
}

static rdna_status open_all(rdna_image_autoencoder *a, const char *path, bool encodes) {
  rdna__component component;
  RDNA_TRY(rdna__component_open(path, "diffusion_pytorch_model", &a->network, &component));
  rdna_status status = rdna__annotate(load(a, &component, encodes), "%s", path);
  rdna__component_close(&component);
  if (status != RDNA_OK) return status;
  a->info = (rdna_image_autoencoder_info){.in_channels = a->set.in_channels,
                                          .out_channels = a->set.out_channels,
                                          .latent_channels = rdna__autoencoder_latents(&a->set),
                                          .factor = rdna__autoencoder_factor(&a->set),
                                          .scaling = a->set.scaling,
                                          .shift = a->set.shift,
                                          .encodes = encodes,
                                          .weights_bytes = a->network.bytes};
  return RDNA_OK;
}

static rdna_status create(rdna_device *device, const char *path, rdna_dtype dtype, bool encodes,
                          rdna_image_autoencoder **out_autoencoder) {
  rdna_image_autoencoder *a = calloc(1, sizeof *a);
  if (!a) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an autoencoder");
  a->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype};
  rdna_status status = open_all(a, path, encodes);
  if (status == RDNA_OK)
    *out_autoencoder = a;
  else
    rdna_image_autoencoder_release(a);
  return status;
}

rdna_status rdna_image_autoencoder_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                                          bool encodes, rdna_image_autoencoder **out_autoencoder) {
  char path[PATH_BYTES];
  if (!device || !folder || !name || !out_autoencoder || (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_autoencoder_create needs a device, two names of folders, f32, "
                      "f16 or bf16, and a place");
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %.80s is too long", name);
  return create(device, path, dtype, encodes, out_autoencoder);
}

/* |path|, or the part of the file that it is. */
static rdna_status path_of(const char *path, char out[PATH_BYTES]) {
  const char *part = rdna__component_is_file(path) ? "/" RDNA__CHECKPOINT_TINY : "";
  if (snprintf(out, PATH_BYTES, "%s%s", path, part) < PATH_BYTES) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of an autoencoder is too long");
}

rdna_status rdna__autoencoder_look(const char *path, rdna__autoencoder_settings *out) {
  char part[PATH_BYTES];
  rdna__network none = {0};
  rdna__component c;
  RDNA_TRY(path_of(path, part));
  RDNA_TRY(rdna__component_open(part, "diffusion_pytorch_model", &none, &c));
  rdna_status status = rdna__annotate(rdna__autoencoder_settings_read(c.settings, out), "%s", path);
  out->decodes_alone =
      out->kind == RDNA__AUTOENCODER_TINY && rdna__component_rank(&c, "encoder.layers.0", "weight") < 0;
  rdna__component_close(&c);
  return status;
}

rdna_status rdna__autoencoder_open(rdna_device *device, const char *path, rdna_dtype dtype, bool encodes,
                                   rdna_image_autoencoder **out_autoencoder) {
  char part[PATH_BYTES];
  RDNA_TRY(path_of(path, part));
  return create(device, part, dtype, encodes, out_autoencoder);
}

void rdna__autoencoder_borrow(rdna_image_autoencoder *a, const rdna__autoencoder_settings *own) {
  memcpy(a->set.mean, own->mean, sizeof a->set.mean);
  memcpy(a->set.deviation, own->deviation, sizeof a->set.deviation);
}

void rdna_image_autoencoder_release(rdna_image_autoencoder *a) {
  if (!a) return;
  rdna__network_deinit(&a->network);
  rdna_device_release(a->network.device);
  free(a);
}

const rdna_image_autoencoder_info *rdna_image_autoencoder_get_info(const rdna_image_autoencoder *a) { return &a->info; }

/* ---- a pass ---- */

typedef struct work {
  const rdna_image_autoencoder *a;
  bool encodes;
} work;

/* |out|, an image of the pass, is that of |in| (channels, height, width) in host memory. */
static rdna_status bring(rdna__image_pass *pass, const float *in, int64_t channels, int64_t height, int64_t width,
                         rdna_tensor *out) {
  const int64_t shape[] = {1, channels, height, width};
  rdna_tensor there;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, shape, &there));
  RDNA_TRY(rdna_copy_to_device(pass->stream, there.data, in, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&there))));
  RDNA_TRY(rdna__pass_image(pass, 1, channels, height, width, out));
  RDNA_TRY(rdna_op_copy(pass->stream, &there, out));
  return rdna__pass_drop(pass, &there);
}

/* Where the value (channel, y, x) of latents that networks see is among (channels, height p, width p) of the
 * autoencoder's: its channel counts those and, within each, the places of a patch. */
static size_t place_of(const rdna__autoencoder_settings *s, int64_t channel, int64_t y, int64_t x, int64_t height,
                       int64_t width) {
  int64_t p = s->patch, places = p * p, row = y * p + channel % places / p, column = x * p + channel % p;
  return (size_t)((channel / places * height * p + row) * width * p + column);
}

/* |out|, what the autoencoder makes pictures of, of latents (…, height, width) that networks see. */
static void unfold(const rdna__autoencoder_settings *s, const float *in, int64_t height, int64_t width, float *out) {
  for (int64_t c = 0; c < rdna__autoencoder_latents(s); c++)
    for (int64_t y = 0; y < height; y++)
      for (int64_t x = 0; x < width; x++)
        out[place_of(s, c, y, x, height, width)] = (float)(*in++ * s->deviation[c] + s->mean[c]);
}

static rdna_status take_back(rdna__image_pass *pass, rdna_tensor *x, float *out) {
  rdna_tensor plain;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, x->shape, &plain));
  RDNA_TRY(rdna_op_copy(pass->stream, x, &plain));
  return rdna_copy_to_host(pass->stream, out, plain.data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&plain)));
}

static rdna_status run(rdna__image_pass *pass, const work *w, const float *in, int64_t height, int64_t width,
                       float *out) {
  const rdna__autoencoder_settings *set = &w->a->set;
  rdna_tensor x;
  if (w->encodes) {
    RDNA_TRY(bring(pass, in, set->in_channels, height, width, &x));
    RDNA_TRY(rdna__autoencoder_encode(pass, &w->a->encoder, &x));
  } else {
    RDNA_TRY(bring(pass, in, set->latent_channels, height * set->patch, width * set->patch, &x));
    RDNA_TRY(rdna__autoencoder_decode(pass, &w->a->decoder, &x));
  }
  return take_back(pass, &x, out);
}

static rdna_status run_tile(void *context, const float *in, int64_t height, int64_t width, float *out) {
  const work *w = context;
  const rdna__autoencoder_settings *set = &w->a->set;
  size_t count = w->encodes ? 0 : (size_t)rdna__autoencoder_latents(set) * (size_t)height * (size_t)width;
  float *latents = count ? malloc(count * sizeof *latents) : NULL;
  if (count && !latents) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for latents");
  if (latents) unfold(set, in, height, width, latents);
  rdna__image_pass pass = {.stream = rdna_device_default_stream(w->a->network.device),
                           .dtype = w->a->network.dtype,
                           .holder = "an autoencoder"};
  rdna_status status = run(&pass, w, latents ? latents : in, height, width, out);
  rdna_status waited = rdna_stream_synchronize(pass.stream);
  status = rdna__pass_end(&pass, status);
  free(latents);
  return status == RDNA_OK ? waited : status;
}

/* Sizes are of latents. */
static rdna_status check_sizes(const char *function, int64_t count, int64_t height, int64_t width, int tile) {
  if (count < 1 || count > MOST_COUNT || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %lld latents of %lld x %lld; 1 to %d of up to %d x %d can be had",
                      function, (long long)count, (long long)height, (long long)width, MOST_COUNT, MOST_SIDE,
                      MOST_SIDE);
  if (tile >= 0 && tile <= MOST_SIDE && tile % 4 == 0) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "%s: tiles of %d latents; a multiple of 4 up to %d, or 0 for none, can be had", function, tile,
                    MOST_SIDE);
}

static int64_t tile_of(int tile, int64_t height, int64_t width) {
  return tile ? tile : height > width ? height : width;
}

rdna_status rdna_image_autoencoder_decode(rdna_image_autoencoder *a, const float *latents, int count, int height,
                                          int width, int tile, float *out_pictures) {
  if (!a || !latents || !out_pictures)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_autoencoder_decode needs an autoencoder, latents and a place for pictures");
  RDNA_TRY(check_sizes("rdna_image_autoencoder_decode", count, height, width, tile));
  work w = {a, false};
  const rdna__tiling tiling = {a->info.latent_channels,
                               a->set.out_channels,
                               height,
                               width,
                               tile_of(tile, height, width),
                               a->info.factor,
                               1,
                               run_tile,
                               &w};
  size_t in = (size_t)a->info.latent_channels * (size_t)height * (size_t)width;
  size_t out = (size_t)a->set.out_channels * (size_t)height * (size_t)width * (size_t)(a->info.factor * a->info.factor);
  for (int i = 0; i < count; i++)
    RDNA_TRY(rdna__tiles_run(&tiling, latents + (size_t)i * in, out_pictures + (size_t)i * out));
  return RDNA_OK;
}

/* |moments| (2 channels, …) as latents (…, height, width) for a network; |noise|, of the latents' shape, NULL: their
 * means, which are all that a tiny one makes. */
static void draw(const rdna__autoencoder_settings *set, const float *moments, const float *noise, int64_t height,
                 int64_t width, float *out) {
  int64_t channels = rdna__autoencoder_latents(set);
  const float *logarithms = moments + channels * height * width;
  for (int64_t c = 0, i = 0; c < channels; c++)
    for (int64_t y = 0; y < height; y++)
      for (int64_t x = 0; x < width; x++, i++) {
        size_t at = place_of(set, c, y, x, height, width);
        double value = moments[at];
        /* with limits, as the encoder was trained with */
        if (noise) value += exp(fmin(fmax(logarithms[at], -30), 20) / 2) * noise[i];
        out[i] = (float)((value - set->mean[c]) / set->deviation[c]);
      }
}

rdna_status rdna_image_autoencoder_encode(rdna_image_autoencoder *a, const float *pictures, int count, int height,
                                          int width, int tile, const float *noise, float *out_latents) {
  if (!a || !pictures || !out_latents || !a->info.encodes)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_autoencoder_encode needs an autoencoder that was made to "
                      "encode, pictures and a place for latents");
  int factor = a->info.factor;
  if (height % factor != 0 || width % factor != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture of %d x %d; height and width must be multiples of %d", height,
                      width, factor);
  RDNA_TRY(check_sizes("rdna_image_autoencoder_encode", count, height / factor, width / factor, tile));
  size_t in = (size_t)a->set.in_channels * (size_t)height * (size_t)width;
  size_t out = (size_t)a->info.latent_channels * (size_t)(height / factor) * (size_t)(width / factor);
  float *moments = malloc(2 * out * sizeof *moments);
  if (!moments) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's latents");
  work w = {a, true};
  bool tiny = a->set.kind == RDNA__AUTOENCODER_TINY;
  const rdna__tiling tiling = {a->set.in_channels,
                               (tiny ? 1 : 2) * a->set.latent_channels,
                               height,
                               width,
                               (int64_t)factor * tile_of(tile, height / factor, width / factor),
                               1,
                               factor / a->set.patch,
                               run_tile,
                               &w};
  rdna_status status = RDNA_OK;
  for (int i = 0; i < count && status == RDNA_OK; i++) {
    status = rdna__tiles_run(&tiling, pictures + (size_t)i * in, moments);
    const float *draws = noise && !tiny ? noise + (size_t)i * out : NULL;
    if (status == RDNA_OK)
      draw(&a->set, moments, draws, height / factor, width / factor, out_latents + (size_t)i * out);
  }
  free(moments);
  return status;
}
