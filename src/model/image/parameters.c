#include "model/image/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In as few digits as give |value| again. */
static void write_number(FILE *to, const char *name, double value) {
  char text[32];
  int digits = 6;
  do snprintf(text, sizeof text, "%.*g", digits, value);
  while (strtod(text, NULL) != value && ++digits < 18);
  fprintf(to, ", %s: %s", name, text);
}

char *rdna__image_parameters(const rdna_image_request *r, int i, const char *path, rdna_dtype dtype, const char *more) {
  char *text = NULL;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  if (!to) return NULL;
  const char *name = path + strlen(path);
  while (name > path && name[-1] == '/') name--; /* slashes at its end */
  int length = 0;
  for (; name > path && name[-1] != '/'; name--) length++;
  fprintf(to, "%s\n", r->prompt ? r->prompt : "");
  if (r->negative) fprintf(to, "Negative prompt: %s\n", r->negative);
  fprintf(to, "Steps: %d, Sampler: %s, Schedule type: %s", r->steps, r->sampler, r->spacing);
  write_number(to, "CFG scale", r->guidance);
  fprintf(to, ", Seed: %llu, Size: %dx%d, Model: %.*s", (unsigned long long)(r->seed + (uint64_t)i), r->width,
          r->height, length, name);
  if (r->init) write_number(to, "Denoising strength", r->strength);
  if (r->skip) fprintf(to, ", Clip skip: %d", r->skip + 1);
  fprintf(to, ", Type: %s", rdna_dtype_name(dtype));
  if (r->tile) fprintf(to, ", Tile: %d", r->tile);
  if (r->mask) fprintf(to, ", Mask: given");
  if (r->plain) fprintf(to, ", Plain: true");
  if (r->latents) fprintf(to, ", Latents: given");
  fprintf(to, "%s, Version: rdna %s", more, RDNA_VERSION);
  if (fclose(to) == 0) return text;
  free(text);
  return NULL;
}
