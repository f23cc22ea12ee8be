/* rdna upscale: a picture in a file made larger. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "command/command.h"
#include "command/upscaling.h"
#include "picture/decode.h"
#include "picture/encode.h"
#include "picture/enlarge.h"
#include "picture/jpeg.h"
#include "rdna/memory.h"

enum { PATH_BYTES = 4096 };

typedef struct upscale_options {
  device_choice device;
  const char *type, *out;
  double scale;
  int64_t tile, quality;
  bool json;
} upscale_options;

typedef struct upscaling {
  const upscale_options *options;
  const char *model, *file;
  rdna_device *device;
  rdna__enlargement how;
  rdna__picture picture, larger;
  char name[UPSCALER_NAME_BYTES], out[PATH_BYTES];
  double took;
} upscaling;

static rdna_status name_out(upscaling *u) {
  const char *slash = strrchr(u->file, '/'), *stem = slash ? slash + 1 : u->file, *dot = strrchr(stem, '.');
  int length = dot && dot > stem ? (int)(dot - stem) : (int)strlen(stem);
  int size = u->options->out ? snprintf(u->out, sizeof u->out, "%s", u->options->out)
                             : snprintf(u->out, sizeof u->out, "%.*s-large.png", length, stem);
  if (size >= (int)sizeof u->out) return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of --out is too long");
  RDNA_TRY(check_not_input(u->file, u->out));
  rdna__picture_kind kind;
  RDNA_TRY(rdna__picture_kind_of(u->out, &kind));
  if (u->options->quality != RDNA__JPEG_QUALITY && kind != RDNA__PICTURE_JPEG)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "--quality is of a JPEG, and --out names none");
  json_t *said = json_string(u->out);
  json_decref(said);
  if (u->options->json && !said)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "--json cannot say the name %s, which is no UTF-8", u->out);
  return rdna__picture_check_path(u->out);
}

static rdna_status upscale(upscaling *u) {
  const upscale_options *o = u->options;
  RDNA_TRY(rdna__picture_load_with(u->file, rdna__picture_decode_opacity, &u->picture));
  RDNA_TRY(name_out(u));
  RDNA_TRY(open_chosen_device(&o->device, &u->device));
  RDNA_TRY(open_upscaler(u->device, u->model, o->type, &u->how.upscaler, u->name));
  u->how.name = u->name;
  u->how.tile = (int)o->tile;
  u->how.progress = show_tiles;
  RDNA_TRY(rdna__enlargement_size(&u->how, &u->picture, o->scale));
  rdna_memory_reset_peaks(u->device);
  double began = seconds();
  rdna_status status = rdna__picture_enlarge(&u->how, &u->picture, &u->larger);
  end_progress();
  u->took = seconds() - began;
  return status == RDNA_OK ? rdna__picture_save(u->out, &u->larger, (int)o->quality) : status;
}

static int report(const upscaling *u) {
  const rdna_device_info *device = rdna_device_get_info(u->device);
  const rdna_image_upscaler_info *info = rdna_image_upscaler_get_info(u->how.upscaler);
  rdna_memory_stats stats;
  rdna_memory_get_stats(u->device, &stats);
  if (u->options->json)
    return print_json(json_pack("{s:s, s:s, s:b, s:s, s:i, s:s, s:i, s:i, s:f, s:I, s:I}", "device", device->name,
                                "driver", device->driver, "emulated", device->emulated, "network", info->network,
                                "network_scale", info->scale, "file", u->out, "width", u->how.width, "height",
                                u->how.height, "seconds", u->took, "weights_bytes", (json_int_t)info->weights_bytes,
                                "peak_bytes", (json_int_t)stats.peak_allocated));
  puts(u->out);
  fprintf(stderr, "%s: %s, %d x %d to %d x %d, %.1f s\n", device->name, info->network, u->picture.width,
          u->picture.height, u->how.width, u->how.height, u->took);
  return EXIT_OK;
}

int command_upscale(int argc, char **argv) {
  upscale_options o = {.device = DEVICE_CHOICE_DEFAULT, .type = "auto", .quality = RDNA__JPEG_QUALITY};
  const option_row options[] = {
      {"--out", OPTION_TEXT, &o.out, "FILE", "a .png or .jpg (the file's name with -large.png, here)", 0, 0},
      {"--quality", OPTION_INTEGER, &o.quality, "N", "of a .jpg (95)", 1, 100},
      {"--scale", OPTION_NUMBER, &o.scale, "X", "times as wide and high (the model's; others by resizing)", 0.01, 64},
      {"--tile", OPTION_INTEGER, &o.tile, "N", "in tiles of N x N pixels, a multiple of 4 (256)", 4, 4096},
      {"--type", OPTION_CHOICE, &o.type, "auto|f32|f16|bf16", "to compute in (auto: f16 on a GPU, f32 on the host)", 0,
       0},
      {"--json", OPTION_FLAG, &o.json, NULL, "say what was done as JSON", 0, 0},
      DEVICE_OPTIONS(o.device),
  };
  const command_line line = {"rdna upscale",
                             "Makes a picture larger, with a network of ESRGAN's or Real-ESRGAN's in a file of "
                             "safetensors or PyTorch's.",
                             "MODEL FILE",
                             2,
                             2,
                             options,
                             sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  upscaling u = {.options = &o, .model = positionals[0], .file = positionals[1]};
  exit_status = upscale(&u) == RDNA_OK ? report(&u) : fail_with_status();
  rdna__picture_deinit(&u.picture);
  rdna__picture_deinit(&u.larger);
  rdna_image_upscaler_release(u.how.upscaler);
  rdna_device_release(u.device);
  return exit_status;
}
