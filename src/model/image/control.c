/* A ControlNet: the first half of a U-Net, which is shown a picture, and windows of 1 x 1 on all that it keeps:
 *
 *     picture -- windows that halve it -- seen
 *                                          |
 *                           conv_in ----- (+) -- stage 0 --  …  -- middle
 *                                          |        |                |        each through a window of 1 x 1, to be
 *                                       outputs 0, 1, …            the last   added to the U-Net's                   */
#include "model/image/control.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/options.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, MOST_SIDE = 1 << 14, MOST_WINDOWS = 2 * RDNA__CONTROL_LEVELS };

struct rdna_image_control {
  rdna_image_unet half; /* without a way up */
  rdna__control_settings set;
  rdna_image_control_info info;
  rdna__image_conv sight[MOST_WINDOWS]; /* (sight_count) */
  int sight_count;
  rdna__image_conv outputs[RDNA__UNET_SKIPS + 1]; /* (info.outputs), the last of which is the middle's */
  rdna_tensor seen;                               /* (1, channels, height, width); data NULL: nothing yet */
};

/* ---- loading ---- */

static rdna_status load_sight(rdna_image_control *k, rdna__component *c, const char *name, int in, int out,
                              int stride) {
  const rdna__image_window window = {in, out, 3, stride, 1, 1};
  return rdna__image_load_conv(c, "controlnet_cond_embedding", name, &window, &k->sight[k->sight_count++]);
}

static rdna_status load_sights(rdna_image_control *k, rdna__component *c) {
  const rdna__control_settings *s = &k->set;
  char name[32];
  RDNA_TRY(load_sight(k, c, "conv_in", 3, s->channels[0], 1));
  for (int i = 0; i + 1 < s->levels; i++) {
    snprintf(name, sizeof name, "blocks.%d", 2 * i);
    RDNA_TRY(load_sight(k, c, name, s->channels[i], s->channels[i], 1));
    snprintf(name, sizeof name, "blocks.%d", 2 * i + 1);
    RDNA_TRY(load_sight(k, c, name, s->channels[i], s->channels[i + 1], 2));
  }
  return load_sight(k, c, "conv_out", s->channels[s->levels - 1], k->half.set.channels[0], 1);
}

static rdna_status load_output(rdna_image_control *k, rdna__component *c, int channels) {
  const rdna__image_window one = {channels, channels, 1, 1, 0, 0};
  char name[32];
  int i = k->info.outputs++;
  snprintf(name, sizeof name, "controlnet_down_blocks.%d", i);
  return rdna__image_load_conv(c, "", name, &one, &k->outputs[i]);
}

static rdna_status load_outputs(rdna_image_control *k, rdna__component *c) {
  const rdna__unet_settings *s = &k->half.set;
  int last = s->channels[s->stages - 1];
  RDNA_TRY(load_output(k, c, s->channels[0]));
  for (int i = 0; i < s->stages; i++) /* what halves a stage's image keeps its channels */
    for (int j = 0; j < s->layers[i] + (i + 1 < s->stages); j++) RDNA_TRY(load_output(k, c, s->channels[i]));
  const rdna__image_window one = {last, last, 1, 1, 0, 0};
  return rdna__image_load_conv(c, "", "controlnet_mid_block", &one, &k->outputs[k->info.outputs++]);
}

static rdna_status load(rdna_image_control *k, rdna__component *c) {
  RDNA_TRY(rdna__annotate(rdna__control_settings_read(c->settings, &k->half.set, &k->set), "config.json"));
  RDNA_TRY(rdna__unet_load_half(&k->half, c));
  RDNA_TRY(load_sights(k, c));
  RDNA_TRY(load_outputs(k, c));
  k->info.in_channels = k->half.set.in_channels;
  k->info.factor = 1 << (k->set.levels - 1);
  k->info.weights_bytes = k->half.network.bytes;
  return rdna__component_check_all_read(c);
}

/* A file is taken for a ControlNet whatever is in it. */
static rdna_status open_component(const char *path, rdna__network *network, rdna__component *out) {
  char part[PATH_BYTES];
  if (snprintf(part, sizeof part, "%s/" RDNA__CHECKPOINT_CONTROL, path) >= PATH_BYTES)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of a ControlNet is too long");
  return rdna__component_open(rdna__component_is_file(path) ? part : path, "diffusion_pytorch_model", network, out);
}

static rdna_status open_control(rdna_image_control *k, const char *path) {
  rdna__component c;
  RDNA_TRY(open_component(path, &k->half.network, &c));
  rdna_status status = rdna__annotate(load(k, &c), "%s", path);
  rdna__component_close(&c);
  return status;
}

rdna_status rdna_image_control_create(rdna_device *device, const char *path, rdna_dtype dtype,
                                      rdna_image_control **out_control) {
  if (!device || !path || !out_control)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_control_create needs a device, a path and a place");
  if (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a ControlNet computes in f32, f16 or bf16, not in %s",
                      rdna_dtype_name(dtype));
  rdna_image_control *k = calloc(1, sizeof *k);
  if (!k) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a ControlNet");
  k->half.network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype};
  rdna_status status = open_control(k, path);
  if (status == RDNA_OK)
    *out_control = k;
  else
    rdna_image_control_release(k);
  return status;
}

static void forget(rdna_image_control *k) {
  if (k->seen.data) (void)!rdna_memory_free(k->half.network.device, k->seen.data);
  k->seen.data = NULL;
}

void rdna_image_control_release(rdna_image_control *k) {
  if (!k) return;
  forget(k);
  rdna__unet_deinit(&k->half);
  free(k);
}

const rdna_image_control_info *rdna_image_control_get_info(const rdna_image_control *k) { return &k->info; }

static rdna_status check_fit(const rdna__unet_settings *own, const rdna__unet_settings *unet) {
  bool same = own->stages == unet->stages && own->text_width == unet->text_width &&
              own->added_width == unet->added_width && own->number_width == unet->number_width;
  for (int i = 0; same && i < own->stages; i++)
    same = own->channels[i] == unet->channels[i] && own->layers[i] == unet->layers[i];
  if (!same || own->guidance_width)
    return rdna__fail(RDNA_BAD_DATA,
                      "the ControlNet was made for another version of the model: it reads %d values of a token and has "
                      "%d stages from %d channels on, and the U-Net reads %d and has %d from %d on",
                      own->text_width, own->stages, own->channels[0], unet->text_width, unet->stages,
                      unet->channels[0]);
  if (own->in_channels <= unet->in_channels) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the ControlNet reads %d channels of a sample, and the U-Net %d", own->in_channels,
                    unet->in_channels);
}

rdna_status rdna__control_fits(const char *path, const rdna__unet_settings *unet) {
  rdna__network none = {0};
  rdna__component c;
  rdna__unet_settings own;
  rdna__control_settings more;
  RDNA_TRY(open_component(path, &none, &c));
  rdna_status status = rdna__control_settings_read(c.settings, &own, &more);
  if (status == RDNA_OK) status = check_fit(&own, unet);
  rdna__component_close(&c);
  return rdna__annotate(status, "%s", path);
}

/* ---- pictures ---- */

static rdna_status put_picture(rdna_image_control *k, rdna__image_pass *pass, const float *picture, int height,
                               int width, rdna_tensor *out) {
  const int64_t shape[] = {1, 3, height, width};
  rdna_tensor given;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 4, shape, &given));
  RDNA_TRY(
      rdna_copy_to_device(pass->stream, given.data, picture, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&given))));
  RDNA_TRY(rdna__pass_image(pass, 1, 3, height, width, out));
  for (int i = 0; i < 3; i++) {
    rdna_tensor from = given, to = *out;
    from.shape[1] = to.shape[1] = 1;
    from.data = (char *)given.data + (k->set.reversed ? 2 - i : i) * given.stride[1] * (int64_t)sizeof(float);
    to.data = (char *)out->data + i * out->stride[1] * (int64_t)rdna_dtype_block_bytes(out->dtype);
    RDNA_TRY(rdna_op_copy(pass->stream, &from, &to));
  }
  return rdna__pass_drop(pass, &given);
}

static rdna_status see(rdna_image_control *k, rdna__image_pass *pass, const float *picture, int height, int width) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_device *device = k->half.network.device;
  rdna_tensor x, next;
  RDNA_TRY(put_picture(k, pass, picture, height, width, &x));
  for (int i = 0; i < k->sight_count; i++) {
    RDNA_TRY(rdna__image_conv_run(pass, &k->sight[i], &x, &next));
    if (i + 1 < k->sight_count) RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_SILU, &next, zero, zero, &next));
    RDNA_TRY(rdna__pass_drop(pass, &x));
    x = next;
  }
  rdna_tensor seen = x;
  RDNA_TRY(rdna_memory_alloc_named(device, rdna_dtype_bytes(x.dtype, rdna_tensor_count(&x)), NULL, "a ControlNet",
                                   &seen.data));
  k->seen = seen;
  return rdna_op_copy(pass->stream, &x, &seen);
}

rdna_status rdna_image_control_see(rdna_image_control *k, const float *picture, int height, int width) {
  if (!k || !picture)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_control_see needs a ControlNet and a picture");
  int factor = k->info.factor;
  if (height < factor || width < factor || height > MOST_SIDE || width > MOST_SIDE || height % factor || width % factor)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a ControlNet's picture of %d x %d; sides are multiples of %d up to %d",
                      width, height, factor, MOST_SIDE);
  forget(k);
  rdna_stream *stream = rdna_device_default_stream(k->half.network.device);
  rdna__image_pass pass = {.stream = stream, .dtype = k->half.network.dtype, .holder = "a ControlNet"};
  rdna_status status = see(k, &pass, picture, height, width);
  rdna_status waited = rdna_stream_synchronize(stream); /* what is copied from is the caller's */
  status = rdna__pass_end(&pass, status);
  if (status == RDNA_OK) status = waited;
  if (status != RDNA_OK) forget(k);
  return status;
}

/* ---- a pass ---- */

static rdna_status check_seen(const rdna_image_control *k, const rdna_image_unet_input *g) {
  if (!k->seen.data) return rdna__fail(RDNA_INVALID_ARGUMENT, "the ControlNet has seen no picture");
  if (k->seen.shape[2] == g->height && k->seen.shape[3] == g->width) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "the ControlNet saw a picture for samples of %lld x %lld, not of %d x %d",
                    (long long)k->seen.shape[2], (long long)k->seen.shape[3], g->height, g->width);
}

rdna_status rdna__control_check(const rdna_image_control_use *use, const rdna_image_unet *unet,
                                const rdna_image_unet_input *given) {
  const rdna_image_control *k = use->control;
  if (!k || !isfinite(use->scale))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a ControlNet to be used is missing, or its scale is no number");
  if (k->half.network.device != unet->network.device || k->half.network.dtype != unet->network.dtype)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a ControlNet is on another device than the U-Net, or of another type");
  if (check_fit(&k->half.set, &unet->set) != RDNA_OK)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a ControlNet was made for another version of the U-Net");
  return check_seen(k, given);
}

/* |out| = output |i| of |x|, times |scale| */
static rdna_status run_output(rdna__unet_pass *r, const rdna_image_control *k, int i, const rdna_tensor *x,
                              double scale, rdna_tensor *out) {
  RDNA_TRY(rdna__image_conv_run(&r->pass, &k->outputs[i], x, out));
  if (scale == 1) return RDNA_OK;
  return rdna_op_map(r->pass.stream, RDNA_MAP_AFFINE, out, rdna_scalar_real(scale), rdna_scalar_real(0), out);
}

static rdna__unet_pass pass_of(const rdna_image_control *k, const rdna_image_unet_input *given, int channels) {
  rdna__unet_pass r = {.unet = &k->half, .given = given, .channels = channels, .seen = &k->seen};
  r.pass = (rdna__image_pass){.stream = rdna_device_default_stream(k->half.network.device),
                              .dtype = k->half.network.dtype,
                              .holder = "a ControlNet"};
  return r;
}

static rdna_status add_all(rdna__unet_pass *r, const rdna_image_control_use *use, rdna__unet_pass *to) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor out;
  RDNA_TRY(rdna__unet_run_half(r));
  for (int i = 0; i <= r->skip_count; i++) {
    bool last = i == r->skip_count;
    const rdna_tensor *sum = last ? &to->x : &to->skips[i];
    RDNA_TRY(run_output(r, use->control, i, last ? &r->x : &r->skips[i], use->scale, &out));
    RDNA_TRY(rdna_op_zip(r->pass.stream, RDNA_ZIP_ADD, sum, &out, zero, zero, sum));
    RDNA_TRY(rdna__pass_drop(&r->pass, &out));
  }
  return RDNA_OK;
}

rdna_status rdna__control_add(const rdna_image_control_use *use, rdna__unet_pass *to) {
  rdna__unet_pass r = pass_of(use->control, to->given, to->channels);
  return rdna__pass_end(&r.pass, add_all(&r, use, to));
}

/* The shape of output |i| of a half that has run, by what it reads. */
static const rdna_tensor *read_by(const rdna__unet_pass *r, int i) { return i < r->skip_count ? &r->skips[i] : &r->x; }

static rdna_status run(rdna__unet_pass *r, const rdna_image_control *k, float *out) {
  rdna_tensor image, values;
  RDNA_TRY(rdna__unet_run_half(r));
  for (int i = 0; i < k->info.outputs; i++) {
    RDNA_TRY(run_output(r, k, i, read_by(r, i), 1, &image));
    RDNA_TRY(rdna__pass_tensor(&r->pass, RDNA_F32, 4, image.shape, &values));
    RDNA_TRY(rdna_op_copy(r->pass.stream, &image, &values));
    size_t count = (size_t)rdna_tensor_count(&values);
    RDNA_TRY(rdna_copy_to_host(r->pass.stream, out, values.data, count * sizeof *out));
    out += count;
    RDNA_TRY(rdna__pass_drop(&r->pass, &image));
    RDNA_TRY(rdna__pass_drop(&r->pass, &values));
  }
  return RDNA_OK;
}

size_t rdna_image_control_size(const rdna_image_control *k, int count, int height, int width) {
  const rdna__unet_settings *s = &k->half.set;
  size_t all = 0, h = (size_t)height, w = (size_t)width;
  for (int i = 0; i < s->stages; i++) {
    size_t images = (size_t)s->layers[i] + (i == 0), channels = (size_t)s->channels[i];
    all += images * channels * h * w;
    if (i + 1 < s->stages) {
      h = (h + 1) / 2;
      w = (w + 1) / 2;
    }
    all += channels * h * w; /* the half of it, or the middle */
  }
  return (size_t)count * all;
}

rdna_status rdna_image_control_run(rdna_image_control *k, const rdna_image_unet_input *given, float *out) {
  if (!k || !given || !out)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_control_run needs a ControlNet, what it reads and a place");
  rdna_image_unet_input read;
  RDNA_TRY(RDNA__OPTIONS("rdna_image_control_run", "input", given, &read));
  RDNA_TRY(rdna__unet_check(&k->half, &read));
  RDNA_TRY(check_seen(k, &read));
  rdna__unet_pass r = pass_of(k, &read, k->info.in_channels);
  rdna_status status = run(&r, k, out);
  rdna_status waited = rdna_stream_synchronize(r.pass.stream); /* what is copied from and to is the caller's */
  status = rdna__pass_end(&r.pass, status);
  return status == RDNA_OK ? waited : status;
}
