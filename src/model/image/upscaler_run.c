/* The upscaler's interface: a picture in host memory, tile by tile. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "device/traits.h"
#include "model/image/tiles.h"
#include "model/image/upscaler.h"
#include "model/weights/pth.h"
#include "rdna/image_upscaler.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { COLOURS = 3, TILE = 256, MARGIN = 16, MOST_TILE = 4096, MOST_SIDE = 1 << 15 };

struct rdna_image_upscaler {
  rdna__network network;
  rdna__upscaler_network layers;
  rdna_image_upscaler_info info;
};

/* ---- making one ---- */

static rdna_status load(rdna_image_upscaler *u, rdna__component *c) {
  rdna__upscaler_settings *s = &u->layers.set;
  RDNA_TRY(rdna__upscaler_settings_read(c->tensors, s));
  RDNA_TRY(rdna__upscaler_load(c, &u->layers));
  u->info = (rdna_image_upscaler_info){.network = s->kind == RDNA__UPSCALER_RRDB ? "RRDBNet" : "SRVGGNetCompact",
                                       .scale = s->scale,
                                       .blocks = s->blocks,
                                       .features = s->features,
                                       .weights_bytes = u->network.bytes};
  return RDNA_OK;
}

static rdna_status open_file(rdna_image_upscaler *u, const char *path) {
  rdna__component c = {.network = &u->network};
  RDNA_TRY(rdna__pth_open_either(path, &c.tensors));
  rdna_status status = load(u, &c);
  rdna__component_close(&c);
  return status;
}

rdna_status rdna_image_upscaler_create(rdna_device *device, const char *path, rdna_dtype dtype,
                                       rdna_image_upscaler **out_upscaler) {
  if (!device || !path || !out_upscaler)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_upscaler_create needs a device, a path and a place");
  if (dtype == RDNA_DTYPE_COUNT)
    dtype = rdna__device_traits_of(rdna_device_get_info(device))->is_gpu ? RDNA_F16 : RDNA_F32;
  if (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "an upscaler computes in f32, f16 or bf16, not in %s",
                      rdna_dtype_name(dtype));
  rdna_image_upscaler *u = calloc(1, sizeof *u);
  if (!u) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an upscaler");
  u->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype};
  rdna_status status = rdna__annotate(open_file(u, path), "%s", path);
  if (status == RDNA_OK)
    *out_upscaler = u;
  else
    rdna_image_upscaler_release(u);
  return status;
}

void rdna_image_upscaler_release(rdna_image_upscaler *u) {
  if (!u) return;
  rdna__upscaler_deinit(&u->layers);
  rdna__network_deinit(&u->network);
  rdna_device_release(u->network.device);
  free(u);
}

const rdna_image_upscaler_info *rdna_image_upscaler_get_info(const rdna_image_upscaler *u) { return &u->info; }

/* ---- a tile ---- */

typedef struct work {
  const rdna_image_upscaler *upscaler;
  const rdna_image_upscaler_input *input;
  int done, tiles;
} work;

/* |values| = |values| p + q */
static rdna_status stretch(rdna__image_pass *pass, const rdna_tensor *values, double p, double q) {
  return rdna_op_map(pass->stream, RDNA_MAP_AFFINE, values, rdna_scalar_real(p), rdna_scalar_real(q), values);
}

static rdna_status run(rdna__image_pass *pass, const rdna_image_upscaler *u, const float *in, int64_t height,
                       int64_t width, float *out) {
  const int64_t shape[] = {1, COLOURS, height, width};
  rdna_tensor picture, made;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, shape, &picture));
  RDNA_TRY(
      rdna_copy_to_device(pass->stream, picture.data, in, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&picture))));
  RDNA_TRY(stretch(pass, &picture, 0.5, 0.5));
  RDNA_TRY(rdna__upscaler_pass(pass, &u->layers, &picture, &made));
  RDNA_TRY(stretch(pass, &made, 2, -1));
  return rdna_copy_to_host(pass->stream, out, made.data, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&made)));
}

static rdna_status tell(const work *w) {
  const rdna_image_upscaler_input *i = w->input;
  if (!i->progress || i->progress(i->data, w->done, w->tiles)) return RDNA_OK;
  return rdna__fail(RDNA_CANCELLED, "the picture was cancelled");
}

static rdna_status run_tile(void *context, const float *in, int64_t height, int64_t width, float *out) {
  work *w = context;
  rdna_stream *stream = rdna_device_default_stream(w->upscaler->network.device);
  rdna__image_pass pass = {.stream = stream, .dtype = w->upscaler->network.dtype, .holder = "an upscaler"};
  RDNA_TRY(tell(w));
  rdna_status status = run(&pass, w->upscaler, in, height, width, out);
  rdna_status waited = rdna_stream_synchronize(stream); /* what is copied from and to is the caller's */
  status = rdna__pass_end(&pass, status);
  w->done++;
  return status == RDNA_OK ? waited : status;
}

/* ---- a picture ---- */

static int64_t up_to_multiple(int64_t size, int64_t of) { return (size + of - 1) / of * of; }

/* |i|, which may be up to |size| - 1 behind the end, as if the picture were mirrored there; of one pixel itself. */
static int64_t mirrored(int64_t i, int64_t size) {
  if (i < size) return i;
  return 2 * (size - 1) - i > 0 ? 2 * (size - 1) - i : 0;
}

/* |picture| (3, height, width) with what is behind its end mirrored. */
static void widen(const float *picture, int64_t height, int64_t width, int64_t out_height, int64_t out_width,
                  float *out) {
  for (int64_t c = 0; c < COLOURS; c++)
    for (int64_t y = 0; y < out_height; y++)
      for (int64_t x = 0; x < out_width; x++)
        *out++ = picture[(c * height + mirrored(y, height)) * width + mirrored(x, width)];
}

/* |out| (3, height, width) of the larger |made|. */
static void cut(const float *made, int64_t made_height, int64_t made_width, int64_t height, int64_t width, float *out) {
  for (int64_t c = 0; c < COLOURS; c++)
    for (int64_t y = 0; y < height; y++)
      memcpy(out + (c * height + y) * width, made + (c * made_height + y) * made_width, (size_t)width * sizeof *out);
}

static rdna_status run_tiles(work *w, const rdna__tiling *t, const float *in, float *out) {
  int64_t rows = (t->height + t->tile - 1) / t->tile, columns = (t->width + t->tile - 1) / t->tile;
  w->tiles = (int)(rows * columns);
  RDNA_TRY(rdna__tiles_run_apart(t, MARGIN, in, out));
  return tell(w);
}

/* A picture whose sides are no multiples of what is gathered is widened before. */
static rdna_status run_widened(work *w, const rdna__tiling *t, float *out) {
  const rdna_image_upscaler_input *i = w->input;
  int64_t pixels = COLOURS * t->height * t->width;
  float *in = malloc((size_t)pixels * sizeof *in), *made = malloc((size_t)(pixels * t->up * t->up) * sizeof *made);
  rdna_status status = in && made ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a larger picture");
  if (status == RDNA_OK) {
    widen(i->picture, i->height, i->width, t->height, t->width, in);
    status = run_tiles(w, t, in, made);
  }
  if (status == RDNA_OK) cut(made, t->height * t->up, t->width * t->up, i->height * t->up, i->width * t->up, out);
  free(in);
  free(made);
  return status;
}

rdna_status rdna_image_upscaler_run(rdna_image_upscaler *u, const rdna_image_upscaler_input *input, float *out) {
  if (!u || !input || !out)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_upscaler_run needs an upscaler, a picture and a place");
  rdna_image_upscaler_input i;
  RDNA_TRY(RDNA__OPTIONS("rdna_image_upscaler_run", "input", input, &i));
  if (!i.picture || i.height < 1 || i.width < 1 || i.height > MOST_SIDE || i.width > MOST_SIDE)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture of %d x %d to be enlarged; sides are 1 to %d", i.width,
                      i.height, MOST_SIDE);
  if (i.tile < 0 || i.tile > MOST_TILE || i.tile % 4 != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "tiles of %d pixels; multiples of 4 up to %d can be had, and 0 for %d",
                      i.tile, MOST_TILE, TILE);
  int64_t gathered = u->layers.set.gathered;
  work w = {u, &i, 0, 0};
  const rdna__tiling tiling = {.in_channels = COLOURS,
                               .out_channels = COLOURS,
                               .height = up_to_multiple(i.height, gathered),
                               .width = up_to_multiple(i.width, gathered),
                               .tile = i.tile ? i.tile : TILE,
                               .up = u->info.scale,
                               .down = 1,
                               .work = run_tile,
                               .context = &w};
  bool whole = tiling.height == i.height && tiling.width == i.width;
  return whole ? run_tiles(&w, &tiling, i.picture, out) : run_widened(&w, &tiling, out);
}
